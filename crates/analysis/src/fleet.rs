//! Several hosts: adds the answers and figures of each host to the report on their merged runs.
//!
//! 1. [`merge_answers`]: checks that need a host's own kernel ran on each host, and their answers are merged.
//! 2. [`complete_results`]: results get the names and limiters that their hosts found.
//! 3. [`add_host_figures`]: how evenly the hosts contributed, how they started, and which host was lost.

use crate::case::Case;
use crate::checks::{self, Answer, Check, Detail, Evidence, list_hosts};
use model::Known;
use model::finding::CheckId;
use model::fleet::{
    AnswerOfHosts, Fairness, Fleet, FleetFigures, HostFigures, HostGroup, HostRate, HostRecord, HostResult,
    StartFigures,
};
use model::record::Record;
use model::report::{Limiter, Measured, Report, Verdict};
use model::units::{show_counted, show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// Checks of the number of runs, of their agreement, and of the operations beyond a percentile. Like the checks of [`GROUP_OF_HOSTS`],
/// they run once on the merged runs. All other checks need the counters of a host's kernel and run on each host.
const ON_MERGED_RUNS: [CheckId; 3] = [CheckId::E05, CheckId::E06, CheckId::E08];

/// The group of checks about hosts.
const GROUP_OF_HOSTS: char = 'F';

/// Below this share of the mean rate of the other hosts, a host is a straggler.
const STRAGGLES_BELOW: f64 = 0.8;

/// Returns the answers of all checks about a result of several hosts: some from the merged runs (`on_merged`), the others from
/// the answers of each host.
pub(crate) fn merge_answers(
    case: &Case,
    on_merged: Vec<(&'static Check, Known<Answer>)>,
) -> Vec<(&'static Check, Known<Answer>)> {
    let Some(fleet) = &case.record.fleet else { return on_merged };
    let is_merged = |id: CheckId| ON_MERGED_RUNS.contains(&id) || id.group() == GROUP_OF_HOSTS;
    let merged = on_merged.into_iter().filter(|(check, _)| is_merged(check.id));
    let on_hosts = checks::all().filter(|check| !is_merged(check.id));
    let on_hosts = on_hosts.filter_map(|check| Some((check, merge_answer(fleet, check.id, &case.name)?)));
    merged.chain(on_hosts).collect()
}

/// Returns the answer of a check over all hosts: the worst finding of any host, otherwise why a host could not do the
/// check, otherwise that it holds. `None` if no host ran the check.
fn merge_answer(fleet: &Fleet, id: CheckId, about: &str) -> Option<Known<Answer>> {
    let on_hosts = fleet.checks.iter().find(|one| one.id == id && one.about == about)?;
    if let Some(AnswerOfHosts { hosts, checked: worst }) = &on_hosts.found {
        return Some(Ok(Answer::Finding(Detail {
            severity: worst.severity?,
            sentence: format!("{}: {}", shorten_names(fleet, hosts), worst.sentence),
            fix: (!worst.fix.is_empty()).then(|| worst.fix.clone()),
            evidence: worst.evidence.clone(),
            renames: None,
        })));
    }
    if let Some(AnswerOfHosts { hosts, checked: first }) = &on_hosts.not_checked {
        return Some(Err(format!("{}: {}", shorten_names(fleet, hosts), first.sentence)));
    }
    (on_hosts.held > 0)
        .then(|| Ok(Answer::Holds("it holds on every host that ran the check".into(), Evidence::new())))
}

/// Returns the names of these hosts, shortened.
fn shorten_names(fleet: &Fleet, which: &HostGroup) -> String {
    let name = |rank: &u32| fleet.hosts.get(*rank as usize).map(|h| h.name.as_str());
    list_hosts(&which.first.iter().filter_map(name).collect::<Vec<_>>(), which.count as usize)
}

/// Gives results the names and limiters that their hosts found. Called before the verdict is decided.
pub(crate) fn complete_results(record: &Record, mut results: Vec<Measured>) -> Vec<Measured> {
    let Some(fleet) = &record.fleet else { return results };
    for result in &mut results {
        let host_result = |host: &'_ HostRecord| host.results.iter().find(|r| r.name == result.name).cloned();
        let seen: Vec<HostResult> = fleet.hosts.iter().filter_map(host_result).collect();
        if let Some(other) = seen.iter().find_map(|r| r.renamed.as_ref()) {
            (result.true_name, result.renamed) = (other.clone(), true);
        }
        // The number of hosts in the name includes a lost host. In a study of growing numbers of hosts, only hosts with
        // this result count.
        let hosts = if record.header.plan.study.hosts().is_some() { seen.len() } else { fleet.hosts.len() };
        let word = if hosts == 1 { "host" } else { "hosts" };
        result.true_name = format!("{}, {hosts} {word}", result.true_name);
        if let Some(limiter) = find_limiter(fleet, &result.name) {
            result.limiter = limiter;
        }
    }
    results
}

/// Finds the limiter that the most hosts have, with the sentence of the slowest of these hosts.
fn find_limiter(fleet: &Fleet, result: &str) -> Option<Limiter> {
    let limited = || fleet.limited.iter().filter(|l| l.result == result);
    let most = limited().max_by_key(|l| l.hosts)?;
    let (all, slowest) =
        (limited().map(|l| l.hosts).sum::<u32>(), fleet.hosts.get(most.slowest.rank as usize)?);
    let sentence = format!(
        "{} of {}; {}: {}",
        most.hosts,
        show_counted(all.into(), "host"),
        slowest.name,
        most.limiter.sentence
    );
    Some(Limiter { sentence, ..most.limiter.clone() })
}

/// Adds the figures of the hosts to a report, and makes it INVALID if a host was lost.
pub(crate) fn add_host_figures(record: &Record, mut report: Report) -> Report {
    let Some(fleet) = &record.fleet else { return report };
    let results = || report.results.iter().map(|r| r.name.as_str());
    let sums = rate_sums(fleet);
    let figures = FleetFigures {
        hosts: fleet.hosts.iter().enumerate().map(|(rank, h)| host_figures(&sums, rank, h)).collect(),
        fairness: results().filter_map(|name| fairness(fleet, name)).collect(),
        start: start_figures(fleet),
        differences: fleet.differences.clone(),
        lost: fleet.lost.clone(),
    };
    if let Some(lost) = &fleet.lost {
        report.verdict = Verdict::Invalid;
        report.verdict_by = None;
        report.verdict_reason = format!(
            "{} was lost {:.1} s after the start: it {}. The run ended early, so the results do not count for {} hosts.",
            lost.host,
            lost.at_s,
            lost.why,
            fleet.hosts.len()
        );
        (report.headline.value, report.headline.interval) = (None, None);
    }
    report.fleet = Some(figures);
    report
}

/// Returns the sum of the rates of all hosts, by name of the result.
fn rate_sums(fleet: &Fleet) -> BTreeMap<&str, f64> {
    let mut sums = BTreeMap::new();
    for result in fleet.hosts.iter().flat_map(|h| &h.results) {
        *sums.entry(result.name.as_str()).or_default() += result.iops.unwrap_or(0.0);
    }
    sums
}

fn host_figures(sums: &BTreeMap<&str, f64>, rank: usize, seen: &HostRecord) -> HostFigures {
    let host_rate = |r: &HostResult| {
        let sum = sums.get(r.name.as_str()).copied().unwrap_or(0.0);
        let at = |i: usize| r.latency_ns.iter().map(|(kind, both)| (kind.word().into(), both[i])).collect();
        HostRate {
            name: r.name.clone(),
            verdict: r.verdict,
            iops: r.iops,
            mb_per_s: r.mb_per_s,
            share: r.iops.filter(|_| sum > 0.0).map(|iops| iops / sum),
            p50_ns: at(0),
            p99_ns: at(1),
            cpu_ns_per_op: r.cpu_ns_per_op,
            limiter: r.limiter.clone(),
        }
    };
    HostFigures {
        name: seen.name.clone(),
        rank: rank as u32,
        session: seen.session.clone(),
        verdict: seen.verdict,
        reason: seen.reason.clone(),
        findings: seen.findings,
        results: seen.results.iter().map(host_rate).collect(),
    }
}

/// Returns how evenly the rate of a result is divided among the hosts; `None` with fewer than two rates, or
/// if all are 0.
fn fairness(fleet: &Fleet, name: &str) -> Option<Fairness> {
    let rate = |host: &HostRecord| host.results.iter().find(|r| r.name == name).and_then(|r| r.iops);
    let rates: Vec<(&str, f64)> =
        fleet.hosts.iter().filter_map(|host| Some((host.name.as_str(), rate(host)?))).collect();
    let (slowest, least) = *rates.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let count = rates.len() as f64;
    let sum: f64 = rates.iter().map(|(_, rate)| rate).sum();
    if rates.len() < 2 || sum <= 0.0 {
        return None;
    }
    let others = (sum - least) / (count - 1.0);
    let straggles = least < STRAGGLES_BELOW * others;
    let sentence = if straggles {
        format!(
            "{slowest} is far slower than the rest: {} IOPS against a mean of {} IOPS ({}). {}",
            show_rate(least),
            show_rate(others),
            show_share(least / others),
            slowest_limiter_sentence(fleet, name)
        )
    } else {
        String::new()
    };
    Some(Fairness {
        name: name.to_owned(),
        slowest_share_of_mean: least / (sum / count),
        straggler: straggles.then(|| slowest.to_owned()),
        sentence,
    })
}

/// Returns the sentence of the slowest host's limiter.
fn slowest_limiter_sentence<'f>(fleet: &'f Fleet, result: &str) -> &'f str {
    let limited = fleet.limited.iter().filter(|l| l.result == result);
    limited.min_by(|a, b| a.by_slowness(b)).map_or("", |l| &l.limiter.sentence)
}

