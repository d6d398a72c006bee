//! Timed commands: what `fathom time` runs, what it records of each run, and what the report contains.
//!
//! 1. The plan of a session contains one [`CommandStudy`]: the commands and how they are run.
//! 2. Each run ends with a [`CommandEnd`]: the observations of the command's parent process. The counters of the kernel
//!    and of the devices are in the snapshots around the run.
//! 3. The crate `analysis` turns the end and the snapshots of a run into a [`CommandRun`], and the runs of each command
//!    into a [`CommandResult`].

use crate::Known;
use crate::comparison::Pair;
use crate::evidence::BlockStat;
use crate::verdict::Limiter;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The commands of a session and how they are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStudy {
    /// The commands. Each runs as often as the plan states. Several commands alternate.
    pub commands: Vec<Command>,
    /// Files that are evicted from the page cache before each run.
    pub cold: Cold,
    /// Whether dirty data in the page cache is synced after each run.
    pub final_sync: bool,
    /// Shell command before each run, outside of the measured time; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// Shell command after each run, outside of the measured time; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
}

/// A program of the user with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The command as a shell line; also the name of its result.
    pub line: String,
    /// Program and arguments.
    pub args: Vec<String>,
}

impl Command {
    /// Returns the name of the program without directories: `dd`. For a shell command (`sh -c '...'`), the first word
    /// of the script.
    pub fn program(&self) -> &str {
        let first = match self.args.as_slice() {
            [shell, flag, script, ..] if shell == "/bin/sh" && flag == "-c" => {
                script.split_ascii_whitespace().next().unwrap_or(shell)
            }
            [program, ..] => program,
            [] => "",
        };
        first.rsplit('/').next().unwrap_or(first)
    }
}

/// Files that are evicted from the page cache before each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// Nothing.
    #[default]
    No,
    /// The files that the command names, and all files below directories that it names.
    Named,
    /// Everything: `/proc/sys/vm/drop_caches`.
    Everything,
}

/// Observations that only the parent process of a command can make, after the command has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// Time from just before the command's start to just after its end, in ns.
    pub wall_ns: u64,
    /// How the command ended.
    pub exit: Exit,
    /// CPU time in user space, in ns, of the command and of all descendants that have ended.
    pub user_ns: u64,
    /// CPU time in the kernel, in ns, of the command and of all descendants that have ended.
    pub system_ns: u64,
    /// Largest resident memory of the command or of a descendant that has ended, in bytes.
    pub peak_bytes: u64,
    /// Resident memory of fathom when it started the command, in bytes. The kernel counts this memory as the
    /// command's, so a smaller peak is not visible.
    pub peak_floor_bytes: u64,
    /// Page faults of the command and of all descendants that have ended for which the kernel read storage: reads of
    /// mapped files that were not in the page cache. `None` in sessions of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Bytes and calls of the command and of all descendants that have ended, by the kernel's accounting of tasks
    /// (`/proc/PID/io`).
    pub moved: Known<CommandIo>,
    /// Processes of the command that still run, such as `postgres (4711)`. `moved` does not include their bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<String>,
    /// Size of a page of memory in bytes.
    #[serde(default = "usual_page_bytes")]
    pub page_bytes: u64,
    /// Whether the command was certainly a single process: no other process or thread was started
    /// on the machine during the run.
    pub single_process: Known<bool>,
    /// Type of the command's standard input.
    pub stdin: Stream,
    /// Type of the command's standard output.
    pub stdout: Stream,
    /// Files and devices on the command line.
    pub named: Vec<NamedFiles>,
    /// Devices on the command line or as standard input that generate bytes, such as `/dev/zero`. Reads from them count as reads but
    /// touch no storage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub byte_sources: Vec<String>,
    /// Bytes in holes of the files below the named directories whose state before the run is unknown, or saved by
    /// compression; `None` if they were not read after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse_bytes_below: Option<u64>,
    /// Counts by BPF programs, or why there are none.
    pub traced: Known<Traced>,
    /// The sync of the dirty data that the command left in the page cache.
    pub final_sync: FinalSync,
    /// Other processes that were busy during the run, busiest first.
    pub neighbours: Vec<Neighbour>,
}

fn usual_page_bytes() -> u64 {
    4096
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The command ended with this exit code.
    Code(i32),
    /// This signal killed the command.
    Signal(i32),
}

