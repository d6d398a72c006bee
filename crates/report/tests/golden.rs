//! Golden reports: compares the output of every format with the files of earlier output.
//!
//! The reports are the `.json` files themselves, made by hand. Reading and writing one must give the same bytes, so that a renamed or removed
//! field fails too. After an intended change, run `FATHOM_BLESS=1 cargo test -p fathom-io-report` and check `git diff`.

mod forged;
mod style_filter;

use model::comparison::{Comparison, Comparisons};
use model::figures::{Estimate, Snia, State, Steadiness};
use model::finding::{Diagnosis, Pages};
use model::history::Listing;
use model::plan::Explained;
use model::report::{Measured, Report, RunFigures, Second};
use model::study::Studied;
use model::verification::Verifications;
use report::{Detail, FORMATS, Format, ReportKind, Style, TEXT, formats_that_write};
use std::collections::BTreeSet;
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

/// Returns the suffix of a format's golden files: the extension, or the name if an earlier format has the same extension.
fn ending(format: &Format) -> &'static str {
    let first = FORMATS.iter().find(|f| f.extension == format.extension);
    if first.is_some_and(|f| f.name == format.name) { format.extension } else { format.name }
}

fn text(format: &Format, report: &Report, colour: bool) -> String {
    String::from_utf8_lossy(&format.bytes(report, Style { colour, ..Style::default() }).unwrap_or_default())
        .into_owned()
}

#[test]
fn every_format_renders_every_golden_report_as_before() -> Tried {
    let bless = std::env::var_os("FATHOM_BLESS").is_some();
    let reports = reports()?;
    assert!(reports.len() >= 3, "the golden reports are gone");
    for (path, report) in &reports {
        for (format, _) in formats_that_write::<Report>() {
            let file = path.with_extension(ending(format));
            let now = style_filter::without_style(text(format, &forged::with_seen(report.clone()), false));
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

/// Returns a wide style with all parts of a report.
fn full_style() -> Style {
    Style { detail: Detail::All, width: 120, ..Style::default() }
}

#[test]
fn text_is_coloured_only_on_request() -> Tried {
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    for (_, report) in reports()? {
        let plain = text(format, &report, false);
        assert!(!plain.contains('\x1b') && plain.ends_with('\n'));
        assert!(text(format, &report, true).contains('\x1b'));
    }
    Ok(())
}

#[test]
fn brief_prints_only_the_table_and_one_block_for_a_forum() -> Tried {
    for (path, report) in reports()? {
        for (format, _) in
            formats_that_write::<Report>().filter(|(format, _)| ["text", "markdown"].contains(&format.name))
        {
            let style = Style { detail: Detail::Brief, ..Style::default() };
            let shown = String::from_utf8(format.bytes(&report, style)?)?;
            let file = path.with_extension(format!("brief.{}", format.extension));
            if std::env::var_os("FATHOM_BLESS").is_some() {
                std::fs::write(&file, &shown)?;
            }
            assert_eq!(shown, std::fs::read_to_string(&file)?, "{} changed", file.display());
        }
    }
    Ok(())
}

#[test]
fn the_time_series_is_shown_on_request_and_fits() -> Tried {
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    for (path, report) in reports()? {
        let style = Style { time_series: true, ..full_style() };
        let shown = String::from_utf8_lossy(&format.bytes(&report, style)?).into_owned();
        let has_one = report.results.iter().any(|r| !r.series.is_empty());
        assert_eq!(shown.lines().any(|line| line.ends_with(" over time")), has_one, "{}", path.display());
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
fn formats_are_found_by_name_and_extension_for_each_kind() {
    for (format, _) in formats_that_write::<Report>() {
        assert_eq!(report::find_format::<Report>(format.name).map(|f| f.name), Some(format.name));
        let file = PathBuf::from(format!("a.b.{}", format.extension.to_uppercase()));
        let first = FORMATS.iter().find(|f| f.extension == format.extension).map(|f| f.name);
        assert_eq!(report::format_by_extension::<Report>(&file).map(|f| f.name), first);
        assert_eq!(report::format_of_file::<Report>(&file, format).map(|f| f.name), Some(format.name));
        assert_eq!(report::format_of_file::<Report>(&file, TEXT).map(|f| f.name), first);
    }
    assert!(report::find_format::<Report>("pdf").is_none());
    assert!(report::format_by_extension::<Report>(Path::new("json")).is_none());
    assert!(
        report::find_format::<Diagnosis>("csv").is_none() && report::find_format::<Listing>("csv").is_some()
    );
    assert!(report::format_by_extension::<Diagnosis>(Path::new("a.csv")).is_none());
}

fn people_can_read<K: ReportKind + ?Sized>() -> bool {
    report::find_format::<K>(TEXT.name).is_some() && report::find_format::<K>("markdown").is_some()
}

#[test]
fn format_names_are_unique_and_every_kind_has_a_readable_format() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), FORMATS.len());
    let extensions = report::file_extensions::<Report>();
    let listed: Vec<&str> = extensions.split(", ").filter_map(|e| e.strip_prefix('.')).collect();
    let mut each: Vec<&str> = formats_that_write::<Report>().map(|(format, _)| format.extension).collect();
    let mut seen = BTreeSet::new();
    each.retain(|extension| seen.insert(*extension));
    assert_eq!(listed, each, "each once, in the order of the table: {extensions}");
    // These file extensions are promised. New formats come after them.
    let promised = [".txt", ".json", ".csv", ".md", ".html", ".terse", ".xml"];
    let mut left = extensions.split(", ");
    assert!(promised.iter().all(|one| left.any(|listed| listed == *one)), "{extensions}");
    assert!(
        people_can_read::<Report>()
            && people_can_read::<Comparison>()
            && people_can_read::<Explained>()
            && people_can_read::<Comparisons>()
            && people_can_read::<Listing>()
    );
    assert!(
        people_can_read::<Pages>() && people_can_read::<Diagnosis>() && people_can_read::<Verifications>()
    );
}

#[test]
fn a_format_that_cannot_write_a_kind_is_refused_with_the_others_named() -> Tried {
    let csv = report::find_format::<Report>("csv").ok_or("there is no format csv")?;
    assert_eq!(report::require_writer::<Listing>(csv).map(|f| f.name), Ok("csv"));
    let why = report::require_writer::<Diagnosis>(csv).map(|f| f.name);
    assert_eq!(
        why,
        Err("--format csv cannot write a diagnosis; type --format text or json or markdown or html".into())
    );
    let pages = Pages { pages: Vec::new(), all: false };
    let kind = csv.bytes(&pages, Style::default()).map_err(|e| e.kind());
    assert_eq!(kind, Err(std::io::ErrorKind::Unsupported));
    Ok(())
}

/// Reads a golden file: a report, or a part of one.
fn read(file: &str) -> std::io::Result<Vec<u8>> {
    std::fs::read(golden().join(file))
}

/// Compares a part of the text, from the line that begins with `from` to the next empty line, with a golden file.
fn part_is(report: &Report, ledger: bool, from: &str, file: &str) -> Tried {
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    let bytes = format.bytes(report, Style { ledger, ..full_style() })?;
    let all = String::from_utf8_lossy(&bytes).into_owned();
    let (_, rest) = all.split_once(&format!("\n{from}")).ok_or("it does not begin")?;
    let (part, _) = rest.split_once("\n\n").ok_or("it does not end")?;
    let (part, file) = (format!("{from}{part}\n"), golden().join(file));
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(&file, &part)?;
    }
    assert_eq!(part, std::fs::read_to_string(&file)?);
    Ok(())
}

#[test]
fn the_ledger_is_shown_only_on_request() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.results.truncate(1);
    for result in &mut report.results {
        result.ledger = serde_json::from_slice(&read("pieces/ledger.json")?)?;
    }
    part_is(&report, true, "ledger ", "pieces/ledger.txt")?;
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    assert!(!text(format, &report, false).contains("issued by fathom"));
    Ok(())
}

