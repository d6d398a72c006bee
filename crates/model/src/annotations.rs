//! The user's own words about a session: tags to find it by, and notes.
//!
//! For: the value that lies beside a session file and stands in its report. Not for: files; callers read and write.

use serde::{Deserialize, Serialize};

/// Most letters of a tag.
const TAG_LETTERS: usize = 64;
/// Most tags of a session.
const MOST_TAGS: usize = 64;
/// Most letters of a note.
const NOTE_LETTERS: usize = 10_000;
/// Most notes of a session.
const MOST_NOTES: usize = 1_000;

/// What the user says about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Annotations {
    /// Annotations to find it by, sorted.
    pub tags: Vec<String>,
    /// Notes in the order in which they were made.
    pub notes: Vec<Note>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// When it was made, RFC 3339.
    pub at: String,
    /// What it says.
    pub text: String,
}

impl Annotations {
    /// Reads the JSON form back.
    ///
    /// # Errors
    /// What is wrong with it: where it is no JSON, or holds what could not have been said.
    pub fn parse(json: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let mut words = Self::default();
        read.tags.iter().try_for_each(|tag| words.tag(tag))?;
        read.notes.into_iter().try_for_each(|note| words.note(note.at, &note.text))?;
        Ok(words)
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a tag; one that is there already stays there once.
    ///
    /// # Errors
    /// Why it can be none.
    pub fn tag(&mut self, tag: &str) -> Result<(), String> {
        check_tag(tag)?;
        if self.tags.iter().any(|t| t == tag) {
            return Ok(());
        }
        if self.tags.len() >= MOST_TAGS {
            return Err(format!("{tag}: a session has {MOST_TAGS} tags at most"));
        }
        self.tags.push(tag.to_owned());
        self.tags.sort();
        Ok(())
    }

    /// Takes a tag away.
    ///
    /// # Errors
    /// That there is none such.
    pub fn untag(&mut self, tag: &str) -> Result<(), String> {
        let before = self.tags.len();
        self.tags.retain(|t| t != tag);
        if self.tags.len() == before { Err(format!("{tag}: it has no such tag")) } else { Ok(()) }
    }

    /// Adds a note made at this time, RFC 3339.
    ///
    /// # Errors
    /// Why it can be none.
    pub fn note(&mut self, at: String, text: &str) -> Result<(), String> {
        let text = text.trim();
        if at.chars().any(char::is_control) {
            return Err("the time of a note is text".into());
        }
        if text.is_empty() {
            return Err("a note says something; type it behind the session".into());
        }
        if text.chars().any(|c| c.is_control() && c != '\n') {
            return Err("a note is text; leave control characters out".into());
        }
        if text.chars().count() > NOTE_LETTERS {
            return Err(format!("a note has {NOTE_LETTERS} letters at most"));
        }
        if self.notes.len() >= MOST_NOTES {
            return Err(format!("a session has {MOST_NOTES} notes at most"));
        }
        self.notes.push(Note { at, text: text.to_owned() });
        Ok(())
    }
}

/// Refuses what could not be told from an id, a path or a flag, or not be typed again.
fn check_tag(tag: &str) -> Result<(), String> {
    let why = if tag.is_empty() {
        "a tag is a word"
    } else if tag.chars().count() > TAG_LETTERS {
        "a tag has 64 letters at most"
    } else if tag.starts_with('-') {
        "it would be taken for a flag"
    } else if tag.contains(['/', ',']) || tag.contains("..") {
        "it would be taken for a path, a list or a range"
    } else if tag.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "a tag is one word; join its parts with -"
    } else if tag == "last" || tag.starts_with("last~") {
        "that means the newest session already"
    } else {
        return Ok(());
    };
    Err(format!("tag '{}': {why}", tag.escape_debug()))
}

#[test]
fn tags_are_a_sorted_set_of_words_that_can_be_typed_again() -> Result<(), String> {
    let mut words = Annotations::default();
    for tag in ["new", "baseline", "new"] {
        words.tag(tag)?;
    }
    assert_eq!(words.tags, ["baseline", "new"]);
    let long = "x".repeat(TAG_LETTERS + 1);
    for bad in ["", "two words", "-x", "a/b", "a,b", "a..b", "last", "last~2", "a\u{1b}[0m", &long] {
        assert!(words.tag(bad).is_err(), "{bad}");
    }
    assert!(words.untag("old").is_err());
    words.untag("new")?;
    assert_eq!(words.tags, ["baseline"]);
    Ok(())
}

#[test]
fn notes_are_kept_in_their_order_and_say_something() -> Result<(), String> {
    let mut words = Annotations::default();
    assert!(words.is_empty());
    words.note("2026-11-21T12:00:00Z".into(), " with the new firmware ")?;
    words.note("2026-11-21T12:01:00Z".into(), "two\nlines")?;
    let texts: Vec<&str> = words.notes.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(texts, ["with the new firmware", "two\nlines"]);
    for bad in ["", "  ", "bell\u{7}", &"x".repeat(NOTE_LETTERS + 1)] {
        assert!(words.note(String::new(), bad).is_err());
    }
    assert!(!words.is_empty());
    Ok(())
}

#[test]
fn words_are_read_as_far_as_they_are_known_and_could_have_been_said() {
    let read = Annotations::parse(r#"{"tags": ["b", "a"], "stars": 5}"#);
    assert_eq!(read, Ok(Annotations { tags: vec!["a".into(), "b".into()], notes: Vec::new() }));
    let bad = [
        "",
        "7",
        r#"{"tags": ["last"]}"#,
        r#"{"notes": [{"at": "x"}]}"#,
        "{\"notes\": [{\"at\": \"\\u001b\", \"text\": \"x\"}]}",
    ];
    for text in bad {
        assert!(Annotations::parse(text).is_err(), "{text}");
    }
}
