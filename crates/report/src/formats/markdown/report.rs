//! A measurement in Markdown: what a pull request or a forum is told.
//!
//! For: the verdict, the table, the findings that matter most and the command that measured; in brief one block as CrystalDiskMark
//! shows it. Not for: everything; that is `json`.

use super::{code, fenced};
use crate::command;
use crate::format::{Detail, Style};
use crate::formats::text::report::{ending, headline, how_to_see_all, table};
use crate::page::mark;
use crate::table::{Table, escaped};
use crate::worst;
use model::finding::{Finding, Outcome, Severity};
use model::report::{Figures, Measured, Report, Verdict};
use model::study::Studied;
use model::units::show_rate;
use std::io::{self, Write};

/// Columns of a block, which forums show in full.
const BLOCK: usize = 80;
/// Columns of the block; those of a mix are there where something is one.
const GRID: [&str; 8] = ["test", "read MB/s", "IOPS", "write MB/s", "IOPS", "mixed MB/s", "IOPS", "verdict"];

pub(super) fn write(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let has_tests = matches!(report.study, Studied::Jobs | Studied::Profile(_));
    let text = match style.detail {
        Detail::Brief if has_tests => block(report),
        Detail::Brief => table(report).markdown(),
        detail => page(report, detail == Detail::All),
    };
    to.write_all(text.as_bytes())
}

fn page(report: &Report, all: bool) -> String {
    let mut out = first_line(report);
    let limiter = format!("Limited by: {}. {}", report.limiter.name, report.limiter.sentence);
    let reason = (report.verdict != Verdict::Valid).then(|| report.verdict_reason.clone());
    for words in reason.into_iter().chain(ending(report)).chain([limiter]) {
        out += &format!("\n{}\n", escaped(&words));
    }
    let table = table(report);
    if !table.is_empty() {
        out += &format!("\n{}", table.markdown());
    }
    if table.has('~') {
        out += "\n\\~ = rounded, since the interval is wide\n";
    }
    let items = if all { every_answer(report) } else { most_important(report) };
    if !items.is_empty() {
        out += &format!("\n{}", items.concat());
    }
    out + "\n" + &made_by(report)
}

/// The words that everything below stands under.
fn first_line(report: &Report) -> String {
    let mut out = String::new();
    if let Some(answer) = &report.answer {
        out += &format!("**{}** {}\n\n", answer.word.word(), escaped(&answer.sentence));
    }
    let counted = report.counts.sentence.as_ref().map_or_else(String::new, |s| format!("{s}. "));
    let number = format!("{}: {}", report.headline.name, headline(&report.headline, report));
    out + &format!("**{}** {}{}\n", report.verdict.word(), escaped(&counted), escaped(&number))
}

fn most_important(report: &Report) -> Vec<String> {
    let mut items: Vec<String> = worst::first(report).iter().map(|f| item(f, report.results.len())).collect();
    if let Some(rest) = worst::rest(report) {
        items.push(format!("- {rest}: {}\n", code(&how_to_see_all(report))));
    }
    items
}

fn every_answer(report: &Report) -> Vec<String> {
    let found = worst::told(report).into_iter().filter(|f| f.outcome != Outcome::Holds);
    found.map(|f| item(&f, report.results.len())).collect()
}

/// `- **A01 CACHE\_SERVED** (rename): ... -> ...`
fn item(f: &Finding, results: usize) -> String {
    let severity = match f.outcome {
        Outcome::Finding => f.severity.unwrap_or(Severity::Note).word(),
        _ => "not checked",
    };
    let accepted = if f.accepted { ", accepted" } else { "" };
    let name = escaped(&format!("{} {}", f.id, f.name));
    let cure = if f.cure.is_empty() { String::new() } else { format!(" -> {}", f.cure) };
    let words = format!("{}: {}{cure}", worst::about(f, results), f.sentence);
    format!("- **{name}** ({severity}{accepted}){}\n", escaped(&words))
}

