//! Kinds of operation.
//!
//! For: read, write, trim and sync, in the order of their indices. Not for: their shares ([`super::access`]).

use serde::{Deserialize, Serialize};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Moves bytes from the target.
    Read,
    /// Moves bytes to the target.
    Write,
    /// Gives bytes of the target back (discard, punched hole).
    Trim,
    /// Makes writes stable.
    Sync,
}

impl Kind {
    /// All kinds, in the order of their indices.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Sync];
    /// The kinds that move bytes between memory and target.
    pub const MOVING: [Self; 2] = [Self::Read, Self::Write];

    /// `read`, `write`, `trim` or `sync`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
        }
    }
}
