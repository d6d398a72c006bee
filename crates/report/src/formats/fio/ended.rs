//! When what a report tells had been measured.
//!
//! For: the stamps of fio's formats, by the clock of the place where it was measured. Not for: the time of writing.

use super::job::Job;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use model::report::Report;

/// As `ctime` prints it.
const CTIME: &str = "%a %b %e %H:%M:%S %Y";

/// The end of the last run; `None` where the report does not say when it began.
pub(super) fn end_time(report: &Report, jobs: &[Job]) -> Option<Zoned> {
    let began: Timestamp = report.started.parse().ok()?;
    let offset = Pieces::parse(&report.started).ok()?.to_numeric_offset().unwrap_or(Offset::UTC);
    let took = SignedDuration::from_millis((elapsed_ns(jobs) / 1_000_000) as i64);
    Some(began.checked_add(took).ok()?.to_zoned(TimeZone::fixed(offset)))
}

/// `Sun Nov 22 17:37:37 2026`.
pub(super) fn ctime(at: &Zoned) -> String {
    at.strftime(CTIME).to_string()
}

/// From the beginning of the session to the end of its last run, in ns.
pub(super) fn elapsed_ns(jobs: &[Job]) -> u64 {
    jobs.iter().map(Job::ended_ns).max().unwrap_or(0)
}
