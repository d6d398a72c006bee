//! `fathom fit`: fits a job file to a capture, and checks whether that job behaves like the
//! capture.
//!
//! 1. [`fit`] reads the capture in the two passes that crate `capture` needs, and writes the job.
//! 2. With `--check` it runs the job in a second process while a third process captures the device of the target.
//! 3. It compares the two captures, not the job's own counts: both captures have times at the
//!    driver, from issue to completion.

#[cfg(test)]
mod tests;

use crate::capture::capture_file::{self, decide_outputs, device_name, each_block, exit_code};
use crate::cli::capture::FitArgs;
use crate::failure::INTERRUPTED;
use crate::failure::{Failure, cause};
use crate::files::output;
use crate::files::output::{ProtectedPaths, Replace, Rules};
use crate::run::is_worker_of;
use crate::{show, signals, stdout};
use capture::completeness::completeness;
use capture::fit::{Figures, Fitted, Gathering, Head, Observed, Survey};
use model::captured::Origin;
use model::job::Kind;
use model::name;
use model::replay::{FORMAT, Figure, FitCheck};
use model::units::{show_count, show_counted};
use model::verdict::AnswerWord;
use report::Style;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;
use trace::row::Task;

/// Default name of the job file.
const JOB_FILE: &str = "job.toml";

/// Writes the job file. With `--check`, instead runs the job and compares its requests with those
/// of the capture.
///
/// # Errors
/// [`Failure::Usage`] if the capture cannot be read or has nothing to fit, or the name of the job file is taken;
/// [`Failure::Refused`] if the job file cannot be written. With `--check` also the failures of
/// `fathom capture` and `fathom run`.
pub fn fit(args: &FitArgs) -> Result<ExitCode, Failure> {
    if let Some(target) = &args.target {
        if args.check {
            return check(args, target);
        }
        return Err(Failure::Usage(
            "only --check uses a TARGET; type --check too, or leave TARGET out and run the job with `fathom run JOB TARGET`".into(),
        ));
    }
    if args.format.name != "text" {
        return Err(Failure::Usage(format!(
            "--format {}: a job file is always TOML; leave --format out, or type --check too",
            args.format.name
        )));
    }
    if args.output.len() > 1 {
        return Err(Failure::Usage("the job is written to a single file; type -o once".into()));
    }
    let mut protected = ProtectedPaths::default();
    protected.add(&args.capture, "the capture itself");
    let rules = Rules { flag: "-o", protected, replace: Replace::with_force(args.force) };
    let path = args.output.first();
    let outlet = path.map(|path| rules.decide(path)).transpose()?;
    let file = path.filter(|path| !output::is_stream(path));
    let job = fitted(&args.capture, file.map_or(Path::new(JOB_FILE), PathBuf::as_path))?;
    match outlet.filter(|outlet| !outlet.is_stdout()) {
        None => stdout::print_text(&job.text)?,
        Some(outlet) => {
            outlet.write(job.text.as_bytes(), &rules)?;
            stdout::print_text(&format!("{}\n", name::shown(outlet.path_as_typed())))?;
        }
    }
    Ok(exit_code(&args.capture, job.damage.as_deref(), "was fitted"))
}

/// A fitted job.
struct Job {
    fitted: Fitted,
    /// The text of the job file.
    text: String,
    damage: Option<String>,
    origin: Origin,
}

/// Fits a job to a capture. A comment in the job names `file`, where the job will be.
fn fitted(path: &Path, file: &Path) -> Result<Job, Failure> {
    let usage = |why: String| Failure::Usage(format!("{}: {why}", name::shown(path)));
    let mut first = capture_file::open(path)?;
    let mut survey = Survey::new(&first.origin);
    each_block(&mut first, |rows, names| survey.add(rows, names));
    let mut gathering = Gathering::new(&first.origin, survey, &first.names).map_err(|why| {
        let damage = first.damage.as_ref().map_or_else(String::new, |damage| format!(" ({damage})"));
        usage(format!("{why}{damage}"))
    })?;
    each_block(&mut capture_file::open(path)?, |rows, names| gathering.add(rows, names));
    let fitted = gathering.finish();
    let origin = first.origin;
    let device = device_name(&origin).or(origin.imported.as_deref()).unwrap_or("an unknown device");
    let complete = completeness(&origin, first.ending.as_ref());
    let head = Head {
        capture: name::shown(path),
        device: device.to_owned(),
        completeness: complete.word.to_uppercase() + ": " + &complete.sentence,
        damage: first.damage.clone(),
        file: name::shown(file),
    };
    Ok(Job { text: fitted.toml(&head), fitted, damage: first.damage, origin })
}

