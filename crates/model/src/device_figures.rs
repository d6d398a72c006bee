//! What the topmost device did for a result, as it stands in a report.
//!
//! For: data of the JSON contract (format 1), and what one operation cost the device. Not for: its course over time
//! ([`crate::course`]).

use serde::{Deserialize, Serialize};

/// What the topmost device saw of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFigures {
    /// Operations that fathom issued, warm-up and drain included, to be compared with `ios`.
    pub issued_ops: u64,
    /// Bytes that fathom issued.
    pub issued_bytes: u64,
    /// Requests that the device completed.
    pub ios: u64,
    /// Bytes that it completed.
    pub bytes: u64,
    /// Mean requests in its queue: its time in queue over the time.
    pub depth_mean: f64,
    /// ms of waiting in it, all requests together.
    pub busy_ms: u64,
}

/// What the topmost device did for the operations of a result, in all runs that say so. Its counters span warm-up and drain, as the
/// operations issued do; what it did of each carries over to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtDevice {
    /// Operations per second in the window, the mean of these runs.
    pub iops: f64,
    issued_ops: u64,
    ios: u64,
    bytes: u64,
}

impl AtDevice {
    /// The sum of runs, each with its operations per second; `None` where nothing was issued.
    pub fn sum_runs(runs: &[(f64, DeviceFigures)]) -> Option<Self> {
        let sum =
            |of: fn(&DeviceFigures) -> u64| runs.iter().fold(0u64, |sum, (_, d)| sum.saturating_add(of(d)));
        let issued_ops = sum(|d| d.issued_ops);
        (issued_ops > 0).then(|| Self {
            iops: runs.iter().map(|(iops, _)| iops).sum::<f64>() / runs.len() as f64,
            issued_ops,
            ios: sum(|d| d.ios),
            bytes: sum(|d| d.bytes),
        })
    }

    /// Requests that it completed per second, where so many operations per second were carried out.
    pub fn requests_per_s(&self, iops: f64) -> f64 {
        iops * self.ios as f64 / self.issued_ops as f64
    }

    /// Bytes that it moved per second, where so many operations per second were carried out.
    pub fn bytes_per_s(&self, iops: f64) -> f64 {
        iops * self.bytes as f64 / self.issued_ops as f64
    }

    /// Mean size of its requests; `None` where there was none.
    pub fn request_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(self.ios)
    }
}
