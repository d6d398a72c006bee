//! Writes a report as CSV (RFC 4180): one row per result and direction, per interface and work, per cell of a grid measured in order, or
//! per run of a command. Headings carry the units. An empty field is not known.
//!
//! The last columns of every table are the same: they name the session, so that rows of many sessions can be put into one file.

use crate::format::Style;
use csv::{Terminator, WriterBuilder};
use model::Known;
use model::api::ApiRow;
use model::check_id::CheckId;
use model::command::{CommandResult, CommandRun, Moved};
use model::evidence::Extents;
use model::report::{Figures, Measured, Report};
use model::study::Studied;
use model::sweep::{CellFigures, Setting, Skipped};
use std::io::{self, Write};
use std::path::Path;

/// Columns that follow those of every table.
const SESSION_HEADINGS: [&str; 4] = ["session", "started", "target", "tags"];
const P99_9: &str = "p99_9_ns";
/// The first name of that column. Scripts use it, so the column is repeated under this name at the end.
const P99_9_OLD: &str = "p99.9_ns";

const RESULT_HEADINGS: [&str; 20] = [
    "name",
    "true_name",
    "direction",
    "void",
    "runs",
    "mb_per_s",
    "mb_per_s_low",
    "mb_per_s_high",
    "iops",
    "iops_low",
    "iops_high",
    "depth_mean",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "verdict",
    "limited_by",
    "accepted",
];
const INTERFACE_HEADINGS: [&str; 37] = [
    "interface",
    "work",
    "block_bytes",
    "mb_per_s",
    "mb_per_s_low",
    "mb_per_s_high",
    "iops",
    "synced_mb_per_s",
    "synced_mb_per_s_low",
    "synced_mb_per_s_high",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "user_ns_per_byte",
    "system_ns_per_byte",
    "calls_per_mib",
    "minor_faults_per_mib",
    "major_faults_per_mib",
    "device_read_per_byte",
    "device_written_per_byte",
    "coverage",
    "cached_pages_at_start",
    "extents_before",
    "extents_after",
    "largest_piece_bytes_after",
    "findings",
    "iops_low",
    "iops_high",
    "verdict",
    "limited_by",
    "run_seconds",
    "run_bytes",
    "largest_piece_share_before",
    "largest_piece_share_after",
    "accepted",
];

const COMMAND_HEADINGS: [&str; 20] = [
    "command",
    "run",
    "exit_code",
    "seconds",
    "user_seconds",
    "system_seconds",
    "peak_bytes",
    "read_bytes",
    "read_calls",
    "fetched_bytes",
    "cached_read_bytes",
    "written_bytes",
    "write_calls",
    "dirtied_bytes",
    "dirty_at_end_bytes",
    "sync_seconds",
    "stable_mb_per_s",
    "syncs",
    "limited_by",
    "verdict",
];

const CELL_HEADINGS: [&str; 32] = [
    "work",
    "block_bytes",
    "depth",
    "workers",
    "engine",
    "cache",
    "measured",
    "void",
    "runs",
    "mb_per_s",
    "iops",
    "latency_mean_ns",
    "latency_max_ns",
    "p50_ns",
    "p90_ns",
    "p95_ns",
    "p99_ns",
    "p99_9_ns",
    "device_iops",
    "device_mb_per_s",
    "cpu_ns_per_mib",
    "limited_by",
    "skipped_because",
    "mb_per_s_low",
    "mb_per_s_high",
    "write_p50_ns",
    "write_p90_ns",
    "write_p95_ns",
    "write_p99_ns",
    "write_p99_9_ns",
    "verdict",
    "accepted",
];
/// Columns of a cell that say what it is.
const SETTING_COLUMNS: usize = 6;
/// Where a cell that was not measured says why, after its setting.
const SKIP_REASON_COLUMN: usize = 16;

pub(super) fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(to);
    let mut rows = Rows::new(report, &mut out);
    match &report.study {
        Studied::Interfaces(api) => {
            rows.headings(&INTERFACE_HEADINGS)?;
            for row in &api.rows {
                let result = report.results.get(row.result);
                rows.row(&interface_fields(row, result), result)?;
            }
        }
        Studied::Sweep(sweep) if sweep.is_in_order() => {
            rows.headings(&CELL_HEADINGS)?;
            for cell in &sweep.cells {
                let result = cell.result.and_then(|at| report.results.get(at));
                rows.row(&cell_fields(result, cell), result)?;
            }
            sweep.skipped.iter().try_for_each(|cell| rows.row(&skipped_fields(cell), None))?;
        }
        Studied::Commands(results) => {
            rows.headings(&COMMAND_HEADINGS)?;
            for command in &results.commands {
                for (at, run) in command.runs.iter().enumerate() {
                    rows.row(&command_fields(report, command, at, run), None)?;
                }
            }
        }
        Studied::Jobs
        | Studied::Layers(_)
        | Studied::Limit(_)
        | Studied::Sweep(_)
        | Studied::Profile(_)
        | Studied::Targets(_)
        | Studied::Hosts(_) => {
            rows.headings(&RESULT_HEADINGS)?;
            for result in &report.results {
                result_fields(result).try_for_each(|row| rows.row(&row, Some(result)))?;
            }
        }
    }
    out.flush()
}

