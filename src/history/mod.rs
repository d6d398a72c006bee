//! The history: earlier sessions, found again, listed, given words, handed on and removed.
//!
//! For: everything about many sessions. Not for: what is in one ([`crate::session`]), nor judging it.
//!
//! The session files are the truth, and the user's words lie beside them in files of their own. The SQLite database
//! `history.db` in the directory above is an index of both: whatever happens to it, it is made anew from them. Files that came
//! or went without fathom are noticed by name, size and time whenever the index is asked.

mod annotations;
mod capacities;
mod dates;
mod delete;
mod entry;
mod export;
mod files;
mod filter;
mod find;
mod fingerprint;
mod import;
mod index;
mod list;
mod say;
mod schema;
mod table;
mod together;

pub use annotations::read_annotations;
pub use capacities::capacities;
pub use dates::{since, until};
pub use delete::{Removal, delete};
pub use export::{Export, FORM as SESSION_FORM, export, schema};
pub use filter::Filter;
pub use find::{find, last_on};
pub use import::import;
pub use list::{Request as ListRequest, list};
pub use say::{Change, say};
pub use together::together;

use std::path::Path;

/// The id of a session file: its name without the extension.
pub fn id(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// Brings the index up to date after something was done. What cannot be written now is noticed and said by the next `list`.
pub fn remember() {
    let _ = index::with(&files::Files::scan(), |_| Ok(()));
}
