//! Axes: the values that a sweep goes through, in words.
//!
//! For: the one table of axes, with their flags and where they are in a setting; lists (`4k,64k`), doubling ranges (`16k..2m`) and
//! ranges with a step (`1..9+2`), all at once. Not for: which settings of the grid can be measured, which the plan finds out.

use super::cycle::Step;
use super::limits::{MAX_BLOCK_BYTES, MAX_DEPTH, MAX_TARGETS, MAX_WORKERS};
use super::number::{count, shown, size};
use super::offset::{Offset, positions};
use super::specs::{self, Spec};
use super::{EngineSpec, Rw, order, parsers};
use crate::job::{Cache, Mix};
use crate::sweep::Setting;
use crate::units::show_block;

/// Most values of an axis.
pub const MAX_VALUES: usize = 64;
/// Most cells of a grid: measuring more, each for a second, takes more than an hour.
pub const MAX_CELLS: usize = 4096;

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
    pub engine: Vec<EngineSpec>,
    /// Ways through the page cache.
    pub cache: Vec<Cache>,
    /// Orders and directions.
    pub rw: Vec<Rw>,
    /// Shares of directions, for those words of `rw` that leave them open.
    pub mix: Vec<Mix>,
    /// Operations submitted per call.
    pub batch: Vec<u32>,
    /// Access specifications, instead of `rw`, `mix` and `bs`.
    pub spec: Vec<Spec>,
    /// How many of the named targets are used, the first ones.
    pub targets: Vec<u32>,
    /// Targets, each used alone.
    pub target: Vec<String>,
    /// Where a cell begins on its target.
    pub offset: Vec<Offset>,
}

/// One axis.
#[derive(Debug)]
pub struct Axis {
    /// Its name, which is its flag too.
    pub name: &'static str,
    /// What stands for its values in help.
    pub value: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Puts the values of a text in place of those that are there.
    set: fn(&mut Axes, &str, IsEngine) -> Result<(), String>,
    /// Its values as they are told; empty where nothing was said.
    pub words: fn(&Axes) -> String,
    /// Where it is in a setting, if its values are numbers that can rise.
    pub scale: Option<Scale>,
}

/// Tells the name of an engine from an option of the one before.
pub type IsEngine = fn(&str) -> bool;

/// A number of a setting that an axis goes through.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Its value; `None` where the setting has none of it.
    pub of: fn(&Setting) -> Option<u32>,
    /// A value as it is shown.
    pub show: fn(u32) -> String,
    /// The setting with nothing said of it, so that what is equal but for it is equal.
    pub without: fn(&Setting) -> Setting,
}

/// Bytes per operation.
pub const SIZES: Scale = Scale {
    of: |s| Some(s.block_bytes),
    show: |v| show_block(u64::from(v)),
    without: |s| Setting { block_bytes: 0, ..s.clone() },
};
/// Operations in flight per worker.
pub const DEPTHS: Scale =
    Scale { of: |s| Some(s.depth), show: |v| v.to_string(), without: |s| Setting { depth: 0, ..s.clone() } };
/// Threads.
pub const WORKERS: Scale = Scale {
    of: |s| Some(s.workers),
    show: |v| v.to_string(),
    without: |s| Setting { workers: 1, ..s.clone() },
};
/// Operations submitted per call.
pub const BATCHES: Scale =
    Scale { of: |s| s.batch, show: |v| v.to_string(), without: |s| Setting { batch: None, ..s.clone() } };
/// Targets of each worker, where all have as many.
pub const TARGETS: Scale = Scale {
    of: |s| s.targets.filter(|_| s.targets_of_last.is_none()),
    show: |v| v.to_string(),
    without: |s| Setting { targets: None, ..s.clone() },
};

