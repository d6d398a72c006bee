//! Findings: what a check answered, and how far it acts on the number.
//!
//! For: answers as data. Not for: asking (the crate `analysis`).

use crate::check_id::CheckId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer of one check about one or more results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Which check answered.
    pub id: CheckId,
    /// Its name: `CACHE_SERVED`.
    pub name: String,
    /// What was found.
    pub outcome: Outcome,
    /// How far it acts on the number; `None` unless the outcome is a finding.
    pub severity: Option<Severity>,
    /// Names of the results that it is about.
    pub about: Vec<String>,
    /// What it says to a person; for `NotChecked` the reason.
    pub sentence: String,
    /// What to do about it; empty where there is nothing to do.
    pub cure: String,
    /// The numbers it rests on.
    pub evidence: BTreeMap<String, f64>,
    /// Whether the user accepted it with `--accept`.
    pub accepted: bool,
}

/// The three outcomes of a check. Not looked at is never a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The false belief is true here.
    Finding,
    /// Could not be looked at.
    NotChecked,
    /// The belief holds.
    Holds,
}

/// How far a finding acts on the number, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// There is no number.
    Void,
    /// The number is about something else and gets that name.
    Rename,
    /// The number is off by a known direction or size.
    Biased,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word of formats for programs, the same as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Void => "void",
            Self::Rename => "rename",
            Self::Biased => "biased",
            Self::Note => "note",
        }
    }

    /// What a finding does to a number, as reports for people print it.
    pub fn effect(self) -> &'static str {
        match self {
            Self::Void => "invalidates",
            Self::Rename => "relabels",
            Self::Biased => "biases",
            Self::Note => "note",
        }
    }
}
