//! A watched interval as text: the CPU line, a row for each device, its load relative to earlier measurements, conclusions, the
//! processes that moved the most data, and remarks on the figures. All lines fit the width.
//!
//! Columns have names like those of iostat, but shorter, because most units are in a second line: `rareq` is iostat's `rareq-sz`,
//! and `rmrg` is its `%rrqm`. The width decides which columns fit. A figure that is too long for its column gets fewer digits.

use crate::Style;
use crate::page::{display_width, prose, shorten};
use model::machine::Direction;
use model::units::{show_bytes, show_share};
use model::watch::{
    CpuShares, DeviceInterval, Latency, Layout, Load, MeasuredIn, ProcessCalls, ProcessRequests, Processes,
    RateUnit, RequestFigures, Requests, Watched, WatchedDevice, WatchedProcess,
};
use std::io::{self, Write};

/// Note on the meaning of `%util`.
const UTIL_NOTE: &str = "%util: share of the time with a request in flight; 100 % is not saturation, since most devices serve several \
                         requests at once";
/// Maximum width of a latency in ms, in characters.
const TIME_WIDTH: usize = 6;

pub(super) fn write_watched(watched: &Watched, style: Style, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(watched_text(watched, style.width).as_bytes())
}

fn watched_text(watched: &Watched, width: usize) -> String {
    let layout = watched.layout;
    let tables = if layout.all_columns { column_tables(width) } else { vec![columns_for_width(width)] };
    let mut out = String::new();
    if layout.time {
        out += &format!("{}\n", watched.time);
    }
    let devices: Vec<&WatchedDevice> =
        watched.devices.iter().filter(|d| !layout.active_only || d.is_active()).collect();
    out += &watched.cpu.map_or_else(String::new, |cpu| cpu_line(cpu, width));
    for columns in tables.iter().filter(|_| !devices.is_empty()) {
        if watched.has_headings || tables.len() > 1 || layout.active_only {
            out += &column_headings(columns, layout.unit);
        }
        for device in &devices {
            out += &device_row(device, columns, layout);
        }
    }
    let mut below: Vec<String> = devices.iter().filter_map(|d| below_row(d, width)).collect();
    below.extend(devices.iter().filter_map(|d| latency_row(d, width)));
    below.extend(devices.iter().map(|d| conclusions(d, width, layout.explain)));
    below.extend(watched.processes.as_ref().and_then(|p| process_text(p, width, watched.has_headings)));
    let has_util = tables.iter().flatten().any(|c| c.heading(layout.unit) == UTIL_HEADING);
    let util_note = (watched.is_first && has_util && !watched.devices.is_empty()).then_some(UTIL_NOTE);
    let remarks = watched.remarks.iter().map(String::as_str).chain(util_note);
    below.extend(remarks.map(|remark| prose(width, "", "  ", remark)));
    out += &below.concat();
    // A single line continues the table of the previous interval. Several lines form a block that ends with an empty line.
    if out.lines().count() != 1 {
        out.push('\n');
    }
    out
}

/// Returns the line of CPU time:
/// `avg-cpu: %user 1.4 %nice 0.0 %system 0.5 %iowait 1.7 %steal 0.0 %idle 96.4`.
fn cpu_line(cpu: CpuShares, width: usize) -> String {
    let CpuShares { user_percent, nice_percent, system_percent, iowait_percent, steal_percent, idle_percent } =
        cpu;
    let text = format!(
        "avg-cpu: %user {user_percent:.1} %nice {nice_percent:.1} %system {system_percent:.1} %iowait \
         {iowait_percent:.1} %steal {steal_percent:.1} %idle {idle_percent:.1}"
    );
    prose(width, "", "  ", &text)
}

/// Returns the conclusions that are new in this interval. With `--explain`, each has its rule and figures.
fn conclusions(device: &WatchedDevice, width: usize, explain: bool) -> String {
    let mut out = String::new();
    for conclusion in device.conclusions.iter().filter(|c| c.is_new) {
        out += &prose(width, "  ", "    ", &conclusion.text);
        if explain {
            out += &prose(width, "    ", "      ", &format!("because {}", conclusion.basis));
        }
    }
    out
}

