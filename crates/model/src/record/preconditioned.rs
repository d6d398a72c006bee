//! What was written before the first run.
//!
//! For: the fill and the rounds behind it, as they went. Not for: what was asked for ([`crate::plan`]).

use serde::{Deserialize, Serialize};

/// What was written before the first run, so that the storage is in the state that lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preconditioned {
    /// Bytes written from end to end, all passes together.
    pub filled_bytes: u64,
    /// ns that this took.
    pub filled_ns: u64,
    /// The jobs that were then carried out in rounds; empty where none writes.
    pub rounds: Vec<Rounds>,
    /// Bytes written in the rounds.
    pub rounds_bytes: u64,
    /// ns that the rounds took.
    pub rounds_ns: u64,
    /// Whether the rates of all these jobs had settled when the rounds ended; `None` where there were none.
    pub settled: Option<bool>,
    /// What was not as planned, in sentences.
    pub notes: Vec<String>,
}

/// The rates of a job in the rounds before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rounds {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Operations per second of each round, in the order of happening.
    pub iops: Vec<f64>,
}
