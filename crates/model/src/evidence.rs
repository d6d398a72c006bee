//! Evidence: snapshots of kernel text, kept word for word, and the parsers that read numbers from it.
//!
//! The crate `machine` reads the kernel files and the crate `analysis` draws conclusions. A parser that cannot
//! return a figure returns the reason. Constants such as [`LIMITS`] are the names under which a snapshot keeps text
//! that has no single path.
//!
//! Formats: kernel `Documentation/block/stat.rst`, `admin-guide/iostats.rst`,
//! `admin-guide/cgroup-v1/blkio-controller.rst`, `admin-guide/cgroup-v2.rst`, `filesystems/proc.rst`.

use crate::Known;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a sector in `stat` files, whatever the device's own block size.
pub const SECTOR_BYTES: u64 = 512;

/// Kernel text and page-cache state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The moment within the session.
    pub moment: Moment,
    /// Time since the session began, in ns.
    pub at_ns: u64,
    /// Kernel files by path, each with its text or why it could not be read.
    pub files: BTreeMap<String, Known<String>>,
    /// One state for each target of the plan, in the same order; empty if the targets were not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetState>,
}

/// The moments at which evidence is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before the targets are created or opened.
    BeforePrepare,
    /// After the targets were created or opened, and after preconditioning; before the idle watch.
    AfterPrepare,
    /// Start of the idle watch, during which fathom only observes the load of other processes.
    IdleStart,
    /// End of the idle watch.
    IdleEnd,
    /// When all workers are ready and none has begun.
    Start,
    /// While the workers run.
    During,
    /// After the last operation has completed and before the final sync.
    Stop,
    /// After the final sync.
    Synced,
}

/// Pages and extents of a target according to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetState {
    /// Pages of the target in the page cache.
    pub pages: Known<Pages>,
    /// Extents of the target's data; `None` at moments at which they are not read. Reading them
    /// flushes the file, so they are never read directly after the last operation.
    pub extents: Option<Known<Extents>>,
    /// Extents of the file below a loop device; `None` for other targets, or if extents are not
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<Known<Extents>>,
    /// Identity and length of the file, read at every moment; `None` in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Known<FileState>>,
    /// Free space of the file system; `None` at moments at which `extents` are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Known<Room>>,
    /// Latencies of single reads before the first run; `None` without a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Known<Probe>>,
    /// The regions of single streams, if streams touch different bytes of the target: `extents` and `probe` are
    /// about the range that contains all of them. Empty at moments at which `extents` are not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionState>,
}

impl TargetState {
    /// Returns the state of the region with these bytes; `None` if the snapshot has none.
    pub fn region(&self, bytes: &Range<u64>) -> Option<&RegionState> {
        self.regions.iter().find(|r| (r.first_byte, r.end_byte) == (bytes.start, bytes.end))
    }
}

/// How the bytes of a region of a target are stored, and what a probe of the region read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionState {
    /// Offset in the target.
    pub first_byte: u64,
    /// First byte after the region; may be beyond the end of the target.
    pub end_byte: u64,
    /// Extents of the region's data.
    pub extents: Known<Extents>,
    /// Latencies of single reads before the first run; `None` without a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Known<Probe>>,
}

/// Identity and length of a file (fstat). The kernel does not expose the change cookies of file systems, so fathom
/// uses the time of the last change instead, with the resolution of the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number in the file system.
    pub inode: u64,
    /// Number of hard links.
    pub links: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Allocated space in bytes: `st_blocks` times 512.
    pub allocated_bytes: u64,
    /// Time of the last change of the data, in ns since 1970.
    pub modified_ns: i64,
    /// Time of the last change of the data, names or attributes, in ns since 1970; `None` in sessions of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_ns: Option<i64>,
}

/// How full a file system is (statvfs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Total size in bytes.
    pub total_bytes: u64,
    /// Free space for users other than root, in bytes.
    pub free_bytes: u64,
}

