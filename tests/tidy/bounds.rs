//! The ratchet: compares the faults with `bounds.txt`, and writes that file anew if `FATHOM_BLESS` is set. Counts may only fall.

use crate::Untidy;
use std::collections::BTreeMap;
use std::path::Path;

const BLESS: &str = "FATHOM_BLESS=1 cargo test --test tidy";

/// Returns a sentence for each count that differs from its bound: a higher count is a new fault, and for a lower one the bound must be
/// lowered. With `FATHOM_BLESS`, first writes all counts as the new bounds.
pub(crate) fn check(found: Vec<Untidy>, path: &Path) -> Vec<String> {
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(path, show(&found)).unwrap();
    }
    compare(found, &parse(&std::fs::read_to_string(path).unwrap_or_default()))
}

fn compare(found: Vec<Untidy>, bounds: &BTreeMap<String, usize>) -> Vec<String> {
    let mut gone = bounds.clone();
    let mut sentences = Vec::new();
    for Untidy { key, figure, sentence } in found {
        match gone.remove(&key) {
            Some(bound) if figure < bound => sentences.push(better(&key, figure, bound)),
            Some(bound) if figure == bound => {}
            Some(bound) => sentences.push(format!("{sentence}; at most {bound} so far")),
            None => sentences.push(sentence),
        }
    }
    sentences.extend(gone.iter().map(|(key, bound)| better(key, 0, *bound)));
    sentences
}

fn better(key: &str, figure: usize, bound: usize) -> String {
    format!("{key}: {figure}, below its bound {bound}; lower the bound: {BLESS}")
}

/// Formats the bounds: a line with key and count for each fault.
fn show(found: &[Untidy]) -> String {
    let mut lines: Vec<String> = found.iter().map(|u| format!("{} {}\n", u.key, u.figure)).collect();
    lines.sort();
    format!("# Faults of the source and their highest allowed counts. Made by: {BLESS}\n{}", lines.concat())
}

fn parse(text: &str) -> BTreeMap<String, usize> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines
        .map(|line| {
            let parts =
                line.rsplit_once(' ').and_then(|(key, figure)| Some((key.to_owned(), figure.parse().ok()?)));
            parts.unwrap_or_else(|| panic!("'{line}' is not a key and a count"))
        })
        .collect()
}

#[test]
fn higher_counts_fail_and_lower_counts_ask_for_a_new_bound() {
    let untidy_files = |figures: &[(&str, usize)]| -> Vec<Untidy> {
        let untidy = |(key, figure): &(&str, usize)| Untidy {
            key: (*key).to_owned(),
            figure: *figure,
            sentence: format!("src/x.rs:3 {key}"),
        };
        figures.iter().map(untidy).collect()
    };
    let bounds = parse(&show(&untidy_files(&[("file a.rs", 600), ("function a.rs T::f", 80)])));
    assert_eq!(
        compare(untidy_files(&[("file a.rs", 600), ("function a.rs T::f", 80)]), &bounds),
        Vec::<String>::new()
    );
    let worse = compare(untidy_files(&[("file a.rs", 601), ("function a.rs T::f", 80)]), &bounds);
    assert_eq!(worse, ["src/x.rs:3 file a.rs; at most 600 so far"]);
    let new =
        compare(untidy_files(&[("file a.rs", 600), ("file b.rs", 501), ("function a.rs T::f", 80)]), &bounds);
    assert_eq!(new, ["src/x.rs:3 file b.rs"]);
    let better = compare(untidy_files(&[("file a.rs", 599)]), &bounds);
    assert!(better.len() == 2 && better.iter().all(|s| s.contains(BLESS)), "{better:?}");
}
