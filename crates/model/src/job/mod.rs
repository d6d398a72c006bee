//! The workload language: what is to be done to targets, with nothing left to a default.
//!
//! For: jobs as plain data, a file for each thing that is said of one. Not for: what the user said (that is [`crate::spec`]) nor
//! how it is carried out (the engine).

mod access;
mod cache;
mod create;
mod data;
mod engine_fallback;
mod flow;
mod flush;
mod ignored;
mod kind;
mod mix;
mod order;
mod pace;
mod priority;
mod replay;
mod rules;
mod shared;
mod sizes;
mod stream;
mod strided;
mod think;
mod turn;
mod verify;

pub use self::access::{Access, Line};
pub use self::cache::Cache;
pub use self::create::{Create, Filling};
pub use self::data::Data;
pub use self::engine_fallback::EngineFallback;
pub use self::flow::Flow;
pub use self::flush::{Every, Flush, SyncCall};
pub use self::ignored::IgnoredError;
pub use self::kind::Kind;
pub use self::mix::{Mix, Percent};
pub use self::order::{Order, Pattern, Positions, Start, Steps, Zone, ZoneSize};
pub use self::pace::{Arrivals, Batch, Bursts, Pace, StopRule};
pub use self::priority::{IoPriority, OpPriority};
pub use self::replay::{Changes, Original, OriginalKind, Replay, ReplayPace};
pub use self::rules::{FoundDepth, LatencyTarget, MinRate, Quantity, Spread, Steadied, Steady};
pub use self::shared::{Layout, OwnBlocks, Shared};
pub use self::sizes::{PerKind, Sizes};
pub use self::stream::{
    ALL_ERRORS, Advice, Clones, FALLOCATE, GROW, MAX_ERRORS, MemoryNodes, NEW, Options, Placement,
    SHORTEST_INTERVAL_NS, Sharing, Stream, WITHOUT_DATA,
};
pub use self::strided::Strided;
pub use self::think::{Quantile, Think, ThinkLaw};
pub use self::turn::Turn;
pub use self::verify::{Content, Verify};

use serde::{Deserialize, Serialize};

/// A complete workload: phases one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Job {
    /// What tables and findings call it: `RND4K Q32T1 read`.
    pub name: String,
    /// Phases in their order; at least one.
    pub phases: Vec<Phase>,
}

impl Job {
    /// What the result of a stream is called: the job's name, with what tells it from its other streams.
    pub fn result_name(&self, phase: usize, stream: usize) -> String {
        self.name.clone() + &self.part_name(phase, stream)
    }

    /// What tells a stream from the others of its job; empty where it has none.
    pub fn part_name(&self, phase: usize, stream: usize) -> String {
        let mut name = String::new();
        if self.phases.len() > 1 {
            name += &format!(", phase {}", phase + 1);
        }
        let streams = self.phases.get(phase).map_or(&[][..], |p| &p.streams);
        match streams.get(stream).map(|s| s.name.as_str()) {
            Some(own) if !own.is_empty() => name += &format!(", {own}"),
            _ if streams.len() > 1 => name += &format!(", stream {}", stream + 1),
            _ => {}
        }
        name
    }

    /// Whether any stream touches this target.
    pub fn touches(&self, target: usize) -> bool {
        self.phases.iter().flat_map(|p| &p.streams).any(|s| s.targets.contains(&target))
    }
}

/// A stretch of time in which streams run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Time before the measured window, in which operations run but do not count.
    pub warmup_ns: u64,
    /// Length of the measured window, where no stop rule of a stream ends it before.
    pub time_ns: u64,
    /// Time after the measured window, in which operations still run but do not count.
    #[serde(default)]
    pub cooldown_ns: u64,
    /// Streams that run together; at least one.
    pub streams: Vec<Stream>,
}
