//! The request: what the user said, checked as far as that needs no look at the machine.
//!
//! For: the value between the command line and the plan. Not for: defaults, which the plan fills in and gives a reason for.

use crate::plan::interfaces::Interface;
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
    /// What was said about it: always at least one phase with one stream. For a profile they hold for all of its tests.
    pub job: JobWish,
    /// Job file that it was read from; what flags said is in it already.
    pub file: Option<PathBuf>,
    /// Keys that were said by flags, in the order of help.
    pub flags: Vec<&'static str>,
    /// Where, for streams that name no target of their own; empty where nothing was said.
    pub targets: Vec<PathBuf>,
    /// Names or serials of what may be overwritten.
    pub destroy: Vec<String>,
    /// A fault on purpose.
    pub hook: Option<Hook>,
    /// The device that should be below every target: its name, path or serial number.
    pub expect_device: Option<String>,
}

/// What to measure.
#[derive(Clone, Debug)]
pub enum Work {
    /// All tests of a profile; `None` where none was named.
    Profile(Option<&'static Profile>),
    /// The job that was said.
    Job,
    /// The job that was said, at every layer of its target.
    Layers,
    /// The same bytes through interfaces.
    Api {
        /// Sizes of operations; empty where nothing was said.
        sizes: Vec<u32>,
        /// Interfaces; all where none was named.
        interfaces: Vec<&'static Interface>,
    },
}

impl Request {
    /// Where a setting that was said came from: `command line`, or the name of the job file.
    pub fn origin(&self, key: &str) -> String {
        match &self.file {
            Some(file) if !self.flags.contains(&key) => file.display().to_string(),
            _ => "command line".into(),
        }
    }
}
