//! A quick look: how the ten seconds of `bench --quick` are spent.
//!
//! For: the times that take the place of a bench's own. Not for: what may be said from one short run (crate `analysis`), nor for leaving
//! rows out while it measures.

use crate::failure::Failure;
use analysis::strategy::cost::OVERHEAD_NS;
use model::profile::Profile;

/// From the first byte that is written to the last line of the report.
const WHOLE_NS: u64 = 10_000_000_000;
/// Of it: looking at the machine, the self test, and judging.
const AROUND_NS: u64 = 1_000_000_000;
/// Of it: making the test file. A disk that is slow gets a smaller one.
pub(super) const MAKING_NS: u64 = 2_500_000_000;
/// Of it: the watch of the idle machine.
pub(super) const WATCH_NS: u64 = 200_000_000;
/// Warm-up and window of a row.
const WARMUP_NS: u64 = 50_000_000;
const WINDOW_NS: u64 = 500_000_000;
/// Shortest window of a row, where there are many.
const LEAST_WINDOW_NS: u64 = 300_000_000;

/// ns from the beginning after which no row is begun.
pub(super) const ROWS_UNTIL_NS: u64 = WHOLE_NS - AROUND_NS;

/// Window and warm-up of each row.
///
/// # Errors
/// A usage failure where the rows of a profile have no room in the time.
pub(super) fn times(profile: &'static Profile) -> Result<(u64, u64), Failure> {
    let rows = (profile.rows().count() as u64).max(1);
    let each = (WHOLE_NS - AROUND_NS - MAKING_NS - WATCH_NS) / rows;
    let window = each.saturating_sub(OVERHEAD_NS + WARMUP_NS).min(WINDOW_NS);
    if window < LEAST_WINDOW_NS || profile.tests.iter().any(|t| t.rewrites.is_some()) {
        return Err(Failure::Usage(format!(
            "--quick: the {rows} rows of --profile {} do not fit in 10 s; type --profile cdm, or leave --quick out",
            profile.name
        )));
    }
    Ok((window, WARMUP_NS))
}

#[test]
fn what_fits_in_ten_seconds_is_measured_and_what_does_not_is_refused() {
    for profile in model::profile::PROFILES {
        let fits = !["atto", "asssd-compression"].contains(&profile.name);
        assert_eq!(times(profile).is_ok(), fits, "{}", profile.name);
        if let Ok((window, warmup)) = times(profile) {
            let rows = profile.rows().count() as u64 * (window + warmup + OVERHEAD_NS);
            assert!(rows + MAKING_NS + WATCH_NS + AROUND_NS <= WHOLE_NS, "{}", profile.name);
        }
    }
    let cdm = model::profile::find("cdm").and_then(|p| times(p).ok());
    assert_eq!(cdm.map(|t| t.0), Some(WINDOW_NS), "half a second a row");
}
