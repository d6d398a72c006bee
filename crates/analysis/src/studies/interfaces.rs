//! Compares interfaces: a row for each interface with its cost per byte for the same work, and the advice on which one to use.
//!
//! 1. [`build_row`] computes the costs of an interface over its runs.
//! 2. [`advise_work`] compares the rates of the interfaces round by round. Interfaces that cannot be
//!    distinguished from the fastest one form a group with it, and the plainest of the group is
//!    recommended. Rows are ordered from the plainest interface to the most complex one.
//! 3. The answer joins the advice for all works.

use super::{Conclusion, Question};
use crate::case::{Case, CaseRun, share};
use crate::findings::CaseAnswers;
use crate::notes::name_disturbance;
use crate::threshold::CANNOT_TELL_ABOVE;
use crate::verdict::{Judged, ReportHead, why_without};
use model::Known;
use model::evidence::{Extents, Moment};
use model::figures::NotMeasured;
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::job::{Kind, Stream};
use model::record::{Record, RunEnding, WorkerEnd};
use model::report::{AnswerWord, Figures, Measured, ReportAnswer};
use model::spec::number::MAX_RUNS;
use model::study::{Advice, Api, ApiRow, Candidate, InterfaceComparison, NoAdvice, Studied};
use model::units::{MIB, show_counted, show_rate};
use stats::comparison::{self, Gap};
use stats::intervals::{self, FEWEST_RUNS, Mean};

/// Groups of checks whose findings are expected: they are about how operations reach the device, and the table
/// exists to show that. Findings that invalidate a number are never expected.
const EXPECTED_GROUPS: [char; 3] = ['A', 'B', 'C'];

/// Checks of other groups whose findings are expected: the CPU was the limit (D06), fathom's own overhead mattered (D07),
/// buffered operations were faster than operations that reach the device (E07), and a program that waits for each
/// operation submitted nothing meanwhile (E09).
const EXPECTED_CHECKS: &[CheckId] = &[CheckId::D06, CheckId::D07, CheckId::E07, CheckId::E09];

/// A row of the table with its rates.
struct RatedRow {
    /// Whether the bytes reach the program.
    delivers_bytes: bool,
    row: ApiRow,
    /// Why the row has no rate, in a few words; meaningful only if it has none.
    why_without: String,
    /// MB/s in each round, with the final sync of writes in the time; `None` in rounds without a run or without a
    /// successful final sync.
    rates: Vec<Option<f64>>,
}

impl Question for InterfaceComparison {
    fn conclude(&self, judged: &Judged) -> Studied {
        let Judged { record, answered, results, counted_checks, .. } = *judged;
        let rated = |candidate: &Candidate| {
            let row = build_row(judged, candidate)?;
            Some(RatedRow {
                delivers_bytes: candidate.delivers_bytes,
                why_without: why_without(results.get(row.result)?, counted_checks),
                rates: rates_by_round(&answered.get(row.result)?.case),
                row,
            })
        };
        let rows: Vec<RatedRow> = self.candidates.iter().filter_map(rated).collect();
        let (advice, no_advice) = advise(&rows, results, &explain_few_runs(record));
        let not_measured: Vec<NotMeasured> = self.missing.iter().cloned().chain(refusals(record)).collect();
        let missing = not_measured.iter().map(ToString::to_string).collect();
        let rows = rows.into_iter().map(|rated| rated.row).collect();
        Api { rows, missing, not_measured, advice, no_advice }.into()
    }

    fn is_expected(&self, _record: &Record, _answered: &[CaseAnswers], finding: &Checked) -> bool {
        let group = EXPECTED_GROUPS.contains(&finding.id.group());
        finding.outcome == Outcome::Finding
            && finding.severity > Some(Severity::Invalidates)
            && (group || EXPECTED_CHECKS.contains(&finding.id))
    }

    fn why_expected(&self) -> &'static str {
        "do not count for the verdict, because they describe how operations reach the device, and that is what `fathom api` compares"
    }
}

/// Returns the checks whose findings change the meaning of a result.
pub(super) fn checks_acting_on(result: &Measured, considered: &[Checked]) -> impl Iterator<Item = CheckId> {
    let acts = |f: &&Checked| f.outcome == Outcome::Finding && f.severity < Some(Severity::Note);
    considered.iter().filter(acts).filter(|f| f.about.contains(&result.name)).map(|f| f.id)
}

/// Returns the jobs that were refused before the first run, and why.
pub(crate) fn refusals(record: &Record) -> impl Iterator<Item = NotMeasured> {
    record.header.self_test.trials.iter().filter_map(|t| {
        let job = record.header.plan.jobs.get(t.job)?;
        let why = t.moved_bytes.as_ref().err()?;
        Some(NotMeasured { name: job.name.clone(), why: t.refusal.as_ref().unwrap_or(why).clone() })
    })
}

fn build_row(judged: &Judged, candidate: &Candidate) -> Option<ApiRow> {
    let at = judged.answered.iter().position(|a| a.case.job_index == candidate.job)?;
    let (case, result) = (&judged.answered.get(at)?.case, judged.results.get(at)?);
    let total = result.total.as_ref().filter(|_| !result.void);
    let figures: Option<&Figures> = result.read.as_ref().or(result.write.as_ref()).filter(|_| !result.void);
    let percentile = |p: &str| figures.and_then(|f| f.latency_ns.percentiles.get(p).copied().flatten());
    let issued = case.issued_total().bytes as f64;
    let per = |sum: Option<f64>, unit: f64| sum.filter(|_| issued > 0.0).map(|s| s / (issued / unit));
    let cpu = |i: usize| sum_over_runs(case, |ran| Some(ran.end.process_ns?[i]));
    let faults = |i: usize| {
        sum_over_runs(case, |ran| {
            let mine = ran.end.workers.iter().filter(|w: &&WorkerEnd| w.stream == case.stream_index);
            mine.map(|w| Some(w.faults?[i])).sum()
        })
    };
    let writes = case.stream.access.writes();
    let synced = if writes && !result.void { synced_mb_per_s(case) } else { None };
    let mut findings: Vec<CheckId> = checks_acting_on(result, judged.counted_checks).collect();
    findings.dedup();
    Some(ApiRow {
        interface: candidate.interface.clone(),
        work: candidate.work.clone(),
        block_bytes: case.stream.access.largest_bytes(),
        result: at,
        mb_per_s: total.map(|t| t.mb_per_s),
        mb_per_s_interval: total.and_then(|t| t.mb_per_s_interval),
        iops: total.map(|t| t.iops),
        synced_mb_per_s: synced.map(|m| m.value),
        synced_mb_per_s_interval: synced.and_then(|m| m.interval),
        run_seconds: total.and_then(|_| mean_of_runs(case, |ran| ran.stream.window_ns as f64 / 1e9)),
        run_bytes: total.and_then(|_| mean_of_runs(case, moved_bytes)),
        p50_ns: percentile("50"),
        p99_ns: percentile("99"),
        user_ns_per_byte: per(cpu(0), 1.0),
        system_ns_per_byte: per(cpu(1), 1.0),
        calls_per_mib: calls_per_mib(judged.record, candidate.job),
        minor_faults_per_mib: per(faults(0), MIB as f64),
        major_faults_per_mib: per(faults(1), MIB as f64),
        device_bytes_per_byte: device_bytes_per_byte(case, writes, issued),
        coverage: coverage(case),
        planned_coverage: planned_coverage(case),
        cached_pages_at_start: most_cached_pages(case),
        stored_before: if case.stream.renews_file() {
            Err("the first write replaces the file".into())
        } else {
            extents_at(case, Moment::Start, false)
        },
        stored_after: writes.then(|| extents_at(case, Moment::Synced, true)),
        findings,
    })
}

