//! Group D: interference and the environment.
//!
//! Has the table of the group. A check is one file and two lines here.

pub(super) mod d01_foreign_io;
mod d02_dirty_backlog;
mod d03_fs_housekeeping;
pub(super) mod d04_io_limit_configured;
pub(super) mod d05_time_above_device;
pub(super) mod d06_cpu_bound;
mod d07_tool_overhead;
pub(super) mod d08_runqueue_wait;
mod d09_tick_quantised;
pub(super) mod d10_steal;
pub(super) mod d11_cpu_quota;
mod d12_clocking;
pub(super) mod d13_bad_clock;
mod d14_memory_pressure;
mod d15_thermal;
mod d16_link_degraded;
mod d17_power_state;
mod d18_virtual;
mod d19_cloud_burst;
mod d20_nearly_full;
mod d21_numa_remote;
mod d22_scheduler_effects;
mod d23_raid_state;
pub(super) mod d24_remote_fs;
mod d25_container_view;
mod d26_stood_still;
mod d27_runs_disturbed;
pub(super) mod d28_freed_memory_given_up;

use crate::checks::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    d01_foreign_io::CHECK,
    d02_dirty_backlog::CHECK,
    d03_fs_housekeeping::CHECK,
    d04_io_limit_configured::CHECK,
    d05_time_above_device::CHECK,
    d06_cpu_bound::CHECK,
    d07_tool_overhead::CHECK,
    d08_runqueue_wait::CHECK,
    d09_tick_quantised::CHECK,
    d10_steal::CHECK,
    d11_cpu_quota::CHECK,
    d12_clocking::CHECK,
    d13_bad_clock::CHECK,
    d14_memory_pressure::CHECK,
    d15_thermal::CHECK,
    d16_link_degraded::CHECK,
    d17_power_state::CHECK,
    d18_virtual::CHECK,
    d19_cloud_burst::CHECK,
    d20_nearly_full::CHECK,
    d21_numa_remote::CHECK,
    d22_scheduler_effects::CHECK,
    d23_raid_state::CHECK,
    d24_remote_fs::CHECK,
    d25_container_view::CHECK,
    d26_stood_still::CHECK,
    d27_runs_disturbed::CHECK,
    d28_freed_memory_given_up::CHECK,
];
