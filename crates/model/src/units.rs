//! Sizes, durations and rates as people write and read them: parsing `4k`, `1g`, `1.5s`, and printing bytes,
//! latencies, counts.
//!
//! Sizes are powers of two (`4k` = 4096) as in fio, diskspd and dd; rates name their unit, MB/s = 10^6, MiB/s =
//! 2^20.

use crate::name::reject;

/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;

/// Parses a size: a whole or decimal number with an optional suffix `k m g t`, also as `kb`, `kib`, ... (all powers
/// of two).
///
/// # Errors
/// A sentence about what is wrong and what to type.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, suffix) = lower.split_at(digits);
    let shift = match suffix.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(not_a_size(text)),
    };
    // Reject fractions of a byte.
    let is_whole = shift > 0 || !number.contains('.');
    scale(number, (1_u64 << shift) as f64).filter(|_| is_whole).ok_or_else(|| not_a_size(text))
}

fn not_a_size(text: &str) -> String {
    format!("'{text}' is not a size; type a number with k, m, g or t, such as 4k or 1g")
}

/// Parses a duration into nanoseconds: a number with `ns us ms s m h`; a bare number is seconds.
///
/// # Errors
/// A sentence about what is wrong and what to type.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, suffix) = lower.split_at(digits);
    let factor = match suffix.trim() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(not_a_duration(text)),
    };
    scale(number, factor).ok_or_else(|| not_a_duration(text))
}

fn not_a_duration(text: &str) -> String {
    let fault = if text.trim().starts_with('-') { "is negative" } else { "is not a duration" };
    reject(text, &format!("{fault}; type a number with ms, s, m or h, such as 3s or 500ms"))
}

/// Returns `number * factor` as an integer; `None` if `number` is not a number, or if the product
/// is negative or too large.
fn scale(number: &str, factor: f64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        // Exact above 2^53 too, unlike a double.
        return whole.checked_mul(factor as u64);
    }
    let value = number.parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)
}

/// Formats a size in the largest unit that is not larger than the size: `4 KiB`, `1 GiB`. With two
/// decimals if the number of units is not whole: `1.50 GiB`.
pub fn show_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (name, unit) in UNITS {
        if bytes >= unit {
            return if bytes.is_multiple_of(unit) {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{:.2} {name}", bytes as f64 / unit as f64)
            };
        }
    }
    format!("{bytes} B")
}

/// Formats a size in the short form that other tools use in names: `4K`, `1M`, `512`.
pub fn show_block(bytes: u64) -> String {
    match bytes {
        b if b >= GIB && b.is_multiple_of(GIB) => format!("{}G", b / GIB),
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 1024 && b.is_multiple_of(1024) => format!("{}K", b / 1024),
        b => b.to_string(),
    }
}

