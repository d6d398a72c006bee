//! Figures that several parts of a profile have.
//!
//! For: latencies and gaps as they are shown, and shares. Not for: recording them.

use model::captured::Latency;
use model::histogram::Histogram;

/// Percentiles that are told, with their names.
const LATENCY_PERCENTILES: [(&str, f64); 3] = [("50", 0.5), ("99", 0.99), ("99.9", 0.999)];

/// What was recorded; `None` where nothing was.
pub(super) fn latency(of: &Histogram) -> Option<Latency> {
    let percentiles =
        LATENCY_PERCENTILES.iter().map(|(name, q)| ((*name).to_owned(), of.supported_quantile_ns(*q))).collect();
    Some(Latency {
        count: of.count(),
        min: of.min_ns()?,
        mean: of.mean_ns()?,
        percentiles,
        max: of.max_ns()?,
    })
}

/// A part of a whole; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
