//! Tidiness of this repository's source, held by a ratchet: what is untidy may become less and never more.
//!
//! Finds files that import each other in a circle, doc comments that only repeat a name, thresholds that are typed twice, retired
//! names and words, documents that name a path or link to a page which does not exist, and a crate graph in ARCHITECTURE.md that
//! differs from the manifests. rustfmt and clippy check style. Each fault is reported with file and line.
//! `bounds.txt` lists the faults that exist today. After fixing one: `FATHOM_BLESS=1 cargo test --test tidy`, and commit the file.
#![allow(clippy::unwrap_used)] // A file that cannot be read is a failure of the test.

mod bounds;
mod circles;
mod docs;
mod graph;
mod imports;
mod language;
mod links;
mod places;
mod source;
mod thresholds;

use source::Source;
use std::path::Path;

/// Something that the bounds are about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Untidy {
    /// What and where, as the bounds name it: it must not change with every line above.
    key: String,
    /// How much of it.
    figure: usize,
    /// What is untidy and how much of it, for people: with file and line.
    sentence: String,
}

#[test]
fn the_source_becomes_no_less_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = std::thread::scope(|threads| {
        // Both read all of the source, and syntax cannot go from one thread to another.
        let circles = threads.spawn(|| circles::find(root));
        let files = Source::all(root, &["src", "crates", "tests", "benches", "fuzz/fuzz_targets"]);
        let mut found: Vec<Untidy> = files.iter().filter_map(docs::find).collect();
        found.extend(files.iter().filter_map(thresholds::find));
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        found.extend(language::find(root, &paths));
        found.extend(circles.join().unwrap());
        found
    });
    let worse = bounds::hold(found, &root.join("tests/tidy/bounds.txt"));
    assert!(worse.is_empty(), "\n{}", worse.join("\n"));
}
