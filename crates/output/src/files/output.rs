//! Output files: decides where a report may be written, and writes it.
//!
//! 1. [`Rules::decide`] checks each path before anything is measured.
//! 2. [`Outlet::write`] checks it again and writes. A stream (standard output, FIFO, terminal) gets the bytes directly; a
//!    regular file is replaced atomically.
//! 3. fathom never overwrites block devices, files that this call reads or measures
//!    ([`ProtectedPaths`]), sessions, the states of verifications, and files of the kernel. Without
//!    `--force` it overwrites only text and empty files.

use crate::failure::{Failure, cause};
use crate::session_directories::session_directories;
use crate::stdout::STDOUT;
use crate::{files, stderr, stdout, stream};
use machine::file_systems::identities;
use machine::root::Root;
use model::job::Data;
use model::machine::{Identity, Place};
use model::name::{self, shown};
use model::plan::{Plan, Role};
use model::record::MAGIC;
use model::verification::State;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, major, minor};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The path that names standard output.
const STANDARD_OUTPUT: &str = "-";
/// File descriptor of standard error.
const STDERR: i32 = 2;
/// Maximum number of symbolic links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;
/// How long to wait for the reader of a FIFO.
const FIFO_WAIT: Duration = Duration::from_secs(10);
/// Classes of character devices (`/sys/class`) that lead to storage or to the machine itself.
const PROTECTED_DEVICES: [&str; 8] =
    ["bsg", "mtd", "nvme", "nvme-generic", "nvme-subsystem", "raw", "scsi_generic", "watchdog"];
/// Major number of memory devices.
const MEMORY_MAJOR: u32 = 1;
/// Minor numbers of the memory devices that must not be written: `mem`, `kmem`, `port`.
const MEMORY_MINORS: [u32; 3] = [1, 2, 4];

/// The rules for the output files of one command.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The option that names the file, such as `-o`.
    pub flag: &'static str,
    /// Files that are never overwritten.
    pub protected: ProtectedPaths,
    /// Which content may be replaced.
    pub replace: Replace,
}

/// Which content an output file may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// Only text. The command has no `--force`.
    OnlyText,
    /// Only text, because the user did not type `--force`.
    TextUnlessForced,
    /// Anything, because the user typed `--force`.
    Anything,
}

impl Replace {
    /// Returns the rule for the flag `--force`.
    pub fn with_force(force: bool) -> Self {
        if force { Self::Anything } else { Self::TextUnlessForced }
    }
}

/// A place where a report may be written.
#[derive(Debug)]
pub struct Outlet {
    typed: PathBuf,
    destination: Destination,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// A descriptor that the caller of fathom opened.
    Descriptor(i32),
    /// A FIFO or a character device.
    Stream(PathBuf),
    /// A regular file, with links resolved. The file may not exist yet.
    File(PathBuf),
}

/// Decides whether and how several paths may be written. Also checks standard output and standard
/// error.
///
/// # Errors
/// As [`Rules::decide`]. Also if two of the paths lead to the same file, or if a path leads to the file of a redirected
/// standard stream.
pub fn decide_all(typed: &[PathBuf], rules: &Rules) -> Result<Vec<Outlet>, Failure> {
    let mut all: Vec<Outlet> = Vec::new();
    for path in typed {
        let outlet = rules.decide(path)?;
        if let Some(other) = all
            .iter()
            .find(|o| o.destination == outlet.destination && !matches!(o.destination, Destination::Stream(_)))
        {
            return Err(
                rules.usage(path, &format!("is the same file as {}; type another name", shown(&other.typed)))
            );
        }
        if let Some(stream) = outlet.redirected_stream() {
            return Err(rules.usage(
                path,
                &format!(
                    "is the file to which {stream} is redirected; type another name, or omit the redirection"
                ),
            ));
        }
        all.push(outlet);
    }
    // Check standard output and standard error too, because fathom prints to them.
    rules.descriptor(Path::new("/dev/stdout"), STDOUT)?;
    if let Err(why) = rules.descriptor(Path::new("/dev/stderr"), STDERR) {
        // Standard error is a block device or a protected file, so the error message must not go there.
        stderr::redirect();
        return Err(why);
    }
    Ok(all)
}

