//! Compares two sides: is B faster than A, slower, or the same, or how large can a difference be at most? A side is one report, or several
//! reports of one configuration.
//!
//! 1. `match_results` pairs the results of both sides.
//! 2. `draft` prepares each pair: `fingerprint` decides whether both results measured the same work, and `weighing` selects the numbers.
//! 3. `answer_all` gives each number its answer, after Holm's correction for multiple comparisons.
//! 4. `answer` writes the sentences about the headline.
//! 5. `checks` adds the findings about both sides, and `weighing` decides the gate `--fail-if-slower`.
//!
//! [`compare`] is total: any two reports have a comparison, however broken they are. A rerun is a session that also repeated the jobs of an
//! earlier session. `split_rerun` divides it into two records, and `compare_rerun` compares their reports.

pub(crate) mod checks;
mod fingerprint;
mod weighing;

use crate::findings;
use crate::verdict::{NamedIds, describe_fix, explained_acceptance, unaccepted_checks};
use checks::Context;
use fingerprint::{compare_aspects, fingerprint};
use model::command::CommandResult;
use model::comparison::{
    Comparison, ComparisonAnswer, Comparisons, Difference, Metric, Other, Pair, Side, Source, side_name,
};
use model::finding::{CheckId, Outcome, Severity};
use model::plan;
use model::plan::{Plan, Strategy};
use model::record::{Record, Run};
use model::report::{CountsAs, Ending, FORMAT, Measured, Producer, Report, Rerun, Verdict};
use model::units::{show_change, show_change_ends, show_counted, show_share};
use model::verdict::SlowdownLimit;
use stats::comparison;
use std::collections::BTreeSet;
use weighing::WeighedNumber;

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The share that `--margin` sets; `None` without it. The margin (a larger difference counts) and the tolerance (with a
    /// smaller difference, two sides are the same) follow from this share.
    ///
    /// - The margin is the largest of three: this share (default 1 %, or 5 % if each side is one
    ///   session that was measured separately), 1 % (2 % for percentiles), and the difference
    ///   between sessions of one side.
    /// - The tolerance is this share, by default 5 %, or 10 % for p99 and higher percentiles. It is
    ///   at least the margin.
    pub margin: Option<f64>,
    /// Whether numbers of different work are compared anyway (E14 is accepted).
    pub accept_differences: bool,
    /// Findings that the user accepts on this command line. A gate decides on a number only if all
    /// accepted findings that the number depends on are listed here.
    pub accept: Vec<CheckId>,
    /// The limit of `--fail-if-slower`.
    pub fail_if_slower: Option<SlowdownLimit>,
    /// Whether an undecided gate gives the exit code of a passed or of a failed one; `None` for its own exit code (4).
    pub inconclusive: Option<CountsAs>,
    /// How the runs of both sides were measured.
    pub run_order: RunOrder,
    /// Version of the program that compares.
    pub version: String,
}

/// How the runs of both sides were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// In separate sessions.
    #[default]
    Apart,
    /// In turns, as many runs as the plan has.
    InTurns,
    /// In turns, then as many more runs as the first ones call for. A gate may decide twice, so each decision may err
    /// only half as often.
    Settling,
}

/// Compares two reports.
pub fn compare(a: &Report, b: &Report, options: &Options) -> Comparison {
    compare_sides(std::slice::from_ref(a), std::slice::from_ref(b), options)
}

/// Compares two sides, each one session or several of one configuration, whose runs are pooled.
pub fn compare_sides(a: &[Report], b: &[Report], options: &Options) -> Comparison {
    let mut pending = PendingComparison::new(a, b, side_name(1), options);
    let pairs = answer_all(vec![std::mem::take(&mut pending.drafts)]).into_iter().flatten().collect();
    pending.conclude(pairs, options)
}

/// Compares each of `others` with `a`. Holm's correction covers all headlines together, and all other numbers together.
pub fn compare_each<S: AsRef<[Report]>>(a: &[Report], others: &[S], options: &Options) -> Comparisons {
    let all = others.iter().enumerate();
    let mut all_pending: Vec<PendingComparison> =
        all.map(|(at, b)| PendingComparison::new(a, b.as_ref(), side_name(at + 1), options)).collect();
    let drafts = all_pending.iter_mut().map(|pending| std::mem::take(&mut pending.drafts));
    let pairs = answer_all(drafts.collect());
    let others: Vec<Other> = all_pending
        .into_iter()
        .zip(pairs)
        .map(|(one, pairs)| Other { name: one.name.clone(), comparison: one.conclude(pairs, options) })
        .collect();
    Comparisons { fathom: producer(options), gate: weighing::combine_gates(&others), others }
}

