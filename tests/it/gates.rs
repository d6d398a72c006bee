//! Conditions and gates: how inconclusive answers count, how they are settled, and detection of slowdowns against a baseline. The long tests
//! provoke a known slowdown.

use crate::disk::{Device, Disk, Image};
use crate::group::Group;
use crate::long;
use crate::stage::{Outcome, Stage, is_root, wait_long};
use serde_json::Value;
use std::path::Path;

/// A run has about a hundred random arrivals, so runs differ by about a tenth.
const NOISY: &str = "run --engine sim --rate 100 --time 1s --warmup 0 --seed 7 --quiet";
/// The simulated device, which never varies.
const SIM: &str = "run --engine sim --time 50ms --warmup 0 --seed 7 --quiet";

fn nothing() -> &'static Path {
    Path::new("")
}

fn runs(report: &Value) -> usize {
    report["results"][0]["runs"].as_array().map_or(0, Vec::len)
}

#[track_caller]
fn check_outcome(out: &Outcome, code: i32, first: &str) {
    assert!(out.code == Some(code) && out.stdout.starts_with(first), "{first}: {out:?}");
}

#[test]
fn inconclusive_results_count_as_configured_and_keep_their_verdict() {
    let stage = Stage::shared();
    let near = format!("{NOISY} --fail-if iops<100");
    check_outcome(&stage.fathom(&near, nothing()), 4, "INCONCLUSIVE  IOPS of ");
    check_outcome(
        &stage.fathom(&format!("{near} --inconclusive pass"), nothing()),
        0,
        "INCONCLUSIVE (counts as PASS)  ",
    );
    let fail = stage.fathom(&format!("{near} --inconclusive fail --format json"), nothing());
    let report = fail.report().0;
    assert_eq!(
        (fail.code, &report["answer"]["word"], &report["counts_as"]),
        (Some(1), &"INCONCLUSIVE".into(), &"FAIL".into())
    );
    assert!(report["gates"][0]["runs_needed"].as_u64().is_none_or(|n| n > 5), "{}", report["gates"]);
    check_outcome(
        &stage.fathom("show last --inconclusive pass", nothing()),
        0,
        "INCONCLUSIVE (counts as PASS)  ",
    );
    for brief in ["--brief", "--brief --format markdown"] {
        let out = stage.fathom(&format!("show last --inconclusive pass {brief}"), nothing());
        assert!(out.stdout.trim_start_matches('*').starts_with("INCONCLUSIVE"), "{brief}: {out:?}");
    }
    let markdown = stage.fathom("show last --inconclusive fail --format markdown", nothing());
    check_outcome(&markdown, 1, "**INCONCLUSIVE** (counts as FAIL) IOPS of ");
    // --inconclusive does not change a conclusive answer.
    check_outcome(
        &stage.fathom(&format!("{NOISY} --fail-if iops<1 --inconclusive fail"), nothing()),
        0,
        "PASS  ",
    );
    check_outcome(
        &stage.fathom(&format!("{NOISY} --fail-if iops<1m --inconclusive pass"), nothing()),
        1,
        "FAIL  ",
    );
    // --inconclusive without a condition is refused.
    let sessions = stage.sessions().len();
    for words in [format!("{SIM} --inconclusive pass"), "recipe kafka --inconclusive pass".into()] {
        let out = stage.fathom(&words, nothing());
        assert!(out.code == Some(2) && out.stderr.contains("--fail-if"), "{out:?}");
    }
    assert_eq!(stage.sessions().len(), sessions, "refused before anything was measured");
    stage.fathom(SIM, nothing());
    assert_eq!(stage.fathom("show last --inconclusive pass", nothing()).code, Some(2));
}

