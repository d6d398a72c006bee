//! Calls between writes that make them stable.
//!
//! For: which call, and how often. Not for: open flags that do so for every write ([`super::cache`]).

use serde::{Deserialize, Serialize};

/// A call between writes that makes them stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flush {
    /// Which call.
    pub call: SyncCall,
    /// After so many writes of a lane; `calls` of them, evenly spread.
    pub every: u32,
    /// How many calls that many writes have; 1 where they have one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub calls: u32,
    /// Whether it waits for the writes in flight, and later ones for it. Without, it covers those that have completed.
    pub drain: bool,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// How many writes come before a call, in the mean: writes for so many calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// At least 1.
    pub writes: u32,
    /// At least 1.
    pub calls: u32,
}

impl Every {
    /// After each so many writes.
    pub const fn writes(writes: u32) -> Self {
        Self { writes, calls: 1 }
    }

    /// `8`, `2.9`.
    pub fn format_count(self) -> String {
        (f64::from(self.writes) / f64::from(self.calls.max(1))).to_string()
    }
}

impl Flush {
    /// Writes before a call, in the mean.
    pub fn how_often(&self) -> Every {
        Every { writes: self.every, calls: self.calls }
    }

    /// `fdatasync after each write`, `fsync after every 8 writes`.
    pub fn describe(&self) -> String {
        match (self.every, self.calls) {
            (1, 1) => format!("{} after each write", self.call.word()),
            _ => format!("{} after every {} writes", self.call.word(), self.how_often().format_count()),
        }
    }
}

/// A call that makes writes stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SyncCall {
    /// `fsync`: data and metadata. For a mapping `msync(MS_SYNC)`.
    #[default]
    Fsync,
    /// `fdatasync`: data, and what is needed to read them back.
    Fdatasync,
    /// `sync_file_range`: starts and awaits write back of the whole file; no metadata, no flush of the device's cache.
    SyncFileRange,
}

impl SyncCall {
    /// Its name in the manual.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
        }
    }
}
