//! Foreign manners: measuring as another tool does, and answering as it does.
//!
//! For: its output where it puts it, nothing beside that where programs read it, and its exit codes, which no verdict changes. Not for:
//! what was asked ([`crate::cli`]), nor its formats (crate `report`).

use crate::failure::Failure;
use crate::files::output;
use crate::files::output::{Outlet, Replace, Rules, Spared};
use crate::fleet::{self, Fleet};
use crate::live::Progress;
use crate::request::{JobSource, Request, Work};
use crate::run::{Early, SoFar, collector};
use crate::show::{Showing, judge};
use crate::{history, plan, run, stderr, stdout};
use dialect::{Tool, in_names_of};
use model::annotations::Annotations;
use model::name;
use model::report::Report;
use model::spec::{JobSpec, Rw};
use report::{Detail, Format, Style, aggregate};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Exit code of fio after a signal.
const INTERRUPTED: u8 = 128;

/// How the answer is given.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct ToolOutput {
    /// Whose names messages use.
    pub tool: Tool,
    /// What is written, in this order.
    pub formats: Vec<&'static Format>,
    /// The file that it goes to; standard output where there is none.
    pub output: Option<PathBuf>,
    /// Whether the bandwidth of all jobs together is written to files of its own.
    pub bandwidth_log: bool,
    /// How often the answer so far is given; only at the end where it is not said.
    pub status_interval: Option<Duration>,
    /// Whether `SIGUSR1` has the answer so far given too.
    pub status_on_signal: bool,
    /// What was read of the user's, and so is never written over.
    pub job_files: Vec<PathBuf>,
    /// What is told before it begins, beside text alone.
    pub remarks: Vec<String>,
    /// Whether anything is measured; else files are made for later calls, and that is all.
    pub measures: bool,
    /// No progress.
    pub quiet: bool,
}

impl ToolOutput {
    /// Whether people read the answer.
    fn is_text(&self) -> bool {
        self.formats.iter().any(|format| matches!(format.name, report::FIO | report::DISKSPD))
    }
}

/// Measures and answers; `None` where there is nothing to measure. Whatever goes wrong is exit code 1, as in fio and DISKSPD.
pub fn answer(said: Result<Option<(Request, ToolOutput)>, Failure>) -> ExitCode {
    let tool = said.as_ref().ok().and_then(|said| said.as_ref()).map(|(_, manners)| manners.tool);
    let done = said.and_then(|said| match said {
        Some((request, manners)) => measure(&request, &manners),
        None => Ok(ExitCode::SUCCESS),
    });
    done.unwrap_or_else(|failure| {
        let failure = match (failure, tool) {
            (Failure::Usage(text), Some(tool)) => Failure::Usage(in_names_of(tool, &text)),
            (Failure::Refused(text), Some(tool)) => Failure::Refused(in_names_of(tool, &text)),
            (failure, _) => failure,
        };
        failure.tell();
        match failure {
            Failure::Interrupted => ExitCode::from(INTERRUPTED),
            _ => ExitCode::FAILURE,
        }
    })
}

