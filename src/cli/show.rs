//! `fathom show`: its flags.

use super::common::ShowingArgs;
use super::gates::InconclusiveArgs;
use super::headings::OUTPUT;
use crate::failure::Failure;
use crate::history;
use crate::show::Showing;
use std::path::PathBuf;

/// Judge and print a session again, with the checks of this version.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The session: its file, its id or a part of that, a tag, `last`, or `last~1` for the one before
    session: String,
    /// Also print every run second by second, beside the device's own counts
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    #[command(flatten)]
    showing: ShowingArgs,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn showing(self) -> Result<(PathBuf, Showing), Failure> {
        Ok((history::find(&self.session)?, self.showing.gated(self.explain, &self.inconclusive)?))
    }
}