/// Writes rows, each with the columns that every table has.
struct Rows<'r, W: Write> {
    report: &'r Report,
    session: String,
    out: &'r mut csv::Writer<W>,
    /// Columns of percentiles that are repeated under their old name.
    repeated: Vec<usize>,
}

impl<'r, W: Write> Rows<'r, W> {
    fn new(report: &'r Report, out: &'r mut csv::Writer<W>) -> Self {
        let session = report.session.as_deref().map(session_id).unwrap_or_default();
        Self { report, session, out, repeated: Vec::new() }
    }

    fn headings(&mut self, own: &[&str]) -> io::Result<()> {
        self.repeated = (0..own.len()).filter(|at| own[*at].ends_with(P99_9)).collect();
        let old = self.repeated.iter().map(|at| own[*at].replace(P99_9, P99_9_OLD));
        let all = own.iter().chain(&SESSION_HEADINGS).map(|name| (*name).to_owned()).chain(old);
        Ok(self.out.write_record(all)?)
    }

    fn row(&mut self, own: &[String], result: Option<&Measured>) -> io::Result<()> {
        let Report { started, words, .. } = self.report;
        let target = self.report.targets_of(result).join(";");
        let session = [self.session.clone(), started.clone(), target, words.tags.join(";")];
        let old = self.repeated.iter().map(|at| &own[*at]);
        Ok(self.out.write_record(own.iter().chain(&session).chain(old))?)
    }
}

/// The id of a session, which is the name of its file without the extension.
fn session_id(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(String::new, |id| id.to_string_lossy().into_owned())
}

/// A row for a run of a command.
fn command_fields(
    report: &Report,
    command: &CommandResult,
    at: usize,
    run: &CommandRun,
) -> [String; COMMAND_HEADINGS.len()] {
    let moved =
        |of: fn(&Moved) -> u64| run.moved.as_ref().map_or_else(|_| String::new(), |m| of(m).to_string());
    let bytes = |known: &Known<u64>| known.as_ref().map_or_else(|_| String::new(), u64::to_string);
    let decimal = |known: &Known<f64>| known.as_ref().map_or_else(|_| String::new(), f64::to_string);
    [
        command.command.clone(),
        (at + 1).to_string(),
        run.exit.code().to_string(),
        run.seconds.to_string(),
        run.user_seconds.to_string(),
        run.system_seconds.to_string(),
        bytes(&run.peak_bytes),
        moved(|m| m.read_call_bytes),
        moved(|m| m.read_calls),
        moved(|m| m.fetched_bytes),
        bytes(&run.cached_read_bytes),
        moved(|m| m.write_call_bytes),
        moved(|m| m.write_calls),
        moved(|m| m.dirtied_bytes),
        bytes(&run.dirty_at_end_bytes),
        decimal(&run.sync_seconds),
        decimal(&run.stable_mb_per_s),
        run.syncs.as_ref().map_or_else(|_| String::new(), |syncs| syncs.count().to_string()),
        command.limiter.name.clone(),
        report.verdict.word().to_owned(),
    ]
}

/// A row per direction.
fn result_fields(result: &Measured) -> impl Iterator<Item = [String; RESULT_HEADINGS.len()]> {
    let all =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    all.into_iter().filter_map(|(word, figures)| Some(direction_fields(result, word, figures.as_ref()?)))
}

fn direction_fields(result: &Measured, word: &str, figures: &Figures) -> [String; RESULT_HEADINGS.len()] {
    // A number that a finding invalidates is no number.
    let number = |v: f64| if result.void { String::new() } else { v.to_string() };
    let end =
        |interval: Option<[f64; 2]>, i: usize| interval.map_or_else(String::new, |ends| number(ends[i]));
    let percentile = |p: &str| at_rank(Some(figures), p).map_or_else(String::new, number);
    [
        result.name.clone(),
        result.true_name.clone(),
        word.into(),
        result.void.to_string(),
        result.runs.len().to_string(),
        number(figures.mb_per_s),
        end(figures.mb_per_s_interval, 0),
        end(figures.mb_per_s_interval, 1),
        number(figures.iops),
        end(figures.iops_interval, 0),
        end(figures.iops_interval, 1),
        number(figures.depth_mean),
        percentile("50"),
        percentile("90"),
        percentile("95"),
        percentile("99"),
        percentile("99.9"),
        result.verdict.word().into(),
        result.limiter.name.clone(),
        accepted_ids(Some(result)),
    ]
}

