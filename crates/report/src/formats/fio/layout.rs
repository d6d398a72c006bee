//! What fio divides latencies and depths into.
//!
//! The limits of its tables, and the room of a terse line.

use model::distribution::Distribution;

/// Percentiles that a line of its terse form has room for.
pub(super) const TERSE_PERCENTILES: usize = 20;

/// Latencies below these have a share of their own, of nanoseconds and microseconds but for the last; of milliseconds there is one
/// more beyond it.
pub(super) const LATENCY_LIMITS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// Shares of latencies in percent, by unit and [`BELOW`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LatencyShares {
    /// Those shorter than a microsecond.
    pub(super) ns: [f64; 10],
    /// Those shorter than a millisecond.
    pub(super) us: [f64; 10],
    /// The others.
    pub(super) ms: [f64; 12],
}

impl LatencyShares {
    /// Of several distributions together.
    pub(super) fn from_distributions(all: &[&Distribution]) -> Self {
        let total: u64 = all.iter().fold(0, |sum, d| sum.saturating_add(d.count));
        let share = |from: u64, to: u64| {
            let count = all.iter().fold(0, |sum: u64, d| sum.saturating_add(d.between(from, to)));
            visible_percent(count, total, MIN_LATENCY_SHARE)
        };
        let row = |unit: u64, at: usize| {
            // What is shorter than this unit stands in the row above.
            let from =
                if at == 0 && unit == 1 { 0 } else { at.checked_sub(1).map_or(1, |at| LATENCY_LIMITS[at]) };
            share(
                from.saturating_mul(unit),
                LATENCY_LIMITS.get(at).map_or(u64::MAX, |to| to.saturating_mul(unit)),
            )
        };
        Self {
            ns: std::array::from_fn(|at| row(1, at)),
            us: std::array::from_fn(|at| row(1_000, at)),
            ms: std::array::from_fn(|at| row(1_000_000, at)),
        }
    }
}

/// Least share of what was seen at all, so that it does not look like nothing.
const MIN_LATENCY_SHARE: f64 = 0.01;

fn visible_percent(part: u64, whole: u64, least: f64) -> f64 {
    if part == 0 || whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).max(least) }
}

#[test]
fn each_latency_is_in_one_share() {
    let bins: Vec<(u64, u64)> =
        [0, 1, 3, 999, 1_000, 1_999, 2_000, 999_999, 1_000_000, 1_999_999_999, 2_000_000_000, u64::MAX - 1]
            .map(|ns| (ns, 1))
            .to_vec();
    let d = Distribution { count: bins.len() as u64, bins, ..Distribution::default() };
    let LatencyShares { ns, us, ms } = LatencyShares::from_distributions(&[&d, &d]);
    let sum: f64 = ns.iter().chain(&us).chain(&ms).sum();
    assert!((sum - 100.0).abs() < 1e-9, "{ns:?} {us:?} {ms:?}");
    let one = 100.0 / 12.0;
    let twelfths = |shares: &[f64]| shares.iter().map(|s| (s / one).round() as u32).collect::<Vec<_>>();
    assert_eq!(twelfths(&ns), [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(twelfths(&us), [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(twelfths(&ms), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn what_is_rare_does_not_look_like_nothing_and_nothing_does() {
    let d =
        Distribution { count: 1_000_001, bins: vec![(60, 1_000_000), (5_000, 1)], ..Distribution::default() };
    assert_eq!(
        (LatencyShares::from_distributions(&[&d]).us[2], LatencyShares::from_distributions(&[]).us[2]),
        (0.01, 0.0)
    );
}
