//! The course of a run: what completed in each stretch of its time.
//!
//! For: rows of a second or less, per stream and kind. Not for: totals over the whole window ([`super::stream`]).

use crate::job::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Some time of the run: neighbouring stretches of one second or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// The stretches, in time order per stream.
    pub rows: Vec<Interval>,
    /// How many neighbours were merged to keep the file small; 0 when none.
    pub merged: u64,
}

/// One stretch of a stream's time, all its workers together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// Index of the stream in its phase.
    #[serde(rename = "s")]
    pub stream: usize,
    /// First ns, since the run's start.
    #[serde(rename = "a")]
    pub start_ns: u64,
    /// Last ns.
    #[serde(rename = "b")]
    pub end_ns: u64,
    /// Operations in flight times ns.
    #[serde(rename = "d")]
    pub depth_ns: u64,
    /// What completed, per kind.
    #[serde(rename = "k")]
    pub cells: BTreeMap<Kind, Cell>,
}

/// What completed in an interval: operations, bytes, median, 99th percentile and maximum of latency in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell(pub u64, pub u64, pub u64, pub u64, pub u64);
