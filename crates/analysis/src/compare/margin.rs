//! Margins and tolerances: how large a difference must be to count, and how small to count as none.
//!
//! A difference is FASTER or SLOWER only if its interval lies beyond the margin. Two sides are the SAME if the interval lies within the
//! tolerance, which is at least the margin.

/// Margin of a rate where both sides were measured in turns, or the distance between sessions of one side is known.
pub(crate) const MARGIN: f64 = 0.01;
/// Margin where each side is one session. Their runs do not show how far two sessions of one configuration lie apart: 20 pairs of
/// the same job on a virtual disk, one session right after the other, differed with a deviation of 3 %, and with a margin of 1 % three
/// of them were told apart.
pub(crate) const MARGIN_OF_LONE_SESSIONS: f64 = 0.05;
/// Least margin of a percentile, which is known to the 0.8 % of a bucket.
pub(crate) const MARGIN_OF_PERCENTILE: f64 = 0.02;
/// Tolerance of rates, medians and CPU time, unless `--margin` says otherwise.
pub(crate) const TOLERANCE: f64 = 0.05;
/// Tolerance of percentiles from p99 on: a few slow operations decide them.
pub(crate) const TOLERANCE_OF_TAIL: f64 = 0.10;
/// Largest change that a range may allow and still say something. A number that may as well be half as large again is not known.
pub(crate) const SAYS_NOTHING: f64 = 0.5;
