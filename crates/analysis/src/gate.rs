//! The conditions of `--fail-if`: whether a result meets a condition, misses it, or neither can be shown.
//!
//! 1. Each run is one value: operations within a run resemble each other too much to count separately.
//! 2. PASS needs the worse of two one-sided 95 % bounds within the limit, FAIL the better one beyond it. A percentile of
//!    all runs together must agree. If runs have too few operations for a percentile, counting the slow operations may
//!    still decide FAIL.
//! 3. If a condition may be decided twice (`--settle`: after the first runs and after more runs), each decision may err
//!    only half as often.
//! 4. A condition on a load curve is about the highest load that meets the latency target.

use crate::case::Case;
use crate::compare::checks::figures_of;
use crate::figures::PERCENTILES;
use crate::findings::unaccepted_findings;
use crate::runs::CellRun;
use crate::studies::{Conclusion, GatedResult, Subject};
use crate::verdict::{Judged, describe_doubt, fix_or_accept, judge_undecided, unaccepted_checks};
use model::comparison;
use model::finding::{Checked, Severity};
use model::job::{Kind, Phase};
use model::plan::Strategy;
use model::report::{AnswerWord, CountsAs, Ending, Measured, ReportAnswer, RunFigures};
use model::spec::number::FEWEST_GATED_RUNS;
use model::study::{LoadCurve, MetLoad};
use model::units::{show_count, show_ns, show_share};
use model::verdict::{Condition, Gate, Limit};
use stats::comparison::POWER;
use stats::intervals::{FEWEST_RUNS, find_smallest};
use stats::{intervals, sample};

/// Confidence of each bound.
const CONFIDENCE: f64 = 0.95;

/// Confidence of each bound if the condition may be decided twice, so that both decisions together have [`CONFIDENCE`].
const CONFIDENCE_EACH_TIME: f64 = 1.0 - (1.0 - CONFIDENCE) / 2.0;

/// Minimum number of operations above a percentile for a condition on it.
const MIN_OPS_BEYOND: f64 = 10.0;

/// Maximum number of runs that a sentence advises.
const MAX_ADVISED_RUNS: u32 = 1_000;

/// The outcomes of conditions, the worst first. Of several conditions, the worst outcome decides.
const WORST_FIRST: [AnswerWord; 4] =
    [AnswerWord::Fail, AnswerWord::Invalid, AnswerWord::Inconclusive, AnswerWord::Pass];

/// A sentence names at most this many gates, and gives the count of the others.
const MAX_NAMED: usize = 3;

/// Decides each condition of the plan for every number that it is about. A condition that names no result is about the answer of the
/// study ([`Conclusion::subject`]).
pub(crate) fn decide_conditions(judged: &Judged, conclusion: &dyn Conclusion) -> Vec<Gate> {
    let Judged { record, answered, results, counted_checks, deciding_command } = *judged;
    let mut all = Vec::new();
    let may_decide_twice = matches!(record.header.plan.strategy, Strategy::Settle { .. });
    for condition in &record.header.plan.fail_if {
        let subject = match &condition.result {
            Some(name) => {
                let has_name = |at: &usize| results[*at].name == *name;
                let named = (0..results.len()).filter(has_name).map(GatedResult::with_all_runs);
                Subject::Results(named.collect())
            }
            None => conclusion.subject(record, answered),
        };
        let before = all.len();
        match &subject {
            Subject::Load(curve, target) => {
                all.push(gate_of_load(condition, curve, target, judged));
            }
            Subject::Results(about) => {
                for GatedResult { result, cell_runs } in about {
                    let (Some(answers), Some(result)) = (answered.get(*result), results.get(*result)) else {
                        continue;
                    };
                    let (case, cell_runs) = (&answers.case, cell_runs.as_deref());
                    for limit in limits_by_kind(condition, case) {
                        let number = GatedNumber {
                            condition,
                            limit,
                            may_decide_twice,
                            case,
                            result,
                            cell_runs,
                            counted_checks,
                            deciding_command,
                        };
                        all.push(number.into_gate());
                    }
                }
            }
        }
        if all.len() == before {
            all.push(gate_without_number(condition, &condition.limit));
        }
    }
    all
}

/// Returns a latency limit for each kind of operation that the condition is about. Returns any other limit unchanged.
fn limits_by_kind(condition: &Condition, case: &Case) -> Vec<Limit> {
    let Limit::Latency { kind, percentile, at_most_ns } = &condition.limit else {
        return vec![condition.limit.clone()];
    };
    let asked = |k: &Kind| kind.map_or(*k != Kind::Sync, |kind| kind == *k);
    let mut kinds: Vec<Kind> = case.stream.kinds().filter(asked).collect();
    kinds.dedup();
    let limit =
        |kind| Limit::Latency { kind: Some(kind), percentile: percentile.clone(), at_most_ns: *at_most_ns };
    kinds.into_iter().map(limit).collect()
}

/// Returns a gate about a number that has no value, as in a session that ended early.
pub(crate) fn gate_without_number(condition: &Condition, limit: &Limit) -> Gate {
    Gate {
        condition: condition.to_flag(),
        result: condition.result.clone().unwrap_or_default(),
        metric_name: limit.metric_name(),
        unit: unit_of(limit).into(),
        limit: limit.value(),
        value: None,
        bounds: None,
        runs: 0,
        runs_needed: None,
        word: AnswerWord::Inconclusive,
        sentence: format!("{}: no result has this number.", condition.to_flag()),
    }
}

