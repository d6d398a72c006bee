//! Errors that a stream goes on after, however many there are.
//!
//! For: which ones. Not for: whether they are told: errors are counted and told in any case ([`crate::record::Issued`]).

use super::Kind;
use serde::{Deserialize, Serialize};

/// Errors that do not count to `max_errors`, as fio's `ignore_error` and `continue_on_error` have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoredError {
    /// Of which operations; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Which error; `None` for all, operations that moved too little among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl IgnoredError {
    /// Whether it is an error of an operation; `None` for one that moved too little.
    pub fn is(&self, kind: Kind, errno: Option<i32>) -> bool {
        self.kind.is_none_or(|of| of == kind) && (self.errno.is_none() || self.errno == errno)
    }
}
