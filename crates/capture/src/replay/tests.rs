//! Loads of a few requests: the steps of their replay, and what each step waits for.

use crate::replay::*;
use model::captured::{Origin, RowUnit};
use model::job::{Changes, Kind, ReplayPace};
use std::ops::Range;
use trace::row::{Flags, Names, Row, RowKind, Task};

/// Rows that a test adds one by one.
#[derive(Default)]
struct Rows {
    names: Names,
    rows: Vec<Row>,
}

impl Rows {
    fn add(&mut self, task: &str, rwbs: &str, times: Range<u64>, sector: u64, sectors: u32) {
        self.push(task, &Flags::parse(rwbs), times, sector, sectors);
    }

    fn ask(&mut self, task: &str, rwbs: &str, times: Range<u64>, sector: u64, sectors: u32) {
        self.push(
            task,
            &Flags { kind: RowKind::RequestedFlush, ..Flags::parse(rwbs) },
            times,
            sector,
            sectors,
        );
    }

    /// Adds a queued write with a flush whose completion is unknown.
    fn ask_incomplete(&mut self, task: &str, rwbs: &str, queued_ns: u64, sector: u64, sectors: u32) {
        self.ask(task, rwbs, queued_ns..queued_ns + 1, sector, sectors);
        if let Some(row) = self.rows.last_mut() {
            row.latency_ns = None;
        }
    }

    fn push(&mut self, task: &str, flags: &Flags, times: Range<u64>, sector: u64, sectors: u32) {
        let Range { start: issue_ns, end: done_ns } = times;
        let task = self.names.task(&Task { name: task.into(), ..Task::default() });
        let flags = self.names.flags(flags);
        let latency_ns = Some(done_ns - issue_ns);
        self.rows.push(Row { issue_ns, latency_ns, queued_ns: None, sector, sectors, flags, task });
    }

    fn load(&self, origin: &Origin) -> Load {
        let mut scan = Scan::new(origin, &Changes::default());
        scan.add(&self.rows, &self.names);
        scan.finish(256)
    }

    fn steps(&self, origin: &Origin, settings: ReplaySettings) -> Vec<Step> {
        let mut into = Vec::new();
        Steps::new(origin, &Changes::default(), self.load(origin), settings).add(
            &self.rows,
            &self.names,
            &mut into,
        );
        into
    }
}

const DEPENDENT: ReplaySettings =
    ReplaySettings { pace: ReplayPace::Dependent, speed: 1.0, dense: false, reach: 1024 };

fn waits(steps: &[Step]) -> Vec<(u32, u64)> {
    steps.iter().map(|step| (step.waits_back, step.wait_ns)).collect()
}

#[test]
fn an_operation_waits_for_the_last_completed_one_of_its_task() {
    let mut rows = Rows::default();
    // 16 requests at first, so that each task has its own lane.
    for task in ["a", "b"] {
        (0..16).for_each(|at| rows.add(task, "R", 1000 + at..1001 + at, at * 8, 8));
    }
    rows.add("a", "R", 2000..2500, 0, 8);
    rows.add("b", "R", 2100..2200, 8, 8);
    rows.add("a", "R", 2300..2400, 16, 8);
    rows.add("a", "R", 2450..2600, 24, 8);
    rows.add("a", "R", 2700..2800, 32, 8);
    rows.add("b", "R", 2900..2950, 40, 8);
    let steps = rows.steps(&Origin::default(), DEPENDENT);
    assert_eq!(waits(&steps[..2]), [(0, 0), (1, 0)]);
    assert_eq!(
        waits(&steps[32..]),
        [
            (1, 2000 - 1016),
            (1, 2100 - 1016),
            // The previous operation of the task is in flight, so this one waits for the operation before that.
            (2, 2300 - 1016),
            // The previous operation completed at 2400. The one that was issued at 2000 is still in flight.
            (1, 50),
            // The previous operation was the last to complete.
            (1, 100),
            (1, 700),
        ]
    );
    assert_ne!(steps[32].lane, steps[33].lane);
    let fast = ReplaySettings { speed: 2.0, ..DEPENDENT };
    assert_eq!(rows.steps(&Origin::default(), fast)[32].wait_ns, 492);
    let timed = ReplaySettings { pace: ReplayPace::Timed, speed: 2.0, ..DEPENDENT };
    assert_eq!(waits(&rows.steps(&Origin::default(), timed)[32..34]), [(0, 500), (0, 550)]);
}

