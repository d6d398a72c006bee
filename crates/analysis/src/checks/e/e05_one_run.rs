//! E05: too few runs to know how much the number varies. Notes results with fewer runs than an interval needs.

use crate::case::{Case, no_run};
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use model::Known;
use model::finding::{CheckId, Severity};
use model::study::Study;
use stats::intervals::FEWEST_RUNS;

pub(super) const CHECK: Check = Check {
    id: CheckId::E05,
    name: "FEW_RUNS",
    belief: "the next run would give the same",
    page: Page {
        reads: "The number of runs that ended in order.",
        formula: formula!(
            "It notes fewer than {FEWEST_RUNS} runs: an interval from two has one degree of freedom and spans a factor of \
             ten. Two single runs of the same thing, compared by how much each varies within itself, were called different in \
             94 % of simulated pairs."
        ),
        provoke: "`fathom run --runs 1 DIR`",
        fix: "Use --runs 5 or more.",
        accept: "For a first look at a machine one run is fine: the note changes neither number nor exit code.",
    },
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
        _ => return Ok(Answer::Holds("There are enough runs to say how much the number varies.", numbers)),
    };
    // Each cell of a sweep is measured once, by its preset.
    let in_sweep = matches!(case.record.header.plan.study, Study::Sweep(_));
    Ok(Answer::Finding(Detail {
        severity: Severity::Note,
        sentence: format!("{count}: how much the number varies is not known, so it allows no comparison."),
        cure: in_sweep.then(|| "Measure a cell that matters with `fathom run --runs 5`.".into()),
        evidence: numbers,
        renames: None,
    }))
}
