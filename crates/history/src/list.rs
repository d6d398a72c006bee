//! `fathom list`: selects sessions from the index and prints them as a list or as a table of results. Also has the table that `fathom show`
//! prints for several sessions, and parses the dates of `--since` and `--until`.

use super::index;
use crate::Files;
use crate::index::{Filter, entry_of_report};
use crate::session;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use model::finding::Severity;
use model::history::{
    Column, Device, Entry, Figure, FindingMark, Listing, OtherWork, RowsOf, SessionRow, SessionTable,
};
use model::record::Record;
use model::report::{Ending, Report};
use model::sweep::{BestSettings, SweptSetting};
use output::failure::Failure;
use output::{stderr, stdout};
use report::{Format, Style, TEXT};
use std::ops::Range;
use std::process::ExitCode;

/// Maximum number of entries that the text format prints by default.
const ENTRIES_SHOWN: u32 = 40;

/// The request of `fathom list`.
#[derive(Debug)]
pub struct Request {
    /// Which entries to list.
    pub filter: Filter,
    /// Maximum number of entries; 0 for all, `None` for the default of the format.
    pub limit: Option<u32>,
    /// Whether to rebuild the index first.
    pub rebuild: bool,
    /// What the rows of the table of results are; `None` for a list instead of a table.
    pub table: Option<RowsOf>,
    /// Whether a table of devices shows each rate in its own unit, such as IOPS for random access. Otherwise it shows MB/s where possible.
    pub iops: bool,
    /// The output format.
    pub format: &'static Format,
}

