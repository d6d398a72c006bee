//! Conditions: whether there is what `--fail-if` and `--fail-if-slower` are about, and a condition where something is said about one.
//!
//! For: refusing before anything is measured what could never be told. Not for: deciding a condition (crate `analysis`).

use super::origins::Origins;
use crate::failure::Failure;
use crate::request::Request;
use analysis::strategy::sweep::FRESH;
use model::job::Job;
use model::spec::JobSpec;
use model::spec::number::FEWEST_GATED_RUNS;
use model::study::Study;
use model::verdict::{Condition, Limit, Slower};

/// The conditions that were said.
///
/// # Errors
/// A usage failure where no result has the name, or does such operations, with what there is.
pub(super) fn conditions(
    spec: &JobSpec,
    (jobs, study): (&[Job], &Study),
    origins: &mut Origins,
) -> Result<Vec<Condition>, Failure> {
    let said = spec.fail_if.clone().unwrap_or_default();
    for condition in &said {
        check_study(condition, study)
            .and_then(|()| check(condition, jobs))
            .map_err(|why| Failure::Usage(format!("--fail-if {}: {why}", condition.to_flag())))?;
    }
    let words = |said: &Vec<Condition>| said.iter().map(Condition::to_flag).collect::<Vec<_>>().join(",");
    origins.note("--fail-if", spec.fail_if.as_ref(), |said| words(said));
    Ok(said)
}

/// By how much it may be slower than the earlier session beside it.
///
/// # Errors
/// A usage failure where no earlier session is measured beside it, or `--settle` has no condition.
pub(super) fn slower(request: &Request, origins: &mut Origins) -> Result<Option<Slower>, Failure> {
    let said = request.fail_if_slower;
    if said.is_some() && request.against.is_none() {
        return Err(Failure::Usage(
            "--fail-if-slower compares with an earlier session, and none is measured beside this one; type --against SESSION too, or `fathom compare A B --fail-if-slower 5%` for two that are there"
                .into(),
        ));
    }
    let gated = said.is_some() || request.job.fail_if.is_some();
    if request.job.settle == Some(true) && !gated {
        return Err(Failure::Usage(
            "--settle measures until a condition can be told, and there is none; type --fail-if 'p99>10ms' or the like too, or leave it out"
                .into(),
        ));
    }
    origins.note("--fail-if-slower", said, Slower::to_flags);
    Ok(said)
}

/// What a study that answers one question can be asked.
fn check_study(condition: &Condition, study: &Study) -> Result<(), String> {
    let of_percentile = condition.limit.is_of_percentile();
    match (study, &condition.result) {
        (Study::Limit(_), Some(_)) => {
            Err("a load curve answers with one rate; leave the name out, as in iops<20000".into())
        }
        (Study::Limit(_), None) if of_percentile => Err(
            "the latency of a load curve is limited by --p99; type --p99 10ms --fail-if 'iops<20000', which fails where that rate is not served within it"
                .into(),
        ),
        (Study::Sweep(_), None) if of_percentile => Err(format!(
            "the winner of a sweep is told by {FRESH} runs, and a percentile takes {FEWEST_GATED_RUNS}; type iops<20000 or mb/s<90 here, and the percentile where you run the winner by itself"
        )),
        _ => Ok(()),
    }
}

fn check(condition: &Condition, jobs: &[Job]) -> Result<(), String> {
    if let Limit::Time { .. } = condition.limit {
        return Err("time is a condition of `fathom time`; type p99>10ms, iops<20000 or mb/s<90 here".into());
    }
    let results = jobs.iter().flat_map(|job| {
        let phases = job.phases.iter().enumerate();
        phases.flat_map(move |(phase, of_phase)| {
            let streams = of_phase.streams.iter().enumerate();
            streams.map(move |(index, stream)| (job.result_name(phase, index), stream))
        })
    });
    let results: Vec<_> = results.collect();
    let named: Vec<_> = results
        .iter()
        .filter(|(name, _)| condition.result.as_ref().is_none_or(|said| said == name))
        .collect();
    if named.is_empty() {
        let names: Vec<String> = results.iter().map(|(name, _)| format!("'{name}'")).collect();
        return Err(format!("no result has this name; type one of {}", names.join(", ")));
    }
    let Limit::Latency { kind: Some(kind), .. } = condition.limit else { return Ok(()) };
    if named.iter().any(|(_, stream)| stream.kinds().any(|k| k == kind)) {
        return Ok(());
    }
    let mut kinds: Vec<String> = Vec::new();
    for kind in named.iter().flat_map(|(_, stream)| stream.kinds()) {
        let word = format!("{}.p99", kind.word());
        if !kinds.contains(&word) {
            kinds.push(word);
        }
    }
    Err(format!("nothing here does a {}; type {}", kind.word(), kinds.join(" or ")))
}