/// Every axis there is, in the order of help. Where its values act is `src/plan/sweep`.
pub const AXES: &[Axis] = &[
    Axis {
        name: "bs",
        value: "SIZES",
        about: "Bytes per operation: a list (4k,64k), a doubling range (16k..2m), one with a step (4k..16k+4k, 4k..64k*4), or all of them [default: 4k..4m]",
        set: |a, t, _| put(&mut a.bs, numbers(t, |t| size(t, 1, MAX_BLOCK_BYTES).map(|b| b as u32))),
        words: |a| joined(&a.bs, |v| (SIZES.show)(*v)),
        scale: Some(SIZES),
    },
    Axis {
        name: "depth",
        value: "COUNTS",
        about: "Operations in flight per worker, likewise [default: 1..16]",
        set: |a, t, _| put(&mut a.depth, numbers(t, |t| count(t, 1, MAX_DEPTH))),
        words: |a| joined(&a.depth, u32::to_string),
        scale: Some(DEPTHS),
    },
    Axis {
        name: "workers",
        value: "COUNTS",
        about: "Threads, likewise [default: 1]",
        set: |a, t, _| put(&mut a.workers, numbers(t, |t| count(t, 1, MAX_WORKERS))),
        words: |a| joined(&a.workers, u32::to_string),
        scale: Some(WORKERS),
    },
    Axis {
        name: "engine",
        value: "NAMES",
        about: "Interfaces, such as io_uring,libaio or io_uring:sqpoll=1 [default: io_uring]",
        set: |a, t, is_engine| put(&mut a.engine, engines(t, is_engine)),
        words: |a| joined(&a.engine, EngineSpec::to_flag),
        scale: None,
    },
    Axis {
        name: "cache",
        value: "WORDS",
        about: "How the target is opened, such as direct,buffered [default: direct]",
        set: |a, t, _| put(&mut a.cache, list(t, parsers::cache)),
        words: |a| joined(&a.cache, |c| c.word().into()),
        scale: None,
    },
    Axis {
        name: "rw",
        value: "WORDS",
        about: "Order and direction, such as read,randread [default: read,write; reads only where TARGET is an existing file or a device]",
        set: |a, t, _| put(&mut a.rw, list(t, parsers::rw)),
        words: |a| joined(&a.rw, |rw| rw.word().into()),
        scale: None,
    },
    Axis {
        name: "mix",
        value: "READ%S",
        about: "Shares of reads for rw and randrw, such as 100,70,0 [default: 50]",
        set: |a, t, _| put(&mut a.mix, list(t, order::mix)),
        words: |a| joined(&a.mix, |mix| mix.describe()),
        scale: None,
    },
    Axis {
        name: "batch",
        value: "COUNTS",
        about: "Operations submitted per call, as a list or range [default: as the engine has it]",
        set: |a, t, _| put(&mut a.batch, numbers(t, |t| count(t, 1, MAX_DEPTH))),
        words: |a| joined(&a.batch, u32::to_string),
        scale: Some(BATCHES),
    },
    Axis {
        name: "spec",
        value: "NAMES",
        about: "Access specifications instead of rw, mix and bs, such as file-server,4k-oltp, or classics, iometer, all",
        set: |a, t, _| put(&mut a.spec, several(t, specs::named)),
        words: |a| joined(&a.spec, |spec| spec.name.clone()),
        scale: None,
    },
    Axis {
        name: "targets",
        value: "COUNTS",
        about: "How many of the TARGETs are used, as a list or range [default: all at once]",
        set: |a, t, _| put(&mut a.targets, numbers(t, |t| count(t, 1, MAX_TARGETS as u32))),
        words: |a| joined(&a.targets, u32::to_string),
        scale: Some(TARGETS),
    },
    Axis {
        name: "target",
        value: "PATHS",
        about: "Directories, files or block devices, each measured alone, such as /mnt/a,/mnt/b, instead of TARGETs used at once",
        set: |a, t, _| put(&mut a.target, list(t, parsers::path)),
        words: |a| a.target.join(","),
        scale: None,
    },
    Axis {
        name: "offset",
        value: "POSITIONS",
        about: "First byte that may be touched, in percent of what is there or in bytes, such as 0%,50%,99%, 0%..90%+10%, 0%..99%/12 or 4g [default: 0]",
        set: |a, t, _| put(&mut a.offset, several(t, positions)),
        words: |a| joined(&a.offset, |at| at.to_flag()),
        scale: None,
    },
];

impl Axis {
    /// Puts the values of a text in place of those that are there.
    ///
    /// # Errors
    /// What was wrong and what to type.
    pub fn say(&self, axes: &mut Axes, text: &str, is_engine: IsEngine) -> Result<(), String> {
        (self.set)(axes, text, is_engine)
    }
}

/// The axis of that name.
///
/// # Errors
/// All the names.
pub fn find(name: &str) -> Result<&'static Axis, String> {
    let unknown = || format!("{} is no axis; type one of {}", shown(name), names().join(", "));
    AXES.iter().find(|axis| axis.name == name).ok_or_else(unknown)
}

/// The names of all axes.
pub fn names() -> Vec<&'static str> {
    AXES.iter().map(|axis| axis.name).collect()
}

fn put<T>(axis: &mut Vec<T>, values: Result<Vec<T>, String>) -> Result<(), String> {
    *axis = values?;
    Ok(())
}

fn joined<T>(values: &[T], words: impl Fn(&T) -> String) -> String {
    values.iter().map(words).collect::<Vec<_>>().join(",")
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

/// Values between commas, of which a word may mean several.
fn several<T: PartialEq>(
    text: &str,
    meant: impl Fn(&str) -> Result<Vec<T>, String>,
) -> Result<Vec<T>, String> {
    let mut out = Vec::new();
    for piece in text.split(',') {
        for value in meant(piece)? {
            add(&mut out, value, piece)?;
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
fn engines(text: &str, is_engine: IsEngine) -> Result<Vec<EngineSpec>, String> {
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
        add(&mut out, parsers::engine(piece)?, piece)?;
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
        ("target", "/mnt/a,b"),
        ("offset", "0%..20%+10%,4g"),
    ] {
        find(axis).and_then(|a| a.say(&mut axes, text, known)).unwrap_or_else(|e| panic!("{axis}: {e}"));
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
        ("target", "a,a"),
        ("offset", "0%,0%..20%+10%"),
        ("colour", "red"),
    ] {
        let said = find(axis).and_then(|a| a.say(&mut Axes::default(), bad, known));
        assert!(said.as_ref().is_err_and(|e| e.contains("; type")), "{axis} {bad}: {said:?}");
    }
}
