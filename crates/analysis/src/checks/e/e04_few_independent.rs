//! E04: seconds that all say the same thing.
//!
//! For: how many independent observations the runs hold together. Not for: the number of runs (E05).

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use crate::run_series::courses;
use crate::steadiness::steps;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use stats::autocorrelation::{FEWEST, observations};
use stats::change::without_levels;
use stats::series::Series;

/// Seconds of measuring below which too few observations are a matter of length, and reported as that (E12).
const LONG_S: f64 = 10.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::E04,
    name: "FEW_INDEPENDENT",
    belief: "a long run is many observations",
    page: Page {
        reads: "fathom's own intervals (up to 32 a second). No kernel file.",
        formula: formula!(
            "The correlation time of the rates is 1 + 2 times the sum of their autocorrelations, cut where a pair is no \
             longer positive (Geyer); a step (E02) is taken out first. Observations are the stretches of all runs divided by \
             that time. It fires below {FEWEST} in {LONG_S} seconds of measuring or more; with less time it is not \
             checked."
        ),
        provoke: "`fathom run --rw randwrite --cache buffered --time 30s --runs 1 DIR` where write back comes in \
                  waves of many seconds.",
        fix: "Use a --time of at least ten times the slowest wave that `fathom show --explain FILE` shows, or more --runs.",
        accept: "Accept it where only the total matters.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| waves(20)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn evaluate(case: &Case) -> Known<Answer> {
    if case.stream.load_changes() {
        return Ok(Answer::DoesNotApply);
    }
    let courses = courses(case)?;
    let independent: f64 = courses.iter().map(|c| observations(&around_levels(c))).sum();
    let seconds: f64 = courses.iter().map(Series::seconds).sum();
    let numbers = evidence([("independent_observations", independent), ("seconds", seconds)]);
    // A course of ten equal stretches is ten, whatever rounding says.
    if independent >= FEWEST - 1e-6 {
        return Ok(Answer::Holds("The runs hold enough independent observations for a mean.", numbers));
    }
    if seconds < LONG_S - 0.1 {
        return Err("the runs are too short: they hold too few independent observations".into());
    }
    Ok(Answer::Finding(Detail {
        severity: Severity::Biased,
        sentence: format!(
            "{seconds:.0} s of measuring held only {independent:.1} independent observations: the rate varies in waves that are too long for a mean."
        ),
        cure: Some(format!(
            "Use a longer --time or more --runs: about {:.0} s of measuring in all would hold {FEWEST:.0}.",
            (seconds * FEWEST / independent).ceil()
        )),
        evidence: numbers,
        renames: None,
    }))
}

fn around_levels(course: &Series) -> Vec<f64> {
    match steps(course).steps() {
        [] => course.rates.clone(),
        found => without_levels(&course.rates, found),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// One run with two slow waves in it.
#[cfg(test)]
fn waves(seconds: u64) -> model::record::Record {
    super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, (100, seconds), |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 9.0).sin())
    })
}

#[test]
fn slow_waves_are_few_observations_and_quick_ones_many() {
    assert_eq!(CHECK.severity(&waves(20)), Some(Severity::Biased));
    assert!(CHECK.answer(&waves(2)).is_err_and(|why| why.contains("too short")));
    let quick = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, (100, 20), |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 400.0).sin())
    });
    assert!(matches!(CHECK.answer(&quick), Ok(Answer::Holds(..))));
}
