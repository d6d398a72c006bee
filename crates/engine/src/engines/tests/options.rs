//! Tests of the options of every engine.

use super::{everywhere, one_op, op, open, round_trip, scratch, spec, witness};
use crate::engines::find;
use crate::spec::{EngineOption, TakesNumber};
use model::job::{Cache, Kind};

/// Whether an engine moves all bytes with this option.
fn moves_all(option: &EngineOption) -> bool {
    option.delivers_data && option.name != "nowait"
}

#[test]
fn every_option_works_or_is_refused_by_its_name() {
    everywhere(|entry, place, cache| {
        // Skip durable cache modes: durability depends on the open file, not on options.
        for option in entry.options.iter().filter(|_| !cache.is_sync()) {
            let Some(file) = scratch(place, cache, true) else { return };
            let witness = witness(&file);
            let mut spec = spec(entry, vec![file], cache);
            let number = match (option.number, option.name) {
                (TakesNumber::No, _) => None,
                (_, "pipe" | "buffer" | "readahead") => Some(8192),
                (_, "vectors") => Some(4),
                _ => Some(0),
            };
            spec.options.insert(option.name.into(), number);
            let what = format!("{}:{} {place} {}", entry.name, option.name, cache.word());
            match open(spec) {
                Ok((mut engine, granted)) => {
                    assert!(!granted.used.is_empty(), "{what}: granted but not reported");
                    if moves_all(option) {
                        round_trip(&mut *engine, entry.max_depth.min(16), cache, &witness, &what);
                    } else {
                        let result = one_op(&mut *engine, op(Kind::Read, 0, 4096));
                        assert!(
                            result == 4096 || result == -rustix::io::Errno::AGAIN.raw_os_error(),
                            "{what}: {result}"
                        );
                    }
                }
                Err(e) => {
                    println!("{what}: {e}");
                    assert!(e.to_string().contains(option.name), "{what}: {e}");
                }
            }
        }
    });
}

/// Returns the message with which an engine refuses options; `None` if it accepts them.
fn refusal(engine: &str, cache: Cache, options: &[(&str, Option<u64>)]) -> Option<String> {
    let entry = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
    let mut spec = spec(entry, vec![scratch("/var/tmp", cache, true)?], cache);
    spec.options = options.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    open(spec).err().map(|e| e.to_string())
}

#[test]
fn conflicting_and_invalid_options_are_refused_with_a_message() {
    for (engine, cache, options) in [
        ("io_uring", Cache::Buffered, &[("deferred", None), ("interrupt", None)][..]),
        ("io_uring", Cache::Buffered, &[("sqpoll", None), ("deferred", None)]),
        ("io_uring", Cache::Buffered, &[("nop", None), ("iopoll", None)]),
        ("io_uring", Cache::Buffered, &[("sqpoll", Some(1 << 20))]),
        ("io_uring", Cache::Buffered, &[("sqpoll", Some(u64::MAX))]),
        ("mmap", Cache::Mmap, &[("sequential", None), ("random", None)]),
        ("vsync", Cache::Buffered, &[("retry", None)]),
        ("stdio", Cache::Buffered, &[("getc", None), ("getc-unlocked", None)]),
        ("stdio", Cache::Buffered, &[("buffer", Some(u64::MAX))]),
        ("std", Cache::Buffered, &[("buffer", Some(u64::MAX))]),
        ("rw", Cache::Buffered, &[("vectors", Some(17))]),
        ("sync", Cache::Buffered, &[("readahead", Some(0))]),
        ("splice", Cache::Buffered, &[("pipe", Some(u64::MAX))]),
        ("splice", Cache::Buffered, &[("pipe", Some(0))]),
    ] {
        let message = refusal(engine, cache, options).unwrap_or_else(|| panic!("{engine} takes {options:?}"));
        println!("{message}");
        let not_permitted = message.contains("io_uring is not permitted");
        assert!(
            not_permitted || options.iter().any(|(name, _)| message.contains(name)),
            "{engine}: {message}"
        );
    }
}