/// Returns the MB/s of a job in each round. These rates rank the interface.
fn rates_by_round(case: &Case) -> Vec<Option<f64>> {
    let writes = case.stream.access.writes();
    let mut rates = Vec::new();
    for ran in case.runs.iter() {
        let round = ran.run.start.repeat as usize;
        // A forged round number must not allocate memory.
        if round >= MAX_RUNS as usize {
            continue;
        }
        if rates.len() <= round {
            rates.resize(round + 1, None);
        }
        let rate = if writes { synced_rate(ran) } else { rate_over(ran, ran.stream.window_ns as f64) };
        if let Some(at) = rates.get_mut(round) {
            *at = rate;
        }
    }
    rates
}

fn calls_per_mib(record: &Record, job: usize) -> Known<f64> {
    let mut trials = record.header.self_test.trials.iter();
    let trial = trials.find(|t| t.job == job).ok_or("system calls were not counted")?;
    let (moved, calls) = (trial.moved_bytes.clone()?, trial.calls.clone()?);
    if moved == 0 {
        return Err("nothing was moved in the trial".into());
    }
    Ok(calls as f64 * MIB as f64 / moved as f64)
}

/// Returns a sum over all runs; `None` without runs, or if a run lacks the value.
fn sum_over_runs(case: &Case, value: impl Fn(&CaseRun) -> Option<u64>) -> Option<f64> {
    let all: Option<Vec<f64>> = case.runs.iter().map(|r| value(r).map(|n| n as f64)).collect();
    all.filter(|a| !a.is_empty()).map(|a| a.iter().sum())
}

/// Returns a mean over all runs; `None` without runs.
fn mean_of_runs(case: &Case, value: impl Fn(&CaseRun) -> f64) -> Option<f64> {
    (!case.runs.is_empty()).then(|| case.runs.iter().map(value).sum::<f64>() / case.runs.len() as f64)
}

fn moved_bytes(ran: &CaseRun) -> f64 {
    Kind::MOVING.iter().map(|k| ran.in_window(*k).bytes as f64).sum()
}

/// Returns the mean over the runs of [`synced_rate`]; `None` if a run ended without a successful final sync.
fn synced_mb_per_s(case: &Case) -> Option<Mean> {
    intervals::mean(&case.runs.iter().map(synced_rate).collect::<Option<Vec<_>>>()?)
}

/// Returns the MB/s of a run with the final sync in the time; `None` without a successful final sync.
fn synced_rate(ran: &CaseRun) -> Option<f64> {
    rate_over(ran, ran.stream.window_ns as f64 + ran.end.sync_ns? as f64)
}

/// Returns the MB/s of a run that took `ns`.
fn rate_over(ran: &CaseRun, ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| moved_bytes(ran) * 1e3 / ns)
}

/// Returns the bytes that the topmost devices read and wrote per issued byte, up to the final sync of each run if the job
/// writes.
fn device_bytes_per_byte(case: &Case, writes: bool, issued: f64) -> Known<[f64; 2]> {
    if case.runs.is_empty() || issued <= 0.0 {
        return Err("nothing was moved".into());
    }
    let end = if writes { Moment::Synced } else { Moment::Stop };
    let tops = case.top_layers()?;
    let mut bytes = [0.0; 2];
    for ran in case.runs.iter() {
        let moved = ran.layer_io_until(end, &tops)?;
        bytes[0] += moved.read.bytes as f64;
        bytes[1] += moved.write.bytes as f64;
    }
    Ok(bytes.map(|b| b / issued))
}

/// Returns the mean share of the span that a run covered. Assumes that no block was touched twice.
fn coverage(case: &Case) -> Option<f64> {
    let span = case.span_bytes() as f64 * case.runs.len() as f64;
    (span > 0.0).then(|| share(case.issued_total().bytes as f64, span))
}

/// Returns the largest share of the span that the stop rule allows a run to touch; `None` without a maximum
/// number of operations.
fn planned_coverage(case: &Case) -> Option<f64> {
    let bytes = case.stream.limit.operations? as f64 * f64::from(case.stream.access.largest_bytes());
    let span = case.span_bytes() as f64;
    (span > 0.0).then(|| share(bytes, span))
}

/// Returns the largest number of pages of a target that were in the page cache at the start of a run.
fn most_cached_pages(case: &Case) -> Known<u64> {
    let states = case.states(Moment::Start)?;
    states.into_iter().flatten().try_fold(0, |most: u64, s| Ok(most.max(s.pages.clone()?.cached)))
}

/// Returns the extents of the file at a moment of the first run, or of the last run if `is_last`.
fn extents_at(case: &Case, moment: Moment, is_last: bool) -> Known<Extents> {
    let states = case.states(moment)?;
    let run = if is_last { states.last() } else { states.first() };
    let state = run.and_then(|s| s.first()).ok_or("the file was not sampled")?;
    state.extents.clone().unwrap_or_else(|| Err("the extents of the file were not read".into()))
}

/// A figure that is less than this share of the other row's figure explains a difference in speed.
const CLEARLY_LESS_RATIO: f64 = 0.8;

/// A row that is slower than the fastest by at most this share is in the fastest group, even if the difference is
/// significant.
const MAX_BOUND_IN_GROUP: f64 = 0.05;

/// If the rows of a group differ by at most this share, they count as equally fast.
const MAX_EQUAL_BOUND: f64 = 0.10;

/// A row that is not surely slower than another is in the group if its bound ([`Gap::at_most`]) is at most this share.
/// A larger bound is allowed if it is at most [`MAX_TIMES_LEAST_BOUND`] times the smallest bound of these rows, and at
/// most [`CANNOT_TELL_ABOVE`]. The row with the smallest bound is always in the group.
const MAX_OPEN_BOUND: f64 = 0.25;

/// The bounds of two equally fast rows differ by chance up to this factor. Both remain in the group, so that the
/// plainer one is recommended each time.
const MAX_TIMES_LEAST_BOUND: f64 = 2.0;

/// Maximum number of names in a sentence.
const MAX_NAMES: usize = 4;

/// Maximum number of reasons in the answer.
const MAX_REASONS: usize = 2;

