//! The course of a result and the distribution of its latencies, as they stand in a report.
//!
//! For: data of the JSON contract (format 1): seconds, stretches as fine as they were kept, buckets of latency. Not for: adding them
//! up (the crate `analysis`) nor drawing them.

use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A second of a run, or several in a run of more than an hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// Index of the run within its job.
    pub run: u32,
    /// Seconds from the beginning of the measured window.
    pub start_s: f64,
    /// Length in seconds; the last one may be shorter.
    pub seconds: f64,
    /// Operations per second, all directions.
    pub iops: f64,
    /// 10^6 bytes per second, all directions.
    pub mb_per_s: f64,
    /// The largest 99th percentile of its stretches in ns: that of the whole second is no larger. `None` where nothing
    /// completed.
    pub p99_at_most_ns: Option<u64>,
    /// The topmost device in the same time, drawn straight between looks at its counters; `None` where it was not counted.
    pub device: Option<DeviceSecond>,
}

/// What the topmost device did in a second, for all streams of the phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSecond {
    /// Requests per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean time of a request in ns; `None` where none completed.
    pub latency_ns: Option<f64>,
    /// Mean requests in its queue.
    pub in_flight: f64,
}

/// The course of all runs in the stretches in which it was kept: a hundredth of a run each, 10 ms to 1 s. Each list has an entry per
/// stretch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Course {
    /// Index of the run within its job.
    pub run: Vec<u32>,
    /// Seconds from the beginning of the measured window.
    pub start_s: Vec<f64>,
    /// Length in seconds.
    pub seconds: Vec<f64>,
    /// Mean operations in flight, all directions.
    pub depth_mean: Vec<f64>,
    /// What completed, by direction (`read`).
    pub directions: BTreeMap<String, CourseOf>,
    /// How many neighbouring stretches each entry has at most: 1, or more where there were too many. Of several the median is the mean
    /// of theirs by operations, and the 99th percentile the largest of theirs: that of all of it is no larger.
    pub joined: u32,
}

/// The course of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CourseOf {
    /// Operations per second.
    pub iops: Vec<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Vec<f64>,
    /// Median of latency in ns; `None` where nothing completed, as in the next two.
    pub p50_ns: Vec<Option<u64>>,
    /// 99th percentile of latency in ns, however few operations there were.
    pub p99_ns: Vec<Option<u64>>,
    /// Largest latency in ns.
    pub max_ns: Vec<Option<u64>>,
}

/// Latencies as a histogram of [`LatencyBuckets::PER_DECADE`] buckets to a power of ten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyBuckets {
    /// Where each bucket begins in ns, ascending: 10^(k/50) for a whole k. It ends where 10^((k+1)/50) begins. Empty ones are left out.
    pub from_ns: Vec<f64>,
    /// Operations in each.
    pub ops: Vec<u64>,
}

impl LatencyBuckets {
    /// Buckets to a power of ten.
    pub const PER_DECADE: f64 = 50.0;

    /// Where the bucket that begins here ends.
    pub fn end_ns(from_ns: f64) -> f64 {
        from_ns * 10_f64.powf(1.0 / Self::PER_DECADE)
    }

    /// How many operations there are.
    pub fn count(&self) -> u64 {
        self.ops.iter().fold(0, |sum, ops| sum.saturating_add(*ops))
    }
}

impl From<&Distribution> for LatencyBuckets {
    fn from(of: &Distribution) -> Self {
        let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
        for (ns, ops) in of.bins.iter().filter(|(_, ops)| *ops > 0) {
            // A bit above, since the logarithm of a whole power may be a bit below it.
            let k = ((*ns).max(1) as f64).log10().mul_add(Self::PER_DECADE, 1e-9).floor() as i64;
            let bucket = buckets.entry(k).or_default();
            *bucket = bucket.saturating_add(*ops);
        }
        let from = |k: i64| {
            let ns = 10_f64.powf(k as f64 / Self::PER_DECADE);
            // Four digits are finer than a bucket.
            (ns * 1e3).round() / 1e3
        };
        Self { from_ns: buckets.keys().map(|k| from(*k)).collect(), ops: buckets.into_values().collect() }
    }
}

#[test]
fn each_latency_is_in_its_bucket_and_none_is_lost() {
    let of = Distribution {
        count: 7,
        bins: vec![(0, 1), (1000, 2), (1040, 3), (100_000, 1)],
        ..Distribution::default()
    };
    let buckets = LatencyBuckets::from(&of);
    assert_eq!((buckets.count(), buckets.ops.as_slice()), (7, [1, 5, 1].as_slice()));
    assert_eq!(buckets.from_ns, [1.0, 1000.0, 100_000.0]);
    assert!((LatencyBuckets::end_ns(1000.0) - 1_047.128_5).abs() < 1e-3);
    assert_eq!(LatencyBuckets::from(&Distribution::default()), LatencyBuckets::default());
}
