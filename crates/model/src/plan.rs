//! The plan: everything that one invocation measures, with every default filled in and the origin of each setting.
//!
//! The session file keeps the plan word for word. [`Cost`] says how long a plan takes and how much it writes.

use crate::Known;
pub use crate::figures::{ComparedLayer, LayerComparison};
use crate::fleet::Part;
use crate::job::{Create, Job, Stream};
use crate::machine::{Identity, Machine};
use crate::payload::split_mix;
use crate::record::attempts::Pairing;
use crate::report::Report;
use crate::spec::Typed;
use crate::spec::number::ATTEMPTS;
pub use crate::study::LatencyTarget;
use crate::study::{Study, TargetLayout};
use crate::units::{minutes, show_bytes, show_ns};
use crate::verdict::{Condition, Slower};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Everything that one invocation measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Plan {
    /// The command line as typed.
    pub command: Vec<String>,
    /// Title in the report: `bench cdm`, `run`.
    pub title: String,
    /// Files and devices that are touched.
    pub targets: Vec<Target>,
    /// Workloads, in the order of the report.
    pub jobs: Vec<Job>,
    /// Index of the job that gives the headline.
    pub headline: usize,
    /// Times each job is measured; the minimum if the strategy decides.
    pub runs: u32,
    /// The rule for how often each job is measured, and at which load.
    #[serde(default)]
    pub strategy: Strategy,
    /// The most times that a disturbed run is measured.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// Conditions under which the measurement fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_if: Vec<Condition>,
    /// How much slower the workloads of this session may be than those of the earlier one measured next to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_if_slower: Option<Slower>,
    /// Seed of offsets, data and the order of runs.
    pub seed: u64,
    /// Id of the previous session on one of the targets, if it drew the same offsets: the same seed, file and
    /// accesses. The reason if the history cannot be read. `None` if anything differs, or no seed was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_again: Option<Known<String>>,
    /// Whether the targets are evicted from the page cache and written back before each run.
    pub cold: bool,
    /// Length of the idle watch before the first run.
    pub baseline_ns: u64,
    /// Time limit in ns for making a test file; after it, the file remains as small as it is.
    #[serde(default = "making_ns")]
    pub making_ns: u64,
    /// For a quick look: ns from the beginning after which only the headline row may still begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_ns: Option<u64>,
    /// Time budget of a command that answers a question, in ns from the start of the session; `None` if nothing limits it.
    /// A sweep keeps its budget in its grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Every setting with its value and its origin.
    pub origins: Vec<Origin>,
    /// Fault put in on purpose by fathom's own tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
    /// Kernel name or serial number of the device that the user expects below every target, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_device: Option<String>,
    /// The earlier session whose jobs are measured again next to the others; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Rerun>,
    /// The question that the jobs answer together.
    #[serde(flatten)]
    pub study: Study,
    /// The writes before the first run that bring the storage into its steady state; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// File for the log of its operations; `None` without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_log: Option<String>,
    /// Options typed in the language of another tool; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// The part of a measurement on several hosts; `None` if one host measures alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// Value for sessions from before this setting existed.
fn attempts() -> u32 {
    ATTEMPTS
}

/// Default time limit in ns for making a test file.
pub const MAKING_NS: u64 = 15_000_000_000;

/// Value for sessions from before the plan had this setting.
fn making_ns() -> u64 {
    MAKING_NS
}

// Written by hand because the strategy stores the load curve under a second key.
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
    /// A plan of one run without targets, jobs and conditions.
    pub fn new(command: Vec<String>, title: &str, study: Study) -> Self {
        Self {
            command,
            title: title.into(),
            targets: Vec::new(),
            jobs: Vec::new(),
            headline: 0,
            runs: 1,
            strategy: Strategy::Fixed,
            attempts: 1,
            fail_if: Vec::new(),
            fail_if_slower: None,
            seed: 0,
            seed_again: None,
            cold: false,
            baseline_ns: 0,
            making_ns: 0,
            quick_ns: None,
            budget_ns: None,
            origins: Vec::new(),
            hook: None,
            expect_device: None,
            against: None,
            study,
            precondition: None,
            op_log: None,
            typed: None,
            part: None,
        }
    }

    /// The seed for offsets and data of this host. All hosts of a fleet share one plan seed, so that they run in
    /// the same order; the rank varies it, so that no host reads blocks that another host left in a shared cache.
    pub fn host_seed(&self) -> u64 {
        match self.part {
            Some(Part { rank, .. }) if rank > 0 => split_mix(self.seed ^ split_mix(u64::from(rank))),
            _ => self.seed,
        }
    }

    /// A made file that other hosts open too. A host that measures alone needs no name for it.
    pub fn common(&self, target: usize) -> Option<&Common> {
        self.part.and(self.targets.get(target)?.common.as_ref())
    }

    /// Whether this host has the given rank.
    pub fn is_rank(&self, rank: u32) -> bool {
        self.part.is_none_or(|part| part.rank == rank)
    }

    /// The number of the first task of a stream on this host, the number of all tasks, and the tasks per host:
    /// workers are counted host by host over all hosts that run the job.
    pub fn tasks(&self, job: usize, stream: &Stream) -> (u64, u64) {
        let Part { rank, hosts, .. } = self.part.unwrap_or(Part { rank: 0, hosts: 1, neighbours: 0 });
        let hosts = self.hosts_in_job(job, hosts as usize).max(1) as u64;
        let workers = u64::from(stream.workers);
        let host = (u64::from(rank) + u64::from(stream.shift_hosts)) % hosts;
        (host * workers, hosts * workers)
    }

    /// The number of hosts that run a job, of `all` hosts.
    pub fn hosts_in_job(&self, job: usize, all: usize) -> usize {
        self.study.hosts().map_or(all, |steps| steps.participants(job, all))
    }

    /// This host's part of a load that is offered to all hosts.
    pub fn host_load(&self, iops: u64) -> f64 {
        iops as f64 / self.part.map_or(1.0, |part| f64::from(part.hosts.max(1)))
    }

    /// Whether this host takes part in a job.
    pub fn participates(&self, job: usize) -> bool {
        self.study.hosts().zip(self.part).is_none_or(|(steps, part)| steps.participates(part.rank, job))
    }

    /// The number of results of a session: jobs, or commands of the user.
    pub fn result_count(&self) -> usize {
        self.study.commands().map_or(self.jobs.len(), |study| study.commands.len())
    }

    /// Whether the plan has a condition.
    pub fn is_gated(&self) -> bool {
        !self.fail_if.is_empty() || self.fail_if_slower.is_some()
    }

    /// The runs that are measured again together.
    pub fn pairing(&self) -> Pairing {
        match self.strategy {
            Strategy::Targets(layout) => Pairing::Tests(layout),
            _ if self.is_paired() => Pairing::Rounds,
            _ => Pairing::Runs,
        }
    }

    /// Whether runs of one round are compared with one another, so that a round counts completely or not at all.
    pub fn is_paired(&self) -> bool {
        self.against.is_some() || self.study.is_paired()
    }
}

