//! Advice after an error: the likely cause of an errno, and what a user without permission can do. Root is not advised to become root.

use std::io;

/// Whether the effective user is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the advice for a user with this id who lacks permission: become root, or if already root, find the cause of the denial.
pub fn advice(user_id: u32) -> &'static str {
    if user_id == 0 {
        "find out what denies it to root: the host, the container runtime or a security module"
    } else {
        "run as root"
    }
}

/// Returns the advice for the effective user who lacks permission.
pub fn own_advice() -> &'static str {
    advice(rustix::process::geteuid().as_raw())
}

/// Returns the advice for a file of another user.
pub fn other_owner_advice() -> String {
    if is_root() {
        own_advice().into()
    } else {
        "name a path that you own, or run as its owner or as root".into()
    }
}

/// Returns the likely cause of an error, after a semicolon: for example a limit of this process, and how to see it. Returns an empty text
/// for errors that need no explanation.
pub fn cause(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EFBIG) => {
            "; the file would be larger than allowed (`ulimit -f` shows the limit of this process; the file system may have a lower one)"
        }
        Some(libc::EMFILE) => "; this process has reached its limit of open files (`ulimit -n` shows it)",
        Some(libc::ENFILE) => "; the machine has too many open files (`sysctl fs.file-max` shows the limit)",
        Some(libc::EAGAIN) => {
            "; a limit of threads is reached, or there is no memory for another one (`ulimit -u` and `ulimit -v` show the limits)"
        }
        Some(libc::ENOMEM) => {
            "; there is not enough memory, or a limit is reached (`ulimit -v` and, for locked memory, `ulimit -l` show the limits)"
        }
        Some(libc::ENOSPC | libc::EDQUOT) => "; make room there, or name another path",
        _ => "",
    }
}

#[test]
fn root_is_not_advised_to_become_root() {
    assert!(!advice(0).contains("run as") && advice(1000) == "run as root");
    assert_eq!(own_advice().contains("run as root"), !is_root());
}
