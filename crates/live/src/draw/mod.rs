//! Draws the state of a measurement, or of `fathom watch`, on a screen of any size. A smaller screen shows fewer parts. The layout is made
//! for 40 to 120 columns and 10 to 40 rows.

#[cfg(test)]
mod tests;

use super::state::{CountedFinding, End, State};
use crate::RemainingTime;
use crate::progress_line::whole_words;
use crate::state::{HostProgress, HostState, JobResult, Points, Sample, WatchState};
use crate::terminal::Theme;
use model::Known;
use model::finding::Severity;
use model::name::visible;
use model::units::{show_bytes, show_count, show_ns, show_rate, show_share};
use model::watch::{CpuShares, DeviceInterval, Latency, Load, WatchedDevice, WatchedProcess};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, RenderDirection, Sparkline, Wrap};

/// Screens narrower than this use shorter texts.
const NARROW: u16 = 60;
/// Screens with at least this many rows have blank rows between parts.
const SPACIOUS_ROWS: u16 = 20;
/// The help, line by line.
const HELP: [&str; 9] = [
    "q  end after this run, q again: end at once; the report follows either way",
    "p  print plain progress lines instead",
    "h  close this help",
    "Ctrl-C ends at once, Ctrl-Z suspends",
    "",
    "-          unknown, or too few operations",
    "p50, p99   of the operations that completed since the last update",
    "pressure   share of the time in which some task waited (PSI)",
    "others     I/O of other processes on the disks of the targets",
];

/// Colours by meaning. `Paint(false)` draws without colours.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn style(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    fn title(self) -> Style {
        self.style(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    fn label(self) -> Style {
        self.style(Color::DarkGray)
    }

    fn series(self) -> Style {
        self.style(Color::Cyan)
    }

    fn finding(self, severity: Option<Severity>) -> Style {
        self.style(if severity.is_some_and(|severity| severity <= Severity::Relabels) {
            Color::Red
        } else {
            Color::Yellow
        })
    }
}

/// Draws the screen of a measurement.
pub(super) fn draw(frame: &mut Frame, state: &State, theme: Theme) {
    let paint = Paint(theme.colours);
    let mut rest = frame.area();
    let blank_rows = u16::from(rest.height >= SPACIOUS_ROWS);
    let top = take_rows(&mut rest, 1);
    draw_title(frame, top, state, paint);
    let at = take_rows(&mut rest, 1);
    draw_gauge(frame, at, state, theme);
    take_rows(&mut rest, blank_rows);
    let foot = Rect { y: rest.bottom().saturating_sub(1), height: rest.height.min(1), ..rest };
    rest.height = rest.height.saturating_sub(1);
    if state.help {
        let lines: Vec<Line> = HELP.iter().map(|l| Line::raw(*l)).collect();
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), rest);
    } else {
        draw_figures(frame, &mut rest, state, theme);
        take_rows(&mut rest, blank_rows);
        draw_hosts(frame, &mut rest, state, paint);
        draw_findings(frame, &mut rest, state, paint);
        draw_results(frame, rest, state, paint);
    }
    draw_footer(frame, foot, state, paint);
    if !theme.unicode {
        replace_non_ascii(frame);
    }
}

/// Takes `rows` rows from the top of the remaining area.
fn take_rows(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect { height: rows, ..*rest };
    (rest.y, rest.height) = (rest.y + rows, rest.height - rows);
    taken
}

/// Makes a text safe for a terminal and cuts it to a width. Cuts after a word if possible, because
/// a number that is cut reads as another number.
fn fit(text: &str, columns: usize) -> String {
    let shown = visible(text).replace(['\n', '\t'], " ");
    let is_too_wide = Span::raw(shown.as_str()).width() > columns;
    let words = whole_words(&shown, columns.saturating_sub(3)).filter(|_| is_too_wide);
    words.map_or_else(|| fit_name(&shown, columns), |words| format!("{words} .."))
}

/// Makes a name safe for a terminal and cuts it to a width. Cuts within a word too, because the
/// beginnings of names are often the same.
fn fit_name(name: &str, columns: usize) -> String {
    let shown = visible(name).replace(['\n', '\t'], " ");
    if Span::raw(shown.as_str()).width() <= columns {
        return shown;
    }
    let mut out = String::new();
    let mut used = 0;
    for c in shown.chars() {
        used += Span::raw(c.to_string()).width();
        if used + 2 > columns {
            break;
        }
        out.push(c);
    }
    out + &".."[..columns.min(2)]
}

