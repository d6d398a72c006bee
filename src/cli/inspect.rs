//! `fathom doctor` and `fathom devices`, which measure nothing: their flags. Also prints the devices; crate `machine` reads the facts.

use crate::cli::shared_flags::{OUTPUT, formats_of, target_parser};
use crate::doctor::Request;
use crate::failure::Failure;
use crate::stdout;
use machine::devices;
use machine::root::Root;
use model::finding::Diagnosis;
use model::machine::Devices;
use model::name;
use report::{Detail, Format, Style};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Inspect a target before measuring it: its whole block stack, what would distort a result, and how to fix it.
///
/// It writes and changes nothing. It watches the I/O and CPU use of other programs for 3 seconds. The first line is the conclusion. Each
/// finding comes with what to do about it, and each unanswered question with the reason. `fathom explain ID` explains the check that a
/// finding names.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 done, whatever was found; 2 usage; 3 the machine refused.")]
pub struct DoctorArgs {
    /// Directory, file or block device
    #[arg(default_value = ".", value_parser = target_parser())]
    target: PathBuf,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Diagnosis>())]
    format: &'static Format,
}

impl DoctorArgs {
    /// Returns the request.
    pub fn request(self) -> Request {
        Request { target: self.target, format: self.format }
    }
}

/// Show every block device: size, model, queue, cache, what it holds, and who uses it; or all facts about the named devices.
///
/// With NAME it prints what the kernel knows about that device, one fact per line: model, firmware, serial number, link, block sizes,
/// queue limits, write cache, discard, use. These are the facts of `hdparm -I` and `smartctl -i`, as far as /sys has them. It reads only
/// /sys and /proc, so it requires no privileges and does no I/O to a device.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 done; 2 usage; 3 the machine refused.")]
pub struct DevicesArgs {
    /// Kernel names (vda), volumes or paths (/dev/disk/by-id/...) [default: all]
    #[arg(value_name = "NAME", value_parser = target_parser())]
    names: Vec<PathBuf>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Devices>())]
    format: &'static Format,
}

impl DevicesArgs {
    /// Reads the facts about the devices and prints them.
    ///
    /// # Errors
    /// If the kernel does not show its devices, a name is not a device, or the answer cannot be printed.
    pub fn print(self) -> Result<ExitCode, Failure> {
        let root = Root::real();
        let all = devices::list_devices(&root).map_err(|why| {
            Failure::Refused(format!("cannot list the block devices of this machine: {why}; `mount -t sysfs sysfs /sys` as root shows them"))
        })?;
        if self.names.is_empty() {
            return stdout::print_report(self.format, &all, Style::default()).map(|()| ExitCode::SUCCESS);
        }
        let mut named = Devices { format: all.format, devices: Vec::new(), empty: Vec::new() };
        for path in &self.names {
            let kernel_name = devices::name_of_node(&root, path).ok_or_else(|| not_a_device(path))?;
            if named.devices.iter().any(|device| device.name == kernel_name) {
                continue;
            }
            match all.devices.iter().find(|device| device.name == kernel_name) {
                Some(device) => named.devices.push(device.clone()),
                None => named.empty.push(kernel_name),
            }
        }
        stdout::print_report(self.format, &named, Style { detail: Detail::All, ..Style::default() })
            .map(|()| ExitCode::SUCCESS)
    }
}

fn not_a_device(path: &Path) -> Failure {
    let shown = name::shown(path);
    Failure::Usage(if path.exists() {
        format!(
            "{shown} is not a block device; `fathom watch {shown}` and `fathom doctor {shown}` show the devices below a file"
        )
    } else {
        format!(
            "{shown}: no file and no block device has this name; `fathom devices` lists the block devices"
        )
    })
}
