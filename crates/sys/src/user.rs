//! Who runs this, and what to advise where that user may not do something.
//!
//! For: one place that never tells root to become root. Not for: what a user may do; that is tried.

/// Whether the effective user is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What to do where the user with this id was not permitted: become root, or, for root, find who else forbids it.
pub fn advice(user_id: u32) -> &'static str {
    if user_id == 0 {
        "find what forbids it to root too: the host, a container's runtime or a security module"
    } else {
        "run as root"
    }
}

/// What to do where the user who runs this was not permitted: become root, or, for root, find who else forbids it.
pub fn own_advice() -> &'static str {
    advice(rustix::process::geteuid().as_raw())
}

/// What to do where something belongs to another user.
pub fn of_others() -> String {
    if is_root() {
        own_advice().into()
    } else {
        "name a place of yours, or run as its owner or as root".into()
    }
}

#[test]
fn root_is_not_told_to_become_root() {
    assert!(!advice(0).contains("run as") && advice(1000) == "run as root");
    assert_eq!(own_advice().contains("run as root"), !is_root());
}
