//! The program `fathom`: dispatches each command and maps its outcome to the exit code.

use analysis::strategy::cost::estimate_cost;
use fathom_io::capture::{capture_file, fit, record};
use fathom_io::cli::other_tools;
use fathom_io::cli::{Cli, Command, ExportAction, ShowAction, SweepAction, show_report, sweep_again};
use fathom_io::failure::Failure;
use fathom_io::files::output::{ProtectedPaths, Rules};
use fathom_io::fleet::{self, Fleet};
use fathom_io::history::JudgedSession;
use fathom_io::live::ProgressMode;
use fathom_io::request::{JobSource, Request};
use fathom_io::run::collector;
use fathom_io::show::{self, Outlets, Showing};
use fathom_io::{doctor, history, plan, run, session, signals, stderr, stdout, verify, watch};
use model::history::RowsOf;
use model::plan::{ExpectedCost, Planned};
use model::record::Record;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a failed allocation end the program with a message.
#[global_allocator]
static ALLOCATOR: sys::allocator::EndOnFailure = sys::allocator::EndOnFailure;

/// Stack of the thread that runs the command. `ulimit -s` limits only the initial thread.
const STACK_BYTES: usize = 8 << 20;
/// The exit code that Rust gives after a panic.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    let started = signals::survive_harmless().and_then(|()| {
        std::thread::Builder::new().name("fathom".into()).stack_size(STACK_BYTES).spawn(run_command)
    });
    match started {
        // The panic hook has already printed the message.
        Ok(thread) => thread.join().unwrap_or(ExitCode::from(PANICKED)),
        Err(e) => Failure::Refused(format!("fathom cannot start a thread: {e}{}", sys::cause(&e))).print(),
    }
}