/// Returns the names of columns, with their units below.
fn column_headings(columns: &[&Column], unit: RateUnit) -> String {
    let line = |first: &str, word: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> =
            columns.iter().map(|c| format!("{:>width$}", word(c), width = c.width)).collect();
        format!("{}\n", format!("{first:DEVICE_NAME_WIDTH$}{}", cells.concat()).trim_end())
    };
    let units = line("", &|c| c.unit.to_owned());
    // If every column has its unit in its name, there is no line of units.
    line("device", &|c| c.heading(unit)) + if units == "\n" { "" } else { &units }
}

fn device_row(device: &WatchedDevice, columns: &[&Column], layout: Layout) -> String {
    let indent = " ".repeat(device.level.min(DEVICE_NAME_WIDTH / 3));
    let name = device.volume.as_ref().filter(|_| layout.volume_names).unwrap_or(&device.name);
    let name = format!("{indent}{}", shorten(name, DEVICE_NAME_WIDTH - indent.len()));
    let cells: Vec<String> = columns
        .iter()
        .map(|column| {
            let value = device.figures.as_ref().ok().and_then(|figures| column.value(figures, layout.unit));
            let text = value.map_or_else(|| "-".to_owned(), |v| fit_figure(v, column.width - 1));
            format!("{text:>width$}", width = column.width)
        })
        .collect();
    format!("{name:DEVICE_NAME_WIDTH$}{}\n", cells.concat())
}

/// Returns the line below a device's row: why there are no figures, or the load relative to earlier
/// measurements. `None` if the device has neither.
fn below_row(device: &WatchedDevice, width: usize) -> Option<String> {
    let line = |text: &str| prose(width, "  ", "    ", &format!("{}: {text}", device.name));
    match (&device.figures, &device.load) {
        (Err(why), _) => Some(line(why)),
        (Ok(_), Some(Ok(load))) => Some(line(&describe_load(load))),
        // An unknown limit is reported once, at the start of watching.
        (Ok(_), Some(Err(_)) | None) => None,
    }
}

/// Returns the line of latencies of a device, or why they are unknown:
/// `loop0: latency in ms p50/p99/max: read 0.07/0.31/1.25`.
/// `None` if they were not observed or no request completed.
fn latency_row(device: &WatchedDevice, width: usize) -> Option<String> {
    let text = match device.latency.as_ref()? {
        Err(why) => format!("latencies not known: {why}"),
        Ok(all) => {
            let parts: Vec<String> =
                all.all().map(|(name, latency)| format!("{name} {}", latency_times(&latency))).collect();
            // Print nothing if no request completed: the device's row shows that already.
            if parts.is_empty() {
                return None;
            }
            format!("latency in ms p50/p99/max: {}", parts.join(", "))
        }
    };
    Some(prose(width, "  ", "    ", &format!("{}: {text}", device.name)))
}

fn latency_times(latency: &Latency) -> String {
    let all = [latency.p50_ms, latency.p99_ms, Some(latency.max_ms)];
    all.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| fit_figure(ms, TIME_WIDTH))).join("/")
}

/// Describes a load:
/// `load is between 24 % and 31 % of the measured capacity (VALID results of session 20261123-..., 2026-11-23)`.
fn describe_load(load: &Load) -> String {
    let percent = |value: f64| show_share(value / 100.0);
    let least = percent(load.at_least_percent);
    // Bounds this far apart do not show how near the limit is.
    let is_wide = load.at_least_percent < 50.0 && load.at_most_percent.is_some_and(|most| most >= 100.0);
    let share = match load.at_most_percent.map(percent) {
        Some(most) if most == least => format!("load is {least}"),
        Some(_) if is_wide => format!("load is at least {least}, perhaps all,"),
        Some(most) => format!("load is between {least} and {most}"),
        None => format!("load is at least {least}"),
    };
    let directions: Vec<&str> = load.not_measured.iter().map(|d: &Direction| d.word()).collect();
    let missing = if directions.is_empty() {
        String::new()
    } else {
        format!("; no session has a valid capacity for {}", directions.join(" and "))
    };
    let more =
        if load.at_least_percent > 100.0 { ", so the device can do more than was measured" } else { "" };
    let sessions = list_sessions(&load.sessions, load.throttled);
    format!("{share} of the measured capacity{more}{sessions}{missing}")
}

