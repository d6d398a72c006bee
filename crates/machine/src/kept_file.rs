//! Files that fathom creates if they are missing, and keeps.
//!
//! The plan decides whether a new file is written, preallocated or left as a hole. Its mark ([`crate::mark`])
//! lets the next call write it again without `--destroy`.

use crate::error::MachineError;
use crate::mark::{Writing, holds_our_data, is_empty};
use crate::root::Root;
use crate::test_file::Writer;
use crate::{extents, file_systems, named_files, page_cache, safety};
use model::job::{Create, Filling};
use model::machine::Identity;
use model::units::MIB;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that was created or written again.
#[derive(Debug)]
pub struct Made {
    /// The mark that the file is being written. Dropping this value completes the mark. `None` if the file gets no mark.
    pub writing: Option<Writing>,
    /// Whether the file was an empty one that another program had created. fathom must not remove
    /// it.
    pub found_empty: bool,
}

/// Creates a file, or writes an existing file again. The existing file must be the one that the
/// plan found (`planned`): one of fathom's, or an empty one. `progress` gets the bytes written and
/// the total.
///
/// # Errors
/// If a file exists that the plan did not find, if permission or space is missing, or if the stop flag is
/// set.
pub fn make(
    root: &Root,
    path: &Path,
    create: Create,
    planned: Option<&Identity>,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Made, MachineError> {
    let (file, found_empty) = match planned {
        None => (begin(path)?, false),
        Some(_) => recreate(root, path, planned)?,
    };
    let made = Made { writing: Writing::begin_on(path, &file), found_empty };
    let written = write(path, &file, create, seed, stop, progress);
    // Always close the file: the mark cannot be completed while it is open for writing.
    drop(file);
    written.map(|()| made)
}

/// Writes, allocates or truncates a file as `create` specifies, syncs it and evicts it from the page cache.
fn write(
    path: &Path,
    file: &File,
    create: Create,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), MachineError> {
    let failed = |e: io::Error| MachineError::at(path, "created", &e);
    match create.filling {
        Filling::Data => fill(path, file, create.bytes, seed, stop, progress)?,
        Filling::Blocks => allocate(file, create.bytes, FallocateFlags::empty()).map_err(failed)?,
        Filling::Reserved => allocate(file, create.bytes, FallocateFlags::KEEP_SIZE).map_err(failed)?,
        Filling::Hole if file.metadata().map_err(failed)?.len() >= create.bytes => {}
        Filling::Hole => file.set_len(0).and_then(|()| file.set_len(create.bytes)).map_err(failed)?,
        Filling::Nothing => file.set_len(0).map_err(failed)?,
    }
    file.sync_all().map_err(failed)?;
    // Reads must come from storage. If pages remain cached, the checks report them.
    let _ = page_cache::evict(file);
    Ok(())
}

/// Creates a new file. Refuses synthetic file systems.
fn begin(path: &Path) -> Result<File, MachineError> {
    file_systems::refuse_synthetic_at(path, named_files::parent(path))?;
    let file = File::options().read(true).write(true).create_new(true).open(path);
    file.map_err(|e| MachineError::at(path, "created", &e))
}

/// Opens a file of fathom's, or an empty file, to write it again. Returns whether the file was another
/// program's empty file.
fn recreate(root: &Root, path: &Path, planned: Option<&Identity>) -> Result<(File, bool), MachineError> {
    safety::check_planned_path(root, path, planned)?;
    let nonblock = OFlags::NONBLOCK.bits() as i32;
    let open = |write: bool| {
        let file = File::options().read(true).write(write).custom_flags(nonblock).open(path);
        let file = file.map_err(|e| MachineError::at(path, "opened", &e))?;
        safety::check_planned_file(root, path, &file, planned).map(|()| file)
    };
    // Check before opening for writing, because that makes fathom itself a user.
    safety::refuse_users(root, path, &open(false)?, false)?;
    let file = open(true)?;
    if holds_our_data(&file) {
        return Ok((file, false));
    }
    if is_empty(&file).map_err(|e| MachineError::at(path, "read", &e))? {
        return Ok((file, true));
    }
    Err(MachineError::Refused(format!(
        "{} is not the file that fathom made, so it was not written; name another file, or remove this one",
        model::name::shown(path)
    )))
}

/// Fills a file with data up to `bytes`. If the file has neither holes nor unwritten blocks, keeps its
/// data and only adds to it. Never shortens the file.
fn fill(
    path: &Path,
    file: &File,
    bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), MachineError> {
    let failed = |e: io::Error| MachineError::at(path, "filled", &e);
    let length = file.metadata().map_err(failed)?.len();
    let is_complete =
        extents::map_file_extents(file).is_ok_and(|e| e.hole_bytes == 0 && e.unwritten_bytes == 0);
    let from = if is_complete { length } else { 0 };
    if from >= bytes {
        return Ok(());
    }
    let mut writer = file.try_clone().and_then(|f| Writer::over(f, false, seed)).map_err(failed)?;
    for at in (from / MIB * MIB..bytes).step_by(MIB as usize) {
        if stop.load(Ordering::Relaxed) {
            return Err(MachineError::Refused(format!(
                "interrupted while {} was filled; the part written so far is kept",
                model::name::shown(path)
            )));
        }
        writer.write_mib(at).map_err(failed)?;
        progress((at + MIB).min(bytes), bytes);
    }
    // The last piece may extend beyond the requested length.
    file.set_len(bytes.max(length)).map_err(failed)
}

/// Allocates all blocks of a file, like fio. Does nothing if the blocks exist, otherwise empties the file first. If the
/// file system cannot allocate blocks, later writes grow the file.
fn allocate(file: &File, bytes: u64, flags: FallocateFlags) -> io::Result<()> {
    let length = file.metadata()?.len();
    if bytes > 0 && length >= bytes && extents::map_file_extents(file).is_ok_and(|e| e.hole_bytes == 0) {
        return Ok(());
    }
    file.set_len(0)?;
    match fallocate(file, flags, 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::{is_ours, may_be_made};

    fn made(path: &Path, bytes: u64, filling: Filling) -> Result<Made, MachineError> {
        let planned = crate::identity::from_path(path).ok();
        let stop = AtomicBool::new(false);
        make(
            &Root::real(),
            path,
            Create { bytes, filling, unlink: false },
            planned.as_ref(),
            7,
            &stop,
            &mut |_, _| {},
        )
    }

    #[test]
    fn a_created_file_is_ours_and_a_copy_is_not() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let (path, copy) = (dir.path().join("a"), dir.path().join("b"));
        made(&path, 3 * MIB + 5, Filling::Data)?;
        let data = std::fs::read(&path)?;
        assert_eq!(data.len() as u64, 3 * MIB + 5);
        assert!(data.chunks(4096).all(|block| block.iter().any(|b| *b != 0)), "data, not holes");
        assert!(is_ours(&path));
        made(&path, 2 * MIB, Filling::Data)?;
        assert_eq!(std::fs::read(&path)?, data, "what is there already stays");
        made(&path, MIB, Filling::Nothing)?;
        assert_eq!(std::fs::metadata(&path)?.len(), 0);
        made(&path, MIB, Filling::Blocks)?;
        made(&path, MIB, Filling::Data)?;
        let data = std::fs::read(&path)?;
        assert!(data.iter().any(|b| *b != 0), "blocks alone are no data");
        made(&path, MIB, Filling::Blocks)?;
        assert_eq!(std::fs::read(&path)?, data, "blocks that are there stay, with what was written to them");
        let status = std::process::Command::new("cp").arg("-a").args([&path, &copy]).status()?;
        assert!(status.success() && !is_ours(&copy));
        assert!(made(&copy, MIB, Filling::Nothing).is_err(), "what is not ours is not touched");
        assert_eq!(std::fs::metadata(&copy)?.len(), MIB);
        std::fs::write(&copy, "")?;
        assert!(may_be_made(&copy) && !is_ours(&copy));
        made(&copy, MIB, Filling::Data)?;
        assert!(is_ours(&copy), "there was nothing in it");
        Ok(())
    }
}
