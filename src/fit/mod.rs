//! `fathom fit`: from a capture to a job file, and whether that job behaves like it.
//!
//! For: reading the capture twice and handing on. Not for: what the job says (crate `capture`), nor for running it ([`fit_check`]).

mod fit_check;
mod children;
#[cfg(test)]
mod tests;

use crate::capture_file;
use crate::failure::Failure;
use crate::output::{self, Outlet, Replace, Rules};
use crate::spared::Spared;
use crate::{stderr, stdout};
use capture::fit::{Fitted, Gathering, Head, Survey};
use capture::verdict::completeness;
pub use fit_check::check;
use model::captured::Origin;
use model::fitted::FitCheck;
use model::name;
use report::Format;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a job file is called where nobody says.
const JOB_FILE: &str = "job.toml";

/// What the user said.
#[derive(Debug)]
pub struct Request {
    /// What `fathom capture` wrote.
    pub capture: PathBuf,
    /// The job file; standard output where nothing was said.
    pub output: Option<PathBuf>,
    /// What it may replace.
    pub replace: Replace,
}

/// What the user said to have a fit checked.
#[derive(Debug)]
pub struct CheckRequest {
    /// What `fathom capture` wrote.
    pub capture: PathBuf,
    /// What the job runs on.
    pub target: PathBuf,
    /// The job; fitted for this where `None`.
    pub job: Option<PathBuf>,
    /// Leave to overwrite the target.
    pub destroy: Option<OsString>,
    /// Paths of what may be written though users of it may be hidden.
    pub unseen_users: Vec<PathBuf>,
    /// The form on standard output.
    pub format: &'static Format,
    /// Files to write too.
    pub outputs: Vec<PathBuf>,
    /// What they may replace.
    pub replace: Replace,
}

/// One or the other.
#[derive(Debug)]
pub enum Action {
    /// Write a job file.
    Fit(Request),
    /// Run it and compare.
    Check(Box<CheckRequest>),
}

/// Writes the job file.
///
/// # Errors
/// [`Failure::Usage`] where the capture cannot be read or has nothing to fit a job to, or the place is taken; [`Failure::Refused`] where it
/// cannot be written.
pub fn fit(request: &Request) -> Result<ExitCode, Failure> {
    let mut spared = Spared::default();
    spared.add(&request.capture, "the capture itself");
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    let outlet = request.output.as_deref().map(|path| rules.decide(path)).transpose()?;
    let file = request.output.as_deref().filter(|path| !output::is_stream(path));
    let job = fitted(&request.capture, file.unwrap_or(Path::new(JOB_FILE)))?;
    match outlet.filter(|outlet| !outlet.is_stdout()) {
        None => stdout::text(&job.text)?,
        Some(outlet) => {
            outlet.write(job.text.as_bytes(), &rules)?;
            stdout::text(&format!("{}\n", name::shown(outlet.path_as_typed())))?;
        }
    }
    if let Some(damage) = &job.damage {
        stderr::say(&format!(
            "fathom: {}: {damage}; the job is fitted to what is before that",
            name::shown(&request.capture)
        ));
    }
    Ok(ExitCode::from(u8::from(job.damage.is_some())))
}

/// A job that was fitted.
struct Job {
    text: String,
    damage: Option<String>,
    origin: Origin,
    end_sector: u64,
    has_closed_loops: bool,
}

/// Fits a job to a capture; `file` is where it will be.
fn fitted(path: &Path, file: &Path) -> Result<Job, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let mut first = capture_file::open(path)?;
    let mut survey = Survey::new(&first.origin);
    while first.block().is_some() {
        let (rows, names) = first.last();
        survey.add(rows, names);
    }
    let mut gathering = Gathering::new(&first.origin, survey, &first.names).map_err(|why| {
        let damage = first.damage.as_ref().map_or_else(String::new, |damage| format!(" ({damage})"));
        usage(format!("{why}{damage}"))
    })?;
    let mut second = capture_file::open(path)?;
    while second.block().is_some() {
        let (rows, names) = second.last();
        gathering.add(rows, names);
    }
    let fitted: Fitted = gathering.finish();
    let origin = first.origin;
    let device = origin.partition.as_ref().map(|part| part.name.clone());
    let device = device.or_else(|| origin.device.as_ref().map(|device| device.name.clone()));
    let complete = completeness(&origin, first.ending.as_ref());
    let head = Head {
        capture: name::shown(path),
        device: device.or_else(|| origin.imported.clone()).unwrap_or_else(|| "an unknown device".into()),
        completeness: complete.word.to_uppercase() + ": " + &complete.sentence,
        damage: first.damage.clone(),
        file: name::shown(file),
    };
    let text = fitted.toml(&head);
    let (end_sector, has_closed_loops) = (fitted.end_sector(), fitted.has_closed_loops());
    Ok(Job { text, damage: first.damage, origin, end_sector, has_closed_loops })
}

/// Files that a check may write, decided before anything runs.
fn outlets(request: &CheckRequest, rules: &Rules) -> Result<Vec<Outlet>, Failure> {
    for path in &request.outputs {
        if report::by_extension::<FitCheck>(path).is_none() && !output::is_stream(path) {
            return Err(Failure::Usage(format!(
                "-o {}: no form of a check has this extension; type {}",
                name::shown(path),
                report::extensions::<FitCheck>()
            )));
        }
    }
    output::decide_all(&request.outputs, rules)
}
