//! The machine: host, file systems, the block stack below each target, its block devices, and the identity of files
//! and devices.
//!
//! A name may refer to another file or device later, so [`Identity`] consists of device numbers and serial numbers.
//! [`Capacity`] is the measured capacity of a device, and [`KnownBy`] finds the same device in later sessions.

use crate::Known;
use crate::evidence::text_of;
use crate::units::show_bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host and the measured places on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Kernel name, release and version, as `uname -srv` prints them.
    pub kernel: String,
    /// CPU model.
    pub cpu: Known<String>,
    /// Number of CPUs that this process may run on.
    pub cpus: u32,
    /// `MemTotal` in bytes.
    pub memory_bytes: Known<u64>,
    /// Name of the hypervisor, or a sign of an unknown one; `None` if nothing indicates a virtual machine.
    pub virtual_by: Known<Option<String>>,
    /// The kernel's current clock source.
    pub clocksource: Known<String>,
    /// Effective user id.
    pub user_id: u32,
    /// The cgroup that counts only the I/O of this process, or why there is none.
    pub cgroup: Known<Cgroup>,
    /// Kernel text that does not change during a measurement, word for word, under the names of the constants in
    /// [`crate::evidence`]: limits of the cgroups above fathom, CPU power saving, firmware names, libraries. A name
    /// with a `*` has one line for each file that matched, `path: text`.
    #[serde(default)]
    pub facts: BTreeMap<String, Known<String>>,
    /// One place for each target of the plan, in the same order.
    pub places: Vec<Place>,
}

/// A cgroup that fathom created for itself, below the one in which it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// 1 (`blkio`) or 2 (`io`).
    pub version: u8,
    /// Directory of the cgroup.
    pub dir: String,
    /// Files in that directory that count fathom's I/O per device.
    pub files: Vec<String>,
}

/// The location of a target: file system and block stack, from the path down to the leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The path that was resolved.
    pub path: String,
    /// The mounted file system; `None` for a block device.
    pub file_system: Option<FileSystem>,
    /// Block devices. Each comes before the devices below it. Empty if no block device stores the target.
    pub layers: Vec<Layer>,
    /// Indices of the layers directly below the file system; of the device itself if the target is a device.
    pub tops: Vec<usize>,
    /// Whether direct I/O works, and its alignment, according to statx; `None` if statx does not
    /// report it.
    pub direct: Option<DirectIo>,
    /// Why the target is in memory: `tmpfs`, `zram0`, `loop0 on tmpfs`; `None` for storage.
    pub ram: Option<String>,
    /// Why a part of the stack could not be resolved, as a sentence; `None` if the whole stack was resolved.
    #[serde(rename = "blind")]
    pub unresolved_reason: Option<String>,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSystem {
    /// Type: `ext4`, `xfs`, `fuse.sshfs`, ...
    pub kind: String,
    /// The mounted source: `/dev/vda1`, `tmpfs`, `server:/export`.
    pub source: String,
    /// The mount point, as in mountinfo.
    pub mount_point: String,
    /// Mount options and super-block options, as in mountinfo.
    pub options: String,
    /// Attributes that change how the file's data is stored: `journal_data`, `compressed`, `encrypted`, `nocow`.
    pub attributes: Vec<String>,
    /// The mounted directory of the file system: `/` for the whole file system; empty in older records.
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
    /// Kind of device.
    pub kind: LayerKind,
    /// Driver of the hardware or virtual hardware: `virtio_blk`, `nvme`, `sd`; `None` without one.
    pub driver: Option<String>,
    /// Model name; `None` if the device reports none.
    pub model: Option<String>,
    /// Serial number; `None` if the device reports none.
    pub serial: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// For a loop device: the backing file; `None` for other devices.
    pub backing_file: Option<String>,
    /// For a loop device: whether it accesses its file with direct I/O; `None` for other devices,
    /// or if unknown.
    pub backing_direct: Option<bool>,
    /// Path of the `stat` file with the counters of this layer.
    pub stat_file: String,
    /// Every readable file of its `queue/` directory, word for word.
    pub queue: BTreeMap<String, String>,
    /// Other files of the device by path below its directory in `/sys`, without surrounding white space. A partition
    /// has its own files and those of its disk. Missing files are left out.
    ///
    /// Files: `start`, `loop/offset`, `alignment_offset`, `ro`, `removable`, `device/queue_depth`, `device/state`, and
    /// the state files of `md/`, `bcache/` and `dm/`.
    ///
    /// Keys defined by fathom:
    /// - `mq`: the number of hardware queues.
    /// - `irq_cpus`: the CPUs that serve the interrupts of the device (`0,1,5`).
    /// - `dax`, `pm_qos_latency_tolerance_us`: the files of these names in `queue/` and `device/power/`.
    /// - `hwmon`: the directory of the device's thermometer.
    /// - `loop_backing`: the file or device below a loop device.
    /// - `device/numa_node`, `local_cpulist`, `current_link_speed`, `current_link_width`, `max_link_speed`,
    ///   `max_link_width`: from the nearest parent device that has them.
    /// - `sata_spd`, `sata_spd_limit`, `hw_sata_spd_limit`: the present, the allowed and the possible speed of a SATA
    ///   port.
    #[serde(default)]
    pub device: BTreeMap<String, String>,
    /// Why this layer is in memory, if it has no layer below: `zram0`, `loop0 on tmpfs`; `None` for storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram: Option<String>,
    /// Indices of the layers below.
    pub below: Vec<usize>,
}

