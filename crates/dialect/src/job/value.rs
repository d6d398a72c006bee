//! A value of TOML as the text that a flag would have.
//!
//! For: numbers with or without quotes. Not for: what the text means.

use model::units::parse_duration_ns;
use std::borrow::Cow;
use toml::de::DeValue;

/// The text of a string or a number; `None` for anything else.
pub(super) fn text<'v>(value: &'v DeValue<'_>) -> Option<Cow<'v, str>> {
    match value {
        DeValue::String(text) => Some(Cow::Borrowed(text)),
        DeValue::Float(number) => Some(Cow::Borrowed(number.as_str())),
        DeValue::Integer(number) if number.radix() == 10 => Some(Cow::Borrowed(number.as_str())),
        // Beyond 64 bits it keeps its letters, which no parser of numbers takes.
        DeValue::Integer(number) => Some(match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) => Cow::Owned(value.to_string()),
            Err(_) => Cow::Owned(number.to_string()),
        }),
        _ => None,
    }
}

/// What a value is, for people.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A time from the job's beginning in ns.
pub(super) fn moment(value: &DeValue<'_>) -> Result<u64, String> {
    let said =
        text(value).ok_or_else(|| format!("`at` is a time, not {}; type it as in \"10s\"", kind(value)))?;
    parse_duration_ns(&said)
        .map_err(|_| "`at` is not a time; type it from the job's beginning, such as \"10s\"".into())
}
