//! Figures: rates, latencies and device counts of a case over its complete runs.
//!
//! For: operations over time per run, and their geometric mean over runs; histograms merged, never averaged. Not for:
//! whether any of it is true.

use crate::case::{Case, CaseRun};
use crate::host;
use crate::run_series::series;
use crate::windows::too_little;
use model::histogram::Histogram;
use model::job::Kind;
use model::record::disturbed::Disturbed;
use model::record::{KindEnd, WorkerEnd};
use model::report::{Cost, DeviceFigures, DisturbedRun, Figures, FinalSync, Latency, Rates, RunFigures};
use stats::batch_means::half_width;
use stats::interval::{self, Mean};
use stats::median_interval;
use stats::sample::mean;
use std::collections::BTreeMap;

/// Percentiles by the names of the contract.
pub(crate) const PERCENTILES: &[(&str, f64)] =
    &[("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];
const MB: f64 = 1e6;
/// Lateness of the same rank above which a percentile of an open loop says more about us than about the storage.
pub(crate) const LATE_SHARE: f64 = 0.1;
/// What counts as an operation in the rate of a result: syncs are the price of the writes, and shown apart.
const COUNTED: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];

/// All figures of a case.
pub(crate) struct Figured {
    pub(crate) read: Option<Figures>,
    pub(crate) write: Option<Figures>,
    pub(crate) trim: Option<Figures>,
    pub(crate) sync: Option<Figures>,
    pub(crate) total: Option<Rates>,
    pub(crate) with_final_sync: Option<FinalSync>,
    pub(crate) cost: Option<Cost>,
    pub(crate) runs: Vec<RunFigures>,
    pub(crate) way: Vec<RunFigures>,
    pub(crate) disturbed: Vec<DisturbedRun>,
}

/// Computes them. What did not happen is `None`, never zero.
pub(crate) fn figures(case: &Case) -> Figured {
    Figured {
        read: of_kind(case, Kind::Read),
        write: of_kind(case, Kind::Write),
        trim: of_kind(case, Kind::Trim),
        sync: of_kind(case, Kind::Sync),
        with_final_sync: with_final_sync(case),
        cost: cost(case),
        total: rates(case, &COUNTED),
        runs: case.runs.iter().filter_map(|r| of_run(case, r)).collect(),
        way: case.way.iter().filter_map(|r| of_run(case, r)).collect(),
        disturbed: disturbed(case),
    }
}

/// Attempts that others disturbed, and those that do not count because of them.
fn disturbed(case: &Case) -> Vec<DisturbedRun> {
    let counting = case.runs.iter().filter(|r| r.run.disturbed.is_some()).map(|r| (true, r));
    let mut all: Vec<(bool, &CaseRun)> = counting.chain(case.aside.iter().map(|r| (false, r))).collect();
    all.sort_by_key(|(_, ran)| ran.run.start.at_ns);
    let of = |(counts, ran): (bool, &CaseRun)| {
        let [iops, bytes] = per_second(ran, &COUNTED)?;
        let by = ran.run.disturbed.as_ref();
        Some(DisturbedRun {
            run: ran.run.start.repeat,
            attempt: ran.run.start.attempt,
            counts,
            why: by.map(Disturbed::describe),
            by: by.map_or_else(Vec::new, |d| d.by.clone()),
            iops,
            mb_per_s: bytes / MB,
        })
    };
    all.into_iter().filter_map(of).collect()
}

fn of_kind(case: &Case, kind: Kind) -> Option<Figures> {
    let mut latency = latency(&case.latency(kind)?)?;
    let open = case.open_loop(kind);
    if let Some(open) = &open {
        withhold_late(&mut latency.percentiles, &open.lateness);
    }
    let rates = rates(case, &[kind])?;
    let amount = case.in_windows(kind);
    Some(Figures {
        ops: amount.ops,
        bytes: amount.bytes,
        iops: rates.iops,
        mb_per_s: rates.mb_per_s,
        mib_per_s: rates.mib_per_s,
        iops_interval: rates.iops_interval,
        mb_per_s_interval: rates.mb_per_s_interval,
        depth_mean: case.depth_mean().ok()?,
        latency_ns: latency,
        submit_ns: case.submit().as_ref().and_then(self::latency),
        service_ns: open.as_ref().and_then(|o| self::latency(&o.service)),
        lateness_ns: open.as_ref().and_then(|o| self::latency(&o.lateness)),
    })
}

/// Takes away the percentiles of an open loop that are mostly our own lateness.
fn withhold_late(percentiles: &mut BTreeMap<String, Option<u64>>, lateness: &Histogram) {
    for (name, q) in PERCENTILES {
        if let Some(value) = percentiles.get_mut(*name)
            && value.is_some_and(|v| is_late(v, lateness, *q))
        {
            *value = None;
        }
    }
}

/// Whether the lateness of the same rank is too much of a percentile to call that the storage's.
pub(crate) fn is_late(value_ns: u64, lateness: &Histogram, q: f64) -> bool {
    lateness.quantile_ns(q).is_some_and(|late| late as f64 > LATE_SHARE * value_ns as f64)
}

/// Rates with the final sync in the time. `None` where nothing is written, or a run has no such sync.
fn with_final_sync(case: &Case) -> Option<FinalSync> {
    if !case.stream.access.writes() || case.runs.is_empty() {
        return None;
    }
    let syncs: Vec<f64> =
        case.runs.iter().map(|r| r.end.sync_ns.map(|ns| ns as f64)).collect::<Option<_>>()?;
    let per_run = |i: usize| -> Option<f64> {
        let rates = case.runs.iter().zip(&syncs).filter_map(|(ran, sync)| {
            let window = ran.stream.window_ns as f64;
            Some(per_second(ran, &COUNTED)?[i] * window / (window + sync))
        });
        interval::mean(&rates.collect::<Vec<_>>()).map(|m| m.value)
    };
    let (iops, bytes) = (per_run(0)?, per_run(1)?);
    let sync_ns = syncs.iter().sum::<f64>() / syncs.len() as f64;
    (iops > 0.0).then_some(FinalSync { sync_ns, iops, mb_per_s: bytes / MB })
}

/// What an operation cost the workers of the stream.
fn cost(case: &Case) -> Option<Cost> {
    let workers = || case.runs.iter().flat_map(|r| &r.end.workers).filter(|w| w.stream == case.index);
    let ops: f64 = case.runs.iter().map(CaseRun::issued_by_stream).sum();
    let cpu: f64 = workers().map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    if ops <= 0.0 || cpu <= 0.0 {
        return None;
    }
    let per_op = |of: &dyn Fn(&WorkerEnd) -> f64| workers().map(of).sum::<f64>() / ops;
    let counted: Result<Vec<[u64; 2]>, &String> = workers().map(|w| w.counted.as_ref().copied()).collect();
    let sum = |i: usize| counted.as_ref().ok().map(|c| c.iter().map(|c| c[i] as f64).sum::<f64>() / ops);
    Some(Cost {
        user_ns: per_op(&|w| w.user_ns as f64),
        system_ns: per_op(&|w| w.system_ns as f64),
        switches: per_op(&|w| w.switches[0] as f64 + w.switches[1] as f64),
        cycles: sum(0),
        instructions: sum(1),
        not_counted: counted.as_ref().err().map(|why| (*why).clone()),
        tool_ns: case.ceiling().and_then(|c| c.loop_ns.clone()).ok(),
    })
}

fn latency(whole: &Histogram) -> Option<Latency> {
    Some(Latency {
        min: whole.min_ns()?,
        mean: whole.mean_ns()?,
        max: whole.max_ns()?,
        percentiles: percentiles(whole),
    })
}

/// Percentiles by the names of the contract, where enough operations lie beyond.
fn percentiles(of: &Histogram) -> BTreeMap<String, Option<u64>> {
    PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), of.supported_quantile_ns(*q))).collect()
}

