//! Tests of the word for runs whose behaviour is known.

use crate::figures::steadiness::*;
use stats::series::flat;

/// The steadiness of `runs` runs of `seconds`, whose rate depends on the run and on the share of its time. A value a second, or at least
/// a hundred in all.
fn steadiness_of(runs: usize, seconds: f64, deviation: f64, rate: impl Fn(usize, f64) -> f64) -> Steadiness {
    let n = (seconds as usize).max(100);
    let course = |run: usize| {
        let noise = flat(n, deviation, 0.0, run as u64 + 7).into_iter().enumerate();
        let rates = noise.map(|(i, v)| 1000.0 * v * rate(run, i as f64 / n as f64)).collect();
        Series { from_ns: 0.0, step_ns: seconds * 1e9 / n as f64, rates }
    };
    let all: Vec<Series> = (0..runs).map(course).collect();
    let rates = all.iter().map(|c| mean(&c.rates)).collect();
    judge_steadiness(Ok(all), rates, seconds * runs as f64)
}

#[test]
fn a_long_quiet_run_is_steady_with_its_drift_by_the_minute() {
    let s = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + 0.01 * t);
    assert_eq!(s.state, State::Steady, "{}", s.sentence);
    let drift = s.drift_per_minute.unwrap();
    assert!(drift.interval[0] < 0.005 && drift.interval[1] > 0.005, "{drift:?}");
    assert!((drift.value - f64::midpoint(drift.interval[0], drift.interval[1])).abs() < 1e-12);
    assert!(s.sentence.starts_with("Within 120.0 s the rate changed by"), "{}", s.sentence);
    assert!(s.warm_up_s <= 0.0 && s.snia.is_some_and(|s| s.met && s.rounds == 5));
}

#[test]
fn short_runs_are_unproven_and_report_the_needed_time() {
    for seconds in [0.3, 1.0, 5.0] {
        let s = steadiness_of(5, seconds, 0.01, |_, _| 1.0);
        assert_eq!(s.state, State::Unproven);
        assert!(s.sentence.contains("(--time 12s)"), "{}", s.sentence);
        assert_eq!(s.drift_per_minute, None, "{seconds} s say nothing about a minute");
        assert!(s.snia.is_some_and(|s| s.met), "the rule of the SNIA is not mixed with ours");
    }
    let none = judge_steadiness(Err("the run is too short for that".into()), vec![9.0], 0.1);
    assert_eq!(none.sentence, "Not established: the run is too short for that.");
}

#[test]
fn noise_and_waves_report_how_much_longer_it_takes() {
    let noisy = steadiness_of(1, 120.0, 0.10, |_, _| 1.0);
    assert!(noisy.sentence.contains("neither shown nor ruled out; runs of about"), "{}", noisy.sentence);
    let waves = steadiness_of(1, 120.0, 0.01, |_, t| 1.0 + 0.3 * (t * 12.0).sin());
    assert!(
        waves.sentence.contains("goes in waves") && waves.sentence.contains("(--time "),
        "{}",
        waves.sentence
    );
    assert_eq!((noisy.state, waves.state), (State::Unproven, State::Unproven));
}

#[test]
fn drift_from_run_to_run_counts() {
    let steady = steadiness_of(5, 60.0, 0.01, |_, _| 1.0);
    assert_eq!(steady.state, State::Steady, "{}", steady.sentence);
    assert!(steady.sentence.contains("from the first of 5 runs to the last"), "{}", steady.sentence);
    let falling = steadiness_of(5, 60.0, 0.01, |run, _| 1.0 - 0.03 * run as f64);
    assert_eq!(falling.state, State::Drifting, "{}", falling.sentence);
    assert!(falling.drift_per_minute.is_some_and(|d| d.interval[1] < 0.0), "{falling:?}");
    let two = steadiness_of(2, 60.0, 0.01, |_, _| 1.0);
    assert!(two.state == State::Unproven && two.sentence.contains("takes 3 runs"), "{}", two.sentence);
    let uneven = steadiness_of(5, 60.0, 0.01, |run, _| [1.0, 0.8, 1.2, 0.9, 1.1][run]);
    assert!(
        uneven.state == State::Unproven && uneven.sentence.contains("neither shown"),
        "{}",
        uneven.sentence
    );
    let used_up = steadiness_of(10, 6.0, 0.01, |run, _| if run < 5 { 3.0 } else { 1.0 });
    assert_eq!(used_up.state, State::Cliff, "{}", used_up.sentence);
    assert!(used_up.sentence.contains("IOPS until run 5 and"), "{}", used_up.sentence);
}

#[test]
fn every_level_of_a_cliff_is_reported_without_a_drift() {
    let s = steadiness_of(1, 120.0, 0.02, |_, t| {
        if t < 0.25 {
            20.0
        } else if t < 0.6 {
            5.0
        } else {
            1.0
        }
    });
    assert_eq!((s.state, s.drift_per_minute), (State::Cliff, None), "{}", s.sentence);
    assert!(
        s.sentence.contains("IOPS until 30.0 s, ") && s.sentence.contains("IOPS until 72.0 s and "),
        "{}",
        s.sentence
    );
    let one = steadiness_of(5, 60.0, 0.02, |run, t| if run == 2 && t > 0.5 { 0.5 } else { 1.0 });
    assert!(one.sentence.starts_with("1 of 5 runs has steps; in run 3"), "{}", one.sentence);
}

#[test]
fn a_steady_fall_is_a_drift_and_a_slowing_one_a_warm_up() {
    let falling = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 - 0.3 * t);
    assert_eq!(falling.state, State::Drifting, "{}", falling.sentence);
    let settling = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + (-2.0 * t).exp());
    assert_eq!(settling.state, State::WarmUp, "{}", settling.sentence);
    assert!((settling.warm_up_s - 120.0).abs() < 1e-9);
    let warm = steadiness_of(1, 120.0, 0.02, |_, t| 1.0 + (-12.0 * t).exp());
    assert_eq!(warm.state, State::Steady, "{}", warm.sentence);
    assert!((15.0..=60.0).contains(&warm.warm_up_s), "{}", warm.warm_up_s);
}

#[cfg(test)]
mod error_rates;
