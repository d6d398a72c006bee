//! Numbers, sizes and times as ioping takes them: `4k`, `1/2`, `200ms`.
//!
//! For: one value with its suffix. Not for: which option has which.

/// A suffix, in lower case, and what it multiplies with.
type Suffix = (&'static str, f64);

const COUNTS: &[Suffix] =
    &[("", 1.0), ("da", 10.0), ("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12), ("p", 1e15), ("e", 1e18)];
const SIZES: &[Suffix] = &[
    ("", 1.0),
    ("b", 1.0),
    ("sector", 512.0),
    ("page", 4096.0),
    ("k", 1024.0),
    ("kb", 1024.0),
    ("kib", 1024.0),
    ("m", 1_048_576.0),
    ("mb", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("g", 1_073_741_824.0),
    ("gb", 1_073_741_824.0),
    ("gib", 1_073_741_824.0),
    ("t", 1_099_511_627_776.0),
    ("tb", 1_099_511_627_776.0),
    ("tib", 1_099_511_627_776.0),
    ("pib", 1_125_899_906_842_624.0),
    ("pb", 1_125_899_906_842_624.0),
];
const TIMES_NS: &[Suffix] = &[
    ("", 1e9),
    ("s", 1e9),
    ("sec", 1e9),
    ("ns", 1.0),
    ("nsec", 1.0),
    ("us", 1e3),
    ("usec", 1e3),
    ("ms", 1e6),
    ("msec", 1e6),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("hour", 3600e9),
];

pub(super) fn count(text: &str) -> Result<u64, String> {
    number(text, COUNTS).and_then(|value| whole(text, value))
}

/// A rate may be less than one a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = number(text, COUNTS)?;
    if rate > 0.0 { Ok(rate) } else { Err(format!("'{text}' is no rate")) }
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    number(text, SIZES).and_then(|value| whole(text, value))
}

pub(super) fn time_ns(text: &str) -> Result<u64, String> {
    number(text, TIMES_NS).and_then(|value| whole(text, value))
}

fn number(text: &str, suffixes: &[Suffix]) -> Result<f64, String> {
    let wrong = || format!("'{text}' is no value of ioping's");
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '/')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.to_ascii_lowercase();
    let (_, factor) = suffixes.iter().find(|(name, _)| *name == suffix).ok_or_else(wrong)?;
    let value: f64 = match number.split_once('/') {
        None => number.parse().map_err(|_| wrong())?,
        Some((over, under)) => {
            let over: f64 = if over.is_empty() { 1.0 } else { over.parse().map_err(|_| wrong())? };
            let under: f64 = under.parse().map_err(|_| wrong())?;
            over / under
        }
    };
    let value = value * factor;
    if value.is_finite() { Ok(value) } else { Err(wrong()) }
}

fn whole(text: &str, value: f64) -> Result<u64, String> {
    // What is larger is no time and no place in a file.
    if value < i64::MAX as f64 { Ok(value as u64) } else { Err(format!("'{text}' is too large")) }
}

#[test]
fn suffixes_are_those_of_the_manual_in_any_case() {
    assert_eq!(
        (bytes("4k"), bytes("1MiB"), bytes("3Sector"), bytes("2page")),
        (Ok(4096), Ok(1 << 20), Ok(1536), Ok(8192))
    );
    assert_eq!(
        (time_ns("200ms"), time_ns("1"), time_ns("0.5m"), time_ns("1/4")),
        (Ok(200_000_000), Ok(1_000_000_000), Ok(30_000_000_000), Ok(250_000_000))
    );
    assert_eq!((count("1k"), rate("/2"), rate("0").is_err()), (Ok(1000), Ok(0.5), true));
    for text in ["", "x", "-1", "1kk", "1/0", "1//2", "é"] {
        assert!(bytes(text).is_err() && time_ns(text).is_err() && count(text).is_err(), "{text}");
    }
}
