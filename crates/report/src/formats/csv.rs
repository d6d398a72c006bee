//! The format `csv` (RFC 4180): tables for spreadsheets and scripts. This file writes them; their columns are in `view/records.rs`.
//!
//! Headings carry the units. An empty field is unknown or withheld. A report has one row per result
//! and direction; `fathom api` has one per interface and workload, a sweep in a fixed order one per
//! cell, and `fathom time` one per run of a command. The last columns name the session, so that
//! rows of many sessions fit into one file. Findings appear only as ids; `json` has their text.

use crate::view::records::{
    comparison_records, report_records, session_records, session_table_records, watch_records,
};
use crate::view::table::Records;
use crate::{Content, Format, Style, writer};
use csv::{Terminator, WriterBuilder};
use model::comparison::{Comparison, Comparisons};
use model::history::{Listing, SessionTable};
use model::report::Report;
use model::watch::Watched;
use std::io;
use std::io::Write;

pub(super) static FORMAT: Format = Format {
    name: "csv",
    extension: "csv",
    content: Content::Text,
    has_brief: false,
    report: writer("the table, a row per result and direction, or per interface and workload", write_report),
    comparison: writer("a line per number", write_comparison),
    comparisons: writer("a line per number and side", write_several),
    plan: None,
    sessions: writer("a line per session, lists joined by semicolons", write_list),
    session_table: writer(
        "a line per session or device, with the fields of each result",
        write_session_table,
    ),
    pages: None,
    diagnosis: None,
    devices: None,
    verified: None,
    watched: writer("a line per interval and device", write_watched),
    load_over_time: None,
    captured: None,
    fitted: None,
};

/// Writes the headings and the rows.
fn write_records(records: &Records, ends: Terminator, to: &mut dyn Write) -> io::Result<()> {
    let mut out = WriterBuilder::new().terminator(ends).from_writer(to);
    if records.has_headings {
        out.write_record(&records.headings)?;
    }
    records.rows.iter().try_for_each(|row| out.write_record(row))?;
    out.flush()
}

fn write_report(report: &Report, _: Style, to: &mut dyn Write) -> io::Result<()> {
    write_records(&report_records(report), Terminator::CRLF, to)
}

fn write_comparison(comparison: &Comparison, _: Style, to: &mut dyn Write) -> io::Result<()> {
    write_records(&comparison_records([("B", comparison)].into_iter()), Terminator::CRLF, to)
}

fn write_several(comparisons: &Comparisons, _: Style, to: &mut dyn Write) -> io::Result<()> {
    let sides = comparisons.others.iter().map(|other| (other.name.as_str(), &other.comparison));
    write_records(&comparison_records(sides), Terminator::CRLF, to)
}

fn write_list(listing: &Listing, _: Style, to: &mut dyn Write) -> io::Result<()> {
    write_records(&session_records(listing), Terminator::default(), to)
}

fn write_session_table(sessions: &SessionTable, _: Style, to: &mut dyn Write) -> io::Result<()> {
    write_records(&session_table_records(sessions), Terminator::default(), to)
}

fn write_watched(watched: &Watched, _: Style, to: &mut dyn Write) -> io::Result<()> {
    write_records(&watch_records(watched), Terminator::default(), to)
}

#[cfg(test)]
use {
    model::history::{Figure, SessionRow},
    model::report::Verdict,
    model::study::Studied,
    model::sweep::{Setting, Sweep},
};

