//! Trouble: everything that is wrong with a text, shown at its place.
//!
//! For: file, line, column, the line itself, a caret under the culprit and what to type instead. Not for: finding it.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// Most messages that are shown: whoever has more begins with these.
pub(crate) const SHOWN: usize = 20;

/// Everything that is wrong with a text. As text it is plain; [`Trouble::coloured`] is for a terminal.
#[derive(Clone, Debug)]
pub struct Trouble {
    name: String,
    text: String,
    marks: Vec<Mark>,
}

/// A message at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Bytes of the text that it is about.
    pub(crate) span: Range<usize>,
    /// What is wrong, `; ` and what to type instead.
    pub(crate) message: String,
    /// Places that explain it, with their part.
    pub(crate) beside: Vec<(Range<usize>, &'static str)>,
}

impl Mark {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), beside: Vec::new() }
    }
}

impl Trouble {
    /// The messages in the order of their places, each once.
    pub(crate) fn new(name: &str, text: &str, mut marks: Vec<Mark>) -> Self {
        marks.sort_by_key(|mark| mark.span.start);
        let mut kept: Vec<Mark> = Vec::new();
        for mark in marks {
            // A setting at the top may be wrong for many streams: one message says it.
            if !kept.iter().rev().take(SHOWN).any(|k| k.span == mark.span && k.message == mark.message) {
                kept.push(mark);
            }
        }
        let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Self { name, text: text.into(), marks: kept }
    }

    /// For a terminal that has colours.
    pub fn coloured(&self) -> String {
        self.render(&Renderer::styled())
    }

    fn render(&self, renderer: &Renderer) -> String {
        let mut parts: Vec<String> =
            self.marks.iter().take(SHOWN).map(|mark| self.part(mark, renderer)).collect();
        if self.marks.len() > SHOWN {
            parts.push(format!("and {} more in {}", self.marks.len() - SHOWN, self.name));
        }
        parts.join("\n\n")
    }

    fn part(&self, mark: &Mark, renderer: &Renderer) -> String {
        let (title, advice) = mark.message.split_once("; ").unwrap_or((&mark.message, ""));
        let beside = mark
            .beside
            .iter()
            .map(|(span, part)| AnnotationKind::Context.span(self.within(span)).label(*part));
        let culprit = AnnotationKind::Primary.span(self.within(&mark.span));
        let culprit = if advice.is_empty() { culprit } else { culprit.label(advice) };
        let snippet = Snippet::source(&self.text).path(&self.name).annotation(culprit).annotations(beside);
        renderer.render(&[Group::with_title(Level::ERROR.no_name().primary_title(title)).element(snippet)])
    }

    /// The span, kept inside the text and whole characters.
    fn within(&self, span: &Range<usize>) -> Range<usize> {
        let boundary = |from: usize, step: isize| {
            let mut at = from.min(self.text.len());
            while !self.text.is_char_boundary(at) {
                at = at.saturating_add_signed(step);
            }
            at
        };
        let start = boundary(span.start, -1);
        start..boundary(span.end.max(start), 1)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

impl std::error::Error for Trouble {}
