//! The producer: which program and contract made a report.
//!
//! For: the first field of each kind of report that is a contract. Not for: who measured, which the record's header says.

use serde::{Deserialize, Serialize};

/// Which program and contract made a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Producer {
    /// Version of the JSON contract.
    pub format: u32,
    /// Version of the program that judged.
    pub version: String,
}
