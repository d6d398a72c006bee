//! Kernel text: block `stat`, `meminfo`, cgroup files. Any text is figures or a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::kernel_text(text));
