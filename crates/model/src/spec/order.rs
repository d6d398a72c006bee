//! `random`, `start` and `mix`: where operations go and in which direction, in words.
//!
//! For: `zipf:1.1`, `zones:60/10,40/90`, `every:1m`, `70/30`. Not for: drawing offsets (the engine).

use super::limits::{MAX_THETA, MAX_ZONES};
use super::number::{decimal, share, shown, size};
use crate::job::{Mix, Order, Percent, Start, Strided, Zone, ZoneSize};

/// Shares that sum to 100 in decimal do not always do so in binary.
const ROUNDING: f64 = 1e-6;

/// How random offsets are drawn.
///
/// # Errors
/// What was wrong and what to type.
pub fn random(text: &str) -> Result<Order, String> {
    let (name, value) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let number = |least: f64, most: f64, advice: &str| {
        let percent = matches!(name, "mixed" | "normal");
        let bare = value.trim();
        let bare = if percent { bare.strip_suffix('%').unwrap_or(bare) } else { bare };
        let fits = decimal(bare).filter(|v| (least..=most).contains(v));
        fits.ok_or_else(|| format!("{} cannot be; type {advice}", shown(text)))
    };
    match name {
        "uniform" if value.is_empty() => Ok(Order::Random),
        "once" if value.is_empty() => Ok(Order::Once),
        "uniform" | "once" => Err(format!("{} takes no number; type {name}", shown(text))),
        "mixed" => number(0.0, 100.0, "the random share in percent, such as mixed:30").map(Order::Mixed),
        "zipf" => number(0.0, MAX_THETA, "an exponent from 0 to 100, such as zipf:1.1").map(Order::Zipf),
        "pareto" => number(f64::MIN_POSITIVE, 0.5, "a share above 0 and up to 0.5, such as pareto:0.2")
            .map(Order::Pareto),
        "normal" => number(
            f64::MIN_POSITIVE,
            100.0,
            "a deviation in percent of the span, above 0 and up to 100, such as normal:10",
        )
        .map(Order::Normal),
        "zones" => zones(value).map(Order::Zones),
        _ => Err(format!(
            "{} is not a valid value; type uniform, once, mixed:30, zipf:1.1, pareto:0.2, normal:10 or \
             zones:60/10,40/90",
            shown(text)
        )),
    }
}

fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::new();
    for piece in text.split(',') {
        let Some((access, size)) = piece.split_once('/') else {
            return Err(format!(
                "{} is no zone; type its share of the operations and its size, such as 60/10 or 60/10g",
                shown(piece)
            ));
        };
        zones.push(Zone { access_percent: share(access)?, size: zone_size(size)? });
        if zones.len() > MAX_ZONES {
            return Err(format!("there are too many zones; type {MAX_ZONES} at most"));
        }
    }
    let accesses: f64 = zones.iter().map(|z| z.access_percent).sum();
    if (accesses - 100.0).abs() > ROUNDING {
        return Err(format!(
            "the zones' shares of the operations sum to {}; type shares that sum to 100",
            round(accesses)
        ));
    }
    let sizes: f64 = zones
        .iter()
        .map(|z| match z.size {
            ZoneSize::Percent(p) => p,
            ZoneSize::Bytes(_) | ZoneSize::UpTo(_) => 0.0,
        })
        .sum();
    let all_percent = zones.iter().all(|z| matches!(z.size, ZoneSize::Percent(_)));
    if all_percent && (sizes - 100.0).abs() > ROUNDING {
        return Err(format!("the zones' sizes sum to {} %; type sizes that sum to 100", round(sizes)));
    }
    if !all_percent && sizes > 100.0 - ROUNDING {
        return Err(format!(
            "the zones in percent take {} % and leave nothing for those in bytes; type less",
            round(sizes)
        ));
    }
    Ok(zones)
}

