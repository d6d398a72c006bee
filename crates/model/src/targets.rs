//! The same tests on several targets: what a plan says of it, and what stands in a report.
//!
//! For: data of the record and of the JSON contract (format 1). Not for: comparing numbers (the crate `analysis`) nor laying them out.

use crate::comparison::Pair;
use serde::{Deserialize, Serialize};

/// The jobs of a plan that are the same tests on one target each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetComparison {
    /// In the order in which they were named; the others are compared with the first.
    pub sides: Vec<TargetJobs>,
}

/// The tests of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetJobs {
    /// What tables call it: the end of its path that tells it from the others.
    pub name: String,
    /// Names of the tests and indices of their jobs.
    pub tests: Vec<(String, usize)>,
}

/// The same tests on several targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Targets {
    /// What the targets are called, in the order in which they were named.
    pub names: Vec<String>,
    /// One per test and target: test by test, in each the first target first.
    pub rows: Vec<TargetRow>,
}

/// One test on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetRow {
    /// `RND4K Q1T1 read`.
    pub test: String,
    /// Index of its target.
    pub target: usize,
    /// Index of its result.
    pub result: usize,
    /// The first target (A) and this one (B); `None` for the first, and where the first does not have the test.
    pub against: Option<Pair>,
}
