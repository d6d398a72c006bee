//! A capture as text: whether it is complete, then the profile of the load; and a fitted job next to its capture.

use crate::Style;
use crate::page::Page;
use crate::view::captures::{
    describe_aspects, describe_filter, describe_origin, describe_other_tasks, operation_table, task_table,
};
use crate::view::results::fit_table;
use model::captured::Captured;
use model::replay::FitCheck;
use std::io::{self, Write};

/// Indent of continuation lines.
const CONTINUATION: &str = "          ";

pub(super) fn write_capture(captured: &Captured, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let word = captured.completeness.word.to_uppercase();
    if let Some(damage) = &captured.damage {
        out.paragraph(&format!(
            "{} the file is {damage}; the part before that is shown",
            out.paint("CUT", "1")
        ));
    }
    out.paragraph(&format!("{} {}", out.paint(&word, "1"), captured.completeness.sentence));
    out.paragraph(&describe_origin(captured));
    if let Some(filter) = &captured.filter {
        out.paragraph(&describe_filter(filter));
    }
    let profile = &captured.profile;
    if profile.requests == 0 {
        out.line("The capture contains no requests.");
        return out.write(to);
    }
    out.line("");
    out.table(&operation_table(&profile.operations));
    out.line("");
    for (what, text) in describe_aspects(captured) {
        out.prose(&format!("{what:<10}"), CONTINUATION, &text);
    }
    if !profile.tasks.is_empty() {
        out.line("");
        out.table(&task_table(&profile.tasks));
        let others = describe_other_tasks(profile);
        if !others.is_empty() {
            out.paragraph(&others);
        }
    }
    out.write(to)
}

pub(super) fn write_fit_check(fit: &FitCheck, style: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = Page::new(style);
    out.paragraph(&format!("{}: {}", fit.word.word(), fit.sentence));
    let job = fit.job.as_ref().map_or_else(|| "the job fitted to it".into(), |job| format!("the job {job}"));
    out.paragraph(&format!("{} and {job}, run on {}", fit.capture, fit.target));
    out.line("");
    out.table(&fit_table(fit));
    for figure in &fit.figures {
        if let Some(why) = &figure.why {
            out.prose("- ", "  ", &format!("{}: {why}", figure.name));
        }
    }
    for note in &fit.notes {
        out.prose("- ", "  ", note);
    }
    out.write(to)
}

#[cfg(test)]
use {crate::view::captures::captured, model::replay::Figure};

#[test]
fn captures_fit_any_width_and_unknown_figures_are_not_zero() {
    for width in [40, 80, 120] {
        let mut out = Vec::new();
        let written = write_capture(&captured(), Style { width, ..Style::default() }, &mut out);
        let text = String::from_utf8(out).unwrap_or_default();
        assert!(
            written.is_ok() && text.lines().all(|line| crate::page::display_width(line) <= width),
            "{width}\n{text}"
        );
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "CUT the file is cut off at byte 4096",
            "UNKNOWN imported from blktrace",
            "only requests of task postgres",
            "4K 90 %, 64K 10 %",
            "10 % sequential",
            "3 runs of 3.50 requests on average, median 3, longest 9",
            "not known: the file has no completions",
            "2,018 in 10 ms, - in 100 ms",
            "12 at the device; requests: 9 alone",
            "138,181 requests (97 %) by kernel workers",
            "3 completions without a recorded issue",
        ] {
            assert!(flat.contains(expected), "{expected}\n{text}");
        }
    }
}

#[test]
fn missed_goals_and_unknown_figures_are_shown() {
    let figures = vec![
        Figure::share("operations", "per_s", [Some(2150.0), Some(2140.0)], 0.02),
        Figure::share("flushes", "per_s", [Some(200.0), Some(150.0)], 0.05),
        Figure::share("read p50", "ns", [None, Some(1e5)], 0.1),
        Figure::distance("sizes", Ok(0.0123), 0.02),
    ];
    let (word, sentence) = FitCheck::answer(&figures);
    let (capture, target, notes) =
        ("x.capture".into(), "/dev/loop3".into(), vec!["3 requests were of others".into()]);
    let fit = FitCheck { format: 1, capture, job: None, target, word, sentence, figures, notes };
    let mut text = Vec::new();
    write_fit_check(&fit, Style::default(), &mut text).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8(text).unwrap_or_default();
    for expected in [
        "MISSED: 2 of 4 goals",
        "-25.0 %",
        "NO",
        "KS 0.0123",
        "<= 0.02",
        "- read p50: unknown in the capture",
        "3 requests",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