fn unit_of(limit: &Limit) -> &'static str {
    match limit {
        Limit::Latency { .. } | Limit::Time { .. } => "ns",
        Limit::Iops { .. } => "IOPS",
        Limit::MbPerS { .. } => "MB/s",
    }
}

/// One number of one result, compared with the limit of a condition.
struct GatedNumber<'a> {
    condition: &'a Condition,
    limit: Limit,
    /// Whether the condition may be decided twice (`--settle`).
    may_decide_twice: bool,
    case: &'a Case<'a>,
    result: &'a Measured,
    /// The runs that the number is computed from; `None` for all runs of the result.
    cell_runs: Option<&'a [CellRun]>,
    /// The findings that affect results: all except those that the study expects.
    counted_checks: &'a [Checked],
    /// The command that decides again; see [`crate::verdict::deciding_command`].
    deciding_command: &'a [String],
}

/// A number estimated from its runs.
struct GatedEstimate {
    /// Geometric mean over runs.
    value: f64,
    /// One-sided bounds, each with the confidence of the gate.
    bounds: [f64; 2],
    /// The percentile of the operations of all runs together; `None` for a rate.
    over_all_runs: Option<f64>,
    runs_needed: Option<u32>,
}

impl GatedNumber<'_> {
    fn into_gate(self) -> Gate {
        let estimate = self.estimate();
        let ReportAnswer { word, sentence } = match &estimate {
            _ if self.result.void => {
                ReportAnswer { word: AnswerWord::Invalid, sentence: self.explain_withheld() }
            }
            Ok(estimate) => require_true_name(
                &self.result.name,
                self.counted_checks,
                self.deciding_command,
                self.decide(estimate),
            ),
            Err(why) => self.decide_by_counting().unwrap_or_else(|| ReportAnswer {
                word: AnswerWord::Inconclusive,
                sentence: format!("{}: {why}.", self.describe_measured()),
            }),
        };
        let estimate = estimate.ok().filter(|_| !self.result.void);
        let gate = Gate {
            result: self.result.name.clone(),
            value: estimate.as_ref().map(|e| e.value),
            bounds: estimate.as_ref().map(|e| e.bounds),
            runs: self.cell_runs.map_or(self.result.runs.len(), <[CellRun]>::len) as u32,
            runs_needed: estimate.and_then(|e| e.runs_needed),
            word,
            sentence,
            ..gate_without_number(self.condition, &self.limit)
        };
        Gate { runs_needed: gate.runs_needed.filter(|_| gate.is_undecided_near_limit()), ..gate }
    }

    /// Explains why the number is withheld, and what to type.
    fn explain_withheld(&self) -> String {
        let name = &self.result.name;
        match unaccepted_findings(self.counted_checks, name, &[Severity::Invalidates]).next() {
            Some(f) if self.result.total.is_none() => format!(
                "{name} has no number: no operation completed within a measured window. {} {} explains it.",
                f.id, f.name
            ),
            Some(f) => format!(
                "{name} has no number: {} {} invalidates it. {}",
                f.id,
                f.name,
                fix_or_accept(
                    &unaccepted_checks(name, self.counted_checks, NOT_AS_REQUESTED),
                    self.deciding_command
                )
            ),
            None => format!("{name} has no number: a finding invalidates it."),
        }
    }

    /// Confidence of each bound.
    fn confidence(&self) -> f64 {
        if self.may_decide_twice { CONFIDENCE_EACH_TIME } else { CONFIDENCE }
    }

    /// Names the number: `sync p99 of etcd`.
    fn name_number(&self) -> String {
        format!("{} of {}", self.limit.metric_name(), self.result.name)
    }

    /// Describes the measured value, even if few operations support it: `sync p99 of etcd was 9.34 ms against a limit of 10 ms`.
    fn describe_measured(&self) -> String {
        let value = if let Limit::Latency { kind: Some(kind), percentile, .. } = &self.limit {
            let all = self.case.latency(*kind);
            all.and_then(|h| h.quantile_ns(share_of_percentile(percentile))).map(|ns| ns as f64)
        } else {
            let rates: Vec<f64> = self.values().0.into_iter().flatten().collect();
            intervals::mean(&rates).map(|mean| mean.value)
        };
        let limit = self.limit.show(self.limit.value());
        match value {
            Some(value) => {
                format!("{} was {} against a limit of {limit}", self.name_number(), self.limit.show(value))
            }
            None => format!("{} cannot be compared with the limit of {limit}", self.name_number()),
        }
    }

    /// Returns the number with its bounds.
    ///
    /// # Errors
    /// What is missing, and what to type. The text follows [`GatedNumber::describe_measured`] and a colon.
    fn estimate(&self) -> Result<GatedEstimate, String> {
        let needed = match &self.limit {
            Limit::Iops { .. } | Limit::MbPerS { .. } | Limit::Time { .. } => FEWEST_RUNS,
            Limit::Latency { .. } => FEWEST_GATED_RUNS as usize,
        };
        let (values, over_all_runs) = self.values();
        let runs = values.len();
        if runs < needed {
            return Err(format!("only {runs} of the {needed} runs that a condition needs (--runs {needed})"));
        }
        let values: Vec<f64> = values.into_iter().flatten().collect();
        if values.len() < runs {
            return Err(self.explain_missing_percentile());
        }
        let none = || "a run has no rate".to_owned();
        Ok(GatedEstimate {
            over_all_runs,
            ..estimate_over_runs(&values, self.limit.value(), self.confidence()).ok_or_else(none)?
        })
    }

    /// Returns the number in each run, and for a percentile also the percentile of all runs together.
    fn values(&self) -> (Vec<Option<f64>>, Option<f64>) {
        if let Some(cell_runs) = self.cell_runs {
            let value_of = |s: &CellRun| match self.limit {
                Limit::Iops { .. } => Some(s.bytes_per_s? / s.bytes_per_operation?),
                Limit::MbPerS { .. } => Some(s.bytes_per_s? / 1e6),
                // The plan refuses percentiles of a winner, which has too few runs for one.
                Limit::Latency { .. } | Limit::Time { .. } => None,
            };
            return (cell_runs.iter().map(value_of).collect(), None);
        }
        let runs = self.result.runs.iter();
        let Limit::Latency { kind, percentile, .. } = &self.limit else {
            let of_bytes = matches!(self.limit, Limit::MbPerS { .. });
            return (runs.map(|r| Some(if of_bytes { r.mb_per_s } else { r.iops })).collect(), None);
        };
        let kind = kind.unwrap_or(Kind::Read);
        let percentile_of =
            |r: &RunFigures| Some(r.percentiles_ns.get(kind.word())?.get(percentile).copied()?? as f64);
        let all_runs = figures_of(self.result, kind).map(|f| &f.latency_ns.percentiles);
        (runs.map(percentile_of).collect(), all_runs.and_then(|p| Some(p.get(percentile).copied()?? as f64)))
    }

    /// Explains why the runs do not have the percentile of the limit.
    fn explain_missing_percentile(&self) -> String {
        let Limit::Latency { kind: Some(kind), percentile, .. } = &self.limit else {
            return "a run has no rate".into();
        };
        let counted =
            self.case.runs.iter().map(|r| r.stream.kinds.get(kind).map_or(0, |end| end.latency.count()));
        let (least, needed) =
            (counted.min().unwrap_or(0), MIN_OPS_BEYOND / (1.0 - share_of_percentile(percentile)));
        if least as f64 >= needed {
            return format!("the p{percentile} includes late submissions by fathom (use a larger --depth)");
        }
        let (word, needed_words) = (kind.word(), show_count(needed));
        let reason = format!(
            "only {} of the {needed_words} {word}s that a p{percentile} needs in each run",
            show_count(least as f64)
        );
        let phase = self.case.job.phases.get(self.case.phase_index);
        match phase.and_then(|p| longer_window_s(p, needed / least as f64)) {
            Some(seconds) => format!("{reason} (--time {seconds}s)"),
            None => reason,
        }
    }

    /// Compares the number with the limit.
    fn decide(&self, estimate: &GatedEstimate) -> ReportAnswer {
        let ([low, high], of_latency) = (estimate.bounds, self.limit.is_on_percentile());
        // A number at the limit is within it, also if logarithms and divisions have changed its last digits.
        let shown_limit = self.limit.show(self.limit.value());
        let limit = self.limit.value() * if of_latency { 1.0 + ROUNDING } else { 1.0 - ROUNDING };
        let (within, beyond) =
            if of_latency { (high <= limit, low > limit) } else { (low >= limit, high < limit) };
        // The value of all runs together must agree: one slow run hardly moves the mean of eight.
        let agrees = estimate.over_all_runs.is_none_or(|all| if within { all <= limit } else { all > limit });
        let show = |value: f64| self.limit.show(value);
        let number = format!("{} is {}", self.name_number(), show(estimate.value));
        // The table has the percentile of all runs together.
        let differs = estimate.over_all_runs.is_some_and(|all| show(all) != show(estimate.value));
        let over_runs = if differs { " in a typical run" } else { "" };
        let (nearer, farther) = if of_latency { ("at most", "at least") } else { ("at least", "at most") };
        let [best, worst] = if of_latency { [low, high] } else { [high, low] };
        let runs = self.values().0.len();
        let sentence_with = |bound_word: &str, bound: f64| {
            format!(
                "{number}{over_runs}, {bound_word} {} with {} confidence over {runs} runs; the limit is {shown_limit}.",
                show(bound),
                show_share(CONFIDENCE)
            )
        };
        let (word, sentence) = match (within, beyond, agrees) {
            (true, _, true) => (AnswerWord::Pass, sentence_with(nearer, worst)),
            (_, true, true) => (AnswerWord::Fail, sentence_with(farther, best)),
            (true, ..) | (_, true, _) => {
                let all = estimate.over_all_runs.map_or_else(String::new, show);
                let sentence = format!(
                    "{number} in a typical run and {all} in all runs together, and the limit of {shown_limit} is between the two: some runs are unlike the others."
                );
                (AnswerWord::Inconclusive, sentence)
            }
            (false, false, _) => {
                let more = match estimate.runs_needed {
                    Some(runs) if self.may_decide_twice => {
                        format!("about {runs} runs would settle it (--max-runs {runs})")
                    }
                    Some(runs) => format!("about {runs} runs would settle it (--settle, or --runs {runs})"),
                    None => "more runs would not settle it soon".into(),
                };
                let sentence = format!(
                    "{}{over_runs} is {nearer} {} with {} confidence, and the limit is {shown_limit}; measured: {} ({} to {} over {runs} runs), too near to tell: {more}.",
                    self.name_number(),
                    show(worst),
                    show_share(CONFIDENCE),
                    show(estimate.value),
                    show(low),
                    show(high)
                );
                (AnswerWord::Inconclusive, sentence)
            }
        };
        ReportAnswer { word, sentence }
    }

    /// Decides FAIL without an estimate of the percentile, if more operations took longer than the limit than the
    /// percentile allows. Counting slow operations needs far fewer operations than a percentile, so a slow device fails
    /// in the time that a fast one needs to pass.
    fn decide_by_counting(&self) -> Option<ReportAnswer> {
        let Limit::Latency { kind: Some(kind), percentile, at_most_ns } = &self.limit else { return None };
        if self.case.runs.len() < FEWEST_GATED_RUNS as usize {
            return None;
        }
        let (mut shares, mut slow) = (Vec::new(), 0_u64);
        for run in self.case.runs.iter() {
            let latency = &run.stream.kinds.get(kind).filter(|end| !end.latency.is_empty())?.latency;
            let longer = latency.counts().filter(|(ns, _)| ns > at_most_ns).map(|(_, count)| count);
            let longer = longer.fold(0, u64::saturating_add);
            shares.push(longer as f64 / latency.count() as f64);
            slow = slow.saturating_add(longer);
        }
        let (mean, half) = mean_and_half_width(&shares, self.confidence())?;
        let least = (mean - half).max(0.0);
        if least <= 1.0 - share_of_percentile(percentile) || (slow as f64) < MIN_OPS_BEYOND {
            return None;
        }
        // All runs together may have enough operations for the percentile. If the slow runs have few operations, this
        // percentile is below the limit and is left out.
        let all = self.values().1.filter(|all| *all > self.limit.value());
        let all = all.map(|all| format!("; measured: {} in all runs together", self.limit.show(all)));
        let sentence = format!(
            "{} is above the limit of {}: {} of the {}s took longer, at least {} with {} confidence over {} runs{}.",
            self.name_number(),
            self.limit.show(self.limit.value()),
            show_share(mean),
            kind.word(),
            show_share(least),
            show_share(CONFIDENCE),
            shares.len(),
            all.unwrap_or_default()
        );
        Some(ReportAnswer { word: AnswerWord::Fail, sentence })
    }
}