/// Blocks read one at a time with direct I/O before the first run and outside every measured window. Each block is
/// read twice: first all blocks once, then all blocks again in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Length of each read in bytes; at least what direct I/O requires.
    pub block_bytes: u64,
    /// Number of blocks that contain only zeros.
    pub zero_blocks: u64,
    /// Duration of the first read of each block in ns.
    pub first_ns: Vec<u64>,
    /// Duration of the second read of each block in ns.
    pub again_ns: Vec<u64>,
}

/// Pages of a file in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// Size of a memory page on this machine in bytes.
    pub page_bytes: u64,
    /// Number of pages of the file in the page cache.
    pub cached: u64,
    /// Number of cached pages that are dirty or in write-back; `None` if only mincore was available.
    pub dirty: Option<u64>,
}

/// How the bytes of a span of a file are stored (FIEMAP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Extents {
    /// Length of the span in bytes, including holes.
    pub span_bytes: u64,
    /// Number of extents.
    pub count: u64,
    /// Bytes in holes, without an extent.
    pub hole_bytes: u64,
    /// Allocated bytes that were never written. Reads return zeros without the device.
    pub unwritten_bytes: u64,
    /// Bytes whose allocation is delayed.
    pub delayed_bytes: u64,
    /// Bytes inside the inode, or packed with other data.
    pub inline_bytes: u64,
    /// Bytes stored compressed or encrypted.
    pub encoded_bytes: u64,
    /// Bytes shared with another file.
    pub shared_bytes: u64,
    /// Largest power of two to which the start of every extent is aligned on its device; `None` if the location of no
    /// extent is known.
    #[serde(default)]
    pub physical_align: Option<u64>,
    /// Largest contiguous piece on the device in bytes, across adjacent extents; `None` if the location of no extent is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_piece_bytes: Option<u64>,
}

impl Extents {
    /// Returns the share of the file that is in its largest contiguous piece; `None` if the location of no extent is
    /// known.
    pub fn largest_share(&self) -> Option<f64> {
        let largest = self.largest_piece_bytes.filter(|_| self.span_bytes > 0)?;
        Some(largest as f64 / self.span_bytes as f64)
    }
}

/// Counters of a block device (`stat` file) or their difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStat {
    /// Requests, bytes, merges and time of reads.
    pub read: BlockFlow,
    /// Requests, bytes, merges and time of writes.
    pub write: BlockFlow,
    /// Requests, bytes, merges and time of discards; `None` before Linux 4.18.
    pub discard: Option<BlockFlow>,
    /// Completed flushes; `None` before Linux 5.5.
    pub flush: Option<Flushes>,
    /// Requests in flight when the counters were read.
    pub in_flight: u64,
    /// Time with at least one request in flight, in ms.
    pub busy_ms: u64,
    /// Sum of the times of all requests in flight, in ms: the integral of the queue length.
    pub queue_ms: u64,
}

/// One direction of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFlow {
    /// Requests completed.
    pub ios: u64,
    /// Requests that were merged into others.
    pub merges: u64,
    /// Bytes that the completed requests moved or discarded.
    pub bytes: u64,
    /// Total time of all requests in ms.
    pub ms: u64,
}

/// Flushes that a device completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushes {
    /// Number of flushes.
    pub ios: u64,
    /// Total time of all flushes in ms.
    pub ms: u64,
}

/// I/O charged to one cgroup on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupIo {
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Read and write requests.
    pub ios: [u64; 2],
}

impl Snapshot {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// Why the file could not be read, or that it was not read.
    pub fn text(&self, path: &str) -> Known<&str> {
        text_of(&self.files, path)
    }
}

/// Returns the text of a kernel file, or the reason why there is none.
pub(crate) fn text_of<'f>(files: &'f BTreeMap<String, Known<String>>, path: &str) -> Known<&'f str> {
    match files.get(path) {
        Some(Ok(text)) => Ok(text),
        Some(Err(why)) => Err(format!("{path}: {why}")),
        None => Err(format!("{path} was not read")),
    }
}

/// Adds or subtracts two counters; `None` if the result would be negative.
type Combine = fn(u64, u64) -> Option<u64>;

const ADD: Combine = |a, b| Some(a.saturating_add(b));

