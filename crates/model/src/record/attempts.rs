//! Preconditioning, disturbed runs, and which attempt at a run counts.
//!
//! The measurement and the analysis both use [`which_count`]. Of the attempts at a unit, such as a run, the last complete
//! and undisturbed one counts. If there is none, the first one counts.

use crate::study::TargetLayout;
use crate::units::{show_count, show_rate, show_share};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The writes before the first run that brought the storage into a steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Preconditioned {
    /// Bytes written from end to end in all passes.
    pub filled_bytes: u64,
    /// Duration of the writes from end to end, in ns.
    pub filled_ns: u64,
    /// The jobs that ran in rounds afterwards; empty if no job writes.
    pub rounds: Vec<Rounds>,
    /// Bytes written in the rounds.
    pub rounds_bytes: u64,
    /// Duration of the rounds in ns.
    pub rounds_ns: u64,
    /// Whether the rates of all jobs had settled at the end of the rounds; `None` without rounds.
    pub settled: Option<bool>,
    /// Deviations from the planned preconditioning, in sentences.
    pub notes: Vec<String>,
}

/// The rates of a job in the rounds before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rounds {
    /// Index into the plan's jobs.
    pub job: usize,
    /// Operations per second of each round, in order of time.
    pub iops: Vec<f64>,
}

/// One attempt at a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the job.
    pub job: usize,
    /// Number of earlier runs of the job.
    pub repeat: u32,
    /// Number of earlier attempts at this run.
    pub attempt: u32,
    /// Offered operations per second, if the strategy chose them; `None` if the job sets them.
    pub offered_iops: Option<u64>,
    /// Whether other processes or limits disturbed the attempt.
    pub disturbed: bool,
    /// Whether the attempt was complete.
    pub complete: bool,
}

/// The unit that is repeated after a disturbance: a single run, or several runs that are compared with each other (a round
/// of all jobs, or one test on all targets).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedUnit {
    /// Index of the job or of the test; `None` for a round of all jobs.
    group: Option<usize>,
    /// Number of earlier runs of the group.
    repeat: u32,
    /// Offered operations per second that the strategy chose; `None` if it chose none.
    offered_iops: Option<u64>,
}

/// The runs that form a [`RepeatedUnit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each run by itself.
    Runs,
    /// All runs of a round.
    Rounds,
    /// All runs of one test in a round: one on each target.
    Tests(TargetLayout),
}

impl Attempt {
    /// Returns the unit that the attempt belongs to.
    pub fn unit(&self, pairing: Pairing) -> RepeatedUnit {
        let (group, offered_iops) = match pairing {
            Pairing::Runs => (Some(self.job), self.offered_iops),
            Pairing::Rounds => (None, None),
            Pairing::Tests(layout) => (Some(layout.group(self.job)), None),
        };
        RepeatedUnit { group, repeat: self.repeat, offered_iops }
    }

    /// Returns whether `other` is the same attempt at the same run. The phases of the two may differ.
    pub fn is_same_attempt(&self, other: &Self) -> bool {
        (self.unit(Pairing::Runs), self.attempt) == (other.unit(Pairing::Runs), other.attempt)
    }
}

/// Returns for each attempt whether it counts. Of the attempts at a unit, the last valid one counts; without one, the
/// first. A valid attempt is undisturbed, and has at least as many complete runs as the first attempt and at least one.
pub fn which_count(tried: &[Attempt], pairing: Pairing) -> Vec<bool> {
    if tried.iter().all(|a| a.attempt == 0) {
        return vec![true; tried.len()];
    }
    let mut units: BTreeMap<RepeatedUnit, BTreeMap<u32, AttemptSum>> = BTreeMap::new();
    for one in tried {
        let sum = units.entry(one.unit(pairing)).or_default().entry(one.attempt).or_default();
        sum.disturbed |= one.disturbed;
        sum.complete += usize::from(one.complete);
    }
    let chosen: BTreeMap<RepeatedUnit, u32> =
        units.into_iter().map(|(unit, sums)| (unit, counting_attempt(&sums))).collect();
    tried.iter().map(|a| chosen.get(&a.unit(pairing)) == Some(&a.attempt)).collect()
}

/// The runs and the state of one attempt at a unit.
#[derive(Default)]
struct AttemptSum {
    disturbed: bool,
    /// Number of complete runs.
    complete: usize,
}

/// Returns the attempt at a unit that counts.
fn counting_attempt(sums: &BTreeMap<u32, AttemptSum>) -> u32 {
    let Some((first, first_sum)) = sums.first_key_value() else { return 0 };
    let is_undisturbed = |sum: &AttemptSum| !sum.disturbed && sum.complete >= first_sum.complete.max(1);
    sums.iter().rev().find(|(_, sum)| is_undisturbed(sum)).map_or(*first, |(attempt, _)| *attempt)
}

/// The disturbances of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Number of earlier attempts at the run.
    pub attempt: u32,
    /// The disturbances, at least one.
    #[serde(rename = "by")]
    pub disturbances: Vec<Disturbance>,
}

/// One disturbance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Disturbance {
    /// Other processes used the measured disks.
    ForeignIo {
        /// Kernel name of the disk.
        device: String,
        /// Bytes per second, read and written.
        bytes_per_s: f64,
        /// Requests per second. `None` if large operations of fathom were split, because the requests of other
        /// processes cannot be counted then.
        #[serde(default)]
        ios_per_s: Option<f64>,
    },
    /// The hypervisor took CPU time away.
    StolenCpu {
        /// Share of the time of all CPUs.
        share: f64,
    },
    /// A limit of a cgroup was changed.
    LimitChanged {
        /// The limits before the change, one per line.
        before: String,
        /// The limits after the change.
        after: String,
    },
}

