//! Replays a capture or trace: reads its figures, and feeds its operations to the engine while it runs.
//!
//! 1. [`scan`] reads the file once for its figures.
//! 2. [`source`] starts a thread that reads the file again, ahead of the engine.
//!
//! `plan::replay` turns the figures into a workload. Crate `capture` turns requests into operations, and decides which earlier operations
//! each one waits for.

use crate::capture::capture_file::{device_name, is_capture};
use crate::capture::{Trace, capture_file, open_trace, trouble};
use crate::failure::Failure;
use capture::capture_file::Reader;
use capture::completeness::completeness;
use capture::foreign::{Language, Trouble};
use capture::replay::{self as rows, Load, ReplaySettings, Scan, Steps};
use engine::source::replay::{
    MAX_TASKS, REACH, Replay as Source, ReplayCounts, Sent, Step, StepSender, connect,
};
use model::captured::{Ending, Origin};
use model::job::{Changes, Original, Replay, ReplayPace};
use model::name;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace::row::{Names, Row};

/// How long the reading thread sleeps while the feed to the engine is full.
const READER_SLEEP: Duration = Duration::from_micros(500);
/// Longest wait for the feed to fill before the first operation.
const MAX_HEAD_START: Duration = Duration::from_secs(10);

/// The figures of a capture or trace from the first pass.
pub(crate) struct Scanned {
    load: Load,
    /// Whether any completion time is known.
    pub(crate) has_completions: bool,
    /// Whether some writes had to be stable when they completed (FUA).
    pub(crate) has_stable_writes: bool,
    /// Figures of the capture or trace, with remarks about the file.
    pub(crate) original: Original,
    /// Files that the trace names; empty for a capture.
    pub(crate) files: Vec<String>,
}

/// An open capture or trace.
enum Rows {
    Capture(Box<Reader<BufReader<File>>>),
    Trace(Box<Trace>),
}

/// Facts about a capture or trace that are known only after its last request.
struct Ended {
    ending: Option<Ending>,
    damage: Option<String>,
    files: Vec<String>,
}

impl Rows {
    fn open(path: &Path) -> Result<Self, Failure> {
        if is_capture(path) {
            return Ok(Self::Capture(Box::new(capture_file::open(path)?)));
        }
        Ok(Self::Trace(Box::new(open_trace(path)?)))
    }

    fn origin(&self) -> &Origin {
        match self {
            Self::Capture(reader) => &reader.origin,
            Self::Trace(trace) => &trace.origin,
        }
    }

