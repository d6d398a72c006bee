//! A cgroup of our own, below the one fathom was started in, so that the kernel counts our I/O apart from everybody else's.
//!
//! For: exact accounting where rights allow. Not for: limits; those that the user has must bind us all the same.

use crate::mountinfo::{self, Mount};
use crate::root::Root;
use model::Known;
use model::machine::Cgroup;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files of v1 that count I/O per device.
const V1_FILES: [&str; 2] = ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"];
/// Limits of v1. In v1 they do not reach into groups below (kernel `blk-throttle.c`: flat on the legacy hierarchy), so they
/// are copied.
const V1_LIMITS: [&str; 4] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];
/// A limit that binds no device, in bytes per second. Recent kernels count in v1 only on devices with a limit (6.18: "Total 0"
/// after a thousand direct reads without one, exactly a thousand with it).
const NO_LIMIT: u64 = 1 << 40;
/// Prefix of our groups' names.
const PREFIX: &str = "fathom-";
/// File of v2 that counts I/O per device.
const V2_FILE: &str = "io.stat";

/// Where to go back to, and what to remove.
struct Entered {
    parent: PathBuf,
    dir: PathBuf,
}

static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

/// A cgroup entered by the whole process. Left and removed when dropped.
#[derive(Debug)]
pub struct OwnCgroup {
    cgroup: Cgroup,
}

/// Makes a cgroup and moves the process into it.
///
/// # Errors
/// Why there is none: no rights, no controller, no delegation.
pub fn enter(root: &Root) -> Known<OwnCgroup> {
    let mounts = mountinfo::parse(&root.read("/proc/self/mountinfo")?);
    let groups = root.read("/proc/self/cgroup")?;
    enter_v1(root, &mounts, &groups)
        .or_else(|v1| enter_v2(root, &mounts, &groups).map_err(|v2| format!("v1: {v1}; v2: {v2}")))
}

/// Leaves and removes the cgroup. For leaving at once; does nothing the second time.
pub fn leave_now() {
    let entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Entered { parent, dir }) = entered {
        let _ = std::fs::write(parent.join("cgroup.procs"), std::process::id().to_string());
        let _ = std::fs::remove_dir(dir);
    }
}

impl OwnCgroup {
    /// Makes the kernel count on these devices (`major:minor` of whole disks), where it needs to be asked. What it refuses it
    /// does not count, which the judge sees by itself.
    pub fn count_on<'a>(&self, root: &Root, devices: impl Iterator<Item = &'a str>) {
        if self.cgroup.version != 1 {
            return;
        }
        let file = Path::new(&self.cgroup.dir).join(V1_LIMITS[0]);
        let limited = root.read(&file).unwrap_or_default();
        for device in devices.filter(|d| !limited.lines().any(|l| l.split(' ').next() == Some(*d))) {
            let _ = std::fs::write(root.path(&file), format!("{device} {NO_LIMIT}"));
        }
    }

    /// What it is, for the record.
    pub fn describe(&self) -> Cgroup {
        self.cgroup.clone()
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        leave_now();
    }
}

fn enter_v1(root: &Root, mounts: &[Mount], groups: &str) -> Known<OwnCgroup> {
    let has = |controllers: &str| controllers.split(',').any(|c| c == "blkio");
    let mount = mounts
        .iter()
        .find(|m| m.kind == "cgroup" && has(&m.super_options))
        .ok_or("no blkio controller is mounted")?;
    let lines = groups.lines().filter_map(|l| l.splitn(3, ':').skip(1).collect::<Vec<_>>().try_into().ok());
    let group = lines.into_iter().find_map(|[c, path]: [&str; 2]| has(c).then(|| path.to_owned()));
    let parent = below(&mount.point, &group.ok_or("this process is in no blkio group")?);
    let limits: Vec<(&str, String)> =
        V1_LIMITS.into_iter().filter_map(|f| Some((f, root.word(parent.join(f))?))).collect();
    enter_group(root, &parent, 1, &V1_FILES, |dir| {
        for (file, text) in &limits {
            // One limit per write, as the kernel takes them.
            for line in text.lines() {
                std::fs::write(root.path(dir.join(file)), line)
                    .map_err(|e| format!("its limits cannot be copied: {e}"))?;
            }
        }
        Ok(())
    })
}

fn enter_v2(root: &Root, mounts: &[Mount], groups: &str) -> Known<OwnCgroup> {
    let mount = mounts.iter().find(|m| m.kind == "cgroup2").ok_or("not mounted")?;
    let group = groups.lines().find_map(|l| l.strip_prefix("0::")).ok_or("this process is in no group")?;
    let parent = below(&mount.point, group);
    let passed_on = root.word(parent.join("cgroup.subtree_control")).unwrap_or_default();
    if !passed_on.split_whitespace().any(|c| c == "io") {
        return Err("the io controller is not handed on to groups below this one".into());
    }
    enter_group(root, &parent, 2, &[V2_FILE], |_| Ok(()))
}

fn below(mount_point: &str, group: &str) -> PathBuf {
    Path::new(mount_point).join(group.trim_start_matches('/'))
}

fn enter_group(
    root: &Root,
    parent: &Path,
    version: u8,
    files: &[&str],
    prepare: impl Fn(&Path) -> Known<()>,
) -> Known<OwnCgroup> {
    // What killed runs left is empty by now; a group with a process in it cannot be removed, so this harms no live run.
    for left in root.list(parent).iter().filter(|n| n.starts_with(PREFIX)) {
        let _ = std::fs::remove_dir(root.path(parent.join(left)));
    }
    let dir = parent.join(format!("{PREFIX}{}", std::process::id()));
    std::fs::create_dir(root.path(&dir))
        .map_err(|e| format!("{} cannot be made: {}", dir.display(), crate::root::reason(&e)))?;
    let remove = |why: String| {
        let _ = std::fs::remove_dir(root.path(&dir));
        why
    };
    prepare(&dir).map_err(remove)?;
    if let Some(missing) = files.iter().find(|f| !root.has(dir.join(f))) {
        return Err(remove(format!("it has no {missing}")));
    }
    std::fs::write(root.path(dir.join("cgroup.procs")), std::process::id().to_string())
        .map_err(|e| remove(format!("it cannot be entered: {}", crate::root::reason(&e))))?;
    let entered = Entered { parent: root.path(parent), dir: root.path(&dir) };
    *ENTERED.lock().unwrap_or_else(PoisonError::into_inner) = Some(entered);
    let files = files.iter().map(|f| dir.join(f).display().to_string()).collect();
    Ok(OwnCgroup { cgroup: Cgroup { version, dir: dir.display().to_string(), files } })
}
