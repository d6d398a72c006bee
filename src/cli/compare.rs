//! `fathom compare`: its flags, and the comparison of sessions and JSON reports.
//!
//! 1. Each side names sessions by id, tag or path, as a list or a range.
//! 2. Sessions are judged now, JSON reports are read as they were judged.
//! 3. Crate `analysis` compares the sides; the answers or the gate set the exit code.

use crate::cli::shared_flags;
use crate::cli::shared_flags::{
    InconclusiveArgs, OUTPUT, OutputArgs, SlowerArgs, WHAT, check_brief, detail, formats_of, parse_share,
};
use crate::failure::Failure;
use crate::files::output::ProtectedPaths;
use crate::history::NoSession;
use crate::show::SAME_COMMAND;
use crate::{files, history, session, show};
use analysis::Judging;
use analysis::compare::{Options, accept_findings, compare_each, compare_sides};
use model::comparison::{Comparison, ComparisonAnswer, Comparisons, GateOutcome, SlowdownGate};
use model::finding::CheckId;
use model::name;
use model::record::{FIO_RESULT, is_fio_result};
use model::report::{CountsAs, FORMAT, Report};
use report::{Format, Style};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Decide whether B is faster than A, slower or the same, or give the largest possible difference.
///
/// With several sessions (A B C ...), each is compared with the first, in one table with a column for each.
/// A and B are sessions as for `fathom show` (a file, an id or a part of one, last, last~1), or JSON reports of measurements, which -o
/// writes.
/// One side can have several sessions of one configuration: with commas (a,b,c), or as a range of sessions (a..b).
/// Their runs are pooled, and the differences between those sessions are the noise floor: they occur without any change.
///
/// FASTER and SLOWER: the 95 % interval of the ratio B/A is beyond the margin, and a rank test
/// agrees; this requires at least 4 runs on each side, or 3 against 5. SAME: the whole interval is
/// within the tolerance of 5 %, or 10 % from p99 on. NO DIFFERENCE SEEN: none of these is proven;
/// the answer has the largest possible difference, and the number of runs that would halve it.
/// CANNOT TELL: the runs do not allow an answer. INCOMPARABLE: the workloads differ; the answer
/// names the differences. INVALID: a side has no number.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes, by the first word: 0 compared, or PASS; 1 FAIL (slower by more than --fail-if-slower allows) or INVALID (a side has no number); 2 usage, or INCOMPARABLE; 4 INCONCLUSIVE (the runs cannot decide --fail-if-slower), unless --inconclusive sets another code. Of several answers the worst decides."
)]
pub struct Args {
    /// Baseline
    a: String,
    /// Compared with A, each separately
    #[arg(required = true)]
    b: Vec<String>,
    /// Smallest difference that matters, in percent: sets the margin and the tolerance, each to at least 1 %, or 2 % for percentiles
    /// [default: a margin of 5 for one session against one, otherwise 1; a tolerance of 5, or 10 from p99 on]
    #[arg(long, value_name = "PERCENT", help_heading = WHAT, value_parser = parse_share)]
    margin: Option<f64>,
    #[command(flatten)]
    slower: SlowerArgs,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    /// Accept a finding by its id; may be repeated. With E14, numbers are compared although the
    /// workloads differ. With a finding of a result, such as D01, the number that it invalidates is
    /// compared, even if only one side has the finding. For --fail-if-slower, also type the ids of
    /// findings that were accepted when the sessions were measured
    #[arg(long, value_name = "ID,...", help_heading = OUTPUT, value_parser = parse_accepted_check, value_delimiter = ',')]
    accept: Vec<CheckId>,
    /// Format of the answer
    #[arg(long, default_value = "text", help_heading = OUTPUT, value_parser = formats_of::<Comparison>())]
    format: &'static Format,
    #[command(flatten)]
    files: OutputArgs,
    /// Show every number, every finding, and which checks were not possible and which passed
    #[arg(long, help_heading = OUTPUT, conflicts_with = "brief")]
    verbose: bool,
    /// Show only the table
    #[arg(long, help_heading = OUTPUT)]
    brief: bool,
}

