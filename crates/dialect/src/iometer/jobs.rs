//! From a configuration of Iometer to phases: one for each access specification at each step of its cycle.
//!
//! For: which workers work on which targets in each test, as the tool's test types say. Not for: reading the file ([`super::icf`]).
//!
//! As in Iometer the whole cycle is gone through for each access specification: the first of every worker, then the second. A worker
//! with fewer of them, or whose specification is Idle, has nothing to do then.

use super::icf::{Icf, Rises, Spec, Worker, short};
use crate::trouble::Mark;
use model::job::Sharing;
use model::spec::cycle::Cycle;
use model::spec::limits::{MAX_DEPTH, MAX_NAME, MAX_PHASES, MAX_TARGETS};
use model::spec::{JobSpec, LineSpec, PhaseSpec, StreamSpec};
use model::typed::{Options, Typed, TypedStream};

const SECTOR_BYTES: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;
/// Longest run time and ramp up: a day.
const LONGEST_S: u64 = 86_400;

/// Who works on how much in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    workers: usize,
    /// Targets of each worker at most.
    targets: usize,
    /// Those of the last worker, where it has fewer.
    of_last: Option<usize>,
    /// Operations in flight on each target; those of the worker where `None`.
    outstanding: Option<u32>,
}

/// The whole job; its targets are those of the file, or `places` in the order of their first naming.
///
/// # Errors
/// What cannot be carried out, at its place.
pub(super) fn job(icf: &Icf, places: &[String]) -> Result<JobSpec, Vec<Mark>> {
    let marks = refused(icf, places);
    if !marks.is_empty() {
        return Err(marks);
    }
    let Some(manager) = icf.managers.iter().find(|m| !m.workers.is_empty()) else { return Err(Vec::new()) };
    let names = names(icf);
    let workers = &manager.workers;
    let most = workers.iter().map(|w| w.targets.len()).max().unwrap_or(1);
    let loads = loads(icf, workers.len(), most);
    let tests = workers.iter().map(|w| assigned(icf, w).len()).max().unwrap_or(0);
    let (mut phases, mut typed) = (Vec::new(), Vec::new());
    for test in 0..tests {
        for load in &loads {
            let (streams, told) = streams(icf, workers, &manager.name, (test, load), (&names, places));
            if !streams.is_empty() {
                let (time, warmup) = (icf.seconds * SECOND_NS, icf.ramp_seconds * SECOND_NS);
                phases.push(PhaseSpec { time: Some(time), warmup: Some(warmup), cooldown: None, streams });
                typed.push(told);
            }
        }
    }
    if phases.is_empty() || phases.len() > MAX_PHASES {
        let why = format!(
            "there are {} tests; a job has 1 to {MAX_PHASES}, so assign other access specifications, or use larger steps",
            phases.len()
        );
        return Err(vec![Mark::new(manager.place.clone(), why)]);
    }
    let seed = workers.iter().find_map(|w| w.seed);
    let typed = Typed { defaults: said(icf), phases: typed, profile: None };
    Ok(JobSpec { seed, typed: Some(typed), phases, ..JobSpec::default() })
}

