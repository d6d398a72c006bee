//! Sessions as the history lists them: entries, and tables of their results.

use crate::finding::{CheckId, Severity};
use crate::machine::Capacity;
use crate::report::{Annotations, Ending, Headline, Report};
use crate::sweep::{BestSettings, SweptSetting};
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Entries of a history, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The listed sessions.
    pub entries: Vec<Entry>,
    /// Number of sessions that match the request, even if the limit of entries leaves them out.
    pub matching: u64,
    /// Number of sessions in the whole history.
    pub sessions: u64,
    /// Total size of the session files in bytes.
    pub bytes: u64,
}

/// A session in the history. A value is `None` if the session's file does not contain it or cannot
/// be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Name of the session file without its extension.
    pub id: String,
    /// Path of the session file.
    pub path: String,
    /// Size of the session file in bytes.
    pub bytes: u64,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: Option<String>,
    /// Verdict of the report as judged without `--accept`.
    pub verdict: Option<Verdict>,
    /// The number to quote.
    pub headline: Option<Headline>,
    /// How the session ended.
    pub ending: Option<Ending>,
    /// Whether the session is being measured now.
    #[serde(default)]
    pub running: bool,
    /// Paths of the session's targets.
    pub targets: Vec<String>,
    /// Block devices below the session's targets.
    pub devices: Vec<Device>,
    /// Names of the session's jobs.
    pub jobs: Vec<String>,
    /// For independent jobs and profiles: one figure for each result. For other studies: the headline if the user named
    /// the session for a table, otherwise empty.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// For a sweep: the measured value at every setting, one list for each target; empty for other studies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Vec<SweptSetting>>,
    /// Measured capacities of devices, from valid results with a single kind of request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Number of runs in the figures, summed over all results.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// A hash of the machine, the storage stack and the jobs. Sessions with the same hash may be
    /// compared.
    pub fingerprint: Option<String>,
    /// Checks with a finding, each with its severity; sorted and without duplicates.
    pub findings: Vec<FindingMark>,
    /// Version of fathom that measured the session.
    pub version: Option<String>,
    /// Version of fathom that judged the session.
    pub judged_by: String,
    /// The user's tags and notes.
    #[serde(rename = "words")]
    pub annotations: Annotations,
    /// Why the session, its tags or its notes cannot be read; `None` if they can.
    pub problem: Option<String>,
}

/// The figure of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Name of the result, such as `RND4K Q32T1 read`; for a headline, the title of the session.
    pub name: String,
    /// `IOPS`, `MB/s` for sequential access, or the unit of the headline.
    pub unit: String,
    /// The rate; `None` if a finding invalidates it, or there is no rate.
    pub value: Option<f64>,
    /// 95 % interval of the rate over runs; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
    /// The verdict of the findings about this result.
    pub verdict: Verdict,
    /// The rate in 10^6 bytes per second; `None` if `value` is `None`, or without such a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
}

impl Figure {
    /// Converts a rate to 10^6 bytes per second. A value without a byte rate, such as a latency, keeps its unit.
    #[must_use]
    pub fn in_mb_per_s(&self) -> Self {
        let mb_per_s = match (self.value, self.mb_per_s) {
            (Some(_), Some(rate)) => Some(rate),
            // Without operations, the byte rate is 0 too.
            (Some(0.0), None) if self.unit == IOPS => Some(0.0),
            // A result without a value gets the new unit too, because a column has only results with the same name and
            // unit.
            (None, _) if self.unit == IOPS => None,
            _ => return self.clone(),
        };
        let convert = |end: f64| Some(end / self.value.filter(|value| *value > 0.0)? * mb_per_s?);
        let interval = self.interval.and_then(|[low, high]| Some([convert(low)?, convert(high)?]));
        Self { unit: MB_PER_S.into(), value: mb_per_s, interval, ..self.clone() }
    }
}

const IOPS: &str = "IOPS";
const MB_PER_S: &str = "MB/s";

