//! The engines `sync`, `vsync` and `rw`: one read or write call per operation.
//!
//! `sync` is pread and pwrite, with options for readahead and for writing to a new file. It calls
//! the kernel directly (rustix), because the C library's functions are cancellation points, which
//! cost about 20 ns per call in a process with several threads. `vsync` is preadv2 and pwritev2
//! with flags for each call. `rw` is read and write from the position of the file. It seeks
//! only if an operation does not begin where the last one ended. With the option `vectors` an
//! operation uses several buffers (`readv`, `writev`).

use crate::engines::targets::{self, Positions, Targets};
use crate::interface::{Call, Granted, LEAVE_OUT, refusal};
use crate::source::Op;
use crate::spec::{EngineOption, WorkerSpec};
use model::job::{FALLOCATE, GROW, Kind, NEW};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite, pwritev2};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use sys::arena::Arena;
use sys::file_pages::readahead;

pub(super) const SYNC_OPTIONS: &[EngineOption] = &[
    EngineOption::with_number("readahead", "read N bytes ahead (readahead)"),
    EngineOption::new(
        NEW,
        "truncate the file and restore its length before the run, so that it has no blocks, like a new file",
    ),
    EngineOption::new(
        FALLOCATE,
        "do the same as new, and allocate the whole file before the first write (fallocate)",
    ),
    EngineOption::new(GROW, "truncate the file before the run, so that writes extend it, as a copy does"),
];
/// Maximum readahead in bytes.
const MAX_READAHEAD: u64 = 1 << 30;

pub(super) struct Sync {
    arena: Arena,
    targets: Targets,
    /// Extra work before each call; `None` without options, so that plain calls cost only this check.
    extra_calls: Option<Box<ExtraCalls>>,
}

/// Calls that a program makes before its reads and writes, such as `readahead` and `fallocate`.
struct ExtraCalls {
    /// Readahead window in bytes; `None` if the engine requests no readahead.
    ahead: Option<u64>,
    /// For each file the range whose readahead was already requested.
    requested: Vec<Range<u64>>,
    /// Bytes of each file to allocate before its first write; `None` after that write, or without the option `fallocate`.
    to_allocate: Vec<Option<u64>>,
}

/// The state to which a file is reset before the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// Full length, without allocated blocks.
    Length,
    /// Full length. All blocks are allocated during the run, before the first write.
    Blocks,
    /// Length 0.
    Nothing,
}

