//! The block stack: from a device number down to the leaves, by `/sys`.
//!
//! For: partitions, loop devices, device mapper, RAID, zram, and the hardware below. Not for: file systems.

use crate::resolve;
use crate::root::Root;
use model::machine::{Layer, LayerKind, Place};
use std::path::Path;

/// Deepest stack that is followed; real ones have five layers.
const DEEPEST: usize = 24;
/// Longest text of a queue file that is kept.
const QUEUE_TEXT: usize = 256;

/// Adds the device with this `major:minor`, and all below it, to a place. Returns its index; the one it has where it is
/// there already; `None` where `/sys` does not know it.
pub fn add(root: &Root, place: &mut Place, number: &str) -> Option<usize> {
    if let Some(known) = place.layers.iter().position(|l| l.number == number) {
        return Some(known);
    }
    let real = root.canonical(format!("/sys/dev/block/{number}"))?;
    let name = real.file_name()?.to_string_lossy().into_owned();
    if place.layers.len() >= DEEPEST {
        place.blind.get_or_insert_with(|| format!("the stack below {name} is too deep to follow"));
        return None;
    }
    let dir = format!("/sys/dev/block/{number}");
    let index = place.layers.len();
    let kind = kind(root, &dir, &name, &real);
    place.layers.push(Layer { number: number.into(), kind, ..describe(root, &dir, &name, kind) });
    let below = below(root, place, &dir, kind, &real, index);
    place.layers[index].below = below;
    Some(index)
}

fn describe(root: &Root, dir: &str, name: &str, kind: LayerKind) -> Layer {
    let whole = if kind == LayerKind::Partition { format!("{dir}/..") } else { dir.to_owned() };
    let first = |files: &[&str]| files.iter().find_map(|f| root.word(format!("{whole}/{f}")));
    let driver =
        ["device/driver", "device/device/driver"].iter().find_map(|f| root.link_name(format!("{whole}/{f}")));
    let queue = root.list(format!("{whole}/queue")).into_iter().filter_map(|file| {
        let text = root.word(format!("{whole}/queue/{file}")).filter(|t| t.len() <= QUEUE_TEXT)?;
        Some((file, text))
    });
    Layer {
        name: name.to_owned(),
        driver,
        model: first(&["device/model"]),
        serial: first(&["serial", "device/serial", "device/wwid", "wwid"]),
        bytes: root
            .word(format!("{dir}/size"))
            .and_then(|s| s.parse::<u64>().ok())
            .unwrap_or(0)
            .saturating_mul(512),
        backing_file: root.word(format!("{dir}/loop/backing_file")),
        backing_direct: root.word(format!("{dir}/loop/dio")).map(|d| d == "1"),
        stat_file: format!("{dir}/stat"),
        queue: queue.collect(),
        ..Layer::default()
    }
}

fn kind(root: &Root, dir: &str, name: &str, real: &Path) -> LayerKind {
    let has = |file: &str| root.has(format!("{dir}/{file}"));
    if has("partition") {
        LayerKind::Partition
    } else if has("loop") || name.starts_with("loop") {
        LayerKind::Loop
    } else if has("dm") {
        LayerKind::DeviceMapper
    } else if has("md") {
        LayerKind::Raid
    } else if name.starts_with("zram") {
        LayerKind::Zram
    } else if name.strip_prefix("ram").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())) {
        LayerKind::Ram
    } else if real.components().any(|c| c.as_os_str() == "virtual")
        && root.list(format!("{dir}/slaves")).is_empty()
    {
        // NVMe namespaces under native multipath live there too, without a driver of their own.
        if name.starts_with("nvme") { LayerKind::Disk } else { LayerKind::Virtual }
    } else {
        LayerKind::Disk
    }
}

/// Adds what is below and returns its indices.
fn below(
    root: &Root,
    place: &mut Place,
    dir: &str,
    kind: LayerKind,
    real: &Path,
    index: usize,
) -> Vec<usize> {
    let name = place.layers[index].name.clone();
    match kind {
        LayerKind::Partition => {
            let parent = real.parent().and_then(|p| std::fs::read_to_string(p.join("dev")).ok());
            parent.and_then(|p| add(root, place, p.trim())).into_iter().collect()
        }
        LayerKind::Zram | LayerKind::Ram => {
            let what = if kind == LayerKind::Zram { "compressed memory" } else { "a RAM disk" };
            place.ram.get_or_insert_with(|| format!("{name}, {what}"));
            Vec::new()
        }
        LayerKind::Loop => {
            let Some(file) = place.layers[index].backing_file.clone() else { return Vec::new() };
            below_loop(root, place, &name, &file)
        }
        _ => {
            let slaves = root.list(format!("{dir}/slaves"));
            let numbers = slaves.iter().filter_map(|s| root.word(format!("{dir}/slaves/{s}/dev")));
            numbers.collect::<Vec<_>>().iter().filter_map(|n| add(root, place, n)).collect()
        }
    }
}

/// A loop device stands on a file, which stands on a place of its own.
fn below_loop(root: &Root, place: &mut Place, name: &str, file: &str) -> Vec<usize> {
    let path = Path::new(file);
    let Ok(found) = resolve::mount_of(root, path) else {
        place.blind.get_or_insert_with(|| format!("the file below {name} ({file}) cannot be looked at"));
        return Vec::new();
    };
    let mut under = Place::default();
    resolve::add_devices_of(root, &mut under, path, &found);
    if let Some(ram) = under.ram {
        place.ram.get_or_insert_with(|| format!("{name} on {ram}"));
    }
    if let Some(blind) = under.blind {
        place.blind.get_or_insert(blind);
    }
    let tops: Vec<String> =
        under.tops.iter().filter_map(|t| under.layers.get(*t)).map(|l| l.number.clone()).collect();
    tops.iter().filter_map(|n| add(root, place, n)).collect()
}
