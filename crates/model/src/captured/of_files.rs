//! Requests of files: what a capture of a device kept of those of some files.
//!
//! For: how many were kept and left out, and why. Not for: telling them apart (crate `capture`).

use crate::units::{show_bytes, show_count};
use serde::{Deserialize, Serialize};

/// What was kept of the requests of a device: those of some files, as these lay when the capture began and when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfFiles {
    /// How many files there were when it ended.
    pub files: u64,
    /// Their stretches of the device then, and the bytes of these.
    pub stretches: u64,
    /// Bytes of the device that are theirs then.
    pub bytes: u64,
    /// Bytes of theirs then that have no place on the device of their own: inside inodes, or not allocated yet.
    pub unplaced_bytes: u64,
    /// Requests that were kept, and touch what was theirs at only one of the two times: others may have had it at the other.
    pub moved: u64,
    /// Requests that were left out, since they touch nothing of theirs.
    pub elsewhere: u64,
    /// Requests that were left out, since they touch something of theirs and something else.
    pub partly: u64,
    /// Requests that were left out, since they have no place: flushes.
    pub without_place: u64,
}

impl OfFiles {
    /// What was kept and what was not, in words.
    pub fn describe(&self) -> String {
        let count = |n: u64| show_count(n as f64);
        let noun =
            |n: u64, one: &str, many: &str| format!("{} {}", count(n), if n == 1 { one } else { many });
        let mut out = format!(
            "Of {} alone ({} in {}): {} elsewhere, {} partly elsewhere and {} without a place (flushes) were left out",
            noun(self.files, "file", "files"),
            show_bytes(self.bytes),
            noun(self.stretches, "stretch", "stretches"),
            noun(self.elsewhere, "request", "requests"),
            count(self.partly),
            count(self.without_place),
        );
        if self.moved > 0 {
            out += &format!(
                "; {} that were kept touch what was theirs only when the capture began or only when it ended",
                count(self.moved)
            );
        }
        if self.unplaced_bytes > 0 {
            out += &format!("; {} of them have no place on the device", show_bytes(self.unplaced_bytes));
        }
        out
    }
}
