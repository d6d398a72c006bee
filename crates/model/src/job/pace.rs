//! The pace of a stream: when operations are submitted, shares among streams, and the rules that end a stream or
//! choose its depth while it runs.

use crate::job::operations::{Kind, PerKind};
use crate::spec::number::word_of;
use serde::{Deserialize, Serialize};

/// Bursts that end after a time, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bursts {
    /// Length of a burst in ns.
    pub time_ns: u64,
    /// Length in ns of the pause after a burst, from the completion of the burst's last operation.
    pub pause_ns: u64,
    /// Number of operations after which a burst ends early; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u32>,
}

/// A pause between two bursts of a stream ([`Stream::pauses`](super::Stream::pauses)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Mean time in ns from the beginning of a burst to the beginning of the next, if operations took no time.
    pub cycle_ns: u64,
    /// Whether the next burst begins at a fixed time. Otherwise it begins after a pause that starts
    /// with the last completion.
    pub by_period: bool,
}

/// How many operations one call submits, and how many completions a worker waits for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Batch {
    /// Number of operations that one call submits; 1 submits each operation as soon as it is prepared.
    pub submit: u32,
    /// Number of completions that a worker waits for when the queue is full.
    pub complete: u32,
}

/// When operations are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Closed loop: as soon as the queue has room.
    #[default]
    Closed,
    /// Closed loop with a limit on the rate of all workers together; 0 for no limit.
    Limited {
        /// Operations per second.
        iops: f64,
        /// Bytes per second.
        bytes_per_s: f64,
    },
    /// Closed loop with a limit for each direction on the rate of all workers together; 0 for no limit.
    Each {
        /// Operations per second.
        iops: PerKind<f64>,
        /// Bytes per second.
        bytes_per_s: PerKind<f64>,
    },
    /// Open loop: at times that are fixed in advance for all workers together, independent of the target. Latency
    /// counts from these times.
    Open {
        /// Operations per second.
        iops: f64,
        /// Distribution of the gaps between the times of submission.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// Returns an open loop with this rate. The arrivals of an open loop remain; a closed loop gets Poisson arrivals.
    #[must_use]
    pub fn offering(self, iops: f64) -> Self {
        let arrivals = if let Self::Open { arrivals, .. } = self { arrivals } else { Arrivals::default() };
        Self::Open { iops, arrivals }
    }

    /// Whether the rate of a kind is limited, in operations or bytes per second.
    pub fn limits(&self, kind: Kind) -> bool {
        match self {
            Self::Closed => false,
            Self::Limited { iops, bytes_per_s } => *iops > 0.0 || *bytes_per_s > 0.0,
            Self::Each { iops, bytes_per_s } => iops.for_kind(kind) > 0.0 || bytes_per_s.for_kind(kind) > 0.0,
            Self::Open { .. } => true,
        }
    }
}

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential gaps, as with many independent users.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
    /// Batches at exponential gaps. The number of arrivals in a batch is geometric.
    Batch {
        /// Mean number of arrivals in a batch, at least 1.
        mean: f64,
    },
    /// Random arrivals in on periods and none in off periods; both have exponential lengths.
    OnOff {
        /// Mean length of an on period in ns.
        on_ns: u64,
        /// Mean length of an off period in ns.
        off_ns: u64,
    },
}

impl Arrivals {
    /// Returns the variance of the number of arrivals over a long time at this rate, divided by the mean number
    /// (Fischer and Meier-Hellstern, "The Markov-modulated Poisson process cookbook", 1993).
    pub fn dispersion(self, iops: f64) -> f64 {
        match self {
            Self::Poisson => 1.0,
            Self::Constant => 0.0,
            Self::Batch { mean } => 2.0 * mean - 1.0,
            Self::OnOff { on_ns, off_ns } => {
                let (on, off) = (on_ns as f64 / 1e9, off_ns as f64 / 1e9);
                1.0 + 2.0 * iops * off * off / (on + off).max(f64::MIN_POSITIVE)
            }
        }
    }
}

/// Limits on the work of a stream, counted over all its workers without warm-up. The first limit that is reached ends
/// the stream early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopRule {
    /// Maximum number of submitted operations; `None` for no limit.
    pub operations: Option<u64>,
    /// Maximum total bytes of the submitted operations; `None` for no limit.
    pub bytes: Option<u64>,
    /// Maximum time in ns since the stream's first operation; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

impl StopRule {
    /// Whether there is no limit. Then the stream ends with its phase.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The quantity compared with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency in ns.
    Latency,
}

