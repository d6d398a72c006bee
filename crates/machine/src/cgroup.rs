//! Cgroups: one for fathom alone, so that the kernel counts fathom's I/O separately, and the limits of the cgroups above.
//!
//! [`enter`] works in three steps:
//! 1. Find the present cgroup in the hierarchy with the I/O controller.
//! 2. Create a cgroup below the present one, so that every limit still binds. Version 1 does not pass limits on to lower cgroups, so
//!    copy them.
//! 3. Move the whole process, before it starts a thread or an operation that is to be counted.
//!
//! [`leave_now`] moves the process back and removes the cgroup.
//!
//! The second half of the file reads limits on I/O, CPU time and memory, finds the file that counts the throttled CPU time, and finds the
//! memory limit that leaves the least room.

use crate::error::describe;
use crate::file_systems;
use crate::file_systems::Mount;
use crate::root::Root;
use crate::test_file::unique;
use model::evidence::UNREADABLE_LIMIT;
use model::machine::Cgroup;
use model::{Known, name};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A limit so high that it limits no device, in bytes per second. In version 1, recent kernels count the I/O only of
/// devices with a limit. After a thousand direct reads, Linux 6.18 showed "Total 0" without a limit, and a thousand with a limit.
pub(crate) const NO_LIMIT: u64 = 1 << 40;
/// Prefix of the cgroups that fathom creates. The process id and a random number follow.
const PREFIX: &str = "fathom-";
/// Maximum number of attempts to remove a cgroup. An attempt fails while one of fathom's threads is
/// leaving the cgroup.
const MAX_REMOVALS: u32 = 20;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(5);
const V1_IO_FILES: [&str; 2] = ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"];
/// File names of version 1's limits, without the prefix `blkio.throttle.`. A limit on a cgroup does
/// not bind the cgroups below it.
pub(crate) const V1_LIMITS: [&str; 4] =
    ["read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device"];
const V2_IO_FILES: [&str; 1] = ["io.stat"];
/// The cgroup that this process entered. Dropping [`OwnCgroup`] and a forced exit both take the
/// value from here, so only one of them leaves the cgroup.
static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

/// The changes that [`enter`] made and [`leave`] undoes.
struct Entered {
    dir: PathBuf,
    parent: PathBuf,
    /// Whether fathom enabled the io controller below `parent`. If so, fathom disables it before it
    /// leaves the cgroup.
    enabled_io_controller: bool,
    /// The file through which this process or thread was moved: [`MOVE_PROCESS_FILE`] or [`V1_MOVE_THREAD_FILE`].
    move_file: &'static str,
}

/// Writing to this file moves the whole process of the writing thread. The kernel then waits for
/// all CPUs (RCU), which takes 10 ms.
const MOVE_PROCESS_FILE: &str = "cgroup.procs";
/// Writing to this file moves only the writing thread. Only version 1 has the file. Since Linux 5.5
/// the kernel moves a thread without waiting for all CPUs.
const V1_MOVE_THREAD_FILE: &str = "tasks";

/// A cgroup for this process alone, or for one of its threads and everything that the thread starts later. Dropping this value moves them
/// back and removes the cgroup.
#[derive(Debug)]
pub struct OwnCgroup {
    description: Cgroup,
}

impl OwnCgroup {
    /// Makes the kernel count the I/O on these devices (`major:minor` of whole disks). Version 1
    /// counts the I/O only of devices with a limit, so this sets a limit that never binds. Does nothing in
    /// version 2. If the kernel refuses a limit, the I/O of that device stays uncounted. The analysis
    /// detects this.
    pub fn count_on<'a>(&self, devices: impl Iterator<Item = &'a str>) {
        if self.description.version != 1 {
            return;
        }
        let file = Path::new(&self.description.dir).join(format!("blkio.throttle.{}", V1_LIMITS[0]));
        let limited = fs::read_to_string(&file).unwrap_or_default();
        for device in devices.filter(|d| !limited.lines().any(|l| l.split(' ').next() == Some(*d))) {
            let _ = write(&file, &format!("{device} {NO_LIMIT}"));
        }
    }

    /// Returns the cgroup's version, its directory and the files with its I/O counters.
    pub fn describe(&self) -> Cgroup {
        self.description.clone()
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        leave_now();
    }
}

/// Moves this process into a new cgroup below its present one.
///
/// # Errors
/// Why the process was not moved: the controller is missing, permission is denied, or other processes are in
/// the same cgroup.
pub fn enter(root: &Root) -> Known<OwnCgroup> {
    enter_with(root, MOVE_PROCESS_FILE)
}

