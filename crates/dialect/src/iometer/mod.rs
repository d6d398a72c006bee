//! Iometer: its configuration files as jobs, and their access specifications. Each test of a file becomes a phase. The reference is
//! Iometer's guide and files. Crate `report` writes the result file.

mod icf;
pub mod options;

use crate::names_in_tool::format_for_tool;
use crate::trouble::{Diagnostic, Trouble, quoted};
use crate::{Language, Objections, SECOND_NS, Tool};
use icf::{Icf, Manager, Progression, Spec, Worker};
use model::job::{Kind, Line, Stream};
use model::spec::iometer::Cycle;
use model::spec::number::{MAX_DEPTH, MAX_NAME, MAX_PHASES, MAX_TARGETS};
use model::spec::{JobSpec, Options, PhaseSpec, StreamSpec, Typed, TypedStream};
use model::units::show_bytes;

pub(crate) const LANGUAGE: Language = Language { tool: Tool::Iometer, extension: "icf", parse };

/// Reads a file as a job for `fathom run`. The targets of the file must be paths.
fn parse(name: &str, text: &str, also: Objections) -> Result<JobSpec, Trouble> {
    let mut job = read(name, text, &Overrides::default(), also)?;
    // `fathom run` may repeat the job, and reports all workers together.
    job.streams_mut().for_each(|stream| stream.resolved.each_worker_ns = None);
    Ok(job)
}

/// Settings of the command line that take precedence over those of a file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Replacements of the file's targets, in the order in which the file first names them; empty if its targets are paths.
    pub targets: Vec<String>,
    /// The run time in seconds, if given.
    pub seconds: Option<u64>,
}

/// Reads a configuration file as a job.
///
/// # Errors
/// All errors in the file, each with its place and what to write instead.
pub fn read(name: &str, text: &str, overrides: &Overrides, also: Objections) -> Result<JobSpec, Trouble> {
    let mut icf = icf::read(name, text)?;
    icf.seconds = overrides.seconds.unwrap_or(icf.seconds);
    let job =
        job_spec(&icf, &overrides.targets).map_err(|diagnostics| Trouble::new(name, text, diagnostics))?;
    let problems = job.check().into_iter().chain(also(&job));
    let diagnostics: Vec<Diagnostic> = problems
        .map(|problem| {
            Diagnostic::new(0..0, problem.spelled(|key, value| format_for_tool(Tool::Iometer, key, value)))
        })
        .collect();
    Trouble::refuse_errors(name, text, diagnostics)?;
    Ok(job)
}

/// Describes the tests of a file as text. The targets need not be paths.
///
/// # Errors
/// All errors in the file, each with its place and what to write instead.
pub fn explain(name: &str, text: &str, overrides: &Overrides) -> Result<String, Trouble> {
    let mut icf = icf::read(name, text)?;
    icf.seconds = overrides.seconds.unwrap_or(icf.seconds);
    Trouble::refuse_errors(name, text, refused(&icf, &overrides.targets, false))?;
    Ok(explain_tests(&icf, &overrides.targets))
}

/// The access specifications of a file.
///
/// # Errors
/// All errors, or that there are no specifications.
pub fn specs(name: &str, text: &str) -> Result<Vec<model::spec::iometer::Spec>, Trouble> {
    let icf = icf::read(name, text)?;
    if icf.specs.is_empty() {
        let why = "there is no access specification; write 'Access specification name,default assignment";
        return Err(Trouble::new(name, text, vec![Diagnostic::new(0..0, why)]));
    }
    Ok(icf
        .specs
        .into_iter()
        .map(|spec| model::spec::iometer::Spec { lines: spec.used_lines(), name: spec.name })
        .collect())
}

const SECTOR_BYTES: u64 = 512;
/// Longest run time and ramp-up: a day.
const MAX_TIME_S: u64 = 86_400;

