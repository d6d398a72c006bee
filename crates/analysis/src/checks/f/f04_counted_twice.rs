//! F04: hosts that are one machine or use one device, so that the sum over hosts is the rate of one device. Compares the
//! kernels (boot_id) and the identities of the devices. Shared file systems are accepted.

use super::{Storage, host_names, hosts, shared_storage};
use crate::checks::prelude::*;

pub(super) const CHECK: Check = Check {
    id: CheckId::F04,
    name: "COUNTED_TWICE",
    belief: "every host has its own CPUs and device",
    reads: "`/proc/sys/kernel/random/boot_id` of each host, which is the same for all that run on one \
            kernel, and model and serial number of the devices below its targets.",
    formula: formula!(
        "Hosts with the same `boot_id` are one machine: ranks of a host, or containers. They share its CPUs, \
         memory and clock. Devices with the same model and serial number, or with the same number within one \
         kernel, are one device: the hosts share its rate, and the sum is not that of one device per host. \
         Both are notes, since the sum is what was measured."
    ),
    provoke: "`mpirun -np 2 --bind-to none fathom run --rw randread --ranks-per-host 2 DIR`.",
    fix: "Start one rank per host (`mpirun --map-by ppr:1:node`), on hosts that are not containers of one \
          machine.",
    accept: "Accept it if you want to measure one array or machine that all hosts share. Some hypervisors \
             give the disks of all guests the same serial number: those only look like one device.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| super::with(|f| f.hosts[1].kernel = Some(0))),
    #[cfg(test)]
    blind: || super::with(|f| f.hosts.iter_mut().for_each(|h| h.kernel = None)),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let hosts = hosts(case);
    if hosts.is_empty() {
        return Ok(Answer::DoesNotApply);
    }
    let mut kernels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (rank, host) in hosts.iter().enumerate() {
        let kernel = host.kernel.ok_or_else(|| format!("the kernel of {} is unknown", host.name))?;
        kernels.entry(kernel).or_default().push(rank);
    }
    let largest_group = kernels.values().map(Vec::len).max().unwrap_or(0);
    let one_kernel = kernels.values().find(|ranks| ranks.len() > 1 && ranks.len() == largest_group);
    let devices = if case.has_storage() { shared_storage(case)? } else { Vec::new() };
    // A file system mounted by several hosts is not a device counted twice.
    let device = devices.iter().filter(|(what, _)| matches!(what, Storage::Device(_)));
    let device = device.max_by_key(|(_, ranks)| ranks.len());
    let numbers = evidence([("hosts", hosts.len() as f64), ("kernels", kernels.len() as f64)]);
    let sentence = match (one_kernel, device) {
        (Some(ranks), Some(_)) => {
            format!("{} run on one kernel and use one device: they share both.", host_names(case, ranks))
        }
        (Some(ranks), None) => {
            format!("{} run on one kernel: they share its CPUs, memory and clock.", host_names(case, ranks))
        }
        (None, Some((what, ranks))) => {
            format!(
                "{} use one device ({}): the sum is the rate of this device, divided among them.",
                host_names(case, ranks),
                what.name()
            )
        }
        (None, None) => {
            return holds("Every host has its own kernel, and no two hosts share a device.", numbers);
        }
    };
    Detail::new(Severity::Note, sentence, numbers).found()
}

#[test]
fn one_serial_number_is_one_device_and_a_server_is_accepted() {
    let mut record = super::honest();
    record.header.hosts[1].places[0].layers[0].serial = Some("S1".into());
    let Ok(Answer::Finding(found)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(
        found.sentence.starts_with("a and b use one device (") && found.sentence.contains("S1"),
        "{}",
        found.sentence
    );
    for host in &mut record.header.hosts {
        host.places[0].layers.clear();
        host.places[0].file_system.as_mut().unwrap().source = "server:/export".into();
    }
    assert_eq!(CHECK.severity(&record), None);
}
