//! The record: what was seen, as the session file holds it.
//!
//! For: frames and the record they add up to; each part of a frame has a file of its own. Not for: bytes on disk (that is
//! [`frame`]) nor conclusions.
//! This is format 1. When a field changes its meaning, this module becomes `v1.rs` and stays readable.

pub mod stream;

pub use self::stream::{
    AtDriver, Bucket, Cell, Common, Interval, Intervals, Issued, KindEnd, LaneEnd, LaneKind, OpenLoop,
    PREPARES_AHEAD, PriorityEnd, Replayed, StreamEnd, ThreadIo, WorkerEnd, Written,
};
use crate::Known;
use crate::command::CommandEnd;
use crate::evidence::Snapshot;
use crate::fleet::Fleet;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::study::TargetLayout;
use crate::units::{show_count, show_rate, show_share};
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
    /// What all hosts came to, in the session that has the runs of all of them merged.
    Fleet(Box<Fleet>),
    /// Last frame of a file that was closed in order.
    End(End),
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
    /// What is known of the hosts, where the runs are those of several, merged.
    pub fleet: Option<Box<Fleet>>,
    /// The end; `None` where the program was killed.
    pub end: Option<End>,
}

/// A run of a command of the user that has ended.
#[derive(Clone, Copy, Debug)]
pub struct CommandRecord<'r> {
    /// The run with the snapshots around it.
    pub run: &'r Run,
    /// What its parent knows.
    pub end: &'r CommandEnd,
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
        Self { header, evidence, preconditioned: None, runs, aside, fleet: None, end: None }
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
        if header.plan.headline >= header.plan.results() {
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
                let job = self.header.plan.jobs.get(run.start.job);
                let streams = job.and_then(|job| job.phases.iter().map(|p| p.streams.len()).max());
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
                if start.job >= self.header.plan.results() {
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
        let mut counts = counting(&tried, self.header.plan.pairing()).into_iter();
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

    /// The runs of a command that have ended, whatever its exit code.
    pub fn command_runs(&self, command: usize) -> impl Iterator<Item = CommandRecord<'_>> {
        let runs = self.runs.iter().filter(move |run| run.start.job == command);
        runs.filter_map(|run| Some(CommandRecord { run, end: run.end.as_ref()?.command.as_deref()? }))
    }

    /// Those that ended in order.
    pub fn complete_runs(&self, job: usize, phase: usize) -> impl Iterator<Item = &Run> {
        let complete = |r: &&Run| r.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        self.runs_of(job, phase).filter(complete)
    }
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
    /// Why its engine cannot be set up, without the engine's name and without what to type instead; `None` where it was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
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

/// One run with all that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was to be measured, and when it began.
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
    /// Syncs and closes of targets after the last operation that failed. Sessions of older versions have a sentence in the notes instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sync_failures: Vec<SyncFailure>,
    /// CPU time of the whole process in user space and in the kernel while workers ran, in ns: threads of libraries and those
    /// that the kernel works on are in it. `None` where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_ns: Option<[u64; 2]>,
    /// How long fathom as a whole stood still, by the thread that watches the workers; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still: Option<Known<Still>>,
    /// What happened on the way, in sentences: pages that stayed, dirt that did not settle.
    pub notes: Vec<String>,
    /// What is known of a command of the user; `None` where fathom itself did the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandEnd>>,
}

/// A sync or close of a target that failed: the kernel accepted writes and could not store them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFailure {
    /// Index of the target in the plan.
    pub target: usize,
    /// Which call failed.
    pub call: SyncedBy,
    /// The error number; 0 if the kernel gave none.
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
    /// As a sentence names it: `final sync`, `close`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FinalSync => "final sync",
            Self::Close => "close",
        }
    }
}

/// Times for which fathom was stopped or frozen, or the machine was: a thread that only sleeps came back too late and had not waited for a
/// CPU, and samples of the workers' states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Still {
    /// How often.
    pub times: u32,
    /// ns of the one that took longest.
    pub longest_ns: u64,
    /// All together, in ns.
    pub total_ns: u64,
    /// The states of the workers, or why they could not be sampled; `None` in records of a time when nothing sampled them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Known<WorkerStates>>,
}

