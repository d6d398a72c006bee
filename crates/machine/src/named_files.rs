//! Files that a command line names: their length, how they are stored, and how much of them is cached.
//!
//! 1. [`find`] takes each argument as a path, and the value of arguments such as `if=PATH` and
//!    `--output=PATH`. It keeps paths that exist, and paths in an existing directory, because the command may
//!    create them. The caller drops arguments that turn out not to be paths.
//! 2. [`state`] adds up a file, a block device, or all files below a directory. Symbolic links below a
//!    directory are not followed.

use crate::root::Root;
use crate::{extents, file_systems, page_cache, resolve};
use model::Known;
use model::command::FilesState;
use model::evidence::SECTOR_BYTES;
use model::machine::Place;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Maximum number of files below a directory. With more files the state is unknown.
const MAX_FILES: u64 = 200_000;

/// A path on a command line.
#[derive(Clone, Debug)]
pub struct Named {
    /// The path as it was typed.
    pub path: PathBuf,
    /// Where the path is stored, or its directory while the path does not exist; or why that is unknown.
    pub place: Known<Place>,
    /// The file, or for a path that does not exist its directory and name.
    identity: Identity,
    /// Device number of the file system of the path's directory; `None` if it is unknown.
    file_system: Option<u64>,
}

/// What a path names: two paths with the same identity are the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    /// Device number of the file system.
    device: u64,
    inode: u64,
    /// Name in the directory; `None` for a path that exists.
    name: Option<OsString>,
}

impl Identity {
    fn read(path: &Path) -> Option<Self> {
        if let Ok(facts) = fs::metadata(path) {
            return Some(Self { device: facts.dev(), inode: facts.ino(), name: None });
        }
        let facts = fs::metadata(parent(path)).ok()?;
        Some(Self { device: facts.dev(), inode: facts.ino(), name: path.file_name().map(OsStr::to_owned) })
    }
}

impl Named {
    /// Whether the path is now on another file system than when it was found.
    pub fn is_on_another_file_system(&self) -> bool {
        file_system(&self.path).is_some_and(|now| Some(now) != self.file_system)
    }

    /// Returns the topmost device that stores the path; `None` without a visible device.
    pub fn device(&self) -> Option<String> {
        let place = self.place.as_ref().ok()?;
        Some(place.layers.get(*place.tops.first()?)?.name.clone())
    }

    /// Returns why the path is in memory; `None` for storage.
    pub fn memory(&self) -> Option<String> {
        self.place.as_ref().ok()?.ram.clone()
    }

    /// Reads the time of the last change; `None` if it would not tell whether the path changes from now on.
    pub fn last_change(&self) -> Option<LastChange> {
        let kind = &self.place.as_ref().ok()?.file_system.as_ref()?.kind;
        WITH_CHANGE_TIME.contains(&kind.as_str()).then(|| LastChange::read(&self.path)).flatten()
    }

    /// Whether the pages of the path are its only storage, as on tmpfs. A file system on a device in memory has a page
    /// cache of its own.
    pub fn has_only_pages(&self) -> bool {
        self.place.as_ref().is_ok_and(|place| place.ram.is_some() && place.layers.is_empty())
    }

    /// Returns why a device below the path is not visible; `None` for a path in memory, or if all
    /// devices are visible.
    pub fn hidden_device_reason(&self) -> Option<String> {
        match &self.place {
            Ok(place) if place.ram.is_some() => None,
            Ok(place) if place.layers.is_empty() => Some(
                place
                    .unresolved_reason
                    .clone()
                    .unwrap_or_else(|| "no block device is visible below the file".into()),
            ),
            Ok(place) => place.unresolved_reason.clone(),
            Err(why) => Some(why.clone()),
        }
    }
}

/// Returns the device number of the file system of a directory, or of the directory of any other path. On overlays, files
/// may have other device numbers than their directory.
fn file_system(path: &Path) -> Option<u64> {
    let directory = if path.is_dir() { path } else { parent(path) };
    fs::metadata(directory).ok().map(|facts| facts.dev())
}

