//! `steady-state`, `min-rate` and `latency-target`: rules by which a stream ends, or its depth is chosen, in words.
//!
//! For: `iops:10%:60s` and `bw:read=10m,write=5m:5s`. Not for: deciding it ([`crate::job::Steady`]).

use super::limits::{MAX_TIME_NS, MIN_TIME_NS};
use super::number::{any_of, bandwidth, decimal, rate, share, shown, time, time_limit};
use super::rate_limit::per_direction;
use crate::job::{LatencyTarget, MinRate, PerKind, Quantity, Steady};

/// Shortest time of a value in ns: ten times what workers are asked at, so that a value has all that belongs to it.
const MIN_EVERY_NS: u64 = 100_000_000;
/// Values that a window has at least: of one alone everything is steady.
const FEWEST: u64 = 2;
/// Behind the name of what is held by its slope.
const SLOPE: &str = "_slope";

/// What makes a stream steady: `NAME:LIMIT:WINDOW[:AFTER[:EVERY]]`.
///
/// # Errors
/// What was wrong and what to type.
pub fn steady(text: &str) -> Result<Steady, String> {
    let pieces: Vec<&str> = text.trim().split(':').collect();
    let (name, limit, window, after, every) = match *pieces.as_slice() {
        [name, limit, window] => (name, limit, window, "0", "1s"),
        [name, limit, window, after] => (name, limit, window, after, "1s"),
        [name, limit, window, after, every] => (name, limit, window, after, every),
        _ => return Err(format!("{} is no rule of steadiness; type one such as iops:10%:60s", shown(text))),
    };
    let (quantity, slope) = named(name)?;
    let (limit, percent) = threshold(limit, quantity)?;
    let every_ns = time(every, MIN_EVERY_NS, MAX_TIME_NS / FEWEST)?;
    let window_ns = time(window, FEWEST * every_ns, MAX_TIME_NS)?;
    let after_ns = time(after, 0, MAX_TIME_NS)?;
    Ok(Steady { quantity, slope, limit, percent, window_ns, after_ns, every_ns })
}

/// What is compared with a limit, and whether by its slope.
///
/// # Errors
/// What was wrong and what to type.
pub fn named(name: &str) -> Result<(Quantity, bool), String> {
    let (word, slope) = name.strip_suffix(SLOPE).map_or((name, false), |word| (word, true));
    let quantity = Quantity::WORDS.iter().find(|(known, _)| *known == word).map(|(_, quantity)| *quantity);
    let quantity = quantity.ok_or_else(|| {
        let known: Vec<&str> = Quantity::WORDS.iter().map(|(word, _)| *word).collect();
        format!(
            "{} is nothing that becomes steady; type {}, or one of them with {SLOPE}",
            shown(name),
            any_of(&known)
        )
    })?;
    Ok((quantity, slope))
}

/// A limit, and whether it is in percent.
fn threshold(text: &str, quantity: Quantity) -> Result<(f64, bool), String> {
    let (limit, percent) = match (text.strip_suffix('%'), quantity) {
        (Some(share), _) => (decimal(share), true),
        (None, Quantity::Iops) => (rate(text).ok(), false),
        (None, Quantity::Bandwidth) => (bandwidth(text).ok().map(|bytes| bytes as f64), false),
        (None, Quantity::Latency) => (time_limit(text, 1, MAX_TIME_NS).ok().map(|ns| ns as f64), false),
    };
    let limit = limit.filter(|limit| *limit > 0.0);
    let example = match quantity {
        Quantity::Iops => "10% or 500",
        Quantity::Bandwidth => "10% or 20m",
        Quantity::Latency => "10% or 50us",
    };
    Ok((limit.ok_or_else(|| format!("{} is no limit above 0; type {example}", shown(text)))?, percent))
}

