//! Entries: keys of a job file with their values and comments.
//!
//! For: what streams are written down as. Not for: what the values are.

/// A key of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: &'static str,
    /// As it stands in the file.
    pub(super) value: String,
    /// Where it comes from and how well it fits.
    pub(super) comment: String,
}

impl Entry {
    pub(super) fn text(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: format!("{value:?}"), comment }
    }

    pub(super) fn bare(key: &'static str, value: &str, comment: String) -> Self {
        Self { key, value: value.to_owned(), comment }
    }
}
