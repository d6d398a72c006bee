//! The parts that several formats share: the findings that matter most with a count of the other answers, the
//! headline's value, and command lines.

use crate::view::lists::{grouped, join_names};
use crate::view::results::has_rows_of_jobs;
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::name;
use model::report::{Headline, Measured, Report, Verdict};
use model::units::show_rate;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns a command of fathom to type.
pub(crate) fn fathom_command<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    name::line(&std::iter::once("fathom").chain(words).map(str::to_owned).collect::<Vec<_>>())
}

/// Joins the words of a command into one line, with the program's base name and shell quotes.
pub(crate) fn command_line(command: &[String]) -> String {
    let program = command.first().map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
    name::line(&program.into_iter().chain(command.iter().skip(1).cloned()).collect::<Vec<_>>())
}

/// Returns how to see the full report: the command that shows it, or the flag if the session was not kept.
pub(crate) fn full_report_hint(report: &Report) -> String {
    name_to_type(report)
        .map_or_else(|| "--verbose shows all".into(), |name| fathom_command(["show", &name, "--verbose"]))
}

/// Returns the name to type after `fathom show`. If the report was read from a JSON file, returns the file, because the session may be on
/// another machine; otherwise the id of the session. `None` if the session was not kept.
pub(crate) fn name_to_type(report: &Report) -> Option<String> {
    report.json_file.clone().or_else(|| session_id(report))
}

/// Returns the id of the session; `None` if it was not kept.
pub(crate) fn session_id(report: &Report) -> Option<String> {
    let session = report.session.as_deref()?;
    Some(Path::new(session).file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// Formats the value of the headline: `81,172 IOPS`, or `no number`.
pub(crate) fn headline_value(headline: &Headline) -> String {
    headline.value.map_or_else(|| "no number".into(), |v| format!("{} {}", show_rate(v), headline.unit))
}

/// Maximum number of findings in a short report.
pub(crate) const MAX_SHOWN: usize = 3;

/// Returns the findings that affect numbers, each once for all its results, worst first and accepted ones last.
fn effective_findings(checks: Vec<Checked>) -> Vec<Checked> {
    merge_repeated(checks.into_iter().filter(affects_number))
}

/// Merges checks with the same id and severity into one for all their results, worst first and accepted ones last.
pub(crate) fn merge_repeated(checks: impl Iterator<Item = Checked>) -> Vec<Checked> {
    let mut out: Vec<Checked> = Vec::new();
    for checked in checks {
        match out.iter_mut().find(|known| (known.id, known.severity) == (checked.id, checked.severity)) {
            Some(known) => {
                let others = checked.about.into_iter().filter(|name| !known.about.contains(name));
                known.about.extend(others.collect::<Vec<_>>());
            }
            None => out.push(checked),
        }
    }
    out.sort_by_key(|f| (f.accepted, f.severity));
    out
}

/// Returns the reason of the verdict. `None` if the verdict is VALID, or if the answer or a finding
/// in `shown` already has the reason.
pub(crate) fn verdict_reason<'r>(report: &'r Report, shown: &[Checked]) -> Option<&'r str> {
    // The answer of a sweep names the workload before the reason.
    let answered =
        report.answer.as_ref().is_some_and(|answer| answer.sentence.ends_with(&report.verdict_reason));
    let decides = |f: &Checked| Some(f.id) == report.verdict_by && f.outcome != Outcome::Holds;
    let answered_or_shown = answered || shown.iter().any(decides);
    (report.verdict != Verdict::Valid && !answered_or_shown).then_some(report.verdict_reason.as_str())
}

/// Returns the finding that decides the verdict on the headline's result; `None` if the result is
/// valid or no finding is about it.
fn headline_finding(report: &Report) -> Option<Checked> {
    let result = report.headline_result().filter(|r| r.verdict != Verdict::Valid)?;
    let about_result =
        shown_checks(report).into_iter().filter(|f| affects_number(f) && f.about.contains(&result.name));
    about_result.min_by_key(|f| (f.accepted, f.severity))
}

#[test]
fn a_reason_that_ends_the_answer_is_not_repeated() -> serde_json::Result<()> {
    use model::report::{AnswerWord, ReportAnswer};
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    (report.verdict, report.verdict_by) = (Verdict::Invalid, None);
    report.verdict_reason = "no cell could be measured.".into();
    for (sentence, shown) in [
        ("read: no cell could be measured.", None),
        ("no cell could be measured.", None),
        ("read: 8 x 64K.", Some("no cell could be measured.")),
    ] {
        report.answer = Some(ReportAnswer { word: AnswerWord::CannotTell, sentence: sentence.into() });
        assert_eq!(verdict_reason(&report, &[]), shown, "{sentence}");
    }
    Ok(())
}

/// Maximum number of results without a number that are named for each cause.
const MAX_NAMED: usize = 2;

