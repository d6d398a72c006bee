//! Plots: converts values to the SVG and the labels of a figure.
//!
//! A drawing has 1000 units on each side, whatever its size on the screen. Strokes keep their width (`non-scaling-stroke`), dots are
//! strokes without length, and labels are HTML at percent positions, so that they neither stretch nor print as pictures. [`Plot`] is the
//! frame, [`Axis`] converts values to places, and the functions after them draw shapes: lines, bands, dots, strips, whiskers, cells and
//! flows.

use askama::Template;
use serde_json::json;

/// Maximum number of places where the crosshair of a plot stops.
const MAX_STOPS: usize = 150;

/// CSS class of labels in the lowest line of a drawing.
pub(crate) const LOWEST_LINE: &str = "low";

/// A figure: a drawing with its axes.
#[derive(Template, Default)]
#[template(path = "plot.html")]
pub(crate) struct Plot {
    /// Title with the unit.
    pub(crate) title: String,
    /// Description with the main numbers, for screen readers.
    pub(crate) description: String,
    /// Height in pixels.
    pub(crate) height: u32,
    /// Ticks of the y axis. Their places count from the top.
    pub(crate) y: Vec<Label>,
    /// Ticks from left to right.
    pub(crate) x: Vec<Label>,
    /// Title of the x axis; may be empty.
    pub(crate) x_title: String,
    /// Labels at the right edge. Their places count from the top.
    pub(crate) right: Vec<Label>,
    /// Labels in the drawing.
    pub(crate) labels: Vec<Label>,
    /// Paths of the drawing.
    pub(crate) paths: String,
    /// Name of the group of plots that share crosshair and zoom; empty without a group.
    pub(crate) link: String,
    /// Places where the crosshair stops, as JSON.
    pub(crate) points: String,
}

/// A label at a place of the drawing or of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Label {
    /// Place, from 0 to [`SIDE`].
    pub(crate) at: f64,
    /// The text that is drawn there.
    pub(crate) text: String,
    /// CSS class.
    pub(crate) class: &'static str,
}

impl Label {
    /// Returns a tick of an axis.
    pub(crate) fn tick(at: f64, text: String) -> Self {
        Self { at, text, class: "" }
    }

    /// Returns the place in percent of the side, for CSS.
    pub(crate) fn percent(&self) -> String {
        let percent = if self.at.is_finite() { (100.0 * self.at / SIDE).clamp(-10.0, 110.0) } else { 0.0 };
        format!("{percent:.2}")
    }

    fn place(&self) -> String {
        coordinate(self.at)
    }
}