/// Ids of the accepted findings that the numbers rest on.
fn accepted_ids(result: Option<&Measured>) -> String {
    result.map_or_else(String::new, |r| CheckId::list(&r.accepted, " "))
}

/// A percentile of latency in ns; `None` where nothing tells it.
fn at_rank(figures: Option<&Figures>, rank: &str) -> Option<f64> {
    figures?.latency_ns.percentiles.get(rank).copied().flatten().map(|ns| ns as f64)
}

/// A cell that was measured in its order. Percentiles and the device are those of all its runs, the rest that of the window.
fn cell_fields(result: Option<&Measured>, cell: &CellFigures) -> [String; CELL_HEADINGS.len()] {
    let void = result.is_some_and(|r| r.void);
    let number = |v: Option<f64>| v.filter(|_| !void).map_or_else(String::new, |v| v.to_string());
    let figures = result.and_then(|r| r.read.as_ref().or(r.write.as_ref()));
    let percentile = |p: &str| number(at_rank(figures, p));
    // Of a mix the columns without a direction are those of its reads.
    let writes = result.and_then(|r| r.write.as_ref()).filter(|_| result.is_some_and(|r| r.read.is_some()));
    let of_writes = |p: &str| number(at_rank(writes, p));
    let per_mib = cell.mb_per_s.zip(cell.mib_per_s).map(|(mb, mib)| mb / mib);
    let end = |i: usize| number(cell.interval.zip(per_mib).map(|(ends, scale)| ends[i] * scale));
    let seen = result.and_then(Measured::at_device).zip(cell.iops);
    let setting = setting_fields(&cell.setting);
    let rest = [
        (cell.iops.is_some()).to_string(),
        void.to_string(),
        cell.runs.to_string(),
        number(cell.mb_per_s),
        number(cell.iops),
        number(cell.latency_mean_ns),
        number(cell.latency_max_ns.map(|ns| ns as f64)),
        percentile("50"),
        percentile("90"),
        percentile("95"),
        percentile("99"),
        percentile("99.9"),
        number(seen.map(|(device, iops)| device.requests_per_s(iops))),
        number(seen.map(|(device, iops)| device.bytes_per_s(iops) / 1e6)),
        number(cell.cpu_ns_per_mib),
        result.map_or_else(String::new, |r| r.limiter.name.clone()),
        String::new(),
        end(0),
        end(1),
        of_writes("50"),
        of_writes("90"),
        of_writes("95"),
        of_writes("99"),
        of_writes("99.9"),
        result.map_or("", |r| r.verdict.word()).into(),
        accepted_ids(result),
    ];
    join_fields(setting, rest)
}

fn skipped_fields(cell: &Skipped) -> [String; CELL_HEADINGS.len()] {
    let mut rest: [String; CELL_HEADINGS.len() - SETTING_COLUMNS] = std::array::from_fn(|_| String::new());
    rest[0] = false.to_string();
    rest[SKIP_REASON_COLUMN].clone_from(&cell.why);
    join_fields(setting_fields(&cell.setting), rest)
}

fn setting_fields(setting: &Setting) -> [String; SETTING_COLUMNS] {
    [
        setting.work(),
        setting.block_bytes.to_string(),
        setting.depth.to_string(),
        setting.workers.to_string(),
        setting.engine.clone(),
        setting.cache.word().into(),
    ]
}

