//! Random orders: which place of the span is next, whatever was before.
//!
//! For: the distributions of places over a span's grid. Not for: sequential order, which goes on from the last place.
//!
//! Uniform places are all those where the operation's size fits. All other orders know one set of places for all sizes of
//! their line, those where the largest fits, so that a place is as hot for small operations as for large ones.

use super::alias::Alias;
use super::common::Common;
use super::map::Map;
use super::scatter::Scatter;
use super::span::Span;
use super::zipf::Zipf;
use model::job::{Order, Zone, ZoneSize};
use model::payload::split_mix;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;
use std::sync::Arc;

/// Standard deviation, in spans, from which fewer draws are lost if uniform places are thinned to the bell's shape than if
/// normal ones outside the span are drawn again. Without the change a very wide bell would draw for ever.
const WIDE: f64 = 0.4;

/// How the next place is found.
#[derive(Debug)]
pub(super) enum NextOffset {
    /// On from the last one.
    Walk,
    /// All alike.
    Uniform(Uniform),
    /// All alike with a chance, else on from the last one.
    Mixed(f64, Uniform),
    /// Each once.
    Once(Once),
    /// Each once, with several sizes.
    Map(Map),
    /// Zipf's law.
    Zipf(Arc<Zipf>, Scatter),
    /// Self-similar: rank = count * u^exponent.
    Pareto { exponent: f64, scatter: Scatter },
    /// Normal around the middle, with the deviation in spans.
    Normal { deviation: f64, count: u64 },
    /// Uniform in one of several ranges.
    Zones(Alias, Vec<Range<u64>>),
}

impl NextOffset {
    /// The order over a span for sizes from `least` to `most`, which fit. `target` is the index of the span's target.
    pub(super) fn new(
        order: &Order,
        span: Span,
        (least, most): (u64, u64),
        target: usize,
        (worker, workers): (u32, u32),
        common: &Common,
    ) -> Result<Self, String> {
        let count = span.starts(most);
        let seed = common.seed(target);
        // Not the seed itself: hot ranks must not be the blocks that a pass of once begins with.
        let scatter = || Scatter::new(count, split_mix(seed ^ 0x7363_6174));
        let uniform = || Uniform { span, fixed: if least == most { count } else { 0 } };
        Ok(match order {
            Order::Sequential(_) => Self::Walk,
            // The line decides which operations are drawn.
            Order::Random | Order::MixedEach(_) => Self::Uniform(uniform()),
            Order::Mixed(percent) if (0.0..=100.0).contains(percent) => {
                Self::Mixed(percent / 100.0, uniform())
            }
            Order::Mixed(percent) => {
                return Err(format!("{percent} % random is no share; give 0 to 100"));
            }
            Order::Once if least < most => {
                // Of grid and not of the largest size: what is left between two is touched by an operation that is cut off.
                let who = (u64::from(worker), u64::from(workers));
                Self::Map(Map::new(seed, who, span.bytes / span.align)?)
            }
            Order::Once if u64::from(worker) < count => {
                Self::Once(Once::new(seed, u64::from(worker), u64::from(workers), count))
            }
            Order::Once => {
                return Err(format!(
                    "each block once leaves nothing for worker {worker}: there are {count} blocks; \
                     choose fewer workers or a larger span"
                ));
            }
            Order::Zipf(theta) => Self::Zipf(common.zipf(*theta, count)?, scatter()),
            Order::Pareto(h) if *h > 0.0 && *h <= 0.5 => {
                Self::Pareto { exponent: h.ln() / (-h).ln_1p(), scatter: scatter() }
            }
            Order::Pareto(h) => {
                return Err(format!(
                    "pareto takes the share of blocks that is hot, above 0 and up to 0.5, not {h}; 0.2 is usual"
                ));
            }
            Order::Normal(percent) if percent.is_finite() && *percent > 0.0 => {
                Self::Normal { deviation: percent / 100.0, count }
            }
            Order::Normal(percent) => {
                return Err(format!(
                    "normal takes its standard deviation in percent of the span, above 0, not {percent}; 10 is usual"
                ));
            }
            Order::Zones(zones) => {
                let (choice, ranges) = ranges(zones, span, count)?;
                Self::Zones(choice, ranges)
            }
        })
    }

    /// Begins with another pass, where there are any.
    pub(super) fn begin_again(&mut self) {
        match self {
            Self::Once(once) => once.index = u64::MAX,
            Self::Map(map) => map.end_pass(),
            _ => {}
        }
    }

