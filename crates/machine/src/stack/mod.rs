//! The block stack: from a device down through partitions, volumes, RAID and loop devices to the lowest layer.
//!
//! Layers are found through `/sys`; a loop device is asked itself. A layer that must stand on something which is not shown (a volume, an
//! array or another virtual device without `slaves`) is named in `blind`: whether it ends in memory or on a disk is then unknown.
//! Which device a path is on is found in `resolve`.

pub(crate) mod file_system;

use crate::device;
use crate::identity;
use crate::loops;
use crate::mountinfo::{Mount, mount_of};
use crate::root::Root;
use model::capacity::BACKING;
use model::identity::Identity;
use model::machine::{Layer, LayerKind};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

/// Most layers; a stack of more is cut and said.
const MAX_LAYERS: usize = 512;

/// A stack that is being followed downwards.
pub(crate) struct Stack<'a> {
    pub(crate) root: &'a Root,
    pub(crate) mounts: &'a [Mount],
    pub(crate) layers: Vec<Layer>,
    /// What could not be followed, in sentences.
    pub(crate) blind: Vec<String>,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(root: &'a Root, mounts: &'a [Mount]) -> Self {
        Self { root, mounts, layers: Vec::new(), blind: Vec::new() }
    }

    /// Adds the device with this `major:minor` and all that is below it. Gives its index, also where it was there before.
    pub(crate) fn add(&mut self, number: &str) -> Option<usize> {
        if let Some(there) = self.layers.iter().position(|l| l.number == number) {
            return Some(there);
        }
        let Some(name) = name_of(self.root, number) else {
            self.blind.push(format!("the kernel shows no block device {number} in /sys"));
            return None;
        };
        if self.layers.len() >= MAX_LAYERS {
            self.blind
                .push(format!("there are more than {MAX_LAYERS} devices below; the rest was not followed"));
            return None;
        }
        let index = self.layers.len();
        // First in the list, then what is below: a stack that contains itself would otherwise never end.
        self.layers.push(read_layer(self.root, &name, number));
        let below = self.below(index, &name);
        self.layers[index].below = below;
        Some(index)
    }

    fn below(&mut self, index: usize, name: &str) -> Vec<usize> {
        match self.layers[index].kind {
            LayerKind::Partition => {
                let disk = parent(self.root, name).and_then(|p| number_of(self.root, &p));
                if disk.is_none() {
                    self.blind.push(format!("/sys does not show which disk {name} is a part of"));
                }
                disk.and_then(|n| self.add(&n)).into_iter().collect()
            }
            LayerKind::Loop => self.below_loop(index, name),
            LayerKind::Zram | LayerKind::Ram => {
                self.layers[index].ram = Some(name.to_owned());
                Vec::new()
            }
            kind => self.below_slaves(kind, name),
        }
    }

    /// The devices that a volume, an array or another virtual device stands on. Hardware stands on none.
    fn below_slaves(&mut self, kind: LayerKind, name: &str) -> Vec<usize> {
        let dir = format!("/sys/class/block/{name}/slaves");
        let slaves = self.root.list(&dir);
        if kind != LayerKind::Disk {
            match &slaves {
                Ok(slaves) if !slaves.is_empty() => {}
                Ok(_) => {
                    self.blind.push(format!("what {name} stores its data on is not shown: {dir} is empty"));
                }
                Err(why) => {
                    self.blind.push(format!("what {name} stores its data on is not shown: {dir}: {why}"));
                }
            }
        }
        let mut found = Vec::new();
        for slave in slaves.unwrap_or_default() {
            match number_of(self.root, &slave) {
                Some(number) => found.extend(self.add(&number)),
                None => self.blind.push(format!("{name} is on {slave}, which /sys does not show")),
            }
        }
        found.dedup();
        found
    }

    fn below_loop(&mut self, index: usize, name: &str) -> Vec<usize> {
        // A name may be gone, or another file's by now, and something may cover the device's directory in /sys. The device knows.
        let status = loops::status(self.root, name);
        if let Ok(status) = &status {
            let layer = &mut self.layers[index];
            layer.backing_direct = Some(status.direct);
            layer.device.entry("loop/offset".to_owned()).or_insert_with(|| status.offset_bytes.to_string());
            layer.backing_file.get_or_insert_with(|| status.file_name.clone());
        }
        let Some(file) = self.layers[index].backing_file.clone() else {
            let why = status.err().unwrap_or_default();
            self.blind.push(format!(
                "/sys does not show the backing file of {name}, and the device does not name it: {why}"
            ));
            return Vec::new();
        };
        let by_name = || identity::of_name(self.root, &file);
        let behind = status.map(|status| loops::identity_behind(&status)).or_else(|_| by_name());
        if let Ok(what) = &behind {
            let from = self.layers[index].device.get("loop/offset").map_or("0", String::as_str);
            let words = format!("{} from byte {from}", what.describe());
            self.layers[index].device.insert(BACKING.to_owned(), words);
        }
        let (number, inode) = match behind {
            Ok(Identity::Device { number, .. }) => return self.add(&number).into_iter().collect(),
            Ok(Identity::File { device, inode }) => (device, inode),
            Err(why) => {
                self.blind.push(format!("{file}, the file behind {name}, cannot be found: {why}"));
                return Vec::new();
            }
        };
        let path = self.root.path(&file);
        let is_it = |facts: &std::fs::Metadata| {
            (crate::root::number_of(facts.dev()), facts.ino()) == (number.clone(), inode)
        };
        let path = std::fs::metadata(&path).is_ok_and(|facts| is_it(&facts)).then_some(path);
        // Without its name only the number of its file system is left, and every mount with that number is of it.
        let mount = match &path {
            Some(path) => mount_of(self.mounts, None, &number, &path.to_string_lossy()),
            None => self.mounts.iter().rfind(|m| m.number == number),
        };
        let found = self::file_system::below_file_system(self, mount, &number, path.as_deref());
        if let Some(memory) = found.ram {
            self.layers[index].ram = Some(format!("{name} on {memory}"));
        }
        if let Some(why) = found.blind {
            self.blind.push(format!("{file}, the file behind {name}: {why}"));
        }
        found.tops
    }

    /// Why all of it is memory; `None` where anything below is not, or nothing is known.
    pub(crate) fn memory(&self) -> Option<String> {
        let leaves = || self.layers.iter().filter(|l| l.below.is_empty());
        let names: Vec<&str> = leaves().filter_map(|l| l.ram.as_deref()).collect();
        (!names.is_empty() && names.len() == leaves().count()).then(|| names.join(", "))
    }

    /// The layers, each before what is below it, with the indices of `tops` in that order.
    pub(crate) fn into_order(self, tops: &[usize]) -> (Vec<Layer>, Vec<usize>) {
        let ranks = ranks(&self.layers);
        let mut order: Vec<usize> = (0..self.layers.len()).collect();
        order.sort_by_key(|i| ranks[*i]);
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new;
        }
        let mut slots: Vec<Option<Layer>> = self.layers.into_iter().map(Some).collect();
        let mut layers: Vec<Layer> = order.iter().filter_map(|i| slots[*i].take()).collect();
        for layer in &mut layers {
            layer.below.iter_mut().for_each(|b| *b = place[*b]);
        }
        let mut tops: Vec<usize> = tops.iter().map(|t| place[*t]).collect();
        tops.sort_unstable();
        tops.dedup();
        (layers, tops)
    }
}

