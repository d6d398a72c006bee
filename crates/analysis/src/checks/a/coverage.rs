//! How often a stream comes back to bytes that it touched before, by its order of offsets.
//!
//! For: the expected share of repeats (A10, A16), so that no list of offsets need be kept. Not for: orders that repeat by
//! intention, which say how much by themselves.

use crate::case::Case;
use model::Known;
use model::job::{Order, Start};

/// The expected share of `bytes` touched by the stream in one run that were touched before in that run, 0 to 1.
///
/// # Errors
/// That the order of offsets does not tell.
pub(super) fn repeats(case: &Case, bytes: f64) -> Known<f64> {
    let stream = &case.stream;
    let [line] = stream.access.lines.as_slice() else {
        return Err("how often a workload of several lines comes back to a block is not computed".into());
    };
    if stream.replay.is_some() {
        return Err("how often a replay comes back to a block is not computed".into());
    }
    if stream.access.strided.is_some() {
        return Err(
            "how often a workload that is in one zone at a time comes back to a block is not computed".into(),
        );
    }
    let span = case.span_bytes() as f64;
    if span <= 0.0 || bytes <= 0.0 {
        return Ok(0.0);
    }
    let passes = bytes / span;
    match &line.order {
        Order::Sequential(steps) if steps.stride_bytes > 0 || steps.hole_bytes > 0 => {
            Err("how often an order with gaps comes back to a block is not computed".into())
        }
        // Every worker reads the blocks of the first.
        Order::Sequential(steps) if steps.start == Start::Same => {
            let workers = f64::from(stream.workers.max(1));
            Ok(1.0 - beyond_one(passes / workers) / workers)
        }
        // Other starts may overlap, and then repeats begin before the first pass ends.
        Order::Sequential(steps) if matches!(steps.start, Start::Every(_)) && stream.workers > 1 => {
            Err("how far workers that begin at fixed distances overlap is not computed".into())
        }
        // Rows overlap as if they began anywhere, though none begins twice.
        Order::Once if line.is_in_rows() => Ok(anywhere(passes)),
        Order::Sequential(_) | Order::Once => Ok(1.0 - beyond_one(passes)),
        Order::Random | Order::Mixed(_) | Order::MixedEach(_) => Ok(anywhere(passes)),
        other => Err(format!("{} comes back to the same blocks by intention", other.describe())),
    }
}

/// The share of repeats with replacement: of c passes' worth, 1 - e^-c of the span is touched at least once.
fn anywhere(passes: f64) -> f64 {
    (1.0 + (-passes).exp_m1() / passes).max(0.0)
}

/// The share that is new after so many whole passes.
fn beyond_one(passes: f64) -> f64 {
    if passes > 1.0 { 1.0 / passes } else { 1.0 }
}

#[cfg(test)]
fn at(order: Order, workers: u32, passes: f64) -> Known<f64> {
    let mut record = crate::fixture::Fixture::honest().record();
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    (stream.access.lines[0].order, stream.workers) = (order, workers);
    let cases = crate::case::cases(&record);
    repeats(&cases[0], passes * (1_u64 << 30) as f64)
}

#[test]
fn repeats_follow_from_the_order() {
    use model::job::Steps;
    let near =
        |got: Known<f64>, expected: f64| assert!((got.clone().unwrap() - expected).abs() < 1e-3, "{got:?}");
    let plain = || Order::Sequential(Steps::default());
    near(at(plain(), 1, 1.0), 0.0);
    near(at(plain(), 1, 4.0), 0.75);
    near(at(Order::Once, 1, 0.5), 0.0);
    near(at(Order::Once, 1, 2.0), 0.5);
    near(at(Order::Random, 1, 1.0), 0.3679);
    near(at(Order::Random, 1, 0.01), 0.005);
    near(at(Order::Random, 1, 0.0), 0.0);
    let same = || Order::Sequential(Steps { start: Start::Same, ..Steps::default() });
    near(at(same(), 4, 1.0), 0.75);
    near(at(same(), 4, 8.0), 0.875);
    assert!(at(Order::Zipf(1.1), 1, 1.0).is_err_and(|why| why.contains("zipf")));
    let gaps = Order::Sequential(Steps { hole_bytes: 4096, ..Steps::default() });
    assert!(at(gaps, 1, 1.0).is_err());
    let mut zones = crate::fixture::Fixture::honest().record();
    zones.header.plan.jobs[0].phases[0].streams[0].access.strided =
        Some(model::job::Strided { bytes: 4096, range_bytes: 4096, skip_bytes: 0 });
    assert!(repeats(&crate::case::cases(&zones)[0], 4096.0).is_err_and(|why| why.contains("one zone")));
}
