//! All block devices that the kernel shows: their list with properties and users (`fathom devices`), their
//! names, and their counters at one moment.
//!
//! The layers below one target are found in `stack`.

use crate::file_systems::Mount;
use crate::in_use::Use;
use crate::root::Root;
use crate::{file_systems, in_use, stack};
use model::Known;
use model::evidence::{BlockStat, disk_lines};
use model::machine::{BlockDevice, Devices, FORMAT, Layer, Mounted, Queue};
use std::path::{Component, Path, PathBuf};

/// Directory of all block devices, partitions included.
const ALL: &str = "/sys/class/block";
/// Text in a device's path in `/sys/devices` that shows the bus, and the bus's name. If a path
/// contains several buses, the device is on the last one.
const BUSES: [(&str, &str); 9] = [
    ("/usb", "USB"),
    ("/ata", "SATA"),
    ("/end_device-", "SAS"),
    ("/rport-", "Fibre Channel"),
    ("/session", "iSCSI"),
    ("/mmc", "MMC"),
    ("/virtio", "virtio"),
    ("/vbd-", "Xen"),
    ("/ufshcd", "UFS"),
];
/// Files with the firmware revision for SCSI, NVMe and MMC. For an NVMe namespace with native multipath the
/// controller has the file.
const FIRMWARE: [&str; 4] =
    ["device/rev", "device/firmware_rev", "device/device/firmware_rev", "device/fwrev"];

/// Lists all block devices, each disk before its partitions.
///
/// # Errors
/// Why the devices cannot be listed.
pub fn list_devices(root: &Root) -> Known<Devices> {
    let mut names = root.list(ALL).map_err(|why| format!("{ALL}: {why}"))?;
    names.sort_by_cached_key(|name| sort_key(root, name));
    let mounts = file_systems::read(root).map_err(|why| format!("/proc/self/mountinfo: {why}"));
    let has_size = |name: &String| sectors(root, name).is_some_and(|sectors| sectors > 0);
    let (there, empty): (Vec<String>, Vec<String>) = names.into_iter().partition(has_size);
    let devices = there.iter().filter_map(|name| device(root, name, &mounts));
    Ok(Devices { format: FORMAT, devices: devices.collect(), empty })
}

/// Returns the sort key that orders disks by name and number, each followed by its partitions: `sda`, `sda1`,
/// `sda2`, `sda10`, `sdb`.
fn sort_key(root: &Root, name: &str) -> ((String, u64), Option<(String, u64)>) {
    match stack::disk_of_partition(root, name) {
        Some(disk) => (split_number(&disk), Some(split_number(name))),
        None => (split_number(name), None),
    }
}

/// Splits the last number off a name, so that 10 sorts after 9.
fn split_number(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}

fn sectors(root: &Root, name: &str) -> Option<u64> {
    root.word(&format!("{ALL}/{name}/size"))?.parse().ok()
}

/// Reads a device; `None` if it vanished after it was listed.
fn device(root: &Root, name: &str, mounts: &Known<Vec<Mount>>) -> Option<BlockDevice> {
    let number = stack::number_of(root, name)?;
    let layer = stack::read_layer(root, name, &number);
    let disk = stack::disk_of_partition(root, name);
    let whole = disk.as_deref().unwrap_or(name);
    let start = layer.device_number("start").ok().filter(|_| disk.is_some());
    Some(BlockDevice {
        label: layer.device.get("dm/name").cloned(),
        bus: bus(root, whole),
        link: link(&layer),
        start_bytes: start.map(|sectors| sectors.saturating_mul(model::evidence::SECTOR_BYTES)),
        read_only: read_flag(&layer.device, "ro"),
        removable: read_flag(&layer.device, "removable"),
        queue: queue(&layer),
        below: below(root, name, disk.as_ref()),
        partitions: in_use::partitions(root, name).unwrap_or_default(),
        holders: root.list(&format!("{ALL}/{name}/holders")).unwrap_or_default(),
        mounts: mounts.clone().map(|all| mounted(root, &all, &number)),
        used_by: used_by(root, name),
        name: layer.name,
        number,
        kind: layer.kind,
        bytes: layer.bytes,
        vendor: stack::first_word(root, whole, &["device/vendor"]).filter(|word| !word.starts_with("0x")),
        firmware: stack::first_word(root, whole, &FIRMWARE),
        wwid: stack::first_word(root, whole, &["wwid", "device/wwid"]),
        model: layer.model,
        serial: layer.serial,
        driver: layer.driver,
        backing_file: layer.backing_file,
        backing_direct: layer.backing_direct,
        disk,
    })
}

