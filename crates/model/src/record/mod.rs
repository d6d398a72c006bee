//! The record: everything that was observed during a session, and the frames of the session file that contain it.
//!
//! A file is `fathom session 1` and then lines `xxxxxxxx {json}`, each ended by a line feed; `xxxxxxxx` is the
//! CRC-32 of the rest of the line. JSON contains no raw line feed, so the last line feed of a file ends its last complete
//! frame.
//!
//! This is format 1. If a field changes its meaning, this module becomes `v1.rs` and still reads files of format 1.

pub mod attempts;
pub mod stream;

pub use crate::payload::Written;
pub use crate::replay::Replayed;
pub use attempts::{
    Attempt, Disturbance, Disturbed, Pairing, Preconditioned, RepeatedUnit, Rounds, which_count,
};

pub use self::stream::{
    AtDriver, Bucket, Cell, Common, Interval, Intervals, Issued, KindEnd, LaneEnd, LaneKind, OpenLoop,
    PREPARES_AHEAD, PriorityEnd, StreamEnd, ThreadIo, WorkerEnd,
};
use crate::Known;
use crate::command::CommandEnd;
use crate::evidence::Snapshot;
use crate::fleet::{Fleet, RunIndex};
use crate::machine::Machine;
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the session file.
pub const FORMAT: u32 = 1;

/// One part of a session. Frames are in order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// First frame of every file.
    Header(Box<Header>),
    /// Kernel text at a moment. Between the start and the end of a run it belongs to that run.
    Evidence(Box<Snapshot>),
    /// The writes before the first run, if the plan requests preconditioning.
    Preconditioned(Preconditioned),
    /// A run begins.
    RunStart(RunStart),
    /// A part of the time series of the run that the last `RunStart` began.
    Intervals(Intervals),
    /// The run that the last `RunStart` began has ended.
    RunEnd(Box<RunEnd>),
    /// Other processes or limits disturbed the run that ended last.
    Disturbed(Disturbed),
    /// The results of all hosts, in the session with the merged runs.
    Fleet(Box<Fleet>),
    /// The last frame of a file that was closed normally.
    End(End),
}

/// A session, or the part of it that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The plan, the machine, and the limits of fathom on this machine.
    pub header: Header,
    /// Evidence from before, between and after the runs.
    pub evidence: Vec<Snapshot>,
    /// The writes before the first run; `None` if there were none, or if the session ended during them.
    pub preconditioned: Option<Preconditioned>,
    /// The runs that count, in order of time.
    pub runs: Vec<Run>,
    /// Attempts that do not count because another attempt at the same run does.
    pub uncounted_runs: Vec<Run>,
    /// The hosts whose runs are merged into this session; `None` for a session of one host.
    pub fleet: Option<Box<Fleet>>,
    /// How the session ended; `None` if fathom was killed.
    pub end: Option<End>,
}

/// A completed run of a user's command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRecord<'r> {
    /// The run with the snapshots around it.
    pub run: &'r Run,
    /// The observations of the command's parent process.
    pub end: &'r CommandEnd,
}

