//! Thresholds: types that print themselves on the page of a check, and the margins and tolerances of comparisons.
//!
//! A number is FASTER or SLOWER only if its interval is beyond the margin. It is the SAME if the interval is within the tolerance, which
//! is at least the margin.

use std::cmp::Ordering;
use std::fmt;

/// A share, shown as `5 %`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(pub f64);

impl fmt::Display for Share {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{} %", without_rounding_error(self.0 * 100.0))
    }
}

impl PartialEq<Share> for f64 {
    fn eq(&self, other: &Share) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd<Share> for f64 {
    fn partial_cmp(&self, other: &Share) -> Option<Ordering> {
        self.partial_cmp(&other.0)
    }
}

/// A time in ns, shown as `60 us`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ns(pub f64);

impl fmt::Display for Ns {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n < 1e3 => (n, "ns"),
            n if n < 1e6 => (n / 1e3, "us"),
            n if n < 1e9 => (n / 1e6, "ms"),
            n => (n / 1e9, "s"),
        };
        write!(to, "{} {unit}", without_rounding_error(value))
    }
}

/// Removes the rounding error of binary fractions.
fn without_rounding_error(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Margin of a rate if both sides were measured in turns, or the difference between sessions of one side is known.
pub(crate) const MARGIN: f64 = 0.01;

/// Margin if each side is one session. Their runs do not show how much two sessions of one configuration differ: 20 pairs of the same job
/// on a virtual disk, one session right after the other, differed with a deviation of 3 %. With a margin of 1 %, three pairs were called
/// different.
pub(crate) const MARGIN_OF_LONE_SESSIONS: f64 = 0.05;

/// Minimum margin of a percentile, because a percentile is accurate only to the 0.8 % of a histogram bucket.
pub(crate) const MARGIN_OF_PERCENTILE: f64 = 0.02;

/// Tolerance of rates, medians and CPU time, unless `--margin` is given.
pub(crate) const TOLERANCE: f64 = 0.05;

/// Tolerance of percentiles from p99 on: a few slow operations decide them.
pub(crate) const TOLERANCE_OF_TAIL: f64 = 0.10;

/// The largest change that the interval of NO DIFFERENCE SEEN may contain. If it contains a larger one, the answer is CANNOT TELL.
pub(crate) const CANNOT_TELL_ABOVE: f64 = 0.5;

#[test]
fn thresholds_have_the_digits_that_they_need() {
    let shares = [0.05, 0.001, 0.005, 1.1, 1.0 - 0.9].map(|s| Share(s).to_string());
    assert_eq!(shares, ["5 %", "0.1 %", "0.5 %", "110 %", "10 %"]);
    let times = [900.0, 60e3, 500e3, 2e6, 1e9].map(|t| Ns(t).to_string());
    assert_eq!(times, ["900 ns", "60 us", "500 us", "2 ms", "1 s"]);
}

#[test]
fn a_share_compares_with_numbers_and_nan_exceeds_none() {
    assert!(0.06 > Share(0.05) && 0.05 <= Share(0.05) && 0.04 < Share(0.05));
    let none = f64::NAN;
    assert_eq!([none > Share(0.05), none <= Share(0.05)], [false, false]);
}
