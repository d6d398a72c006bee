//! The loop with a simulated device: the measured figures must equal the known ones.

use crate::engines::find;
use crate::interface::{Done, Engine, Granted, Queue, Time};
use crate::link::{Block, Link, Task, WorkerOutcome, connect};
use crate::recorder::NoRecorder;
use crate::source::replay::{self, Replay, ReplayCounts, Sent, Step};
use crate::source::{Op, Panicking, Source, StreamState, WorkerContext, lanes};
use crate::spec::WorkerSpec;
use crate::worker;
use crate::workers::Workers;
use model::histogram::Histogram;
use model::job::{Access, Batch, Kind, LatencyTarget, Pattern, Stream};
use model::record::Replayed;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Service time of the simulated device.
const LATENCY_NS: u64 = 100_000;

pub(crate) fn spec(engine: &str, depth: u32, time_ns: u64) -> WorkerSpec {
    let stream = Stream::plain(Access::plain(Pattern::Random, 4096, 100), depth, 1, engine);
    let context =
        WorkerContext { worker: 0, workers: 1, seed: 1, stream_state: Arc::new(StreamState::new(1)) };
    let engine = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
    let sources = lanes(&stream, &[1 << 30], &[1], &context).unwrap_or_else(|e| panic!("{e}"));
    let clock = sys::clock::Clock::calibrate(true).0;
    let plain =
        WorkerSpec::plain(engine, sources, Vec::new(), time_ns, clock).unwrap_or_else(|e| panic!("{e}"));
    WorkerSpec { depth, interval_ns: time_ns / 100, ..plain }
}

/// The result of a run, with the sum of its blocks.
#[derive(Default)]
struct RunResult {
    window_ns: u64,
    depth_ns: u64,
    latency: Histogram,
    service: Histogram,
    lateness: Histogram,
    syncs: Histogram,
    outcome: WorkerOutcome,
}

impl RunResult {
    fn add(&mut self, block: &Block) {
        self.depth_ns += block.depth_ns;
        for lane in &block.lanes {
            self.latency.merge(&lane.kinds[Kind::Read as usize].latency);
            self.syncs.merge(&lane.kinds[Kind::Sync as usize].latency);
            for open in lane.open.iter().flat_map(|o| o.iter()) {
                self.service.merge(&open.service);
                self.lateness.merge(&open.lateness);
            }
        }
    }
}

fn ran(spec: WorkerSpec) -> RunResult {
    let mut workers = Workers::spawn(vec![spec]).unwrap_or_else(|e| panic!("{}", e.sentence));
    workers.open();
    let mut ran = RunResult::default();
    while !workers.is_done() {
        workers.collect(|_, b| ran.add(b));
        std::thread::sleep(Duration::from_millis(1));
    }
    workers.collect(|_, b| ran.add(b));
    let (_, mut outcome) = workers.finish().remove(0);
    outcome.last_block.take().iter().for_each(|b| ran.add(b));
    ran.window_ns = outcome.window_ns;
    ran.outcome = outcome;
    ran
}

/// Operations that a function generates from their index. They may have conditions.
struct ConditionalOps<F>(u64, F);

impl<F: FnMut(u64) -> Op + Send> Source for ConditionalOps<F> {
    fn refill(&mut self, ops: &mut [Op]) {
        for op in ops {
            *op = Op { length: 4096, ..(self.1)(self.0) };
            if op.kind == Kind::Sync {
                op.length = 0;
            }
            self.0 += 1;
        }
    }
}

fn with(mut spec: WorkerSpec, op: impl FnMut(u64) -> Op + Send + 'static) -> WorkerSpec {
    spec.sources = vec![Box::new(ConditionalOps(0, op))];
    spec
}

#[test]
fn a_simulated_device_is_measured_exactly() {
    let ran = ran(spec("sim", 32, 1_000_000_000));
    assert_eq!(ran.outcome.error, None);
    assert_eq!((ran.window_ns, ran.depth_ns), (1_000_000_000, 32_000_000_000));
    assert_eq!(ran.latency.count(), 320_000);
    assert_eq!((ran.latency.min_ns(), ran.latency.max_ns()), (Some(LATENCY_NS), Some(LATENCY_NS)));
    assert_eq!(ran.outcome.totals[0].ops, 320_000);
}