#[test]
fn inconclusive_gates_are_settled_by_the_requested_number_of_runs() {
    let stage = Stage::shared();
    let near = format!("{NOISY} --fail-if iops<92 --format json");
    let once = stage.fathom(&near, nothing());
    let report = once.report().0;
    let sentence = report["gates"][0]["sentence"].as_str().unwrap();
    assert!(once.code == Some(4) && sentence.contains("(--settle, or --runs "), "{sentence}");
    let settled = stage.fathom(&format!("{near} --settle"), nothing());
    let report = settled.report().0;
    assert_eq!((settled.code, &report["answer"]["word"]), (Some(0), &"PASS".into()), "{:#}", report["gates"]);
    assert!(
        (6..=50).contains(&runs(&report)) && report["gates"][0]["runs"] == runs(&report),
        "{}",
        report["gates"]
    );
    let notes = report["notes"].to_string();
    assert!(notes.contains("settle: the first 5 runs did not decide"), "{notes}");
    assert_eq!(stage.sessions().len(), 2, "it is one session");
    assert_eq!(stage.fathom("show last --format json", nothing()).report().0, report);
    // --settle causes no further runs if the answer is conclusive, or if more runs cannot settle it.
    let far = stage.fathom(&format!("{NOISY} --fail-if iops<50 --settle --format json"), nothing());
    assert_eq!((far.code, runs(&far.report().0)), (Some(0), 5));
    let notes = far.report().0["notes"].to_string();
    assert!(
        notes.contains("settle: stopped after the first 5 of at most 50 runs, because they decided"),
        "{notes}"
    );
    let none = stage.fathom(&format!("{NOISY} --fail-if p99.99>1s --settle --format json"), nothing());
    assert_eq!((none.code, runs(&none.report().0)), (Some(4), 8), "too few operations for it");
}

#[test]
fn layers_and_api_rows_accept_conditions() {
    let stage = Stage::new();
    let folder = stage.folder("here");
    let layers = "layers --rw randread --size 16m --time 100ms --warmup 0 --quiet --format json";
    let report = stage.fathom(&format!("{layers} --fail-if iops<1"), &folder).report().0;
    let gates = report["gates"].as_array().unwrap();
    let row = |word: &str| gates.iter().find(|g| g["result"].as_str().unwrap().contains(word)).unwrap();
    assert_eq!(row(" direct: ")["word"], "PASS", "{gates:#?}");
    assert!(row(" buffered: ")["sentence"].is_string(), "each row by itself: {gates:#?}");
    let wrong = stage.fathom(&format!("{layers} --fail-if nothing:iops<1"), &folder);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("no result has this name"), "{wrong:?}");
    let api = "api --bs 64k --rw read --interface pread,read --size 16m --quiet";
    check_outcome(&stage.fathom(&format!("{api} --fail-if mb/s<1000000"), &folder), 1, "FAIL  ");
    let plan = stage.fathom(&format!("{api} --fail-if p99>10ms --explain"), &folder).stdout;
    assert!(plan.contains("--fail-if has a percentile"), "{plan}");
}

#[test]
fn limit_and_sweep_accept_conditions_about_their_answers() {
    let stage = Stage::shared();
    let limit = "limit --engine sim:servers=4 --time 400ms --warmup 0 --runs 3 --quiet --format json";
    let gate = |words: &str, condition: &str| {
        let mut command = stage.command(&[], &format!("{words} --fail-if"), nothing());
        let mut report = crate::stage::wait(command.arg(condition)).report().0;
        let (word, sentence) = (report["answer"]["word"].take(), report["answer"]["sentence"].take());
        let mut gates = report["gates"].take();
        let results: Vec<Value> = gates.as_array().unwrap().iter().map(|g| g["result"].clone()).collect();
        (word.as_str().unwrap().to_owned(), sentence.to_string(), gates[0].take(), results)
    };
    // Four servers with 100 us each: 40,000 operations per second. A latency limit of several service times allows almost as many.
    let (word, sentence, met, _) = gate(&format!("{limit} --p90 5ms"), "iops<30000");
    assert_eq!(word, "PASS", "{met:#}");
    assert!(
        met["value"].as_f64().unwrap() >= 30_000.0 && sentence.contains("p90 within 5.00 ms holds"),
        "{met:#}"
    );
    let (word, _, missed, _) = gate(&format!("{limit} --p90 5ms"), "mb/s<200");
    assert_eq!((word.as_str(), &missed["unit"]), ("FAIL", &"MB/s".into()), "{missed:#}");
    // Without a latency target, the condition applies to the capacity, not to the offered loads.
    let (word, _, capacity, of) = gate(limit, "iops<39000");
    assert_eq!((word.as_str(), of.len()), ("PASS", 1), "{capacity:#}");
    let sweep = "sweep --engine sim --bs 4k,64k --depth 1,4 --time 60ms --quiet --format json";
    let (word, _, winner, of) = gate(sweep, "mb/s<2000");
    let read_and_write = ["read 4 x 64K direct, sim", "write 4 x 64K direct, sim"];
    assert_eq!((word.as_str(), of), ("PASS", read_and_write.map(Value::from).to_vec()), "{winner:#}");
    assert_eq!(winner["runs"], 5, "the runs that did not choose the winner: {winner:#}");
    let (word, _, cell, of) =
        gate(&format!("{sweep} --exhaustive --runs 3"), "read 1 x 4K direct, sim: mb/s<2000");
    assert_eq!((word.as_str(), of.len()), ("FAIL", 1), "{cell:#}");
    for (words, printed) in [
        ("limit --engine sim --fail-if p99>1ms", "--p99 10ms --fail-if"),
        ("limit --engine sim --fail-if x:iops<1", "leave the name out"),
        ("sweep --engine sim --bs 4k --fail-if p99>1ms", "a percentile requires 8"),
    ] {
        let out = stage.fathom(words, nothing());
        assert!(out.code == Some(2) && out.stderr.contains(printed), "{words}: {out:?}");
    }
}

