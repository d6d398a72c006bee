//! Spans: whether what is to be touched is there, and fits the alignment of direct I/O.
//!
//! For: refusing what no target of that size and alignment can do. Not for: finding targets ([`super::target`]).

use super::origins::Origins;
use super::stream::Draft;
use crate::failure::Failure;
use model::job::{Line, Order, Sizes, Stream};
use model::machine::Place;
use model::name;
use model::plan::Target;
use model::units::show_bytes;
use std::path::Path;

/// Refuses a span that goes beyond what is there.
pub(super) fn check_size(
    said: &Path,
    target: &Target,
    size: Option<u64>,
    offset: u64,
) -> Result<(), Failure> {
    let there = target.bytes;
    let end = offset.checked_add(size.unwrap_or(0));
    if size.is_some_and(|s| s > there) || end.is_none_or(|e| e > there) {
        return Err(Failure::Usage(format!(
            "--size {} from --offset {} goes beyond {}, which has {}; type less, or leave --size out",
            show_bytes(size.unwrap_or(there)),
            show_bytes(offset),
            name::shown(said),
            show_bytes(there)
        )));
    }
    Ok(())
}

/// Bytes of a file that is made: the region that is tested, `usual` unless it was said, and then behind the offset.
pub(super) fn made_bytes(
    draft: &Draft,
    usual: u64,
    path: &Path,
    origins: &mut Origins,
) -> Result<u64, Failure> {
    if draft.create.is_some() {
        return Err(Failure::Usage(format!(
            "--create makes a file that is named, and {} is a directory; name a file in it, or type --size alone",
            name::shown(path)
        )));
    }
    let region = origins.choose("--size", draft.size, usual, |b| show_bytes(*b));
    let before = draft.size.map_or(0, |_| draft.stream.access.offset_bytes);
    let bytes = region.saturating_add(before);
    draft.size.map_or(Ok(()), |_| machine::test_file::fits(path, bytes))?;
    Ok(bytes)
}

/// Refuses operations that do not fit a target or its alignment.
pub(super) fn check_span(job: &str, stream: &Stream, target: &Target) -> Result<(), Failure> {
    if !stream.turns.is_empty() {
        return stream.turns.iter().try_for_each(|turn| check_span(job, &stream.of_turn(turn), target));
    }
    let access = &stream.access;
    let largest = u64::from(access.largest_bytes());
    let left = target.bytes.saturating_sub(access.offset_bytes).min(access.span_bytes);
    if left < largest {
        return Err(Failure::Usage(format!(
            "{job}: no block of {} fits behind offset {} of {} ({}); use a smaller --bs or --offset, or a larger --size",
            show_bytes(largest),
            show_bytes(access.offset_bytes),
            target.path,
            show_bytes(target.bytes.min(access.span_bytes)),
        )));
    }
    if let Some(zones) = access.strided.filter(|z| z.whole(left) == 0 || z.range_bytes < largest) {
        return Err(Failure::Usage(format!(
            "{job}: --strided: a zone of {} does not fit {} of {} and blocks of {}; use other zones, or a larger --size",
            show_bytes(zones.range_bytes),
            show_bytes(left),
            target.path,
            show_bytes(largest)
        )));
    }
    if !stream.cache.is_direct() {
        return Ok(());
    }
    let align = u64::from(target.block_bytes.max(1));
    let aligned = |what: &str, value: u64| {
        if value.is_multiple_of(align) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--{what} {value}: direct I/O to {} needs multiples of {align} bytes; type --{what} {} or --cache buffered",
            target.path,
            value.checked_next_multiple_of(align).unwrap_or(value - value % align)
        )))
    };
    aligned("offset", access.offset_bytes)?;
    aligned("strided", access.strided.map_or(0, |zones| zones.step_bytes()))?;
    for line in &access.lines {
        for size in line_sizes(line) {
            aligned("bs", u64::from(size))?;
        }
        aligned("align", line.align_bytes)?;
        if let Order::Sequential(steps) = &line.order {
            aligned("stride", steps.stride_bytes)?;
            aligned("hole", steps.hole_bytes)?;
        }
    }
    Ok(())
}

/// Every size that a line may draw, ends of ranges.
fn line_sizes(line: &Line) -> Vec<u32> {
    let of = |sizes: &Sizes| match sizes {
        Sizes::Fixed(size) => vec![*size],
        Sizes::Range(least, most) => vec![*least, *most],
        Sizes::Split(split) => split.iter().map(|s| s.0).collect(),
    };
    let mut all: Vec<u32> = line.drawn_sizes().flat_map(of).collect();
    all.extend((line.reply_bytes > 0).then_some(line.reply_bytes));
    all
}

/// Alignment of direct I/O at a place; `None` where it has none.
pub(in crate::plan) fn whole_alignment(place: &Place) -> Option<u32> {
    if place.direct.is_some_and(|d| d.offset_align == 0) {
        return None;
    }
    Some(direct_alignment(place).max(1))
}

/// Alignment of offsets that direct I/O needs: statx says, else the device's logical block, else the safest common size.
pub(super) fn direct_alignment(place: &Place) -> u32 {
    if let Some(direct) = place.direct.filter(|d| d.offset_align > 0) {
        return direct.offset_align;
    }
    let blocks = place.tops.iter().filter_map(|t| place.layers.get(*t)?.queue.get("logical_block_size"));
    blocks.filter_map(|b| b.trim().parse().ok()).max().unwrap_or(512)
}