/// Severities of findings that keep a condition from passing.
const NOT_AS_REQUESTED: &[Severity] = &[Severity::Invalidates, Severity::Relabels];

/// Replaces PASS by `INVALID` if a finding that the user did not accept invalidates or relabels the number. The
/// condition is about the requested work, not about the page cache, a limit of a cgroup or a smaller depth.
fn require_true_name(
    result: &str,
    counted_checks: &[Checked],
    deciding_command: &[String],
    answer: ReportAnswer,
) -> ReportAnswer {
    match unaccepted_findings(counted_checks, result, NOT_AS_REQUESTED).next() {
        Some(f) if answer.word == AnswerWord::Pass => {
            let verb = if f.severity == Some(Severity::Invalidates) { "invalidates" } else { "relabels" };
            let sentence = format!(
                "{} This does not count as PASS: {} {} {verb} the number. {}",
                answer.sentence,
                f.id,
                f.name,
                fix_or_accept(&unaccepted_checks(result, counted_checks, NOT_AS_REQUESTED), deciding_command)
            );
            ReportAnswer { word: AnswerWord::Invalid, sentence }
        }
        _ => answer,
    }
}

/// Returns the percentile with this name as a share. An unknown name gets a share that no number of operations
/// supports.
fn share_of_percentile(percentile: &str) -> f64 {
    PERCENTILES.iter().find(|(name, _)| *name == percentile).map_or(1.0, |(_, rank)| *rank)
}

