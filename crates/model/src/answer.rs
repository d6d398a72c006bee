//! The answer to the question that a command asks: a word, and the sentence behind it.
//!
//! For: studies that are to answer one: which setting, which load, which interface; and conditions that a result has to keep. Not for: comparisons, which have words of
//! their own ([`crate::comparison::Answer`]), nor for whether the numbers hold ([`crate::verdict`]).

use serde::{Deserialize, Serialize};

/// The answer to the question that a command asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// What scripts compare: `FASTEST`, `TIED`, `MET`, `MISSED`, `KNEE`, `SCALES`, `NO DIFFERENCE SEEN`, `CANNOT TELL`; of conditions `PASS`, `FAIL`, `INCONCLUSIVE` or `INVALID`.
    pub word: AnswerWord,
    /// The answer with its numbers, or what would settle it.
    pub sentence: String,
}

/// What `INCONCLUSIVE` counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CountsAs {
    /// Exit code 0.
    #[serde(rename = "PASS")]
    Pass,
    /// Exit code 1.
    #[serde(rename = "FAIL")]
    Fail,
}

impl CountsAs {
    /// What stands behind the word.
    pub fn remark(self) -> &'static str {
        match self {
            Self::Pass => " (counts as PASS)",
            Self::Fail => " (counts as FAIL)",
        }
    }
}

/// What a question about settings, loads or interfaces can be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AnswerWord {
    /// One is the fastest.
    #[serde(rename = "FASTEST")]
    Fastest,
    /// The best of what was measured cannot be told from others.
    #[serde(rename = "TIED")]
    Tied,
    /// A load meets the latency target.
    #[serde(rename = "MET")]
    Met,
    /// No load that was offered does.
    #[serde(rename = "MISSED")]
    Missed,
    /// From a number of hosts on more bring less than they add in latency.
    #[serde(rename = "KNEE")]
    Knee,
    /// No such number was reached.
    #[serde(rename = "SCALES")]
    Scales,
    /// No target is shown to be faster, and the sentence says by how much one may be at most.
    #[serde(rename = "NO DIFFERENCE SEEN")]
    NoDifferenceSeen,
    /// What was measured does not tell.
    #[serde(rename = "CANNOT TELL")]
    CannotTell,
    /// Every condition is surely kept.
    #[serde(rename = "PASS")]
    Pass,
    /// A condition is surely broken.
    #[serde(rename = "FAIL")]
    Fail,
    /// Neither could be shown: there are too few runs, or they differ too much.
    #[serde(rename = "INCONCLUSIVE")]
    Inconclusive,
    /// A finding that the user did not accept invalidates or relabels the number that a condition is about.
    #[serde(rename = "INVALID")]
    Invalid,
}

impl AnswerWord {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fastest => "FASTEST",
            Self::Tied => "TIED",
            Self::Met => "MET",
            Self::Missed => "MISSED",
            Self::Knee => "KNEE",
            Self::Scales => "SCALES",
            Self::NoDifferenceSeen => "NO DIFFERENCE SEEN",
            Self::CannotTell => "CANNOT TELL",
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Invalid => "INVALID",
        }
    }
}