/// Names results without a number with the finding that withholds it, grouped by finding:
/// `No number: RND4K Q1T1 read, RND4K Q1T1 write and 4 more (D01 FOREIGN_IO).` `None` if every result has a number.
pub(crate) fn describe_missing_numbers(report: &Report) -> Option<String> {
    let without_number = report.results.iter().filter(|r| r.void || r.total.is_none());
    let causes = grouped(without_number.map(|r| (withholding_cause(report, r), r.name.clone())));
    let describe = |(cause, names): &(String, Vec<String>)| {
        let named = &names[..names.len().min(MAX_NAMED)];
        let more = match names.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more} ({cause})", join_names(named))
    };
    let groups: Vec<String> = causes.iter().map(describe).collect();
    (!groups.is_empty()).then(|| format!("No number: {}.", join_names(&groups)))
}

/// Returns the finding that withholds the number of a result, `A04 HOLES_READ`, or that the result has no complete run.
fn withholding_cause(report: &Report, result: &Measured) -> String {
    let withholds = |f: &&Checked| {
        let acts = f.outcome == Outcome::Finding && f.severity == Some(Severity::Invalidates) && !f.accepted;
        acts && f.about.contains(&result.name)
    };
    let finding = report.checks.iter().find(withholds).map(|f| format!("{} {}", f.id, f.name));
    finding.unwrap_or_else(|| "no complete run".into())
}

/// Returns the line above the plots of a result without a number, with the finding that withholds it. `None` if the
/// result has a number.
pub(crate) fn withheld_caveat(report: &Report, result: &Measured) -> Option<String> {
    let is_withheld = result.void || result.verdict == Verdict::Invalid || result.total.is_none();
    is_withheld.then(|| {
        let cause = withholding_cause(report, result);
        format!("The number of this result is withheld: {cause}.")
    })
}

/// Returns the findings to print below the headline. The last one decides the verdict on the
/// headline. With several jobs, the worst finding of the report precedes it, if the worst one
/// invalidates a number and the deciding one does not. Empty if the headline is valid or no finding
/// decides.
pub(crate) fn head_findings(report: &Report) -> Vec<Checked> {
    let Some(deciding) = headline_finding(report) else { return Vec::new() };
    let invalidates = |f: &Checked| f.severity == Some(Severity::Invalidates) && !f.accepted;
    // Other reports have room for all findings after the table, the worst first.
    let worst = worst_findings(report).into_iter().next().filter(|_| has_rows_of_jobs(report));
    let worse = worst.filter(|worst| invalidates(worst) && !invalidates(&deciding));
    worse.into_iter().chain([deciding]).collect()
}

/// Describes the limiter of the headline with its evidence. If a finding in `shown` has the same evidence, only names
/// its check.
pub(crate) fn describe_limiter(report: &Report, shown: &[Checked]) -> String {
    let (name, sentence) = (report.limiter.shown_name(), &report.limiter.sentence);
    let has_evidence = |f: &&Checked| f.outcome == Outcome::Finding && f.sentence == *sentence;
    match shown.iter().find(has_evidence) {
        Some(f) => format!("Limited by: {name} ({} below).", f.id),
        None => format!("Limited by: {name}. {sentence}"),
    }
}

/// Returns the worst findings of a report.
pub(crate) fn worst_findings(report: &Report) -> Vec<Checked> {
    worst_of(shown_checks(report))
}

/// Returns the [`MAX_SHOWN`] findings that affect numbers most.
pub(crate) fn worst_of(checks: Vec<Checked>) -> Vec<Checked> {
    let mut all = effective_findings(checks);
    all.truncate(MAX_SHOWN);
    all
}

/// Counts the answers of the checks by kind, without the first `shown` findings:
/// `1 more finding, 12 notes, 3 not checked, 66 passed`. `None` if no answer remains.
pub(crate) fn rest_summary(checks: &[Checked], shown: usize) -> Option<String> {
    let ids = |is_counted: &dyn Fn(&&Checked) -> bool| -> BTreeSet<CheckId> {
        checks.iter().filter(is_counted).map(|f| f.id).collect()
    };
    let notes = ids(&|f| f.outcome == Outcome::Finding && !affects_number(f));
    let unchecked = ids(&|f| f.outcome == Outcome::NotChecked);
    let not_passed = ids(&|f| f.outcome != Outcome::Holds);
    let passed = ids(&|f| f.outcome == Outcome::Holds && !not_passed.contains(&f.id));
    let more = effective_findings(checks.to_vec()).len().saturating_sub(shown);
    let parts = [
        (more, if more == 1 { "more finding" } else { "more findings" }),
        (notes.len(), if notes.len() == 1 { "note" } else { "notes" }),
        (unchecked.len(), "not checked"),
        (passed.len(), "passed"),
    ];
    let parts =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let counts = parts.collect::<Vec<_>>().join(", ");
    (!counts.is_empty()).then_some(counts)
}

/// Whether a finding affects a number: it is more than a note.
pub(crate) fn affects_number(finding: &Checked) -> bool {
    finding.outcome == Outcome::Finding && finding.severity.is_some_and(|s| s < Severity::Note)
}

