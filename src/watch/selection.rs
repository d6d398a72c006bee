//! The parts of an interval that `fathom watch` shows, and of which devices.

/// Which parts of an interval are shown, and of which devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each selects one part")]
pub struct Selection {
    /// The line that begins with `avg-cpu`.
    pub cpu: bool,
    /// The rows of block devices, with their loads and latencies.
    pub devices: bool,
    /// The rows of the processes that moved most.
    pub processes: bool,
    /// The partitions of each device.
    pub partitions: bool,
    /// Devices that were never used since boot, too.
    pub unused: bool,
}
