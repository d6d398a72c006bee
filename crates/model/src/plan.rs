//! The plan: everything that one invocation measures, with every default filled in and the origin of each setting.
//!
//! The session file keeps the plan word for word. [`ExpectedCost`] is the expected time and the amount of written data.

use crate::Known;
pub use crate::figures::{ComparedLayer, LayerComparison};
use crate::fleet::FleetRank;
use crate::job::{Create, Job, Stream, TaskNumber};
use crate::machine::{Identity, Machine};
use crate::payload::split_mix;
use crate::record::attempts::Pairing;
use crate::report::Report;
use crate::spec::Typed;
use crate::spec::number::ATTEMPTS;
pub use crate::study::LatencyTarget;
use crate::study::{Study, TargetLayout};
use crate::units::{minutes, show_bytes, show_ns};
use crate::verdict::{Condition, SlowdownLimit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Range;

/// Everything that one invocation measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Number of times that each job is measured; the minimum number if the strategy decides.
    pub runs: u32,
    /// The rule for how often each job is measured, and at which load.
    #[serde(default)]
    pub strategy: Strategy,
    /// Maximum number of attempts at a run that other load disturbs.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// Conditions under which the measurement fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail_if: Vec<Condition>,
    /// The limit on how much slower this session may be than the earlier session that is measured
    /// again (`against`); `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_if_slower: Option<SlowdownLimit>,
    /// Seed of offsets, data and the order of runs.
    pub seed: u64,
    /// Id of the previous session on one of the targets, if it used the same offsets: the same seed, file and accesses.
    /// `Err` has the reason if the history cannot be read. `None` if anything differs, or if no seed was typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_again: Option<Known<String>>,
    /// Whether the targets are written back and then evicted from the page cache before each run.
    pub cold: bool,
    /// Length of the idle watch before the first run, in ns.
    pub baseline_ns: u64,
    /// Time limit in ns for creating a test file. A file that is incomplete at the limit keeps its current size.
    #[serde(default = "making_ns")]
    pub making_ns: u64,
    /// For a quick look: the latest planned end of a run, in ns from the start of the session. A run
    /// that would end later does not begin, except that of the headline. `None` for any other
    /// measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_ns: Option<u64>,
    /// Time budget of a study, in ns from the start of the session; `None` for no limit. A sweep keeps its budget in
    /// its grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
    /// Every setting with its value and its origin.
    pub origins: Vec<Origin>,
    /// Fault that fathom's own tests inject; `None` otherwise.
    #[serde(default, rename = "hook", skip_serializing_if = "Option::is_none")]
    pub injected_fault: Option<InjectedFault>,
    /// Kernel name or serial number of the device that the user expects below every target; `None`
    /// if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_device: Option<String>,
    /// The earlier session whose jobs are measured again next to those of this session; `None` without `--against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<BaselineSession>,
    /// The question that the jobs answer together.
    #[serde(flatten)]
    pub study: Study,
    /// The writes before the first run that bring the storage into its steady state; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// File for the operation log; `None` without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op_log: Option<String>,
    /// Options typed in the language of another tool; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Typed>,
    /// The rank of this host in a measurement on several hosts; `None` if one host measures alone.
    #[serde(default, rename = "part", skip_serializing_if = "Option::is_none")]
    pub fleet_rank: Option<FleetRank>,
}

/// Returns the value of `attempts` for sessions from before the setting existed.
fn attempts() -> u32 {
    ATTEMPTS
}

/// Default time limit in ns for making a test file.
pub const MAKING_NS: u64 = 15_000_000_000;

/// Returns the value of `making_ns` for sessions from before the setting existed.
fn making_ns() -> u64 {
    MAKING_NS
}