fn start_figures(fleet: &Fleet) -> Option<StartFigures> {
    let mut spreads: Vec<u64> = fleet.runs.iter().filter_map(|r| r.spread_ns).collect();
    spreads.sort_unstable();
    let beyond_clock_error =
        |r: &&model::fleet::RunOnHosts| r.spread_ns.zip(r.clock_error_ns).is_some_and(|(s, e)| s > e);
    let common = fleet.runs.iter().filter(|r| r.longest_ns > 0);
    Some(StartFigures {
        runs: spreads.len() as u32,
        spread_ns: *spreads.get(spreads.len() / 2)?,
        spread_most_ns: *spreads.last()?,
        clock_error_ns: fleet.runs.iter().filter_map(|r| r.clock_error_ns).max()?,
        beyond_clock_error: fleet.runs.iter().filter(beyond_clock_error).count() as u32,
        common_share: common.map(|r| r.common_ns as f64 / r.longest_ns as f64).fold(1.0, f64::min),
    })
}

/// Notes how simultaneously the hosts began their runs.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let Some(fleet) = &record.fleet else { return Vec::new() };
    let start = start_figures(fleet).map(|s| {
        let runs = if s.runs == 1 { "run" } else { "runs" };
        let late = match s.beyond_clock_error {
            0 => String::new(),
            n => format!("; in {n} of {} {runs} the last host began later than clock errors explain", s.runs),
        };
        format!(
            "the first operations of all hosts were within {} (median of {} {runs}, at most {}); their clocks are accurate to {}{late}",
            show_ns(s.spread_ns as f64),
            s.runs,
            show_ns(s.spread_most_ns as f64),
            show_ns(s.clock_error_ns as f64)
        )
    });
    start.into_iter().collect()
}