/// A row with its rate in MB/s and the interval.
struct RankedRow<'a> {
    row: &'a ApiRow,
    rate: f64,
    interval: [f64; 2],
    /// One rate per round.
    rates: &'a [Option<f64>],
}

/// Returns the recommendation for each work, in the order of the table, and for each other work the reason why there is
/// none. Ignores rows whose bytes do not reach the program.
fn advise(rows: &[RatedRow], results: &[Measured], why_few: &str) -> (Vec<Advice>, Vec<NoAdvice>) {
    let (mut advice, mut none) = (Vec::new(), Vec::new());
    let visible = rows.iter().filter(|rated| rated.delivers_bytes);
    for (work, rated_rows) in group_by_key(visible.map(|rated| (rated.row.work.as_str(), rated))) {
        match advise_work(&rated_rows, results, why_few) {
            Ok(one) => advice.push(one),
            Err(why) => none.push(NoAdvice { work: work.to_owned(), why }),
        }
    }
    (advice, none)
}

/// The rows that cannot be distinguished from the fastest, the plainest first.
#[derive(Debug, PartialEq)]
struct FastestGroup {
    /// Indices of its rows.
    members: Vec<usize>,
    /// The best row is faster than any member by at most this share.
    at_most: f64,
    /// The best row is faster than the first member by at most this share.
    first_at_most: f64,
}

/// Finds the group of the fastest rows; `None` without rows.
fn find_fastest_group(gaps: &[Gap]) -> Option<FastestGroup> {
    let open = gaps.iter().filter(|gap| !gap.is_surely_below).map(|gap| gap.at_most);
    let least = open.min_by(f64::total_cmp)?;
    let allowed = (MAX_TIMES_LEAST_BOUND * least).min(CANNOT_TELL_ABOVE).max(least).max(MAX_OPEN_BOUND);
    let belongs =
        |gap: &Gap| gap.at_most <= MAX_BOUND_IN_GROUP || (!gap.is_surely_below && gap.at_most <= allowed);
    let members: Vec<usize> = (0..gaps.len()).filter(|at| gaps.get(*at).is_some_and(belongs)).collect();
    let bounds = || members.iter().filter_map(|at| Some(gaps.get(*at)?.at_most));
    let (at_most, first_at_most) = (bounds().fold(0.0, f64::max), bounds().next()?);
    Some(FastestGroup { members, at_most, first_at_most })
}

/// Recommends the plainest interface (the first row) of the fastest group of a work, or returns why
/// it recommends none.
fn advise_work(work: &[&RatedRow], results: &[Measured], why_few: &str) -> Result<Advice, String> {
    let ranked: Vec<RankedRow> = work.iter().filter_map(|rated| RankedRow::new(rated)).collect();
    let by_rate = |a: &&RankedRow, b: &&RankedRow| a.rate.total_cmp(&b.rate);
    let (Some(fastest), Some(slowest)) = (ranked.iter().max_by(by_rate), ranked.iter().min_by(by_rate))
    else {
        let has_rate = work.iter().any(|rated| rated.row.mb_per_s.is_some());
        let why = || format!("no rate has an interval, which takes three runs: {why_few}");
        return Err(if has_rate { why() } else { "no row has a number".into() });
    };
    let unranked: Vec<&RatedRow> =
        work.iter().copied().filter(|rated| RankedRow::new(rated).is_none()).collect();
    if !unranked.is_empty() {
        return Err(explain_unranked(&unranked, fastest, ranked.len(), why_few));
    }
    if let [only] = ranked.as_slice() {
        return Err(format!("{} is the only interface with a number", only.row.interface));
    }
    let rates: Vec<Vec<Option<f64>>> = ranked.iter().map(|one| one.rates.to_vec()).collect();
    let group = find_fastest_group(&comparison::gaps(&rates)).filter(|group| group.at_most.is_finite());
    let Some((group, pick)) = group.and_then(|group| {
        let pick = ranked.get(*group.members.first()?)?;
        Some((group, pick))
    }) else {
        return Err(format!(
            "fewer than three rounds measured both {} and the others: {why_few}",
            fastest.row.interface
        ));
    };
    // The printed rates are means over all runs, but the bound uses only rounds that both rows have.
    let seen = fastest.rate / pick.rate - 1.0;
    let [at_most, first_at_most] = [group.at_most, group.first_at_most].map(|bound| bound.max(seen));
    let group = FastestGroup { at_most, first_at_most, ..group };
    if group.first_at_most > CANNOT_TELL_ABOVE {
        let (name, rate) = (&fastest.row.interface, show_rate(fastest.rate));
        return Err(format!(
            "{name} had the highest mean rate ({rate} MB/s), but the runs differ so much that another may be {} faster; \
             a longer --budget narrows this range",
            show_bound(group.first_at_most)
        ));
    }
    let members: Vec<&str> =
        group.members.iter().filter_map(|at| Some(ranked.get(*at)?.row.interface.as_str())).collect();
    let plainest = ranked.first().filter(|plainest| plainest.row.interface != pick.row.interface);
    let sentence = pick.describe(&members, &group, plainest, slowest, results);
    Ok(Advice {
        work: pick.row.work.clone(),
        interface: pick.row.interface.clone(),
        also: members.iter().skip(1).map(|name| (*name).to_owned()).collect(),
        others_faster_at_most: Some(group.first_at_most),
        sentence,
    })
}

/// Returns why rows have fewer than three runs, and what to do.
fn explain_few_runs(record: &Record) -> String {
    let plan = &record.header.plan;
    if (plan.runs as usize) < FEWEST_RUNS {
        return format!("type --runs {FEWEST_RUNS}");
    }
    if record.end.as_ref().is_none_or(|end| end.ending != RunEnding::Complete) {
        return "the measurement was ended too early".into();
    }
    let disturbed = record.runs.iter().filter(|run| run.disturbed.is_some()).count();
    match (plan.budget_ns, disturbed) {
        (Some(_), 0) => "the time was up too early; type a longer --budget".into(),
        (Some(_), _) => format!(
            "the time was up too early, and {} disturbed {disturbed} of {}; type a longer --budget, or measure when the machine \
             is quiet",
            name_disturbance(record),
            show_counted(record.runs.len() as u64, "run")
        ),
        (None, _) => "not all runs were complete".into(),
    }
}

