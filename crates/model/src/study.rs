//! Studies: what jobs measured together are to answer, and what came of it.
//!
//! For: one enum for what is meant, which a plan carries, and one for what was concluded, which a report carries. Not for: the
//! work of a study; that is one file each in the crates `analysis` and `report`.
//! In JSON each study has a key of its own beside the other keys of its plan or report, as it always had.

use crate::Known;
use crate::command::{CommandResults, CommandStudy};
use crate::comparison::Pair;
use crate::evidence::Extents;
use crate::figures::{LayerComparison, Layers};
use crate::finding::CheckId;
use crate::job::Arrivals;
use crate::profile::{ToolLayout, ToolResults};
use crate::sweep::{Grid, Sweep};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// What the jobs of a plan are to answer together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StudyKeys", into = "StudyKeys")]
pub enum Study {
    /// No more than what each is: jobs side by side.
    #[default]
    Jobs,
    /// What each layer of one place costs: the same work at all of them.
    Layers(LayerComparison),
    /// Which load is served in time: the latency target, as the plan's strategy has it, which chooses the loads.
    Limit(LatencyTarget),
    /// Which settings are best: the same work at different ones.
    Sweep(Grid),
    /// Which interface to use: the same work through different ones.
    Interfaces(InterfaceComparison),
    /// What a well-known tool would show: its tests, and how it shows them.
    Profile(ToolLayout),
    /// Which target is faster: the same tests on each.
    Targets(TargetComparison),
    /// How much more hosts bring: the same work on growing numbers of them.
    Hosts(HostSteps),
    /// What commands of the user do to the storage, and how long they take.
    Commands(CommandStudy),
}

/// What a study came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StudiedKeys", into = "StudiedKeys")]
pub enum Studied {
    /// Nothing beside the results.
    #[default]
    Jobs,
    /// The same work at each layer of one place, from the lowest layer up.
    Layers(Layers),
    /// Latency against offered load.
    Limit(LoadCurve),
    /// The same work at every setting of a grid.
    Sweep(Box<Sweep>),
    /// The same bytes through every interface.
    Interfaces(Api),
    /// The results as a well-known tool shows them.
    Profile(ToolResults),
    /// The same tests on several targets.
    Targets(Targets),
    /// The same work on growing numbers of hosts.
    Hosts(Scaling),
    /// Commands of the user with their runs.
    Commands(Box<CommandResults>),
}

impl Study {
    /// The settings, where the study is of settings.
    pub fn grid(&self) -> Option<&Grid> {
        if let Self::Sweep(grid) = self { Some(grid) } else { None }
    }
}

impl Studied {
    /// Commands of the user with their runs, if that is what was measured.
    pub fn commands(&self) -> Option<&CommandResults> {
        if let Self::Commands(results) = self { Some(results) } else { None }
    }

    /// What came of the settings, where the study was of settings.
    pub fn sweep(&self) -> Option<&Sweep> {
        if let Self::Sweep(sweep) = self { Some(sweep) } else { None }
    }
}

/// The keys of a study in a plan: one of them at most. A load curve has none: its plan's strategy tells.
#[derive(Default, Serialize, Deserialize)]
struct StudyKeys {
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<LayerComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Grid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "contest")]
    comparison: Option<InterfaceComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<ToolLayout>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<TargetComparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<HostSteps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<CommandStudy>,
}

impl From<StudyKeys> for Study {
    fn from(keys: StudyKeys) -> Self {
        let StudyKeys { layers, sweep, comparison, form, beside, scaling, commands } = keys;
        let found = [
            layers.map(Self::Layers),
            sweep.map(Self::Sweep),
            comparison.map(Self::Interfaces),
            form.map(Self::Profile),
            beside.map(Self::Targets),
            scaling.map(Self::Hosts),
            commands.map(Self::Commands),
        ];
        found.into_iter().flatten().next().unwrap_or_default()
    }
}

