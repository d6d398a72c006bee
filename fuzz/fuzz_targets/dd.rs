//! Command lines of dd's: any words are a copy, or a message with its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::dd(text));
