//! The files of an engine that carries operations by plain calls.
//!
//! For: the last lock before a write, and the trims and syncs that these engines share. Not for: moving bytes.

use crate::refusal::refusal;
use crate::source::Op;
use crate::spec::WorkerSpec;
use model::job::SyncCall;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use sys::open_file::OpenFile;
use sys::stable::{self, Flush};

/// Open files by the index that operations give.
pub(super) struct Targets {
    files: Vec<OpenFile>,
    /// Which of them are block devices.
    devices: Vec<bool>,
    flush: Flush,
}

impl Targets {
    /// Takes the files of a spec.
    pub(super) fn take(spec: &mut WorkerSpec) -> io::Result<Self> {
        let files = std::mem::take(&mut spec.files);
        let devices = files.iter().map(|f| Ok(f.file.metadata()?.file_type().is_block_device()));
        let devices = devices.collect::<io::Result<_>>()?;
        Ok(Self { files, devices, flush: flush_of(spec.sync_call) })
    }

    /// Takes the files of a spec that may name no device.
    ///
    /// # Errors
    /// Where one of them is a device.
    pub(super) fn files(spec: &mut WorkerSpec) -> io::Result<Self> {
        let targets = Self::take(spec)?;
        if targets.devices.contains(&true) {
            let why = "a device has neither a length nor blocks that could change";
            return Err(refusal(io::ErrorKind::Unsupported, why, "name a file or a directory"));
        }
        Ok(targets)
    }

    /// All files.
    pub(super) fn all(&self) -> impl Iterator<Item = &OpenFile> {
        self.files.iter()
    }

    /// The file that an operation reads.
    #[inline]
    pub(super) fn read(&self, op: &Op) -> &File {
        &self.files[op.file as usize].file
    }

    /// The file that an operation writes.
    ///
    /// # Panics
    /// Where it was not opened for that.
    #[inline]
    pub(super) fn write(&self, op: &Op) -> &File {
        let target = &self.files[op.file as usize];
        assert!(target.writable, "a write to a file that was opened for reading");
        &target.file
    }

    /// Gives bytes back: a hole in a file, a discard of a device. Not a hole in a device, which asks it for zeroes: file
    /// systems send discards, and a device may know them without knowing how to zero.
    pub(super) fn trim(&self, op: &Op) -> io::Result<usize> {
        let (file, bytes) = (self.write(op), u64::from(op.length));
        if self.devices[op.file as usize] {
            stable::discard(file, op.offset, bytes)?;
        } else {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, flags, op.offset, bytes)?;
        }
        Ok(op.length as usize)
    }

    /// Makes what was written stable.
    pub(super) fn sync(&self, op: &Op) -> io::Result<usize> {
        let file = self.read(op);
        match self.flush {
            Flush::All => file.sync_all(),
            Flush::Data => file.sync_data(),
            Flush::Range => stable::sync_range(file),
        }?;
        Ok(0)
    }
}

/// The kernel's part in a call of the plan.
pub(super) fn flush_of(call: SyncCall) -> Flush {
    match call {
        SyncCall::Fsync => Flush::All,
        SyncCall::Fdatasync => Flush::Data,
        SyncCall::SyncFileRange => Flush::Range,
    }
}

/// For interfaces that know fsync and fdatasync only.
///
/// # Errors
/// Where the spec asks for sync_file_range.
pub(super) fn no_range(spec: &WorkerSpec) -> io::Result<()> {
    if spec.sync_call != SyncCall::SyncFileRange {
        return Ok(());
    }
    let why = format!("{} knows no sync_file_range", spec.engine.name);
    let instead = "sync with fsync or fdatasync, or type --engine io_uring";
    Err(refusal(io::ErrorKind::Unsupported, why, instead))
}
