//! A report as text: the page that an engineer reads first and pastes.
//!
//! It begins with the answer or the verdict and the headline. The counts, the table, findings, and the target with the session follow. A
//! report of jobs fits a terminal of [`SCREEN_LINES`] lines: findings give way first. `--verbose` prints everything.

use super::{
    api, commands, course, findings, fleet, hosts, iops, layers, ledger, limit, pts, rerun, results, sweep,
    targets, tool_results,
};
use crate::command::{how_to_see_all, session_id};
use crate::format::{Detail, Style};
use crate::page::{Page, accepted, verdict_mark};
use crate::table::Table;
use crate::worst;
use model::finding::Finding;
use model::machine::Place;
use model::quick::Quick;
use model::report::{CountsAs, Ending, Headline, Report, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_rate};
use std::io::{self, Write};

/// Lines of a small terminal.
const SCREEN_LINES: usize = 24;
/// The limiter of a short run.
const NOT_JUDGED: &str = "not judged";

pub(super) fn write_report(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let all = style.detail == Detail::All;
    if style.detail == Detail::Brief {
        show_quick(&mut out, "", report);
        // A condition or a comparison needs its answer above the table.
        if !report.gates.is_empty() {
            show_answer(&mut out, report);
        }
        out.table(&table(report, false));
        if let Some(against) = &report.against {
            rerun::show_rerun_brief(&mut out, against);
        }
        return out.write(to);
    }
    if let Studied::Commands(results) = &report.study {
        commands::show(&mut out, report, results, all);
        return out.write(to);
    }
    if all {
        return write_verbose(out, report, style, to);
    }
    let reason = worst::headline_finding(report);
    let shown: Vec<Finding> = reason.iter().cloned().chain(worst::worst_findings(report)).collect();
    show_head(&mut out, report, &shown, reason.as_ref(), all);
    show_study(&mut out, report, &shown, all);
    if report.fleet.is_some() || report.against.is_some() || style.course || style.ledger {
        out.gap();
    }
    fleet::show_hosts(&mut out, report, all);
    if let Some(against) = &report.against {
        rerun::show_rerun(&mut out, against);
    }
    show_details(&mut out, report, style);
    let mut foot = out.empty();
    show_short_foot(&mut foot, report);
    let most = if is_of_jobs(report) { SCREEN_LINES } else { usize::MAX };
    let lines = most.saturating_sub(out.lines() + foot.lines());
    findings::show_worst_findings(&mut out, (report, reason.as_ref()), lines, &how_to_see_all(report));
    if out.lines() + foot.lines() < most {
        out.gap();
    }
    out.append(&foot);
    out.write(to)
}

/// The report of `--verbose`.
fn write_verbose(mut out: Page, report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    // Of hundreds of rows only what is worth reading; the JSON has it all.
    let less = matches!(report.study, Studied::Interfaces(_)).then(|| api::with_distinct_findings(report));
    let shown = worst::shown_findings(less.as_ref().unwrap_or(report));
    show_head(&mut out, report, &shown, worst::headline_finding(report).as_ref(), true);
    show_study(&mut out, report, &shown, true);
    fleet::show_hosts(&mut out, report, true);
    if let Some(against) = &report.against {
        rerun::show_rerun(&mut out, against);
    }
    show_details(&mut out, report, style);
    if less.is_none() {
        show_deductions(&mut out, report);
    }
    let shown = less.as_ref().unwrap_or(report);
    findings::show_all_findings(&mut out, shown);
    show_full_foot(&mut out, shown);
    out.write(to)
}

/// Whether the table of results is the whole answer.
fn is_of_jobs(report: &Report) -> bool {
    matches!(report.study, Studied::Jobs | Studied::Profile(_))
}

/// The time series and the ledger, where they are wanted.
fn show_details(out: &mut Page, report: &Report, style: Style) {
    if style.course {
        report.results.iter().for_each(|result| course::show_seconds(out, result));
    }
    if style.ledger {
        ledger::show_ledger(out, &report.results);
    }
}

