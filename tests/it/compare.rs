//! `fathom compare`: the verdict where the truth is known, refusals, and the exit codes that a pipeline uses. How often the verdicts are right
//! is simulated next to the statistics.

use crate::disk::{Disk, Image};
use crate::group::Group;
use crate::stage::{Outcome, Stage, is_root, wait};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The simulated device: 40,000 IOPS at depth 4, on its own clock.
const SIM: &str = "run --engine sim --time 20ms --warmup 0 --quiet";

/// A session of the simulated device, with its report as JSON.
fn simulated(stage: &Stage, words: &str, name: &str) -> PathBuf {
    let report = stage.path(name);
    let out = stage.fathom(&format!("{SIM} {words} -o {}", report.display()), Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    report
}

fn compare(stage: &Stage, a: &str, b: &str, words: &str) -> Outcome {
    stage.fathom(&format!("compare {a} {b} {words}"), Path::new(""))
}

/// The comparison as a value.
fn value(out: &Outcome) -> Value {
    serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {out:?}"))
}

fn finding<'v>(comparison: &'v Value, id: &str) -> &'v Value {
    let all = comparison["findings"].as_array().unwrap();
    all.iter().find(|f| f["id"] == id).unwrap_or_else(|| panic!("no {id}: {all:#?}"))
}

#[test]
fn inconclusive_comparisons_do_not_pass_a_gate() {
    let stage = Stage::shared();
    let once = ["a.json", "b.json"].map(|name| simulated(&stage, "--depth 4 --runs 1", name));
    let out = compare(&stage, once[0].to_str().unwrap(), once[1].to_str().unwrap(), "--fail-if-slower 5%");
    assert!(
        out.code == Some(4) && out.stdout.starts_with("INCONCLUSIVE  A slowdown of more than"),
        "{out:?}"
    );
    let words = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("three runs on each side"), "{out:?}");
    // Without a bound, a PASS would mean nothing.
    assert!(!words.contains("--inconclusive pass"), "{out:?}");
    for (word, code) in [("pass", 0), ("fail", 1)] {
        let words = format!("--fail-if-slower 5% --inconclusive {word}");
        let out = compare(&stage, once[0].to_str().unwrap(), once[1].to_str().unwrap(), &words);
        let first = format!("INCONCLUSIVE (counts as {})  A slowdown of more than", word.to_uppercase());
        assert!(out.code == Some(code) && out.stdout.starts_with(&first), "{out:?}");
    }
}