/// Returns why no row of a work is recommended if some rows have no rate: each of them may be the fastest.
fn explain_unranked(unranked: &[&RatedRow], fastest: &RankedRow, ranked: usize, why_few: &str) -> String {
    let names: Vec<&str> = unranked.iter().map(|rated| rated.row.interface.as_str()).collect();
    let mut reasons: Vec<String> = unranked.iter().map(|rated| rated.why_unranked(why_few)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let have = if names.len() == 1 { "has" } else { "have" };
    let (names, reasons, fastest) = (list_names(&names), reasons.join("; "), &fastest.row.interface);
    if ranked == 1 {
        return format!("only {fastest} can be ranked: {names} {have} no comparable rate ({reasons})");
    }
    format!(
        "{names} {have} no comparable rate ({reasons}); of the others, {fastest} was the fastest on the mean"
    )
}

/// Returns a bound as a whole percentage, rounded up.
fn show_bound(share: f64) -> String {
    format!("{} %", (100.0 * share - 1e-9).ceil().max(1.0))
}

impl RatedRow {
    /// Returns why the row cannot be ranked, in a few words.
    fn why_unranked(&self, why_few: &str) -> String {
        match (self.row.mb_per_s, self.row.stored_after.is_some() && self.row.synced_mb_per_s.is_none()) {
            (None, _) => self.why_without.clone(),
            (Some(_), true) => "a final sync failed".into(),
            (Some(_), false) => format!("fewer than three runs: {why_few}"),
        }
    }
}

impl<'a> RankedRow<'a> {
    fn new(rated: &'a RatedRow) -> Option<Self> {
        let row = &rated.row;
        let (rate, interval) = match (row.synced_mb_per_s, row.stored_after.is_some()) {
            (Some(rate), _) => (rate, row.synced_mb_per_s_interval?),
            (None, true) => return None,
            (None, false) => (row.mb_per_s?, row.mb_per_s_interval?),
        };
        Some(Self { row, rate, interval, rates: &rated.rates })
    }

    /// Describes the recommendation of this row, the first of its group. `plainest` is a plainer row outside of the
    /// group.
    fn describe(
        &self,
        members: &[&str],
        group: &FastestGroup,
        plainest: Option<&RankedRow>,
        slowest: &RankedRow,
        results: &[Measured],
    ) -> String {
        let stable = if self.row.stored_after.is_some() { " with the final sync" } else { "" };
        let [low, high] = self.interval.map(show_rate);
        let ApiRow { work, interface, .. } = self.row;
        let is_alone = members.len() == 1;
        let is_fastest = is_alone && group.first_at_most <= 0.0;
        let advice = match (is_alone, is_fastest) {
            (_, true) => format!("use {interface}, the fastest"),
            (true, false) => format!("use {interface}"),
            (false, false) => {
                let are_equal = group.at_most <= MAX_EQUAL_BOUND;
                let relation = if are_equal { "are about equally fast" } else { "cannot be told apart" };
                format!("{} {relation}: use {interface}, the plainest", list_names(members))
            }
        };
        let rate = show_rate(self.rate);
        let mut sentence = format!("{work}: {advice}: {rate} MB/s{stable} ({low} to {high}).");
        if !is_fastest {
            let bound = show_bound(group.first_at_most);
            sentence += &format!(" No other interface is more than {bound} faster.");
        }
        let is_slowest = |one: &RankedRow| one.row.interface == slowest.row.interface;
        if let Some(plainest) = plainest {
            let rank = if is_slowest(plainest) { ", the slowest, does" } else { " does" };
            sentence += &format!(" {}{rank} {} MB/s", plainest.row.interface, show_rate(plainest.rate));
            sentence += &find_reason(self.row, plainest.row, results)
                .map_or_else(String::new, |why| format!("; {why}"));
            sentence += ".";
        }
        if !is_slowest(self) && !plainest.is_some_and(is_slowest) {
            sentence +=
                &format!(" The slowest is {} with {} MB/s.", slowest.row.interface, show_rate(slowest.rate));
        }
        sentence
    }
}

impl Conclusion for Api {
    fn head(&self, judged: &Judged, quoted: &[&Measured]) -> ReportHead {
        judged.head_of_jobs(quoted)
    }

    /// Returns which interface to use for each work, or why none is recommended.
    fn answer(&self) -> Option<ReportAnswer> {
        let Self { advice, no_advice, .. } = self;
        let word = match advice.as_slice() {
            [] => AnswerWord::CannotTell,
            all if all.iter().all(is_fastest) => AnswerWord::Fastest,
            _ => AnswerWord::Tied,
        };
        let sentence = match (advice.as_slice(), no_advice.as_slice()) {
            ([], []) if self.rows.is_empty() => "No recommendation, because no run was complete.".into(),
            ([], []) => {
                "No recommendation, because no measured interface delivers the bytes to the program.".into()
            }
            ([], none) => explain_no_advice(none, true),
            ([only], []) => only.sentence.clone(),
            (some, none) => {
                let is_write = |row: &ApiRow| row.stored_after.is_some();
                let is_recommended = |row: &ApiRow| some.iter().any(|advice| advice.work == row.work);
                let has_writes = self.rows.iter().any(|row| is_write(row) && is_recommended(row));
                [recommend(some, has_writes), explain_no_advice(none, false)].join(" ").trim().into()
            }
        };
        Some(ReportAnswer { word, sentence })
    }
}

/// Whether a recommended row is alone in its group, and no other row may be noticeably faster.
fn is_fastest(advice: &Advice) -> bool {
    advice.also.is_empty() && advice.others_faster_at_most.is_none_or(|bound| bound <= MAX_BOUND_IN_GROUP)
}

/// Recommends an interface for each work: `Use pread for 4K random read; mmap for 4K sequential read. In each case
/// no other interface is more than 4 % faster.` The bound is the largest bound of the works.
fn recommend(advice: &[Advice], has_writes: bool) -> String {
    let by_interface = group_by_key(advice.iter().map(|a| (a.interface.as_str(), a.work.as_str())));
    let sentence =
        by_interface.iter().map(|(interface, works)| format!("{interface} for {}", works.join(", ")));
    let use_them = format!("Use {}.", sentence.collect::<Vec<_>>().join("; "));
    let bounds: Option<Vec<f64>> = advice.iter().map(|a| a.others_faster_at_most).collect();
    match bounds.map(|bounds| bounds.into_iter().fold(0.0, f64::max)) {
        Some(most) if most > 0.0 => {
            let no = if advice.len() == 1 { "No" } else { "In each case no" };
            let synced = if has_writes { ", with the final sync of writes" } else { "" };
            format!("{use_them} {no} other interface is more than {} faster{synced}.", show_bound(most))
        }
        _ => use_them,
    }
}

/// `No recommendation, because ...`: a sentence for each reason. The works are named, unless no work has advice and all
/// have the same reason. More than [`MAX_REASONS`] reasons are only in the list of works below the table.
fn explain_no_advice(none: &[NoAdvice], has_no_advice_at_all: bool) -> String {
    let by_reason = group_by_key(none.iter().map(|n| (n.why.as_str(), n.work.as_str())));
    if by_reason.len() > MAX_REASONS {
        let works: Vec<&str> = none.iter().map(|n| n.work.as_str()).collect();
        return format!(
            "No recommendation for {}: \"Which interface to use\" has the reason for each.",
            works.join(", ")
        );
    }
    let is_unnamed = has_no_advice_at_all && by_reason.len() == 1;
    let sentence = |(why, works): &(&str, Vec<&str>)| {
        let named = if is_unnamed { String::new() } else { format!(" for {}", works.join(", ")) };
        format!("No recommendation{named}, because {why}.")
    };
    by_reason.iter().map(sentence).collect::<Vec<_>>().join(" ")
}

/// Returns the values of each key, in the order of first occurrence.
fn group_by_key<'a, V>(pairs: impl Iterator<Item = (&'a str, V)>) -> Vec<(&'a str, Vec<V>)> {
    let mut groups: Vec<(&str, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `a, b and c`, or `a, b, c, d and 3 more`.
fn list_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] if names.len() <= MAX_NAMES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..MAX_NAMES].join(", "), names.len() - MAX_NAMES),
    }
}

