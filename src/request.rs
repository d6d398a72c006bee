//! The request: the typed settings, checked without reading the machine. The plan adds the defaults.

use crate::files::output::Replace;
use crate::interfaces::Interface;
use crate::recipes::Recipe;
use dialect::Tool;
use model::captured::RequestFilter;
use model::plan::{InjectedFault, LatencyTarget};
use model::profile::{PROFILES, Profile};
use model::spec::JobSpec;
use model::spec::axes::{Axes, Preset};
use model::spec::iometer::{Cycle, Step};
use model::sweep::Measure;
use model::verdict::SlowdownLimit;
use report::Format;
use std::path::{Path, PathBuf};

/// The user's request. The default measures nothing and keeps no session.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The command line as typed.
    pub command: Vec<String>,
    /// What to measure.
    pub work: Work,
    /// Settings of the job, which has at least one phase with one stream, unless the request is the default.
    /// For a profile they apply to all of its tests.
    pub job: JobSpec,
    /// Where the job was read from; `None` if the job consists only of flags. The flags are already
    /// applied to a job from a file.
    pub source: Option<JobSource>,
    /// Names of the settings that were typed as flags.
    pub flags: Vec<&'static str>,
    /// Targets of the streams that name no target themselves.
    pub targets: Vec<PathBuf>,
    /// What may be overwritten: paths of files, and names or serials of block devices.
    pub destroy: Vec<String>,
    /// Paths of targets that fathom may write even if it cannot see whether other processes use them.
    pub unseen_users: Vec<PathBuf>,
    /// A fault to inject, for tests; otherwise `None`.
    pub injected_fault: Option<InjectedFault>,
    /// Id or file of an earlier session whose jobs are measured again, alternating with the jobs of this request; `None` without
    /// `--against`.
    pub against: Option<String>,
    /// How much slower the jobs of this request may be than those of the earlier session; `None` for no limit.
    pub fail_if_slower: Option<SlowdownLimit>,
    /// Whether the session remains in the history.
    pub keep: bool,
    /// The device expected below every target: name, path or serial number. `None` if any device
    /// may be there.
    pub expect_device: Option<String>,
    /// Time limit in ns for the whole command, if typed.
    pub budget_ns: Option<u64>,
    /// Number of ranks that a launcher may start on one host, if typed.
    pub ranks_per_host: Option<u32>,
    /// How many hosts measure in each step, in ascending order; empty means all hosts at once.
    pub hosts: Vec<u32>,
}

/// Where a job was read from.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// A job file of the user, and the tool in whose language it is written.
    File(PathBuf, Tool),
    /// A capture, which is replayed.
    Capture(PathBuf),
    /// A job file of fathom.
    Recipe(&'static Recipe),
    /// A command line of another tool. That tool's conventions apply.
    CommandOf(Tool),
}

impl JobSource {
    /// Returns the name of the source: `job.toml`, `recipe etcd`.
    pub fn name(&self) -> String {
        match self {
            Self::File(path, _) | Self::Capture(path) => model::name::text(path),
            Self::Recipe(recipe) => format!("recipe {}", recipe.name),
            Self::CommandOf(tool) => tool.word().into(),
        }
    }

    /// Returns the default name of a job from this source.
    pub fn stem(&self) -> String {
        match self {
            Self::File(path, _) | Self::Capture(path) => {
                path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Recipe(recipe) => recipe.name.into(),
            Self::CommandOf(tool) => tool.word().into(),
        }
    }

    /// Returns the path of the user's job file or capture; `None` for other sources.
    pub fn path(&self) -> Option<&Path> {
        if let Self::File(path, _) | Self::Capture(path) = self { Some(path) } else { None }
    }

    /// Returns the text of the recipe; `None` for other sources.
    pub fn recipe(&self) -> Option<&'static str> {
        if let Self::Recipe(recipe) = self { Some(recipe.text) } else { None }
    }
}

/// What to measure.
#[derive(Clone, Debug, Default)]
pub enum Work {
    /// All tests of a profile.
    Profile(BenchSpec),
    /// The job of the request, as it is.
    #[default]
    Job,
    /// The job, at every layer of its target.
    Layers,
    /// The job as a closed loop, then as an open loop at several loads, to find the highest load within a latency target.
    Limit(LatencyTarget),
    /// The job, at every setting of a grid.
    Sweep(Box<SweepSpec>),
    /// The same bytes through several interfaces.
    Api(ApiSpec),
}

/// Which interfaces to compare, and how.
#[derive(Clone, Debug)]
pub struct ApiSpec {
    /// Sizes of operations; empty means the default.
    pub sizes: Vec<u32>,
    /// The named interfaces; empty means the common ones.
    pub interfaces: Vec<&'static Interface>,
    /// Whether to measure all interfaces.
    pub all: bool,
}

/// How a profile is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct BenchSpec {
    /// The profile, if typed.
    pub profile: Option<&'static Profile>,
    /// Whether the command may take only ten seconds.
    pub quick: bool,
    /// Whether to measure the targets in turns, and to compare each with the first.
    pub compare: bool,
}

impl BenchSpec {
    /// Returns the named profile, or the default.
    pub fn chosen(&self) -> &'static Profile {
        self.profile.unwrap_or(&PROFILES[0])
    }
}

/// The requested grid and how to search it.
#[derive(Clone, Debug)]
pub struct SweepSpec {
    /// Values of each axis, including those of the preset.
    pub axes: Axes,
    /// Axes set by flags.
    pub flags: Vec<&'static str>,
    /// The preset, if typed.
    pub preset: Option<&'static Preset>,
    /// Maximum memory for the buffers of a cell, in bytes; `None` for the default.
    pub memory: Option<u64>,
    /// Whether to measure every cell equally often.
    pub exhaustive: bool,
    /// Measure that ranks cells; `None` is the default, which depends on the access pattern.
    pub by: Option<Measure>,
    /// End the search when no cell can be faster than the winner by more than this share; `None` for the default.
    pub tolerance: Option<f64>,
    /// Test type of Iometer, if typed: whether the number of workers, targets or outstanding I/Os
    /// increases during the test.
    pub cycle: Option<Cycle>,
    /// Whether the numbers of the test type increase linearly or exponentially, if typed.
    pub step: Option<Step>,
}

/// A request to show a capture.
#[derive(Debug)]
pub struct CaptureRequest {
    /// Path of the capture file.
    pub file: PathBuf,
    /// Which requests of the capture to include.
    pub filter: RequestFilter,
    /// Format on standard output.
    pub format: &'static Format,
    /// Additional output files.
    pub outputs: Vec<PathBuf>,
    /// Which existing files the outputs may replace.
    pub replace: Replace,
    /// Whether to list the requests instead of the profile.
    pub events: bool,
}

impl Request {
    /// Whether the job comes from a command line of another tool.
    pub fn is_of_other_tool(&self) -> bool {
        matches!(self.source, Some(JobSource::CommandOf(_)))
    }

    /// Returns the origin of a setting: `command line`, the name of the job's source, preset or profile, or `the sweep`.
    pub fn origin(&self, key: &str) -> String {
        match (&self.source, &self.work) {
            _ if self.flags.contains(&key) => "command line".into(),
            (Some(source), _) => source.name(),
            (None, Work::Sweep(given)) => {
                given.preset.map_or_else(|| "the sweep".into(), |p| format!("preset {}", p.name))
            }
            (None, Work::Profile(given)) => format!("profile {}", given.chosen().name),
            _ => "command line".into(),
        }
    }
}