/// Returns whether a path is a stream. A stream needs no file name extension that selects a format.
pub fn is_stream(typed: &Path) -> bool {
    let streams = |facts: Metadata| facts.file_type().is_fifo() || facts.file_type().is_char_device();
    descriptor(typed).is_some() || typed.metadata().is_ok_and(streams)
}

/// Returns the file descriptor that a path names, such as 1 for `-`; `None` for the path of a file.
fn descriptor(typed: &Path) -> Option<i32> {
    match typed.to_str()? {
        STANDARD_OUTPUT | "/dev/stdout" => Some(STDOUT),
        "/dev/stderr" => Some(STDERR),
        other => {
            let number = other.strip_prefix("/dev/fd/").or_else(|| other.strip_prefix("/proc/self/fd/"))?;
            number.parse().ok().filter(|n| *n > 0)
        }
    }
}

impl Outlet {
    /// Returns the path as the user typed it.
    pub fn path_as_typed(&self) -> &Path {
        &self.typed
    }

    /// Whether the report goes to standard output.
    pub fn is_stdout(&self) -> bool {
        self.destination == Destination::Descriptor(STDOUT)
    }

    /// Names the standard stream that is redirected to this file; `None` if there is none.
    /// Replacing the file would lose the stream's output.
    fn redirected_stream(&self) -> Option<&'static str> {
        let Destination::File(path) = &self.destination else { return None };
        let inode = |facts: Metadata| (facts.dev(), facts.ino());
        let own = path.metadata().map(inode).ok()?;
        let streams = [(STDOUT, "standard output"), (STDERR, "standard error")];
        let found = streams.into_iter().find(|(number, _)| {
            sys::process::duplicate(*number)
                .and_then(|file| file.metadata())
                .is_ok_and(|facts| inode(facts) == own)
        });
        found.map(|(_, name)| name)
    }

    /// Checks the path again, then empties or creates a file that is written piece by piece. The file has its name from
    /// the beginning. If fathom is killed, the content so far remains.
    ///
    /// # Errors
    /// Why the file cannot be written, or that it is not a regular file.
    pub fn begin(&self, rules: &Rules) -> Result<File, Failure> {
        let path = self.file(rules)?;
        let begun = put(&path, b"", rules).and_then(|()| {
            let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
            let file = File::options().write(true).custom_flags(flags).open(&path)?;
            let facts = file.metadata()?;
            if facts.is_file() && facts.len() == 0 { Ok(file) } else { Err(changed()) }
        });
        begun.map_err(|e| rules.cannot(&self.typed, &e))
    }

    /// Checks the path again and returns the regular file to write.
    fn file(&self, rules: &Rules) -> Result<PathBuf, Failure> {
        match rules.decide(&self.typed)?.destination {
            Destination::File(path) => Ok(path),
            Destination::Descriptor(_) | Destination::Stream(_) => {
                Err(rules.usage(&self.typed, "is not a regular file; type the name of a file"))
            }
        }
    }

    /// Checks the path again and begins a file that is written piece by piece. The file has a temporary name until it is
    /// complete.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub fn grow(&self, rules: &Rules) -> Result<Growing<'_>, Failure> {
        let file = files::Growing::begin(&self.file(rules)?).map_err(|e| rules.cannot(&self.typed, &e))?;
        Ok(Growing { outlet: self, file })
    }

    /// Checks the path again, because the name may lead elsewhere by now, and writes the file. A
    /// closed pipe is not an error.
    ///
    /// # Errors
    ///
    /// Why the file cannot be written. A file that is replaced atomically is then unchanged. A stream, or a file that is
    /// overwritten in place, may have received some of the bytes.
    pub fn write(&self, bytes: &[u8], rules: &Rules) -> Result<(), Failure> {
        let written = match rules.decide(&self.typed)?.destination {
            Destination::Descriptor(STDOUT) => return stdout::print_bytes(bytes),
            Destination::Descriptor(number) => {
                sys::process::duplicate(number).and_then(|file| stream::write(&file, bytes))
            }
            Destination::Stream(path) => open_stream(&path).and_then(|file| stream::write(&file, bytes)),
            Destination::File(path) => put(&path, bytes, rules),
        };
        match written {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(rules.cannot(&self.typed, &e)),
            _ => Ok(()),
        }
    }
}

