//! How fio tells of its results: options as they were typed, groups, and which jobs are one result.
//!
//! For: what its formats repeat and add up. Not for: what is measured ([`super::streams`]).

use super::jobs::{Fault, Job};
use super::logs::logs;
use super::sections::{Assignment, Section};
use model::typed::{Options, Typed, TypedStream};

/// What was typed, for each stream of each phase by the job that it came from.
pub(super) fn typed(sections: &[Section], jobs: &[Job], from: &[Vec<usize>]) -> Result<Typed, Fault> {
    let of_jobs = groups(jobs)?.into_iter().zip(jobs).map(|(group, job)| stream(group, job));
    let of_jobs: Vec<TypedStream> = of_jobs.collect::<Result<_, _>>()?;
    let phase = |at: &Vec<usize>| at.iter().filter_map(|job| of_jobs.get(*job)).cloned().collect();
    let globals = sections.iter().filter(|s| s.is_global()).flat_map(|s| &s.said);
    Ok(Typed { defaults: options(globals), phases: from.iter().map(phase).collect(), ..Typed::default() })
}

fn stream(group: usize, job: &Job) -> Result<TypedStream, Fault> {
    let mixed = match job.text("unified_rw_reporting").unwrap_or("none") {
        "none" | "0" => false,
        "mixed" | "1" => true,
        _ => {
            return Err(
                job.fault("unified_rw_reporting", "directions are told apart, or as one; type none or mixed")
            );
        }
    };
    let joins = job.on("group_reporting", false)?;
    let final_sync = job.on("end_fsync", false)? || job.on("fsync_on_close", false)?;
    Ok(TypedStream { options: options(&job.own), group, joins, mixed, final_sync, logs: logs(job)? })
}

/// The group of each job: a new one where a job waits for all others, or says so.
fn groups(jobs: &[Job]) -> Result<Vec<usize>, Fault> {
    let mut group = 0;
    let mut all = Vec::new();
    for job in jobs {
        let new = job.walled || job.on("stonewall", false)? || job.on("new_group", false)?;
        group += usize::from(new && !all.is_empty());
        all.push(group);
    }
    Ok(all)
}

/// Each option with the value that was typed last.
pub(super) fn options<'a>(said: impl IntoIterator<Item = &'a Assignment>) -> Options {
    let mut out = Options::new();
    for Assignment { option, value, .. } in said.into_iter().filter(|said| !said.value.is_empty()) {
        out.retain(|(name, _)| name != option.name);
        out.push((option.name.to_owned(), value.clone()));
    }
    out
}