/// Returns the window in whole seconds that contains `factor` times as many operations. `None` if the phase does not
/// end by its time, or if the window would be too long.
fn longer_window_s(phase: &Phase, factor: f64) -> Option<u64> {
    let by_time = phase.streams.iter().all(|s| s.limit.is_none());
    // Add a fifth, because runs differ.
    let seconds = (phase.time_ns as f64 / 1e9 * factor * 1.2).ceil();
    (by_time && seconds.is_finite() && seconds < 86_400.0).then_some(seconds as u64)
}

/// Relative error of a number that is computed through logarithms and divisions.
const ROUNDING: f64 = 1e-9;

/// Returns the mean of the values and half the width of its interval by Student's t. Each end of the interval has this
/// one-sided confidence.
fn mean_and_half_width(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let (n, mean) = (values.len() as f64, sample::mean(values));
    let half = sample::quantile(confidence, n - 1.0)? * (sample::variance(values) / n).sqrt();
    (mean.is_finite() && half.is_finite()).then_some((mean, half))
}

/// Estimates the number from one value per run, on logarithms, since runs vary by factors. `None` if a value is not positive. `runs_needed`
/// is the number of runs that would decide in [`POWER`] of sessions like this one.
fn estimate_over_runs(values: &[f64], limit: f64, confidence: f64) -> Option<GatedEstimate> {
    if values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let (mean, half) = mean_and_half_width(&logs, confidence)?;
    let bounds = [(mean - half).exp(), (mean + half).exp()];
    let n = values.len() as f64;
    let deviation = half * n.sqrt() / sample::quantile(confidence, n - 1.0)?;
    let is_enough = |runs: u32| {
        let runs = f64::from(runs);
        let quantile = |rank| sample::quantile(rank, runs - 1.0);
        let both = quantile(confidence).zip(quantile(POWER)).map(|(bound, power)| bound + power);
        both.is_some_and(|t| t * deviation / runs.sqrt() <= (limit.ln() - mean).abs())
    };
    let more = values.len() as u32 + 1;
    let runs_needed = find_smallest(more, MAX_ADVISED_RUNS, is_enough).filter(|runs| *runs >= more);
    bounds.iter().all(|b| b.is_finite()).then(|| GatedEstimate {
        value: mean.exp(),
        bounds,
        over_all_runs: None,
        runs_needed,
    })
}