/// Translates a file into a job. The targets are those of the file, or `replacements` in the order
/// in which the file first names its targets.
///
/// # Errors
/// The errors for settings that fathom does not support, with their places.
fn job_spec(icf: &Icf, replacements: &[String]) -> Result<JobSpec, Vec<Diagnostic>> {
    let diagnostics = refused(icf, replacements, true);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let names = target_names(icf);
    let (mut phases, mut typed) = (Vec::new(), Vec::new());
    for at in 0..workers(icf).map(|(_, w)| icf.assigned(w).len()).max().unwrap_or(0) {
        for loads in cycle_tests(icf, at) {
            let entries = loads.iter().map(|load| worker_entry(load, at)).collect::<Vec<TypedStream>>();
            let to_stream = |load: &Load| stream(icf, load, &names, replacements);
            let streams: Vec<StreamSpec> = loads.iter().map(to_stream).collect();
            let (time, warmup) = (icf.seconds * SECOND_NS, icf.ramp_seconds * SECOND_NS);
            phases.push(PhaseSpec { time: Some(time), warmup: Some(warmup), cooldown: None, streams });
            typed.push(entries);
        }
    }
    if phases.is_empty() || phases.len() > MAX_PHASES {
        let why = format!(
            "the number of tests is {}, but a job has 1 to {MAX_PHASES}; for fewer tests use larger steps, for more assign access specifications to workers",
            phases.len()
        );
        let place = icf.managers.first().map_or(0..0, |manager| manager.place.clone());
        return Err(vec![Diagnostic::new(place, why)]);
    }
    let seed = workers(icf).find_map(|(_, w)| w.seed);
    let typed = Typed { defaults: result_file_options(icf), phases: typed, ..Typed::default() };
    Ok(JobSpec { seed, typed: Some(typed), phases, ..JobSpec::default() })
}

/// Settings that the result file repeats for the whole test.
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
        let line = |l: &Line| {
            let (size, reads, delay) =
                (l.sizes.read.most(), l.mix.read_percent.get(), l.delay_ns / 1_000_000);
            let random = l.random_percent();
            format!(
                "{size},{},{reads},{random},{delay},{},{},{}",
                l.weight, l.burst, l.align_bytes, l.reply_bytes
            )
        };
        out.extend(spec.lines.iter().map(|l| ("line".to_owned(), line(l))));
    }
    out
}

/// The errors for settings that fathom does not support. If the tests are only described (`is_run` is false), targets need not be paths,
/// and the run time may be 0.
fn refused(icf: &Icf, replacements: &[String], is_run: bool) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let Some((first, _)) = workers(icf).next() else {
        diagnostics.push(Diagnostic::new(
            0..0,
            "there is no worker; write 'Manager ID and 'Worker with their targets",
        ));
        return diagnostics;
    };
    let is_elsewhere =
        |m: &&Manager| !m.workers.is_empty() && !m.address.eq_ignore_ascii_case(&first.address);
    for manager in icf.managers.iter().filter(is_elsewhere) {
        let why = format!(
            "the manager {} has another network address than {}, but fathom measures only the machine on which it runs; remove the manager and run its workers from a file on its host, or write a job for all hosts (docs/how-to/many-hosts.md)",
            quoted(&manager.name),
            quoted(&first.name)
        );
        diagnostics.push(Diagnostic::new(manager.place.clone(), why));
    }
    if icf.seconds == 0 && is_run {
        let why = "the run time is 0, which means until stopped by hand; write seconds, or type /t SECONDS";
        diagnostics.push(Diagnostic::new(first.place.clone(), why));
    }
    if icf.seconds.max(icf.ramp_seconds) > MAX_TIME_S {
        let why =
            format!("the run time or the ramp up is longer than a day; write {MAX_TIME_S} seconds at most");
        diagnostics.push(Diagnostic::new(first.place.clone(), why));
    }
    let names = target_names(icf);
    if !replacements.is_empty() && replacements.len() != names.len() {
        let why = format!(
            "the workers name {}; type one target for each, not {}",
            names.join(", "),
            replacements.len()
        );
        diagnostics.push(Diagnostic::new(first.place.clone(), why));
    }
    let seeds: Vec<u64> = workers(icf).filter_map(|(_, w)| w.seed).collect();
    for (manager, worker) in workers(icf) {
        let mut wrong = |why: String| diagnostics.push(Diagnostic::new(worker.place.clone(), why));
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
            wrong("the worker has no access specification; write 'Assigned access specs with a name".into());
        }
        if worker_name(icf, manager, worker).chars().count() > MAX_NAME {
            wrong(format!(
                "the name (with the manager's name, if there are several managers) is too long; write {MAX_NAME} characters at most"
            ));
        }
        if worker.seed.is_some_and(|seed| seeds.iter().any(|other| *other != seed)) {
            wrong("fathom uses one seed for all workers; write the same seed for each worker".into());
        }
    }
    let needs_paths = replacements.is_empty() && is_run;
    for (name, place) in workers(icf).flat_map(|(_, w)| &w.targets).filter(|_| needs_paths) {
        if !without_file_system(name).starts_with('/') {
            let why = format!(
                "{} is not a Linux path; type a file, directory or device for each of {}, as in fathom iometer /c FILE TARGET... (--explain shows the tests)",
                quoted(name),
                names.join(", ")
            );
            diagnostics.push(Diagnostic::new(place.clone(), why));
        }
    }
    diagnostics
}

