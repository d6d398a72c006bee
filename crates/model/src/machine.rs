//! What the machine is, as far as a measurement depends on it: host, file systems, and the block stack below each target.
//!
//! For: the result of looking, as data. Not for: looking (the crate `machine` does) nor judging.

use crate::Known;
use crate::units::show_bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host and the places that were measured on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Kernel name, release and version, as `uname -srv` prints them.
    pub kernel: String,
    /// CPU model.
    pub cpu: Known<String>,
    /// CPUs this process may run on.
    pub cpus: u32,
    /// `MemTotal` in bytes.
    pub memory_bytes: Known<u64>,
    /// The hypervisor's name or hint, `None` on bare metal as far as can be seen.
    pub virtual_by: Known<Option<String>>,
    /// The kernel's current clock source.
    pub clocksource: Known<String>,
    /// Effective user id.
    pub user_id: u32,
    /// Files that count the I/O of this process alone, or why there are none.
    pub cgroup: Known<Cgroup>,
    /// Kernel text that does not change while one measures, word for word, under the names of
    /// [`crate::kernel_files`]: limits of the cgroups above us, how CPUs save power, firmware names, libraries. A name with a
    /// `*` holds one line per file that matched, `path: text`.
    #[serde(default)]
    pub facts: BTreeMap<String, Known<String>>,
    /// One place per target of the plan, in the same order.
    pub places: Vec<Place>,
}

/// A cgroup of our own, below the one fathom was started in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// 1 (`blkio`) or 2 (`io`).
    pub version: u8,
    /// Its directory.
    pub dir: String,
    /// Files in it that count our I/O per device.
    pub files: Vec<String>,
}

/// Where a target lives: file system and block stack, from the path down to the leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The path that was resolved.
    pub path: String,
    /// The mounted file system; `None` for a block device.
    pub file_system: Option<FileSystem>,
    /// Block devices: the tops first, each before what is below it. Empty where no block device backs the target.
    pub layers: Vec<Layer>,
    /// Indices of the layers that the file system (or the caller, for a device) talks to.
    pub tops: Vec<usize>,
    /// Whether and how direct I/O works, by statx.
    pub direct: Option<DirectIo>,
    /// Why all of this is memory: `tmpfs`, `zram0`, `loop0 on tmpfs`.
    pub ram: Option<String>,
    /// What could not be resolved below, in a sentence.
    pub blind: Option<String>,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSystem {
    /// Type: `ext4`, `xfs`, `fuse.sshfs`, ...
    pub kind: String,
    /// What is mounted: `/dev/vda1`, `tmpfs`, `server:/export`.
    pub source: String,
    /// Where.
    pub mount_point: String,
    /// Mount options and super-block options, as in mountinfo.
    pub options: String,
    /// Attributes that change how this file's data are stored: `journal_data`, `compressed`, `encrypted`, `nocow`.
    pub attributes: Vec<String>,
    /// The directory of it that is mounted: `/` for all of it; empty in records of a time when nobody looked.
    #[serde(default)]
    pub root: String,
}

/// A block device of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layer {
    /// Kernel name: `vda`, `nvme0n1p2`, `dm-0`, `loop3`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// What it is.
    pub kind: LayerKind,
    /// Driver of the hardware or virtual hardware: `virtio_blk`, `nvme`, `sd`.
    pub driver: Option<String>,
    /// Model as the device names itself.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Capacity.
    pub bytes: u64,
    /// For a loop device: the backing file.
    pub backing_file: Option<String>,
    /// For a loop device: whether it reads its file past the page cache.
    pub backing_direct: Option<bool>,
    /// The counters of this layer: path of its `stat` file.
    pub stat_file: String,
    /// Every readable file of its `queue/` directory, word for word.
    pub queue: BTreeMap<String, String>,
    /// Other files of the device without the white space around them, by path below its directory in `/sys`, a partition's
    /// own or its disk's: `start`, `loop/offset`, `alignment_offset`, `ro`, `removable`, `device/queue_depth`, `device/state`, and of `md/`,
    /// `bcache/` and `dm/` what tells their state. What is not there is left out. Under keys of ours: `mq`, the number of
    /// hardware queues; `irq_cpus`, the CPUs that serve its interrupts (`0,1,5`); `dax` of its queue; `hwmon`, the directory
    /// of its thermometer; `loop_backing`, which file or device a loop device is on; `pm_qos_latency_tolerance_us` of its controller; from the nearest directory above that has them
    /// `device/numa_node`, `local_cpulist` and the link, `current_link_speed`, `current_link_width`, `max_link_speed`,
    /// `max_link_width`; and of a SATA port `sata_spd`, `sata_spd_limit` (what is allowed) and `hw_sata_spd_limit` (what it
    /// could do).
    #[serde(default)]
    pub device: BTreeMap<String, String>,
    /// Why this layer is memory, where nothing is below it: `zram0`, `loop0 on tmpfs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram: Option<String>,
    /// Indices of the layers below.
    pub below: Vec<usize>,
}

