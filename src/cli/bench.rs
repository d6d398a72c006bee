//! `fathom bench`: its flags.

use super::common::{Measuring, ShowingArgs};
use super::gates::{InconclusiveArgs, SlowerArgs};
use super::headings::{OUTPUT, WHAT};
use crate::failure::Failure;
use crate::request::{Request, Work};
use crate::show::Showing;
use clap::builder::{PossibleValue, PossibleValuesParser};
use model::profile;
use std::path::PathBuf;

/// Run the standard benchmarks on a directory, file or device, in random order, each repeated and judged.
///
/// In a directory a test file is made, written whole and removed at the end; a file or a block device is only read,
/// unless --destroy names it.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory, file or block device [default: the current directory]
    target: Option<PathBuf>,
    /// Named list of tests [default: cdm]
    #[arg(long, value_name = "NAME", value_parser = names(), help_heading = WHAT)]
    profile: Option<String>,
    /// Measure the workloads of an earlier session again beside these, in turns, and compare: its file, its id or a part of that, or
    /// `last`
    #[arg(long, value_name = "SESSION", help_heading = WHAT)]
    against: Option<String>,
    #[command(flatten)]
    measuring: Measuring,
    /// Print what would be measured, with the origin of every setting, and stop
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    #[command(flatten)]
    showing: ShowingArgs,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(profile::PROFILES.iter().map(|p| PossibleValue::new(p.name).help(p.about)))
}

impl Args {
    /// What was said.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<(Request, Showing), Failure> {
        let profile = self.profile.as_deref().and_then(profile::find);
        let mut request = self.measuring.request(Work::Profile(profile), self.target);
        request.against = self.against;
        request.fail_if_slower = self.slower.slower();
        if let Some(problem) = request.job.check().into_iter().next() {
            return Err(Failure::Usage(problem.in_flags()));
        }
        Ok((request, self.showing.gated(self.explain, &self.inconclusive)?))
    }
}
