//! State that the workers of a stream, or of a group of streams, share in one run.
//!
//! [`StreamState`] contains shared positions, the seed that all workers use, and tables that all workers read.
//!
//! [`Group`] keeps workers to their shares of operations. Every operation counts for its worker and its group. A worker may submit while
//! its share of the group's operations does not exceed its share of the weights. So at least one worker may always submit. A worker joins
//! the group at its start, or at its first operation if its stream begins late. Operations that it missed until then count as done.

use crate::source::draw::Zipf;
use crate::source::{Op, Source};
use model::job::{Flow, Kind};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// State that all workers of a stream share in one run.
#[derive(Debug)]
pub struct StreamState {
    seed: u64,
    positions: Mutex<Vec<Arc<SharedPosition>>>,
    zipfs: Mutex<Vec<Arc<Zipf>>>,
    /// The group whose streams divide the operations by weight; `None` without shares.
    pub group: Option<Arc<Group>>,
    /// Files of the stream's targets in order, to evict them before each pass; `None` if they are not evicted.
    pub files: Option<Arc<[File]>>,
}

impl StreamState {
    /// Creates the state, with neither a group nor evicted files. `seed` decides which blocks are hot and the order of
    /// [`model::job::Order::Once`], so it must be equal for all runs of a plan that are compared.
    pub fn new(seed: u64) -> Self {
        Self { seed, positions: Mutex::default(), zipfs: Mutex::default(), group: None, files: None }
    }

    /// Returns the seed of a target, equal for all workers.
    pub(super) fn seed(&self, target: usize) -> u64 {
        model::payload::split_mix(self.seed ^ model::payload::split_mix(target as u64))
    }

    /// Returns the shared position with this index, and creates it if necessary.
    pub(super) fn position(&self, index: usize) -> Arc<SharedPosition> {
        // A worker that panicked while it held the lock leaves the entries valid.
        let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        while positions.len() <= index {
            positions.push(Arc::new(SharedPosition(AtomicU64::new(SharedPosition::UNUSED))));
        }
        Arc::clone(&positions[index])
    }

    /// Returns the Zipf tables, built once for all lines, targets and workers.
    pub(super) fn zipf(&self, theta: f64, ranks: u64) -> Result<Arc<Zipf>, String> {
        let mut zipfs = self.zipfs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = zipfs.iter().find(|z| z.is(theta, ranks)) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(Zipf::new(theta, ranks)?);
        zipfs.push(Arc::clone(&new));
        Ok(new)
    }
}

/// A position that workers advance together, on its own cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct SharedPosition(AtomicU64);

impl SharedPosition {
    /// The state before the first operation.
    pub(super) const UNUSED: u64 = u64::MAX;

    /// Atomically replaces the position by the first value that `step` returns. Returns the second value.
    #[inline]
    pub(super) fn advance(&self, mut step: impl FnMut(u64) -> (u64, u64)) -> u64 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (next, result) = step(seen);
            // Relaxed: workers exchange only the number itself.
            match self.0.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return result,
                Err(now) => seen = now,
            }
        }
    }
}

/// The sums of the operations and of the weights of the workers in a group.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Group {
    operations: AtomicU64,
    weights: AtomicU64,
    /// Locked while a worker joins or leaves.
    membership: Mutex<()>,
}

/// A worker in a group.
#[derive(Debug)]
pub(super) struct Member {
    group: Arc<Group>,
    flow: Flow,
    operations: AtomicU64,
    is_active: AtomicBool,
}

impl Member {
    /// Adds a worker to the group, now or at its first operation (`joins_late`). Fails for weight 0.
    pub(super) fn new(group: Arc<Group>, flow: Flow, joins_late: bool) -> Result<Self, String> {
        if flow.weight == 0 {
            return Err(
                "a worker with a share of weight 0 would submit nothing; give a weight of 1 or more".into()
            );
        }
        let member = Self { group, flow, operations: AtomicU64::new(0), is_active: AtomicBool::new(false) };
        if !joins_late {
            member.join();
        }
        Ok(member)
    }

