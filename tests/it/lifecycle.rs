//! Users without rights, signals, faults and hung file systems: each is reported, and no file remains.

use crate::disk::{Disk, Image, Room};
use crate::stage::{Running, Stage, is_root, names};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Long enough to be interrupted, short enough to wait for.
const LONG: &str =
    "run --rw randread --size 64m --time 300ms --warmup 0 --runs 40 --attempts 1 --format json";

#[test]
fn users_without_rights_get_a_complete_bench() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let folder = stage.unprivileged_folder("own");
    let words = "bench --profile real --size 64m --time 300ms --warmup 50ms --runs 3 --quiet --format json";
    let out = stage.fathom_unprivileged(words, &folder);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let report = out.report();
    assert_eq!(report.0["results"].as_array().unwrap().len(), 4);
    assert_eq!(report.0["machine"]["user_id"], 65534);
    let not_counted = report.0["machine"]["cgroup"]["Err"].is_string();
    let all = report.0["findings"].as_array().unwrap();
    let not_checked = all.iter().any(|f| f["outcome"] == "not_checked");
    assert!(not_checked || !not_counted, "the report does not say what could not be counted: {all:#?}");
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn killed_session_can_be_shown_and_leaves_no_file() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let mut running = disk.start(&stage, LONG, &disk.dir);
    running.wait_for_output("run 3 of");
    let id = running.id();
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    assert_eq!(disk.sh("ls -A | grep -v lost+found || true"), "");
    let shown = stage.show();
    let report = shown.report();
    assert_eq!(report.0["ending"]["how"], "cut");
    assert!(report.0["results"][0]["runs"].as_array().unwrap().len() >= 2, "{report:#?}");
    // The next run removes the cgroups of the killed one.
    let next = disk.fathom(&stage, "run --size 16m --time 50ms --warmup 0 --runs 1 --quiet", &disk.dir);
    assert!(matches!(next.code, Some(0 | 1)), "{next:?}");
    assert_eq!(cgroups_of(id), Vec::<PathBuf>::new());
}

#[test]
fn killed_run_with_named_files_is_reported_by_the_next_run() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let (real, dir) = (stage.folder("real"), stage.folder("shown"));
    // Show a directory through FUSE, which does not support unnamed files.
    let script = "bindfs -f \"$1\" \"$2\" & while kill -0 $! && ! mountpoint -q \"$2\"; do sleep 0.05; done; \
                  mountpoint -q \"$2\" || exit 1; echo ready; cat; umount --lazy \"$2\"; kill $!; wait";
    let Some(room) = Room::keep(Command::new("bash").args(["-c", script, "bash"]).arg(&real).arg(&dir))
    else {
        return;
    };
    let start = |words: &str| Running::start(&mut stage.command(&room.enter(), words, &dir));
    let mut killed = start(LONG);
    killed.wait_for_output("run 3 of");
    killed.signal(Signal::KILL);
    assert_eq!(killed.end().code, None);
    let left = names(&real);
    assert!(left.len() == 1 && left[0].to_string_lossy().contains("fathom-test-"), "{left:?}");
    let name = left[0].file_name().unwrap().to_string_lossy().into_owned();

    // One run is alive and one was killed. Only the file of the killed run is reported.
    let mut alive = start(LONG);
    alive.wait_for_output("run 2 of");
    let short = "run --size 16m --time 50ms --warmup 0 --runs 1";
    let looked = start(short).end();
    let reported = &looked.stderr;
    assert!(reported.contains(&name) && reported.contains("an earlier run left"), "{reported}");
    let others = names(&real).into_iter().filter(|p| *p != left[0]);
    let others: Vec<String> = others.map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert!(!others.is_empty() && others.iter().all(|o| !looked.stderr.contains(o)), "{others:?} {looked:?}");
    alive.signal(Signal::INT);
    assert_eq!(alive.end().code, Some(130));
    // FUSE keeps a removed open file under another name until the kernel reports its release.
    let since = Instant::now();
    while names(&real) != left && since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(names(&real), left, "only the killed run's file stays");
    std::fs::remove_file(&left[0]).unwrap();
    assert!(!start(short).end().stderr.contains("an earlier run left"));
}

#[test]
fn interrupt_keeps_results() {
    interrupted_by(Signal::INT);
}

