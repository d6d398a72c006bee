//! What a language of workloads is: whose files are written in it, and how one is read.
//!
//! For: what every language says of itself. Not for: which there are (the table, [`crate::LANGUAGES`]).

use crate::trouble::Trouble;
use model::spec::{JobSpec, Problem};

/// Largest file in bytes; a thousand streams with every setting take a quarter of it.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// What is known outside this crate against a workload, such as an engine that there is not.
pub(crate) type Objections<'o> = &'o dyn Fn(&JobSpec) -> Vec<Problem>;

/// A tool by its job files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// This one: TOML.
    Fathom,
    /// Sections with `key=value`.
    Fio,
    /// A configuration, whose lines are headings and values in turn.
    Iometer,
    /// XML: a profile, or results with their profile.
    Diskspd,
}

impl Tool {
    /// As its users write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fathom => "fathom",
            Self::Fio => "fio",
            Self::Iometer => "Iometer",
            Self::Diskspd => "DISKSPD",
        }
    }
}

/// A line of the table of languages.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Whose it is.
    pub tool: Tool,
    /// How names of its files end, without the point.
    pub extension: &'static str,
    /// Reads a text, of which messages speak by this name. What it gives contradicts itself nowhere, and nobody objects to it.
    pub parse: fn(&str, &str, Objections) -> Result<JobSpec, Trouble>,
}