fn draw_title(frame: &mut Frame, at: Rect, state: &State, paint: Paint) {
    let left = state.left.map_or_else(|| "-".to_owned(), RemainingTime::describe);
    let room = usize::from(at.width).saturating_sub(left.len() + 2);
    let is_narrow = at.width < NARROW;
    let name = if is_narrow { "" } else { "fathom  " };
    let step = if state.step.is_empty() { "preparing" } else { &state.step };
    let text = fit(step, room.saturating_sub(name.len()));
    frame.render_widget(Line::styled(format!("{name}{text}"), paint.title()), at);
    frame.render_widget(Line::raw(left).right_aligned(), at);
}

/// Draws the progress of the measurement. If that is unknown, draws the progress of the step.
fn draw_gauge(frame: &mut Frame, at: Rect, state: &State, theme: Theme) {
    let share = state.done.share();
    let text = share.map_or_else(|| "-".to_owned(), show_share);
    let width = usize::from(at.width).saturating_sub(8);
    let filled = (share.unwrap_or(0.0) * width as f64) as usize;
    let [full, empty] = theme.gauge();
    let line = format!("{}{} {text:>6}", full.repeat(filled), empty.repeat(width - filled));
    frame.render_widget(Line::styled(line, Paint(theme.colours).style(Color::Green)), at);
}

