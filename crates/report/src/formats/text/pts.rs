//! Rounds of cells as the SNIA's test specification tells them: a table of means over the window, and the tracked value.
//!
//! For: the presets `pts`, `pts-throughput`, `pts-latency` and `pts-wsat`. Not for: the rule itself (crate `analysis`).

use super::sweep::show_skipped;
use crate::page::{Page, SUSPECT_MARK, SUSPECT_MARK_MEANING, with_suspect_mark, worst_verdict_mark};
use crate::table::Table;
use model::report::{Measured, Report, Verdict};
use model::sweep::{CellFigures, Rounds, Setting, Sweep, Variable};
use model::units::{show_block, show_bytes, show_count, show_ns, show_rate, show_share};

/// Rounds that are told one by one; the JSON has all.
const MAX_ROUNDS: usize = 25;

/// A number of a cell, and how it is shown.
type CellValue = fn(&CellFigures) -> Option<String>;

pub(super) fn show_pts_rounds(out: &mut Page, report: &Report, sweep: &Sweep) {
    let Some(rounds) = &sweep.rounds else { return };
    let when = match rounds.window {
        Some([first, last]) => format!("means of rounds {first} to {last}"),
        None => "no five rounds were measured, so these are means of what there is and no result".into(),
    };
    for (name, value) in round_tables(rounds.variable) {
        out.prose("", "  ", &format!("{name} by size and reads/writes ({when})"));
        let table = round_table(report, sweep, *value);
        out.table(&table);
        if table.has(SUSPECT_MARK) || table.has("void") {
            out.line(&format!("{SUSPECT_MARK_MEANING}."));
        }
        out.line("");
    }
    show_tracked(out, rounds);
    show_conformance(out, report, sweep, rounds);
    show_skipped(out, sweep);
    out.line(&format!("  The rounds took {:.0} s.", sweep.seconds));
    out.line("");
}

/// What stands in the tables, by the value that is tracked.
fn round_tables(variable: Variable) -> &'static [(&'static str, CellValue)] {
    const IOPS: &[(&str, CellValue)] = &[("IOPS", |c| c.iops.map(show_count))];
    const MB_PER_S: &[(&str, CellValue)] = &[("MB/s", |c| c.mb_per_s.map(show_rate))];
    const LATENCY: &[(&str, CellValue)] = &[
        ("mean latency", |c| c.latency_mean_ns.map(show_ns)),
        ("longest latency", |c| c.latency_max_ns.map(|ns| show_ns(ns as f64))),
    ];
    match variable {
        Variable::Iops => IOPS,
        Variable::MbPerS => MB_PER_S,
        Variable::LatencyMeanNs => LATENCY,
    }
}

/// What Markdown and `--brief` show: the means of what is tracked.
pub(super) fn first_round_table(report: &Report, sweep: &Sweep) -> Table {
    let variable = sweep.rounds.as_ref().map_or(Variable::Iops, |rounds| rounds.variable);
    let value: CellValue = round_tables(variable).first().map_or(|_| None, |(_, value)| *value);
    round_table(report, sweep, value)
}

/// Sizes by works, each row with the worst verdict of its cells. What a finding invalidates has its mark and no number.
fn round_table(report: &Report, sweep: &Sweep, value: CellValue) -> Table {
    let mut works: Vec<&Setting> = Vec::new();
    let mut sizes: Vec<u32> = Vec::new();
    for setting in sweep.cells.iter().map(|c| &c.setting) {
        if works.iter().all(|known| known.work() != setting.work()) {
            works.push(setting);
        }
        if !sizes.contains(&setting.block_bytes) {
            sizes.push(setting.block_bytes);
        }
    }
    let first = ["size".to_owned(), "verdict".to_owned()];
    let headings: Vec<String> =
        first.into_iter().chain(works.iter().map(|work| read_write_shares(work))).collect();
    let mut table = Table::new(&headings, &[]).aligned(1, true).aligned(headings.len() - 1, false);
    let result = |cell: &CellFigures| report.results.get(cell.result?);
    for size in sizes {
        let cells = sweep.cells.iter().filter(|c| c.setting.block_bytes == size);
        let mut row = vec![show_block(u64::from(size)), worst_verdict_mark(cells.clone().filter_map(result))];
        for work in &works {
            let cell = cells.clone().find(|c| c.setting.work() == work.work());
            row.push(cell.map_or_else(|| "-".into(), |c| marked_value(c, result(c), value)));
        }
        table.add(row);
    }
    table
}