#[test]
fn equal_sides_are_reported_as_equal_in_every_format() {
    let stage = Stage::shared();
    let a = simulated(&stage, "--depth 4 --runs 5", "a.json");
    let b = simulated(&stage, "--depth 4 --runs 5", "b.json");
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let out = compare(&stage, a, b, "--format json --fail-if-slower 5%");
    assert_eq!(out.code, Some(0), "{out:?}");
    let comparison = value(&out);
    assert_eq!(comparison["answer"], "SAME", "{comparison:#}");
    assert_eq!(comparison["gate"]["outcome"], "passed");
    let rate = &comparison["pairs"][0]["metrics"][0];
    assert_eq!(
        (&rate["name"], &rate["answer"], &rate["a_runs"].as_array().unwrap().len()),
        (&"IOPS".into(), &"SAME".into(), &5)
    );
    let limits_of = |comparison: &Value| {
        ["margin", "tolerance"].map(|key| comparison["pairs"][0]["metrics"][0][key].as_f64())
    };
    assert_eq!(limits_of(&comparison), [Some(0.05); 2], "one session on each side");
    let typed = compare(&stage, a, b, "--format json --margin 2%");
    assert_eq!(limits_of(&value(&typed)), [Some(0.02); 2]);
    assert_eq!(finding(&comparison, "E14")["outcome"], "holds");
    assert_eq!(finding(&comparison, "E15")["outcome"], "not_checked");

    // `show` prints a report as it was judged, and refuses what needs the record.
    let shown = stage.fathom("show --format json", Path::new(a)).report().0;
    let written: Value = serde_json::from_str(&std::fs::read_to_string(a).unwrap()).unwrap();
    for key in ["verdict", "title", "started", "session", "notes"] {
        assert_eq!(shown[key], written[key], "{key}");
    }
    let text = stage.fathom("show --ledger", Path::new(a));
    assert!(text.code == Some(0) && text.stdout.contains("IOPS"), "{text:?}");
    let all = stage.fathom("show --verbose", Path::new(a));
    assert!(all.code == Some(0) && !all.stdout.contains("checks this session again"), "{all:?}");
    let both = format!("show {b}");
    for (words, must) in [
        ("show --accept D01", "--accept needs the record of a session"),
        ("show --format fio-json", "--format fio-json needs the record of a session"),
        ("show -o out.xml", "-o out.xml needs the record of a session"),
        ("show --from 1s", "--from applies to captures"),
        (both.as_str(), "a table needs sessions"),
    ] {
        let out = stage.fathom(words, Path::new(a));
        assert!(out.code == Some(2) && out.stdout.is_empty() && out.stderr.contains(must), "{out:?}");
    }

    // A session can be named by its place in the history, and compared with a report.
    let text = compare(&stage, a, "last", "");
    assert!(text.code == Some(0) && text.stdout.starts_with("SAME  "), "{text:?}");
    // An output file gets the format of its extension. A side of the comparison is never overwritten.
    let [page, csv] = ["change.html", "change.csv"].map(|name| stage.path(name));
    let files = format!("-o {} -o {}", page.display(), csv.display());
    let text = compare(&stage, a, b, &files);
    assert!(text.code == Some(0) && text.stdout.starts_with("SAME  "), "{text:?}");
    let [page, csv] = [page, csv].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(page.starts_with("<!doctype html>") && page.contains("SAME"));
    assert_eq!(csv, compare(&stage, a, b, "--format csv").stdout);
    let refused = compare(&stage, a, b, &format!("-o {b}"));
    assert!(refused.code == Some(2) && refused.stderr.contains("a side of this comparison"), "{refused:?}");
    let refused = compare(&stage, a, b, "-o change.png");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("no format has this extension"),
        "{refused:?}"
    );

    let markdown = compare(&stage, a, b, "--format markdown");
    assert!(markdown.stdout.starts_with("**SAME** ") && markdown.stdout.contains("\n| :--"), "{markdown:?}");
}

#[test]
fn different_work_is_refused_unless_accepted() {
    let stage = Stage::shared();
    let four = simulated(&stage, "--depth 4 --runs 5", "four.json");
    let eight = simulated(&stage, "--depth 8 --runs 5", "eight.json");
    let (four, eight) = (four.to_str().unwrap(), eight.to_str().unwrap());
    let refused = compare(&stage, four, eight, "");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stdout.starts_with("INCOMPARABLE  ") && refused.stdout.contains("depth 4 -> 8"),
        "{refused:?}"
    );

    // Depth 8 instead of 4, on a device without a depth limit: exactly twice as fast.
    let out = compare(&stage, four, eight, "--accept E14 --format json --fail-if-slower 5%");
    let comparison = value(&out);
    assert_eq!((out.code, &comparison["answer"]), (Some(0), &"FASTER".into()), "{comparison:#}");
    let ratio = comparison["pairs"][0]["metrics"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    assert_eq!(finding(&comparison, "E14")["accepted"], true);
    let back = compare(&stage, eight, four, "--accept E14 --fail-if-slower 5%");
    assert_eq!(back.code, Some(1), "{back:?}");
    assert!(
        back.stdout.starts_with("FAIL  Slower by more than 5.0 %") && back.stdout.contains("\nSLOWER  "),
        "{back:?}"
    );
    // Incomparable sides are an error, not an inconclusive gate.
    let apart = compare(&stage, four, eight, "--fail-if-slower 5% --inconclusive pass");
    assert!(apart.code == Some(2) && apart.stdout.starts_with("INCOMPARABLE  "), "{apart:?}");
    assert!(!apart.stdout.contains("A slowdown of more than"), "{apart:?}");
}

#[test]
fn three_runs_are_too_few_and_the_needed_number_is_given() {
    let stage = Stage::shared();
    let four = simulated(&stage, "--depth 4 --runs 3", "four.json");
    let eight = simulated(&stage, "--depth 8 --runs 3", "eight.json");
    let words = "--accept E14 --format json";
    let out = compare(&stage, four.to_str().unwrap(), eight.to_str().unwrap(), words);
    let comparison = value(&out);
    assert_eq!((out.code, &comparison["answer"]), (Some(0), &"CANNOT TELL".into()), "{comparison:#}");
    assert_eq!(comparison["pairs"][0]["metrics"][0]["runs_needed"], 4, "{comparison:#}");
}

