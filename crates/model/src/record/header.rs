//! The header of a session: what was meant, where, and what fathom itself can do there.
//!
//! For: all that holds for every run. Not for: what the plan and the machine hold themselves ([`crate::plan`], [`crate::machine`]).

use crate::Known;
use crate::machine::Machine;
use crate::plan::Plan;
use serde::{Deserialize, Serialize};

/// What was meant and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the session file.
    pub format: u32,
    /// Version of the program that measured.
    pub version: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// What was meant.
    pub plan: Plan,
    /// The hosts that take part; one unless several were asked for.
    pub hosts: Vec<Machine>,
    /// The clock of the stamps.
    pub clock: Clock,
    /// What fathom itself can do here.
    #[serde(default)]
    pub self_test: SelfTest,
}

/// What fathom itself can do at the shapes of the plan, measured before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfTest {
    /// Bytes per second that one thread copies in memory, in blocks of 1 MiB.
    pub copy_bytes_per_s: f64,
    /// One per stream that was tried.
    pub ceilings: Vec<Ceiling>,
    /// One per job of a comparison of interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// A job carried out in part before the first run: whether this machine lets it, and what it calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Index of the job.
    pub job: usize,
    /// Bytes that were moved; or why there will be no run of this job.
    pub moved_bytes: Known<u64>,
    /// Why its engine cannot be set up, without the engine's name and without what to type instead; `None` where it was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// System calls of its workers for these bytes, or why they were not counted.
    pub calls: Known<u64>,
}

/// What one worker of a stream can do when no storage takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Index of the job.
    pub job: usize,
    /// Index of the phase.
    pub phase: usize,
    /// Index of the stream.
    pub stream: usize,
    /// ns per operation of the loop alone (engine `null`), with the data of its writes.
    pub loop_ns: Known<f64>,
    /// ns per operation through the kernel's interface and back, nothing done there (`io_uring:nop`).
    pub interface_ns: Known<f64>,
}

/// The clock that stamps operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `tsc` or `clock_monotonic`.
    pub name: String,
    /// Why this one, when it is the fall back.
    pub reason: Option<String>,
    /// Measured cost of reading it, in picoseconds.
    pub cost_ps: u64,
}