/// Names the first session and counts the others: ` (VALID results of session 20261123-1, 2026-11-23, and 1 more)`. With
/// `is_throttled`, leaves out `VALID`. Empty without sessions.
fn list_sessions(all: &[MeasuredIn], is_throttled: bool) -> String {
    let Some(first) = all.first() else { return String::new() };
    let day = first.day().map_or(String::new(), |day| format!(", {day}"));
    let more = if all.len() > 1 { format!(", and {} more", all.len() - 1) } else { String::new() };
    let results = if is_throttled { "results" } else { "VALID results" };
    format!(" ({results} of session {}{day}{more})", first.session)
}

/// Width of the column with the names of devices, in characters.
const DEVICE_NAME_WIDTH: usize = 11;
/// Bytes of a KiB.
const KIB: f64 = 1024.0;

/// A column of figures.
struct Column {
    /// Name, without the unit of a throughput.
    name: &'static str,
    /// Unit; empty if it is part of the name.
    unit: &'static str,
    /// Width of the column, including the gap before it.
    width: usize,
    /// Rank of the column. If the line is too narrow, columns with a high rank are left out first.
    rank: u8,
    value: ColumnValue,
}

/// How a column computes its figure. The function returns `None` if the figure is unknown.
enum ColumnValue {
    Figure(fn(&DeviceInterval) -> Option<f64>),
    Throughput(fn(&DeviceInterval) -> Option<&Requests>),
}

impl Column {
    /// Returns the name: `r/s`, `rMB/s`.
    fn heading(&self, unit: RateUnit) -> String {
        match self.value {
            ColumnValue::Figure(_) => self.name.to_owned(),
            ColumnValue::Throughput(_) => format!("{}{}", self.name, unit.symbol()),
        }
    }

    /// Returns the figure; `None` if it is unknown.
    fn value(&self, figures: &DeviceInterval, unit: RateUnit) -> Option<f64> {
        match self.value {
            ColumnValue::Figure(value) => value(figures),
            ColumnValue::Throughput(requests) => requests(figures).map(|r| unit.throughput(r)),
        }
    }
}

const fn column(
    name: &'static str,
    unit: &'static str,
    width: usize,
    rank: u8,
    value: fn(&DeviceInterval) -> Option<f64>,
) -> Column {
    Column { name, unit, width, rank, value: ColumnValue::Figure(value) }
}

const fn throughput(
    name: &'static str,
    rank: u8,
    requests: fn(&DeviceInterval) -> Option<&Requests>,
) -> Column {
    Column { name, unit: "", width: 7, rank, value: ColumnValue::Throughput(requests) }
}

/// Name of the column whose meaning a note explains.
const UTIL_HEADING: &str = "%util";

/// All columns, from left to right.
const COLUMNS: [Column; 22] = [
    column("r/s", "", 7, 0, |d| Some(d.read.per_s)),
    throughput("r", 1, |d| Some(&d.read)),
    column("rrqm/s", "", 7, 11, |d| Some(d.read.merged_per_s)),
    column("rmrg", "%", 5, 16, |d| d.read.merged_percent),
    column("r_await", "ms", 8, 4, |d| d.read.await_ms),
    column("rareq", "KiB", 6, 7, |d| d.read.request_bytes.map(|b| b / KIB)),
    column("w/s", "", 7, 2, |d| Some(d.write.per_s)),
    throughput("w", 3, |d| Some(&d.write)),
    column("wrqm/s", "", 7, 12, |d| Some(d.write.merged_per_s)),
    column("wmrg", "%", 5, 17, |d| d.write.merged_percent),
    column("w_await", "ms", 8, 5, |d| d.write.await_ms),
    column("wareq", "KiB", 6, 8, |d| d.write.request_bytes.map(|b| b / KIB)),
    column("d/s", "", 6, 13, |d| Some(d.discard?.per_s)),
    throughput("d", 14, |d| d.discard.as_ref()),
    column("drqm/s", "", 7, 21, |d| Some(d.discard?.merged_per_s)),
    column("dmrg", "%", 5, 20, |d| d.discard?.merged_percent),
    column("d_await", "ms", 8, 18, |d| d.discard?.await_ms),
    column("dareq", "KiB", 6, 19, |d| d.discard?.request_bytes.map(|b| b / KIB)),
    column("f/s", "", 5, 10, |d| Some(d.flush?.per_s)),
    column("f_await", "ms", 8, 15, |d| d.flush?.await_ms),
    column("aqu-sz", "", 7, 6, |d| Some(d.depth_mean)),
    column(UTIL_HEADING, "", 6, 9, |d| Some(d.util_percent)),
];

