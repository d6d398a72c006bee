//! A command line of another tool as a text: its words, one behind another, so that messages can point at one.
//!
//! For: gathering all that is wrong with the words of a call. Not for: what any of them means.

use crate::trouble::{Mark, Trouble};
use std::ops::Range;

/// What messages call it.
const NAME: &str = "command line";

/// Words, and what is wrong with them so far.
#[derive(Debug)]
pub(crate) struct Line {
    text: String,
    spans: Vec<Range<usize>>,
    marks: Vec<Mark>,
}

impl Line {
    pub(crate) fn new(words: &[String]) -> Self {
        let (mut text, mut spans) = (String::new(), Vec::new());
        for word in words {
            if !text.is_empty() {
                text.push(' ');
            }
            let start = text.len();
            text += word;
            spans.push(start..text.len());
        }
        Self { text, spans, marks: Vec::new() }
    }

    /// What is wrong with a word, `; ` and what to type instead.
    pub(crate) fn wrong(&mut self, word: usize, message: impl Into<String>) {
        let span = self.spans.get(word).cloned().unwrap_or(self.text.len()..self.text.len());
        self.marks.push(Mark::new(span, message));
    }

    /// The value, where nothing was wrong.
    pub(crate) fn unless_wrong<T>(self, value: T) -> Result<T, Trouble> {
        if self.marks.is_empty() { Ok(value) } else { Err(Trouble::new(NAME, &self.text, self.marks)) }
    }
}

#[test]
fn messages_point_at_their_word_and_what_lacks_is_at_the_end() {
    let mut line = Line::new(&["if=a".to_owned(), "bs=x".to_owned()]);
    line.wrong(1, "no number; type bs=1M");
    line.wrong(9, "no target");
    let shown = line.unless_wrong(()).map_err(|trouble| trouble.to_string());
    assert!(
        shown.as_ref().is_err_and(|t| t.contains("command line:1:6") && t.contains("type bs=1M")),
        "{shown:?}"
    );
}
