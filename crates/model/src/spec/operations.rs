//! Parsers of `random`, `start`, `strided`, `mix` and `bs`: offsets, directions and sizes of operations.

use crate::job::{Mix, Order, PerKind, Percent, Sizes, Start, Strided, Zone, ZoneSize};
use crate::spec::number::{
    MAX_BLOCK_BYTES, MAX_SPLIT, MAX_THETA, MAX_ZONES, decimal, quoted_excerpt, reject, share, size,
};

/// Tolerance for the sum of shares, because decimal fractions have no exact binary form.
const ROUNDING: f64 = 1e-6;

/// Parses how random offsets are drawn.
///
/// # Errors
/// What is wrong and what to type.
pub fn random(text: &str) -> Result<Order, String> {
    let (name, value) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let number = |least: f64, most: f64, advice: &str| {
        let percent = matches!(name, "mixed" | "normal");
        let bare = value.trim();
        let bare = if percent { bare.strip_suffix('%').unwrap_or(bare) } else { bare };
        let fits = decimal(bare).filter(|v| (least..=most).contains(v));
        fits.ok_or_else(|| reject(text, &format!("is not valid here; type {advice}")))
    };
    match name {
        "uniform" if value.is_empty() => Ok(Order::Random),
        "once" if value.is_empty() => Ok(Order::Once),
        "uniform" | "once" => Err(reject(text, &format!("takes no number; type {name}"))),
        "mixed" => number(0.0, 100.0, "the random share in percent, such as mixed:30").map(Order::Mixed),
        "zipf" => number(0.0, MAX_THETA, "an exponent from 0 to 100, such as zipf:1.1").map(Order::Zipf),
        "pareto" => {
            number(f64::MIN_POSITIVE, 1.0 - f64::EPSILON, "a share above 0 and below 1, such as pareto:0.2")
                .map(Order::Pareto)
        }
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
            quoted_excerpt(text)
        )),
    }
}

/// Formats the value of the key `random` for the list of settings in a plan: `uniform`, `mixed 30 %`. Names of workloads
/// use [`Order::describe`] instead.
pub fn show_random(order: &Order) -> String {
    match order {
        Order::Random => "uniform".into(),
        Order::Once => "once".into(),
        Order::Mixed(percent) => format!("mixed {percent} %"),
        other => other.describe(),
    }
}

fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let mut zones = Vec::new();
    for piece in text.split(',') {
        let Some((access, size)) = piece.split_once('/') else {
            return Err(reject(
                piece,
                "is not a zone; type its share of the operations and its size, such as 60/10 or 60/10g",
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
            round_to_typed_decimals(accesses)
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
        return Err(format!(
            "the zones' sizes sum to {} %; type sizes that sum to 100",
            round_to_typed_decimals(sizes)
        ));
    }
    if !all_percent && sizes > 100.0 - ROUNDING {
        return Err(format!(
            "the zones in percent take {} % and leave nothing for zones in bytes; type smaller percentages",
            round_to_typed_decimals(sizes)
        ));
    }
    Ok(zones)
}

/// Parses the size of a zone: a bare number is a percentage of the span, a number with a unit is bytes.
fn zone_size(text: &str) -> Result<ZoneSize, String> {
    let bare = text.trim().strip_suffix('%').unwrap_or(text.trim());
    if let Some(percent) = decimal(bare) {
        return if percent > 0.0 && percent <= 100.0 {
            Ok(ZoneSize::Percent(percent))
        } else {
            Err(reject(
                text,
                "is not the size of a zone; type percent of the span above 0, or bytes as in 10g",
            ))
        };
    }
    size(text, 1, u64::MAX).map(ZoneSize::Bytes)
}

/// Rounds to the decimals that a user may type.
fn round_to_typed_decimals(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Parses where each worker of a sequential order begins.
///
/// # Errors
/// What is wrong and what to type.
pub fn start(text: &str) -> Result<Start, String> {
    match text.trim() {
        "spread" => Ok(Start::Spread),
        "same" => Ok(Start::Same),
        "interlocked" => Ok(Start::Interlocked),
        other => match other.strip_prefix("every:") {
            Some(distance) => size(distance, 1, u64::MAX).map(Start::Every),
            None => Err(reject(text, "is not a valid value; type spread, same, interlocked or every:1m")),
        },
    }
}

/// Parses zones that are used one at a time: the bytes moved in each zone, its size, and the gap after it.
///
/// # Errors
/// What is wrong and what to type.
pub fn strided(text: &str) -> Result<Strided, String> {
    let parts: Vec<&str> = text.split(',').take(4).collect();
    let number = |at: usize, least: u64, default: u64| {
        parts.get(at).map_or(Ok(default), |part| size(part, least, u64::MAX))
    };
    if parts.len() > 3 {
        return Err(reject(text, "has too many parts; type SIZE,RANGE,SKIP, such as 64m,256m,2g"));
    }
    let bytes = number(0, 1, 0)?;
    Ok(Strided { bytes, range_bytes: number(1, 1, bytes)?, skip_bytes: number(2, 0, 0)? })
}

/// Parses shares of directions: reads (`70`, `76.9`), reads and writes (`70/30`), or also trims (`60/30/10`).
///
/// # Errors
/// What is wrong and what to type.
pub fn mix(text: &str) -> Result<Mix, String> {
    let shares: Vec<f64> = text.split('/').take(4).map(share).collect::<Result<_, _>>()?;
    let sum = round_to_typed_decimals(shares.iter().sum());
    let is_all = Percent::nearest(sum) == Some(Percent::ALL);
    let shares: Vec<Percent> = shares.into_iter().filter_map(Percent::nearest).collect();
    match *shares.as_slice() {
        [read_percent] => Ok(Mix { read_percent, trim_percent: Percent::NONE }),
        [read_percent, _] if is_all => Ok(Mix { read_percent, trim_percent: Percent::NONE }),
        [read_percent, _, trim_percent] if is_all => Ok(Mix { read_percent, trim_percent }),
        [_, _] | [_, _, _] => {
            Err(format!("the shares of {} sum to {sum}; type shares that sum to 100", quoted_excerpt(text)))
        }
        _ => Err(reject(text, "has too many shares; type READ/WRITE/TRIM, such as 60/30/10")),
    }
}

/// Shares of sizes are stored in units of 1/10,000 percent.
const PARTS: u32 = 10_000;

/// Parses the sizes of each direction. `DIRECTION=` starts the sizes of a direction, so that the commas of a split need
/// no quoting. A direction that is not named has the sizes of the first named direction.
///
/// # Errors
/// What is wrong and what to type.
pub fn per_kind(text: &str) -> Result<PerKind<Sizes>, String> {
    if !text.contains('=') {
        let same = sizes(text)?;
        return Ok(PerKind::all(same));
    }
    let named = key_value_pairs(text).map_err(|piece| {
        reject(piece, "comes before the first direction; type read=4k,write=8k, or one size for all")
    })?;
    let mut slots: [Option<Sizes>; 3] = [None, None, None];
    let mut first = None;
    for (direction, value) in &named {
        let slot = match *direction {
            "read" => 0,
            "write" => 1,
            "trim" => 2,
            other => {
                return Err(reject(other, "is not a direction; type read=, write= or trim="));
            }
        };
        if slots[slot].is_some() {
            return Err(format!("{direction} is given twice; type it once, such as read=4k,write=8k"));
        }
        let parsed = sizes(value)?;
        first.get_or_insert_with(|| parsed.clone());
        slots[slot] = Some(parsed);
    }
    match first {
        Some(first) if named.len() > 1 => {
            let [read, write, trim] = slots.map(|slot| slot.unwrap_or_else(|| first.clone()));
            Ok(PerKind { read, write, trim })
        }
        _ => Err(reject(text, "names one direction; type the others too, or one size for all")),
    }
}

/// Splits text such as `read=4k,write=8k` into keys and values. A piece without `=` continues the previous value, so
/// that the commas of a list need no quoting.
///
/// # Errors
/// The first piece, if it has no `=`.
pub(super) fn key_value_pairs(text: &str) -> Result<Vec<(&str, String)>, &str> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key.trim(), value.to_owned())),
            (None, Some((_, value))) => *value += &format!(",{piece}"),
            (None, None) => return Err(piece),
        }
    }
    Ok(pairs)
}

