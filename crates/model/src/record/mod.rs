//! The record: what was seen, as the session file holds it.
//!
//! For: frames and the record they add up to. Not for: bytes on disk (that is [`frame`]) nor conclusions.
//! This is format 1. When a field changes its meaning, this module becomes `v1.rs` and stays readable.

pub mod attempts;
pub mod disturbed;
pub mod frame;

use crate::Known;
use crate::evidence::Snapshot;
use crate::histogram::Histogram;
use crate::job::Kind;
use crate::machine::Machine;
use crate::plan::Plan;
use attempts::Attempt;
use disturbed::Disturbed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the session file.
pub const FORMAT: u32 = 1;

/// One piece of a session, in the order of happening.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// First frame of every file.
    Header(Box<Header>),
    /// Kernel text at a moment; inside a run it belongs to that run.
    Evidence(Box<Snapshot>),
    /// What was written before the first run, where the plan asked for it.
    Preconditioned(Preconditioned),
    /// A run begins.
    RunStart(RunStart),
    /// Some time of the run.
    Intervals(Intervals),
    /// A run has ended; closes the last `RunStart`.
    RunEnd(Box<RunEnd>),
    /// Others disturbed the run that ended last.
    Disturbed(Disturbed),
    /// Last frame of a file that was closed in order.
    End(End),
}

/// What was meant and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the session file.
    pub format: u32,
    /// Version of the program that measured.
    pub version: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// What was meant.
    pub plan: Plan,
    /// The hosts that take part; one unless several were asked for.
    pub hosts: Vec<Machine>,
    /// The clock of the stamps.
    pub clock: Clock,
    /// What fathom itself can do here.
    #[serde(default)]
    pub self_test: SelfTest,
}

/// What fathom itself can do at the shapes of the plan, measured before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Bytes per second that one thread copies in memory, in blocks of 1 MiB.
    pub copy_bytes_per_s: f64,
    /// One per stream that was tried.
    pub ceilings: Vec<Ceiling>,
    /// One per job of a comparison of interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// A job carried out in part before the first run: whether this machine lets it, and what it calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Index of the job.
    pub job: usize,
    /// Bytes that were moved; or why there will be no run of this job.
    pub moved_bytes: Known<u64>,
    /// System calls of its workers for these bytes, or why they were not counted.
    pub calls: Known<u64>,
}

/// What one worker of a stream can do when no storage takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Index of the job.
    pub job: usize,
    /// Index of the phase.
    pub phase: usize,
    /// Index of the stream.
    pub stream: usize,
    /// ns per operation of the loop alone (engine `null`), with the data of its writes.
    pub loop_ns: Known<f64>,
    /// ns per operation through the kernel's interface and back, nothing done there (`io_uring:nop`).
    pub interface_ns: Known<f64>,
}

/// The clock that stamps operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `tsc` or `clock_monotonic`.
    pub name: String,
    /// Why this one, when it is the fall back.
    pub reason: Option<String>,
    /// Measured cost of reading it, in picoseconds.
    pub cost_ps: u64,
}

/// What was written before the first run, so that the storage is in the state that lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preconditioned {
    /// Bytes written from end to end, all passes together.
    pub filled_bytes: u64,
    /// ns that this took.
    pub filled_ns: u64,
    /// The jobs that were then carried out in rounds; empty where none writes.
    pub rounds: Vec<Rounds>,
    /// Bytes written in the rounds.
    pub rounds_bytes: u64,
    /// ns that the rounds took.
    pub rounds_ns: u64,
    /// Whether the rates of all these jobs had settled when the rounds ended; `None` where there were none.
    pub settled: Option<bool>,
    /// What was not as planned, in sentences.
    pub notes: Vec<String>,
}

/// The rates of a job in the rounds before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rounds {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Operations per second of each round, in the order of happening.
    pub iops: Vec<f64>,
}

/// A run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Index of the phase of the job; each phase of a repeat is a run of its own here.
    #[serde(default)]
    pub phase: usize,
    /// How many times this job was measured before.
    pub repeat: u32,
    /// How many times this very run was measured before, since others disturbed it; 0 in older files.
    #[serde(default, skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Operations per second that were offered in an open loop, where the strategy chose them instead of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// Index into the header's hosts.
    pub host: usize,
    /// ns since the session began.
    pub at_ns: u64,
    /// Bytes of each target that are there to be touched, after preparation.
    pub target_bytes: Vec<u64>,
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// Some time of the run: neighbouring stretches of one second or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// The stretches, in time order per stream.
    pub rows: Vec<Interval>,
    /// How many neighbours were merged to keep the file small; 0 when none.
    pub merged: u64,
}

