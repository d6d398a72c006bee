//! Dots: single values in a drawing.
//!
//! For: places of dots and crosses; their looks are the style's. Not for: lines through them.

use super::axis::SIDE;
use super::line::coordinate;

/// Cells along and across within which dots cover one another.
const DOT_CELLS: [f64; 2] = [300.0, 60.0];

/// A dot at each place that is a number: strokes without length, whose round ends keep their form however wide the drawing is. Dots
/// that would cover one another are one.
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

#[test]
fn a_dot_is_where_its_value_is_and_there_is_one_of_those_that_cover_one_another() {
    assert_eq!(dots([(1.0, 2.0), (500.0, 250.5), (f64::NAN, 3.0)]), "M1 2h.01M500 250.5h.01");
    assert_eq!(dots([(500.0, 500.0), (500.2, 500.1)]), "M500 500h.01");
    let many = dots((0..100_000).map(|i| (f64::from(i % 1000), f64::from(i / 1000))));
    assert!(many.matches('M').count() <= 301 * 7, "{}", many.matches('M').count());
}