/// Draws the findings, worst first, and then the lasting messages. Findings and messages together take at most a third of the remaining
/// rows, rounded up. If there is room, a blank row follows.
fn draw_findings(frame: &mut Frame, rest: &mut Rect, state: &State, paint: Paint) {
    let rows = rest.height;
    let most = if rows < 4 { 1 } else { usize::from(rows.div_ceil(3)) };
    let width = usize::from(rest.width);
    // Returns at most this many lines, and the number of findings without a line.
    let fitted = |most: usize| {
        let (mut lines, mut hidden) = (Vec::new(), 0);
        for found in &state.findings {
            let room = most - lines.len();
            if room == 0 {
                hidden += 1;
                continue;
            }
            let parts = wrap_text(&describe_finding(found), width);
            // Show a finding completely if it fits, otherwise only its beginning.
            let parts = if parts.len() > room { vec![fit(&describe_finding(found), width)] } else { parts };
            lines.extend(parts.into_iter().map(|l| Line::styled(l, paint.finding(found.finding.severity))));
        }
        (lines, hidden)
    };
    let (mut lines, mut hidden) = fitted(most);
    if hidden > 0 && most > 1 {
        (lines, hidden) = fitted(most - 1);
        let findings = if hidden == 1 { "finding" } else { "findings" };
        lines.push(Line::raw(format!("and {hidden} more {findings}, in the report")));
    }
    if rows >= SPACIOUS_ROWS / 2 {
        for note in &state.notes {
            let parts = wrap_text(note, width);
            if lines.len() + parts.len() <= most {
                lines.extend(parts.into_iter().map(|l| Line::styled(l, paint.label())));
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    let at = take_rows(rest, lines.len() as u16);
    frame.render_widget(Paragraph::new(lines), at);
    if rows >= SPACIOUS_ROWS / 2 {
        take_rows(rest, 1);
    }
}

/// Formats a finding: `A04 HOLES_READ, 4K random read (2 runs): ...`.
fn describe_finding(found: &CountedFinding) -> String {
    let finding = &found.finding;
    let runs = if found.runs > 1 { format!(" ({} runs)", found.runs) } else { String::new() };
    let (id, name, about) = (finding.id, &finding.name, finding.about.join(", "));
    format!("{id} {name}, {about}{runs}: {}", finding.sentence)
}

/// Wraps a text between words.
fn wrap_text(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in visible(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if Span::raw(format!("{line} {word}")).width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {}", fit(word, columns.saturating_sub(2)))),
            None => lines.push(fit(word, columns)),
        }
    }
    lines
}

/// Draws a text on the topmost of the remaining rows.
fn draw_row(frame: &mut Frame, rest: &mut Rect, text: String, style: Style) {
    frame.render_widget(Line::styled(text, style), take_rows(rest, 1));
}

fn draw_footer(frame: &mut Frame, at: Rect, state: &State, paint: Paint) {
    let text = match (state.end, at.width < NARROW) {
        (End::Now, _) => "ending",
        (End::AfterRun, true) => "ends after this run; q: at once",
        (End::AfterRun, false) => "ends after this run, with a report; q again: at once",
        (End::No, true) => "q end  p plain  h help",
        (End::No, false) => "q end after this run   p plain progress   h help",
    };
    frame.render_widget(Line::styled(fit(text, at.width.into()), paint.label()), at);
}

/// Replaces characters beyond ASCII. File names may contain any character.
fn replace_non_ascii(frame: &mut Frame) {
    for cell in &mut frame.buffer_mut().content {
        if !cell.symbol().is_ascii() {
            cell.set_symbol("?");
        }
    }
}

/// Text for an unknown value.
const UNKNOWN: &str = "-";
/// Columns of a label and of a figure on a wide screen.
const WIDE_COLUMNS: (usize, usize) = (12, 44);
const NARROW_COLUMNS: (usize, usize) = (9, 23);
/// Minimum columns of a useful sparkline.
const SPARKLINE_COLUMNS_MIN: usize = 4;
/// Number of bar heights in a sparkline, without the height 0.
const SPARKLINE_LEVELS: u64 = 8;
/// With fewer remaining rows than this, the row with the device's mean latency is left out.
const DEVICE_LATENCY_ROWS: u16 = 12;

/// One row of figures.
struct FigureRow<'a> {
    label: &'a str,
    text: String,
    series: Option<&'a Points>,
    is_highlighted: bool,
}

impl<'a> FigureRow<'a> {
    fn new(label: &'a str, text: String) -> Self {
        Self { label, text, series: None, is_highlighted: false }
    }

    fn with_series(self, series: &'a Points) -> Self {
        Self { series: Some(series), ..self }
    }
}

/// Draws the figures of the current run.
fn draw_figures(frame: &mut Frame, rest: &mut Rect, state: &State, theme: Theme) {
    let is_narrow = rest.width < NARROW;
    let mut all = workload_figures(state, is_narrow);
    all.extend(device_figures(state, is_narrow, rest.height >= DEVICE_LATENCY_ROWS));
    all.extend(machine_figures(state, is_narrow));
    let (label_columns, text_columns) = if is_narrow { NARROW_COLUMNS } else { WIDE_COLUMNS };
    let paint = Paint(theme.colours);
    for figure in all {
        let at = take_rows(rest, 1);
        if at.height == 0 {
            return;
        }
        let room = usize::from(at.width).saturating_sub(label_columns);
        // Sparklines end at the right, so that all of them have the same time axis.
        let text_columns = text_columns.max(Span::raw(figure.text.as_str()).width() + 1);
        let series = figure.series.filter(|_| room >= text_columns + SPARKLINE_COLUMNS_MIN);
        let room = if series.is_some() { text_columns } else { room };
        let style = if figure.is_highlighted { paint.style(Color::Yellow) } else { Style::new() };
        let spans = [
            Span::styled(format!("{:label_columns$}", figure.label), paint.label()),
            Span::styled(fit(&figure.text, room), style),
        ];
        frame.render_widget(Line::from_iter(spans), at);
        if let Some(points) = series {
            let left = (label_columns + text_columns) as u16;
            draw_sparkline(frame, Rect { x: at.x + left, width: at.width - left, ..at }, points, theme);
        }
    }
}

fn draw_sparkline(frame: &mut Frame, at: Rect, points: &Points, theme: Theme) {
    // Newest point first, at the right.
    let to_height = |point: &Option<f64>| point.map(|value| value.max(0.0).round() as u64);
    let newest: Vec<Option<u64>> = points.iter().rev().take(at.width.into()).map(to_height).collect();
    // A value above zero is never drawn as zero.
    let least = newest.iter().flatten().max().map_or(0, |most| most.div_ceil(SPARKLINE_LEVELS));
    let newest = newest.into_iter().map(|point| point.map(|n| if n > 0 { n.max(least) } else { 0 }));
    let line = Sparkline::default()
        .data(newest)
        .direction(RenderDirection::RightToLeft)
        .bar_set(theme.bars())
        .absent_value_symbol(" ")
        .style(Paint(theme.colours).series());
    frame.render_widget(line, at);
}

fn workload_figures(state: &State, is_narrow: bool) -> Vec<FigureRow<'_>> {
    let rate = state.recent.rate.map(|r| show_rates(r.iops, r.bytes_per_s, is_narrow));
    let rate = match (state.run_depth, rate) {
        (Some(_), None) => "- warming up".to_owned(),
        (_, rate) => rate.unwrap_or_else(|| UNKNOWN.into()),
    };
    let [p50, p99, max] = state.recent.latency_ns.map(|ns| show_latency(ns.map(|ns| ns as f64)));
    let depth = match (state.recent.rate, state.run_depth) {
        (Some(rate), Some(depth)) => format!("{} of {}", show_rate(rate.depth), show_count(depth as f64)),
        _ => UNKNOWN.into(),
    };
    let mut lines = vec![FigureRow::new("rate", rate).with_series(&state.series.iops)];
    if is_narrow {
        lines.push(FigureRow::new("p50 p99", format!("{p50}  {p99}")).with_series(&state.series.p99_ns));
        lines.push(FigureRow::new("max", max));
        lines
            .push(FigureRow::new("depth", format!("{depth}, CPU {}", busiest_worker(state.sample.as_ref()))));
    } else {
        let latency = format!("p50 {p50}  p99 {p99}  max {max}");
        lines.push(FigureRow::new("latency", latency).with_series(&state.series.p99_ns));
        lines.push(FigureRow::new("depth", depth + &device_depth(state)));
    }
    lines
}

