//! How figures are printed: with the digits that their interval supports, and with the verdict on their result.

use crate::view::table::or_dash;
use model::comparison::Metric;
use model::finding::CheckId;
use model::report::{Measured, Verdict};
use model::units::{MIB, show_change_ends, show_count, show_ns, show_rate, show_share};
use std::collections::BTreeMap;

/// If half the interval is at least this share of the value, the value is printed with two digits.
const WIDE_INTERVAL: f64 = 0.1;

/// If half the interval is at least this share of the value, the value is printed with one digit.
const VERY_WIDE_INTERVAL: f64 = 1.0;

/// Latencies in ns by percentile, such as `99.9`; `None` if too few operations support it.
type Percentiles = BTreeMap<String, Option<u64>>;

/// Returns a percentile in ns; `None` if it is unknown or too few operations support it.
pub(crate) fn percentile_ns(percentiles: &Percentiles, rank: &str) -> Option<u64> {
    percentiles.get(rank).copied().flatten()
}

/// Formats a percentile, or `-` if too few operations support it.
pub(crate) fn percentile(percentiles: &Percentiles, rank: &str) -> String {
    or_dash(percentile_ns(percentiles, rank), |ns| show_ns(ns as f64))
}

/// Formats a value with the digits that its interval supports, after `~` if digits were removed.
pub(crate) fn with_supported_digits(value: f64, interval: Option<[f64; 2]>) -> String {
    let share = match interval {
        Some([low, high]) if value > 0.0 => (high - low) / 2.0 / value,
        _ => 0.0,
    };
    let digits = match share {
        s if s >= VERY_WIDE_INTERVAL => 1,
        s if s >= WIDE_INTERVAL => 2,
        _ => return show_rate(value),
    };
    let scale = 10_f64.powi(value.log10().floor() as i32 + 1 - digits);
    let rounded = (value / scale).round() * scale;
    // Removes decimals too: 1.23 becomes 1.2 or 1.
    let places = usize::try_from(digits - 1 - value.log10().floor() as i32).unwrap_or(0);
    if places > 0 { format!("~{rounded:.places$}") } else { format!("~{}", show_count(rounded)) }
}

/// Returns the verdict on a result, with its accepted findings: `suspect, accepted: A04`.
pub(crate) fn verdict_mark(result: &Measured) -> String {
    verdict_word(result).to_owned() + &accepted_suffix(&result.accepted)
}

/// Returns the verdict on a result without its accepted findings. A void result is invalid, even if
/// the version of fathom that measured it gave another verdict.
pub(crate) fn verdict_word(result: &Measured) -> &'static str {
    match result.verdict {
        _ if result.void => "invalid",
        Verdict::Valid => "valid",
        Verdict::Suspect => "suspect",
        Verdict::Invalid => "invalid",
    }
}

/// Lists the accepted findings that affect a number: `, accepted: A04, D01`. Empty without any.
pub(crate) fn accepted_suffix(ids: &[CheckId]) -> String {
    if ids.is_empty() { String::new() } else { format!(", accepted: {}", CheckId::list(ids, ", ")) }
}

/// Mark after a figure whose result is suspect, in tables where a row has several figures.
pub(crate) const SUSPECT_MARK: &str = "*";

/// Legend of [`SUSPECT_MARK`] and of `void`.
pub(crate) const SUSPECT_MARK_MEANING: &str =
    "* = suspect; void = withheld, because a finding invalidates it";

/// Returns the worst of the verdicts on several results, with the accepted findings of the result that
/// has this verdict; empty without results.
pub(crate) fn worst_verdict_mark<'m>(results: impl Iterator<Item = &'m Measured>) -> String {
    results.max_by_key(|r| (r.void, r.verdict)).map_or_else(String::new, verdict_mark)
}

/// Returns a figure with [`SUSPECT_MARK`] if its result is suspect, or `void` instead of the figure
/// if the result is invalid.
pub(crate) fn with_suspect_mark(figure: String, verdict: Verdict) -> String {
    match verdict {
        Verdict::Valid => figure,
        Verdict::Suspect => format!("{figure}{SUSPECT_MARK}"),
        Verdict::Invalid => "void".into(),
    }
}

/// Formats the ends of an interval: `1,000 to 1,200`, or `-`.
pub(crate) fn interval_ends(interval: Option<[f64; 2]>) -> String {
    or_dash(interval, |[low, high]| format!("{} to {}", show_rate(low), show_rate(high)))
}

/// Formats an interval that is printed after its value: ` (95 % interval 1,000 to 1,200)`. Empty
/// without an interval.
pub(crate) fn interval_in_parentheses(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(String::new, |_| format!(" (95 % interval {})", interval_ends(interval)))
}

/// Formats the interval of a ratio: `-3.0 % to -1.2 %`, or `x 1.83 to x 2.91` if the ratio is 2 or more. `None` without an interval.
pub(crate) fn change_ends(metric: &Metric) -> Option<String> {
    metric.interval.map(|ends| show_change_ends(metric.ratio, ends))
}

/// Formats half the interval in percent of the value, or `-` without an interval.
pub(crate) fn half_width(value: f64, interval: Option<[f64; 2]>) -> String {
    match interval {
        Some([low, high]) if value > 0.0 => show_share((high - low) / 2.0 / value),
        _ => "-".into(),
    }
}

/// Returns the rate and mean size of the requests that the topmost device completed, over all runs
/// that have these counts: `1,200 x 4K`. `0` if the device completed no request, `-` if no run has
/// the counts.
pub(crate) fn device_rate(result: &Measured) -> String {
    let Some(seen) = result.at_device() else { return "-".into() };
    match seen.request_bytes() {
        Some(size) => format!("{} x {}", show_count(seen.requests_per_s(seen.iops)), short_bytes(size)),
        None => "0".into(),
    }
}

/// Formats a mean size in few characters: `4K`, `1023K`, `1M`.
pub(crate) fn short_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{}M", b / MIB),
        b if b >= 10 << 10 => format!("{:.0}K", b as f64 / 1024.0),
        b if b >= 1 << 10 => format!("{:.1}K", b as f64 / 1024.0).replace(".0K", "K"),
        b => b.to_string(),
    }
}

#[test]
fn a_wide_interval_removes_digits() {
    let shown = |value: f64, share: f64| {
        with_supported_digits(value, Some([value * (1.0 - share), value * (1.0 + share)]))
    };
    assert_eq!((shown(12_677.0, 0.05), shown(12_677.0, 1.87)), ("12,677".into(), "~10,000".into()));
    assert_eq!((shown(12_677.0, 0.19), shown(14_573.0, 0.39)), ("~13,000".into(), "~15,000".into()));
    assert_eq!(
        (shown(53.12, 0.2), shown(1.234, 0.2), shown(1.234, 1.5)),
        ("~53".into(), "~1.2".into(), "~1".into())
    );
    assert_eq!((shown(0.0123, 0.2), shown(99.6, 0.4)), ("~0.012".into(), "~100".into()));
    assert_eq!(
        (with_supported_digits(78_912.0, None), with_supported_digits(0.0, Some([0.0, 0.0]))),
        ("78,912".into(), "0.00".into())
    );
    assert_eq!(with_supported_digits(f64::NAN, Some([0.0, 1.0])), "NaN");
}

#[test]
fn a_figure_has_its_mark_and_a_void_one_no_number() {
    let marked = |verdict| with_suspect_mark("1,234".into(), verdict);
    assert_eq!([Verdict::Valid, Verdict::Suspect, Verdict::Invalid].map(marked), ["1,234", "1,234*", "void"]);
}
