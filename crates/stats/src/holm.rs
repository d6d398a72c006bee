//! Many looks at once: chances that allow for it.
//!
//! For: Holm's step-down procedure. Not for: which numbers are looked at together.
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

/// The chances with those that were looked at together allowed for, in the same order: compared with 5 % each, the chance that
/// any of them is called different without being so stays below 5 %.
pub fn adjusted(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|x, y| chances[*x].total_cmp(&chances[*y]));
    let mut out = vec![1.0; chances.len()];
    let mut largest = 0.0_f64;
    for (step, at) in order.into_iter().enumerate() {
        largest = largest.max(chances[at] * (chances.len() - step) as f64);
        out[at] = largest.min(1.0);
    }
    out
}

#[test]
fn chances_are_those_of_the_tables() {
    // statsmodels' multipletests(p, method="holm").
    let got = adjusted(&[0.01, 0.04, 0.03, 0.005]);
    for (got, expected) in got.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
    }
    assert_eq!(adjusted(&[0.03]), [0.03]);
    assert_eq!(adjusted(&[]), Vec::<f64>::new());
    assert_eq!(adjusted(&[0.9, 0.8, f64::NAN]).len(), 3);
}
