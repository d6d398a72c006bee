//! Results one by one: each with its latencies, its course and its ledger.
//!
//! For: reports whose results are what was asked for. Not for: studies, which draw their own pictures.

use super::course::time_series;
use super::events::Events;
use super::latency::latency_drawings;
use super::ledger::ledger_pictures;
use super::page::{card, folded};
use super::words::with_micro_sign;
use crate::page::{accepted, supported};
use model::report::{Measured, Report, Verdict};

/// Results that have pictures of their own: beyond these the page would be too large, and nobody reads them all.
const MAX_PICTURES: usize = 16;

/// All of them: one has a card for each picture, several have a card each.
pub(super) fn result_cards(report: &Report) -> String {
    match report.results.as_slice() {
        [only] => single_result(report, only),
        all => {
            let drawn =
                all.iter().take(MAX_PICTURES).enumerate().map(|(at, result)| result_card(report, result, at));
            let rest = all.len().saturating_sub(MAX_PICTURES);
            let more = (rest > 0).then(|| {
                card::<String>(
                    "More results",
                    &[format!(
                        "{rest} more results are in the table above, and in the JSON with everything."
                    )],
                    "",
                )
            });
            drawn.chain(more).collect()
        }
    }
}

fn single_result(report: &Report, result: &Measured) -> String {
    let mut out = String::new();
    let latency = latency_drawings(result, "r0");
    if !latency.is_empty() {
        let lead = [
            "Above, where operations lie; below, how rare the slow ones are. Percentiles with fewer than ten operations beyond are not drawn.",
        ];
        out += &card("Latency", &lead, &latency);
    }
    let course = time_series(result, &Events::from_result(report, result), "r0");
    if !course.is_empty() {
        out += &card("Over time", &plot_notes(result), &course);
    }
    let ledger = ledger_pictures(result);
    if !ledger.is_empty() {
        out += &card("What each layer counted", &[LEDGER_EXPLAINED], &ledger);
    }
    out
}

/// What the picture of a ledger shows.
const LEDGER_EXPLAINED: &str = "From what fathom issued, over what the kernel charged to it, down to what each block device completed, warm-up \
                      and drain included. Narrower operations at equal bytes are merged, wider ones split; fewer bytes were answered by a cache.";

/// What there is to know beside the plots.
fn plot_notes(result: &Measured) -> Vec<String> {
    let steady = result.steadiness.as_ref().map(|s| format!("{}: {}", s.state.word(), s.sentence));
    let axis = "All runs on one axis, in the order in which they ran. Drag to zoom, Escape to see all; arrow keys move the crosshair.";
    let disturbed = result.disturbed.iter().filter(|d| !d.counts).filter_map(|d| {
        let why = d.why.as_ref()?;
        Some(format!(
            "Run {}, attempt {}, was measured again: {why}.",
            d.run.saturating_add(1),
            d.attempt.saturating_add(1)
        ))
    });
    std::iter::once(axis.to_owned()).chain(steady).chain(disturbed).collect()
}

fn result_card(report: &Report, result: &Measured, at: usize) -> String {
    let link = format!("r{at}");
    let rate = result.quoted_rate();
    let number = rate.value.map(|v| format!("{} {}", supported(v, rate.interval), rate.unit));
    let verdict = if result.void { Verdict::Invalid } else { result.verdict };
    let word = format!("{}{}", verdict.word(), accepted(&result.accepted));
    let name = if result.renamed {
        format!("{word}, as measured: {}", result.true_name)
    } else {
        format!("{word}: {}", result.true_name)
    };
    let lead = [
        format!("{}{name}.", number.map_or_else(String::new, |n| format!("{n}, "))),
        with_micro_sign(&format!("Limited by: {}. {}", result.limiter.name, result.limiter.sentence)),
    ];
    let latency = latency_drawings(result, &link);
    let course = time_series(result, &Events::from_result(report, result), &link);
    let ledger = ledger_pictures(result);
    // Direction by direction it has headings of its own, which stand below this one.
    let ledger = if ledger.is_empty() { ledger } else { format!("<h3>What each layer counted</h3>{ledger}") };
    let ledger = folded("What each layer counted", &ledger);
    let body = if latency.is_empty() && course.is_empty() {
        ledger
    } else {
        // The runs of several hosts have no course together; each has its own in its session.
        let course =
            if course.is_empty() { course } else { format!("<div><h3>Over time</h3>{course}</div>") };
        // Below the latencies, where there is room beside the longer course.
        format!("<div class=\"pair\"><div><h3>Latency</h3>{latency}{ledger}</div>{course}</div>")
    };
    card(&result.name, &lead, &body)
}