/// What a block device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A whole device with nothing of the kernel's below it.
    #[default]
    Disk,
    /// A part of a disk.
    Partition,
    /// A file as a device.
    Loop,
    /// Compressed memory.
    Zram,
    /// Plain memory (`brd`).
    Ram,
    /// Device mapper.
    DeviceMapper,
    /// Software RAID.
    Raid,
    /// Another virtual device.
    Virtual,
}

/// What statx says about direct I/O to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectIo {
    /// Alignment of buffers; 0 with `offset_align` 0: direct I/O is not supported.
    pub memory_align: u32,
    /// Alignment of offsets and lengths.
    pub offset_align: u32,
}

impl Machine {
    /// A fact's text.
    ///
    /// # Errors
    /// Why it could not be read, or that nobody looked.
    pub fn fact(&self, path: &str) -> Known<&str> {
        match self.facts.get(path) {
            Some(Ok(text)) => Ok(text.trim()),
            Some(Err(why)) => Err(format!("{path}: {why}")),
            None => Err(format!("{path} was not read")),
        }
    }
}

/// File systems that are the page cache and nothing else.
const ALL_CACHE: &[&str] = &["tmpfs", "ramfs"];

impl Place {
    /// Why direct I/O on it goes through the page cache all the same, or is refused, by the file system's own word; `None` where
    /// it works, and where nothing is said.
    pub fn without_direct(&self) -> Option<String> {
        if let Some(fs) = &self.file_system {
            if ALL_CACHE.contains(&fs.kind.as_str()) {
                return Some(format!("{} is nothing but page cache", fs.kind));
            }
            let has = |name: &str| fs.attributes.iter().any(|a| a == name);
            if has("journal_data") || fs.options.split([',', ' ']).any(|o| o == "data=journal") {
                return Some("its data go through the journal".into());
            }
            if has("compressed") && fs.kind == "btrfs" {
                return Some("btrfs compresses it".into());
            }
        }
        let DirectIo { memory_align, offset_align } = self.direct?;
        (memory_align == 0 && offset_align == 0).then(|| "statx says so".into())
    }

    /// The file system's type, or `block device`.
    pub fn kind(&self) -> &str {
        self.file_system.as_ref().map_or("block device", |f| f.kind.as_str())
    }

    /// Layers with nothing below them.
    pub fn leaves(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|l| l.below.is_empty())
    }

    /// The chain in one line: `/data ext4 (rw,relatime) on vda1 on vda (virtio_blk)`.
    pub fn chain(&self) -> String {
        let mut out = self.path.clone();
        if let Some(fs) = &self.file_system {
            out += &format!(" ({} at {}, {})", fs.kind, fs.mount_point, fs.options);
        }
        for layer in &self.layers {
            out += " > ";
            out += &layer.name;
            let facts: Vec<&str> =
                [layer.driver.as_deref(), layer.model.as_deref()].into_iter().flatten().collect();
            if let Some(file) = &layer.backing_file {
                let how = if layer.backing_direct == Some(true) { "direct" } else { "buffered" };
                out += &format!(" ({how} on {file})");
            } else if !facts.is_empty() {
                out += &format!(" ({})", facts.join(", "));
            }
        }
        if let Some(ram) = &self.ram {
            out += &format!(" > memory ({ram})");
        }
        out
    }
}

impl Place {
    /// The chain without mount options and drivers: `/data (ext4) > nvme0n1p2 > nvme0n1 (SAMSUNG MZQL21T9HCJR-00A07)`.
    pub fn short_chain(&self) -> String {
        let mut out = self.path.clone();
        if let Some(fs) = &self.file_system {
            out += &format!(" ({})", fs.kind);
        }
        for layer in &self.layers {
            out += &format!(" > {}", layer.name);
            out += &layer.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
        }
        if self.ram.is_some() {
            out += " > memory";
        }
        out
    }
}

