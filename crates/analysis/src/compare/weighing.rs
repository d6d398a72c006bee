//! Weighs the runs of two sides: which numbers are compared, which answer each one gets, and whether the gate `--fail-if-slower` passes.
//!
//! The answer comes from the 95 % interval of the ratio on logarithms: Welch's interval, or a bootstrap over runs for percentiles with six
//! runs or more on each side. The answer is the first of these that applies:
//! 1. `FASTER`, `SLOWER`: the interval is beyond the margin, Holm's p among all numbers is at most 5 %, and the ranks of the runs confirm
//!    the difference.
//! 2. `SAME`: the interval and the median of all pairs of runs are within the tolerance.
//! 3. `CANNOT TELL`: there is no interval, the ranks or medians of the runs contradict the means,
//!    or the interval allows a change by more than half.
//! 4. `NO DIFFERENCE SEEN`: everything else. The interval bounds the difference.
//!
//! The gate has four outcomes. The worst outcome of its numbers decides; from worst to best: FAIL, INVALID, INCONCLUSIVE, PASS. The
//! outcome of a number is the first of these that applies:
//! 1. INVALID: a side has no number, or depends on an accepted finding that this command line does not accept.
//! 2. FAIL: both one-sided 95 % bounds of the slowdown are beyond the limit, and the number is SLOWER.
//! 3. PASS: the upper bound of the slowdown is within the limit.
//! 4. INCONCLUSIVE: the limit is between the bounds, there are no bounds, the number is not compared, or both bounds are beyond the
//!    limit but the number is not SLOWER.
//!
//! A gate that may decide twice, on the first runs and after more runs, uses the ends of the two-sided 95 % interval as bounds. Each end
//! errs half as often as a one-sided bound, so both decisions together err no more often than one decision with a one-sided bound.

use super::{Options, RunOrder};
use crate::compare::checks;
use crate::compare::{PooledResult, SideResult};
use crate::findings::accept_flags;
use crate::threshold::{
    CANNOT_TELL_ABOVE, MARGIN, MARGIN_OF_LONE_SESSIONS, MARGIN_OF_PERCENTILE, TOLERANCE, TOLERANCE_OF_TAIL,
};
use crate::verdict::{PASS_IF_UNDECIDED, judge_undecided};
use model::comparison::{ComparisonAnswer, GateOutcome, Metric, Other, Pair, SlowdownGate};
use model::finding::CheckId;
use model::job::{Kind, Pace, Pattern, Stream};
use model::report::RunFigures;
use model::units::{show_change, show_change_ends, show_counted, show_share};
use model::verdict::SlowdownLimit;
use stats::comparison::{SIGNIFICANCE, Shift};
use stats::sample::mean;
use stats::{comparison, intervals};
use std::collections::BTreeSet;

/// The noise floor is this quantile of the differences between sessions of one side.
const FLOOR_PERCENTILE: f64 = 0.95;

/// A number with its runs on both sides. Its answer is still open, because it depends on how many numbers are compared.
pub(super) struct WeighedNumber {
    measure: Measure,
    /// Logarithms of the values of all runs of A.
    a: Vec<f64>,
    /// Logarithms of the values of all runs of B.
    b: Vec<f64>,
    shift: Option<Shift>,
    /// Two-sided 95 % interval of the logarithm of the ratio.
    interval: Option<[f64; 2]>,
    /// One-sided bounds of the logarithm of the ratio, each with 95 % confidence.
    bounds: Option<[f64; 2]>,
    margin: f64,
    tolerance: f64,
    /// The difference between sessions of one side, as a share; `None` if each side is one session.
    floor: Option<f64>,
    /// Median of the differences between the logarithms of all pairs of runs.
    median_of_pairs: f64,
    /// The p-value of the rank test; `None` if there is none.
    p_ranks: Option<f64>,
}

/// Weighs a number with the margin of the options.
pub(super) fn weigh(measure: Measure, options: &Options) -> WeighedNumber {
    let logs = |side: &[Vec<f64>]| side.iter().flatten().map(|v| v.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(&measure.a), logs(&measure.b));
    let shift = Shift::new(&a, &b);
    let is_bootstrapped = measure.is_percentile && a.len().min(b.len()) >= intervals::FEWEST_FOR_BOOTSTRAP;
    let interval_at = |tail: f64| {
        shift.and_then(|s| {
            if is_bootstrapped {
                intervals::bootstrap_interval(&a, &b, s.degrees(), tail)
            } else {
                Some(s.interval_at(tail))
            }
        })
    };
    let (interval, bounds) = (interval_at(SIGNIFICANCE / 2.0), interval_at(SIGNIFICANCE));
    let floor = find_floor(&measure.a, &measure.b);
    let least = if measure.is_percentile { MARGIN_OF_PERCENTILE } else { MARGIN };
    let knows_floor = floor.is_some() || options.run_order != RunOrder::Apart;
    let usual_margin = if knows_floor { MARGIN } else { MARGIN_OF_LONE_SESSIONS };
    let margin = least.max(options.margin.unwrap_or(usual_margin)).max(floor.unwrap_or(0.0));
    let usual_tolerance = if measure.is_tail { TOLERANCE_OF_TAIL } else { TOLERANCE };
    let tolerance = margin.max(options.margin.unwrap_or(usual_tolerance));
    WeighedNumber {
        median_of_pairs: comparison::hodges_lehmann(&a, &b).unwrap_or(f64::NAN),
        p_ranks: comparison::exact_rank_test(&a, &b),
        margin,
        tolerance,
        floor,
        measure,
        a,
        b,
        shift,
        interval,
        bounds,
    }
}

