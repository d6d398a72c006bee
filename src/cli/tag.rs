//! `fathom tag`: its flags.

use crate::history::Change;

/// Tag a session.
///
/// A tag that only one session has means it wherever a session is asked for. Tags lie in a file beside the session (ID.words.json) and go with it in `fathom export` and `fathom import`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The session: its file, its id or a part of that, a tag, `last`, or `last~1` for the one before
    pub session: String,
    /// Words
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Take the words away instead
    #[arg(long, help_heading = crate::cli::shared_flags::WHAT)]
    remove: bool,
}

impl Args {
    /// Returns the change.
    pub fn change(&self) -> Change {
        let words = self.words.clone();
        if self.remove { Change::Untag(words) } else { Change::Tag(words) }
    }
}
