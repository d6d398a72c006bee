//! `sweep` and `api` on a disk, in memory, on an encrypting file system and over the network: what they report there. On a busy machine the
//! numbers may be withheld.

use crate::disk::{Disk, Image};
use crate::stage::{Outcome, Report, Stage, is_root, wait_long};
use serde_json::Value;

const GRID: &str =
    "sweep --bs 16k,64k --depth 1,4 --size 16m --time 250ms --budget 10s --quiet --format json";
/// All interfaces, with short rows.
const TABLE: &str = "api --all --bs 4k --size 16m --runs 1 --time 300ms --quiet --format json";

const MEMORY: &str = "mount -t tmpfs -o size=256m none \"$1\"";
const ENCRYPTED: &str = "mkdir kept; echo secret > word; gocryptfs -init -q -passfile word kept; \
     gocryptfs -q -nosyslog -passfile word kept \"$1\" 2> log";
/// An ssh server on loopback with its own keys, and a private directory on /run.
const NETWORK: &str = "mkdir kept; mount -t tmpfs none /run; mkdir /run/sshd; \
     for key in host mine; do ssh-keygen -q -t ed25519 -N '' -f $key; done; \
     \"$(command -v sshd)\" -f /dev/null -E log -o ListenAddress=127.0.0.1 -o Port=$3 -o HostKey=$PWD/host \
       -o AuthorizedKeysFile=$PWD/mine.pub -o StrictModes=no -o UsePAM=no -o PidFile=none \
       -o Subsystem='sftp internal-sftp'; \
     sshfs -F /dev/null -p $3 -o IdentityFile=$PWD/mine,IdentitiesOnly=yes,LogLevel=ERROR \
       -o StrictHostKeyChecking=no,UserKnownHostsFile=/dev/null root@127.0.0.1:$PWD/kept \"$1\"";

/// Checks that need a visible device.
const OF_DEVICES: &[&str] =
    &["A01", "A09", "A12", "A13", "A22", "B01", "B02", "B03", "B04", "C01", "C03", "D01", "D05"];

fn memory(stage: &Stage) -> Option<Disk> {
    Disk::served(stage, &[], MEMORY)
}

fn encrypted(stage: &Stage) -> Option<Disk> {
    Disk::served(stage, &["gocryptfs"], ENCRYPTED)
}

fn network(stage: &Stage) -> Option<Disk> {
    Disk::served(stage, &["ssh", "sshd", "sshfs", "ssh-keygen"], NETWORK)
}

/// Runs a command at the place without a time limit. Fails on a panic, or if an invalid number does not give exit code 1.
fn run_there(stage: &Stage, disk: &Disk, words: &str) -> Report {
    let out: Outcome = wait_long(&mut stage.command(&disk.enter(), words, &disk.dir));
    assert!(matches!(out.code, Some(0 | 1)), "{words}: {out:?}");
    assert!(!out.stdout.contains("panicked") && !out.stderr.contains("panicked"), "{words}: {out:?}");
    let report = out.report();
    assert_eq!(report.0["ending"]["how"], "complete", "{words}: {}", out.stderr);
    report
}

/// Names of the winners: for reads and for writes.
fn winners(report: &Report) -> Vec<&str> {
    let name = |work: &str| {
        let winner = &report.0["sweep"]["winner"][work];
        let at = winner["result"]
            .as_u64()
            .unwrap_or_else(|| panic!("no winner for {work}: {:#}", report.0["sweep"]));
        report.0["results"][at as usize]["true_name"].as_str().unwrap()
    };
    ["read", "write"].map(name).to_vec()
}

/// Fails if one of these checks has a finding about a cell or row. Ignores the rows of `cp` and `dd`, which always use the page cache.
#[track_caller]
fn assert_no_finding(report: &Report, ids: &[&str]) {
    let is_theirs =
        |name: &Value| name.as_str().is_some_and(|n| n.starts_with("cp: ") || n.starts_with("dd: "));
    for id in ids {
        for found in report.answers(id).into_iter().filter(|f| f["outcome"] == "finding") {
            assert!(found["about"].as_array().unwrap().iter().all(is_theirs), "{found:#}");
        }
    }
}

/// Fails unless no device is visible: no check that needs a device has a finding or holds.
#[track_caller]
fn assert_no_visible_device(report: &Report) {
    assert_no_finding(report, OF_DEVICES);
    for id in OF_DEVICES {
        assert!(!report.has_answer(id, "holds"), "{id}: {:#?}", report.answers(id));
    }
}

