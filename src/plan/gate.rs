//! Conditions: whether there is what `--fail-if` and `--fail-if-slower` are about, and a condition where something is said about one.
//!
//! For: refusing before anything is measured what could never be told. Not for: deciding a condition (crate `analysis`).

use super::origins::Origins;
use crate::failure::Failure;
use crate::request::Request;
use model::gate::{Condition, Limit, Slower};
use model::job::Job;
use model::spec::JobSpec;

/// The conditions that were said.
///
/// # Errors
/// A usage failure where no result has the name, or does such operations, with what there is.
pub(super) fn conditions(
    spec: &JobSpec,
    jobs: &[Job],
    origins: &mut Origins,
) -> Result<Vec<Condition>, Failure> {
    let said = spec.fail_if.clone().unwrap_or_default();
    for condition in &said {
        check(condition, jobs)
            .map_err(|why| Failure::Usage(format!("--fail-if {}: {why}", condition.words())))?;
    }
    let words = |said: &Vec<Condition>| said.iter().map(Condition::words).collect::<Vec<_>>().join(",");
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
    origins.note("--fail-if-slower", said, Slower::words);
    Ok(said)
}

fn check(condition: &Condition, jobs: &[Job]) -> Result<(), String> {
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