impl Exit {
    /// Returns the exit code as a shell reports it: 128 plus the signal's number if a signal killed
    /// the command.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => (code & 0xff) as u8,
            Self::Signal(signal) => 128_u8.saturating_add((signal & 0x7f) as u8),
        }
    }

    /// Whether this is the exit of a successful command.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// Bytes and calls of processes (`proc_pid_io(5)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Moved"))]
pub struct CommandIo {
    /// Bytes that read calls returned, from files, pipes and terminals (`rchar`).
    pub read_call_bytes: u64,
    /// Number of read calls (`syscr`). `None` if it is unknown how many of them the kernel made to start programs.
    pub read_calls: Option<u64>,
    /// Bytes that write calls accepted (`wchar`).
    pub write_call_bytes: u64,
    /// Number of write calls (`syscw`).
    pub write_calls: u64,
    /// Bytes fetched from storage, read-ahead included (`read_bytes`).
    pub fetched_bytes: u64,
    /// Bytes made dirty in the page cache or sent to storage directly (`write_bytes`).
    pub dirtied_bytes: u64,
    /// Dirty bytes that were truncated, and so never reach storage (`cancelled_write_bytes`).
    pub cancelled_bytes: u64,
}

/// Type of a standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// A regular file.
    File,
    /// A pipe or a socket, whose other end may limit the speed.
    Pipe,
    /// A terminal, which shows each byte before it accepts the next one.
    Terminal,
    /// A character device other than a terminal, such as `/dev/null`.
    Null,
    /// A block device.
    Disk,
    /// Anything else, or closed.
    Other,
}

/// A path on the command line of a command, before and after a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedFiles {
    /// Path as typed.
    pub path: String,
    /// State before the run, or why it could not be read.
    pub before: Known<FilesState>,
    /// State after the run, before the final sync, or why it could not be read.
    pub after: Known<FilesState>,
    /// The topmost device that stores the path, such as `loop0`; `None` without a visible device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Why the path is in memory instead of on a disk, such as `tmpfs`; `None` for storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Why no device below the path is visible, such as a network or FUSE file system; `None` if a device is visible.
    /// The kernel does not count bytes that a process fetches from such a path.
    #[serde(rename = "blind", default, skip_serializing_if = "Option::is_none")]
    pub hidden_device_reason: Option<String>,
}

/// The state of a file, or of all files below a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesState {
    /// Number of files; 0 for a path that does not exist.
    pub files: u64,
    /// Total length of the files in bytes.
    pub bytes: u64,
    /// Bytes in holes: no storage is allocated for them.
    pub hole_bytes: u64,
    /// Allocated bytes that were never written, for which reads return zeros without the device. `None` if the file
    /// system does not report them.
    pub unwritten_bytes: Option<u64>,
    /// Bytes of the files in the page cache; `None` if the kernel does not report them.
    pub cached_bytes: Option<u64>,
    /// Bytes of the files that are dirty or in write-back; `None` if the kernel does not report them.
    pub dirty_bytes: Option<u64>,
}

/// The counts of BPF programs in the kernel for a command and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// Number of processes and threads that the command started.
    pub started: u64,
    /// Number of sync calls, by name.
    pub syncs: BTreeMap<String, u64>,
    /// Median latency of the sync calls in ns; `None` without a completed call.
    pub sync_median_ns: Option<u64>,
    /// 99th percentile of the latency of sync calls in ns; `None` with fewer than 1,000 calls, because fewer than ten
    /// would be above it.
    pub sync_p99_ns: Option<u64>,
    /// Maximum latency of the sync calls in ns, to within 0.4 %; `None` without a completed call.
    pub sync_max_ns: Option<u64>,
    /// Total latency of the sync calls in ns.
    pub sync_total_ns: u64,
    /// Time in ns in which at least one thread was surely in a sync call; `None` in sessions of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_covered_ns: Option<u64>,
    /// Files opened with `O_DIRECT`.
    pub direct_opens: u64,
    /// Files opened with `O_SYNC` or `O_DSYNC`: each write waits until it is stable.
    pub sync_opens: u64,
    /// Rings and contexts of asynchronous I/O that were set up (io_uring, libaio).
    pub async_contexts: u64,
    /// Pipes and sockets that the command's processes created.
    pub pipes: u64,
    /// Requests that the storage devices received: reads, then writes.
    pub requests: [Requests; 2],
    /// Why `requests` is unknown; `None` if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_unknown: Option<String>,
}

