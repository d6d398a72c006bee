//! `fathom fit`: its flags.

use crate::capture::fit::{Action, CheckRequest, Request};
use crate::cli::shared_flags;
use crate::cli::shared_flags::{OUTPUT, SAFETY, UnseenArgs, WHAT, formats_of};
use crate::failure::Failure;
use crate::files::output::Replace;
use model::replay::FitCheck;
use report::Format;
use std::ffi::OsString;
use std::path::PathBuf;

/// Fit a job to a capture: a job file that behaves like the captured load, for `fathom run`.
///
/// Each task becomes streams: sizes, order and zones of offsets, runs, a closed loop with think times or an open one with arrivals, and
/// flushes. Each figure in the file has a comment: where it comes from and how well it fits. `fathom run CAPTURE` submits the requests
/// themselves again; a fitted job can be read, changed, and run for as long as you like.
///
/// With --check the job is run once on TARGET while the device of TARGET is captured, and both captures are compared, each figure with its
/// goal. That needs root, as `fathom capture` does.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  fathom fit db.capture -o job.toml                       write the job
  fathom run job.toml /dev/nvme1n1 --destroy SERIAL       run it
  fathom fit --check db.capture /dev/nvme1n1 --destroy SERIAL
  fathom fit --check db.capture /dev/nvme1n1 --destroy SERIAL --job job.toml

Exit codes: 0 fitted, or all goals are met; 1 a goal is missed, or the capture is cut off or damaged and was fitted as far as it is whole; 2 usage; 3 the machine refused; 4 no goal is missed, and one cannot be told; 130 interrupted.")]
pub struct Args {
    /// What `fathom capture` wrote
    capture: PathBuf,
    /// With --check: block device, file or directory that the job runs on
    #[arg(required_if_eq("check", "true"), value_parser = shared_flags::parser())]
    target: Option<PathBuf>,
    /// Run the job on TARGET, and compare it with the capture
    #[arg(long, help_heading = WHAT)]
    check: bool,
    /// With --check: run this job file, and not one that is fitted for it
    #[arg(long, help_heading = WHAT, value_name = "FILE", requires = "check")]
    job: Option<PathBuf>,
    /// The job file, or - for standard output, the default; with --check a file for the comparison, by its extension
    #[arg(short, long, help_heading = OUTPUT, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// With --check: form of the comparison
    #[arg(long, help_heading = OUTPUT, default_value = "text", value_parser = formats_of::<FitCheck>())]
    format: &'static Format,
    /// Replace a file that is there and is no text
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
    /// With --check: allow overwriting an existing file (its path) or a block device (its name or serial)
    #[arg(long, help_heading = SAFETY, value_name = "NAME", requires = "check")]
    destroy: Option<OsString>,
    #[command(flatten)]
    unseen: UnseenArgs,
}

impl Args {
    /// Returns the action.
    ///
    /// # Errors
    /// A usage failure for options that the action does not use.
    pub fn into_action(self) -> Result<Action, Failure> {
        let replace = Replace::by(self.force);
        let Some(target) = self.target else { return self.plain(replace) };
        if !self.check {
            return Err(Failure::Usage(
                "a TARGET is what --check runs the job on; type --check too, or leave it out and type fathom run JOB TARGET".into(),
            ));
        }
        Ok(Action::Check(Box::new(CheckRequest {
            capture: self.capture,
            target,
            job: self.job,
            destroy: self.destroy,
            unseen_users: self.unseen.unseen_users,
            format: self.format,
            outputs: self.output,
            replace,
        })))
    }

    fn plain(self, replace: Replace) -> Result<Action, Failure> {
        if self.format.name != "text" {
            return Err(Failure::Usage(format!(
                "--format {}: a job is a TOML file; leave it out, or type --check too",
                self.format.name
            )));
        }
        if self.output.len() > 1 {
            return Err(Failure::Usage("a job is one file; type -o once".into()));
        }
        Ok(Action::Fit(Request { capture: self.capture, output: self.output.into_iter().next(), replace }))
    }
}
