//! Running a fitted job while its device is captured, and comparing the two captures.
//!
//! For: `fathom fit --check`. Not for: fitting. What the device got is compared, and not what the job counted itself: so both sides are
//! seen by the same means, from issue to completion at the driver.

use super::children::{Between, Capturing, run};
use super::{CheckRequest, Job, fitted, outlets};
use crate::capture_file;
use crate::failure::Failure;
use crate::output::Rules;
use crate::run::is_worker_of;
use crate::spared::Spared;
use crate::{signals, stdout};
use capture::fit::{Figures, Observed};
use capture::names::Task;
use capture::verdict::completeness;
use model::fitted::{FORMAT, Figure, FitCheck, Word};
use model::job::Kind;
use model::name;
use model::units::show_count;
use report::Style;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How far figures may be apart: shares of the original.
const RATE: f64 = 0.02;
const BYTES: f64 = 0.03;
const FLUSHES: f64 = 0.05;
const DEPTH: f64 = 0.2;
const MEDIAN: f64 = 0.1;
/// How far distributions of sizes and of offsets may be apart: their Kolmogorov-Smirnov distance.
const SIZES: f64 = 0.02;
const OFFSETS: f64 = 0.03;
/// Share of the operations from which on a direction has figures of its own.
const MANY: f64 = 0.05;
/// How long the capture goes on behind the job, so that what it asked for last completes.
const BEHIND: Duration = Duration::from_millis(300);
/// Exit code where a goal cannot be told.
const CANNOT_TELL: u8 = 4;

/// Runs the job and compares.
///
/// # Errors
/// [`Failure::Usage`] and [`Failure::Refused`] as of `fathom capture` and `fathom run`.
pub fn check(request: &CheckRequest) -> Result<ExitCode, Failure> {
    let format = report::that_writes::<FitCheck>(request.format).map_err(Failure::Usage)?;
    let mut spared = Spared::default();
    spared.add(&request.capture, "the capture itself");
    let rules = Rules { flag: "-o", spared, replace: request.replace };
    let outlets = outlets(request, &rules)?;
    let checked = compare(request)?;
    for outlet in outlets.iter().filter(|outlet| !outlet.is_stdout()) {
        let form = report::of_file::<FitCheck>(outlet.path_as_typed(), format).unwrap_or(format);
        outlet.write(&stdout::rendered(form, &checked, Style::default())?, &rules)?;
    }
    stdout::report(format, &checked, Style::default())?;
    Ok(match checked.word {
        Word::Met => ExitCode::SUCCESS,
        Word::Missed => ExitCode::from(1),
        Word::CannotTell => ExitCode::from(CANNOT_TELL),
    })
}

fn compare(request: &CheckRequest) -> Result<FitCheck, Failure> {
    let between = Between::new()?;
    let stop =
        signals::watch(|| ()).map_err(|e| Failure::Refused(format!("signals cannot be waited for: {e}")))?;
    let here = between.path("job.toml");
    let job = fitted(&request.capture, &here)?;
    let file = if let Some(said) = &request.job {
        said.clone()
    } else {
        std::fs::write(&here, &job.text)
            .map_err(|e| Failure::Refused(format!("{} cannot be written: {e}", here.display())))?;
        here
    };
    let again = between.path("again.capture");
    let capturing = Capturing::begin(&request.target, &again)?;
    let allowed = (request.destroy.as_ref(), request.unseen_users.as_slice());
    let pid = run(&file, &request.target, allowed, &between.path("report.json"))?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    std::thread::sleep(BEHIND);
    capturing.end()?;
    let (then, _) = observed(&request.capture, job.end_sector, &|_| true)?;
    let (now, lost) = observed(&again, job.end_sector, &|task| is_worker_of(task, pid))?;
    let figures = figures(&then, &now, offsets(&request.target, &then, &now));
    let (word, sentence) = FitCheck::answer(&figures);
    let mut notes = notes(&job, &now, lost);
    notes.extend(by_chance(&then.counts, &figures));
    let is_slower = |figure: &Figure| figure.unit == "ns" && figure.met == Some(false);
    if job.has_closed_loops && figures.iter().any(is_slower) {
        notes.push(
            "the job has closed loops, which go as fast as the target: where its latencies are others, so are rates and depth".into(),
        );
    }
    Ok(FitCheck {
        format: FORMAT,
        capture: name::text(&request.capture),
        job: request.job.as_deref().map(name::text),
        target: name::text(&request.target),
        word,
        sentence,
        figures,
        notes,
    })
}

