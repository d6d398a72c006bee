//! Positions on a target: where a cell of a sweep begins, in bytes or in percent of what is there.
//!
//! For: what `--offset` of a sweep takes. Not for: how many bytes a share is, which the plan knows with the target.

use super::number::{count, shown, size};

/// Most positions of a range.
const MOST: u32 = 64;
/// Behind the whole nothing is left.
const WHOLE: u32 = 100;

/// A position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// Percent of what is there, below 100.
    Percent(u32),
    /// Bytes from the first one.
    Bytes(u64),
}

impl Offset {
    /// As it is typed: `25%`, `1073741824`.
    pub fn to_flag(self) -> String {
        match self {
            Self::Percent(percent) => format!("{percent}%"),
            Self::Bytes(bytes) => bytes.to_string(),
        }
    }
}

/// The positions of a piece: one (`25%`, `4g`), a range with a step (`0%..90%+10%`), or so many over a range (`0%..99%/12`).
///
/// # Errors
/// What was wrong and what to type.
pub fn positions(piece: &str) -> Result<Vec<Offset>, String> {
    let Some((first, rest)) = piece.split_once("..") else {
        let one = if piece.trim().ends_with('%') {
            Offset::Percent(percent(piece)?)
        } else {
            Offset::Bytes(size(piece, 0, u64::MAX)?)
        };
        return Ok(vec![one]);
    };
    let first = percent(first)?;
    let all: Vec<u32> = if let Some((last, step)) = rest.split_once('+') {
        let (last, step) = (percent(last)?, percent(step)?.max(1));
        rising(piece, first, last)?;
        (first..last).step_by(step as usize).chain([last]).collect()
    } else if let Some((last, many)) = rest.split_once('/') {
        let (last, many) = (percent(last)?, count(many, 2, MOST)?);
        rising(piece, first, last)?;
        let mut all: Vec<u32> = (0..many).map(|at| first + (last - first) * at / (many - 1)).collect();
        all.dedup();
        all
    } else {
        return Err(format!(
            "{} has no step; type one as in 0%..90%+10%, or how many as in 0%..99%/12",
            shown(piece)
        ));
    };
    Ok(all.into_iter().map(Offset::Percent).collect())
}

/// A whole number of percent below 100.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_suffix('%').and_then(|digits| digits.trim().parse().ok());
    number.filter(|percent| *percent < WHOLE).ok_or_else(|| {
        format!(
            "{} is no position; type whole percents below 100 such as 25%, or a size such as 4g",
            shown(text)
        )
    })
}

fn rising(piece: &str, first: u32, last: u32) -> Result<(), String> {
    if first < last {
        return Ok(());
    }
    Err(format!("{} does not rise; type the smaller one first, such as 0%..90%+10%", shown(piece)))
}

#[test]
fn positions_are_bytes_percents_and_ranges() {
    let of =
        |piece: &str| positions(piece).map(|all| all.into_iter().map(Offset::to_flag).collect::<Vec<_>>());
    assert_eq!(of("4g"), Ok(vec!["4294967296".into()]));
    assert_eq!(of("0"), Ok(vec!["0".into()]));
    assert_eq!(of("25%"), Ok(vec!["25%".into()]));
    assert_eq!(of("0%..20%+10%"), Ok(vec!["0%".into(), "10%".into(), "20%".into()]));
    assert_eq!(of("0%..25%+10%"), Ok(vec!["0%".into(), "10%".into(), "20%".into(), "25%".into()]));
    assert_eq!(of("0%..99%/4"), Ok(vec!["0%".into(), "33%".into(), "66%".into(), "99%".into()]));
    assert_eq!(of("0%..2%/64").map(|all| all.len()), Ok(3), "none twice");
    for bad in
        ["", "100%", "-1%", "1.5%", "0%..50%", "50%..10%+5%", "0..4g+1g", "0%..99%/1", "0%..99%/65", "%"]
    {
        assert!(positions(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
}