fn producer(options: &Options) -> Producer {
    Producer { format: FORMAT, version: options.version.clone() }
}

/// A comparison whose pairs have no answers yet.
struct PendingComparison<'r> {
    /// The name of the side that is compared with A.
    name: String,
    sides: [&'r [Report]; 2],
    matched: MatchedResults<'r>,
    drafts: Vec<Draft>,
    /// For each pair, the aspects that are unknown on one or both sides.
    unknown: Vec<Vec<String>>,
}

impl<'r> PendingComparison<'r> {
    fn new(a: &'r [Report], b: &'r [Report], name: String, options: &Options) -> Self {
        let matched = match_results(a, b);
        let lengths = [a.len(), b.len()];
        let drafts = matched.pairs.iter().map(|(of_a, of_b)| draft(of_a, of_b, lengths, &name, options));
        let mut drafts: Vec<Draft> = drafts.chain(draft_commands(a, b, options)).collect();
        let headline = a.first().map(|r| r.headline.name.as_str());
        if let Some(draft) = drafts.iter_mut().find(|d| headline == Some(d.pair.true_name_a.as_str())) {
            // A headline has the true name of its result: the name of what was measured.
            draft.pair.headline = true;
        }
        let unknown = drafts.iter_mut().map(|d| std::mem::take(&mut d.unknown)).collect();
        Self { name, sides: [a, b], matched, drafts, unknown }
    }

    /// Completes the comparison with the answers of its pairs.
    fn conclude(self, pairs: Vec<Pair>, options: &Options) -> Comparison {
        let Self { name, sides: [a, b], matched, unknown, .. } = self;
        let (answer, sentence) = answer(&pairs, &matched, a, &name);
        let is_accepted = options.accept_differences;
        let context = Context { sides: [a, b], name: &name, pairs: &pairs, unknown, is_accepted };
        Comparison {
            fathom: producer(options),
            answer,
            sentence,
            a: show_side(a),
            b: show_side(b),
            checks: checks::ask(&context),
            gate: options.fail_if_slower.map(|limit| {
                let sides: [(&str, &[Report]); 2] = [("A", a), (name.as_str(), b)];
                let has_ended_early =
                    |(_, reports): &&(&str, &[Report])| reports.iter().any(|r| r.ending != Ending::Complete);
                let ended_early = sides.iter().find(has_ended_early).map(|(side, _)| *side);
                weighing::decide_gate(&pairs, limit, options, ended_early)
            }),
            pairs,
            only_in_a: matched.only_in_a,
            only_in_b: matched.only_in_b,
        }
    }
}

/// Two results of one report that were measured in turns.
pub(crate) struct PairInTurns<'n> {
    /// Index of A among the results of the report.
    pub(crate) a: usize,
    /// Index of B among the results of the report.
    pub(crate) b: usize,
    /// The name of B in sentences.
    pub(crate) name: &'n str,
    /// Whether the pair is about the headline.
    pub(crate) headline: bool,
}

/// Compares results of one report pair by pair, even if their work differs: the user selected the pairs.
pub(crate) fn compare_in_turns(report: &Report, pairs: &[PairInTurns]) -> Vec<Pair> {
    let options = Options { run_order: RunOrder::InTurns, accept_differences: true, ..Options::default() };
    let pooled = |at: usize| -> PooledResult {
        report.results.get(at).map(|result| SideResult { report, result }).into_iter().collect()
    };
    let drafts = pairs.iter().map(|p| {
        let mut draft = draft(&pooled(p.a), &pooled(p.b), [1, 1], p.name, &options);
        draft.pair.headline = p.headline;
        draft
    });
    answer_all(vec![drafts.collect()]).into_iter().flatten().collect()
}

/// A command with the wall times of its runs.
#[derive(Clone, Debug)]
pub(crate) struct CommandTimes {
    /// The command as typed in a shell.
    name: String,
    /// Seconds of the successful runs, by session.
    seconds: Vec<Vec<f64>>,
}

impl CommandTimes {
    /// Returns the runs of a command in one session.
    pub(crate) fn new(command: &CommandResult) -> Self {
        let successful = command.runs.iter().filter(|run| run.exit.is_success());
        Self { name: command.command.clone(), seconds: vec![successful.map(|run| run.seconds).collect()] }
    }
}

/// Compares the times of each of `others` with those of `first`. The commands were run in turns.
pub(crate) fn compare_times(first: &CommandTimes, others: &[CommandTimes]) -> Vec<Pair> {
    let options = Options { run_order: RunOrder::InTurns, ..Options::default() };
    let drafts = others.iter().map(|other| draft_times(first, other, &options));
    answer_all(vec![drafts.collect()]).into_iter().flatten().collect()
}

