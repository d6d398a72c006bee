//! Group C: what is claimed to survive a power cut.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod c01_sync_without_flush;
mod c02_barriers_off;
mod c03_flush_too_cheap;
mod c04_no_final_sync;
mod c05_remote_ack;
mod c06_sync_hides_tail;
mod flushes;

use super::check::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[
    c01_sync_without_flush::CHECK,
    c02_barriers_off::CHECK,
    c03_flush_too_cheap::CHECK,
    c04_no_final_sync::CHECK,
    c05_remote_ack::CHECK,
    c06_sync_hides_tail::CHECK,
];
