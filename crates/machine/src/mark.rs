//! The mark of a file that fathom made: it lets the next call write the file again without `--destroy`.
//!
//! The mark is an extended attribute. A file is fathom's only while it holds exactly what fathom wrote:
//!
//! 1. Before the first byte the mark is set to "being written", with the process id, its start time, its PID namespace and the boot id.
//!    Only that process accepts this mark.
//! 2. At the end the mark is completed with the inode, the length and both times (mtime and ctime) of the file. The next call compares
//!    them with the kernel's present values, so any other write invalidates the mark. A write through another name, a truncation and a
//!    restored mtime change the ctime; a copy has another inode. A foreign write while fathom writes does not show in the times. The
//!    kernel reports such a write ([`sys::file_use`]), and then the mark is not completed. Before Linux 5.13 without privileges, and in
//!    containers that deny fanotify, the kernel reports nothing. Then only two signs of a foreign write remain: a descriptor that is still
//!    open at the end, and a file that is longer than what fathom wrote.
//! 3. A process that was killed or that saw a foreign write leaves "being written". No later process accepts that mark, so the file needs
//!    `--destroy` like any other.
//!
//! Setting an attribute itself changes the ctime. The kernel takes the new ctime from its coarse clock. So the mark is completed with the
//! present value of that clock, and once more at the next tick if the ctime differs.
//!
//! Files get no mark if their file system does not show every change in these times, see [`crate::file_systems`].

use crate::in_use::Use;
use crate::processes::read_stat;
use crate::root::Root;
use crate::{file_systems, in_use};
use rustix::fs::{OFlags, XattrFlags, fgetxattr, fremovexattr, fsetxattr};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};
use sys::file_use::WriteWatch;

/// Name of the extended attribute.
const MARK: &str = "user.fathom.kept";

/// Size in bytes of a buffer that is longer than any mark.
const MARK_BYTES: usize = 256;

/// How marks begin: the format version, then the state.
const WRITING: &str = "2 writing";

const COMPLETE: &str = "2 complete";

/// Time limit for completing a mark. One tick of the kernel's clock is enough on a quiet machine.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause between two readings of the clock.
const CLOCK_PAUSE: Duration = Duration::from_micros(200);

/// The state of a file, according to its mark.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Fathom made the file, and it still holds exactly what fathom wrote.
    Ours,
    /// Fathom made the file, but for this reason it may hold other data now.
    Void(String),
    /// The file has no mark or another file's mark, or its file system does not show every change.
    Unmarked,
}

/// Returns whether a path leads to a file of fathom's that still holds exactly what fathom wrote.
pub fn is_ours(path: &Path) -> bool {
    open(path).is_ok_and(|file| holds_our_data(&file))
}

/// Returns whether an open file is fathom's and still holds exactly what fathom wrote.
pub(crate) fn holds_our_data(file: &File) -> bool {
    state(file) == State::Ours
}

/// Returns whether fathom may write an existing file again: the file must be fathom's own, or
/// empty. False if there is no file.
pub fn may_be_made(path: &Path) -> bool {
    open(path).is_ok_and(|file| holds_our_data(&file) || is_empty(&file).unwrap_or(false))
}

/// Returns why a file that fathom made is no longer fathom's; `None` if the file still is, or if fathom never made it.
pub fn void_because(path: &Path) -> Option<String> {
    match state(&open(path).ok()?) {
        State::Void(why) => Some(why),
        State::Ours | State::Unmarked => None,
    }
}

/// Returns whether an open regular file is empty. Reads from it, because some file systems report the length
/// 0 for files with content.
///
/// # Errors
///
/// Why the file cannot be read.
pub fn is_empty(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.is_file() && file.read_at(&mut [0], 0)? == 0)
}

/// Opens a regular file for reading. Refuses symbolic links.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn state(file: &File) -> State {
    let mut bytes = [0; MARK_BYTES];
    let Ok(length) = fgetxattr(file, MARK, &mut bytes) else { return State::Unmarked };
    let mark = String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned();
    let Ok(metadata) = file.metadata() else { return State::Unmarked };
    if !file_systems::shows_every_change(file) {
        return State::Unmarked;
    }
    if mark == complete(&metadata, metadata.ctime(), metadata.ctime_nsec()) {
        return State::Ours;
    }
    let inode = metadata.ino();
    if let Some(writer) = mark.strip_prefix(&format!("{WRITING} {inode} ")) {
        let root = Root::real();
        if process_identity(&root, std::process::id()).is_some_and(|own| own == writer) {
            return State::Ours;
        }
        let pid = writer.split(' ').next().unwrap_or_default();
        let lives =
            pid.parse().is_ok_and(|pid| process_identity(&root, pid).is_some_and(|now| now == writer));
        return State::Void(if lives {
            format!("fathom (process {pid}) is writing this file")
        } else {
            format!(
                "fathom made this file, but process {pid} has not marked it as complete, probably because the process was killed or because another program used the file; the file may hold other data"
            )
        });
    }
    if mark.starts_with(&format!("{COMPLETE} {inode} ")) {
        return State::Void("fathom made this file, but something else has written it since, renamed it or changed its attributes".into());
    }
    // The first version of the mark has no ctime, so it does not detect a write whose mtime was restored.
    let inode = inode.to_string();
    if mark.strip_prefix("copy ").unwrap_or(&mark).split(' ').next() == Some(inode.as_str()) {
        return State::Void(
            "an older version of fathom made this file, and its mark does not show whether something else has written the file since"
                .into(),
        );
    }
    State::Unmarked
}

