//! Processes: the CPU time and I/O of every process between two samples, and the open files of a
//! process.
//!
//! 1. [`Processes`] samples the CPU time and the storage bytes of all processes (`/proc/PID/stat`, `/proc/PID/io`).
//! 2. [`ProcessIo`] samples the I/O counters of all processes, or of the threads of one (`proc_pid_io(5)`).
//! 3. [`open_flags_of_process`] reads descriptors and mappings (`proc_pid_fdinfo(5)`, `proc_pid_maps(5)`) of files on given devices.
//!    `/proc` does not report which descriptor the I/O goes through.
//!
//! When a parent waits for an ended child, the kernel adds all I/O of the child to the parent's counters, so a shell seems to do the I/O
//! of its commands. This includes the child's I/O before the earlier sample. So [`Processes`] and
//! [`ProcessIo`] both subtract what the earlier sample counted for a process that is gone
//! (`EndedIo`). If that amount or the parent is unknown, no amount is reported.
//!
//! [`ProcessIo`] also separates the I/O of children:
//! 1. The page faults of ended children in `/proc/PID/stat` grow exactly when the kernel adds a child's counters.
//! 2. In this case, the process's own part is the growth of its threads' counters, `/proc/PID/task/*/io`, which contain nothing of
//!    children.
//! 3. The rest is the I/O of ended children.
//!
//! Written bytes count for the process that makes them dirty, at that moment. Later write-back is charged to no process, or to a kernel
//! thread. The I/O of other users' processes is visible to root only.

use crate::identity;
use crate::resolve::OnDevices;
use crate::root::Root;
use model::Known;
use model::machine::Identity;
use model::watch::Open;
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use sys::open_file::O_DSYNC;

/// Process id and start tick: together unique for a process.
type ProcessKey = (u32, u64);

/// Inode of the initial PID namespace: `PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`, the
/// same since Linux 3.8. Every other namespace has another number.
pub(crate) const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Which processes of the machine this process sees.
#[derive(Clone, Copy, Debug)]
pub struct ProcessVisibility {
    /// Whether this process is in a PID namespace, as in a container. `/proc` shows only the processes of that namespace.
    pub in_namespace: bool,
    /// Whether the effective user is root. Root sees the I/O of all listed processes, unless a security module or a missing
    /// capability prevents it.
    pub is_root: bool,
}

impl ProcessVisibility {
    /// Returns which processes this process sees.
    pub fn of_this_process(root: &Root) -> Self {
        let namespace = root.link("/proc/self/ns/pid");
        Self {
            in_namespace: namespace.is_ok_and(|ours| ours != INITIAL_PID_NAMESPACE),
            is_root: sys::error_advice::is_root(),
        }
    }

    /// Explains why some processes are not seen; `None` if all are. `hidden` is the number of listed processes whose I/O cannot be read.
    pub fn explain(self, hidden: usize) -> Option<&'static str> {
        match (self.in_namespace, hidden, self.is_root) {
            (true, ..) => Some("this PID namespace shows only its own processes"),
            (false, 0, _) => None,
            (false, _, true) => Some("the kernel hides the I/O of some processes even from root"),
            (false, _, false) => Some("only root sees the I/O of other users' processes"),
        }
    }
}

/// All processes at one moment.
#[derive(Clone, Debug)]
pub struct Processes {
    all: BTreeMap<ProcessKey, Process>,
}

#[derive(Clone, Debug)]
struct Process {
    stat: Stat,
    /// Bytes that the process and its ended children fetched from and sent to storage; `None` without
    /// permission.
    io_bytes: Option<u64>,
}

/// A process that was active between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyProcess {
    /// Process id.
    pub pid: u32,
    /// Name, as `ps -o comm` shows it. If children of the process ended between the samples, the bytes include those of the children, and
    /// "and its ended children" follows the name.
    pub name: String,
    /// CPU time in ms.
    pub cpu_ms: u64,
    /// Bytes that the process read and wrote. Written bytes count when they are made dirty. `None` without permission. After the end of a
    /// child also `None` if the child's I/O before the earlier sample is unknown, or if the process is an ancestor of fathom, because
    /// fathom may have started that child.
    pub io_bytes: Option<u64>,
}

impl Processes {
    /// Samples all processes.
    ///
    /// # Errors
    /// Why `/proc` cannot be listed.
    pub fn sample(root: &Root) -> Known<Self> {
        let names = root.list("/proc").map_err(|why| format!("/proc: {why}"))?;
        let pids = names.iter().filter_map(|n| n.parse::<u32>().ok());
        // Processes that ended after they were listed are ignored.
        let all = pids.filter_map(|pid| read_process(root, pid)).collect();
        Ok(Self { all })
    }

    /// Returns the processes that are in both samples and used CPU time or did I/O in between, except this process.
    pub fn busy_since(&self, earlier: &Self) -> Vec<BusyProcess> {
        self.busy_besides(std::process::id(), earlier)
    }

    /// Returns the busy processes except the process `ours`.
    fn busy_besides(&self, ours: u32, earlier: &Self) -> Vec<BusyProcess> {
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        let ancestors = self.ancestors(ours);
        let ended = self.ended_since(earlier);
        let one = |(id, now): (&ProcessKey, &Process)| {
            let before = earlier.all.get(id)?;
            let ticks = now.stat.cpu_ticks.saturating_sub(before.stat.cpu_ticks);
            let child_ended = now.stat.children_faults > before.stat.children_faults;
            let earlier_of_children =
                if child_ended { ended.of_reaper(id.0, u64::saturating_add) } else { Some(0) };
            let grown = now.io_bytes.zip(before.io_bytes).map(|(b, a)| b.saturating_sub(a));
            let io_bytes = grown
                .zip(earlier_of_children)
                .filter(|_| !child_ended || !ancestors.contains(&id.0))
                .map(|(b, earlier)| b.saturating_sub(earlier));
            (id.0 != ours && (ticks > 0 || io_bytes.is_some_and(|b| b > 0))).then(|| BusyProcess {
                pid: id.0,
                name: if child_ended {
                    format!("{} and its ended children", now.stat.name)
                } else {
                    now.stat.name.clone()
                },
                cpu_ms: ticks.saturating_mul(1000) / ticks_per_s,
                io_bytes,
            })
        };
        self.all.iter().filter_map(one).collect()
    }

