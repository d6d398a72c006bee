//! The engine `mmap`: loads from and stores to a mapped file. Every byte of an operation is copied
//! between the mapping and the slot, so every page is accessed. Trims punch holes.
//!
//! A mapping ends where the file ended when it was mapped. If the file is truncated or the device
//! fails during the run, an operation ends short or with EIO, as a read would.

use crate::engines::targets::Targets;
use crate::interface::{Call, Granted, LEAVE_OUT, USE_SYNC, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use model::job::{Kind, SyncCall};
use std::io;
use sys::arena::Arena;
use sys::mapping::{Advice, Mapping};

/// Options of `mmap`.
pub(super) const OPTIONS: &[EngineOption] = &[
    EngineOption::new("populate", "read and map all pages before the run (MAP_POPULATE)"),
    EngineOption::new("late", "map at the first operation, as part of it, instead of before the run"),
    EngineOption::new("private", "map privately, for reading only (MAP_PRIVATE)"),
    EngineOption::new("sequential", "advise sequential access (MADV_SEQUENTIAL)"),
    EngineOption::new("random", "advise random access (MADV_RANDOM)"),
    EngineOption::new("willneed", "advise that all pages will be needed (MADV_WILLNEED)"),
    EngineOption::new("hugepage", "advise huge pages (MADV_HUGEPAGE)"),
    EngineOption::new(
        "dontneed",
        "unmap the pages of each operation at the end of the operation (MADV_DONTNEED)",
    ),
    EngineOption::new("async-msync", "sync with MS_ASYNC, which does nothing on Linux"),
];

const ADVICES: [(&str, Advice); 4] = [
    ("sequential", Advice::Sequential),
    ("random", Advice::Random),
    ("willneed", Advice::WillNeed),
    ("hugepage", Advice::HugePage),
];

pub(super) struct Mmap {
    arena: Arena,
    targets: Targets,
    /// One mapping per target. With the option `late` the list is empty before the first operation.
    mappings: Vec<Mapping>,
    populate: bool,
    private: bool,
    advices: Vec<Advice>,
    /// Whether the pages of each operation are unmapped after the operation.
    unmaps: bool,
    sync: Sync,
}

/// How a sync operation makes stores durable.
#[derive(Clone, Copy)]
enum Sync {
    Msync {
        wait: bool,
    },
    /// `fdatasync` or `sync_file_range` on the file.
    File,
}

impl Call for Mmap {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        if has("sequential") && has("random") {
            let why = "options sequential and random exclude each other";
            return Err(refusal(io::ErrorKind::InvalidInput, why, "leave one of the two options out"));
        }
        if has("private") && spec.files.iter().any(|f| f.writable) {
            let why = "option private: stores to a private mapping never reach the file";
            let instead = "type --rw read or randread, or leave private out";
            return Err(refusal(io::ErrorKind::InvalidInput, why, instead));
        }
        let sync = match spec.sync_call {
            _ if has("async-msync") => Sync::Msync { wait: false },
            SyncCall::Fsync => Sync::Msync { wait: true },
            SyncCall::Fdatasync | SyncCall::SyncFileRange => Sync::File,
        };
        let (unmaps, used) = (has("dontneed"), spec.options.keys().cloned().collect());
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let advices = ADVICES.iter().filter(|(name, _)| has(name)).map(|(_, advice)| *advice).collect();
        let (populate, private, late, mappings) = (has("populate"), has("private"), has("late"), Vec::new());
        let targets = Targets::take(spec)?;
        let mut call = Self { arena, targets, mappings, populate, private, advices, unmaps, sync };
        if !late {
            call.map()?;
        }
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        if self.mappings.is_empty() {
            self.map()?;
        }
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        let mapping = &mut self.mappings[op.file as usize];
        let moved = match (op.kind, self.sync) {
            (Kind::Read, _) => mapping.load(op.offset, &mut data[..length])?,
            (Kind::Write, _) => mapping.store(op.offset, &data[..length])?,
            (Kind::Trim, _) => return self.targets.trim(op),
            (Kind::Sync, Sync::Msync { wait }) => return mapping.sync(wait).map(|()| 0),
            (Kind::Sync, Sync::File) => return self.targets.sync(op),
        };
        if self.unmaps {
            mapping.unmap_pages(op.offset, moved)?;
        }
        Ok(moved)
    }
}

impl Mmap {
    /// Maps all targets and passes the advice of the options to the kernel.
    #[cold]
    fn map(&mut self) -> io::Result<()> {
        let maps = self.targets.all().map(|f| Mapping::new(f, self.populate, self.private));
        self.mappings = maps.collect::<io::Result<_>>().map_err(|e| explain(&e))?;
        for (advice, mapping) in self.advices.iter().flat_map(|a| self.mappings.iter().map(move |m| (*a, m)))
        {
            mapping.advise(advice).map_err(|e| {
                let name = ADVICES.iter().find(|(_, a)| *a == advice).map_or("", |(name, _)| *name);
                refusal(
                    e.kind(),
                    format!("option {name}: this kernel does not support this advice ({e})"),
                    LEAVE_OUT,
                )
            })?;
        }
        Ok(())
    }
}

/// Explains why `mmap` failed, and what to type instead.
fn explain(error: &io::Error) -> io::Error {
    let (why, instead) = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::ACCESS) => {
            ("a mapping needs a file opened for reading, even if it only writes", USE_SYNC)
        }
        Some(rustix::io::Errno::INVAL) => ("an empty file cannot be mapped", "give it a size first"),
        Some(rustix::io::Errno::NODEV) => ("files of this file system cannot be mapped", USE_SYNC),
        Some(rustix::io::Errno::NOMEM) => {
            ("the file does not fit into the address space or the memory limit", "use a smaller --size")
        }
        _ => ("the file cannot be mapped", USE_SYNC),
    };
    refusal(error.kind(), format!("{why} ({error})"), instead)
}

#[test]
fn an_empty_file_is_refused_with_a_message() {
    let message = explain(&io::Error::from_raw_os_error(22)).to_string();
    assert!(message.contains("empty"), "{message}");
}

#[test]
fn a_private_mapping_reads_the_file() {
    use sys::open_file::OpenFile;
    let file = std::fs::File::open("/proc/self/exe").unwrap_or_else(|e| panic!("{e}"));
    let map = Mapping::new(&OpenFile::new(file, false), false, true);
    let mut data = [0; 4];
    assert_eq!(map.and_then(|mut m| m.load(0, &mut data)).ok(), Some(4));
    assert_eq!(&data, b"\x7fELF");
}
