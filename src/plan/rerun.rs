//! Rerun: the jobs of an earlier session once more, beside the ones that were asked for.
//!
//! For: finding that session and its jobs that match, and refusing where they cannot be measured as they were. Not for: what the
//! two come to against each other (crate `analysis`).
//!
//! A number of last month differs from one of today by more than what was changed: the machine aged, filled, was updated. What
//! was measured in turns within the same minutes differs by the change alone.

use super::fallback;
use super::origins::Origins;
use super::target::Targets;
use crate::failure::Failure;
use crate::{history, session};
use analysis::Judging;
use model::job::Job;
use model::plan::{Plan, Rerun, Strategy};
use model::record::Record;
use model::report::Report;
use model::study::Study;

/// Appends the jobs of the session that `word` names to those of this one.
///
/// # Errors
/// [`Failure::Usage`] where it has none that match, or their targets are gone or others.
pub(super) fn append_baseline_jobs(
    word: &str,
    (strategy, denial): (Strategy, Option<&str>),
    jobs: &mut Vec<Job>,
    targets: &mut Targets,
    origins: &mut Origins,
) -> Result<Rerun, Failure> {
    let fail = |why: &str| Failure::Usage(format!("--against {word}: {why}"));
    if matches!(strategy, Strategy::Steady { .. }) {
        return Err(fail(
            "two sides are measured in turns, and --until steady leaves no turns; leave one of them out",
        ));
    }
    let file = history::find(word)?;
    let record = session::read(&file)?;
    let old = &record.header.plan;
    if let Study::Layers(_) | Study::Limit(_) = old.study {
        return Err(fail(&format!(
            "that was `{}`, whose workloads belong together; name a session of run or bench",
            old.title
        )));
    }
    let own = old.against.as_ref().map_or(old.jobs.len(), |a| a.from.min(old.jobs.len()));
    let matching = matching(jobs, old.jobs.get(..own).unwrap_or_default());
    if matching.is_empty() {
        let names = |jobs: &[Job]| jobs.iter().map(|j| j.name.clone()).collect::<Vec<_>>().join(", ");
        return Err(fail(&format!(
            "none of its workloads ({}) is among these ({}); name a session of the same ones",
            names(&old.jobs),
            names(jobs)
        )));
    }
    let from = jobs.len();
    for index in &matching {
        jobs.push(once_more(&record, &old.jobs[*index], denial, targets).map_err(|why| match why {
            Failure::Usage(why) => fail(&why),
            other => other,
        })?);
    }
    let headline = matching.iter().position(|index| *index == old.headline).unwrap_or(0);
    let session = history::id(&file);
    let words = format!("{} workloads of {session} again, in turns", matching.len());
    origins.note("--against", Some(words), Clone::clone);
    let mut then = then(&record, &file);
    then.results.retain(|r| jobs[from..].iter().any(|j| j.name == r.job.name));
    Ok(Rerun { session, from, headline: from + headline, then: Box::new(then) })
}

/// Indices of the earlier jobs that are measured again: those with the name of a job of now, or the only one beside the only one.
fn matching(now: &[Job], then: &[Job]) -> Vec<usize> {
    if let ([_], [_]) = (now, then) {
        return vec![0];
    }
    (0..then.len()).filter(|index| now.iter().any(|j| j.name == then[*index].name)).collect()
}

/// A job as it was, on targets as they are counted now.
fn once_more(
    record: &Record,
    job: &Job,
    denial: Option<&str>,
    targets: &mut Targets,
) -> Result<Job, Failure> {
    let Plan { targets: were, .. } = &record.header.plan;
    let mut job = job.clone();
    for stream in job.phases.iter_mut().flat_map(|p| &mut p.streams) {
        if engine::engines::find(&stream.engine).is_none() {
            return Err(Failure::Usage(format!("this fathom has no engine {}", stream.engine)));
        }
        if let Some(cause) = denial.filter(|_| stream.engine == fallback::WANTED) {
            return Err(Failure::Usage(format!(
                "it used io_uring, which cannot be used now ({cause}), and another engine would be other work; name a session with --engine libaio"
            )));
        }
        let mut found = Vec::new();
        for index in &stream.targets {
            let was = were.get(*index).ok_or_else(|| Failure::Usage("its record names no target".into()))?;
            let place = record.header.hosts.first().and_then(|h| h.places.get(*index));
            found.push(targets.once_more(was, place, stream)?);
        }
        stream.targets = found;
    }
    Ok(job)
}

/// What that session came to. Its course is left out: it is long, and the session has it.
fn then(record: &Record, file: &std::path::Path) -> Report {
    let judging = Judging {
        session: Some(model::name::text(file)),
        version: env!("CARGO_PKG_VERSION").into(),
        ..Judging::default()
    };
    let mut report = analysis::judge(record, &judging);
    report.results.iter_mut().for_each(|r| r.series.clear());
    report
}
