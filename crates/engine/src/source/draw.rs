//! Random draws for every operation: choices by weight, directions, sizes, and ranks by Zipf's law.
//!
//! - [`Alias`]: one of many by weight in constant time (Walker, "An efficient method for generating
//!   discrete random variables with general distributions", 1977; table by Vose, 1991). Unlike the
//!   table of the crate `rand_distr`, it needs no unpredictable branch.
//! - [`Kinds`], [`Lengths`]: directions and sizes with exact shares; constant ones cost no draw.
//! - [`Zipf`]: rank k of n with a probability proportional to k^-theta, for any theta from 0. The
//!   first ranks, and narrow buckets of the other ranks, are drawn from one alias table. The weight
//!   of a bucket is an upper bound: the weight of the bucket's first rank times the bucket's width.
//!   A rank drawn in the bucket is accepted with the probability of its own weight divided by that
//!   of the bucket's first rank (von Neumann's rejection). The distribution is exact up to rounding.
//!   The usual approximation (Gray et al., "Quickly generating billion-record synthetic databases",
//!   1994) fails from theta 1 on.

use model::job::{Kind, Mix, Sizes};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::select_unpredictable;

/// Maximum number of draws to find a size that fits. After that the smallest size is used.
const MAX_REDRAWS: usize = 100;
/// Directions are drawn as random numbers below this value.
const DRAWN_FROM: u64 = 1 << 32;

/// Draws one of several choices by weight.
#[derive(Debug)]
pub(super) enum WeightedDraw {
    /// A single choice.
    One,
    /// Several choices with weights.
    Weighted(Alias),
}

impl WeightedDraw {
    /// Creates the draw. `what` is the name of the choices in the error. Fails if all weights are
    /// zero.
    pub(super) fn new(weights: impl IntoIterator<Item = u32>, what: &str) -> Result<Self, String> {
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        if weights.len() == 1 && weights[0] > 0.0 {
            return Ok(Self::One);
        }
        let table = Alias::new(&weights);
        table
            .map(Self::Weighted)
            .ok_or_else(|| format!("the weights of {what} are all zero; give one of them a weight above 0"))
    }

    /// Draws an index.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        match self {
            Self::One => 0,
            Self::Weighted(table) => table.draw(rng),
        }
    }
}

/// Directions with exact shares.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kinds {
    /// A single direction.
    One(Kind),
    /// A drawn number below `read` is a read, below `trim` a trim, else a write.
    Drawn { read: u64, trim: u64 },
}

impl Kinds {
    /// Creates the directions of a mix. Fails if the shares exceed 100 %.
    pub(super) fn new(mix: Mix) -> Result<Self, String> {
        let Mix { read_percent, trim_percent } = mix;
        let below = |percent: f64| (percent / 100.0 * DRAWN_FROM as f64).round() as u64;
        let read = below(read_percent.get());
        let trim = below(read_percent.get() + trim_percent.get());
        if trim > DRAWN_FROM {
            return Err(format!(
                "{read_percent} % reads and {trim_percent} % trims exceed 100 % in total; lower one of them"
            ));
        }
        let mut kinds = Kind::ALL.into_iter().filter(|kind| mix.does(*kind));
        Ok(match (kinds.next(), kinds.next()) {
            (Some(only), None) => Self::One(only),
            _ => Self::Drawn { read, trim },
        })
    }

    /// Returns whether the kind can be drawn.
    pub(super) fn does(self, kind: Kind) -> bool {
        match (self, kind) {
            (Self::One(only), _) => only == kind,
            (Self::Drawn { read, .. }, Kind::Read) => read > 0,
            (Self::Drawn { read, trim }, Kind::Trim) => trim > read,
            (Self::Drawn { trim, .. }, Kind::Write) => trim < DRAWN_FROM,
            (Self::Drawn { .. }, Kind::Sync) => false,
        }
    }