/// Returns a draft for each command that both sides timed. If each side timed a single command, compares these two whatever their names.
fn draft_commands(a: &[Report], b: &[Report], options: &Options) -> Vec<Draft> {
    let [a, b] = [a, b].map(|reports| {
        let mut side: Vec<CommandTimes> = Vec::new();
        for command in reports.iter().filter_map(|report| report.study.commands()).flat_map(|c| &c.commands) {
            let mut new = CommandTimes::new(command);
            match side.iter_mut().find(|known| known.name == new.name) {
                Some(known) => known.seconds.append(&mut new.seconds),
                None => side.push(new),
            }
        }
        side
    });
    if let ([a], [b]) = (a.as_slice(), b.as_slice()) {
        return vec![draft_times(a, b, options)];
    }
    let same = |one: &CommandTimes| b.iter().find(|other| other.name == one.name).cloned();
    a.iter().filter_map(|one| Some(draft_times(one, &same(one)?, options))).collect()
}

fn draft_times(a: &CommandTimes, b: &CommandTimes, options: &Options) -> Draft {
    let measure = weighing::Measure {
        name: "time".into(),
        unit: "s",
        more_is_better: false,
        is_percentile: false,
        is_tail: false,
        a: a.seconds.clone(),
        b: b.seconds.clone(),
    };
    let (name, true_name_a, true_name_b) = (a.name.clone(), a.name.clone(), b.name.clone());
    let pair = Pair { name, true_name_a, true_name_b, ..Pair::default() };
    Draft { pair, weighed: vec![weighing::weigh(measure, options)], unknown: Vec::new() }
}

/// A pair that has no answers yet.
struct Draft {
    pair: Pair,
    weighed: Vec<WeighedNumber>,
    /// Aspects that are unknown on one or both sides.
    unknown: Vec<String>,
}

/// Compares the aspects of a pair, and weighs its numbers if nothing refuses the comparison.
/// `sessions` has the number of sessions of each side, and `name` the name of the side that is
/// compared with A.
fn draft(a: &PooledResult, b: &PooledResult, sessions: [usize; 2], name: &str, options: &Options) -> Draft {
    let [first_a, first_b] = [a, b].map(|side| side.first().copied());
    let (differences, unknown) =
        first_a.zip(first_b).map(|(a, b)| find_differences(a, b)).unwrap_or_default();
    let other_work = (!options.accept_differences).then(|| describe_other_work(&differences, name)).flatten();
    let lacks_number =
        |side: &PooledResult| side.iter().any(|one| fingerprint::why_no_number(*one).is_some());
    // Different requests are the first reason to refuse, even if a result has no number.
    // Differences in what was measured, or in an engine that replaced a denied one, are the last
    // reason.
    let not_requested = [fingerprint::MEASURED, fingerprint::AVAILABLE_ENGINE];
    let is_request = |d: &Difference| d.refuses && !not_requested.contains(&d.aspect.as_str());
    let other_request = other_work.is_some() && differences.iter().any(is_request);
    let no_number = !other_request && (lacks_number(a) || lacks_number(b));
    let cannot_tell = !no_number && other_work.is_some() && is_undecidable(&differences);
    let accepted: BTreeSet<CheckId> =
        a.iter().chain(b).flat_map(|one| one.result.accepted.iter().copied()).collect();
    let refused =
        if other_request { other_work } else { why_not_comparable(a, b, sessions, name).or(other_work) };
    let (measures, left_out) =
        if refused.is_none() { weighing::collect_measures(a, b) } else { Default::default() };
    let true_name = |one: Option<SideResult>| one.map_or_else(String::new, |o| o.result.true_name.clone());
    let pair = Pair {
        name: first_a.map_or_else(String::new, |o| o.result.name.clone()),
        true_name_a: true_name(first_a),
        true_name_b: true_name(first_b),
        phase: first_a.map_or(0, |o| o.result.phase),
        stream: first_a.map_or(0, |o| o.result.stream),
        refused,
        no_number,
        cannot_tell,
        accepted: accepted.into_iter().collect(),
        differences,
        left_out,
        ..Pair::default()
    };
    let weighed = measures.into_iter().map(|m| weighing::weigh(m, options)).collect();
    Draft { pair, weighed, unknown }
}

