//! `bs`: the sizes of operations in words.
//!
//! For: `4k`, `4k-64k`, `4k:60,64k:40` (or `4k/60:64k/40` as in fio), and `read=4k,write=8k-64k` where directions differ.
//! Not for: whether a target can do them, which the plan finds out.

use super::limits::{MAX_BLOCK_BYTES, MAX_SPLIT};
use super::number::{share, shown, size};
use crate::job::{PerKind, Sizes};

/// Parts of a percent that shares of sizes are held to: four digits.
const PARTS: u32 = 10_000;

/// Sizes for each direction. A piece that begins with a direction and `=` begins that direction's sizes, so that the commas
/// of a split need no quoting; a direction left out has the sizes of the one named first.
///
/// # Errors
/// What was wrong and what to type.
pub fn per_kind(text: &str) -> Result<PerKind<Sizes>, String> {
    if !text.contains('=') {
        let same = sizes(text)?;
        return Ok(PerKind::all(same));
    }
    let mut named: Vec<(&str, Vec<&str>)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('='), named.last_mut()) {
            (Some((direction, first)), _) => named.push((direction.trim(), vec![first])),
            (None, Some((_, pieces))) => pieces.push(piece),
            (None, None) => {
                return Err(format!(
                    "{} stands before the first direction; type read=4k,write=8k, or one size for all",
                    shown(piece)
                ));
            }
        }
    }
    let mut slots: [Option<Sizes>; 3] = [None, None, None];
    let mut first = None;
    for (direction, pieces) in &named {
        let slot = match *direction {
            "read" => 0,
            "write" => 1,
            "trim" => 2,
            other => return Err(format!("{} is no direction; type read=, write= or trim=", shown(other))),
        };
        if slots[slot].is_some() {
            return Err(format!("{direction} is there twice; type it once, such as read=4k,write=8k"));
        }
        let said = sizes(&pieces.join(","))?;
        first.get_or_insert_with(|| said.clone());
        slots[slot] = Some(said);
    }
    match first {
        Some(first) if named.len() > 1 => {
            let [read, write, trim] = slots.map(|slot| slot.unwrap_or_else(|| first.clone()));
            Ok(PerKind { read, write, trim })
        }
        _ => Err(format!("{} names one direction; type the others too, or one size for all", shown(text))),
    }
}

/// Sizes of one direction.
///
/// # Errors
/// What was wrong and what to type.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    if text.contains('/') {
        return split(text.split(':'), '/', text);
    }
    if text.contains(':') || text.contains(',') {
        return split(text.split(','), ':', text);
    }
    let Some((least, most)) = text.split_once('-') else { return block(text).map(Sizes::Fixed) };
    match (block(least)?, block(most)?) {
        (least, most) if least < most => Ok(Sizes::Range(least, most)),
        (least, most) if least == most => Ok(Sizes::Fixed(least)),
        _ => Err(format!("{} runs backwards; type the smaller size first, such as 4k-64k", shown(text))),
    }
}

fn block(text: &str) -> Result<u32, String> {
    size(text, 1, MAX_BLOCK_BYTES).map(|b| b as u32)
}

fn split<'t>(pieces: impl Iterator<Item = &'t str>, mark: char, whole: &str) -> Result<Sizes, String> {
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for piece in pieces {
        let Some((size, weight)) = piece.split_once(mark) else {
            return Err(format!(
                "{} has no share; type a size and its percent, such as 4k:60,64k:40",
                shown(piece)
            ));
        };
        let pair = (block(size)?, (share(weight)? * f64::from(PARTS)).round() as u32);
        if sizes.iter().any(|s| s.0 == pair.0) {
            return Err(format!("{} is there twice; type each size once, with its whole share", shown(size)));
        }
        if pair.1 == 0 {
            return Err(format!(
                "{} has a share of 0; type a share above 0, or leave the size out",
                shown(size)
            ));
        }
        sizes.push(pair);
        if sizes.len() > MAX_SPLIT {
            return Err(format!("{} has too many sizes; type {MAX_SPLIT} at most", shown(whole)));
        }
    }
    match sizes.iter().map(|s| u64::from(s.1)).sum::<u64>() {
        sum if sum == 100 * u64::from(PARTS) => {
            // Whole percents are weights by themselves.
            let whole = sizes.iter().all(|s| s.1.is_multiple_of(PARTS));
            let unit = if whole { PARTS } else { 1 };
            Ok(Sizes::Split(sizes.into_iter().map(|(size, weight)| (size, weight / unit)).collect()))
        }
        sum => Err(format!(
            "the shares of {} sum to {}; type shares that sum to 100",
            shown(whole),
            sum as f64 / f64::from(PARTS)
        )),
    }
}

#[test]
fn one_size_a_range_or_a_split() {
    assert_eq!(sizes("4k"), Ok(Sizes::Fixed(4096)));
    assert_eq!(sizes("4k-64k"), Ok(Sizes::Range(4096, 65536)));
    let split = Sizes::Split(vec![(4096, 60), (65536, 40)]);
    assert_eq!(sizes("4k:60,64k:40"), Ok(split.clone()));
    assert_eq!(sizes("4k/60:64k/40"), Ok(split.clone()));
    assert_eq!(sizes(&split.describe()), Ok(split), "what is shown can be typed");
    let rare = Sizes::Split(vec![(4096, 994_875), (65536, 5125)]);
    assert_eq!(sizes("4k:99.4875,64k:0.5125"), Ok(rare.clone()));
    assert_eq!(
        (rare.describe().as_str(), sizes(&rare.describe())),
        ("4K:99.4875,64K:0.5125", Ok(rare.clone()))
    );
}

#[test]
fn directions_may_differ() {
    let all = per_kind("read=4k:60,64k:40,write=8k-16k").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.read, Sizes::Split(vec![(4096, 60), (65536, 40)]));
    assert_eq!(all.write, Sizes::Range(8192, 16384));
    assert_eq!(all.trim, all.read, "a direction left out has the sizes of the first");
}

#[test]
fn sizes_that_cannot_be_say_why() {
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
        ("read=4k,sync=8k", "no direction"),
        ("read=4k,read=8k", "twice"),
    ] {
        let said = per_kind(bad).map_or_else(|e| e, |s| format!("{s:?}"));
        assert!(said.contains(word) && said.contains("; type"), "{bad}: {said}");
    }
}
