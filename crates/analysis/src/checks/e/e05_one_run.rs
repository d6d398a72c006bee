//! E05: too few runs to know how much the number varies. Notes results with fewer runs than an interval needs.

use crate::checks::prelude::*;
use stats::intervals::FEWEST_RUNS;

pub(super) const CHECK: Check = Check {
    id: CheckId::E05,
    name: "FEW_RUNS",
    belief: "the next run would give the same number",
    reads: "The number of runs that ended normally.",
    formula: formula!(
        "A note with fewer than {FEWEST_RUNS} runs: an interval from two runs has one degree of freedom and \
         spans a factor of ten. In simulations, two single runs of the same job, compared by the variation \
         within each, were called different in 94 % of the pairs."
    ),
    provoke: "`fathom run --runs 1 DIR`",
    fix: "Use --runs 5 or more.",
    accept: "For a first look at a machine one run is fine: the note changes neither number nor exit code.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { runs: 1, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { runs: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let runs = case.runs.len();
    let numbers = evidence([("runs", runs as f64)]);
    let count = match runs {
        0 => return Err(no_run()),
        1 => "One run".to_owned(),
        n if n < FEWEST_RUNS => format!("{n} runs"),
        _ => {
            return holds("There are enough runs to estimate how much the number varies.", numbers);
        }
    };
    // Each cell of a sweep is measured once, by its preset.
    let in_sweep = case.record.header.plan.study.grid().is_some();
    detail!(
        Severity::Note,
        numbers,
        "{count}: the variation of the number is unknown, so it allows no comparison."
    )
    .with_cure(in_sweep.then(|| "Measure the cells that matter with `fathom run --runs 5`.".into()))
    .found()
}