/// Writes before the first run: everything that the jobs touch, repeatedly from end to end, and then the work
/// itself until its rate settles (SNIA SSS PTS 2.0: workload independent and workload dependent preconditioning).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Sequential writers of everything that the jobs touch, one after another.
    pub fills: Vec<Stream>,
    /// Times that each writer covers its span.
    pub passes: u32,
    /// Indices of the jobs that write: these are then run in rounds.
    pub jobs: Vec<usize>,
    /// Rounds after which the first run begins, even if the rates have not settled.
    pub rounds_at_most: u32,
}

/// The rule for how often each job is measured and at which load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// As often as the plan states.
    #[default]
    Fixed,
    /// Until the 95 % interval of each job's rate is no wider than this share of it on either side.
    Precision {
        /// Half of the interval by the rate.
        share: f64,
        /// The most runs.
        at_most: u32,
    },
    /// Until the rates of the last runs of each job are steady; the runs before are its way there.
    Steady {
        /// The most runs.
        at_most: u32,
    },
    /// As often as the plan states, and if its conditions cannot be decided then, once more with as many runs as
    /// should decide them.
    Settle {
        /// The most runs.
        at_most: u32,
    },
    /// As often as the plan states; then the tests of the layout with wide intervals, until all are narrow or the
    /// time is up.
    Targets(TargetLayout),
    /// First job: the capacity in a closed loop. Second job: an open loop at loads up to that capacity, then at
    /// loads near the one that misses the latency target.
    Limit(LatencyTarget),
}

