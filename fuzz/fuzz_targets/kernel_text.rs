//! Kernel text: block `stat`, `meminfo`, cgroup files. Any text is figures or a reason.
//!
//! For: kernels older, newer and stranger than those tested. Not for: whether the figures are right (unit tests).
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::evidence::{BlockStat, cgroup_v1, cgroup_v2, meminfo_bytes};

fuzz_target!(|text: &str| {
    if let Ok(stat) = BlockStat::parse(text) {
        assert_eq!(stat.since(&stat).map(|d| d.total()), Some(BlockStat::default().total()));
    }
    let key = text.split(':').next().unwrap_or_default();
    let _ = meminfo_bytes(text, key);
    let _ = meminfo_bytes(text, "Dirty");
    let _ = (cgroup_v1(text), cgroup_v2(text));
});
