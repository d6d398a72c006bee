//! What the host did beside the course of a result: strips of CPU time and of waiting, on the same axis of time.
//!
//! For: one value a run, as the kernel's counters were read at its start and stop. Not for: whether it was too much, which findings say.

use super::plot::axis::Tick;
use super::plot::strip::{strip, strip_middle};
use super::plot::{Label, Plot};
use super::timeline::Timeline;
use model::report::{HostFigures, Measured, RunFigures};
use model::units::show_share;

/// Height of a strip in pixels, with what is left above it.
const STRIP_HEIGHT: u32 = 17;

/// A strip: what stands beside it, what it is for whoever asks, and its value of a run.
struct HostStrip {
    name: &'static str,
    words: &'static str,
    of: fn(&HostFigures) -> Option<f64>,
    /// Whether zero is worth a strip.
    shows_zero: bool,
}

const HOST_STRIPS: [HostStrip; 6] = [
    HostStrip { name: "worker", words: "CPU of the busiest worker", of: |h| h.worker_cpu, shows_zero: true },
    HostStrip { name: "all CPUs", words: "CPU of the host", of: |h| h.cpu, shows_zero: true },
    HostStrip {
        name: "I/O wait",
        words: "some task waited for I/O",
        of: |h| h.io_pressure,
        shows_zero: true,
    },
    HostStrip {
        name: "CPU wait",
        words: "some task waited for a CPU",
        of: |h| h.cpu_pressure,
        shows_zero: true,
    },
    HostStrip {
        name: "mem wait",
        words: "some task waited for memory",
        of: |h| h.memory_pressure,
        shows_zero: false,
    },
    HostStrip { name: "paused", words: "paused by a CPU quota", of: |h| h.quota_paused, shows_zero: false },
];

/// The strips of all runs; `None` where nothing of it is known.
pub(super) fn draw_strips(result: &Measured, timeline: &Timeline, link: &str) -> Option<Plot> {
    let known = |row: &&HostStrip| {
        let mut values = result.runs.iter().filter_map(|run| (row.of)(&run.host));
        values.any(|share| row.shows_zero || share > 0.0)
    };
    let rows: Vec<&HostStrip> = HOST_STRIPS.iter().filter(known).collect();
    if rows.is_empty() {
        return None;
    }
    let said: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.words, mean_over_runs(row, result)?)))
        .collect();
    let mut plot = Plot {
        title: "CPU and waiting, share of the time of each run".into(),
        says: format!("Means over runs: {}", said.join(", ")),
        height: STRIP_HEIGHT * rows.len() as u32,
        // Marks without words: those above and below say which time it is.
        x: timeline.ticks().into_iter().map(|tick| Tick { label: String::new(), ..tick }).collect(),
        link: link.to_owned(),
        ..Plot::default()
    };
    for (at, row) in rows.iter().enumerate() {
        let stretch = |run: &RunFigures| {
            let [from, to] = timeline.span(run.run)?;
            Some((from, to, (row.of)(&run.host)))
        };
        let drawn = strip(at, rows.len(), &result.runs.iter().filter_map(stretch).collect::<Vec<_>>());
        plot.draw("ground", &drawn.ground);
        plot.draw("block", &drawn.blocks);
        if let Some(mean) = mean_over_runs(row, result) {
            plot.right.push(Label {
                at: strip_middle(at, rows.len()),
                text: format!("{} {mean}", row.name),
                class: "",
            });
        }
    }
    let stops = result.runs.iter().filter_map(|run| {
        let [from, to] = timeline.span(run.run)?;
        let told = rows.iter().map(|row| {
            let share = (row.of)(&run.host).map_or_else(|| "not counted".into(), show_share);
            format!("\n{}: {share}", row.words)
        });
        let words = format!("run {}{}", run.run.saturating_add(1), told.collect::<String>());
        Some((f64::midpoint(from, to), words))
    });
    plot.stop_at(&stops.collect::<Vec<_>>());
    Some(plot)
}

/// The mean over the runs that say so.
fn mean_over_runs(row: &HostStrip, result: &Measured) -> Option<String> {
    let all: Vec<f64> = result.runs.iter().filter_map(|run| (row.of)(&run.host)).collect();
    (!all.is_empty()).then(|| short_share(all.iter().sum::<f64>() / all.len() as f64))
}

/// A share with the digits that there is room for.
fn short_share(share: f64) -> String {
    match share {
        0.0 => "0 %".into(),
        s if s < 0.0005 => "<0.1 %".into(),
        s if s < 0.0995 => format!("{:.1} %", 100.0 * s),
        s => format!("{:.0} %", 100.0 * s),
    }
}

#[test]
fn a_share_has_few_digits_and_a_small_one_is_not_zero() {
    assert_eq!(
        [0.0, 0.0001, 0.0072, 0.0999, 1.0].map(short_share),
        ["0 %", "<0.1 %", "0.7 %", "10 %", "100 %"]
    );
}

#[test]
fn each_run_has_a_block_where_it_ran_and_none_where_nobody_counted() -> Result<(), Box<dyn std::error::Error>>
{
    let golden = include_str!("../../../tests/golden/valid.json");
    let report: model::report::Report = serde_json::from_str(golden)?;
    let mut result = report.results.first().ok_or("no result")?.clone();
    let first = result.runs.first().ok_or("no run")?.clone();
    let host = HostFigures { worker_cpu: Some(0.5), memory_pressure: Some(0.0), ..HostFigures::default() };
    let run = |run, host| RunFigures { run, host, ..first.clone() };
    result.runs = vec![run(0, host), run(1, HostFigures::default())];
    let timeline = Timeline::from_stretches([(0, 0.0, 1.0), (1, 0.0, 1.0)].into_iter());
    let plot = draw_strips(&result, &timeline, "t").ok_or("no strips")?;
    assert_eq!(plot.right.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["worker 50 %"]);
    assert_eq!(plot.marks.matches("<path").count(), 2, "ground and block of the first run: {}", plot.marks);
    let [_, end] = timeline.span(0).ok_or("no run")?;
    assert!(plot.marks.contains(&format!("H{end:.0}V")), "{}", plot.marks);
    assert!(plot.points.contains("not counted"), "{}", plot.points);
    result.runs = vec![run(0, HostFigures::default())];
    assert!(draw_strips(&result, &timeline, "t").is_none());
    Ok(())
}
