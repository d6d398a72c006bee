//! State: all that a view shows, as plain data.
//!
//! For: what was told of the measurement so far, and what is kept of it to be drawn. Not for: how it is drawn ([`super::draw`]), nor
//! for times, which whoever tells knows.

use super::left::Left;
use super::recent::Pulse;
use analysis::under_way::counters::Counted;
use analysis::under_way::row::Row;
use model::Known;
use model::finding::Finding;
use model::units::{show_ns, show_rate};
use std::collections::{BTreeSet, VecDeque};

/// Points of a course that are kept: more than the widest terminal shows.
pub(super) const POINTS_MAX: usize = 400;
/// Findings that are kept.
const FINDINGS_MAX: usize = 32;
/// Notes that are kept.
const NOTES_MAX: usize = 8;

/// What a view shows.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// What goes on.
    pub(super) step: String,
    /// What is left to wait, where anybody knows.
    pub(super) left: Option<Left>,
    /// How much of the step is done, and of how much.
    pub(super) done: (u64, u64),
    /// The run that goes on.
    pub(super) run: Option<Going>,
    /// What was seen of it last.
    pub(super) pulse: Pulse,
    /// What was counted last, beside it.
    pub(super) seen: Option<Sample>,
    /// The course of what is shown, over all runs.
    pub(super) course: Course,
    /// How far each host is where several measure, whoever needs a look first; of many some.
    pub(super) hosts: Vec<HostRow>,
    /// How many there are.
    pub(super) hosts_in_all: usize,
    /// What the runs so far came to.
    pub(super) rows: Vec<Named>,
    /// Rows in all, where anybody knows.
    pub(super) rows_in_all: Option<usize>,
    /// The row that was filled last.
    pub(super) last_row: usize,
    /// What is certain by now.
    pub(super) findings: Vec<CountedFinding>,
    /// What was said beside it.
    pub(super) notes: VecDeque<String>,
    /// Whether and when it is asked to end.
    pub(super) end: End,
    /// Whether help is shown.
    pub(super) help: bool,
}

/// What was seen in one look.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) counted: Counted,
    /// Share of a CPU that the busiest worker used, or why that is not known.
    pub(super) busiest: Known<f64>,
    /// The process that moved most, where others use the disks; or why it is not known.
    pub(super) culprit: Known<String>,
}

/// A run that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Going {
    /// Operations that it asks to have in flight.
    pub(super) depth: u64,
}

/// How far one of several hosts is.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    /// Its number among the hosts, from 0.
    pub rank: usize,
    /// What it is called.
    pub name: String,
    /// Operations per second lately.
    pub iops: Option<f64>,
    /// 99th percentile of latency since the run began, in ns.
    pub p99_ns: Option<u64>,
    /// What it does.
    pub state: HostState,
}

/// What a host does, that which needs a look first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// It gives no sign of life any more.
    Lost,
    /// Its storage does not answer.
    Hung,
    /// It measures.
    Measuring,
    /// It has no load: it prepares, or waits for the others.
    Waiting,
}

impl HostState {
    /// As it is shown.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Hung => "hung",
            Self::Measuring => "measuring",
            Self::Waiting => "waiting",
        }
    }
}

/// A row with its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) row: Row,
    /// Mean bytes of an operation; `None` where it moves none.
    pub(crate) op_bytes: Option<f64>,
}

impl Named {
    /// `result  SEQ1M Q8T1 read: 3,563 MB/s, 3,398 IOPS, p50 2.30 ms (5 runs, not judged yet)`.
    pub(super) fn line(&self, found: &BTreeSet<String>) -> String {
        let runs = match self.row.runs {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        };
        let rate = self.row.iops.map_or_else(
            || vec!["no number".to_owned()],
            |iops| {
                let bytes = self.op_bytes.map(|bytes| format!("{} MB/s", show_rate(iops * bytes / 1e6)));
                bytes.into_iter().chain([format!("{} IOPS", show_rate(iops))]).collect()
            },
        );
        let median = self.row.latency_ns[0].map(|ns| format!("p50 {}", show_ns(ns as f64)));
        let figures = rate.into_iter().chain(median).collect::<Vec<_>>().join(", ");
        let found = found.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = if found.is_empty() { found } else { format!("; found: {found}") };
        format!("result  {}: {figures} ({runs}, not judged yet{found})", self.name)
    }
}

/// A finding with the number of runs that it was made about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CountedFinding {
    pub(super) finding: Finding,
    pub(super) runs: u32,
}

/// Asked to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    #[default]
    No,
    /// After the run that goes on.
    AfterRun,
    /// At once.
    Now,
}

/// Values over time, a point for each time that something was shown; `None` where it was not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Course {
    pub(super) iops: Points,
    pub(super) p99_ns: Points,
    pub(super) device_iops: Points,
    pub(super) device_ns: Points,
}

/// One of them, oldest first.
pub(super) type Points = VecDeque<Option<f64>>;

impl State {
    /// A step begins, of which nothing was seen yet.
    pub(super) fn step(&mut self, words: &str, left: Option<Left>) {
        words.clone_into(&mut self.step);
        (self.left, self.done) = (left, (0, 0));
        (self.pulse, self.seen) = (Pulse::default(), None);
    }

    /// How far it is.
    pub(super) fn tick(&mut self, done: (u64, u64), left: Left) {
        (self.done, self.left) = (done, Some(left));
    }