    /// Returns the ancestors of a process: its parent, the parent of that one, and so on.
    fn ancestors(&self, pid: u32) -> Vec<u32> {
        let parents: BTreeMap<u32, u32> =
            self.all.iter().map(|((pid, _), p)| (*pid, p.stat.parent)).collect();
        std::iter::successors(parents.get(&pid), |parent| parents.get(*parent))
            .copied()
            .take(MAX_ANCESTORS)
            .collect()
    }

    /// Returns the I/O, up to the sample `earlier`, of the processes that ended since.
    fn ended_since(&self, earlier: &Self) -> EndedIo<u64> {
        let parents = earlier.all.iter().map(|((pid, _), process)| (*pid, process.stat.parent)).collect();
        let is_gone = |(id, _): &(&ProcessKey, &Process)| !self.all.contains_key(id);
        let gone = earlier.all.iter().filter(is_gone).map(|((pid, _), process)| (*pid, process.io_bytes));
        EndedIo::new(&parents, &gone.collect())
    }

    /// Returns the number of listed processes whose I/O cannot be read.
    pub fn hidden(&self) -> usize {
        self.all.values().filter(|p| p.io_bytes.is_none()).count()
    }
}

/// Maximum number of ancestors of an ended process that are searched.
const MAX_ANCESTORS: usize = 64;

/// The I/O, up to the earlier sample, of the processes that have ended since. When a parent waits
/// for an ended process, the kernel adds the I/O of that process to the parent's. If the parent has
/// ended too, any living ancestor may have waited, because it may be a subreaper. In that case the I/O
/// is subtracted from that of every living ancestor.
struct EndedIo<T> {
    /// Pairs of a process that may have waited for an ended one, and the I/O of the ended one;
    /// `None` if that I/O is hidden.
    by_reaper: Vec<(u32, Option<T>)>,
    /// Whether the reaper of an ended process is unknown.
    is_reaper_unknown: bool,
}

impl<T: Copy + Default + PartialEq> EndedIo<T> {
    /// Builds the value. `parents` maps each process of the earlier sample to its parent, and
    /// `gone` maps each process that ended since to its I/O in that sample.
    fn new(parents: &BTreeMap<u32, u32>, gone: &BTreeMap<u32, Option<T>>) -> Self {
        let mut ended = Self { by_reaper: Vec::new(), is_reaper_unknown: false };
        for (pid, io) in gone.iter().filter(|(_, io)| **io != Some(T::default())) {
            match possible_reapers(*pid, parents, |id| gone.contains_key(&id)) {
                Some(reapers) => ended.by_reaper.extend(reapers.into_iter().map(|reaper| (reaper, *io))),
                None => ended.is_reaper_unknown = true,
            }
        }
        ended
    }

    /// Returns the I/O of ended processes, up to the earlier sample, that the kernel may have added to the I/O of the process `pid`; `None`
    /// if a part of it is unknown.
    fn of_reaper(&self, pid: u32, add: impl Fn(T, T) -> T) -> Option<T> {
        let mut ended = self.by_reaper.iter().filter(|(reaper, _)| *reaper == pid);
        ended
            .try_fold(T::default(), |sum, (_, io)| Some(add(sum, (*io)?)))
            .filter(|_| !self.is_reaper_unknown)
    }
}

/// Returns the processes that may have waited for an ended process: its parent, or all living ancestors if the parent has ended
/// too; `None` if an ancestor is unknown. Id 0 is a parent outside the namespace.
fn possible_reapers(
    pid: u32,
    parents: &BTreeMap<u32, u32>,
    is_gone: impl Fn(u32) -> bool,
) -> Option<Vec<u32>> {
    let parent = *parents.get(&pid)?;
    if parent == 0 || (parents.contains_key(&parent) && !is_gone(parent)) {
        return Some(vec![parent]);
    }
    // The init process adopts orphans, even if it is not an ancestor.
    let mut reapers = vec![1];
    let mut ancestor = parent;
    for _ in 0..MAX_ANCESTORS {
        if ancestor <= 1 {
            return Some(reapers);
        }
        let above = *parents.get(&ancestor)?;
        if !is_gone(ancestor) {
            reapers.push(ancestor);
        }
        ancestor = above;
    }
    None
}

/// Returns name and id of a process: `dd (7)`.
pub fn name_and_id(root: &Root, pid: u32) -> String {
    match root.word(&format!("/proc/{pid}/comm")) {
        Some(comm) => format!("{comm} ({pid})"),
        None => format!("process {pid}"),
    }
}

fn read_process(root: &Root, pid: u32) -> Option<(ProcessKey, Process)> {
    // Read the page faults last: if a child ends between the two readings, its I/O must not be
    // taken for this process's.
    let io = root.read(&format!("/proc/{pid}/io")).ok().and_then(|text| parse_io_counters(&text));
    let stat = read_stat(root, &format!("/proc/{pid}"))?;
    Some(((pid, stat.start_tick), Process { stat, io_bytes: io.map(|io| io.storage_bytes()) }))
}

/// The fields of `/proc/PID/stat` that fathom uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Name, as `ps -o comm` shows it.
    pub(crate) name: String,
    /// Process id of the parent.
    pub(crate) parent: u32,
    /// Page faults of the process or thread itself.
    pub(crate) faults: Faults,
    /// Page faults of ended children, including their own ended children. The kernel adds them when a parent waits for an ended child.
    pub(crate) children_faults: u64,
    /// CPU time in ticks.
    pub(crate) cpu_ticks: u64,
    pub(crate) start_tick: u64,
    pub(crate) is_kernel_thread: bool,
    /// Whether the process has ended but its parent has not waited for it yet.
    pub(crate) has_ended: bool,
}

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads the file `stat` in the directory of a process or thread. `None` if the process or thread has ended.
pub(crate) fn read_stat(root: &Root, dir: &str) -> Option<Stat> {
    parse_stat(&root.read(&format!("{dir}/stat")).ok()?)
}

/// Parses `/proc/PID/stat` (`proc_pid_stat(5)`).
fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may itself contain parentheses and spaces.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    // The first field after the name is field 3 of the line.
    Some(Stat {
        name,
        parent: u32::try_from(number(1)?).ok()?,
        faults: Faults { minor: number(7)?, major: number(9)? },
        children_faults: number(8)?.saturating_add(number(10)?),
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        start_tick: number(19)?,
        is_kernel_thread: number(6)? & KERNEL_THREAD != 0,
        has_ended: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

/// The counters of `/proc/PID/io`, or the difference of two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes that calls read, from the page cache or elsewhere.
    pub rchar: u64,
    /// Bytes that calls wrote, to the page cache or elsewhere.
    pub wchar: u64,
    /// Attempted system calls such as `read` and `pread`: `syscr` in the file.
    pub read_calls: u64,
    /// Attempted system calls such as `write` and `pwrite`: `syscw` in the file.
    pub write_calls: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes made dirty or sent to storage.
    pub write_bytes: u64,
    /// Dirty bytes that were truncated before write-back.
    pub cancelled_write_bytes: u64,
}

/// Page faults since a process or a thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Faults that waited for storage.
    pub major: u64,
    /// All other faults.
    pub minor: u64,
}