/// Returns the difference between sessions of one side as a share: the 95th percentile of all pairs of sessions, or the largest with fewer
/// than 20 pairs. `None` if each side is one session.
fn find_floor(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<f64> {
    let mut apart: Vec<f64> = Vec::new();
    for side in [a, b] {
        let measured = side.iter().filter(|s| !s.is_empty());
        let centres: Vec<f64> =
            measured.map(|s| mean(&s.iter().map(|v| v.ln()).collect::<Vec<_>>())).collect();
        for (i, x) in centres.iter().enumerate() {
            apart.extend(centres[..i].iter().map(|y| (x - y).abs()).filter(|d| d.is_finite()));
        }
    }
    apart.sort_unstable_by(f64::total_cmp);
    let at = (FLOOR_PERCENTILE * apart.len() as f64).ceil() as usize;
    apart.get(at.checked_sub(1)?).map(|d| d.exp_m1())
}

impl WeighedNumber {
    /// Returns the probability of a difference this large by chance, if the true difference is at most the margin; 1 with too few runs.
    pub(super) fn p_beyond_margin(&self) -> f64 {
        self.shift.map_or(1.0, |s| s.p_beyond(self.margin.ln_1p()))
    }

    /// Returns the metric with its answer. `chance` is the p-value of the difference, already corrected for `numbers`, the
    /// count of compared metrics.
    pub(super) fn into_metric(self, chance: f64, numbers: usize) -> Metric {
        let (answer, why) = self.answer(chance, numbers);
        let limits = [self.margin, self.tolerance].map(f64::ln_1p);
        let is_open = matches!(answer, ComparisonAnswer::CannotTell | ComparisonAnswer::NoDifferenceSeen);
        let runs_needed = self.shift.filter(|_| is_open).and_then(|s| s.runs_needed(limits, numbers));
        let is_bounded = answer == ComparisonAnswer::NoDifferenceSeen;
        let runs_to_halve = self.shift.filter(|_| is_bounded).and_then(|s| s.runs_to_halve());
        // With too few runs for a rank test, no difference could have been detected.
        let detecting =
            self.shift.filter(|_| comparison::smallest_p(self.a.len(), self.b.len()) <= SIGNIFICANCE);
        Metric {
            name: self.measure.name,
            unit: self.measure.unit.into(),
            more_is_better: self.measure.more_is_better,
            answer,
            why,
            a: mean(&self.a).exp(),
            b: mean(&self.b).exp(),
            ratio: (mean(&self.b) - mean(&self.a)).exp(),
            interval: to_ratios(self.interval),
            bounds: to_ratios(self.bounds),
            margin: self.margin,
            tolerance: Some(self.tolerance),
            floor: self.floor,
            could_have_seen: detecting
                .map(|s| s.smallest_detectable(limits[0], numbers).exp_m1())
                .filter(|v| v.is_finite()),
            // These runs did not decide, so at least one more is needed.
            runs_needed: runs_needed.map(|n| n.max(self.a.len().min(self.b.len()) as u32 + 1)),
            runs_to_halve,
            p: self.shift.map(|_| chance),
            p_ranks: self.p_ranks,
            ratio_by_ranks: self.median_of_pairs.exp(),
            a_runs: self.measure.a.concat(),
            b_runs: self.measure.b.concat(),
        }
    }

    fn answer(&self, chance: f64, numbers: usize) -> (ComparisonAnswer, String) {
        let cannot = |why: String| (ComparisonAnswer::CannotTell, why);
        let (Some(_), Some([low, high])) = (self.shift, self.interval) else {
            let few = self.a.len().min(self.b.len());
            return cannot(format!(
                "{few} {} on a side {} too few: three runs on each side show how much runs vary",
                if few == 1 { "run" } else { "runs" },
                if few == 1 { "is" } else { "are" }
            ));
        };
        let [margin, tolerance] = [self.margin, self.tolerance].map(f64::ln_1p);
        let grows = low > margin;
        let is_beyond = grows || high < -margin;
        let doubt = is_beyond.then(|| self.why_doubtful(grows)).flatten();
        if is_beyond && doubt.is_none() && chance <= SIGNIFICANCE {
            let better = grows == self.measure.more_is_better;
            return (if better { ComparisonAnswer::Faster } else { ComparisonAnswer::Slower }, String::new());
        }
        if low > -tolerance && high < tolerance {
            return if self.median_of_pairs.abs() < tolerance {
                (ComparisonAnswer::Same, String::new())
            } else {
                cannot("the means are the same, but the medians of the runs differ".into())
            };
        }
        if let Some(why) = doubt {
            return cannot(why);
        }
        let largest = high.exp_m1().max(-low.exp_m1());
        if largest > CANNOT_TELL_ABOVE {
            return cannot(format!(
                "the runs differ so much from each other that a difference of {} is possible",
                show_share(largest)
            ));
        }
        let by_chance = format!(
            "alone, this number would count as different, but among {} one may differ this much by chance (p \
             {chance:.2}, Holm)",
            show_counted(numbers as u64, "number")
        );
        (ComparisonAnswer::NoDifferenceSeen, if is_beyond { by_chance } else { String::new() })
    }

    /// Returns why the ranks of the runs do not confirm a difference; `None` if they do.
    fn why_doubtful(&self, grows: bool) -> Option<String> {
        let (n, m) = (self.a.len(), self.b.len());
        let least = comparison::smallest_p(n, m);
        if least > SIGNIFICANCE {
            return Some(format!(
                "{n} runs against {m} are too few: even if every run of one side is faster than every run of \
                 the other, the probability of that by chance is {}; use at least 4 runs against 4, or 3 \
                 against 5",
                show_share(least)
            ));
        }
        let p = self.p_ranks.unwrap_or(1.0);
        if p > SIGNIFICANCE {
            return Some(format!(
                "a rank test does not confirm the difference (p {p:.2}): a few outlying runs may cause it"
            ));
        }
        if self.median_of_pairs.abs() <= self.margin.ln_1p() || (self.median_of_pairs > 0.0) != grows {
            return Some("the means differ, but the medians of the runs do not".into());
        }
        let overlap =
            self.measure.is_percentile && n.min(m) < intervals::FEWEST_FOR_BOOTSTRAP && !self.is_separated();
        overlap.then(|| {
            format!(
                "with fewer than {} runs on a side, a percentile counts as different only if the runs of both sides do not overlap",
                intervals::FEWEST_FOR_BOOTSTRAP
            )
        })
    }

    /// Whether all runs of one side are above all runs of the other side.
    fn is_separated(&self) -> bool {
        let ends = |side: &[f64]| {
            side.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)))
        };
        let ((low_a, high_a), (low_b, high_b)) = (ends(&self.a), ends(&self.b));
        high_a < low_b || high_b < low_a
    }
}

