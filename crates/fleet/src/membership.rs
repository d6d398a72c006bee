//! Names the hosts that have joined, and distinguishes hosts of the same name. Requires one version of fathom, and limits the ranks per
//! host.

use crate::message::Hello;
use std::collections::BTreeMap;

/// Returns the names of all hosts by rank.
///
/// # Errors
/// Why the hosts cannot measure together, and what to type instead.
pub(super) fn host_names(all: &[Hello], ranks_per_host: u32) -> Result<Vec<String>, String> {
    let mut hosts: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (rank, hello) in all.iter().enumerate() {
        hosts.entry((&hello.host, &hello.boot)).or_default().push(rank);
    }
    if let Some(other) = all.iter().find(|h| h.version != all[0].version) {
        return Err(format!(
            "{} has fathom {} and {} has fathom {}; install the same version on all hosts",
            all[0].host, all[0].version, other.host, other.version
        ));
    }
    if let Some(((host, _), ranks)) = hosts.iter().find(|(_, ranks)| ranks.len() > ranks_per_host as usize) {
        let count = ranks.len();
        let numbers: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        return Err(format!(
            "{count} ranks are on the host {host} ({}), whose devices and CPUs they would share; start one rank per host (`mpirun --map-by ppr:1:node`), with --workers for more threads, or type --ranks-per-host {count} to measure like this",
            numbers.join(", ")
        ));
    }
    let is_unique = |name: &str| all.iter().filter(|h| h.host == name).count() == 1;
    let name = |(rank, hello): (usize, &Hello)| {
        if is_unique(&hello.host) { hello.host.clone() } else { format!("{} rank {rank}", hello.host) }
    };
    Ok(all.iter().enumerate().map(name).collect())
}

/// Returns a number for the kernel of each rank. Ranks with the same number run on the same kernel. `None` for a rank without a boot id.
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

/// For each rank, the number of other ranks on the same kernel.
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
fn only_one_rank_per_host_without_ranks_per_host() {
    let all = [hello("a", "1"), hello("b", "2"), hello("a", "1")];
    let why = host_names(&all, 1).err().unwrap_or_default();
    assert!(why.contains("2 ranks are on the host a (0, 2)") && why.contains("--ranks-per-host 2"), "{why}");
    let names = host_names(&all, 2).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(names, ["a rank 0", "b", "a rank 2"]);
}

#[test]
fn equal_host_names_get_ranks_and_equal_boot_ids_get_one_kernel_number() {
    let names =
        host_names(&[hello("node", "1"), hello("node", "2")], 1).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(names, ["node rank 0", "node rank 1"]);
    let kernels =
        kernels(&[hello("a", "1"), hello("b", "1"), hello("c", ""), hello("d", "2"), hello("e", "")]);
    assert_eq!(kernels, [Some(0), Some(0), None, Some(1), None]);
    assert_eq!(neighbours(&kernels), [1, 1, 0, 0, 0]);
    let old = Hello { version: "0".into(), ..hello("b", "2") };
    assert!(host_names(&[hello("a", "1"), old], 1).is_err_and(|why| why.contains("install the same")));
}