/// Finds the paths among the arguments of a command, each once. `places` has the places resolved so far; the places of the
/// paths found are added.
pub fn find(root: &Root, args: &[String], places: &mut Vec<Place>) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for arg in args.iter().map(String::as_str) {
        // `if=PATH`, `--output=PATH`
        let value = arg.split_once('=').map(|(_, value)| value);
        for text in [Some(arg), value].into_iter().flatten() {
            let path = Path::new(text);
            if text.is_empty() || text.starts_with('-') {
                continue;
            }
            // Another spelling or a hard link of a file that is known already would count its pages twice.
            let Some(identity) = Identity::read(path) else { continue };
            if found.iter().any(|named| named.identity == identity) {
                continue;
            }
            let is_stored = fs::metadata(path).is_ok_and(|metadata| {
                metadata.is_file() || metadata.is_dir() || metadata.file_type().is_block_device()
            });
            let may_appear = !path.exists() && parent(path).is_dir();
            if is_stored || may_appear {
                let existing = if is_stored { path } else { parent(path) };
                let place = resolve::resolve_another(root, existing, places).map_err(|e| e.to_string());
                places.extend(place.clone());
                let file_system = file_system(path);
                found.push(Named { path: path.to_owned(), place, identity, file_system });
            }
        }
    }
    found
}

/// Returns the directory of a path; `.` for a file name alone.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the files at or below a path; none if nothing is there.
///
/// # Errors
/// The reason if the path or a directory cannot be read, or if there are more than `MAX_FILES` files.
pub fn files(path: &Path) -> Known<Vec<PathBuf>> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(format!("{}: {e}", path.display())),
        Ok(metadata) if !metadata.is_dir() => return Ok(vec![path.to_owned()]),
        Ok(_) => {}
    }
    let (mut out, mut dirs) = (Vec::new(), vec![path.to_owned()]);
    while let Some(dir) = dirs.pop() {
        let failed = |e: io::Error| format!("{}: {e}", dir.display());
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                out.push(entry.path());
            }
        }
        if out.len() as u64 > MAX_FILES {
            return Err(format!("{} holds more than {MAX_FILES} files", path.display()));
        }
    }
    Ok(out)
}

/// File systems whose change time grows with every write, and cannot be set. FAT shows the time of modification instead, which programs
/// can set; on network file systems the server decides.
const WITH_CHANGE_TIME: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Two writes within this time may leave the same change time: ext4 with inodes of 128 bytes keeps whole seconds.
const COARSEST_CHANGE_TIME: Duration = Duration::from_secs(2);

/// What changes with every write to a regular file, and with every first write to a mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastChange {
    inode: u64,
    bytes: u64,
    /// Seconds and ns.
    modified: [i64; 2],
    /// Seconds and ns; changes also if a program sets the time of modification.
    changed: [i64; 2],
}

impl LastChange {
    /// Reads the times of a path. `None` if it is no regular file, or changed so recently that another write may leave the same time.
    fn read(path: &Path) -> Option<Self> {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let changed = Duration::new(facts.ctime().try_into().ok()?, facts.ctime_nsec().try_into().ok()?);
        let age = (UNIX_EPOCH + changed).elapsed().ok()?;
        (age > COARSEST_CHANGE_TIME).then(|| Self {
            inode: facts.ino(),
            bytes: facts.len(),
            modified: [facts.mtime(), facts.mtime_nsec()],
            changed: [facts.ctime(), facts.ctime_nsec()],
        })
    }
}

/// Returns the bytes of all files below a directory that have no storage: holes, and what compression saves. Opens no file.
/// `None` if the directory cannot be read.
pub fn sparse_bytes_below(directory: &Path) -> Option<u64> {
    let bytes_of = |file: &PathBuf| {
        let facts = fs::symlink_metadata(file).ok()?;
        Some(facts.len().saturating_sub(facts.blocks().saturating_mul(SECTOR_BYTES)))
    };
    files(directory).ok()?.iter().try_fold(0_u64, |sum, file| Some(sum.saturating_add(bytes_of(file)?)))
}