/// Parses the id of a check that --accept may name: a check of a result, or E14, which checks a comparison.
fn parse_accepted_check(text: &str) -> Result<CheckId, String> {
    match text.parse()? {
        CheckId::E14 => Ok(CheckId::E14),
        _ => shared_flags::parse_accepted_check(text),
    }
}

impl Args {
    /// Compares, prints, and returns the exit code.
    ///
    /// # Errors
    /// [`Failure::Usage`] if flags conflict, a side is not a session or report, or a measurement is named twice.
    pub fn compare(self) -> Result<ExitCode, Failure> {
        let options = self.options()?;
        let typed = std::iter::once(&self.a).chain(&self.b);
        let sides = typed.map(|side| find_files(side)).collect::<Result<Vec<_>, _>>();
        let sides = sides.map_err(|why| match (why, self.explain_targets()) {
            (NoSession::Target(_), Some(advice)) => advice,
            // Another error, such as several sessions with this tag.
            (why, _) => why.into(),
        })?;
        // A file that is named twice would count double, or be compared with itself. A missing file is reported when it is read.
        let canonical = |file: &PathBuf| file.canonicalize().unwrap_or_else(|_| file.clone());
        refuse_twice(sides.iter().flatten().map(|file| (canonical(file), name::shown(file))))?;
        let mut protected = ProtectedPaths::default();
        for file in sides.iter().flatten() {
            protected.add(file, "a side of this comparison");
        }
        let outlets = show::outlets(&self.files.output, self.files.replace(), protected)?;
        let read = |files: &Vec<PathBuf>| {
            files.iter().map(|f| read_report(f, &options.accept)).collect::<Result<Vec<Report>, _>>()
        };
        let sides = sides.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        // A session may be named both as itself and as its JSON report.
        let sessions = sides.iter().flatten();
        refuse_twice(sessions.filter_map(|r| Some(((&r.session, &r.started), r.session.clone()?))))?;
        let style = Style { detail: detail(self.brief, self.verbose), ..Style::default() };
        // `a` is a required argument, so there is always a first side.
        let (a, others) = sides.split_first().unwrap_or((const { &Vec::new() }, &[]));
        if let [b] = others {
            let comparison = compare_sides(a, b, &options);
            show::put(&comparison, self.format, style, &outlets, Some(SAME_COMMAND))?;
            show::confirm_files(&outlets);
            return Ok(exit_code(&[comparison.answer], comparison.gate.as_ref()));
        }
        let all = compare_each(a, others, &options);
        let format = report::require_writer::<Comparisons>(self.format).map_err(Failure::Usage)?;
        show::put(&all, format, style, &outlets, Some(SAME_COMMAND))?;
        show::confirm_files(&outlets);
        let answers: Vec<ComparisonAnswer> = all.others.iter().map(|other| other.comparison.answer).collect();
        Ok(exit_code(&answers, all.gate.as_ref()))
    }

    /// Explains how to compare targets if all sides are directories or block devices; otherwise `None`.
    fn explain_targets(&self) -> Option<Failure> {
        let typed: Vec<String> = std::iter::once(&self.a).chain(&self.b).cloned().collect();
        let kind = typed.iter().map(|word| history::target_kind(word)).collect::<Option<Vec<_>>>()?;
        let first = typed.iter().zip(kind).next();
        first.map(|(word, kind)| {
            let all = if typed.len() == 2 { "both" } else { "all" };
            let line = name::line(&typed);
            Failure::Usage(format!(
                "{word} is {kind}, not a measurement; to measure {all}: fathom bench --compare {line}"
            ))
        })
    }