/// Requests that devices received, and how many of them are sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Number of requests.
    pub count: u64,
    /// Number of requests that began at the end of an earlier request.
    pub sequential: u64,
}

/// The sync of the dirty data that a command left in the page cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalSync {
    /// The command left no dirty data.
    NotNeeded,
    /// There was no sync, because of `--no-sync`.
    Off,
    /// A signal ended the wait.
    Skipped,
    /// The data was stable after this many ns.
    Done(u64),
    /// The sync failed, for this reason.
    Failed(String),
}

/// Another process that was busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Neighbour {
    /// Name and process id: `dd (4711)`.
    pub name: String,
    /// CPU time during the run, in ms.
    pub cpu_ms: u64,
    /// Bytes that the process fetched from storage or made dirty; `None` if fathom may not read the process's counts.
    pub io_bytes: Option<u64>,
}

/// The commands of a session with their results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResults {
    /// The results of the commands, in the order of the command line.
    pub commands: Vec<CommandResult>,
    /// Times of the second and later commands, each compared with that of the first command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Pair>,
}

/// A command with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResult {
    /// The command as a shell line.
    pub command: String,
    /// A summary of the command in one or two sentences.
    pub sentence: String,
    /// Geometric mean of the time of the complete runs, in seconds; `None` if no run is complete.
    pub seconds: Option<f64>,
    /// 95 % interval of the time over the runs; `None` with fewer than three runs.
    pub seconds_interval: Option<[f64; 2]>,
    /// The resource that the command's time depends on most.
    pub limiter: Limiter,
    /// Runs of the command, in order of time.
    pub runs: Vec<CommandRun>,
}

/// One run of a command. `Err` has the reason why a figure is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRun {
    /// Wall-clock time in seconds.
    pub seconds: f64,
    /// How the command ended.
    pub exit: Exit,
    /// CPU seconds in user space, of the command and its ended descendants.
    pub user_seconds: f64,
    /// CPU seconds in the kernel, of the command and its ended descendants.
    pub system_seconds: f64,
    /// Largest resident memory of one process, in bytes; unknown if it is not clearly larger than fathom's memory at the command's start.
    pub peak_bytes: Known<u64>,
    /// Bytes of the command's calls, and bytes that the kernel charged to the command.
    pub moved: Known<CommandIo>,
    /// Bytes of the command's reads that the page cache served.
    pub cached_read_bytes: Known<u64>,
    /// Bytes that the kernel read ahead and the command did not read.
    pub unused_read_ahead_bytes: Known<u64>,
    /// Bytes that the command wrote and that had reached storage when the command ended.
    pub written_at_end_bytes: Known<u64>,
    /// Bytes that the command wrote and that were still in memory when the command ended.
    pub dirty_at_end_bytes: Known<u64>,
    /// Seconds from the command's end until its dirty data was stable; 0 if it left none.
    pub sync_seconds: Known<f64>,
    /// Bytes that the command wrote, divided by the time until all of them were stable, in 10^6 bytes per second.
    pub stable_mb_per_s: Known<f64>,
    /// Dirty bytes of the whole machine: before the run, at the command's end, and after the final sync.
    pub machine_dirty_bytes: [Known<u64>; 3],
    /// Calls that make data stable.
    pub syncs: Known<Syncs>,
    /// How the command reads and writes.
    pub interface: Interface,
    /// Storage devices with reads or writes during the run, topmost first.
    pub devices: Known<Vec<DeviceUse>>,
    /// Bytes that the kernel charged to the command's cgroup on all devices: read and written.
    pub charged_bytes: Known<[u64; 2]>,
    /// Bytes that other processes read from the storage devices during the run.
    pub foreign_read_bytes: Known<u64>,
    /// Bytes written to the storage devices during the run that were not the command's data: data of other processes,
    /// and the journal of the file system. The kernel does not separate the two.
    pub foreign_written_bytes: Known<u64>,
    /// Other processes that were busy during the run.
    pub neighbours: Vec<Neighbour>,
    /// Shares of the time in which some task of the machine waited (PSI): first for I/O, then for a CPU, then for memory.
    pub pressure: [Known<f64>; 3],
    /// Files and devices that the command line names.
    pub named: Vec<NamedFiles>,
    /// Processes of the command that still ran after it had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub still_running: Vec<String>,
}

