//! `fathom import`: its flags.

use std::path::PathBuf;

/// Take sessions of other machines into the history.
///
/// Each file is read whole before it is copied, with the tags and notes beside it. A session that is there already is
/// skipped, and nothing is written over.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Session files, as `fathom export` writes them
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}
