//! Files that are made where they are missing, and kept.
//!
//! For: how large, and what is in them. Not for: making them (crate `machine`), nor test files, which are gone at the end.

use serde::{Deserialize, Serialize};

/// A file that is made where it is missing, and kept unless it is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Create {
    /// Its length.
    pub bytes: u64,
    /// What is in it before the first run.
    pub filling: Filling,
    /// Whether it is removed at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlink: bool,
}

/// What is in a file before the first run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Filling {
    /// Nothing: it grows by what is written.
    Nothing,
    /// Nothing, with blocks allocated beyond its end.
    Reserved,
    /// A hole of its whole length.
    Hole,
    /// Allocated blocks that were never written.
    Blocks,
    /// Data that nothing else has.
    #[default]
    Data,
}

impl Filling {
    /// All of them with their words.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("data", Self::Data),
        ("blocks", Self::Blocks),
        ("nothing", Self::Nothing),
        ("reserved", Self::Reserved),
        ("hole", Self::Hole),
    ];

    /// As it is typed.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, filling)| *filling == self).map_or("", |(word, _)| word)
    }
}
