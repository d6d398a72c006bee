//! Group B: whether it was the I/O that was asked for.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod b01_merged;
mod b02_split;
mod b03_read_amplified;
mod b04_write_amplified;
pub(super) mod b05_depth_not_reached;
mod b06_submit_blocks;
mod b07_iowq_punted;
mod b08_not_polling;
mod b09_depth_above_queue;
mod b10_one_hw_queue;
mod b11_misaligned;
mod b12_errors_counted;
mod b13_mix_drift;
mod b14_not_random;
mod b15_fragmented;
mod b16_writes_allocate;
mod b17_idle_tail;
mod b18_little_violated;
mod b19_dio_mixed;
mod b20_pages_read_first;
mod b21_trims_met_holes;
mod shared;
#[cfg(test)]
pub(super) use shared::merge_some;

use super::check::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    b01_merged::CHECK,
    b02_split::CHECK,
    b03_read_amplified::CHECK,
    b04_write_amplified::CHECK,
    b05_depth_not_reached::CHECK,
    b06_submit_blocks::CHECK,
    b07_iowq_punted::CHECK,
    b08_not_polling::CHECK,
    b09_depth_above_queue::CHECK,
    b10_one_hw_queue::CHECK,
    b11_misaligned::CHECK,
    b12_errors_counted::CHECK,
    b13_mix_drift::CHECK,
    b14_not_random::CHECK,
    b15_fragmented::CHECK,
    b16_writes_allocate::CHECK,
    b17_idle_tail::CHECK,
    b18_little_violated::CHECK,
    b19_dio_mixed::CHECK,
    b20_pages_read_first::CHECK,
    b21_trims_met_holes::CHECK,
];