/// Converts logarithms of ratios to ratios.
fn to_ratios(logs: Option<[f64; 2]>) -> Option<[f64; 2]> {
    logs.map(|ends| ends.map(f64::exp)).filter(|ends| ends.iter().all(|v| v.is_finite()))
}

/// Percentiles that are compared.
const COMPARED_PERCENTILES: [&str; 3] = [MEDIAN, TAIL, "99.9"];

const MEDIAN: &str = "50";

/// The percentile that decides a comparison if the job sets the rate.
const TAIL: &str = "99";

/// A run whose rate is at least this share of the job's limit has reached the limit.
const REACHED_FROM: f64 = 0.95;

/// A number on both sides: one value per run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) more_is_better: bool,
    /// Whether the number is a percentile: its values are rounded to a histogram bucket and rarely normally
    /// distributed.
    pub(super) is_percentile: bool,
    /// Whether the number is a percentile from p99 on, which depends on a few operations.
    pub(super) is_tail: bool,
    /// The values of A, by session.
    pub(super) a: Vec<Vec<f64>>,
    /// The values of B, by session.
    pub(super) b: Vec<Vec<f64>>,
}

type ReadRun<'r> = dyn Fn(&RunFigures) -> Option<f64> + 'r;

/// The name of a number, and how it is read from a run.
struct NumberReader<'r> {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    /// The percentile, one of [`COMPARED_PERCENTILES`]; `None` for other numbers.
    rank: Option<&'static str>,
    read: Box<ReadRun<'r>>,
}

/// Returns the measures of a pair, and a note on each measure that only some runs have. The measure
/// that decides the comparison comes first.
pub(super) fn collect_measures(a: &PooledResult, b: &PooledResult) -> (Vec<Measure>, Vec<String>) {
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for reader in list_readers(a, b) {
        let values = |side: &PooledResult| -> Vec<Vec<Option<f64>>> {
            let positive = |v: &f64| v.is_finite() && *v > 0.0;
            let value = |r: &RunFigures| (reader.read)(r).filter(positive);
            side.iter().map(|one| one.result.runs.iter().map(value).collect()).collect()
        };
        let (a, b) = (values(a), values(b));
        let runs = || a.iter().chain(&b).flatten();
        let missing = runs().filter(|v| v.is_none()).count();
        if missing == 0 && !a.concat().is_empty() && !b.concat().is_empty() {
            let values = |side: Vec<Vec<Option<f64>>>| {
                side.into_iter().map(|s| s.into_iter().flatten().collect()).collect()
            };
            let NumberReader { name, unit, more_is_better, rank, .. } = reader;
            let (is_percentile, is_tail) = (rank.is_some(), rank.is_some_and(|rank| rank != MEDIAN));
            let (a, b) = (values(a), values(b));
            all.push(Measure { name, unit, more_is_better, is_percentile, is_tail, a, b });
        } else if missing < runs().count() {
            // Runs with too few operations lack the percentile. Comparing only the other runs would be misleading.
            left_out.push(format!("{}: {missing} of {} runs lack this value", reader.name, runs().count()));
        }
    }
    (all, left_out)
}

fn list_readers<'r>(a: &'r PooledResult, b: &'r PooledResult) -> Vec<NumberReader<'r>> {
    let streams: Vec<&Stream> = a.iter().chain(b).filter_map(|one| stream(*one)).collect();
    let mut all = vec![read_rate(&streams)];
    for kind in Kind::ALL {
        all.extend(COMPARED_PERCENTILES.iter().map(|rank| read_percentile(kind, rank)));
    }
    all.push(NumberReader {
        name: "CPU per operation".into(),
        unit: "ns",
        more_is_better: false,
        rank: None,
        read: Box::new(|r| r.cpu_ns_per_op),
    });
    let is_contradicted = |r: &NumberReader| a.iter().chain(b).any(|one| checks::contradicts(*one, &r.name));
    all.retain(|r| r.rank.is_none() || !is_contradicted(r));
    if a.iter().chain(b).any(|one| is_rate_set_by_job(*one)) {
        // Equal rates say nothing about the storage: a latency decides, the tail if every run has it.
        let decides = |rank: &str| {
            all.iter().position(|r| r.rank == Some(rank) && is_in_every_run(a, r) && is_in_every_run(b, r))
        };
        match decides(TAIL).or_else(|| decides(MEDIAN)) {
            Some(at) => all[..=at].rotate_right(1),
            None => all.clear(),
        }
    }
    all
}

/// Whether the job, and not the storage, decides the rate of a result: in an open loop, or if a run reached the job's
/// limit on its rate.
fn is_rate_set_by_job(one: SideResult<'_>) -> bool {
    let Some(stream) = stream(one) else { return false };
    let reaches = |limit: f64, rate: fn(&RunFigures) -> f64| {
        limit > 0.0 && one.result.runs.iter().any(|r| rate(r) >= REACHED_FROM * limit)
    };
    match stream.pace {
        Pace::Closed => false,
        // With limits by direction, a run has no rate for each of them, and the slower direction may hold up the other one.
        Pace::Open { .. } | Pace::Each { .. } => true,
        Pace::Limited { iops, bytes_per_s } => {
            reaches(iops, |r| r.iops) || reaches(bytes_per_s / 1e6, |r| r.mb_per_s)
        }
    }
}

/// Whether a side has runs, and every run has the number.
fn is_in_every_run(side: &PooledResult, reader: &NumberReader) -> bool {
    let runs = || side.iter().flat_map(|one| &one.result.runs);
    runs().next().is_some() && runs().all(|r| (reader.read)(r).is_some())
}

/// Returns the stream of a result.
fn stream(one: SideResult<'_>) -> Option<&Stream> {
    one.result.job.phases.get(one.result.phase as usize)?.streams.get(one.result.stream as usize)
}

