//! Which other programs have a file or device open for writing.
//!
//! For: the name of one of them, or what could not be seen. Not for: users in the kernel, such as mounts (that is `in_use`). Who
//! only reads uses nothing that writing could destroy under its hands.

use crate::error::describe;
use crate::root::Root;
use crate::usage::Use;
use crate::{file_systems, identity, others};
use model::machine::Identity;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Inode of the initial PID namespace: `PROC_PID_INIT_INO` of the kernel's `include/linux/proc_ns.h`, the same since Linux 3.8. Every
/// other namespace gets a number of its own.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";
/// Wait for files that the kernel is closing, before all processes are looked at. Those of a thread or a ring are closed a moment
/// after it has ended, and who asks before every run has just had them.
const SOON: Duration = Duration::from_millis(100);
/// Longest wait for them where no other process has the file open: a busy machine takes its time.
const CLOSING: Duration = Duration::from_secs(5);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// How often processes that hide their files are asked again, and the time between. A program that is being started can have other rights
/// for a moment.
const REPEATS: usize = 10;
const BETWEEN: Duration = Duration::from_millis(20);
/// Access mode of a descriptor that is open for reading only.
const READ_ONLY: u32 = 0;
/// Bits of the access mode.
const ACCESS_MODE: u32 = 3;

/// Programs that have an open file open for writing, or a mapping of it that they can write to. All processes are looked at only
/// where the kernel does not say that nobody has.
pub(crate) fn of_file(root: &Root, file: &File) -> Use {
    let ours = match identity::of_file(file) {
        Ok(ours) => [ours],
        Err(e) => return Use::Unseen(describe(&e)),
    };
    let asked = lease(file);
    let by_ourselves = || writes(root, std::process::id(), &ours).is_ok_and(|it_does| it_does);
    let is_open = || if asked.is_ok() { lease(file) != Ok(false) } else { by_ourselves() };
    if asked.is_ok() && !stays(is_open, SOON) {
        return Use::Nobody;
    }
    let seen = processes(root, &ours);
    if let Ok(Holders { writer: Some(who), .. }) = seen {
        return Use::By(format!("open for writing by {who}"));
    }
    if stays(is_open, CLOSING) {
        // Our own standard output may be such a descriptor.
        let ourselves = by_ourselves().then(|| others::name(root, std::process::id()));
        let who =
            ourselves.unwrap_or_else(|| "a program that is not visible from here, or by the kernel".into());
        return Use::By(format!("open for writing by {who}"));
    }
    match (seen, asked) {
        (_, Ok(_)) | (Ok(Holders { hidden: 0, init_is_hidden: false, .. }), Err(_)) => Use::Nobody,
        (Ok(Holders { hidden, init_is_hidden, .. }), Err(why)) => {
            Use::Unseen(format!("{why}, and {}", others_files(hidden + usize::from(init_is_hidden))))
        }
        (Err(also), Err(why)) => Use::Unseen(format!("{why}, and {also}")),
    }
}

/// Whether something is so for all of this time.
fn stays(is_so: impl Fn() -> bool, at_most: Duration) -> bool {
    let since = Instant::now();
    while is_so() {
        if since.elapsed() > at_most {
            return true;
        }
        std::thread::sleep(ASK_EVERY);
    }
    false
}

/// Programs that have one of these devices, or a file below them, open for writing. Leaves out this process, which claims them.
pub(crate) fn of_devices(root: &Root, all: &[Identity]) -> Use {
    let mut seen = processes(root, all);
    for _ in 0..REPEATS {
        if !matches!(seen, Ok(Holders { writer: None, hidden: 1.., .. })) {
            break;
        }
        std::thread::sleep(BETWEEN);
        seen = processes(root, all);
    }
    match (seen, sees_all_processes(root)) {
        (Ok(Holders { writer: Some(who), .. }), _) => Use::By(format!("open for writing by {who}")),
        (Ok(Holders { hidden: 0, init_is_hidden: false, .. }), Ok(())) => Use::Nobody,
        // The first process of the machine uses disks by mounting them, which the kernel shows. Some machines hide it from root.
        (Ok(Holders { hidden: 0, .. }), Ok(())) => {
            Use::Unseen("the open files of process 1 are hidden from this user".into())
        }
        (Ok(Holders { hidden, .. }), Ok(())) => Use::Hidden(others_files(hidden)),
        (Ok(_), Err(why)) | (Err(why), _) => Use::Hidden(why),
    }
}

/// Whether `/proc` can show the processes of the whole machine. Those outside a PID namespace are not listed inside.
fn sees_all_processes(root: &Root) -> Result<(), String> {
    let ours = root.link("/proc/self/ns/pid").map_err(|why| format!("/proc/self/ns/pid: {why}"))?;
    if ours == INITIAL_PID_NAMESPACE {
        return Ok(());
    }
    Err("this is a container: processes outside its PID namespace are not visible".into())
}

