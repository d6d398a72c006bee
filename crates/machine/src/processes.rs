//! Who else is busy here: what every process computed and moved between two looks.
//!
//! For: names beside the load that the devices and the CPUs show. Not for: that load itself; processes that came and went
//! between the looks, and those of others, which only root may ask for their I/O, are in it and not here.

use crate::identity;
use crate::in_use::mapping;
use crate::resolve::OnDevices;
use crate::root::Root;
use model::Known;
use model::identity::Identity;
use model::watch::Open;
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use sys::open_flags::O_DSYNC;

/// Process id and the tick at which it began: together never the same for two processes.
type Id = (u32, u64);

/// All processes at one moment.
#[derive(Clone, Debug)]
pub struct Processes {
    all: BTreeMap<Id, Process>,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    cpu_ticks: u64,
    /// Bytes fetched from and sent to storage by it and its ended children; `None` where we may not ask.
    io_bytes: Option<u64>,
    /// Grows when a child ends: its counters are added to those of its parent then.
    children_faults: u64,
}

/// A process that did something between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Process id.
    pub pid: u32,
    /// Name, as `ps -o comm` shows it. If children of it ended between the looks, the bytes are theirs too, and the name says so.
    pub name: String,
    /// CPU time, ms.
    pub cpu_ms: u64,
    /// Bytes that it caused to be read and written; `None` where we may not ask. What it wrote counts when it is made dirty, not
    /// when it is written.
    pub io_bytes: Option<u64>,
}

impl Processes {
    /// Looks at all of them.
    ///
    /// # Errors
    /// Why `/proc` cannot be listed.
    pub fn list(root: &Root) -> Known<Self> {
        let names = root.list("/proc").map_err(|why| format!("/proc: {why}"))?;
        let pids = names.iter().filter_map(|n| n.parse::<u32>().ok());
        // One that is gone by now has nothing to tell.
        let all = pids.filter_map(|pid| process(root, pid)).collect();
        Ok(Self { all })
    }

    /// Those that did something since `earlier`, except ourselves.
    pub fn busy_since(&self, earlier: &Self) -> Vec<Busy> {
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        let ours = std::process::id();
        let one = |(id, now): (&Id, &Process)| {
            let before = earlier.all.get(id)?;
            let ticks = now.cpu_ticks.saturating_sub(before.cpu_ticks);
            let io_bytes = now.io_bytes.zip(before.io_bytes).map(|(b, a)| b.saturating_sub(a));
            (id.0 != ours && (ticks > 0 || io_bytes.is_some_and(|b| b > 0))).then(|| Busy {
                pid: id.0,
                name: if now.children_faults > before.children_faults {
                    format!("{} and its ended children", now.name)
                } else {
                    now.name.clone()
                },
                cpu_ms: ticks.saturating_mul(1000) / ticks_per_s,
                io_bytes,
            })
        };
        self.all.iter().filter_map(one).collect()
    }

    /// Processes whose I/O we may not ask for.
    pub fn hidden(&self) -> usize {
        self.all.values().filter(|p| p.io_bytes.is_none()).count()
    }
}

/// A process as people look for it: `dd (7)`.
pub fn name(root: &Root, pid: u32) -> String {
    match root.word(&format!("/proc/{pid}/comm")) {
        Some(comm) => format!("{comm} ({pid})"),
        None => format!("process {pid}"),
    }
}

fn process(root: &Root, pid: u32) -> Option<(Id, Process)> {
    let Stat { name, cpu_ticks, began, children_faults, .. } =
        parse_stat(&root.read(&format!("/proc/{pid}/stat")).ok()?)?;
    let io_bytes = root.read(&format!("/proc/{pid}/io")).ok().and_then(|text| parse_storage_bytes(&text));
    Some(((pid, began), Process { name, cpu_ticks, io_bytes, children_faults }))
}

