//! A fitted job beside its capture, as text.
//!
//! For: people. Not for: the figures and their goals (`model::fitted`).

use crate::format::Style;
use crate::page::Page;
use crate::table::Table;
use model::fitted::{Figure, FitCheck};
use model::units::{show_bytes, show_count, show_ns, show_rate};
use std::io;

const FIT_HEADINGS: [&str; 6] = ["figure", "original", "fit", "difference", "goal", "met"];
/// From this value on a plain number is shown whole.
const NO_DECIMALS_FROM: f64 = 1000.0;

pub(super) fn write_fit_check(of: &FitCheck, style: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = Page::new(style);
    out.prose("", "  ", &format!("{}: {}", of.word.word(), of.sentence));
    let job = of.job.as_ref().map_or_else(|| "the job fitted to it".into(), |job| format!("the job {job}"));
    out.prose("", "  ", &format!("{} and {job}, run on {}", of.capture, of.target));
    out.line("");
    let mut table = Table::new(&FIT_HEADINGS, &[]);
    table.add_all(of.figures.iter().map(fit_row));
    out.table(&table);
    for figure in &of.figures {
        if let Some(why) = &figure.why {
            out.prose("- ", "  ", &format!("{}: {why}", figure.name));
        }
    }
    for note in &of.notes {
        out.prose("- ", "  ", note);
    }
    out.write(to)
}

fn fit_row(of: &Figure) -> [String; 6] {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format_figure(of, value));
    let is_distance = of.unit == "ks";
    let difference = of.difference.map_or_else(
        || "-".into(),
        |difference| {
            if is_distance { format!("KS {difference:.4}") } else { format!("{:+.1} %", 100.0 * difference) }
        },
    );
    let goal = if is_distance { format!("<= {}", of.goal) } else { format!("+-{:.0} %", 100.0 * of.goal) };
    let met = match of.met {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "?",
    };
    [of.name.clone(), shown(of.original), shown(of.fit), difference, goal, met.into()]
}

fn format_figure(of: &Figure, value: f64) -> String {
    match of.unit.as_str() {
        "ns" => show_ns(value),
        "bytes_per_s" => format!("{}/s", show_bytes(value.round() as u64)),
        _ if value >= NO_DECIMALS_FROM => show_count(value),
        _ => show_rate(value),
    }
}

#[test]
fn a_miss_and_what_is_not_known_stand_there() {
    let figures = vec![
        Figure::share("operations", "per_s", [Some(2150.0), Some(2140.0)], 0.02),
        Figure::share("flushes", "per_s", [Some(200.0), Some(150.0)], 0.05),
        Figure::share("read p50", "ns", [None, Some(1e5)], 0.1),
        Figure::distance("sizes", Ok(0.0123), 0.02),
    ];
    let (word, sentence) = FitCheck::answer(&figures);
    let (capture, target, notes) =
        ("x.capture".into(), "/dev/loop3".into(), vec!["3 requests were of others".into()]);
    let of = FitCheck { format: 1, capture, job: None, target, word, sentence, figures, notes };
    let mut text = Vec::new();
    write_fit_check(&of, Style::default(), &mut text).unwrap_or_else(|e| panic!("{e}"));
    let text = String::from_utf8(text).unwrap_or_default();
    for words in [
        "MISSED: 2 of 4 goals",
        "-25.0 %",
        "NO",
        "KS 0.0123",
        "<= 0.02",
        "- read p50: the capture does not say",
        "3 requests",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