#[test]
fn an_earlier_session_follows_the_table_and_its_report_is_in_the_json() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    let mut piece: serde_json::Value = serde_json::from_slice(&read("pieces/against.json")?)?;
    piece["session"] = "20260101-000000-1".into();
    piece["again"] = serde_json::to_value(&report)?;
    report.against = Some(serde_json::from_value(piece)?);
    part_is(&report, false, "Against ", "pieces/against.txt")?;
    let markdown = report::find_format::<Report>("markdown").ok_or("there is no format markdown")?;
    let word = report
        .against
        .as_ref()
        .map(|a| format!("\n**{}** Against 20260101-", a.workload_comparison.answer.word()));
    assert!(text(markdown, &report, false).contains(&word.ok_or("nothing is against it")?));
    let json = report::find_format::<Report>("json").ok_or("there is no format json")?;
    let back: Report = serde_json::from_str(&text(json, &report, false))?;
    assert_eq!(back, report);
    Ok(())
}

#[test]
fn interfaces_replace_the_results_and_findings_are_not_repeated() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("invalid.json")?)?;
    report.study = Studied::Interfaces(serde_json::from_slice(&read("pieces/api.json")?)?);
    let json = serde_json::to_value(&report)?;
    assert!(json["api"]["rows"].is_array() && json.get("study").is_none());
    let twice = report.checks.iter().find(|f| f.outcome == model::finding::Outcome::Finding).cloned();
    report.checks.extend(twice);
    let (text_form, csv) = (report::find_format::<Report>("text"), report::find_format::<Report>("csv"));
    let shown = String::from_utf8(text_form.ok_or("there is no format text")?.bytes(&report, full_style())?)?;
    let (_, from_table) = shown.split_once("\ninterface ").ok_or("there is no table")?;
    let (part, _) = from_table.split_once("\nHost ").ok_or("it does not end")?;
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
fn a_load_curve_replaces_the_results() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.study = Studied::Limit(serde_json::from_slice(&read("pieces/limit.json")?)?);
    part_is(&report, false, " load ", "pieces/limit.txt")
}

