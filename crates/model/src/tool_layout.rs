//! The card: results as a well-known tool shows them, beside the table that every report has.
//!
//! For: rows of a write and a read under the tool's names, and its score. Not for: measuring (the jobs are ordinary ones), nor for
//! figures that the results do not have: a card repeats them.

use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// What a card is going to show: part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLayout {
    /// The tool that shows its results like this.
    pub tool: String,
    /// How it shows them.
    pub look: Look,
    /// Its rows, in their order.
    pub rows: Vec<LayoutRow>,
    /// What is not as the tool does it, in sentences.
    pub differs: Vec<String>,
}

/// How a tool shows its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// A bar per number.
    Bars,
    /// Numbers, and a score that is made of them.
    Score,
}

/// One row of such a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutRow {
    /// What the tool calls it: `4K-64Thrd`.
    pub name: String,
    /// Whether the tool shows the mean latency of it, and not its rate.
    pub latency: bool,
    /// What it reads; `None` where nothing is.
    pub read: Option<CellSource>,
    /// What it writes; `None` where nothing is.
    pub write: Option<CellSource>,
}

/// Where a number comes from: the first stream of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSource {
    /// Index of the job.
    pub job: usize,
    /// Index of its phase.
    pub phase: usize,
}

/// Results as a well-known tool shows them: part of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResults {
    /// The tool that shows its results like this.
    pub tool: String,
    /// Its rows, in their order.
    pub rows: Vec<ToolRow>,
    /// Its score; `None` where it has none.
    pub score: Option<Score>,
    /// What is not as the tool does it, in sentences.
    pub differs: Vec<String>,
}

/// One row of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolRow {
    /// What the tool calls it: `4K-64Thrd`.
    pub name: String,
    /// `MB/s` of 10^6 bytes, or `ms` for a mean latency.
    pub unit: String,
    /// The read; `None` where nothing was read.
    pub read: Option<ToolCell>,
    /// The write; `None` where nothing was written.
    pub write: Option<ToolCell>,
}

/// One number of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCell {
    /// Index of the result that it repeats.
    pub result: usize,
    /// Median over runs of a rate, mean of a latency; `None` where a finding invalidates it or nothing completed.
    pub value: Option<f64>,
    /// The least and the most that a run came to; `None` for a latency, or with fewer than two runs.
    pub range: Option<[f64; 2]>,
    /// What the findings about it come to.
    pub verdict: Verdict,
}

/// The score of a tool, in its points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// Of the reads.
    pub read: Points,
    /// Of the writes.
    pub write: Points,
    /// Of both, by weights of its own.
    pub total: Points,
}

/// Points with what they rest on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Points {
    /// The points; `None` where they are withheld.
    pub value: Option<f64>,
    /// What the slowest runs of all numbers would come to together, and the fastest; `None` where a number has one run.
    pub range: Option<[f64; 2]>,
    /// The worst verdict of the numbers that they are made of.
    pub verdict: Verdict,
    /// Why there are none.
    pub withheld: Option<String>,
}
