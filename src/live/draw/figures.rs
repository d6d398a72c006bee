//! Figures of the run that goes on: a line for each, with its course where there is room.
//!
//! For: rates, latencies, depth, CPU, pressure and others, ours beside the device's. Not for: results, which are the table's.

use super::{NARROW, Paint, fitting, take};
use crate::live::look::Look;
use crate::live::state::{Points, Sample, State};
use model::Known;
use model::units::{show_count, show_ns, show_rate, show_share};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline};

/// Not known.
pub(super) const UNKNOWN: &str = "-";
/// Columns of labels, and of figures beside a course, on a wide screen and on a narrow one.
const WIDE_COLUMNS: (usize, usize) = (12, 44);
const NARROW_COLUMNS: (usize, usize) = (9, 23);
/// Columns from which a course says anything.
pub(super) const SPARKLINE_COLUMNS_MIN: usize = 4;
/// Heights that a character shows beside none.
const SPARKLINE_LEVELS: u64 = 8;
/// Least rows for the figures and what else is shown, below which the two of the device are one.
const DEVICE_LATENCY_ROWS: u16 = 12;

/// One line.
struct Figure<'a> {
    label: &'a str,
    words: String,
    course: Option<&'a Points>,
    /// Something to notice.
    bad: bool,
}

impl<'a> Figure<'a> {
    fn new(label: &'a str, words: String) -> Self {
        Self { label, words, course: None, bad: false }
    }

    fn over(self, course: &'a Points) -> Self {
        Self { course: Some(course), ..self }
    }
}

/// Draws them on the uppermost rows of what is left.
pub(super) fn draw_figures(frame: &mut Frame, rest: &mut Rect, state: &State, look: Look) {
    let narrow = rest.width < NARROW;
    let mut all = workload_figures(state, narrow);
    all.extend(device_figures(state, narrow, rest.height >= DEVICE_LATENCY_ROWS));
    all.extend(machine_figures(state, narrow));
    let (label, words) = if narrow { NARROW_COLUMNS } else { WIDE_COLUMNS };
    let paint = Paint(look.colours);
    for figure in all {
        let at = take(rest, 1);
        if at.height == 0 {
            return;
        }
        let room = usize::from(at.width).saturating_sub(label);
        // Courses end on the right, so that they are told by the same time however much stands before them.
        let words = words.max(Span::raw(figure.words.as_str()).width() + 1);
        let course = figure.course.filter(|_| room >= words + SPARKLINE_COLUMNS_MIN);
        let room = if course.is_some() { words } else { room };
        let style = if figure.bad { paint.style(Color::Yellow) } else { ratatui::style::Style::new() };
        let spans = [
            Span::styled(format!("{:label$}", figure.label), paint.label()),
            Span::styled(fitting(&figure.words, room), style),
        ];
        frame.render_widget(Line::from_iter(spans), at);
        if let Some(points) = course {
            let left = (label + words) as u16;
            draw_sparkline(frame, Rect { x: at.x + left, width: at.width - left, ..at }, points, look);
        }
    }
}

pub(super) fn draw_sparkline(frame: &mut Frame, at: Rect, points: &Points, look: Look) {
    // Newest first and on the right, so that what was there before moves and nothing else.
    let whole = |point: &Option<f64>| point.map(|value| value.max(0.0).round() as u64);
    let newest: Vec<Option<u64>> = points.iter().rev().take(at.width.into()).map(whole).collect();
    // What is more than nothing is no zero, however small it is beside the others.
    let least = newest.iter().flatten().max().map_or(0, |most| most.div_ceil(SPARKLINE_LEVELS));
    let newest = newest.into_iter().map(|point| point.map(|n| if n > 0 { n.max(least) } else { 0 }));
    let line = Sparkline::default()
        .data(newest)
        .direction(RenderDirection::RightToLeft)
        .bar_set(look.bars())
        .absent_value_symbol(" ")
        .style(Paint(look.colours).course());
    frame.render_widget(line, at);
}