/// Returns the page faults of a process, or of one of its threads; `None` if the process or thread has ended.
pub fn faults(root: &Root, pid: u32, tid: Option<u32>) -> Option<Faults> {
    let dir = tid.map_or_else(|| format!("/proc/{pid}"), |tid| format!("/proc/{pid}/task/{tid}"));
    read_stat(root, &dir).map(|stat| stat.faults)
}

/// Maximum number of descriptors read per process. If there are more, [`Open::may_be_incomplete`] is set.
const MAX_DESCRIPTORS: usize = 256;
/// Maximum number of threads whose descriptors are read per process. If there are more,
/// [`Open::may_be_incomplete`] is set.
const MAX_THREADS: usize = 64;
/// The link target of an io_uring.
const IO_URING_LINK: &str = "anon_inode:[io_uring]";

/// Reads how a process opened its files on these devices.
///
/// # Errors
/// Why the process's descriptors or mappings are not visible.
pub fn open_flags_of_process(root: &Root, pid: u32, on: &OnDevices) -> Known<Open> {
    let dir = format!("/proc/{pid}");
    let names = root.list(&format!("{dir}/fd"))?;
    let mut open = Open::default();
    let mut left = MAX_DESCRIPTORS;
    let mut read_table = |dir: &str, names: &[String], open: &mut Open| {
        let count = names.len().min(left);
        left -= count;
        open.may_be_incomplete |= count < names.len();
        for name in names.iter().take(count) {
            read_descriptor(root, dir, name, on, open);
        }
    };
    read_table(&dir, &names, &mut open);
    // Threads may have separate file tables. A table with the same descriptor numbers as the
    // process's own table counts as that table.
    let tasks = root.list(&format!("{dir}/task"))?;
    open.may_be_incomplete |= tasks.len() > MAX_THREADS;
    for task in tasks.iter().take(MAX_THREADS) {
        let task = format!("{dir}/task/{task}");
        let own_names = root.list(&format!("{task}/fd")).unwrap_or_default();
        if own_names != names {
            read_table(&task, &own_names, &mut open);
        }
    }
    open.mmap = is_mapped(&root.read(&format!("{dir}/maps"))?, on);
    Ok(open)
}

fn read_descriptor(root: &Root, dir: &str, name: &str, on: &OnDevices, open: &mut Open) {
    let at = format!("{dir}/fd/{name}");
    let Ok(leads_to) = root.link(&at) else { return };
    if leads_to == IO_URING_LINK {
        open.io_uring = true;
    }
    // Sockets, pipes and anonymous inodes have no path.
    if !leads_to.starts_with('/') {
        return;
    }
    let Ok(what) = identity::from_path_cached(&root.path(&at)) else { return };
    let info = root.read(&format!("{dir}/fdinfo/{name}")).unwrap_or_default();
    let word = |key: &str| info.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
    let is_on_device = match &what {
        Identity::Device { number, .. } => on.is_device(number),
        Identity::File { device, .. } => {
            on.contains_file(device, word("mnt_id:").and_then(|id| id.parse().ok()))
        }
    };
    let flags = word("flags:").and_then(|f| u32::from_str_radix(f, 8).ok());
    let Some(flags) = flags.map(OFlags::from_bits_retain).filter(|_| is_on_device) else { return };
    // Directories and O_PATH descriptors carry no data.
    if flags.intersects(OFlags::DIRECTORY | OFlags::PATH) {
        return;
    }
    open.files += 1;
    let is_direct = flags.contains(OFlags::DIRECT);
    open.direct |= is_direct;
    open.buffered |= !is_direct;
    open.sync |= flags.bits().cast_signed() & O_DSYNC != 0;
}

/// Returns whether a file on these devices is mapped. Ignores files with executable mappings, because
/// programs and libraries are mapped everywhere.
fn is_mapped(maps: &str, on: &OnDevices) -> bool {
    let all = || maps.lines().filter_map(parse_mapping);
    let number = |file: &Identity| match file {
        Identity::File { device, inode } if *inode > 0 => Some((device.clone(), *inode)),
        _ => None,
    };
    let executed = all().filter(|m| m.permissions.contains('x'));
    let executed: BTreeSet<(String, u64)> = executed.filter_map(|m| number(&m.file)).collect();
    let mut others = all().filter_map(|m| number(&m.file)).filter(|file| !executed.contains(file));
    others.any(|(device, _)| on.contains_file(&device, None))
}

/// The processes or threads whose counters are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledTasks {
    /// Every process, with all of its threads together.
    Processes,
    /// Each thread of this process.
    ThreadsOf(u32),
}

/// The I/O counters of all sampled processes or threads at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessIo {
    all: BTreeMap<u32, Reading>,
    /// Processes whose counters this user is not allowed to read, by id.
    without_counters: BTreeMap<u32, Stat>,
    hidden: usize,
}

#[derive(Clone, Debug)]
struct Reading {
    stat: Stat,
    counters: IoCounters,
    /// Sum over the live threads, without ended threads and ended children. If no child has ended,
    /// equal to `counters`.
    threads: IoCounters,
}

/// The I/O of a process or thread between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIo {
    /// Process or thread id.
    pub id: u32,
    /// Name, as `ps -o comm` shows it.
    pub name: String,
    /// Whether the process or thread is a kernel thread.
    pub kernel: bool,
    /// Whether the process's ended children (or its ended threads) did the I/O instead of the process itself.
    pub by_children: bool,
    /// I/O between the samples.
    pub counters: IoCounters,
}

