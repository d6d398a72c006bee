//! Flags of `open(2)` that `rustix` has under another value.
//!
//! For: `O_DSYNC`, which is `O_SYNC` in `rustix::fs::OFlags` (1.1, `linux_raw`): a file opened so waits for its metadata too. Not for: flags that
//! `rustix` has right.

/// Each write waits until it can be read back after a crash (`open(2)`).
pub const O_DSYNC: i32 = libc::O_DSYNC;

#[test]
fn it_is_a_part_of_the_stronger_flag_and_not_that() {
    assert_eq!(libc::O_SYNC & O_DSYNC, O_DSYNC);
    assert_ne!(libc::O_SYNC, O_DSYNC);
}