fn used_by(root: &Root, name: &str) -> Known<Option<String>> {
    match in_use::device(root, name)? {
        Use::By(user) => Ok(Some(user)),
        Use::Unused => Ok(None),
        Use::CannotTell(what) | Use::NeedsConsent(what) => Err(what),
    }
}

fn below(root: &Root, name: &str, disk: Option<&String>) -> Vec<String> {
    match disk {
        Some(disk) => vec![disk.clone()],
        None => root.list(&format!("{ALL}/{name}/slaves")).unwrap_or_default(),
    }
}

fn mounted(root: &Root, mounts: &[Mount], number: &str) -> Vec<Mounted> {
    let here = mounts.iter().filter(|m| in_use::is_mount_of(root, m, number, ""));
    let mounted =
        |m: &Mount| Mounted { point: m.point.clone(), kind: m.kind.clone(), options: m.options.clone() };
    here.map(mounted).collect()
}

/// Returns the bus of a disk, from its controller or from its path in `/sys/devices`.
fn bus(root: &Root, disk: &str) -> Option<String> {
    // For an NVMe disk only the controller shows the transport. With native multipath the controller is next
    // to the disk, not above it.
    let controller = ["device/transport", "device/device/transport"];
    let transport = controller.iter().find_map(|file| root.word(&format!("{ALL}/{disk}/{file}")));
    if let Some(transport) = transport {
        let shown = if transport == "pcie" { "PCIe" } else { &transport };
        return Some(format!("NVMe over {shown}"));
    }
    if disk.starts_with("nvme") {
        return Some("NVMe".into());
    }
    let place = root.canonical(&format!("{ALL}/{disk}"))?;
    let nearest = BUSES.iter().filter_map(|(part, bus)| Some((place.rfind(part)?, *bus)));
    nearest.max_by_key(|(at, _)| *at).map(|(_, bus)| bus.to_owned())
}

fn link(layer: &Layer) -> Option<String> {
    let fact = |key: &str| layer.device.get(key).map(String::as_str);
    match (fact("sata_spd"), fact("current_link_speed"), fact("current_link_width")) {
        (Some(speed), ..) => Some(speed.to_owned()),
        (None, Some(speed), Some(width)) => Some(format!("{speed} x{width}")),
        _ => None,
    }
}

fn queue(layer: &Layer) -> Queue {
    let number = |file: &str| layer.queue_number(file);
    let kib = |file: &str| number(file).map(|kib| kib.saturating_mul(1024));
    Queue {
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        max_request_bytes: kib("max_sectors_kb"),
        max_hardware_request_bytes: kib("max_hw_sectors_kb"),
        requests: number("nr_requests"),
        hardware_queues: layer.device_number("mq"),
        device_depth: layer.device_number("device/queue_depth"),
        scheduler: word(layer, "scheduler").map(|all| bracketed(&all)),
        write_cache: word(layer, "write_cache"),
        fua: read_flag(&layer.queue, "fua"),
        rotational: read_flag(&layer.queue, "rotational"),
        read_ahead_bytes: kib("read_ahead_kb"),
        max_discard_bytes: number("discard_max_bytes"),
        discard_granularity_bytes: number("discard_granularity"),
        optimal_request_bytes: number("optimal_io_size"),
        zoned: word(layer, "zoned"),
        counted: read_flag(&layer.queue, "iostats"),
    }
}

fn word(layer: &Layer, file: &str) -> Known<String> {
    let text = layer.queue.get(file).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("{}/queue/{file} is missing", layer.name))
}

/// Returns the entry in brackets, such as `mq-deadline` of `[mq-deadline] kyber none`.
fn bracketed(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(bracketed, _)| bracketed).to_owned()
}

fn read_flag(files: &std::collections::BTreeMap<String, String>, file: &str) -> Known<bool> {
    match files.get(file).map(|text| text.trim()) {
        Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(format!("{file} is neither 0 nor 1: '{other}'")),
        None => Err(format!("{file} is missing")),
    }
}

