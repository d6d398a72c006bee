//! Who else is busy here: what every process computed and moved between two looks.
//!
//! For: names beside the load that the devices and the CPUs show. Not for: that load itself; processes that came and went
//! between the looks, and those of others, which only root may ask for their I/O, are in it and not here.

use crate::root::Root;
use model::Known;
use std::collections::BTreeMap;

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
