//! `fathom bench`: one job per test and direction of a profile, where the target supports it, on
//! one or several targets.
//!
//! 1. Each test becomes a job with the user's settings, its span, and its row in the output of the
//!    profile's tool. A test whose block size the target does not support uses a larger one, or is
//!    left out with a reason.
//! 2. With several targets, the jobs of a test follow one another in the order of the targets; tests that are missing on some target come
//!    last. The time left after the first rounds goes to the tests that vary most (`analysis::strategy`).
//! 3. `--quick` divides ten seconds among the rows.

use super::{Jobs, Times};
use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::plan::study::{StudyPlan, Timing, choose_runs, default_runs};
use crate::plan::target::TargetFacts;
use crate::plan::{budget, engine, target};
use crate::request::{BenchSpec, Request};
use analysis::strategy::cost::OVERHEAD_NS;
use machine::root::Root;
use model::job::Cache;
use model::machine::Identity;
use model::name;
use model::plan::{Role, Strategy};
use model::profile::{CellSource, Files, LayoutRow, Profile, Test, ToolLayout, ToolStyle};
use model::spec::{JobSpec, Until};
use model::study::{TargetComparison, TargetJobs};
use model::units::show_bytes;
use std::path::{Path, PathBuf};

/// Settings that the tests of a profile define.
const OF_TESTS: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--workers"];
/// Settings that tests define if the user may choose the number of workers.
const OF_FREE_WORKERS: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--shift-hosts"];
/// Settings that tests define if they use a part of the target.
const OF_SIZED: &[&str] = &["--rw", "--mix", "--bs", "--depth", "--workers", "--size"];
/// Settings that tests define if each run writes the whole span once, reads it back, and then ends. Such tests also define their data.
const OF_REWRITES: &[&str] =
    &["--rw", "--mix", "--bs", "--depth", "--workers", "--size", "data", "--time", "--warmup"];

/// The tests while they become jobs.
struct Tests<'a> {
    request: &'a Request,
    profile: &'static Profile,
    target: Option<TargetFacts>,
    jobs: Jobs,
    rows: Vec<LayoutRow>,
    /// The reasons why tests are left out, each with the names of these tests.
    left_out: Vec<(String, Vec<String>)>,
    /// Differences from the profile's tool.
    differs: Vec<String>,
}

/// Makes the jobs of a profile on one target.
pub(super) fn profile_jobs(
    request: &Request,
    given: &BenchSpec,
    root: &Root,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    let profile = origins.choose("--profile", given.profile, given.chosen(), |p| p.name.into());
    let differs = profile.style.map_or(&[][..], |c| c.differs).iter().map(|d| (*d).to_owned());
    let mut tests = Tests {
        request,
        profile,
        target: find_only_target(request, root)?,
        jobs: Jobs::default(),
        rows: Vec::new(),
        left_out: Vec::new(),
        differs: differs.collect(),
    };
    tests.refuse_times()?;
    tests.refuse_workers()?;
    tests.record_settings(origins);
    // A bench only reads a user's file or device; writing requires its name in --destroy.
    let has_user_target = tests.target.as_ref().is_some_and(|g| g.role != Role::Made);
    let reads_only = has_user_target && request.destroy.is_empty();
    if reads_only {
        origins.record("directions", "reads only", "TARGET exists; --destroy TARGET adds writes");
    }
    for (read_percent, test) in profile.rows() {
        if reads_only && read_percent < 100 {
            if profile.read_percents.iter().all(|p| *p < 100) {
                tests.leave_out(
                    test,
                    "the test writes, and TARGET exists; type --destroy TARGET to allow that".into(),
                );
            }
        } else {
            tests.add(read_percent, test);
        }
    }
    tests.finish()
}

