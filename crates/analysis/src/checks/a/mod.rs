//! Group A: whether the I/O reached the device at all.
//!
//! Has the table of the group, the expected share of repeated accesses, and test records that several checks use.

pub(super) mod a01_cache_served;
mod a02_direct_fell_back;
mod a03_direct_unsupported;
mod a04_holes_read;
mod a05_zero_data;
mod a06_inline_or_tail;
mod a07_encoded_extents;
mod a08_payload_too_easy;
pub(super) mod a09_writes_still_in_ram;
mod a10_never_written;
mod a11_ram_backed;
mod a12_lower_layer_cache;
pub(super) mod a13_counters_blind;
mod a14_wrong_place;
mod a15_span_fits_cache;
pub(super) mod a16_re_reads;
mod a17_first_touch;
mod a18_faster_than_physics;
mod a19_above_ceiling;
mod a20_hdd_too_fast;
mod a21_shared_extents;
mod a22_ledger_disagrees;
mod a23_file_changed;
mod a24_unaccounted_reads;

use crate::case::Case;
use crate::checks::{Check, not_checked};
#[cfg(test)]
use crate::fixture::Fixture;
use model::Known;
use model::evidence::{BlockFlow, BlockStat};
#[cfg(test)]
use model::evidence::{Extents, Moment, Probe, Snapshot};
use model::job::{Kind, Order, Start};
#[cfg(test)]
use model::record::Record;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    a01_cache_served::CHECK,
    a02_direct_fell_back::CHECK,
    a03_direct_unsupported::CHECK,
    a04_holes_read::CHECK,
    a05_zero_data::CHECK,
    a06_inline_or_tail::CHECK,
    a07_encoded_extents::CHECK,
    a08_payload_too_easy::CHECK,
    a09_writes_still_in_ram::CHECK,
    a10_never_written::CHECK,
    a11_ram_backed::CHECK,
    a12_lower_layer_cache::CHECK,
    a13_counters_blind::CHECK,
    a14_wrong_place::CHECK,
    a15_span_fits_cache::CHECK,
    a16_re_reads::CHECK,
    a17_first_touch::CHECK,
    a18_faster_than_physics::CHECK,
    a19_above_ceiling::CHECK,
    a20_hdd_too_fast::CHECK,
    a21_shared_extents::CHECK,
    a22_ledger_disagrees::CHECK,
    a23_file_changed::CHECK,
    a24_unaccounted_reads::CHECK,
];

/// Returns the expected share of `bytes` that the stream touches more than once in one run, 0 to 1. Follows from
/// the order of offsets, so that no list of offsets is kept.
///
/// # Errors
/// Fails if the order of offsets does not decide it.
fn repeated_share(case: &Case, bytes: f64) -> Known<f64> {
    let stream = &case.stream;
    let [line] = stream.access.lines.as_slice() else {
        return Err("fathom does not compute the repeat share of a workload with several lines".into());
    };
    if stream.replay.is_some() {
        return Err("fathom does not compute the repeat share of a replay".into());
    }
    if stream.access.strided.is_some() {
        return not_checked(
            "fathom does not compute the repeat share of a workload that visits one zone at a time",
        );
    }
    let span = case.span_bytes() as f64;
    if span <= 0.0 || bytes <= 0.0 {
        return Ok(0.0);
    }
    let passes = bytes / span;
    match &line.order {
        Order::Sequential(steps) if steps.stride_bytes > 0 || steps.hole_bytes > 0 => {
            Err("fathom does not compute the repeat share of an order with gaps".into())
        }
        // Every worker reads the same blocks.
        Order::Sequential(steps) if steps.start == Start::Same => {
            let workers = f64::from(stream.workers.max(1));
            Ok(1.0 - new_share(passes / workers) / workers)
        }
        // Workers with other starts may overlap, so repeats may begin before the first pass ends.
        Order::Sequential(steps) if matches!(steps.start, Start::Every(_)) && stream.workers > 1 => {
            Err("fathom does not compute how far workers with fixed start distances overlap".into())
        }
        // Rows overlap as random offsets do.
        Order::Once if line.is_in_rows() => Ok(repeated_at_random(passes)),
        Order::Sequential(_) | Order::Once => Ok(1.0 - new_share(passes)),
        Order::Random | Order::Mixed(_) | Order::MixedEach(_) => Ok(repeated_at_random(passes)),
        other => Err(format!("{} repeats blocks by design", other.describe())),
    }
}