/// Formats a time in the most readable unit, with three significant digits: `85.3 us`, `1.20 ms`.
pub fn show_ns(ns: f64) -> String {
    // 999.5 us would be shown as 1000 us.
    let (value, unit) = match ns {
        n if n < 999.5 => (n, "ns"),
        n if n < 999.5e3 => (n / 1e3, "us"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats seconds with one decimal: `12.5 s`. Below 0.1 s with a smaller unit: `40.0 ms`.
pub fn show_seconds(seconds: f64) -> String {
    if (0.0..0.1).contains(&seconds) { show_ns(seconds * 1e9) } else { format!("{seconds:.1} s") }
}

/// Formats a number with three digits, but at most two decimals: `0.05`, `85.3`. From a hundred on,
/// as a whole number.
fn three_digits(value: f64) -> String {
    // From 99.95 on, one decimal would be the fourth digit.
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a whole number with thousands separated by commas: `78,912`.
pub fn show_count(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if value < -0.5 { format!("-{out}") } else { out }
}

/// Formats a count with its noun: `1 run`, `2,000 runs`, `2 passes`.
pub fn show_counted(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with(['s', 'h']) => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", show_count(count as f64))
}

/// Formats a rate: from 100 on as a whole number with commas, below it with three digits.
pub fn show_rate(value: f64) -> String {
    if value.abs() >= 100.0 { show_count(value) } else { three_digits(value) }
}

/// Formats a share as a percentage, with one decimal below 10 %: `0.4 %`, `96 %`.
pub fn show_share(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// Formats a ratio as a change, `+5.2 %` or `-10.3 %`; from a doubling on as a factor, `x 3.10`.
pub fn show_change(ratio: f64) -> String {
    show_change_as(ratio, ratio >= 2.0)
}

/// Formats the ends of an interval of changes in one unit: `+82.5 % to +131.0 %`, or `x 1.83 to x 2.91` if the change
/// `ratio` itself is shown as a factor.
pub fn show_change_ends(ratio: f64, ends: [f64; 2]) -> String {
    ends.map(|end| show_change_as(end, ratio >= 2.0)).join(" to ")
}

fn show_change_as(ratio: f64, as_factor: bool) -> String {
    if as_factor { format!("x {}", three_digits(ratio)) } else { format!("{:+.1} %", 100.0 * (ratio - 1.0)) }
}

#[test]
fn a_change_and_its_interval_have_one_unit() {
    assert_eq!((show_change(1.05), show_change(2.31)), ("+5.0 %".into(), "x 2.31".into()));
    assert_eq!(show_change_ends(2.31, [1.83, 2.91]), "x 1.83 to x 2.91");
    assert_eq!(show_change_ends(1.9, [1.5, 2.31]), "+50.0 % to +131.0 %");
}

/// Formats a duration roughly: in seconds, rounded up, `45 s`; from two minutes on in minutes, `5
/// min`.
pub fn minutes(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        s if s >= 120 => format!("{} min", (s + 30) / 60),
        s => format!("{s} s"),
    }
}

#[test]
fn sizes_are_powers_of_two_and_exact() {
    assert_eq!(parse_bytes("4k"), Ok(4096));
    assert_eq!(parse_bytes("4KiB"), Ok(4096));
    assert_eq!(parse_bytes("1.5m"), Ok(3 << 19));
    assert_eq!(parse_bytes("0"), Ok(0));
    assert_eq!(parse_bytes("9007199254740993"), Ok(9_007_199_254_740_993));
    for bad in ["", "k", "4x", "-1", "1e9", "99999999999t", "4 4k", "..", "nan", "inf"] {
        assert!(parse_bytes(bad).is_err(), "{bad}");
    }
}

#[test]
fn durations_are_parsed_by_unit() {
    assert_eq!(parse_duration_ns("3"), Ok(3_000_000_000));
    assert_eq!(parse_duration_ns("3s"), Ok(3_000_000_000));
    assert_eq!(parse_duration_ns("250ms"), Ok(250_000_000));
    assert_eq!(parse_duration_ns("1.5m"), Ok(90_000_000_000));
    assert!(parse_duration_ns("soon").is_err_and(|why| why.contains("'soon' is not a duration; type")));
    assert!(parse_duration_ns("-3s").is_err_and(|why| why.contains("'-3s' is negative; type")));
}

#[test]
fn figures_are_formatted_with_units() {
    assert_eq!(show_bytes(4096), "4 KiB");
    assert_eq!(show_bytes(3 << 29), "1.50 GiB");
    assert_eq!(show_block(1 << 20), "1M");
    assert_eq!(show_ns(85_312.0), "85.3 us");
    let rounded_up = [999.6, 999_600.0, 999_600_000.0, 99_960.0, 9_996.0];
    assert_eq!(rounded_up.map(show_ns), ["1.00 us", "1.00 ms", "1.00 s", "100 us", "10.0 us"]);
    assert_eq!([9.996, 99.96].map(show_rate), ["10.0", "100"]);
    assert_eq!(show_count(78_912.4), "78,912");
    assert_eq!([0, 1, 2_000].map(|n| show_counted(n, "run")), ["0 runs", "1 run", "2,000 runs"]);
    assert_eq!([1, 2].map(|n| show_counted(n, "pass")), ["1 pass", "2 passes"]);
    assert_eq!([1, 2].map(|n| show_counted(n, "flush")), ["1 flush", "2 flushes"]);
    assert_eq!(show_rate(4.567), "4.57");
    assert_eq!(show_share(0.964), "96 %");
    assert_eq!([0.897, 1.052, 3.1].map(show_change), ["-10.3 %", "+5.2 %", "x 3.10"]);
}
