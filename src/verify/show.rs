//! Showing what came of a verification, and the exit code.
//!
//! For: standard output and error. Not for: finding anything out, nor layout (crate `report`).

use crate::failure::Failure;
use crate::signals::INTERRUPTED;
use crate::stdout;
use model::verified::{Verdict, Verified};
use report::{Format, Style, TEXT};
use std::process::ExitCode;

/// Prints the outcome and gives the exit code.
///
/// # Errors
/// Where it cannot be printed; the message then has the outcome.
pub(super) fn print(outcome: &Verified, format: &Format) -> Result<ExitCode, Failure> {
    // What was found out must not be lost with it.
    stdout::report(format, outcome, Style::default()).map_err(|why| {
        let told = stdout::in_words(TEXT, outcome, Style::default());
        Failure::Refused(format!("{}; the outcome:\n{told}", why.words()))
    })?;
    Ok(match outcome.verdict() {
        Verdict::Verified => ExitCode::SUCCESS,
        Verdict::Damaged => ExitCode::from(1),
        Verdict::Interrupted => ExitCode::from(INTERRUPTED),
    })
}
