//! A report as text: what an engineer reads first, and pastes.
//!
//! For: the verdict, the number under its true name, what limits it, the table, the findings, and what could not be checked.
//! Not for: machines to read; that is `json`.

use super::{api, course, findings, iops, layers, ledger, limit, pts, rerun, results, sweep, tool_results};
use crate::format::Style;
use crate::page::Page;
use model::report::{Ending, Headline, Report, Verdict};
use model::study::Studied;
use model::units::{show_bytes, show_count, show_rate};
use std::io::{self, Write};
use std::path::Path;

pub(super) fn write(report: &Report, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style.colour);
    head(&mut out, report);
    match &report.study {
        Studied::Layers(layers) => layers::show(&mut out, layers),
        Studied::Limit(curve) => limit::show(&mut out, curve),
        Studied::Sweep(sweep) if sweep.rounds.is_some() => pts::show(&mut out, report, sweep),
        Studied::Sweep(sweep) if sweep.is_in_order() => iops::show(&mut out, report, sweep),
        Studied::Sweep(sweep) => sweep::show(&mut out, sweep, report),
        Studied::Interfaces(api) => api::show(&mut out, api),
        Studied::Jobs => results::show(&mut out, &report.results),
        Studied::Profile(card) => {
            results::show(&mut out, &report.results);
            tool_results::show(&mut out, card);
        }
    }
    if let Some(against) = &report.against {
        rerun::show(&mut out, against);
    }
    if style.course {
        report.results.iter().flat_map(course::lines).for_each(|line| out.line(&line));
    }
    // Of hundreds of rows only what is worth reading; the JSON has it all.
    let less = matches!(report.study, Studied::Interfaces(_)).then(|| api::worth_reading(report));
    if less.is_none() {
        deductions(&mut out, report);
    }
    if style.ledger {
        ledger::show(&mut out, &report.results);
    }
    let shown = less.as_ref().unwrap_or(report);
    findings::show(&mut out, shown);
    foot(&mut out, shown);
    out.write(to)
}

fn head(out: &mut Page, report: &Report) {
    let (word, code) = match report.verdict {
        Verdict::Valid => ("VALID", "1;32"),
        Verdict::Suspect => ("SUSPECT", "1;33"),
        Verdict::Invalid => ("INVALID", "1;31"),
    };
    let verdict = out.paint(word, code);
    let number = out.paint(&headline(&report.headline, report), "1");
    if let Some(answer) = &report.answer {
        let word = out.paint(answer.word.word(), "1");
        out.prose(&format!("{word}  "), "  ", &answer.sentence);
    }
    // The first word is about all that stands below it, so how many hold comes before the one that is quoted.
    match &report.counts.sentence {
        Some(counted) => {
            out.prose(&format!("{verdict}  "), "  ", &format!("{counted}."));
            out.line(&format!("  {}: {number}", report.headline.name));
        }
        None => out.line(&format!("{verdict}  {}: {number}", report.headline.name)),
    }
    if report.verdict != Verdict::Valid {
        out.prose("  ", "  ", &report.verdict_reason);
    }
    match &report.ending {
        Ending::Complete => {}
        Ending::Interrupted => out.line("  Interrupted: what was measured until then is shown."),
        Ending::Failed(why) => out.prose("  ", "  ", &format!("Ended by an error: {why}.")),
        Ending::Cut => {
            out.line("  The session has no end: fathom was killed. What was measured until then is shown.");
        }
    }
    out.prose("  ", "  ", &format!("Limited by: {}. {}", report.limiter.name, report.limiter.sentence));
    out.line("");
}

fn deductions(out: &mut Page, report: &Report) {
    if report.deductions.is_empty() {
        return;
    }
    out.line("What the figures say");
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
    let mut chains: Vec<String> = m.places.iter().map(model::machine::Place::chain).collect();
    chains.dedup();
    for chain in &chains {
        out.prose("Target  ", "        ", chain);
    }
    for note in &report.notes {
        out.prose("Note    ", "        ", note);
    }
    out.line(&format!("When    {}, fathom {}, {}", report.started, report.fathom.version, report.title));
    if !report.words.tags.is_empty() {
        out.prose("Tags    ", "        ", &report.words.tags.join(" "));
    }
    for note in &report.words.notes {
        out.prose("Said    ", "        ", &format!("{}: {}", note.at, note.text));
    }
    match &report.session {
        Some(session) => {
            out.line(&format!("Session {session}"));
            let id = Path::new(session).file_stem().unwrap_or_default().to_string_lossy();
            out.line(&format!("        (fathom show {id} judges and prints it again)"));
        }
        None => out.line("Session not kept"),
    }
}

fn headline(headline: &Headline, report: &Report) -> String {
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