impl ProcessIo {
    /// Takes a sample. For each process without I/O since `before`, it reads only one file.
    ///
    /// # Errors
    /// Why `/proc` cannot be listed, or that the process of [`SampledTasks::ThreadsOf`] does not exist.
    pub fn sample(root: &Root, sampled: SampledTasks, before: Option<&Self>) -> Known<Self> {
        let dir = match sampled {
            SampledTasks::Processes => "/proc".to_owned(),
            SampledTasks::ThreadsOf(pid) => format!("/proc/{pid}/task"),
        };
        let names = root.list(&dir).map_err(|why| format!("{dir}: {why}"))?;
        let ids: BTreeSet<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
        // After the end of a process, its first thread remains until the parent waits for
        // the process.
        if let (SampledTasks::ThreadsOf(_), 1, Some(only)) = (sampled, ids.len(), ids.first())
            && read_stat(root, &format!("{dir}/{only}")).is_some_and(|stat| stat.has_ended)
        {
            return Err(format!("{dir}/{only}: the process has ended"));
        }
        // If other users' processes are hidden completely (hidepid), process 1 is hidden too.
        let all_hidden = sampled == SampledTasks::Processes && !ids.contains(&1);
        let mut sample = Self { hidden: usize::from(all_hidden), ..Self::default() };
        // When the parent of a process ends, the process gets another parent. Then read `stat` again.
        let has_parent = |stat: &Stat| sampled != SampledTasks::Processes || ids.contains(&stat.parent);
        let read_into = |sample: &mut Self, id: u32| {
            let text = root.read(&format!("{dir}/{id}/io"));
            let Some(counters) = text.as_deref().ok().and_then(parse_io_counters) else {
                let known = before.and_then(|b| b.without_counters.get(&id)).filter(|stat| has_parent(stat));
                let stat = known.cloned().or_else(|| read_stat(root, &format!("{dir}/{id}")));
                // A process that ended after it was listed hides nothing.
                sample.hidden += usize::from(root.has(&format!("{dir}/{id}")));
                sample.without_counters.extend(stat.map(|stat| (id, stat)));
                return;
            };
            let known = before.and_then(|b| b.all.get(&id));
            let known = known.filter(|seen| seen.counters == counters && has_parent(&seen.stat));
            if let Some(known) = known {
                sample.all.insert(id, known.clone());
            } else if let Some(stat) = read_stat(root, &format!("{dir}/{id}")) {
                // Without ended children all I/O belongs to the process itself, so its threads need not be read.
                let has_children = sampled == SampledTasks::Processes && stat.children_faults > 0;
                let threads = if has_children { sum_of_threads(root, id) } else { counters };
                sample.all.insert(id, Reading { stat, counters, threads });
            }
        };
        for id in &ids {
            read_into(&mut sample, *id);
        }
        // If a process ended while this sample was taken, its parent now has its I/O, so
        // read the parent again.
        let has_ended = |id: &&u32| !sample.all.contains_key(id) && !sample.without_counters.contains_key(id);
        let parents = ids.iter().filter(has_ended).filter_map(|id| Some(before?.all.get(id)?.stat.parent));
        let parents: BTreeSet<u32> = parents.filter(|parent| sample.all.contains_key(parent)).collect();
        for parent in parents {
            read_into(&mut sample, parent);
        }
        Ok(sample)
    }

    /// Returns the processes with I/O since `before`. A process whose ended children did I/O has a
    /// second entry for them. If a process began since `before`, all of its I/O counts.
    pub fn io_since(&self, before: &Self) -> Vec<TaskIo> {
        let ended = self.ended_since(before);
        let mut out = Vec::new();
        for (id, now) in &self.all {
            // The earlier counters of this process were hidden.
            if before.without_counters.get(id).is_some_and(|seen| seen.start_tick == now.stat.start_tick) {
                continue;
            }
            let earlier = before.all.get(id).filter(|seen| seen.stat.start_tick == now.stat.start_tick);
            let Some(all) = now.counters.since(&earlier.map(|seen| seen.counters).unwrap_or_default()) else {
                continue;
            };
            let child_ended = now.stat.children_faults > earlier.map_or(0, |seen| seen.stat.children_faults);
            let (own, of_children) = if child_ended {
                let threads = now.threads.minus(&earlier.map(|seen| seen.threads).unwrap_or_default());
                let own = threads.each(&all, u64::min);
                let earlier = ended.of_reaper(*id, |a, b| a.each(&b, u64::saturating_add));
                let of_children = earlier.map(|earlier| all.minus(&own).minus(&earlier));
                (own, of_children.unwrap_or_default())
            } else {
                (all, IoCounters::default())
            };
            for (counters, by_children) in [(own, false), (of_children, true)] {
                if counters != IoCounters::default() {
                    let (name, kernel) = (now.stat.name.clone(), now.stat.is_kernel_thread);
                    out.push(TaskIo { id: *id, name, kernel, by_children, counters });
                }
            }
        }
        out
    }

    /// Returns the I/O, up to the sample `before`, of the processes that ended since.
    fn ended_since(&self, before: &Self) -> EndedIo<IoCounters> {
        let all = before.all.iter().map(|(id, seen)| (*id, &seen.stat, Some(seen.counters)));
        let without_counters = before.without_counters.iter().map(|(id, stat)| (*id, stat, None));
        let all: Vec<_> = all.chain(without_counters).collect();
        let parents = all.iter().map(|(id, stat, _)| (*id, stat.parent)).collect();
        let lives = |id: u32, start_tick: u64| {
            let now = self.all.get(&id).map(|now| &now.stat).or_else(|| self.without_counters.get(&id));
            now.is_some_and(|now| now.start_tick == start_tick)
        };
        let gone = all.iter().filter(|(id, stat, _)| !lives(*id, stat.start_tick));
        EndedIo::new(&parents, &gone.map(|(id, _, counters)| (*id, *counters)).collect())
    }

    /// Returns a process of this sample with all I/O counters at 0; `None` if the sample does not have the process.
    pub fn without_io(&self, id: u32) -> Option<TaskIo> {
        let seen = self.all.get(&id)?;
        let (name, kernel) = (seen.stat.name.clone(), seen.stat.is_kernel_thread);
        Some(TaskIo { id, name, kernel, by_children: false, counters: IoCounters::default() })
    }

    /// Returns a lower bound of the number of processes whose counters cannot be read.
    pub fn hidden(&self) -> usize {
        self.hidden
    }
}

