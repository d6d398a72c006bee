//! The block stack: the layers from a device down through partitions, volumes, RAID and loop devices to the disk.
//!
//! 1. The devices below a layer come from `/sys`; a loop device reports its own backing file.
//! 2. If a layer must have a device below it but shows none, such as a volume without `slaves`,
//!    `unresolved_reasons` gets the reason: the layer's data may end in memory or on a disk.
//! 3. Each layer has its queue settings, and what `/sys` shows about place, state, interrupts and link.
//!
//! `resolve` finds the device that a path is on.

use crate::file_systems::{Mount, mount_of};
use crate::loop_devices::{backing_identity, loop_status};
use crate::root::Root;
use crate::{file_systems, identity};
use model::machine::{BACKING, Identity, Layer, LayerKind, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of layers. A longer stack is cut, and `unresolved_reasons` reports that.
const MAX_LAYERS: usize = 512;

/// A block stack that is followed downwards from its top devices.
pub(crate) struct Stack<'a> {
    pub(crate) root: &'a Root,
    pub(crate) mounts: &'a [Mount],
    pub(crate) layers: Vec<Layer>,
    /// Places resolved before. Their layers are not read again.
    pub(crate) known: &'a [Place],
    /// Reasons why parts of the stack could not be followed, as sentences.
    pub(crate) unresolved_reasons: Vec<String>,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(root: &'a Root, mounts: &'a [Mount]) -> Self {
        Self { root, mounts, layers: Vec::new(), known: &[], unresolved_reasons: Vec::new() }
    }

    /// Adds the device with this `major:minor` and everything below it, unless the stack has it
    /// already. Returns the device's index in `layers`; `None` if the device cannot be followed,
    /// for a reason in `unresolved_reasons`.
    pub(crate) fn add(&mut self, number: &str) -> Option<usize> {
        if let Some(there) = self.layers.iter().position(|l| l.number == number) {
            return Some(there);
        }
        let Some(name) = name_of(self.root, number) else {
            self.unresolved_reasons.push(format!("the kernel shows no block device {number} in /sys"));
            return None;
        };
        if self.layers.len() >= MAX_LAYERS {
            self.unresolved_reasons.push(format!(
                "more than {MAX_LAYERS} devices are below the target, and the rest were not followed"
            ));
            return None;
        }
        let index = self.layers.len();
        // Add the layer before those below it. Otherwise a stack that contains itself would never end.
        let known = self.known.iter().flat_map(|place| &place.layers).find(|layer| layer.number == number);
        self.layers.push(known.map_or_else(
            || read_layer(self.root, &name, number),
            |layer| Layer { below: Vec::new(), ..layer.clone() },
        ));
        let below = self.add_below(index, &name);
        self.layers[index].below = below;
        Some(index)
    }

    fn add_below(&mut self, index: usize, name: &str) -> Vec<usize> {
        match self.layers[index].kind {
            LayerKind::Partition => {
                let disk = disk_of_partition(self.root, name).and_then(|p| number_of(self.root, &p));
                if disk.is_none() {
                    self.unresolved_reasons
                        .push(format!("/sys does not show which disk {name} is a part of"));
                }
                disk.and_then(|n| self.add(&n)).into_iter().collect()
            }
            LayerKind::Loop => self.add_backing(index, name),
            LayerKind::Zram | LayerKind::Ram => {
                self.layers[index].ram = Some(name.to_owned());
                Vec::new()
            }
            kind => self.add_slaves(kind, name),
        }
    }

    /// Adds the devices below a volume, an array or another virtual device. A hardware device has none.
    fn add_slaves(&mut self, kind: LayerKind, name: &str) -> Vec<usize> {
        let dir = format!("/sys/class/block/{name}/slaves");
        let slaves = self.root.list(&dir);
        let why = match &slaves {
            _ if kind == LayerKind::Disk => None,
            Ok(slaves) => slaves.is_empty().then(|| format!("{dir} is empty")),
            Err(why) => Some(format!("{dir}: {why}")),
        };
        self.unresolved_reasons.extend(why.map(|why| format!("the devices below {name} are unknown: {why}")));
        let mut found = Vec::new();
        for slave in slaves.unwrap_or_default() {
            match number_of(self.root, &slave) {
                Some(number) => found.extend(self.add(&number)),
                None => {
                    self.unresolved_reasons.push(format!("{name} is on {slave}, which /sys does not show"));
                }
            }
        }
        found.dedup();
        found
    }

    fn add_backing(&mut self, index: usize, name: &str) -> Vec<usize> {
        // The name may be outdated, or `/sys` may be covered, so ask the loop device itself for its backing file.
        let status = loop_status(self.root, name);
        if let Ok(status) = &status {
            let layer = &mut self.layers[index];
            layer.backing_direct = Some(status.direct);
            layer.device.entry("loop/offset".to_owned()).or_insert_with(|| status.offset_bytes.to_string());
            layer.backing_file.get_or_insert_with(|| status.file_name.clone());
        }
        let Some(file) = self.layers[index].backing_file.clone() else {
            let why = status.err().unwrap_or_default();
            self.unresolved_reasons.push(format!(
                "/sys does not show the backing file of {name}, and the device does not name it: {why}"
            ));
            return Vec::new();
        };
        let by_name = || identity::from_name(self.root, &file);
        let backing = status.map(|status| backing_identity(&status)).or_else(|_| by_name());
        if let Ok(what) = &backing {
            let from = self.layers[index].device.get("loop/offset").map_or("0", String::as_str);
            let place = format!("{} from byte {from}", what.describe());
            self.layers[index].device.insert(BACKING.to_owned(), place);
        }
        let (number, inode) = match backing {
            Ok(Identity::Device { number, .. }) => return self.add(&number).into_iter().collect(),
            Ok(Identity::File { device, inode }) => (device, inode),
            Err(why) => {
                self.unresolved_reasons
                    .push(format!("{file}, the backing file of {name}, cannot be found: {why}"));
                return Vec::new();
            }
        };
        let path = self.root.path(&file);
        let is_backing_file = |facts: &std::fs::Metadata| {
            (crate::root::number_of(facts.dev()), facts.ino()) == (number.clone(), inode)
        };
        let path = std::fs::metadata(&path).is_ok_and(|facts| is_backing_file(&facts)).then_some(path);
        // Without the file's name, only the device number of its file system is known. All mounts of the file system have this number.
        let mount = match &path {
            Some(path) => mount_of(self.mounts, None, &number, &path.to_string_lossy()),
            None => self.mounts.iter().rfind(|m| m.number == number),
        };
        let found = below_file_system(self, mount, &number, path.as_deref());
        if let Some(memory) = found.ram {
            self.layers[index].ram = Some(format!("{name} on {memory}"));
        }
        if let Some(why) = found.unresolved_reason {
            self.unresolved_reasons.push(format!("{file}, the backing file of {name}: {why}"));
        }
        found.tops
    }

    /// Returns why all data is in memory; `None` if a part is not in memory, or nothing is known.
    pub(crate) fn memory_of_all_data(&self) -> Option<String> {
        let leaves = || self.layers.iter().filter(|l| l.below.is_empty());
        let names: Vec<&str> = leaves().filter_map(|l| l.ram.as_deref()).collect();
        (!names.is_empty() && names.len() == leaves().count()).then(|| names.join(", "))
    }

    /// Returns the layers, each before the layers below it, and the new indices of `tops`.
    pub(crate) fn into_order(self, tops: &[usize]) -> (Vec<Layer>, Vec<usize>) {
        let depths = depths(&self.layers);
        let mut order: Vec<usize> = (0..self.layers.len()).collect();
        order.sort_by_key(|i| depths[*i]);
        let mut new_index = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_index[*old] = new;
        }
        let mut slots: Vec<Option<Layer>> = self.layers.into_iter().map(Some).collect();
        let mut layers: Vec<Layer> = order.iter().filter_map(|i| slots[*i].take()).collect();
        for layer in &mut layers {
            layer.below.iter_mut().for_each(|b| *b = new_index[*b]);
        }
        let mut tops: Vec<usize> = tops.iter().map(|t| new_index[*t]).collect();
        tops.sort_unstable();
        tops.dedup();
        (layers, tops)
    }
}