/// Figures of some tasks of a capture, and what is missing in it.
fn observed(
    path: &Path,
    end_sector: u64,
    is_meant: &dyn Fn(&Task) -> bool,
) -> Result<(Figures, Option<String>), Failure> {
    let mut reader = capture_file::open(path)?;
    let mut observed = Observed::new(&reader.origin, end_sector);
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        observed.add(rows, names, is_meant);
    }
    let complete = completeness(&reader.origin, reader.ending.as_ref());
    let lost = (complete.word == "incomplete").then(|| {
        format!("the capture of the job is incomplete, so its figures are too low: {}", complete.sentence)
    });
    Ok((observed.finish(), lost))
}

/// The distance of offsets, where those of the job are those of the device.
fn offsets(target: &Path, then: &Figures, now: &Figures) -> Result<f64, String> {
    if !target.metadata().is_ok_and(|facts| facts.file_type().is_block_device()) {
        return Err(
            "blocks of a file lie elsewhere on its device; name a block device to compare them".into()
        );
    }
    then.distance_of_offsets(now).ok_or_else(|| "nothing was read or written".into())
}

fn figures(then: &Figures, now: &Figures, offsets: Result<f64, String>) -> Vec<Figure> {
    let of = |count: &dyn Fn(&Figures) -> u64| [then, now].map(|figures| figures.rate(count(figures)));
    let counts = |kind: Kind| of(&move |figures: &Figures| figures.counts[kind as usize]);
    let data = |figures: &Figures| figures.counts.iter().sum::<u64>() - figures.counts[Kind::Sync as usize];
    // Of few operations chance says more than the fit.
    let is_many = |kind: Kind| then.counts[kind as usize] as f64 >= MANY * data(then) as f64;
    let mut out = vec![Figure::share("operations", "per_s", of(&data), RATE)];
    for kind in [Kind::Read, Kind::Write, Kind::Trim] {
        if is_many(kind) {
            out.push(Figure::share(&name_of(kind), "per_s", counts(kind), RATE));
        }
    }
    out.push(Figure::share("bytes", "bytes_per_s", of(&|figures| figures.bytes), BYTES));
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

/// Which missed numbers of operations differ by no more than chance makes of so many that are drawn one by one: two standard
/// deviations of a Poisson number. Of bursts it makes more.
fn by_chance(counts: &[u64; Kind::ALL.len()], figures: &[Figure]) -> Option<String> {
    let counted = |figure: &Figure| {
        let kind = Kind::ALL.into_iter().find(|kind| figure.name == name_of(*kind))?;
        let count = counts[kind as usize];
        let chance = 2.0 / (count as f64).sqrt();
        let is_within = figure.met == Some(false) && count > 0 && figure.difference?.abs() <= chance;
        is_within.then(|| {
            format!("{} of {} by up to {:.1} %", figure.name, show_count(count as f64), 100.0 * chance)
        })
    };
    let all: Vec<String> = figures.iter().filter_map(counted).collect();
    (!all.is_empty()).then(|| {
        format!(
            "operations are drawn at random, so counts vary by chance: {}; a longer capture fits better",
            all.join(", ")
        )
    })
}

/// What the number of operations of a kind is called.
fn name_of(kind: Kind) -> String {
    match kind {
        Kind::Sync => "flushes".into(),
        kind => format!("{}s", kind.word()),
    }
}

fn notes(job: &Job, now: &Figures, lost: Option<String>) -> Vec<String> {
    let mut notes: Vec<String> = lost.into_iter().collect();
    if let Some(damage) = &job.damage {
        notes.push(format!("the capture is {damage}; what is before that is compared"));
    }
    if let Some(tool) = &job.origin.imported {
        notes.push(format!("the capture is a trace of another tool ({tool}), which may count otherwise"));
    }
    if now.of_others > 0 {
        notes.push(format!(
            "{} operations of other tasks were captured beside the job, and left out",
            show_count(now.of_others as f64)
        ));
    }
    notes
}

#[test]
fn what_chance_explains_is_said_and_nothing_else() {
    let mut counts = [0; Kind::ALL.len()];
    counts[Kind::Write as usize] = 1000;
    counts[Kind::Sync as usize] = 100;
    let figure = |name: &str, fit: f64| Figure::share(name, "per_s", [Some(100.0), Some(fit)], RATE);
    let said =
        by_chance(&counts, &[figure("writes", 105.0), figure("flushes", 125.0), figure("reads", 103.0)]);
    assert!(said.is_some_and(|said| said.contains("chance: writes of 1,000 by up to 6.3 %; ")));
    assert_eq!(
        by_chance(&counts, &[figure("writes", 101.0), figure("writes", 107.0), figure("depth", 1.0)]),
        None
    );
}