impl IoCounters {
    /// Returns the bytes fetched from and sent to storage.
    pub fn storage_bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }

    /// Combines each counter with the same counter of `other`; `None` if `combine` returns `None` for one of them.
    fn try_each(&self, other: &Self, combine: impl Fn(u64, u64) -> Option<u64>) -> Option<Self> {
        Some(Self {
            rchar: combine(self.rchar, other.rchar)?,
            wchar: combine(self.wchar, other.wchar)?,
            read_calls: combine(self.read_calls, other.read_calls)?,
            write_calls: combine(self.write_calls, other.write_calls)?,
            read_bytes: combine(self.read_bytes, other.read_bytes)?,
            write_bytes: combine(self.write_bytes, other.write_bytes)?,
            cancelled_write_bytes: combine(self.cancelled_write_bytes, other.cancelled_write_bytes)?,
        })
    }

    /// Combines each counter with the same counter of `other`.
    fn each(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        self.try_each(other, |own, other| Some(combine(own, other))).unwrap_or_default()
    }

    fn minus(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    /// Returns `self - earlier`; `None` if a counter went backwards.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        self.try_each(earlier, u64::checked_sub)
    }
}

/// Returns the I/O of this process's ended children and threads so far: the process's counters
/// minus those of its live threads.
///
/// # Errors
/// Why `/proc/self/io` cannot be read.
pub fn ended_children_io(root: &Root) -> Known<IoCounters> {
    let pid = std::process::id();
    let sum_of_threads = sum_of_threads(root, pid);
    let path = "/proc/self/io";
    let whole =
        parse_io_counters(&root.read(path)?).ok_or_else(|| format!("{path} has an unknown format"))?;
    Ok(whole.minus(&sum_of_threads))
}

/// Returns the sum of the I/O counters of a process's live threads. Ignores a thread that ends
/// before it is read.
fn sum_of_threads(root: &Root, pid: u32) -> IoCounters {
    let dir = format!("/proc/{pid}/task");
    let threads = root.list(&dir).unwrap_or_default();
    let counters =
        threads.iter().filter_map(|tid| parse_io_counters(&root.read(&format!("{dir}/{tid}/io")).ok()?));
    counters.fold(IoCounters::default(), |sum, one| sum.each(&one, u64::saturating_add))
}

fn parse_io_counters(text: &str) -> Option<IoCounters> {
    let mut found = IoCounters::default();
    let mut counters_found = 0;
    for (key, value) in text.lines().filter_map(|l| l.split_once(':')) {
        let field = match key {
            "rchar" => &mut found.rchar,
            "wchar" => &mut found.wchar,
            "syscr" => &mut found.read_calls,
            "syscw" => &mut found.write_calls,
            "read_bytes" => &mut found.read_bytes,
            "write_bytes" => &mut found.write_bytes,
            "cancelled_write_bytes" => &mut found.cancelled_write_bytes,
            _ => continue,
        };
        *field = value.trim().parse().ok()?;
        counters_found += 1;
    }
    (counters_found == 7).then_some(found)
}

/// A line of `/proc/PID/maps`.
pub(crate) struct Mapping<'t> {
    pub(crate) addresses: Range<u64>,
    pub(crate) permissions: &'t str,
    /// Device number and inode of the file or device node, as `maps` shows them. On btrfs and overlays, `stat` shows another device number.
    pub(crate) file: Identity,
    /// Path of the file, as the process sees it; `None` for memory without a file.
    pub(crate) path: Option<&'t str>,
}

pub(crate) fn parse_mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |hex: &str| u64::from_str_radix(hex, 16).ok();
    let (addresses, permissions, _offset) = (address(start)?..address(end)?, fields.next()?, fields.next()?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
    let device = format!("{}:{}", number(major)?, number(minor)?);
    let file = Identity::File { device, inode: fields.next()?.parse().ok()? };
    Some(Mapping { addresses, permissions, file, path: line.find('/').map(|at| &line[at..]) })
}

#[test]
fn this_process_had_faults() {
    let own = faults(&Root::real(), std::process::id(), None);
    assert!(own.is_some_and(|faults| faults.minor > 0), "{own:?}");
    assert_eq!(faults(&Root::real(), u32::MAX, None), None);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 30 12 0 0 20 0 1 0 991 1 2";

    #[test]
    fn a_pid_namespace_hides_processes_from_root_too() -> std::io::Result<()> {
        let visibility = |namespace: &str| -> std::io::Result<ProcessVisibility> {
            let dir = tempfile::tempdir()?;
            crate::fixture::link(dir.path(), namespace, "proc/self/ns/pid");
            Ok(ProcessVisibility {
                is_root: true,
                ..ProcessVisibility::of_this_process(&Root::at(dir.path().to_owned()))
            })
        };
        let why = visibility("pid:[4026532177]")?.explain(0);
        assert!(why.is_some_and(|why| why.contains("namespace") && !why.contains("root")), "{why:?}");
        let initial = visibility(INITIAL_PID_NAMESPACE)?;
        assert_eq!(initial.explain(0), None);
        assert!(initial.explain(1).is_some_and(|why| why.contains("even from root")));
        Ok(())
    }

    #[test]
    fn names_with_brackets_are_read_and_broken_lines_are_none() {
        let stat = Stat {
            name: "a) b".to_owned(),
            parent: 1,
            faults: Faults { minor: 1, major: 3 },
            children_faults: 6,
            cpu_ticks: 42,
            start_tick: 991,
            is_kernel_thread: false,
            has_ended: false,
        };
        assert_eq!(parse_stat(STAT), Some(stat));
        assert!(parse_stat(&STAT.replace("4194560", "69238880")).is_some_and(|stat| stat.is_kernel_thread));
        for junk in [
            "",
            "7",
            "7 (a",
            "7 a) S",
            "7 (a) S 1",
            "7 (a) S 1 7 7 0 -1 4194560 1 2 3 4 x 12 0 0 20 0 1 0 991",
        ] {
            assert_eq!(parse_stat(junk), None, "{junk}");
        }
    }

    #[test]
    fn activity_between_two_samples_is_reported_and_reused_ids_are_not() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |pid: u32, stat: &str, read_bytes: Option<u64>| {
            let at = dir.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&at).unwrap_or_else(|e| panic!("{e}"));
            std::fs::write(at.join("stat"), stat).unwrap_or_else(|e| panic!("{e}"));
            if let Some(read_bytes) = read_bytes {
                let io = process_io_tests::io(read_bytes, 0);
                std::fs::write(at.join("io"), io).unwrap_or_else(|e| panic!("{e}"));
            }
        };
        let root = Root::at(dir.path().to_owned());
        put(7, STAT, Some(0));
        put(8, STAT, None);
        put(9, STAT, None);
        let first = Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
        put(7, STAT, Some(4096));
        put(8, &STAT.replace("30 12", "31 13"), None);
        put(9, &STAT.replace("30 12", "99 99").replace("991", "992"), None);
        let second = Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
        let busy = second.busy_since(&first);
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(busy.len(), 2, "{busy:?}");
        assert_eq!((busy[0].pid, busy[0].io_bytes, busy[0].cpu_ms), (7, Some(4096), 0));
        assert_eq!((busy[1].pid, busy[1].io_bytes, busy[1].cpu_ms), (8, None, 2000 / ticks));
        assert_eq!(second.hidden(), 2);
        // The faults and the bytes of a child that ended are added to its parent's.
        put(7, &STAT.replace("1 2 3 4 30", "1 9 3 4 30"), Some(8192));
        let third = Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
        let busy = third.busy_since(&second);
        assert_eq!((busy[0].pid, busy[0].name.as_str()), (7, "a) b and its ended children"));
        assert!(Processes::sample(&Root::at("/nonexistent-prefix".into())).is_err());
    }
}