/// Returns what an undecided answer counts as by the user's request (`asked`); `None` if it counts as itself. Adds the
/// text of [`judge_undecided`] to the answer.
pub(crate) fn count_undecided(
    answer: &mut Option<ReportAnswer>,
    asked: Option<CountsAs>,
    ending: &Ending,
) -> Option<CountsAs> {
    let answer = answer.as_mut().filter(|a| a.word == AnswerWord::Inconclusive)?;
    let early = (*ending != Ending::Complete).then_some("The session");
    let (counts_as, addition) = judge_undecided(asked, early);
    answer.sentence += &addition;
    counts_as
}

/// Combines the answer with that of the gate between this session and an earlier one (`--fail-if-slower`).
pub(crate) fn combine_with_slower(
    answer: Option<ReportAnswer>,
    gate: Option<&comparison::SlowdownGate>,
) -> Option<ReportAnswer> {
    let slower = gate.map(|g| ReportAnswer { word: g.outcome.word(), sentence: g.sentence.clone() });
    let answers: Vec<ReportAnswer> = [answer, slower].into_iter().flatten().collect();
    let word = WORST_FIRST.into_iter().find(|word| answers.iter().any(|a| a.word == *word));
    // Without the answer of a gate, the answer of the study remains.
    let Some(word) = word else { return answers.into_iter().next() };
    let sentences: Vec<String> = answers.into_iter().filter(|a| a.word == word).map(|a| a.sentence).collect();
    Some(ReportAnswer { word, sentence: sentences.join(" ") })
}

/// Combines the answers of all conditions: a failed one decides, then an invalid one, then an undecided one. `None` without conditions.
pub(crate) fn combine_gates(gates: &[Gate]) -> Option<ReportAnswer> {
    let word = WORST_FIRST.into_iter().find(|word| gates.iter().any(|g| g.word == *word))?;
    let sentences: Vec<&str> = gates.iter().filter(|g| g.word == word).map(|g| g.sentence.as_str()).collect();
    let more = sentences.len().saturating_sub(MAX_NAMED);
    let mut sentence = sentences.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(" ");
    if more > 0 {
        let conditions_have = if more == 1 { "condition has" } else { "conditions have" };
        sentence += &format!(" {more} more {conditions_have} the same outcome.");
    }
    Some(ReportAnswer { word, sentence })
}

/// Adds to PASS the findings that doubt that synced data of the gated results is stable: the numbers include the time of syncs, and
/// that time means nothing if a sync does nothing.
pub(crate) fn qualify_passed_gates(answer: ReportAnswer, gates: &[Gate], judged: &Judged) -> ReportAnswer {
    if answer.word != AnswerWord::Pass {
        return answer;
    }
    let names: Vec<&str> = gates.iter().map(|gate| gate.result.as_str()).collect();
    let doubts = judged.sync_doubts(&names).into_iter().map(describe_doubt);
    let sentence = doubts.fold(answer.sentence, |sentence, doubt| format!("{sentence} But {doubt}"));
    ReportAnswer { sentence, ..answer }
}

/// Decides a condition on a load curve. The true rate is between the highest load that meets the target and the lowest that misses it.
fn gate_of_load(condition: &Condition, curve: &LoadCurve, target: &MetLoad, judged: &Judged) -> Gate {
    let Judged { results, counted_checks, deciding_command, .. } = *judged;
    let limit = &condition.limit;
    let at = |iops: Option<u64>| {
        let point = curve.points.iter().find(|p| Some(p.offered_iops) == iops)?;
        let result = results.get(point.result)?;
        Some((load_in_unit_of_limit(limit, point.offered_iops, result)?, result))
    };
    let [met, missed] = [target.met_iops, target.missed_iops].map(at);
    let name = met.or(missed).map_or("", |(_, result)| result.name.as_str());
    let answer = decide_load(limit, target, met.map(|m| m.0), missed.map(|m| m.0));
    let ReportAnswer { word, sentence } = require_true_name(name, counted_checks, deciding_command, answer);
    Gate {
        result: name.to_owned(),
        value: met.map(|m| m.0),
        bounds: met.zip(missed).map(|(met, missed)| [met.0, missed.0]),
        runs: met.or(missed).map_or(0, |(_, result)| result.runs.len() as u32),
        word,
        sentence,
        ..gate_without_number(condition, limit)
    }
}

/// Converts a load to the unit of the limit, with the mean bytes per operation of the result.
fn load_in_unit_of_limit(limit: &Limit, offered: u64, result: &Measured) -> Option<f64> {
    let total = result.total.as_ref()?;
    match limit {
        Limit::MbPerS { .. } => (total.iops > 0.0).then(|| offered as f64 * total.mb_per_s / total.iops),
        Limit::Iops { .. } | Limit::Latency { .. } | Limit::Time { .. } => Some(offered as f64),
    }
}

