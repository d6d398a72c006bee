//! Whether the rates of rounds have settled, so that preconditioning may end.
//!
//! For: one place that says when enough was written before the first run. Not for: the rule itself, nor for calling a result
//! steady (`steadiness`).

use crate::snia;

/// Whether the storage is in the state that lasts, as far as the rates of the rounds so far tell: the criterion of the SNIA,
/// which is what a preconditioned drive is compared with elsewhere. Fewer than five have not settled, and no work at all never
/// does.
pub fn is_settled(rates: &[f64]) -> bool {
    snia::rule(rates).is_some_and(|s| s.met)
}

#[test]
fn five_rates_alike_have_settled_whatever_was_before() {
    assert!(is_settled(&[400.0, 250.0, 100.0, 101.0, 99.0, 100.0, 102.0]));
    assert!(is_settled(&[100.0; 5]) && !is_settled(&[100.0; 4]));
}

#[test]
fn a_decline_a_jump_and_nothing_at_all_have_not() {
    assert!(!is_settled(&[106.0, 103.0, 100.0, 97.0, 94.0]));
    assert!(!is_settled(&[85.0, 115.0, 100.0, 115.0, 85.0]));
    assert!(!is_settled(&[0.0; 5]) && !is_settled(&[]) && !is_settled(&[f64::NAN; 5]));
}