/// Formats the mark of a complete file with this `ctime`.
fn complete(metadata: &Metadata, ctime: i64, ctime_nsec: i64) -> String {
    format!(
        "{COMPLETE} {} {} {}.{:09} {ctime}.{ctime_nsec:09}",
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec()
    )
}

/// Identifies a process uniquely: its id, start time, PID namespace and boot. `None` if one of them cannot be read.
fn process_identity(root: &Root, pid: u32) -> Option<String> {
    let began = read_stat(root, &format!("/proc/{pid}"))?.start_tick;
    let space = std::fs::read_link(root.path(&format!("/proc/{pid}/ns/pid"))).ok()?;
    let boot = root.word("/proc/sys/kernel/random/boot_id")?;
    Some(format!("{pid} {began} {} {boot}", space.display()))
}

/// A file of fathom's that is being written. Dropping this value completes the mark.
#[derive(Debug)]
pub struct Writing {
    /// The file, open for reading only: a descriptor for writing would count as another user.
    file: File,
    /// The largest length in bytes that fathom's writes give the file; `u64::MAX` until [`Writing::set_max_bytes`] sets it.
    max_bytes: u64,
    /// Reports writes of other processes; `None` if the kernel cannot.
    foreign_writes: Option<WriteWatch>,
}

impl Writing {
    /// Marks a file as being written, before the first byte. `None` if the file is not fathom's, or gets no
    /// mark.
    pub fn begin(path: &Path) -> Option<Self> {
        let file = open(path).ok()?;
        if holds_our_data(&file) { Self::mark(file) } else { None }
    }

    /// Marks the open file at a path as being written, if the file is fathom's or empty. `None` for other files, and for files that can
    /// have no mark.
    pub fn begin_on(path: &Path, opened: &File) -> Option<Self> {
        let file = open(path).ok()?;
        let (metadata, same) = (file.metadata().ok()?, opened.metadata().ok()?);
        let is_same_file = (metadata.dev(), metadata.ino()) == (same.dev(), same.ino());
        if is_same_file && (holds_our_data(&file) || is_empty(&file).unwrap_or(false)) {
            Self::mark(file)
        } else {
            None
        }
    }

    fn mark(file: File) -> Option<Self> {
        if !file_systems::shows_every_change(&file) {
            return None;
        }
        let inode = file.metadata().ok()?.ino();
        let own = process_identity(&Root::real(), std::process::id())?;
        let foreign_writes = WriteWatch::begin(&file).ok();
        set(&file, &format!("{WRITING} {inode} {own}")).then_some(Self {
            file,
            max_bytes: u64::MAX,
            foreign_writes,
        })
    }

    /// Sets the largest length that the file can get by fathom's writes: `planned_bytes`, or the present length if that is larger. If the
    /// file is longer at the end, another program wrote to it.
    pub fn set_max_bytes(&mut self, planned_bytes: u64) {
        self.max_bytes = self.file.metadata().map_or(u64::MAX, |metadata| metadata.len().max(planned_bytes));
    }