/// What `/proc/PID/stat` says of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// As `ps -o comm` shows it.
    pub(crate) name: String,
    /// Process id of its parent.
    pub(crate) parent: u32,
    /// Page faults of its ended children, and of theirs; they are added when a parent takes note of the end of a child.
    pub(crate) children_faults: u64,
    /// CPU time in ticks.
    pub(crate) cpu_ticks: u64,
    /// Tick of its beginning.
    pub(crate) began: u64,
    /// Whether it is a thread of the kernel.
    pub(crate) kernel: bool,
    /// Whether it has ended, and nobody has taken note of that yet.
    pub(crate) ended: bool,
}

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads `/proc/PID/stat` (`proc_pid_stat(5)`).
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in brackets and may itself hold brackets and blanks.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    // Fields 3, 4, 9, 11, 13, 14, 15 and 22 of the line; the first after the name is field 3.
    Some(Stat {
        name,
        parent: u32::try_from(number(1)?).ok()?,
        children_faults: number(8)?.saturating_add(number(10)?),
        cpu_ticks: number(11)?.saturating_add(number(12)?),
        began: number(19)?,
        kernel: number(6)? & KERNEL_THREAD != 0,
        ended: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

fn parse_storage_bytes(text: &str) -> Option<u64> {
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok());
    Some(value("read_bytes:")?.saturating_add(value("write_bytes:")?))
}

/// `/proc/PID/io`, or a difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Bytes that calls read, from wherever.
    pub rchar: u64,
    /// Bytes that calls wrote, to wherever.
    pub wchar: u64,
    /// Calls that read.
    pub read_calls: u64,
    /// Calls that write.
    pub write_calls: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes made dirty or sent to storage.
    pub write_bytes: u64,
    /// Bytes that were cut off while they were dirty.
    pub cancelled_write_bytes: u64,
}

/// Page faults since a process or a thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Those that had to wait for storage.
    pub major: u64,
    /// All others.
    pub minor: u64,
}

/// The page faults of a process, or of one of its threads; `None` where it is gone.
pub fn faults(root: &Root, pid: u32, tid: Option<u32>) -> Option<Faults> {
    let path = tid.map_or_else(|| format!("/proc/{pid}/stat"), |tid| format!("/proc/{pid}/task/{tid}/stat"));
    let text = root.read(&path).ok()?;
    // The name may hold anything; behind it stands field 3 of the line, faults are fields 10 and 12.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(7);
    let minor = fields.next()?.parse().ok()?;
    let major = fields.nth(1)?.parse().ok()?;
    Some(Faults { major, minor })
}

/// Descriptors that are looked at; a process with more is told with what these say.
const MOST_DESCRIPTORS: usize = 256;
/// Threads that are looked at.
const MOST_THREADS: usize = 64;
/// Where the link of a ring leads.
const RING: &str = "anon_inode:[io_uring]";

/// Looks at a process.
///
/// # Errors
/// Why its descriptors may not be seen.
pub fn open_flags_of_process(root: &Root, pid: u32, on: &OnDevices) -> Known<Open> {
    let dir = format!("/proc/{pid}");
    let names = root.list(&format!("{dir}/fd"))?;
    let mut open = Open::default();
    let mut left = MOST_DESCRIPTORS;
    table(root, &dir, &names, on, &mut open, &mut left);
    // Threads may have descriptors of their own; a table with the same numbers is taken for the same one.
    for task in root.list(&format!("{dir}/task")).unwrap_or_default().iter().take(MOST_THREADS) {
        let task = format!("{dir}/task/{task}");
        let own = root.list(&format!("{task}/fd")).unwrap_or_default();
        if own != names {
            table(root, &task, &own, on, &mut open, &mut left);
        }
    }
    open.mmap = root.read(&format!("{dir}/maps")).is_ok_and(|text| is_mapped(&text, on));
    Ok(open)
}

