//! Job files and flags: any text is a job that contradicts itself nowhere, or a message with its place.
//!
//! For: whatever people write, and whatever they name as a job file. Not for: meaning (unit tests).
//! The input is a file, and also the values of flags, one `key value` a line.
#![no_main]

use dialect::job;
use libfuzzer_sys::fuzz_target;
use model::wish::{JobWish, keys};

fuzz_target!(|text: &str| {
    match job::parse("job.toml", text, |_| Vec::new()) {
        Ok(job) => {
            assert_eq!(job.check(), []);
            assert!(job.phases.iter().all(|p| !p.streams.is_empty()));
        }
        Err(trouble) => {
            let plain = trouble.to_string();
            assert!(plain.contains("--> job.toml:"), "{plain}");
            assert!(!plain.contains('\u{1b}'), "{plain}");
            assert!(!trouble.coloured().is_empty());
        }
    }
    let mut said = JobWish::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let Some(key) = keys::find(name) else { continue };
        if let Err(why) = key.say(&mut said, [value]) {
            assert!(why.contains("; type"), "{why}");
        }
    }
    for problem in said.check() {
        assert!(!problem.in_flags().contains('{') && !problem.in_toml().contains('{'));
    }
});
