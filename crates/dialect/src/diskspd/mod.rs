//! DISKSPD's language: its command lines and its XML profiles.
//!
//! For: a specification that means what they mean, exactly; what Linux has not is refused by the name of the option, with the reason
//! and what to type instead. Not for: carrying it out, nor DISKSPD's output (crate `report`).
//!
//! Words are read into a profile (`command` with `letters` and `value`; `xml`), which is compared with DISKSPD's own rules (`validate`) and with
//! what there is here (`here`), and then made into phases and streams (`jobs`). What becomes of each option stands in one table
//! (`options`). Compared with its source and its published tests alone: it runs on Windows, and none was at hand.

mod command;
mod here;
mod jobs;
mod letters;
pub mod options;
mod source;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod xml;

use crate::language::{Language, Objections, Tool};
use crate::names_in_tool::spelled;
use crate::trouble::{Mark, Trouble};
pub use self::command::{Ask, CommandLine, Here};
use model::spec::JobSpec;

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Diskspd, extension: "xml", parse };

/// Reads an XML profile.
fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    let (profile, source) = self::xml::read(name, text, &[])?;
    let said = CommandLine { profile, source, ..CommandLine::default() };
    let mut job = job(&said, &[], also)?.unwrap_or_default();
    // Measured several times its workers are told together, as those of any job.
    job.phases.iter_mut().flat_map(|phase| &mut phase.streams).for_each(|stream| stream.each_worker = None);
    Ok(job)
}

/// The jobs of a command line, whose threads are bound to these CPUs in turn unless it says otherwise; none of one whose
/// profile is only to be printed, which may say what nothing here can do.
///
/// # Errors
/// Everything that is wrong with it, each at its place with what to type instead.
pub fn job(said: &CommandLine, cpus: &[u32], also: Objections) -> Result<Option<JobSpec>, Trouble> {
    let (mut marks, warnings) = self::validate::validate(said);
    if said.ask != Ask::Profile {
        marks.extend(self::here::refused(said));
    }
    if !marks.is_empty() {
        return Err(said.source.trouble(marks));
    }
    if said.ask == Ask::Profile {
        return Ok(None);
    }
    let mut job = self::jobs::job_spec(&said.profile, cpus);
    let problems = job.check().into_iter().chain(also(&job));
    let marks: Vec<Mark> = problems
        .map(|problem| {
            let message = problem.spelled(|key, value| spelled(Tool::Diskspd, key, value));
            Mark::new(said.source.place(problem.phase, problem.stream, "\0"), message)
        })
        .collect();
    if !marks.is_empty() {
        return Err(said.source.trouble(marks));
    }
    job.remarks = said.remarks.iter().cloned().chain(warnings).collect();
    Ok(Some(job))
}