/// Returns the differences between two results, in their aspects and in their findings, and the
/// aspects that are unknown on one or both sides.
fn find_differences(a: SideResult, b: SideResult) -> (Vec<Difference>, Vec<String>) {
    let prints = [a, b].map(|one| fingerprint(one.report, one.result));
    let (mut different, mut unknown) = compare_aspects(&prints[0], &prints[1]);
    // If the fingerprints already refuse, the fields of the stream would only repeat them.
    if !different.iter().any(|d| d.refuses) {
        let settings = [a, b].map(|one| fingerprint::setting_aspects(one.result));
        let (mut other_settings, unreadable) = compare_aspects(&settings[0], &settings[1]);
        // Of the different entries of a list, only the first is shown.
        let list = |d: &Difference| d.aspect.rsplit_once('[').map(|(list, _)| list.to_owned());
        other_settings.dedup_by(|next, first| list(next).is_some() && list(next) == list(first));
        different.extend(other_settings);
        unknown.extend(unreadable);
    }
    different.extend(fingerprint::result_differences(a, b));
    different.extend(fingerprint::acceptance_difference(a, b));
    (different, unknown)
}

/// Returns why there is nothing to compare: a side has a result without a number, sessions that lack the result, or several configurations.
fn why_not_comparable(
    a: &PooledResult,
    b: &PooledResult,
    sessions: [usize; 2],
    name: &str,
) -> Option<String> {
    for (side, pooled, sessions) in [("A", a, sessions[0]), (name, b, sessions[1])] {
        if let Some(why) = pooled.iter().find_map(|one| fingerprint::why_no_number(*one)) {
            let why = why.trim_end_matches('.');
            return Some(format!("{side} has no number to compare: {why}{}", accept_advice(a, b)));
        }
        if pooled.len() < sessions {
            return Some(format!(
                "this result is in only {} of the {sessions} sessions of {side}",
                pooled.len()
            ));
        }
        let [first, others @ ..] = pooled.as_slice() else { continue };
        let mixed = others.iter().find_map(|other| {
            let (different, _) = find_differences(*first, *other);
            let is_mixed = |d: &Difference| !MAY_DIFFER_WITHIN_A_SIDE.contains(&d.aspect.as_str());
            let difference = different.into_iter().find(is_mixed)?;
            Some(format!(
                "{} ({} and {})",
                show_difference(&difference),
                pooled[0].report.started,
                other.report.started
            ))
        });
        if let Some(what) = mixed {
            return Some(format!("the sessions of {side} have different configurations: {what}"));
        }
    }
    None
}

/// Returns how to get a number: the fix, and all findings of both sides that the user must accept to compare the numbers.
/// Only `measure again` if there are no such findings, or if a result would have no number even then.
fn accept_advice(a: &PooledResult, b: &PooledResult) -> String {
    let all = || a.iter().chain(b);
    let ids: NamedIds = all()
        .flat_map(|one| unaccepted_checks(&one.result.name, &one.report.checks, &[Severity::Invalidates]))
        .collect();
    if ids.is_empty() || all().any(|one| one.result.total.is_none()) {
        return "; measure again".into();
    }
    format!(
        "; {} and measure again, or type {} to compare all the same",
        describe_fix(&ids),
        explained_acceptance(&ids, &[])
    )
}

/// Returns why two results are not compared: they measure different work, or their conditions differ. `None` if they are compared.
fn describe_other_work(differences: &[Difference], name: &str) -> Option<String> {
    let refusing: Vec<String> = differences.iter().filter(|d| d.refuses).map(show_difference).collect();
    let which = if is_undecidable(differences) {
        "were measured under different conditions"
    } else {
        "measure different work"
    };
    (!refusing.is_empty()).then(|| format!("A and {name} {which}: {}", refusing.join("; ")))
}

/// Whether different findings relabel the results of a pair, such as the page cache (A01) on one side only.
pub(crate) fn measures_something_else(pair: &Pair) -> bool {
    pair.differences.iter().any(|d| d.aspect == fingerprint::MEASURED)
}

/// Aspects in which the sessions of one side may differ.
const MAY_DIFFER_WITHIN_A_SIDE: &[&str] = &[fingerprint::LIMITED_BY, fingerprint::ACCEPTED];

/// Whether only one difference refuses the comparison: an engine that replaced a denied one.
/// Another engine does the same work, but may change the number, so the answer is `CANNOT TELL`
/// instead of `INCOMPARABLE`.
fn is_undecidable(differences: &[Difference]) -> bool {
    let mut refusing = differences.iter().filter(|d| d.refuses).peekable();
    refusing.peek().is_some() && refusing.all(|d| d.aspect == fingerprint::AVAILABLE_ENGINE)
}

