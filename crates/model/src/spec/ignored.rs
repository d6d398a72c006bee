//! `ignore-errors`: errors that a stream goes on after, in words.
//!
//! For: `EIO`, `write:ENOSPC` and `read:all`, several with commas. Not for: what becomes of them ([`crate::job::IgnoredError`]).

use super::number::{any_of, shown};
use crate::errno;
use crate::job::Kind;
use crate::job::ignored::IgnoredError;

/// Stands for every error.
const ALL: &str = "all";

/// Errors, each of all operations or of one kind.
///
/// # Errors
/// What was wrong and what to type.
pub fn ignored_errors(text: &str) -> Result<Vec<IgnoredError>, String> {
    text.split(',').map(|word| ignored(word.trim())).collect()
}

fn ignored(text: &str) -> Result<IgnoredError, String> {
    let (kind, error) = match text.split_once(':') {
        Some((kind, error)) => (Some(self::kind(kind)?), error),
        None => (None, text),
    };
    if error == ALL {
        return Ok(IgnoredError { kind, errno: None });
    }
    let number = errno::number(error).ok_or_else(|| {
        format!(
            "{} is no error; type its name or number, such as EIO, write:ENOSPC or read:all",
            shown(error)
        )
    })?;
    Ok(IgnoredError { kind, errno: Some(number) })
}

fn kind(word: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::word);
        format!("{} is no kind of operation; type {}", shown(word), any_of(&known))
    })
}

/// fio's lists of `ignore_error`, which go by direction, as [`ignored_errors`] reads them: of reads, of writes, and of what is read back to be
/// checked. A single list is of reads.
pub fn by_direction(text: &str) -> String {
    let kinds = [Kind::Read, Kind::Write, Kind::Read];
    let of = |(kind, list): (Kind, &str)| -> Vec<String> {
        let words = list.split(':').map(str::trim).filter(|word| !word.is_empty());
        words.map(|word| format!("{}:{word}", kind.word())).collect()
    };
    kinds.into_iter().zip(text.split(',')).flat_map(of).collect::<Vec<_>>().join(",")
}

/// As [`ignored_errors`] reads them.
pub fn of_ignored_errors(errors: &[IgnoredError]) -> String {
    let word = |error: &IgnoredError| {
        let kind = error.kind.map_or(String::new(), |kind| format!("{}:", kind.word()));
        format!("{kind}{}", error.errno.map_or_else(|| ALL.into(), errno::name))
    };
    errors.iter().map(word).collect::<Vec<_>>().join(",")
}

#[test]
fn errors_are_read_as_they_are_written() {
    for text in ["EIO", "write:ENOSPC", "read:all,trim:EOPNOTSUPP", "all", "250"] {
        assert_eq!(ignored_errors(text).map(|errors| of_ignored_errors(&errors)).as_deref(), Ok(text));
    }
    for (text, why) in [
        ("", "is no error"),
        ("EOI", "is no error"),
        ("reads:EIO", "read, write, trim or sync"),
        ("EIO,", "is no error"),
    ] {
        assert!(ignored_errors(text).is_err_and(|told| told.contains(why)), "{text}");
    }
}

#[test]
fn lists_by_direction_are_those_of_fio() {
    assert_eq!(by_direction("EIO:ENOSPC,ENOSPC"), "read:EIO,read:ENOSPC,write:ENOSPC");
    assert_eq!(
        (by_direction(",ENOSPC,EILSEQ").as_str(), by_direction("").as_str()),
        ("write:ENOSPC,read:EILSEQ", "")
    );
}

#[test]
fn an_error_is_ignored_by_what_it_is_of() {
    let is = |text: &str, kind, errno| {
        ignored_errors(text).is_ok_and(|errors| errors.iter().any(|error| error.is(kind, errno)))
    };
    assert!(is("write:ENOSPC", Kind::Write, Some(28)));
    assert!(!is("write:ENOSPC", Kind::Write, Some(5)) && !is("write:ENOSPC", Kind::Read, Some(28)));
    assert!(
        is("EIO,all", Kind::Read, None) && is("all", Kind::Sync, Some(5)) && !is("EIO", Kind::Write, None)
    );
}
