//! One direction of a job in fio's figures.
//!
//! For: what its three formats show alike. Not for: how each writes it.

use super::course::{Step, step_length, steps};
use model::distribution::Distribution;
use model::job::{IoPriority, Kind};
use model::observed::{Observed, ObservedKind, Stretch};

const KIB: f64 = 1024.0;
/// What a sample of a rate lasts at least, as in fio.
const SAMPLE_NS: u64 = 500_000_000;
/// What may be missing at the end of the last one: an interval ends with an operation.
const SAMPLE_SLACK_NS: u64 = 5_000_000;

/// Figures of one direction; all zero where nothing completed, as fio has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// Bytes moved.
    pub(super) bytes: u64,
    /// Bytes moved per second.
    pub(super) bytes_per_s: f64,
    /// Operations.
    pub(super) ops: u64,
    /// Operations per second.
    pub(super) iops: f64,
    /// Length of the measured windows in ms.
    pub(super) runtime_ms: u64,
    /// Operations that moved fewer bytes than asked.
    pub(super) short: u64,
    /// From the submission to the completion.
    pub(super) clat: Distribution,
    /// From the submission to the completion, but in an open loop from the intended start.
    pub(super) lat: Distribution,
    /// The first apart by class and level of their priority, where there are several.
    pub(super) priorities: Vec<([u32; 2], Distribution)>,
    /// Samples of the rate in KiB/s.
    pub(super) bw: RateSamples,
    /// Samples of operations per second.
    pub(super) iops_samples: RateSamples,
}

impl Direction {
    /// Of these kinds together, of all results that are told as one.
    pub(super) fn from_observed(all: &[&Observed], kinds: &[Kind]) -> Self {
        let own: Vec<&ObservedKind> =
            all.iter().flat_map(|seen| kinds.iter().filter_map(|kind| seen.kinds.get(kind))).collect();
        let moved = |seen: &&&Observed| kinds.iter().any(|kind| seen.kinds.contains_key(kind));
        let Some(window_ns) = all.iter().filter(moved).map(|seen| seen.window_ns).max() else {
            return Self::default();
        };
        let seconds = (window_ns as f64 / 1e9).max(1e-9);
        let lat: Distribution = own.iter().map(|k| &k.latency).collect();
        let bytes = own.iter().fold(0, |sum: u64, k| sum.saturating_add(k.bytes));
        let course: Vec<&Stretch> = own.iter().flat_map(|k| &k.course).collect();
        Self {
            bytes,
            bytes_per_s: bytes as f64 / seconds,
            ops: lat.count,
            iops: lat.count as f64 / seconds,
            runtime_ms: (window_ns / 1_000_000).max(1),
            short: own.iter().fold(0, |sum: u64, k| sum.saturating_add(k.short)),
            clat: own.iter().map(|k| k.service.as_ref().unwrap_or(&k.latency)).collect(),
            lat,
            priorities: latencies_by_priority(&own),
            bw: RateSamples::from_intervals(&course, |step| step.bytes / KIB),
            iops_samples: RateSamples::from_intervals(&course, |step| step.ops),
        }
    }
}

/// Latencies by class and level; nothing where all operations have the same.
fn latencies_by_priority(own: &[&ObservedKind]) -> Vec<([u32; 2], Distribution)> {
    let mut all: Vec<([u32; 2], Vec<&Distribution>)> = Vec::new();
    for (priority, latency) in own.iter().flat_map(|kind| &kind.priorities) {
        let number = priority.map_or(0, IoPriority::number);
        let number = [number >> 13, number & 7];
        match all.iter_mut().find(|(known, _)| *known == number) {
            Some((_, latencies)) => latencies.push(latency),
            None => all.push((number, vec![latency])),
        }
    }
    if all.len() < 2 {
        return Vec::new();
    }
    all.into_iter().map(|(number, latencies)| (number, latencies.into_iter().collect())).collect()
}

/// A rate over steps of its course.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RateSamples {
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

impl RateSamples {
    /// Of half a second each, or a little more; what is left at the end is too short to be one.
    fn from_intervals(course: &[&Stretch], of: impl Fn(&Step) -> f64) -> Self {
        let all = || course.iter().copied();
        let step_ns = step_length(all(), SAMPLE_NS);
        let end = all().map(|s| s.start_ns.saturating_add(s.ns)).max().unwrap_or(0);
        let rate = |step: &Step| of(step) / (step_ns as f64 / 1e9);
        let rates: Vec<f64> = steps(all(), step_ns)
            .range(..end.saturating_add(SAMPLE_SLACK_NS) / step_ns)
            .map(|(_, step)| rate(step))
            .collect();
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
fn example_observed(kinds: &[Kind]) -> Observed {
    let latency = Distribution { count: 100, min_ns: 10, max_ns: 10, mean_ns: 10.0, bins: vec![(10, 100)] };
    let stretch = |start_ns, ops| Stretch { start_ns, ns: SAMPLE_NS, ops, bytes: ops * 4096 };
    let course = vec![stretch(0, 30), stretch(SAMPLE_NS, 50)];
    let one = ObservedKind { bytes: 409_600, short: 0, latency, course, ..ObservedKind::default() };
    let kinds: BTreeMap<Kind, ObservedKind> = kinds.iter().map(|k| (*k, one.clone())).collect();
    Observed { kinds, window_ns: 1_000_000_000, ..Observed::default() }
}

#[test]
fn rates_are_those_of_the_window_and_samples_those_of_the_course() {
    let d = Direction::from_observed(&[&example_observed(&[Kind::Read])], &[Kind::Read]);
    assert_eq!((d.ops, d.iops, d.bytes_per_s, d.runtime_ms), (100, 100.0, 409_600.0, 1000));
    let RateSamples { count, min, max, mean, deviation } = d.iops_samples;
    assert_eq!((count, min, max, mean), (2, 60, 100, 80.0));
    assert!((deviation - 28.284).abs() < 0.001 && d.bw.max == 400);
    assert!((d.bw.percent_of(409_600.0) - 80.0).abs() < 1e-9);
    let none = Direction::from_observed(&[&example_observed(&[Kind::Read])], &[Kind::Write]);
    assert_eq!((none.ops, none.runtime_ms, none.bw), (0, 0, RateSamples::default()));
}

#[test]
fn results_that_are_told_as_one_are_added_up_at_their_times() {
    let (one, mut other) = (example_observed(&[Kind::Read]), example_observed(&[Kind::Read, Kind::Write]));
    other.window_ns = 2_000_000_000;
    let d = Direction::from_observed(&[&one, &other], &[Kind::Read]);
    assert_eq!((d.ops, d.bytes, d.runtime_ms, d.iops), (200, 819_200, 2000, 100.0));
    assert_eq!((d.iops_samples.count, d.iops_samples.min, d.iops_samples.max), (2, 120, 200));
    let mixed = Direction::from_observed(&[&one, &other], &[Kind::Read, Kind::Write, Kind::Trim]);
    assert_eq!((mixed.ops, mixed.iops_samples.max), (300, 300));
}
