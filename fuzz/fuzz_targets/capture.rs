//! Captures, traces of other tools, pages of the kernel's trace: any bytes are rows or a reason, and any rows have a profile.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_io_fuzz::capture(bytes));
