//! Axes of a sweep: the values of each setting, the parser of ranges such as `4k..1m` or `1..9+2`, and the named
//! presets.
//!
//! The plan finds out which cells of the grid can be measured.

use super::number::{count, quoted_excerpt, reject, size};
use super::{EngineSpec, Rw, values};
use crate::job::{Cache, Mix};
use crate::spec::iometer::{Spec, Step};
use crate::spec::number::{MAX_BLOCK_BYTES, MAX_DEPTH, MAX_TARGETS, MAX_WORKERS};
use crate::spec::{iometer, operations};
use crate::sweep::{Setting, Variable};
use crate::units::{MIB, show_block};

/// Maximum number of values of an axis.
pub const MAX_VALUES: usize = 64;
/// Maximum number of cells of a grid. More cells would take more than an hour, even at a second each.
pub const MAX_CELLS: usize = 4096;

/// The axes of a grid. An axis without values has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Bytes per operation.
    pub bs: Vec<u32>,
    /// Operations in flight per worker.
    pub depth: Vec<u32>,
    /// Number of worker threads.
    pub workers: Vec<u32>,
    /// Engines, each with its options.
    pub engine: Vec<EngineSpec>,
    /// Cache modes.
    pub cache: Vec<Cache>,
    /// Orders and directions.
    pub rw: Vec<Rw>,
    /// Shares of directions, for `rw` and `randrw`.
    pub mix: Vec<Mix>,
    /// Operations submitted per call.
    pub batch: Vec<u32>,
    /// Access specifications, instead of `rw`, `mix` and `bs`.
    pub spec: Vec<Spec>,
    /// Numbers of targets: with n, the first n of the named targets are used at once.
    pub targets: Vec<u32>,
    /// Targets that are measured one at a time.
    pub target: Vec<String>,
    /// Offsets of the tested region on the target.
    pub offset: Vec<Offset>,
}

/// One axis.
#[derive(Debug)]
pub struct Axis {
    /// Name of the axis and of its flag.
    pub name: &'static str,
    /// Placeholder of the values in help.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Replaces the values of the axis by those parsed from a text.
    set: fn(&mut Axes, &str, IsEngine) -> Result<(), String>,
    /// Formats the values of the axis; empty if none were given.
    pub format: fn(&Axes) -> String,
    /// How the value of this axis is read from a setting; `None` if the values of the axis have no ascending order, such
    /// as engines.
    pub scale: Option<Scale>,
}

/// Returns whether a word of a comma-separated list is the name of an engine. Any other word is an option of the engine
/// before it in the list.
pub type IsEngine = fn(&str) -> bool;

/// How the value of a numeric axis is read from a setting, formatted, and removed from the setting.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Returns the value of the axis; `None` if the setting has none.
    pub value: fn(&Setting) -> Option<u32>,
    /// Formats a value of the axis.
    pub show: fn(u32) -> String,
    /// Returns the setting without the value of the axis. Settings that differ only in this value are then equal.
    pub without: fn(&Setting) -> Setting,
}

/// Bytes per operation.
pub const SIZES: Scale = Scale {
    value: |s| Some(s.block_bytes),
    show: |v| show_block(u64::from(v)),
    without: |s| Setting { block_bytes: 0, ..s.clone() },
};
/// Operations in flight per worker.
pub const DEPTHS: Scale = Scale {
    value: |s| Some(s.depth),
    show: |v| v.to_string(),
    without: |s| Setting { depth: 0, ..s.clone() },
};
/// Number of worker threads.
pub const WORKERS: Scale = Scale {
    value: |s| Some(s.workers),
    show: |v| v.to_string(),
    without: |s| Setting { workers: 1, ..s.clone() },
};
/// Operations submitted per call.
pub const BATCHES: Scale =
    Scale { value: |s| s.batch, show: |v| v.to_string(), without: |s| Setting { batch: None, ..s.clone() } };
