//! D21: workers or their memory on a different NUMA node than the device. Compares the nodes on which the workers
//! may run and allocate with the nodes of the target's devices.

use crate::checks::prelude::*;
use crate::figures::kernel_text::entries;
use model::evidence::NODES;
use model::job::{MemoryNodes, Placement};

/// File with the NUMA node of a device.
const NODE_OF_DEVICE: &str = "device/numa_node";

pub(super) const CHECK: Check = Check {
    id: CheckId::D21,
    name: "NUMA_REMOTE",
    belief: "the workers run on the device's NUMA node",
    reads: "`device/numa_node` of the lowest devices, `/sys/devices/system/node/node*/cpulist`, and the \
            placement of the workers and their memory in the plan (--cpus, --node, --memory-nodes).",
    formula: formula!(
        "A note if the machine has several NUMA nodes and a worker or its memory may be on a node without a \
         device of the target. It is only a note because the cost of the distance differs from machine to \
         machine."
    ),
    provoke: "On a machine with two sockets: `fathom run --rw randread --depth 1 DIR`, which leaves the \
              choice to the kernel.",
    fix: "Place the workers on the device's node: `--node N`, with N from `cat \
          /sys/block/nvme0n1/device/numa_node`.",
    accept: "A note needs no --accept.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| on_two_nodes(&Placement::default(), "1\n")),
    #[cfg(test)]
    blind: || on_two_nodes(&Placement::default(), "-1\n"),
};

/// A node and ranges of its CPUs, ends included.
type Node = (u32, Vec<(u32, u32)>);

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.on_device() {
        return Ok(Answer::DoesNotApply);
    }
    let machine = case.machine.ok_or("the record names no host")?;
    let nodes = nodes(machine.fact(NODES)?)?;
    match nodes.len() {
        0 => return Err("the kernel shows no NUMA nodes".into()),
        1 => return holds("All CPUs are on the same NUMA node.", evidence([("nodes", 1.0)])),
        _ => {}
    }
    let at_device = device_nodes(case)?;
    let at_workers = worker_nodes(&case.stream.place, &nodes);
    let numbers = evidence([("nodes", nodes.len() as f64), ("worker_nodes", at_workers.len() as f64)]);
    if at_workers.is_subset(&at_device) {
        return holds("The workers are on the NUMA node of the device.", numbers);
    }
    let list = |all: &BTreeSet<u32>| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    detail!(
        Severity::Note,
        numbers,
        "The workers and their memory may be on NUMA node {}, but the device is on {}: some operations cross \
         between nodes.",
        list(&at_workers),
        list(&at_device)
    )
    .with_cure(format!("Use --node {}.", at_device.first().copied().unwrap_or(0)))
    .found()
}

/// Parses the nodes and their CPUs from lines `path: 0-3,8`.
fn nodes(text: &str) -> Known<Vec<Node>> {
    let node = |(path, list): (&str, &str)| {
        let number = path.rsplit('/').find_map(|part| part.strip_prefix("node")?.parse().ok());
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        };
        // A node with only memory has no CPUs.
        let cpus: Option<Vec<(u32, u32)>> =
            list.split(',').filter(|p| !p.trim().is_empty()).map(range).collect();
        Some((number?, cpus?))
    };
    let lines =
        entries(text).map(|e| node(e).ok_or_else(|| format!("{} is not a list of CPUs: '{}'", e.0, e.1)));
    lines.collect()
}

/// Returns the nodes of the target's devices.
fn device_nodes(case: &Case) -> Known<BTreeSet<u32>> {
    let mut out = BTreeSet::new();
    for layer in case.places().flat_map(model::machine::Place::leaves) {
        // -1 means that the device belongs to no node or the firmware does not name it.
        let node = layer.device.get(NODE_OF_DEVICE).and_then(|t| t.trim().parse::<u32>().ok());
        out.insert(node.ok_or_else(|| format!("the NUMA node of {} is unknown", layer.name))?);
    }
    if out.is_empty() { Err("no block device is known below".into()) } else { Ok(out) }
}

