//! User files: reads them whole with a size limit, and writes them atomically.
//!
//! An atomic write makes a file with a hidden temporary name in the same directory, syncs it,
//! renames it, and syncs the directory. Other processes see either the old file or the new one, and
//! so does the user after a crash. [`output`] decides which files may be written.

pub mod output;

pub use machine::named_files::parent;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use sys::open_file::{kind, open};
use tempfile::NamedTempFile;

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and if the file is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {}", model::units::show_bytes(most))));
    }
    Ok(bytes)
}

/// Returns whether a file begins with these bytes; false for an unreadable file.
pub fn begins_with(path: &Path, start: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(start.len() as u64).read_to_end(&mut bytes));
    read.is_ok() && bytes == start
}

/// The result of reading a path that may be a small file.
pub enum Small {
    /// A small file with these bytes.
    Read(Vec<u8>),
    /// A larger regular file. It was not read, because fathom may be about to measure it.
    Large,
    /// A directory, a device or another special file.
    NotRegular,
    /// The path does not exist, or cannot be read.
    Unreadable,
}

/// Reads a regular file of at most `most` bytes. Does not read a larger one.
pub fn read_if_small(path: &Path, most: u64) -> Small {
    match std::fs::metadata(path) {
        Err(_) => Small::Unreadable,
        Ok(facts) if !facts.is_file() => Small::NotRegular,
        Ok(facts) if facts.len() > most => Small::Large,
        Ok(_) => read(path, most).map_or(Small::Unreadable, Small::Read),
    }
}

/// Reads the text of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`read`], and for invalid UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// Prefix of temporary names.
const PREFIX: &str = ".fathom-";
/// Suffix of temporary names.
const SUFFIX: &str = ".new";
/// A temporary file that was not changed for this long belongs to a killed process.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// The users who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Only its owner.
    Owner,
    /// The users that the umask allows.
    Umask,
}

/// Creates a file atomically.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if there is a file at this path; otherwise why the file cannot be written.
pub fn create(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let dir = parent(path);
    remove_stale(dir);
    write_temporary(dir, bytes, readers)?.persist_noclobber(path).map_err(|e| e.error)?;
    sync_directory(dir)
}

/// Replaces a file atomically. Only the owner may read the new file.
///
/// # Errors
/// Why the new file cannot be written. The old file is then unchanged, unless only the sync of the
/// directory failed.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = parent(path);
    write_temporary(dir, bytes, Readers::Owner)?.persist(path).map_err(|e| e.error)?;
    sync_directory(dir)
}

/// Replaces a file atomically. `was` is the metadata of the old file: the new file gets the old
/// mode, and the old owner if this process may set it. Without `was`, the file gets the mode and
/// the owner of any new file.
///
/// # Errors
///
/// Why the new file cannot be written. The old file is then unchanged.
pub fn replace_as(path: &Path, bytes: &[u8], was: Option<&Metadata>) -> io::Result<()> {
    let dir = parent(path);
    remove_stale(dir);
    let file = write_temporary(dir, bytes, Readers::Umask)?;
    inherit(file.as_file(), was)?;
    file.persist(path).map_err(|e| e.error)?;
    // The file has its name already, so a failure here loses nothing.
    let _ = sync_directory(dir);
    Ok(())
}

/// Gives a file the mode of an old file, and the owner of the old file if this process may set the owner.
fn inherit(file: &File, was: Option<&Metadata>) -> io::Result<()> {
    let Some(was) = was else { return Ok(()) };
    // Only privileged users may change the owner. Set the mode afterwards, because a change of owner clears mode bits.
    let _ = fchown(file, Some(was.uid()), Some(was.gid()));
    file.set_permissions(was.permissions())
}

/// A file that is written piece by piece, and replaces the old one when it is complete.
pub struct Growing {
    file: NamedTempFile,
    path: PathBuf,
}

impl Growing {
    /// Creates the file with a temporary name in the directory of `path`. Follows symbolic links.
    ///
    /// # Errors
    ///
    /// Why the file cannot be created.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let dir = parent(&path);
        remove_stale(dir);
        let was = path.metadata().ok();
        let file = write_temporary(dir, b"", Readers::Umask)?;
        inherit(file.as_file(), was.as_ref())?;
        Ok(Self { file, path })
    }

    /// Returns a descriptor to write to.
    ///
    /// # Errors
    /// Why the descriptor cannot be duplicated.
    pub fn file(&self) -> io::Result<File> {
        self.file.as_file().try_clone()
    }

    /// Syncs the file and gives it its final name.
    ///
    /// # Errors
    /// Why the file cannot get the name. The old file is then unchanged.
    pub fn finish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map_err(|e| e.error)?;
        let _ = sync_directory(parent(&self.path));
        Ok(())
    }
}