fn rows(report: &Report) -> &Vec<Value> {
    report.0["api"]["rows"].as_array().unwrap()
}

fn row<'r>(report: &'r Report, interface: &str) -> &'r Value {
    let found = rows(report).iter().find(|r| r["interface"] == interface);
    found.unwrap_or_else(|| panic!("no row {interface}: {:#}", report.0["api"]))
}

/// Why an interface has no row, in any direction.
fn missing(report: &Report, interface: &str) -> String {
    let all = report.0["api"]["missing"].as_array().unwrap().iter().map(|m| m.as_str().unwrap());
    let mine: Vec<&str> = all.filter(|m| m.starts_with(&format!("{interface}, "))).collect();
    assert!(
        !mine.is_empty() && rows(report).iter().all(|r| r["interface"] != interface),
        "{interface}: {mine:?}"
    );
    mine.join("; ")
}

/// Properties of the table on any storage: calls are counted, and missing rows have known reasons.
#[track_caller]
fn assert_counts_calls(report: &Report, call: &str) {
    // 1 MiB in blocks of 4 KiB takes 256 calls of pread or pwrite, and none with a mapping.
    for (interface, least, most) in [(call, 255.9, 256.5), ("mmap", 0.0, 8.0)] {
        let calls = &row(report, interface)["calls_per_mib"];
        let reported = calls["Ok"].as_f64().is_some_and(|c| (least..=most).contains(&c));
        // If the target is too slow for a meaningful trial, the report has the reason instead of a count.
        assert!(
            reported || calls["Err"].as_str().is_some_and(|w| w.contains("moved only")),
            "{interface}: {calls}"
        );
    }
    let polling = missing(report, "io_uring IOPOLL");
    assert!(["poll", "no direct I/O"].iter().any(|why| polling.contains(why)), "{polling}");
    let all = report.0["api"]["missing"].as_array().unwrap();
    assert!(rows(report).len() + all.len() >= 35, "{:#}", report.0["api"]);
    for text in all.iter().map(|m| m.as_str().unwrap()) {
        let (_, why) = text.split_once(": ").unwrap_or_else(|| panic!("no reason: {text}"));
        assert!(why.len() > 20, "{text}");
    }
}

#[test]
#[ignore = "long"]
fn sweep_of_a_disk_keeps_its_ledger_and_names_the_page_cache() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let report = run_there(&stage, &disk, &format!("{GRID} --cache direct"));
    for name in winners(&report) {
        assert!(name.contains("direct") && !name.contains("memory") && !name.contains("fuse"), "{name}");
    }
    assert_no_finding(
        &report,
        &["A01", "A03", "A04", "A05", "A09", "A11", "A12", "A13", "A22", "B01", "D24"],
    );
    for id in ["A03", "A11", "A22", "D24"] {
        report.expect_answer(id, "holds");
    }
    // Written data stay in memory for longer than these runs.
    let cached = run_there(&stage, &disk, &format!("{GRID} --cache buffered --rw write"));
    assert_eq!(cached.expect_answer("A09", "finding")["severity"], "rename");
    assert_no_finding(&cached, &["A03", "A11", "A13", "D24"]);
}

#[test]
fn sweep_of_memory_is_named_and_uses_no_direct_io() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = memory(&stage) else { return };
    let report = run_there(&stage, &disk, GRID);
    for name in winners(&report) {
        assert!(name.contains("memory (tmpfs)") && !name.contains("direct"), "{name}");
    }
    assert_eq!(report.expect_answer("A11", "finding")["severity"], "rename");
    assert_ne!(report.verdict(), "VALID");
    assert_no_visible_device(&report);
    assert_no_finding(&report, &["A03", "C05", "D24"]);
    // Many cells with the same problem share one note.
    let notes = report.0["notes"].as_array().unwrap();
    let stayed = |n: &&str| n.contains("remained in the page cache") && n.contains("others");
    assert_eq!(notes.iter().filter_map(serde_json::Value::as_str).filter(stayed).count(), 1, "{notes:#?}");
    let direct = run_there(&stage, &disk, &format!("{GRID} --rw read --cache direct"));
    assert_eq!(direct.expect_answer("A03", "finding")["severity"], "rename");
    // A full target is refused by both commands with the same message, with or without a size.
    disk.sh("head -c 245M /dev/zero > fill");
    for words in ["sweep", "api", "api --size 100m"] {
        let full = disk.fathom(&stage, words, &disk.dir);
        assert!(full.code == Some(3) && full.stderr.contains("make room"), "{full:?}");
    }
}

