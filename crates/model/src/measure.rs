//! Measures: the numbers by which the cells of a sweep are ranked, and which its maps show.
//!
//! For: their words, headings and forms, and which direction is better. Not for: the ranking (crate `analysis`).

use crate::units::{show_count, show_ns, show_rate};
use serde::{Deserialize, Serialize};

/// A number of a cell by which it is ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    #[default]
    Bandwidth,
    /// Latency that 99 of a hundred operations do not exceed.
    P99,
    /// Mean latency.
    Latency,
}

impl Measure {
    /// All of them, with what `--by` takes and what it means.
    pub const WORDS: [(&'static str, Self, &'static str); 4] = [
        ("iops", Self::Iops, "operations per second"),
        ("bandwidth", Self::Bandwidth, "10^6 bytes per second"),
        ("p99", Self::P99, "99th percentile of latency, the lowest is the best"),
        ("latency", Self::Latency, "mean latency, the lowest is the best"),
    ];

    /// What `--by` takes for it.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, measure, _)| *measure == self).map_or("", |(word, ..)| word)
    }

    /// The measure of that word.
    pub fn find(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, ..)| *known == word).map(|(_, measure, _)| *measure)
    }

    /// The heading of a column.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "MB/s",
            Self::P99 => "p99",
            Self::Latency => "mean latency",
        }
    }

    /// Whether less of it is better.
    pub fn is_latency(self) -> bool {
        matches!(self, Self::P99 | Self::Latency)
    }

    /// Another cell that is better by more than a share: `more than 3.0 % faster`.
    pub fn better_by(self, share: &str) -> String {
        if self.is_latency() {
            format!("lower by more than {share} in {}", self.heading())
        } else {
            format!("more than {share} faster")
        }
    }

    /// A value as it is shown alone: operations, 10^6 bytes, or ns.
    pub fn show(self, value: f64) -> String {
        if self.is_latency() { show_ns(value) } else { show_rate(value) }
    }

    /// A value as it is shown among many.
    pub fn show_short(self, value: f64) -> String {
        if self.is_latency() { show_ns(value) } else { show_count(value) }
    }
}

#[test]
fn every_measure_has_a_word_that_means_it() {
    for measure in [Measure::Iops, Measure::Bandwidth, Measure::P99, Measure::Latency] {
        assert_eq!(Measure::find(measure.word()), Some(measure));
    }
    assert_eq!(Measure::find("speed"), None);
    assert_eq!(Measure::P99.better_by("3.0 %"), "lower by more than 3.0 % in p99");
}
