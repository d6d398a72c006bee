//! The time budget of a command that answers a question.
//!
//! Each command plans its runs by its own rule and chooses a default. A typed budget that has no room for the fewest runs is refused in the
//! same words everywhere.

use crate::failure::Failure;
use model::units::minutes;

/// Refuses a typed budget that is shorter than the fewest runs take. `work` says what these are, as in `3 rounds of 8 tests`; `instead`
/// names the options that need less time.
///
/// # Errors
/// A usage failure with the budget to type.
pub(super) fn refuse_short(
    typed_ns: Option<u64>,
    least_ns: u64,
    work: &str,
    instead: &str,
) -> Result<(), Failure> {
    let Some(budget_ns) = typed_ns.filter(|typed| *typed < least_ns) else { return Ok(()) };
    Err(Failure::Usage(format!(
        "--budget {}: {work} take about {}; type --budget {}s or more, or {instead}",
        minutes(budget_ns),
        minutes(least_ns),
        least_ns.div_ceil(1_000_000_000)
    )))
}
