//! A list of sessions as text: a table, and below it what is not shown and what they take.
//!
//! For: people. Not for: finding sessions, nor what is in one.

use crate::format::Style;
use crate::prose::prose;
use model::entry::{Entry, Listing};
use model::report::Headline;
use model::units::{GIB, show_bytes, show_count, show_rate, show_share};
use model::visible::visible;
use std::io::{self, Write};

/// Space from which it is said how much the sessions take.
const MUCH_BYTES: u64 = GIB;
/// Headings of the table; the last column is there where an entry has tags.
const HEADINGS: [&str; 7] = ["id", "when", "verdict", "headline", "value", "target", "tags"];
/// Which of them stands to the right.
const VALUE: usize = 4;

pub(super) fn write(listing: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(table(&listing.entries).as_bytes())?;
    to.write_all(foot(listing).as_bytes())
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

fn foot(listing: &Listing) -> String {
    let Listing { entries, asked_for, sessions, bytes } = listing;
    let mut out = String::new();
    for (entry, why) in entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out += &prose(&format!("{}: ", printable(&entry.id)), "    ", &printable(why));
    }
    if *sessions == 0 {
        out += "There are no sessions yet; `fathom bench` makes one.\n";
    } else if *asked_for == 0 {
        out += &format!("None of {} sessions is like that.\n", show_count(*sessions as f64));
    } else if *asked_for > entries.len() as u64 {
        out += &format!(
            "The newest {} of {}; --limit 0 shows all.\n",
            show_count(entries.len() as f64),
            show_count(*asked_for as f64)
        );
    }
    if *bytes > MUCH_BYTES {
        out += &format!(
            "The session files take {}; `fathom delete ID` removes one, and nothing else does.\n",
            show_bytes(*bytes)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::annotations::Annotations;
    use model::report::{Ending, Verdict};

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

    fn listing(entries: Vec<Entry>, asked_for: u64, bytes: u64) -> Listing {
        Listing { entries, asked_for, sessions: 1, bytes }
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
        all[1].words = Annotations { tags: vec!["new".into()], notes: Vec::new() };
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
    }

    #[test]
    fn what_a_file_holds_does_not_reach_the_terminal_as_it_is() {
        let mut evil = entry("x");
        evil.targets = vec!["/a\u{1b}[2J".into()];
        evil.problem = Some("bad\u{7}".into());
        let shown = table(&[evil.clone()]) + &foot(&listing(vec![evil], 1, 0));
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown}");
    }

    #[test]
    fn the_foot_says_what_is_not_shown_and_how_much_space_it_takes() {
        assert_eq!(foot(&listing(vec![entry("x")], 1, MUCH_BYTES)), "");
        assert!(foot(&listing(vec![entry("x")], 1, MUCH_BYTES + 1)).contains("fathom delete"));
        assert_eq!(
            foot(&listing(vec![entry("x")], 1234, 0)),
            "The newest 1 of 1,234; --limit 0 shows all.\n"
        );
        assert_eq!(foot(&listing(Vec::new(), 0, 0)), "None of 1 sessions is like that.\n");
        assert!(foot(&Listing::default()).contains("fathom bench"));
    }
}
