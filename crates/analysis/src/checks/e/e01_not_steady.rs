//! E01: a rate that was still drifting when the run ended. Fits a line to the steady part of each run and fires
//! if its drift is significantly larger than allowed in most runs, or if most runs never settle. With --until steady,
//! relabels results that did not become steady.

use crate::checks::prelude::*;
use crate::figures::steadiness::{DRIFT_TO, Drifts, cliff, whole_change};
use crate::figures::time_series::courses;
use stats::sample::mean;
use stats::series::{FEWEST, Series};

/// Least seconds of a run whose drift is also reported per minute.
const A_MINUTE_FROM_S: f64 = 10.0;

pub(super) const CHECK: Check = Check {
    id: CheckId::E01,
    name: "NOT_STEADY",
    belief: "the rate had settled when it was measured",
    reads: "fathom's own intervals (up to 32 a second), as operations per second in steps of equal length. \
            No kernel file.",
    formula: formula!(
        "The warm-up is cut off (MSER-5, at most half of the run). A straight line is fitted by least \
         squares; its 95 % interval is widened by the correlation of neighbouring steps (Geyer's initial \
         positive sequence). Drift is the change of the line from beginning to end, divided by the mean. \
         Fires if that interval is above {minute} in runs of a minute or more, {ten} from ten seconds on, \
         {shorter} below, in most runs and in one direction. Also fires if most runs have no steady part \
         (MSER-5) and each quarter changes less than the one before. Holds if the interval is within that \
         limit. Otherwise, or with fewer than {FEWEST} independent steps, it is not checked: no proof of \
         change is no proof of steadiness. With --until steady it also relabels results that did not become \
         steady from round to round.",
        minute = Share(DRIFT_TO.minute),
        ten = Share(DRIFT_TO.ten_seconds),
        shorter = Share(DRIFT_TO.shorter)
    ),
    provoke: "`fathom run --rw randwrite --time 120s --runs 1 DIR` on a flash drive that was just trimmed. \
              `fathom run --rw randread --cache buffered --time 20s --runs 1 FILE` on a file that fits in \
              memory drifts up as the cache fills.",
    fix: "Measure longer (`--time 10m`), or let the storage settle first (`--warmup 60s`). `fathom show \
          --explain FILE` prints the rate for each second.",
    accept: "Accept it if you want to measure the change over time.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| super::shaped(&crate::fixture::Fixture::honest(), 100, 1, |_, t| 12_000.0 - 8_000.0 * t)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn evaluate(case: &Case) -> Known<Answer> {
    if let Some(rounds) = case.unsteady {
        return Ok(Answer::Finding(never_steady(rounds)));
    }
    if case.stream.load_changes() {
        return Ok(Answer::DoesNotApply);
    }
    let courses = courses(case)?;
    // E02 reports steps, with all levels.
    if cliff(&courses).is_some() {
        return Ok(Answer::DoesNotApply);
    }
    let drifts = Drifts::within(&courses);
    let shares: Vec<f64> = if drifts.settle() {
        courses.iter().filter_map(whole_change).collect()
    } else {
        drifts.each.iter().map(|(d, _)| d.share).collect()
    };
    let limit = drifts.each.first().map_or(0.0, |d| d.1);
    let numbers =
        evidence([("drift_share", mean(&shares)), ("limit_share", limit), ("runs", courses.len() as f64)]);
    if drifts.exceed() || drifts.settle() {
        let (seconds, share) = (courses.first().map_or(0.0, Series::seconds), mean(&shares));
        let direction = if share < 0.0 { "falling" } else { "rising" };
        return finding!(
            Severity::Biased,
            numbers,
            "The rate was still {direction} when the run ended: by {} of its mean within {}{}{}.",
            show_share(share.abs()),
            show_seconds(seconds),
            if drifts.settle() { ", most of it at the beginning" } else { "" },
            // A drift within a second cannot be scaled to a minute.
            if seconds >= A_MINUTE_FROM_S {
                format!(", {} a minute", show_share(share.abs() / seconds * 60.0))
            } else {
                String::new()
            }
        );
    }
    if drifts.hold() {
        return holds("The rate did not drift within the runs.", numbers);
    }
    Err(if drifts.each.len() < courses.len() {
        "the runs are too short: they contain too few independent observations".into()
    } else {
        "the rate varies so much that a drift can be neither shown nor ruled out; longer runs would settle it"
            .into()
    })
}

/// Returns the finding for --until steady if the rate did not become steady. The name keeps this condition.
fn never_steady(rounds: usize) -> Detail {
    detail!(
        Severity::Rename,
        evidence([("rounds", rounds as f64)]),
        "The rate did not become steady within {rounds} rounds: the result shows the last ones, and the next \
         may differ."
    )
    .with_cure(
        "Use a larger --max-runs, or a longer --time if the rounds vary. The notes list all rounds."
            .to_owned(),
    )
    .relabelled(Rename::Condition(format!("not steady after {rounds} rounds")))
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use stats::series::flat;

#[test]
fn a_drift_in_most_runs_biases_and_a_small_drift_holds() {
    let drifting = |share: f64| {
        super::shaped(&Fixture::honest(), 100, 1, move |run, t| {
            let noise = flat(100, 0.02, 0.0, u64::from(run))[(t * 100.0) as usize];
            10_000.0 * noise * (1.0 + share * (t - 0.5))
        })
    };
    assert_eq!(CHECK.severity(&drifting(-0.4)), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&drifting(0.5)), Some(Severity::Biased));
    assert!(matches!(CHECK.answer(&drifting(-0.15)), Ok(Answer::Holds(..))));
    let one =
        super::shaped(
            &Fixture::honest(),
            100,
            1,
            |run, t| if run == 0 { 12_000.0 - 6_000.0 * t } else { 9_000.0 },
        );
    assert_eq!(CHECK.severity(&one), None, "one run of five");
}

#[test]
fn until_steady_without_a_steady_rate_relabels() {
    let mut record = Fixture { runs: 4, ..Fixture::honest() }.record();
    record.header.plan.strategy = model::plan::Strategy::Steady { at_most: 25 };
    assert_eq!(CHECK.severity(&record), Some(Severity::Rename));
    let report = crate::judge(&record, &crate::Judging::default());
    assert!(report.headline.name.ends_with("not steady after 4 rounds"), "{}", report.headline.name);
    assert_eq!(crate::exit_code(&report), 1);
}

#[test]
fn a_rate_that_never_settles_is_found() {
    let record = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 120, 120, |_, t| {
        80.0 * (1.0 + (-2.0 * t).exp())
    });
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(
        f.sentence.contains("still falling") && f.sentence.contains("at the beginning"),
        "{}",
        f.sentence
    );
}

#[test]
fn the_limit_is_stricter_for_longer_runs() {
    let drifting = |seconds| {
        super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, seconds, |_, t| {
            500.0 * (1.0 - 0.12 * t)
        })
    };
    assert_eq!(CHECK.severity(&drifting(1)), None);
    assert_eq!(CHECK.severity(&drifting(60)), Some(Severity::Biased));
}

#[test]
fn noise_is_not_a_drift() {
    let mut alarms = 0;
    for seed in 0..150 {
        for (deviation, rho) in [(0.3, 0.0), (0.1, 0.8), (0.3, 0.8)] {
            let noisy = super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 40, 1, |_, t| {
                4_000.0 * flat(40, deviation, rho, seed)[(t * 40.0) as usize]
            });
            alarms += usize::from(CHECK.severity(&noisy).is_some());
        }
    }
    assert!(alarms <= 4, "{alarms} of 450 false alarms");
}