/// Parses the sizes of one direction.
///
/// # Errors
/// What is wrong and what to type.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    if text.contains('/') {
        return weighted_sizes(text.split(':'), '/', text);
    }
    if text.contains(':') || text.contains(',') {
        return weighted_sizes(text.split(','), ':', text);
    }
    let Some((least, most)) = text.split_once('-') else { return block_size(text).map(Sizes::Fixed) };
    match (block_size(least)?, block_size(most)?) {
        (least, most) if least < most => Ok(Sizes::Range(least, most)),
        (least, most) if least == most => Ok(Sizes::Fixed(least)),
        _ => Err(reject(text, "runs backwards; type the smaller size first, such as 4k-64k")),
    }
}

fn block_size(text: &str) -> Result<u32, String> {
    size(text, 1, MAX_BLOCK_BYTES).map(|b| b as u32)
}

fn weighted_sizes<'t>(
    pieces: impl Iterator<Item = &'t str>,
    mark: char,
    whole: &str,
) -> Result<Sizes, String> {
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for piece in pieces {
        let Some((size, weight)) = piece.split_once(mark) else {
            return Err(reject(piece, "has no share; type a size and its percent, such as 4k:60,64k:40"));
        };
        let pair = (block_size(size)?, (share(weight)? * f64::from(PARTS)).round() as u32);
        if sizes.iter().any(|s| s.0 == pair.0) {
            return Err(reject(size, "is given twice; type each size once, with its whole share"));
        }
        if pair.1 == 0 {
            return Err(reject(size, "has a share of 0; type a share above 0, or leave the size out"));
        }
        sizes.push(pair);
        if sizes.len() > MAX_SPLIT {
            return Err(reject(whole, &format!("has too many sizes; type {MAX_SPLIT} at most")));
        }
    }
    match sizes.iter().map(|s| u64::from(s.1)).sum::<u64>() {
        sum if sum == 100 * u64::from(PARTS) => {
            // Store whole percents as they are: weights 60 and 40, not 600,000 and 400,000.
            let whole = sizes.iter().all(|s| s.1.is_multiple_of(PARTS));
            let unit = if whole { PARTS } else { 1 };
            Ok(Sizes::Split(sizes.into_iter().map(|(size, weight)| (size, weight / unit)).collect()))
        }
        sum => Err(format!(
            "the shares of {} sum to {}; type shares that sum to 100",
            quoted_excerpt(whole),
            sum as f64 / f64::from(PARTS)
        )),
    }
}

#[test]
fn random_orders_are_parsed_by_name() {
    for (text, order) in [
        ("uniform", Order::Random),
        ("once", Order::Once),
        ("mixed:30", Order::Mixed(30.0)),
        ("zipf:1.1", Order::Zipf(1.1)),
        ("pareto:0.2", Order::Pareto(0.2)),
        ("pareto:0.9", Order::Pareto(0.9)),
        ("normal:10", Order::Normal(10.0)),
    ] {
        assert_eq!(random(text), Ok(order));
    }
    // The examples of the help text.
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
    assert!(random("zones:33.3/33.3,33.3/33.3,33.4/33.4").is_ok(), "rounding is accepted");
}

#[test]
fn a_plan_shows_the_word_that_random_takes() {
    for (typed, shown) in [
        ("once", "once"),
        ("uniform", "uniform"),
        ("mixed:30", "mixed 30 %"),
        ("zipf:1.1", "zipf 1.1"),
        ("pareto:0.2", "pareto 0.2"),
        ("normal:10", "normal 10 %"),
    ] {
        assert_eq!(random(typed).map(|order| show_random(&order)).as_deref(), Ok(shown));
    }
}

