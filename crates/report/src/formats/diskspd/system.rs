//! The machine as DISKSPD tells of it.
//!
//! For: its name, the start, and its CPUs with their cores, packages and memory nodes as the kernel counts them; Linux has one processor
//! group and no power scheme. Not for: what CPUs did meanwhile ([`super::span`]).

use super::VERSION;
use super::profile_xml::{Lines, escaped};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::kernel_files::{CORES, NODES, PACKAGES};
use model::observed::ObservedCpu;
use model::report::Report;
use std::collections::BTreeMap;

/// What is known of the CPUs; empty where nothing is.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    /// Core of each CPU, counted from 0 over all packages.
    pub(super) cores: BTreeMap<u32, usize>,
    /// Package of each CPU.
    pub(super) sockets: BTreeMap<u32, u32>,
    /// Memory node of each CPU.
    pub(super) nodes: BTreeMap<u32, u32>,
    /// How many cores there are.
    pub(super) core_count: usize,
}

impl Topology {
    pub(super) fn from_report(report: &Report) -> Self {
        let of_cpu = |fact: &str| -> BTreeMap<u32, u32> {
            let text = report.machine.fact(fact).unwrap_or_default();
            let pair = |line: &str| {
                let (path, value) = line.split_once(": ")?;
                let cpu = path.split("/cpu").last()?.split('/').next()?.parse().ok()?;
                Some((cpu, value.trim().parse().ok()?))
            };
            text.lines().filter_map(pair).collect()
        };
        let (ids, sockets) = (of_cpu(CORES), of_cpu(PACKAGES));
        let mut known: Vec<(u32, u32)> = Vec::new();
        let mut cores = BTreeMap::new();
        for (cpu, id) in ids {
            // Numbers of cores count within their package.
            let core = (sockets.get(&cpu).copied().unwrap_or(0), id);
            let at = known.iter().position(|k| *k == core).unwrap_or_else(|| {
                known.push(core);
                known.len() - 1
            });
            cores.insert(cpu, at);
        }
        Self { cores, sockets, nodes: memory_nodes(report), core_count: known.len() }
    }

    /// How many different values there are.
    pub(super) fn count(of: &BTreeMap<u32, u32>) -> usize {
        let mut all: Vec<u32> = of.values().copied().collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    /// Whether a core has several CPUs.
    pub(super) fn has_threads(&self) -> bool {
        self.core_count > 0 && self.cores.len() > self.core_count
    }
}

/// `path: 0-3,8` for each node.
fn memory_nodes(report: &Report) -> BTreeMap<u32, u32> {
    let mut out = BTreeMap::new();
    for line in report.machine.fact(NODES).unwrap_or_default().lines() {
        let Some((path, list)) = line.split_once(": ") else { continue };
        let number = path.split("/node").last().and_then(|rest| rest.split('/').next()?.parse().ok());
        let Some(node) = number else { continue };
        for piece in list.trim().split(',') {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            // No machine has more CPUs, whatever a file says.
            out.extend((first..=last.min(first.saturating_add(8192))).map(|cpu| (cpu, node)));
        }
    }
    out
}

/// When it began: `2026/11/23 18:00:00 UTC`; nothing where that is not known.
fn start_time(report: &Report) -> String {
    let at: Option<Timestamp> = report.started.parse().ok();
    at.map_or_else(String::new, |at| at.to_zoned(TimeZone::UTC).strftime("%Y/%m/%d %H:%M:%S UTC").to_string())
}

/// How many CPUs there are.
fn cpu_count(report: &Report, cpus: &[ObservedCpu]) -> usize {
    if cpus.is_empty() { report.machine.cpus as usize } else { cpus.len() }
}

/// Lines of the text.
pub(super) fn system_text(report: &Report, topology: &Topology, seen: &[ObservedCpu]) -> String {
    let mut out = format!(
        "System information:\n\n\tcomputer name: {}\n\tstart time: {}\n\n\tcpu count:\t\t{}\n",
        report.machine.host,
        start_time(report),
        cpu_count(report, seen)
    );
    if topology.core_count > 0 {
        out += &format!("\tcore count:\t\t{}\n", topology.core_count);
    }
    out += "\tgroup count:\t\t1\n";
    for (of, name) in [(&topology.nodes, "node"), (&topology.sockets, "socket")] {
        if !of.is_empty() {
            out += &format!("\t{name} count:\t\t{}\n", Topology::count(of));
        }
    }
    out + "\n\tactive power scheme:\tN/A\n"
}

/// CPUs as bits, where a number holds them.
fn cpu_mask(cpus: impl Iterator<Item = u32>) -> String {
    let bits = cpus.filter(|cpu| *cpu < 128).fold(0_u128, |bits, cpu| bits | 1 << cpu);
    format!("0x{bits:x}")
}

/// The element of the XML.
pub(super) fn system_xml(report: &Report, topology: &Topology, seen: &[ObservedCpu], lines: &mut Lines) {
    lines.within("System", |lines| {
        lines.value("ComputerName", &report.machine.host);
        lines.within("Tool", |lines| {
            lines.value("Version", VERSION[0]);
            lines.value("VersionDate", VERSION[1]);
        });
        lines.value("RunTime", start_time(report));
        lines.line("<PowerScheme Name=\"\" Guid=\"\"/>");
        let count = cpu_count(report, seen);
        lines.within("ProcessorTopology", |lines| {
            let active = cpu_mask(seen.iter().map(|c| c.cpu));
            lines.line(format_args!(
                "<Group Group=\"0\" MaximumProcessors=\"{count}\" ActiveProcessors=\"{count}\" ActiveProcessorMask=\"{active}\"/>"
            ));
            for (of, name) in [(&topology.nodes, "Node"), (&topology.sockets, "Socket")] {
                write_cpu_groups(of, name, lines);
            }
            for core in 0..topology.core_count {
                let of_core = topology.cores.iter().filter(|(_, c)| **c == core).map(|(cpu, _)| *cpu);
                lines.line(format_args!("<Core Group=\"0\" Core=\"{core}\" Mask=\"{}\"/>", escaped(&cpu_mask(of_core))));
            }
        });
    });
}

/// Nodes or sockets, each with its CPUs.
fn write_cpu_groups(of: &BTreeMap<u32, u32>, name: &str, lines: &mut Lines) {
    let mut numbers: Vec<u32> = of.values().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    for number in numbers {
        let mask = cpu_mask(of.iter().filter(|(_, n)| **n == number).map(|(cpu, _)| *cpu));
        lines.with(name, &format!(" {name}=\"{number}\""), |lines| {
            lines.line(format_args!("<Group Group=\"0\" Mask=\"{mask}\"/>"));
        });
    }
}