/// Formats the number of requests in flight in the device: `, 31.2 in the device`.
fn device_depth(state: &State) -> String {
    let Some(Ok(device)) = state.sample.as_ref().map(|s| &s.counted.device) else { return String::new() };
    format!(", {} in the device", show_rate(device.in_flight))
}

fn device_figures(state: &State, is_narrow: bool, is_roomy: bool) -> Vec<FigureRow<'_>> {
    let label = "device";
    let device = match state.sample.as_ref().map(|s| &s.counted.device) {
        None => return vec![FigureRow::new(label, UNKNOWN.into()).with_series(&state.series.device_iops)],
        Some(Err(why)) => return vec![FigureRow::new(label, format!("not counted: {why}"))],
        Some(Ok(device)) => device,
    };
    let rate = show_rates(device.iops, device.bytes_per_s, is_narrow);
    let name = if is_narrow { String::new() } else { format!("  {}", device.name) };
    let mut lines = vec![FigureRow::new(label, rate + &name).with_series(&state.series.device_iops)];
    if is_roomy {
        let text = format!("mean {} per request", show_latency(device.latency_ns));
        lines.push(FigureRow::new("", text).with_series(&state.series.device_ns));
    }
    lines
}

fn machine_figures(state: &State, is_narrow: bool) -> Vec<FigureRow<'_>> {
    let seen = state.sample.as_ref();
    let pressure = seen.map(|s| &s.counted.pressure);
    let waited = match pressure {
        None => UNKNOWN.into(),
        Some([Err(why), Err(_), Err(_)]) => format!("not counted: {why}"),
        Some(all) => {
            let [io, cpu, memory] = all.each_ref().map(show_known_share);
            let last = if is_narrow { "mem" } else { "memory" };
            format!("I/O {io}  CPU {cpu}  {last} {memory}")
        }
    };
    let (text, disturbs) = other_processes(seen);
    let mut lines = vec![
        FigureRow::new("pressure", waited),
        FigureRow { is_highlighted: disturbs, ..FigureRow::new("others", text) },
    ];
    if !is_narrow {
        let cpu = match seen.map(|s| &s.busiest_worker) {
            Some(Ok(used)) => format!("{} of one CPU by the busiest worker", show_share(*used)),
            _ => UNKNOWN.into(),
        };
        lines.insert(0, FigureRow::new("CPU", cpu));
    }
    lines
}

fn busiest_worker(seen: Option<&Sample>) -> String {
    seen.map_or_else(|| UNKNOWN.into(), |s| show_known_share(&s.busiest_worker))
}

fn show_known_share(share: &Known<f64>) -> String {
    share.as_ref().map_or_else(|_| UNKNOWN.into(), |share| show_share(*share))
}