/// What the result file repeats of the whole test.
fn said(icf: &Icf) -> Options {
    let number = Cycle::ALL.iter().position(|(_, cycle)| *cycle == icf.cycle).unwrap_or(0);
    let mut out: Options = [
        ("test type", number.to_string()),
        ("description", icf.description.clone()),
        ("record", icf.record.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    for spec in &icf.specs {
        out.push(("specification".into(), format!("{},{}", spec.name, spec.default)));
        let line = |l: &LineSpec| {
            let (size, reads, delay) = (l.bs.most(), l.mix.read_percent.get(), l.delay / 1_000_000);
            format!("{size},{},{reads},{},{delay},{},{},{}", l.share, l.random, l.burst, l.align, l.reply)
        };
        out.extend(spec.lines.iter().map(|l| ("line".to_owned(), line(l))));
    }
    out
}

/// What cannot be carried out.
fn refused(icf: &Icf, places: &[String]) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut managers = icf.managers.iter().filter(|m| !m.workers.is_empty());
    let first = managers.next();
    for manager in managers {
        marks.push(Mark::new(
            manager.place.clone(),
            "fathom measures the machine that it runs on; take the other managers away, and run it on each of them",
        ));
    }
    let Some(first) = first else {
        marks.push(Mark::new(0..0, "there is no worker; write 'Manager ID and 'Worker with their targets"));
        return marks;
    };
    if icf.seconds == 0 {
        let why = "its run time is 0, which ends by hand there; write seconds, or type /t SECONDS";
        marks.push(Mark::new(first.place.clone(), why));
    }
    if icf.seconds.max(icf.ramp_seconds) > LONGEST_S {
        let why =
            format!("its run time or its ramp up is longer than a day; write {LONGEST_S} seconds at most");
        marks.push(Mark::new(first.place.clone(), why));
    }
    let names = names(icf);
    if !places.is_empty() && places.len() != names.len() {
        let why = format!(
            "its workers name {} targets ({}), and {} are typed; type as many",
            names.len(),
            names.join(", "),
            places.len()
        );
        marks.push(Mark::new(first.place.clone(), why));
    }
    let seeds: Vec<u64> = first.workers.iter().filter_map(|w| w.seed).collect();
    for worker in &first.workers {
        let mut wrong = |why: String| marks.push(Mark::new(worker.place.clone(), why));
        if worker.targets.is_empty() || worker.targets.len() > MAX_TARGETS {
            wrong(format!(
                "a worker has 1 to {MAX_TARGETS} targets, not {}; write 'Target with its name",
                worker.targets.len()
            ));
        }
        if worker.outstanding > MAX_DEPTH {
            wrong(format!("too many operations are in flight; write {MAX_DEPTH} at most"));
        }
        if assigned(icf, worker).is_empty() {
            wrong("it has no access specification; write 'Assigned access specs with a name".into());
        }
        if worker.name.chars().count() > MAX_NAME {
            wrong(format!("its name is too long; write {MAX_NAME} characters at most"));
        }
        if worker.seed.is_some_and(|seed| seeds.iter().any(|other| *other != seed)) {
            wrong("all workers have one seed here; write the same into each".into());
        }
    }
    for (name, place) in first.workers.iter().flat_map(|w| &w.targets).filter(|_| places.is_empty()) {
        if !path(name).starts_with('/') {
            let why = format!(
                "{} is no path; type a file, directory or device for each target, as in fathom iometer /c FILE TARGET...",
                short(name)
            );
            marks.push(Mark::new(place.clone(), why));
        }
    }
    marks
}

/// Names of targets, each once, in the order of their first naming.
pub(super) fn names(icf: &Icf) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in icf.managers.iter().flat_map(|m| &m.workers).flat_map(|w| &w.targets) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// A target without its file system, which Iometer writes behind it: `/data [ext4]`.
fn path(name: &str) -> &str {
    name.split_once(" [").map_or(name, |(path, _)| path).trim()
}

/// The access specifications of a worker in their order; where none is assigned those that all disks have.
fn assigned<'i>(icf: &'i Icf, worker: &Worker) -> Vec<Option<&'i Spec>> {
    if worker.specs.is_empty() {
        return icf.specs.iter().filter(|s| matches!(s.default.as_str(), "ALL" | "DISK")).map(Some).collect();
    }
    let named = |(name, _): &(String, _)| icf.specs.iter().find(|s| s.name.eq_ignore_ascii_case(name));
    worker.specs.iter().map(named).collect()
}

