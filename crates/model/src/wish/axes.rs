//! Axes: the values that a sweep goes through, in words.
//!
//! For: lists (`4k,64k`), doubling ranges (`16k..2m`), ranges with a step (`1..9+2`), all at once, and the presets. Not for: which settings of the grid can
//! be measured, which the plan finds out.

use super::cycle::Step;
use super::limits::{MAX_BLOCK_BYTES, MAX_DEPTH, MAX_TARGETS, MAX_WORKERS};
use super::number::{count, shown, size};
use super::specs::{self, Spec};
use super::{EngineWish, Rw, order, words};
use crate::job::{Cache, Mix};
use crate::sweep::Variable;
use crate::units::MIB;

/// Most values of an axis.
pub const MAX_VALUES: usize = 64;
/// Most cells of a grid: measuring more, each for a second, takes more than an hour.
pub const MAX_CELLS: usize = 4096;
/// Memory that the buffers of one cell may take unless said otherwise: the original's cap.
pub const MEMORY_BYTES: u64 = 64 * MIB;

/// The axes of a grid; an empty one has one value, the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Bytes per operation.
    pub bs: Vec<u32>,
    /// Operations in flight per worker.
    pub depth: Vec<u32>,
    /// Threads.
    pub workers: Vec<u32>,
    /// Engines.
    pub engine: Vec<EngineWish>,
    /// Ways through the page cache.
    pub cache: Vec<Cache>,
    /// Orders and directions.
    pub rw: Vec<Rw>,
    /// Shares of directions, for those words of `rw` that leave them open.
    pub mix: Vec<Mix>,
    /// Operations handed over per call.
    pub batch: Vec<u32>,
    /// Access specifications, instead of `rw`, `mix` and `bs`.
    pub spec: Vec<Spec>,
    /// How many of the named targets are used, the first ones.
    pub targets: Vec<u32>,
}

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
    pub way: Way,
}

/// How the cells of a preset are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The best is sought.
    Sought,
    /// All equally often, unless a budget is given.
    Each,
    /// Once each in their order, for so many ns, until one is too slow for larger ones to be worth it.
    UntilSlow {
        /// Window of a cell unless `--time` says it.
        time_ns: u64,
    },
    /// In rounds.
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
    /// Its name.
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
pub const PRESETS: &[Preset] = &[CCSIO, IOPS, ITS_SPECS, PTS, PTS_THROUGHPUT, PTS_LATENCY, PTS_WSAT];

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
    way: Way::UntilSlow { time_ns: 2_000_000_000 },
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
    way: Way::Rounds(Rounds { tracked_bytes: 4096, variable: Variable::Iops, capacities: None, at_most: 25 }),
};

