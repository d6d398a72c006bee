//! Latency histograms: recording in the hot loop, merging, quantiles, their sparse form in files, and
//! distributions, which omit empty buckets.
//!
//! Buckets are those of the crate `histogram` with grouping power 7: 1 ns wide up to 256 ns, then at most 1/128 of the
//! latency.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// log2 of the number of buckets per power of two; 7 keeps the error of a quantile below 1/128 = 0.8 %.
const GROUPING_POWER: u8 = 7;
/// log2 of the end of the last bucket, in ns: 2^42 ns = 73 min. Longer latencies count in the last bucket.
const MAX_VALUE_POWER: u8 = 42;
const MAX_VALUE_NS: u64 = (1 << MAX_VALUE_POWER) - 1;

/// Minimum number of operations above a percentile: the usual rule for tails, n (1 - p) >= 10. With
/// fewer, single operations would decide the percentile.
pub const FEWEST_ABOVE_PERCENTILE: f64 = 10.0;

/// Returns whether `count` operations are enough for the percentile `q` (0 to 1).
pub fn supports_quantile(count: u64, q: f64) -> bool {
    // The small slack absorbs the rounding of 1 - q.
    count as f64 * (1.0 - q) >= FEWEST_ABOVE_PERCENTILE - 1e-6
}

/// Latencies in ns: bucket counts with exact count, sum, minimum and maximum. 36 KiB, never grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: histogram::Histogram,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Creates an empty histogram. Never panics: a test builds one with the same constant bucket sizes.
    #[allow(clippy::missing_panics_doc, clippy::expect_used)]
    pub fn new() -> Self {
        let buckets = histogram::Histogram::new(GROUPING_POWER, MAX_VALUE_POWER).expect("constant geometry");
        Self { buckets, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records one latency. Part of the hot loop: about 1 ns, no allocation, cannot fail.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        // The crate `histogram` would read the bucket geometry at run time. With a constant geometry, finding the
        // bucket takes five instructions.
        if let Some(bucket) = self.buckets.as_mut_slice().get_mut(bucket_of(ns.min(MAX_VALUE_NS))) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.wrapping_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Returns the number of recorded operations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the sum of all latencies in ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the smallest latency in ns, exact; `None` if nothing was recorded.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// Returns the largest latency in ns, exact; `None` if nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// Returns the mean latency in ns, exact; `None` if nothing was recorded.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        // Fails only for histograms with different buckets, but all histograms here have the same buckets.
        if let Ok(sum) = self.buckets.wrapping_add(&other.buckets) {
            self.buckets = sum;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Discards all latencies and keeps the memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.buckets.reset();
            (self.count, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, u64::MAX, 0);
        }
    }

    /// Returns the latency in ns that the share `q` (0 to 1) of the operations did not exceed: the middle of its
    /// bucket, limited to the exact minimum and maximum. `None` if nothing was recorded.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let bucket = self.buckets.quantile_bucket(q.clamp(0.0, 1.0)).ok().flatten()?;
        let middle = bucket.start() + (bucket.end() - bucket.start()) / 2;
        Some(middle.clamp(self.min_ns, self.max_ns))
    }

    /// Returns the latency in ns that the share `q` (0 to 1) of the operations did not exceed.
    /// `None` if too few operations took longer ([`FEWEST_ABOVE_PERCENTILE`]).
    pub fn supported_quantile_ns(&self, q: f64) -> Option<u64> {
        supports_quantile(self.count, q).then(|| self.quantile_ns(q)).flatten()
    }

    /// Returns the number of operations with a latency from `from_ns` to below `to_ns`. Rounds each bound down to the start of its
    /// bucket.
    pub fn count_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let bucket = |ns: u64| bucket_of(ns.min(MAX_VALUE_NS));
        let part = self.buckets.as_slice().get(bucket(from_ns)..bucket(to_ns));
        part.map_or(0, |counts| counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))
    }

    /// Returns the recorded latencies in ascending order, each with its count: the middle of every non-empty bucket
    /// in ns, limited to the exact minimum and maximum.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let filled = self.buckets.as_slice().iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| {
            let (low, width) = bucket_at(index);
            ((low + (width - 1) / 2).clamp(self.min_ns, self.max_ns), *count)
        })
    }
}

/// Returns the index of the bucket of a latency: linear below 2^7, then 2^7 buckets for each power
/// of two.
#[inline]
fn bucket_of(ns: u64) -> usize {
    const LINEAR: u64 = 1 << GROUPING_POWER;
    let shift = (ns | LINEAR).ilog2() - u32::from(GROUPING_POWER);
    ((u64::from(shift) << GROUPING_POWER) + (ns >> shift)) as usize
}

