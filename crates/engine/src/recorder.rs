//! Recorders: what the loop does with single operations, for logs, verification, priorities, counts
//! by target, and replays.
//!
//! A loop that is compiled with [`NoRecorder`] has no instruction for single operations. A loop that is
//! compiled with [`OperationRecorder`] also reports each completion to the source.

use crate::link::{Link, WorkerOutcome, WrongRead};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::figures::Operation;
use model::histogram::Histogram;
use model::job::{IoPriority, Kind, OpPriority, Verify};
use model::record::{Bucket, LaneEnd, LaneKind, PriorityEnd};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// Capacity of the log rings of all workers together, in operations.
const LOG_CAPACITY: usize = 1 << 18;
/// Minimum capacity of a worker's log ring, in operations.
const MIN_LOG_CAPACITY: usize = 1 << 10;

/// Handles single operations of a loop.
pub(crate) trait Recorder: Sized {
    /// Whether the loop passes each operation to the recorder.
    const RECORDS_OPERATIONS: bool;
    /// Creates the recorder of a worker. Called before the loop takes the sources.
    fn for_worker(spec: &WorkerSpec, link: &mut Link) -> Self;
    /// Begins an operation on its slot. If writes are verified, puts the pattern into a write's
    /// `data`.
    fn begin(&mut self, slot: u32, op: &Op, data: &mut [u8]);
    /// Returns the operation on a slot.
    fn op(&self, slot: u32) -> Op;
    /// Returns the priority of the operation on a slot as the kernel's number; 0 for the default.
    fn priority(&self, slot: u32) -> u16;
    /// Whether the data of a read is correct.
    fn has_right_data(&mut self, slot: u32, data: &[u8]) -> bool;
    /// Records an operation that completed in the measured window.
    fn record(&mut self, slot: u32, seen: Completion);
    /// Returns whether a read returned wrong data and must end the run.
    fn is_fatal(&self) -> bool;
    /// Adds the records to the outcome.
    fn close(&self, outcome: WorkerOutcome) -> WorkerOutcome;
}

/// Times of a completed operation, in ns.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "names end with their unit")]
pub(crate) struct Completion {
    /// Time of the completion, in ns since the worker began.
    pub(crate) end_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) service_ns: u64,
}

/// The recorder that records nothing.
pub(crate) struct NoRecorder;

impl Recorder for NoRecorder {
    const RECORDS_OPERATIONS: bool = false;

    fn for_worker(_: &WorkerSpec, _: &mut Link) -> Self {
        Self
    }

    #[inline]
    fn begin(&mut self, _: u32, _: &Op, _: &mut [u8]) {}

    #[inline]
    fn op(&self, _: u32) -> Op {
        Op::NONE
    }

    fn priority(&self, _: u32) -> u16 {
        0
    }

    #[inline]
    fn has_right_data(&mut self, _: u32, _: &[u8]) -> bool {
        true
    }

    #[inline]
    fn record(&mut self, _: u32, _: Completion) {}

    #[inline]
    fn is_fatal(&self) -> bool {
        false
    }

    fn close(&self, outcome: WorkerOutcome) -> WorkerOutcome {
        outcome
    }
}

/// The recorder that logs operations, verifies reads, and counts by priority and target, each if requested.
pub(crate) struct OperationRecorder {
    /// The operation on each slot.
    ops: Vec<Op>,
    /// The log; `None` if not requested.
    log: Option<Producer<Operation>>,
    verify: Option<Verify>,
    wrong_read: Option<WrongRead>,
    /// The priorities of single operations; `None` if all operations have the priority of the worker.
    priorities: Option<Box<Priorities>>,
    /// The counts by target; `None` if counts by lane are enough.
    by_target: Option<Box<ByTarget>>,
    waits: u64,
    /// Index of the worker in the phase.
    worker: u32,
}

impl Recorder for OperationRecorder {
    const RECORDS_OPERATIONS: bool = true;

    fn for_worker(spec: &WorkerSpec, link: &mut Link) -> Self {
        let ops = vec![Op::NONE; spec.slots()];
        let priorities = Priorities::from_spec(spec).map(Box::new);
        Self {
            ops,
            log: link.log.take(),
            verify: spec.verify.clone(),
            wrong_read: None,
            priorities,
            by_target: ByTarget::from_spec(spec).map(Box::new),
            waits: 0,
            worker: spec.worker,
        }
    }

    #[inline]
    fn begin(&mut self, slot: u32, op: &Op, data: &mut [u8]) {
        self.ops[slot as usize] = *op;
        if let (Some(verify), Kind::Write) = (&self.verify, op.kind) {
            verify.content.put(op.offset, &mut data[..op.length as usize]);
        }
        if let Some(priorities) = &mut self.priorities {
            priorities.draw(slot, op);
        }
    }

