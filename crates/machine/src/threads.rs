//! Names of threads (`/proc/*/comm`): the kernel's housekeeping threads, and the threads of this process.

use crate::processes;
use crate::root::Root;
use model::Known;
use std::collections::BTreeMap;

/// Name prefixes of kernel threads that do I/O on a file system or device although no process asked
/// for it. The threads of btrfs, f2fs and bcache exist as long as the file system or device does,
/// the others only while they work.
const HOUSEKEEPERS: [&str; 10] = [
    "ext4lazyinit",
    "btrfs-cleaner",
    "btrfs-transacti",
    "btrfs-balance",
    "btrfs-devrepla",
    "btrfs-uuid",
    "f2fs_gc",
    "f2fs_discard",
    "bcache_gc",
    "bcache_writebac",
];

/// Name suffixes of the threads of an array, after the array's name.
const ARRAY_SUFFIXES: [&str; 3] = ["_resync", "_reshape", "_recovery"];
/// A list of thread names longer than this many bytes is recorded again only if it has changed.
const MAX_REPEATED_BYTES: usize = 4096;

/// Returns the housekeeping threads that exist now, as `pid: name` lines.
///
/// # Errors
/// If the kernel's threads are not visible.
pub(crate) fn housekeepers(root: &Root) -> Known<String> {
    // On every kernel the second process has this name. If it is not visible, other kernel threads are not
    // visible either.
    if root.word("/proc/2/comm").as_deref() != Some("kthreadd") {
        return Err(
            "the kernel's threads are not visible from here: this is a container, or /proc hides them".into(),
        );
    }
    let mut out = String::new();
    for pid in kernel_threads(root)? {
        let Some(name) = root.word(&format!("/proc/{pid}/comm")).filter(|n| is_housekeeper(n)) else {
            continue;
        };
        // Any process may take such a name, so check that it is a kernel thread.
        if processes::read_stat(root, &format!("/proc/{pid}")).is_some_and(|stat| stat.is_kernel_thread) {
            out += &format!("{pid}: {name}\n");
        }
    }
    Ok(out)
}

/// Returns the ids of the children of `kthreadd`: all kernel threads. So a sample need not read the
/// names of thousands of processes. Returns the ids of all processes if the kernel keeps no lists of
/// children (`CONFIG_PROC_CHILDREN`).
fn kernel_threads(root: &Root) -> Known<Vec<String>> {
    if let Ok(children) = root.read("/proc/2/task/2/children") {
        return Ok(children.split_ascii_whitespace().map(str::to_owned).collect());
    }
    let mut ids = root.list("/proc")?;
    ids.retain(|name| name.bytes().all(|b| b.is_ascii_digit()));
    Ok(ids)
}

fn is_housekeeper(name: &str) -> bool {
    let array = || name.starts_with("md") && ARRAY_SUFFIXES.iter().any(|end| name.ends_with(end));
    HOUSEKEEPERS.iter().any(|begin| name.starts_with(begin)) || array()
}

/// The threads of this process and their names. A thread sets its name a moment after its start. So
/// a name is read in the first two samples with the thread, and then remembered. This keeps samples
/// cheap with many workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ours {
    /// For each thread id: the name, and how many times the name was read.
    known: BTreeMap<String, (String, u32)>,
    last: String,
}

impl Ours {
    /// Returns all threads of this process as `tid: name` lines; `None` if the list is longer than
    /// [`MAX_REPEATED_BYTES`] and unchanged.
    pub(crate) fn list_threads(&mut self, root: &Root) -> Option<Known<String>> {
        let ids = match root.list("/proc/self/task") {
            Ok(ids) => ids,
            Err(why) => return Some(Err(why)),
        };
        self.known.retain(|id, _| ids.binary_search(id).is_ok());
        let mut text = String::new();
        for id in ids {
            let (mut name, mut times) = self.known.remove(&id).unwrap_or_default();
            if times < 2 {
                // A thread that ended meanwhile is left out.
                let Some(read) = root.word(&format!("/proc/self/task/{id}/comm")) else { continue };
                (name, times) = (read, times + 1);
            }
            text += &format!("{id}: {name}\n");
            self.known.insert(id, (name, times));
        }
        if text == self.last && text.len() > MAX_REPEATED_BYTES {
            return None;
        }
        self.last.clone_from(&text);
        Some(Ok(text))
    }
}

