//! Words of pages: numbers with the units that a page has room for.
//!
//! For: forms that several parts of a page share. Not for: what is said.

use model::units::{show_ns, show_rate};

/// A time: `85.3 µs`.
pub(crate) fn time(ns: f64) -> String {
    with_micro_sign(&show_ns(ns))
}

/// A time, `85.3 µs`; `-` where it is missing.
pub(crate) fn time_or_dash(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".into(), time)
}

/// A time as an axis has it, with no more digits than it needs: `50 µs`.
pub(crate) fn time_tick(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 999.5 => (n, "ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", short_number(value))
}

/// A rate as an axis has it: `80k`.
pub(crate) fn rate_tick(value: f64) -> String {
    match value.abs() {
        v if v >= 999.5e6 => format!("{}G", short_number(value / 1e9)),
        v if v >= 999.5e3 => format!("{}M", short_number(value / 1e6)),
        v if v >= 10e3 => format!("{}k", short_number(value / 1e3)),
        v if v >= 1e3 => show_rate(value),
        _ => short_number(value),
    }
}

/// Up to three digits, without zeros behind the point.
pub(crate) fn short_number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Sentences of reports write `us`, since terminals may have no other letter.
pub(crate) fn with_micro_sign(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(at) = rest.find(" us") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        out += before;
        let is_unit =
            before.ends_with(|c: char| c.is_ascii_digit()) && !after.starts_with(char::is_alphanumeric);
        out += if is_unit { " µs" } else { " us" };
        rest = after;
    }
    out + rest
}

#[test]
fn only_the_unit_is_written_with_its_letter() {
    assert_eq!(
        with_micro_sign("366 us of the 392 us; trust us, 3 users"),
        "366 µs of the 392 µs; trust us, 3 users"
    );
    assert_eq!((time(85_312.0), time_or_dash(None)), ("85.3 µs".into(), "-".into()));
}

#[test]
fn marks_have_no_more_digits_than_they_need() {
    assert_eq!([50e3, 1e6, 200e6, 1e9, 500.0].map(time_tick), ["50 µs", "1 ms", "200 ms", "1 s", "500 ns"]);
    assert_eq!([0.0, 80e3, 2.5e6, 5000.0, 0.25].map(rate_tick), ["0", "80k", "2.5M", "5,000", "0.25"]);
}