/// Number of targets of each worker; only for settings in which all workers have equally many.
pub const TARGETS: Scale = Scale {
    value: |s| s.targets.filter(|_| s.targets_of_last.is_none()),
    show: |v| v.to_string(),
    without: |s| Setting { targets: None, ..s.clone() },
};

/// All axes, in the order of help. `src/plan/sweep` applies their values.
pub const AXES: &[Axis] = &[
    Axis {
        name: "bs",
        value: "SIZES",
        about: "Bytes per operation: a list (4k,64k), a doubling range (16k..2m), a range with a step (4k..16k+4k, 4k..64k*4), or a mix of these [default: 4k..4m]",
        set: |a, t, _| set_numbers(&mut a.bs, t, |t| size(t, 1, MAX_BLOCK_BYTES).map(|b| b as u32)),
        format: |a| format_list(&a.bs, |v| (SIZES.show)(*v)),
        scale: Some(SIZES),
    },
    Axis {
        name: "depth",
        value: "COUNTS",
        about: "Operations in flight per worker, as a list or range [default: 1..16]",
        set: |a, t, _| set_numbers(&mut a.depth, t, |t| count(t, 1, MAX_DEPTH)),
        format: |a| format_list(&a.depth, u32::to_string),
        scale: Some(DEPTHS),
    },
    Axis {
        name: "workers",
        value: "COUNTS",
        about: "Threads, as a list or range [default: 1]",
        set: |a, t, _| set_numbers(&mut a.workers, t, |t| count(t, 1, MAX_WORKERS)),
        format: |a| format_list(&a.workers, u32::to_string),
        scale: Some(WORKERS),
    },
    Axis {
        name: "engine",
        value: "NAMES",
        about: "Interfaces, such as io_uring,libaio or io_uring:sqpoll=1 [default: io_uring]",
        set: |a, t, is_engine| set_words(&mut a.engine, split_engines(t, is_engine).iter(), values::engine),
        format: |a| format_list(&a.engine, EngineSpec::to_flag),
        scale: None,
    },
    Axis {
        name: "cache",
        value: "WORDS",
        about: "How the target is opened, such as direct,buffered [default: direct]",
        set: |a, t, _| set_words(&mut a.cache, t.split(','), values::cache),
        format: |a| format_list(&a.cache, |c| c.word().into()),
        scale: None,
    },
    Axis {
        name: "rw",
        value: "WORDS",
        about: "Order and direction, such as read,randread [default: read,write, but only read if TARGET is an existing file or a device]",
        set: |a, t, _| set_words(&mut a.rw, t.split(','), values::rw),
        format: |a| format_list(&a.rw, |rw| rw.word().into()),
        scale: None,
    },
    Axis {
        name: "mix",
        value: "READ%,...",
        about: "Shares of reads for rw and randrw, such as 100,70,0 [default: 50]",
        set: |a, t, _| set_words(&mut a.mix, t.split(','), operations::mix),
        format: |a| format_list(&a.mix, |mix| mix.describe()),
        scale: None,
    },
    Axis {
        name: "batch",
        value: "COUNTS",
        about: "Operations submitted per call, as a list or range [default: that of the engine]",
        set: |a, t, _| set_numbers(&mut a.batch, t, |t| count(t, 1, MAX_DEPTH)),
        format: |a| format_list(&a.batch, u32::to_string),
        scale: Some(BATCHES),
    },
    Axis {
        name: "spec",
        value: "NAMES",
        about: "Access specifications instead of rw, mix and bs, such as file-server,4k-oltp, or a group: classics, iometer, all",
        set: |a, t, _| set_values(&mut a.spec, t.split(','), iometer::named),
        format: |a| format_list(&a.spec, |spec| spec.name.clone()),
        scale: None,
    },
    Axis {
        name: "targets",
        value: "COUNTS",
        about: "How many of the TARGETs are used, as a list or range [default: all at once]",
        set: |a, t, _| set_numbers(&mut a.targets, t, |t| count(t, 1, MAX_TARGETS as u32)),
        format: |a| format_list(&a.targets, u32::to_string),
        scale: Some(TARGETS),
    },
    Axis {
        name: "target",
        value: "PATHS",
        about: "Directories, files or block devices to measure one at a time, such as /mnt/a,/mnt/b (TARGETs are used together)",
        set: |a, t, _| set_words(&mut a.target, t.split(','), values::path),
        format: |a| a.target.join(","),
        scale: None,
    },
    Axis {
        name: "offset",
        value: "POSITIONS",
        about: "First byte of the region, in percent of the target or in bytes, such as 0%,50%,99%, 0%..90%+10%, 0%..99%/12 or 4g [default: 0]",
        set: |a, t, _| set_values(&mut a.offset, t.split(','), positions),
        format: |a| format_list(&a.offset, |at| at.to_flag()),
        scale: None,
    },
];

