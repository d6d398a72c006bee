//! The kernel's tracer, in a private instance: created, read, and always removed.
//!
//! An instance (kernel `Documentation/trace/ftrace.rst`) has its own buffers, events and filters, so other
//! tracing is not disturbed. Its name contains the process id and start time, so a later process can
//! recognise the instance of a killed one. The kernel does not remove an open instance. The crate `trace`
//! decodes the pages.

use crate::error::MachineError;
use crate::processes::read_stat;
use crate::root::Root;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};

/// Prefix of an instance's name, before the process id.
const PREFIX: &str = "fathom-";
/// Separates the instance's name from the suffix that distinguishes a further instance.
const SUFFIX_SEPARATOR: char = '.';
/// Directory of the instances in tracefs.
const INSTANCES: &str = "instances";
/// Maximum size in bytes of the text of `events/header_page`.
const MAX_HEADER_BYTES: usize = 4096;

/// An instance of the tracer.
#[derive(Debug)]
pub struct Tracer {
    tracefs: OwnedFd,
    name: String,
    dir: OwnedFd,
    pipes: Vec<File>,
    events: Vec<String>,
}

/// Numbers of records that the kernel lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Records that were overwritten before they were read.
    pub overrun: u64,
    /// Records that were not written at all.
    pub dropped: u64,
}

impl Tracer {
    /// Creates an instance that traces nothing yet, with `buffer_bytes` for each CPU.
    ///
    /// # Errors
    /// Why this user is not allowed to create an instance, or why the kernel cannot create one.
    pub fn new(buffer_bytes: u64) -> Result<Self, MachineError> {
        Self::named(buffer_bytes, name_of(std::process::id()))
    }

