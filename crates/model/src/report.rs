//! The report: the conclusions from a record, with the user's tags and notes. Its JSON form is a contract (format 1):
//! names do not change, and new ones may be added.
//!
//! The crate `analysis` computes a report and the crate `report` renders it. `null` means not known or not
//! supported by enough operations; zero means zero.

use crate::comparison::Comparison;
pub use crate::figures::{
    AtDevice, DeviceFigures, DeviceSecond, DirectionSeries, HostFigures, LatencyBuckets, Second, TimeSeries,
};
use crate::figures::{Estimate, Ledger, Observed, Steadiness};
use crate::finding::{CheckId, Checked, Severity};
use crate::fleet::FleetFigures;
use crate::job::{Job, Pattern, Stream};
use crate::machine::Machine;
use crate::payload::Written;
use crate::record::attempts::{Disturbance, Preconditioned};
use crate::replay::ReplayComparison;
use crate::study::Studied;
use crate::units::{show_counted, show_ns, show_share};
use crate::verdict::Gate;
pub use crate::verdict::{AnswerWord, CountsAs, Limiter, Producer, ReportAnswer, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the JSON contract.
pub const FORMAT: u32 = 1;

/// Everything that was concluded from a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The program that made this report, and the version of its JSON contract.
    pub fathom: Producer,
    /// The answer to the command's question: which setting, which load, which interface. `None` without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ReportAnswer>,
    /// Whether an answer of `INCONCLUSIVE` gives the exit code of a passed or of a failed
    /// condition; `None` without `--inconclusive`, and for any other answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_as: Option<CountsAs>,
    /// The outcome of each condition of `--fail-if`; empty without conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// The settings of a quick look (`--quick`); `None` for any other measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Quick>,
    /// The worst verdict of the quoted results, with one exception: if the headline has a number, a result whose number
    /// is withheld only because of other load on the machine (checks D) counts as `SUSPECT`.
    pub verdict: Verdict,
    /// The reason for the verdict, in one sentence.
    pub verdict_reason: String,
    /// The check that `verdict_reason` is about; `None` if it is not about a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_by: Option<CheckId>,
    /// The number of quoted results with each verdict.
    #[serde(default)]
    pub counts: Counts,
    /// Sentences about other load on this machine: load before the first run, and load that disturbed a third of all
    /// attempts, after which fathom stopped repeating runs. Empty if there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy_machine: Vec<String>,
    /// The number to quote, under its true name.
    pub headline: Headline,
    /// Limiter of the headline.
    pub limiter: Limiter,
    /// One entry for each measured stream of a job; in a load curve, for each load. Empty for the user's commands.
    pub results: Vec<Measured>,
    /// Conclusions from several figures.
    pub deductions: Vec<Deduction>,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// The contribution of each host; `None` if one host measured alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetFigures>,
    /// Every check that applied, with its answer, findings first.
    #[serde(rename = "findings")]
    pub checks: Vec<Checked>,
    /// Changes to the request and incidents during the session, in sentences.
    pub notes: Vec<String>,
    /// How the session ended.
    pub ending: Ending,
    /// The machine of the first host.
    pub machine: Machine,
    /// How the files of the targets were stored before their first run. Empty for devices, and where the file system
    /// does not report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StoredFile>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: String,
    /// The command line that measured, as typed; empty if it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Start of the session, RFC 3339.
    pub started: String,
    /// The session file that was judged; `None` if it was not kept.
    pub session: Option<String>,
    /// The JSON file that this report was read from; `None` if it was judged now. Not part of the contract.
    #[serde(skip)]
    pub json_file: Option<String>,
    /// The user's tags and notes about the session.
    #[serde(default, rename = "words", skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
    /// The result of the study.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::study::StudiedKeys"))]
    pub study: Studied,
    /// The writes before the first run that brought the storage into its steady state; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditioned: Option<Preconditioned>,
    /// The workloads of an earlier session, measured again next to those of this session; `None` without `--against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Rerun>,
}

/// How a file was stored on its device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoredFile {
    /// Path of the target: for a file that fathom created, its directory.
    pub path: String,
    /// Number of extents.
    pub extents: u64,
    /// Share of the file in its largest contiguous piece.
    pub largest_piece_share: f64,
}