/// Returns the quoted rate: bytes per second for sequential work or several block sizes, otherwise operations per
/// second.
fn read_rate<'r>(streams: &[&Stream]) -> NumberReader<'r> {
    let sizes: Vec<Option<u32>> = streams.iter().map(|s| s.access.block_bytes()).collect();
    let one_size = sizes.windows(2).all(|w| w[0] == w[1]) && sizes.iter().all(Option::is_some);
    let sequential = |s: &&Stream| s.access.pattern() == Some(Pattern::Sequential);
    let moves = streams.iter().all(|s| !s.moves_no_data());
    let in_bytes = moves && (streams.iter().any(sequential) || !one_size);
    let unit = if in_bytes { "MB/s" } else { "IOPS" };
    NumberReader {
        name: unit.into(),
        unit,
        more_is_better: true,
        rank: None,
        read: Box::new(move |r| Some(if in_bytes { r.mb_per_s } else { r.iops })),
    }
}

fn read_percentile<'r>(kind: Kind, rank: &'static str) -> NumberReader<'r> {
    NumberReader {
        name: format!("{} p{rank}", kind.word()),
        unit: "ns",
        more_is_better: false,
        rank: Some(rank),
        read: Box::new(move |r| {
            r.percentiles_ns.get(kind.word())?.get(rank).copied().flatten().map(|ns| ns as f64)
        }),
    }
}

/// A sentence names at most this many numbers, and gives the count of the others.
const MAX_NAMED: usize = 3;

/// A number compared with the limit.
struct LimitedNumber {
    outcome: GateOutcome,
    /// The number with its change.
    description: String,
    /// Whether the description has an upper bound of the slowdown.
    is_bounded: bool,
    /// Number of runs on each side that would decide the gate; `None` if the gate is decided, or if
    /// more runs would not decide it.
    runs_needed: Option<u32>,
}

/// Compares the headline, or every number, with the limit. The worst outcome decides. `ended_early` is the side that ended early, if any.
pub(super) fn decide_gate(
    pairs: &[Pair],
    limit: SlowdownLimit,
    options: &Options,
    ended_early: Option<&str>,
) -> SlowdownGate {
    let mut numbers: Vec<LimitedNumber> = Vec::new();
    for pair in pairs.iter().filter(|p| p.headline || limit.all_numbers) {
        let compared = if limit.all_numbers { pair.metrics.len() } else { 1 };
        match (&pair.refused, describe_unaccepted(pair, &options.accept)) {
            (Some(why), _) => {
                let outcome = if pair.no_number { GateOutcome::Invalid } else { GateOutcome::Undecided };
                let is_named = pair.no_number || pair.cannot_tell;
                let description =
                    if is_named { why.clone() } else { format!("{} is not compared", pair.name) };
                numbers.push(LimitedNumber { outcome, description, is_bounded: false, runs_needed: None });
            }
            (None, Some(description)) => {
                let outcome = GateOutcome::Invalid;
                numbers.push(LimitedNumber { outcome, description, is_bounded: false, runs_needed: None });
            }
            (None, None) => {
                numbers.extend(
                    pair.metrics
                        .iter()
                        .take(compared)
                        .map(|m| compare_with_limit(pair, m, limit.share, options.run_order)),
                );
            }
        }
    }
    let outcome = numbers.iter().map(|n| n.outcome).max().unwrap_or(GateOutcome::Undecided);
    numbers.retain(|n| n.outcome == outcome);
    let needed: Option<Vec<u32>> = numbers.iter().map(|n| n.runs_needed).collect();
    let runs_needed = needed.and_then(|all| all.into_iter().max());
    let are_bounded = !numbers.is_empty() && numbers.iter().all(|n| n.is_bounded);
    let names: Vec<String> = numbers.into_iter().map(|n| n.description).collect();
    let by = show_limit(limit.share);
    let sentence = match outcome {
        GateOutcome::Failed => format!("Slower by more than {by}: {}.", join_names(&names)),
        GateOutcome::Undecided if names.is_empty() => {
            format!("A slowdown of more than {by} cannot be decided: there is no number.")
        }
        GateOutcome::Undecided => {
            let numbers = join_names(&names);
            let sentence = if are_bounded {
                format!("{numbers}.")
            } else {
                format!("A slowdown of more than {by} is neither shown nor ruled out: {numbers}.")
            };
            sentence + &describe_needed_runs(runs_needed, options.run_order)
        }
        GateOutcome::Invalid => {
            format!("A slowdown of more than {by} cannot be decided: {}.", join_names(&names))
        }
        GateOutcome::Passed => format!("Not slower by more than {by}: {}.", join_names(&names)),
    };
    let (counts_as, addition) = match outcome {
        GateOutcome::Undecided => judge_undecided(options.inconclusive, ended_early),
        _ => (None, String::new()),
    };
    // Leaves out the advice to type `--inconclusive pass` for runs in turns, because the session's own answer has it, and if there is no
    // bound, because a PASS would then prove nothing.
    let is_advice = addition.ends_with(PASS_IF_UNDECIDED);
    let omits_advice = is_advice && (!are_bounded || options.run_order != RunOrder::Apart);
    let sentence = if omits_advice { sentence } else { sentence + &addition };
    let no_number = outcome == GateOutcome::Invalid;
    SlowdownGate { limit: limit.share, outcome, sentence, runs_needed, counts_as, no_number }
}

/// Formats a limit with all digits that were typed: rounded like a measured share, `33.4 %` could contradict the outcome.
fn show_limit(share: f64) -> String {
    let (rounded, percent) = (show_share(share), (share * 1e6).round() / 1e4);
    let is_exact = rounded.strip_suffix(" %").is_some_and(|shown| shown.parse() == Ok(percent));
    if is_exact { rounded } else { format!("{percent} %") }
}

#[test]
fn a_limit_keeps_its_digits() {
    assert_eq!([0.05, 0.334, 0.1].map(show_limit), ["5.0 %", "33.4 %", "10 %"]);
}