#[test]
fn termination_keeps_results() {
    interrupted_by(Signal::TERM);
}

#[test]
fn alarm_keeps_results() {
    interrupted_by(Signal::ALARM);
}

#[test]
fn hangup_does_not_end_a_run_below_nohup() {
    let stage = Stage::shared();
    let ignoring = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"].map(Into::into);
    let words =
        "run --engine null --bs 4k --depth 32 --time 300ms --warmup 0 --runs 2 --attempts 1 --format json";
    let mut running = Running::start(&mut stage.command(&ignoring, words, Path::new("")));
    running.wait_for_output("run 1 of");
    running.signal(Signal::HUP);
    let out = running.end();
    assert_eq!(out.report().0["results"][0]["runs"].as_array().unwrap().len(), 2, "{out:?}");
}

fn interrupted_by(signal: Signal) {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let mut running = stage.start(LONG, &folder);
    running.wait_for_output("run 3 of");
    let id = running.id();
    running.signal(signal);
    let out = running.end();
    assert_eq!(out.code, Some(130), "{out:?}");
    let report = out.report();
    assert_eq!(report.0["ending"]["how"], "interrupted");
    assert!(report.0["results"][0]["runs"].as_array().unwrap().len() >= 2, "{report:#?}");
    assert_eq!(stage.show().report().0["results"], report.0["results"]);
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
    assert_eq!(cgroups_of(id), Vec::<PathBuf>::new());
}

#[test]
fn interrupt_before_the_first_run_leaves_nothing() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let mut running = stage.start("run --size 2g", &folder);
    running.wait_for_output("preparing");
    running.signal(Signal::INT);
    let out = running.end();
    assert_eq!(out.code, Some(130), "{out:?}");
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn worker_fault_is_named() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = "run --rw randread --size 64m --test-hook panic-worker --quiet --format json";
    let out = stage.fathom(words, &folder);
    assert_eq!(out.code, Some(3), "{out:?}");
    let ending = &out.report().0["ending"];
    assert_eq!(ending["how"], "failed");
    assert!(ending["why"].as_str().unwrap().contains("panic"), "{ending}");
    assert!(out.took < Duration::from_secs(15), "{:?}", out.took);
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "long"]
fn hung_file_system_is_named_with_engine_sync() {
    stalled("sync");
}

#[test]
fn hung_file_system_is_named_with_engine_io_uring() {
    stalled("io_uring");
}

fn stalled(engine: &str) {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::slow(&stage, "dies 200") else { return };
    let report = stage.path("report.json");
    let words = format!(
        "run --rw randread --engine {engine} --depth 4 --time 1s --runs 1 --quiet -o {}",
        report.display()
    );
    let running = disk.start(&stage, &words, &disk.dir.join("file"));
    let since = Instant::now();
    while !report.exists() {
        assert!(since.elapsed() < Duration::from_secs(25), "nothing was said in 25 s");
        std::thread::sleep(Duration::from_millis(50));
    }
    // A process waits in the kernel while the FUSE server does not answer its read. Ending the server releases the process.
    drop(disk);
    let out = running.end();
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stdout.contains("worker 0") && out.stdout.contains("does not answer"), "{}", out.stdout);
    assert_eq!(stage.show().report().0["ending"]["how"], "failed");
}

#[test]
fn file_of_a_killed_run_is_named_and_kept() {
    let stage = Stage::shared();
    let folder = stage.folder("left");
    // Above the largest process id of Linux, so no process has it.
    let dead = folder.join(".fathom-test-4194999-00000000000000ff.tmp");
    std::fs::write(&dead, "data").unwrap();
    let out = stage.fathom("run --size 16m --time 100ms --runs 1", &folder);
    assert!(out.stderr.contains(".fathom-test-4194999") && out.stderr.contains("rm "), "{}", out.stderr);
    assert_eq!(names(&folder), [dead]);
}

/// The remaining cgroups of a fathom process.
fn cgroups_of(id: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = next.pop() {
        let below = names(&dir).into_iter().filter(|p| p.is_dir() && !p.is_symlink());
        for path in below {
            if path.file_name().is_some_and(|n| n == format!("fathom-{id}").as_str()) {
                found.push(path.clone());
            }
            next.push(path);
        }
    }
    found
}
