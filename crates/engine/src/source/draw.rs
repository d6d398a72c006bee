//! Draws that are made for every operation: of lines, targets, directions and sizes.
//!
//! For: exact shares at the cost of a draw, and of none where there is nothing to choose. Not for: offsets.

use super::alias::Alias;
use model::job::{Kind, Mix, Sizes};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Sizes that are drawn in search of one that fits; then it is the smallest.
const REDRAWS: usize = 100;
/// Numbers that a direction is drawn from.
const DRAWN_FROM: u64 = 1 << 32;

/// One of several by weight.
#[derive(Debug)]
pub(super) enum Choice {
    /// There is one only.
    One,
    /// There are several.
    Weighted(Alias),
}

impl Choice {
    /// Fails where no weight is above zero.
    pub(super) fn new(weights: impl IntoIterator<Item = u32>, of: &str) -> Result<Self, String> {
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        if weights.len() == 1 && weights[0] > 0.0 {
            return Ok(Self::One);
        }
        let table = Alias::new(&weights);
        table
            .map(Self::Weighted)
            .ok_or_else(|| format!("the weights of {of} are all zero; give one of them 1"))
    }

    /// The index of one.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        match self {
            Self::One => 0,
            Self::Weighted(table) => table.draw(rng),
        }
    }
}

/// Directions by an exact draw per operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kinds {
    /// All the same: no draw.
    One(Kind),
    /// Of the 2^32 numbers that are drawn from, those below `read` are a read, those below `trim` a trim, the others a write.
    Drawn { read: u64, trim: u64 },
}

impl Kinds {
    /// Fails where the shares are more than all.
    pub(super) fn new(mix: Mix) -> Result<Self, String> {
        let Mix { read_percent, trim_percent } = mix;
        let below = |percent: f64| (percent / 100.0 * DRAWN_FROM as f64).round() as u64;
        let read = below(read_percent.get());
        let trim = below(read_percent.get() + trim_percent.get());
        if trim > DRAWN_FROM {
            return Err(format!(
                "{read_percent} % reads and {trim_percent} % trims are more than 100 %; lower one of them"
            ));
        }
        let mut kinds = Kind::ALL.into_iter().filter(|kind| mix.does(*kind));
        Ok(match (kinds.next(), kinds.next()) {
            (Some(only), None) => Self::One(only),
            _ => Self::Drawn { read, trim },
        })
    }

    /// Whether a kind is drawn.
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
    /// Always the same.
    Fixed(u32),
    /// `unit` times `least ..= most`.
    Range { unit: u32, least: u32, most: u32 },
    /// By weight.
    Split(Vec<u32>, Choice),
}

impl Lengths {
    /// The sizes, with `align` as the unit of a range, or where it is zero the least of it rounded up to `target_align`.
    pub(super) fn new(sizes: &Sizes, align: u64, target_align: u64) -> Result<Self, String> {
        let lengths = match sizes {
            Sizes::Fixed(size) => Self::Fixed(*size),
            Sizes::Range(least, most) => {
                let unit_bytes = if align > 0 { align } else { u64::from(*least) };
                let nothing = || {
                    format!(
                        "no multiple of {unit_bytes} bytes lies between {least} and {most} bytes; widen the range of sizes"
                    )
                };
                let unit = unit_bytes.checked_next_multiple_of(target_align.max(1));
                let unit = unit.and_then(|u| u32::try_from(u).ok()).filter(|u| *u > 0).ok_or_else(nothing)?;
                let (low, high) = (least.div_ceil(unit).max(1), most / unit);
                if low > high {
                    return Err(nothing());
                }
                Self::Range { unit, least: low, most: high }
            }
            Sizes::Split(sizes) => {
                let (sizes, weights): (Vec<u32>, Vec<u32>) =
                    sizes.iter().filter(|(_, w)| *w > 0).copied().unzip();
                let choice = Choice::new(weights, "sizes")?;
                Self::Split(sizes, choice)
            }
        };
        if lengths.least() == 0 {
            return Err("an operation of no bytes was asked for; sizes begin at 1 byte".into());
        }
        Ok(lengths)
    }

    /// The smallest that is drawn.
    pub(super) fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { unit, least, .. } => unit * least,
            Self::Split(sizes, _) => sizes.iter().copied().min().unwrap_or(0),
        }
    }

    /// The largest that is drawn.
    pub(super) fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { unit, most, .. } => unit * most,
            Self::Split(sizes, _) => sizes.iter().copied().max().unwrap_or(0),
        }
    }

    /// A size that is no multiple of what a target takes, if there is one.
    pub(super) fn misfit(&self, align: u64) -> Option<u64> {
        let odd = |size: &u32| !u64::from(*size).is_multiple_of(align);
        let found = match self {
            Self::Fixed(size) => Some(*size).filter(odd),
            Self::Range { unit, .. } => Some(*unit).filter(odd),
            Self::Split(sizes, _) => sizes.iter().copied().find(odd),
        };
        found.map(u64::from)
    }

    /// Whether there is more than one to draw.
    #[inline]
    pub(super) fn varies(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// A size that was drawn, or where no more than `left` bytes are left and some size fits into these, one of those: the first
    /// that is drawn.
    #[inline]
    pub(super) fn fitting(&self, drawn: u64, left: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if drawn <= left || u64::from(self.least()) > left { drawn } else { self.redraw(left, rng) }
    }

    #[cold]
    fn redraw(&self, left: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let again = (0..REDRAWS).map(|_| u64::from(self.draw(rng))).find(|size| *size <= left);
        again.unwrap_or_else(|| u64::from(self.least()))
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
