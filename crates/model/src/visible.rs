//! Visible: foreign text made harmless for a terminal.
//!
//! For: names, notes and kernel text on their way to people, whatever bytes are in them. Not for: what is kept in records, which
//! stays as it was seen.
//!
//! A control character moves the cursor, changes the title of a window or clears what stands above; a mark of direction lets a
//! name read as another one. Both are shown by their number, as `\u{1b}`, and bytes that are no UTF-8 as `\xff`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Text with every control character but line feeds and tabs shown by its number.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| format!("\\u{{{:x}}}", u32::from(c)))
}

/// JSON that says the same, with no control character in it but those between its parts.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // All of them are in the plane that four digits reach.
    escaped(json, |c| format!("\\u{:04x}", u32::from(c)))
}

/// A name or path, whatever bytes are in it, in one line.
pub fn visible_name(name: &OsStr) -> String {
    let mut out = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        out += &visible(chunk.valid()).replace('\n', "\\n").replace('\t', "\\t");
        chunk.invalid().iter().for_each(|byte| out += &format!("\\x{byte:02x}"));
    }
    out
}

/// Whether a character does something to a terminal, or to the order of what it shows.
fn acts(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

fn escaped(text: &str, by: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out += &by(c) } else { out.push(c) }
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
    assert_eq!(visible_name(OsStr::from_bytes(b"a\xff\xc3\xa9\n\x1b")), r"a\xffé\n\u{1b}");
}

#[test]
fn json_says_the_same_without_control_characters() {
    let said = "a\u{9b}1m\u{7f}\u{1b}\u{202e}\n".to_owned();
    let json = serde_json::to_string(&said).unwrap_or_default();
    let shown = visible_json(&json);
    assert!(!shown.chars().any(acts), "{shown:?}");
    assert_eq!(serde_json::from_str::<String>(&shown).ok(), Some(said));
}
