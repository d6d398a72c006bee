//! Several sessions: the list of sessions, and the table of their results.

use crate::view::findings::headline_value;
use crate::view::numbers::{SUSPECT_MARK, SUSPECT_MARK_MEANING, with_supported_digits, with_suspect_mark};
use crate::view::report::describe_ending;
use crate::view::table::{Columns, Table, or_dash};
use model::distinct;
use model::finding::Severity;
use model::history::{Column, Entry, Figure, FindingMark, Listing, RowsOf, SessionRow, SessionTable};
use model::name;
use model::name::visible;
use model::report::{Headline, Report, Verdict};
use model::units::{GIB, show_bytes, show_count, show_counted, show_share};

/// If the session files take more space than this, the list reports it.
pub(crate) const MUCH_BYTES: u64 = GIB;

/// Heading of the column with the ids of sessions.
pub(crate) const ID_HEADING: &str = "id";
/// Index of the column with the targets in the list of sessions.
const TARGET_COLUMN: usize = 6;

/// Minimum width, in columns of the terminal, to which a target is cut.
const MIN_TARGET_WIDTH: usize = 10;

/// Returns a row for each session, with a column of tags if a session has tags.
pub(crate) fn list_table(entries: &[Entry]) -> Table {
    let text_or_dash = |text: Option<String>| match text {
        Some(text) if !text.is_empty() => printable(&text),
        _ => "-".into(),
    };
    let measured =
        |entry: &Entry| entry.headline.as_ref().map(|h| h.name.clone()).or_else(|| entry.title.clone());
    let mut columns = Columns::new(entries)
        .text(ID_HEADING, |entry| printable(&entry.id))
        .text("when", |entry| text_or_dash(entry.started.as_deref().map(day_and_time)))
        .text("verdict", |entry| entry.status())
        .text("measured", |entry| text_or_dash(measured(entry)))
        .value("value", |entry| text_or_dash(entry.headline.as_ref().map(headline_value)))
        .value("±95 %", |entry| entry.headline.as_ref().and_then(half_interval))
        // The value may be that of the first target alone.
        .text("target", |entry| match entry.targets.as_slice() {
            [first, others @ ..] if !others.is_empty() => {
                format!("{} and {} more", printable(first), others.len())
            }
            targets => text_or_dash(targets.first().cloned()),
        });
    if entries.iter().any(|entry| !entry.annotations.tags.is_empty()) {
        columns = columns.text("tags", |entry| printable(&entry.annotations.tags.join(" ")));
    }
    columns.table(&["measured", "±95 %", "tags", ID_HEADING]).cut_to(TARGET_COLUMN, MIN_TARGET_WIDTH)
}

/// Returns day, hour and minute in the local time of the measurement.
pub(crate) fn day_and_time(started: &str) -> String {
    started.chars().take(16).collect::<String>().replace('T', " ")
}

/// Returns half of the 95 % interval in percent of the value: `4.4 %`. `None` without an interval or
/// a positive value.
fn half_interval(headline: &Headline) -> Option<String> {
    let value = headline.value.filter(|v| *v > 0.0)?;
    headline.interval.map(|[low, high]| show_share((high - low) / 2.0 / value))
}

