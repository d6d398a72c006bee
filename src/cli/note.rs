//! `fathom note`: its flags.

use crate::history::Change;

/// Write a note to a session, for whoever reads its report later.
///
/// Notes lie in a file beside the session (ID.words.json) and go with it in `fathom export` and `fathom import`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The session: its file, its id or a part of that, a tag, `last`, or `last~1` for the one before
    pub session: String,
    /// What to write
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
}

impl Args {
    /// Returns the change.
    pub fn change(&self) -> Change {
        Change::Note(self.text.join(" "))
    }
}
