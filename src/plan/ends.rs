//! Ends: how much a stream moves where it ends by passes.
//!
//! For: passes over what is there, in bytes. Not for: ends by a count or a time, which are said as they are.

use model::job::{Clones, Line, Order, Stream};

/// The bytes after which a stream ends: as said, or after so many passes over these spans, whichever comes first.
pub(super) fn bytes(passes: Option<u32>, stream: &Stream, spans: &[u64]) -> Option<u64> {
    let Some(passes) = passes else { return stream.limit.bytes };
    let one: u64 = spans.iter().map(|span| pass_bytes(stream, *span)).sum();
    let clones = if stream.clones == Some(Clones::Same) { u64::from(stream.workers) } else { 1 };
    let all = one.saturating_mul(u64::from(passes)).saturating_mul(clones);
    Some(stream.limit.bytes.map_or(all, |said| said.min(all)).max(1))
}

/// What a pass over a span moves: as many operations as fit into it, or as belong to its zones.
fn pass_bytes(stream: &Stream, span: u64) -> u64 {
    let size = u64::from(stream.access.smallest_bytes().max(1));
    // A trim and the write behind it touch the same bytes.
    let times = if stream.access.lines.iter().any(Line::has_pairs) { 2 } else { 1 };
    if let Some(zones) = stream.access.strided {
        let last = stream.access.in_order().map_or(0, |(size, times)| zones.last_bytes(span, size, times));
        return zones.whole(span).saturating_mul(zones.moved(size * times)).saturating_add(last);
    }
    let step = match stream.access.lines.first().map(|l| &l.order) {
        Some(Order::Sequential(steps)) if steps.stride_bytes > 0 => steps.stride_bytes,
        Some(Order::Sequential(steps)) => size.saturating_add(steps.hole_bytes),
        _ => size,
    };
    let fits = span.checked_sub(size).map_or(0, |rest| rest / step.max(1) + 1);
    fits.saturating_mul(size).saturating_mul(times)
}

#[test]
fn a_pass_has_as_many_operations_as_fit() {
    use model::job::{Access, Mix, Pattern, Steps, Strided};
    let mut stream = Stream::plain(Access::plain(Pattern::Sequential, 1 << 20, 100), 1, 1, "sync");
    assert_eq!(pass_bytes(&stream, (10 << 20) + 5), 10 << 20);
    // fio: 128 MiB by operations of 1 MiB with holes of 512 KiB are 85.
    stream.access.lines[0].order = Order::Sequential(Steps { hole_bytes: 512 << 10, ..Steps::default() });
    assert_eq!(pass_bytes(&stream, 128 << 20), 85 << 20);
    assert_eq!(pass_bytes(&stream, 5), 0);
    let mut zones = Stream::plain(Access::plain(Pattern::Sequential, 1 << 20, 100), 1, 1, "sync");
    let strided = |bytes: u64| Some(Strided { bytes, range_bytes: 8 << 20, skip_bytes: 24 << 20 });
    zones.access.strided = strided(3 << 20);
    assert_eq!(pass_bytes(&zones, (64 + 8) << 20), 9 << 20);
    assert_eq!(pass_bytes(&zones, (64 + 2) << 20), 8 << 20, "of the last zone there are two blocks");
    zones.access.strided = strided((3 << 20) + 1);
    assert_eq!(pass_bytes(&zones, 64 << 20), 8 << 20, "the last of a zone is done whole");
    let mut pairs = stream.clone();
    pairs.access.lines[0].mix = Mix::of_percents(0, 100);
    pairs.access.lines[0].writes_after_trims = true;
    assert_eq!(pass_bytes(&pairs, 128 << 20), 170 << 20, "fio trims 85 and writes 85");
    let clones = Stream { workers: 3, clones: Some(Clones::Same), ..stream };
    assert_eq!(bytes(Some(2), &clones, &[128 << 20]), Some(6 * (85 << 20)));
    assert_eq!(bytes(None, &clones, &[128 << 20]), None);
}