/// Returns for each layer its greatest distance from a top layer.
fn depths(layers: &[Layer]) -> Vec<usize> {
    let mut depths = vec![0; layers.len()];
    // Make at most one pass per layer, so that the loop ends even if `/sys` contradicts itself.
    for _ in 0..layers.len() {
        let mut changed = false;
        for (i, layer) in layers.iter().enumerate() {
            for below in &layer.below {
                if depths[*below] <= depths[i] && depths[i] < layers.len() {
                    depths[*below] = depths[i] + 1;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    depths
}

/// Returns the kernel name of the device with this `major:minor`.
pub(crate) fn name_of(root: &Root, number: &str) -> Option<String> {
    let link = root.link(&format!("/sys/dev/block/{number}")).ok();
    if let Some(name) = link.as_deref().and_then(|l| l.rsplit('/').next()) {
        return Some(name.to_owned());
    }
    let names = root.list("/sys/class/block").ok()?;
    names.into_iter().find(|n| number_of(root, n).as_deref() == Some(number))
}

/// Returns the `major:minor` of the device with this kernel name.
pub(crate) fn number_of(root: &Root, name: &str) -> Option<String> {
    root.word(&format!("/sys/class/block/{name}/dev"))
}

/// Returns the kernel name of the disk that a partition belongs to; `None` for any other device.
pub(crate) fn disk_of_partition(root: &Root, name: &str) -> Option<String> {
    if !root.has(&format!("/sys/class/block/{name}/partition")) {
        return None;
    }
    let link = root.link(&format!("/sys/class/block/{name}")).ok()?;
    link.rsplit('/').nth(1).map(str::to_owned)
}

/// Reads one layer, without the layers below it.
pub(crate) fn read_layer(root: &Root, name: &str, number: &str) -> Layer {
    let dir = format!("/sys/class/block/{name}");
    let disk = disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
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
        // `/sys/class/block` has a link for disks and partitions alike.
        stat_file: format!("{dir}/stat"),
        // A partition has no queue, so use the queue of its disk.
        queue: queue(root, &disk),
        device: read_device_attributes(root, name, &disk),
        ram: None,
        below: Vec::new(),
    }
}

fn kind(root: &Root, name: &str, number: &str) -> LayerKind {
    let has = |file: &str| root.has(&format!("/sys/class/block/{name}/{file}"));
    // If neither link can be read, hardware devices and virtual devices cannot be told apart.
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
        // With native multipath the kernel lists an NVMe disk under `virtual`.
        LayerKind::Virtual
    } else {
        LayerKind::Disk
    }
}

fn driver(root: &Root, disk: &str) -> Option<String> {
    // An NVMe namespace is below its controller, and only the controller has a driver.
    let links = ["device/driver", "device/device/driver"];
    let found = links.iter().find_map(|l| root.link(&format!("/sys/class/block/{disk}/{l}")).ok());
    let name = found.and_then(|l| l.rsplit('/').next().map(str::to_owned));
    name.or_else(|| disk.starts_with("nvme").then(|| "nvme".to_owned()))
}

/// Returns the text of the first file in `files` that is neither missing nor empty; `None` if there is none. `name` is the kernel name of
/// the device.
pub(crate) fn first_word(root: &Root, name: &str, files: &[&str]) -> Option<String> {
    files.iter().find_map(|f| root.word(&format!("/sys/class/block/{name}/{f}")))
}

/// Returns the serial number of the disk that a device or partition is on.
pub(crate) fn serial(root: &Root, name: &str) -> Option<String> {
    let disk = disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    first_word(root, &disk, &["device/serial", "serial"]).or_else(|| scsi_serial(root, &disk))
}

/// Returns the serial number of a SCSI disk from page 0x80 of its vital product data: a header of four bytes, then text.
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

/// Files of the device or partition itself.
const DEVICE_FILES: [&str; 4] = ["start", "alignment_offset", "ro", "loop/offset"];

/// Files of the whole device.
const DISK_FILES: [&str; 13] = [
    "removable",
    "device/queue_depth",
    "device/state",
    "md/degraded",
    "md/level",
    "md/sync_action",
    "bcache/state",
    "bcache/cache_mode",
    "dm/name",
    "dm/suspended",
    "dm/uuid",
    // Stored under the key `dax`.
    "queue/dax",
    "device/power/pm_qos_latency_tolerance_us",
];

/// Files of parent directories. Each file is read from the nearest directory that has it, usually that of the PCI
/// function.
const PARENT_FILES: [&str; 6] = [
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];
/// Files of a SATA link, below its port.
const SATA_LINK_FILES: [&str; 3] = ["sata_spd", "sata_spd_limit", "hw_sata_spd_limit"];

/// Reads what `/sys` shows about the device or partition `name` of the whole device `disk`. Ignores missing
/// files.
pub(crate) fn read_device_attributes(root: &Root, name: &str, disk: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut keep = |key: &str, text: Option<String>| {
        if let Some(text) = text {
            out.insert(key.to_owned(), text);
        }
    };
    for file in DEVICE_FILES {
        keep(file, root.word(&format!("/sys/class/block/{name}/{file}")));
    }
    for file in DISK_FILES {
        let key = match file {
            "queue/dax" => "dax",
            "device/power/pm_qos_latency_tolerance_us" => "pm_qos_latency_tolerance_us",
            other => other,
        };
        keep(key, root.word(&format!("/sys/class/block/{disk}/{file}")));
    }
    keep("mq", root.list(&format!("/sys/class/block/{disk}/mq")).ok().map(|queues| queues.len().to_string()));
    let above = above(root, disk);
    for file in PARENT_FILES {
        let key = if file == "numa_node" { "device/numa_node" } else { file };
        keep(key, above.iter().find_map(|dir| root.word(&format!("{dir}/{file}"))));
    }
    if let Some(port) = above.iter().find_map(|dir| sata_link(root, dir)) {
        for file in SATA_LINK_FILES {
            keep(file, root.word(&format!("{port}/{file}")));
        }
    }
    keep("irq_cpus", above.iter().find_map(|dir| interrupt_cpus(root, dir)));
    keep("hwmon", above.iter().find_map(|dir| temperature_monitor(root, dir)));
    out
}

/// Returns the directories above a disk in `/sys/devices`, the nearest first.
fn above(root: &Root, disk: &str) -> Vec<String> {
    let Some(mut place) = root.canonical(&format!("/sys/class/block/{disk}")) else { return Vec::new() };
    // With native multipath an NVMe disk is below a subsystem, which names the disk's controllers. Several controllers have no common
    // link.
    if place.contains("/nvme-subsystem/") {
        let subsystem = place.rsplit_once('/').map_or("", |(dir, _)| dir);
        let names = root.matches(&format!("{subsystem}/nvme*")).unwrap_or_default();
        // The subsystem lists disks and controllers. Only disks have a size.
        let mut controllers = names.iter().filter(|path| !root.has(&format!("{path}/size")));
        let (Some(only), None) = (controllers.next(), controllers.next()) else { return Vec::new() };
        let Some(controller) = root.canonical(only) else { return Vec::new() };
        place = format!("{controller}/{disk}");
    }
    let mut out = Vec::new();
    while let Some((dir, _)) = place.rsplit_once('/').filter(|(dir, _)| dir.starts_with("/sys/devices/")) {
        out.push(dir.to_owned());
        place = dir.to_owned();
    }
    out
}

/// Returns the directory of a port's SATA link, `ata1/link1/ata_link/link1`.
fn sata_link(root: &Root, port: &str) -> Option<String> {
    let links = root.matches(&format!("{port}/link*")).ok()?;
    let link = links.iter().find_map(|path| path.rsplit('/').next())?;
    let dir = format!("{port}/{link}/ata_link/{link}");
    root.has(&dir).then_some(dir)
}

/// Returns the CPUs that serve the I/O interrupts of this PCI function, as `0,1,5`; `None` if it has no
/// interrupts.
fn interrupt_cpus(root: &Root, dir: &str) -> Option<String> {
    let irqs: Vec<String> = root.list(&format!("{dir}/msi_irqs")).ok()?;
    let named = |irq: &String| root.word(&format!("/sys/kernel/irq/{irq}/actions")).unwrap_or_default();
    let mut serving: Vec<&String> = irqs.iter().filter(|irq| !is_control_interrupt(&named(irq))).collect();
    // A device with a single vector uses it for all interrupts.
    if serving.is_empty() {
        serving = irqs.iter().collect();
    }
    let mut cpus = BTreeSet::new();
    for irq in serving {
        let files = ["effective_affinity_list", "smp_affinity_list"];
        let list = files.iter().find_map(|f| root.word(&format!("/proc/irq/{irq}/{f}")));
        cpus.extend(list.iter().flat_map(|l| parse_cpu_list(l)));
    }
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!cpus.is_empty()).then(|| cpus.join(","))
}

/// Returns whether an interrupt serves no I/O, such as virtio configuration changes and the NVMe admin queue.
fn is_control_interrupt(name: &str) -> bool {
    name.ends_with("-config") || (name.starts_with("nvme") && name.ends_with("q0"))
}

/// Parses a list of CPUs such as `0-3,8`. Ignores invalid parts.
fn parse_cpu_list(list: &str) -> Vec<u32> {
    /// Linux supports at most this number of CPUs.
    const MAX_CPUS: u32 = 8192;
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(MAX_CPUS))
    };
    list.split(',').filter_map(part).flatten().collect()
}