impl Plot {
    /// Adds a path with a CSS class.
    pub(crate) fn draw(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.paths += &format!(r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// Sets the points at which the crosshair stops, with their texts. Of more than [`MAX_STOPS`] points,
    /// keeps every second, every third and so on, so that at most [`MAX_STOPS`] remain.
    pub(crate) fn set_crosshair_points(&mut self, points: &[(f64, String)]) {
        let every = points.len().div_ceil(MAX_STOPS).max(1);
        let kept = points.iter().step_by(every).filter(|(x, _)| x.is_finite());
        let json: Vec<_> = kept.map(|(x, text)| json!([x.round(), text])).collect();
        if !json.is_empty() {
            self.points = serde_json::Value::Array(json).to_string();
        }
    }

    /// Returns the ticks from left to right, each with the CSS class that hides its label if there is too little room.
    fn ticks_below(&self) -> impl Iterator<Item = (&Label, &'static str)> {
        self.x.iter().zip(label_classes(&self.x))
    }

    /// Returns the labels in the drawing, each with the CSS class that hides the label if it would
    /// overlap another label. Only labels in the lowest line, which name the runs, can be hidden.
    fn labels_inside(&self) -> impl Iterator<Item = (&Label, &'static str)> {
        let is_low = |label: &Label| label.class == LOWEST_LINE;
        let low: Vec<Label> = self.labels.iter().filter(|label| is_low(label)).cloned().collect();
        let mut classes = label_classes(&low).into_iter();
        self.labels
            .iter()
            .map(move |label| (label, if is_low(label) { classes.next().unwrap_or_default() } else { "" }))
    }

    /// Returns the figure with its axes as HTML.
    pub(crate) fn html(&self) -> String {
        self.render().unwrap_or_default()
    }
}

/// Sorts labels from the top down and moves neighbours at least `min_distance` apart. Drops labels whose place is not finite.
pub(crate) fn spread_labels(mut labels: Vec<Label>, min_distance: f64) -> Vec<Label> {
    labels.retain(|label| label.at.is_finite());
    labels.sort_by(|a, b| a.at.total_cmp(&b.at));
    for at in 1..labels.len() {
        let above = labels[at - 1].at + min_distance;
        labels[at].at = labels[at].at.max(above);
    }
    // Move labels that are now below the drawing back up.
    let mut lowest = SIDE;
    for label in labels.iter_mut().rev() {
        label.at = label.at.min(lowest);
        lowest = label.at - min_distance;
    }
    labels
}

/// Units along each side of every drawing, independent of its size on the screen.
pub(crate) const SIDE: f64 = 1000.0;
/// Maximum number of ticks on a logarithmic axis along a side of a drawing.
const MAX_TICKS: usize = 10;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// A range of values along one side of a drawing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

/// Widths of a drawing in pixels, each with a CSS class. Labels with this class are shown only in drawings of at least
/// this width (`page.css`).
const LABEL_WIDTHS: [(f64, &str); 6] =
    [(100.0, ""), (180.0, "r0"), (280.0, "r1"), (400.0, "r2"), (560.0, "r3"), (760.0, "r4")];
/// CSS class of labels that no drawing shows.
const HIDDEN: &str = "r5";
/// Assumed width of a letter of a label in pixels.
const LETTER_PX: f64 = 7.0;
const LABEL_GAP_PX: f64 = 8.0;

/// Returns the CSS class of each label, so that no two shown labels overlap at any of [`LABEL_WIDTHS`]. Labels are centred on their places.
/// Tries the widths from the narrowest up. Each width keeps the labels of the narrower widths and adds those that fit.
pub(crate) fn label_classes(labels: &[Label]) -> Vec<&'static str> {
    let half = |at: usize| labels[at].text.chars().count() as f64 * LETTER_PX / 2.0;
    let mut classes = vec![HIDDEN; labels.len()];
    for (width, class) in LABEL_WIDTHS {
        for at in 0..labels.len() {
            let overlaps = |other: usize| {
                let apart = (labels[at].at - labels[other].at).abs() * width / SIDE;
                apart < half(at) + half(other) + LABEL_GAP_PX
            };
            let is_shown = |other: usize| other != at && classes[other] != HIDDEN;
            if classes[at] == HIDDEN && !(0..labels.len()).any(|other| is_shown(other) && overlaps(other)) {
                classes[at] = class;
            }
        }
    }
    classes
}

impl Axis {
    /// Returns an axis from zero to slightly above the largest value.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        Self::linear(0.0, if most > 0.0 { 1.06 * most } else { 1.0 })
    }

    /// Returns a linear axis from `low` to `high`.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, scale: Scale::Linear }
    }

    /// Returns a logarithmic axis from slightly below the smallest to slightly above the largest value; ignores values without a logarithm.
    pub(crate) fn log(values: impl Iterator<Item = f64>) -> Self {
        let some = values.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = some.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
        if high <= 0.0 {
            return Self { low: 1.0, high: 10.0, scale: Scale::Log };
        }
        Self { low: low / 1.15, high: high * 1.15, scale: Scale::Log }
    }

    /// Returns the place of a value along the axis: from 0 to [`SIDE`] for values in the range of the axis, below 0 or
    /// above [`SIDE`] for others. NaN for a value that a logarithmic axis cannot show.
    pub(crate) fn along(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Log => f64::NAN,
        };
        part * SIDE
    }

    /// Returns the place of a value counted from the top, as in SVG: from 0 to [`SIDE`] for values in the range of the
    /// axis, below 0 or above [`SIDE`] for others. NaN for a value that a logarithmic axis cannot show.
    pub(crate) fn down(&self, value: f64) -> f64 {
        SIDE - self.along(value)
    }

    /// Returns the place of a value along the axis, clamped to 0 to [`SIDE`]. NaN for a value that a logarithmic axis
    /// cannot show.
    pub(crate) fn within(&self, value: f64) -> f64 {
        self.along(value).clamp(0.0, SIDE)
    }

    /// Returns the values of the ticks. A logarithmic axis tries to have at most `most`; a linear axis ignores `most`.
    fn tick_values(&self, most: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high),
            Scale::Log => log_ticks(self.low, self.high, most),
        }
    }

    /// Returns the ticks along the axis. A logarithmic axis tries to have at most `most`; a linear axis ignores `most`.
    pub(crate) fn few_ticks(&self, most: usize, show: impl Fn(f64) -> String) -> Vec<Label> {
        self.tick_values(most).into_iter().map(|v| Label::tick(self.along(v), show(v))).collect()
    }

    /// Returns the ticks along the axis.
    pub(crate) fn ticks(&self, show: impl Fn(f64) -> String) -> Vec<Label> {
        self.few_ticks(MAX_TICKS, show)
    }

    /// Returns the ticks along a vertical axis. Their places count from the top.
    pub(crate) fn ticks_down(&self, show: impl Fn(f64) -> String) -> Vec<Label> {
        self.tick_values(MAX_TICKS).into_iter().map(|v| Label::tick(self.down(v), show(v))).collect()
    }
}