/// Returns the facts of the target; `None` if the engine moves no data.
fn find_only_target(request: &Request, root: &Root) -> Result<Option<TargetFacts>, Failure> {
    let spec = request.job.streams().next().cloned().unwrap_or_default();
    let entry = engine::find(&spec).map_err(|problem| Failure::Usage(problem.in_flags()))?;
    if !entry.moves_bytes {
        return Ok(None);
    }
    let cache = spec.cache.or(entry.caches.first().copied());
    let mut target = target::target_facts(request, root)?.into_iter().next();
    if let Some(target) = target.as_mut().filter(|_| !cache.is_some_and(Cache::is_direct)) {
        // Any alignment works through the page cache.
        target.align = None;
    }
    Ok(target)
}

impl Tests<'_> {
    /// Refuses --time and --warmup if tests read back their own data: if --time cut the write short, the test would read back data of
    /// an earlier test.
    fn refuse_times(&self) -> Result<(), Failure> {
        match ["time", "warmup"].iter().find(|k| self.reads_back() && self.request.flags.contains(k)) {
            Some(key) => Err(Failure::Usage(format!(
                "--{key} cannot be combined with --profile {}, whose runs end when all data are written and read; use a smaller --size, or fewer --runs",
                self.profile.name
            ))),
            None => Ok(()),
        }
    }

    /// Refuses --workers if the tests define their numbers of threads. Refuses a single file or device if each worker needs its own file.
    fn refuse_workers(&self) -> Result<(), Failure> {
        let name = self.profile.name;
        if !self.profile.takes_workers() && self.request.flags.contains(&"workers") {
            return Err(Failure::Usage(format!(
                "--workers: each test of --profile {name} has its own number of threads; type `fathom run --workers N`, or leave --workers out"
            )));
        }
        let needs_own_files = self.profile.tests.iter().any(|t| t.files == Files::Own);
        match self.target.as_ref().filter(|t| needs_own_files && t.role != Role::Made) {
            Some(target) => Err(Failure::Usage(format!(
                "--profile {name} needs a file for each worker, and {} is a single one; name a directory, in which fathom makes them",
                name::text(&target.path)
            ))),
            None => Ok(()),
        }
    }

    fn reads_back(&self) -> bool {
        self.profile.tests.iter().any(|t| t.rewrites.is_some())
    }

    fn typed_size(&self) -> Option<u64> {
        self.request.job.streams().next()?.size
    }

    /// Records the common settings; the list of jobs shows the others.
    fn record_settings(&self, origins: &mut Origins) {
        let tests = self.profile.tests;
        let from = format!("profile {}", self.profile.name);
        if self.reads_back() {
            origins.record("ends", "when all data are written, and when all data are read", &from);
        }
        let largest_span = tests.iter().filter_map(|t| t.span_bytes).max();
        if let (Some(_), Some(given)) = (largest_span, self.typed_size()) {
            origins.record("--size", &show_bytes(given), "command line");
        } else if let Some(span) = largest_span {
            let whole_test = tests.iter().find(|t| t.span_bytes.is_none());
            let words = whole_test.map_or(String::new(), |t| format!("; {} in the whole target", t.called));
            let span =
                self.target.as_ref().and_then(TargetFacts::known_bytes).map_or(span, |bytes| span.min(bytes));
            origins.record("--size", &format!("{}{words}", show_bytes(span)), &from);
        }
        origins.leave_out(match (self.reads_back(), largest_span) {
            _ if self.profile.takes_workers() => OF_FREE_WORKERS,
            (true, _) => OF_REWRITES,
            (false, Some(_)) => OF_SIZED,
            (false, None) => OF_TESTS,
        });
    }

    /// Adds one direction of a test, or the reason why it is left out.
    fn add(&mut self, read_percent: u8, test: &'static Test) {
        let mut fitted_test = *test;
        if let Some((align, why)) = self.find_misalignment(test) {
            if !test.raises_block_size {
                return self.leave_out(test, why);
            }
            fitted_test.block_bytes = test.block_bytes.next_multiple_of(align);
            let [wanted, larger] = [test, &fitted_test].map(|t| show_bytes(t.block_bytes.into()));
            let name = test.name_of(read_percent);
            self.differs.push(format!("{name} uses {larger} instead of {wanted}: {why}."));
        }
        let span = self.touched_bytes(test);
        if let Some(span) = span.filter(|s| *s < u64::from(fitted_test.block_bytes) && self.may_leave_out()) {
            return self.leave_out(test, format!("the region has only {}", show_bytes(span)));
        }
        if test.latency && test.span_bytes.is_none() && self.is_a_part() {
            let words =
                "is measured in a part of the drive; name the device without --size to measure all of it";
            self.differs.push(format!("{} {words}.", test.name_of(read_percent)));
        }
        let mut job = self.request.job.clone();
        for stream in job.streams_mut() {
            stream.size = stream.size.or(span.filter(|_| test.span_bytes.is_some()));
        }
        fitted_test.spec(read_percent, span.unwrap_or(target::MADE_BYTES), &mut job);
        let at = self.jobs.specs.len();
        if self.profile.tests.get(self.profile.headline) == Some(test) {
            self.jobs.headline.get_or_insert(at);
        }
        self.jobs.specs.push(job);
        self.add_row(at, read_percent, test);
    }

    /// Whether tests may be left out: only if the output of the profile's tool is shown, because it
    /// lists the tests that were left out. Other profiles are complete or refused.
    fn may_leave_out(&self) -> bool {
        self.profile.style.is_some()
    }

    /// Returns the alignment that direct I/O to the target needs, and a sentence about it, if the test's block size is no multiple of it.
    /// `None` for profiles that must be complete.
    fn find_misalignment(&self, test: &Test) -> Option<(u32, String)> {
        let target = self.target.as_ref().filter(|_| self.may_leave_out())?;
        let align = target.align.filter(|a| !test.block_bytes.is_multiple_of(*a))?;
        Some((align, format!("direct I/O to {} needs multiples of {align} bytes", name::text(&target.path))))
    }

    /// Bytes that a test touches; `None` if neither its span nor the size of the target is known.
    fn touched_bytes(&self, test: &Test) -> Option<u64> {
        let target_bytes = self.target.as_ref().and_then(TargetFacts::known_bytes);
        self.typed_size()
            .or_else(|| test.span_bytes.map(|s| s.min(target_bytes.unwrap_or(s))))
            .or(target_bytes)
    }

    /// Whether the target is less than a whole device.
    fn is_a_part(&self) -> bool {
        self.target.as_ref().is_some_and(|g| g.role != Role::Device || self.typed_size().is_some())
    }

    /// Leaves out a test. Names it once, even if both directions are left out for the same reason.
    fn leave_out(&mut self, test: &Test, why: String) {
        let at = self.left_out.iter().position(|(known, _)| *known == why).unwrap_or_else(|| {
            self.left_out.push((why, Vec::new()));
            self.left_out.len() - 1
        });
        let (_, names) = &mut self.left_out[at];
        let name = test.row_name();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// Adds the job to its test's row in the output of the profile's tool.
    fn add_row(&mut self, job: usize, read_percent: u8, test: &Test) {
        let name = test.row_name();
        let at = self.rows.iter().position(|r| r.name == name).unwrap_or_else(|| {
            self.rows.push(LayoutRow { name, latency: test.latency, read: None, write: None });
            self.rows.len() - 1
        });
        let row = &mut self.rows[at];
        let source = |phase| Some(CellSource { job, phase });
        match (test.rewrites, read_percent) {
            (Some(_), _) => (row.write, row.read) = (source(0), source(1)),
            (None, 100) => row.read = source(0),
            (None, _) => row.write = source(0),
        }
    }

    fn finish(self) -> Result<Jobs, Failure> {
        let Self { profile, rows, left_out, mut differs, mut jobs, .. } = self;
        let left_out = left_out.iter().map(|(why, names)| format!("Left out: {}: {why}.", names.join(", ")));
        if jobs.specs.is_empty() {
            let why = left_out.collect::<Vec<_>>().join(" ");
            return Err(Failure::Usage(format!(
                "no test of --profile {} can be measured. {why}",
                profile.name
            )));
        }
        differs.extend(left_out);
        let layout =
            |style: ToolStyle| ToolLayout { tool: style.tool.into(), kind: style.kind, rows, differs };
        jobs.study = profile.style.map(layout).map_or_else(Default::default, Into::into);
        Ok(jobs)
    }
}