impl Axis {
    /// Replaces the values of this axis by those parsed from a text.
    ///
    /// # Errors
    /// What is wrong and what to type.
    pub fn parse_into(&self, axes: &mut Axes, text: &str, is_engine: IsEngine) -> Result<(), String> {
        (self.set)(axes, text, is_engine)
    }
}

/// Returns the axis of that name.
///
/// # Errors
/// The unknown name, and all names of axes.
pub fn find(name: &str) -> Result<&'static Axis, String> {
    let unknown = || format!("{} is not an axis; type one of {}", quoted_excerpt(name), names().join(", "));
    AXES.iter().find(|axis| axis.name == name).ok_or_else(unknown)
}

/// Returns the names of all axes.
pub fn names() -> Vec<&'static str> {
    AXES.iter().map(|axis| axis.name).collect()
}

fn format_list<T>(values: &[T], words: impl Fn(&T) -> String) -> String {
    values.iter().map(words).collect::<Vec<_>>().join(",")
}

/// Replaces the values of an axis by the values of the typed pieces. A piece may have several values; no value may be
/// repeated.
fn set_values<T: PartialEq>(
    axis: &mut Vec<T>,
    pieces: impl Iterator<Item: AsRef<str>>,
    parse: impl Fn(&str) -> Result<Vec<T>, String>,
) -> Result<(), String> {
    axis.clear();
    for piece in pieces {
        let piece = piece.as_ref();
        for value in parse(piece)? {
            if axis.contains(&value) {
                return Err(reject(piece, "is given twice; type each value once"));
            }
            if axis.len() == MAX_VALUES {
                return Err(format!("there are too many values; type {MAX_VALUES} at most"));
            }
            axis.push(value);
        }
    }
    Ok(())
}

/// Replaces the values of an axis by the typed pieces. Each piece is one value.
fn set_words<T: PartialEq>(
    axis: &mut Vec<T>,
    pieces: impl Iterator<Item: AsRef<str>>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    set_values(axis, pieces, |piece| Ok(vec![parse(piece)?]))
}

/// Parses numbers and ranges separated by commas.
fn set_numbers(
    axis: &mut Vec<u32>,
    text: &str,
    parse: impl Fn(&str) -> Result<u32, String>,
) -> Result<(), String> {
    set_values(axis, text.split(','), |piece| parse_range(piece, &parse))
}

/// Parses a number or a range. A range doubles, or rises by `+STEP` or `*FACTOR`, and always includes its last number.
fn parse_range(piece: &str, parse: impl Fn(&str) -> Result<u32, String>) -> Result<Vec<u32>, String> {
    let Some((first, rest)) = piece.split_once("..") else { return Ok(vec![parse(piece)?]) };
    let (last, law, by) = if let Some((last, by)) = rest.split_once('+') {
        (last, Step::Linear, parse(by)?)
    } else if let Some((last, by)) = rest.split_once('*') {
        (last, Step::Exponential, count(by, 2, u32::MAX)?)
    } else {
        (rest, Step::Exponential, 2)
    };
    let (first, last) = (parse(first)?, parse(last)?);
    if first >= last {
        return Err(reject(piece, "does not rise; type the smaller value first, such as 4k..64k"));
    }
    Ok(law.values(first, last - 1, by).take(MAX_VALUES).chain([last]).collect())
}

