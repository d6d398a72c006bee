//! One run of a command.
//!
//! 1. Before the measured time: runs the `--prepare` command, evicts files, reads the state of the
//!    named files, and loads the BPF programs.
//! 2. Takes a snapshot of the kernel's counters, and starts the command with fathom's standard streams, process group and environment.
//! 3. Waits for the command and reaps every descendant (`PR_SET_CHILD_SUBREAPER`). The kernel adds a process's I/O to the counters of the
//!    parent that reaps the process. So the growth of fathom's own `/proc/self/io`, without fathom's own threads, is what the command and
//!    all ended descendants moved, however short they lived.
//! 4. Takes another snapshot, syncs, and takes a third snapshot. Reads the state of the named files again if they changed.
//!
//! Processes of earlier runs that still run are left out. If one ends during a run, the I/O of that run is unknown.
//!
//! If fathom runs as root, BPF programs count the command's syncs, opens and reads at `execve`
//! (`sys::bpf`). Loading them takes 2 ms for each run.

use super::{Request, Signalled, argument_words};
use crate::failure::Failure;
use crate::session::Session;
use crate::{stderr, time};
use machine::named_files::{self, LastChange, Named};
use machine::page_cache;
use machine::processes::{Processes, ended_children_io};
use machine::root::Root;
use machine::snapshot::SnapshotReader;
use model::Known;
use model::command::{
    Cold, CommandEnd, CommandIo, Exit, FilesState, FinalSync, NamedFiles, Neighbour, Requests, Stream, Traced,
};
use model::evidence::{Moment, meminfo_bytes};
use model::histogram::Histogram;
use model::machine::{Layer, Machine, Place};
use model::record::{Frame, RunEnd, RunEnding, RunStart};
use rustix::fs::FileType;
use rustix::io::retry_on_intr;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use sys::bpf::{Counting, Counts, KernelLayout};

/// The shell for commands that are typed as one string.
pub(crate) const SHELL: &str = "/bin/sh";
/// Exit codes of shells if a command cannot be started.
const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
/// Largest number of busy processes that a run records.
const MAX_NEIGHBOURS: usize = 3;
/// Other processes are sampled once the command has run this long.
const SAMPLE_OTHERS_AFTER: Duration = Duration::from_millis(50);
/// The `nice` value of the lowest priority.
const LOWEST_PRIORITY: i32 = 19;
/// Another process counts as busy if it used this much CPU time or moved this many bytes during a run.
const BUSY_CPU_MS: u64 = 20;
const BUSY_BYTES: u64 = 1 << 20;

/// The outcome of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// The command ran and ended.
    Ended(Exit),
    /// The command could not be started, with the exit code that a shell returns in this case.
    NotStarted(u8),
}

/// The state that all runs of a session share.
pub(super) struct Runner<'r> {
    pub(super) root: Root,
    pub(super) snapshots: SnapshotReader,
    pub(super) machine: Machine,
    pub(super) epoch: Instant,
    /// Paths on the command line of each command.
    pub(super) named: Vec<Vec<Named>>,
    pub(super) signalled: Arc<Signalled>,
    /// How to count with BPF programs, or the reason why none are used.
    pub(super) tracing: Known<Tracing>,
    pub(super) request: &'r Request,
}