    #[inline]
    pub(super) fn draw(self, rng: &mut Xoshiro256PlusPlus) -> Kind {
        match self {
            Self::One(kind) => kind,
            Self::Drawn { read, trim } => match u64::from(rng.random::<u32>()) {
                p if p < read => Kind::Read,
                p if p < trim => Kind::Trim,
                _ => Kind::Write,
            },
        }
    }
}

/// Sizes of one direction.
#[derive(Debug)]
pub(super) enum Lengths {
    /// One size.
    Fixed(u32),
    /// A multiple of `unit`, from `least` to `most` units.
    Range { unit: u32, least: u32, most: u32 },
    /// One of several sizes, by weight.
    Split(Vec<u32>, WeightedDraw),
}

impl Lengths {
    /// Compiles sizes. The unit of a range is `align`, or the smallest size if `align` is 0,
    /// rounded up to a multiple of `target_align`.
    pub(super) fn new(sizes: &Sizes, align: u64, target_align: u64) -> Result<Self, String> {
        let lengths = match sizes {
            Sizes::Fixed(size) => Self::Fixed(*size),
            Sizes::Range(least, most) => {
                let unaligned = if align > 0 { align } else { u64::from(*least) };
                let unit_bytes = unaligned.checked_next_multiple_of(target_align.max(1)).unwrap_or(unaligned);
                let nothing = || {
                    format!(
                        "there is no multiple of {unit_bytes} bytes between {least} and {most} bytes; widen the range of sizes"
                    )
                };
                let unit = u32::try_from(unit_bytes).ok().filter(|u| *u > 0).ok_or_else(nothing)?;
                let (low, high) = (least.div_ceil(unit).max(1), most / unit);
                if low > high {
                    return Err(nothing());
                }
                Self::Range { unit, least: low, most: high }
            }
            Sizes::Split(sizes) => {
                let (sizes, weights): (Vec<u32>, Vec<u32>) =
                    sizes.iter().filter(|(_, w)| *w > 0).copied().unzip();
                let choice = WeightedDraw::new(weights, "sizes")?;
                Self::Split(sizes, choice)
            }
        };
        if lengths.least() == 0 {
            return Err("an operation of 0 bytes is not possible; give sizes of 1 byte or more".into());
        }
        Ok(lengths)
    }

    /// Returns the smallest size.
    pub(super) fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { unit, least, .. } => unit * least,
            Self::Split(sizes, _) => sizes.iter().copied().min().unwrap_or(0),
        }
    }

    /// Returns the largest size.
    pub(super) fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { unit, most, .. } => unit * most,
            Self::Split(sizes, _) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// Returns a size that violates the alignment of a target; `None` if all sizes are aligned.
    pub(super) fn misfit(&self, align: u64) -> Option<u64> {
        let odd = |size: &u32| !u64::from(*size).is_multiple_of(align);
        let found = match self {
            Self::Fixed(size) => Some(*size).filter(odd),
            Self::Range { unit, .. } => Some(*unit).filter(odd),
            Self::Split(sizes, _) => sizes.iter().copied().find(odd),
        };
        found.map(u64::from)
    }

    /// Whether there are several sizes.
    #[inline]
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// Returns `drawn` if it fits into `left` bytes or if no size fits. Otherwise draws again until
    /// a size fits, at most [`MAX_REDRAWS`] times, and then returns the smallest size.
    #[inline]
    pub(super) fn fitting(&self, drawn: u64, left: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if drawn <= left || u64::from(self.least()) > left { drawn } else { self.redraw(left, rng) }
    }

    #[cold]
    fn redraw(&self, left: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let fitting = (0..MAX_REDRAWS).map(|_| u64::from(self.draw(rng))).find(|size| *size <= left);
        fitting.unwrap_or_else(|| u64::from(self.least()))
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { unit, least, most } => unit * rng.random_range(*least..=*most),
            Self::Split(sizes, choice) => sizes[choice.draw(rng)],
        }
    }
}

