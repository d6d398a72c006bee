//! A quick look: what a measurement says of itself that was over in seconds.
//!
//! The plan makes it that short.

use crate::units::show_ns;
use serde::{Deserialize, Serialize};

/// What a quick look is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quick {
    /// Length of the one run of each row in ns.
    pub run_ns: u64,
    /// Rows that were not measured, since the time was over before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
}

impl Quick {
    /// The word that introduces its sentence.
    pub const WORD: &'static str = "Quick look.";

    /// What it is, and what cannot be said from it.
    pub fn sentence(&self) -> String {
        let missing = if self.not_measured.is_empty() {
            String::new()
        } else {
            format!(" Not measured because time ran out: {}.", self.not_measured.join(", "))
        };
        format!(
            "One run of {} per row, so there are no confidence intervals.{missing}",
            show_ns(self.run_ns as f64)
        )
    }
}

#[test]
fn what_was_left_out_is_named() {
    let quick = Quick { run_ns: 500_000_000, not_measured: Vec::new() };
    assert!(quick.sentence().starts_with("One run of 500 ms per row, so there are no confidence intervals"));
    assert!(!quick.sentence().contains("Not measured"));
    let short = Quick { not_measured: vec!["a".into(), "b".into()], ..quick };
    assert!(short.sentence().ends_with("Not measured because time ran out: a, b."));
}