impl From<Study> for StudyKeys {
    fn from(study: Study) -> Self {
        let none = Self::default();
        match study {
            Study::Jobs | Study::Limit(_) => none,
            Study::Layers(comparison) => Self { layers: Some(comparison), ..none },
            Study::Sweep(grid) => Self { sweep: Some(grid), ..none },
            Study::Interfaces(comparison) => Self { comparison: Some(comparison), ..none },
            Study::Profile(form) => Self { form: Some(form), ..none },
            Study::Targets(sides) => Self { beside: Some(sides), ..none },
            Study::Hosts(steps) => Self { scaling: Some(steps), ..none },
            Study::Commands(commands) => Self { commands: Some(commands), ..none },
        }
    }
}

/// The keys of a study in a report: one of them at most, none where it is of jobs alone.
#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StudiedKeys {
    /// The same work at each layer of one place, from the lowest layer up; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Layers>,
    /// The same work at every setting of a grid; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Box<Sweep>>,
    /// The same bytes through every interface; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<Api>,
    /// The results as a well-known tool shows them; absent where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<ToolResults>,
    /// Latency against offered load; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LoadCurve>,
    /// The same tests on several targets; absent where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Targets>,
    /// The same work on growing numbers of hosts; absent where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<Scaling>,
    /// Commands of the user with their runs; absent where none was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Box<CommandResults>>,
}

impl From<StudiedKeys> for Studied {
    fn from(keys: StudiedKeys) -> Self {
        let StudiedKeys { layers, sweep, api, card, limit, beside, scaling, commands } = keys;
        let found = [
            layers.map(Self::Layers),
            limit.map(Self::Limit),
            sweep.map(Self::Sweep),
            api.map(Self::Interfaces),
            card.map(Self::Profile),
            beside.map(Self::Targets),
            scaling.map(Self::Hosts),
            commands.map(Self::Commands),
        ];
        found.into_iter().flatten().next().unwrap_or_default()
    }
}

impl From<Studied> for StudiedKeys {
    fn from(studied: Studied) -> Self {
        let none = Self::default();
        match studied {
            Studied::Jobs => none,
            Studied::Layers(layers) => Self { layers: Some(layers), ..none },
            Studied::Limit(curve) => Self { limit: Some(curve), ..none },
            Studied::Sweep(sweep) => Self { sweep: Some(sweep), ..none },
            Studied::Interfaces(api) => Self { api: Some(api), ..none },
            Studied::Profile(card) => Self { card: Some(card), ..none },
            Studied::Targets(targets) => Self { beside: Some(targets), ..none },
            Studied::Hosts(scaling) => Self { scaling: Some(scaling), ..none },
            Studied::Commands(commands) => Self { commands: Some(commands), ..none },
        }
    }
}

/// Something that a comparison could not measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotMeasured {
    /// What the table would call it, and what it would do: `vda, 8K random write`. Empty where an old session has no more than a
    /// sentence, which is then the reason.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.name.is_empty() { "" } else { ": " };
        write!(f, "{}{between}{}", self.name, self.why)
    }
}

/// Each reason once, with the names of all that it keeps from being measured.
pub fn by_reason(all: &[NotMeasured]) -> Vec<(Vec<&str>, &str)> {
    let mut reasons: Vec<(Vec<&str>, &str)> = Vec::new();
    for NotMeasured { name, why } in all {
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        match reasons.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.extend(name),
            None => reasons.push((name.into_iter().collect(), why)),
        }
    }
    reasons
}

/// Reads them, and the sentences that sessions had in their place before.
///
/// # Errors
/// What the format refuses.
pub(crate) fn or_sentences<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NotMeasured>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        Apart(NotMeasured),
        Sentence(String),
    }
    let apart = |kept| match kept {
        Kept::Apart(both) => both,
        Kept::Sentence(why) => NotMeasured { name: String::new(), why },
    };
    Ok(Vec::<Kept>::deserialize(from)?.into_iter().map(apart).collect())
}

