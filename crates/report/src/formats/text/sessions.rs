//! A list of sessions as text: a table, and below it what is not shown and how much space the sessions take.
//!
//! From 60 columns on every row has time, verdict, value and target. Where room is short, targets are cut, then what was measured, the
//! interval, tags and at last the id are left out.

use crate::format::Style;
use crate::page::Page;
use crate::table::Table;
use model::entry::{Entry, Listing};
use model::report::Headline;
use model::units::{GIB, show_bytes, show_count, show_rate, show_share};
use model::visible::visible;
use std::io::{self, Write};

/// Space from which it is said how much the sessions take.
const MUCH_BYTES: u64 = GIB;
/// Headings of the table. The last column is shown only if an entry has tags.
const LIST_HEADINGS: [&str; 8] = ["id", "when", "verdict", "measured", "value", "±95 %", "target", "tags"];
const VERDICT_COLUMN: usize = 2;
const TARGET_COLUMN: usize = 6;
/// Columns that are left out in this order if there is too little room.
const LIST_DROP_ORDER: [usize; 4] = [3, 5, 7, 0];
/// The fewest columns of the terminal that a target is cut to.
const MIN_TARGET_WIDTH: usize = 10;
/// Below this width a verdict with a remark, as `SUSPECT, interrupted`, takes two lines.
const NARROW_WIDTH: usize = 80;

pub(super) fn write_list(listing: &Listing, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    if !listing.entries.is_empty() {
        let mut table = list_table(&listing.entries);
        if style.width < NARROW_WIDTH {
            table.edit(VERDICT_COLUMN, |verdict| verdict.replace(", ", ",\n"));
        }
        out.table(&table);
        if table.lines(style.width).1.contains(&LIST_HEADINGS[0]) {
            out.prose("", "  ", "`COLUMNS=120 fathom list` shows the ids.");
        }
    }
    for (entry, why) in listing.entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out.prose(&format!("{}: ", printable(&entry.id)), "    ", &printable(why));
    }
    for words in list_foot(listing) {
        out.prose("", "  ", &words);
    }
    out.write(to)
}

/// A row for each session; tags where one has some.
pub(in crate::formats) fn list_table(entries: &[Entry]) -> Table {
    let tagged = entries.iter().any(|e| !e.words.tags.is_empty());
    let columns = if tagged { LIST_HEADINGS.len() } else { LIST_HEADINGS.len() - 1 };
    let mut table =
        Table::new(&LIST_HEADINGS[..columns], &LIST_DROP_ORDER).cut_to(TARGET_COLUMN, MIN_TARGET_WIDTH);
    for words in [1, 2, 3, TARGET_COLUMN] {
        table = table.aligned(words, true);
    }
    table.add_all(entries.iter().map(|entry| list_row(entry).into_iter().take(columns)));
    table
}

fn list_row(e: &Entry) -> [String; LIST_HEADINGS.len()] {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { printable(&text) };
    let name = e.headline.as_ref().map(|h| h.name.clone());
    [
        printable(&e.id),
        or_dash(e.started.as_deref().map(when).unwrap_or_default()),
        e.word(),
        or_dash(name.or_else(|| e.title.clone()).unwrap_or_default()),
        or_dash(e.headline.as_ref().map(value).unwrap_or_default()),
        e.headline.as_ref().and_then(half_interval).unwrap_or_default(),
        or_dash(e.targets.join(", ")),
        printable(&e.words.tags.join(" ")),
    ]
}

/// Day, hour and minute where it was measured.
fn when(started: &str) -> String {
    started.chars().take(16).collect::<String>().replace('T', " ")
}

/// `81,172 IOPS`.
fn value(headline: &Headline) -> String {
    headline.value.map_or_else(|| "no number".into(), |v| format!("{} {}", show_rate(v), headline.unit))
}

/// Half of the 95 % interval as a share of the value: `4.4 %`.
fn half_interval(headline: &Headline) -> Option<String> {
    let value = headline.value.filter(|v| *v > 0.0)?;
    headline.interval.map(|[low, high]| show_share((high - low) / 2.0 / value))
}