/// Moves this thread, and with it the threads and processes that it starts later, into a new cgroup
/// below its present one. In version 2 the whole process moves, because version 2 cannot separate
/// threads.
///
/// # Errors
///
/// As [`enter`].
pub fn enter_with_this_thread(root: &Root) -> Known<OwnCgroup> {
    enter_with(root, V1_MOVE_THREAD_FILE)
}

fn enter_with(root: &Root, v1_move_file: &'static str) -> Known<OwnCgroup> {
    let present = root.read("/proc/self/cgroup")?;
    let mounts = file_systems::read(root)?;
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if entered.is_some() {
        return Err("this process already has its own cgroup".into());
    }
    let (version, parent) = find_own_cgroup(root, &present, &mounts)?;
    remove_stale(root, &parent);
    let dir = parent.join(format!("{PREFIX}{}-{:08x}", std::process::id(), unique() as u32));
    fs::create_dir(&dir)
        .map_err(|e| format!("cannot create a cgroup in {} ({})", name::shown(&parent), describe(&e)))?;
    let move_file = if version == 1 { v1_move_file } else { MOVE_PROCESS_FILE };
    let mut ours = Entered { dir, parent, enabled_io_controller: false, move_file };
    let limits = if version == 1 { copy_limits(&ours.parent, &ours.dir) } else { Ok(()) };
    if let Err(why) = limits.and_then(|()| move_in(&mut ours, version)) {
        leave(&ours);
        return Err(why);
    }
    let names: &[&str] = if version == 1 { &V1_IO_FILES } else { &V2_IO_FILES };
    let files = names.iter().map(|f| ours.dir.join(f).to_string_lossy().into_owned()).collect();
    let description = Cgroup { version, dir: ours.dir.to_string_lossy().into_owned(), files };
    *entered = Some(ours);
    Ok(OwnCgroup { description })
}

/// Leaves fathom's cgroup at once, for a forced exit. Does nothing if the process has entered none.
pub fn leave_now() {
    let entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ours) = entered {
        leave(&ours);
    }
}

/// Copies the limits of version 1, where a limit on a cgroup does not bind the cgroups below it. If copying
/// fails, fathom enters no cgroup, because the user's limits must bind.
fn copy_limits(from: &Path, to: &Path) -> Known<()> {
    for limit in V1_LIMITS {
        let name = format!("blkio.throttle.{limit}");
        let text = fs::read_to_string(from.join(&name)).unwrap_or_default();
        // The kernel accepts one device per write.
        for line in text.lines() {
            write(&to.join(&name), line)
                .map_err(|e| format!("cannot copy the limits of the present cgroup ({})", describe(&e)))?;
        }
    }
    Ok(())
}

/// Returns the version and the directory of the present cgroup in the hierarchy with the I/O controller.
fn find_own_cgroup(root: &Root, present: &str, mounts: &[Mount]) -> Known<(u8, PathBuf)> {
    let lines = || hierarchies(present);
    let has_blkio = |list: &str| list.split(',').any(|c| c == "blkio");
    if let Some((_, path)) = lines().find(|(controllers, _)| has_blkio(controllers)) {
        let mount = mounts.iter().find(|m| m.kind == "cgroup" && has_blkio(&m.super_options));
        let mount = mount.ok_or("the blkio controller is not mounted")?;
        return Ok((1, root.path(&directory(mount, path)?)));
    }
    let (_, path) =
        lines().find(|(c, _)| c.is_empty()).ok_or("this process is not in a cgroup that counts I/O")?;
    let mount = mounts.iter().find(|m| m.kind == "cgroup2").ok_or("cgroup version 2 is not mounted")?;
    let dir = directory(mount, path)?;
    let controllers = root.read(&format!("{dir}/cgroup.controllers"))?;
    if !controllers.split_ascii_whitespace().any(|c| c == "io") {
        return Err(format!("the io controller is not enabled for {dir}"));
    }
    Ok((2, root.path(&dir)))
}

