//! `fathom list`: entries as a table to read, as JSON, as CSV.
//!
//! For: what of the history is shown and how. Not for: finding entries ([`super::index`]).

use super::entry::Entry;
use super::files::Files;
use super::index::{self, Filter};
use crate::failure::Failure;
use crate::{session, stderr, stdout};
use model::report::{Ending, Headline};
use model::units::{GIB, show_bytes, show_count, show_rate, show_share};
use model::visible::visible;
use std::process::ExitCode;

/// Entries that a person is shown where no number was said.
const SCREENFUL: u32 = 40;
/// Space from which it is said how much the sessions take.
const MUCH_BYTES: u64 = GIB;
/// Headings of the table; the last column is there where an entry has tags.
const HEADINGS: [&str; 7] = ["id", "when", "verdict", "headline", "value", "target", "tags"];
/// Which of them stands to the right.
const VALUE: usize = 4;
/// Columns of the CSV form.
const CSV: [&str; 21] = [
    "id",
    "started",
    "verdict",
    "ending",
    "title",
    "headline",
    "value",
    "unit",
    "low",
    "high",
    "targets",
    "devices",
    "jobs",
    "runs",
    "hosts",
    "fingerprint",
    "findings",
    "version",
    "tags",
    "notes",
    "path",
];

/// What is to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Which entries.
    pub filter: Filter,
    /// How many at most, newest first; 0 for all, `None` for as many as the form bears.
    pub limit: Option<u32>,
    /// Whether the index is made anew before.
    pub rebuild: bool,
    /// The form.
    pub form: Form,
}

/// Forms of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table to read.
    Text,
    /// An array of entries.
    Json,
    /// A line per entry behind one of headings.
    Csv,
}