/// Kind of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A whole device, with no device of the kernel below it.
    #[default]
    Disk,
    /// A part of a disk.
    Partition,
    /// A file that is used as a device.
    Loop,
    /// Compressed memory.
    Zram,
    /// Plain memory (`brd`).
    Ram,
    /// A volume of the kernel's `dm` driver: LVM, dm-crypt, multipath.
    DeviceMapper,
    /// Software RAID.
    Raid,
    /// Another virtual device.
    Virtual,
}

/// Direct I/O limits of a file from statx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectIo {
    /// Alignment of buffers in bytes. If both alignments are 0, direct I/O is not supported.
    pub memory_align: u32,
    /// Alignment of offsets and lengths in bytes.
    pub offset_align: u32,
}

impl Machine {
    /// Returns the text of a fact.
    ///
    /// # Errors
    /// Why the fact could not be read, or that it was not read.
    pub fn fact(&self, path: &str) -> Known<&str> {
        text_of(&self.facts, path).map(str::trim)
    }
}

/// File systems whose files exist only in the page cache.
const ALL_CACHE: &[&str] = &["tmpfs", "ramfs"];

impl Place {
    /// Returns why direct I/O uses the page cache here, or is refused, according to the file system. `None` if direct I/O
    /// works, or if statx does not report its alignment.
    pub fn without_direct(&self) -> Option<String> {
        if let Some(fs) = &self.file_system {
            if ALL_CACHE.contains(&fs.kind.as_str()) {
                return Some(format!("{} keeps its files only in the page cache", fs.kind));
            }
            let has = |name: &str| fs.attributes.iter().any(|a| a == name);
            if has("journal_data") || fs.options.split([',', ' ']).any(|o| o == "data=journal") {
                return Some("file data go through the journal of the file system".into());
            }
            if has("compressed") && fs.kind == "btrfs" {
                return Some("btrfs compresses its data".into());
            }
        }
        let DirectIo { memory_align, offset_align } = self.direct?;
        (memory_align == 0 && offset_align == 0).then(|| "statx reports no alignment for direct I/O".into())
    }

    /// Returns the type of the file system, or `block device`.
    pub fn kind(&self) -> &str {
        self.file_system.as_ref().map_or("block device", |f| f.kind.as_str())
    }