impl Quantity {
    /// All quantities with the text that a user types.
    pub const WORDS: [(&'static str, Self); 3] =
        [("iops", Self::Iops), ("bw", Self::Bandwidth), ("lat", Self::Latency)];

    /// Returns the word for the quantity in the value of `steady-state`: `iops`, `bw` or `lat`.
    pub fn word(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

/// Ends a stream as soon as the last values of its rate or mean latency are steady. The rule of fio's `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steady {
    /// The quantity that has to be steady.
    pub quantity: Quantity,
    /// Whether the limit applies to the slope of a straight line through the values. Otherwise it applies to the largest
    /// distance of a value from the mean of all values.
    pub slope: bool,
    /// The limit, in percent of the mean or in the unit of the quantity. A slope is the change from one value to the
    /// next.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub percent: bool,
    /// Time in ns that all compared values together cover.
    pub window_ns: u64,
    /// Time in ns at the beginning of the measured window that no value covers.
    pub after_ns: u64,
    /// Time in ns covered by each value.
    pub every_ns: u64,
}

impl Steady {
    /// Returns the number of values that are compared.
    pub fn count(&self) -> usize {
        (self.window_ns / self.every_ns.max(1)).max(1) as usize
    }

    /// Default of `every_ns`.
    pub const EVERY_NS: u64 = 1_000_000_000;

    /// Formats the rule as typed: `iops_slope:0.5%:60s`, followed by `after_ns` and `every_ns` if they are not the
    /// defaults.
    pub fn to_flag(&self) -> String {
        let Self { limit, percent, window_ns, after_ns, every_ns, .. } = *self;
        let seconds = |ns: u64| format!("{}s", ns as f64 / 1e9);
        let after = match (after_ns, every_ns) {
            (0, Self::EVERY_NS) => String::new(),
            (after, Self::EVERY_NS) => format!(":{}", seconds(after)),
            (after, every) => format!(":{}:{}", seconds(after), seconds(every)),
        };
        let sign = match self.quantity {
            _ if percent => "%",
            Quantity::Latency => "ns",
            Quantity::Iops | Quantity::Bandwidth => "",
        };
        format!("{}:{limit}{sign}:{}{after}", self.name(), seconds(window_ns))
    }

    /// Returns the name of the compared quantity: `iops`, `lat_slope`.
    pub fn name(&self) -> String {
        format!("{}{}", self.quantity.word(), if self.slope { "_slope" } else { "" })
    }
}

/// The last values of a stream that has to become steady.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadied {
    /// Whether the stream became steady. Then the rule ended it.
    pub attained: bool,
    /// Operations per second, the oldest first.
    pub iops: Vec<f64>,
    /// Bytes per second.
    pub bytes_per_s: Vec<f64>,
    /// Mean latencies in ns; 0 if nothing completed.
    pub latency_ns: Vec<f64>,
}

/// Mean, deviation and slope of the values of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean of the values.
    pub mean: f64,
    /// The largest distance of a value from the mean.
    pub deviation: f64,
    /// Slope of the least squares line through the values: the change from one value to the next.
    pub slope: f64,
}

impl Steadied {
    /// Returns the values of one quantity.
    pub fn values(&self, quantity: Quantity) -> &[f64] {
        match quantity {
            Quantity::Iops => &self.iops,
            Quantity::Bandwidth => &self.bytes_per_s,
            Quantity::Latency => &self.latency_ns,
        }
    }

    /// Returns mean, deviation and slope of the values.
    pub fn spread(&self, quantity: Quantity) -> Spread {
        let values = self.values(quantity);
        let count = values.len() as f64;
        if values.is_empty() {
            return Spread::default();
        }
        let mean = values.iter().sum::<f64>() / count;
        let deviation = values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
        let middle = (count - 1.0) / 2.0;
        let (mut product, mut square) = (0.0, 0.0);
        for (at, value) in values.iter().enumerate() {
            let x = at as f64 - middle;
            product += x * (value - mean);
            square += x * x;
        }
        Spread { mean, deviation, slope: if square > 0.0 { product / square } else { 0.0 } }
    }

    /// Returns the number that is compared with the limit of a rule, in the unit of the limit. `None` with too few
    /// values, and for a percentage of a zero mean.
    pub fn criterion(&self, rule: &Steady) -> Option<f64> {
        let Spread { mean, deviation, slope } = self.spread(rule.quantity);
        let value = if rule.slope { slope } else { deviation };
        if self.iops.len() < rule.count() || (rule.percent && mean <= 0.0) {
            return None;
        }
        Some(if rule.percent { 100.0 * value / mean } else { value })
    }

    /// Whether the values are steady by a rule.
    pub fn are_steady(&self, rule: &Steady) -> bool {
        self.criterion(rule).is_some_and(|criterion| criterion.abs() < rule.limit)
    }
}

/// Finds the largest depth, up to that of the stream, at which enough operations meet a latency. The search then ends
/// the stream, unless it lasts for the whole run. The rule of fio's `latency_target`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyTarget {
    /// Maximum latency in ns.
    pub ns: u64,
    /// Percentage of the operations of a window that have to meet the latency.
    pub percent: f64,
    /// Length of a window in ns.
    pub window_ns: u64,
    /// Whether the depth varies until the end of the run, and the results include all windows. Otherwise the results are
    /// those of the last window.
    #[serde(rename = "goes_on")]
    pub searches_whole_run: bool,
}

impl LatencyTarget {
    /// Suffix of a typed latency target with `searches_whole_run`.
    pub const WHOLE_RUN_SUFFIX: &'static str = ":run";

