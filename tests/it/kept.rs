//! Results are kept or printed, whatever fails, and sessions belong to the user who made them.

use crate::output::{RUN, shell};
use crate::stage::{Outcome, Stage, is_root, skip, wait};
use std::path::Path;

#[test]
fn process_limits_are_errors_with_a_cause() {
    let stage = Stage::shared();
    let table: [(&str, &str, &[&str]); 7] = [
        ("-f 1000", "run --size 16m --time 60ms --runs 1 \"$D\"", &["ulimit -f"]),
        ("-f 1000", "verify --size 16m \"$D\"", &["ulimit -f"]),
        ("-n 8", "run --size 16m --time 60ms --runs 1 \"$D\"", &["ulimit -n"]),
        ("-s 64", "run --size 16m --time 60ms --runs 1 --workers 4 \"$D\"", &[]),
        ("-l 0", "run --size 16m --time 60ms --runs 1 --workers 4 \"$D\"", &[]),
        // The limit is lower than the buffers need, and high enough to load the program: if it cannot be loaded, only the kernel reports
        // that.
        ("-v 100000", "run --size 16m --time 60ms --runs 1 --bs 1m --depth 64 \"$D\"", &["ulimit -v"]),
        ("-s 64", "explain A01", &[]),
    ];
    for (limit, command, words) in table {
        let out = shell(&stage, &format!("ulimit {limit}; \"$F\" {command}"));
        println!("{limit}: {command}: {:?} {}", out.code, out.stderr);
        assert!(matches!(out.code, Some(0..=3)), "{limit} {command}: {out:?}");
        assert!(!out.stderr.contains("panicked"), "{out:?}");
        for word in words {
            assert!(out.stderr.contains(word), "'{word}' is not in {out:?}");
        }
    }
}

#[test]
fn session_beyond_the_file_size_limit_is_still_reported() {
    let stage = Stage::shared();
    for (more, kept) in [("", "only the report that follows has the later ones"), ("--no-history", "")] {
        let run = "run --rw randread --engine sim --time 50ms --warmup 0 --runs 1 --quiet";
        let out = shell(&stage, &format!("ulimit -f 8; \"$F\" {run} {more} 2>&1 | cat"));
        assert!(out.stdout.contains("VALID  4K random read") && out.stdout.contains(kept), "{out:?}");
    }
}

#[test]
fn buffers_beyond_the_cgroup_memory_limit_are_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let name = format!("fathom-memory-test-{}", std::process::id());
    let places = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    let made = places.iter().find_map(|(above, limit)| {
        let dir = Path::new(above).join(&name);
        std::fs::create_dir(&dir).ok()?;
        let is_set = std::fs::write(dir.join(limit), (64 << 20).to_string()).is_ok();
        if !is_set {
            let _ = std::fs::remove_dir(&dir);
        }
        is_set.then_some((dir, *limit))
    });
    let Some((dir, limit)) = made else {
        skip("no memory limit can be set here");
        return;
    };
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$F\"", dir.display());
    let run = "run --rw randwrite --size 256m --bs 1m --depth 128 --time 50ms --runs 1 --quiet \"$D\"";
    let out = shell(&stage, &format!("{enter} {run}"));
    let _ = std::fs::remove_dir(&dir);
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(
        out.stderr.contains(limit) && out.stderr.contains("--depth") && out.stderr.contains("64 MiB"),
        "{out:?}"
    );
    assert_eq!(out.stdout, "");
}

#[test]
fn measures_without_a_session_directory_and_reports_it() {
    let stage = Stage::shared();
    let nowhere = "XDG_DATA_HOME=/proc/nowhere HOME=/proc/nowhere TMPDIR=/proc/nowhere";
    let out = shell(&stage, &format!("{nowhere} \"$F\" {RUN} \"$D\""));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert!(out.stderr.contains("will not be kept") && out.stderr.contains("XDG_DATA_HOME"), "{out:?}");
    assert!(out.stdout.contains("VALID") || out.stdout.contains("SUSPECT"), "{out:?}");
    let unasked = shell(&stage, &format!("{nowhere} \"$F\" {RUN} --no-history \"$D\""));
    assert!(matches!(unasked.code, Some(0 | 1)) && !unasked.stderr.contains("kept"), "{unasked:?}");
}

#[test]
fn read_only_systems_allow_reads_and_refuse_writes() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let file = stage.file("data", 16);
    // Remount the whole tree read-only, including every place for sessions and temporary files.
    let line = format!(
        "mount -o remount,bind,ro / 2> /dev/null || mount --bind / / && mount -o remount,bind,ro / && cd / && exec \"$F\" {RUN} \"$@\""
    );
    let prefix =
        ["unshare", "-m", "--propagation", "private", "bash", "-c", &line, "bash"].map(str::to_owned);
    let measure = |more: &str, target: &Path| {
        wait(stage.command(&prefix, more, target).env("F", env!("CARGO_BIN_EXE_fathom")))
    };
    for more in ["--no-history", "--rw randread"] {
        let out = measure(more, &file);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        assert_eq!(out.stderr.contains("will not be kept"), more != "--no-history", "{out:?}");
    }
    let folder = stage.folder("here");
    let out = measure("--no-history", &folder);
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stderr.contains("read-only"), "{out:?}");
    assert_eq!(crate::stage::names(&folder), Vec::<std::path::PathBuf>::new());
}