impl Layer {
    /// A number out of the `queue/` directory.
    ///
    /// # Errors
    /// That there is no such file, or no number in it.
    pub fn queue_number(&self, file: &str) -> Known<u64> {
        number(&self.name, "queue/", &self.queue, file)
    }

    /// A number out of another file of the device.
    ///
    /// # Errors
    /// That there is no such file, or no number in it.
    pub fn device_number(&self, file: &str) -> Known<u64> {
        number(&self.name, "", &self.device, file)
    }

    /// The switch of this disk's counters, which may be turned while a run lasts. `None` for a partition, which has that of its disk.
    pub fn iostats_file(&self) -> Option<String> {
        let dir = self.stat_file.strip_suffix("/stat").filter(|_| self.kind != LayerKind::Partition)?;
        Some(format!("{dir}/queue/iostats"))
    }

    /// Why this layer's counters say nothing, where that is so.
    pub fn blind(&self) -> Option<String> {
        // zram counts by itself and ignores the switch.
        let off = self.queue.get("iostats").is_some_and(|v| v.trim() == "0") && self.kind != LayerKind::Zram;
        off.then(|| format!("{}/queue/iostats is 0, so the kernel does not count its I/O", self.name))
    }
}

fn number(layer: &str, dir: &str, files: &BTreeMap<String, String>, file: &str) -> Known<u64> {
    let text = files.get(file).ok_or_else(|| format!("{layer}/{dir}{file} is not there"))?;
    text.trim().parse().map_err(|_| format!("{layer}/{dir}{file} is no number: '{}'", text.trim()))
}

/// Version of this form.
pub const FORMAT: u32 = 1;

/// Every block device that the kernel shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// Version of this JSON: [`FORMAT`].
    pub format: u32,
    /// Each disk, its partitions behind it.
    pub devices: Vec<BlockDevice>,
    /// Names of devices without a size: loop devices that are not bound, drives without a medium.
    pub empty: Vec<String>,
}

/// What the kernel shows of a disk, a partition or anything else that takes requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// Kernel name: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// What it is.
    pub kind: LayerKind,
    /// The name that its volume was given, `vg-root`; `None` for what is no volume.
    pub label: Option<String>,
    /// Capacity.
    pub bytes: u64,
    /// Model as the device names itself.
    pub model: Option<String>,
    /// Vendor as a SCSI device names itself; SATA disks say `ATA`.
    pub vendor: Option<String>,
    /// Revision of its firmware.
    pub firmware: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// World wide name: `naa.5000c500a1b2c3d4`, `eui.0025385b71b0a1c2`.
    pub wwid: Option<String>,
    /// What it hangs on: `NVMe over PCIe`, `SATA`, `USB`, `virtio`; `None` for what hangs on nothing, and where nothing tells.
    pub bus: Option<String>,
    /// Speed of that link: `8.0 GT/s PCIe x4`, `6.0 Gbps`.
    pub link: Option<String>,
    /// Its driver: `nvme`, `sd`, `virtio_blk`.
    pub driver: Option<String>,
    /// The disk of a partition; `None` for all others.
    pub disk: Option<String>,
    /// First byte of a partition on its disk; `None` for all others, and where nothing tells.
    pub start_bytes: Option<u64>,
    /// Whether writes are refused.
    pub read_only: Known<bool>,
    /// Whether its medium can be taken out.
    pub removable: Known<bool>,
    /// Its queue; a partition's is that of its disk.
    pub queue: Queue,
    /// For a loop device: its file, and whether that is read past the page cache.
    pub backing_file: Option<String>,
    /// See there.
    pub backing_direct: Option<bool>,
    /// Devices that it is on.
    pub below: Vec<String>,
    /// Parts of it that are devices of their own.
    pub partitions: Vec<String>,
    /// Devices that are built on it.
    pub holders: Vec<String>,
    /// Where it is mounted in this mount namespace.
    pub mounts: Known<Vec<Mounted>>,
    /// Who uses it, a part of it, or what is built on it, in words; `None` for nobody. The reason where it cannot be told.
    pub used_by: Known<Option<String>>,
}