/// Names the accepted findings of a pair that this command line does not accept, and what to type; `None` without one.
fn describe_unaccepted(pair: &Pair, accept: &[CheckId]) -> Option<String> {
    let ids: BTreeSet<CheckId> = pair.accepted.iter().filter(|id| !accept.contains(id)).copied().collect();
    (!ids.is_empty()).then(|| {
        let list = CheckId::list(&Vec::from_iter(ids.clone()), ", ");
        format!(
            "{} depends on accepted findings ({list}); type {} to decide all the same",
            pair.name,
            accept_flags(&ids)
        )
    })
}

/// Combines the gates of several sides: the worst decides, and the sentence names each. `None` without a gate.
pub(super) fn combine_gates(others: &[Other]) -> Option<SlowdownGate> {
    let all: Vec<(&str, &SlowdownGate)> =
        others.iter().filter_map(|o| Some((o.name.as_str(), o.comparison.gate.as_ref()?))).collect();
    let (_, worst) = all.iter().max_by_key(|(_, gate)| gate.outcome)?;
    // The advice for undecided gates is printed once, if all of them have it and no gate has a worse outcome.
    let has_advice = |gate: &SlowdownGate| gate.sentence.ends_with(PASS_IF_UNDECIDED);
    let mut undecided = all.iter().filter(|(_, gate)| gate.outcome == GateOutcome::Undecided);
    let advice = worst.outcome == GateOutcome::Undecided && undecided.all(|(_, gate)| has_advice(gate));
    let sentence_of =
        |gate: &SlowdownGate| gate.sentence.trim_end_matches(PASS_IF_UNDECIDED).trim_end().to_owned();
    let mut sentences: Vec<String> =
        all.iter().map(|(name, gate)| format!("{name}: {}", sentence_of(gate))).collect();
    sentences.extend(advice.then(|| PASS_IF_UNDECIDED.to_owned()));
    let sentence = sentences.join(" ");
    // A side that does not count as PASS or FAIL leaves the whole undecided.
    let mut counts =
        all.iter().filter(|(_, gate)| gate.outcome == worst.outcome).map(|(_, gate)| gate.counts_as);
    let counts_as = worst.counts_as.filter(|_| counts.all(|counts_as| counts_as == worst.counts_as));
    Some(SlowdownGate { sentence, counts_as, ..(*worst).clone() })
}

/// States how many runs would decide the gate, and what to type.
fn describe_needed_runs(runs_needed: Option<u32>, runs: RunOrder) -> String {
    let Some(needed) = runs_needed else { return String::new() };
    let how = match runs {
        RunOrder::Apart => format!(
            ": type --runs {needed} for both, or repeat the command that measured B with --against A, --fail-if-slower and --settle"
        ),
        RunOrder::InTurns => "; --settle measures them".into(),
        RunOrder::Settling => "; --max-runs allows them".into(),
    };
    format!(" About {needed} runs on each side would settle it{how}.")
}

fn compare_with_limit(pair: &Pair, metric: &Metric, limit: f64, runs: RunOrder) -> LimitedNumber {
    let outcome = find_outcome(metric, limit, runs);
    let needed = || {
        let logs = |side: &[f64]| side.iter().map(|v| v.ln()).collect::<Vec<f64>>();
        let (a, b) = (logs(&metric.a_runs), logs(&metric.b_runs));
        let limit = if metric.more_is_better { (-limit).ln_1p() } else { limit.ln_1p() };
        let needed = Shift::new(&a, &b)?.runs_to_decide(limit, error_chance(runs))?;
        // These runs did not decide, so at least one more is needed.
        Some(needed.max(a.len().min(b.len()) as u32 + 1))
    };
    let is_undecided = outcome == GateOutcome::Undecided;
    let runs_needed = is_undecided.then(needed).flatten();
    let bound = gate_bounds(metric, runs).filter(|_| is_undecided);
    let mut description = match bound {
        Some([low, high]) => {
            // Only the bound: the interval in the table is two-sided and wider.
            let slower = if metric.more_is_better { 1.0 - low } else { high - 1.0 };
            format!(
                "{} {} is slower by at most {} with {} confidence, and the limit is {}; measured: {}",
                pair.name,
                metric.name,
                show_share(slower),
                show_share(1.0 - SIGNIFICANCE),
                show_limit(limit),
                show_change(metric.ratio)
            )
        }
        None if is_undecided && !metric.why.is_empty() => {
            format!("{}, since {}", describe_difference(pair, metric, None), metric.why)
        }
        None => {
            let bound = gate_bounds(metric, runs).map(|bounds| slowdown_bound(metric, bounds, outcome));
            describe_difference(pair, metric, bound)
        }
    };
    if is_undecided && is_beyond(metric, limit, runs) {
        description += &format!(", but {}", why_not_slower(metric));
    }
    LimitedNumber { outcome, description, is_bounded: bound.is_some(), runs_needed }
}

/// Returns the probability with which each bound may be wrong.
fn error_chance(runs: RunOrder) -> f64 {
    match runs {
        RunOrder::Apart | RunOrder::InTurns => SIGNIFICANCE,
        RunOrder::Settling => SIGNIFICANCE / 2.0,
    }
}

/// Returns the two bounds of the ratio, each with the confidence of the gate; `None` without an
/// interval.
fn gate_bounds(metric: &Metric, runs: RunOrder) -> Option<[f64; 2]> {
    match runs {
        RunOrder::Apart | RunOrder::InTurns => metric.bounds,
        RunOrder::Settling => metric.interval,
    }
}

fn find_outcome(metric: &Metric, limit: f64, runs: RunOrder) -> GateOutcome {
    let Some([low, high]) = gate_bounds(metric, runs) else { return GateOutcome::Undecided };
    let is_within = if metric.more_is_better { low >= 1.0 - limit } else { high <= 1.0 + limit };
    match metric.answer {
        // A rank test has already confirmed SLOWER.
        ComparisonAnswer::Slower if is_beyond(metric, limit, runs) => GateOutcome::Failed,
        _ if is_within => GateOutcome::Passed,
        _ => GateOutcome::Undecided,
    }
}

/// Whether both bounds of the slowdown are beyond the limit.
fn is_beyond(metric: &Metric, limit: f64, runs: RunOrder) -> bool {
    let beyond = |[low, high]: [f64; 2]| {
        if metric.more_is_better { high < 1.0 - limit } else { low > 1.0 + limit }
    };
    gate_bounds(metric, runs).is_some_and(beyond)
}