/// All workers with their managers.
fn workers(icf: &Icf) -> impl Iterator<Item = (&Manager, &Worker)> {
    icf.managers.iter().flat_map(|manager| manager.workers.iter().map(move |worker| (manager, worker)))
}

/// The name of a worker. If several managers have workers, the name begins with the manager's name,
/// because each manager numbers its workers from 1.
fn worker_name(icf: &Icf, manager: &Manager, worker: &Worker) -> String {
    let needs_manager = icf.managers.iter().filter(|m| !m.workers.is_empty()).count() > 1;
    if needs_manager { format!("{} {}", manager.name, worker.name) } else { worker.name.clone() }
}

/// Distinct names of targets, in the order in which the file first names them.
fn target_names(icf: &Icf) -> Vec<String> {
    model::distinct(workers(icf).flat_map(|(_, w)| &w.targets).map(|(name, _)| name.clone()))
}

/// Removes the file system that Iometer appends to a target, as in `/data [ext4]`.
fn without_file_system(name: &str) -> &str {
    name.split_once(" [").map_or(name, |(path, _)| path).trim()
}

/// Settings that the result file shows for a worker in the tests of this access specification.
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
fn stream(icf: &Icf, load: &Load, names: &[String], replacements: &[String]) -> StreamSpec {
    let Load { manager, worker, spec, outstanding, .. } = *load;
    let target = |(name, _): &(String, _)| {
        let at = names.iter().position(|known| known == name);
        at.and_then(|at| replacements.get(at))
            .cloned()
            .unwrap_or_else(|| without_file_system(name).to_owned())
    };
    let target: Vec<String> = worker.targets.iter().take(load.targets).map(target).collect();
    let lines = spec.used_lines();
    let writes = lines.iter().any(|line| line.does(Kind::Write));
    let largest = lines.iter().map(|l| l.sizes.read.most().max(l.reply_bytes)).max().unwrap_or(0);
    let mut stream = StreamSpec {
        name: Some(worker_name(icf, manager, worker)).filter(|name| !name.is_empty()),
        given: (target.len() > 1).then_some("sharing").into_iter().collect(),
        resolved: Stream { each_worker_ns: Some(0), ..Stream::default() },
        target,
        depth: Some(outstanding),
        size: Some(worker.sectors.saturating_mul(SECTOR_BYTES)).filter(|bytes| *bytes > 0),
        ..StreamSpec::default()
    };
    stream.give("workers").access.lines = lines;
    stream.resolved.access.offset_bytes = worker.first_sector.saturating_mul(SECTOR_BYTES);
    match worker.pattern {
        0 if writes => stream.compress = Some(100),
        1 if writes => (stream.dedup, stream.dedup_set) = (Some(100), Some(u64::from(largest).max(4096))),
        _ => {}
    }
    stream
}

