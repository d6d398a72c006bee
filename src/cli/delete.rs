//! `fathom delete`: its flags.

use crate::history::Removal;

/// Remove sessions from the history, with their tags and notes, for good.
///
/// Nothing is asked: a whole id is sure enough, and whatever else means a session needs --yes.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    sessions: Vec<String>,
    /// Also where a word is a part of an id, a tag or `last`
    #[arg(long, help_heading = crate::cli::shared_flags::SAFETY)]
    yes: bool,
}

impl Args {
    /// Returns the request.
    pub fn request(self) -> Removal {
        Removal { sessions: self.sessions, sure: self.yes }
    }
}
