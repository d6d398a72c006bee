//! A fleet: what is known of a measurement on several hosts, and what is concluded from it.
//!
//! For: the values between hosts, the merged session and the report. Not for: how hosts speak with one another (`src/fleet`), nor for
//! concluding (crate `analysis`).

mod checked;

use crate::job::Kind;
use crate::verdict::Verdict;
pub use self::checked::{CheckedOnHosts, HostsFinding, Limited, Which};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which part of a measurement on several hosts this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Rank of the host, from 0.
    pub rank: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// How many others of them run on the same kernel, whose counters have their requests too.
    #[serde(default)]
    pub neighbours: u32,
}

/// What was seen of a measurement on several hosts, beside the runs, which are merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// By rank.
    pub hosts: Vec<HostSeen>,
    /// What checks said on them, by check and result.
    #[serde(default)]
    pub asked: Vec<CheckedOnHosts>,
    /// What kept them from higher rates, by result and limiter.
    #[serde(default)]
    pub limited: Vec<Limited>,
    /// How each run began and ended, in the order of happening.
    pub runs: Vec<RunSeen>,
    /// What differs between the hosts, in sentences.
    pub differences: Vec<String>,
    /// What ended it before its time, with the host that it happened on.
    pub lost: Option<Lost>,
}

/// A host that was lost, or that ended the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lost {
    /// Its name.
    pub host: String,
    /// What happened, in words that follow the name: `has been silent for more than 3 s`.
    pub why: String,
    /// When that was noticed, in seconds since the session began.
    pub at_s: f64,
}

/// What is kept of each host: of thousands rank 0 has all. What is the same for many is told once ([`CheckedOnHosts`], [`Limited`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSeen {
    /// Number among the hosts, from 0.
    #[serde(default)]
    pub rank: u32,
    /// What it is called, with its rank where several ranks are on it.
    pub name: String,
    /// Its session file; `None` where it kept none, or was lost.
    pub session: Option<String>,
    /// The verdict on what it measured; `None` where it was lost before it could say.
    pub verdict: Option<Verdict>,
    /// Why that is the verdict.
    pub reason: String,
    /// One per result of the report.
    pub results: Vec<HostResult>,
    /// How many findings its checks have, and how many could not look.
    #[serde(default)]
    pub findings: [u32; 2],
    /// Number of the kernel that it runs on: hosts of one number are one machine. `None` where that was not told.
    #[serde(default)]
    pub kernel: Option<u32>,
    /// Bytes of each target as it was made there, in the last run; empty where there was none.
    #[serde(default)]
    pub target_bytes: Vec<u64>,
}

/// A result of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Name of the result, as in the report.
    pub name: String,
    /// What was really measured there, where that is something else than the plain name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Operations per second; `None` where there is no number.
    pub iops: Option<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Option<f64>,
    /// Median and 99th percentile of latency in ns by kind.
    pub latency_ns: Vec<(Kind, [Option<u64>; 2])>,
    /// CPU time of the workers per operation in ns.
    pub cpu_ns_per_op: Option<f64>,
    /// What kept it from being higher, in a word or two.
    pub limiter: String,
}

/// How a run began and ended on all hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSeen {
    /// Index of the job, of its phase, how many times the job was measured before, and this very run.
    pub which: [u32; 4],
    /// Operations per second that were offered, where the strategy chose them: loads of a curve differ by this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// ns between the first operations of the first and of the last host, by corrected clocks.
    pub spread_ns: Option<u64>,
    /// ns by which the clock of a host may be off: half of the round trip that it was set by, of the worst host.
    pub clock_error_ns: Option<u64>,
    /// Rank of the host that began last.
    pub last: Option<u32>,
    /// ns in which the load of all hosts ran.
    pub common_ns: u64,
    /// ns from the first operation of any host to the last one of any.
    pub longest_ns: u64,
}

/// What a report says of the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetFigures {
    /// By rank.
    pub hosts: Vec<HostFigures>,
    /// One per result that has a rate on two hosts or more.
    pub fairness: Vec<Fairness>,
    /// How runs began; `None` where none did.
    pub start: Option<StartFigures>,
    /// What differs between the hosts, in sentences.
    pub differences: Vec<String>,
    /// What ended it before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// What a report says of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// What it is called, with its rank where several ranks are on it.
    pub name: String,
    /// Number among the hosts, from 0.
    pub rank: u32,
    /// Its session file, on that host; `None` where there is none.
    pub session: Option<String>,
    /// The verdict on what it measured; `None` where it was lost before it could say.
    pub verdict: Option<Verdict>,
    /// Why that is the verdict.
    pub reason: String,
    /// How many findings its checks have there, and how many could not look.
    #[serde(default)]
    pub findings: [u32; 2],
    /// One per result of the report.
    pub results: Vec<HostRate>,
}

/// What a host contributed to a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostRate {
    /// Name of the result.
    pub name: String,
    /// The verdict on it there.
    pub verdict: Verdict,
    /// Operations per second: geometric mean over runs; `None` where there is no number.
    pub iops: Option<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Option<f64>,
    /// Its share of the operations of all hosts.
    pub share: Option<f64>,
    /// Median of latency in ns, by direction (`read`).
    pub p50_ns: BTreeMap<String, Option<u64>>,
    /// 99th percentile of latency in ns.
    pub p99_ns: BTreeMap<String, Option<u64>>,
    /// CPU time of the workers per operation in ns.
    pub cpu_ns_per_op: Option<f64>,
    /// What kept it from being higher, in a word or two.
    pub limiter: String,
}

/// How evenly a result is divided among the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Name of the result.
    pub name: String,
    /// The least rate of a host by the mean rate; 1 where all are alike.
    pub least_by_mean: f64,
    /// The host that is far slower than the others; `None` where none is.
    pub straggler: Option<String>,
    /// One sentence about it, with its evidence; empty where there is none.
    pub sentence: String,
}

/// How runs began on all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartFigures {
    /// Runs that began on all hosts.
    pub runs: u32,
    /// Median over them of the ns between the first operations of the first and of the last host.
    pub spread_ns: u64,
    /// The largest.
    pub spread_most_ns: u64,
    /// ns by which the clock of a host may be off, of the worst run.
    pub clock_error_ns: u64,
    /// Runs in which the host that began last did so later than the clocks may be off.
    pub outside: u32,
    /// Least share of a run's time in which the load of all hosts ran.
    pub common_share: f64,
}
