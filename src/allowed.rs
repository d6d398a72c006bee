//! What may be overwritten, said beside a command line that cannot be changed: `FATHOM_DESTROY`.
//!
//! For: other tools' calls, typed by programs. Not for: fathom's own commands, which have `--destroy`.

use std::ffi::OsString;
use std::path::PathBuf;

/// Names what may be overwritten, as a list of paths like `PATH`: it may be set for many calls.
const VARIABLE: &str = "FATHOM_DESTROY";

/// The paths that it names.
pub(crate) fn paths() -> Vec<PathBuf> {
    let list: Option<OsString> = std::env::var_os(VARIABLE);
    list.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}
