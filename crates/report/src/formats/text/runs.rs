//! The runs of each result in one line: their course, their rates, the interval, and whether the rate was steady.
//!
//! A glance shows whether the figure of the table describes the runs. `course` prints them second by second.

use crate::page::Page;
use crate::prose::display_width;
use crate::table::Table;
use model::report::{Measured, RunFigures, Second};
use model::steadiness::{Snia, State, Steadiness};
use model::units::{show_rate, show_share};
use std::collections::BTreeSet;

const RUN_HEADINGS: [&str; 5] = ["runs", "over time", "IOPS", "95 % interval", "steadiness, drift"];
/// Columns that leave where there is no room, the first of them first.
const RUN_DROP_ORDER: [usize; 2] = [1, 2];
/// Columns beyond which a course tells no more.
const MAX_TABLE_WIDTH: usize = 110;
/// Columns that a course may take: more where the other columns leave room.
const SPARKLINE_WIDTH: usize = 12;
/// Heights of a bar, from nearly nothing to the highest of the result.
const BAR_HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Between the columns.
const COLUMN_GAP: usize = 2;

/// The table, and what there is to say of a result that stands alone. Nothing where no run has a course.
pub(super) fn show_runs(out: &mut Page, results: &[Measured]) {
    let shown: Vec<&Measured> =
        results.iter().filter(|r| !r.void && !r.runs.is_empty() && !r.series.is_empty()).collect();
    if shown.is_empty() {
        return;
    }
    let others: Vec<[String; RUN_HEADINGS.len()]> = shown.iter().map(|r| run_cells(r)).collect();
    let width = |i: usize| {
        let cells = others.iter().map(|c| display_width(&c[i]));
        cells.chain([display_width(RUN_HEADINGS[i])]).max().unwrap_or(0) + COLUMN_GAP
    };
    let taken = [0, 2, 3, 4].map(width).iter().sum::<usize>();
    let room = out.width().min(MAX_TABLE_WIDTH).saturating_sub(taken).max(SPARKLINE_WIDTH);
    let mut table = Table::new(&RUN_HEADINGS, &RUN_DROP_ORDER).aligned(1, true);
    for (result, mut cells) in shown.iter().zip(others) {
        cells[1] = sparkline(&result.series, room);
        table.add(cells);
    }
    out.line("");
    out.table(&table);
    if let [only] = results {
        show_single_result(out, only);
    } else {
        show_steadiness_legend(out, &shown);
    }
}

/// The meaning of each word in the column of steadiness.
fn show_steadiness_legend(out: &mut Page, shown: &[&Measured]) {
    let states: BTreeSet<String> = shown
        .iter()
        .filter_map(|r| r.steadiness.as_ref())
        .map(|s| format!("{} = {}", s.state.word(), s.state.meaning()))
        .collect();
    if !states.is_empty() {
        let states: Vec<String> = states.into_iter().collect();
        out.prose("", "  ", &format!("{}.", states.join("; ")));
    }
}

/// Everything but the course.
fn run_cells(result: &Measured) -> [String; RUN_HEADINGS.len()] {
    let (rates, interval) = match result.runs.as_slice() {
        [only] => (show_rate(only.iops), describe_within_run(only)),
        runs => (rate_range(runs), describe_interval(result)),
    };
    let steadiness = result.steadiness.as_ref().map_or_else(|| "-".into(), describe_steadiness);
    [result.name.clone(), String::new(), rates, interval, steadiness]
}

/// The smallest and the largest rate of the runs.
fn rate_range(runs: &[RunFigures]) -> String {
    let rates = runs.iter().map(|r| r.iops);
    let (low, high) = rates.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    format!("{} to {}", show_rate(low), show_rate(high))
}

fn describe_interval(result: &Measured) -> String {
    let interval = result.total.as_ref().and_then(|t| t.iops_interval);
    interval.map_or_else(|| "-".into(), |[low, high]| format!("{} to {}", show_rate(low), show_rate(high)))
}

/// What one run says about itself, and not about the next.
fn describe_within_run(run: &RunFigures) -> String {
    let of = |[low, high]: [f64; 2]| format!("{} to {} within this run", show_rate(low), show_rate(high));
    run.iops_within.map_or_else(|| "-".into(), of)
}

/// `STEADY, +0.3 %/min (-0.2 to 0.8)`.
fn describe_steadiness(steadiness: &Steadiness) -> String {
    let word = steadiness.state.word();
    let Some(drift) = steadiness.drift_per_minute else { return word.into() };
    let percent = |share: f64| 100.0 * share;
    let [low, high] = drift.interval.map(percent);
    format!("{word}, {:+.1} %/min ({low:.1} to {high:.1})", percent(drift.value))
}