/// Why frames do not form a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    /// The first frame is not a header.
    #[error("this is not a session file: it does not begin with a header")]
    NoHeader,
    /// A later version wrote the file.
    #[error(
        "this session file has format {0}, and this fathom reads format {FORMAT} at most; use the fathom that wrote it or a later one"
    )]
    FromTheFuture(u32),
    /// A frame is in an invalid position.
    #[error("frame {0} ({1}) is in the wrong place")]
    Misplaced(usize, &'static str),
    /// An index refers to nothing.
    #[error("frame {0} names {1} {2}, which the plan does not have")]
    Dangling(usize, &'static str, usize),
}

impl Record {
    /// Creates the record of a session that has just begun.
    pub fn new(header: Header) -> Self {
        let (evidence, runs, uncounted_runs) = (Vec::new(), Vec::new(), Vec::new());
        Self { header, evidence, preconditioned: None, runs, uncounted_runs, fleet: None, end: None }
    }

    /// Builds a record from frames.
    ///
    /// # Errors
    /// [`Disorder`] if the frames contradict each other.
    pub fn from_frames(frames: impl IntoIterator<Item = Frame>) -> Result<Self, Disorder> {
        let mut frames = frames.into_iter().enumerate();
        let Some((_, Frame::Header(header))) = frames.next() else { return Err(Disorder::NoHeader) };
        if header.format > FORMAT {
            return Err(Disorder::FromTheFuture(header.format));
        }
        if header.plan.headline >= header.plan.result_count() {
            return Err(Disorder::Dangling(0, "job", header.plan.headline));
        }
        if header.hosts.is_empty() {
            return Err(Disorder::Dangling(0, "host", 0));
        }
        for job in &header.plan.jobs {
            if job.streams().next().is_none() {
                return Err(Disorder::Dangling(0, "stream", 0));
            }
            let target = job.streams().flat_map(|s| &s.targets).find(|t| **t >= header.plan.targets.len());
            if let Some(target) = target {
                return Err(Disorder::Dangling(0, "target", *target));
            }
        }
        let mut record = Self::new(*header);
        for (at, frame) in frames {
            record.add_frame(at, frame)?;
        }
        record.remove_uncounted_attempts();
        Ok(record)
    }

    fn add_frame(&mut self, at: usize, frame: Frame) -> Result<(), Disorder> {
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
                let job = self.header.plan.jobs.get(run.start.job);
                let streams = job.and_then(|job| job.phases.iter().map(|p| p.streams.len()).max());
                if let Some(bad) = e.streams.iter().find(|s| Some(s.stream) >= streams) {
                    return Err(Disorder::Dangling(at, "stream", bad.stream));
                }
                run.end = Some(*e);
            }
            (Frame::Disturbed(by), None) => self.mark_disturbed(at, &by)?,
            (Frame::Disturbed(_), Some(_)) => return Err(Disorder::Misplaced(at, "inside a run")),
            (Frame::Intervals(_) | Frame::RunEnd(_), None) => {
                return Err(Disorder::Misplaced(at, "outside a run"));
            }
            (Frame::RunStart(start), _) => {
                if start.job >= self.header.plan.result_count() {
                    return Err(Disorder::Dangling(at, "job", start.job));
                }
                let phases = self.header.plan.jobs.get(start.job).map_or(1, |job| job.phases.len());
                if start.phase >= phases {
                    return Err(Disorder::Dangling(at, "phase", start.phase));
                }
                if start.host >= self.header.hosts.len() {
                    return Err(Disorder::Dangling(at, "host", start.host));
                }
                let (intervals, evidence) = (Vec::new(), Vec::new());
                self.runs.push(Run { start, intervals, evidence, end: None, disturbed: None });
            }
            (Frame::Fleet(fleet), _) => self.fleet = Some(fleet),
            (Frame::End(end), _) => self.end = Some(end),
        }
        Ok(())
    }

    /// Marks all phases of the attempt that ended last as disturbed.
    fn mark_disturbed(&mut self, at: usize, by: &Disturbed) -> Result<(), Disorder> {
        let last = self.runs.last().map(Run::attempt).filter(|a| a.attempt == by.attempt);
        let Some(last) = last else { return Err(Disorder::Misplaced(at, "after another attempt")) };
        let phases = self.runs.iter_mut().rev().take_while(|r| r.attempt().is_same_attempt(&last));
        phases.for_each(|run| run.disturbed = Some(by.clone()));
        Ok(())
    }

    /// Moves the attempts that do not count to `uncounted_runs`.
    fn remove_uncounted_attempts(&mut self) {
        let tried: Vec<Attempt> = self.runs.iter().map(Run::attempt).collect();
        let mut counts = which_count(&tried, self.header.plan.pairing()).into_iter();
        let (runs, uncounted_runs) =
            std::mem::take(&mut self.runs).into_iter().partition(|_| counts.next() == Some(true));
        (self.runs, self.uncounted_runs) = (runs, uncounted_runs);
    }

    /// Returns all attempts, whether or not they count, in order of time.
    pub fn all_attempts(&self) -> Vec<&Run> {
        let mut all: Vec<&Run> = self.runs.iter().chain(&self.uncounted_runs).collect();
        // Each list is sorted, so the result is sorted too if there are no uncounted runs.
        if !self.uncounted_runs.is_empty() {
            all.sort_by_key(|r| r.start.at_ns);
        }
        all
    }

    /// Returns the runs of one phase of a job, in order of time.
    pub fn runs_of(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |r| (r.start.job, r.start.phase) == (job, phase))
    }

    /// Returns the runs of a command that have ended, with any exit code.
    pub fn command_runs(&self, command: usize) -> impl Iterator<Item = CommandRecord<'_>> {
        let runs = self.runs.iter().filter(move |run| run.start.job == command);
        runs.filter_map(|run| Some(CommandRecord { run, end: run.end.as_ref()?.command.as_deref()? }))
    }

    /// Returns the runs of one phase that were complete.
    pub fn complete_runs(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        let complete = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        self.runs_of(job, phase).filter(complete)
    }
}