/// Returns the kernel name of a device. `typed` is the kernel name or volume name that the user typed.
/// `None` if `typed` is a path, or if no device has this name.
pub fn kernel_name(root: &Root, typed: &Path) -> Option<String> {
    let mut parts = typed.components();
    let (Some(Component::Normal(only)), None) = (parts.next(), parts.next()) else { return None };
    // `./vda` is a path, although its only component is `vda`.
    let name = typed.to_str().filter(|text| only.to_str() == Some(text))?;
    if stack::number_of(root, name).is_some() {
        return Some(name.to_owned());
    }
    let is_volume = |device: &String| root.word(&format!("{ALL}/{device}/dm/name")).as_deref() == Some(name);
    root.list(ALL).ok()?.into_iter().find(is_volume)
}

/// Returns the path of a device's node, such as `/dev/vda`. `typed` is the kernel name or volume name
/// that the user typed. `None` if no device has this name, or if the node belongs to another device.
pub fn node(root: &Root, typed: &Path) -> Option<PathBuf> {
    let name = kernel_name(root, typed)?;
    // The kernel writes `!` for `/` in names such as cciss/c0d0.
    let node = format!("/dev/{}", name.replace('!', "/"));
    let is_other =
        root.device_number(&node).is_some_and(|number| stack::number_of(root, &name) != Some(number));
    (!is_other).then(|| PathBuf::from(node))
}

/// Returns the kernel name of the block device at a path, following symbolic links; `None` if the path is no
/// block device. A device without a node is found by its name.
pub fn name_of_node(root: &Root, path: &Path) -> Option<String> {
    let text = path.to_str()?;
    if let Some(number) = root.device_number(text) {
        return stack::name_of(root, &number);
    }
    let name = path.strip_prefix("/dev").ok().filter(|_| !path.exists())?.to_str()?.replace('/', "!");
    kernel_name(root, Path::new(&name))
}

/// Counters of all block devices.
const DISK_STATS: &str = "/proc/diskstats";

/// A device with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    /// Kernel name.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// Counters since the device appeared.
    pub counters: BlockStat,
}

/// Reads the counters of all devices, in the kernel's order.
///
/// # Errors
/// Why the counters cannot be read.
pub fn read_disk_stats(root: &Root) -> Known<Vec<DiskCounters>> {
    let text = root.read(DISK_STATS).map_err(|why| format!("{DISK_STATS}: {why}"))?;
    let own = |line: model::evidence::DiskLine<'_>| DiskCounters {
        name: line.name.to_owned(),
        number: line.number,
        counters: line.counters,
    };
    Ok(disk_lines(&text).map(own).collect())
}

/// Returns whether a device is a whole disk or volume with a size, not a partition. An unbound loop device
/// has size 0.
pub fn is_whole(root: &Root, name: &str) -> bool {
    sectors(root, name).is_some_and(|n| n > 0) && stack::disk_of_partition(root, name).is_none()
}