/// One stretch of a stream's time, all its workers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Index of the stream in its phase.
    #[serde(rename = "s")]
    pub stream: usize,
    /// First ns, since the run's start.
    #[serde(rename = "a")]
    pub start_ns: u64,
    /// Last ns.
    #[serde(rename = "b")]
    pub end_ns: u64,
    /// Operations in flight times ns.
    #[serde(rename = "d")]
    pub depth_ns: u64,
    /// What completed, per kind.
    #[serde(rename = "k")]
    pub cells: BTreeMap<Kind, Cell>,
}

/// What completed in an interval: operations, bytes, median, 99th percentile and maximum of latency in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell(pub u64, pub u64, pub u64, pub u64, pub u64);

/// A run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// ns since the session began.
    pub at_ns: u64,
    /// How it ended.
    pub ending: RunEnding,
    /// One entry per stream of the phase.
    pub streams: Vec<StreamEnd>,
    /// One entry per worker.
    pub workers: Vec<WorkerEnd>,
    /// ns from the last completion to the end of the final sync; `None` where nothing was written or it failed.
    pub sync_ns: Option<u64>,
    /// CPU time of the whole process in user space and in the kernel while workers ran, in ns: threads of libraries and those
    /// that the kernel works on are in it. `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<[u64; 2]>,
    /// How long fathom as a whole stood still, by the thread that watches the workers; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still: Option<Known<Still>>,
    /// What happened on the way, in sentences: pages that stayed, dirt that did not settle.
    pub notes: Vec<String>,
}

/// Times for which a thread that only sleeps came back too late and had not waited for a CPU: it was stopped, frozen, or the
/// machine was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Still {
    /// How often.
    pub times: u32,
    /// The longest, in ns.
    pub longest_ns: u64,
    /// All together, in ns.
    pub total_ns: u64,
}

impl RunEnd {
    /// The end of a run that never began.
    pub fn without(ending: RunEnding) -> Self {
        Self {
            at_ns: 0,
            ending,
            streams: Vec::new(),
            workers: Vec::new(),
            sync_ns: None,
            process_ns: None,
            still: None,
            notes: Vec::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "why")]
pub enum RunEnding {
    /// The measured window was filled.
    Complete,
    /// A signal ended it.
    Interrupted,
    /// An error ended it, in a sentence.
    Failed(String),
}

/// Totals of a stream over all its workers and lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Index of the stream in its phase.
    pub stream: usize,
    /// Length of the measured window that was really used, in ns.
    pub window_ns: u64,
    /// Operations in flight times ns within the window, counted apart from the latencies.
    pub depth_ns: u64,
    /// Totals per kind within the window.
    pub kinds: BTreeMap<Kind, KindEnd>,
    /// All operations handed over, warm-up and drain included: what the ledger is held against.
    pub issued: BTreeMap<Kind, Issued>,
    /// Time inside calls that handed operations over without waiting for any, one entry per call within the window.
    #[serde(default)]
    pub submit: Histogram,
    /// What the data that were written are like, made once more and measured; `None` where nothing is written.
    #[serde(default)]
    pub data: Option<Written>,
}

/// What data are like, as a compressor and a deduplicator see them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// Share of the bytes that an LZ compressor saves, block by block of 4 KiB, in percent.
    pub compress_percent: f64,
    /// Share of the 4 KiB blocks that are copies of others, in percent.
    pub dedup_percent: f64,
}

/// Totals of one kind of operation within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindEnd {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies; its count is the number of operations that moved all their bytes. From the intended start in an open
    /// loop, from the hand-over otherwise.
    pub latency: Histogram,
    /// In an open loop: from the hand-over to the completion, and from the intended start to the hand-over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenLoop>,
}

/// The two parts of latency in an open loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// From the hand-over to the completion.
    pub service: Histogram,
    /// From the intended start to the hand-over.
    pub lateness: Histogram,
}

/// All operations of one kind that were handed over, the warm-up and the drain included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Operations completed.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Errors by errno.
    pub errors: BTreeMap<i32, u64>,
    /// Operations that moved fewer bytes than asked.
    pub short: u64,
    /// Longest latency, the drain included.
    pub max_ns: u64,
}

/// What [`WorkerEnd::used`] says where the data of the next write are made while the queue is full.
pub const PREPARES_AHEAD: &str = "data of the next write made while waiting";

