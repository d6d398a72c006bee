//! The format `markdown`: for comments on changes, forums and documents.
//!
//! A report has the verdict, the table, the most important findings and the command. With `--brief`, jobs without trims are one block in
//! the form of CrystalDiskMark, and any other report is a table. The pages of all checks together are the document
//! `docs/reference/checks.md`.

use crate::documentation::{is_command, page_parts};
use crate::page::{display_width, prose};
use crate::view::comparison::{Compared, describe_source};
use crate::view::findings;
use crate::view::findings::{MAX_SHOWN, full_report_hint, rest_summary, shown_checks, worst_of};
use crate::view::machine::{conclude_diagnosis, count_answers, describe_answer, device_table};
use crate::view::numbers::{SUSPECT_MARK, SUSPECT_MARK_MEANING, verdict_mark, with_supported_digits};
use crate::view::plan::{describe_streams, job_title, plan_headline, plan_remarks, settings_table};
use crate::view::report::{describe_commits, describe_ending, describe_headline, main_table, omits_verdict};
use crate::view::results::is_of_jobs;
use crate::view::results::{self, read_write_tests};
use crate::view::sessions::{
    list_foot, list_table, session_remarks, session_table, session_table_foot, session_table_legend,
};
use crate::view::sweep::{best_settings_table, best_settings_title};
use crate::view::table::{Columns, DEVICE_LEGEND, Table, has_device_column, or_dash};
use crate::view::verification::{
    damage_items, verdict_on_all_hosts, verification_headline, verification_remarks,
};
use crate::{Content, Detail, Format, Style, writer};
use model::comparison::{Comparison, Comparisons, Side, SlowdownGate};
use model::finding::{CheckPage, Checked, Diagnosis, DoctorAnswer, Outcome, Pages};
use model::history::{Listing, SessionTable};
use model::machine::Devices;
use model::plan::Explained;
use model::report::{Counts, CountsAs, Figures, Measured, Quick, Report, Rerun};
use model::verification::{Verifications, Verified};
use std::io;
use std::io::Write;
use std::path::Path;

pub(super) static FORMAT: Format = Format {
    name: "markdown",
    extension: "md",
    content: Content::Text,
    has_brief: true,
    report: writer(
        "verdict, table and three findings, to paste into an issue; with --brief one block for a forum",
        write_report,
    ),
    comparison: writer("answer and table, to paste into the review of a change", write_comparison),
    comparisons: writer("answers and one table, to paste into the review of a change", write_several),
    plan: writer("settings and where each comes from, to paste into an issue", write_plan),
    sessions: writer("a table, to paste into a document", write_list),
    session_table: writer("a table, to paste into a document", write_session_table),
    pages: writer("the page of an ID; without an ID, docs/reference/checks.md", write_check_pages),
    diagnosis: writer("the worst findings, then a table, to paste into an issue", write_diagnosis),
    devices: writer("a table, to paste into a document", write_devices),
    verified: writer("the verdict and the damage, to paste into an issue", write_verification),
    watched: None,
    load_over_time: None,
    captured: None,
    fitted: None,
};

/// Formats text as inline code.
fn inline_code(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let marks = backticks_around(&line, 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{marks}{gap}{line}{gap}{marks}")
}

/// Formats text as a code block.
fn code_block(text: &str) -> String {
    let marks = backticks_around(text, 3);
    format!("{marks}\n{text}\n{marks}\n")
}

/// Returns `least` backticks, or more if the text contains as many in a row, so that the text cannot end the code.
fn backticks_around(text: &str, least: usize) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(least.max(longest + 1))
}

/// Escapes the characters that have a meaning in Markdown.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '~' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

impl Table {
    /// Returns a Markdown table, with aligned columns in the source.
    pub(crate) fn markdown(&self) -> String {
        let escape_all =
            |cells: &[String]| -> Vec<String> { cells.iter().map(|c| escape(c.trim())).collect() };
        let head = escape_all(&self.headings);
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| escape_all(row)).collect();
        let all = || std::iter::once(&head).chain(&rows);
        let width_of = |at: usize| all().filter_map(|row| row.get(at)).map(|c| display_width(c)).max();
        let widths: Vec<usize> = (0..head.len()).map(|at| width_of(at).unwrap_or(0).max(3)).collect();
        let cell = |(at, width): (usize, &usize), row: &[String]| {
            let text = row.get(at).map_or("", String::as_str);
            let gap = " ".repeat(width.saturating_sub(display_width(text)));
            if self.is_left_aligned[at] { format!(" {text}{gap} |") } else { format!(" {gap}{text} |") }
        };
        let line = |row: &[String]| -> String {
            let cells = widths.iter().enumerate().map(|column| cell(column, row));
            format!("|{}\n", cells.collect::<String>())
        };
        let rule = widths.iter().zip(&self.is_left_aligned).map(|(width, left)| {
            let dashes = "-".repeat(width - 1);
            if *left { format!(" :{dashes} |") } else { format!(" {dashes}: |") }
        });
        let rule = format!("|{}\n", rule.collect::<String>());
        line(&head) + &rule + &rows.iter().map(|row| line(row)).collect::<String>()
    }
}