    /// Returns the layers that have no layer below.
    pub fn lowest_layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|l| l.below.is_empty())
    }

    /// Formats the chain in one line: `/data/file (ext4 at /data, rw,relatime) > vda1 > vda (virtio_blk)`.
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

    /// Formats the chain without mount options and drivers: `/data (ext4) > nvme0n1p2 > nvme0n1 (SAMSUNG
    /// MZQL21T9HCJR-00A07)`.
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
    /// Reads a number from the `queue/` directory.
    ///
    /// # Errors
    ///
    /// That the file is missing, or does not contain a number.
    pub fn queue_number(&self, file: &str) -> Known<u64> {
        parse_number(&self.name, "queue/", &self.queue, file)
    }

    /// Reads a number from another file of the device.
    ///
    /// # Errors
    ///
    /// That the file is missing, or does not contain a number.
    pub fn device_number(&self, file: &str) -> Known<u64> {
        parse_number(&self.name, "", &self.device, file)
    }

    /// Returns the number of requests that the device accepts at once.
    ///
    /// # Errors
    ///
    /// That the number of hardware queues, or the number of requests in each, is unknown.
    pub fn accepted_requests(&self) -> Known<u64> {
        let queues = self.device_number("mq")?.max(1);
        let requests = self.queue_number("nr_requests")?.saturating_mul(queues);
        // Only SCSI devices have this file.
        if self.device.contains_key("device/queue_depth") {
            return Ok(requests.min(self.device_number("device/queue_depth")?));
        }
        Ok(requests)
    }

    /// Returns the file that switches this disk's counters on and off. `None` for a partition: the file of the disk
    /// switches the counters of all partitions too.
    pub fn iostats_file(&self) -> Option<String> {
        let dir = self.stat_file.strip_suffix("/stat").filter(|_| self.kind != LayerKind::Partition)?;
        Some(format!("{dir}/queue/iostats"))
    }

    /// Returns why this layer's counters are meaningless; `None` if they count.
    pub fn counters_off_reason(&self) -> Option<String> {
        // zram counts its requests itself and ignores the switch.
        let off = self.queue.get("iostats").is_some_and(|v| v.trim() == "0") && self.kind != LayerKind::Zram;
        off.then(|| format!("{}/queue/iostats is 0, so the kernel does not count its I/O", self.name))
    }
}

fn parse_number(layer: &str, dir: &str, files: &BTreeMap<String, String>, file: &str) -> Known<u64> {
    let text = files.get(file).ok_or_else(|| format!("{layer}/{dir}{file} is missing"))?;
    text.trim().parse().map_err(|_| format!("{layer}/{dir}{file} is not a number: '{}'", text.trim()))
}

/// Version of the JSON of `fathom devices`.
pub const FORMAT: u32 = 1;

/// Every block device that the kernel shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// Version of this JSON: [`FORMAT`].
    pub format: u32,
    /// All devices, each disk followed by its partitions.
    pub devices: Vec<BlockDevice>,
    /// Names of devices without a size: loop devices that are not bound, drives without a medium.
    pub empty: Vec<String>,
}

/// A disk, a partition or another device that takes requests, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// Kernel name: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// Disk, partition or virtual device, according to its name and `/sys/class/block`.
    pub kind: LayerKind,
    /// Name of the volume, such as `vg-root`; `None` for other devices.
    pub label: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// Model name; `None` if the device reports none.
    pub model: Option<String>,
    /// Vendor of a SCSI device; SATA disks report `ATA`. `None` if the device reports none.
    pub vendor: Option<String>,
    /// Firmware revision; `None` if the device reports none.
    pub firmware: Option<String>,
    /// Serial number; `None` if the device reports none.
    pub serial: Option<String>,
    /// World wide name: `naa.5000c500a1b2c3d4`, `eui.0025385b71b0a1c2`; `None` if the device
    /// reports none.
    pub wwid: Option<String>,
    /// Bus or link of the device: `NVMe over PCIe`, `SATA`, `USB`, `virtio`; `None` for virtual devices and unknown
    /// buses.
    pub bus: Option<String>,
    /// Speed of the bus or link: `8.0 GT/s PCIe x4`, `6.0 Gbps`; `None` if unknown.
    pub link: Option<String>,
    /// Driver: `nvme`, `sd`, `virtio_blk`; `None` without one.
    pub driver: Option<String>,
    /// Kernel name of the disk of a partition; `None` for other devices.
    pub disk: Option<String>,
    /// Offset of a partition on its disk in bytes; `None` for other devices, and if unknown.
    pub start_bytes: Option<u64>,
    /// Whether writes are refused.
    pub read_only: Known<bool>,
    /// Whether the medium is removable.
    pub removable: Known<bool>,
    /// Properties of the request queue; a partition has the queue of its disk.
    pub queue: Queue,
    /// For a loop device: its backing file; `None` for other devices.
    pub backing_file: Option<String>,
    /// For a loop device: whether it accesses its file with direct I/O; `None` for other devices,
    /// or if unknown.
    pub backing_direct: Option<bool>,
    /// Kernel names of the devices directly below this one.
    pub below: Vec<String>,
    /// Kernel names of the partitions; empty without partitions.
    pub partitions: Vec<String>,
    /// Kernel names of the devices that are built on this one.
    pub holders: Vec<String>,
    /// Mounts of the device in this mount namespace.
    pub mounts: Known<Vec<Mounted>>,
    /// The users of the device, of its partitions, and of the devices built on it; `None` without users. `Err` has
    /// the reason if the users cannot be determined.
    pub used_by: Known<Option<String>>,
}

