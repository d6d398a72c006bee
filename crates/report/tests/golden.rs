//! Golden reports: every format renders each of them as it was when somebody last looked.
//!
//! For: noticing that a byte of the JSON contract or a line of the text changed. Not for: whether a report is true.
//! The reports are the `.json` files themselves, made by hand; reading and writing one must give the same bytes, so a
//! renamed or removed field shows too. After a change that is meant, look at `FATHOM_BLESS=1 cargo test -p fathom-io-report`
//! and `git diff`.

use model::report::Report;
use report::{FORMATS, Format, Style};
use std::path::{Path, PathBuf};

type Tried = Result<(), Box<dyn std::error::Error>>;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn reports() -> Result<Vec<(PathBuf, Report)>, Box<dyn std::error::Error>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(golden())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            out.push((path.clone(), serde_json::from_slice(&std::fs::read(&path)?)?));
        }
    }
    Ok(out)
}

fn text(format: &Format, report: &Report, colour: bool) -> String {
    String::from_utf8_lossy(&(format.render)(report, Style { colour, ..Style::default() })).into_owned()
}

#[test]
fn every_format_renders_every_golden_report_as_before() -> Tried {
    let bless = std::env::var_os("FATHOM_BLESS").is_some();
    let reports = reports()?;
    assert!(reports.len() >= 3, "the golden reports are gone");
    for (path, report) in &reports {
        for format in FORMATS {
            let file = path.with_extension(format.extension);
            let now = text(format, report, false);
            if bless {
                std::fs::write(&file, &now)?;
                continue;
            }
            let before = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            assert!(
                now == before,
                "{} changed; where that is meant, run with FATHOM_BLESS=1 and look at git diff\n--- now\n{now}",
                file.display()
            );
        }
    }
    Ok(())
}

#[test]
fn text_fits_110_columns_and_has_colour_only_where_asked() -> Tried {
    let format = report::find("text").ok_or("there is no format text")?;
    for (path, report) in reports()? {
        let plain = text(format, &report, false);
        let widest = plain.lines().max_by_key(|l| l.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 110, "{}: {widest}", path.display());
        assert!(!plain.contains('\x1b') && plain.ends_with('\n'));
        assert!(text(format, &report, true).contains('\x1b'));
    }
    Ok(())
}

#[test]
fn the_course_is_shown_where_asked_and_fits_too() -> Tried {
    let format = report::find("text").ok_or("there is no format text")?;
    for (path, report) in reports()? {
        let style = Style { course: true, ..Style::default() };
        let shown = String::from_utf8_lossy(&(format.render)(&report, style)).into_owned();
        let has_one = report.results.iter().any(|r| !r.series.is_empty());
        assert_eq!(shown.contains("Course of "), has_one, "{}", path.display());
        assert!(shown.lines().all(|l| l.chars().count() <= 110), "{}", path.display());
        if has_one {
            let file = path.with_extension("course.txt");
            if std::env::var_os("FATHOM_BLESS").is_some() {
                std::fs::write(&file, &shown)?;
            }
            assert_eq!(shown, std::fs::read_to_string(&file)?, "{} changed", file.display());
        }
    }
    Ok(())
}

#[test]
fn a_format_is_found_by_its_name_and_by_extension() {
    for format in FORMATS {
        assert_eq!(report::find(format.name).map(|f| f.name), Some(format.name));
        let file = PathBuf::from(format!("a.b.{}", format.extension.to_uppercase()));
        assert_eq!(report::by_extension(&file).map(|f| f.name), Some(format.name));
    }
    assert!(report::find("pdf").is_none() && report::by_extension(Path::new("json")).is_none());
}

/// A golden file: a report, or a piece of one.
fn read(file: &str) -> std::io::Result<Vec<u8>> {
    std::fs::read(golden().join(file))
}

/// Renders a part of a text, from the line that begins with these words to the next empty line, and compares it.
fn part_is(report: &Report, ledger: bool, from: &str, file: &str) -> Tried {
    let format = report::find("text").ok_or("there is no format text")?;
    let bytes = (format.render)(report, Style { ledger, ..Style::default() });
    let all = String::from_utf8_lossy(&bytes).into_owned();
    let (_, behind) = all.split_once(&format!("\n{from}")).ok_or("it does not begin")?;
    let (part, _) = behind.split_once("\n\n").ok_or("it does not end")?;
    let (part, file) = (format!("{from}{part}\n"), golden().join(file));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(&file, &part)?;
    }
    assert_eq!(part, std::fs::read_to_string(&file)?);
    Ok(())
}

#[test]
fn the_ledger_is_shown_where_it_is_asked_for_and_only_there() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.results.truncate(1);
    for result in &mut report.results {
        result.ledger = serde_json::from_slice(&read("pieces/ledger.json")?)?;
    }
    part_is(&report, true, "ledger ", "pieces/ledger.txt")?;
    let format = report::find("text").ok_or("there is no format text")?;
    assert!(!text(format, &report, false).contains("issued by fathom"));
    Ok(())
}

#[test]
fn interfaces_stand_in_place_of_the_results_and_each_finding_once() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("invalid.json")?)?;
    report.api = serde_json::from_slice(&read("pieces/api.json")?)?;
    let twice = report.findings.iter().find(|f| f.outcome == model::finding::Outcome::Finding).cloned();
    report.findings.extend(twice);
    let (text_form, csv) = (report::find("text"), report::find("csv"));
    let shown = text(text_form.ok_or("there is no format text")?, &report, false);
    let (_, from_table) = shown.split_once("\ninterface ").ok_or("there is no table")?;
    let (part, _) = from_table.split_once("\nHost ").ok_or("it does not end")?;
    assert!(shown.lines().all(|l| l.chars().count() <= 110), "{shown}");
    let csv = text(csv.ok_or("there is no format csv")?, &report, false);
    for (now, file) in [(format!("interface {part}\n"), "pieces/api.txt"), (csv, "pieces/api.csv")] {
        let file = golden().join(file);
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(&file, &now)?;
        }
        assert_eq!(now, std::fs::read_to_string(&file)?);
    }
    Ok(())
}

#[test]
fn layers_stand_in_place_of_the_results() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.layers = serde_json::from_slice(&read("pieces/layers.json")?)?;
    part_is(&report, false, "layer ", "pieces/layers.txt")?;
    let format = report::find("text").ok_or("there is no format text")?;
    assert!(!text(format, &report, false).contains("p99.9"));
    Ok(())
}
