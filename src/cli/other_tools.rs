//! Runs the commands that imitate other tools (`fathom fio`, `diskspd`, `iometer`), and prints what
//! the tool would print.
//!
//! The output has the same content in the same place as the tool's, so that programs can parse it. The exit codes are the tool's too: no
//! verdict changes them. Each command line may have `--destroy=NAME`, which the tool lacks. For command lines that cannot be changed, the
//! environment variable `FATHOM_DESTROY` permits overwriting too. `FATHOM_UNSEEN_USERS` replaces `--unseen-users`.

use crate::failure::Failure;
use crate::files::output::{self, Outlet, ProtectedPaths, Replace, Rules};
use crate::fleet::{self, Fleet};
use crate::live::ProgressMode;
use crate::request::{JobSource, Request};
use crate::run::{RunStatus, StatusSender, collector};
use crate::show::{Showing, judge};
use crate::{history, plan, run, stderr, stdout};
use dialect::fio::verify_state;
use dialect::{Tool, in_names_of};
use model::name;
use model::record::Record;
use model::report::{Annotations, Report};
use model::spec::{JobSpec, Rw};
use report::{Detail, Format, Style, aggregate};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

/// Exit code after a signal, the same as fio's.
const INTERRUPTED: u8 = 128;

/// How to print the output of a tool.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct ToolOutput {
    /// The imitated tool, whose option names appear in messages.
    pub tool: Tool,
    /// Output formats, in the order of output.
    pub formats: Vec<&'static Format>,
    /// Output file; `None` means standard output.
    pub output: Option<PathBuf>,
    /// Whether to write the total bandwidth of all jobs to separate files.
    pub bandwidth_log: bool,
    /// Time between intermediate outputs; `None` means output only at the end.
    pub status_interval: Option<Duration>,
    /// Whether `SIGUSR1` also prints an intermediate output.
    pub status_on_signal: bool,
    /// Job files of the user, which are never overwritten.
    pub job_files: Vec<PathBuf>,
    /// Remarks about the options. They are printed only with a text format: on standard error
    /// before the measurement, or at the end of the output file.
    pub remarks: Vec<String>,
    /// Lines that announce the files to make, in the tool's format. Only text output has them. They are printed after the measurement, so a
    /// refused job prints none.
    pub announcements: Vec<String>,
    /// Whether the job measures anything. If not, it only makes files for later invocations.
    pub measures: bool,
    /// Whether to print no progress.
    pub quiet: bool,
}

impl ToolOutput {
    /// The output of a tool that measures and prints once, at the end, on standard output.
    pub(crate) fn new(tool: Tool, formats: &[&str], job_files: Vec<PathBuf>, job: &JobSpec) -> Self {
        Self {
            tool,
            formats: formats.iter().filter_map(|name| report::find_format::<Report>(name)).collect(),
            output: None,
            bandwidth_log: false,
            status_interval: None,
            status_on_signal: false,
            job_files,
            remarks: job.remarks.clone(),
            announcements: job.announcements.clone(),
            measures: true,
            quiet: false,
        }
    }

    /// Whether the output is text for people.
    fn is_text(&self) -> bool {
        self.formats.iter().any(|format| matches!(format.name, report::FIO | report::DISKSPD))
    }
}

/// Measures and prints the tool's output. Does nothing for `None`. Returns exit code 1 for a
/// failure, as fio and DISKSPD do, and 128 for an interruption.
pub fn run_and_print(given: Result<Option<(Request, ToolOutput)>, Failure>) -> ExitCode {
    let tool = given.as_ref().ok().and_then(|given| given.as_ref()).map(|(_, tool_output)| tool_output.tool);
    let done = given.and_then(|given| match given {
        Some((request, tool_output)) => measure(&request, &tool_output),
        None => Ok(ExitCode::SUCCESS),
    });
    done.unwrap_or_else(|failure| {
        let failure = match (failure, tool) {
            (Failure::Usage(text), Some(tool)) => Failure::Usage(in_names_of(tool, &text)),
            (Failure::Refused(text), Some(tool)) => Failure::Refused(in_names_of(tool, &text)),
            (failure, _) => failure,
        };
        failure.print();
        match failure {
            Failure::Interrupted => ExitCode::from(INTERRUPTED),
            _ => ExitCode::FAILURE,
        }
    })
}

