//! A list of sessions as CSV: a line per session behind one of headings.
//!
//! For: scripts. Not for: everything about each; that is `json`.

use crate::format::Style;
use model::entry::{Entry, Listing};
use std::io;

/// Columns.
const LIST_HEADINGS: [&str; 21] = [
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

pub(super) fn write_list(listing: &Listing, _: Style, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    out.write_record(LIST_HEADINGS)?;
    listing.entries.iter().try_for_each(|entry| out.write_record(entry_fields(entry)))?;
    out.flush()
}

/// The fields of [`HEADINGS`]: lists are joined by semicolons, and what is not known is empty.
fn entry_fields(e: &Entry) -> [String; LIST_HEADINGS.len()] {
    let number = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    let headline = e.headline.as_ref();
    let bound = |at: usize| number(headline.and_then(|h| h.interval).map(|i| i[at]));
    [
        e.id.clone(),
        text(&e.started),
        e.verdict_word().unwrap_or_default().to_owned(),
        e.unplanned().unwrap_or("complete").to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::entry;
    use model::report::Ending;

    #[test]
    fn what_is_not_known_is_empty_and_how_it_ended_is_apart_from_the_verdict() {
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        assert_eq!(entry_fields(&void)[2..4], ["SUSPECT".to_owned(), "interrupted".to_owned()]);
        assert_eq!(entry_fields(&void)[6], "");
    }

    #[test]
    fn each_heading_has_a_field_and_what_needs_quotes_has_them() -> Result<(), Box<dyn std::error::Error>> {
        let odd = Entry { title: Some("a,\"b\"".into()), ..entry("x") };
        let mut bytes = Vec::new();
        write_list(&Listing { entries: vec![odd], ..Listing::default() }, Style::default(), &mut bytes)?;
        let text = String::from_utf8(bytes)?;
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(LIST_HEADINGS.join(",").as_str()));
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with("x,2026-11-21T16:12:26+01:00,SUSPECT,complete,\"a,\"\"b\"\"\""), "{line}");
        assert!(line.contains(",4K random read,2000,IOPS,1900,2100,/a;/b,"), "{line}");
        Ok(())
    }
}
