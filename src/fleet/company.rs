//! Company: whether the ranks that met may measure together, and what their hosts are called.
//!
//! For: one rank per host, one version, names that tell hosts apart. Pure. Not for: what they measure.

use super::letter::Hello;
use std::collections::BTreeMap;

/// Names of all hosts by rank.
///
/// # Errors
/// Why they may not measure together, and what to type instead.
pub(super) fn company(all: &[Hello], ranks_per_host: u32) -> Result<Vec<String>, String> {
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
    Ok(all.iter().enumerate().map(name).collect())
}

/// A number for each kernel, by rank: ranks of one number run on the same. `None` of a rank that cannot tell.
pub(super) fn kernels(all: &[Hello]) -> Vec<Option<u32>> {
    let mut boots: Vec<&str> = Vec::new();
    let mut numbers = Vec::with_capacity(all.len());
    for hello in all {
        if hello.boot.is_empty() {
            numbers.push(None);
            continue;
        }
        let known = boots.iter().position(|boot| *boot == hello.boot);
        let number = known.unwrap_or(boots.len());
        if known.is_none() {
            boots.push(&hello.boot);
        }
        numbers.push(Some(number as u32));
    }
    numbers
}

/// How many other ranks run on the same kernel, by rank.
pub(super) fn neighbours(kernels: &[Option<u32>]) -> Vec<u32> {
    let same =
        |one: &Option<u32>| kernels.iter().filter(|other| one.is_some() && *other == one).count() as u32;
    kernels.iter().map(|one| same(one).saturating_sub(1)).collect()
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
    let names = company(&all, 2).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(names, ["a rank 0", "b", "a rank 2"]);
}

#[test]
fn hosts_of_one_name_are_told_apart_and_those_of_one_kernel_have_one_number() {
    let names = company(&[hello("node", "1"), hello("node", "2")], 1).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(names, ["node rank 0", "node rank 1"]);
    let kernels =
        kernels(&[hello("a", "1"), hello("b", "1"), hello("c", ""), hello("d", "2"), hello("e", "")]);
    assert_eq!(kernels, [Some(0), Some(0), None, Some(1), None]);
    assert_eq!(neighbours(&kernels), [1, 1, 0, 0, 0]);
    let old = Hello { version: "0".into(), ..hello("b", "2") };
    assert!(company(&[hello("a", "1"), old], 1).is_err_and(|why| why.contains("install the same")));
}
