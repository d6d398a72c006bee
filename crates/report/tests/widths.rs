//! Widths: no line of text is wider than the terminal, for every kind of report at all usual widths.

use model::comparison::{Comparison, Comparisons, Other, side_name};
use model::finding::{AnswerGroup, CheckId, CheckPage, Diagnosis, DoctorAnswer, FORMAT, Pages, Severity};
use model::history::{Column, Entry, Figure, Listing, OtherWork, RowsOf, SessionRow, SessionTable};
use model::report::{Ending, Headline, Report, Verdict};
use model::study::Studied;
use report::{Detail, ReportKind, Style, TEXT};
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;

type Tried = Result<(), Box<dyn std::error::Error>>;

const WIDTHS: [usize; 7] = [20, 40, 60, 80, 100, 120, 200];

fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> Result<T, Box<dyn std::error::Error>> {
    Ok(serde_json::from_slice(&std::fs::read(tests(name))?)?)
}

/// Removes colours.
fn seen(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[track_caller]
fn fits<K: ReportKind + ?Sized>(what: &str, report: &K) {
    let is_pages = what == "pages";
    for width in WIDTHS {
        for detail in [Detail::Brief, Detail::Usual, Detail::All] {
            for colour in [false, true] {
                let style = Style { width, detail, colour, ledger: true, time_series: true };
                let text =
                    String::from_utf8(TEXT.bytes(report, style).unwrap_or_default()).unwrap_or_default();
                assert!(!text.is_empty(), "{what} at {width}");
                // A command line is not broken, and code between backticks is not shortened: it could not be pasted.
                let is_command = |line: &String| is_pages && line.starts_with("      fathom ");
                let plain = text.lines().map(seen).collect::<Vec<_>>().join("\n");
                let code: Vec<&str> =
                    plain.split('`').skip(1).step_by(2).flat_map(str::split_whitespace).collect();
                let is_code_word = |line: &String| {
                    code.contains(&line.trim().trim_matches(|c: char| c.is_ascii_punctuation()))
                };
                let wide = text
                    .lines()
                    .map(seen)
                    .find(|line| line.width() > width && !is_command(line) && !is_code_word(line));
                assert_eq!(wide, None, "{what} at {width}, {detail:?}\n{text}");
            }
        }
    }
}

/// Returns a report with unusual names, as users choose them.
fn with_odd_names(mut report: Report) -> Report {
    for (at, result) in report.results.iter_mut().enumerate() {
        result.name = format!("{}{}{at}", "とても長い名前".repeat(9), "x".repeat(90));
    }
    report.session = Some(format!("/{}/s.fathom", "deep/".repeat(60)));
    report.notes.push("w".repeat(300));
    report
}

#[test]
fn reports_of_every_study_fit() -> Tried {
    let plain: Report = read("golden/valid.json")?;
    let mut all: Vec<(String, Report)> = Vec::new();
    for name in ["valid", "invalid", "cut"] {
        all.push((name.into(), read(&format!("golden/{name}.json"))?));
    }
    let studies = [
        ("layers", Studied::Layers(read("golden/pieces/layers.json")?)),
        ("sweep", Studied::Sweep(read("golden/pieces/sweep.json")?)),
        ("api", Studied::Interfaces(read("golden/pieces/api.json")?)),
        ("score", Studied::Profile(read("golden/pieces/score.json")?)),
        ("bars", Studied::Profile(read("golden/pieces/bars.json")?)),
        ("limit", Studied::Limit(read("golden/pieces/limit.json")?)),
    ];
    for (name, study) in studies {
        all.push((name.into(), Report { study, ..plain.clone() }));
    }
    let mut ledger = plain.clone();
    for result in &mut ledger.results {
        result.ledger = read("golden/pieces/ledger.json")?;
    }
    all.push(("ledger".into(), ledger));
    for (name, report) in all {
        fits(&name, &report);
        fits(&format!("{name} with odd names"), &with_odd_names(report));
    }
    Ok(())
}

#[test]
fn comparisons_fit() -> Tried {
    for name in ["cannot_tell", "incomparable", "slower"] {
        fits(name, &read::<Comparison>(&format!("comparison/{name}.json"))?);
    }
    let mut others = Vec::new();
    for (at, name) in ["cannot_tell", "incomparable", "slower", "slower"].into_iter().enumerate() {
        let comparison: Comparison = read(&format!("comparison/{name}.json"))?;
        others.push(Other { name: side_name(at + 1), comparison });
        let first = &others[0].comparison;
        let all =
            Comparisons { fathom: first.fathom.clone(), gate: first.gate.clone(), others: others.clone() };
        fits(&format!("{} sides", at + 2), &all);
    }
    Ok(())
}

#[test]
fn tables_of_sessions_fit() {
    let figure = |value: f64, verdict| Figure {
        name: "RND4K Q32T1 read".into(),
        unit: "IOPS".into(),
        value: Some(value),
        interval: Some([0.8 * value, 1.2 * value]),
        verdict,
        mb_per_s: None,
    };
    let column = |n: usize| Column { name: format!("RND4K Q{n}T1 read"), unit: "IOPS".into() };
    for rows_of in [RowsOf::Sessions, RowsOf::Devices] {
        let row = |device: &str| SessionRow {
            session: "20261121-161226-12345".into(),
            started: None,
            verdict: Some(Verdict::Suspect),
            device: Some(device.into()),
            targets: vec!["/a".into()],
            device_bytes: Some(1 << 40),
            figures: (0..9).map(|n| (n != 3).then(|| figure(123_456.0, Verdict::Suspect))).collect(),
            ..SessionRow::default()
        };
        let table = SessionTable {
            rows_of,
            columns: (0..9).map(column).collect(),
            rows: vec![row("nvme0n1 Samsung SSD 970 EVO Plus 1TB"), row(&"とても長い名前".repeat(9))],
            other_work: vec![OtherWork { title: "bench six".into(), sessions: 3 }],
            older: 1,
            beyond_limit: 1234,
            ..SessionTable::default()
        };
        fits("a table of sessions", &table);
    }
    fits("an empty table of sessions", &SessionTable::default());
}

#[test]
fn lists_pages_and_diagnoses_fit() -> Tried {
    let entry = |id: &str| Entry {
        id: id.into(),
        started: Some("2026-11-21T16:12:26+01:00".into()),
        verdict: Some(Verdict::Suspect),
        headline: Some(Headline {
            name: "4K random read, depth 32, page cache".into(),
            value: Some(1_234_567.0),
            unit: "IOPS".into(),
            interval: Some([1_200_000.0, 1_260_000.0]),
            accepted: Vec::new(),
        }),
        ending: Some(Ending::Interrupted),
        targets: vec!["/a/long/path/to/some/place".into(), "/b".into()],
        problem: Some("its words cannot be read".into()),
        ..Entry::default()
    };
    let entries = vec![entry("20261121-161226-1"), entry(&"i".repeat(130))];
    fits("list", &Listing { entries, matching: 9, sessions: 10, bytes: 1 << 40 });
    let id: CheckId = "A01".parse()?;
    let page = CheckPage {
        id,
        name: "CACHE_SERVED",
        group: "Was it the storage at all?",
        belief: "the bytes came from the device and not from the memory of this machine",
        reads: "counters of the device before and after",
        formula: "device bytes / bytes < 0.99".into(),
        provoke: "fathom run --rw randread --bs 4k --depth 1 --cache buffered --runs 3 --time 1s FILE",
        advice: "Type --cache direct.".into(),
        accept: Some("--accept A01".into()),
    };
    for all in [false, true] {
        fits("pages", &Pages { pages: vec![page.clone(), page.clone()], all });
    }
    let report: Report = read("golden/valid.json")?;
    let checks = vec![
        DoctorAnswer::ok("direct I/O", "it works"),
        DoctorAnswer::unknown("clock of the CPUs", "the kernel shows no frequency of the CPUs"),
        DoctorAnswer::finding("holes", Severity::Invalidates, "most of it was never written: ".repeat(9))
            .with_fix("name the directory instead")
            .check(id),
    ];
    let diagnosis = Diagnosis {
        format: FORMAT,
        target: "/data".into(),
        chain: "/data (ext4 at /data, rw,relatime) > nvme0n1p2 > nvme0n1 (nvme)".into(),
        watched_ms: 1000,
        groups: vec![AnswerGroup { heading: "The target".into(), answers: checks }],
        machine: report.machine,
    };
    fits("diagnosis", &diagnosis);
    Ok(())
}

#[test]
fn dropped_columns_are_named_and_return_with_more_room() -> Tried {
    let report: Report = read("golden/valid.json")?;
    let at = |width| -> Result<String, Box<dyn std::error::Error>> {
        Ok(String::from_utf8(TEXT.bytes(&report, Style { width, detail: Detail::All, ..Style::default() })?)?)
    };
    let (narrow, wide) = (at(60)?, at(200)?);
    assert!(narrow.contains("Columns that do not fit: ") && !narrow.contains("31.7"), "{narrow}");
    assert!(!wide.contains("Columns that do not fit") && wide.contains("31.7"), "{wide}");
    assert!(at(40)?.contains("\n    verdict  valid\n"), "one value a line:\n{}", at(40)?);
    Ok(())
}
