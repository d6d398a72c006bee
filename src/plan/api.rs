//! The comparison of `fathom api`: one job per interface and work. A work is an order, a direction
//! and a block size.
//!
//! 1. Sizes the span, so that a fast disk is busy for 300 ms: the largest of [`SPANS`] with room on the disk and in the
//!    page cache.
//! 2. Chooses the interfaces: the named ones, the common ones, or all.
//! 3. Makes a job of each interface for each work, or notes why it cannot be tried here.
//! 4. Divides the budget among the jobs: as many rounds as fit, and the length of a run.
//!
//! A run ends after the length chosen in step 4, or earlier: at the end of the span (sequential),
//! or after half of the blocks of the span (random). How much of the file writes cover is decided
//! before the first run (`src/run/setup.rs`).

use super::Jobs;
use super::layers::{reads, writes};
use crate::failure::Failure;
use crate::interfaces::{CXX, Concurrency, Directions, INTERFACES, Interface, common};
use crate::plan::origins::Origins;
use crate::plan::study::{self, Schedule, StudyPlan};
use crate::plan::{budget, engine, target};
use crate::request::{ApiSpec, Request};
use machine::root::Root;
use model::figures::{NotMeasured, by_reason};
use model::job::{Access, Kind, Order, Pattern, PerKind, Sizes, Start, StopRule};
use model::machine::Place;
use model::plan::{Role, Strategy, Target};
use model::spec::{JobSpec, Rw, values};
use model::study::{Candidate, InterfaceComparison};
use model::units::{MIB, show_block, show_bytes, show_counted, show_ns};
use stats::intervals::FEWEST_RUNS;
use std::path::PathBuf;

/// Settings that each interface defines.
#[rustfmt::skip]
pub(super) const OF_INTERFACES: &[&str] = &[
    "--rw", "--bs", "--size", "--cache", "--depth", "--workers", "--engine", "engine options", "--batch",
    "--random", "--time",
];
/// Sizes of sequential operations: a page, and the size that copying programs use.
const SIZES: &[u32] = &[4096, 128 << 10];
/// Sizes of random operations: a page, as in databases.
const RANDOM_SIZES: &[u32] = &[4096];
/// Spans, the largest first: 2 GiB take 300 ms at 7 GB/s.
const SPANS: [u64; 8] =
    [2048 * MIB, 1024 * MIB, 512 * MIB, 256 * MIB, 128 * MIB, 64 * MIB, 32 * MIB, 16 * MIB];
/// The span is at most memory divided by this, because buffered reads keep the span in the page cache.
const MEMORY_PART: u64 = 8;
/// Shortest run that is planned: a delay of one scheduler tick is 3 % of it.
const SHORTEST_NS: u64 = 300_000_000;
/// Longest run without `--budget`.
const LONGEST_NS: u64 = 500_000_000;
/// Longest run with `--budget`.
const LONGEST_IN_BUDGET_NS: u64 = 2_000_000_000;
/// Runs of each job: the fewest with a confidence interval, the usual number, and the most.
const RUNS: [u32; 3] = [FEWEST_RUNS as u32, 5, 10];
/// While the budget lasts, all jobs of a work get another round if half of one job's 95 % interval is wider than this share of that job's
/// mean.
const NARROW: f64 = 0.10;
/// Most runs of a job, as a multiple of the planned ones.
const TIMES_RUNS: u32 = 3;
/// The time to make the test file is at most the budget divided by `MAKING_PART`, and at most `MAKING_NS`.
const MAKING_PART: u64 = 20;
const MAKING_NS: u64 = 5_000_000_000;
/// Time for the idle watch, the self test and the report.
const AROUND_NS: u64 = 3_000_000_000;
/// Time between two runs: 90 ms were measured, including the eviction of a file of 2 GiB.
const OVERHEAD_NS: u64 = 100_000_000;
/// Time to try an interface before the first run.
const TRIAL_NS: u64 = 50_000_000;
/// Operations in flight for interfaces that can have several. A fast disk needs this many.
const DEPTH: u32 = 8;
/// The interface of the headline.
const HEADLINE: &str = "pread";

/// The target's place in the block stack, and the settings that all jobs share.
struct Setup<'a> {
    request: &'a Request,
    given: PathBuf,
    place: Place,
    found: Target,
    span: u64,
    depth: u32,
    /// What denies io_uring; `None` if it works.
    denial: Option<String>,
    may_write: Result<(), String>,
}

