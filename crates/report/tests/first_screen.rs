//! The first screen: a report of eight results fits a terminal of 24 lines with the prompt after it, and its first lines
//! answer the question.
//!
//! `bench/bench.json` is a report of `fathom bench --quick` on a busy virtual machine. `FATHOM_BLESS=1` renders it again at each width.

use model::finding::{Checked, Severity};
use model::report::{AnswerWord, Report, ReportAnswer, Verdict};
use model::study::{Studied, Targets};
use model::sweep::{Chosen, Sweep};
use report::{Style, TEXT};
use std::path::{Path, PathBuf};

type Tried = Result<(), Box<dyn std::error::Error>>;

/// Lines of a small terminal without the prompt.
const SCREEN_LINES: usize = 23;
const WIDTHS: [usize; 4] = [60, 80, 100, 120];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench").join(name)
}

fn bench() -> Result<Report, Box<dyn std::error::Error>> {
    Ok(serde_json::from_slice(&std::fs::read(file("bench.json"))?)?)
}

fn text(report: &Report, width: usize) -> Result<String, Box<dyn std::error::Error>> {
    Ok(String::from_utf8(TEXT.bytes(report, Style { width, ..Style::default() })?)?)
}

#[test]
fn a_bench_fits_a_small_terminal_at_usual_widths() -> Tried {
    let report = bench()?;
    assert_eq!(report.results.len(), 8);
    for width in WIDTHS {
        let now = text(&report, width)?;
        let golden = file(&format!("bench.{width}.txt"));
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(&golden, &now)?;
        }
        assert_eq!(now, std::fs::read_to_string(&golden)?, "{} changed", golden.display());
        assert!(width < 80 || now.lines().count() <= SCREEN_LINES, "{now}");
    }
    Ok(())
}

#[test]
fn the_first_lines_contain_verdict_headline_and_counts() -> Tried {
    let report = bench()?;
    let now = text(&report, 80)?;
    let mut lines = now.lines();
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    assert!(first.starts_with("SUSPECT  SEQ1M Q8T1 read: ") && first.ends_with(" MB/s (valid)"), "{first}");
    assert_eq!(second, format!("  {}", report.counts.sentence.ok_or("there are no counts")?));
    assert!(second.ends_with("1 without a number (SEQ1M Q1T1 write: CPU busy)"), "{second}");
    Ok(())
}

#[test]
fn the_reason_of_an_invalid_headline_follows_it_once() -> Tried {
    let mut report = bench()?;
    let name = report.results[0].name.clone();
    let finding = report.checks.iter_mut().find(|f| f.severity == Some(Severity::Invalidates));
    finding.ok_or("nothing is void")?.about.push(name);
    report.results[0].verdict = Verdict::Invalid;
    report.results[0].void = true;
    report.verdict = Verdict::Invalid;
    report.headline.value = None;
    let now = text(&report, 80)?;
    assert!(now.starts_with("INVALID  SEQ1M Q8T1 read: no number\n"), "{now}");
    let third = now.lines().nth(2).unwrap_or_default();
    assert!(third.starts_with("  D08 RUNQUEUE_WAIT invalidates it and 1 other result: "), "{now}");
    assert_eq!(now.matches("D08").count(), 1, "{now}");
    assert!(now.lines().count() <= SCREEN_LINES, "{now}");
    Ok(())
}

#[test]
fn a_finding_that_invalidates_other_rows_comes_before_one_that_biases_the_headline() -> Tried {
    let mut report = bench()?;
    let name = report.results[0].name.clone();
    let bias = report.checks.iter().find(|f| f.severity == Some(Severity::Biases)).cloned();
    let bias = bias.ok_or("nothing is biased")?;
    report.checks.insert(0, Checked { about: vec![name], ..bias.clone() });
    report.results[0].verdict = Verdict::Suspect;
    let now = text(&report, 80)?;
    let lines: Vec<&str> = now.lines().collect();
    assert!(lines[0].ends_with(" MB/s (suspect)"), "{now}");
    assert!(lines[2].starts_with("  D08 RUNQUEUE_WAIT invalidates SEQ1M Q1T1 write: "), "{now}");
    assert!(lines[3].starts_with(&format!("  {} {} biases SEQ1M Q8T1 read", bias.id, bias.name)), "{now}");
    assert!(lines.len() <= SCREEN_LINES, "{now}");
    Ok(())
}

#[test]
fn the_headline_of_several_targets_has_the_name_and_verdict_of_its_row() -> Tried {
    let mut report = bench()?;
    report.study = Studied::Targets(Targets { names: vec!["ext4".into(), "xfs".into()], rows: Vec::new() });
    report.results[0].name = "SEQ1M Q8T1 read on ext4".into();
    report.results[0].verdict = Verdict::Suspect;
    let now = text(&report, 80)?;
    let first = now.lines().next().unwrap_or_default();
    assert!(first.starts_with("SUSPECT  SEQ1M Q8T1 read on ext4"), "{now}");
    assert!(first.ends_with(" MB/s (suspect)"), "{now}");
    Ok(())
}

