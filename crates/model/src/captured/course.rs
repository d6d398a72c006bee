//! The course of a load: what it did in stretches of time, and where on the device.
//!
//! For: what a page draws. Not for: figures of all of it (`super`).

use super::Op;
use serde::Serialize;

/// How a load went over time, in stretches of one length from the beginning on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a stretch in ns.
    pub step_ns: u64,
    /// How many there are, 256 at most.
    pub steps: usize,
    /// Of each kind of request that there is.
    pub of: Vec<CourseOf>,
    /// Where reads and writes began; `None` of neither. Not in the JSON: `--events` has every offset.
    #[serde(skip)]
    pub places: Option<Places>,
}

/// The course of one kind of request: a number for each stretch, by the time of issue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CourseOf {
    /// Which.
    pub op: Op,
    /// How many.
    pub requests: Vec<u64>,
    /// Their bytes; of discards what they discard.
    pub bytes: Vec<u64>,
    /// Mean of their latencies; `None` where none is known.
    pub latency_mean_ns: Vec<Option<f64>>,
}

/// Where requests began: rows of equal size, from the first that was touched to the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// Offset of the first row.
    pub first_byte: u64,
    /// Bytes from one row to the next.
    pub row_bytes: u64,
    /// How many there are, 96 at most.
    pub rows: usize,
    /// Of reads and writes, those that there are: in the order of stretches, and of rows within one.
    pub of: Vec<(Op, Vec<Place>)>,
}

/// Requests that began in a row within a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the stretch.
    pub step: usize,
    /// Index of the row.
    pub row: usize,
    /// How many; never 0.
    pub requests: u64,
}
