//! Group D: interference and the environment.
//!
//! This file lists the checks of the group.

pub(super) mod block_layer;
pub(super) mod clock;
pub(super) mod cpu;
pub(super) mod disturbance;
mod drive;
mod file_system;
pub use file_system::is_remote;
mod memory;
mod virtualization;

use crate::checks::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    disturbance::FOREIGN_IO,
    memory::DIRTY_BACKLOG,
    file_system::FS_HOUSEKEEPING,
    block_layer::IO_LIMIT_CONFIGURED,
    block_layer::TIME_ABOVE_DEVICE,
    cpu::CPU_BOUND,
    cpu::TOOL_OVERHEAD,
    cpu::RUNQUEUE_WAIT,
    clock::TICK_QUANTISED,
    cpu::STEAL,
    cpu::CPU_QUOTA,
    cpu::CLOCKING,
    clock::BAD_CLOCK,
    memory::MEMORY_PRESSURE,
    drive::THERMAL,
    drive::LINK_DEGRADED,
    drive::POWER_STATE,
    virtualization::VIRTUAL,
    virtualization::CLOUD_BURST,
    file_system::NEARLY_FULL,
    cpu::NUMA_REMOTE,
    block_layer::SCHEDULER_EFFECTS,
    drive::RAID_STATE,
    file_system::REMOTE_FS,
    virtualization::CONTAINER_VIEW,
    disturbance::STOOD_STILL,
    disturbance::RUNS_DISTURBED,
    memory::FREED_MEMORY_GIVEN_UP,
];