/// An earlier session whose jobs are measured again next to the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rerun {
    /// Its id.
    pub session: String,
    /// Index of its first job: the jobs from this one on are its own, unchanged.
    pub from: usize,
    /// Index of its job that gives the headline.
    pub headline: usize,
    /// Its report as judged before this session began, without its time series.
    pub then: Box<Report>,
}

/// A file or device of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The path as given, made absolute. For a made file: the directory.
    pub path: String,
    /// How fathom uses it.
    pub role: Role,
    /// Bytes that may be touched. For a made file the requested size; preparation may make it smaller.
    pub bytes: u64,
    /// Alignment of offsets and lengths that direct I/O needs.
    pub block_bytes: u32,
    /// Whether this invocation may write to it.
    pub writable: bool,
    /// Its identity, so that nothing else is touched in its place; for a made file, its directory. `None` for a
    /// target without a file or device, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whether `--unseen-users` names it: it may be written although processes that use it may be hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen_users: bool,
    /// Whether it may be written only because fathom made it. Its mark is checked again before the first run,
    /// because another program may have written the file after planning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_by_mark: bool,
    /// Other names that were typed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_names: Vec<String>,
    /// A file that is made before the first run, or made again if fathom had made it, and kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    /// Which workers a made file is for.
    #[serde(default, skip_serializing_if = "MadeFor::is_host")]
    pub made_for: MadeFor,
    /// How the other hosts find it, if it is made and they open it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

/// Which workers a made file is for: a directory holds one for each of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeFor {
    /// All workers of the host that makes it.
    #[default]
    Host,
    /// The worker of this number.
    Worker(u32),
    /// All workers of all hosts; each has written its own part.
    All,
}

impl MadeFor {
    /// Which workers a target of this role is for: a file that was not made belongs to none of them.
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
    /// Rank of the host that makes and removes it.
    pub maker: u32,
}

/// How fathom uses a target.
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

/// A setting with its value and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the setting, the same as its flag if it has one.
    pub setting: String,
    /// Its value as text.
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
    /// The measuring thread panics at its first sample of the devices while workers run.
    PanicMain,
    /// No evidence is taken while workers run, to measure the cost of taking it.
    NoEvidence,
}

/// A plan that is explained instead of run: what it measures, where, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The targets, jobs and number of runs that the command line leads to.
    pub plan: Plan,
    /// The machine it would run on.
    pub machine: Machine,
    /// Time and data volume, as far as they are known in advance.
    pub cost: Cost,
}

/// The time and data volume of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// ns of the idle watch, of rounds before the first run, and of all runs that end by their time.
    pub time_ns: u64,
    /// Whether it may end earlier.
    pub at_most: bool,
    /// Whether disturbed runs are measured again, which takes longer and writes more.
    pub again: bool,
    /// Whether some runs end only by their operations or bytes, however long these take.
    pub counted: bool,
    /// Bytes of test files.
    pub made_bytes: u64,
    /// ns after which making test files stops; slightly more, since the files are synced. 0 if `time_ns` includes
    /// this.
    pub making_ns: u64,
    /// Bytes that are written from end to end before the first run, however long that takes.
    pub filled_bytes: u64,
    /// Upper bound of bytes for runs whose operations are limited in number or rate.
    pub bounded_bytes: u64,
    /// ns of runs that write as much as the target takes.
    pub unbounded_ns: u64,
}

