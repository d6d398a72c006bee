//! Errors in a text, each shown with file, line, column, the line itself and a caret below the span. Also
//! suggestions for mistyped words.

use crate::MAX_FILE_BYTES;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// The name of a text that is a command line.
pub(crate) const COMMAND_LINE: &str = "command line";
/// Maximum number of messages that are shown.
pub(crate) const MAX_SHOWN: usize = 20;

/// All errors of a text. `Display` writes plain text; [`Trouble::coloured`] writes text for a terminal.
#[derive(Clone, Debug)]
pub struct Trouble {
    name: String,
    text: String,
    diagnostics: Vec<Diagnostic>,
}

/// An error message, and the place in the text that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// Byte range in the text.
    pub(crate) span: Range<usize>,
    /// What is wrong, then `; ` and what to type instead.
    pub(crate) message: String,
    /// Further places that explain the error, each with a label.
    pub(crate) context: Vec<(Range<usize>, &'static str)>,
}

impl Diagnostic {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), context: Vec::new() }
    }
}

impl Trouble {
    /// Orders the messages by place and removes duplicates.
    pub(crate) fn new(name: &str, text: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
        let mut kept: Vec<Diagnostic> = Vec::new();
        for diagnostic in diagnostics {
            // A setting at the top level can be wrong for many streams, but is reported once.
            if !kept
                .iter()
                .rev()
                .take(MAX_SHOWN)
                .any(|k| k.span == diagnostic.span && k.message == diagnostic.message)
            {
                kept.push(diagnostic);
            }
        }
        let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Self { name, text: text.into(), diagnostics: kept }
    }

    /// Refuses a text with errors.
    pub(crate) fn refuse_errors(name: &str, text: &str, diagnostics: Vec<Diagnostic>) -> Result<(), Self> {
        if diagnostics.is_empty() { Ok(()) } else { Err(Self::new(name, text, diagnostics)) }
    }

    /// Refuses a file of more than [`MAX_FILE_BYTES`]. `kind` names the file in the message, such as `a job file`.
    pub(crate) fn refuse_large(name: &str, text: &str, kind: &str) -> Result<(), Self> {
        if text.len() <= MAX_FILE_BYTES {
            return Ok(());
        }
        // Only the beginning of the file is shown.
        let start: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
        let message = format!("the file has {} bytes; {kind} has {MAX_FILE_BYTES} at most", text.len());
        Err(Self::new(name, &start, vec![Diagnostic::new(0..start.len(), message)]))
    }

    /// The messages with colours for a terminal.
    pub fn coloured(&self) -> String {
        self.render(&Renderer::styled())
    }

    fn render(&self, renderer: &Renderer) -> String {
        let mut parts: Vec<String> = self
            .diagnostics
            .iter()
            .take(MAX_SHOWN)
            .map(|diagnostic| self.render_diagnostic(diagnostic, renderer))
            .collect();
        if self.diagnostics.len() > MAX_SHOWN {
            parts.push(format!("and {} more in {}", self.diagnostics.len() - MAX_SHOWN, self.name));
        }
        parts.join("\n\n")
    }

    fn render_diagnostic(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        // For a command line, the first line of the message includes the advice, as in other commands.
        let is_file = self.name != COMMAND_LINE;
        let parts = diagnostic.message.split_once("; ").filter(|_| is_file);
        let (title, advice) = parts.unwrap_or((&diagnostic.message, ""));
        let context = diagnostic
            .context
            .iter()
            .map(|(span, part)| AnnotationKind::Context.span(self.within(span)).label(*part));
        let culprit = AnnotationKind::Primary.span(self.within(&diagnostic.span));
        let culprit = if advice.is_empty() { culprit } else { culprit.label(advice) };
        let snippet = Snippet::source(&self.text).path(&self.name).annotation(culprit).annotations(context);
        renderer.render(&[Group::with_title(Level::ERROR.no_name().primary_title(title)).element(snippet)])
    }

    /// The span, clamped to the text and to character boundaries.
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

/// Quotes a text for a message, shortened and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("'{short}'")
}

/// Dashes that word processors and web pages put in place of `-`: hyphens, figure dash, en dash, em dash, horizontal bar and minus.
const LONG_DASHES: [char; 7] =
    ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'];

/// Returns an option that begins with a long dash, with hyphens instead. `None` for any other word, and for the name of an
/// existing file.
pub fn with_hyphens(word: &str) -> Option<String> {
    let is_dash = |c: char| LONG_DASHES.contains(&c);
    let bare = word.trim_start_matches(|c| c == '-' || is_dash(c));
    let begin = &word[..word.len() - bare.len()];
    if !begin.contains(is_dash) || std::path::Path::new(word).exists() {
        return None;
    }
    // Web pages replace two hyphens by one dash. One-letter options have one hyphen.
    let name = bare.split(['=', ':']).next().unwrap_or_default();
    let is_long = name.len() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || "-_".contains(c));
    let hyphens = if is_long { "--" } else { "-" };
    Some(format!("{hyphens}{bare}"))
}

/// The message about a word that begins with a long dash. `None` for any other word, and for the name of an existing file.
pub fn typed_hyphens(word: &str) -> Option<String> {
    let option = with_hyphens(word)?;
    let dash = word.chars().find(|c| LONG_DASHES.contains(c))?;
    Some(format!(
        "{} begins with a dash (U+{:04X}) instead of a hyphen, as in text copied from a web page; type {option}",
        word.escape_debug().to_string().replace("\\u{", "U+").trim_end_matches('}'),
        dash as u32
    ))
}

/// Words of at least this many bytes get no suggestion.
const LONG_WORD_BYTES: usize = 64;

/// The name that is most similar to a word; `None` if no similarity is at least `min_similarity` (1
/// means equal), or if the word is long.
pub(crate) fn nearest<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str>,
    min_similarity: f64,
) -> Option<&'n str> {
    if word.len() >= LONG_WORD_BYTES {
        return None;
    }
    let rated = |name: &'n str| (strsim::normalized_damerau_levenshtein(word, name), name);
    let similar = names.into_iter().map(rated).filter(|(similarity, _)| *similarity >= min_similarity);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[test]
fn the_first_line_about_a_command_line_has_the_advice() {
    let first_line = |name: &str| {
        let diagnostic = Diagnostic::new(0..2, "-x is unknown; type -y");
        let trouble = Trouble::new(name, "-x", vec![diagnostic]).to_string();
        trouble.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first_line(COMMAND_LINE), "-x is unknown; type -y");
    assert_eq!(first_line("a.fio"), "-x is unknown", "in a file the advice is at its place");
}

#[test]
fn dashes_are_recognised_and_hyphens_are_not() {
    for (word, advice) in [
        ("\u{2013}b8K", "type -b8K"),
        ("\u{2014}name=t", "type --name=t"),
        ("\u{2212}r", "type -r"),
        ("\u{2013}-rw", "type --rw"),
    ] {
        assert!(typed_hyphens(word).is_some_and(|why| why.contains(advice) && why.contains("U+2")), "{word}");
    }
    for word in ["-b8K", "--name=t", "file", "a\u{2013}b", "-", ""] {
        assert_eq!(typed_hyphens(word), None, "{word}");
    }
}

#[test]
fn similar_names_are_found_and_others_are_not() {
    let known = ["depth", "batch"];
    assert_eq!(nearest("dephts", known, 0.4), Some("depth"));
    assert_eq!(nearest("cadence", known, 0.6), None);
    assert_eq!(nearest(&"depth".repeat(20), known, 0.0), None);
}
