//! Totals of a stream over a run.
//!
//! For: operations, bytes and full histograms, per kind. Not for: their course over time ([`super::interval`]).

use crate::Known;
use crate::histogram::Histogram;
use crate::job::{IoPriority, Kind, Steadied};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Totals of a stream over all its workers and lanes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Index of the stream in its phase.
    pub stream: usize,
    /// Length of the measured window that was really used, in ns.
    pub window_ns: u64,
    /// Operations in flight times ns within the window, counted apart from the latencies.
    pub depth_ns: u64,
    /// Totals per kind within the window.
    pub kinds: BTreeMap<Kind, KindEnd>,
    /// All operations submitted, warm-up and drain included: what the ledger is compared with.
    pub issued: BTreeMap<Kind, Issued>,
    /// Time inside calls that handed operations over without waiting for any, one entry per call within the window.
    #[serde(default)]
    pub submit: Histogram,
    /// What its last values were, where it ends as soon as they are steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadied: Option<Steadied>,
    /// What the data that were written are like, made once more and measured; `None` where nothing is written.
    #[serde(default)]
    pub data: Option<Written>,
    /// Totals of each worker on each target within the window, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneEnd>,
    /// How far a replay could follow its capture; `None` of anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// The replayed load as the device's driver saw it, as it saw that of the capture; or why that is not known. `None` of anything but a
    /// replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_driver: Option<Known<AtDriver>>,
    /// Its reads and writes apart by their priority, where some have one of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityEnd>,
    /// What completed while the load of all hosts ran, where several did and not all for as long; rates are of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Operations of one kind and priority within the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorityEnd {
    /// What they did.
    pub kind: Kind,
    /// What the kernel was told of each, or of their thread; `None` for neither.
    pub priority: Option<IoPriority>,
    /// From the submission to the completion.
    pub latency: Histogram,
}

impl PriorityEnd {
    /// Adds operations to those of the same kind and priority.
    pub fn add(all: &mut Vec<Self>, one: &Self) {
        match all.iter_mut().find(|of| of.kind == one.kind && of.priority == one.priority) {
            Some(same) => same.latency.merge(&one.latency),
            None => all.push(one.clone()),
        }
    }
}

/// What completed while the load of all hosts ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Length of that time in ns.
    pub window_ns: u64,
    /// Operations and bytes per kind.
    pub kinds: BTreeMap<Kind, [u64; 2]>,
}

/// How far a replay could follow its capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// Operations that were read from the capture only after they should have been submitted.
    pub starved: u64,
    /// The longest that one of those was late, in ns.
    pub starved_ns: u64,
    /// Times that an operation was due and none could be in flight any more.
    pub held_by_depth: u64,
    /// Operations that came late because those before them in the capture, which wait for others, filled the table of operations.
    pub held_by_order: u64,
    /// Discards that lay wholly outside what was read or written, and so have no place on a smaller target.
    #[serde(default)]
    pub outside: u64,
    /// Whether all of the capture was submitted.
    pub is_whole: bool,
}

/// Requests of a load at the driver of its device, from issue to completion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtDriver {
    /// Mean number in flight, from the first issue to the last completion; `None` where completions are missing.
    pub depth: Option<f64>,
    /// Requests by kind, and how long they took.
    pub kinds: BTreeMap<Kind, (u64, Histogram)>,
}

/// Totals of a worker on a target, or on all of them where it does not tell them apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneEnd {
    /// Index of the worker in the phase.
    pub worker: u32,
    /// Index among its lanes: that of the target, where each has one, or where its operations are told apart by it.
    pub lane: u32,
    /// Totals per kind within the window.
    pub kinds: BTreeMap<Kind, LaneKind>,
}

/// Totals of a worker's operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneKind {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies, as in [`KindEnd::latency`].
    pub latency: Histogram,
    /// Its course in stretches of equal length, from the window's first ns on; the last one may be shorter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Bucket>,
}

/// Latencies of a stretch: how many, the smallest and the largest in ns, their sum and that of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket(pub u64, pub u64, pub u64, pub u64, pub f64);

impl Bucket {
    /// Those of a histogram, each as large as its bucket says.
    pub fn from_histogram(latency: &Histogram) -> Self {
        let squares = latency.counts().map(|(ns, count)| count as f64 * (ns as f64).powi(2)).sum();
        let (min, max) = (latency.min_ns().unwrap_or(0), latency.max_ns().unwrap_or(0));
        Self(latency.count(), min, max, latency.sum_ns(), squares)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let min = match (self.0, other.0) {
            (0, _) => other.1,
            (_, 0) => self.1,
            _ => self.1.min(other.1),
        };
        let count = self.0.saturating_add(other.0);
        Self(count, min, self.2.max(other.2), self.3.saturating_add(other.3), self.4 + other.4)
    }

    /// Their mean in ns; 0 where there is none.
    pub fn mean_ns(&self) -> f64 {
        if self.0 == 0 { 0.0 } else { self.3 as f64 / self.0 as f64 }
    }

    /// Their standard deviation in ns; 0 where there is none.
    pub fn deviation_ns(&self) -> f64 {
        if self.0 == 0 { 0.0 } else { (self.4 / self.0 as f64 - self.mean_ns().powi(2)).max(0.0).sqrt() }
    }
}

/// What data are like, as a compressor and a deduplicator see them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Written {
    /// Share of the bytes that an LZ compressor saves, block by block of 4 KiB, in percent.
    pub compress_percent: f64,
    /// Share of the 4 KiB blocks that are copies of others, in percent.
    pub dedup_percent: f64,
}

/// Totals of one kind of operation within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindEnd {
    /// Bytes moved.
    pub bytes: u64,
    /// Latencies; its count is the number of operations that moved all their bytes. From the intended start in an open
    /// loop, from the submission otherwise.
    pub latency: Histogram,
    /// In an open loop: from the submission to the completion, and from the intended start to the submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenLoop>,
}

/// The two parts of latency in an open loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// From the submission to the completion.
    pub service: Histogram,
    /// From the intended start to the submission.
    pub lateness: Histogram,
}

/// All operations of one kind that were submitted, the warm-up and the drain included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// Operations completed.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Errors by errno.
    pub errors: BTreeMap<i32, u64>,
    /// Operations that moved fewer bytes than asked.
    pub short: u64,
    /// Longest latency, the drain included.
    pub max_ns: u64,
}

#[test]
fn stretches_are_added_up_as_if_they_were_one() {
    let of = |latencies: &[u64]| {
        let mut histogram = Histogram::new();
        for ns in latencies {
            histogram.record(*ns);
        }
        Bucket::from_histogram(&histogram)
    };
    let (one, other) = (of(&[10, 20]), of(&[30]));
    assert_eq!(one.plus(other), of(&[10, 20, 30]));
    assert_eq!((one.plus(Bucket::default()), Bucket::default().plus(other)), (one, other));
    assert_eq!((one.mean_ns(), one.deviation_ns()), (15.0, 5.0));
    assert_eq!((Bucket::default().mean_ns(), Bucket::default().deviation_ns()), (0.0, 0.0));
}
