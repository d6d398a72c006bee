//! The format `csv` (RFC 4180): tables for spreadsheets and scripts.
//!
//! Headings carry the units. An empty field is unknown or withheld. A report has one row per result and direction, per interface and work,
//! per cell of a grid measured in order, or per run of a command. Its last columns name the session, so that rows of many sessions fit into
//! one file. Findings are only in `json`.

use crate::{Content, Format, Style, Writer};
use csv::{Terminator, WriterBuilder};
use model::Known;
use model::command::{CommandResult, CommandRun, Moved};
use model::comparison::{Comparison, Comparisons, Metric, Pair};
use model::evidence::Extents;
use model::finding::CheckId;
use model::history::{Entry, Figure, Listing, Row, SessionTable};
use model::report::{Figures, Measured, Report, Verdict};
use model::study::{ApiRow, Studied};
use model::sweep::{CellFigures, Setting, Skipped};
use model::watch::{FlushRequests, Latency, Requests, Watched, WatchedDevice};
use std::io;
use std::io::Write;
use std::path::Path;

pub(super) static FORMAT: Format = Format {
    name: "csv",
    extension: "csv",
    content: Content::Text,
    has_brief: false,
    report: Some(Writer {
        about: "the table, one row per result and direction, or per interface and work",
        write: write_report,
    }),
    comparison: Some(Writer { about: "a line per number", write: write_comparison }),
    comparisons: Some(Writer { about: "a line per number and side", write: write_several }),
    plan: None,
    sessions: Some(Writer { about: "a line per session, lists joined by semicolons", write: write_list }),
    session_table: Some(Writer {
        about: "a line per session or device, four fields per result",
        write: write_session_table,
    }),
    pages: None,
    diagnosis: None,
    devices: None,
    verified: None,
    watched: Some(Writer { about: "a line per interval and device", write: write_watched }),
    load_over_time: None,
    captured: None,
    fitted: None,
};

/// Columns at the end of every table.
const SESSION_HEADINGS: [&str; 4] = ["session", "started", "target", "tags"];
const P99_9: &str = "p99_9_ns";
/// The old name of that column. Scripts use it, so the column is repeated under this name at the end.
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
/// Number of columns with the setting of a cell.
const SETTING_COLUMNS: usize = 6;
/// The column of the reason for a skipped cell, after its setting.
const SKIP_REASON_COLUMN: usize = 16;

fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
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

/// Writes rows and adds the columns that every table has.
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

/// Returns the id of a session: the name of its file without the extension.
fn session_id(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(String::new, |id| id.to_string_lossy().into_owned())
}

