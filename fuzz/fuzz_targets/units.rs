//! Sizes and durations as users type them, and figures as they are shown.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::units(text));