/// Rates of some kinds together. `None` where no operation completed in any window.
fn rates(case: &Case, kinds: &[Kind]) -> Option<Rates> {
    let per_run: Vec<[f64; 2]> = case.runs.iter().filter_map(|r| per_second(r, kinds)).collect();
    let mean = |i: usize| interval::mean(&per_run.iter().map(|r| r[i]).collect::<Vec<_>>());
    let (ops, bytes) = (mean(0)?, mean(1)?);
    let enough = too_little(case).is_none();
    let given = |m: Mean| m.interval.filter(|_| enough);
    let mb = |m: Mean| given(m).map(|i| i.map(|v| v / MB));
    (ops.value > 0.0).then(|| Rates {
        iops: ops.value,
        mb_per_s: bytes.value / MB,
        mib_per_s: bytes.value / model::units::MIB as f64,
        iops_interval: given(ops),
        mb_per_s_interval: mb(bytes),
        iops_median: median_interval::of_runs(&per_run.iter().map(|r| r[0]).collect::<Vec<_>>()),
    })
}

/// Operations per second of a run; `None` where it had no window.
pub(crate) fn iops(ran: &CaseRun) -> Option<f64> {
    per_second(ran, &COUNTED).map(|[ops, _]| ops)
}

/// Operations and bytes per second of a run; `None` where it had no window.
fn per_second(ran: &CaseRun, kinds: &[Kind]) -> Option<[f64; 2]> {
    let seconds = ran.rate_ns() as f64 / 1e9;
    let sum = |of: fn(&crate::case::Amount) -> u64| {
        kinds.iter().map(|k| of(&ran.for_rate(*k)) as f64).sum::<f64>() / seconds
    };
    (seconds > 0.0).then(|| [sum(|a| a.ops), sum(|a| a.bytes)])
}