fn decide_load(limit: &Limit, target: &MetLoad, met: Option<f64>, missed: Option<f64>) -> ReportAnswer {
    let requirement = format!("p{} within {}", target.percentile, show_ns(target.latency_ns as f64));
    let (least, show) = (limit.value(), |rate| limit.show(rate));
    let (word, sentence) = match (met, missed) {
        (Some(met), _) if met >= least => (
            AnswerWord::Pass,
            format!(
                "{requirement} holds at {} with 95 % confidence; the limit is {}.",
                show(met),
                show(least)
            ),
        ),
        (_, Some(missed)) if missed <= least => (
            AnswerWord::Fail,
            format!(
                "{requirement} is missed at {} with 95 % confidence; the limit is {}.",
                show(missed),
                show(least)
            ),
        ),
        _ => (
            AnswerWord::Inconclusive,
            format!(
                "Whether {requirement} holds at {} cannot be told from the loads that were offered.",
                show(least)
            ),
        ),
    };
    ReportAnswer { word, sentence }
}

#[test]
fn a_limit_below_the_met_load_passes_above_the_missed_one_fails_and_between_is_inconclusive() {
    let target = MetLoad {
        percentile: "99".into(),
        latency_ns: 5_000_000,
        met_iops: Some(8_000),
        missed_iops: Some(9_000),
    };
    let word = |at_least, met, missed| decide_load(&Limit::Iops { at_least }, &target, met, missed).word;
    let both = |at_least| word(at_least, Some(8_000.0), Some(9_000.0));
    assert_eq!([8_000.0, 9_000.0].map(both), [AnswerWord::Pass, AnswerWord::Fail]);
    assert_eq!([8_001.0, 8_999.0].map(both), [AnswerWord::Inconclusive; 2]);
    assert_eq!(word(8_001.0, Some(8_000.0), None), AnswerWord::Inconclusive, "the highest that was offered");
    assert_eq!(word(1.0, None, Some(9_000.0)), AnswerWord::Inconclusive);
    assert_eq!(word(1.0, None, None), AnswerWord::Inconclusive);
}

#[cfg(test)]
mod tests {
    //! Tests of conditions on forged records: words, missing numbers, and invalid results.

    use super::*;
    use crate::fixture::Fixture;
    use crate::{Judging, exit_code, judge};
    use model::finding::CheckId;
    use model::report::Report;

    /// Judges a record with these conditions.
    fn judge_with(fixture: &Fixture, conditions: &str, accept: &[CheckId]) -> Report {
        let mut record = fixture.record();
        record.header.plan.fail_if = model::spec::conditions::conditions(conditions).unwrap();
        judge(&record, &Judging { accept: accept.to_vec(), ..Judging::default() })
    }

    fn word(report: &Report) -> Option<AnswerWord> {
        report.answer.as_ref().map(|a| a.word)
    }

    fn eight_runs() -> Fixture {
        Fixture { runs: 8, ..Fixture::honest() }
    }

    #[test]
    fn a_number_exactly_at_the_limit_passes() {
        let iops = judge_with(&eight_runs(), "iops<1", &[]).results[0].runs[0].iops;
        for limit in [format!("iops<{iops}"), format!("iops<{}", iops.round())] {
            assert_eq!(word(&judge_with(&eight_runs(), &limit, &[])), Some(AnswerWord::Pass), "{limit}");
        }
        // The percentile of every run is the same value of the histogram.
        let p50_ns =
            judge_with(&eight_runs(), "iops<1", &[]).results[0].runs[0].percentiles_ns["read"]["50"].unwrap();
        for (limit_ns, expected) in [(p50_ns, AnswerWord::Pass), (p50_ns - 1, AnswerWord::Fail)] {
            let report = judge_with(&eight_runs(), &format!("p50>{limit_ns}ns"), &[]);
            assert_eq!(word(&report), Some(expected), "{:?}", report.answer);
        }
    }

    #[test]
    fn bounds_within_the_limit_pass_beyond_it_fail_and_around_it_are_inconclusive() {
        let p99 = judge_with(&eight_runs(), "p99>10s", &[]).gates[0].value.unwrap();
        for (limit, expected, code) in [(p99 * 1.5, AnswerWord::Pass, 0), (p99 / 1.5, AnswerWord::Fail, 1)] {
            let report = judge_with(&eight_runs(), &format!("p99>{}ns", limit as u64), &[]);
            assert_eq!((word(&report), exit_code(&report)), (Some(expected), code), "{:?}", report.answer);
            assert!(report.gates[0].bounds.is_some() && report.gates[0].runs == 8);
        }
        let report = judge_with(&eight_runs(), "iops<1", &[]);
        assert_eq!(word(&report), Some(AnswerWord::Pass));
        let report = judge_with(&eight_runs(), "iops<1,mb/s<100000", &[]);
        assert_eq!(
            (word(&report), exit_code(&report)),
            (Some(AnswerWord::Fail), 1),
            "a missed condition decides"
        );
        assert_eq!(report.gates.len(), 2);
        assert_eq!(judge_with(&eight_runs(), "read.p50>1h", &[]).gates[0].metric_name, "read p50");
    }

