//! Disturbed runs on real devices: bursts, permanent neighbours and changing limits are noticed, reported and measured again. The rules are
//! simulated in crate `analysis`, `strategy::disturbed`.

use crate::disk::{Disk, Image};
use crate::group::Group;
use crate::stage::{Report, Running, Stage, is_root};
use serde_json::Value;
use std::time::Duration;

const WORDS: &str = "run --rw randread --depth 1 --size 64m --time 1s --warmup 0 --runs 5 --format json";
/// Reads of another process, without end.
const NEIGHBOUR: &str = "while :; do dd if=data of=/dev/null bs=64k iflag=direct status=none; done";
/// After this time, a run of one second is still in its first half.
const INTO_A_RUN: Duration = Duration::from_millis(300);
const LIMIT: &str = "blkio.throttle.read_iops_device";

fn disk(stage: &Stage) -> Option<Disk> {
    let disk = if is_root() { Disk::new(stage, "ext4", Image::Direct)? } else { return None };
    disk.file("data", 32);
    disk.sh("sync");
    Some(disk)
}

/// The disturbed attempts of a result.
fn disturbed(result: &Value) -> &[Value] {
    result["disturbed"].as_array().map_or(&[], Vec::as_slice)
}

/// The disturbances of a run by one cause: attempt, and whether it counts.
fn by(report: &Report, run: u64, what: &str) -> Vec<(u64, bool)> {
    let of_run = disturbed(&report.0["results"][0]).iter().filter(|d| d["run"] == run);
    let by = of_run.filter(|d| d["by"].as_array().unwrap().iter().any(|b| b["what"] == what));
    by.map(|d| (d["attempt"].as_u64().unwrap(), d["counts"].as_bool().unwrap())).collect()
}

fn runs(result: &Value) -> usize {
    result["runs"].as_array().unwrap().len()
}

fn note(report: &Report, words: &str) -> bool {
    report.0["notes"].as_array().unwrap().iter().any(|n| n.as_str().unwrap().contains(words))
}

/// Waits until a run is in its first half.
fn within_run(running: &mut Running, words: &str) {
    running.wait_for_output(words);
    std::thread::sleep(INTO_A_RUN);
}

#[test]
fn a_disturbed_run_is_reported_and_repeated() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    let mut running = disk.start(&stage, WORDS, &disk.dir);
    // If the host takes CPU time, fathom repeats the first run. The neighbour then disturbs the repeat, which is repeated in turn if the
    // limit allows.
    running.wait_for_runs(2);
    std::thread::sleep(INTO_A_RUN);
    disk.sh(&format!("timeout 0.4 sh -c '{NEIGHBOUR}' || true"));
    let out = running.end();
    let report = out.report();
    assert!(
        out.stderr.contains("measured again: ") && out.stderr.contains("MB/s of other processes on loop"),
        "{out:?}"
    );
    let result = &report.0["results"][0];
    assert_eq!(runs(result), 5);
    // The disturbed attempt is the first or second run, or a repeat of the first one if the host took CPU time.
    let hit = (0..5).flat_map(|run| by(&report, run, "foreign_io").into_iter().map(move |at| (run, at)));
    let again: Vec<(u64, u64)> =
        hit.filter(|(_, (_, counts))| !counts).map(|(run, (at, _))| (run, at)).collect();
    assert!(matches!(again[..], [(0..=1, _), ..]), "{:#}", result["disturbed"]);
    assert!(note(&report, "of 5 runs") && report.has_answer("D27", "finding"), "{:#}", report.0["notes"]);
    assert_eq!(report.0, stage.show().report().0, "the session tells the same");
    let session = &stage.sessions()[0];
    let shown = stage.fathom(&format!("show --explain {}", session.display()), "".as_ref()).stdout;
    let (run, attempt) = again[0];
    let named = format!("run {}, attempt {}: ", run + 1, attempt + 1);
    assert!(shown.contains(&named) && shown.contains("left out: "), "{named}: {shown}");
}

#[test]
fn permanent_neighbour_is_named_without_repeats() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    let _neighbour = disk.spawn_sh(NEIGHBOUR);
    let out = disk.fathom(&stage, WORDS, &disk.dir);
    assert!(out.stderr.contains("the machine was busy before the first run: "), "{out:?}");
    let report = out.report();
    let result = &report.0["results"][0];
    assert_eq!((runs(result), disturbed(result).len()), (5, 5), "{:#}", result["disturbed"]);
    assert_eq!(by(&report, 0, "foreign_io"), [(0, true)]);
    assert_eq!(report.expect_answer("D27", "finding")["severity"], "biased");
    let busy: Vec<&str> =
        report.0["busy_machine"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    assert!(
        matches!(busy[..], [first, second] if first.contains("loop") && second.contains("not idle")),
        "{busy:?}"
    );
    assert_ne!(report.verdict(), "VALID");
    let shown = stage.fathom(&format!("show {}", stage.sessions()[0].display()), "".as_ref()).stdout;
    let head = shown.lines().take(8).collect::<Vec<_>>().join(" ");
    assert!(head.contains("the machine was busy"), "{shown}");
}