impl StoredFile {
    /// Describes all files of a report: `8 extents, the largest contiguous piece has 100 % of the file`. If there are
    /// several files, each description begins with the path. `None` without a file.
    pub fn describe(files: &[Self]) -> Option<String> {
        let of_one = |file: &Self| {
            format!(
                "{}, the largest contiguous piece has {} of the file",
                show_counted(file.extents, "extent"),
                show_share(file.largest_piece_share)
            )
        };
        match files {
            [] => None,
            [one] => Some(of_one(one)),
            several => {
                let all: Vec<String> =
                    several.iter().map(|file| format!("{}: {}", file.path, of_one(file))).collect();
                Some(all.join("; "))
            }
        }
    }
}

impl Report {
    /// Returns the ids of the checks that invalidate the result with this index.
    pub fn invalidated_by(&self, at: usize) -> Vec<CheckId> {
        let Some(result) = self.results.get(at).filter(|result| result.void) else { return Vec::new() };
        let voids = self.checks.iter().filter(|f| f.severity == Some(Severity::Invalidates) && !f.accepted);
        voids.filter(|f| f.about.contains(&result.name)).map(|f| f.id).collect()
    }

    /// Returns the result that the headline quotes; `None` if it quotes none.
    pub fn headline_result(&self) -> Option<&Measured> {
        self.results.iter().find(|result| result.true_name == self.headline.name)
    }

    /// Reads a report from JSON. This function is in the crate that also reads reports within sessions, so that the large
    /// parser is compiled only once.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// Returns the paths of the targets of a result; of all targets if `result` is `None`. A simulated target has no
    /// path, and the user's commands have no targets.
    pub fn targets_of(&self, result: Option<&Measured>) -> Vec<&str> {
        if self.study.commands().is_some() {
            return Vec::new();
        }
        let places = &self.machine.places;
        let Some(result) = result else { return places.iter().map(|place| place.path.as_str()).collect() };
        let phase = result.job.phases.get(result.phase as usize);
        let stream = phase.and_then(|phase| phase.streams.get(result.stream as usize));
        let targets = stream.into_iter().flat_map(|stream| &stream.targets);
        targets.filter_map(|at| Some(places.get(*at)?.path.as_str())).collect()
    }
}

/// The workloads of an earlier session, measured again in alternation with those of this session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rerun {
    /// Id of the earlier session.
    pub session: String,
    /// The report of the earlier session's workloads as measured now.
    #[serde(rename = "again")]
    pub measured_again: Box<Report>,
    /// The workloads of the earlier session (A) compared with those of this session (B). Both were measured now, in
    /// alternation.
    #[serde(rename = "beside")]
    pub workload_comparison: Comparison,
    /// The workloads of the earlier session: their old results (A) compared with their new ones (B). Shows whether the
    /// machine has changed.
    #[serde(rename = "since")]
    pub machine_comparison: Comparison,
}

/// The number of quoted results with each verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Number of results with the verdict `VALID`.
    pub valid: usize,
    /// Number of results with the verdict `SUSPECT`.
    pub suspect: usize,
    /// Number of results with the verdict `INVALID`: they have no number.
    pub invalid: usize,
    /// The counts as a sentence, with the reasons why results have no number, and the names of up to two of these
    /// results. `None` if there is only one result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "how", content = "why")]
pub enum Ending {
    /// The session ended as planned.
    Complete,
    /// A signal ended the session. Everything measured before the signal is kept.
    Interrupted,
    /// An error ended the session. The text is the error as a sentence.
    Failed(String),
    /// The session ended before the first run, because facts about the target would have
    /// invalidated every number. The text names them in a sentence.
    NotMeasured(String),
    /// The session file has no end: the program was killed.
    Cut,
}

/// The number to quote, under its true name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headline {
    /// True name: `4K random read, depth 32, page cache`.
    pub name: String,
    /// The value; `None` if a finding invalidates it, or if there is no value.
    pub value: Option<f64>,
    /// `IOPS`, `MB/s`, `us` for a latency, or `s` or `ms` for the time of a command.
    pub unit: String,
    /// 95 % interval over runs; `None` with fewer than three runs.
    pub interval: Option<[f64; 2]>,
    /// Ids of the accepted findings that apply to the number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<CheckId>,
}

