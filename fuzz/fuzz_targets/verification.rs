//! States of a verification: any text is a state whose arithmetic never overflows, or a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::verification(text));