/// Samples of the workers' states, all workers of a run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStates {
    /// All samples.
    pub samples: u64,
    /// Samples that found a worker stopped: by a signal, by a tracer, or in a freezer.
    pub stopped: u64,
    /// Samples that found a tracer attached to a worker.
    pub traced: u64,
    /// The tracer that was seen first: `strace (pid 4711)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
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
            sync_failures: Vec::new(),
            process_ns: None,
            still: None,
            notes: Vec::new(),
            command: None,
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
    /// It ended before the first run: what was known of the target would have invalidated the number, in a sentence.
    NotMeasured(String),
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

/// What was written before the first run, so that the storage is in the state that lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rounds {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Operations per second of each round, in the order of happening.
    pub iops: Vec<f64>,
}

/// First line of every session file.
pub const MAGIC: &str = "fathom session 1\n";
/// Largest session file that is read: the limit of writing, with room for its end.
pub const MAX_FILE_BYTES: u64 = 80 << 20;

/// Why bytes are not a session.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// No session file at all.
    #[error("this is no session file: its first line is not 'fathom session 1'")]
    NoMagic,
    /// A beginning without its first frame.
    #[error("fathom was killed before the first run, so there is nothing in it")]
    Headless,
    /// The file itself.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// A frame in the middle is damaged.
    #[error("line {line} is damaged: {why}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The frames contradict one another.
    #[error(transparent)]
    Disorder(#[from] Disorder),
}

/// A frame as a line, line feed included.
///
/// # Errors
/// Only where a number has no JSON form, which no frame built by fathom has.
pub fn encode(frame: &Frame) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(frame)?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
}

/// Reads a whole file's bytes. The flag says whether a torn last frame was dropped.
///
/// # Errors
/// [`Unreadable`] for anything but a session whose last frame may be torn.
pub fn decode(bytes: &[u8]) -> Result<(Record, bool), Unreadable> {
    let Some(body) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        let begun = MAGIC.as_bytes().starts_with(bytes);
        return Err(if begun { Unreadable::Headless } else { Unreadable::NoMagic });
    };
    let whole = body.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let mut torn = whole < body.len();
    let lines: Vec<&[u8]> = body[..whole].split_inclusive(|b| *b == b'\n').collect();
    let mut frames = Vec::with_capacity(lines.len());
    for (i, line) in lines.iter().enumerate() {
        match decode_line(line) {
            Ok(frame) => frames.push(frame),
            // A crash of the machine can leave blocks of the last frame unwritten inside the file's length.
            Err(_) if i + 1 == lines.len() => torn = true,
            Err(why) => return Err(Unreadable::Damaged { line: i + 2, why }),
        }
    }
    if frames.is_empty() {
        return Err(Unreadable::Headless);
    }
    Ok((Record::from_frames(frames)?, torn))
}

fn decode_line(line: &[u8]) -> Result<Frame, String> {
    let text = std::str::from_utf8(line).map_err(|e| e.to_string())?.trim_end_matches('\n');
    let (sum, json) = text.split_once(' ').ok_or("no checksum")?;
    let expected = u32::from_str_radix(sum, 16).map_err(|e| format!("checksum: {e}"))?;
    if crc32fast::hash(json.as_bytes()) != expected {
        return Err("the checksum does not match".into());
    }
    serde_json::from_str(json).map_err(|e| e.to_string())
}

/// One measurement of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the job.
    pub job: usize,
    /// How many times the job was measured before.
    pub repeat: u32,
    /// How many times this very run was measured before.
    pub attempt: u32,
    /// Operations per second that were offered, where the strategy chose them.
    pub offered_iops: Option<u64>,
    /// Whether others disturbed it.
    pub disturbed: bool,
    /// Whether it ended in order.
    pub complete: bool,
}

/// What is measured again as one: a run, or a round where its runs are compared with one another.
pub type Unit = (Option<usize>, u32, Option<u64>);

/// Which runs make up a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each run by itself.
    Runs,
    /// All runs of a round.
    Rounds,
    /// The runs of a round that are one test on all targets.
    Tests(TargetLayout),
}

impl Attempt {
    /// What it belongs to.
    pub fn unit(&self, pairing: Pairing) -> Unit {
        match pairing {
            Pairing::Runs => (Some(self.job), self.repeat, self.offered_iops),
            Pairing::Rounds => (None, self.repeat, None),
            Pairing::Tests(layout) => (Some(layout.group(self.job)), self.repeat, None),
        }
    }