/// Returns at most six round values between `low` and `high`.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    (first..first + 12).map(|i| i as f64 * step).take_while(|v| *v <= high).collect()
}

/// Returns 1, 2 and 5 times each power of ten in the range. If these are more than `most`, returns fewer values per decade, or only every
/// second or third power of ten. In a range of less than a decade these may be one or two: returns round values at equal steps then.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let multiples = |digits: &[f64], every: usize| -> Vec<f64> {
        let all = (from..=to).filter(|k| k.rem_euclid(every as i32) == 0);
        let all = all.flat_map(|k| digits.iter().map(move |d| d * 10_f64.powi(k)));
        all.filter(|v| (low..=high).contains(v)).collect()
    };
    let finest = [
        multiples(&[1.0, 2.0, 5.0], 1),
        multiples(&[1.0, 3.0], 1),
        multiples(&[1.0], 1),
        multiples(&[1.0], 2),
    ];
    let ticks = finest.into_iter().find(|ticks| ticks.len() <= most).unwrap_or_else(|| multiples(&[1.0], 3));
    if ticks.len() >= FEWEST_TICKS {
        return ticks;
    }
    let even = linear_ticks(low, high);
    if even.len() <= most { even } else { ticks }
}

/// Fewer ticks do not show the scale of an axis.
const FEWEST_TICKS: usize = 3;

/// Width of a column in [`thin_out`]. A drawing has a thousand columns, more than the eye
/// distinguishes.
const COLUMN_WIDTH: f64 = SIDE / 1000.0;

/// Draws a line through these places. A place with a coordinate that is not finite breaks the line.
pub(crate) fn line(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points: Vec<(f64, f64)> = points.into_iter().collect();
    let mut out = String::new();
    for piece in points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|piece| !piece.is_empty()) {
        // Draw a single place as a very short line, so that it is visible too.
        if let [(x, y)] = piece {
            out += &format!("M{} {}h.01", coordinate(*x), coordinate(*y));
            continue;
        }
        for (at, (x, y)) in thin_out(piece).into_iter().enumerate() {
            out += &format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, coordinate(x), coordinate(y));
        }
    }
    out
}

/// A horizontal line between two places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) y: f64,
}

/// Draws a line of steps through these levels.
pub(crate) fn steps(levels: impl IntoIterator<Item = Level>) -> String {
    line(levels.into_iter().flat_map(|Level { from, to, y }| [(from, y), (to, y)]))
}

/// Keeps the first, lowest, highest and last point of each column, in order. Keeps all points if there are at most four per column on
/// average.
fn thin_out(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let columns = ((last.0 - first.0).abs() / COLUMN_WIDTH).ceil() + 1.0;
    if points.len() as f64 <= 4.0 * columns {
        return points.to_vec();
    }
    let column = |p: &(f64, f64)| (p.0 / COLUMN_WIDTH).floor() as i64;
    let mut out = Vec::new();
    for part in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let lowest = (0..part.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..part.len()).max_by(by_height).unwrap_or(0);
        let mut kept = vec![0, lowest, highest, part.len() - 1];
        kept.sort_unstable();
        kept.dedup();
        out.extend(kept.into_iter().map(|at| part[at]));
    }
    out
}

/// Formats a coordinate with the digits that are visible.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Draws the area between two curves: `(x, upper, lower)`. A value that is not finite breaks the area.
pub(crate) fn area_between(points: &[(f64, f64, f64)]) -> String {
    let is_gap = |(x, upper, lower): &(f64, f64, f64)| ![x, upper, lower].into_iter().all(|v| v.is_finite());
    let mut out = String::new();
    for piece in points.split(is_gap).filter(|piece| piece.len() > 1) {
        let upper = thin_out(&piece.iter().map(|(x, upper, _)| (*x, *upper)).collect::<Vec<_>>());
        let lower = thin_out(&piece.iter().map(|(x, _, lower)| (*x, *lower)).collect::<Vec<_>>());
        let around = upper.iter().chain(lower.iter().rev());
        for (at, (x, y)) in around.enumerate() {
            out += &format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, coordinate(*x), coordinate(*y));
        }
        out.push('Z');
    }
    out
}