/// An output file that is still being written, under a temporary name.
pub struct Growing<'o> {
    outlet: &'o Outlet,
    file: files::Growing,
}

impl Growing<'_> {
    /// Returns a descriptor to write to.
    ///
    /// # Errors
    /// Why the descriptor cannot be duplicated.
    pub fn file(&self) -> io::Result<File> {
        self.file.file()
    }

    /// Checks the path again and gives the file its name.
    ///
    /// # Errors
    /// Why the rules forbid the file, or why it cannot get its name. The old file is then unchanged.
    pub fn finish(self, rules: &Rules) -> Result<(), Failure> {
        let typed = &self.outlet.typed;
        if rules.decide(typed)?.destination != self.outlet.destination {
            return Err(rules.cannot(typed, &changed()));
        }
        self.file.finish().map_err(|e| rules.cannot(typed, &e))
    }
}

impl Rules {
    /// Decides whether and how a path may be written.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the path is of a kind that fathom never writes to, if it has content that fathom does not
    /// replace, or if its directory does not exist. [`Failure::Refused`] if this user cannot write there, as in
    /// `/proc`, or if a file that `--force` would replace may be in use.
    pub fn decide(&self, typed: &Path) -> Result<Outlet, Failure> {
        let outlet = |destination| Outlet { typed: typed.to_owned(), destination };
        if let Some(number) = descriptor(typed) {
            return self.descriptor(typed, number).map(outlet);
        }
        let path = resolve_links(typed).map_err(|e| self.cannot(typed, &e))?;
        let facts = match path.metadata() {
            Ok(facts) => facts,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return self.room_for(typed, &path).map(|()| outlet(Destination::File(path)));
            }
            Err(e) => return Err(self.cannot(typed, &e)),
        };
        let kind = facts.file_type();
        if kind.is_fifo() {
            return Ok(outlet(Destination::Stream(path)));
        }
        if kind.is_char_device() {
            return match describe_protected_device(&facts) {
                Some(what) => Err(self.usage(
                    typed,
                    &format!("is a device ({what}), which fathom never writes to; type a file"),
                )),
                None => Ok(outlet(Destination::Stream(path))),
            };
        }
        if !kind.is_file() {
            return Err(
                self.usage(typed, &format!("is {}, not a file; type the name of a file", files::kind(kind)))
            );
        }
        self.replaceable(typed, &path)?;
        Ok(outlet(Destination::File(path)))
    }

    /// Accepts a descriptor that the caller of fathom opened, unless it is a disk or a protected file.
    fn descriptor(&self, typed: &Path, number: i32) -> Result<Destination, Failure> {
        // A closed standard stream is an error only when it is written, because the user may want
        // the report only in another place.
        let facts = match sys::process::duplicate(number).and_then(|file| file.metadata()) {
            Err(_) if number <= 2 => return Ok(Destination::Descriptor(number)),
            Err(e) => return Err(self.cannot(typed, &e)),
            Ok(facts) => facts,
        };
        if facts.file_type().is_block_device() {
            return Err(
                self.usage(typed, "is a block device, which fathom never writes to; redirect it to a file")
            );
        }
        match self.protected.describe(&PathBuf::from(format!("/proc/self/fd/{number}"))) {
            Some(what) => Err(self.usage(
                typed,
                &format!("is {what}, which is never overwritten; redirect it to another file"),
            )),
            None => Ok(Destination::Descriptor(number)),
        }
    }

    /// Tests whether a new file can be created in a directory, by creating one without a name.
    fn room_for(&self, typed: &Path, path: &Path) -> Result<(), Failure> {
        let dir = files::parent(path);
        if !dir.is_dir() {
            return Err(self.usage(
                typed,
                &format!(
                    "cannot be created: there is no directory {}; create it, or type another name",
                    shown(dir)
                ),
            ));
        }
        self.refuse_synthetic(typed, dir)?;
        self.refuse_session_directory(typed, path)?;
        tempfile::tempfile_in(dir).map(|_| ()).map_err(|e| self.cannot(typed, &e))
    }

    /// Tests whether a regular file may be replaced.
    fn replaceable(&self, typed: &Path, path: &Path) -> Result<(), Failure> {
        if let Some(what) = self.protected.describe(path) {
            return Err(
                self.usage(typed, &format!("is {what}, which is never overwritten; type another name"))
            );
        }
        self.refuse_synthetic(typed, path)?;
        self.refuse_session_directory(typed, path)?;
        // Opening changes nothing, but fails if permissions are missing, the mount is read-only, or the file is a
        // running program.
        open_for_writing(path).map_err(|e| self.cannot(typed, &e))?;
        let content = Content::scan(path).map_err(|e| self.cannot(typed, &e))?;
        match content {
            Content::Replaceable => Ok(()),
            Content::Kept(what) => {
                Err(self.usage(typed, &format!("is {what}, which is never overwritten; type another name")))
            }
            Content::Foreign(what) if self.replace != Replace::Anything => {
                let force =
                    if self.replace == Replace::TextUnlessForced { ", or --force to replace it" } else { "" };
                Err(self.usage(typed, &format!("{what}, so it is not replaced; type another name{force}")))
            }
            Content::Foreign(_) => machine::safety::may_replace(&Root::real(), path)
                .map_err(|why| Failure::Refused(format!("{} {} {why}", self.flag, shown(typed)))),
        }
    }

    /// Refuses files in `/proc`, `/sys` and similar file systems, which look empty or like text.
    fn refuse_synthetic(&self, typed: &Path, path: &Path) -> Result<(), Failure> {
        let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let file = File::from(opened.map_err(|e| self.cannot(typed, &e.into()))?);
        match machine::file_systems::synthetic(&file) {
            Ok(None) => Ok(()),
            Ok(Some(system)) => {
                let why =
                    format!("it is on {system}, a file system of the kernel's own state; type another name");
                Err(self.cannot(typed, &io::Error::other(why)))
            }
            Err(why) => Err(self.cannot(typed, &io::Error::other(why))),
        }
    }

    /// Refuses every file in a directory of sessions.
    fn refuse_session_directory(&self, typed: &Path, path: &Path) -> Result<(), Failure> {
        let dir = files::parent(path).canonicalize().unwrap_or_default();
        let kept = session_directories().into_iter().filter_map(|d| d.canonicalize().ok());
        if kept.into_iter().any(|d| d == dir) {
            return Err(self.usage(typed, "is in the directory of the sessions; type another directory"));
        }
        Ok(())
    }

    fn usage(&self, typed: &Path, why: &str) -> Failure {
        Failure::Usage(format!("{} {} {why}", self.flag, shown(typed)))
    }

    fn cannot(&self, typed: &Path, error: &io::Error) -> Failure {
        Failure::Refused(format!("{} {} cannot be written: {error}{}", self.flag, shown(typed), cause(error)))
    }
}

