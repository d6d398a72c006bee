//! Group B: whether it was the I/O that was asked for.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

pub(super) mod b05_depth_not_reached;
mod b12_errors_counted;
mod b18_little_violated;

use super::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] =
    &[b05_depth_not_reached::CHECK, b12_errors_counted::CHECK, b18_little_violated::CHECK];
