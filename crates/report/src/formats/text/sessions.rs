//! Several sessions as text: lists, tables and comparisons.
//!
//! On at least 60 columns, every row of a list has time, verdict, value and target. A short list
//! first makes room for whole targets: it leaves out the year, then the interval, then what was
//! measured, each only if fewer targets are then shortened. If the table is still too wide, it drops
//! columns in this order: what was measured, interval, tags, id. Ids that do not fit are
//! shortened to their ends. If even these do not fit, the year is left out.

use super::report::{show_fix, show_passed, with_outcome};
use super::sweep::show_best_settings;
use crate::page::{ELLIPSIS, Page};
use crate::view::comparison::{Compared, describe_source};
use crate::view::findings::{MAX_SHOWN, rest_summary, worst_of};
use crate::view::sessions::{
    ID_HEADING, list_foot, list_table, printable, session_remarks, session_table, session_table_foot,
    session_table_legend,
};
use crate::view::table::Table;
use crate::{Detail, Style};
use model::comparison::{Comparison, ComparisonAnswer, Comparisons, GateOutcome, SlowdownGate};
use model::finding::{Checked, Outcome, Severity};
use model::history::{Listing, SessionTable};
use model::report::CountsAs;
use std::io::{self, Write};

const ID_COLUMN: usize = 0;
const WHEN_COLUMN: usize = 1;
/// Length in bytes of `2026-`, the part of a time that a list can leave out.
const YEAR_BYTES: usize = 5;
const VERDICT_COLUMN: usize = 2;
const MEASURED_COLUMN: usize = 3;
const INTERVAL_COLUMN: usize = 5;
/// Minimum length of a shortened id in bytes.
const SHORT_ID: usize = 5;
/// Maximum number of rows of a short list. Only in a short list, ids are shortened and targets get more room.
const MAX_SHORT_LIST_ROWS: usize = 500;
/// Below this width a verdict with a remark, such as `SUSPECT, interrupted`, takes two lines.
const NARROW_WIDTH: usize = 80;

pub(super) fn write_list(listing: &Listing, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    if !listing.entries.is_empty() {
        let mut table = list_table(&listing.entries);
        if style.width < NARROW_WIDTH {
            table.edit(VERDICT_COLUMN, |verdict| verdict.replace(", ", ",\n"));
        }
        let is_short = listing.entries.len() <= MAX_SHORT_LIST_ROWS;
        if is_short {
            table = with_whole_targets(table, style.width);
        }
        let lacks_ids = |table: &Table| table.lines(style.width).1.contains(&ID_HEADING);
        let is_narrow = lacks_ids(&table);
        if is_narrow && is_short {
            let ids: Vec<&str> = listing.entries.iter().map(|entry| entry.id.as_str()).collect();
            table.edit(ID_COLUMN, |id| short_id(id, &ids));
            if lacks_ids(&table) {
                leave_out_year(&mut table);
            }
        }
        out.table(&table);
        if lacks_ids(&table) {
            out.paragraph("`COLUMNS=120 fathom list` shows the ids.");
        } else if is_narrow && is_short {
            out.paragraph("These are the ends of the ids; type one where an id is required.");
        }
    }
    for (entry, why) in listing.entries.iter().filter_map(|e| Some((e, e.problem.as_ref()?))) {
        out.prose(&format!("{}: ", printable(&entry.id)), "    ", &printable(why));
    }
    for note in list_foot(listing) {
        out.paragraph(&note);
    }
    out.write(to)
}

