//! A distribution of latencies without its empty buckets.
//!
//! For: what formats show of all latencies, percentiles of any rank among it, of several results together too. Not for: recording
//! ([`crate::histogram`]), which its values come from.

use crate::histogram::Histogram;
use std::collections::BTreeMap;

/// Latencies in ns, as a histogram kept them: each to within 1/256 of its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// The smallest in ns, exact; 0 where there is none.
    pub min_ns: u64,
    /// The largest in ns, exact; 0 where there is none.
    pub max_ns: u64,
    /// Their mean in ns, exact; 0 where there is none.
    pub mean_ns: f64,
    /// Latency in ns and how often it was seen, ascending.
    pub bins: Vec<(u64, u64)>,
}

impl From<&Histogram> for Distribution {
    fn from(whole: &Histogram) -> Self {
        Self {
            count: whole.count(),
            min_ns: whole.min_ns().unwrap_or(0),
            max_ns: whole.max_ns().unwrap_or(0),
            mean_ns: whole.mean_ns().unwrap_or(0.0),
            bins: whole.counts().collect(),
        }
    }
}

/// All of them together.
impl<'d> FromIterator<&'d Distribution> for Distribution {
    fn from_iter<I: IntoIterator<Item = &'d Distribution>>(all: I) -> Self {
        let mut sum = Self::default();
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for one in all.into_iter().filter(|one| one.count > 0) {
            let least = if sum.count == 0 { one.min_ns } else { sum.min_ns.min(one.min_ns) };
            let count = sum.count.saturating_add(one.count);
            let weighed = sum.mean_ns * sum.count as f64 + one.mean_ns * one.count as f64;
            (sum.min_ns, sum.max_ns) = (least, sum.max_ns.max(one.max_ns));
            (sum.mean_ns, sum.count) = (weighed / count as f64, count);
            for (ns, count) in &one.bins {
                let bin = bins.entry(*ns).or_default();
                *bin = bin.saturating_add(*count);
            }
        }
        sum.bins = bins.into_iter().collect();
        sum
    }
}

impl Distribution {
    /// The smallest latency in ns that the share `q` (0 to 1) of them did not exceed; `None` where there is none.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = q * self.count as f64;
        let mut below = 0_u64;
        let reached = self.bins.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below as f64 >= rank
        });
        reached.or(self.bins.last()).map(|(ns, _)| *ns)
    }

    /// Standard deviation in ns, of what the buckets kept; 0 with fewer than two.
    pub fn deviation_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let square = |(ns, count): &(u64, u64)| *count as f64 * (*ns as f64 - self.mean_ns).powi(2);
        (self.bins.iter().map(square).sum::<f64>() / (self.count - 1) as f64).sqrt()
    }

    /// How many are at least `from_ns` and below `to_ns`.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let within = self.bins.iter().filter(|(ns, _)| (from_ns..to_ns).contains(ns));
        within.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

#[cfg(test)]
fn distribution_of(latencies: &[u64]) -> Distribution {
    let mut histogram = Histogram::new();
    for ns in latencies {
        histogram.record(*ns);
    }
    Distribution::from(&histogram)
}

#[test]
fn it_says_what_the_histogram_says() {
    let ten: Vec<u64> = (1..=10).collect();
    let d = distribution_of(&ten);
    assert_eq!((d.count, d.min_ns, d.max_ns, d.mean_ns), (10, 1, 10, 5.5));
    assert_eq!([0.0, 0.1, 0.5, 0.91, 1.0].map(|q| d.quantile_ns(q)), [1, 1, 5, 10, 10].map(Some));
    assert!((d.deviation_ns() - 3.027_65).abs() < 1e-4, "{}", d.deviation_ns());
    assert_eq!((d.between(0, 3), d.between(3, u64::MAX)), (2, 8));
}

#[test]
fn of_nothing_there_is_no_percentile_and_of_one_no_deviation() {
    assert_eq!(
        (
            distribution_of(&[]).quantile_ns(0.5),
            distribution_of(&[]).deviation_ns(),
            distribution_of(&[]).count
        ),
        (None, 0.0, 0)
    );
    assert_eq!(
        (distribution_of(&[7]).quantile_ns(0.999), distribution_of(&[7]).deviation_ns()),
        (Some(7), 0.0)
    );
}

#[test]
fn several_together_are_as_if_one_histogram_had_them_all() {
    let (some, others) = ([3, 900, 70_000], [5, 5, 1_000_000]);
    let together: Distribution =
        [distribution_of(&some), distribution_of(&[]), distribution_of(&others)].iter().collect();
    let whole = distribution_of(&[some, others].concat());
    assert_eq!((together.count, &together.bins), (whole.count, &whole.bins));
    assert_eq!((together.min_ns, together.max_ns), (3, 1_000_000));
    assert!((together.mean_ns - whole.mean_ns).abs() < 1e-6);
    assert_eq!(
        [distribution_of(&[]), distribution_of(&[])].iter().collect::<Distribution>(),
        distribution_of(&[])
    );
}
