//! `/proc/self/mountinfo`: any text is a list of mounts, at most one per line.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::mountinfo(text));