    /// Whether it is the same attempt at the same run: another phase of it.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.unit(Pairing::Runs), self.attempt) == (other.unit(Pairing::Runs), other.attempt)
    }
}

/// For each of these attempts whether it counts. Of a unit that is the last attempt that nobody disturbed and that has all the
/// runs of the first; where there is none, the first.
pub fn counting(tried: &[Attempt], pairing: Pairing) -> Vec<bool> {
    if tried.iter().all(|a| a.attempt == 0) {
        return vec![true; tried.len()];
    }
    let mut units: BTreeMap<Unit, BTreeMap<u32, Sum>> = BTreeMap::new();
    for one in tried {
        let sum = units.entry(one.unit(pairing)).or_default().entry(one.attempt).or_default();
        sum.disturbed |= one.disturbed;
        sum.complete += usize::from(one.complete);
    }
    let chosen: BTreeMap<Unit, u32> =
        units.into_iter().map(|(unit, sums)| (unit, that_counts(&sums))).collect();
    tried.iter().map(|a| chosen.get(&a.unit(pairing)) == Some(&a.attempt)).collect()
}

/// What an attempt at a unit came to.
#[derive(Default)]
struct Sum {
    disturbed: bool,
    /// Runs that ended in order.
    complete: usize,
}

/// The attempt that counts of a unit.
fn that_counts(sums: &BTreeMap<u32, Sum>) -> u32 {
    let Some((first, whole)) = sums.first_key_value() else { return 0 };
    let stands = |sum: &Sum| !sum.disturbed && sum.complete >= whole.complete.max(1);
    sums.iter().rev().find(|(_, sum)| stands(sum)).map_or(*first, |(attempt, _)| *attempt)
}

#[cfg(test)]
fn tried(job: usize, repeat: u32, attempt: u32, disturbed: bool) -> Attempt {
    Attempt { job, repeat, attempt, offered_iops: None, disturbed, complete: true }
}

/// Others disturbed a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Which attempt at the run.
    pub attempt: u32,
    /// What they did, at least one thing.
    pub by: Vec<Disturbance>,
}

/// One thing that others did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Disturbance {
    /// They used our disks.
    ForeignIo {
        /// Kernel names of the disks.
        device: String,
        /// Bytes per second, read and written.
        bytes_per_s: f64,
        /// Requests per second; `None` if large operations were split, so that others' requests cannot be counted.
        #[serde(default)]
        ios_per_s: Option<f64>,
    },
    /// The hypervisor took CPU time away.
    StolenCpu {
        /// Part of the time of all CPUs.
        share: f64,
    },
    /// A limit of a cgroup was changed.
    LimitChanged {
        /// The limits that were set before, a line for each.
        before: String,
        /// Those that are set now.
        after: String,
    },
}

impl Disturbed {
    /// `240 MB/s of others on vda`.
    pub fn describe(&self) -> String {
        self.by.iter().map(Disturbance::describe).collect::<Vec<_>>().join("; ")
    }
}

impl Disturbance {
    /// One disturbance in words: `240 MB/s of others on vda (480 requests/s)`.
    pub fn describe(&self) -> String {
        match self {
            Self::ForeignIo { device, bytes_per_s, ios_per_s } => {
                let mb_per_s = show_rate(bytes_per_s / 1e6);
                // Older records have 0 where requests could not be counted.
                let ios = ios_per_s.filter(|ios| *ios > 0.0);
                let ios = ios.map_or(String::new(), |ios| format!(" ({} requests/s)", show_count(ios)));
                format!("{mb_per_s} MB/s of others on {device}{ios}")
            }
            Self::StolenCpu { share } => {
                format!("{} of the CPU time was taken by the hypervisor", show_share(*share))
            }
            Self::LimitChanged { before, after } => {
                format!("a limit was changed from outside: {}", changed(before, after))
            }
        }
    }
}

