//! One direction of a job in fio's figures.
//!
//! For: what its three formats show alike. Not for: how each writes it.

use model::distribution::Distribution;
use model::job::Kind;
use model::seen::{Seen, SeenKind, Stretch};

/// Share of the operations whose submission must have been timed for it to be told of all of them.
const MOST: f64 = 0.99;
const KIB: f64 = 1024.0;

/// Figures of one direction; all zero where nothing completed, as fio has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// Bytes moved.
    pub(super) bytes: u64,
    /// The same per second.
    pub(super) bytes_per_s: f64,
    /// Operations.
    pub(super) ops: u64,
    /// The same per second.
    pub(super) iops: f64,
    /// Length of the measured windows in ms.
    pub(super) runtime_ms: u64,
    /// Operations that moved fewer bytes than asked.
    pub(super) short: u64,
    /// Time inside the calls that submitted them; empty where not each had a call of its own that waited for nothing.
    pub(super) slat: Distribution,
    /// From the submission to the completion.
    pub(super) clat: Distribution,
    /// The same, but in an open loop from the intended start.
    pub(super) lat: Distribution,
    /// Samples of the rate in KiB/s.
    pub(super) bw: Samples,
    /// Samples of operations per second.
    pub(super) iops_samples: Samples,
}

impl Direction {
    pub(super) fn of(seen: &Seen, kind: Kind) -> Self {
        let Some(own) = seen.kinds.get(&kind) else { return Self::default() };
        let seconds = (seen.window_ns as f64 / 1e9).max(1e-9);
        let SeenKind { bytes, short, latency, service, course } = own;
        Self {
            bytes: *bytes,
            bytes_per_s: *bytes as f64 / seconds,
            ops: latency.count,
            iops: latency.count as f64 / seconds,
            runtime_ms: (seen.window_ns / 1_000_000).max(1),
            short: *short,
            slat: if is_timed(seen) { seen.submit.clone() } else { Distribution::default() },
            clat: service.as_ref().unwrap_or(latency).clone(),
            lat: latency.clone(),
            bw: Samples::of(course, |s| s.bytes as f64 / KIB),
            iops_samples: Samples::of(course, |s| s.ops as f64),
        }
    }
}

/// Whether the time of submission is that of each operation of the one direction that there is.
fn is_timed(seen: &Seen) -> bool {
    let [only] = seen.kinds.values().collect::<Vec<_>>()[..] else { return false };
    seen.submit.count as f64 >= MOST * only.latency.count as f64
}

/// A rate over stretches of its course.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// How many.
    pub(super) count: u64,
    /// The least.
    pub(super) min: u64,
    /// The most.
    pub(super) max: u64,
    /// Their mean.
    pub(super) mean: f64,
    /// Their standard deviation.
    pub(super) deviation: f64,
}

impl Samples {
    fn of(course: &[Stretch], of: impl Fn(&Stretch) -> f64) -> Self {
        let rates: Vec<f64> = course.iter().map(|s| of(s) / (s.ns as f64 / 1e9).max(1e-9)).collect();
        if rates.is_empty() {
            return Self::default();
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|r| (r - mean).powi(2)).sum();
        Self {
            count: rates.len() as u64,
            min: rates.iter().copied().fold(f64::INFINITY, f64::min) as u64,
            max: rates.iter().copied().fold(0.0, f64::max) as u64,
            mean,
            deviation: if rates.len() > 1 { (squares / (rates.len() - 1) as f64).sqrt() } else { 0.0 },
        }
    }

    /// Their mean in percent of the rate of the whole group in bytes per second.
    pub(super) fn percent_of(&self, group_bytes_per_s: f64) -> f64 {
        if self.count == 0 || group_bytes_per_s <= 0.0 {
            return 0.0;
        }
        (100.0 * self.mean * KIB / group_bytes_per_s).min(100.0)
    }
}

#[cfg(test)]
use std::collections::BTreeMap;

#[cfg(test)]
fn seen(kinds: &[Kind], submitted: u64) -> Seen {
    let latency = Distribution { count: 100, min_ns: 10, max_ns: 10, mean_ns: 10.0, bins: vec![(10, 100)] };
    let stretch = |ops| Stretch { ns: 500_000_000, ops, bytes: ops * 4096 };
    let course = vec![stretch(30), stretch(50)];
    let one = SeenKind { bytes: 409_600, short: 0, latency, service: None, course };
    let kinds: BTreeMap<Kind, SeenKind> = kinds.iter().map(|k| (*k, one.clone())).collect();
    let submit = Distribution { count: submitted, ..Distribution::default() };
    Seen { kinds, submit, window_ns: 1_000_000_000, ..Seen::default() }
}

#[test]
fn rates_are_those_of_the_window_and_samples_those_of_the_course() {
    let d = Direction::of(&seen(&[Kind::Read], 0), Kind::Read);
    assert_eq!((d.ops, d.iops, d.bytes_per_s, d.runtime_ms), (100, 100.0, 409_600.0, 1000));
    let Samples { count, min, max, mean, deviation } = d.iops_samples;
    assert_eq!((count, min, max, mean), (2, 60, 100, 80.0));
    assert!((deviation - 28.284).abs() < 0.001 && d.bw.max == 400);
    assert!((d.bw.percent_of(409_600.0) - 80.0).abs() < 1e-9);
    let none = Direction::of(&seen(&[Kind::Read], 0), Kind::Write);
    assert_eq!((none.ops, none.runtime_ms, none.bw), (0, 0, Samples::default()));
}

#[test]
fn submission_is_told_where_it_was_timed_for_each_operation_of_one_direction() {
    let slat = |kinds: &[Kind], submitted| Direction::of(&seen(kinds, submitted), Kind::Read).slat.count;
    assert_eq!((slat(&[Kind::Read], 100), slat(&[Kind::Read], 40)), (100, 0));
    assert_eq!(slat(&[Kind::Read, Kind::Write], 200), 0);
}