/// The header of a session: the plan, the hosts, and the limits of fathom on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the session file.
    pub format: u32,
    /// Version of the program that measured.
    pub version: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// The plan: the command line, and the targets and jobs that follow from it.
    pub plan: Plan,
    /// The hosts of the measurement; usually one.
    pub hosts: Vec<Machine>,
    /// The clock of the timestamps.
    pub clock: Clock,
    /// The limits of fathom itself on this machine.
    #[serde(default)]
    pub self_test: SelfTest,
}

/// Limits of fathom itself for the streams of the plan, measured before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Bytes per second that one thread copies in memory, in blocks of 1 MiB.
    pub copy_bytes_per_s: f64,
    /// One ceiling for each tested stream.
    pub ceilings: Vec<Ceiling>,
    /// One trial for each job of a comparison of interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// A job that was partly run before the first run, to find out whether it works on this machine, and how many
/// system calls it makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Index of the job.
    pub job: usize,
    /// Bytes that the trial moved, or why this job is not measured.
    pub moved_bytes: Known<u64>,
    /// Why the engine cannot be set up, without the engine's name and without advice; `None` if it was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// System calls of the workers during the trial, or why they were not counted.
    pub calls: Known<u64>,
}

/// The shortest times per operation that one worker of a stream reaches without storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Index of the job.
    pub job: usize,
    /// Index of the phase.
    pub phase: usize,
    /// Index of the stream.
    pub stream: usize,
    /// Time per operation of the loop without storage (engine `null`), including the data of writes, in ns.
    pub loop_ns: Known<f64>,
    /// Time per operation through the kernel's interface without any I/O (`io_uring:nop`), in ns.
    pub interface_ns: Known<f64>,
}

/// The clock of the timestamps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `tsc` or `clock_monotonic`.
    pub name: String,
    /// Why this clock is used; `None` if it is the preferred one.
    pub reason: Option<String>,
    /// Measured cost of reading the clock, in picoseconds.
    pub cost_ps: u64,
}

/// A run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Index of the phase of the job. Each phase of a repeat is a separate run in the record.
    #[serde(default)]
    pub phase: usize,
    /// Number of times that this job was measured before.
    pub repeat: u32,
    /// Number of earlier, disturbed attempts at this run; 0 in older files.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub attempt: u32,
    /// Operations per second offered in an open loop, if the strategy chose them. `None` if the job sets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// Index into the header's hosts.
    pub host: usize,
    /// Time of the start, in ns since the session began.
    pub at_ns: u64,
    /// Size of each target after preparation, in bytes.
    pub target_bytes: Vec<u64>,
}

impl RunStart {
    /// Returns the place of the run in the session.
    pub fn index(&self) -> RunIndex {
        let Self { job, phase, repeat, attempt, .. } = *self;
        RunIndex { job: job as u32, phase: phase as u32, repeat, attempt }
    }
}

/// One run with everything observed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Job, repeat and host of the run, and when it began.
    pub start: RunStart,
    /// Time series of the run.
    pub intervals: Vec<Interval>,
    /// Text of kernel files, read during the run.
    pub evidence: Vec<Snapshot>,
    /// How the run ended; `None` if fathom was killed during the run.
    pub end: Option<RunEnd>,
    /// The disturbance of the run, decided after its end; `None` if it was undisturbed.
    pub disturbed: Option<Disturbed>,
}