/// Returns the row of a run of a command.
fn command_fields(
    report: &Report,
    command: &CommandResult,
    at: usize,
    run: &CommandRun,
) -> [String; COMMAND_HEADINGS.len()] {
    let moved = |count: fn(&Moved) -> u64| {
        run.moved.as_ref().map_or_else(|_| String::new(), |m| count(m).to_string())
    };
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

/// Returns a row for each direction.
fn result_fields(result: &Measured) -> impl Iterator<Item = [String; RESULT_HEADINGS.len()]> {
    let all =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    all.into_iter().filter_map(|(word, figures)| Some(direction_fields(result, word, figures.as_ref()?)))
}

fn direction_fields(result: &Measured, word: &str, figures: &Figures) -> [String; RESULT_HEADINGS.len()] {
    // A number that a finding invalidates is withheld.
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

/// Returns the ids of the accepted findings that affect the numbers.
fn accepted_ids(result: Option<&Measured>) -> String {
    result.map_or_else(String::new, |r| CheckId::list(&r.accepted, " "))
}

/// Returns a percentile of latency in ns; `None` if it is unknown.
fn at_rank(figures: Option<&Figures>, rank: &str) -> Option<f64> {
    figures?.latency_ns.percentiles.get(rank).copied().flatten().map(|ns| ns as f64)
}

/// Returns the row of a cell that was measured in order. Percentiles and device counts cover all runs, the other values the window.
fn cell_fields(result: Option<&Measured>, cell: &CellFigures) -> [String; CELL_HEADINGS.len()] {
    let void = result.is_some_and(|r| r.void);
    let number = |v: Option<f64>| v.filter(|_| !void).map_or_else(String::new, |v| v.to_string());
    let figures = result.and_then(|r| r.read.as_ref().or(r.write.as_ref()));
    let percentile = |p: &str| number(at_rank(figures, p));
    // For a mix, the columns without a direction are those of the reads.
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
    // Each work has one direction. A result that a finding invalidates has no numbers.
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

const COMPARISON_HEADINGS: [&str; 18] = [
    "side",
    "result",
    "number",
    "unit",
    "a",
    "b",
    "ratio",
    "ratio_low",
    "ratio_high",
    "margin",
    "answer",
    "visible",
    "runs_a",
    "runs_b",
    "runs_needed",
    "why",
    "tolerance",
    "runs_to_halve",
];

const REASON_COLUMN: usize = 15;

fn write_comparison(comparison: &Comparison, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    write_sides([("B", comparison)].into_iter(), to)
}

fn write_several(comparisons: &Comparisons, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    write_sides(comparisons.others.iter().map(|other| (other.name.as_str(), &other.comparison)), to)
}

fn write_sides<'c>(
    sides: impl Iterator<Item = (&'c str, &'c Comparison)>,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let mut out: csv::Writer<_> = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(to);
    out.write_record(COMPARISON_HEADINGS)?;
    for (side, pair) in sides.flat_map(|(side, comparison)| comparison.pairs.iter().map(move |p| (side, p))) {
        if pair.metrics.is_empty() {
            out.write_record(not_compared_fields(side, pair))?;
        }
        pair.metrics.iter().try_for_each(|metric| out.write_record(number_fields(side, pair, metric)))?;
    }
    out.flush()
}

fn number_fields(side: &str, pair: &Pair, metric: &Metric) -> [String; COMPARISON_HEADINGS.len()] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    [
        side.into(),
        pair.name.clone(),
        metric.name.clone(),
        metric.unit.clone(),
        metric.a.to_string(),
        metric.b.to_string(),
        metric.ratio.to_string(),
        number(metric.interval.map(|ends| ends[0])),
        number(metric.interval.map(|ends| ends[1])),
        metric.margin.to_string(),
        metric.answer.word().into(),
        number(metric.could_have_seen),
        metric.a_runs.len().to_string(),
        metric.b_runs.len().to_string(),
        number(metric.runs_needed.map(f64::from)),
        metric.why.clone(),
        number(metric.tolerance),
        number(metric.runs_to_halve.map(f64::from)),
    ]
}

/// Returns the line of a result that is not compared, with the reason.
fn not_compared_fields(side: &str, pair: &Pair) -> [String; COMPARISON_HEADINGS.len()] {
    let mut row: [String; COMPARISON_HEADINGS.len()] = std::array::from_fn(|_| String::new());
    side.clone_into(&mut row[0]);
    row[1].clone_from(&pair.name);
    pair.refusal().word().clone_into(&mut row[10]);
    row[REASON_COLUMN] = pair.refused.clone().unwrap_or_default();
    row
}

const LIST_HEADINGS: [&str; 21] = [
    "id",
    "started",
    "verdict",
    "ending",
    "title",
    "headline",
    "value",
    "unit",
    "low",
    "high",
    "targets",
    "devices",
    "jobs",
    "runs",
    "hosts",
    "fingerprint",
    "findings",
    "version",
    "tags",
    "notes",
    "path",
];

fn write_list(listing: &Listing, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    out.write_record(LIST_HEADINGS)?;
    listing.entries.iter().try_for_each(|entry| out.write_record(entry_fields(entry)))?;
    out.flush()
}

/// Returns the fields of [`LIST_HEADINGS`]: lists are joined by semicolons, and unknown values are empty.
fn entry_fields(entry: &Entry) -> [String; LIST_HEADINGS.len()] {
    let number = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    let headline = entry.headline.as_ref();
    let bound = |at: usize| number(headline.and_then(|h| h.interval).map(|i| i[at]));
    [
        entry.id.clone(),
        text(&entry.started),
        entry.verdict_word().unwrap_or_default().to_owned(),
        entry.unplanned().unwrap_or("complete").to_owned(),
        text(&entry.title),
        headline.map(|h| h.name.clone()).unwrap_or_default(),
        number(headline.and_then(|h| h.value)),
        headline.map(|h| h.unit.clone()).unwrap_or_default(),
        bound(0),
        bound(1),
        entry.targets.join(";"),
        entry.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(";"),
        entry.jobs.join(";"),
        entry.runs.to_string(),
        entry.hosts.join(";"),
        text(&entry.fingerprint),
        entry.findings.iter().map(|f| f.id.to_string()).collect::<Vec<_>>().join(";"),
        text(&entry.version),
        entry.words.tags.join(";"),
        entry.words.notes.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(";"),
        entry.path.clone(),
    ]
}

/// Columns before those of the results.
const TABLE_HEADINGS: [&str; 6] = ["session", "started", "verdict", "device", "targets", "tags"];

fn write_session_table(sessions: &SessionTable, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    let columns = sessions.columns.iter().flat_map(|column| {
        let name = format!("{} {}", column.name, column.unit);
        [name.clone(), format!("{name} low"), format!("{name} high"), format!("{} verdict", column.name)]
    });
    out.write_record(TABLE_HEADINGS.map(str::to_owned).into_iter().chain(columns))?;
    for row in &sessions.rows {
        out.write_record(
            session_fields(row).into_iter().chain(row.figures.iter().flat_map(|f| figure_fields(f.as_ref()))),
        )?;
    }
    out.flush()
}

fn session_fields(row: &Row) -> [String; TABLE_HEADINGS.len()] {
    [
        row.session.clone(),
        row.started.clone().unwrap_or_default(),
        row.verdict.map_or("", Verdict::word).into(),
        row.device.clone().unwrap_or_default(),
        row.targets.join(";"),
        row.tags.join(";"),
    ]
}

fn figure_fields(figure: Option<&Figure>) -> [String; 4] {
    let Some(figure) = figure else { return Default::default() };
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let end = |at: usize| number(figure.interval.map(|ends| ends[at]));
    [number(figure.value), end(0), end(1), figure.verdict.word().into()]
}

const WATCH_HEADINGS: [&str; 40] = [
    "time",
    "device",
    "level",
    "seconds",
    "read_per_s",
    "read_mb_per_s",
    "read_request_bytes",
    "read_await_ms",
    "read_merged_per_s",
    "read_merged_percent",
    "write_per_s",
    "write_mb_per_s",
    "write_request_bytes",
    "write_await_ms",
    "write_merged_per_s",
    "write_merged_percent",
    "discard_per_s",
    "discard_mb_per_s",
    "discard_request_bytes",
    "discard_await_ms",
    "flush_per_s",
    "flush_await_ms",
    "depth_mean",
    "in_flight",
    "util_percent",
    "load_at_least_percent",
    "load_at_most_percent",
    "load_session",
    "read_p50_ms",
    "read_p99_ms",
    "read_max_ms",
    "write_p50_ms",
    "write_p99_ms",
    "write_max_ms",
    "discard_p50_ms",
    "discard_p99_ms",
    "discard_max_ms",
    "flush_p50_ms",
    "flush_p99_ms",
    "flush_max_ms",
];

fn write_watched(watched: &Watched, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    if watched.first {
        out.write_record(WATCH_HEADINGS)?;
    }
    for device in watched.devices.iter().filter(|d| !watched.layout.active_only || d.is_active()) {
        out.write_record(device_fields(&watched.time, device))?;
    }
    out.flush()
}

fn device_fields(time: &str, device: &WatchedDevice) -> Vec<String> {
    let figures = device.figures.as_ref().ok();
    let load = device.load.as_ref().and_then(|l| l.as_ref().ok());
    let mut all = vec![time.to_owned(), device.name.clone(), device.level.to_string()];
    all.push(number_field(figures.map(|f| f.seconds)));
    all.extend(request_fields(figures.map(|f| f.read)));
    all.extend(request_fields(figures.map(|f| f.write)));
    all.extend(request_fields(figures.and_then(|f| f.discard)).into_iter().take(4));
    let flush: Option<FlushRequests> = figures.and_then(|f| f.flush);
    all.extend([number_field(flush.map(|f| f.per_s)), number_field(flush.and_then(|f| f.await_ms))]);
    all.push(number_field(figures.map(|f| f.depth_mean)));
    all.push(figures.map_or_else(String::new, |f| f.in_flight.to_string()));
    all.push(number_field(figures.map(|f| f.util_percent)));
    all.push(number_field(load.map(|l| l.at_least_percent)));
    all.push(number_field(load.and_then(|l| l.at_most_percent)));
    all.push(load.and_then(|l| l.sessions.first()).map_or_else(String::new, |s| s.session.clone()));
    let latency = device.latency.as_ref().and_then(|l| l.as_ref().ok());
    let directions = [
        latency.map(|l| l.read),
        latency.map(|l| l.write),
        latency.map(|l| l.discard),
        latency.map(|l| l.flush),
    ];
    all.extend(directions.into_iter().flat_map(|known| latency_fields(known.flatten())));
    all
}

fn latency_fields(latency: Option<Latency>) -> [String; 3] {
    [
        number_field(latency.and_then(|l| l.p50_ms)),
        number_field(latency.and_then(|l| l.p99_ms)),
        number_field(latency.map(|l| l.max_ms)),
    ]
}

fn request_fields(requests: Option<Requests>) -> [String; 6] {
    [
        number_field(requests.map(|r| r.per_s)),
        number_field(requests.map(|r| r.mb_per_s)),
        number_field(requests.and_then(|r| r.request_bytes)),
        number_field(requests.and_then(|r| r.await_ms)),
        number_field(requests.map(|r| r.merged_per_s)),
        number_field(requests.and_then(|r| r.merged_percent)),
    ]
}

fn number_field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

#[test]
fn every_row_names_its_session_and_percentiles_are_in_order() -> Result<(), Box<dyn std::error::Error>> {
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
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
    let api = serde_json::from_str(include_str!("../../tests/golden/pieces/api.json"))?;
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

#[test]
fn each_result_has_four_fields_and_a_withheld_one_only_its_verdict() -> Result<(), Box<dyn std::error::Error>>
{
    let figure = |value, verdict| {
        Some(Figure { name: "a".into(), unit: "IOPS".into(), value, interval: None, verdict })
    };
    let row = Row {
        session: "1".into(),
        started: None,
        verdict: Some(Verdict::Invalid),
        device: None,
        targets: vec!["/a".into(), "/b".into()],
        tags: Vec::new(),
        figures: vec![figure(Some(2.5), Verdict::Valid), figure(None, Verdict::Invalid), None],
    };
    let column = |name: &str| model::history::Column { name: name.into(), unit: "IOPS".into() };
    let columns = ["a", "b", "c"].map(column).to_vec();
    let mut bytes = Vec::new();
    write_session_table(
        &SessionTable { columns, rows: vec![row], ..SessionTable::default() },
        Style::default(),
        &mut bytes,
    )?;
    let text = String::from_utf8(bytes)?;
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    assert!(
        heading.starts_with("session,started,")
            && heading.ends_with("c IOPS,c IOPS low,c IOPS high,c verdict")
    );
    assert_eq!(lines.next(), Some("1,,INVALID,,/a;/b,,2.5,,,VALID,,,,INVALID,,,,"));
    Ok(())
}

#[test]
fn headings_are_printed_once_and_each_line_has_all_fields() -> io::Result<()> {
    let mut watched = crate::fixture::watched();
    let mut bytes = Vec::new();
    write_watched(&watched, Style::default(), &mut bytes)?;
    watched.first = false;
    write_watched(&watched, Style::default(), &mut bytes)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|l| l.split(',').count() == WATCH_HEADINGS.len()), "{text}");
    assert!(lines[0].starts_with("time,device,level,seconds,read_per_s"), "{text}");
    let known: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((known[1], known[4], known[13], known[20], known[26]), ("loop0", "500", "", "", "40"));
    assert_eq!(&known[28..34], ["0.07", "0.31", "1.25", "", "", ""], "no write completed");
    assert_eq!(&known[37..], ["0.07", "", "1.25"]);
    // An unknown value is not zero.
    assert!(lines[2].split(',').skip(3).all(str::is_empty), "{text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::entry;
    use model::report::Ending;

    #[test]
    fn unknown_values_are_empty_and_the_ending_is_separate_from_the_verdict() {
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        assert_eq!(entry_fields(&void)[2..4], ["SUSPECT".to_owned(), "interrupted".to_owned()]);
        assert_eq!(entry_fields(&void)[6], "");
    }

    #[test]
    fn each_heading_has_a_field_and_special_characters_are_quoted() -> Result<(), Box<dyn std::error::Error>>
    {
        let odd = Entry { title: Some("a,\"b\"".into()), ..entry("x") };
        let mut bytes = Vec::new();
        write_list(&Listing { entries: vec![odd], ..Listing::default() }, Style::default(), &mut bytes)?;
        let text = String::from_utf8(bytes)?;
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(LIST_HEADINGS.join(",").as_str()));
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with("x,2026-11-21T16:12:26+01:00,SUSPECT,complete,\"a,\"\"b\"\"\""), "{line}");
        assert!(line.contains(",4K random read,2000,IOPS,1900,2100,/a;/b,"), "{line}");
        Ok(())
    }
}
