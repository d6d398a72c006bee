//! Capacities: what a device was measured to do of one kind of request, and how a device is known again.
//!
//! For: holding a load against what was measured on this very device, as the history keeps it and as `fathom watch` asks for it. Not
//! for: which results of a report are capacities, nor the share that a load is of them (the crate `analysis`).

use crate::machine::{Layer, LayerKind};
use crate::units::show_bytes;
use serde::{Deserialize, Serialize};

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