const PTS_THROUGHPUT: Preset = Preset {
    name: "pts-throughput",
    about: "SNIA PTS, throughput: 1M and 128K, sequential reads and writes, 1 thread x 32, rounds until steady",
    said: &[("rw", "read,write"), ("bs", "1m,128k"), ("workers", "1"), ("depth", "32"), ("cache", "direct")],
    way: Way::Rounds(Rounds {
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
    way: Way::Rounds(Rounds {
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
    way: Way::Rounds(Rounds {
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
    way: Way::Sought,
};

/// Iometer itself fills the disk; what it measures needs no more than what caches do not hold.
const ITS_SPECS: Preset = Preset {
    name: IOMETER,
    about: "Iometer: access specifications (--spec) x a test type (--cycle) over workers, targets and outstanding I/Os",
    said: &[("spec", "classics")],
    modes: &[],
    size_bytes: 1024 * MIB,
    way: Way::Each,
};

impl Preset {
    /// Whether everything is written from end to end before the first cell: the specification's preconditioning that does
    /// not depend on the work. Write saturation is what is left without it.
    pub fn fills(&self) -> bool {
        matches!(self.way, Way::Rounds(Rounds { capacities: None, .. }))
    }

    /// Whether its cells are measured in their order, and none is sought.
    pub fn is_in_order(&self) -> bool {
        matches!(self.way, Way::UntilSlow { .. } | Way::Rounds(_))
    }

    /// Its rounds; `None` where each cell is measured on its own.
    pub fn rounds(&self) -> Option<Rounds> {
        match self.way {
            Way::Rounds(rounds) => Some(rounds),
            Way::UntilSlow { .. } | Way::Sought | Way::Each => None,
        }
    }

    /// Window of a cell unless `--time` says it; `None` where the sweep's own does.
    pub fn time_ns(&self) -> Option<u64> {
        match self.way {
            Way::Sought | Way::Each => None,
            Way::UntilSlow { time_ns } => Some(time_ns),
            Way::Rounds(_) => Some(ROUND_CELL_NS),
        }
    }
}

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

/// The names of the axes, which are flags too, with what stands for their values and one line of help.
pub const AXES: &[(&str, &str, &str)] = &[
    (
        "bs",
        "SIZES",
        "Bytes per operation: a list (4k,64k), a doubling range (16k..2m), one with a step (4k..16k+4k, 4k..64k*4), or all of them [default: 4k..4m]",
    ),
    ("depth", "COUNTS", "Operations in flight per worker, likewise [default: 1..16]"),
    ("workers", "COUNTS", "Threads, likewise [default: 1]"),
    ("engine", "NAMES", "Interfaces, such as io_uring,libaio or io_uring:sqpoll=1 [default: io_uring]"),
    ("cache", "WORDS", "What the target is opened with, such as direct,buffered [default: direct]"),
    (
        "rw",
        "WORDS",
        "Order and direction, such as read,randread [default: read,write; reads only where TARGET is yours]",
    ),
    ("mix", "READ%S", "Shares of reads for rw and randrw, such as 100,70,0 [default: 50]"),
    (
        "batch",
        "COUNTS",
        "Operations handed over per call, as a list or range [default: as the engine has it]",
    ),
    (
        "spec",
        "NAMES",
        "Access specifications instead of rw, mix and bs, such as file-server,4k-oltp, or classics, iometer, all",
    ),
    ("targets", "COUNTS", "How many of the TARGETs are used, as a list or range [default: all at once]"),
];

impl Axes {
    /// Reads the values of an axis by its name. `is_engine` tells the name of an engine from an option of the one before.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn say(&mut self, axis: &str, text: &str, is_engine: fn(&str) -> bool) -> Result<(), String> {
        match axis {
            "bs" => self.bs = numbers(text, |t| size(t, 1, MAX_BLOCK_BYTES).map(|b| b as u32))?,
            "depth" => self.depth = numbers(text, |t| count(t, 1, MAX_DEPTH))?,
            "workers" => self.workers = numbers(text, |t| count(t, 1, MAX_WORKERS))?,
            "batch" => self.batch = numbers(text, |t| count(t, 1, MAX_DEPTH))?,
            "cache" => self.cache = list(text, words::cache)?,
            "rw" => self.rw = list(text, words::rw)?,
            "mix" => self.mix = list(text, order::mix)?,
            "engine" => self.engine = engines(text, is_engine)?,
            "spec" => self.spec = named(text)?,
            "targets" => self.targets = numbers(text, |t| count(t, 1, MAX_TARGETS as u32))?,
            other => return Err(format!("{} is no axis; type one of {}", shown(other), names().join(", "))),
        }
        Ok(())
    }
}

/// The names of all axes.
pub fn names() -> Vec<&'static str> {
    AXES.iter().map(|a| a.0).collect()
}

/// Values between commas, none of them twice.
fn list<T: PartialEq>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut out = Vec::new();
    for piece in text.split(',') {
        add(&mut out, parse(piece)?, piece)?;
    }
    Ok(out)
}

fn add<T: PartialEq>(out: &mut Vec<T>, value: T, said: &str) -> Result<(), String> {
    if out.contains(&value) {
        return Err(format!("{} is there twice; type each value once", shown(said)));
    }
    if out.len() == MAX_VALUES {
        return Err(format!("there are too many values; type {MAX_VALUES} at most"));
    }
    out.push(value);
    Ok(())
}

/// Specifications between commas; a word may mean several.
fn named(text: &str) -> Result<Vec<Spec>, String> {
    let mut out = Vec::new();
    for piece in text.split(',') {
        for spec in specs::named(piece)? {
            add(&mut out, spec, piece)?;
        }
    }
    Ok(out)
}

/// Numbers and ranges that double, or rise as said (`+STEP`, `*FACTOR`), from the first to the last, which is in them whether
/// or not the steps meet it.
fn numbers(text: &str, parse: impl Fn(&str) -> Result<u32, String>) -> Result<Vec<u32>, String> {
    let mut out = Vec::new();
    for piece in text.split(',') {
        let Some((first, rest)) = piece.split_once("..") else {
            add(&mut out, parse(piece)?, piece)?;
            continue;
        };
        let (last, law, by) = if let Some((last, by)) = rest.split_once('+') {
            (last, Step::Linear, parse(by)?)
        } else if let Some((last, by)) = rest.split_once('*') {
            (last, Step::Exponential, count(by, 2, u32::MAX)?)
        } else {
            (rest, Step::Exponential, 2)
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first >= last {
            return Err(format!(
                "{} does not rise; type the smaller one first, such as 4k..64k",
                shown(piece)
            ));
        }
        for value in law.values(first, last - 1, by).chain([last]) {
            add(&mut out, value, piece)?;
        }
    }
    Ok(out)
}

/// Engines between commas; a piece that names none is an option of the engine before it.
fn engines(text: &str, is_engine: fn(&str) -> bool) -> Result<Vec<EngineWish>, String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let name = piece.trim().split(':').next().unwrap_or_default();
        match pieces.last_mut() {
            Some(before) if before.contains(':') && !is_engine(name) => *before += &format!(",{piece}"),
            _ => pieces.push(piece.to_owned()),
        }
    }
    let mut out = Vec::new();
    for piece in &pieces {
        add(&mut out, words::engine(piece)?, piece)?;
    }
    Ok(out)
}

#[cfg(test)]
fn known(name: &str) -> bool {
    matches!(name, "io_uring" | "libaio")
}

#[test]
fn lists_and_doubling_ranges_mix() {
    let mut axes = Axes::default();
    for (axis, text) in [
        ("bs", "512,4k..32k"),
        ("depth", "1..6"),
        ("rw", "read,randwrite"),
        ("mix", "70,60/30/10"),
        ("engine", "io_uring:iopoll,sqpoll=1,libaio"),
        ("targets", "1..4+2,8..64*4"),
        ("spec", "database,4K OLTP"),
    ] {
        axes.say(axis, text, known).unwrap_or_else(|e| panic!("{axis}: {e}"));
    }
    assert_eq!(axes.bs, [512, 4096, 8192, 16384, 32768]);
    assert_eq!(axes.targets, [1, 3, 4, 8, 32, 64]);
    assert_eq!(axes.spec.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["Database", "4K OLTP"]);
    assert_eq!(axes.depth, [1, 2, 4, 6]);
    assert_eq!(axes.rw, [Rw::Read, Rw::Randwrite]);
    assert_eq!((axes.mix.len(), axes.engine.len()), (2, 2));
    assert_eq!(axes.engine.first().map(|e| e.options.len()), Some(2));
}

#[test]
fn what_is_no_axis_says_what_to_type() {
    for (axis, bad) in [
        ("bs", ""),
        ("bs", "4k..4k"),
        ("bs", "64k..4k"),
        ("bs", "4k,4k"),
        ("bs", "4k..8k,8k"),
        ("bs", "1..2g"),
        ("depth", "0..4"),
        ("depth", "a"),
        ("rw", "read,sideways"),
        ("engine", "a b"),
        ("mix", "101"),
        ("depth", "1..8+0"),
        ("depth", "1..8*1"),
        ("depth", "1..1000+1"),
        ("spec", "idle"),
        ("spec", "classics,database"),
        ("targets", "0"),
        ("colour", "red"),
    ] {
        let said = Axes::default().say(axis, bad, known);
        assert!(said.as_ref().is_err_and(|e| e.contains("; type")), "{axis} {bad}: {said:?}");
    }
}

#[test]
fn every_preset_can_be_read() {
    for preset in PRESETS {
        let mut axes = Axes::default();
        for (axis, text) in preset.said {
            axes.say(axis, text, known).unwrap_or_else(|e| panic!("{}: {axis}: {e}", preset.name));
        }
    }
    let mut ccsio = Axes::default();
    for (axis, text) in PRESETS[0].said {
        assert_eq!(ccsio.say(axis, text, known), Ok(()));
    }
    assert_eq!((ccsio.bs.len(), ccsio.depth.len()), (12, 5));
}