#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};
#[cfg(test)]
use model::finding::Checked;
#[cfg(test)]
use model::fleet::{CheckedOnHosts, LimitedHosts, Lost, RunOnHosts, SlowestHost};
#[cfg(test)]
use model::job::Kind;

/// Two hosts with merged runs. `other` is the result of the second host, and `checks` are its answers that differ from those of the first.
#[cfg(test)]
fn two(other: HostResult, checks: &[Checked]) -> Record {
    let mut record = Fixture::honest().record();
    let report = judge(&record, &Judging::default());
    let host = |(rank, name): (u32, &str), result: HostResult| HostRecord {
        rank,
        name: name.into(),
        verdict: Some(result.verdict),
        results: vec![result],
        ..HostRecord::default()
    };
    let mut on_hosts = CheckedOnHosts::from_host(0, &report.checks);
    // The second host was asked the same checks, and gave the same answers except for `checks`.
    let same = report.checks.iter().filter(|f| checks.iter().all(|other| other.id != f.id));
    let second_findings: Vec<Checked> = same.cloned().chain(checks.iter().cloned()).collect();
    CheckedOnHosts::add(&mut on_hosts, CheckedOnHosts::from_host(1, &second_findings));
    let mut limited = Vec::new();
    for (rank, result) in [(0, &host_result_with(10_000.0)), (1, &other)] {
        let sentence = "A limit binds.".into();
        let limiter = Limiter { name: result.limiter.clone(), sentence, evidence: BTreeMap::new() };
        let slowest = SlowestHost { rank, iops: result.iops.unwrap_or(0.0) };
        LimitedHosts::add(
            &mut limited,
            [LimitedHosts { result: result.name.clone(), hosts: 1, slowest, limiter }],
        );
    }
    let hosts = vec![host((0, "a"), host_result_with(10_000.0)), host((1, "b"), other)];
    let run = RunOnHosts {
        spread_ns: Some(900),
        clock_error_ns: Some(500),
        common_ns: 9,
        longest_ns: 10,
        ..RunOnHosts::default()
    };
    record.runs.iter_mut().for_each(|run| run.evidence.clear());
    record.fleet =
        Some(Box::new(Fleet { hosts, checks: on_hosts, limited, runs: vec![run], ..Fleet::default() }));
    record
}