#[test]
fn the_first_operation_continues_none() {
    let mut rows = Rows::default();
    rows.add("a", "R", 0..5, 0, 8);
    rows.add("a", "W", 10..15, 0, 8);
    rows.add("a", "R", 20..25, 8, 8);
    rows.add("a", "W", 30..35, 64, 8);
    assert!((rows.load(&Origin::default()).original().sequential_percent - 25.0).abs() < 1e-9);
}

#[test]
fn few_requests_of_many_tasks_share_a_lane() {
    let mut rows = Rows::default();
    (0..40_u64).for_each(|at| rows.add(&format!("cc{at}"), "R", at * 10..at * 10 + 5, 0, 8));
    let load = rows.load(&Origin::default());
    assert_eq!((load.lanes(), load.original().tasks), (1, 40));
    assert_eq!(waits(&rows.steps(&Origin::default(), DEPENDENT)[..3]), [(0, 0), (1, 5), (1, 5)]);
}

#[test]
fn requested_flushes_are_replayed() {
    let mut rows = Rows::default();
    rows.ask("db", "FWS", 0..90, 0, 0);
    rows.add("kworker/0:1", "FF", 10..80, 0, 0);
    // A write that needs a flush. The flush began when the write was queued.
    rows.ask("jbd2", "FWFSM", 100..400, 64, 8);
    rows.add("kworker/0:1", "FF", 110..290, 0, 0);
    rows.add("jbd2", "FWFSM", 300..390, 64, 8);
    let origin = Origin::default();
    let steps = rows.steps(&origin, DEPENDENT);
    let kinds: Vec<_> =
        steps.iter().map(|step| (step.kind, step.is_stable, step.waits_back, step.wait_ns)).collect();
    assert_eq!(kinds, [(Kind::Sync, false, 0, 0), (Kind::Sync, false, 1, 10), (Kind::Write, true, 1, 0)]);
    let original = rows.load(&origin).original();
    assert_eq!((original.count(Kind::Sync), original.count(Kind::Write), original.elapsed_ns), (2, 1, 390));
    assert_eq!(original.depth_mean, Some((90.0 + 200.0 + 90.0) / 390.0));
    // Bios have no separate rows for requested flushes.
    let origin = Origin { unit: RowUnit::Bios, ..Origin::default() };
    let mut bios = Rows::default();
    bios.add("db", "FWS", 0..90, 0, 0);
    bios.add("db", "FWFS", 100..200, 64, 8);
    let kinds: Vec<_> =
        bios.steps(&origin, DEPENDENT).iter().map(|step| (step.kind, step.waits_back)).collect();
    assert_eq!(kinds, [(Kind::Sync, 0), (Kind::Sync, 1), (Kind::Write, 1)]);
}

#[test]
fn flushes_of_two_writes_to_one_sector_keep_their_own_times() {
    let mut rows = Rows::default();
    rows.ask("jbd2", "FWFSM", 100..400, 64, 8);
    rows.ask("jbd2", "FWFSM", 150..500, 64, 8);
    rows.add("jbd2", "FWFSM", 300..390, 64, 8);
    rows.add("jbd2", "FWFSM", 420..490, 64, 8);
    // The capture lost the issue of a write. The next writes to this sector have their own times.
    rows.ask("jbd2", "FWFSM", 600..700, 128, 8);
    rows.ask("jbd2", "FWFSM", 800..900, 128, 8);
    rows.add("jbd2", "FWFSM", 850..890, 128, 8);
    rows.add("jbd2", "FWFSM", 950..990, 128, 8);
    // The capture has neither the issue nor the completion of the first of these writes.
    rows.ask_incomplete("jbd2", "FWFSM", 1000, 256, 8);
    let late = 1000 + LONGEST_FLUSH_NS + 1;
    rows.add("jbd2", "FWFSM", late..late + 10, 256, 8);
    rows.ask_incomplete("jbd2", "FWFSM", late + 20, 256, 8);
    rows.add("jbd2", "FWFSM", late + 50..late + 60, 256, 8);
    let mut operations = Operations::from_origin(&Origin::default(), &Changes::default());
    let mut syncs = Vec::new();
    for row in &rows.rows {
        operations.add(row, &rows.names, &mut |operation| {
            if operation.kind == Kind::Sync {
                syncs.push((operation.issue_ns, operation.latency_ns));
            }
        });
    }
    let expected = [
        (100, Some(200)),
        (150, Some(270)),
        (800, Some(50)),
        (950, None),
        (late, None),
        (late + 20, Some(30)),
    ];
    assert_eq!(syncs, expected);
}

