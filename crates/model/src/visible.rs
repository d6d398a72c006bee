//! Visible: foreign text made harmless for a terminal.
//!
//! For: names, notes and kernel text on their way to people, whatever is in them. Not for: what is kept in records, which stays as
//! it was seen.
//!
//! A control character moves the cursor, changes the title of a window or clears what stands above; a mark of direction lets a
//! name read as another one. Both are shown by their number, as `\u{1b}`, and a byte of a name that is none of a character as `\xff`.

use std::borrow::Cow;

/// Longest piece of foreign text that a message repeats, in characters.
const SHOWN: usize = 40;

/// Quotes foreign text in a message: short, and without characters that a terminal would obey.
pub(crate) fn quoted_excerpt(text: &str) -> String {
    let mut words: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        words += "...";
    }
    format!("'{words}'")
}

/// Text with every control character but line feeds and tabs shown by its number.
pub fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| acts(c) || crate::stand_in::byte(c).is_some();
    escaped(text, acts, |out, c| match crate::stand_in::byte(c) {
        Some(byte) => out.push_str(&format!("\\x{byte:02x}")),
        None => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
    })
}

/// JSON that says the same, with no control character in it but those between its parts.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // All of them are in the plane that four digits reach.
    escaped(json, acts, |out, c| out.push_str(&format!("\\u{:04x}", u32::from(c))))
}

/// Whether a character does something to a terminal, or to the order of what it shows.
fn acts(c: char) -> bool {
    turns(c) || (c.is_control() && c != '\n' && c != '\t')
}

/// Whether a character changes the direction of those behind it.
pub(crate) fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, which: impl Fn(char) -> bool, by: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) { by(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[test]
fn what_acts_on_a_terminal_is_shown_by_its_number_and_nothing_else_changes() {
    for plain in ["", "4K random read  ±2 %\n\tµs", "a\\u{1b}"] {
        assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain), "{plain:?}");
    }
    assert_eq!(
        visible("\u{1b}[2J\u{7}\r\u{9b}1m\u{7f}\u{202e}"),
        r"\u{1b}[2J\u{7}\u{d}\u{9b}1m\u{7f}\u{202e}"
    );
}

#[test]
fn json_says_the_same_without_control_characters() {
    let said = "a\u{9b}1m\u{7f}\u{1b}\u{202e}\n".to_owned();
    let json = serde_json::to_string(&said).unwrap_or_default();
    let shown = visible_json(&json);
    assert!(!shown.chars().any(acts), "{shown:?}");
    assert_eq!(serde_json::from_str::<String>(&shown).ok(), Some(said));
}
