//! What the machine is, as far as a measurement depends on it: host, file systems, and the block stack below each target.
//!
//! For: the result of looking, as data. Not for: looking (the crate `machine` does) nor judging.

use crate::Known;
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
