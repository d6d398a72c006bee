//! Recipes, which answer PASS, FAIL or INCONCLUSIVE for an application, and conditions of other jobs.

use crate::disk::{Disk, Image, with_high_priority};
use crate::group::Group;
use crate::stage::{Outcome, Stage, is_root, undisturbed, wait, wait_long};
use serde_json::Value;
use std::path::Path;

/// Short runs without repeats: these tests only check the answer.
const SHORT: &str = "--time 400ms --attempts 1 --quiet";

fn nothing() -> &'static Path {
    Path::new("")
}

/// The answer, and its only gate.
#[track_caller]
fn answer(out: &Outcome) -> (String, Value) {
    let report = out.report().0;
    let gates = report["gates"].as_array().unwrap_or_else(|| panic!("no gates: {out:?}"));
    assert_eq!(gates.len(), 1, "{gates:#?}");
    assert_eq!(report["answer"]["word"], gates[0]["word"]);
    (report["answer"]["word"].as_str().unwrap().to_owned(), gates[0].clone())
}

/// Names of all recipes.
fn names(stage: &Stage) -> Vec<String> {
    let list = stage.fathom("recipe", nothing());
    assert_eq!((list.code, list.stderr.as_str()), (Some(0), ""), "{list:?}");
    let named = list.stdout.lines().filter(|line| !line.starts_with(' '));
    named.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn recipes_are_listed_and_explained_with_their_source() {
    let stage = Stage::shared();
    let dir = stage.folder("dir");
    let names = names(&stage);
    assert!(names.iter().any(|n| n == "etcd") && names.len() > 10, "{names:?}");
    for name in &names {
        let out = stage.fathom(&format!("recipe {name} --explain"), &dir);
        assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
        assert!(out.stdout.contains("# Source: http"), "{}", out.stdout);
        assert!(out.stdout.contains(&format!("recipe {name}: 1 workload")), "{}", out.stdout);
    }
    let etcd = stage.fathom("recipe etcd --explain", &dir).stdout;
    for words in ["sync.p99>10ms", "recipe etcd", "default: --fail-if has a percentile"] {
        assert!(etcd.contains(words), "{words}: {etcd}");
    }
    // On an existing file too, the recipe is the origin of its size.
    let file = dir.join("file");
    let made = std::fs::File::create(&file).and_then(|file| file.set_len(64 << 20));
    assert!(made.is_ok(), "{made:?}");
    let recipe = format!("recipe etcd --destroy {} --explain", file.display());
    for (words, origin) in [(recipe.as_str(), "recipe etcd"), ("run --size 8m --explain", "command line")] {
        let shown = stage.fathom(words, &file);
        let size = shown.stdout.lines().find(|line| line.starts_with("--size"));
        assert!(size.is_some_and(|line| line.ends_with(origin)), "{words}: {shown:?}");
    }
    assert!(stage.sessions().is_empty());
}

#[test]
fn unknown_recipes_and_list_options_are_refused() {
    let stage = Stage::shared();
    let unknown = stage.fathom("recipe etdc", nothing());
    assert!(unknown.code == Some(2) && unknown.stderr.contains("etcd"), "{unknown:?}");
    for words in ["recipe --runs 8", "recipe --explain", "recipe --quiet", "recipe --format json"] {
        let out = stage.fathom(words, nothing());
        assert!(out.code == Some(2) && out.stderr.contains("NAME"), "{out:?}");
    }
    let workload = stage.fathom("recipe etcd --bs 4k", nothing());
    assert_eq!(workload.code, Some(2), "{workload:?}");
}

#[test]
fn every_recipe_runs() {
    let stage = Stage::shared();
    let dir = stage.folder("dir");
    for name in names(&stage) {
        // Skip jobs with phases, because each phase has its own time.
        let phased = ["mysql", "ccsio", "six-patterns", "bypass-cache"].contains(&name.as_str());
        if phased {
            continue;
        }
        let runs = if name == "etcd" { "" } else { "--runs 1" };
        let words = format!("recipe {name} {runs} --time 200ms --attempts 1 --quiet --format json");
        let out = stage.fathom(&words, &dir);
        let report = out.report();
        assert_eq!(report.0["title"], format!("recipe {name}"), "{out:?}");
        assert!(!report.0["results"].as_array().unwrap().is_empty() && out.stderr.is_empty(), "{out:?}");
        assert!(matches!(out.code, Some(0 | 1 | 4)), "{out:?}");
    }
}

#[test]
fn etcd_passes_on_a_fast_disk_and_fails_on_a_throttled_one() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    // Any disk meets this limit, and a short run has enough syncs to prove it.
    let easy = format!("recipe etcd {SHORT} --format json --fail-if sync.p90>5s");
    let fast = undisturbed(|| wait(&mut with_high_priority(&stage.command(&disk.enter(), &easy, &disk.dir))));
    let (word, gate) = answer(&fast);
    if fast.report().is_disturbed() {
        assert_eq!(word, "INCONCLUSIVE", "{gate:#}");
    } else {
        assert_eq!((word.as_str(), &gate["runs"]), ("PASS", &8.into()), "{gate:#}");
        let bound = |at: usize| gate["bounds"][at].as_f64().unwrap();
        assert!(bound(0) <= gate["value"].as_f64().unwrap() && bound(1) < 5e9, "{gate:#}");
    }

    let throttle = ("blkio", "blkio.throttle.write_iops_device", "$NUMBER 40");
    let Some(group) = Group::limited(&disk, &throttle) else { return };
    let prefix = [disk.enter(), group.enter()].concat();
    let words = format!("recipe etcd {SHORT} --format json");
    let slow = wait_long(&mut with_high_priority(&stage.command(&prefix, &words, &disk.dir)));
    let (word, gate) = answer(&slow);
    assert_eq!((word.as_str(), slow.code), ("FAIL", Some(1)), "{gate:#}");
    assert_eq!((&gate["condition"], &gate["limit"]), (&"sync.p99>10ms".into(), &1e7.into()));
    let text = stage.fathom("show", stage.sessions().last().unwrap());
    assert!(
        text.stdout.starts_with("FAIL  sync p99 of etcd is above the limit of 10.0 ms"),
        "{}",
        text.stdout
    );
}