    /// Formats the target as typed: `500us:99.9%:5s`.
    pub fn to_flag(&self) -> String {
        let Self { ns, percent, window_ns, searches_whole_run } = *self;
        let rest = if searches_whole_run { Self::WHOLE_RUN_SUFFIX } else { "" };
        format!("{}us:{percent}%:{}s{rest}", ns as f64 / 1e3, window_ns as f64 / 1e9)
    }
}

/// The depth that a worker found for a latency target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundDepth {
    /// Operations in flight.
    pub depth: u32,
    /// Whether the search had settled on this depth: all figures are then from this depth. `false` if the run ended
    /// first, or if the search lasts for the whole run.
    pub is_last: bool,
}

/// Ends a run with an error as soon as a direction of a stream is slower than a minimum rate. The rule of fio's
/// `rate_min`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinRate {
    /// Operations or bytes; never latency.
    pub quantity: Quantity,
    /// Minimum rate per second of each direction; 0 for no limit.
    pub least: PerKind<u64>,
    /// Time in ns over which the rate is averaged.
    pub every_ns: u64,
}

impl MinRate {
    /// Time in ns at the beginning of a stream during which the rate is not checked.
    pub const SETTLES_NS: u64 = 2_000_000_000;

    /// Returns the limit of a direction; `None` without one.
    pub fn for_kind(&self, kind: Kind) -> Option<u64> {
        Some(self.least.for_kind(kind)).filter(|least| *least > 0)
    }

    /// Whether every direction has the same limit, as after `iops:1000` without directions.
    pub fn has_equal_limits(&self) -> bool {
        self.least == PerKind::all(self.least.read)
    }

    /// Removes the limits of directions that the stream does not have.
    #[must_use]
    pub fn for_kinds(mut self, is_done: impl Fn(Kind) -> bool) -> Self {
        let PerKind { read, write, trim } = &mut self.least;
        for (kind, least) in [(Kind::Read, read), (Kind::Write, write), (Kind::Trim, trim)] {
            if !is_done(kind) {
                *least = 0;
            }
        }
        self
    }

    /// Formats the limits as typed: `iops:read=1000,write=500:1s`.
    pub fn to_flag(&self) -> String {
        let each = if self.has_equal_limits() {
            self.least.read.to_string()
        } else {
            self.least.named().map(|(word, least)| format!("{word}={least}")).collect::<Vec<_>>().join(",")
        };
        format!("{}:{each}:{}s", self.quantity.word(), self.every_ns as f64 / 1e9)
    }
}

/// A stream's share of the operations in a group of concurrent streams. Each worker of the stream has the weight
/// `weight`. A worker that is ahead of its share waits for the other workers of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Weight of each worker of the stream among the running workers of the group; at least 1.
    pub weight: u32,
    /// Name of the group, a number that the user chose. Streams with the same number form a group.
    #[serde(default)]
    pub group: u32,
    /// Time in ns after which a worker that is ahead of its share checks again; 0 for as soon as possible.
    #[serde(default)]
    pub pause_ns: u64,
}

impl Flow {
    /// Returns text such as `share 3 of flow 0`.
    pub fn describe(&self) -> String {
        format!("share {} of flow {}", self.weight, self.group)
    }
}

#[test]
fn steadiness_limits_distance_or_slope() {
    let rule = |name: &str, limit, percent| Steady {
        quantity: Quantity::Iops,
        slope: name == "slope",
        limit,
        percent,
        window_ns: 4_000_000_000,
        after_ns: 0,
        every_ns: 1_000_000_000,
    };
    let steadied = |iops: &[f64]| Steadied { iops: iops.to_vec(), ..Steadied::default() };
    let rising = steadied(&[100.0, 110.0, 120.0, 130.0]);
    assert_eq!(rising.spread(Quantity::Iops), Spread { mean: 115.0, deviation: 15.0, slope: 10.0 });
    assert_eq!(rising.criterion(&rule("distance", 1.0, false)), Some(15.0));
    assert!(
        rising.are_steady(&rule("distance", 15.1, false))
            && !rising.are_steady(&rule("distance", 15.0, false))
    );
    assert!(
        rising.are_steady(&rule("distance", 13.1, true)) && !rising.are_steady(&rule("distance", 13.0, true))
    );
    assert!(rising.are_steady(&rule("slope", 8.7, true)) && !rising.are_steady(&rule("slope", 8.6, true)));
    // A slope of -10 is as unsteady as one of 10.
    assert!(!steadied(&[130.0, 120.0, 110.0, 100.0]).are_steady(&rule("slope", 10.0, false)));
    // Too few values, and a percentage of a zero mean.
    assert!(!steadied(&[100.0, 100.0, 100.0]).are_steady(&rule("distance", 50.0, true)));
    assert!(!steadied(&[0.0; 4]).are_steady(&rule("distance", 50.0, true)));
    assert!(steadied(&[0.0; 4]).are_steady(&rule("distance", 50.0, false)));
    assert_eq!(rule("slope", 0.5, true).to_flag(), "iops_slope:0.5%:4s");
}
