//! Group F: whether several hosts measured as one.
//!
//! Has the table of the group, and the facts about the hosts that its checks need. No check of the group applies
//! to a single host.

mod f01_clocks;
mod f02_unequal_work;
mod f03_anothers_cache;
mod f04_counted_twice;
mod f05_hosts_differ;

use crate::case::Case;
use crate::checks::Check;
use model::Known;
use model::fleet::{Fleet, HostSeen, RunSeen};
use model::machine::Place;
use std::collections::BTreeSet;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    f01_clocks::CHECK,
    f02_unequal_work::CHECK,
    f03_anothers_cache::CHECK,
    f04_counted_twice::CHECK,
    f05_hosts_differ::CHECK,
];

/// Returns the observations of the hosts, or `None` if a single host measured.
fn fleet<'c>(case: &Case<'c>) -> Option<&'c Fleet> {
    case.record.fleet.as_deref()
}

/// Returns the hosts that ran this job, by rank, or none if a single host measured.
fn hosts<'c>(case: &Case<'c>) -> &'c [HostSeen] {
    let all = fleet(case).map_or(&[][..], |f| &f.hosts);
    let participants = &all[..case.record.header.plan.hosts_in_job(case.at, all.len())];
    if participants.len() > 1 { participants } else { &[] }
}

/// Returns the runs of this result that have a time in which all hosts ran.
fn runs<'c>(case: &Case<'c>) -> Vec<&'c RunSeen> {
    let is_its = |run: &&RunSeen| run.which[..2] == [case.at as u32, case.phase as u32] && run.longest_ns > 0;
    fleet(case).into_iter().flat_map(|f| &f.runs).filter(is_its).collect()
}

/// Identifies storage, so that two hosts with the same storage are found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Storage {
    /// A device: model and serial number, or device number within one kernel.
    Device(String),
    /// A file system without a device: the mounted source.
    Mounted(String),
}

impl Storage {
    fn name(&self) -> &str {
        let (Self::Device(name) | Self::Mounted(name)) = self;
        name
    }
}

/// Returns the identities of a host's storage.
///
/// # Errors
/// Fails if none is known.
fn storage_of_host(case: &Case, rank: usize) -> Known<BTreeSet<Storage>> {
    let seen = hosts(case).get(rank).ok_or("the record does not name its hosts")?;
    let unknown = || format!("the record does not contain the storage of the targets of {}", seen.name);
    let machine = case.record.header.hosts.get(rank).ok_or_else(unknown)?;
    let places: Vec<&Place> =
        case.stream.targets.iter().filter_map(|target| machine.places.get(*target)).collect();
    let mut known = BTreeSet::new();
    for leaf in places.iter().flat_map(|place| place.leaves()) {
        if let Some(serial) = leaf.serial.as_deref().map(str::trim).filter(|serial| !serial.is_empty()) {
            known.insert(Storage::Device(format!(
                "{} {serial}",
                leaf.model.as_deref().unwrap_or("device").trim()
            )));
        }
        if let Some(kernel) = seen.kernel {
            known.insert(Storage::Device(format!("{} ({}) of kernel {kernel}", leaf.name, leaf.number)));
        }
    }
    let without = places.iter().filter(|place| place.layers.is_empty());
    for fs in without.filter_map(|place| place.file_system.as_ref()) {
        // A source such as `tmpfs` is only unique within its machine.
        let kernel = seen.kernel.filter(|_| !fs.source.contains(':'));
        let within = kernel.map_or(String::new(), |kernel| format!(" of kernel {kernel}"));
        known.insert(Storage::Mounted(format!("{}{within}", fs.source)));
    }
    if known.is_empty() { Err(unknown()) } else { Ok(known) }
}

/// Returns the storage that several hosts share, with the ranks of these hosts.
///
/// # Errors
/// Fails if the storage of a host is unknown.
fn shared_storage(case: &Case) -> Known<Vec<(Storage, Vec<usize>)>> {
    let count = hosts(case).len();
    let storage_by_rank = (0..count).map(|rank| storage_of_host(case, rank)).collect::<Known<Vec<_>>>()?;
    let all: BTreeSet<&Storage> = storage_by_rank.iter().flatten().collect();
    let with =
        |what: &Storage| (0..count).filter(|rank| storage_by_rank[*rank].contains(what)).collect::<Vec<_>>();
    let shared = all.into_iter().map(|what| (what.clone(), with(what)));
    Ok(shared.filter(|(_, ranks)| ranks.len() > 1).collect())
}

/// Returns the names of hosts by rank.
fn host_names(case: &Case, ranks: &[usize]) -> String {
    let name = |rank: &usize| Some(hosts(case).get(*rank)?.name.as_str());
    crate::host_names::names(&ranks.iter().filter_map(name).collect::<Vec<_>>())
}

/// An honest record of two hosts, each with its own disk.
#[cfg(test)]
pub(super) fn honest() -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    let mut other = record.header.hosts[0].clone();
    other.host = "b".into();
    record.header.hosts[0].places[0].layers[0].serial = Some("S1".into());
    other.places[0].layers[0].serial = Some("S2".into());
    record.header.hosts.push(other);
    let host = |(name, kernel): (&str, u32)| HostSeen {
        name: name.into(),
        kernel: Some(kernel),
        target_bytes: vec![1 << 30],
        ..HostSeen::default()
    };
    let run = |repeat| RunSeen {
        which: [0, 0, repeat, 0],
        offered_iops: None,
        spread_ns: Some(20_000),
        clock_error_ns: Some(5_000),
        last: Some(1),
        common_ns: 999_000_000,
        longest_ns: 1_000_000_000,
    };
    let hosts = [("a", 0), ("b", 1)].map(host).into();
    record.fleet = Some(Box::new(Fleet { hosts, runs: (0..5).map(run).collect(), ..Fleet::default() }));
    record
}

/// An honest record of two hosts, after `change` to their observations.
#[cfg(test)]
fn with(change: impl FnOnce(&mut Fleet)) -> model::record::Record {
    let mut record = honest();
    change(record.fleet.as_mut().unwrap());
    record
}

#[test]
fn the_group_does_not_apply_to_a_single_host() {
    let record = crate::fixture::Fixture::honest().record();
    assert!(CHECKS.iter().all(|c| matches!(c.answer(&record), Ok(super::Answer::DoesNotApply))));
}

#[test]
fn all_checks_hold_on_honest_hosts() {
    for check in CHECKS {
        let answer = check.answer(&honest());
        assert!(matches!(answer, Ok(super::Answer::Holds(..))), "{}: {answer:?}", check.id);
    }
}