fn measure(request: &Request, manners: &ToolOutput) -> Result<ExitCode, Failure> {
    for remark in manners.remarks.iter().filter(|_| manners.is_text() && manners.output.is_none()) {
        stderr::say(&format!("fathom: {remark}"));
    }
    fleet::alone()?;
    let (plan, machine) = plan::plan(request)?;
    let mut spared = Spared::from_plan(&plan, &machine.places);
    for file in &manners.job_files {
        spared.add(file, "a job file of this call");
    }
    let logs = Rules { flag: "the logs", spared: spared.clone(), replace: Replace::TextAlone };
    let logs = collector::Files::decide(&plan, logs, manners.output.as_slice())?;
    let rules = Rules { flag: "--output", spared, replace: Replace::TextAlone };
    let outlet = manners.output.as_deref().map(|path| rules.decide(path)).transpose()?;
    let aggregates = aggregate::FILES.iter().filter(|_| manners.bandwidth_log);
    let aggregates: Vec<PathBuf> = aggregates.map(|(name, _)| PathBuf::from(name)).collect();
    let aggregates = output::decide_all(&aggregates, &rules)?;
    let to = outlet.as_ref().map(|outlet| (outlet, &rules));
    let mode = if manners.quiet { Progress::Quiet } else { Progress::Plain };
    let (seen, before) = thread::scope(|scope| {
        let every = manners.status_interval;
        let told = (every.is_some() || manners.status_on_signal).then(|| {
            let (early, told) = sync_channel(1);
            (Early::new(every, early), scope.spawn(move || answer_so_far(&told, manners, to)))
        });
        let (early, writer) = told.unzip();
        let seen = run::measure((plan, machine), request.keep, mode, early, &Fleet::Alone, None);
        let before = writer.map(|writer| writer.join().unwrap_or_default());
        seen.map(|seen| (seen, before.unwrap_or_default()))
    })?;
    let record = seen.session.record()?;
    let kept = seen.session.is_kept().then(|| seen.session.path());
    let words = kept.map(history::read_annotations).unwrap_or_default();
    // Every format tells the same.
    let report = judge(&record, kept, words, &Showing::plain(report::TEXT));
    if kept.is_some() {
        history::remember();
    }
    // What is refused to a log is told behind the report.
    let logged = logs.write(&seen.op_log).and_then(|()| {
        let mut all = aggregates.iter().zip(aggregate::FILES);
        all.try_for_each(|(outlet, (_, kind))| {
            outlet.write(aggregate::lines(&report, kind).as_bytes(), &rules)
        })
    });
    write(&report, manners, to, before)?;
    logged?;
    let failed = seen.failed || has_failed(&report);
    Ok(match (seen.interrupted, failed) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (_, true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Answers each time something was measured, and gives what was answered where it goes to a file, which is written as a whole each time.
fn answer_so_far(told: &Receiver<SoFar>, manners: &ToolOutput, to: Option<(&Outlet, &Rules)>) -> Vec<u8> {
    let _ = sys::thread::block_signals();
    let mut answers = Vec::new();
    while let Ok(so_far) = told.recv() {
        let Some(record) = so_far.record() else { continue };
        let report = judge(&record, None, Annotations::default(), &Showing::plain(report::TEXT));
        let Ok(answer) = rendered(&report, manners) else { continue };
        let written = match to {
            Some((outlet, rules)) => {
                answers.extend(answer);
                outlet.write(&answers, rules)
            }
            None => stdout::bytes(&answer),
        };
        // What cannot be written now is told at the end, when it cannot be written either.
        if written.is_err() {
            break;
        }
    }
    answers
}

/// All formats one behind another.
fn rendered(report: &Report, manners: &ToolOutput) -> Result<Vec<u8>, Failure> {
    let style = Style { detail: Detail::Brief, ..Style::default() };
    let all = manners.formats.iter().map(|format| stdout::rendered(format, report, style));
    Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Writes the answer behind what was answered `before`, and what fathom makes of it where people read them: beside what is printed, and behind it in a
/// file, since programs that have fio write one take words on standard error for a failure.
fn write(
    report: &Report,
    manners: &ToolOutput,
    to: Option<(&Outlet, &Rules)>,
    before: Vec<u8>,
) -> Result<(), Failure> {
    let bytes = rendered(report, manners)?;
    match to {
        Some((outlet, rules)) => {
            let mut bytes = [before, bytes].concat();
            if manners.is_text() {
                let remarks = manners.remarks.iter().map(|remark| format!("fathom: {remark}\n"));
                bytes.extend(remarks.collect::<String>().bytes());
                bytes.extend(verdict(report, manners).bytes());
            }
            outlet.write(&bytes, rules).map_err(|why| instead(&why, report))?;
        }
        None => stdout::bytes(&bytes).map_err(|why| instead(&why, report))?,
    }
    // Its result file has no place for it, wherever that goes.
    let has_no_place = manners.formats.iter().any(|format| format.name == report::IOMETER);
    if has_no_place || (manners.is_text() && to.is_none()) {
        stderr::say(verdict(report, manners).trim());
    }
    Ok(())
}

/// Whether operations failed of a stream that is not to continue after them, or a sync that was typed.
fn has_failed(report: &Report) -> bool {
    let mut seen = report.results.iter().filter_map(|result| result.seen.as_ref());
    seen.any(|seen| seen.errors.values().sum::<u64>() > seen.ignored_errors || seen.sync_error.is_some())
}

/// What fathom makes of it, in lines.
fn verdict(report: &Report, manners: &ToolOutput) -> String {
    if manners.measures {
        in_names_of(manners.tool, &report::fio_verdict(report))
    } else {
        "fathom: the files are made, and nothing was measured (create_only)\n".into()
    }
}

/// Where the figures are that could not be written.
fn instead(why: &Failure, report: &Report) -> Failure {
    let session = report.session.as_deref();
    let kept = session.map(|path| format!("; `fathom show {}` prints them", name::shown(&name::path(path))));
    Failure::Refused(format!("{}{}", why.message(), kept.unwrap_or_default()))
}

/// Asks for a job as a tool measures it: once, whatever others do meanwhile. `destroy` names what may be overwritten, with what is allowed
/// beside the command line.
pub(crate) fn request(tool: Tool, mut job: JobSpec, mut destroy: Vec<String>, keep: bool) -> Request {
    job.runs = Some(1);
    job.attempts = Some(1);
    destroy.extend(allowed(&job));
    Request {
        command: std::env::args_os().map(name::text).collect(),
        work: Work::Job,
        job,
        source: Some(JobSource::CommandOf(tool)),
        flags: Vec::new(),
        targets: Vec::new(),
        destroy,
        unseen_users: unseen_users(),
        hook: None,
        against: None,
        fail_if_slower: None,
        keep,
        expect_device: None,
        budget_ns: None,
        ranks_per_host: None,
        hosts: Vec::new(),
    }
}

/// What this job would overwrite of what may be: that may be said for many.
fn allowed(job: &JobSpec) -> Vec<String> {
    let reads = |rw: &Option<Rw>| matches!(rw, Some(Rw::Read | Rw::Randread));
    let streams = job.phases.iter().flat_map(|phase| &phase.streams).filter(|stream| !reads(&stream.rw));
    // The same file may be written down in several ways.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let targets: Vec<PathBuf> =
        streams.flat_map(|stream| &stream.target).map(|target| real(&name::path(target))).collect();
    // A log may name its file by itself.
    let is_any =
        job.phases.iter().flat_map(|phase| &phase.streams).any(|s| s.replay.is_some() && s.target.is_empty());
    let is_target = |path: &Path| is_any || targets.contains(&real(path));
    paths().into_iter().filter(|path| is_target(path)).map(name::text).collect()
}

// No comment of documentation: it would be said of each command that has these words.
#[derive(clap::Args, Debug)]
pub(crate) struct ToolWords {
    /// What would be typed behind the tool's name
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl ToolWords {
    /// As text that leads back to any bytes.
    pub(crate) fn text(&self) -> Vec<String> {
        self.words.iter().map(name::text).collect()
    }
}

/// Names what may be overwritten, as a list of paths like `PATH`: it may be set for many calls.
const DESTROY: &str = "FATHOM_DESTROY";
/// Names what may be written though users of it may be hidden, as such a list.
const UNSEEN_USERS: &str = "FATHOM_UNSEEN_USERS";

/// The paths that may be overwritten.
pub(crate) fn paths() -> Vec<PathBuf> {
    listed(DESTROY)
}

/// The paths that may be written though users of them may be hidden.
pub(crate) fn unseen_users() -> Vec<PathBuf> {
    listed(UNSEEN_USERS)
}

fn listed(variable: &str) -> Vec<PathBuf> {
    let list: Option<OsString> = std::env::var_os(variable);
    list.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}