/// Splits engines at commas. A piece that is not an engine is a further option of the engine before it, if that engine has options.
fn split_engines(text: &str, is_engine: IsEngine) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let name = piece.trim().split(':').next().unwrap_or_default();
        match pieces.last_mut() {
            Some(before) if before.contains(':') && !is_engine(name) => *before += &format!(",{piece}"),
            _ => pieces.push(piece.to_owned()),
        }
    }
    pieces
}

/// The whole target in percent.
const WHOLE_PERCENT: u32 = 100;

/// A position on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// Percent of the target, below 100.
    Percent(u32),
    /// Bytes from the start of the target.
    Bytes(u64),
}

impl Offset {
    /// Formats the position as typed: `25%`, `1073741824`.
    pub fn to_flag(self) -> String {
        match self {
            Self::Percent(percent) => format!("{percent}%"),
            Self::Bytes(bytes) => bytes.to_string(),
        }
    }
}

/// Parses a position (`25%`, `4g`), a range with a step (`0%..90%+10%`), or a number of positions over a range
/// (`0%..99%/12`).
///
/// # Errors
/// What is wrong and what to type.
pub fn positions(piece: &str) -> Result<Vec<Offset>, String> {
    let Some((first, rest)) = piece.split_once("..") else {
        let one = if piece.trim().ends_with('%') {
            Offset::Percent(percent(piece)?)
        } else {
            Offset::Bytes(size(piece, 0, u64::MAX)?)
        };
        return Ok(vec![one]);
    };
    let first = percent(first)?;
    let all: Vec<u32> = if let Some((last, step)) = rest.split_once('+') {
        let (last, step) = (percent(last)?, percent(step)?.max(1));
        check_rising(piece, first, last)?;
        (first..last).step_by(step as usize).chain([last]).collect()
    } else if let Some((last, many)) = rest.split_once('/') {
        let (last, many) = (percent(last)?, count(many, 2, MAX_VALUES as u32)?);
        check_rising(piece, first, last)?;
        let mut all: Vec<u32> = (0..many).map(|at| first + (last - first) * at / (many - 1)).collect();
        all.dedup();
        all
    } else {
        return Err(reject(
            piece,
            "has no step; type one as in 0%..90%+10%, or a number of values as in 0%..99%/12",
        ));
    };
    Ok(all.into_iter().map(Offset::Percent).collect())
}

/// Parses a whole number of percent below 100.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_suffix('%').and_then(|digits| digits.trim().parse().ok());
    number.filter(|percent| *percent < WHOLE_PERCENT).ok_or_else(|| {
        reject(text, "is not a position; type whole percents below 100 such as 25%, or a size such as 4g")
    })
}

fn check_rising(piece: &str, first: u32, last: u32) -> Result<(), String> {
    if first < last {
        return Ok(());
    }
    Err(reject(piece, "does not rise; type the smaller value first, such as 0%..90%+10%"))
}

/// Default limit in bytes for the buffers of one cell: the limit of CCSIO Benchmark.
pub const MEMORY_BYTES: u64 = 64 * MIB;

/// A named grid.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    /// The word for `--preset`.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// Names of axes with their values as typed; a flag overrides the values.
    pub settings: &'static [(&'static str, &'static str)],
    /// Cache modes, unless `--cache` sets them.
    pub modes: &'static [Mode],
    /// Bytes of the test file, unless `--size` sets them.
    pub size_bytes: u64,
    /// How the preset's cells are measured.
    pub procedure: Procedure,
}

/// How the cells of a preset are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Procedure {
    /// The best cell is searched for.
    Sought,
    /// All cells equally often, unless a time budget is given.
    Each,
    /// Each cell once, even if several cells are the same on this system.
    Once,
    /// Each cell once, in order, until a cell is so slow that larger block sizes are not worth measuring.
    UntilSlow {
        /// Window of a cell in ns, unless `--time` sets it.
        time_ns: u64,
    },
    /// Repeated rounds of all cells, as the SNIA's specification requires.
    Rounds(Rounds),
}