/// A bare number is percent of the span, one with a unit is bytes.
fn zone_size(text: &str) -> Result<ZoneSize, String> {
    let bare = text.trim().strip_suffix('%').unwrap_or(text.trim());
    if let Some(percent) = decimal(bare) {
        return if percent > 0.0 && percent <= 100.0 {
            Ok(ZoneSize::Percent(percent))
        } else {
            Err(format!(
                "{} is no size of a zone; type percent of the span above 0, or bytes as in 10g",
                shown(text)
            ))
        };
    }
    size(text, 1, u64::MAX).map(ZoneSize::Bytes)
}

/// As many decimals as a person typed, not those of binary.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Where the workers of a sequential order begin.
///
/// # Errors
/// What was wrong and what to type.
pub fn start(text: &str) -> Result<Start, String> {
    match text.trim() {
        "spread" => Ok(Start::Spread),
        "same" => Ok(Start::Same),
        "interlocked" => Ok(Start::Interlocked),
        other => match other.strip_prefix("every:") {
            Some(distance) => size(distance, 1, u64::MAX).map(Start::Every),
            None => Err(format!(
                "{} is not a valid value; type spread, same, interlocked or every:1m",
                shown(text)
            )),
        },
    }
}

/// Where they begin, as it is typed: `every:1048576`.
pub fn of_start(start: Start) -> String {
    match start {
        Start::Spread => "spread".into(),
        Start::Same => "same".into(),
        Start::Interlocked => "interlocked".into(),
        Start::Every(bytes) => format!("every:{bytes}"),
    }
}

/// Zones that are worked in one at a time: what is moved in each, how large it is, and what is left out behind it.
///
/// # Errors
/// What was wrong and what to type.
pub fn strided(text: &str) -> Result<Strided, String> {
    let parts: Vec<&str> = text.split(',').take(4).collect();
    let number = |at: usize, least: u64, default: u64| {
        parts.get(at).map_or(Ok(default), |part| size(part, least, u64::MAX))
    };
    if parts.len() > 3 {
        return Err(format!("{} has too many parts; type SIZE,RANGE,SKIP, such as 64m,256m,2g", shown(text)));
    }
    let bytes = number(0, 1, 0)?;
    Ok(Strided { bytes, range_bytes: number(1, 1, bytes)?, skip_bytes: number(2, 0, 0)? })
}

/// Shares of directions: reads alone (`70`, `76.9`), or reads, writes and trims (`60/30/10`).
///
/// # Errors
/// What was wrong and what to type.
pub fn mix(text: &str) -> Result<Mix, String> {
    let shares: Vec<f64> = text.split('/').take(4).map(share).collect::<Result<_, _>>()?;
    let sum = round(shares.iter().sum());
    let is_all = Percent::nearest(sum) == Some(Percent::ALL);
    let shares: Vec<Percent> = shares.into_iter().filter_map(Percent::nearest).collect();
    match *shares.as_slice() {
        [read_percent] => Ok(Mix { read_percent, trim_percent: Percent::NONE }),
        [read_percent, _] if is_all => Ok(Mix { read_percent, trim_percent: Percent::NONE }),
        [read_percent, _, trim_percent] if is_all => Ok(Mix { read_percent, trim_percent }),
        [_, _] | [_, _, _] => {
            Err(format!("the shares of {} sum to {sum}; type shares that sum to 100", shown(text)))
        }
        _ => Err(format!("{} has too many shares; type READ/WRITE/TRIM, such as 60/30/10", shown(text))),
    }
}