/// A block device with its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Kernel name, such as `vda`.
    pub name: String,
    /// Model name; `None` if unknown.
    pub model: Option<String>,
    /// Serial number; `None` if unknown.
    pub serial: Option<String>,
    /// Size in bytes; 0 if unknown.
    #[serde(default)]
    pub bytes: u64,
}

/// The id of a check with a finding, and the effect of the finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Mark"))]
pub struct FindingMark {
    /// The check of the finding.
    pub id: CheckId,
    /// Effect of the finding on the number. Every finding has one.
    pub severity: Option<Severity>,
}

impl Entry {
    /// Returns the verdict and, if the session did not end as planned, how it ended: `VALID`, `SUSPECT, interrupted`,
    /// `cut`, `unreadable`.
    pub fn status(&self) -> String {
        self.verdict_word().into_iter().chain(self.unplanned_ending()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the verdict's word, such as `VALID`; `None` without a verdict.
    pub fn verdict_word(&self) -> Option<&'static str> {
        self.verdict.map(Verdict::word)
    }

    /// Returns how the session ended if it did not end as planned, such as `interrupted`; `None` if
    /// it ended as planned.
    pub fn unplanned_ending(&self) -> Option<&'static str> {
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

/// The subject of the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowsOf {
    /// One row for each session.
    #[default]
    Sessions,
    /// One row for each device, from its newest session.
    Devices,
}

/// A table with a row for each session or device, and a column for each result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTable {
    /// The subject of the rows: sessions or devices.
    pub rows_of: RowsOf,
    /// The results of the newest session that has results. If the user named sessions, the results of all named
    /// sessions.
    pub columns: Vec<Column>,
    /// Sessions that have a result in at least one column, newest first; in a table of devices, only the newest such
    /// session of each device. If the user named sessions, all of them in the order of naming.
    pub rows: Vec<SessionRow>,
    /// For devices whose newest session is a sweep: a table for each work. It compares all devices at every setting
    /// that is the best on at least one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_settings: Vec<BestSettings>,
    /// Sessions without a result in the columns, counted by title.
    pub other_work: Vec<OtherWork>,
    /// Whether the user chose the work (`--job`).
    #[serde(skip)]
    pub is_job_chosen: bool,
    /// Number of sessions that are omitted because a row shows a newer session of the same device.
    pub older: u64,
    /// Number of matching sessions that are omitted because of the limit.
    pub beyond_limit: u64,
    /// The report of each row, in the same order, if the user named the sessions: fathom then judges them again. Empty
    /// if the rows come from the index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(default, with = "Vec<serde_json::Map<String, serde_json::Value>>")
    )]
    pub reports: Vec<Report>,
}

/// A column of the table: one result, with its value in each session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// `RND4K Q32T1 read`, or [`Column::MAIN`].
    pub name: String,
    /// `IOPS`, `MB/s`, or the unit of the headline.
    pub unit: String,
}

impl Column {
    /// Name of a column that shows the only result of each session, because the results of the sessions have different
    /// names.
    pub const MAIN: &'static str = "main result";
}

/// A session in the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Row"))]
pub struct SessionRow {
    /// Id of the session.
    pub session: String,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// The verdict of the session; `None` if it cannot be judged.
    pub verdict: Option<Verdict>,
    /// Name and model of each disk below the session's targets, joined by ` + `; `None` without a known block device.
    pub device: Option<String>,
    /// Total size of these disks in bytes; `None` if unknown.
    #[serde(default)]
    pub device_bytes: Option<u64>,
    /// Checks with a finding that is more than a note.
    #[serde(default)]
    pub findings: Vec<FindingMark>,
    /// Paths of the session's targets.
    pub targets: Vec<String>,
    /// The user's tags.
    pub tags: Vec<String>,
    /// A figure for each column; `None` if the session did not measure the column's result.
    pub figures: Vec<Option<Figure>>,
}

/// Sessions with the same title that are not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherWork {
    /// Title: `bench six`.
    pub title: String,
    /// Number of sessions.
    pub sessions: u64,
}