/// Draws a rectangle of full height between two places along the axis.
pub(crate) fn full_height(from: f64, to: f64) -> String {
    rectangle([from, 0.0], [to, SIDE])
}

/// Draws a rectangle of full width between two heights.
pub(crate) fn full_width(from: f64, to: f64) -> String {
    rectangle([0.0, from], [SIDE, to])
}

/// Draws a rectangle from one corner to the opposite one. Returns an empty text if a coordinate is not finite.
fn rectangle([x, y]: [f64; 2], [to_x, to_y]: [f64; 2]) -> String {
    if ![x, y, to_x, to_y].iter().all(|v| v.is_finite()) {
        return String::new();
    }
    let [x, y, to_x, to_y] = [x, y, to_x, to_y].map(|v| coordinate(v.clamp(-SIDE, 2.0 * SIDE)));
    format!("M{x} {y}H{to_x}V{to_y}H{x}Z")
}

/// Columns and rows of the grid for merging dots: dots in the same cell would cover one another.
const DOT_CELLS: [f64; 2] = [300.0, 60.0];

/// Draws a dot at each finite place, as a stroke without length: its round ends keep their shape at any width. Dots
/// that would cover one another are merged.
pub(crate) fn dots(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut taken = std::collections::BTreeSet::new();
    let mut out = String::new();
    for (x, y) in points.into_iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
        let cell = |v: f64, cells: f64| (v / SIDE * cells).round() as i64;
        if taken.insert((cell(x, DOT_CELLS[0]), cell(y, DOT_CELLS[1]))) {
            out += &format!("M{} {}h.01", coordinate(x), coordinate(y));
        }
    }
    out
}

/// Gap above the blocks of a row, as a share of the row's height.
const STRIP_GAP: f64 = 0.3;
/// Neighbouring blocks of the same height are joined if the gap between them is at most this wide,
/// in units of the drawing.
const JOIN_DISTANCE: f64 = 2.0;

/// A block of a row: its start and end, and the share of the row's height that it fills; `None` if unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) share: Option<f64>,
}

/// The paths of a row of blocks. A share of zero has a background without a block; an unknown share has neither.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Strip {
    /// Path of the background: as high as the row.
    pub(crate) ground: String,
    /// Path of the blocks, each as high as its share.
    pub(crate) blocks: String,
}

/// Returns the place of the middle of a row, counted from the top.
pub(crate) fn strip_middle(row: usize, rows: usize) -> f64 {
    let [top, bottom] = strip_edges(row, rows);
    f64::midpoint(top, bottom)
}

/// Draws the blocks of row `row` of `rows` rows.
pub(crate) fn strip(row: usize, rows: usize, blocks: &[Block]) -> Strip {
    let [top, bottom] = strip_edges(row, rows);
    let height = |share: f64| (bottom - share.clamp(0.0, 1.0) * (bottom - top)).round();
    let path = |y: &dyn Fn(f64) -> f64| {
        let level = |block: &Block| Some(Level { from: block.from, to: block.to, y: y(block.share?) });
        let tops = join_levels(blocks.iter().filter_map(level)).into_iter();
        let tops = tops.filter(|top| top.y < bottom.round());
        tops.map(|Level { from, to, y }| rectangle([from, y], [to, bottom.round()])).collect()
    };
    Strip { ground: path(&|_| top.round()), blocks: path(&height) }
}

fn strip_edges(row: usize, rows: usize) -> [f64; 2] {
    let each = SIDE / rows.max(1) as f64;
    [each * (row as f64 + STRIP_GAP), each * (row as f64 + 1.0)]
}

/// Joins adjacent levels of the same height.
fn join_levels(levels: impl Iterator<Item = Level>) -> Vec<Level> {
    let mut out: Vec<Level> = Vec::new();
    for level in levels {
        match out.last_mut() {
            Some(last) if level.from - last.to <= JOIN_DISTANCE && (level.y - last.y).abs() < 0.5 => {
                last.to = level.to;
            }
            _ => out.push(level),
        }
    }
    out
}