/// Returns the first difference that explains why `pick` is faster than the plainest row. Compares depth, bytes at the
/// device, page cache, system calls and CPU time, in this order.
fn find_reason(pick: &ApiRow, plainest: &ApiRow, results: &[Measured]) -> Option<String> {
    let stream =
        |row: &ApiRow| -> Option<&Stream> { results.get(row.result)?.job.phases.first()?.streams.first() };
    let in_flight = |row: &ApiRow| stream(row).map(Stream::total_depth);
    let direct = |row: &ApiRow| stream(row).is_some_and(|s| s.cache.is_direct());
    let less = |a: f64, b: f64| a < CLEARLY_LESS_RATIO * b;
    let name = &pick.interface;
    if let (Some(own), Some(other)) = (in_flight(pick), in_flight(plainest))
        && own > other
    {
        return Some(format!("{name} has {own} operations in flight, and {} {other}", plainest.interface));
    }
    if let (Ok(own), Ok(other)) = (&pick.device_bytes_per_byte, &plainest.device_bytes_per_byte)
        && less(own[0] + own[1], other[0] + other[1])
    {
        let (own, other) = (own[0] + own[1], other[0] + other[1]);
        return Some(format!(
            "with {name}, the device moves {own:.2} bytes for each byte of the program instead of {other:.2}"
        ));
    }
    if direct(pick) && !direct(plainest) {
        return Some(format!("{name} bypasses the page cache"));
    }
    if let (Ok(own), Ok(other)) = (&pick.calls_per_mib, &plainest.calls_per_mib)
        && less(*own, *other)
    {
        let (own, other) = (show_rate(*own), show_rate(*other));
        return Some(format!("{name} makes {own} instead of {other} system calls per MiB"));
    }
    let cpu = |row: &ApiRow| Some(row.user_ns_per_byte? + row.system_ns_per_byte?);
    if let (Some(own), Some(other)) = (cpu(pick), cpu(plainest))
        && less(own, other)
    {
        return Some(format!("{name} takes {own:.2} ns of CPU per byte instead of {other:.2}"));
    }
    None
}

#[cfg(test)]
use crate::{Judging, fixture, fixture::Fixture, judge};
#[cfg(test)]
use model::record::Trial;

/// Three ways to read the same blocks: one at a time, eight at once, and one that does not deliver the bytes. A fourth way is refused.
#[cfg(test)]
fn record_of_interfaces(change: impl Fn(&mut Vec<Fixture>)) -> Record {
    let named = |name: &str, fixture: Fixture| Fixture { name: name.into(), ..fixture };
    let mut fixtures = vec![
        named("pread, reads", Fixture { depth: 1, depth_seen: 0.98, ops: 2_000, ..Fixture::honest() }),
        named("ring, reads", Fixture { depth: 8, depth_seen: 7.9, ops: 9_000, ..Fixture::honest() }),
        named("blind, reads", Fixture { depth: 8, depth_seen: 7.9, ops: 20_000, ..Fixture::honest() }),
        named("polled, reads", Fixture { runs: 0, ..Fixture::honest() }),
    ];
    change(&mut fixtures);
    let mut record = fixture::together(&fixtures);
    let names = ["pread", "ring", "blind", "polled"];
    let candidate = |(job, name): (usize, &&str)| Candidate {
        job,
        interface: (*name).into(),
        work: "4K random read".into(),
        delivers_bytes: *name != "blind",
    };
    let candidates = names.iter().enumerate().map(candidate).collect();
    let missing = vec![NotMeasured { name: "late, reads".into(), why: "it is late".into() }];
    record.header.plan.study = InterfaceComparison { candidates, missing }.into();
    let trial = |job, moved_bytes, calls| Trial { job, moved_bytes, refusal: None, calls };
    record.header.self_test.trials = vec![
        trial(0, Ok(2 << 20), Ok(512)),
        trial(1, Ok(2 << 20), Err("no counter".into())),
        trial(2, Ok(2 << 20), Ok(0)),
        trial(3, Err("it does not poll".into()), Err("it was not tried".into())),
    ];
    record.runs.retain(|run| run.start.job != 3);
    record
}

#[cfg(test)]
fn table(record: &Record) -> Api {
    api_of(&judge(record, &Judging::default()))
}

#[cfg(test)]
fn api_of(report: &model::report::Report) -> Api {
    report.study.interfaces().unwrap().clone()
}

#[cfg(test)]
fn comparison(record: &mut Record) -> &mut InterfaceComparison {
    let model::study::Study::Interfaces(comparison) = &mut record.header.plan.study else {
        panic!("no interfaces")
    };
    comparison
}

#[test]
fn each_row_has_its_cost_per_byte() {
    let record = record_of_interfaces(|fixtures| fixtures[0].cpu_share = 0.5);
    let rows = table(&record).rows;
    assert_eq!(rows.len(), 3);
    let plain = &rows[0];
    assert_eq!((plain.calls_per_mib.clone(), plain.cached_pages_at_start.clone()), (Ok(256.0), Ok(0)));
    assert_eq!(rows[1].calls_per_mib, Err("no counter".into()));
    let [read, written] = plain.device_bytes_per_byte.clone().unwrap();
    assert!((read - 1.0).abs() < 1e-9 && written.abs() < 1e-9);
    let issued: f64 = record.runs_of(0, 0).map(issued_bytes).sum();
    let used: f64 = record.runs_of(0, 0).map(|r| r.end.as_ref().unwrap().process_ns.unwrap()[0] as f64).sum();
    assert!((plain.user_ns_per_byte.unwrap() - used / issued).abs() < 1e-9 && used > 0.0);
    assert!(plain.stored_after.is_none() && plain.synced_mb_per_s.is_none());
    let (seconds, moved) = (plain.run_seconds.unwrap(), plain.run_bytes.unwrap());
    assert!((moved / seconds / 1e6 / plain.mb_per_s.unwrap() - 1.0).abs() < 1e-3, "{plain:?}");
    assert_eq!(plain.minor_faults_per_mib, None, "no worker counts them");
}

#[cfg(test)]
fn issued_bytes(run: &model::record::Run) -> f64 {
    run.end.as_ref().unwrap().streams[0].issued[&Kind::Read].bytes as f64
}