// Written by hand: the latency target of `Study::Limit` is stored only in the strategy.
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
    /// Returns a plan of one run without targets, jobs and conditions.
    pub fn new(command: Vec<String>, title: &str, study: Study) -> Self {
        Self { command, title: title.into(), runs: 1, attempts: 1, study, ..Self::default() }
    }

    /// Returns the streams of all jobs.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.jobs.iter().flat_map(Job::streams)
    }

    /// Returns the smallest range that contains all bytes of a target that these streams may touch; it may reach beyond
    /// the end of the target. `None` if no stream uses the target.
    pub fn region<'s>(&self, target: usize, streams: impl Iterator<Item = &'s Stream>) -> Option<Range<u64>> {
        let regions = streams.filter(|s| s.targets.contains(&target)).map(|s| s.access.region());
        regions.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }

    /// Whether two ranges contain the same bytes of a target.
    pub fn is_same_region(&self, target: usize, a: &Range<u64>, b: &Range<u64>) -> bool {
        let bytes = self.targets.get(target).map_or(0, |t| t.bytes);
        // A range of the whole target may have no length in the plan.
        let end = |range: &Range<u64>| if bytes > 0 { range.end.min(bytes) } else { range.end };
        a.start == b.start && end(a) == end(b)
    }

    /// Returns the seed for offsets and data of this host. The plan has the same seed on all hosts of a fleet, so that
    /// all hosts measure the runs in the same order. The returned seed depends on the rank, so that no host reads the
    /// blocks that another host left in a shared cache.
    pub fn host_seed(&self) -> u64 {
        match self.fleet_rank {
            Some(FleetRank { rank, .. }) if rank > 0 => split_mix(self.seed ^ split_mix(u64::from(rank))),
            _ => self.seed,
        }
    }

    /// Returns the shared name of a test file that other hosts open too; `None` if they do not open
    /// it, or if this host measures alone.
    pub fn common(&self, target: usize) -> Option<&Common> {
        self.fleet_rank.and(self.targets.get(target)?.common.as_ref())
    }

    /// Whether this host has the given rank, or measures alone.
    pub fn is_rank(&self, rank: u32) -> bool {
        self.fleet_rank.is_none_or(|part| part.rank == rank)
    }

    /// Returns the index of the first task of a stream on this host, and the number of tasks. A task is a worker; tasks
    /// are numbered host by host over all hosts that run the job. With `shift_hosts`, this host takes the tasks of the
    /// host that many ranks later, modulo the number of hosts.
    pub fn first_task(&self, job: usize, stream: &Stream) -> TaskNumber {
        let FleetRank { rank, hosts, .. } =
            self.fleet_rank.unwrap_or(FleetRank { rank: 0, hosts: 1, neighbours: 0 });
        let hosts = self.hosts_in_job(job, hosts as usize).max(1) as u64;
        let workers = u64::from(stream.workers);
        let host = (u64::from(rank) + u64::from(stream.shift_hosts)) % hosts;
        TaskNumber { index: host * workers, count: hosts * workers }
    }

    /// Returns how many of `all` hosts run a job.
    pub fn hosts_in_job(&self, job: usize, all: usize) -> usize {
        self.study.hosts().map_or(all, |steps| steps.participants(job, all))
    }

    /// Returns this host's part of a load that is offered to all hosts.
    pub fn host_load(&self, iops: u64) -> f64 {
        iops as f64 / self.fleet_rank.map_or(1.0, |part| f64::from(part.hosts.max(1)))
    }

    /// Whether this host runs a job.
    pub fn participates(&self, job: usize) -> bool {
        self.study.hosts().zip(self.fleet_rank).is_none_or(|(steps, part)| steps.participates(part.rank, job))
    }

    /// Returns the number of jobs, or in a study of the user's commands, the number of commands.
    pub fn result_count(&self) -> usize {
        self.study.commands().map_or(self.jobs.len(), |study| study.commands.len())
    }

    /// Whether the plan has a condition or a limit on the slowdown.
    pub fn is_gated(&self) -> bool {
        !self.fail_if.is_empty() || self.fail_if_slower.is_some()
    }

    /// Returns which runs are measured again together after a disturbance.
    pub fn pairing(&self) -> Pairing {
        match self.strategy {
            Strategy::Targets(layout) => Pairing::Tests(layout),
            _ if self.is_paired() => Pairing::Rounds,
            _ => Pairing::Runs,
        }
    }

    /// Whether runs of one round are compared with one another. A round then counts completely or
    /// not at all.
    pub fn is_paired(&self) -> bool {
        self.against.is_some() || self.study.is_paired()
    }
}

/// The writes before the first run. First fathom writes everything that the jobs touch, repeatedly from end to end.
/// Then it runs the jobs until their rates settle (SNIA SSS PTS 2.0: workload independent and workload dependent
/// preconditioning).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precondition {
    /// Sequential streams that write everything that the jobs touch. They run one after another.
    pub fills: Vec<Stream>,
    /// Number of times that each stream of `fills` covers its span.
    pub passes: u32,
    /// Indices of the jobs that write. After the fills, these jobs run in rounds.
    pub jobs: Vec<usize>,
    /// Number of rounds after which the first run begins, even if the rates have not settled.
    pub rounds_at_most: u32,
}