/// Returns why a number whose slowdown is surely beyond the limit is not SLOWER.
fn why_not_slower(metric: &Metric) -> String {
    let margin = show_share(metric.margin);
    match metric.interval.filter(|_| metric.why.is_empty()) {
        Some(ends) => format!(
            "SLOWER needs a 95 % interval beyond {margin}, and the interval is {}",
            show_change_ends(metric.ratio, ends)
        ),
        None if metric.why.is_empty() => format!("only a change above {margin} counts as different here"),
        None => metric.why.clone(),
    }
}

/// Describes the difference of a number: `RND4K Q32T1 read IOPS -10.3 %, slower by at least 8.6 % with 95 % confidence`.
fn describe_difference(pair: &Pair, metric: &Metric, bound: Option<String>) -> String {
    let bound = bound.unwrap_or_else(|| "no interval".into());
    format!("{} {} {}, {bound}", pair.name, metric.name, show_change(metric.ratio))
}

/// Describes the bound that decides the gate. Unless the gate may decide twice, the bound is one-sided, and nearer to the
/// measured change than the end of the two-sided interval in the table.
fn slowdown_bound(metric: &Metric, [low, high]: [f64; 2], outcome: GateOutcome) -> String {
    let [least, most] = if metric.more_is_better { [1.0 - high, 1.0 - low] } else { [low - 1.0, high - 1.0] };
    let confidence = show_share(1.0 - SIGNIFICANCE);
    match outcome {
        GateOutcome::Failed => {
            format!("slower by at least {} with {confidence} confidence", show_share(least))
        }
        _ if most <= 0.0 => format!("not slower with {confidence} confidence"),
        _ => format!("slower by at most {} with {confidence} confidence", show_share(most)),
    }
}

fn join_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let some = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{some}; and {more} more") } else { some }
}

#[cfg(test)]
pub(super) fn rates(a: &[f64], b: &[f64]) -> Measure {
    Measure {
        name: "IOPS".into(),
        unit: "IOPS",
        more_is_better: true,
        is_percentile: false,
        is_tail: false,
        a: vec![a.to_vec()],
        b: vec![b.to_vec()],
    }
}

/// Returns options for runs that were measured in turns.
#[cfg(test)]
pub(super) fn in_turns() -> Options {
    Options { run_order: RunOrder::InTurns, ..Options::default() }
}

#[cfg(test)]
fn metric_for(measure: Measure) -> Metric {
    let weighed = weigh(measure, &in_turns());
    let chance = weighed.p_beyond_margin();
    weighed.into_metric(chance, 1)
}

#[cfg(test)]
const RUNS: [f64; 5] = [9_900.0, 10_100.0, 10_000.0, 9_950.0, 10_050.0];

#[cfg(test)]
fn metric(answer: ComparisonAnswer, more_is_better: bool, interval: Option<[f64; 2]>) -> Metric {
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
    Pair { name: "RND4K Q32T1 read".into(), headline, metrics, ..Pair::default() }
}

#[test]
fn each_answer_has_its_direction() {
    let times = |factor: f64| RUNS.map(|v| v * factor);
    for (factor, expected) in [
        (1.1, ComparisonAnswer::Faster),
        (0.9, ComparisonAnswer::Slower),
        (1.02, ComparisonAnswer::Same),
        (0.96, ComparisonAnswer::Slower),
        (1.0, ComparisonAnswer::Same),
    ] {
        let metric = metric_for(rates(&RUNS, &times(factor)));
        assert_eq!(metric.answer, expected, "{metric:?}");
        assert!(
            (metric.ratio / factor - 1.0).abs() < 1e-9 && (metric.ratio_by_ranks / factor - 1.0).abs() < 0.01
        );
        assert!(metric.why.is_empty() && metric.runs_needed.is_none() && metric.runs_to_halve.is_none());
        let latency = Measure { more_is_better: false, ..rates(&RUNS, &times(factor)) };
        let turned = match expected {
            ComparisonAnswer::Faster => ComparisonAnswer::Slower,
            ComparisonAnswer::Slower => ComparisonAnswer::Faster,
            other => other,
        };
        assert_eq!(metric_for(latency).answer, turned);
    }
    let typed = Options { margin: Some(0.02), ..in_turns() };
    let weighed = weigh(rates(&RUNS, &times(1.02)), &typed);
    assert_eq!((weighed.margin, weighed.tolerance), (0.02, 0.02), "--margin sets both");
}

/// Returns [`RUNS`] with ten times the deviation, multiplied by the factor.
#[cfg(test)]
fn wide(factor: f64) -> [f64; 5] {
    RUNS.map(|v| (10_000.0 + (v - 10_000.0) * 10.0) * factor)
}

#[test]
fn no_difference_seen_has_a_bound() {
    let near = RUNS.map(|v| 10_000.0 + (v - 10_000.0) * 4.0);
    let open = metric_for(rates(&near, &near.map(|v| v * 1.01)));
    assert_eq!((open.answer, open.why.as_str()), (ComparisonAnswer::NoDifferenceSeen, ""), "{open:?}");
    let [faster, slower] = open.at_most().unwrap();
    assert!((0.04..0.08).contains(&faster) && (0.02..0.06).contains(&slower), "{open:?}");
    assert!(open.runs_needed > Some(5) && (10..20).contains(&open.runs_to_halve.unwrap()), "{open:?}");
    assert!(open.bound().unwrap().starts_with("at most "), "{open:?}");
    // For a time, the same ratio has the opposite meaning.
    let time = metric_for(Measure { more_is_better: false, ..rates(&near, &near.map(|v| v * 1.01)) });
    assert_eq!(time.at_most(), Some([slower, faster]));
    // B may be faster by a few per cent, or by less than the margin: it is not slower.
    let small = metric_for(rates(&near, &near.map(|v| v * 1.05)));
    assert_eq!(small.answer, ComparisonAnswer::NoDifferenceSeen, "{small:?}");
    assert!(small.bound().unwrap().ends_with("faster and not slower"), "{small:?}");
    // A range that allows anything is no answer.
    let far = wide(1.0).map(|v| 10_000.0 + (v - 10_000.0) * 4.0);
    let nothing = metric_for(rates(&far, &far.map(|v| v * 1.01)));
    assert_eq!((nothing.answer, nothing.runs_to_halve), (ComparisonAnswer::CannotTell, None), "{nothing:?}");
    assert!(nothing.why.contains("is possible"), "{nothing:?}");
}