/// Returns the columns that fit into `width`. Columns with a high rank are left out first.
fn columns_for_width(width: usize) -> Vec<&'static Column> {
    let mut by_rank: Vec<&Column> = COLUMNS.iter().collect();
    by_rank.sort_by_key(|c| c.rank);
    let mut used = DEVICE_NAME_WIDTH;
    let fits = |column: &&&Column| {
        used += column.width;
        used <= width
    };
    let most = by_rank.iter().take_while(fits).map(|c| c.rank).max();
    COLUMNS.iter().filter(|c| most.is_some_and(|most| c.rank <= most)).collect()
}

/// Returns all columns, in as many tables as the width requires.
fn column_tables(width: usize) -> Vec<Vec<&'static Column>> {
    let mut tables: Vec<Vec<&Column>> = Vec::new();
    let mut used = usize::MAX;
    for column in &COLUMNS {
        if used.saturating_add(column.width) > width {
            tables.push(Vec::new());
            used = DEVICE_NAME_WIDTH;
        }
        used += column.width;
        if let Some(table) = tables.last_mut() {
            table.push(column);
        }
    }
    tables
}

/// Formats a figure with as many digits as fit into `room`: `12.34`, `1234.5`, `1.2M`.
fn fit_figure(value: f64, room: usize) -> String {
    const LARGER: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
    for (scale, suffix) in LARGER {
        for decimals in [2, 1, 0] {
            let text = format!("{:.decimals$}{suffix}", value / scale);
            if text.len() <= room {
                return text;
            }
        }
    }
    // The value is larger than any counter's.
    ">".repeat(room.min(1))
}

/// Width of the column with the names of processes, including the gap after it, in characters.
const PROCESS_NAME_WIDTH: usize = 16;
const PID_WIDTH: usize = 9;

const FIGURE_WIDTH: usize = 8;
/// Minimum width of the details next to the figures. With less room, the details get their own line.
const DETAILS_WIDTH: usize = 24;

/// A figure of a process and its heading.
type ProcessFigure = (&'static str, fn(&WatchedProcess) -> f64);

/// The figures of a process, the most important ones first.
const PROCESS_FIGURES: [ProcessFigure; 5] = [
    ("rMB/s", |p| p.read_mb_per_s),
    ("wMB/s", |p| p.write_mb_per_s),
    ("calls/s", |p| p.read_calls_per_s + p.write_calls_per_s),
    ("rchar", |p| p.rchar_mb_per_s),
    ("wchar", |p| p.wchar_mb_per_s),
];

/// Returns the lines of the processes, with headings if `headed`; `None` if there is nothing to print.
fn process_text(processes: &Processes, width: usize, headed: bool) -> Option<String> {
    if processes.listed.is_empty() && !(headed && processes.unreadable > 0) {
        return None;
    }
    let shown = figures_for_width(width);
    let mut out = String::new();
    if headed && !processes.listed.is_empty() && !shown.is_empty() {
        let first = if processes.listed.iter().any(|p| p.tid.is_some()) { "thread" } else { "process" };
        let names: Vec<String> = shown.iter().map(|(name, _)| format!("{name:>FIGURE_WIDTH$}")).collect();
        let names = names.concat();
        let line = format!("{first:PROCESS_NAME_WIDTH$}{:>PID_WIDTH$}{names}", "id");
        let details = "  files open here";
        // If the details do not fit next to the figures, they are on separate lines and have no heading.
        let fits = display_width(&line) + details.len() <= width;
        out += &format!("{line}{}\n", if fits { details } else { "" });
    }
    for process in &processes.listed {
        out += &process_line(process, &shown, width);
        out += &process.calls.as_ref().map_or_else(String::new, |calls| calls_line(calls, width));
    }
    if let Some(why) = &processes.calls_not_known {
        out += &prose(width, "  ", "    ", &format!("calls not known: {why}"));
    }
    if let Some(more) = processes.describe_more() {
        out += &prose(width, "  ", "  ", &more);
    }
    if headed && processes.unreadable > 0 {
        let text = format!("the kernel does not show the I/O of {} or more processes", processes.unreadable);
        out += &prose(width, "  ", "  ", &text);
    }
    Some(out)
}

/// Returns the figures of a process that fit into `width`: more than two only if the details fit
/// next to them.
fn figures_for_width(width: usize) -> Vec<&'static ProcessFigure> {
    let room = |number: usize| PROCESS_NAME_WIDTH + PID_WIDTH + number * FIGURE_WIDTH;
    let fits = |number: &usize| room(*number) + 2 + DETAILS_WIDTH <= width;
    let number = (3..=PROCESS_FIGURES.len()).rev().find(fits).unwrap_or(if room(2) <= width { 2 } else { 0 });
    PROCESS_FIGURES.iter().take(number).collect()
}

