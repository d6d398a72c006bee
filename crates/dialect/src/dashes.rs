//! Dashes of a word processor or a web page, typed in place of the hyphens of an option.

/// Dashes that word processors and web pages print in place of `-`: hyphens, figure dash, en dash, em dash, horizontal bar and minus.
pub const LONG_DASHES: [char; 7] =
    ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'];

/// The message about a word that begins with such a dash, with the word as it is meant; `None` for any other word and for the name of a
/// file that is there.
pub(crate) fn typed_hyphens(word: &str) -> Option<String> {
    let is_dash = |c: char| LONG_DASHES.contains(&c);
    let bare = word.trim_start_matches(|c| c == '-' || is_dash(c));
    let begin = &word[..word.len() - bare.len()];
    let dash = begin.chars().find(|c| is_dash(*c))?;
    if std::path::Path::new(word).exists() {
        return None;
    }
    // A web page makes one dash of two hyphens; options of one letter have one hyphen.
    let name = bare.split(['=', ':']).next().unwrap_or_default();
    let is_long = name.len() > 1 && name.chars().all(|c| c.is_ascii_lowercase() || "-_".contains(c));
    let hyphens = if is_long { "--" } else { "-" };
    Some(format!(
        "{} begins with a dash (U+{:04X}) in place of a hyphen, as text copied from a web page does; type {hyphens}{bare}",
        word.escape_debug().to_string().replace("\\u{", "U+").trim_end_matches('}'),
        dash as u32
    ))
}

#[test]
fn dashes_are_recognised_and_hyphens_are_not() {
    for (word, meant) in [
        ("\u{2013}b8K", "type -b8K"),
        ("\u{2014}name=t", "type --name=t"),
        ("\u{2212}r", "type -r"),
        ("\u{2013}-rw", "type --rw"),
    ] {
        assert!(typed_hyphens(word).is_some_and(|why| why.contains(meant) && why.contains("U+2")), "{word}");
    }
    for word in ["-b8K", "--name=t", "file", "a\u{2013}b", "-", ""] {
        assert_eq!(typed_hyphens(word), None, "{word}");
    }
}