/// How a device takes requests. What is not there is kept as the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Smallest request in bytes.
    pub logical_block_bytes: Known<u64>,
    /// What the medium writes at once.
    pub physical_block_bytes: Known<u64>,
    /// Largest request that the kernel sends.
    pub max_request_bytes: Known<u64>,
    /// Largest that the device takes.
    pub max_hardware_request_bytes: Known<u64>,
    /// Requests that one hardware queue of it holds (`nr_requests`).
    pub requests: Known<u64>,
    /// How many of them the driver drives at once.
    pub hardware_queues: Known<u64>,
    /// Requests that the device takes at once; most do not tell.
    pub device_depth: Known<u64>,
    /// The scheduler that is chosen.
    pub scheduler: Known<String>,
    /// `write back`, where a flush is needed to make writes stable, or `write through`.
    pub write_cache: Known<String>,
    /// Whether single writes can bypass the write cache (FUA).
    pub fua: Known<bool>,
    /// Whether it is a rotating disk, as it says itself.
    pub rotational: Known<bool>,
    /// Bytes that are read ahead.
    pub read_ahead_bytes: Known<u64>,
    /// Largest discard; 0 where it takes none.
    pub max_discard_bytes: Known<u64>,
    /// Smallest discard.
    pub discard_granularity_bytes: Known<u64>,
    /// Smallest request that is efficient, as the device says itself; 0 if it says nothing.
    pub optimal_request_bytes: Known<u64>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Known<String>,
    /// Whether the kernel counts its requests.
    pub counted: Known<bool>,
}

/// A mount of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mounted {
    /// Where.
    pub point: String,
    /// Type of file system.
    pub kind: String,
    /// Options of mount and super block.
    pub options: String,
}

/// What a file or device is. Names do not count: hard links, symbolic links, bind mounts and device nodes are many for one
/// thing, and one name may stand for another thing a moment later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// Anything that is stored in a file system: a file, a directory, a FIFO.
    File {
        /// `major:minor` of its file system, as `stat` shows it.
        device: String,
        /// Its number there.
        inode: u64,
    },
    /// A block device, through whichever node.
    Device {
        /// `major:minor`.
        number: String,
        /// What tells this device from another one that has had its number: serial number, sequence number of its disk, the
        /// file behind a loop device. Each in words, as it is shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        marks: Vec<String>,
    },
}

impl Identity {
    /// Whether both are the same file or the same device at this moment.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device { number: a, .. }, Self::Device { number: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// `inode 42 of 8:1`, `device 8:1`.
    pub fn describe(&self) -> String {
        match self {
            Self::Device { number, .. } => format!("device {number}"),
            Self::File { device, inode } => format!("inode {inode} of {device}"),
        }
    }

    /// How this differs from what was there before, in words; `None` where it is the same thing still.
    pub fn change_from(&self, before: &Self) -> Option<String> {
        if self == before {
            return None;
        }
        let of = |me: &Self, other: &Self| match (me, other) {
            (Self::Device { number, marks }, Self::Device { number: their, marks: theirs }) => {
                let own = marks.iter().filter(|m| !theirs.contains(m)).cloned();
                let all: Vec<String> =
                    (number != their).then(|| format!("device {number}")).into_iter().chain(own).collect();
                if all.is_empty() { format!("device {number}") } else { all.join(", ") }
            }
            (me, _) => me.describe(),
        };
        Some(format!("it was {} and is {}", of(before, self), of(self, before)))
    }
}

/// Directions that capacities are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the device.
    Read,
    /// To it.
    Write,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// `reads`, `writes`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }
}

/// What a device did of one kind of request, as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// Which device it was.
    pub device: KnownBy,
    /// Reads or writes.
    pub direction: Direction,
    /// Whether they were one behind the other; random otherwise.
    pub sequential: bool,
    /// Mean size of its requests in bytes.
    pub request_bytes: u64,
    /// Requests that it completed per second.
    pub requests_per_s: f64,
    /// Operations that the measurement kept in flight.
    pub in_flight: u64,
    /// Whether a cgroup's limit held it back, which is then the limit of that cgroup and not of the device.
    #[serde(default)]
    pub throttled: bool,
}

/// What tells a device from others, over sessions and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownBy {
    /// Kernel name that it had.
    pub name: String,
    /// Serial number of its hardware, or what the kernel gives a volume in its place (`dm/uuid`).
    pub serial: Option<String>,
    /// Of a loop device: what is behind it, as device and inode with the first byte that is used.
    pub backing: Option<String>,
    /// Its model, else its driver.
    pub model: Option<String>,
    /// Capacity.
    pub bytes: u64,
}

/// By what a device was found to be one that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SameBy {
    /// Serial number and size.
    Serial,
    /// Device and inode of the file behind a loop device.
    BackingFile,
    /// Model and size alone: another device of the kind would be taken for it.
    ModelAndSize,
}

