//! Figures: rates, latencies and device counts of a case over its complete runs.
//!
//! For: operations over time per run, and their geometric mean over runs; histograms merged, never averaged. Not for:
//! whether any of it is true.

use crate::case::{Case, Ran};
use crate::interval::{self, Mean};
use model::histogram::Histogram;
use model::job::Kind;
use model::report::{DeviceFigures, Figures, Latency, Rates, RunFigures};

/// Percentiles by the names of the contract.
const PERCENTILES: &[(&str, f64)] =
    &[("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];
const MB: f64 = 1e6;
/// What counts as an operation in the rate of a result: syncs are the price of the writes, and shown apart.
const COUNTED: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];

/// All figures of a case.
pub(crate) struct Figured {
    pub(crate) read: Option<Figures>,
    pub(crate) write: Option<Figures>,
    pub(crate) total: Option<Rates>,
    pub(crate) runs: Vec<RunFigures>,
}

/// Computes them. What did not happen is `None`, never zero.
pub(crate) fn figures(case: &Case) -> Figured {
    Figured {
        read: of_kind(case, Kind::Read),
        write: of_kind(case, Kind::Write),
        total: rates(case, &COUNTED),
        runs: case.runs.iter().filter_map(|r| of_run(case, r)).collect(),
    }
}

fn of_kind(case: &Case, kind: Kind) -> Option<Figures> {
    let latency = latency(&case.latency(kind)?)?;
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
        submit_ns: None,
        service_ns: None,
        lateness_ns: None,
    })
}

fn latency(whole: &Histogram) -> Option<Latency> {
    let percentiles =
        PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), whole.supported_quantile_ns(*q)));
    Some(Latency {
        min: whole.min_ns()?,
        mean: whole.mean_ns()?,
        max: whole.max_ns()?,
        percentiles: percentiles.collect(),
    })
}

/// Rates of some kinds together. `None` where no operation completed in any window.
fn rates(case: &Case, kinds: &[Kind]) -> Option<Rates> {
    let per_run: Vec<[f64; 2]> = case.runs.iter().filter_map(|r| per_second(r, kinds)).collect();
    let mean = |i: usize| interval::mean(&per_run.iter().map(|r| r[i]).collect::<Vec<_>>());
    let (ops, bytes) = (mean(0)?, mean(1)?);
    let mb = |m: Mean| m.interval.map(|i| i.map(|v| v / MB));
    (ops.value > 0.0).then(|| Rates {
        iops: ops.value,
        mb_per_s: bytes.value / MB,
        mib_per_s: bytes.value / model::units::MIB as f64,
        iops_interval: ops.interval,
        mb_per_s_interval: mb(bytes),
    })
}

/// Operations and bytes per second of a run; `None` where it had no window.
fn per_second(ran: &Ran, kinds: &[Kind]) -> Option<[f64; 2]> {
    let seconds = ran.stream.window_ns as f64 / 1e9;
    let sum = |of: fn(&crate::case::Amount) -> u64| {
        kinds.iter().map(|k| of(&ran.in_window(*k)) as f64).sum::<f64>() / seconds
    };
    (seconds > 0.0).then(|| [sum(|a| a.ops), sum(|a| a.bytes)])
}

fn of_run(case: &Case, ran: &Ran) -> Option<RunFigures> {
    let [iops, bytes] = per_second(ran, &COUNTED)?;
    Some(RunFigures {
        run: ran.run.start.repeat,
        iops,
        mb_per_s: bytes / MB,
        depth_mean: ran.stream.depth_ns as f64 / ran.stream.window_ns as f64,
        device: of_device(case, ran),
    })
}

fn of_device(case: &Case, ran: &Ran) -> Option<DeviceFigures> {
    let tops = case.has_storage().then(|| case.tops().ok())??;
    let delta = ran.counted(&tops).ok()?;
    let total = delta.total();
    let issued = Kind::MOVING.map(|k| ran.issued(k));
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
use crate::forge::Forge;

#[cfg(test)]
fn of(forge: &Forge) -> Figured {
    figures(&crate::case::cases(&forge.record())[0])
}

#[test]
fn a_rate_is_operations_over_time_and_has_an_interval_from_three_runs() {
    let f = of(&Forge::honest());
    let total = f.total.unwrap();
    assert!((total.iops - 10_000.0).abs() < 1e-6 && (total.mb_per_s - 40.96).abs() < 1e-9);
    assert!(total.iops_interval.is_some() && f.write.is_none());
    let read = f.read.unwrap();
    assert_eq!((read.ops, read.bytes), (50_000, 50_000 * 4096));
    assert!((read.depth_mean - 31.5).abs() < 0.01);
    assert_eq!(of(&Forge { runs: 2, ..Forge::honest() }).total.unwrap().iops_interval, None);
}

#[test]
fn percentiles_of_few_operations_are_withheld() {
    let p = of(&Forge { ops: 200, runs: 1, ..Forge::honest() }).read.unwrap().latency_ns.percentiles;
    assert!(p["90"].is_some() && p["99"].is_none() && p["99.99"].is_none());
    assert_eq!(p.len(), PERCENTILES.len());
}

#[test]
fn the_device_stands_beside_what_was_issued() {
    let device = of(&Forge::honest()).runs[0].device.unwrap();
    assert_eq!((device.issued_ops, device.ios), (11_000, 11_000));
    assert!(device.depth_mean > 25.0 && device.depth_mean < 33.0, "{}", device.depth_mean);
    assert_eq!(of(&Forge { stat_unreadable: true, ..Forge::honest() }).runs[0].device, None);
}

#[test]
fn nothing_completed_is_none_and_not_zero() {
    let f = of(&Forge { ops: 0, ..Forge::honest() });
    assert!(f.total.is_none() && f.read.is_none());
    assert!(of(&Forge { runs: 0, ..Forge::honest() }).runs.is_empty());
}
