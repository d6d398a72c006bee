//! Orders of offsets.
//!
//! For: which block comes after which. Not for: sizes and directions ([`super::access`]).

use super::sizes::PerKind;
use crate::units::{show_block, show_bytes};
use serde::{Deserialize, Serialize};

/// The two families of orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One block after another.
    Sequential,
    /// Anywhere.
    #[default]
    Random,
}

/// Order of offsets, with all that it needs. Random offsets lie on a grid of the alignment, or of the smallest size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// From the position of the last operation of the lane onwards, around at the end of the span.
    Sequential(Steps),
    /// Every block of the span equally likely each time, with replacement.
    Random,
    /// Every block of the span once per pass, in an order that differs from pass to pass; workers divide the blocks.
    Once,
    /// Random with this chance in percent, else on from the last operation: sequential runs of geometric length.
    Mixed(f64),
    /// As [`Order::Mixed`], with a chance for each direction.
    MixedEach(PerKind<f64>),
    /// Block of rank k with a chance proportional to k^-theta; ranks are scattered over the span.
    Zipf(f64),
    /// Self-similar: the share h (0 to 0.5) of the blocks gets 1 - h of the operations, and so on inside it. Scattered.
    Pareto(f64),
    /// Normal around the middle of the span, with this standard deviation in percent of the span; none outside it.
    Normal(f64),
    /// Zones one after another, each with its share of the operations; uniform inside.
    Zones(Vec<Zone>),
}

/// How a sequential order moves on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steps {
    /// From the start of one operation to the start of the next; 0 for the size of the operation.
    pub stride_bytes: u64,
    /// Left out behind each operation.
    pub hole_bytes: u64,
    /// From the end of the span to its beginning.
    pub backwards: bool,
    /// Where workers begin.
    pub start: Start,
}

/// Where the workers of a sequential order begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Each at its own share of the span.
    #[default]
    Spread,
    /// All at the first byte: the same blocks, one worker after another.
    Same,
    /// Each so many bytes behind the one before.
    Every(u64),
    /// All take the next block of one shared position.
    Interlocked,
}

/// From which position an operation goes on that is not drawn anew, in a mix of directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// From the last operation, whatever its direction.
    #[default]
    Shared,
    /// From the last operation of its own direction; all begin at the same place.
    Own,
    /// As [`Positions::Own`]. Where one direction reaches the end of the span, all of them begin again.
    OwnRestart,
}

/// A zone of a span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Share of the operations in percent; all zones sum to 100.
    pub access_percent: f64,
    /// How much of the span it is.
    pub size: ZoneSize,
}

/// How much of a span a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ZoneSize {
    /// Percent of the span.
    Percent(f64),
    /// Bytes; the last zone may ask for more than is left, and gets the rest.
    Bytes(u64),
    /// As many of these bytes as are left; a zone that has none left gets no operations, and the others share its part.
    UpTo(u64),
}

impl Positions {
    /// Whether it is what nobody has to say.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Order {
    /// Whether it is sequential or random; `None` for a blend of both.
    pub fn pattern(&self) -> Option<Pattern> {
        match self {
            Self::Sequential(_) => Some(Pattern::Sequential),
            Self::Mixed(_) | Self::MixedEach(_) => None,
            _ => Some(Pattern::Random),
        }
    }

    /// `sequential`, `random`, `zipf 1.1`, ...
    pub fn describe(&self) -> String {
        match self {
            Self::Sequential(steps) => {
                let mut words = String::from("sequential");
                if steps.backwards {
                    words += " backwards";
                }
                if steps.stride_bytes > 0 {
                    words += &format!(" stride {}", show_block(steps.stride_bytes));
                }
                if steps.hole_bytes > 0 {
                    words += &format!(" holes {}", show_block(steps.hole_bytes));
                }
                words
            }
            Self::Random => "random".into(),
            Self::Once => "random once".into(),
            Self::Mixed(percent) => format!("{percent} % random"),
            Self::MixedEach(PerKind { read, write, trim }) => {
                format!("{read} % of reads, {write} % of writes and {trim} % of trims random")
            }
            Self::Zipf(theta) => format!("zipf {theta}"),
            Self::Pareto(h) => format!("pareto {h}"),
            Self::Normal(deviation) => format!("normal {deviation} %"),
            Self::Zones(zones) => {
                let words = zones.iter().map(|z| {
                    let size = match z.size {
                        ZoneSize::Percent(p) => format!("{p} %"),
                        ZoneSize::UpTo(u64::MAX) => "the rest".into(),
                        ZoneSize::Bytes(b) | ZoneSize::UpTo(b) => show_bytes(b),
                    };
                    format!("{} % to {size}", z.access_percent)
                });
                format!("zones ({})", words.collect::<Vec<_>>().join(", "))
            }
        }
    }
}
