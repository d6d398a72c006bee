//! Sizes of operations, for each direction.
//!
//! For: one size, a range or weighted sizes. Not for: where operations begin ([`super::order`]).

use super::kind::Kind;
use crate::units::show_block;
use serde::{Deserialize, Serialize};

/// A value for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerKind<T> {
    /// For operations that move bytes from the target.
    pub read: T,
    /// For operations that move bytes to the target.
    pub write: T,
    /// For operations that give blocks back.
    pub trim: T,
}

impl<T: Clone> PerKind<T> {
    /// One value for every direction.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

impl<T: Copy + Default + PartialEq> PerKind<T> {
    /// Of those directions that have a value, their words and it.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, T)> {
        let Self { read, write, trim } = *self;
        let all = [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)];
        all.into_iter().filter(|(_, value)| *value != T::default()).map(|(kind, value)| (kind.word(), value))
    }

    /// Of a kind; nothing for syncs.
    pub fn for_kind(&self, kind: Kind) -> T {
        match kind {
            Kind::Read => self.read,
            Kind::Write => self.write,
            Kind::Trim => self.trim,
            Kind::Sync => T::default(),
        }
    }
}

/// Sizes of operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Every multiple of the alignment (or of the least, where there is none) between the two, equally likely.
    Range(u32, u32),
    /// Sizes with weights.
    Split(Vec<(u32, u32)>),
}

impl Sizes {
    /// The size that all operations have; `None` where they differ.
    pub fn fixed(&self) -> Option<u32> {
        if let Self::Fixed(size) = self { Some(*size) } else { None }
    }

    /// The smallest.
    pub fn least(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(size, _) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).min().unwrap_or(0),
        }
    }

    /// The largest.
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(_, size) => *size,
            Self::Split(sizes) => sizes.iter().map(|s| s.0).max().unwrap_or(0),
        }
    }

    /// `4K`, `4K-64K`, `4K:60,64K:40`.
    pub fn describe(&self) -> String {
        let block = |b: u32| show_block(u64::from(b));
        match self {
            Self::Fixed(size) => block(*size),
            Self::Range(least, most) => format!("{}-{}", block(*least), block(*most)),
            Self::Split(sizes) => {
                let all: u64 = sizes.iter().map(|(_, weight)| u64::from(*weight)).sum();
                // As many digits as a share may be typed with.
                let share = |weight: u32| (f64::from(weight) * 1e6 / all.max(1) as f64).round() / 1e4;
                let one = |(size, weight): &(u32, u32)| format!("{}:{}", block(*size), share(*weight));
                sizes.iter().map(one).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// The sizes inside a name, where a bare number would not be taken for a size: `512 B`, `4K`, `512-1000 B`.
    pub fn in_a_name(&self) -> String {
        let words = self.describe();
        let bare = match self {
            Self::Fixed(_) | Self::Range(..) => words.ends_with(|c: char| c.is_ascii_digit()),
            Self::Split(_) => false,
        };
        if bare { format!("{words} B") } else { words }
    }
}
