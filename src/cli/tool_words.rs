//! The command line of another tool, taken word by word without parsing its options.

use model::name;
use std::ffi::OsString;

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