impl Run {
    /// Returns which attempt at which run this is.
    pub fn attempt(&self) -> Attempt {
        let RunStart { job, repeat, attempt, offered_iops, .. } = self.start;
        let complete = self.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        Attempt { job, repeat, attempt, offered_iops, disturbed: self.disturbed.is_some(), complete }
    }
}

/// A run has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Time of the end, in ns since the session began.
    pub at_ns: u64,
    /// How the run ended.
    pub ending: RunEnding,
    /// One entry for each stream of the phase.
    pub streams: Vec<StreamEnd>,
    /// One entry for each worker.
    pub workers: Vec<WorkerEnd>,
    /// Time from the last completion to the end of the final sync, in ns; `None` if nothing was written, or if the run or
    /// the sync failed.
    pub sync_ns: Option<u64>,
    /// Failed syncs and closes of targets after the last operation. Sessions of older versions have a sentence in
    /// the notes instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_failures: Vec<SyncFailure>,
    /// CPU time of the process while workers ran, in user space and in the kernel, in ns. Includes threads of libraries and
    /// of the kernel, but not the live view. `None` if the time was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<[u64; 2]>,
    /// Time for which all of fathom was stopped, as the watchdog thread measured it. `Err` has the reason if this time is
    /// unknown; `None` without a watchdog.
    #[serde(default, rename = "still", skip_serializing_if = "Option::is_none")]
    pub stops: Option<Known<Stops>>,
    /// Incidents as sentences, such as pages that stayed cached or dirty data that did not settle.
    pub notes: Vec<String>,
    /// The observations of the parent process of a user's command; `None` if fathom did the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandEnd>>,
}

/// A failed sync or close of a target: the kernel accepted writes and could not store them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFailure {
    /// Index of the target in the plan.
    pub target: usize,
    /// The call that failed.
    pub call: SyncedBy,
    /// The error number; 0 if the kernel reported none.
    pub errno: i32,
}

/// A call that makes writes stable after the last operation, or reports that they were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncedBy {
    /// `fdatasync(2)` on the target.
    FinalSync,
    /// `close(2)` of a worker's descriptor.
    Close,
}

impl SyncedBy {
    /// Returns the name in sentences: `final sync`, `close`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FinalSync => "final sync",
            Self::Close => "close",
        }
    }
}

/// Times for which fathom or the machine was stopped or frozen, and samples of the workers' states. A watchdog thread,
/// which only sleeps, detects a stop: it wakes up late although it did not wait for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    /// Number of stops.
    #[serde(rename = "times")]
    pub count: u32,
    /// Length of the longest stop in ns.
    pub longest_ns: u64,
    /// Total time of all stops in ns.
    pub total_ns: u64,
    /// The states of the workers, or why they could not be sampled; `None` in records from before they were
    /// sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Known<WorkerStates>>,
}

/// Samples of the workers' states, all workers of a run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStates {
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that found a worker stopped: by a signal, by a tracer, or in a freezer.
    pub stopped: u64,
    /// Number of samples that found a tracer attached to a worker.
    pub traced: u64,
    /// The tracer that was seen first: `strace (pid 4711)`; `None` if none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
}

impl RunEnd {
    /// Creates the end of a run that never began.
    pub fn without(ending: RunEnding) -> Self {
        Self {
            at_ns: 0,
            ending,
            streams: Vec::new(),
            workers: Vec::new(),
            sync_ns: None,
            sync_failures: Vec::new(),
            process_ns: None,
            stops: None,
            notes: Vec::new(),
            command: None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "why")]
pub enum RunEnding {
    /// The measured window is complete.
    Complete,
    /// A signal ended the run or the session.
    Interrupted,
    /// An error ended the run or the session; the sentence describes the error.
    Failed(String),
    /// The session ended before the first run, because a fact about the target would have invalidated the result. The
    /// sentence describes the fact.
    NotMeasured(String),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// How the session ended.
    pub ending: RunEnding,
    /// Incidents since the last run, in sentences.
    pub notes: Vec<String>,
    /// Drift of the time stamp counter since the start, relative to the kernel's clock, in parts per million;
    /// `None` if the kernel's clock is used.
    pub clock_drift_ppm: Option<f64>,
}

/// First line of every session file.
pub const MAGIC: &str = "fathom session 1\n";
/// Maximum size in bytes of a session file that is read. The files of fathom are far smaller: after 64 MiB fathom stores no more time
/// series and snapshots, and the `RunEnd` frames, which are always stored, need about 20 MiB for 10,000 runs.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Why the bytes of a file are not a session.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file does not begin like a session. The text states what the file is and what to type.
    #[error("this is not a session file: {0}")]
    NoMagic(String),
    /// The file has no complete first frame.
    #[error("the session is empty: fathom ended before the first run")]
    Headless,
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// A frame before the last one is damaged.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// Why the line is damaged.
        why: String,
    },
    /// The frames contradict each other.
    #[error(transparent)]
    Disorder(#[from] Disorder),
}