fn others_files(hidden: usize) -> String {
    format!("the open files of {hidden} or more processes are hidden from this user")
}

/// Whether the users of an open file may reach it by other ways than this kernel's own file systems: through a server, from another
/// host, or through the program that shows it here.
pub(crate) fn is_shared(file: &File) -> bool {
    // A file system that cannot be asked may be one of them.
    file_systems::is_shared(file).unwrap_or(true)
}

/// What the kernel knows of all who have it open. What others than this kernel may have open it cannot answer for.
fn lease(file: &File) -> Result<bool, String> {
    if file_systems::is_shared(file)? {
        return Err("its file system answers to others than this kernel too".into());
    }
    sys::lease::is_open_for_writing(file).map_err(|e| match e.kind() {
        io::ErrorKind::PermissionDenied => "only its owner may ask the kernel who has it open".into(),
        io::ErrorKind::InvalidInput => "its file system has no leases".into(),
        _ => describe(&e),
    })
}

/// What was seen of the processes.
struct Holders {
    /// The first that has it open for writing.
    writer: Option<String>,
    /// How many do not show their files, without process 1.
    hidden: usize,
    /// Whether process 1 is listed and does not show its files.
    init_is_hidden: bool,
}

/// Looks at the files of all processes but this one.
fn processes(root: &Root, what: &[Identity]) -> Result<Holders, String> {
    let names = root.list("/proc").map_err(|why| format!("/proc: {why}"))?;
    let own = std::process::id();
    let all: Vec<u32> = names.iter().filter_map(|n| n.parse().ok()).collect();
    if all.is_empty() {
        return Err("/proc shows no processes".into());
    }
    // Where others' processes are hidden altogether (hidepid), the first one is.
    let mut hidden = usize::from(!all.contains(&1));
    let mut init_is_hidden = false;
    for pid in all.into_iter().filter(|pid| *pid != own) {
        match writes(root, pid, what) {
            Ok(true) => {
                return Ok(Holders { writer: Some(others::name(root, pid)), hidden, init_is_hidden });
            }
            Ok(false) => {}
            // One that ended meanwhile has nothing open.
            Err(_) if !root.has(&format!("/proc/{pid}")) => {}
            Err(_) if pid == 1 => init_is_hidden = true,
            Err(_) => hidden += 1,
        }
    }
    Ok(Holders { writer: None, hidden, init_is_hidden })
}

/// Whether a process has one of these open for writing, or mapped so that it can be written.
fn writes(root: &Root, pid: u32, what: &[Identity]) -> Result<bool, String> {
    let is_it = |path: &str| {
        let found = identity::remembered(&root.path(path)).ok();
        found.is_some_and(|found| what.iter().any(|w| w.is_same(&found)))
    };
    // Threads may have files of their own.
    for task in root.list(&format!("/proc/{pid}/task"))? {
        let dir = format!("/proc/{pid}/task/{task}");
        let fds = match root.list(&format!("{dir}/fd")) {
            Ok(fds) => fds,
            // A thread that ended after it was listed has nothing open.
            Err(_) if !root.has(&dir) => continue,
            Err(why) => return Err(why),
        };
        if fds.iter().any(|fd| can_write(root, &dir, fd) && is_it(&format!("{dir}/fd/{fd}"))) {
            return Ok(true);
        }
    }
    // A mapping outlives the descriptor that it was made with.
    let maps = root.read(&format!("/proc/{pid}/maps"))?;
    let shared = maps.lines().filter_map(mapping).filter(|m| m.permissions == "rw-s");
    Ok(shared.into_iter().any(|m| {
        // Its numbers are those of the file system, which btrfs and overlays do not show as those of their files.
        is_it(&format!("/proc/{pid}/map_files/{}", m.range)) || what.contains(&m.file)
    }))
}

/// A line of `/proc/PID/maps`.
pub(crate) struct Mapping<'t> {
    range: &'t str,
    pub(crate) permissions: &'t str,
    pub(crate) file: Identity,
}

pub(crate) fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let (range, permissions, _offset) = (fields.next()?, fields.next()?, fields.next()?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
    let device = format!("{}:{}", number(major)?, number(minor)?);
    Some(Mapping { range, permissions, file: Identity::File { device, inode: fields.next()?.parse().ok()? } })
}

