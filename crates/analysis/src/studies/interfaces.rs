//! The comparison of interfaces: what each made of the same work, and which one to use.
//!
//! For: rows per byte and per MiB of what was asked for, and which findings such a comparison is there to show. Not for: the rows'
//! own findings, which are those of any result, nor for choosing ([`advice`]).

mod advice;

pub(crate) use advice::answer;

use crate::case::{Case, CaseRun, share};
use crate::findings::CaseAnswers;
use model::Known;
use model::api::{Api, ApiRow, Candidate, InterfaceComparison};
use model::check_id::CheckId;
use model::evidence::{Extents, Moment};
use model::finding::{Finding, Outcome, Severity};
use model::job::{Kind, Stream};
use model::not_measured::NotMeasured;
#[cfg(test)]
use model::record::Trial;
use model::record::{Record, WorkerEnd};
use model::report::{Figures, Measured};
use model::spec::limits::MAX_RUNS;
use model::units::MIB;
use stats::interval::{self, Mean};
use std::cmp::Ordering;

/// Findings of these groups below void say what became of the operations on their way, which is what the table shows.
const EXPECTED_GROUPS: [char; 3] = ['A', 'B', 'C'];
/// And these: that the CPU was the limit, that what a buffer holds takes less time than what it has to get, that a program which
/// waits for each operation asks for nothing meanwhile.
const EXPECTED: &[CheckId] = &[CheckId::D06, CheckId::D07, CheckId::E07, CheckId::E09];
/// What is said of them.
pub(super) const SHOWN: &str = "found is what a comparison of interfaces is there to show: what became of the operations on \
                                their way. It is accepted and does not count for the verdict";

/// Where a row's figures come from.
struct Measurements<'a> {
    record: &'a Record,
    answered: &'a [CaseAnswers<'a>],
}

/// A row of the table with what it is ranked by.
struct RatedRow {
    /// Whether its bytes reach the program.
    sees: bool,
    row: ApiRow,
    /// MB/s in each round, the final sync of writes in the time; `None` in rounds that it was not measured in.
    rates: Vec<Option<f64>>,
}

/// The table.
pub(super) fn api(
    record: &Record,
    comparison: &InterfaceComparison,
    answered: &[CaseAnswers],
    results: &[Measured],
    unexpected: &[Finding],
) -> Api {
    let seen = Measurements { record, answered };
    let mut rows = Vec::new();
    for candidate in &comparison.candidates {
        let Some(mut row) = seen.row(candidate, results) else { continue };
        let Some(name) = results.get(row.result).map(|r| &r.name) else { continue };
        let acts = |f: &&Finding| f.outcome == Outcome::Finding && f.severity < Some(Severity::Note);
        let about = unexpected.iter().filter(acts).filter(|f| f.about.contains(name));
        row.findings = about.map(|f| f.id).collect();
        row.findings.dedup();
        let rates = seen.rates(candidate.job);
        rows.push(RatedRow { sees: candidate.sees, row, rates });
    }
    let (advice, no_advice) = advice::advise(&rows, results);
    let not_measured: Vec<NotMeasured> = comparison.missing.iter().cloned().chain(refusals(record)).collect();
    let missing = not_measured.iter().map(ToString::to_string).collect();
    Api { rows: rows.into_iter().map(|rated| rated.row).collect(), missing, not_measured, advice, no_advice }
}

/// What was refused before the first run, and why: without flags that nobody typed.
pub(crate) fn refusals(record: &Record) -> impl Iterator<Item = NotMeasured> {
    record.header.self_test.trials.iter().filter_map(|t| {
        let job = record.header.plan.jobs.get(t.job)?;
        let why = t.moved_bytes.as_ref().err()?;
        Some(NotMeasured { name: job.name.clone(), why: t.refusal.as_ref().unwrap_or(why).clone() })
    })
}

