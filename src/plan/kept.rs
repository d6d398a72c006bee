//! Files that are made where they are missing, and kept: what several streams need of one.
//!
//! For: its size, what is in it, and whether it fits. Not for: making it (crate `machine`), nor finding it ([`super::target`]).

use crate::failure::Failure;
use model::job::{Create, Filling};
use model::plan::Target;
use std::path::Path;

/// Has a file made, or made again, at least so large and with no less in it than others need.
pub(super) fn make_again(target: &mut Target, create: Create) {
    let before = target.create.unwrap_or(Create { bytes: 0, filling: Filling::Nothing, unlink: false });
    let create = Create {
        bytes: before.bytes.max(create.bytes),
        filling: before.filling.max(create.filling),
        unlink: before.unlink || create.unlink,
    };
    target.bytes = target.bytes.max(create.bytes);
    target.create = Some(create);
}

/// Refuses a file that would leave too little free beside what is there of it.
pub(super) fn fits_beside(path: &Path, bytes: u64) -> Result<(), Failure> {
    let there = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(0, |f| f.len());
    Ok(machine::test_file::fits(path, bytes.saturating_sub(there))?)
}
