//! The comparison of two sides of results. Its JSON form is a contract, like the report's.
//!
//! Ratios and intervals are B divided by A: 0.9 is a tenth less. `null` means not known; zero means zero.

use crate::finding::{CheckId, Finding};
use crate::units::show_share;
use crate::verdict::{AnswerWord, CountsAs, Producer, Verdict};
use serde::{Deserialize, Serialize};

/// Two sides compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The program and contract that made this comparison.
    pub fathom: Producer,
    /// The first word: the answer for the headline of A.
    pub answer: Answer,
    /// The answer for the headline of A with its numbers, in one or two sentences.
    pub sentence: String,
    /// The reference side.
    pub a: Side,
    /// The other side.
    pub b: Side,
    /// Results that both sides have, in the order of A.
    pub pairs: Vec<Pair>,
    /// Names of results that only A has.
    pub only_in_a: Vec<String>,
    /// Names of results that only B has.
    pub only_in_b: Vec<String>,
    /// Results of the checks of comparisons, findings first.
    pub findings: Vec<Finding>,
    /// Whether B is slower by more than allowed; `None` without a limit.
    pub gate: Option<Gate>,
}

/// Several sides, each compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparisons {
    /// The program and contract that made these comparisons.
    pub fathom: Producer,
    /// Whether any side is slower by more than allowed, decided by the worst; `None` without a limit.
    pub gate: Option<Gate>,
    /// One for each side except the first, in the order in which they were named.
    pub others: Vec<Other>,
}

/// A side that is compared with the first. Its sentences use its name; in the comparison it is `b`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Other {
    /// `B`, `C`, ...
    pub name: String,
    /// Its comparison with A.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// The answer of a comparison: B compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Answer {
    /// Surely better by more than the margin: more operations, or less time.
    #[serde(rename = "FASTER")]
    Faster,
    /// Surely worse by more than the margin.
    #[serde(rename = "SLOWER")]
    Slower,
    /// Surely within the tolerance.
    #[serde(rename = "SAME")]
    Same,
    /// None of these could be shown; the interval gives the largest possible difference.
    #[serde(rename = "NO DIFFERENCE SEEN")]
    NoDifferenceSeen,
    /// The runs are not conclusive: they have no interval, the interval is wider than half the value, or the ranks
    /// contradict it.
    #[serde(rename = "CANNOT TELL")]
    CannotTell,
    /// The two are numbers of different things.
    #[serde(rename = "INCOMPARABLE")]
    Incomparable,
    /// A side has no number, because a finding invalidates it or nothing was measured.
    #[serde(rename = "INVALID")]
    Invalid,
}

/// The content of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// One entry for each session: their runs count as runs of one session.
    pub sessions: Vec<Source>,
}

/// A session of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The session file that its report was judged from; `None` if it is not known.
    pub session: Option<String>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: String,
    /// Start of the session, RFC 3339.
    pub started: String,
    /// Its own verdict.
    pub verdict: Verdict,
    /// Version of the program that judged it.
    pub judged_by: String,
}

/// A result that both sides have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// The job's name on side A.
    pub name: String,
    /// True name of the result on side A.
    pub true_name_a: String,
    /// True name of the result on side B.
    pub true_name_b: String,
    /// Index of the phase.
    pub phase: u32,
    /// Index of the stream.
    pub stream: u32,
    /// Whether it is the headline of A.
    pub headline: bool,
    /// Why the numbers are not compared; `None` if they are.
    pub refused: Option<String>,
    /// Whether a side has no number, so that measuring again may give one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_number: bool,
    /// Whether the conditions of the two sides differ in a way that may change the number, so that the answer is
    /// `CANNOT TELL`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_tell: bool,
    /// Ids of the accepted findings that the number rests on, of either side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<CheckId>,
    /// Differences between the two sides other than the numbers.
    pub differences: Vec<Difference>,
    /// Numbers that both have. In the pair of the headline its own number is the first.
    pub metrics: Vec<Metric>,
    /// Numbers that only some runs have, and why they are left out.
    pub left_out: Vec<String>,
}

/// A circumstance that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The aspect that differs: `kernel`, `block size`.
    pub aspect: String,
    /// Its value on side A.
    pub a: String,
    /// Its value on side B.
    pub b: String,
    /// Whether the difference makes the numbers those of different work. Otherwise it may be the subject of the
    /// comparison.
    pub refuses: bool,
}

