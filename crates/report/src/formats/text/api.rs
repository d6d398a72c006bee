//! The table of interfaces: the same bytes through each, one work after another.
//!
//! For: a report that compares interfaces; it stands in place of the table of results. Not for: other reports.

use crate::page::{Page, half_width, supported, verdict_mark};
use crate::table::Table;
use model::Known;
use model::api::{Api, ApiRow};
use model::evidence::Extents;
use model::finding::{Finding, Outcome, Severity};
use model::not_measured::by_reason;
use model::report::{Measured, Report};
use model::units::{show_bytes, show_count, show_ns, show_rate, show_share};

const INTERFACE_HEADINGS: [&str; 12] = [
    "interface",
    "verdict",
    "MB/s",
    "±95 %",
    "synced",
    "p50",
    "p99",
    "user",
    "kernel",
    "calls",
    "faults",
    "device",
];
/// Columns that leave where there is no room, the first of them first.
const INTERFACE_DROP_ORDER: [usize; 8] = [10, 9, 11, 5, 7, 8, 4, 6];
/// Headings of the table of runs, and its columns that leave.
const INTERFACE_RUN_HEADINGS: [&str; 5] = ["interface", "run time", "bytes", "pieces", "largest piece"];
const INTERFACE_RUN_DROP_ORDER: [usize; 1] = [4];
/// Most notes that are shown: hundreds of runs say the same with other numbers.
const MAX_NOTES: usize = 4;
/// Part of the span that is as good as all, or as half.
const COVERAGE_TOLERANCE: f64 = 0.005;

pub(super) fn show_interfaces(out: &mut Page, api: &Api, report: &Report, all: bool) {
    out.table(&interface_table(api, &report.results));
    out.prose(
        "",
        "",
        "synced: MB/s with the final sync in the time; user, kernel: ns of CPU per byte, of the whole process; calls, faults: \
         system calls and page faults per MiB; device: bytes it moved per byte; - = not known.",
    );
    if all {
        show_interface_notes(out, api);
        out.line("");
        out.table(&interface_run_table(api));
        out.prose(
            "",
            "",
            "run time, bytes: of one run, the final sync aside; pieces: extents of the file, before the first run -> after the \
             last; largest piece: its share of the file; - = not known.",
        );
    }
    out.line("");
    show_recommendations(out, api, report);
}

/// Why each is recommended, where the answer has not said that.
fn show_recommendations(out: &mut Page, api: &Api, report: &Report) {
    let said = |words: &str| report.answer.as_ref().is_some_and(|answer| answer.sentence == words);
    if api.advice.is_empty() || api.advice.iter().all(|advice| said(&advice.sentence)) {
        return;
    }
    out.line("Which one to use");
    for advice in &api.advice {
        out.prose("  ", "    ", &advice.sentence);
    }
    for none in &api.no_advice {
        out.prose("  ", "    ", &format!("{}: no recommendation, because {}.", none.work, none.why));
    }
    out.line("");
}

/// How long a run of each took, and what became of the file.
fn interface_run_table(api: &Api) -> Table {
    group_by_work(&api.rows, Table::new(&INTERFACE_RUN_HEADINGS, &INTERFACE_RUN_DROP_ORDER), |row| {
        let number = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
        vec![
            format!("  {}", row.interface),
            number(row.run_seconds, |s| show_ns(1e9 * s)),
            number(row.run_bytes, |bytes| show_bytes(bytes.round() as u64)),
            before_and_after(row, |extents| Some(show_count(extents.count as f64))),
            before_and_after(row, |extents| extents.largest_share().map(show_share)),
        ]
    })
}

/// `1 -> 8,270`; one value where nothing was written.
fn before_and_after(row: &ApiRow, of: impl Fn(&Extents) -> Option<String>) -> String {
    let shown = |extents: &Known<Extents>| extents.as_ref().ok().and_then(&of).unwrap_or_else(|| "-".into());
    let before = shown(&row.stored_before);
    row.stored_after.as_ref().map_or(before.clone(), |after| format!("{before} -> {}", shown(after)))
}

/// A row for each interface, below the work that was done through it.
fn group_by_work(rows: &[ApiRow], mut table: Table, cells: impl Fn(&ApiRow) -> Vec<String>) -> Table {
    let mut work = "";
    for row in rows {
        let cells = cells(row);
        if row.work != work {
            work = &row.work;
            let title =
                std::iter::once(format!("{work}:")).chain(cells.iter().skip(1).map(|_| String::new()));
            table.add(title.collect::<Vec<_>>());
        }
        table.add(cells);
    }
    table
}

