//! What messages are about: a command line or a profile, with the places of what it says.
//!
//! For: a caret under the culprit. Not for: what anything there means ([`super::command`], [`super::xml`]).

use crate::trouble::{Mark, Trouble};
use std::ops::Range;

/// What messages call a command line.
const COMMAND_LINE: &str = "command line";

/// In place of an option: the target itself.
pub(super) const TARGET: &str = "#";

/// A text with the places of what it says.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// Of a command line: each word.
    pub(super) words: Vec<(String, Range<usize>)>,
    /// Of XML: each target of each time span.
    pub(super) targets: Vec<Vec<Range<usize>>>,
}

impl Source {
    pub(super) fn parse(words: &[String]) -> Self {
        let mut source = Self { name: COMMAND_LINE.into(), ..Self::default() };
        for word in words {
            let start = source.text.len();
            source.text += word;
            source.words.push((word.clone(), start..source.text.len()));
            source.text.push(' ');
        }
        source.text = source.text.trim_end().to_owned();
        source
    }

    /// The place of an option, by how it begins, of a target of a command line ([`TARGET`]), or of one in XML.
    pub(super) fn place(&self, span: usize, target: usize, option: &str) -> Range<usize> {
        let of_xml = self.targets.get(span).and_then(|targets| targets.get(target));
        let mut targets = self.words.iter().filter(|(word, _)| !word.starts_with('-'));
        let mut words = self.words.iter().rev();
        let word = if option == TARGET {
            targets.nth(target)
        } else {
            words.find(|(word, _)| word.strip_prefix('-').is_some_and(|w| w.starts_with(option)))
        };
        of_xml.or(word.map(|(_, place)| place)).cloned().unwrap_or(0..self.text.len())
    }

    pub(super) fn trouble(&self, marks: Vec<Mark>) -> Trouble {
        Trouble::new(&self.name, &self.text, marks)
    }
}