/// Accepts findings of a report that is already judged, such as a JSON report. A number that only accepted findings invalidate is shown
/// again.
pub fn accept_findings(report: &mut Report, accept: &[CheckId]) {
    for finding in &mut report.checks {
        finding.accepted |= finding.outcome == Outcome::Finding && accept.contains(&finding.id);
    }
    let checks = &report.checks;
    for result in &mut report.results {
        let mut voiding = findings::findings_about(checks, &result.name, Severity::Invalidates).peekable();
        let is_shown = voiding.peek().is_some() && voiding.all(|f| f.accepted);
        if result.void && is_shown {
            result.void = false;
            result.verdict = Verdict::Suspect;
        }
        // Findings that only the study accepted (`Question::is_expected`) do not count here.
        let by_user = |id: &CheckId| accept.contains(id) || result.accepted.contains(id);
        let accepted: Vec<CheckId> =
            findings::accepted_ids(result, checks).into_iter().filter(by_user).collect();
        result.accepted = accepted;
        if !result.accepted.is_empty() {
            result.verdict = result.verdict.max(Verdict::Suspect);
        }
    }
}

/// Gives every number of every side its answer. The first numbers of the headline pairs share one correction for multiple comparisons, and
/// all other numbers share another: the headlines were selected before the measurement.
fn answer_all(sides: Vec<Vec<Draft>>) -> Vec<Vec<Pair>> {
    let is_headline = |draft: &Draft, at: usize| draft.pair.headline && at == 0;
    let chances = |of_headlines: bool| -> Vec<f64> {
        let all =
            sides.iter().flatten().flat_map(|d| d.weighed.iter().enumerate().map(move |(at, w)| (d, at, w)));
        all.filter(|(d, at, _)| is_headline(d, *at) == of_headlines)
            .map(|(_, _, w)| w.p_beyond_margin())
            .collect()
    };
    let [others, headlines] = [chances(false), chances(true)];
    let counts = [others.len(), headlines.len()];
    let mut adjusted = [
        comparison::adjust_with_holm(&others).into_iter(),
        comparison::adjust_with_holm(&headlines).into_iter(),
    ];
    let mut answer_draft = |draft: Draft| {
        let Draft { mut pair, weighed, .. } = draft;
        for (at, weighed) in weighed.into_iter().enumerate() {
            let group = usize::from(pair.headline && at == 0);
            pair.metrics.push(weighed.into_metric(adjusted[group].next().unwrap_or(1.0), counts[group]));
        }
        pair
    };
    sides.into_iter().map(|drafts| drafts.into_iter().map(&mut answer_draft).collect()).collect()
}

/// Returns the answer and its sentences, about the headline of A. `b` is the name of the other side.
fn answer(pairs: &[Pair], matched: &MatchedResults, a: &[Report], b: &str) -> (ComparisonAnswer, String) {
    let Some(pair) = pairs.iter().find(|p| p.headline) else {
        return (ComparisonAnswer::Incomparable, describe_missing_headline(matched, a, b));
    };
    if let Some(why) = &pair.refused {
        let anyway = if pair.cannot_tell { " Type --accept E14 to compare them all the same." } else { "" };
        return (pair.refusal(), format!("{why}.{anyway}"));
    }
    let Some(metric) = pair.metrics.first() else {
        return (
            ComparisonAnswer::Incomparable,
            format!(
                "{}: no number that could decide has a value in every run of both sides. A rate that the job sets \
                 does not decide.",
                pair.name
            ),
        );
    };
    let what = format!("{} of {}", metric.name, pair.true_name_a);
    let numbers = format!(
        "{} against {}, over {} and {}",
        metric.show(metric.b),
        metric.show(metric.a),
        metric.b_runs.len(),
        show_counted(metric.a_runs.len() as u64, "run")
    );
    let interval = show_interval(metric);
    let change = show_change(metric.ratio);
    let sentence = match metric.answer {
        ComparisonAnswer::Faster | ComparisonAnswer::Slower => {
            let word = if metric.answer == ComparisonAnswer::Faster { "faster" } else { "slower" };
            format!("{b} is {word} than A by {}: {what}, {numbers}.", metric.size())
        }
        ComparisonAnswer::Same => {
            let within = show_share(metric.tolerance.unwrap_or(metric.margin));
            format!("{b} is the same as A within {within}: {what} {change}{interval}; {numbers}.")
        }
        ComparisonAnswer::NoDifferenceSeen => {
            let margin = show_share(metric.margin);
            let why =
                if metric.why.is_empty() { String::new() } else { format!(" The reason: {}.", metric.why) };
            format!(
                "No difference above {margin} is proven: {b} is {} than A ({what} {change}; {numbers}).{why}{}",
                metric.bound().unwrap_or_default(),
                describe_runs_for_narrowing(metric)
            )
        }
        ComparisonAnswer::CannotTell | ComparisonAnswer::Incomparable | ComparisonAnswer::Invalid => {
            format!(
                "Whether {b} is faster or slower than A cannot be told: {what} {change}{interval}; {numbers}. The reason: {}.{}",
                metric.why,
                describe_needed_runs(metric)
            )
        }
    };
    (metric.answer, sentence + &describe_accepted(pair) + &describe_differences(pair))
}

