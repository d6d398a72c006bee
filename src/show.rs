//! Shows results: judges a record, prints the report, and writes output files.
//!
//! Conclusions are in crate `analysis`, layouts in crate `report`.

use crate::failure::Failure;
use crate::files::output::{self, Outlet, ProtectedPaths, Replace, Rules};
use crate::live::ProgressMode;
use crate::{stderr, stdout};
use analysis::Judging;
use model::finding::CheckId;
use model::history::SessionTable;
use model::machine::Machine;
use model::name;
use model::plan::{Explained, Plan};
use model::record::Record;
use model::report::{Annotations, CountsAs, Report};
use model::spec::axes::preset;
use report::{Detail, Format, ReportKind, Style};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// End of the error message if a report that needed no measurement cannot be written.
pub const SAME_COMMAND: &str = "nothing was measured; the same command prints the report again";

/// How to show the result.
#[derive(Clone, Debug)]
pub struct Showing {
    /// Format on standard output.
    pub format: &'static Format,
    /// Additional output files.
    pub outputs: Vec<PathBuf>,
    /// Which existing files the outputs may replace.
    pub replace: Replace,
    /// Findings that the user accepts.
    pub accept: Vec<CheckId>,
    /// Whether to show the ledger of each result.
    pub ledger: bool,
    /// How much of the report to print.
    pub detail: Detail,
    /// How to display progress while measuring.
    pub watched: ProgressMode,
    /// Before a measurement: whether to print the plan and stop. For a session: whether to print
    /// the time series of its runs.
    pub explain: bool,
    /// Whether an undecided condition gives the exit code of a passed or of a failed one; `None`
    /// for its own exit code (4).
    pub inconclusive: Option<CountsAs>,
}

impl Showing {
    /// The defaults: only standard output, no accepted findings, no progress.
    pub fn plain(format: &'static Format) -> Self {
        Self {
            format,
            outputs: Vec::new(),
            replace: Replace::TextUnlessForced,
            accept: Vec::new(),
            ledger: false,
            detail: Detail::default(),
            watched: ProgressMode::Quiet,
            explain: false,
            inconclusive: None,
        }
    }

    fn style(&self) -> Style {
        Style { ledger: self.ledger, time_series: self.explain, detail: self.detail, ..Style::default() }
    }
}

/// Judges a record. `file` is the session file if it was kept.
pub fn judge(record: &Record, file: Option<&Path>, annotations: Annotations, showing: &Showing) -> Report {
    let judging = Judging {
        accept: showing.accept.clone(),
        inconclusive: showing.inconclusive,
        session: file.map(name::text),
        annotations,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    analysis::judge(record, &judging)
}

/// Refuses `--inconclusive` if no session has a condition.
///
/// # Errors
/// A usage failure that names the flag.
pub fn check_gated(is_gated: bool, showing: &Showing) -> Result<(), Failure> {
    if showing.inconclusive.is_none() || is_gated {
        return Ok(());
    }
    Err(Failure::Usage(
        "--inconclusive sets the exit code of an undecided condition, and there is no condition; measure with --fail-if, or leave --inconclusive out"
            .into(),
    ))
}

/// Output files of a report, checked before measuring.
#[derive(Debug)]
pub struct Outlets {
    all: Vec<Outlet>,
    rules: Rules,
}

/// Checks the output files.
///
/// # Errors
/// As [`output::decide_all`].
pub fn outlets(outputs: &[PathBuf], replace: Replace, protected: ProtectedPaths) -> Result<Outlets, Failure> {
    let rules = Rules { flag: "-o", protected, replace };
    Ok(Outlets { all: output::decide_all(outputs, &rules)?, rules })
}

/// Prints the report and writes the requested files. If one file fails, the others are still written.
///
/// # Errors
/// [`Failure::Refused`] if an output could not be written. The message names another copy of the report or contains the report. A closed
/// pipe is not an error.
pub fn print_report(
    judged: &Report,
    showing: &Showing,
    outlets: &Outlets,
    kept: Option<&Path>,
) -> Result<(), Failure> {
    let alternative = kept
        .map(|file| format!("the session is kept; `fathom show {}` prints the report", name::shown(file)));
    put(judged, showing.format, showing.style(), outlets, alternative.as_deref())?;
    if showing.format.omits_verdict() {
        stderr::print(report::fio_verdict(judged).trim());
    }
    Ok(())
}

/// Names the command that prints the results of measured sessions again; `None` if any of them was
/// not kept.
pub fn kept_sessions(ids: &[String]) -> Option<String> {
    let is_kept = |id: &String| id != NOT_KEPT;
    let command = || format!("the sessions are kept; `fathom show {}` prints their results", ids.join(" "));
    ids.iter().all(is_kept).then(command)
}

/// Shown instead of the id of a session that was not kept.
pub const NOT_KEPT: &str = "not kept";

/// Prints the table of several sessions, and writes it to the requested files. `alternative` describes another way to get the results.
///
/// # Errors
/// As [`print_report`].
pub fn print_table(
    table: &SessionTable,
    showing: &Showing,
    outlets: &Outlets,
    alternative: Option<&str>,
) -> Result<(), Failure> {
    let format = report::require_writer::<SessionTable>(showing.format).map_err(Failure::Usage)?;
    put(table, format, showing.style(), outlets, alternative)
}

/// Prints a report of any kind and writes it to the files. `alternative` describes another way to get the report.
///
/// # Errors
/// As [`print_report`].
pub fn put<K: ReportKind + ?Sized>(
    report: &K,
    format: &'static Format,
    style: Style,
    outlets: &Outlets,
    alternative: Option<&str>,
) -> Result<(), Failure> {
    let (mut refused, mut written) = write_outlets(report, format, style, outlets);
    match stdout::print_report(format, report, style) {
        Ok(()) => written = true,
        Err(why) => refused.push(why.message().to_owned()),
    }
    if refused.is_empty() {
        return Ok(());
    }
    let instead = match alternative {
        Some(alternative) => alternative.to_owned(),
        None if written => "the report was written to the other outputs".into(),
        // The report exists nowhere else, so the message contains it.
        None => {
            format!("this is the only copy of the report:\n{}", stdout::render_as_text(format, report, style))
        }
    };
    Err(Failure::Refused(format!("{}; {instead}", refused.join("; "))))
}

/// Prints `wrote page.html` for each file, for commands that show no progress: their report on standard output looks the
/// same with and without `-o`.
pub fn confirm_files(outlets: &Outlets) {
    for path in outlets.all.iter().map(Outlet::path_as_typed).filter(|path| path.is_file()) {
        stderr::print(&format!("wrote {}", name::shown(path)));
    }
}

/// Writes a report of any kind to the requested files.
///
/// # Errors
/// [`Failure::Refused`] if a file cannot be written.
pub fn write_files<K: ReportKind + ?Sized>(
    report: &K,
    format: &'static Format,
    style: Style,
    outlets: &Outlets,
) -> Result<(), Failure> {
    let (refused, _) = write_outlets(report, format, style, outlets);
    if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(refused.join("; "))) }
}

