//! Limits of a rate in words: of all operations together, or of directions by themselves.
//!
//! For: `1000`, `write=200` and `read=10m,write=5m`, and the same of least rates. Not for: whether a stream has such a direction
//! (the checks of a stream).

use super::number::{bandwidth, rate, shown};
use crate::job::PerKind;

/// Most operations or bytes per second of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLimit {
    /// Of all directions together.
    All(f64),
    /// Of each direction by itself; 0 where it is as fast as it can.
    Each(PerKind<f64>),
}

impl RateLimit {
    /// As it is typed, each rate in the caller's words: `write=200`.
    pub fn to_flag(&self, one: impl Fn(f64) -> String) -> String {
        match self {
            Self::All(rate) => one(*rate),
            Self::Each(each) => {
                let words: Vec<String> =
                    each.named().map(|(word, rate)| format!("{word}={}", one(rate))).collect();
                words.join(",")
            }
        }
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        match self {
            Self::All(rate) => Self::All(rate * factor),
            Self::Each(PerKind { read, write, trim }) => {
                Self::Each(PerKind { read: read * factor, write: write * factor, trim: trim * factor })
            }
        }
    }

    /// The limits of single directions; `None` where there is one for all of them.
    pub fn each(&self) -> Option<&PerKind<f64>> {
        if let Self::Each(each) = self { Some(each) } else { None }
    }
}

/// Most operations per second: `1000`, `write=200`.
///
/// # Errors
/// What was wrong and what to type.
pub fn limit_iops(text: &str) -> Result<RateLimit, String> {
    limit(text, rate, "write=200")
}

/// Most bytes per second: `200m`, `read=10m,write=5m`.
///
/// # Errors
/// What was wrong and what to type.
pub fn limit_bandwidth(text: &str) -> Result<RateLimit, String> {
    limit(text, |text| bandwidth(text).map(|bytes| bytes as f64), "write=20m")
}

fn limit(text: &str, one: impl Fn(&str) -> Result<f64, String>, example: &str) -> Result<RateLimit, String> {
    if !text.contains('=') {
        return one(text).map(RateLimit::All);
    }
    per_direction(text, one, example).map(RateLimit::Each)
}

/// Values of directions by their names, as in `read=10m,write=5m`; nothing where a direction is not named.
///
/// # Errors
/// What was wrong and what to type.
pub(super) fn per_direction<T: Default + PartialEq>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
    example: &str,
) -> Result<PerKind<T>, String> {
    let mut each = PerKind { read: T::default(), write: T::default(), trim: T::default() };
    for piece in text.split(',') {
        let (place, value) = match piece.split_once('=').map(|(word, value)| (word.trim(), value)) {
            Some(("read", value)) => (&mut each.read, value),
            Some(("write", value)) => (&mut each.write, value),
            Some(("trim", value)) => (&mut each.trim, value),
            _ => return Err(format!("{} is no direction with its rate; type {example}", shown(piece))),
        };
        if *place != T::default() {
            return Err(format!("{} is there twice; type it once", shown(piece)));
        }
        *place = one(value)?;
    }
    Ok(each)
}

#[test]
fn limits_are_read_as_they_are_shown() {
    let iops = |text: &str| limit_iops(text).map(|limit| limit.to_flag(|rate| rate.to_string()));
    for (text, shown) in
        [("1k", "1000"), ("write=200", "write=200"), ("trim=0.5, read=1k", "read=1000,trim=0.5")]
    {
        assert_eq!(iops(text).as_deref(), Ok(shown));
    }
    assert_eq!(limit_bandwidth("200m/s"), Ok(RateLimit::All(209_715_200.0)));
    let each = PerKind { read: 0.0, write: 1_048_576.0, trim: 0.0 };
    assert_eq!(limit_bandwidth("write=1m"), Ok(RateLimit::Each(each)));
    assert_eq!(RateLimit::Each(each).times(2.0).each().map(|each| each.write), Some(2_097_152.0));
    for (wrong, says) in [
        ("0", "above 0"),
        ("write=0", "above 0"),
        ("up=1", "write=200"),
        ("100,write=1", "write=200"),
        ("write=1,write=2", "twice"),
        ("write=", "not a rate"),
    ] {
        assert!(limit_iops(wrong).is_err_and(|why| why.contains(says)), "{wrong}: {:?}", limit_iops(wrong));
    }
}
