//! Steadiness: how a rate behaved over the time that it was measured.
//!
//! For: the value that the report holds and every format shows. Not for: deciding it (crate `analysis`), nor the findings
//! that rest on it.

use serde::{Deserialize, Serialize};

/// How the rate of a result behaved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// In one word.
    pub state: State,
    /// Why, in one sentence with its numbers.
    pub sentence: String,
    /// Seconds at the beginning of the window that were still warm-up (MSER-5), the most of all runs.
    pub warm_up_s: f64,
    /// Change of the rate per minute as a share of its mean, with its 95 % interval; `None` where too few stretches are
    /// independent of one another, or the run is too short to speak of minutes.
    pub drift_per_minute: Option<Estimate>,
    /// What the rule of the SNIA says about the same rates; `None` with fewer than five rounds.
    pub snia: Option<Snia>,
}

/// The five answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    /// Surely no drift larger than allowed.
    Steady,
    /// Surely a drift larger than allowed.
    Drifting,
    /// A step from one level to another.
    Cliff,
    /// No steady part was reached.
    WarmUp,
    /// Neither could be shown: it takes longer runs.
    Unproven,
}

impl State {
    /// What the word means, for a reader who sees it for the first time.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Steady => "no drift above the limit",
            Self::Drifting => "the rate rises or falls",
            Self::Cliff => "the rate changes in a step",
            Self::WarmUp => "the rate was not steady yet",
            Self::Unproven => "the runs are too short to tell",
        }
    }
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its interval.
    pub interval: [f64; 2],
}

/// The steady state criterion of the SNIA Solid State Storage Performance Test Specification 2.0: five rounds whose largest
/// and smallest value differ by at most 20 % of their mean, and whose fitted line by at most 10 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snia {
    /// Whether the last five rounds meet it.
    pub met: bool,
    /// Rounds that there were; a round is a run, or in a single run a fifth or more of its window.
    pub rounds: u32,
    /// Largest less smallest of the last five, as a share of their mean.
    pub excursion: f64,
    /// Largest less smallest value of the line fitted to the last five, as a share of their mean.
    pub slope: f64,
}

impl State {
    /// The word that every format shows.
    pub fn word(self) -> &'static str {
        match self {
            Self::Steady => "STEADY",
            Self::Drifting => "DRIFTING",
            Self::Cliff => "CLIFF",
            Self::WarmUp => "WARM-UP",
            Self::Unproven => "UNPROVEN",
        }
    }
}