#[test]
fn dense_replays_keep_sizes_and_leave_out_discards_outside() {
    let mut rows = Rows::default();
    rows.add("a", "D", 0..1, 0, 64);
    rows.add("a", "W", 2..3, 1 << 30, 16);
    rows.add("a", "R", 4..5, (1 << 30) + 16, 8);
    rows.add("a", "D", 6..7, 1 << 20, 1 << 30);
    let settings = ReplaySettings { dense: true, ..DEPENDENT };
    let mut into = Vec::new();
    let mut steps =
        Steps::new(&Origin::default(), &Changes::default(), rows.load(&Origin::default()), settings);
    steps.add(&rows.rows, &rows.names, &mut into);
    let places: Vec<_> = into.iter().map(|step| (step.kind, step.offset, step.length)).collect();
    assert_eq!(places, [(Kind::Write, 0, 8192), (Kind::Read, 8192, 4096), (Kind::Trim, 0, 12_288)]);
    assert_eq!((steps.outside, waits(&into)), (1, vec![(0, 2), (1, 1), (1, 1)]));
    // Without `dense`, a discard becomes as many steps as its length needs.
    let mut large = Rows::default();
    large.add("a", "D", 6..7, 0, (1 << 22) - 1);
    let straight = large.steps(&Origin::default(), DEPENDENT);
    assert_eq!(straight.iter().map(|s| s.length).collect::<Vec<_>>(), [1 << 30, (1 << 30) - 512]);
}

#[test]
fn unsupported_requests_are_counted_without_panic() {
    let mut rows = Rows::default();
    rows.add("a", "N", 0..1, 0, 0);
    rows.add("a", "R", 5..6, u64::MAX - 3, u32::MAX);
    rows.rows.push(Row { flags: 99, task: 99, ..Row::default() });
    let load = rows.load(&Origin::default());
    assert_eq!((load.operations(), load.original().left_out), (1, 1));
    assert_eq!(rows.steps(&Origin::default(), ReplaySettings { dense: true, ..DEPENDENT }).len(), 1);
    let nothing = Rows::default().load(&Origin::default());
    assert_eq!((nothing.operations(), nothing.original().depth_mean), (0, None));
}

#[test]
fn offsets_are_divided_and_rounded_and_kinds_are_left_out() {
    let mut rows = Rows::default();
    rows.add("a", "R", 0..5, 100, 3);
    rows.add("a", "W", 10..15, 16, 8);
    rows.add("a", "D", 20..25, 64, 8);
    let changed = |unit: RowUnit, changes: &Changes| {
        let origin = Origin { unit, ..Origin::default() };
        let mut scan = Scan::new(&origin, changes);
        scan.add(&rows.rows, &rows.names);
        let mut steps = Vec::new();
        let settings = ReplaySettings { pace: ReplayPace::Fast, ..DEPENDENT };
        Steps::new(&origin, changes, scan.finish(256), settings).add(&rows.rows, &rows.names, &mut steps);
        steps.iter().map(|step| (step.kind, step.offset / 512, step.length / 512)).collect::<Vec<_>>()
    };
    let halves = Changes { divide: 2, align_bytes: 4096, skip: vec![Kind::Trim] };
    // Requests become whole blocks. Operations of programs keep their size, as in fio.
    assert_eq!(changed(RowUnit::Requests, &halves), [(Kind::Read, 48, 8), (Kind::Write, 8, 8)]);
    assert_eq!(changed(RowUnit::Operations, &halves), [(Kind::Read, 48, 3), (Kind::Write, 8, 8)]);
    let reads_out = Changes { skip: vec![Kind::Read, Kind::Write], ..Changes::default() };
    assert_eq!(changed(RowUnit::Requests, &reads_out), [(Kind::Trim, 64, 8)]);
}
