//! Studies: the question that the jobs of a plan answer together, and the answer in the report.
//!
//! [`Study`] is part of a plan, [`Studied`] part of a report; both have one JSON key for each study. This file also
//! contains the data of the smaller studies: interfaces, targets, hosts, and the load curve. Sweeps, profiles and
//! commands have their own files.

use crate::Known;
use crate::command::{CommandResults, CommandStudy};
use crate::comparison::Pair;
use crate::evidence::Extents;
use crate::figures::{LayerComparison, Layers, NotMeasured, or_sentences};
use crate::finding::CheckId;
use crate::job::Arrivals;
use crate::profile::{ToolLayout, ToolResults};
use crate::sweep::{Grid, Sweep};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Declares an enum of studies, and the struct that stores it in JSON with one key per study. Each study gets an
/// accessor, and a conversion from its data with `into`.
macro_rules! keyed_by_study {
    (
        $(#[$enum_attr:meta])* $name:ident { $(#[$jobs_doc:meta])* Jobs, $( $(#[$bare_doc:meta])* $bare:ident($bare_type:ty) )? }
        $(#[$keys_attr:meta])* $keys:ident {
            $( $(#[$key_attr:meta])* $key:ident: $variant:ident($type:ty), $get:ident -> $plain:ty; )*
        }
    ) => {
        $(#[$enum_attr])*
        pub enum $name {
            $(#[$jobs_doc])*
            #[default]
            Jobs,
            $( $(#[$bare_doc])* $bare($bare_type), )?
            $( #[doc = concat!("Data of the key `", stringify!($key), "`.")] $variant($type), )*
        }

        $(#[$keys_attr])*
        pub(crate) struct $keys {
            $( $(#[$key_attr])* #[serde(skip_serializing_if = "Option::is_none")] $key: Option<$type>, )*
        }

        impl $name {
            $(
                #[doc = concat!("Returns the data of a study of this kind; `None` for other studies (key `", stringify!($key), "`).")]
                pub fn $get(&self) -> Option<&$plain> {
                    if let Self::$variant(data) = self { Some(data) } else { None }
                }
            )*
        }

        $( impl From<$type> for $name {
            fn from(data: $type) -> Self {
                Self::$variant(data)
            }
        } )*

        $( impl From<$bare_type> for $name {
            fn from(data: $bare_type) -> Self {
                Self::$bare(data)
            }
        } )?

        impl From<$keys> for $name {
            fn from(keys: $keys) -> Self {
                let found = [$( keys.$key.map(Self::$variant) ),*];
                found.into_iter().flatten().next().unwrap_or_default()
            }
        }

        impl From<$name> for $keys {
            fn from(study: $name) -> Self {
                match study {
                    $( $name::$variant(data) => Self { $key: Some(data), ..Self::default() }, )*
                    _ => Self::default(),
                }
            }
        }
    };
}

keyed_by_study! {
    /// The question that the jobs of a plan answer together.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(from = "StudyKeys", into = "StudyKeys")]
    Study {
        /// No common question: independent jobs.
        Jobs,
        /// The load that meets a latency target. This study has no JSON key, because the plan's strategy contains the
        /// target.
        Limit(LatencyTarget)
    }
    /// JSON keys of a study in a plan; at most one is present.
    #[derive(Default, Serialize, Deserialize)]
    StudyKeys {
        layers: Layers(LayerComparison), layers -> LayerComparison;
        sweep: Sweep(Grid), grid -> Grid;
        #[serde(rename = "contest")]
        comparison: Interfaces(InterfaceComparison), interfaces -> InterfaceComparison;
        form: Profile(ToolLayout), profile -> ToolLayout;
        #[serde(rename = "beside")]
        targets: Targets(TargetComparison), targets -> TargetComparison;
        scaling: Hosts(HostSteps), hosts -> HostSteps;
        commands: Commands(CommandStudy), commands -> CommandStudy;
    }
}

keyed_by_study! {
    /// The result of a study.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(from = "StudiedKeys", into = "StudiedKeys")]
    Studied {
        /// No result in addition to those of the jobs.
        Jobs,
    }
    /// JSON keys of a study in a report; at most one is present, none for independent jobs.
    #[derive(Default, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    StudiedKeys {
        /// The same work at each layer, from the device up to the file system; absent if not
        /// measured.
        layers: Layers(Layers), layers -> Layers;
        /// The same work at every setting of a grid; absent if not measured.
        sweep: Sweep(Box<Sweep>), sweep -> Sweep;
        /// The same bytes through every interface; absent if not measured.
        api: Interfaces(Api), interfaces -> Api;
        /// The results in the layout of a well-known tool; absent if not requested.
        card: Profile(ToolResults), profile -> ToolResults;
        /// Latency against offered load; absent if not measured.
        limit: Limit(LoadCurve), curve -> LoadCurve;
        /// The same tests on several targets; absent with one target.
        #[serde(rename = "beside")]
        targets: Targets(Targets), targets -> Targets;
        /// The same work on growing numbers of hosts; absent if not measured.
        scaling: Hosts(Scaling), hosts -> Scaling;
        /// The user's commands with their runs; absent if none was timed.
        commands: Commands(Box<CommandResults>), commands -> CommandResults;
    }
}

impl Study {
    /// Returns the latency target of a search for a load; `None` for other studies.
    pub fn latency_target(&self) -> Option<&LatencyTarget> {
        if let Self::Limit(target) = self { Some(target) } else { None }
    }

    /// Whether each job is prepared on its own: a job that this machine refuses is left out of the table, and the others are measured.
    pub fn has_separate_jobs(&self) -> bool {
        matches!(self, Self::Interfaces(_) | Self::Sweep(_))
    }

    /// Whether runs of one round are compared with each other. A round then counts completely or
    /// not at all.
    pub fn is_paired(&self) -> bool {
        matches!(self, Self::Layers(_) | Self::Targets(_) | Self::Hosts(_))
    }

    /// Whether the study compares jobs on a cold cache: user files that are read through the page cache are evicted too.
    pub fn starts_cold(&self) -> bool {
        self.has_separate_jobs() || matches!(self, Self::Layers(_))
    }

    /// Whether there may be hundreds of results. The report then omits their time series.
    pub fn has_many_results(&self) -> bool {
        self.has_separate_jobs() || matches!(self, Self::Limit(_))
    }

    /// Whether another session can measure single jobs of this study again (`--against`).
    pub fn can_be_rerun(&self) -> bool {
        !matches!(self, Self::Layers(_) | Self::Limit(_))
    }
}

impl Studied {
    /// Whether the report's table lists the results of the jobs: for independent jobs and for
    /// profiles in a tool's layout.
    pub fn shows_results(&self) -> bool {
        matches!(self, Self::Jobs | Self::Profile(_))
    }
}

/// The part of a plan that compares interfaces: the jobs that do the same work through one interface each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceComparison {
    /// One candidate for each job that participates, in the order of the table.
    #[serde(rename = "entrants")]
    pub candidates: Vec<Candidate>,
    /// Interfaces that cannot be tried.
    #[serde(deserialize_with = "or_sentences")]
    pub missing: Vec<NotMeasured>,
}

/// One interface that does one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Index of the job.
    pub job: usize,
    /// Name in the table: `pread`.
    pub interface: String,
    /// Work of the job, the heading of its rows: `4K random read`.
    pub work: String,
    /// Whether the interface delivers the bytes into the program's memory. An interface that moves bytes only within the kernel cannot be
    /// recommended.
    #[serde(rename = "sees")]
    pub delivers_bytes: bool,
}

/// A comparison of interfaces that moved the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Api {
    /// One row for each interface and work, in the order of the table.
    pub rows: Vec<ApiRow>,
    /// Interfaces that could not be measured, each with the reason in one sentence.
    pub missing: Vec<String>,
    /// Interfaces that could not be measured, with name and reason in separate fields.
    #[serde(default)]
    pub not_measured: Vec<NotMeasured>,
    /// The recommendation for each kind of work that has one.
    pub advice: Vec<Advice>,
    /// The reason for each kind of work that has no recommendation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_advice: Vec<NoAdvice>,
}

/// Figures of one interface for one work, over all its runs. "Per byte" and "per MiB" count the bytes that the
/// program requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiRow {
    /// `pread`.
    pub interface: String,
    /// `4K random read`.
    pub work: String,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Index of this row's result in the report's `results`.
    pub result: usize,
    /// 10^6 bytes per second without the final sync; `None` if a finding invalidates it or there is no number.
    pub mb_per_s: Option<f64>,
    /// 95 % interval of `mb_per_s` over runs; `None` with fewer than three runs.
    pub mb_per_s_interval: Option<[f64; 2]>,
    /// Operations per second; `None` if `mb_per_s` is `None`.
    pub iops: Option<f64>,
    /// 10^6 bytes per second including the final sync; `None` if nothing was written or the sync failed.
    pub synced_mb_per_s: Option<f64>,
    /// 95 % interval of `synced_mb_per_s` over runs; `None` with fewer than three runs.
    pub synced_mb_per_s_interval: Option<[f64; 2]>,
    /// Seconds from the first operation to the last completion, without the final sync: mean over runs. `None` if a
    /// finding invalidates it or no run was complete.
    #[serde(default)]
    pub run_seconds: Option<f64>,
    /// Bytes that a run moved in `run_seconds`: mean over runs; `None` if `run_seconds` is `None`.
    #[serde(default)]
    pub run_bytes: Option<f64>,
    /// Median of latency in ns; `None` with too few operations.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency in ns; `None` with too few operations.
    pub p99_ns: Option<u64>,
    /// CPU time of the process in user space, in ns per byte; `None` if it was not counted.
    pub user_ns_per_byte: Option<f64>,
    /// CPU time of the process in the kernel, in ns per byte; `None` if it was not counted.
    pub system_ns_per_byte: Option<f64>,
    /// System calls per MiB, counted by the kernel in a trial before the first run, or the reason why they were not
    /// counted.
    pub calls_per_mib: Known<f64>,
    /// Page faults without I/O, per MiB; `None` if they were not counted.
    pub minor_faults_per_mib: Option<f64>,
    /// Page faults that waited for I/O, per MiB; `None` if they were not counted.
    pub major_faults_per_mib: Option<f64>,
    /// Bytes that the topmost device read and wrote, per byte that the program requested; includes the final sync if
    /// there is one. Or the reason why they were not counted.
    pub device_bytes_per_byte: Known<[f64; 2]>,
    /// Bytes that a run issued divided by the span, mean over runs: the share of the span that a run touched, if no block
    /// was touched twice. `None` if no run was complete.
    pub coverage: Option<f64>,
    /// Share of the span that each run was planned to touch; `None` if runs ended only by their time.
    #[serde(default)]
    pub planned_coverage: Option<f64>,
    /// Maximum number of the target's pages that were cached when a run began, or the reason why it is unknown. 0 is a
    /// cold start.
    pub cached_pages_at_start: Known<u64>,
    /// How the file was stored before the first run; `Err` if the first write truncates the file.
    pub stored_before: Known<Extents>,
    /// How the file was stored after the last final sync; `None` if nothing was written.
    pub stored_after: Option<Known<Extents>>,
    /// Ids of findings that invalidate, relabel or bias this row. Leaves out the findings that a comparison of
    /// interfaces is expected to have.
    pub findings: Vec<CheckId>,
}

/// The recommended interface for a kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// `4K random read`.
    pub work: String,
    /// The recommended interface: the simplest one that is as fast as the fastest one, or at most 5 % slower.
    pub interface: String,
    /// All other interfaces that cannot be distinguished from the fastest one, or are at most 5 % slower.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// With 95 % confidence no other interface is faster by more than this share: 0.04 for 4 %;
    /// `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_faster_at_most: Option<f64>,
    /// The recommendation with its numbers, in one sentence.
    pub sentence: String,
}

/// A kind of work without a recommended interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoAdvice {
    /// `4K random read`.
    pub work: String,
    /// The reason, without a full stop at the end.
    pub why: String,
}

/// The part of a plan that compares targets: the jobs that run the same tests on one target each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetComparison {
    /// Targets in the order in which they were named; the first is the reference.
    pub sides: Vec<TargetJobs>,
}

/// The tests of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetJobs {
    /// Name in tables: the last part of the path that distinguishes the target from the others.
    pub name: String,
    /// Names of the tests and indices of their jobs.
    pub tests: Vec<(String, usize)>,
}

/// How the jobs of a plan form tests. The first `targets` jobs are the first test, one job per
/// target; the next `targets` jobs are the second test. Each remaining job is a test that some
/// target lacks, and is its own group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetLayout {
    /// Number of tests that every target has.
    pub tests: u32,
    /// Number of targets.
    pub targets: u32,
}

impl TargetLayout {
    /// Returns the index of a job's group. The tests that every target has come first, then one group for each remaining job.
    pub fn group(self, job: usize) -> usize {
        let compared = self.compared_jobs();
        if job < compared { job / self.targets.max(1) as usize } else { self.tests as usize + job - compared }
    }

    /// Returns the indices of the jobs of a group.
    pub fn jobs(self, group: usize) -> Range<usize> {
        let (tests, targets) = (self.tests as usize, self.targets as usize);
        if group < tests {
            return group * targets..(group + 1) * targets;
        }
        let job = self.compared_jobs().saturating_add(group - tests);
        job..job + 1
    }

    /// Returns the number of jobs whose test runs on every target.
    fn compared_jobs(self) -> usize {
        (self.tests as usize).saturating_mul(self.targets as usize)
    }
}

impl TargetComparison {
    /// Returns the layout of the jobs, which must already be in the order that [`TargetLayout`] describes.
    pub fn layout(&self) -> TargetLayout {
        let on_all = |(name, _): &&(String, usize)| {
            self.sides.iter().all(|side| side.tests.iter().any(|(other, _)| other == name))
        };
        let tests = self.sides.first().map_or(0, |first| first.tests.iter().filter(on_all).count());
        TargetLayout { tests: tests as u32, targets: self.sides.len() as u32 }
    }
}

/// The same tests on several targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Targets {
    /// Names of the targets, in the order in which they were named.
    pub names: Vec<String>,
    /// One row for each test and target: test by test, the first target first.
    pub rows: Vec<TargetRow>,
}