/// If processes end in the window, their I/O before the window does not count as I/O of their parents.
#[cfg(test)]
mod ended_in_window_tests {
    use super::process_io_tests::io;
    use super::*;
    use crate::fixture::put;

    /// Bytes of a process that moved 20 GiB before the window.
    const EARLIER: u64 = 20 << 30;

    /// Processes of an invented machine.
    struct Machine(tempfile::TempDir);

    impl Machine {
        /// A machine with an init process, a login (7) and its shell (8).
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap_or_else(|e| panic!("{e}")));
            machine.put(1, 0, 0, Some(0));
            machine.put(7, 1, 0, Some(1_000));
            machine.put(8, 7, 0, Some(1_000));
            machine
        }

        /// Sets a process's parent, the page faults of its ended children, and its read bytes. `None` hides the bytes.
        fn put(&self, pid: u32, parent: u32, children_faults: u32, read_bytes: Option<u64>) {
            let stat = format!(
                "{pid} (p{pid}) S {parent} 7 7 0 -1 0 1 {children_faults} 0 0 1 1 9 9 20 0 1 0 5 1 2"
            );
            put(self.0.path(), &format!("proc/{pid}/stat"), &stat);
            if let Some(bytes) = read_bytes {
                put(self.0.path(), &format!("proc/{pid}/io"), &io(bytes, 0));
                let own = if children_faults == 0 { bytes } else { 1_000 };
                put(self.0.path(), &format!("proc/{pid}/task/{pid}/io"), &io(own, 0));
            }
        }

        fn end(&self, pid: u32) {
            std::fs::remove_dir_all(self.0.path().join(format!("proc/{pid}")))
                .unwrap_or_else(|e| panic!("{e}"));
        }

        /// Returns the bytes by process id between two samples: of [`Processes`], and of ended children in [`ProcessIo`].
        fn moved(&self, change: impl FnOnce(&Self)) -> [Vec<(u32, u64)>; 2] {
            let root = Root::at(self.0.path().to_owned());
            let list = || Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
            let sample = |b: Option<&_>| {
                ProcessIo::sample(&root, SampledTasks::Processes, b).unwrap_or_else(|e| panic!("{e}"))
            };
            let (processes, io) = (list(), sample(None));
            change(self);
            let busy = list().busy_since(&processes);
            let moved = sample(Some(&io)).io_since(&io);
            let of_children = moved.iter().filter(|m| m.by_children);
            [
                busy.iter().filter_map(|b| Some((b.pid, b.io_bytes?))).collect(),
                of_children.map(|m| (m.id, m.counters.read_bytes)).collect(),
            ]
        }
    }

    #[test]
    fn the_reaper_has_only_the_part_in_the_window() {
        let machine = Machine::new();
        machine.put(9, 8, 0, Some(EARLIER));
        let moved = machine.moved(|machine| {
            machine.end(9);
            machine.put(8, 7, 50, Some(1_000 + EARLIER + 4_096));
        });
        assert_eq!(moved, [[(8, 4_096)], [(8, 4_096)]]);
        // Children that began and ended in the window count.
        let moved = machine.moved(|machine| machine.put(8, 7, 60, Some(1_000 + EARLIER + 4_096 + 512)));
        assert_eq!(moved, [[(8, 512)], [(8, 512)]]);
    }

    #[test]
    fn ancestors_of_fathom_have_no_bytes_if_a_child_ended() {
        let machine = Machine::new();
        let root = Root::at(machine.0.path().to_owned());
        let list = || Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
        // fathom (9) below the shell (8), and another shell (10).
        machine.put(9, 8, 0, Some(0));
        machine.put(10, 7, 0, Some(1_000));
        let before = list();
        for shell in [8, 10] {
            machine.put(shell, 7, 50, Some(1_000 + 4_096));
        }
        let moved = |ours| -> Vec<(u32, u64)> {
            let busy = list().busy_besides(ours, &before);
            busy.iter().filter_map(|b| Some((b.pid, b.io_bytes?))).collect()
        };
        assert_eq!(moved(9), [(10, 4_096)]);
        assert_eq!(moved(0), [(8, 4_096), (10, 4_096)]);
        // The login (7) itself reads, and none of its children ended.
        machine.put(7, 1, 0, Some(1_000 + 512));
        assert_eq!(moved(9), [(7, 512), (10, 4_096)]);
    }

    #[test]
    fn ended_ancestors_pass_the_part_before_the_window_on() {
        let machine = Machine::new();
        machine.put(9, 8, 0, Some(EARLIER));
        let moved = machine.moved(|machine| {
            machine.end(9);
            machine.end(8);
            machine.put(7, 1, 50, Some(1_000 + 1_000 + EARLIER + 4_096));
        });
        assert_eq!(moved, [[(7, 4_096)], [(7, 4_096)]]);
    }

    #[test]
    fn orphans_are_subtracted_from_the_process_that_adopts_them() {
        for adopter in [1, 7] {
            let machine = Machine::new();
            machine.put(9, 8, 0, Some(EARLIER));
            let moved = machine.moved(|machine| {
                machine.end(9);
                machine.end(8);
                let before = if adopter == 1 { 0 } else { 1_000 };
                machine.put(adopter, adopter / 7, 50, Some(before + EARLIER));
            });
            assert_eq!(moved, [[], []], "adopted by {adopter}");
        }
    }

    #[test]
    fn amounts_never_go_below_zero_and_living_children_change_nothing() {
        let machine = Machine::new();
        machine.put(9, 8, 0, Some(EARLIER));
        // A parent that ignores the end of its children does not get their I/O.
        let moved = machine.moved(|machine| {
            machine.end(9);
            machine.put(8, 7, 0, Some(5_096));
        });
        assert_eq!(moved, [vec![(8, 4_096)], vec![]]);
        machine.put(9, 8, 0, Some(EARLIER));
        let moved = machine.moved(|machine| {
            machine.end(9);
            machine.put(8, 7, 50, Some(5_096 + 10));
        });
        assert_eq!(moved, [[], []]);
    }

    #[test]
    fn unknown_parts_have_no_amount() {
        // The child's counters are hidden, as those of `sudo` are, or its parent is unknown.
        for (parent, bytes) in [(8, None), (77, Some(EARLIER))] {
            let machine = Machine::new();
            machine.put(9, parent, 0, bytes);
            let moved = machine.moved(|machine| {
                machine.end(9);
                machine.put(8, 7, 50, Some(1_000 + EARLIER));
            });
            assert_eq!(moved, [[], []], "parent {parent}");
        }
        // Counters that become visible in the window have no earlier value.
        let machine = Machine::new();
        machine.put(9, 8, 0, None);
        assert_eq!(machine.moved(|machine| machine.put(9, 8, 3, Some(EARLIER))), [[], []]);
    }

    #[test]
    fn a_real_child_that_ends_in_the_window_takes_its_past_along() {
        let root = Root::real();
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let (file, ready) = (dir.path().join("file"), dir.path().join("ready"));
        // The shell waits for a child that writes 64 MiB before the window, and 1 MiB in the window.
        let script = "sh -c 'head -c 67108864 /dev/zero > \"$0\"; : > \"$1\"; read line; head -c 1048576 /dev/zero > \"$0\"' \
                      \"$0\" \"$1\"; read line";
        let mut shell = std::process::Command::new("sh")
            .args(["-c", script])
            .args([&file, &ready])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{e}"));
        let wait_until = |is_done: &dyn Fn() -> bool| {
            let start = std::time::Instant::now();
            while !is_done() && start.elapsed().as_secs() < 20 {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        };
        let mut input = shell.stdin.take().unwrap_or_else(|| panic!("no pipe"));
        let mut type_line = || {
            std::io::Write::write_all(&mut input, b"\n").unwrap_or_else(|e| panic!("{e}"));
        };
        let list = || Processes::sample(&root).unwrap_or_else(|e| panic!("{e}"));
        let sample =
            || ProcessIo::sample(&root, SampledTasks::Processes, None).unwrap_or_else(|e| panic!("{e}"));
        wait_until(&|| ready.exists());
        let (processes, io) = (list(), sample());
        let children_faults =
            || read_stat(&root, &format!("/proc/{}", shell.id())).map_or(0, |stat| stat.children_faults);
        let faults_before = children_faults();
        type_line();
        wait_until(&|| children_faults() > faults_before);
        let busy = list().busy_since(&processes);
        let moved = sample().io_since(&io);
        type_line();
        drop(input);
        let ended = shell.wait();
        assert!(ended.is_ok(), "{ended:?}");
        let bytes = busy.iter().find(|b| b.pid == shell.id()).and_then(|b| b.io_bytes);
        let of_children = moved.iter().find(|m| m.id == shell.id() && m.by_children);
        let of_children = of_children.map(|m| m.counters.storage_bytes());
        // File systems in memory (tmpfs) count no bytes.
        for bytes in [bytes, of_children].into_iter().flatten() {
            assert!(bytes <= 8 << 20, "{bytes} bytes of a window in which 1 MiB was written");
        }
    }
}