/// Returns both values, with the default in place of a missing one; `None` if both are missing.
fn fill_missing<T: Copy + Default>(own: Option<T>, other: Option<T>) -> Option<(T, T)> {
    own.or(other).map(|_| (own.unwrap_or_default(), other.unwrap_or_default()))
}

impl BlockStat {
    /// Parses the fields of a `stat` file (11, 15 or 17 numbers). `/proc/diskstats` has the same fields after a device's
    /// name.
    ///
    /// # Errors
    /// The field that is not a number, or that fields are missing.
    pub fn parse(text: &str) -> Known<Self> {
        let fields: Vec<u64> = text
            .split_ascii_whitespace()
            .map(|w| w.parse().map_err(|_| format!("'{w}' in a block stat file is not a number")))
            .collect::<Result<_, _>>()?;
        let flow = |first: usize| match fields.get(first..first + 4) {
            Some(&[ios, merges, sectors, ms]) => {
                Some(BlockFlow { ios, merges, bytes: sectors.saturating_mul(SECTOR_BYTES), ms })
            }
            _ => None,
        };
        let (Some(read), Some(write), Some(&[in_flight, busy_ms, queue_ms])) =
            (flow(0), flow(4), fields.get(8..11))
        else {
            return Err(format!(
                "a block stat file has too few fields: {} instead of 11 or more",
                fields.len()
            ));
        };
        let flush = match fields.get(15..17) {
            Some(&[ios, ms]) => Some(Flushes { ios, ms }),
            _ => None,
        };
        Ok(Self { read, write, discard: flow(11), flush, in_flight, busy_ms, queue_ms })
    }

    /// Returns the difference of the counters in two snapshots for the layer with this `stat` file.
    ///
    /// # Errors
    ///
    /// Why a snapshot has no counters, or that the counters went backwards.
    pub fn between(before: &Snapshot, after: &Snapshot, stat_file: &str) -> Known<Self> {
        let a = Self::parse(before.text(stat_file)?)?;
        let b = Self::parse(after.text(stat_file)?)?;
        b.since(&a).ok_or_else(|| format!("{stat_file}: the counters went backwards"))
    }

    /// Returns `self - earlier`; `in_flight` is that of `self`. `None` if a counter went backwards. If only a counter
    /// of discards went backwards, only `discard` is `None`.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self { in_flight: self.in_flight, ..self.combine(earlier, u64::checked_sub)? })
    }

    /// Returns the sum of the counters of two devices or two intervals.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let in_flight = self.in_flight.saturating_add(other.in_flight);
        Self { in_flight, ..self.combine(other, ADD).unwrap_or_default() }
    }

    /// Adds or subtracts all counters except `in_flight`. `None` if a result other than that of discards would be
    /// negative.
    fn combine(&self, other: &Self, combine: Combine) -> Option<Self> {
        Some(Self {
            read: self.read.combine(&other.read, combine)?,
            write: self.write.combine(&other.write, combine)?,
            discard: fill_missing(self.discard, other.discard)
                .and_then(|(own, its)| own.combine(&its, combine)),
            flush: match fill_missing(self.flush, other.flush) {
                Some((own, its)) => {
                    Some(Flushes { ios: combine(own.ios, its.ios)?, ms: combine(own.ms, its.ms)? })
                }
                None => None,
            },
            in_flight: 0,
            busy_ms: combine(self.busy_ms, other.busy_ms)?,
            queue_ms: combine(self.queue_ms, other.queue_ms)?,
        })
    }

    /// Returns the completed flushes; 0 if the kernel does not count them.
    pub fn flushes(&self) -> Flushes {
        self.flush.unwrap_or_default()
    }

    /// Returns the sum of reads and writes.
    pub fn total(&self) -> BlockFlow {
        self.read.plus(&self.write)
    }

    /// Returns whether the device has read, written, discarded or flushed anything since it appeared.
    pub fn was_used(&self) -> bool {
        let ios = [Some(self.read), Some(self.write), self.discard].into_iter().flatten().map(|f| f.ios);
        ios.chain(self.flush.map(|f| f.ios)).any(|n| n > 0)
    }
}

