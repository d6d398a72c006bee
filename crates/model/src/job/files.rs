//! How a stream uses its files: cache modes, sync calls between writes, creation, and files that workers share.

use crate::spec::number::word_of;
use crate::units::show_block;
use serde::{Deserialize, Serialize};

enum_of_words! {
    /// Open flags that decide about the page cache and durability.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    Cache {
        /// `O_DIRECT`: bypasses the page cache, if the file system supports it.
        #[default]
        Direct = "direct",
        /// No flag: through the page cache.
        Buffered = "buffered",
        /// `O_SYNC`: through the page cache; each write waits until data and metadata are on stable
        /// storage.
        Sync = "sync",
        /// `O_DSYNC`: through the page cache; each write waits until it can be read back after a crash.
        Dsync = "dsync",
        /// `O_DIRECT | O_SYNC`.
        DirectSync = "direct-sync",
        /// `O_DIRECT | O_DSYNC`.
        DirectDsync = "direct-dsync",
        /// Memory mapped: loads and stores through the page cache. Only with the engine `mmap`.
        Mmap = "mmap",
    }
}

impl Cache {
    /// Whether files are opened with `O_DIRECT`.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectSync | Self::DirectDsync)
    }

    /// Whether each write must be stable before it completes (`O_SYNC`, `O_DSYNC`).
    pub fn is_sync(self) -> bool {
        self.is_full_sync() || matches!(self, Self::Dsync | Self::DirectDsync)
    }

    /// Whether each write waits for all its metadata too (`O_SYNC`).
    pub fn is_full_sync(self) -> bool {
        matches!(self, Self::Sync | Self::DirectSync)
    }

    /// Returns one line for `--help`.
    pub fn about(self) -> &'static str {
        match self {
            Self::Direct => "O_DIRECT: past the page cache",
            Self::Buffered => "through the page cache",
            Self::Sync => {
                "through the page cache, each write stable with its metadata before it completes (O_SYNC)"
            }
            Self::Dsync => "through the page cache, each write stable before it completes (O_DSYNC)",
            Self::DirectSync => "O_DIRECT and O_SYNC",
            Self::DirectDsync => "O_DIRECT and O_DSYNC",
            Self::Mmap => "loads and stores to a memory mapping (engine mmap)",
        }
    }
}

/// The sync call that a stream makes between writes, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flush {
    /// The system call.
    pub call: SyncCall,
    /// Number of a lane's writes over which `calls` sync calls are spread evenly.
    pub every: u32,
    /// Number of sync calls for each group of `every` writes; normally 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub calls: u32,
    /// Whether the call waits for the writes in flight, and later writes wait for the call.
    /// Otherwise the call covers only completed writes.
    pub drain: bool,
}

