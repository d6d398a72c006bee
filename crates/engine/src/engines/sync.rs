//! The engine `sync`: pread and pwrite.
//!
//! For: one operation at a time, the plainest interface there is; with what programs do around it: reading ahead, and writing to
//! a file that is new. Not for: flags per operation; that is `vsync`.
//!
//! The calls are the kernel's own (rustix). The C library's are points of cancellation, for which a thread that is not alone pays
//! some 20 ns a call; a tool of one process a job, as fio is, pays nothing.

use super::one::Call;
use super::targets::Targets;
use crate::facts::{EngineOption, Number};
use crate::interface::Granted;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::{FALLOCATE, GROW, Kind, NEW};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{pread, pwrite};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use sys::arena::Arena;
use sys::readahead::readahead;

/// Its options.
pub(super) const SYNC_OPTIONS: &[EngineOption] = &[
    EngineOption { name: "readahead", about: "read N bytes ahead (readahead)", number: Number::Must },
    EngineOption {
        name: NEW,
        about: "before the run cut the file off and give it its length again, as a new file has it",
        number: Number::No,
    },
    EngineOption {
        name: FALLOCATE,
        about: "the same, and before the first write allocate the whole file at once (fallocate)",
        number: Number::No,
    },
    EngineOption {
        name: GROW,
        about: "before the run cut the file off, so that it grows by what is written, as a copy does",
        number: Number::No,
    },
];

/// More ahead is a slip.
const MOST_AHEAD: u64 = 1 << 30;

pub(super) struct Sync {
    arena: Arena,
    targets: Targets,
    /// What is done around the calls; `None` where that is nothing, so that plain calls pay for nothing but asking.
    around: Option<Box<Around>>,
}

/// What programs do around their calls.
struct Around {
    /// Bytes to ask for ahead, and what was asked for of each file.
    ahead: Option<u64>,
    asked: Vec<Range<u64>>,
    /// Bytes to allocate of each file before its first write; `None` once that is done, and where nothing is.
    to_allocate: Vec<Option<u64>>,
}

/// What becomes of a file before it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// It has its length and no blocks.
    Length,
    /// It has its length and all blocks.
    Blocks,
    /// It has neither.
    Nothing,
}

impl Call for Sync {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        let ahead = spec.options.get("readahead").copied().flatten();
        if ahead.is_some_and(|a| a == 0 || a > MOST_AHEAD) {
            let why = "option readahead: type a size from 4k to 1g";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let ways = [(NEW, Renewal::Length), (FALLOCATE, Renewal::Blocks), (GROW, Renewal::Nothing)];
        let way = ways.into_iter().rev().find(|(name, _)| has(name)).map(|(_, way)| way);
        let to_allocate = spec.files.iter().map(|f| way.map_or(Ok(None), |way| renewed(&f.file, way)));
        let to_allocate = to_allocate.collect::<io::Result<Vec<_>>>()?;
        let used: Vec<String> = spec.options.keys().cloned().collect();
        let asked = vec![0..0; spec.files.len()];
        let around = (!used.is_empty()).then(|| Box::new(Around { ahead, asked, to_allocate }));
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let call = Self { arena, targets: Targets::take(spec)?, around };
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => {
                let file = self.targets.read(op);
                if let Some(around) = &mut self.around {
                    around.before_read(file, op)?;
                }
                Ok(pread(file, &mut data[..length], op.offset)?)
            }
            Kind::Write => {
                let file = self.targets.write(op);
                if let Some(around) = &mut self.around {
                    around.before_write(file, op)?;
                }
                Ok(pwrite(file, &data[..length], op.offset)?)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

impl Around {
    #[cold]
    fn before_read(&mut self, file: &File, op: &Op) -> io::Result<()> {
        let Some(window) = self.ahead else { return Ok(()) };
        ask(file, op, window, &mut self.asked[op.file as usize])
    }

    #[cold]
    fn before_write(&mut self, file: &File, op: &Op) -> io::Result<()> {
        let Some(bytes) = self.to_allocate[op.file as usize].take() else { return Ok(()) };
        Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
    }
}

/// Asks for what comes next, a window at a time, when half of the last one is used up.
fn ask(file: &File, op: &Op, window: u64, asked: &mut Range<u64>) -> io::Result<()> {
    let end = op.offset + u64::from(op.length);
    if !asked.contains(&op.offset) {
        *asked = op.offset..op.offset;
    }
    while end + window / 2 > asked.end {
        readahead(file, asked.end, window as usize)?;
        asked.end += window;
    }
    Ok(())
}

/// Gives all blocks of a file back before the run: who makes a file new has none to give back, so that is no part of its time.
/// Gives the bytes that are to be allocated before its first write, which is.
fn renewed(file: &File, way: Renewal) -> io::Result<Option<u64>> {
    let about = file.metadata()?;
    if !about.is_file() {
        let why = format!(
            "options {NEW}, {FALLOCATE} and {GROW} are for files: a device has no blocks to give back so"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    file.set_len(0)?;
    // A file that was cut off to nothing is written back as soon as somebody closes it (ext4's auto_da_alloc, and the same in xfs
    // and btrfs), as none is that is new. Closing it once while nothing is dirty ends that.
    drop(File::open(format!("/proc/thread-self/fd/{}", file.as_raw_fd())));
    if way != Renewal::Nothing {
        file.set_len(about.len())?;
    }
    Ok((way == Renewal::Blocks).then_some(about.len()))
}
