//! Iometer's language: its configuration files.
//!
//! For: a job that goes through a file's tests as Iometer would, and the access specifications of a file by themselves. Not for:
//! carrying them out, nor Iometer's result file (crate `report`).
//!
//! A file is read into a value (`icf`), of which phases are made (`jobs`), one for each of its tests (`cycle`). Compared with its guide and its files alone.

mod cycle;
mod explain;
mod icf;
mod jobs;
#[cfg(test)]
mod tests;

use crate::language::{Language, Objections, Tool};
use crate::names_in_tool::spelled;
use crate::trouble::{Mark, Trouble};
use model::spec::JobSpec;

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Iometer, extension: "icf", parse };

/// Reads a file whose targets are paths.
fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    let mut job = read(name, text, &Here::default(), also)?;
    // Measured several times its workers are told together, as those of any job.
    job.phases.iter_mut().flat_map(|phase| &mut phase.streams).for_each(|stream| stream.each_worker = None);
    Ok(job)
}

/// What is said beside a file.
#[derive(Clone, Debug, Default)]
pub struct Here {
    /// What stands for its targets, in the order of their first naming; nothing where these are paths.
    pub places: Vec<String>,
    /// Its run time in seconds, where that is said.
    pub seconds: Option<u64>,
}

/// The job of a file.
///
/// # Errors
/// Everything that is wrong with it, each at its place with what to write instead.
pub fn read(name: &str, text: &str, here: &Here, also: Objections) -> Result<JobSpec, Trouble> {
    let mut icf = self::icf::read(name, text)?;
    icf.seconds = here.seconds.unwrap_or(icf.seconds);
    let job = self::jobs::job_spec(&icf, &here.places).map_err(|marks| Trouble::new(name, text, marks))?;
    let problems = job.check().into_iter().chain(also(&job));
    let marks: Vec<Mark> = problems
        .map(|problem| Mark::new(0..0, problem.spelled(|key, value| spelled(Tool::Iometer, key, value))))
        .collect();
    if marks.is_empty() { Ok(job) } else { Err(Trouble::new(name, text, marks)) }
}

/// The tests of a file as text. Its targets need not be paths.
///
/// # Errors
/// Everything that is wrong with it, each at its place with what to write instead.
pub fn explain(name: &str, text: &str, here: &Here) -> Result<String, Trouble> {
    let mut icf = self::icf::read(name, text)?;
    icf.seconds = here.seconds.unwrap_or(icf.seconds);
    let marks = self::jobs::refused(&icf, &here.places, false);
    if !marks.is_empty() {
        return Err(Trouble::new(name, text, marks));
    }
    Ok(self::explain::explain_tests(&icf, &here.places))
}

/// The access specifications of a file.
///
/// # Errors
/// Everything that is wrong with it, or that there are none.
pub fn specs(name: &str, text: &str) -> Result<Vec<model::spec::specs::Spec>, Trouble> {
    let icf = self::icf::read(name, text)?;
    if icf.specs.is_empty() {
        let why = "there is no access specification; write 'Access specification name,default assignment";
        return Err(Trouble::new(name, text, vec![Mark::new(0..0, why)]));
    }
    Ok(icf.specs.into_iter().map(|spec| model::spec::specs::Spec { name: spec.name, lines: spec.lines }).collect())
}
