//! Captures that are replayed: what their load is like, and handing its operations to the engine while it runs.
//!
//! For: both passes over the file, the second one on a thread of its own that reads ahead. Not for: what requests mean and wait for (crate
//! `capture`), nor for where they go (the plan).

use crate::capture_file;
use crate::failure::Failure;
use capture::file::Reader;
use capture::replay::{self as rows, Load, Scan, Steps, Way};
use capture::verdict::completeness;
use engine::source::replay::{Counts, Feed, Given, MOST_LANES, REACH, Replay as Source, Step, feed};
use model::job::{Original, Replay, ReplayPace};
use model::name;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the reader rests where the engine has enough.
const REST: Duration = Duration::from_micros(500);
/// Longest wait for the reader to be ahead before the first operation.
const HEAD_START: Duration = Duration::from_secs(10);

/// A capture after its first pass.
pub(crate) struct Scanned {
    /// What its load is like.
    pub(crate) load: Load,
    /// The same in figures, with what is to be said of the file.
    pub(crate) original: Original,
}

/// Reads a capture to its end.
///
/// # Errors
/// [`Failure::Usage`] where it is none that can be read.
pub(crate) fn scan(path: &Path) -> Result<Scanned, Failure> {
    let mut reader = capture_file::open(path)?;
    let mut scan = Scan::new(&reader.origin);
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        scan.add(rows, names);
    }
    let load = scan.finish(MOST_LANES);
    let origin = &reader.origin;
    let device = origin.partition.as_ref().map(|part| part.name.clone());
    let device = device.or_else(|| origin.device.as_ref().map(|device| device.name.clone()));
    let original = Original {
        device: device.or_else(|| origin.imported.clone()).unwrap_or_default(),
        completeness: completeness(origin, reader.ending.as_ref()).word,
        damage: reader.damage,
        ..load.original()
    };
    Ok(Scanned { load, original })
}

/// Begins the second pass, and gives the source that its operations come from. Operations that must be stable are those of the file with
/// index 1, where `has_stable_file`. It ends with the source.
///
/// # Errors
/// [`Failure::Refused`] where the capture is not what was planned any more, or no thread can be started.
pub(crate) fn source(
    replay: &Replay,
    depth: u32,
    has_stable_file: bool,
    counts: &Arc<Counts>,
) -> Result<Source, Failure> {
    let path = name::path(&replay.file);
    let Scanned { load, original } = scan(&path)?;
    if (original.operations(), original.end_bytes)
        != (replay.original.operations(), replay.original.end_bytes)
    {
        return Err(Failure::Refused(format!(
            "{} has changed since this was planned; begin again",
            name::shown(&path)
        )));
    }
    let reader = capture_file::open(&path)?;
    let way = Way { pace: replay.pace, speed: replay.speed, dense: replay.dense, reach: REACH };
    let steps = Steps::new(&reader.origin, load, way);
    let lanes = steps.lanes();
    let (to, from) = feed();
    let (counts_there, is_timed) = (Arc::clone(counts), replay.pace != ReplayPace::Fast);
    let thread = std::thread::Builder::new().name("fathom-replay".into());
    let started = thread.spawn(move || {
        let _ = sys::thread::block_signals();
        read(reader, steps, to, has_stable_file, &counts_there);
    });
    started.map_err(|e| {
        Failure::Refused(format!("a thread to read the capture cannot be started: {e}{}", sys::cause(&e)))
    })?;
    let begun = Instant::now();
    // Full, or all that there is.
    while !from.is_full() && begun.elapsed() < HEAD_START {
        std::thread::sleep(REST);
    }
    Ok(Source::new(from, lanes, depth, is_timed, Arc::clone(counts)))
}

/// Hands all operations of a capture on, in their order.
fn read(
    mut reader: Reader<BufReader<File>>,
    mut steps: Steps,
    mut to: Feed,
    has_stable_file: bool,
    counts: &Counts,
) {
    let mut block = Vec::new();
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        steps.add(rows, names, &mut block);
        counts.leave_out(steps.outside);
        for step in block.drain(..) {
            let step = handed_on(&step, has_stable_file);
            loop {
                match to.give(step) {
                    Given::Taken => break,
                    Given::Full => std::thread::sleep(REST),
                    Given::Gone => return,
                }
            }
        }
    }
}

/// As the engine takes it.
fn handed_on(step: &rows::Step, has_stable_file: bool) -> Step {
    let rows::Step { offset, length, kind, is_stable, lane, after, wait_ns } = *step;
    Step { offset, wait_ns, length, after, lane, file: u16::from(is_stable && has_stable_file), kind }
}