#[test]
fn random_orders_have_names() {
    for (text, order) in [
        ("uniform", Order::Random),
        ("once", Order::Once),
        ("mixed:30", Order::Mixed(30.0)),
        ("zipf:1.1", Order::Zipf(1.1)),
        ("pareto:0.2", Order::Pareto(0.2)),
        ("normal:10", Order::Normal(10.0)),
    ] {
        assert_eq!(random(text), Ok(order));
    }
    // As help writes them.
    assert_eq!(
        (random("mixed:50%"), random("normal:10%")),
        (Ok(Order::Mixed(50.0)), Ok(Order::Normal(10.0)))
    );
    assert_eq!(random("zones:60%/10%,40%/90%"), random("zones:60/10,40/90"));
    assert!(random("zipf:1%").is_err() && random("mixed:%").is_err());
    let zone = |access_percent, size| Zone { access_percent, size };
    assert_eq!(
        random("zones:60/10,30/20,10/70"),
        Ok(Order::Zones(vec![
            zone(60.0, ZoneSize::Percent(10.0)),
            zone(30.0, ZoneSize::Percent(20.0)),
            zone(10.0, ZoneSize::Percent(70.0)),
        ]))
    );
    assert_eq!(
        random("zones:90/1g,10/100t"),
        Ok(Order::Zones(vec![zone(90.0, ZoneSize::Bytes(1 << 30)), zone(10.0, ZoneSize::Bytes(100 << 40))]))
    );
    assert!(random("zones:33.3/33.3,33.3/33.3,33.4/33.4").is_ok(), "rounding is nobody's slip");
}

#[test]
fn random_orders_that_cannot_be_say_why() {
    for (bad, word) in [
        ("zipfian", "zipf:1.1"),
        ("once:3", "takes no number"),
        ("zipf", "exponent"),
        ("zipf:nan", "exponent"),
        ("zipf:-1", "exponent"),
        ("zipf:101", "exponent"),
        ("pareto:0.6", "0.5"),
        ("pareto:0", "0.5"),
        ("normal:0", "above 0"),
        ("mixed:101", "percent"),
        ("zones:", "no zone"),
        ("zones:60/10,30/90", "sum to 90"),
        ("zones:60/10,40/80", "sum to 90"),
        ("zones:60/100,40/1g", "nothing for those in bytes"),
        ("zones:60/0,40/100", "above 0"),
    ] {
        let said = random(bad).map_or_else(|e| e, |o| format!("{o:?}"));
        assert!(said.contains(word) && said.contains("; type"), "{bad}: {said}");
    }
    let many = format!("zones:{}", vec!["1/1"; 1001].join(","));
    assert!(random(&many).is_err_and(|e| e.contains("1000")));
}

#[test]
fn zones_of_a_stride_are_as_large_as_what_is_moved_unless_said() {
    let zones = |bytes, range_bytes, skip_bytes| Ok(Strided { bytes, range_bytes, skip_bytes });
    assert_eq!(strided("64m"), zones(64 << 20, 64 << 20, 0));
    assert_eq!(strided("64m,256m"), zones(64 << 20, 256 << 20, 0));
    assert_eq!(strided("1k, 2k ,0"), zones(1024, 2048, 0));
    assert_eq!(strided("1k,2k,3k"), zones(1024, 2048, 3072));
    for bad in ["", "0", "1k,0", "1k,,2k", "1k,2k,3k,4k", "1k,x"] {
        assert!(strided(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn starts_and_mixes_have_words() {
    assert_eq!((start("same"), start("every:1m")), (Ok(Start::Same), Ok(Start::Every(1 << 20))));
    for word in ["spread", "same", "interlocked", "every:1048576"] {
        assert_eq!(start(word).map(of_start).as_deref(), Ok(word));
    }
    assert!(start("every:0").is_err() && start("every").is_err_and(|e| e.contains("every:1m")));
    assert_eq!(mix("70"), Ok(Mix::of_percents(70, 0)));
    assert_eq!(mix("70/30"), mix("70"));
    assert_eq!(mix("60/30/10"), Ok(Mix::of_percents(60, 10)));
    assert!(mix("47.6191/33.3333/19.0476").is_ok(), "rounding is nobody's slip");
    assert_eq!(mix("33.3/66.7%").map(Mix::describe).as_deref(), Ok("33.3/66.7"));
    assert!(["100.1", "-1", "60/50", "33.3/33.3/33.3", "1e1", ""].iter().all(|text| mix(text).is_err()));
    for bad in ["", "101", "60/30", "60/30/20", "1/2/3/4", "70/"] {
        assert!(mix(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}
