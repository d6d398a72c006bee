//! Whether the rate was steady within each run (E01, E02, E03, E04).
//!
//! All four read the time series of the runs. E01 fits a line to the steady part of each run and fires if, in most runs,
//! its drift is significantly larger than allowed, or if most runs never settle; with --until steady, it relabels
//! results that did not become steady. E02 reports a step from one level to another, and derives from the device's
//! latency before and after the step whether the cause is in the device or above it. E03 cuts off the warm-up of each
//! run (MSER-5) and fires if most runs have one and the means with and without it differ significantly. E04 divides the
//! intervals of all runs by the correlation time of the rates: slow waves leave only a few independent observations.

use super::{LONG_S, has_step, is_long};
use crate::checks::prelude::*;
use crate::figures::iops;
use crate::figures::steadiness::{
    Cliff, Drifts, MAX_DRIFT, MIN_PER_MINUTE_S, MIN_STEP, RateChange, RunDrift, find_cliff,
    find_steps_of_run, whole_change,
};
use crate::figures::time_series::{DeviceWork, series_of_runs};
use stats::change::{Change, REQUIRED_ERRORS, REQUIRED_ERRORS_BY_LENGTH, Step, without_levels};
use stats::sample::mean;
use stats::series::{
    MATTERS_FROM, MIN_INDEPENDENT, SIGNIFICANT_ERRORS, Series, compare_warm_ups, count_independent,
};

