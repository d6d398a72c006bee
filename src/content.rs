//! Content of files that are to be replaced: text, something that only the user removes, or anything else.
//!
//! For: looking before a report takes the place of a file. Not for: whether that may be written at all ([`crate::output`]).

use model::record::MAGIC;
use model::verification::State;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Content beyond this is not looked through: no report is as long.
const MOST_LOOKED_AT: u64 = 64 << 20;

/// What is in a file that is to be replaced.
pub(crate) enum Content {
    /// Nothing, or text.
    Replaceable,
    /// Something that only fathom makes and only the user removes.
    Kept(&'static str),
    /// Anything else, in words.
    Foreign(String),
}

impl Content {
    /// Looks through it.
    ///
    /// # Errors
    /// Why it cannot be read, but for the lack of permission.
    pub(crate) fn scan(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        // What may be written and not be read, as a log of others, is nobody's report.
        match File::open(path) {
            Ok(file) => file.take(MOST_LOOKED_AT + 1).read_to_end(&mut bytes)?,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Ok(Self::Foreign("may not be read by this user".into()));
            }
            Err(e) => return Err(e),
        };
        if bytes.starts_with(MAGIC.as_bytes()) {
            return Ok(Self::Kept("a session"));
        }
        if bytes.len() as u64 > MOST_LOOKED_AT {
            return Ok(Self::Foreign(format!(
                "has more than {} MiB, which no report has",
                MOST_LOOKED_AT >> 20
            )));
        }
        let text = str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
        Ok(match text {
            Some(text) if State::parse(text).is_ok() => Self::Kept("the state of a verification"),
            Some(_) => Self::Replaceable,
            None => Self::Foreign("is there, and is no text".into()),
        })
    }
}
