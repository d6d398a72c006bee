//! Group D: interference and the environment.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod d01_foreign_io;
mod d02_dirty_backlog;
mod d03_fs_housekeeping;
pub(super) mod d04_io_limit_configured;
mod d05_time_above_device;
pub(super) mod d06_cpu_bound;
mod d07_tool_overhead;
pub(super) mod d08_runqueue_wait;
mod d09_tick_quantised;
mod d10_steal;
pub(super) mod d11_cpu_quota;
mod d18_virtual;

use super::Check;

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
    d18_virtual::CHECK,
];
