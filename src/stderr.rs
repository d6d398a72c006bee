//! Standard error: words about what is going on, beside the answer.
//!
//! For: messages that do nothing to a terminal and never end the program. Not for: answers ([`crate::stdout`]), nor progress
//! ([`crate::live`]), which uses this where nobody watches.

use crate::stdout;
use model::visible::visible;
use rustix::fs::{FileType, fstat};
use std::borrow::Cow;
use std::fs::File;
use std::os::fd::BorrowedFd;

/// Sends what is said to standard output from now on, since what standard error leads to is not to be written; to nowhere where that is a
/// disk too.
pub(crate) fn divert() {
    let sent = if is_disk(rustix::stdio::stdout()) {
        let null = File::options().write(true).open("/dev/null");
        null.and_then(|null| Ok(rustix::stdio::dup2_stderr(&null)?))
    } else {
        rustix::stdio::dup2_stderr(rustix::stdio::stdout()).map_err(Into::into)
    };
    // Without either there is nobody to tell.
    let _ = sent;
}

/// Nothing is said onto a block device, where a shell may have sent standard error by a slip.
pub fn spare_disks() {
    if is_disk(rustix::stdio::stderr()) {
        divert();
        say("fathom: standard error is a block device, and never written to; messages follow here");
    }
}

fn is_disk(stream: BorrowedFd) -> bool {
    fstat(stream).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::BlockDevice)
}

/// Says something, with a line feed behind it. Where it cannot be said there is nobody to tell.
pub fn say(words: &str) {
    let _ = stdout::write(rustix::stdio::stderr(), format!("{}\n", visible(words)).as_bytes());
}

/// Prints bytes as they are. Where they cannot be printed there is nobody to tell.
pub fn write(bytes: &[u8]) {
    let _ = stdout::write(rustix::stdio::stderr(), bytes);
}

/// Says something in the place of what was said so before, with no line feed behind it.
pub fn say_in_place(words: &str) {
    let _ = stdout::write(rustix::stdio::stderr(), format!("\r{}", visible(words)).as_bytes());
}

/// Says something that has a form with colours too, which differs from the plain one in nothing else.
pub fn say_coloured(plain: &str, coloured: &str) {
    // Escape sequences are let through only where every one of them is ours.
    let harmless = matches!(visible(plain), Cow::Borrowed(_));
    if harmless && stdout::has_colours(&std::io::stderr()) {
        let _ = stdout::write(rustix::stdio::stderr(), format!("{coloured}\n").as_bytes());
    } else {
        say(plain);
    }
}