/// Properties of a device's request queue. A missing value has a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Smallest request in bytes.
    pub logical_block_bytes: Known<u64>,
    /// Unit in which the medium writes, in bytes.
    pub physical_block_bytes: Known<u64>,
    /// Largest request that the kernel sends, in bytes.
    pub max_request_bytes: Known<u64>,
    /// Largest request that the device accepts, in bytes.
    pub max_hardware_request_bytes: Known<u64>,
    /// Maximum number of requests in one hardware queue (`nr_requests`).
    pub requests: Known<u64>,
    /// Number of hardware queues that the driver uses.
    pub hardware_queues: Known<u64>,
    /// Number of requests that the device accepts at once; most devices do not report it.
    pub device_depth: Known<u64>,
    /// The active scheduler.
    pub scheduler: Known<String>,
    /// `write back` if writes need a flush to become stable, otherwise `write through`.
    pub write_cache: Known<String>,
    /// Whether single writes can bypass the write cache (FUA).
    pub fua: Known<bool>,
    /// Whether the device reports that it is a rotating disk.
    pub rotational: Known<bool>,
    /// Maximum number of bytes that the kernel reads ahead.
    pub read_ahead_bytes: Known<u64>,
    /// Largest discard in bytes; 0 if discards are not supported.
    pub max_discard_bytes: Known<u64>,
    /// Smallest discard in bytes.
    pub discard_granularity_bytes: Known<u64>,
    /// Request size in bytes that the device prefers for long transfers (`optimal_io_size`); 0 if it reports none.
    pub optimal_request_bytes: Known<u64>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Known<String>,
    /// Whether the kernel counts the device's requests.
    pub counted: Known<bool>,
}

/// A mount of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mounted {
    /// Mount point.
    pub point: String,
    /// Type of file system.
    pub kind: String,
    /// Options of mount and super block.
    pub options: String,
}

/// The identity of a file or device, independent of its names. A file or device may have many names through links,
/// bind mounts and device nodes, and a name may refer to another file or device a moment later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// An entry of a file system: a file, a directory, a FIFO.
    File {
        /// `major:minor` of the file system, as `stat` shows it.
        device: String,
        /// Inode number in the file system.
        inode: u64,
    },
    /// A block device, independent of its device nodes.
    Device {
        /// `major:minor`.
        number: String,
        /// Identifiers that distinguish this device from a later one with the same number, as text: serial number, disk
        /// sequence number, file below a loop device.
        #[serde(rename = "marks", default, skip_serializing_if = "Vec::is_empty")]
        identifiers: Vec<String>,
    },
}

impl Identity {
    /// Returns whether `self` and `other` are the same file or device, if both were read at the same moment. Ignores the identifiers,
    /// which only distinguish a device from a later one.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device { number: a, .. }, Self::Device { number: b, .. }) => a == b,
            _ => self == other,
        }
    }

    /// Formats the identity: `inode 42 of 8:1`, `device 8:1`.
    pub fn describe(&self) -> String {
        match self {
            Self::Device { number, .. } => format!("device {number}"),
            Self::File { device, inode } => format!("inode {inode} of {device}"),
        }
    }

    /// Describes how this identity differs from an earlier one; `None` if both are the same.
    pub fn change_from(&self, before: &Self) -> Option<String> {
        if self == before {
            return None;
        }
        let matched = |me: &Self, other: &Self| match (me, other) {
            (Self::Device { number, identifiers }, Self::Device { number: their, identifiers: theirs }) => {
                let own = identifiers.iter().filter(|m| !theirs.contains(m)).cloned();
                let all: Vec<String> =
                    (number != their).then(|| format!("device {number}")).into_iter().chain(own).collect();
                if all.is_empty() { format!("device {number}") } else { all.join(", ") }
            }
            (me, _) => me.describe(),
        };
        Some(format!("it was {} and is {}", matched(before, self), matched(self, before)))
    }
}