/// Returns the first ns of a bucket, and its width in ns.
fn bucket_at(index: usize) -> (u64, u64) {
    const LINEAR: usize = 1 << GROUPING_POWER;
    let shift = (index / LINEAR).saturating_sub(1);
    (((index - shift * LINEAR) as u64) << shift, 1 << shift)
}

/// The form in files: only non-empty buckets, each with its distance from the previous one.
#[derive(Serialize, Deserialize)]
struct Sparse {
    count: u64,
    sum_ns: u64,
    min_ns: Option<u64>,
    max_ns: u64,
    /// Grouping power. It is stored, so that a later version with another power can still read the file.
    power: u8,
    /// Flat pairs: distance to the previous index, count.
    buckets: Vec<u64>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buckets = Vec::new();
        let mut last = 0;
        for (index, &count) in self.buckets.as_slice().iter().enumerate().filter(|(_, c)| **c > 0) {
            buckets.extend([(index - last) as u64, count]);
            last = index;
        }
        let (count, sum_ns, min_ns, max_ns) = (self.count, self.sum_ns, self.min_ns(), self.max_ns);
        Sparse { count, sum_ns, min_ns, max_ns, power: GROUPING_POWER, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let sparse = Sparse::deserialize(deserializer)?;
        if sparse.power != GROUPING_POWER {
            return Err(D::Error::custom(format!(
                "histogram of grouping power {}, expected {GROUPING_POWER}",
                sparse.power
            )));
        }
        let mut out = Self::new();
        let mut index = 0_usize;
        let mut total = 0_u64;
        let (pairs, rest) = sparse.buckets.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(D::Error::custom("histogram whose last bucket has no count"));
        }
        for [step, count] in pairs {
            index = usize::try_from(*step).ok().and_then(|s| index.checked_add(s)).unwrap_or(usize::MAX);
            total = total.checked_add(*count).ok_or_else(|| D::Error::custom("histogram count overflows"))?;
            let slot = out.buckets.as_mut_slice().get_mut(index);
            // A damaged file may have a bucket twice.
            *slot.ok_or_else(|| D::Error::custom("histogram bucket out of range"))? += *count;
        }
        if total != sparse.count {
            return Err(D::Error::custom("histogram whose buckets do not add up to its count"));
        }
        out.count = sparse.count;
        out.sum_ns = sparse.sum_ns;
        out.min_ns = sparse.min_ns.unwrap_or(u64::MAX);
        out.max_ns = sparse.max_ns;
        if out.count > 0 && out.min_ns > out.max_ns {
            return Err(D::Error::custom("histogram whose minimum exceeds its maximum"));
        }
        Ok(out)
    }
}

/// A distribution of latencies in ns: the buckets of a histogram that are not empty. Each latency is accurate to within 1/256.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Number of latencies.
    pub count: u64,
    /// Smallest latency in ns, exact; 0 without latencies.
    pub min_ns: u64,
    /// Largest latency in ns, exact; 0 without latencies.
    pub max_ns: u64,
    /// Mean latency in ns, exact; 0 without latencies.
    pub mean_ns: f64,
    /// Pairs of a latency in ns and its count, ascending.
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

