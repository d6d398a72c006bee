//! Reads what a user allows next to a command line of another tool, which has no such options: `FATHOM_DESTROY` names what may be
//! overwritten, `FATHOM_UNSEEN_USERS` what may be written though users of it may be hidden.
//!
//! fathom's own commands have `--destroy` and `--unseen-users` instead.

use std::ffi::OsString;
use std::path::PathBuf;

/// Names what may be overwritten, as a list of paths like `PATH`: it may be set for many calls.
const DESTROY: &str = "FATHOM_DESTROY";
/// Names what may be written though users of it may be hidden, as such a list.
const UNSEEN_USERS: &str = "FATHOM_UNSEEN_USERS";

/// The paths that may be overwritten.
pub(crate) fn paths() -> Vec<PathBuf> {
    listed(DESTROY)
}

/// The paths that may be written though users of them may be hidden.
pub(crate) fn unseen_users() -> Vec<PathBuf> {
    listed(UNSEEN_USERS)
}

fn listed(variable: &str) -> Vec<PathBuf> {
    let list: Option<OsString> = std::env::var_os(variable);
    list.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}
