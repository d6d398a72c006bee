//! A report as text: what an engineer reads first, and pastes.
//!
//! For: the verdict, the number under its true name, what limits it, the table, the findings, and what could not be checked.
//! Not for: machines to read; that is `json`.

use super::{
    api, commands, course, findings, fleet, hosts, iops, layers, ledger, limit, pts, rerun, results, sweep,
    targets, tool_results,
};
use crate::command::{how_to_see_all, id};
use crate::format::{Detail, Style};
use crate::page::{Page, accepted};
use crate::table::Table;
use crate::worst;
use model::finding::Finding;
use model::quick::Quick;
use model::report::{CountsAs, Ending, Headline, Report, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_rate};
use std::io::{self, Write};

pub(super) fn write(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    if let Some(quick) = &report.quick {
        let word = out.paint(Quick::WORD, "1;33");
        out.prose(&format!("{word}  "), "  ", &quick.sentence());
    }
    if style.detail == Detail::Brief {
        // A table alone does not answer whoever asked for a condition or a comparison.
        if !report.gates.is_empty() {
            answer(&mut out, report);
        }
        out.table_of(&table(report, false));
        if let Some(against) = &report.against {
            rerun::show_brief(&mut out, against);
        }
        return out.write(to);
    }
    let all = style.detail == Detail::All;
    if let Studied::Commands(results) = &report.study {
        commands::show(&mut out, report, results, all);
        return out.write(to);
    }
    // Of hundreds of rows only what is worth reading; the JSON has it all.
    let less = matches!(report.study, Studied::Interfaces(_)).then(|| api::worth_reading(report));
    let shown = if all { worst::told(less.as_ref().unwrap_or(report)) } else { worst::first(report) };
    head(&mut out, report, &shown);
    study(&mut out, report, all);
    fleet::show(&mut out, report, all);
    if let Some(against) = &report.against {
        rerun::show(&mut out, against);
    }
    if style.course {
        report.results.iter().for_each(|result| course::show(&mut out, result));
    }
    if style.ledger {
        ledger::show(&mut out, &report.results);
    }
    if all {
        everything(&mut out, report, less.as_ref());
    } else {
        findings::show_first(&mut out, report, &how_to_see_all(report));
        short_foot(&mut out, report);
    }
    out.write(to)
}