#[test]
fn invalid_random_orders_are_rejected_with_a_reason() {
    for (bad, word) in [
        ("zipfian", "zipf:1.1"),
        ("once:3", "takes no number"),
        ("zipf", "exponent"),
        ("zipf:nan", "exponent"),
        ("zipf:-1", "exponent"),
        ("zipf:101", "exponent"),
        ("pareto:1", "below 1"),
        ("pareto:0", "below 1"),
        ("normal:0", "above 0"),
        ("mixed:101", "percent"),
        ("zones:", "not a zone"),
        ("zones:60/10,30/90", "sum to 90"),
        ("zones:60/10,40/80", "sum to 90"),
        ("zones:60/100,40/1g", "nothing for zones in bytes"),
        ("zones:60/0,40/100", "above 0"),
    ] {
        let message = random(bad).map_or_else(|e| e, |o| format!("{o:?}"));
        assert!(message.contains(word) && message.contains("; type"), "{bad}: {message}");
    }
    let many = format!("zones:{}", vec!["1/1"; 1001].join(","));
    assert!(random(&many).is_err_and(|e| e.contains("1000")));
}

#[test]
fn strided_zones_default_to_the_moved_bytes() {
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
fn starts_and_mixes_are_parsed() {
    assert_eq!((start("same"), start("every:1m")), (Ok(Start::Same), Ok(Start::Every(1 << 20))));
    for word in ["spread", "same", "interlocked", "every:1048576"] {
        assert_eq!(start(word).map(Start::to_flag).as_deref(), Ok(word));
    }
    assert!(start("every:0").is_err() && start("every").is_err_and(|e| e.contains("every:1m")));
    assert_eq!(mix("70"), Ok(Mix::from_percents(70, 0)));
    assert_eq!(mix("70/30"), mix("70"));
    assert_eq!(mix("60/30/10"), Ok(Mix::from_percents(60, 10)));
    assert!(mix("47.6191/33.3333/19.0476").is_ok(), "rounding is accepted");
    assert_eq!(mix("33.3/66.7%").map(Mix::describe).as_deref(), Ok("33.3/66.7"));
    assert!(["100.1", "-1", "60/50", "33.3/33.3/33.3", "1e1", ""].iter().all(|text| mix(text).is_err()));
    for bad in ["", "101", "60/30", "60/30/20", "1/2/3/4", "70/"] {
        assert!(mix(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn a_size_a_range_and_a_split_are_parsed() {
    assert_eq!(sizes("4k"), Ok(Sizes::Fixed(4096)));
    assert_eq!(sizes("4k-64k"), Ok(Sizes::Range(4096, 65536)));
    let split = Sizes::Split(vec![(4096, 60), (65536, 40)]);
    assert_eq!(sizes("4k:60,64k:40"), Ok(split.clone()));
    assert_eq!(sizes("4k/60:64k/40"), Ok(split.clone()));
    assert_eq!(sizes(&split.describe()), Ok(split), "the description can be typed");
    let rare = Sizes::Split(vec![(4096, 994_875), (65536, 5125)]);
    assert_eq!(sizes("4k:99.4875,64k:0.5125"), Ok(rare.clone()));
    assert_eq!(
        (rare.describe().as_str(), sizes(&rare.describe())),
        ("4K:99.4875,64K:0.5125", Ok(rare.clone()))
    );
}

#[test]
fn directions_may_have_different_sizes() {
    let all = per_kind("read=4k:60,64k:40,write=8k-16k").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.read, Sizes::Split(vec![(4096, 60), (65536, 40)]));
    assert_eq!(all.write, Sizes::Range(8192, 16384));
    assert_eq!(all.trim, all.read, "a direction left out has the sizes of the first");
}

#[test]
fn invalid_sizes_are_rejected_with_a_reason() {
    for (bad, word) in [
        ("", "not a size"),
        ("0", "too small"),
        ("2g", "1g"),
        ("64k-4k", "backwards"),
        ("4k:60,64k:30", "sum to 90"),
        ("4k:60,4k:40", "twice"),
        ("4k:60,64k", "no share"),
        ("4k:0,8k:100", "share of 0"),
        ("4k/60:64k:40", "no share"),
        ("read=4k", "one direction"),
        ("4k,read=4k", "before the first"),
        ("read=4k,sync=8k", "not a direction"),
        ("read=4k,read=8k", "twice"),
    ] {
        let message = per_kind(bad).map_or_else(|e| e, |s| format!("{s:?}"));
        assert!(message.contains(word) && message.contains("; type"), "{bad}: {message}");
    }
}