/// Returns the temperature monitor below a directory of a drive, as `/sys/class/hwmon/hwmon3`;
/// `None` without one.
fn temperature_monitor(root: &Root, dir: &str) -> Option<String> {
    // SCSI has a directory of monitors, NVMe has the monitor itself.
    let monitors = [format!("{dir}/hwmon/hwmon*"), format!("{dir}/hwmon*")];
    let found = monitors.iter().find_map(|p| {
        root.matches(p)
            .ok()?
            .into_iter()
            .find(|path| matches!(root.word(&format!("{path}/name")).as_deref(), Some("nvme" | "drivetemp")))
    })?;
    found.rsplit('/').next().map(|name| format!("/sys/class/hwmon/{name}"))
}

/// Adds the identifiers that distinguish a device from an earlier device with the same number.
pub fn with_identifiers(root: &Root, what: Identity) -> Identity {
    match what {
        Identity::Device { number, .. } => {
            let name = name_of(root, &number);
            Identity::Device { identifiers: name.map(|n| identifiers(root, &n)).unwrap_or_default(), number }
        }
        file @ Identity::File { .. } => file,
    }
}

fn identifiers(root: &Root, name: &str) -> Vec<String> {
    let disk = disk_of_partition(root, name).unwrap_or_else(|| name.to_owned());
    let serial = serial(root, name).map(|s| format!("serial number {s}"));
    // The kernel increments the disk sequence for each new disk, changed medium and bound loop
    // device.
    let sequence =
        root.word(&format!("/sys/class/block/{disk}/diskseq")).map(|n| format!("disk sequence {n}"));
    let start =
        root.word(&format!("/sys/class/block/{name}/start")).map(|s| format!("partition from sector {s}"));
    let status = disk.starts_with("loop").then(|| loop_status(root, &disk).ok()).flatten();
    let backing = status.map(|status| {
        format!("a loop over {} from byte {}", backing_identity(&status).describe(), status.offset_bytes)
    });
    [serial, backing, start, sequence].into_iter().flatten().collect()
}