/// The steps of the cycle, on so many workers with so many targets each at most.
pub(super) fn loads(icf: &Icf, workers: usize, targets: usize) -> Vec<Load> {
    let up_to = |rises: Rises, most: usize| -> Vec<usize> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let below = rises.law.values(rises.start, most.saturating_sub(1), rises.by);
        // All that there are come last, whether or not the steps meet them.
        below.chain([most]).map(|n| n as usize).collect()
    };
    let outstanding = || -> Vec<Option<u32>> {
        let Rises { start, end, by, law } = icf.outstanding;
        law.values(start, end.unwrap_or(start), by).map(Some).collect()
    };
    let cycle = icf.cycle;
    if cycle.increments() {
        let one = |pairs: usize| {
            let (full, few) = (pairs / targets.max(1), pairs % targets.max(1));
            let of_last = (few > 0).then_some(few);
            Load { workers: full + usize::from(few > 0), targets, of_last, outstanding: None }
        };
        return up_to(icf.targets, workers * targets).into_iter().map(one).collect();
    }
    let all_workers = if cycle.has_workers() { up_to(icf.workers, workers) } else { vec![workers] };
    let all_targets = if cycle.has_targets() { up_to(icf.targets, targets) } else { vec![targets] };
    let depths = if cycle.has_outstanding() { outstanding() } else { vec![None] };
    let mut out = Vec::new();
    for workers in &all_workers {
        for targets in &all_targets {
            out.extend(depths.iter().map(|depth| Load {
                workers: *workers,
                targets: *targets,
                of_last: None,
                outstanding: *depth,
            }));
        }
    }
    out
}

/// The streams of a test, one for each worker that has something to do, with what the result file says of them.
fn streams(
    icf: &Icf,
    workers: &[Worker],
    manager: &str,
    (test, load): (usize, &Load),
    (names, places): (&[String], &[String]),
) -> (Vec<StreamSpec>, Vec<TypedStream>) {
    let (mut streams, mut told) = (Vec::new(), Vec::new());
    for (number, worker) in workers.iter().take(load.workers).enumerate() {
        let Some(Some(spec)) = assigned(icf, worker).get(test).copied() else { continue };
        let is_last = number + 1 == load.workers;
        let most = load.of_last.filter(|_| is_last).unwrap_or(load.targets);
        let chosen: Vec<String> = worker.targets.iter().take(most).map(|(name, _)| name.clone()).collect();
        let place = |name: &String| {
            let at = names.iter().position(|known| known == name);
            at.and_then(|at| places.get(at)).cloned().unwrap_or_else(|| path(name).to_owned())
        };
        let depth = load.outstanding.unwrap_or(worker.outstanding);
        streams.push(stream(worker, spec, chosen.iter().map(place).collect(), depth));
        let options = [
            ("manager", manager.to_owned()),
            ("worker", worker.name.clone()),
            ("specification", spec.name.clone()),
            ("outstanding", depth.to_string()),
            ("sectors", worker.sectors.to_string()),
            ("first sector", worker.first_sector.to_string()),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value)).to_vec();
        told.push(TypedStream { options, group: test, ..TypedStream::default() });
    }
    (streams, told)
}

fn stream(worker: &Worker, spec: &Spec, target: Vec<String>, depth: u32) -> StreamSpec {
    let writes = spec.lines.iter().any(LineSpec::writes);
    let largest = spec.lines.iter().map(|l| l.bs.most().max(l.reply)).max().unwrap_or(0);
    let mut stream = StreamSpec {
        name: Some(worker.name.clone()).filter(|name| !name.is_empty()),
        sharing: (target.len() > 1).then_some(Sharing::Each),
        target,
        lines: spec.lines.clone(),
        depth: Some(depth),
        workers: Some(1),
        offset: Some(worker.first_sector.saturating_mul(SECTOR_BYTES)).filter(|bytes| *bytes > 0),
        size: Some(worker.sectors.saturating_mul(SECTOR_BYTES)).filter(|bytes| *bytes > 0),
        each_worker: Some(0),
        ..StreamSpec::default()
    };
    match worker.pattern {
        0 if writes => stream.compress = Some(100),
        1 if writes => (stream.dedup, stream.dedup_set) = (Some(100), Some(u64::from(largest).max(4096))),
        _ => {}
    }
    stream
}
