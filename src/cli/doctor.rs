//! `fathom doctor`: its flags.

use crate::doctor::Wish;
use clap::ValueEnum;
use std::path::PathBuf;

/// Look at a place before measuring it: its whole block stack, what would spoil a number, and what repairs that.
///
/// Nothing is written or changed. It watches for 3 seconds what others do. Every line is OK, a FINDING with what to do
/// about it, or NOT CHECKED with the reason; `fathom explain ID` tells more of the check that a finding names.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit codes: 0 looked, whatever was found; 2 usage; 3 the machine refused.")]
pub struct Args {
    /// Directory, file or block device
    #[arg(default_value = ".")]
    target: PathBuf,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: FormWord,
}

/// The words of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormWord {
    /// To read
    Text,
    /// Everything, for programs
    Json,
}

impl Args {
    /// What was said.
    pub fn wish(self) -> Wish {
        Wish { target: self.target, json: self.format == FormWord::Json }
    }
}