impl Disturbed {
    /// Describes all disturbances: `240 MB/s of other processes on vda`.
    pub fn describe(&self) -> String {
        self.disturbances.iter().map(Disturbance::describe).collect::<Vec<_>>().join("; ")
    }
}

impl Disturbance {
    /// Describes one disturbance: `240 MB/s of other processes on vda (480 requests/s)`.
    pub fn describe(&self) -> String {
        match self {
            Self::ForeignIo { device, bytes_per_s, ios_per_s } => {
                let mb_per_s = show_rate(bytes_per_s / 1e6);
                // Older records have 0 instead of `None`.
                let ios = ios_per_s.filter(|ios| *ios > 0.0);
                let ios = ios.map_or(String::new(), |ios| format!(" ({} requests/s)", show_count(ios)));
                format!("{mb_per_s} MB/s of other processes on {device}{ios}")
            }
            Self::StolenCpu { share } => {
                format!("the hypervisor took {} of the CPU time", show_share(*share))
            }
            Self::LimitChanged { before, after } => {
                format!("a cgroup limit changed: {}", changed_lines(before, after))
            }
        }
    }
}

/// Lists the limits that were changed, added or removed: `io.max: 254:0 400, which was not set`.
fn changed_lines(before: &str, after: &str) -> String {
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

#[cfg(test)]
fn attempt_at(job: usize, repeat: u32, attempt: u32, disturbed: bool) -> Attempt {
    Attempt { job, repeat, attempt, offered_iops: None, disturbed, complete: true }
}

#[test]
fn the_last_undisturbed_attempt_counts_otherwise_the_first() {
    let attempts = |marks: &[bool]| {
        let all: Vec<Attempt> =
            marks.iter().zip(0..).map(|(d, attempt)| attempt_at(0, 2, attempt, *d)).collect();
        which_count(&all, Pairing::Runs).iter().position(|c| *c)
    };
    assert_eq!(attempts(&[false]), Some(0));
    assert_eq!(attempts(&[true]), Some(0));
    assert_eq!(attempts(&[true, false]), Some(1));
    assert_eq!(attempts(&[true, true, false]), Some(2));
    assert_eq!(attempts(&[true, true, true]), Some(0));
    // An attempt that was cut off does not count.
    let cut = Attempt { complete: false, ..attempt_at(0, 0, 1, false) };
    assert_eq!(which_count(&[attempt_at(0, 0, 0, true), cut], Pairing::Runs), [true, false]);
}

#[test]
fn runs_and_loads_are_separate_units() {
    let load = |iops, attempt, disturbed| Attempt {
        offered_iops: Some(iops),
        ..attempt_at(1, 0, attempt, disturbed)
    };
    let all = [
        attempt_at(0, 0, 0, true),
        attempt_at(0, 1, 0, false),
        load(9, 0, true),
        load(9, 1, false),
        load(7, 0, false),
    ];
    assert_eq!(which_count(&all, Pairing::Runs), [true, true, false, true, true]);
}

#[test]
fn a_round_of_compared_runs_counts_as_one_unit() {
    let first = [attempt_at(0, 0, 0, false), attempt_at(1, 0, 0, true)];
    let half = [first.as_slice(), &[attempt_at(1, 0, 1, false)]].concat();
    assert_eq!(
        which_count(&half, Pairing::Rounds),
        [true, true, false],
        "an attempt at half of a round does not count"
    );
    let complete = [half.as_slice(), &[attempt_at(0, 0, 1, false)]].concat();
    assert_eq!(which_count(&complete, Pairing::Rounds), [false, false, true, true]);
    let repeated = [first.as_slice(), &[attempt_at(1, 0, 1, false), attempt_at(0, 0, 1, true)]].concat();
    assert_eq!(which_count(&repeated, Pairing::Rounds), [true, true, false, false]);
}

#[test]
fn a_test_on_all_targets_counts_as_one_unit() {
    let layout = TargetLayout { tests: 2, targets: 2 };
    let first = [
        attempt_at(0, 0, 0, true),
        attempt_at(1, 0, 0, false),
        attempt_at(2, 0, 0, false),
        attempt_at(3, 0, 0, false),
    ];
    let half = [first.as_slice(), &[attempt_at(1, 0, 1, false)]].concat();
    assert_eq!(which_count(&half, Pairing::Tests(layout)), [true, true, true, true, false]);
    let complete = [half.as_slice(), &[attempt_at(0, 0, 1, false)]].concat();
    assert_eq!(which_count(&complete, Pairing::Tests(layout)), [false, false, true, true, true, true]);
}

#[test]
fn disturbances_are_described_with_their_numbers() {
    let foreign =
        Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 240e6, ios_per_s: Some(1_920.0) };
    let stolen = Disturbance::StolenCpu { share: 0.042 };
    let text = Disturbed { attempt: 0, disturbances: vec![foreign, stolen] }.describe();
    assert_eq!(
        text,
        "240 MB/s of other processes on vda (1,920 requests/s); the hypervisor took 4.2 % of the CPU time"
    );
    let large = Disturbance::ForeignIo { device: "vda".into(), bytes_per_s: 297e6, ios_per_s: None };
    assert_eq!(large.describe(), "297 MB/s of other processes on vda");
    let limit = |before: &str, after: &str| {
        Disturbance::LimitChanged { before: before.into(), after: after.into() }.describe()
    };
    assert_eq!(limit("a: 1\n", "a: 1\nb: 2\n"), "a cgroup limit changed: b: 2, which was not set");
    assert_eq!(limit("a: 1", ""), "a cgroup limit changed: a: 1, which is no longer set");
    assert_eq!(limit("a: 1", "a: 2"), "a cgroup limit changed: from a: 1 to a: 2");
}
