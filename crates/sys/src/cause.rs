//! The likely cause of an error that a limit of this process or a full device makes.
//!
//! For: words behind an error, which name the limit and how to see it. Not for: errors that say themselves what is wrong.

use std::io;

/// The cause, behind a semicolon; nothing where the error says it itself.
pub fn cause(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EFBIG) => "; files may not become that large here (`ulimit -f` shows the limit)",
        Some(libc::EMFILE) => "; this process may not open more files (`ulimit -n` shows the limit)",
        Some(libc::ENFILE) => "; the machine has too many open files (`sysctl fs.file-max` shows the limit)",
        Some(libc::EAGAIN) => {
            "; no more threads may be started here, or there is no memory for one (`ulimit -u` and `ulimit -v` show the limits)"
        }
        Some(libc::ENOMEM) => {
            "; this process may not have more memory (`ulimit -v` and, for locked memory, `ulimit -l` show the limits)"
        }
        Some(libc::ENOSPC | libc::EDQUOT) => "; make room there, or name another place",
        _ => "",
    }
}