fn write_temporary(dir: &Path, bytes: &[u8], readers: Readers) -> io::Result<NamedTempFile> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::Umask => 0o666,
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX).permissions(Permissions::from_mode(mode));
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Syncs a directory, so that a new name in it survives a crash.
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes temporary files of killed processes. Ignores errors.
fn remove_stale(dir: &Path) {
    let is_temporary = |name: &std::ffi::OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
    };
    // Check only files with these names: another entry may be on a file system that never answers.
    for entry in
        std::fs::read_dir(dir).into_iter().flatten().flatten().filter(|e| is_temporary(&e.file_name()))
    {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > STALE_AFTER) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[test]
fn special_files_are_refused_without_blocking() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
    let socket = dir.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket)?;
    let why = |path: &Path| read(path, 10).map_or_else(|e| e.to_string(), |_| "read".into());
    let table = [
        (fifo.as_path(), "a FIFO"),
        (socket.as_path(), "a socket"),
        (dir.path(), "a directory"),
        (Path::new("/dev/zero"), "a character device"),
        (Path::new("/proc/self/maps"), "file of the kernel (proc)"),
    ];
    for (path, word) in table {
        assert!(why(path).contains(word), "{}", why(path));
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "0123456789")?;
    assert_eq!((read(&file, 10)?.len(), why(&file)), (10, "read".into()));
    std::fs::write(&file, "0123456789a")?;
    assert!(why(&file).contains("more than 10 B"), "{}", why(&file));
    Ok(())
}

#[test]
fn create_refuses_an_existing_file_and_replace_is_atomic() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a");
    create(&path, b"one", Readers::Owner)?;
    let second = create(&path, b"two", Readers::Umask);
    assert_eq!(second.map_err(|e| e.kind()), Err(io::ErrorKind::AlreadyExists));
    assert_eq!(std::fs::read(&path)?, b"one");
    replace(&path, b"three")?;
    assert_eq!(std::fs::read(&path)?, b"three");
    assert_eq!(path.metadata()?.mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, Permissions::from_mode(0o664))?;
    replace_as(&path, b"four", Some(&path.metadata()?))?;
    assert_eq!(
        (std::fs::read(&path)?.as_slice(), path.metadata()?.mode() & 0o777),
        (b"four".as_slice(), 0o664)
    );
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
    Ok(())
}

#[test]
fn a_growing_file_gets_its_name_only_when_complete() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let (path, link) = (dir.path().join("a"), dir.path().join("link"));
    std::fs::write(&path, "old")?;
    std::os::unix::fs::symlink("a", &link)?;
    let abandoned = Growing::begin(&link)?;
    abandoned.file()?.write_all(b"half")?;
    drop(abandoned);
    assert_eq!(std::fs::read(&path)?, b"old");
    std::fs::set_permissions(&path, Permissions::from_mode(0o640))?;
    // Only root may give files away; for others the owner remains the same.
    let _ = std::os::unix::fs::chown(&path, Some(1234), Some(1234));
    let was = path.metadata()?;
    let complete = Growing::begin(&link)?;
    complete.file()?.write_all(b"new")?;
    complete.finish()?;
    assert_eq!(std::fs::read(&path)?, b"new");
    let now = path.metadata()?;
    assert_eq!((now.mode(), now.uid(), now.gid()), (was.mode(), was.uid(), was.gid()));
    assert!(link.symlink_metadata()?.is_symlink());
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 2);
    Ok(())
}

#[test]
fn old_temporary_files_are_removed() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let [old, new, other] = [".fathom-a.new", ".fathom-b.new", "c.new"].map(|n| dir.path().join(n));
    for path in [&old, &new, &other] {
        let long_ago = std::time::SystemTime::now() - 2 * STALE_AFTER;
        let file = File::create(path)?;
        if *path != new {
            file.set_modified(long_ago)?;
        }
    }
    create(&dir.path().join("a"), b"", Readers::Owner)?;
    assert_eq!([old, new, other].map(|p| p.exists()), [false, true, true]);
    Ok(())
}
