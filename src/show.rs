//! Showing: from a record to bytes on standard output and in files.
//!
//! For: the last two steps of the flow. Not for: concluding (crate `analysis`) nor layout (crate `report`).

use crate::failure::Failure;
use crate::files::output;
use crate::files::output::{Outlet, Replace, Rules, Spared};
use crate::live::Progress;
use crate::stdout;
use analysis::Judging;
use model::annotations::Annotations;
use model::check_id::CheckId;
use model::explained::Explained;
use model::machine::Machine;
use model::name;
use model::plan::Plan;
use model::record::Record;
use model::report::{CountsAs, Report};
use model::session_table::SessionTable;
use model::spec::presets::preset;
use report::{Detail, Format, ReportKind, Style};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How else a report that rests on files can be had.
pub const SAME_COMMAND: &str = "nothing was measured; the same command prints it again";

/// How the result is to be shown.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The format on standard output.
    pub format: &'static Format,
    /// Files to write too.
    pub outputs: Vec<PathBuf>,
    /// What they may replace.
    pub replace: Replace,
    /// Findings that the user accepts.
    pub accept: Vec<CheckId>,
    /// Show the ledger of each result.
    pub ledger: bool,
    /// How much of the report.
    pub detail: Detail,
    /// How it is watched while it is measured.
    pub watched: Progress,
    /// Explain: before a measurement the plan, and stop; of a session file the course of its runs.
    pub explain: bool,
    /// What an answer that cannot be told counts as.
    pub inconclusive: Option<CountsAs>,
}

impl Showing {
    /// A report in this format as it is, nothing accepted.
    pub fn plain(format: &'static Format) -> Self {
        Self {
            format,
            outputs: Vec::new(),
            replace: Replace::Text,
            accept: Vec::new(),
            ledger: false,
            detail: Detail::default(),
            watched: Progress::Quiet,
            explain: false,
            inconclusive: None,
        }
    }

    fn style(&self) -> Style {
        Style { ledger: self.ledger, course: self.explain, detail: self.detail, ..Style::default() }
    }
}