/// Escapes control characters, which could move the cursor or end a row.
pub(crate) fn printable(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// Returns how many sessions the list leaves out, and the disk usage of all sessions if it is large.
pub(crate) fn list_foot(listing: &Listing) -> Vec<String> {
    let Listing { entries, matching, sessions, bytes } = listing;
    let mut out = Vec::new();
    if *sessions == 0 {
        out.push("There are no sessions yet; `fathom bench` makes one.".into());
    } else if *matching == 0 {
        out.push(format!("No session matches ({} in all).", show_count(*sessions as f64)));
    } else if *matching > entries.len() as u64 {
        out.push(format!(
            "The newest {} of {} sessions; --limit 0 shows all.",
            show_count(entries.len() as f64),
            show_count(*matching as f64)
        ));
    }
    if *bytes > MUCH_BYTES {
        out.push(format!(
            "The session files take {}. fathom keeps a session until `fathom delete ID` removes it.",
            show_bytes(*bytes)
        ));
    }
    out
}

/// Returns a row for each session or device. If the width is too small, the columns between the first and the figures are dropped first,
/// then the figures, the last one first. The first column and the first figure remain.
pub(crate) fn session_table(sessions: &SessionTable) -> Table {
    let is_devices = sessions.rows_of == RowsOf::Devices;
    let first = if is_devices { &["device", "session", "capacity"][..] } else { &["session", "device"] };
    let figures = sessions.columns.iter().map(|column| format!("{} {}", column.name, column.unit));
    let headings: Vec<String> = first.iter().map(|name| (*name).to_owned()).chain(figures).collect();
    let later_figures = (first.len() + 1..headings.len()).rev();
    let drop_order: Vec<usize> = (1..first.len()).chain(later_figures).collect();
    let mut table = Table::new(&headings, &drop_order).stacked().aligned(1, true);
    if headings.len() > 2 {
        table = table.aligned(headings.len() - 1, false);
    }
    let footnotes = footnotes(sessions);
    for row in &sessions.rows {
        // Paths distinguish several targets on one device.
        let is_shared =
            is_devices && sessions.rows.iter().filter(|other| other.device == row.device).count() > 1;
        let device = row.device.clone().filter(|_| !is_shared);
        let device = device.or_else(|| row.targets.first().cloned()).unwrap_or_else(|| "-".into());
        let session = session_name(row);
        let first = if is_devices {
            let note = footnotes.iter().position(|marks| **marks == row.findings);
            let note = note.map_or_else(String::new, |at| format!(" [{}]", at + 1));
            vec![format!("{device}{note}"), session, or_dash(row.device_bytes, show_bytes)]
        } else {
            vec![session, device]
        };
        let first = first.into_iter().map(|text| printable(&text));
        table.add(first.chain(row.figures.iter().map(|figure| figure_cell(figure.as_ref()))));
    }
    table
}

/// Returns the findings of devices, each combination once, in the order of the rows.
fn footnotes(sessions: &SessionTable) -> Vec<&Vec<FindingMark>> {
    let rows =
        sessions.rows.iter().filter(|row| sessions.rows_of == RowsOf::Devices && !row.findings.is_empty());
    distinct(rows.map(|row| &row.findings))
}

fn figure_cell(figure: Option<&Figure>) -> String {
    match figure {
        Some(Figure { value: Some(value), interval, verdict, .. }) => {
            with_suspect_mark(with_supported_digits(*value, *interval), *verdict)
        }
        Some(_) => "void".into(),
        None => "-".into(),
    }
}

/// Explains the unit, the dash, and the marks that the table contains.
pub(crate) fn session_table_legend(table: &Table) -> String {
    let marks = [
        (table.has("~"), "~ = rounded, since the interval is wide"),
        (table.has(SUSPECT_MARK) || table.has("void"), SUSPECT_MARK_MEANING),
    ];
    let marks = marks.into_iter().filter(|(is, _)| *is).map(|(_, meaning)| meaning);
    let all: Vec<&str> = std::iter::once("MB/s = 10^6 bytes/s; - = not measured").chain(marks).collect();
    all.join("; ") + "."
}

/// Returns the tags of a session, or its id if it has none.
pub(crate) fn session_name(row: &SessionRow) -> String {
    if row.tags.is_empty() { row.session.clone() } else { row.tags.join(" ") }
}

/// Returns remarks on sessions that were judged for the table: what a session measured if the column does not name it, the answer to its
/// question, how it ended, and why it is not VALID.
pub(crate) fn session_remarks(sessions: &SessionTable) -> Vec<String> {
    let is_main = sessions.columns.iter().any(|column| column.name == Column::MAIN);
    let remark = |(row, report): (&SessionRow, &Report)| {
        let name = is_main.then(|| format!(": {}.", report.headline.name));
        let answer = report.answer.as_ref().map(|a| format!(", {}: {}", a.word.word(), a.sentence));
        let ended = describe_ending(report).map(|text| format!(": {text}"));
        let is_doubtful = report.verdict != Verdict::Valid;
        let why = is_doubtful.then(|| format!(", {}: {}", report.verdict.word(), report.verdict_reason));
        let parts = [name, answer, ended, why].into_iter().flatten();
        parts.map(|text| printable(&format!("{}{text}", session_name(row)))).collect::<Vec<_>>()
    };
    sessions.rows.iter().zip(&sessions.reports).flat_map(remark).collect()
}

/// Returns the footnotes, and what the table leaves out.
pub(crate) fn session_table_foot(sessions: &SessionTable) -> Vec<String> {
    let mut out = Vec::new();
    if sessions.rows.is_empty() {
        out.push("No matching session has results to compare; `fathom bench` makes one.".into());
    }
    for (at, marks) in footnotes(sessions).into_iter().enumerate() {
        let effect =
            |mark: &FindingMark| format!("{} {}", mark.id, mark.severity.map_or("", Severity::effect));
        let effects = marks.iter().map(effect).collect::<Vec<_>>().join(", ");
        let first = marks.first().map_or_else(String::new, |mark| mark.id.to_string());
        out.push(format!("[{}] {effects}; `fathom explain {first}` describes the check.", at + 1));
    }
    let others: Vec<String> = sessions
        .other_work
        .iter()
        .map(|o| format!("{} of {}", show_count(o.sessions as f64), o.title))
        .collect();
    let all: u64 = sessions.other_work.iter().map(|o| o.sessions).sum();
    if all > 0 {
        let jobs = printable(&others.join(", "));
        let advice = if sessions.is_job_chosen {
            "type more of the name of a job after --job to select it"
        } else {
            "--job NAME selects a job"
        };
        out.push(format!("Left out: {} of other jobs ({jobs}); {advice}.", show_counted(all, "session")));
    }
    if sessions.older > 0 {
        out.push(format!("Left out: {} of the same devices.", show_counted(sessions.older, "older session")));
    }
    if sessions.beyond_limit > 0 {
        let more = show_counted(sessions.beyond_limit, "older session");
        out.push(format!("Not read: {more}; --limit 0 reads all."));
    }
    if let (RowsOf::Devices, [first, second, ..]) = (sessions.rows_of, sessions.rows.as_slice()) {
        out.push(format!("Is a difference certain? {}.", advise_comparison(first, second)));
    }
    out
}

/// Names the command that compares two sessions. Sessions without repeated runs cannot be compared,
/// so their targets are measured again, in alternation.
fn advise_comparison(first: &SessionRow, second: &SessionRow) -> String {
    let is_unrepeated = |row: &SessionRow| {
        let mut figures = row.figures.iter().flatten().peekable();
        figures.peek().is_some() && figures.all(|figure| figure.interval.is_none())
    };
    match (first.targets.as_slice(), second.targets.as_slice()) {
        ([a], [b]) if a != b && is_unrepeated(first) && is_unrepeated(second) => {
            format!(
                "The runs were not repeated; type `fathom bench --compare {} {}`",
                name::quoted(a),
                name::quoted(b)
            )
        }
        _ => format!("Type `fathom compare {} {}`", first.session, second.session),
    }
}

#[test]
fn two_devices_are_compared_by_their_sessions_only_if_runs_were_repeated() {
    let row = |session: &str, target: &str, interval| SessionRow {
        session: session.into(),
        targets: vec![target.into()],
        figures: vec![
            None,
            Some(Figure {
                name: "reads".into(),
                unit: "IOPS".into(),
                value: Some(1.5),
                interval,
                verdict: Verdict::Valid,
                mb_per_s: None,
            }),
        ],
        ..SessionRow::default()
    };
    let repeated = [row("1", "/a", Some([1.0, 2.0])), row("2", "/b b", Some([1.0, 2.0]))];
    assert_eq!(advise_comparison(&repeated[0], &repeated[1]), "Type `fathom compare 1 2`");
    let once = [row("1", "/a", None), row("2", "/b b", None)];
    let advice = "The runs were not repeated; type `fathom bench --compare /a '/b b'`";
    assert_eq!(advise_comparison(&once[0], &once[1]), advice);
    let sweeps = once.clone().map(|row| SessionRow { figures: Vec::new(), ..row });
    assert_eq!(advise_comparison(&sweeps[0], &sweeps[1]), "Type `fathom compare 1 2`");
    // The same target cannot be compared with itself in turns.
    assert_eq!(advise_comparison(&once[0], &once[0]), "Type `fathom compare 1 1`");
}
