//! Session files: any bytes are a record or an error, and any record has a report in every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fathom_io_fuzz::session(bytes));