fn of_run(case: &Case, ran: &CaseRun) -> Option<RunFigures> {
    let [iops, bytes] = per_second(ran, &COUNTED)?;
    Some(RunFigures {
        run: ran.run.start.repeat,
        started_s: Some(ran.run.start.at_ns as f64 / 1e9),
        iops,
        mb_per_s: bytes / MB,
        depth_mean: ran.stream.depth_ns as f64 / ran.stream.window_ns as f64,
        device: of_device(case, ran),
        iops_within: within(ran, iops),
        percentiles_ns: ran.stream.kinds.iter().map(|(k, end)| (k.word().into(), of_end(end))).collect(),
        cpu_ns_per_op: cpu_per_op(case, ran),
        host: host::host_figures(case, ran),
        // Given where a report has room for them.
        tails_ns: BTreeMap::new(),
    })
}

/// Percentiles of a run, without those that are mostly our own lateness.
fn of_end(end: &KindEnd) -> BTreeMap<String, Option<u64>> {
    let mut all = percentiles(&end.latency);
    if let Some(open) = &end.open {
        withhold_late(&mut all, &open.lateness);
    }
    all
}

fn cpu_per_op(case: &Case, ran: &CaseRun) -> Option<f64> {
    let workers = ran.end.workers.iter().filter(|w| w.stream == case.index);
    let cpu: f64 = workers.map(|w| w.user_ns as f64 + w.system_ns as f64).sum();
    let ops = ran.issued_by_stream();
    (ops > 0.0 && cpu > 0.0).then(|| cpu / ops)
}

/// The interval of a run's rate from what varies within the run.
fn within(ran: &CaseRun, iops: f64) -> Option<[f64; 2]> {
    let rates = series(ran).ok()?.rates;
    // Of the run's own figure: a course may lack what completed at its edges.
    let share = half_width(&rates)? / mean(&rates);
    let interval = [iops * (1.0 - share).max(0.0), iops * (1.0 + share)];
    interval.iter().all(|v| v.is_finite()).then_some(interval)
}

