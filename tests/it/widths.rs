//! The output of every command fits terminals of many widths, without colours, and pipes.

use crate::stage::{Outcome, Stage, skip, wait};
use std::path::Path;
use std::process::Command;

const WIDTHS: [usize; 6] = [40, 60, 80, 100, 120, 200];
/// Widths for real reports. `crates/report/tests/widths.rs` checks golden reports at more widths.
const SOME: [usize; 3] = [40, 80, 200];

fn at(stage: &Stage, columns: usize, words: &str, target: &Path) -> Outcome {
    wait(stage.command(&[], words, target).env("COLUMNS", columns.to_string()))
}

#[track_caller]
fn fits(out: &Outcome, columns: usize, words: &str) {
    assert!(!out.stdout.is_empty(), "{words}: {out:?}");
    // Code between backticks is not broken: a part of it could not be pasted.
    let is_code = |line: &str| {
        let code = line.trim().trim_end_matches(['.', ',', ':', ';', ')']);
        code.starts_with('`') && code.ends_with('`') && code.matches('`').count() == 2
    };
    let wide = out.stdout.lines().find(|l| l.chars().count() > columns && !is_code(l));
    assert_eq!(wide, None, "{words} at {columns}: {}", out.stdout);
}

#[test]
fn reports_fit_the_terminal() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let quick = "--time 60ms --warmup 0 --runs 1 --quiet";
    let sim = format!("--engine sim {quick}");
    for words in [
        format!("bench --size 16m {quick}"),
        format!("run --rw randrw --mix 70% --size 16m {quick}"),
        format!("run --rw randread --rate 2000 {sim}"),
        format!("limit --p99 5ms --depth 4 {sim}"),
        format!("sweep --rw read,write --bs 4k..16k --depth 1..4 --exhaustive {sim}"),
        format!("sweep --preset iops --bs 512..4k {}", sim.replace("--runs 1", "")),
        "api --size 16m --bs 4k --rw randwrite --interface pread,mmap --runs 1 --quiet".into(),
    ] {
        let target = if words.contains("--engine sim") { Path::new("") } else { &dir };
        let out = stage.fathom(&words, target);
        assert!(matches!(out.code, Some(0 | 1)), "{words}: {out:?}");
        for columns in SOME {
            for detail in ["", "--brief", "--verbose --ledger --explain"] {
                let show = format!("show last {detail}");
                fits(&at(&stage, columns, &show, Path::new("")), columns, &format!("{words}; {show}"));
            }
        }
    }
    for columns in SOME {
        fits(&at(&stage, columns, "list", Path::new("")), columns, "list");
        fits(&at(&stage, columns, "compare last~1 last", Path::new("")), columns, "compare");
    }
}

#[test]
fn other_output_fits_the_terminal() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    for columns in WIDTHS {
        for words in ["bench --explain", "run --explain", "api --explain", "doctor"] {
            fits(&at(&stage, columns, words, &dir), columns, words);
        }
        for words in ["explain", "explain A01", "explain B20"] {
            fits(&at(&stage, columns, words, Path::new("")), columns, words);
        }
        fits(&at(&stage, columns, "verify --size 16m", &dir), columns, "verify");
    }
}

#[test]
fn pipes_get_80_columns_and_terminals_their_own() {
    let stage = Stage::shared();
    let out = stage.fathom("run --engine sim --time 60ms --warmup 0 --runs 1 --quiet", Path::new(""));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let mut piped = stage.command(&[], "show last --verbose", Path::new(""));
    let piped = wait(piped.env_remove("COLUMNS"));
    fits(&piped, 80, "a pipe");
    assert!(piped.stdout.lines().any(|l| l.chars().count() > 60), "{}", piped.stdout);
    if Command::new("script").arg("--version").output().is_err() {
        return skip("there is no script(1), which makes a terminal");
    }
    for (columns, kind, has_colours) in [(50, "xterm", true), (150, "xterm", true), (50, "dumb", false)] {
        let inside =
            format!("stty cols {columns}; exec {} show last --verbose", env!("CARGO_BIN_EXE_fathom"));
        let mut command = Command::new("script");
        command.args(["-qec", &inside, "/dev/null"]).env("XDG_DATA_HOME", stage.folder("xdg"));
        let out = wait(command.env_remove("COLUMNS").env_remove("NO_COLOR").env("TERM", kind));
        assert_eq!(out.stdout.contains("\u{1b}["), has_colours, "{out:?}");
        let plain = unpainted(&out.stdout.replace('\r', ""));
        let widest = plain.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        assert!(widest <= columns && (columns < 100 || widest > 80), "{widest} of {columns}: {plain}");
    }
}

fn unpainted(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').map_or(part, |(_, after)| after))
}

#[test]
fn markdown_output_is_one_block() {
    let stage = Stage::shared();
    let dir = stage.folder("place");
    let pasted = stage.path("report.md");
    let words = format!("bench --size 16m --time 60ms --warmup 0 --runs 1 --quiet -o {}", pasted.display());
    let out = stage.fathom(&words, &dir);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let page = std::fs::read_to_string(&pasted).unwrap();
    let first = out.stdout.split_whitespace().next().unwrap();
    assert!(page.starts_with(&format!("**{first}** ")), "{page}");
    let table: Vec<&str> = page.lines().filter(|l| l.starts_with('|')).collect();
    assert!(table.len() == 2 + 8 && table[1].starts_with("| :-"), "eight tests: {page}");
    assert!(table.iter().all(|l| l.matches('|').count() == table[0].matches('|').count()), "{page}");
    assert!(page.lines().filter(|l| l.starts_with("- **")).count() <= 3, "{page}");
    assert!(
        page.contains("`fathom bench ") && page.contains(" --size 16m --time 60ms"),
        "the command: {page}"
    );
    let block = stage.fathom("show last --brief --format markdown", Path::new("")).stdout;
    assert!(block.starts_with("```\nfathom ") && block.ends_with("```\n"), "{block}");
    assert!(
        block.contains("SEQ1M Q8T1 ") && block.contains("write MB/s") && block.lines().count() < 16,
        "{block}"
    );
    for (words, target) in [
        ("bench --explain --format markdown", dir.as_path()),
        ("doctor --format markdown", &dir),
        ("list --format markdown", Path::new("")),
        ("verify --size 16m --format markdown", &dir),
    ] {
        let out = stage.fathom(words, target);
        assert!(out.stdout.contains("**") || out.stdout.contains("\n| :-"), "{words}: {out:?}");
    }
}
