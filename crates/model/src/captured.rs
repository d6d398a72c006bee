//! A capture as it is shown: what was captured, whether that is all of it, and the profile of the load.
//!
//! For: the header and the trailer of a capture file, and the figures that are made of its requests. Not for: the requests themselves
//! (crate `capture`), nor what a measurement came to ([`crate::report`]).

use crate::Known;
use crate::machine::Layer;
use crate::units::{show_bytes, show_count};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the file and of the JSON.
pub const FORMAT: u32 = 1;

/// A capture file as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Captured {
    /// Of this JSON: [`FORMAT`].
    pub format: u32,
    /// Path as it was typed.
    pub file: String,
    /// What was captured, and where.
    pub origin: Origin,
    /// How it ended; `None` where the file ends before that was written.
    pub ending: Option<Ending>,
    /// Why the file could not be read to its end: cut off or damaged, and at which byte. `None` where it was.
    pub damage: Option<String>,
    /// Whether the capture holds all that the device completed.
    pub completeness: Completeness,
    /// Which of its requests the profile is about; `None` for all.
    pub restricted: Option<Restriction>,
    /// What its requests were like.
    pub profile: Profile,
}

/// The header of a capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// When it began, RFC 3339; empty where a foreign trace does not say.
    pub started: String,
    /// What was named: a path; of an imported trace its file.
    pub asked: String,
    /// The tool whose trace this was, such as `fio iolog v3`; `None` for a capture of our own.
    pub imported: Option<String>,
    /// The block device whose requests these are: always one layer of the stack.
    pub device: Option<Layer>,
    /// The part of the device that was captured, where the device that was named is a partition.
    pub partition: Option<Partition>,
    /// What a row of the file is.
    pub unit: Unit,
    /// Clock of the stamps: `mono`, CLOCK_MONOTONIC.
    pub clock: String,
    /// Whether rows say how long they waited before they were issued.
    pub queue: bool,
    /// The process whose requests alone were kept.
    pub pid: Option<u32>,
    /// Bytes of each CPU's buffer in the kernel; 0 for an imported trace.
    pub buffer_bytes: u64,
    /// Name of the host.
    pub host: String,
    /// Name, release and version, as `uname -srv` prints them.
    pub kernel: String,
    /// CPUs that fathom may run on there.
    pub cpus: u32,
    /// Version of fathom.
    pub version: String,
    /// The device's counters (`stat`) when it began, word for word.
    pub stat: Option<Known<String>>,
}

/// Where a partition lies on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Kernel name.
    pub name: String,
    /// First sector of 512 bytes. The rows count from here.
    pub first_sector: u64,
    /// Length, in units of 512 bytes.
    pub sectors: u64,
}

/// What a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A request that was issued to the driver, after splitting and merging.
    #[default]
    Requests,
    /// A bio as it was queued: of devices without requests (zram, device mapper, RAID).
    Bios,
    /// An operation of a program, as another tool logged it.
    Operations,
}

/// The trailer of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// What ended it: `--time`, `a signal`, or the end of an imported trace.
    pub why: String,
    /// How long it took, in ns.
    pub duration_ns: u64,
    /// Events that were read from the kernel.
    pub events: u64,
    /// Events that the kernel wrote over before they were read, by its own count.
    pub lost_events: u64,
    /// Rows of the file.
    pub rows: u64,
    /// Requests whose completion was seen and whose issue was not: those in flight when it began, and those whose issue was lost.
    pub without_issue: u64,
    /// Requests whose issue was seen and whose completion was not.
    pub without_completion: u64,
    /// Requests that the driver gave back to the queue.
    pub requeued: u64,
    /// Requests of other processes, which `pid` left out.
    pub of_others: u64,
    /// Requests left out by `pid` whose process could not be told.
    pub of_unknown: u64,
    /// What completed between the two readings of the device's counters.
    pub completed: Completed,
    /// The device's counters when it ended.
    pub stat: Option<Known<String>>,
    /// Operations of a program that began or ended within a sector, and were taken for all of it.
    #[serde(default)]
    pub within_sectors: u64,
    /// Of the files whose requests alone were kept; `None` where all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_files: Option<OfFiles>,
}

