//! Job files of fio: any text is a job without contradictions, or a message with its place.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fathom_io_fuzz::fio(text));