fn process_line(process: &WatchedProcess, shown: &[&ProcessFigure], width: usize) -> String {
    let id = process.tid.unwrap_or(process.pid);
    let figures: Vec<String> = shown
        .iter()
        .map(|(_, value)| format!("{:>FIGURE_WIDTH$}", fit_figure(value(process), FIGURE_WIDTH - 2)))
        .collect();
    let details = describe_process(process);
    let first = format!(
        "{:PROCESS_NAME_WIDTH$}{id:>PID_WIDTH$}{}",
        shorten(&process.name, PROCESS_NAME_WIDTH - 1),
        figures.concat()
    );
    if shown.is_empty() {
        // Too narrow for a table.
        let all: Vec<String> =
            PROCESS_FIGURES.iter().take(2).map(|(n, value)| format!("{n} {:.2}", value(process))).collect();
        return prose(width, "", "  ", &format!("{} ({id}): {}; {details}", process.name, all.join(", ")));
    }
    if display_width(&first) + 2 + DETAILS_WIDTH <= width {
        let indent = " ".repeat(display_width(&first) + 2);
        return append_wrapped(&format!("{first}  "), &indent, &details, width);
    }
    format!("{first}\n{}", prose(width, "    ", "    ", &details))
}

/// Appends details after the figures, with continuation lines below the first.
fn append_wrapped(first: &str, indent: &str, details: &str, width: usize) -> String {
    let room = width.saturating_sub(display_width(indent));
    let lines = prose(room, "", "", details);
    let mut out = String::new();
    for (at, line) in lines.lines().enumerate() {
        out += if at == 0 { first } else { indent };
        out += line;
        out.push('\n');
    }
    out
}

/// Describes the files that a process has open, and its requests.
fn describe_process(process: &WatchedProcess) -> String {
    if let Some(parent) = &process.children_of {
        return format!("ended children of {parent}");
    }
    let open = match &process.open {
        _ if process.kernel => "kernel worker, owner unknown".into(),
        Ok(open) => open.describe(),
        Err(why) => format!("not known: {why}"),
    };
    let requests = process.requests.as_ref().map(describe_requests).unwrap_or_default();
    if requests.is_empty() { open } else { format!("{open}; {requests}") }
}

/// Describes the requests of a process: `reads of 4 KiB, 2 % sequential; depth 3.9`. Empty if it
/// sent none to the watched devices.
fn describe_requests(requests: &ProcessRequests) -> String {
    let ways = [("reads", requests.read), ("writes", requests.write)];
    let mut parts: Vec<String> = ways
        .into_iter()
        .filter_map(|(name, known)| Some(format!("{name} of {}", request_sizes(&known?))))
        .collect();
    if requests.flush_per_s > 0.0 {
        parts.push(format!("{} flushes/s", fit_figure(requests.flush_per_s, FIGURE_WIDTH - 2)));
    }
    if requests.depth_mean > 0.0 {
        parts.push(format!("depth {}", fit_figure(requests.depth_mean, FIGURE_WIDTH - 2)));
    }
    parts.join("; ")
}

