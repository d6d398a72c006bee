//! Numbers in flags and job files: whole numbers, shares, sizes, times and rates, and the limits of each setting.
//!
//! An error states what is wrong, followed by `; type` and what to type instead. The limits catch slips of typing at
//! once and keep later arithmetic from overflowing; the plan checks what this machine supports.

pub(crate) use crate::name::{quoted_excerpt, reject};
use crate::units::{GIB, parse_bytes, parse_duration_ns, show_block, show_ns};

/// Maximum size of an operation in bytes: far above the limit of any device, and still within the range of a system
/// call's result.
pub const MAX_BLOCK_BYTES: u64 = GIB;
/// Maximum number of operations in flight per worker: half of the limit of one io_uring (`IORING_MAX_ENTRIES` is
/// 32768).
pub const MAX_DEPTH: u32 = 16_384;
/// Maximum number of threads of one stream, more than any machine has CPUs for.
pub const MAX_WORKERS: u32 = 1024;
/// Maximum number of runs of one job.
pub const MAX_RUNS: u32 = 1000;
/// Default of the maximum number of attempts at a disturbed run.
pub const ATTEMPTS: u32 = 3;
/// Maximum of the setting `attempts`.
pub const MAX_ATTEMPTS: u32 = 100;
/// Minimum number of runs for a decision by a confidence interval or a trend. With fewer runs, intervals are narrow and trends are flat by
/// chance too often.
pub const FEWEST_ROUNDS: u32 = 5;
/// Minimum number of runs for comparing a percentile with a limit. Fewer runs agree by chance too often.
pub const FEWEST_GATED_RUNS: u32 = 8;
/// Maximum of the precision in percent. With a wider interval the result is only an order of magnitude.
pub const MAX_PRECISION_PERCENT: f64 = 50.0;
/// Maximum duration in ns: a day. A longer one is a typing error.
pub const MAX_TIME_NS: u64 = 86_400_000_000_000;
/// Minimum length of a measured window in ns. A shorter window contains only the start of the load.
pub const MIN_TIME_NS: u64 = 1_000_000;
/// Maximum rate per second, above the rate of any engine.
pub const MAX_RATE: f64 = 1e9;
/// Maximum exponent of a zipf distribution. Far below this maximum, almost all operations already hit one block.
pub const MAX_THETA: f64 = 100.0;
/// Maximum number of zones of an order.
pub const MAX_ZONES: usize = 1000;
/// Maximum number of quantiles of a think time.
pub const MAX_QUANTILES: usize = 1000;
/// Maximum number of sequential runs that a stream continues at a time.
pub const MAX_INTERLEAVED: u32 = 1024;
/// Maximum of the mean length of a sequential run, in operations.
pub const MAX_RUN: f64 = 1e9;
/// For a mean number of writes with decimals, such as 2.9: maximum number of writes before one sync call, and of sync
/// calls after one write. A mean has at most four decimals.
pub const MAX_SYNCS: f64 = 1e4;
/// Maximum mean number of arrivals in a batch.
pub const MAX_BATCH: f64 = 1e6;
/// Maximum number of lines of an access specification, as in Iometer.
pub const MAX_LINES: usize = 100;
/// Maximum number of turns of a stream.
pub const MAX_TURNS: usize = 100;
/// Maximum number of entries in a list of sizes with shares, such as `4k:60,64k:40`, or of shares with priorities.
pub const MAX_SPLIT: usize = 100;
/// Maximum number of phases of a job.
pub const MAX_PHASES: usize = 1000;
/// Maximum number of streams of a phase.
pub const MAX_STREAMS: usize = 1000;
/// Maximum number of streams of a job, over all its phases.
pub const MAX_JOB_STREAMS: usize = 1000;
/// Maximum number of targets of a stream.
pub const MAX_TARGETS: usize = 1000;
/// Maximum length of a path in bytes: the kernel's `PATH_MAX` without the final zero.
pub const MAX_PATH: usize = 4095;
/// Maximum distance in ranks between two hosts of which one uses the part or file of the other.
pub const MAX_SHIFT: u32 = 1 << 20;
/// Highest CPU number: the kernel's `NR_CPUS` is at most 8192.
pub const MAX_CPU: u32 = 8191;
/// Highest number of a NUMA node: the kernel's `MAX_NUMNODES` is at most 1024.
pub const MAX_NODE: u32 = 1023;
/// Maximum number of characters of a name, which has to fit into a table.
pub const MAX_NAME: usize = 100;

