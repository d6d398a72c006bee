//! Figures of what threads did: means, deviations and percentiles as DISKSPD has them.
//!
//! For: both formats. Not for: whose they are ([`super::span`]).

use super::span::Lane;
use model::distribution::Distribution;
use model::observed::ObservedLaneKind;
use model::record::Bucket;

/// Operations beyond a percentile, below which it is one operation's and no percentile.
const MIN_BEYOND: f64 = 10.0;

/// Which operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectionFilter {
    /// Both directions.
    Total,
    /// Those that moved bytes from the target.
    Read,
    /// Those that moved bytes to it.
    Write,
}

/// Operations of one thread on one target, or of several together.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Bytes moved.
    pub(super) bytes: u64,
    /// Latencies, and how many operations there were.
    pub(super) latency: Distribution,
    /// Stretches of equal length; empty where they were not asked for.
    pub(super) course: Vec<Bucket>,
}

impl Figures {
    /// Of some lanes together; of at most so many stretches, since what is behind the window's last whole one is no stretch.
    pub(super) fn from_lanes<'l>(
        which: DirectionFilter,
        lanes: impl IntoIterator<Item = &'l Lane>,
        stretches: usize,
    ) -> Self {
        let kinds = |lane: &'l Lane| -> Vec<&'l ObservedLaneKind> {
            match which {
                DirectionFilter::Read => vec![&lane.read],
                DirectionFilter::Write => vec![&lane.write],
                DirectionFilter::Total => vec![&lane.read, &lane.write],
            }
        };
        let all: Vec<&ObservedLaneKind> = lanes.into_iter().flat_map(kinds).collect();
        let mut course: Vec<Bucket> = Vec::new();
        for kind in &all {
            let own = &kind.course[..kind.course.len().min(stretches)];
            if course.len() < own.len() {
                course.resize(own.len(), Bucket::default());
            }
            course.iter_mut().zip(own).for_each(|(sum, one)| *sum = sum.plus(*one));
        }
        Self {
            bytes: all.iter().fold(0, |sum: u64, k| sum.saturating_add(k.bytes)),
            latency: all.iter().map(|k| &k.latency).collect(),
            course,
        }
    }

    /// Operations.
    pub(super) fn count(&self) -> u64 {
        self.latency.count
    }

    /// Mean latency in ms; 0 of nothing, as there.
    pub(super) fn mean_ms(&self) -> f64 {
        self.latency.mean_ns / 1e6
    }

    /// Deviation of the latencies in ms, over all of them.
    pub(super) fn deviation_ms(&self) -> f64 {
        let count = self.count() as f64;
        if count < 1.0 { 0.0 } else { self.latency.deviation_ns() * ((count - 1.0) / count).sqrt() / 1e6 }
    }

    /// Deviation of the operations per second over the stretches; `None` where there are none.
    pub(super) fn iops_deviation(&self, bucket_ms: u32) -> Option<f64> {
        let count = self.course.len() as f64;
        if self.course.is_empty() {
            return None;
        }
        let mean = self.course.iter().map(|b| b.0 as f64).sum::<f64>() / count;
        let squares: f64 = self.course.iter().map(|b| (b.0 as f64 - mean).powi(2)).sum();
        Some((squares / count).sqrt() / (f64::from(bucket_ms) / 1000.0))
    }

    /// A percentile in ms by its share; `None` where fewer than ten operations lie beyond it.
    pub(super) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let supported = (1.0 - share) * self.count() as f64 >= MIN_BEYOND - 1e-9;
        self.latency.quantile_ns(share).filter(|_| supported).map(|ns| ns as f64 / 1e6)
    }

    /// Smallest latency in ms; `None` where nothing completed.
    pub(super) fn min_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.latency.min_ns as f64 / 1e6)
    }

    /// Largest latency in ms; `None` where nothing completed.
    pub(super) fn max_ms(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.latency.max_ns as f64 / 1e6)
    }
}
