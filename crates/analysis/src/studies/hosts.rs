//! Scaling over hosts: the same work on growing numbers of hosts, the rate that each host adds, and the knee from which more hosts add less.
//!
//! In a closed loop, n hosts with the same depth reach a rate X. By Little's law, the mean latency
//! is n / X times a constant. So power, that is rate divided by latency (Kleinrock 1979, as in
//! `stats::knee`), is X * X / n. If the storage is saturated, X is constant and power falls; if
//! every host adds the same rate, power grows with n. The efficiency is e = (X / n) / (X1 / n1),
//! where X1 is the rate of the fewest hosts, n1. So power is e * e * n, up to a constant.

use super::{Conclusion, Question};
use crate::compare::{PairInTurns, compare_in_turns};
use model::record::Record;
use model::report::{AnswerWord, Report, ReportAnswer};
use model::study::{HostSteps, Scaling, ScalingKnee, ScalingRow, Studied};
use model::units::show_share;

impl Question for HostSteps {
    fn compare(&self, record: &Record, report: &Report, jobs: &[usize]) -> Option<Studied> {
        // The session of a single host has only that host's runs.
        record.fleet.as_ref().map(|_| build_scaling(report, self, jobs).into())
    }
}

impl Conclusion for Scaling {
    /// Returns the answer: the number of hosts beyond which more hosts add more latency than rate.
    fn answer(&self) -> Option<ReportAnswer> {
        let last = self.rows.last()?;
        let Some(knee) = self.knee else {
            let sentence = "the gain of further hosts is unknown, because the rate with the fewest hosts or \
                            all other rates are unknown";
            return Some(ReportAnswer { word: AnswerWord::CannotTell, sentence: format!("{sentence}.") });
        };
        let row = self.rows.iter().find(|row| row.hosts == knee.hosts)?;
        let each = |row: &ScalingRow| {
            let ends = row.efficiency_interval.map_or_else(String::new, |[low, high]| {
                format!(" (95 % interval {} to {})", show_share(low), show_share(high))
            });
            let share = row.efficiency.map_or_else(|| "an unknown share".into(), show_share);
            format!(
                "with {}, the rate per host is {share}{ends} of that with the fewest hosts",
                hosts_label(row.hosts)
            )
        };
        let (word, conclusion) = match (knee.sure, knee.reached) {
            (true, true) => (
                AnswerWord::Knee,
                format!("beyond {}, further hosts add more latency than rate", hosts_label(knee.hosts)),
            ),
            (true, false) => (
                AnswerWord::Scales,
                format!("up to {}, every step added more rate than latency", hosts_label(last.hosts)),
            ),
            (false, _) => (
                AnswerWord::CannotTell,
                "the runs vary too much to show at how many hosts latency begins to grow faster than the rate; use more --runs"
                    .to_owned(),
            ),
        };
        let mut numbers = vec![each(row)];
        if last.hosts != row.hosts {
            numbers.push(each(last));
        }
        Some(ReportAnswer { word, sentence: format!("{conclusion}: {}.", numbers.join("; ")) })
    }
}

/// Builds the table of the study. `jobs` has the job of each result.
fn build_scaling(report: &Report, steps: &HostSteps, jobs: &[usize]) -> Scaling {
    let result_of = |job: usize| jobs.iter().position(|own| *own == job);
    let measured: Vec<(u32, usize)> =
        steps.hosts.iter().enumerate().filter_map(|(job, hosts)| Some((*hosts, result_of(job)?))).collect();
    let Some((fewest, first)) = measured.first().copied() else {
        return Scaling { rows: Vec::new(), knee: None };
    };
    let iops = |result: usize| {
        let result = report.results.get(result).filter(|r| !r.void)?;
        result.total.as_ref().map(|t| t.iops).filter(|iops| *iops > 0.0)
    };
    let names: Vec<String> = measured.iter().map(|(hosts, _)| hosts_label(*hosts)).collect();
    let others = measured.iter().zip(&names).skip(1);
    let pairs: Vec<PairInTurns> = others
        .map(|((_, result), name)| PairInTurns { a: first, b: *result, name, headline: false })
        .collect();
    let mut compared = compare_in_turns(report, &pairs).into_iter();
    let rows = measured.iter().enumerate().map(|(at, (hosts, result))| {
        let more = f64::from(*hosts) / f64::from(fewest.max(1));
        let pair = if at > 0 { compared.next() } else { None };
        let metric = pair.as_ref().and_then(|p| p.metrics.first());
        let speed_up = iops(*result).zip(iops(first)).map(|(this, first)| this / first);
        ScalingRow {
            hosts: *hosts,
            result: *result,
            iops_per_host: iops(*result).map(|iops| iops / f64::from((*hosts).max(1))),
            speed_up,
            efficiency: speed_up.map(|speed_up| speed_up / more),
            efficiency_interval: metric.and_then(|m| m.interval).map(|ends| ends.map(|end| end / more)),
        }
    });
    let rows: Vec<ScalingRow> = rows.collect();
    Scaling { knee: find_knee(&rows), rows }
}

