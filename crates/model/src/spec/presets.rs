//! Presets of a sweep: grids that have a name, with how their cells are measured.
//!
//! For: grids of well-known programs and specifications, in the words of the axes. Not for: what an axis takes ([`super::axes`]).

#[cfg(test)]
use super::axes::{Axes, find};
use crate::job::Cache;
use crate::sweep::Variable;
use crate::units::MIB;

/// Memory that the buffers of one cell may take unless said otherwise: the original's cap.
pub const MEMORY_BYTES: u64 = 64 * MIB;

/// A named grid.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    /// What `--preset` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// What is said for each axis, unless a flag says it.
    pub said: &'static [(&'static str, &'static str)],
    /// Its ways through the page cache, unless `--cache` says them.
    pub modes: &'static [Mode],
    /// Bytes of the test file unless `--size` says them.
    pub size_bytes: u64,
    /// How its cells are measured.
    pub way: Procedure,
}

/// How the cells of a preset are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Procedure {
    /// The best is sought.
    Sought,
    /// All equally often, unless a budget is given.
    Each,
    /// Once each in their order, for so many ns, until one is too slow for larger ones to be worth it.
    UntilSlow {
        /// Window of a cell unless `--time` says it.
        time_ns: u64,
    },
    /// All of them again and again, as the specification asks.
    Rounds(Rounds),
}

/// Rounds of the SNIA's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Size of the cell that is tracked; it is one that only writes.
    pub tracked_bytes: u32,
    /// What of it.
    pub variable: Variable,
    /// Times that the target is written over before the rounds end; `None` where they end when the tracked cell is steady.
    pub capacities: Option<u64>,
    /// Rounds after which they end in any case.
    pub at_most: u32,
}

/// Window of a cell in the specification.
pub const ROUND_CELL_NS: u64 = 60_000_000_000;

/// Name of the preset whose cells follow a test type of Iometer ([`super::cycle`]).
pub const IOMETER: &str = "iometer";

/// A way through the page cache by the name that a preset gives it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mode {
    /// What the report calls it, after the preset.
    pub name: &'static str,
    /// What it is here.
    pub cache: Cache,
    /// Whether only reads go this way.
    pub reads_only: bool,
    /// What this system makes of it, where that needs a word.
    pub remark: &'static str,
}

/// Every preset there is.
///
/// Source of `ccsio`: CCSIO Benchmark 1.5.0, <https://ccsiobench.com> (sizes, counts, modes, the cap of 64 MB); of `iops`: the
/// program of that name by Benjamin Schweizer, <https://github.com/cxcv/iops>; of `pts` and its kin: SNIA Solid State Storage
/// Performance Test Specification 2.0 (shares, sizes, minutes, rounds). That leaves threads and depth to the user; ours are in
/// the table.
pub const PRESETS: &[Preset] = &[CCSIO, IOPS, ITS_SPECS, ZONES, PTS, PTS_THROUGHPUT, PTS_LATENCY, PTS_WSAT];

const IOPS: Preset = Preset {
    name: "iops",
    about: "iops: 512 bytes doubling upward, 32 threads, 2 s each, reads; ends where a size is slow",
    said: &[
        ("bs", "512..1g"),
        ("workers", "32"),
        ("depth", "1"),
        ("engine", "sync"),
        ("cache", "direct"),
        ("rw", "randread"),
    ],
    modes: &[],
    size_bytes: 1024 * MIB,
    way: Procedure::UntilSlow { time_ns: 2_000_000_000 },
};

const PTS: Preset = Preset {
    name: "pts",
    about: "SNIA PTS, IOPS: 7 mixes x 8 sizes, 1 min each, 2 threads x 16, rounds until steady; writes",
    said: &[
        ("rw", "randrw"),
        ("mix", "100,95,65,50,35,5,0"),
        ("bs", "1m,128k,64k,32k,16k,8k,4k,512"),
        ("workers", "2"),
        ("depth", "16"),
        ("cache", "direct"),
    ],
    modes: &[],
    size_bytes: 1024 * MIB,
    way: Procedure::Rounds(Rounds {
        tracked_bytes: 4096,
        variable: Variable::Iops,
        capacities: None,
        at_most: 25,
    }),
};

const PTS_THROUGHPUT: Preset = Preset {
    name: "pts-throughput",
    about: "SNIA PTS, throughput: 1M and 128K, sequential reads and writes, 1 thread x 32, rounds until steady",
    said: &[("rw", "read,write"), ("bs", "1m,128k"), ("workers", "1"), ("depth", "32"), ("cache", "direct")],
    way: Procedure::Rounds(Rounds {
        tracked_bytes: 1 << 20,
        variable: Variable::MbPerS,
        capacities: None,
        at_most: 25,
    }),
    ..PTS
};

