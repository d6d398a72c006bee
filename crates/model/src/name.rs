//! Converts file names to text and back, makes foreign text safe for a terminal, and quotes words for a shell.
//!
//! Control characters can move the cursor or clear the screen, and direction marks can make one
//! name look like another. fathom prints the code point of such a character instead: `\u{1b}`. In a file
//! name, [`text`] replaces each byte of such a character, and each byte that is not valid UTF-8, by
//! a private-use character. On the terminal, a private-use character appears as its byte: `\xff`.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Converts a file name to text.
pub fn text(name: impl AsRef<OsStr>) -> String {
    let mut out = String::new();
    for chunk in name.as_ref().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain(c) {
                out.push(c);
            } else {
                out.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().copied().map(stand_in));
            }
        }
        out.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    out
}

/// Converts a text made by [`text`] back to the file name.
pub fn from_text(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of_stand_in(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// Converts a text made by [`text`] back to a path.
pub fn path(text: &str) -> PathBuf {
    PathBuf::from(from_text(text))
}

/// Formats a path for people, in one line.
pub fn shown(path: &Path) -> String {
    visible(&text(path)).into_owned()
}

fn is_plain(c: char) -> bool {
    byte_of_stand_in(c).is_none() && !c.is_control() && !changes_direction(c)
}

/// The private-use character for byte 0. The characters for bytes 1 to 255 follow it.
const FIRST_STAND_IN: u32 = 0x10_ff00;

/// Returns the private-use character for a byte of a file name.
pub(crate) fn stand_in(byte: u8) -> char {
    char::from_u32(FIRST_STAND_IN + u32::from(byte)).unwrap_or_default()
}

/// Returns the byte that a private-use character replaces; `None` for any other character.
pub(crate) fn byte_of_stand_in(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST_STAND_IN).and_then(|b| u8::try_from(b).ok())
}

/// Maximum length of foreign text in a message, in characters.
const MAX_EXCERPT: usize = 40;

/// Quotes foreign text in a message: short, and without characters that control the terminal.
pub(crate) fn quoted_excerpt(text: &str) -> String {
    let mut excerpt: String = text.chars().take(MAX_EXCERPT).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_EXCERPT).is_some() {
        excerpt += "...";
    }
    format!("'{excerpt}'")
}

/// Formats the message that a text is not valid: the text, followed by what is wrong and what to type instead.
pub(crate) fn reject(text: &str, why: &str) -> String {
    format!("{} {why}", quoted_excerpt(text))
}

/// Replaces every control character and direction mark, except line feeds and tabs, by its code point,
/// and every private-use character of [`text()`] by its byte.
pub fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| affects_terminal(c) || byte_of_stand_in(c).is_some();
    escape(text, acts, |out, c| match byte_of_stand_in(c) {
        Some(byte) => out.push_str(&format!("\\x{byte:02x}")),
        None => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
    })
}

/// Escapes the control characters and direction marks in JSON, except line feeds and tabs between its parts.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // All these characters are below U+10000, so four digits suffice.
    escape(json, affects_terminal, |out, c| out.push_str(&format!("\\u{:04x}", u32::from(c))))
}

/// Returns whether a character controls the terminal or the order of the shown text.
fn affects_terminal(c: char) -> bool {
    changes_direction(c) || (c.is_control() && c != '\n' && c != '\t')
}

/// Returns whether a character changes the writing direction of later characters.
pub(crate) fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, which: impl Fn(char) -> bool, by: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) { by(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Quotes a word if a shell would interpret it. A word with private-use characters of [`text()`] is quoted as `$'a\x0a'`.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.chars().any(|c| byte_of_stand_in(c).is_some()) {
        format!("$'{}'", visible(&word.replace('\\', r"\\").replace('\'', r"\'")))
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Joins words to one line, each quoted if necessary.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn file_names_survive_a_round_trip() {
    let names: [&[u8]; 6] = [
        b"/data/plain \xc3\xa9",
        b"/a\xff\xfe",
        b"\xc3",
        b"/x\ny\t\x1b[2J\xc2\x9b",
        "\u{202e}".as_bytes(),
        b"\xf4\x8f\xbf\xbf",
    ];
    for name in names {
        let shown_form = text(OsStr::from_bytes(name));
        assert!(!shown_form.contains(char::is_control), "{shown_form:?}");
        assert_eq!(from_text(&shown_form).as_bytes(), name);
        // A private-use character in a name must survive the round trip too.
        assert_eq!(from_text(&text(&shown_form)), OsStr::new(&shown_form));
    }
    assert_eq!(text("/data/plain é"), "/data/plain é");
    assert_eq!(shown(Path::new(OsStr::from_bytes(b"a\xff\n"))), r"a\xff\x0a");
}

#[test]
fn only_characters_that_affect_a_terminal_are_escaped() {
    for plain in ["", "4K random read  ±2 %\n\tµs", "a\\u{1b}"] {
        assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain), "{plain:?}");
    }
    assert_eq!(
        visible("\u{1b}[2J\u{7}\r\u{9b}1m\u{7f}\u{202e}\u{61c}"),
        r"\u{1b}[2J\u{7}\u{d}\u{9b}1m\u{7f}\u{202e}\u{61c}"
    );
}

#[test]
fn escaped_json_has_the_same_content() {
    let shown_form = "a\u{9b}1m\u{7f}\u{1b}\u{202e}\n".to_owned();
    let json = serde_json::to_string(&shown_form).unwrap_or_default();
    let shown = visible_json(&json);
    assert!(!shown.chars().any(affects_terminal), "{shown:?}");
    assert_eq!(serde_json::from_str::<String>(&shown).ok(), Some(shown_form));
}

#[test]
fn quoted_words_survive_a_shell() {
    let words = ["run", "--mix", "70%", "it's a disk", "", "$HOME"].map(str::to_owned);
    assert_eq!(line(&words), r"run --mix 70% 'it'\''s a disk' '' '$HOME'");
    assert_eq!(line(&[]), "");
    assert_eq!(quoted(&text(OsStr::from_bytes(b"it's\\a\xff\n"))), r"$'it\'s\\a\xff\x0a'");
}