/// The one table of a report, in which each row has its verdict; with all rows, or with those that matter most.
pub(in crate::formats) fn table(report: &Report, all: bool) -> Table {
    match &report.study {
        Studied::Layers(layers) => layers::layer_table(layers, &report.results),
        Studied::Limit(curve) => limit::load_table(curve, &report.results, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => pts::first_round_table(report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => iops::iops_table(report, sweep),
        Studied::Sweep(sweep) => sweep::sweep_table(sweep, report),
        Studied::Interfaces(api) => api::interface_table(api, &report.results),
        Studied::Targets(of) => targets::target_table(of, &report.results),
        Studied::Hosts(scaling) => hosts::host_count_table(scaling, &report.results),
        Studied::Commands(results) => commands::table(results),
        Studied::Jobs | Studied::Profile(_) => results::result_table(&report.results),
    }
}

fn show_study(out: &mut Page, report: &Report, shown: &[Finding], all: bool) {
    match &report.study {
        Studied::Layers(layers) => layers::show_layers(out, layers, &report.results),
        Studied::Limit(curve) => limit::show_load_curve(out, curve, report, all),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => pts::show_pts_rounds(out, report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => iops::show_iops_preset(out, report, sweep),
        Studied::Sweep(sweep) => sweep::show_sweep(out, sweep, report, all),
        Studied::Interfaces(api) => api::show_interfaces(out, api, report, all),
        Studied::Targets(of) => targets::show_targets(out, of, &report.results, all),
        Studied::Hosts(scaling) => hosts::show_host_counts(out, scaling, &report.results, all),
        Studied::Commands(results) => commands::show(out, report, results, all),
        Studied::Jobs => results::show_results(out, &report.results, shown, all),
        Studied::Profile(card) => {
            results::show_results(out, &report.results, shown, all);
            out.gap();
            tool_results::show_card(out, card);
        }
    }
}

/// What was asked, in a word and its reason.
fn show_answer(out: &mut Page, report: &Report) {
    if let Some(answer) = &report.answer {
        let word = out.paint(answer.word.word(), "1");
        let remark = report.counts_as.map_or("", CountsAs::remark);
        out.prose(&format!("{word}{remark}  "), "  ", &answer.sentence);
    }
}

/// The first lines: the answer, the verdict with the headline, the counts, and why the verdict is not better.
fn show_head(out: &mut Page, report: &Report, shown: &[Finding], reason: Option<&Finding>, all: bool) {
    let code = match report.verdict {
        Verdict::Valid => "1;32",
        Verdict::Suspect => "1;33",
        Verdict::Invalid => "1;31",
    };
    let verdict = out.paint(report.verdict.word(), code);
    match sweep::ranked_sweep(report) {
        Some(sweep) => sweep::show_ranking(out, sweep, report),
        None => show_answer(out, report),
    }
    out.prose(&format!("{verdict}  "), "    ", &quoted(report, |number| out.paint(number, "1")));
    if let Some(counted) = &report.counts.sentence {
        out.prose("  ", "    ", counted);
    }
    let has_rows = is_of_jobs(report) && report.results.len() > 1;
    match reason {
        Some(finding) => findings::show_deciding_finding(out, finding, report.results.len(), has_rows || all),
        None => worst::verdict_reason(report, shown).into_iter().for_each(|why| out.prose("  ", "  ", why)),
    }
    show_quick(out, "  ", report);
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
        None => out.prose("  ", "  ", &worst::describe_limiter(report, shown)),
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
    format!("{name}: {} ({})", paint(&number), verdict_mark(row))
}

/// What a quick look leaves out.
fn show_quick(out: &mut Page, indent: &str, report: &Report) {
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

fn show_deductions(out: &mut Page, report: &Report) {
    if report.deductions.is_empty() {
        return;
    }
    out.line("Derived from these results");
    for d in &report.deductions {
        out.prose("  ", "    ", &format!("{}: {}", d.name, d.sentence));
    }
    out.line("");
}

fn show_full_foot(out: &mut Page, report: &Report) {
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
    show_remarks(out, report);
    let when = format!("{}, fathom {}, {}", report.started, report.fathom.version, report.title);
    out.prose("When    ", "        ", &when);
    match &report.session {
        Some(session) => out.prose("Session ", "        ", session),
        None => out.line("Session not kept"),
    }
    if let Some(id) = session_id(report) {
        out.line(&format!("        (to check and print it again: fathom show {id})"));
    }
}

/// What was changed against the request, and what the user says about the session.
fn show_remarks(out: &mut Page, report: &Report) {
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
fn show_short_foot(out: &mut Page, report: &Report) {
    show_remarks(out, report);
    let mut targets: Vec<String> = report.machine.places.iter().map(Place::short_chain).collect();
    targets.dedup();
    let session = session_id(report).unwrap_or_else(|| "not kept".into());
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