/// The lines that are on one side alone: `io.max: 254:0 400 (was not set)`.
fn changed(before: &str, after: &str) -> String {
    let only = |these: &str, others: &str| -> Vec<String> {
        these.lines().filter(|l| others.lines().all(|o| o != *l)).map(str::to_owned).collect()
    };
    let (gone, new) = (only(before, after), only(after, before));
    match (gone.join(", "), new.join(", ")) {
        (gone, new) if gone.is_empty() => format!("{new}, which was not set"),
        (gone, new) if new.is_empty() => format!("{gone}, which is no longer set"),
        (gone, new) => format!("from {gone} to {new}"),
    }
}

#[test]
fn the_last_attempt_counts_and_the_first_where_all_were_disturbed() {
    let of = |marks: &[bool]| {
        let all: Vec<Attempt> = marks.iter().zip(0..).map(|(d, attempt)| tried(0, 2, attempt, *d)).collect();
        counting(&all, Pairing::Runs).iter().position(|c| *c)
    };
    assert_eq!(of(&[false]), Some(0));
    assert_eq!(of(&[true]), Some(0));
    assert_eq!(of(&[true, false]), Some(1));
    assert_eq!(of(&[true, true, false]), Some(2));
    assert_eq!(of(&[true, true, true]), Some(0));
    // One that was cut off stands for nothing.
    let cut = Attempt { complete: false, ..tried(0, 0, 1, false) };
    assert_eq!(counting(&[tried(0, 0, 0, true), cut], Pairing::Runs), [true, false]);
}

#[test]
fn other_runs_and_other_loads_are_units_of_their_own() {
    let load =
        |iops, attempt, disturbed| Attempt { offered_iops: Some(iops), ..tried(1, 0, attempt, disturbed) };
    let all =
        [tried(0, 0, 0, true), tried(0, 1, 0, false), load(9, 0, true), load(9, 1, false), load(7, 0, false)];
    assert_eq!(counting(&all, Pairing::Runs), [true, true, false, true, true]);
}

#[test]
fn a_round_counts_as_a_whole_where_its_runs_are_compared() {
    let first = [tried(0, 0, 0, false), tried(1, 0, 0, true)];
    let half = [first.as_slice(), &[tried(1, 0, 1, false)]].concat();
    assert_eq!(counting(&half, Pairing::Rounds), [true, true, false], "half of a round stands for nothing");
    let whole = [half.as_slice(), &[tried(0, 0, 1, false)]].concat();
    assert_eq!(counting(&whole, Pairing::Rounds), [false, false, true, true]);
    let again = [first.as_slice(), &[tried(1, 0, 1, false), tried(0, 0, 1, true)]].concat();
    assert_eq!(counting(&again, Pairing::Rounds), [true, true, false, false]);
}

#[test]
fn a_test_on_all_targets_counts_as_a_whole_and_other_tests_do_not_matter() {
    let layout = TargetLayout { tests: 2, targets: 2 };
    let first = [tried(0, 0, 0, true), tried(1, 0, 0, false), tried(2, 0, 0, false), tried(3, 0, 0, false)];
    let half = [first.as_slice(), &[tried(1, 0, 1, false)]].concat();
    assert_eq!(counting(&half, Pairing::Tests(layout)), [true, true, true, true, false]);
    let whole = [half.as_slice(), &[tried(0, 0, 1, false)]].concat();
    assert_eq!(counting(&whole, Pairing::Tests(layout)), [false, false, true, true, true, true]);
}

#[test]
fn each_is_said_with_its_number() {
    let foreign =
        Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 240e6, ios_per_s: Some(1_920.0) };
    let stolen = Disturbance::StolenCpu { share: 0.042 };
    let words = Disturbed { attempt: 0, by: vec![foreign, stolen] }.describe();
    assert_eq!(
        words,
        "240 MB/s of others on vda (1,920 requests/s); 4.2 % of the CPU time was taken by the hypervisor"
    );
    let large = Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 297e6, ios_per_s: None };
    assert_eq!(large.describe(), "297 MB/s of others on vda");
    let limit = |before: &str, after: &str| {
        Disturbance::LimitChanged { before: before.into(), after: after.into() }.describe()
    };
    assert_eq!(limit("a: 1\n", "a: 1\nb: 2\n"), "a limit was changed from outside: b: 2, which was not set");
    assert_eq!(limit("a: 1", ""), "a limit was changed from outside: a: 1, which is no longer set");
    assert_eq!(limit("a: 1", "a: 2"), "a limit was changed from outside: from a: 1 to a: 2");
}
