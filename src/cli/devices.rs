//! `fathom devices`: its flags.

use super::common::formats_of;
use super::headings::OUTPUT;
use crate::devices::Request;
use model::machine::Devices;
use report::Format;
use std::path::PathBuf;

/// Show every block device: size, model, queue, cache, what lies on it, and who uses it; or all facts of single devices.
///
/// With NAME prints what the kernel knows of that device, one fact a line: model, firmware, serial number, link, block sizes, limits of the
/// queue, write cache, discard, use. These are the facts of `hdparm -I` and `smartctl -i`, as far as /sys has them. Reads only /sys and
/// /proc, so it needs no rights and touches no device.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 looked; 2 usage; 3 the machine refused.")]
pub struct Args {
    /// Kernel names (vda), volumes or paths (/dev/disk/by-id/...) [default: all]
    #[arg(value_name = "NAME", value_parser = super::target::parser())]
    names: Vec<PathBuf>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Devices>())]
    format: &'static Format,
}

impl Args {
    /// Returns the request.
    pub fn request(self) -> Request {
        Request { names: self.names, format: self.format }
    }
}