/// The rule for how often each job is measured and at which load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// As often as the plan states.
    #[default]
    Fixed,
    /// Until the half width of the 95 % interval of each job's rate is at most a share of the rate.
    Precision {
        /// The half width of the interval divided by the rate.
        share: f64,
        /// Maximum number of runs.
        at_most: u32,
    },
    /// Until the rates of the last runs of each job are steady. The runs before them do not count.
    Steady {
        /// Maximum number of runs.
        at_most: u32,
    },
    /// As often as the plan states. If the conditions are then undecided, a second set of runs follows, large enough
    /// that it should decide them.
    Settle {
        /// Maximum number of runs.
        at_most: u32,
    },
    /// As often as the plan states, for tests on several targets. Then the tests with wide
    /// confidence intervals are repeated, until all intervals are narrow or the time is up.
    Targets(TargetLayout),
    /// The first job measures the capacity in a closed loop. The second job is an open loop. It searches for the highest load that meets
    /// the latency target, if there is one. Without a target, or if a curve is wanted too, it runs at fixed shares of the capacity and near
    /// the knee.
    Limit(LatencyTarget),
}

/// An earlier session whose jobs are measured again next to those of this session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineSession {
    /// Id of the earlier session.
    pub session: String,
    /// Index of the first job in this plan that is from the earlier session. All later jobs are from the earlier
    /// session too, unchanged.
    #[serde(rename = "from")]
    pub first_job: usize,
    /// Index in this plan of the job that gave the earlier session's headline.
    pub headline: usize,
    /// Report of the earlier session, judged before this session began; without time series.
    #[serde(rename = "then")]
    pub earlier_report: Box<Report>,
}

/// A file or device of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The typed path, made absolute. For a file that fathom creates: the directory.
    pub path: String,
    /// How fathom uses the target.
    pub role: Role,
    /// Bytes that operations may touch. For a file that fathom creates: the requested size; preparation may make the
    /// file smaller.
    pub bytes: u64,
    /// Alignment of offsets and lengths that direct I/O needs, in bytes.
    pub block_bytes: u32,
    /// Whether this invocation may write to the target.
    pub writable: bool,
    /// Identity of the file or device, so that fathom touches nothing else in its place. For a file that fathom
    /// creates: the identity of the directory. `None` for a target without a file or device, and in older sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whether `--unseen-users` names the target: fathom may write to it although processes that use it may be hidden.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen_users: bool,
    /// Whether fathom may write to the file only because fathom created it. fathom checks the file's mark again before
    /// the first run, because another program may have written the file after planning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_by_mark: bool,
    /// Other names that the user typed for the same target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_names: Vec<String>,
    /// How fathom creates the file before the first run, or replaces a file that it created
    /// earlier; `None` if it does neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    /// The workers that a test file is for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub made_for: MadeFor,
    /// How other hosts find the test file; `None` if they do not open it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Common>,
}

impl Target {
    /// Returns a target that is only read, without an identity.
    pub fn new(path: String, role: Role, bytes: u64) -> Self {
        Self { path, role, bytes, block_bytes: 1, ..Self::default() }
    }
}

/// The workers that use a test file. Test files for different workers are different files, even in one directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeFor {
    /// All workers of the host that creates the file.
    #[default]
    Host,
    /// The worker with this index in its stream.
    Worker(u32),
    /// All workers of all hosts. Each worker has its own part of the file.
    All,
}

impl MadeFor {
    /// Returns the workers that a target of this role is for. A file that fathom did not create is for all workers of
    /// the host.
    #[must_use]
    pub fn for_role(self, role: Role) -> Self {
        if role == Role::Made { self } else { Self::Host }
    }
}

/// The name of a test file by which other hosts open it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Name of the file in the directory.
    pub name: String,
    /// Rank of the host that creates and removes the file.
    pub maker: u32,
}

/// How fathom uses a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A test file that fathom creates in the directory and removes at the end.
    Made,
    /// A file of the user.
    File,
    /// A block device.
    Device,
    /// No file or device, for engines that move no bytes.
    #[default]
    None,
}

/// A setting with its value and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the setting, the same as its flag if it has one.
    pub setting: String,
    /// Value of the setting as text.
    pub value: String,
    /// Origin of the value: `--bs`, `profile cdm`, `default`, `statx`, ...
    pub from: String,
}

/// A fault that fathom's own tests inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InjectedFault {
    /// The first worker panics after some hundred operations.
    PanicWorker,
    /// The measuring thread panics at its first sample of the devices while workers run.
    PanicMain,
    /// No evidence is taken while workers run, to measure the cost of taking it.
    NoEvidence,
}

/// A plan, and the machine that it was made for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Planned {
    /// What is measured, with every setting.
    pub plan: Plan,
    /// The machine, with the places of the plan's targets.
    pub machine: Machine,
}