/// Follows links to the final path, which may not exist yet. Different spellings of a path give the
/// same result.
fn resolve_links(typed: &Path) -> io::Result<PathBuf> {
    let mut path = typed.to_owned();
    for _ in 0..MAX_LINKS {
        match path.symlink_metadata() {
            Ok(facts) if facts.is_symlink() => {
                path = files::parent(&path).join(std::fs::read_link(&path)?);
            }
            Ok(_) => return path.canonicalize(),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let dir = files::parent(&path).canonicalize();
                return Ok(match (dir, path.file_name()) {
                    (Ok(dir), Some(name)) => dir.join(name),
                    _ => path,
                });
            }
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other(format!("it leads through {MAX_LINKS} symbolic links or more, as in a loop")))
}

/// Describes a character device that must not be written; `None` for any other.
fn describe_protected_device(facts: &Metadata) -> Option<String> {
    let (major, minor) = (major(facts.rdev()), minor(facts.rdev()));
    if major == MEMORY_MAJOR && MEMORY_MINORS.contains(&minor) {
        return Some("the memory of the machine".into());
    }
    let class = std::fs::read_link(format!("/sys/dev/char/{major}:{minor}/subsystem")).ok()?;
    let class = class.file_name()?.to_str()?.to_owned();
    PROTECTED_DEVICES.contains(&class.as_str()).then_some(class)
}