#[test]
fn tails_have_a_wider_tolerance() {
    let tolerance = |is_tail| {
        weigh(Measure { is_tail, is_percentile: true, ..rates(&RUNS, &RUNS) }, &in_turns()).tolerance
    };
    assert!(
        (tolerance(false) - TOLERANCE).abs() < 1e-9 && (tolerance(true) - TOLERANCE_OF_TAIL).abs() < 1e-9
    );
}

#[test]
fn a_difference_that_is_significant_alone_is_not_among_many() {
    let weighed = weigh(rates(&wide(1.0), &wide(1.2)), &in_turns());
    assert!(weighed.p_beyond_margin() < SIGNIFICANCE, "{}", weighed.p_beyond_margin());
    let among = weighed.into_metric(0.2, 40);
    assert_eq!(among.answer, ComparisonAnswer::NoDifferenceSeen);
    assert!(among.why.contains("among 40 numbers"), "{among:?}");
}

#[test]
fn three_runs_against_three_never_differ_and_four_can() {
    let scaled = |n: usize, factor: f64| RUNS[..n].iter().map(|v| v * factor).collect::<Vec<f64>>();
    let three = metric_for(rates(&scaled(3, 1.0), &scaled(3, 2.0)));
    assert_eq!(three.answer, ComparisonAnswer::CannotTell);
    assert!(
        three.why.contains("4 runs against 4, or 3 against 5") && three.runs_needed == Some(4),
        "{three:?}"
    );
    for (n, m, are_enough) in [(4, 4, true), (3, 5, true), (5, 3, true), (3, 4, false), (3, 3, false)] {
        assert_eq!(comparison::smallest_p(n, m) <= SIGNIFICANCE, are_enough, "{n} against {m}");
    }
    assert_eq!(three.could_have_seen, None);
    assert_eq!(metric_for(rates(&scaled(4, 1.0), &scaled(4, 2.0))).answer, ComparisonAnswer::Faster);
    assert_eq!(
        metric_for(rates(&scaled(3, 1.0), &scaled(5, 2.0))).answer,
        ComparisonAnswer::Faster,
        "chance 3.6 %"
    );
    let two = metric_for(rates(&scaled(2, 1.0), &scaled(5, 2.0)));
    assert_eq!((two.answer, two.interval, two.runs_needed), (ComparisonAnswer::CannotTell, None, None));
    // Three runs on each side may be enough for SAME.
    assert_eq!(metric_for(rates(&[1e4; 3], &[1e4; 3])).answer, ComparisonAnswer::Same);
}

#[test]
fn percentiles_of_few_runs_must_not_overlap_and_those_of_many_are_bootstrapped() {
    let latency =
        |a: &[f64], b: &[f64]| Measure { more_is_better: false, is_percentile: true, ..rates(a, b) };
    let apart = metric_for(latency(&RUNS, &RUNS.map(|v| v * 1.1)));
    assert_eq!((apart.answer, apart.margin), (ComparisonAnswer::Slower, MARGIN_OF_PERCENTILE));
    let touching = [9_900.0, 10_900.0, 10_800.0, 10_850.0, 10_950.0, 10_870.0, 10_880.0];
    let touching: Vec<f64> = touching[1..6].iter().map(|v: &f64| (v - 750.0).powi(12) / 1e44).collect();
    let few = metric_for(latency(&RUNS.map(|v: f64| v.powi(12) / 1e44), &touching));
    assert_eq!(few.answer, ComparisonAnswer::CannotTell, "{few:?}");
    let many = [RUNS.as_slice(), &[9_980.0, 10_020.0]].concat();
    let drawn = metric_for(latency(&many, &many.iter().map(|v| v * 1.1).collect::<Vec<_>>()));
    let [low, high] = drawn.interval.unwrap();
    assert!(drawn.answer == ComparisonAnswer::Slower && low < 1.1 && 1.1 < high, "{drawn:?}");
}

#[test]
fn sessions_of_one_side_that_differ_widen_the_margin() {
    let sessions = |factors: &[f64]| factors.iter().map(|f| RUNS.map(|v| v * f).to_vec()).collect::<Vec<_>>();
    let apart = Measure { a: sessions(&[1.0, 1.06]), b: sessions(&[1.1, 1.1]), ..rates(&[], &[]) };
    let metric = metric_for(apart);
    assert!(metric.floor.is_some_and(|f| (f - 0.06).abs() < 1e-9) && Some(metric.margin) == metric.floor);
    assert_eq!(metric.answer, ComparisonAnswer::NoDifferenceSeen, "{metric:?}");
    let alike = Measure { a: sessions(&[1.0, 1.001]), b: sessions(&[1.1, 1.1]), ..rates(&[], &[]) };
    assert_eq!(metric_for(alike).answer, ComparisonAnswer::Faster);
    assert_eq!(metric_for(rates(&RUNS, &RUNS)).floor, None);
}

#[test]
fn the_margin_is_wider_if_the_difference_between_sessions_is_unknown() {
    let per_thousand = |measure, margin| {
        (1e3 * weigh(measure, &Options { margin, ..Options::default() }).margin).round() as u32
    };
    let lone = || rates(&RUNS, &RUNS);
    let several = || Measure { a: vec![RUNS.to_vec(), RUNS.to_vec()], ..rates(&[], &RUNS) };
    let percentile = Measure { is_percentile: true, ..several() };
    let margins = [per_thousand(lone(), None), per_thousand(several(), None), per_thousand(percentile, None)];
    assert_eq!(margins, [50, 10, 20]);
    // --margin sets the margin, but not below the least margin of the number.
    assert_eq!([0.0, 0.02, 0.2].map(|asked| per_thousand(lone(), Some(asked))), [10, 20, 200]);
}

