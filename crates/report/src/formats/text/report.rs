//! A report as text: the page that an engineer reads first and pastes.
//!
//! It begins with the answer or the verdict and the headline. The counts, the table, findings, and the target with the session follow. A
//! report of jobs fits a terminal of [`SCREEN_LINES`] lines: findings give way first. `--verbose` prints everything.

use super::{
    api, commands, course, findings, fleet, hosts, iops, layers, ledger, limit, pts, rerun, results, sweep,
    targets, tool_results,
};
use crate::command::{how_to_see_all, id};
use crate::format::{Detail, Style};
use crate::page::{Page, accepted, mark};
use crate::table::Table;
use crate::worst;
use model::finding::Finding;
use model::machine::Place;
use model::report::{CountsAs, Ending, Headline, Quick, Report, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_rate};
use std::io::{self, Write};

/// Lines of a small terminal.
const SCREEN_LINES: usize = 24;
/// The limiter of a short run.
const NOT_JUDGED: &str = "not judged";

pub(super) fn write(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let all = style.detail == Detail::All;
    if style.detail == Detail::Brief {
        quick(&mut out, "", report);
        // A condition or a comparison needs its answer above the table.
        if !report.gates.is_empty() {
            answer(&mut out, report);
        }
        out.table_of(&table(report, false));
        if let Some(against) = &report.against {
            rerun::show_brief(&mut out, against);
        }
        return out.write(to);
    }
    if let Studied::Commands(results) = &report.study {
        commands::show(&mut out, report, results, all);
        return out.write(to);
    }
    if all {
        return everything(out, report, style, to);
    }
    let reason = worst::of_headline(report);
    let shown: Vec<Finding> = reason.iter().cloned().chain(worst::first(report)).collect();
    head(&mut out, report, &shown, reason.as_ref(), all);
    study(&mut out, report, &shown, all);
    if report.fleet.is_some() || report.against.is_some() || style.course || style.ledger {
        out.gap();
    }
    fleet::show(&mut out, report, all);
    if let Some(against) = &report.against {
        rerun::show(&mut out, against);
    }
    details(&mut out, report, style);
    let mut foot = out.empty();
    short_foot(&mut foot, report);
    let most = if is_of_jobs(report) { SCREEN_LINES } else { usize::MAX };
    let lines = most.saturating_sub(out.lines() + foot.lines());
    findings::show_first(&mut out, (report, reason.as_ref()), lines, &how_to_see_all(report));
    if out.lines() + foot.lines() < most {
        out.gap();
    }
    out.append(&foot);
    out.write(to)
}

/// The report of `--verbose`.
fn everything(mut out: Page, report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    // Of hundreds of rows only what is worth reading; the JSON has it all.
    let less = matches!(report.study, Studied::Interfaces(_)).then(|| api::worth_reading(report));
    let shown = worst::shown_findings(less.as_ref().unwrap_or(report));
    head(&mut out, report, &shown, worst::of_headline(report).as_ref(), true);
    study(&mut out, report, &shown, true);
    fleet::show(&mut out, report, true);
    if let Some(against) = &report.against {
        rerun::show(&mut out, against);
    }
    details(&mut out, report, style);
    if less.is_none() {
        deductions(&mut out, report);
    }
    let shown = less.as_ref().unwrap_or(report);
    findings::show(&mut out, shown);
    whole_foot(&mut out, shown);
    out.write(to)
}

/// Whether the table of results is the whole answer.
fn is_of_jobs(report: &Report) -> bool {
    matches!(report.study, Studied::Jobs | Studied::Profile(_))
}

/// The time series and the ledger, where they are wanted.
fn details(out: &mut Page, report: &Report, style: Style) {
    if style.course {
        report.results.iter().for_each(|result| course::show(out, result));
    }
    if style.ledger {
        ledger::show(out, &report.results);
    }
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

fn study(out: &mut Page, report: &Report, shown: &[Finding], all: bool) {
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
        Studied::Jobs => results::show(out, &report.results, shown, all),
        Studied::Profile(card) => {
            results::show(out, &report.results, shown, all);
            out.gap();
            tool_results::show(out, card);
        }
    }
}

/// What was asked, in a word and its reason.
fn answer(out: &mut Page, report: &Report) {
    if let Some(answer) = &report.answer {
        let word = out.paint(answer.word.word(), "1");
        let remark = report.counts_as.map_or("", CountsAs::remark);
        out.prose(&format!("{word}{remark}  "), "  ", &answer.sentence);
    }
}