    #[test]
    fn missing_numbers_never_pass() {
        let few = Fixture { runs: 5, ..Fixture::honest() };
        let report = judge_with(&few, "p99>1h", &[]);
        assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Inconclusive), 4));
        assert!(report.gates[0].sentence.contains("--runs 8"), "{}", report.gates[0].sentence);
        let thin = Fixture { runs: 8, ops: 500, ..Fixture::honest() };
        let report = judge_with(&thin, "p99>1h", &[]);
        assert_eq!(word(&report), Some(AnswerWord::Inconclusive));
        assert!(report.gates[0].sentence.contains("--time") && report.gates[0].value.is_none());
        for unknown in ["other: p99>1h", "sync.p99>1h"] {
            let report = judge_with(&eight_runs(), unknown, &[]);
            assert_eq!(word(&report), Some(AnswerWord::Inconclusive), "{unknown}");
        }
        let void = Fixture { hole_share: 1.0, ..eight_runs() };
        let report = judge_with(&void, "p99>1h", &[]);
        assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Invalid), 1));
        assert!(report.gates[0].sentence.contains("--accept A04"), "{}", report.gates[0].sentence);
    }

    #[test]
    fn a_slow_device_fails_with_fewer_operations_than_its_percentile_takes() {
        let thin = Fixture { runs: 8, ops: 500, ..Fixture::honest() };
        let report = judge_with(&thin, "p99>1ns", &[]);
        assert_eq!((word(&report), report.gates[0].value), (Some(AnswerWord::Fail), None));
        assert!(
            report.gates[0].sentence.contains("100 % of the reads took longer"),
            "{}",
            report.gates[0].sentence
        );
        // All runs together have enough operations, so the sentence has the percentile. With 50 in each run it has none.
        let measured = |thin: Fixture| {
            judge_with(&thin, "p99>1ns", &[]).gates[0].sentence.ends_with(" in all runs together.")
        };
        assert!(measured(thin));
        assert!(measured(Fixture { runs: 8, ops: 500, ..Fixture::honest_write() }));
        assert!(!measured(Fixture { runs: 8, ops: 50, ..Fixture::honest() }));
        // Seven runs with 50 slow operations each, and one with 50,000 fast ones: the p99 of all operations is below the limit.
        let mut uneven = Fixture { runs: 8, ops: 50_000, ..Fixture::honest() }.record();
        uneven.runs.iter_mut().for_each(|run| run.intervals.clear());
        for end in uneven.runs.iter_mut().skip(1).filter_map(|run| run.end.as_mut()) {
            let reads = end.streams[0].kinds.get_mut(&Kind::Read).unwrap();
            reads.latency.clear();
            (0..50).for_each(|_| reads.latency.record(630_000_000));
            reads.bytes = 50 * 4096;
        }
        uneven.header.plan.fail_if = model::spec::conditions::conditions("p99>1ms").unwrap();
        let report = judge(&uneven, &Judging::default());
        assert_eq!(word(&report), Some(AnswerWord::Fail), "{:?}", report.answer);
        assert!(report.gates[0].sentence.ends_with(" over 8 runs."), "{}", report.gates[0].sentence);
    }

    #[test]
    fn the_page_cache_passes_only_if_the_finding_is_accepted() {
        let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..eight_runs() };
        let report = judge_with(&cached, "p99>1h", &[]);
        assert_eq!((word(&report), exit_code(&report)), (Some(AnswerWord::Invalid), 1));
        assert!(report.gates[0].sentence.contains("--accept A01"), "{}", report.gates[0].sentence);
        // The verb of the sentence follows the severity of the finding.
        for (severity, verb) in [(Severity::Relabels, "relabels"), (Severity::Invalidates, "invalidates")] {
            let mut checks = report.checks.clone();
            checks.iter_mut().filter(|f| f.id == CheckId::A01).for_each(|f| f.severity = Some(severity));
            let pass = ReportAnswer { word: AnswerWord::Pass, sentence: "It holds.".into() };
            let answer = require_true_name(&report.results[0].name, &checks, &[], pass);
            let start =
                format!("It holds. This does not count as PASS: A01 CACHE_SERVED {verb} the number. ");
            assert!(
                answer.word == AnswerWord::Invalid && answer.sentence.starts_with(&start),
                "{}",
                answer.sentence
            );
        }
        let accepted = judge_with(&cached, "p99>1h", &[CheckId::A01]);
        assert_eq!((word(&accepted), exit_code(&accepted)), (Some(AnswerWord::Pass), 0));
        let slow = judge_with(&cached, "p99>1ns", &[]);
        assert_eq!(word(&slow), Some(AnswerWord::Fail), "slow all the same");
        // Everything that must be accepted for a PASS is named at once.
        let both = judge_with(&Fixture { errors: 1, ..cached }, "p99>1h", &[]);
        let sentence = &both.gates[0].sentence;
        assert!(
            sentence.contains(
                "Remove the cause and repeat, or type --accept A01 --accept B12 (A01 CACHE_SERVED, B12 "
            ),
            "{sentence}"
        );
    }

    #[test]
    fn near_the_limit_the_needed_runs_are_reported() {
        let values = [9.0e6, 10.0e6, 11.0e6, 9.5e6, 10.5e6, 9.2e6, 10.9e6, 10.1e6];
        let estimate = |values: &[f64], limit| estimate_over_runs(values, limit, CONFIDENCE);
        let seen = estimate(&values, 10.2e6).unwrap();
        assert!(seen.bounds[0] < 10.2e6 && seen.bounds[1] > 10.2e6);
        assert!(seen.runs_needed.is_some_and(|runs| (20..1_000).contains(&runs)), "{:?}", seen.runs_needed);
        assert!(estimate(&values, seen.value).is_some_and(|s| s.runs_needed.is_none()));
        // t(7 degrees, one side 95 %) = 1.894579.
        let logs: Vec<f64> = values.iter().map(|v: &f64| v.ln()).collect();
        let (mean, half) = mean_and_half_width(&logs, CONFIDENCE).unwrap();
        let deviation = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 7.0).sqrt();
        assert!((half - 1.894_579 * deviation / 8_f64.sqrt()).abs() < 1e-6);
        assert_eq!(estimate(&[1.0, 0.0, 2.0], 1.0).map(|s| s.value), None);
    }

    #[test]
    fn a_forged_condition_never_panics() {
        for percentile in ["", "100", "x"] {
            let mut record = eight_runs().record();
            let limit =
                Limit::Latency { kind: Some(Kind::Read), percentile: percentile.into(), at_most_ns: 0 };
            record.header.plan.fail_if = vec![Condition { result: None, limit }];
            assert_ne!(word(&judge(&record, &Judging::default())), Some(AnswerWord::Pass), "{percentile}");
        }
    }

    mod simulation {
        //! Seeded simulations: how often a condition errs, and how often it is decided, if it may be decided twice (`--settle`).
        //!
        //! `cargo test --release -p fathom-io-analysis settled_rates -- --ignored --nocapture` prints the table of `docs/reference/repeats.md`.

        use crate::gate::{CONFIDENCE, CONFIDENCE_EACH_TIME, GatedEstimate, estimate_over_runs};
        use model::report::AnswerWord;
        use stats::series::Noise;

        /// The limit in ns.
        const LIMIT: f64 = 10e6;
        /// Standard deviation of the logarithms of the runs.
        const DEVIATION: f64 = 0.05;

        /// Returns the outcome of a condition on a latency, from its estimate.
        fn word(seen: &GatedEstimate) -> AnswerWord {
            let [low, high] = seen.bounds;
            match (high <= LIMIT, low > LIMIT) {
                (true, _) => AnswerWord::Pass,
                (_, true) => AnswerWord::Fail,
                _ => AnswerWord::Inconclusive,
            }
        }

        /// Simulates sessions whose true latency is `truth` times the limit. Returns the shares of PASS and of FAIL, and the mean number of
        /// runs. If a session may decide twice and is undecided after the `first` runs, it measures more: up to ten times `first` in total.
        fn simulate_sessions(sessions: u64, first: u32, truth: f64, may_decide_twice: bool) -> [f64; 3] {
            let mut all = [0.0; 3];
            for seed in 0..sessions {
                let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(29));
                let mut run = || LIMIT * truth * (DEVIATION * noise.normal()).exp();
                let mut runs: Vec<f64> = (0..first).map(|_| run()).collect();
                let confidence = if may_decide_twice { CONFIDENCE_EACH_TIME } else { CONFIDENCE };
                let mut seen = estimate_over_runs(&runs, LIMIT, confidence).unwrap();
                if may_decide_twice && word(&seen) == AnswerWord::Inconclusive {
                    let at_most = 10 * first;
                    let needed = seen.runs_needed.unwrap_or(at_most).min(at_most);
                    runs.extend((first..needed).map(|_| run()));
                    seen = estimate_over_runs(&runs, LIMIT, confidence).unwrap();
                }
                all[0] += f64::from(u8::from(word(&seen) == AnswerWord::Pass));
                all[1] += f64::from(u8::from(word(&seen) == AnswerWord::Fail));
                all[2] += runs.len() as f64;
            }
            all.map(|sum| sum / sessions as f64)
        }

        #[test]
        fn deciding_twice_at_the_limit_errs_once_in_twenty_on_either_side() {
            for first in [5, 8] {
                let [pass, fail, _] = simulate_sessions(2000, first, 1.0, true);
                assert!(pass <= 0.06 && fail <= 0.06, "{first} runs: {pass} {fail}");
            }
        }

        #[test]
        fn the_second_round_decides_open_conditions() {
            for (truth, word) in [(0.97, 0), (1.03, 1)] {
                let (once, twice) =
                    (simulate_sessions(500, 8, truth, false), simulate_sessions(500, 8, truth, true));
                assert!(twice[word] > 0.75 && twice[word] > once[word] + 0.2, "{truth}: {once:?} {twice:?}");
                assert!(twice[1 - word] < 0.01 && twice[2] < 60.0, "{truth}: {twice:?}");
            }
            let [pass, _, runs] = simulate_sessions(200, 8, 0.5, true);
            assert!(pass > 0.99 && runs < 8.1, "far from the limit the first round decides: {pass} {runs}");
        }

        #[test]
        #[ignore = "prints the table of docs/reference/repeats.md"]
        fn settled_rates() {
            println!(
                "| truth by the limit | once: PASS | FAIL | `--settle`: PASS | FAIL | runs, mean |\n|---|---|---|---|---|---|"
            );
            for truth in [0.80, 0.90, 0.95, 0.97, 1.0, 1.03, 1.05, 1.10, 1.20] {
                let [once, settled] =
                    [false, true].map(|may_decide_twice| simulate_sessions(5000, 8, truth, may_decide_twice));
                let percent = |share: f64| format!("{:.1} %", 100.0 * share);
                let [pass, fail, runs] = settled;
                let cells = [once[0], once[1], pass, fail].map(percent).join(" | ");
                println!("| {:+.0} % | {cells} | {runs:.1} |", 100.0 * (truth - 1.0));
            }
        }
    }
}
