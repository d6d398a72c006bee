//! Command lines of hdparm's: any words are timings, or a message with its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::hdparm(text));
