//! A report as text: the page that an engineer reads first and pastes.
//!
//! It begins with the answer, if any, and the verdict with the headline. The counts, the table,
//! findings, and the target with the session follow. A report of jobs takes at most
//! [`SCREEN_LINES`] lines if possible. It prints at most three findings, the worst first, as far as
//! there is room. `--verbose` prints everything, each check once for all its results. The
//! comparison with an earlier session that was measured again has its own table.

use super::{commands, results, studies, sweep};
use crate::page::{MAX_PROSE_WIDTH, Page, display_width};
use crate::view::comparison::{pair_legend, pair_table};
use crate::view::findings;
use crate::view::findings::{
    full_report_hint, rest_summary, results_suffix, session_id, shown_checks, worst_findings,
};
use crate::view::lists::{count_of, grouped, join_names, plural};
use crate::view::report::{
    chains, describe_commits, describe_ending, describe_headline, describe_origin, main_table, omits_verdict,
};
use crate::view::results::{has_rows_of_jobs, is_of_jobs};
use crate::{Detail, Style};
use model::comparison::{Comparison, ComparisonAnswer};
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::machine::Place;
use model::report::{CountsAs, Quick, Report, Rerun, StoredFile, Verdict};
use model::study::Studied;
use model::sweep::Sweep;
use model::units::show_bytes;
use std::io::{self, Write};

/// Lines of a report on a small terminal, which has 24: the prompt after the report takes one.
const SCREEN_LINES: usize = 23;
/// Columns of a small terminal.
const SCREEN_COLUMNS: usize = 80;
/// Name of the limiter if it cannot be determined, for example because the run was short.
const NOT_JUDGED: &str = "not judged";

pub(super) fn write_report(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let is_verbose = style.detail == Detail::All;
    if style.detail == Detail::Brief {
        show_quick(&mut out, "", report);
        // Only the answer to the conditions of `--fail-if` is printed above the table.
        if !report.gates.is_empty() {
            show_answer(&mut out, report);
        }
        out.table(&main_table(report, false));
        if let Some(missing) = findings::describe_missing_numbers(report) {
            out.paragraph(&missing);
        }
        if let Some(against) = &report.against {
            show_rerun_brief(&mut out, against);
        }
        return out.write(to);
    }
    if let Studied::Commands(results) = &report.study {
        show_answer(&mut out, report);
        commands::show(&mut out, report, results, is_verbose);
        return out.write(to);
    }
    if is_verbose {
        return write_verbose(out, report, style, to);
    }
    let head_findings = findings::head_findings(report);
    let shown: Vec<Checked> = head_findings.iter().cloned().chain(findings::worst_findings(report)).collect();
    show_head(&mut out, report, &shown, &head_findings, false);
    show_study(&mut out, report, &shown, false);
    if report.fleet.is_some() || report.against.is_some() || style.time_series || style.ledger {
        out.gap();
    }
    results::show_hosts(&mut out, report, false);
    if let Some(against) = &report.against {
        show_rerun(&mut out, against);
    }
    show_details(&mut out, report, style);
    let max_lines = if is_of_jobs(report) { SCREEN_LINES } else { usize::MAX };
    let (found, foot) = draw_findings_and_foot(&out, report, &head_findings, max_lines);
    out.append(&found);
    if out.lines() + foot.lines() < max_lines {
        out.gap();
    }
    out.append(&foot);
    out.write(to)
}

/// Draws the worst findings, and the foot with the notes, so that the whole page has at most `max_lines` lines. `out` has the lines
/// above them. If there is too little room for a finding, shortens each note to one line, then leaves out the last notes. A page
/// narrower than [`SCREEN_COLUMNS`] has a finding even if it becomes longer than `max_lines`.
fn draw_findings_and_foot(
    out: &Page,
    report: &Report,
    head_findings: &[Checked],
    max_lines: usize,
) -> (Page, Page) {
    let notes = report.notes.len();
    // Never leave out a single note, because the line that counts it would be as long.
    let fewer = (0..notes.saturating_sub(1)).rev().map(|notes| (notes, 1));
    let mut drawn = (out.empty(), out.empty());
    for (shown, lines_each) in [(notes, usize::MAX), (notes, 1)].into_iter().chain(fewer) {
        let mut foot = out.empty();
        show_short_foot(&mut foot, report, shown, lines_each);
        let lines = max_lines.saturating_sub(out.lines() + foot.lines());
        let is_last = lines_each == 1 && (shown == 0 || notes == 1);
        let (found, fits) =
            draw_worst_findings(out, report, head_findings, lines, !is_last || out.width() < SCREEN_COLUMNS);
        let is_short = out.lines() + foot.lines() + found.lines() <= max_lines;
        drawn = (found, foot);
        if fits && is_short {
            break;
        }
    }
    drawn
}

