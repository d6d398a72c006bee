//! The engine `copy_file_range`: from one file to another, by the file system itself if it can.
//!
//! The other end is an unnamed file next to the target, as large as the slots. A read copies into it and reads the bytes with `pread`; a write
//! writes them with `pwrite` and copies from it. With the option `bare` these calls are omitted, and no byte reaches memory. File systems that
//! share blocks between files may move nothing. Block devices and direct I/O are not supported.

use crate::engines::blocking_call::Call;
use crate::engines::targets::Targets;
use crate::interface::{Granted, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use crate::spec::{EngineOption, Number};
use model::job::Kind;
use rustix::fs::{OFlags, copy_file_range};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use sys::arena::Arena;

/// Options of `copy_file_range`.
pub(super) const OPTIONS: &[EngineOption] = &[EngineOption {
    name: "bare",
    about: "copy between the files alone, so that no byte reaches memory or comes from it",
    number: Number::No,
}];

pub(super) struct CopyFileRange {
    arena: Arena,
    targets: Targets,
    /// The other end, with a range for each slot.
    other_file: File,
    stride: u64,
    bare: bool,
}

impl Call for CopyFileRange {
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let bare = spec.options.contains_key("bare");
        let arena = Arena::new(spec.slots(), spec.slot_bytes as usize)?;
        let stride = u64::from(spec.slot_bytes).next_multiple_of(4096);
        let other_file = unnamed_copy_file(spec)?;
        // Written in advance, so that a bare write does not copy holes.
        let zeros = vec![0; stride as usize];
        (0..spec.slots() as u64).try_for_each(|slot| other_file.write_all_at(&zeros, slot * stride))?;
        let used = bare.then(|| "bare: no byte reaches memory or comes from it".into());
        let granted = Granted { used: used.into_iter().collect(), fallbacks: Vec::new() };
        Ok((Self { arena, targets: Targets::take(spec)?, other_file, stride, bare }, granted))
    }

    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot_mut(slot as usize)
    }

    #[inline]
    fn carry(&mut self, slot: u32, op: &Op) -> io::Result<usize> {
        let inside = u64::from(slot) * self.stride;
        let (data, length) = (self.arena.slot_mut(slot as usize), op.length as usize);
        match op.kind {
            Kind::Read => {
                let moved = copy_all((self.targets.read(op), op.offset), (&self.other_file, inside), length)?;
                if !self.bare {
                    self.other_file.read_exact_at(&mut data[..moved], inside)?;
                }
                Ok(moved)
            }
            Kind::Write => {
                let target = self.targets.write(op);
                if !self.bare {
                    self.other_file.write_all_at(&data[..length], inside)?;
                }
                copy_all((&self.other_file, inside), (target, op.offset), length)
            }
            Kind::Trim => self.targets.trim(op),
            Kind::Sync => self.targets.sync(op),
        }
    }
}

/// Creates an unnamed file in the directory of the target.
fn unnamed_copy_file(spec: &WorkerSpec) -> io::Result<File> {
    let refuse = |why: &str, instead: &str| Err(refusal(io::ErrorKind::Unsupported, why, instead));
    let Some(first) = spec.files.first() else { return refuse("it has no target", "name one") };
    let device = first.file.metadata()?;
    if !device.is_file() {
        return refuse(
            "copy_file_range goes between files",
            "name a file or a directory, or type --engine sync",
        );
    }
    // A worker has its own file table.
    let link = format!("/proc/thread-self/fd/{}", first.file.as_raw_fd());
    let path = match std::fs::read_link(&link) {
        Ok(path) => path,
        Err(e) => {
            return refuse(
                &format!("which directory its target is in cannot be seen ({link}: {e})"),
                "mount proc on /proc, or type --engine sync",
            );
        }
    };
    let dir = path.parent().unwrap_or(&path);
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let created = File::options().read(true).write(true).mode(0o600).custom_flags(flags).open(dir);
    let created = match created {
        Ok(created) => created,
        Err(e) => {
            let dir = model::name::shown(dir);
            return refuse(
                &format!(
                    "it needs a second file beside the target, and {dir} takes none without a name ({e})"
                ),
                "type --engine sync",
            );
        }
    };
    for target in &spec.files {
        if target.file.metadata()?.dev() != created.metadata()?.dev() {
            return refuse("its targets are on several file systems", "name targets on one");
        }
    }
    Ok(created)
}

/// Copies until all bytes are moved or the source ends. Returns an error only if nothing was moved.
#[inline]
fn copy_all(from: (&File, u64), to: (&File, u64), bytes: usize) -> io::Result<usize> {
    let (mut read_at, mut write_at, mut moved) = (from.1, to.1, 0);
    while moved < bytes {
        match copy_file_range(from.0, Some(&mut read_at), to.0, Some(&mut write_at), bytes - moved) {
            Ok(0) => break,
            Ok(copied) => moved += copied,
            Err(_) if moved > 0 => break,
            Err(e) => return Err(e.into()),
        }
    }
    Ok(moved)
}