/// Opens a FIFO or a character device, and verifies that the path still is one. Waits up to
/// [`FIFO_WAIT`] for a process that reads the FIFO.
fn open_stream(path: &Path) -> io::Result<File> {
    let since = Instant::now();
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = loop {
        match File::options().write(true).custom_flags(flags).open(path) {
            // The FIFO has no reader yet.
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if since.elapsed() > FIFO_WAIT {
                    return Err(io::Error::other(format!(
                        "no process opened the FIFO for reading within {} s",
                        FIFO_WAIT.as_secs()
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => break opened?,
        }
    };
    let facts = file.metadata()?;
    let kind = facts.file_type();
    if kind.is_fifo() || (kind.is_char_device() && describe_protected_device(&facts).is_none()) {
        return Ok(file);
    }
    Err(changed())
}

fn open_for_writing(path: &Path) -> io::Result<File> {
    File::options().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Replaces a file atomically. If renaming is impossible, overwrites the content of the old file.
fn put(path: &Path, bytes: &[u8], rules: &Rules) -> io::Result<()> {
    let was = path.metadata().ok();
    match files::replace_as(path, bytes, was.as_ref()) {
        // The directory is not writable, the file is a mount point (as in containers), or there is
        // no room for a second file.
        Err(e) if was.is_some() && is_rename_impossible(&e) => overwrite(path, bytes, rules),
        done => done,
    }
}

fn is_rename_impossible(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::CrossesDevices
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
    )
}

/// Overwrites the content of a file after reserving space.
fn overwrite(path: &Path, bytes: &[u8], rules: &Rules) -> io::Result<()> {
    let file = open_for_writing(path)?;
    let facts = file.metadata()?;
    let opened = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !facts.is_file() || rules.protected.describe(&opened).is_some() {
        return Err(changed());
    }
    let length = bytes.len() as u64;
    match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
        // If space cannot be reserved, the write itself shows whether there is enough.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(e) => return Err(e.into()),
    }
    file.write_all_at(bytes, 0)?;
    file.set_len(length)?;
    file.sync_all()
}

fn changed() -> io::Error {
    io::Error::other("another file has this name now")
}

/// Maximum number of bytes that are scanned. Reports are shorter.
const MAX_SCAN_BYTES: u64 = 64 << 20;

/// The content of a file that would be replaced.
pub enum Content {
    /// Empty or text.
    Replaceable,
    /// A session or the state of a verification, named by this text. fathom never overwrites it;
    /// the user may delete it.
    Kept(&'static str),
    /// Other content. The text says why it is no report, such as `is not text`.
    Foreign(String),
}

impl Content {
    /// Reads the file and returns what kind of content it has.
    ///
    /// # Errors
    /// Why the file cannot be read. Missing permission is not an error: the content is then
    /// [`Self::Foreign`].
    pub fn scan(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        // A file that is writable but not readable, such as another program's log, cannot be a report of fathom.
        match File::open(path) {
            Ok(file) => file.take(MAX_SCAN_BYTES + 1).read_to_end(&mut bytes)?,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Ok(Self::Foreign("cannot be read by this user".into()));
            }
            Err(e) => return Err(e),
        };
        if bytes.starts_with(MAGIC.as_bytes()) {
            return Ok(Self::Kept("a session"));
        }
        if bytes.len() as u64 > MAX_SCAN_BYTES {
            return Ok(Self::Foreign(format!(
                "has more than {} MiB, which is more than fathom checks",
                MAX_SCAN_BYTES >> 20
            )));
        }
        let text = str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
        Ok(match text {
            Some(text) if State::parse(text).is_ok() => Self::Kept("the state of a verification"),
            Some(_) => Self::Replaceable,
            None => Self::Foreign("is not text".into()),
        })
    }
}

/// Files that the command reads or measures, by device and inode. They are never overwritten.
#[derive(Clone, Debug, Default)]
pub struct ProtectedPaths {
    files: Vec<(Identity, String)>,
}

impl ProtectedPaths {
    /// Returns the files of a plan: targets, the backing files of the layers below them, and files
    /// that provide the written data.
    pub fn from_plan(plan: &Plan, places: &[Place]) -> Self {
        let mut protected = Self::default();
        for target in plan.targets.iter().filter(|t| t.role == Role::File) {
            protected.add(&name::path(&target.path), "a target of this command");
        }
        for layer in places.iter().flat_map(|p| &p.layers) {
            let what = format!("the backing file of {}, which is below a target", layer.name);
            if let Some(file) = machine::loop_devices::backing(&Root::real(), &layer.name) {
                protected.files.push((file, what.clone()));
            }
            if let Some(file) = &layer.backing_file {
                protected.add(Path::new(file), &what);
            }
        }
        for stream in plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams) {
            if let Data::File(path) = &stream.data {
                protected.add(Path::new(path), "the data file of this command");
            }
        }
        protected
    }

    /// Adds the files of another plan.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
    }

    /// Adds the regular file at a path, with a description for messages. Ignores other paths.
    pub fn add(&mut self, path: &Path, what: &str) {
        if path.metadata().is_ok_and(|facts| facts.is_file()) {
            self.files
                .extend(identities(&Root::real(), path).into_iter().map(|file| (file, what.to_owned())));
        }
    }

    /// Returns why the file at a path is protected; `None` if it is not.
    pub fn describe(&self, path: &Path) -> Option<&str> {
        let all = identities(&Root::real(), path);
        let is_same = |file: &Identity| all.iter().any(|one| one.is_same(file));
        self.files.iter().find(|(file, _)| is_same(file)).map(|(_, what)| what.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn rules(protected: &[&Path], force: bool) -> Rules {
        let mut all = ProtectedPaths::default();
        for path in protected {
            all.add(path, "a target of this command");
        }
        Rules { flag: "-o", protected: all, replace: Replace::with_force(force) }
    }

    fn why(rules: &Rules, path: &Path) -> String {
        rules.decide(path).map_or_else(|f| f.message().to_owned(), |o| format!("{:?}", o.destination))
    }

    #[test]
    fn content_decides_what_is_replaced() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let table: [(&str, &[u8], &str); 5] = [
            ("empty.json", b"", "File"),
            ("text.json", "{\"a\": \"µ\"}\n".as_bytes(), "File"),
            ("zeros.json", &[0; 100], "is not text"),
            ("latin.txt", b"caf\xe9", "is not text"),
            ("session.json", b"fathom session 1\n", "a session"),
        ];
        for (name, content, word) in table {
            let path = dir.path().join(name);
            std::fs::write(&path, content)?;
            let typed = why(&rules(&[], false), &path);
            assert!(typed.contains(word), "{name}: {typed}");
            let forced = why(&rules(&[], true), &path);
            assert_eq!(forced.starts_with("File"), word != "a session", "{name}: {forced}");
        }
        Ok(())
    }

    #[test]
    fn protected_files_are_recognised_by_every_name() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let [target, hard, soft, chain] =
            ["data.json", "hard.json", "soft.json", "chain.json"].map(|n| dir.path().join(n));
        std::fs::write(&target, "text\n")?;
        std::fs::hard_link(&target, &hard)?;
        symlink("data.json", &soft)?;
        symlink("soft.json", &chain)?;
        for path in [&target, &hard, &soft, &chain] {
            for force in [false, true] {
                let typed = why(&rules(&[&target], force), path);
                assert!(typed.contains("a target of this command"), "{typed}");
            }
        }
        Ok(())
    }

    #[test]
    fn links_are_followed_to_the_output_file() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let [link, file, loops] = ["latest.json", "r.json", "loop.json"].map(|n| dir.path().join(n));
        symlink("r.json", &link)?;
        symlink("loop.json", &loops)?;
        let rules = rules(&[], false);
        assert!(why(&rules, &loops).contains("as in a loop"), "{}", why(&rules, &loops));
        let outlet = rules.decide(&link).map_err(|f| f.message().to_owned())?;
        for text in ["one", "two"] {
            outlet.write(text.as_bytes(), &rules).map_err(|f| f.message().to_owned())?;
            assert_eq!(std::fs::read_to_string(&file)?, text);
        }
        assert!(link.symlink_metadata()?.is_symlink());
        // Between decision and write, the file becomes something else.
        std::fs::write(&file, [0; 10])?;
        assert!(outlet.write(b"three", &rules).is_err());
        assert_eq!(std::fs::read(&file)?, [0; 10]);
        Ok(())
    }

    #[test]
    fn a_growing_file_does_not_replace_a_file_made_meanwhile() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let [path, binary, link] = ["a", "binary", "link"].map(|name| dir.path().join(name));
        std::fs::write(&path, "text")?;
        std::fs::write(&binary, [0; 9])?;
        symlink("a", &link)?;
        let rules = rules(&[], false);
        let message = |failure: Failure| failure.message().to_owned();
        let outlet = rules.decide(&link).map_err(message)?;
        let file = outlet.begin(&rules).map_err(message)?;
        assert_eq!(path.metadata()?.len(), 0);
        file.write_all_at(b"grown", 0)?;
        assert_eq!(std::fs::read(&path)?, b"grown");
        let growing = outlet.grow(&rules).map_err(message)?;
        growing.file()?.write_all_at(b"whole", 0)?;
        assert_eq!(std::fs::read(&path)?, b"grown");
        growing.finish(&rules).map_err(message)?;
        assert_eq!(std::fs::read(&path)?, b"whole");
        // The name leads elsewhere before the file is begun, and before it is finished.
        for other in [binary.as_path(), Path::new("/dev/null"), dir.path()] {
            let outlet = rules.decide(&link).map_err(message)?;
            let growing = outlet.grow(&rules).map_err(message)?;
            std::fs::remove_file(&link)?;
            symlink(other, &link)?;
            assert!(growing.finish(&rules).is_err() && outlet.begin(&rules).is_err(), "{}", other.display());
            assert!(outlet.grow(&rules).is_err(), "{}", other.display());
            std::fs::remove_file(&link)?;
            symlink("a", &link)?;
        }
        assert_eq!((std::fs::read(&path)?, std::fs::read(&binary)?), (b"whole".to_vec(), vec![0; 9]));
        Ok(())
    }

    #[test]
    fn kernel_files_are_refused_as_outputs() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let link = dir.path().join("r.txt");
        symlink("/proc/self/comm", &link)?;
        for force in [false, true] {
            for path in [&link, Path::new("/proc/self/comm"), Path::new("/proc/self/new.txt")] {
                assert!(why(&rules(&[], force), path).contains("is on proc"), "{}", path.display());
            }
        }
        Ok(())
    }

    #[test]
    fn overwriting_in_place_removes_the_old_content() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("r.json");
        std::fs::write(&path, "a longer one")?;
        overwrite(&path, b"short", &rules(&[], false))?;
        assert_eq!(std::fs::read(&path)?, b"short");
        Ok(())
    }
}