/// Figures of one stream of a job over all its runs. Most jobs have a single stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Name of the result: the job's name, followed by what distinguishes this result from others of the job.
    pub name: String,
    /// Name of what was actually measured: `4K random read, depth 32, page cache`.
    pub true_name: String,
    /// Whether the true name differs from the request: another medium, another depth, a condition that findings add, or
    /// no storage.
    #[serde(default)]
    pub renamed: bool,
    /// Index of the phase in the job.
    pub phase: u32,
    /// Index of the stream in the phase.
    pub stream: u32,
    /// The job as it was run.
    pub job: Job,
    /// Whether a finding that the user did not accept invalidates these figures.
    pub void: bool,
    /// Ids of the findings on these figures that the user accepted. With an accepted finding the verdict is `SUSPECT`
    /// at best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<CheckId>,
    /// The verdict of the findings about this result.
    #[serde(default = "Verdict::unknown")]
    pub verdict: Verdict,
    /// Reads; `None` if the job has none.
    pub read: Option<Figures>,
    /// Writes; `None` if the job has none.
    pub write: Option<Figures>,
    /// Trims; `None` if the job has none.
    pub trim: Option<Figures>,
    /// Sync calls between writes; `None` if the job has none.
    pub sync: Option<Figures>,
    /// Reads, writes and trims together; `None` if there is no rate.
    pub total: Option<Rates>,
    /// Rates of all directions with the final sync included in the time; `None` if nothing was written or a sync
    /// failed.
    pub with_final_sync: Option<FinalSync>,
    /// CPU cost of an operation; `None` if no worker reported it.
    pub cost: Option<CpuCost>,
    /// How compressible and repetitive the written data is; `None` if nothing was written.
    pub data: Option<Written>,
    /// Limiter of this result.
    pub limiter: Limiter,
    /// One entry for each run that the figures include.
    pub runs: Vec<RunFigures>,
    /// Runs that no figure includes: rounds before the job was steady, or runs of a sweep before its winner was measured again.
    #[serde(default, rename = "way", skip_serializing_if = "Vec::is_empty")]
    pub uncounted_runs: Vec<RunFigures>,
    /// Runs that other processes disturbed, and undisturbed runs that were measured again together with them, in order
    /// of time. An attempt that counts is also in `runs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<DisturbedRun>,
    /// Operations issued, charged to fathom by the kernel, and completed by each layer below; `None` without
    /// storage.
    #[serde(default)]
    pub ledger: Option<Ledger>,
    /// Time series of the runs and of the device, second by second; empty if it was not kept.
    #[serde(default)]
    pub series: Vec<Second>,
    /// Time series of the runs at the recorded resolution, by direction; absent if it was not kept, and in studies
    /// of many settings.
    #[serde(default, rename = "course", skip_serializing_if = "Option::is_none")]
    pub time_series: Option<TimeSeries>,
    /// Latencies of all complete runs by direction (`read`), as a histogram; none in studies of many settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, LatencyBuckets>,
    /// The comparison with the replayed capture; `None` if this is not a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<ReplayComparison>>,
    /// How the rate behaved within the runs; `None` if the time series was not kept.
    #[serde(default)]
    pub steadiness: Option<Steadiness>,
    /// More detailed observations; `None` in a report that was read from JSON, because JSON omits them.
    #[serde(skip)]
    pub observed: Option<Observed>,
}

/// The quoted rate of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuotedRate {
    /// `IOPS`, or `MB/s` for sequential access.
    pub unit: &'static str,
    /// The rate; `None` if a finding invalidates it, or there is no rate.
    pub value: Option<f64>,
    /// 95 % interval of the rate over runs; `None` with fewer than three runs.
    pub interval: Option<[f64; 2]>,
}

impl Measured {
    /// Returns the rate to quote: MB/s for sequential access that moves data, otherwise IOPS.
    pub fn quoted_rate(&self) -> QuotedRate {
        let phase = self.job.phases.get(self.phase as usize);
        let stream = phase.and_then(|p| p.streams.get(self.stream as usize));
        let total = self.total.as_ref().filter(|_| !self.void);
        let in_bytes = |s: &Stream| s.access.pattern() == Some(Pattern::Sequential) && !s.moves_no_data();
        let (unit, value, interval) = if stream.is_some_and(in_bytes) {
            ("MB/s", total.map(|t| t.mb_per_s), total.and_then(|t| t.mb_per_s_interval))
        } else {
            ("IOPS", total.map(|t| t.iops), total.and_then(|t| t.iops_interval))
        };
        QuotedRate { unit, value, interval }
    }
}

