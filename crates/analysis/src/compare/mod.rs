//! Comparing: is B faster than A, slower, the same, or can that not be told?
//!
//! For: two reports, or several of one configuration on each side, and what their runs say against each other. Not for:
//! reading them, nor what any of them is worth by itself; that is told by its own verdict.
//!
//! [`compare`] is total: for any two reports, however broken, there is a comparison. Which is compared with which is decided in
//! `sides`, whether that makes sense in `fingerprint` and `renames`, by which numbers in `measures`, and with which word in
//! `weighing`.

pub(crate) mod checks;

mod fingerprint;
mod gate;
pub(crate) mod margin;
mod measures;
mod renames;
mod sentence;
mod sides;
#[cfg(test)]
mod simulation;
mod weighing;

use crate::stats::holm;
use checks::Asked;
use fingerprint::{differences, fingerprint};
use model::comparison::{Comparison, Difference, Pair};
use model::report::{FORMAT, Producer, Report};
use sides::{One, Pooled};
use weighing::Weighed;

/// What the comparison must be told beside its sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Share below which a difference is of no interest. It is at least 1 %, of percentiles 2 %, and as much as sessions of
    /// one side differ. `None` is 1 %, or 5 % where each side is one session, so that what they differ by with nothing
    /// changed is not known.
    pub margin: Option<f64>,
    /// Whether numbers of different work are compared all the same (E14 is accepted).
    pub accept_differences: bool,
    /// How much slower B may be, if that is asked.
    pub fail_if_slower: Option<RegressionThreshold>,
    /// Version of the program that compares.
    pub version: String,
}

/// How much slower B may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionThreshold {
    /// As a share: 0.05.
    pub share: f64,
    /// Whether every number counts, instead of the headline alone.
    pub all: bool,
}

/// Compares two reports.
pub fn compare(a: &Report, b: &Report, options: &Options) -> Comparison {
    compare_sides(std::slice::from_ref(a), std::slice::from_ref(b), options)
}

/// Compares two sides, each of one session or several of one configuration, whose runs count as runs of one.
pub fn compare_sides(a: &[Report], b: &[Report], options: &Options) -> Comparison {
    let paired = sides::pair(a, b);
    let drafts = paired.pairs.iter().map(|(of_a, of_b)| draft(of_a, of_b, [a.len(), b.len()], options));
    let mut drafts: Vec<Draft> = drafts.collect();
    let headline = a.first().map(|r| r.headline.name.as_str());
    if let Some(draft) = drafts.iter_mut().find(|d| headline == Some(d.pair.true_name_a.as_str())) {
        draft.pair.headline = true;
    }
    let unknown = drafts.iter_mut().map(|d| std::mem::take(&mut d.unknown)).collect();
    let pairs = answered(drafts);
    let (answer, sentence) = sentence::answer(&pairs, &paired, a);
    let asked = Asked { sides: [a, b], pairs: &pairs, unknown, accepted: options.accept_differences };
    Comparison {
        fathom: Producer { format: FORMAT, version: options.version.clone() },
        answer,
        sentence,
        a: sides::shown(a),
        b: sides::shown(b),
        findings: checks::ask(&asked),
        gate: options.fail_if_slower.as_ref().map(|limit| gate::gate(&pairs, limit)),
        pairs,
        only_in_a: paired.only_in_a,
        only_in_b: paired.only_in_b,
    }
}

/// A pair whose numbers have no word yet.
struct Draft {
    pair: Pair,
    weighed: Vec<Weighed>,
    /// Circumstances that are not known of both.
    unknown: Vec<String>,
}

