//! `fathom devices`: its flags; prints every block device of the kernel, or the named ones with all facts. Crate `machine`
//! reads them, crate `report` prints them.

use crate::cli::shared_flags::{OUTPUT, formats_of};
use crate::failure::Failure;
use crate::stdout;
use machine::devices;
use machine::root::Root;
use model::machine::Devices;
use model::name;
use report::{Detail, Format, Style};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show every block device: size, model, queue, cache, what lies on it, and who uses it; or all facts of single devices.
///
/// With NAME prints what the kernel knows of that device, one fact a line: model, firmware, serial number, link, block sizes, limits of the
/// queue, write cache, discard, use. These are the facts of `hdparm -I` and `smartctl -i`, as far as /sys has them. Reads only /sys and
/// /proc, so it needs no rights and touches no device.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 looked; 2 usage; 3 the machine refused.")]
pub struct Args {
    /// Kernel names (vda), volumes or paths (/dev/disk/by-id/...) [default: all]
    #[arg(value_name = "NAME", value_parser = crate::cli::shared_flags::parser())]
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

/// Which devices are shown, and how.
#[derive(Debug)]
pub struct Request {
    /// Paths of devices; empty for all devices.
    pub names: Vec<PathBuf>,
    /// Format on standard output.
    pub format: &'static Format,
}

/// Reads the facts of the devices and prints them.
///
/// # Errors
/// If the kernel does not show its devices, a name is not a device, or the answer cannot be printed.
pub fn devices(request: &Request) -> Result<ExitCode, Failure> {
    let root = Root::real();
    let all = machine::devices::list_devices(&root).map_err(|why| {
        Failure::Refused(format!("the block devices of this machine cannot be seen: {why}; `mount -t sysfs sysfs /sys` as root shows them"))
    })?;
    if request.names.is_empty() {
        stdout::report(request.format, &all, Style::default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut named = Devices { format: all.format, devices: Vec::new(), empty: Vec::new() };
    for path in &request.names {
        let kernel_name = devices::of_node(&root, path).ok_or_else(|| no_device(path))?;
        if named.devices.iter().any(|device| device.name == kernel_name) {
            continue;
        }
        match all.devices.iter().find(|device| device.name == kernel_name) {
            Some(device) => named.devices.push(device.clone()),
            None => named.empty.push(kernel_name),
        }
    }
    stdout::report(request.format, &named, Style { detail: Detail::All, ..Style::default() })?;
    Ok(ExitCode::SUCCESS)
}

fn no_device(path: &Path) -> Failure {
    let shown = name::shown(path);
    Failure::Usage(if path.exists() {
        format!(
            "{shown} is no block device; `fathom watch {shown}` and `fathom layers {shown}` show the devices that a file is on"
        )
    } else {
        format!(
            "{shown}: no file and no block device has this name; `fathom devices` lists the block devices"
        )
    })
}
