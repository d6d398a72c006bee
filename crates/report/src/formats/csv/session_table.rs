//! A table of sessions as CSV: a line per session or device, four fields for each result.
//!
//! For: spreadsheets; an empty field was not measured, or is withheld. Not for: which sessions are in it.

use crate::format::Style;
use model::entry::Figure;
use model::report::Verdict;
use model::session_table::{Row, SessionTable};
use std::io;

/// Fields before those of the results.
const TABLE_HEADINGS: [&str; 6] = ["session", "started", "verdict", "device", "targets", "tags"];

pub(super) fn write_session_table(
    sessions: &SessionTable,
    _: Style,
    to: &mut dyn io::Write,
) -> io::Result<()> {
    let mut out = csv::Writer::from_writer(to);
    let columns = sessions.columns.iter().flat_map(|column| {
        let name = format!("{} {}", column.name, column.unit);
        [name.clone(), format!("{name} low"), format!("{name} high"), format!("{} verdict", column.name)]
    });
    out.write_record(TABLE_HEADINGS.map(str::to_owned).into_iter().chain(columns))?;
    for row in &sessions.rows {
        out.write_record(
            session_fields(row).into_iter().chain(row.figures.iter().flat_map(|f| figure_fields(f.as_ref()))),
        )?;
    }
    out.flush()
}

fn session_fields(row: &Row) -> [String; TABLE_HEADINGS.len()] {
    [
        row.session.clone(),
        row.started.clone().unwrap_or_default(),
        row.verdict.map_or("", Verdict::word).into(),
        row.device.clone().unwrap_or_default(),
        row.targets.join(";"),
        row.tags.join(";"),
    ]
}

fn figure_fields(figure: Option<&Figure>) -> [String; 4] {
    let Some(figure) = figure else { return Default::default() };
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let end = |at: usize| number(figure.interval.map(|ends| ends[at]));
    [number(figure.value), end(0), end(1), figure.verdict.word().into()]
}

#[test]
fn each_result_has_four_fields_and_what_is_withheld_none_but_its_verdict()
-> Result<(), Box<dyn std::error::Error>> {
    let figure = |value, verdict| {
        Some(Figure { name: "a".into(), unit: "IOPS".into(), value, interval: None, verdict })
    };
    let row = Row {
        session: "1".into(),
        started: None,
        verdict: Some(Verdict::Invalid),
        device: None,
        targets: vec!["/a".into(), "/b".into()],
        tags: Vec::new(),
        figures: vec![figure(Some(2.5), Verdict::Valid), figure(None, Verdict::Invalid), None],
    };
    let column = |name: &str| model::session_table::Column { name: name.into(), unit: "IOPS".into() };
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
