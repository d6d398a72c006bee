//! The answer in sentences.
//!
//! For: what stands behind the first word. Not for: deciding it.

use super::sides::Paired;
use model::check_id::CheckId;
use model::comparison::{Answer, Metric, Pair};
use model::report::Report;
use model::units::{show_change, show_share};

/// The first word with its sentences: of the headline of A. The other side is called `b`.
pub(super) fn answer(pairs: &[Pair], paired: &Paired, a: &[Report], b: &str) -> (Answer, String) {
    let Some(pair) = pairs.iter().find(|p| p.headline) else {
        return (Answer::Incomparable, nothing(paired, a, b));
    };
    if let Some(why) = &pair.refused {
        let anyway = if pair.cannot_tell { " Type --accept E14 to compare them all the same." } else { "" };
        return (pair.refusal(), format!("{why}.{anyway}"));
    }
    let Some(metric) = pair.metrics.first() else {
        return (Answer::Incomparable, format!("{} has no number that every run of both has.", pair.name));
    };
    let what = format!("{} of {}", metric.name, pair.true_name_a);
    let numbers = format!(
        "{} against {}, over {} and {} runs",
        metric.show(metric.b),
        metric.show(metric.a),
        metric.b_runs.len(),
        metric.a_runs.len()
    );
    let interval = interval(metric);
    let change = show_change(metric.ratio);
    let sentence = match metric.answer {
        Answer::Faster | Answer::Slower => {
            let word = if metric.answer == Answer::Faster { "faster" } else { "slower" };
            format!("{b} is {word} than A by {}: {what}, {numbers}.", metric.size())
        }
        Answer::Same => {
            let within = show_share(metric.tolerance.unwrap_or(metric.margin));
            format!("{b} is the same as A within {within}: {what} {change}{interval}; {numbers}.")
        }
        Answer::NoDifferenceSeen => {
            let margin = show_share(metric.margin);
            let why =
                if metric.why.is_empty() { String::new() } else { format!(" The reason: {}.", metric.why) };
            format!(
                "No difference above {margin} was seen: {b} is {} than A ({what} {change}; {numbers}).{why}{}",
                metric.bound().unwrap_or_default(),
                narrower(metric)
            )
        }
        Answer::CannotTell | Answer::Incomparable | Answer::Invalid => {
            format!(
                "Whether {b} is faster or slower than A cannot be told: {what} {change}{interval}; {numbers}. The reason: {}.{}",
                metric.why,
                settled(metric)
            )
        }
    };
    (metric.answer, sentence + &accepted(pair) + &differences_sentence(pair))
}

fn nothing(paired: &Paired, a: &[Report], b: &str) -> String {
    let Some(first) = a.first() else { return "There is nothing on side A.".into() };
    let names = |list: &[String]| if list.is_empty() { "nothing".into() } else { list.join(", ") };
    format!(
        "The headline of A, {}, is not on side {b}: only A has {}, only {b} has {}.",
        first.headline.name,
        names(&paired.only_in_a),
        names(&paired.only_in_b)
    )
}

fn interval(metric: &Metric) -> String {
    metric.interval.map_or_else(String::new, |[low, high]| {
        format!(" (95 % interval {} to {})", show_change(low), show_change(high))
    })
}

/// How many runs would halve the range, and how many would settle it.
fn narrower(metric: &Metric) -> String {
    let halve =
        metric.runs_to_halve.map(|runs| format!("about {runs} runs on each side would halve this range"));
    let settle = metric.runs_needed.map(|runs| match &halve {
        Some(_) => format!("about {runs} would settle it"),
        None => format!("about {runs} runs on each side would settle it"),
    });
    let all: Vec<String> = halve.into_iter().chain(settle).collect();
    if all.is_empty() { String::new() } else { format!(" To know more: {}.", all.join(", ")) }
}

/// What could have been seen, and what would settle it.
fn settled(metric: &Metric) -> String {
    let seen = metric.could_have_seen.map_or_else(String::new, |share| {
        format!(" A difference of {} would usually have been detected.", show_share(share))
    });
    let runs = match metric.runs_needed {
        Some(runs) => format!(" About {runs} runs on each side would settle it."),
        None if metric.interval.is_none() => " Measure with --runs 5.".into(),
        None => " It would take more than a thousand runs to settle it.".into(),
    };
    seen + &runs
}

/// The accepted findings that the numbers rest on.
fn accepted(pair: &Pair) -> String {
    match pair.accepted.as_slice() {
        [] => String::new(),
        ids => format!(" The numbers rest on accepted findings: {}.", CheckId::list(ids, ", ")),
    }
}

/// What differs beside the numbers.
fn differences_sentence(pair: &Pair) -> String {
    let words: Vec<String> = pair.differences.iter().map(show_difference).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" The difference between these: {}.", words.join("; "))
    }
}

/// `kernel 6.1.0 -> 6.18.5`.
pub(super) fn show_difference(difference: &model::comparison::Difference) -> String {
    format!("{} {} -> {}", difference.aspect, difference.a, difference.b)
}