/// A value and its interval, in percent along the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Whisker {
    /// Place of the value.
    pub(crate) at: f64,
    /// Start of the interval.
    pub(crate) from: f64,
    /// Width of the drawn interval.
    pub(crate) width: f64,
    /// Whether the interval continues beyond the left end of the axis.
    pub(crate) is_cut_left: bool,
    /// Whether the interval continues beyond the right end of the axis.
    pub(crate) is_cut_right: bool,
}

/// Returns where to draw a value and its interval.
pub(crate) fn whisker(axis: &Axis, value: f64, interval: Option<[f64; 2]>) -> Whisker {
    let percent = |v: f64| 100.0 * axis.within(v) / SIDE;
    let tenth = |v: f64| if v.is_finite() { (10.0 * v).round() / 10.0 } else { 0.0 };
    let [low, high] = interval.unwrap_or([value; 2]);
    // A value that a logarithmic axis cannot show counts as left of the axis.
    let before = |v: f64| !axis.along(v).is_finite() || axis.along(v) < 0.0;
    let from = if before(low) { 0.0 } else { percent(low) };
    Whisker {
        at: tenth(percent(value)),
        from: tenth(from),
        width: tenth(percent(high) - from),
        is_cut_left: before(low),
        is_cut_right: axis.along(high) > SIDE,
    }
}

/// Returns the values that the axis must include: all positive values, and the ends of the intervals. Leaves out an end that is less than
/// half the lowest value or more than twice the highest, because the interval of few runs can be absurdly wide.
pub(crate) fn interval_range(rows: &[(f64, Option<[f64; 2]>)]) -> impl Iterator<Item = f64> + use<> {
    const AROUND: f64 = 2.0;
    let values: Vec<f64> = rows.iter().map(|r| r.0).filter(|v| v.is_finite() && *v > 0.0).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let ends: Vec<f64> = rows.iter().filter_map(|r| r.1).flatten().collect();
    let kept = ends.into_iter().filter(move |v| *v >= low / AROUND && *v <= high * AROUND);
    values.into_iter().chain(kept.collect::<Vec<_>>())
}

/// Number of shades in a grid of counts.
const CELL_SHADES: usize = 5;

/// Returns the paths of a grid of counts `(column, row, count)`, one path for each shade, the lightest first. The first row is at the
/// bottom. Shades divide the logarithm of the counts. Neighbouring cells of a row with the same shade form one rectangle.
pub(crate) fn count_cells(
    [columns, rows]: [usize; 2],
    cells: impl IntoIterator<Item = (usize, usize, u64)>,
) -> [String; CELL_SHADES] {
    let mut grid = vec![0_u64; columns * rows];
    for (column, row, count) in cells {
        if column < columns && row < rows {
            grid[row * columns + column] = count;
        }
    }
    let most = grid.iter().copied().max().unwrap_or(0);
    let shade = |count: u64| {
        let share = (count as f64).ln_1p() / (most as f64).ln_1p();
        (count > 0).then(|| ((share * CELL_SHADES as f64).ceil() as usize).clamp(1, CELL_SHADES) - 1)
    };
    let mut paths: [String; CELL_SHADES] = Default::default();
    let (width, height) = (SIDE / columns.max(1) as f64, SIDE / rows.max(1) as f64);
    for (row, counts) in grid.chunks(columns.max(1)).enumerate() {
        let top = SIDE - (row + 1) as f64 * height;
        let mut column = 0;
        for run in counts.chunk_by(|a, b| shade(*a) == shade(*b)) {
            if let Some(path) = run.first().and_then(|count| paths.get_mut(shade(*count)?)) {
                let [left, right] = [column, column + run.len()].map(|at| at as f64 * width);
                *path += &rectangle([left, top], [right, top + height]);
            }
            column += run.len();
        }
    }
    paths
}

/// Number of shades in a map of a sweep.
const MAP_SHADES: f64 = 9.0;

/// Returns the shade, 0 to 8, of a value, given as a share of the best value.
pub(crate) fn map_shade(share: f64) -> usize {
    if share.is_finite() { (share.clamp(0.0, 1.0) * MAP_SHADES).min(MAP_SHADES - 1.0) as usize } else { 0 }
}

/// Width of the widest stage, without gaps.
const FLOW_WIDTH: f64 = 960.0;
/// Share of a stage's height that is its bar; the rest leads to the next stage.
const BAR_SHARE: f64 = 0.5;
/// Gap between the parts of a stage.
const FLOW_GAP: f64 = 12.0;