/// One test on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetRow {
    /// `RND4K Q1T1 read`.
    pub test: String,
    /// Index of the target in [`Targets::names`].
    pub target: usize,
    /// Index of this row's result in the report's `results`.
    pub result: usize,
    /// The comparison of the first target (A) with this one (B); `None` for the first target, and if the first target
    /// does not have the test.
    pub against: Option<Pair>,
}

/// The number of hosts that run each job of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSteps {
    /// For each job the number of hosts that run it, ascending. These are the hosts with the lowest ranks.
    pub hosts: Vec<u32>,
}

impl HostSteps {
    /// Returns how many of `all` hosts run a job: those with the lowest ranks.
    pub fn participants(&self, job: usize, all: usize) -> usize {
        self.hosts.get(job).map_or(all, |hosts| all.min(*hosts as usize))
    }

    /// Whether the host of a rank runs a job.
    pub fn participates(&self, rank: u32, job: usize) -> bool {
        (rank as usize) < self.participants(job, usize::MAX)
    }
}

/// The same work on growing numbers of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// One row for each number of hosts, ascending.
    pub rows: Vec<ScalingRow>,
    /// The knee: with more hosts than this, the latency grows faster than the rate. `None` if fewer than two numbers of
    /// hosts have a rate.
    pub knee: Option<ScalingKnee>,
}