fn of_device(case: &Case, ran: &CaseRun) -> Option<DeviceFigures> {
    let tops = case.has_storage().then(|| case.tops().ok())??;
    let delta = ran.counted(&tops).ok()?;
    let total = delta.total();
    // The device's counters are those of all streams that share it, and so is what was issued.
    let issued = case.with_sharers().issued_in(ran);
    Some(DeviceFigures {
        issued_ops: issued.iter().fold(0, |sum, a| sum.saturating_add(a.ops)),
        issued_bytes: issued.iter().fold(0, |sum, a| sum.saturating_add(a.bytes)),
        ios: total.ios,
        bytes: total.bytes,
        depth_mean: delta.queue_ms as f64 * 1e6 / ran.active_ns().ok()? as f64,
        busy_ms: total.ms,
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn figures_from(fixture: &Fixture) -> Figured {
    figures(&crate::case::cases(&fixture.record())[0])
}

#[test]
fn a_rate_is_operations_over_time_and_has_an_interval_from_three_runs() {
    let f = figures_from(&Fixture::honest());
    let total = f.total.unwrap();
    assert!((total.iops - 10_000.0).abs() < 1e-6 && (total.mb_per_s - 40.96).abs() < 1e-9);
    assert!(total.iops_interval.is_some() && f.write.is_none());
    let read = f.read.unwrap();
    assert_eq!((read.ops, read.bytes), (50_000, 50_000 * 4096));
    assert!((read.depth_mean - 31.5).abs() < 0.01);
    assert_eq!(figures_from(&Fixture { runs: 2, ..Fixture::honest() }).total.unwrap().iops_interval, None);
}

#[test]
fn percentiles_of_few_operations_are_withheld() {
    let p = figures_from(&Fixture { ops: 200, runs: 1, ..Fixture::honest() })
        .read
        .unwrap()
        .latency_ns
        .percentiles;
    assert!(p["90"].is_some() && p["99"].is_none() && p["99.99"].is_none());
    assert_eq!(p.len(), PERCENTILES.len());
}

#[test]
fn the_device_stands_beside_what_was_issued() {
    let device = figures_from(&Fixture::honest()).runs[0].device.unwrap();
    assert_eq!((device.issued_ops, device.ios), (11_000, 11_000));
    assert!(device.depth_mean > 25.0 && device.depth_mean < 33.0, "{}", device.depth_mean);
    assert_eq!(figures_from(&Fixture { stat_unreadable: true, ..Fixture::honest() }).runs[0].device, None);
}

#[test]
fn operations_without_data_have_a_rate_and_no_bytes() {
    let fixture = Fixture { engine: "fallocate", ..Fixture::honest_sequential() };
    let f = figures_from(&fixture);
    let total = f.total.unwrap();
    assert!(total.iops > 0.0 && total.iops_interval.is_some());
    assert_eq!((total.mb_per_s, total.mb_per_s_interval, f.read.unwrap().bytes), (0.0, None, 0));
    let record = fixture.record();
    let case = &crate::case::cases(&record)[0];
    assert_eq!(case.issued(Kind::Read), crate::case::Amount::default(), "no device is asked for them");
    let report = crate::judge(&record, &crate::Judging::default());
    assert_eq!((report.headline.unit.as_str(), report.verdict), ("IOPS", model::report::Verdict::Valid));
    assert_eq!(report.limiter.name, "file system");
}

#[test]
fn nothing_completed_is_none_and_not_zero() {
    let f = figures_from(&Fixture { ops: 0, ..Fixture::honest() });
    assert!(f.total.is_none() && f.read.is_none());
    assert!(figures_from(&Fixture { runs: 0, ..Fixture::honest() }).runs.is_empty());
}