/// A number of a cell with its mark.
fn marked_value(cell: &CellFigures, result: Option<&Measured>, value: CellValue) -> String {
    match value(cell) {
        _ if result.is_some_and(|r| r.void) => "void".into(),
        Some(number) => with_suspect_mark(number, result.map_or(Verdict::Suspect, |r| r.verdict)),
        None => "-".into(),
    }
}

/// Reads and writes in percent, as the specification names a work.
fn read_write_shares(setting: &Setting) -> String {
    let named_by = setting.spec.as_deref().or(setting.mix.as_deref()).unwrap_or(&setting.rw);
    match named_by {
        "read" | "randread" => "100/0".into(),
        "write" | "randwrite" => "0/100".into(),
        other => other.into(),
    }
}

fn format_tracked(variable: Variable, value: f64) -> String {
    match variable {
        Variable::Iops => show_count(value),
        Variable::MbPerS => show_rate(value),
        Variable::LatencyMeanNs => show_ns(value),
    }
}

/// `IOPS of randrw write 1 x 4K ...`.
fn tracked_name(variable: Variable, setting: &Setting) -> String {
    let what = match variable {
        Variable::Iops => "IOPS",
        Variable::MbPerS => "MB/s",
        Variable::LatencyMeanNs => "mean latency",
    };
    format!("{what} of {}", setting.describe())
}

fn show_tracked(out: &mut Page, rounds: &Rounds) {
    out.prose("", "  ", &format!("Tracked: {}", tracked_name(rounds.variable, &rounds.tracked)));
    let of = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format_tracked(rounds.variable, v));
    let from = rounds.by_round.len().saturating_sub(MAX_ROUNDS);
    let told = rounds.by_round.iter().enumerate().skip(from);
    let told: Vec<String> = told.map(|(at, v)| format!("{}: {}", at + 1, of(*v))).collect();
    let before = if from > 0 { format!(" ({from} before them are in the JSON)") } else { String::new() };
    out.prose("  ", "    ", &format!("By round{before}: {}.", told.join("; ")));
    out.prose("  ", "    ", &describe_steady_state(rounds));
}

fn describe_steady_state(rounds: &Rounds) -> String {
    let done = rounds.by_round.len();
    let (Some(rule), Some([first, last]), Some(mean)) = (rounds.rule, rounds.window, rounds.window_mean)
    else {
        return format!(
            "Steady state: not reached; {done} rounds were complete and five with that value are needed."
        );
    };
    let word = if rule.met { "reached" } else { "NOT reached" };
    let end = if !rule.met && rounds.bytes_wanted.is_none() && done >= rounds.at_most as usize {
        format!(" within the {} rounds that the specification allows", rounds.at_most)
    } else {
        String::new()
    };
    format!(
        "Steady state: {word}{end}; window rounds {first} to {last}, mean {}, excursion {} (20 % allowed), slope \
         excursion {} (10 % allowed).",
        format_tracked(rounds.variable, mean),
        show_share(rule.excursion),
        show_share(rule.slope)
    )
}

/// What this is not, and what that would need.
fn show_conformance(out: &mut Page, report: &Report, sweep: &Sweep, rounds: &Rounds) {
    let filled = match &report.preconditioned {
        Some(done) => format!("Before the first round {} were written", show_bytes(done.filled_bytes)),
        None => "Before the first round nothing was written".into(),
    };
    let place = sweep.place.as_ref().map_or_else(|| "nothing is stored".into(), |p| show_bytes(p.bytes));
    out.prose(
        "  ",
        "    ",
        &format!(
            "After SNIA SSS PTS 2.0; no conformance is claimed. It would need a purge before it (sanitize, format or secure \
             erase), which fathom does not do; the drive itself as the target and all of it active (here: {place}); the \
             state of its write cache told; a test system as specified. {filled}; in the rounds, {}.",
            show_bytes(rounds.bytes_written)
        ),
    );
}

#[test]
fn works_are_named_by_their_shares() {
    let of = |rw: &str, mix: Option<&str>| {
        read_write_shares(&Setting { mix: mix.map(str::to_owned), ..Setting::plain(rw, 4096, 1) })
    };
    assert_eq!(of("randrw", Some("read")), "100/0");
    assert_eq!(of("randrw", Some("write")), "0/100");
    assert_eq!(of("randrw", Some("95/5")), "95/5");
    assert_eq!((of("write", None), of("read", None)), ("0/100".into(), "100/0".into()));
    let spec = Setting { spec: Some("File Server".into()), ..Setting::plain("", 4096, 1) };
    assert_eq!(read_write_shares(&spec), "File Server");
}
