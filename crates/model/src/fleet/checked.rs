//! Asked: what checks and limiters said on many hosts, added up so that it does not grow with their number.
//!
//! For: who said the same, how many they are, and one of them in full. In whatever order and groups hosts are added, it comes to the same.
//! Not for: concluding anything from it (crate `analysis`).

use crate::check_id::CheckId;
use crate::finding::{Finding, Outcome};
use crate::limiter::Limiter;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Hosts that are kept by their number of those that say the same.
const MOST_NAMED: usize = 8;

/// Hosts that say the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Which {
    /// How many they are.
    pub count: u32,
    /// Their ranks, of many the lowest.
    pub first: Vec<u32>,
}

impl Which {
    /// One of them.
    pub fn only(rank: u32) -> Self {
        Self { count: 1, first: vec![rank] }
    }

    /// Several of them.
    pub fn of_all(ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut all = Self::default();
        ranks.into_iter().for_each(|rank| all.add(&Self::only(rank)));
        all
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.first.extend(&other.first);
        self.first.sort_unstable();
        self.first.truncate(MOST_NAMED);
    }

    /// The lowest rank among them.
    fn lowest(&self) -> u32 {
        self.first.first().copied().unwrap_or(u32::MAX)
    }
}

/// What hosts were told by a check alike, in the words of the lowest rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostsFinding {
    /// Who.
    pub hosts: Which,
    /// What.
    pub finding: Finding,
}

impl HostsFinding {
    fn add(&mut self, other: Self) {
        if other.hosts.lowest() < self.hosts.lowest() {
            self.finding = other.finding;
        }
        self.hosts.add(&other.hosts);
    }
}

/// What a check said of a result on all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedOnHosts {
    /// Which check.
    pub id: CheckId,
    /// Name of the result.
    pub about: String,
    /// Number of hosts on which it holds.
    #[serde(default)]
    pub held: u32,
    /// The worst that it found, on the hosts where it is as bad as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<HostsFinding>,
    /// Where it could not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<HostsFinding>,
}

impl CheckedOnHosts {
    /// What the checks of one host said, in the order in which it is added.
    pub fn on(rank: u32, findings: &[Finding]) -> Vec<Self> {
        let mut all = Vec::new();
        for finding in findings {
            let told = || Some(HostsFinding { hosts: Which::only(rank), finding: finding.clone() });
            let one = |about: &String| Self {
                id: finding.id,
                about: about.clone(),
                held: u32::from(finding.outcome == Outcome::Holds),
                found: told().filter(|_| finding.outcome == Outcome::Finding),
                not_checked: told().filter(|_| finding.outcome == Outcome::NotChecked),
            };
            Self::add(&mut all, finding.about.iter().map(one));
        }
        all
    }

    /// Adds what was said on other hosts. Both are in the order of checks and results.
    pub fn add(all: &mut Vec<Self>, others: impl IntoIterator<Item = Self>) {
        let key = |one: &Self| (one.id, one.about.clone());
        for other in others {
            match all.binary_search_by_key(&key(&other), key) {
                Ok(at) => all[at].absorb(other),
                Err(at) => all.insert(at, other),
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        self.held += other.held;
        self.not_checked = both(self.not_checked.take(), other.not_checked);
        let severity = |told: &Option<HostsFinding>| told.as_ref().and_then(|t| t.finding.severity);
        let (mine, its) = (severity(&self.found), severity(&other.found));
        self.found = match (self.found.take(), other.found) {
            // The first severity is the worst.
            (Some(_), Some(worse)) if its < mine => Some(worse),
            (Some(worse), Some(_)) if mine < its => Some(worse),
            (mine, its) => both(mine, its),
        };
    }
}

fn both(one: Option<HostsFinding>, other: Option<HostsFinding>) -> Option<HostsFinding> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.add(other);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// Hosts that were kept from a higher rate by the same, in the words of the slowest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// Name of the result.
    pub result: String,
    /// How many they are.
    pub hosts: u32,
    /// Rank of the slowest, and its operations per second.
    pub slowest: (u32, f64),
    /// What it says.
    pub limiter: Limiter,
}

impl Limited {
    /// Adds other hosts. Both are in the order of results and limiters.
    pub fn add(all: &mut Vec<Self>, others: impl IntoIterator<Item = Self>) {
        let key = |one: &Self| (one.result.clone(), one.limiter.name.clone());
        for other in others {
            match all.binary_search_by_key(&key(&other), key) {
                Ok(at) => all[at].absorb(other),
                Err(at) => all.insert(at, other),
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        self.hosts += other.hosts;
        if other.by_slowness(self) == Ordering::Less {
            (self.slowest, self.limiter) = (other.slowest, other.limiter);
        }
    }

    /// The order of two groups by their slowest hosts, the slower one first.
    pub fn by_slowness(&self, other: &Self) -> Ordering {
        self.slowest.1.total_cmp(&other.slowest.1).then(self.slowest.0.cmp(&other.slowest.0))
    }
}

#[cfg(test)]
use crate::finding::Severity;

#[cfg(test)]
fn finding(outcome: Outcome, severity: Option<Severity>, sentence: String) -> Finding {
    Finding {
        id: CheckId::A01,
        name: "X".into(),
        outcome,
        severity,
        about: vec!["read".into()],
        sentence,
        cure: String::new(),
        evidence: std::collections::BTreeMap::new(),
        accepted: false,
    }
}

#[test]
fn the_worst_counts_with_how_many_hosts_it_is_on_in_any_order() {
    let on = |rank: u32| {
        let (outcome, severity) = match rank % 4 {
            0 => (Outcome::Holds, None),
            1 => (Outcome::NotChecked, None),
            2 => (Outcome::Finding, Some(Severity::Note)),
            _ => (Outcome::Finding, Some(Severity::Biased)),
        };
        CheckedOnHosts::on(rank, &[finding(outcome, severity, format!("on {rank}"))])
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
        (found.finding.sentence.as_str(), found.hosts.first.as_slice()),
        ("on 3", &[3, 7, 11, 15, 19, 23, 27, 31][..])
    );
    assert_eq!(sum(&mut (0..80).rev()), all);
    let mut halves = sum(&mut (0..80).filter(|rank| rank % 3 == 0));
    CheckedOnHosts::add(&mut halves, sum(&mut (0..80).filter(|rank| rank % 3 > 0)));
    assert_eq!(halves, all);
}

#[test]
fn of_those_that_one_thing_limits_the_slowest_speaks() {
    let of = |rank: u32, iops: f64| Limited {
        result: "read".into(),
        hosts: 1,
        slowest: (rank, iops),
        limiter: Limiter { name: "device".into(), sentence: format!("on {rank}"), evidence: [].into() },
    };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    Limited::add(&mut one, [of(0, 9.0), of(1, 3.0), of(2, 3.0)]);
    Limited::add(&mut other, [of(2, 3.0), of(1, 3.0), of(0, 9.0)]);
    assert_eq!(one, other);
    assert_eq!((one.len(), one[0].hosts, one[0].limiter.sentence.as_str()), (1, 3, "on 1"));
}