/// Concludes. The file is that of the session, where it was kept, and the words are what the user says about it.
pub fn judge(record: &Record, file: Option<&Path>, words: Annotations, showing: &Showing) -> Report {
    let judging = Judging {
        accept: showing.accept.clone(),
        inconclusive: showing.inconclusive,
        session: file.map(name::text),
        words,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    analysis::judge(record, &judging)
}

/// Refuses what was said about gates where there is none, in one session or in any of several.
///
/// # Errors
/// A usage failure that names the flag.
pub fn check_gated(is_gated: bool, showing: &Showing) -> Result<(), Failure> {
    if showing.inconclusive.is_none() || is_gated {
        return Ok(());
    }
    Err(Failure::Usage(
        "--inconclusive says what a condition counts as that cannot be told, and there is none; type --fail-if too when you measure, or leave it out"
            .into(),
    ))
}

/// Where a report goes beside standard output, decided before anything is measured.
#[derive(Debug)]
pub struct Outlets {
    all: Vec<Outlet>,
    rules: Rules,
}

/// Decides where the report goes.
///
/// # Errors
/// As [`output::decide_all`].
pub fn outlets(outputs: &[PathBuf], replace: Replace, spared: Spared) -> Result<Outlets, Failure> {
    let rules = Rules { flag: "-o", spared, replace };
    Ok(Outlets { all: output::decide_all(outputs, &rules)?, rules })
}

/// Prints the report and writes the files that were asked for. What one of them refuses does not keep the others from it.
///
/// # Errors
/// [`Failure::Refused`] where one could not be written, with where the report is instead; a closed pipe is nobody's error.
pub fn report(
    judged: &Report,
    showing: &Showing,
    outlets: &Outlets,
    kept: Option<&Path>,
) -> Result<(), Failure> {
    let again = kept
        .map(|file| format!("the session is kept; `fathom show {}` prints the report", name::shown(file)));
    put(judged, (showing.format, showing.style()), outlets, again.as_deref())
}

/// Prints what was concluded of several sessions side by side, and writes it.
///
/// # Errors
/// As [`report()`].
pub fn table(of: &SessionTable, showing: &Showing, outlets: &Outlets) -> Result<(), Failure> {
    let format = report::that_writes::<SessionTable>(showing.format).map_err(Failure::Usage)?;
    put(of, (format, showing.style()), outlets, Some(SAME_COMMAND))
}

/// Prints a report of any kind and writes it. `again` says how else it can be had.
///
/// # Errors
/// As [`report()`].
pub fn put<K: ReportKind + ?Sized>(
    of: &K,
    (printed, style): (&'static Format, Style),
    outlets: &Outlets,
    again: Option<&str>,
) -> Result<(), Failure> {
    let (mut refused, mut written) = write_outlets(of, (printed, style), outlets);
    match stdout::report(printed, of, style) {
        Ok(()) => written = true,
        Err(why) => refused.push(why.message().to_owned()),
    }
    if refused.is_empty() {
        return Ok(());
    }
    let instead = match again {
        Some(again) => again.to_owned(),
        None if written => "the report is where else it was asked for".into(),
        // The last place where it can be had.
        None => format!("nothing else keeps the report:\n{}", stdout::in_words(printed, of, style)),
    };
    Err(Failure::Refused(format!("{}; {instead}", refused.join("; "))))
}

/// Writes a report of any kind to the files that were asked for.
///
/// # Errors
/// [`Failure::Refused`] if a file cannot be written.
pub fn write_files<K: ReportKind + ?Sized>(
    of: &K,
    printed: (&'static Format, Style),
    outlets: &Outlets,
) -> Result<(), Failure> {
    let (refused, _) = write_outlets(of, printed, outlets);
    if refused.is_empty() { Ok(()) } else { Err(Failure::Refused(refused.join("; "))) }
}

/// Why files were not written, and whether any was.
fn write_outlets<K: ReportKind + ?Sized>(
    of: &K,
    (printed, style): (&'static Format, Style),
    outlets: &Outlets,
) -> (Vec<String>, bool) {
    let mut refused = Vec::new();
    let mut written = false;
    for outlet in outlets.all.iter().filter(|o| !o.is_stdout()) {
        let format = report::of_file::<K>(outlet.path_as_typed(), printed).unwrap_or(printed);
        let done = stdout::rendered(format, of, style).and_then(|b| outlet.write(&b, &outlets.rules));
        match done {
            Ok(()) => written = true,
            Err(why) => refused.push(why.message().to_owned()),
        }
    }
    (refused, written)
}

/// Prints the plan with the origin of every setting; as text below the job file that it was made from, where that is ours.
///
/// # Errors
/// [`Failure::Usage`] where the format has no way to write one, [`Failure::Refused`] where it cannot be printed.
pub fn explain(
    (plan, machine): (Plan, Machine),
    recipe: Option<&str>,
    format: &'static Format,
) -> Result<ExitCode, Failure> {
    let format = report::that_writes::<Explained>(format).map_err(Failure::Usage)?;
    if let Some(text) = recipe.filter(|_| format.name == report::TEXT.name) {
        stdout::text(&format!("{text}\n"))?;
    }
    let cost = analysis::cost::cost(&plan);
    stdout::report(format, &Explained { plan, machine, cost }, Style::default())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the cells of a grid, one a line.
///
/// # Errors
/// Where it cannot be printed.
pub fn cells(plan: &Plan) -> Result<ExitCode, Failure> {
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
    stdout::text(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the cells of a grid that would not be measured, one a line with the reason.
///
/// # Errors
/// Where it cannot be printed.
pub fn skipped(plan: &Plan) -> Result<ExitCode, Failure> {
    let mut out = String::new();
    for cell in plan.study.grid().into_iter().flat_map(|g| &g.skipped) {
        out += &format!("{}: {}\n", cell.setting.describe(), cell.why);
    }
    stdout::text(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the library of access specifications: names, and below each its lines as `--line` takes them.
///
/// # Errors
/// Where it cannot be printed.
pub fn specs() -> Result<ExitCode, Failure> {
    let mut out = String::new();
    for spec in model::spec::specs::library() {
        out += &format!("{}\n", spec.name);
        for line in spec.to_lines() {
            out += &format!("    {line}\n");
        }
    }
    stdout::text(&out)?;
    Ok(ExitCode::SUCCESS)
}