/// The least rate of each direction: `iops:1000`, `bw:read=10m,write=5m:5s`.
///
/// # Errors
/// What was wrong and what to type.
pub fn min_rate(text: &str) -> Result<MinRate, String> {
    let wrong =
        || format!("{} is no least rate; type one such as iops:1000, bw:10m or bw:10m:5s", shown(text));
    let (name, rest) = text.trim().split_once(':').ok_or_else(wrong)?;
    let quantity = match name {
        "iops" => Quantity::Iops,
        "bw" => Quantity::Bandwidth,
        _ => return Err(wrong()),
    };
    let (least, every) = rest.split_once(':').unwrap_or((rest, "1s"));
    let one = |text: &str| match quantity {
        Quantity::Bandwidth => bandwidth(text),
        _ => rate(text).map(|rate| rate.ceil() as u64),
    };
    let each = if least.contains(['=', ',']) {
        per_direction(least, one, "read=10m,write=5m")?
    } else {
        PerKind::all(one(least)?)
    };
    Ok(MinRate { quantity, least: each, every_ns: time(every, MIN_TIME_NS, MAX_TIME_NS)? })
}

/// Which latencies decide about the depth: `TIME:SHARE:WINDOW`, and `:run` behind it where they go on to.
///
/// # Errors
/// What was wrong and what to type.
pub fn latency_target(text: &str) -> Result<LatencyTarget, String> {
    let rule = text.trim();
    let (rule, goes_on) =
        rule.strip_suffix(LatencyTarget::GOES_ON).map_or((rule, false), |rule| (rule, true));
    let [ns, percent, window] = *rule.split(':').collect::<Vec<_>>() else {
        return Err(format!("{} is no latency target; type one such as 500us:99.9%:5s", shown(text)));
    };
    let (ns, percent) = (time_limit(ns, 1, MAX_TIME_NS)?, share(percent)?);
    if percent <= 0.0 {
        return Err(format!("{} is met by anything; type a share above 0, such as 99.9%", shown(text)));
    }
    Ok(LatencyTarget { ns, percent, window_ns: time(window, MIN_TIME_NS, MAX_TIME_NS)?, goes_on })
}

#[test]
fn rules_are_read_as_they_are_shown() {
    for text in [
        "iops:10%:60s",
        "iops_slope:0.5%:60s:30s",
        "bw:20971520:2s",
        "lat:50000ns:10s",
        "lat_slope:1%:3600s",
        "iops:10%:60s:0s:5s",
    ] {
        assert_eq!(steady(text).map(|s| s.to_flag()).as_deref(), Ok(text));
    }
    assert_eq!(steady("bw:20m:2s").map(|s| s.limit), Ok(20_971_520.0));
    for (wrong, says) in [
        ("iops", "iops:10%:60s"),
        ("p99:10%:60s", "iops, bw or lat"),
        ("iops:0%:60s", "10% or 500"),
        ("iops:x:60s", "10% or 500"),
        ("lat:10us:1s", "duration"),
        ("lat:10:60s", "10% or 50us"),
        ("iops:10%:60s:x", "duration"),
        ("iops:10%:60s:1s:1s:1s", "iops:10%:60s"),
        ("iops:10%:60s:1s:40s", "too short"),
        ("iops:10%:60s:1s:1ms", "duration"),
    ] {
        assert!(steady(wrong).is_err_and(|why| why.contains(says)), "{wrong}: {:?}", steady(wrong));
    }
    for (text, shown) in [
        ("iops:1k", "iops:1000:1s"),
        ("bw:1m:5s", "bw:1048576:5s"),
        ("bw:read=1m,write=512k:0.5s", "bw:read=1048576,write=524288:0.5s"),
    ] {
        let read = min_rate(text).map(|m| m.to_flag());
        assert_eq!(
            (read.as_deref(), min_rate(shown).map(|m| m.to_flag()).as_deref()),
            (Ok(shown), Ok(shown))
        );
    }
    for text in ["500us:99.9%:5s", "0.5us:100%:0.25s:run"] {
        assert_eq!(latency_target(text).map(|t| t.to_flag()).as_deref(), Ok(text));
    }
    for wrong in ["500us", "500us:0%:5s", "x:99%:5s", "500:99%:5s", "1ms:101%:5s", "1ms:99%:0s"] {
        assert!(latency_target(wrong).is_err_and(|why| why.contains("type ")), "{wrong}");
    }
    for wrong in ["1000", "lat:1ms", "iops:0", "iops:1,2", "bw:up=1m", "bw:1m:0s"] {
        assert!(min_rate(wrong).is_err_and(|why| why.contains("type ")), "{wrong}");
    }
}