/// One work: an order, a direction and a size.
#[derive(Clone, Copy)]
struct Work {
    rw: Rw,
    block_bytes: u32,
}

/// With `all`, returns all interfaces; otherwise the named ones or, if none are named, the common ones.
fn choose_interfaces(
    named: &[&'static Interface],
    all: bool,
    is_io_uring_denied: bool,
) -> Vec<&'static Interface> {
    if named.is_empty() && !all {
        return common(is_io_uring_denied).collect();
    }
    INTERFACES.iter().filter(|i| all || named.iter().any(|n| n.name == i.name)).collect()
}

impl Schedule {
    /// Divides the budget among this many jobs: first more rounds up to ten, then longer runs.
    /// `files` is the number of test files to make. A typed `runs` or `window_ns` remains
    /// unchanged.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the typed budget has no room for the fewest runs of each job.
    fn divide(
        jobs: usize,
        files: u64,
        typed_budget_ns: Option<u64>,
        runs: Option<u32>,
        window_ns: Option<u64>,
    ) -> Result<Self, Failure> {
        let [fewest, usual, most] = RUNS;
        let jobs = (jobs as u64).max(1);
        let run_ns = window_ns.unwrap_or(SHORTEST_NS).saturating_add(OVERHEAD_NS);
        let around_ns = AROUND_NS + jobs * TRIAL_NS;
        let needed = |runs: u32| jobs.saturating_mul(u64::from(runs)).saturating_mul(run_ns);
        // A typed number of runs, or a long list of interfaces, makes the default budget longer.
        let usual_ns =
            budget::INTERFACES_NS.max(around_ns + files * MAKING_NS + needed(runs.unwrap_or(usual)));
        let budget_ns = typed_budget_ns.unwrap_or(usual_ns);
        let making_ns = (budget_ns / MAKING_PART).min(MAKING_NS);
        let left = budget_ns.saturating_sub(around_ns + files * making_ns);
        let least = needed(runs.unwrap_or(fewest));
        let least_budget_ns =
            around_ns.saturating_add(least).saturating_mul(MAKING_PART) / (MAKING_PART - files);
        let length = show_ns((run_ns - OVERHEAD_NS) as f64);
        let work = format!(
            "{} of {length} for each of {} of interface and workload",
            show_counted(runs.unwrap_or(fewest).into(), "run"),
            show_counted(jobs, "combination")
        );
        budget::refuse_short(
            typed_budget_ns,
            least_budget_ns,
            &work,
            "fewer combinations (--interface, --rw or --bs)",
        )?;
        let each = left / jobs;
        let runs = runs.unwrap_or_else(|| ((each / run_ns) as u32).clamp(fewest, most));
        let longest = if typed_budget_ns.is_some() { LONGEST_IN_BUDGET_NS } else { LONGEST_NS };
        let of_run = (each / u64::from(runs.max(1))).saturating_sub(OVERHEAD_NS);
        let window_ns = window_ns.unwrap_or_else(|| of_run.clamp(SHORTEST_NS, longest));
        Ok(Self { budget_ns, making_ns, runs, window_ns })
    }
}

impl StudyPlan for InterfaceComparison {
    fn repeats(&self, request: &Request, by_budget: Option<u32>, origins: &mut Origins) -> (u32, Strategy) {
        if request.job.gates_a_percentile() {
            return study::choose_runs(request, origins);
        }
        let runs = by_budget.unwrap_or(study::RUNS);
        let at_most = runs.saturating_mul(TIMES_RUNS);
        let strategy = match request.job.runs {
            Some(_) => Strategy::Fixed,
            None => Strategy::Precision { share: NARROW, at_most },
        };
        (origins.choose_from("--runs", request.job.runs, runs, "--budget", u32::to_string), strategy)
    }
}

