//! The table of formats: each module has one format, or all formats of one tool. Also converts times of a session to the
//! local time of the measurement.

mod cdm;
mod csv;
pub(crate) mod diskspd;
pub(crate) mod fio;
mod html;
pub(crate) mod iometer;
pub(crate) mod json;
mod markdown;
mod openmetrics;
mod text;

use crate::Format;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use model::report::Report;

/// All formats.
pub const FORMATS: &[&Format] = &[
    TEXT,
    &json::FORMAT,
    &csv::FORMAT,
    &markdown::FORMAT,
    &html::FORMAT,
    &cdm::FORMAT,
    &fio::NORMAL,
    &fio::JSON,
    &fio::JSON_PLUS,
    &fio::TERSE,
    &fio::TERSE_2,
    &fio::TERSE_4,
    &fio::TERSE_5,
    &openmetrics::FORMAT,
    &diskspd::TEXT,
    &diskspd::XML,
    &iometer::FORMAT,
];

/// The format for people, which writes every kind of report.
pub const TEXT: &Format = &text::FORMAT;

/// Returns a time after the start of the session, in the local time of the measurement; `None` if the start is unknown.
fn local_time(report: &Report, after: SignedDuration) -> Option<Zoned> {
    let began: Timestamp = report.started.parse().ok()?;
    let offset = Pieces::parse(&report.started).ok()?.to_numeric_offset().unwrap_or(Offset::UTC);
    Some(began.checked_add(after).ok()?.to_zoned(TimeZone::fixed(offset)))
}
