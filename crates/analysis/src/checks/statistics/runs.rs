//! Whether the runs support the number: how many there are, and how much they differ (E05, E06).
//!
//! E05 notes results with fewer runs than an interval needs. E06 compares the standard deviation of the runs'
//! rates with limits, and states whether the variation within the runs explains it.

use crate::checks::prelude::*;
use crate::figures::iops;
use crate::figures::time_series::series_of_runs;
use stats::intervals;
use stats::intervals::{FEWEST_RUNS, GOAL_HALF_WIDTH, MAX_RECOMMENDED_RUNS, Variability};
use stats::sample::{mean, median, variance};
use stats::series::{Series, correlation_time};

pub(super) const FEW_RUNS: Check = Check {
    id: CheckId::E05,
    name: "FEW_RUNS",
    belief: "the next run would give the same number",
    reads: "The number of runs that ended normally.",
    formula: formula!(
        "A note with fewer than {FEWEST_RUNS} runs: an interval from two runs has one degree of freedom and \
         spans a factor of ten. In simulations, two single runs of the same job, compared by the variation \
         within each, were called different in 94 % of the pairs."
    ),
    provoke: "`fathom run --runs 1 DIR`",
    fix: "Use --runs 5 or more.",
    accept: "For a first look at a machine one run is fine: the note changes neither number nor exit code.",
    applies: |_| true,
    ask: Ask::Alone(check_few_runs),
    #[cfg(test)]
    fires: Some(|| Fixture { runs: 1, ..Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || Fixture { runs: 0, ..Fixture::honest() }.record(),
};

fn check_few_runs(case: &Case) -> Known<Answer> {
    let runs = case.runs.len();
    let numbers = evidence([("runs", runs as f64)]);
    let count = match runs {
        0 => return Err(no_run()),
        1 => "One run".to_owned(),
        n if n < FEWEST_RUNS => format!("{n} runs"),
        _ => {
            return holds("There are enough runs to estimate how much the number varies.", numbers);
        }
    };
    // A sweep measures most cells only once or twice, so the fix names another command.
    let in_sweep = case.record.header.plan.study.grid().is_some();
    detail!(
        Severity::Note,
        numbers,
        "{count}: how much the number varies is unknown, so it cannot be compared with another number."
    )
    .with_fix(in_sweep.then(|| "Measure the cells that matter with `fathom run --runs 5`.".into()))
    .found()
}

/// If the standard deviation of the runs is more than this share of their mean, the check gives a note.
const SPREAD_NOTED_ABOVE: Share = Share(0.05);
/// If the standard deviation of the runs is more than this share of their mean, the mean does not describe the storage:
/// with five runs, the interval then reaches about 30 % to each side. On disks of virtual machines, other guests alone
/// can cause half of this deviation.
const SPREAD_BIASED_ABOVE: Share = Share(0.25);
/// The fix advises longer runs only if they should be more than this many times as long as the measured ones.
const WORTH_ADVISING: f64 = 2.0;
/// If the runs deviate more than this many times as much as the variation within them explains, the
/// finding states that something changed from run to run.
const BEYOND_WITHIN: f64 = 3.0;

pub(super) const RUNS_DISAGREE: Check = Check {
    id: CheckId::E06,
    name: "RUNS_DISAGREE",
    belief: "every run gave about this number",
    reads: "Operations / time of each run; for the variation within a run, its rate in each interval.",
    formula: formula!(
        "The standard deviation of the runs' rates divided by their mean, from {FEWEST_RUNS} runs on. Above \
         {SPREAD_NOTED_ABOVE} a note, above {SPREAD_BIASED_ABOVE} biased: the mean of such runs depends on the moment. The \
         finding also states whether the deviation is more than {BEYOND_WITHIN} times what the variation \
         within the runs causes by chance, which means that something changed from run to run."
    ),
    provoke: "`fathom run --runs 5 --time 2s DIR`, with `dd if=/dev/vda of=/dev/null iflag=direct bs=1M` in \
              another shell during some of the runs.",
    fix: "Find the difference between the runs: other load (D01), their order, a drive that fills (E13).",
    accept: "Accept it if you report the variation. More --runs make the interval narrower, not the runs \
             more alike.",
    applies: |_| true,
    ask: Ask::Alone(check_runs_disagree),
    #[cfg(test)]
    fires: Some(|| uneven(&[9_000.0, 4_000.0, 10_000.0, 3_000.0, 9_500.0])),
    #[cfg(test)]
    blind: || Fixture { runs: 0, ..Fixture::honest() }.record(),
};

fn check_runs_disagree(case: &Case) -> Known<Answer> {
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
    let within = series_of_runs(case)
        .map(|c| c.iter().map(variance_of_mean).sum::<f64>() / c.len() as f64)
        .map(|v| v.sqrt() / centre);
    let (least, most) = rates.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let numbers = evidence([
        ("deviation_share", deviation),
        ("by_chance_share", within.clone().unwrap_or(f64::NAN)),
        ("least_iops", least),
        ("most_iops", most),
        ("runs", rates.len() as f64),
    ]);
    let Some(severity) = severity_of_spread(deviation) else {
        return holds("The runs agree with each other.", numbers);
    };
    let shown: Vec<String> = rates.iter().take(10).map(|r| show_rate(*r)).collect();
    let more = if rates.len() > shown.len() { ", ..." } else { "" };
    let fix = describe_fix(case, &rates, within.as_ref().ok().map(|share| share * share));
    let why = match within {
        Ok(w) if deviation > BEYOND_WITHIN * w => {
            " Within a run the rate varied far less, so something changed from run to run."
        }
        Ok(w) if w >= deviation => " The variation within the runs explains this difference.",
        Ok(_) => " The variation within the runs explains only a part of this difference.",
        Err(_) => "",
    };
    detail!(
        severity,
        numbers,
        "The runs differ by {} of their mean (standard deviation): {}{more} IOPS.{why}",
        show_share(deviation),
        shown.join("; ")
    )
    .with_fix(fix)
    .found()
}

/// Returns the severity of a standard deviation of the runs, as a share of their mean, or `None` if the runs
/// agree.
pub(crate) fn severity_of_spread(deviation: f64) -> Option<Severity> {
    match deviation {
        d if d > SPREAD_BIASED_ABOVE => Some(Severity::Biases),
        d if d > SPREAD_NOTED_ABOVE => Some(Severity::Note),
        _ => None,
    }
}

/// Returns the fix, with the number or length of runs that would make the interval narrow. `within` is the variance that the
/// variation within the runs causes.
fn describe_fix(case: &Case, rates: &[f64], within: Option<f64>) -> String {
    let general_fix = RUNS_DISAGREE.fix;
    let logs: Vec<f64> = rates.iter().map(|r| r.ln()).collect();
    let variance = variance(&logs);
    if !variance.is_finite() {
        return general_fix.into();
    }
    let goal = format!("an interval of +- {}", show_share(GOAL_HALF_WIDTH));
    let Some(runs) = intervals::runs_for(variance, GOAL_HALF_WIDTH) else {
        return format!(
            "{general_fix} Without a fix, {goal} would take more than {MAX_RECOMMENDED_RUNS} runs."
        );
    };
    let seconds = case.window_ns() / 1e9 / rates.len() as f64;
    let plain =
        format!("{general_fix} Without a fix, about {runs} runs in total would give {goal} (--runs {runs})");
    let best = within.zip(overhead_s(case)).and_then(|(within, overhead_s)| {
        let spread = Variability { variance, variance_within: within, run_seconds: seconds, overhead_s };
        intervals::best_run_seconds(&spread)
    });
    match best {
        Some(best) if best > WORTH_ADVISING * seconds => {
            format!("{plain}; fewer, longer runs (about {best:.0} s each) would do the same.")
        }
        Some(_) => format!("{plain}; longer runs would hardly help."),
        None => format!("{plain}."),
    }
}

/// Returns the seconds that a run takes in addition to its window (preparation, warm-up, rest), or `None` if no run
/// follows another.
fn overhead_s(case: &Case) -> Option<f64> {
    let ends: Vec<u64> = case.record.runs.iter().filter_map(|r| Some(r.end.as_ref()?.at_ns)).collect();
    let overheads = case.runs.iter().filter_map(|ran| {
        let before = ends.iter().rev().find(|at| **at < ran.end.at_ns)?;
        Some((ran.end.at_ns - before).saturating_sub(ran.stream.window_ns) as f64 / 1e9)
    });
    let overheads: Vec<f64> = overheads.collect();
    (!overheads.is_empty()).then(|| median(&overheads))
}

/// Returns the variance of a run's mean, from the variation within the run.
fn variance_of_mean(series: &Series) -> f64 {
    variance(&series.rates) * correlation_time(&series.rates) / series.rates.len() as f64
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
fn uneven(rates: &'static [f64]) -> model::record::Record {
    let fixture = Fixture { runs: rates.len() as u32, ..Fixture::honest() };
    super::shaped(&fixture, 20, 1, |run, _| rates[run as usize])
}

#[test]
fn five_percent_is_a_note_and_twenty_five_percent_biases() {
    assert_eq!(RUNS_DISAGREE.severity(&uneven(&[9_600.0, 10_000.0, 10_400.0])), None, "4 %");
    let Ok(Answer::Finding(f)) = RUNS_DISAGREE.answer(&uneven(&[9_000.0, 10_000.0, 11_000.0])) else {
        panic!("silent")
    };
    // The runs needed for a deviation of 10 %, on logarithms: (2 x 0.1 / ln 1.025)^2.
    assert!(
        f.severity == Severity::Note && f.fix.as_ref().unwrap().contains("about 66 runs in total"),
        "{:?}",
        f.fix
    );
    assert!(f.fix.unwrap().contains("longer runs would hardly help"), "nothing varies within them");
    let Ok(Answer::Finding(f)) = RUNS_DISAGREE.answer(&(RUNS_DISAGREE.fires.unwrap())()) else {
        panic!("silent")
    };
    assert_eq!(f.severity, Severity::Biases);
    assert!(f.fix.unwrap().contains("more than 100 runs"));
    assert!(f.sentence.contains("9,000; 4,000") && f.sentence.contains("from run to run"), "{}", f.sentence);
}

#[test]
fn the_sentence_and_the_fix_do_not_contradict_each_other() {
    // Runs that vary within themselves as much as between each other, or less.
    let answer_with = |swing: f64| {
        let fixture = Fixture { runs: 5, ..Fixture::honest() };
        let rates = [9_000.0, 10_400.0, 9_600.0, 11_000.0, 10_000.0];
        let record = super::shaped(&fixture, 20, 1, |run, at| {
            rates[run as usize] * (1.0 + if (at * 20.0) as u64 % 10 < 5 { swing } else { -swing })
        });
        match RUNS_DISAGREE.answer(&record) {
            Ok(Answer::Finding(f)) => (f.sentence, f.fix.unwrap()),
            other => panic!("{other:?}"),
        }
    };
    for swing in [0.0, 0.02, 0.1, 0.3, 0.6] {
        let (sentence, fix) = answer_with(swing);
        assert!(!fix.contains("within"), "the reason appears once: {sentence} {fix}");
        assert!(!(swing == 0.0 && sentence.contains("explains this")), "{sentence}");
    }
    assert!(
        answer_with(0.0).0.contains("far less") && answer_with(0.6).0.contains("explains this"),
        "{:?}",
        answer_with(0.6)
    );
}

#[test]
fn two_runs_do_not_apply_and_intervals_are_not_needed() {
    assert_eq!(RUNS_DISAGREE.answer(&uneven(&[1_000.0, 9_000.0])), Ok(Answer::DoesNotApply));
    assert!(matches!(RUNS_DISAGREE.answer(&super::without_intervals()), Ok(Answer::Holds(..))));
}