/// Leaves out the year, then the interval, then what was measured, until as few targets as possible
/// are shortened.
fn with_whole_targets(table: Table, width: usize) -> Table {
    let count_shortened = |table: &Table| {
        let (lines, left_out) = table.lines(width);
        let shortened = lines.iter().filter(|line| line.contains(ELLIPSIS)).count();
        if left_out.contains(&ID_HEADING) { usize::MAX } else { shortened }
    };
    let mut smaller = table.clone();
    let (mut best, mut fewest) = (table, usize::MAX);
    for column in [None, Some(WHEN_COLUMN), Some(INTERVAL_COLUMN), Some(MEASURED_COLUMN)] {
        match column {
            Some(WHEN_COLUMN) => leave_out_year(&mut smaller),
            Some(column) => smaller.edit(column, |_| String::new()),
            None => {}
        }
        let shortened = count_shortened(&smaller);
        if shortened < fewest {
            (best, fewest) = (smaller.clone(), shortened);
        }
        if shortened == 0 {
            break;
        }
    }
    best
}

fn leave_out_year(table: &mut Table) {
    table.edit(WHEN_COLUMN, |when| when.get(YEAR_BYTES..).unwrap_or(when).into());
}

/// Returns the shortest suffix of an id that no other listed id contains, but at least [`SHORT_ID`]
/// bytes.
fn short_id(id: &str, all: &[&str]) -> String {
    let starts = (0..=id.len().saturating_sub(SHORT_ID)).rev().filter(|at| id.is_char_boundary(*at));
    let mut ends = starts.map(|at| &id[at..]).filter(|end| !end.starts_with('-'));
    let is_unique = |end: &&str| all.iter().filter(|other| other.contains(*end)).count() == 1;
    ends.find(is_unique).unwrap_or(id).to_owned()
}

pub(super) fn write_session_table(
    sessions: &SessionTable,
    style: Style,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut out = Page::new(style);
    show_best_settings(&mut out, &sessions.best_settings);
    if !sessions.rows.is_empty() {
        let table = session_table(sessions);
        out.table(&table);
        out.paragraph(&session_table_legend(&table));
    }
    for note in session_remarks(sessions).into_iter().chain(session_table_foot(sessions)) {
        out.paragraph(&note);
    }
    out.write(to)
}

/// The hint about hidden findings. It names no session, because a comparison has several.
const TO_SEE_ALL: &str = "--verbose shows all";

pub(super) fn write_comparison(comparison: &Comparison, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write_compared(&Compared::two_sides(comparison, style.detail == Detail::All), style, to)
}

pub(super) fn write_several(comparisons: &Comparisons, style: Style, to: &mut dyn Write) -> io::Result<()> {
    write_compared(&Compared::several_sides(comparisons, style.detail == Detail::All), style, to)
}

fn write_compared(compared: &Compared, style: Style, to: &mut dyn Write) -> io::Result<()> {
    let mut out = Page::new(style);
    let mut tables = [Some(&compared.table), compared.narrow_table.as_ref()].into_iter().flatten();
    let rows = tables.find(|table| table.is_table_in(style.width)).unwrap_or(&compared.table);
    show_gate(&mut out, compared.gate);
    if style.detail == Detail::Brief {
        out.table(rows);
        return out.write(to);
    }
    compared.answers().for_each(|answer| show_answer(&mut out, answer));
    out.line("");
    if !rows.is_empty() {
        out.table(rows);
        let legend = compared.legend(&rows.shown_headings(style.width));
        if !legend.is_empty() {
            out.legend(&legend);
        }
        if let Some(note) = &compared.hidden {
            out.paragraph(note);
        }
    }
    compared.left_out().iter().for_each(|sentence| out.note(sentence));
    out.line("");
    show_findings(&mut out, compared, style.detail == Detail::All);
    for (name, session) in
        compared.sides().flat_map(|(name, side)| side.sessions.iter().map(move |s| (name, s)))
    {
        out.field(name, &describe_source(session));
    }
    out.write(to)
}

