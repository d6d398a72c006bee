//! `fathom devices`: its flags.

use super::common::formats_of;
use super::headings::OUTPUT;
use model::devices::Devices;
use report::Format;

/// Show every block device: size, model, queue, cache, what lies on it, and who uses it.
///
/// Read from /sys and /proc alone, so it needs no rights, and touches no device. What only root sees is said.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 looked; 2 usage; 3 the machine refused.")]
pub struct Args {
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Devices>())]
    format: &'static Format,
}

impl Args {
    /// What was said.
    pub fn format(self) -> &'static Format {
        self.format
    }
}