    #[inline]
    fn op(&self, slot: u32) -> Op {
        self.ops[slot as usize]
    }

    #[inline]
    fn priority(&self, slot: u32) -> u16 {
        self.priorities.as_ref().map_or(0, |priorities| priorities.number(slot))
    }

    #[inline]
    fn has_right_data(&mut self, slot: u32, data: &[u8]) -> bool {
        let Some(verify) = self.verify.as_ref().filter(|verify| verify.checks) else { return true };
        let Op { file, offset, length, .. } = self.ops[slot as usize];
        let Some(at) = verify.content.difference(offset, &data[..length as usize]) else { return true };
        self.wrong_read.get_or_insert(WrongRead { file, offset, length, at });
        false
    }

    #[inline]
    fn record(&mut self, slot: u32, seen: Completion) {
        let Op { offset, length, file, kind, .. } = self.ops[slot as usize];
        let Completion { end_ns, latency_ns, service_ns } = seen;
        let share = self.priorities.as_mut().map_or(0, |priorities| {
            priorities.count(slot, kind, service_ns);
            priorities.share(slot)
        });
        if let Some(by_target) = &mut self.by_target {
            by_target.count(&self.ops[slot as usize], end_ns, latency_ns);
        }
        self.log_operation(Operation { end_ns, latency_ns, service_ns, offset, length, file, kind, share });
    }

    #[inline]
    fn is_fatal(&self) -> bool {
        self.wrong_read.is_some() && self.verify.as_ref().is_some_and(|verify| verify.fatal)
    }

    fn close(&self, outcome: WorkerOutcome) -> WorkerOutcome {
        let priorities = self.priorities.as_ref().map(|priorities| priorities.ends()).unwrap_or_default();
        let by_target = self.by_target.as_ref().map(|all| all.ends(self.worker)).unwrap_or_default();
        WorkerOutcome { log_waits: self.waits, wrong_read: self.wrong_read, priorities, by_target, ..outcome }
    }
}

impl OperationRecorder {
    /// Logs an operation. The log must have no gaps, so the operation waits for space, and the wait is counted.
    #[inline]
    fn log_operation(&mut self, operation: Operation) {
        let Some(log) = &mut self.log else { return };
        let Err(PushError::Full(mut operation)) = log.push(operation) else { return };
        self.waits += 1;
        while let Err(PushError::Full(back)) = log.push(operation) {
            // The log's reader has ended if the worker was abandoned.
            if log.is_abandoned() {
                return;
            }
            operation = back;
            std::thread::yield_now();
        }
    }
}

/// Creates the log ring of one worker. `workers` share the total capacity.
pub(crate) fn connect(workers: usize) -> (Producer<Operation>, Consumer<Operation>) {
    RingBuffer::new((LOG_CAPACITY / workers.max(1)).max(MIN_LOG_CAPACITY))
}

/// Draws the priority of single operations, and counts latencies by priority.
pub(crate) struct Priorities {
    shares: Vec<OpPriority>,
    random: Xoshiro256PlusPlus,
    /// For each slot, the index (from 1) of the priority share to which the operation on the slot belongs; 0 for none.
    share_by_slot: Vec<u8>,
    /// Latencies from the submission, by priority share (0 for none) and kind.
    latencies: Vec<[Histogram; Kind::MOVING.len()]>,
    /// Priority of operations that belong to no priority share; `None` if the worker sets none.
    own: Option<IoPriority>,
}

impl Priorities {
    /// Creates the draws for a worker; `None` if all operations have the priority of the worker.
    pub(crate) fn from_spec(spec: &WorkerSpec) -> Option<Self> {
        let shares = spec.op_priorities.clone();
        (!shares.is_empty()).then(|| Self {
            random: Xoshiro256PlusPlus::seed_from_u64(spec.priority_seed),
            share_by_slot: vec![0; spec.slots()],
            latencies: vec![Default::default(); shares.len() + 1],
            own: spec.place.io_priority,
            shares,
        })
    }

    /// Draws the priority of the operation on a slot.
    pub(crate) fn draw(&mut self, slot: u32, op: &Op) {
        let drawn: u8 = self.random.random_range(0..100);
        let mut below = 0;
        let is_hit = |one: &OpPriority| {
            let is_of = one.is_of(op.kind, op.length);
            below += if is_of { one.percent } else { 0 };
            is_of && drawn < below
        };
        self.share_by_slot[slot as usize] = self.shares.iter().position(is_hit).map_or(0, |at| at as u8 + 1);
    }

