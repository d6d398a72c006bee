//! A measurement in Markdown: what a pull request or a forum is told.
//!
//! For: the verdict, the table, the findings that matter most and the command that measured; in brief one block as CrystalDiskMark
//! shows it. Not for: everything; that is `json`.

use super::{code, fenced};
use crate::command::{self, how_to_see_all};
use crate::format::{Detail, Style};
use crate::formats::text::replay;
use crate::formats::text::report::{ending, quoted, table};
use crate::page::{supported, verdict_mark};
use crate::prose::prose;
use crate::table::{Table, escaped};
use crate::worst;
use model::comparison::Comparison;
use model::finding::{Finding, Outcome, Severity};
use model::quick::Quick;
use model::report::{Counts, CountsAs, Figures, Measured, Report, Rerun, Verdict};
use model::study::Studied;
use std::io::{self, Write};

/// Columns of a block, which forums show in full.
const BLOCK_WIDTH: usize = 80;
/// Columns of the block.
const GRID_HEADINGS: [&str; 6] = ["test", "read MB/s", "IOPS", "write MB/s", "IOPS", "verdict"];

pub(super) fn write_report(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let is_transfer = |result: &Measured| result.trim.is_none();
    let has_tests =
        matches!(report.study, Studied::Jobs | Studied::Profile(_)) && report.results.iter().all(is_transfer);
    let text = match style.detail {
        Detail::Brief if has_tests => forum_block(report),
        Detail::Brief => table(report, false).markdown(),
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

/// What a quick look leaves out; nothing for another report.
fn quick_text(report: &Report) -> String {
    let sentence = |quick: &Quick| format!("{} {}\n\n", Quick::WORD, escaped(&quick.sentence()));
    report.quick.as_ref().map_or_else(String::new, sentence)
}

/// What was asked, in a word and its reason; nothing where nothing was.
fn report_answer(report: &Report) -> String {
    report.answer.as_ref().map_or_else(String::new, |answer| {
        let remark = report.counts_as.map_or("", CountsAs::remark);
        format!("**{}**{remark} {}\n\n", answer.word.word(), escaped(&answer.sentence))
    })
}

/// What the comparison with an earlier session says.
fn rerun_text(rerun: &Rerun) -> String {
    let Comparison { answer, sentence, .. } = &rerun.beside;
    let words = format!("Against {}, measured again in turns: {sentence}", rerun.session);
    format!("**{}** {}\n", answer.word(), escaped(&words))
}

/// A replay beside its original.
fn replay_text(result: &Measured) -> Option<String> {
    let of = result.replay.as_deref()?;
    let differs = of.differs.iter().map(|why| format!("- {}\n", escaped(why)));
    Some(format!(
        "\n{}\n\n{}\n{}",
        escaped(&replay::heading(of)),
        replay::replay_table(of).markdown(),
        differs.collect::<String>()
    ))
}

fn full_page(report: &Report, all: bool) -> String {
    let mut out = first_line(report);
    if report.quick.is_some() {
        out += &format!("\n{}", quick_text(report).trim_end_matches('\n'));
        out.push('\n');
    }
    let shown = if all { worst::shown_findings(report) } else { worst::worst_findings(report) };
    let limiter = worst::describe_limiter(report, &shown);
    let reason = worst::verdict_reason(report, &shown).map(str::to_owned);
    for words in reason.into_iter().chain(ending(report)).chain([limiter]) {
        out += &format!("\n{}\n", escaped(&words));
    }
    let table = table(report, all);
    if !table.is_empty() {
        out += &format!("\n{}", table.markdown());
    }
    if table.has("~") {
        out += "\n\\~ = rounded, since the interval is wide\n";
    }
    out += &report.results.iter().filter(|result| !result.void).filter_map(replay_text).collect::<String>();
    if let Some(rerun) = &report.against {
        out += &format!("\n{}", rerun_text(rerun));
    }
    let items = if all { every_answer(report, &shown) } else { most_important(report, &shown) };
    if !items.is_empty() {
        out += &format!("\n{}", items.concat());
    }
    out + "\n" + &provenance(report)
}

/// The words that everything below stands under.
fn first_line(report: &Report) -> String {
    let out = report_answer(report);
    let counted = report.counts.sentence.as_ref().map_or_else(String::new, |s| format!(". {s}"));
    let line = format!("{}{counted}", quoted(report, str::to_owned));
    out + &format!("**{}** {}\n", report.verdict.word(), escaped(&line))
}

fn most_important(report: &Report, shown: &[Finding]) -> Vec<String> {
    let mut items: Vec<String> = shown.iter().map(|f| finding_item(f, report.results.len())).collect();
    if let Some(rest) = worst::rest_summary(report) {
        items.push(format!("- {rest}: {}\n", code(&how_to_see_all(report))));
    }
    items
}

fn every_answer(report: &Report, shown: &[Finding]) -> Vec<String> {
    let found = shown.iter().filter(|f| f.outcome != Outcome::Holds);
    found.map(|f| finding_item(f, report.results.len())).collect()
}

/// `- **A01 CACHE\_SERVED** (rename): ... -> ...`
fn finding_item(f: &Finding, results: usize) -> String {
    let severity = match f.outcome {
        Outcome::Finding => f.severity.unwrap_or(Severity::Note).effect(),
        _ => "not checked",
    };
    let accepted = if f.accepted { ", accepted" } else { "" };
    let name = escaped(&format!("{} {}", f.id, f.name));
    let cure = if f.cure.is_empty() { String::new() } else { format!(" -> {}", f.cure) };
    let words = format!("{}: {}{cure}", worst::results_suffix(f, results), f.sentence);
    format!("- **{name}** ({severity}{accepted}){}\n", escaped(&words))
}

/// The command, when it ran and on what.
fn provenance(report: &Report) -> String {
    let mut lines = Vec::new();
    if !report.command.is_empty() {
        lines.push(code(&command::command_line(&report.command)));
    }
    lines.extend(report.machine.places.iter().map(|place| escaped(&place.chain())));
    lines.dedup();
    lines.push(escaped(&format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title)));
    // Two spaces end a line within a paragraph.
    lines.join("  \n") + "\n"
}

/// One block: a row for each test, reads and writes side by side.
fn forum_block(report: &Report) -> String {
    let Counts { valid, suspect, invalid, .. } = report.counts;
    let counted = format!(" ({valid} valid, {suspect} suspect, {invalid} invalid)");
    let counted = if valid + suspect + invalid > 1 { counted } else { String::new() };
    let (version, title) = (&report.fathom.version, &report.title);
    let words = format!("fathom {version}, {title}: {}{counted}", report.verdict.word());
    let mut lines = vec![wrapped(&words)];
    lines.extend(test_grid(&report.results).lines(BLOCK_WIDTH).0);
    lines.extend(report.machine.places.iter().map(|place| wrapped(&place.chain())));
    lines.dedup();
    lines.push(report.started.clone());
    // A command is copied, so it stays whole.
    lines.extend(Some(command::command_line(&report.command)).filter(|line| !line.is_empty()));
    fenced(&lines.join("\n"))
}

fn wrapped(text: &str) -> String {
    prose(BLOCK_WIDTH, "", "  ", text).trim_end().to_owned()
}

/// What the reads and the writes of a test came to.
struct GridTest<'a> {
    name: &'a str,
    /// MB/s and IOPS of each.
    rates: [Option<[String; 2]>; 2],
    worst: &'a Measured,
}

