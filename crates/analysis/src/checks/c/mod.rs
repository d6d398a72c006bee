//! Group C: what is claimed to survive a power cut.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

use super::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[];
