//! Dates as people type them, for `--since` and `--until`.
//!
//! For: `2026-11-21`, `2026-11-21T16:00` and times with an offset, as ns since 1970. Not for: printing dates.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The first ns of what is meant.
///
/// # Errors
/// What to type instead.
pub fn since(text: &str) -> Result<i64, String> {
    Ok(span(text, &TimeZone::system())?.0)
}

/// The first ns behind what is meant: a day counts whole.
///
/// # Errors
/// What to type instead.
pub fn until(text: &str) -> Result<i64, String> {
    Ok(span(text, &TimeZone::system())?.1)
}

/// The first ns of what is meant, and the first behind it.
fn span(text: &str, zone: &TimeZone) -> Result<(i64, i64), String> {
    let text = text.trim();
    let read = if text.contains(':') { moment(text, zone) } else { day(text, zone) };
    let ns = |at: Timestamp| i64::try_from(at.as_nanosecond()).ok();
    read.and_then(|(first, behind)| Some((ns(first)?, ns(behind)?)))
        .ok_or_else(|| format!("'{text}' is no date; type one such as 2026-11-21, or 2026-11-21T16:00"))
}

fn day(text: &str, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let date: Date = text.parse().ok()?;
    let midnight = |d: Date| Some(d.to_zoned(zone.clone()).ok()?.timestamp());
    Some((midnight(date)?, midnight(date.tomorrow().ok()?)?))
}

fn moment(text: &str, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let local = || Some(text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp());
    let at = text.parse::<Timestamp>().ok().or_else(local)?;
    Some((at, at.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?))
}

#[test]
fn a_day_is_whole_and_a_time_is_a_moment() {
    const HOUR: i64 = 3_600_000_000_000;
    let utc = TimeZone::UTC;
    let (first, behind) = span("1970-01-02", &utc).unwrap_or_default();
    assert_eq!((first, behind), (24 * HOUR, 48 * HOUR));
    assert_eq!(span("1970-01-01T02:00", &utc), Ok((2 * HOUR, 2 * HOUR + 1)));
    assert_eq!(span(" 1970-01-01 02:00:00 ", &utc), Ok((2 * HOUR, 2 * HOUR + 1)));
    assert_eq!(span("1970-01-01T02:00:00+01:00", &utc), Ok((HOUR, HOUR + 1)));
    let east = TimeZone::fixed(jiff::tz::offset(2));
    assert_eq!(span("1970-01-01T02:00", &east), Ok((0, 1)));
    assert_eq!(span("1970-01-02", &east).map(|s| s.0), Ok(22 * HOUR));
    for bad in ["", "yesterday", "2026-13-01", "2026-02-30", "12:00", "20261", "9999-12-31"] {
        assert!(span(bad, &utc).is_err(), "{bad}");
    }
}