/// The bars of stages from the top down and the areas between them. A stage has one part, or several side by side, and
/// none if it was not counted.
pub(crate) struct Flow {
    /// Path of the bars.
    pub(crate) bars: String,
    /// Path of the areas between the bars.
    pub(crate) between: String,
}

/// Draws the stages of a flow, each with the amounts of its parts. Widths are in proportion to the
/// amounts.
pub(crate) fn flow(stages: &[Vec<f64>]) -> Flow {
    let most = stages.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let each = SIDE / stages.len().max(1) as f64;
    let mut out = Flow { bars: String::new(), between: String::new() };
    let mut above: Option<[f64; 3]> = None;
    for (at, parts) in stages.iter().enumerate() {
        let top = each * at as f64;
        let bottom = top + BAR_SHARE * each;
        let sum: f64 = parts.iter().sum();
        if parts.is_empty() || most <= 0.0 {
            continue;
        }
        let gaps = FLOW_GAP * (parts.len() - 1) as f64;
        let width = FLOW_WIDTH * sum / most;
        let left = (SIDE - width - gaps) / 2.0;
        let mut x = left;
        for part in parts {
            let wide = FLOW_WIDTH * part / most;
            out.bars += &rectangle([x, top], [x + wide.max(2.0), bottom]);
            x += wide + FLOW_GAP;
        }
        if let Some([from, to, y]) = above {
            let right = left + width + gaps;
            let [from, to, y, left, right, top] = [from, to, y, left, right, top].map(coordinate);
            out.between += &format!("M{from} {y}H{to}L{right} {top}H{left}Z");
        }
        above = Some([left, left + width + gaps, bottom]);
    }
    out
}

#[cfg(test)]
fn labels(axis: Axis) -> Vec<String> {
    axis.ticks(|v| v.to_string()).into_iter().map(|tick| tick.text).collect()
}

#[test]
fn overlapping_labels_are_moved_apart() {
    let at = |at: f64| Label { at, ..Label::default() };
    let places: Vec<f64> = spread_labels(vec![at(500.0), at(10.0), at(505.0), at(f64::NAN)], 50.0)
        .iter()
        .map(|l| l.at)
        .collect();
    assert_eq!(places, [10.0, 500.0, 550.0]);
    let low: Vec<f64> = spread_labels(vec![at(990.0), at(980.0)], 50.0).iter().map(|l| l.at).collect();
    assert_eq!(low, [950.0, 1000.0]);
}

#[test]
fn a_figure_is_described_and_foreign_text_is_escaped() {
    let mut plot = Plot { title: "<b>".into(), description: "\"x\"".into(), height: 100, ..Plot::default() };
    plot.draw("o", "M0 0");
    plot.draw("o", "");
    plot.set_crosshair_points(&[(1.0, "<i>'\"".into())]);
    let html = plot.html();
    assert!(
        html.contains("<path class=\"o\" d=\"M0 0\"/>") && html.matches("class=\"o\"").count() == 1,
        "{html}"
    );
    assert!(!html.contains("<b>") && !html.contains("<i>") && !html.contains("\"x\""), "{html}");
    assert!(html.contains("style=\"height:100px\""));
}

#[test]
fn a_value_is_placed_in_proportion_to_the_range() {
    let axis = Axis::linear(0.0, 200.0);
    assert_eq!((axis.along(50.0), axis.down(50.0), axis.within(500.0)), (250.0, 750.0, 1000.0));
    let log = Axis { low: 1.0, high: 10_000.0, scale: Scale::Log };
    assert!((log.along(10.0) - 250.0).abs() < 1e-9 && log.along(0.0).is_nan());
}

#[test]
fn ticks_are_round_and_few() {
    assert_eq!(labels(Axis::linear(0.0, 87.0)), ["0", "20", "40", "60", "80"]);
    assert_eq!(labels(Axis::from_zero([100.0].into_iter())), ["0", "25", "50", "75", "100"]);
    assert_eq!(labels(Axis::log([100.0, 1000.0].into_iter())), ["100", "200", "500", "1000"]);
    assert_eq!(labels(Axis::log([3.2, 6.0].into_iter())), ["3", "4", "5", "6"]);
    assert_eq!(
        labels(Axis::log([100.0, 1e6].into_iter())),
        ["100", "300", "1000", "3000", "10000", "30000", "100000", "300000", "1000000"]
    );
}