/// A plan that is explained instead of run: what it measures, where, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The targets, jobs and number of runs that the command line leads to.
    pub plan: Plan,
    /// The machine that the plan would run on.
    pub machine: Machine,
    /// Time and data volume, as far as they are known in advance.
    pub cost: ExpectedCost,
}

/// The time and data volume of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedCost {
    /// Time in ns of the idle watch, of the rounds of preconditioning, and of all runs that end
    /// after a fixed time.
    pub time_ns: u64,
    /// Whether the measurement may end before `time_ns`.
    pub may_end_earlier: bool,
    /// Whether disturbed runs are measured again, which takes longer and writes more.
    pub repeats_disturbed: bool,
    /// Whether some runs end only after a number of operations or bytes, however long this takes.
    pub has_runs_without_end_time: bool,
    /// Bytes of test files.
    pub made_bytes: u64,
    /// Time limit in ns for creating test files, without the final sync; 0 if `time_ns` includes it.
    pub making_ns: u64,
    /// Bytes that preconditioning writes from end to end, however long this takes.
    pub filled_bytes: u64,
    /// Upper bound of the bytes written by runs that are limited in number of operations or in rate.
    pub bounded_bytes: u64,
    /// Time in ns of runs that write as fast as the target accepts.
    pub unbounded_ns: u64,
}

impl ExpectedCost {
    /// Formats the cost as sentences: `It takes about 94 s, and up to 15 s before that to write test files. It writes
    /// at most 1 GiB of ...`.
    pub fn sentence(&self) -> String {
        format!("It takes {}. It writes {}.", self.time(), self.writes())
    }

    /// Returns the cost of this measurement and of `other`, one after the other.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self {
            time_ns: self.time_ns.saturating_add(other.time_ns),
            may_end_earlier: self.may_end_earlier || other.may_end_earlier,
            repeats_disturbed: self.repeats_disturbed || other.repeats_disturbed,
            has_runs_without_end_time: self.has_runs_without_end_time || other.has_runs_without_end_time,
            made_bytes: self.made_bytes.saturating_add(other.made_bytes),
            making_ns: self.making_ns.saturating_add(other.making_ns),
            filled_bytes: self.filled_bytes.saturating_add(other.filled_bytes),
            bounded_bytes: self.bounded_bytes.saturating_add(other.bounded_bytes),
            unbounded_ns: self.unbounded_ns.saturating_add(other.unbounded_ns),
        }
    }

    /// Returns text such as `about 94 s, and up to 15 s before that to write test files`.
    fn time(&self) -> String {
        let word = if self.may_end_earlier { "at most" } else { "about" };
        let mut parts = Vec::new();
        let repeats = if self.repeats_disturbed { " (more if disturbed runs are repeated)" } else { "" };
        let known = minutes(self.time_ns);
        if self.has_runs_without_end_time {
            parts.push(format!(
                "an unknown time, until its runs reach their limit of operations or bytes{repeats}"
            ));
            parts.extend((self.time_ns > 0).then(|| format!("{word} {known} more")));
        } else if self.time_ns > 0 {
            parts.push(format!("{word} {known}{repeats}"));
        }
        if self.made_bytes > 0 && self.making_ns > 0 {
            parts.push(format!("up to {} before that to write test files", minutes(self.making_ns)));
        }
        if self.filled_bytes > 0 {
            parts.push("as long as preconditioning takes to write its bytes".into());
        }
        if parts.is_empty() { "no time".into() } else { parts.join(", and ") }
    }

    /// Returns text such as `at most 1 GiB of test files, then as much as the target can write in
    /// 35 s`.
    fn writes(&self) -> String {
        let mut parts = Vec::new();
        if self.made_bytes > 0 {
            parts.push(format!("at most {} of test files", show_bytes(self.made_bytes)));
        }
        if self.filled_bytes > 0 {
            parts.push(format!("{} to precondition", show_bytes(self.filled_bytes)));
        }
        if self.bounded_bytes > 0 {
            let more = if self.repeats_disturbed { ", and more in runs that are repeated" } else { "" };
            let bytes = show_bytes(self.bounded_bytes);
            parts.push(format!("at most {bytes} in runs with a limit on operations or rate{more}"));
        }
        if self.unbounded_ns > 0 {
            // A budget ends the writes too.
            let (at_most, ns) = match self.may_end_earlier {
                true if self.time_ns > 0 => ("at most ", self.unbounded_ns.min(self.time_ns)),
                true => ("at most ", self.unbounded_ns),
                false => ("", self.unbounded_ns),
            };
            parts.push(format!("as much as the target can write in {at_most}{}", time(ns)));
        }
        if parts.is_empty() { "nothing".into() } else { parts.join(", then ") }
    }
}