#[test]
fn every_row_names_its_session_and_percentiles_are_in_order() -> Result<(), Box<dyn std::error::Error>> {
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    report.session = Some("/x/sessions/20261127-1.fathom".into());
    report.annotations.tags = vec!["a".into(), "b,c".into()];
    let table = |report: &Report| -> Result<Vec<Vec<String>>, Box<dyn std::error::Error>> {
        let mut bytes = Vec::new();
        write_report(report, Style::default(), &mut bytes)?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&bytes[..]);
        let rows: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
        Ok(rows?.iter().map(|row| row.iter().map(str::to_owned).collect()).collect())
    };
    let value = |rows: &[Vec<String>], name: &str| {
        let at = rows[0].iter().position(|heading| heading == name);
        at.map(|at| rows[1][at].clone())
    };
    let rows = table(&report)?;
    assert_eq!(value(&rows, "session").as_deref(), Some("20261127-1"));
    assert_eq!(value(&rows, "tags").as_deref(), Some("a;b,c"));
    assert_eq!(value(&rows, "started").as_deref(), Some(report.started.as_str()));
    assert_eq!(value(&rows, "target").as_deref(), Some(report.machine.places[0].path.as_str()));
    assert_eq!(value(&rows, "p99_9_ns"), value(&rows, "p99.9_ns"));
    assert!(value(&rows, "p99_9_ns").is_some_and(|ns| !ns.is_empty()));
    let ranks: Vec<&str> = rows[0].iter().map(String::as_str).filter(|name| name.starts_with('p')).collect();
    assert_eq!(ranks, ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns", "p99.9_ns"]);
    // The other tables have the same columns.
    let api = serde_json::from_str(include_str!("../../tests/golden/pieces/api.json"))?;
    report.study = Studied::Interfaces(api);
    let rows = table(&report)?;
    assert_eq!(value(&rows, "session").as_deref(), Some("20261127-1"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    Ok(())
}

#[test]
fn rows_of_a_sweep_name_the_work_and_the_setting_of_their_cell() -> Result<(), serde_json::Error> {
    let mut report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    report.results.truncate(2);
    let mut sweep: Sweep = serde_json::from_str(include_str!("../../tests/golden/pieces/sweep.json"))?;
    sweep.cells.truncate(2);
    for (at, (cell, mix)) in sweep.cells.iter_mut().zip(["70/30", "50/50"]).enumerate() {
        cell.result = Some(at);
        cell.setting = Setting {
            mix: Some(mix.into()),
            batch: Some(4),
            mode: Some("unbuffered".into()),
            ..Setting::plain("randrw", 4096, 8)
        };
    }
    sweep.cells[1].setting.batch = None;
    report.study = Studied::Sweep(Box::new(sweep));
    let records = report_records(&report);
    let values = |heading: &str| -> Vec<&str> {
        let at = records.headings.iter().position(|one| one == heading);
        let at = at.unwrap_or_else(|| panic!("{heading}"));
        records.rows.iter().map(|row| row[at].as_str()).collect()
    };
    assert_eq!(values("work"), ["randrw 70/30", "randrw 50/50"]);
    assert_eq!((values("batch"), values("mode")), (vec!["4", ""], vec!["unbuffered", "unbuffered"]));
    assert_eq!(values("depth"), ["8", "8"]);
    Ok(())
}

#[test]
fn each_result_has_four_fields_and_a_withheld_one_only_its_verdict() -> Result<(), Box<dyn std::error::Error>>
{
    let figure = |name: &str, value, verdict| {
        Some(Figure {
            name: name.into(),
            unit: "IOPS".into(),
            value,
            interval: None,
            verdict,
            mb_per_s: None,
        })
    };
    let row = SessionRow {
        session: "1".into(),
        verdict: Some(Verdict::Invalid),
        targets: vec!["/a".into(), "/b".into()],
        figures: vec![figure("a", Some(2.5), Verdict::Valid), figure("b", None, Verdict::Invalid), None],
        ..SessionRow::default()
    };
    let column = |name: &str| model::history::Column { name: name.into(), unit: "IOPS".into() };
    let columns = ["a", "b", "c"].map(column).to_vec();
    let mut bytes = Vec::new();
    write_session_table(
        &SessionTable { columns, rows: vec![row], ..SessionTable::default() },
        Style::default(),
        &mut bytes,
    )?;
    let text = String::from_utf8(bytes)?;
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default();
    assert!(
        heading.starts_with("session,started,")
            && heading.ends_with("c IOPS,c IOPS low,c IOPS high,c verdict")
    );
    assert_eq!(lines.next(), Some("1,,INVALID,,/a;/b,,2.5,,,VALID,,,,INVALID,,,,"));
    Ok(())
}

#[test]
fn sessions_of_different_work_share_no_column() -> Result<(), Box<dyn std::error::Error>> {
    use model::history::Column;
    let report: Report = serde_json::from_str(include_str!("../../tests/golden/valid.json"))?;
    let row = |session: &str, name: &str, unit: &str, value| SessionRow {
        session: session.into(),
        figures: ["IOPS", "MB/s"]
            .into_iter()
            .map(|of_column| {
                let figure = Figure {
                    name: name.into(),
                    unit: unit.into(),
                    value: Some(value),
                    interval: None,
                    verdict: Verdict::Valid,
                    mb_per_s: None,
                };
                Some(figure).filter(|figure| figure.unit == of_column)
            })
            .collect(),
        ..SessionRow::default()
    };
    let main = |unit: &str| Column { name: Column::MAIN.into(), unit: unit.into() };
    let table = SessionTable {
        columns: vec![main("IOPS"), main("MB/s")],
        rows: vec![
            row("1", "read", "IOPS", 5.0),
            row("2", "write", "IOPS", 7.0),
            row("3", "read", "IOPS", 6.0),
            row("4", "copy", "MB/s", 8.0),
            row("5", "read", "MB/s", 9.0),
        ],
        reports: vec![report; 5],
        ..SessionTable::default()
    };
    let mut bytes = Vec::new();
    write_session_table(&table, Style::default(), &mut bytes)?;
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let headings: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    assert!(!headings.iter().any(|heading| heading.contains(Column::MAIN)), "{headings:?}");
    let distinct: std::collections::BTreeSet<&String> = headings.iter().collect();
    assert_eq!(distinct.len(), headings.len(), "{headings:?}");
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    let values = |heading: &str| -> Vec<&str> {
        let at = headings.iter().position(|one| one == heading).unwrap_or_else(|| panic!("{heading}"));
        rows.iter().map(|row| &row[at]).collect()
    };
    assert_eq!(values("session"), ["1", "2", "3", "4", "5"]);
    assert_eq!(values("read IOPS"), ["5", "", "6", "", ""]);
    assert_eq!(values("write IOPS"), ["", "7", "", "", ""]);
    assert_eq!(values("copy MB/s"), ["", "", "", "8", ""]);
    assert_eq!(values("read MB/s"), ["", "", "", "", "9"]);
    let measured = values("read measured");
    assert!(!measured[0].is_empty() && measured[1].is_empty(), "{measured:?}");
    Ok(())
}

#[test]
fn headings_are_printed_once_and_each_line_has_all_fields() -> io::Result<()> {
    let mut watched = crate::fixture::watched();
    let mut bytes = Vec::new();
    write_watched(&watched, Style::default(), &mut bytes)?;
    watched.is_first = false;
    write_watched(&watched, Style::default(), &mut bytes)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|l| l.split(',').count() == 40), "{text}");
    assert!(lines[0].starts_with("time,device,level,seconds,read_per_s"), "{text}");
    let known: Vec<&str> = lines[1].split(',').collect();
    assert_eq!((known[1], known[4], known[13], known[20], known[26]), ("loop0", "500", "", "", "40"));
    assert_eq!(&known[28..34], ["0.07", "0.31", "1.25", "", "", ""], "no write completed");
    assert_eq!(&known[37..], ["0.07", "", "1.25"]);
    // An unknown value is not zero.
    assert!(lines[2].split(',').skip(3).all(str::is_empty), "{text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::entry;
    use model::history::Entry;
    use model::report::Ending;

    #[test]
    fn unknown_values_are_empty_and_the_ending_is_separate_from_the_verdict() {
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        let records = session_records(&Listing { entries: vec![void], ..Listing::default() });
        assert_eq!(records.rows[0][2..4], ["SUSPECT".to_owned(), "interrupted".to_owned()]);
        assert_eq!(records.rows[0][6], "");
    }

    #[test]
    fn each_heading_has_a_field_and_special_characters_are_quoted() -> Result<(), Box<dyn std::error::Error>>
    {
        let odd = Entry { title: Some("a,\"b\"".into()), ..entry("x") };
        let mut bytes = Vec::new();
        write_list(&Listing { entries: vec![odd], ..Listing::default() }, Style::default(), &mut bytes)?;
        let text = String::from_utf8(bytes)?;
        let mut lines = text.lines();
        let headings = "id,started,verdict,ending,title,headline,value,unit,low,high,targets,devices,jobs,runs,hosts,\
                        fingerprint,findings,version,tags,notes,path";
        assert_eq!(lines.next(), Some(headings));
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with("x,2026-11-21T16:12:26+01:00,SUSPECT,complete,\"a,\"\"b\"\"\""), "{line}");
        assert!(line.contains(",4K random read,2000,IOPS,1900,2100,/a;/b,"), "{line}");
        Ok(())
    }
}
