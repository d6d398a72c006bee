//! Think time: how pauses between bursts are distributed.
//!
//! For: laws of a random pause, with their mean. Not for: where a pause stands ([`super::access`]), nor drawing one (the engine).

use crate::units::show_ns;
use serde::{Deserialize, Serialize};

/// A pause of random length.
#[derive(Clone, Debug, PartialEq)]
pub struct Think {
    /// Of all pauses, in ns.
    pub mean_ns: u64,
    /// How it varies around that.
    pub law: ThinkLaw,
}

/// How pauses vary around their mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkLaw {
    /// All the same.
    #[default]
    Fixed,
    /// Those of a source without memory, as between independent users.
    Exponential,
    /// Their logarithm is normal.
    Lognormal {
        /// Half of them are shorter, in ns; below the mean.
        median_ns: u64,
    },
    /// Known at some shares, straight between them; ascending, from 0 to 100 %.
    Quantiles(Vec<Quantile>),
}

/// A share of pauses that are no longer than a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantile {
    /// The share in percent.
    pub percent: f64,
    /// The time in ns.
    pub ns: u64,
}

impl Think {
    /// Always the same.
    pub fn fixed(ns: u64) -> Self {
        Self { mean_ns: ns, law: ThinkLaw::Fixed }
    }

    /// By quantiles, with the mean that these have.
    pub fn quantiles(quantiles: Vec<Quantile>) -> Self {
        let parts = quantiles.iter().zip(quantiles.iter().skip(1));
        let mean = parts.map(|(a, b)| (b.percent - a.percent) / 100.0 * (a.ns as f64 + b.ns as f64) / 2.0);
        Self { mean_ns: mean.sum::<f64>().round() as u64, law: ThinkLaw::Quantiles(quantiles) }
    }

    /// `100 us`, `exponential, mean 100 us`.
    pub fn describe(&self) -> String {
        self.law.describe_mean(self.mean_ns)
    }
}

impl ThinkLaw {
    /// Pauses by this law with this mean in ns, in words: `100 us`, `exponential, mean 100 us`.
    pub fn describe_mean(&self, mean_ns: u64) -> String {
        let mean = show_ns(mean_ns as f64);
        match self {
            Self::Fixed => mean,
            Self::Exponential => format!("exponential, mean {mean}"),
            Self::Lognormal { median_ns } => {
                format!("lognormal, median {}, mean {mean}", show_ns(*median_ns as f64))
            }
            Self::Quantiles(all) => format!("by {} quantiles, mean {mean}", all.len()),
        }
    }

    /// Whether it is what nobody has to say.
    pub fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}
