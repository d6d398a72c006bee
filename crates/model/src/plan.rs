//! The plan: what was meant, with every default filled in and the place it came from.
//!
//! For: the value between the command line and the engine, kept word for word in the session file.
//! Not for: what happened.

use crate::Known;
use crate::fleet::Part;
use crate::gate::{Condition, Slower};
use crate::identity::Identity;
use crate::job::{Create, Job, Stream};
pub use crate::ledger::{ComparedLayer, LayerComparison};
pub use crate::load::LatencyTarget;
use crate::payload::split_mix;
use crate::record::attempts::Pairing;
use crate::report::Report;
use crate::spec::limits::ATTEMPTS;
use crate::study::Study;
use crate::targets::TargetLayout;
use crate::typed::Typed;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Everything that one invocation is going to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    /// The command line as typed.
    pub command: Vec<String>,
    /// What the report calls the whole: `bench cdm`, `run`.
    pub title: String,
    /// Files and devices that are touched.
    pub targets: Vec<Target>,
    /// Workloads, in the order of the report.
    pub jobs: Vec<Job>,
    /// Index of the job whose figure is the headline.
    pub headline: usize,
    /// Times each job is measured; at least so often where the strategy decides.
    pub runs: u32,
    /// What decides how often each job is measured, and at which load.
    #[serde(default)]
    pub strategy: Strategy,
    /// Times that a run which others disturb is measured at most.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// Under which conditions it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_if: Vec<Condition>,
    /// By how much the workloads of this session may be slower than those of the earlier one beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_if_slower: Option<Slower>,
    /// Seed of offsets, data and the order of runs.
    pub seed: u64,
    /// Id of the session before on one of the targets, if it drew the same offsets: the same seed, file and accesses. The reason if the
    /// history cannot be read. `None` if anything differs, or no seed was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_again: Option<Known<String>>,
    /// Whether the targets are evicted from the page cache and written back before each run.
    pub cold: bool,
    /// Length of the idle watch before the first run.
    pub baseline_ns: u64,
    /// Time in ns after which the making of a test file ends with what is there.
    #[serde(default = "making_ns")]
    pub making_ns: u64,
    /// Of a quick look: ns from the beginning after which no row is begun any more but that of the headline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_ns: Option<u64>,
    /// Time budget of a command that answers a question, in ns from the start of the session; `None` if nothing limits it.
    /// A sweep keeps its budget in its grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Every setting with its value and where it came from.
    pub origins: Vec<Origin>,
    /// Fault put in on purpose by fathom's own tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    /// Kernel name or serial number of the device that the user believes to be below every target, where one was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_device: Option<String>,
    /// The earlier session whose jobs are measured again beside the others; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Rerun>,
    /// What the jobs are to answer together.
    #[serde(flatten)]
    pub study: Study,
    /// What is written before the first run, so that the storage is in the state that lasts; `None` where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// File that the log of its operations is written to; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_log: Option<String>,
    /// What was typed in the language of another tool; `None` where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// Which part of a measurement on several hosts this is; `None` where one host measures alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// What sessions of before this could be said hold.
fn attempts() -> u32 {
    ATTEMPTS
}

/// Longest time in ns that making a test file takes unless something else is said.
pub const MAKING_NS: u64 = 15_000_000_000;

/// What sessions of before it was in the plan had.
fn making_ns() -> u64 {
    MAKING_NS
}

// By hand, since one thing is told by two keys: a load curve by the strategy that chooses its loads.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut plan = Self::deserialize(from)?;
        if let Strategy::Limit(latency_target) = plan.strategy {
            plan.study = Study::Limit(latency_target);
        }
        Ok(plan)
    }
}

impl Plan {
    /// The seed that offsets and data are drawn with. All hosts of a fleet have one seed, by which all go through their runs in the same
    /// order, and none draws what another one does: what one has read another's cache may hold.
    pub fn drawn_by(&self) -> u64 {
        match self.part {
            Some(Part { rank, .. }) if rank > 0 => split_mix(self.seed ^ split_mix(u64::from(rank))),
            _ => self.seed,
        }
    }

    /// A made file that other hosts open too. One host alone needs no name for it.
    pub fn common(&self, target: usize) -> Option<&Common> {
        self.part.and(self.targets.get(target)?.common.as_ref())
    }

    /// Whether this host is that of a rank.
    pub fn is_rank(&self, rank: u32) -> bool {
        self.part.is_none_or(|part| part.rank == rank)
    }

    /// Which task of how many the first worker of a stream is, and how many tasks a host has: the workers of all hosts that take part in
    /// its job, host by host.
    pub fn tasks(&self, job: usize, stream: &Stream) -> (u64, u64) {
        let Part { rank, hosts, .. } = self.part.unwrap_or(Part { rank: 0, hosts: 1, neighbours: 0 });
        let hosts = self.hosts_of(job, hosts as usize).max(1) as u64;
        let workers = u64::from(stream.workers);
        let host = (u64::from(rank) + u64::from(stream.shift_hosts)) % hosts;
        (host * workers, hosts * workers)
    }

    /// How many of so many hosts take part in a job.
    pub fn hosts_of(&self, job: usize, all: usize) -> usize {
        match &self.study {
            Study::Hosts(steps) => steps.taking_part(job, all),
            _ => all,
        }
    }

    /// The part of a load offered to all hosts that is this one's.
    pub fn offered_here(&self, iops: u64) -> f64 {
        iops as f64 / self.part.map_or(1.0, |part| f64::from(part.hosts.max(1)))
    }

