//! Snapshots: which kernel files are kept, and when.
//!
//! For: the same files in the same order at every moment. Not for: reading numbers out of them.

use crate::pages;
use crate::root::Root;
use model::evidence::{Moment, Snapshot, TargetState};
use model::machine::Machine;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::time::Instant;

/// Files about the whole machine, kept at the edges of a run.
const MACHINE_FILES: [&str; 6] = [
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/pressure/io",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/self/io",
];
/// CPU time of the machine; of this long file only the first line is kept.
const CPU_FILE: &str = "/proc/stat";

/// Knows what to keep.
#[derive(Clone, Debug)]
pub struct Watch {
    root: Root,
    epoch: Instant,
    devices: Vec<String>,
    cgroup: Vec<String>,
}

impl Watch {
    /// For the devices and the cgroup of a machine. Times count from `epoch`.
    pub fn new(root: Root, machine: &Machine, epoch: Instant) -> Self {
        let mut devices: Vec<String> =
            machine.places.iter().flat_map(|p| &p.layers).map(|l| l.stat_file.clone()).collect();
        devices.sort();
        devices.dedup();
        let cgroup = machine.cgroup.as_ref().map(|c| c.files.clone()).unwrap_or_default();
        Self { root, epoch, devices, cgroup }
    }

    /// Keeps everything. `targets` are looked at for their pages, and for their extents where asked.
    pub fn take(&self, moment: Moment, targets: &[Option<&File>], with_extents: bool) -> Snapshot {
        // Devices first and last in time order would skew differently; they are read together, right at the moment.
        let mut files: BTreeMap<String, _> = self
            .devices
            .iter()
            .chain(&self.cgroup)
            .map(|path| (path.clone(), self.root.read(path)))
            .collect();
        let at_ns = self.epoch.elapsed().as_nanos() as u64;
        for path in MACHINE_FILES {
            files.insert(path.into(), self.root.read(path));
        }
        let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
        files.insert(CPU_FILE.into(), self.root.read(CPU_FILE).map(first_line));
        let targets = targets.iter().map(|file| state(*file, with_extents)).collect();
        Snapshot { moment, at_ns, files, targets }
    }

    /// Keeps the device counters that changed since `last`.
    pub fn during(&self, last: &Snapshot) -> Snapshot {
        let read = self.devices.iter().map(|path| (path.clone(), self.root.read(path)));
        let files = read.filter(|(path, text)| last.files.get(path) != Some(text)).collect();
        let at_ns = self.epoch.elapsed().as_nanos() as u64;
        Snapshot { moment: Moment::During, at_ns, files, targets: Vec::new() }
    }
}

fn state(file: Option<&File>, with_extents: bool) -> TargetState {
    let Some(file) = file else {
        return TargetState { pages: Err("the engine touches no file".into()), extents: None };
    };
    let facts = file.metadata();
    let is_device = facts.as_ref().is_ok_and(|m| m.file_type().is_block_device());
    let bytes = facts.map_or(0, |m| m.len());
    let extents = (with_extents && !is_device).then(|| pages::extents(file, bytes));
    TargetState { pages: pages::pages(file), extents }
}