fn table(root: &Root, dir: &str, names: &[String], on: &OnDevices, open: &mut Open, left: &mut usize) {
    for name in names {
        let Some(less) = left.checked_sub(1) else {
            open.cut = true;
            return;
        };
        *left = less;
        descriptor(root, dir, name, on, open);
    }
}

fn descriptor(root: &Root, dir: &str, name: &str, on: &OnDevices, open: &mut Open) {
    let at = format!("{dir}/fd/{name}");
    let Ok(leads_to) = root.link(&at) else { return };
    if leads_to == RING {
        open.io_uring = true;
    }
    // Sockets, pipes and other nameless things have no path.
    if !leads_to.starts_with('/') {
        return;
    }
    let Ok(what) = identity::remembered(&root.path(&at)) else { return };
    let info = root.read(&format!("{dir}/fdinfo/{name}")).unwrap_or_default();
    let word = |key: &str| info.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
    let is_here = match &what {
        Identity::Device { number, .. } => on.is_device(number),
        Identity::File { device, .. } => on.holds(device, word("mnt_id:").and_then(|id| id.parse().ok())),
    };
    let flags = word("flags:").and_then(|f| u32::from_str_radix(f, 8).ok());
    let Some(flags) = flags.map(OFlags::from_bits_retain).filter(|_| is_here) else { return };
    // A directory, and what is open as a name only, move no data.
    if flags.intersects(OFlags::DIRECTORY | OFlags::PATH) {
        return;
    }
    open.files += 1;
    let direct = flags.contains(OFlags::DIRECT);
    open.direct |= direct;
    open.buffered |= !direct;
    open.sync |= flags.bits().cast_signed() & O_DSYNC != 0;
}

/// Whether a file there is mapped of which nothing is executed: programs and libraries are mapped everywhere.
fn is_mapped(maps: &str, on: &OnDevices) -> bool {
    let all = || maps.lines().filter_map(mapping);
    let number = |file: &Identity| match file {
        Identity::File { device, inode } if *inode > 0 => Some((device.clone(), *inode)),
        _ => None,
    };
    let executed = all().filter(|m| m.permissions.contains('x'));
    let executed: BTreeSet<(String, u64)> = executed.filter_map(|m| number(&m.file)).collect();
    let mut others = all().filter_map(|m| number(&m.file)).filter(|file| !executed.contains(file));
    others.any(|(device, _)| on.holds(&device, None))
}

/// Whose counters are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Every process, with all of its threads together.
    Processes,
    /// Each thread of this process.
    ThreadsOf(u32),
}

/// All of them at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessIo {
    all: BTreeMap<u32, Reading>,
    hidden: usize,
}

#[derive(Clone, Debug)]
struct Reading {
    stat: Stat,
    counters: IoCounters,
    /// The sum over its threads that are alive, without ended threads and children; all of it where no child ended.
    threads: IoCounters,
}

/// What one did between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Process or thread id.
    pub id: u32,
    /// Name, as `ps -o comm` shows it.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub kernel: bool,
    /// Whether its ended children, or ended threads next to these, did it, and not the process itself.
    pub by_children: bool,
    /// What it did.
    pub counters: IoCounters,
}