#[cfg(test)]
mod process_io_tests {
    use super::*;
    use crate::fixture::put;

    fn stat(name: &str, flags: u32, began: u64) -> String {
        format!("7 ({name}) S 1 7 7 0 -1 {flags} 1 2 3 4 30 12 0 0 20 0 1 0 {began} 1 2")
    }

    pub(super) fn io(read_bytes: u64, write_bytes: u64) -> String {
        format!(
            "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: {read_bytes}\nwrite_bytes: {write_bytes}\n\
             cancelled_write_bytes: 0\n"
        )
    }

    #[test]
    fn io_is_reported_reused_ids_start_anew_and_hidden_processes_are_counted() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let root = Root::at(dir.path().to_owned());
        let take_sample = |before| {
            ProcessIo::sample(&root, SampledTasks::Processes, before).unwrap_or_else(|e| panic!("{e}"))
        };
        put("proc/1/stat", &stat("init", 0, 1));
        put("proc/1/io", &io(0, 0));
        for (pid, name) in [(7, "dd"), (8, "old"), (9, "still")] {
            put(&format!("proc/{pid}/stat"), &stat(name, 0x0040_0000, 5));
            put(&format!("proc/{pid}/io"), &io(4096, 4096));
        }
        put("proc/10/stat", &stat("hidden", 0, 5));
        let first = take_sample(None);
        assert_eq!(first.hidden(), 1);
        put("proc/7/io", &io(12_288, 4096));
        put("proc/8/io", &io(100, 0));
        put("proc/8/stat", &stat("new) one", 0, 6));
        put("proc/11/stat", &stat("kworker/0:1", 0x0420_8060, 9));
        put("proc/11/io", &io(512, 0));
        // Only the counters of an idle process are read, so this change goes unnoticed.
        put("proc/9/stat", "junk");
        let moved = take_sample(Some(&first)).io_since(&first);
        let described: Vec<(u32, &str, u64, u64, bool)> = moved
            .iter()
            .map(|m| (m.id, m.name.as_str(), m.counters.read_bytes, m.counters.write_bytes, m.kernel))
            .collect();
        assert_eq!(
            described,
            [(7, "dd", 8192, 0, false), (8, "new) one", 100, 0, false), (11, "kworker/0:1", 512, 0, true)]
        );
        assert_eq!(parse_io_counters("rchar: 1\n"), None);
    }

    #[test]
    fn io_of_ended_children_is_not_their_parents_and_counts_once() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let root = Root::at(dir.path().to_owned());
        let take_sample = |before| {
            ProcessIo::sample(&root, SampledTasks::Processes, before).unwrap_or_else(|e| panic!("{e}"))
        };
        // A shell with children: field 11 has the page faults of those that ended.
        let shell =
            |faults: u32| format!("7 (sh) S 1 7 7 0 -1 4194304 1 {faults} 0 0 30 12 0 0 20 0 1 0 5 1 2");
        put("proc/1/stat", &stat("init", 0, 1));
        put("proc/1/io", &io(0, 0));
        put("proc/7/stat", &shell(0));
        put("proc/7/io", &io(1_000, 0));
        put("proc/7/task/7/io", &io(1_000, 0));
        put("proc/8/stat", &stat("dd", 0, 6).replace(" S 1 ", " S 7 "));
        put("proc/8/io", &io(0, 5_000));
        put("proc/8/task/8/io", &io(0, 5_000));
        let first = take_sample(None);
        // dd moved 2,000 more bytes and ended. Another command, which began and ended between the samples, read 40. The shell itself read
        // 300.
        std::fs::remove_dir_all(dir.path().join("proc/8")).unwrap_or_else(|e| panic!("{e}"));
        put("proc/7/stat", &shell(9));
        put("proc/7/io", &io(1_300 + 40, 7_000));
        put("proc/7/task/7/io", &io(1_300, 0));
        let second = take_sample(Some(&first));
        let describe = |moved: Vec<TaskIo>| -> Vec<(u32, bool, u64, u64)> {
            moved
                .iter()
                .map(|m| (m.id, m.by_children, m.counters.read_bytes, m.counters.write_bytes))
                .collect()
        };
        assert_eq!(describe(second.io_since(&first)), [(7, false, 300, 0), (7, true, 40, 2_000)]);
        // No child has ended since, so all I/O is the shell's own, including that of its ended threads.
        put("proc/7/io", &io(1_840, 7_000));
        put("proc/7/task/7/io", &io(1_300, 0));
        assert_eq!(describe(take_sample(Some(&second)).io_since(&second)), [(7, false, 500, 0)]);
    }

    #[test]
    fn threads_belong_to_one_process_and_a_missing_process_is_an_error() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let root = Root::at(dir.path().to_owned());
        put(dir.path(), "proc/7/task/8/stat", &stat("worker", 0, 5));
        put(dir.path(), "proc/7/task/8/io", &io(1, 1));
        let sample =
            ProcessIo::sample(&root, SampledTasks::ThreadsOf(7), None).unwrap_or_else(|e| panic!("{e}"));
        let moved = sample.io_since(&ProcessIo::default());
        assert_eq!((moved.len(), moved[0].name.as_str(), sample.hidden()), (1, "worker", 0));
        put(dir.path(), "proc/7/task/8/stat", &stat("worker", 0, 5).replace(" S ", " Z "));
        let ended = ProcessIo::sample(&root, SampledTasks::ThreadsOf(7), None);
        assert!(ended.is_err_and(|why| why.contains("has ended")));
        let gone = ProcessIo::sample(&root, SampledTasks::ThreadsOf(9), None);
        assert!(gone.is_err_and(|why| why.contains("/proc/9/task: no such file")));
    }
}