    /// Creates a further instance of this process, whose name ends with `suffix`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_suffix(buffer_bytes: u64, suffix: &str) -> Result<Self, MachineError> {
        Self::named(buffer_bytes, format!("{}{SUFFIX_SEPARATOR}{suffix}", name_of(std::process::id())))
    }

    fn named(buffer_bytes: u64, name: String) -> Result<Self, MachineError> {
        let tracefs = sys::tracefs::directory().map_err(MachineError::Refused)?;
        let path = format!("{INSTANCES}/{name}");
        mkdirat(&tracefs, &path, Mode::from_raw_mode(0o700)).map_err(|e| cannot("made", &path, &e.into()))?;
        let dir = openat(&tracefs, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let dir = dir.map_err(|e| {
            let _ = unlinkat(&tracefs, &path, AtFlags::REMOVEDIR);
            cannot("opened", &path, &e.into())
        })?;
        // From here on, dropping this value removes the instance.
        let mut tracer = Self { tracefs, name, dir, pipes: Vec::new(), events: Vec::new() };
        tracer.set("tracing_on", "0")?;
        tracer.set("trace_clock", "mono")?;
        tracer.set("buffer_size_kb", &buffer_bytes.div_ceil(1024).to_string())?;
        for cpu in tracer.cpus()? {
            let path = format!("per_cpu/{cpu}/trace_pipe_raw");
            let pipe = tracer.open(&path, OFlags::RDONLY | OFlags::NONBLOCK);
            tracer.pipes.push(pipe.map_err(|e| cannot("opened", &path, &e))?);
        }
        Ok(tracer)
    }

    /// Returns the text of `events/header_page`.
    ///
    /// # Errors
    /// Why the text cannot be read.
    pub fn header_page(&self) -> Result<String, MachineError> {
        let path = "events/header_page";
        let file = openat(&self.tracefs, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        // The kernel returns the text in one piece: a second read gets nothing.
        let mut text = vec![0; MAX_HEADER_BYTES];
        let got = file.map_err(io::Error::from).and_then(|file| File::from(file).read(&mut text));
        text.truncate(got.map_err(|e| cannot("read", path, &e))?);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Selects an event of `group`, and the filter that its records must pass. Returns the text of
    /// the event's format.
    ///
    /// # Errors
    /// Why the event cannot be selected: the kernel possibly lacks it.
    pub fn record(&mut self, group: &str, event: &str, filter: &str) -> Result<String, MachineError> {
        let dir = format!("events/{group}/{event}");
        let path = format!("{dir}/format");
        let file = self.open(&path, OFlags::RDONLY).and_then(io::read_to_string);
        let format = file.map_err(|e| cannot("read", &path, &e))?;
        self.set(&format!("{dir}/filter"), filter)?;
        self.events.push(dir);
        Ok(format)
    }

    /// Traces only these threads and the threads that they start; nothing if the list is empty. Returns false if the kernel already traced
    /// exactly these threads. A change takes the kernel 30 ms or more. In this time it may at first record all threads, and then none.
    ///
    /// # Errors
    ///
    /// Why the filter cannot be set.
    pub fn follow(&self, threads: &[u32]) -> Result<bool, MachineError> {
        if threads.is_empty() {
            self.events.iter().try_for_each(|dir| self.set(&format!("{dir}/enable"), "0"))?;
            self.end()?;
            return Ok(true);
        }
        let followed =
            self.open("set_event_pid", OFlags::RDONLY).and_then(io::read_to_string).unwrap_or_default();
        let followed: BTreeSet<u32> = followed.lines().filter_map(|pid| pid.parse().ok()).collect();
        if followed == threads.iter().copied().collect() {
            return Ok(false);
        }
        let all: Vec<String> = threads.iter().map(u32::to_string).collect();
        self.set("options/event-fork", "1")?;
        self.set("set_event_pid", &all.join(" "))?;
        self.begin()?;
        Ok(true)
    }

    /// Starts tracing.
    ///
    /// # Errors
    /// Why tracing cannot be started.
    pub fn begin(&self) -> Result<(), MachineError> {
        self.events.iter().try_for_each(|dir| self.set(&format!("{dir}/enable"), "1"))?;
        self.set("tracing_on", "1")
    }

    /// Stops tracing. Recorded events can still be read.
    ///
    /// # Errors
    /// Why tracing cannot be stopped.
    pub fn end(&self) -> Result<(), MachineError> {
        self.set("tracing_on", "0")
    }

    /// Reads all available pages into `page`, one after another, and passes each to `each`.
    ///
    /// # Errors
    ///
    /// Why a page cannot be read.
    pub fn drain(&mut self, page: &mut [u8], mut each: impl FnMut(&[u8])) -> Result<(), MachineError> {
        for pipe in &mut self.pipes {
            loop {
                match pipe.read(page) {
                    Ok(0) => break,
                    Ok(got) => each(&page[..got]),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(cannot("read", "trace_pipe_raw", &e)),
                }
            }
        }
        Ok(())
    }

    /// Returns how many records the kernel lost, according to its counts of all CPUs.
    ///
    /// # Errors
    ///
    /// Why the counts cannot be read.
    pub fn lost(&self) -> Result<Lost, MachineError> {
        let mut lost = Lost::default();
        for cpu in self.cpus()? {
            let path = format!("per_cpu/{cpu}/stats");
            let text = self.open(&path, OFlags::RDONLY).and_then(io::read_to_string);
            let text = text.map_err(|e| cannot("read", &path, &e))?;
            lost.overrun += counter(&text, "overrun:");
            lost.dropped += counter(&text, "dropped events:");
        }
        Ok(lost)
    }

    /// Returns the names of the CPU directories: `cpu0`, `cpu1`, ...
    fn cpus(&self) -> Result<Vec<String>, MachineError> {
        list(&self.dir, "per_cpu").map_err(|e| cannot("read", "per_cpu", &e))
    }

    fn set(&self, path: &str, text: &str) -> Result<(), MachineError> {
        let file = self.open(path, OFlags::WRONLY | OFlags::TRUNC);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| cannot("written", path, &e))
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.dir, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The kernel does not remove an open instance.
        self.pipes.clear();
        let _ = self.end();
        let _ = unlinkat(&self.tracefs, format!("{INSTANCES}/{}", self.name), AtFlags::REMOVEDIR);
    }
}

/// Removes the instances of ended fathom processes. Returns their names.
pub fn remove_leftovers() -> Vec<String> {
    let Ok(tracefs) = sys::tracefs::directory() else { return Vec::new() };
    let names = list(&tracefs, INSTANCES).unwrap_or_default();
    let stale =
        names.into_iter().filter(|name| pid_of(name).is_some_and(|pid| !belongs_to(name, &name_of(pid))));
    stale
        .filter(|name| unlinkat(&tracefs, format!("{INSTANCES}/{name}"), AtFlags::REMOVEDIR).is_ok())
        .collect()
}

/// Returns the process id of a thread, or `None` if the thread has ended, and whether the thread is a kernel thread.
pub fn process_of(root: &Root, tid: u32) -> (Option<u32>, bool) {
    let status = root.read(&format!("/proc/{tid}/status")).unwrap_or_default();
    let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    (pid, read_stat(root, &format!("/proc/{tid}")).is_some_and(|stat| stat.is_kernel_thread))
}

/// Returns the instance name for a process. The name contains the start time, because process ids are reused.
fn name_of(pid: u32) -> String {
    let began = read_stat(&Root::real(), &format!("/proc/{pid}")).map_or(0, |stat| stat.start_tick);
    format!("{PREFIX}{pid}-{began}")
}

/// Whether an instance belongs to the process with this instance name.
fn belongs_to(name: &str, process: &str) -> bool {
    name.split(SUFFIX_SEPARATOR).next() == Some(process)
}

fn pid_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn list(dir: &OwnedFd, path: &str) -> io::Result<Vec<String>> {
    let open = openat(dir, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&open)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned).ok().filter(|n| !n.starts_with('.')));
    }
    names.sort();
    Ok(names)
}