impl Measurements<'_> {
    fn row(&self, candidate: &Candidate, results: &[Measured]) -> Option<ApiRow> {
        let at = self.answered.iter().position(|a| a.case.at == candidate.job)?;
        let (case, result) = (&self.answered.get(at)?.case, results.get(at)?);
        let total = result.total.as_ref().filter(|_| !result.void);
        let figures: Option<&Figures> =
            result.read.as_ref().or(result.write.as_ref()).filter(|_| !result.void);
        let percentile = |p: &str| figures.and_then(|f| f.latency_ns.percentiles.get(p).copied().flatten());
        let issued = case.issued_total().bytes as f64;
        let per = |sum: Option<f64>, unit: f64| sum.filter(|_| issued > 0.0).map(|s| s / (issued / unit));
        let cpu = |i: usize| sum(case, |ran| Some(ran.end.process_ns?[i]));
        let faults = |i: usize| {
            sum(case, |ran| {
                let mine = ran.end.workers.iter().filter(|w: &&WorkerEnd| w.stream == case.index);
                mine.map(|w| Some(w.faults?[i])).sum()
            })
        };
        let writes = case.stream.access.writes();
        let synced = if writes && !result.void { synced(case) } else { None };
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
            run_seconds: total.and_then(|_| of_run(case, |ran| ran.stream.window_ns as f64 / 1e9)),
            run_bytes: total.and_then(|_| of_run(case, moved_bytes)),
            p50_ns: percentile("50"),
            p99_ns: percentile("99"),
            user_ns_per_byte: per(cpu(0), 1.0),
            system_ns_per_byte: per(cpu(1), 1.0),
            calls_per_mib: self.calls_per_mib(candidate.job),
            minor_faults_per_mib: per(faults(0), MIB as f64),
            major_faults_per_mib: per(faults(1), MIB as f64),
            device_bytes_per_byte: device(case, writes, issued),
            coverage: coverage(case),
            planned_coverage: planned_coverage(&case.stream),
            cached_pages_at_start: cached(case),
            stored_before: if case.stream.renews_file() {
                Err("the first write makes the file new".into())
            } else {
                stored(case, Moment::Start, false)
            },
            stored_after: writes.then(|| stored(case, Moment::Synced, true)),
            findings: Vec::new(),
        })
    }

    /// MB/s of a job in each round, by which its interface is ranked.
    fn rates(&self, job: usize) -> Vec<Option<f64>> {
        let Some(case) = self.answered.iter().map(|a| &a.case).find(|case| case.at == job) else {
            return Vec::new();
        };
        let writes = case.stream.access.writes();
        let mut rates = Vec::new();
        for ran in &case.runs {
            let round = ran.run.start.repeat as usize;
            // A forged number of a round is not worth its memory.
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

    fn calls_per_mib(&self, job: usize) -> Known<f64> {
        let mut trials = self.record.header.self_test.trials.iter();
        let trial = trials.find(|t| t.job == job).ok_or("system calls were not counted")?;
        let (moved, calls) = (trial.moved_bytes.clone()?, trial.calls.clone()?);
        if moved == 0 {
            Err("nothing was moved in the trial".into())
        } else {
            Ok(calls as f64 * MIB as f64 / moved as f64)
        }
    }
}

/// A sum over all runs; `None` where one of them does not say, or there is none.
fn sum(case: &Case, of: impl Fn(&CaseRun) -> Option<u64>) -> Option<f64> {
    let all: Option<Vec<f64>> = case.runs.iter().map(|r| of(r).map(|n| n as f64)).collect();
    all.filter(|a| !a.is_empty()).map(|a| a.iter().sum())
}

/// A mean over all runs; `None` where there is none.
fn of_run(case: &Case, of: impl Fn(&CaseRun) -> f64) -> Option<f64> {
    (!case.runs.is_empty()).then(|| case.runs.iter().map(of).sum::<f64>() / case.runs.len() as f64)
}

fn moved_bytes(ran: &CaseRun) -> f64 {
    Kind::MOVING.iter().map(|k| ran.in_window(*k).bytes as f64).sum()
}

/// MB/s over runs with the final sync in the time.
fn synced(case: &Case) -> Option<Mean> {
    interval::mean(&case.runs.iter().map(synced_rate).collect::<Option<Vec<_>>>()?)
}

/// MB/s of a run with the final sync in the time; `None` if the sync failed.
fn synced_rate(ran: &CaseRun) -> Option<f64> {
    rate_over(ran, ran.stream.window_ns as f64 + ran.end.sync_ns? as f64)
}

/// MB/s of a run that took `ns`.
fn rate_over(ran: &CaseRun, ns: f64) -> Option<f64> {
    (ns > 0.0).then(|| moved_bytes(ran) * 1e3 / ns)
}

/// What the topmost devices delivered and took per byte, until the last sync where anything was written.
fn device(case: &Case, writes: bool, issued: f64) -> Known<[f64; 2]> {
    if case.runs.is_empty() || issued <= 0.0 {
        return Err("nothing was moved".into());
    }
    let end = if writes { Moment::Synced } else { Moment::Stop };
    let tops = case.tops()?;
    let mut bytes = [0.0; 2];
    for ran in &case.runs {
        let moved = ran.counted_until(end, &tops)?;
        bytes[0] += moved.read.bytes as f64;
        bytes[1] += moved.write.bytes as f64;
    }
    Ok(bytes.map(|b| b / issued))
}

/// Share of the span that was touched per run: no block comes twice.
fn coverage(case: &Case) -> Option<f64> {
    let span = case.stream.access.span_bytes as f64 * case.runs.len() as f64;
    (span > 0.0).then(|| share(case.issued_total().bytes as f64, span))
}

/// Share of the span that the stop rule lets a run touch.
fn planned_coverage(stream: &Stream) -> Option<f64> {
    let bytes = stream.limit.operations? as f64 * f64::from(stream.access.largest_bytes());
    (stream.access.span_bytes > 0).then(|| share(bytes, stream.access.span_bytes as f64))
}

fn cached(case: &Case) -> Known<u64> {
    let states = case.states(Moment::Start)?;
    states.into_iter().flatten().try_fold(0, |most: u64, s| Ok(most.max(s.pages.clone()?.cached)))
}

/// How the file was stored at a moment of the first run, or of the last.
fn stored(case: &Case, moment: Moment, last: bool) -> Known<Extents> {
    let states = case.states(moment)?;
    let of_run = if last { states.last() } else { states.first() };
    let state = of_run.and_then(|s| s.first()).ok_or("the file was not looked at")?;
    state.extents.clone().unwrap_or_else(|| Err("how the file is stored was not looked at".into()))
}

/// Whether a finding is what the comparison is there to show.
pub(super) fn is_expected(finding: &Finding) -> bool {
    let group = EXPECTED_GROUPS.contains(&finding.id.group());
    finding.outcome == Outcome::Finding
        && finding.severity.cmp(&Some(Severity::Void)) == Ordering::Greater
        && (group || EXPECTED.contains(&finding.id))
}

#[cfg(test)]
use crate::{Judging, fixture, fixture::Fixture, judge};
#[cfg(test)]
use model::study::{Studied, Study};

/// Three ways to read the same blocks: plain, eight at once, and one that sees no byte; and one that was refused.
#[cfg(test)]
fn compared(change: impl Fn(&mut Vec<Fixture>)) -> Record {
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
        sees: *name != "blind",
    };
    let candidates = names.iter().enumerate().map(candidate).collect();
    let missing = vec![NotMeasured { name: "late, reads".into(), why: "it is late".into() }];
    record.header.plan.study = Study::Interfaces(InterfaceComparison { candidates, missing });
    let trial = |job, moved_bytes, calls| Trial { job, moved_bytes, refusal: None, calls };
    record.header.self_test.trials = vec![
        trial(0, Ok(2 << 20), Ok(512)),
        trial(1, Ok(2 << 20), Err("nobody counts".into())),
        trial(2, Ok(2 << 20), Ok(0)),
        trial(3, Err("it does not poll".into()), Err("it was not tried".into())),
    ];
    record.runs.retain(|run| run.start.job != 3);
    record
}

