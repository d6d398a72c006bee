//! Group B: whether the I/O was what the user requested.
//!
//! This file lists the checks of the group, and has the helpers that several of its files need.

mod amplification;
mod file_allocation;
mod mixed_access;
pub(super) mod queue;
pub(super) mod requests;
mod submission;
mod work_done;

use crate::case::Case;
use crate::checks::Check;
use model::Known;
use model::machine::{Layer, LayerKind};

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    requests::MERGED,
    requests::SPLIT,
    amplification::READ_AMPLIFIED,
    amplification::WRITE_AMPLIFIED,
    queue::DEPTH_NOT_REACHED,
    submission::SUBMIT_BLOCKS,
    submission::IOWQ_PUNTED,
    submission::NOT_POLLING,
    queue::DEPTH_ABOVE_QUEUE,
    queue::ONE_HW_QUEUE,
    file_allocation::MISALIGNED,
    work_done::ERRORS_COUNTED,
    work_done::MIX_DRIFT,
    requests::NOT_RANDOM,
    file_allocation::FRAGMENTED,
    file_allocation::WRITES_ALLOCATE,
    work_done::IDLE_TAIL,
    queue::LITTLE_VIOLATED,
    mixed_access::DIO_MIXED,
    amplification::PAGES_READ_FIRST,
    file_allocation::TRIMS_MET_HOLES,
];

/// Number of standard deviations that a count may be off by chance. Only one count in 16,000 is further off.
const DEVIATIONS: f64 = 4.0;

/// Returns the page size in bytes, or 4096 if no snapshot contains it.
pub(in crate::checks) fn page_bytes(case: &Case) -> u64 {
    let states = case.states(model::evidence::Moment::Start).unwrap_or_default();
    let pages = states.into_iter().flatten().filter_map(|s| s.pages.as_ref().ok());
    pages.map(|p| p.page_bytes).max().filter(|b| *b > 0).unwrap_or(4096)
}

/// Whether a layer queues and merges requests.
pub(super) fn has_queue(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Loop)
}

/// Returns the disks and loop devices below the targets, each once, and why there may be others. These layers have their
/// own request queue.
fn layers_with_queues<'a>(case: &Case<'a>) -> (Vec<&'a Layer>, Known<()>) {
    let layers = case.layers(has_queue);
    let no_layer = || Err("no disk is known below the target".into());
    let completeness = case.need_resolved_stack().and(if layers.is_empty() { no_layer() } else { Ok(()) });
    (layers, completeness)
}
