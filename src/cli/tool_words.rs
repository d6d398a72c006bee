//! Words of another tool's command line, and how such a command ends.
//!
//! For: dd, hdparm and ioping, which are answered as those tools answer. Not for: their languages (crate `dialect`), nor what they do
//! ([`crate::plain`]).

use crate::{stderr, stdout};
use dialect::Trouble;
use model::name;
use std::ffi::OsString;
use std::process::ExitCode;

// No comment of documentation: it would be said of each command that has these words.
#[derive(clap::Args, Debug)]
pub(super) struct ToolWords {
    /// What would be typed behind the tool's name
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl ToolWords {
    /// As text that leads back to any bytes.
    pub(super) fn text(&self) -> Vec<String> {
        self.words.iter().map(name::text).collect()
    }
}

/// Prints what was asked for; 1 where nobody can read it.
pub(super) fn print(text: &str) -> ExitCode {
    stdout::text(text).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Says what is wrong with the words, as the tool names itself, and ends with its exit code for that.
pub(super) fn refuse(tool: &str, trouble: &Trouble, code: ExitCode) -> ExitCode {
    stderr::say_coloured(&format!("{tool}: {trouble}"), &format!("{tool}: {}", trouble.coloured()));
    code
}
