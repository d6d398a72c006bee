//! Replays as they are asked for: which load, how, and what is changed of it.
//!
//! For: the keys `replay`, `pace`, `speed` and `replay-...`. Not for: what is in the file ([`crate::job::Replay`]).

use super::number::{shown, size, whole};
use super::{StreamSpec, parsers};
use crate::job::{Changes, Kind, ReplayPace};

/// Least and most that the times of a load are divided by.
const SPEEDS: (f64, f64) = (0.001, 1000.0);
/// Bytes that offsets of a load are multiples of at least.
const SECTOR: u64 = 512;
/// Most that offsets are divided by, and largest multiple that they are rounded to.
const MOST_DIVIDED: u64 = 1 << 20;
const MOST_ALIGNED: u64 = 1 << 30;

/// What was said of a load that is carried out again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaySpec {
    /// A capture, or a trace of another tool; empty where only how was said.
    pub file: String,
    /// When its operations are submitted; `None` where nothing was said.
    pub pace: Option<ReplayPace>,
    /// What its times are divided by.
    pub speed: Option<f64>,
    /// What is changed of its operations.
    pub changes: Changes,
}

/// What is said of a stream's replay.
fn replay_settings(stream: &mut StreamSpec) -> &mut ReplaySpec {
    stream.replay.get_or_insert_default()
}

pub(super) fn set_file(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    replay_settings(stream).file = parsers::path(text)?;
    Ok(())
}

pub(super) fn set_pace(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    let known = ReplayPace::ALL.iter().find(|(word, _)| *word == text);
    let (_, pace) =
        known.ok_or_else(|| format!("{} is no pace; type dependent, timed or fast", shown(text)))?;
    replay_settings(stream).pace = Some(*pace);
    Ok(())
}

pub(super) fn set_speed(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    let number = text.parse().ok().filter(|n: &f64| (SPEEDS.0..=SPEEDS.1).contains(n));
    let wrong = || format!("{} is no speed; type a number from {} to {}", shown(text), SPEEDS.0, SPEEDS.1);
    replay_settings(stream).speed = Some(number.ok_or_else(wrong)?);
    Ok(())
}

pub(super) fn set_divisor(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    replay_settings(stream).changes.divide = whole(text, 1, MOST_DIVIDED)?;
    Ok(())
}

pub(super) fn set_align(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    let bytes = size(text, SECTOR, MOST_ALIGNED)?;
    if !bytes.is_power_of_two() {
        return Err(format!("{} is no power of two; type 4k or the like", shown(text)));
    }
    replay_settings(stream).changes.align_bytes = bytes;
    Ok(())
}

pub(super) fn set_skip(stream: &mut StreamSpec, text: &str) -> Result<(), String> {
    replay_settings(stream).changes.skip = kinds(text)?;
    Ok(())
}

/// Kinds with commas between them, each once.
///
/// # Errors
/// Which word is none, and which there are.
pub fn kinds(text: &str) -> Result<Vec<Kind>, String> {
    let kind = |word: &str| {
        let known = Kind::ALL.into_iter().find(|kind| kind.word() == word.trim());
        known.ok_or_else(|| format!("{} is no kind; type some of read,write,trim,sync", shown(word)))
    };
    let mut kinds: Vec<Kind> = text.split(',').map(kind).collect::<Result<_, _>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

#[test]
fn what_is_said_of_a_replay_is_read() {
    let mut stream = StreamSpec::default();
    for (set, text) in [
        (set_file as fn(&mut StreamSpec, &str) -> Result<(), String>, "x.log"),
        (set_pace, "fast"),
        (set_speed, "0.5"),
        (set_divisor, "4"),
        (set_align, "4k"),
        (set_skip, "trim,write,trim"),
    ] {
        set(&mut stream, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let refused = set(&mut StreamSpec::default(), "\u{e9}:");
        assert!(
            refused.is_err_and(|e| e.contains("; type")) || text == "x.log",
            "{text}: any name is a file's"
        );
    }
    let changes = Changes { divide: 4, align_bytes: 4096, skip: vec![Kind::Write, Kind::Trim] };
    let pace = Some(ReplayPace::Fast);
    assert_eq!(stream.replay, Some(ReplaySpec { file: "x.log".into(), pace, speed: Some(0.5), changes }));
    assert!(set_align(&mut stream, "5000").is_err_and(|e| e.contains("power of two")));
    assert!(set_speed(&mut stream, "0").is_err() && set_divisor(&mut stream, "0").is_err());
}