/// The result for one number of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingRow {
    /// Number of hosts.
    pub hosts: u32,
    /// Index of this row's result in the report's `results`.
    pub result: usize,
    /// Mean operations per second of a host; `None` if there is no number.
    pub iops_per_host: Option<f64>,
    /// The total rate divided by the total rate with the fewest hosts; `None` if either rate is unknown.
    pub speed_up: Option<f64>,
    /// The rate per host divided by the rate per host of the smallest number of hosts: 1 for perfect scaling; `None` if either rate is
    /// unknown.
    pub efficiency: Option<f64>,
    /// 95 % interval of the efficiency, from runs of the same rounds; `None` for the smallest number of hosts, and with
    /// fewer than three runs.
    pub efficiency_interval: Option<[f64; 2]>,
}

/// The number of hosts with the greatest power, which is rate divided by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingKnee {
    /// The number of hosts.
    pub hosts: u32,
    /// Whether larger numbers of hosts were measured and have less power.
    pub reached: bool,
    /// Whether the knee is certain: the confidence intervals exclude every other number of hosts.
    pub sure: bool,
}

/// Latency against offered load, up to and beyond the capacity of the storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadCurve {
    /// Operations per second of the closed loop, to which all shares refer: geometric mean over
    /// runs, but at most the limit of a cgroup. `None` if the loop has no complete run or a finding
    /// invalidates it.
    pub capacity_iops: Option<f64>,
    /// 95 % interval of the capacity over runs; `None` with fewer than three.
    pub capacity_interval: Option<[f64; 2]>,
    /// Index of the closed loop's result; `None` if none of its runs was complete.
    pub capacity_result: Option<usize>,
    /// Loads that were offered in an open loop, ascending.
    pub points: Vec<LoadPoint>,
    /// The knee: above this load, the latency grows faster than the rate. `None` if too few loads have a latency.
    pub knee: Option<Knee>,
    /// Whether the latency target is met, and up to which load; `None` without a latency target.
    #[serde(rename = "promise")]
    pub latency_target: Option<MetLoad>,
    /// The headline with all its numbers, in one sentence.
    pub sentence: String,
    /// Indices of the results that support the headline.
    #[serde(rename = "rests_on")]
    pub headline_results: Vec<usize>,
}

