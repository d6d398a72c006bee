//! Cgroups of a test's own, with limits.
//!
//! For: throttles and quotas that end with the test. Not for: the group that the program makes for itself in them.

use crate::disk::Disk;
use crate::stage::skip;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the controllers of version 1 are, on machines that have them.
const ROOT: &str = "/sys/fs/cgroup";

/// So that each has a name of its own, whatever tests run side by side.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A group of one controller, gone with the test.
pub(crate) struct Group(PathBuf);

impl Group {
    /// A group with a limit: controller, file, value, in which `$NUMBER` is the disk's. `None`, and said, where the machine
    /// has no such controller.
    pub(crate) fn limited(disk: &Disk, (controller, file, value): &(&str, &str, &str)) -> Option<Self> {
        let group = Self::create(controller)?;
        std::fs::write(group.0.join(file), value.replace("$NUMBER", &disk.number())).unwrap();
        Some(group)
    }

    /// A group without one.
    pub(crate) fn create(controller: &str) -> Option<Self> {
        let controller = Path::new(ROOT).join(controller);
        if !controller.join("cgroup.procs").exists() {
            skip(&format!("there is no cgroup controller at {}", controller.display()));
            return None;
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let group = Self(controller.join(format!("it-{}-{number}", std::process::id())));
        std::fs::create_dir_all(&group.0).unwrap();
        Some(group)
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    /// What a command must be prefixed with to run in it.
    pub(crate) fn enter(&self) -> Vec<String> {
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        ["sh", "-c", script, &self.0.to_string_lossy()].map(str::to_owned).into()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
