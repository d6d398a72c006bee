//! How fio tells of its results: options as they were typed, groups, and which jobs are one result.
//!
//! For: what its formats repeat and add up. Not for: what is measured ([`super::streams`]).

use super::jobs::{Fault, Job};
use super::logs::logs;
use super::sections::{Assignment, Section};
use super::value::percentiles;
use model::spec::{FioLayout, Options, Typed, TypedStream};

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
    let final_sync = ["end_fsync", "fsync_on_close", "end_syncfs"]
        .iter()
        .try_fold(false, |any, option| Ok(any | job.on(option, false)?))?;
    let (logs, layout) = (logs(job)?, layout(job)?);
    Ok(TypedStream { options: options(&job.own), group, joins, mixed, final_sync, logs, layout })
}

/// How fio prints the job: percentiles, units and its description.
fn layout(job: &Job) -> Result<FioLayout, Fault> {
    let mut layout = FioLayout {
        description: job.text("description").unwrap_or_default().to_owned(),
        clat_percentiles: job.on("clat_percentiles", true)?,
        lat_percentiles: job.on("lat_percentiles", false)?,
        decimal_first: job.text("kb_base") == Some("1000"),
        ..FioLayout::default()
    };
    layout.bits = match job.text("unit_base").unwrap_or("0") {
        "0" | "8" => false,
        "1" => true,
        _ => return Err(job.fault("unit_base", "it is 8 for bytes or 1 for bits; type one of them")),
    };
    if let Some(list) = job.text("percentile_list") {
        let ranks = percentiles(list).map_err(|why| job.fault("percentile_list", why))?;
        (layout.ranks, layout.rank_decimals) = ranks;
    }
    Ok(layout)
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

/// Each option with the value that was typed last; `filename` with the names of all its lines.
pub(super) fn options<'a>(said: impl IntoIterator<Item = &'a Assignment>) -> Options {
    let mut out = Options::new();
    for Assignment { option, value, .. } in said.into_iter().filter(|said| !said.value.is_empty()) {
        let before = out.iter().position(|(name, _)| name == option.name).map(|at| out.remove(at).1);
        let value = match before.filter(|_| option.name == "filename") {
            Some(before) => format!("{before}:{value}"),
            None => value.clone(),
        };
        out.push((option.name.to_owned(), value));
    }
    out
}