/// An alias table.
#[derive(Clone, Debug)]
pub(super) struct Alias {
    cells: Vec<Cell>,
}

/// One cell of the table. A number below `keep` (of 2^64) selects the cell's own index, any other number selects `other`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    keep: u64,
    other: u32,
}

impl Alias {
    /// Builds the table; `None` if a weight is negative or not finite, or if all are 0.
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        let count = u32::try_from(weights.len()).ok()?;
        if !(sum.is_finite() && sum > 0.0 && weights.iter().all(|w| *w >= 0.0)) {
            return None;
        }
        // Weights in units of an equal share. Cells above 1 give their excess to cells below 1.
        let mut shares: Vec<f64> = weights.iter().map(|w| w / sum * f64::from(count)).collect();
        // Cells left over by rounding keep their own index, which is closest to their true share.
        let mut cells: Vec<Cell> = (0..count).map(|own| Cell { keep: u64::MAX, other: own }).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|i| shares[*i as usize] < 1.0);
        while let (Some(low), Some(high)) = (small.pop(), large.pop()) {
            let share = shares[low as usize];
            cells[low as usize] = Cell { keep: (share * 2_f64.powi(64)) as u64, other: high };
            shares[high as usize] -= 1.0 - share;
            let rest = if shares[high as usize] < 1.0 { &mut small } else { &mut large };
            rest.push(high);
        }
        // Weights of zero must not get a probability by rounding.
        let heaviest = (0..count).max_by(|a, b| weights[*a as usize].total_cmp(&weights[*b as usize]))?;
        for (cell, _) in cells.iter_mut().zip(weights).filter(|(c, w)| **w == 0.0 && c.keep == u64::MAX) {
            *cell = Cell { keep: 0, other: heaviest };
        }
        Some(Self { cells })
    }

    /// Draws an index with a bias below 2^-50.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        // The upper half selects the cell uniformly. The lower half is the position in the cell.
        let wide = u128::from(rng.random::<u64>()) * self.cells.len() as u128;
        let (own, position) = ((wide >> 64) as usize, wide as u64);
        let cell = &self.cells[own];
        select_unpredictable(position < cell.keep, own, cell.other as usize)
    }
}

/// Number of ranks that have their own entry in the table.
const SINGLE_RANKS: u64 = 512;
/// A bucket's width is its first rank divided by this number. At theta 1 this accepts at least 94 % of the draws.
const BUCKET_DIVISOR: u64 = 16;

/// Draws ranks from 0 to n - 1. Rank 0 is the most frequent. The tables take at most about 25 KiB.
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
    /// The smallest acceptance probability in the bucket. A draw below it is accepted without
    /// computing a power.
    squeeze: f64,
}

impl Zipf {
    /// Builds the tables for `ranks` ranks, at least 1.
    pub(super) fn new(theta: f64, ranks: u64) -> Result<Self, String> {
        if !(theta.is_finite() && theta >= 0.0) {
            return Err(format!("zipf needs an exponent of 0 or more, not {theta}; 0.9 to 1.2 are usual"));
        }
        let head = ranks.min(SINGLE_RANKS);
        let mut weights: Vec<f64> = (1..=head).map(|k| (k as f64).powf(-theta)).collect();
        let mut buckets = Vec::new();
        let mut first = head + 1;
        while first <= ranks {
            let width = (first / BUCKET_DIVISOR).min((ranks - first).saturating_add(1));
            weights.push(width as f64 * (first as f64).powf(-theta));
            buckets.push(Bucket {
                first,
                width,
                squeeze: relative_weight(first + (width - 1), first, theta),
            });
            let Some(next) = first.checked_add(width) else { break };
            first = next;
        }
        // The first rank has weight 1, and 2^64 such weights have a finite sum. So the table always exists.
        let entries = Alias::new(&weights).ok_or_else(|| {
            format!("zipf {theta} over {ranks} blocks cannot be drawn; choose another exponent")
        })?;
        Ok(Self { theta, ranks, entries, buckets })
    }

