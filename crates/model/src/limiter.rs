//! The limiter: what kept a result from being higher.
//!
//! For: the answer as a value. Not for: finding it (crate `analysis`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What kept a result from being higher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limiter {
    /// `device`, `page cache`, `memory`, `file system`, `CPU`, `tool`, `above the device`, `unknown`.
    pub name: String,
    /// One sentence with its evidence.
    pub sentence: String,
    /// The numbers it rests on.
    pub evidence: BTreeMap<String, f64>,
}