#[test]
fn settling_stops_at_the_limit_and_reports_it() {
    let stage = Stage::shared();
    let words = format!("{NOISY} --fail-if iops<92 --settle --max-runs 6");
    let out = stage.fathom(&words, nothing());
    check_outcome(&out, 4, "INCONCLUSIVE  IOPS of ");
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = unwrapped(&out.stdout);
    assert!(printed.contains("over 6 runs") && printed.contains("(--max-runs "), "{printed}");
    let plan = stage.fathom(&format!("{NOISY} --fail-if p99>1ms --settle --explain"), nothing()).stdout;
    let plan = unwrapped(&plan);
    assert!(plan.contains("8 runs; if they do not decide, more runs up to 80 in total"), "{plan}");
    let job = stage.path("job.toml");
    std::fs::write(&job, "engine = \"sim\"\nfail-if = \"iops<5\"\nsettle = true\nmax-runs = 30\n").unwrap();
    let plan = unwrapped(&stage.fathom("run --explain", &job).stdout);
    assert!(plan.contains("5 runs; if they do not decide, more runs up to 30 in total"), "{plan}");
}

#[test]
fn against_an_earlier_session_slower_fails_and_equal_passes() {
    let stage = Stage::shared();
    assert_eq!(stage.fathom(&format!("{SIM} --depth 8"), nothing()).code, Some(0));
    let first = stage.sessions().remove(0);
    let against = format!("--against {} --fail-if-slower 5%", first.display());
    let slower = stage.fathom(&format!("{SIM} --depth 4 {against}"), nothing());
    check_outcome(&slower, 1, "FAIL  Slower by more than 5.0 %: ");
    check_outcome(
        &stage.fathom(&format!("{SIM} --depth 8 {against}"), nothing()),
        0,
        "PASS  Not slower by more than 5.0 %: ",
    );
    // The worst of all conditions is the answer.
    let both = stage.fathom(&format!("{SIM} --depth 8 {against} --fail-if iops<100m"), nothing());
    check_outcome(&both, 1, "FAIL  IOPS of ");
    for (words, expected) in [
        (format!("{SIM} --fail-if-slower 5%"), "--against"),
        (format!("{SIM} --settle --against last"), "--fail-if"),
        (format!("{SIM} --against last --fail-on all"), "--fail-if-slower"),
    ] {
        let out = stage.fathom(&words, nothing());
        assert!(out.code == Some(2) && out.stderr.contains(expected), "{words}: {out:?}");
    }
}

#[test]
fn both_sides_alternate_until_the_comparison_is_settled() {
    let stage = Stage::shared();
    // One server at half load: the waiting times of the slowest operations vary by chance.
    let queue = "run --engine sim:servers=1 --depth 64 --rate 5k --time 200ms --warmup 0 --seed 7";
    assert_eq!(stage.fathom(&format!("{queue} --quiet"), nothing()).code, Some(0));
    let words = format!("{queue} --against last --fail-if-slower 3% --settle --format json");
    let out = stage.fathom(&words, nothing());
    let report = out.report().0;
    let again = &report["against"]["again"];
    assert!(runs(&report) > 5 && runs(again) == runs(&report), "{} {}", runs(&report), runs(again));
    let order: Vec<bool> =
        out.stderr.lines().filter(|l| l.starts_with("run ")).map(|l| l.contains(", again")).collect();
    // In a pipe, not every run after the tenth has a line.
    assert!(order.len() >= 10 && order[..10].chunks(2).all(|round| round[0] != round[1]), "{order:?}");
    // Both sides do the same work, so the gate must not fail.
    assert_ne!(report["answer"]["word"], "FAIL", "{:#}", report["answer"]);
    assert_eq!(report["against"]["beside"]["gate"]["limit"], 0.03);
}

