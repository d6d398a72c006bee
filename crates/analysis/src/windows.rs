//! Windows: whether they are long enough, and hold enough operations, for a rate.
//!
//! For: the least that a window needs, asked by the check and by whoever gives intervals. Not for: how many runs there are (E05), nor what
//! varies within them (E04).
//!
//! A count is off by one operation at each window's edges, which belongs to it or to its neighbour, and a worker may be put off by a tick of the
//! scheduler. Runs that are all too short in the same way agree with one another, so the spread over runs does not show either.

use crate::case::{Case, CaseRun};
use model::job::{Kind, StopRule};

/// The longest tick of Linux (100 Hz).
pub(crate) const TICK_NS: f64 = 10_000_000.0;
/// Part of a rate that a window may be wrong by, which is the most that any check lets pass.
pub(crate) const WRONG_BY: f64 = 0.1;
/// The engine whose clock is virtual: no scheduler puts its workers off.
const VIRTUAL: &str = "sim";
/// Windows end some us early or late.
const NEARLY: f64 = 0.95;

/// Operations that a window must hold, so that one more or less is no more than [`WRONG_BY`].
pub(crate) const LEAST_OPS: f64 = 1.0 / WRONG_BY;
/// Length that a window must have, so that a tick is no more than [`WRONG_BY`] of it.
pub(crate) const LEAST_NS: f64 = TICK_NS / WRONG_BY;

/// What is wrong with the windows of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TooLittle {
    /// Their mean length in ns.
    Time(f64),
    /// Their mean number of operations.
    Operations(f64),
}

/// What the windows lack, where they lack anything. Only windows that end by the clock can be too short; those that end
/// by their operations time just these.
pub(crate) fn too_little(case: &Case) -> Option<TooLittle> {
    let runs = case.runs.len() as f64;
    let ops = |ran: &CaseRun| {
        [Kind::Read, Kind::Write, Kind::Trim].iter().map(|k| ran.in_window(*k).ops as f64).sum::<f64>()
    };
    let counted: f64 = case.runs.iter().map(ops).sum();
    let length = case.window_ns() / runs;
    let by_clock = case.stream.limit == StopRule::default() && case.stream.engine != VIRTUAL;
    if runs == 0.0 || counted == 0.0 {
        return None;
    }
    if by_clock && length < NEARLY * LEAST_NS {
        return Some(TooLittle::Time(length));
    }
    (counted < LEAST_OPS * runs).then_some(TooLittle::Operations(counted / runs))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn too_little_in(record: &model::record::Record) -> Option<TooLittle> {
    too_little(&crate::case::cases(record)[0])
}

#[test]
fn ten_operations_and_ten_ticks_are_enough() {
    assert_eq!(too_little_in(&Fixture { ops: 10, ..Fixture::honest() }.record()), None);
    assert_eq!(
        too_little_in(&Fixture { ops: 9, ..Fixture::honest() }.record()),
        Some(TooLittle::Operations(9.0))
    );
    let of_ms = |ms: u64| {
        let mut record = Fixture::honest().record();
        let ends = record.runs.iter_mut().filter_map(|r| r.end.as_mut());
        ends.flat_map(|e| &mut e.streams).for_each(|s| s.window_ns = ms * 1_000_000);
        record
    };
    assert_eq!(too_little_in(&of_ms(100)), None);
    assert_eq!(too_little_in(&of_ms(50)), Some(TooLittle::Time(5e7)));
    let mut simulated = of_ms(50);
    simulated.header.plan.jobs[0].phases[0].streams[0].engine = VIRTUAL.into();
    assert_eq!(too_little_in(&simulated), None);
    let mut by_operations = of_ms(50);
    by_operations.header.plan.jobs[0].phases[0].streams[0].limit.operations = Some(11_000);
    assert_eq!(too_little_in(&by_operations), None);
}