/// Returns the line of system calls and page faults of a process:
/// `calls/s: pread64 5000, fdatasync 12; page faults/s: 3 waited for storage, 12 did not`.
fn calls_line(process_calls: &ProcessCalls, width: usize) -> String {
    let rate = |per_s: f64| fit_figure(per_s, FIGURE_WIDTH - 2);
    let calls: Vec<String> =
        process_calls.calls.iter().map(|c| format!("{} {}", c.name, rate(c.per_s))).collect();
    let calls = if calls.is_empty() { "none that move data".to_owned() } else { calls.join(", ") };
    let faults = process_calls.faults.as_ref().map_or_else(String::new, |faults| {
        let [major, minor] = [faults.major_per_s, faults.minor_per_s].map(rate);
        format!("; page faults/s: {major} waited for storage, {minor} did not")
    });
    prose(width, "    ", "      ", &format!("calls/s: {calls}{faults}"))
}

fn request_sizes(requests: &RequestFigures) -> String {
    let median = show_bytes(requests.p50_bytes);
    let size = if requests.min_bytes == requests.max_bytes {
        median
    } else {
        format!("{median} ({} to {})", show_bytes(requests.min_bytes), show_bytes(requests.max_bytes))
    };
    format!("{size}, {} sequential", show_share(requests.sequential_percent / 100.0))
}

#[test]
fn figures_never_exceed_their_width() {
    let at = |room| [0.0, 9.994, 99.994, 1234.56, 99_999.4, 1_234_567.0, 9.9e11].map(|v| fit_figure(v, room));
    assert_eq!(at(6), ["0.00", "9.99", "99.99", "1234.6", "99999", "1235k", "990.0G"]);
    assert_eq!(at(5), ["0.00", "9.99", "99.99", "1235", "99999", "1235k", "990G"]);
    assert_eq!(at(4), ["0.00", "9.99", "100", "1235", "100k", "1.2M", "990G"]);
    for room in 4..8 {
        assert!((0..18).all(|e| fit_figure(10_f64.powi(e) * 9.999, room).len() <= room), "{room}");
    }
}

#[test]
fn all_columns_are_in_tables_that_fit_the_width() {
    for width in [40, 80, 120, 200] {
        let tables = column_tables(width);
        assert_eq!(tables.iter().map(Vec::len).sum::<usize>(), COLUMNS.len());
        let widths: Vec<usize> =
            tables.iter().map(|t| DEVICE_NAME_WIDTH + t.iter().map(|c| c.width).sum::<usize>()).collect();
        assert!(widths.iter().all(|w| *w <= width), "{width}: {widths:?}");
    }
    assert_eq!((column_tables(80).len(), column_tables(200).len()), (3, 1));
}

