//! A table of sessions as text: the results of one work side by side, and below it what is not shown.
//!
//! For: people. Not for: which sessions are in it.

use super::report::ending;
use crate::format::Style;
use crate::page::{Page, SUSPECT_MARK, SUSPECT_MARK_MEANING, supported, with_suspect_mark};
use crate::table::Table;
use model::entry::Figure;
use model::report::{Report, Verdict};
use model::session_table::{Column, Row, RowsOf, SessionTable};
use model::units::show_count;
use model::visible::visible;
use std::io::{self, Write};

pub(super) fn write_session_table(
    sessions: &SessionTable,
    style: Style,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut out = Page::new(style);
    if !sessions.rows.is_empty() {
        let table = session_table(sessions);
        out.table(&table);
        out.prose("", "  ", &session_table_legend(&table));
    }
    for words in session_remarks(sessions).into_iter().chain(session_table_foot(sessions)) {
        out.prose("", "  ", &words);
    }
    out.write(to)
}

/// A row for each session or device. Where there is no room the other one leaves first, and then figures, the last first.
pub(in crate::formats) fn session_table(sessions: &SessionTable) -> Table {
    let first = match sessions.rows_of {
        RowsOf::Sessions => ["session", "device"],
        RowsOf::Devices => ["device", "session"],
    };
    let figures = sessions.columns.iter().map(|column| format!("{} {}", column.name, column.unit));
    let headings: Vec<String> = first.map(str::to_owned).into_iter().chain(figures).collect();
    let figures_leave = (3..headings.len()).rev();
    let leaving: Vec<usize> = std::iter::once(1).chain(figures_leave).collect();
    let mut table = Table::new(&headings, &leaving).stacked().aligned(1, true);
    if headings.len() > 2 {
        table = table.aligned(headings.len() - 1, false);
    }
    table.add_all(sessions.rows.iter().map(|row| session_cells(row, sessions.rows_of)));
    table
}

fn session_cells(row: &Row, rows_of: RowsOf) -> Vec<String> {
    let device = row.device.clone().or_else(|| row.targets.first().cloned()).unwrap_or_else(|| "-".into());
    // What the user calls it says more than its id.
    let session = called(row);
    let first = match rows_of {
        RowsOf::Sessions => [session, device],
        RowsOf::Devices => [device, session],
    };
    let first = first.map(|text| visible(&text).replace('\n', "\\n"));
    first.into_iter().chain(row.figures.iter().map(|figure| figure_cell(figure.as_ref()))).collect()
}

fn figure_cell(figure: Option<&Figure>) -> String {
    match figure {
        Some(Figure { value: Some(value), interval, verdict, .. }) => {
            with_suspect_mark(supported(*value, *interval), *verdict)
        }
        Some(_) => "void".into(),
        None => "-".into(),
    }
}

/// What the marks in the table mean, as far as they are there.
pub(in crate::formats) fn session_table_legend(table: &Table) -> String {
    let marks = [
        (table.has("~"), "~ = rounded, since the interval is wide"),
        (table.has(SUSPECT_MARK) || table.has("void"), SUSPECT_MARK_MEANING),
    ];
    let marks = marks.into_iter().filter(|(is, _)| *is).map(|(_, words)| words);
    let all: Vec<&str> = std::iter::once("MB/s = 10^6 bytes/s; - = not measured").chain(marks).collect();
    all.join("; ") + "."
}

/// What a session that was judged for the table is called in it.
pub(in crate::formats) fn called(row: &Row) -> String {
    if row.tags.is_empty() { row.session.clone() } else { row.tags.join(" ") }
}

/// Of sessions that were judged for the table: what one measured where the column does not say it, the answer to what it was asked, how
/// it ended, and why it is not VALID.
pub(in crate::formats) fn session_remarks(sessions: &SessionTable) -> Vec<String> {
    let is_main = sessions.columns.iter().any(|column| column.name == Column::MAIN);
    let of = |(row, report): (&Row, &Report)| {
        let name = is_main.then(|| format!(": {}.", report.headline.name));
        let answer = report.answer.as_ref().map(|a| format!(", {}: {}", a.word.word(), a.sentence));
        let ended = ending(report).map(|words| format!(": {words}"));
        let qualified = report.verdict != Verdict::Valid;
        let why = qualified.then(|| format!(", {}: {}", report.verdict.word(), report.verdict_reason));
        let told = [name, answer, ended, why].into_iter().flatten();
        told.map(|words| visible(&format!("{}{words}", called(row))).replace('\n', "\\n")).collect::<Vec<_>>()
    };
    sessions.rows.iter().zip(&sessions.reports).flat_map(of).collect()
}

