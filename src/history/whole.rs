//! Files that are there whole or not at all, whenever the machine stops.
//!
//! For: small files and copies in the history's own directory. Not for: session files that are being measured, which grow.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Names of files that do not have their own yet.
const NAMELESS: (&str, &str) = (".fathom-", ".new");
/// What has no name of its own after this time was left by a fathom that was killed.
const LEFT_AFTER: Duration = Duration::from_secs(3600);

/// Makes a file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] where there is one of that name, or why it cannot be made.
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = directory(path);
    clear(dir);
    nameless(dir, bytes)?.persist_noclobber(path).map_err(|e| e.error)?;
    sync(dir)
}

/// Makes a file, in the place of the one that has its name.
///
/// # Errors
/// Why it cannot be made; then the old one is as it was.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = directory(path);
    nameless(dir, bytes)?.persist(path).map_err(|e| e.error)?;
    sync(dir)
}

/// The directory that a file is in.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

fn nameless(dir: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(NAMELESS.0).suffix(NAMELESS.1).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// A new name is stable only with its directory.
fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes what killed processes of ours left here. What cannot be removed disturbs nobody.
fn clear(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        if name.starts_with(NAMELESS.0)
            && name.ends_with(NAMELESS.1)
            && age.is_some_and(|age| age > LEFT_AFTER)
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[test]
fn a_file_is_made_once_and_replaced_whole() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a");
    create(&path, b"one")?;
    assert_eq!(create(&path, b"two").map_err(|e| e.kind()), Err(io::ErrorKind::AlreadyExists));
    assert_eq!(std::fs::read(&path)?, b"one");
    replace(&path, b"three")?;
    assert_eq!(std::fs::read(&path)?, b"three");
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
    Ok(())
}

#[test]
fn what_killed_processes_left_goes_with_the_next_file_and_what_is_new_stays() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let [old, new, other] = [".fathom-a.new", ".fathom-b.new", "c.new"].map(|n| dir.path().join(n));
    for path in [&old, &new, &other] {
        let long_ago = std::time::SystemTime::now() - 2 * LEFT_AFTER;
        let file = File::create(path)?;
        if *path != new {
            file.set_modified(long_ago)?;
        }
    }
    create(&dir.path().join("a"), b"")?;
    assert_eq!([old, new, other].map(|p| p.exists()), [false, true, true]);
    Ok(())
}
