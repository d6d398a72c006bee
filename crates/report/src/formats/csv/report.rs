//! A report as CSV (RFC 4180).
//!
//! For: one row per result and direction, per interface and work, or per cell of a grid measured in order; an empty field is not known. Not for: findings and their
//! evidence; those are in `json`. Numbers have their unit in the heading, and a point.

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

const RESULTS: [&str; 20] = [
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
    "p99_ns",
    "p90_ns",
    "p95_ns",
    "p99.9_ns",
    "verdict",
    "limited_by",
    "accepted",
];
const INTERFACES: [&str; 37] = [
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
    "p99_ns",
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
    "p90_ns",
    "p95_ns",
    "p99.9_ns",
    "verdict",
    "limited_by",
    "run_seconds",
    "run_bytes",
    "largest_piece_share_before",
    "largest_piece_share_after",
    "accepted",
];

const COMMANDS: [&str; 20] = [
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

const CELLS: [&str; 32] = [
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
    "p99_ns",
    "device_iops",
    "device_mb_per_s",
    "cpu_ns_per_mib",
    "limited_by",
    "skipped_because",
    "mb_per_s_low",
    "mb_per_s_high",
    "p90_ns",
    "p95_ns",
    "p99.9_ns",
    "write_p50_ns",
    "write_p90_ns",
    "write_p95_ns",
    "write_p99_ns",
    "write_p99.9_ns",
    "verdict",
    "accepted",
];
/// Columns of a cell that say what it is.
const SETTING: usize = 6;

pub(super) fn write(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(to);
    match &report.study {
        Studied::Interfaces(api) => {
            out.write_record(INTERFACES)?;
            let result = |row: &ApiRow| report.results.get(row.result);
            api.rows.iter().try_for_each(|row| out.write_record(of_interface(row, result(row))))?;
        }
        Studied::Sweep(sweep) if sweep.is_in_order() => {
            out.write_record(CELLS)?;
            sweep.cells.iter().try_for_each(|cell| out.write_record(of_cell(report, cell)))?;
            sweep.skipped.iter().try_for_each(|cell| out.write_record(of_skipped(cell)))?;
        }
        Studied::Commands(results) => {
            out.write_record(COMMANDS)?;
            for command in &results.commands {
                for (at, run) in command.runs.iter().enumerate() {
                    out.write_record(of_command(report, command, at, run))?;
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
            out.write_record(RESULTS)?;
            report.results.iter().flat_map(of_result).try_for_each(|row| out.write_record(row))?;
        }
    }
    out.flush()
}

/// A row for a run of a command.
fn of_command(
    report: &Report,
    command: &CommandResult,
    at: usize,
    run: &CommandRun,
) -> [String; COMMANDS.len()] {
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
fn of_result(result: &Measured) -> impl Iterator<Item = [String; RESULTS.len()]> {
    let all =
        [("read", &result.read), ("write", &result.write), ("trim", &result.trim), ("sync", &result.sync)];
    all.into_iter().filter_map(|(word, figures)| Some(of_direction(result, word, figures.as_ref()?)))
}

fn of_direction(result: &Measured, word: &str, figures: &Figures) -> [String; RESULTS.len()] {
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
        percentile("99"),
        percentile("90"),
        percentile("95"),
        percentile("99.9"),
        result.verdict.word().into(),
        result.limiter.name.clone(),
        accepted(Some(result)),
    ]
}

/// Ids of the accepted findings that the numbers rest on.
fn accepted(result: Option<&Measured>) -> String {
    result.map_or_else(String::new, |r| CheckId::list(&r.accepted, " "))
}

/// A percentile of latency in ns; `None` where nothing tells it.
fn at_rank(figures: Option<&Figures>, rank: &str) -> Option<f64> {
    figures?.latency_ns.percentiles.get(rank).copied().flatten().map(|ns| ns as f64)
}

/// A cell that was measured in its order. Percentiles and the device are those of all its runs, the rest that of the window.
fn of_cell(report: &Report, cell: &CellFigures) -> [String; CELLS.len()] {
    let result = cell.result.and_then(|at| report.results.get(at));
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
    let setting = of_setting(&cell.setting);
    let rest = [
        (cell.iops.is_some()).to_string(),
        void.to_string(),
        cell.runs.to_string(),
        number(cell.mb_per_s),
        number(cell.iops),
        number(cell.latency_mean_ns),
        number(cell.latency_max_ns.map(|ns| ns as f64)),
        percentile("50"),
        percentile("99"),
        number(seen.map(|(device, iops)| device.requests_per_s(iops))),
        number(seen.map(|(device, iops)| device.bytes_per_s(iops) / 1e6)),
        number(cell.cpu_ns_per_mib),
        result.map_or_else(String::new, |r| r.limiter.name.clone()),
        String::new(),
        end(0),
        end(1),
        percentile("90"),
        percentile("95"),
        percentile("99.9"),
        of_writes("50"),
        of_writes("90"),
        of_writes("95"),
        of_writes("99"),
        of_writes("99.9"),
        result.map_or("", |r| r.verdict.word()).into(),
        accepted(result),
    ];
    joined(setting, rest)
}

fn of_skipped(cell: &Skipped) -> [String; CELLS.len()] {
    let mut rest: [String; CELLS.len() - SETTING] = std::array::from_fn(|_| String::new());
    rest[0] = false.to_string();
    rest[13].clone_from(&cell.why);
    joined(of_setting(&cell.setting), rest)
}

fn of_setting(setting: &Setting) -> [String; SETTING] {
    [
        setting.work(),
        setting.block_bytes.to_string(),
        setting.depth.to_string(),
        setting.workers.to_string(),
        setting.engine.clone(),
        setting.cache.word().into(),
    ]
}

fn joined(setting: [String; SETTING], rest: [String; CELLS.len() - SETTING]) -> [String; CELLS.len()] {
    let mut all = setting.into_iter().chain(rest);
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

fn of_interface(row: &ApiRow, result: Option<&Measured>) -> [String; INTERFACES.len()] {
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
        number(row.p99_ns.map(|n| n as f64)),
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
        percentile("90"),
        percentile("95"),
        percentile("99.9"),
        result.map_or("", |r| r.verdict.word()).into(),
        result.map_or_else(String::new, |r| r.limiter.name.clone()),
        number(row.run_seconds),
        number(row.run_bytes),
        number(row.stored_before.as_ref().ok().and_then(Extents::largest_share)),
        number(after.and_then(Extents::largest_share)),
        accepted(result),
    ]
}