    /// Returns the margin, the gate and the accepted findings. Refuses flags that conflict.
    fn options(&self) -> Result<Options, Failure> {
        match self.b.as_slice() {
            [_] => self.files.check::<Comparison>()?,
            _ => self.files.check::<Comparisons>()?,
        }
        check_brief(self.brief, self.format, self.files.formats::<Comparison>(self.format))?;
        let (fail_if_slower, inconclusive) = (self.slower.slower(), self.inconclusive.inconclusive);
        if inconclusive.is_some() && fail_if_slower.is_none() {
            return Err(Failure::Usage(
                "--inconclusive sets the exit code of an undecided gate, and there is none; type --fail-if-slower too, or leave --inconclusive out"
                    .into(),
            ));
        }
        Ok(Options {
            margin: self.margin,
            accept_differences: self.accept.contains(&CheckId::E14),
            accept: self.accept.iter().copied().filter(|id| *id != CheckId::E14).collect(),
            fail_if_slower,
            inconclusive,
            version: env!("CARGO_PKG_VERSION").into(),
            ..Options::default()
        })
    }
}

/// Largest JSON report that is read. One of a thousand runs of eight jobs has a few MiB.
const MAX_REPORT_BYTES: u64 = 256 << 20;
/// Separates the first session of a range from the last one.
const RANGE: &str = "..";

/// The exit code of the gate and the answers. The first that applies: 1 for FAIL or INVALID, 2 for
/// INCOMPARABLE, 4 for INCONCLUSIVE (0 or 1 with `--inconclusive`), 0.
fn exit_code(answers: &[ComparisonAnswer], gate: Option<&SlowdownGate>) -> ExitCode {
    match gate.map(|gate| (gate.outcome, gate.counts_as)) {
        Some((GateOutcome::Failed | GateOutcome::Invalid, _)) => ExitCode::from(1),
        _ if answers.contains(&ComparisonAnswer::Invalid) => ExitCode::from(1),
        _ if answers.contains(&ComparisonAnswer::Incomparable) => ExitCode::from(2),
        Some((GateOutcome::Undecided, Some(CountsAs::Fail))) => ExitCode::from(1),
        Some((GateOutcome::Undecided, None)) => ExitCode::from(4),
        Some((GateOutcome::Undecided, Some(CountsAs::Pass)) | (GateOutcome::Passed, _)) | None => {
            ExitCode::SUCCESS
        }
    }
}

/// Finds the files of a side: `a,b,c`, each a name of a session or a path; or the range `a..b`.
fn find_files(side: &str) -> Result<Vec<PathBuf>, NoSession> {
    // A file name may contain a comma.
    if side.contains(',') && Path::new(side).is_file() {
        return Ok(vec![side.into()]);
    }
    let mut all = Vec::new();
    for word in side.split(',').map(str::trim) {
        if word.is_empty() {
            let why = Failure::Usage(format!(
                "'{side}': a session is missing before or after a comma; type an id, a part of one, last, last~1, or a file"
            ));
            return Err(why.into());
        }
        match find_ends(word) {
            Some((first, last)) => all.extend(list_range(word, &first, &last)?),
            None => all.push(history::find_session(word)?),
        }
    }
    Ok(all)
}

/// Finds the ends of a range; `None` if the word is not a range. Paths can contain two dots too, so both ends must exist.
fn find_ends(word: &str) -> Option<(PathBuf, PathBuf)> {
    let find_file = |word: &str| history::find_session(word).ok().filter(|p| p.is_file());
    let split = |at: usize| Some((find_file(&word[..at])?, find_file(&word[at + RANGE.len()..])?));
    word.match_indices(RANGE).find_map(|(at, _)| split(at))
}

/// Lists the sessions of a directory from `first` to `last`, both included. The names of sessions begin with the start time, so sorting by
/// name sorts by time.
fn list_range(word: &str, first: &Path, last: &Path) -> Result<Vec<PathBuf>, Failure> {
    let usage = |why: String| Failure::Usage(format!("{word}: {why}"));
    if first.parent() != last.parent() {
        return Err(usage("both ends of a range must be in the same directory".into()));
    }
    if first > last {
        return Err(usage("a range begins with its older session; type the ends the other way round".into()));
    }
    let dir = first.parent().unwrap_or(Path::new(""));
    let entries = std::fs::read_dir(dir).map_err(|e| usage(format!("{}: {e}", name::shown(dir))))?;
    let paths = entries.flatten().map(|e| e.path());
    let mut all: Vec<PathBuf> = paths
        .filter(|p| p.extension() == first.extension() && (first..=last).contains(&p.as_path()))
        .collect();
    all.sort();
    Ok(all)
}