#[cfg(test)]
fn table(record: &Record) -> Api {
    api_of(judge(record, &Judging::default()))
}

#[cfg(test)]
fn api_of(report: model::report::Report) -> Api {
    let Studied::Interfaces(api) = report.study else { panic!("no interfaces: {:?}", report.study) };
    api
}

#[cfg(test)]
fn comparison(record: &mut Record) -> &mut InterfaceComparison {
    let Study::Interfaces(comparison) = &mut record.header.plan.study else { panic!("no interfaces") };
    comparison
}

#[test]
fn each_row_counts_per_byte_what_it_asked_for() {
    let record = compared(|fixtures| fixtures[0].cpu_share = 0.5);
    let rows = table(&record).rows;
    assert_eq!(rows.len(), 3);
    let plain = &rows[0];
    assert_eq!((plain.calls_per_mib.clone(), plain.cached_pages_at_start.clone()), (Ok(256.0), Ok(0)));
    assert_eq!(rows[1].calls_per_mib, Err("nobody counts".into()));
    let [read, written] = plain.device_bytes_per_byte.clone().unwrap();
    assert!((read - 1.0).abs() < 1e-9 && written.abs() < 1e-9);
    let issued: f64 = record.runs_of(0, 0).map(issued_bytes).sum();
    let used: f64 = record.runs_of(0, 0).map(|r| r.end.as_ref().unwrap().process_ns.unwrap()[0] as f64).sum();
    assert!((plain.user_ns_per_byte.unwrap() - used / issued).abs() < 1e-9 && used > 0.0);
    assert!(plain.stored_after.is_none() && plain.synced_mb_per_s.is_none());
    let (seconds, moved) = (plain.run_seconds.unwrap(), plain.run_bytes.unwrap());
    assert!((moved / seconds / 1e6 / plain.mb_per_s.unwrap() - 1.0).abs() < 1e-3, "{plain:?}");
    assert_eq!(plain.minor_faults_per_mib, None, "no worker says");
}

