//! Shares of the operations that workers of several streams hold one another to.
//!
//! For: whether a worker may go on, or is ahead of its share. Not for: waiting, which the loop does.
//!
//! Every operation is counted for its worker and for its group. One may be submitted while the worker's part of the group's operations
//! is not above its part of the weights, so always by one of them: parts sum up to all. A worker takes part until its end, and from the
//! beginning, or where its stream begins later from its first operation: what it would have had until then is counted as if it had done
//! it, so that it need not be made up for.

use super::{Op, Source};
use model::job::{Flow, Kind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the workers of a group have submitted, and who they are.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Group {
    operations: AtomicU64,
    weights: AtomicU64,
    /// Held by whoever begins or ends to take part.
    door: Mutex<()>,
}

/// A worker in a group.
#[derive(Debug)]
pub(super) struct Member {
    group: Arc<Group>,
    flow: Flow,
    operations: AtomicU64,
    takes_part: AtomicBool,
}

impl Member {
    /// A worker that takes part from now on, or from its first operation. Fails where it could have none.
    pub(super) fn new(group: Arc<Group>, flow: Flow, later: bool) -> Result<Self, String> {
        if flow.weight == 0 {
            return Err("a share of weight 0 would submit nothing; give 1 or more".into());
        }
        let member = Self { group, flow, operations: AtomicU64::new(0), takes_part: AtomicBool::new(false) };
        if !later {
            member.begin();
        }
        Ok(member)
    }

    /// Counts an operation that may go now. Else the time in ns after which to ask again.
    fn hold(&self) -> Option<u64> {
        if !self.takes_part.load(Ordering::Relaxed) {
            self.begin();
        }
        // Relaxed: counts that lag behind let somebody go one operation early or late.
        let own = u128::from(self.operations.load(Ordering::Relaxed));
        let all = u128::from(self.group.operations.load(Ordering::Relaxed));
        let weights = u128::from(self.group.weights.load(Ordering::Relaxed));
        if own * weights > u128::from(self.flow.weight) * all {
            // Those that are behind may need this CPU.
            std::thread::yield_now();
            return Some(self.flow.pause_ns);
        }
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.group.operations.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn begin(&self) {
        let _guard = self.group.door.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, weights) = (&self.group.operations, &self.group.weights);
        let before = u128::from(all.load(Ordering::Relaxed)) * u128::from(self.flow.weight)
            / u128::from(weights.load(Ordering::Relaxed).max(1));
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        self.operations.store(before, Ordering::Relaxed);
        all.fetch_add(before, Ordering::Relaxed);
        weights.fetch_add(u64::from(self.flow.weight), Ordering::Relaxed);
        self.takes_part.store(true, Ordering::Relaxed);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.takes_part.load(Ordering::Relaxed) {
            let _guard = self.group.door.lock().unwrap_or_else(PoisonError::into_inner);
            self.group.weights.fetch_sub(u64::from(self.flow.weight), Ordering::Relaxed);
            self.group.operations.fetch_sub(self.operations.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// A source whose operations wait while its worker is ahead of its share. Lanes of one worker have one share together.
pub(super) struct Shared {
    pub(super) inner: Box<dyn Source>,
    pub(super) member: Arc<Member>,
}

impl Source for Shared {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        // Syncs belong to the writes before them.
        for op in ops.iter_mut().filter(|op| op.kind != Kind::Sync) {
            op.flags |= Op::SHARED;
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn hold(&self) -> Option<u64> {
        self.member.hold()
    }
}

#[cfg(test)]
fn member(group: &Arc<Group>, weight: u32, later: bool) -> Member {
    let flow = Flow { weight, group: 0, pause_ns: 0 };
    Member::new(Arc::clone(group), flow, later).unwrap_or_else(|why| panic!("{why}"))
}

/// Operations of each where all ask so many times, by turns.
#[cfg(test)]
fn by_turns(members: &[Member], turns: usize) -> Vec<u64> {
    let mut done = vec![0; members.len()];
    for _ in 0..turns {
        for (done, member) in done.iter_mut().zip(members) {
            *done += u64::from(member.hold().is_none());
        }
    }
    done
}

/// Asserts that operations are to one another as weights are.
#[cfg(test)]
#[track_caller]
fn as_weights(done: &[u64], weights: &[u32]) {
    let (all, sum) = (done.iter().sum::<u64>() as f64, f64::from(weights.iter().sum::<u32>()));
    let shares = done.iter().zip(weights).map(|(done, weight)| *done as f64 / all * sum / f64::from(*weight));
    assert!(shares.clone().all(|share| (share - 1.0).abs() < 0.01), "{done:?} for {weights:?}");
}

#[test]
fn operations_are_divided_by_weight_and_nobody_goes_ahead() {
    for weights in [&[1, 5, 10][..], &[2, 2], &[1, 2, 3], &[7]] {
        let group = Arc::default();
        let members: Vec<Member> = weights.iter().map(|weight| member(&group, *weight, false)).collect();
        as_weights(&by_turns(&members, 16_000), weights);
        let alone = by_turns(&members[..1], 1000)[0];
        assert_eq!(alone == 1000, weights.len() == 1, "{weights:?}: {alone}");
        assert!(alone <= 2 || weights.len() == 1, "{weights:?}: {alone}");
    }
    let flow = Flow { weight: 0, group: 0, pause_ns: 0 };
    assert!(Member::new(Arc::default(), flow, false).is_err());
}

#[test]
fn a_worker_that_begins_late_or_ends_early_leaves_the_shares_of_the_others() {
    let group = Arc::default();
    let beside = [member(&group, 1, false), member(&group, 9, false)];
    assert!(by_turns(&beside[..1], 100)[0] <= 1, "it waits for those that have not begun");
    drop(beside);
    let mut members = vec![member(&group, 1, false), member(&group, 2, false)];
    let late = member(&group, 3, true);
    as_weights(&by_turns(&members, 9000), &[1, 2]);
    members.push(late);
    as_weights(&by_turns(&members, 9000), &[1, 2, 3]);
    members.remove(1);
    as_weights(&by_turns(&members, 9000), &[1, 3]);
    members.clear();
    assert_eq!(group.weights.load(Ordering::Relaxed) + group.operations.load(Ordering::Relaxed), 0);
}