/// Calls that make data stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Syncs {
    /// Number of calls by name: fsync, fdatasync, sync_file_range, syncfs, sync, pwritev2 with `RWF_DSYNC` or
    /// `RWF_SYNC`, msync with `MS_SYNC`.
    pub calls: BTreeMap<String, u64>,
    /// Files opened with `O_SYNC` or `O_DSYNC`: each of their writes is also a sync.
    pub sync_opens: u64,
    /// Median latency of the sync calls in ns; `None` without sync calls.
    pub median_ns: Option<u64>,
    /// 99th percentile of the latency of sync calls in ns; `None` with fewer than 1,000 calls, because fewer than ten
    /// would be above it.
    pub p99_ns: Option<u64>,
    /// Maximum latency of the sync calls in ns, to within 0.4 %; `None` without sync calls.
    pub max_ns: Option<u64>,
    /// Total latency of the sync calls in ns.
    pub total_ns: u64,
    /// Time in ns in which at least one thread was surely in a sync call: below `total_ns` if threads synced at once;
    /// `None` in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered_ns: Option<u64>,
}

impl Syncs {
    /// Returns the number of all calls.
    pub fn count(&self) -> u64 {
        self.calls.values().sum()
    }
}

/// How a command reads and writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interface {
    /// Mean bytes of a read call; `None` without read calls, or if their number is unknown.
    pub read_call_bytes: Option<f64>,
    /// Mean bytes of a write call; `None` without write calls.
    pub write_call_bytes: Option<f64>,
    /// Whether the command opened files with `O_DIRECT`.
    pub direct: Known<bool>,
    /// Whether the command set up asynchronous I/O (io_uring, libaio).
    pub asynchronous: Known<bool>,
    /// Share of sequential requests among the reads of the devices: each began at the end of an earlier request.
    pub sequential_reads: Known<f64>,
    /// Share of sequential requests among the writes of the devices: each began at the end of an earlier request.
    pub sequential_writes: Known<f64>,
}

/// Requests of a device while a command ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceUse {
    /// Kernel name.
    pub name: String,
    /// Bytes read by all processes, from the kernel's counters of the device.
    pub read_bytes: u64,
    /// Completed reads, counted after merging.
    pub read_requests: u64,
    /// Read requests that were merged into others.
    pub read_merges: u64,
    /// Bytes written by all processes, from the kernel's counters of the device.
    pub written_bytes: u64,
    /// Completed writes, counted after merging.
    pub write_requests: u64,
    /// Write requests that were merged into others.
    pub write_merges: u64,
    /// Mean number of requests in flight over the whole run; `None` for a run of less than 50 ms, because the kernel
    /// counts the time of requests in ms.
    pub mean_depth: Option<f64>,
    /// Share of the time with at least one request in flight; `None` for a run of less than 50 ms, because the kernel
    /// counts busy time in ticks of up to 10 ms.
    pub busy_share: Option<f64>,
    /// Bytes written to the device from the end of the command until its data was stable.
    pub synced_bytes: u64,
    /// Flushes of the device's cache. `write_requests` may include as many requests without data. 0 on kernels before
    /// Linux 5.5, which do not count flushes, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flushes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Length in seconds of the shortest run for which the mean depth and the busy share of a device
/// are computed. The kernel counts the times of devices in ms or in ticks of up to 10 ms.
pub const LEAST_SECONDS: f64 = 0.05;

impl DeviceUse {
    /// Computes the figures from the difference of a device's counters over `seconds`.
    pub fn new(name: String, did: &BlockStat, synced_bytes: u64, seconds: f64) -> Self {
        let per_time = |ms: u64| (seconds >= LEAST_SECONDS).then(|| ms as f64 / 1e3 / seconds);
        Self {
            name,
            read_bytes: did.read.bytes,
            read_requests: did.read.ios,
            read_merges: did.read.merges,
            written_bytes: did.write.bytes,
            write_requests: did.write.ios,
            write_merges: did.write.merges,
            mean_depth: per_time(did.queue_ms),
            busy_share: per_time(did.busy_ms).map(|share| share.min(1.0)),
            synced_bytes,
            flushes: did.flush.map_or(0, |flushes| flushes.ios),
        }
    }
}

#[test]
fn a_share_of_the_time_needs_a_run_of_many_ticks() {
    let did = BlockStat { busy_ms: 2, ..BlockStat::default() };
    let share = |seconds| DeviceUse::new("vda".into(), &did, 0, seconds).busy_share;
    assert_eq!((share(0.002), share(0.1)), (None, Some(0.02)));
}
