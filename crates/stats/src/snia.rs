//! The steady state criterion of the SNIA, word for word.
//!
//! For: saying what that rule says, beside our own answer and never mixed with it. Not for: our own answer (`steadiness`):
//! the rule takes a decay of 2 % a round for steady and the noise of a shared disk for unsteady.
//!
//! Solid State Storage Performance Test Specification 2.0, steady state: within five rounds the largest and the smallest value
//! differ by at most 20 % of the average, and the ends of the fitted line by at most 10 %.

use crate::drift::Line;
use crate::sample::mean;
use crate::series::Series;
use model::figures::Snia;

/// Rounds that are judged: the last five.
const WINDOW: usize = 5;
/// Largest less smallest by the average.
const EXCURSION_TO: f64 = 0.20;
/// End of the line less its beginning by the average.
const SLOPE_TO: f64 = 0.10;
/// Length of a round in the specification.
const ROUND_S: f64 = 60.0;

/// What the rule says of rates, one per round; `None` with fewer than five, or where nothing was done in the last ones.
pub fn rule(rounds: &[f64]) -> Option<Snia> {
    let last = rounds.get(rounds.len().checked_sub(WINDOW)?..)?;
    let line = Line::through(last)?;
    let (least, most) = last.iter().fold((f64::MAX, 0.0_f64), |(a, b), r| (a.min(*r), b.max(*r)));
    let excursion = (most - least) / line.centre;
    let slope = line.slope.abs() * (WINDOW - 1) as f64 / line.centre;
    (excursion.is_finite() && slope.is_finite()).then_some(Snia {
        met: excursion <= EXCURSION_TO && slope <= SLOPE_TO,
        rounds: rounds.len() as u32,
        excursion,
        slope,
    })
}

/// A single run as rounds: its minutes where it has five, else its fifths.
pub fn rounds_of(course: &Series) -> Vec<f64> {
    let steps = course.rates.len();
    let rounds = ((course.seconds() / ROUND_S) as usize).clamp(WINDOW, steps.max(WINDOW));
    let edge = |i: usize| i * steps / rounds;
    (0..rounds).filter_map(|i| Some(mean(course.rates.get(edge(i)..edge(i + 1))?))).collect()
}

#[test]
fn the_limits_are_those_of_the_specification() {
    // Excursion 20 %, no slope; then just above.
    assert!(rule(&[105.0, 90.0, 110.0, 90.0, 105.0]).is_some_and(|s| s.met));
    assert!(rule(&[105.0, 89.9, 110.2, 89.9, 105.0]).is_some_and(|s| !s.met && s.slope < 1e-9));
    // A line of 10 % from end to end; then 12 %.
    assert!(rule(&[105.0, 102.5, 100.0, 97.5, 95.0]).is_some_and(|s| s.met && (s.slope - 0.1).abs() < 1e-12));
    assert!(rule(&[106.0, 103.0, 100.0, 97.0, 94.0]).is_some_and(|s| !s.met && s.excursion < 0.13));
}

#[test]
fn the_last_five_count_and_four_are_no_window() {
    assert!(rule(&[9.0, 900.0, 100.0, 100.0, 100.0, 100.0, 100.0]).is_some_and(|s| s.met && s.rounds == 7));
    assert_eq!((rule(&[1.0; 4]), rule(&[0.0; 5]), rule(&[])), (None, None, None));
}

#[test]
fn a_long_run_has_minutes_and_a_short_one_fifths() {
    let run = |seconds: usize| Series {
        from_ns: 0.0,
        step_ns: seconds as f64 * 1e9 / 100.0,
        rates: (0..100).map(f64::from).collect(),
    };
    assert_eq!(rounds_of(&run(20)), [9.5, 29.5, 49.5, 69.5, 89.5]);
    assert_eq!((rounds_of(&run(600)).len(), rounds_of(&run(60_000)).len()), (10, 100));
}
