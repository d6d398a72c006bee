//! Event sequences of Linux 6.18, and the rows that they give.

use crate::pairing::*;

/// A pairing that gets the events of a load, and the rows that it has released.
struct Load {
    names: Names,
    pairing: Pairing,
    rows: Vec<Row>,
}

impl Load {
    fn new(unit: RowUnit, span: Option<(u64, u64)>) -> Self {
        let scope = Scope { unit, span, start_ns: 1000 };
        Self { names: Names::default(), pairing: Pairing::new(scope), rows: Vec::new() }
    }

    fn event(&mut self, step: EventKind, at_ns: u64, sector: u64, sectors: u32, rwbs: &str, tid: u32) {
        let flags = Flags::parse(rwbs);
        let op = flags.op(sectors);
        let flags = self.names.flags(&flags);
        let task = self.names.task(&crate::row::Task { tid, ..Default::default() });
        let event = Event { at_ns: at_ns + 1000, step, op, sector, sectors, flags, task, device: 0 };
        self.pairing.add_event(&event, &mut self.names, &mut |row| self.rows.push(*row));
    }

    fn paired(&mut self) -> Vec<(u64, Option<u64>, u64, u32, String, u32)> {
        self.pairing.finish(&mut |row| self.rows.push(*row));
        let names = &self.names;
        let summary = |row: &Row| {
            let flags = names.flags_at(row.flags).cloned().unwrap_or_default();
            let kind = if flags.kind == RowKind::RequestedFlush { "asked " } else { "" };
            let tid = names.task_at(row.task).map_or(0, |task| task.tid);
            (row.issue_ns, row.latency_ns, row.sector, row.sectors, format!("{kind}{}", flags.rwbs), tid)
        };
        self.rows.iter().map(summary).collect()
    }
}

const NOWHERE: u64 = u64::MAX;

#[test]
fn a_completion_belongs_to_the_oldest_request_at_its_sector() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::Issued, 1, 8, 8, "R", 1);
    load.event(EventKind::Issued, 2, 8, 8, "R", 2);
    load.event(EventKind::Issued, 3, 16, 8, "WS", 3);
    load.event(EventKind::Completed, 5, 16, 8, "WS", 0);
    assert!(load.rows.is_empty());
    load.event(EventKind::Completed, 6, 8, 8, "R", 0);
    load.event(EventKind::Completed, 9, 8, 8, "R", 0);
    load.event(EventKind::Completed, 9, 99, 8, "R", 0);
    let rows = load.paired();
    assert_eq!(rows[0], (1, Some(5), 8, 8, "R".into(), 1));
    assert_eq!(rows[1], (2, Some(7), 8, 8, "R".into(), 2));
    assert_eq!(rows[2], (3, Some(2), 16, 8, "WS".into(), 3));
    assert_eq!((rows.len(), load.pairing.counts.without_issue), (3, 1));
}

#[test]
fn a_journal_commit_belongs_to_the_task_that_requested_it() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::FlushRequested, 1, 229_396, 2, "FWFSM", 7);
    for (step, at, place, rwbs, tid) in [
        (EventKind::Issued, 2, (0, 0), "FF", 9),
        (EventKind::Completed, 3, (NOWHERE, 0), "FF", 0),
        (EventKind::Issued, 4, (229_396, 2), "WSM", 9),
        (EventKind::Completed, 5, (229_396, 2), "WSM", 0),
        (EventKind::Issued, 6, (0, 0), "FF", 9),
        (EventKind::Completed, 8, (NOWHERE, 0), "FF", 0),
        (EventKind::Completed, 9, (229_396, 0), "WSM", 0),
    ] {
        load.event(step, at, place.0, place.1, rwbs, tid);
    }
    let expected = [
        (1, Some(8), 229_396, 2, "asked FWFSM".to_owned(), 7),
        (2, Some(1), 0, 0, "FF".into(), 9),
        (4, Some(1), 229_396, 2, "FWFSM".into(), 7),
        (6, Some(2), 0, 0, "FF".into(), 9),
    ];
    assert_eq!(load.paired(), expected);
    let counts = load.pairing.counts;
    assert_eq!((counts.without_issue, counts.without_completion), (0, 0));
    let Completed { writes, flushes, empty_flushes, .. } = counts.completed;
    assert_eq!((writes, flushes, empty_flushes), (1, 2, 0));
}

#[test]
fn empty_flushes_count_as_in_the_kernel_and_device_fua_has_no_separate_end() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::FlushRequested, 1, 0, 0, "FWS", 7);
    load.event(EventKind::Issued, 2, 0, 0, "FF", 9);
    load.event(EventKind::Completed, 3, NOWHERE, 0, "FF", 0);
    load.event(EventKind::Completed, 4, 0, 0, "WS", 0);
    load.event(EventKind::FlushRequested, 5, 64, 8, "WFS", 7);
    load.event(EventKind::Issued, 6, 64, 8, "WFS", 7);
    load.event(EventKind::Completed, 8, 64, 8, "WFS", 0);
    let expected = [
        (1, Some(3), 0, 0, "asked FWS".to_owned(), 7),
        (2, Some(1), 0, 0, "FF".into(), 9),
        (6, Some(2), 64, 8, "WFS".into(), 7),
    ];
    assert_eq!(load.paired(), expected);
    let Completed { writes, flushes, empty_flushes, .. } = load.pairing.counts.completed;
    assert_eq!((writes, flushes, empty_flushes), (1, 1, 1));
}