fn can_write(root: &Root, dir: &str, fd: &str) -> bool {
    let text = root.read(&format!("{dir}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|l| l.strip_prefix("flags:"));
    let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok());
    // What cannot be read is no proof that it only reads.
    flags.is_none_or(|f| f & ACCESS_MODE != READ_ONLY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{link, put};

    /// A machine with a process that has a file open with these flags, and these mappings.
    fn user(flags: &str, maps: &str) -> (tempfile::TempDir, Use) {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        put(dir.path(), "file", "x");
        let file = dir.path().join("file");
        let what = identity::of_path(&file).unwrap_or_else(|e| panic!("{e}"));
        for pid in [1, 7] {
            put(dir.path(), &format!("proc/{pid}/maps"), "");
            put(dir.path(), &format!("proc/{pid}/task/{pid}/fd/0"), "");
        }
        put(dir.path(), "proc/7/comm", "db\n");
        link(dir.path(), INITIAL_PID_NAMESPACE, "proc/self/ns/pid");
        // A thread with files of its own.
        link(dir.path(), &file.to_string_lossy(), "proc/7/task/8/fd/3");
        put(dir.path(), "proc/7/task/8/fdinfo/3", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n"));
        put(dir.path(), "proc/7/maps", maps);
        let device = Identity::File { device: "8:1".into(), inode: 42 };
        let found = of_devices(&Root::at(dir.path().to_owned()), &[what, device]);
        (dir, found)
    }

    #[test]
    fn who_can_write_is_named_and_who_only_reads_is_not() {
        let by = Use::By("open for writing by db (7)".into());
        assert_eq!(user("0100002", "").1, by);
        assert_eq!(user("0100001", "").1, by);
        assert_eq!(user("junk", "").1, by);
        assert_eq!(user("0100000", "").1, Use::Nobody);
        let line =
            |permissions: &str| format!("7f00-7f01 {permissions} 00000000 08:01 42      /gone (deleted)\n");
        assert_eq!(user("0100000", &line("rw-s")).1, by);
        assert_eq!(user("0100000", &line("rw-p")).1, Use::Nobody);
        assert_eq!(user("0100000", "junk\n\n7f00-7f01 rw-s\n7f-8 rw-s 0 zz:01 x y\n").1, Use::Nobody);
    }

    #[test]
    fn what_is_hidden_is_no_nobody() {
        let (dir, _) = user("0100000", "");
        let root = Root::at(dir.path().to_owned());
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        assert_eq!(of_devices(&root, &file), Use::Nobody);
        put(dir.path(), "proc/9/comm", "x");
        assert!(matches!(of_devices(&root, &file), Use::Hidden(why) if why.contains("files of 1")));
        std::fs::remove_dir_all(dir.path().join("proc/9")).unwrap_or_else(|e| panic!("{e}"));
        // Process 1 alone may keep its files to itself, but has to be there: else all others are hidden.
        std::fs::remove_dir_all(dir.path().join("proc/1/task")).unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(of_devices(&root, &file), Use::Unseen(why) if why.contains("process 1")));
        std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap_or_else(|e| panic!("{e}"));
        assert!(matches!(of_devices(&root, &file), Use::Hidden(_)));
        assert!(matches!(of_devices(&Root::at("/nonexistent-prefix".into()), &file), Use::Hidden(_)));
    }

    #[test]
    fn a_thread_that_ends_while_it_is_looked_at_hides_nothing_and_one_that_hides_its_files_does() {
        let (dir, _) = user("0100000", "");
        let root = Root::at(dir.path().to_owned());
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        // Listed, and then gone.
        link(dir.path(), "/gone", "proc/7/task/9");
        assert_eq!(of_devices(&root, &file), Use::Nobody);
        put(dir.path(), "proc/7/task/10/comm", "db\n");
        assert!(matches!(of_devices(&root, &file), Use::Hidden(_)));
    }

    #[test]
    fn a_pid_namespace_hides_users_and_so_does_a_proc_that_does_not_name_it() {
        let file = [Identity::File { device: "0:0".into(), inode: 0 }];
        for namespace in [Some("pid:[4026532177]"), None] {
            let (dir, _) = user("0100000", "");
            let ours = dir.path().join("proc/self/ns/pid");
            std::fs::remove_file(&ours).unwrap_or_else(|e| panic!("{e}"));
            if let Some(namespace) = namespace {
                link(dir.path(), namespace, "proc/self/ns/pid");
            }
            let found = of_devices(&Root::at(dir.path().to_owned()), &file);
            assert!(matches!(found, Use::Hidden(_)), "{namespace:?}: {found:?}");
        }
        // A user that is seen is named wherever this runs.
        let (dir, by) = user("0100002", "");
        std::fs::remove_file(dir.path().join("proc/self/ns/pid")).unwrap_or_else(|e| panic!("{e}"));
        let what = identity::of_path(&dir.path().join("file")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(of_devices(&Root::at(dir.path().to_owned()), &[what]), by);
    }
}