/// Returns the answer of a check: the effect of its finding, `not checked` or `passed`.
pub(crate) fn answer_word(checked: &Checked) -> &'static str {
    match checked.outcome {
        Outcome::Finding => checked.severity.unwrap_or(Severity::Note).effect(),
        Outcome::NotChecked => "not checked",
        Outcome::Holds => "passed",
    }
}

/// Returns the checks to show with their answers: for a search only those about its best and its cheapest cells.
pub(crate) fn shown_checks(report: &Report) -> Vec<Checked> {
    let Some(sweep) = report.study.sweep().filter(|s| !s.is_in_order()) else {
        return report.checks.clone();
    };
    let best = sweep.winner.values().chain(sweep.cheapest.values());
    let names: Vec<&str> = best.filter_map(|c| Some(report.results.get(c.result?)?.name.as_str())).collect();
    let mut out = Vec::new();
    for checked in &report.checks {
        let about: Vec<String> =
            checked.about.iter().filter(|a| names.contains(&a.as_str())).cloned().collect();
        if !about.is_empty() {
            out.push(Checked { about, ..checked.clone() });
        }
    }
    out
}

/// Names the results that an answer is about: ` [RND4K Q1T1 read]`. Empty if the answer covers all results.
pub(crate) fn results_suffix(checked: &Checked, all: usize) -> String {
    match checked.about.len() {
        0 => String::new(),
        n if n == all && all > 1 => String::new(),
        n if n > 3 => format!(" [{} and {} more]", join_names(&checked.about[..2]), n - 2),
        _ if all == 1 => String::new(),
        _ => format!(" [{}]", join_names(&checked.about)),
    }
}

#[test]
fn the_command_uses_the_name_of_the_program() {
    let command = ["/usr/bin/fathom", "run", "it's a disk"].map(str::to_owned);
    assert_eq!(command_line(&command), r"fathom run 'it'\''s a disk'");
    assert_eq!(command_line(&[]), "");
}

#[test]
fn commands_about_a_report_from_a_file_name_the_file() -> Result<(), serde_json::Error> {
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    let show = |report: &Report, name| {
        let style = crate::Style { detail: crate::Detail::All, ..crate::Style::default() };
        let bytes = crate::find_format::<Report>(name).map(|format| format.bytes(report, style));
        String::from_utf8_lossy(&bytes.and_then(Result::ok).unwrap_or_default()).into_owned()
    };
    assert_eq!(full_report_hint(&report), "fathom show 20260314-150926-4242 --verbose");
    assert!(show(&report, "text").contains("checks this session again"));
    assert!(show(&report, "html").contains("Check this session again"));
    report.json_file = Some("my report.json".into());
    assert_eq!(full_report_hint(&report), "fathom show 'my report.json' --verbose");
    assert!(!show(&report, "text").contains("fathom show 2026"));
    let page = show(&report, "html");
    assert!(!page.contains("fathom show 2026") && page.contains("Show this report again"), "{page}");
    report.session = None;
    assert_eq!(full_report_hint(&report), "fathom show 'my report.json' --verbose");
    report.json_file = None;
    assert_eq!(full_report_hint(&report), "--verbose shows all");
    Ok(())
}

#[test]
fn results_without_a_number_are_grouped_by_cause_in_every_brief_format() -> Result<(), serde_json::Error> {
    use model::study::Studied;
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/invalid.json"))?;
    let one = "No number: SEQ1M Q1T1 read (A04 HOLES_READ).";
    assert_eq!(describe_missing_numbers(&report).as_deref(), Some(one));
    let first = report.results[0].clone();
    report.results = vec![first; 97];
    for (at, result) in report.results.iter_mut().enumerate() {
        result.name = format!("cell {at}");
    }
    // The finding is about all cells but the last one.
    report.checks[0].about = (0..96).map(|at| format!("cell {at}")).collect();
    (report.results[96].void, report.results[96].total) = (false, None);
    let all = "No number: cell 0, cell 1 and 94 more (A04 HOLES_READ); cell 96 (no complete run).";
    assert_eq!(describe_missing_numbers(&report).as_deref(), Some(all));
    // Markdown has a block for jobs, and a table for other reports.
    let sweep = serde_json::from_str(include_str!("../../tests/golden/pieces/sweep.json"))?;
    for study in [Studied::Jobs, Studied::Sweep(Box::new(sweep))] {
        report.study = study;
        for name in ["text", "markdown"] {
            let style = crate::Style { detail: crate::Detail::Brief, ..crate::Style::default() };
            let format = crate::find_format::<Report>(name).map(|format| format.bytes(&report, style));
            let bytes = format.and_then(Result::ok).unwrap_or_default();
            let shown = String::from_utf8_lossy(&bytes).replace('\\', "");
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(all), "{name}: {shown}");
        }
    }
    report.results.iter_mut().for_each(|result| result.void = false);
    report.results.truncate(96);
    assert_eq!(describe_missing_numbers(&report), None);
    Ok(())
}