/// Direction of requests for which a capacity is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// Returns the displayed word: `reads` or `writes`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }
}

/// The measured capacity of a device for one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// The measured device.
    pub device: KnownBy,
    /// Reads or writes.
    pub direction: Direction,
    /// Whether requests were sequential; otherwise random.
    pub sequential: bool,
    /// Mean size of the requests in bytes.
    pub request_bytes: u64,
    /// Requests completed per second.
    pub requests_per_s: f64,
    /// Number of operations that the measurement kept in flight.
    pub in_flight: u64,
    /// Whether a cgroup limit throttled the requests. The capacity is then that of the cgroup.
    #[serde(default)]
    pub throttled: bool,
}

/// Properties that identify a device across sessions and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownBy {
    /// Kernel name of the device in the session that measured it.
    pub name: String,
    /// Serial number of the hardware, or the kernel's id of a volume (`dm/uuid`); `None` without
    /// either.
    pub serial: Option<String>,
    /// For a loop device: device, inode and offset of the file below it; `None` for other devices.
    pub backing: Option<String>,
    /// Model, or the driver if the model is unknown; `None` without either.
    pub model: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
}

/// How a device was matched with a device of an earlier session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SameBy {
    /// Serial number and size.
    Serial,
    /// Device and inode of the file below a loop device.
    BackingFile,
    /// Model and size only: another device of the same model would match too.
    ModelAndSize,
}

impl SameBy {
    /// Returns the phrase that follows "recognised by".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Serial => "serial number",
            Self::BackingFile => "device and inode of its file",
            Self::ModelAndSize => "model and size only, without a serial number",
        }
    }
}

/// Key of [`Layer::device`] for the file or device below a loop device.
pub const BACKING: &str = "loop_backing";
/// Key of [`Layer::device`] for the identity of a volume.
const VOLUME: &str = "dm/uuid";

impl KnownBy {
    /// Takes the properties from a layer of the block stack. For a partition the caller passes its disk.
    pub fn from_layer(layer: &Layer) -> Self {
        let is_loop = layer.kind == LayerKind::Loop;
        let device_fact = |key: &str| layer.device.get(key).cloned();
        Self {
            name: layer.name.clone(),
            serial: layer.serial.clone().or_else(|| device_fact(VOLUME)),
            backing: device_fact(BACKING).filter(|_| is_loop),
            model: layer.model.clone().or_else(|| layer.driver.clone()).filter(|_| !is_loop),
            bytes: layer.bytes,
        }
    }

    /// Returns the properties that show that `self` and `other` are the same device; `None` if the devices differ, or if
    /// this cannot be determined.
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

    /// Describes the device by its size and its model or driver, such as `virtio_blk of 252 GiB`.
    pub fn kind(&self) -> String {
        format!("{} of {}", self.model.as_deref().unwrap_or("device"), show_bytes(self.bytes))
    }
}

#[test]
fn a_device_with_other_identifiers_has_changed() {
    let device = |number: &str, identifiers: &[&str]| Identity::Device {
        number: number.into(),
        identifiers: identifiers.iter().map(|m| (*m).to_owned()).collect(),
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
fn serial_numbers_identify_devices_before_model_and_size() {
    let device = |serial: Option<&str>, backing: Option<&str>, model: Option<&str>, bytes| KnownBy {
        name: String::new(),
        serial: serial.map(str::to_owned),
        backing: backing.map(str::to_owned),
        model: model.map(str::to_owned),
        bytes,
    };
    let a = device(Some("S1"), None, Some("M"), 10);
    assert_eq!(a.same_as(&a), Some(SameBy::Serial));
    // Another disk of the same model, the same disk with another size, and a disk without a serial number.
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