/// Refuses a measurement that occurs twice. Each one comes with its name for the message.
fn refuse_twice<K: Ord>(measurements: impl Iterator<Item = (K, String)>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for (measurement, name) in measurements {
        if !seen.insert(measurement) {
            return Err(Failure::Usage(format!(
                "{name} is named twice; a comparison requires different measurements: type the id of another session, or measure again"
            )));
        }
    }
    Ok(())
}

/// Reads a JSON report, or judges a session. Accepts the findings of `accept` in either.
pub(super) fn read_report(file: &Path, accept: &[CheckId]) -> Result<Report, Failure> {
    if !is_json(file)? {
        let judging = Judging {
            accept: accept.to_vec(),
            session: Some(name::text(file)),
            version: env!("CARGO_PKG_VERSION").into(),
            ..Judging::default()
        };
        return Ok(analysis::judge(&session::read(file)?, &judging));
    }
    let fail = |why: String| Failure::Usage(format!("{}: {why}", name::shown(file)));
    let mut bytes = Vec::new();
    let opened = files::open(file).map_err(|e| fail(e.to_string()))?;
    opened.take(MAX_REPORT_BYTES + 1).read_to_end(&mut bytes).map_err(|e| fail(e.to_string()))?;
    if bytes.len() as u64 > MAX_REPORT_BYTES {
        return Err(fail(format!("larger than {} MiB, the limit for a report", MAX_REPORT_BYTES >> 20)));
    }
    let not_a_report = |why: String| {
        fail(format!(
            "begins like JSON, but is not the JSON report of a measurement ({why}); `fathom show ID -o report.json` writes one"
        ))
    };
    let text = std::str::from_utf8(&bytes).map_err(|e| not_a_report(e.to_string()))?;
    if is_fio_result(&bytes) {
        return Err(fail(format!("not a report of fathom: {FIO_RESULT}")));
    }
    let mut report = Report::from_json(text).map_err(not_a_report)?;
    if report.fathom.format > FORMAT {
        return Err(fail(format!(
            "a report of format {}, and this fathom reads only up to {FORMAT}; use a newer fathom",
            report.fathom.format
        )));
    }
    accept_findings(&mut report, accept);
    report.json_file = Some(name::text(file));
    Ok(report)
}

/// Whether a file begins like JSON. A session file begins with its format name.
pub(super) fn is_json(file: &Path) -> Result<bool, Failure> {
    let fail = |e: std::io::Error| Failure::Usage(format!("{}: {e}", name::shown(file)));
    let mut start = [0; 64];
    let read = files::open(file).and_then(|mut f| f.read(&mut start)).map_err(fail)?;
    Ok(start[..read].trim_ascii_start().starts_with(b"{"))
}

#[test]
fn sides_are_lists_or_ranges() {
    let dir = std::env::temp_dir().join(format!("fathom-compare-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap_or_default();
    let path = |name: &str| dir.join(name);
    for name in ["1.fathom", "2.fathom", "3.fathom", "4.fathom", "3.txt"] {
        std::fs::write(path(name), "").unwrap_or_default();
    }
    let names = |word: &str| -> Result<Vec<String>, String> {
        let found = find_files(&word.replace('@', &format!("{}/", dir.display())));
        let name = |p: &PathBuf| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.map(|f| f.iter().map(name).collect()).map_err(|f| Failure::from(f).message().to_owned())
    };
    assert_eq!(names("@1.fathom,@3.txt"), Ok(vec!["1.fathom".into(), "3.txt".into()]));
    let three = ["2.fathom", "3.fathom", "4.fathom"].map(str::to_owned).to_vec();
    assert_eq!(names("@2.fathom..@4.fathom"), Ok(three));
    assert!(names("@4.fathom..@2.fathom").is_err_and(|why| why.contains("other way round")));
    assert!(names("@1.fathom,").is_err_and(|why| why.contains("missing")));
    std::fs::remove_dir_all(&dir).unwrap_or_default();
}