/// Returns the nodes on which a worker or its memory may be.
fn worker_nodes(place: &Placement, nodes: &[Node]) -> BTreeSet<u32> {
    let mut out: BTreeSet<u32> = match &place.memory {
        None => place.node.into_iter().collect(),
        Some(MemoryNodes::Bind(nodes) | MemoryNodes::Interleave(nodes)) => nodes.iter().copied().collect(),
        Some(MemoryNodes::Prefer(node)) => [*node].into(),
        // The memory is on the nodes of the threads.
        Some(MemoryNodes::Local) => BTreeSet::new(),
    };
    let any_cpu = place.cpus.is_empty();
    if let (true, Some(node)) = (any_cpu, place.node) {
        out.insert(node);
        return out;
    }
    for (number, ranges) in nodes {
        let is_on_node = |cpu: &u32| ranges.iter().any(|(first, last)| (first..=last).contains(&cpu));
        if (any_cpu && !ranges.is_empty()) || place.cpus.iter().any(is_on_node) {
            out.insert(*number);
        }
    }
    out
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record of a machine with two sockets, with workers at `place` and a device on node `device`.
#[cfg(test)]
fn on_two_nodes(place: &Placement, device: &str) -> model::record::Record {
    let mut record = Fixture::honest().record();
    let dir = "/sys/devices/system/node";
    let text = format!("{dir}/node0/cpulist: 0-15,32-47\n{dir}/node1/cpulist: 16-31,48-63\n");
    let machine = &mut record.header.hosts[0];
    machine.facts.insert(NODES.into(), Ok(text));
    machine.places[0].layers[0].device.insert(NODE_OF_DEVICE.into(), device.into());
    record.header.plan.jobs[0].phases[0].streams[0].place = place.clone();
    record
}

#[test]
fn only_workers_bound_to_the_devices_node_are_local() {
    let near = [
        Placement { node: Some(1), ..Placement::default() },
        Placement { cpus: vec![16, 31, 63], ..Placement::default() },
    ];
    for place in near {
        assert!(matches!(CHECK.answer(&on_two_nodes(&place, "1\n")), Ok(Answer::Holds(..))), "{place:?}");
        assert_eq!(CHECK.severity(&on_two_nodes(&place, "0\n")), Some(Severity::Note), "{place:?}");
    }
    let both = Placement { cpus: vec![16, 47], ..Placement::default() };
    assert_eq!(CHECK.severity(&on_two_nodes(&both, "1\n")), Some(Severity::Note));
    let bound_to = |memory| Placement { node: Some(1), memory: Some(memory), ..Placement::default() };
    assert_eq!(CHECK.severity(&on_two_nodes(&bound_to(MemoryNodes::Local), "1\n")), None);
    assert_eq!(CHECK.severity(&on_two_nodes(&bound_to(MemoryNodes::Bind(vec![1])), "1\n")), None);
    for memory in [MemoryNodes::Prefer(0), MemoryNodes::Interleave(vec![0, 1])] {
        assert_eq!(CHECK.severity(&on_two_nodes(&bound_to(memory), "1\n")), Some(Severity::Note));
    }
}

#[test]
fn nodes_without_cpus_are_parsed_and_bad_lists_are_errors() {
    assert_eq!(nodes("/n/node2/cpulist: \n"), Ok(vec![(2, Vec::new())]));
    assert_eq!(nodes("/n/node0/cpulist: 0,4-7\n"), Ok(vec![(0, vec![(0, 0), (4, 7)])]));
    assert!(nodes("/n/node0/cpulist: 0-x\n").is_err() && nodes("/n/cpulist: 0\n").is_err());
    let mut none = Fixture::honest().record();
    none.header.hosts[0].facts.insert(NODES.into(), Ok(String::new()));
    assert!(CHECK.answer(&none).is_err());
}