/// Returns the named interfaces that support none of the works.
fn unsupported_interfaces(named: &[&'static Interface], works: &[Work]) -> Vec<NotMeasured> {
    let others = named.iter().filter(|i| !works.iter().any(|work| i.is_for(work.rw)));
    let why = "this interface cannot do the typed --rw; type another --rw, or leave it out";
    others.map(|i| NotMeasured { name: i.name.into(), why: why.into() }).collect()
}

/// Makes a job for each interface and work that can be tried.
pub(super) fn interface_jobs(
    request: &Request,
    api_spec: &ApiSpec,
    root: &Root,
    memory: Option<u64>,
    denial: Option<&str>,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let ApiSpec { sizes, interfaces: named, all } = api_spec;
    target::refuse_destroy_without_target(request)?;
    let given = request.targets.first().cloned().unwrap_or_else(|| ".".into());
    let path = given.canonicalize().map_err(|e| target::explain_unreachable(&given, &e))?;
    let target::PlacedTarget { target: found, place } = target::inspect_target(root, &given, &path)?;
    let spec = request.job.streams().next().cloned().unwrap_or_default();
    let available_bytes = if found.role == Role::Made { u64::MAX } else { found.bytes };
    let memory = [memory, machine::cgroup::tightest_memory_limit(root).map(|limit| limit.bytes)]
        .into_iter()
        .flatten()
        .min();
    let fits = |bytes: &u64| {
        memory.is_none_or(|memory| *bytes <= memory / MEMORY_PART)
            && (found.role != Role::Made || machine::test_file::check_room(&path, *bytes).is_ok())
    };
    let usual = SPANS.iter().copied().find(fits).unwrap_or(SPANS[SPANS.len() - 1]).min(available_bytes);
    let span = origins.choose("--size", spec.size, usual, |b| show_bytes(*b));
    let depth = origins.choose("--depth", spec.depth, DEPTH, u32::to_string);
    origins.record("--cache", "as each interface opens its file", "fathom api");
    origins.record(
        "--random",
        "once: each block at most once, the same blocks for all interfaces",
        "fathom api",
    );
    origins.record(
        "ends",
        "after --time, or earlier: sequential runs at the end of the span, random runs after half of its blocks",
        "fathom api",
    );
    let works = choose_works(spec.rw, sizes, origins)?;
    let guarded = target::guard_writing(request, root, &given, &path, found.role);
    let may_write = match guarded {
        // The user permitted writing to the target by name, so report why it is refused.
        Err(why) if !request.destroy.is_empty() => return Err(why.into()),
        other => other.map_err(|why| why.to_string()),
    };
    if let Some(work) = works.iter().find(|w| u64::from(w.block_bytes) > span) {
        return Err(Failure::Usage(format!(
            "--bs {}: no block of this size fits in {}; use a smaller --bs or a larger --size",
            show_block(work.block_bytes.into()),
            show_bytes(span)
        )));
    }
    let interfaces = choose_interfaces(named, *all, denial.is_some());
    let denial = denial.map(str::to_owned);
    let setup = Setup { request, given, place, found, span, depth, denial, may_write };
    let mut jobs = Jobs::default();
    let mut comparison = InterfaceComparison::default();
    let mut needs_new_file = false;
    comparison.missing.extend(unsupported_interfaces(named, &works));
    if request.flags.contains(&"depth") && !interfaces.iter().any(|i| i.concurrency != Concurrency::One) {
        return Err(Failure::Usage(
            "--depth has no effect: these interfaces have one operation in flight; leave --depth out, or type other interfaces".into(),
        ));
    }
    for work in works {
        for interface in interfaces.iter().filter(|i| i.is_for(work.rw)) {
            match setup.make_spec(interface, work) {
                Ok(spec) => {
                    if interface.name == HEADLINE && jobs.headline.is_none() {
                        jobs.headline = Some(jobs.specs.len());
                    }
                    needs_new_file |= interface.renews_file();
                    let (job, delivers_bytes) = (jobs.specs.len(), interface.delivers_bytes);
                    let (interface, work) = (interface.name_for(writes(work.rw)), work.describe());
                    comparison.candidates.push(Candidate { job, interface, work, delivers_bytes });
                    jobs.specs.push(spec);
                }
                Err(why) => comparison.missing.push(NotMeasured { name: job_name(interface, work), why }),
            }
        }
    }
    if comparison.candidates.is_empty() {
        let why = if comparison.missing.is_empty() {
            "none of these interfaces supports the typed --rw; type another --rw, or leave it out".into()
        } else {
            describe_reasons(&comparison.missing)
        };
        let is_denied = setup.denial.is_some() && named.iter().any(|i| i.engine.starts_with(engine::WANTED));
        let why = if is_denied { format!("{why}; type --interface 'libaio O_DIRECT'") } else { why };
        return Err(Failure::Usage(format!("nothing can be compared: {why}")));
    }
    let files = if setup.found.role == Role::Made { 1 + u64::from(needs_new_file) } else { 0 };
    let typed_time = request.job.phases.first().and_then(|phase| phase.time);
    let schedule =
        Schedule::divide(jobs.specs.len(), files, request.budget_ns, request.job.runs, typed_time)?;
    let format_time = |ns: u64| show_ns(ns as f64);
    let from = "default: 5 to 10 runs of each interface with each workload";
    origins.choose_from("--budget", request.budget_ns, schedule.budget_ns, from, |ns| format_time(*ns));
    origins.choose_from("--time", typed_time, schedule.window_ns, "--budget", |ns| format_time(*ns));
    for phase in jobs.specs.iter_mut().flat_map(|spec| &mut spec.phases) {
        phase.time = Some(schedule.window_ns);
    }
    jobs.schedule = Some(schedule);
    jobs.study = comparison.into();
    Ok(jobs)
}

/// Lists each reason once, with the first interface that it excludes: `pread, 4K random read and 39 others: ...`.
fn describe_reasons(missing: &[NotMeasured]) -> String {
    let reasons = by_reason(missing).into_iter().map(|(names, why)| match names.as_slice() {
        [] => why.to_owned(),
        [name] => format!("{name}: {why}"),
        [name, _] => format!("{name} and 1 other: {why}"),
        [name, others @ ..] => format!("{name} and {} others: {why}", others.len()),
    });
    reasons.collect::<Vec<_>>().join("; ")
}

/// Chooses the typed `--rw`, or sequential and random reads and writes; each with its block sizes.
fn choose_works(given: Option<Rw>, sizes: &[u32], origins: &mut Origins) -> Result<Vec<Work>, Failure> {
    if let Some(rw) = given.filter(|rw| rw.fixed_mix().is_none_or(|m| m.does(Kind::Trim))) {
        return Err(Failure::Usage(format!(
            "--rw {}: interfaces are compared by reads or by writes; type read, write, randread or randwrite",
            rw.word()
        )));
    }
    let all = vec![Rw::Read, Rw::Randread, Rw::Write, Rw::Randwrite];
    let list_directions = |all: &Vec<Rw>| all.iter().map(|w| w.word()).collect::<Vec<_>>().join(", ");
    let rws = origins.choose("--rw", given.map(|rw| vec![rw]), all, list_directions);
    let list_sizes = |all: &[u32]| all.iter().map(|b| show_block((*b).into())).collect::<Vec<_>>().join(", ");
    let (value, from) = match sizes {
        [] => (format!("{}; random {}", list_sizes(SIZES), list_sizes(RANDOM_SIZES)), "default"),
        given => (list_sizes(given), "command line"),
    };
    origins.record("--bs", &value, from);
    let sizes_for = |rw: Rw| match (sizes, rw.is_random()) {
        ([], true) => RANDOM_SIZES,
        ([], false) => SIZES,
        (given, _) => given,
    };
    Ok(rws
        .into_iter()
        .flat_map(|rw| sizes_for(rw).iter().map(move |b| Work { rw, block_bytes: *b }))
        .collect())
}

impl Interface {
    fn is_for(&self, rw: Rw) -> bool {
        match self.directions {
            Directions::Both => true,
            Directions::In => reads(rw),
            Directions::Out => writes(rw),
        }
    }
}

impl Work {
    /// Example: `4K random read`.
    fn describe(self) -> String {
        let pattern = if self.rw.is_random() { Pattern::Random } else { Pattern::Sequential };
        Access::plain(pattern, self.block_bytes, if writes(self.rw) { 0 } else { 100 }).describe()
    }
}

fn job_name(interface: &Interface, work: Work) -> String {
    format!("{}, {}", interface.name_for(writes(work.rw)), work.describe())
}

impl Setup<'_> {
    /// Makes the job of an interface.
    fn make_spec(&self, interface: &Interface, work: Work) -> Result<JobSpec, String> {
        self.check_interface(interface, work)?;
        let engine = values::engine(interface.engine)?;
        let mut job = self.request.job.clone();
        job.name = Some(job_name(interface, work));
        let several = |concurrency| if interface.concurrency == concurrency { self.depth } else { 1 };
        let random = work.rw.is_random();
        let size = Sizes::Fixed(work.block_bytes);
        for stream in job.streams_mut() {
            stream.target = vec![model::name::text(&self.given)];
            stream.rw = Some(work.rw);
            stream.cache = Some(interface.cache);
            stream.bs = Some(PerKind::all(size.clone()));
            stream.size = Some(self.span);
            stream.engine = Some(engine.clone());
            stream.depth = Some(several(Concurrency::Depth));
            stream.give("workers").workers = several(Concurrency::Threads);
            stream.random = random.then_some(Order::Once);
            // Each thread takes the next block, like the threads of a pool.
            stream.steps.start = if random { Start::default() } else { Start::Interlocked };
            stream.resolved.limit = StopRule::default();
        }
        Ok(job)
    }

    fn check_interface(&self, interface: &Interface, work: Work) -> Result<(), String> {
        let engine = interface.engine.split(':').next().unwrap_or_default();
        if ::engine::engines::find(engine).is_none() {
            return Err(format!(
                "this fathom was built without C++ streams, as all packages are; `cargo install --locked --features {CXX} fathom-io` builds \
                 one that has them (needs cargo and g++)"
            ));
        }
        if let Some(cause) = self.denial.as_ref().filter(|_| engine == engine::WANTED) {
            return Err(format!("io_uring cannot be used here: {cause}"));
        }
        if writes(work.rw) {
            self.may_write.clone()?;
        }
        if interface.renews_file() && self.found.role != Role::Made {
            return Err(
                "possible only with a file that may be truncated; name a directory, in which fathom makes one"
                    .into(),
            );
        }
        if !interface.cache.is_direct() {
            return Ok(());
        }
        if let Some(why) = self.place.without_direct() {
            return Err(format!("there is no direct I/O here ({why})"));
        }
        let align = target::direct_alignment(&self.place);
        if !work.block_bytes.is_multiple_of(align.max(1)) {
            return Err(format!("direct I/O needs multiples of {align} bytes here"));
        }
        Ok(())
    }
}