impl CgroupIo {
    /// Returns the sum of the charges for two devices or two intervals.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: [0, 1].map(|i| self.bytes[i].saturating_add(other.bytes[i])),
            ios: [0, 1].map(|i| self.ios[i].saturating_add(other.ios[i])),
        }
    }
}

impl BlockFlow {
    fn combine(&self, other: &Self, combine: Combine) -> Option<Self> {
        Some(Self {
            ios: combine(self.ios, other.ios)?,
            merges: combine(self.merges, other.merges)?,
            bytes: combine(self.bytes, other.bytes)?,
            ms: combine(self.ms, other.ms)?,
        })
    }

    /// Returns the sum of this flow and that of another direction or device.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(other, ADD).unwrap_or_default()
    }
}

/// Largest amount of dirty data, in bytes, that is normal on an idle machine. A disk takes 0.1 s or longer to write back
/// more than this. Before a run, fathom waits until less is dirty. Check D02 has a finding if more is dirty.
pub const BACKLOG_BYTES: u64 = 64 << 20;

/// Returns a figure in bytes from the text of `/proc/meminfo`. `key` has no colon.
///
/// # Errors
///
/// That the key is missing, or its value is not a number.
pub fn meminfo_bytes(text: &str, key: &str) -> Known<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    let words = line.ok_or_else(|| format!("meminfo has no {key}"))?;
    let number = words.split_ascii_whitespace().next().and_then(|w| w.parse::<u64>().ok());
    number.and_then(|kb| kb.checked_mul(1024)).ok_or_else(|| format!("meminfo {key} is not a number"))
}

/// Parses the charges per device (`major:minor`) from v1 `blkio.throttle.io_service_bytes` or `io_serviced` text: read
/// and write.
pub fn cgroup_v1(text: &str) -> BTreeMap<String, [u64; 2]> {
    let mut out: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(device), Some(word), Some(Ok(n))) =
            (words.next(), words.next(), words.next().map(str::parse))
        else {
            continue;
        };
        let slot = match word {
            "Read" => 0,
            "Write" => 1,
            _ => continue,
        };
        out.entry(device.to_owned()).or_default()[slot] = n;
    }
    out
}

/// Parses the charges per device (`major:minor`) from v2 `io.stat` text.
pub fn cgroup_v2(text: &str) -> BTreeMap<String, CgroupIo> {
    let mut out: BTreeMap<String, CgroupIo> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(device) = words.next().filter(|d| d.contains(':')) else { continue };
        let mut io = CgroupIo::default();
        for (key, value) in words.filter_map(|w| w.split_once('=')) {
            let Ok(n) = value.parse() else { continue };
            match key {
                "rbytes" => io.bytes[0] = n,
                "wbytes" => io.bytes[1] = n,
                "rios" => io.ios[0] = n,
                "wios" => io.ios[1] = n,
                _ => {}
            }
        }
        out.insert(device.to_owned(), io);
    }
    out
}

/// A line of `/proc/diskstats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLine<'t> {
    /// `major:minor`.
    pub number: String,
    /// Kernel name.
    pub name: &'t str,
    /// The counters after the name.
    pub counters: BlockStat,
}

/// Parses the devices of `/proc/diskstats`, in its order. Skips unreadable lines, so a text in an unknown format
/// has no devices.
pub fn disk_lines(text: &str) -> impl Iterator<Item = DiskLine<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (major, minor): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let name = words.next()?;
        let at = line.find(name)? + name.len();
        // A name of only digits would also match one of the numbers before it, but the kernel assigns no such name.
        let counters = BlockStat::parse(line.get(at..)?).ok()?;
        Some(DiskLine { number: format!("{major}:{minor}"), name, counters })
    })
}

// A fact is read once per session (`Machine::facts`). The other texts are in snapshots.

