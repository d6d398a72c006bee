//! The gate: whether B is slower than A by more than the limit.
//!
//! 1. PASS: the one-sided 95 % bound of the slowness is within the limit.
//! 2. FAIL: the other bound is beyond the limit, and the number is SLOWER.
//! 3. INCONCLUSIVE: the limit lies between the bounds; or both are beyond it and the number is not SLOWER, with the reason.
//!
//! A gate that may decide twice, on the first runs and on as many more as these ask for, uses both ends of a 95 % interval as bounds, so
//! that both decisions together err no more often.

use super::{Options, Runs};
use model::comparison::{Answer, Gate, Metric, Other, Pair, Passing};
use model::finding::CheckId;
use model::units::{show_change, show_share};
use model::verdict::Slower;
use stats::welch::{ALLOWED, Shift};

/// Numbers that a sentence names; of more it says how many.
const NAMED: usize = 3;

/// A number compared with the limit.
struct Held {
    outcome: Passing,
    /// The number in words.
    told: String,
    /// Runs on each side that would tell.
    runs_needed: Option<u32>,
}

/// Holds the headline, or every number, against the limit.
pub(super) fn gate(pairs: &[Pair], limit: Slower, options: &Options) -> Gate {
    let mut held: Vec<Held> = Vec::new();
    for pair in pairs.iter().filter(|p| p.headline || limit.all) {
        let some = if limit.all { pair.metrics.len() } else { 1 };
        match (&pair.refused, missing(pair, &options.accept)) {
            (Some(why), _) => {
                let outcome = if pair.no_number { Passing::Invalid } else { Passing::Undecided };
                let is_named = pair.no_number || pair.cannot_tell;
                let told = if is_named { why.clone() } else { format!("{} is not compared", pair.name) };
                held.push(Held { outcome, told, runs_needed: None });
            }
            (None, Some(told)) => held.push(Held { outcome: Passing::Invalid, told, runs_needed: None }),
            (None, None) => {
                held.extend(pair.metrics.iter().take(some).map(|m| holds(pair, m, limit.by, options.runs)));
            }
        }
    }
    let outcome = held.iter().map(|h| h.outcome).max().unwrap_or(Passing::Undecided);
    held.retain(|h| h.outcome == outcome);
    let needed: Option<Vec<u32>> = held.iter().map(|h| h.runs_needed).collect();
    let runs_needed = needed.and_then(|all| all.into_iter().max());
    let names: Vec<String> = held.into_iter().map(|h| h.told).collect();
    let by = show_share(limit.by);
    let sentence = match outcome {
        Passing::Failed => format!("Slower by more than {by}: {}.", listed(&names)),
        Passing::Undecided if names.is_empty() => {
            format!("Whether anything is slower by more than {by} cannot be told: there is no number.")
        }
        Passing::Undecided => {
            let told = format!("Whether it is slower by more than {by} cannot be told: {}.", listed(&names));
            told + &settled(runs_needed, options.runs)
        }
        Passing::Invalid => {
            format!("Whether it is slower by more than {by} is not decided: {}.", listed(&names))
        }
        Passing::Passed => format!("Not slower by more than {by}: {}.", listed(&names)),
    };
    let counts_as = options.inconclusive.filter(|_| outcome == Passing::Undecided);
    let no_number = outcome == Passing::Invalid;
    Gate { limit: limit.by, outcome, sentence, runs_needed, counts_as, no_number }
}

/// Returns which accepted findings a pair rests on that this command line does not accept, with what to type.
fn missing(pair: &Pair, accept: &[CheckId]) -> Option<String> {
    let ids: Vec<CheckId> = pair.accepted.iter().filter(|id| !accept.contains(id)).copied().collect();
    let flags: Vec<String> = ids.iter().map(|id| format!("--accept {id}")).collect();
    (!ids.is_empty()).then(|| {
        let list = CheckId::list(&ids, ", ");
        format!("{} rests on accepted findings ({list}); type {} to decide on it", pair.name, flags.join(" "))
    })
}

/// The gates of several sides as one: the worst decides, and each is named. `None` where there is none.
pub(super) fn of_all(others: &[Other]) -> Option<Gate> {
    let all: Vec<(&str, &Gate)> =
        others.iter().filter_map(|o| Some((o.name.as_str(), o.comparison.gate.as_ref()?))).collect();
    let (_, worst) = all.iter().max_by_key(|(_, gate)| gate.outcome)?;
    let sentences = all.iter().map(|(name, gate)| format!("{name}: {}", gate.sentence));
    let sentence = sentences.collect::<Vec<_>>().join(" ");
    Some(Gate { sentence, ..(*worst).clone() })
}