/// Returns the controllers and the path in each line of `/proc/self/cgroup`, `id:controllers:path`. Version 2 has no
/// controllers there.
fn hierarchies(lines: &str) -> impl Iterator<Item = (&str, &str)> {
    lines.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// Returns the directory of the cgroup `path` below the mount point. Fails if the cgroup is not
/// visible there, because only another part of the hierarchy is mounted.
pub(crate) fn directory(mount: &Mount, path: &str) -> Known<String> {
    let below = path.strip_prefix(mount.root.trim_end_matches('/'));
    let below = below.filter(|b| b.is_empty() || b.starts_with('/'));
    // In a cgroup namespace the path can lead above the mount.
    let below = below
        .filter(|b| !b.starts_with("/.."))
        .ok_or("this process's cgroup is not visible here, as is usual in a container")?;
    Ok(format!("{}{}", mount.point, below.trim_end_matches('/')))
}

fn move_in(ours: &mut Entered, version: u8) -> Known<()> {
    // The kernel takes "0" as the writing process (in `tasks`: thread), so the id in this PID namespace does not matter.
    write(&ours.dir.join(ours.move_file), "0").map_err(|e| {
        format!("cannot move this process into {} ({})", name::shown(&ours.dir), describe(&e))
    })?;
    if version == 1 {
        return check_files(&ours.dir, &V1_IO_FILES);
    }
    if check_files(&ours.dir, &V2_IO_FILES).is_err() {
        // Enable the controller after the move: the kernel refuses this while the parent cgroup has processes.
        write(&ours.parent.join("cgroup.subtree_control"), "+io").map_err(|e| {
            format!("cannot enable the io controller below {} ({})", name::shown(&ours.parent), describe(&e))
        })?;
        ours.enabled_io_controller = true;
    }
    check_files(&ours.dir, &V2_IO_FILES)
}

fn check_files(dir: &Path, files: &[&str]) -> Known<()> {
    match files.iter().find(|f| !dir.join(f).exists()) {
        Some(absent) => Err(format!("the kernel provides no {absent}")),
        None => Ok(()),
    }
}

/// Undoes [`enter`] in the order that the kernel accepts. If this fails, an empty directory remains until the next run removes it.
fn leave(ours: &Entered) {
    if ours.enabled_io_controller {
        let _ = write(&ours.parent.join("cgroup.subtree_control"), "-io");
    }
    let _ = write(&ours.parent.join(ours.move_file), "0");
    let back = ours.parent.join(MOVE_PROCESS_FILE);
    // A user's command may have left processes running. Move them back to the cgroup in which the command was started.
    for pid in fs::read_to_string(ours.dir.join(MOVE_PROCESS_FILE)).unwrap_or_default().lines() {
        let _ = write(&back, pid);
    }
    for _ in 0..MAX_REMOVALS {
        match fs::remove_dir(&ours.dir) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(REMOVAL_INTERVAL),
            _ => return,
        }
    }
}

/// Removes the empty cgroups of killed runs. The kernel refuses to remove a cgroup with processes.
fn remove_stale(root: &Root, parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|p| p.parse::<u32>().is_ok() && !root.has(&format!("/proc/{p}"))) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Returns the version of the hierarchy in which [`enter`] is expected to succeed. Changes nothing.
///
/// # Errors
///
/// Why [`enter`] would fail.
pub fn check_enter(root: &Root) -> Known<u8> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let (version, parent) =
        find_own_cgroup(root, &root.read("/proc/self/cgroup")?, &file_systems::read(root)?)?;
    let may = |path: &Path| {
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(|e| describe(&e.into()))
    };
    may(&parent).map_err(|why| format!("cannot create a cgroup in {} ({why})", name::shown(&parent)))?;
    // The process must be able to move back.
    let procs = parent.join("cgroup.procs");
    may(&procs).map_err(|why| format!("{} is not writable ({why})", name::shown(&procs)))?;
    let lines = |file: &str| fs::read_to_string(parent.join(file)).unwrap_or_default();
    // Only the root cgroup has no `cgroup.type`, and only the root cgroup may have both processes and child cgroups with controllers.
    let is_shared = version == 2
        && parent.join("cgroup.type").exists()
        && !lines("cgroup.subtree_control").split_ascii_whitespace().any(|c| c == "io")
        && lines("cgroup.procs").lines().count() > 1;
    if is_shared {
        return Err(format!(
            "other processes are in {} too, so the kernel does not enable the io controller below it",
            name::shown(&parent)
        ));
    }
    Ok(version)
}

/// A memory limit of this many bytes or more means no limit: version 1 then shows `9223372036854771712`, which is 2^63 bytes minus a page.
const NO_MEMORY_LIMIT: u64 = 1 << 60;
/// Names of the files with the limits of version 2.
const V2_LIMIT_FILES: [&str; 7] =
    ["io.max", "io.latency", "io.weight", "io.cost.qos", "cpu.max", "memory.high", "memory.max"];