impl ProcessIo {
    /// Looks. What the look before knows of one that did nothing since is taken over.
    ///
    /// # Errors
    /// Why they cannot be listed: of [`Whose::ThreadsOf`], that there is no such process.
    pub fn sample(root: &Root, whose: Whose, before: Option<&Self>) -> Known<Self> {
        let dir = match whose {
            Whose::Processes => "/proc".to_owned(),
            Whose::ThreadsOf(pid) => format!("/proc/{pid}/task"),
        };
        let names = root.list(&dir).map_err(|why| format!("{dir}: {why}"))?;
        let ids: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
        // A process that has ended keeps its first thread until its parent has taken note.
        if let (Whose::ThreadsOf(_), [only]) = (whose, &ids[..])
            && stat(root, &dir, *only).is_some_and(|stat| stat.ended)
        {
            return Err(format!("{dir}/{only}: it has ended"));
        }
        // Where others' processes are hidden altogether (hidepid), the first one is.
        let all_hidden = whose == Whose::Processes && !ids.contains(&1);
        let mut look = Self { all: BTreeMap::new(), hidden: usize::from(all_hidden) };
        for id in ids {
            let text = root.read(&format!("{dir}/{id}/io"));
            let Some(counters) = text.as_deref().ok().and_then(parse_io_counters) else {
                // One that ended meanwhile hides nothing.
                look.hidden += usize::from(root.has(&format!("{dir}/{id}")));
                continue;
            };
            let known = before.and_then(|b| b.all.get(&id)).filter(|seen| seen.counters == counters);
            if let Some(known) = known {
                look.all.insert(id, known.clone());
            } else if let Some(stat) = stat(root, &dir, id) {
                // Without ended children all of it is its own, and there is no need to ask each thread.
                let has_children = whose == Whose::Processes && stat.children_faults > 0;
                let threads = if has_children { of_threads(root, id) } else { counters };
                look.all.insert(id, Reading { stat, counters, threads });
            }
        }
        Ok(look)
    }

    /// Those that did something since `before`. One that began meanwhile has done all of it since.
    pub fn moved_since(&self, before: &Self) -> Vec<Moved> {
        let mut out = Vec::new();
        for (id, now) in &self.all {
            let earlier = before.all.get(id).filter(|seen| seen.stat.began == now.stat.began);
            let Some(all) = now.counters.since(&earlier.map(|seen| seen.counters).unwrap_or_default()) else {
                continue;
            };
            let waited = now.stat.children_faults > earlier.map_or(0, |seen| seen.stat.children_faults);
            let (own, of_children) = if waited {
                let threads = now.threads.less(&earlier.map(|seen| seen.threads).unwrap_or_default());
                let own = threads.at_most(&all);
                (
                    own,
                    self.gone_since(before, *id).fold(all.less(&own), |rest, seen| rest.less(&seen.counters)),
                )
            } else {
                (all, IoCounters::default())
            };
            for (counters, by_children) in [(own, false), (of_children, true)] {
                if counters != IoCounters::default() {
                    let (name, kernel) = (now.stat.name.clone(), now.stat.kernel);
                    out.push(Moved { id: *id, name, kernel, by_children, counters });
                }
            }
        }
        out
    }

    /// Children of a process that `before` has and this snapshot has not.
    fn gone_since<'b>(&self, before: &'b Self, parent: u32) -> impl Iterator<Item = &'b Reading> {
        let is_gone = |(id, seen): &(&u32, &Reading)| {
            seen.stat.parent == parent && self.all.get(id).is_none_or(|now| now.stat.began != seen.stat.began)
        };
        before.all.iter().filter(is_gone).map(|(_, seen)| seen).collect::<Vec<_>>().into_iter()
    }

    /// One that is there, as one that moved nothing.
    pub fn still(&self, id: u32) -> Option<Moved> {
        let seen = self.all.get(&id)?;
        let (name, kernel) = (seen.stat.name.clone(), seen.stat.kernel);
        Some(Moved { id, name, kernel, by_children: false, counters: IoCounters::default() })
    }

    /// How many may not be asked by this user, at least.
    pub fn hidden(&self) -> usize {
        self.hidden
    }
}