/// Requests that completed between two readings of the counters, by the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Those that the kernel counts as reads.
    pub reads: u64,
    /// Writes that carried data.
    pub writes: u64,
    /// Flushes without data, which the kernel counts as writes too (iostats documentation).
    pub empty_flushes: u64,
    /// Those that the kernel counts as discards.
    pub discards: u64,
    /// Flushes that the device got.
    pub flushes: u64,
    /// Those that completed while one of the readings was made, and may be counted on either side.
    pub at_edges: u64,
}

/// Whether the capture holds all that the device completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// `complete`, `incomplete` or `unknown`.
    pub word: String,
    /// Whether the capture holds all that the device completed, in a sentence with the figures.
    pub sentence: String,
    /// Per kind of request: what the kernel counted and what was captured. Empty where nothing could be compared with counters.
    pub counters: Vec<Counter>,
}

/// One of the kernel's counters beside what was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// `reads`, `writes`, `discards`, `flushes`.
    pub name: String,
    /// By the device's own counters.
    pub counted: u64,
    /// By the events.
    pub captured: u64,
}

/// Which requests are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restriction {
    /// From this time on, ns since it began.
    pub from_ns: Option<u64>,
    /// Until this time.
    pub to_ns: Option<u64>,
    /// Of tasks with this name, or this number of a thread or process.
    pub task: Option<String>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Moves data from the device.
    Read,
    /// Moves data to the device.
    Write,
    /// Tells the device that data are not needed any more (trim).
    Discard,
    /// Writes zeroes without their bytes.
    Zeroes,
    /// Flushes the device's cache.
    Flush,
    /// Anything else: commands to the device, zones.
    Other,
}

impl Op {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Discard, Self::Zeroes, Self::Flush, Self::Other];

    /// As it is shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Zeroes => "zeroes",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }
}

/// The profile of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// How many there are, flushes that the device got among them.
    pub requests: u64,
    /// Time that they are taken from, in ns.
    pub duration_ns: u64,
    /// Per kind of request, those that there are.
    pub operations: Vec<Operation>,
    /// Distinct bytes.
    pub footprint: Footprint,
    /// When requests were issued.
    pub arrivals: Vec<Arrivals>,
    /// Requests in flight; `None` where no completion is known.
    pub depth: Option<Depth>,
    /// Those that the device got, and who asked for them.
    pub flushes: Flushes,
    /// How it went over time; `None` of no request.
    pub course: Option<Course>,
    /// Tasks, those with most requests first; no more than [`TASKS`].
    pub tasks: Vec<Task>,
    /// Tasks that are left out of that list, and their requests.
    pub other_tasks: OtherTasks,
    /// Requests of kernel workers: whose data they write back is not known.
    pub of_kernel_workers: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests whose completion is not in the file.
    pub without_completion: u64,
    /// Requests that stand behind later ones in the file because they took so long; left out of arrivals, depth and sequences.
    pub late: u64,
}

/// Most tasks that are listed.
pub const TASKS: usize = 20;

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// Which.
    pub op: Op,
    /// How many.
    pub requests: u64,
    /// Share of all requests.
    pub share: f64,
    /// Sum of their sizes; of discards what they discard.
    pub bytes: u64,
    /// Per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// With FUA: stable when completed.
    pub fua: u64,
    /// Marked as read ahead.
    pub read_ahead: u64,
    /// Marked as metadata.
    pub metadata: u64,
    /// Marked as synchronous: somebody waits.
    pub synchronous: u64,
    /// Sizes; `None` of what has none.
    pub sizes: Option<Sizes>,
    /// Sequential and random; of reads and writes.
    pub sequence: Option<Sequence>,
    /// From issue to completion.
    pub latency_ns: Option<Latency>,
    /// From insertion into the scheduler to issue, of those that were inserted; where `queue` was asked for.
    pub queued_ns: Option<Latency>,
}