/// A run has about a hundred random arrivals, so runs differ by about a tenth.
const NOISY: &str = "run --engine sim --rate 100 --time 1s --warmup 0 --quiet --no-history --runs 5";

#[test]
fn undetected_differences_have_a_bound() {
    let stage = Stage::shared();
    let [a, b] = ["7", "8"].map(|seed| {
        let to = stage.path(&format!("{seed}.json"));
        let out = stage.fathom(&format!("{NOISY} --seed {seed} -o {}", to.display()), Path::new(""));
        assert_eq!(out.code, Some(0), "{out:?}");
        to.display().to_string()
    });
    let comparison = value(&compare(&stage, &a, &b, "--format json"));
    let metrics = comparison["pairs"][0]["metrics"].as_array().unwrap();
    let rate = metrics.iter().find(|m| m["name"] == "IOPS").unwrap();
    assert_eq!(rate["answer"], "NO DIFFERENCE SEEN", "{rate:#}");
    assert!(rate["runs_to_halve"].as_u64().is_some_and(|runs| (10..=20).contains(&runs)), "{rate:#}");
    assert!(rate["interval"][0].as_f64().unwrap() > 0.5, "{rate:#}");
}

#[test]
fn several_sessions_can_form_one_side() {
    let stage = Stage::shared();
    for name in ["1.json", "2.json", "3.json", "4.json"] {
        simulated(&stage, "--depth 4 --runs 3", name);
    }
    let all = stage.sessions();
    let [one, two, three, four] = all.as_slice() else { panic!("{all:?}") };
    let a = format!("{}..{}", one.display(), three.display());
    let b = format!("{}", four.display());
    let comparison = value(&compare(&stage, &a, &b, "--format json"));
    let rate = &comparison["pairs"][0]["metrics"][0];
    assert_eq!(comparison["a"]["sessions"].as_array().unwrap().len(), 3, "{comparison:#}");
    assert_eq!(rate["a_runs"].as_array().unwrap().len(), 9);
    assert_eq!((&rate["floor"], &comparison["answer"]), (&Value::from(0.0), &"SAME".into()), "{rate:#}");

    let mixed = simulated(&stage, "--depth 8 --runs 3", "5.json");
    let a = format!("{},{}", two.display(), mixed.display());
    let out = compare(&stage, &a, &b, "");
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stdout.contains("sessions of A") && out.stdout.contains("depth 4 -> 8"), "{out:?}");
}

#[test]
fn each_side_is_compared_with_the_first_in_one_table() {
    let stage = Stage::shared();
    let paths: Vec<PathBuf> = [(4, "a"), (4, "b"), (8, "c"), (2, "d")]
        .iter()
        .map(|(depth, name)| simulated(&stage, &format!("--depth {depth} --runs 5"), &format!("{name}.json")))
        .collect();
    let [a, b, c, d] = paths.iter().map(|p| p.to_str().unwrap()).collect::<Vec<_>>()[..] else { panic!() };
    let words = "--accept E14 --fail-if-slower 5%";
    let out = compare(&stage, a, &format!("{b} {c} {d}"), words);
    assert_eq!(out.code, Some(1), "the slowest decides: {out:?}");
    let printed = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "B: Not slower",
        "C: Not slower",
        "D: Slower by more than 5.0 %",
        "C is faster than A",
        "D is slower than A",
    ] {
        assert!(printed.contains(words), "{words}: {}", out.stdout);
    }
    let heading = out.stdout.lines().find(|l| l.starts_with("number ")).unwrap();
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["number", "A", "B", "C", "D"]);
    let fine = compare(&stage, a, &format!("{b} {c}"), words);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    let refused = compare(&stage, a, &format!("{b} {c}"), "");
    assert_eq!(refused.code, Some(2), "other work on one side: {refused:?}");

    let all = value(&compare(&stage, a, &format!("{b} {c} {d}"), "--accept E14 --format json"));
    let names: Vec<&Value> = all["others"].as_array().unwrap().iter().map(|o| &o["name"]).collect();
    assert_eq!(names, ["B", "C", "D"]);
    let csv = compare(&stage, a, &format!("{b} {c}"), "--accept E14 --format csv").stdout;
    assert!(csv.starts_with("side,result,number,") && csv.contains("\r\nC,"), "{csv}");
    let brief = compare(&stage, a, &format!("{b} {c}"), "--accept E14 --brief").stdout;
    assert!(brief.starts_with("number ") && !brief.contains("E14"), "{brief}");
    let whole = compare(&stage, a, &format!("{b} {c}"), "--accept E14 --verbose").stdout;
    assert!(whole.contains("E14 NOT_ALIKE") && whole.contains("Passed "), "{whole}");
    let none = compare(&stage, a, b, "--brief --format json");
    assert!(none.code == Some(2) && none.stderr.contains("--format markdown"), "{none:?}");
}