    /// Completes the mark. The mark stays "being written" if another process wrote to the file, has it open
    /// for writing, or changes it now.
    fn complete(&mut self) -> Option<()> {
        let before = self.file.metadata().ok()?;
        // A removed file needs no mark. Only the process that set the mark completes it.
        if before.nlink() == 0 || before.len() > self.max_bytes || !holds_our_data(&self.file) {
            return None;
        }
        if matches!(in_use::writer_of_file(&Root::real(), &self.file), Use::By(_)) {
            return None;
        }
        if self.foreign_writes.take().is_some_and(|watch| watch.others_wrote().unwrap_or(true)) {
            return None;
        }
        let written = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let mut now = self.file.metadata().ok()?;
        let begun = Instant::now();
        while begun.elapsed() < COMPLETION_TIMEOUT && written(&now) == written(&before) {
            let tick = clock_gettime(ClockId::RealtimeCoarse);
            let time = (tick.tv_sec, tick.tv_nsec);
            // From the next tick on, every change gets a later time.
            if time > (now.ctime(), now.ctime_nsec()) && time > (now.mtime(), now.mtime_nsec()) {
                set(&self.file, &complete(&before, tick.tv_sec, tick.tv_nsec));
                now = self.file.metadata().ok()?;
                if holds_our_data(&self.file) {
                    return Some(());
                }
            }
            std::thread::sleep(CLOCK_PAUSE);
        }
        if written(&now) == written(&before) {
            // The times of this file system are too coarse for a mark, so remove it.
            let _ = fremovexattr(&self.file, MARK);
        }
        None
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.complete();
    }
}

