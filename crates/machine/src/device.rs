//! What `/sys` says about a block device beside its queue: place, state, interrupts, and the link it hangs on.
//!
//! For: the texts of `Layer::device`. Not for: the queue and the stack (`stack`), nor for judging links.

use crate::root::Root;
use std::collections::{BTreeMap, BTreeSet};

/// Files of the device or partition itself.
const OWN: [&str; 4] = ["start", "alignment_offset", "ro", "loop/offset"];
/// Files of the whole device.
const OF_DISK: [&str; 13] = [
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
    // Shown as one name, whatever the place.
    "queue/dax",
    "device/power/pm_qos_latency_tolerance_us",
];
/// Files of the nearest directory above that has them: the PCI function, mostly.
const ABOVE: [&str; 6] = [
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];
/// Files of a SATA link, below the port in the directories above.
const SATA: [&str; 3] = ["sata_spd", "sata_spd_limit", "hw_sata_spd_limit"];

/// Looks at a device or partition `name` of the whole device `disk`. What is not there is left out.
pub(crate) fn read_device_attributes(root: &Root, name: &str, disk: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut keep = |key: &str, text: Option<String>| {
        if let Some(text) = text {
            out.insert(key.to_owned(), text);
        }
    };
    for file in OWN {
        keep(file, root.word(&format!("/sys/class/block/{name}/{file}")));
    }
    for file in OF_DISK {
        let key = match file {
            "queue/dax" => "dax",
            "device/power/pm_qos_latency_tolerance_us" => "pm_qos_latency_tolerance_us",
            other => other,
        };
        keep(key, root.word(&format!("/sys/class/block/{disk}/{file}")));
    }
    keep("mq", root.list(&format!("/sys/class/block/{disk}/mq")).ok().map(|queues| queues.len().to_string()));
    let above = above(root, disk);
    for file in ABOVE {
        let key = if file == "numa_node" { "device/numa_node" } else { file };
        keep(key, above.iter().find_map(|dir| root.word(&format!("{dir}/{file}"))));
    }
    if let Some(port) = above.iter().find_map(|dir| sata_link(root, dir)) {
        for file in SATA {
            keep(file, root.word(&format!("{port}/{file}")));
        }
    }
    keep("irq_cpus", above.iter().find_map(|dir| interrupt_cpus(root, dir)));
    keep("hwmon", above.iter().find_map(|dir| thermometer(root, dir)));
    out
}

/// The directories above a disk in `/sys/devices`, the nearest first.
fn above(root: &Root, disk: &str) -> Vec<String> {
    let Some(mut place) = root.canonical(&format!("/sys/class/block/{disk}")) else { return Vec::new() };
    // With native multipath an NVMe disk is filed under a subsystem, which names its controllers. With several of them
    // there is no one link.
    if place.contains("/nvme-subsystem/") {
        let subsystem = place.rsplit_once('/').map_or("", |(dir, _)| dir);
        let names = root.matches(&format!("{subsystem}/nvme*")).unwrap_or_default();
        // Its disks are beside them, and these have a size.
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

/// The directory of the SATA link of a port, `ata1/link1/ata_link/link1`.
fn sata_link(root: &Root, port: &str) -> Option<String> {
    let links = root.matches(&format!("{port}/link*")).ok()?;
    let link = links.iter().find_map(|path| path.rsplit('/').next())?;
    let dir = format!("{port}/{link}/ata_link/{link}");
    root.has(&dir).then_some(dir)
}

/// CPUs that serve the interrupts of I/O of this PCI function, `0,1,5`; `None` where it has none.
fn interrupt_cpus(root: &Root, dir: &str) -> Option<String> {
    let of_io: Vec<String> = root.list(&format!("{dir}/msi_irqs")).ok()?;
    let named = |irq: &String| root.word(&format!("/sys/kernel/irq/{irq}/actions")).unwrap_or_default();
    let mut serving: Vec<&String> = of_io.iter().filter(|irq| !of_control(&named(irq))).collect();
    // A device with a single vector serves everything with it.
    if serving.is_empty() {
        serving = of_io.iter().collect();
    }
    let mut cpus = BTreeSet::new();
    for irq in serving {
        let files = ["effective_affinity_list", "smp_affinity_list"];
        let list = files.iter().find_map(|f| root.word(&format!("/proc/irq/{irq}/{f}")));
        cpus.extend(list.iter().flat_map(|l| cpus_of(l)));
    }
    let words: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// Whether an interrupt of this name serves no I/O: changes of a virtio device, the first queue of NVMe.
fn of_control(name: &str) -> bool {
    name.ends_with("-config") || (name.starts_with("nvme") && name.ends_with("q0"))
}

/// CPUs of a list such as `0-3,8`; parts that are none are left out.
fn cpus_of(list: &str) -> Vec<u32> {
    /// No Linux has more.
    const MOST: u32 = 8192;
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(MOST))
    };
    list.split(',').filter_map(part).flatten().collect()
}

/// The hardware monitor of a drive, `/sys/class/hwmon/hwmon3`.
fn thermometer(root: &Root, dir: &str) -> Option<String> {
    // SCSI has a directory of monitors, NVMe the monitor itself.
    let monitors = [format!("{dir}/hwmon/hwmon*"), format!("{dir}/hwmon*")];
    let found = monitors.iter().find_map(|p| {
        root.matches(p)
            .ok()?
            .into_iter()
            .find(|path| matches!(root.word(&format!("{path}/name")).as_deref(), Some("nvme" | "drivetemp")))
    })?;
    found.rsplit('/').next().map(|name| format!("/sys/class/hwmon/{name}"))
}

#[cfg(test)]
mod tests {
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
        // A second way to it: which link counts is not known.
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
    fn an_array_tells_its_state_and_has_no_link() -> std::io::Result<()> {
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
        assert_eq!(cpus_of("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(cpus_of("x,3-,-1,5-4,9"), [9]);
        assert_eq!(cpus_of("8190-4294967295").len(), 3);
    }

    #[test]
    fn the_devices_of_this_machine_are_looked_at() {
        let root = Root::real();
        for name in root.list("/sys/class/block").unwrap_or_default() {
            println!("{name} {:?}", read_device_attributes(&root, &name, &name));
        }
    }
}