/// Preferred place of temporary files: in memory, not on a captured device.
const MEMORY: &str = "/dev/shm";
/// Time after which a capture ends even if this process was killed.
const MAX_CAPTURE_TIME: &str = "25h";
/// How often to check whether the capture has begun.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Makes a temporary directory, which is removed when dropped.
fn temporary_directory() -> Result<TempDir, Failure> {
    let memory = Path::new(MEMORY);
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fathom-fit-").tempdir_in(&place).map_err(|e| {
        Failure::Refused(format!("no directory can be created in {}: {e}{}", place.display(), cause(&e)))
    })
}

/// A capture in another process, ended when dropped.
struct Capturing(Child);

impl Capturing {
    /// Starts a capture, and waits until its file has a header.
    ///
    /// # Errors
    /// The message of a capture that does not start.
    fn begin(target: &Path, into: &Path) -> Result<Self, Failure> {
        let mut command = this_program()?;
        command.args(["capture", "--time", MAX_CAPTURE_TIME, "-o"]).arg(into).arg("--").arg(target);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut capturing = Self(command.spawn().map_err(not_started)?);
        while matches!(capturing.0.try_wait(), Ok(None)) {
            if capture_file::open(into).is_ok() {
                return Ok(capturing);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let (code, why) = wait(&mut capturing.0)?;
        Err(failure(code, why))
    }

    /// Ends the capture by SIGINT, and waits for it.
    ///
    /// # Errors
    /// If the capture cannot be ended, or left no file.
    fn end(mut self) -> Result<(), Failure> {
        interrupt(&self.0);
        match wait(&mut self.0)? {
            // The file itself records whether it is complete.
            (Some(0 | 1), _) => Ok(()),
            (Some(code), _) if code == i32::from(INTERRUPTED) => Ok(()),
            (_, why) => Err(Failure::Refused(format!("the capture of the job ended early: {why}"))),
        }
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // If only this process ended, the capture would continue.
        if matches!(self.0.try_wait(), Ok(None)) {
            interrupt(&self.0);
            let _ = self.0.wait();
        }
    }
}

fn interrupt(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::INT);
    }
}

/// Runs a job in another process of fathom, which writes its report to the file `report`. Returns
/// the id of that process.
///
/// # Errors
/// If the job is invalid, refused or interrupted. Findings are no error.
fn run(job: &Path, args: &FitArgs, target: &Path, report: &Path) -> Result<u32, Failure> {
    let mut command = this_program()?;
    command.args(["run", "--format", "json", "--quiet", "--no-history", "--runs", "1", "--attempts", "1"]);
    // Only the requests matter, not the result.
    command.args(["--accept", "A04", "--accept", "A05"]);
    if let Some(name) = &args.destroy {
        command.arg("--destroy").arg(name);
    }
    for path in &args.unseen.unseen_users {
        command.arg("--unseen-users").arg(path);
    }
    command.arg("--").arg(job).arg(target);
    let report_file = File::create(report)
        .map_err(|e| Failure::Refused(format!("cannot create {}: {e}", report.display())))?;
    command.stdin(Stdio::null()).stdout(report_file).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_started)?;
    match wait(&mut child)? {
        // The report may have a finding; only the requests of the job matter here.
        (Some(0 | 1 | 4), _) => Ok(child.id()),
        (code, why) => Err(failure(code, why)),
    }
}

/// Waits for another process of fathom. Returns its exit code (`None` if a signal ended it) and its message without the prefix `fathom: `.
fn wait(child: &mut Child) -> Result<(Option<i32>, String), Failure> {
    let mut message = String::new();
    if let Some(stderr) = &mut child.stderr {
        let _ = stderr.read_to_string(&mut message);
    }
    let code = child.wait().map_err(not_started)?.code();
    Ok((code, message.trim().trim_start_matches("fathom: ").to_owned()))
}

/// The failure of another process of fathom, from its exit code.
fn failure(code: Option<i32>, why: String) -> Failure {
    match code {
        Some(2) => Failure::Usage(why),
        Some(code) if code == i32::from(INTERRUPTED) => Failure::Interrupted,
        _ => Failure::Refused(why),
    }
}