/// Writes a report to all requested files. Returns the message of each failure, and whether at
/// least one file was written.
fn write_outlets<K: ReportKind + ?Sized>(
    report: &K,
    printed: &'static Format,
    style: Style,
    outlets: &Outlets,
) -> (Vec<String>, bool) {
    let mut refused = Vec::new();
    let mut written = false;
    for outlet in outlets.all.iter().filter(|o| !o.is_stdout()) {
        let format = report::format_of_file::<K>(outlet.path_as_typed(), printed).unwrap_or(printed);
        let done =
            stdout::render_for_file(format, report, style).and_then(|b| outlet.write(&b, &outlets.rules));
        match done {
            Ok(()) => written = true,
            Err(why) => refused.push(why.message().to_owned()),
        }
    }
    (refused, written)
}

/// Prints the plan with the origin of every setting. Text output of a recipe begins with its job file.
///
/// # Errors
/// [`Failure::Usage`] if the format cannot write a plan, [`Failure::Refused`] if it cannot be printed.
pub fn print_plan(
    plan: Plan,
    machine: Machine,
    recipe: Option<&str>,
    format: &'static Format,
) -> Result<(), Failure> {
    let format = report::require_writer::<Explained>(format).map_err(Failure::Usage)?;
    if let Some(text) = recipe.filter(|_| format.name == report::TEXT.name) {
        stdout::print_text(&format!("{text}\n"))?;
    }
    let cost = analysis::strategy::cost::estimate_cost(&plan);
    stdout::print_report(format, &Explained { plan, machine, cost }, Style::default())
}

/// Prints the cells of a grid, one per line.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_cells(plan: &Plan) -> Result<ExitCode, Failure> {
    let modes = plan.study.grid().and_then(|g| preset(g.preset.as_deref()?)).map_or(&[][..], |p| p.modes);
    let mut out = String::new();
    for setting in plan.study.grid().into_iter().flat_map(|g| &g.cells).map(|c| &c.setting) {
        out += &setting.describe();
        let mode = modes.iter().find(|m| setting.mode.as_deref() == Some(m.name));
        if let Some(mode) = mode.filter(|m| !m.remark.is_empty()) {
            out += &format!(" ({})", mode.remark);
        }
        out.push('\n');
    }
    stdout::print_text(&out).map(|()| ExitCode::SUCCESS)
}

/// Prints the cells of a grid that cannot be measured, one per line with the reason.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_skipped(plan: &Plan) -> Result<ExitCode, Failure> {
    let mut out = String::new();
    for cell in plan.study.grid().into_iter().flat_map(|g| &g.skipped) {
        out += &format!("{}: {}\n", cell.setting.describe(), cell.why);
    }
    stdout::print_text(&out).map(|()| ExitCode::SUCCESS)
}

/// Prints the library of access specifications: each name, and its lines in the syntax of `--line`.
///
/// # Errors
/// If it cannot be printed.
pub fn print_specs() -> Result<ExitCode, Failure> {
    let mut out = String::new();
    for spec in model::spec::iometer::library() {
        out += &format!("{}\n", spec.name);
        for line in spec.to_lines() {
            out += &format!("    {line}\n");
        }
    }
    stdout::print_text(&out).map(|()| ExitCode::SUCCESS)
}

#[test]
fn a_table_of_measured_sessions_can_be_shown_again_if_all_are_kept() {
    let kept = |ids: &[&str]| kept_sessions(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        kept(&["1", "2"]).as_deref(),
        Some("the sessions are kept; `fathom show 1 2` prints their results")
    );
    assert_eq!(kept(&["1", NOT_KEPT]), None);
}