    /// The next place, from the span's first byte; `None` to walk on from the last one. A size that has no room is cut off.
    #[inline]
    pub(super) fn draw(&mut self, align: u64, size: &mut u64, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let place = match self {
            Self::Walk => return None,
            Self::Uniform(uniform) => uniform.draw(*size, rng),
            Self::Mixed(chance, uniform) => {
                if rng.random::<f64>() >= *chance {
                    return None;
                }
                uniform.draw(*size, rng)
            }
            Self::Once(once) => once.next(),
            Self::Map(map) => {
                let (place, run) = map.next(*size / align);
                *size = (*size).min(run * align);
                place
            }
            Self::Zipf(ranks, scatter) => scatter.position(ranks.draw(rng)),
            Self::Pareto { exponent, scatter } => {
                scatter.position(part(rng.random::<f64>().powf(*exponent), scatter.count()))
            }
            Self::Normal { deviation, count } => part(bell(*deviation, rng), *count),
            Self::Zones(choice, ranges) => {
                let zone = choice.draw(rng);
                rng.random_range(ranges[zone].clone())
            }
        };
        Some(align * place)
    }
}

/// The number of the part that a share from 0 to 1 lies in, of `count` parts.
#[inline]
fn part(share: f64, count: u64) -> u64 {
    // Rounding may give the count itself.
    ((share * count as f64) as u64).min(count - 1)
}

/// A share from 0 to 1, normal around a half and never outside.
#[inline]
fn bell(deviation: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        if deviation < WIDE {
            let normal: f64 = StandardNormal.sample(rng);
            let share = 0.5 + normal * deviation;
            if (0.0..1.0).contains(&share) {
                return share;
            }
        } else {
            let share: f64 = rng.random();
            if rng.random::<f64>() < (-0.5 * ((share - 0.5) / deviation).powi(2)).exp() {
                return share;
            }
        }
    }
}

/// Every place alike, with replacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    span: Span,
    /// Places, where all sizes are the same; else 0.
    fixed: u64,
}

impl Uniform {
    /// How many places there are for a size.
    #[inline]
    pub(super) fn count(&self, size: u64) -> u64 {
        if self.fixed > 0 { self.fixed } else { self.span.starts(size) }
    }

    #[inline]
    fn draw(&self, size: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        rng.random_range(0..self.count(size))
    }
}

/// Every place once per pass. A worker takes those that a permutation gives to the indices `worker + k * workers`, so all
/// workers together visit each once, whatever their speeds; another pass has another permutation.
#[derive(Debug)]
pub(super) struct Once {
    seed: u64,
    worker: u64,
    workers: u64,
    pass: u64,
    index: u64,
    scatter: Scatter,
}

impl Once {
    fn new(seed: u64, worker: u64, workers: u64, count: u64) -> Self {
        Self { seed, worker, workers, pass: 0, index: worker, scatter: Self::order(seed, 0, count) }
    }

    fn order(seed: u64, pass: u64, count: u64) -> Scatter {
        Scatter::new(count, split_mix(seed).wrapping_add(pass))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.index >= self.scatter.count() {
            self.pass += 1;
            self.index = self.worker;
            self.scatter = Self::order(self.seed, self.pass, self.scatter.count());
        }
        let place = self.scatter.position(self.index);
        self.index = self.index.saturating_add(self.workers);
        place
    }
}

/// The zones as ranges of places, and their shares.
fn ranges(zones: &[Zone], span: Span, count: u64) -> Result<(Alias, Vec<Range<u64>>), String> {
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(zones.len());
    // Percents are added before they are turned into places, so that 100 / 3 three times leaves none out.
    let (mut percent, mut bytes) = (0.0, 0_u64);
    let mut shares: Vec<f64> = Vec::with_capacity(zones.len());
    for (i, zone) in zones.iter().enumerate() {
        let mut share = zone.access_percent;
        match zone.size {
            ZoneSize::Percent(p) if p.is_finite() && p >= 0.0 => percent += p,
            ZoneSize::Percent(p) => return Err(format!("zone {} is {p} % large; give 0 to 100", i + 1)),
            ZoneSize::Bytes(b) | ZoneSize::UpTo(b) => bytes = bytes.saturating_add(b),
        }
        // Down to a whole block, but not by the rounding of the sum.
        let of_percent = (percent / 100.0 * count as f64 + 1e-6) as u64;
        let start = ranges.last().map_or(0, |r| r.end);
        let end = of_percent.saturating_add(bytes.div_ceil(span.align)).min(count);
        if start >= end && matches!(zone.size, ZoneSize::UpTo(_)) {
            share = 0.0;
        }
        if share > 0.0 && start >= end {
            return Err(format!(
                "zone {} gets operations but holds no block: the span has {count} and the zones before it take {start}; \
                 make it larger or those smaller",
                i + 1
            ));
        }
        ranges.push(start..end);
        shares.push(share);
    }
    let choice = Alias::new(&shares).ok_or(
        "the zones' shares of the operations are not all numbers from 0 up, or all 0; they must sum to 100 %",
    )?;
    Ok((choice, ranges))
}
