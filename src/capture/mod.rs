//! `fathom capture`: from a target to a file with every request that its device got.
//!
//! For: the flow, and what is told at its end. Not for: the tracer (crate `machine`), what its bytes mean (crate `capture`), nor for
//! showing a capture ([`crate::captured`]).

mod files;
mod import;
mod record;
pub(crate) mod subject;

use crate::failure::{Failure, cause};
use crate::output::{self, Outlet, Replace, Rules};
use crate::signals::INTERRUPTED;
use crate::spared::Spared;
use crate::{stderr, stdout};
use capture::verdict::completeness;
use machine::root::Root;
use machine::tracer;
use model::captured::{Ending, Origin, Unit};
use model::name;
use model::units::{show_bytes, show_count, show_ns};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What the user said.
#[derive(Clone, Debug)]
pub struct Request {
    /// Device, file or directory.
    pub target: PathBuf,
    /// A trace of another tool to be converted instead.
    pub import: Option<PathBuf>,
    /// The process whose requests alone are kept.
    pub pid: Option<u32>,
    /// Whether only requests within the extents of the file, or of the files below the directory, are kept.
    pub extents: bool,
    /// Whether insertions are recorded.
    pub queue: bool,
    /// Of each CPU.
    pub buffer_bytes: u64,
    /// How long; until a signal where nothing was said.
    pub time_ns: Option<u64>,
    /// The file.
    pub output: PathBuf,
    /// What it may replace.
    pub replace: Replace,
}

/// What came of a capture.
struct Outcome {
    origin: Origin,
    ending: Ending,
    /// Whether a signal ended it before its time.
    interrupted: bool,
}

/// Captures, and tells what came of it.
///
/// # Errors
/// [`Failure::Usage`] where there is no one device to capture, or the file may not be written; [`Failure::Refused`] where the machine
/// does not let it.
pub fn capture(request: &Request) -> Result<ExitCode, Failure> {
    if let Some(from) = &request.import {
        return import(from, request);
    }
    let subject = subject::find(&Root::real(), &request.target)?;
    if let Some(pid) = request.pid.filter(|pid| tracer::process_of(&Root::real(), *pid).0 != Some(*pid)) {
        return Err(Failure::Usage(format!("--pid {pid}: there is no such process; `ps` shows all")));
    }
    if request.queue && subject.traced.unit == Unit::Bios {
        return Err(Failure::Usage(format!(
            "--queue: {} has no I/O scheduler in which requests could wait; leave it out, or name a device below it",
            subject.layer.name
        )));
    }
    for name in tracer::remove_leftovers() {
        stderr::say(&format!("removed the tracer's instance {name}, which a killed fathom left behind"));
    }
    let tracer = tracer::Tracer::new(request.buffer_bytes).map_err(|e| refused(&e.to_string()))?;
    let place = place(request)?;
    if subject.holds(&Root::real(), &request.output) {
        stderr::say(&format!(
            "{} lies on {} itself, so writing it is among what is captured; name a file elsewhere, such as in /dev/shm",
            name::shown(&request.output),
            subject.layer.name
        ));
    }
    let begin = request.extents.then(|| files::locate_files(request)).transpose()?;
    let outcome = record::record_requests(tracer, &subject, request, &place)?;
    let outcome = match begin {
        Some(begin) => files::keep(&begin, request, &place, outcome)?,
        None => outcome,
    };
    tell(&request.output, &outcome)?;
    let complete = completeness(&outcome.origin, Some(&outcome.ending)).word != "incomplete";
    Ok(match (outcome.interrupted, complete) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, complete) => ExitCode::from(u8::from(!complete)),
    })
}

/// Where the capture goes.
struct Place {
    outlet: Outlet,
    rules: Rules,
}

/// Refuses a file that may not be written. It is made once there is something to write.
fn place(request: &Request) -> Result<Place, Failure> {
    let path = &request.output;
    if output::is_stream(path) {
        return Err(Failure::Usage(format!(
            "-o {}: a capture is a file; type the name of one",
            name::shown(path)
        )));
    }
    let mut spared = Spared::default();
    spared.add(&request.target, "what is captured");
    if let Some(from) = &request.import {
        spared.add(from, "the trace that is converted");
    }
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    Ok(Place { outlet: rules.decide(path)?, rules })
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Refused(format!("-o {} cannot be written: {error}{}", name::shown(path), cause(error)))
}

/// The tracer's refusal, with what it is needed for.
fn refused(why: &str) -> Failure {
    Failure::Refused(format!("requests cannot be captured: {why}"))
}

fn tell(path: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let Outcome { origin, ending, .. } = outcome;
    let complete = completeness(origin, Some(ending));
    let bytes = path.metadata().map_or(0, |facts| facts.len());
    let per_row = if ending.rows == 0 { 0.0 } else { bytes as f64 / ending.rows as f64 };
    let device = origin.device.as_ref().map_or("", |layer| layer.name.as_str());
    let device = origin.partition.as_ref().map_or(device, |part| part.name.as_str());
    let mut text = format!(
        "{}: {}\n{}: {} rows of {device} in {} (ended by {}); {}, {per_row:.1} bytes each\n",
        complete.word.to_uppercase(),
        complete.sentence,
        name::shown(path),
        show_count(ending.rows as f64),
        show_ns(ending.duration_ns as f64),
        ending.why,
        show_bytes(bytes),
    );
    if let Some(pid) = origin.pid {
        text += &format!(
            "Of process {pid} alone: {} requests of others were left out, {} of whom the process is not known\n",
            show_count(ending.of_others as f64),
            show_count(ending.of_unknown as f64)
        );
    }
    if let Some(of) = &ending.of_files {
        text += &format!("{}\n", of.describe());
    }
    text += &format!("`fathom show {}` prints the profile of the load.\n", name::shown(path));
    stdout::text(&text)
}

/// Converts a trace of another tool.
fn import(from: &Path, request: &Request) -> Result<ExitCode, Failure> {
    let (origin, ending) = import::convert(from, request, &place(request)?)?;
    let out = name::shown(&request.output);
    stdout::text(&format!(
        "{out}: {} rows of {} ({}), {} long\n`fathom show {out}` prints the profile of the load.\n",
        show_count(ending.rows as f64),
        name::shown(from),
        origin.imported.unwrap_or_default(),
        show_ns(ending.duration_ns as f64),
    ))?;
    Ok(ExitCode::SUCCESS)
}
