//! The gate: whether B is slower than A by more than is allowed.
//!
//! For: the answer that a pipeline acts on. Not for: the exit code, nor whether the two may be compared.

use super::RegressionThreshold;
use model::comparison::{Answer, Gate, Metric, Other, Pair, Passing};
use model::units::{show_change, show_share};

/// Numbers that a sentence names; of more it says how many.
const NAMED: usize = 3;

/// Holds the headline, or every number, against the limit.
pub(super) fn gate(pairs: &[Pair], limit: &RegressionThreshold) -> Gate {
    let mut held: Vec<(Passing, String)> = Vec::new();
    for pair in pairs.iter().filter(|p| p.headline || limit.all) {
        let some = if limit.all { pair.metrics.len() } else { 1 };
        held.extend(pair.metrics.iter().take(some).map(|m| (passing(m, limit.share), told(pair, m))));
        if pair.refused.is_some() {
            held.push((Passing::Undecided, format!("{} is not compared", pair.name)));
        }
    }
    let outcome = held.iter().map(|(passing, _)| *passing).max().unwrap_or(Passing::Undecided);
    let names: Vec<String> = held.into_iter().filter(|(p, _)| *p == outcome).map(|(_, told)| told).collect();
    let by = show_share(limit.share);
    let sentence = match outcome {
        Passing::Failed => format!("Slower by more than {by}: {}.", listed(&names)),
        Passing::Undecided if names.is_empty() => {
            format!("Whether anything is slower by more than {by} cannot be told: there is no number.")
        }
        Passing::Undecided => {
            format!("Whether it is slower by more than {by} cannot be told: {}.", listed(&names))
        }
        Passing::Passed => format!("Not slower by more than {by}: {}.", listed(&names)),
    };
    Gate { limit: limit.share, outcome, sentence }
}

/// The gates of several sides as one: the worst decides, and each is named. `None` where there is none.
pub(super) fn of_all(others: &[Other]) -> Option<Gate> {
    let all: Vec<(&str, &Gate)> =
        others.iter().filter_map(|o| Some((o.name.as_str(), o.comparison.gate.as_ref()?))).collect();
    let (_, worst) = all.iter().max_by_key(|(_, gate)| gate.outcome)?;
    let sentences = all.iter().map(|(name, gate)| format!("{name}: {}", gate.sentence));
    Some(Gate { sentence: sentences.collect::<Vec<_>>().join(" "), ..(*worst).clone() })
}

fn passing(metric: &Metric, limit: f64) -> Passing {
    let Some([low, high]) = metric.interval else { return Passing::Undecided };
    let (surely_slower, surely_not) = if metric.more_is_better {
        (high < 1.0 - limit, low >= 1.0 - limit)
    } else {
        (low > 1.0 + limit, high <= 1.0 + limit)
    };
    match metric.answer {
        // The word has heard the second witness too.
        Answer::Slower if surely_slower => Passing::Failed,
        _ if surely_not => Passing::Passed,
        _ => Passing::Undecided,
    }
}

/// `RND4K Q32T1 read IOPS -10.3 % (-12.0 % to -8.6 %)`.
fn told(pair: &Pair, metric: &Metric) -> String {
    let interval = metric.interval.map_or_else(
        || " (no interval)".into(),
        |[low, high]| format!(" ({} to {})", show_change(low), show_change(high)),
    );
    format!("{} {} {}{interval}", pair.name, metric.name, show_change(metric.ratio))
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let some = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{some}; and {more} more") } else { some }
}

#[cfg(test)]
fn metric(answer: Answer, more_is_better: bool, interval: Option<[f64; 2]>) -> Metric {
    Metric {
        name: "IOPS".into(),
        unit: "IOPS".into(),
        more_is_better,
        answer,
        why: String::new(),
        a: 1.0,
        b: 1.0,
        a_runs: Vec::new(),
        b_runs: Vec::new(),
        ratio: interval.map_or(1.0, |[low, high]| f64::midpoint(low, high)),
        interval,
        margin: 0.01,
        floor: None,
        could_have_seen: None,
        runs_needed: None,
        p: None,
        p_ranks: None,
        ratio_by_ranks: 1.0,
    }
}

#[test]
fn only_what_is_surely_slower_by_more_fails() {
    let of = |answer, interval| passing(&metric(answer, true, Some(interval)), 0.05);
    assert_eq!(of(Answer::Slower, [0.88, 0.92]), Passing::Failed);
    assert_eq!(of(Answer::Slower, [0.93, 0.96]), Passing::Undecided, "slower, perhaps by less");
    assert_eq!(of(Answer::Slower, [0.96, 0.98]), Passing::Passed, "surely slower, and by less");
    assert_eq!(of(Answer::CannotTell, [0.88, 0.92]), Passing::Undecided, "the second witness disagrees");
    assert_eq!(of(Answer::CannotTell, [0.96, 1.10]), Passing::Passed);
    assert_eq!(passing(&metric(Answer::CannotTell, true, None), 0.05), Passing::Undecided);
    let time = |interval| passing(&metric(Answer::Slower, false, Some(interval)), 0.05);
    assert_eq!((time([1.06, 1.2]), time([1.02, 1.04])), (Passing::Failed, Passing::Passed));
}

#[test]
fn the_headline_counts_and_with_all_everything() {
    let pair = |headline, metrics| Pair {
        name: "RND4K Q32T1 read".into(),
        true_name_a: String::new(),
        true_name_b: String::new(),
        phase: 0,
        stream: 0,
        headline,
        refused: None,
        differences: Vec::new(),
        metrics,
        left_out: Vec::new(),
    };
    let good = metric(Answer::Same, true, Some([0.99, 1.0]));
    let bad = metric(Answer::Slower, true, Some([0.80, 0.82]));
    let pairs = [pair(true, vec![good.clone(), bad.clone()]), pair(false, vec![good])];
    let only = gate(&pairs, &RegressionThreshold { share: 0.05, all: false });
    assert_eq!(only.outcome, Passing::Passed);
    let all = gate(&pairs, &RegressionThreshold { share: 0.05, all: true });
    assert_eq!(all.outcome, Passing::Failed);
    assert!(all.sentence.contains("RND4K Q32T1 read IOPS -19.0 % (-20.0 % to -18.0 %)"), "{}", all.sentence);
    assert_eq!(gate(&[], &RegressionThreshold { share: 0.05, all: true }).outcome, Passing::Undecided);
}
