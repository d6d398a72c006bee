//! Compares the picture of the crates in ARCHITECTURE.md with the dependencies in the manifests.
//!
//! The picture is a code block with one line per crate: `crate -> dependency, dependency`. The root package is called `fathom`.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns each crate of the repository with the crates of the repository that it depends on.
fn dependencies(root: &Path) -> BTreeSet<(String, BTreeSet<String>)> {
    let ours: BTreeSet<String> = std::fs::read_dir(root.join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let manifests = ours.iter().map(|name| (name.clone(), root.join("crates").join(name)));
    manifests
        .chain([("fathom".to_owned(), root.to_owned())])
        .map(|(name, dir)| {
            let text = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap();
            let table = text.split("\n[dependencies]").nth(1).unwrap_or_default();
            let table = table.split("\n[").next().unwrap_or_default();
            let named = table.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
            (name, named.filter(|name| ours.contains(*name)).map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn crate_picture_matches_the_manifests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let drawn: BTreeSet<(String, BTreeSet<String>)> = text
        .lines()
        .filter_map(|line| line.split_once("->"))
        .filter(|(name, _)| name.trim().chars().all(|c| c.is_ascii_lowercase()))
        .map(|(name, list)| {
            let list = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            (name.trim().to_owned(), list.map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(drawn, dependencies(root));
}