/// Prints the list or the table.
///
/// # Errors
/// [`Failure::Refused`] if a newer fathom made the index; [`Failure::Usage`] if the format has no table.
pub fn list(request: &Request) -> Result<ExitCode, Failure> {
    let files = Files::scan();
    files.problems.iter().for_each(|why| stderr::print(&format!("fathom: {why}")));
    if request.rebuild {
        index::rebuild(&files)?;
    }
    let most = match request.limit {
        Some(0) => None,
        // A table of devices has no default limit: the newest session of a device may be old.
        None if request.table == Some(RowsOf::Devices) => None,
        None if request.format.name == TEXT.name => Some(ENTRIES_SHOWN),
        given => given,
    };
    let in_mb_per_s = request.table == Some(RowsOf::Devices) && !request.iops;
    let (mut entries, mut matching) = index::query(&files, |index| {
        Ok((index.entries(&request.filter, most)?, index.count(&request.filter)?))
    })?;
    for entry in &mut entries {
        let Some(found) = files.by_id.get(&entry.id) else { continue };
        entry.path = model::name::text(&found.path);
        if in_mb_per_s {
            entry.figures = entry.figures.iter().map(Figure::in_mb_per_s).collect();
        }
        entry.running = entry.ending == Some(Ending::Cut) && session::is_running(&found.path);
        if entry.running {
            // The verdict in the index is about a session that seemed to have been killed.
            entry.verdict = None;
        }
    }
    if request.filter.verdict.is_some() {
        let all = entries.len();
        entries.retain(|entry| !entry.running);
        matching = matching.saturating_sub((all - entries.len()) as u64);
    }
    if let Some(rows_of) = request.table {
        let beyond = matching.saturating_sub(entries.len() as u64);
        let format = report::require_writer::<SessionTable>(request.format).map_err(Failure::Usage)?;
        let is_job_chosen = request.filter.job.is_some();
        let table = SessionTable { is_job_chosen, ..table_of_latest(&entries, rows_of, beyond) };
        stdout::print_report(format, &table, Style::default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (sessions, bytes) = (files.by_id.len() as u64, files.bytes());
    stdout::print_report(request.format, &Listing { entries, matching, sessions, bytes }, Style::default())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the table of these entries, which must be sorted newest first. The columns are the results of the newest entry that has results.
/// A table of devices has only the newest entry of each device. If the newest results are those of a sweep, a table of devices is made by
/// [`table_of_settings`].
pub(super) fn table_of_latest(entries: &[Entry], rows_of: RowsOf, beyond_limit: u64) -> SessionTable {
    let newest = entries.iter().find(|e| !e.figures.is_empty() || !e.settings.is_empty());
    if rows_of == RowsOf::Devices && newest.is_some_and(|e| !e.settings.is_empty()) {
        return table_of_settings(entries, beyond_limit);
    }
    let newest = entries.iter().find(|e| !e.figures.is_empty()).map_or(&[][..], |e| &e.figures);
    let column = |f: &Figure| Column { name: f.name.clone(), unit: f.unit.clone() };
    let columns: Vec<Column> = newest.iter().map(column).collect();
    let mut table = SessionTable { rows_of, columns, beyond_limit, ..SessionTable::default() };
    let mut known: Vec<Vec<String>> = Vec::new();
    for entry in entries {
        let figures: Vec<Option<Figure>> = table.columns.iter().map(|c| figure_in_column(entry, c)).collect();
        if figures.iter().all(Option::is_none) {
            count_other_work(&mut table.other_work, entry);
            continue;
        }
        let disks = disk_identities(entry);
        if rows_of == RowsOf::Devices && known.contains(&disks) {
            table.older += 1;
            continue;
        }
        known.push(disks);
        table.rows.push(session_row(entry, figures));
    }
    table
}

/// Returns the table of the newest sweep of each device.
fn table_of_settings(entries: &[Entry], beyond_limit: u64) -> SessionTable {
    let mut table = SessionTable { rows_of: RowsOf::Devices, beyond_limit, ..SessionTable::default() };
    let mut known: Vec<Vec<String>> = Vec::new();
    let mut devices: Vec<(String, Vec<SweptSetting>)> = Vec::new();
    for entry in entries {
        let disks = [
            disk_identities(entry),
            entry.settings.iter().filter_map(|s| s.first()?.target.clone()).collect(),
        ];
        let disks = disks.concat();
        if entry.settings.is_empty() {
            count_other_work(&mut table.other_work, entry);
        } else if known.contains(&disks) {
            table.older += 1;
        } else {
            known.push(disks);
            let row = session_row(entry, Vec::new());
            let name = row.device.clone().unwrap_or_else(|| entry.targets.join(" + "));
            devices.extend(entry.settings.iter().map(|settings| (name.clone(), settings.clone())));
            table.rows.push(row);
        }
    }
    table.best_settings = BestSettings::tables(&devices);
    table
}

/// Returns the table of the named sessions, with a row for each session and a column for each result. If each session has only one
/// result, results with the same unit share a column, because the user wants to compare them.
pub(super) fn table_of_named(entries: &[Entry]) -> SessionTable {
    let figures = || entries.iter().flat_map(|entry| &entry.figures);
    let is_one_each = entries.iter().all(|entry| entry.figures.len() == 1);
    let is_another = figures().any(|f| figures().next().is_some_and(|first| first.name != f.name));
    let column = |f: &Figure| {
        let name = if is_one_each && is_another { Column::MAIN } else { &f.name };
        Column { name: name.to_owned(), unit: f.unit.clone() }
    };
    let mut columns: Vec<Column> = Vec::new();
    for column in figures().map(column) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let figure_of = |entry: &Entry, c: &Column| entry.figures.iter().find(|f| column(f) == *c).cloned();
    let rows =
        entries.iter().map(|entry| session_row(entry, columns.iter().map(|c| figure_of(entry, c)).collect()));
    SessionTable { rows: rows.collect(), columns: columns.clone(), ..SessionTable::default() }
}

fn figure_in_column(entry: &Entry, column: &Column) -> Option<Figure> {
    entry.figures.iter().find(|f| (&f.name, &f.unit) == (&column.name, &column.unit)).cloned()
}

fn count_other_work(other_work: &mut Vec<OtherWork>, entry: &Entry) {
    let title = entry.title.clone().unwrap_or_else(|| entry.status());
    match other_work.iter_mut().find(|other| other.title == title) {
        Some(other) => other.sessions += 1,
        None => other_work.push(OtherWork { title, sessions: 1 }),
    }
}

fn session_row(entry: &Entry, figures: Vec<Option<Figure>>) -> SessionRow {
    let names: Vec<String> = disks(entry).map(device_name).collect();
    let is_more_than_a_note =
        |mark: &&FindingMark| mark.severity.is_some_and(|severity| severity < Severity::Note);
    let mut findings: Vec<FindingMark> = entry.findings.iter().filter(is_more_than_a_note).cloned().collect();
    // The findings are sorted by check, and by severity within a check: keep the worst finding of each check.
    findings.dedup_by_key(|mark| mark.id);
    let bytes: u64 = disks(entry).map(|disk| disk.bytes).sum();
    SessionRow {
        device_bytes: (bytes > 0).then_some(bytes),
        findings,
        session: entry.id.clone(),
        started: entry.started.clone(),
        verdict: entry.verdict,
        device: (!names.is_empty()).then(|| names.join(" + ")),
        targets: entry.targets.clone(),
        tags: entry.annotations.tags.clone(),
        figures,
    }
}

/// Returns the disks below the targets: devices with a model or serial number, or the topmost device if there are none. A
/// loop device, or one in memory, is a disk of its own: it has the speed and the size of its image, not of the disk below.
fn disks(entry: &Entry) -> impl Iterator<Item = &Device> {
    const OF_THEIR_OWN: [&str; 4] = ["loop", "zram", "ram", "nullb"];
    let is_own = |d: &Device| OF_THEIR_OWN.iter().any(|kind| d.name.starts_with(kind));
    let is_made = |d: &Device| d.model.is_some() || d.serial.is_some();
    let has_own = entry.devices.iter().any(is_own);
    let has_made = entry.devices.iter().any(is_made);
    let is_disk = move |(at, d): &(usize, &Device)| match (has_own, has_made) {
        (true, _) => is_own(d),
        (false, true) => is_made(d),
        (false, false) => *at == 0,
    };
    entry.devices.iter().enumerate().filter(is_disk).map(|(_, device)| device)
}

fn device_name(device: &Device) -> String {
    let model = device.model.as_deref().unwrap_or_default();
    format!("{} {model}", device.name).trim().to_owned()
}

/// Returns what identifies each disk: the serial number; without one, the session's hosts with the disk's name and model. If the session
/// has no disk, the session's hosts with each target.
fn disk_identities(entry: &Entry) -> Vec<String> {
    let here = |name: &str| format!("{} {name}", entry.hosts.join(","));
    let disk_identity = |d: &Device| d.serial.clone().unwrap_or_else(|| here(&device_name(d)));
    let disks: Vec<String> = disks(entry).map(disk_identity).collect();
    if disks.is_empty() { entry.targets.iter().map(|t| here(t)).collect() } else { disks }
}

#[cfg(test)]
fn entry(id: &str, device: Device, figures: &[(&str, f64)]) -> Entry {
    let figure = |(name, value): &(&str, f64)| Figure {
        name: (*name).into(),
        unit: "IOPS".into(),
        value: Some(*value),
        interval: None,
        verdict: model::report::Verdict::Valid,
        mb_per_s: Some(value / 1000.0),
    };
    Entry {
        id: id.into(),
        title: Some(format!("bench {}", figures.len())),
        devices: vec![device],
        figures: figures.iter().map(figure).collect(),
        ..Entry::default()
    }
}

#[cfg(test)]
fn device(name: &str, serial: Option<&str>) -> Device {
    Device {
        name: name.into(),
        model: serial.map(|_| "Disk".into()),
        serial: serial.map(str::to_owned),
        bytes: 1 << 30,
    }
}

/// A session with the conclusions about it.
#[derive(Debug)]
pub struct JudgedSession {
    /// Id in the history, or another name for a session that is not kept.
    pub id: String,
    /// The observations.
    pub record: Record,
    /// The conclusions.
    pub report: Report,
}

/// Returns a table with a row for each session. A table of devices has all rates in MB/s.
///
/// # Errors
/// If a session cannot be read.
pub fn session_table(
    rows_of: RowsOf,
    judged: impl IntoIterator<Item = Result<JudgedSession, Failure>>,
) -> Result<SessionTable, Failure> {
    let (mut entries, mut reports) = (Vec::new(), Vec::new());
    for session in judged {
        let JudgedSession { id, record, report } = session?;
        let mut entry = entry_of_report(id, &record, &report);
        if rows_of == RowsOf::Devices {
            entry.figures = entry.figures.iter().map(Figure::in_mb_per_s).collect();
        }
        entries.push(entry);
        reports.push(report);
    }
    Ok(SessionTable { rows_of, reports, ..table_of_named(&entries) })
}

/// Returns the start of a date or time, in ns since 1970.
///
/// # Errors
///
/// What to type instead.
pub fn since(text: &str) -> Result<i64, String> {
    Ok(span(text, &TimeZone::system())?.start)
}

/// Returns the first ns after a date or time, in ns since 1970. A date includes the whole day.
///
/// # Errors
///
/// What to type instead.
pub fn until(text: &str) -> Result<i64, String> {
    Ok(span(text, &TimeZone::system())?.end)
}

/// Returns the span of a date or time in ns since 1970.
fn span(text: &str, zone: &TimeZone) -> Result<Range<i64>, String> {
    let text = text.trim();
    let read = if text.contains(':') { moment(text, zone) } else { day(text, zone) };
    let ns = |at: Timestamp| i64::try_from(at.as_nanosecond()).ok();
    read.and_then(|(first, end)| Some(ns(first)?..ns(end)?))
        .ok_or_else(|| format!("'{text}' is not a date; type for example 2026-11-21, or 2026-11-21T16:00"))
}

fn day(text: &str, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let date: Date = text.parse().ok()?;
    let midnight = |d: Date| Some(d.to_zoned(zone.clone()).ok()?.timestamp());
    Some((midnight(date)?, midnight(date.tomorrow().ok()?)?))
}

fn moment(text: &str, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp());
    let at = text.parse::<Timestamp>().ok().or_else(local)?;
    Some((at, at.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?))
}

#[test]
fn loop_devices_on_one_disk_are_devices_of_their_own() {
    let on_loop = |id: &str, name: &str| {
        let mut entry = entry(id, device(name, None), &[("A", 1.0)]);
        entry.devices.push(device("vda", Some("S")));
        entry
    };
    let names = |entries: &[Entry]| {
        entries
            .iter()
            .map(|entry| disks(entry).map(|d| d.name.clone()).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let loops = [on_loop("1", "loop3"), on_loop("2", "loop4")];
    assert_eq!(names(&loops), [["loop3"], ["loop4"]]);
    assert_ne!(disk_identities(&loops[0]), disk_identities(&loops[1]));
    assert_eq!(names(&[on_loop("3", "dm-0")]), [["vda"]]);
}

#[test]
fn table_has_the_columns_of_the_newest_and_rows_that_share_one() {
    let none = entry("5", device("sda", None), &[]);
    let two = entry("4", device("sda", None), &[("a", 1.0), ("b", 2.0)]);
    let one = entry("3", device("sda", None), &[("b", 3.0)]);
    let other = entry("2", device("sda", None), &[("c", 4.0)]);
    let table = table_of_latest(&[none, two, one, other], RowsOf::Sessions, 7);
    assert_eq!(table.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(table.rows.iter().map(|r| r.session.as_str()).collect::<Vec<_>>(), ["4", "3"]);
    assert!(table.rows[1].figures[0].is_none() && table.rows[1].figures[1].is_some());
    let left: Vec<(&str, u64)> = table.other_work.iter().map(|o| (o.title.as_str(), o.sessions)).collect();
    assert_eq!((left, table.beyond_limit), (vec![("bench 0", 1), ("bench 1", 1)], 7));
}

#[test]
fn each_named_session_is_a_row() {
    let one = entry("1", device("sda", None), &[("a", 1.0)]);
    let other = entry("2", device("sda", None), &[("b", 2.0), ("a", 3.0)]);
    let table = table_of_named(&[one, other]);
    assert_eq!(table.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let value = |row: usize, column: usize| table.rows[row].figures[column].as_ref().and_then(|f| f.value);
    assert_eq!((value(0, 0), value(0, 1)), (Some(1.0), None));
    assert_eq!((value(1, 0), value(1, 1)), (Some(3.0), Some(2.0)));
    let each = ["a", "b"].map(|name| entry(name, device("sda", None), &[(name, 1.0)]));
    let table = table_of_named(&each);
    assert_eq!(table.columns, [Column { name: Column::MAIN.into(), unit: "IOPS".into() }]);
    assert!(table.rows.iter().all(|row| row.figures[0].is_some()));
}

#[test]
fn disks_are_identified_by_serial_and_show_their_newest_session() {
    let named = |id, name, serial| entry(id, device(name, serial), &[("a", 1.0)]);
    let all = [
        named("5", "sda", Some("S1")),
        named("4", "sdb", Some("S1")),
        named("3", "sda", Some("S2")),
        named("2", "loop0", None),
        named("1", "loop0", None),
    ];
    let table = table_of_latest(&all, RowsOf::Devices, 0);
    let rows: Vec<(&str, &str)> =
        table.rows.iter().map(|r| (r.session.as_str(), r.device.as_deref().unwrap_or_default())).collect();
    assert_eq!((rows, table.older), (vec![("5", "sda Disk"), ("3", "sda Disk"), ("2", "loop0")], 2));
    let nowhere = Entry { devices: Vec::new(), targets: vec!["/a".into()], ..named("9", "x", None) };
    assert_eq!(table_of_latest(&[nowhere.clone(), nowhere], RowsOf::Devices, 0).rows.len(), 1);
}

#[test]
fn devices_after_a_sweep_are_compared_at_their_best_settings() {
    let swept = |setting: &str, value: f64, best: bool| SweptSetting {
        work: "read".into(),
        target: None,
        setting: setting.into(),
        measure: model::sweep::Measure::Bandwidth,
        value: Some(value),
        invalidated_by: Vec::new(),
        best,
    };
    let sweep = |id, name, first: f64| Entry {
        settings: vec![vec![swept("1 x 8K", first, first > 100.0), swept("8 x 512K", 100.0, first <= 100.0)]],
        ..entry(id, device(name, None), &[])
    };
    let all = [sweep("4", "sda", 50.0), sweep("3", "sda", 1.0), sweep("2", "sdb", 200.0)];
    let table = table_of_latest(&all, RowsOf::Devices, 0);
    assert_eq!((table.rows.len(), table.older), (2, 1));
    let rows: Vec<(&str, Option<usize>)> =
        table.best_settings[0].rows.iter().map(|row| (row.name.as_str(), row.best)).collect();
    assert_eq!(rows, [("sda", Some(0)), ("sdb", Some(1))]);
    assert_eq!(table.best_settings[0].rows[0].values, [Some(100.0), Some(50.0)]);
    assert!(table_of_latest(&all, RowsOf::Sessions, 0).best_settings.is_empty());
}

#[test]
fn figures_in_mb_per_s_keep_the_width_of_their_interval() {
    let mut iops = entry("1", device("sda", None), &[("a", 2000.0)]).figures.remove(0);
    iops.interval = Some([1000.0, 3000.0]);
    let mb = iops.in_mb_per_s();
    assert_eq!((mb.unit.as_str(), mb.value, mb.interval), ("MB/s", Some(2.0), Some([1.0, 3.0])));
    let void = Figure { value: None, mb_per_s: None, interval: None, ..iops.clone() };
    assert_eq!((void.in_mb_per_s().unit.as_str(), void.in_mb_per_s().value), ("MB/s", None));
    let zero = Figure { value: Some(0.0), mb_per_s: None, interval: None, ..iops };
    assert_eq!((zero.in_mb_per_s().unit.as_str(), zero.in_mb_per_s().value), ("MB/s", Some(0.0)));
}

#[test]
fn figures_without_a_byte_rate_keep_their_unit() {
    for unit in ["IOPS", "us", "MB/s"] {
        let mut own = entry("1", device("sda", None), &[("a", 2000.0)]);
        (own.figures[0].unit, own.figures[0].mb_per_s) = (unit.into(), None);
        own.figures = own.figures.iter().map(Figure::in_mb_per_s).collect();
        let table = table_of_latest(&[own], RowsOf::Devices, 0);
        assert_eq!(table.columns, [Column { name: "a".into(), unit: unit.into() }]);
        assert_eq!(table.rows[0].figures[0].as_ref().and_then(|figure| figure.value), Some(2000.0));
    }
    let void = Figure {
        unit: "us".into(),
        value: None,
        ..entry("1", device("sda", None), &[("a", 1.0)]).figures.remove(0)
    };
    assert_eq!(void.in_mb_per_s().unit, "us");
}

#[test]
fn a_day_spans_24_hours_and_a_time_one_moment() {
    const HOUR: i64 = 3_600_000_000_000;
    let utc = TimeZone::UTC;
    assert_eq!(span("1970-01-02", &utc), Ok(24 * HOUR..48 * HOUR));
    assert_eq!(span("1970-01-01T02:00", &utc), Ok(2 * HOUR..2 * HOUR + 1));
    assert_eq!(span(" 1970-01-01 02:00:00 ", &utc), Ok(2 * HOUR..2 * HOUR + 1));
    assert_eq!(span("1970-01-01T02:00:00+01:00", &utc), Ok(HOUR..HOUR + 1));
    let east = TimeZone::fixed(jiff::tz::offset(2));
    assert_eq!(span("1970-01-01T02:00", &east), Ok(0..1));
    assert_eq!(span("1970-01-02", &east).map(|span| span.start), Ok(22 * HOUR));
    for bad in ["", "yesterday", "2026-13-01", "2026-02-30", "12:00", "20261", "9999-12-31"] {
        assert!(span(bad, &utc).is_err(), "{bad}");
    }
}