/// What a result that stands alone has room for: why, and what the SNIA would say.
fn show_single_result(out: &mut Page, result: &Measured) {
    let Some(steadiness) = &result.steadiness else { return };
    if steadiness.state != State::Steady {
        out.prose("  ", "  ", &format!("{}: {}", steadiness.state.word(), steadiness.sentence));
    }
    if let Some(snia) = &steadiness.snia {
        out.prose("  ", "  ", &describe_snia(snia));
    }
}

fn describe_snia(snia: &Snia) -> String {
    format!(
        "SNIA steady state: {} in the last 5 of {} rounds (apart by {} of their mean, 20 % allowed; their line by {}, 10 % allowed).",
        if snia.met { "met" } else { "not met" },
        snia.rounds,
        show_share(snia.excursion),
        show_share(snia.slope)
    )
}

/// A bar for each second of each run, or for several where there is no room; runs stand apart where there is room for that.
/// Heights count from zero, so that noise does not look like a cliff.
fn sparkline(series: &[Second], room: usize) -> String {
    let runs: Vec<&[Second]> = series.chunk_by(|a, b| a.run == b.run).collect();
    let apart = 2 * runs.len() <= room + 1;
    let gaps = if apart { runs.len().saturating_sub(1) } else { 0 };
    let each = (room.saturating_sub(gaps) / runs.len().max(1)).max(1);
    let mut bars: Vec<Vec<f64>> = runs.iter().map(|run| downsample(run, each)).collect();
    if !apart {
        // More runs than columns: what neighbours had in common.
        let all: Vec<f64> = bars.concat();
        let per = all.len().div_ceil(room.max(1)).max(1);
        bars = vec![all.chunks(per).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()];
    }
    let highest = bars.iter().flatten().copied().fold(0.0, f64::max);
    let drawn = |run: &Vec<f64>| run.iter().map(|rate| bar_of_height(*rate, highest)).collect::<String>();
    bars.iter().map(drawn).collect::<Vec<_>>().join(" ")
}

/// The rates of a run in at most so many columns, each the mean over its time.
fn downsample(run: &[Second], most: usize) -> Vec<f64> {
    let mean = |part: &[Second]| {
        let seconds: f64 = part.iter().map(|s| s.seconds).sum();
        part.iter().map(|s| s.iops * s.seconds).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
    };
    run.chunks(run.len().div_ceil(most.max(1)).max(1)).map(mean).collect()
}

/// The bar of a rate; a dot where nothing was done.
fn bar_of_height(rate: f64, highest: f64) -> char {
    if rate <= 0.0 || highest <= 0.0 {
        return '.';
    }
    let eighth = (rate / highest * BAR_HEIGHTS.len() as f64).round() as usize;
    BAR_HEIGHTS[eighth.clamp(1, BAR_HEIGHTS.len()) - 1]
}

#[cfg(test)]
fn test_seconds(runs: &[&[f64]]) -> Vec<Second> {
    let second = |run: usize, at: usize, iops: f64| Second {
        run: run as u32,
        start_s: at as f64,
        seconds: 1.0,
        iops,
        mb_per_s: iops * 4096.0 / 1e6,
        p99_at_most_ns: None,
        device: None,
    };
    let of = |(run, rates): (usize, &&[f64])| {
        rates.iter().enumerate().map(move |(at, iops)| second(run, at, *iops)).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of).collect()
}

#[test]
fn bars_count_from_zero_and_runs_stand_apart() {
    // Noise of a tenth is no cliff; a fall to a quarter is one; a standstill is a dot.
    assert_eq!(sparkline(&test_seconds(&[&[100.0, 90.0, 95.0, 100.0]]), 30), "█▇██");
    assert_eq!(sparkline(&test_seconds(&[&[100.0, 25.0, 0.0], &[100.0]]), 30), "█▂. █");
    assert_eq!(sparkline(&test_seconds(&[&[0.0, 0.0]]), 30), "..");
    assert_eq!(sparkline(&[], 30), "");
}

#[test]
fn a_long_course_is_squeezed_and_many_runs_stand_together() {
    let long: Vec<f64> = (0..120).map(|i| if i < 60 { 100.0 } else { 50.0 }).collect();
    assert_eq!(sparkline(&test_seconds(&[&long]), 12), "██████▄▄▄▄▄▄");
    let one: &[f64] = &[100.0, 100.0];
    let few = sparkline(&test_seconds(&[one; 6]), 12);
    assert_eq!(few, "█ █ █ █ █ █");
    let many = sparkline(&test_seconds(&[one; 50]), 12);
    assert!(many.chars().count() <= 12 && many.chars().all(|c| c == '█'), "{many}");
}

#[test]
fn a_rate_that_is_no_number_is_no_panic() {
    assert_eq!(sparkline(&test_seconds(&[&[f64::NAN, f64::INFINITY, -1.0]]), 30).chars().count(), 3);
}