    /// Passes on all rows until `take` returns false.
    fn each(self, mut take: impl FnMut(&[Row], &Names) -> bool) -> Result<Ended, Trouble> {
        match self {
            Self::Capture(mut reader) => {
                while reader.block().is_some() {
                    let (rows, names) = reader.last();
                    if !take(rows, names) {
                        break;
                    }
                }
                Ok(Ended { ending: reader.ending, damage: reader.damage, files: Vec::new() })
            }
            Self::Trace(trace) => {
                let Trace { language, files, .. } = *trace;
                let mut put = |row: &Row, names: &Names| {
                    let wants_more = take(std::slice::from_ref(row), names);
                    if wants_more { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
                };
                let (names, ending) = language.convert(Trace::readers(files), &mut put)?;
                let is_log = matches!(language, Language::Iolog(_));
                let files = names.all_tasks().iter().filter(|_| is_log).map(|task| task.name.clone());
                Ok(Ended { files: files.collect(), ending: Some(ending), damage: None })
            }
        }
    }
}

/// Reads a capture or a trace to its end, and returns its figures.
///
/// # Errors
/// [`Failure::Usage`] if the file cannot be opened, has an unknown format or cannot be replayed; [`Failure::Refused`] if reading a trace
/// fails.
pub(crate) fn scan(path: &Path, changes: &Changes) -> Result<Scanned, Failure> {
    let rows = Rows::open(path)?;
    let origin = rows.origin().clone();
    let mut scan = Scan::new(&origin, changes);
    let read = rows.each(|rows, names| {
        scan.add(rows, names);
        true
    });
    let Ended { ending, damage, files } = read.map_err(|why| trouble(path, why, "read"))?;
    if let Some(within) = ending.as_ref().map(|ending| ending.within_sectors).filter(|n| *n > 0) {
        return Err(Failure::Usage(format!(
            "{}: operations that begin or end within a sector of 512 bytes ({within}) cannot be replayed; `fathom capture --import` rounds them up to whole sectors",
            name::shown(path)
        )));
    }
    let load = scan.finish(MAX_TASKS);
    let device = device_name(&origin).or(origin.imported.as_deref()).unwrap_or_default();
    let original = Original {
        device: device.to_owned(),
        unit: origin.unit,
        completeness: completeness(&origin, ending.as_ref()).word,
        damage,
        ..load.original()
    };
    let (has_completions, has_stable_writes) = (load.has_completions(), load.has_stable_writes());
    Ok(Scanned { load, has_completions, has_stable_writes, original, files })
}

/// Starts the second pass over the file, and returns its operations as a source for the engine.
/// With `has_stable_file`, writes that must be stable when they complete go to the file with index
/// 1. The pass ends when the source is dropped.
///
/// # Errors
/// As [`scan`]. Also [`Failure::Refused`] if the file differs from the planned one, or no thread can be started.
pub(crate) fn source(
    replay: &Replay,
    depth: u32,
    has_stable_file: bool,
    counts: &Arc<ReplayCounts>,
) -> Result<Source, Failure> {
    let path = name::path(&replay.file);
    let Scanned { load, original, .. } = scan(&path, &replay.changes)?;
    if (original.operations(), original.end_bytes)
        != (replay.original.operations(), replay.original.end_bytes)
    {
        return Err(Failure::Refused(format!(
            "{} has changed since the run was planned; repeat the command",
            name::shown(&path)
        )));
    }
    let rows = Rows::open(&path)?;
    let settings =
        ReplaySettings { pace: replay.pace, speed: replay.speed, dense: replay.dense, reach: REACH };
    let steps = Steps::new(rows.origin(), &replay.changes, load, settings);
    let tasks = steps.lanes();
    let (to, from) = connect();
    let (counts_there, is_timed) = (Arc::clone(counts), replay.pace != ReplayPace::Fast);
    let thread = std::thread::Builder::new().name("fathom-replay".into());
    let started = thread.spawn(move || {
        let _ = sys::thread::block_signals();
        read(rows, steps, to, has_stable_file, &counts_there);
    });
    started.map_err(|e| {
        Failure::Refused(format!("fathom cannot start a thread to read the capture: {e}{}", sys::cause(&e)))
    })?;
    let begun = Instant::now();
    // Wait until the feed is full or has everything.
    while !from.is_full() && begun.elapsed() < MAX_HEAD_START {
        std::thread::sleep(READER_SLEEP);
    }
    Ok(Source::new(from, tasks, depth, is_timed, Arc::clone(counts)))
}

/// Reads a capture or trace, and passes its operations on in order.
fn read(rows: Rows, mut steps: Steps, mut to: StepSender, has_stable_file: bool, counts: &ReplayCounts) {
    let mut block = Vec::new();
    // A read error ends the replay early, with fewer operations than the original.
    let _ = rows.each(|rows, names| {
        steps.add(rows, names, &mut block);
        counts.set_skipped_discards(steps.outside);
        block.drain(..).all(|step| push_step(&mut to, to_engine_step(&step, has_stable_file)))
    });
}

/// Passes an operation to the engine as soon as the feed has room. Returns false if the replay is over.
fn push_step(to: &mut StepSender, step: Step) -> bool {
    loop {
        match to.send(step) {
            Sent::InRing => return true,
            Sent::Full => std::thread::sleep(READER_SLEEP),
            Sent::LoopEnded => return false,
        }
    }
}

/// Converts a step to the engine's form.
fn to_engine_step(step: &rows::Step, has_stable_file: bool) -> Step {
    let rows::Step { offset, length, kind, is_stable, lane, waits_back, wait_ns } = *step;
    let file = u16::from(is_stable && has_stable_file);
    Step { offset, wait_ns, length, waits_back, task: lane, file, kind }
}
