//! The files of an engine that uses plain calls: permission to write, trims and syncs, file positions, and checks of options before the
//! run.
//!
//! [`check_atomic_writes`] refuses `RWF_ATOMIC` if every write would fail, and [`check_polling`] refuses polling if the kernel would
//! silently wait for an interrupt.

use crate::interface::{Granted, LEAVE_OUT, refusal};
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::SyncCall;
use rustix::fs::{AtFlags, FallocateFlags, StatxFlags, statx};
use std::fs::{File, read_to_string};
use std::io;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use sys::file_pages::{self, Flush};
use sys::ioctl;
use sys::open_file::OpenFile;

/// The open files, by the file index of operations.
pub(super) struct Targets {
    files: Vec<OpenFile>,
    /// For each file, whether it is a block device.
    devices: Vec<bool>,
    flush: Flush,
}

impl Targets {
    /// Takes the files out of a spec.
    pub(super) fn take(spec: &mut WorkerSpec) -> io::Result<Self> {
        let files = std::mem::take(&mut spec.files);
        let devices = files.iter().map(|f| Ok(f.file.metadata()?.file_type().is_block_device()));
        let devices = devices.collect::<io::Result<_>>()?;
        Ok(Self { files, devices, flush: flush_of(spec.sync_call) })
    }

    /// Takes the files out of a spec and refuses devices.
    ///
    /// # Errors
    ///
    /// A refusal if one of the files is a device.
    pub(super) fn take_files(spec: &mut WorkerSpec) -> io::Result<Self> {
        let targets = Self::take(spec)?;
        if targets.devices.contains(&true) {
            let why = "a device has neither a length nor blocks that could change";
            return Err(refusal(io::ErrorKind::Unsupported, why, "name a file or a directory"));
        }
        Ok(targets)
    }

    /// Returns all files.
    pub(super) fn all(&self) -> impl Iterator<Item = &OpenFile> {
        self.files.iter()
    }

    /// Returns the file that an operation reads.
    #[inline]
    pub(super) fn read(&self, op: &Op) -> &File {
        &self.files[op.file as usize].file
    }

    /// Returns the file that an operation writes.
    ///
    /// # Panics
    /// If the file was not opened for writing.
    #[inline]
    pub(super) fn write(&self, op: &Op) -> &File {
        let target = &self.files[op.file as usize];
        assert!(target.writable, "a write to a file that was opened for reading");
        &target.file
    }

    /// Trims bytes: punches a hole in a file, or discards bytes of a device. Returns the length of
    /// the operation. `fallocate` on a device would request zeros, and some devices can discard but
    /// not zero.
    pub(super) fn trim(&self, op: &Op) -> io::Result<usize> {
        let (file, bytes) = (self.write(op), u64::from(op.length));
        if self.devices[op.file as usize] {
            ioctl::discard(file, op.offset, bytes)?;
        } else {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, flags, op.offset, bytes)?;
        }
        Ok(op.length as usize)
    }

    /// Runs the plan's sync call on the file of an operation. Returns 0.
    pub(super) fn sync(&self, op: &Op) -> io::Result<usize> {
        let file = self.read(op);
        match self.flush {
            Flush::All => file.sync_all(),
            Flush::Data => file.sync_data(),
            Flush::Range => file_pages::sync_range(file),
        }?;
        Ok(0)
    }
}

/// Converts the sync call of the plan to the call of `sys`.
pub(super) fn flush_of(call: SyncCall) -> Flush {
    match call {
        SyncCall::Fsync => Flush::All,
        SyncCall::Fdatasync => Flush::Data,
        SyncCall::SyncFileRange => Flush::Range,
    }
}

/// Checks the sync call for interfaces without sync_file_range.
///
/// # Errors
/// A refusal if the spec uses sync_file_range.
pub(super) fn refuse_sync_range(spec: &WorkerSpec) -> io::Result<()> {
    if spec.sync_call != SyncCall::SyncFileRange {
        return Ok(());
    }
    let why = format!("{} has no sync_file_range", spec.engine.name);
    let instead = "type --fsync or --fdatasync instead, or --engine io_uring";
    Err(refusal(io::ErrorKind::Unsupported, why, instead))
}

/// File positions, for calls that read or write at the current position. An operation needs a seek only if it begins elsewhere. `None`
/// means that the position is unknown.
pub(super) struct Positions(Vec<Option<u64>>);

impl Positions {
    /// Creates the positions of `files` files.
    pub(super) fn for_files(files: usize) -> Self {
        Self(vec![None; files])
    }