/// Total time of a quick bench, including the report.
const WHOLE_NS: u64 = 10_000_000_000;
/// The part of the quick bench's time for reading the machine, the self test, and the verdict.
const OVERHEAD_AROUND_NS: u64 = 1_000_000_000;
/// The part of the quick bench's time for making the test file. On a slow disk the file is smaller.
pub(super) const MAKING_NS: u64 = 2_500_000_000;
/// The part of the quick bench's time for the idle watch.
pub(super) const WATCH_NS: u64 = 200_000_000;
/// Warm-up and window of a row of a quick bench.
const WARMUP_NS: u64 = 50_000_000;
const WINDOW_NS: u64 = 500_000_000;
/// Shortest window of a row of a quick bench, used if there are many rows.
const MIN_WINDOW_NS: u64 = 300_000_000;

/// No row begins that would end later than this, in ns from the start. Only the headline's row is
/// always measured.
pub(super) const ROWS_UNTIL_NS: u64 = WHOLE_NS - OVERHEAD_AROUND_NS;

/// Window and warm-up of each row of a quick bench.
///
/// # Errors
/// A usage failure if the profile's measurements do not fit into the time.
pub(super) fn quick_times(profile: &'static Profile) -> Result<Times, Failure> {
    let rows = (profile.rows().count() as u64).max(1);
    let each = (WHOLE_NS - OVERHEAD_AROUND_NS - MAKING_NS - WATCH_NS) / rows;
    let window_ns = each.saturating_sub(OVERHEAD_NS + WARMUP_NS).min(WINDOW_NS);
    if window_ns < MIN_WINDOW_NS || profile.tests.iter().any(|t| t.rewrites.is_some()) {
        return Err(Failure::Usage(format!(
            "--quick: the {rows} measurements of --profile {} do not fit in 10 s; type --profile cdm, or leave --quick out",
            profile.name
        )));
    }
    Ok(Times { window_ns, warmup_ns: WARMUP_NS })
}

