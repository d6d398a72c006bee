//! The block devices of a machine as text.
//!
//! For: a paragraph per disk, a line per partition. Not for: JSON, which is the data itself.

use crate::format::Style;
use crate::page::Page;
use model::Known;
use model::devices::{BlockDevice, Devices, Mounted, Queue};
use model::machine::LayerKind;
use model::units::{show_block, show_bytes};
use std::io::{self, Write};

/// Columns before what is said of a device, and before further lines of that.
const INDENT: &str = "    ";
const FURTHER: &str = "      ";

pub(super) fn write(devices: &Devices, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    devices.devices.iter().for_each(|device| show(&mut out, device));
    if devices.devices.is_empty() {
        out.line("The kernel shows no block device that has a size.");
    }
    if !devices.empty.is_empty() {
        out.prose("", FURTHER, &format!("Without a size: {}", devices.empty.join(", ")));
    }
    out.write(to)
}

fn show(out: &mut Page, device: &BlockDevice) {
    let part = device.kind == LayerKind::Partition;
    let name = out.paint(&device.name, "1");
    let first = if part { "  " } else { "" };
    out.prose(&format!("{first}{name}  "), FURTHER, &heading(device));
    let mut line = |what: &str, said: Option<String>| {
        if let Some(said) = said {
            out.prose(&format!("{INDENT}{what:8}"), FURTHER, &said);
        }
    };
    // The queue of a partition is that of its disk.
    if !part {
        line("blocks", Some(blocks(&device.queue)));
        line("queue", Some(queue(&device.queue)));
    }
    line("file", device.backing_file.as_ref().map(|file| backing(file, device.backing_direct)));
    line("below", (!part && !device.below.is_empty()).then(|| device.below.join(", ")));
    line("holders", (!device.holders.is_empty()).then(|| device.holders.join(", ")));
    line("mounted", mounts(&device.mounts));
    line("used", used(device));
}

/// Size, what it is, and what it calls itself.
pub(in crate::formats) fn heading(device: &BlockDevice) -> String {
    let kind = match device.kind {
        LayerKind::Disk => "disk",
        LayerKind::Partition => "partition",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "compressed memory",
        LayerKind::Ram => "memory",
        LayerKind::DeviceMapper => "volume",
        LayerKind::Raid => "RAID",
        LayerKind::Virtual => "virtual device",
    };
    let mut words = vec![show_bytes(device.bytes), kind.to_owned()];
    words.extend(device.label.clone());
    words.extend(device.start_bytes.map(|at| format!("from {}", show_bytes(at))));
    let whole = device.kind != LayerKind::Partition;
    let own = |word: &Option<String>| word.clone().filter(|_| whole);
    words.extend(own(&device.model));
    words.extend(own(&device.serial).map(|serial| format!("serial {serial}")));
    words.extend(own(&device.bus).map(|bus| match &device.link {
        Some(link) => format!("{bus} ({link})"),
        None => bus,
    }));
    words.extend(own(&device.driver).map(|driver| format!("driver {driver}")));
    words.extend(match &device.queue.rotational {
        Ok(rotates) if device.kind == LayerKind::Disk => {
            Some(if *rotates { "rotating" } else { "not rotating" }.to_owned())
        }
        _ => None,
    });
    words.extend((device.read_only == Ok(true)).then(|| "read-only".into()));
    words.extend((whole && device.removable == Ok(true)).then(|| "removable".into()));
    words.join(", ")
}

/// `512 of 4K, requests up to 1.25 MiB of 2 GiB, read ahead 128 KiB, discards`.
fn blocks(queue: &Queue) -> String {
    let block = |bytes: &Known<u64>| bytes.as_ref().map_or_else(|_| "unknown".into(), |b| show_block(*b));
    let bytes = |bytes: &Known<u64>| bytes.as_ref().map_or_else(|_| "unknown".into(), |b| show_bytes(*b));
    let discards = match &queue.max_discard_bytes {
        Ok(0) => "no discards",
        Ok(_) => "discards",
        Err(_) => "discards unknown",
    };
    format!(
        "{} logical, {} physical; requests to {} (hardware {}); read-ahead {}; {discards}",
        block(&queue.logical_block_bytes),
        block(&queue.physical_block_bytes),
        bytes(&queue.max_request_bytes),
        bytes(&queue.max_hardware_request_bytes),
        bytes(&queue.read_ahead_bytes)
    )
}

