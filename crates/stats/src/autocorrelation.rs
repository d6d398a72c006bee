//! How many observations a series really holds, when neighbours resemble each other.
//!
//! For: the autocorrelation time (Geyer's initial positive sequence), and what short series hide of it. Not for: what is
//! concluded from it.

use crate::sample::mean;

/// Independent observations below which a mean has no interval and a line is not fitted: rule n_eff < 10 of the literature on
/// steady states.
pub const FEWEST: f64 = 10.0;

/// Standard errors of the correlation of neighbours from which there surely is one.
const SURE_CORRELATION: f64 = 2.0;
/// Correlation of neighbours above which a series is no longer told from a walk.
const MOST_CORRELATION: f64 = 0.99;

/// How many neighbouring values say as much as one independent one; at least 1.
///
/// 1 + 2 sum of the autocorrelations, cut where a pair of them is no longer positive: behind that there is only noise (Geyer,
/// Practical Markov Chain Monte Carlo, Statistical Science 1992). Judged over n values, the correlation rho of neighbours comes
/// out too low by (1 + 4 rho) / n (Marriott and Pope, Biometrika 1954). Where there surely is one, that is put back, and the
/// time is at least (1 + rho) / (1 - rho), which it is where each value follows from the last.
pub fn correlation_time(values: &[f64]) -> f64 {
    let centre = mean(values);
    let off: Vec<f64> = values.iter().map(|v| v - centre).collect();
    let power: f64 = off.iter().map(|o| o * o).sum();
    let n = values.len().max(1) as f64;
    // Equal values differ by rounding only.
    if power <= 1e-18 * centre * centre * n {
        return 1.0;
    }
    let rho = |lag: usize| {
        let product: f64 = off.iter().zip(off.iter().skip(lag)).map(|(a, b)| a * b).sum();
        product / power
    };
    let mut time = 1.0;
    let mut lag = 1;
    while lag + 1 < values.len() {
        let (one, other) = (rho(lag), rho(lag + 1));
        if one + other <= 0.0 {
            break;
        }
        time += 2.0 * (one + other);
        lag += 2;
    }
    let seen = rho(1);
    if seen > SURE_CORRELATION / n.sqrt() {
        let whole = (seen + (1.0 + 4.0 * seen) / n).min(MOST_CORRELATION);
        time = time.max((1.0 + whole) / (1.0 - whole));
    }
    time.clamp(1.0, n)
}

/// Independent observations in a series.
pub fn observations(values: &[f64]) -> f64 {
    values.len() as f64 / correlation_time(values)
}

#[cfg(test)]
use crate::known::flat;

#[cfg(test)]
fn typical(rho: f64) -> f64 {
    mean(&(0..40).map(|seed| correlation_time(&flat(2000, 0.1, rho, seed))).collect::<Vec<_>>())
}

#[test]
fn the_time_of_an_ar1_process_is_that_of_the_books() {
    // (1 + rho) / (1 - rho).
    for (rho, truth) in [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)] {
        let got = typical(rho);
        assert!((got / truth - 1.0).abs() < 0.15, "rho {rho}: {got} against {truth}");
    }
}

#[test]
fn constant_and_empty_series_do_not_divide_by_zero() {
    assert!((correlation_time(&[5.0; 30]) - 1.0).abs() < 1e-12);
    assert!((observations(&[5.0; 30]) - 30.0).abs() < 1e-12);
    assert!(correlation_time(&[]) >= 1.0 && observations(&[]) <= 0.0);
}