impl Runner<'_> {
    /// Runs a command once and records it.
    pub(super) fn run(&self, command: usize, repeat: u32, session: &mut Session) -> Result<Run, Failure> {
        let prepared = self.request.study.prepare.as_ref().map(|script| Self::shell("--prepare", script));
        // A signal to the process group ends the shell command too.
        if let Some(signal) = self.signalled.ending() {
            return Ok(Run::Ended(Exit::Signal(signal)));
        }
        prepared.transpose()?;
        let named = &self.named[command];
        // `--prepare` may have mounted another file system at a path whose devices are already known.
        let moved_away: Vec<&Path> = named
            .iter()
            .filter(|one| one.is_on_another_file_system())
            .map(|one| one.path.as_path())
            .collect();
        let notes = self.evict(named);
        let at_ns = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        session.append(&Frame::RunStart(RunStart {
            job: command,
            phase: 0,
            repeat,
            attempt: 0,
            offered_iops: None,
            host: 0,
            at_ns,
            target_bytes: Vec::new(),
        }))?;
        // Reap ended processes of earlier commands first: they do not belong to this run.
        while let Ok(Some(_)) = sys::process::wait(false) {}
        let older = children(&self.root);
        // Start the sampling thread first: the BPF programs and `forks` would count a later thread of fathom.
        let end_of_sampling = self.sample_others();
        let tracing = self.tracing.as_ref().map_err(Clone::clone);
        let is_cold = self.request.study.cold == Cold::Named;
        thread::scope(|scope| {
            // A thread counts the cached pages of the files. This takes 2 ms per GiB, and happens while the BPF programs are loaded and,
            // after the command, while the counters are read. Like the sampling thread, it starts before anything is counted.
            let (has_ended, is_ended) = channel();
            let (send_states, states) = channel();
            scope.spawn(move || {
                let earlier: Vec<Earlier> = named.iter().map(|one| Earlier::read(one, is_cold)).collect();
                let _ = send_states.send(earlier.iter().map(|one| one.state.clone()).collect());
                if is_ended.recv().is_ok() {
                    let after = named.iter().zip(earlier).map(|(one, earlier)| earlier.state_now(one));
                    let _ = send_states.send(after.collect());
                }
            });
            let counting = tracing.clone().and_then(Tracing::start);
            let before: Vec<Known<FilesState>> = states.recv().unwrap_or_default();
            let start = self.snapshots.take_for_command(Moment::Start);
            let forks_before = forks(&self.root);
            let moved_before = ended_children_io(&self.root);

            let Ended { exit, wall_ns, usage, reaped_older } = match self.run_and_wait(command, &older)? {
                Ok(ended) => ended,
                Err(run) => return Ok(run),
            };

            let moved = ended_children_io(&self.root);
            let forks_after = forks(&self.root);
            let _ = has_ended.send(());
            let stop = self.snapshots.take_for_command(Moment::Stop);
            let counts = counting.and_then(Counting::end);
            let others_before = end_of_sampling();
            let neighbours = others_before.map_or_else(Vec::new, |before| neighbours(&before, &self.root));
            let after: Vec<Known<FilesState>> = states.recv().unwrap_or_default();
            let exec_reads = counts.as_ref().ok().and_then(|counts| counts.exec_reads);
            let [exec_bytes, exec_calls] = exec_reads.unwrap_or_default();
            let traced = tracing.and_then(|tracing| Ok(tracing.describe(counts?)));
            let single_process = forks_before.and_then(|before| Ok(forks_after? == before + 1));
            let moved = moved_before.and_then(|before| {
                if reaped_older {
                    return Err(
                        "a process of an earlier run ended in this one, and the kernel adds up their I/O"
                            .into(),
                    );
                }
                let after = moved?;
                let grown = after.since(&before).ok_or("the counters of /proc/self/io went backwards")?;
                let has_many_calls = single_process == Ok(true) && grown.read_calls >= MANY_READ_CALLS;
                Ok(CommandIo {
                    read_call_bytes: grown.rchar.saturating_sub(exec_bytes),
                    read_calls: (exec_reads.is_some() || has_many_calls)
                        .then_some(grown.read_calls.saturating_sub(exec_calls)),
                    write_call_bytes: grown.wchar,
                    write_calls: grown.write_calls,
                    fetched_bytes: grown.read_bytes,
                    dirtied_bytes: grown.write_bytes,
                    cancelled_bytes: grown.cancelled_write_bytes,
                })
            });
            let sparse_bytes_below = sparse_bytes_below(named, &before, &moved);
            let final_sync = self.final_sync(&moved);
            let synced = self.snapshots.take_for_command(Moment::Synced);
            for snapshot in [start, stop, synced] {
                session.append(&Frame::Evidence(Box::new(snapshot)))?;
            }
            let both = before.into_iter().zip(after);
            let named = named.iter().zip(both).map(|(one, (before, after))| NamedFiles {
                path: model::name::text(&one.path),
                before,
                after,
                device: one.device().filter(|_| !moved_away.contains(&one.path.as_path())),
                memory: one.memory().filter(|_| !moved_away.contains(&one.path.as_path())),
                hidden_device_reason: if moved_away.contains(&one.path.as_path()) {
                    Some(format!(
                        "{} was on another file system when fathom looked up its device",
                        one.path.display()
                    ))
                } else {
                    one.hidden_device_reason()
                },
            });
            // Drop arguments that only look like paths: no such file existed before or after.
            let is_missing = |state: &Known<FilesState>| state.as_ref().is_ok_and(|state| state.files == 0);
            let is_there = |one: &NamedFiles| ![&one.before, &one.after].into_iter().all(is_missing);
            let named: Vec<NamedFiles> = named.filter(is_there).collect();
            let still_running = self.still_running(&older);
            let ending = match exit {
                Exit::Code(0) => RunEnding::Complete,
                Exit::Code(code) => RunEnding::Failed(format!("the command ended with exit code {code}")),
                Exit::Signal(signal) => RunEnding::Failed(format!("signal {signal} ended the command")),
            };
            let stdin = stream(rustix::stdio::stdin(), io::stdin().is_terminal());
            let end = RunEnd {
                at_ns: u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX),
                notes,
                command: Some(Box::new(CommandEnd {
                    wall_ns,
                    exit,
                    user_ns: usage.user_ns,
                    system_ns: usage.system_ns,
                    peak_bytes: usage.peak_bytes,
                    peak_floor_bytes: usage.floor_bytes,
                    major_faults: Some(usage.major_faults),
                    moved,
                    still_running,
                    page_bytes: rustix::param::page_size() as u64,
                    single_process,
                    stdin,
                    stdout: stream(rustix::stdio::stdout(), io::stdout().is_terminal()),
                    byte_sources: byte_sources(&argument_words(&self.request.study.commands[command]), stdin),
                    named,
                    sparse_bytes_below,
                    traced,
                    final_sync,
                    neighbours,
                })),
                ..RunEnd::without(ending)
            };
            session.append(&Frame::RunEnd(Box::new(end)))?;
            // Do not sync the session with `--no-sync`: on ext4 this would also write back the command's data.
            if self.request.study.final_sync {
                session.sync()?;
            }
            if let Some(cleanup) = &self.request.study.cleanup {
                Self::shell("--cleanup", cleanup)?;
            }
            Ok(Run::Ended(exit))
        })
    }

    /// Starts a command, and waits for it and for all descendants that have ended by then.
    ///
    /// `older` are processes of earlier runs that still ran; their CPU time is left out. The inner error is the outcome of
    /// a run whose command was not started.
    fn run_and_wait(&self, command: usize, older: &[u32]) -> Result<Result<Ended, Run>, Failure> {
        let args = &self.request.study.commands[command].args;
        let program = args.first().map(String::as_str).unwrap_or_default();
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let mut usage = Usage { floor_bytes: own_bytes(&self.root), ..Usage::default() };
        let words = args.iter().skip(1).map(|arg| model::name::path(arg));
        let mut to_start = Command::new(model::name::path(program));
        to_start.args(words);
        // A signal that arrives now waits until there is a command to pass it on to.
        let mut running = self.signalled.command();
        if let Some(signal) = self.signalled.ending() {
            return Ok(Err(Run::Ended(Exit::Signal(signal))));
        }
        let began = Instant::now();
        let child = match to_start.spawn() {
            Ok(child) => child,
            Err(e) => {
                stderr::print(&format!("fathom: cannot run '{program}': {e}"));
                let code = if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
                return Ok(Err(Run::NotStarted(code)));
            }
        };
        // The memory of fathom may have grown since the first reading.
        usage.floor_bytes = usage.floor_bytes.max(own_bytes(&self.root));
        let pid = child.id();
        *running = Some(pid);
        drop(running);
        let mut exit = None;
        let mut wall_ns = 0;
        let mut reaped_older = false;
        // Reap ended orphans too, until only running ones are left.
        loop {
            // Wait without reaping. The kernel may reuse the process id once the command is reaped, so no signal may be passed on until
            // the id is cleared. A filter of system calls may refuse this call; then only `wait` waits.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let has_ended = exit.is_some() || retry_on_intr(|| waitid(WaitId::All, options)).is_ok();
            let running = has_ended.then(|| self.signalled.command());
            let Ok(Some(ended)) = sys::process::wait(!has_ended) else { break };
            if older.contains(&ended.pid) {
                reaped_older = true;
                continue;
            }
            usage.user_ns += ended.user_ns;
            usage.system_ns += ended.system_ns;
            usage.peak_bytes = usage.peak_bytes.max(ended.peak_bytes);
            usage.major_faults += ended.major_faults;
            if ended.pid == pid {
                wall_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                *running.unwrap_or_else(|| self.signalled.command()) = None;
                exit = Some(ended.code.map_or(Exit::Signal(ended.signal), Exit::Code));
            }
        }
        let exit =
            exit.ok_or_else(|| Failure::Refused("the kernel did not report the end of the command".into()))?;
        Ok(Ok(Ended { exit, wall_ns, usage, reaped_older }))
    }

    /// Samples every process once the command has run for a while. A sample takes 1 ms per 20 processes, which is too much for a short
    /// command. The returned function ends the sampling and returns the sample, if one was taken.
    fn sample_others(&self) -> impl FnOnce() -> Option<Processes> + use<> {
        let (stop, is_to_stop) = channel();
        let root = self.root.clone();
        let thread = thread::spawn(move || {
            if is_to_stop.recv_timeout(SAMPLE_OTHERS_AFTER) != Err(RecvTimeoutError::Timeout) {
                return None;
            }
            // Leave the CPUs to the command, which still runs. On Linux this changes the priority of the calling thread only.
            let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
            let seen = Processes::sample(&root).ok();
            // Keep the thread alive until the run ends: the kernel adds the I/O of an ended thread to fathom's own counters, which count
            // as the command's.
            let _ = is_to_stop.recv();
            seen
        });
        move || {
            let _ = stop.send(());
            thread.join().ok().flatten()
        }
    }

    /// Runs an unmeasured shell command of the user.
    fn shell(flag: &str, script: &str) -> Result<(), Failure> {
        // Standard output belongs to the command, so this goes to standard error.
        let status = Command::new(SHELL)
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::from(io::stderr()))
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Refused(format!("{flag} '{script}' failed: {status}"))),
            Err(e) => Err(Failure::Refused(format!("{flag} '{script}' cannot be run: {e}"))),
        }
    }

    /// Evicts what `--cold` or `--drop-caches` asks for. Returns sentences about what failed or
    /// remained in the page cache.
    fn evict(&self, named: &[Named]) -> Vec<String> {
        match self.request.study.cold {
            Cold::No => Vec::new(),
            Cold::Everything => {
                rustix::fs::sync();
                match std::fs::write("/proc/sys/vm/drop_caches", "3") {
                    Ok(()) => Vec::new(),
                    Err(e) => vec![format!("--drop-caches: /proc/sys/vm/drop_caches cannot be written: {e}")],
                }
            }
            Cold::Named => {
                let mut stayed_bytes = 0_u64;
                let mut problems = Vec::new();
                for one in named {
                    let files = named_files::files(&one.path);
                    for file in files.iter().flatten() {
                        let opened = File::open(file).map_err(|e| e.to_string());
                        match opened.and_then(|file| page_cache::evict(&file)) {
                            Ok(pages) => stayed_bytes += pages.cached.saturating_mul(pages.page_bytes),
                            Err(why) => problems.push(format!("--cold: {}: {why}", file.display())),
                        }
                    }
                    problems.extend(files.err().map(|why| format!("--cold: {why}")));
                }
                let mut problems = first_of(problems);
                if stayed_bytes > 0 {
                    problems.push(format!(
                        "--cold: {} remained in the page cache",
                        model::units::show_bytes(stayed_bytes)
                    ));
                }
                problems
            }
        }
    }

    /// Writes back the command's dirty data, unless --no-sync was typed or the command made none. Dirty data that it
    /// truncated may have been older, so these do not count against its own.
    fn final_sync(&self, moved: &Known<CommandIo>) -> FinalSync {
        if !self.request.study.final_sync {
            return FinalSync::Off;
        }
        if moved.as_ref().is_ok_and(|moved| moved.dirtied_bytes == 0) {
            return FinalSync::NotNeeded;
        }
        time::make_stable(&self.signalled)
    }

    /// Returns the names of the command's processes that still run: fathom's children, which the kernel hands over when
    /// their parent ends, and the processes in fathom's cgroup. Leaves out the processes of earlier runs.
    fn still_running(&self, older: &[u32]) -> Vec<String> {
        let dir = self.machine.cgroup.as_ref().map(|cgroup| Path::new(&cgroup.dir).join("cgroup.procs"));
        let text = dir.map(|file| std::fs::read_to_string(file).unwrap_or_default()).unwrap_or_default();
        let in_cgroup = text.lines().filter_map(|line| line.parse::<u32>().ok());
        let pids: BTreeSet<u32> = in_cgroup.chain(children(&self.root)).collect();
        pids.into_iter()
            .filter(|pid| *pid != std::process::id() && !older.contains(pid))
            .map(|pid| machine::processes::name_and_id(&self.root, pid))
            .collect()
    }
}

