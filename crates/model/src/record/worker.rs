//! What a worker cost over a run, and how it ended.
//!
//! For: its CPU time, what its engine used and what the kernel refused it. Not for: its operations, which are its stream's
//! ([`super::stream`]).

use crate::Known;
use crate::depth_counts::DepthCounts;
use crate::job::FoundDepth;
use serde::{Deserialize, Serialize};

/// What [`WorkerEnd::used`] says where the data of the next write are made while the queue is full.
pub const PREPARES_AHEAD: &str = "data of the next write made while waiting";

/// What a worker cost and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// Index of the worker.
    pub worker: u32,
    /// Index of its stream.
    pub stream: usize,
    /// ns between its first and last stamp.
    pub wall_ns: u64,
    /// CPU time in user space in that time.
    pub user_ns: u64,
    /// CPU time in the kernel in that time.
    pub system_ns: u64,
    /// Times it gave up the CPU by itself and by force.
    pub switches: [u64; 2],
    /// Page faults without and with I/O; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<[u64; 2]>,
    /// Cycles and instructions in that time, or why they were not counted.
    #[serde(default = "not_asked")]
    pub counted: Known<[u64; 2]>,
    /// How many operations it had in flight, where that was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<FoundDepth>,
    /// Operations in flight and per call, where a format needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_counts: Option<DepthCounts>,
    /// Turns of the loop; operations per turn tell how eager it was.
    pub turns: u64,
    /// Operations that completed, warm-up and drain included.
    #[serde(default)]
    pub ops: u64,
    /// ns that it was ready to run and waited for a CPU, or why that is not known.
    #[serde(default = "not_asked_for_waiting")]
    pub ready_ns: Known<u64>,
    /// Bytes and calls that the kernel counted for it in that time, or why that is not known.
    #[serde(default = "not_asked_for_io")]
    pub io: Known<ThreadIo>,
    /// What the engine really used: `registered buffers`, ...
    pub used: Vec<String>,
    /// What was asked of the kernel and refused, with the reason.
    pub fallbacks: Vec<String>,
    /// Why it ended early.
    pub error: Option<String>,
}

impl Default for WorkerEnd {
    fn default() -> Self {
        Self {
            worker: 0,
            stream: 0,
            wall_ns: 0,
            user_ns: 0,
            system_ns: 0,
            switches: [0, 0],
            faults: None,
            counted: not_asked(),
            depth: None,
            depth_counts: None,
            turns: 0,
            ops: 0,
            ready_ns: not_asked_for_waiting(),
            io: not_asked_for_io(),
            used: Vec::new(),
            fallbacks: Vec::new(),
            error: None,
        }
    }
}

/// What older files say of cycles and instructions.
fn not_asked() -> Known<[u64; 2]> {
    Err("cycles and instructions were not asked for".into())
}

/// What older files say of waiting for a CPU.
fn not_asked_for_waiting() -> Known<u64> {
    Err("waiting for a CPU was not asked for".into())
}

/// What older files say of the kernel's count of a worker's I/O.
fn not_asked_for_io() -> Known<ThreadIo> {
    Err("the kernel's count of the I/O of each worker was not asked for".into())
}

/// What the kernel counted for a thread (`/proc/thread-self/io`). Reads count when they are submitted to a block device. Direct
/// writes count likewise, other writes when they make a clean page dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIo {
    /// Bytes that system calls of the read family moved.
    pub rchar: u64,
    /// Bytes that system calls of the write family moved.
    pub wchar: u64,
    /// System calls of the read family.
    pub syscr: u64,
    /// System calls of the write family.
    pub syscw: u64,
    /// Bytes submitted to block devices to be read.
    pub read_bytes: u64,
    /// Bytes submitted to block devices to be written, and bytes of pages made dirty.
    pub write_bytes: u64,
    /// Bytes of dirty pages that were dropped before they were written.
    pub cancelled_write_bytes: u64,
}

impl ThreadIo {
    /// Reads the text of such a file.
    ///
    /// # Errors
    /// Which line is missing, or is no number.
    pub fn parse(text: &str) -> Known<Self> {
        let number = |key: &str| -> Known<u64> {
            let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
            let line = line.ok_or_else(|| format!("the kernel shows no {key} for a thread"))?;
            line.trim().parse().map_err(|_| format!("{key} is no number: '{}'", line.trim()))
        };
        Ok(Self {
            rchar: number("rchar")?,
            wchar: number("wchar")?,
            syscr: number("syscr")?,
            syscw: number("syscw")?,
            read_bytes: number("read_bytes")?,
            write_bytes: number("write_bytes")?,
            cancelled_write_bytes: number("cancelled_write_bytes")?,
        })
    }

    /// The sum of two counts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.each(earlier, u64::saturating_sub)
    }

    fn each(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            rchar: with(self.rchar, other.rchar),
            wchar: with(self.wchar, other.wchar),
            syscr: with(self.syscr, other.syscr),
            syscw: with(self.syscw, other.syscw),
            read_bytes: with(self.read_bytes, other.read_bytes),
            write_bytes: with(self.write_bytes, other.write_bytes),
            cancelled_write_bytes: with(self.cancelled_write_bytes, other.cancelled_write_bytes),
        }
    }
}

#[test]
fn a_count_is_read_whole_or_not_at_all() {
    let text =
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
    let io = ThreadIo::parse(text).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((io.rchar, io.syscw, io.read_bytes, io.cancelled_write_bytes), (1, 4, 5, 7));
    assert_eq!(io.plus(io).since(io), io);
    for (text, why) in [("rchar: 1\n", "no wchar"), (&text.replace('4', "four"), "syscw is no number")] {
        assert!(ThreadIo::parse(text).is_err_and(|w| w.contains(why)), "{why}");
    }
}

#[test]
fn older_files_have_no_count_of_the_io_of_a_worker() {
    let mut old = serde_json::to_value(WorkerEnd::default()).unwrap_or_default();
    old.as_object_mut().map(|fields| fields.remove("io"));
    let read: WorkerEnd = serde_json::from_value(old).unwrap_or_else(|e| panic!("{e}"));
    assert!(read.io.is_err_and(|why| why.contains("not asked for")));
}
