//! `fathom show`: its flags.

use super::common::ShowingArgs;
use super::gates::InconclusiveArgs;
use super::headings::OUTPUT;
use crate::failure::Failure;
use crate::history;
use crate::show::Showing;
use std::path::PathBuf;

/// Judge and print a session again, with the checks of this version; or several side by side.
///
/// Of several (A B C ...) it is one table: a row for each session in the order typed, a column for whatever one of them measured, and why
/// one is not VALID. As JSON the whole reports stand beside it, and as a page (-o page.html) plots of each result, all sessions on one
/// scale. `fathom compare` says which is faster.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The session: its file, its id or a part of that, a tag, `last`, or `last~1` for the one before; several side by side
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
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
    pub fn showing(self) -> Result<(Vec<PathBuf>, Showing), Failure> {
        let files = self.sessions.iter().map(|word| history::find(word)).collect::<Result<Vec<_>, _>>()?;
        let showing = match files.as_slice() {
            [_] => self.showing.gated(self.explain, &self.inconclusive)?,
            _ => self.showing.of_several(self.explain, &self.inconclusive)?,
        };
        Ok((files, showing))
    }
}
