//! A level of a job file: what was said in it and around it, and where.
//!
//! For: who reads the file, and who settles its times. Not for: reading.

use model::job::Every;
use model::spec::{PhaseSpec, StreamSpec};
use std::collections::BTreeMap;
use std::ops::Range;

/// What was said up to a table of the file, itself included.
#[derive(Clone, Default)]
pub(super) struct Level {
    pub(super) phase: PhaseSpec,
    pub(super) stream: StreamSpec,
    /// Values by their keys.
    pub(super) spans: BTreeMap<&'static str, Range<usize>>,
    /// The table itself.
    pub(super) head: Range<usize>,
    /// Operations of a turn.
    pub(super) length: Option<Every>,
    /// When the phase is to begin.
    pub(super) at: Option<u64>,
}