/// Returns the kernel names of a disk's partitions, ordered by number.
pub fn partitions(root: &Root, disk: &str) -> Vec<String> {
    let mut names = in_use::partitions(root, disk).unwrap_or_default();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

/// Returns the disk sequence number (`diskseq`). The kernel raises it for each new disk, medium or file of a
/// loop device. `None` before Linux 5.15. A partition has the number of its disk.
pub fn sequence(root: &Root, name: &str) -> Option<String> {
    let own = root.word(&format!("/sys/class/block/{name}/diskseq"));
    own.or_else(|| root.word(&format!("/sys/class/block/{}/diskseq", stack::disk_of_partition(root, name)?)))
}

#[test]
fn kernel_names_and_volumes_are_found_and_paths_are_not() {
    use crate::fixture::put;
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (file, text) in [
        ("vda/dev", "254:0\n"),
        ("dm-0/dev", "253:0\n"),
        ("dm-0/dm/name", "vg-root\n"),
        ("cciss!c0d0/dev", "104:0\n"),
    ] {
        put(dir.path(), &format!("sys/class/block/{file}"), text);
    }
    let root = Root::at(dir.path().to_owned());
    let node = |typed: &str| node(&root, Path::new(typed)).map(|path| path.display().to_string());
    for (typed, expected) in [
        ("vda", Some("/dev/vda")),
        ("dm-0", Some("/dev/dm-0")),
        ("vg-root", Some("/dev/dm-0")),
        ("cciss!c0d0", Some("/dev/cciss/c0d0")),
        ("vdb", None),
        ("./vda", None),
        ("vda/", None),
        ("/vda", None),
        ("..", None),
        (".", None),
        ("", None),
    ] {
        assert_eq!(node(typed).as_deref(), expected, "{typed}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{link, put};

    /// A SATA disk with the partitions sda2 (below a mounted volume) and sda10, an NVMe disk, and an unbound loop device.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        let link = |target: &str, at: &str| link(dir.path(), target, at);
        let sata = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block";
        let nvme = "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0";
        let volumes = "sys/devices/virtual/block";
        for (place, name, number, size) in [
            (sata, "sda", "8:0", "2048"),
            (&*format!("{sata}/sda"), "sda2", "8:2", "1024"),
            (&*format!("{sata}/sda"), "sda10", "8:10", "512"),
            (nvme, "nvme0n1", "259:0", "4096"),
            (volumes, "dm-0", "253:0", "1024"),
            (volumes, "loop0", "7:0", "0"),
        ] {
            put(&format!("{place}/{name}/dev"), &format!("{number}\n"));
            put(&format!("{place}/{name}/size"), &format!("{size}\n"));
            let path = place.strip_prefix("sys").unwrap_or_default();
            link(&format!("../..{path}/{name}"), &format!("sys/class/block/{name}"));
            link(&format!("../..{path}/{name}"), &format!("sys/dev/block/{number}"));
        }
        put(&format!("{sata}/sda/sda2/partition"), "2");
        put(&format!("{sata}/sda/sda2/start"), "1024");
        put(&format!("{sata}/sda/sda10/partition"), "10");
        put(&format!("{sata}/sda/sda2/holders/dm-0"), "");
        put(&format!("{sata}/sda/device/model"), "SPINNER 9000  \n");
        put(&format!("{sata}/sda/device/vendor"), "ATA     \n");
        put(&format!("{sata}/sda/device/rev"), "SC61\n");
        put(&format!("{sata}/sda/device/wwid"), "naa.5000c500a1b2c3d4\n");
        put(&format!("{nvme}/firmware_rev"), "2B2QEXM7\n");
        put(&format!("{nvme}/nvme0n1/wwid"), "eui.0025385b71b0a1c2\n");
        put(&format!("{sata}/sda/ro"), "0\n");
        put(&format!("{sata}/sda/removable"), "maybe\n");
        for (file, text) in [
            ("scheduler", "[mq-deadline] kyber none\n"),
            ("rotational", "1\n"),
            ("fua", "1\n"),
            ("zoned", "none\n"),
            ("write_cache", "write back\n"),
            ("max_sectors_kb", "1280\n"),
            ("logical_block_size", "512\n"),
        ] {
            put(&format!("{sata}/sda/queue/{file}"), text);
        }
        put(&format!("{nvme}/transport"), "pcie\n");
        link("..", &format!("{nvme}/nvme0n1/device"));
        put(&format!("{volumes}/dm-0/dm/name"), "vg-root\n");
        put(&format!("{volumes}/dm-0/slaves/sda2"), "");
        put("proc/self/mountinfo", "1 0 253:0 / / rw - ext4 /dev/mapper/vg-root rw,relatime\n");
        put("proc/swaps", "Filename Type Size Used Priority\n");
        dir
    }

    fn seen() -> Devices {
        let dir = machine();
        list_devices(&Root::at(dir.path().to_owned())).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn partitions_follow_their_disk_in_order_and_devices_without_a_size_are_separate() {
        let seen = seen();
        let names: Vec<&str> = seen.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "nvme0n1", "sda", "sda2", "sda10"]);
        assert_eq!(seen.empty, ["loop0"]);
        let [volume, nvme, disk, part, _] = &seen.devices[..] else { panic!("{seen:?}") };
        assert_eq!((volume.label.as_deref(), &volume.below), (Some("vg-root"), &vec!["sda2".to_owned()]));
        assert_eq!((nvme.bus.as_deref(), disk.bus.as_deref()), (Some("NVMe over PCIe"), Some("SATA")));
        assert_eq!((disk.model.as_deref(), disk.bytes), (Some("SPINNER 9000"), 1 << 20));
        assert_eq!(disk.partitions, ["sda10", "sda2"]);
        assert_eq!((part.disk.as_deref(), part.start_bytes), (Some("sda"), Some(512 << 10)));
        assert_eq!(part.holders, ["dm-0"]);
    }

    #[test]
    fn a_drive_is_identified_with_its_firmware_and_a_partition_by_its_disk() {
        let seen = seen();
        let facts = |at: usize| {
            let d: &BlockDevice = &seen.devices[at];
            [&d.vendor, &d.firmware, &d.wwid].map(|fact| fact.as_deref().unwrap_or("-"))
        };
        assert_eq!(facts(1), ["-", "2B2QEXM7", "eui.0025385b71b0a1c2"]);
        assert_eq!(facts(2), ["ATA", "SC61", "naa.5000c500a1b2c3d4"]);
        assert_eq!(facts(3), facts(2));
        assert_eq!(facts(0), ["-", "-", "-"]);
        assert_eq!(
            (&seen.devices[2].queue.fua, &seen.devices[2].queue.zoned),
            (&Ok(true), &Ok("none".into()))
        );
    }

    #[test]
    fn queue_settings_are_listed_and_missing_ones_have_a_reason() {
        let seen = seen();
        let disk = &seen.devices[2];
        let queue = &disk.queue;
        assert_eq!(queue.scheduler, Ok("mq-deadline".into()));
        assert_eq!((&queue.rotational, &queue.write_cache), (&Ok(true), &Ok("write back".into())));
        assert_eq!((&queue.max_request_bytes, &queue.logical_block_bytes), (&Ok(1280 << 10), &Ok(512)));
        assert!(queue.requests.as_ref().is_err_and(|why| why.contains("nr_requests")));
        assert_eq!(disk.read_only, Ok(false));
        assert!(disk.removable.as_ref().is_err_and(|why| why.contains("maybe")));
        assert_eq!(seen.devices[3].queue.scheduler, queue.scheduler, "a partition has that of its disk");
    }

    #[test]
    fn users_of_a_device_are_found_above_it() {
        let seen = seen();
        let mounts = |at: usize| seen.devices[at].mounts.as_ref().map_or(0, Vec::len);
        assert_eq!((mounts(0), mounts(2)), (1, 0));
        for at in [0, 2, 3] {
            let used = &seen.devices[at].used_by;
            assert!(
                used.as_ref().is_ok_and(|u| u.as_ref().is_some_and(|u| u.contains("mounted on /"))),
                "{used:?}"
            );
        }
    }

    #[test]
    fn without_sys_there_is_a_reason() {
        let nowhere = list_devices(&Root::at("/nonexistent-prefix".into()));
        assert!(nowhere.is_err_and(|why| why.contains("/sys/class/block")));
    }
}

#[cfg(test)]
mod disk_stats_tests {
    use super::*;
    use crate::fixture::{link, put};

    #[test]
    fn partitions_and_devices_without_a_size_are_not_disks() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        for (path, name, size) in [("vda", "vda", "8"), ("vda/vda1", "vda1", "4"), ("loop0", "loop0", "0")] {
            put(&format!("sys/devices/block/{path}/size"), size);
            link(dir.path(), &format!("../../devices/block/{path}"), &format!("sys/class/block/{name}"));
        }
        put("sys/devices/block/vda/vda1/partition", "1");
        put("sys/devices/block/vda/diskseq", "9\n");
        put("proc/diskstats", "254 0 vda 1 0 8 1 0 0 0 0 0 1 1\n254 1 vda1 1 0 8 1 0 0 0 0 0 1 1\n");
        let root = Root::at(dir.path().to_owned());
        let whole = ["vda", "vda1", "loop0", "gone"].map(|name| is_whole(&root, name));
        assert_eq!(whole, [true, false, false, false]);
        assert_eq!(sequence(&root, "vda1").as_deref(), Some("9"));
        let seen = read_disk_stats(&root).unwrap_or_else(|e| panic!("{e}"));
        let names: Vec<(&str, &str)> = seen.iter().map(|d| (d.name.as_str(), d.number.as_str())).collect();
        assert_eq!(names, [("vda", "254:0"), ("vda1", "254:1")]);
        assert!(
            read_disk_stats(&Root::at("/nonexistent-prefix".into()))
                .is_err_and(|why| why.contains("/proc/diskstats"))
        );
    }
}