impl Cost {
    /// The cost in sentences: `It takes about 94 s, and up to 15 s before that to write a test file. It writes 1
    /// GiB of ...`.
    pub fn sentence(&self) -> String {
        format!("It takes {}. It writes {}.", self.time(), self.writes())
    }

    /// `about 94 s, and up to 15 s before that to write a test file`.
    fn time(&self) -> String {
        let word = if self.at_most { "at most" } else { "about" };
        let mut parts = Vec::new();
        if self.time_ns > 0 {
            let more =
                if self.again { " (more if other load disturbs runs, which are then repeated)" } else { "" };
            parts.push(format!("{word} {}{more}", minutes(self.time_ns)));
        }
        if self.counted {
            parts.push("as long as the workloads limited by operations or bytes take".into());
        }
        if self.made_bytes > 0 && self.making_ns > 0 {
            parts.push(format!("up to {} before that to write test files", minutes(self.making_ns)));
        }
        if self.filled_bytes > 0 {
            parts.push("as long as preconditioning takes to write its bytes".into());
        }
        if parts.is_empty() { "no time".into() } else { parts.join(", and ") }
    }

    /// `1 GiB of test files, then as much as the target can write in 35.0 s`.
    fn writes(&self) -> String {
        let mut parts = Vec::new();
        if self.made_bytes > 0 {
            parts.push(format!("at most {} of test files", show_bytes(self.made_bytes)));
        }
        if self.filled_bytes > 0 {
            parts.push(format!("{} to precondition", show_bytes(self.filled_bytes)));
        }
        if self.bounded_bytes > 0 {
            let more = if self.again { ", and more in runs that are repeated" } else { "" };
            parts.push(format!("at most {} in limited runs{more}", show_bytes(self.bounded_bytes)));
        }
        if self.unbounded_ns > 0 {
            let at_most = if self.at_most { "at most " } else { "" };
            parts.push(format!("as much as the target can write in {at_most}{}", time(self.unbounded_ns)));
        }
        if parts.is_empty() { "nothing".into() } else { parts.join(", then ") }
    }
}

/// A time that may be short.
fn time(ns: u64) -> String {
    if ns < 10_000_000_000 { show_ns(ns as f64) } else { minutes(ns) }
}

#[test]
fn a_cost_omits_missing_parts() {
    assert_eq!(Cost::default().sentence(), "It takes no time. It writes nothing.");
    let reads = Cost { time_ns: 9_400_000_000, ..Cost::default() };
    assert_eq!(reads.sentence(), "It takes about 10 s. It writes nothing.");
    let bench = Cost {
        time_ns: 75_000_000_000,
        again: true,
        made_bytes: 1 << 30,
        making_ns: 15_000_000_000,
        unbounded_ns: 35_000_000_000,
        ..Cost::default()
    };
    assert_eq!(
        bench.sentence(),
        "It takes about 75 s (more if other load disturbs runs, which are then repeated), and up to 15 s \
         before that to write test files. It writes at most 1 GiB of test files, then as much as the \
         target can write in 35 s."
    );
    let counted = Cost { counted: true, bounded_bytes: 3 << 20, filled_bytes: 2 << 30, ..Cost::default() };
    assert_eq!(
        counted.sentence(),
        "It takes as long as the workloads limited by operations or bytes take, and as long as \
         preconditioning takes to write its bytes. It writes 2 GiB to precondition, then at most 3 MiB in \
         limited runs."
    );
    let searched =
        Cost { time_ns: 300_000_000_000, at_most: true, unbounded_ns: 5_000_000_000, ..Cost::default() };
    assert_eq!(
        searched.sentence(),
        "It takes at most 5 min. It writes as much as the target can write in at most 5.00 s."
    );
}
