//! A run: how it began, and all that was seen of it.
//!
//! For: one phase of one job, measured once. Not for: which of several attempts at it counts ([`super::attempts`]).

use super::attempts::Attempt;
use super::disturbed::Disturbed;
use super::end::{RunEnd, RunEnding};
use super::interval::Interval;
use crate::evidence::Snapshot;
use serde::{Deserialize, Serialize};

/// A run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Index of the phase of the job; each phase of a repeat is a run of its own here.
    #[serde(default)]
    pub phase: usize,
    /// How many times this job was measured before.
    pub repeat: u32,
    /// How many times this very run was measured before, since others disturbed it; 0 in older files.
    #[serde(default, skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Operations per second that were offered in an open loop, where the strategy chose them instead of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// Index into the header's hosts.
    pub host: usize,
    /// ns since the session began.
    pub at_ns: u64,
    /// Bytes of each target that are there to be touched, after preparation.
    pub target_bytes: Vec<u64>,
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// One run with all that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What was to be measured, and when it began.
    pub start: RunStart,
    /// Its course.
    pub intervals: Vec<Interval>,
    /// Kernel text of its moments.
    pub evidence: Vec<Snapshot>,
    /// Its end; `None` where the program was killed inside it.
    pub end: Option<RunEnd>,
    /// Who disturbed it, as was decided when it had ended.
    pub disturbed: Option<Disturbed>,
}

impl Run {
    /// Which attempt at which run it is.
    pub fn attempt(&self) -> Attempt {
        let RunStart { job, repeat, attempt, offered_iops, .. } = self.start;
        let complete = self.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
        Attempt { job, repeat, attempt, offered_iops, disturbed: self.disturbed.is_some(), complete }
    }
}