/// Returns a description of the I/O of other processes on the targets' disks, with the busiest of
/// these processes, and whether this I/O disturbs the measurement.
fn other_processes(seen: Option<&Sample>) -> (String, bool) {
    match seen.map(|s| (&s.counted.others, &s.busiest_process)) {
        None => (UNKNOWN.into(), false),
        Some((Err(why), _)) => (format!("{UNKNOWN} ({why})"), false),
        Some((Ok(None), _)) => ("too little to disturb".into(), false),
        Some((Ok(Some(by)), Ok(who))) => (format!("{who}: {}", by.describe()), true),
        Some((Ok(Some(by)), Err(_))) => (by.describe(), true),
    }
}

/// Formats two rates: `78,912 IOPS  323 MB/s`.
fn show_rates(iops: f64, bytes_per_s: f64, is_narrow: bool) -> String {
    let between = if is_narrow { " " } else { "  " };
    format!("{} IOPS{between}{} MB/s", show_rate(iops), show_rate(bytes_per_s / 1e6))
}

fn show_latency(ns: Option<f64>) -> String {
    ns.map_or_else(|| UNKNOWN.into(), show_ns)
}

/// Columns of a figure in the table of results.
const CELL_COLUMNS: usize = 11;
/// Headings of the results on a wide screen.
const WIDE_HEADINGS: &[&str] = &["runs", "IOPS", "MB/s", "p50", "p99", "max"];
const MEDIUM_HEADINGS: &[&str] = &["IOPS", "MB/s", "p99"];
const NARROW_HEADINGS: &[&str] = &["IOPS"];
/// Screens with at least this many columns show all headings.
const WIDE_TABLE_COLUMNS: u16 = 100;

/// Draws the table of results on the remaining area.
fn draw_results(frame: &mut Frame, mut rest: Rect, state: &State, paint: Paint) {
    if state.results.is_empty() || rest.height == 0 {
        return;
    }
    let columns = match rest.width {
        w if w < NARROW => NARROW_HEADINGS,
        w if w < WIDE_TABLE_COLUMNS => MEDIUM_HEADINGS,
        _ => WIDE_HEADINGS,
    };
    if rest.height > 1 {
        let all = state.result_count.map_or(String::new(), |n| format!(" of {}", show_count(n as f64)));
        let title = format!("results: {}{all}", show_count(state.results.len() as f64));
        let cells = columns.iter().map(|name| (*name).to_owned());
        let text = table_row(&title, cells, rest.width);
        draw_row(frame, &mut rest, text, paint.label());
    }
    let shown = usize::from(rest.height);
    // Scrolls so that the last changed row is visible.
    let from = (state.last_changed + 1).saturating_sub(shown).min(state.results.len().saturating_sub(shown));
    for (index, result) in state.results.iter().enumerate().skip(from).take(shown) {
        let style = if index == state.last_changed { paint.title() } else { Style::new() };
        let cells = columns.iter().map(|name| result_cell(result, name));
        let text = table_row(&result.name, cells, rest.width);
        draw_row(frame, &mut rest, text, style);
    }
}

/// A table row: a name and figures in columns.
fn table_row(name: &str, cells: impl ExactSizeIterator<Item = String>, width: u16) -> String {
    let room = usize::from(width).saturating_sub(cells.len() * CELL_COLUMNS);
    let name = fit_name(name, room.saturating_sub(1));
    let blanks = room.saturating_sub(Span::raw(name.as_str()).width());
    let start = format!("{name}{}", " ".repeat(blanks));
    cells.fold(start, |line, cell| format!("{line}{cell:>CELL_COLUMNS$}"))
}

/// Returns a cell of the table of results. An unknown value is not shown as zero.
fn result_cell(result: &JobResult, column: &str) -> String {
    let figures = &result.figures;
    let [p50, p99, max] = figures.latency_ns.map(|ns| ns.map(|ns| show_ns(ns as f64)));
    let text = match column {
        "runs" => Some(figures.runs.to_string()),
        "IOPS" => figures.iops.map(show_rate),
        "MB/s" => figures.iops.zip(result.op_bytes).map(|(iops, bytes)| show_rate(iops * bytes / 1e6)),
        "p50" => p50,
        "p99" => p99,
        _ => max,
    };
    text.unwrap_or_else(|| UNKNOWN.into())
}