/// Formats a time: with three digits below ten seconds, otherwise rounded to seconds or minutes.
fn time(ns: u64) -> String {
    if ns < 10_000_000_000 { show_ns(ns as f64) } else { minutes(ns) }
}

#[test]
fn regions_are_compared_up_to_the_end_of_the_target() {
    use crate::job::{Access, Pattern, Phase};
    let stream = |offset_bytes, span_bytes, target| {
        let access = Access { offset_bytes, span_bytes, ..Access::plain(Pattern::Random, 4096, 0) };
        Stream { targets: vec![target], ..Stream::plain(access, 1, 1, "sync") }
    };
    let streams = vec![stream(4096, 8192, 0), stream(65_536, u64::MAX, 0), stream(0, 4096, 1)];
    let phase = Phase { warmup_ns: 0, time_ns: 0, cooldown_ns: 0, streams };
    let jobs = vec![Job { name: String::new(), phases: vec![phase] }];
    let targets = vec![Target { bytes: 1 << 20, ..Target::default() }];
    let plan = Plan { targets, jobs, ..Plan::default() };
    assert_eq!(plan.region(0, plan.streams().take(1)), Some(4096..12_288));
    assert_eq!(plan.region(0, plan.streams()), Some(4096..u64::MAX));
    assert_eq!(plan.region(2, plan.streams()), None);
    assert!(plan.is_same_region(0, &(4096..u64::MAX), &(4096..1 << 20)));
    assert!(!plan.is_same_region(0, &(4096..u64::MAX), &(4096..12_288)));
    assert!(!plan.is_same_region(0, &(0..1 << 20), &(4096..1 << 20)));
    assert!(!plan.is_same_region(1, &(0..u64::MAX), &(0..4096)), "a target of unknown length");
}

#[test]
fn a_cost_omits_missing_parts() {
    assert_eq!(ExpectedCost::default().sentence(), "It takes no time. It writes nothing.");
    let reads = ExpectedCost { time_ns: 9_400_000_000, ..ExpectedCost::default() };
    assert_eq!(reads.sentence(), "It takes about 10 s. It writes nothing.");
    let bench = ExpectedCost {
        time_ns: 75_000_000_000,
        repeats_disturbed: true,
        made_bytes: 1 << 30,
        making_ns: 15_000_000_000,
        unbounded_ns: 35_000_000_000,
        ..ExpectedCost::default()
    };
    assert_eq!(
        bench.sentence(),
        "It takes about 75 s (more if disturbed runs are repeated), and up to 15 s before that to write test \
         files. It writes at most 1 GiB of test files, then as much as the target can write in 35 s."
    );
    let both = bench.and(&ExpectedCost { may_end_earlier: true, has_runs_without_end_time: true, ..bench });
    assert_eq!((both.time_ns, both.made_bytes, both.making_ns), (150_000_000_000, 2 << 30, 30_000_000_000));
    assert_eq!(
        (both.unbounded_ns, both.may_end_earlier, both.repeats_disturbed, both.has_runs_without_end_time),
        (70_000_000_000, true, true, true)
    );
    assert_eq!(ExpectedCost::default().and(&bench), bench);
    let counted = ExpectedCost {
        has_runs_without_end_time: true,
        bounded_bytes: 3 << 20,
        filled_bytes: 2 << 30,
        ..ExpectedCost::default()
    };
    assert_eq!(
        counted.sentence(),
        "It takes an unknown time, until its runs reach their limit of operations or bytes, and as long as \
         preconditioning takes to write its bytes. It writes 2 GiB to precondition, then at most 3 MiB in \
         runs with a limit on operations or rate."
    );
    // The unknown time comes first, so that the known part does not look like all of it.
    let one_pass = ExpectedCost {
        has_runs_without_end_time: true,
        time_ns: 1_000_000_000,
        repeats_disturbed: true,
        ..ExpectedCost::default()
    };
    assert_eq!(
        one_pass.sentence(),
        "It takes an unknown time, until its runs reach their limit of operations or bytes (more if \
         disturbed runs are repeated), and about 1 s more. It writes nothing."
    );
    let searched = ExpectedCost {
        time_ns: 300_000_000_000,
        may_end_earlier: true,
        unbounded_ns: 5_000_000_000,
        ..ExpectedCost::default()
    };
    assert_eq!(
        searched.sentence(),
        "It takes at most 5 min. It writes as much as the target can write in at most 5.00 s."
    );
}
