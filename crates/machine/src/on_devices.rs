//! Which files are on given block devices: through which mounts, by the numbers that a file shows.
//!
//! For: telling of an open file, without following it, whether it is on one of them. Not for: what a path is on ([`crate::resolve`]).

use crate::mountinfo::{self, Mount};
use crate::root::Root;
use crate::stack::Stack;
use crate::stack::file_system::below_file_system;
use model::machine::Layer;
use std::path::Path;

/// Where the mounts stand.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Block devices, and the mounts whose files are on them.
#[derive(Clone, Debug, Default)]
pub struct OnDevices {
    /// `major:minor` of the devices.
    devices: Vec<String>,
    /// The mounts as they were when they were followed.
    text: String,
    /// `major:minor` that files there show, and the ids of the mounts in this namespace.
    mounts: Vec<(String, u64)>,
}

impl OnDevices {
    /// These devices.
    pub fn new(root: &Root, devices: Vec<String>) -> Self {
        let mut on = Self { devices, ..Self::default() };
        on.follow(root.read(MOUNTS).unwrap_or_default(), root);
        on
    }

    /// Follows the mounts again where they changed, and the devices where they are others.
    pub fn renew(&mut self, root: &Root, devices: &[String]) {
        let text = root.read(MOUNTS).unwrap_or_default();
        if text != self.text || devices != self.devices {
            devices.clone_into(&mut self.devices);
            self.follow(text, root);
        }
    }

    /// Whether this is the number of one of the devices.
    pub(crate) fn is_device(&self, number: &str) -> bool {
        self.devices.iter().any(|d| d == number)
    }

    /// Whether a file is on one of them, whose file system shows this number and which was opened through this mount.
    pub(crate) fn holds(&self, number: &str, mount: Option<u64>) -> bool {
        self.mounts.iter().any(|(n, id)| n == number || Some(*id) == mount)
    }

    fn follow(&mut self, text: String, root: &Root) {
        let all = mountinfo::parse(&text);
        self.text = text;
        // One stack for all of them, so that each device is looked at once.
        let mut stack = Stack::new(root, &all);
        let mut below: Vec<(&Mount, Vec<usize>)> = Vec::new();
        for mount in &all {
            let found =
                below_file_system(&mut stack, Some(mount), &mount.number, Some(Path::new(&mount.point)));
            below.push((mount, found.tops));
        }
        let on = |tops: &[usize]| reaches(&stack.layers, tops, &self.devices);
        let held = below.into_iter().filter(|(_, tops)| on(tops));
        self.mounts = held.map(|(mount, _)| (mount.number.clone(), mount.id)).collect();
    }
}

/// Whether any of these layers, or what is below them, is one of the devices.
fn reaches(layers: &[Layer], tops: &[usize], devices: &[String]) -> bool {
    let mut seen = vec![false; layers.len()];
    let mut open = tops.to_vec();
    while let Some(at) = open.pop() {
        let Some(layer) = layers.get(at).filter(|_| !seen[at]) else { continue };
        seen[at] = true;
        if devices.contains(&layer.number) {
            return true;
        }
        open.extend(&layer.below);
    }
    false
}

#[test]
fn files_of_a_volume_are_on_the_disk_below_it_and_those_of_another_disk_are_not() {
    use crate::fixture::{link, put};
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let put = |path: &str, text: &str| put(dir.path(), path, text);
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("dm-0", "253:0")] {
        put(&format!("sys/devices/virtual/block/{name}/dev"), number);
        link(dir.path(), &format!("../../devices/virtual/block/{name}"), &format!("sys/dev/block/{number}"));
        link(dir.path(), &format!("../../devices/virtual/block/{name}"), &format!("sys/class/block/{name}"));
    }
    put("sys/devices/virtual/block/dm-0/dm/name", "data");
    put("sys/devices/virtual/block/dm-0/slaves/sda", "");
    let mounts = "20 1 253:0 / /data rw - ext4 /dev/mapper/data rw\n\
                  21 1 8:16 / /other rw - ext4 /dev/sdb rw\n\
                  22 1 0:5 / /proc rw - proc proc rw\n";
    put("proc/self/mountinfo", mounts);
    let root = Root::at(dir.path().to_owned());
    let mut on = OnDevices::new(&root, vec!["8:0".into()]);
    assert!(on.holds("253:0", None) && on.holds("0:99", Some(20)));
    assert!(!on.holds("8:16", Some(21)) && !on.holds("0:5", None));
    assert!(on.is_device("8:0") && !on.is_device("253:0"));
    put("proc/self/mountinfo", mounts.split_inclusive('\n').next().unwrap_or_default());
    on.renew(&root, &["8:16".into()]);
    assert!(!on.holds("8:16", None) && !on.holds("253:0", None));
}