/// Parses a whole number from `least` to `most`.
///
/// # Errors
/// What is wrong and what to type.
pub fn whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let digits = text.trim();
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let fault = match digits.parse::<u64>() {
        Ok(number) if all_digits && (least..=most).contains(&number) => return Ok(number),
        Ok(number) if all_digits && number < least => "is too small",
        _ if all_digits => "is too large",
        _ => "is not a whole number",
    };
    Err(reject(text, &format!("{fault}; type a whole number from {least} to {most}")))
}

/// Parses a whole number from `least` to `most`, in 32 bits.
///
/// # Errors
/// What is wrong and what to type.
pub fn count(text: &str, least: u32, most: u32) -> Result<u32, String> {
    whole(text, u64::from(least), u64::from(most)).map(|n| n as u32)
}

/// Parses a whole percentage from 0 to 100, with or without `%`.
///
/// # Errors
/// What is wrong and what to type.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim();
    whole(number.strip_suffix('%').unwrap_or(number), 0, 100).map(|p| p as u8)
}

/// Parses a plain decimal number: digits and at most one point, no sign, no exponent. `None` for
/// other text.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let digits = text.trim();
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    digits.parse::<f64>().ok().filter(|n| plain && n.is_finite())
}

/// Parses a percentage from 0 to 100 that may have decimals.
///
/// # Errors
/// What is wrong and what to type.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.trim();
    let value = decimal(number.strip_suffix('%').unwrap_or(number)).filter(|p| (0.0..=100.0).contains(p));
    value.ok_or_else(|| reject(text, "is not a share in percent; type a number from 0 to 100"))
}

/// Parses a size in bytes from `least` to `most`.
///
/// # Errors
/// What is wrong and what to type.
pub fn size(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let bytes = parse_bytes(text)
        .map_err(|_| reject(text, "is not a size; type a number with k, m, g or t, such as 4k or 1g"))?;
    if (least..=most).contains(&bytes) {
        return Ok(bytes);
    }
    let fault = if bytes < least { "too small" } else { "too large" };
    let advice = match most {
        u64::MAX => "type a size such as 4k or 1g".into(),
        most => format!("type a size from {} to {}", format_size(least), format_size(most)),
    };
    Err(reject(text, &format!("is {fault}; {advice}")))
}

fn format_size(bytes: u64) -> String {
    show_block(bytes).to_ascii_lowercase()
}

/// Parses a time and returns it in ns. `least` and `most` are in ns too.
///
/// # Errors
/// What is wrong and what to type.
pub fn time(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let ns = parse_duration_ns(text)?;
    if (least..=most).contains(&ns) {
        return Ok(ns);
    }
    let fault = if ns < least { "too short" } else { "too long" };
    let advice = format!("type a duration from {} to {}", format_time(least), format_time(most));
    Err(reject(text, &format!("is {fault}; {advice}")))
}

/// Parses a limit of a latency or of a run time, and returns it in ns. The limit must be above 0 and have a unit: a bare
/// number would be seconds, and people who type `p99>10` mean milliseconds.
///
/// # Errors
/// What is wrong and what to type.
pub fn time_limit(text: &str) -> Result<u64, String> {
    if let Some(number) = decimal(text) {
        return Err(reject(text, &format!("has no unit; type {number}us, {number}ms or {number}s")));
    }
    time(text, 1, MAX_TIME_NS)
}

/// Formats a time limit as a user would type it.
fn format_time(ns: u64) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    match ns {
        0 => "0".into(),
        ns if ns.is_multiple_of(HOUR) => format!("{}h", ns / HOUR),
        1_000_000 => "1ms".into(),
        ns => show_ns(ns as f64).replace(' ', ""),
    }
}

/// Parses a rate per second above 0: a number with an optional k or m, powers of ten as in all
/// rates of operations.
///
/// # Errors
/// What is wrong and what to type.
pub fn rate(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, factor) = match lower.as_bytes().last() {
        Some(b'k') => (&lower[..lower.len() - 1], 1e3),
        Some(b'm') => (&lower[..lower.len() - 1], 1e6),
        _ => (lower.as_str(), 1.0),
    };
    let value = decimal(digits).map(|n| n * factor).filter(|n| *n > 0.0 && *n <= MAX_RATE);
    value.ok_or_else(|| {
        reject(
            text,
            "is not a rate; type operations per second above 0, such as 5000, 5k or 0.5, up to 1000m",
        )
    })
}

