//! Group B: whether the I/O was what the user requested.
//!
//! Has the table of the group, and the comparison of operations with device requests that B01, B02 and B14 share.

mod b01_merged;
mod b02_split;
mod b03_read_amplified;
mod b04_write_amplified;
pub(super) mod b05_depth_not_reached;
mod b06_submit_blocks;
mod b07_iowq_punted;
mod b08_not_polling;
mod b09_depth_above_queue;
mod b10_one_hw_queue;
mod b11_misaligned;
mod b12_errors_counted;
mod b13_mix_drift;
mod b14_not_random;
mod b15_fragmented;
mod b16_writes_allocate;
mod b17_idle_tail;
mod b18_little_violated;
mod b19_dio_mixed;
mod b20_pages_read_first;
mod b21_trims_met_holes;

use crate::case::{Amount, Case, share};
use crate::checks::Check;
use crate::figures::traffic::{FLOOR_BYTES, FLOOR_IOS};
use model::Known;
use model::evidence::BlockFlow;
use model::job::Kind;
use model::machine::{Layer, LayerKind};
use model::units::show_bytes;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    b01_merged::CHECK,
    b02_split::CHECK,
    b03_read_amplified::CHECK,
    b04_write_amplified::CHECK,
    b05_depth_not_reached::CHECK,
    b06_submit_blocks::CHECK,
    b07_iowq_punted::CHECK,
    b08_not_polling::CHECK,
    b09_depth_above_queue::CHECK,
    b10_one_hw_queue::CHECK,
    b11_misaligned::CHECK,
    b12_errors_counted::CHECK,
    b13_mix_drift::CHECK,
    b14_not_random::CHECK,
    b15_fragmented::CHECK,
    b16_writes_allocate::CHECK,
    b17_idle_tail::CHECK,
    b18_little_violated::CHECK,
    b19_dio_mixed::CHECK,
    b20_pages_read_first::CHECK,
    b21_trims_met_holes::CHECK,
];

/// Largest difference between the bytes of the device and the issued bytes at which the requests count as fathom's. A
/// difference of 5 % moves the mean request size by as much.
pub(crate) const SAME_BYTES: f64 = 0.05;
/// Standard deviations by which chance may move a count. One in 16,000 exceeds it.
const DEVIATIONS: f64 = 4.0;

/// Incidental bytes of all runs.
fn incidental_bytes(case: &Case) -> u64 {
    FLOOR_BYTES.saturating_mul(case.runs.len() as u64)
}

/// Incidental requests of all runs.
fn incidental_requests(case: &Case) -> u64 {
    FLOOR_IOS.saturating_mul(case.runs.len() as u64)
}

/// The operations of one direction and the requests of the topmost devices, including warm-up and drain.
struct Requests {
    kind: Kind,
    issued: Amount,
    device: BlockFlow,
}

impl Requests {
    fn ops_per_request(&self) -> f64 {
        share(self.issued.ops as f64, self.device.ios as f64)
    }

    fn requests_per_op(&self) -> f64 {
        share(self.device.ios as f64, self.issued.ops as f64)
    }

    fn op_bytes(&self) -> f64 {
        share(self.issued.bytes as f64, self.issued.ops as f64)
    }

    fn request_bytes(&self) -> f64 {
        share(self.device.bytes as f64, self.device.ios as f64)
    }
}

/// Returns the page size in bytes.
fn page_bytes(case: &Case) -> u64 {
    let states = case.states(model::evidence::Moment::Start).unwrap_or_default();
    let pages = states.into_iter().flatten().filter_map(|s| s.pages.as_ref().ok());
    pages.map(|p| p.page_bytes).max().filter(|b| *b > 0).unwrap_or(4096)
}

/// Whether operations start or end inside a page.
fn has_partial_pages(case: &Case, page: u64) -> bool {
    let access = &case.stream.access;
    let is_partial = |bytes: u64| !bytes.is_multiple_of(page);
    let smallest = u64::from(access.smallest_bytes());
    is_partial(access.offset_bytes) || is_partial(smallest) || is_partial(u64::from(access.largest_bytes()))
}

/// Whether requests can be compared with operations. Through the page cache, the kernel makes its own requests.
fn is_comparable(case: &Case) -> bool {
    case.on_device() && case.stream.cache.is_direct() && Kind::MOVING.iter().any(|k| case.does(*k))
}