/// Sizes of requests, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sizes {
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: u64,
    /// Quantiles by their names: 10, 50, 90, 99.
    pub percentiles: BTreeMap<String, u64>,
    /// Largest.
    pub max: u64,
    /// The most frequent sizes and their shares of the requests, at most six.
    pub frequent: Vec<Share>,
}

/// A size and its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// A multiple of 512.
    pub bytes: u64,
    /// Share of the requests.
    pub share: f64,
}

/// What follows what. A request is sequential where it starts at the end of one of the last 64 of its direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sequence {
    /// Share of the requests that are sequential.
    pub share: f64,
    /// Share that sequential requests have of all bytes.
    pub byte_share: f64,
    /// Runs of two requests or more.
    pub runs: u64,
    /// Requests of a run: mean, median and most.
    pub run_requests: [f64; 3],
    /// Bytes of a run: mean, median and most.
    pub run_bytes: [f64; 3],
    /// Runs of three or more that went on at once: mean over the requests, and most.
    pub streams: [f64; 2],
}

/// Latencies or gaps in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// By their names: 50, 99, 99.9. `None` where fewer than ten lie beyond.
    pub percentiles: BTreeMap<String, Option<u64>>,
    /// Largest.
    pub max: u64,
}

/// Distinct bytes that were touched by reads and writes, in blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Footprint {
    /// Bytes of a block: what is touched in part counts whole.
    pub block_bytes: u64,
    /// Whether there are more than could be kept apart: then the distinct bytes are the least that they can be.
    pub is_least: bool,
    /// Distinct bytes of reads and writes together.
    pub bytes: u64,
    /// Distinct bytes that were read.
    pub read_bytes: u64,
    /// Distinct bytes that were written.
    pub write_bytes: u64,
    /// From the first to the last byte that was touched.
    pub span_bytes: u64,
    /// How often a touched block was touched, in the mean.
    pub reuse: f64,
    /// Share of the device, in 1024 equal zones, that got half of the reads and writes; `None` where its size is not known.
    pub half_in: Option<f64>,
}

/// When requests were issued.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arrivals {
    /// Of which requests: `all`, `read`, `write`.
    pub of: String,
    /// Time from one to the next.
    pub gap_ns: Latency,
    /// Index of dispersion of counts, Var N(t) / E N(t), at 10 ms: 1 where they come at random, more where in bursts, less where
    /// evenly. `None` of fewer than ten such stretches.
    pub idc_10ms: Option<f64>,
    /// Index of dispersion of counts, Var N(t) / E N(t), at 100 ms; `None` of fewer than ten such stretches.
    pub idc_100ms: Option<f64>,
}

/// Requests in flight at the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean over the time.
    pub mean: f64,
    /// Mean over the time in which any was in flight.
    pub busy_mean: f64,
    /// Most.
    pub max: u64,
    /// Shares of the time.
    pub shares: Vec<DepthShare>,
}

/// A share of the time with so many in flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthShare {
    /// From so many.
    pub from: u64,
    /// To so many.
    pub to: u64,
    /// Share of the time.
    pub share: f64,
}

/// Flushes: those that the device got, and who asked for them. Several that are asked for at once may become one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flushes {
    /// That the device got.
    pub at_device: u64,
    /// That were asked for, without data.
    pub asked: u64,
    /// Writes that asked for a flush before or behind them.
    pub with_data: u64,
    /// Those that were asked for, from being queued until they were done.
    pub asked_ns: Option<Latency>,
    /// Who asked, most first.
    pub owners: Vec<Owner>,
}

/// Who asked for flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Owner {
    /// Name of the task.
    pub name: String,
    /// Number of the thread.
    pub tid: u32,
    /// Flushes asked for.
    pub asked: u64,
    /// Writes with data of the same task for each.
    pub writes_each: f64,
}

