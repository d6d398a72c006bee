//! How often a job is measured where that is decided while measuring: `precision`, `until`, `settle`, `max-runs`.
//!
//! For: their parsers, and what of them contradicts itself. Not for: deciding (crate `analysis`) nor defaults (the plan).

use super::check::Problem;
use super::limits::{FEWEST_ROUNDS, MAX_PRECISION_PERCENT};
use super::number::{share, shown, word};
use super::{JobSpec, Until};

/// A half width of an interval in percent, as a share of the value.
///
/// # Errors
/// What was wrong and what to type.
pub fn precision(text: &str) -> Result<f64, String> {
    let percent = share(text).ok().filter(|p| *p > 0.0 && *p <= MAX_PRECISION_PERCENT);
    percent.map(|p| p / 100.0).ok_or_else(|| {
        format!(
            "{} is no precision; type the half width of the interval in percent, above 0 and up to {MAX_PRECISION_PERCENT}, such as 2.5%",
            shown(text)
        )
    })
}

/// What a job is measured until.
///
/// # Errors
/// All the words.
pub fn until(text: &str) -> Result<Until, String> {
    word(text, &[("steady", Until::Steady)])
}

impl JobSpec {
    /// What is said about how often, and contradicts itself or would change nothing.
    pub(super) fn check_repeats(&self) -> Option<Problem> {
        let few = |n: &u32| *n < FEWEST_ROUNDS;
        let (keys, message): (&[&'static str], String) = match self {
            Self { precision: Some(_), until: Some(_), .. } => (
                &["until", "precision"],
                "{until steady} and {precision} both say when to stop; type one of them".into(),
            ),
            Self { until: Some(_), runs: Some(runs), .. } => (
                &["runs", "until"],
                format!("{{runs {runs}}} says how often, and {{until steady}} measures until it is; type {{max-runs}} for a limit, or one of them alone"),
            ),
            Self { settle: Some(true), until: Some(_), .. } => (
                &["settle", "until"],
                "{until steady} and {settle} both say when to stop; type one of them".into(),
            ),
            Self { settle: Some(true), precision: Some(_), .. } => (
                &["settle", "precision"],
                "{precision} and {settle} both say when to stop; type one of them".into(),
            ),
            Self { settle: Some(true), runs: Some(runs), .. } if few(runs) => (
                &["runs", "settle"],
                format!("{{runs {runs}}} is too few to know how much runs vary, and so how many would settle it; type {{runs {FEWEST_ROUNDS}}} or more with {{settle}}"),
            ),
            Self { precision: Some(_), runs: Some(runs), .. } if few(runs) => (
                &["runs", "precision"],
                format!("{{runs {runs}}} is too few to stop at: an interval of fewer runs than {FEWEST_ROUNDS} is narrow by luck too often; type {{runs {FEWEST_ROUNDS}}} or more with {{precision}}"),
            ),
            Self { until: Some(_), attempts: Some(_), .. } => (
                &["attempts", "until"],
                "{until steady} measures no round again, since a round more is another history of the device; leave {attempts} out".into(),
            ),
            Self { max_runs: Some(_), precision: None, until: None, settle: None | Some(false), .. } => (
                &["max-runs"],
                "{max-runs} limits {precision}, {until steady} or {settle}; type one of these too, or {runs} for how often".into(),
            ),
            Self { max_runs: Some(most), .. } if few(most) => (
                &["max-runs"],
                format!("{{max-runs {most}}} ends before anything could be decided; type {{max-runs {FEWEST_ROUNDS}}} or more"),
            ),
            Self { max_runs: Some(most), runs: Some(runs), .. } if most < runs => (
                &["max-runs", "runs"],
                format!("{{max-runs {most}}} is less than {{runs {runs}}}; use a larger {{max-runs}}, or a smaller {{runs}}"),
            ),
            _ => return None,
        };
        Some(Problem::new(keys, message))
    }
}

#[test]
fn a_precision_is_a_share_above_nothing() {
    assert_eq!((precision("2.5%"), precision("1")), (Ok(0.025), Ok(0.01)));
    for bad in ["0", "0%", "51", "-1", "x", "", "nan", "2.5%%"] {
        assert!(precision(bad).is_err_and(|e| e.contains("; type") && e.contains("2.5%")), "{bad}");
    }
    assert_eq!(until("steady"), Ok(Until::Steady));
    assert!(until("bored").is_err_and(|e| e.contains("; type steady")));
}