/// One number of one result on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// `IOPS`, `MB/s`, `read p99`, `CPU per operation`.
    pub name: String,
    /// `IOPS`, `MB/s` or `ns`.
    pub unit: String,
    /// Whether higher is better.
    pub more_is_better: bool,
    /// The answer for this number.
    pub answer: Answer,
    /// Why it is `CANNOT TELL`, or why an interval beyond the margin is `NO DIFFERENCE SEEN`; otherwise empty.
    pub why: String,
    /// Geometric mean over the runs of A; for a percentile, the percentile of a typical run.
    pub a: f64,
    /// Geometric mean over the runs of B; for a percentile, the percentile of a typical run.
    pub b: f64,
    /// One value for each run of A.
    pub a_runs: Vec<f64>,
    /// One value for each run of B.
    pub b_runs: Vec<f64>,
    /// B by A.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
    /// One-sided bounds, each with 95 % confidence: a gate compares one of them with its limit. `None` with fewer
    /// than three runs on a side, and in older reports.
    #[serde(default)]
    pub bounds: Option<[f64; 2]>,
    /// Share beyond which the interval must lie for `FASTER` and `SLOWER`.
    pub margin: f64,
    /// Share within which the interval must lie for `SAME`. `None` in older reports, where it was the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Largest difference between sessions of one side, as a share: the difference that occurs here without any
    /// change. `None` if each side is one session.
    pub floor: Option<f64>,
    /// Smallest difference, as a share, that four of five such comparisons would call `FASTER` or `SLOWER`.
    pub could_have_seen: Option<f64>,
    /// Runs on each side with which four of five such comparisons would end with `FASTER`, `SLOWER` or `SAME`; only
    /// for `NO DIFFERENCE SEEN` and `CANNOT TELL`, and `None` if it would take more than a thousand.
    pub runs_needed: Option<u32>,
    /// Runs on each side with which the interval would be half as wide; only for `NO DIFFERENCE SEEN`, and `None`
    /// if it would take more than a thousand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_to_halve: Option<u32>,
    /// Probability of a difference this far beyond the margin if there is none, corrected for the number of
    /// compared values (Welch, Holm).
    pub p: Option<f64>,
    /// Probability of ranks this uneven if there is no difference (Mann and Whitney, exact).
    pub p_ranks: Option<f64>,
    /// B by A by the median of all pairs of runs (Hodges and Lehmann).
    pub ratio_by_ranks: f64,
}

/// Whether B is slower by more than is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// Allowed slowdown as a share: 0.05.
    pub limit: f64,
    /// Passed, failed or undecided; invalid if a side has no number.
    pub outcome: Passing,
    /// The deciding numbers, in one sentence.
    pub sentence: String,
    /// Runs in all on each side that would decide it four times of five, if it cannot be decided and a thousand
    /// would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
    /// What an undecided gate counts as for the exit code, if `--inconclusive` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_as: Option<CountsAs>,
    /// Whether the outcome is `invalid`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_number: bool,
}

/// The outcome of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Passing {
    /// Surely within the limit.
    Passed,
    /// Neither could be shown.
    Undecided,
    /// A side has no number, or its number rests on a finding that this command line does not accept.
    Invalid,
    /// Surely slower by more than the limit.
    Failed,
}

impl Passing {
    /// The word of every gate.
    pub fn word(self) -> AnswerWord {
        match self {
            Self::Passed => AnswerWord::Pass,
            Self::Undecided => AnswerWord::Inconclusive,
            Self::Invalid => AnswerWord::Invalid,
            Self::Failed => AnswerWord::Fail,
        }
    }
}

/// The name of a side by its index: `A`, `B`, ..., `Z`, `A2`, ...
pub fn side_name(at: usize) -> String {
    let letter = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{}", round + 1),
    }
}

impl Answer {
    /// The word shown in every format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::NoDifferenceSeen => "NO DIFFERENCE SEEN",
            Self::CannotTell => "CANNOT TELL",
            Self::Incomparable => "INCOMPARABLE",
            Self::Invalid => "INVALID",
        }
    }
}

impl Pair {
    /// The word for a pair that is not compared.
    pub fn refusal(&self) -> Answer {
        if self.no_number {
            Answer::Invalid
        } else if self.cannot_tell {
            Answer::CannotTell
        } else {
            Answer::Incomparable
        }
    }
}

impl Comparison {
    /// The pair whose number is the answer; `None` if the two sides have no pair in common.
    pub fn headline(&self) -> Option<&Pair> {
        self.pairs.iter().find(|p| p.headline)
    }
}

impl Metric {
    /// A value with its unit: `78,912 IOPS`, `1.20 ms`.
    pub fn show(&self, value: f64) -> String {
        match self.unit.as_str() {
            "ns" => crate::units::show_ns(value),
            unit => format!("{} {unit}", crate::units::show_rate(value)),
        }
    }

    /// How much faster and how much slower B may be at most, as shares; negative if B is certainly not. `None`
    /// without an interval.
    pub fn at_most(&self) -> Option<[f64; 2]> {
        let [low, high] = self.interval?;
        Some(if self.more_is_better { [high - 1.0, 1.0 - low] } else { [1.0 - low, high - 1.0] })
    }

    /// The size of the change with its 95 % interval, without its direction: `7.4 % (3.1 to 12 %)`.
    pub fn size(&self) -> String {
        let grows = self.ratio >= 1.0;
        let share = |ratio: f64| show_share(if grows { ratio - 1.0 } else { 1.0 - ratio });
        let interval = self.interval.map_or_else(String::new, |[low, high]| {
            let [least, most] = if grows { [low, high] } else { [high, low] };
            format!(" ({} to {})", share(least).trim_end_matches(" %"), share(most))
        });
        format!("{}{interval}", share(self.ratio))
    }

    /// `at most 7.0 % faster and at most 4.1 % slower`; `None` without an interval.
    pub fn bound(&self) -> Option<String> {
        let at_most = |share: f64| format!("at most {}", show_share(share));
        Some(match self.at_most()? {
            [faster, slower] if faster <= 0.0 => format!("{} slower and not faster", at_most(slower)),
            [faster, slower] if slower <= 0.0 => format!("{} faster and not slower", at_most(faster)),
            [faster, slower] => format!("{} faster and {} slower", at_most(faster), at_most(slower)),
        })
    }
}

#[test]
fn side_names_are_unique() {
    assert_eq!([0, 1, 25, 26, 53].map(side_name), ["A", "B", "Z", "A2", "B3"]);
}