#[test]
fn layers_replace_the_results() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.study = Studied::Layers(serde_json::from_slice(&read("pieces/layers.json")?)?);
    part_is(&report, false, "layer ", "pieces/layers.txt")?;
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    assert!(!text(format, &report, false).contains("p99.9"));
    Ok(())
}

#[test]
fn a_card_follows_the_table_in_the_form_of_its_tool() -> Tried {
    for name in ["score", "bars"] {
        let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
        report.study = Studied::Profile(serde_json::from_slice(&read(&format!("pieces/{name}.json"))?)?);
        part_is(&report, false, "As A", &format!("pieces/{name}.txt"))?;
        let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
        let shown = text(format, &report, false);
        assert!(shown.contains("p99"));
    }
    Ok(())
}

#[test]
fn a_sweep_replaces_the_results() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.study = Studied::Sweep(serde_json::from_slice(&read("pieces/sweep.json")?)?);
    part_is(&report, false, "read: ", "pieces/sweep.txt")?;
    part_is(&report, false, "  direct, io_uring: ", "pieces/sweep.map.txt")?;
    let format = report::find_format::<Report>("text").ok_or("there is no format text")?;
    let shown = text(format, &report, false);
    assert!(!shown.contains("p99.9"));
    assert!(shown.contains("Skipped 1 setting: its buffers") && shown.contains("over 5 runs"));
    Ok(())
}

/// Sets the runs of a result to these rates per second, with a state and a drift.
fn ran(result: &mut Measured, runs: &[&[f64]], state: State, drift: Option<[f64; 3]>) {
    let first = result.runs[0].clone();
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let figures = |(run, rates): (usize, &&[f64])| {
        let iops = mean(rates);
        RunFigures { run: run as u32, iops, iops_within: Some([0.97 * iops, 1.03 * iops]), ..first.clone() }
    };
    result.runs = runs.iter().enumerate().map(figures).collect();
    let second = |run: usize, at: usize, iops: f64| Second {
        run: run as u32,
        start_s: at as f64,
        seconds: 1.0,
        iops,
        mb_per_s: iops * 4096.0 / 1e6,
        p99_at_most_ns: None,
        device: None,
    };
    let all = runs.iter().enumerate();
    let seconds =
        all.flat_map(|(run, rates)| rates.iter().enumerate().map(move |(at, r)| second(run, at, *r)));
    result.series = seconds.collect();
    result.steadiness = Some(Steadiness {
        state,
        sentence: "the rate fell from 78,000 to 41,000 IOPS after 2.0 s.".into(),
        warm_up_s: 0.0,
        drift_per_minute: drift.map(|[value, low, high]| Estimate { value, interval: [low, high] }),
        snia: Some(Snia { met: state == State::Steady, rounds: 5, excursion: 0.031, slope: 0.008 }),
    });
}

#[test]
fn every_result_has_a_line_for_its_runs() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    let [random, sequential, mixed] = report.results.as_mut_slice() else { return Err("not three".into()) };
    let runs: [&[f64]; 5] = [&[79e3, 78.5e3], &[77.1e3, 78e3], &[80e3, 81.2e3], &[79e3, 78e3], &[78e3, 79e3]];
    ran(random, &runs, State::Steady, Some([0.003, -0.002, 0.008]));
    ran(sequential, &[&[3e3, 3e3], &[3e3, 1e3], &[3e3, 0.0]], State::Cliff, None);
    mixed.series.clear();
    part_is(&report, false, "runs ", "pieces/runs.txt")
}

#[test]
fn a_single_run_describes_only_itself_and_a_single_result_has_a_reason() -> Tried {
    let mut report: Report = serde_json::from_slice(&read("valid.json")?)?;
    report.results.truncate(1);
    let fell: Vec<f64> = (0..60).map(|i| if i < 20 { 78e3 } else { 41e3 }).collect();
    ran(&mut report.results[0], &[&fell], State::Cliff, Some([-0.41, -0.52, -0.30]));
    part_is(&report, false, "runs ", "pieces/run.txt")
}

#[test]
fn the_schema_has_each_study_under_its_own_key() -> Tried {
    let schema: serde_json::Value = serde_json::from_str(report::SCHEMAS[0].1)?;
    for key in ["layers", "sweep", "api", "card", "limit"] {
        let property = &schema["properties"][key];
        assert!(property.is_object(), "{key}: {:#}", schema["properties"]);
        let required = schema["required"].as_array().ok_or("nothing is required")?;
        assert!(!required.contains(&key.into()), "a report of another study has no {key}");
    }
    assert!(schema["properties"]["study"].is_null());
    Ok(())
}