/// Returns the ids of this process's threads that are called `name` and a number: the workers of a run.
///
/// # Errors
///
/// Why the threads cannot be listed.
pub fn numbered(root: &Root, name: &str) -> Known<Vec<u32>> {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let ids = root.list("/proc/self/task")?.into_iter();
    let named = |id: &String| {
        root.word(&format!("/proc/self/task/{id}/comm"))
            .is_some_and(|comm| comm.strip_prefix(name).is_some_and(is_number))
    };
    Ok(ids.filter(named).filter_map(|id| id.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::put;
    use std::fs;

    /// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
    const KERNEL_THREAD: u64 = 0x0020_0000;

    /// `/proc/PID/stat` of a process with these flags.
    fn stat(pid: u32, name: &str, flags: u64) -> String {
        format!("{pid} ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
    }

    #[test]
    fn housekeeping_threads_are_distinguished_from_others_and_from_impostors() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = Root::at(dir.path().to_owned());
        assert!(housekeepers(&root).is_err_and(|why| why.contains("container")));
        let threads = [
            (2, "kthreadd", KERNEL_THREAD),
            (70, "ext4lazyinit", KERNEL_THREAD | 0x40),
            (71, "md127_resync", KERNEL_THREAD),
            (72, "md127_raid1", KERNEL_THREAD),
            (73, "jbd2/vda-8", KERNEL_THREAD),
            (900, "ext4lazyinit", 0x0040_0000),
        ];
        for (pid, name, flags) in threads {
            put(dir.path(), &format!("proc/{pid}/comm"), &format!("{name}\n"));
            put(dir.path(), &format!("proc/{pid}/stat"), &stat(pid, name, flags));
        }
        put(dir.path(), "proc/900/stat", &stat(900, "a) S 2 0 0 0 -1 2097152 0", 0x0040_0000));
        let all = Ok("70: ext4lazyinit\n71: md127_resync\n".to_owned());
        assert_eq!(housekeepers(&root), all);
        // With a list of the kernel's threads no other process is read. A thread that has ended is skipped.
        put(dir.path(), "proc/2/task/2/children", "70 71 72 73 74 ");
        fs::remove_dir_all(dir.path().join("proc/900"))?;
        put(dir.path(), "proc/901/comm", "ext4lazyinit\n");
        put(dir.path(), "proc/901/stat", &stat(901, "ext4lazyinit", KERNEL_THREAD));
        assert_eq!(housekeepers(&root), all);
        put(dir.path(), "proc/2/task/2/children", "");
        assert_eq!(housekeepers(&root), Ok(String::new()));
        Ok(())
    }

    #[test]
    fn names_are_read_twice_and_then_remembered() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let root = Root::at(dir.path().to_owned());
        let mut ours = Ours::default();
        assert!(ours.list_threads(&root).is_some_and(|t| t.is_err()));
        put(dir.path(), "proc/self/task/10/comm", "fathom\n");
        put(dir.path(), "proc/self/task/11/comm", "fathom\n");
        assert_eq!(ours.list_threads(&root), Some(Ok("10: fathom\n11: fathom\n".to_owned())));
        put(dir.path(), "proc/self/task/11/comm", "iou-wrk-10\n");
        let named = Some(Ok("10: fathom\n11: iou-wrk-10\n".to_owned()));
        assert_eq!(ours.list_threads(&root), named);
        put(dir.path(), "proc/self/task/11/comm", "another\n");
        assert_eq!(ours.list_threads(&root), named);
        fs::remove_dir_all(dir.path().join("proc/self/task/11"))?;
        assert_eq!(ours.list_threads(&root), Some(Ok("10: fathom\n".to_owned())));
        Ok(())
    }

    #[test]
    fn workers_are_distinguished_from_other_threads_of_fathom() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let root = Root::at(dir.path().to_owned());
        assert!(numbered(&root, "fathom-").is_err());
        for (id, name) in
            [(10, "fathom"), (11, "fathom-signals"), (12, "fathom-0"), (13, "fathom-"), (14, "fathom-17")]
        {
            put(dir.path(), &format!("proc/self/task/{id}/comm"), &format!("{name}\n"));
        }
        assert_eq!(numbered(&root, "fathom-"), Ok(vec![12, 14]));
    }

    #[test]
    fn thousands_of_names_are_kept_once() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        (0..400).for_each(|id| put(dir.path(), &format!("proc/self/task/{id}/comm"), "fathom-7\n"));
        let (root, mut ours) = (Root::at(dir.path().to_owned()), Ours::default());
        assert!(ours.list_threads(&root).is_some() && ours.list_threads(&root).is_none());
        put(dir.path(), "proc/self/task/400/comm", "iou-wrk-3\n");
        assert!(ours.list_threads(&root).is_some_and(|t| t.is_ok_and(|t| t.contains("400: iou-wrk-3"))));
    }
}