impl SameBy {
    /// As it stands behind "known by".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Serial => "serial number",
            Self::BackingFile => "device and inode of its file",
            Self::ModelAndSize => "model and size only, for want of a serial number",
        }
    }
}

/// Key of [`Layer::device`] under which it stands what a loop device is on.
pub const BACKING: &str = "loop_backing";
/// Key of the identity of a volume there.
const VOLUME: &str = "dm/uuid";

impl KnownBy {
    /// Of a layer of the block stack; a partition is known by its disk, which the caller names.
    pub fn from_layer(layer: &Layer) -> Self {
        let is_loop = layer.kind == LayerKind::Loop;
        let told = |key: &str| layer.device.get(key).cloned();
        Self {
            name: layer.name.clone(),
            serial: layer.serial.clone().or_else(|| told(VOLUME)),
            backing: told(BACKING).filter(|_| is_loop),
            model: layer.model.clone().or_else(|| layer.driver.clone()).filter(|_| !is_loop),
            bytes: layer.bytes,
        }
    }

    /// By what both are one device; `None` where they are not, or nothing tells.
    pub fn same_as(&self, other: &Self) -> Option<SameBy> {
        if self.bytes != other.bytes || self.bytes == 0 {
            return None;
        }
        let both = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        if self.backing.is_some() || other.backing.is_some() {
            return both(&self.backing, &other.backing).then_some(SameBy::BackingFile);
        }
        if self.serial.is_some() || other.serial.is_some() {
            return both(&self.serial, &other.serial).then_some(SameBy::Serial);
        }
        both(&self.model, &other.model).then_some(SameBy::ModelAndSize)
    }

    /// `virtio_blk of 252 GiB`, for where only that tells it.
    pub fn kind(&self) -> String {
        format!("{} of {}", self.model.as_deref().unwrap_or("device"), show_bytes(self.bytes))
    }
}

#[test]
fn a_device_is_the_same_by_its_number_and_unchanged_only_with_all_its_marks() {
    let device = |number: &str, marks: &[&str]| Identity::Device {
        number: number.into(),
        marks: marks.iter().map(|m| (*m).to_owned()).collect(),
    };
    let file = |inode| Identity::File { device: "8:1".into(), inode };
    assert!(device("7:0", &["sequence 3"]).is_same(&device("7:0", &[])));
    assert!(!device("7:0", &[]).is_same(&device("7:1", &[])) && !file(7).is_same(&device("8:1", &[])));
    assert!(file(7).is_same(&file(7)) && !file(7).is_same(&file(8)));
    assert_eq!(file(7).change_from(&file(7)), None);
    assert_eq!(file(8).change_from(&file(7)).as_deref(), Some("it was inode 7 of 8:1 and is inode 8 of 8:1"));
    let bound_again =
        device("7:0", &["serial A", "sequence 4"]).change_from(&device("7:0", &["serial A", "sequence 3"]));
    assert_eq!(bound_again.as_deref(), Some("it was sequence 3 and is sequence 4"));
    let gone = device("7:0", &[]).change_from(&device("7:0", &["serial A"]));
    assert_eq!(gone.as_deref(), Some("it was serial A and is device 7:0"));
}

#[test]
fn a_serial_number_decides_and_what_has_none_is_told_by_less() {
    let device = |serial: Option<&str>, backing: Option<&str>, model: Option<&str>, bytes| KnownBy {
        name: String::new(),
        serial: serial.map(str::to_owned),
        backing: backing.map(str::to_owned),
        model: model.map(str::to_owned),
        bytes,
    };
    let a = device(Some("S1"), None, Some("M"), 10);
    assert_eq!(a.same_as(&a), Some(SameBy::Serial));
    // Another disk of the same kind, the same one with another size, and one that tells no serial number.
    assert_eq!(a.same_as(&device(Some("S2"), None, Some("M"), 10)), None);
    assert_eq!(a.same_as(&device(Some("S1"), None, Some("M"), 11)), None);
    assert_eq!(a.same_as(&device(None, None, Some("M"), 10)), None);
    let plain = device(None, None, Some("M"), 10);
    assert_eq!(plain.same_as(&plain), Some(SameBy::ModelAndSize));
    assert_eq!(device(None, None, None, 10).same_as(&device(None, None, None, 10)), None);
    let file = device(None, Some("8:1 7 0"), None, 10);
    assert_eq!(file.same_as(&file), Some(SameBy::BackingFile));
    assert_eq!(file.same_as(&device(None, Some("8:1 8 0"), None, 10)), None);
    assert_eq!(file.same_as(&plain), None);
}