#[test]
fn page_cache_does_not_pass_a_recipe() {
    if !is_root() {
        return;
    }
    let stage = Stage::one_per_cpu();
    let file = stage.file("data", 16);
    let words = format!(
        "run --rw randread --cache buffered --engine sync --depth 1 {SHORT} --format json --fail-if p99>1s"
    );
    let run = |words: &str| wait(&mut with_high_priority(&stage.command(&[], words, &file)));
    let out = run(&words);
    let (word, gate) = answer(&out);
    assert_eq!((word.as_str(), out.code), ("INVALID", Some(1)), "{gate:#}");
    assert!(gate["sentence"].as_str().unwrap().contains("--accept A01"), "{gate:#}");
    // If the CPU limits the rate, D06 must be accepted too.
    let out = run(&format!("{words} --accept A01 --accept D06"));
    let answered = answer(&out).0;
    let by_others = answered == "INVALID" && out.code == Some(1);
    assert!((answered == "PASS" && out.code == Some(0)) || by_others, "{out:?}");
}

#[test]
fn conditions_pass_fail_or_are_refused_without_a_value() {
    let stage = Stage::shared();
    let sim = "run --rw randread --engine sim --depth 1 --time 100ms --warmup 0 --quiet --format json";
    // The simulated device serves one operation in 100 us.
    for (condition, word, code) in [
        ("p99>1s", "PASS", 0),
        ("p99>1us", "FAIL", 1),
        ("iops<1", "PASS", 0),
        ("iops<1m", "FAIL", 1),
        ("mb/s<1", "PASS", 0),
    ] {
        let out = stage.fathom(&format!("{sim} --fail-if {condition}"), nothing());
        assert_eq!((answer(&out).0.as_str(), out.code), (word, Some(code)), "{condition}: {out:?}");
    }
    for (condition, words) in [
        ("sync.p99>1ms", "no job that does a sync"),
        ("other:p99>1ms", "no result has this name"),
        ("p99<1ms", "type >"),
        ("p98>1ms", "not a condition"),
        ("p99>1ms --runs 3", "--runs 8"),
    ] {
        let out = stage.fathom(&format!("{sim} --fail-if {condition}"), nothing());
        assert!(out.code == Some(2) && out.stderr.contains(words), "{condition}: {out:?}");
    }
}
