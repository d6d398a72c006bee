//! The request: what the user said, checked as far as that needs no look at the machine.
//!
//! For: the value between the command line and the plan. Not for: defaults, which the plan fills in and gives a reason for.

use model::plan::Hook;
use model::profile::Profile;
use model::wish::JobWish;
use std::path::PathBuf;

/// What the user said.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command line as typed.
    pub command: Vec<String>,
    /// What to measure.
    pub work: Work,
    /// Where, for streams that do not say it themselves; the current directory where nothing was said.
    pub targets: Vec<PathBuf>,
    /// Names or serials of what may be overwritten.
    pub destroy: Vec<String>,
    /// A fault on purpose.
    pub hook: Option<Hook>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub enum Work {
    /// All tests of a profile (`None` where none was named), with what flags say for all of them: one phase, one stream.
    Profile(Option<&'static Profile>, JobWish),
    /// One workload from flags.
    Flags(JobWish),
    /// One workload from a job file of this name.
    File(String, JobWish),
}