/// Width of a block that forums show in full.
const BLOCK_WIDTH: usize = 80;

fn write_report(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let is_transfer = |result: &Measured| result.trim.is_none();
    let has_tests = is_of_jobs(report) && report.results.iter().all(is_transfer);
    let text = match style.detail {
        Detail::Brief if has_tests => forum_block(report),
        Detail::Brief => brief_table(report),
        detail => full_page(report, detail == Detail::All),
    };
    if style.detail == Detail::Brief {
        to.write_all(quick_text(report).as_bytes())?;
        if !report.gates.is_empty() {
            to.write_all(report_answer(report).as_bytes())?;
        }
    }
    to.write_all(text.as_bytes())?;
    match &report.against {
        Some(rerun) if style.detail == Detail::Brief => write!(to, "\n{}", rerun_text(rerun)),
        _ => Ok(()),
    }
}

/// Returns what a quick run leaves out; empty for other reports.
fn quick_text(report: &Report) -> String {
    let sentence = |quick: &Quick| format!("{} {}\n\n", Quick::WORD, escape(&quick.sentence()));
    report.quick.as_ref().map_or_else(String::new, sentence)
}

/// Returns the answer to the command's question and its reason; empty without an answer.
fn report_answer(report: &Report) -> String {
    report.answer.as_ref().map_or_else(String::new, |answer| {
        let remark = report.counts_as.map_or("", CountsAs::remark);
        format!("**{}**{remark} {}\n\n", answer.word.word(), escape(&answer.sentence))
    })
}

/// Returns the answer of the comparison with an earlier session.
fn rerun_text(rerun: &Rerun) -> String {
    let Comparison { answer, sentence, .. } = &rerun.workload_comparison;
    let text = format!("Against {}, measured again in alternation: {sentence}", rerun.session);
    format!("**{}** {}\n", answer.word(), escape(&text))
}

/// Returns the comparison of a replay with its original; `None` if the result is not a replay.
fn replay_text(result: &Measured) -> Option<String> {
    let replay = result.replay.as_deref()?;
    let differs = replay.differs.iter().map(|why| format!("- {}\n", escape(why)));
    Some(format!(
        "\n{}\n\n{}\n{}",
        escape(&results::replay_caption(replay)),
        results::replay_table(replay).markdown(),
        differs.collect::<String>()
    ))
}

/// Returns a table, with a legend if it counts the requests of the device.
fn explained_table(table: &Table) -> String {
    let legend = has_device_column(&table.headings).then(|| format!("\n{DEVICE_LEGEND}\n"));
    table.markdown() + &legend.unwrap_or_default()
}

/// Returns the main table, and below it the results without a number.
fn brief_table(report: &Report) -> String {
    let missing = findings::describe_missing_numbers(report).map(|text| format!("\n{}\n", escape(&text)));
    explained_table(&main_table(report, false)) + &missing.unwrap_or_default()
}

