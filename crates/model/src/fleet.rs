//! A measurement on several hosts: the rank of a host, what every host reported, and the figures of
//! all of them.
//!
//! Findings and limiters are counted over the hosts, so that a report does not grow with the number of hosts.

#[cfg(test)]
use crate::finding::Severity;
use crate::finding::{CheckId, Checked, Outcome};
use crate::job::Kind;
use crate::verdict::{Limiter, Verdict};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The rank of this host in a measurement on several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRank {
    /// Rank of the host, from 0.
    pub rank: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of other hosts of the fleet on the same kernel. Their requests are in the same counters.
    #[serde(default)]
    pub neighbours: u32,
}

/// Observations of a measurement on several hosts, in addition to the merged runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// What was observed on each host, in the order of ranks.
    pub hosts: Vec<HostRecord>,
    /// Outcomes of the checks on the hosts, by check and measured result.
    #[serde(default, rename = "asked")]
    pub checks: Vec<CheckedOnHosts>,
    /// Limiters on the hosts, by result and limiter.
    #[serde(default)]
    pub limited: Vec<LimitedHosts>,
    /// How each run began and ended, in order of time.
    pub runs: Vec<RunOnHosts>,
    /// Differences between the hosts, in sentences.
    pub differences: Vec<String>,
    /// Why the measurement ended early, with the host; `None` if it did not.
    pub lost: Option<Lost>,
}

/// A host that was lost, or that ended the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lost {
    /// Name of the host.
    pub host: String,
    /// The reason, as text that follows the host's name: `has been silent for more than 3 s`.
    pub why: String,
    /// When the loss was noticed, in seconds since the session began.
    pub at_s: f64,
}

/// The data that rank 0 keeps for one host. There may be thousands of hosts. Findings and limiters that many hosts share are stored once
/// ([`CheckedOnHosts`], [`LimitedHosts`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Rank of the host, from 0.
    #[serde(default)]
    pub rank: u32,
    /// Name, including the rank if several ranks are on the host.
    pub name: String,
    /// Session file of the host; `None` if the host kept no session file or was lost.
    pub session: Option<String>,
    /// Verdict on the host's results; `None` if it was lost before judging them.
    pub verdict: Option<Verdict>,
    /// The reason for the verdict.
    pub reason: String,
    /// One entry for each result of the report.
    pub results: Vec<HostResult>,
    /// Number of findings, and number of checks that could not be done.
    #[serde(default)]
    pub findings: [u32; 2],
    /// Serial number that fathom assigned to the host's kernel. Hosts with the same number are one machine. `None` if
    /// the kernel is unknown.
    #[serde(default)]
    pub kernel: Option<u32>,
    /// Size of each target on the host in the last run, in bytes; empty without a run.
    #[serde(default)]
    pub target_bytes: Vec<u64>,
}

/// A result of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostResult {
    /// Name of the result, as in the report.
    pub name: String,
    /// The true name of the measurement, if findings changed it; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// Verdict on the number, from the findings of this host alone.
    pub verdict: Verdict,
    /// Operations per second; `None` if there is no number.
    pub iops: Option<f64>,
    /// 10^6 bytes per second; `None` if there is no number.
    pub mb_per_s: Option<f64>,
    /// Median and 99th percentile of latency in ns by kind; `None` with too few operations.
    pub latency_ns: Vec<(Kind, [Option<u64>; 2])>,
    /// CPU time of the workers per operation in ns; `None` if unknown.
    pub cpu_ns_per_op: Option<f64>,
    /// The limiter in a word or two.
    pub limiter: String,
}

stored_as_list! {
    /// The place of a run in the session.
    #[derive(Copy, Eq)]
    RunIndex {
        /// Index of the job.
        job: u32,
        /// Index of the phase in the job.
        phase: u32,
        /// Number of earlier repeats of the job.
        repeat: u32,
        /// Number of earlier attempts at this run.
        attempt: u32,
    }
}