#[test]
fn an_outlier_does_not_make_a_difference() {
    // The mean of the logarithms moves by a third, and the ranks do not move.
    let mut odd = RUNS;
    odd[2] = 60_000.0;
    let metric = metric_for(rates(&RUNS, &odd));
    assert_eq!(metric.answer, ComparisonAnswer::CannotTell, "{metric:?}");
    assert!((metric.ratio_by_ranks - 1.0).abs() < 0.02 && metric.ratio > 1.3);
}

#[test]
fn only_numbers_with_both_bounds_beyond_the_limit_fail() {
    let outcome =
        |answer, interval| find_outcome(&metric(answer, true, Some(interval)), 0.05, RunOrder::Apart);
    assert_eq!(outcome(ComparisonAnswer::Slower, [0.88, 0.92]), GateOutcome::Failed);
    assert_eq!(
        outcome(ComparisonAnswer::Slower, [0.93, 0.96]),
        GateOutcome::Undecided,
        "slower, perhaps by less"
    );
    assert_eq!(
        outcome(ComparisonAnswer::Slower, [0.96, 0.98]),
        GateOutcome::Passed,
        "surely slower, and by less"
    );
    assert_eq!(
        outcome(ComparisonAnswer::CannotTell, [0.88, 0.92]),
        GateOutcome::Undecided,
        "a rank test does not confirm it"
    );
    assert_eq!(outcome(ComparisonAnswer::CannotTell, [0.96, 1.10]), GateOutcome::Passed);
    assert_eq!(
        find_outcome(&metric(ComparisonAnswer::CannotTell, true, None), 0.05, RunOrder::Apart),
        GateOutcome::Undecided
    );
    let time = |interval| {
        find_outcome(&metric(ComparisonAnswer::Slower, false, Some(interval)), 0.05, RunOrder::Apart)
    };
    assert_eq!((time([1.06, 1.2]), time([1.02, 1.04])), (GateOutcome::Failed, GateOutcome::Passed));
}

#[test]
fn a_number_beyond_the_limit_that_is_not_slower_says_why() {
    let asked = |why: &str, answer| {
        let near = Metric { why: why.into(), margin: 0.05, ..metric(answer, true, Some([0.955, 0.965])) };
        let limit = SlowdownLimit { share: 0.03, all_numbers: false };
        decide_gate(&[pair(true, vec![near])], limit, &Options::default(), None)
    };
    let within = asked("", ComparisonAnswer::Same);
    assert_eq!(within.outcome, GateOutcome::Undecided);
    assert!(within.sentence.contains("but SLOWER needs a 95 % interval beyond 5.0 %"), "{}", within.sentence);
    let doubted = asked("the ranks contradict it", ComparisonAnswer::CannotTell);
    assert!(doubted.sentence.contains("but the ranks contradict it"), "{}", doubted.sentence);
}

#[test]
fn the_headline_counts_and_with_all_everything() {
    let good = metric(ComparisonAnswer::Same, true, Some([0.99, 1.0]));
    let bad = metric(ComparisonAnswer::Slower, true, Some([0.80, 0.82]));
    let pairs = [pair(true, vec![good.clone(), bad.clone()]), pair(false, vec![good])];
    let gate = |pairs: &[Pair], all| {
        decide_gate(pairs, SlowdownLimit { share: 0.05, all_numbers: all }, &Options::default(), None)
    };
    let only = gate(&pairs, false);
    assert_eq!(only.outcome, GateOutcome::Passed);
    let all = gate(&pairs, true);
    assert_eq!(all.outcome, GateOutcome::Failed);
    assert!(
        all.sentence.contains("RND4K Q32T1 read IOPS -19.0 %, slower by at least 18 % with 95 % confidence"),
        "{}",
        all.sentence
    );
    let nothing = gate(&[], true);
    assert_eq!(nothing.outcome, GateOutcome::Undecided);
    assert!(nothing.sentence.ends_with("there is no number."), "{}", nothing.sentence);
}

#[test]
fn an_undecided_gate_reports_the_needed_runs_and_what_it_counts_as() {
    let a_runs = vec![1e4, 1.02e4, 0.98e4, 1.01e4, 0.99e4];
    let b_runs: Vec<f64> = a_runs.iter().map(|v| v * 0.96).collect();
    let near = Metric { a_runs, b_runs, ..metric(ComparisonAnswer::CannotTell, true, Some([0.93, 0.99])) };
    let pair = pair(true, vec![near]);
    let decide = |runs, inconclusive, ended_early| {
        let options = Options { inconclusive, run_order: runs, ..Options::default() };
        let limit = SlowdownLimit { share: 0.05, all_numbers: false };
        decide_gate(std::slice::from_ref(&pair), limit, &options, ended_early)
    };
    let asked = |runs, inconclusive| decide(runs, inconclusive, None);
    let early = decide(RunOrder::Apart, None, Some("B")).sentence;
    assert!(!early.contains("--inconclusive"), "{early}");
    let apart = asked(RunOrder::Apart, None);
    assert_eq!((apart.outcome, apart.counts_as), (GateOutcome::Undecided, None));
    let needed = |gate: &SlowdownGate| gate.runs_needed.filter(|n| (6..200).contains(n)).unwrap();
    // The bound comes first, then what to type.
    let bound = "is slower by at most 7.0 % with 95 % confidence, and the limit is 5.0 %; measured: ";
    let what_to_type = ["runs on each side", "type --runs ", "--against A", "--inconclusive pass"];
    assert!(
        apart.sentence.contains(bound) && what_to_type.iter().all(|words| apart.sentence.contains(words)),
        "{apart:?}"
    );
    let typed = asked(RunOrder::Apart, Some(model::report::CountsAs::Pass)).sentence;
    assert!(!typed.contains("--inconclusive"), "{typed}");
    let settling = asked(RunOrder::Settling, Some(model::report::CountsAs::Fail));
    assert!(needed(&settling) > needed(&apart), "two decisions need more");
    assert_eq!(settling.counts_as, Some(model::report::CountsAs::Fail));
}