/// Returns the share of repeats for random offsets: after c passes, 1 - e^-c of the span was touched.
fn repeated_at_random(passes: f64) -> f64 {
    (1.0 + (-passes).exp_m1() / passes).max(0.0)
}

/// Returns the share of new blocks after `passes` passes without repeats within a pass.
fn new_share(passes: f64) -> f64 {
    if passes > 1.0 { 1.0 / passes } else { 1.0 }
}

/// Returns the flow of a direction.
fn flow(stat: &BlockStat, kind: Kind) -> BlockFlow {
    if kind == Kind::Write { stat.write } else { stat.read }
}

/// A record with changed single reads.
#[cfg(test)]
fn probe(fixture: &Fixture, change: impl Fn(&mut Known<Probe>)) -> Record {
    let mut record = fixture.record();
    record.evidence.iter_mut().flat_map(|s| &mut s.targets).filter_map(|t| t.probe.as_mut()).for_each(change);
    record
}

/// A record with changed extent maps.
#[cfg(test)]
fn extents(fixture: &Fixture, change: impl Fn(Moment, &mut Extents)) -> Record {
    let mut record = fixture.record();
    snapshots(&mut record, |s| {
        let moment = s.moment;
        let known = s.targets.iter_mut().filter_map(|t| t.extents.as_mut()?.as_mut().ok());
        known.for_each(|e| change(moment, e));
    });
    record
}

/// Changes every snapshot of every run.
#[cfg(test)]
fn snapshots(record: &mut Record, change: impl Fn(&mut Snapshot)) {
    record.runs.iter_mut().flat_map(|r| &mut r.evidence).for_each(change);
}

/// A record whose stream has a span of `span` bytes.
#[cfg(test)]
fn spanning(span: u64, fixture: &Fixture) -> Record {
    let mut record = fixture.record();
    record.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = span;
    for target in &mut record.header.plan.targets {
        target.bytes = target.bytes.max(span);
    }
    record
}

#[cfg(test)]
fn repeated_share_of(order: Order, workers: u32, passes: f64) -> Known<f64> {
    let mut record = crate::fixture::Fixture::honest().record();
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    (stream.access.lines[0].order, stream.workers) = (order, workers);
    let cases = crate::case::cases(&record);
    repeated_share(&cases[0], passes * (1_u64 << 30) as f64)
}

#[test]
fn the_share_of_repeats_follows_from_the_order() {
    use model::job::Steps;
    let assert_near =
        |got: Known<f64>, expected: f64| assert!((got.clone().unwrap() - expected).abs() < 1e-3, "{got:?}");
    let plain = || Order::Sequential(Steps::default());
    assert_near(repeated_share_of(plain(), 1, 1.0), 0.0);
    assert_near(repeated_share_of(plain(), 1, 4.0), 0.75);
    assert_near(repeated_share_of(Order::Once, 1, 0.5), 0.0);
    assert_near(repeated_share_of(Order::Once, 1, 2.0), 0.5);
    assert_near(repeated_share_of(Order::Random, 1, 1.0), 0.3679);
    assert_near(repeated_share_of(Order::Random, 1, 0.01), 0.005);
    assert_near(repeated_share_of(Order::Random, 1, 0.0), 0.0);
    let same = || Order::Sequential(Steps { start: Start::Same, ..Steps::default() });
    assert_near(repeated_share_of(same(), 4, 1.0), 0.75);
    assert_near(repeated_share_of(same(), 4, 8.0), 0.875);
    assert!(repeated_share_of(Order::Zipf(1.1), 1, 1.0).is_err_and(|why| why.contains("zipf")));
    let gaps = Order::Sequential(Steps { hole_bytes: 4096, ..Steps::default() });
    assert!(repeated_share_of(gaps, 1, 1.0).is_err());
    let mut zones = crate::fixture::Fixture::honest().record();
    zones.header.plan.jobs[0].phases[0].streams[0].access.strided =
        Some(model::job::Strided { bytes: 4096, range_bytes: 4096, skip_bytes: 0 });
    assert!(
        repeated_share(&crate::case::cases(&zones)[0], 4096.0).is_err_and(|why| why.contains("one zone"))
    );
}
