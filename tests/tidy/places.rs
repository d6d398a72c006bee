//! Finds files and folders of this repository that a document names in backquotes and that do not exist.

use crate::links::documents;
use std::path::Path;

/// Folders of the repository that documents point into.
const FOLDERS: &[&str] = &["src/", "crates/", "tests/", "docs/", "benches/", "fuzz/"];
/// Characters of placeholders and patterns.
const ANY: &[char] = &['*', '<', '?', '$'];

/// Returns the files and folders that a document names and that do not exist.
pub(crate) fn missing(root: &Path, text: &str) -> Vec<String> {
    // Every second part is between backquotes.
    let named = text.split('`').skip(1).step_by(2).filter(|place| {
        FOLDERS.iter().any(|folder| place.starts_with(folder)) && !place.contains(ANY) && !place.contains(' ')
    });
    named.flat_map(each).filter(|place| !root.join(place).exists()).collect()
}

/// Expands braces: `a/{b,c}.rs` becomes `a/b.rs` and `a/c.rs`.
fn each(place: &str) -> Vec<String> {
    let Some((before, (names, after))) =
        place.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![place.to_owned()];
    };
    names.split(',').flat_map(|name| each(&format!("{before}{name}{after}"))).collect()
}

#[test]
fn files_that_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = documents(root);
    // The change log names files that existed at the time of a change.
    documents.retain(|path| !path.ends_with("CHANGELOG.md"));
    assert!(documents.len() > 10);
    let missing: Vec<String> = documents
        .iter()
        .flat_map(|path| {
            let missing = missing(root, &std::fs::read_to_string(path).unwrap());
            missing.into_iter().map(|place| format!("{} names {place}", path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
    let text = "see `src/{main,nowhere}.rs`, `src/plan/` and `tests/*/none.rs`, not src/none.rs or `cargo test src/none`";
    assert_eq!(self::missing(root, text), ["src/nowhere.rs"]);
}
