//! Turns a target on the command line into a path: a file of that name, or else the block device with that kernel name.

use crate::stderr;
use clap::builder::{OsStringValueParser, TypedValueParser};
use machine::devices;
use machine::root::Root;
use model::name;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Parses a target.
pub(super) fn parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|typed: OsString| from_argument(&typed))
}

/// Returns the path of a target as typed. Names both if a file in the current directory has the name of a block device.
pub(super) fn from_argument(typed: &OsStr) -> PathBuf {
    let path = Path::new(typed);
    let Some(node) = devices::node(&Root::real(), path) else { return path.to_owned() };
    if std::fs::symlink_metadata(path).is_err() {
        return node;
    }
    stderr::say(&format!(
        "fathom: {typed} is the file in the current directory; for the block device type {}",
        name::shown(&node),
        typed = name::shown(path)
    ));
    path.to_owned()
}