/// Writes the report of `--verbose`.
fn write_verbose(mut out: Page, report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    // If a comparison of interfaces has hundreds of rows, findings repeat. Print each once; the
    // JSON has all of them.
    let distinct =
        matches!(report.study, Studied::Interfaces(_)).then(|| studies::with_distinct_findings(report));
    let shown = findings::shown_checks(distinct.as_ref().unwrap_or(report));
    show_head(&mut out, report, &shown, &findings::head_findings(report), true);
    show_study(&mut out, report, &shown, true);
    results::show_hosts(&mut out, report, true);
    if let Some(against) = &report.against {
        show_rerun(&mut out, against);
    }
    show_details(&mut out, report, style);
    if distinct.is_none() {
        show_deductions(&mut out, report);
    }
    let shown = distinct.as_ref().unwrap_or(report);
    show_all_findings(&mut out, shown);
    show_full_foot(&mut out, shown);
    out.write(to)
}

/// Prints the time series and the ledger, if the style includes them.
fn show_details(out: &mut Page, report: &Report, style: Style) {
    if style.time_series {
        report.results.iter().for_each(|result| results::show_seconds(out, result));
    }
    if style.ledger {
        results::show_ledger(out, &report.results);
    }
}

fn show_study(out: &mut Page, report: &Report, shown: &[Checked], is_verbose: bool) {
    match &report.study {
        Studied::Layers(layers) => studies::show_layers(out, layers, &report.results),
        Studied::Limit(curve) => studies::show_load_curve(out, curve, report, is_verbose),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => sweep::show_pts_rounds(out, report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => sweep::show_iops_preset(out, report, sweep),
        Studied::Sweep(sweep) => sweep::show_sweep(out, sweep, report, is_verbose),
        Studied::Interfaces(api) => studies::show_interfaces(out, api, report, is_verbose),
        Studied::Targets(targets) => studies::show_targets(out, targets, &report.results, is_verbose),
        Studied::Hosts(scaling) => studies::show_host_counts(out, scaling, &report.results, is_verbose),
        Studied::Commands(results) => commands::show(out, report, results, is_verbose),
        Studied::Jobs => results::show_results(out, &report.results, shown, is_verbose),
        Studied::Profile(results) => {
            results::show_results(out, &report.results, shown, is_verbose);
            out.gap();
            results::show_tool_layout(out, results);
        }
    }
}

/// Prints the answer to the command's question and its reason.
fn show_answer(out: &mut Page, report: &Report) {
    if let Some(answer) = &report.answer {
        let word = out.paint(answer.word.word(), "1");
        let remark = report.counts_as.map_or("", CountsAs::remark);
        out.prose(&format!("{word}{remark}  "), "  ", &answer.sentence);
    }
}

/// Prints the first lines: the answer, the verdict with the headline, the counts, why the verdict
/// is not VALID, the limiter, and what was special about the session.
fn show_head(
    out: &mut Page,
    report: &Report,
    shown: &[Checked],
    head_findings: &[Checked],
    is_verbose: bool,
) {
    let code = match report.verdict {
        Verdict::Valid => "1;32",
        Verdict::Suspect => "1;33",
        Verdict::Invalid => "1;31",
    };
    let verdict = out.paint(report.verdict.word(), code);
    match crate::view::sweep::ranked_sweep(report) {
        Some(sweep) => sweep::show_ranking(out, sweep, report),
        None => show_answer(out, report),
    }
    let headline = describe_headline(report, |number| out.paint(number, "1"));
    let first = if omits_verdict(report) { "  ".to_owned() } else { format!("{verdict}  ") };
    out.prose(&first, "    ", &headline);
    if let Some(commits) = describe_commits(report) {
        out.prose("  ", "  ", &commits);
    }
    if let Some(sweep) = report.study.sweep().filter(|sweep| sweep.is_in_order()) {
        sweep::show_best_once(out, sweep);
    }
    if let Some(counted) = &report.counts.sentence {
        out.note(counted);
    }
    let has_rows = has_rows_of_jobs(report);
    let reason = head_findings.last();
    match (reason, head_findings) {
        (Some(finding), [_]) => {
            let above = report.answer.as_ref().map_or("", |answer| answer.sentence.as_str());
            let mut finding = finding.clone();
            if above.contains(&finding.sentence) {
                finding.sentence = "see above.".into();
            }
            show_deciding_finding(out, &finding, report.results.len(), has_rows || is_verbose);
        }
        (Some(_), several) => several.iter().for_each(|f| show_one_line(out, f, report)),
        (None, _) => {
            if let Some(why) = findings::verdict_reason(report, shown) {
                out.prose("  ", "  ", why);
            }
        }
    }
    let limiter = &report.limiter;
    // The rows have the limiter as a word. Only of a throttle the reader needs to know more: which limit it is.
    let is_in_rows = has_rows && !is_verbose && limiter.name != "throttle";
    match reason.filter(|f| f.sentence == limiter.sentence) {
        _ if limiter.name == NOT_JUDGED || is_in_rows => {}
        Some(f) => out.prose("  ", "  ", &format!("Limited by: {} ({}).", limiter.shown_name(), f.id)),
        // A short report may have no room for the finding that has the evidence.
        None => {
            out.prose("  ", "  ", &findings::describe_limiter(report, if is_verbose { shown } else { &[] }));
        }
    }
    show_quick(out, "  ", report);
    // The full report prints every sentence: what was busy, why fathom stopped repeating runs, and what to do.
    for sentence in report.busy_machine.iter().take(if is_verbose { usize::MAX } else { 1 }) {
        out.prose_within(if is_verbose { usize::MAX } else { 2 }, "  ", "  ", sentence);
    }
    if let Some(text) = describe_ending(report) {
        out.prose("  ", "  ", &text);
    }
    out.line("");
}

/// Prints what a quick run leaves out.
fn show_quick(out: &mut Page, indent: &str, report: &Report) {
    if let Some(quick) = &report.quick {
        out.prose(indent, "  ", &format!("{} {}", Quick::WORD, quick.sentence()));
    }
}

fn show_deductions(out: &mut Page, report: &Report) {
    if report.deductions.is_empty() {
        return;
    }
    out.line("Derived from these results");
    for d in &report.deductions {
        out.note(&format!("{}: {}", d.name, d.sentence));
    }
    out.line("");
}

fn show_full_foot(out: &mut Page, report: &Report) {
    let machine = &report.machine;
    let unknown = || "unknown".to_owned();
    let memory = machine.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b));
    let cpu = machine.cpu.clone().unwrap_or_else(|_| unknown());
    out.field(
        "Host",
        &format!(
            "{}, {cpu}, {}, {memory}, {}",
            machine.host,
            count_of(machine.cpus as usize, "CPU"),
            machine.kernel
        ),
    );
    for chain in chains(&machine.places) {
        out.field("Target", &chain);
    }
    show_remarks(out, report, report.notes.len(), usize::MAX);
    let when = format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title);
    out.field("When", &when);
    match &report.session {
        Some(session) => out.field("Session", session),
        None => out.line("Session not kept"),
    }
    // The session of a report from a file may be on another machine.
    if report.json_file.is_none()
        && let Some(id) = session_id(report)
    {
        out.line(&format!("        (fathom show {id} checks this session again and prints it)"));
    }
}

