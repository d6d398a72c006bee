//! An entry: what the history knows of a session without opening it.
//!
//! For: one line of `fathom list`, one object of its JSON, one row of the index. Not for: finding or laying out entries.

use super::files::{Found, Stamp};
use super::fingerprint::fingerprint;
use super::words;
use crate::session;
use analysis::Judging;
use model::check_id::CheckId;
use model::finding::{Outcome, Severity};
use model::record::Record;
use model::record::frame::Unreadable;
use model::report::{Ending, Headline, Verdict};
use model::words::Words;
use serde::{Deserialize, Serialize};

/// What the history knows of a session. `None` where its file does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Complete runs of all jobs.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// The same for sessions that did the same work at the same place.
    pub fingerprint: Option<String>,
    /// What was found.
    pub findings: Vec<Mark>,
    /// Version of fathom that measured.
    pub version: Option<String>,
    /// Version of fathom that judged.
    pub judged_by: String,
    /// What the user said about it.
    pub words: Words,
    /// Why it, or what the user said about it, cannot be read.
    pub problem: Option<String>,
}

/// A block device by the names it goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Mark {
    /// The check that found it.
    pub id: CheckId,
    /// How far it acts on a number, worst first.
    pub severity: Option<Severity>,
}

impl Entry {
    /// Reads and judges a session. One that cannot be read has an entry that says so.
    pub(super) fn read(found: &Found) -> Self {
        let mut entry = Self {
            id: found.id.clone(),
            bytes: found.stamp.bytes.unsigned_abs(),
            judged_by: env!("CARGO_PKG_VERSION").into(),
            ..Self::default()
        };
        match session::load(&found.path) {
            Ok(record) => entry.judge(&record),
            Err(why) => {
                entry.ending = matches!(why, Unreadable::Headless).then_some(Ending::Cut);
                entry.problem = Some(why.to_string());
            }
        }
        match words::read(&found.path) {
            Ok(words) => entry.words = words,
            Err(why) => entry.problem = Some(why),
        }
        entry
    }

    fn judge(&mut self, record: &Record) {
        let judging = Judging { version: self.judged_by.clone(), ..Judging::default() };
        let report = analysis::judge(record, &judging);
        let (header, plan) = (&record.header, &record.header.plan);
        self.started = Some(report.started);
        self.title = Some(report.title);
        self.verdict = Some(report.verdict);
        self.headline = Some(report.headline);
        self.ending = Some(report.ending);
        self.targets = plan.targets.iter().map(|t| t.path.clone()).collect();
        self.devices = devices(record);
        self.jobs = plan.jobs.iter().map(|j| j.name.clone()).collect();
        self.runs = report.results.iter().map(|r| r.runs.len() as u64).sum();
        self.hosts = report.hosts;
        self.fingerprint = Some(fingerprint(header));
        let found = report.findings.into_iter().filter(|f| f.outcome == Outcome::Finding);
        self.findings = found.map(|f| Mark { id: f.id, severity: f.severity }).collect();
        self.findings.sort();
        self.findings.dedup();
        self.version = Some(header.version.clone());
    }

    /// When it began, ns since 1970: by its own word, else by the last change of its file.
    pub(super) fn started_ns(&self, stamp: &Stamp) -> i64 {
        let said = self.started.as_ref().and_then(|s| s.parse::<jiff::Timestamp>().ok());
        let ns = said.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        ns.unwrap_or(stamp.changed_ns)
    }

    /// One word, or two where it did not end as planned: `VALID`, `SUSPECT, interrupted`, `cut`, `unreadable`.
    pub(super) fn word(&self) -> String {
        let verdict = match self.verdict {
            Some(Verdict::Valid) => Some("VALID"),
            Some(Verdict::Suspect) => Some("SUSPECT"),
            Some(Verdict::Invalid) => Some("INVALID"),
            None => None,
        };
        let ending = match &self.ending {
            _ if self.running => Some("running"),
            Some(Ending::Complete) => None,
            Some(Ending::Interrupted) => Some("interrupted"),
            Some(Ending::Failed(_)) => Some("failed"),
            Some(Ending::Cut) => Some("cut"),
            None => Some("unreadable"),
        };
        verdict.into_iter().chain(ending).collect::<Vec<_>>().join(", ")
    }
}

/// Devices below all targets, each once.
fn devices(record: &Record) -> Vec<Device> {
    let mut all: Vec<Device> = Vec::new();
    for layer in record.header.hosts.iter().flat_map(|h| &h.places).flat_map(|p| &p.layers) {
        let device =
            Device { name: layer.name.clone(), model: layer.model.clone(), serial: layer.serial.clone() };
        if !all.contains(&device) {
            all.push(device);
        }
    }
    all
}
