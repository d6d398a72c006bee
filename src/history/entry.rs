//! Making the entry of a session: what the history knows of it without opening it.
//!
//! For: reading and judging a session for the index. Not for: what an entry is (`model::entry`), nor finding or laying out some.

use super::annotations;
use super::files::{SessionFile, Stamp};
use super::fingerprint::fingerprint;
use crate::session;
use analysis::Judging;
use model::entry::{Device, Entry, Figure, Mark};
use model::finding::Outcome;
use model::record::Record;
use model::record::frame::Unreadable;
use model::report::{Ending, Measured, QuotedRate, Report};
use model::study::Studied;

/// Reads and judges a session. One that cannot be read has an entry that says so.
pub(super) fn read(found: &SessionFile) -> Entry {
    let mut entry = Entry {
        id: found.id.clone(),
        bytes: found.stamp.bytes.unsigned_abs(),
        judged_by: env!("CARGO_PKG_VERSION").into(),
        ..Entry::default()
    };
    match session::load(&found.path) {
        Ok(record) => judge(&mut entry, &record),
        Err(why) => {
            entry.ending = matches!(why, Unreadable::Headless).then_some(Ending::Cut);
            entry.problem = Some(why.to_string());
        }
    }
    match annotations::read(&found.path) {
        Ok(words) => entry.words = words,
        Err(why) => entry.problem = Some(why),
    }
    entry
}

fn judge(entry: &mut Entry, record: &Record) {
    let judging = Judging { version: entry.judged_by.clone(), ..Judging::default() };
    fill(entry, record, &analysis::judge(record, &judging));
}

/// What a report says of its session, with a figure also where its results do not stand side by side.
pub(super) fn of_report(id: String, record: &Record, report: &Report) -> Entry {
    let mut entry = Entry { id, words: report.words.clone(), ..Entry::default() };
    fill(&mut entry, record, report);
    if entry.figures.is_empty() {
        let headline = &report.headline;
        entry.figures = vec![Figure {
            name: report.title.clone(),
            unit: headline.unit.clone(),
            value: headline.value,
            interval: headline.interval,
            verdict: report.verdict,
        }];
    }
    entry
}

fn fill(entry: &mut Entry, record: &Record, report: &Report) {
    let (header, plan) = (&record.header, &record.header.plan);
    entry.capacities = analysis::watch::head_room::of_report(plan, report);
    entry.started = Some(report.started.clone());
    entry.title = Some(report.title.clone());
    entry.verdict = Some(report.verdict);
    entry.headline = Some(report.headline.clone());
    entry.ending = Some(report.ending.clone());
    entry.targets = plan.targets.iter().map(|t| t.path.clone()).collect();
    entry.devices = devices(record);
    entry.jobs = plan.jobs.iter().map(|j| j.name.clone()).collect();
    // A grid, a load curve and the like have tables of their own.
    if matches!(report.study, Studied::Jobs | Studied::Profile(_)) {
        entry.figures = report.results.iter().map(figure).collect();
    }
    entry.runs = report.results.iter().map(|r| r.runs.len() as u64).sum();
    entry.hosts.clone_from(&report.hosts);
    entry.fingerprint = Some(fingerprint(header));
    let found = report.findings.iter().filter(|f| f.outcome == Outcome::Finding);
    entry.findings = found.map(|f| Mark { id: f.id, severity: f.severity }).collect();
    entry.findings.sort();
    entry.findings.dedup();
    entry.version = Some(header.version.clone());
}

fn figure(result: &Measured) -> Figure {
    let QuotedRate { unit, value, interval } = result.quoted_rate();
    Figure { name: result.name.clone(), unit: unit.into(), value, interval, verdict: result.verdict }
}

/// When it began, ns since 1970: by its own word, else by the last change of its file.
pub(super) fn started_ns(entry: &Entry, stamp: &Stamp) -> i64 {
    let said = entry.started.as_ref().and_then(|s| s.parse::<jiff::Timestamp>().ok());
    let ns = said.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
    ns.unwrap_or(stamp.changed_ns)
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