    /// Returns whether the tables were built for these parameters.
    pub(super) fn is(&self, theta: f64, ranks: u64) -> bool {
        self.theta.to_bits() == theta.to_bits() && self.ranks == ranks
    }

    /// Draws a rank, from 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let entry = self.entries.draw(rng);
            let Some(bucket) = entry.checked_sub(SINGLE_RANKS as usize).and_then(|b| self.buckets.get(b))
            else {
                return entry as u64;
            };
            let rank = bucket.first + rng.random_range(0..bucket.width);
            let draw: f64 = rng.random();
            if draw < bucket.squeeze || draw < relative_weight(rank, bucket.first, self.theta) {
                return rank - 1;
            }
        }
    }
}

/// Returns the weight of a rank relative to the first rank of its bucket.
fn relative_weight(rank: u64, first: u64, theta: f64) -> f64 {
    (rank as f64 / first as f64).powf(-theta)
}

#[cfg(test)]
use super::tests::goodness_of_fit;

#[test]
fn a_range_without_an_aligned_size_is_refused_with_the_alignment_of_the_target() {
    let failure = |align, target_align| Lengths::new(&Sizes::Range(512, 1024), align, target_align).err();
    assert_eq!(failure(0, 512), None);
    for (align, target_align, multiple) in [(0, 4096, 4096), (1536, 4096, 4096), (2048, 512, 2048)] {
        let why = failure(align, target_align).unwrap_or_default();
        assert!(why.contains(&format!("no multiple of {multiple} bytes")), "{why}");
    }
}

#[test]
fn indices_are_drawn_by_weight() {
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    let long: Vec<f64> = (1..=1000).map(|k| f64::from(k % 7)).collect();
    for weights in [&[3.0][..], &[1.0, 2.0, 0.0, 5.0], &[0.0, 1e300, 1e299], &[1e-300, 0.0], &long] {
        let alias = Alias::new(weights).unwrap_or_else(|| panic!("{weights:?}"));
        let mut seen = vec![0; weights.len()];
        for _ in 0..200_000 {
            seen[alias.draw(&mut rng)] += 1;
        }
        goodness_of_fit::assert_fit(&seen, weights);
    }
    for weights in [&[][..], &[0.0], &[1.0, -1.0, 1.0], &[f64::NAN], &[f64::INFINITY, 1.0], &[1e308, 1e308]] {
        assert!(Alias::new(weights).is_none(), "{weights:?}");
    }
}

#[test]
fn ranks_follow_zipfs_law_for_any_exponent_and_count() {
    for theta in [0.0, 0.5, 0.99, 1.0, 1.2, 2.5, 8.0] {
        for ranks in [1, 2, 100, 512, 513, 10_000, 1 << 30, 1 << 40] {
            let zipf = Zipf::new(theta, ranks).unwrap_or_else(|e| panic!("{e}"));
            let bins = goodness_of_fit::bins(ranks);
            let mut seen = vec![0_u64; bins.len()];
            let mut rng = rand::SeedableRng::seed_from_u64(ranks ^ theta.to_bits());
            for _ in 0..100_000 {
                let rank = zipf.draw(&mut rng);
                assert!(rank < ranks);
                seen[bins.partition_point(|b| b.start <= rank) - 1] += 1;
            }
            let expected: Vec<f64> = bins.iter().map(|b| power_sum(b.start + 1, b.end, theta)).collect();
            goodness_of_fit::assert_fit(&seen, &expected);
        }
    }
}

#[test]
fn ranks_inside_a_bucket_follow_the_law() {
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
    goodness_of_fit::assert_fit(&seen, &expected);
}

/// Returns the sum of k^-theta from `from` to `to` inclusive, term by term or by the Euler-Maclaurin formula.
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
fn invalid_exponents_are_refused_and_extreme_ones_work() {
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
