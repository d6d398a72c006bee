//! The page of a check: what a reader is told of it, and the pages that were asked for.
//!
//! For: `fathom explain`. Not for: asking a check (crate `analysis`), nor its answers, which are findings.

use crate::check_id::CheckId;
use serde::{Serialize, Serializer};

/// What a reader is told of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckPage {
    /// Catalogue id.
    pub id: CheckId,
    /// Its name: `CACHE_SERVED`.
    pub name: &'static str,
    /// What its group asks.
    pub group: &'static str,
    /// The belief that it puts to the test.
    pub belief: &'static str,
    /// What it looks at.
    pub reads: &'static str,
    /// By which formula it finds something.
    pub formula: String,
    /// How to see it find something: mostly commands.
    pub provoke: &'static str,
    /// What to do about what it found.
    pub repair: String,
    /// The flag that accepts it for the exit code; `None` where nothing does.
    pub accept: Option<String>,
}

/// Pages in the order in which they were asked for. Their JSON is a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The pages, those of a group together.
    pub pages: Vec<CheckPage>,
    /// Whether they are all that there are, of which an overview may be better.
    pub all: bool,
}

impl Pages {
    /// The pages by their groups.
    pub fn groups(&self) -> impl Iterator<Item = &[CheckPage]> {
        self.pages.chunk_by(|a, b| a.group == b.group)
    }
}

impl Serialize for Pages {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.pages.serialize(to)
    }
}