/// Sets the mark. Returns false if this fails; then the file needs `--destroy` the next time.
fn set(file: &File, mark: &str) -> bool {
    fsetxattr(file, MARK, mark.as_bytes(), XattrFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Makes a file of fathom's with 8 KiB of data. Returns `None` if files in its directory get no
    /// marks.
    fn made(path: &Path) -> io::Result<Option<()>> {
        let mut file = File::create_new(path)?;
        let Some(writing) = Writing::begin_on(path, &file) else {
            eprintln!("skipped: no marks in {}", path.display());
            return Ok(None);
        };
        assert!(is_ours(path), "its writer is alive");
        file.write_all(&[7; 8192])?;
        drop(file);
        drop(writing);
        assert!(is_ours(path), "{:?}", void_because(path));
        Ok(Some(()))
    }

    fn shell(line: &str, dir: &Path) {
        let done = Command::new("sh").args(["-c", line]).current_dir(dir).status();
        assert!(done.is_ok_and(|status| status.success()), "{line}");
    }

    #[test]
    fn any_other_write_invalidates_the_mark_even_with_the_old_length_and_time() -> io::Result<()> {
        for change in [
            "printf x | dd of=a bs=1 seek=9 conv=notrunc status=none",
            // Length and mtime are the same as before.
            "touch -r a time; printf x | dd of=a bs=1 seek=9 conv=notrunc status=none; touch -r time a",
            "touch -r a time; truncate -s 1 a; truncate -s 8192 a; touch -r time a",
            "touch -r a time; fallocate -p -o 0 -l 4096 a; touch -r time a",
            "touch -r a time; ln a b; printf x | dd of=b bs=1 conv=notrunc status=none; rm b; touch -r time a",
            "touch -r a time; python3 -c \"import mmap; f = open('a', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0], m[5] = m[1], 1\"; \
             touch -r time a",
            "cp a b; cat b > a",
        ] {
            let dir = tempfile::tempdir()?;
            let path = dir.path().join("a");
            if made(&path)?.is_none() {
                return Ok(());
            }
            shell(change, dir.path());
            assert!(!is_ours(&path) && Writing::begin(&path).is_none(), "{change}");
            let why = void_because(&path).unwrap_or_default();
            assert!(why.contains("something else has written it since"), "{change}: {why}");
        }
        Ok(())
    }

    #[test]
    fn a_copy_with_all_attributes_and_a_restored_backup_are_not_fathoms() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a");
        if made(&path)?.is_none() {
            return Ok(());
        }
        shell(
            "cp -a --preserve=all a b; tar --xattrs --xattrs-include='*' -cf t a; mkdir c; tar --xattrs --xattrs-include='*' -xf t -C c",
            dir.path(),
        );
        for copy in ["b", "c/a"].map(|name| dir.path().join(name)) {
            assert!(!is_ours(&copy), "{}", copy.display());
        }
        assert!(is_ours(&path), "reading changes nothing");
        // Unpack a backup over the file.
        shell("tar --xattrs --xattrs-include='*' --overwrite -xf t", dir.path());
        assert!(!is_ours(&path));
        Ok(())
    }

    #[test]
    fn a_mark_of_a_killed_or_foreign_writer_counts_for_no_process() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a");
        if made(&path)?.is_none() {
            return Ok(());
        }
        let (root, file) = (Root::real(), File::open(&path)?);
        let inode = file.metadata()?.ino();
        let own = process_identity(&root, std::process::id()).ok_or(io::ErrorKind::NotFound)?;
        let mut parts: Vec<&str> = own.split(' ').collect();
        let mut sleeper = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn()?;
        let other = process_identity(&root, sleeper.id()).ok_or(io::ErrorKind::NotFound)?;
        let check = |writer: &str, word: &str| {
            assert!(set(&file, &format!("{WRITING} {inode} {writer}")));
            let why = void_because(&path).unwrap_or_default();
            assert!(!is_ours(&path) && why.contains(word), "{writer}: {why}");
        };
        check(&other, "is writing this file");
        sleeper.kill()?;
        sleeper.wait()?;
        check(&other, "has not marked it as complete");
        // The process has the same id, but another start time, PID namespace or boot.
        for at in 1..parts.len() {
            let right = std::mem::replace(&mut parts[at], "0");
            check(&parts.join(" "), "has not marked it as complete");
            parts[at] = right;
        }
        assert!(set(&file, &format!("{WRITING} {inode} {own}")) && is_ours(&path));
        assert!(set(&file, &format!("{WRITING} {} {own}", inode + 1)) && !is_ours(&path), "another inode");
        let metadata = file.metadata()?;
        for older in [
            inode.to_string(),
            format!("{inode} {} {}.{:09}", metadata.len(), metadata.mtime(), metadata.mtime_nsec()),
        ] {
            assert!(set(&file, &older) && !is_ours(&path));
            assert!(
                void_because(&path).is_some_and(|why| why.contains("an older version of fathom")),
                "{older}"
            );
        }
        Ok(())
    }

    #[test]
    fn a_mark_is_not_completed_if_another_process_can_write_or_wrote() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a");
        if made(&path)?.is_none() {
            return Ok(());
        }
        let writing = Writing::begin(&path).ok_or(io::ErrorKind::NotFound)?;
        let mut other = Command::new("sh")
            .args(["-c", "exec 9>>a; echo; exec sleep 60"])
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(out) = &mut other.stdout {
            io::Read::read_exact(out, &mut [0])?;
        }
        drop(writing);
        assert!(is_ours(&path), "its writer, this process, is alive");
        let root = Root::real();
        let own = process_identity(&root, std::process::id()).ok_or(io::ErrorKind::NotFound)?;
        let mark = format!("{WRITING} {} {own}", path.metadata()?.ino());
        let mut bytes = [0; MARK_BYTES];
        let length = fgetxattr(File::open(&path)?, MARK, &mut bytes)?;
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), mark, "it stays as it was while written");
        other.kill()?;
        other.wait()?;
        // Another program appended bytes beyond fathom's greatest length.
        let mut writing = Writing::begin(&path).ok_or(io::ErrorKind::NotFound)?;
        writing.set_max_bytes(4096);
        File::options().append(true).open(&path)?.write_all(b"x")?;
        drop(writing);
        let length = fgetxattr(File::open(&path)?, MARK, &mut bytes)?;
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), mark);
        // Another program wrote within the length, restored the mtime and closed the file.
        if let Err(e) = WriteWatch::begin(&File::open(&path)?) {
            eprintln!("skipped: no fanotify here: {e}");
            return Ok(());
        }
        let writing = Writing::begin(&path).ok_or(io::ErrorKind::NotFound)?;
        let change =
            "touch -r a time; printf x | dd of=a bs=1 seek=9 conv=notrunc status=none; touch -r time a";
        shell(change, dir.path());
        drop(writing);
        let length = fgetxattr(File::open(&path)?, MARK, &mut bytes)?;
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), mark);
        // Reading the file does not invalidate its mark.
        let writing = Writing::begin(&path).ok_or(io::ErrorKind::NotFound)?;
        shell("cat a > /dev/null", dir.path());
        drop(writing);
        let length = fgetxattr(File::open(&path)?, MARK, &mut bytes)?;
        assert_ne!(String::from_utf8_lossy(&bytes[..length]), mark);
        Ok(())
    }

    #[test]
    fn a_file_is_empty_if_reading_it_gives_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a");
        std::fs::write(&path, "")?;
        assert!(may_be_made(&path) && is_empty(&File::open(&path)?)?);
        std::fs::write(&path, "x")?;
        assert!(!may_be_made(&path));
        // The kernel reports the length 0 for these files.
        let version = File::open("/proc/version")?;
        assert!(version.metadata()?.len() == 0 && !is_empty(&version)?);
        assert!(!may_be_made(Path::new("/proc/version")) && !may_be_made(dir.path()));
        Ok(())
    }

    #[test]
    fn a_file_on_tmpfs_gets_no_mark_since_a_write_through_a_mapping_does_not_show_there() {
        let Ok(file) = tempfile::NamedTempFile::new_in("/dev/shm") else { return };
        let is_tmpfs =
            rustix::fs::fstatfs(file.as_file()).is_ok_and(|metadata| metadata.f_type == 0x0102_1994);
        let writing = Writing::begin_on(file.path(), file.as_file());
        assert!(writing.is_none() || !is_tmpfs);
    }
}