/// Formats a frame as a line, including the line feed.
///
/// # Errors
/// Only if a number has no JSON form. No frame built by fathom contains such a number.
pub fn encode(frame: &Frame) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(frame)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

/// The content of a session file.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The record of all complete frames.
    pub record: Record,
    /// Whether an incomplete last frame was dropped.
    pub is_torn: bool,
}

/// Parses the bytes of a session file.
///
/// # Errors
///
/// [`Unreadable`] if the bytes are not a session. Only the last frame may be incomplete.
pub fn decode(bytes: &[u8]) -> Result<Decoded, Unreadable> {
    let Some(body) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        let begun = MAGIC.as_bytes().starts_with(bytes);
        return Err(if begun {
            Unreadable::Headless
        } else {
            Unreadable::NoMagic(describe_other_file(bytes))
        });
    };
    let complete = body.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let mut is_torn = complete < body.len();
    let lines: Vec<&[u8]> = body[..complete].split_inclusive(|b| *b == b'\n').collect();
    let mut frames = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        match decode_line(line) {
            Ok(frame) => frames.push(frame),
            // A crash of the machine can leave blocks of the last frame unwritten inside the file's length.
            Err(_) if i + 1 == lines.len() => is_torn = true,
            Err(why) => return Err(Unreadable::Damaged { line: i + 2, why }),
        }
    }
    if frames.is_empty() {
        return Err(Unreadable::Headless);
    }
    Ok(Decoded { record: Record::from_frames(frames)?, is_torn })
}

/// Describes a file that is not a session, and what to type instead.
fn describe_other_file(bytes: &[u8]) -> String {
    if is_fio_result(bytes) {
        return FIO_RESULT.into();
    }
    let report: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    if report.get("fathom").is_none() {
        return "its first line is not 'fathom session 1'; type an id of `fathom list`".into();
    }
    let session = report["session"].as_str().and_then(|file| Path::new(file).file_stem()?.to_str());
    let instead =
        session.map_or_else(|| "an id of `fathom list`".into(), |id| format!("the id of its session, {id}"));
    format!(
        "it is a JSON report of fathom, which only `fathom show` and `fathom compare` read; type {instead}"
    )
}

/// Message for a result of fio that was given as a session.
pub const FIO_RESULT: &str = "it is a result of fio, which lacks the kernel's counters; type `fathom fio` and the same arguments to measure with \
     fathom, then `fathom list` for the id";

/// Whether a file is a result of fio in JSON, terse or text form.
pub fn is_fio_result(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(FIO_START_BYTES)];
    let is_terse = start.get(1..6) == Some(b";fio-") && start[0].is_ascii_digit();
    is_terse
        || contains(start, b"\"fio version\"")
        || (contains(start, b": (g=") && contains(start, b"\nfio-"))
}

/// Number of bytes at the start of a file that are searched for fio's name, because messages of fio may precede its
/// result.
const FIO_START_BYTES: usize = 64 << 10;

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn decode_line(line: &[u8]) -> Result<Frame, String> {
    let text = std::str::from_utf8(line).map_err(|e| e.to_string())?.trim_end_matches('\n');
    let (sum, json) = text.split_once(' ').ok_or("the line has no checksum")?;
    let expected = u32::from_str_radix(sum, 16).map_err(|_| "the checksum is not a hexadecimal number")?;
    if crc32fast::hash(json.as_bytes()) != expected {
        return Err("the checksum does not match".into());
    }
    serde_json::from_str(json).map_err(|e| e.to_string())
}
