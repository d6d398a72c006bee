//! Replays the seeds of the fuzz targets as plain tests, which need no fuzzer.
//!
//! Each file in `fuzz/seeds` is used as a whole, and cut off after each of its lines.
#![allow(clippy::unwrap_used)] // A seed that cannot be read is a failure of the test.

#[allow(unreachable_pub)] // The fuzz targets use this module as a library.
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

type Target = fn(&[u8]);

/// The fuzz targets, each with the name of its folder of seeds.
const TARGETS: &[(&str, Target)] = &[
    ("capture", targets::capture),
    ("diskspd", |input| on_text(input, targets::diskspd)),
    ("fio", |input| on_text(input, targets::fio)),
    ("iometer", |input| on_text(input, targets::iometer)),
    ("job", |input| on_text(input, targets::job)),
    ("kernel_text", |input| on_text(input, targets::kernel_text)),
    ("mountinfo", |input| on_text(input, targets::mountinfo)),
    ("session", targets::session),
    ("units", |input| on_text(input, targets::units)),
    ("verification", |input| on_text(input, targets::verification)),
];

fn on_text(input: &[u8], target: fn(&str)) {
    target(std::str::from_utf8(input).unwrap());
}

#[test]
fn every_seed_is_answered_whole_and_cut_off() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(fuzz.join(folder)).unwrap().map(|e| e.unwrap().path());
        let mut names: Vec<String> =
            entries.map(|p| p.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        (names("seeds"), names("fuzz_targets")),
        (known.iter().map(|n| (*n).to_owned()).collect(), names("seeds"))
    );
    for (name, target) in TARGETS {
        let seeds = names(&format!("seeds/{name}"));
        assert!(!seeds.is_empty(), "no seed of {name}");
        for seed in seeds {
            let input = std::fs::read(fuzz.join("seeds").join(name).join(&seed)).unwrap();
            println!("{name}: {seed}");
            let ends = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
            ends.chain([input.len()]).for_each(|end| target(&input[..end]));
        }
    }
}
