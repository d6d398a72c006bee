//! Group E: time and statistics.
//!
//! For: the table of the group. Not for: anything else; a check is one file and two lines here.

mod e05_one_run;
mod e10_generator_late;

use super::Check;

/// The checks of the group, in the order of the catalogue.
pub(super) const CHECKS: &[Check] = &[e05_one_run::CHECK, e10_generator_late::CHECK];
