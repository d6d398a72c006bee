//! A cgroup of our own, so that the kernel counts our I/O apart from everybody else's.
//!
//! For: entering one below the present cgroup, so that every limit of it still binds, and leaving without a trace. Not for: setting
//! limits. The whole process moves, and has to before it starts a thread or an operation that is to be counted.

use crate::error::describe;
use crate::mountinfo::{self, Mount};
use crate::root::Root;
use model::Known;
use model::machine::Cgroup;
use model::name;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A limit that binds no device, in bytes per second. Recent kernels count in v1 only on devices with a limit (6.18: "Total 0"
/// after a thousand direct reads without one, exactly a thousand with it).
pub(crate) const NO_LIMIT: u64 = 1 << 40;
/// Begin of our directory names; the process id and a number follow.
const PREFIX: &str = "fathom-";
/// Tries to remove a cgroup that a thread of ours is just leaving.
const REMOVALS: u32 = 20;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(5);

const V1_IO_FILES: [&str; 2] = ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"];
/// Limits of version 1, which the kernel does not pass on to cgroups below.
pub(crate) const V1_LIMITS: [&str; 4] =
    ["read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device"];
const V2_IO_FILES: [&str; 1] = ["io.stat"];

/// The one that this process is in, for whoever leaves it first: the owner or a forced exit.
static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

/// What has to be undone.
struct Entered {
    dir: PathBuf,
    parent: PathBuf,
    /// Whether the controller was handed down for us and has to be taken back first.
    handed_down: bool,
}

/// A cgroup of our own; dropping it moves the process back and removes it.
#[derive(Debug)]
pub struct OwnCgroup {
    description: Cgroup,
}

impl OwnCgroup {
    /// Makes the kernel count on these devices (`major:minor` of whole disks), where it needs to be asked. What it refuses it
    /// does not count, which the judge sees by itself.
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

    /// Where it is and what it counts.
    pub fn describe(&self) -> Cgroup {
        self.description.clone()
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        leave_now();
    }
}

/// Moves this process into a fresh cgroup below its present one.
///
/// # Errors
/// Why that is not possible: no such controller, no permission, or others in the same cgroup.
pub fn enter(root: &Root) -> Known<OwnCgroup> {
    let present = root.read("/proc/self/cgroup")?;
    let mounts = mountinfo::read(root)?;
    let mut entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if entered.is_some() {
        return Err("this process is in a cgroup of its own already".into());
    }
    let (version, parent) = find(root, &present, &mounts)?;
    remove_deserted(root, &parent);
    let dir = parent.join(format!("{PREFIX}{}-{:08x}", std::process::id(), random()));
    fs::create_dir(&dir)
        .map_err(|e| format!("no cgroup may be made in {} ({})", name::shown(&parent), describe(&e)))?;
    let mut ours = Entered { dir, parent, handed_down: false };
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

/// Leaves at once, for a forced exit. Does nothing where none was entered or it was left.
pub fn leave_now() {
    let entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(ours) = entered {
        leave(&ours);
    }
}

/// Version 1 keeps limits flat: one on the present cgroup does not bind in a cgroup below it. The user's limits must bind
/// all the same, so they are copied; where that fails, no cgroup is entered.
fn copy_limits(from: &Path, to: &Path) -> Known<()> {
    for limit in V1_LIMITS {
        let name = format!("blkio.throttle.{limit}");
        let text = fs::read_to_string(from.join(&name)).unwrap_or_default();
        // One device per write, as the kernel takes them.
        for line in text.lines() {
            write(&to.join(&name), line).map_err(|e| {
                format!("the limits of its present cgroup cannot be copied ({})", describe(&e))
            })?;
        }
    }
    Ok(())
}

/// Version and directory of the present cgroup in the hierarchy that has the I/O controller.
fn find(root: &Root, present: &str, mounts: &[Mount]) -> Known<(u8, PathBuf)> {
    // Lines are `id:controllers:path`; version 2 has no controllers there.
    let lines = || present.lines().filter_map(|l| l.split_once(':')?.1.split_once(':'));
    let has_blkio = |list: &str| list.split(',').any(|c| c == "blkio");
    if let Some((_, path)) = lines().find(|(controllers, _)| has_blkio(controllers)) {
        let mount = mounts.iter().find(|m| m.kind == "cgroup" && has_blkio(&m.super_options));
        let mount = mount.ok_or("the blkio controller is not mounted")?;
        return Ok((1, root.path(&directory(mount, path)?)));
    }
    let (_, path) =
        lines().find(|(c, _)| c.is_empty()).ok_or("this process is in no cgroup that counts I/O")?;
    let mount = mounts.iter().find(|m| m.kind == "cgroup2").ok_or("cgroup version 2 is not mounted")?;
    let dir = directory(mount, path)?;
    let controllers = root.read(&format!("{dir}/cgroup.controllers"))?;
    if !controllers.split_ascii_whitespace().any(|c| c == "io") {
        return Err(format!("the io controller is not handed down to {dir}"));
    }
    Ok((2, root.path(&dir)))
}

/// Where a cgroup path is in the file system, when perhaps only a part of the hierarchy is mounted.
pub(crate) fn directory(mount: &Mount, path: &str) -> Known<String> {
    let below = path.strip_prefix(mount.root.trim_end_matches('/'));
    let below = below.filter(|b| b.is_empty() || b.starts_with('/'));
    // With a cgroup name space the path can lead above what is mounted.
    let below = below
        .filter(|b| !b.starts_with("/.."))
        .ok_or("its own cgroup is not visible in here (a container)")?;
    Ok(format!("{}{}", mount.point, below.trim_end_matches('/')))
}

fn move_in(ours: &mut Entered, version: u8) -> Known<()> {
    // "0" is the writer's whole process, under whatever number it is known here.
    write(&ours.dir.join("cgroup.procs"), "0")
        .map_err(|e| format!("{} cannot be entered ({})", name::shown(&ours.dir), describe(&e)))?;
    if version == 1 {
        return present(&ours.dir, &V1_IO_FILES);
    }
    if present(&ours.dir, &V2_IO_FILES).is_err() {
        // Only now, since a cgroup with processes of its own delegates nothing.
        write(&ours.parent.join("cgroup.subtree_control"), "+io").map_err(|e| {
            format!("{} does not hand the io controller down ({})", name::shown(&ours.parent), describe(&e))
        })?;
        ours.handed_down = true;
    }
    present(&ours.dir, &V2_IO_FILES)
}

fn present(dir: &Path, files: &[&str]) -> Known<()> {
    match files.iter().find(|f| !dir.join(f).exists()) {
        Some(absent) => Err(format!("the kernel keeps no {absent}")),
        None => Ok(()),
    }
}

/// In the order that the kernel accepts. What fails here leaves an empty directory, which the next run removes.
fn leave(ours: &Entered) {
    if ours.handed_down {
        let _ = write(&ours.parent.join("cgroup.subtree_control"), "-io");
    }
    let back = ours.parent.join("cgroup.procs");
    let _ = write(&back, "0");
    // What a command of the user left running belongs where the command was started.
    for pid in fs::read_to_string(ours.dir.join("cgroup.procs")).unwrap_or_default().lines() {
        let _ = write(&back, pid);
    }
    for _ in 0..REMOVALS {
        match fs::remove_dir(&ours.dir) {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(BETWEEN_REMOVALS),
            _ => return,
        }
    }
}

/// Removes the empty cgroups of killed runs. The kernel refuses to remove one that anybody is in.
fn remove_deserted(root: &Root, parent: &Path) {
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

/// Enough to tell two cgroups of one process apart.
fn random() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |d| model::payload::split_mix(d.as_nanos() as u64) as u32)
}

/// Whether [`enter`] can be expected to succeed, by looking alone: the version of the hierarchy.
///
/// # Errors
/// Why it would not.
pub fn allowed(root: &Root) -> Known<u8> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let (version, parent) = find(root, &root.read("/proc/self/cgroup")?, &mountinfo::read(root)?)?;
    let may = |path: &Path| {
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(|e| describe(&e.into()))
    };
    may(&parent).map_err(|why| format!("no cgroup may be made in {} ({why})", name::shown(&parent)))?;
    // Whoever moves away has to come back.
    let procs = parent.join("cgroup.procs");
    may(&procs).map_err(|why| format!("{} may not be written ({why})", name::shown(&procs)))?;
    let lines = |file: &str| fs::read_to_string(parent.join(file)).unwrap_or_default();
    // Only the root of all has no type, and it alone may have processes beside cgroups with controllers.
    let crowded = version == 2
        && parent.join("cgroup.type").exists()
        && !lines("cgroup.subtree_control").split_ascii_whitespace().any(|c| c == "io")
        && lines("cgroup.procs").lines().count() > 1;
    if crowded {
        return Err(format!(
            "other processes are in {} too, so it delegates the io controller to nobody",
            name::shown(&parent)
        ));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Vec<Mount> {
        mountinfo::parse(
            "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        )
    }

    #[test]
    fn the_hierarchy_with_the_controller_is_found() {
        let root = Root::at("/nonexistent-prefix".into());
        let present = "9:name=systemd:/a\n7:cpu,blkio:/user/me\n0::/\n";
        let dir = PathBuf::from("/nonexistent-prefix/sys/fs/cgroup/blkio/user/me");
        assert_eq!(find(&root, present, &mounts()), Ok((1, dir)));
        assert!(find(&root, "0::/\n", &mounts()).is_err());
        assert!(find(&root, "junk\n::\n", &[]).is_err());
        assert!(find(&root, "", &mounts()).is_err());
    }

    #[test]
    fn a_part_of_the_hierarchy_is_enough_and_what_is_above_it_is_not_visible() {
        let part = mountinfo::parse("1 0 0:35 /docker/x /cg rw - cgroup2 cgroup2 rw\n");
        assert_eq!(directory(&part[0], "/docker/x/y"), Ok("/cg/y".to_owned()));
        assert_eq!(directory(&part[0], "/docker/x"), Ok("/cg".to_owned()));
        assert!(directory(&part[0], "/docker/xy").is_err());
        assert!(directory(&mounts()[0], "/../..").is_err());
    }

    #[test]
    fn entering_and_leaving_leaves_nothing_behind() {
        let root = Root::real();
        let allowed = allowed(&root);
        let own = match enter(&root) {
            Ok(own) => own,
            Err(why) => return println!("skipped: {why}"),
        };
        let seen = own.describe();
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let name = Path::new(&seen.dir).file_name().and_then(|n| n.to_str()).unwrap_or("none").to_owned();
        assert!(text.contains(&name), "{text}");
        assert_eq!(allowed, Ok(own.describe().version), "looking says what entering finds");
        assert!(enter(&root).is_err());
        drop(own);
        assert!(!Path::new(&seen.dir).exists());
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        assert!(!text.contains(&name), "{text}");
    }
}