    /// Returns the index (from 1) of the priority share of the operation on a slot; 0 for none.
    pub(crate) fn share(&self, slot: u32) -> u8 {
        self.share_by_slot[slot as usize]
    }

    /// Returns the kernel's number of the priority of the operation on a slot; 0 for the default.
    pub(crate) fn number(&self, slot: u32) -> u16 {
        let share = usize::from(self.share(slot)).checked_sub(1).and_then(|at| self.shares.get(at));
        share.map_or(0, |one| one.priority.number() as u16)
    }

    /// Counts the time `ns` from the submission to the completion of the operation on a slot.
    pub(crate) fn count(&mut self, slot: u32, kind: Kind, ns: u64) {
        let share = usize::from(self.share(slot));
        if let Some(latency) = self.latencies[share].get_mut(kind as usize) {
            latency.record(ns);
        }
    }

    /// Returns the latencies by priority; shares with the same priority are combined.
    pub(crate) fn ends(&self) -> Vec<PriorityEnd> {
        let own = std::iter::once(self.own);
        let priorities = own.chain(self.shares.iter().map(|one| Some(one.priority)));
        let mut all: Vec<PriorityEnd> = Vec::new();
        for (priority, latencies) in priorities.zip(&self.latencies) {
            for (kind, latency) in Kind::MOVING.into_iter().zip(latencies).filter(|(_, l)| l.count() > 0) {
                PriorityEnd::add(&mut all, &PriorityEnd { kind, priority, latency: latency.clone() });
            }
        }
        all
    }
}

/// Counts by target and kind: totals, and a time series unless `bucket_ns` is 0. All memory is allocated before the first operation.
pub(crate) struct ByTarget {
    /// Length of a bucket in ns; 0 for totals only.
    bucket_ns: u64,
    /// Time from the worker's start to its measured window, in ns.
    from_ns: u64,
    targets: Vec<[LaneKind; Kind::MOVING.len()]>,
}

impl ByTarget {
    /// Creates the counts for a worker; `None` if not requested.
    pub(crate) fn from_spec(spec: &WorkerSpec) -> Option<Self> {
        let by_target = spec.by_target?;
        let buckets = spec.time_ns.div_ceil(by_target.bucket_ns.max(1));
        let buckets = if by_target.bucket_ns > 0 { buckets as usize } else { 0 };
        let kind = || LaneKind { time_series: vec![Bucket::default(); buckets], ..LaneKind::default() };
        Some(Self {
            bucket_ns: by_target.bucket_ns,
            from_ns: spec.warmup_ns.max(spec.delay_ns),
            targets: (0..by_target.targets).map(|_| std::array::from_fn(|_| kind())).collect(),
        })
    }

    /// Counts an operation of the measured window that completed `end_ns` after the worker's start.
    pub(crate) fn count(&mut self, op: &Op, end_ns: u64, latency_ns: u64) {
        let counts =
            self.targets.get_mut(usize::from(op.file)).and_then(|kinds| kinds.get_mut(op.kind as usize));
        let Some(counts) = counts else { return };
        counts.bytes += u64::from(op.length);
        counts.latency.record(latency_ns);
        // An operation that completes at or shortly after the end of the window belongs to the last bucket.
        let at = end_ns.saturating_sub(self.from_ns).checked_div(self.bucket_ns).unwrap_or(0) as usize;
        let last = counts.time_series.len().saturating_sub(1);
        if let Some(bucket) = counts.time_series.get_mut(at.min(last)) {
            let sum_of_squares = (latency_ns as f64).powi(2);
            let (min_ns, max_ns, sum_ns) = (latency_ns, latency_ns, latency_ns);
            *bucket = bucket.plus(Bucket { count: 1, min_ns, max_ns, sum_ns, sum_of_squares });
        }
    }

    /// Returns the counts of each target, labelled with the index of the worker. Leaves out kinds
    /// without completions.
    pub(crate) fn ends(&self, worker: u32) -> Vec<LaneEnd> {
        let end = |(lane, counts): (u32, &[LaneKind; Kind::MOVING.len()])| {
            let kinds = Kind::MOVING.into_iter().zip(counts).filter(|(_, kind)| !kind.latency.is_empty());
            LaneEnd { worker, lane, kinds: kinds.map(|(kind, counts)| (kind, counts.clone())).collect() }
        };
        (0..).zip(&self.targets).map(end).collect()
    }
}

/// A recorder that only logs.
#[cfg(test)]
fn logging(to: Producer<Operation>) -> OperationRecorder {
    OperationRecorder {
        ops: vec![Op::NONE],
        log: Some(to),
        verify: None,
        wrong_read: None,
        priorities: None,
        by_target: None,
        waits: 0,
        worker: 0,
    }
}

