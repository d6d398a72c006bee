//! What processes, or the threads of one, had read and written up to a moment, by `/proc/PID/io` (`proc_pid_io(5)`).
//!
//! Two snapshots are compared. For a process that moved nothing only that one file is read. How processes have files open is in
//! [`crate::open_files`], their CPU time in [`crate::others`].
//!
//! When a child has ended and its parent takes note of that (`wait`), the kernel adds all that the child ever moved to the counters of the
//! parent. So a shell seems to move what its commands moved. Three steps tell both apart:
//! 1. the page faults of ended children in `/proc/PID/stat` grow exactly when that happens;
//! 2. then only the counters of the process's own threads, `/proc/PID/task/*/io`, are its own part, since they hold nothing of children;
//! 3. the rest was moved by ended children, less what the snapshot before had seen of them under their own ids.
//!
//! Bytes of writes count where they are made dirty, and count for whoever did that; what is written back later is charged to nobody
//! here, or as I/O of its own to a thread of the kernel.

use crate::others::{Stat, parse_stat};
use crate::root::Root;
use model::Known;
use std::collections::BTreeMap;

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

#[test]
fn this_process_had_faults() {
    let own = faults(&Root::real(), std::process::id(), None);
    assert!(own.is_some_and(|faults| faults.minor > 0), "{own:?}");
    assert_eq!(faults(&Root::real(), u32::MAX, None), None);
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
    let counters = threads.iter().filter_map(|tid| parse_io_counters(&root.read(&format!("{dir}/{tid}/io")).ok()?));
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

#[cfg(test)]
mod tests {
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