/// How a run began and ended on all hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOnHosts {
    /// Job, phase, repeat and attempt.
    #[serde(rename = "which")]
    pub index: RunIndex,
    /// Offered operations per second that the strategy chose; `None` if it chose none. Runs of a
    /// load curve may have the same `index` and differ in this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<u64>,
    /// Time in ns from the start of the first host to the start of the last host, by their first operations and corrected clocks; `None` if
    /// fewer than two hosts ran, or if one did not begin.
    pub spread_ns: Option<u64>,
    /// Largest possible clock error of a host in ns: half of the round trip of the message that compared its clock with
    /// another host's; `None` if unknown.
    pub clock_error_ns: Option<u64>,
    /// Rank of the host that began last; `None` if `spread_ns` is `None`.
    pub last: Option<u32>,
    /// Time during which the load of all hosts ran at once, in ns.
    pub common_ns: u64,
    /// Time from the first to the last operation of any host, in ns.
    pub longest_ns: u64,
}

/// The part of a report about the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FleetFigures {
    /// The hosts, ordered by rank.
    pub hosts: Vec<HostFigures>,
    /// One entry for each result that has a rate on at least two hosts.
    pub fairness: Vec<Fairness>,
    /// How runs began; `None` without runs.
    pub start: Option<StartFigures>,
    /// Differences between the hosts, in sentences.
    pub differences: Vec<String>,
    /// Why the measurement ended early, with the host; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// The part of a report about one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFigures {
    /// Name, including the rank if several ranks are on the host.
    pub name: String,
    /// Rank of the host, from 0.
    pub rank: u32,
    /// Session file on the host; `None` if the host kept no session file or was lost.
    pub session: Option<String>,
    /// Verdict on the host's results; `None` if it was lost before judging them.
    pub verdict: Option<Verdict>,
    /// The reason for the verdict.
    pub reason: String,
    /// Number of findings, and number of checks that could not be done.
    #[serde(default)]
    pub findings: [u32; 2],
    /// One entry for each result of the report.
    pub results: Vec<HostRate>,
}

/// A host's contribution to a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostRate {
    /// Name of the result.
    pub name: String,
    /// Verdict on the result on this host.
    pub verdict: Verdict,
    /// Operations per second: geometric mean over runs; `None` if there is no number.
    pub iops: Option<f64>,
    /// 10^6 bytes per second; `None` if there is no number.
    pub mb_per_s: Option<f64>,
    /// Share of the operations of all hosts; `None` without a number.
    pub share: Option<f64>,
    /// Median of latency in ns, by direction (`read`); `None` with too few operations.
    pub p50_ns: BTreeMap<String, Option<u64>>,
    /// 99th percentile of latency in ns, by direction; `None` with too few operations.
    pub p99_ns: BTreeMap<String, Option<u64>>,
    /// CPU time of the workers per operation in ns; `None` if unknown.
    pub cpu_ns_per_op: Option<f64>,
    /// The limiter in a word or two.
    pub limiter: String,
}

/// How evenly a result is divided among the hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Name of the result.
    pub name: String,
    /// The lowest rate of a host divided by the mean rate; 1 if all rates are equal.
    #[serde(rename = "least_by_mean")]
    pub slowest_share_of_mean: f64,
    /// The host that is far slower than the others; `None` if there is none.
    pub straggler: Option<String>,
    /// One sentence about the straggler, with its evidence; empty without a straggler.
    pub sentence: String,
}

/// How runs began on all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartFigures {
    /// Number of runs that began on all hosts.
    pub runs: u32,
    /// Time from the first operation of the first host to the first operation of the last host in ns: the median over the runs.
    pub spread_ns: u64,
    /// Time from the first operation of the first host to the first operation of the last host in ns: the maximum over the runs.
    pub spread_most_ns: u64,
    /// Largest possible clock error of a host in ns, in the worst run.
    pub clock_error_ns: u64,
    /// Number of runs in which the last host began later than the clock error explains.
    #[serde(rename = "outside")]
    pub beyond_clock_error: u32,
    /// Share of a run's time during which the load of all hosts ran at once: the lowest of all
    /// runs.
    pub common_share: f64,
}

/// Maximum number of ranks that a [`HostGroup`] lists.
const MOST_NAMED: usize = 8;

/// Some hosts of a measurement: their number, and the lowest eight of their ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGroup {
    /// Number of hosts.
    pub count: u32,
    /// Ranks of the hosts, ascending; of more than eight hosts, only the lowest eight ranks.
    pub first: Vec<u32>,
}

impl HostGroup {
    /// Creates a group of one host.
    pub fn only(rank: u32) -> Self {
        Self { count: 1, first: vec![rank] }
    }