fn test_grid(results: &[Measured]) -> Table {
    let mut tests: Vec<GridTest> = Vec::new();
    for result in results {
        let name = [" read", " write"].iter().find_map(|end| result.name.strip_suffix(end));
        let (name, rates) = (name.unwrap_or(&result.name), direction_rates(result));
        let is_other_half = |test: &&mut GridTest| {
            test.name == name && test.rates.iter().zip(&rates).all(|(a, b)| a.is_none() || b.is_none())
        };
        if let Some(test) = tests.iter_mut().find(is_other_half) {
            for (known, new) in test.rates.iter_mut().zip(rates) {
                *known = known.take().or(new);
            }
            test.worst =
                if invalid_or_worst(result) > invalid_or_worst(test.worst) { result } else { test.worst };
        } else {
            tests.push(GridTest { name, rates, worst: result });
        }
    }
    let mut table = Table::new(&GRID_HEADINGS, &[]);
    for test in &tests {
        let none = || ["-".to_owned(), "-".to_owned()];
        let rates = test.rates.iter().flat_map(|pair| pair.clone().unwrap_or_else(none));
        table.add(std::iter::once(test.name.to_owned()).chain(rates).chain([verdict_mark(test.worst)]));
    }
    table
}

fn invalid_or_worst(result: &Measured) -> (bool, Verdict) {
    (result.void, result.verdict)
}

/// The rates of the reads and of the writes; `None` where the test has none of these.
fn direction_rates(result: &Measured) -> [Option<[String; 2]>; 2] {
    let of = |figures: Option<&Figures>| match figures {
        Some(_) if result.void => Some(["void".into(), "void".into()]),
        Some(f) => Some([supported(f.mb_per_s, f.mb_per_s_interval), supported(f.iops, f.iops_interval)]),
        None => None,
    };
    [of(result.read.as_ref()), of(result.write.as_ref())]
}
