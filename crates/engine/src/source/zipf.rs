//! Ranks by Zipf's law, exactly: rank k of n with a chance proportional to k^-theta.
//!
//! For: any theta from 0 (all alike) upwards and any n. Not for: where a rank lies in the span (`scatter`).
//!
//! The first ranks and narrow buckets of the others are drawn from one alias table. A bucket's weight is that of its first
//! rank times its ranks, which is at least what it should have; a rank drawn in it is then taken with its true share of
//! that (von Neumann's rejection). Nothing is approximated but by the rounding of 64-bit floats. The usual approximation
//! (Gray et al., "Quickly generating billion-record synthetic databases", 1994) fails at theta 1 and beyond.

use super::alias::Alias;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Ranks that have entries of their own.
const HEAD: u64 = 512;
/// A bucket is this part of its first rank wide, so that at least 94 % of what is drawn in it is taken at theta 1.
const NARROW: u64 = 16;

/// Ranks from 0 to n - 1, the most frequent first. About 25 KiB at most.
#[derive(Debug)]
pub(super) struct Zipf {
    theta: f64,
    ranks: u64,
    entries: Alias,
    buckets: Vec<Bucket>,
}

/// Ranks `first .. first + width`, counted from 1.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u64,
    width: u64,
    /// The least share with which a rank of the bucket is taken; a draw below it needs no power.
    squeeze: f64,
}

impl Zipf {
    /// The law for `ranks` ranks, at least 1.
    pub(super) fn new(theta: f64, ranks: u64) -> Result<Self, String> {
        if !(theta.is_finite() && theta >= 0.0) {
            return Err(format!("zipf takes an exponent from 0 upwards, not {theta}; 0.9 to 1.2 are usual"));
        }
        let head = ranks.min(HEAD);
        let mut weights: Vec<f64> = (1..=head).map(|k| (k as f64).powf(-theta)).collect();
        let mut buckets = Vec::new();
        let mut first = head + 1;
        while first <= ranks {
            let width = (first / NARROW).min((ranks - first).saturating_add(1));
            weights.push(width as f64 * (first as f64).powf(-theta));
            buckets.push(Bucket { first, width, squeeze: share(first + (width - 1), first, theta) });
            let Some(next) = first.checked_add(width) else { break };
            first = next;
        }
        // The first rank weighs 1 and no sum of 2^64 such is beyond a float, so there is always a table.
        let entries = Alias::new(&weights).ok_or_else(|| {
            format!("zipf {theta} over {ranks} blocks cannot be drawn; choose another exponent")
        })?;
        Ok(Self { theta, ranks, entries, buckets })
    }

    /// Whether it is this law.
    pub(super) fn is(&self, theta: f64, ranks: u64) -> bool {
        self.theta.to_bits() == theta.to_bits() && self.ranks == ranks
    }

    /// The next rank, from 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let entry = self.entries.draw(rng);
            let Some(bucket) = entry.checked_sub(HEAD as usize).and_then(|b| self.buckets.get(b)) else {
                return entry as u64;
            };
            let rank = bucket.first + rng.random_range(0..bucket.width);
            let draw: f64 = rng.random();
            if draw < bucket.squeeze || draw < share(rank, bucket.first, self.theta) {
                return rank - 1;
            }
        }
    }
}

/// The weight of a rank as a share of that of its bucket's first.
fn share(rank: u64, first: u64, theta: f64) -> f64 {
    (rank as f64 / first as f64).powf(-theta)
}

#[test]
fn ranks_follow_the_law_for_any_exponent_and_space() {
    for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 2.5, 8.0] {
        for ranks in [1, 2, 100, 512, 513, 10_000, 1 << 30, 1 << 40] {
            let zipf = Zipf::new(theta, ranks).unwrap_or_else(|e| panic!("{e}"));
            let bins = super::theory::bins(ranks);
            let mut seen = vec![0_u64; bins.len()];
            let mut rng = rand::SeedableRng::seed_from_u64(ranks ^ theta.to_bits());
            for _ in 0..100_000 {
                let rank = zipf.draw(&mut rng);
                assert!(rank < ranks);
                seen[bins.partition_point(|b| b.start <= rank) - 1] += 1;
            }
            let expected: Vec<f64> = bins.iter().map(|b| power_sum(b.start + 1, b.end, theta)).collect();
            super::theory::fits(&seen, &expected);
        }
    }
}

#[test]
fn ranks_inside_a_bucket_are_not_all_alike() {
    let zipf = Zipf::new(1.0, 1 << 20).unwrap_or_else(|e| panic!("{e}"));
    let half_of = |b: &Bucket| b.first + b.width / 2;
    let halves = |b: &Bucket| {
        let sum = |from, to| power_sum(from, to, 1.0);
        [sum(b.first, half_of(b) - 1), sum(half_of(b), b.first + b.width - 1)]
    };
    let expected = zipf.buckets.iter().map(halves).fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    let mut seen = [0; 2];
    for _ in 0..500_000 {
        let rank = zipf.draw(&mut rng) + 1;
        if let Some(bucket) = zipf.buckets.iter().rfind(|b| b.first <= rank) {
            seen[usize::from(rank >= half_of(bucket))] += 1;
        }
    }
    super::theory::fits(&seen, &expected);
}

/// The sum of k^-theta from `from` to `to`, both included: term by term, or by Euler's and Maclaurin's formula.
#[cfg(test)]
fn power_sum(from: u64, to: u64, theta: f64) -> f64 {
    if to - from < 10_000 {
        return (from..=to).map(|k| (k as f64).powf(-theta)).sum();
    }
    let (a, b) = (from as f64, to as f64);
    let integral = if (theta - 1.0).abs() < 1e-12 {
        (b / a).ln()
    } else {
        (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta)
    };
    integral
        + f64::midpoint(a.powf(-theta), b.powf(-theta))
        + theta / 12.0 * (a.powf(-theta - 1.0) - b.powf(-theta - 1.0))
}

#[test]
fn exponents_that_are_none_are_refused_and_extreme_ones_drawn() {
    for theta in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(Zipf::new(theta, 100).is_err());
    }
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    for (theta, ranks) in [(1e300, u64::MAX), (0.0, u64::MAX), (300.0, 1 << 40)] {
        let zipf = Zipf::new(theta, ranks).unwrap_or_else(|e| panic!("{e}"));
        let drawn: Vec<u64> = (0..1000).map(|_| zipf.draw(&mut rng)).collect();
        assert_eq!(drawn.iter().all(|r| *r == 0), theta > 1.0, "{theta}");
    }
}