#[test]
fn full_disk_for_sessions_does_not_end_the_measurement() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let line = "mount -t tmpfs -o size=24k none small && XDG_DATA_HOME=$PWD/small \"$F\" RUN \"$D\"";
    stage.folder("cwd/small");
    let line = line.replace("RUN", RUN);
    let prefix = ["unshare", "-m", "--propagation", "private", "bash", "-c", &line].map(str::to_owned);
    let mut command = stage.command(&prefix, "", Path::new(""));
    command
        .env("F", env!("CARGO_BIN_EXE_fathom"))
        .env("D", stage.folder("here"))
        .current_dir(stage.folder("cwd"));
    let out = wait(&mut command);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert!(out.stderr.contains("No space left") && out.stderr.contains("make room"), "{out:?}");
    assert!(out.stdout.contains("VALID") || out.stdout.contains("SUSPECT"), "{out:?}");
}

#[test]
fn sessions_in_tmp_are_read_only_without_another_directory() {
    let stage = Stage::shared();
    let nobody_home = "XDG_DATA_HOME=/proc/nowhere HOME=/proc/nowhere";
    let kept = shell(
        &stage,
        &format!("{nobody_home} \"$F\" {RUN} \"$D\" && {nobody_home} \"$F\" list --format json"),
    );
    assert!(kept.stderr.contains("this session is kept in"), "{kept:?}");
    let list = |out: &Outcome| out.stdout.matches("\"started\"").count();
    assert_eq!(list(&shell(&stage, &format!("{nobody_home} \"$F\" list --format json"))), 1);
    assert_eq!(list(&shell(&stage, "\"$F\" list --format json")), 0, "this one has a place of its own");
    if is_root() {
        // fathom does not use a directory with the right name that belongs to another user.
        let shared = stage.path("tmp").join("fathom-0");
        std::os::unix::fs::chown(&shared, Some(65534), Some(65534)).unwrap();
        assert_eq!(list(&shell(&stage, &format!("{nobody_home} \"$F\" list --format json"))), 0);
    }
}

#[test]
fn sessions_of_other_users_are_skipped_and_reported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let here = stage.folder("here");
    for _ in 0..2 {
        assert!(matches!(stage.fathom(RUN, &here).code, Some(0 | 1)));
    }
    let sessions = stage.sessions();
    std::os::unix::fs::chown(&sessions[1], Some(65534), Some(65534)).unwrap();
    let list = shell(&stage, "\"$F\" list --format json");
    assert_eq!(list.stdout.matches("\"started\"").count(), 1, "{list:?}");
    assert!(list.stderr.contains("other users"), "{list:?}");
    let last = shell(&stage, "\"$F\" show last --format json");
    let first = sessions[0].file_stem().unwrap().to_string_lossy().into_owned();
    assert!(last.stdout.contains(&first), "{last:?}");
    assert!(
        matches!(stage.fathom("show", &sessions[1]).code, Some(0 | 1)),
        "asked for by its path it is shown"
    );
}

#[test]
fn session_killed_before_its_first_run_is_named() {
    let stage = Stage::shared();
    let dir = stage.folder("xdg/fathom/sessions");
    std::fs::write(dir.join("20261121-161226-1.fathom"), "fathom session 1\n").unwrap();
    for command in ["show last", "export last -o r.json", "compare last last"] {
        let out = shell(&stage, &format!("\"$F\" {command}"));
        assert!(matches!(out.code, Some(2 | 3)), "{out:?}");
        assert!(
            out.stderr.contains("ended before the first run") || command.starts_with("compare"),
            "{out:?}"
        );
        assert!(!out.stderr.contains("damaged"), "{out:?}");
    }
    assert_eq!(shell(&stage, "\"$F\" show last").code, Some(3));
    let list = shell(&stage, "\"$F\" list");
    assert!(list.stdout.contains("cut") && list.stdout.contains("ended before the first run"), "{list:?}");
}

#[test]
fn kill_before_the_first_run_leaves_a_readable_session_or_none() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    for ms in [1, 20, 60, 150, 400] {
        // Make a file so large that each kill comes while it is written.
        let running = stage.start("run --size 4g --warmup 5s --time 5s --runs 1 --quiet", &here);
        std::thread::sleep(std::time::Duration::from_millis(ms));
        running.signal(rustix::process::Signal::KILL);
        assert_eq!(running.end().code, None, "{ms}");
    }
    for session in stage.sessions() {
        let out = stage.fathom("show", &session);
        assert_eq!(out.code, Some(3), "{out:?}");
        assert!(out.stderr.contains("ended before the first run"), "{out:?}");
    }
    assert_eq!(crate::stage::names(&here), Vec::<std::path::PathBuf>::new(), "test files have no name here");
}

#[test]
fn results_before_a_target_vanished_are_kept_and_reported() {
    let stage = Stage::one_per_cpu();
    let file = stage.file("data", 32);
    let words = "run --rw randread --time 300ms --warmup 0 --runs 40";
    let mut running = stage.start(words, &file);
    running.wait_for_output("run 3 of");
    std::fs::remove_file(&file).unwrap();
    let out = running.end();
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stderr.contains("are kept: `fathom show "), "{out:?}");
    let report = stage.show().report();
    assert_eq!(report.0["ending"]["how"], "failed");
    assert!(report.0["results"][0]["runs"].as_array().unwrap().len() >= 2, "{report:#?}");
}