#[test]
fn refused_interfaces_are_named_and_have_no_findings() {
    let report = judge(&record_of_interfaces(|_| {}), &Judging::default());
    assert_eq!(report.results.len(), 3);
    assert_eq!(api_of(&report).missing, ["late, reads: it is late", "polled, reads: it does not poll"]);
    assert_eq!(report.verdict, model::report::Verdict::Valid, "{}", report.verdict_reason);
    let mut refused = record_of_interfaces(|_| {});
    refused.header.self_test.trials[3].refusal = Some("no: none, here".into());
    let polled = NotMeasured { name: "polled, reads".into(), why: "no: none, here".into() };
    assert_eq!(
        table(&refused).not_measured.last(),
        Some(&polled),
        "the refusal is used, which names no flags"
    );
}

#[test]
fn planned_coverage_follows_from_the_operations() {
    let mut record = record_of_interfaces(|_| {});
    assert_eq!(table(&record).rows[0].planned_coverage, None, "its time ends it");
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.limit.operations = Some(stream.access.span_bytes / 4096 / 2);
    assert_eq!(table(&record).rows[0].planned_coverage, Some(0.5));
    let half = record.header.plan.targets[0].bytes / 2;
    let access = &mut record.header.plan.jobs[0].phases[0].streams[0].access;
    (access.offset_bytes, access.span_bytes) = (half, u64::MAX);
    let row = &table(&record).rows[0];
    assert_eq!(row.planned_coverage, Some(1.0), "the rest of the target");
    assert!(row.coverage.is_some_and(|share| share > 0.01), "{:?}", row.coverage);
}

#[test]
fn findings_about_operations_are_expected_but_traffic_of_others_is_not() {
    let cached = record_of_interfaces(|fixtures| fixtures[1].delivered = 0.0);
    let report = judge(&cached, &Judging::default());
    let a01 = report.checks.iter().find(|f| f.id == CheckId::A01 && f.outcome == Outcome::Finding).unwrap();
    assert!(a01.accepted && report.notes.iter().any(|n| n.contains("A01")));
    let disturbed = record_of_interfaces(|fixtures| fixtures[1].foreign_ios = 3_000);
    let report = judge(&disturbed, &Judging::default());
    let d01 = report.checks.iter().find(|f| f.id == CheckId::D01 && f.outcome == Outcome::Finding).unwrap();
    assert!(!d01.accepted && api_of(&report).rows[1].findings.contains(&CheckId::D01));
}

#[test]
fn a_forged_comparison_has_fewer_rows_and_does_not_panic() {
    let mut record = record_of_interfaces(|_| {});
    comparison(&mut record).candidates[0].job = 99;
    record.header.self_test.trials[1].job = 77;
    record.header.self_test.trials[2].moved_bytes = Ok(0);
    let api = table(&record);
    assert_eq!(api.rows.len(), 2);
    assert!(api.rows.iter().all(|r| r.calls_per_mib.is_err()));
}

#[test]
fn the_plainest_of_the_fastest_is_recommended_if_it_delivers_the_bytes() {
    let advice = table(&record_of_interfaces(|_| {})).advice;
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert_eq!(advice[0].interface, "ring");
    assert!(
        advice[0].sentence.contains("ring has 8 operations in flight, and pread 1"),
        "{}",
        advice[0].sentence
    );
    assert!(advice[0].sentence.starts_with("4K random read: use ring, the fastest: "), "{advice:?}");
    // If the plain one is as fast it is recommended.
    let mut equal = record_of_interfaces(|fixtures| fixtures[0].ops = 9_000);
    comparison(&mut equal).candidates[2].delivers_bytes = true;
    let advice = table(&equal).advice;
    assert_eq!((advice[0].interface.as_str(), advice[0].also.len()), ("blind", 0));
    comparison(&mut equal).candidates[2].delivers_bytes = false;
    let advice = table(&equal).advice;
    assert_eq!(
        (advice[0].interface.as_str(), advice[0].also.as_slice()),
        ("pread", ["ring".to_owned()].as_slice())
    );
    let known = "4K random read: pread and ring are about equally fast: use pread, the plainest: ";
    assert!(advice[0].sentence.starts_with(known), "{advice:?}");
    assert!(advice[0].sentence.contains(" No other interface is more than 1 % faster."), "{advice:?}");
}

#[test]
fn the_bound_of_a_work_is_also_that_of_the_answer_and_covers_the_printed_rates() {
    // In every second round pread is faster. A round of pread is missing, in which ring was fast.
    let rated = |name: &str, rates: &[Option<f64>], row: &ApiRow| RatedRow {
        delivers_bytes: true,
        row: ApiRow { interface: name.into(), ..row.clone() },
        why_without: String::new(),
        rates: rates.to_vec(),
    };
    let some_row = table(&record_of_interfaces(|_| {})).rows[0].clone();
    let with_rate = |rate: f64| ApiRow {
        mb_per_s: Some(rate),
        mb_per_s_interval: Some([0.9 * rate, 1.1 * rate]),
        ..some_row.clone()
    };
    let plain = [Some(100.0), Some(104.0), Some(100.0), Some(104.0), None];
    let ring = [Some(102.0), Some(102.0), Some(102.0), Some(102.0), Some(400.0)];
    let rows = [rated("pread", &plain, &with_rate(102.0)), rated("ring", &ring, &with_rate(134.0))];
    let (advice, none) = advise(&rows, &[], "");
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(advice[0].interface, "pread");
    let bound = advice[0].others_faster_at_most.unwrap();
    assert!((bound - (134.0 / 102.0 - 1.0)).abs() < 1e-9, "the table has 134 and 102 MB/s: {bound}");
    assert!(advice[0].sentence.contains("cannot be told apart"), "{advice:?}");
    let stated = " faster.";
    let of_work = advice[0].sentence.split(" No other interface is more than ").nth(1).unwrap();
    let of_work = of_work.split(stated).next().unwrap().to_owned();
    let answer = recommend(&[advice[0].clone(), advice[0].clone()], false);
    assert_eq!(of_work, "32 %");
    assert!(answer.ends_with("In each case no other interface is more than 32 % faster."), "{answer}");
}

#[test]
fn nothing_is_recommended_while_a_row_has_no_number() {
    let mut record = record_of_interfaces(|fixtures| fixtures[0].errors = 1);
    let api = table(&record);
    let only =
        "No recommendation, because only ring can be ranked: pread has no comparable rate (I/O errors).";
    let answer = api.answer().unwrap();
    assert_eq!((answer.word, answer.sentence.as_str()), (AnswerWord::CannotTell, only));
    assert!(api.advice.is_empty(), "{:?}", api.advice);
    comparison(&mut record).candidates[2].delivers_bytes = true;
    let known = "No recommendation, because pread has no comparable rate (I/O errors); of the others, blind was the fastest on the mean.";
    assert_eq!(table(&record).answer().unwrap().sentence, known);
}