/// The devices below a file system.
#[derive(Debug, Default)]
pub(crate) struct Below {
    /// Indices, in the stack, of the topmost devices below the file system.
    pub(crate) tops: Vec<usize>,
    /// Why the data is in memory; `None` for storage.
    pub(crate) ram: Option<String>,
    /// Why the devices below the file system are unknown; `None` if they are known.
    pub(crate) unresolved_reason: Option<String>,
}

impl Below {
    fn unresolved(why: impl Into<String>) -> Self {
        Self { unresolved_reason: Some(why.into()), ..Self::default() }
    }
}

/// Follows a file system to its devices. `path` is a file or directory of the file system. Overlays need the path, because they combine
/// several file systems.
pub(crate) fn below_file_system(
    stack: &mut Stack<'_>,
    mount: Option<&Mount>,
    number: &str,
    path: Option<&Path>,
) -> Below {
    follow(stack, mount, number, path, file_systems::MAX_OVERLAYS)
}

fn follow(
    stack: &mut Stack<'_>,
    mount: Option<&Mount>,
    number: &str,
    path: Option<&Path>,
    overlays_left: usize,
) -> Below {
    let Some(mount) = mount else {
        if number.starts_with("0:") {
            return Below::unresolved("the file system of this path is not among the mounts of this process");
        }
        return add_device(stack, number);
    };
    match mount.kind.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => {
            Below { ram: Some(mount.kind.clone()), ..Below::default() }
        }
        "overlay" => follow_overlay(stack, mount, path, overlays_left),
        "btrfs" => add_btrfs(stack, mount),
        "bcachefs" => add_sources(stack, mount, mount.source.split(':')),
        "zfs" => Below::unresolved(format!(
            "zfs does not report to the kernel which devices {} is on; `zpool status` shows them",
            mount.source
        )),
        "fuseblk" => Below {
            unresolved_reason: Some(
                "a program in user space (FUSE) is between this file and its device".into(),
            ),
            ..add_sources(stack, mount, [mount.source.as_str()])
        },
        kind if kind == "fuse" || kind.starts_with("fuse.") => Below::unresolved(format!(
            "{kind}: a program in user space serves this file system, so the kernel knows no device below"
        )),
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "lustre" | "afs" | "gpfs" | "beegfs"
        | "orangefs" => Below::unresolved(format!(
            "{}: the data may be on another machine ({})",
            mount.kind, mount.source
        )),
        "9p" | "virtiofs" => Below::unresolved(format!(
            "{}: the data are on the host of this virtual machine, or on a server",
            mount.kind
        )),
        _ if !number.starts_with("0:") => add_device(stack, number),
        _ => add_sources(stack, mount, [mount.source.as_str()]),
    }
}