/// Prints the outcome of `--fail-if-slower`, if there is one.
fn show_gate(out: &mut Page, gate: Option<&SlowdownGate>) {
    let Some(gate) = gate else { return };
    let code = match gate.outcome {
        GateOutcome::Passed => "1;32",
        GateOutcome::Undecided => "1;33",
        GateOutcome::Invalid | GateOutcome::Failed => "1;31",
    };
    let word = out.paint(gate.outcome.word().word(), code);
    let remark = gate.counts_as.map_or("", CountsAs::remark);
    out.prose(&format!("{word}{remark}  "), "  ", &gate.sentence);
}

fn show_answer(out: &mut Page, comparison: &Comparison) {
    let code = match comparison.answer {
        ComparisonAnswer::Faster | ComparisonAnswer::Same => "1;32",
        ComparisonAnswer::NoDifferenceSeen | ComparisonAnswer::CannotTell => "1;33",
        ComparisonAnswer::Slower | ComparisonAnswer::Incomparable | ComparisonAnswer::Invalid => "1;31",
    };
    let word = out.paint(comparison.answer.word(), code);
    out.prose(&format!("{word}  "), "  ", &comparison.sentence);
}

/// Prints all findings, or the worst ones and the number of the others.
fn show_findings(out: &mut Page, compared: &Compared, all: bool) {
    let Compared { checks, results, .. } = compared;
    if !all {
        let first = worst_of(checks.clone());
        list_findings(out, first.iter(), compared);
        if let Some(rest) = rest_summary(checks, MAX_SHOWN) {
            out.paragraph(&format!("{rest}: {TO_SEE_ALL}"));
        }
        return;
    }
    list_findings(out, with_outcome(checks, Outcome::Finding), compared);
    if with_outcome(checks, Outcome::NotChecked).next().is_some() {
        out.line("Not checked");
    }
    for finding in with_outcome(checks, Outcome::NotChecked) {
        let name = format!("{} {}{}", finding.id, finding.name, covered_results(finding, *results));
        out.prose("  ", "      ", &format!("{name}: {}", finding.sentence));
    }
    show_passed(out, checks);
}

fn list_findings<'f>(out: &mut Page, findings: impl Iterator<Item = &'f Checked>, compared: &Compared) {
    let mut findings = findings.filter_map(|f| Some((f, compared.finding_text(f)?))).peekable();
    if findings.peek().is_some() {
        out.line("Findings");
    }
    for (finding, (sentence, fix)) in findings {
        let severity = finding.severity.unwrap_or(Severity::Note);
        let accepted = if finding.accepted { ", accepted" } else { "" };
        let mark =
            out.paint(&format!("{} {} ({}{accepted})", finding.id, finding.name, severity.effect()), "1");
        let suffix = covered_results(finding, compared.results);
        out.prose("  ", "      ", &format!("{mark}{suffix}: {sentence}"));
        show_fix(out, fix);
    }
}

/// Names the results of a finding, unless the finding covers all results.
fn covered_results(finding: &Checked, results: usize) -> String {
    let all = finding.about.is_empty() || finding.about.len() >= results;
    if all { String::new() } else { format!(" [{}]", finding.about.join(", ")) }
}