/// Fact, also in snapshots: the limits that fathom's cgroup and the cgroups above it set. Each line is `PATH: LINE`,
/// from one of these files: `io.max`, `io.latency`, `io.weight` other than its default, `io.cost.qos` that is on,
/// `blkio.throttle.*_device`, `cpu.max`, `cpu.cfs_quota_us` with `cpu.cfs_period_us`, `memory.max`, `memory.high`,
/// `memory.limit_in_bytes`; and from `cgroup.type` of the topmost visible cgroup, if it is not the root (version 2). A
/// file that could not be read has a line that begins with [`UNREADABLE_LIMIT`].
pub const LIMITS: &str = "limits of the cgroups above us";

/// The beginning of a line of [`LIMITS`] about a file that could not be read. `PATH (REASON)` follows.
pub const UNREADABLE_LIMIT: &str = "unreadable: ";

/// The part before the first dot in the names of the cgroup files that limit I/O, such as `io.max`.
pub const IO_LIMIT_KINDS: &[&str] = &["io", "blkio"];
/// The part before the first dot in the names of all cgroup files with limits.
pub const ALL_LIMIT_KINDS: &[&str] = &["io", "blkio", "cpu", "memory"];

/// Describes the unreadable files in a text of [`LIMITS`]; `None` if all files were read. `kinds` selects the files, as in
/// [`IO_LIMIT_KINDS`].
pub fn unreadable_limits(limits: &str, kinds: &[&str]) -> Option<String> {
    let is_of_kind = |file: &&str| {
        kinds.iter().any(|kind| file.starts_with(&format!("{kind}.")) || file.contains(&format!("/{kind}.")))
    };
    let unreadable = limits.lines().filter_map(|line| line.strip_prefix(UNREADABLE_LIMIT));
    let all: Vec<&str> = unreadable.filter(is_of_kind).collect();
    (!all.is_empty()).then(|| format!("limits of cgroups could not be read: {}", all.join("; ")))
}

/// Whether a text of [`LIMITS`] may lack the limits of outer cgroups, which are hidden in a container.
pub fn hides_outer_cgroups(limits: &str) -> bool {
    limits.contains("/cgroup.type: ")
}

/// Fact: the frequency governor of each CPU.
pub const GOVERNORS: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
/// Fact: the enabled sleep states of the first CPU, with their wake-up latency in us.
pub const SLEEPS: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state*/latency";
/// Fact: vendor of the machine or the hypervisor.
pub const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
/// Fact: product name of the machine or the hypervisor.
pub const PRODUCT: &str = "/sys/class/dmi/id/product_name";
/// Fact: smallest order of free pages that a guest kernel reports to its host. The host then takes these pages. The
/// file is missing if the kernel does not support reporting.
pub const PAGE_REPORTING: &str = "/sys/module/*/parameters/page_reporting_order";
/// Fact: the component that denies io_uring on this machine; empty text if io_uring can be used.
pub const IO_URING: &str = "what denies io_uring";
/// Fact: libraries mapped into fathom, one path per line, after a line `LD_PRELOAD: ...` if that is set.
pub const LIBRARIES: &str = "libraries of /proc/self/maps";
/// At the end of the idle watch: the other processes that moved the most data during the watch, at most three, as lines
/// `name (pid): bytes`, largest first.
pub const NEIGHBOURS: &str = "/proc/*/io of other processes";
/// In snapshots: the kernel's housekeeping threads, as lines `pid: name`.
pub const HOUSEKEEPERS: &str = "/proc/*/comm of kernel threads";
/// In snapshots while workers run: all threads of fathom, as lines `tid: name`. A long list is omitted if it is
/// unchanged.
pub const THREADS: &str = "/proc/self/task/*/comm";
/// In snapshots: temperatures of the drives below the targets in thousandths of a degree, with their limits:
/// `temp1_input`, `temp1_max`, `temp1_crit`, `temp1_alarm`. Empty if the kernel shows no temperature of these
/// drives.
pub const TEMPERATURES: &str = "/sys/class/hwmon/hwmon*/temp1_*";
/// In snapshots: the part of `/proc/self/mountstats` about the targets' NFS mounts.
pub const MOUNT_STATS: &str = "/proc/self/mountstats";
/// In snapshots: state of software RAID.
pub const RAID: &str = "/proc/mdstat";
/// In snapshots: `cpu.stat` of fathom's cgroup or of a cgroup above it: the nearest one that has a CPU quota and counts throttling;
/// otherwise the nearest one that counts throttling; otherwise the nearest one with a `cpu.stat`.
pub const CPU_STAT: &str = "cpu.stat of our cgroup";
/// In snapshots: `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC` in ns, which grows while the machine is suspended.
pub const SUSPENDED: &str = "CLOCK_BOOTTIME - CLOCK_MONOTONIC";
/// Fact: the core number of each CPU, which is unique within its package.
pub const CORES: &str = "/sys/devices/system/cpu/cpu*/topology/core_id";
/// Fact: the package number of each CPU.
pub const PACKAGES: &str = "/sys/devices/system/cpu/cpu*/topology/physical_package_id";
/// Fact: the CPUs of each memory node, as lists such as `0-3,8`.
pub const NODES: &str = "/sys/devices/system/node/node*/cpulist";

