//! Snapshots: kernel text at a moment, always the same files in the same order.
//!
//! For: reading and keeping. Not for: understanding what was read (`model::evidence` parses, the crate `analysis` judges).

use crate::root::Root;
use crate::{extents, pages};
use model::Known;
use model::evidence::{Moment, Snapshot, TargetState};
use model::machine::Machine;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::Instant;

/// Files of the whole machine and of this process, after those of the devices.
const SYSTEM_FILES: [&str; 7] = [
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/stat",
    "/proc/pressure/io",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/self/io",
];

/// Which files are read, decided once.
#[derive(Clone, Debug)]
pub struct Watch {
    root: Root,
    /// `stat` files of all layers, tops first.
    devices: Vec<String>,
    cgroup: Vec<String>,
    epoch: Instant,
}

impl Watch {
    /// Decides for the devices and the cgroup of a machine. Times count from `epoch`.
    pub fn new(root: Root, machine: &Machine, epoch: Instant) -> Self {
        let mut devices: Vec<String> = Vec::new();
        for layer in machine.places.iter().flat_map(|p| &p.layers) {
            if !devices.contains(&layer.stat_file) {
                devices.push(layer.stat_file.clone());
            }
        }
        let cgroup = machine.cgroup.as_ref().map_or_else(|_| Vec::new(), |c| c.files.clone());
        Self { root, devices, cgroup, epoch }
    }

    /// Reads everything. `targets` in the order of the plan; `None` gives a reason instead of a state.
    pub fn take(&self, moment: Moment, targets: &[Option<&File>], with_extents: bool) -> Snapshot {
        let at_ns = self.now_ns();
        let system = SYSTEM_FILES.iter().map(|f| (*f).to_owned());
        let paths = self.devices.iter().cloned().chain(system).chain(self.cgroup.iter().cloned());
        let files = paths.map(|path| self.read(path)).collect();
        let targets = targets.iter().map(|t| state(*t, with_extents)).collect();
        Snapshot { moment, at_ns, files, targets }
    }

    /// Reads the devices only, and keeps what differs from `last`.
    pub fn during(&self, last: &Snapshot) -> Snapshot {
        let at_ns = self.now_ns();
        let now = self.devices.iter().map(|path| self.read(path.clone()));
        let files: BTreeMap<_, _> = now.filter(|(path, text)| last.files.get(path) != Some(text)).collect();
        Snapshot { moment: Moment::During, at_ns, files, targets: Vec::new() }
    }

    fn read(&self, path: String) -> (String, Known<String>) {
        let text = self.root.read(&path);
        let text = if path == "/proc/stat" { text.map(|t| cpu_lines(&t)) } else { text };
        (path, text)
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// The lines of `/proc/stat` about CPUs, word for word. The line of interrupts alone can be as long as all the rest.
fn cpu_lines(text: &str) -> String {
    text.split_inclusive('\n').filter(|l| l.starts_with("cpu")).collect()
}

fn state(target: Option<&File>, with_extents: bool) -> TargetState {
    let nothing = || "nothing of it is opened".to_owned();
    TargetState {
        pages: target.map_or_else(|| Err(nothing()), pages::look),
        extents: with_extents.then(|| target.map_or_else(|| Err(nothing()), extents::look)),
        room: None,
        probe: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::machine::{Layer, Place};
    use std::fs;

    fn machine(stat_file: &str) -> Machine {
        let layer = Layer { stat_file: stat_file.into(), ..Layer::default() };
        let place = Place { layers: vec![layer.clone(), layer], tops: vec![0], ..Place::default() };
        let places = vec![place];
        Machine { places, ..crate::host::look(&Root::real()) }
    }

    #[test]
    fn a_snapshot_holds_every_file_or_the_reason_why_not() {
        let watch = Watch::new(Root::real(), &machine("/sys/class/block/none/stat"), Instant::now());
        let file = tempfile::tempfile().unwrap_or_else(|e| panic!("{e}"));
        let seen = watch.take(Moment::Start, &[Some(&file), None], true);
        assert_eq!(seen.files.len(), SYSTEM_FILES.len() + 1);
        assert_eq!(seen.files["/sys/class/block/none/stat"], Err("no such file".to_owned()));
        assert!(seen.text("/proc/meminfo").is_ok());
        assert!(seen.text("/proc/stat").is_ok_and(|t| t.starts_with("cpu ") && !t.contains("intr")));
        assert_eq!(seen.targets.len(), 2);
        assert!(seen.targets[1].pages.is_err() && seen.targets[0].extents.is_some());
    }

    #[test]
    fn during_a_run_only_what_changed_is_kept() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        fs::write(dir.path().join("stat"), "1 2 3").unwrap_or_else(|e| panic!("{e}"));
        let watch = Watch::new(Root::at(dir.path().to_owned()), &machine("/stat"), Instant::now());
        let first = watch.take(Moment::Start, &[], false);
        assert!(watch.during(&first).files.is_empty());
        fs::write(dir.path().join("stat"), "1 2 4").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(watch.during(&first).files["/stat"], Ok("1 2 4".to_owned()));
    }
}