fn add_device(stack: &mut Stack<'_>, number: &str) -> Below {
    Below { tops: stack.add(number).into_iter().collect(), ..Below::default() }
}

/// Adds the devices that the mount's source names.
fn add_sources<'s>(stack: &mut Stack<'_>, mount: &Mount, names: impl IntoIterator<Item = &'s str>) -> Below {
    let numbers: Vec<String> = names.into_iter().filter_map(|s| stack.root.device_number(s)).collect();
    let tops: Vec<usize> = numbers.iter().filter_map(|n| stack.add(n)).collect();
    let unresolved_reason = tops.is_empty().then(|| {
        format!(
            "the kernel shows no device below this {} file system, whose source is '{}'",
            mount.kind, mount.source
        )
    });
    Below { tops, ram: None, unresolved_reason }
}

/// Adds all devices of the btrfs that contains the mount's source device.
fn add_btrfs(stack: &mut Stack<'_>, mount: &Mount) -> Below {
    let name = stack.root.device_number(&mount.source).and_then(|n| name_of(stack.root, &n));
    let ids = stack.root.list("/sys/fs/btrfs").unwrap_or_default();
    let devices = |id: &String| stack.root.list(&format!("/sys/fs/btrfs/{id}/devices")).unwrap_or_default();
    let all = name.and_then(|name| ids.iter().map(devices).find(|d| d.contains(&name)));
    let Some(all) = all else { return add_sources(stack, mount, [mount.source.as_str()]) };
    let numbers: Vec<String> = all.iter().filter_map(|n| number_of(stack.root, n)).collect();
    Below { tops: numbers.iter().filter_map(|n| stack.add(n)).collect(), ..Below::default() }
}