fn join_fields(
    setting: [String; SETTING_COLUMNS],
    rest: [String; CELL_HEADINGS.len() - SETTING_COLUMNS],
) -> [String; CELL_HEADINGS.len()] {
    let mut all = setting.into_iter().chain(rest);
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

fn interface_fields(row: &ApiRow, result: Option<&Measured>) -> [String; INTERFACE_HEADINGS.len()] {
    let number = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    let end = |interval: Option<[f64; 2]>, i: usize| number(interval.map(|ends| ends[i]));
    let device = |i: usize| number(row.device_bytes_per_byte.as_ref().ok().map(|d| d[i]));
    let after = row.stored_after.as_ref().and_then(|s| s.as_ref().ok());
    // Each work has one direction. What a finding invalidates has no number in any column.
    let measured = result.filter(|r| !r.void);
    let figures = measured.and_then(|r| r.read.as_ref().or(r.write.as_ref()));
    let percentile = |p: &str| number(at_rank(figures, p));
    let iops = figures.and_then(|f| f.iops_interval);
    let largest = after.and_then(|s| s.largest_piece_bytes);
    [
        row.interface.clone(),
        row.work.clone(),
        row.block_bytes.to_string(),
        number(row.mb_per_s),
        end(row.mb_per_s_interval, 0),
        end(row.mb_per_s_interval, 1),
        number(row.iops),
        number(row.synced_mb_per_s),
        end(row.synced_mb_per_s_interval, 0),
        end(row.synced_mb_per_s_interval, 1),
        number(row.p50_ns.map(|n| n as f64)),
        percentile("90"),
        percentile("95"),
        number(row.p99_ns.map(|n| n as f64)),
        percentile("99.9"),
        number(row.user_ns_per_byte),
        number(row.system_ns_per_byte),
        number(row.calls_per_mib.as_ref().ok().copied()),
        number(row.minor_faults_per_mib),
        number(row.major_faults_per_mib),
        device(0),
        device(1),
        number(row.coverage),
        number(row.cached_pages_at_start.as_ref().ok().map(|p| *p as f64)),
        row.stored_before.as_ref().map_or_else(|_| String::new(), |s| s.count.to_string()),
        after.map_or_else(String::new, |s| s.count.to_string()),
        largest.map_or_else(String::new, |b| b.to_string()),
        CheckId::list(&row.findings, " "),
        end(iops, 0),
        end(iops, 1),
        result.map_or("", |r| r.verdict.word()).into(),
        result.map_or_else(String::new, |r| r.limiter.name.clone()),
        number(row.run_seconds),
        number(row.run_bytes),
        number(row.stored_before.as_ref().ok().and_then(Extents::largest_share)),
        number(after.and_then(Extents::largest_share)),
        accepted_ids(result),
    ]
}

#[test]
fn every_row_names_its_session_and_percentiles_are_in_order() -> Result<(), Box<dyn std::error::Error>> {
    let mut report: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    report.session = Some("/x/sessions/20261127-1.fathom".into());
    report.words.tags = vec!["a".into(), "b,c".into()];
    let table = |report: &Report| -> Result<Vec<Vec<String>>, Box<dyn std::error::Error>> {
        let mut bytes = Vec::new();
        write_report(report, Style::default(), &mut bytes)?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&bytes[..]);
        let rows: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
        Ok(rows?.iter().map(|row| row.iter().map(str::to_owned).collect()).collect())
    };
    let value = |rows: &[Vec<String>], name: &str| {
        let at = rows[0].iter().position(|heading| heading == name);
        at.map(|at| rows[1][at].clone())
    };
    let rows = table(&report)?;
    assert_eq!(value(&rows, "session").as_deref(), Some("20261127-1"));
    assert_eq!(value(&rows, "tags").as_deref(), Some("a;b,c"));
    assert_eq!(value(&rows, "started").as_deref(), Some(report.started.as_str()));
    assert_eq!(value(&rows, "target").as_deref(), Some(report.machine.places[0].path.as_str()));
    assert_eq!(value(&rows, P99_9), value(&rows, P99_9_OLD));
    assert!(value(&rows, P99_9).is_some_and(|ns| !ns.is_empty()));
    let ranks: Vec<&str> = rows[0].iter().map(String::as_str).filter(|name| name.starts_with('p')).collect();
    assert_eq!(ranks, ["p50_ns", "p90_ns", "p95_ns", "p99_ns", P99_9, P99_9_OLD]);
    // The other tables have the same columns.
    let api = serde_json::from_str(include_str!("../../../tests/golden/pieces/api.json"))?;
    report.study = Studied::Interfaces(api);
    let rows = table(&report)?;
    assert_eq!(value(&rows, "session").as_deref(), Some("20261127-1"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    for table in [&RESULT_HEADINGS[..], &INTERFACE_HEADINGS, &CELL_HEADINGS] {
        let at = |name: &str| table.iter().position(|heading| *heading == name);
        let ranks = ["p50_ns", "p90_ns", "p95_ns", "p99_ns", P99_9].map(at);
        assert!(ranks.is_sorted() && ranks[0].is_some(), "{table:?}");
    }
    assert_eq!(CELL_HEADINGS[SETTING_COLUMNS + SKIP_REASON_COLUMN], "skipped_because");
    Ok(())
}
