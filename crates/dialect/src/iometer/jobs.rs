//! From a configuration of Iometer to phases: one for each access specification at each step of its cycle.
//!
//! For: which workers work on which targets in each test, as the tool's test types say. Not for: reading the file ([`super::icf`]).
//!
//! As in Iometer the whole cycle is gone through for each access specification: the first of every worker, then the second. A worker
//! with fewer of them, or whose specification is Idle, has nothing to do then, and is not counted where workers or targets are.

use super::cycle::{Load, cycle_tests};
use super::icf::{Icf, Manager, Worker, short};
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

/// The whole job; its targets are those of the file, or `places` in the order of their first naming.
///
/// # Errors
/// What cannot be carried out, at its place.
pub(super) fn job_spec(icf: &Icf, places: &[String]) -> Result<JobSpec, Vec<Mark>> {
    let marks = refused(icf, places, true);
    if !marks.is_empty() {
        return Err(marks);
    }
    let names = names(icf);
    let (mut phases, mut typed) = (Vec::new(), Vec::new());
    for at in 0..workers(icf).map(|(_, w)| icf.assigned(w).len()).max().unwrap_or(0) {
        for loads in cycle_tests(icf, at) {
            let told = loads.iter().map(|load| worker_entry(load, at)).collect::<Vec<TypedStream>>();
            let place = |load: &Load| stream(icf, load, (&names, places));
            let streams: Vec<StreamSpec> = loads.iter().map(place).collect();
            let (time, warmup) = (icf.seconds * SECOND_NS, icf.ramp_seconds * SECOND_NS);
            phases.push(PhaseSpec { time: Some(time), warmup: Some(warmup), cooldown: None, streams });
            typed.push(told);
        }
    }
    if phases.is_empty() || phases.len() > MAX_PHASES {
        let why = format!(
            "there are {} tests; a job has 1 to {MAX_PHASES}, so assign other access specifications, or use larger steps",
            phases.len()
        );
        let place = icf.managers.first().map_or(0..0, |manager| manager.place.clone());
        return Err(vec![Mark::new(place, why)]);
    }
    let seed = workers(icf).find_map(|(_, w)| w.seed);
    let typed = Typed { defaults: result_file_options(icf), phases: typed, ..Typed::default() };
    Ok(JobSpec { seed, typed: Some(typed), phases, ..JobSpec::default() })
}

/// What the result file repeats of the whole test.
fn result_file_options(icf: &Icf) -> Options {
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
pub(super) fn refused(icf: &Icf, places: &[String], is_run: bool) -> Vec<Mark> {
    let mut marks = Vec::new();
    let Some((first, _)) = workers(icf).next() else {
        marks.push(Mark::new(0..0, "there is no worker; write 'Manager ID and 'Worker with their targets"));
        return marks;
    };
    let elsewhere = |m: &&Manager| !m.workers.is_empty() && !m.address.eq_ignore_ascii_case(&first.address);
    for manager in icf.managers.iter().filter(elsewhere) {
        let why = format!(
            "the manager {} is of another host than {}, by its network address, and one call measures the machine that it runs on; take it away and run a file with it alone on that host, or write what all hosts do as a job for `mpirun fathom run` (docs/how-to/many-hosts.md)",
            short(&manager.name),
            short(&first.name)
        );
        marks.push(Mark::new(manager.place.clone(), why));
    }
    if icf.seconds == 0 && is_run {
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
    let seeds: Vec<u64> = workers(icf).filter_map(|(_, w)| w.seed).collect();
    for (manager, worker) in workers(icf) {
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
        if icf.assigned(worker).is_empty() {
            wrong("it has no access specification; write 'Assigned access specs with a name".into());
        }
        if name(icf, manager, worker).chars().count() > MAX_NAME {
            wrong(format!(
                "its name is too long, with that of its manager where there are several; write {MAX_NAME} characters at most"
            ));
        }
        if worker.seed.is_some_and(|seed| seeds.iter().any(|other| *other != seed)) {
            wrong("all workers have one seed here; write the same into each".into());
        }
    }
    for (name, place) in workers(icf).flat_map(|(_, w)| &w.targets).filter(|_| places.is_empty() && is_run) {
        if !path(name).starts_with('/') {
            let why = format!(
                "{} is no path of Linux; type a file, directory or device for each of {}, as in fathom iometer /c FILE TARGET... (--explain shows the tests)",
                short(name),
                names.join(", ")
            );
            marks.push(Mark::new(place.clone(), why));
        }
    }
    marks
}

/// All workers with their managers.
pub(super) fn workers(icf: &Icf) -> impl Iterator<Item = (&Manager, &Worker)> {
    icf.managers.iter().flat_map(|manager| manager.workers.iter().map(move |worker| (manager, worker)))
}

/// What a worker is called: with its manager where several have workers, since each begins with a worker 1.
pub(super) fn name(icf: &Icf, manager: &Manager, worker: &Worker) -> String {
    let several = icf.managers.iter().filter(|m| !m.workers.is_empty()).count() > 1;
    if several { format!("{} {}", manager.name, worker.name) } else { worker.name.clone() }
}

/// Names of targets, each once, in the order of their first naming.
pub(super) fn names(icf: &Icf) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in workers(icf).flat_map(|(_, w)| &w.targets) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// A target without its file system, which Iometer writes behind it: `/data [ext4]`.
pub(super) fn path(name: &str) -> &str {
    name.split_once(" [").map_or(name, |(path, _)| path).trim()
}

/// What the result file says of a worker in the tests of the access specification of this number.
fn worker_entry(load: &Load, at: usize) -> TypedStream {
    let options = [
        ("manager", load.manager.name.clone()),
        ("manager number", load.number.to_string()),
        ("worker", load.worker.name.clone()),
        ("specification", load.spec.name.clone()),
        ("outstanding", load.outstanding.to_string()),
        ("sectors", load.worker.sectors.to_string()),
        ("first sector", load.worker.first_sector.to_string()),
    ];
    let options = options.map(|(name, value)| (name.to_owned(), value)).to_vec();
    TypedStream { options, group: at, ..TypedStream::default() }
}

/// The stream of a worker in a test.
fn stream(icf: &Icf, load: &Load, (names, places): (&[String], &[String])) -> StreamSpec {
    let Load { manager, worker, spec, outstanding, .. } = *load;
    let place = |(name, _): &(String, _)| {
        let at = names.iter().position(|known| known == name);
        at.and_then(|at| places.get(at)).cloned().unwrap_or_else(|| path(name).to_owned())
    };
    let target: Vec<String> = worker.targets.iter().take(load.targets).map(place).collect();
    let writes = spec.lines.iter().any(LineSpec::writes);
    let largest = spec.lines.iter().map(|l| l.bs.most().max(l.reply)).max().unwrap_or(0);
    let mut stream = StreamSpec {
        name: Some(name(icf, manager, worker)).filter(|name| !name.is_empty()),
        sharing: (target.len() > 1).then_some(Sharing::Each),
        target,
        lines: spec.lines.clone(),
        depth: Some(outstanding),
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