/// The jobs of a plan that are the same work through one interface each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceComparison {
    /// One per job that takes part, in the order of the table.
    #[serde(rename = "entrants")]
    pub candidates: Vec<Candidate>,
    /// What cannot be tried.
    #[serde(deserialize_with = "or_sentences")]
    pub missing: Vec<NotMeasured>,
}

/// One interface at one work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Index of the job.
    pub job: usize,
    /// What the table calls it: `pread`.
    pub interface: String,
    /// What the job does, which its rows stand under: `4K random read`.
    pub work: String,
    /// Whether the bytes reach the program's memory, or come from it. What sees none cannot be recommended.
    pub sees: bool,
}

/// The same bytes through every interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Api {
    /// One per interface and work, in the order of the table.
    pub rows: Vec<ApiRow>,
    /// What could not be measured, each with the reason in one sentence.
    pub missing: Vec<String>,
    /// What could not be measured, each with the reason apart from its name.
    #[serde(default)]
    pub not_measured: Vec<NotMeasured>,
    /// One per work with a recommendation.
    pub advice: Vec<Advice>,
    /// One per other work: why none is recommended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_advice: Vec<NoAdvice>,
}

/// What one interface made of one work, over all its runs. Per byte and per MiB: of what the program asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApiRow {
    /// `pread`.
    pub interface: String,
    /// `4K random read`.
    pub work: String,
    /// Bytes of an operation.
    pub block_bytes: u32,
    /// Index of its result.
    pub result: usize,
    /// 10^6 bytes per second, the final sync not in the time; `None` where a finding invalidates it or there is no number.
    pub mb_per_s: Option<f64>,
    /// 95 % interval over runs; `None` with fewer than three runs.
    pub mb_per_s_interval: Option<[f64; 2]>,
    /// Operations per second.
    pub iops: Option<f64>,
    /// 10^6 bytes per second, the final sync in the time; `None` where nothing was written or the sync failed.
    pub synced_mb_per_s: Option<f64>,
    /// Its 95 % interval over runs.
    pub synced_mb_per_s_interval: Option<[f64; 2]>,
    /// Seconds from the first operation to the last completion, the final sync aside: mean over runs. `None` where a finding
    /// invalidates it or no run was complete.
    #[serde(default)]
    pub run_seconds: Option<f64>,
    /// Bytes that a run moved in that time: mean over runs.
    #[serde(default)]
    pub run_bytes: Option<f64>,
    /// Median of latency in ns.
    pub p50_ns: Option<u64>,
    /// 99th percentile in ns; `None` with too few operations to say.
    pub p99_ns: Option<u64>,
    /// CPU time of the whole process in user space, in ns per byte.
    pub user_ns_per_byte: Option<f64>,
    /// CPU time of the whole process in the kernel, in ns per byte.
    pub system_ns_per_byte: Option<f64>,
    /// System calls per MiB, counted by the kernel in a trial before the first run, or why they were not counted.
    pub calls_per_mib: Known<f64>,
    /// Page faults without I/O, per MiB.
    pub minor_faults_per_mib: Option<f64>,
    /// Page faults that waited for I/O, per MiB.
    pub major_faults_per_mib: Option<f64>,
    /// Bytes that the topmost device delivered and took, per byte; with the final sync where there is one. Or why that was not
    /// counted.
    pub device_bytes_per_byte: Known<[f64; 2]>,
    /// Share of the span that was touched in each run, on the mean.
    pub coverage: Option<f64>,
    /// Share of the span that each run was to touch; `None` where only its time ended it.
    #[serde(default)]
    pub planned_coverage: Option<f64>,
    /// Most pages of the target that were cached when a run began, or why that is not known. 0 is a cold start.
    pub cached_pages_at_start: Known<u64>,
    /// How the file was stored before the first run; no answer where the first write makes it new.
    pub stored_before: Known<Extents>,
    /// How it was stored after the last final sync; `None` where nothing was written.
    pub stored_after: Option<Known<Extents>>,
    /// Ids of findings that void, rename or bias this row and are not what it is there to show.
    pub findings: Vec<CheckId>,
}