/// Follows the overlay's layer that holds the path: the upper one for directories and copied-up files,
/// otherwise a lower one.
fn follow_overlay(stack: &mut Stack<'_>, mount: &Mount, path: Option<&Path>, overlays_left: usize) -> Below {
    let Some(overlays_left) = overlays_left.checked_sub(1) else {
        return Below::unresolved("too many overlays on top of each other");
    };
    let point = Path::new(&mount.point);
    let inside = path.filter(|p| std::path::absolute(p).is_ok_and(|p| p.starts_with(point)));
    let there = match file_systems::data_path(stack.root, mount, inside.unwrap_or(point)) {
        Ok(there) => there,
        Err(why) => return Below::unresolved(why),
    };
    let Ok(status) = identity::status_by_path(&there) else {
        return Below::unresolved(file_systems::hidden_reason(mount));
    };
    let number = &status.file_system_number;
    let mounts = stack.mounts;
    let below = mount_of(mounts, status.mount_id, number, &there.to_string_lossy());
    // In a container the directory names may lead back into the overlay itself.
    if below.is_some_and(|b| b.id == mount.id) {
        return Below::unresolved(file_systems::hidden_reason(mount));
    }
    follow(stack, below, number, Some(&there), overlays_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::resolve::place_of_device;
    use std::fs;
    use std::path::Path;

    /// A volume on a mirror of two partitions of one disk.
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
        assert_eq!((place.unresolved_reason, place.ram, disk.bytes), (None, None, 1 << 20));
    }

    #[test]
    fn a_cluster_file_system_is_on_the_disk_that_its_hosts_share() {
        let dir = fixture();
        let root = Root::at(dir.path().to_owned());
        for (kind, number, layers) in [("gfs2", "9:0", 4), ("ocfs2", "253:0", 5), ("ceph", "0:50", 0)] {
            let mounts = file_systems::parse(&format!("1 0 {number} / /m rw - {kind} source rw\n"));
            let mut stack = Stack::new(&root, &mounts);
            let below = below_file_system(&mut stack, mounts.first(), number, None);
            assert_eq!(
                (stack.layers.len(), below.unresolved_reason.is_some()),
                (layers, layers == 0),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_layer_with_hidden_slaves_is_unresolved() {
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
                let reason = place(name, slaves).unresolved_reason.unwrap_or_default();
                assert!(reason.contains(name) && reason.contains("/slaves"), "{name} {slaves:?}: {reason}");
            }
            assert_eq!(place(name, Some(&["sda"])).unresolved_reason, None, "{name}");
            let hidden = place(name, Some(&["sda", "sdz"]));
            assert!(hidden.unresolved_reason.is_some_and(|why| why.contains("sdz")), "{name}");
        }
        // If the directories of volumes and arrays are covered, only the names of the devices identify them.
        assert_eq!(place("dm-3", None).layers[0].kind, LayerKind::DeviceMapper);
        assert_eq!(place("md126", None).layers[0].kind, LayerKind::Raid);
        for name in ["zram3", "ram3"] {
            assert_eq!(
                (place(name, None).ram.as_deref(), place(name, None).unresolved_reason),
                (Some(name), None)
            );
        }
        assert!(
            place("loop9", None).unresolved_reason.is_some_and(|why| why.contains("backing file of loop9"))
        );
    }

    #[test]
    fn a_device_number_missing_from_sys_is_reported() {
        let root = Root::at("/nonexistent-prefix".into());
        let place = place_of_device(&root, &[], Path::new("/dev/x"), "8:0");
        assert!(place.layers.is_empty() && place.unresolved_reason.is_some_and(|b| b.contains("8:0")));
    }

    #[test]
    fn a_cyclic_stack_ends() {
        let layers =
            vec![Layer { below: vec![1], ..Layer::default() }, Layer { below: vec![0], ..Layer::default() }];
        assert_eq!(depths(&layers).len(), 2);
    }
}

#[cfg(test)]
mod device_tests {
    use super::*;
    use crate::fixture::{link, put};
    use std::path::Path;

    fn all(dir: &Path, base: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            put(dir, &format!("{base}/{path}"), text);
        }
    }

    #[test]
    fn an_nvme_drive_has_a_pci_link_and_a_queue_per_cpu() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let function = "sys/devices/pci0000:00/0000:00:1d.0/0000:03:00.0";
        all(
            dir.path(),
            function,
            &[
                ("numa_node", "1\n"),
                ("local_cpulist", "4-7\n"),
                ("current_link_speed", "8.0 GT/s PCIe\n"),
                ("current_link_width", "2\n"),
                ("max_link_speed", "16.0 GT/s PCIe\n"),
                ("max_link_width", "4\n"),
                ("msi_irqs/130", "msix\n"),
                ("msi_irqs/131", "msix\n"),
                ("msi_irqs/132", "msix\n"),
                ("nvme/nvme0/state", "live\n"),
                ("nvme/nvme0/hwmon1/name", "nvme\n"),
                ("nvme/nvme0/nvme0n1/ro", "0\n"),
                ("nvme/nvme0/nvme0n1/removable", "0\n"),
                ("nvme/nvme0/nvme0n1/alignment_offset", "0\n"),
                ("nvme/nvme0/nvme0n1/queue/dax", "0\n"),
                ("nvme/nvme0/nvme0n1/mq/0/cpu_list", "4\n"),
                ("nvme/nvme0/nvme0n1/mq/1/cpu_list", "5\n"),
                ("nvme/nvme0/nvme0n1/nvme0n1p1/partition", "1\n"),
                ("nvme/nvme0/nvme0n1/nvme0n1p1/start", "2048\n"),
                ("nvme/nvme0/nvme0n1/nvme0n1p1/alignment_offset", "0\n"),
                ("nvme/nvme0/power/pm_qos_latency_tolerance_us", "100000\n"),
            ],
        );
        link(dir.path(), "../../nvme0", &format!("{function}/nvme/nvme0/nvme0n1/device"));
        let below = "../../devices/pci0000:00/0000:00:1d.0/0000:03:00.0/nvme/nvme0/nvme0n1";
        link(dir.path(), below, "sys/class/block/nvme0n1");
        link(dir.path(), &format!("{below}/nvme0n1p1"), "sys/class/block/nvme0n1p1");
        for (irq, name, cpus) in [(130, "nvme0q0", "0"), (131, "nvme0q1", "4"), (132, "nvme0q2", "5-6")] {
            put(dir.path(), &format!("sys/kernel/irq/{irq}/actions"), &format!("{name}\n"));
            put(dir.path(), &format!("proc/irq/{irq}/effective_affinity_list"), &format!("{cpus}\n"));
        }
        let root = Root::at(dir.path().to_owned());
        let seen = read_device_attributes(&root, "nvme0n1p1", "nvme0n1");
        let expected = [
            ("alignment_offset", "0"),
            ("current_link_speed", "8.0 GT/s PCIe"),
            ("current_link_width", "2"),
            ("dax", "0"),
            ("device/numa_node", "1"),
            ("device/state", "live"),
            ("hwmon", "/sys/class/hwmon/hwmon1"),
            ("irq_cpus", "4,5,6"),
            ("local_cpulist", "4-7"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "4"),
            ("mq", "2"),
            ("pm_qos_latency_tolerance_us", "100000"),
            ("removable", "0"),
            ("start", "2048"),
        ];
        let seen: Vec<(&str, &str)> = seen.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(seen, expected);
        Ok(())
    }

    #[test]
    fn a_multipath_nvme_drive_is_found_below_its_only_controller() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
        all(dir.path(), subsystem, &[("nvme0n1/size", "8\n"), ("nvme0n1/ro", "0\n")]);
        put(dir.path(), "sys/devices/pci0/0000:03:00.0/max_link_width", "4\n");
        put(dir.path(), "sys/devices/pci0/0000:03:00.0/nvme/nvme0/state", "live\n");
        link(dir.path(), "../../../pci0/0000:03:00.0/nvme/nvme0", &format!("{subsystem}/nvme0"));
        link(dir.path(), &format!("../../../{subsystem}/nvme0n1"), "sys/class/block/nvme0n1");
        let root = Root::at(dir.path().to_owned());
        assert_eq!(
            read_device_attributes(&root, "nvme0n1", "nvme0n1").get("max_link_width").map(String::as_str),
            Some("4")
        );
        // If there is a second controller, it is unknown which link is used.
        link(dir.path(), "../../../pci0/0000:03:00.0/nvme/nvme0", &format!("{subsystem}/nvme1"));
        assert_eq!(read_device_attributes(&root, "nvme0n1", "nvme0n1").get("max_link_width"), None);
        Ok(())
    }

    #[test]
    fn a_sata_drive_has_the_speed_of_its_port() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let port = "sys/devices/pci0000:00/0000:00:17.0/ata3";
        let block = format!("{port}/host2/target2:0:0/2:0:0:0/block/sda");
        all(
            dir.path(),
            port,
            &[
                ("link3/ata_link/link3/sata_spd", "1.5 Gbps\n"),
                ("link3/ata_link/link3/sata_spd_limit", "1.5 Gbps\n"),
                ("link3/ata_link/link3/hw_sata_spd_limit", "6.0 Gbps\n"),
                ("host2/target2:0:0/2:0:0:0/queue_depth", "32\n"),
                ("host2/target2:0:0/2:0:0:0/state", "running\n"),
                ("host2/target2:0:0/2:0:0:0/hwmon/hwmon2/name", "drivetemp\n"),
            ],
        );
        put(dir.path(), &format!("{block}/removable"), "0\n");
        put(dir.path(), "sys/devices/pci0000:00/0000:00:17.0/irq", "16\n");
        link(dir.path(), "../../../2:0:0:0", &format!("{block}/device"));
        link(dir.path(), &format!("../../../{block}"), "sys/class/block/sda");
        let root = Root::at(dir.path().to_owned());
        let seen = read_device_attributes(&root, "sda", "sda");
        let text = |key: &str| seen.get(key).map_or("", String::as_str);
        assert_eq!((text("sata_spd"), text("hw_sata_spd_limit")), ("1.5 Gbps", "6.0 Gbps"));
        assert_eq!((text("device/queue_depth"), text("device/state")), ("32", "running"));
        assert_eq!((text("hwmon"), seen.get("irq_cpus")), ("/sys/class/hwmon/hwmon2", None));
        Ok(())
    }

    #[test]
    fn an_array_reports_its_state_and_has_no_link() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let files =
            [("md/degraded", "1\n"), ("md/sync_action", "recover\n"), ("md/level", "raid1\n"), ("ro", "0\n")];
        all(dir.path(), "sys/devices/virtual/block/md0", &files);
        link(dir.path(), "../../devices/virtual/block/md0", "sys/class/block/md0");
        let seen = read_device_attributes(&Root::at(dir.path().to_owned()), "md0", "md0");
        let seen: Vec<(&str, &str)> = seen.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let expected =
            [("md/degraded", "1"), ("md/level", "raid1"), ("md/sync_action", "recover"), ("ro", "0")];
        assert_eq!(seen, expected);
        Ok(())
    }

    #[test]
    fn lists_of_cpus_never_run_away() {
        assert_eq!(parse_cpu_list("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(parse_cpu_list("x,3-,-1,5-4,9"), [9]);
        assert_eq!(parse_cpu_list("8190-4294967295").len(), 3);
    }

    #[test]
    fn the_devices_of_this_machine_are_listed() {
        let root = Root::real();
        for name in root.list("/sys/class/block").unwrap_or_default() {
            println!("{name} {:?}", read_device_attributes(&root, &name, &name));
        }
    }
}
