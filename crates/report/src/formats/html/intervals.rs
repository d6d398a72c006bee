//! Rows of intervals on one axis: a dot for each value, a line for its 95 % interval.
//!
//! For: interfaces, layers, targets and comparisons. Not for: which rows there are.

use super::plot::axis::{Axis, Tick};
use super::plot::tick_classes;
use super::plot::whiskers::{Whisker, interval_range, whisker};
use askama::Template;

/// Marks that the axis has room for, beside so many columns.
const MAX_TICKS: usize = 6;

/// A row to draw.
#[derive(Default)]
pub(super) struct IntervalRow {
    /// Words above it, where a group begins.
    pub(super) title: String,
    pub(super) name: String,
    /// The value and its interval; `None` where it has no number.
    pub(super) value: Option<(f64, Option<[f64; 2]>)>,
    /// What the device below counted of the same.
    pub(super) device: Option<f64>,
    /// Whether a finding qualifies it.
    pub(super) hollow: bool,
    /// A range that makes no difference.
    pub(super) margin: Option<[f64; 2]>,
    /// Numbers beside it.
    pub(super) cells: Vec<String>,
}

#[derive(Template)]
#[template(path = "whiskers.html")]
struct IntervalTable<'w> {
    caption: &'w str,
    first: &'w str,
    axis_title: &'w str,
    headings: &'w [&'w str],
    ticks: Vec<Tick>,
    rows: Vec<DrawnRow>,
}

struct DrawnRow {
    title: String,
    name: String,
    whisker: Option<Whisker>,
    device: Option<Whisker>,
    hollow: bool,
    margin: Option<[f64; 2]>,
    cells: Vec<String>,
}

impl IntervalTable<'_> {
    /// The marks of the axis, each with the class that hides its label where there is too little room.
    fn marks_above(&self) -> impl Iterator<Item = (&Tick, &'static str)> {
        self.ticks.iter().zip(tick_classes(&self.ticks))
    }
}

/// What a table of intervals is called.
pub(super) struct IntervalHeadings<'w> {
    /// Of the table.
    pub(super) caption: &'w str,
    /// Of the first column.
    pub(super) first: &'w str,
    /// What lies along the axis, and in which unit.
    pub(super) axis: &'w str,
    /// Of the columns beside it.
    pub(super) headings: &'w [&'w str],
}

/// A logarithmic axis that has all values in it.
pub(super) fn common_axis(rows: &[IntervalRow]) -> Axis {
    let known: Vec<(f64, Option<[f64; 2]>)> = rows.iter().filter_map(|r| r.value).collect();
    let devices = rows.iter().filter_map(|r| r.device);
    Axis::log(interval_range(&known).chain(devices).chain(rows.iter().filter_map(|r| r.margin).flatten()))
}

/// The rows on an axis of their own.
pub(super) fn draw_intervals(
    words: &IntervalHeadings,
    rows: Vec<IntervalRow>,
    show: impl Fn(f64) -> String,
) -> String {
    draw_intervals_on(&common_axis(&rows), words, rows, show)
}

/// The rows on an axis that others may have too.
pub(super) fn draw_intervals_on(
    axis: &Axis,
    words: &IntervalHeadings,
    rows: Vec<IntervalRow>,
    show: impl Fn(f64) -> String,
) -> String {
    let place = |v: f64| axis.within(v) / 10.0;
    let drawn = rows.into_iter().map(|row| DrawnRow {
        whisker: row.value.map(|(value, interval)| whisker(axis, value, interval)),
        device: row.device.filter(|v| *v > 0.0).map(|v| whisker(axis, v, None)),
        margin: row.margin.map(|[low, high]| [place(low), place(high) - place(low)]),
        title: row.title,
        name: row.name,
        hollow: row.hollow,
        cells: row.cells,
    });
    let html = IntervalTable {
        caption: words.caption,
        first: words.first,
        axis_title: words.axis,
        headings: words.headings,
        rows: drawn.collect(),
        ticks: axis.few_ticks(MAX_TICKS, show),
    };
    html.render().unwrap_or_default()
}

#[test]
fn beside_others_a_value_lies_where_their_axis_has_it() {
    let row = |value: f64| vec![IntervalRow { value: Some((value, None)), ..IntervalRow::default() }];
    let words = IntervalHeadings { caption: "", first: "", axis: "", headings: &[] };
    let axis = common_axis(&row(1.0).into_iter().chain(row(100.0)).collect::<Vec<_>>());
    let place = |value: f64| {
        let html = draw_intervals_on(&axis, &words, row(value), |v| v.to_string());
        html.split("class=\"pt\" style=\"left:").nth(1).and_then(|r| r.split('%').next()?.parse::<f64>().ok())
    };
    assert!(place(1.0) < place(10.0) && place(10.0) < place(100.0), "{:?}", place(10.0));
    assert!(place(10.0).is_some_and(|at| (at - 50.0).abs() < 0.2), "{:?}", place(10.0));
}