#[test]
fn the_slowest_interface_is_named_once() {
    let sentence = |record: &Record| table(record).advice[0].sentence.clone();
    let two = sentence(&record_of_interfaces(|_| {}));
    assert!(two.contains(" pread, the slowest, does ") && !two.contains("The slowest is"), "{two}");
    let mut three = record_of_interfaces(|fixtures| fixtures[2].ops = 1_000);
    comparison(&mut three).candidates[2].delivers_bytes = true;
    let three = sentence(&three);
    assert!(three.contains(" pread does ") && three.contains(" The slowest is blind with "), "{three}");
}

/// Two interfaces that alternate in being ten times as slow.
#[cfg(test)]
fn alternating() -> model::record::Record {
    let mut record = record_of_interfaces(|fixtures| fixtures[0].ops = 9_000);
    for run in record.runs.iter_mut().filter(|r| r.start.job == r.start.repeat as usize % 2) {
        run.end.as_mut().unwrap().streams[0].window_ns *= 10;
    }
    record
}

#[test]
fn writes_are_ranked_with_their_final_sync() {
    let late = |ops, sync_ns| Fixture { ops, sync_ns: Some(sync_ns), ..Fixture::honest_write() };
    let record = record_of_interfaces(|fixtures| {
        fixtures[0] = Fixture { name: "pread, reads".into(), ..late(9_000, 9_000_000_000) };
        fixtures[1] = Fixture { name: "ring, reads".into(), ..late(5_000, 1_000_000) };
    });
    let api = table(&record);
    assert!(api.rows[0].mb_per_s > api.rows[1].mb_per_s);
    assert!(api.rows[0].synced_mb_per_s < api.rows[1].synced_mb_per_s);
    assert_eq!(api.advice[0].interface, "ring");
    assert!(api.advice[0].sentence.contains("with the final sync ("), "{}", api.advice[0].sentence);
}

#[test]
fn without_a_recommendation_the_first_line_has_the_reason() {
    let mut shaky = alternating();
    let answer = |record: &Record| table(record).answer().unwrap();
    let shown = answer(&shaky);
    assert_eq!(shown.word, AnswerWord::CannotTell);
    let because = "No recommendation, because ring had the highest mean rate (";
    assert!(shown.sentence.starts_with(because) && shown.sentence.contains("--budget"), "{}", shown.sentence);
    shaky.runs.retain(|run| run.start.repeat == 0);
    let mut planned = |runs: u32| {
        shaky.header.plan.runs = runs;
        answer(&shaky).sentence
    };
    let one_run = planned(1);
    assert!(one_run.contains("no rate has an interval") && one_run.contains("type --runs 3"), "{one_run}");
    // More runs were planned, so another option helps.
    assert!(planned(3).contains("not all runs were complete"));
    shaky.header.plan.budget_ns = Some(55_000_000_000);
    let time_up = answer(&shaky).sentence;
    assert!(
        time_up.ends_with("takes three runs: the time was up too early; type a longer --budget."),
        "{time_up}"
    );
    let by = vec![model::record::Disturbance::StolenCpu { share: 0.2 }];
    shaky.runs[0].disturbed = Some(model::record::Disturbed { attempt: 0, disturbances: by });
    let disturbed = answer(&shaky).sentence;
    assert!(
        disturbed.contains("other load disturbed 1 of ") && disturbed.contains("is quiet"),
        "{disturbed}"
    );
    if let Some(end) = &mut shaky.end {
        end.ending = RunEnding::Interrupted;
    }
    assert!(answer(&shaky).sentence.contains("the measurement was ended too early"));
    shaky.runs.clear();
    let none = answer(&shaky).sentence;
    assert!(none.starts_with("No recommendation, because no"), "{none}");
    comparison(&mut shaky).candidates.clear();
    assert_eq!(answer(&shaky).sentence, "No recommendation, because no run was complete.");
}

#[test]
fn a_row_that_others_withhold_leaves_the_session_its_other_answers() {
    use model::report::Verdict;
    let record = record_of_interfaces(|fixtures| fixtures[1].foreign_ios = 100_000);
    let report = judge(&record, &Judging::default());
    assert_eq!(report.results[1].verdict, Verdict::Invalid, "{}", report.verdict_reason);
    assert!(report.headline.value.is_some());
    assert_eq!(
        (report.verdict, crate::exit_code(&report)),
        (Verdict::Suspect, 0),
        "{}",
        report.verdict_reason
    );
    assert_eq!(report.answer.map(|answer| answer.word), Some(AnswerWord::CannotTell));
}

#[test]
fn rows_that_may_be_much_slower_are_not_in_the_group() {
    let gap = |at_most, is_surely_below| Gap { at_most, is_surely_below };
    // The plainest may be a third slower. The second is surely slower, but only a little. The third is the fastest.
    let group = find_fastest_group(&[gap(0.33, false), gap(0.04, true), gap(0.02, false), gap(0.20, true)]);
    assert_eq!(group, Some(FastestGroup { members: vec![1, 2], at_most: 0.04, first_at_most: 0.04 }));
    // If no bound is good, rows with at most twice the smallest bound form the group, unless the bound exceeds `CANNOT_TELL_ABOVE`.
    let group = find_fastest_group(&[gap(0.45, false), gap(0.30, false), gap(0.55, false)]);
    assert_eq!(group, Some(FastestGroup { members: vec![0, 1], at_most: 0.45, first_at_most: 0.45 }));
    let group = find_fastest_group(&[gap(0.91, false), gap(0.70, false)]);
    assert_eq!(group, Some(FastestGroup { members: vec![1], at_most: 0.70, first_at_most: 0.70 }));
    assert_eq!(find_fastest_group(&[]), None);
    assert_eq!(
        (show_bound(0.04), show_bound(0.0401), show_bound(0.0)),
        ("4 %".into(), "5 %".into(), "1 %".into())
    );
}

/// How the runs of an interface vary around its rate, in addition to the effect of the round. The variation has the
/// same mean for all interfaces.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
enum Vary {
    /// Normal noise with the same deviation for all interfaces.
    Alike,
    /// Normal noise, with four times the deviation for every second interface.
    Unlike,
    /// Two modes, one deviation above and one below the mean, with a little noise.
    TwoModes,
    /// Normal noise, and a tenth of the runs, chosen independently, also lose 30 % of their rate.
    Bursts,
}

#[cfg(test)]
impl Vary {
    const ALL: [Self; 4] = [Self::Alike, Self::Unlike, Self::TwoModes, Self::Bursts];

    fn draw(self, deviation: f64, interface: usize, noise: &mut stats::series::Noise) -> f64 {
        let normal = deviation * noise.normal();
        match self {
            Self::Unlike if !interface.is_multiple_of(2) => 4.0 * normal,
            Self::TwoModes => deviation * normal.signum() + 0.3 * normal,
            Self::Bursts if noise.uniform() < 0.1 => normal - 0.3,
            Self::Alike | Self::Unlike | Self::Bursts => normal,
        }
    }
}