fn describe_missing_headline(matched: &MatchedResults, a: &[Report], b: &str) -> String {
    let Some(first) = a.first() else { return "Side A has no results.".into() };
    let names = |list: &[String]| if list.is_empty() { "nothing".into() } else { list.join(", ") };
    format!(
        "The headline of A, {}, is not on side {b}: only A has {}, only {b} has {}.",
        first.headline.name,
        names(&matched.only_in_a),
        names(&matched.only_in_b)
    )
}

/// Formats the interval of a change: ` (95 % interval -1.0 % to +2.0 %)`; empty without one.
pub(crate) fn show_interval(metric: &Metric) -> String {
    metric
        .interval
        .map_or_else(String::new, |ends| format!(" (95 % interval {})", show_change_ends(metric.ratio, ends)))
}

/// States how many runs would halve the interval, and how many would decide the comparison.
fn describe_runs_for_narrowing(metric: &Metric) -> String {
    let halve =
        metric.runs_to_halve.map(|runs| format!("about {runs} runs on each side would halve this range"));
    let settle = metric.runs_needed.map(|runs| match &halve {
        Some(_) => format!("about {runs} would settle it"),
        None => format!("about {runs} runs on each side would settle it"),
    });
    let all: Vec<String> = halve.into_iter().chain(settle).collect();
    if all.is_empty() { String::new() } else { format!(" To know more: {}.", all.join(", ")) }
}

/// States which difference would have been detected, and how many runs would decide the comparison.
fn describe_needed_runs(metric: &Metric) -> String {
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

/// Names the accepted findings that the numbers depend on.
fn describe_accepted(pair: &Pair) -> String {
    match pair.accepted.as_slice() {
        [] => String::new(),
        ids => format!(" The numbers depend on accepted findings: {}.", CheckId::list(ids, ", ")),
    }
}

/// Names the differences between the two sides.
fn describe_differences(pair: &Pair) -> String {
    let differences: Vec<String> = pair.differences.iter().map(show_difference).collect();
    if differences.is_empty() {
        String::new()
    } else {
        format!(" The sides differ in: {}.", differences.join("; "))
    }
}

/// Formats an aspect with its values in the first and in the second result, as in `kernel 6.1.0 -> 6.18.5`.
fn show_difference(difference: &Difference) -> String {
    format!("{} {} -> {}", difference.aspect, difference.a, difference.b)
}

/// A result with its report.
#[derive(Clone, Copy, Debug)]
struct SideResult<'a> {
    report: &'a Report,
    result: &'a Measured,
}

/// The same result in all sessions of a side that have it. Empty only in [`compare_in_turns`], if an index has no result.
type PooledResult<'a> = Vec<SideResult<'a>>;

struct MatchedResults<'a> {
    pairs: Vec<(PooledResult<'a>, PooledResult<'a>)>,
    only_in_a: Vec<String>,
    only_in_b: Vec<String>,
}

/// Returns a side as the comparison shows it.
fn show_side(reports: &[Report]) -> Side {
    let source = |r: &Report| Source {
        session: r.session.clone(),
        title: r.title.clone(),
        started: r.started.clone(),
        verdict: r.verdict,
        judged_by: r.fathom.version.clone(),
    };
    Side { sessions: reports.iter().map(source).collect() }
}

/// Matches results of the same name, phase and stream. If each side measured a single result, these two match whatever their names: the
/// name of a job contains its block size and depth, and the comparison then shows what differs.
fn match_results<'a>(a: &'a [Report], b: &'a [Report]) -> MatchedResults<'a> {
    let (a, b) = (pool_results(a), pool_results(b));
    if let ([_], [_]) = (a.as_slice(), b.as_slice()) {
        return MatchedResults {
            pairs: a.into_iter().zip(b).collect(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
        };
    }
    let name = |pooled: &PooledResult| pooled.first().map_or_else(String::new, |one| one.result.name.clone());
    let mut unmatched: Vec<Option<PooledResult>> = b.into_iter().map(Some).collect();
    let (mut pairs, mut only_in_a) = (Vec::new(), Vec::new());
    for of_a in a {
        let same =
            unmatched.iter_mut().find(|of_b| of_b.as_ref().is_some_and(|of_b| key(of_b) == key(&of_a)));
        match same.and_then(Option::take) {
            Some(of_b) => pairs.push((of_a, of_b)),
            None => only_in_a.push(name(&of_a)),
        }
    }
    let only_in_b = unmatched.into_iter().flatten().map(|of_b| name(&of_b)).collect();
    MatchedResults { pairs, only_in_a, only_in_b }
}

fn key<'a>(pooled: &PooledResult<'a>) -> (&'a str, u32, u32) {
    pooled.first().map_or(("", 0, 0), |one| key_of(one.result))
}

