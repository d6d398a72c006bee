//! Disturbed: what others did to the machine during a run, where that was enough to measure it again.
//!
//! For: the decision as it was recorded, with its numbers and in words. Not for: deciding (`analysis::strategy::disturbed`).

use crate::units::{show_count, show_rate, show_share};
use serde::{Deserialize, Serialize};

/// Others disturbed a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Which attempt at the run.
    pub attempt: u32,
    /// What they did, at least one thing.
    pub by: Vec<Disturbance>,
}

/// One thing that others did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Disturbance {
    /// They used our disks.
    ForeignIo {
        /// Kernel names of the disks.
        device: String,
        /// Bytes per second, read and written.
        bytes_per_s: f64,
        /// Requests per second; `None` if large operations were split, so that others' requests cannot be counted.
        #[serde(default)]
        ios_per_s: Option<f64>,
    },
    /// The hypervisor took CPU time away.
    StolenCpu {
        /// Part of the time of all CPUs.
        share: f64,
    },
    /// A limit of a cgroup was changed.
    LimitChanged {
        /// The limits that were set before, a line for each.
        before: String,
        /// Those that are set now.
        after: String,
    },
}

impl Disturbed {
    /// `240 MB/s of others on vda`.
    pub fn describe(&self) -> String {
        self.by.iter().map(Disturbance::describe).collect::<Vec<_>>().join("; ")
    }
}

impl Disturbance {
    /// One disturbance in words: `240 MB/s of others on vda (480 requests/s)`.
    pub fn describe(&self) -> String {
        match self {
            Self::ForeignIo { device, bytes_per_s, ios_per_s } => {
                let mb_per_s = show_rate(bytes_per_s / 1e6);
                // Older records have 0 where requests could not be counted.
                let ios = ios_per_s.filter(|ios| *ios > 0.0);
                let ios = ios.map_or(String::new(), |ios| format!(" ({} requests/s)", show_count(ios)));
                format!("{mb_per_s} MB/s of others on {device}{ios}")
            }
            Self::StolenCpu { share } => {
                format!("{} of the CPU time was taken by the hypervisor", show_share(*share))
            }
            Self::LimitChanged { before, after } => {
                format!("a limit was changed from outside: {}", changed(before, after))
            }
        }
    }
}

/// The lines that are on one side alone: `io.max: 254:0 400 (was not set)`.
fn changed(before: &str, after: &str) -> String {
    let only = |these: &str, others: &str| -> Vec<String> {
        these.lines().filter(|l| others.lines().all(|o| o != *l)).map(str::to_owned).collect()
    };
    let (gone, new) = (only(before, after), only(after, before));
    match (gone.join(", "), new.join(", ")) {
        (gone, new) if gone.is_empty() => format!("{new}, which was not set"),
        (gone, new) if new.is_empty() => format!("{gone}, which is no longer set"),
        (gone, new) => format!("from {gone} to {new}"),
    }
}

#[test]
fn each_is_said_with_its_number() {
    let foreign =
        Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 240e6, ios_per_s: Some(1_920.0) };
    let stolen = Disturbance::StolenCpu { share: 0.042 };
    let words = Disturbed { attempt: 0, by: vec![foreign, stolen] }.describe();
    assert_eq!(
        words,
        "240 MB/s of others on vda (1,920 requests/s); 4.2 % of the CPU time was taken by the hypervisor"
    );
    let large = Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 297e6, ios_per_s: None };
    assert_eq!(large.describe(), "297 MB/s of others on vda");
    let limit = |before: &str, after: &str| {
        Disturbance::LimitChanged { before: before.into(), after: after.into() }.describe()
    };
    assert_eq!(limit("a: 1\n", "a: 1\nb: 2\n"), "a limit was changed from outside: b: 2, which was not set");
    assert_eq!(limit("a: 1", ""), "a limit was changed from outside: a: 1, which is no longer set");
    assert_eq!(limit("a: 1", "a: 2"), "a limit was changed from outside: from a: 1 to a: 2");
}
