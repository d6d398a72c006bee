//! Cgroups with limits for tests, removed at their end.

use crate::disk::Disk;
use crate::stage::skip;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The directory of the version 1 controllers, if the machine has them.
const ROOT: &str = "/sys/fs/cgroup";

/// Number of groups made so far, for names that differ while tests run at the same time.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A group of one controller, removed on drop.
pub(crate) struct Group(PathBuf);

impl Group {
    /// A group with a limit: controller, file, value, in which `$NUMBER` is the disk's number. Skips the test and returns `None` without
    /// such a controller.
    pub(crate) fn limited(disk: &Disk, (controller, file, value): &(&str, &str, &str)) -> Option<Self> {
        let group = Self::create(controller)?;
        std::fs::write(group.0.join(file), value.replace("$NUMBER", &disk.number())).unwrap();
        Some(group)
    }

    /// A group without a limit.
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

    /// The directory of the group.
    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    /// The prefix of a command that runs in the group.
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