/// An engine whose thread is preempted for [`PREEMPTED_NS`] directly before each reap, so that all operations in flight complete meanwhile.
struct Preempted {
    time: ManualClock,
    queued: Vec<Done>,
    data: Vec<u8>,
}

const PREEMPTED_NS: u64 = 1_000_000;

struct ManualClock(Cell<u64>);

impl Time for ManualClock {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn ns(&self, ticks: u64) -> u64 {
        ticks
    }

    fn ticks_of(&self, ns: u64) -> u64 {
        ns
    }
}

impl Queue for Preempted {
    fn slot_mut(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.data
    }

    fn queue(&mut self, slot: u32, op: &Op) {
        self.queued.push(Done { slot, result: op.length as i32 });
    }

    fn submit(&mut self, _wait: u32) -> std::io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, done: &mut [Done]) -> usize {
        self.time.0.set(self.time.0.get() + PREEMPTED_NS);
        let taken = self.queued.len();
        done[..taken].copy_from_slice(&self.queued);
        self.queued.clear();
        taken
    }
}

impl Engine for Preempted {
    type Time = ManualClock;

    fn open(_: &mut WorkerSpec) -> std::io::Result<(Self, Granted)> {
        let time = ManualClock(Cell::new(0));
        Ok((Self { time, queued: Vec::new(), data: vec![0; 4096] }, Granted::default()))
    }

    fn time(&self) -> &ManualClock {
        &self.time
    }
}

#[test]
fn no_operation_is_complete_before_it_was_reaped() {
    // With batches of 1 at depth 4, an iteration submits without waiting, and reaps what completed meanwhile.
    for depth in [1, 4] {
        let spec = spec("null", depth, 100 * PREEMPTED_NS);
        let (port, mut tap) = connect(1, false);
        let link = Link {
            port,
            log: None,
            barrier: Arc::default(),
            stop: Arc::default(),
            failed: Arc::default(),
            heartbeat: Arc::default(),
        };
        link.barrier.release(crate::link::Release::Begin);
        let outcome = worker::run::<Preempted, NoRecorder>(&mut Task { spec, link });
        let mut ran = RunResult::default();
        tap.take(|block| ran.add(block));
        outcome.last_block.iter().for_each(|block| ran.add(block));
        assert_eq!(outcome.error, None);
        assert!(ran.latency.count() > 50 && ran.latency.min_ns() >= Some(PREEMPTED_NS), "{:?}", ran.latency);
    }
}

#[test]
fn lanes_whose_operations_complete_at_once_take_turns() {
    let mut spec = spec("null", 2, 50_000_000);
    let reads = |file| Box::new(ConditionalOps(0, move |_| Op { file, ..Op::NONE })) as Box<dyn Source>;
    spec.sources = vec![reads(0), reads(1)];
    let mut workers = Workers::spawn(vec![spec]).unwrap_or_else(|e| panic!("{}", e.sentence));
    workers.open();
    let mut counts = [0_u64; 2];
    let mut add = |block: &Block| {
        for (count, lane) in counts.iter_mut().zip(&block.lanes) {
            *count += lane.kinds[Kind::Read as usize].latency.count();
        }
    };
    while !workers.is_done() {
        workers.collect(|_, block| add(block));
        std::thread::sleep(Duration::from_millis(1));
    }
    workers.collect(|_, block| add(block));
    let (_, mut outcome) = workers.finish().remove(0);
    outcome.last_block.take().iter().for_each(|block| add(block));
    assert!(counts[0] > 1000 && counts[0].abs_diff(counts[1]) <= 4, "{counts:?}");
}

#[test]
fn a_warm_up_runs_and_does_not_count() {
    let mut spec = spec("sim", 4, 500_000_000);
    spec.warmup_ns = 250_000_000;
    let ran = ran(spec);
    assert_eq!((ran.window_ns, ran.depth_ns, ran.latency.count()), (500_000_000, 2_000_000_000, 20_000));
    assert_eq!(ran.outcome.totals[0].ops, 30_000);
}

#[test]
fn a_cool_down_runs_and_does_not_count() {
    let mut spec = spec("sim", 4, 500_000_000);
    spec.cooldown_ns = 250_000_000;
    let ran = ran(spec);
    assert_eq!((ran.window_ns, ran.depth_ns, ran.latency.count()), (500_000_000, 2_000_000_000, 20_000));
    assert_eq!(ran.outcome.totals[0].ops, 30_000);
}

