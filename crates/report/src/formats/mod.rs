//! The table of formats: one file or folder each.

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
