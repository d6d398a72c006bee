//! The tables of studies, which replace the table of results: layers, interfaces, targets, numbers of hosts, and load curves.
//!
//! With `--verbose`, a load curve also has a small plot. Otherwise only the most important of many loads are printed.

use super::results;
use crate::page::Page;
use crate::view::findings::{affects_number, full_report_hint};
use crate::view::lists::{count_of, plural};
use crate::view::numbers::{interval_in_parentheses, percentile_ns};
use crate::view::studies::{
    COVERAGE_TOLERANCE, OTHER_BLOCK_SIZES, describe_raw_rate, host_count_table, interface_run_table,
    interface_table, layer_table, load_table, raw_rate, shown_loads, target_table,
};
use model::distinct;
use model::evidence::Extents;
use model::figures::{Layers, by_reason};
use model::finding::Checked;
use model::report::{Measured, Report};
use model::study::{Api, ApiRow, LoadCurve, LoadPoint, LoadState, Scaling, Targets};
use model::units::{show_bytes, show_count, show_counted, show_ns, show_rate, show_share};

pub(super) fn show_layers(out: &mut Page, layers: &Layers, results: &[Measured]) {
    out.table(&layer_table(layers, results));
    out.legend(
        "fathom IOPS, device IOPS: operations per second x bytes of each; in parentheses: a finding invalidates the number. Latencies are means. against: the change from another row; its 95 % \
         interval is over rounds.",
    );
    for missing in &layers.missing {
        out.note(&format!("Not measured: {missing}."));
    }
    out.line("");
}

/// Maximum number of notes: hundreds of runs repeat the same notes with other numbers.
const MAX_NOTES: usize = 4;

pub(super) fn show_interfaces(out: &mut Page, api: &Api, report: &Report, all: bool) {
    out.table(&interface_table(api, &report.results));
    out.legend("synced: MB/s including the final sync; user, kernel: ns of CPU per byte, of the whole process; calls, faults: \
         system calls and page faults per MiB; device: bytes that the device moved, for all processes, per byte of the \
         row; with a +, read and written; - = not known.",
    );
    out.note(OTHER_BLOCK_SIZES);
    for (direction, writes) in [("reads", false), ("writes", true)] {
        if let Some(row) = raw_rate(api, &report.results, writes) {
            out.note(&format!("Compare {direction} with {}", describe_raw_rate(row)));
        }
    }
    if all {
        show_interface_notes(out, api);
        out.line("");
        out.table(&interface_run_table(api));
        out.legend("run time, bytes: of one run, without the final sync; pieces: extents of the file, before the first run -> after the \
             last; largest piece: its share of the file; - = not known.",
        );
    }
    out.line("");
    show_recommendations(out, api, report);
}

/// Prints the recommended interface for each kind of work, or why there is no recommendation, unless the answer already states it.
fn show_recommendations(out: &mut Page, api: &Api, report: &Report) {
    let answer = report.answer.as_ref().map_or("", |answer| answer.sentence.as_str());
    let advice = api.advice.iter().map(|advice| advice.sentence.clone());
    let advice = advice.filter(|sentence| *sentence != answer);
    let none = api.no_advice.iter().filter(|none| !answer.contains(&none.why));
    let none = none.map(|none| format!("{}: no recommendation, because {}.", none.work, none.why));
    let sentences: Vec<String> = advice.chain(none).collect();
    if sentences.is_empty() {
        return;
    }
    out.line("Which interface to use");
    for sentence in &sentences {
        out.note(sentence);
    }
    out.line("");
}