/// A run that other processes disturbed, or that belongs to a round in which another run was disturbed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DisturbedRun {
    /// Index of the run within its job.
    pub run: u32,
    /// Number of earlier attempts at this run.
    pub attempt: u32,
    /// Whether this attempt counts anyway, because no attempt was undisturbed.
    pub counts: bool,
    /// The disturbance in words; `None` if another run of its round was disturbed.
    pub why: Option<String>,
    /// The disturbance as numbers; empty if another run of its round was disturbed.
    pub by: Vec<Disturbance>,
    /// Operations per second, all directions.
    pub iops: f64,
    /// 10^6 bytes per second, all directions.
    pub mb_per_s: f64,
}

/// Rates with the sync after the last operation included in the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinalSync {
    /// Mean time of the sync in ns.
    pub sync_ns: f64,
    /// Operations per second: geometric mean over runs.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
}

/// CPU cost of an operation, over all runs and workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Cost"))]
pub struct CpuCost {
    /// CPU time in user space per operation in ns.
    pub user_ns: f64,
    /// CPU time in the kernel per operation in ns, only of the workers' threads.
    pub system_ns: f64,
    /// Context switches per operation.
    pub switches: f64,
    /// Processor cycles per operation; `None` if they were not counted.
    pub cycles: Option<f64>,
    /// Instructions per operation; `None` if they were not counted.
    pub instructions: Option<f64>,
    /// The reason why cycles and instructions were not counted; `None` if they were.
    pub not_counted: Option<String>,
    /// CPU cost of fathom's own loop per operation with the stream's settings in ns, measured before the first run;
    /// `None` if it was not measured.
    pub tool_ns: Option<f64>,
}

/// A rate with its interval over runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Operations per second: geometric mean over runs.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// 95 % interval of `iops` over runs; `None` with fewer than three runs.
    pub iops_interval: Option<[f64; 2]>,
    /// 95 % interval of `mb_per_s` over runs; `None` with fewer than three runs.
    pub mb_per_s_interval: Option<[f64; 2]>,
    /// Median of `iops` over runs, with an interval by order statistics that assumes no distribution; `None` with fewer
    /// than six runs.
    #[serde(default)]
    pub iops_median: Option<Estimate>,
}

/// Figures of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Operations completed in the measured windows of all runs.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations per second: geometric mean over runs.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// 95 % interval of `iops` over runs; `None` with fewer than three runs.
    pub iops_interval: Option<[f64; 2]>,
    /// 95 % interval of `mb_per_s` over runs; `None` with fewer than three runs.
    pub mb_per_s_interval: Option<[f64; 2]>,
    /// Mean operations in flight of all directions; counted, not computed from the latencies.
    pub depth_mean: f64,
    /// Latency to the completion, all runs together: from the intended start in an open loop, from the submission
    /// otherwise. In an open loop a percentile is also `None` if fathom's own lateness is more than a tenth of it.
    pub latency_ns: Latency,
    /// Duration of the calls that submitted operations without waiting, for all directions together. `None` without
    /// such calls.
    pub submit_ns: Option<Latency>,
    /// Service time in an open loop, from the submission to the completion; `None` in a closed loop.
    pub service_ns: Option<Latency>,
    /// Lateness in an open loop, from the intended start to the submission; `None` in a closed loop.
    pub lateness_ns: Option<Latency>,
}

/// A distribution of latencies in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The smallest latency.
    pub min: u64,
    /// Arithmetic average over all operations.
    pub mean: f64,
    /// The largest latency.
    pub max: u64,
    /// Latency in ns by percentile (`"99.9"`); `None` if fewer than ten operations are above it.
    pub percentiles: BTreeMap<String, Option<u64>>,
}

/// Figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// Index of the run within its job.
    pub run: u32,
    /// Seconds from the beginning of the session to the beginning of the run; `None` in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<f64>,
    /// Operations per second, all directions.
    pub iops: f64,
    /// 10^6 bytes per second, all directions.
    pub mb_per_s: f64,
    /// Mean operations in flight.
    pub depth_mean: f64,
    /// Requests, bytes and mean depth of the topmost device; `None` if not counted.
    pub device: Option<DeviceFigures>,
    /// 95 % confidence interval of `iops`, from only the time series of this run. It does not
    /// predict the next run. `None` if the series has too few independent samples.
    #[serde(default)]
    pub iops_within: Option<[f64; 2]>,
    /// Latency in ns by direction (`read`) and percentile (`99`). `None` under the same
    /// conditions as the percentiles of [`Latency`].
    #[serde(default)]
    pub percentiles_ns: BTreeMap<String, BTreeMap<String, Option<u64>>>,
    /// CPU time of the workers per operation in ns; `None` if no worker reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_op: Option<f64>,
    /// Use of the host during the run; absent if nothing was counted.
    #[serde(default, skip_serializing_if = "HostFigures::is_unknown")]
    pub host: HostFigures,
    /// The tail of latency in ns by direction (`read`). The k-th entry, from k = 1, is the latency
    /// that one operation in 10^(k/10) exceeded. The list ends where fewer than ten operations are
    /// above the value. `None` under the same conditions as the percentiles of [`Latency`]. Absent
    /// in studies of many settings, and in results of more than 40 runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tails_ns: BTreeMap<String, Vec<Option<u64>>>,
}

impl Measured {
    /// Returns the requests of the topmost device for this result; `None` if they are not known. A
    /// device does not distinguish streams, so there is no value for a stream that ran together
    /// with others.
    pub fn at_device(&self) -> Option<AtDevice> {
        if self.job.phases.get(self.phase as usize).is_some_and(|p| p.streams.len() > 1) {
            return None;
        }
        let seen: Vec<(f64, DeviceFigures)> =
            self.runs.iter().filter_map(|r| Some((r.iops, r.device?))).collect();
        AtDevice::sum_runs(&seen)
    }
}

/// A conclusion from several figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Deduction {
    /// `cost of a seek`, `scaling with depth`, ...
    pub name: String,
    /// One sentence with its numbers.
    pub sentence: String,
    /// The numbers.
    pub evidence: BTreeMap<String, f64>,
}

/// The settings of a quick look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quick {
    /// Length of the only run of each row in ns.
    pub run_ns: u64,
    /// Rows that were not measured because time ran out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
}

impl Quick {
    /// The words before the sentence of a quick look.
    pub const WORD: &'static str = "Quick look.";

    /// Describes how a quick look was measured, and which conclusions it does not support.
    pub fn sentence(&self) -> String {
        let missing = if self.not_measured.is_empty() {
            String::new()
        } else {
            format!(" Not measured because time ran out: {}.", self.not_measured.join(", "))
        };
        format!(
            "One run of {} per row, so there are no confidence intervals.{missing}",
            show_ns(self.run_ns as f64)
        )
    }
}

/// Maximum number of characters of a tag.
const TAG_LETTERS: usize = 64;
/// Maximum number of tags of a session.
const MOST_TAGS: usize = 64;
/// Maximum number of characters of a note.
const NOTE_LETTERS: usize = 10_000;
/// Maximum number of notes of a session.
const MOST_NOTES: usize = 1_000;

/// The user's tags and notes about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Annotations {
    /// Tags to find the session by, sorted.
    pub tags: Vec<String>,
    /// Notes in order of time.
    pub notes: Vec<Note>,
}

/// A remark by the user about a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Time of the note, RFC 3339.
    pub at: String,
    /// The typed text without surrounding spaces; at most 10,000 characters.
    pub text: String,
}

impl Annotations {
    /// Parses the JSON form.
    ///
    /// # Errors
    /// What is wrong with it: not JSON, or content that no command accepts.
    pub fn parse(json: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let mut annotations = Self::default();
        read.tags.iter().try_for_each(|tag| annotations.tag(tag))?;
        read.notes.into_iter().try_for_each(|note| annotations.note(note.at, &note.text))?;
        Ok(annotations)
    }

    /// Whether there are neither tags nor notes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a tag; an existing tag is not duplicated.
    ///
    /// # Errors
    /// Why the tag is invalid.
    pub fn tag(&mut self, tag: &str) -> Result<(), String> {
        check_tag(tag)?;
        if self.tags.iter().any(|t| t == tag) {
            return Ok(());
        }
        if self.tags.len() >= MOST_TAGS {
            return Err(format!("{tag}: a session can have at most {MOST_TAGS} tags"));
        }
        self.tags.push(tag.to_owned());
        self.tags.sort();
        Ok(())
    }

    /// Removes a tag.
    ///
    /// # Errors
    /// If the session has no such tag.
    pub fn untag(&mut self, tag: &str) -> Result<(), String> {
        let before = self.tags.len();
        self.tags.retain(|t| t != tag);
        if self.tags.len() == before { Err(format!("{tag}: the session has no such tag")) } else { Ok(()) }
    }

