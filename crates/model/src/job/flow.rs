//! Flow: a share of the operations among streams that run at once.
//!
//! For: who is held to shares of whom. Not for: rates of a stream by itself ([`super::pace`]).

use serde::{Deserialize, Serialize};

/// A stream's share of what all streams of its group submit; each of its workers has as much. Whoever is ahead of it waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Weight among those of the group that run; at least 1.
    pub weight: u32,
    /// Number of the group, in its phase.
    #[serde(default)]
    pub group: u32,
    /// Time in ns after which a worker that is ahead asks again; 0 for as soon as it can.
    #[serde(default)]
    pub pause_ns: u64,
}

impl Flow {
    /// `share 3 of flow 0`.
    pub fn describe(&self) -> String {
        format!("share {} of flow {}", self.weight, self.group)
    }
}
