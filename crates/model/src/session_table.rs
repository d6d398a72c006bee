//! A table of sessions: what each came to, result by result, under one heading each.
//!
//! For: the value that every format renders for `fathom list --table`, and for `fathom show` of several. Not for: finding sessions, nor laying the table out.

use crate::entry::Figure;
use crate::report::Report;
use crate::verdict::Verdict;
use serde::Serialize;

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowsOf {
    /// Each is a session.
    #[default]
    Sessions,
    /// Each is what lies below, by its newest session.
    Devices,
}

/// Sessions or devices as rows, the results of one work as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTable {
    /// What the rows are.
    pub rows_of: RowsOf,
    /// The results of the newest session that has some; of sessions that were named, those of all of them.
    pub columns: Vec<Column>,
    /// Sessions with at least one of these, newest first; those that were named, as they were named.
    pub rows: Vec<Row>,
    /// Sessions that have none of these, by what they measured.
    pub other_work: Vec<OtherWork>,
    /// Whether the user chose the work (`--job`).
    #[serde(skip)]
    pub is_job_chosen: bool,
    /// Sessions of devices that have a newer one.
    pub older: u64,
    /// Sessions that were asked for and are too old for the number that is shown.
    pub beyond_limit: u64,
    /// What was concluded of each row, in their order, where sessions were named and so judged again; empty where rows are those of the
    /// index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(default, with = "Vec<serde_json::Map<String, serde_json::Value>>")
    )]
    pub reports: Vec<Report>,
}

/// A result that sessions have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// `RND4K Q32T1 read`, or [`Column::MAIN`].
    pub name: String,
    /// `IOPS` or `MB/s`.
    pub unit: String,
}

impl Column {
    /// Its name where the rows have a result each, and not the same one.
    pub const MAIN: &'static str = "main result";
}

/// A session in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Its id.
    pub session: String,
    /// When it began, RFC 3339.
    pub started: Option<String>,
    /// What it came to as a whole; `None` where it cannot be judged.
    pub verdict: Option<Verdict>,
    /// What lies below its targets, by name and model; `None` where no block device is known.
    pub device: Option<String>,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// The user's tags of it.
    pub tags: Vec<String>,
    /// A figure for each column; `None` where it did not measure that.
    pub figures: Vec<Option<Figure>>,
}

/// Sessions that are not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherWork {
    /// What they measured: `bench six`.
    pub title: String,
    /// How many.
    pub sessions: u64,
}
