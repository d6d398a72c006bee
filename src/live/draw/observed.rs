//! Drawing what `fathom watch` sees: a row for each device with the course of its requests, then who does it.
//!
//! For: any size of a screen; less shows what fits. Not for: the state ([`crate::live::observed`]).

use super::figures::{SPARKLINE_COLUMNS_MIN, UNKNOWN, draw_sparkline};
use super::{AIRY, NARROW, Paint, fitting, only_ascii, take, wrapped};
use crate::live::look::Look;
use crate::live::observed::Observed;
use model::units::{show_bytes, show_ns, show_rate, show_share};
use model::watch::{CpuShares, DeviceInterval, Latency, Load, WatchedDevice, WatchedProcess};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

/// Columns of a name, of a figure, and of the load.
const NAME_COLUMNS: usize = 12;
const FIGURE_COLUMNS: usize = 8;
const LOAD_COLUMNS: usize = 11;
/// Columns of a process's name with its number.
const PROCESS_COLUMNS: usize = 24;
/// Before a conclusion.
const INDENT: &str = "  ";
/// Calls of a process that are told.
const MOST_CALLS: usize = 2;

/// A figure of a device: what it is called, and the columns of the screen from which it is shown.
type DeviceColumn = (&'static str, u16, fn(&DeviceInterval) -> Option<f64>);

/// All of them, from left to right.
const DEVICE_COLUMNS: [DeviceColumn; 7] = [
    ("r/s", 0, |d| Some(d.read.per_s)),
    ("w/s", 0, |d| Some(d.write.per_s)),
    ("MB/s", 60, |d| Some(d.read.mb_per_s + d.write.mb_per_s)),
    ("r ms", 72, |d| d.read.await_ms),
    ("w ms", 72, |d| d.write.await_ms),
    ("depth", 52, |d| Some(d.depth_mean)),
    ("%util", 100, |d| Some(d.util_percent)),
];

/// Draws all of it.
pub(in crate::live) fn draw_observed(frame: &mut Frame, observed: &Observed, look: Look) {
    let paint = Paint(look.colours);
    let mut rest = frame.area();
    let airy = rest.height >= AIRY;
    let at = take(&mut rest, 1);
    watch_title(frame, at, observed, paint);
    if let Some(cpu) = observed.cpu.filter(|_| airy) {
        let at = take(&mut rest, 1);
        frame.render_widget(Line::styled(fitting(&cpu_line(cpu), at.width.into()), paint.label()), at);
    }
    if airy {
        take(&mut rest, 1);
    }
    let foot = Rect { y: rest.bottom().saturating_sub(1), height: rest.height.min(1), ..rest };
    rest.height = rest.height.saturating_sub(1);
    device_rows(frame, &mut rest, observed, look);
    if airy {
        take(&mut rest, 1);
    }
    process_rows(frame, &mut rest, observed, paint);
    if airy {
        take(&mut rest, 1);
    }
    remark_rows(frame, rest, observed, paint);
    let words = fitting("q end   p plain lines", foot.width.into());
    frame.render_widget(Line::styled(words, paint.label()), foot);
    if !look.unicode {
        only_ascii(frame);
    }
}

fn watch_title(frame: &mut Frame, at: Rect, observed: &Observed, paint: Paint) {
    let every = show_ns(observed.interval.as_secs_f64() * 1e9);
    let when = match observed.time.get(11..19) {
        Some(time) if at.width >= NARROW => time.to_owned(),
        Some(_) => String::new(),
        None => "in the first interval".into(),
    };
    let words = fitting(&format!("fathom watch  every {every}  {when}"), at.width.into());
    frame.render_widget(Line::styled(words, paint.title()), at);
}

/// `cpu %  user 1.4  nice 0.0  system 0.5  iowait 1.7  steal 0.0  idle 96.4`.
fn cpu_line(cpu: CpuShares) -> String {
    format!(
        "cpu %  user {:.1}  nice {:.1}  system {:.1}  iowait {:.1}  steal {:.1}  idle {:.1}",
        cpu.user_percent,
        cpu.nice_percent,
        cpu.system_percent,
        cpu.iowait_percent,
        cpu.steal_percent,
        cpu.idle_percent
    )
}

fn device_rows(frame: &mut Frame, rest: &mut Rect, observed: &Observed, look: Look) {
    let paint = Paint(look.colours);
    let columns: Vec<&DeviceColumn> = DEVICE_COLUMNS.iter().filter(|(_, least, _)| rest.width >= *least).collect();
    let has_load =
        rest.width >= NARROW && observed.devices.iter().any(|device| matches!(device.load, Some(Ok(_))));
    if observed.devices.is_empty() {
        return;
    }
    let names: Vec<String> = columns.iter().map(|(name, ..)| format!("{name:>FIGURE_COLUMNS$}")).collect();
    let names = names.concat();
    let load = if has_load { format!("{:>LOAD_COLUMNS$}", "load") } else { String::new() };
    let head = fitting(&format!("{:NAME_COLUMNS$}{names}{load}", "device"), rest.width.into());
    let at = take(rest, 1);
    frame.render_widget(Line::styled(head, paint.label()), at);
    for device in &observed.devices {
        let at = take(rest, 1);
        if at.height == 0 {
            return;
        }
        let mut words = format!("{:NAME_COLUMNS$}", device_name(device));
        match &device.figures {
            Ok(figures) => {
                let cell = |column: &&DeviceColumn| column.2(figures).map_or_else(|| UNKNOWN.into(), show_rate);
                words.extend(columns.iter().map(|column| format!("{:>FIGURE_COLUMNS$}", cell(column))));
            }
            Err(why) => words += why,
        }
        if has_load && device.figures.is_ok() {
            words += &format!("{:>LOAD_COLUMNS$}", show_load(device));
        }
        let used = Span::raw(words.as_str()).width() as u16;
        frame.render_widget(Line::raw(fitting(&words, at.width.into())), at);
        if let Some(points) = observed.courses.get(&device.name).filter(|_| usize::from(used) + SPARKLINE_COLUMNS_MIN + 1 < at.width.into()) {
            draw_sparkline(frame, Rect { x: at.x + used + 1, width: at.width - used - 1, ..at }, points, look);
        }
        device_latencies(frame, rest, device, paint);
        for conclusion in &device.conclusions {
            for line in wrapped(&conclusion.text, usize::from(rest.width).saturating_sub(INDENT.len())) {
                let at = take(rest, 1);
                frame.render_widget(Line::styled(format!("{INDENT}{line}"), paint.style(Color::Yellow)), at);
            }
        }
    }
}

fn device_name(device: &WatchedDevice) -> String {
    let indent = " ".repeat(device.level.min(NAME_COLUMNS / 3));
    let words = fitting(&device.name, NAME_COLUMNS - 1 - indent.len());
    format!("{indent}{words}")
}

/// `25 to 40 %`; that a limit is not known is among the remarks.
fn show_load(device: &WatchedDevice) -> String {
    let Some(Ok(Load { at_least_percent, at_most_percent, .. })) = &device.load else {
        return UNKNOWN.into();
    };
    let percent = |value: f64| show_share(value / 100.0);
    let least = percent(*at_least_percent);
    match at_most_percent.map(percent) {
        Some(most) if most == least => least,
        Some(most) => format!("{}-{most}", least.trim_end_matches(" %")),
        None => format!("> {least}"),
    }
}

/// How long requests took, where the events of them are recorded; why that is not known.
fn device_latencies(frame: &mut Frame, rest: &mut Rect, device: &WatchedDevice, paint: Paint) {
    let (words, style) = match &device.latency {
        None => return,
        Some(Err(why)) => (format!("  latencies not known: {why}"), paint.style(Color::Yellow)),
        Some(Ok(all)) => {
            let parts: Vec<String> = all.all().map(|(name, of)| format!("{name} {}", show_percentiles(&of))).collect();
            if parts.is_empty() {
                return;
            }
            (format!("  ms p50/p99/max  {}", parts.join("  ")), Style::new())
        }
    };
    let at = take(rest, 1);
    frame.render_widget(Line::styled(fitting(&words, at.width.into()), style), at);
}

fn show_percentiles(of: &Latency) -> String {
    [of.p50_ms, of.p99_ms, Some(of.max_ms)].map(|ms| ms.map_or_else(|| UNKNOWN.into(), show_rate)).join("/")
}

fn process_rows(frame: &mut Frame, rest: &mut Rect, observed: &Observed, paint: Paint) {
    let Some(processes) = observed.processes.as_ref().filter(|p| !p.most.is_empty()) else { return };
    let head = format!("{:PROCESS_COLUMNS$}{:>FIGURE_COLUMNS$}{:>FIGURE_COLUMNS$}", "process", "rMB/s", "wMB/s");
    let at = take(rest, 1);
    frame.render_widget(Line::styled(fitting(&head, at.width.into()), paint.label()), at);
    if let Some(why) = &processes.calls_not_known {
        let at = take(rest, 1);
        let words = fitting(&format!("  calls not known: {why}"), at.width.into());
        frame.render_widget(Line::styled(words, paint.style(Color::Yellow)), at);
    }
    for process in &processes.most {
        let at = take(rest, 1);
        let id = process.tid.unwrap_or(process.pid).to_string();
        let who = fitting(&process.name, PROCESS_COLUMNS.saturating_sub(id.len() + 4));
        let [read, write] = [process.read_mb_per_s, process.write_mb_per_s].map(show_rate);
        let mut words = format!("{:PROCESS_COLUMNS$}{read:>FIGURE_COLUMNS$}{write:>FIGURE_COLUMNS$}", format!("{who} ({id})"));
        // On a narrow screen there is room for the figures alone.
        if at.width >= NARROW {
            words += &format!("  {}", describe_process(process));
        }
        frame.render_widget(Line::raw(fitting(&words, at.width.into())), at);
    }
    if processes.more > 0 {
        let at = take(rest, 1);
        let words = fitting(&format!("and {} more that moved less", processes.more), at.width.into());
        frame.render_widget(Line::styled(words, paint.label()), at);
    }
}

/// What it asks the devices for, which calls it makes, and how it has files open.
fn describe_process(process: &WatchedProcess) -> String {
    if let Some(parent) = &process.children_of {
        return format!("of {parent}");
    }
    let mut words = Vec::new();
    if let Some(asked) = process.requests.filter(|asked| asked.depth_mean > 0.0) {
        words.push(format!("depth {}", show_rate(asked.depth_mean)));
        let ways = [("reads", asked.read), ("writes", asked.write)];
        words.extend(ways.into_iter().filter_map(|(name, of)| {
            let of = of?;
            let (size, share) = (show_bytes(of.p50_bytes), show_share(of.sequential_percent / 100.0));
            Some(format!("{name} {size}, {share} sequential"))
        }));
    }
    let calls = process.calls.iter().flat_map(|all| all.calls.iter().take(MOST_CALLS));
    words.extend(calls.map(|call| format!("{} {}/s", call.name, show_rate(call.per_s))));
    words.push(match &process.open {
        _ if process.kernel => "kernel worker".into(),
        Ok(open) => open.describe(),
        Err(_) => UNKNOWN.into(),
    });
    words.join("; ")
}

/// The newest that there is room for.
fn remark_rows(frame: &mut Frame, mut rest: Rect, observed: &Observed, paint: Paint) {
    let mut lines: Vec<String> = Vec::new();
    for remark in observed.remarks.iter().rev() {
        let parts = wrapped(remark, rest.width.into());
        if lines.len() + parts.len() > usize::from(rest.height) {
            break;
        }
        lines.splice(0..0, parts);
    }
    for line in lines {
        let at = take(&mut rest, 1);
        frame.render_widget(Line::styled(line, paint.label()), at);
    }
}
