//! Shared: a file that the workers of all hosts divide among themselves, and which of its bytes are whose.
//!
//! For: IOR's ways to lay a file out for many tasks, as pure arithmetic. Not for: which block of its own a worker touches next
//! ([`super::order`]), nor zones of one worker ([`super::strided`]).

use crate::units::show_block;
use serde::{Deserialize, Serialize};

/// A file of which every worker of every host has a part to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shared {
    /// Which bytes are whose.
    pub layout: Layout,
    /// Passes over its own part after which each worker ends; `None` where something else ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
}

/// How a file is laid out for tasks: it is a row of segments, of each of which every task has one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// One segment: each task has one block, as large as they can all be.
    Segmented,
    /// Blocks of one transfer: of each group of as many as there are tasks the first is that of the first task.
    Strided,
    /// Blocks of so many bytes.
    Blocks(u64),
}

impl Layout {
    /// What it is called beside the size of a block that nothing else says.
    pub fn describe(self) -> String {
        match self {
            Self::Segmented => "segmented".into(),
            Self::Strided => "strided".into(),
            Self::Blocks(bytes) => show_block(bytes),
        }
    }
}

/// The blocks of one task in a span that several share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnBlocks {
    /// Length of each of its blocks in bytes.
    pub block_bytes: u64,
    /// How many of them it has: one in each segment.
    pub segments: u64,
    /// From the beginning of the span to its first.
    first: u64,
    /// From the beginning of one of them to that of the next.
    step: u64,
}

impl OwnBlocks {
    /// The blocks of a task of so many in a span of so many bytes, for transfers of so many; `None` where there is not a whole block
    /// for each task. What is left behind the last whole segment is nobody's.
    pub fn for_task(
        layout: Layout,
        span_bytes: u64,
        transfer: u64,
        (task, tasks): (u64, u64),
    ) -> Option<Self> {
        let (transfer, tasks) = (transfer.max(1), tasks.max(1));
        let block_bytes = match layout {
            Layout::Segmented => span_bytes / tasks / transfer * transfer,
            Layout::Strided => transfer,
            Layout::Blocks(bytes) => bytes,
        };
        let step = block_bytes.checked_mul(tasks).filter(|step| *step > 0 && task < tasks)?;
        let segments = if layout == Layout::Segmented { 1 } else { span_bytes / step };
        (segments > 0).then_some(Self { block_bytes, segments, first: task * block_bytes, step })
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.block_bytes * self.segments
    }

    /// Where a byte is in the span that is so far in the row of them; all that there is of the block behind it is behind it there too.
    #[inline]
    pub fn place(&self, own: u64) -> u64 {
        self.first + own / self.block_bytes * self.step + own % self.block_bytes
    }

    /// Each of them, in its place.
    pub fn places(self) -> impl Iterator<Item = std::ops::Range<u64>> {
        (0..self.segments).map(move |segment| {
            let start = self.first + segment * self.step;
            start..start + self.block_bytes
        })
    }
}

/// IOR writes: segment i, block of task r, transfer j are at (i x tasks + r) x b + j x t.
#[test]
fn blocks_lie_where_ior_has_them() {
    let at = |layout, span, transfer, task| -> Vec<u64> {
        let own =
            OwnBlocks::for_task(layout, span, transfer, (task, 2)).unwrap_or_else(|| panic!("no blocks"));
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
                let own =
                    OwnBlocks::for_task(layout, span, 3, (task, tasks)).unwrap_or_else(|| panic!("none"));
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
fn what_has_no_block_for_each_task_is_none() {
    let of = |layout, span, tasks| OwnBlocks::for_task(layout, span, 4096, (0, tasks)).is_some();
    assert!(of(Layout::Strided, 8192, 2) && !of(Layout::Strided, 8191, 2));
    assert!(of(Layout::Segmented, 8192, 2) && !of(Layout::Segmented, 8191, 2));
    assert!(!of(Layout::Blocks(0), 8192, 2) && !of(Layout::Blocks(u64::MAX), u64::MAX, 2));
    assert!(OwnBlocks::for_task(Layout::Strided, 8192, 4096, (2, 2)).is_none());
}