/// Rounds of the SNIA's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Block size in bytes of the tracked cell, which only writes. The cell's values decide when the rounds are steady.
    pub tracked_bytes: u32,
    /// The value of the tracked cell that must become steady.
    pub variable: Variable,
    /// Number of written bytes, as a multiple of the target's size, after which the rounds end; `None` if they end when the tracked cell is
    /// steady.
    pub capacities: Option<u64>,
    /// Number of rounds after which measuring ends, steady or not.
    pub at_most: u32,
}

/// Length in ns of a cell's window in the SNIA's specification.
pub const ROUND_CELL_NS: u64 = 60_000_000_000;

/// Name of the preset whose cells follow a test type of Iometer ([`super::iometer::Cycle`]).
pub const IOMETER: &str = "iometer";

/// A cache mode with the preset's name for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mode {
    /// The name in reports.
    pub name: &'static str,
    /// The corresponding cache mode of fathom.
    pub cache: Cache,
    /// Whether only reads use this mode.
    pub reads_only: bool,
    /// A remark about the mode on this system; empty if none is needed.
    pub remark: &'static str,
}

/// All presets.
///
/// Source of `ccsio`: CCSIO Benchmark 1.5.0, <https://ccsiobench.com> (sizes, counts, modes, the cap of 64 MB); of `iops`: the program of
/// that name by Benjamin Schweizer, <https://github.com/cxcv/iops>; of the `pts` presets: SNIA Solid State Storage Performance Test
/// Specification 2.0 (shares, sizes, minutes, rounds). The specification leaves threads and depth to the user; the presets have values that
/// fathom chose.
pub const PRESETS: &[Preset] =
    &[CCSIO, CCSIO_CLASSIC, IOPS, IOMETER_PRESET, ZONES, PTS, PTS_THROUGHPUT, PTS_LATENCY, PTS_WSAT];

const IOPS: Preset = Preset {
    name: "iops",
    about: "iops: random reads by 32 threads, 2 s for each size from 512 bytes up, doubling until a size is slow",
    settings: &[
        ("bs", "512..1g"),
        ("workers", "32"),
        ("depth", "1"),
        ("engine", "sync"),
        ("cache", "direct"),
        ("rw", "randread"),
    ],
    modes: &[],
    size_bytes: 1024 * MIB,
    procedure: Procedure::UntilSlow { time_ns: 2_000_000_000 },
};

/// Rounds until the tracked cell is steady, at most as many as the specification allows.
const fn rounds_until_steady(tracked_bytes: u32, variable: Variable) -> Procedure {
    Procedure::Rounds(Rounds { tracked_bytes, variable, capacities: None, at_most: 25 })
}

const PTS: Preset = Preset {
    name: "pts",
    about: "SNIA PTS, IOPS: 7 mixes x 8 sizes, 1 min each, 2 threads at depth 16, rounds until steady; overwrites the target",
    settings: &[
        ("rw", "randrw"),
        ("mix", "100,95,65,50,35,5,0"),
        ("bs", "1m,128k,64k,32k,16k,8k,4k,512"),
        ("workers", "2"),
        ("depth", "16"),
        ("cache", "direct"),
    ],
    modes: &[],
    size_bytes: 1024 * MIB,
    procedure: rounds_until_steady(4096, Variable::Iops),
};

const PTS_THROUGHPUT: Preset = Preset {
    name: "pts-throughput",
    about: "SNIA PTS, throughput: 1M and 128K, sequential reads and writes, 1 thread at depth 32, rounds until steady; overwrites the target",
    settings: &[
        ("rw", "read,write"),
        ("bs", "1m,128k"),
        ("workers", "1"),
        ("depth", "32"),
        ("cache", "direct"),
    ],
    procedure: rounds_until_steady(1 << 20, Variable::MbPerS),
    ..PTS
};

