//! Sessions as the history lists them: entries, and tables of their results.

use crate::finding::{CheckId, Severity};
use crate::machine::Capacity;
use crate::report::{Annotations, Ending, Headline, Report};
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Entries of a history, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The listed sessions.
    pub entries: Vec<Entry>,
    /// Number of sessions that match the request.
    pub asked_for: u64,
    /// Sessions in the whole history.
    pub sessions: u64,
    /// Bytes that their files take.
    pub bytes: u64,
}

/// A session in the history. `None` marks a value that its file does not contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// The name of its file without the extension.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: Option<String>,
    /// The verdict of its report, without accepted findings.
    pub verdict: Option<Verdict>,
    /// The number that would be quoted.
    pub headline: Option<Headline>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Whether it is being measured now.
    #[serde(default)]
    pub running: bool,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// Block devices below its targets.
    pub devices: Vec<Device>,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// The figure of each result, for jobs and profiles, whose results are listed together.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Capacities of devices from its valid results that consist of one kind of request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Complete runs of all jobs.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Equal for sessions with the same work at the same place.
    pub fingerprint: Option<String>,
    /// Checks that found something, with their severity; sorted, each pair once.
    pub findings: Vec<Mark>,
    /// Version of fathom that measured.
    pub version: Option<String>,
    /// Version of fathom that judged.
    pub judged_by: String,
    /// The user's tags and notes.
    pub words: Annotations,
    /// Why the session or its tags and notes cannot be read.
    pub problem: Option<String>,
}

/// The figure of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The job's name: `RND4K Q32T1 read`.
    pub name: String,
    /// `IOPS`, or `MB/s` for sequential access.
    pub unit: String,
    /// The rate; `None` if a finding invalidates it or there is none.
    pub value: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
    /// The verdict of the findings about it.
    pub verdict: Verdict,
}

/// A block device with its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Of the kernel: `vda`.
    pub name: String,
    /// Of the maker.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
}

/// A finding by its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The check of the finding.
    pub id: CheckId,
    /// Effect on a number, worst first.
    pub severity: Option<Severity>,
}

impl Entry {
    /// One word, or two if it did not end as planned: `VALID`, `SUSPECT, interrupted`, `cut`, `unreadable`.
    pub fn word(&self) -> String {
        self.verdict_word().into_iter().chain(self.unplanned()).collect::<Vec<_>>().join(", ")
    }

    /// `VALID`; `None` if nothing was concluded.
    pub fn verdict_word(&self) -> Option<&'static str> {
        self.verdict.map(Verdict::word)
    }

    /// The unplanned ending: `interrupted`.
    pub fn unplanned(&self) -> Option<&'static str> {
        match &self.ending {
            _ if self.running => Some("running"),
            Some(Ending::Complete) => None,
            Some(Ending::Interrupted) => Some("interrupted"),
            Some(Ending::Failed(_)) => Some("failed"),
            Some(Ending::Cut) => Some("cut"),
            Some(Ending::NotMeasured(_)) => Some("not measured"),
            None => Some("unreadable"),
        }
    }
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowsOf {
    /// Each is a session.
    #[default]
    Sessions,
    /// One row for each device, from its newest session.
    Devices,
}

/// A table with sessions or devices as rows and the results of one work as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTable {
    /// What the rows are.
    pub rows_of: RowsOf,
    /// The results of the newest session that has any; if sessions were named, the results of all of them.
    pub columns: Vec<Column>,
    /// Sessions with at least one of these results, newest first; named sessions in the order of naming.
    pub rows: Vec<Row>,
    /// Sessions without any of these results, by title.
    pub other_work: Vec<OtherWork>,
    /// Whether the user chose the work (`--job`).
    #[serde(skip)]
    pub is_job_chosen: bool,
    /// Number of sessions of devices that have a newer one.
    pub older: u64,
    /// Number of matching sessions that are too old for the shown number.
    pub beyond_limit: u64,
    /// The report of each row, in the same order, if sessions were named and therefore judged again; empty if the
    /// rows come from the index.
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
    /// Name of a column if each row has one result, but not the same one.
    pub const MAIN: &'static str = "main result";
}

/// A session in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Its id.
    pub session: String,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// The verdict of the session; `None` if it cannot be judged.
    pub verdict: Option<Verdict>,
    /// Name and model of the device below its targets; `None` without a known block device.
    pub device: Option<String>,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// The user's tags.
    pub tags: Vec<String>,
    /// A figure for each column; `None` if the session did not measure it.
    pub figures: Vec<Option<Figure>>,
}

/// Sessions that are not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherWork {
    /// Title: `bench six`.
    pub title: String,
    /// How many.
    pub sessions: u64,
}
