//! `fathom explain`: its flags.

use super::common::formats_of;
use super::headings::OUTPUT;
use super::help;
use crate::explain::{self, Request};
use crate::failure::Failure;
use crate::stdout;
use model::check_page::Pages;
use report::Format;
use std::process::ExitCode;

/// Explain a check: what it reads, its formula, how to trigger it and how to fix what it finds. Also explains a word of a report.
///
/// Without an ID all checks are listed. An ID is what a report prints, such as A01, or the name after it, such as CACHE_SERVED, in any
/// case. A word of a report, such as headline, is explained from the glossary.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids or names of checks, or words of a report [default: all checks]
    #[arg(value_name = "ID|WORD")]
    checks: Vec<String>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Pages>())]
    format: &'static Format,
}

impl Args {
    /// Explains the checks or words.
    ///
    /// # Errors
    /// A usage failure that names the most similar check if one does not exist.
    pub fn explain(self) -> Result<ExitCode, Failure> {
        let meanings: Vec<String> = self.checks.iter().filter_map(|word| help::glossary(word)).collect();
        if !meanings.is_empty() && meanings.len() == self.checks.len() {
            stdout::text(&meanings.concat())?;
            return Ok(ExitCode::SUCCESS);
        }
        let checks = self.checks.iter().map(|word| explain::find_check(word)).collect::<Result<Vec<_>, _>>();
        explain::print_pages(&Request { checks: checks.map_err(Failure::Usage)?, format: self.format })
    }
}