/// Returns the limits on I/O, CPU time and memory that this process's cgroups set, one `PATH: LINE` for each. Adds the `cgroup.type` of the
/// topmost visible cgroup if limits above it may be hidden.
///
/// # Errors
/// If the cgroup that limits block I/O is not visible, or if no limit was found and a file could not be read. If a limit was found, the
/// text has a line that begins with [`UNREADABLE_LIMIT`] for each file that could not be read.
pub(crate) fn read_limits(root: &Root) -> Known<String> {
    let groups = Groups::read(root)?;
    // A limit in another hierarchy must not hide that the limits on I/O are unknown.
    let own_version_1 = groups.own_and_parent_dirs("blkio", 1).transpose()?;
    let all_version_2 = groups.own_and_parent_dirs("", 2).filter(|_| own_version_1.is_none()).transpose()?;
    let mut found = LimitTexts::default();
    for limit in V1_LIMITS {
        // Version 1 applies only the limits of the present cgroup.
        let own_group =
            groups.own_and_parent_dirs("blkio", 1).map(|dirs| dirs.map(|d| d.into_iter().take(1).collect()));
        found.add(root, own_group, &format!("blkio.throttle.{limit}"));
    }
    found.add(root, groups.own_and_parent_dirs("cpu", 1), "cpu.cfs_quota_us");
    found.add(root, groups.own_and_parent_dirs("memory", 1), "memory.limit_in_bytes");
    for file in V2_LIMIT_FILES {
        let controller = file.split('.').next().map_or("", |name| if name == "io" { "blkio" } else { name });
        // A controller is in one version only, so version 2 has no limits of a controller of version 1.
        if groups.own_and_parent_dirs(controller, 1).is_none() {
            found.add(root, groups.own_and_parent_dirs("", 2), file);
        }
    }
    if found.text.is_empty() && !found.unreadable.is_empty() {
        return Err(found.unreadable.join("; "));
    }
    for one in &found.unreadable {
        found.text += &format!("{UNREADABLE_LIMIT}{}\n", one.replace(": ", ", "));
    }
    // Only the root cgroup has no `cgroup.type`. If the topmost visible cgroup has this file, limits above it are hidden. That does not
    // matter if the controller of block I/O is in version 1, which applies only the limits of the present cgroup.
    let top = all_version_2.and_then(|dirs| dirs.into_iter().last());
    let kind = top.map(|top| format!("{top}/cgroup.type")).and_then(|file| Some((root.word(&file)?, file)));
    Ok(found.text + &kind.map_or_else(String::new, |(kind, file)| format!("{file}: {kind}\n")))
}

/// Returns the path of the `cpu.stat` that counts the throttled time of this process. Takes the nearest cgroup with a CPU limit and
/// such a count, otherwise the nearest with such a count, otherwise the nearest with a `cpu.stat` at all.
///
/// # Errors
///
/// Why no file was found.
pub(crate) fn cpu_stat(root: &Root) -> Known<String> {
    let groups = Groups::read(root)?;
    let dirs = groups.own_and_parent_dirs("cpu", 1).or_else(|| groups.own_and_parent_dirs("", 2));
    let dirs = dirs.ok_or("this process is not in a cgroup that counts CPU time")??;
    let limited = |dir: &&String| {
        ["cpu.cfs_quota_us", "cpu.max"]
            .iter()
            .any(|f| root.word(&format!("{dir}/{f}")).is_some_and(|line| is_set(f, &line)))
    };
    let text = |dir: &str| root.read(&format!("{dir}/cpu.stat")).unwrap_or_default();
    let counts = |dir: &&String| text(dir).contains("nr_throttled");
    let any = |dir: &&String| !text(dir).is_empty();
    let best = dirs.iter().find(|d| limited(d) && counts(d)).or_else(|| dirs.iter().find(counts));
    let best = best.or_else(|| dirs.iter().find(any));
    best.map(|dir| format!("{dir}/cpu.stat"))
        .ok_or_else(|| "no cgroup of this process has a readable cpu.stat".into())
}

/// A limit on the memory of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Path of the file that sets the limit.
    pub file: String,
    /// Bytes that all processes of the cgroup may use together.
    pub bytes: u64,
    /// Bytes that the other processes of the cgroup use, without the page cache, which the kernel
    /// can reclaim.
    pub used_bytes: u64,
}

impl MemoryLimit {
    /// Returns the bytes left for this process.
    pub fn room_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.used_bytes)
    }
}