pub(super) const NOT_STEADY: Check = Check {
    id: CheckId::E01,
    name: "NOT_STEADY",
    belief: "the rate had settled when it was measured",
    reads: "fathom's count of operations in each interval of a run (up to 32 a second), as operations per \
            second in steps of equal length. No kernel file.",
    formula: formula!(
        "Fits a straight line to the rate of each run without its warm-up, by least squares. Drift = \
         change of the line from beginning to end / mean. The limit is {minute} in runs of a minute or \
         more, {ten} from ten seconds on, {shorter} below.\n\
         - Relabelled with --until steady if the result did not become steady from round to round.\n\
         - Biased if, in most runs and in one direction, the whole 95 % interval of the drift is above the \
         limit.\n\
         - Biased if most runs were still settling: they have no steady part (MSER-5), and the rate \
         changes from quarter to quarter in one direction, each time by less. The last change is less than \
         half of the first, and all changes together are above the limit.\n\
         - Holds if, in most runs, the whole interval is within the limit.\n\
         - Not checked otherwise, or with fewer than {MIN_INDEPENDENT} independent steps: a drift that is \
         not proven may still exist.\n\
         - The warm-up is the beginning, at most half of the run, without which the mean is most certain \
         (MSER-5). The interval is widened by the correlation of neighbouring steps (Geyer's initial \
         positive sequence).\n\
         - Does not apply if E02 found a step.",
        minute = Share(MAX_DRIFT.minute),
        ten = Share(MAX_DRIFT.ten_seconds),
        shorter = Share(MAX_DRIFT.shorter)
    ),
    provoke: "`fathom run --rw randwrite --time 120s --runs 1 DIR` on a flash drive that was just trimmed. \
              `fathom run --rw randread --cache buffered --time 20s --runs 1 FILE` on a file that fits in \
              memory drifts up as the cache fills.",
    fix: "Use `fathom run --until steady`, which repeats the run until its rate no longer drifts. Or use a \
          longer --time (`--time 10m`), or a --warmup that covers the change (`--warmup 60s`). `fathom show \
          --explain FILE` prints the rate for each second.",
    accept: "Accept it if you want to measure the change over time.",
    // E02 reports steps, with the rate on each level.
    applies: |case| case.unsteady_rounds.is_some() || (!case.stream.load_changes() && !has_step(case)),
    ask: Ask::Alone(check_not_steady),
    #[cfg(test)]
    fires: Some(|| super::shaped(&Fixture::honest(), 100, 1, |_, t| 12_000.0 - 8_000.0 * t)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn check_not_steady(case: &Case) -> Known<Answer> {
    if let Some(rounds) = case.unsteady_rounds {
        return Ok(Answer::Finding(never_steady(case, rounds)));
    }
    let all_series = series_of_runs(case)?;
    let drifts = Drifts::within(&all_series);
    let changes: Vec<RateChange> = if drifts.most_are_settling() {
        all_series.iter().filter_map(whole_change).collect()
    } else {
        drifts.each.iter().map(RunDrift::change).collect()
    };
    let mean_of = |value: fn(&RateChange) -> f64| mean(&changes.iter().map(value).collect::<Vec<_>>());
    let share = mean_of(RateChange::share);
    let limit = drifts.each.first().map_or(0.0, |run| run.limit);
    let numbers =
        evidence([("drift_share", share), ("limit_share", limit), ("runs", all_series.len() as f64)]);
    if drifts.most_exceed() || drifts.most_are_settling() {
        let seconds = all_series.first().map_or(0.0, Series::seconds);
        let direction = if share < 0.0 { "falling" } else { "rising" };
        let [earlier, later] = if drifts.most_are_settling() {
            ["in the first quarter", "in the last"]
        } else {
            ["at the beginning", "at the end of a fitted line"]
        };
        // Averages the rates as shares of each run's mean, so that they agree with `share`. A steep line may begin below zero.
        let rate = |relative: f64| show_rate((mean_of(|change| change.mean) * relative).max(0.0));
        return finding!(
            Severity::Biases,
            numbers,
            "The rate was {direction} while it was measured: from {} IOPS {earlier} to {} IOPS {later}, by \
             {} of its mean within {}{}{}.",
            rate(mean_of(|change| change.from / change.mean)),
            rate(mean_of(|change| change.to / change.mean)),
            show_share(share.abs()),
            show_seconds(seconds),
            if drifts.most_are_settling() { ", most of it at the beginning" } else { "" },
            // The drift of a short run cannot be scaled to a minute.
            if seconds >= MIN_PER_MINUTE_S {
                format!(", {} a minute", show_share(share.abs() / seconds * 60.0))
            } else {
                String::new()
            }
        );
    }
    if drifts.most_are_within() {
        return holds("The rate did not drift within the runs.", numbers);
    }
    Err(if drifts.each.len() < all_series.len() {
        "the runs are too short: they contain too few independent observations".into()
    } else {
        "the rate varies so much that a drift can be neither shown nor ruled out; longer runs may decide it"
            .into()
    })
}

/// Returns the finding for --until steady if the rate did not become steady. It adds this condition to the name of the
/// result.
fn never_steady(case: &Case, rounds: usize) -> Detail {
    let rate = |ran: &CaseRun| Some((ran.run.start.repeat.saturating_add(1), iops(ran)?));
    let rates: Vec<(u32, f64)> = case.runs.iter().filter_map(rate).collect();
    let by_rate = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
    let ends = rates.iter().min_by(by_rate).zip(rates.iter().max_by(by_rate));
    let range = ends.map_or_else(String::new, |((low_round, low), (high_round, high))| {
        format!(
            " In the last {} it was between {} IOPS (round {low_round}) and {} IOPS (round {high_round}).",
            show_counted(rates.len() as u64, "round"),
            show_rate(*low),
            show_rate(*high)
        )
    });
    detail!(
        Severity::Relabels,
        evidence([("rounds", rounds as f64)]),
        "The rate did not become steady within {}.{range} The result shows the last rounds, and the next may differ.",
        show_counted(rounds as u64, "round")
    )
    .with_fix(
        "Use a larger --max-runs, or a longer --time if the rounds vary. The notes list the rates of the \
         rounds."
            .to_owned(),
    )
    .relabelled(Rename::Condition(format!("not steady after {}", show_counted(rounds as u64, "round"))))
}

/// At this size of a step or above, the result is relabelled if most runs have a step: the mean is then a rate that the
/// storage never had. Otherwise the step biases the result.
const STEP_RELABELLED_FROM: Share = Share(0.20);

pub(super) const CLIFF: Check = Check {
    id: CheckId::E02,
    name: "CLIFF",
    belief: "the rate stayed on one level",
    reads: "fathom's count of operations in each interval of a run (up to 32 a second). For the cause, \
            the `stat` file of the topmost device, read every half second during the run.",
    formula: formula!(
        "E-divisive (a change point search) finds the moment of a run before and after which the rates \
         differ most, on a logarithmic scale. Each level is searched again, so a burst with two cliffs has \
         three levels.\n\
         - The moment is a step under three conditions. The means and the medians of both sides differ by \
         {minute} in runs of a minute or more, {ten} from ten seconds on, {shorter} below. They differ by \
         at least {sure} + {more}/n standard errors in a series of n rates, widened by the correlation of \
         neighbours. At least half of the change happens at once. (In simulations, noise causes fewer than \
         1 % false alarms.)\n\
         - Relabelled if most runs have a step, and the largest is {STEP_RELABELLED_FROM} or more. The \
         levels become the result's name.\n\
         - Biased for any other step.\n\
         - Not checked if the levels of a run differ by as much, but in a way that could be chance or a \
         slow drift.\n\
         - The device's mean latency before and after the step shows the cause, if the device's counters \
         were read twice on each side. If the latency changed by at least the square root of the factor by \
         which the rate changed, the cause is in or below the device (its fast cache is full, garbage \
         collection, heat, a cloud's credits). Otherwise the cause is above it (a cgroup limit, the CPU, \
         the file system).",
        minute = Share(MIN_STEP.minute),
        ten = Share(MIN_STEP.ten_seconds),
        shorter = Share(MIN_STEP.shorter),
        sure = REQUIRED_ERRORS,
        more = REQUIRED_ERRORS_BY_LENGTH
    ),
    provoke: "`fathom run --rw randread --time 10s --runs 1 DIR`, and after 5 s in another shell a limit on \
              its cgroup: `echo \"MAJ:MIN 1000\" > \
              /sys/fs/cgroup/blkio/.../blkio.throttle.read_iops_device`. On a drive with a fast cache: \
              `fathom run --rw write --bs 1m --size 100g --time 5m --runs 1 DIR`.",
    fix: "Quote each level separately instead of the mean: a --warmup that ends after the step gives the \
          lasting rate, and a --time that ends before it gives the burst. `fathom show --explain FILE` \
          prints the rate for each second.",
    accept: "Accept it if you want the mixture, such as for a job that runs once.",
    applies: |case| !case.stream.load_changes(),
    ask: Ask::Alone(check_cliff),
    #[cfg(test)]
    fires: Some(|| super::shaped(&Fixture::honest(), 25, 1, |_, t| if t < 0.5 { 20_000.0 } else { 1_000.0 })),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn check_cliff(case: &Case) -> Known<Answer> {
    let all_series = series_of_runs(case)?;
    let Some(cliff) = find_cliff(&all_series) else {
        if all_series.iter().any(|series| find_steps_of_run(series) == Change::Unclear) {
            return not_checked(
                "the rate changes within a run, but in a way that could be chance or a slow drift; a longer run \
                 may decide it",
            );
        }
        let least = all_series.first().map_or(0.0, |c| MIN_STEP.for_run(c));
        let numbers = evidence([("smallest_step_share", least)]);
        return holds("The rate stayed on one level within each run.", numbers);
    };
    let (Some(ran), Some(series)) = (case.runs.get(cliff.worst_run), all_series.get(cliff.worst_run)) else {
        return Ok(Answer::DoesNotApply);
    };
    Ok(Answer::Finding(step_finding(case, ran, series, &cliff)))
}

fn step_finding(case: &Case, ran: &CaseRun, series: &Series, cliff: &Cliff) -> Detail {
    let step = cliff.largest();
    let second = series.second_of(step.at);
    let latencies = device_latencies(case, ran, series, cliff);
    let cause = cause_of_step(&step, &latencies);
    let (runs, runs_with_step) = (case.runs.len(), cliff.run_count);
    // A name describes the result, so most of its runs must have a step.
    let is_relabelled = step.size() >= STEP_RELABELLED_FROM && 2 * runs_with_step > runs;
    let severity = if is_relabelled { Severity::Relabels } else { Severity::Biases };
    let runs_note = if runs > 1 {
        format!(" (runs with such a step: {runs_with_step} of {runs})")
    } else {
        String::new()
    };
    let levels = cliff.describe(series);
    let [latency_before, latency_after] = latencies.unwrap_or([f64::NAN; 2]);
    detail!(
        severity,
        evidence([
            ("before_iops", step.before),
            ("after_iops", step.after),
            ("at_s", second),
            ("run", f64::from(ran.run.start.repeat)),
            ("steps", cliff.steps.len() as f64),
            ("runs_with_a_step", runs_with_step as f64),
            ("device_latency_before_ns", latency_before),
            ("device_latency_after_ns", latency_after),
        ]),
        "In run {} the rate was {levels}{runs_note}: the mean describes {}. {cause}",
        ran.run.start.repeat.saturating_add(1),
        if cliff.steps.len() == 1 { "neither" } else { "none of them" }
    )
    .relabelled(is_relabelled.then_some(Rename::Condition(levels)))
}

/// Returns the topmost device's mean latency in ns on the two levels next to the largest step. Leaves out the time between the
/// last snapshot before the step and the first one after it.
fn device_latencies(case: &Case, ran: &CaseRun, series: &Series, cliff: &Cliff) -> Known<[f64; 2]> {
    if !case.has_storage() {
        return Err("the job uses no storage".into());
    }
    let tops = case.top_layers()?;
    case.alone_on(&tops)?;
    let device = DeviceWork::from_run(ran, &tops)?;
    let place = |step: usize| series.from_ns + series.step_ns * step as f64;
    let largest = cliff.largest().at;
    let before = cliff.steps.iter().rev().find(|s| s.at < largest).map_or(0.0, |s| place(s.at));
    let next = cliff.steps.iter().find(|s| s.at > largest).map_or(series.rates.len(), |s| s.at);
    let (at, end) = (place(largest), place(next));
    let mean = |from, to| {
        let seen = device
            .within(from, to)
            .ok_or("the device's counters were not read twice on each side of the step")?;
        seen.latency_ns.ok_or_else(|| "the device completed no request on one side of the step".to_owned())
    };
    Ok([mean(before, at)?, mean(at, end)?])
}

fn cause_of_step(step: &Step, latencies: &Known<[f64; 2]>) -> String {
    let [before, after] = match latencies {
        Ok(both) => *both,
        Err(why) => return format!("The place of the cause is unknown: {why}."),
    };
    // The limit is halfway, on a logarithmic scale, between a device that did not change and one
    // that explains the whole step.
    let (rate, device) = (
        (step.before / step.after.max(f64::MIN_POSITIVE)).ln(),
        (after / before.max(f64::MIN_POSITIVE)).ln(),
    );
    let is_in_device = if rate > 0.0 { device >= rate / 2.0 } else { device <= rate / 2.0 };
    let numbers = format!("{} before and {} after", show_ns(before), show_ns(after));
    match (is_in_device, rate > 0.0) {
        (true, true) => format!(
            "The device's own latency rose ({numbers}), so the cause is probably in or below the device, \
             such as a full fast cache, garbage collection, heat, a cloud's credits or other load."
        ),
        (true, false) => format!(
            "The device's own latency fell ({numbers}), so the cause is probably in or below the device."
        ),
        (false, _) => format!(
            "The device's own latency did not change enough ({numbers}), so the cause is probably above the \
             device, such as a cgroup limit, the CPU or the file system."
        ),
    }
}

pub(super) const WARMUP_IN_MEAN: Check = Check {
    id: CheckId::E03,
    name: "WARMUP_IN_MEAN",
    belief: "the beginning of a run was like the rest",
    reads: "fathom's count of operations in each interval of a run (up to 32 a second). No kernel file.",
    formula: formula!(
        "Compares the mean of each run with and without its warm-up. The warm-up is the beginning, at most \
         half of the run, without which the mean is most certain (MSER-5, White 1997).\n\
         - A note if most runs have a warm-up, and the two means differ by more than {minute} in runs of a \
         minute ({ten} from ten seconds on, {shorter} below) and by more than {SIGNIFICANT_ERRORS} \
         standard errors. The number stays unchanged. The finding gives the number without the warm-up.\n\
         - Not checked if no run has a steady part.\n\
         - Does not apply if E02 found a step.",
        minute = Share(MATTERS_FROM.minute),
        ten = Share(MATTERS_FROM.ten_seconds),
        shorter = Share(MATTERS_FROM.shorter)
    ),
    provoke: "`fathom run --rw randread --cache buffered --warmup 0s --time 20s --runs 3 FILE` on a file \
              slightly larger than memory.",
    fix: "Use a --warmup that covers the beginning.",
    accept: "Accept it if you want to measure the beginning, such as an empty cache.",
    applies: |case| !case.stream.load_changes() && !has_step(case),
    ask: Ask::Alone(check_warmup_in_mean),
    #[cfg(test)]
    fires: Some(|| super::shaped(&Fixture::honest(), 100, 1, |_, t| 10_000.0 * (1.0 + (-t / 0.07).exp()))),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn check_warmup_in_mean(case: &Case) -> Known<Answer> {
    let all_series = series_of_runs(case)?;
    let warm_up = compare_warm_ups(&all_series)
        .ok_or("no run has a steady part to compare its beginning with; use a longer --time")?;
    let moved = warm_up.mean_with / warm_up.mean_without - 1.0;
    let numbers = evidence([
        ("with_iops", warm_up.mean_with),
        ("without_iops", warm_up.mean_without),
        ("warmup_s", warm_up.seconds),
        ("moved_share", moved),
    ]);
    if !warm_up.matters {
        return holds("The beginning of the runs was like the rest.", numbers);
    }
    detail!(
        Severity::Note,
        numbers,
        "The first {} differ from the rest and are part of the mean: {} IOPS with them and {} IOPS \
         without. The mean is {} {} because of them.",
        show_seconds(warm_up.seconds),
        show_rate(warm_up.mean_with),
        show_rate(warm_up.mean_without),
        show_share(moved.abs()),
        if moved > 0.0 { "higher" } else { "lower" }
    )
    .with_fix(format!("Use --warmup {:.0}s or more.", warm_up.seconds.max(1.0).ceil()))
    .found()
}

pub(super) const FEW_INDEPENDENT: Check = Check {
    id: CheckId::E04,
    name: "FEW_INDEPENDENT",
    belief: "a long run contains many independent observations",
    reads: "fathom's count of operations in each interval of a run (up to 32 a second). No kernel file.",
    formula: formula!(
        "The correlation time of the rates is 1 + 2 times the sum of their autocorrelations, up to the first \
         pair that is not positive (Geyer), after removing steps (E02). The observations are the intervals \
         of all runs divided by that time. Fires if {LONG_S} seconds of measuring or more contain fewer than \
         {MIN_INDEPENDENT}. Fewer observations in less time are not checked."
    ),
    provoke: "`fathom run --rw randwrite --cache buffered --time 30s --runs 1 DIR`, if writeback comes in \
              waves of many seconds.",
    fix: "Use a --time at least ten times as long as the slowest wave that `fathom show --explain FILE` \
          shows, or more --runs.",
    accept: "Accept it if only the total matters.",
    applies: |case| !case.stream.load_changes(),
    ask: Ask::Alone(check_few_independent),
    #[cfg(test)]
    fires: Some(|| waves(20)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn check_few_independent(case: &Case) -> Known<Answer> {
    let all_series = series_of_runs(case)?;
    let independent: f64 = all_series.iter().map(|c| count_independent(&without_steps(c))).sum();
    let seconds: f64 = all_series.iter().map(Series::seconds).sum();
    let numbers = evidence([("independent_observations", independent), ("seconds", seconds)]);
    // Allows for rounding errors.
    if independent >= MIN_INDEPENDENT - 1e-6 {
        return holds("The runs contain enough independent observations for a mean.", numbers);
    }
    // E12 reports short runs.
    if !is_long(seconds) {
        return Err("the runs are too short: they contain too few independent observations".into());
    }
    detail!(
        Severity::Biases,
        numbers,
        "{seconds:.0} s of measuring contain only {independent:.1} independent observations: the rate varies \
         in waves that are too long for a mean."
    )
    .with_fix(format!(
        "Use a longer --time or more --runs: about {:.0} s of measuring in total would contain \
         {MIN_INDEPENDENT:.0} of them.",
        (seconds * MIN_INDEPENDENT / independent).ceil()
    ))
    .found()
}

fn without_steps(series: &Series) -> Vec<f64> {
    match find_steps_of_run(series).steps() {
        [] => series.rates.clone(),
        found_steps => without_levels(&series.rates, found_steps),
    }
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use stats::series::generate_series;

#[test]
fn a_drift_in_most_runs_biases_and_a_small_drift_holds() {
    let drifting = |share: f64| {
        super::shaped(&Fixture::honest(), 100, 1, move |run, t| {
            let noise = generate_series(100, 0.02, 0.0, u64::from(run))[(t * 100.0) as usize];
            10_000.0 * noise * (1.0 + share * (t - 0.5))
        })
    };
    assert_eq!(NOT_STEADY.severity(&drifting(-0.4)), Some(Severity::Biases));
    assert_eq!(NOT_STEADY.severity(&drifting(0.5)), Some(Severity::Biases));
    assert!(matches!(NOT_STEADY.answer(&drifting(-0.15)), Ok(Answer::Holds(..))));
    let one =
        super::shaped(
            &Fixture::honest(),
            100,
            1,
            |run, t| if run == 0 { 12_000.0 - 6_000.0 * t } else { 9_000.0 },
        );
    assert_eq!(NOT_STEADY.severity(&one), None, "one run of five");
}

#[test]
fn until_steady_without_a_steady_rate_relabels() {
    let mut record = Fixture { runs: 4, ..Fixture::honest() }.record();
    record.header.plan.strategy = model::plan::Strategy::Steady { at_most: 25 };
    assert_eq!(NOT_STEADY.severity(&record), Some(Severity::Relabels));
    let Ok(Answer::Finding(f)) = NOT_STEADY.answer(&record) else { panic!("silent") };
    let rounds = "In the last 4 rounds it was between 10,000 IOPS (round 1) and 10,000 IOPS (round ";
    assert!(f.sentence.contains(rounds), "{}", f.sentence);
    let report = crate::judge(&record, &crate::Judging::default());
    assert!(report.headline.name.ends_with("not steady after 4 rounds"), "{}", report.headline.name);
    assert_eq!(crate::exit_code(&report), 1);
}

#[test]
fn a_rate_that_never_settles_is_found() {
    let record = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 120, 120, |_, t| {
        80.0 * (1.0 + (-2.0 * t).exp())
    });
    let Ok(Answer::Finding(f)) = NOT_STEADY.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains(" IOPS in the first quarter to "), "{}", f.sentence);
    assert!(f.sentence.contains("was falling") && f.sentence.contains("at the beginning"), "{}", f.sentence);
}

#[test]
fn the_limit_is_stricter_for_longer_runs() {
    let drifting = |seconds| {
        super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, seconds, |_, t| {
            500.0 * (1.0 - 0.12 * t)
        })
    };
    assert_eq!(NOT_STEADY.severity(&drifting(1)), None);
    let sentence = |seconds| match NOT_STEADY.answer(&drifting(seconds)) {
        Ok(Answer::Finding(found)) => found.sentence,
        other => panic!("{other:?}"),
    };
    assert!(sentence(60).ends_with(" % a minute."), "{}", sentence(60));
    assert!(sentence(60).contains(" IOPS at the beginning to 44"), "{}", sentence(60));
    assert!(sentence(15).ends_with("within 15.0 s."), "{}", sentence(15));
}

#[test]
fn noise_is_not_a_drift() {
    let mut alarms = 0;
    for seed in 0..150 {
        for (deviation, rho) in [(0.3, 0.0), (0.1, 0.8), (0.3, 0.8)] {
            let noisy = super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 40, 1, |_, t| {
                4_000.0 * generate_series(40, deviation, rho, seed)[(t * 40.0) as usize]
            });
            alarms += usize::from(NOT_STEADY.severity(&noisy).is_some());
        }
    }
    assert!(alarms <= 4, "{alarms} of 450 false alarms");
}

#[cfg(test)]
fn falling(ms_after: f64) -> Detail {
    let ops = 10_000;
    let mut record = super::shaped(&Fixture { runs: 1, ops, ..Fixture::honest() }, 100, 10, |_, t| {
        if t < 0.55 { 2_000.0 } else { 100.0 }
    });
    crate::figures::time_series::add_snapshots(
        &mut record,
        |t| if t <= 0.55 { 0.04 } else { ms_after },
        |t| {
            if t <= 0.55 { t / 0.55 * 0.95 } else { 0.95 + (t - 0.55) / 9.0 }
        },
    );
    let Ok(Answer::Finding(f)) = CLIFF.answer(&record) else { panic!("silent") };
    f
}

#[test]
fn the_device_latency_decides_on_which_side_the_cause_is() {
    let above = falling(0.05);
    assert!(above.sentence.contains("2,000 IOPS until 5.5 s and 100 IOPS after"), "{}", above.sentence);
    assert!(above.sentence.contains("cause is probably above the device"), "{}", above.sentence);
    assert!(matches!(above.renames, Some(Rename::Condition(ref c)) if c.contains("2,000 IOPS until 5.5 s")));
    assert!(falling(1.0).sentence.contains("in or below the device"), "{}", falling(1.0).sentence);
}

#[test]
fn counters_across_the_step_give_no_cause() {
    // A step after 0.1 s, and the first sample after 0.5 s.
    let record = super::shaped(&Fixture { runs: 1, ops: 10_000, ..Fixture::honest() }, 100, 1, |_, t| {
        if t < 0.1 { 20_000.0 } else { 4_000.0 }
    });
    let mut sampled = record;
    crate::figures::time_series::add_snapshots(&mut sampled, |_| 0.05, |t| t);
    let Ok(Answer::Finding(f)) = CLIFF.answer(&sampled) else { panic!("silent") };
    assert!(f.sentence.contains("is unknown: the device's counters were not read twice"), "{}", f.sentence);
}

#[test]
fn the_size_of_a_step_decides_the_severity() {
    let stepped = |seconds, after: f64| {
        super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 100, seconds, move |_, t| {
            let noise = generate_series(100, 0.02, 0.0, 5)[(t * 100.0) as usize];
            1_000.0 * noise * if t < 0.6 { 1.0 } else { after }
        })
    };
    assert_eq!(CLIFF.severity(&stepped(2, 0.55)), None);
    assert_eq!(CLIFF.severity(&stepped(2, 0.4)), Some(Severity::Relabels));
    assert_eq!(CLIFF.severity(&stepped(60, 0.88)), Some(Severity::Biases));
    assert_eq!(CLIFF.severity(&stepped(60, 0.98)), None);
}

#[test]
fn two_steps_are_reported_with_three_levels() {
    let record = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, 1, |_, t| match t {
        t if t < 0.3 => 20_000.0,
        t if t < 0.6 => 9_000.0,
        _ => 2_000.0,
    });
    let Ok(Answer::Finding(f)) = CLIFF.answer(&record) else { panic!("silent") };
    let levels = "20,000 IOPS until 0.3 s, 9,000 IOPS until 0.6 s and 2,000 IOPS after";
    assert!(f.sentence.contains(levels) && f.sentence.contains("none of them"), "{}", f.sentence);
    assert_eq!((f.evidence["before_iops"].round(), f.evidence["steps"]), (9_000.0, 2.0));
}

#[test]
fn a_step_in_a_few_runs_biases_without_relabelling() {
    let rate = |run, t| if run == 3 && t > 0.5 { 1_000.0 } else { 20_000.0 };
    assert_eq!(CLIFF.severity(&super::shaped(&Fixture::honest(), 25, 1, rate)), Some(Severity::Biases));
}

#[test]
fn a_step_without_device_counters_has_no_cause() {
    let record = super::shaped(&Fixture { stat_unreadable: true, ..Fixture::honest() }, 25, 1, |_, t| {
        if t < 0.5 { 20_000.0 } else { 1_000.0 }
    });
    let Ok(Answer::Finding(f)) = CLIFF.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("is unknown"), "{}", f.sentence);
}

