//! A plan before it is carried out, with what it takes and where.
//!
//! For: what `--explain` prints. Not for: measuring.

use crate::cost::Cost;
use crate::machine::Machine;
use crate::plan::Plan;

/// What would be measured, where, and what that takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// What would be measured.
    pub plan: Plan,
    /// Where.
    pub machine: Machine,
    /// What it takes.
    pub cost: Cost,
}
