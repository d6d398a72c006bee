//! Operations and throughput over block size: two plots with the same block sizes, and a line for
//! each number of threads or depth.

use super::page::{multiples, rate_tick, with_micro_sign};
use super::plot;
use super::plot::{Axis, Label, Plot, spread_labels};
use crate::view::lists::count_of;
use crate::view::table::or_dash;
use model::sweep::{CellFigures, Setting};
use model::units::{show_block, show_rate};

/// Minimum number of block sizes of a curve.
const MIN_SIZES: usize = 3;
/// CSS classes of the line and the label of each series. A reader cannot distinguish more than five
/// lines. If there are more series, only some are drawn, evenly spaced.
const LINES: [(&str, &str); 5] =
    [("ours", "of-ours"), ("third", "of-third"), ("fourth", ""), ("device", ""), ("knee", "")];
/// Distance of labels at the right edge: a line of text, in units of the drawing.
const LABEL_DISTANCE: f64 = 64.0;

/// The cells of one line.
struct Series<'c> {
    name: String,
    cells: Vec<&'c CellFigures>,
}

/// Draws the curves of these cells. Empty if the cells have fewer than [`MIN_SIZES`] block sizes, or
/// if a cell has an access specification. If there are too many lines, keeps only cells with the same
/// access path (cache mode, engine) as the best cell, or as the first cell if there is no best one.
pub(super) fn draw(cells: &[&CellFigures], best: Option<&Setting>, link: &str) -> String {
    let mut sizes: Vec<u32> = cells.iter().map(|c| c.setting.block_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < MIN_SIZES || cells.iter().any(|c| c.setting.spec.is_some()) {
        return String::new();
    }
    let mut all = group_into_series(cells);
    if all.len() > LINES.len() {
        let path_without_threads = |s: &Setting| Setting { workers: 1, ..s.clone() }.access_path();
        let shown_path = best.or(cells.first().map(|c| &c.setting)).map(path_without_threads);
        let kept: Vec<&CellFigures> =
            cells.iter().copied().filter(|c| Some(path_without_threads(&c.setting)) == shown_path).collect();
        all = group_into_series(&kept);
    }
    let step = all.len().saturating_sub(1).div_ceil(LINES.len() - 1).max(1);
    let all: Vec<Series> = all.into_iter().step_by(step).take(LINES.len()).collect();
    let x = Axis::log(sizes.iter().map(|size| f64::from(*size)));
    let tick = |size: &u32| Label::tick(x.along(f64::from(*size)), show_block(u64::from(*size)));
    let ticks: Vec<Label> = sizes.iter().map(tick).collect();
    let panel = |title: &str, value: fn(&CellFigures) -> Option<f64>| {
        let value = |c: &CellFigures| value(c).filter(|v| *v > 0.0).unwrap_or(f64::NAN);
        let y = Axis::log(all.iter().flat_map(|one| &one.cells).map(|c| value(c)));
        let mut plot = Plot {
            title: format!("{title}, logarithmic"),
            description: describe(title, &all, &value),
            height: 240,
            y: y.ticks_down(rate_tick),
            x: ticks.clone(),
            x_title: "Block size".into(),
            link: link.to_owned(),
            ..Plot::default()
        };
        for (one, (class, ink)) in all.iter().zip(LINES) {
            let at = |c: &&CellFigures| (x.along(f64::from(c.setting.block_bytes)), y.down(value(c)));
            let points: Vec<(f64, f64)> = one.cells.iter().map(at).collect();
            plot.draw(class, &plot::line(points.iter().copied()));
            if let Some((_, at)) = points.iter().rev().find(|(_, at)| at.is_finite()) {
                plot.right.push(Label { at: *at, text: one.name.clone(), class: ink });
            }
        }
        plot.right = spread_labels(std::mem::take(&mut plot.right), LABEL_DISTANCE);
        let stops = sizes.iter().map(|size| {
            let of_size = |one: &Series| {
                let cell = one.cells.iter().find(|c| c.setting.block_bytes == *size)?;
                let name = if one.name.is_empty() { String::new() } else { format!("{}: ", one.name) };
                let [iops, mb_per_s] = [cell.iops, cell.mb_per_s].map(|rate| or_dash(rate, show_rate));
                Some(format!("{name}{iops} IOPS, {mb_per_s} MB/s"))
            };
            let lines: Vec<String> = all.iter().filter_map(of_size).collect();
            let text = format!("{}\n{}", show_block(u64::from(*size)), lines.join("\n"));
            (x.along(f64::from(*size)), with_micro_sign(&text))
        });
        plot.set_crosshair_points(&stops.collect::<Vec<_>>());
        (title.to_owned(), plot.html())
    };
    let panels = [panel("Operations per second", |c| c.iops), panel("MB/s", |c| c.mb_per_s)];
    multiples("tables", panels.into_iter())
}

fn describe(title: &str, all: &[Series], value: &impl Fn(&CellFigures) -> f64) -> String {
    let of_series = |one: &Series| {
        let points = one.cells.iter().map(|c| {
            let shown = or_dash(Some(value(c)).filter(|v| v.is_finite()), show_rate);
            format!("{} {shown}", show_block(u64::from(c.setting.block_bytes)))
        });
        let points: Vec<String> = points.collect();
        format!("{}: {}", if one.name.is_empty() { "all" } else { &one.name }, points.join(", "))
    };
    format!("{title} by block size; {}", all.iter().map(of_series).collect::<Vec<_>>().join("; "))
}

/// Groups cells that differ only in their block size, and names each group by the settings that distinguish it.
fn group_into_series<'c>(cells: &[&'c CellFigures]) -> Vec<Series<'c>> {
    let parts = |s: &Setting| -> Vec<String> {
        let threads = count_of(s.workers as usize, "thread");
        let access_path = Setting { workers: 1, ..s.clone() }.access_path();
        [threads, format!("depth {}", s.depth)]
            .into_iter()
            .chain(access_path.split(", ").map(str::to_owned))
            .collect()
    };
    let common = |part: &String| cells.iter().all(|c| parts(&c.setting).contains(part));
    let mut out: Vec<Series> = Vec::new();
    for cell in cells {
        let name: Vec<String> = parts(&cell.setting).into_iter().filter(|part| !common(part)).collect();
        let name = name.join(", ");
        match out.iter_mut().find(|one| one.name == name) {
            Some(one) => one.cells.push(cell),
            None => out.push(Series { name, cells: vec![cell] }),
        }
    }
    for one in &mut out {
        one.cells.sort_by_key(|c| c.setting.block_bytes);
    }
    out
}

#[test]
fn each_number_of_threads_is_a_line_in_both_panels() {
    use crate::view::sweep::example_cell;
    let cell = |workers: u32, block_bytes: u32| {
        let setting = Setting { workers, ..Setting::plain("randread", block_bytes, 1) };
        let iops = Some(1e9 / f64::from(block_bytes) * f64::from(workers));
        CellFigures { setting, iops, mb_per_s: Some(f64::from(workers * 100)), ..example_cell(1, None, 1) }
    };
    let all: Vec<CellFigures> =
        [1, 8].into_iter().flat_map(|n| (9..14).map(move |size| cell(n, 1 << size))).collect();
    let html = draw(&all.iter().collect::<Vec<_>>(), None, "x");
    assert_eq!(html.matches("<figure").count(), 2, "{html}");
    for part in ["1 thread</span>", "8 threads</span>", ">512</span>", ">8K</span>", "Block size"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let lines = html.matches("<path class=\"ours\"").count() + html.matches("<path class=\"third\"").count();
    assert_eq!(lines, 4, "{html}");
    assert!(draw(&all.iter().take(2).collect::<Vec<_>>(), None, "x").is_empty(), "too few sizes");
}