#[test]
fn stat_files_of_three_kernel_ages_are_parsed() {
    let now = "1000 7 8000 40 5 1 80 2 3 44 42 0 0 0 0 9 11\n";
    let s = BlockStat::parse(now).unwrap_or_default();
    assert_eq!((s.read.ios, s.read.bytes, s.read.ms, s.write.ios), (1000, 4_096_000, 40, 5));
    assert_eq!((s.in_flight, s.busy_ms, s.queue_ms), (3, 44, 42));
    assert_eq!(s.flush, Some(Flushes { ios: 9, ms: 11 }));
    assert!(BlockStat::parse("1 2 3 4 5 6 7 8 9 10 11").is_ok());
    assert!(BlockStat::parse("1 2 3").is_err());
    assert!(BlockStat::parse("1 2 x 4 5 6 7 8 9 10 11").is_err());
    assert_eq!(BlockStat::default().since(&s), None);
}

#[test]
fn meminfo_and_cgroup_texts_are_parsed() {
    assert_eq!(meminfo_bytes("MemTotal:   16 kB\nDirty:  4 kB\n", "Dirty"), Ok(4096));
    assert!(meminfo_bytes("MemTotal: 16 kB\n", "Dirty").is_err());
    let v1 = cgroup_v1("254:0 Read 8192\n254:0 Write 4096\n254:0 Total 12288\nTotal 12288\n");
    assert_eq!(v1.get("254:0"), Some(&[8192, 4096]));
    let v2 = cgroup_v2("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n");
    assert_eq!(v2.get("8:0"), Some(&CgroupIo { bytes: [1, 2], ios: [3, 4] }));
}

#[test]
fn fields_missing_in_old_kernels_are_none() {
    let old = "  8       0 sda 10 1 80 5 20 2 160 7 3 44 42\n";
    let with_discards = "8 1 sda1 10 1 80 5 20 2 160 7 3 44 42 4 3 8 9\n";
    let now = "254 0 vda 10 1 80 5 20 2 160 7 3 44 42 4 3 8 9 6 11\n";
    let text = format!("{old}{with_discards}{now}junk\n8 2 sdb 1 x\n");
    let all: Vec<DiskLine<'_>> = disk_lines(&text).collect();
    let names: Vec<(&str, &str)> = all.iter().map(|l| (l.number.as_str(), l.name)).collect();
    assert_eq!(names, [("8:0", "sda"), ("8:1", "sda1"), ("254:0", "vda")]);
    let [a, b, c] = [&all[0].counters, &all[1].counters, &all[2].counters];
    assert_eq!((a.discard, a.flush, b.flush), (None, None, None));
    assert_eq!(b.discard, Some(BlockFlow { ios: 4, merges: 3, bytes: 4096, ms: 9 }));
    assert_eq!(c.flush, Some(Flushes { ios: 6, ms: 11 }));
    assert_eq!((c.read.bytes, c.write.ms, c.in_flight, c.busy_ms, c.queue_ms), (40_960, 7, 3, 44, 42));
    assert!(a.was_used() && !BlockStat::default().was_used());
}