impl IoCounters {
    /// Bytes of storage, both directions.
    pub fn storage_bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.write_bytes)
    }

    /// Each counter of both, by `of`.
    fn each(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            rchar: of(self.rchar, other.rchar),
            wchar: of(self.wchar, other.wchar),
            read_calls: of(self.read_calls, other.read_calls),
            write_calls: of(self.write_calls, other.write_calls),
            read_bytes: of(self.read_bytes, other.read_bytes),
            write_bytes: of(self.write_bytes, other.write_bytes),
            cancelled_write_bytes: of(self.cancelled_write_bytes, other.cancelled_write_bytes),
        }
    }

    fn less(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn at_most(&self, other: &Self) -> Self {
        self.each(other, u64::min)
    }

    /// `self - earlier`; `None` where a counter went backwards.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            rchar: self.rchar.checked_sub(earlier.rchar)?,
            wchar: self.wchar.checked_sub(earlier.wchar)?,
            read_calls: self.read_calls.checked_sub(earlier.read_calls)?,
            write_calls: self.write_calls.checked_sub(earlier.write_calls)?,
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            write_bytes: self.write_bytes.checked_sub(earlier.write_bytes)?,
            cancelled_write_bytes: self.cancelled_write_bytes.checked_sub(earlier.cancelled_write_bytes)?,
        })
    }
}

/// What this process's ended children moved up to now, with all of their own: its counters without those of its threads.
///
/// # Errors
/// Returns why `/proc/self/io` cannot be read.
pub fn of_this_process(root: &Root) -> Known<IoCounters> {
    let pid = std::process::id();
    let of_threads = of_threads(root, pid);
    let path = "/proc/self/io";
    let whole = parse_io_counters(&root.read(path)?).ok_or_else(|| format!("{path} is not understood"))?;
    Ok(whole.less(&of_threads))
}

fn stat(root: &Root, dir: &str, id: u32) -> Option<Stat> {
    parse_stat(&root.read(&format!("{dir}/{id}/stat")).ok()?)
}

/// The sum over the threads of a process that are alive. One that ends meanwhile is left out.
fn of_threads(root: &Root, pid: u32) -> IoCounters {
    let dir = format!("/proc/{pid}/task");
    let threads = root.list(&dir).unwrap_or_default();
    let counters =
        threads.iter().filter_map(|tid| parse_io_counters(&root.read(&format!("{dir}/{tid}/io")).ok()?));
    counters.fold(IoCounters::default(), |sum, one| sum.each(&one, u64::saturating_add))
}

fn parse_io_counters(text: &str) -> Option<IoCounters> {
    let mut found = IoCounters::default();
    let mut seen = 0;
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
        seen += 1;
    }
    (seen == 7).then_some(found)
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
    fn names_with_brackets_are_read_and_broken_lines_are_none() {
        let stat = Stat {
            name: "a) b".to_owned(),
            parent: 1,
            children_faults: 6,
            cpu_ticks: 42,
            began: 991,
            kernel: false,
            ended: false,
        };
        assert_eq!(parse_stat(STAT), Some(stat));
        assert!(parse_stat(&STAT.replace("4194560", "69238880")).is_some_and(|stat| stat.kernel));
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
        assert_eq!(parse_storage_bytes("rchar: 1\nread_bytes: 8\nwrite_bytes: 4\n"), Some(12));
        assert_eq!(parse_storage_bytes("rchar: 1\n"), None);
    }

    #[test]
    fn what_a_process_did_between_two_looks_is_told_and_a_reused_number_is_not() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |pid: u32, stat: &str, io: Option<&str>| {
            let at = dir.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&at).unwrap_or_else(|e| panic!("{e}"));
            std::fs::write(at.join("stat"), stat).unwrap_or_else(|e| panic!("{e}"));
            if let Some(io) = io {
                std::fs::write(at.join("io"), io).unwrap_or_else(|e| panic!("{e}"));
            }
        };
        let root = Root::at(dir.path().to_owned());
        put(7, STAT, Some("read_bytes: 0\nwrite_bytes: 0\n"));
        put(8, STAT, None);
        put(9, STAT, None);
        let first = Processes::list(&root).unwrap_or_else(|e| panic!("{e}"));
        put(7, STAT, Some("read_bytes: 4096\nwrite_bytes: 0\n"));
        put(8, &STAT.replace("30 12", "31 13"), None);
        put(9, &STAT.replace("30 12", "99 99").replace("991", "992"), None);
        let second = Processes::list(&root).unwrap_or_else(|e| panic!("{e}"));
        let busy = second.busy_since(&first);
        let ticks = rustix::param::clock_ticks_per_second();
        assert_eq!(busy.len(), 2, "{busy:?}");
        assert_eq!((busy[0].pid, busy[0].io_bytes, busy[0].cpu_ms), (7, Some(4096), 0));
        assert_eq!((busy[1].pid, busy[1].io_bytes, busy[1].cpu_ms), (8, None, 2000 / ticks));
        assert_eq!(second.hidden(), 2);
        // The faults and the bytes of a child that ended are added to its parent's.
        put(7, &STAT.replace("1 2 3 4 30", "1 9 3 4 30"), Some("read_bytes: 8192\nwrite_bytes: 0\n"));
        let third = Processes::list(&root).unwrap_or_else(|e| panic!("{e}"));
        let busy = third.busy_since(&second);
        assert_eq!((busy[0].pid, busy[0].name.as_str()), (7, "a) b and its ended children"));
        assert!(Processes::list(&Root::at("/nonexistent-prefix".into())).is_err());
    }
}