/// Lists.
///
/// # Errors
/// [`Failure::Refused`] where the index is from a later fathom.
pub fn list(wish: &Listing) -> Result<ExitCode, Failure> {
    let files = Files::look();
    files.problems.iter().for_each(|why| stderr::say(&format!("fathom: {why}")));
    if wish.rebuild {
        index::rebuild(&files)?;
    }
    let most = match (wish.limit, wish.form) {
        (Some(0), _) | (None, Form::Json | Form::Csv) => None,
        (None, Form::Text) => Some(SCREENFUL),
        (said, _) => said,
    };
    let (mut entries, all) =
        index::with(&files, |index| Ok((index.entries(&wish.filter, most)?, index.count(&wish.filter)?)))?;
    for entry in &mut entries {
        let Some(found) = files.by_id.get(&entry.id) else { continue };
        entry.path = found.path.display().to_string();
        entry.running = entry.ending == Some(Ending::Cut) && session::is_running(&found.path);
    }
    match wish.form {
        Form::Text => stdout::text(&(table(&entries) + &foot(&entries, all, &files)))?,
        Form::Json => stdout::json(json(&entries)?)?,
        Form::Csv => stdout::text(&csv(&entries)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn json(entries: &[Entry]) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(entries).map_err(|e| Failure::Refused(e.to_string()))?;
    Ok(text + "\n")
}

fn csv(entries: &[Entry]) -> Result<String, Failure> {
    let refuse = |e: &dyn std::fmt::Display| Failure::Refused(format!("--format csv: {e}"));
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(CSV).map_err(|e| refuse(&e))?;
    for entry in entries {
        out.write_record(fields(entry)).map_err(|e| refuse(&e))?;
    }
    let bytes = out.into_inner().map_err(|e| refuse(&e))?;
    String::from_utf8(bytes).map_err(|e| refuse(&e))
}

/// The fields of [`CSV`]: lists are joined by semicolons, and what is not known is empty.
fn fields(e: &Entry) -> [String; CSV.len()] {
    let number = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    let headline = e.headline.as_ref();
    let bound = |at: usize| number(headline.and_then(|h| h.interval).map(|i| i[at]));
    let word = e.word();
    let (verdict, ending) = match e.verdict {
        Some(_) => word.split_once(", ").unwrap_or((&word, "complete")),
        None => ("", word.as_str()),
    };
    [
        e.id.clone(),
        text(&e.started),
        verdict.to_owned(),
        ending.to_owned(),
        text(&e.title),
        headline.map(|h| h.name.clone()).unwrap_or_default(),
        number(headline.and_then(|h| h.value)),
        headline.map(|h| h.unit.clone()).unwrap_or_default(),
        bound(0),
        bound(1),
        e.targets.join(";"),
        e.devices.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(";"),
        e.jobs.join(";"),
        e.runs.to_string(),
        e.hosts.join(";"),
        text(&e.fingerprint),
        e.findings.iter().map(|f| f.id.to_string()).collect::<Vec<_>>().join(";"),
        text(&e.version),
        e.words.tags.join(";"),
        e.words.notes.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(";"),
        e.path.clone(),
    ]
}

fn table(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; HEADINGS.len()]> =
        [HEADINGS.map(str::to_owned)].into_iter().chain(entries.iter().map(row)).collect();
    let tagged = entries.iter().any(|e| !e.words.tags.is_empty());
    let columns = if tagged { HEADINGS.len() } else { HEADINGS.len() - 1 };
    let width = |at: usize| rows.iter().map(|r| r[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (i, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if at == VALUE { format!("{cell:>width$}") } else { format!("{cell:width$}") };
            line += &cell;
            line += "  ";
        }
        out += line.trim_end();
        out.push('\n');
        if i == 0 {
            out += &"-".repeat(widths.iter().sum::<usize>() + 2 * (columns - 1));
            out.push('\n');
        }
    }
    out
}

fn row(e: &Entry) -> [String; HEADINGS.len()] {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { printable(&text) };
    let name = e.headline.as_ref().map(|h| h.name.clone());
    [
        printable(&e.id),
        or_dash(e.started.as_deref().map(when).unwrap_or_default()),
        e.word(),
        or_dash(name.or_else(|| e.title.clone()).unwrap_or_default()),
        or_dash(e.headline.as_ref().map(value).unwrap_or_default()),
        or_dash(e.targets.join(", ")),
        printable(&e.words.tags.join(" ")),
    ]
}

/// Day, hour and minute where it was measured.
fn when(started: &str) -> String {
    started.chars().take(16).collect::<String>().replace('T', " ")
}

/// `81,172 IOPS ±4.4 %`.
fn value(headline: &Headline) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let half = headline.interval.filter(|_| value > 0.0).map(|[low, high]| (high - low) / 2.0 / value);
    let half = half.map_or_else(String::new, |share| format!(" ±{}", show_share(share)));
    format!("{} {}{half}", show_rate(value), headline.unit)
}

/// What a file holds must not move the cursor of a terminal, nor end a row.
fn printable(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

fn foot(entries: &[Entry], all: u64, files: &Files) -> String {
    let mut out = String::new();
    for (entry, why) in entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out += &report::prose::prose(&format!("{}: ", printable(&entry.id)), "    ", &printable(why));
    }
    if files.by_id.is_empty() {
        out += "There are no sessions yet; `fathom bench` makes one.\n";
    } else if all == 0 {
        out += &format!("None of {} sessions is like that.\n", show_count(files.by_id.len() as f64));
    } else if all > entries.len() as u64 {
        out += &format!(
            "The newest {} of {}; --limit 0 shows all.\n",
            show_count(entries.len() as f64),
            show_count(all as f64)
        );
    }
    if files.bytes() > MUCH_BYTES {
        out += &format!(
            "The session files take {}; `fathom delete ID` removes one, and nothing else does.\n",
            show_bytes(files.bytes())
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::files::{Found, Stamp};
    use super::*;
    use model::report::Verdict;
    use model::words::Words;
    use std::path::PathBuf;

    fn entry(id: &str) -> Entry {
        Entry {
            id: id.into(),
            started: Some("2026-11-21T16:12:26+01:00".into()),
            verdict: Some(Verdict::Suspect),
            headline: Some(Headline {
                name: "4K random read".into(),
                value: Some(2000.0),
                unit: "IOPS".into(),
                interval: Some([1900.0, 2100.0]),
            }),
            ending: Some(Ending::Complete),
            targets: vec!["/a".into(), "/b".into()],
            ..Entry::default()
        }
    }

    fn files(bytes: i64) -> Files {
        let stamp = Stamp { bytes, ..Stamp::default() };
        let found = Found { id: "x".into(), path: PathBuf::new(), stamp };
        Files { by_id: [("x".into(), found)].into(), problems: Vec::new() }
    }

    #[test]
    fn the_table_has_a_line_per_entry_and_tags_where_there_are_some() {
        let mut all = [entry("20261121-161226-1"), entry("2")];
        let expected = "\
id                 when              verdict  headline                 value  target
------------------------------------------------------------------------------------
20261121-161226-1  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS ±5.0 %  /a, /b
2                  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS ±5.0 %  /a, /b
";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&table(&all)).replace('-', ""), squeezed(expected).replace('-', ""));
        let lines = table(&all);
        let columns: Vec<Option<usize>> = lines.lines().map(|l| l.find("/a, /b")).collect();
        assert_eq!(columns[2], columns[3]);
        all[1].words = Words { tags: vec!["new".into()], notes: Vec::new() };
        assert!(table(&all).contains("tags") && table(&all).contains("/a, /b  new\n"));
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn an_entry_that_does_not_say_is_told_from_one_that_says_zero() {
        let mut cut = Entry { ending: Some(Ending::Cut), ..Entry::default() };
        assert_eq!(row(&cut)[1..6], ["-", "cut", "-", "-", "-"].map(str::to_owned));
        cut.running = true;
        assert_eq!(cut.word(), "running");
        assert_eq!(Entry::default().word(), "unreadable");
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        assert_eq!((row(&void)[VALUE].as_str(), void.word().as_str()), ("no number", "SUSPECT, interrupted"));
        assert_eq!(fields(&void)[2..4], ["SUSPECT".to_owned(), "interrupted".to_owned()]);
        assert_eq!(fields(&void)[6], "");
    }

    #[test]
    fn what_a_file_holds_does_not_reach_the_terminal_as_it_is() {
        let mut evil = entry("x");
        evil.targets = vec!["/a\u{1b}[2J".into()];
        evil.problem = Some("bad\u{7}".into());
        let shown = table(&[evil.clone()]) + &foot(&[evil], 1, &files(0));
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown}");
    }

    #[test]
    fn the_foot_says_what_is_not_shown_and_how_much_space_it_takes() {
        assert_eq!(foot(&[entry("x")], 1, &files(MUCH_BYTES as i64)), "");
        assert!(foot(&[entry("x")], 1, &files(MUCH_BYTES as i64 + 1)).contains("fathom delete"));
        assert_eq!(foot(&[entry("x")], 1234, &files(0)), "The newest 1 of 1,234; --limit 0 shows all.\n");
        assert_eq!(foot(&[], 0, &files(0)), "None of 1 sessions is like that.\n");
        assert!(foot(&[], 0, &Files::default()).contains("fathom bench"));
    }

    #[test]
    fn csv_has_a_field_per_heading_and_quotes_what_needs_it() -> Result<(), Failure> {
        let mut odd = entry("x");
        odd.title = Some("a,\"b\"".into());
        let text = csv(&[odd])?;
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(CSV.join(",").as_str()));
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with("x,2026-11-21T16:12:26+01:00,SUSPECT,complete,\"a,\"\"b\"\"\""), "{line}");
        assert!(line.contains(",4K random read,2000,IOPS,1900,2100,/a;/b,"), "{line}");
        Ok(())
    }
}
