//! Bands: areas between two lines, and stretches of an axis.
//!
//! For: intervals, spreads, and times at which something was so. Not for: lines.

use super::axis::SIDE;
use super::line::{coordinate, thinned};

/// The area between two curves over the same places: `(x, upper, lower)`. Broken where one is no number.
pub(crate) fn area_between(points: &[(f64, f64, f64)]) -> String {
    let is_gap = |(x, a, b): &(f64, f64, f64)| !(x.is_finite() && a.is_finite() && b.is_finite());
    let mut out = String::new();
    for piece in points.split(is_gap).filter(|piece| piece.len() > 1) {
        let upper = thinned(&piece.iter().map(|(x, a, _)| (*x, *a)).collect::<Vec<_>>());
        let lower = thinned(&piece.iter().map(|(x, _, b)| (*x, *b)).collect::<Vec<_>>());
        let around = upper.iter().chain(lower.iter().rev());
        for (at, (x, y)) in around.enumerate() {
            out += &format!("{}{} {}", if at == 0 { 'M' } else { 'L' }, coordinate(*x), coordinate(*y));
        }
        out.push('Z');
    }
    out
}

/// All of the height between two places along the axis.
pub(crate) fn full_height(from: f64, to: f64) -> String {
    rectangle([from, 0.0], [to, SIDE])
}

/// All of the width between two heights.
pub(crate) fn full_width(from: f64, to: f64) -> String {
    rectangle([0.0, from], [SIDE, to])
}

/// A rectangle from one corner to the other; nothing where a place is no number.
pub(crate) fn rectangle([x, y]: [f64; 2], [to_x, to_y]: [f64; 2]) -> String {
    if ![x, y, to_x, to_y].iter().all(|v| v.is_finite()) {
        return String::new();
    }
    let [x, y, to_x, to_y] = [x, y, to_x, to_y].map(|v| coordinate(v.clamp(-SIDE, 2.0 * SIDE)));
    format!("M{x} {y}H{to_x}V{to_y}H{x}Z")
}

#[test]
fn an_area_goes_out_on_one_line_and_back_on_the_other() {
    let points =
        [(0.0, 10.0, 20.0), (5.0, 11.0, 21.0), (6.0, f64::NAN, 1.0), (7.0, 1.0, 2.0), (8.0, 1.0, 2.0)];
    assert_eq!(area_between(&points), "M0 10L5 11L5 21L0 20ZM7 1L8 1L8 2L7 2Z");
    assert_eq!(area_between(&points[..1]), "");
}

#[test]
fn a_stretch_is_as_wide_as_it_lasts() {
    assert_eq!(full_height(250.0, 500.0), "M250 0H500V1000H250Z");
    assert_eq!(full_width(100.0, 90.0), "M0 100H1000V90H0Z");
    assert_eq!(full_height(f64::NAN, 1.0), "");
}