/// Slowdowns of the other side, in percent.
const SLOWER: [u32; 4] = [0, 3, 10, 20];
/// The accepted slowdown.
const ALLOWED: u32 = 5;
/// Operations per second of the first side: so few that waiting for the throttle takes longer than the disk itself.
const RATE: u32 = 1000;
/// Short runs, which the throttle makes equal.
const THROTTLED: &str =
    "run --rw randread --depth 1 --size 32m --time 300ms --warmup 100ms --runs 5 --attempts 1 --quiet";
const LIMIT: &str = "blkio.throttle.read_iops_device";

/// Two disks with these limits, for processes in the group.
fn limited(a: &Disk, b: &Disk, percent: u32) -> Option<Group> {
    let group = Group::limited(a, &("blkio", LIMIT, &format!("$NUMBER {RATE}")))?;
    let of_b = format!("{} {}", b.number(), RATE * (100 - percent) / 100);
    std::fs::write(group.dir().join(LIMIT), of_b).unwrap();
    Some(group)
}

/// A session on a disk, with its report as JSON.
fn session(stage: &Stage, group: &Group, disk: &Disk, words: &str) -> Outcome {
    wait_long(&mut stage.command(&group.enter(), &format!("{THROTTLED} {words}"), &disk.device))
}

/// The gate's answer for a session on each disk.
fn apart(stage: &Stage, group: &Group, [a, b]: [&Disk; 2]) -> String {
    let [of_a, of_b] = [(a, "a.json"), (b, "b.json")].map(|(disk, name)| {
        let to = stage.path(name);
        let out = session(stage, group, disk, &format!("--no-history -o {}", to.display()));
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        to.display().to_string()
    });
    let out = stage.fathom(&format!("compare {of_a} {of_b} --fail-if-slower {ALLOWED}%"), nothing());
    out.stdout.split_whitespace().next().unwrap_or_default().to_owned()
}

/// The answer of a gate with `--settle`: measures the first disk's session again, alternating with the second disk.
fn in_turns(stage: &Stage, group: &Group, [a, b]: [&Disk; 2]) -> String {
    let before = session(stage, group, a, "");
    assert!(matches!(before.code, Some(0 | 1)), "{before:?}");
    let last = stage.sessions().pop().unwrap();
    let words = format!("--against {} --fail-if-slower {ALLOWED}% --settle --format json", last.display());
    let report = session(stage, group, b, &words).report().0;
    println!("  {} over {} runs: {}", report["answer"]["word"], runs(&report), report["answer"]["sentence"]);
    report["answer"]["word"].as_str().unwrap_or_default().to_owned()
}

/// Repeats the comparison at each slowdown, prints the table of answers, and fails if too many answers are wrong.
fn table(title: &str, times: usize, ask: fn(&Stage, &Group, [&Disk; 2]) -> String) {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let disk = |name: &str| {
        let image = stage.file(name, 32);
        Disk::bare(&stage, Some(Device::on(&image, Image::Direct)?))
    };
    let (Some(a), Some(b)) = (disk("a"), disk("b")) else { return };
    println!("{title}, {ALLOWED} % allowed, {times} times each\nslower  PASS  FAIL  INCONCLUSIVE");
    for percent in SLOWER {
        let Some(group) = limited(&a, &b, percent) else { return };
        let words: Vec<String> = (0..times).map(|_| ask(&stage, &group, [&a, &b])).collect();
        let [pass, fail, open] =
            ["PASS", "FAIL", "INCONCLUSIVE"].map(|word| words.iter().filter(|w| *w == word).count());
        println!("{percent:4} %  {pass:4}  {fail:4}  {open:12}");
        assert_eq!(pass + fail + open, times, "{words:?}");
        let (most_pass, most_fail) = match percent {
            // Without a slowdown, at most one of twenty comparisons may fail.
            0 => (times, times / 20),
            3 => (times, times.div_ceil(10)),
            _ => (0, times),
        };
        assert!(pass <= most_pass && fail <= most_fail, "{percent} % slower: {words:?}");
    }
}

#[test]
#[ignore = "long"]
fn sessions_with_a_known_slowdown_are_distinguished() {
    table("two sessions", long::pairs(), apart);
}

#[test]
#[ignore = "long"]
fn known_slowdown_is_settled_by_alternating_runs() {
    // Without a difference between the sides, each comparison takes more than a minute.
    table("in turns, with --settle", long::pairs().div_ceil(2), in_turns);
}