/// A worker of a test.
#[derive(Clone, Copy, Debug)]
struct Load<'i> {
    manager: &'i Manager,
    /// Index of the manager.
    number: usize,
    worker: &'i Worker,
    spec: &'i Spec,
    /// How many of the worker's targets are used, from the first one on.
    targets: usize,
    /// Operations in flight on each target.
    outstanding: u32,
}

/// The tests in which each worker runs the access specification at position `at` of the worker's
/// list.
fn cycle_tests(icf: &Icf, at: usize) -> Vec<Vec<Load<'_>>> {
    let all = active(icf, at);
    if all.is_empty() {
        return Vec::new();
    }
    match icf.cycle {
        Cycle::Normal => vec![all],
        Cycle::Targets => by_targets(icf, &all),
        Cycle::Workers => by_workers(icf, &all),
        Cycle::WorkersAndTargets => {
            by_workers(icf, &all).iter().flat_map(|loads| by_targets(icf, loads)).collect()
        }
        Cycle::IncrementParallel => {
            let targets = |m: usize| all.iter().filter(|l| l.number == m).map(|l| l.targets).sum();
            let most = (0..icf.managers.len()).map(targets).max().unwrap_or(0);
            up_to(icf.targets, most).into_iter().map(|n| filled(&all, n, true)).collect()
        }
        Cycle::IncrementSerial => {
            let most = all.iter().map(|l| l.targets).sum();
            up_to(icf.targets, most).into_iter().map(|n| filled(&all, n, false)).collect()
        }
        Cycle::Outstanding => by_outstanding(icf, &all),
        Cycle::OutstandingAndTargets => {
            by_targets(icf, &all).iter().flat_map(|loads| by_outstanding(icf, loads)).collect()
        }
    }
}

/// Workers that have an access specification at position `at` of their list, each with all of its
/// targets.
fn active(icf: &Icf, at: usize) -> Vec<Load<'_>> {
    let loads = |(number, manager)| {
        let load = move |worker| {
            let spec = icf.assigned(worker).get(at).copied()??;
            let (targets, outstanding) = (worker.targets.len(), worker.outstanding);
            (targets > 0).then_some(Load { manager, number, worker, spec, targets, outstanding })
        };
        manager.workers.iter().filter_map(load)
    };
    icf.managers.iter().enumerate().flat_map(loads).collect()
}

/// The numbers of workers or targets from test to test. The last one is `most`.
fn up_to(progression: Progression, most: usize) -> Vec<usize> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let below = progression.law.values(progression.start, most.saturating_sub(1), progression.by);
    below.chain([most]).map(|n| n as usize).collect()
}

/// A test for each number of workers. With n workers, each manager runs its first n workers.
fn by_workers<'i>(icf: &Icf, all: &[Load<'i>]) -> Vec<Vec<Load<'i>>> {
    let before = |at: usize| all[..at].iter().filter(|l| l.number == all[at].number).count();
    let first_workers = |count: usize| {
        all.iter().enumerate().filter(|(at, _)| before(*at) < count).map(|(_, load)| *load).collect()
    };
    let most = (0..all.len()).map(|at| before(at) + 1).max().unwrap_or(0);
    up_to(icf.workers, most).into_iter().map(first_workers).collect()
}