#[test]
fn sweep_of_an_encrypting_file_system_names_the_program() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = encrypted(&stage) else { return };
    elsewhere(&stage, &disk, "encrypted through fuse.gocryptfs", "encrypts");
}

#[test]
fn sweep_over_the_network_is_named() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = network(&stage) else { return };
    elsewhere(&stage, &disk, "over the network through fuse.sshfs", "from a server");
}

fn elsewhere(stage: &Stage, disk: &Disk, name: &str, why: &str) {
    let report = run_there(stage, disk, &format!("{GRID} --cache direct,buffered"));
    for winner in winners(&report) {
        assert!(winner.contains(name), "{winner}");
    }
    let found = report.expect_answer("D24", "finding");
    assert!(found["severity"] == "rename" && found["sentence"].as_str().unwrap().contains(why), "{found:#}");
    report.expect_answer("C05", "finding");
    assert_ne!(report.verdict(), "VALID");
    assert_no_visible_device(&report);
    assert_no_finding(&report, &["A03", "A11"]);
}

#[test]
fn api_on_a_disk_reports_the_bytes_of_the_device() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let report = run_there(&stage, &disk, &format!("{TABLE} --rw read"));
    assert_counts_calls(&report, "pread");
    for row in rows(&report) {
        assert_eq!(row["cached_pages_at_start"]["Ok"], 0, "{row:#}");
        let moved = row["device_bytes_per_byte"]["Ok"][0].as_f64().unwrap_or_else(|| panic!("{row:#}"));
        assert!(moved >= 0.99 || row["coverage"].as_f64() < Some(1.0), "{row:#}");
    }
    row(&report, "pread O_DIRECT");
    row(&report, "copy_file_range");
}

#[test]
fn api_on_memory_has_no_direct_rows_and_no_cold_start() {
    let stage = Stage::shared();
    if !is_root() {
        return;
    }
    let Some(disk) = memory(&stage) else { return };
    for (rw, call) in [("read", "pread"), ("randwrite", "pwrite")] {
        let report = run_there(&stage, &disk, &format!("{TABLE} --rw {rw}"));
        assert_counts_calls(&report, call);
        let direct = missing(&report, &format!("{call} O_DIRECT"));
        assert!(direct.contains("tmpfs keeps its files only in the page cache"), "{direct}");
        for row in rows(&report) {
            assert!(!row["interface"].as_str().unwrap().contains("O_DIRECT"), "{row:#}");
            assert!(row["device_bytes_per_byte"]["Err"].as_str().unwrap().contains("tmpfs"), "{row:#}");
            let fresh = row["stored_before"]["Err"]
                .as_str()
                .is_some_and(|w| w.contains("the first write replaces the file"));
            assert!(fresh || row["cached_pages_at_start"]["Ok"].as_u64() > Some(0), "{row:#}");
        }
    }
}

#[test]
#[ignore = "long"]
fn api_on_an_encrypting_file_system_works_or_names_failures() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    let Some(disk) = encrypted(&stage) else { return };
    through_a_program(&stage, &disk, "fuse.gocryptfs");
}

#[test]
#[ignore = "long"]
fn api_over_the_network_works_or_names_failures() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    let Some(disk) = network(&stage) else { return };
    through_a_program(&stage, &disk, "fuse.sshfs");
}

fn through_a_program(stage: &Stage, disk: &Disk, kind: &str) {
    for (rw, call) in [("read", "pread"), ("randwrite", "pwrite")] {
        let report = run_there(stage, disk, &format!("{TABLE} --rw {rw}"));
        assert_counts_calls(&report, call);
        assert!(report.name().contains(kind), "{}", report.name());
        assert!(missing(&report, "copy_file_range").contains("second file"));
        for row in rows(&report) {
            assert_eq!(row["cached_pages_at_start"]["Ok"], 0, "{row:#}");
            let why = row["device_bytes_per_byte"]["Err"].as_str().unwrap_or_else(|| panic!("{row:#}"));
            assert!(why.contains("no device below"), "{why}");
        }
        // The row must exist: the kernel thread of SQPOLL submits operations while earlier ones of the batch complete.
        row(&report, "io_uring SQPOLL");
    }
}
