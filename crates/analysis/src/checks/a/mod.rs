//! Group A: whether the I/O reached the device at all.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod a01_cache_served;
mod a02_direct_fell_back;
mod a03_direct_unsupported;
mod a04_holes_read;
pub(super) mod a09_writes_still_in_ram;
mod a11_ram_backed;
mod a12_lower_layer_cache;
pub(super) mod a13_counters_blind;
mod a18_faster_than_physics;

use super::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    a01_cache_served::CHECK,
    a02_direct_fell_back::CHECK,
    a03_direct_unsupported::CHECK,
    a04_holes_read::CHECK,
    a09_writes_still_in_ram::CHECK,
    a11_ram_backed::CHECK,
    a12_lower_layer_cache::CHECK,
    a13_counters_blind::CHECK,
    a18_faster_than_physics::CHECK,
];
