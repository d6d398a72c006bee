//! Takes the place of `fathom capture` and `fathom fit` in a build without the feature `capture`.
#![allow(clippy::unused_self, reason = "the functions have the signatures of those that they replace")]

use crate::capture::fit::Action;
use crate::capture::left_out;
use crate::failure::Failure;
use std::convert::Infallible;
use std::ffi::OsString;

/// Not in this build: it needs the feature `capture`.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<OsString>,
}

pub(super) use {Args as CaptureArgs, Args as FitArgs};

impl Args {
    /// Refuses `fathom capture`.
    ///
    /// # Errors
    /// Always.
    pub fn request(self) -> Result<Infallible, Failure> {
        Err(left_out("`fathom capture`"))
    }

    /// Refuses `fathom fit`.
    ///
    /// # Errors
    /// Always.
    pub fn into_action(self) -> Result<Action, Failure> {
        Err(left_out("`fathom fit`"))
    }
}

#[test]
fn left_out_commands_name_the_feature() {
    use crate::cli::{Cli, Command};
    for line in ["fathom capture vda -o x --time 1s", "fathom fit --check x.capture vda", "fathom fit --help"]
    {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let parsed = Cli::parse_words(&words).map(|cli| match cli.command {
            Command::Capture(args) => args.request().map(|_| ()),
            Command::Fit(args) => args.into_action().map(|_| ()),
            other => panic!("{other:?}"),
        });
        let refused =
            parsed.unwrap_or_else(|e| panic!("{line}: {e}")).map_err(|why| why.message().to_owned());
        assert!(refused.is_err_and(|why| why.contains("--features capture")), "{line}");
    }
}