/// Returns the requests of each direction of the job.
///
/// # Errors
/// Fails if the device was not counted or its bytes differ from the issued ones.
fn requests(case: &Case) -> Known<Vec<Requests>> {
    let all = case.device()?;
    let mut out = Vec::new();
    for (kind, mut device) in [(Kind::Read, all.read), (Kind::Write, all.write)] {
        let issued = case.issued(kind);
        if kind == Kind::Write && all.flushes > 0 {
            // The kernel counts a write that is followed by a flush twice, the second time without bytes, even if
            // several writes share the flush.
            device.ios -= issued.ops.min(device.ios.saturating_sub(issued.ops));
        }
        if issued.ops == 0 {
            continue;
        }
        let difference = (device.bytes as f64 - issued.bytes as f64).abs();
        if difference > SAME_BYTES * issued.bytes as f64 {
            return Err(format!(
                "fathom issued {} of {}s, but the device moved {}, so its requests are not only fathom's",
                show_bytes(issued.bytes),
                kind.word(),
                show_bytes(device.bytes)
            ));
        }
        out.push(Requests { kind, issued, device });
    }
    Ok(out)
}

/// Returns the direction with the highest ratio.
///
/// # Errors
/// Fails like [`requests`].
fn worst_requests(case: &Case, ratio: impl Fn(&Requests) -> f64) -> Known<Requests> {
    let worst = requests(case)?.into_iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    worst.ok_or_else(|| "no operation completed".into())
}

/// Upper bounds for a stream that shares its devices: as if every merge were its own, and as if the other streams
/// had made as few requests as possible.
struct SharedBounds {
    ops_per_request: f64,
    requests_per_op: f64,
    /// Merges at the device.
    merges: u64,
    merged_share: f64,
}

/// Returns the bounds for a stream that shares its devices, or `None` if it does not share them.
///
/// # Errors
/// Fails if the device was not counted, or if the stream's bytes may not have reached it.
fn shared_bounds(case: &Case) -> Known<Option<SharedBounds>> {
    let tops = case.tops()?;
    let sharers = case.sharers(&tops);
    if sharers.is_empty() {
        return Ok(None);
    }
    let total = case.counted_together(&tops)?.total();
    for kind in Kind::MOVING {
        let (issued, seen) = (case.issued(kind).bytes as f64, case.at_device(kind)?);
        if (seen.least as f64) < (1.0 - SAME_BYTES) * issued {
            return Err(case.why_shared()?);
        }
    }
    let ops = case.issued_total().ops;
    let direct = case.direct_ops_of_sharers(&tops);
    let own_requests_least = ops.saturating_sub(total.merges);
    let sharers_requests_least = direct.saturating_sub(total.merges);
    Ok(Some(SharedBounds {
        ops_per_request: if own_requests_least == 0 {
            f64::INFINITY
        } else {
            share(ops as f64, own_requests_least as f64)
        },
        requests_per_op: share(total.ios.saturating_sub(sharers_requests_least) as f64, ops as f64),
        merges: total.merges,
        merged_share: share(total.merges as f64, ops as f64),
    }))
}

/// Whether a layer queues and merges requests.
pub(super) fn has_queue(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Loop)
}

/// Returns the disks and loop devices below the targets, each once. These layers have their own request queue.
///
/// # Errors
/// Fails if none is known.
fn disks<'a>(case: &Case<'a>) -> Known<Vec<&'a Layer>> {
    case.grounded()?;
    let out = case.layers(has_queue);
    if out.is_empty() { Err("no disk is known below the target".into()) } else { Ok(out) }
}

/// A record in which `part` of the operations are merged into their neighbours: fewer requests, the same bytes.
#[cfg(test)]
pub(in crate::checks) fn merge_some(mut record: model::record::Record, part: f64) -> model::record::Record {
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let Some(Ok(text)) = snapshot.files.get_mut("/sys/block/vda/stat") else { continue };
        let mut fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|w| w.parse().ok()).collect();
        for first in [0, 4] {
            let merged = (fields[first] as f64 * part) as u64;
            fields[first] -= merged;
            fields[first + 1] = merged;
        }
        *text = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    }
    record
}
