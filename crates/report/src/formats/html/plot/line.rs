//! Lines: points in order to the path of a drawing, no more of them than can be seen.
//!
//! For: curves and steps, broken where a point is missing. Not for: what they mean.

/// Width of a column of a drawing that can be told from the next one: a thousand of them, however many lines there are.
const COLUMN_WIDTH: f64 = super::axis::SIDE / 1000.0;

/// The path through these places. Where a place is no number the line is broken.
pub(crate) fn line(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points: Vec<(f64, f64)> = points.into_iter().collect();
    let mut out = String::new();
    for piece in points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|piece| !piece.is_empty()) {
        // A single place is seen too.
        if let [(x, y)] = piece {
            out += &format!("M{} {}h.01", coordinate(*x), coordinate(*y));
            continue;
        }
        for (at, (x, y)) in thinned(piece).into_iter().enumerate() {
            out += &format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, coordinate(x), coordinate(y));
        }
    }
    out
}

/// The path that stays on each level from its begin to its end: `(from, to, y)`.
pub(crate) fn steps(levels: impl IntoIterator<Item = (f64, f64, f64)>) -> String {
    let both = |(from, to, y): (f64, f64, f64)| [(from, y), (to, y)];
    line(levels.into_iter().flat_map(both))
}

/// First, lowest, highest and last of each column, in their order, where there are more.
pub(super) fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
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

/// A place with as many digits as can be seen.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[test]
fn a_line_goes_through_its_points_and_breaks_where_one_is_missing() {
    assert_eq!(line([(0.0, 10.0), (500.0, 20.04), (1000.0, 0.0)]), "M0 10L500 20L1000 0");
    let broken = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)];
    assert_eq!(line(broken), "M0 1L1 2M3 4h.01");
    assert_eq!(steps([(0.0, 10.0, 5.0), (10.0, 20.0, 7.0)]), "M0 5L10 5L10 7L20 7");
    assert_eq!(line([]), "");
}

#[test]
fn of_many_points_each_column_keeps_its_extremes() {
    let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i) / 100.0, 500.0)).collect();
    points[54_321].1 = 1.0;
    points[54_322].1 = 999.0;
    let kept = thinned(&points);
    assert!(kept.len() <= 4008, "{}", kept.len());
    assert!(kept.contains(&points[54_321]) && kept.contains(&points[54_322]));
    assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
}
