//! What is known of the users of a device or file.
//!
//! For: the answer that all who look for users give. Not for: looking (`in_use`, `writers`).

/// What was found out about users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is ... .
    By(String),
    /// Nobody uses it.
    Nobody,
    /// Nobody was seen to use it; what could not be seen, in words.
    Unseen(String),
    /// No user was seen, but one may well be hidden: only `--unseen-users` allows writing. The reason.
    Hidden(String),
}
