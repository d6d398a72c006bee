//! Paragraphs broken at a width, and how many columns text takes.
//!
//! For: every text that fathom prints for people. Not for: tables ([`crate::table`]).

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns beyond which lines of prose read badly, however wide the terminal is.
const MAX_PROSE_WIDTH: usize = 110;
/// Stands for what was cut out of a word.
const ELLIPSIS: char = '…';

/// Columns that a text takes on a terminal: letters may take two, and colours none.
pub(crate) fn display_width(text: &str) -> usize {
    plain(text).width()
}

/// The text without its colours.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return text.into();
    }
    let mut rest = text.split('\x1b');
    let first = rest.next().unwrap_or_default().to_owned();
    rest.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, behind)| behind)).into()
}

/// A paragraph: `first` before its first word, `indent` before each further line. Ends with a line feed. Words stay whole, but for
/// those that are longer than a line.
pub(crate) fn prose(width: usize, first: &str, indent: &str, text: &str) -> String {
    let width = width.min(MAX_PROSE_WIDTH);
    if display_width(first) >= width {
        let words = format!("{} {text}", first.trim());
        return prose(width, "", indent, &words);
    }
    let deepest = " ".repeat(width / 8);
    let indent = if display_width(indent) > width / 3 { deepest.as_str() } else { indent };
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in &split_words(text) {
        let gap = usize::from(!empty);
        let fits = display_width(&line) + gap + display_width(word) <= width;
        if !fits && (!empty || display_width(&line) > display_width(indent)) {
            out += line.trim_end();
            out.push('\n');
            indent.clone_into(&mut line);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &shorten(word, width.saturating_sub(display_width(&line)));
        empty = false;
    }
    out += &line;
    out.push('\n');
    out
}

/// The words of a text, a percent sign being one with its number.
fn split_words(text: &str) -> Vec<Cow<'_, str>> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.starts_with('%') && number.ends_with(|c: char| c.is_ascii_digit()) => {
                *number += " ";
                *number += word;
            }
            _ => words.push(word.into()),
        }
    }
    words
}

/// A word in so many columns: where it is longer, its middle is left out, since names differ at their ends.
pub(crate) fn shorten(word: &str, most: usize) -> Cow<'_, str> {
    if display_width(word) <= most || word.contains('\x1b') {
        return word.into();
    }
    let room = most.saturating_sub(1);
    let head = take_width(word.chars(), room - room / 2);
    let tail: Vec<char> = take_width(word.chars().rev(), room / 2);
    head.into_iter().chain([ELLIPSIS]).chain(tail.into_iter().rev()).collect::<String>().into()
}

/// As many letters as have room.
fn take_width(letters: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= room
    };
    letters.take_while(fits).collect()
}

#[test]
fn lines_end_before_the_width_and_words_stay_whole() {
    let text = "word ".repeat(60);
    for width in [20, 40, 80, 110, 200] {
        let all = prose(width, "* ", "  ", &text);
        let lines: Vec<&str> = all.lines().collect();
        assert!(lines[0].starts_with("* word") && lines[1].starts_with("  word"));
        assert!(lines.iter().all(|l| display_width(l) <= width.min(MAX_PROSE_WIDTH) && !l.ends_with(' ')));
        assert_eq!(all.matches("word").count(), 60);
    }
    assert_eq!(prose(80, "* ", "  ", ""), "* \n");
    assert_eq!(prose(20, "", "", "it is no more than 3.0 % faster"), "it is no more than\n3.0 % faster\n");
}

#[test]
fn what_is_longer_than_a_line_keeps_its_ends_and_an_indent_leaves_room() {
    let path = format!("/var/{}/20260314.fathom", "x".repeat(200));
    let all = prose(40, &" ".repeat(30), &" ".repeat(34), &format!("Session {path}"));
    assert!(all.lines().all(|l| display_width(l) <= 40), "{all}");
    assert!(all.contains("/var/x") && all.contains('…') && all.ends_with("14.fathom\n"), "{all}");
    assert_eq!(shorten("short", 5), "short");
    assert_eq!(shorten("abcdefghij", 5), "ab…ij");
    assert_eq!(display_width(&shorten("ああああああ", 6)), 5);
    assert_eq!(shorten("abc", 0), "…");
}

#[test]
fn colours_take_no_columns() {
    assert_eq!((display_width("\x1b[1;32mVALID\x1b[0m ok"), display_width("あ")), (8, 2));
    let painted = format!("\x1b[1m{}\x1b[0m", "word ".repeat(30).trim());
    let seen: String = plain(&prose(40, "", "", &painted)).into_owned();
    assert_eq!(seen, prose(40, "", "", &"word ".repeat(30)));
}