/// Prints how files are stored, the first `notes` notes in at most `lines_each` lines each, the number of the other notes, and the user's
/// tags and comments.
fn show_remarks(out: &mut Page, report: &Report, notes: usize, lines_each: usize) {
    if let Some(stored) = StoredFile::describe(&report.files) {
        out.field("File", &stored);
    }
    for note in report.notes.iter().take(notes) {
        out.prose_within(lines_each, "Note    ", "        ", note);
    }
    let others = report.notes.len().saturating_sub(notes);
    if others > 0 {
        let what = if notes > 0 { "more".to_owned() } else { plural(others, "note") };
        out.field("Note", &format!("--verbose prints {others} {what}"));
    }
    if !report.annotations.tags.is_empty() {
        out.field("Tags", &report.annotations.tags.join(" "));
    }
    for note in &report.annotations.notes {
        out.field("Comment", &format!("{}: {}", note.at, note.text));
    }
}

/// Prints the remarks and one line with the session and its targets. For a report from a file, also prints the date and the host.
fn show_short_foot(out: &mut Page, report: &Report, notes: usize, lines_each: usize) {
    show_remarks(out, report, notes, lines_each);
    if let Some(origin) = describe_origin(report) {
        out.field("When", &origin);
    }
    let mut targets: Vec<String> = report.machine.places.iter().map(Place::short_chain).collect();
    targets.dedup();
    let session = session_id(report).unwrap_or_else(|| "not kept".into());
    let on = if targets.is_empty() { String::new() } else { format!(", target {}", targets.join("; ")) };
    out.field("Session", &format!("{session}{on}"));
}