#[test]
fn page_cache_is_not_compared_with_the_device() {
    let stage = Stage::shared();
    let file = stage.file("data", 64);
    let measured = |cache: &str| {
        let report = stage.path(&format!("{cache}.json"));
        let words = "run --rw randread --depth 1 --time 300ms --warmup 0 --runs 3 --quiet";
        let out = stage.fathom(&format!("{words} --cache {cache} -o {}", report.display()), &file);
        assert!(out.code.is_some_and(|c| c < 2), "{out:?}");
        report.to_str().unwrap().to_owned()
    };
    let (direct, buffered) = (measured("direct"), measured("buffered"));
    let out = compare(&stage, &direct, &buffered, "");
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.stdout.starts_with("INCOMPARABLE  "), "{out:?}");
    let printed = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["cache direct -> buffered", "E14 NOT_ALIKE (invalidates)", "--accept E14"] {
        assert!(printed.contains(words), "{words}: {}", out.stdout);
    }
}

#[test]
fn throttled_side_fails_the_gate_and_is_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let mut reports = Vec::new();
    for iops in [200, 100] {
        let limit = ("blkio", "blkio.throttle.read_iops_device", format!("$NUMBER {iops}"));
        let Some(group) = Group::limited(&disk, &(limit.0, limit.1, &limit.2)) else { return };
        let report = stage.path(&format!("{iops}.json"));
        let words = format!(
            "run --rw randread --depth 1 --size 32m --time 500ms --warmup 200ms --runs 4 --quiet -o {}",
            report.display()
        );
        let inside = [disk.enter(), group.enter()].concat();
        let out = wait(&mut stage.command(&inside, &words, &disk.dir));
        assert!(out.code.is_some_and(|c| c < 2), "{out:?}");
        reports.push(report.to_str().unwrap().to_owned());
    }
    let out = compare(&stage, &reports[0], &reports[1], "--fail-if-slower 5% --format json");
    let comparison = value(&out);
    assert_eq!((out.code, &comparison["answer"]), (Some(1), &"SLOWER".into()), "{comparison:#}");
    let ratio = comparison["pairs"][0]["metrics"][0]["ratio"].as_f64().unwrap();
    assert!((ratio - 0.5).abs() < 0.1, "{ratio}");
    let sentence = comparison["sentence"].as_str().unwrap();
    assert!(sentence.contains("limits blkio.throttle.read_iops_device"), "{sentence}");
    let back = compare(&stage, &reports[1], &reports[0], "--fail-if-slower 5%");
    assert!(back.code == Some(0) && back.stdout.starts_with("PASS  "), "{back:?}");
    // With --fail-on all, inconclusive numbers may keep the gate from passing.
    let all = compare(&stage, &reports[1], &reports[0], "--fail-if-slower 5% --fail-on all");
    assert!(matches!(all.code, Some(0 | 4)), "{all:?}");
}

