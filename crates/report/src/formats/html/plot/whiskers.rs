//! Whiskers: a value with its interval on one axis, cut where the axis ends.
//!
//! For: rows of intervals under one scale. Not for: which rows there are.

use super::axis::{Axis, SIDE};

/// A value and its interval, in percent along the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Whisker {
    /// Where the value is.
    pub(crate) at: f64,
    /// Where the interval begins, and how wide it is.
    pub(crate) from: f64,
    /// Width of what is drawn.
    pub(crate) width: f64,
    /// Whether the interval goes on beyond the left end.
    pub(crate) cut_left: bool,
    /// Whether it goes on beyond the right end.
    pub(crate) cut_right: bool,
}

/// Where a value and its interval lie.
pub(crate) fn whisker(axis: &Axis, value: f64, interval: Option<[f64; 2]>) -> Whisker {
    let percent = |v: f64| 100.0 * axis.within(v) / SIDE;
    let tenth = |v: f64| if v.is_finite() { (10.0 * v).round() / 10.0 } else { 0.0 };
    let [low, high] = interval.unwrap_or([value; 2]);
    // What has no place on a logarithmic axis lies before its begin.
    let before = |v: f64| !axis.along(v).is_finite() || axis.along(v) < 0.0;
    let from = if before(low) { 0.0 } else { percent(low) };
    Whisker {
        at: tenth(percent(value)),
        from: tenth(from),
        width: tenth(percent(high) - from),
        cut_left: before(low),
        cut_right: axis.along(high) > SIDE,
    }
}

/// A range that has all values in it, and of their intervals no more than some times as much around: few runs have absurd ones.
pub(crate) fn interval_range(rows: &[(f64, Option<[f64; 2]>)]) -> impl Iterator<Item = f64> + use<> {
    const AROUND: f64 = 2.0;
    let values: Vec<f64> = rows.iter().map(|r| r.0).filter(|v| v.is_finite() && *v > 0.0).collect();
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let ends: Vec<f64> = rows.iter().filter_map(|r| r.1).flatten().collect();
    let kept = ends.into_iter().filter(move |v| *v >= low / AROUND && *v <= high * AROUND);
    values.into_iter().chain(kept.collect::<Vec<_>>())
}

#[test]
fn an_interval_lies_around_its_value_and_is_cut_at_the_ends() {
    let axis = Axis::linear(0.0, 200.0);
    let inside = whisker(&axis, 100.0, Some([50.0, 150.0]));
    assert_eq!((inside.at, inside.from, inside.width), (50.0, 25.0, 50.0));
    assert!(!inside.cut_left && !inside.cut_right);
    let wide = whisker(&axis, 100.0, Some([-10.0, 900.0]));
    assert_eq!((wide.from, wide.width, wide.cut_left, wide.cut_right), (0.0, 100.0, true, true));
    let alone = whisker(&axis, 20.0, None);
    assert_eq!((alone.at, alone.width), (10.0, 0.0));
    let log = Axis::log([1.0, 100.0].into_iter());
    assert!(whisker(&log, 10.0, Some([0.0, 20.0])).cut_left);
}

#[test]
fn an_absurd_interval_does_not_make_the_axis() {
    let rows = [(100.0, Some([90.0, 110.0])), (120.0, Some([2.0, 9000.0]))];
    let all: Vec<f64> = interval_range(&rows).collect();
    assert!(all.iter().all(|v| (50.0..=240.0).contains(v)) && all.contains(&110.0), "{all:?}");
}
