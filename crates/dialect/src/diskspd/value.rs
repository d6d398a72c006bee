//! Values as DISKSPD writes them: whole numbers, sizes with one letter behind them, CPUs, shares of operations by parts.
//!
//! For: the same number as it takes, and a message where it would stop reading in the middle (`-t4x` is 4 threads there). Not for: what
//! a value is for ([`super::command`]).

use model::diskspd::{Distribution, Range};

/// A whole number at the beginning of a text, and what is behind it.
fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok().map(|number| (number, &text[end..]))
}

/// A whole number from `least` on.
pub(super) fn number(text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|n| *n >= least);
    // A sign is none of theirs.
    let number = number.filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    number.ok_or_else(|| format!("{} is no number; type a whole number from {least} on", shown(text)))
}

/// A size, and what is behind it.
fn size_before(text: &str, block: u32) -> Result<(u64, &str), String> {
    let wrong =
        || format!("{} is no size; type a whole number of bytes, or one with K, M, G, T or b", shown(text));
    let (number, rest) = leading(text).ok_or_else(wrong)?;
    let factor = match rest.bytes().next().map(|b| b.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        Some(b'B') => u64::from(block),
        _ => return Ok((number, rest)),
    };
    let bytes = number.checked_mul(factor);
    let bytes = bytes.ok_or_else(|| format!("{} goes beyond all sizes; type a smaller one", shown(text)))?;
    Ok((bytes, &rest[1..]))
}

/// A size: bytes, K, M, G, T as powers of 1024, or blocks.
pub(super) fn size(text: &str, block: u32) -> Result<u64, String> {
    match size_before(text, block)? {
        (bytes, "") => Ok(bytes),
        (_, rest) => Err(format!(
            "{} stands behind a size; type a whole number of bytes, or one with K, M, G, T or b",
            shown(rest)
        )),
    }
}

/// `BASE[:LENGTH]`: the first byte and the one behind the last, where that is said.
pub(super) fn bounds(text: &str, block: u32) -> Result<(u64, Option<u64>), String> {
    let (base, rest) = size_before(text, block)?;
    if rest.is_empty() {
        return Ok((base, None));
    }
    let length = rest.strip_prefix(':').ok_or_else(|| {
        format!("{} stands behind the base; type a colon between base and length", shown(rest))
    })?;
    let end = base.checked_add(size(length, block)?);
    end.map(|end| (base, Some(end)))
        .ok_or_else(|| "base and length go beyond all sizes; type smaller ones".into())
}

/// CPUs with their group before them where that is not 0: `1,4,g1,2`.
pub(super) fn affinity(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let mut group = 0;
    let mut cpus = Vec::new();
    for piece in text.split(',') {
        let within = |text: &str, most: u32, what: &str| {
            let number = number(text, 0)?;
            let range = format!("{what} {number} is out of range; type one up to {most}");
            Some(number).filter(|n| *n <= most).ok_or(range)
        };
        match piece.strip_prefix('g') {
            Some(number) => group = within(number, u16::MAX.into(), "group")?,
            None => cpus.push((group, within(piece, u8::MAX.into(), "CPU")?)),
        }
    }
    let ends_in_group = text.rsplit(',').next().is_some_and(|last| last.starts_with('g'));
    if cpus.is_empty() || ends_in_group {
        return Err("a group stands before its CPUs; type numbers of CPUs behind it, such as g0,0,1".into());
    }
    Ok(cpus)
}

/// Shares by parts of the target: `pct90/10:5/20`, `abs90/10G:0/10G`.
pub(super) fn distribution(text: &str, block: u32) -> Result<Distribution, String> {
    let (percent, mut rest) = match (text.strip_prefix("pct"), text.strip_prefix("abs")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err(format!("{} is no distribution; type -rdpct90/10 or -rdabs90/10G", shown(text))),
    };
    let mut ranges = Vec::new();
    loop {
        let io = leading(rest).and_then(|(io, behind)| Some((u32::try_from(io).ok()?, behind)));
        let (io, behind) = io.filter(|(io, _)| *io <= 100).ok_or_else(|| {
            format!("{} does not begin with a percentage of operations; type one from 0 to 100", shown(rest))
        })?;
        let behind = behind
            .strip_prefix('/')
            .ok_or_else(|| format!("{io} has no part of the target; type a slash and its size behind it"))?;
        let (length, behind) = if percent { part(behind)? } else { size_before(behind, block)? };
        if length == 0 {
            return Err("a part of the target is empty; type a larger one, or leave it out".into());
        }
        ranges.push(Range { io, length });
        match behind.strip_prefix(':') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(Distribution::from_ranges(percent, ranges)),
            None => {
                return Err(format!("{} stands behind a part; type a colon between parts", shown(behind)));
            }
        }
    }
}