#[test]
fn long_notes_do_not_scroll_the_verdict_away() -> Tried {
    let mut report = bench()?;
    report.notes = (0..6).map(|n| format!("{n} {}", "a note of several words ".repeat(14))).collect();
    for width in [80, 100] {
        let now = text(&report, width)?;
        assert!(now.lines().count() <= SCREEN_LINES && now.contains("D08 invalidates"), "{now}");
        assert!(
            now.contains("\nNote    0 a note of ") && now.contains(" …\nNote    --verbose prints "),
            "{now}"
        );
    }
    report.notes.truncate(1);
    assert!(text(&report, 80)?.lines().count() <= SCREEN_LINES, "{}", text(&report, 80)?);
    assert!(!text(&report, 80)?.contains("--verbose prints"), "the count is not longer than the note");
    Ok(())
}

#[test]
fn a_bench_without_findings_has_verdict_table_and_session() -> Tried {
    let mut report = bench()?;
    report.checks.clear();
    report.notes.clear();
    report.quick = None;
    report.verdict = Verdict::Valid;
    report.counts.sentence = Some("8 results, all valid".into());
    report.results.iter_mut().for_each(|r| (r.verdict, r.renamed) = (Verdict::Valid, false));
    let now = text(&report, 80)?;
    let lines: Vec<&str> = now.lines().collect();
    assert!(lines[0].starts_with("VALID  ") && lines[1] == "  8 results, all valid", "{now}");
    assert!(lines.len() <= 16 && lines[lines.len() - 1].starts_with("Session "), "{now}");
    Ok(())
}

#[test]
fn a_sweep_has_one_answer_line_for_each_work() -> Tried {
    let mut report = bench()?;
    let piece = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pieces/sweep.json");
    let sweep: Sweep = serde_json::from_slice(&std::fs::read(piece)?)?;
    report.answer = Some(ReportAnswer { word: AnswerWord::Tied, sentence: String::new() });
    let with = |chosen: Chosen| {
        let mut sweep = sweep.clone();
        let rival = sweep.cells.iter().take(1).map(|cell| cell.setting.clone());
        sweep
            .works
            .iter_mut()
            .for_each(|work| (work.chosen, work.rivals) = (chosen, rival.clone().collect()));
        text(&Report { study: Studied::Sweep(Box::new(sweep)), ..report.clone() }, 120)
    };
    let best = "TIED  Reads: depth 4, 256 KiB, direct, io_uring: 2,655 MB/s";
    for (chosen, sure) in [
        (Chosen::Tied, "1 other setting may be as fast"),
        (Chosen::Fastest, "no other is more than 5.0 % faster, 95 % sure"),
        (Chosen::NoChoice, "the only setting"),
    ] {
        let now = with(chosen)?;
        assert_eq!(now.lines().next(), Some(format!("{best} ({sure})").as_str()), "{now}");
    }
    let now = with(Chosen::CannotTell)?;
    assert!(now.starts_with(&format!("{best} (not decided: ")), "{now}");
    for (chosen, times) in [(Chosen::Fastest, 0), (Chosen::CannotTell, 1)] {
        let now = with(chosen)?.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(now.matches("no setting is more than 8.3 % faster").count(), times, "{now}");
        assert!(now.contains("read: `--budget 90s` is likely to reach 5.0 %"), "the rest is below: {now}");
    }
    Ok(())
}

#[test]
fn a_small_sweep_has_the_value_of_every_cell() -> Tried {
    let mut report = bench()?;
    let piece = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pieces/sweep.json");
    let mut sweep: Sweep = serde_json::from_slice(&std::fs::read(piece)?)?;
    let mut with = |sweep: &Sweep| {
        report.study = Studied::Sweep(Box::new(sweep.clone()));
        text(&report, 80)
    };
    let now = with(&sweep)?;
    assert!(now.contains("MB/s by size and depth") && !now.contains("The values of all"), "{now}");
    // A workload without a winner has values too.
    sweep.winner.clear();
    sweep.cheapest.clear();
    let now = with(&sweep)?;
    assert!(now.contains("MB/s by size and depth"), "{now}");
    while sweep.cells.len() <= 20 {
        sweep.cells.extend(sweep.cells.clone());
    }
    let count = sweep.cells.len();
    let now = with(&sweep)?;
    assert!(!now.contains("MB/s by size and depth"), "{now}");
    assert!(now.contains(&format!("The values of all {count} cells: ")), "{now}");
    Ok(())
}