/// Window and warm-up of each run if targets are compared. On a virtual disk, runs of one second differed by 9 %, but quarters of a
/// second within one run differed by only 2 %. Runs differ more than parts of one run. Many short runs give a better mean than a
/// few long ones.
pub(super) const COMPARED_TIMES: Times = Times { window_ns: 250_000_000, warmup_ns: 50_000_000 };

impl StudyPlan for TargetComparison {
    fn repeats(&self, request: &Request, _by_budget: Option<u32>, origins: &mut Origins) -> (u32, Strategy) {
        if !is_timed(request) {
            return choose_runs(request, origins);
        }
        let (default, from) = default_runs(&request.job);
        let runs = origins.choose_from("--runs", request.job.runs, default, from, u32::to_string);
        (runs, Strategy::Targets(self.layout()))
    }

    fn budget_ns(&self, timing: &Timing, origins: &mut Origins) -> Result<Option<u64>, Failure> {
        match timing.strategy {
            Strategy::Targets(_) => budget::for_targets(timing, origins).map(Some),
            _ => Ok(timing.request.budget_ns),
        }
    }
}

/// Makes the jobs of a profile on each named target.
pub(super) fn compared_targets_jobs(
    request: &Request,
    given: &BenchSpec,
    root: &Root,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    if request.job.until == Some(Until::Steady) {
        return Err(Failure::Usage(
            "--compare: the targets alternate, which --until steady does not allow; leave --compare or --until out"
                .into(),
        ));
    }
    refuse_conflicting_rules(request)?;
    let paths = resolve_targets(request)?;
    let mut all = Jobs::default();
    let mut sides = Vec::new();
    for (typed_path, called) in request.targets.iter().zip(shorten_names(&paths)) {
        let one = Request { targets: vec![typed_path.clone()], ..request.clone() };
        let jobs = profile_jobs(&one, given, root, origins)?;
        if sides.is_empty() {
            all.headline = jobs.headline;
        }
        let mut tests = Vec::new();
        for mut spec in jobs.specs {
            let test = spec.name.take().unwrap_or_default();
            spec.name = Some(format!("{test} on {called}"));
            for stream in spec.streams_mut() {
                stream.target = vec![name::text(typed_path)];
            }
            tests.push((test, all.specs.len()));
            all.specs.push(spec);
        }
        sides.push(TargetJobs { name: called, tests });
    }
    origins.record("--compare", &format!("{} targets, in turns", sides.len()), "command line");
    sort_by_test(&mut all, &mut sides);
    all.study = TargetComparison { sides }.into();
    Ok(all)
}