fn key_of(result: &Measured) -> (&str, u32, u32) {
    (&result.name, result.phase, result.stream)
}

/// Returns the results of a side, in the order of its first session, each from all sessions that have it.
fn pool_results(reports: &[Report]) -> Vec<PooledResult<'_>> {
    let mut all: Vec<PooledResult> = Vec::new();
    for report in reports {
        // If every session has one result, these results belong together.
        let single = report.results.len() == 1 && all.len() == 1;
        for result in &report.results {
            let one = SideResult { report, result };
            // Two results of one session remain separate, even if they have the same name.
            let own = |p: &&mut PooledResult| p.iter().all(|o| !std::ptr::eq(o.report, report));
            let same = |p: &&mut PooledResult| own(p) && (single || key(p) == key_of(result));
            match all.iter_mut().find(same) {
                Some(pooled) => pooled.push(one),
                None => all.push(vec![one]),
            }
        }
    }
    all
}

/// Compares the reports of a rerun: the session's own jobs with the repeated ones, which were measured in turns, and the repeated jobs with
/// the earlier session. The user knows what changed since then, so the own jobs may be different work. The repeated jobs may not.
pub(crate) fn compare_rerun(
    earlier: &plan::BaselineSession,
    plan: &Plan,
    own: &Report,
    rerun: Report,
    accept: &[CheckId],
) -> Rerun {
    let options = |accept_differences| Options {
        accept_differences,
        accept: accept.to_vec(),
        version: own.fathom.version.clone(),
        ..Options::default()
    };
    let settles = matches!(plan.strategy, Strategy::Settle { .. });
    let in_turns = Options {
        fail_if_slower: plan.fail_if_slower,
        run_order: if settles { RunOrder::Settling } else { RunOrder::InTurns },
        ..options(true)
    };
    Rerun {
        session: earlier.session.clone(),
        workload_comparison: compare(&rerun, own, &in_turns),
        machine_comparison: compare(&earlier.earlier_report, &rerun, &options(false)),
        measured_again: Box::new(rerun),
    }
}

/// Splits the record of a rerun into the record of its own jobs and that of the repeated jobs; `None` if it is not a rerun.
pub(crate) fn split_rerun(record: &Record) -> Option<(Record, Record)> {
    let plan = &record.header.plan;
    let against = plan.against.as_ref()?;
    let from = against.first_job.min(plan.jobs.len());
    let own = record_of_jobs(record, 0..from, plan.headline);
    let mut rerun = record_of_jobs(record, from..plan.jobs.len(), against.headline);
    rerun.header.plan.title = format!("{}, again", against.earlier_report.title);
    // The table of a profile belongs to the own jobs.
    rerun.header.plan.study = model::study::Study::Jobs;
    // The conditions of `--fail-if` also belong to the own jobs.
    rerun.header.plan.fail_if.clear();
    Some((own, rerun))
}

/// Returns the part of a record that belongs to some of its jobs.
fn record_of_jobs(record: &Record, jobs: std::ops::Range<usize>, headline: usize) -> Record {
    let mut header = record.header.clone();
    header.plan.jobs = header.plan.jobs.get(jobs.clone()).unwrap_or_default().to_vec();
    header.plan.headline = headline.saturating_sub(jobs.start);
    header.plan.against = None;
    header.self_test.ceilings.retain(|c| jobs.contains(&c.job));
    for ceiling in &mut header.self_test.ceilings {
        ceiling.job -= jobs.start;
    }
    let is_selected = |run: &&Run| jobs.contains(&run.start.job);
    let part_of = |runs: &[Run]| {
        let mut runs: Vec<Run> = runs.iter().filter(is_selected).cloned().collect();
        for run in &mut runs {
            run.start.job -= jobs.start;
        }
        runs
    };
    Record {
        header,
        evidence: record.evidence.clone(),
        preconditioned: record.preconditioned.clone(),
        runs: part_of(&record.runs),
        uncounted_runs: part_of(&record.uncounted_runs),
        fleet: record.fleet.clone(),
        end: record.end.clone(),
    }
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};

/// A session of one job that also repeated a slower job of an earlier session.
#[cfg(test)]
pub(crate) fn fixture() -> Record {
    let before = Fixture { name: "before".into(), ops: 8_000, ..Fixture::honest() };
    let then = judge(&before.record(), &Judging::default());
    let mut record = together(&[Fixture::honest(), before]);
    record.header.plan.against = Some(model::plan::BaselineSession {
        session: "1".into(),
        first_job: 1,
        headline: 1,
        earlier_report: Box::new(then),
    });
    record
}

