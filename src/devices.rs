//! `fathom devices`: every block device that the kernel shows.
//!
//! For: looking, and handing on what was seen. Not for: the looking itself (crate `machine`) nor its layout (crate `report`).

use crate::failure::Failure;
use crate::stdout;
use machine::root::Root;
use report::{Format, Style};
use std::process::ExitCode;

/// Looks, and prints what was seen.
///
/// # Errors
/// Where the kernel does not show its devices, or it cannot be printed.
pub fn devices(format: &'static Format) -> Result<ExitCode, Failure> {
    let seen = machine::devices::look(&Root::real()).map_err(|why| {
        Failure::Refused(format!("the block devices of this machine cannot be seen: {why}; `mount -t sysfs sysfs /sys` as root shows them"))
    })?;
    stdout::report(format, &seen, Style::default())?;
    Ok(ExitCode::SUCCESS)
}
