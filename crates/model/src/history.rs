//! An entry: what the history knows of a session without opening it; and a list of them.
//!
//! For: one line of `fathom list`, one object of its JSON, one row of the index. Not for: finding, reading or laying out entries.

use crate::finding::{CheckId, Severity};
use crate::machine::Capacity;
use crate::report::{Ending, Headline, Report, Verdict};
use serde::{Deserialize, Serialize};

/// Entries of a history, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Those that are shown.
    pub entries: Vec<Entry>,
    /// How many there are that were asked for.
    pub asked_for: u64,
    /// Sessions in the whole history.
    pub sessions: u64,
    /// Bytes that their files take.
    pub bytes: u64,
}

/// What the history knows of a session. `None` where its file does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// The name of its file without the extension.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// When it began, RFC 3339.
    pub started: Option<String>,
    /// What was measured, as `bench cdm`.
    pub title: Option<String>,
    /// The first word of its report, no finding accepted.
    pub verdict: Option<Verdict>,
    /// The number that would be quoted.
    pub headline: Option<Headline>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Whether it is being measured right now.
    #[serde(default)]
    pub running: bool,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// Block devices below them.
    pub devices: Vec<Device>,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// What each of its results came to, where they stand side by side: of jobs and profiles.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// What it measured devices to be capable of: its results that hold, as far as one kind of request made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Complete runs of all jobs.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// What is equal for sessions that did the same work at the same place.
    pub fingerprint: Option<String>,
    /// What was found.
    pub findings: Vec<Mark>,
    /// Version of fathom that measured.
    pub version: Option<String>,
    /// Version of fathom that judged.
    pub judged_by: String,
    /// What the user said about it.
    pub words: Annotations,
    /// Why it, or what the user said about it, cannot be read.
    pub problem: Option<String>,
}

/// What a result came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The job's name: `RND4K Q32T1 read`.
    pub name: String,
    /// `IOPS`; `MB/s` where it is sequential.
    pub unit: String,
    /// The rate; `None` where a finding invalidates it or there is none.
    pub value: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
    /// What the findings about it come to.
    pub verdict: Verdict,
}

/// A block device by the names it goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Of the kernel: `vda`.
    pub name: String,
    /// Of the maker.
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
}

/// A finding by its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// The check that found it.
    pub id: CheckId,
    /// How far it acts on a number, worst first.
    pub severity: Option<Severity>,
}

impl Entry {
    /// One word, or two where it did not end as planned: `VALID`, `SUSPECT, interrupted`, `cut`, `unreadable`.
    pub fn word(&self) -> String {
        self.verdict_word().into_iter().chain(self.unplanned()).collect::<Vec<_>>().join(", ")
    }

    /// `VALID`; `None` where nothing was concluded.
    pub fn verdict_word(&self) -> Option<&'static str> {
        self.verdict.map(Verdict::word)
    }

    /// How it ended other than as planned: `interrupted`.
    pub fn unplanned(&self) -> Option<&'static str> {
        match &self.ending {
            _ if self.running => Some("running"),
            Some(Ending::Complete) => None,
            Some(Ending::Interrupted) => Some("interrupted"),
            Some(Ending::Failed(_)) => Some("failed"),
            Some(Ending::Cut) => Some("cut"),
            Some(Ending::NotMeasured(_)) => Some("not measured"),
            None => Some("unreadable"),
        }
    }
}

/// What the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RowsOf {
    /// Each is a session.
    #[default]
    Sessions,
    /// Each is what lies below, by its newest session.
    Devices,
}

/// Sessions or devices as rows, the results of one work as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTable {
    /// What the rows are.
    pub rows_of: RowsOf,
    /// The results of the newest session that has some; of sessions that were named, those of all of them.
    pub columns: Vec<Column>,
    /// Sessions with at least one of these, newest first; those that were named, as they were named.
    pub rows: Vec<Row>,
    /// Sessions that have none of these, by what they measured.
    pub other_work: Vec<OtherWork>,
    /// Whether the user chose the work (`--job`).
    #[serde(skip)]
    pub is_job_chosen: bool,
    /// Sessions of devices that have a newer one.
    pub older: u64,
    /// Sessions that were asked for and are too old for the number that is shown.
    pub beyond_limit: u64,
    /// What was concluded of each row, in their order, where sessions were named and so judged again; empty where rows are those of the
    /// index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(default, with = "Vec<serde_json::Map<String, serde_json::Value>>")
    )]
    pub reports: Vec<Report>,
}

/// A result that sessions have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// `RND4K Q32T1 read`, or [`Column::MAIN`].
    pub name: String,
    /// `IOPS` or `MB/s`.
    pub unit: String,
}

impl Column {
    /// Its name where the rows have a result each, and not the same one.
    pub const MAIN: &'static str = "main result";
}

/// A session in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Its id.
    pub session: String,
    /// When it began, RFC 3339.
    pub started: Option<String>,
    /// What it came to as a whole; `None` where it cannot be judged.
    pub verdict: Option<Verdict>,
    /// What lies below its targets, by name and model; `None` where no block device is known.
    pub device: Option<String>,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// The user's tags of it.
    pub tags: Vec<String>,
    /// A figure for each column; `None` where it did not measure that.
    pub figures: Vec<Option<Figure>>,
}

/// Sessions that are not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherWork {
    /// What they measured: `bench six`.
    pub title: String,
    /// How many.
    pub sessions: u64,
}

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
