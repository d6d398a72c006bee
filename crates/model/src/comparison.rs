//! The comparison of two sides of results. Its JSON form is a contract, like the report's.
//!
//! Ratios and intervals are B divided by A, so 0.9 is a tenth less. `null` means unknown. Zero is a measured zero.

use crate::finding::{CheckId, Checked};
use crate::units::show_share;
use crate::verdict::{AnswerWord, CountsAs, Producer, Verdict};
use serde::{Deserialize, Serialize};

/// Two sides compared with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The program that made this comparison, and the version of its JSON contract.
    pub fathom: Producer,
    /// The answer for the number that A quotes as its headline.
    pub answer: ComparisonAnswer,
    /// The answer with its numbers, in one or two sentences.
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
    /// The checks that concern comparisons, with their answers, findings first.
    #[serde(rename = "findings")]
    pub checks: Vec<Checked>,
    /// Whether B is slower by more than the limit; `None` without a limit.
    pub gate: Option<SlowdownGate>,
}

/// Several sides, each compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparisons {
    /// The program that made these comparisons, and the version of its JSON contract.
    pub fathom: Producer,
    /// Whether any side is slower than A by more than the limit; the worst side decides. `None` without a limit.
    pub gate: Option<SlowdownGate>,
    /// One comparison for each side except the first, in the order in which the user named them.
    pub others: Vec<Other>,
}

/// A side that is compared with the first one. Sentences call the side by its name, such as `C`; the fields of the
/// comparison call it `b`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Other {
    /// `B`, `C`, ...
    pub name: String,
    /// The comparison of this side with A.
    #[serde(flatten)]
    pub comparison: Comparison,
}

enum_of_words! {
    /// The answer of a comparison: B compared with A.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Answer"))]
    #[serde(rename = "Answer")]
    ComparisonAnswer {
        /// The whole interval is better by more than the margin: more operations, or less time.
        Faster = "FASTER",
        /// The whole interval is worse by more than the margin.
        Slower = "SLOWER",
        /// The whole interval is within the tolerance.
        Same = "SAME",
        /// The interval is neither beyond the margin nor within the tolerance. Or it is beyond the margin, but among all
        /// compared numbers one may differ this much by chance. The interval shows the largest possible difference.
        NoDifferenceSeen = "NO DIFFERENCE SEEN",
        /// The runs do not decide: there is no interval, the interval includes a difference of more
        /// than half, or the ranks of the runs do not confirm the means. Also if the conditions of the two
        /// sides differ ([`Pair::cannot_tell`]).
        CannotTell = "CANNOT TELL",
        /// The two numbers measure different things.
        Incomparable = "INCOMPARABLE",
        /// A side has no number: a finding invalidates it, or nothing was measured.
        Invalid = "INVALID",
    }
}

/// The sessions of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// The sessions. Their runs count as runs of one session.
    pub sessions: Vec<Source>,
}

/// A session of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The session file that was judged; `None` if unknown.
    pub session: Option<String>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: String,
    /// Start of the session, RFC 3339.
    pub started: String,
    /// Verdict on the session.
    pub verdict: Verdict,
    /// Version of the program that judged the session.
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
    /// Index of the phase in the job.
    pub phase: u32,
    /// Index of the stream in the phase.
    pub stream: u32,
    /// Whether this result is the headline of A.
    pub headline: bool,
    /// Why the numbers are not compared; `None` if they are.
    pub refused: Option<String>,
    /// Whether a side has no number. Another measurement may give one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_number: bool,
    /// Whether the conditions of the two sides differ in a way that may change the number. The answer is then
    /// `CANNOT TELL`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_tell: bool,
    /// Ids of the accepted findings on either side that affect the number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<CheckId>,
    /// Differences between the two sides other than the numbers.
    pub differences: Vec<Difference>,
    /// Numbers that both sides have. The number that decides the answer of the pair comes first.
    pub metrics: Vec<Metric>,
    /// Numbers that only some runs have, and why they are not compared.
    pub left_out: Vec<String>,
}

/// An aspect in which the two sides differ, such as the kernel or the block size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// The name of the aspect: `kernel`, `block size`.
    pub aspect: String,
    /// Value on side A.
    pub a: String,
    /// Value on side B.
    pub b: String,
    /// Whether the two numbers measure different work because of this difference. If not, the
    /// difference may be what the user wants to compare.
    pub refuses: bool,
}