/// Returns the process ids of fathom's children.
fn children(root: &Root) -> Vec<u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let files = threads.map(|thread| thread.path().join("children").display().to_string());
    let text: Vec<String> = files.filter_map(|file| root.read(&file).ok()).collect();
    text.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// Keeps the first of several problems, and appends how many more there are.
fn first_of(mut problems: Vec<String>) -> Vec<String> {
    let more = problems.len().saturating_sub(1);
    problems.truncate(1);
    problems.iter_mut().filter(|_| more > 0).for_each(|first| *first += &format!(" (and {more} more)"));
    problems
}

/// The end of a command.
struct Ended {
    exit: Exit,
    /// Time from the start of the command to its end.
    wall_ns: u64,
    usage: Usage,
    /// Whether a process of an earlier run ended in this one.
    reaped_older: bool,
}

/// Resources used by the command and its descendants, and fathom's own memory as the floor of their peak.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    user_ns: u64,
    system_ns: u64,
    peak_bytes: u64,
    major_faults: u64,
    /// Largest resident memory of fathom itself. A smaller peak of the command is not visible.
    floor_bytes: u64,
}

/// A named path before a run.
struct Earlier {
    exists: bool,
    last_change: Option<LastChange>,
    state: Known<FilesState>,
}

impl Earlier {
    fn read(one: &Named, is_cold: bool) -> Self {
        let (exists, last_change) = (one.path.exists(), one.last_change());
        Self { exists, last_change, state: state(one, is_cold, true) }
    }

