//! `fathom explain`: its flags.

use super::common::formats_of;
use super::headings::OUTPUT;
use crate::explain::{self, Request};
use crate::failure::Failure;
use model::check_page::Pages;
use report::Format;

/// Explain a check: what it reads, its formula, how to trigger it and how to fix what it finds.
///
/// Without an ID all checks are listed. An ID is what a report prints, such as A01, or the name behind it, such as
/// CACHE_SERVED, in any case.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids or names of checks [default: all]
    #[arg(value_name = "ID")]
    checks: Vec<String>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Pages>())]
    format: &'static Format,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the check most like one that there is not.
    pub fn request(self) -> Result<Request, Failure> {
        let checks = self.checks.iter().map(|said| explain::find(said)).collect::<Result<Vec<_>, _>>();
        Ok(Request { checks: checks.map_err(Failure::Usage)?, format: self.format })
    }
}