    /// Allows an operation, counts it and returns `None`. Otherwise returns when to ask again, like
    /// [`Source::admit_or_wait_ns`].
    fn admit_or_wait_ns(&self) -> Option<u64> {
        if !self.is_active.load(Ordering::Relaxed) {
            self.join();
        }
        // A relaxed load is enough: a count that arrives late shifts a worker by one operation.
        let own = u128::from(self.operations.load(Ordering::Relaxed));
        let all = u128::from(self.group.operations.load(Ordering::Relaxed));
        let weights = u128::from(self.group.weights.load(Ordering::Relaxed));
        if own * weights > u128::from(self.flow.weight) * all {
            // Slower workers may need this CPU.
            std::thread::yield_now();
            return Some(self.flow.pause_ns);
        }
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.group.operations.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn join(&self) {
        let _guard = self.group.membership.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, weights) = (&self.group.operations, &self.group.weights);
        let before = u128::from(all.load(Ordering::Relaxed)) * u128::from(self.flow.weight)
            / u128::from(weights.load(Ordering::Relaxed).max(1));
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        self.operations.store(before, Ordering::Relaxed);
        all.fetch_add(before, Ordering::Relaxed);
        weights.fetch_add(u64::from(self.flow.weight), Ordering::Relaxed);
        self.is_active.store(true, Ordering::Relaxed);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.is_active.load(Ordering::Relaxed) {
            let _guard = self.group.membership.lock().unwrap_or_else(PoisonError::into_inner);
            self.group.weights.fetch_sub(u64::from(self.flow.weight), Ordering::Relaxed);
            self.group.operations.fetch_sub(self.operations.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// A source whose operations wait while its worker is ahead of its share. All lanes of a worker
/// have the same `member`.
pub(super) struct GroupMember {
    pub(super) inner: Box<dyn Source>,
    pub(super) member: Arc<Member>,
}

impl Source for GroupMember {
    fn refill(&mut self, ops: &mut [Op]) {
        self.inner.refill(ops);
        // A sync belongs to the write before it and does not count.
        for op in ops.iter_mut().filter(|op| op.kind != Kind::Sync) {
            op.flags |= Op::SHARED;
        }
    }

    fn look_ahead(&self) -> usize {
        self.inner.look_ahead()
    }

    fn admit_or_wait_ns(&self) -> Option<u64> {
        self.member.admit_or_wait_ns()
    }
}

#[cfg(test)]
fn member(group: &Arc<Group>, weight: u32, joins_late: bool) -> Member {
    let flow = Flow { weight, group: 0, pause_ns: 0 };
    Member::new(Arc::clone(group), flow, joins_late).unwrap_or_else(|why| panic!("{why}"))
}

/// Returns the number of operations of each member if the members request operations in rotation, `turns` times each.
#[cfg(test)]
fn operations_in_turn(members: &[Member], turns: usize) -> Vec<u64> {
    let mut done = vec![0; members.len()];
    for _ in 0..turns {
        for (done, member) in done.iter_mut().zip(members) {
            *done += u64::from(member.admit_or_wait_ns().is_none());
        }
    }
    done
}

/// Asserts that operations are proportional to weights.
#[cfg(test)]
#[track_caller]
fn assert_proportional(done: &[u64], weights: &[u32]) {
    let (all, sum) = (done.iter().sum::<u64>() as f64, f64::from(weights.iter().sum::<u32>()));
    let shares = done.iter().zip(weights).map(|(done, weight)| *done as f64 / all * sum / f64::from(*weight));
    assert!(shares.clone().all(|share| (share - 1.0).abs() < 0.01), "{done:?} for {weights:?}");
}

#[test]
fn operations_are_divided_by_weight() {
    for weights in [&[1, 5, 10][..], &[2, 2], &[1, 2, 3], &[7]] {
        let group = Arc::default();
        let members: Vec<Member> = weights.iter().map(|weight| member(&group, *weight, false)).collect();
        assert_proportional(&operations_in_turn(&members, 16_000), weights);
        let alone = operations_in_turn(&members[..1], 1000)[0];
        assert_eq!(alone == 1000, weights.len() == 1, "{weights:?}: {alone}");
        assert!(alone <= 2 || weights.len() == 1, "{weights:?}: {alone}");
    }
    let flow = Flow { weight: 0, group: 0, pause_ns: 0 };
    assert!(Member::new(Arc::default(), flow, false).is_err());
}

#[test]
fn late_starts_and_early_ends_keep_the_shares_of_the_others() {
    let group = Arc::default();
    let waiting = [member(&group, 1, false), member(&group, 9, false)];
    assert!(operations_in_turn(&waiting[..1], 100)[0] <= 1, "it waits for members that have not begun");
    drop(waiting);
    let mut members = vec![member(&group, 1, false), member(&group, 2, false)];
    let late = member(&group, 3, true);
    assert_proportional(&operations_in_turn(&members, 9000), &[1, 2]);
    members.push(late);
    assert_proportional(&operations_in_turn(&members, 9000), &[1, 2, 3]);
    members.remove(1);
    assert_proportional(&operations_in_turn(&members, 9000), &[1, 3]);
    members.clear();
    assert_eq!(group.weights.load(Ordering::Relaxed) + group.operations.load(Ordering::Relaxed), 0);
}