#[cfg(test)]
fn example() -> SessionTable {
    use model::finding::CheckId;
    use model::history::{Column, Figure, FindingMark, OtherWork, RowsOf, SessionRow};
    use model::report::Verdict;
    let column = |name: &str, unit: &str| Column { name: name.into(), unit: unit.into() };
    let figure = |value: Option<f64>, verdict| {
        let interval = value.map(|v| [0.97 * v, 1.03 * v]);
        Some(Figure { name: String::new(), unit: String::new(), value, interval, verdict, mb_per_s: None })
    };
    let row = |session: &str, tags: &[&str], device: Option<&str>, figures| SessionRow {
        session: session.into(),
        started: Some("2026-11-21T16:12:26+01:00".into()),
        verdict: Some(Verdict::Suspect),
        device: device.map(str::to_owned),
        device_bytes: Some(1 << 40),
        findings: vec![FindingMark { id: CheckId::D01, severity: Some(Severity::Biases) }],
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
fn headings_are_stacked_and_each_figure_has_its_mark() -> io::Result<()> {
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
MB/s = 10^6 bytes/s; - = not measured; * = suspect; void = withheld, because a
  finding invalidates it.
Left out: 3 sessions of other jobs (3 of bench six); --job NAME selects a job.
Not read: 2 older sessions; --limit 0 reads all.
";
    assert_eq!(text, expected);
    let chosen = session_table_foot(&SessionTable { is_job_chosen: true, ..example() });
    assert!(!chosen.iter().any(|line| line.contains("--job NAME")), "{chosen:?}");
    let by_device = SessionTable { rows_of: model::history::RowsOf::Devices, ..example() };
    assert!(
        session_table(&by_device).lines(80).0[5].starts_with("sda Disk [1]  new         1 TiB"),
        "{:?}",
        session_table(&by_device).lines(80)
    );
    assert_eq!(
        session_table_foot(&by_device)[0],
        "[1] D01 biases; `fathom explain D01` describes the check."
    );
    assert!(session_table(&example()).markdown().contains("| SEQ1M Q8T1 read MB/s |"));
    Ok(())
}

#[cfg(test)]
use model::report::Report;

#[test]
fn a_judged_session_has_a_reason_only_if_it_is_not_valid() -> Result<(), Box<dyn std::error::Error>> {
    let golden = include_str!("../../../tests/golden/invalid.json");
    let invalid: Report = serde_json::from_str(golden)?;
    let valid: Report = serde_json::from_str(include_str!("../../../tests/golden/valid.json"))?;
    let table = SessionTable { reports: vec![valid, invalid.clone()], ..example() };
    let remarks = session_remarks(&table);
    assert_eq!(remarks.last(), Some(&format!("1, INVALID: {}", invalid.verdict_reason)), "{remarks:?}");
    assert!(remarks.iter().all(|remark| !remark.starts_with("new, VALID")), "{remarks:?}");
    assert!(session_remarks(&example()).is_empty(), "sessions read from the index have no remarks");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::entry;
    use crate::view::sessions::MUCH_BYTES;
    use model::history::Entry;
    use model::report::{Annotations, Ending};

    fn listing(entries: Vec<Entry>, matching: u64, bytes: u64) -> Listing {
        Listing { entries, matching, sessions: 1, bytes }
    }

    fn text(listing: &Listing) -> io::Result<String> {
        let mut bytes = Vec::new();
        write_list(listing, Style { width: 110, ..Style::default() }, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn the_table_has_a_line_per_entry_and_a_column_of_tags_if_any() -> io::Result<()> {
        let mut all = vec![entry("20261121-161226-1"), entry("2")];
        let expected = "\
id                 when              verdict  measured             value  ±95 %  target
---------------------------------------------------------------------------------------
20261121-161226-1  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS  5.0 %  /a and 1 more
2                  2026-11-21 16:12  SUSPECT  4K random read  2,000 IOPS  5.0 %  /a and 1 more
";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('-', "");
        let shown = text(&listing(all.clone(), 2, 0))?;
        assert_eq!(squeezed(&shown), squeezed(expected));
        let columns: Vec<Option<usize>> = shown.lines().map(|l| l.find("/a and 1 more")).collect();
        assert_eq!(columns[2], columns[3]);
        all[1].annotations = Annotations { tags: vec!["new".into()], notes: Vec::new() };
        let shown = text(&listing(all, 2, 0))?;
        assert!(shown.contains("tags") && shown.contains("/a and 1 more  new\n"), "{shown}");
        Ok(())
    }

    #[test]
    fn an_unknown_value_differs_from_zero() {
        let mut cut = Entry { ending: Some(Ending::Cut), ..Entry::default() };
        assert_eq!(
            list_table(&[cut.clone()]).rows[0][1..7],
            ["-", "cut", "-", "-", "", "-"].map(str::to_owned)
        );
        cut.running = true;
        assert_eq!(cut.status(), "running");
        assert_eq!(Entry::default().status(), "unreadable");
        let mut void = entry("x");
        if let Some(headline) = &mut void.headline {
            headline.value = None;
        }
        void.ending = Some(Ending::Interrupted);
        assert_eq!(
            (list_table(&[void.clone()]).rows[0][4].as_str(), void.status().as_str()),
            ("no number", "SUSPECT, interrupted")
        );
    }

    #[test]
    fn from_60_columns_every_row_has_time_verdict_value_and_target() -> io::Result<()> {
        let mut all = vec![entry("20261121-161226-12345"), entry("20261121-161226-12346")];
        all[0].targets = vec!["/var/lib/postgresql/16/main/base".into()];
        all[1].targets = vec!["/dev/nvme0n1".into()];
        all[1].ending = Some(Ending::Interrupted);
        if let Some(headline) = &mut all[1].headline {
            headline.value = Some(1_234_567.0);
        }
        for tags in [vec![], vec!["a-long-tag".to_owned(), "another".into()]] {
            all[0].annotations = Annotations { tags, notes: Vec::new() };
            let listing = listing(all.clone(), 2, 0);
            for width in 60..=140 {
                let mut bytes = Vec::new();
                write_list(&listing, Style { width, ..Style::default() }, &mut bytes)?;
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let head = shown.lines().next().unwrap_or_default();
                for heading in ["id", "when", "verdict", "value", "target"] {
                    assert!(head.contains(heading), "{heading} at {width}\n{shown}");
                }
                for value in [
                    "12345",
                    "12346",
                    "11-21 16:12",
                    "SUSPECT",
                    "interrupted",
                    "2,000 IOPS",
                    "1,234,567 IOPS",
                    "/va",
                ] {
                    assert!(shown.contains(value), "{value} at {width}\n{shown}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_target_is_whole_if_the_year_and_the_interval_make_room() -> io::Result<()> {
        let mut one = entry("20261121-161226-12345");
        one.targets = vec!["/srv/data/volume-1".into()];
        let listing = listing(vec![one], 1, 0);
        let at = |width| -> io::Result<String> {
            let mut bytes = Vec::new();
            write_list(&listing, Style { width, ..Style::default() }, &mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        for (width, when) in [(80, " 11-21 16:12 "), (120, " 2026-11-21 16:12 ")] {
            let shown = at(width)?;
            assert!(shown.contains("20261121-161226-12345") && shown.contains(when), "{shown}");
            assert!(shown.contains("  /srv/data/volume-1\n"), "{shown}");
        }
        Ok(())
    }

    #[test]
    fn control_characters_of_a_file_do_not_reach_the_terminal() -> io::Result<()> {
        let mut evil = entry("x");
        evil.targets = vec!["/a\u{1b}[2J".into()];
        evil.problem = Some("bad\u{7}".into());
        let shown = text(&listing(vec![evil], 1, 0))?;
        assert!(!shown.contains(['\u{1b}', '\u{7}']) && shown.contains("bad"), "{shown}");
        Ok(())
    }

    #[test]
    fn the_foot_counts_hidden_sessions_and_their_disk_usage() {
        assert_eq!(list_foot(&listing(vec![entry("x")], 1, MUCH_BYTES)), [""; 0]);
        assert!(list_foot(&listing(vec![entry("x")], 1, MUCH_BYTES + 1))[0].contains("fathom delete"));
        assert_eq!(
            list_foot(&listing(vec![entry("x")], 1234, 0)),
            ["The newest 1 of 1,234 sessions; --limit 0 shows all."]
        );
        assert_eq!(list_foot(&listing(Vec::new(), 0, 0)), ["No session matches (1 in all)."]);
        assert!(list_foot(&Listing::default())[0].contains("fathom bench"));
    }
}