/// Returns the value of a count that is missing in older session files.
pub(super) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Mean number of writes before each sync call, as the fraction `writes / calls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// Number of writes for `calls` calls; at least 1.
    pub writes: u32,
    /// Number of calls for `writes` writes; at least 1.
    pub calls: u32,
}

impl Every {
    /// Creates the rule of one call after this many writes.
    pub const fn writes(writes: u32) -> Self {
        Self { writes, calls: 1 }
    }

    /// Formats the number of writes before each call: `8`, `2.9`.
    pub fn format_count(self) -> String {
        (f64::from(self.writes) / f64::from(self.calls.max(1))).to_string()
    }

    /// Returns text such as `after each write`, `after every 8 writes`.
    pub fn describe(self) -> String {
        if self.writes == self.calls {
            "after each write".into()
        } else {
            format!("after every {} writes", self.format_count())
        }
    }
}

impl Flush {
    /// Returns text such as `fdatasync after each write`, `fsync after every 8 writes`.
    pub fn describe(&self) -> String {
        let every = Every { writes: self.every, calls: self.calls };
        format!("{} {}", self.call.word(), every.describe())
    }
}

enum_of_words! {
    /// A call that makes writes stable.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    SyncCall {
        /// `fsync`: data and metadata. For a mapping `msync(MS_SYNC)`.
        #[default]
        Fsync = "fsync",
        /// `fdatasync`: data, and the metadata needed to read them back.
        Fdatasync = "fdatasync",
        /// `sync_file_range`: starts and awaits write-back of the whole file; no metadata, no flush of the device's
        /// cache.
        SyncFileRange = "sync_file_range",
    }
}

/// A test file that fathom creates if it is missing, and keeps unless `unlink` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Create {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Content of the file before the first run.
    pub filling: Filling,
    /// Whether fathom removes the file at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlink: bool,
}

/// Content of a file before the first run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Filling {
    /// Empty: the file grows by each write.
    Nothing,
    /// Empty, with blocks allocated beyond the end of the file.
    Reserved,
    /// A hole of the full length.
    Hole,
    /// Allocated blocks that were never written.
    Blocks,
    /// Unique data.
    #[default]
    Data,
}

impl Filling {
    /// All values with the text that a user types.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("data", Self::Data),
        ("blocks", Self::Blocks),
        ("nothing", Self::Nothing),
        ("reserved", Self::Reserved),
        ("hole", Self::Hole),
    ];

    /// Returns the word for this content in the value of the key `create`.
    pub fn word(self) -> &'static str {
        word_of(&Self::WORDS, &self)
    }
}

/// A file in which every worker of every host has its own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shared {
    /// The layout of the parts.
    pub layout: Layout,
    /// Number of passes over the worker's own part after which the worker ends; `None` if another
    /// rule ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
}

/// Layout of a file that several tasks share: a sequence of segments, each with one block of every task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A single segment, in which each task has one block of the largest possible size.
    Segmented,
    /// Blocks of the size of one transfer, assigned to the tasks in turn.
    Strided,
    /// Blocks of this many bytes.
    Blocks(u64),
}

impl Layout {
    /// Describes the layout, with the block size if the layout does not imply it.
    pub fn describe(self) -> String {
        match self {
            Self::Segmented => "segmented".into(),
            Self::Strided => "strided".into(),
            Self::Blocks(bytes) => show_block(bytes),
        }
    }
}

/// A task, which is IOR's word for a worker: one of the workers of all hosts that share a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskNumber {
    /// Index of the worker, counted host by host.
    pub index: u64,
    /// Number of workers of all hosts that share the file.
    pub count: u64,
}

/// The blocks of one task in a shared span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnBlocks {
    /// Length of a block in bytes.
    pub block_bytes: u64,
    /// Number of blocks of the task: one in each segment.
    pub segments: u64,
    /// Distance in bytes from the beginning of the span to the task's first block.
    first: u64,
    /// Distance in bytes from the beginning of one block of the task to the beginning of its next block.
    step: u64,
}

impl OwnBlocks {
    /// Returns the blocks of a task in a span, for transfers of this size; `None` if there is not a
    /// complete block for each task. The remainder after the last complete segment belongs to no task.
    pub fn for_task(layout: Layout, span_bytes: u64, transfer: u64, task: TaskNumber) -> Option<Self> {
        let (transfer, tasks) = (transfer.max(1), task.count.max(1));
        let block_bytes = match layout {
            Layout::Segmented => span_bytes / tasks / transfer * transfer,
            Layout::Strided => transfer,
            Layout::Blocks(bytes) => bytes,
        };
        let step = block_bytes.checked_mul(tasks).filter(|step| *step > 0 && task.index < tasks)?;
        let segments = if layout == Layout::Segmented { 1 } else { span_bytes / step };
        (segments > 0).then_some(Self { block_bytes, segments, first: task.index * block_bytes, step })
    }

    /// Returns the total size in bytes of the task's blocks.
    pub fn bytes(&self) -> u64 {
        self.block_bytes * self.segments
    }

    /// Converts an offset within the task's own blocks to an offset in the span. The bytes from there to the end of the
    /// block are contiguous.
    #[inline]
    pub fn place(&self, own: u64) -> u64 {
        self.first + own / self.block_bytes * self.step + own % self.block_bytes
    }

    /// Returns the range of each block in the span.
    pub fn places(self) -> impl Iterator<Item = std::ops::Range<u64>> {
        (0..self.segments).map(move |segment| {
            let start = self.first + segment * self.step;
            start..start + self.block_bytes
        })
    }
}

/// IOR writes transfer j of the block of task r in segment i at (i x tasks + r) x b + j x t, where b is the block size
/// and t is the transfer size.
#[test]
fn blocks_have_the_offsets_of_ior() {
    let at = |layout, span, transfer, task| -> Vec<u64> {
        let own = OwnBlocks::for_task(layout, span, transfer, TaskNumber { index: task, count: 2 })
            .unwrap_or_else(|| panic!("no blocks"));
        (0..own.bytes() / transfer).map(|n| own.place(n * transfer)).collect()
    };
    // -b 47008 -t 47008 -s 3
    assert_eq!(at(Layout::Strided, 6 * 47_008 + 5, 47_008, 0), [0, 94_016, 188_032]);
    assert_eq!(at(Layout::Strided, 6 * 47_008 + 5, 47_008, 1), [47_008, 141_024, 235_040]);
    // -b 4 -t 1 -s 1
    assert_eq!(at(Layout::Segmented, 9, 1, 1), [4, 5, 6, 7]);
    // -b 4 -t 2 -s 2
    assert_eq!(at(Layout::Blocks(4), 16, 2, 1), [4, 6, 12, 14]);
}

#[test]
fn the_parts_of_all_tasks_cover_the_segments_once() {
    for layout in [Layout::Segmented, Layout::Strided, Layout::Blocks(6)] {
        for (span, tasks) in [(60, 1), (61, 2), (100, 3), (1_000, 7)] {
            let mut covered = vec![0_u8; span as usize];
            let mut whole = 0;
            for task in 0..tasks {
                let own = OwnBlocks::for_task(layout, span, 3, TaskNumber { index: task, count: tasks })
                    .unwrap_or_else(|| panic!("none"));
                whole += own.bytes();
                let by_places: Vec<u64> = own.places().flatten().collect();
                let by_bytes: Vec<u64> = (0..own.bytes()).map(|b| own.place(b)).collect();
                assert_eq!(by_places, by_bytes);
                for byte in by_bytes {
                    covered[byte as usize] += 1;
                }
            }
            let (own, rest) = covered.split_at(whole as usize);
            assert!(own.iter().all(|times| *times == 1), "{layout:?} {span} {tasks}");
            assert!(rest.iter().all(|times| *times == 0) && (rest.len() as u64) < 6 * tasks, "{layout:?}");
        }
    }
}

#[test]
fn spans_without_a_block_for_each_task_give_none() {
    let has_blocks = |layout, span, tasks| {
        OwnBlocks::for_task(layout, span, 4096, TaskNumber { index: 0, count: tasks }).is_some()
    };
    assert!(has_blocks(Layout::Strided, 8192, 2) && !has_blocks(Layout::Strided, 8191, 2));
    assert!(has_blocks(Layout::Segmented, 8192, 2) && !has_blocks(Layout::Segmented, 8191, 2));
    assert!(!has_blocks(Layout::Blocks(0), 8192, 2) && !has_blocks(Layout::Blocks(u64::MAX), u64::MAX, 2));
    assert!(OwnBlocks::for_task(Layout::Strided, 8192, 4096, TaskNumber { index: 2, count: 2 }).is_none());
}

#[test]
fn a_sync_after_each_write_has_no_count() {
    let describe = |writes, calls| Every { writes, calls }.describe();
    assert_eq!([describe(1, 1), describe(3, 3)], ["after each write"; 2]);
    assert_eq!([describe(8, 1), describe(29, 10)], ["after every 8 writes", "after every 2.9 writes"]);
}