/// What would settle it, and what to type.
fn settled(runs_needed: Option<u32>, runs: Runs) -> String {
    let Some(needed) = runs_needed else { return String::new() };
    let how = match runs {
        Runs::Apart => {
            "; repeat the command that measured B with --against A, --fail-if-slower and --settle, which \
             measures that many of both"
        }
        Runs::InTurns => "; --settle measures them",
        Runs::Settling => "; --max-runs allows them",
    };
    format!(" About {needed} runs on each side would settle it{how}.")
}

fn holds(pair: &Pair, metric: &Metric, limit: f64, runs: Runs) -> Held {
    let outcome = passing(metric, limit, runs);
    let needed = || {
        let logs = |side: &[f64]| side.iter().map(|v| v.ln()).collect::<Vec<f64>>();
        let (a, b) = (logs(&metric.a_runs), logs(&metric.b_runs));
        let limit = if metric.more_is_better { (-limit).ln_1p() } else { limit.ln_1p() };
        let needed = Shift::new(&a, &b)?.runs_to_tell(limit, tail(runs))?;
        // What these runs could not show takes more of them, whatever their variation says.
        Some(needed.max(a.len().min(b.len()) as u32 + 1))
    };
    let runs_needed = (outcome == Passing::Undecided).then(needed).flatten();
    let mut told = describe_difference(pair, metric, runs);
    if outcome == Passing::Undecided && is_beyond(metric, limit, runs) {
        told += &format!(", but {}", not_slower(metric));
    }
    Held { outcome, told, runs_needed }
}

/// Chance of being wrong that each bound may have.
fn tail(runs: Runs) -> f64 {
    match runs {
        Runs::Apart | Runs::InTurns => ALLOWED,
        Runs::Settling => ALLOWED / 2.0,
    }
}

/// The ends of which each by itself is as sure as a gate has to be.
fn bounds(metric: &Metric, runs: Runs) -> Option<[f64; 2]> {
    match runs {
        Runs::Apart | Runs::InTurns => metric.bounds,
        Runs::Settling => metric.interval,
    }
}

fn passing(metric: &Metric, limit: f64, runs: Runs) -> Passing {
    let Some([low, high]) = bounds(metric, runs) else { return Passing::Undecided };
    let is_within = if metric.more_is_better { low >= 1.0 - limit } else { high <= 1.0 + limit };
    match metric.answer {
        // The ranks have confirmed the word.
        Answer::Slower if is_beyond(metric, limit, runs) => Passing::Failed,
        _ if is_within => Passing::Passed,
        _ => Passing::Undecided,
    }
}

/// Whether both bounds are slower than the limit.
fn is_beyond(metric: &Metric, limit: f64, runs: Runs) -> bool {
    let beyond = |[low, high]: [f64; 2]| {
        if metric.more_is_better { high < 1.0 - limit } else { low > 1.0 + limit }
    };
    bounds(metric, runs).is_some_and(beyond)
}

/// Why a number beyond the limit is not SLOWER.
fn not_slower(metric: &Metric) -> String {
    if metric.why.is_empty() {
        let margin = show_share(metric.margin);
        format!("a change has to be above {margin} here to be told from none")
    } else {
        metric.why.clone()
    }
}

/// `RND4K Q32T1 read IOPS -10.3 % (-12.0 % to -8.6 %)`.
fn describe_difference(pair: &Pair, metric: &Metric, runs: Runs) -> String {
    let between = bounds(metric, runs).map_or_else(
        || " (no interval)".into(),
        |[low, high]| format!(" ({} to {})", show_change(low), show_change(high)),
    );
    format!("{} {} {}{between}", pair.name, metric.name, show_change(metric.ratio))
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let some = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{some}; and {more} more") } else { some }
}

#[cfg(test)]
use model::report::CountsAs;

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
        bounds: interval,
        margin: 0.01,
        tolerance: Some(0.05),
        floor: None,
        could_have_seen: None,
        runs_needed: None,
        runs_to_halve: None,
        p: None,
        p_ranks: None,
        ratio_by_ranks: 1.0,
    }
}