fn run_command() -> ExitCode {
    stderr::avoid_block_devices();
    let parsed = match Cli::read() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let outcome = match parsed.command {
        Command::Bench(args) => args.requests().and_then(|(requests, showing)| match requests.as_slice() {
            [request] => measure(request, &showing),
            several => measure_each(several, &showing),
        }),
        Command::Run(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Layers(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Limit(args) => args.request().and_then(|(request, showing)| measure(&request, &showing)),
        Command::Watch(args) => args.request().and_then(|request| watch::watch(&request)),
        Command::Sweep(args) => args.into_action().and_then(sweep),
        Command::Iops(args) => args.into_sweep_action().and_then(sweep),
        Command::Api(args) => args.request().and_then(measure_unless_listed),
        Command::Recipe(args) => args.request().and_then(measure_unless_listed),
        Command::Fio(args) => return other_tools::run_and_print(args.request()),
        Command::Time(args) => return args.run(),
        Command::Diskspd(args) => return other_tools::run_and_print(args.request()),
        Command::Iometer(args) => return other_tools::run_and_print(args.request()),
        Command::Show(args) => args.into_action().and_then(|parsed| match parsed {
            ShowAction::Sessions(files, showing) => judge_again(&files, &showing),
            ShowAction::Report(file, showing) => show_report(&file, &showing),
            ShowAction::Capture(request) => capture_file::show(&request),
        }),
        Command::Compare(args) => args.compare(),
        Command::List(args) => history::list(&args.request()),
        Command::Tag(args) => history::annotate(&args.session, &args.change()),
        Command::Note(args) => history::annotate(&args.session, &args.change()),
        Command::Export(args) => args.into_action().and_then(|parsed| match parsed {
            ExportAction::Schema(text) => history::schema(text),
            ExportAction::Sessions(request) => history::export(&request),
            ExportAction::Capture(file, to, replace) => capture_file::export(&file, &to, replace),
        }),
        Command::Import(args) => history::import(&args.files),
        Command::Delete(args) => history::delete(&args.request()),
        Command::Capture(args) => record::capture(&args),
        Command::Fit(args) => fit::fit(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Doctor(args) => doctor::doctor(&args.request()),
        Command::Devices(args) => args.print(),
        Command::Explain(args) => args.explain(),
        Command::Completions(args) => args.print(),
        Command::Man(args) => args.write(),
        Command::Help(args) => args.print(),
    };
    outcome.unwrap_or_else(|failure| failure.print())
}

/// Measures a request, on this host alone or together with the hosts that a launcher started.
fn measure(request: &Request, showing: &Showing) -> Result<ExitCode, Failure> {
    let fleet = fleet::join(request)?;
    let outcome = measure_in(&fleet, request, &fleet.showing(showing.clone()));
    fleet.leave(outcome)
}

/// Measures targets one after the other, each in its own session, and prints a table with a row for
/// each device. With `--explain`, prints their plans instead.
fn measure_each(requests: &[Request], showing: &Showing) -> Result<ExitCode, Failure> {
    fleet::alone()?;
    let (mut protected, mut is_gated) = (ProtectedPaths::default(), false);
    // Plan all targets first: if one cannot be measured, the command ends before the first measurement.
    let mut total = ExpectedCost::default();
    for (at, request) in requests.iter().enumerate() {
        let planned = plan::plan(request)?;
        if showing.explain {
            if at > 0 {
                stdout::print_text("\n")?;
            }
            print_explained(planned, request, showing)?;
            continue;
        }
        is_gated |= planned.plan.is_gated();
        protected.extend(ProtectedPaths::from_plan(&planned.plan, &planned.machine.places));
        total = total.and(&estimate_cost(&planned.plan));
    }
    if showing.explain {
        return Ok(ExitCode::SUCCESS);
    }
    show::check_gated(is_gated, showing)?;
    let outlets = show::outlets(&showing.outputs, showing.replace, protected)?;
    if showing.watched != ProgressMode::Quiet {
        stderr::print(&format!("All {} targets together: {}", requests.len(), total.sentence()));
    }
    let (mut ids, mut judged, mut last_outcome) = (Vec::new(), Vec::new(), Ok(None));
    for request in requests {
        last_outcome = measure_one_of_several(request, showing).map(|(session, code)| {
            ids.push(session.id.clone());
            judged.push(Ok(session));
            code
        });
        if !matches!(last_outcome, Ok(None)) {
            break;
        }
    }
    if judged.is_empty() {
        return last_outcome.map(|_| ExitCode::SUCCESS);
    }
    let table = history::session_table(RowsOf::Devices, judged)?;
    show::print_table(&table, showing, &outlets, show::kept_sessions(&ids).as_deref())?;
    Ok(last_outcome?.unwrap_or_else(|| ExitCode::from(analysis::exit_code_of(&table.reports))))
}

/// Measures and judges one target of several. Returns the judged session, and the exit code if the
/// measurement was interrupted or failed.
fn measure_one_of_several(
    request: &Request,
    showing: &Showing,
) -> Result<(JudgedSession, Option<ExitCode>), Failure> {
    let fleet = fleet::join(request)?;
    let planned = plan::plan(request)?;
    let finished =
        run::measure(planned, None, request.keep, showing.watched, None, &fleet, Some(&showing.accept))?;
    let record = finished.session.record()?;
    let kept = finished.session.is_kept().then(|| finished.session.path());
    let annotations = kept.map(history::read_annotations).unwrap_or_default();
    let report = show::judge(&record, kept, annotations, showing);
    let id = kept.map_or_else(|| show::NOT_KEPT.into(), history::session_id);
    if kept.is_some() {
        history::refresh_index();
    }
    Ok((JudgedSession { id, record, report }, finished.exit_code()))
}

/// Measures a request. `None` means that the command has already printed a list.
fn measure_unless_listed(parsed: Option<(Request, Showing)>) -> Result<ExitCode, Failure> {
    parsed.map_or(Ok(ExitCode::SUCCESS), |(request, showing)| measure(&request, &showing))
}

/// Prints the plan of a request instead of measuring.
fn print_explained(planned: Planned, request: &Request, showing: &Showing) -> Result<(), Failure> {
    if !showing.outputs.is_empty() {
        return Err(Failure::Usage(
            "--explain only prints the plan, so there is no report for -o; leave --explain or -o out".into(),
        ));
    }
    let recipe = request.source.as_ref().and_then(JobSource::recipe);
    show::print_plan(planned.plan, planned.machine, recipe, showing.format)
}

fn measure_in(fleet: &Fleet, request: &Request, showing: &Showing) -> Result<ExitCode, Failure> {
    let planned = fleet.settle(plan::plan(request))?;
    show::check_gated(planned.plan.is_gated(), showing)?;
    if showing.explain {
        let printed =
            if fleet.reports_results() { print_explained(planned, request, showing) } else { Ok(()) };
        return printed.map(|()| ExitCode::SUCCESS);
    }
    let mut protected = ProtectedPaths::from_plan(&planned.plan, &planned.machine.places);
    if let Some(file) = request.source.as_ref().and_then(JobSource::path) {
        protected.add(file, "the job file of this command");
    }
    let rules = Rules { flag: "--op-log", protected: protected.clone(), replace: showing.replace };
    let logs = collector::Files::decide(&planned.plan, rules, &showing.outputs)?;
    let outlets = show::outlets(&showing.outputs, showing.replace, protected)?;
    let finished =
        run::measure(planned, None, request.keep, showing.watched, None, fleet, Some(&showing.accept))?;
    #[cfg(feature = "fleet")]
    let finished = finished.merge_hosts(fleet)?;
    if !fleet.reports_results() {
        return Ok(ExitCode::SUCCESS);
    }
    let log_result = logs.write(&finished.op_log);
    // If the log could not be written, report that after the report.
    match (conclude(&finished, showing, &outlets), log_result) {
        (Err(report_failure), Err(log_failure)) => {
            log_failure.print();
            Err(report_failure)
        }
        (code, log_result) => code.and_then(|code| log_result.map(|()| code)),
    }
}

fn sweep(parsed: SweepAction) -> Result<ExitCode, Failure> {
    match parsed {
        SweepAction::Measure(request, showing) => measure(&request, &showing),
        SweepAction::List(request) => {
            plan::plan(&request).and_then(|planned| show::print_cells(&planned.plan))
        }
        SweepAction::Skipped(request) => {
            plan::plan(&request).and_then(|planned| show::print_skipped(&planned.plan))
        }
        SweepAction::Specs => show::print_specs(),
        SweepAction::Resume(word, showing) => {
            fleet::alone()?;
            let before = session::read(&history::find_session(&word)?)?;
            let (planned, keep) =
                plan::resume_plan(&word, sweep_again(&word, &before.header.plan)?, &before)?;
            show::check_gated(planned.plan.is_gated(), &showing)?;
            let protected = ProtectedPaths::from_plan(&planned.plan, &planned.machine.places);
            let outlets = show::outlets(&showing.outputs, showing.replace, protected)?;
            let (mode, accept) = (showing.watched, Some(showing.accept.as_slice()));
            let finished = run::measure(planned, Some(before), keep, mode, None, &Fleet::Alone, accept)?;
            conclude(&finished, &showing, &outlets)
        }
    }
}

/// Judges a finished measurement, prints its report, and updates the index of the history.
fn conclude(finished: &run::Finished, showing: &Showing, outlets: &Outlets) -> Result<ExitCode, Failure> {
    let kept = finished.session.is_kept();
    let file = kept.then(|| finished.session.path());
    let code = finished.session.record().and_then(|record| judge(&record, file, showing, outlets));
    if kept {
        history::refresh_index();
    }
    // An interruption or failure takes precedence over the verdict.
    code.map(|code| finished.exit_code().unwrap_or(code))
}

/// Judges stored sessions again: one as a report, several as a table.
fn judge_again(files: &[PathBuf], showing: &Showing) -> Result<ExitCode, Failure> {
    let mut protected_files = ProtectedPaths::default();
    for file in files {
        protected_files.add(file, "a session that is shown");
    }
    let outlets = show::outlets(&showing.outputs, showing.replace, protected_files)?;
    for file in files {
        if let Some(running) = session::describe_running(file) {
            let id = history::session_id(file);
            if session::is_headless(file) {
                return Err(Failure::Refused(format!(
                    "{id} is {running} and has no measurement yet; try again later"
                )));
            }
            stderr::print(&format!("fathom: {id} is {running}; the report has its measurements so far"));
        }
    }
    if let [file] = files {
        let record = session::read(file)?;
        show::check_gated(record.header.plan.is_gated(), showing)?;
        let code = judge(&record, Some(file), showing, &outlets)?;
        show::confirm_files(&outlets);
        return Ok(code);
    }
    let mut is_gated = false;
    let judged = files.iter().map(|file| {
        let record = session::read(file)?;
        is_gated |= record.header.plan.is_gated();
        let report = show::judge(&record, Some(file), history::read_annotations(file), showing);
        Ok(JudgedSession { id: history::session_id(file), record, report })
    });
    let table = history::session_table(RowsOf::Sessions, judged)?;
    show::check_gated(is_gated, showing)?;
    show::print_table(&table, showing, &outlets, Some(show::SAME_COMMAND))?;
    show::confirm_files(&outlets);
    Ok(ExitCode::from(analysis::exit_code_of(&table.reports)))
}

/// Judges a record, prints its report, and returns the exit code of the verdict.
fn judge(
    record: &Record,
    kept: Option<&Path>,
    showing: &Showing,
    outlets: &Outlets,
) -> Result<ExitCode, Failure> {
    let annotations = kept.map(history::read_annotations).unwrap_or_default();
    let report = show::judge(record, kept, annotations, showing);
    show::print_report(&report, showing, outlets, kept)?;
    Ok(ExitCode::from(analysis::exit_code(&report)))
}