    /// Creates a group of several hosts.
    pub fn from_ranks(ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut all = Self::default();
        ranks.into_iter().for_each(|rank| all.add(&Self::only(rank)));
        all
    }

    /// Adds the hosts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.first.extend(&other.first);
        self.first.sort_unstable();
        self.first.truncate(MOST_NAMED);
    }

    /// Returns the lowest rank of the group; `u32::MAX` without hosts.
    fn lowest(&self) -> u32 {
        self.first.first().copied().unwrap_or(u32::MAX)
    }
}

/// Hosts on which a check has the same outcome and severity, with the answer on the host of the lowest rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerOfHosts {
    /// The hosts with this outcome and severity.
    pub hosts: HostGroup,
    /// The check with its answer on the host of the lowest rank.
    #[serde(rename = "finding")]
    pub checked: Checked,
}

impl AnswerOfHosts {
    fn add(&mut self, other: Self) {
        if other.hosts.lowest() < self.hosts.lowest() {
            self.checked = other.checked;
        }
        self.hosts.add(&other.hosts);
    }
}

/// The outcomes of a check about one measured result on all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedOnHosts {
    /// The check.
    pub id: CheckId,
    /// Name of the result.
    pub about: String,
    /// Number of hosts on which the check's assumption holds.
    #[serde(default)]
    pub held: u32,
    /// The worst finding, and the hosts that have a finding of the same severity; `None` if no host
    /// has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<AnswerOfHosts>,
    /// The hosts on which the check could not be done; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<AnswerOfHosts>,
}

impl CheckedOnHosts {
    /// Converts the checks of one host to a list that is sorted by check and result.
    pub fn from_host(rank: u32, checks: &[Checked]) -> Vec<Self> {
        let mut all = Vec::new();
        for checked in checks {
            let on_this_host =
                || Some(AnswerOfHosts { hosts: HostGroup::only(rank), checked: checked.clone() });
            let on_result = |about: &String| Self {
                id: checked.id,
                about: about.clone(),
                held: u32::from(checked.outcome == Outcome::Holds),
                found: on_this_host().filter(|_| checked.outcome == Outcome::Finding),
                not_checked: on_this_host().filter(|_| checked.outcome == Outcome::NotChecked),
            };
            Self::add(&mut all, checked.about.iter().map(on_result));
        }
        all
    }

    /// Adds the checks of other hosts, in any order. `all` is sorted by check and result.
    pub fn add(all: &mut Vec<Self>, others: impl IntoIterator<Item = Self>) {
        merge_sorted(all, others, |one| (one.id, one.about.clone()), Self::absorb);
    }

    fn absorb(&mut self, other: Self) {
        self.held += other.held;
        self.not_checked = merge_answers(self.not_checked.take(), other.not_checked);
        let severity = |found: &Option<AnswerOfHosts>| found.as_ref().and_then(|t| t.checked.severity);
        let (mine, its) = (severity(&self.found), severity(&other.found));
        self.found = match (self.found.take(), other.found) {
            // The worst severity is the smallest value.
            (Some(_), Some(worse)) if its < mine => Some(worse),
            (Some(worse), Some(_)) if mine < its => Some(worse),
            (mine, its) => merge_answers(mine, its),
        };
    }
}

/// Adds entries to a list that is sorted by `key`. If the list already has an entry with the same
/// key, `absorb` merges the two.
fn merge_sorted<T, K: Ord>(
    all: &mut Vec<T>,
    others: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
    absorb: impl Fn(&mut T, T),
) {
    for other in others {
        match all.binary_search_by_key(&key(&other), &key) {
            Ok(at) => absorb(&mut all[at], other),
            Err(at) => all.insert(at, other),
        }
    }
}

fn merge_answers(one: Option<AnswerOfHosts>, other: Option<AnswerOfHosts>) -> Option<AnswerOfHosts> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.add(other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

stored_as_list! {
    /// The slowest host of a group.
    #[derive(Copy)]
    SlowestHost {
        /// Rank of the host.
        rank: u32,
        /// Operations per second.
        iops: f64,
    }
}

/// Hosts with the same limiter, with the sentence of the slowest host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitedHosts {
    /// Name of the result.
    pub result: String,
    /// Number of hosts.
    pub hosts: u32,
    /// The host with the lowest rate.
    pub slowest: SlowestHost,
    /// The limiter, with the evidence of the slowest host.
    pub limiter: Limiter,
}

