//! Sizes and durations as people type them, and figures as they are shown.
//!
//! For: any text is a number or a sentence. Not for: which number (unit tests).
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::units;

fuzz_target!(|text: &str| {
    match units::parse_bytes(text) {
        Ok(bytes) => {
            let _ = (units::show_bytes(bytes), units::show_block(bytes), units::show_rate(bytes as f64));
            // A plain number means itself.
            assert_eq!(units::parse_bytes(&bytes.to_string()), Ok(bytes));
        }
        Err(why) => assert!(why.contains("type")),
    }
    match units::parse_duration_ns(text) {
        Ok(ns) => assert!(!units::show_ns(ns as f64).is_empty()),
        Err(why) => assert!(why.contains("type")),
    }
});
