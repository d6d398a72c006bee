//! `fathom explain`: its flags.

use crate::explain::{self, Form, Wish};
use crate::failure::Failure;
use clap::ValueEnum;

/// Say what a check looks at, by which formula, how to see it fire and what repairs it.
///
/// Without an ID all checks are listed. An ID is what a report prints, such as A01, or the name behind it, such as
/// CACHE_SERVED, in any case.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids or names of checks [default: all]
    #[arg(value_name = "ID")]
    checks: Vec<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: FormWord,
}

/// The words of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormWord {
    /// To read; without an ID a table
    Text,
    /// Whole pages; without an ID those of docs/checks.md
    Markdown,
    /// Whole pages, for programs
    Json,
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the check most like one that there is not.
    pub fn wish(self) -> Result<Wish, Failure> {
        let checks = self.checks.iter().map(|said| explain::find(said)).collect::<Result<Vec<_>, _>>();
        let form = match self.format {
            FormWord::Text => Form::Text,
            FormWord::Markdown => Form::Markdown,
            FormWord::Json => Form::Json,
        };
        Ok(Wish { checks: checks.map_err(Failure::Usage)?, form })
    }
}