fn full_page(report: &Report, all: bool) -> String {
    let mut out = first_lines(report);
    if report.quick.is_some() {
        out += &format!("\n{}", quick_text(report).trim_end_matches('\n'));
        out.push('\n');
    }
    let shown = if all { shown_checks(report) } else { findings::worst_findings(report) };
    let limiter = findings::describe_limiter(report, &shown);
    let reason = findings::verdict_reason(report, &shown).map(str::to_owned);
    for text in reason.into_iter().chain(describe_ending(report)).chain([limiter]) {
        out += &format!("\n{}\n", escape(&text));
    }
    let table = main_table(report, all);
    if !table.is_empty() {
        out += &format!("\n{}", explained_table(&table));
    }
    if table.has("~") {
        out += "\n\\~ = rounded, since the interval is wide\n";
    }
    let has_rounds = report.study.sweep().is_some_and(|sweep| sweep.rounds.is_some());
    if has_rounds && (table.has(SUSPECT_MARK) || table.has("void")) {
        out += &format!("\n{}\n", escape(SUSPECT_MARK_MEANING));
    }
    out += &report.results.iter().filter(|result| !result.void).filter_map(replay_text).collect::<String>();
    if let Some(rerun) = &report.against {
        out += &format!("\n{}", rerun_text(rerun));
    }
    let found = shown.iter().filter(|finding| finding.outcome != Outcome::Holds);
    let mut items: Vec<String> = found.map(|finding| finding_item(finding, report.results.len())).collect();
    if !all && let Some(rest) = rest_summary(&shown_checks(report), MAX_SHOWN) {
        items.push(format!("- {rest}: {}\n", inline_code(&full_report_hint(report))));
    }
    if !items.is_empty() {
        out += &format!("\n{}", items.concat());
    }
    out + "\n" + &provenance(report)
}

/// Returns the first lines: the answer to the command's question, if there is one, and the verdict with the headline.
fn first_lines(report: &Report) -> String {
    let out = report_answer(report);
    let counted = report.counts.sentence.as_ref().map_or_else(String::new, |s| format!(". {s}"));
    let commits = describe_commits(report).map_or_else(String::new, |commits| format!(". {commits}"));
    let line = format!("{}{commits}{counted}", describe_headline(report, str::to_owned));
    let verdict =
        if omits_verdict(report) { String::new() } else { format!("**{}** ", report.verdict.word()) };
    out + &format!("{verdict}{}\n", escape(&line))
}

/// Returns a finding as a list item: `- **A01 CACHE\_SERVED** (relabels): ... -> ...`.
fn finding_item(finding: &Checked, results: usize) -> String {
    let accepted = if finding.accepted { ", accepted" } else { "" };
    let name = escape(&format!("{} {}", finding.id, finding.name));
    let fix = if finding.fix.is_empty() { String::new() } else { format!(" -> {}", finding.fix) };
    let text = format!("{}: {}{fix}", findings::results_suffix(finding, results), finding.sentence);
    format!("- **{name}** ({}{accepted}){}\n", findings::answer_word(finding), escape(&text))
}

/// Returns the command, the targets, the start time, fathom's version and the title.
fn provenance(report: &Report) -> String {
    let mut lines = Vec::new();
    if !report.command.is_empty() {
        lines.push(inline_code(&findings::command_line(&report.command)));
    }
    lines.extend(report.machine.places.iter().map(|place| escape(&place.chain())));
    lines.dedup();
    lines.push(escape(&format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title)));
    // Two trailing spaces are a line break.
    lines.join("  \n") + "\n"
}

/// Returns one block: a row for each test, reads and writes side by side, then the results without a number.
fn forum_block(report: &Report) -> String {
    let Counts { valid, suspect, invalid, .. } = report.counts;
    let counted = format!(" ({valid} valid, {suspect} suspect, {invalid} invalid)");
    let counted = if valid + suspect + invalid > 1 { counted } else { String::new() };
    let (version, title) = (&report.fathom.version, &report.title);
    let first = format!("fathom {version}, {title}: {}{counted}", report.verdict.word());
    let mut lines = vec![wrap(&first)];
    lines.extend(test_grid(&report.results).lines(BLOCK_WIDTH).0);
    lines.extend(findings::describe_missing_numbers(report).map(|text| wrap(&text)));
    lines.extend(report.machine.places.iter().map(|place| wrap(&place.chain())));
    lines.dedup();
    lines.push(report.started.clone());
    // The command is not wrapped, because users copy it.
    lines.extend(Some(findings::command_line(&report.command)).filter(|line| !line.is_empty()));
    code_block(&lines.join("\n"))
}

fn wrap(text: &str) -> String {
    prose(BLOCK_WIDTH, "", "  ", text).trim_end().to_owned()
}