pub(super) fn show_rerun(out: &mut Page, against: &Rerun) {
    let comparison = &against.workload_comparison;
    out.paragraph(&format!(
        "Against {} (A), which was measured again in alternation with this session (B)",
        against.session
    ));
    show_rerun_brief(out, against);
    if !comparison.pairs.is_empty() {
        let columns = pair_table(&comparison.pairs, false);
        out.legend(&pair_legend(&comparison.pairs, &columns.shown_headings(out.width())));
    }
    out.note(&describe_machine_changes(&against.machine_comparison));
    out.line("");
}

/// Prints only the answer of the comparison and its table.
pub(super) fn show_rerun_brief(out: &mut Page, against: &Rerun) {
    let comparison = &against.workload_comparison;
    out.prose(&format!("  {}  ", comparison.answer.word()), "    ", &comparison.sentence);
    if !comparison.pairs.is_empty() {
        out.table(&pair_table(&comparison.pairs, false));
    }
}

/// Describes whether the machine changed since the earlier session, by the value of the headline
/// then and now.
fn describe_machine_changes(since: &Comparison) -> String {
    let Some(pair) = since.headline() else { return format!("A originally: {}", since.sentence) };
    let Some(metric) = pair.metrics.first() else { return format!("A originally: {}", since.sentence) };
    let numbers = format!("A originally: {}, now: {}", metric.show(metric.a), metric.show(metric.b));
    let word = match metric.answer {
        ComparisonAnswer::Same => "the result has not changed".to_owned(),
        ComparisonAnswer::NoDifferenceSeen => {
            let bound = metric.bound().unwrap_or_default();
            format!("no change of the result was detected: it is now {bound}")
        }
        ComparisonAnswer::CannotTell | ComparisonAnswer::Incomparable | ComparisonAnswer::Invalid => {
            format!("it is unknown whether the result has changed: {}", metric.why)
        }
        other => format!("{}: the result has changed", other.word()),
    };
    let different: Vec<String> =
        pair.differences.iter().map(|d| format!("{} {} -> {}", d.aspect, d.a, d.b)).collect();
    let different = if different.is_empty() { String::new() } else { format!(" ({})", different.join("; ")) };
    format!("{numbers}; {word}{different}.")
}

/// If a report has more results than this, findings that differ only in their numbers are printed once. `--profile mix`
/// has this many results.
const MANY_RESULTS: usize = 12;

pub(super) fn show_all_findings(out: &mut Page, report: &Report) {
    if report.checks.is_empty() {
        return;
    }
    let shown = shown_checks(report);
    let result_count = report.results.len();
    // With many results or loads, findings differ only in their numbers.
    let brief = has_many_results(report) || result_count > MANY_RESULTS;
    show_findings(out, &shown, result_count, brief);
    show_not_checked(out, &shown, result_count, brief);
    show_passed(out, &shown);
    if shown.len() < report.checks.len() {
        out.line("The JSON has the findings about all other settings.");
    }
    out.line("");
}

pub(super) fn with_outcome(shown: &[Checked], outcome: Outcome) -> impl Iterator<Item = &Checked> {
    shown.iter().filter(move |f| f.outcome == outcome)
}

