//! Whether the rates of rounds have settled, so that preconditioning may end.
//!
//! For: the criterion of the SNIA, which is what a preconditioned drive is held against. Not for: calling a result steady: it
//! takes a decline of 2 % a round for a steady state, and noise fails it (`steadiness` judges results).

use crate::series::mean;

/// Rounds that are looked at.
const WINDOW: usize = 5;
/// Largest less smallest of them, as a share of their mean.
const EXCURSION: f64 = 0.20;
/// The same of the line fitted to them.
const SLOPE: f64 = 0.10;

/// Whether the last five of these rates differ by at most 20 % of their mean, and the line fitted to them rises or falls by at
/// most 10 % of it (SNIA Solid State Storage Performance Test Specification 2.0, steady state). Fewer than five have not
/// settled, and no work at all never does.
pub fn is_settled(rates: &[f64]) -> bool {
    let Some(last) = rates.len().checked_sub(WINDOW).and_then(|from| rates.get(from..)) else { return false };
    let centre = mean(last);
    let (low, high) = last.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    // Distances of five rounds from the middle one: -2 to 2, with 10 as the sum of their squares.
    let slope: f64 = last.iter().zip([-2.0, -1.0, 0.0, 1.0, 2.0]).map(|(v, at)| v * at).sum::<f64>() / 10.0;
    centre > 0.0 && high - low <= EXCURSION * centre && 4.0 * slope.abs() <= SLOPE * centre
}

#[test]
fn five_rates_alike_have_settled_whatever_was_before() {
    assert!(is_settled(&[400.0, 250.0, 100.0, 101.0, 99.0, 100.0, 102.0]));
    assert!(is_settled(&[100.0; 5]) && !is_settled(&[100.0; 4]));
}

#[test]
fn a_decline_a_jump_and_nothing_at_all_have_not() {
    // 11 % over the window, and so by its line; none apart by 20 %.
    assert!(!is_settled(&[105.5, 102.8, 100.0, 97.2, 94.5]));
    assert!(is_settled(&[104.5, 102.3, 100.0, 97.7, 95.5]));
    // Symmetric, so its line is flat; apart by 30 %.
    assert!(!is_settled(&[85.0, 115.0, 100.0, 115.0, 85.0]));
    assert!(!is_settled(&[0.0; 5]) && !is_settled(&[]) && !is_settled(&[f64::NAN; 5]));
}