fn test_grid(results: &[Measured]) -> Table {
    let mb_per_s = |f: &Figures| with_supported_digits(f.mb_per_s, f.mb_per_s_interval);
    let iops = |f: &Figures| with_supported_digits(f.iops, f.iops_interval);
    // An invalidated direction has one word instead of two figures.
    let cell = |half: Option<(&Measured, &Figures)>, void: &str, show: &dyn Fn(&Figures) -> String| {
        or_dash(half, |(result, figures)| if result.void { void.to_owned() } else { show(figures) })
    };
    Columns::new(read_write_tests(results.iter()))
        .borrowed_text("test", |test| test.name)
        .value("read MB/s", |test| cell(test.halves[0], "none", &mb_per_s))
        .value("IOPS", |test| cell(test.halves[0], "-", &iops))
        .value("write MB/s", |test| cell(test.halves[1], "none", &mb_per_s))
        .value("IOPS", |test| cell(test.halves[1], "-", &iops))
        .text("verdict", |test| verdict_mark(test.worst))
        .table(&[])
}

fn write_comparison(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write_compared(&Compared::two_sides(comparison, style.detail == Detail::All), style, to)
}

fn write_several(comparisons: &Comparisons, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write_compared(&Compared::several_sides(comparisons, style.detail == Detail::All), style, to)
}

fn write_compared(compared: &Compared, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let rows = compared.table.markdown();
    let mut out = gate_text(compared.gate);
    if style.detail == Detail::Brief {
        return to.write_all((out + &rows).as_bytes());
    }
    let answer = |one: &Comparison| format!("**{}** {}\n", one.answer.word(), escape(&one.sentence));
    let answers: Vec<String> = compared.answers().map(answer).collect();
    out += &answers.join("\n");
    if !compared.table.is_empty() {
        out += &format!("\n{rows}");
        let headings: Vec<&str> = compared.table.headings.iter().map(String::as_str).collect();
        let legend = compared.legend(&headings);
        if !legend.is_empty() {
            out += &format!("\n{legend}\n");
        }
    }
    let mut items = compared.left_out();
    items.extend(finding_items(compared, style.detail == Detail::All));
    for (name, side) in compared.sides() {
        items.extend(side.sessions.iter().map(|session| format!("{name}: {}", describe_source(session))));
    }
    out.push('\n');
    for item in &items {
        out += &format!("- {}\n", escape(item));
    }
    out += &compare_command(compared.sides().map(|(_, side)| side));
    to.write_all(out.as_bytes())
}

fn gate_text(gate: Option<&SlowdownGate>) -> String {
    gate.map_or_else(String::new, |gate| {
        let remark = gate.counts_as.map_or("", CountsAs::remark);
        format!("**{}**{remark} {}\n\n", gate.outcome.word().word(), escape(&gate.sentence))
    })
}

/// With `all`, returns all findings and the checks that could not be done, otherwise the worst findings and the number of other answers.
fn finding_items(compared: &Compared, all: bool) -> Vec<String> {
    let checks = &compared.checks;
    let shown = if all { checks.clone() } else { worst_of(checks.clone()) };
    let item = |f: &Checked| {
        let not_checked = if f.outcome == Outcome::NotChecked { ", not checked" } else { "" };
        let (sentence, _) = compared.finding_text(f)?;
        Some(format!("{} {}{not_checked}: {sentence}", f.id, f.name))
    };
    let items = shown.iter().filter(|f| f.outcome != Outcome::Holds).filter_map(item);
    let rest =
        rest_summary(checks, MAX_SHOWN).filter(|_| !all).map(|rest| format!("{rest}: --verbose shows all"));
    items.chain(rest).collect()
}

/// Returns the command that compares these sides; empty if a session was not kept.
fn compare_command<'s>(sides: impl Iterator<Item = &'s Side>) -> String {
    let side = |side: &Side| -> Option<String> {
        let ids = side.sessions.iter().map(|source| {
            let id = Path::new(source.session.as_ref()?).file_stem()?;
            Some(id.to_string_lossy().into_owned())
        });
        ids.collect::<Option<Vec<String>>>().map(|ids| ids.join(","))
    };
    let arguments =
        ["fathom", "compare"].map(|word| Some(word.to_owned())).into_iter().chain(sides.map(side));
    let arguments: Option<Vec<String>> = arguments.collect();
    arguments.map_or_else(String::new, |arguments| {
        format!("\n{}\n", inline_code(&findings::command_line(&arguments)))
    })
}

