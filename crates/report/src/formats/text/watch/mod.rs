//! Prints an interval as text: the CPU line, a row for each device, its load compared with what was measured, conclusions, and the
//! processes that moved most. All lines fit the width.

mod columns;
mod processes;

use crate::format::Style;
use crate::prose::{prose, shorten};
use columns::{Column, DEVICE_NAME_WIDTH, UTIL_HEADING};
use model::capacity::Direction;
use model::units::show_share;
use model::watch::{CpuShares, Latency, Layout, Load, MeasuredIn, RateUnit, Watched, WatchedDevice};
use std::io::{self, Write};

/// What `%util` does not say.
const UTIL_NOTE: &str = "%util: share of the time with a request in flight; 100 % is not saturation, since most devices serve several \
                         requests at once";
/// Columns of a time in ms.
const TIME_WIDTH: usize = 6;

pub(super) fn write_watched(watched: &Watched, style: Style, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(watched_text(watched, style.width).as_bytes())
}

fn watched_text(watched: &Watched, width: usize) -> String {
    let layout = watched.layout;
    let tables = if layout.all_columns {
        columns::column_tables(width)
    } else {
        vec![columns::columns_for_width(width)]
    };
    let mut out = String::new();
    if layout.time {
        out += &format!("{}\n", watched.time);
    }
    for remark in &watched.remarks {
        out += &prose(width, "", "  ", remark);
    }
    let devices: Vec<&WatchedDevice> =
        watched.devices.iter().filter(|d| !layout.active_only || d.is_active()).collect();
    let has_util = tables.iter().flatten().any(|c| c.heading(layout.unit) == UTIL_HEADING);
    if watched.first && has_util && !watched.devices.is_empty() {
        out += &prose(width, "", "  ", UTIL_NOTE);
    }
    out += &watched.cpu.map_or_else(String::new, |cpu| cpu_line(cpu, width));
    for columns in tables.iter().filter(|_| !devices.is_empty()) {
        if watched.headed || tables.len() > 1 || layout.active_only {
            out += &column_headings(columns, layout.unit);
        }
        for device in &devices {
            out += &device_row(device, columns, layout);
        }
    }
    let mut below: Vec<String> = devices.iter().filter_map(|d| below_row(d, width)).collect();
    below.extend(devices.iter().filter_map(|d| latency_row(d, width)));
    below.extend(devices.iter().map(|d| conclusions(d, width, layout.explain)));
    below.extend(watched.processes.as_ref().and_then(|p| processes::process_text(p, width, watched.headed)));
    out += &below.concat();
    // A line alone stands below that of the interval before; several are a block.
    if out.lines().count() != 1 {
        out.push('\n');
    }
    out
}

/// `avg-cpu: %user 1.4 %nice 0.0 %system 0.5 %iowait 1.7 %steal 0.0 %idle 96.4`.
fn cpu_line(cpu: CpuShares, width: usize) -> String {
    let CpuShares { user_percent, nice_percent, system_percent, iowait_percent, steal_percent, idle_percent } =
        cpu;
    let words = format!(
        "avg-cpu: %user {user_percent:.1} %nice {nice_percent:.1} %system {system_percent:.1} %iowait \
         {iowait_percent:.1} %steal {steal_percent:.1} %idle {idle_percent:.1}"
    );
    prose(width, "", "  ", &words)
}

/// The conclusions that are new in this interval, with `--explain` the rule and the figures of each.
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

/// Names of columns, and their units below them.
fn column_headings(columns: &[&Column], unit: RateUnit) -> String {
    let line = |first: &str, word: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> =
            columns.iter().map(|c| format!("{:>width$}", word(c), width = c.width)).collect();
        format!("{}\n", format!("{first:DEVICE_NAME_WIDTH$}{}", cells.concat()).trim_end())
    };
    let units = line("", &|c| c.unit.to_owned());
    // The first columns name theirs.
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
            let text = value.map_or_else(|| "-".to_owned(), |v| columns::fit_figure(v, column.width - 1));
            format!("{text:>width$}", width = column.width)
        })
        .collect();
    format!("{name:DEVICE_NAME_WIDTH$}{}\n", cells.concat())
}

/// Why there are no figures, or what the load is of what was measured.
fn below_row(device: &WatchedDevice, width: usize) -> Option<String> {
    let line = |words: &str| prose(width, "  ", "    ", &format!("{}: {words}", device.name));
    match (&device.figures, &device.load) {
        (Err(why), _) => Some(line(why)),
        (Ok(_), Some(Ok(load))) => Some(line(&describe_load(load))),
        // That a limit is not known is said once, when watching begins.
        (Ok(_), Some(Err(_)) | None) => None,
    }
}