#[test]
fn totals_have_the_operations_of_discarded_windows() {
    let mut spec = spec("sim", 32, 1_000_000_000);
    let target = LatencyTarget {
        ns: 2 * LATENCY_NS,
        percent: 100.0,
        window_ns: 100_000_000,
        searches_whole_run: false,
    };
    (spec.latency_target, spec.interval_ns) = (Some(target), target.window_ns);
    let ran = ran(spec);
    assert_eq!((ran.outcome.found_depth.map(|found| found.depth), ran.latency.count()), (Some(32), 32_000));
    // Windows at the depths 1, 2, 4, 8, 16 and 32, and the final one.
    assert_eq!(ran.outcome.totals[0].ops, 95_000);
}

#[test]
fn a_stream_that_begins_late_is_measured_from_there() {
    let mut spec = spec("sim", 1, 1_000_000_000);
    spec.delay_ns = 400_000_000;
    let ran = ran(spec);
    assert_eq!((ran.window_ns, ran.latency.count(), ran.depth_ns), (600_000_000, 6000, 600_000_000));
}

#[test]
fn a_limit_ends_the_run_with_the_last_completion() {
    let mut by_count = spec("sim", 8, 1_000_000_000);
    by_count.limit.operations = Some(20);
    let ran_by_count = ran(by_count);
    // Two rounds of eight operations, and one of four.
    assert_eq!((ran_by_count.window_ns, ran_by_count.latency.count()), (3 * LATENCY_NS, 20));
    let mut by_bytes = spec("sim", 1, 1_000_000_000);
    by_bytes.limit.bytes = Some(10 * 4096);
    by_bytes.warmup_ns = 10 * LATENCY_NS;
    let ran_by_bytes = ran(by_bytes);
    assert_eq!((ran_by_bytes.latency.count(), ran_by_bytes.outcome.totals[0].ops), (10, 20));
}

#[test]
fn an_open_loop_on_time_has_no_lateness() {
    let constant = |i: u64| Op { at_ns: i * 1_000_000, flags: Op::AT, ..Op::NONE };
    let mut spec = with(spec("sim", 4, 1_000_000_000), constant);
    spec.open_loop = true;
    let ran = ran(spec);
    // Each millisecond one operation arrives. It completes 0.1 ms later.
    assert_eq!(ran.latency.count(), 1000);
    assert_eq!((ran.latency.max_ns(), ran.service.max_ns()), (Some(LATENCY_NS), Some(LATENCY_NS)));
    assert_eq!(ran.lateness.max_ns(), Some(0));
}

#[test]
fn an_overloaded_open_loop_includes_the_wait_in_its_latency() {
    // One server of 0.1 ms serves 10,000 per second, but 20,000 are requested: half a second of work is left at the end.
    let constant = |i: u64| Op { at_ns: i * 50_000, flags: Op::AT, ..Op::NONE };
    let mut spec = with(spec("sim", 1, 1_000_000_000), constant);
    spec.open_loop = true;
    let ran = ran(spec);
    assert_eq!(ran.service.max_ns(), Some(LATENCY_NS));
    let last = ran.latency.max_ns().unwrap_or(0);
    assert!(last.abs_diff(500_000_000) < 1_000_000, "{last}");
    assert_eq!(ran.lateness.max_ns().map(|l| l + LATENCY_NS), Some(last));
}

#[test]
fn a_limited_closed_loop_counts_from_the_submission() {
    let schedule = |i: u64| Op { at_ns: i * 50_000, flags: Op::AT, ..Op::NONE };
    let ran = ran(with(spec("sim", 1, 1_000_000_000), schedule));
    assert_eq!((ran.latency.max_ns(), ran.latency.count()), (Some(LATENCY_NS), 10_000));
}

#[test]
fn think_time_counts_from_the_last_completion_of_a_drained_lane() {
    // Bursts of four at depth 4: 0.1 ms of work, 0.9 ms of rest.
    let burst = |i: u64| {
        if i.is_multiple_of(4) { Op { at_ns: 900_000, flags: Op::AFTER, ..Op::NONE } } else { Op::NONE }
    };
    let ran = ran(with(spec("sim", 4, 1_000_000_000), burst));
    assert_eq!((ran.latency.count(), ran.latency.max_ns()), (4000, Some(LATENCY_NS)));
    assert_eq!(ran.depth_ns, 4000 * LATENCY_NS);
}