/// What is not in the table.
pub(in crate::formats) fn session_table_foot(sessions: &SessionTable) -> Vec<String> {
    let count =
        |n: u64, what: &str| format!("{} {what}{}", show_count(n as f64), if n == 1 { "" } else { "s" });
    let mut out = Vec::new();
    if sessions.rows.is_empty() {
        out.push(
            "No session that was asked for has results to stand side by side; `fathom bench` makes one."
                .into(),
        );
    }
    let others: Vec<String> = sessions
        .other_work
        .iter()
        .map(|o| format!("{} of {}", show_count(o.sessions as f64), o.title))
        .collect();
    let all: u64 = sessions.other_work.iter().map(|o| o.sessions).sum();
    if all > 0 {
        let words = visible(&others.join(", ")).replace('\n', "\\n");
        let advice = if sessions.is_job_chosen {
            "a longer part of its name after --job chooses one work"
        } else {
            "--job NAME chooses the work"
        };
        out.push(format!("Left out: {} of other work ({words}); {advice}.", count(all, "session")));
    }
    if sessions.older > 0 {
        out.push(format!("Left out: {} of the same devices.", count(sessions.older, "older session")));
    }
    if sessions.beyond_limit > 0 {
        let more = count(sessions.beyond_limit, "older session");
        out.push(format!("Not looked at: {more}; --limit 0 takes all."));
    }
    out
}

#[cfg(test)]
fn example() -> SessionTable {
    use model::session_table::OtherWork;
    let column = |name: &str, unit: &str| Column { name: name.into(), unit: unit.into() };
    let figure = |value: Option<f64>, verdict| {
        let interval = value.map(|v| [0.97 * v, 1.03 * v]);
        Some(Figure { name: String::new(), unit: String::new(), value, interval, verdict })
    };
    let row = |session: &str, tags: &[&str], device: Option<&str>, figures| Row {
        session: session.into(),
        started: Some("2026-11-21T16:12:26+01:00".into()),
        verdict: Some(Verdict::Suspect),
        device: device.map(str::to_owned),
        targets: vec!["/data".into()],
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        figures,
    };
    SessionTable {
        rows_of: RowsOf::Sessions,
        columns: vec![column("SEQ1M Q8T1 read", "MB/s"), column("RND4K Q1T1 read", "IOPS")],
        rows: vec![
            row("2", &["new"], Some("sda Disk"), vec![figure(Some(512.0), Verdict::Valid), None]),
            row("1", &[], None, vec![figure(Some(86.0), Verdict::Suspect), figure(None, Verdict::Invalid)]),
        ],
        other_work: vec![OtherWork { title: "bench six".into(), sessions: 3 }],
        beyond_limit: 2,
        ..SessionTable::default()
    }
}

#[test]
fn headings_stand_under_each_other_and_each_figure_has_its_mark() -> io::Result<()> {
    let mut bytes = Vec::new();
    write_session_table(&example(), Style::default(), &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let expected = "\
session  device    SEQ1M  RND4K
                    Q8T1   Q1T1
                    read   read
                    MB/s   IOPS
--------------------------------
new      sda Disk    512      -
1        /data     86.0*   void
MB/s = 10^6 bytes/s; - = not measured; * = suspect; void = withheld, a finding
  invalidates it.
Left out: 3 sessions of other work (3 of bench six); --job NAME chooses the
  work.
Not looked at: 2 older sessions; --limit 0 takes all.
";
    assert_eq!(text, expected);
    let chosen = session_table_foot(&SessionTable { is_job_chosen: true, ..example() });
    assert!(!chosen.iter().any(|line| line.contains("--job NAME")), "{chosen:?}");
    let by_device = SessionTable { rows_of: RowsOf::Devices, ..example() };
    assert!(
        session_table(&by_device).lines(80).0[5].starts_with("sda Disk  new"),
        "{:?}",
        session_table(&by_device).lines(80)
    );
    assert!(session_table(&example()).markdown().contains("| SEQ1M Q8T1 read MB/s |"));
    Ok(())
}

#[test]
fn a_session_that_was_judged_says_why_it_is_not_valid_and_one_that_is_says_nothing()
-> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/invalid.json");
    let invalid: Report = serde_json::from_str(golden)?;
    let valid: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let table = SessionTable { reports: vec![valid, invalid.clone()], ..example() };
    let told = session_remarks(&table);
    assert_eq!(told.last(), Some(&format!("1, INVALID: {}", invalid.verdict_reason)), "{told:?}");
    assert!(told.iter().all(|words| !words.starts_with("new, VALID")), "{told:?}");
    assert!(session_remarks(&example()).is_empty(), "of the index nothing more is known");
    Ok(())
}