fn workload_figures(state: &State, narrow: bool) -> Vec<Figure<'_>> {
    let rate = state.pulse.rate.map(|r| show_rates(r.iops, r.bytes_per_s, narrow));
    let rate = match (&state.run, rate) {
        (Some(_), None) => "- warming up".to_owned(),
        (_, rate) => rate.unwrap_or_else(|| UNKNOWN.into()),
    };
    let [p50, p99, max] = state.pulse.latency_ns.map(|ns| show_latency(ns.map(|ns| ns as f64)));
    let depth = match (state.pulse.rate, &state.run) {
        (Some(rate), Some(run)) => format!("{} of {}", show_rate(rate.depth), show_count(run.depth as f64)),
        _ => UNKNOWN.into(),
    };
    let mut lines = vec![Figure::new("rate", rate).over(&state.course.iops)];
    if narrow {
        lines.push(Figure::new("p50 p99", format!("{p50}  {p99}")).over(&state.course.p99_ns));
        lines.push(Figure::new("max", max));
        lines.push(Figure::new("depth", format!("{depth}, CPU {}", busiest_worker(state.seen.as_ref()))));
    } else {
        let latency = format!("p50 {p50}  p99 {p99}  max {max}");
        lines.push(Figure::new("latency", latency).over(&state.course.p99_ns));
        lines.push(Figure::new("depth", depth + &device_depth(state)));
    }
    lines
}

/// `, 31.2 in the device`.
fn device_depth(state: &State) -> String {
    let Some(Ok(device)) = state.seen.as_ref().map(|s| &s.counted.device) else { return String::new() };
    format!(", {} in the device", show_rate(device.in_flight))
}

fn device_figures(state: &State, narrow: bool, roomy: bool) -> Vec<Figure<'_>> {
    let label = "device";
    let device = match state.seen.as_ref().map(|s| &s.counted.device) {
        None => return vec![Figure::new(label, UNKNOWN.into()).over(&state.course.device_iops)],
        Some(Err(why)) => return vec![Figure::new(label, format!("not counted: {why}"))],
        Some(Ok(device)) => device,
    };
    let rate = show_rates(device.iops, device.bytes_per_s, narrow);
    let name = if narrow { String::new() } else { format!("  {}", device.name) };
    let mut lines = vec![Figure::new(label, rate + &name).over(&state.course.device_iops)];
    if roomy {
        let words = format!("{} a request, mean", show_latency(device.latency_ns));
        lines.push(Figure::new("", words).over(&state.course.device_ns));
    }
    lines
}

fn machine_figures(state: &State, narrow: bool) -> Vec<Figure<'_>> {
    let seen = state.seen.as_ref();
    let pressure = seen.map(|s| &s.counted.pressure);
    let waited = match pressure {
        None => UNKNOWN.into(),
        Some([Err(why), Err(_), Err(_)]) => format!("not counted: {why}"),
        Some(all) => {
            let [io, cpu, memory] = all.each_ref().map(show_known_share);
            let last = if narrow { "mem" } else { "memory" };
            format!("I/O {io}  CPU {cpu}  {last} {memory}")
        }
    };
    let (words, bad) = other_processes(seen);
    let mut lines = vec![Figure::new("pressure", waited), Figure { bad, ..Figure::new("others", words) }];
    if !narrow {
        let cpu = match seen.map(|s| &s.busiest) {
            Some(Ok(used)) => format!("{} of one by the busiest worker", show_share(*used)),
            _ => UNKNOWN.into(),
        };
        lines.insert(0, Figure::new("CPU", cpu));
    }
    lines
}

fn busiest_worker(seen: Option<&Sample>) -> String {
    seen.map_or_else(|| UNKNOWN.into(), |s| show_known_share(&s.busiest))
}

fn show_known_share(of: &Known<f64>) -> String {
    of.as_ref().map_or_else(|_| UNKNOWN.into(), |share| show_share(*share))
}

/// What others do on our disks, and who.
fn other_processes(seen: Option<&Sample>) -> (String, bool) {
    match seen.map(|s| (&s.counted.others, &s.culprit)) {
        None => (UNKNOWN.into(), false),
        Some((Err(why), _)) => (format!("{UNKNOWN} ({why})"), false),
        Some((Ok(None), _)) => ("too little to disturb".into(), false),
        Some((Ok(Some(by)), Ok(who))) => (format!("{who}: {}", by.describe()), true),
        Some((Ok(Some(by)), Err(_))) => (by.describe(), true),
    }
}

/// `78,912 IOPS  323 MB/s`.
fn show_rates(iops: f64, bytes_per_s: f64, narrow: bool) -> String {
    let between = if narrow { " " } else { "  " };
    format!("{} IOPS{between}{} MB/s", show_rate(iops), show_rate(bytes_per_s / 1e6))
}

fn show_latency(ns: Option<f64>) -> String {
    ns.map_or_else(|| UNKNOWN.into(), show_ns)
}