#[test]
fn the_reason_for_no_recommendation_is_printed_once() -> serde_json::Result<()> {
    use model::report::{AnswerWord, ReportAnswer};
    let mut api: Api = serde_json::from_str(include_str!("../../../tests/golden/pieces/api.json"))?;
    let mut report: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let none = |work: &str, why: &str| model::study::NoAdvice { work: work.into(), why: why.into() };
    api.no_advice = vec![none("4K random write", "of this"), none("1M random write", "of that")];
    let shown = |api: &Api, report: &Report| {
        let mut page = Page::new(crate::Style { width: 200, ..crate::Style::default() });
        show_recommendations(&mut page, api, report);
        let mut text = Vec::new();
        page.write(&mut text).unwrap_or_else(|e| panic!("{e}"));
        String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let sentence = "Use pread for 4K random read. No recommendation for 4K random write, because of this.";
    report.answer = Some(ReportAnswer { word: AnswerWord::Tied, sentence: sentence.into() });
    let text = shown(&api, &report);
    assert!(!text.contains("because of this") && text.contains("because of that"), "{text}");
    assert!(text.contains(&api.advice[0].sentence), "{text}");
    api.no_advice.truncate(1);
    report.answer = Some(ReportAnswer {
        word: AnswerWord::Tied,
        sentence: format!("{} because of this.", api.advice[0].sentence),
    });
    api.advice.clear();
    assert_eq!(shown(&api, &report), "");
    Ok(())
}

/// Prints the notes on cache state, coverage, missing counts and file layout, and the interfaces that were not measured.
fn show_interface_notes(out: &mut Page, api: &Api) {
    for note in [cold_cache_note(&api.rows), coverage_note(&api.rows), missing_counts_note(&api.rows)]
        .into_iter()
        .flatten()
    {
        out.note(&note);
    }
    for note in api.rows.iter().filter_map(extents_note) {
        out.note(&note);
    }
    if !api.not_measured.is_empty() {
        out.line("");
        out.line("Not measured");
        for (names, why) in by_reason(&api.not_measured) {
            let names = if names.is_empty() { String::new() } else { shortened_list(&names) + ": " };
            out.note(&format!("{names}{why}."));
        }
    }
}

/// States whether every run started with a cold cache; `None` without rows.
fn cold_cache_note(rows: &[ApiRow]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let warm: Vec<&ApiRow> = rows.iter().filter(|r| r.cached_pages_at_start != Ok(0)).collect();
    let Some(first) = warm.first() else {
        let below = if rows.iter().all(|r| r.device_bytes_per_byte.is_err()) {
            " No device was counted, so a cache below may have held the file."
        } else {
            ""
        };
        return Some(format!("No page of the file was in the page cache at the start of a run.{below}"));
    };
    let (had, why) = match &first.cached_pages_at_start {
        Ok(pages) => ("had", show_counted(*pages, "page")),
        Err(why) => ("may have had", why.clone()),
    };
    Some(format!(
        "{} of {} rows {had} pages of the file in the page cache at the start of a run; {}: {why}.",
        warm.len(),
        rows.len(),
        row_name(first)
    ))
}

/// States which share of the span the runs accessed; `None` if no share is known.
fn coverage_note(rows: &[ApiRow]) -> Option<String> {
    let shares = || rows.iter().filter_map(|row| Some((row.coverage?, row)));
    let by_share = |a: &(f64, &ApiRow), b: &(f64, &ApiRow)| a.0.total_cmp(&b.0);
    let ((least, first), (most, last)) = (shares().min_by(by_share)?, shares().max_by(by_share)?);
    let touched = if most - least <= COVERAGE_TOLERANCE {
        show_share(most)
    } else {
        let ends = [(least, first), (most, last)];
        let ends = ends.map(|(share, row)| format!("{} ({})", show_share(share), row_name(row)));
        format!("from {}", ends.join(" to "))
    };
    Some(format!(
        "All interfaces access the blocks of a pattern in the same order, until a run has reached its time or its amount of data. Share of the \
         span that the runs accessed: {touched}."
    ))
}

/// States each reason for missing counts once; `None` if no count is missing.
fn missing_counts_note(rows: &[ApiRow]) -> Option<String> {
    let mut reasons: Vec<(String, &str)> = Vec::new();
    for row in rows {
        let calls = row.calls_per_mib.as_ref().err().map(|why| (format!("calls of {}", row.interface), why));
        let device = row.device_bytes_per_byte.as_ref().err().map(|why| ("device".to_owned(), why));
        for (what, why) in calls.into_iter().chain(device) {
            // If several interfaces share a reason, print it once, with the first interface.
            if reasons.iter().all(|(_, known)| known != why) {
                reasons.push((what, why));
            }
        }
    }
    let reasons: Vec<String> = reasons.into_iter().map(|(what, why)| format!("{what}: {why}")).collect();
    (!reasons.is_empty()).then(|| format!("Not counted: {}.", reasons.join("; ")))
}

/// Describes the layout of the file after the runs; `None` if the layout is unchanged, or unknown after the runs.
fn extents_note(row: &ApiRow) -> Option<String> {
    let Some(Ok(after)) = &row.stored_after else { return None };
    let (name, now) = (row_name(row), describe_extents(after));
    match &row.stored_before {
        Ok(before) if before == after => None,
        Ok(before) => {
            Some(format!("{name}: the file was stored as {} and is now {now}.", describe_extents(before)))
        }
        Err(why) => Some(format!("{name}: the file is stored as {now}; before: {why}.")),
    }
}

/// Describes how a file is stored: `3 extents, 98 % of it in one piece`.
fn describe_extents(extents: &Extents) -> String {
    let mut text = show_counted(extents.count, "extent");
    if let Some(share) = extents.largest_share() {
        text += &format!(", {} of it in one piece", show_share(share));
    }
    for (bytes, word) in [
        (extents.hole_bytes, "holes"),
        (extents.unwritten_bytes, "never written"),
        (extents.inline_bytes, "inline"),
        (extents.encoded_bytes, "compressed or encrypted"),
        (extents.shared_bytes, "shared"),
    ] {
        if bytes > 0 {
            text += &format!(", {} {word}", show_bytes(bytes));
        }
    }
    text
}

fn row_name(row: &ApiRow) -> String {
    format!("{}, {}", row.interface, row.work)
}

/// Joins names, and counts those after the second: `a; b and 3 others`.
fn shortened_list(names: &[&str]) -> String {
    match names {
        [first, second, rest @ ..] if !rest.is_empty() => {
            format!("{first}; {second} and {}", count_of(rest.len(), "other"))
        }
        few => few.join("; "),
    }
}

/// Returns the report with one copy of each finding that affects a number, without other checks, and with at most [`MAX_NOTES`] notes,
/// because hundreds of rows repeat them. A further note counts what is left out; the JSON has all of it.
pub(super) fn with_distinct_findings(report: &Report) -> Report {
    let mut report = report.clone();
    let all = report.checks.len();
    let mut kept: Vec<(Checked, usize)> = Vec::new();
    for finding in report.checks.drain(..).filter(|f| affects_number(f) && !f.accepted) {
        match kept.iter_mut().find(|(k, _)| (&k.id, k.severity) == (&finding.id, finding.severity)) {
            Some((_, others)) => *others += finding.about.len(),
            None => kept.push((finding, 0)),
        }
    }
    let notes = report.notes.len();
    report.notes.truncate(MAX_NOTES);
    let hidden = all - kept.len() + notes - report.notes.len();
    for (mut finding, others) in kept {
        if others > 0 {
            let count = show_count(others as f64);
            finding.sentence += &format!(" Also affects {count} more {}.", plural(others, "row"));
        }
        report.checks.push(finding);
    }
    if hidden > 0 {
        report.notes.push(format!(
            "Further findings, checks and notes, only in the JSON: {}.",
            show_count(hidden as f64)
        ));
    }
    report
}

pub(super) fn show_targets(out: &mut Page, targets: &Targets, measured: &[Measured], all: bool) {
    let rows = target_table(targets, measured);
    out.table(&rows);
    let first = targets.names.first().map_or("the first", String::as_str);
    let mut legend = format!(
        "Against {first}: change of the rate with its 95 % interval, from alternating runs. An interval covers one \
         test, and the answers allow for all tests together."
    );
    for (mark, meaning) in [
        ("neither", " neither = the same within the tolerance."),
        ("NO DIFFERENCE SEEN", " NO DIFFERENCE SEEN: the interval bounds a possible difference."),
        ("~", " ~ = rounded, since the interval is wide."),
    ] {
        if rows.has(mark) {
            legend += meaning;
        }
    }
    out.paragraph(&legend);
    for row in missing_tests(targets) {
        out.note(&row);
    }
    out.line("");
    if all {
        results::show_results(out, measured, &[], all);
    }
}

/// Returns a sentence for each target that lacks tests.
fn missing_tests(targets: &Targets) -> Vec<String> {
    let has = |test: &str, target: usize| targets.rows.iter().any(|r| r.test == test && r.target == target);
    let mut tests: Vec<&str> = targets.rows.iter().map(|r| r.test.as_str()).collect();
    tests.dedup();
    let lacking = |target: usize| tests.iter().copied().filter(move |test| !has(test, target));
    let describe_target = |(target, name): (usize, &String)| {
        let tests: Vec<&str> = lacking(target).collect();
        (!tests.is_empty()).then(|| format!("Not measured on {name}: {}.", tests.join(", ")))
    };
    targets.names.iter().enumerate().filter_map(describe_target).collect()
}

pub(super) fn show_host_counts(out: &mut Page, scaling: &Scaling, measured: &[Measured], all: bool) {
    let rows = host_count_table(scaling, measured);
    out.table(&rows);
    let rounded = if rows.has("~") { " ~ = rounded, since the interval is wide." } else { "" };
    let legend = format!(
        "per host: IOPS; efficiency: IOPS per host relative to the fewest hosts, from alternating runs. The knee is the number of \
         hosts with the greatest power, which is rate divided by latency.{rounded}"
    );
    out.paragraph(&legend);
    out.line("");
    if all {
        results::show_results(out, measured, &[], all);
    }
}

/// Maximum columns of the plot.
const PLOT_WIDTH: usize = 64;
/// Maximum lines of the plot.
const PLOT_HEIGHT: usize = 8;
/// Width of the labels left of the plot.
const PLOT_LABEL_WIDTH: usize = 13;

pub(super) fn show_load_curve(out: &mut Page, curve: &LoadCurve, report: &Report, all: bool) {
    let shown = shown_loads(curve, all);
    out.table(&load_table(curve, &report.results, all));
    for text in state_legend(curve, &shown) {
        out.paragraph(&text);
    }
    if shown.len() < curve.points.len() {
        let (some, all_loads, how) = (shown.len(), curve.points.len(), full_report_hint(report));
        out.paragraph(&format!("The {some} of {all_loads} loads that matter most; the others: {how}"));
    }
    if let Some(capacity) = curve.capacity_iops {
        let interval = interval_in_parentheses(curve.capacity_interval);
        out.note(&format!("Capacity: {} operations/s in a closed loop{interval}.", show_rate(capacity)));
    }
    if let Some(text) = describe_knee(curve) {
        out.note(&text);
    }
    if report.answer.as_ref().is_none_or(|answer| answer.sentence != curve.sentence) {
        out.note(&curve.sentence);
    }
    out.line("");
    if all {
        let width = out.width().saturating_sub(PLOT_LABEL_WIDTH).min(PLOT_WIDTH);
        for line in draw_curve(curve, width) {
            out.line(&line);
        }
    }
}

/// Returns what the columns mean, and a sentence for each word in the table that needs one.
fn state_legend(curve: &LoadCurve, shown: &[&LoadPoint]) -> Vec<String> {
    let has = |state| shown.iter().any(|p| p.state == state);
    let states = [
        (
            LoadState::Overload,
            "overload: more operations arrived than were served, or than a limit of the cgroup allows, so latency grows as long as the run \
             lasts, and is withheld.",
        ),
        (LoadState::Void, "void: a finding invalidates this load, and its numbers are withheld."),
    ];
    let first = "Latencies count from the scheduled start of an operation, so they are never too short; late: how much of \
                 the target's percentile (without a target, of p99) may be fathom's own lateness; - = too few samples, or overload.";
    let states = states.into_iter().filter(|(state, _)| has(*state)).map(|(_, meaning)| meaning);
    let mut legend: Vec<String> = std::iter::once(first).chain(states).map(str::to_owned).collect();
    let Some(target) = &curve.latency_target else { return legend };
    if shown.iter().any(|p| p.met.is_some() && p.has_too_few_operations(&target.percentile)) {
        legend.push(format!(
            "<= and >: too few operations for p{}, but enough to prove on which side of the target it is.",
            target.percentile
        ));
    }
    for why in distinct(shown.iter().filter_map(|p| p.undecided_reason(target))) {
        let [word, reason, advice] = why.describe();
        legend.push(format!("open: {word} = {reason}: {advice}."));
    }
    let is_above_miss = |p: &&LoadPoint| target.missed_iops.is_some_and(|missed| p.offered_iops > missed);
    if shown.iter().any(|p| p.met == Some(true) && is_above_miss(p)) {
        legend.push(
            "A load that meets the target, but is higher than one that missed it, is not the answer.".into(),
        );
    }
    legend
}

fn describe_knee(curve: &LoadCurve) -> Option<String> {
    let knee = curve.knee?;
    let share = knee.share.map_or_else(String::new, |s| format!(", {} of the capacity", show_share(s)));
    let load = format!("{} operations/s{share}", show_rate(knee.iops));
    Some(if knee.reached {
        format!("Knee: {load}. Above this load, 1 % more load adds more than 1 % to the mean latency.")
    } else {
        format!("Knee: at least {load}. Below it, 1 % more load adds less than 1 % to the mean latency.")
    })
}

/// Draws the percentile over the load on a logarithmic scale: a mark for each load, `!` for
/// overload, and the latency target as a line. Empty with fewer than three known percentiles, or
/// without the capacity.
fn draw_curve(curve: &LoadCurve, width: usize) -> Vec<String> {
    let rank = curve.percentile();
    let value = |p: &LoadPoint| percentile_ns(&p.percentiles_ns, rank).map(|ns| ns.max(1) as f64);
    let latency_target = curve.latency_target.as_ref().map(|p| p.latency_ns.max(1) as f64);
    let seen: Vec<f64> = curve.points.iter().filter_map(value).chain(latency_target).collect();
    let most = curve.points.iter().filter_map(|p| p.share).fold(1.0, f64::max);
    let (low, high) = seen.iter().fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    if curve.points.iter().filter_map(value).count() < 3 || curve.capacity_iops.is_none() {
        return Vec::new();
    }
    let row = |ns: f64| {
        let part = (ns / low).ln() / (high / low).ln().max(f64::MIN_POSITIVE);
        PLOT_HEIGHT - 1 - (part * (PLOT_HEIGHT - 1) as f64).round() as usize
    };
    let mut cells = vec![vec![' '; width + 1]; PLOT_HEIGHT];
    let mut put = |row: usize, column: usize, mark: char| {
        if let Some(cell) = cells.get_mut(row).and_then(|r| r.get_mut(column)) {
            *cell = mark;
        }
    };
    let target_row = latency_target.map(row);
    if let Some(row) = target_row {
        for column in 0..=width {
            put(row, column, '-');
        }
    }
    for point in &curve.points {
        let Some(share) = point.share else { continue };
        let column = (share / most * width as f64).round() as usize;
        match value(point) {
            Some(ns) => put(row(ns), column, '*'),
            None if point.state == LoadState::Overload => put(0, column, '!'),
            None => {}
        }
    }
    let label = |at: usize| match at {
        0 => show_ns(high),
        at if Some(at) == target_row => latency_target.map_or_else(String::new, show_ns),
        at if at == PLOT_HEIGHT - 1 => show_ns(low),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "  p{rank} over load (* measured, ! overload{})",
        if target_row.is_some() { ", --- target" } else { "" }
    )];
    lines.extend(cells.iter().enumerate().map(|(at, row)| {
        let drawn: String = row.iter().collect();
        format!("  {:>8} |{}", label(at), drawn.trim_end())
    }));
    lines.push(format!("  {:>8} +{}", "", "-".repeat(width + 1)));
    let end = format!("{} of capacity", show_share(most));
    lines.push(format!("  {:>8} 0 %{end:>width$}", "", width = width.saturating_sub(1)));
    lines.push(String::new());
    lines
}
