//! The checks of a comparison: questions about two sides, one file each. They are in the same catalogue as the checks
//! of one result ([`crate::checks`]).

mod e14_incomparable;
mod e15_noise_floor;
mod e16_multiple_looks;
pub(super) mod e18_sum_of_peaks;

use crate::checks::Answer;
use crate::findings;
use model::Known;
use model::comparison::{Metric, Pair};
use model::finding::{CheckId, Finding};
use model::report::Report;

/// The checks, in the order of the catalogue.
pub(crate) const CHECKS: &[ComparisonCheck] =
    &[e14_incomparable::CHECK, e15_noise_floor::CHECK, e16_multiple_looks::CHECK, e18_sum_of_peaks::CHECK];

/// A question about a comparison.
pub(crate) struct ComparisonCheck {
    /// Catalogue id.
    pub(crate) id: CheckId,
    /// Name, such as `NOT_ALIKE`.
    pub(crate) name: &'static str,
    /// The belief that the check tests.
    pub(crate) belief: &'static str,
    /// The texts of its page, as of [`crate::checks::Check`].
    pub(crate) reads: &'static str,
    pub(crate) formula: fn() -> String,
    pub(crate) provoke: &'static str,
    pub(crate) fix: &'static str,
    pub(crate) accept: &'static str,
    /// Whether `--accept` can accept the finding.
    pub(crate) acceptable: bool,
    /// The function that answers, with the results that each answer is about.
    ask: fn(&Context) -> Vec<NamedAnswer>,
}

/// An answer, and the results that it is about.
pub(super) type NamedAnswer = (Vec<String>, Known<Answer>);

/// The data of a comparison that the checks read.
pub(super) struct Context<'a> {
    /// The reports of A and of B.
    pub(super) sides: [&'a [Report]; 2],
    /// The name of the other side: `B`.
    pub(super) name: &'a str,
    /// The compared pairs with their answers.
    pub(super) pairs: &'a [Pair],
    /// For each pair, the circumstances that are unknown on one or both sides.
    pub(super) unknown: Vec<Vec<String>>,
    /// Whether E14 is accepted.
    pub(super) accepted: bool,
}

impl<'a> Context<'a> {
    /// Returns the number that answers the comparison.
    fn headline(&self) -> Option<(&'a Pair, &'a Metric)> {
        let pair = self.pairs.iter().find(|p| p.headline)?;
        Some((pair, pair.metrics.first()?))
    }

    /// Returns all numbers except the headline.
    fn others(&self) -> impl Iterator<Item = (&'a Pair, &'a Metric)> {
        let all = self.pairs.iter().flat_map(|p| p.metrics.iter().enumerate().map(move |(i, m)| (p, i, m)));
        all.filter(|(p, i, _)| !(p.headline && *i == 0)).map(|(p, _, m)| (p, m))
    }
}

/// Runs all checks. Equal answers about several results become one finding, and the worst findings come first.
pub(super) fn ask(context: &Context) -> Vec<Finding> {
    let mut out: Vec<Finding> = Vec::new();
    for check in CHECKS {
        for (about, answer) in (check.ask)(context) {
            let Some(mut new) = findings::finding(check.id, check.name, check.fix, &answer, about) else {
                continue;
            };
            new.accepted = check.acceptable && context.accepted;
            let same =
                |f: &&mut Finding| (f.id, f.outcome, &f.sentence) == (new.id, new.outcome, &new.sentence);
            match out.iter_mut().find(same) {
                Some(old) => old.about.extend(new.about),
                None => out.push(new),
            }
        }
    }
    out.sort_by_key(|f| (f.outcome, f.severity, f.id));
    out
}
