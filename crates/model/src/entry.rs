//! An entry: what the history knows of a session without opening it; and a list of them.
//!
//! For: one line of `fathom list`, one object of its JSON, one row of the index. Not for: finding, reading or laying out entries.

use crate::annotations::Annotations;
use crate::capacity::Capacity;
use crate::check_id::CheckId;
use crate::finding::Severity;
use crate::report::{Ending, Headline, Verdict};
use serde::{Deserialize, Serialize};

/// Entries of a history, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Those that are shown.
    pub entries: Vec<Entry>,
    /// How many there are that were asked for.
    pub asked_for: u64,
    /// Sessions in the whole history.
    pub sessions: u64,
    /// Bytes that their files take.
    pub bytes: u64,
}

/// What the history knows of a session. `None` where its file does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// The name of its file without the extension.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// When it began, RFC 3339.
    pub started: Option<String>,
    /// What was measured, as `bench cdm`.
    pub title: Option<String>,
    /// The first word of its report, no finding accepted.
    pub verdict: Option<Verdict>,
    /// The number that would be quoted.
    pub headline: Option<Headline>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Whether it is being measured right now.
    #[serde(default)]
    pub running: bool,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// Block devices below them.
    pub devices: Vec<Device>,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// What each of its results came to, where they stand side by side: of jobs and profiles.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// What it measured devices to be capable of: its results that hold, as far as one kind of request made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Complete runs of all jobs.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// What is equal for sessions that did the same work at the same place.
    pub fingerprint: Option<String>,
    /// What was found.
    pub findings: Vec<Mark>,
    /// Version of fathom that measured.
    pub version: Option<String>,
    /// Version of fathom that judged.
    pub judged_by: String,
    /// What the user said about it.
    pub words: Annotations,
    /// Why it, or what the user said about it, cannot be read.
    pub problem: Option<String>,
}

/// What a result came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The job's name: `RND4K Q32T1 read`.
    pub name: String,
    /// `IOPS`; `MB/s` where it is sequential.
    pub unit: String,
    /// The rate; `None` where a finding invalidates it or there is none.
    pub value: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
    /// What the findings about it come to.
    pub verdict: Verdict,
}

/// A block device by the names it goes by.
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
    /// The check that found it.
    pub id: CheckId,
    /// How far it acts on a number, worst first.
    pub severity: Option<Severity>,
}

impl Entry {
    /// One word, or two where it did not end as planned: `VALID`, `SUSPECT, interrupted`, `cut`, `unreadable`.
    pub fn word(&self) -> String {
        self.verdict_word().into_iter().chain(self.unplanned()).collect::<Vec<_>>().join(", ")
    }

    /// `VALID`; `None` where nothing was concluded.
    pub fn verdict_word(&self) -> Option<&'static str> {
        self.verdict.map(Verdict::word)
    }

    /// How it ended other than as planned: `interrupted`.
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