fn measure(request: &Request, tool_output: &ToolOutput) -> Result<ExitCode, Failure> {
    for remark in tool_output.remarks.iter().filter(|_| tool_output.is_text() && tool_output.output.is_none())
    {
        stderr::print(&format!("fathom: {remark}"));
    }
    fleet::alone()?;
    let planned = plan::plan(request)?;
    let mut protected = ProtectedPaths::from_plan(&planned.plan, &planned.machine.places);
    for file in &tool_output.job_files {
        protected.add(file, "a job file of this command");
    }
    let logs = Rules { flag: "the logs", protected: protected.clone(), replace: Replace::OnlyText };
    let logs = collector::Files::decide(&planned.plan, logs, tool_output.output.as_slice())?;
    let rules = Rules { flag: "--output", protected, replace: Replace::OnlyText };
    let outlet = tool_output.output.as_deref().map(|path| rules.decide(path)).transpose()?;
    let aggregates = aggregate::FILES.iter().filter(|_| tool_output.bandwidth_log);
    let aggregates: Vec<PathBuf> = aggregates.map(|(name, _)| PathBuf::from(name)).collect();
    let aggregates = output::decide_all(&aggregates, &rules)?;
    let to = outlet.as_ref().map(|outlet| (outlet, &rules));
    let mode = if tool_output.quiet { ProgressMode::Quiet } else { ProgressMode::Plain };
    let (finished, intermediate) = thread::scope(|scope| {
        let every = tool_output.status_interval;
        let sender_and_writer = (every.is_some() || tool_output.status_on_signal).then(|| {
            let (sender, receiver) = sync_channel(1);
            (StatusSender::new(every, sender), scope.spawn(move || print_so_far(&receiver, tool_output, to)))
        });
        let (status_sender, writer) = sender_and_writer.unzip();
        let finished = run::measure(planned, None, request.keep, mode, status_sender, &Fleet::Alone, None);
        let intermediate = writer.map(|writer| writer.join().unwrap_or_default());
        finished.map(|finished| (finished, intermediate.unwrap_or_default()))
    })?;
    let record = finished.session.record()?;
    let kept = finished.session.is_kept().then(|| finished.session.path());
    let annotations = kept.map(history::read_annotations).unwrap_or_default();
    // The format of `Showing` is not used for judging.
    let report = judge(&record, kept, annotations, &Showing::plain(report::TEXT));
    if kept.is_some() {
        history::refresh_index();
    }
    write_states(&record, &finished.written, &rules);
    // If a log cannot be written, fail only after the report is written.
    let log_result = logs.write(&finished.op_log).and_then(|()| {
        let mut all = aggregates.iter().zip(aggregate::FILES);
        all.try_for_each(|(outlet, (_, kind))| {
            outlet.write(aggregate::lines(&report, kind).as_bytes(), &rules)
        })
    });
    write_output(&report, tool_output, to, intermediate)?;
    log_result?;
    let has_failed = finished.failed || has_failed(&report);
    Ok(match (finished.interrupted, has_failed) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (_, true) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Writes the state files of fio's verified writes. As in fio, a file that cannot be written does not fail the job.
fn write_states(record: &Record, written: &[Vec<u64>], rules: &Rules) {
    let plan = &record.header.plan;
    let (Some(typed), Some(job)) = (&plan.typed, plan.jobs.first()) else { return };
    let rules = Rules { flag: "verify_state_save", ..rules.clone() };
    for ((typed, phase), written) in typed.phases.iter().zip(&job.phases).zip(written) {
        let mut written = written.iter();
        for (typed, stream) in typed.iter().zip(&phase.streams) {
            let content = verify_state::content(written.by_ref().take(stream.workers as usize).sum());
            let Some(path) = &typed.state else { continue };
            let outlet = rules.decide(&name::path(path));
            if let Err(why) = outlet.and_then(|outlet| outlet.write(content.as_bytes(), &rules)) {
                stderr::print(&format!("fathom: {}", why.message()));
            }
        }
    }
}

/// Prints an intermediate output for each status that arrives. An output file is rewritten completely each time. Returns all intermediate
/// outputs that were written to a file; empty for standard output.
fn print_so_far(
    statuses: &Receiver<RunStatus>,
    tool_output: &ToolOutput,
    to: Option<(&Outlet, &Rules)>,
) -> Vec<u8> {
    let _ = sys::thread::block_signals();
    let mut outputs = Vec::new();
    while let Ok(so_far) = statuses.recv() {
        let Some(record) = so_far.record() else { continue };
        let report = judge(&record, None, Annotations::default(), &Showing::plain(report::TEXT));
        let Ok(rendered) = render(&report, tool_output) else { continue };
        let written = match to {
            Some((outlet, rules)) => {
                outputs.extend(rendered);
                outlet.write(&outputs, rules)
            }
            None => stdout::print_bytes(&rendered),
        };
        // A write error ends only the intermediate outputs. If it persists, the final output reports it.
        if written.is_err() {
            break;
        }
    }
    outputs
}

/// Renders all formats one after another.
fn render(report: &Report, tool_output: &ToolOutput) -> Result<Vec<u8>, Failure> {
    let style = Style { detail: Detail::Brief, ..Style::default() };
    let all = tool_output.formats.iter().map(|format| stdout::render_for_file(format, report, style));
    Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Writes the final output and fathom's verdict. A file gets the intermediate outputs again, between the
/// announcements and the final output. A text file ends with the verdict, because programs that let fio write a file mistake
/// text on standard error for a failure. For text on standard output, and for Iometer, the verdict
/// goes to standard error.
fn write_output(
    report: &Report,
    tool_output: &ToolOutput,
    to: Option<(&Outlet, &Rules)>,
    intermediate: Vec<u8>,
) -> Result<(), Failure> {
    let announcements = tool_output.announcements.iter().filter(|_| tool_output.is_text());
    let announced: String = announcements.map(|line| name::visible(line).into_owned() + "\n").collect();
    let mut bytes = [announced.into_bytes(), intermediate, render(report, tool_output)?].concat();
    match to {
        Some((outlet, rules)) => {
            if tool_output.is_text() {
                let remarks = tool_output.remarks.iter().map(|remark| format!("fathom: {remark}\n"));
                bytes.extend(remarks.collect::<String>().bytes());
                bytes.extend(describe_verdict(report, tool_output).bytes());
            }
            outlet.write(&bytes, rules).map_err(|why| name_session(&why, report))?;
        }
        None => stdout::print_bytes(&bytes).map_err(|why| name_session(&why, report))?,
    }
    // The result file of the tool has no place for the verdict.
    let has_no_place = tool_output.formats.iter().any(|format| format.name == report::IOMETER);
    if has_no_place || (tool_output.is_text() && to.is_none()) {
        stderr::print(describe_verdict(report, tool_output).trim());
    }
    Ok(())
}

/// Whether a stream had more errors than the job ignores, or a sync failed.
fn has_failed(report: &Report) -> bool {
    let mut observed = report.results.iter().filter_map(|result| result.observed.as_ref());
    observed.any(|observed| {
        observed.errors.values().sum::<u64>() > observed.ignored_errors || observed.sync_error.is_some()
    })
}

/// Returns fathom's verdict as lines of text.
fn describe_verdict(report: &Report, tool_output: &ToolOutput) -> String {
    if tool_output.measures {
        let rates = if tool_output.tool == Tool::Diskspd && tool_output.is_text() {
            report::rates_above_and_below(report)
        } else {
            String::new()
        };
        rates + &in_names_of(tool_output.tool, &report::fio_verdict(report))
    } else {
        "fathom: made the files and measured nothing (create_only)\n".into()
    }
}

/// Completes a write error with the command that prints the session's report, if the session is kept.
fn name_session(why: &Failure, report: &Report) -> Failure {
    let session = report.session.as_deref();
    let kept =
        session.map(|path| format!("; `fathom show {}` prints the results", name::shown(&name::path(path))));
    Failure::Refused(format!("{}{}", why.message(), kept.unwrap_or_default()))
}

/// Makes the request for a job. The job runs once, as under the tool, even if other load disturbs
/// it. `destroy` and [`DESTROY`] name what may be overwritten.
pub(crate) fn make_request(tool: Tool, mut job: JobSpec, mut destroy: Vec<String>, keep: bool) -> Request {
    job.runs = Some(1);
    job.attempts = Some(1);
    destroy.extend(allowed_paths(&job));
    Request {
        command: std::env::args_os().map(name::text).collect(),
        job,
        source: Some(JobSource::CommandOf(tool)),
        destroy,
        unseen_users: read_paths(UNSEEN_USERS),
        keep,
        ..Request::default()
    }
}

/// Returns the paths in the environment variable [`DESTROY`] that this job would overwrite. The
/// variable may also list paths for other jobs.
fn allowed_paths(job: &JobSpec) -> Vec<String> {
    let only_reads = |rw: &Option<Rw>| matches!(rw, Some(Rw::Read | Rw::Randread));
    let streams = job.streams().filter(|stream| !only_reads(&stream.rw));
    // Compare real paths, because a file may have several paths.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let targets: Vec<PathBuf> =
        streams.flat_map(|stream| &stream.target).map(|target| real(&name::path(target))).collect();
    // A replayed log may name its target itself, so any path may be a target.
    let is_any = job.streams().any(|s| s.replay.is_some() && s.target.is_empty());
    let is_target = |path: &Path| is_any || targets.contains(&real(path));
    read_paths(DESTROY).into_iter().filter(|path| is_target(path)).map(name::text).collect()
}

// A doc comment here would appear in the help of each command with these arguments.
#[derive(clap::Args, Debug)]
pub(crate) struct ToolWords {
    /// Arguments of the tool
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl ToolWords {
    /// Returns the arguments as text that can represent any bytes.
    pub(crate) fn text(&self) -> Vec<String> {
        self.words.iter().map(name::text).collect()
    }
}

/// Environment variable with paths that may be overwritten, in the syntax of `PATH`.
const DESTROY: &str = "FATHOM_DESTROY";
/// Environment variable with paths, in the syntax of `PATH`, that fathom may write even if it cannot see whether another process uses them.
const UNSEEN_USERS: &str = "FATHOM_UNSEEN_USERS";

/// Returns the paths in an environment variable.
fn read_paths(variable: &str) -> Vec<PathBuf> {
    let list: Option<OsString> = std::env::var_os(variable);
    list.map(|list| std::env::split_paths(&list).collect()).unwrap_or_default()
}
