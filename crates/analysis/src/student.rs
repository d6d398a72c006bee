//! Student's factor: how many standard errors a 95 % interval reaches to either side.
//!
//! For: every interval of this crate that rests on an estimated variance. Not for: the errors themselves.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Both tails outside a 95 % interval leave this much below the upper end.
const UPPER: f64 = 0.975;

/// The factor with so many degrees of freedom, which need not be whole; `None` where there are none.
pub(crate) fn factor(degrees: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, degrees).ok().map(|t| t.inverse_cdf(UPPER)).filter(|t| t.is_finite())
}

#[test]
fn no_degrees_of_freedom_have_no_factor() {
    assert_eq!((factor(0.0), factor(-1.0), factor(f64::NAN)), (None, None, None));
}