/// `loop0: latency in ms p50/p99/max: read 0.07/0.31/1.25`, or why that is not known.
fn latency_row(device: &WatchedDevice, width: usize) -> Option<String> {
    let words = match device.latency.as_ref()? {
        Err(why) => format!("latencies not known: {why}"),
        Ok(all) => {
            let parts: Vec<String> =
                all.all().map(|(name, of)| format!("{name} {}", latency_times(&of))).collect();
            // Nothing completed: the row above says that.
            if parts.is_empty() {
                return None;
            }
            format!("latency in ms p50/p99/max: {}", parts.join(", "))
        }
    };
    Some(prose(width, "  ", "    ", &format!("{}: {words}", device.name)))
}

fn latency_times(of: &Latency) -> String {
    let all = [of.p50_ms, of.p99_ms, Some(of.max_ms)];
    all.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| columns::fit_figure(ms, TIME_WIDTH))).join("/")
}

/// `load is between 24 % and 31 % of what was measured (session 20261123-..., 2026-11-23)`.
fn describe_load(load: &Load) -> String {
    let percent = |value: f64| show_share(value / 100.0);
    let least = percent(load.at_least_percent);
    let share = match load.at_most_percent.map(percent) {
        Some(most) if most == least => format!("load is {least}"),
        Some(most) => format!("load is between {least} and {most}"),
        None => format!("load is at least {least}"),
    };
    let words: Vec<&str> = load.not_measured.iter().map(|d: &Direction| d.word()).collect();
    let missing =
        if words.is_empty() { String::new() } else { format!("; {} were not measured", words.join(" and ")) };
    format!("{share} of what was measured{}{missing}", list_sessions(&load.sessions))
}

fn list_sessions(all: &[MeasuredIn]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let day = first.day().map_or(String::new(), |day| format!(", {day}"));
    let more = if all.len() > 1 { format!(", and {} more", all.len() - 1) } else { String::new() };
    format!(" (session {}{day}{more})", first.session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::watched;
    use crate::prose::display_width;

    #[test]
    fn lines_fit_every_width_and_wider_ones_have_more_columns() {
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
    fn what_is_not_known_is_no_zero_and_has_its_reason() {
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
    fn a_load_is_told_by_its_bounds_with_session_and_day() {
        let mut watched = watched();
        let told = |watched: &Watched| {
            let text = watched_text(watched, 200);
            let from = text.find("loop0: load is").unwrap_or(text.len());
            let words: Vec<&str> = text[from..].split_whitespace().collect();
            words.join(" ").split(" vda:").next().unwrap_or_default().to_owned()
        };
        let all = "loop0: load is between 25 % and 40 % of what was measured (session 20261123-1, 2026-11-23, and 1 more)";
        assert_eq!(told(&watched), all);
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        load.at_most_percent = Some(25.2);
        assert!(told(&watched).contains("load is 25 % of what"), "{}", told(&watched));
        let Some(Ok(load)) = &mut watched.devices[0].load else { panic!() };
        (load.at_most_percent, load.not_measured) = (None, vec![Direction::Write]);
        assert!(told(&watched).contains("load is at least 25 % of what was measured (session"));
        assert!(told(&watched).ends_with("; writes were not measured"), "{}", told(&watched));
    }

    #[test]
    fn latencies_stand_below_and_where_they_are_not_known_the_reason() {
        let mut watched = watched();
        let line = "\n  loop0: latency in ms p50/p99/max: read 0.07/0.31/1.25, flush 0.07/-/1.25\n";
        assert!(watched_text(&watched, 80).contains(line), "{}", watched_text(&watched, 80));
        watched.devices[0].latency = Some(Err("the kernel's tracer lost 137 events".into()));
        let said = "loop0: latencies not known: the kernel's tracer lost 137 events";
        assert!(watched_text(&watched, 120).contains(said));
    }

    #[test]
    fn a_device_alone_is_a_line_an_interval_and_several_are_a_block() {
        let mut watched = watched();
        assert!(watched_text(&watched, 80).ends_with("\n\n"));
        watched.devices.truncate(1);
        (watched.devices[0].load, watched.devices[0].latency) = (None, None);
        (watched.processes, watched.headed, watched.remarks) = (None, false, Vec::new());
        (watched.cpu, watched.first) = (None, false);
        assert_eq!(watched_text(&watched, 80).lines().count(), 1);
    }

    #[test]
    fn the_cpu_line_and_the_note_on_util_come_before_the_devices() {
        let mut watched = watched();
        let cpu = "\navg-cpu: %user 1.4 %nice 0.0 %system 0.5 %iowait 1.7 %steal 0.0 %idle 96.4\ndevice ";
        assert!(watched_text(&watched, 80).contains(cpu), "{}", watched_text(&watched, 80));
        assert!(watched_text(&watched, 80).contains("100 % is not saturation"));
        watched.first = false;
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
    fn a_conclusion_is_printed_while_it_is_new_and_explained_on_request() {
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
