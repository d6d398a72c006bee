//! Student's factor: how many standard errors a 95 % interval reaches to either side.
//!
//! For: every interval of this crate that rests on an estimated variance. Not for: the errors themselves.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Both tails outside a 95 % interval leave this much below the upper end.
const UPPER: f64 = 0.975;

/// The factor with so many degrees of freedom, which need not be whole; `None` where there are none.
pub fn factor(degrees: f64) -> Option<f64> {
    quantile(UPPER, degrees)
}

/// The quantile of any rank, for who is asked many times and may err more rarely at each.
pub fn quantile(rank: f64, degrees: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, degrees).ok().map(|t| t.inverse_cdf(rank)).filter(|t| t.is_finite())
}

/// The chance of more than so many standard errors to one side.
pub fn beyond(errors: f64, degrees: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, degrees).ok().map(|t| t.sf(errors))
}

#[test]
fn far_quantiles_are_those_of_the_tables() {
    for (rank, degrees, t) in [(0.9999, 3.0, 22.204), (0.9999, 10.0, 5.694)] {
        assert!(quantile(rank, degrees).is_some_and(|q| (q - t).abs() < 0.001), "{rank} {degrees}");
    }
}

#[test]
fn no_degrees_of_freedom_have_no_factor() {
    assert_eq!((factor(0.0), factor(-1.0), factor(f64::NAN)), (None, None, None));
}