/// `4 hardware queues of 256, scheduler none, write back`.
pub(in crate::formats) fn queue(queue: &Queue) -> String {
    let number = |n: &Known<u64>| n.as_ref().map_or_else(|_| "unknown".into(), u64::to_string);
    let queues = match &queue.hardware_queues {
        Ok(1) => "1 hardware queue".to_owned(),
        Ok(n) => format!("{n} hardware queues"),
        Err(_) => "hardware queues unknown".into(),
    };
    let word = |word: &Known<String>| word.clone().unwrap_or_else(|_| "unknown".into());
    let mut said = format!(
        "{queues} of {}, scheduler {}, cache {}",
        number(&queue.requests),
        word(&queue.scheduler),
        word(&queue.write_cache)
    );
    if let Ok(depth) = queue.device_depth {
        said += &format!(", device takes {depth}");
    }
    if queue.counted == Ok(false) {
        said += ", not counted (iostats is 0)";
    }
    said
}

fn backing(file: &str, direct: Option<bool>) -> String {
    match direct {
        Some(true) => format!("{file}, past the page cache"),
        Some(false) => format!("{file}, through the page cache"),
        None => file.to_owned(),
    }
}

pub(in crate::formats) fn mounts(mounts: &Known<Vec<Mounted>>) -> Option<String> {
    match mounts {
        Ok(all) if all.is_empty() => None,
        Ok(all) => {
            let words: Vec<String> =
                all.iter().map(|m| format!("{} as {} ({})", m.point, m.kind, m.options)).collect();
            Some(words.join("; "))
        }
        Err(why) => Some(format!("not known: {why}")),
    }
}

/// Who uses it, unless its own mount says so already.
pub(in crate::formats) fn used(device: &BlockDevice) -> Option<String> {
    let mounted = device.mounts.as_ref().is_ok_and(|m| !m.is_empty());
    match &device.used_by {
        Ok(Some(_)) if mounted => None,
        Ok(Some(user)) => Some(user.clone()),
        Ok(None) => Some("by nobody".into()),
        Err(why) => Some(format!("by nobody that could be seen: {why}")),
    }
}

#[cfg(test)]
fn device() -> BlockDevice {
    let unknown = || Err("is not there".to_owned());
    BlockDevice {
        name: "sda".into(),
        number: "8:0".into(),
        kind: LayerKind::Disk,
        label: None,
        bytes: 1 << 40,
        model: Some("SPINNER 9000".into()),
        serial: Some("S1".into()),
        bus: Some("SATA".into()),
        link: Some("6.0 Gbps".into()),
        driver: Some("sd".into()),
        disk: None,
        start_bytes: None,
        read_only: Ok(false),
        removable: Err("is not there".into()),
        queue: Queue {
            logical_block_bytes: Ok(512),
            physical_block_bytes: Ok(4096),
            max_request_bytes: Ok(1280 << 10),
            max_hardware_request_bytes: unknown(),
            requests: Ok(256),
            hardware_queues: Ok(1),
            device_depth: Ok(32),
            scheduler: Ok("mq-deadline".into()),
            write_cache: Ok("write back".into()),
            rotational: Ok(true),
            read_ahead_bytes: Ok(128 << 10),
            max_discard_bytes: Ok(0),
            counted: Ok(false),
        },
        backing_file: None,
        backing_direct: None,
        below: Vec::new(),
        partitions: vec!["sda1".into()],
        holders: Vec::new(),
        mounts: Ok(Vec::new()),
        used_by: Ok(None),
    }
}

#[cfg(test)]
fn text(devices: Vec<BlockDevice>) -> String {
    let devices = Devices { format: model::devices::FORMAT, devices, empty: vec!["loop0".into()] };
    let mut out = Vec::new();
    write(&devices, Style::default(), &mut out).unwrap_or_default();
    String::from_utf8(out).unwrap_or_default()
}

#[test]
fn a_disk_is_told_with_what_is_known_and_what_is_not() {
    let told = text(vec![device()]);
    for words in [
        "sda  1 TiB, disk, SPINNER 9000, serial S1, SATA (6.0 Gbps), driver sd, rotating",
        "512 logical, 4K physical; requests to 1.25 MiB (hardware unknown); read-ahead 128 KiB; no discards",
        "1 hardware queue of 256, scheduler mq-deadline, cache write back, device takes 32, not counted",
        "by nobody",
        "Without a size: loop0",
    ] {
        let flat = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words.split_whitespace().collect::<Vec<_>>().join(" ")), "{words}: {told}");
    }
    assert!(text(Vec::new()).starts_with("The kernel shows no block device"));
}

#[test]
fn a_partition_has_no_queue_of_its_own_and_an_unseen_user_is_not_nobody() {
    let part = BlockDevice {
        name: "sda1".into(),
        kind: LayerKind::Partition,
        disk: Some("sda".into()),
        start_bytes: Some(1 << 20),
        used_by: Err("/proc/1/fd: permission denied".into()),
        ..device()
    };
    let told = text(vec![part]);
    assert!(told.starts_with("  sda1  1 TiB, partition, from 1 MiB\n"), "{told}");
    assert!(!told.contains("scheduler") && !told.contains("by nobody\n"), "{told}");
    assert!(told.contains("permission denied"), "{told}");
}
