//! E04: long runs that hold only a few independent observations because the rate varies in slow waves. Divides
//! the intervals of all runs by the correlation time of the rates.

use crate::checks::prelude::*;
use crate::figures::steadiness::steps;
use crate::figures::time_series::courses;
use stats::change::without_levels;
use stats::series::{FEWEST, Series, observations};

/// Seconds of measuring below which too few observations mean that the runs are too short (E12).
const LONG_S: f64 = 10.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::E04,
    name: "FEW_INDEPENDENT",
    belief: "a long run contains many independent observations",
    reads: "fathom's own intervals (up to 32 a second). No kernel file.",
    formula: formula!(
        "The correlation time of the rates is 1 + 2 times the sum of their autocorrelations, up to the first \
         pair that is not positive (Geyer), after removing steps (E02). The observations are the intervals \
         of all runs divided by that time. Fires below {FEWEST} in {LONG_S} seconds of measuring or more. \
         With less time it is not checked."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --time 30s --runs 1 DIR`, if writeback comes in \
              waves of many seconds.",
    fix: "Use a --time of at least ten times the slowest wave in `fathom show --explain FILE`, or more \
          --runs.",
    accept: "Accept it if only the total matters.",
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
    let all_series = courses(case)?;
    let independent: f64 = all_series.iter().map(|c| observations(&without_steps(c))).sum();
    let seconds: f64 = all_series.iter().map(Series::seconds).sum();
    let numbers = evidence([("independent_observations", independent), ("seconds", seconds)]);
    // Allows for rounding errors.
    if independent >= FEWEST - 1e-6 {
        return holds("The runs contain enough independent observations for a mean.", numbers);
    }
    if seconds < LONG_S - 0.1 {
        return Err("the runs are too short: they contain too few independent observations".into());
    }
    detail!(
        Severity::Biased,
        numbers,
        "{seconds:.0} s of measuring contain only {independent:.1} independent observations: the rate varies \
         in waves that are too long for a mean."
    )
    .with_cure(format!(
        "Use a longer --time or more --runs: about {:.0} s of measuring in total would contain {FEWEST:.0}.",
        (seconds * FEWEST / independent).ceil()
    ))
    .found()
}

fn without_steps(series: &Series) -> Vec<f64> {
    match steps(series).steps() {
        [] => series.rates.clone(),
        found_steps => without_levels(&series.rates, found_steps),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A single run with two slow waves.
#[cfg(test)]
fn waves(seconds: u64) -> model::record::Record {
    super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, seconds, |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 9.0).sin())
    })
}

#[test]
fn slow_waves_bias_and_fast_waves_hold() {
    assert_eq!(CHECK.severity(&waves(20)), Some(Severity::Biased));
    assert!(CHECK.answer(&waves(2)).is_err_and(|why| why.contains("too short")));
    let quick = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, 20, |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 400.0).sin())
    });
    assert!(matches!(CHECK.answer(&quick), Ok(Answer::Holds(..))));
}