/// A command that starts this program again.
fn this_program() -> Result<Command, Failure> {
    std::env::current_exe().map(Command::new).map_err(not_started)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn not_started(error: io::Error) -> Failure {
    Failure::Refused(format!(
        "fathom cannot run the job or its capture as a second process: {error}{}",
        cause(&error)
    ))
}

/// Allowed difference of a rate, as a share of the captured rate. The next four constants are the same for other figures.
const RATE: f64 = 0.02;
const BYTES: f64 = 0.03;
const FLUSHES: f64 = 0.05;
const DEPTH: f64 = 0.2;
const MEDIAN: f64 = 0.1;
/// Allowed Kolmogorov-Smirnov distance of sizes.
const SIZES: f64 = 0.02;
/// Allowed Kolmogorov-Smirnov distance of offsets.
const OFFSETS: f64 = 0.03;
/// Reads, writes and trims get their own figures if they are at least this share of all operations except syncs.
const MIN_SHARE: f64 = 0.05;
/// How long the capture continues after the job, so that its last requests complete.
const DRAIN_TIME: Duration = Duration::from_millis(300);
/// Exit code if a goal cannot be decided.
const CANNOT_TELL: u8 = 4;

/// Runs the job and compares the captures.
fn check(args: &FitArgs, target: &Path) -> Result<ExitCode, Failure> {
    let format = report::require_writer::<FitCheck>(args.format).map_err(Failure::Usage)?;
    let outlets = decide_outputs::<FitCheck>(&args.output, Replace::with_force(args.force), &args.capture)?;
    let checked = compare(args, target)?;
    show::put(&checked, format, Style::default(), &outlets, None)?;
    Ok(ExitCode::from(match checked.word {
        AnswerWord::Met => 0,
        AnswerWord::Missed => 1,
        _ => CANNOT_TELL,
    }))
}

fn compare(args: &FitArgs, target: &Path) -> Result<FitCheck, Failure> {
    let dir = temporary_directory()?;
    let stop = signals::watch(|| ())?;
    let fitted_file = dir.path().join("job.toml");
    let job = fitted(&args.capture, &fitted_file)?;
    let file = if let Some(typed) = &args.job {
        typed.clone()
    } else {
        std::fs::write(&fitted_file, &job.text)
            .map_err(|e| Failure::Refused(format!("{} cannot be written: {e}", fitted_file.display())))?;
        fitted_file
    };
    let refit = dir.path().join("again.capture");
    let capturing = Capturing::begin(target, &refit)?;

    let pid = run(&file, args, target, &dir.path().join("report.json"))?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    std::thread::sleep(DRAIN_TIME);
    capturing.end()?;
    let (then, _) = observed(&args.capture, job.fitted.end_sector(), &|_| true)?;
    let (now, lost) = observed(&refit, job.fitted.end_sector(), &|task| is_worker_of(task, pid))?;
    let figures = figures(&then, &now, offsets(target, &then, &now));
    let (word, sentence) = FitCheck::answer(&figures);
    let mut notes = notes(&job, &now, lost);
    notes.extend(explained_by_chance(&then.counts, &figures));
    let is_slower = |figure: &Figure| figure.unit == "ns" && figure.met == Some(false);
    if job.fitted.has_closed_loops() && figures.iter().any(is_slower) {
        notes.push(
            "the job has closed loops: if latencies differ from the captured ones, rates and depth do too"
                .into(),
        );
    }
    Ok(FitCheck {
        format: FORMAT,
        capture: name::text(&args.capture),
        job: args.job.as_deref().map(name::text),
        target: name::text(target),
        word,
        sentence,
        figures,
        notes,
    })
}

/// Returns the figures of the requests that tasks selected by `is_meant` issued, and a note if the
/// capture is incomplete.
fn observed(
    path: &Path,
    end_sector: u64,
    is_meant: &dyn Fn(&Task) -> bool,
) -> Result<(Figures, Option<String>), Failure> {
    let mut reader = capture_file::open(path)?;
    let mut observed = Observed::new(&reader.origin, end_sector);
    each_block(&mut reader, |rows, names| observed.add(rows, names, is_meant));
    let complete = completeness(&reader.origin, reader.ending.as_ref());
    let lost = (complete.word == "incomplete").then(|| {
        format!(
            "the capture of the job is incomplete, so the figures of the job may be too low: {}",
            complete.sentence
        )
    });
    Ok((observed.finish(), lost))
}

/// Returns the Kolmogorov-Smirnov distance between the offsets of both captures, or why there is
/// none. Only a block device has comparable offsets.
fn offsets(target: &Path, then: &Figures, now: &Figures) -> Result<f64, String> {
    if !target.metadata().is_ok_and(|facts| facts.file_type().is_block_device()) {
        return Err("captured offsets are those of a device, not of a file; name a block device".into());
    }
    then.distance_of_offsets(now).ok_or_else(|| "nothing was read or written".into())
}

fn figures(then: &Figures, now: &Figures, offsets: Result<f64, String>) -> Vec<Figure> {
    let rates = |count: &dyn Fn(&Figures) -> u64| [then, now].map(|figures| figures.rate(count(figures)));
    let counts = |kind: Kind| rates(&move |figures: &Figures| figures.counts[kind as usize]);
    let data = |figures: &Figures| figures.counts.iter().sum::<u64>() - figures.counts[Kind::Sync as usize];
    // The count of a direction with few operations differs by chance.
    let is_many = |kind: Kind| then.counts[kind as usize] as f64 >= MIN_SHARE * data(then) as f64;
    let mut out = vec![Figure::share("operations", "per_s", rates(&data), RATE)];
    for kind in [Kind::Read, Kind::Write, Kind::Trim] {
        if is_many(kind) {
            out.push(Figure::share(&name_of(kind), "per_s", counts(kind), RATE));
        }
    }
    out.push(Figure::share("bytes", "bytes_per_s", rates(&|figures| figures.bytes), BYTES));
    let sizes = then.distance_of_sizes(now).ok_or_else(|| "nothing was read or written".to_owned());
    out.push(Figure::distance("sizes", sizes, SIZES));
    out.push(Figure::distance("offsets", offsets, OFFSETS));
    out.push(Figure::share(&name_of(Kind::Sync), "per_s", counts(Kind::Sync), FLUSHES));
    out.push(Figure::share("depth", "in_flight", [then.depth, now.depth], DEPTH));
    for kind in Kind::MOVING.into_iter().filter(|kind| is_many(*kind)) {
        let median = |figures: &Figures| {
            figures.latencies[kind as usize].supported_quantile_ns(0.5).map(|ns| ns as f64)
        };
        out.push(Figure::share(&format!("{} p50", kind.word()), "ns", [median(then), median(now)], MEDIAN));
    }
    out
}

/// Returns a note that names the counts of operations that miss their goal only by chance: by at
/// most two standard deviations of a Poisson distribution. `None` if there are none. Bursty loads
/// vary more than this.
fn explained_by_chance(counts: &[u64; Kind::ALL.len()], figures: &[Figure]) -> Option<String> {
    let counted = |figure: &Figure| {
        let kind = Kind::ALL.into_iter().find(|kind| figure.name == name_of(*kind))?;
        let count = counts[kind as usize];
        let chance = 2.0 / (count as f64).sqrt();
        let is_within = figure.met == Some(false) && count > 0 && figure.difference?.abs() <= chance;
        is_within
            .then(|| format!("{} {} by up to {:.1} %", show_count(count as f64), figure.name, 100.0 * chance))
    };
    let all: Vec<String> = figures.iter().filter_map(counted).collect();
    (!all.is_empty()).then(|| {
        format!(
            "operations are drawn at random, so counts vary by chance: {}; a longer capture fits better",
            all.join(", ")
        )
    })
}

/// Name of the operation count of a kind.
fn name_of(kind: Kind) -> String {
    match kind {
        Kind::Sync => "flushes".into(),
        kind => format!("{}s", kind.word()),
    }
}

fn notes(job: &Job, now: &Figures, lost: Option<String>) -> Vec<String> {
    let mut notes: Vec<String> = lost.into_iter().collect();
    if let Some(damage) = &job.damage {
        notes.push(format!("the capture is {damage}; only the part before the damage is compared"));
    }
    if let Some(tool) = &job.origin.imported {
        notes.push(format!("the capture is a trace of another tool ({tool}), which may count differently"));
    }
    if now.of_others > 0 {
        notes.push(format!(
            "left out of the comparison: {} of other tasks during the job",
            show_counted(now.of_others, "operation")
        ));
    }
    notes
}

#[test]
fn differences_within_chance_are_explained() {
    let mut counts = [0; Kind::ALL.len()];
    counts[Kind::Write as usize] = 1000;
    counts[Kind::Sync as usize] = 100;
    let figure = |name: &str, fit: f64| Figure::share(name, "per_s", [Some(100.0), Some(fit)], RATE);
    let note = explained_by_chance(
        &counts,
        &[figure("writes", 105.0), figure("flushes", 125.0), figure("reads", 103.0)],
    );
    assert!(note.is_some_and(|note| note.contains("chance: 1,000 writes by up to 6.3 %; ")));
    assert_eq!(
        explained_by_chance(
            &counts,
            &[figure("writes", 101.0), figure("writes", 107.0), figure("depth", 1.0)]
        ),
        None
    );
}