#[test]
fn a_warm_up_is_a_note_with_both_means_and_noise_is_silent() {
    let Ok(Answer::Finding(f)) = WARMUP_IN_MEAN.answer(&(WARMUP_IN_MEAN.fires.unwrap())()) else {
        panic!("silent")
    };
    assert_eq!(f.severity, Severity::Note);
    assert!((f.evidence["without_iops"] / 10_000.0 - 1.0).abs() < 0.02, "{:?}", f.evidence);
    let weak = super::shaped(&Fixture::honest(), 100, 1, |_, t| 10_000.0 * (1.0 + 0.3 * (-t / 0.07).exp()));
    assert_eq!(WARMUP_IN_MEAN.severity(&weak), None);
    let alarms = (0..100).filter(|seed| {
        let noisy = super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 25, 1, |_, t| {
            4_000.0 * generate_series(25, 0.2, 0.3, *seed)[(t * 25.0) as usize]
        });
        WARMUP_IN_MEAN.severity(&noisy).is_some()
    });
    assert!(alarms.count() <= 5);
}

/// A single run with two slow waves.
#[cfg(test)]
fn waves(seconds: u64) -> model::record::Record {
    super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, seconds, |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 9.0).sin())
    })
}

#[test]
fn slow_waves_bias_and_fast_waves_hold() {
    assert_eq!(FEW_INDEPENDENT.severity(&waves(20)), Some(Severity::Biases));
    assert!(FEW_INDEPENDENT.answer(&waves(2)).is_err_and(|why| why.contains("too short")));
    let quick = super::shaped(&Fixture { runs: 1, ..Fixture::honest() }, 100, 20, |_, t| {
        1_000.0 * (1.0 + 0.5 * (t * 400.0).sin())
    });
    assert!(matches!(FEW_INDEPENDENT.answer(&quick), Ok(Answer::Holds(..))));
}
