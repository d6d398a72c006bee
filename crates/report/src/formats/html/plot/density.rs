//! Densities: how latencies are distributed, and how rare the slow ones are.
//!
//! For: the two forms of a histogram with buckets of equal logarithmic width. Not for: single percentiles.

use model::report::LatencyBuckets;

/// Operations that must lie beyond a latency for its rarity to be drawn, as for percentiles.
const MIN_BEYOND: u64 = 10;

/// The share of the operations in each bucket: `(from, to, share)`, empty ones between them too.
pub(crate) fn bucket_shares(of: &LatencyBuckets) -> Vec<(f64, f64, f64)> {
    let all = of.count().max(1) as f64;
    let mut out: Vec<(f64, f64, f64)> = Vec::new();
    for (from, ops) in of.from_ns.iter().zip(&of.ops) {
        if let Some((_, end, _)) = out.last().copied()
            && *from > 1.001 * end
        {
            out.push((end, *from, 0.0));
        }
        out.push((*from, LatencyBuckets::end_ns(*from), *ops as f64 / all));
    }
    out
}

/// How many took longer: `(latency, share)`, as far as enough operations lie beyond.
pub(crate) fn rarity_tail(of: &LatencyBuckets) -> Vec<(f64, f64)> {
    let all = of.count();
    let mut left = all;
    let mut out = Vec::new();
    if let Some(first) = of.from_ns.first() {
        out.push((*first, 1.0));
    }
    for (from, ops) in of.from_ns.iter().zip(&of.ops) {
        left = left.saturating_sub(*ops);
        if left < MIN_BEYOND {
            break;
        }
        out.push((LatencyBuckets::end_ns(*from), left as f64 / all as f64));
    }
    out
}

/// How many took longer in a run: `(latency, share)`, from what one operation in 10^(k/10) took longer than; no number where that is
/// withheld.
pub(crate) fn rarity_tail_of_run(tail_ns: &[Option<u64>]) -> impl Iterator<Item = (f64, f64)> {
    let share = |at: usize| 10_f64.powf(-(at as f64 + 1.0) / 10.0);
    tail_ns.iter().enumerate().map(move |(at, ns)| (ns.map_or(f64::NAN, |ns| ns as f64), share(at)))
}

#[cfg(test)]
fn example_buckets() -> LatencyBuckets {
    LatencyBuckets { from_ns: vec![100.0, 1000.0, 100_000.0], ops: vec![900, 90, 10] }
}

#[test]
fn shares_add_up_and_gaps_are_zero() {
    let drawn = bucket_shares(&example_buckets());
    assert_eq!(drawn.iter().map(|s| s.2).collect::<Vec<_>>(), [0.9, 0.0, 0.09, 0.0, 0.01]);
    assert!(drawn.windows(2).all(|w| (w[0].1 / w[1].0 - 1.0).abs() < 1e-9), "{drawn:?}");
}

#[test]
fn the_tail_ends_where_fewer_than_ten_operations_lie_beyond() {
    let drawn = rarity_tail(&example_buckets());
    let shares: Vec<f64> = drawn.iter().map(|t| t.1).collect();
    assert_eq!(shares, [1.0, 0.1, 0.01]);
    assert!(drawn[0].0 < drawn[1].0 && (drawn[1].0 - 104.71).abs() < 0.01);
    assert_eq!(rarity_tail(&LatencyBuckets::default()), []);
}

#[test]
fn the_tail_of_a_run_goes_down_a_decade_in_ten_steps() {
    let ns: Vec<Option<u64>> = (1..=20).map(|k| (k != 5).then_some(100 * k)).collect();
    let drawn: Vec<(f64, f64)> = rarity_tail_of_run(&ns).collect();
    assert!((drawn[9].1 - 0.1).abs() < 1e-12 && (drawn[19].1 - 0.01).abs() < 1e-12, "{drawn:?}");
    assert!((drawn[9].0 - 1000.0).abs() < 1e-9 && drawn[4].0.is_nan(), "a gap where it is withheld");
    assert_eq!(rarity_tail_of_run(&[]).count(), 0);
}