/// Headings of the hosts on a wide screen.
const WIDE_HOST_HEADINGS: &[&str] = &["IOPS", "p99", "state"];
const NARROW_HOST_HEADINGS: &[&str] = &["IOPS", "state"];
/// With at least this many remaining rows the table of hosts has a title and a blank row after the table.
const HOST_TITLE_ROWS: u16 = 6;

/// Draws the table of hosts, on at most half of the remaining rows.
fn draw_hosts(frame: &mut Frame, rest: &mut Rect, state: &State, paint: Paint) {
    let is_roomy = rest.height >= HOST_TITLE_ROWS;
    let room = usize::from(rest.height.div_ceil(2)).saturating_sub(if is_roomy { 2 } else { 0 });
    let shown = state.hosts.len().min(room);
    if shown == 0 {
        return;
    }
    let columns = if rest.width < NARROW { NARROW_HOST_HEADINGS } else { WIDE_HOST_HEADINGS };
    if is_roomy {
        let all = show_count(state.host_count as f64);
        let title = if shown < state.host_count {
            format!("hosts: {shown} of {all}, worst first")
        } else {
            format!("hosts: {all}")
        };
        let headings = columns.iter().map(|name| (*name).to_owned());
        draw_row(frame, rest, table_row(&title, headings, rest.width), paint.label());
    }
    let mut rows: Vec<&HostProgress> = state.hosts.iter().take(shown).collect();
    if shown == state.host_count {
        rows.sort_by_key(|host| host.rank);
    }
    for host in rows {
        let style = match host.state {
            HostState::Lost | HostState::Hung => paint.finding(Some(Severity::Invalidates)),
            HostState::Waiting => paint.label(),
            HostState::Measuring => Style::new(),
        };
        let cells = columns.iter().map(|name| host_cell(host, name));
        draw_row(frame, rest, table_row(&host.name, cells, rest.width), style);
    }
    if is_roomy {
        take_rows(rest, 1);
    }
}

/// Returns a cell of the table of hosts. An unknown value is not shown as zero.
fn host_cell(host: &HostProgress, column: &str) -> String {
    let text = match column {
        "IOPS" => host.iops.map(show_rate),
        "p99" => host.p99_ns.map(|ns| show_ns(ns as f64)),
        _ => Some(host.state.word().into()),
    };
    text.unwrap_or_else(|| UNKNOWN.into())
}

/// Width in columns of the name of a device.
const NAME_COLUMNS: usize = 12;
const FIGURE_COLUMNS: usize = 8;
const LOAD_COLUMNS: usize = 11;
/// Width in columns of a process name with its id.
const PROCESS_COLUMNS: usize = 24;
/// Indent of a conclusion.
const INDENT: &str = "  ";
/// Maximum number of calls shown per process.
const MOST_CALLS: usize = 2;