/// One number of one result on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Name of the number, such as `IOPS`, `MB/s`, `read p99` or `CPU per operation`.
    pub name: String,
    /// `IOPS`, `MB/s` or `ns`.
    pub unit: String,
    /// Whether higher is better.
    pub more_is_better: bool,
    /// The answer for this number.
    pub answer: ComparisonAnswer,
    /// Why the answer is `CANNOT TELL`, or why an interval beyond the margin is `NO DIFFERENCE SEEN`; otherwise
    /// empty.
    pub why: String,
    /// Geometric mean over the runs of A; for a percentile, the geometric mean of the percentiles of the runs.
    pub a: f64,
    /// Geometric mean over the runs of B; for a percentile, the geometric mean of the percentiles of the runs.
    pub b: f64,
    /// One value for each run of A.
    pub a_runs: Vec<f64>,
    /// One value for each run of B.
    pub b_runs: Vec<f64>,
    /// B divided by A.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
    /// One-sided bounds of the ratio, each with 95 % confidence. A gate compares them with its limit; with `--settle` it
    /// compares `interval` instead. `None` with fewer than three runs on a side, and in older reports.
    #[serde(default)]
    pub bounds: Option<[f64; 2]>,
    /// The margin as a share. For `FASTER` and `SLOWER` the interval must be beyond it.
    pub margin: f64,
    /// The tolerance as a share. For `SAME` the interval must be within it. `None` in older reports, which used the
    /// margin instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Difference between sessions of one side, as a share: such a difference occurs without any
    /// change. The 95th percentile over all pairs of sessions, or the largest with fewer than 20
    /// pairs. `None` if each side has one session.
    pub floor: Option<f64>,
    /// Smallest difference, as a share, that this comparison would detect (`FASTER` or `SLOWER`) in
    /// four of five repetitions. `None` if there are too few runs to detect any.
    pub could_have_seen: Option<f64>,
    /// Number of runs on each side with which this comparison would answer `FASTER`, `SLOWER` or `SAME` in four of five
    /// repetitions. Only for `NO DIFFERENCE SEEN` and `CANNOT TELL`, and `None` above a thousand runs.
    pub runs_needed: Option<u32>,
    /// Number of runs on each side with which the interval would be half as wide. Only for `NO DIFFERENCE SEEN`, and
    /// `None` above a thousand runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_to_halve: Option<u32>,
    /// p-value: probability of a difference this large if the true difference equals the margin,
    /// corrected for the number of compared values (Welch, Holm). `None` with too few runs.
    pub p: Option<f64>,
    /// p-value of the rank test: probability of ranks this uneven if there is no true difference
    /// (Mann and Whitney, exact). `None` if it cannot be computed.
    pub p_ranks: Option<f64>,
    /// Median of B divided by A over all pairs of a run of B and a run of A (Hodges and Lehmann).
    pub ratio_by_ranks: f64,
}

/// The gate on B: whether it is slower than A by more than the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Gate"))]
pub struct SlowdownGate {
    /// Allowed slowdown as a share, such as 0.05.
    pub limit: f64,
    /// Passed, failed or undecided. Invalid if a side has no number, or if a finding that is not accepted affects its number.
    pub outcome: GateOutcome,
    /// The numbers that decide, in one sentence.
    pub sentence: String,
    /// Total runs on each side that would decide the gate in four of five repetitions; `None` if the gate is decided,
    /// or above a thousand runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u32>,
    /// Whether an undecided gate gives the exit code of a passed or of a failed one; `None` without
    /// `--inconclusive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_as: Option<CountsAs>,
    /// Whether the outcome is `invalid`: a side has no number, or a finding that is not accepted
    /// affects its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_number: bool,
}

/// Whether a comparison passed its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Passing"))]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// The bound of the largest slowdown is within the limit.
    Passed,
    /// The numbers are not compared, there are no bounds, the limit is between the bounds, or both bounds are beyond the
    /// limit but the answer is not `SLOWER`.
    Undecided,
    /// A side has no number, or a finding that this command line does not accept affects its number.
    Invalid,
    /// Both bounds are slower than the limit, and the answer is `SLOWER`.
    Failed,
}

impl GateOutcome {
    /// Returns the outcome as the word that all gates print.
    pub fn word(self) -> AnswerWord {
        match self {
            Self::Passed => AnswerWord::Pass,
            Self::Undecided => AnswerWord::Inconclusive,
            Self::Invalid => AnswerWord::Invalid,
            Self::Failed => AnswerWord::Fail,
        }
    }
}

/// Returns the name of a side by its index: `A`, `B`, ..., `Z`, `A2`, ...
pub fn side_name(at: usize) -> String {
    let letter = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{}", round + 1),
    }
}

impl Pair {
    /// Returns the answer for a pair that is not compared.
    pub fn refusal(&self) -> ComparisonAnswer {
        if self.no_number {
            ComparisonAnswer::Invalid
        } else if self.cannot_tell {
            ComparisonAnswer::CannotTell
        } else {
            ComparisonAnswer::Incomparable
        }
    }
}

impl Comparison {
    /// Returns the pair of A's headline, which gives the answer of the comparison; `None` if B does not have this result.
    pub fn headline(&self) -> Option<&Pair> {
        self.pairs.iter().find(|p| p.headline)
    }
}

impl Metric {
    /// Formats a value with its unit: `78,912 IOPS`, `1.20 ms`.
    pub fn show(&self, value: f64) -> String {
        match self.unit.as_str() {
            "ns" => crate::units::show_ns(value),
            unit => format!("{} {unit}", crate::units::show_rate(value)),
        }
    }

    /// Returns the largest speed-up and the largest slowdown of B that the interval allows, as shares. A negative
    /// speed-up means that B is certainly slower, a negative slowdown that B is certainly faster. `None` without an
    /// interval.
    pub fn at_most(&self) -> Option<[f64; 2]> {
        let [low, high] = self.interval?;
        Some(if self.more_is_better { [high - 1.0, 1.0 - low] } else { [1.0 - low, high - 1.0] })
    }

    /// Formats the size of the change with its 95 % interval, without the direction: `7.4 % (3.1 to 12 %)`.
    pub fn size(&self) -> String {
        let grows = self.ratio >= 1.0;
        let share = |ratio: f64| show_share(if grows { ratio - 1.0 } else { 1.0 - ratio });
        let interval = self.interval.map_or_else(String::new, |[low, high]| {
            let [least, most] = if grows { [low, high] } else { [high, low] };
            format!(" ({} to {})", share(least).trim_end_matches(" %"), share(most))
        });
        format!("{}{interval}", share(self.ratio))
    }

    /// Formats the largest possible changes: `at most 7.0 % faster and at most 4.1 % slower`; `None` without an
    /// interval.
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
