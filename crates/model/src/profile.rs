//! Profiles: named lists of tests, as data.
//!
//! For: the canonical patterns of the field. Not for: how they are measured (the plan) or shown (the report).
//! Sources: CrystalDiskMark 9 (`CrystalDiskMark.cpp`, presets Default, NVMe SSD, Peak, Real World, Demo) and the article
//! "IO Performance Benchmarking 101" (the six common usage patterns).

use crate::job::Pattern::{self, Random, Sequential};
use crate::job::{Mix, PerKind, Sizes};
use crate::wish::{Rw, StreamWish};

/// One line of a profile; measured once for each direction of the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Order of offsets.
    pub pattern: Pattern,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Operations in flight per worker.
    pub depth: u32,
    /// Threads.
    pub workers: u32,
}

/// A named list of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What `--profile` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// The tests, in the order of the table.
    pub tests: &'static [Test],
    /// Read shares, in the order of the table: 100 read, 0 write, 70 the usual mix.
    pub read_percents: &'static [u8],
}

const fn test(pattern: Pattern, block_kib: u32, depth: u32, workers: u32) -> Test {
    Test { pattern, block_bytes: block_kib * 1024, depth, workers }
}

const READ_WRITE: &[u8] = &[100, 0];
const CDM: &[Test] = &[
    test(Sequential, 1024, 8, 1),
    test(Sequential, 1024, 1, 1),
    test(Random, 4, 32, 1),
    test(Random, 4, 1, 1),
];

/// Every profile there is.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "cdm",
        about: "CrystalDiskMark's default: 1 MiB sequential at depth 8 and 1, 4 KiB random at depth 32 and 1",
        tests: CDM,
        read_percents: READ_WRITE,
    },
    Profile {
        name: "nvme",
        about: "CrystalDiskMark's NVMe preset: also 128 KiB sequential at depth 32, and 16 workers for 4 KiB random",
        tests: &[
            test(Sequential, 1024, 8, 1),
            test(Sequential, 128, 32, 1),
            test(Random, 4, 32, 16),
            test(Random, 4, 1, 1),
        ],
        read_percents: READ_WRITE,
    },
    Profile {
        name: "peak",
        about: "CrystalDiskMark's Peak Performance: sequential at depth 8, random at depth 32",
        tests: &[test(Sequential, 1024, 8, 1), test(Random, 4, 32, 1)],
        read_percents: READ_WRITE,
    },
    Profile {
        name: "real",
        about: "CrystalDiskMark's Real World Performance: both at depth 1",
        tests: &[test(Sequential, 1024, 1, 1), test(Random, 4, 1, 1)],
        read_percents: READ_WRITE,
    },
    Profile {
        name: "demo",
        about: "CrystalDiskMark's Demo: 1 MiB sequential at depth 8 alone",
        tests: &[test(Sequential, 1024, 8, 1)],
        read_percents: READ_WRITE,
    },
    Profile {
        name: "mix",
        about: "cdm with a mix of 70 % reads and 30 % writes beside reads and writes",
        tests: CDM,
        read_percents: &[100, 0, 70],
    },
    Profile {
        name: "six",
        about: "the six patterns of \"IO Performance Benchmarking 101\": 512 KiB sequential, 4 KiB random at depth 1 and 32",
        tests: &[test(Sequential, 512, 1, 1), test(Random, 4, 1, 1), test(Random, 4, 32, 1)],
        read_percents: READ_WRITE,
    },
];

/// The profile of that name.
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| p.name == name)
}

impl Test {
    /// The name of one direction of it: `RND4K Q32T1 read`.
    pub fn name_of(&self, read_percent: u8) -> String {
        let mix = Mix { read_percent, trim_percent: 0 };
        format!("{} {}", self.name(), mix.words())
    }

    /// Says what it is in a wish.
    pub fn wish(&self, read_percent: u8, stream: &mut StreamWish) {
        let sizes = Sizes::Fixed(self.block_bytes);
        stream.rw = Some(if self.pattern == Random { Rw::Randrw } else { Rw::Rw });
        stream.mix = Some(Mix { read_percent, trim_percent: 0 });
        stream.bs = Some(PerKind { read: sizes.clone(), write: sizes.clone(), trim: sizes });
        stream.depth = Some(self.depth);
        stream.workers = Some(self.workers);
    }

    /// The name of the field: `RND4K Q32T1`.
    pub fn name(&self) -> String {
        let order = match self.pattern {
            Sequential => "SEQ",
            Random => "RND",
        };
        format!(
            "{order}{} Q{}T{}",
            crate::units::show_block(u64::from(self.block_bytes)),
            self.depth,
            self.workers
        )
    }
}

#[test]
fn names_are_those_of_the_field() {
    assert_eq!(CDM[2].name(), "RND4K Q32T1");
    assert_eq!(find("six").map(|p| p.tests.len() * p.read_percents.len()), Some(6));
}