/// What a worker cost and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// Index of the worker.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// ns between its first and last stamp.
    pub wall_ns: u64,
    /// CPU time in user space in that time.
    pub user_ns: u64,
    /// CPU time in the kernel in that time.
    pub system_ns: u64,
    /// Times it gave up the CPU by itself and by force.
    pub switches: [u64; 2],
    /// Page faults without and with I/O; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<[u64; 2]>,
    /// Cycles and instructions in that time, or why they were not counted.
    #[serde(default = "not_asked")]
    pub counted: Known<[u64; 2]>,
    /// Turns of the loop; operations per turn tell how eager it was.
    pub turns: u64,
    /// Operations that completed, warm-up and drain included.
    #[serde(default)]
    pub ops: u64,
    /// ns that it was ready to run and waited for a CPU, or why that is not known.
    #[serde(default = "not_asked_for_waiting")]
    pub ready_ns: Known<u64>,
    /// What the engine really used: `registered buffers`, ...
    pub used: Vec<String>,
    /// What was asked of the kernel and refused, with the reason.
    pub fallbacks: Vec<String>,
    /// Why it ended early.
    pub error: Option<String>,
}

impl Default for WorkerEnd {
    fn default() -> Self {
        Self {
            worker: 0,
            stream: 0,
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            switches: [0, 0],
            faults: None,
            counted: not_asked(),
            turns: 0,
            ops: 0,
            ready_ns: not_asked_for_waiting(),
            used: Vec::new(),
            fallbacks: Vec::new(),
            error: None,
        }
    }
}

/// What older files say of cycles and instructions.
fn not_asked() -> Known<[u64; 2]> {
    Err("cycles and instructions were not asked for".into())
}

/// What older files say of waiting for a CPU.
fn not_asked_for_waiting() -> Known<u64> {
    Err("waiting for a CPU was not asked for".into())
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How it ended.
    pub ending: RunEnding,
    /// What happened since the last run, in sentences.
    pub notes: Vec<String>,
    /// Change of the stamps' clock against the kernel's over the session, in parts per million; `None` where it is the kernel's.
    pub clock_drift_ppm: Option<f64>,
}

/// A whole session, as far as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What was meant and where.
    pub header: Header,
    /// Evidence outside any run.
    pub evidence: Vec<Snapshot>,
    /// What was written before the first run; `None` where nothing was, or the session ended meanwhile.
    pub preconditioned: Option<Preconditioned>,
    /// The runs that count, in the order of happening.
    pub runs: Vec<Run>,
    /// Attempts at runs that count nowhere, since another attempt does.
    pub aside: Vec<Run>,
    /// The end; `None` where the program was killed.
    pub end: Option<End>,
}

/// One run with all that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its start.
    pub start: RunStart,
    /// Its course.
    pub intervals: Vec<Interval>,
    /// Kernel text of its moments.
    pub evidence: Vec<Snapshot>,
    /// Its end; `None` where the program was killed inside it.
    pub end: Option<RunEnd>,
    /// Who disturbed it, as was decided when it had ended.
    pub disturbed: Option<Disturbed>,
}

impl Run {
    /// Which attempt at which run it is.
    pub fn attempt(&self) -> Attempt {
        let RunStart { job, repeat, attempt, offered_iops, .. } = self.start;
        let complete = self.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        Attempt { job, repeat, attempt, offered_iops, disturbed: self.disturbed.is_some(), complete }
    }
}

