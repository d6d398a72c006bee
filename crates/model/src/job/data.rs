//! What is written.
//!
//! For: how compressible and how repetitive data are. Not for: making them ([`crate::payload`]).

use crate::units::show_bytes;
use serde::{Deserialize, Serialize};

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Unique and incompressible but for these shares.
    Random {
        /// How much a compressor can save, in percent of each 4 KiB.
        compress_percent: u8,
        /// Share of 4 KiB blocks that are copies of others, in percent.
        dedup_percent: u8,
        /// Copies are of the first so many bytes that a worker writes; of those written shortly before where `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dedup_set_bytes: Option<u64>,
        /// Copies are of the blocks of all workers of its phase that share theirs, and not of its own alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        dedup_shared: bool,
    },
    /// Nothing but bytes of value 0.
    Zeros,
    /// The bytes 0 to 255, over and over: as compressible as zeros, and no zeros.
    Counting,
    /// The bytes of a file, over and over.
    File(String),
}

impl Data {
    /// What copies are of, with a blank before it; nothing where they are of what was written shortly before.
    pub fn copies_of(&self) -> String {
        match self {
            Self::Random { dedup_set_bytes: Some(bytes), dedup_shared, .. } => {
                let whose = if *dedup_shared { " that each worker writes" } else { "" };
                format!(" of the first {}{whose}", show_bytes(*bytes))
            }
            _ => String::new(),
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Self::Random { compress_percent: 0, dedup_percent: 0, dedup_set_bytes: None, dedup_shared: false }
    }
}
