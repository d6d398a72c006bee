//! Writes that are not torn: whether a file takes them.
//!
//! For: refusing `RWF_ATOMIC` where each write would fail. Not for: proving that a write is whole after a power failure.

use crate::refusal::{LEAVE_OUT, refusal};
use crate::spec::WorkerSpec;
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::io;

/// Option of engines: each write is whole or not there.
pub(super) const ATOMIC: &str = "atomic";

/// What it says of itself.
pub(super) const ABOUT_ATOMIC: &str = "each write is whole or not there after a power failure (RWF_ATOMIC, 6.11)";

/// `STATX_WRITE_ATOMIC` of `linux/stat.h`, kernel 6.11.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// Makes sure that the files of a spec take its writes as atomic ones, where they are asked for.
///
/// # Errors
/// A refusal that names the option.
pub(super) fn check_atomic_writes(spec: &WorkerSpec) -> io::Result<bool> {
    if !spec.options.contains_key(ATOMIC) {
        return Ok(false);
    }
    let refuse = |why: String, instead: &str| {
        Err(refusal(io::ErrorKind::Unsupported, format!("option {ATOMIC}: {why}"), instead))
    };
    if !spec.cache.is_direct() {
        return refuse("the page cache tears writes apart".into(), "type --cache direct");
    }
    for target in &spec.files {
        let facts = statx(&target.file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC)?;
        let (least, most) = (facts.stx_atomic_write_unit_min, facts.stx_atomic_write_unit_max);
        if facts.stx_mask & WRITE_ATOMIC.bits() == 0 || most == 0 {
            let why =
                "the file system or the device below it writes nothing atomically (statx names no sizes)";
            return refuse(why.into(), LEAVE_OUT);
        }
        let bytes = spec.slot_bytes;
        if !bytes.is_power_of_two() || !(least..=most).contains(&bytes) {
            let why = format!(
                "a write of {bytes} bytes cannot be atomic here, powers of two from {least} to {most} can"
            );
            return refuse(why, "type such a --bs");
        }
    }
    Ok(true)
}