/// A column of the device table: its heading, the minimum width of a screen that shows it, and its
/// figure.
type DeviceColumn = (&'static str, u16, fn(&DeviceInterval) -> Option<f64>);

/// All columns of the device table, from left to right.
const DEVICE_COLUMNS: [DeviceColumn; 7] = [
    ("r/s", 0, |d| Some(d.read.per_s)),
    ("w/s", 0, |d| Some(d.write.per_s)),
    ("MB/s", 60, |d| Some(d.read.mb_per_s + d.write.mb_per_s)),
    ("r ms", 72, |d| d.read.await_ms),
    ("w ms", 72, |d| d.write.await_ms),
    ("depth", 52, |d| Some(d.depth_mean)),
    ("%util", 100, |d| Some(d.util_percent)),
];

/// Draws the screen of `fathom watch`.
pub(crate) fn draw_watch(frame: &mut Frame, state: &WatchState, theme: Theme) {
    let paint = Paint(theme.colours);
    let mut rest = frame.area();
    let is_spacious = rest.height >= SPACIOUS_ROWS;
    let blank_rows = u16::from(is_spacious);
    let at = take_rows(&mut rest, 1);
    draw_watch_title(frame, at, state, paint);
    if let Some(cpu) = state.cpu.filter(|_| is_spacious) {
        let text = fit(&cpu_line(cpu), rest.width.into());
        draw_row(frame, &mut rest, text, paint.label());
    }
    take_rows(&mut rest, blank_rows);
    let foot = Rect { y: rest.bottom().saturating_sub(1), height: rest.height.min(1), ..rest };
    rest.height = rest.height.saturating_sub(1);
    draw_devices(frame, &mut rest, state, theme);
    take_rows(&mut rest, blank_rows);
    draw_processes(frame, &mut rest, state, paint);
    take_rows(&mut rest, blank_rows);
    draw_remarks(frame, rest, state, paint);
    let text = fit("q end   p plain lines", foot.width.into());
    frame.render_widget(Line::styled(text, paint.label()), foot);
    if !theme.unicode {
        replace_non_ascii(frame);
    }
}

fn draw_watch_title(frame: &mut Frame, at: Rect, state: &WatchState, paint: Paint) {
    let every = show_ns(state.interval.as_secs_f64() * 1e9);
    let when = match state.time.get(11..19) {
        Some(time) if at.width >= NARROW => time.to_owned(),
        Some(_) => String::new(),
        None => "in the first interval".into(),
    };
    let text = fit(&format!("fathom watch  every {every}  {when}"), at.width.into());
    frame.render_widget(Line::styled(text, paint.title()), at);
}

/// Formats the CPU shares: `cpu %  user 1.4  nice 0.0  system 0.5  iowait 1.7  steal 0.0  idle 96.4`.
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

fn draw_devices(frame: &mut Frame, rest: &mut Rect, state: &WatchState, theme: Theme) {
    let paint = Paint(theme.colours);
    let columns: Vec<&DeviceColumn> =
        DEVICE_COLUMNS.iter().filter(|(_, least, _)| rest.width >= *least).collect();
    let has_load =
        rest.width >= NARROW && state.devices.iter().any(|device| matches!(device.load, Some(Ok(_))));
    if state.devices.is_empty() {
        return;
    }
    let names: Vec<String> = columns.iter().map(|(name, ..)| format!("{name:>FIGURE_COLUMNS$}")).collect();
    let names = names.concat();
    let load = if has_load { format!("{:>LOAD_COLUMNS$}", "load") } else { String::new() };
    let head = fit(&format!("{:NAME_COLUMNS$}{names}{load}", "device"), rest.width.into());
    draw_row(frame, rest, head, paint.label());
    for device in &state.devices {
        let at = take_rows(rest, 1);
        if at.height == 0 {
            return;
        }
        let mut text = format!("{:NAME_COLUMNS$}", device_name(device));
        match &device.figures {
            Ok(figures) => {
                let cell =
                    |column: &&DeviceColumn| column.2(figures).map_or_else(|| UNKNOWN.into(), show_rate);
                text.extend(columns.iter().map(|column| format!("{:>FIGURE_COLUMNS$}", cell(column))));
            }
            Err(why) => text += why,
        }
        if has_load && device.figures.is_ok() {
            text += &format!("{:>LOAD_COLUMNS$}", show_load(device));
        }
        let used = Span::raw(text.as_str()).width() as u16;
        frame.render_widget(Line::raw(fit(&text, at.width.into())), at);
        if let Some(points) = state
            .device_series
            .get(&device.name)
            .filter(|_| usize::from(used) + SPARKLINE_COLUMNS_MIN + 1 < at.width.into())
        {
            draw_sparkline(
                frame,
                Rect { x: at.x + used + 1, width: at.width - used - 1, ..at },
                points,
                theme,
            );
        }
        draw_device_latencies(frame, rest, device, paint);
        for conclusion in &device.conclusions {
            for line in wrap_text(&conclusion.text, usize::from(rest.width).saturating_sub(INDENT.len())) {
                draw_row(frame, rest, format!("{INDENT}{line}"), paint.style(Color::Yellow));
            }
        }
    }
}

fn device_name(device: &WatchedDevice) -> String {
    let indent = " ".repeat(device.level.min(NAME_COLUMNS / 3));
    let text = fit_name(&device.name, NAME_COLUMNS - 1 - indent.len());
    format!("{indent}{text}")
}

/// Formats the load: `25-40 %`, or `>= 25 %` without an upper limit. A remark explains why there is none.
fn show_load(device: &WatchedDevice) -> String {
    let Some(Ok(Load { at_least_percent, at_most_percent, .. })) = &device.load else {
        return UNKNOWN.into();
    };
    let percent = |value: f64| show_share(value / 100.0);
    let least = percent(*at_least_percent);
    match at_most_percent.map(percent) {
        Some(most) if most == least => least,
        Some(most) => format!("{}-{most}", least.trim_end_matches(" %")),
        None => format!(">= {least}"),
    }
}

/// Draws the latencies of the requests, or why they are unknown.
fn draw_device_latencies(frame: &mut Frame, rest: &mut Rect, device: &WatchedDevice, paint: Paint) {
    let (text, style) = match &device.latency {
        None => return,
        Some(Err(why)) => (format!("  latencies unknown: {why}"), paint.style(Color::Yellow)),
        Some(Ok(all)) => {
            let parts: Vec<String> =
                all.all().map(|(name, latency)| format!("{name} {}", show_percentiles(&latency))).collect();
            if parts.is_empty() {
                return;
            }
            (format!("  ms p50/p99/max  {}", parts.join("  ")), Style::new())
        }
    };
    draw_row(frame, rest, fit(&text, rest.width.into()), style);
}

fn show_percentiles(latency: &Latency) -> String {
    [latency.p50_ms, latency.p99_ms, Some(latency.max_ms)]
        .map(|ms| ms.map_or_else(|| UNKNOWN.into(), show_rate))
        .join("/")
}

fn draw_processes(frame: &mut Frame, rest: &mut Rect, state: &WatchState, paint: Paint) {
    let Some(processes) = state.processes.as_ref().filter(|p| !p.listed.is_empty()) else { return };
    let head =
        format!("{:PROCESS_COLUMNS$}{:>FIGURE_COLUMNS$}{:>FIGURE_COLUMNS$}", "process", "rMB/s", "wMB/s");
    draw_row(frame, rest, fit(&head, rest.width.into()), paint.label());
    if let Some(why) = &processes.calls_not_known {
        let text = fit(&format!("  calls unknown: {why}"), rest.width.into());
        draw_row(frame, rest, text, paint.style(Color::Yellow));
    }
    for process in &processes.listed {
        let id = process.tid.unwrap_or(process.pid).to_string();
        let who = fit_name(&process.name, PROCESS_COLUMNS.saturating_sub(id.len() + 4));
        let [read, write] = [process.read_mb_per_s, process.write_mb_per_s].map(show_rate);
        let mut text = format!(
            "{:PROCESS_COLUMNS$}{read:>FIGURE_COLUMNS$}{write:>FIGURE_COLUMNS$}",
            format!("{who} ({id})")
        );
        // A narrow screen has room only for the figures.
        if rest.width >= NARROW {
            text += &format!("  {}", describe_process(process));
        }
        draw_row(frame, rest, fit(&text, rest.width.into()), Style::new());
    }
    if let Some(more) = processes.describe_more() {
        draw_row(frame, rest, fit(&more, rest.width.into()), paint.label());
    }
}

/// Describes a process: its requests, its calls and its open files.
fn describe_process(process: &WatchedProcess) -> String {
    if let Some(parent) = &process.children_of {
        return format!("ended children of {parent}");
    }
    let mut parts = Vec::new();
    if let Some(requests) = process.requests.filter(|requests| requests.depth_mean > 0.0) {
        parts.push(format!("depth {}", show_rate(requests.depth_mean)));
        let directions = [("reads", requests.read), ("writes", requests.write)];
        parts.extend(directions.into_iter().filter_map(|(name, requests)| {
            let requests = requests?;
            let size = show_bytes(requests.p50_bytes);
            let share = show_share(requests.sequential_percent / 100.0);
            Some(format!("{name} {size}, {share} sequential"))
        }));
    }
    let calls = process.calls.iter().flat_map(|all| all.calls.iter().take(MOST_CALLS));
    parts.extend(calls.map(|call| format!("{} {}/s", call.name, show_rate(call.per_s))));
    parts.push(match &process.open {
        _ if process.kernel => "kernel worker".into(),
        Ok(open) => open.describe(),
        Err(_) => UNKNOWN.into(),
    });
    parts.join("; ")
}

/// Draws the newest remarks that fit.
fn draw_remarks(frame: &mut Frame, mut rest: Rect, state: &WatchState, paint: Paint) {
    let mut lines: Vec<String> = Vec::new();
    for remark in state.remarks.iter().rev() {
        let parts = wrap_text(remark, rest.width.into());
        if lines.len() + parts.len() > usize::from(rest.height) {
            break;
        }
        lines.splice(0..0, parts);
    }
    for line in lines {
        draw_row(frame, &mut rest, line, paint.label());
    }
}