#[test]
fn a_draining_sync_separates_the_operations_before_and_after_it() {
    // Eight reads at depth 8, a sync, eight reads, ...: 0.1 ms each, one after the other.
    let every_eight = |i: u64| match i % 9 {
        8 => Op { kind: Kind::Sync, flags: Op::DRAINED, ..Op::NONE },
        0 => Op { flags: Op::DRAINED, ..Op::NONE },
        _ => Op::NONE,
    };
    let ran = ran(with(spec("sim", 8, 1_000_000_000), every_eight));
    assert_eq!((ran.latency.count(), ran.syncs.count()), (40_000, 5000));
    assert_eq!(ran.depth_ns, (40_000 + 5000) * LATENCY_NS);
}

#[test]
fn a_write_waits_only_for_its_own_trim() {
    let pairs = |i: u64| {
        let kind = if i.is_multiple_of(2) { Kind::Trim } else { Kind::Write };
        Op { kind, flags: Op::PAIR, ..Op::NONE }
    };
    // In these cases one other operation may run while a trim is in flight: the write before it.
    for (depth, slot_bytes) in [(2, 4096), (4, 4096), (4, 1 << 20)] {
        let mut spec = with(spec("sim", depth, 1_000_000_000), pairs);
        // Buffers of large blocks are filled while other operations are in flight.
        (spec.slot_bytes, spec.writes) = (slot_bytes, true);
        let ran = ran(spec);
        assert_eq!(ran.outcome.error, None);
        let ops = |kind: Kind| ran.outcome.totals[kind as usize].ops;
        assert_eq!((ops(Kind::Trim), ops(Kind::Write)), (10_000, 9_999), "depth {depth}");
        assert_eq!(ran.depth_ns, (10_000 + 9_999) * LATENCY_NS);
    }
}

#[test]
fn a_panic_in_a_worker_is_a_named_error() {
    let mut spec = spec("sim", 4, 1_000_000_000);
    let inner = spec.sources.remove(0);
    spec.sources.push(Box::new(Panicking { inner, left: 500 }));
    assert!(ran(spec).outcome.error.is_some_and(|e| e.contains("on purpose")));
}

#[test]
fn serial_operations_on_the_same_bytes_wait_for_each_other() {
    let depth = |at: fn(u64) -> (u64, u16)| {
        let spec = with(spec("sim", 8, 100_000_000), move |i| {
            let (offset, file) = at(i);
            // A sync uses a slot too, but overlaps nothing.
            let kind = if i % 16 == 15 { Kind::Sync } else { Kind::Read };
            Op { offset, file, kind, flags: Op::SERIAL, ..Op::NONE }
        });
        let ran = ran(spec);
        assert_eq!(ran.outcome.error, None);
        ran.depth_ns as f64 / ran.window_ns as f64
    };
    for (at, expected) in [
        (|_| (0, 0)) as fn(u64) -> (u64, u16),
        |i| (i % 2 * 2048, 0),
        |i| (4096 - i % 2, 0),
        |i| (i % 2 * 4096, 0),
        |i| (0, (i % 4) as u16),
        |i| (i % 64 * 4096, 0),
    ]
    .into_iter()
    .zip([1.0, 1.0, 1.0, 2.0, 4.0, 8.0])
    {
        let seen = depth(at);
        // A sync overlaps nothing, so it is in flight along with the reads and adds up to 15 %.
        assert!((seen - expected).abs() < f64::max(0.25, 0.15 * expected), "{seen} for {expected}");
    }
}

/// Replays steps on the simulated device. Returns the result and the counters of the source.
fn replayed(steps: &[Step], depth: u32) -> (RunResult, Replayed) {
    replayed_by(steps, depth, 1)
}