const PTS_LATENCY: Preset = Preset {
    name: "pts-latency",
    about: "SNIA PTS, latency: 8K, 4K and 512 bytes x 3 mixes, one at a time, rounds until steady; writes",
    said: &[
        ("rw", "randrw"),
        ("mix", "100,65,0"),
        ("bs", "8k,4k,512"),
        ("workers", "1"),
        ("depth", "1"),
        ("cache", "direct"),
    ],
    way: Procedure::Rounds(Rounds {
        tracked_bytes: 4096,
        variable: Variable::LatencyMeanNs,
        capacities: None,
        at_most: 25,
    }),
    ..PTS
};

const PTS_WSAT: Preset = Preset {
    name: "pts-wsat",
    about: "SNIA PTS, write saturation: random 4K writes minute by minute, to 4 times the capacity or for a day",
    said: &[("rw", "randwrite"), ("bs", "4k"), ("workers", "2"), ("depth", "16"), ("cache", "direct")],
    way: Procedure::Rounds(Rounds {
        tracked_bytes: 4096,
        variable: Variable::Iops,
        capacities: Some(4),
        at_most: 24 * 60,
    }),
    ..PTS
};

const CCSIO: Preset = Preset {
    name: "ccsio",
    about: "CCSIO Benchmark: 12 sizes x 5 counts x unbuffered, unbuffered-sequential and buffered-sequential",
    said: &[("bs", "8k..16m"), ("depth", "1..16"), ("rw", "read,write")],
    modes: &[
        Mode { name: "unbuffered", cache: Cache::Direct, reads_only: false, remark: "" },
        Mode {
            name: "unbuffered-sequential",
            cache: Cache::Direct,
            reads_only: false,
            remark: "the same as unbuffered: O_DIRECT takes no hint, so both are measured as one",
        },
        Mode {
            name: "buffered-sequential",
            cache: Cache::Buffered,
            reads_only: true,
            remark: "the kernel sees by itself that reads are sequential, and reads ahead",
        },
    ],
    size_bytes: 2048 * MIB,
    way: Procedure::Sought,
};

/// Iometer itself fills the disk; what it measures needs no more than what caches do not hold.
const ITS_SPECS: Preset = Preset {
    name: IOMETER,
    about: "Iometer: access specifications (--spec) x a test type (--cycle) over workers, targets and outstanding I/Os",
    said: &[("spec", "classics")],
    modes: &[],
    size_bytes: 1024 * MIB,
    way: Procedure::Each,
};

/// The zones of a spinning disk: what is outside passes more bytes in a turn. Eight in flight hide what lies between operations.
const ZONES: Preset = Preset {
    name: "zones",
    about: "Zones: sequential reads of 1M at 21 positions, from the first byte of a disk to its end",
    said: &[("rw", "read"), ("bs", "1m"), ("depth", "8"), ("cache", "direct"), ("offset", "0%..95%+5%,99%")],
    modes: &[],
    size_bytes: 1024 * MIB,
    way: Procedure::Each,
};

impl Preset {
    /// Whether everything is written from end to end before the first cell: the specification's preconditioning that does
    /// not depend on the work. Write saturation is what is left without it.
    pub fn fills(&self) -> bool {
        matches!(self.way, Procedure::Rounds(Rounds { capacities: None, .. }))
    }

    /// Whether its cells are measured in their order, and none is sought.
    pub fn is_in_order(&self) -> bool {
        matches!(self.way, Procedure::UntilSlow { .. } | Procedure::Rounds(_))
    }

    /// Its rounds; `None` where each cell is measured on its own.
    pub fn rounds(&self) -> Option<Rounds> {
        match self.way {
            Procedure::Rounds(rounds) => Some(rounds),
            Procedure::UntilSlow { .. } | Procedure::Sought | Procedure::Each => None,
        }
    }

    /// Window of a cell unless `--time` says it; `None` where the sweep's own does.
    pub fn time_ns(&self) -> Option<u64> {
        match self.way {
            Procedure::Sought | Procedure::Each => None,
            Procedure::UntilSlow { time_ns } => Some(time_ns),
            Procedure::Rounds(_) => Some(ROUND_CELL_NS),
        }
    }
}

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

#[test]
fn every_preset_can_be_read() {
    for preset in PRESETS {
        let mut axes = Axes::default();
        for (axis, text) in preset.said {
            find(axis)
                .and_then(|a| a.say(&mut axes, text, |name| name == "sync"))
                .unwrap_or_else(|e| panic!("{}: {axis}: {e}", preset.name));
        }
    }
    let mut ccsio = Axes::default();
    for (axis, text) in PRESETS[0].said {
        assert_eq!(find(axis).and_then(|a| a.say(&mut ccsio, text, |name| name == "sync")), Ok(()));
    }
    assert_eq!((ccsio.bs.len(), ccsio.depth.len()), (12, 5));
}