/// What a file holds must not move the cursor of a terminal, nor end a row.
fn printable(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// What is not shown, and what all of them take.
pub(in crate::formats) fn list_foot(listing: &Listing) -> Vec<String> {
    let Listing { entries, asked_for, sessions, bytes } = listing;
    let mut out = Vec::new();
    if *sessions == 0 {
        out.push("There are no sessions yet; `fathom bench` makes one.".into());
    } else if *asked_for == 0 {
        out.push(format!("None of {} sessions is like that.", show_count(*sessions as f64)));
    } else if *asked_for > entries.len() as u64 {
        out.push(format!(
            "The newest {} of {}; --limit 0 shows all.",
            show_count(entries.len() as f64),
            show_count(*asked_for as f64)
        ));
    }
    if *bytes > MUCH_BYTES {
        out.push(format!(
            "The session files take {}; `fathom delete ID` removes one, and nothing else does.",
            show_bytes(*bytes)
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::entry;
    use model::annotations::Annotations;
    use model::report::Ending;

    fn listing(entries: Vec<Entry>, asked_for: u64, bytes: u64) -> Listing {
        Listing { entries, asked_for, sessions: 1, bytes }
    }

    fn text(listing: &Listing) -> io::Result<String> {
        let mut bytes = Vec::new();
        write_list(listing, Style { width: 110, ..Style::default() }, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn the_table_has_a_line_per_entry_and_tags_where_there_are_some() -> io::Result<()> {
        let mut all = vec![entry("20261121-161226-1"), entry("2")];
        let expected = "\
id                 when              verdict  measured             value  ±95 %  target
---------------------------------------------------------------------------------------
20261121-161226-1  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS  5.0 %  /a, /b
2                  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS  5.0 %  /a, /b
";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('-', "");
        let shown = text(&listing(all.clone(), 2, 0))?;
        assert_eq!(squeezed(&shown), squeezed(expected));
        let columns: Vec<Option<usize>> = shown.lines().map(|l| l.find("/a, /b")).collect();
        assert_eq!(columns[2], columns[3]);
        all[1].words = Annotations { tags: vec!["new".into()], notes: Vec::new() };
        let shown = text(&listing(all, 2, 0))?;
        assert!(shown.contains("tags") && shown.contains("/a, /b  new\n"), "{shown}");
        Ok(())
    }

    #[test]
    fn an_entry_that_does_not_say_is_told_from_one_that_says_zero() {
        let mut cut = Entry { ending: Some(Ending::Cut), ..Entry::default() };
        assert_eq!(list_row(&cut)[1..7], ["-", "cut", "-", "-", "", "-"].map(str::to_owned));
        cut.running = true;
        assert_eq!(cut.word(), "running");
        assert_eq!(Entry::default().word(), "unreadable");
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        assert_eq!(
            (list_row(&void)[4].as_str(), void.word().as_str()),
            ("no number", "SUSPECT, interrupted")
        );
    }

    #[test]
    fn every_width_from_60_columns_on_has_time_verdict_value_and_target() -> io::Result<()> {
        let mut all = vec![entry("20261121-161226-12345"), entry("20261121-161226-12346")];
        all[0].targets = vec!["/var/lib/postgresql/16/main/base".into()];
        all[1].targets = vec!["/dev/nvme0n1".into()];
        all[1].ending = Some(Ending::Interrupted);
        if let Some(headline) = &mut all[1].headline {
            headline.value = Some(1_234_567.0);
        }
        for tags in [vec![], vec!["a-long-tag".to_owned(), "another".into()]] {
            all[0].words = Annotations { tags, notes: Vec::new() };
            let listing = listing(all.clone(), 2, 0);
            for width in 60..=140 {
                let mut bytes = Vec::new();
                write_list(&listing, Style { width, ..Style::default() }, &mut bytes)?;
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let head = shown.lines().next().unwrap_or_default();
                for heading in ["when", "verdict", "value", "target"] {
                    assert!(head.contains(heading), "{heading} at {width}\n{shown}");
                }
                for value in
                    ["2026-11-21 16:12", "SUSPECT", "interrupted", "2,000 IOPS", "1,234,567 IOPS", "/va"]
                {
                    assert!(shown.contains(value), "{value} at {width}\n{shown}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn what_a_file_holds_does_not_reach_the_terminal_as_it_is() -> io::Result<()> {
        let mut evil = entry("x");
        evil.targets = vec!["/a\u{1b}[2J".into()];
        evil.problem = Some("bad\u{7}".into());
        let shown = text(&listing(vec![evil], 1, 0))?;
        assert!(!shown.contains(['\u{1b}', '\u{7}']) && shown.contains("bad"), "{shown}");
        Ok(())
    }

    #[test]
    fn the_foot_says_what_is_not_shown_and_how_much_space_it_takes() {
        assert_eq!(list_foot(&listing(vec![entry("x")], 1, MUCH_BYTES)), [""; 0]);
        assert!(list_foot(&listing(vec![entry("x")], 1, MUCH_BYTES + 1))[0].contains("fathom delete"));
        assert_eq!(
            list_foot(&listing(vec![entry("x")], 1234, 0)),
            ["The newest 1 of 1,234; --limit 0 shows all."]
        );
        assert_eq!(list_foot(&listing(Vec::new(), 0, 0)), ["None of 1 sessions is like that."]);
        assert!(list_foot(&Listing::default())[0].contains("fathom bench"));
    }
}