/// What each interface made of its work.
pub(super) fn interface_table(api: &Api, results: &[Measured]) -> Table {
    let table = Table::new(&INTERFACE_HEADINGS, &INTERFACE_DROP_ORDER).aligned(1, true);
    group_by_work(&api.rows, table, |row| interface_cells(row, results.get(row.result)).to_vec())
}

/// How the rows came about, and what could not be measured.
fn show_interface_notes(out: &mut Page, api: &Api) {
    for note in [cold_cache_note(&api.rows), coverage_note(&api.rows), missing_counts_note(&api.rows)]
        .into_iter()
        .flatten()
    {
        out.prose("  ", "    ", &note);
    }
    for note in api.rows.iter().filter_map(extents_note) {
        out.prose("  ", "    ", &note);
    }
    if !api.not_measured.is_empty() {
        out.line("");
        out.line("Not measured");
        for (names, why) in by_reason(&api.not_measured) {
            let names = if names.is_empty() { String::new() } else { shortened_list(&names) + ": " };
            out.prose("  ", "    ", &format!("{names}{why}."));
        }
    }
}

fn interface_cells(row: &ApiRow, result: Option<&Measured>) -> [String; INTERFACE_HEADINGS.len()] {
    let rate = |v: Option<f64>| v.map_or_else(|| "-".into(), show_rate);
    let time = |v: Option<u64>| v.map_or_else(|| "-".into(), |ns| show_ns(ns as f64));
    let fine = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.2}"));
    let faults = row.minor_faults_per_mib.zip(row.major_faults_per_mib).map(|(a, b)| a + b);
    let device = match &row.device_bytes_per_byte {
        Ok([read, written]) if *read > COVERAGE_TOLERANCE && *written > COVERAGE_TOLERANCE => {
            format!("{read:.2} + {written:.2}")
        }
        Ok([read, written]) => format!("{:.2}", read + written),
        Err(_) => "-".into(),
    };
    [
        format!("  {}", row.interface),
        result.map_or_else(String::new, verdict_mark),
        row.mb_per_s.map_or_else(|| "-".into(), |v| supported(v, row.mb_per_s_interval)),
        row.mb_per_s.map_or_else(|| "-".into(), |v| half_width(v, row.mb_per_s_interval)),
        if row.stored_after.is_some() {
            row.synced_mb_per_s.map_or_else(|| "-".into(), |v| supported(v, row.synced_mb_per_s_interval))
        } else {
            String::new()
        },
        time(row.p50_ns),
        time(row.p99_ns),
        fine(row.user_ns_per_byte),
        fine(row.system_ns_per_byte),
        row.calls_per_mib.as_ref().map_or_else(|_| "-".into(), |v| show_rate(*v)),
        rate(faults),
        device,
    ]
}

/// Whether every run began cold.
fn cold_cache_note(rows: &[ApiRow]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let warm: Vec<&ApiRow> = rows.iter().filter(|r| r.cached_pages_at_start != Ok(0)).collect();
    let Some(first) = warm.first() else {
        let below = if rows.iter().all(|r| r.device_bytes_per_byte.is_err()) {
            " What lies below, where no device can be seen, may have kept it."
        } else {
            ""
        };
        return Some(format!(
            "Every run began with an empty page cache: not a page of the file was in the page cache.{below}"
        ));
    };
    let (began, why) = match &first.cached_pages_at_start {
        Ok(pages) => ("did not begin", format!("{} pages were in the page cache", show_count(*pages as f64))),
        Err(why) => ("may not have begun", why.clone()),
    };
    Some(format!(
        "{} of {} rows {began} with an empty page cache; {}: {why}.",
        warm.len(),
        rows.len(),
        named(first)
    ))
}

/// How much of the span the runs touched.
fn coverage_note(rows: &[ApiRow]) -> Option<String> {
    let shares = || rows.iter().filter_map(|row| Some((row.coverage?, row)));
    let by_share = |a: &(f64, &ApiRow), b: &(f64, &ApiRow)| a.0.total_cmp(&b.0);
    let ((least, first), (most, last)) = (shares().min_by(by_share)?, shares().max_by(by_share)?);
    let touched = if most - least <= COVERAGE_TOLERANCE {
        show_share(most)
    } else {
        format!("from {} ({}) to {} ({})", show_share(least), named(first), show_share(most), named(last))
    };
    Some(format!(
        "All rows of a pattern touch the same blocks in the same order, until the time of a run is over or its work is done: {touched} of \
         the span."
    ))
}