/// Sorts the jobs into the order of a `TargetLayout`: by test, then by target. Tests that are missing on some target come last.
fn sort_by_test(all: &mut Jobs, sides: &mut [TargetJobs]) {
    let has = |side: &TargetJobs, test: &str| side.tests.iter().any(|(name, _)| name == test);
    let Some(first) = sides.first() else { return };
    let names: Vec<String> = first.tests.iter().map(|(name, _)| name.clone()).collect();
    let on_all = |name: &&String| sides.iter().all(|side| has(side, name));
    let shared: Vec<&String> = names.iter().filter(on_all).collect();
    let place =
        |target: usize, (test, job): &(String, usize)| match shared.iter().position(|name| *name == test) {
            Some(at) => (at, target),
            None => (shared.len(), *job),
        };
    let mut order: Vec<((usize, usize), usize)> = sides
        .iter()
        .enumerate()
        .flat_map(|(target, side)| side.tests.iter().map(move |test| (target, test)))
        .map(|(target, test)| (place(target, test), test.1))
        .collect();
    order.sort_unstable();
    let mut specs: Vec<Option<JobSpec>> = std::mem::take(&mut all.specs).into_iter().map(Some).collect();
    let mut now = vec![0; specs.len()];
    for (at, (_, before)) in order.into_iter().enumerate() {
        now[before] = at;
        all.specs.extend(specs[before].take());
    }
    all.headline = all.headline.map(|before| now[before]);
    for (_, job) in sides.iter_mut().flat_map(|side| &mut side.tests) {
        *job = now[*job];
    }
}

/// Whether the time budget decides how often each test runs: if `--budget` was typed, or if no other option decides.
pub(super) fn is_timed(request: &Request) -> bool {
    let JobSpec { runs, precision, settle, max_runs, .. } = &request.job;
    let is_counted = runs.is_some() || precision.is_some() || settle.is_some() || max_runs.is_some();
    request.budget_ns.is_some() || !is_counted
}

/// Refuses options that conflict with the time budget.
fn refuse_conflicting_rules(request: &Request) -> Result<(), Failure> {
    let JobSpec { precision, settle, max_runs, .. } = &request.job;
    let others = [
        ("--precision", precision.is_some()),
        ("--settle", settle.is_some()),
        ("--max-runs", max_runs.is_some()),
    ];
    match others.iter().find(|(_, typed)| *typed && request.budget_ns.is_some()) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "--budget measures until the time is spent, and {flag} is another rule for the end; leave one of them out"
        ))),
        None => Ok(()),
    }
}

/// Returns the paths of the targets with links resolved. Refuses duplicates.
fn resolve_targets(request: &Request) -> Result<Vec<PathBuf>, Failure> {
    let mut seen: Vec<(&Path, Identity)> = Vec::new();
    let mut paths = Vec::new();
    for given in &request.targets {
        let path = given.canonicalize().map_err(|e| target::explain_unreachable(given, &e))?;
        let what = machine::identity::from_path(&path).map_err(|e| target::explain_unreachable(given, &e))?;
        if let Some((before, _)) = seen.iter().find(|(_, known)| known.is_same(&what)) {
            return Err(Failure::Usage(format!(
                "--compare: {} and {} are the same target; name different ones",
                name::shown(before),
                name::shown(given)
            )));
        }
        seen.push((given, what));
        paths.push(path);
    }
    Ok(paths)
}

