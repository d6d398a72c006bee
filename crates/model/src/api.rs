//! The comparison of interfaces: what a plan says of it, and what stands in a report.
//!
//! For: data of the record and of the JSON contract (format 1). Not for: the table of interfaces (the root), adding the figures
//! up (the crate `analysis`) nor laying them out.

use crate::Known;
use crate::check_id::CheckId;
use crate::evidence::Extents;
use crate::not_measured::{self, NotMeasured};
use serde::{Deserialize, Serialize};

/// The jobs of a plan that are the same work through one interface each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceComparison {
    /// One per job that takes part, in the order of the table.
    #[serde(rename = "entrants")]
    pub candidates: Vec<Candidate>,
    /// What cannot be tried.
    #[serde(deserialize_with = "not_measured::or_sentences")]
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

#[test]
fn a_session_that_kept_sentences_is_still_read() {
    let old = serde_json::json!({ "entrants": [], "missing": ["pread, 4K random read: it is late"] });
    let comparison: InterfaceComparison = serde_json::from_value(old).unwrap_or_default();
    let why = "pread, 4K random read: it is late".to_owned();
    assert_eq!(comparison.missing, [NotMeasured { name: String::new(), why }]);
    let kept = serde_json::to_value(&comparison).ok().and_then(|json| serde_json::from_value(json).ok());
    assert_eq!(kept, Some(comparison));
}
