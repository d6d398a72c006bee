//! Error numbers of Linux: their names and descriptions, and the lists of errors that a stream ignores.
//!
//! `ignore-errors` accepts `EIO`, `write:ENOSPC` and `read:all`, separated by commas.

use crate::job::Kind;
use crate::spec::number::{any_of, quoted_excerpt, reject};
use serde::{Deserialize, Serialize};

/// Number, name, and a description if the name alone is not clear for I/O. Numbers up to 34 are the
/// same on all architectures; most others differ on MIPS, SPARC, Alpha and PA-RISC
/// (`include/uapi/asm-generic/errno.h`).
const NAMES: [(i32, &str, &str); 46] = [
    (1, "EPERM", ""),
    (2, "ENOENT", ""),
    (3, "ESRCH", ""),
    (4, "EINTR", ""),
    (5, "EIO", "input/output error"),
    (6, "ENXIO", "no such device"),
    (7, "E2BIG", ""),
    (8, "ENOEXEC", ""),
    (9, "EBADF", "not open for this access"),
    (10, "ECHILD", ""),
    (11, "EAGAIN", "would have to wait"),
    (12, "ENOMEM", "no memory"),
    (13, "EACCES", ""),
    (14, "EFAULT", ""),
    (15, "ENOTBLK", ""),
    (16, "EBUSY", "in use"),
    (17, "EEXIST", ""),
    (18, "EXDEV", ""),
    (19, "ENODEV", "the device is gone"),
    (20, "ENOTDIR", ""),
    (21, "EISDIR", ""),
    (22, "EINVAL", "invalid argument"),
    (23, "ENFILE", ""),
    (24, "EMFILE", ""),
    (25, "ENOTTY", ""),
    (26, "ETXTBSY", ""),
    (27, "EFBIG", "file too large"),
    (28, "ENOSPC", "no space left"),
    (29, "ESPIPE", ""),
    (30, "EROFS", "read-only"),
    (31, "EMLINK", ""),
    (32, "EPIPE", ""),
    (33, "EDOM", ""),
    (34, "ERANGE", ""),
    (52, "EBADE", "reservation conflict"),
    (61, "ENODATA", "medium error"),
    (62, "ETIME", "timed out"),
    (67, "ENOLINK", "the path to the device failed"),
    (74, "EBADMSG", "checksum error"),
    (84, "EILSEQ", "data differ from what was written"),
    (95, "EOPNOTSUPP", "not supported"),
    (110, "ETIMEDOUT", "timed out"),
    (116, "ESTALE", "stale file handle"),
    (117, "EUCLEAN", "the file system is damaged"),
    (121, "EREMOTEIO", "target error"),
    (122, "EDQUOT", "quota exceeded"),
];

/// Describes an error: `EIO, input/output error`; `ENOENT` if the name is clear; `errno 250` for an unknown number.
pub fn describe_errno(errno: i32) -> String {
    match NAMES.iter().find(|(number, ..)| *number == errno) {
        Some((_, name, "")) => (*name).into(),
        Some((_, name, words)) => format!("{name}, {words}"),
        None => format!("errno {errno}"),
    }
}

/// Returns the name to type, such as `EIO`; the number for an error that is not in the table.
pub fn name(errno: i32) -> String {
    let named = NAMES.iter().find(|(number, ..)| *number == errno);
    named.map_or_else(|| errno.to_string(), |(_, name, _)| (*name).into())
}

/// Parses the name or the number of an error; `None` for other text.
pub fn number(text: &str) -> Option<i32> {
    let named = NAMES.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(text));
    let typed = || text.parse().ok().filter(|number| (1..=MAX_ERRNO).contains(number));
    named.map(|(number, ..)| *number).or_else(typed)
}

/// The largest error number that the kernel returns (`MAX_ERRNO`).
const MAX_ERRNO: i32 = 4095;

/// The word for all errors.
const ALL: &str = "all";

/// Parses a list of errors, such as `EIO,write:ENOSPC`: each is for all operations or for one kind.
///
/// # Errors
/// What is wrong in the text, and what to type instead.
pub fn ignored_errors(text: &str) -> Result<Vec<IgnoredError>, String> {
    text.split(',').map(|word| parse_ignored_error(word.trim())).collect()
}

fn parse_ignored_error(text: &str) -> Result<IgnoredError, String> {
    let (kind, error) = match text.split_once(':') {
        Some((kind, error)) => (Some(parse_kind(kind)?), error),
        None => (None, text),
    };
    if error == ALL {
        return Ok(IgnoredError { kind, errno: None });
    }
    let number = number(error).ok_or_else(|| {
        reject(error, "is not an error; type a name or a number, such as EIO, write:ENOSPC or read:all")
    })?;
    Ok(IgnoredError { kind, errno: Some(number) })
}