#[cfg(test)]
fn issued_bytes(run: &model::record::Run) -> f64 {
    run.end.as_ref().unwrap().streams[0].issued[&Kind::Read].bytes as f64
}

#[test]
fn what_was_refused_is_named_and_asked_nothing() {
    let report = judge(&compared(|_| {}), &Judging::default());
    assert_eq!(report.results.len(), 3);
    assert_eq!(
        api_of(report.clone()).missing,
        ["late, reads: it is late", "polled, reads: it does not poll"]
    );
    assert_eq!(report.verdict, model::report::Verdict::Valid, "{}", report.verdict_reason);
    let mut refused = compared(|_| {});
    refused.header.self_test.trials[3].refusal = Some("no: none, here".into());
    let polled = NotMeasured { name: "polled, reads".into(), why: "no: none, here".into() };
    assert_eq!(table(&refused).not_measured.last(), Some(&polled), "without flags that nobody typed");
}

#[test]
fn what_each_run_was_to_touch_is_what_its_operations_cover() {
    let mut record = compared(|_| {});
    assert_eq!(table(&record).rows[0].planned_coverage, None, "its time ends it");
    let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
    stream.limit.operations = Some(stream.access.span_bytes / 4096 / 2);
    assert_eq!(table(&record).rows[0].planned_coverage, Some(0.5));
}

#[test]
fn what_became_of_operations_is_expected_and_what_others_did_is_not() {
    let cached = compared(|fixtures| fixtures[1].delivered = 0.0);
    let report = judge(&cached, &Judging::default());
    let a01 = report.findings.iter().find(|f| f.id == CheckId::A01 && f.outcome == Outcome::Finding).unwrap();
    assert!(a01.accepted && report.notes.iter().any(|n| n.contains("A01")));
    let disturbed = compared(|fixtures| fixtures[1].foreign_ios = 3_000);
    let report = judge(&disturbed, &Judging::default());
    let d01 = report.findings.iter().find(|f| f.id == CheckId::D01 && f.outcome == Outcome::Finding).unwrap();
    assert!(!d01.accepted && api_of(report).rows[1].findings.contains(&CheckId::D01));
}

#[test]
fn a_forged_comparison_has_fewer_rows_and_does_not_panic() {
    let mut record = compared(|_| {});
    comparison(&mut record).candidates[0].job = 99;
    record.header.self_test.trials[1].job = 77;
    record.header.self_test.trials[2].moved_bytes = Ok(0);
    let api = table(&record);
    assert_eq!(api.rows.len(), 2);
    assert!(api.rows.iter().all(|r| r.calls_per_mib.is_err()));
}
