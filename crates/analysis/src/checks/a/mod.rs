//! Group A: whether the I/O reached the device at all.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod a01_cache_served;
mod a02_direct_fell_back;
mod a03_direct_unsupported;
mod a04_holes_read;
mod a05_zero_data;
mod a06_inline_or_tail;
mod a07_encoded_extents;
mod a08_payload_too_easy;
pub(super) mod a09_writes_still_in_ram;
mod a10_never_written;
mod a11_ram_backed;
mod a12_lower_layer_cache;
pub(super) mod a13_counters_blind;
mod a14_wrong_place;
mod a15_span_fits_cache;
mod a16_re_reads;
mod a17_first_touch;
mod a18_faster_than_physics;
mod a19_above_ceiling;
mod a20_hdd_too_fast;
mod a21_shared_extents;
mod a22_ledger_disagrees;
mod a23_file_changed;
mod a24_unaccounted_reads;
mod coverage;
#[cfg(test)]
mod fixtures;

use super::check::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    a01_cache_served::CHECK,
    a02_direct_fell_back::CHECK,
    a03_direct_unsupported::CHECK,
    a04_holes_read::CHECK,
    a05_zero_data::CHECK,
    a06_inline_or_tail::CHECK,
    a07_encoded_extents::CHECK,
    a08_payload_too_easy::CHECK,
    a09_writes_still_in_ram::CHECK,
    a10_never_written::CHECK,
    a11_ram_backed::CHECK,
    a12_lower_layer_cache::CHECK,
    a13_counters_blind::CHECK,
    a14_wrong_place::CHECK,
    a15_span_fits_cache::CHECK,
    a16_re_reads::CHECK,
    a17_first_touch::CHECK,
    a18_faster_than_physics::CHECK,
    a19_above_ceiling::CHECK,
    a20_hdd_too_fast::CHECK,
    a21_shared_extents::CHECK,
    a22_ledger_disagrees::CHECK,
    a23_file_changed::CHECK,
    a24_unaccounted_reads::CHECK,
];
