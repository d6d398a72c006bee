//! The same tests on several targets: one job per test and target, and the time to compare them in.
//!
//! The jobs of a test follow one another, in the order of the targets; tests that a target lacks come last (`TargetLayout`). The time that
//! the first rounds leave goes to the tests that vary most, while measuring (`analysis::strategy`).

use super::origins::Origins;
use super::{Jobs, budget, profile, target};
use crate::failure::Failure;
use crate::request::{BenchSpec, Request};
use analysis::strategy::cost::run_ns;
use machine::root::Root;
use model::identity::Identity;
use model::job::Job;
use model::name;
use model::spec::{JobSpec, Until};
use model::study::Study;
use model::targets::{TargetComparison, TargetJobs};
use model::units::minutes;
use std::path::{Path, PathBuf};

/// Time to compare in, unless `--budget` says otherwise: less than two minutes with everything around it.
const BUDGET_NS: u64 = 110_000_000_000;
/// Window and warm-up of each run. On a virtual disk, runs of a second differed by 9 % from each other and quarters of a second within one
/// run by 2 %: many short runs tell more than a few long ones.
pub(super) const TIMES_NS: (u64, u64) = (250_000_000, 50_000_000);
/// Part that a default budget has beyond the first rounds where these take long, as a divisor.
const SPARE: u64 = 4;

/// Finds the jobs of a profile on each target that was named.
pub(super) fn tests(
    request: &Request,
    said: &BenchSpec,
    root: &Root,
    origins: &mut Origins,
) -> Result<Jobs, Failure> {
    if request.job.until == Some(Until::Steady) {
        return Err(Failure::Usage(
            "--compare: targets are measured in turns, and --until steady leaves no turns; leave one of them out".into(),
        ));
    }
    refuse_two_rules(request)?;
    let paths = paths(request)?;
    let mut all = Jobs::default();
    let mut sides = Vec::new();
    for (said_path, called) in request.targets.iter().zip(names(&paths)) {
        let one = Request { targets: vec![said_path.clone()], ..request.clone() };
        let asked = profile::tests(&one, said, root, origins)?;
        if sides.is_empty() {
            all.headline = asked.headline;
        }
        let mut tests = Vec::new();
        for mut spec in asked.specs {
            let test = spec.name.take().unwrap_or_default();
            spec.name = Some(format!("{test} on {called}"));
            for stream in spec.phases.iter_mut().flat_map(|p| &mut p.streams) {
                stream.target = vec![name::text(said_path)];
            }
            tests.push((test, all.specs.len()));
            all.specs.push(spec);
        }
        sides.push(TargetJobs { name: called, tests });
    }
    origins.fixed("--compare", &format!("{} targets, in turns", sides.len()), "command line");
    sort_by_test(&mut all, &mut sides);
    all.study = Study::Targets(TargetComparison { sides });
    Ok(all)
}

/// Puts the jobs into the order of a `TargetLayout`.
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

/// Whether the time decides how often each test is measured: not if other options do.
pub(super) fn is_timed(request: &Request) -> bool {
    let JobSpec { runs, precision, settle, max_runs, .. } = &request.job;
    let is_counted = runs.is_some() || precision.is_some() || settle.is_some() || max_runs.is_some();
    request.budget_ns.is_some() || !is_counted
}

/// Refuses options that decide otherwise how often is measured.
fn refuse_two_rules(request: &Request) -> Result<(), Failure> {
    let JobSpec { precision, settle, max_runs, .. } = &request.job;
    let others = [
        ("--precision", precision.is_some()),
        ("--settle", settle.is_some()),
        ("--max-runs", max_runs.is_some()),
    ];
    match others.iter().find(|(_, typed)| *typed && request.budget_ns.is_some()) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "--budget measures until the time is up, and {flag} has a rule of its own; leave one of them out"
        ))),
        None => Ok(()),
    }
}

/// The time to compare in.
///
/// # Errors
/// A usage failure if the first rounds take longer than what was typed.
pub(super) fn budget_ns(
    request: &Request,
    (jobs, runs, baseline_ns): (&[Job], u32, u64),
    origins: &mut Origins,
) -> Result<u64, Failure> {
    let round = jobs.iter().map(run_ns).fold(0, u64::saturating_add);
    let least = baseline_ns.saturating_add(round.saturating_mul(runs.into()));
    let work = format!("{runs} rounds of {} tests", jobs.len());
    budget::refuse_short(request.budget_ns, least, &work, "shorter runs (--time) or fewer (--runs)")?;
    let default = BUDGET_NS.max(least.saturating_add(least / SPARE));
    let from = "default: 110 s, or more where the first rounds take longer";
    Ok(origins.choose_from("--budget", request.budget_ns, default, from, |ns| minutes(*ns)))
}

/// The targets without links. One that is there twice under any name is no two.
fn paths(request: &Request) -> Result<Vec<PathBuf>, Failure> {
    let mut seen: Vec<(&Path, Identity)> = Vec::new();
    let mut paths = Vec::new();
    for said in &request.targets {
        let path = said.canonicalize().map_err(|e| target::unreachable_path(said, &e))?;
        let what = machine::identity::of_path(&path).map_err(|e| target::unreachable_path(said, &e))?;
        if let Some((before, _)) = seen.iter().find(|(_, known)| known.is_same(&what)) {
            return Err(Failure::Usage(format!(
                "--compare: {} and {} are the same; name different targets",
                name::shown(before),
                name::shown(said)
            )));
        }
        seen.push((said, what));
        paths.push(path);
    }
    Ok(paths)
}

/// The shortest ends of paths that tell all of them apart.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let end = |path: &PathBuf, parts: usize| {
        let all: Vec<_> = path.components().collect();
        let tail: PathBuf = all[all.len().saturating_sub(parts)..].iter().collect();
        name::shown(&tail)
    };
    let longest = paths.iter().map(|p| p.components().count()).max().unwrap_or(1);
    let of = |parts: usize| paths.iter().map(|p| end(p, parts)).collect::<Vec<String>>();
    let distinct = |names: &Vec<String>| names.iter().enumerate().all(|(at, n)| !names[..at].contains(n));
    (1..=longest).map(of).find(distinct).unwrap_or_else(|| of(longest))
}

#[test]
fn targets_are_called_by_what_tells_them_apart() {
    let of = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
    assert_eq!(of(&["/mnt/ext4", "/mnt/xfs"]), ["ext4", "xfs"]);
    assert_eq!(of(&["/a/data", "/b/data", "/c"]), ["a/data", "b/data", "/c"]);
    assert_eq!(of(&["/data", "/x/data"]), ["/data", "x/data"]);
    assert_eq!(of(&["/", "/x"]), ["/", "x"]);
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