    /// Returns the state after the run. A file without dirty pages that was not changed since has none now, so its pages
    /// are not counted again.
    fn state_now(self, one: &Named) -> Known<FilesState> {
        let unchanged = self.last_change.is_some() && one.last_change() == self.last_change;
        match self.state {
            Ok(before) if unchanged && before.dirty_bytes == Some(0) => {
                Ok(FilesState { unwritten_bytes: None, ..before })
            }
            _ => state(one, !self.exists, false),
        }
    }
}

/// Reads the state of a named path. A directory is read only if `is_dir_read` is set: opening all files below it would cache their metadata
/// for the command.
fn state(one: &Named, is_dir_read: bool, with_extents: bool) -> Known<FilesState> {
    if one.path.is_dir() && !is_dir_read {
        let path = one.path.display();
        return Err(format!(
            "the files below {path} were not opened, because that would cache their metadata"
        ));
    }
    named_files::state(&one.path, with_extents, one.has_only_pages())
}

/// Fewer bytes of read calls are not described, so it does not matter where they came from.
const MIN_READ_BYTES: u64 = 1 << 20;

/// Returns the bytes without storage below the named directories whose state was not read before the run. This reads the
/// metadata of all their files, so it is done after the run, and only if the command read much.
fn sparse_bytes_below(
    named: &[Named],
    before: &[Known<FilesState>],
    moved: &Known<CommandIo>,
) -> Option<u64> {
    moved.as_ref().ok().filter(|moved| moved.read_call_bytes >= MIN_READ_BYTES)?;
    let unread = named.iter().zip(before).filter(|(one, state)| state.is_err() && one.path.is_dir());
    unread.map(|(one, _)| named_files::sparse_bytes_below(&one.path)).sum()
}

