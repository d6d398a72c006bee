//! Command lines of ioping's: any words are requests, or a message with its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::ioping(text));
