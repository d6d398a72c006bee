//! The idle watch: how long fathom looks at what others do, while it does nothing itself.
//!
//! For: what `fathom` watches before the first run, and the variable that shortens this and what `fathom doctor` watches. Not for:
//! the watching (`src/run/`, `src/doctor/observation.rs`).

use super::origins::Origins;
use super::quick;
use crate::request::{BenchSpec, JobSource, Request, Work};
use model::units::{parse_duration_ns, show_ns};

/// Before the first run.
const USUAL_NS: u64 = 1_000_000_000;
/// For fathom's own tests: a shorter one, where a test is not about it.
const VARIABLE: &str = "FATHOM_TEST_IDLE";

/// How long the idle machine is watched before the first run. What shortens it is told like any other setting.
pub(super) fn before_runs_ns(request: &Request, origins: &mut Origins) -> u64 {
    let usual = match (&request.work, &request.source) {
        (Work::Profile(BenchSpec { quick: true, .. }), _) => quick::WATCH_NS,
        // Nobody waits for another tool before it begins.
        (_, Some(JobSource::CommandOf(_))) => return 0,
        _ => USUAL_NS,
    };
    let ns = at_most_ns(usual);
    if ns < usual {
        origins.fixed("idle watch", &show_ns(ns as f64), VARIABLE);
    }
    ns
}

/// The usual time, or the shorter one that the variable says.
pub(crate) fn at_most_ns(usual: u64) -> u64 {
    let said = std::env::var(VARIABLE).ok().and_then(|words| parse_duration_ns(&words).ok());
    said.map_or(usual, |ns| ns.min(usual))
}
