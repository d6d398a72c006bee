//! E16: many numbers were compared, so some differ by chance. It lists numbers that differ by their own interval, but not after correction
//! for multiple tests.

use super::{ComparisonCheck, Context, NamedAnswer};
use crate::checks::prelude::*;
use model::comparison::{Answer as Word, Metric};
use stats::comparison::ALLOWED;

pub(super) const CHECK: ComparisonCheck = ComparisonCheck {
    id: CheckId::E16,
    name: "MULTIPLE_LOOKS",
    belief: "a difference in one of many numbers means something",
    reads: "The p-values of all numbers of the comparison except the headline.",
    formula: formula!(
        "Of 20 numbers without a difference, one is outside its 95 % interval by chance. Holm's procedure \
         therefore raises the p-values until the probability of any false answer is below {allowed}. The \
         headline was chosen before the measurement and is judged separately. Fires if a number is beyond \
         the margin by its own interval but not after the correction.",
        allowed = Share(ALLOWED)
    ),
    provoke: "`fathom compare` of two sessions of `fathom bench --profile cdm` on a disk with neighbours, \
              which has more than thirty numbers.",
    fix: "Measure the number that matters alone (`fathom run` makes it the headline), or with more --runs.",
    accept: "Do not quote the one number that differs.",
    acceptable: false,
    ask: evaluate,
};

fn evaluate(context: &Context) -> Vec<NamedAnswer> {
    let count = context.others().count();
    if count < 2 {
        return Vec::new();
    }
    let held: Vec<String> = context
        .others()
        .filter(|(_, m)| is_corrected_away(m))
        .map(|(p, m)| format!("{} {}", p.name, m.name))
        .collect();
    let numbers = evidence([("looks", count as f64), ("held_back", held.len() as f64)]);
    let answer = if held.is_empty() {
        Answer::Holds("No number differs only because many were compared.", numbers)
    } else {
        Answer::Finding(detail!(
            Severity::Biased,
            numbers,
            "The comparison has {count} numbers in addition to the headline, and some differ by chance. Not \
             significant after correction for multiple tests: {}.",
            held.join(", ")
        ))
    };
    vec![(Vec::new(), Ok(answer))]
}

/// Whether a number is beyond the margin by its own interval, but not after correction for all numbers.
fn is_corrected_away(metric: &Metric) -> bool {
    let beyond = metric
        .interval
        .is_some_and(|[low, high]| low > 1.0 + metric.margin || high < 1.0 / (1.0 + metric.margin));
    matches!(metric.answer, Word::CannotTell | Word::NoDifferenceSeen)
        && beyond
        && metric.p.is_some_and(|p| p > ALLOWED)
}