/// The power of a row with its interval.
struct Power {
    hosts: u32,
    value: f64,
    low: f64,
    high: f64,
}

/// Computes the power of the row at an index; `None` without a rate.
fn power(row: &ScalingRow, at: usize) -> Option<Power> {
    let power_of = |efficiency: f64| efficiency * efficiency * f64::from(row.hosts);
    let value = power_of(row.efficiency?);
    let [low, high] = match row.efficiency_interval {
        Some(ends) => ends.map(power_of),
        // The first row is exact: the others are relative to it.
        None if at == 0 => [value; 2],
        None => [0.0, f64::INFINITY],
    };
    Some(Power { hosts: row.hosts, value, low, high })
}

/// Finds the row with the greatest power; `None` with fewer than two rows that have a rate.
fn find_knee(rows: &[ScalingRow]) -> Option<ScalingKnee> {
    let powers: Vec<Power> = rows.iter().enumerate().filter_map(|(at, row)| power(row, at)).collect();
    let best = powers.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
    let most = powers.iter().map(|power| power.hosts).max()?;
    let sure = powers.iter().all(|other| other.hosts == best.hosts || other.high < best.low);
    (powers.len() > 1).then_some(ScalingKnee { hosts: best.hosts, reached: best.hosts < most, sure })
}

/// `1 host`, `4 hosts`.
fn hosts_label(hosts: u32) -> String {
    if hosts == 1 { "1 host".into() } else { format!("{hosts} hosts") }
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};

/// The report of a session that measured several numbers of hosts. A step is a number of hosts and the operations in its window.
#[cfg(test)]
fn judged(steps: &[(u32, u64)]) -> Report {
    let fixture =
        |(hosts, ops): &(u32, u64)| Fixture { name: format!("x on {hosts}"), ops: *ops, ..Fixture::honest() };
    let mut record = together(&steps.iter().map(fixture).collect::<Vec<_>>());
    record.header.plan.study = HostSteps { hosts: steps.iter().map(|s| s.0).collect() }.into();
    let seen = |at: u32| model::fleet::HostRecord { name: format!("h{at}"), ..Default::default() };
    let hosts = (0..steps.last().unwrap().0).map(seen).collect();
    record.fleet = Some(Box::new(model::fleet::Fleet { hosts, ..Default::default() }));
    judge(&record, &Judging::default())
}

#[test]
fn efficiency_is_per_host_and_the_knee_has_the_greatest_power() {
    for (steps, word, hosts) in [
        (&[(1, 5_000), (2, 9_900), (4, 10_000)][..], AnswerWord::Knee, 2),
        (&[(1, 5_000), (2, 9_900), (4, 19_000)], AnswerWord::Scales, 4),
        (&[(1, 10_000), (2, 10_000), (4, 9_000)], AnswerWord::Knee, 1),
        (&[(2, 8_000), (4, 15_000)], AnswerWord::Scales, 4),
    ] {
        let report = judged(steps);
        let answer = report.answer.clone().unwrap();
        let scaling = report.study.hosts().unwrap();
        assert_eq!((answer.word, scaling.knee.map(|k| k.hosts)), (word, Some(hosts)), "{answer:?}");
        let (first, last) = (&scaling.rows[0], scaling.rows.last().unwrap());
        assert_eq!((first.efficiency, first.speed_up), (Some(1.0), Some(1.0)));
        let [(few, least), .., (many, most)] = steps else { panic!() };
        let expected = (*most as f64 / f64::from(*many)) / (*least as f64 / f64::from(*few));
        let [low, high] = last.efficiency_interval.unwrap();
        let got = last.efficiency.unwrap();
        assert!(
            (got / expected - 1.0).abs() < 0.02 && low <= got * 1.000_001 && got <= high * 1.000_001,
            "{got} for {expected}"
        );
    }
}

#[test]
fn one_run_gives_no_knee_and_a_forged_plan_does_not_panic() {
    let row = |hosts, efficiency| ScalingRow {
        hosts,
        result: 0,
        iops_per_host: None,
        speed_up: None,
        efficiency,
        efficiency_interval: None,
    };
    let single = find_knee(&[row(1, Some(1.0)), row(2, Some(0.9))]).unwrap();
    assert!(!single.sure && single.hosts == 2);
    let rows = vec![row(1, Some(1.0)), row(2, None)];
    assert_eq!(find_knee(&rows), None);
    let untold = Scaling { rows, knee: None }.answer();
    assert!(untold.is_some_and(|a| a.word == AnswerWord::CannotTell && a.sentence.contains("is unknown")));
    let mut record = Fixture::honest().record();
    for hosts in [vec![], vec![0], vec![7, 7, 7]] {
        record.header.plan.study = HostSteps { hosts }.into();
        record.fleet = Some(Box::default());
        let answer = judge(&record, &Judging::default()).answer;
        assert!(answer.is_none_or(|a| a.word == AnswerWord::CannotTell));
    }
}
