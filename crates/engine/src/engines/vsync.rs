//! The engine `vsync`: preadv2 and pwritev2, which take flags per operation.
//!
//! For: one operation at a time with a flag that an open file cannot have. Not for: several buffers per operation.

use super::atomic;
use super::one::Call;
use super::polling;
use super::targets::Targets;
use crate::facts::{EngineOption, Number};
use crate::interface::Granted;
use crate::refusal::{LEAVE_OUT, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::Kind;
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{self, IoSlice, IoSliceMut};
use sys::arena::Arena;

/// Its options.
pub(super) const VSYNC_OPTIONS: &[EngineOption] = &[
    EngineOption {
        name: "hipri",
        about: "poll the device for the completion (RWF_HIPRI); direct I/O on a polling device",
        number: Number::No,
    },
    EngineOption {
        name: "dsync",
        about: "each write waits until it is stable (RWF_DSYNC)",
        number: Number::No,
    },
    EngineOption {
        name: "nowait",
        about: "fail with EAGAIN instead of blocking (RWF_NOWAIT)",
        number: Number::No,
    },
    EngineOption {
        name: "retry",
        about: "goes with nowait: what would block is done by a second call without the flag",
        number: Number::No,
    },
    EngineOption {
        name: "dontcache",
        about: "drop pages from the page cache after each operation (RWF_DONTCACHE)",
        number: Number::No,
    },
    EngineOption { name: atomic::ATOMIC, about: atomic::ABOUT_ATOMIC, number: Number::No },
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
        let mut granted = if has("hipri") { polling::check_polling(spec, "hipri")? } else { Granted::default() };
        granted.used.extend(spec.options.keys().map(|o| format!("flag {o}")));
        let retry = has("retry");
        if retry && !has("nowait") {
            let why = "option retry: it goes with nowait";
            return Err(refusal(io::ErrorKind::InvalidInput, why, "type nowait,retry"));
        }
        if has("dontcache") && spec.cache.is_direct() {
            let why = "option dontcache: direct I/O leaves nothing in the page cache";
            return Err(refusal(io::ErrorKind::InvalidInput, why, "type --cache buffered"));
        }
        let asked: Vec<(&str, ReadWriteFlags)> =
            [("hipri", ReadWriteFlags::HIPRI), ("nowait", ReadWriteFlags::NOWAIT), ("dontcache", DONTCACHE)]
                .into_iter()
                .filter(|(name, _)| has(name))
                .collect();
        let read_flags: ReadWriteFlags = asked.iter().map(|(_, flag)| *flag).collect();
        let mut write_flags = read_flags;
        write_flags.set(ReadWriteFlags::DSYNC, has("dsync"));
        write_flags.set(ATOMIC, atomic::check_atomic_writes(spec)?);
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let mut call = Self { arena, targets: Targets::take(spec)?, read_flags, write_flags, retry };
        for (name, flag) in asked {
            call.try_reads(name, flag)?;
        }
        Ok((call, granted))
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
                let flags = self.read_flags;
                let call = |data: &mut [u8], offset, flags| {
                    preadv2(file, &mut [IoSliceMut::new(data)], offset, flags)
                };
                match call(&mut data[..length], op.offset, flags) {
                    Err(Errno::AGAIN) if self.retry => {
                        Ok(call(&mut data[..length], op.offset, flags - NOWAIT)?)
                    }
                    // What of it was cached came at once.
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
    /// Reads once from each file, since only an operation shows whether its flag is known there. Any failure but that would be
    /// an operation's own, and is told as that; so is a flag that a file system knows for reads alone.
    fn try_reads(&mut self, option: &str, flag: ReadWriteFlags) -> io::Result<()> {
        let data = self.arena.slot_mut(0);
        for target in self.targets.all() {
            if preadv2(&target.file, &mut [IoSliceMut::new(data)], 0, flag) == Err(Errno::OPNOTSUPP) {
                let why = format!("option {option}: this kernel or this file system does not know the flag");
                return Err(refusal(io::ErrorKind::Unsupported, why, LEAVE_OUT));
            }
        }
        Ok(())
    }
}