/// Simulates tables of interfaces with known rates. Returns how often the recommended row is further from the best than the advice states,
/// how often any row of the group is further from it than the bound of the group, and how often no row is recommended.
#[cfg(test)]
fn simulate(tables: u64, rounds: usize, truth: &[f64], vary: Vary, deviation: f64) -> [f64; 3] {
    let best = truth.iter().copied().fold(0.0, f64::max);
    let mut counts = [0.0; 3];
    for seed in 0..tables {
        let mut noise = stats::series::Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(7));
        let mut rates: Vec<Vec<Option<f64>>> = vec![Vec::new(); truth.len()];
        for round in 0..rounds {
            // The effect of a round on all interfaces: a drift, and a burst of other traffic in one round of five.
            let burst = if noise.uniform() < 0.2 { -0.3 } else { 0.0 };
            let round_effect = 0.1 * noise.normal() - 0.03 * round as f64 + burst;
            for (at, (row, rate)) in rates.iter_mut().zip(truth).enumerate() {
                row.push(Some(rate * (round_effect + vary.draw(deviation, at, &mut noise)).exp()));
            }
        }
        match find_fastest_group(&comparison::gaps(&rates))
            .filter(|group| group.first_at_most <= CANNOT_TELL_ABOVE)
        {
            Some(group) => {
                let exceeds = |at: &usize, bound: f64| best / truth[*at] - 1.0 > bound + 1e-12;
                counts[0] += f64::from(u8::from(exceeds(&group.members[0], group.first_at_most)));
                counts[1] += f64::from(u8::from(group.members.iter().any(|at| exceeds(at, group.at_most))));
            }
            None => counts[2] += 1.0,
        }
    }
    counts.map(|n| n / tables as f64)
}

#[cfg(test)]
const TRUTHS: [&[f64]; 3] =
    [&[100.0; 6], &[100.0, 101.0, 103.0, 104.0, 98.0, 60.0], &[100.0, 50.0, 120.0, 300.0, 290.0, 20.0]];

#[test]
fn the_stated_bound_holds_in_95_percent_of_tables() {
    for (truth, vary) in TRUTHS.iter().flat_map(|truth| Vary::ALL.map(|vary| (truth, vary))) {
        for deviation in [0.01, 0.03, 0.10] {
            let [wrong, wrong_group, none] = simulate(200, 6, truth, vary, deviation);
            let shown = format!("{truth:?}, {vary:?}, {deviation}: {wrong} {wrong_group} {none}");
            // Three deviations of a share of 5 % in 200 tables are 4.6 %.
            assert!(wrong <= 0.05 && wrong_group <= 0.05 + 0.046, "{shown}");
            assert!(none <= 0.01 || deviation > 0.05 || matches!(vary, Vary::Bursts), "{shown}");
        }
    }
}

#[test]
#[ignore = "long"]
fn recommendations_by_simulation() {
    let all_equal: &[f64] = &[100.0; 40];
    println!(
        "| interfaces | rounds | runs vary | deviation | bound exceeded by the recommended row, % | by any row of the group, % | no recommendation, % |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (truth, rounds) in [(TRUTHS[0], 3), (TRUTHS[0], 7), (TRUTHS[1], 7), (all_equal, 5)] {
        for (vary, deviation) in
            Vary::ALL.iter().flat_map(|vary| [0.03, 0.12].map(|deviation| (*vary, deviation)))
        {
            let shares = simulate(4000, rounds, truth, vary, deviation);
            let [wrong, wrong_group, none] = shares.map(|share| format!("{:.1}", 100.0 * share));
            let same = truth.iter().all(|rate| (rate - truth[0]).abs() < 1e-9);
            let truth = format!("{}, {}", truth.len(), if same { "equal" } else { "unequal" });
            println!("| {truth} | {rounds} | {vary:?} | {deviation} | {wrong} | {wrong_group} | {none} |");
            assert!(
                shares[0] <= 0.055 && shares[1] <= 0.055,
                "{truth} {rounds} {vary:?} {deviation}: {shares:?}"
            );
        }
    }
}

#[test]
fn several_works_are_answered_in_one_line() {
    let advice = |work: &str, interface: &str, also: &[&str]| Advice {
        work: work.into(),
        interface: interface.into(),
        also: also.iter().map(|a| (*a).into()).collect(),
        others_faster_at_most: (!also.is_empty()).then_some(0.034),
        sentence: format!("{work}: use {interface}."),
    };
    let none = |work: &str, why: &str| NoAdvice { work: work.into(), why: why.into() };
    let answer_for = |advice: Vec<Advice>, no_advice: Vec<NoAdvice>| {
        let rows = Vec::new();
        Api { rows, missing: Vec::new(), not_measured: Vec::new(), advice, no_advice }.answer().unwrap()
    };
    let both = answer_for(vec![advice("4K", "pread", &[]), advice("128K", "mmap", &[])], Vec::new());
    assert_eq!(
        (both.word, both.sentence.as_str()),
        (AnswerWord::Fastest, "Use pread for 4K; mmap for 128K.")
    );
    let one = answer_for(vec![advice("4K", "pread", &["read"])], Vec::new());
    assert_eq!((one.word, one.sentence.as_str()), (AnswerWord::Tied, "4K: use pread."));
    let mixed = answer_for(
        vec![advice("4K", "pread", &[]), advice("8K", "pread", &[])],
        vec![none("1M", "of this"), none("2M", "of this")],
    );
    let bounded =
        answer_for(vec![advice("4K", "pread", &["read"]), advice("8K", "mmap", &["pread"])], Vec::new());
    assert!(
        bounded.sentence.ends_with("In each case no other interface is more than 4 % faster."),
        "{bounded:?}"
    );
    let tied = answer_for(vec![advice("4K", "pread", &["read"])], vec![none("1M", "of this")]).sentence;
    assert!(tied.contains("pread for 4K. No other interface is more than 4 % faster. No rec"), "{tied}");
    let writes = recommend(&[advice("4K", "pwrite", &["write"])], true);
    assert!(writes.ends_with("more than 4 % faster, with the final sync of writes."), "{writes}");
    // A row that is alone in its group, but with a wide bound, is not known to be the fastest.
    let wide = Advice { others_faster_at_most: Some(0.37), ..advice("4K", "pread", &[]) };
    assert_eq!(answer_for(vec![wide], Vec::new()).word, AnswerWord::Tied);
    let expected = "Use pread for 4K, 8K. No recommendation for 1M, 2M, because of this.";
    assert_eq!(
        (mixed.word, mixed.sentence.as_str()),
        (AnswerWord::Fastest, expected),
        "a work without advice is no tie"
    );
    let two = answer_for(Vec::new(), vec![none("1M", "of this"), none("2M", "of that")]).sentence;
    assert_eq!(two, "No recommendation for 1M, because of this. No recommendation for 2M, because of that.");
}
