//! Priorities of single operations as they are typed: `20%=rt:0`, `read/4k/20%=rt:0,write/10%=be:7`.
//!
//! For: reading and showing them. Not for: the priority of a whole stream ([`super::place`]).

use super::limits::{MAX_BLOCK_BYTES, MAX_SPLIT};
use super::number::{shown, size};
use super::place::{io_priority, of_io_priority};
use crate::job::{Kind, OpPriority};

/// Shares of operations with their priorities.
///
/// # Errors
/// What was wrong and what to type.
pub fn op_priorities(text: &str) -> Result<Vec<OpPriority>, String> {
    let all: Vec<OpPriority> = text.split(',').take(MAX_SPLIT + 1).map(one).collect::<Result<_, _>>()?;
    if all.len() > MAX_SPLIT {
        return Err(format!("there are too many shares; type {MAX_SPLIT} at most"));
    }
    check(&all)?;
    Ok(all)
}

/// Refuses shares of the same operations that come to more than all of them.
///
/// # Errors
/// That they do, and what to type.
pub fn check(all: &[OpPriority]) -> Result<(), String> {
    let most = |kind: Kind| {
        let of = |bytes: Option<u32>| -> u32 {
            let same = all.iter().filter(|one| one.kind.is_none_or(|k| k == kind) && one.bytes == bytes);
            same.map(|one| u32::from(one.percent)).sum()
        };
        of(None) + all.iter().filter_map(|one| one.bytes).map(|bytes| of(Some(bytes))).max().unwrap_or(0)
    };
    if Kind::MOVING.into_iter().any(|kind| most(kind) > 100) {
        return Err("shares of the same operations come to more than 100 %; type less".into());
    }
    Ok(())
}

fn one(text: &str) -> Result<OpPriority, String> {
    let wrong = || {
        format!(
            "{} is no share with its priority; type one such as 20%=rt:0 or read/4k/20%=be:7",
            shown(text)
        )
    };
    let (which, priority) = text.split_once('=').ok_or_else(wrong)?;
    let priority = io_priority(priority.trim())?;
    let mut words: Vec<&str> = which.split('/').map(str::trim).collect();
    let percent = words.pop().and_then(|word| word.strip_suffix('%')).ok_or_else(wrong)?;
    let percent = percent.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(wrong)?;
    let kind = words.first().and_then(|word| Kind::MOVING.into_iter().find(|kind| kind.word() == *word));
    let bytes = match (kind, words.as_slice()) {
        (Some(_), [_]) | (None, []) => None,
        (Some(_), [_, text]) | (None, [text]) => Some(size(text, 1, MAX_BLOCK_BYTES)? as u32),
        _ => return Err(wrong()),
    };
    Ok(OpPriority { kind, bytes, percent, priority })
}

/// Shares of operations with their priorities, as they are typed.
pub fn of_op_priorities(all: &[OpPriority]) -> String {
    let one = |one: &OpPriority| {
        let kind = one.kind.map_or_else(String::new, |kind| format!("{}/", kind.word()));
        let bytes = one.bytes.map_or_else(String::new, |bytes| format!("{bytes}/"));
        format!("{kind}{bytes}{}%={}", one.percent, of_io_priority(one.priority))
    };
    all.iter().map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn shares_are_read_as_they_are_shown() {
    use crate::job::IoPriority;
    let all = op_priorities("read/4k/20%=rt:0,10%=be:7").unwrap_or_default();
    let [first, second] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((first.kind, first.bytes, first.percent), (Some(Kind::Read), Some(4096), 20));
    assert_eq!((second.kind, second.bytes, second.priority), (None, None, IoPriority::BestEffort(7)));
    assert!(
        first.is_of(Kind::Read, 4096) && !first.is_of(Kind::Read, 8192) && !first.is_of(Kind::Write, 4096)
    );
    assert!(second.is_of(Kind::Write, 1) && !second.is_of(Kind::Trim, 1));
    assert_eq!(of_op_priorities(&all), "read/4096/20%=rt:0,10%=be:7");
    assert_eq!(op_priorities(&of_op_priorities(&all)), Ok(all));
    for bad in ["", "20%", "20=rt:0", "0%=rt:0", "101%=rt:0", "trim/5%=rt:0", "4k/read/5%=rt:0", "5%=rt:9"] {
        assert!(op_priorities(bad).is_err_and(|e| e.contains("; type")), "{bad}");
    }
    assert!(op_priorities("60%=rt:0,read/4k/50%=be:7").is_err_and(|e| e.contains("100 %")));
    assert!(op_priorities("read/60%=rt:0,write/50%=be:7").is_ok());
}
