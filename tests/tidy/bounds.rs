//! The ratchet: compares the faults with `bounds.txt`, and writes that file anew if `FATHOM_BLESS` is set. Counts may only fall.

use crate::Untidy;
use std::collections::BTreeMap;
use std::path::Path;

const BLESS: &str = "FATHOM_BLESS=1 cargo test --test tidy";

/// Sentences about all that is worse than its bound, and all that is better and not yet bound to stay so. Writes the bounds
/// anew where that is asked for.
pub(crate) fn hold(found: Vec<Untidy>, path: &Path) -> Vec<String> {
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
    format!("{key}: {figure}, and {bound} before. Better; so that it stays so: {BLESS}")
}

/// One a line: its key, a space, its figure.
fn show(found: &[Untidy]) -> String {
    let mut lines: Vec<String> = found.iter().map(|u| format!("{} {}\n", u.key, u.figure)).collect();
    lines.sort();
    format!("# What is untidy, and how much of it there may be. Made by: {BLESS}\n{}", lines.concat())
}

fn parse(text: &str) -> BTreeMap<String, usize> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines
        .map(|line| {
            let parts =
                line.rsplit_once(' ').and_then(|(key, figure)| Some((key.to_owned(), figure.parse().ok()?)));
            parts.unwrap_or_else(|| panic!("'{line}' is not a key and a figure"))
        })
        .collect()
}

#[test]
fn more_fails_less_asks_for_a_new_bound_and_the_same_is_silent() {
    let of = |figures: &[(&str, usize)]| -> Vec<Untidy> {
        let untidy = |(key, figure): &(&str, usize)| Untidy {
            key: (*key).to_owned(),
            figure: *figure,
            sentence: format!("src/x.rs:3 {key}"),
        };
        figures.iter().map(untidy).collect()
    };
    let bounds = parse(&show(&of(&[("file a.rs", 600), ("function a.rs T::f", 80)])));
    assert_eq!(compare(of(&[("file a.rs", 600), ("function a.rs T::f", 80)]), &bounds), Vec::<String>::new());
    let worse = compare(of(&[("file a.rs", 601), ("function a.rs T::f", 80)]), &bounds);
    assert_eq!(worse, ["src/x.rs:3 file a.rs; at most 600 so far"]);
    let new = compare(of(&[("file a.rs", 600), ("file b.rs", 501), ("function a.rs T::f", 80)]), &bounds);
    assert_eq!(new, ["src/x.rs:3 file b.rs"]);
    let better = compare(of(&[("file a.rs", 599)]), &bounds);
    assert!(better.len() == 2 && better.iter().all(|s| s.contains(BLESS)), "{better:?}");
}