#[test]
fn a_full_log_waits_and_loses_nothing() {
    let (to, mut from) = RingBuffer::new(4);
    let mut each = logging(to);
    let reader = std::thread::spawn(move || {
        let mut seen: Vec<u64> = Vec::new();
        while seen.len() < 1000 {
            seen.extend(from.pop().ok().map(|o| o.end_ns));
        }
        seen
    });
    for end in 0..1000 {
        each.record(0, Completion { end_ns: end, latency_ns: 1, service_ns: 1 });
    }
    assert_eq!(reader.join().ok(), Some((0..1000).collect()));
}

#[test]
fn an_abandoned_log_is_not_waited_for() {
    let (to, from) = RingBuffer::new(1);
    let mut each = logging(to);
    drop(from);
    for end in 0..3 {
        each.record(0, Completion { end_ns: end, latency_ns: 1, service_ns: 1 });
    }
    assert_eq!(each.waits, 2);
}

#[test]
fn operations_are_counted_by_target_and_bucket() {
    use crate::spec::ByTargetSpec;
    let by_target = Some(ByTargetSpec { bucket_ns: 100, targets: 2 });
    let spec = WorkerSpec { by_target, warmup_ns: 1000, time_ns: 250, ..crate::tests::spec("sim", 1, 250) };
    let mut all = ByTarget::from_spec(&spec).expect("it is asked for");
    let op = |file, kind| Op { file, kind, length: 512, ..Op::NONE };
    for (file, kind, end) in [
        (0, Kind::Read, 1000),
        (0, Kind::Read, 1099),
        (0, Kind::Read, 1100),
        (1, Kind::Write, 1260),
        (7, Kind::Read, 1000),
    ] {
        all.count(&op(file, kind), end, 40);
    }
    let ends = all.ends(3);
    let counts_of = |end: &LaneEnd, kind| {
        let counts = &end.kinds[&kind];
        (end.worker, end.lane, counts.bytes, counts.time_series.iter().map(|b| b.count).collect::<Vec<_>>())
    };
    assert_eq!(counts_of(&ends[0], Kind::Read), (3, 0, 3 * 512, vec![2, 1, 0]));
    assert_eq!(counts_of(&ends[1], Kind::Write), (3, 1, 512, vec![0, 0, 1]));
    assert_eq!((ends.len(), ends[0].kinds.len(), ends[1].kinds.len()), (2, 1, 1));
    let totals = WorkerSpec { by_target: Some(ByTargetSpec { bucket_ns: 0, targets: 1 }), ..spec };
    let mut all = ByTarget::from_spec(&totals).expect("it is asked for");
    all.count(&op(0, Kind::Read), 1000, 40);
    let read = &all.ends(0)[0].kinds[&Kind::Read];
    assert_eq!((read.latency.count(), read.time_series.len()), (1, 0));
}

#[test]
fn priorities_are_drawn_with_their_shares() {
    let spec = crate::tests::spec("sim", 1, 1_000_000);
    let share = |kind, bytes, percent, priority| OpPriority { kind, bytes, percent, priority };
    let (high, low) = (IoPriority::Realtime(0), IoPriority::BestEffort(7));
    let op_priorities = vec![
        share(Some(Kind::Read), None, 20, high),
        share(None, Some(8192), 30, low),
        share(None, None, 5, high),
    ];
    let spec = WorkerSpec { op_priorities, priority_seed: 1, ..spec };
    let mut all = Priorities::from_spec(&spec).expect("there are shares");
    let rounds = 20_000;
    for (kind, length) in [(Kind::Read, 4096), (Kind::Write, 8192), (Kind::Trim, 4096)] {
        for _ in 0..rounds {
            all.draw(0, &Op { length, kind, ..Op::NONE });
            assert_eq!(all.number(0) == 0, all.share(0) == 0);
            all.count(0, kind, 10);
        }
    }
    let ends = all.ends();
    let share = |kind, priority| {
        let end = ends.iter().find(|end| end.kind == kind && end.priority == priority);
        end.map_or(0.0, |end| end.latency.count() as f64 / f64::from(rounds))
    };
    // Four standard deviations of a share of 25 % are 1.2 %.
    for (kind, priority, due) in [
        (Kind::Read, Some(high), 0.25),
        (Kind::Read, None, 0.75),
        (Kind::Write, Some(low), 0.3),
        (Kind::Write, Some(high), 0.05),
        (Kind::Write, None, 0.65),
    ] {
        assert!(
            (share(kind, priority) - due).abs() < 0.015,
            "{kind:?} {priority:?}: {}",
            share(kind, priority)
        );
    }
    assert!(ends.iter().all(|end| end.kind != Kind::Trim), "trims have none");
}