/// What one task did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Task {
    /// As the kernel has it: up to 15 letters (comm).
    pub name: String,
    /// Number of the thread.
    pub tid: u32,
    /// Number of its process, where it was still there to be asked.
    pub pid: Option<u32>,
    /// Whether it is a kernel thread.
    pub kernel: bool,
    /// How many it issued, whatever they do, but for flushes.
    pub requests: u64,
    /// Share of all requests.
    pub share: f64,
    /// How many of them read.
    pub reads: u64,
    /// Sum of what they read.
    pub read_bytes: u64,
    /// How many of them write.
    pub writes: u64,
    /// Sum of what they write.
    pub write_bytes: u64,
    /// Share of its requests that were issued while another one of it was in flight; `None` where fewer than two completions are known.
    pub overlapping: Option<f64>,
    /// From the completion of one request to the issue of its next; only of tasks of which fewer than one request in twenty overlaps.
    pub think_ns: Option<Latency>,
}

/// Tasks that are not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherTasks {
    /// How many.
    pub tasks: u64,
    /// Their requests.
    pub requests: u64,
}

/// How a load went over time, in stretches of one length from the beginning on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// Length of a stretch in ns.
    pub step_ns: u64,
    /// How many there are, 256 at most.
    pub steps: usize,
    /// Of each kind of request that there is.
    pub of: Vec<CourseOf>,
    /// Where reads and writes began; `None` of neither. Not in the JSON: `--events` has every offset.
    #[serde(skip)]
    pub places: Option<Places>,
}

/// The course of one kind of request: a number for each stretch, by the time of issue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CourseOf {
    /// Which.
    pub op: Op,
    /// How many.
    pub requests: Vec<u64>,
    /// Their bytes; of discards what they discard.
    pub bytes: Vec<u64>,
    /// Mean of their latencies; `None` where none is known.
    pub latency_mean_ns: Vec<Option<f64>>,
}

/// Where requests began: rows of equal size, from the first that was touched to the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// Offset of the first row.
    pub first_byte: u64,
    /// Bytes from one row to the next.
    pub row_bytes: u64,
    /// How many there are, 96 at most.
    pub rows: usize,
    /// Of reads and writes, those that there are: in the order of stretches, and of rows within one.
    pub of: Vec<(Op, Vec<Place>)>,
}

/// Requests that began in a row within a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the stretch.
    pub step: usize,
    /// Index of the row.
    pub row: usize,
    /// How many; never 0.
    pub requests: u64,
}

/// What was kept of the requests of a device: those of some files, as these lay when the capture began and when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfFiles {
    /// How many files there were when it ended.
    pub files: u64,
    /// Their stretches of the device then, and the bytes of these.
    pub stretches: u64,
    /// Bytes of the device that are theirs then.
    pub bytes: u64,
    /// Bytes of theirs then that have no place on the device of their own: inside inodes, or not allocated yet.
    pub unplaced_bytes: u64,
    /// Requests that were kept, and touch what was theirs at only one of the two times: others may have had it at the other.
    pub moved: u64,
    /// Requests that were left out, since they touch nothing of theirs.
    pub elsewhere: u64,
    /// Requests that were left out, since they touch something of theirs and something else.
    pub partly: u64,
    /// Requests that were left out, since they have no place: flushes.
    pub without_place: u64,
}

impl OfFiles {
    /// What was kept and what was not, in words.
    pub fn describe(&self) -> String {
        let count = |n: u64| show_count(n as f64);
        let noun =
            |n: u64, one: &str, many: &str| format!("{} {}", count(n), if n == 1 { one } else { many });
        let mut out = format!(
            "Of {} alone ({} in {}): {} elsewhere, {} partly elsewhere and {} without a place (flushes) were left out",
            noun(self.files, "file", "files"),
            show_bytes(self.bytes),
            noun(self.stretches, "stretch", "stretches"),
            noun(self.elsewhere, "request", "requests"),
            count(self.partly),
            count(self.without_place),
        );
        if self.moved > 0 {
            out += &format!(
                "; {} that were kept touch what was theirs only when the capture began or only when it ended",
                count(self.moved)
            );
        }
        if self.unplaced_bytes > 0 {
            out += &format!("; {} of them have no place on the device", show_bytes(self.unplaced_bytes));
        }
        out
    }
}
