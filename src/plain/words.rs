//! Words to a tool's user: reasons as the C library has them, and lines of fathom's own.
//!
//! For: messages that look like the tool's. Not for: what is told.

use crate::stderr;
use std::io;

/// What a line of fathom's own begins with, under those of the tool.
const OURS: &str = "fathom: ";

/// Why a call failed, without the number that Rust adds.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// Says lines of fathom's own on standard error.
pub(super) fn say_ours(lines: &[String]) {
    for line in lines {
        stderr::say(&format!("{OURS}{line}"));
    }
}

#[test]
fn a_reason_is_that_of_the_c_library() {
    assert_eq!(reason(&io::Error::from_raw_os_error(2)), "No such file or directory");
}
