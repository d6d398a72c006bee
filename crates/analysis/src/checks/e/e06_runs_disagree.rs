//! E06: runs of the same thing that differ.
//!
//! For: how far apart the runs are, and whether what varies within them explains it. Not for: too few of them (E05).

use crate::case::{Case, no_run};
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use crate::figures::iops;
use crate::run_series::courses;
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::units::{show_rate, show_share};
use stats::autocorrelation::correlation_time;
use stats::interval::FEWEST_RUNS;
use stats::sample::{mean, median, variance};
use stats::sample_size::{self, ASKED, MOST_RUNS, Variability};
use stats::series::Series;

/// Deviation from run to run that is worth a note.
const NOTED_ABOVE: Share = Share(0.05);
/// Deviation from which the mean is no property of the storage: with five runs the interval is then about as wide as half the
/// value. Disks of virtual machines reach half of it by their neighbours alone.
const BIASED_ABOVE: Share = Share(0.25);
/// How much longer than they were runs should be before that is advised.
const WORTH_SAYING: f64 = 2.0;
/// By how much the deviation must exceed what the variation within the runs explains, to be called one between them.
const BEYOND_WITHIN: f64 = 3.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::E06,
    name: "RUNS_DISAGREE",
    belief: "every run would have given this number",
    page: Page {
        reads: "Operations by time of each run; fathom's own intervals for what varies within a run.",
        formula: formula!(
            "The standard deviation of the runs' rates divided by their mean, from {FEWEST_RUNS} runs on. Above {NOTED_ABOVE} \
             it is noted, above {BIASED_ABOVE} the result is biased: the mean of such runs depends on the moment. Beside it \
             stands whether the deviation is more than {BEYOND_WITHIN} times what the variation within the runs would make by \
             chance, which means that something changed from run to run."
        ),
        provoke: "`fathom run --runs 5 --time 2s DIR`, with `dd if=/dev/vda of=/dev/null iflag=direct bs=1M` in \
                  another shell during some of the runs.",
        fix: "Find what differs: other load (D01), the order of the runs, a drive that fills (E13).",
        accept: "More --runs make the interval narrower, not the runs more alike. Accept it where the spread is what you \
                 report.",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| uneven(&[9_000.0, 4_000.0, 10_000.0, 3_000.0, 9_500.0])),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { runs: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let rates: Vec<f64> = case.runs.iter().filter_map(iops).collect();
    match rates.len() {
        0 => return Err(no_run()),
        n if n < FEWEST_RUNS => return Ok(Answer::DoesNotApply),
        _ => {}
    }
    let centre = mean(&rates);
    if centre <= 0.0 {
        return Err("no operation completed within a measured window".into());
    }
    let deviation = variance(&rates).sqrt() / centre;
    let within = courses(case)
        .map(|c| c.iter().map(uncertainty).sum::<f64>() / c.len() as f64)
        .map(|v| v.sqrt() / centre);
    let (least, most) = rates.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let numbers = evidence([
        ("deviation_share", deviation),
        ("by_chance_share", within.clone().unwrap_or(f64::NAN)),
        ("least_iops", least),
        ("most_iops", most),
        ("runs", rates.len() as f64),
    ]);
    let Some(severity) = severity(deviation) else {
        return Ok(Answer::Holds("The runs agree with one another.", numbers));
    };
    let shown: Vec<String> = rates.iter().take(10).map(|r| show_rate(*r)).collect();
    let more = if rates.len() > shown.len() { ", ..." } else { "" };
    let cure = cure(case, &rates, within.as_ref().ok().map(|share| share * share));
    let why = match within {
        Ok(w) if deviation > BEYOND_WITHIN * w => {
            " Within a run it varied far less, so something changed from run to run."
        }
        Ok(w) if w >= deviation => " Variation within the runs explains as much by chance.",
        Ok(_) => " Variation within the runs explains a part of that by chance.",
        Err(_) => "",
    };
    Ok(Answer::Finding(Detail {
        severity,
        sentence: format!(
            "The runs differ by {} of their mean (standard deviation): {}{more} IOPS.{why}",
            show_share(deviation),
            shown.join("; ")
        ),
        cure: Some(cure),
        evidence: numbers,
        renames: None,
    }))
}

/// The severity of a standard deviation of the runs, as a share of their mean; `None` if the runs agree.
pub(crate) fn severity(deviation: f64) -> Option<Severity> {
    match deviation {
        d if d > BIASED_ABOVE => Some(Severity::Biased),
        d if d > NOTED_ABOVE => Some(Severity::Note),
        _ => None,
    }
}

