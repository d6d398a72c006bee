//! Finds the names and words that the code no longer uses: function names without a meaning, such as `of`, and words that made comments
//! hard to read.
//!
//! The words are counted by crate and folder. `bounds.txt` has the present counts, which may only fall. The function names may not return
//! at all.

use crate::Untidy;
use std::path::{Path, PathBuf};

/// Names of functions that mean nothing at the place of a call.
const FUNCTIONS: &[&str] = &["of", "said", "told", "look", "words", "beside", "again"];
/// Words with a plain replacement: the user, no process, `count`, next to, after.
const WORDS: &[&[&str]] = &[&["whoever"], &["nobody"], &["so", "many"], &["beside"], &["behind"]];

/// The retired functions and words of these files, which are named from `root`.
pub(crate) fn find(root: &Path, files: &[PathBuf]) -> Vec<Untidy> {
    let mut found: Vec<Untidy> = Vec::new();
    for path in files.iter().filter(|path| !path.ends_with(file!())) {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let shown = path.display();
        for (at, line) in text.lines().enumerate() {
            for name in FUNCTIONS.iter().filter(|name| line.contains(&format!("fn {name}("))) {
                let sentence = format!("{shown}:{}: `fn {name}` says nothing; name what it does", at + 1);
                found.push(Untidy { key: format!("function {shown} {name}"), figure: 1, sentence });
            }
        }
        let count = count_words(&text);
        if count > 0 {
            let place: Vec<_> = path.components().take(2).map(|c| c.as_os_str().to_string_lossy()).collect();
            let key = format!("words {}", place.join("/"));
            match found.iter_mut().find(|untidy| untidy.key == key) {
                Some(untidy) => {
                    untidy.figure += count;
                    untidy.sentence += &format!(", {shown} {count}");
                }
                None => found.push(Untidy {
                    sentence: format!(
                        "{}: whoever, nobody, so many, beside, behind: {shown} {count}",
                        place.join("/")
                    ),
                    key,
                    figure: count,
                }),
            }
        }
    }
    found
}

/// Occurrences of the retired words as whole words, in upper or lower case.
fn count_words(text: &str) -> usize {
    let text = text.to_lowercase();
    let all: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    WORDS.iter().map(|retired| all.windows(retired.len()).filter(|words| words == retired).count()).sum()
}

#[test]
fn words_count_as_whole_words() {
    assert_eq!(count_words("Nobody stands behind\n// so many of them; behind_it, besides"), 3);
}