#[test]
fn details_follow_the_figures_or_are_below_them_if_narrow() {
    let processes = crate::fixture::watched().processes.unwrap_or_else(|| panic!("none"));
    let wide = process_text(&processes, 80, true).unwrap_or_default();
    let lines: Vec<&str> = wide.lines().collect();
    assert_eq!(lines[0], "process                id   rMB/s   wMB/s calls/s  files open here");
    let first = "fio                 12345    2.05    0.00  500.00  direct, sync, io_uring;";
    assert!(lines[1].starts_with(first), "{wide}");
    let details: Vec<&str> = lines[1..6].iter().flat_map(|line| line.split_whitespace()).collect();
    let requests = "reads of 4 KiB (4 KiB to 64 KiB), 2.0 % sequential; 0.50 flushes/s; depth 3.90";
    assert!(details.join(" ").contains(requests), "{wide}");
    let of_kernel = |line: &&&str| line.starts_with("kworker") && line.contains("kernel worker");
    assert!(lines.iter().any(|line| of_kernel(&line)), "{wide}");
    assert!(
        wide.contains("and 3 more") && wide.contains("does not show the I/O of 12 or more processes"),
        "{wide}"
    );
    let all: Vec<&str> = wide.split_whitespace().collect();
    let calls = "calls/s: io_uring_enter 500.00, fdatasync 3.00; page faults/s: 0.00 waited for storage, 12.00 did not";
    assert!(all.join(" ").contains(calls), "{wide}");
    let narrow = process_text(&processes, 44, true).unwrap_or_default();
    assert!(narrow.contains("\n    direct, sync, io_uring;"), "{narrow}");
    assert!(!process_text(&processes, 80, false).unwrap_or_default().contains("hidden"));
    let none =
        Processes { listed: Vec::new(), unlisted: 0, unreadable: 0, seconds: 1.0, calls_not_known: None };
    assert_eq!(process_text(&none, 80, true), None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::watched;
    use crate::page::display_width;

    #[test]
    fn lines_fit_every_width_and_wider_lines_have_more_columns() {
        let watched = watched();
        let mut last = 0;
        for width in 20..150 {
            let text = watched_text(&watched, width);
            assert!(text.lines().all(|line| display_width(line) <= width), "{width}: {text}");
            let names = text.lines().find(|l| l.starts_with("device")).unwrap_or_default();
            let number = names.split_whitespace().count();
            assert!(number >= last, "{width}: {text}");
            last = number;
        }
        let names = |width| {
            watched_text(&watched, width).lines().find(|l| l.starts_with("device")).map(str::to_owned)
        };
        let narrow = "device         r/s  rMB/s    w/s  wMB/s";
        assert_eq!(names(40).as_deref(), Some(narrow));
        let usual = "device         r/s  rMB/s r_await rareq    w/s  wMB/s w_await wareq aqu-sz %util";
        assert_eq!(names(80).as_deref(), Some(usual));
    }

    #[test]
    fn unknown_values_have_a_reason_and_are_not_zero() {
        let text = watched_text(&watched(), 80);
        let row = |name: &str| text.lines().find(|l| l.trim_start().starts_with(name)).unwrap_or_default();
        let figures: Vec<&str> = row("loop0").split_whitespace().collect();
        assert_eq!(
            figures,
            ["loop0", "500.00", "2.05", "0.08", "4.00", "0.00", "0.00", "-", "-", "0.04", "4.00"]
        );
        assert!(
            row("vda").starts_with(" vda ") && row("vda").split_whitespace().skip(1).all(|cell| cell == "-")
        );
        assert!(text.contains("\n  vda: the kernel's counter of reads jumped back"), "{text}");
    }

    #[test]
    fn a_load_is_given_as_bounds_with_session_and_day() {
        let mut watched = watched();
        let text_of = |watched: &Watched| {
            let text = watched_text(watched, 200);
            let from = text.find("loop0: load is").unwrap_or(text.len());
            let shown: Vec<&str> = text[from..].split_whitespace().collect();
            shown.join(" ").split(" vda:").next().unwrap_or_default().to_owned()
        };
        let all = "loop0: load is between 25 % and 40 % of the measured capacity (VALID results of session 20261123-1, 2026-11-23, and 1 more)";
        assert_eq!(text_of(&watched), all);
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        load.at_most_percent = Some(25.2);
        assert!(text_of(&watched).contains("load is 25 % of the measured"), "{}", text_of(&watched));
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        (load.at_least_percent, load.at_most_percent) = (1.7, Some(126.0));
        let wide = "load is at least 1.7 %, perhaps all, of the measured capacity (VALID results";
        assert!(text_of(&watched).contains(wide), "{}", text_of(&watched));
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        (load.at_least_percent, load.at_most_percent) = (234.0, Some(234.0));
        let more = "load is 234 % of the measured capacity, so the device can do more than was measured (VALID results";
        assert!(text_of(&watched).contains(more), "{}", text_of(&watched));
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        (load.at_least_percent, load.at_most_percent, load.not_measured) =
            (25.2, None, vec![Direction::Write]);
        assert!(
            text_of(&watched)
                .contains("load is at least 25 % of the measured capacity (VALID results of session")
        );
        assert!(
            text_of(&watched).ends_with("; no session has a valid capacity for writes"),
            "{}",
            text_of(&watched)
        );
    }

    #[test]
    fn latencies_or_their_missing_reason_follow_the_device() {
        let mut watched = watched();
        let line = "\n  loop0: latency in ms p50/p99/max: read 0.07/0.31/1.25, flush 0.07/-/1.25\n";
        assert!(watched_text(&watched, 80).contains(line), "{}", watched_text(&watched, 80));
        watched.devices[0].latency = Some(Err("the kernel's tracer lost 137 events".into()));
        let expected = "loop0: latencies not known: the kernel's tracer lost 137 events";
        assert!(watched_text(&watched, 120).contains(expected));
    }

    #[test]
    fn one_device_is_a_line_per_interval_and_several_are_a_block() {
        let mut watched = watched();
        assert!(watched_text(&watched, 80).ends_with("\n\n"));
        watched.devices.truncate(1);
        (watched.devices[0].load, watched.devices[0].latency) = (None, None);
        (watched.processes, watched.has_headings, watched.remarks) = (None, false, Vec::new());
        (watched.cpu, watched.is_first) = (None, false);
        assert_eq!(watched_text(&watched, 80).lines().count(), 1);
    }

    #[test]
    fn the_cpu_line_precedes_the_devices_and_the_note_on_util_follows_them() {
        let mut watched = watched();
        let cpu = "avg-cpu: %user 1.4 %nice 0.0 %system 0.5 %iowait 1.7 %steal 0.0 %idle 96.4\ndevice ";
        assert!(watched_text(&watched, 80).starts_with(cpu), "{}", watched_text(&watched, 80));
        assert!(watched_text(&watched, 80).contains("100 % is not saturation"));
        watched.is_first = false;
        assert!(!watched_text(&watched, 80).contains("saturation"));
        watched.devices.clear();
        watched.processes = None;
        watched.remarks.clear();
        assert_eq!(watched_text(&watched, 80).lines().count(), 1, "{}", watched_text(&watched, 80));
    }

    #[test]
    fn options_of_iostat_change_columns_units_and_names() {
        let mut watched = watched();
        watched.devices[0].volume = Some("vg-root".into());
        watched.layout = Layout {
            all_columns: true,
            time: true,
            unit: RateUnit::Kib,
            volume_names: true,
            ..Layout::default()
        };
        let wide = watched_text(&watched, 200);
        assert!(wide.starts_with("2026-11-23T15:00:00+00:00\n"), "{wide}");
        let heads: Vec<&str> = wide.lines().filter(|l| l.starts_with("device")).collect();
        let [head] = heads[..] else { panic!("{wide}") };
        for name in ["rKiB/s", "rrqm/s", "wrqm/s", "drqm/s", "f_await", "%util"] {
            assert!(head.contains(name), "{head}");
        }
        assert!(wide.contains("\nvg-root     500.00 2000.0 "), "{wide}");
        let narrow = watched_text(&watched, 80);
        assert_eq!(narrow.lines().filter(|l| l.starts_with("vg-root ")).count(), 3, "{narrow}");
        assert!(narrow.lines().all(|l| display_width(l) <= 80), "{narrow}");
        watched.layout = Layout { active_only: true, ..Layout::default() };
        assert!(
            !watched_text(&watched, 80).lines().any(|l| l.starts_with(" vda")),
            "{}",
            watched_text(&watched, 80)
        );
    }

    #[test]
    fn new_conclusions_are_printed_and_explained_on_request() {
        use model::watch::{Conclusion, Rule};
        let mut watched = watched();
        watched.devices[0].conclusions = vec![Conclusion {
            rule: Rule::AtLimit,
            text: "loop0 is at its limit".into(),
            basis: "the load is 90 % of it".into(),
            is_new: true,
        }];
        assert!(
            watched_text(&watched, 80).contains("\n  loop0 is at its limit\n")
                && !watched_text(&watched, 80).contains("because")
        );
        watched.layout.explain = true;
        assert!(watched_text(&watched, 80).contains("limit\n    because the load is 90 % of it\n"));
        watched.devices[0].conclusions[0].is_new = false;
        assert!(!watched_text(&watched, 80).contains("limit\n"));
    }
}
