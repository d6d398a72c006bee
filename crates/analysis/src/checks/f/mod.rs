//! Group F: hosts that measure as one.
//!
//! For: the table of the group, and what several of its checks ask of the hosts. Not for: one host's own ledger, which is asked there and
//! gathered (`crate::fleet`). Of one host alone none of them applies.

mod f01_clocks;
mod f02_unequal_work;
mod f03_anothers_cache;
mod f04_counted_twice;
mod f05_hosts_differ;

use super::check::Check;
use crate::case::Case;
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

/// What was seen of the hosts; `None` where one measured alone.
fn fleet<'c>(case: &Case<'c>) -> Option<&'c Fleet> {
    case.record.fleet.as_deref()
}

/// The hosts that took part in this result, by rank; none where one measured alone.
fn hosts<'c>(case: &Case<'c>) -> &'c [HostSeen] {
    let all = fleet(case).map_or(&[][..], |f| &f.hosts);
    let took_part = &all[..case.record.header.plan.hosts_of(case.at, all.len())];
    if took_part.len() > 1 { took_part } else { &[] }
}

/// How the runs of this result began and ended that have a time in which all hosts ran.
fn runs<'c>(case: &Case<'c>) -> Vec<&'c RunSeen> {
    let is_its = |run: &&RunSeen| run.which[..2] == [case.at as u32, case.phase as u32] && run.longest_ns > 0;
    fleet(case).into_iter().flat_map(|f| &f.runs).filter(is_its).collect()
}

/// What storage is known by, so that two that are one are told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Storage {
    /// A device, by model and serial number, or by its number within one kernel.
    Device(String),
    /// A file system without a device, by what is mounted.
    Mounted(String),
}

impl Storage {
    fn name(&self) -> &str {
        let (Self::Device(words) | Self::Mounted(words)) = self;
        words
    }
}

/// What the storage of a host is known by.
///
/// # Errors
/// That nothing is known of it.
fn storage(case: &Case, rank: usize) -> Known<BTreeSet<Storage>> {
    let seen = hosts(case).get(rank).ok_or("the record does not name its hosts")?;
    let unknown = || format!("what is below the targets of {} is not in the record", seen.name);
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
        // What is mounted of a program or of memory has a name that says nothing beyond its machine.
        let kernel = seen.kernel.filter(|_| !fs.source.contains(':'));
        let within = kernel.map_or(String::new(), |kernel| format!(" of kernel {kernel}"));
        known.insert(Storage::Mounted(format!("{}{within}", fs.source)));
    }
    if known.is_empty() { Err(unknown()) } else { Ok(known) }
}

/// Numbers of hosts whose storage is known to be that of another one too, with what it is known by.
///
/// # Errors
/// Of which host nothing is known.
fn sharing(case: &Case) -> Known<Vec<(Storage, Vec<usize>)>> {
    let count = hosts(case).len();
    let each = (0..count).map(|rank| storage(case, rank)).collect::<Known<Vec<_>>>()?;
    let all: BTreeSet<&Storage> = each.iter().flatten().collect();
    let with = |what: &Storage| (0..count).filter(|rank| each[*rank].contains(what)).collect::<Vec<_>>();
    let shared = all.into_iter().map(|what| (what.clone(), with(what)));
    Ok(shared.filter(|(_, ranks)| ranks.len() > 1).collect())
}

/// Names of hosts by their numbers.
fn named(case: &Case, ranks: &[usize]) -> String {
    let name = |rank: &usize| Some(hosts(case).get(*rank)?.name.as_str());
    crate::host_names::names(&ranks.iter().filter_map(name).collect::<Vec<_>>())
}

/// An honest record of two hosts, each with a disk of its own.
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

/// An honest record of two hosts with something changed about what was seen of them.
#[cfg(test)]
fn with(change: impl FnOnce(&mut Fleet)) -> model::record::Record {
    let mut record = honest();
    change(record.fleet.as_mut().unwrap());
    record
}

#[test]
fn one_host_alone_is_asked_nothing() {
    let record = crate::fixture::Fixture::honest().record();
    assert!(CHECKS.iter().all(|c| matches!(c.answer(&record), Ok(super::check::Answer::DoesNotApply))));
}

#[test]
fn all_hold_of_honest_hosts() {
    for check in CHECKS {
        let answer = check.answer(&honest());
        assert!(matches!(answer, Ok(super::check::Answer::Holds(..))), "{}: {answer:?}", check.id);
    }
}