/// Returns the memory limit that leaves this process the least room. Considers the process's cgroup
/// and those above it. `None` if no limit is set or readable.
pub fn tightest_memory_limit(root: &Root) -> Option<MemoryLimit> {
    let groups = Groups::read(root).ok()?;
    let own_bytes = anonymous_bytes(root);
    let versions = [
        (groups.own_and_parent_dirs("memory", 1), "memory.limit_in_bytes", "total_rss "),
        (groups.own_and_parent_dirs("", 2), "memory.max", "anon "),
    ];
    let limits = versions.into_iter().flat_map(|(dirs, file, counter)| {
        let dirs = dirs.and_then(Result::ok).unwrap_or_default();
        dirs.into_iter().filter_map(move |dir| {
            let file = format!("{dir}/{file}");
            let bytes = root.word(&file)?.parse().ok().filter(|bytes| *bytes < NO_MEMORY_LIMIT)?;
            let stat = root.read(&format!("{dir}/memory.stat")).unwrap_or_default();
            let of_all = stat.lines().find_map(|line| line.strip_prefix(counter)?.trim().parse().ok());
            Some(MemoryLimit { file, bytes, used_bytes: of_all.unwrap_or(0_u64).saturating_sub(own_bytes) })
        })
    });
    limits.min_by_key(MemoryLimit::room_bytes)
}

/// Returns the anonymous memory of this process in bytes; 0 if unknown.
fn anonymous_bytes(root: &Root) -> u64 {
    let status = root.read("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("RssAnon:")?.trim();
        value.strip_suffix(" kB")?.parse::<u64>().ok()
    });
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The cgroups of this process.
struct Groups<'r> {
    root: &'r Root,
    /// Text of `/proc/self/cgroup`.
    present: String,
    mounts: Vec<Mount>,
}

impl<'r> Groups<'r> {
    fn read(root: &'r Root) -> Known<Self> {
        let present = root.read("/proc/self/cgroup").map_err(|why| format!("/proc/self/cgroup: {why}"))?;
        Ok(Self { root, present, mounts: file_systems::read(root)? })
    }

    /// Returns the directories of a hierarchy, from the cgroup of this process up to the topmost mounted one;
    /// `None` if this machine has no such hierarchy.
    fn own_and_parent_dirs(&self, controller: &str, version: u8) -> Option<Known<Vec<String>>> {
        let mut lines = hierarchies(&self.present);
        let (kind, has): (_, &dyn Fn(&str) -> bool) = match version {
            1 => ("cgroup", &|list: &str| list.split(',').any(|c| c == controller)),
            _ => ("cgroup2", &|_: &str| true),
        };
        let (_, path) = lines.find(|(list, _)| if version == 1 { has(list) } else { list.is_empty() })?;
        let name = if controller.is_empty() { "version 2" } else { controller };
        let mut why_not = format!("the cgroups of {name} are not mounted here");
        for mount in self.mounts.iter().filter(|m| m.kind == kind && has(&m.super_options)) {
            match directory(mount, path) {
                // Every cgroup has this file. It is missing if another file system is mounted over the hierarchy.
                Ok(dir) if self.root.has(&format!("{dir}/{MOVE_PROCESS_FILE}")) => {
                    let above = Path::new(&dir).ancestors().take_while(|d| d.starts_with(&mount.point));
                    return Some(Ok(above.map(|d| d.to_string_lossy().into_owned()).collect()));
                }
                Ok(_) => {
                    why_not = format!("{} has no directory of this process's cgroup {path}", mount.point);
                }
                Err(why) => why_not = format!("the cgroups of {name} are unknown: {why}"),
            }
        }
        Some(Err(why_not))
    }
}

/// The limits found, as lines `PATH: LINE`, and the files that could not be read, each as `PATH (REASON)`.
#[derive(Default)]
struct LimitTexts {
    text: String,
    unreadable: Vec<String>,
}

impl LimitTexts {
    fn add(&mut self, root: &Root, dirs: Option<Known<Vec<String>>>, file: &str) {
        let dirs = match dirs {
            None => return,
            Some(Ok(dirs)) => dirs,
            Some(Err(why)) => return self.unreadable.push(format!("{file} ({why})")),
        };
        for dir in dirs {
            let path = format!("{dir}/{file}");
            match root.read(&path) {
                Ok(text) => {
                    for line in text.lines().map(str::trim).filter(|l| is_set(file, l)) {
                        self.text += &format!("{path}: {line}\n");
                        self.add_period(root, &dir, file);
                    }
                }
                // Most cgroups lack the controller, and the root cgroup has no limits.
                Err(_) if !root.has(&path) => {}
                Err(why) => self.unreadable.push(format!("{path} ({why})")),
            }
        }
    }