    /// Seeks to the start of an operation if necessary.
    #[inline]
    pub(super) fn seek_to(&mut self, mut file: &File, op: &Op) -> io::Result<()> {
        let at = &mut self.0[op.file as usize];
        if *at != Some(op.offset) {
            *at = None;
            *at = Some(file.seek(SeekFrom::Start(op.offset))?);
        }
        Ok(())
    }

    /// Advances a file's position by the bytes that an operation moved. Forgets the position after
    /// an error, because it is unknown then. Returns `answer`.
    #[inline]
    pub(super) fn moved(&mut self, op: &Op, answer: io::Result<usize>) -> io::Result<usize> {
        let bytes = answer.as_ref().ok().map(|moved| *moved as u64);
        self.0[op.file as usize] = bytes.and_then(|b| op.offset.checked_add(b));
        answer
    }
}

/// Name of the option for atomic writes.
pub(super) const ATOMIC: &str = "atomic";
/// Description of the option `atomic` in `--help`.
pub(super) const ABOUT_ATOMIC: &str =
    "after a power failure each write is complete or absent (RWF_ATOMIC, Linux 6.11)";
/// `STATX_WRITE_ATOMIC` of `linux/stat.h`, kernel 6.11.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// Checks that the files of a spec support atomic writes of the spec's operation size. Returns
/// whether the option is set.
///
/// # Errors
/// A refusal that names the option.
pub(super) fn check_atomic_writes(spec: &WorkerSpec) -> io::Result<bool> {
    if !spec.options.contains_key(ATOMIC) {
        return Ok(false);
    }
    let refuse = |why: String, instead: &str| {
        Err(refusal(io::ErrorKind::Unsupported, format!("option {ATOMIC}: {why}"), instead))
    };
    if !spec.cache.is_direct() {
        return refuse("the page cache can split a write".into(), "type --cache direct");
    }
    for target in &spec.files {
        let facts = statx(&target.file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC)?;
        let (least, most) = (facts.stx_atomic_write_unit_min, facts.stx_atomic_write_unit_max);
        if facts.stx_mask & WRITE_ATOMIC.bits() == 0 || most == 0 {
            let why = "the kernel, the file system or the device below it has no atomic writes (statx reports no sizes)";
            return refuse(why.into(), LEAVE_OUT);
        }
        let bytes = spec.slot_bytes;
        if !bytes.is_power_of_two() || !(least..=most).contains(&bytes) {
            let why = format!(
                "a write of {bytes} bytes cannot be atomic here, only powers of two from {least} to {most} bytes"
            );
            return refuse(why, "type one of these as --bs");
        }
    }
    Ok(true)
}

/// Checks that direct I/O is used, and that the devices below the files of a spec poll for
/// completions. Adds a fallback to the result if the kernel does not report whether a device polls.
/// `option` is the name of the engine option in messages.
///
/// # Errors
///
/// A refusal if the cache mode is not direct, or if a device completes by interrupt.
pub(super) fn check_polling(spec: &WorkerSpec, option: &str) -> io::Result<Granted> {
    let refuse = |why: String, instead: &str| {
        Err(refusal(io::ErrorKind::Unsupported, format!("option {option}: {why}"), instead))
    };
    if !spec.cache.is_direct() {
        let cache = spec.cache.word();
        let why =
            format!("with --cache {cache} the page cache completes the I/O, so there is no device to poll");
        return refuse(why, "type --cache direct");
    }
    let mut granted = Granted::default();
    for target in &spec.files {
        match polling_setting(&target.file)? {
            Some((device, value)) if value == "0" => {
                let why = format!(
                    "device {device} completes by interrupt (its queue/io_poll is 0); a driver polls only with poll queues, as \
                     with the kernel parameter nvme.poll_queues=2"
                );
                return refuse(why, LEAVE_OUT);
            }
            Some(_) => {}
            None => granted.fallbacks.push(format!(
                "{option}: the kernel does not report whether the device below the file polls"
            )),
        }
    }
    granted.fallbacks.dedup();
    Ok(granted)
}

/// Returns the device below a file and its `queue/io_poll`; `None` if there is no device, or it has no such setting.
fn polling_setting(file: &File) -> io::Result<Option<(String, String)>> {
    let about = file.metadata()?;
    let number = if about.file_type().is_block_device() { about.rdev() } else { about.dev() };
    let device = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    // A partition has no `queue` directory. Its disk is the parent directory.
    let value = ["queue", "../queue"]
        .iter()
        .find_map(|queue| read_to_string(format!("/sys/dev/block/{device}/{queue}/io_poll")).ok());
    Ok(value.map(|s| (device, s.trim().to_owned())))
}