fn show_findings(out: &mut Page, shown: &[Checked], result_count: usize, brief: bool) {
    let mut findings = with_outcome(shown, Outcome::Finding).peekable();
    if findings.peek().is_some() {
        out.line("Findings");
    }
    while let Some(f) = findings.next() {
        let severity = f.severity.unwrap_or(Severity::Note);
        show_finding(out, f, result_count);
        // Notes about other results also differ only in their numbers. The JSON has all of them.
        let mut alike: Vec<String> = Vec::new();
        while (severity == Severity::Note || brief)
            && let Some(next) = findings.next_if(|n| n.id == f.id && n.severity == f.severity)
        {
            alike.extend(next.about.iter().cloned());
        }
        if !alike.is_empty() {
            let more = if brief { alike.len().saturating_sub(MANY_RESULTS) } else { 0 };
            let named = join_names(&alike[..alike.len() - more]);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.prose("      also ", "           ", &(named + &more));
        }
        show_fix(out, &f.fix);
    }
}

/// Prints a finding with its check and its results.
fn show_finding(out: &mut Page, finding: &Checked, result_count: usize) {
    let severity = finding.severity.unwrap_or(Severity::Note);
    let accepted = if finding.accepted { ", accepted" } else { "" };
    let mark = out.paint(&format!("{} {}", finding.id, finding.name), severity_colour(severity));
    let head = match severity {
        Severity::Note => format!("{mark} (note{accepted}){}", results_suffix(finding, result_count)),
        _ => format!("{mark} {} {}{accepted}", severity.effect(), describe_subject(finding, result_count)),
    };
    out.prose("  ", "      ", &format!("{head}: {}", finding.sentence));
}

fn severity_colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalidates => "1;31",
        Severity::Relabels | Severity::Biases => "1;33",
        Severity::Note => "1",
    }
}

/// Names the results that a finding is about: `SEQ1M Q8T1 read`, `SEQ1M Q8T1 read and 4 more`, `all results`.
fn describe_subject(finding: &Checked, result_count: usize) -> String {
    match finding.about.as_slice() {
        _ if result_count <= 1 => "the result".into(),
        about if about.len() == result_count => "all results".into(),
        [] => "the results".into(),
        [one] => one.clone(),
        // A name with a comma would look like two names.
        [one, two] if ![one, two].iter().any(|name| name.contains(',')) => format!("{one} and {two}"),
        [one, others @ ..] => format!("{one} and {} more", others.len()),
    }
}

pub(super) fn show_fix(out: &mut Page, fix: &str) {
    if !fix.is_empty() {
        out.prose("      -> ", "         ", fix);
    }
}

/// How much of a finding is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FindingDetail {
    /// The sentence and the advice.
    Whole,
    /// Only the sentence.
    Sentence,
    /// The first sentence, in at most two lines.
    TwoLines,
}

/// Prints the finding that decides the verdict of the headline: in two lines if `is_short`, otherwise with its fix.
pub(super) fn show_deciding_finding(out: &mut Page, finding: &Checked, result_count: usize, is_short: bool) {
    let severity = finding.severity.unwrap_or(Severity::Note);
    let others = match finding.about.len().saturating_sub(1) {
        0 => String::new(),
        others if others + 1 == result_count => " and the other results".into(),
        1 => " and 1 other result".into(),
        others => format!(" and {others} other results"),
    };
    let accepted = if finding.accepted { " (accepted)" } else { "" };
    let mark = out.paint(&format!("{} {}", finding.id, finding.name), severity_colour(severity));
    let effect = severity.effect();
    let text = format!("{mark} {effect} it{others}{accepted}: {}", finding.sentence);
    if is_short {
        out.prose_within(2, "  ", "    ", &text);
    } else {
        out.note(&text);
        if !finding.fix.is_empty() {
            out.prose("    -> ", "       ", &finding.fix);
        }
    }
}

/// Prints as much of a finding as fits on one line.
fn show_one_line(out: &mut Page, finding: &Checked, report: &Report) {
    let severity = finding.severity.unwrap_or(Severity::Note);
    let mark = out.paint(&format!("{} {}", finding.id, finding.name), severity_colour(severity));
    let accepted = if finding.accepted { ", accepted" } else { "" };
    // Names of several results would leave no room for the reason.
    let subject = match finding.about.len() {
        several if several > 1 && several < report.results.len() => format!("{several} results"),
        _ => describe_subject(finding, report.results.len()),
    };
    let text = format!("{mark} {} {subject}{accepted}: {}", severity.effect(), finding.sentence);
    out.prose_within(1, "  ", "    ", &text);
}

