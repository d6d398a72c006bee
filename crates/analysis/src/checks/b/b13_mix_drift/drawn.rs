//! What a plan's draws come to on average, and how far chance takes them.
//!
//! For: B13. Not for: drawing; that is the engine's, by the same rules.

use crate::case::Case;
use model::Known;
use model::job::{Kind, Line, PerKind, Sizes};

/// Sums over all lines of an access, per operation drawn.
pub(super) struct Drawn {
    of: [Moments; 3],
    /// How many draws stand or fall together: the operations of a burst have one line.
    pub(super) bound_together: f64,
}

/// Sizes of one direction in bytes.
pub(super) struct Size {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) largest: f64,
}

/// Weight, sum and sum of squares of the sizes.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    sum: f64,
    squares: f64,
    largest: f64,
}

impl Drawn {
    /// What the stream of a case draws.
    ///
    /// # Errors
    /// That its lines say nothing.
    pub(super) fn from_case(case: &Case) -> Known<Self> {
        let align = case.stream.targets.iter();
        let align =
            align.filter_map(|t| case.record.header.plan.targets.get(*t)).map(|t| t.block_bytes).max();
        let lines = &case.stream.access.lines;
        let mut out = Self { of: [Moments::default(); 3], bound_together: 1.0 };
        for line in lines {
            out.add(line, align.unwrap_or(1).max(1));
            if line.delay_ns > 0 && lines.len() > 1 {
                out.bound_together = out.bound_together.max(f64::from(line.burst));
            }
        }
        if out.all() > 0.0 { Ok(out) } else { Err("the plan draws no operation".into()) }
    }

    /// The share of a direction among all that are drawn.
    pub(super) fn share(&self, kind: Kind) -> f64 {
        self.of.get(kind as usize).map_or(0.0, |m| m.weight / self.all())
    }

    /// Sizes of a direction; `None` where it is not drawn.
    pub(super) fn size(&self, kind: Kind) -> Option<Size> {
        let m = self.of.get(kind as usize).filter(|m| m.weight > 0.0)?;
        let mean = m.sum / m.weight;
        // Rounding leaves a trace of variance where there is one size.
        let variance = m.squares / m.weight - mean * mean;
        let variance = if variance > 1e-6 * mean * mean { variance } else { 0.0 };
        Some(Size { mean, variance, largest: m.largest })
    }

    fn all(&self) -> f64 {
        self.of.iter().map(|m| m.weight).sum()
    }

    fn add(&mut self, line: &Line, target_align: u32) {
        let PerKind { read, write, trim } = &line.sizes;
        let drawn = [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)];
        for (kind, sizes) in drawn.into_iter().filter(|(kind, _)| line.mix.does(*kind)) {
            let weight = f64::from(line.weight) * line.mix.share(kind).get();
            for (size, odds) in draws(sizes, line.align_bytes, target_align) {
                self.take(kind, weight * odds, size);
                if kind == Kind::Trim && line.has_pairs() {
                    self.take(Kind::Write, weight * odds, size);
                }
            }
            // Behind each operation one in the opposite direction; of trims they are none.
            let opposite = match kind {
                Kind::Read => Kind::Write,
                Kind::Write => Kind::Read,
                _ => continue,
            };
            if line.reply_bytes > 0 {
                self.take(opposite, weight, f64::from(line.reply_bytes));
            }
        }
    }

    fn take(&mut self, kind: Kind, weight: f64, size: f64) {
        let Some(m) = self.of.get_mut(kind as usize) else { return };
        m.weight += weight;
        m.sum += weight * size;
        m.squares += weight * size * size;
        m.largest = m.largest.max(size);
    }
}

/// Sizes with their odds. A range is told by two sizes that have its mean and its variance.
fn draws(sizes: &Sizes, align: u64, target_align: u32) -> Vec<(f64, f64)> {
    match sizes {
        Sizes::Fixed(size) => vec![(f64::from(*size), 1.0)],
        Sizes::Range(least, most) => {
            // As the engine does: multiples of the alignment, or of the least where there is none, on the target's blocks.
            let unit_bytes = if align > 0 { align } else { u64::from(*least) };
            let unit =
                unit_bytes.checked_next_multiple_of(u64::from(target_align)).unwrap_or(unit_bytes).max(1);
            let low = u64::from(*least).div_ceil(unit).max(1);
            let high = (u64::from(*most) / unit).max(low);
            let (middle, count) = ((low + high) as f64 / 2.0, (high - low + 1) as f64);
            let deviation = ((count * count - 1.0) / 12.0).sqrt();
            let unit = unit as f64;
            vec![((middle - deviation) * unit, 0.5), ((middle + deviation) * unit, 0.5)]
        }
        Sizes::Split(sizes) => {
            let all: f64 = sizes.iter().map(|(_, w)| f64::from(*w)).sum();
            let odds = |w: u32| if all > 0.0 { f64::from(w) / all } else { 0.0 };
            sizes.iter().map(|(s, w)| (f64::from(*s), odds(*w))).collect()
        }
    }
}

#[test]
fn a_range_has_the_mean_and_the_spread_of_its_sizes() {
    // 4, 8, 12, 16 KiB.
    let two = draws(&Sizes::Range(4096, 16384), 0, 512);
    let mean: f64 = two.iter().map(|(s, w)| s * w).sum();
    let square: f64 = two.iter().map(|(s, w)| s * s * w).sum();
    assert!((mean - 10_240.0).abs() < 1e-6, "{mean}");
    let variance = square - mean * mean;
    assert!((variance / (4096.0 * 4096.0) - 1.25).abs() < 1e-9, "{variance}");
}