/// The first lines: the answer, the verdict with the headline, the counts, and why the verdict is not better.
fn head(out: &mut Page, report: &Report, shown: &[Finding], reason: Option<&Finding>, all: bool) {
    let code = match report.verdict {
        Verdict::Valid => "1;32",
        Verdict::Suspect => "1;33",
        Verdict::Invalid => "1;31",
    };
    let verdict = out.paint(report.verdict.word(), code);
    match sweep::ranked(report) {
        Some(sweep) => sweep::answer(out, sweep, report),
        None => answer(out, report),
    }
    out.prose(&format!("{verdict}  "), "    ", &quoted(report, |number| out.paint(number, "1")));
    if let Some(counted) = &report.counts.sentence {
        out.prose("  ", "    ", counted);
    }
    let has_rows = is_of_jobs(report) && report.results.len() > 1;
    match reason {
        Some(finding) => findings::show_reason(out, finding, report.results.len(), has_rows || all),
        None => worst::reason(report, shown).into_iter().for_each(|why| out.prose("  ", "  ", why)),
    }
    quick(out, "  ", report);
    // The sentences say the same at more length: what was busy, that repeating stopped, and what to do.
    for sentence in report.busy_machine.iter().take(if all { usize::MAX } else { 1 }) {
        out.prose_within(if all { usize::MAX } else { 2 }, "  ", "  ", sentence);
    }
    if let Some(words) = ending(report) {
        out.prose("  ", "  ", &words);
    }
    let limiter = &report.limiter;
    match reason.filter(|f| f.sentence == limiter.sentence) {
        _ if limiter.name == NOT_JUDGED || has_rows && !all => {}
        Some(f) => out.prose("  ", "  ", &format!("Limited by: {} ({}).", limiter.name, f.id)),
        None => out.prose("  ", "  ", &worst::limited(report, shown)),
    }
    out.line("");
}

/// The headline with its number. In a table of several jobs the row has the interval, and the line has the row's verdict.
pub(in crate::formats) fn quoted(report: &Report, paint: impl Fn(&str) -> String) -> String {
    let Headline { name, value, unit, .. } = &report.headline;
    let row = report.headline_result().filter(|_| is_of_jobs(report) && report.results.len() > 1);
    let Some(row) = row else {
        let number = paint(&headline(&report.headline, report));
        return format!("{name}: {number}{}", accepted(&report.headline.accepted));
    };
    let name = if row.renamed { format!("{}, in fact {name}", row.name) } else { row.name.clone() };
    let number = value.map_or_else(|| "no number".into(), |value| format!("{} {unit}", show_rate(value)));
    format!("{name}: {} ({})", paint(&number), mark(row))
}

/// What a quick look leaves out.
fn quick(out: &mut Page, indent: &str, report: &Report) {
    if let Some(quick) = &report.quick {
        out.prose(indent, "  ", &format!("{} {}", Quick::WORD, quick.sentence()));
    }
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

fn whole_foot(out: &mut Page, report: &Report) {
    let m = &report.machine;
    let unknown = || "unknown".to_owned();
    let memory = m.memory_bytes.as_ref().map_or_else(|_| unknown(), |b| show_bytes(*b));
    let cpu = m.cpu.clone().unwrap_or_else(|_| unknown());
    out.prose("Host    ", "        ", &format!("{}, {cpu}, {} CPUs, {memory}, {}", m.host, m.cpus, m.kernel));
    let mut chains: Vec<String> = m.places.iter().map(Place::chain).collect();
    chains.dedup();
    for chain in &chains {
        out.prose("Target  ", "        ", chain);
    }
    remarks(out, report);
    let when = format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title);
    out.prose("When    ", "        ", &when);
    match &report.session {
        Some(session) => out.prose("Session ", "        ", session),
        None => out.line("Session not kept"),
    }
    if let Some(id) = id(report) {
        out.line(&format!("        (to check and print it again: fathom show {id})"));
    }
}

/// What was changed against the request, and what the user says about the session.
fn remarks(out: &mut Page, report: &Report) {
    for note in &report.notes {
        out.prose("Note    ", "        ", note);
    }
    if !report.words.tags.is_empty() {
        out.prose("Tags    ", "        ", &report.words.tags.join(" "));
    }
    for note in &report.words.notes {
        out.prose("Comment ", "        ", &format!("{}: {}", note.at, note.text));
    }
}

/// The remarks, and one line with the session and its targets.
fn short_foot(out: &mut Page, report: &Report) {
    remarks(out, report);
    let mut targets: Vec<String> = report.machine.places.iter().map(Place::short_chain).collect();
    targets.dedup();
    let session = id(report).unwrap_or_else(|| "not kept".into());
    let on = if targets.is_empty() { String::new() } else { format!(", target {}", targets.join("; ")) };
    out.prose("Session ", "        ", &format!("{session}{on}"));
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