/// If fathom's own lateness is more than this share of a percentile in an open loop, the percentile
/// is withheld.
pub const LATE_SHARE: f64 = 0.1;

/// Why the runs do not decide whether a load meets the latency target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// The latency exceeds the target only because operations were submitted late.
    Lateness,
    /// One run does not show how much runs vary.
    OneRun,
    /// A backlog grew, and the service times do not prove that the storage caused it.
    Overload,
    /// There are too few operations for the percentile.
    FewOperations,
    /// The percentile is above the target, but a bound of its confidence interval is within the target.
    MayMeet,
    /// The percentile is within the target, but a bound of its confidence interval is above the target.
    MayMiss,
}

impl UndecidedReason {
    /// Returns the word in a table, the reason, and what to change.
    pub fn describe(self) -> [&'static str; 3] {
        let longer = "use a longer --time or more --runs";
        match self {
            Self::Lateness => [
                "late",
                "the latency exceeds the target only because operations were submitted late",
                "stop other programs, or use more --depth or --workers",
            ],
            Self::OneRun => ["1 run", "one run proves nothing", "use a larger --budget"],
            Self::Overload => {
                let reason = "a backlog grew, but the service times do not prove that the storage caused it";
                ["backlog", reason, "use more --depth or --workers"]
            }
            Self::FewOperations => {
                ["too short", "there are too few operations to judge the percentile", "use a longer --time"]
            }
            Self::MayMeet => [
                "may meet",
                "the percentile is above the target, but a bound of its 99 % confidence interval is within the target",
                longer,
            ],
            Self::MayMiss => [
                "may miss",
                "the percentile is within the target, but a bound of its 99 % confidence interval is above the target",
                longer,
            ],
        }
    }
}