#[cfg(test)]
mod process_io_tests {
    use super::*;
    use crate::fixture::put;

    fn stat(name: &str, flags: u32, began: u64) -> String {
        format!("7 ({name}) S 1 7 7 0 -1 {flags} 1 2 3 4 30 12 0 0 20 0 1 0 {began} 1 2")
    }

    fn io(read_bytes: u64, write_bytes: u64) -> String {
        format!(
            "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: {read_bytes}\nwrite_bytes: {write_bytes}\n\
             cancelled_write_bytes: 0\n"
        )
    }

    #[test]
    fn who_moved_data_is_told_a_reused_number_begins_anew_and_what_is_hidden_is_counted() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let root = Root::at(dir.path().to_owned());
        let look =
            |before| ProcessIo::sample(&root, Whose::Processes, before).unwrap_or_else(|e| panic!("{e}"));
        put("proc/1/stat", &stat("init", 0, 1));
        put("proc/1/io", &io(0, 0));
        for (pid, name) in [(7, "dd"), (8, "old"), (9, "still")] {
            put(&format!("proc/{pid}/stat"), &stat(name, 0x0040_0000, 5));
            put(&format!("proc/{pid}/io"), &io(4096, 4096));
        }
        put("proc/10/stat", &stat("hidden", 0, 5));
        let first = look(None);
        assert_eq!(first.hidden(), 1);
        put("proc/7/io", &io(12_288, 4096));
        put("proc/8/io", &io(100, 0));
        put("proc/8/stat", &stat("new) one", 0, 6));
        put("proc/11/stat", &stat("kworker/0:1", 0x0420_8060, 9));
        put("proc/11/io", &io(512, 0));
        // Of what did nothing the counters alone are read: what else it says now is not noticed.
        put("proc/9/stat", "junk");
        let moved = look(Some(&first)).moved_since(&first);
        let told: Vec<(u32, &str, u64, u64, bool)> = moved
            .iter()
            .map(|m| (m.id, m.name.as_str(), m.counters.read_bytes, m.counters.write_bytes, m.kernel))
            .collect();
        assert_eq!(
            told,
            [(7, "dd", 8192, 0, false), (8, "new) one", 100, 0, false), (11, "kworker/0:1", 512, 0, true)]
        );
        assert_eq!(parse_io_counters("rchar: 1\n"), None);
    }

    #[test]
    fn what_ended_children_moved_is_not_their_parents_and_counts_once() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let root = Root::at(dir.path().to_owned());
        let look =
            |before| ProcessIo::sample(&root, Whose::Processes, before).unwrap_or_else(|e| panic!("{e}"));
        // A shell with children, of which field 11 has the page faults once they ended.
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
        let first = look(None);
        // dd moved 2,000 more and ended; another command began and ended between the snapshots; the shell read 300 itself.
        std::fs::remove_dir_all(dir.path().join("proc/8")).unwrap_or_else(|e| panic!("{e}"));
        put("proc/7/stat", &shell(9));
        put("proc/7/io", &io(1_300 + 40, 7_000));
        put("proc/7/task/7/io", &io(1_300, 0));
        let second = look(Some(&first));
        let told = |moved: Vec<Moved>| -> Vec<(u32, bool, u64, u64)> {
            moved
                .iter()
                .map(|m| (m.id, m.by_children, m.counters.read_bytes, m.counters.write_bytes))
                .collect()
        };
        assert_eq!(told(second.moved_since(&first)), [(7, false, 300, 0), (7, true, 40, 2_000)]);
        // No child ended since: all of it is its own, and a thread that ended takes nothing from it.
        put("proc/7/io", &io(1_840, 7_000));
        put("proc/7/task/7/io", &io(1_300, 0));
        assert_eq!(told(look(Some(&second)).moved_since(&second)), [(7, false, 500, 0)]);
    }

    #[test]
    fn threads_are_those_of_one_process_and_one_that_is_not_there_is_said() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let root = Root::at(dir.path().to_owned());
        put(dir.path(), "proc/7/task/8/stat", &stat("worker", 0, 5));
        put(dir.path(), "proc/7/task/8/io", &io(1, 1));
        let look = ProcessIo::sample(&root, Whose::ThreadsOf(7), None).unwrap_or_else(|e| panic!("{e}"));
        let moved = look.moved_since(&ProcessIo::default());
        assert_eq!((moved.len(), moved[0].name.as_str(), look.hidden()), (1, "worker", 0));
        put(dir.path(), "proc/7/task/8/stat", &stat("worker", 0, 5).replace(" S ", " Z "));
        let ended = ProcessIo::sample(&root, Whose::ThreadsOf(7), None);
        assert!(ended.is_err_and(|why| why.contains("has ended")));
        let gone = ProcessIo::sample(&root, Whose::ThreadsOf(9), None);
        assert!(gone.is_err_and(|why| why.contains("/proc/9/task: no such file")));
    }
}

