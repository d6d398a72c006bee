//! Statistics: formulas over plain numbers. Published formulas name the paper or book that they
//! come from. [`sample`] has what most other modules need: mean, variance, median and quantiles of
//! Student's t.
//!
//! This is a separate crate so that it is optimized in debug builds too, because tests draw millions of samples.
#![forbid(unsafe_code)]
// Tests may unwrap known values.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bimodality;
pub mod change;
pub mod comparison;
pub mod intervals;
pub mod knee;
pub mod series;
pub mod steady_state;
#[cfg(test)]
mod tests;

/// Mean, variance, median, and Student's t.
pub mod sample {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    /// Returns the mean; 0 without values.
    pub fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }

    /// Returns the variance of a population as estimated from a sample; 0 with fewer than two
    /// values.
    pub fn variance(values: &[f64]) -> f64 {
        let centre = mean(values);
        values.iter().map(|v| (v - centre).powi(2)).sum::<f64>()
            / values.len().saturating_sub(1).max(1) as f64
    }

    /// Returns the median; 0 without values.
    pub fn median(values: &[f64]) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => at(n / 2),
            n => f64::midpoint(at(n / 2 - 1), at(n / 2)),
        }
    }

    /// Rank of the upper end of a two-sided 95 % interval.
    const UPPER_RANK: f64 = 0.975;

    /// Returns Student's critical value: how many standard errors a two-sided 95 % interval reaches to either side. The `degrees` of
    /// freedom may be fractional. `None` if they are not positive.
    pub fn critical_value(degrees: f64) -> Option<f64> {
        quantile(UPPER_RANK, degrees)
    }

    /// Returns a quantile of Student's t distribution; `None` if `degrees` are not positive, or if the quantile is infinite.
    pub fn quantile(rank: f64, degrees: f64) -> Option<f64> {
        StudentsT::new(0.0, 1.0, degrees).ok().map(|t| t.inverse_cdf(rank)).filter(|t| t.is_finite())
    }

    /// Returns the one-sided probability of a deviation above this many standard errors by
    /// Student's t; `None` if `degrees` are not positive.
    pub fn probability_above(standard_errors: f64, degrees: f64) -> Option<f64> {
        StudentsT::new(0.0, 1.0, degrees).ok().map(|t| t.sf(standard_errors))
    }

    #[test]
    fn far_quantiles_match_published_tables() {
        for (rank, degrees, t) in [(0.9999, 3.0, 22.204), (0.9999, 10.0, 5.694)] {
            assert!(quantile(rank, degrees).is_some_and(|q| (q - t).abs() < 0.001), "{rank} {degrees}");
        }
    }

    #[test]
    fn there_is_no_critical_value_without_degrees_of_freedom() {
        assert_eq!((critical_value(0.0), critical_value(-1.0), critical_value(f64::NAN)), (None, None, None));
    }
}