/// Longest way from a top, for each layer.
fn ranks(layers: &[Layer]) -> Vec<usize> {
    let mut ranks = vec![0; layers.len()];
    // As many passes as the deepest stack has layers; the bound ends it even where /sys contradicts itself.
    for _ in 0..layers.len() {
        let mut changed = false;
        for (i, layer) in layers.iter().enumerate() {
            for below in &layer.below {
                if ranks[*below] <= ranks[i] && ranks[i] < layers.len() {
                    ranks[*below] = ranks[i] + 1;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    ranks
}

/// Kernel name of the device with this `major:minor`.
pub(crate) fn name_of(root: &Root, number: &str) -> Option<String> {
    let link = root.link(&format!("/sys/dev/block/{number}")).ok();
    if let Some(name) = link.as_deref().and_then(|l| l.rsplit('/').next()) {
        return Some(name.to_owned());
    }
    let names = root.list("/sys/class/block").ok()?;
    names.into_iter().find(|n| number_of(root, n).as_deref() == Some(number))
}

/// `major:minor` of the device with this kernel name.
pub(crate) fn number_of(root: &Root, name: &str) -> Option<String> {
    root.word(&format!("/sys/class/block/{name}/dev"))
}

/// Kernel name of the disk that a partition is part of; `None` for anything else.
pub(crate) fn parent(root: &Root, name: &str) -> Option<String> {
    if !root.has(&format!("/sys/class/block/{name}/partition")) {
        return None;
    }
    let link = root.link(&format!("/sys/class/block/{name}")).ok()?;
    link.rsplit('/').nth(1).map(str::to_owned)
}

/// One layer, without what is below it.
pub(crate) fn read_layer(root: &Root, name: &str, number: &str) -> Layer {
    let dir = format!("/sys/class/block/{name}");
    let disk = parent(root, name).unwrap_or_else(|| name.to_owned());
    let sectors = root.word(&format!("{dir}/size")).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    let direct = root.word(&format!("{dir}/loop/dio"));
    Layer {
        name: name.to_owned(),
        number: number.to_owned(),
        kind: kind(root, name, number),
        driver: driver(root, &disk),
        model: first_word(root, &disk, &["device/model", "device/name"]),
        serial: serial(root, name),
        bytes: sectors.saturating_mul(model::evidence::SECTOR_BYTES),
        backing_file: root.word(&format!("{dir}/loop/backing_file")),
        backing_direct: direct.map(|d| d == "1"),
        // This link exists for disks and partitions alike.
        stat_file: format!("{dir}/stat"),
        // A partition has no queue of its own; its disk's is the one that counts.
        queue: queue(root, &disk),
        device: device::read_device_attributes(root, name, &disk),
        ram: None,
        below: Vec::new(),
    }
}

fn kind(root: &Root, name: &str, number: &str) -> LayerKind {
    let has = |file: &str| root.has(&format!("/sys/class/block/{name}/{file}"));
    // Without either link nothing tells hardware from a virtual device.
    let link = || root.link(&format!("/sys/class/block/{name}"));
    let link = || link().or_else(|_| root.link(&format!("/sys/dev/block/{number}")));
    let is_virtual = || link().map_or_else(|_| !has("dev"), |path| path.contains("/virtual/"));
    if has("partition") {
        LayerKind::Partition
    } else if name.starts_with("loop") {
        LayerKind::Loop
    } else if name.starts_with("zram") {
        LayerKind::Zram
    } else if name.strip_prefix("ram").is_some_and(|n| n.parse::<u32>().is_ok()) {
        LayerKind::Ram
    } else if has("dm") || name.starts_with("dm-") {
        LayerKind::DeviceMapper
    } else if has("md") || name.starts_with("md") {
        LayerKind::Raid
    } else if is_virtual() && !name.starts_with("nvme") {
        // With native multipath the kernel files an NVMe disk under `virtual`.
        LayerKind::Virtual
    } else {
        LayerKind::Disk
    }
}

fn driver(root: &Root, disk: &str) -> Option<String> {
    // An NVMe name space hangs below its controller, and only that has a driver.
    let links = ["device/driver", "device/device/driver"];
    let found = links.iter().find_map(|l| root.link(&format!("/sys/class/block/{disk}/{l}")).ok());
    let name = found.and_then(|l| l.rsplit('/').next().map(str::to_owned));
    name.or_else(|| disk.starts_with("nvme").then(|| "nvme".to_owned()))
}

fn first_word(root: &Root, name: &str, files: &[&str]) -> Option<String> {
    files.iter().find_map(|f| root.word(&format!("/sys/class/block/{name}/{f}")))
}

/// Serial number of the hardware that a device or partition is on.
pub(crate) fn serial(root: &Root, name: &str) -> Option<String> {
    let disk = parent(root, name).unwrap_or_else(|| name.to_owned());
    first_word(root, &disk, &["device/serial", "serial"]).or_else(|| scsi_serial(root, &disk))
}

/// SCSI keeps it in a page of binary: four bytes of header, then text.
fn scsi_serial(root: &Root, disk: &str) -> Option<String> {
    let page = std::fs::read(root.path(&format!("/sys/class/block/{disk}/device/vpd_pg80"))).ok()?;
    let text = String::from_utf8_lossy(page.get(4..)?).trim_matches(['\0', ' ']).to_owned();
    (!text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')).then_some(text)
}

fn queue(root: &Root, disk: &str) -> BTreeMap<String, String> {
    let dir = format!("/sys/class/block/{disk}/queue");
    let names = root.list(&dir).unwrap_or_default();
    let read = |name: String| root.read(&format!("{dir}/{name}")).ok().map(|text| (name, text));
    names.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::resolve::place_of_device;
    use std::fs;
    use std::path::Path;

    /// A disk with two partitions below a mirror below a volume, and an NVMe disk.
    fn fixture() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| fixture::put(dir.path(), path, text);
        let link = |target: &str, at: &str| fixture::link(dir.path(), target, at);
        let scsi = "sys/devices/pci0/ata1/block";
        for (path, number) in [("sda", "8:0"), ("sda/sda1", "8:1"), ("sda/sda2", "8:2")] {
            put(&format!("{scsi}/{path}/dev"), number);
            put(&format!("{scsi}/{path}/size"), "2048\n");
            link(&format!("../../devices/pci0/ata1/block/{path}"), &format!("sys/dev/block/{number}"));
            let name = path.rsplit('/').next().unwrap_or_default();
            link(&format!("../../devices/pci0/ata1/block/{path}"), &format!("sys/class/block/{name}"));
        }
        put(&format!("{scsi}/sda/sda1/partition"), "1");
        put(&format!("{scsi}/sda/sda2/partition"), "2");
        put(&format!("{scsi}/sda/queue/iostats"), "1\n");
        put(&format!("{scsi}/sda/device/model"), "SPINNER 9000   \n");
        put(&format!("{scsi}/sda/device/vpd_pg80"), "\0\u{1}\0\u{8}S123    ");
        link("../../../bus/sd", &format!("{scsi}/sda/device/driver"));
        for (name, number, slaves) in [("md0", "9:0", vec!["sda1", "sda2"]), ("dm-0", "253:0", vec!["md0"])] {
            put(&format!("sys/devices/virtual/block/{name}/dev"), number);
            put(&format!("sys/devices/virtual/block/{name}/{}/x", &name[..2]), "");
            link(&format!("../../devices/virtual/block/{name}"), &format!("sys/class/block/{name}"));
            for slave in slaves {
                put(&format!("sys/devices/virtual/block/{name}/slaves/{slave}"), "");
            }
        }
        dir
    }

    #[test]
    fn a_volume_on_a_mirror_of_two_partitions_ends_at_one_disk() {
        let dir = fixture();
        let root = Root::at(dir.path().to_owned());
        let place = place_of_device(&root, &[], Path::new("/dev/dm-0"), "253:0");
        let names: Vec<&str> = place.layers.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "md0", "sda1", "sda2", "sda"]);
        assert_eq!(place.tops, [0]);
        let kinds: Vec<LayerKind> = place.layers.iter().map(|l| l.kind).collect();
        assert_eq!(kinds[..3], [LayerKind::DeviceMapper, LayerKind::Raid, LayerKind::Partition]);
        assert!(place.layers.iter().enumerate().all(|(i, l)| l.below.iter().all(|b| *b > i)));
        let disk = &place.layers[4];
        assert_eq!((disk.driver.as_deref(), disk.model.as_deref()), (Some("sd"), Some("SPINNER 9000")));
        assert_eq!(disk.serial.as_deref(), Some("S123"));
        assert_eq!(place.layers[2].queue.get("iostats").map(String::as_str), Some("1\n"));
        assert_eq!((place.blind, place.ram, disk.bytes), (None, None, 1 << 20));
    }

    #[test]
    fn a_layer_whose_slaves_are_not_shown_is_no_end_of_the_chain() {
        let place = |name: &str, slaves: Option<&[&str]>| {
            let dir = fixture();
            let real = format!("sys/devices/virtual/block/{name}");
            fixture::put(dir.path(), &format!("{real}/dev"), "252:7");
            fixture::link(
                dir.path(),
                &format!("../../devices/virtual/block/{name}"),
                &format!("sys/class/block/{name}"),
            );
            if let Some(slaves) = slaves {
                fs::create_dir_all(dir.path().join(format!("{real}/slaves")))
                    .unwrap_or_else(|e| panic!("{e}"));
                for slave in slaves {
                    fixture::put(dir.path(), &format!("{real}/slaves/{slave}"), "");
                }
            }
            place_of_device(&Root::at(dir.path().to_owned()), &[], Path::new("/dev/x"), "252:7")
        };
        for name in ["dm-3", "md126", "bcache0", "nbd0", "drbd1"] {
            for slaves in [None, Some(&[][..])] {
                let blind = place(name, slaves).blind.unwrap_or_default();
                assert!(blind.contains(name) && blind.contains("/slaves"), "{name} {slaves:?}: {blind}");
            }
            assert_eq!(place(name, Some(&["sda"])).blind, None, "{name}");
            let hidden = place(name, Some(&["sda", "sdz"]));
            assert!(hidden.blind.is_some_and(|why| why.contains("sdz")), "{name}");
        }
        // Names alone tell volumes and arrays, where their own directories are covered.
        assert_eq!(place("dm-3", None).layers[0].kind, LayerKind::DeviceMapper);
        assert_eq!(place("md126", None).layers[0].kind, LayerKind::Raid);
        for name in ["zram3", "ram3"] {
            assert_eq!((place(name, None).ram.as_deref(), place(name, None).blind), (Some(name), None));
        }
        assert!(place("loop9", None).blind.is_some_and(|why| why.contains("backing file of loop9")));
    }

    #[test]
    fn a_number_that_sys_does_not_show_is_said() {
        let root = Root::at("/nonexistent-prefix".into());
        let place = place_of_device(&root, &[], Path::new("/dev/x"), "8:0");
        assert!(place.layers.is_empty() && place.blind.is_some_and(|b| b.contains("8:0")));
    }

    #[test]
    fn a_stack_that_contains_itself_ends() {
        let layers =
            vec![Layer { below: vec![1], ..Layer::default() }, Layer { below: vec![0], ..Layer::default() }];
        assert_eq!(ranks(&layers).len(), 2);
    }
}