#[test]
fn partial_completions_and_requeues_are_one_request() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::Inserted, 0, 8, 16, "R", 5);
    load.event(EventKind::Issued, 1, 8, 16, "R", 9);
    load.event(EventKind::Completed, 2, 8, 8, "R", 0);
    load.event(EventKind::Requeued, 3, 16, 8, "R", 0);
    load.event(EventKind::Issued, 4, 16, 8, "R", 9);
    load.event(EventKind::Completed, 7, 16, 8, "R", 0);
    assert_eq!(load.paired(), [(1, Some(6), 8, 16, "R".into(), 5)]);
    assert_eq!(load.rows[0].queued_ns, Some(1));
    let counts = load.pairing.counts;
    assert_eq!((counts.requeued, counts.completed.reads, counts.without_issue), (1, 1, 0));
}

#[test]
fn returned_requests_at_one_sector_keep_their_rows() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::Issued, 1, 8, 8, "R", 1);
    load.event(EventKind::Issued, 2, 8, 8, "R", 2);
    for (step, at) in [
        (EventKind::Requeued, 3),
        (EventKind::Requeued, 4),
        (EventKind::Inserted, 5),
        (EventKind::Issued, 6),
        (EventKind::Issued, 7),
        (EventKind::Completed, 10),
        (EventKind::Completed, 20),
    ] {
        load.event(step, at, 8, 8, "R", 9);
    }
    // A later request at the same sector was not in the scheduler.
    load.event(EventKind::Issued, 30, 8, 8, "R", 3);
    let rows: Vec<_> = load.paired().into_iter().map(|row| (row.0, row.1, row.5)).collect();
    assert_eq!(rows, [(1, Some(9), 1), (2, Some(18), 2), (30, None, 3)]);
    assert_eq!(load.rows[2].queued_ns, None);
}

#[test]
fn merged_requests_are_not_kept_for_ever() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::Inserted, 0, 8, 8, "W", 5);
    // A thousand requests a second are merged into others for ten minutes.
    let last = 599_999;
    (1..=last).for_each(|at| load.event(EventKind::Inserted, at * 1_000_000, at * 64, 8, "W", 5));
    assert!(load.pairing.inserted.capacity() < 500_000, "{}", load.pairing.inserted.capacity());
    // A later request at the sector of the first one was never in the scheduler.
    load.event(EventKind::Issued, (last + 1) * 1_000_000, 8, 8, "W", 9);
    load.event(EventKind::Issued, (last + 1) * 1_000_000, last * 64, 8, "W", 9);
    let queued: Vec<_> = load
        .paired()
        .iter()
        .map(|row| row.5)
        .zip(&load.rows)
        .map(|(tid, row)| (tid, row.queued_ns))
        .collect();
    assert_eq!(queued, [(9, None), (5, Some(1_000_000))]);
}

#[test]
fn lost_events_cause_no_wrong_pairs() {
    let mut load = Load::new(RowUnit::Requests, None);
    load.event(EventKind::Issued, 1, 8, 8, "R", 1);
    load.event(EventKind::Issued, 2, 16, 8, "R", 1);
    load.event(EventKind::Lost, 3, 0, 40, "", 0);
    // The completion of the first request was lost. This is another request.
    load.event(EventKind::Issued, 50, 8, 8, "R", 1);
    load.event(EventKind::Completed, 60, 8, 8, "R", 0);
    load.event(EventKind::Issued, PATIENCE_NS + 100, 24, 8, "R", 1);
    load.event(EventKind::Completed, PATIENCE_NS + 110, 24, 8, "R", 0);
    let rows = load.paired();
    let latencies: Vec<_> = rows.iter().map(|row| row.1).collect();
    assert_eq!(latencies, [None, None, Some(10), Some(10)]);
    assert_eq!(load.pairing.counts.without_completion, 2);
    assert_eq!(load.pairing.counts.completed.reads, 2);
}

#[test]
fn a_partition_has_only_its_own_sectors() {
    let mut load = Load::new(RowUnit::Requests, Some((2048, 1000)));
    for sector in [2047, 2048, 3047, 3048] {
        load.event(EventKind::Issued, 1, sector, 1, "R", 1);
        load.event(EventKind::Completed, 3, sector, 1, "R", 0);
    }
    let sectors: Vec<u64> = load.paired().iter().map(|row| row.2).collect();
    assert_eq!(sectors, [0, 999]);
    assert_eq!(load.pairing.counts.completed.reads, 2);
}

#[test]
fn only_completions_between_the_readings_are_counted() {
    let mut load = Load::new(RowUnit::Bios, None);
    let ms = |n: u64| n * 2 * COUNTING_DELAY_NS;
    load.pairing.counters_read_first(1000 + ms(2), 1010 + ms(2));
    load.pairing.counters_read_last(1000 + ms(8), 1010 + ms(8));
    for at in [1, 2, 5, 8, 9] {
        load.event(EventKind::Issued, ms(at) - 5, 8, 8, "R", 1);
        load.event(EventKind::Completed, ms(at) + 5, 8, 0, "R", 0);
    }
    let counted = load.pairing.counts.completed;
    assert_eq!((counted.reads, counted.at_edges), (2, 2));
    assert_eq!(load.paired().len(), 5);
}