/// What to look for, and what it takes to make the interval narrow without finding it.
fn cure(case: &Case, rates: &[f64], within: Option<f64>) -> String {
    let look = CHECK.page.fix;
    let logs: Vec<f64> = rates.iter().map(|r| r.ln()).collect();
    let variance = variance(&logs);
    if !variance.is_finite() {
        return look.into();
    }
    let asked = format!("an interval of {} to either side", show_share(ASKED));
    let Some(runs) = sample_size::runs(variance, ASKED) else {
        return format!("{look} As they are, {asked} would take more than {MOST_RUNS} runs.");
    };
    let seconds = case.window_ns() / 1e9 / rates.len() as f64;
    let plain = format!("{look} As they are, about {runs} runs in all would give {asked} (--runs {runs})");
    let best = within.zip(beside_s(case)).and_then(|(within, beside_s)| {
        let spread = Variability { variance, within, seconds, beside_s };
        sample_size::best_seconds(&spread)
    });
    match best {
        Some(best) if best > WORTH_SAYING * seconds => {
            format!("{plain}; fewer, longer runs (about {best:.0} s each) would do as well.")
        }
        Some(_) => format!("{plain}; longer ones would hardly help."),
        None => format!("{plain}."),
    }
}

/// What a run takes beside its window, in seconds: preparation, warm-up and rest. `None` with one run in the record.
fn beside_s(case: &Case) -> Option<f64> {
    let ends: Vec<u64> = case.record.runs.iter().filter_map(|r| Some(r.end.as_ref()?.at_ns)).collect();
    let beside = case.runs.iter().filter_map(|ran| {
        let before = ends.iter().rev().find(|at| **at < ran.end.at_ns)?;
        Some((ran.end.at_ns - before).saturating_sub(ran.stream.window_ns) as f64 / 1e9)
    });
    let beside: Vec<f64> = beside.collect();
    (!beside.is_empty()).then(|| median(&beside))
}

/// Variance of the mean of a run, from what varies within it.
fn uncertainty(course: &Series) -> f64 {
    variance(&course.rates) * correlation_time(&course.rates) / course.rates.len() as f64
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn uneven(rates: &'static [f64]) -> model::record::Record {
    let fixture = Fixture { runs: rates.len() as u32, ..Fixture::honest() };
    super::shaped(&fixture, (20, 1), |run, _| rates[run as usize])
}

#[test]
fn five_per_cent_are_noted_and_a_quarter_biases() {
    assert_eq!(CHECK.severity(&uneven(&[9_600.0, 10_000.0, 10_400.0])), None, "4 %");
    let Ok(Answer::Finding(f)) = CHECK.answer(&uneven(&[9_000.0, 10_000.0, 11_000.0])) else {
        panic!("silent")
    };
    // A deviation of 10 % of logarithms: (2 x 0.1 / ln 1.025)^2.
    assert!(
        f.severity == Severity::Note && f.cure.as_ref().unwrap().contains("about 66 runs in all"),
        "{:?}",
        f.cure
    );
    assert!(f.cure.unwrap().contains("longer ones would hardly help"), "nothing varies within them");
    let Ok(Answer::Finding(f)) = CHECK.answer(&(CHECK.fires.unwrap())()) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Biased);
    assert!(f.cure.unwrap().contains("more than 100 runs"));
    assert!(f.sentence.contains("9,000; 4,000") && f.sentence.contains("from run to run"), "{}", f.sentence);
}

#[test]
fn the_sentence_and_the_cure_do_not_contradict_each_other() {
    // Runs that vary as much within themselves as from one to the next, and less.
    let said = |swing: f64| {
        let fixture = Fixture { runs: 5, ..Fixture::honest() };
        let rates = [9_000.0, 10_400.0, 9_600.0, 11_000.0, 10_000.0];
        let record = super::shaped(&fixture, (20, 1), |run, at| {
            rates[run as usize] * (1.0 + if (at * 20.0) as u64 % 10 < 5 { swing } else { -swing })
        });
        match CHECK.answer(&record) {
            Ok(Answer::Finding(f)) => (f.sentence, f.cure.unwrap()),
            other => panic!("{other:?}"),
        }
    };
    for swing in [0.0, 0.02, 0.1, 0.3, 0.6] {
        let (sentence, cure) = said(swing);
        assert!(!cure.contains("varies within"), "why is said once: {sentence} {cure}");
        assert!(!(swing == 0.0 && sentence.contains("as much")), "{sentence}");
    }
    assert!(said(0.0).0.contains("far less") && said(0.6).0.contains("as much"), "{:?}", said(0.6));
}

#[test]
fn two_runs_are_not_asked_and_without_courses_the_runs_are() {
    assert_eq!(CHECK.answer(&uneven(&[1_000.0, 9_000.0])), Ok(Answer::DoesNotApply));
    assert!(matches!(CHECK.answer(&super::without_intervals()), Ok(Answer::Holds(..))));
}
