//! `fathom doctor`: its flags.

use crate::cli::shared_flags;
use crate::cli::shared_flags::{OUTPUT, formats_of};
use crate::doctor::Request;
use model::finding::Diagnosis;
use report::Format;
use std::path::PathBuf;

/// Inspect a target before measuring it: its whole block stack, what would distort a result, and how to fix it.
///
/// Nothing is written or changed. It watches the I/O and CPU use of other programs for 3 seconds. Every line is OK, a FINDING
/// with what to do about it, or NOT CHECKED with the reason; `fathom explain ID` tells more of the check that a finding names.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 looked, whatever was found; 2 usage; 3 the machine refused.")]
pub struct Args {
    /// Directory, file or block device
    #[arg(default_value = ".", value_parser = shared_flags::parser())]
    target: PathBuf,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Diagnosis>())]
    format: &'static Format,
}

impl Args {
    /// Returns the request.
    pub fn request(self) -> Request {
        Request { target: self.target, format: self.format }
    }
}