/// The one table of a report, in which each row has its verdict; with all rows, or with those that matter most.
pub(in crate::formats) fn table(report: &Report, all: bool) -> Table {
    match &report.study {
        Studied::Layers(layers) => layers::table(layers, &report.results),
        Studied::Limit(curve) => limit::table(curve, &report.results, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => pts::first_table(report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => iops::table(report, sweep),
        Studied::Sweep(sweep) => sweep::table(sweep, report),
        Studied::Interfaces(api) => api::table(api, &report.results),
        Studied::Targets(of) => targets::table(of, &report.results),
        Studied::Hosts(scaling) => hosts::table(scaling, &report.results),
        Studied::Commands(results) => commands::table(results),
        Studied::Jobs | Studied::Profile(_) => results::table(&report.results),
    }
}

fn study(out: &mut Page, report: &Report, all: bool) {
    match &report.study {
        Studied::Layers(layers) => layers::show(out, layers, &report.results),
        Studied::Limit(curve) => limit::show(out, curve, report, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => pts::show(out, report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => iops::show(out, report, sweep),
        Studied::Sweep(sweep) => sweep::show(out, sweep, report, all),
        Studied::Interfaces(api) => api::show(out, api, report, all),
        Studied::Targets(of) => targets::show(out, of, &report.results, all),
        Studied::Hosts(scaling) => hosts::show(out, scaling, &report.results, all),
        Studied::Commands(results) => commands::show(out, report, results, all),
        Studied::Jobs => results::show(out, &report.results, all),
        Studied::Profile(card) => {
            results::show(out, &report.results, all);
            tool_results::show(out, card);
        }
    }
}

/// What stands below the study where all is shown.
fn everything(out: &mut Page, report: &Report, less: Option<&Report>) {
    if less.is_none() {
        deductions(out, report);
    }
    let shown = less.unwrap_or(report);
    findings::show(out, shown);
    foot(out, shown);
}

/// What was asked, in a word and its reason.
fn answer(out: &mut Page, report: &Report) {
    if let Some(answer) = &report.answer {
        let word = out.paint(answer.word.word(), "1");
        let remark = report.counts_as.map_or("", CountsAs::remark);
        out.prose(&format!("{word}{remark}  "), "  ", &answer.sentence);
    }
}

/// The first words. What a finding says that is shown below the table stands there alone.
fn head(out: &mut Page, report: &Report, shown: &[Finding]) {
    let code = match report.verdict {
        Verdict::Valid => "1;32",
        Verdict::Suspect => "1;33",
        Verdict::Invalid => "1;31",
    };
    let verdict = out.paint(report.verdict.word(), code);
    let number = out.paint(&headline(&report.headline, report), "1") + &accepted(&report.headline.accepted);
    answer(out, report);
    // The first word is about all that stands below it, so how many hold comes before the one that is quoted.
    match &report.counts.sentence {
        Some(counted) => {
            out.prose(&format!("{verdict}  "), "  ", &format!("{counted}."));
            out.prose("  ", "    ", &format!("{}: {number}", report.headline.name));
        }
        None => out.prose(&format!("{verdict}  "), "    ", &format!("{}: {number}", report.headline.name)),
    }
    if let Some(reason) = worst::reason(report, shown) {
        out.prose("  ", "  ", reason);
    }
    for sentence in &report.busy_machine {
        out.prose("  ", "  ", sentence);
    }
    if let Some(words) = ending(report) {
        out.prose("  ", "  ", &words);
    }
    out.prose("  ", "  ", &worst::limited(report, shown));
    out.line("");
}

/// How it ended, where not as planned.
pub(in crate::formats) fn ending(report: &Report) -> Option<String> {
    match &report.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("Interrupted: these are the results up to that point.".into()),
        // The reason of the verdict says why.
        Ending::NotMeasured(_) => Some("Nothing was measured.".into()),
        Ending::Failed(why) => Some(format!("Ended by an error: {why}.")),
        Ending::Cut => Some(
            "The session is incomplete because fathom was killed: these are the results up to that \
             point."
                .into(),
        ),
    }
}

fn deductions(out: &mut Page, report: &Report) {
    if report.deductions.is_empty() {
        return;
    }
    out.line("Derived from these results");
    for d in &report.deductions {
        out.prose("  ", "    ", &format!("{}: {}", d.name, d.sentence));
    }
    out.line("");
}

fn foot(out: &mut Page, report: &Report) {
    let m = &report.machine;
    let unknown = || "unknown".to_owned();
    let memory = m.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b));
    let cpu = m.cpu.clone().unwrap_or_else(|_| unknown());
    out.prose("Host    ", "        ", &format!("{}, {cpu}, {} CPUs, {memory}, {}", m.host, m.cpus, m.kernel));
    short_foot(out, report);
    if let Some(id) = id(report) {
        out.line(&format!("        (to check and print it again: fathom show {id})"));
    }
}

/// What was measured, what was changed against the request, and where it is kept.
fn short_foot(out: &mut Page, report: &Report) {
    let mut chains: Vec<String> = report.machine.places.iter().map(model::machine::Place::chain).collect();
    chains.dedup();
    for chain in &chains {
        out.prose("Target  ", "        ", chain);
    }
    for note in &report.notes {
        out.prose("Note    ", "        ", note);
    }
    let when = format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title);
    out.prose("When    ", "        ", &when);
    if !report.words.tags.is_empty() {
        out.prose("Tags    ", "        ", &report.words.tags.join(" "));
    }
    for note in &report.words.notes {
        out.prose("Comment ", "        ", &format!("{}: {}", note.at, note.text));
    }
    match &report.session {
        Some(session) => out.prose("Session ", "        ", session),
        None => out.line("Session not kept"),
    }
}

/// The number of the headline with its interval, or why it has none.
pub(in crate::formats) fn headline(headline: &Headline, report: &Report) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let of_grid = report.study.sweep().and_then(|s| s.winner.get(&s.works.first()?.name)).map(|c| c.runs);
    let runs = of_grid.or_else(|| report.results.iter().map(|r| r.runs.len()).max()).unwrap_or(0);
    let number = format!("{} {}", show_rate(value), headline.unit);
    if let Studied::Limit(curve) = &report.study {
        return match curve.latency_target.as_ref().map(|p| p.missed_iops) {
            Some(Some(missed)) => format!("{number}, missed at {}", show_count(missed as f64)),
            Some(None) => format!("{number}, and no load that was offered missed it"),
            None => number,
        };
    }
    if let Some([first, last]) = report.study.sweep().and_then(|s| s.rounds.as_ref()?.window) {
        return format!("{number} (mean of rounds {first} to {last})");
    }
    match headline.interval {
        Some([low, high]) => {
            format!("{number} (95 % interval {} to {} over {runs} runs)", show_rate(low), show_rate(high))
        }
        None if runs == 1 => format!("{number} (one run: no interval)"),
        None => format!("{number} ({runs} runs: no interval)"),
    }
}
