//! The tests that Iometer's test types make of its workers.
//!
//! For: who works on how many targets, with how many operations in flight, test by test. Not for: what a worker does there ([`super::jobs`]).
//!
//! Source: Iometer 1.1.0, `GalileoView.cpp`. Each manager has as many workers as the step says, each worker as many targets; targets that
//! are given to one worker after another are so many of each manager, or with INCREMENT_TARGETS_SERIAL of all managers one after another.
//! Workers without anything to do are not counted, and a cycle ends with the first step that brings nothing more.

use super::icf::{Icf, Manager, Rises, Spec, Worker};
use model::spec::cycle::Cycle;

/// A worker of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'i> {
    pub(super) manager: &'i Manager,
    /// Number of the manager, from 0.
    pub(super) number: usize,
    pub(super) worker: &'i Worker,
    pub(super) spec: &'i Spec,
    /// Its first targets, so many.
    pub(super) targets: usize,
    /// Operations in flight on each.
    pub(super) outstanding: u32,
}

/// The tests with the access specification of this number of each worker.
pub(super) fn cycle_tests(icf: &Icf, at: usize) -> Vec<Vec<Load<'_>>> {
    let all = active(icf, at);
    if all.is_empty() {
        return Vec::new();
    }
    let in_one = (0..icf.managers.len()).map(|m| all.iter().filter(|l| l.number == m).count()).max();
    let by_workers = |of_each: usize| of_each_manager(&all, of_each);
    let by_targets = |of: &[Load]| up_to(icf.targets, of.iter().map(|l| l.targets).max().unwrap_or(0));
    match icf.cycle {
        Cycle::Normal => vec![all.clone()],
        Cycle::Targets => by_targets(&all).into_iter().map(|n| at_most(&all, n)).collect(),
        Cycle::Workers => up_to(icf.workers, in_one.unwrap_or(0)).into_iter().map(by_workers).collect(),
        Cycle::WorkersAndTargets => {
            let some = up_to(icf.workers, in_one.unwrap_or(0)).into_iter().map(by_workers);
            some.flat_map(|some| by_targets(&some).into_iter().map(move |n| at_most(&some, n))).collect()
        }
        Cycle::IncrementParallel => {
            let of = |m: usize| all.iter().filter(|l| l.number == m).map(|l| l.targets).sum();
            let most = (0..icf.managers.len()).map(of).max().unwrap_or(0);
            up_to(icf.targets, most).into_iter().map(|n| filled(&all, n, true)).collect()
        }
        Cycle::IncrementSerial => {
            let most = all.iter().map(|l| l.targets).sum();
            up_to(icf.targets, most).into_iter().map(|n| filled(&all, n, false)).collect()
        }
        Cycle::Outstanding => outstanding(icf).map(|depth| with_depth(&all, depth)).collect(),
        Cycle::OutstandingAndTargets => {
            let some = by_targets(&all).into_iter().map(|n| at_most(&all, n));
            some.flat_map(|some| outstanding(icf).map(move |depth| with_depth(&some, depth))).collect()
        }
    }
}

/// Workers that have something to do with the access specification of this number, on all of their targets.
fn active(icf: &Icf, at: usize) -> Vec<Load<'_>> {
    let of = |(number, manager)| {
        let load = move |worker| {
            let spec = icf.assigned(worker).get(at).copied()??;
            let (targets, outstanding) = (worker.targets.len(), worker.outstanding);
            (targets > 0).then_some(Load { manager, number, worker, spec, targets, outstanding })
        };
        manager.workers.iter().filter_map(load)
    };
    icf.managers.iter().enumerate().flat_map(of).collect()
}

/// The steps up to all that there are, which come last whether or not the steps meet them.
fn up_to(rises: Rises, most: usize) -> Vec<usize> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let below = rises.law.values(rises.start, most.saturating_sub(1), rises.by);
    below.chain([most]).map(|n| n as usize).collect()
}

fn outstanding(icf: &Icf) -> impl Iterator<Item = u32> {
    let Rises { start, end, by, law } = icf.outstanding;
    law.values(start, end.unwrap_or(start), by)
}

/// The first workers of each manager.
fn of_each_manager<'i>(all: &[Load<'i>], count: usize) -> Vec<Load<'i>> {
    let before = |at: usize| all[..at].iter().filter(|l| l.number == all[at].number).count();
    all.iter().enumerate().filter(|(at, _)| before(*at) < count).map(|(_, load)| *load).collect()
}

/// Each worker on its first targets.
fn at_most<'i>(all: &[Load<'i>], targets: usize) -> Vec<Load<'i>> {
    all.iter().map(|load| Load { targets: load.targets.min(targets), ..*load }).collect()
}

fn with_depth<'i>(all: &[Load<'i>], outstanding: u32) -> Vec<Load<'i>> {
    all.iter().map(|load| Load { outstanding, ..*load }).collect()
}

/// So many targets, given to one worker after the other until it has all of its own: of each manager, or of all of them together.
fn filled<'i>(all: &[Load<'i>], targets: usize, of_each: bool) -> Vec<Load<'i>> {
    let (mut left, mut number) = (targets, None);
    let mut out = Vec::new();
    for load in all {
        if of_each && number.replace(load.number) != Some(load.number) {
            left = targets;
        }
        let own = load.targets.min(left);
        left -= own;
        if own > 0 {
            out.push(Load { targets: own, ..*load });
        }
    }
    out
}
