//! The verdict: the first word of every report.
//!
//! For: its three values. Not for: deciding between them (crate `analysis`).

use serde::{Deserialize, Serialize};

/// The first word of every report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Nothing was found that changes what a number means.
    Valid,
    /// Something was found that relabels or biases a number, or the ledger could not be checked.
    Suspect,
    /// Something was found that invalidates a number, or there is none.
    Invalid,
}

impl Verdict {
    /// As it is printed, and as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Suspect => "SUSPECT",
            Self::Invalid => "INVALID",
        }
    }

    /// Of a result in a file that was written before results had a verdict of their own: nothing was shown.
    pub(crate) fn unknown() -> Self {
        Self::Suspect
    }
}
