//! dd's own lines, to the letter: records in and out, bytes, seconds, rate.
//!
//! For: text that whoever reads dd's reads too. Not for: when it is told, nor what fathom adds.
//!
//! Source: the manual of GNU coreutils, "dd invocation", and what dd 9.1 prints.

use super::counts::Totals;

/// What both lines of records say.
pub(super) fn records(totals: &Totals) -> String {
    let Totals { full_reads, partial_reads, full_writes, partial_writes, .. } = totals;
    format!("{full_reads}+{partial_reads} records in\n{full_writes}+{partial_writes} records out")
}

/// The line of bytes, seconds and rate; `in_between` while the copy goes on, which rounds the seconds.
pub(super) fn transfer(bytes: u64, seconds: f64, in_between: bool) -> String {
    let time = if in_between { format!("{seconds:.0}") } else { general(seconds) };
    let rate = if seconds > 0.0 { rate(bytes as f64 / seconds) } else { "Infinity B".into() };
    let (si, iec) = (human(bytes as f64, 1000), human(bytes as f64, 1024));
    let amount = match bytes {
        1 => "1 byte".into(),
        0..1000 => format!("{bytes} bytes"),
        1000..1024 => format!("{bytes} bytes ({si})"),
        _ => format!("{bytes} bytes ({si}, {iec})"),
    };
    format!("{amount} copied, {time} s, {rate}/s")
}

/// Units of 1000.
const SI: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/// Units of 1024.
const IEC: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A rate: kB at least, with one place after the point below a hundred, where amounts have none from ten on.
fn rate(per_second: f64) -> String {
    let (mut value, mut unit) = (per_second / 1e3, 1);
    while unit + 1 < SI.len() && value >= 1e3 {
        value /= 1e3;
        unit += 1;
    }
    let short = format!("{value:.1}");
    let shown = if short.len() <= "99.9".len() { short } else { format!("{value:.0}") };
    format!("{shown} {}", SI[unit])
}

/// An amount with the largest unit that leaves it at least one, with one place after the point below ten.
fn human(value: f64, base: u32) -> String {
    let units = if base == 1000 { SI } else { IEC };
    let base = f64::from(base);
    let mut value = value;
    let mut unit = 0;
    // What rounds to a whole unit more is shown as that.
    while unit + 1 < units.len() && (value >= base || value.round_ties_even() >= base) {
        value /= base;
        unit += 1;
    }
    let tenths = (value * 10.0).round_ties_even();
    let shown = if unit > 0 && tenths < 100.0 {
        format!("{:.1}", tenths / 10.0)
    } else {
        format!("{:.0}", value.round_ties_even())
    };
    format!("{shown} {}", units[unit])
}

/// A number as C's `%g` prints it: six digits that count, no zeros behind them.
fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let Some((digits, power)) = scientific.split_once('e') else { return scientific };
    let power: i32 = power.parse().unwrap_or(0);
    let short = |text: &str| {
        let without = text.trim_end_matches('0').trim_end_matches('.');
        if text.contains('.') { without.to_owned() } else { text.to_owned() }
    };
    if (-4..DIGITS).contains(&power) {
        return short(&format!("{value:.*}", (DIGITS - 1 - power).max(0) as usize));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), power.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As dd 9.1 printed them.
    #[test]
    fn the_line_is_that_of_dd() {
        for (bytes, seconds, line) in [
            (512_000_000, 1.58155, "512000000 bytes (512 MB, 488 MiB) copied, 1.58155 s, 324 MB/s"),
            (0, 0.000_123_456_7, "0 bytes copied, 0.000123457 s, 0.0 kB/s"),
            (1, 2.6286e-05, "1 byte copied, 2.6286e-05 s, 38.0 kB/s"),
            (999, 1.0, "999 bytes copied, 1 s, 1.0 kB/s"),
            (1000, 1.0, "1000 bytes (1.0 kB) copied, 1 s, 1.0 kB/s"),
            (1024, 2.0, "1024 bytes (1.0 kB, 1.0 KiB) copied, 2 s, 0.5 kB/s"),
            (10_240, 2.1502e-05, "10240 bytes (10 kB, 10 KiB) copied, 2.1502e-05 s, 476 MB/s"),
            (9_960, 0.001_409_67, "9960 bytes (10 kB, 9.7 KiB) copied, 0.00140967 s, 7.1 MB/s"),
            (123_456_789, 0.044_337_3, "123456789 bytes (123 MB, 118 MiB) copied, 0.0443373 s, 2.8 GB/s"),
            (512_000_000, 49.1, "512000000 bytes (512 MB, 488 MiB) copied, 49.1 s, 10.4 MB/s"),
        ] {
            assert_eq!(transfer(bytes, seconds, false), line);
        }
        assert_eq!(
            transfer(5_368_709_120, 2.6, true),
            "5368709120 bytes (5.4 GB, 5.0 GiB) copied, 3 s, 2.1 GB/s"
        );
    }

    #[test]
    fn numbers_round_into_the_next_unit_as_dds_do() {
        assert_eq!(human(999_499.0, 1000), "999 kB");
        assert_eq!(human(999_700.0, 1000), "1.0 MB");
        assert_eq!(human(9_960.0, 1000), "10 kB");
        assert_eq!(human(9_940.0, 1000), "9.9 kB");
        assert_eq!(human(10_500.0, 1000), "10 kB");
        assert_eq!(
            (general(0.1), general(123_456.7), general(1_234_567.0)),
            ("0.1".into(), "123457".into(), "1.23457e+06".into())
        );
    }

    #[test]
    fn nothing_in_no_time_is_infinitely_fast_as_dd_has_it() {
        assert_eq!(transfer(0, 0.0, false), "0 bytes copied, 0 s, Infinity B/s");
    }
}
