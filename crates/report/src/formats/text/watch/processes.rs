//! The processes that moved most in an interval, as text.
//!
//! For: a line each, with how they have files open and what they asked the watched devices for. Not for: devices.

use super::columns::fit_figure;
use crate::prose::{display_width, prose, shorten};
use model::units::{show_bytes, show_share};
use model::watch::{ProcessCalls, ProcessRequests, Processes, SomeRequests, WatchedProcess};

/// Columns of the name and of the id.
const PROCESS_NAME_WIDTH: usize = 16;
const PID_WIDTH: usize = 9;
/// Columns of a figure.
const FIGURE_WIDTH: usize = 8;
/// Columns that words need beside the figures; with less room they stand on a line of their own.
const DETAILS_WIDTH: usize = 24;

/// A figure of a process and what it is called.
type ProcessFigure = (&'static str, fn(&WatchedProcess) -> f64);

/// Figures, the first of them always.
const PROCESS_FIGURES: [ProcessFigure; 5] = [
    ("rMB/s", |p| p.read_mb_per_s),
    ("wMB/s", |p| p.write_mb_per_s),
    ("calls/s", |p| p.read_calls_per_s + p.write_calls_per_s),
    ("rchar", |p| p.rchar_mb_per_s),
    ("wchar", |p| p.wchar_mb_per_s),
];

/// The lines, below their names where these are wanted; `None` where there is nothing to be told.
pub(super) fn process_text(processes: &Processes, width: usize, headed: bool) -> Option<String> {
    if processes.most.is_empty() && !(headed && processes.hidden > 0) {
        return None;
    }
    let shown = shown_figures(width);
    let mut out = String::new();
    if headed && !processes.most.is_empty() && !shown.is_empty() {
        let first = if processes.most.iter().any(|p| p.tid.is_some()) { "thread" } else { "process" };
        let names: Vec<String> = shown.iter().map(|(name, _)| format!("{name:>FIGURE_WIDTH$}")).collect();
        let names = names.concat();
        let line = format!("{first:PROCESS_NAME_WIDTH$}{:>PID_WIDTH$}{names}  files open here", "id");
        // Where there is no room the words stand on lines of their own, without a name.
        let line = if display_width(&line) > width {
            format!("{first:PROCESS_NAME_WIDTH$}{:>PID_WIDTH$}{names}", "id")
        } else {
            line
        };
        out += &format!("{line}\n");
    }
    for process in &processes.most {
        out += &process_line(process, &shown, width);
        out += &process.calls.as_ref().map_or_else(String::new, |calls| calls_line(calls, width));
    }
    if let Some(why) = &processes.calls_not_known {
        out += &prose(width, "  ", "    ", &format!("calls not known: {why}"));
    }
    if processes.more > 0 {
        out += &prose(width, "  ", "  ", &format!("and {} more that moved less", processes.more));
    }
    if headed && processes.hidden > 0 {
        let words = format!("the I/O of {} or more processes is hidden from this user", processes.hidden);
        out += &prose(width, "  ", "  ", &words);
    }
    Some(out)
}

fn shown_figures(width: usize) -> Vec<&'static ProcessFigure> {
    let room = |number: usize| PROCESS_NAME_WIDTH + PID_WIDTH + number * FIGURE_WIDTH;
    let fits = |number: &usize| room(*number) + 2 + DETAILS_WIDTH <= width;
    let number = (3..=PROCESS_FIGURES.len()).rev().find(fits).unwrap_or(if room(2) <= width { 2 } else { 0 });
    PROCESS_FIGURES.iter().take(number).collect()
}

fn process_line(process: &WatchedProcess, shown: &[&ProcessFigure], width: usize) -> String {
    let id = process.tid.unwrap_or(process.pid);
    let figures: Vec<String> = shown
        .iter()
        .map(|(_, of)| format!("{:>FIGURE_WIDTH$}", fit_figure(of(process), FIGURE_WIDTH - 2)))
        .collect();
    let words = describe_open_files(process);
    let first = format!(
        "{:PROCESS_NAME_WIDTH$}{id:>PID_WIDTH$}{}",
        shorten(&process.name, PROCESS_NAME_WIDTH - 1),
        figures.concat()
    );
    if shown.is_empty() {
        // Too narrow for a table.
        let all: Vec<String> =
            PROCESS_FIGURES.iter().take(2).map(|(n, of)| format!("{n} {:.2}", of(process))).collect();
        return prose(width, "", "  ", &format!("{} ({id}): {}; {words}", process.name, all.join(", ")));
    }
    if display_width(&first) + 2 + DETAILS_WIDTH <= width {
        let indent = " ".repeat(display_width(&first) + 2);
        return append_wrapped(&format!("{first}  "), &indent, &words, width);
    }
    format!("{first}\n{}", prose(width, "    ", "    ", &words))
}

