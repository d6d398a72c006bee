//! Words as a shell takes them.
//!
//! For: command lines that are printed to be typed again. Not for: running anything.

/// A word, in quotes where a shell would read it otherwise.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Words in one line.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_shell_reads_the_same_words_again() {
    let words = ["run", "--mix", "70%", "it's a disk", "", "$HOME"].map(str::to_owned);
    assert_eq!(line(&words), r"run --mix 70% 'it'\''s a disk' '' '$HOME'");
    assert_eq!(line(&[]), "");
}