    /// A run begins.
    pub(super) fn begin(&mut self, depth: u64) {
        self.run = Some(Going { depth });
        (self.pulse, self.seen) = (Pulse::default(), None);
        // Runs are told apart by a gap.
        if !self.course.iops.is_empty() {
            self.course.push([None; 4]);
        }
    }

    /// Something was handed in by the workers, or nothing was for a while.
    pub(super) fn pulse(&mut self, pulse: Pulse) {
        let silent = pulse.rate.is_some_and(|r| r.iops == 0.0);
        let latency_ns = if pulse.is_new || silent { pulse.latency_ns } else { self.pulse.latency_ns };
        self.pulse = Pulse { latency_ns, ..pulse };
        let device = self.seen.as_ref().and_then(|s| s.counted.device.as_ref().ok());
        self.course.push([
            self.pulse.rate.map(|r| r.iops),
            latency_ns[1].map(|ns| ns as f64),
            device.map(|d| d.iops),
            device.and_then(|d| d.latency_ns),
        ]);
    }

    /// A run has ended: what its row came to, and what was found of it.
    pub(super) fn ended(&mut self, named: Named, findings: Vec<Finding>) {
        let of = |n: &Named| (n.row.job, n.row.offered_iops);
        let at = self.rows.iter().position(|known| of(known) == of(&named));
        self.last_row = at.unwrap_or(self.rows.len());
        match self.rows.get_mut(self.last_row) {
            Some(known) => *known = named,
            None => self.rows.push(named),
        }
        for finding in findings {
            self.found(finding);
        }
    }

    fn found(&mut self, finding: Finding) {
        let same = |f: &&mut CountedFinding| (f.finding.id, &f.finding.about) == (finding.id, &finding.about);
        if let Some(known) = self.findings.iter_mut().find(same) {
            known.runs += 1;
            known.finding = finding;
        } else {
            self.findings.push(CountedFinding { finding, runs: 1 });
        }
        self.findings.sort_by_key(|f| f.finding.severity);
        self.findings.truncate(FINDINGS_MAX);
    }

    /// Nothing goes on between two runs.
    pub(super) fn rest(&mut self) {
        self.run = None;
    }

    /// Something was said.
    pub(super) fn say(&mut self, words: &str) {
        self.notes.push_back(words.to_owned());
        let more = self.notes.len().saturating_sub(NOTES_MAX);
        self.notes.drain(..more);
    }

    /// The key to end was typed.
    pub(super) fn ask_to_end(&mut self) {
        self.end = if self.run.is_some() && self.end == End::No { End::AfterRun } else { End::Now };
    }
}

impl Course {
    fn push(&mut self, points: [Option<f64>; 4]) {
        let all = [&mut self.iops, &mut self.p99_ns, &mut self.device_iops, &mut self.device_ns];
        for (course, point) in all.into_iter().zip(points) {
            course.push_back(point);
            let more = course.len().saturating_sub(POINTS_MAX);
            course.drain(..more);
        }
    }
}

#[cfg(test)]
use super::recent::Rate;

#[test]
fn a_result_without_a_view_is_one_line() {
    let row = Row {
        job: 0,
        offered_iops: None,
        runs: 5,
        iops: Some(2_000.0),
        latency_ns: [Some(441_000), None, None],
    };
    let named = Named { name: "SEQ1M Q1T1 read".into(), row, op_bytes: Some(1_048_576.0) };
    assert_eq!(
        named.line(&BTreeSet::new()),
        "result  SEQ1M Q1T1 read: 2,097 MB/s, 2,000 IOPS, p50 441 us (5 runs, not judged yet)"
    );
    let none = Row { runs: 1, iops: None, latency_ns: [None; 3], ..named.row.clone() };
    let found = ["D08 RUNQUEUE_WAIT".to_owned()].into();
    assert_eq!(
        Named { row: none, ..named }.line(&found),
        "result  SEQ1M Q1T1 read: no number (1 run, not judged yet; found: D08 RUNQUEUE_WAIT)"
    );
}

#[test]
fn what_is_not_known_has_no_point_and_what_comes_seldom_stays() {
    let mut state = State::default();
    state.begin(32);
    state.pulse(Pulse::default());
    let rate = Some(Rate { iops: 5.0, ..Rate::default() });
    let new = Pulse { rate, latency_ns: [Some(1), Some(2), Some(3)], is_new: true, ..Pulse::default() };
    state.pulse(new.clone());
    state.pulse(Pulse { is_new: false, latency_ns: [None; 3], ..new });
    assert_eq!(state.course.iops, [None, Some(5.0), Some(5.0)]);
    assert_eq!(state.course.p99_ns, [None, Some(2.0), Some(2.0)]);
    assert_eq!(state.course.device_iops, [None, None, None]);
    state.pulse(Pulse { rate: Some(Rate::default()), ..Pulse::default() });
    assert_eq!((state.course.iops.back(), state.course.p99_ns.back()), (Some(&Some(0.0)), Some(&None)));
    state.begin(1);
    assert_eq!((state.course.iops.len(), state.course.iops.back()), (5, Some(&None)));
    (0..1_000).for_each(|_| state.pulse(Pulse::default()));
    assert_eq!(state.course.iops.len(), POINTS_MAX);
}

#[test]
fn the_key_to_end_waits_for_a_run_once() {
    let mut state = State::default();
    state.begin(1);
    state.ask_to_end();
    assert_eq!(state.end, End::AfterRun);
    state.ask_to_end();
    assert_eq!(state.end, End::Now);
    let mut preparing = State::default();
    preparing.ask_to_end();
    assert_eq!(preparing.end, End::Now);
}
