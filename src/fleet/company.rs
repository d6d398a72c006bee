//! Company: whether the ranks that met may measure together, and what their hosts are called.
//!
//! For: one rank per host, one version, names that tell hosts apart. Pure. Not for: what they measure.

use super::letter::Hello;
use std::collections::BTreeMap;

/// Names of all hosts by rank, and what is to be said of them.
///
/// # Errors
/// Why they may not measure together, and what to type instead.
pub(super) fn company(all: &[Hello], ranks_per_host: u32) -> Result<(Vec<String>, Vec<String>), String> {
    let mut hosts: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (rank, hello) in all.iter().enumerate() {
        hosts.entry((&hello.host, &hello.boot)).or_default().push(rank);
    }
    if let Some(other) = all.iter().find(|h| h.version != all[0].version) {
        return Err(format!(
            "{} has fathom {} and {} has fathom {}; install the same one on all hosts",
            all[0].host, all[0].version, other.host, other.version
        ));
    }
    if let Some(((host, _), ranks)) = hosts.iter().find(|(_, ranks)| ranks.len() > ranks_per_host as usize) {
        let count = ranks.len();
        let numbers: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        return Err(format!(
            "{count} ranks are on the host {host} ({}), whose devices and CPUs they would share; start one rank per host (`mpirun --map-by ppr:1:node`), with --workers for more threads, or type --ranks-per-host {count} where that is meant",
            numbers.join(", ")
        ));
    }
    let is_unique = |name: &str| all.iter().filter(|h| h.host == name).count() == 1;
    let name = |(rank, hello): (usize, &Hello)| {
        if is_unique(&hello.host) { hello.host.clone() } else { format!("{} rank {rank}", hello.host) }
    };
    let names: Vec<String> = all.iter().enumerate().map(name).collect();
    Ok((names, one_kernel(all)))
}

/// How many other ranks run on the same kernel, by rank.
pub(super) fn neighbours(all: &[Hello]) -> Vec<u32> {
    let same = |one: &Hello| all.iter().filter(|h| !h.boot.is_empty() && h.boot == one.boot).count() as u32;
    all.iter().map(|one| same(one).saturating_sub(1)).collect()
}

/// Says where hosts of several names are one kernel: they share its CPUs and devices, and their clocks are one.
fn one_kernel(all: &[Hello]) -> Vec<String> {
    let mut kernels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for hello in all.iter().filter(|h| !h.boot.is_empty()) {
        let names = kernels.entry(&hello.boot).or_default();
        if !names.contains(&hello.host.as_str()) {
            names.push(&hello.host);
        }
    }
    let told = |names: Vec<&str>| {
        (names.len() > 1)
            .then(|| format!("{} run on one kernel: they share its CPUs, memory and clock", names.join(", ")))
    };
    kernels.into_values().filter_map(told).collect()
}

#[cfg(test)]
fn hello(host: &str, boot: &str) -> Hello {
    Hello { host: host.into(), boot: boot.into(), version: "1".into() }
}

#[test]
fn one_rank_per_host_unless_more_were_asked_for() {
    let all = [hello("a", "1"), hello("b", "2"), hello("a", "1")];
    let why = company(&all, 1).err().unwrap_or_default();
    assert!(why.contains("2 ranks are on the host a (0, 2)") && why.contains("--ranks-per-host 2"), "{why}");
    let (names, notes) = company(&all, 2).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!((names, notes), (vec!["a rank 0".into(), "b".into(), "a rank 2".into()], vec![]));
}

#[test]
fn hosts_of_one_name_are_told_apart_and_those_of_one_kernel_are_named() {
    let (names, _) =
        company(&[hello("node", "1"), hello("node", "2")], 1).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(names, ["node rank 0", "node rank 1"]);
    let (_, notes) = company(&[hello("a", "1"), hello("b", "1")], 1).unwrap_or_else(|why| panic!("{why}"));
    assert!(notes[0].starts_with("a, b run on one kernel"));
    assert_eq!(
        neighbours(&[hello("a", "1"), hello("b", "1"), hello("c", ""), hello("d", "2")]),
        [1, 1, 0, 0]
    );
    let old = Hello { version: "0".into(), ..hello("b", "2") };
    assert!(company(&[hello("a", "1"), old], 1).is_err_and(|why| why.contains("install the same")));
}
