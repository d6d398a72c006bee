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
    /// After so many writes of a lane.
    pub every: u32,
    /// Whether it waits for the writes in flight, and later ones for it. Without, it covers those that have completed.
    pub drain: bool,
}

impl Flush {
    /// `fdatasync after each write`, `fsync after every 8 writes`.
    pub fn words(&self) -> String {
        match self.every {
            1 => format!("{} after each write", self.call.word()),
            n => format!("{} after every {n} writes", self.call.word()),
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