#[test]
fn no_two_labels_overlap_at_any_width() {
    let sets: [Vec<(f64, &str)>; 4] = [
        (0..10).map(|at| (f64::from(at) * 101.0, "0 s")).collect(),
        // The last second of a run that ended early, next to the first of the following run.
        vec![(0.0, "0 s"), (480.0, "1 s"), (492.0, "0 s"), (960.0, "1 s")],
        (0..30).map(|at| (f64::from(at) * 33.0, "1,234,567")).collect(),
        vec![(10.0, "100 us"), (10.0, "200 us")],
    ];
    let ticks = |labels: &[(f64, &str)]| -> Vec<Label> {
        labels.iter().map(|(at, text)| Label::tick(*at, (*text).to_owned())).collect()
    };
    for labels in sets.map(|labels| ticks(&labels)) {
        let classes = label_classes(&labels);
        assert_eq!(classes[0], "", "the first label is always shown");
        for (level, (width, _)) in LABEL_WIDTHS.iter().enumerate() {
            let shown = |at: &usize| LABEL_WIDTHS[..=level].iter().any(|(_, class)| *class == classes[*at]);
            let shown: Vec<usize> = (0..labels.len()).filter(shown).collect();
            for pair in shown.windows(2) {
                let apart = (labels[pair[1]].at - labels[pair[0]].at) * width / SIDE;
                let letters = (labels[pair[0]].text.len() + labels[pair[1]].text.len()) as f64;
                assert!(apart >= letters * LETTER_PX / 2.0, "{labels:?} {classes:?} at {width}");
            }
        }
    }
    assert_eq!(label_classes(&ticks(&[(10.0, "a"), (10.0, "b")])), ["", HIDDEN]);
}

#[test]
fn an_axis_without_values_is_valid() {
    for axis in
        [Axis::from_zero([].into_iter()), Axis::log([0.0, f64::NAN].into_iter()), Axis::linear(5.0, 5.0)]
    {
        assert!(axis.ticks(|v| v.to_string()).len() < 13);
    }
}

#[test]
fn a_line_connects_its_points_and_breaks_at_missing_ones() {
    assert_eq!(line([(0.0, 10.0), (500.0, 20.04), (1000.0, 0.0)]), "M0 10L500 20L1000 0");
    let broken = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)];
    assert_eq!(line(broken), "M0 1L1 2M3 4h.01");
    let levels = [(0.0, 10.0, 5.0), (10.0, 20.0, 7.0)].map(|(from, to, y)| Level { from, to, y });
    assert_eq!(steps(levels), "M0 5L10 5L10 7L20 7");
    assert_eq!(line([]), "");
}

#[test]
fn many_points_are_reduced_to_the_extremes_of_each_column() {
    let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i) / 100.0, 500.0)).collect();
    points[54_321].1 = 1.0;
    points[54_322].1 = 999.0;
    let kept = thin_out(&points);
    assert!(kept.len() <= 4008, "{}", kept.len());
    assert!(kept.contains(&points[54_321]) && kept.contains(&points[54_322]));
    assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
}

#[test]
fn an_area_follows_the_upper_curve_and_returns_on_the_lower() {
    let points =
        [(0.0, 10.0, 20.0), (5.0, 11.0, 21.0), (6.0, f64::NAN, 1.0), (7.0, 1.0, 2.0), (8.0, 1.0, 2.0)];
    assert_eq!(area_between(&points), "M0 10L5 11L5 21L0 20ZM7 1L8 1L8 2L7 2Z");
    assert_eq!(area_between(&points[..1]), "");
}

#[test]
fn a_rectangle_spans_the_full_height_or_width() {
    assert_eq!(full_height(250.0, 500.0), "M250 0H500V1000H250Z");
    assert_eq!(full_width(100.0, 90.0), "M0 100H1000V90H0Z");
    assert_eq!(full_height(f64::NAN, 1.0), "");
}

#[test]
fn dots_are_at_their_values_and_overlapping_dots_are_merged() {
    assert_eq!(dots([(1.0, 2.0), (500.0, 250.5), (f64::NAN, 3.0)]), "M1 2h.01M500 250.5h.01");
    assert_eq!(dots([(500.0, 500.0), (500.2, 500.1)]), "M500 500h.01");
    let many = dots((0..100_000).map(|i| (f64::from(i % 1000), f64::from(i / 1000))));
    assert!(many.matches('M').count() <= 301 * 7, "{}", many.matches('M').count());
}