/// Words behind figures, further lines of them below the first.
fn append_wrapped(first: &str, indent: &str, words: &str, width: usize) -> String {
    let room = width.saturating_sub(display_width(indent));
    let lines = prose(room, "", "", words);
    let mut out = String::new();
    for (at, line) in lines.lines().enumerate() {
        out += if at == 0 { first } else { indent };
        out += line;
        out.push('\n');
    }
    out
}

fn describe_open_files(process: &WatchedProcess) -> String {
    if let Some(parent) = &process.children_of {
        return format!("of {parent}, which waited for them");
    }
    let open = match &process.open {
        _ if process.kernel => "kernel worker, owner unknown".into(),
        Ok(open) => open.describe(),
        Err(why) => format!("not known: {why}"),
    };
    let asked = process.requests.as_ref().map(describe_requests).unwrap_or_default();
    if asked.is_empty() { open } else { format!("{open}; {asked}") }
}

/// `reads of 4 KiB, 2 % sequential; depth 3.9`; nothing where it asked the watched devices for nothing.
fn describe_requests(requests: &ProcessRequests) -> String {
    let ways = [("reads", requests.read), ("writes", requests.write)];
    let mut parts: Vec<String> = ways
        .into_iter()
        .filter_map(|(name, of)| Some(format!("{name} of {}", request_sizes(&of?))))
        .collect();
    if requests.flush_per_s > 0.0 {
        parts.push(format!("{} flushes/s", fit_figure(requests.flush_per_s, FIGURE_WIDTH - 2)));
    }
    if requests.depth_mean > 0.0 {
        parts.push(format!("depth {}", fit_figure(requests.depth_mean, FIGURE_WIDTH - 2)));
    }
    parts.join("; ")
}

/// `calls/s: pread64 5000, fdatasync 12; page faults/s: 3 waited for storage, 12 did not`.
fn calls_line(of: &ProcessCalls, width: usize) -> String {
    let rate = |per_s: f64| fit_figure(per_s, FIGURE_WIDTH - 2);
    let calls: Vec<String> = of.calls.iter().map(|c| format!("{} {}", c.name, rate(c.per_s))).collect();
    let calls = if calls.is_empty() { "none that move data".to_owned() } else { calls.join(", ") };
    let faults = of.faults.as_ref().map_or_else(String::new, |faults| {
        let [major, minor] = [faults.major_per_s, faults.minor_per_s].map(rate);
        format!("; page faults/s: {major} waited for storage, {minor} did not")
    });
    prose(width, "    ", "      ", &format!("calls/s: {calls}{faults}"))
}

fn request_sizes(of: &SomeRequests) -> String {
    let median = show_bytes(of.p50_bytes);
    let size = if of.min_bytes == of.max_bytes {
        median
    } else {
        format!("{median} ({} to {})", show_bytes(of.min_bytes), show_bytes(of.max_bytes))
    };
    format!("{size}, {} sequential", show_share(of.sequential_percent / 100.0))
}

#[test]
fn a_line_has_figures_and_words_and_a_narrow_one_has_the_words_below() {
    let processes = crate::fixture::watched().processes.unwrap_or_else(|| panic!("none"));
    let wide = process_text(&processes, 80, true).unwrap_or_default();
    let lines: Vec<&str> = wide.lines().collect();
    assert_eq!(lines[0], "process                id   rMB/s   wMB/s calls/s  files open here");
    let first = "fio                 12345    2.05    0.00  500.00  direct, sync, io_uring;";
    assert!(lines[1].starts_with(first), "{wide}");
    let words: Vec<&str> = lines[1..6].iter().flat_map(|line| line.split_whitespace()).collect();
    let asked = "reads of 4 KiB (4 KiB to 64 KiB), 2.0 % sequential; 0.50 flushes/s; depth 3.90";
    assert!(words.join(" ").contains(asked), "{wide}");
    let of_kernel = |line: &&&str| line.starts_with("kworker") && line.contains("kernel worker");
    assert!(lines.iter().any(|line| of_kernel(&line)), "{wide}");
    assert!(wide.contains("and 3 more") && wide.contains("hidden from this user"), "{wide}");
    let all: Vec<&str> = wide.split_whitespace().collect();
    let calls = "calls/s: io_uring_enter 500.00, fdatasync 3.00; page faults/s: 0.00 waited for storage, 12.00 did not";
    assert!(all.join(" ").contains(calls), "{wide}");
    let narrow = process_text(&processes, 44, true).unwrap_or_default();
    assert!(narrow.contains("\n    direct, sync, io_uring;"), "{narrow}");
    assert!(!process_text(&processes, 80, false).unwrap_or_default().contains("hidden"));
    let none = Processes { most: Vec::new(), more: 0, hidden: 0, seconds: 1.0, calls_not_known: None };
    assert_eq!(process_text(&none, 80, true), None);
}