/// Returns the largest resident memory of fathom so far, in bytes.
fn own_bytes(root: &Root) -> u64 {
    // The lines of this file have the form of those in `/proc/meminfo`.
    let peak = root.read("/proc/self/status").and_then(|status| meminfo_bytes(&status, "VmHWM"));
    peak.unwrap_or(0)
}

/// Returns the number of processes and threads that were started on this machine since it booted.
fn forks(root: &Root) -> Known<u64> {
    let text = root.read("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("processes "));
    line.and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| "/proc/stat has no line `processes`".into())
}

fn stream(stream: BorrowedFd<'_>, is_terminal: bool) -> Stream {
    let Ok(facts) = rustix::fs::fstat(stream) else { return Stream::Other };
    match FileType::from_raw_mode(facts.st_mode) {
        _ if is_terminal => Stream::Terminal,
        FileType::RegularFile => Stream::File,
        FileType::Fifo | FileType::Socket => Stream::Pipe,
        FileType::BlockDevice => Stream::Disk,
        FileType::CharacterDevice => Stream::Null,
        _ => Stream::Other,
    }
}

/// With at least this many read calls of a single process, the kernel's own reads to start it, about five, are less than 2 % of them.
const MANY_READ_CALLS: u64 = 500;

/// Returns the character devices among the arguments and, unless it is a terminal, on standard input. Leaves out `/dev/null`.
fn byte_sources(words: &[String], stdin: Stream) -> Vec<String> {
    let values = words.iter().map(|word| word.split_once('=').map_or(word.as_str(), |(_, value)| value));
    let input = std::fs::read_link("/proc/self/fd/0").ok().filter(|_| stdin == Stream::Null);
    let input = input.map(|path| model::name::text(&path));
    let is_source = |path: &&str| {
        *path != "/dev/null"
            && path.starts_with('/')
            && std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_char_device())
    };
    values.chain(input.as_deref()).filter(is_source).map(str::to_owned).collect()
}