/// Draws the worst findings and how many other answers there are. If these take more than `lines`,
/// omits the advice, then all but two lines of each finding, then the last findings and the empty
/// line above. With `keeps_one`, keeps the first finding. Returns the page, and whether it fits.
fn draw_worst_findings(
    out: &Page,
    report: &Report,
    head_findings: &[Checked],
    lines: usize,
    keeps_one: bool,
) -> (Page, bool) {
    let is_in_head = |f: &Checked| head_findings.iter().any(|r| (r.id, r.severity) == (f.id, f.severity));
    let findings_below: Vec<Checked> =
        worst_findings(report).into_iter().filter(|f| !is_in_head(f)).collect();
    let draw = |count: usize, detail: FindingDetail, is_apart: bool| {
        let mut part = out.empty();
        if is_apart && !out.ends_with_gap() {
            part.line("");
        }
        for f in findings_below.iter().take(count) {
            match detail {
                FindingDetail::TwoLines => show_two_lines(&mut part, f, report.results.len()),
                FindingDetail::Whole | FindingDetail::Sentence => {
                    show_finding(&mut part, f, report.results.len());
                }
            }
            if detail == FindingDetail::Whole {
                show_fix(&mut part, &f.fix);
            }
        }
        if let Some(counts) = rest_summary(&shown_checks(report), count + head_findings.len()) {
            let hint = full_report_hint(report);
            // Do not break a command across two lines.
            if display_width(&counts) + display_width(&hint) + 2 <= part.width().min(MAX_PROSE_WIDTH) {
                part.paragraph(&format!("{counts}: {hint}"));
            } else {
                part.paragraph(&format!("{counts}:"));
                part.note(&hint);
            }
        }
        part
    };
    let most = findings_below.len();
    let with_all = [FindingDetail::Whole, FindingDetail::Sentence, FindingDetail::TwoLines]
        .map(|detail| (most, detail, true));
    let least = most.min(usize::from(keeps_one));
    let with_fewer =
        (least..=most).rev().flat_map(|n| [true, false].map(|apart| (n, FindingDetail::TwoLines, apart)));
    let mut part = out.empty();
    for (count, detail, is_apart) in with_all.into_iter().chain(with_fewer) {
        part = draw(count, detail, is_apart);
        if part.lines() <= lines {
            return (part, true);
        }
    }
    (part, false)
}

/// Prints the first sentence of a finding, in at most two lines.
fn show_two_lines(out: &mut Page, finding: &Checked, result_count: usize) {
    let severity = finding.severity.unwrap_or(Severity::Note);
    let mark = out.paint(&finding.id.to_string(), severity_colour(severity));
    let accepted = if finding.accepted { ", accepted" } else { "" };
    let effect = severity.effect();
    let first = finding
        .sentence
        .split_once(". ")
        .map_or_else(|| finding.sentence.clone(), |(first, _)| format!("{first}."));
    let text = format!("{mark} {effect} {}{accepted}: {first}", describe_subject(finding, result_count));
    out.prose_within(2, "  ", "      ", &text);
}

/// Prints why checks were not possible: each reason once, after the checks that share it.
fn show_not_checked(out: &mut Page, shown: &[Checked], result_count: usize, brief: bool) {
    let mut unchecked: Vec<&Checked> = with_outcome(shown, Outcome::NotChecked).collect();
    if brief {
        unchecked.dedup_by_key(|f| f.id);
    }
    if !unchecked.is_empty() {
        out.line("Not checked");
    }
    let reason = |f: &&Checked| {
        (format!("{}: {}", results_suffix(f, result_count), f.sentence), format!("{} {}", f.id, f.name))
    };
    for (why, names) in grouped(unchecked.iter().map(reason)) {
        out.prose("  ", "      ", &format!("{}{why}", names.join(", ")));
    }
}

/// Prints the checks that passed for every result.
pub(super) fn show_passed(out: &mut Page, shown: &[Checked]) {
    let has_only_passed = |f: &&Checked| !shown.iter().any(|g| g.id == f.id && g.outcome != Outcome::Holds);
    let mut passed: Vec<CheckId> =
        with_outcome(shown, Outcome::Holds).filter(has_only_passed).map(|f| f.id).collect();
    passed.dedup();
    if !passed.is_empty() {
        out.field("Passed", &CheckId::list(&passed, " "));
    }
}

/// Whether a report has many similar results, whose findings differ only in their numbers.
fn has_many_results(report: &Report) -> bool {
    matches!(report.study, Studied::Limit(_)) || report.study.sweep().is_some_and(Sweep::is_in_order)
}