#[test]
fn the_height_of_a_block_is_its_share_and_missing_is_not_zero() {
    let runs = [(0.0, 300.0, Some(0.5)), (320.0, 620.0, Some(0.0)), (640.0, 1000.0, None)]
        .map(|(from, to, share)| Block { from, to, share });
    let drawn = strip(0, 1, &runs);
    assert_eq!(drawn.blocks, "M0 650H300V1000H0Z", "a share of 0.5 fills half of the row");
    assert_eq!(drawn.ground, "M0 300H300V1000H0ZM320 300H620V1000H320Z", "no background if unknown");
    assert_eq!(strip(0, 1, &[]), Strip::default());
    assert_eq!(
        strip(1, 2, &[Block { from: 0.0, to: 1000.0, share: Some(7.0) }]).blocks,
        "M0 650H1000V1000H0Z",
        "no more than the whole"
    );
    assert!((strip_middle(0, 2) - 325.0).abs() < 1e-9 && (strip_middle(1, 2) - 825.0).abs() < 1e-9);
}

#[test]
fn neighbours_of_equal_height_are_one_block() {
    let block = |i| Block { from: f64::from(i), to: f64::from(i) + 0.5, share: Some(0.25) };
    let runs: Vec<Block> = (0..1000).map(block).collect();
    assert_eq!(strip(0, 1, &runs).blocks.matches('M').count(), 1);
}

#[test]
fn an_interval_surrounds_its_value_and_is_cut_at_the_ends() {
    let axis = Axis::linear(0.0, 200.0);
    let inside = whisker(&axis, 100.0, Some([50.0, 150.0]));
    assert_eq!((inside.at, inside.from, inside.width), (50.0, 25.0, 50.0));
    assert!(!inside.is_cut_left && !inside.is_cut_right);
    let wide = whisker(&axis, 100.0, Some([-10.0, 900.0]));
    assert_eq!((wide.from, wide.width, wide.is_cut_left, wide.is_cut_right), (0.0, 100.0, true, true));
    let alone = whisker(&axis, 20.0, None);
    assert_eq!((alone.at, alone.width), (10.0, 0.0));
    let log = Axis::log([1.0, 100.0].into_iter());
    assert!(whisker(&log, 10.0, Some([0.0, 20.0])).is_cut_left);
}

#[test]
fn an_absurd_interval_does_not_stretch_the_axis() {
    let rows = [(100.0, Some([90.0, 110.0])), (120.0, Some([2.0, 9000.0]))];
    let all: Vec<f64> = interval_range(&rows).collect();
    assert!(all.iter().all(|v| (50.0..=240.0).contains(v)) && all.contains(&110.0), "{all:?}");
}

#[test]
fn adjacent_cells_of_a_shade_are_merged_and_empty_cells_are_not_drawn() {
    let paths = count_cells([4, 2], [(0, 0, 1), (1, 0, 1), (3, 1, 1000), (9, 9, 5)]);
    assert_eq!(paths[0], "M0 500H500V1000H0Z");
    assert_eq!(paths[4], "M750 0H1000V500H750Z");
    assert!(paths[1..4].iter().all(String::is_empty));
    assert!(count_cells([0, 0], []).iter().all(String::is_empty));
    assert_eq!(count_cells([1, 1], [(0, 0, 7)])[4], "M0 0H1000V1000H0Z", "a single count is the most");
}

#[test]
fn shades_range_from_none_to_full() {
    assert_eq!([0.0, 0.1, 0.5, 0.99, 1.0, 7.0, -1.0, f64::NAN].map(map_shade), [0, 0, 4, 8, 8, 8, 0, 0]);
}

#[test]
fn the_width_of_a_stage_is_proportional_to_its_value() {
    let flow = flow(&[vec![100.0], vec![50.0]]);
    assert_eq!(flow.bars, "M20 0H980V250H20ZM260 500H740V750H260Z");
    assert_eq!(flow.between, "M20 250H980L740 500H260Z");
}

#[test]
fn parts_are_side_by_side_and_uncounted_stages_are_omitted() {
    let drawn = flow(&[vec![100.0], Vec::new(), vec![50.0, 50.0]]);
    assert_eq!(drawn.bars.matches('M').count(), 3);
    assert_eq!(drawn.between.matches('M').count(), 1, "{}", drawn.between);
    assert_eq!(flow(&[vec![0.0], vec![0.0]]).bars, "");
}