#[cfg(test)]
mod open_files_tests {
    use super::*;
    use crate::fixture::{link, put};

    /// A process with these mappings that has a file of a watched file system open with these flags (octal).
    fn seen(flags: &str, maps: &str) -> Open {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("data/file", "x");
        let number = match identity::from_path(&dir.path().join("data/file")) {
            Ok(Identity::File { device, .. }) => device,
            other => panic!("{other:?}"),
        };
        put("sys/devices/block/sda/dev", &number);
        link(dir.path(), "../../devices/block/sda", &format!("sys/dev/block/{number}"));
        link(dir.path(), "../../devices/block/sda", "sys/class/block/sda");
        put("proc/self/mountinfo", &format!("20 1 {number} / / rw - ext4 /dev/sda rw\n"));
        link(dir.path(), &dir.path().join("data/file").to_string_lossy(), "proc/7/fd/3");
        put("proc/7/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t20\nino:\t5\n"));
        link(dir.path(), "pipe:[11]", "proc/7/fd/4");
        link(dir.path(), "socket:[12]", "proc/7/fd/5");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/3");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/4");
        link(dir.path(), "socket:[12]", "proc/7/task/7/fd/5");
        link(dir.path(), IO_URING_LINK, "proc/7/task/8/fd/9");
        put("proc/7/maps", &maps.replace("$DEVICE", &hex(&number)));
        let root = Root::at(dir.path().to_owned());
        let on = OnDevices::new(&root, vec![number]);
        open_flags_of_process(&root, 7, &on).unwrap_or_else(|e| panic!("{e}"))
    }

    fn hex(number: &str) -> String {
        let (major, minor) = number.split_once(':').unwrap_or_default();
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        format!("{:02x}:{:02x}", number(major), number(minor))
    }

    #[test]
    fn flags_of_descriptors_are_described_and_sockets_are_ignored() {
        let direct = format!("{:o}", (OFlags::RDWR | OFlags::DIRECT).bits() | O_DSYNC.cast_unsigned());
        assert_eq!(seen(&direct, "").describe(), "direct, sync, io_uring");
        assert_eq!(seen("0100000", "").describe(), "buffered, io_uring");
        let directory = format!("{:o}", OFlags::DIRECTORY.bits());
        assert_eq!(seen(&directory, "").describe(), "no file open here, io_uring");
        assert_eq!(seen("junk", "").files, 0);
    }

    #[test]
    fn data_mappings_are_reported_and_executed_ones_are_not() {
        let line =
            |permissions: &str, inode: u32| format!("7f00-7f01 {permissions} 0 $DEVICE {inode}   /data/x\n");
        assert!(seen("0100000", &line("rw-s", 42)).mmap);
        // A library has parts that are not executed.
        assert!(!seen("0100000", &(line("r--p", 42) + &line("r-xp", 42))).mmap);
        assert!(!seen("0100000", "7f00-7f01 rw-p 0 00:00 0 \njunk\n").mmap);
    }

    #[test]
    fn threads_and_mappings_that_are_not_read_are_reported() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let root = Root::at(dir.path().to_owned());
        let read = || open_flags_of_process(&root, 7, &OnDevices::default());
        link(dir.path(), "pipe:[11]", "proc/7/fd/4");
        for task in 0..MAX_THREADS {
            put(dir.path(), &format!("proc/7/task/{}/comm", 7 + task), "x\n");
        }
        assert!(read().is_err_and(|why| why.contains("no such file")));
        put(dir.path(), "proc/7/maps", "");
        assert_eq!(read().map(|open| open.may_be_incomplete), Ok(false));
        put(dir.path(), "proc/7/task/99/comm", "x\n");
        assert_eq!(read().map(|open| open.may_be_incomplete), Ok(true));
    }

    #[test]
    fn missing_permission_is_a_reason() {
        let nowhere = Root::at("/nonexistent-prefix".into());
        assert!(open_flags_of_process(&nowhere, 7, &OnDevices::default()).is_err());
    }
}
