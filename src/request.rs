//! The request: what the user said, checked as far as that needs no look at the machine.
//!
//! For: the value between the command line and the plan. Not for: defaults, which the plan fills in and gives a reason for.

use crate::cli::recipe::Recipe;
use crate::plan::api::Interface;
use dialect::Tool;
use model::gate::Slower;
use model::measure::Measure;
use model::plan::{Hook, LatencyTarget};
use model::profile::{PROFILES, Profile};
use model::spec::JobSpec;
use model::spec::axes::Axes;
use model::spec::cycle::{Cycle, Step};
use model::spec::presets::Preset;
use std::path::{Path, PathBuf};

/// What the user said.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command line as typed.
    pub command: Vec<String>,
    /// What to measure.
    pub work: Work,
    /// What was said about it: always at least one phase with one stream. For a profile they hold for all of its tests.
    pub job: JobSpec,
    /// Where the job was read from, if not from flags alone; what these said is in it already.
    pub source: Option<JobSource>,
    /// Keys that were said by flags, in the order of help.
    pub flags: Vec<&'static str>,
    /// Where, for streams that name no target of their own; empty where nothing was said.
    pub targets: Vec<PathBuf>,
    /// Names or serials of what may be overwritten.
    pub destroy: Vec<String>,
    /// Paths of what may be written though users of it may be hidden.
    pub unseen_users: Vec<PathBuf>,
    /// A fault on purpose.
    pub hook: Option<Hook>,
    /// Word for the earlier session whose jobs are to be measured again beside these.
    pub against: Option<String>,
    /// By how much these may be slower than those.
    pub fail_if_slower: Option<Slower>,
    /// Whether the session stays in the history.
    pub keep: bool,
    /// The device that should be below every target: its name, path or serial number.
    pub expect_device: Option<String>,
    /// Time budget in ns of a command that answers a question, if it was typed.
    pub budget_ns: Option<u64>,
    /// How many ranks of a launcher may be on one host, where that was said.
    pub ranks_per_host: Option<u32>,
    /// Numbers of hosts that are to measure it one after another, in ascending order; empty where all do and nothing was said.
    pub hosts: Vec<u32>,
}

/// Where a job was read from.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// A job file of the user's.
    File(PathBuf),
    /// A job file of ours.
    Recipe(&'static Recipe),
    /// A command line of another tool's, whose manners are kept.
    CommandOf(Tool),
}

impl JobSource {
    /// What it is called: `job.toml`, `recipe etcd`.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => model::name::text(path),
            Self::Recipe(recipe) => format!("recipe {}", recipe.name),
            Self::CommandOf(tool) => tool.word().into(),
        }
    }

    /// What a job is called that has no name of its own.
    pub fn stem(&self) -> String {
        match self {
            Self::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Recipe(recipe) => recipe.name.into(),
            Self::CommandOf(tool) => tool.word().into(),
        }
    }

    /// The user's file.
    pub fn path(&self) -> Option<&Path> {
        if let Self::File(path) = self { Some(path) } else { None }
    }

    /// The text of ours.
    pub fn recipe(&self) -> Option<&'static str> {
        if let Self::Recipe(recipe) = self { Some(recipe.text) } else { None }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub enum Work {
    /// All tests of a profile.
    Profile(BenchSpec),
    /// The job that was said.
    Job,
    /// The job that was said, at every layer of its target.
    Layers,
    /// The job that was said as a closed loop, and at loads up to what it serves and a latency target allows.
    Limit(LatencyTarget),
    /// The job that was said, at every setting of a grid.
    Sweep(Box<SweepSpec>),
    /// The same bytes through interfaces.
    Api {
        /// Sizes of operations; empty where nothing was said.
        sizes: Vec<u32>,
        /// The interfaces that were named; the common ones if none was.
        interfaces: Vec<&'static Interface>,
        /// All interfaces instead.
        all: bool,
    },
}

/// How a profile is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct BenchSpec {
    /// Which; `None` where none was named.
    pub profile: Option<&'static Profile>,
    /// In ten seconds, whatever can be said then.
    pub quick: bool,
    /// On each target in turns, which are compared.
    pub compare: bool,
}

impl BenchSpec {
    /// Which it is.
    pub fn chosen(&self) -> &'static Profile {
        self.profile.unwrap_or(&PROFILES[0])
    }
}

/// The grid that was asked for, and how it is searched.
#[derive(Clone, Debug)]
pub struct SweepSpec {
    /// Values of each axis, those of the preset among them.
    pub axes: Axes,
    /// Axes that were said by flags.
    pub flags: Vec<&'static str>,
    /// The named grid.
    pub preset: Option<&'static Preset>,
    /// Most bytes of a cell's buffers.
    pub memory: Option<u64>,
    /// Measure every cell equally often.
    pub exhaustive: bool,
    /// What cells are ranked by; what their work is about where nothing was said.
    pub by: Option<Measure>,
    /// By how much a cell may be faster than the winner, as a share.
    pub tolerance: Option<f64>,
    /// Test type of Iometer.
    pub cycle: Option<Cycle>,
    /// By which law its numbers rise.
    pub step: Option<Step>,
}

impl Request {
    /// Where a setting that was said came from: `command line`, the name of the job file, or that of a preset or a profile.
    pub fn origin(&self, key: &str) -> String {
        match (&self.source, &self.work) {
            (Some(source), _) if !self.flags.contains(&key) => source.name(),
            (_, Work::Sweep(said)) if !self.flags.contains(&key) => {
                said.preset.map_or_else(|| "the sweep".into(), |p| format!("preset {}", p.name))
            }
            (_, Work::Profile(said)) if !self.flags.contains(&key) => {
                format!("profile {}", said.chosen().name)
            }
            _ => "command line".into(),
        }
    }
}