/// A percentage of the target at the beginning of a text.
fn part(text: &str) -> Result<(u64, &str), String> {
    leading(text).filter(|(percent, _)| *percent <= 100).ok_or_else(|| {
        format!("{} does not begin with a percentage of the target; type one from 1 to 100", shown(text))
    })
}

/// A piece of what was typed inside a message, cut where it is long.
pub(super) fn shown(text: &str) -> String {
    let short: String = text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("'{short}'")
}

#[test]
fn sizes_are_whole_and_blocks_are_those_of_b() {
    let all: Vec<_> = ["23", "4k", "4K", "1m", "2G", "1T", "8b"].map(|t| size(t, 4096)).to_vec();
    let expected = [23, 4096, 4096, 1 << 20, 2 << 30, 1 << 40, 32768].map(Ok);
    assert_eq!(all, expected);
    for bad in ["", "x", "-1", "4kx", "4kk", "1.5k", "99999999999999999999", "99999999999T", "k"] {
        assert!(size(bad, 4096).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}

#[test]
fn bounds_are_a_base_and_a_length_behind_it() {
    let of = |text| bounds(text, 1 << 16);
    assert_eq!((of("5m"), of("5m:1m")), (Ok((5 << 20, None)), Ok((5 << 20, Some(6 << 20)))));
    for bad in ["5mx", "5m:", "5m:j", "5m:1x", "5m:1mx", "", "1:18446744073709551615"] {
        assert!(of(bad).is_err(), "{bad}");
    }
}

#[test]
fn groups_stand_before_their_cpus() {
    let of = |text| affinity(text).map_err(|e| e.contains("; type"));
    assert_eq!(of("1,4,6"), Ok(vec![(0, 1), (0, 4), (0, 6)]));
    assert_eq!(of("g0,1,4,6,g1,2,5,7"), Ok(vec![(0, 1), (0, 4), (0, 6), (1, 2), (1, 5), (1, 7)]));
    for bad in ["g0", "gg", "g,0,1,2", "1,", "g1,0,", "g1,0,g", "g1,0,g2", "x", "g0,300", "g70000,1", "1,,2"]
    {
        assert_eq!(of(bad), Err(true), "{bad}");
    }
}

#[test]
fn parts_have_shares_and_holes_have_none() {
    let of = |text: &str| {
        let found = distribution(text, 1 << 16).map_err(|e| e.contains("; type"))?;
        Ok((found.percent, found.ranges.iter().map(|r| (r.io, r.length)).collect::<Vec<_>>()))
    };
    assert_eq!(of("pct10/10:10/10:0/10"), Ok((true, vec![(10, 10), (10, 10), (0, 10), (80, 70)])));
    let giga = 1 << 30;
    assert_eq!(
        of("abs10/1G:10/1G:0/100G"),
        Ok((false, vec![(10, giga), (10, giga), (0, 100 * giga), (80, 0)]))
    );
    for bad in [
        "",
        "foo",
        "foo10/1G:10/1G:0/100G",
        "pctBAD",
        "absBAD",
        "pct10",
        "abs10",
        "pct10[",
        "abs10[",
        "pct10/",
        "abs10/",
        "pct10/BAD",
        "abs10/BAD",
        "pct10/10[",
        "abs10/10g[",
        "pct10/10:",
        "abs10/10g:",
        "pct10/10:BAD",
        "abs10/10g:BAD",
        "pct101/10",
        "abs101/10g",
        "pct10/0",
        "pct60/10:10/0",
        "abs10/0",
        "abs60/10g:10/0",
    ] {
        assert_eq!(of(bad), Err(true), "{bad}");
    }
}