#[test]
fn incomparable_sides_are_usage_errors_with_a_fix() {
    let stage = Stage::shared();
    let a = simulated(&stage, "--depth 4 --runs 1", "a.json");
    let b = simulated(&stage, "--depth 4 --runs 1", "b.json");
    let empty = stage.path("empty.json");
    std::fs::write(&empty, "{}").unwrap();
    let (a, b, empty) = (a.to_str().unwrap(), b.to_str().unwrap(), empty.to_str().unwrap());
    let refused = |side_a: &str, side_b: &str, words: &str, expected: &str| {
        let Outcome { code, stdout, stderr, .. } = compare(&stage, side_a, side_b, words);
        let case = format!("{side_a} {side_b} {words}");
        assert!(
            code == Some(2) && stdout.is_empty() && stderr.contains(expected),
            "{case}: {code:?} {stderr}"
        );
    };
    refused(a, a, "", "named twice");
    refused(&format!("{a},{a}"), b, "", "named twice");
    refused(a, "last~1", "", "named twice");
    refused("last", b, "", "named twice");
    refused(a, "nothing-like-it", "", "nothing-like-it");
    refused(a, empty, "", "not the JSON report of a measurement");
    refused(&format!("{a},"), b, "", "after a comma");
    refused("last..last~1", b, "", "other way round");
    refused(a, b, "--margin much", "percent");
    refused(a, b, "--fail-if-slower 100%", "not below 100 %");
    refused(a, b, "--fail-on all", "--fail-if-slower");
    refused(a, b, "--inconclusive pass", "--fail-if-slower");
    refused(a, b, "--fail-if-slower 5% --inconclusive perhaps", "fail");
    refused(a, b, "--accept A99", "A99");
    refused(a, b, "--accept E15", "comparisons");
    refused(a, b, "--format fio-json", "markdown");
    refused(a, "", "", "<B>");
}

#[test]
fn a_side_without_a_number_is_always_invalid() {
    let stage = Stage::shared();
    let (data, sparse) = (stage.file("data", 16), stage.path("sparse"));
    std::fs::File::create(&sparse).unwrap().set_len(16 << 20).unwrap();
    let measured = |name: &str, target: &Path, more: &str| {
        let to = stage.path(name);
        let words = format!(
            "run --rw randread --depth 1 --time 100ms --warmup 0 --runs 3 --quiet --no-history {more} -o"
        );
        let out = crate::stage::wait(stage.command(&[], &words, Path::new("")).arg(&to).arg(target));
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        to.display().to_string()
    };
    let first_word = |out: &crate::stage::Outcome| out.stdout.split_whitespace().next().map(str::to_owned);
    let (number, hole) = (measured("number.json", &data, ""), measured("hole.json", &sparse, ""));
    for words in ["--fail-if-slower 5%", "--fail-if-slower 5% --inconclusive pass", ""] {
        let out = compare(&stage, &number, &hole, words);
        assert_eq!((first_word(&out).as_deref(), out.code), (Some("INVALID"), Some(1)), "{words}: {out:?}");
        assert!(out.stdout.contains("has no"), "{words}: {out:?}");
    }
    // A gate decides on an accepted finding of one side only if this command accepts it. On a busy machine the number may be withheld for another reason.
    let accepted = measured("accepted.json", &sparse, "--accept A04");
    let ids = |file: &str| {
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let withheld = report["results"][0]["void"] == true;
        (report["results"][0]["accepted"].clone(), report["verdict"].clone(), withheld)
    };
    let (accepted_ids, verdict, withheld) = ids(&accepted);
    assert_eq!(accepted_ids, serde_json::json!(["A04"]));
    assert_ne!(verdict, "VALID");
    if withheld || ids(&number).2 {
        return;
    }
    let out = compare(&stage, &number, &accepted, "--fail-if-slower 5%");
    assert_eq!((first_word(&out).as_deref(), out.code), (Some("INVALID"), Some(1)), "{out:?}");
    assert!(out.stdout.contains("type --accept A04"), "{out:?}");
    let out = compare(&stage, &number, &accepted, "--fail-if-slower 5% --accept A04");
    assert!(matches!(first_word(&out).as_deref(), Some("PASS" | "FAIL" | "INCONCLUSIVE")), "{out:?}");
    assert!(out.stdout.contains("accepted findings none -> A04"), "{out:?}");
    let again = measured("again.json", &sparse, "--accept A04");
    if ids(&again).2 {
        return;
    }
    let out = compare(&stage, &accepted, &again, "--fail-if-slower 90%");
    assert_eq!((first_word(&out).as_deref(), out.code), (Some("INVALID"), Some(1)), "{out:?}");
    let out = compare(&stage, &accepted, &again, "--fail-if-slower 90% --accept A04");
    assert_ne!(first_word(&out).as_deref(), Some("INVALID"), "{out:?}");
}