    /// Adds the period of a CPU quota: the quota is CPU time per period.
    fn add_period(&mut self, root: &Root, dir: &str, file: &str) {
        if file == "cpu.cfs_quota_us"
            && let Some(period) = root.word(&format!("{dir}/cpu.cfs_period_us"))
        {
            self.text += &format!("{dir}/cpu.cfs_period_us: {period}\n");
        }
    }
}

/// Returns whether a line of a limit file sets a limit.
fn is_set(file: &str, line: &str) -> bool {
    let number = || line.split_ascii_whitespace().next_back().and_then(|w| w.parse::<u64>().ok());
    match file {
        "io.max" => line.split('=').skip(1).any(|value| !value.starts_with("max")),
        "io.weight" => !matches!(line, "" | "default 100" | "100"),
        "io.cost.qos" => line.split(' ').any(|word| word == "enable=1"),
        "cpu.max" | "memory.max" | "memory.high" => !line.is_empty() && !line.starts_with("max"),
        "cpu.cfs_quota_us" => number().is_some(),
        "memory.limit_in_bytes" => number().is_some_and(|bytes| bytes < NO_MEMORY_LIMIT),
        // fathom itself sets `NO_LIMIT` to make the kernel count I/O.
        _ if file.starts_with("blkio.throttle.") => number().is_some_and(|n| n != NO_LIMIT),
        _ => !line.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Vec<Mount> {
        file_systems::parse(
            "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
    }

    #[test]
    fn the_hierarchy_with_the_controller_is_found() {
        let root = Root::at("/nonexistent-prefix".into());
        let present = "9:name=systemd:/a\n7:cpu,blkio:/user/me\n0::/\n";
        let dir = PathBuf::from("/nonexistent-prefix/sys/fs/cgroup/blkio/user/me");
        assert_eq!(find_own_cgroup(&root, present, &mounts()), Ok((1, dir)));
        assert!(find_own_cgroup(&root, "0::/\n", &mounts()).is_err());
        assert!(find_own_cgroup(&root, "junk\n::\n", &[]).is_err());
        assert!(find_own_cgroup(&root, "", &mounts()).is_err());
    }

    #[test]
    fn a_mounted_part_of_the_hierarchy_is_enough() {
        let part = file_systems::parse("1 0 0:35 /docker/x /cg rw - cgroup2 cgroup2 rw\n");
        assert_eq!(directory(&part[0], "/docker/x/y"), Ok("/cg/y".to_owned()));
        assert_eq!(directory(&part[0], "/docker/x"), Ok("/cg".to_owned()));
        assert!(directory(&part[0], "/docker/xy").is_err());
        assert!(directory(&mounts()[0], "/../..").is_err());
    }

    #[test]
    fn entering_and_leaving_leaves_no_cgroup() {
        let root = Root::real();
        let expected = check_enter(&root);
        let own = match enter(&root) {
            Ok(own) => own,
            Err(why) => return println!("skipped: {why}"),
        };
        let seen = own.describe();
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let name = Path::new(&seen.dir).file_name().and_then(|n| n.to_str()).unwrap_or("none").to_owned();
        assert!(text.contains(&name), "{text}");
        assert_eq!(expected, Ok(own.describe().version), "the check predicts the result");
        assert!(enter(&root).is_err());
        drop(own);
        assert!(!Path::new(&seen.dir).exists());
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        assert!(!text.contains(&name), "{text}");
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;
    use crate::fixture::put;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        for (path, text) in files {
            put(dir.path(), path, text);
        }
        dir
    }

    const V2: (&str, &str) = ("/proc/self/mountinfo", "31 1 0:27 / /cg rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn limits_of_version_2_are_found_in_every_cgroup_above() {
        let dir = machine(&[
            V2,
            ("/proc/self/cgroup", "0::/user.slice/me.scope\n"),
            (
                "/cg/user.slice/io.max",
                "8:0 rbps=max wbps=max riops=500 wiops=max\n8:16 rbps=max wbps=max riops=max wiops=max\n",
            ),
            ("/cg/user.slice/cpu.max", "50000 100000\n"),
            ("/cg/user.slice/cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n"),
            ("/cg/user.slice/me.scope/cpu.max", "max 100000\n"),
            ("/cg/user.slice/me.scope/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\n"),
            ("/cg/user.slice/me.scope/memory.max", "max\n"),
            ("/cg/user.slice/me.scope/io.weight", "default 100\n8:0 50\n"),
            ("/cg/user.slice/me.scope/cgroup.procs", ""),
            ("/cg/io.cost.qos", "8:0 enable=0 ctrl=auto\n8:16 enable=1 ctrl=user\n"),
        ]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!(
            read_limits(&root),
            Ok("/cg/user.slice/io.max: 8:0 rbps=max wbps=max riops=500 wiops=max\n\
                /cg/user.slice/me.scope/io.weight: 8:0 50\n\
                /cg/io.cost.qos: 8:16 enable=1 ctrl=user\n\
                /cg/user.slice/cpu.max: 50000 100000\n"
                .to_owned())
        );
        // The cgroup with the quota is throttled. The cgroup below has no quota, so its counter remains 0.
        assert_eq!(cpu_stat(&root), Ok("/cg/user.slice/cpu.stat".to_owned()));
    }

    #[test]
    fn limits_of_version_1_are_found_and_a_counting_rule_is_ignored() {
        let limit = format!("254:0 {NO_LIMIT}\n254:16 1000\n");
        let dir = machine(&[
            (
                "/proc/self/mountinfo",
                "31 1 0:27 / /b rw - cgroup cgroup rw,blkio\n32 1 0:28 / /c rw - cgroup cgroup rw,cpu,cpuacct\n33 1 0:29 / /m rw - cgroup cgroup rw,memory\n",
            ),
            ("/proc/self/cgroup", "3:blkio:/a/b\n2:cpu,cpuacct:/x\n1:memory:/\n"),
            ("/b/a/blkio.throttle.read_iops_device", "254:0 7\n"),
            ("/b/a/b/blkio.throttle.read_bps_device", &limit),
            ("/b/a/b/cgroup.procs", ""),
            ("/c/x/cgroup.procs", ""),
            ("/m/cgroup.procs", ""),
            ("/c/x/cpu.cfs_quota_us", "20000\n"),
            ("/c/x/cpu.cfs_period_us", "100000\n"),
            ("/c/x/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n"),
            ("/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!(
            read_limits(&root),
            Ok("/b/a/b/blkio.throttle.read_bps_device: 254:16 1000\n\
                /c/x/cpu.cfs_quota_us: 20000\n/c/x/cpu.cfs_period_us: 100000\n"
                .to_owned())
        );
        assert_eq!(cpu_stat(&root), Ok("/c/x/cpu.stat".to_owned()));
    }

    #[test]
    fn the_memory_limit_with_the_least_room_counts() {
        let dir = machine(&[
            V2,
            ("/proc/self/cgroup", "0::/pod/me\n"),
            ("/proc/self/status", "Name:\tfathom\nRssAnon:\t    4096 kB\n"),
            ("/cg/pod/me/cgroup.procs", ""),
            ("/cg/pod/me/memory.max", "209715200\n"),
            ("/cg/pod/me/memory.stat", "anon 4194304\nfile 99999999\n"),
            ("/cg/pod/memory.max", "268435456\n"),
            ("/cg/pod/memory.stat", "anon 138412032\nfile 1\n"),
            ("/cg/memory.max", "max\n"),
        ]);
        let found = tightest_memory_limit(&Root::at(dir.path().to_owned()));
        let known =
            MemoryLimit { file: "/cg/pod/memory.max".into(), bytes: 256 << 20, used_bytes: 128 << 20 };
        assert_eq!(found, Some(known));
        let dir = machine(&[
            ("/proc/self/mountinfo", "33 1 0:29 / /m rw - cgroup cgroup rw,memory\n"),
            ("/proc/self/cgroup", "1:memory:/a\n"),
            ("/m/a/cgroup.procs", ""),
            ("/m/a/memory.limit_in_bytes", "67108864\n"),
            ("/m/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let found = tightest_memory_limit(&Root::at(dir.path().to_owned()))
            .map(|limit| (limit.file.clone(), limit.room_bytes()));
        assert_eq!(found, Some(("/m/a/memory.limit_in_bytes".into(), 64 << 20)));
        assert_eq!(tightest_memory_limit(&Root::at("/nonexistent-prefix".into())), None);
    }

    #[test]
    fn a_machine_without_limits_is_empty_and_a_hidden_hierarchy_is_a_reason() {
        let dir = machine(&[
            V2,
            ("/proc/self/cgroup", "0::/\n"),
            ("/cg/cgroup.procs", ""),
            ("/cg/cpu.stat", "usage_usec 3\n"),
        ]);
        let root = Root::at(dir.path().to_owned());
        assert_eq!((read_limits(&root), cpu_stat(&root)), (Ok(String::new()), Ok("/cg/cpu.stat".to_owned())));
        let dir = machine(&[V2, ("/proc/self/cgroup", "0::/../../other\n")]);
        let root = Root::at(dir.path().to_owned());
        assert!(read_limits(&root).is_err_and(|why| why.contains("container")));
        assert!(cpu_stat(&root).is_err());
        assert!(read_limits(&Root::at("/nonexistent-prefix".into())).is_err());
    }

    #[test]
    fn limits_above_the_topmost_visible_cgroup_are_unknown() {
        let limits = |files: &[(&str, &str)]| read_limits(&Root::at(machine(files).path().to_owned()));
        let container =
            [V2, ("/proc/self/cgroup", "0::/\n"), ("/cg/cgroup.procs", ""), ("/cg/cgroup.type", "domain\n")];
        assert_eq!(limits(&container), Ok("/cg/cgroup.type: domain\n".to_owned()));
        // A limit on memory does not prove that block I/O has no limit.
        let limited = [&container[..], &[("/cg/memory.max", "9000\n")]].concat();
        assert_eq!(limits(&limited), Ok("/cg/memory.max: 9000\n/cg/cgroup.type: domain\n".to_owned()));
        // Version 1 applies only the limits of the present cgroup.
        let mounts = "31 1 0:27 / /b rw - cgroup cgroup rw,blkio\n32 1 0:28 / /cg rw - cgroup2 a rw\n";
        let version_1 = [
            ("/proc/self/mountinfo", mounts),
            ("/proc/self/cgroup", "7:blkio:/\n0::/\n"),
            ("/b/cgroup.procs", ""),
            container[2],
            container[3],
        ];
        assert_eq!(limits(&version_1), Ok(String::new()));
    }

    #[test]
    fn an_unreadable_limit_is_named_next_to_the_limits_that_were_read() {
        let limits = |files: &[(&str, &str)]| read_limits(&Root::at(machine(files).path().to_owned()));
        // A directory in place of the file cannot be read.
        let unreadable =
            [V2, ("/proc/self/cgroup", "0::/a\n"), ("/cg/a/cgroup.procs", ""), ("/cg/a/io.max/x", "")];
        let alone = limits(&unreadable);
        assert!(alone.as_ref().is_err_and(|why| why.starts_with("/cg/a/io.max (")), "{alone:?}");
        let limited = [&unreadable[..], &[("/cg/a/cpu.max", "50000 100000\n")]].concat();
        let text = limits(&limited).unwrap_or_default();
        assert!(text.starts_with("/cg/a/cpu.max: 50000 100000\nunreadable: /cg/a/io.max ("), "{text}");
        let why = model::evidence::unreadable_limits(&text, &["io", "blkio"]).unwrap_or_default();
        assert!(why.contains("could not be read: /cg/a/io.max ("), "{why}");
        assert_eq!(model::evidence::unreadable_limits(&text, &["cpu", "memory"]), None);
    }

    #[test]
    fn limits_below_a_covered_hierarchy_are_unknown() {
        const MOUNTS: (&str, &str) = (
            "/proc/self/mountinfo",
            "31 1 0:27 / /b rw - cgroup cgroup rw,blkio\n33 1 0:29 / /m rw - cgroup cgroup rw,memory\n",
        );
        let limits = |files: &[(&str, &str)]| read_limits(&Root::at(machine(files).path().to_owned()));
        let covered = limits(&[V2, ("/proc/self/cgroup", "0::/role1\n"), ("/cg/other", "")]);
        assert_eq!(covered, Err("/cg has no directory of this process's cgroup /role1".to_owned()));
        let covered = limits(&[V2, ("/proc/self/cgroup", "0::/\n"), ("/cg/other", "")]);
        assert_eq!(covered, Err("/cg has no directory of this process's cgroup /".to_owned()));
        let groups = ("/proc/self/cgroup", "7:blkio:/role1\n4:memory:/\n");
        let memory = [("/m/cgroup.procs", ""), ("/m/memory.limit_in_bytes", "67108864\n")];
        let covered = limits(&[MOUNTS, groups, memory[0], memory[1]]);
        assert_eq!(covered, Err("/b has no directory of this process's cgroup /role1".to_owned()));
        let seen = limits(&[MOUNTS, groups, memory[0], memory[1], ("/b/role1/cgroup.procs", "")]);
        assert_eq!(seen, Ok("/m/memory.limit_in_bytes: 67108864\n".to_owned()));
        // The hierarchy is mounted twice, and one mount is covered.
        let twice =
            ("/proc/self/mountinfo", "31 1 0:27 / /cg rw - cgroup2 a rw\n32 1 0:27 / /v rw - cgroup2 a rw\n");
        let seen = limits(&[twice, ("/proc/self/cgroup", "0::/role1\n"), ("/v/role1/cgroup.procs", "")]);
        assert_eq!(seen, Ok(String::new()));
    }
}