impl Call for Sync {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        let ahead = spec.options.get("readahead").copied().flatten();
        if let Some(bytes) = ahead.filter(|bytes| *bytes == 0 || *bytes > MAX_READAHEAD) {
            let why = format!("option readahead={bytes}: type a size from 4k to 1g");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let renewals = [(NEW, Renewal::Length), (FALLOCATE, Renewal::Blocks), (GROW, Renewal::Nothing)];
        let renewal = renewals.into_iter().rev().find(|(name, _)| has(name)).map(|(_, renewal)| renewal);
        let to_allocate =
            spec.files.iter().map(|f| renewal.map_or(Ok(None), |renewal| renew(&f.file, renewal)));
        let to_allocate = to_allocate.collect::<io::Result<Vec<_>>>()?;
        let used: Vec<String> = spec.options.keys().cloned().collect();
        let requested = vec![0..0; spec.files.len()];
        let extra_calls = (!used.is_empty()).then(|| Box::new(ExtraCalls { ahead, requested, to_allocate }));
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let call = Self { arena, targets: Targets::take(spec)?, extra_calls };
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => {
                let file = self.targets.read(op);
                if let Some(extra_calls) = &mut self.extra_calls {
                    extra_calls.before_read(file, op)?;
                }
                Ok(pread(file, &mut data[..length], op.offset)?)
            }
            Kind::Write => {
                let file = self.targets.write(op);
                if let Some(extra_calls) = &mut self.extra_calls {
                    extra_calls.before_write(file, op)?;
                }
                Ok(pwrite(file, &data[..length], op.offset)?)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

impl ExtraCalls {
    #[cold]
    fn before_read(&mut self, file: &File, op: &Op) -> io::Result<()> {
        let Some(window) = self.ahead else { return Ok(()) };
        request_readahead(file, op, window, &mut self.requested[op.file as usize])
    }

    #[cold]
    fn before_write(&mut self, file: &File, op: &Op) -> io::Result<()> {
        let Some(bytes) = self.to_allocate[op.file as usize].take() else { return Ok(()) };
        Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
    }
}

/// Requests the next window of readahead when half of the last requested window is used.
fn request_readahead(file: &File, op: &Op, window: u64, requested: &mut Range<u64>) -> io::Result<()> {
    let end = op.offset + u64::from(op.length);
    if !requested.contains(&op.offset) {
        *requested = op.offset..op.offset;
    }
    while end + window / 2 > requested.end {
        readahead(file, requested.end, window as usize)?;
        requested.end += window;
    }
    Ok(())
}

/// Frees all blocks of a file before the run, because a new file has none. Returns the number of
/// bytes to allocate during the run, before the first write; `None` without the option `fallocate`.
fn renew(file: &File, renewal: Renewal) -> io::Result<Option<u64>> {
    let about = file.metadata()?;
    if !about.is_file() {
        let why = format!(
            "options {NEW}, {FALLOCATE} and {GROW} are only for files: a device cannot free its blocks this way"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    file.set_len(0)?;
    // ext4 (auto_da_alloc), xfs and btrfs write back a truncated file at its next close, unlike a new file. So close the file once now,
    // while nothing is dirty.
    drop(File::open(format!("/proc/thread-self/fd/{}", file.as_raw_fd())));
    if renewal != Renewal::Nothing {
        file.set_len(about.len())?;
    }
    Ok((renewal == Renewal::Blocks).then_some(about.len()))
}

pub(super) const VSYNC_OPTIONS: &[EngineOption] = &[
    EngineOption::new(
        "hipri",
        "poll the device for the completion (RWF_HIPRI); needs direct I/O and a device with poll queues",
    ),
    EngineOption::new("dsync", "each write waits until it is stable (RWF_DSYNC)"),
    EngineOption::new("nowait", "fail with EAGAIN instead of blocking (RWF_NOWAIT)"),
    EngineOption::new("retry", "with nowait: repeat a call that would block, without the flag"),
    EngineOption::new("dontcache", "drop pages from the page cache after each operation (RWF_DONTCACHE)"),
    EngineOption::new(targets::ATOMIC, targets::ABOUT_ATOMIC),
];
const NOWAIT: ReadWriteFlags = ReadWriteFlags::NOWAIT;
/// `RWF_ATOMIC` of `linux/fs.h`, kernel 6.11.
const ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);
/// `RWF_DONTCACHE` of `linux/fs.h`, kernel 6.14.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

pub(super) struct Vsync {
    arena: Arena,
    targets: Targets,
    read_flags: ReadWriteFlags,
    write_flags: ReadWriteFlags,
    retry: bool,
}

impl Call for Vsync {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let has = |name: &str| spec.options.contains_key(name);
        let mut granted =
            if has("hipri") { targets::check_polling(spec, "hipri")? } else { Granted::default() };
        granted.used.extend(spec.options.keys().map(|o| format!("flag {o}")));
        let retry = has("retry");
        if retry && !has("nowait") {
            let why = "option retry has no effect without nowait";
            return Err(refusal(io::ErrorKind::InvalidInput, why, "type nowait,retry"));
        }
        if has("dontcache") && spec.cache.is_direct() {
            let why = "option dontcache: direct I/O leaves nothing in the page cache";
            return Err(refusal(io::ErrorKind::InvalidInput, why, "type --cache buffered"));
        }
        let flags: Vec<(&str, ReadWriteFlags)> =
            [("hipri", ReadWriteFlags::HIPRI), ("nowait", ReadWriteFlags::NOWAIT), ("dontcache", DONTCACHE)]
                .into_iter()
                .filter(|(name, _)| has(name))
                .collect();
        let read_flags: ReadWriteFlags = flags.iter().map(|(_, flag)| *flag).collect();
        let mut write_flags = read_flags;
        write_flags.set(ReadWriteFlags::DSYNC, has("dsync"));
        write_flags.set(ATOMIC, targets::check_atomic_writes(spec)?);
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let mut call = Self { arena, targets: Targets::take(spec)?, read_flags, write_flags, retry };
        for (name, flag) in flags {
            call.try_reads(name, flag)?;
        }
        Ok((call, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => {
                let file = self.targets.read(op);
                let flags = self.read_flags;
                let call = |data: &mut [u8], offset, flags| {
                    preadv2(file, &mut [IoSliceMut::new(data)], offset, flags)
                };
                match call(&mut data[..length], op.offset, flags) {
                    Err(Errno::AGAIN) if self.retry => {
                        Ok(call(&mut data[..length], op.offset, flags - NOWAIT)?)
                    }
                    // The kernel read only the cached part. Read the rest without the flag.
                    Ok(moved) if self.retry && moved < length => {
                        let (rest, at) = (&mut data[moved..length], op.offset + moved as u64);
                        Ok(moved + call(rest, at, flags - NOWAIT)?)
                    }
                    answer => Ok(answer?),
                }
            }
            Kind::Write => {
                let file = self.targets.write(op);
                let data = &data[..length];
                let call = |from: usize, flags| {
                    pwritev2(file, &[IoSlice::new(&data[from..])], op.offset + from as u64, flags)
                };
                match call(0, self.write_flags) {
                    Err(Errno::AGAIN) if self.retry => Ok(call(0, self.write_flags - NOWAIT)?),
                    Ok(moved) if self.retry && moved < length => {
                        Ok(moved + call(moved, self.write_flags - NOWAIT)?)
                    }
                    answer => Ok(answer?),
                }
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

impl Vsync {
    /// Reads once from each file, because only an operation shows whether the kernel supports a flag. The measured operations report all
    /// other errors themselves.
    fn try_reads(&mut self, option: &str, flag: ReadWriteFlags) -> io::Result<()> {
        let data = self.arena.slot_mut(0);
        for target in self.targets.all() {
            if preadv2(&target.file, &mut [IoSliceMut::new(data)], 0, flag) == Err(Errno::OPNOTSUPP) {
                let why =
                    format!("option {option}: this kernel or this file system does not support the flag");
                return Err(refusal(io::ErrorKind::Unsupported, why, LEAVE_OUT));
            }
        }
        Ok(())
    }
}

pub(super) const RW_OPTIONS: &[EngineOption] = &[EngineOption::with_number(
    "vectors",
    "readv and writev with N buffers per operation; with direct I/O each buffer has whole pages",
)];

/// Maximum number of buffers per operation.
const MAX_VECTORS: usize = 16;
/// Alignment of buffers for direct I/O, enough for every device.
const BUFFER_ALIGNMENT: usize = 4096;

pub(super) struct Rw {
    arena: Arena,
    targets: Targets,
    positions: Positions,
    vectors: usize,
    /// The length of each buffer except the last is a multiple of this number of bytes.
    granularity: usize,
}

impl Call for Rw {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let requested = spec.options.get("vectors").copied().flatten();
        let vectors =
            requested.map_or(Some(1), |n| usize::try_from(n).ok().filter(|n| (1..=MAX_VECTORS).contains(n)));
        let vectors = vectors.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("option vectors: type a number from 1 to {MAX_VECTORS}"),
            )
        })?;
        let used = requested.map(|n| format!("{n} vectors")).into_iter().collect();
        let granularity = if spec.cache.is_direct() { BUFFER_ALIGNMENT } else { 1 };
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let positions = Positions::for_files(spec.files.len());
        let call = Self { arena, targets: Targets::take(spec)?, positions, vectors, granularity };
        Ok((call, Granted { used, fallbacks: Vec::new() }))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        let part = length.div_ceil(self.vectors).next_multiple_of(self.granularity);
        match op.kind {
            Kind::Read => {
                let mut file = self.targets.read(op);
                self.positions.seek_to(file, op)?;
                let answer = if self.vectors == 1 {
                    file.read(&mut data[..length])
                } else {
                    let mut parts: [IoSliceMut; MAX_VECTORS] =
                        std::array::from_fn(|_| IoSliceMut::new(&mut []));
                    parts
                        .iter_mut()
                        .zip(data[..length].chunks_mut(part))
                        .for_each(|(p, d)| *p = IoSliceMut::new(d));
                    file.read_vectored(&mut parts[..self.vectors])
                };
                self.positions.moved(op, answer)
            }
            Kind::Write => {
                let mut file = self.targets.write(op);
                self.positions.seek_to(file, op)?;
                let answer = if self.vectors == 1 {
                    file.write(&data[..length])
                } else {
                    let mut parts = [IoSlice::new(&[]); MAX_VECTORS];
                    parts.iter_mut().zip(data[..length].chunks(part)).for_each(|(p, d)| *p = IoSlice::new(d));
                    file.write_vectored(&parts[..self.vectors])
                };
                self.positions.moved(op, answer)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}