#[test]
fn each_side_of_a_rerun_is_a_record() {
    let record = fixture();
    let (own, rerun) = split_rerun(&record).unwrap();
    for (side, name, iops) in [(&own, "RND4K Q32T1 read", 10_000.0), (&rerun, "before", 8_000.0)] {
        let report = judge(side, &Judging::default());
        assert_eq!((report.results.len(), report.results[0].name.as_str()), (1, name));
        assert_eq!(report.results[0].runs.len(), 5);
        assert!((report.headline.value.unwrap() - iops).abs() < 1.0, "{:?}", report.headline);
        let tested: Vec<usize> = side.header.self_test.ceilings.iter().map(|c| c.job).collect();
        assert_eq!(tested, [0], "the self test is that of the job");
    }
    assert!(split_rerun(&own).is_none() && split_rerun(&rerun).is_none());
}

#[test]
fn a_card_belongs_to_the_own_side() {
    let mut record = fixture();
    let rows = Vec::new();
    let layout = model::profile::ToolLayout {
        tool: "ATTO".into(),
        kind: model::profile::LayoutKind::Bars,
        rows,
        differs: Vec::new(),
    };
    record.header.plan.study = layout.into();
    let report = judge(&record, &Judging::default());
    assert!(report.study.profile().is_some());
    assert!(report.against.unwrap().measured_again.study.profile().is_none());
}

#[test]
fn a_rerun_is_compared_with_the_own_jobs_and_with_the_earlier_session() {
    let report = judge(&fixture(), &Judging::default());
    assert_eq!(report.results.len(), 1);
    let against = report.against.unwrap();
    assert_eq!(
        (against.workload_comparison.answer, against.machine_comparison.answer),
        (ComparisonAnswer::Faster, ComparisonAnswer::Same)
    );
    let ratio = against.workload_comparison.headline().unwrap().metrics[0].ratio;
    assert!((ratio - 1.25).abs() < 1e-6, "{ratio}");
}

#[test]
fn a_gate_decides_if_the_same_finding_relabels_both_sides_as_for_two_files() {
    let own = Fixture { cpu_share: 1.0, ..Fixture::honest() };
    let before = Fixture { name: "before".into(), ..own.clone() };
    let settled = |own: &Fixture, share| {
        let then = judge(&before.record(), &Judging::default());
        let mut record = together(&[own.clone(), before.clone()]);
        let plan = &mut record.header.plan;
        plan.against = Some(model::plan::BaselineSession {
            session: "1".into(),
            first_job: 1,
            headline: 1,
            earlier_report: Box::new(then),
        });
        plan.fail_if_slower = Some(SlowdownLimit { share, all_numbers: false });
        judge(&record, &Judging::default())
    };
    let report = settled(&own, 0.05);
    assert_eq!(
        report.verdict,
        Verdict::Suspect,
        "the finding relabels the number: {}",
        report.verdict_reason
    );
    let answer = report.answer.clone().unwrap();
    assert_eq!(
        (answer.word, crate::exit_code(&report)),
        (model::report::AnswerWord::Pass, 0),
        "{}",
        answer.sentence
    );
    // `compare` decides the same if the two sides are in files.
    let again = report.against.as_ref().unwrap().measured_again.as_ref();
    let limit = SlowdownLimit { share: 0.05, all_numbers: false };
    let files = compare(again, &report, &Options { fail_if_slower: Some(limit), ..Options::default() });
    assert_eq!(files.gate.unwrap().outcome, model::comparison::GateOutcome::Passed);
    let slower = settled(&Fixture { ops: own.ops / 2, ..own.clone() }, 0.05);
    assert_eq!(slower.answer.unwrap().word, model::report::AnswerWord::Fail);
    // The page cache on one side is other work.
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..own.clone() };
    let other = settled(&cached, 0.05);
    let answer = other.answer.clone().unwrap();
    assert_eq!(
        (answer.word, crate::exit_code(&other)),
        (model::report::AnswerWord::Invalid, 1),
        "{}",
        answer.sentence
    );
}

#[test]
fn a_forged_job_index_does_not_panic() {
    for (from, headline) in [(0, 0), (9, 9), (usize::MAX, 0)] {
        let mut record = fixture();
        let against = record.header.plan.against.as_mut().unwrap();
        (against.first_job, against.headline) = (from, headline);
        judge(&record, &Judging::default());
    }
}

#[cfg(test)]
mod tests;