#[test]
fn the_budget_pays_for_rounds_before_longer_runs() {
    let divide = |jobs, typed| Schedule::divide(jobs, 1, typed, None, None);
    let seconds = |s: u64| Some(s * 1_000_000_000);
    let takes = |s: &Schedule, jobs: u64| {
        s.making_ns + AROUND_NS + jobs * (TRIAL_NS + u64::from(s.runs) * (s.window_ns + OVERHEAD_NS))
    };
    for (jobs, typed) in
        [(36, None), (36, seconds(60)), (36, seconds(600)), (219, None), (4, seconds(20)), (2, None)]
    {
        let schedule = divide(jobs, typed).unwrap_or_else(|why| panic!("{jobs}: {why:?}"));
        assert!((SHORTEST_NS..=LONGEST_IN_BUDGET_NS).contains(&schedule.window_ns), "{jobs}: {schedule:?}");
        assert!((RUNS[0]..=RUNS[2]).contains(&schedule.runs), "{jobs}: {schedule:?}");
        assert!(takes(&schedule, jobs as u64) <= schedule.budget_ns, "{jobs}: {schedule:?}");
    }
    let usual = divide(36, None).map(|s| (s.budget_ns, s.runs));
    assert_eq!(
        usual.ok(),
        Some((budget::INTERFACES_NS, 7)),
        "the six common interfaces in less than two minutes"
    );
    assert!(divide(36, seconds(120)).is_ok_and(|s| takes(&s, 36) > 108 * 1_000_000_000), "all of it is used");
    let why = divide(36, seconds(20)).err().map_or_else(String::new, |why| why.message().to_owned());
    let enough = why.split_once("type --budget ").and_then(|(_, rest)| rest.split_once("s or more"));
    let enough = enough.and_then(|(n, _)| n.parse().ok()).unwrap_or_else(|| panic!("{why}"));
    assert!(divide(36, seconds(enough)).is_ok(), "what it says to type is enough: {why}");
    assert!(divide(219, None).is_ok_and(|s| s.runs == 5), "a long list takes longer");
}