/// Parses a line such as `overrun: 137371`.
fn counter(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

fn cannot(what: &str, path: &str, error: &io::Error) -> MachineError {
    let advice = match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => format!("; {}", sys::error_advice::own_advice()),
        Some(Errno::NOENT) => {
            "; this kernel probably cannot trace block I/O (CONFIG_BLK_DEV_IO_TRACE)".into()
        }
        Some(Errno::NOMEM) => {
            "; there is no memory for the trace buffer (`fathom capture`: type a smaller --buffer)".into()
        }
        _ => String::new(),
    };
    MachineError::Refused(format!("{path} of tracefs cannot be {what}: {error}{advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_removes_an_instance_and_live_processes_have_no_leftovers() {
        match Tracer::new(64 << 10) {
            Ok(tracer) => {
                let name = tracer.name.clone();
                let there = || list(&tracer.tracefs, INSTANCES).unwrap_or_default().contains(&name);
                assert!(there() && !remove_leftovers().contains(&name) && there());
                assert_eq!(tracer.lost().ok(), Some(Lost::default()));
                drop(tracer);
                let tracefs = sys::tracefs::directory().unwrap_or_else(|why| panic!("{why}"));
                assert!(!list(&tracefs, INSTANCES).unwrap_or_default().contains(&name));
                // As left by a killed process: no process has this id.
                let stale = format!("{PREFIX}4194999-1");
                let _ = mkdirat(&tracefs, format!("{INSTANCES}/{stale}"), Mode::from_raw_mode(0o700));
                assert!(remove_leftovers().contains(&stale));
            }
            Err(why) => println!("SKIPPED: {why}"),
        }
    }

    #[test]
    fn this_process_is_its_own_and_not_the_kernels() {
        let pid = std::process::id();
        assert_eq!(process_of(&Root::real(), pid), (Some(pid), false));
        assert_eq!(process_of(&Root::at("/nonexistent-prefix".into()), pid), (None, false));
        assert_eq!((pid_of("fathom-12-99"), pid_of("fathom-12"), pid_of("other")), (Some(12), None, None));
        assert!(belongs_to("fathom-1-9.calls", "fathom-1-9") && !belongs_to("fathom-1-99", "fathom-1-9"));
        assert_eq!(pid_of("fathom-12-99.calls"), Some(12));
        assert_eq!(counter("entries: 0\noverrun: 137371\ndropped events: 2\n", "overrun:"), 137_371);
    }
}