#[test]
fn limit_set_during_a_run_is_reported_and_waited_out() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    let Some(group) = Group::limited(&disk, &("blkio", LIMIT, "$NUMBER 1000000")) else { return };
    let set = |rate: u32| {
        let own = std::fs::read_dir(group.dir()).unwrap().map(|e| e.unwrap().path()).find(|p| p.is_dir());
        std::fs::write(own.unwrap().join(LIMIT), format!("{} {rate}", disk.number())).unwrap();
    };
    let enter = [disk.enter(), group.enter()].concat();
    let mut running = Running::start(&mut stage.command(&enter, WORDS, &disk.dir));
    within_run(&mut running, "run 2 of");
    set(500);
    // A progress line may also report stolen CPU time, before the words about the changed limit.
    within_run(&mut running, "a cgroup limit changed");
    set(1_000_000);
    let report = running.end().report();
    let result = &report.0["results"][0];
    assert_eq!(runs(result), 5);
    // If the host took CPU time, the second line announces another attempt at the first run.
    let reported: Vec<bool> =
        (0..5).flat_map(|run| by(&report, run, "limit_changed")).map(|(_, counts)| counts).collect();
    assert!(!reported.is_empty(), "{:#}", result["disturbed"]);
    // If the host or another program also disturbs the repeat, the attempt with the changed limit counts in the end.
    let is_alone = |run| ["stolen_cpu", "foreign_io"].iter().all(|what| by(&report, run, what).is_empty());
    if (0..5).all(is_alone) {
        assert_eq!(reported, [false, false], "{:#}", result["disturbed"]);
        assert!(!report.name().contains(" then "), "no cliff is left: {}", report.name());
    }
}

#[test]
#[ignore = "long"]
fn a_short_disturbance_of_bench_leaves_every_row_a_number() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    let mut running = disk.start(&stage, "bench --size 64m --time 500ms --format json", &disk.dir);
    running.wait_for_output("run 12 of");
    disk.sh(&format!("timeout 3 sh -c '{NEIGHBOUR}' || true"));
    // The 40 runs of a bench, some of them repeated, take longer than a test's usual limit on a busy machine.
    let report = running.end_within(Duration::from_secs(180)).report();
    let results = report.0["results"].as_array().unwrap();
    assert!(results.iter().all(|r| runs(r) == 5 && r["total"]["iops"].as_f64() > Some(0.0)));
    let reported: Vec<&Value> = results.iter().flat_map(disturbed).collect();
    let others = |d: &&&Value| d["why"].as_str().is_some_and(|why| why.contains("of other processes on"));
    assert!(
        reported.iter().filter(others).count() >= 3 && note(&report, "other load disturbed"),
        "{reported:#?}"
    );
    assert!(
        report.answers("D01").iter().all(|d01| d01["severity"] != "void"),
        "{:#?}",
        report.answers("D01")
    );
}

/// The progress lines that announce a run, beginning with the disturbed one.
fn runs_from<'a>(printed: &'a str, words: &str) -> Vec<&'a str> {
    let begins = |line: &&str| line.starts_with("run ") || line.starts_with("cell ");
    printed.lines().filter(begins).skip_while(|line| !line.contains(words)).collect()
}

/// Whether a run of a line of progress is measured again.
fn is_again(line: &str) -> bool {
    line.contains("measured again: ")
}

// If the host takes CPU time during every second run, fathom repeats no run, so the test needs a quiet machine.
#[test]
#[ignore = "long"]
fn a_disturbed_round_of_a_comparison_is_repeated() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    // Runs are longer than the burst, so that the burst hits one run.
    let length = "--size 32m --time 1s --runs 4";
    disk.fathom(&stage, &format!("run --rw randread --depth 1 {length} --warmup 0 --quiet"), &disk.dir);
    // For each command: words of the progress line at which the burst starts, and runs per round.
    for (words, at, round) in [
        (format!("layers --rw randread --depth 1 {length} --warmup 0"), "run 2 of", 3),
        (format!("run --against last --rw randread --depth 2 {length} --warmup 0"), "run 2 of", 2),
    ] {
        let mut running = disk.start(&stage, &format!("{words} --no-history --format json"), &disk.dir);
        within_run(&mut running, at);
        disk.sh(&format!("timeout 0.4 sh -c '{NEIGHBOUR}' || true"));
        let out = running.end();
        let after = runs_from(&out.stderr, at);
        let first =
            after.iter().position(|line| is_again(line)).unwrap_or_else(|| panic!("{words}: {out:?}"));
        assert!(first < round, "{words}: at the end of the round: {after:#?}");
        assert!(
            after.len() >= first + round && after[first..first + round].iter().all(|l| is_again(l)),
            "{after:#?}"
        );
        let all = out.report();
        assert!(note(&all, "other load disturbed"), "{words}: {:#}", all.0["notes"]);
    }
}

#[test]
#[ignore = "long"]
fn disturbed_loads_repeat_at_once_and_cells_before_the_next_round() {
    let stage = Stage::watching();
    let Some(disk) = disk(&stage) else { return };
    let burst = |words: &str, at: &str| {
        let mut running = disk.start(&stage, &format!("{words} --no-history --format json"), &disk.dir);
        within_run(&mut running, at);
        disk.sh(&format!("timeout 0.4 sh -c '{NEIGHBOUR}' || true"));
        running.end_within(Duration::from_secs(180))
    };
    let limit = "limit --rw randread --depth 4 --p99 50ms --size 32m --time 500ms --warmup 0 --runs 1";
    let out = burst(limit, "loads at");
    let loads = runs_from(&out.stderr, "loads at");
    let load =
        |line: &str| line.split_once("loads at ").and_then(|(_, l)| l.split_once("/s")).unwrap().0.to_owned();
    assert!(is_again(loads[1]) && load(loads[0]) == load(loads[1]), "{loads:#?}");

    // One of four cells is disturbed. If a third of all runs were disturbed, fathom would repeat none.
    let sweep = "sweep --rw randread --bs 4k --depth 1,2,4,8 --workers 1 --exhaustive --size 32m --time 500ms --runs 3";
    let out = burst(sweep, "cell 1 of");
    let cells = runs_from(&out.stderr, "cell 1 of");
    assert!(cells[1..=4].iter().any(|l| is_again(l)), "{cells:#?}");
    assert!(note(&out.report(), "other load disturbed"), "{}", out.stdout);
}
