//! The block devices of a machine: what `fathom devices` shows.
//!
//! For: each with its size, its queue, what lies on it and who uses it, as data and as JSON. Not for: looking (crate `machine`), nor for
//! the stack below one target ([`crate::machine::Place`]).

use crate::Known;
use crate::machine::LayerKind;
use serde::Serialize;

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