/// Returns the busiest processes other than fathom. Their work counts since the sample `before`, which was
/// taken shortly after the start of the run.
fn neighbours(before: &Processes, root: &Root) -> Vec<Neighbour> {
    let Ok(after) = Processes::sample(root) else { return Vec::new() };
    let mut busy = after.busy_since(before);
    busy.retain(|one| one.cpu_ms >= BUSY_CPU_MS || one.io_bytes.is_some_and(|bytes| bytes >= BUSY_BYTES));
    busy.sort_by_key(|one| std::cmp::Reverse((one.io_bytes, one.cpu_ms)));
    let named = |one: &machine::processes::BusyProcess| Neighbour {
        name: format!("{} ({})", one.name, one.pid),
        cpu_ms: one.cpu_ms,
        io_bytes: one.io_bytes,
    };
    busy.iter().take(MAX_NEIGHBOURS).map(named).collect()
}

/// Facts about the machine for the BPF programs of a run.
pub(super) struct Tracing {
    /// Major and minor number of each device at the bottom of a stack.
    disks: Vec<(u32, u32)>,
    layout: Known<KernelLayout>,
}

impl Tracing {
    /// Selects the devices at the bottom of all stacks.
    pub(super) fn new(machine: &Machine) -> Self {
        let leaves = machine.places.iter().flat_map(Place::lowest_layers);
        let number = |layer: &Layer| {
            let (major, minor) = layer.number.split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        Self { disks: leaves.filter_map(number).collect(), layout: KernelLayout::read() }
    }

    fn start(&self) -> Known<Counting> {
        Counting::start(&self.disks, self.layout.as_ref().ok())
    }

    fn describe(&self, counts: Counts) -> Traced {
        let mut latencies = Histogram::new();
        for (ns, count) in &counts.sync_latencies {
            (0..*count).for_each(|_| latencies.record(*ns));
        }
        Traced {
            started: counts.started,
            syncs: counts.syncs.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            sync_median_ns: latencies.quantile_ns(0.5),
            sync_p99_ns: latencies.supported_quantile_ns(0.99),
            sync_max_ns: latencies.max_ns(),
            sync_total_ns: counts.sync_total_ns,
            sync_covered_ns: Some(counts.sync_covered_ns),
            direct_opens: counts.direct_opens,
            sync_opens: counts.sync_opens,
            async_contexts: counts.async_contexts,
            pipes: counts.pipes,
            requests: counts.requests.map(|[count, sequential]| Requests { count, sequential }),
            requests_unknown: self.layout.as_ref().err().cloned(),
        }
    }
}

#[test]
fn problems_with_further_files_are_counted() {
    let noted = |count: usize| first_of((0..count).map(|at| format!("file {at}")).collect());
    assert_eq!((noted(0), noted(1)), (vec![], vec!["file 0".to_owned()]));
    assert_eq!(noted(3), ["file 0 (and 2 more)"]);
}