fn write_plan(explained: &Explained, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let Explained { plan, machine, cost } = explained;
    let mut out = format!(
        "**{}**\n\n{}\n\n{}\n",
        escape(&plan_headline(plan)),
        escape(&cost.sentence()),
        settings_table(plan).markdown()
    );
    for (at, job) in plan.jobs.iter().enumerate() {
        let streams = describe_streams(job).collect::<Vec<_>>().join("; ");
        out += &format!("- {}\n", escape(&format!("{}: {streams}", job_title(plan, at))));
    }
    for remark in plan_remarks(&plan.study) {
        out += &format!("- {}\n", escape(&remark));
    }
    out.push('\n');
    let chains = machine.places.iter().map(|place| escape(&place.chain()));
    let lines: Vec<String> =
        [inline_code(&findings::command_line(&plan.command))].into_iter().chain(chains).collect();
    out += &format!("{}\n", lines.join("  \n"));
    to.write_all(out.as_bytes())
}

fn write_list(listing: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out =
        if listing.entries.is_empty() { String::new() } else { list_table(&listing.entries).markdown() };
    for (entry, why) in listing.entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out += &format!("\n- {}\n", escape(&format!("{}: {why}", entry.id)));
    }
    for note in list_foot(listing) {
        out += &format!("\n{}\n", escape(&note));
    }
    to.write_all(out.as_bytes())
}

fn write_session_table(sessions: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = String::new();
    for best in &sessions.best_settings {
        out += &format!("{}\n\n{}\n", best_settings_title(best), best_settings_table(best).markdown());
    }
    if !sessions.rows.is_empty() {
        let table = session_table(sessions);
        out += &format!("{}\n{}\n", table.markdown(), escape(&session_table_legend(&table)));
    }
    for note in session_remarks(sessions).into_iter().chain(session_table_foot(sessions)) {
        out += &format!("\n{}\n", escape(&note));
    }
    to.write_all(out.as_bytes())
}

/// Maximum number of findings before the table.
const MAX_DIAGNOSIS_ITEMS: usize = 3;

fn write_diagnosis(diagnosis: &Diagnosis, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let problems: Vec<&DoctorAnswer> =
        diagnosis.worst_first().into_iter().filter(|answer| answer.affects_measurement()).collect();
    let names: Vec<String> = problems.iter().map(|answer| answer.about.clone()).collect();
    let mut out = format!(
        "**{}** {}. {}\n",
        escape(&conclude_diagnosis(diagnosis, &names)),
        count_answers(diagnosis),
        escape(&diagnosis.chain)
    );
    let worst: Vec<String> =
        problems.iter().take(MAX_DIAGNOSIS_ITEMS).map(|answer| diagnosis_item(answer)).collect();
    if !worst.is_empty() {
        out += &format!("\n{}", worst.concat());
    }
    let table = Columns::new(diagnosis.groups.iter().flat_map(|g| &g.answers))
        .borrowed_text("what", |answer| &answer.about)
        .text("answer", |answer| describe_answer(answer))
        .borrowed_text("seen", |answer| &answer.sentence)
        .table(&[]);
    out += &format!(
        "\n{}\n{}\n",
        table.markdown(),
        inline_code(&findings::fathom_command(["doctor", &diagnosis.target]))
    );
    to.write_all(out.as_bytes())
}

fn diagnosis_item(answer: &DoctorAnswer) -> String {
    let fix = if answer.fix.is_empty() { String::new() } else { format!(" -> {}", answer.fix) };
    format!("- **{}**: {}\n", escape(&answer.about), escape(&format!("{}{fix}", answer.sentence)))
}

fn write_devices(devices: &Devices, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = device_table(devices).markdown();
    if !devices.empty.is_empty() {
        out += &format!("\n{}\n", escape(&format!("Without a size: {}", devices.empty.join(", "))));
    }
    to.write_all(out.as_bytes())
}

fn write_verification(all: &Verifications, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let headline = all.only().map_or_else(|| verdict_on_all_hosts(all), verification_headline);
    let (verdict, rest) = headline.split_at(all.verdict().word().len());
    let mut out = format!("**{verdict}**{}\n\n", escape(rest));
    if let Some(verified) = all.only() {
        out += &host_items(verified);
        out += &format!("\nfathom {}, {}\n", all.fathom.version, inline_code(&verified.target));
    } else {
        for on in &all.hosts {
            out += &format!("### {}\n\n", escape(on.host.as_deref().unwrap_or_default()));
            out += &match &on.outcome {
                Ok(verified) => format!(
                    "{}, {}\n\n{}\n",
                    escape(&verification_headline(verified)),
                    inline_code(&verified.target),
                    host_items(verified)
                ),
                Err(why) => format!("{}\n\n", escape(why)),
            };
        }
        out += &format!("fathom {}\n", all.fathom.version);
    }
    to.write_all(out.as_bytes())
}