#[cfg(test)]
fn host_result_with(iops: f64) -> HostResult {
    let result = judge(&Fixture::honest().record(), &Judging::default()).results.remove(0);
    HostResult {
        name: result.name,
        renamed: None,
        verdict: Verdict::Valid,
        iops: Some(iops),
        mb_per_s: Some(iops / 244.0),
        latency_ns: vec![(Kind::Read, [Some(100_000), Some(900_000)])],
        cpu_ns_per_op: Some(5_000.0),
        limiter: "throttle".into(),
    }
}

#[test]
fn answers_of_hosts_are_merged_and_a_straggler_is_named() {
    let report = judge(&two(host_result_with(3_000.0), &[]), &Judging::default());
    assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
    assert!(report.headline.name.ends_with(", 2 hosts") && report.headline.value.is_some());
    let fleet = report.fleet.unwrap();
    let fair = &fleet.fairness[0];
    assert_eq!(fair.straggler.as_deref(), Some("b"));
    assert!(
        (fair.slowest_share_of_mean - 3_000.0 / 6_500.0).abs() < 1e-9
            && fair.sentence.contains("A limit binds.")
    );
    let share: Vec<_> = fleet.hosts.iter().map(|h| h.results[0].share.unwrap()).collect();
    assert!((share[0] - 10.0 / 13.0).abs() < 1e-9 && (share[1] - 3.0 / 13.0).abs() < 1e-9);
    let start = fleet.start.unwrap();
    assert_eq!((start.spread_ns, start.clock_error_ns, start.beyond_clock_error), (900, 500, 1));
    assert!(report.notes.iter().any(|n| n.contains("first operations of all hosts")));
    let even = judge(&two(host_result_with(9_500.0), &[]), &Judging::default());
    assert_eq!(even.fleet.unwrap().fairness[0].straggler, None);
}

#[test]
fn the_worst_finding_of_any_host_counts_and_names_the_host() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let report_b = judge(&cached.record(), &Judging::default());
    let about = host_result_with(1.0).name;
    let mut found: Vec<Checked> = report_b.checks.into_iter().filter(|f| f.id == CheckId::A01).collect();
    found.iter_mut().for_each(|f| f.about = vec![about.clone()]);
    let result =
        HostResult { renamed: Some("4K random read, page cache".into()), ..host_result_with(10_000.0) };
    let report = judge(&two(result, &found), &Judging::default());
    assert_eq!((report.verdict, report.verdict_by), (Verdict::Suspect, Some(CheckId::A01)));
    let finding = report.checks.iter().find(|f| f.id == CheckId::A01).unwrap();
    assert!(finding.sentence.starts_with("b: "), "{}", finding.sentence);
    assert_eq!(report.headline.name, "4K random read, page cache, 2 hosts");
}

#[test]
fn a_lost_host_invalidates_the_number() {
    let mut record = two(host_result_with(10_000.0), &[]);
    let lost = Lost { host: "b".into(), why: "has been silent for 3.0 s".into(), at_s: 7.25 };
    record.fleet.as_mut().unwrap().lost = Some(lost);
    let report = judge(&record, &Judging::default());
    assert_eq!((report.verdict, report.headline.value), (Verdict::Invalid, None));
    assert!(
        report.verdict_reason.starts_with("b was lost 7.2 s after the start: it has been silent for 3.0 s."),
        "{}",
        report.verdict_reason
    );
    assert_ne!(crate::exit_code(&report), 0);
}
