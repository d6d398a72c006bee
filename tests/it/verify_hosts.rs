//! `fathom verify` on several hosts: each has its own file or part, and verifies its own data or those of another host. Damage and lost hosts are
//! named.

use crate::lab::{self, Lab};
use crate::stage::{Outcome, Running, Stage, is_root, wait};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const BLOCK: u64 = 64 << 10;

/// Runs `fathom verify` on this many ranks of this machine.
fn ranks(stage: &Stage, n: u32, words: &str, target: &Path) -> Outcome {
    let launcher = format!("mpirun --allow-run-as-root --oversubscribe --bind-to none -np {n}");
    let prefix: Vec<String> = launcher.split(' ').map(str::to_owned).collect();
    wait(&mut stage.command(&prefix, &format!("verify {words} --ranks-per-host {n}"), target))
}

/// The hosts of a report.
fn hosts(report: &Value) -> &Vec<Value> {
    report["hosts"].as_array().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn each_host_verifies_the_data_of_the_next_without_leftovers() {
    let stage = Stage::shared();
    let target = stage.folder("target");
    for how in ["", "--shift-hosts 1", "--shared segmented", "--shared segmented --shift-hosts 2"] {
        let out = ranks(&stage, 3, &format!("--size 24m --format json {how}"), &target);
        let report = out.report().0;
        assert_eq!((out.code, &report["verdict"]), (Some(0), &"VERIFIED".into()), "{how}: {out:?}");
        let of = |key: &str| -> Vec<u64> {
            hosts(&report).iter().map(|host| host["verification"][key].as_u64().unwrap()).collect()
        };
        let (blocks, begins) = (of("blocks"), of("offset_bytes"));
        let own = if how.contains("shared") { (24 << 20) / 3 / BLOCK } else { (24 << 20) / BLOCK };
        let first = |rank: u64| if how.contains("shared") { rank * own * BLOCK } else { 0 };
        assert_eq!((blocks, begins), (vec![own; 3], (0..3).map(first).collect()), "{how}");
        let by: Option<usize> = how.rsplit_once("hosts ").and_then(|(_, n)| n.parse().ok());
        for (rank, host) in hosts(&report).iter().enumerate() {
            let writer = by.map(|by| hosts(&report)[(rank + by) % 3]["host"].clone());
            assert_eq!(host["read"]["written_by"], writer.unwrap_or_default(), "{how}: {host}");
            assert_eq!(host["read"]["blocks"], own, "{how}: {host}");
        }
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "{how}: no test file is left");
    }
}

#[test]
fn damage_is_found_by_the_reading_host() {
    let stage = Stage::shared();
    let (file, state, kept) = (stage.path("file"), stage.path("state"), stage.path("outcome.json"));
    File::create(&file).unwrap().set_len(16 << 20).unwrap();
    let (destroy, printed) = (file.display(), state.display());
    let alone = ranks(&stage, 2, &format!("--destroy {destroy}"), &file);
    assert!(alone.code == Some(2) && alone.stderr.matches("--shared segmented").count() == 1, "{alone:?}");
    let words = format!("--shared segmented --destroy {destroy} --state {printed}");
    let out = ranks(&stage, 2, &words, &file);
    assert!(out.code == Some(0) && out.stdout.starts_with("VERIFIED on 2 hosts, "), "{out:?}");
    assert!(["state.0", "state.1"].iter().all(|name| stage.path(name).exists()));
    // Damage the second host's part of the file.
    File::options().write(true).open(&file).unwrap().write_all_at(&[0; 512], (8 << 20) + 3 * BLOCK).unwrap();
    for (how, reader) in [("", "rank 1"), ("--shift-hosts 1", "rank 0")] {
        let check = format!("--check {printed} {how} -o {} --force", kept.display());
        let out = ranks(&stage, 2, &check, &file);
        assert!(out.code == Some(1) && out.stdout.starts_with("DAMAGED on 1 of 2 hosts ("), "{out:?}");
        let report: Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
        let damaged: Vec<&Value> = hosts(&report).iter().filter(|host| host["damaged"] == 1).collect();
        let [one] = damaged.as_slice() else { panic!("{report}") };
        assert!(one["host"].as_str().unwrap().ends_with(reader), "{how}: {report}");
        assert_eq!(one["damage"][0]["offset"], (8 << 20) + 3 * BLOCK, "{how}");
    }
    let own = ranks(&stage, 2, &format!("--check {printed} --shift-hosts 2"), &file);
    assert!(own.code == Some(2) && own.stderr.contains("not a multiple"), "{own:?}");
}

#[test]
#[ignore = "of ./test --hosts: needs servers of ssh in namespaces"]
fn host_lost_during_verification_is_named_and_others_report() {
    if !is_root() {
        return;
    }
    for signal in ["KILL", "STOP"] {
        let (stage, lab) = (Stage::new(), Lab::up());
        let (target, file) = (stage.folder("target"), stage.path("outcome.json"));
        // Write long enough to lose a host meanwhile.
        let words = format!(
            "verify --size 64m --bs 4k --depth 1 --sync-every 16 --passes 1000 --shift-hosts 1 -o {}",
            file.display()
        );
        let mut running = Running::start(&mut lab.command(&stage, &words, &target));
        running.wait_for_output("writing pass 1");
        std::thread::sleep(Duration::from_secs(3));
        lab::signal(2, signal);
        lab::wait_for_launcher_exit(Duration::from_secs(15));
        lab::end();
        let out = running.end_within(Duration::from_secs(60));
        assert!(out.code.is_none_or(|code| code != 0), "{out:?}");
        let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(report["verdict"], "INTERRUPTED", "{signal}: {report}");
        let lost = &hosts(&report)[1];
        assert!(lost["verdict"].is_null() && lost["reason"].as_str().unwrap().contains("silent"), "{report}");
        for other in [0, 2] {
            let written = &hosts(&report)[other]["written"];
            assert!(
                written["bytes"].as_u64() > Some(0) && written["ending"] == "interrupted",
                "{signal}: {report}"
            );
        }
        let left: Vec<_> = std::fs::read_dir(&target).unwrap().flatten().map(|e| e.path()).collect();
        assert!(left.len() <= 1, "only the file of the host that was lost: {left:?}");
    }
}