/// A test for each number of targets. With n targets, each worker uses its first n targets, or all if it has fewer.
fn by_targets<'i>(icf: &Icf, all: &[Load<'i>]) -> Vec<Vec<Load<'i>>> {
    let first_targets =
        |count: usize| all.iter().map(|load| Load { targets: load.targets.min(count), ..*load }).collect();
    let most = all.iter().map(|load| load.targets).max().unwrap_or(0);
    up_to(icf.targets, most).into_iter().map(first_targets).collect()
}

/// A test for each number of outstanding operations.
fn by_outstanding<'i>(icf: &Icf, all: &[Load<'i>]) -> Vec<Vec<Load<'i>>> {
    let Progression { start, end, by, law } = icf.outstanding;
    let with_depth = |outstanding| all.iter().map(|load| Load { outstanding, ..*load }).collect();
    law.values(start, end.unwrap_or(start), by).map(with_depth).collect()
}

/// Assigns this many targets to the workers: each worker gets all of its targets before the next worker gets any. With
/// `by_manager`, assigns this many for each manager.
fn filled<'i>(all: &[Load<'i>], targets: usize, by_manager: bool) -> Vec<Load<'i>> {
    let (mut left, mut number) = (targets, None);
    let mut out = Vec::new();
    for load in all {
        if by_manager && number.replace(load.number) != Some(load.number) {
            left = targets;
        }
        let own = load.targets.min(left);
        left -= own;
        if own > 0 {
            out.push(Load { targets: own, ..*load });
        }
    }
    out
}

/// Describes the tests as text, with the `replacements` of the targets.
fn explain_tests(icf: &Icf, replacements: &[String]) -> String {
    let specs = workers(icf).map(|(_, worker)| icf.assigned(worker).len()).max().unwrap_or(0);
    let all: Vec<Vec<Load>> = (0..specs).flat_map(|at| cycle_tests(icf, at)).collect();
    let each = icf.seconds.saturating_add(icf.ramp_seconds);
    let mut out = format!(
        "test type {}: {} {} of {} s after {} s of ramp up, {} s in all\n\nTargets\n",
        icf.cycle.word(),
        all.len(),
        if all.len() == 1 { "test" } else { "tests" },
        icf.seconds,
        icf.ramp_seconds,
        each.saturating_mul(all.len() as u64)
    );
    for (at, target) in target_names(icf).iter().enumerate() {
        let used = match replacements.get(at) {
            Some(replacement) => replacement.as_str(),
            None if without_file_system(target).starts_with('/') => without_file_system(target),
            None => "(not a Linux path; type a TARGET to replace it)",
        };
        out += &format!("  {target} = {used}\n");
    }
    out += "\nAccess specifications\n";
    for spec in &icf.specs {
        out += &format!("  {}\n", spec.name);
        for line in &spec.lines {
            out += &format!(
                "    {} % of the operations: {}, {} % reads, {} % random",
                line.weight,
                show_bytes(line.sizes.read.most().into()),
                line.mix.read_percent.get(),
                line.random_percent()
            );
            if line.delay_ns > 0 {
                let operations = if line.burst == 1 { "operation" } else { "operations" };
                out += &format!(
                    ", a pause of {} ms after {} {operations}",
                    line.delay_ns / 1_000_000,
                    line.burst
                );
            }
            if line.align_bytes > 0 {
                out += &format!(", aligned to {}", show_bytes(line.align_bytes));
            }
            if line.reply_bytes > 0 {
                out += &format!(", a reply of {}", show_bytes(line.reply_bytes.into()));
            }
            out.push('\n');
        }
    }
    for (at, loads) in all.iter().enumerate() {
        out += &format!("\nTest {}\n", at + 1);
        for load in loads {
            let targets: Vec<&str> =
                load.worker.targets.iter().take(load.targets).map(|(target, _)| target.as_str()).collect();
            out += &format!(
                "  {}: {}, {} outstanding on each of {}\n",
                worker_name(icf, load.manager, load.worker),
                load.spec.name,
                load.outstanding,
                targets.join(", ")
            );
        }
    }
    out
}

#[cfg(test)]
mod tests;