    /// Whether this host takes part in a job.
    pub fn takes_part(&self, job: usize) -> bool {
        match (&self.study, self.part) {
            (Study::Hosts(steps), Some(part)) => steps.takes_part(part.rank, job),
            _ => true,
        }
    }

    /// The number of results of a session: jobs, or commands of the user.
    pub fn results(&self) -> usize {
        match &self.study {
            Study::Commands(study) => study.commands.len(),
            _ => self.jobs.len(),
        }
    }

    /// Whether a condition is asked of it.
    pub fn is_gated(&self) -> bool {
        !self.fail_if.is_empty() || self.fail_if_slower.is_some()
    }

    /// Which runs are measured again together.
    pub fn pairing(&self) -> Pairing {
        match self.strategy {
            Strategy::Targets(layout) => Pairing::Tests(layout),
            _ if self.is_paired() => Pairing::Rounds,
            _ => Pairing::Runs,
        }
    }

    /// Whether runs of one round are compared with one another, so that a round is whole or nothing.
    pub fn is_paired(&self) -> bool {
        self.against.is_some() || matches!(self.study, Study::Layers(_) | Study::Targets(_) | Study::Hosts(_))
    }
}

/// What is written before the first run: everything that the jobs touch, over and over from end to end, and then the work
/// itself until its rate settles (SNIA SSS PTS 2.0: workload independent and workload dependent preconditioning).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Sequential writers of everything that the jobs touch, one after another.
    pub fills: Vec<Stream>,
    /// Times that each of them goes over its span.
    pub passes: u32,
    /// Indices of the jobs that write: these are then carried out in rounds.
    pub jobs: Vec<usize>,
    /// Rounds after which the first run begins, whether the rates have settled or not.
    pub rounds_at_most: u32,
}

/// What decides, while measuring, how often each job is measured and at which load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// As often as the plan says.
    #[default]
    Fixed,
    /// Until the 95 % interval of each job's rate is no wider than this share of it to either side.
    Precision {
        /// Half of the interval by the rate.
        share: f64,
        /// Runs after which it ends, whatever it has reached.
        at_most: u32,
    },
    /// Until the rates of the last runs of each job are steady; the runs before are its way there.
    Steady {
        /// Runs after which it ends, whatever it has reached.
        at_most: u32,
    },
    /// As often as the plan says, and where its conditions cannot be told then, once as many times more as should tell them.
    Settle {
        /// Runs after which it ends, whatever can be told.
        at_most: u32,
    },
    /// As often as the plan says; then the tests of the layout whose intervals are wide, until all are narrow or the time is up.
    Targets(TargetLayout),
    /// First job: the capacity in a closed loop. Second job: an open loop at loads up to that, then at those between which the
    /// latency target is missed.
    Limit(LatencyTarget),
}

/// An earlier session whose jobs are measured again beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// Its id.
    pub session: String,
    /// Index of the first of its jobs: the jobs from there on are its, as it had them.
    pub from: usize,
    /// Index of the job whose figure is the headline of these.
    pub headline: usize,
    /// What it came to, as judged before this one began; without its course.
    pub then: Box<Report>,
}

/// A file or device of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The path as given, made absolute. For a made file: the directory.
    pub path: String,
    /// What it is to us.
    pub role: Role,
    /// Bytes that may be touched. For a made file the size wished for; preparation may make it smaller.
    pub bytes: u64,
    /// Alignment that direct I/O to it needs, of offsets and lengths.
    pub block_bytes: u32,
    /// Whether this invocation may write to it.
    pub writable: bool,
    /// What it is, so that nothing else is touched in its place; for a made file its directory. `None` for what is nothing, and in
    /// sessions of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whether `--unseen-users` names it: it may be written though users of it may be hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen_users: bool,
    /// Whether it may be written only because fathom made it. Its mark is checked again before the first run, since another program may
    /// have written the file after the plan was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_by_mark: bool,
    /// Other names that were given for it, as they were typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_names: Vec<String>,
    /// A file that is made before the first run, or made again where fathom had made it, and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    /// Whose file it is, where it is made.
    #[serde(default, skip_serializing_if = "MadeFor::is_host")]
    pub made_for: MadeFor,
    /// How the other hosts find it, where it is made and they open it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Whose file a made one is: in one directory there is one for each of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeFor {
    /// All workers of the host that makes it.
    #[default]
    Host,
    /// The worker of this number.
    Worker(u32),
    /// All workers of all hosts, each of which has written its own part.
    All,
}

impl MadeFor {
    /// Whose file a target of this role is: what is not made is nobody's own.
    #[must_use]
    pub fn where_made(self, role: Role) -> Self {
        if role == Role::Made { self } else { Self::Host }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
    fn is_host(&self) -> bool {
        *self == Self::Host
    }
}

/// A made file that has a name by which other hosts open it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Its name in the directory.
    pub name: String,
    /// Rank of the host that makes it, and removes it.
    pub maker: u32,
}

/// What a target is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A file of our own, made in the directory and removed at the end.
    Made,
    /// A file of the user's.
    File,
    /// A block device.
    Device,
    /// Nothing: engines that move no bytes.
    None,
}

/// A setting with its value and the place it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the setting, as in the flags where there is one.
    pub setting: String,
    /// Its value in words.
    pub value: String,
    /// `--bs`, `profile cdm`, `default`, `statx`, ...
    pub from: String,
}

/// A fault put in on purpose by fathom's own tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// The first worker panics after some hundred operations.
    PanicWorker,
    /// The thread that measures panics at its first look at the devices while workers run.
    PanicMain,
    /// No evidence is taken while workers run, so that what taking it costs can be measured.
    NoEvidence,
}
