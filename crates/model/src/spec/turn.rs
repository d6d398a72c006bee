//! Turns: which keys say what one is.
//!
//! For: who reads them, and documents that name them. Not for: whether they fit one another, which [`super::StreamSpec::check`] asks.

/// Keys that stand in the table of a turn, beside its length (`ops`): which operations there are, and what comes between them.
pub const TURN_KEYS: [&str; 23] = [
    "rw",
    "mix",
    "bs",
    "align",
    "random",
    "stride",
    "hole",
    "backwards",
    "positions",
    "consecutive",
    "run-length",
    "interleaved",
    "times",
    "mix-by-run",
    "offset",
    "size",
    "think",
    "period",
    "burst",
    "fsync",
    "fdatasync",
    "sync-file-range",
    "drain",
];

#[test]
fn each_is_a_key_of_streams() {
    use super::keys::{Set, find};
    for name in TURN_KEYS {
        let key = find(name).unwrap_or_else(|| panic!("{name}"));
        assert!(matches!(key.set, Set::Stream(_) | Set::Switch(_)), "{name}");
    }
}
