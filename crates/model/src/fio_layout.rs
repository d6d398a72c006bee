//! How fio prints the result of a job: percentiles, units and a description, as its options say.

use serde::{Deserialize, Serialize};

/// Ranks that fio prints by default, in percent.
const RANKS: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Decimals of these ranks.
const RANK_DECIMALS: usize = 2;

/// How fio prints the result of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio")]
pub struct FioLayout {
    /// Text of the option `description`; empty without one.
    pub description: String,
    /// Whether completion latencies have percentiles (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Whether total latencies have percentiles (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// Ranks of the percentiles in percent, ascending (`percentile_list`).
    pub ranks: Vec<f64>,
    /// Decimals of a rank in the text.
    pub rank_decimals: usize,
    /// Whether sizes are in steps of 1000 first, and in steps of 1024 in parentheses (`kb_base=1000`).
    pub decimal_first: bool,
    /// Whether rates are in bits per second (`unit_base=1`).
    pub bits: bool,
}

impl Default for FioLayout {
    fn default() -> Self {
        Self {
            description: String::new(),
            clat_percentiles: true,
            lat_percentiles: false,
            ranks: RANKS.to_vec(),
            rank_decimals: RANK_DECIMALS,
            decimal_first: false,
            bits: false,
        }
    }
}

impl FioLayout {
    /// Whether the options of the job change nothing of it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
