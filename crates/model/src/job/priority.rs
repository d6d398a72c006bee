//! Priorities of I/O: of a stream, and of a share of its operations.
//!
//! For: what is meant by `--io-priority` and `--op-priority`. Not for: drawing (the engine).

use super::kind::Kind;
use serde::{Deserialize, Serialize};

/// Priority of I/O, which the schedulers bfq and mq-deadline go by (`ioprio_set(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IoPriority {
    /// Before all others, of which 0 goes first and 7 last.
    Realtime(u8),
    /// The class of whoever says nothing, of which 0 goes first and 7 last.
    BestEffort(u8),
    /// Only where nobody else wants the device.
    Idle,
}

impl IoPriority {
    /// Class and level as the kernel takes them: the class in the bits from 13 on.
    pub fn number(self) -> u32 {
        match self {
            Self::Realtime(level) => 1 << 13 | u32::from(level),
            Self::BestEffort(level) => 2 << 13 | u32::from(level),
            Self::Idle => 3 << 13,
        }
    }
}

/// A share of operations that have a priority of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpPriority {
    /// Of reads or of writes; of both where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Of operations of so many bytes; of all sizes where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
    /// Which share of them, in percent.
    pub percent: u8,
    /// What the kernel is told of each.
    pub priority: IoPriority,
}

impl OpPriority {
    /// Whether it is about operations of this kind and size. Only reads and writes have a priority.
    pub fn is_of(&self, kind: Kind, bytes: u32) -> bool {
        Kind::MOVING.contains(&kind)
            && self.kind.is_none_or(|of| of == kind)
            && self.bytes.is_none_or(|of| of == bytes)
    }
}