/// Which interface to use for a work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// `4K random read`.
    pub work: String,
    /// The plainest interface of the fastest group.
    pub interface: String,
    /// The other interfaces of its group: they cannot be told from the fastest, or are at most 5 % slower.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// With 95 % confidence no other interface is faster by more than this share: 0.04 for 4 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_faster_at_most: Option<f64>,
    /// One sentence with its reason and its numbers.
    pub sentence: String,
}

/// A work for which no interface is recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoAdvice {
    /// `4K random read`.
    pub work: String,
    /// The reason, without the end of a sentence.
    pub why: String,
}

/// The jobs of a plan that are the same tests on one target each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetComparison {
    /// In the order in which they were named; the others are compared with the first.
    pub sides: Vec<TargetJobs>,
}

/// The tests of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetJobs {
    /// What tables call it: the end of its path that tells it from the others.
    pub name: String,
    /// Names of the tests and indices of their jobs.
    pub tests: Vec<(String, usize)>,
}

/// Which jobs of a plan are one test on all targets: the first `targets` jobs are the first test, the next ones the second. Jobs after
/// those are tests that a target lacks, each of them a group by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetLayout {
    /// Number of tests that every target has.
    pub tests: u32,
    /// Number of targets.
    pub targets: u32,
}

impl TargetLayout {
    /// The group of a job: its test, or the job itself.
    pub fn group(self, job: usize) -> usize {
        let compared = self.compared_jobs();
        if job < compared { job / self.targets.max(1) as usize } else { self.tests as usize + job - compared }
    }

    /// The jobs of a group.
    pub fn jobs(self, group: usize) -> Range<usize> {
        let (tests, targets) = (self.tests as usize, self.targets as usize);
        if group < tests {
            return group * targets..(group + 1) * targets;
        }
        let job = self.compared_jobs().saturating_add(group - tests);
        job..job + 1
    }

    /// Number of jobs whose test every target has.
    fn compared_jobs(self) -> usize {
        (self.tests as usize).saturating_mul(self.targets as usize)
    }
}

impl TargetComparison {
    /// The layout of the jobs. They must be in its order.
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
    /// What the targets are called, in the order in which they were named.
    pub names: Vec<String>,
    /// One per test and target: test by test, in each the first target first.
    pub rows: Vec<TargetRow>,
}

/// One test on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetRow {
    /// `RND4K Q1T1 read`.
    pub test: String,
    /// Index of its target.
    pub target: usize,
    /// Index of its result.
    pub result: usize,
    /// The first target (A) and this one (B); `None` for the first, and where the first does not have the test.
    pub against: Option<Pair>,
}

/// How many hosts take part in each job of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSteps {
    /// By job, in ascending order: the hosts from the first to this one; the others are idle.
    pub hosts: Vec<u32>,
}

impl HostSteps {
    /// How many of so many hosts take part in a job: those of the first ranks.
    pub fn taking_part(&self, job: usize, all: usize) -> usize {
        self.hosts.get(job).map_or(all, |hosts| all.min(*hosts as usize))
    }

    /// Whether the host of a rank takes part in a job.
    pub fn takes_part(&self, rank: u32, job: usize) -> bool {
        (rank as usize) < self.taking_part(job, usize::MAX)
    }
}

/// The same work on growing numbers of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// One per number of hosts, in ascending order.
    pub rows: Vec<ScalingRow>,
    /// Where more hosts begin to cost more than they bring; `None` where fewer than two numbers of hosts have a rate.
    pub knee: Option<ScalingKnee>,
}

