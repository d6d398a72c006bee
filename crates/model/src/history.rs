//! Sessions as the history lists them: entries, tables of their results, and the user's tags and notes.

use crate::finding::{CheckId, Severity};
use crate::machine::Capacity;
use crate::report::{Ending, Headline, Report, Verdict};
use serde::{Deserialize, Serialize};

/// Entries of a history, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// The listed sessions.
    pub entries: Vec<Entry>,
    /// Number of sessions that match the request.
    pub asked_for: u64,
    /// Sessions in the whole history.
    pub sessions: u64,
    /// Bytes that their files take.
    pub bytes: u64,
}

/// A session in the history. `None` marks a value that its file does not contain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// The name of its file without the extension.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// Title of the measurement, such as `bench cdm`.
    pub title: Option<String>,
    /// The verdict of its report, without accepted findings.
    pub verdict: Option<Verdict>,
    /// The number that would be quoted.
    pub headline: Option<Headline>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// Whether it is being measured now.
    #[serde(default)]
    pub running: bool,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// Block devices below its targets.
    pub devices: Vec<Device>,
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// The figure of each result, for jobs and profiles, whose results are listed together.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// Capacities of devices from its valid results, as far as these consist of one kind of request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<Capacity>,
    /// Complete runs of all jobs.
    pub runs: u64,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Equal for sessions with the same work at the same place.
    pub fingerprint: Option<String>,
    /// Its findings.
    pub findings: Vec<Mark>,
    /// Version of fathom that measured.
    pub version: Option<String>,
    /// Version of fathom that judged.
    pub judged_by: String,
    /// The user's tags and notes.
    pub words: Annotations,
    /// Why the session or its tags and notes cannot be read.
    pub problem: Option<String>,
}

/// The figure of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The job's name: `RND4K Q32T1 read`.
    pub name: String,
    /// `IOPS`, or `MB/s` for sequential access.
    pub unit: String,
    /// The rate; `None` if a finding invalidates it or there is none.
    pub value: Option<f64>,
    /// Its 95 % interval over runs; `None` with fewer than three.
    pub interval: Option<[f64; 2]>,
    /// The verdict of the findings about it.
    pub verdict: Verdict,
}

/// A block device with its names.
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
    /// The check of the finding.
    pub id: CheckId,
    /// Effect on a number, worst first.
    pub severity: Option<Severity>,
}

impl Entry {
    /// One word, or two if it did not end as planned: `VALID`, `SUSPECT, interrupted`, `cut`, `unreadable`.
    pub fn word(&self) -> String {
        self.verdict_word().into_iter().chain(self.unplanned()).collect::<Vec<_>>().join(", ")
    }

    /// `VALID`; `None` if nothing was concluded.
    pub fn verdict_word(&self) -> Option<&'static str> {
        self.verdict.map(Verdict::word)
    }

    /// The unplanned ending: `interrupted`.
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
    /// One row for each device, from its newest session.
    Devices,
}

/// A table with sessions or devices as rows and the results of one work as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionTable {
    /// What the rows are.
    pub rows_of: RowsOf,
    /// The results of the newest session that has any; if sessions were named, the results of all of them.
    pub columns: Vec<Column>,
    /// Sessions with at least one of these results, newest first; named sessions in the order of naming.
    pub rows: Vec<Row>,
    /// Sessions without any of these results, by title.
    pub other_work: Vec<OtherWork>,
    /// Whether the user chose the work (`--job`).
    #[serde(skip)]
    pub is_job_chosen: bool,
    /// Number of sessions of devices that have a newer one.
    pub older: u64,
    /// Number of matching sessions that are too old for the shown number.
    pub beyond_limit: u64,
    /// The report of each row, in the same order, if sessions were named and therefore judged again; empty if the
    /// rows come from the index.
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
    /// Name of a column if each row has one result, but not the same one.
    pub const MAIN: &'static str = "main result";
}

/// A session in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Its id.
    pub session: String,
    /// Start time, RFC 3339.
    pub started: Option<String>,
    /// The verdict of the session; `None` if it cannot be judged.
    pub verdict: Option<Verdict>,
    /// Name and model of the device below its targets; `None` without a known block device.
    pub device: Option<String>,
    /// Paths of its targets.
    pub targets: Vec<String>,
    /// The user's tags.
    pub tags: Vec<String>,
    /// A figure for each column; `None` if the session did not measure it.
    pub figures: Vec<Option<Figure>>,
}

/// Sessions that are not in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherWork {
    /// Title: `bench six`.
    pub title: String,
    /// How many.
    pub sessions: u64,
}

/// Most characters of a tag.
const TAG_LETTERS: usize = 64;
/// Most tags of a session.
const MOST_TAGS: usize = 64;
/// Most characters of a note.
const NOTE_LETTERS: usize = 10_000;
/// Most notes of a session.
const MOST_NOTES: usize = 1_000;

/// The user's tags and notes about a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Annotations {
    /// Tags to find it by, sorted.
    pub tags: Vec<String>,
    /// Notes in order of time.
    pub notes: Vec<Note>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Time of the note, RFC 3339.
    pub at: String,
    /// Text.
    pub text: String,
}

impl Annotations {
    /// Parses the JSON form.
    ///
    /// # Errors
    /// What is wrong with it: not JSON, or content that no command accepts.
    pub fn parse(json: &str) -> Result<Self, String> {
        let read: Self = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let mut words = Self::default();
        read.tags.iter().try_for_each(|tag| words.tag(tag))?;
        read.notes.into_iter().try_for_each(|note| words.note(note.at, &note.text))?;
        Ok(words)
    }

    /// Whether there are neither tags nor notes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a tag; an existing tag is not duplicated.
    ///
    /// # Errors
    /// Why the tag is invalid.
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

    /// Removes a tag.
    ///
    /// # Errors
    /// That there is no such tag.
    pub fn untag(&mut self, tag: &str) -> Result<(), String> {
        let before = self.tags.len();
        self.tags.retain(|t| t != tag);
        if self.tags.len() == before { Err(format!("{tag}: it has no such tag")) } else { Ok(()) }
    }

    /// Adds a note made at this time, RFC 3339.
    ///
    /// # Errors
    /// Why the note is invalid.
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

/// Rejects tags that could be confused with an id, a path or a flag, or that cannot be typed.
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
fn tags_are_a_sorted_set_of_valid_words() -> Result<(), String> {
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
fn notes_keep_their_order_and_are_not_empty() -> Result<(), String> {
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
fn annotations_reject_content_that_no_command_accepts() {
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