/// Parses bytes per second: a size, with or without `/s`. With `/s`, MB and similar units are
/// powers of ten, as in every table.
///
/// # Errors
/// What is wrong and what to type.
pub fn bandwidth(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let of_tables = lower.strip_suffix("b/s").and_then(decimal_bytes);
    let bytes = of_tables.map_or_else(|| size(lower.strip_suffix("/s").unwrap_or(&lower), 1, u64::MAX), Ok);
    bytes.ok().filter(|bytes| *bytes > 0).ok_or_else(|| {
        reject(text, "is not a bandwidth; type bytes per second above 0, such as 200m or 200MB/s")
    })
}

/// Parses a number with a decimal unit into bytes; `None` without a unit or with a binary one
/// (`200mi`).
fn decimal_bytes(text: &str) -> Option<u64> {
    let unit = ["k", "m", "g", "t"].iter().position(|unit| text.ends_with(unit))?;
    let bytes = decimal(&text[..text.len() - 1])? * 1e3_f64.powi(unit as i32 + 1);
    (bytes < u64::MAX as f64).then_some(bytes.round() as u64)
}

/// Parses one of the given words.
///
/// # Errors
/// Another word was typed. The message lists the given ones.
pub fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let trimmed = text.trim();
    words.iter().find(|(word, _)| *word == trimmed).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{} is not a valid value; type {}", quoted_excerpt(text), any_of(&known))
    })
}

/// Returns the text that a user types for a value; empty if `words` lacks the value.
pub fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

/// Joins words: `a, b or c`.
pub fn any_of(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[test]
fn numbers_outside_their_limits_are_rejected() {
    assert_eq!(whole(" 7 ", 1, 9), Ok(7));
    assert_eq!(whole("0", 1, 9), Err("'0' is too small; type a whole number from 1 to 9".into()));
    assert_eq!(whole("10", 1, 9), Err("'10' is too large; type a whole number from 1 to 9".into()));
    for bad in ["", "+1", "-1", "1.5", "x", "1e3", &"9".repeat(50)] {
        assert!(whole(bad, 1, 9).is_err(), "{bad}");
    }
    assert_eq!((percent("70%"), percent("0"), percent("101").is_err()), (Ok(70), Ok(0), true));
    assert_eq!((share("33.3"), share("nan").is_err(), share("100.1").is_err()), (Ok(33.3), true, true));
}

#[test]
fn sizes_times_and_rates_have_units() {
    assert_eq!(size("4k", 1, 8192), Ok(4096));
    assert_eq!(size("2g", 1, 1 << 30), Err("'2g' is too large; type a size from 1 to 1g".into()));
    assert_eq!(time("0", 1_000_000, 86_400_000_000_000).map_err(|e| e.contains("1ms to 24h")), Err(true));
    assert_eq!((rate("5k"), rate("1.5m"), rate("0.5")), (Ok(5000.0), Ok(1_500_000.0), Ok(0.5)));
    for bad in ["0", "", "k", "inf", "1e3", "5g", "2000m", "\u{e9}k"] {
        assert!(rate(bad).is_err(), "{bad}");
    }
    assert_eq!((bandwidth("200m"), bandwidth("200m/s")), (Ok(200 << 20), Ok(200 << 20)));
    // As in tables: MB/s is 10^6.
    assert_eq!((bandwidth("200MB/s"), bandwidth("1.5GB/s")), (Ok(200_000_000), Ok(1_500_000_000)));
    assert_eq!(
        (bandwidth("200MiB/s"), bandwidth("200mb"), bandwidth("512B/s")),
        (Ok(200 << 20), Ok(200 << 20), Ok(512))
    );
    for bad in ["0", "/s", "MB/s", "0MB/s", "-1MB/s", "99999999999999999999GB/s"] {
        assert!(bandwidth(bad).is_err(), "{bad}");
    }
}

#[test]
fn quoted_text_is_shortened_and_escaped() {
    assert_eq!(quoted_excerpt("a\u{1b}[2J"), "'a\\u{1b}[2J'");
    assert_eq!(quoted_excerpt(&"x".repeat(100)).len(), 45);
    assert_eq!(
        (any_of(&["a"]), any_of(&["a", "b"]), any_of(&["a", "b", "c"])),
        ("a".into(), "a or b".into(), "a, b or c".into())
    );
}