/// Returns the shortest distinct suffixes of the paths.
fn shorten_names(paths: &[PathBuf]) -> Vec<String> {
    let end = |path: &PathBuf, parts: usize| {
        let all: Vec<_> = path.components().collect();
        let tail: PathBuf = all[all.len().saturating_sub(parts)..].iter().collect();
        name::shown(&tail)
    };
    let longest = paths.iter().map(|p| p.components().count()).max().unwrap_or(1);
    let suffixes = |parts: usize| paths.iter().map(|p| end(p, parts)).collect::<Vec<String>>();
    let are_distinct = |names: &Vec<String>| names.iter().enumerate().all(|(at, n)| !names[..at].contains(n));
    (1..=longest).map(suffixes).find(are_distinct).unwrap_or_else(|| suffixes(longest))
}

#[test]
fn a_quick_bench_refuses_profiles_that_do_not_fit() {
    for profile in model::profile::PROFILES {
        let fits = !["atto", "asssd-compression"].contains(&profile.name);
        assert_eq!(quick_times(profile).is_ok(), fits, "{}", profile.name);
        if let Ok(Times { window_ns, warmup_ns }) = quick_times(profile) {
            let rows = profile.rows().count() as u64 * (window_ns + warmup_ns + OVERHEAD_NS);
            assert!(rows + MAKING_NS + WATCH_NS + OVERHEAD_AROUND_NS <= WHOLE_NS, "{}", profile.name);
        }
    }
    let cdm = model::profile::PROFILES.iter().find(|p| p.name == "cdm").and_then(|p| quick_times(p).ok());
    assert_eq!(cdm.map(|times| times.window_ns), Some(WINDOW_NS), "half a second a row");
}

#[test]
fn target_names_are_the_shortest_distinct_suffixes() {
    let short_names = |paths: &[&str]| shorten_names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
    assert_eq!(short_names(&["/mnt/ext4", "/mnt/xfs"]), ["ext4", "xfs"]);
    assert_eq!(short_names(&["/a/data", "/b/data", "/c"]), ["a/data", "b/data", "/c"]);
    assert_eq!(short_names(&["/data", "/x/data"]), ["/data", "x/data"]);
    assert_eq!(short_names(&["/", "/x"]), ["/", "x"]);
}

#[test]
fn jobs_of_a_test_follow_one_another_and_tests_that_a_target_lacks_come_last() {
    let spec = |name: &str| JobSpec { name: Some(name.into()), ..JobSpec::default() };
    let side = |name: &str, tests: &[(&str, usize)]| TargetJobs {
        name: name.into(),
        tests: tests.iter().map(|(test, job)| ((*test).to_owned(), *job)).collect(),
    };
    let names = ["x on a", "y on a", "z on a", "y on b", "z on b"];
    let mut all = Jobs { specs: names.map(spec).to_vec(), headline: Some(2), ..Jobs::default() };
    let mut sides = [side("a", &[("x", 0), ("y", 1), ("z", 2)]), side("b", &[("y", 3), ("z", 4)])];
    sort_by_test(&mut all, &mut sides);
    let now: Vec<&str> = all.specs.iter().filter_map(|spec| spec.name.as_deref()).collect();
    assert_eq!(now, ["y on a", "y on b", "z on a", "z on b", "x on a"]);
    assert_eq!(all.headline, Some(2), "z on a");
    for (test, job) in sides.iter().flat_map(|side| &side.tests) {
        assert!(now[*job].starts_with(test.as_str()), "{test}: {now:?}");
    }
    assert_eq!(sides[0].tests[0], ("x".into(), 4));
    let layout = TargetComparison { sides: sides.to_vec() }.layout();
    assert_eq!((layout.tests, layout.group(3), layout.group(4)), (2, 1, 2));
}
