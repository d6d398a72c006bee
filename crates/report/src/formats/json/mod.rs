//! The format `json`: every report with the names of its type, for programs.
//!
//! The names are a contract (format 1): they stay, and more may be added. A report carries the number of the format in `fathom.format`, all
//! other documents in `format`. [`SCHEMAS`] describes the documents that scripts read most.

mod verified;
mod watch;

use crate::format::{Content, Format, Style, Writer};
use model::entry::{Entry, Listing};
use model::report::FORMAT as CONTRACT;
use model::session_table::SessionTable;
use serde::Serialize;
use std::io::{self, Write};

pub(super) static FORMAT: Format = Format {
    name: "json",
    extension: "json",
    content: Content::Json,
    has_brief: false,
    report: Some(Writer { about: "everything, by the contract of format 1", write }),
    comparison: Some(Writer { about: "everything, for programs", write }),
    comparisons: Some(Writer { about: "everything, for programs", write }),
    plan: None,
    sessions: Some(Writer { about: "an array of sessions, everything about each", write: write_listing }),
    session_table: Some(Writer { about: "columns, rows and what is left out", write: write_table }),
    pages: Some(Writer { about: "whole pages, for programs", write }),
    diagnosis: Some(Writer { about: "everything, for programs", write }),
    devices: Some(Writer { about: "everything, for programs", write }),
    verified: Some(Writer { about: "for programs", write: verified::write_verification }),
    watched: Some(Writer {
        about: "an object a line: each device, process and remark",
        write: watch::write_watched,
    }),
    load_over_time: None,
    captured: Some(Writer { about: "everything, for programs", write }),
    fitted: Some(Writer { about: "everything, for programs", write }),
};

/// The JSON schemas (draft 2020-12) of documents, by the name that `fathom export --schema=NAME` takes. A test generates each from the
/// types.
pub const SCHEMAS: [(&str, &str); 4] = [
    ("report", include_str!("schema.json")),
    ("list", include_str!("schema-list.json")),
    ("table", include_str!("schema-table.json")),
    ("watch", include_str!("schema-watch.json")),
];

/// An object with the number of its format in front.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Numbered<T> {
    /// Version of the JSON contract.
    format: u32,
    #[serde(flatten)]
    object: T,
}

impl<T> Numbered<T> {
    fn new(object: T) -> Self {
        Self { format: CONTRACT, object }
    }
}

fn write<K: Serialize + ?Sized>(report: &K, _: Style, mut to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, report)?;
    to.write_all(b"\n")
}

fn write_listing(listing: &Listing, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let entries: Vec<Numbered<&Entry>> = listing.entries.iter().map(Numbered::new).collect();
    write(&entries, style, to)
}

fn write_table(table: &SessionTable, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write(&Numbered::new(table), style, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::Schema;
    use std::path::Path;

    type Tried = Result<(), Box<dyn std::error::Error>>;

    /// The schema of the report is checked in `tests/schema.rs`.
    #[test]
    fn the_schemas_of_lists_tables_and_watch_are_those_of_the_types() -> Tried {
        let schemas: [(&str, &str, Schema); 3] = [
            ("list", "Sessions as `fathom list` prints them", schemars::schema_for!(Vec<Numbered<Entry>>)),
            (
                "table",
                "A table of sessions as `fathom list --table` prints it",
                schemars::schema_for!(Numbered<SessionTable>),
            ),
            ("watch", "A line of `fathom watch`", schemars::schema_for!(Numbered<watch::Line<'static>>)),
        ];
        for (name, title, mut schema) in schemas {
            schema.insert("title".into(), format!("{title}, format {CONTRACT}").into());
            let generated = format!("{:#}\n", schema.to_value());
            if std::env::var_os("FATHOM_BLESS").is_some() {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats/json");
                std::fs::write(folder.join(format!("schema-{name}.json")), &generated)?;
                continue;
            }
            let kept = SCHEMAS.iter().find(|(kept, _)| *kept == name).map(|(_, schema)| *schema);
            assert_eq!(
                kept,
                Some(generated.as_str()),
                "set FATHOM_BLESS=1, run this again and read git diff"
            );
        }
        Ok(())
    }

    #[test]
    fn a_list_stays_an_array_and_each_session_and_table_has_the_number_of_the_format() -> Tried {
        let listing = Listing { entries: vec![crate::fixture::entry("x")], ..Listing::default() };
        let list: serde_json::Value = serde_json::from_slice(&FORMAT.bytes(&listing, Style::default())?)?;
        assert_eq!((&list[0]["format"], &list[0]["id"]), (&1.into(), &"x".into()), "{list:#}");
        // The index keeps entries without it.
        let entry: Entry = serde_json::from_value(list[0].clone())?;
        assert_eq!(entry, listing.entries[0]);
        let table: serde_json::Value =
            serde_json::from_slice(&FORMAT.bytes(&SessionTable::default(), Style::default())?)?;
        assert!(table["format"] == 1 && table["rows"].is_array(), "{table:#}");
        Ok(())
    }
}