impl LoadPoint {
    /// Returns why the runs do not decide whether the load meets the target; `None` if they decide it, or if a finding invalidates the
    /// measurement.
    pub fn undecided_reason(&self, target: &MetLoad) -> Option<UndecidedReason> {
        if self.met.is_some() || self.state == LoadState::Void {
            return None;
        }
        let is_above = |all: &BTreeMap<String, Option<u64>>| {
            all.get(&target.percentile).copied().flatten().is_some_and(|ns| ns > target.latency_ns)
        };
        let misses = is_above(&self.percentiles_ns);
        Some(if misses && !is_above(&self.service_percentiles_ns) && self.is_late_at(&target.percentile) {
            UndecidedReason::Lateness
        } else if self.runs < 2 {
            UndecidedReason::OneRun
        } else if self.state == LoadState::Overload {
            UndecidedReason::Overload
        } else if self.has_too_few_operations(&target.percentile) {
            UndecidedReason::FewOperations
        } else if misses {
            UndecidedReason::MayMeet
        } else {
            UndecidedReason::MayMiss
        })
    }

    /// Whether the load was served, but has too few operations for a percentile. Its runs may nevertheless prove on which
    /// side of the target the percentile is.
    pub fn has_too_few_operations(&self, percentile: &str) -> bool {
        let is_served = matches!(self.state, LoadState::Served | LoadState::Late);
        is_served && self.percentiles_ns.get(percentile).copied().flatten().is_none()
    }

