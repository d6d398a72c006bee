//! Checks that this repository's source does not become less tidy: the number of faults may fall but never rise.
//!
//! Finds files that import each other in a circle, doc comments that only repeat a name, thresholds that are typed twice, retired names and
//! words, documents that name or link to missing files, and a crate graph in ARCHITECTURE.md that differs from the manifests. rustfmt and
//! clippy check style. Each fault is reported with file and line. `bounds.txt` lists the faults that exist today. After fixing one:
//! `FATHOM_BLESS=1 cargo test --test tidy`, and commit the file.
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

/// A kind of fault in a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Untidy {
    /// Kind and place of the fault, as in `bounds.txt`; without line numbers, which change with every edit.
    key: String,
    /// Number of faults.
    figure: usize,
    /// Message with the file and line of each fault.
    sentence: String,
}

#[test]
fn source_has_no_more_faults_than_its_bounds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = std::thread::scope(|threads| {
        // Parsed syntax cannot be sent to another thread, so each of the two threads parses all files.
        let circles = threads.spawn(|| circles::find(root));
        let files = Source::all(root, &["src", "crates", "tests", "benches", "fuzz/fuzz_targets"]);
        let mut found: Vec<Untidy> = files.iter().filter_map(docs::find).collect();
        found.extend(files.iter().filter_map(thresholds::find));
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        found.extend(language::find(root, &paths));
        found.extend(circles.join().unwrap());
        found
    });
    let worse = bounds::check(found, &root.join("tests/tidy/bounds.txt"));
    assert!(worse.is_empty(), "\n{}", worse.join("\n"));
}

/// Checks each advised command that writes or reads a target once: without `--runs 1 --passes 1` it would make five runs, or end too early.
#[test]
fn commands_that_write_a_target_once_make_one_run_of_one_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = Source::all(root, &["src", "crates"]).into_iter().map(|source| root.join(source.path));
    let mut folders = vec![root.join("docs")];
    let mut files: Vec<_> = sources.chain([root.join("README.md")]).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                files.push(path);
            }
        }
    }
    let mut found = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap().replace('\\', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for rest in text.split("fathom ").filter_map(|rest| rest.strip_prefix("run ")) {
            let command = rest.split(['`', '"', '\'']).next().unwrap_or_default();
            let fills = command.contains("--rw write ") && command.contains("--destroy ");
            if fills || command.contains("--passes 1 ") {
                assert!(command.contains("--runs 1 --passes 1 "), "{}: fathom run {command}", file.display());
                found += 1;
            }
        }
    }
    assert!(found >= 6, "only {found} such commands were found");
}
