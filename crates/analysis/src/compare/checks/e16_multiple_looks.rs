//! E16: many numbers were compared, so some differ by chance. It lists numbers that differ by their own interval, but not after correction
//! for multiple tests.

use super::{ComparisonCheck, Context, NamedAnswer};
use crate::checks::{Answer, Detail, Page, evidence, formula};
use crate::threshold::Share;
use model::comparison::{Answer as Word, Metric};
use model::finding::{CheckId, Severity};
use stats::comparison::ALLOWED;

pub(super) const CHECK: ComparisonCheck = ComparisonCheck {
    id: CheckId::E16,
    name: "MULTIPLE_LOOKS",
    belief: "when one of many numbers differs, that means something",
    page: Page {
        reads: "The chances of all numbers of the comparison, but of the headline.",
        formula: formula!(
            "Of 20 numbers that are the same, one lies outside its 95 % interval by chance. So the chances are raised by \
             Holm's procedure until any false answer at all is less likely than {allowed}. The headline was named before \
             anything was measured and is judged by itself. It fires where a number lies beyond the margin by its own interval \
             and is not called different because of the others.",
            allowed = Share(ALLOWED)
        ),
        provoke: "`fathom compare` of two sessions of `fathom bench --profile cdm` on a disk with neighbours: more than \
                  thirty numbers.",
        fix: "Measure the one that matters by itself (`fathom run`, then it is the headline), or with more --runs.",
        accept: "Do not quote the one number that differs.",
    },
    acceptable: false,
    ask: evaluate,
};

fn evaluate(asked: &Context) -> Vec<NamedAnswer> {
    let count = asked.others().count();
    if count < 2 {
        return Vec::new();
    }
    let held: Vec<String> = asked
        .others()
        .filter(|(_, m)| is_corrected_away(m))
        .map(|(p, m)| format!("{} {}", p.name, m.name))
        .collect();
    let numbers = evidence([("looks", count as f64), ("held_back", held.len() as f64)]);
    let answer = if held.is_empty() {
        Answer::Holds("No number differs only because many were looked at.", numbers)
    } else {
        Answer::Finding(Detail::new(
            Severity::Biased,
            format!(
                "You looked at {count} numbers beside the headline, and some differ by chance. Not significant after correction for multiple tests: {}.",
                held.join(", ")
            ),
            numbers,
        ))
    };
    vec![(Vec::new(), Ok(answer))]
}

/// Whether a number is beyond the margin by its own interval and not by all of them together.
fn is_corrected_away(metric: &Metric) -> bool {
    let beyond = metric
        .interval
        .is_some_and(|[low, high]| low > 1.0 + metric.margin || high < 1.0 / (1.0 + metric.margin));
    matches!(metric.answer, Word::CannotTell | Word::NoDifferenceSeen)
        && beyond
        && metric.p.is_some_and(|p| p > ALLOWED)
}