/// The work on so many hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingRow {
    /// Hosts that took part.
    pub hosts: u32,
    /// Index of its result.
    pub result: usize,
    /// Operations per second of a host, on average; `None` where there is no number.
    pub iops_per_host: Option<f64>,
    /// The rate of all by that of the fewest hosts.
    pub speed_up: Option<f64>,
    /// The rate of a host by that of a host among the fewest: 1 where each brings what the first brought.
    pub efficiency: Option<f64>,
    /// 95 % interval of that, from runs in turns; `None` of the fewest hosts, and with fewer than three runs.
    pub efficiency_interval: Option<[f64; 2]>,
}

/// The number of hosts of greatest power: rate by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingKnee {
    /// So many.
    pub hosts: u32,
    /// Whether more hosts were measured, which have less power.
    pub reached: bool,
    /// Whether the intervals rule every other number of hosts out.
    pub sure: bool,
}

/// Latency against offered load, up to and beyond what the storage serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadCurve {
    /// Operations per second of the closed loop, which shares count from: geometric mean over runs. `None` where it has no
    /// complete run or a finding invalidates it.
    pub capacity_iops: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub capacity_interval: Option<[f64; 2]>,
    /// Index of its result; `None` where no run of it was complete.
    pub capacity_result: Option<usize>,
    /// Loads that were offered in an open loop, ascending.
    pub points: Vec<LoadPoint>,
    /// Where more load begins to cost more latency than it gains; `None` where too few loads have a latency.
    pub knee: Option<Knee>,
    /// Whether the latency target is met, and up to which load; `None` where none was asked for.
    #[serde(rename = "promise")]
    pub latency_target: Option<MetLoad>,
    /// What the headline says, with all its numbers, in one sentence.
    pub sentence: String,
    /// Indices of the results that the headline rests on.
    pub rests_on: Vec<usize>,
}

impl LoadPoint {
    /// The share of a percentile that is fathom's own lateness: what separates its upper bound from its lower one. `None` without both.
    pub fn lateness_share(&self, percentile: &str) -> Option<f64> {
        let of = |all: &BTreeMap<String, Option<u64>>| all.get(percentile).copied().flatten();
        let (upper, lower) = (of(&self.percentiles_ns)?, of(&self.service_percentiles_ns)?);
        (upper > 0).then(|| upper.saturating_sub(lower) as f64 / upper as f64)
    }
}

impl LoadCurve {
    /// The percentile that the latency target is about, without its `p`; the 99th where there is none.
    pub fn percentile(&self) -> &str {
        self.latency_target.as_ref().map_or("99", |target| &target.percentile)
    }
}

/// One load that was offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// Index of its result.
    pub result: usize,
    /// Operations per second that arrived.
    pub offered_iops: u64,
    /// Operations per second that completed: geometric mean over runs; `None` where none did.
    pub achieved_iops: Option<f64>,
    /// 95 % interval of it over runs; `None` with fewer than three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_interval: Option<[f64; 2]>,
    /// The offered load by the capacity; `None` where that is not known.
    pub share: Option<f64>,
    /// Complete runs.
    pub runs: u32,
    /// Mean latency of all directions from the intended start in ns; `None` in overload, and where a finding invalidates it.
    pub mean_ns: Option<f64>,
    /// Percentiles (`"99.9"`) of the same in ns, all runs together; `None` also if fewer than ten operations lie beyond. They include
    /// fathom's own lateness, so they are an upper bound on the latency of the storage.
    pub percentiles_ns: BTreeMap<String, Option<u64>>,
    /// The same percentiles of the time from submission to completion: a lower bound on the latency of storage that serves in
    /// order of arrival.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_percentiles_ns: BTreeMap<String, Option<u64>>,
    /// 95 % interval of each over runs, of a typical one; those that are withheld and those with fewer than three runs are not in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub percentile_intervals_ns: BTreeMap<String, [f64; 2]>,
    /// 99th percentile of the lateness of submissions in ns; `None` where no operation completed.
    pub lateness_p99_ns: Option<u64>,
    /// Mean requests in the queue of the topmost device; `None` where it was not counted.
    pub device_depth: Option<f64>,
    /// What became of the load.
    pub state: LoadState,
    /// Whether the latency target was met at this load, at 95 %: `true` if the upper bound is within it, `false` if the lower bound is
    /// beyond it. `None` without a target, and if the runs prove neither.
    #[serde(rename = "kept")]
    pub met: Option<bool>,
}