const PTS_LATENCY: Preset = Preset {
    name: "pts-latency",
    about: "SNIA PTS, latency: 8K, 4K and 512 bytes x 3 mixes, one at a time, rounds until steady; overwrites the target",
    settings: &[
        ("rw", "randrw"),
        ("mix", "100,65,0"),
        ("bs", "8k,4k,512"),
        ("workers", "1"),
        ("depth", "1"),
        ("cache", "direct"),
    ],
    procedure: rounds_until_steady(4096, Variable::LatencyMeanNs),
    ..PTS
};

const PTS_WSAT: Preset = Preset {
    name: "pts-wsat",
    about: "SNIA PTS, write saturation: random 4K writes minute by minute, up to 4 times the target's size or for a day; overwrites the target",
    settings: &[("rw", "randwrite"), ("bs", "4k"), ("workers", "2"), ("depth", "16"), ("cache", "direct")],
    procedure: Procedure::Rounds(Rounds {
        tracked_bytes: 4096,
        variable: Variable::Iops,
        capacities: Some(4),
        at_most: 24 * 60,
    }),
    ..PTS
};

const CCSIO: Preset = Preset {
    name: "ccsio",
    about: "CCSIO Benchmark: 12 sizes x 5 depths, unbuffered, unbuffered-sequential and buffered-sequential",
    settings: &[("bs", "8k..16m"), ("depth", "1..16"), ("rw", "read,write")],
    modes: &[
        Mode { name: "unbuffered", cache: Cache::Direct, reads_only: false, remark: "" },
        Mode {
            name: "unbuffered-sequential",
            cache: Cache::Direct,
            reads_only: false,
            remark: "the same as unbuffered: O_DIRECT takes no hint",
        },
        Mode {
            name: "buffered-sequential",
            cache: Cache::Buffered,
            reads_only: true,
            remark: "the kernel detects sequential reads itself and reads ahead",
        },
    ],
    size_bytes: 2048 * MIB,
    procedure: Procedure::Sought,
};

const CCSIO_CLASSIC: Preset = Preset {
    name: "ccsio-classic",
    about: "CCSIO Benchmark's own protocol: the 285 cells of ccsio, each measured once for 1 s, in about 5 min",
    procedure: Procedure::Once,
    ..CCSIO
};

/// The preset [`IOMETER`]. Iometer fills the whole disk. Here the file only has to be larger than the caches.
const IOMETER_PRESET: Preset = Preset {
    name: IOMETER,
    about: "Iometer: access specifications (--spec) x a test type (--cycle) over workers, targets and outstanding I/Os",
    settings: &[("spec", "classics")],
    modes: &[],
    size_bytes: 1024 * MIB,
    procedure: Procedure::Each,
};

/// The zones of a spinning disk: outer tracks pass more bytes per revolution. Eight operations in flight hide the gaps
/// between operations.
const ZONES: Preset = Preset {
    name: "zones",
    about: "Zones: sequential reads of 1M at 21 positions, from the first byte of a disk to its end",
    settings: &[
        ("rw", "read"),
        ("bs", "1m"),
        ("depth", "8"),
        ("cache", "direct"),
        ("offset", "0%..95%+5%,99%"),
    ],
    modes: &[],
    size_bytes: 1024 * MIB,
    procedure: Procedure::Each,
};

impl Preset {
    /// Whether everything is written from end to end before the first cell (workload-independent preconditioning of the
    /// SNIA specification). The test of write saturation has no preconditioning.
    pub fn fills(&self) -> bool {
        matches!(self.procedure, Procedure::Rounds(Rounds { capacities: None, .. }))
    }

    /// Whether cells are measured in order, without a search for the best one.
    pub fn is_in_order(&self) -> bool {
        matches!(self.procedure, Procedure::UntilSlow { .. } | Procedure::Rounds(_))
    }

    /// Returns the rounds; `None` if cells are not measured in rounds.
    pub fn rounds(&self) -> Option<Rounds> {
        if let Procedure::Rounds(rounds) = self.procedure { Some(rounds) } else { None }
    }