    /// Whether fathom's own lateness may be more than [`LATE_SHARE`] of a percentile. The lower bound of the percentile then matters too.
    pub fn is_late_at(&self, percentile: &str) -> bool {
        self.lateness_share(percentile).is_some_and(|share| share > LATE_SHARE)
    }

    /// Returns the share of a percentile that may be fathom's own lateness: the difference between the upper and the lower bound of the
    /// percentile, divided by the upper bound. `None` if a bound is unknown or the upper bound is 0.
    pub fn lateness_share(&self, percentile: &str) -> Option<f64> {
        let value = |all: &BTreeMap<String, Option<u64>>| all.get(percentile).copied().flatten();
        let (upper, lower) = (value(&self.percentiles_ns)?, value(&self.service_percentiles_ns)?);
        (upper > 0).then(|| upper.saturating_sub(lower) as f64 / upper as f64)
    }
}

impl LoadCurve {
    /// Returns the percentile of the latency target without the letter `p`; the 99th without a target.
    pub fn percentile(&self) -> &str {
        self.latency_target.as_ref().map_or("99", |target| &target.percentile)
    }
}

/// One offered load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// Index of this load's result in the report's `results`.
    pub result: usize,
    /// Operations per second that arrived.
    pub offered_iops: u64,
    /// Completed operations per second: geometric mean over runs; `None` if none completed.
    pub achieved_iops: Option<f64>,
    /// 95 % interval of the completed rate over runs; `None` with fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_interval: Option<[f64; 2]>,
    /// The offered load divided by the capacity; `None` if the capacity is not known.
    pub share: Option<f64>,
    /// Number of complete runs.
    pub runs: u32,
    /// Mean latency of all directions from the intended start in ns; `None` in overload, and if a finding
    /// invalidates it.
    pub mean_ns: Option<f64>,
    /// Percentiles (`"99.9"`) of the latency from the intended start in ns, all runs together;
    /// `None` in overload, if a finding invalidates the latency, and if fewer than ten operations
    /// are above the percentile. They include fathom's own lateness, so they are an upper bound on
    /// the latency of the storage.
    pub percentiles_ns: BTreeMap<String, Option<u64>>,
    /// Percentiles (`"99.9"`) of the time from submission to completion, in ns: a lower bound on
    /// the latency of storage that serves in order of arrival. `None` under the same conditions as
    /// in `percentiles_ns`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_percentiles_ns: BTreeMap<String, Option<u64>>,
    /// 95 % interval in ns of the mean over runs, for each percentile. A percentile is left out if it is withheld, or if
    /// a run has no value. Empty with fewer than three runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentile_intervals_ns: BTreeMap<String, [f64; 2]>,
    /// 99th percentile of the lateness of submissions in ns; `None` if no operation completed.
    pub lateness_p99_ns: Option<u64>,
    /// Mean requests in the queue of the topmost device; `None` if it was not counted.
    pub device_depth: Option<f64>,
    /// How the load was served.
    pub state: LoadState,
    /// Whether this load is proven to meet the latency target: `true` if the upper bound of the percentile is
    /// within the target, `false` if the lower bound is beyond it. `None` without a target, and if the runs prove
    /// neither.
    #[serde(rename = "kept")]
    pub met: Option<bool>,
}

/// How an offered load was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// Served without delay.
    Served,
    /// Served, but fathom submitted late by more than a tenth of the latency at some percentile.
    Late,
    /// More operations arrived than were served. The latency depends on the length of the run and is withheld.
    Overload,
    /// A finding invalidates the measurement.
    Void,
}

/// The load with the greatest power, which is operations per second divided by mean latency. Below the knee, one
/// percent more load adds less than one percent of latency; above the knee, it adds more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// Operations per second.
    pub iops: f64,
    /// The load divided by the capacity; `None` if the capacity is not known.
    pub share: Option<f64>,
    /// Whether a higher load with less power was measured. Otherwise the knee is at this load or higher.
    pub reached: bool,
}

