//! Paragraphs broken at a width that reads well and pastes well.
//!
//! For: every text that fathom prints for people. Not for: tables, which are as wide as their figures.

/// Columns that lines of prose are broken at.
pub(crate) const WIDTH: usize = 110;

/// A paragraph: `first` before its first word, `indent` before each further line. Ends with a line feed.
pub(crate) fn prose(first: &str, indent: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &line;
            out.push('\n');
            indent.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out += &line;
    out.push('\n');
    out
}

#[test]
fn lines_end_before_the_width_and_words_stay_whole() {
    let text = "word ".repeat(60) + &"w".repeat(2 * WIDTH);
    let lines: Vec<String> = prose("* ", "  ", &text).lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("* word") && lines[1].starts_with("  word"));
    assert!(lines[..lines.len() - 1].iter().all(|l| l.len() <= WIDTH));
    assert!(lines.last().is_some_and(|l| l.len() > WIDTH), "a word longer than a line stands alone");
    assert_eq!(prose("* ", "  ", ""), "* \n");
}