    /// Returns the preset's window of a cell in ns, which `--time` overrides; `None` for the
    /// default of a sweep.
    pub fn time_ns(&self) -> Option<u64> {
        match self.procedure {
            Procedure::Sought | Procedure::Each | Procedure::Once => None,
            Procedure::UntilSlow { time_ns } => Some(time_ns),
            Procedure::Rounds(_) => Some(ROUND_CELL_NS),
        }
    }
}

/// Returns the preset of this name; `None` if there is none.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

#[cfg(test)]
fn is_known_engine(name: &str) -> bool {
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
        ("target", "/mnt/a,b"),
        ("offset", "0%..20%+10%,4g"),
    ] {
        find(axis)
            .and_then(|a| a.parse_into(&mut axes, text, is_known_engine))
            .unwrap_or_else(|e| panic!("{axis}: {e}"));
    }
    assert_eq!(axes.bs, [512, 4096, 8192, 16384, 32768]);
    assert_eq!(axes.targets, [1, 3, 4, 8, 32, 64]);
    assert_eq!(axes.spec.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["Database", "4K OLTP"]);
    assert_eq!((axes.target.len(), axes.offset.len()), (2, 4));
    assert_eq!(axes.depth, [1, 2, 4, 6]);
    assert_eq!(axes.rw, [Rw::Read, Rw::Randwrite]);
    assert_eq!((axes.mix.len(), axes.engine.len()), (2, 2));
    assert_eq!(axes.engine.first().map(|e| e.options.len()), Some(2));
}

#[test]
fn invalid_axis_values_are_rejected_with_a_suggestion() {
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
        ("target", "a,a"),
        ("offset", "0%,0%..20%+10%"),
        ("colour", "red"),
    ] {
        let result = find(axis).and_then(|a| a.parse_into(&mut Axes::default(), bad, is_known_engine));
        assert!(result.as_ref().is_err_and(|e| e.contains("; type")), "{axis} {bad}: {result:?}");
    }
}

#[test]
fn positions_are_bytes_percents_and_ranges() {
    let parsed_positions =
        |piece: &str| positions(piece).map(|all| all.into_iter().map(Offset::to_flag).collect::<Vec<_>>());
    assert_eq!(parsed_positions("4g"), Ok(vec!["4294967296".into()]));
    assert_eq!(parsed_positions("0"), Ok(vec!["0".into()]));
    assert_eq!(parsed_positions("25%"), Ok(vec!["25%".into()]));
    assert_eq!(parsed_positions("0%..20%+10%"), Ok(vec!["0%".into(), "10%".into(), "20%".into()]));
    assert_eq!(
        parsed_positions("0%..25%+10%"),
        Ok(vec!["0%".into(), "10%".into(), "20%".into(), "25%".into()])
    );
    assert_eq!(
        parsed_positions("0%..99%/4"),
        Ok(vec!["0%".into(), "33%".into(), "66%".into(), "99%".into()])
    );
    assert_eq!(parsed_positions("0%..2%/64").map(|all| all.len()), Ok(3), "none twice");
    for bad in
        ["", "100%", "-1%", "1.5%", "0%..50%", "50%..10%+5%", "0..4g+1g", "0%..99%/1", "0%..99%/65", "%"]
    {
        assert!(positions(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn presets_are_valid() {
    for preset in PRESETS {
        let mut axes = Axes::default();
        for (axis, text) in preset.settings {
            find(axis)
                .and_then(|a| a.parse_into(&mut axes, text, |name| name == "sync"))
                .unwrap_or_else(|e| panic!("{}: {axis}: {e}", preset.name));
        }
    }
    let mut ccsio = Axes::default();
    for (axis, text) in PRESETS[0].settings {
        assert_eq!(find(axis).and_then(|a| a.parse_into(&mut ccsio, text, |name| name == "sync")), Ok(()));
    }
    assert_eq!((ccsio.bs.len(), ccsio.depth.len()), (12, 5));
}