/// Why there are no counts, each reason once.
fn missing_counts_note(rows: &[ApiRow]) -> Option<String> {
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for row in rows {
        let calls = row.calls_per_mib.as_ref().err().map(|why| (format!("calls of {}", row.interface), why));
        let device = row.device_bytes_per_byte.as_ref().err().map(|why| ("device".to_owned(), why));
        for (what, why) in calls.into_iter().chain(device) {
            // One reason for all interfaces is named with the first of them.
            if reasons.iter().all(|(_, known)| known != why) {
                reasons.push((what, why));
            }
        }
    }
    let reasons: Vec<String> = reasons.into_iter().map(|(what, why)| format!("{what}: {why}")).collect();
    (!reasons.is_empty()).then(|| format!("Not counted: {}.", reasons.join("; ")))
}

/// What became of the file, where it is stored otherwise than before.
fn extents_note(row: &ApiRow) -> Option<String> {
    let Some(Ok(after)) = &row.stored_after else { return None };
    match &row.stored_before {
        Ok(before) if before == after => None,
        Ok(before) => Some(format!(
            "{}: the file was stored as {} and is as {}.",
            named(row),
            describe_extents(before),
            describe_extents(after)
        )),
        Err(why) => {
            Some(format!("{}: the file is stored as {}; before: {why}.", named(row), describe_extents(after)))
        }
    }
}

/// `3 extents, 98 % of it in one piece`.
fn describe_extents(extents: &Extents) -> String {
    let mut words =
        format!("{} extent{}", show_count(extents.count as f64), if extents.count == 1 { "" } else { "s" });
    if let Some(share) = extents.largest_share() {
        words += &format!(", {} of it in one piece", show_share(share));
    }
    for (bytes, word) in [
        (extents.hole_bytes, "holes"),
        (extents.unwritten_bytes, "never written"),
        (extents.inline_bytes, "inline"),
        (extents.encoded_bytes, "compressed or encrypted"),
        (extents.shared_bytes, "shared"),
    ] {
        if bytes > 0 {
            words += &format!(", {} {word}", show_bytes(bytes));
        }
    }
    words
}

fn named(row: &ApiRow) -> String {
    format!("{}, {}", row.interface, row.work)
}

/// `a; b and 3 others`.
fn shortened_list(names: &[&str]) -> String {
    match names {
        [first, second, rest @ ..] if !rest.is_empty() => {
            let others = if rest.len() == 1 { "other" } else { "others" };
            format!("{first}; {second} and {} {others}", rest.len())
        }
        few => few.join("; "),
    }
}

/// The report with the findings alone that act, each once: hundreds of rows repeat them, and the JSON has them all.
pub(super) fn with_distinct_findings(report: &Report) -> Report {
    let mut report = report.clone();
    let all = report.findings.len();
    let acts =
        |f: &Finding| f.outcome == Outcome::Finding && !f.accepted && f.severity < Some(Severity::Note);
    let mut kept: Vec<(Finding, usize)> = Vec::new();
    for finding in report.findings.drain(..).filter(acts) {
        match kept.iter_mut().find(|(k, _)| (&k.id, k.severity) == (&finding.id, finding.severity)) {
            Some((_, others)) => *others += finding.about.len(),
            None => kept.push((finding, 0)),
        }
    }
    let notes = report.notes.len();
    report.notes.truncate(MAX_NOTES);
    let left = all - kept.len() + notes - report.notes.len();
    report.findings = kept.into_iter().map(|(finding, others)| mention_others(finding, others)).collect();
    if left > 0 {
        report.notes.push(format!(
            "{} more answers of the checks and notes are in the JSON.",
            show_count(left as f64)
        ));
    }
    report
}

fn mention_others(mut finding: Finding, others: usize) -> Finding {
    if others > 0 {
        let rows = if others == 1 { "row" } else { "rows" };
        let others = show_count(others as f64);
        finding.sentence += &format!(" Also affects {others} more {rows}.");
    }
    finding
}