/// The load up to which a latency target is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetLoad {
    /// Name of the percentile: `99`.
    pub percentile: String,
    /// The largest allowed latency in ns.
    pub latency_ns: u64,
    /// The highest load below `missed_iops` that is proven to meet the target; `None` if there is none.
    #[serde(rename = "kept_iops")]
    pub met_iops: Option<u64>,
    /// The lowest load that is proven to miss the target; `None` if there is none.
    #[serde(rename = "broken_iops")]
    pub missed_iops: Option<u64>,
}

/// A latency target: a percentile, its limit, and how requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// Percentile of the latency from the intended start, as a share: 0.99.
    pub quantile: f64,
    /// The largest allowed latency in ns; `None` if only the curve is wanted.
    pub latency_ns: Option<u64>,
    /// How requests arrive.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Whether the loads of a curve and its knee are measured too. Older sessions always measured them.
    #[serde(default = "yes")]
    pub curve: bool,
}

fn yes() -> bool {
    true
}

#[test]
fn study_keys_equal_those_of_old_files() {
    let comparison = || LayerComparison { layers: Vec::new(), missing: Vec::new() };
    let json = serde_json::json!({ "layers": { "rungs": [], "missing": [] } });
    assert_eq!(serde_json::to_value(Study::Layers(comparison())).ok(), Some(json.clone()));
    assert_eq!(serde_json::from_value(json).ok(), Some(Study::Layers(comparison())));
    let comparison = serde_json::json!({ "contest": { "entrants": [], "missing": [] } });
    assert_eq!(
        serde_json::from_value(comparison).ok(),
        Some(Study::Interfaces(InterfaceComparison::default()))
    );
    for nothing in [serde_json::json!({}), serde_json::json!({ "layers": null })] {
        assert_eq!(serde_json::from_value(nothing.clone()).ok(), Some(Study::Jobs));
        assert_eq!(serde_json::from_value(nothing).ok(), Some(Studied::Jobs));
    }
    let (rows, missing) = (Vec::new(), Vec::new());
    let (not_measured, advice, no_advice) = (Vec::new(), Vec::new(), Vec::new());
    let api = Studied::Interfaces(Api { rows, missing, not_measured, advice, no_advice });
    let json = serde_json::json!({ "api": { "rows": [], "missing": [], "not_measured": [], "advice": [] } });
    assert_eq!(serde_json::to_value(&api).ok(), Some(json.clone()));
    assert_eq!(serde_json::from_value(json).ok(), Some(api));
}

#[test]
fn sentences_of_old_sessions_are_accepted() {
    let old = serde_json::json!({ "entrants": [], "missing": ["pread, 4K random read: it is late"] });
    let comparison: InterfaceComparison = serde_json::from_value(old).unwrap_or_default();
    let why = "pread, 4K random read: it is late".to_owned();
    assert_eq!(comparison.missing, [NotMeasured { name: String::new(), why }]);
    let kept = serde_json::to_value(&comparison).ok().and_then(|json| serde_json::from_value(json).ok());
    assert_eq!(kept, Some(comparison));
}

#[test]
fn jobs_are_found_in_their_group() {
    let layout = TargetLayout { tests: 2, targets: 3 };
    let groups: Vec<usize> = (0..8).map(|job| layout.group(job)).collect();
    assert_eq!(groups, [0, 0, 0, 1, 1, 1, 2, 3]);
    for (job, group) in groups.into_iter().enumerate() {
        assert!(layout.jobs(group).contains(&job), "{job} in {group}");
    }
    let test = |name: &str, job| (name.to_owned(), job);
    let side = |tests| TargetJobs { name: String::new(), tests };
    let sides =
        vec![side(vec![test("a", 0), test("b", 2), test("c", 4)]), side(vec![test("a", 1), test("b", 3)])];
    assert_eq!(TargetComparison { sides }.layout(), TargetLayout { tests: 2, targets: 2 });
    assert_eq!(TargetComparison::default().layout(), TargetLayout { tests: 0, targets: 0 });
}

#[test]
fn the_first_hosts_participate() {
    let steps = HostSteps { hosts: vec![1, 2] };
    let part = |rank| [0, 1, 2].map(|job| steps.participates(rank, job));
    assert_eq!([0, 1, 2].map(|job| steps.participants(job, 4)), [1, 2, 4]);
    assert_eq!((part(0), part(1), part(2)), ([true, true, true], [false, true, true], [false, false, true]));
}
