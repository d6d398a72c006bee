//! Conditions of `--fail-if`: whether there is what they are about.
//!
//! For: refusing before anything is measured what could never be told. Not for: deciding a condition (crate `analysis`).

use super::origins::Origins;
use crate::failure::Failure;
use model::gate::{Condition, Limit};
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
