//! `fathom bench`: its flags.

use crate::cli::shared_flags::{
    BudgetArgs, FleetArgs, Measuring, ReportArgs, SlowerArgs, WHAT, check_job, one_named, target_parser,
};
use crate::cli::usage_error::NOT_QUICK;
use crate::failure::Failure;
use crate::request::{BenchSpec, Request, Work};
use crate::show::Showing;
use model::profile::{PROFILES, Profile};
use std::path::PathBuf;

/// Run the standard benchmarks on a directory, file or device, in random order, each repeated and judged.
///
/// In a directory, fathom makes a test file, writes it completely, and removes it at the end. A file or a block device is only read,
/// unless --destroy names it.
///
/// Several targets are measured one after the other, each in its own session, and the report is a table with a row for each device.
/// --compare measures them in turns, which shows smaller differences.
///
/// To check whether the numbers are plausible, copy a large file: `fathom time -- cp FILE TARGET` prints what the copy did to the devices.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directories, files or block devices [default: the current directory]
    #[arg(value_parser = target_parser())]
    target: Vec<PathBuf>,
    /// Finish each target in 10 s: one run of at most half a second per test, without confidence intervals and the checks that need them
    #[arg(long, conflicts_with_all = NOT_QUICK, help_heading = WHAT)]
    quick: bool,
    /// Run each test alternately on these targets, and compare each target with the first. After five rounds, the tests that vary most get
    /// further runs until --budget is spent
    #[arg(long, value_name = "TARGET", num_args = 2.., value_parser = target_parser(), conflicts_with_all = ["target", "against"], help_heading = WHAT)]
    compare: Vec<PathBuf>,
    /// Named list of tests [default: cdm]
    #[arg(long, value_name = "NAME", value_parser = one_named(PROFILES, |p| (p.name, p.about)), help_heading = WHAT)]
    profile: Option<&'static Profile>,
    /// Repeat the workloads of an earlier session, in turns with the new ones, and compare. SESSION
    /// is its file, its id or a part of its id, a tag, or `last`
    #[arg(long, value_name = "SESSION", help_heading = WHAT)]
    against: Option<String>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    report: ReportArgs,
}

impl Args {
    /// Returns a request for each target that is measured in its own session.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn requests(self) -> Result<(Vec<Request>, Showing), Failure> {
        let work = BenchSpec { profile: self.profile, quick: self.quick, compare: !self.compare.is_empty() };
        if self.budget.budget.is_some() && self.compare.is_empty() {
            return Err(Failure::Usage(
                "--budget limits the time of --compare, and there is no --compare; type --runs or --time instead"
                    .into(),
            ));
        }
        let is_several = self.target.len() > 1;
        let targets = self.target.into_iter().chain(self.compare);
        let mut request = self.measuring.request(Work::Profile(work), targets);
        request.against = self.against;
        request.budget_ns = self.budget.budget;
        request.ranks_per_host = self.fleet.ranks_per_host;
        request.fail_if_slower = self.slower.slower();
        check_job(&request.job)?;
        if !is_several {
            return Ok((vec![request], self.report.showing()?));
        }
        let flags_of_one_target =
            [("--against", request.against.is_some()), ("--op-log", request.job.op_log.is_some())];
        if let Some((flag, _)) = flags_of_one_target.into_iter().find(|(_, is_typed)| *is_typed) {
            return Err(Failure::Usage(format!(
                "{flag} applies to the measurement of one target; name one target, or leave {flag} out"
            )));
        }
        let same_place = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        for (at, target) in request.targets.iter().enumerate() {
            if request.targets.iter().take(at).any(|other| same_place(other) == same_place(target)) {
                return Err(Failure::Usage(format!(
                    "TARGET {} is named twice; name each target once",
                    model::name::shown(target)
                )));
            }
        }
        let request_for = |target: &PathBuf| Request { targets: vec![target.clone()], ..request.clone() };
        Ok((request.targets.iter().map(request_for).collect(), self.report.showing_of_sessions()?))
    }
}