    /// Adds a note. `at` is its time, RFC 3339.
    ///
    /// # Errors
    /// Why the note is invalid.
    pub fn note(&mut self, at: String, text: &str) -> Result<(), String> {
        let text = text.trim();
        if at.chars().any(char::is_control) {
            return Err("the time of a note contains control characters".into());
        }
        if text.is_empty() {
            return Err("the note is empty; type its text after the session".into());
        }
        if text.chars().any(|c| c.is_control() && c != '\n') {
            return Err("a note cannot contain control characters; leave them out".into());
        }
        if text.chars().count() > NOTE_LETTERS {
            return Err(format!("a note can have at most {NOTE_LETTERS} characters"));
        }
        if self.notes.len() >= MOST_NOTES {
            return Err(format!("a session can have at most {MOST_NOTES} notes"));
        }
        self.notes.push(Note { at, text: text.to_owned() });
        Ok(())
    }
}

/// Rejects tags that could be confused with an id, a path or a flag, or that cannot be typed.
fn check_tag(tag: &str) -> Result<(), String> {
    let why = if tag.is_empty() {
        "a tag cannot be empty; type a word"
    } else if tag.chars().count() > TAG_LETTERS {
        "a tag can have at most 64 characters"
    } else if tag.starts_with('-') {
        "a tag cannot begin with -, because flags do"
    } else if tag.contains(['/', ',']) || tag.contains("..") {
        "a tag cannot contain a slash, a comma or two dots in a row, because paths, lists and ranges do"
    } else if tag.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "a tag is one word; join its parts with -"
    } else if tag == "last" || tag.starts_with("last~") {
        "this word names a session by its age; choose another one"
    } else {
        return Ok(());
    };
    Err(format!("tag '{}': {why}", tag.escape_debug()))
}

#[test]
fn a_quick_look_names_its_limits() {
    let quick = Quick { run_ns: 500_000_000, not_measured: Vec::new() };
    assert!(quick.sentence().starts_with("One run of 500 ms per row, so there are no confidence intervals"));
    assert!(!quick.sentence().contains("Not measured"));
    let short = Quick { not_measured: vec!["a".into(), "b".into()], ..quick };
    assert!(short.sentence().ends_with("Not measured because time ran out: a, b."));
}

#[test]
fn tags_are_a_sorted_set_of_valid_words() -> Result<(), String> {
    let mut annotations = Annotations::default();
    for tag in ["new", "baseline", "new"] {
        annotations.tag(tag)?;
    }
    assert_eq!(annotations.tags, ["baseline", "new"]);
    let long = "x".repeat(TAG_LETTERS + 1);
    for bad in ["", "two words", "-x", "a/b", "a,b", "a..b", "last", "last~2", "a\u{1b}[0m", &long] {
        assert!(annotations.tag(bad).is_err(), "{bad}");
    }
    assert!(annotations.untag("old").is_err());
    annotations.untag("new")?;
    assert_eq!(annotations.tags, ["baseline"]);
    Ok(())
}

#[test]
fn notes_keep_their_order_and_are_not_empty() -> Result<(), String> {
    let mut annotations = Annotations::default();
    assert!(annotations.is_empty());
    annotations.note("2026-11-21T12:00:00Z".into(), " with the new firmware ")?;
    annotations.note("2026-11-21T12:01:00Z".into(), "two\nlines")?;
    let texts: Vec<&str> = annotations.notes.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(texts, ["with the new firmware", "two\nlines"]);
    for bad in ["", "  ", "bell\u{7}", &"x".repeat(NOTE_LETTERS + 1)] {
        assert!(annotations.note(String::new(), bad).is_err());
    }
    assert!(!annotations.is_empty());
    Ok(())
}

#[test]
fn annotations_reject_content_that_no_command_accepts() {
    let read = Annotations::parse(r#"{"tags": ["b", "a"], "stars": 5}"#);
    assert_eq!(read, Ok(Annotations { tags: vec!["a".into(), "b".into()], notes: Vec::new() }));
    let bad = [
        "",
        "7",
        r#"{"tags": ["last"]}"#,
        r#"{"notes": [{"at": "x"}]}"#,
        "{\"notes\": [{\"at\": \"\\u001b\", \"text\": \"x\"}]}",
    ];
    for text in bad {
        assert!(Annotations::parse(text).is_err(), "{text}");
    }
}