#[cfg(test)]
mod open_files_tests {
    use super::*;
    use crate::fixture::{link, put};

    /// A process with a descriptor of these flags (octal) on a watched file system, and these mappings.
    fn seen(flags: &str, maps: &str) -> Open {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put("data/file", "x");
        let number = match identity::of_path(&dir.path().join("data/file")) {
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
        link(dir.path(), RING, "proc/7/task/8/fd/9");
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
    fn flags_of_descriptors_are_told_in_words_and_sockets_are_no_files() {
        let direct = format!("{:o}", (OFlags::RDWR | OFlags::DIRECT).bits() | O_DSYNC.cast_unsigned());
        assert_eq!(seen(&direct, "").describe(), "direct, sync, io_uring");
        assert_eq!(seen("0100000", "").describe(), "buffered, io_uring");
        let directory = format!("{:o}", OFlags::DIRECTORY.bits());
        assert_eq!(seen(&directory, "").describe(), "no file open here, io_uring");
        assert_eq!(seen("junk", "").files, 0);
    }

    #[test]
    fn what_is_mapped_and_not_executed_is_told() {
        let line =
            |permissions: &str, inode: u32| format!("7f00-7f01 {permissions} 0 $DEVICE {inode}   /data/x\n");
        assert!(seen("0100000", &line("rw-s", 42)).mmap);
        // A library has parts that are not executed.
        assert!(!seen("0100000", &(line("r--p", 42) + &line("r-xp", 42))).mmap);
        assert!(!seen("0100000", "7f00-7f01 rw-p 0 00:00 0 \njunk\n").mmap);
    }

    #[test]
    fn what_may_not_be_seen_is_a_reason() {
        let nowhere = Root::at("/nonexistent-prefix".into());
        assert!(open_flags_of_process(&nowhere, 7, &OnDevices::default()).is_err());
    }
}