fn parse_kind(word: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::word);
        format!("{} is not a kind of operation; type {}", quoted_excerpt(word), any_of(&known))
    })
}

/// Converts fio's lists of `ignore_error`, one for each direction (reads, writes, verifying reads), to the form of
/// [`ignored_errors`]. A single list is for reads.
pub fn by_direction(text: &str) -> String {
    let kinds = [Kind::Read, Kind::Write, Kind::Read];
    let with_kind = |(kind, list): (Kind, &str)| -> Vec<String> {
        let errors = list.split(':').map(str::trim).filter(|error| !error.is_empty());
        errors.map(|error| format!("{}:{error}", kind.word())).collect()
    };
    kinds.into_iter().zip(text.split(',')).flat_map(with_kind).collect::<Vec<_>>().join(",")
}

/// Writes errors as [`ignored_errors`] reads them: `read:EIO,write:ENOSPC`.
pub fn format_ignored_errors(errors: &[IgnoredError]) -> String {
    let word = |error: &IgnoredError| {
        let kind = error.kind.map_or(String::new(), |kind| format!("{}:", kind.word()));
        format!("{kind}{}", error.errno.map_or_else(|| ALL.into(), name))
    };
    errors.iter().map(word).collect::<Vec<_>>().join(",")
}

/// Errors that do not count towards `max_errors`, like fio's `ignore_error` and `continue_on_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoredError {
    /// Kind of operation; `None` for all kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Error number; `None` for all errors, including operations that moved fewer bytes than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl IgnoredError {
    /// Returns whether an error matches. The argument `errno` is `None` for an operation that moved fewer bytes than requested.
    pub fn is(&self, kind: Kind, errno: Option<i32>) -> bool {
        self.kind.is_none_or(|of| of == kind) && (self.errno.is_none() || self.errno == errno)
    }
}

#[test]
fn error_names_and_numbers_are_converted() {
    for (errno, named, _) in NAMES {
        assert_eq!((name(errno).as_str(), number(named)), (named, Some(errno)));
        assert_eq!(number(&errno.to_string()), Some(errno));
        // The C library has a text for each number.
        assert!(!std::io::Error::from_raw_os_error(errno).to_string().contains("Unknown"), "{named}");
    }
    assert_eq!(
        (number("eio"), number("EIOX"), number("0"), number("-5"), number("4096")),
        (Some(5), None, None, None, None)
    );
    assert_eq!(
        (describe_errno(5).as_str(), describe_errno(2).as_str(), describe_errno(250).as_str()),
        ("EIO, input/output error", "ENOENT", "errno 250")
    );
}

#[test]
fn ignored_errors_are_parsed_from_their_formatted_form() {
    for text in ["EIO", "write:ENOSPC", "read:all,trim:EOPNOTSUPP", "all", "250"] {
        assert_eq!(ignored_errors(text).map(|errors| format_ignored_errors(&errors)).as_deref(), Ok(text));
    }
    for (text, why) in [
        ("", "is not an error"),
        ("EOI", "is not an error"),
        ("reads:EIO", "read, write, trim or sync"),
        ("EIO,", "is not an error"),
    ] {
        assert!(ignored_errors(text).is_err_and(|message| message.contains(why)), "{text}");
    }
}

#[test]
fn fio_lists_of_errors_are_converted() {
    assert_eq!(by_direction("EIO:ENOSPC,ENOSPC"), "read:EIO,read:ENOSPC,write:ENOSPC");
    assert_eq!(
        (by_direction(",ENOSPC,EILSEQ").as_str(), by_direction("").as_str()),
        ("write:ENOSPC,read:EILSEQ", "")
    );
}

#[test]
fn errors_are_ignored_by_kind_and_number() {
    let is = |text: &str, kind, errno| {
        ignored_errors(text).is_ok_and(|errors| errors.iter().any(|error| error.is(kind, errno)))
    };
    assert!(is("write:ENOSPC", Kind::Write, Some(28)));
    assert!(!is("write:ENOSPC", Kind::Write, Some(5)) && !is("write:ENOSPC", Kind::Read, Some(28)));
    assert!(
        is("EIO,all", Kind::Read, None) && is("all", Kind::Sync, Some(5)) && !is("EIO", Kind::Write, None)
    );
}