impl LimitedHosts {
    /// Adds the entries of other hosts, in any order. `all` is sorted by result and limiter.
    pub fn add(all: &mut Vec<Self>, others: impl IntoIterator<Item = Self>) {
        merge_sorted(all, others, |one| (one.result.clone(), one.limiter.name.clone()), Self::absorb);
    }

    fn absorb(&mut self, other: Self) {
        self.hosts += other.hosts;
        if other.by_slowness(self) == Ordering::Less {
            (self.slowest, self.limiter) = (other.slowest, other.limiter);
        }
    }

    /// Orders two groups by their slowest hosts, the slower one first.
    pub fn by_slowness(&self, other: &Self) -> Ordering {
        self.slowest.iops.total_cmp(&other.slowest.iops).then(self.slowest.rank.cmp(&other.slowest.rank))
    }
}

#[cfg(test)]
fn finding(outcome: Outcome, severity: Option<Severity>, sentence: String) -> Checked {
    Checked {
        id: CheckId::A01,
        name: "X".into(),
        outcome,
        severity,
        about: vec!["read".into()],
        sentence,
        fix: String::new(),
        evidence: std::collections::BTreeMap::new(),
        accepted: false,
    }
}

#[test]
fn the_worst_finding_is_kept_with_its_hosts_in_any_order() {
    let on = |rank: u32| {
        let (outcome, severity) = match rank % 4 {
            0 => (Outcome::Holds, None),
            1 => (Outcome::NotChecked, None),
            2 => (Outcome::Finding, Some(Severity::Note)),
            _ => (Outcome::Finding, Some(Severity::Biases)),
        };
        CheckedOnHosts::from_host(rank, &[finding(outcome, severity, format!("on {rank}"))])
    };
    let sum = |ranks: &mut dyn Iterator<Item = u32>| {
        let mut all = Vec::new();
        ranks.for_each(|rank| CheckedOnHosts::add(&mut all, on(rank)));
        all
    };
    let all = sum(&mut (0..80));
    let [one] = all.as_slice() else { panic!("{all:?}") };
    let Some((found, not)) = one.found.as_ref().zip(one.not_checked.as_ref()) else { panic!("{one:?}") };
    assert_eq!((one.held, found.hosts.count, not.hosts.count), (20, 20, 20));
    assert_eq!(
        (found.checked.sentence.as_str(), found.hosts.first.as_slice()),
        ("on 3", &[3, 7, 11, 15, 19, 23, 27, 31][..])
    );
    assert_eq!(sum(&mut (0..80).rev()), all);
    let mut halves = sum(&mut (0..80).filter(|rank| rank % 3 == 0));
    CheckedOnHosts::add(&mut halves, sum(&mut (0..80).filter(|rank| rank % 3 > 0)));
    assert_eq!(halves, all);
}

#[test]
fn the_slowest_host_words_a_common_limiter() {
    let limited_host = |rank: u32, iops: f64| LimitedHosts {
        result: "read".into(),
        hosts: 1,
        slowest: SlowestHost { rank, iops },
        limiter: Limiter { name: "device".into(), sentence: format!("on {rank}"), evidence: [].into() },
    };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    LimitedHosts::add(&mut one, [limited_host(0, 9.0), limited_host(1, 3.0), limited_host(2, 3.0)]);
    LimitedHosts::add(&mut other, [limited_host(2, 3.0), limited_host(1, 3.0), limited_host(0, 9.0)]);
    assert_eq!(one, other);
    assert_eq!((one.len(), one[0].hosts, one[0].limiter.sentence.as_str()), (1, 3, "on 1"));
}

#[test]
fn runs_and_hosts_are_stored_as_lists() {
    let index = RunIndex { job: 1, phase: 2, repeat: 3, attempt: 4 };
    let run = serde_json::to_value(RunOnHosts { index, ..RunOnHosts::default() }).unwrap_or_default();
    assert_eq!(run["which"], serde_json::json!([1, 2, 3, 4]));
    assert_eq!(serde_json::from_value(run).ok(), Some(RunOnHosts { index, ..RunOnHosts::default() }));
    let slowest = serde_json::to_value(SlowestHost { rank: 7, iops: 0.5 }).ok();
    assert_eq!(slowest, Some(serde_json::json!([7, 0.5])));
}