fn draft(a: &Pooled, b: &Pooled, sessions: [usize; 2], options: &Options) -> Draft {
    let [first_a, first_b] = [a, b].map(|side| side.first().copied());
    let (differences, unknown) = match (first_a, first_b) {
        (Some(a), Some(b)) => between(a, b),
        _ => (Vec::new(), Vec::new()),
    };
    let refused = none_to_compare(a, b, sessions)
        .or_else(|| (!options.accept_differences).then(|| other_work(&differences)).flatten());
    let (measures, left_out) =
        if refused.is_none() { measures::measures(a, b) } else { (Vec::new(), Vec::new()) };
    let name = |one: Option<One>| one.map_or_else(String::new, |o| o.result.true_name.clone());
    let pair = Pair {
        name: first_a.map_or_else(String::new, |o| o.result.name.clone()),
        true_name_a: name(first_a),
        true_name_b: name(first_b),
        phase: first_a.map_or(0, |o| o.result.phase),
        stream: first_a.map_or(0, |o| o.result.stream),
        headline: false,
        refused,
        differences,
        metrics: Vec::new(),
        left_out,
    };
    let weighed = measures.into_iter().map(|m| weighing::weigh(m, options.margin)).collect();
    Draft { pair, weighed, unknown }
}

/// What differs between two results, asked or found; and what is not known of both.
fn between(a: One, b: One) -> (Vec<Difference>, Vec<String>) {
    let prints = [a, b].map(|one| fingerprint(one.report, one.result));
    let (mut different, unknown) = differences(&prints[0], &prints[1]);
    different.extend(renames::differences(a, b));
    (different, unknown)
}

/// Why there is nothing to compare: a side that is no number, or no one thing.
fn none_to_compare(a: &Pooled, b: &Pooled, sessions: [usize; 2]) -> Option<String> {
    for (side, of, sessions) in [("A", a, sessions[0]), ("B", b, sessions[1])] {
        if let Some(why) = of.iter().find_map(|one| renames::no_number(*one)) {
            return Some(format!("{side} has no number to compare: {}", why.trim_end_matches('.')));
        }
        if of.len() < sessions {
            return Some(format!("only {} of the {sessions} sessions of {side} have it", of.len()));
        }
        let [first, others @ ..] = of.as_slice() else { continue };
        let mixed = others.iter().find_map(|other| {
            let (different, _) = between(*first, *other);
            let first = different.into_iter().find(|d| d.aspect != renames::LIMITED_BY)?;
            Some(format!(
                "{} ({} and {})",
                sentence::difference(&first),
                of[0].report.started,
                other.report.started
            ))
        });
        if let Some(what) = mixed {
            return Some(format!("the sessions of {side} are not of one configuration: {what}"));
        }
    }
    None
}

/// Why the two are numbers of different work, where they are.
fn other_work(differences: &[Difference]) -> Option<String> {
    let words: Vec<String> = differences.iter().filter(|d| d.refuses).map(sentence::difference).collect();
    (!words.is_empty()).then(|| format!("A and B are numbers of different work: {}", words.join("; ")))
}

/// Gives every number its word. The one that answers was named before anything was measured, so it is judged by itself; all
/// others are looked at together.
fn answered(drafts: Vec<Draft>) -> Vec<Pair> {
    let answers = |draft: &Draft, at: usize| draft.pair.headline && at == 0;
    let others = drafts.iter().flat_map(|d| d.weighed.iter().enumerate().filter(|(i, _)| !answers(d, *i)));
    let chances: Vec<f64> = others.map(|(_, w)| w.chance()).collect();
    let looks = chances.len();
    let mut adjusted = holm::adjusted(&chances).into_iter();
    let mut pairs = Vec::new();
    for mut draft in drafts {
        for (at, weighed) in draft.weighed.into_iter().enumerate() {
            let metric = if draft.pair.headline && at == 0 {
                let chance = weighed.chance();
                weighed.answered(chance, 1)
            } else {
                weighed.answered(adjusted.next().unwrap_or(1.0), looks)
            };
            draft.pair.metrics.push(metric);
        }
        pairs.push(draft.pair);
    }
    pairs
}

#[cfg(test)]
mod tests;
