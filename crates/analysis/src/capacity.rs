//! Capacities of devices: what a report says that a device can do of one kind of request.
//!
//! For: choosing the results that say so, and the figures of the device in them. Not for: holding a load against them
//! ([`crate::watch::head_room`]).

use crate::limiter;
use model::job::{Mix, Pattern, Stream};
use model::machine::{Capacity, Direction, KnownBy, Layer, LayerKind, Place};
use model::plan::Plan;
use model::report::{Measured, Report, Verdict};

/// By how much the bytes that a device moved may differ from those of the operations, for these to be its own: merging and
/// splitting keep bytes, a page cache or a journal does not.
const SAME_BYTES: f64 = 0.05;

/// The capacities that a report tells, of the devices that its plan's targets are on.
///
/// A result is one where it holds (VALID, under the name that was asked for), or where nothing but a cgroup's limit held it back, which is
/// told then; is of one stream with one size and one direction past the
/// page cache, in a closed loop that nothing held back, without syncs, and where the topmost device moved the bytes that were
/// asked for. Its figures are those of the device: requests that it completed, and their mean size.
pub fn of_report(plan: &Plan, report: &Report) -> Vec<Capacity> {
    report.results.iter().filter_map(|result| of_result(plan, &report.machine.places, result)).collect()
}

fn of_result(plan: &Plan, places: &[Place], result: &Measured) -> Option<Capacity> {
    let throttled = is_throttled(result);
    if result.void || (!throttled && (result.verdict != Verdict::Valid || result.renamed)) {
        return None;
    }
    let [phase] = result.job.phases.as_slice() else { return None };
    let [stream] = phase.streams.as_slice() else { return None };
    let (direction, sequential) = kind(stream)?;
    let device = device(plan, places, stream)?;
    let (rates, at_device) = (result.total.as_ref()?, result.at_device()?);
    let moved = at_device.bytes_per_s(rates.iops) / (rates.mb_per_s * 1e6);
    if !moved.is_finite() || (moved - 1.0).abs() > SAME_BYTES {
        return None;
    }
    let requests_per_s = at_device.requests_per_s(rates.iops);
    let request_bytes = at_device.request_bytes().filter(|bytes| *bytes > 0)?;
    (requests_per_s.is_finite() && requests_per_s > 0.0).then(|| Capacity {
        device: KnownBy::from_layer(device),
        direction,
        sequential,
        request_bytes,
        requests_per_s,
        in_flight: stream.total_depth(),
        throttled,
    })
}

/// Whether it is SUSPECT, and a cgroup's limit is what it measured.
fn is_throttled(result: &Measured) -> bool {
    result.verdict == Verdict::Suspect && result.limiter.name == limiter::THROTTLE
}

/// The one kind of request that a stream makes as fast as it can; `None` where it makes several, or is held back.
fn kind(stream: &Stream) -> Option<(Direction, bool)> {
    if !stream.is_unheld() || stream.flush.is_some() || !stream.cache.is_direct() || stream.cache.is_sync() {
        return None;
    }
    if stream.does_nothing() || stream.moves_no_data() {
        return None;
    }
    let [line] = stream.access.lines.as_slice() else { return None };
    stream.access.block_bytes()?;
    let direction = match line.mix {
        mix if mix == Mix::of_percents(100, 0) => Direction::Read,
        mix if mix == Mix::of_percents(0, 0) => Direction::Write,
        _ => return None,
    };
    Some((direction, stream.access.pattern()? == Pattern::Sequential))
}

/// The one device that all targets of a stream are on: that which their file system or the caller talks to, of a partition its disk.
fn device<'p>(plan: &Plan, places: &'p [Place], stream: &Stream) -> Option<&'p Layer> {
    let mut found: Option<&Layer> = None;
    for target in &stream.targets {
        plan.targets.get(*target)?;
        let place = places.get(*target)?;
        let [top] = place.tops.as_slice() else { return None };
        let layer = whole(&place.layers, *top)?;
        if found.is_some_and(|other| other.number != layer.number) {
            return None;
        }
        found = Some(layer);
    }
    found
}

/// A layer, of a partition its disk.
pub(crate) fn whole(layers: &[Layer], at: usize) -> Option<&Layer> {
    let layer = layers.get(at)?;
    if layer.kind != LayerKind::Partition {
        return Some(layer);
    }
    layers.get(*layer.below.first()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::{Judging, judge};
    use model::job::{Cache, Flush, Pace, SyncCall};

    fn capacities_after(change: impl Fn(&mut Report)) -> Vec<Capacity> {
        let record = Fixture::honest().record();
        let mut report = judge(&record, &Judging::default());
        change(&mut report);
        of_report(&record.header.plan, &report)
    }

    #[test]
    fn an_honest_result_is_a_capacity_with_the_figures_of_the_device() {
        let all = capacities_after(|_| {});
        let report = judge(&Fixture::honest().record(), &Judging::default());
        let [one] = &all[..] else { panic!("{all:?}: {:?}", report.verdict_reason) };
        assert_eq!((one.direction, one.sequential, one.request_bytes), (Direction::Read, false, 4096));
        let iops = report.results[0].total.as_ref().map_or(0.0, |t| t.iops);
        assert!((one.requests_per_s / iops - 1.0).abs() < 0.01, "{one:?} of {iops}");
    }

    #[test]
    fn what_does_not_hold_or_was_held_back_is_none() {
        let stream = |report: &mut Report, change: fn(&mut Stream)| {
            change(&mut report.results[0].job.phases[0].streams[0]);
        };
        assert!(capacities_after(|r| r.results[0].verdict = Verdict::Suspect).is_empty());
        let held_back = capacities_after(|r| {
            r.results[0].verdict = Verdict::Suspect;
            r.results[0].limiter.name = limiter::THROTTLE.into();
        });
        assert!(held_back.len() == 1 && held_back[0].throttled && !capacities_after(|_| {})[0].throttled);
        assert!(capacities_after(|r| r.results[0].renamed = true).is_empty());
        assert!(capacities_after(|r| r.results[0].void = true).is_empty());
        assert!(
            capacities_after(|r| r.results[0].runs.iter_mut().for_each(|run| run.device = None)).is_empty()
        );
        assert!(capacities_after(|r| stream(r, |s| s.cache = Cache::Buffered)).is_empty());
        assert!(
            capacities_after(|r| stream(r, |s| s.pace = Pace::Limited { iops: 5.0, bytes_per_s: 0.0 }))
                .is_empty()
        );
        assert!(
            capacities_after(|r| stream(r, |s| s.access.lines[0].mix = Mix::of_percents(70, 0))).is_empty()
        );
        assert!(
            capacities_after(|r| stream(r, |s| s.flush =
                Some(Flush { call: SyncCall::default(), every: 1, calls: 1, drain: false })))
            .is_empty()
        );
        // A device that moved other bytes than were asked for: something between answered.
        assert!(
            capacities_after(|r| for run in &mut r.results[0].runs {
                run.device = run.device.map(|d| model::report::DeviceFigures {
                    bytes: d.bytes / 10,
                    ios: d.ios / 10,
                    ..d
                });
            })
            .is_empty()
        );
        assert!(
            capacities_after(|r| r.machine.places.iter_mut().for_each(|p| p.tops = Vec::new())).is_empty()
        );
    }
}