/// Replays steps with at most `submit` operations per call. Returns the result and the counters of the source.
fn replayed_by(steps: &[Step], depth: u32, submit: u32) -> (RunResult, Replayed) {
    let (mut to, from) = replay::connect();
    for step in steps {
        assert_eq!(to.send(*step), Sent::InRing);
    }
    drop(to);
    let counts = Arc::<ReplayCounts>::default();
    let source: Box<dyn Source> = Box::new(Replay::new(from, 2, depth, true, Arc::clone(&counts)));
    let plain = spec("sim", depth, 1_000_000_000);
    let batch = Batch { submit, complete: 1 };
    let ran = ran(WorkerSpec { sources: vec![source], replay: Some(counts), batch, ..plain });
    let counted = ran.outcome.replayed.clone().unwrap_or_default();
    (ran, counted)
}

#[test]
fn operations_due_together_share_a_call_up_to_the_batch_size() {
    let at = |index: u64| Step {
        offset: index << 20,
        wait_ns: 20_000 * (index / 5),
        length: 4096,
        waits_back: 0,
        task: 0,
        file: 0,
        kind: Kind::Read,
    };
    let steps: Vec<Step> = (0..10).map(at).collect();
    let turns = [1, 3, 8].map(|submit| {
        let (ran, counted) = replayed_by(&steps, 16, submit);
        assert_eq!((ran.latency.count(), counted.is_whole), (10, true), "{submit}");
        assert_eq!((ran.latency.min_ns(), ran.latency.max_ns()), (Some(LATENCY_NS), Some(LATENCY_NS)));
        ran.outcome.iterations
    });
    // Ten calls, then four, then two.
    assert!(turns[0] >= turns[1] + 6 && turns[1] >= turns[2] + 2, "{turns:?}");
}

#[test]
fn a_replay_keeps_gaps_after_completions_and_ends_with_its_load() {
    let first =
        Step { offset: 0, wait_ns: 20_000, length: 4096, waits_back: 0, task: 0, file: 0, kind: Kind::Read };
    let next = Step { wait_ns: 50_000, waits_back: 1, ..first };
    // A second task that begins while the first one continues.
    let other = Step { task: 1, wait_ns: 200_000, ..first };
    let (ran, counted) = replayed(&[first, next, next, other, next, Step { task: 1, ..next }], 8);
    assert_eq!(counted, Replayed { is_whole: true, ..Replayed::default() });
    // The first task has four operations, three of which follow a gap.
    assert_eq!((ran.window_ns, ran.latency.count()), (20_000 + 4 * LATENCY_NS + 3 * 50_000, 6));
    assert_eq!((ran.latency.min_ns(), ran.latency.max_ns()), (Some(LATENCY_NS), Some(LATENCY_NS)));
    assert_eq!(ran.depth_ns, 6 * LATENCY_NS);
    // At depth 1 the tasks delay each other.
    let (ran, counted) = replayed(&[first, next, other, Step { task: 1, ..next }], 1);
    assert!(ran.window_ns > 20_000 + 3 * LATENCY_NS && counted.held_by_depth > 0, "{counted:?}");
    assert!(counted.is_whole && counted.starved == 0, "{counted:?}");
}

#[test]
fn an_open_loop_replay_counts_latency_from_its_times_and_reports_a_cut() {
    let at = |us: u64| Step {
        offset: 0,
        wait_ns: us * 1000,
        length: 4096,
        waits_back: 0,
        task: 0,
        file: 0,
        kind: Kind::Read,
    };
    let steps = [at(0), at(10), at(20), at(5_000)];
    let (mut to, from) = replay::connect();
    for step in steps {
        assert_eq!(to.send(step), Sent::InRing);
    }
    drop(to);
    let counts = Arc::<ReplayCounts>::default();
    let source: Box<dyn Source> = Box::new(Replay::new(from, 1, 1, true, Arc::clone(&counts)));
    let plain = spec("sim", 1, 2_000_000);
    let ran = ran(WorkerSpec { sources: vec![source], replay: Some(counts), open_loop: true, ..plain });
    // At depth 1 the second operation waits for the first, and the third for both.
    let late = [0, LATENCY_NS - 10_000, 2 * LATENCY_NS - 20_000];
    assert_eq!((ran.lateness.count(), ran.lateness.sum_ns()), (3, late.iter().sum()));
    assert_eq!(ran.latency.max_ns(), Some(late[2] + LATENCY_NS));
    assert_eq!(ran.outcome.replayed.map(|counted| counted.is_whole), Some(false));
}
