//! A course in steps of equal length.
//!
//! For: what fio's formats tell of equal stretches of time. Not for: what is told of them ([`super::direction`]).

use model::observed::Stretch;
use std::collections::BTreeMap;

/// Steps that a course has at most; what lies beyond is left out.
const MAX_STEPS: u64 = 1 << 20;

/// What completed in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Operations; a stretch that lies in two steps is divided by its time.
    pub(super) ops: f64,
    /// What they moved, divided alike.
    pub(super) bytes: f64,
}

/// The steps in which anything was seen, by their numbers from the beginning.
pub(super) fn steps<'s>(course: impl IntoIterator<Item = &'s Stretch>, step_ns: u64) -> BTreeMap<u64, Step> {
    let step_ns = step_ns.max(1);
    let mut out: BTreeMap<u64, Step> = BTreeMap::new();
    for stretch in course.into_iter().filter(|s| s.ns > 0) {
        let end = stretch.start_ns.saturating_add(stretch.ns);
        for at in stretch.start_ns / step_ns..=((end - 1) / step_ns).min(MAX_STEPS) {
            let (begin, behind) = (at.saturating_mul(step_ns), (at + 1).saturating_mul(step_ns));
            let (from, to) = (stretch.start_ns.max(begin), end.min(behind));
            let share = to.saturating_sub(from) as f64 / stretch.ns as f64;
            let step = out.entry(at).or_default();
            step.ops += share * stretch.ops as f64;
            step.bytes += share * stretch.bytes as f64;
        }
    }
    out
}

/// As long as most stretches are, or so many of them as last at least this long.
pub(super) fn step_length<'s>(course: impl IntoIterator<Item = &'s Stretch>, least_ns: u64) -> u64 {
    let mut lengths: Vec<u64> = course.into_iter().map(|s| s.ns).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0).max(1);
    usual.saturating_mul(least_ns.div_ceil(usual))
}

#[cfg(test)]
fn stretch(start_ns: u64, ns: u64, ops: u64) -> Stretch {
    Stretch { start_ns, ns, ops, bytes: ops * 512 }
}

#[test]
fn what_lies_in_two_steps_is_divided_and_nothing_is_lost() {
    let course = [stretch(0, 10, 7), stretch(10, 20, 40), stretch(30, 10, 1), stretch(0, 10, 3)];
    let steps = steps(&course, 20);
    assert_eq!(steps.values().map(|s| s.ops).collect::<Vec<_>>(), [30.0, 21.0]);
    assert_eq!(steps.values().map(|s| s.bytes).collect::<Vec<_>>(), [30.0 * 512.0, 21.0 * 512.0]);
    assert_eq!([50, 20, 3].map(|least| step_length(&course, least)), [50, 20, 10]);
    assert_eq!(step_length(&[], 5), 5);
}

#[test]
fn times_of_centuries_end() {
    let course = [stretch(u64::MAX - 5, u64::MAX, 7), stretch(0, u64::MAX, 1)];
    assert!(steps(&course, 1).len() <= 2 + MAX_STEPS as usize);
    assert_eq!(step_length(&course, 9), u64::MAX);
    let half = (1 << 63) + 1;
    assert_eq!(steps(&[stretch(half, half, 7)], half).len(), 1);
}