/// Adds up all files at or below a path. `with_extents` also maps the ranges that were never written. That
/// may write dirty pages back, so do not use it directly after a run. `in_memory` is set for a file system in memory, whose
/// pages need not be counted: all are in memory, and none waits to be written.
///
/// # Errors
///
/// Why a file or directory cannot be read, or that there are too many files: a sum without these would be too small.
pub fn state(path: &Path, with_extents: bool, in_memory: bool) -> Known<FilesState> {
    let start = FilesState {
        unwritten_bytes: with_extents.then_some(0),
        cached_bytes: Some(0),
        dirty_bytes: Some(0),
        ..FilesState::default()
    };
    files(path)?.iter().try_fold(start, |sum, file| add(sum, file, with_extents, in_memory))
}

fn add(sum: FilesState, path: &Path, with_extents: bool, in_memory: bool) -> Known<FilesState> {
    let file = open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let metadata = file.metadata().map_err(|e| format!("{}: {e}", path.display()))?;
    let is_file = metadata.is_file();
    let bytes = if is_file { metadata.len() } else { sys::ioctl::device_bytes(&file).unwrap_or(0) };
    let allocated = metadata.blocks().saturating_mul(SECTOR_BYTES);
    // Counting takes 15 ms for each GiB of cached pages.
    let (cached, dirty) = if in_memory {
        (Some(allocated.min(bytes)), Some(0))
    } else {
        let pages = page_cache::count_cached_pages(&file).ok();
        let in_bytes = |count: u64| pages.map_or(0, |pages| count.saturating_mul(pages.page_bytes));
        (pages.map(|pages| in_bytes(pages.cached)), pages.and_then(|pages| pages.dirty).map(in_bytes))
    };
    let add_known = |sum: Option<u64>, part: Option<u64>| Some(sum?.saturating_add(part?));
    let unwritten = if is_file && with_extents {
        extents::map_file_extents(&file).ok().map(|extents| extents.unwritten_bytes)
    } else {
        Some(0)
    };
    Ok(FilesState {
        files: sum.files + 1,
        bytes: sum.bytes.saturating_add(bytes),
        hole_bytes: sum.hole_bytes.saturating_add(if is_file {
            hole_bytes(&file, bytes, allocated, file_systems::allocates_compressed(&file))
        } else {
            0
        }),
        unwritten_bytes: add_known(sum.unwritten_bytes, unwritten),
        cached_bytes: add_known(sum.cached_bytes, cached),
        dirty_bytes: add_known(sum.dirty_bytes, dirty),
    })
}

/// Returns the bytes of a file that are in holes: `bytes - allocated`. With `allocates_compressed` this difference includes what
/// compression saves, so the result is at most the size of the holes that the file system reports. Other file systems are not asked,
/// because they may report a hole as data.
fn hole_bytes(file: &File, bytes: u64, allocated: u64, allocates_compressed: bool) -> u64 {
    let missing = bytes.saturating_sub(allocated);
    if !allocates_compressed {
        return missing;
    }
    let (mut at, mut holes) = (0, 0_u64);
    while at < bytes && holes < missing {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // No data follows.
            Err(Errno::NXIO) => bytes,
            Err(_) => return missing,
        };
        holes = holes.saturating_add(data - at);
        at = if data < bytes { seek(file, SeekFrom::Hole(data)).unwrap_or(bytes) } else { bytes };
    }
    holes.min(missing)
}