/// Why frames do not add up to a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    /// The first frame is not a header.
    #[error("this is no session file: it does not begin with a header")]
    NoHeader,
    /// Written by a later version.
    #[error(
        "this session file has format {0}, and this fathom reads format {FORMAT} at most; use the fathom that wrote it or a later one"
    )]
    FromTheFuture(u32),
    /// A frame that cannot stand where it stands.
    #[error("frame {0} ({1}) cannot stand there")]
    Misplaced(usize, &'static str),
    /// An index that names nothing.
    #[error("frame {0} names {1} {2}, which the plan does not have")]
    Dangling(usize, &'static str, usize),
}

impl Record {
    /// A session that has just begun.
    pub fn new(header: Header) -> Self {
        let (evidence, runs, aside) = (Vec::new(), Vec::new(), Vec::new());
        Self { header, evidence, preconditioned: None, runs, aside, end: None }
    }

    /// Adds frames up to a record.
    ///
    /// # Errors
    /// [`Disorder`] where they contradict one another.
    pub fn from_frames(frames: impl IntoIterator<Item = Frame>) -> Result<Self, Disorder> {
        let mut frames = frames.into_iter().enumerate();
        let Some((_, Frame::Header(header))) = frames.next() else { return Err(Disorder::NoHeader) };
        if header.format > FORMAT {
            return Err(Disorder::FromTheFuture(header.format));
        }
        if header.plan.headline >= header.plan.jobs.len() {
            return Err(Disorder::Dangling(0, "job", header.plan.headline));
        }
        if header.hosts.is_empty() {
            return Err(Disorder::Dangling(0, "host", 0));
        }
        for job in &header.plan.jobs {
            let streams = || job.phases.iter().flat_map(|p| &p.streams);
            if streams().next().is_none() {
                return Err(Disorder::Dangling(0, "stream", 0));
            }
            let target = streams().flat_map(|s| &s.targets).find(|t| **t >= header.plan.targets.len());
            if let Some(target) = target {
                return Err(Disorder::Dangling(0, "target", *target));
            }
        }
        let mut record = Self::new(*header);
        for (at, frame) in frames {
            record.take(at, frame)?;
        }
        record.set_aside();
        Ok(record)
    }

    fn take(&mut self, at: usize, frame: Frame) -> Result<(), Disorder> {
        if self.end.is_some() {
            return Err(Disorder::Misplaced(at, "after the end"));
        }
        let before_all = self.runs.is_empty() && self.preconditioned.is_none();
        let open = self.runs.last_mut().filter(|r| r.end.is_none());
        match (frame, open) {
            (Frame::Header(_), _) => return Err(Disorder::Misplaced(at, "a second header")),
            (Frame::Evidence(e), Some(run)) => run.evidence.push(*e),
            (Frame::Evidence(e), None) => self.evidence.push(*e),
            (Frame::Preconditioned(done), None) if before_all => {
                let jobs = self.header.plan.jobs.len();
                if let Some(bad) = done.rounds.iter().find(|r| r.job >= jobs) {
                    return Err(Disorder::Dangling(at, "job", bad.job));
                }
                self.preconditioned = Some(done);
            }
            (Frame::Preconditioned(_), _) => {
                return Err(Disorder::Misplaced(at, "preconditioning"));
            }
            (Frame::Intervals(i), Some(run)) => run.intervals.extend(i.rows),
            (Frame::RunEnd(e), Some(run)) => {
                let streams =
                    self.header.plan.jobs[run.start.job].phases.iter().map(|p| p.streams.len()).max();
                if let Some(bad) = e.streams.iter().find(|s| Some(s.stream) >= streams) {
                    return Err(Disorder::Dangling(at, "stream", bad.stream));
                }
                run.end = Some(*e);
            }
            (Frame::Disturbed(by), None) => self.mark(at, &by)?,
            (Frame::Disturbed(_), Some(_)) => return Err(Disorder::Misplaced(at, "inside a run")),
            (Frame::Intervals(_) | Frame::RunEnd(_), None) => {
                return Err(Disorder::Misplaced(at, "outside a run"));
            }
            (Frame::RunStart(start), _) => {
                if start.job >= self.header.plan.jobs.len() {
                    return Err(Disorder::Dangling(at, "job", start.job));
                }
                if start.phase >= self.header.plan.jobs[start.job].phases.len() {
                    return Err(Disorder::Dangling(at, "phase", start.phase));
                }
                if start.host >= self.header.hosts.len() {
                    return Err(Disorder::Dangling(at, "host", start.host));
                }
                let (intervals, evidence) = (Vec::new(), Vec::new());
                self.runs.push(Run { start, intervals, evidence, end: None, disturbed: None });
            }
            (Frame::End(end), _) => self.end = Some(end),
        }
        Ok(())
    }

    /// Marks the attempt that ended last, all its phases.
    fn mark(&mut self, at: usize, by: &Disturbed) -> Result<(), Disorder> {
        let last = self.runs.last().map(Run::attempt).filter(|a| a.attempt == by.attempt);
        let Some(last) = last else { return Err(Disorder::Misplaced(at, "behind another attempt")) };
        let phases = self.runs.iter_mut().rev().take_while(|r| r.attempt().is_of(&last));
        phases.for_each(|run| run.disturbed = Some(by.clone()));
        Ok(())
    }

    /// Takes away the attempts that do not count.
    fn set_aside(&mut self) {
        let tried: Vec<Attempt> = self.runs.iter().map(Run::attempt).collect();
        let mut counts = attempts::counting(&tried, self.header.plan.is_paired()).into_iter();
        let (runs, aside) =
            std::mem::take(&mut self.runs).into_iter().partition(|_| counts.next() == Some(true));
        (self.runs, self.aside) = (runs, aside);
    }

    /// All that were measured, counting or not, in the order of happening.
    pub fn measured(&self) -> Vec<&Run> {
        let mut all: Vec<&Run> = self.runs.iter().chain(&self.aside).collect();
        // Each of the two is in order already.
        if !self.aside.is_empty() {
            all.sort_by_key(|r| r.start.at_ns);
        }
        all
    }

    /// The runs of one phase of a job, in the order of happening.
    pub fn runs_of(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |r| (r.start.job, r.start.phase) == (job, phase))
    }

    /// Those that ended in order.
    pub fn complete_runs(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        let complete = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        self.runs_of(job, phase).filter(complete)
    }
}