/// Returns the damage and the remarks of a host as a list.
fn host_items(verified: &Verified) -> String {
    let items = damage_items(verified).into_iter().chain(verification_remarks(verified));
    items.fold(String::new(), |out, item| out + "- " + &escape(&item) + "\n")
}

fn write_check_pages(pages: &Pages, _: Style, to: &mut dyn Write) -> io::Result<()> {
    if pages.all {
        return to.write_all(check_document(pages).as_bytes());
    }
    let some: Vec<String> = pages.pages.iter().map(check_page).collect();
    to.write_all(some.join("\n").as_bytes())
}

fn check_document(pages: &Pages) -> String {
    let mut out = String::from(
        "# Checks\n\n\
         fathom makes these checks on every result. A check answers *holds*, *finding*, or *not checked* with the reason. A finding\n\
         invalidates the number, relabels it, marks it as biased, or is a note. `fathom explain ID` prints one check.\n\n\
         <!-- made by `fathom explain --format markdown > docs/reference/checks.md` -->\n",
    );
    for group in pages.groups() {
        out += &format!("\n## {}\n", group[0].group);
        for check in group {
            out += "\n";
            out += &check_page(check);
        }
    }
    out
}

fn check_page(check: &CheckPage) -> String {
    let mut out =
        format!("### {} {}\n\nAssumption: {}.\n", check.id, check.name, check.belief.trim_end_matches('.'));
    for (heading, text) in page_parts(check) {
        out += &page_part(heading, text);
    }
    if let Some(flag) = &check.accept {
        out += &format!("\nTo accept it for the exit code: `{flag}`.\n");
    }
    out
}

/// Formats one line as a paragraph and several lines as a list, with commands as code. If the second line is a list item and the first is
/// none, the first is a paragraph above the list.
fn page_part(heading: &str, text: &str) -> String {
    let item = |line: &str| match line.trim() {
        command if is_command(heading, line) => format!("`{command}`"),
        text => text.trim_start_matches("- ").to_owned(),
    };
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let (paragraph, items) = match lines.as_slice() {
        [first, second, ..] if second.starts_with("- ") && !first.starts_with("- ") => lines.split_at(1),
        [_only] => lines.split_at(1),
        _ => lines.split_at(0),
    };
    let title = match paragraph {
        [first] => format!("\n**{heading}.** {}\n", item(first)),
        _ => format!("\n**{heading}**\n"),
    };
    let list: Vec<String> = items.iter().map(|line| format!("\n- {}", item(line))).collect();
    if list.is_empty() { title } else { format!("{title}{}\n", list.concat()) }
}

#[test]
fn text_in_code_cannot_end_the_code() {
    assert_eq!(inline_code("fathom bench /data"), "`fathom bench /data`");
    assert_eq!((inline_code("a`b"), inline_code("`a\n`")), ("``a`b``".into(), "`` `a ` ``".into()));
    assert_eq!(code_block("x"), "```\nx\n```\n");
    assert_eq!(code_block("a\n```\nb"), "````\na\n```\nb\n````\n");
}

#[test]
fn one_line_is_a_paragraph_and_several_lines_are_a_list() {
    use crate::documentation::TO_FIRE;
    assert_eq!(page_part("Formula", "One line."), "\n**Formula.** One line.\n");
    assert_eq!(page_part("Formula", "A sum.\n- Rule."), "\n**Formula.** A sum.\n\n- Rule.\n");
    let several = "Make it.\ndd if=/dev/zero of=x\n\n- Look.";
    let items = "- Make it.\n- `dd if=/dev/zero of=x`\n- Look.\n";
    assert_eq!(page_part(TO_FIRE, several), format!("\n**{TO_FIRE}**\n\n{items}"));
}

#[test]
fn markdown_columns_are_aligned_and_foreign_text_is_escaped() {
    let mut table = Table::new(&["test", "MB/s", "why"], &[]);
    table.add(["a|b".into(), "1,210".into(), "~<x>\n`y`".into()]);
    let expected = "| test |  MB/s | why                |\n\
                | :--- | ----: | :----------------- |\n\
                | a\\|b | 1,210 | \\~\\<x\\> \\`y\\`     |\n";
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('-', "");
    assert_eq!(squeeze(&table.markdown()), squeeze(expected));
    let widths: Vec<usize> = table.markdown().lines().map(display_width).collect();
    assert!(widths.windows(2).all(|w| w[0] == w[1]), "{}", table.markdown());
}
