//! `/proc/self/mountinfo`: any text is a list of mounts, at most one per line.
//!
//! For: mount points with whatever bytes somebody put into their names. Not for: choosing a mount.
#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::mountinfo;

fuzz_target!(|text: &str| {
    let mounts = mountinfo::parse(text).len();
    assert!(mounts <= text.lines().count());
});
