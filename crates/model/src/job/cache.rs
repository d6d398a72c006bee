//! Cache modes: the open flags that decide about the page cache and durability.
//!
//! For: the words of `--cache`. Not for: opening files.

use serde::{Deserialize, Serialize};

/// Open flags that decide about the page cache and durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// `O_DIRECT`: past the page cache, where the file system obeys.
    Direct,
    /// No flag: through the page cache.
    Buffered,
    /// `O_SYNC`: through the page cache, each write waits until data and metadata are on stable storage.
    Sync,
    /// `O_DSYNC`: through the page cache, each write waits until it can be read back after a crash.
    Dsync,
    /// `O_DIRECT | O_SYNC`.
    DirectSync,
    /// `O_DIRECT | O_DSYNC`.
    DirectDsync,
    /// Memory mapped: loads and stores through the page cache. Only with the engine `mmap`.
    Mmap,
}

impl Cache {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::Buffered,
        Self::Sync,
        Self::Dsync,
        Self::DirectSync,
        Self::DirectDsync,
        Self::Mmap,
    ];

    /// Whether `O_DIRECT` is asked for.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectSync | Self::DirectDsync)
    }

    /// Whether each write must be stable before it completes (`O_SYNC`, `O_DSYNC`).
    pub fn is_sync(self) -> bool {
        self.is_full_sync() || matches!(self, Self::Dsync | Self::DirectDsync)
    }

    /// Whether that includes all metadata (`O_SYNC`).
    pub fn is_full_sync(self) -> bool {
        matches!(self, Self::Sync | Self::DirectSync)
    }

    /// The word of the flag `--cache`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered => "buffered",
            Self::Sync => "sync",
            Self::Dsync => "dsync",
            Self::DirectSync => "direct-sync",
            Self::DirectDsync => "direct-dsync",
            Self::Mmap => "mmap",
        }
    }

    /// One line for `--help`.
    pub fn about(self) -> &'static str {
        match self {
            Self::Direct => "O_DIRECT: past the page cache",
            Self::Buffered => "through the page cache",
            Self::Sync => {
                "through the page cache, each write stable with its metadata before it completes (O_SYNC)"
            }
            Self::Dsync => "through the page cache, each write stable before it completes (O_DSYNC)",
            Self::DirectSync => "O_DIRECT and O_SYNC",
            Self::DirectDsync => "O_DIRECT and O_DSYNC",
            Self::Mmap => "loads and stores to a memory mapping (engine mmap)",
        }
    }
}