/// Adds up several distributions.
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
    /// Returns the smallest latency in ns that the share `q` (0 to 1) did not exceed; `None`
    /// without latencies.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let rank = q * self.count as f64;
        let mut below = 0_u64;
        let reached = self.bins.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below as f64 >= rank
        });
        reached.or(self.bins.last()).map(|(ns, _)| *ns)
    }

    /// Returns the standard deviation in ns, from the buckets; 0 with fewer than two latencies.
    pub fn deviation_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let square = |(ns, count): &(u64, u64)| *count as f64 * (*ns as f64 - self.mean_ns).powi(2);
        (self.bins.iter().map(square).sum::<f64>() / (self.count - 1) as f64).sqrt()
    }

    /// Returns the number of latencies from `from_ns` to below `to_ns`.
    pub fn count_between(&self, from_ns: u64, to_ns: u64) -> u64 {
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

#[cfg(test)]
fn histogram_of(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut h = Histogram::new();
    values.into_iter().for_each(|v| h.record(v));
    h
}

#[test]
fn buckets_equal_those_of_the_histogram_crate() {
    let near_powers =
        (0..MAX_VALUE_POWER).flat_map(|p| (0..5).map(move |d| ((1_u64 << p) + d).saturating_sub(2)));
    for ns in (0..500).chain(near_powers).chain([MAX_VALUE_NS]) {
        let mut theirs = Histogram::new().buckets;
        theirs.increment(ns).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(theirs.as_slice().iter().position(|c| *c == 1), Some(bucket_of(ns)), "{ns}");
    }
}

#[test]
fn counts_reproduce_the_latencies() {
    for ns in [0, 1, 127, 128, 255, 256, 257, 511, 512, 9_999, 1 << 20, MAX_VALUE_NS] {
        let (low, width) = bucket_at(bucket_of(ns));
        assert!(low <= ns && ns - low < width, "{ns}: {low} {width}");
    }
    let h = histogram_of([7, 5_000, 5_000, 1 << 30]);
    let seen: Vec<(u64, u64)> = h.counts().collect();
    assert_eq!((seen.len(), seen[0], seen[1].1, seen[2].1), (3, (7, 1), 2, 1));
    assert!((4_980..=5_020).contains(&seen[1].0) && seen[2].0 <= 1 << 30);
}

#[test]
fn quantiles_stay_within_one_percent() {
    let h = histogram_of((1..=100_000).map(|i| i * 37));
    for q in [0.01, 0.5, 0.9, 0.99, 0.999] {
        let exact = q * 100_000.0 * 37.0;
        let got = h.quantile_ns(q).unwrap_or(0) as f64;
        assert!((got / exact - 1.0).abs() < 0.01, "q {q}: {got} against {exact}");
    }
    assert_eq!(h.max_ns(), Some(3_700_000));
}

#[test]
fn quantiles_with_few_operations_beyond_are_withheld() {
    let h = histogram_of(0..1000);
    assert!(h.supported_quantile_ns(0.99).is_some());
    assert_eq!(h.supported_quantile_ns(0.999), None);
    assert_eq!(Histogram::new().quantile_ns(0.5), None);
}

#[test]
fn merging_equals_recording_together_and_survives_a_round_trip() {
    let mut a = histogram_of([0, 1, 127, 128, 5_000, u64::MAX]);
    let b = histogram_of([90_000, 1 << 41]);
    a.merge(&b);
    assert_eq!(a, histogram_of([0, 1, 127, 128, 5_000, u64::MAX, 90_000, 1 << 41]));
    let text = serde_json::to_string(&a).unwrap_or_default();
    assert_eq!(serde_json::from_str::<Histogram>(&text).ok(), Some(a));
    for forged in [
        r#"{"count":1,"sum_ns":1,"min_ns":1,"max_ns":1,"power":7,"buckets":[999999999,1]}"#,
        r#"{"count":2,"sum_ns":1,"min_ns":1,"max_ns":1,"power":7,"buckets":[1,1]}"#,
        r#"{"count":1,"sum_ns":1,"min_ns":1,"max_ns":1,"power":7,"buckets":[1]}"#,
        r#"{"count":1,"sum_ns":1,"min_ns":1,"max_ns":1,"power":9,"buckets":[1,1]}"#,
    ] {
        assert!(serde_json::from_str::<Histogram>(forged).is_err(), "{forged}");
    }
    let twice = r#"{"count":3,"sum_ns":3,"min_ns":1,"max_ns":1,"power":7,"buckets":[1,1,0,2]}"#;
    assert_eq!(serde_json::from_str::<Histogram>(twice).ok(), Some(histogram_of([1, 1, 1])));
}

#[test]
fn latencies_between_two_bounds_are_counted() {
    let h = histogram_of([10, 1_000, 1_000, 4_000_000, u64::MAX]);
    assert_eq!(
        (h.count_between(0, 100), h.count_between(900, 1_100), h.count_between(0, 5_000_000)),
        (1, 2, 4)
    );
    assert_eq!((h.count_between(1_100, 900), h.count_between(u64::MAX, u64::MAX)), (0, 0));
}

#[test]
fn a_distribution_has_the_quantiles_of_its_histogram() {
    let ten: Vec<u64> = (1..=10).collect();
    let d = distribution_of(&ten);
    assert_eq!((d.count, d.min_ns, d.max_ns, d.mean_ns), (10, 1, 10, 5.5));
    assert_eq!([0.0, 0.1, 0.5, 0.91, 1.0].map(|q| d.quantile_ns(q)), [1, 1, 5, 10, 10].map(Some));
    assert!((d.deviation_ns() - 3.027_65).abs() < 1e-4, "{}", d.deviation_ns());
    assert_eq!((d.count_between(0, 3), d.count_between(3, u64::MAX)), (2, 8));
}

#[test]
fn an_empty_distribution_has_no_percentiles() {
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
fn joined_distributions_equal_one_histogram() {
    let (some, others) = ([3, 900, 70_000], [5, 5, 1_000_000]);
    let together: Distribution =
        [distribution_of(&some), distribution_of(&[]), distribution_of(&others)].iter().collect();
    let all_latencies = distribution_of(&[some, others].concat());
    assert_eq!((together.count, &together.bins), (all_latencies.count, &all_latencies.bins));
    assert_eq!((together.min_ns, together.max_ns), (3, 1_000_000));
    assert!((together.mean_ns - all_latencies.mean_ns).abs() < 1e-6);
    assert_eq!(
        [distribution_of(&[]), distribution_of(&[])].iter().collect::<Distribution>(),
        distribution_of(&[])
    );
}