/// The command, when it ran and on what.
fn made_by(report: &Report) -> String {
    let mut lines = Vec::new();
    if !report.command.is_empty() {
        lines.push(code(&command::line(&report.command)));
    }
    lines.extend(report.machine.places.iter().map(|place| escaped(&place.chain())));
    lines.dedup();
    lines.push(escaped(&format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title)));
    // Two spaces end a line within a paragraph.
    lines.join("  \n") + "\n"
}

/// One block: a row for each test, reads and writes side by side.
fn block(report: &Report) -> String {
    let mut lines = vec![format!(
        "fathom {}, {}: {}{}",
        report.fathom.version,
        report.title,
        report.verdict.word(),
        report.counts.sentence.as_ref().map_or_else(String::new, |s| format!(", {s}"))
    )];
    lines.extend(grid(&report.results).lines(BLOCK).0);
    lines.extend(report.machine.places.iter().map(model::machine::Place::chain));
    lines.dedup();
    if report.command.is_empty() {
        lines.push(report.started.clone());
    } else {
        lines.push(format!("{}, {}", report.started, command::line(&report.command)));
    }
    fenced(&lines.join("\n"))
}

/// What reads, writes and mixes of a test came to.
struct Test<'a> {
    name: &'a str,
    /// MB/s and IOPS of reads, of writes and of both together.
    rates: [Option<[String; 2]>; 3],
    worst: &'a Measured,
}

fn grid(results: &[Measured]) -> Table {
    let mut tests: Vec<Test> = Vec::new();
    for result in results {
        let name = [" read", " write"].iter().find_map(|end| result.name.strip_suffix(end));
        let (name, kind) = (name.unwrap_or(&result.name), kind(result));
        if let Some(test) = tests.iter_mut().find(|t| t.name == name && t.rates[kind].is_none()) {
            test.rates[kind] = Some(rates(result));
            test.worst = if worse(result) > worse(test.worst) { result } else { test.worst };
        } else {
            let mut test = Test { name, rates: [None, None, None], worst: result };
            test.rates[kind] = Some(rates(result));
            tests.push(test);
        }
    }
    let mixed = tests.iter().any(|t| t.rates[2].is_some());
    let shown = |at: &usize| mixed || !(5..7).contains(at);
    let pick = |cells: Vec<String>| {
        (0..GRID.len()).filter(shown).filter_map(move |at| cells.get(at).cloned()).collect::<Vec<_>>()
    };
    let mut table = Table::new(&pick(GRID.map(str::to_owned).to_vec()), &[]);
    for test in &tests {
        let none = || ["-".to_owned(), "-".to_owned()];
        let rates = test.rates.iter().flat_map(|pair| pair.clone().unwrap_or_else(none));
        let cells = std::iter::once(test.name.to_owned()).chain(rates).chain([mark(test.worst).to_owned()]);
        table.add(pick(cells.collect()));
    }
    table
}

fn worse(result: &Measured) -> (bool, Verdict) {
    (result.void, result.verdict)
}

/// Which of the three pairs of columns a result belongs to.
fn kind(result: &Measured) -> usize {
    match (&result.read, &result.write) {
        (None, Some(_)) => 1,
        (Some(_), Some(_)) => 2,
        // What has no figures at all is told from its name alone.
        (None, None) if result.name.ends_with(" write") => 1,
        _ => 0,
    }
}

fn rates(result: &Measured) -> [String; 2] {
    if result.void {
        return ["void".into(), "void".into()];
    }
    let figures = result.read.as_ref().or(result.write.as_ref());
    let one = |f: &Figures| [show_rate(f.mb_per_s), show_rate(f.iops)];
    let together = result.total.as_ref().map(|t| [show_rate(t.mb_per_s), show_rate(t.iops)]);
    together.or_else(|| figures.map(one)).unwrap_or_else(|| ["none".into(), "none".into()])
}