/// Opens a file for reading, without updating its access time if the kernel allows that. Does not block on a
/// FIFO.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = |noatime: i32| rustix::fs::OFlags::NONBLOCK.bits() as i32 | noatime;
    let with = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path);
    let noatime = rustix::fs::OFlags::NOATIME.bits() as i32;
    with(flags(noatime)).or_else(|_| with(flags(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_paths_and_creatable_ones_are_found() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let there = dir.path().join("there");
        fs::write(&there, [1; 5000])?;
        let there = there.display().to_string();
        let new = dir.path().join("new").display().to_string();
        let args = [
            format!("if={there}"),
            format!("of={new}"),
            "bs=1M".into(),
            "-n".into(),
            there.clone(),
            "/nowhere/x".into(),
        ];
        let mut places = Vec::new();
        let found = find(&Root::real(), &args, &mut places);
        let is_known = |place: &Place| found.iter().any(|named| named.place.as_ref() == Ok(place));
        assert!(places.iter().all(is_known) && places.len() == found.len(), "{places:?}");
        // The second path is in the same file system, so its layers were not read again.
        let resolved = resolve::resolve(&Root::real(), dir.path()).map(|place| (place.layers, place.tops));
        assert_eq!(resolved.ok(), places.last().map(|place| (place.layers.clone(), place.tops.clone())));
        let paths: Vec<String> = found.iter().map(|named| named.path.display().to_string()).collect();
        // The value of `bs=1M` may be a file that the command creates, so it is listed too.
        assert!(paths.contains(&there) && paths.contains(&new), "{paths:?}");
        assert!(!paths.iter().any(|path| path == "/nowhere/x" || path == "-n"), "{paths:?}");
        assert_eq!(paths.iter().filter(|path| **path == there).count(), 1);
        assert!(found.iter().all(|named| !named.is_on_another_file_system()));
        // A hard link and other spellings of a file and of a path that does not exist yet.
        let link = dir.path().join("link");
        fs::hard_link(&there, &link)?;
        let spelt = |name: &str| dir.path().join(".").join(name).display().to_string();
        let args = [there, link.display().to_string(), spelt("there"), new, spelt("new")];
        assert_eq!(find(&Root::real(), &args, &mut Vec::new()).len(), 2);
        Ok(())
    }

    #[test]
    fn a_directory_adds_up_its_files() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir(dir.path().join("below"))?;
        fs::write(dir.path().join("a"), vec![1; 8192])?;
        let sparse = File::create(dir.path().join("below/b"))?;
        sparse.set_len(1 << 20)?;
        let state = state(dir.path(), true, false).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((state.files, state.bytes), (2, 8192 + (1 << 20)));
        let in_memory = super::state(&dir.path().join("a"), false, true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((in_memory.cached_bytes, in_memory.dirty_bytes), (Some(8192), Some(0)));
        let file = dir.path().join("a");
        assert_eq!(LastChange::read(&file), None, "the next write may leave the same time");
        std::thread::sleep(COARSEST_CHANGE_TIME + Duration::from_millis(20));
        let before = LastChange::read(&file);
        assert!(before.is_some());
        assert_eq!((LastChange::read(&file), LastChange::read(dir.path())), (before, None));
        fs::write(&file, vec![2; 8192])?;
        assert_ne!(LastChange::read(&file), before);
        assert_eq!(state.hole_bytes, 1 << 20);
        assert_eq!(sparse_bytes_below(dir.path()), Some(1 << 20));
        // A compressed file has all its data in fewer allocated bytes; a sparse one has a hole.
        let dense = File::open(dir.path().join("a"))?;
        assert_eq!(
            (hole_bytes(&dense, 8192, 512, true), hole_bytes(&sparse, 1 << 20, 0, true)),
            (0, 1 << 20)
        );
        assert_eq!(hole_bytes(&sparse, 1 << 20, (1 << 20) - 512, true), 512);
        // A file system that does not report holes, such as NFS 3, reports a sparse file as data.
        assert_eq!(hole_bytes(&dense, 8192, 512, false), 7680);
        assert!(state.cached_bytes.is_none_or(|cached| cached >= 8192), "{state:?}");
        assert_eq!(super::state(&dir.path().join("none"), false, false).map(|state| state.files), Ok(0));
        let endless = dir.path().join("endless");
        std::os::unix::fs::symlink(&endless, &endless)?;
        assert!(files(&endless).is_err_and(|why| why.contains("endless")));
        Ok(())
    }
}
