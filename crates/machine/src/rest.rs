//! Bringing the machine back to rest between runs.
//!
//! For: evicting a target from the page cache, and waiting until nothing is left to write back. Not for: dropping what
//! belongs to others.

use crate::pages::pages;
use crate::root::{Root, reason};
use model::Known;
use model::evidence::{Pages, meminfo_bytes};
use model::units::show_bytes;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Dirty memory below which writeback no longer disturbs (threshold of check D02): a desktop always has some.
const REST_BYTES: u64 = 64 << 20;
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Without any fall for so long, what is dirty is somebody else's and stays.
const NO_FALL: Duration = Duration::from_millis(500);

/// Writes a file's dirty pages back, evicts its pages, and counts those that stayed.
///
/// # Errors
/// Why it could not be done or counted.
pub fn evict(file: &File) -> Known<Pages> {
    // A file opened for reading only may refuse to be synced on some file systems; eviction tells.
    let _ = file.sync_data();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|e| format!("fadvise: {}", reason(&e.into())))?;
    pages(file)
}

/// Asks the file system of a file to write everything back that is dirty, whoever made it so: it would be written during
/// the run instead.
///
/// # Errors
/// Why it could not.
pub fn write_back(file: &File) -> Known<()> {
    rustix::fs::syncfs(file).map_err(|e| format!("syncfs: {}", reason(&e.into())))
}

/// How waiting for rest went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// What was left, or why it is not known.
    pub left_bytes: Known<u64>,
}

impl Settled {
    /// A sentence where there was no rest.
    pub fn note(&self) -> Option<String> {
        match &self.left_bytes {
            Ok(left) if *left <= REST_BYTES => None,
            Ok(left) => Some(format!(
                "{} of dirty pages were still to be written when the run began",
                show_bytes(*left)
            )),
            Err(why) => Some(format!("whether writeback was at rest is not known: {why}")),
        }
    }
}

/// Waits until dirty pages and pages in writeback are few, or no longer become fewer, `limit` at most.
pub fn settle(root: &Root, limit: Duration, stop: &AtomicBool) -> Settled {
    let start = Instant::now();
    let mut least = u64::MAX;
    let mut fell = start;
    loop {
        let now = Instant::now();
        let left_bytes = dirty_bytes(root);
        let Ok(left) = left_bytes else { return Settled { left_bytes } };
        if left < least {
            (least, fell) = (left, now);
        }
        if left <= REST_BYTES || now - fell > NO_FALL || now - start > limit || stop.load(Ordering::Relaxed) {
            return Settled { left_bytes };
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn dirty_bytes(root: &Root) -> Known<u64> {
    let text = root.read("/proc/meminfo")?;
    Ok(meminfo_bytes(&text, "Dirty")? + meminfo_bytes(&text, "Writeback")?)
}
