//! The same tests on several targets: one job per test and target.
//!
//! For: what the targets are called beside one another, and which jobs are the same test. Not for: the tests of one target
//! ([`super::profile`]), nor for which is faster (crate `analysis`).

use super::origins::Origins;
use super::{Jobs, profile, target};
use crate::failure::Failure;
use crate::request::{BenchSpec, Request};
use machine::root::Root;
use model::identity::Identity;
use model::name;
use model::spec::Until;
use model::study::Study;
use model::targets::{TargetComparison, TargetJobs};
use std::path::{Path, PathBuf};

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
    all.study = Study::Targets(TargetComparison { sides });
    Ok(all)
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