#[cfg(test)]
pub(super) fn pair(headline: bool, metrics: Vec<Metric>) -> Pair {
    Pair {
        name: "RND4K Q32T1 read".into(),
        true_name_a: String::new(),
        true_name_b: String::new(),
        phase: 0,
        stream: 0,
        headline,
        refused: None,
        no_number: false,
        cannot_tell: false,
        accepted: Vec::new(),
        differences: Vec::new(),
        metrics,
        left_out: Vec::new(),
    }
}

#[test]
fn only_what_is_surely_slower_by_more_fails() {
    let of = |answer, interval| passing(&metric(answer, true, Some(interval)), 0.05, Runs::Apart);
    assert_eq!(of(Answer::Slower, [0.88, 0.92]), Passing::Failed);
    assert_eq!(of(Answer::Slower, [0.93, 0.96]), Passing::Undecided, "slower, perhaps by less");
    assert_eq!(of(Answer::Slower, [0.96, 0.98]), Passing::Passed, "surely slower, and by less");
    assert_eq!(of(Answer::CannotTell, [0.88, 0.92]), Passing::Undecided, "the second witness disagrees");
    assert_eq!(of(Answer::CannotTell, [0.96, 1.10]), Passing::Passed);
    assert_eq!(passing(&metric(Answer::CannotTell, true, None), 0.05, Runs::Apart), Passing::Undecided);
    let time = |interval| passing(&metric(Answer::Slower, false, Some(interval)), 0.05, Runs::Apart);
    assert_eq!((time([1.06, 1.2]), time([1.02, 1.04])), (Passing::Failed, Passing::Passed));
}

#[test]
fn a_number_beyond_the_limit_that_is_not_slower_says_why() {
    let asked = |why: &str, answer| {
        let near = Metric { why: why.into(), margin: 0.05, ..metric(answer, true, Some([0.955, 0.965])) };
        let limit = Slower { by: 0.03, all: false };
        gate(&[pair(true, vec![near])], limit, &Options::default())
    };
    let within = asked("", Answer::Same);
    assert_eq!(within.outcome, Passing::Undecided);
    assert!(within.sentence.contains("but a change has to be above 5.0 %"), "{}", within.sentence);
    let doubted = asked("the ranks contradict it", Answer::CannotTell);
    assert!(doubted.sentence.contains("but the ranks contradict it"), "{}", doubted.sentence);
}

#[test]
fn the_headline_counts_and_with_all_everything() {
    let good = metric(Answer::Same, true, Some([0.99, 1.0]));
    let bad = metric(Answer::Slower, true, Some([0.80, 0.82]));
    let pairs = [pair(true, vec![good.clone(), bad.clone()]), pair(false, vec![good])];
    let gate = |pairs: &[Pair], all| gate(pairs, Slower { by: 0.05, all }, &Options::default());
    let only = gate(&pairs, false);
    assert_eq!(only.outcome, Passing::Passed);
    let all = gate(&pairs, true);
    assert_eq!(all.outcome, Passing::Failed);
    assert!(all.sentence.contains("RND4K Q32T1 read IOPS -19.0 % (-20.0 % to -18.0 %)"), "{}", all.sentence);
    assert_eq!(gate(&[], true).outcome, Passing::Undecided);
}

#[test]
fn what_cannot_be_told_says_how_many_runs_would_and_what_it_counts_as() {
    let a_runs = vec![1e4, 1.02e4, 0.98e4, 1.01e4, 0.99e4];
    let b_runs: Vec<f64> = a_runs.iter().map(|v| v * 0.96).collect();
    let near = Metric { a_runs, b_runs, ..metric(Answer::CannotTell, true, Some([0.93, 0.99])) };
    let pair = pair(true, vec![near]);
    let asked = |runs, inconclusive| {
        let options = Options { inconclusive, runs, ..Options::default() };
        gate(std::slice::from_ref(&pair), Slower { by: 0.05, all: false }, &options)
    };
    let apart = asked(Runs::Apart, None);
    assert_eq!((apart.outcome, apart.counts_as), (Passing::Undecided, None));
    let needed = |gate: &Gate| gate.runs_needed.filter(|n| (6..200).contains(n)).unwrap();
    assert!(
        apart.sentence.contains("runs on each side") && apart.sentence.contains("--against A"),
        "{apart:?}"
    );
    let settling = asked(Runs::Settling, Some(CountsAs::Fail));
    assert!(needed(&settling) > needed(&apart), "two looks ask for more");
    assert_eq!(settling.counts_as, Some(CountsAs::Fail));
}