/// What became of an offered load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadState {
    /// It was served as it came.
    Served,
    /// It was served, and fathom's own lateness is more than a tenth of some percentile.
    Late,
    /// More came than was served: latency is the length of the run, and withheld.
    Overload,
    /// A finding invalidates what was measured.
    Void,
}

/// The load of greatest power: operations per second by mean latency. Below it a percent more load costs less than a percent
/// of latency, above it more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knee {
    /// Operations per second.
    pub iops: f64,
    /// By the capacity; `None` where that is not known.
    pub share: Option<f64>,
    /// Whether a higher load was measured that has less power; else the knee is at this load at least.
    pub reached: bool,
}

/// Up to which load a latency target is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetLoad {
    /// Name of the percentile: `99`.
    pub percentile: String,
    /// What it must not exceed in ns.
    pub latency_ns: u64,
    /// The highest load below the first miss that was shown to meet it, at 95 %; `None` where none was.
    #[serde(rename = "kept_iops")]
    pub met_iops: Option<u64>,
    /// The first miss: the lowest load that was shown to miss it, at 95 %; `None` where none was.
    #[serde(rename = "broken_iops")]
    pub missed_iops: Option<u64>,
}

/// A latency target: which percentile, and how requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// Rank of the latency from the intended start: 0.99.
    pub quantile: f64,
    /// What it must not exceed, in ns; `None` where only the curve is wanted.
    pub latency_ns: Option<u64>,
    /// How requests arrive.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Whether the loads of a curve and its knee are measured too. Older sessions always did.
    #[serde(default = "yes")]
    pub curve: bool,
}

fn yes() -> bool {
    true
}

#[test]
fn the_keys_of_a_study_are_those_of_old_files() {
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
fn each_reason_is_told_once_and_a_sentence_of_an_old_session_by_itself() {
    let of = |name: &str, why: &str| NotMeasured { name: name.into(), why: why.into() };
    let all = [of("a, b: c", "no: it is late"), of("", "d: gone"), of("e", "no: it is late")];
    assert_eq!(by_reason(&all), [(vec!["a, b: c", "e"], "no: it is late"), (vec![], "d: gone")]);
    assert_eq!(all.map(|n| n.to_string()), ["a, b: c: no: it is late", "d: gone", "e: no: it is late"]);
}

#[test]
fn a_session_that_kept_sentences_is_still_read() {
    let old = serde_json::json!({ "entrants": [], "missing": ["pread, 4K random read: it is late"] });
    let comparison: InterfaceComparison = serde_json::from_value(old).unwrap_or_default();
    let why = "pread, 4K random read: it is late".to_owned();
    assert_eq!(comparison.missing, [NotMeasured { name: String::new(), why }]);
    let kept = serde_json::to_value(&comparison).ok().and_then(|json| serde_json::from_value(json).ok());
    assert_eq!(kept, Some(comparison));
}

#[test]
fn a_job_is_in_the_group_that_has_it() {
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
fn the_hosts_from_the_first_take_part() {
    let steps = HostSteps { hosts: vec![1, 2] };
    let part = |rank| [0, 1, 2].map(|job| steps.takes_part(rank, job));
    assert_eq!([0, 1, 2].map(|job| steps.taking_part(job, 4)), [1, 2, 4]);
    assert_eq!((part(0), part(1), part(2)), ([true, true, true], [false, true, true], [false, false, true]));
}
