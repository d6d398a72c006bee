//! Report files: where they are written, what they never overwrite, and full streams. No measurement is lost silently, and no needed file is
//! replaced.

use crate::disk::{Device, Image};
use crate::stage::{Outcome, Stage, is_root, names, tool, wait};
use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// One short run of a small file.
pub(crate) const RUN: &str = "run --size 16m --time 60ms --warmup 0 --runs 1 --quiet";

/// Runs a line of shell in which `$F` is the program and `$D` an empty directory.
pub(crate) fn shell(stage: &Stage, line: &str) -> Outcome {
    let mut command = stage.command(&["bash".into(), "-c".into(), line.into()], "", Path::new(""));
    command
        .env("F", env!("CARGO_BIN_EXE_fathom"))
        .env("D", stage.folder("here"))
        .current_dir(stage.folder("cwd"));
    wait(&mut command)
}

#[track_caller]
pub(crate) fn check_outcome(out: &Outcome, code: i32, words: &[&str]) {
    assert_eq!(out.code, Some(code), "{out:?}");
    for word in words {
        assert!(out.stderr.contains(word), "'{word}' is not in {out:?}");
    }
}

#[test]
fn targets_are_never_overwritten_by_reports() {
    let stage = Stage::shared();
    let data = stage.path("data.json");
    std::fs::write(&data, "text ".repeat(1 << 20)).unwrap();
    let [hard, soft] = ["hard.csv", "soft.txt"].map(|n| stage.path(n));
    std::fs::hard_link(&data, &hard).unwrap();
    symlink(&data, &soft).unwrap();
    let before = std::fs::read(&data).unwrap();
    for name in [&data, &hard, &soft] {
        for force in ["", "--force"] {
            let words = format!(
                "run --cache buffered --bs 4k --time 50ms --runs 1 --quiet {force} -o {}",
                name.display()
            );
            check_outcome(
                &stage.fathom(&words, &data),
                2,
                &["a target of this command", "type another name"],
            );
        }
    }
    // The shell redirects the output to the target.
    let appended = format!(
        "\"$F\" run --cache buffered --bs 4k --time 50ms --runs 1 --quiet {0} >> {0}",
        data.display()
    );
    check_outcome(&shell(&stage, &appended), 2, &["a target of this command"]);
    assert!(std::fs::read(&data).unwrap() == before);
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new(), "it was refused before anything was measured");
}

#[test]
fn inputs_and_sessions_are_never_overwritten_by_reports() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    assert!(matches!(stage.fathom(RUN, &here).code, Some(0 | 1)));
    let session = stage.sessions().remove(0);
    let copy = stage.path("copy.txt");
    std::fs::copy(&session, &copy).unwrap();
    let content = stage.path("content.txt");
    std::fs::write(&content, "what is written ".repeat(1000)).unwrap();
    let neighbour = session.with_file_name("report.json");
    let table: [(&Path, &str, &str); 3] = [
        (&copy, "a session", ""),
        (&neighbour, "in the directory of the sessions", ""),
        (&content, "the data file of this command", "--rw write --data"),
    ];
    for (path, word, more) in table {
        let data = if more.is_empty() { String::new() } else { format!("{more} {}", content.display()) };
        let out = stage.fathom(&format!("{RUN} {data} --force -o {}", path.display()), &here);
        check_outcome(&out, 2, &[word]);
    }
    let job = stage.path("job.toml");
    std::fs::write(&job, "size = \"16m\"\ntime = \"50ms\"\nruns = 1\n").unwrap();
    let link = stage.path("job.json");
    symlink(&job, &link).unwrap();
    let out = stage.fathom(&format!("run {} --quiet -o {}", job.display(), link.display()), &here);
    check_outcome(&out, 2, &["the job file of this command"]);
    let shown = stage.fathom(&format!("show --force -o {}", copy.display()), &session);
    check_outcome(&shown, 2, &["a session"]);
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&session).unwrap());
    assert_eq!(stage.sessions().len(), 1);
}

#[test]
fn reports_replace_text_files_and_others_only_with_force() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let report = stage.path("r.json");
    std::fs::write(&report, "an old one").unwrap();
    std::fs::set_permissions(&report, Permissions::from_mode(0o640)).unwrap();
    let inode = report.metadata().unwrap().ino();
    let link = stage.path("latest.json");
    symlink("r.json", &link).unwrap();
    assert!(matches!(stage.fathom(&format!("{RUN} -o {}", link.display()), &here).code, Some(0 | 1)));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let facts = report.metadata().unwrap();
    assert_eq!(facts.mode() & 0o7777, 0o640);
    assert_ne!(
        facts.ino(),
        inode,
        "it is another file: a program that reads the old one can read it to its end"
    );
    assert!(std::fs::read_to_string(&report).unwrap().starts_with('{'));

    let picture = stage.path("picture.txt");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    check_outcome(
        &stage.fathom(&format!("{RUN} -o {}", picture.display()), &here),
        2,
        &["not text", "--force"],
    );
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let forced = stage.fathom(&format!("{RUN} --force -o {}", picture.display()), &here);
    assert!(matches!(forced.code, Some(0 | 1)), "{forced:?}");
    let text = std::fs::read_to_string(&picture).unwrap();
    assert!(
        text.starts_with("VALID") || text.starts_with("SUSPECT") || text.starts_with("INVALID"),
        "{text}"
    );
    // Two names of one file are refused, because only one report could be kept.
    let twice = stage.fathom(&format!("{RUN} -o {} -o {}", report.display(), link.display()), &here);
    check_outcome(&twice, 2, &["is the same file as"]);
    let new = [stage.path("new.json"), here.join("../new.json")];
    let spellings = stage.fathom(&format!("{RUN} -o {} -o {}", new[0].display(), new[1].display()), &here);
    check_outcome(&spellings, 2, &["is the same file as"]);
    assert!(!new[0].exists());
    assert_eq!(names(&stage.path("")).iter().filter(|p| p.to_string_lossy().contains(".new")).count(), 0);
}

#[test]
fn a_redirected_stream_is_not_replaced_by_a_report() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let file = stage.path("redirected.json");
    for (number, stream) in [(1, "standard output"), (2, "standard error")] {
        let script = format!("exec \"$@\" {number}>{}", file.display());
        let prefix = ["sh", "-c", &script, "sh"].map(str::to_owned);
        let out = wait(&mut stage.command(&prefix, &format!("{RUN} -o {}", file.display()), &here));
        assert_eq!(out.code, Some(2), "{stream}: {out:?}");
        let printed = out.stderr + &std::fs::read_to_string(&file).unwrap();
        assert!(printed.contains(&format!("is the file to which {stream} is redirected")), "{printed}");
    }
}

#[test]
fn reports_are_never_written_to_block_devices() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let here = stage.folder("here");
    tool(&[&"mkfs.ext4", &"-q", &"-F", &device.path]).unwrap();
    let before = device.checksum();
    let link = stage.path("r.json");
    symlink(&device.path, &link).unwrap();
    let node = stage.path("n.json");
    let number = device.path.metadata().unwrap().rdev();
    let kind = rustix::fs::FileType::BlockDevice;
    rustix::fs::mknodat(rustix::fs::CWD, &node, kind, 0o600.into(), number).unwrap();
    for path in [&link, &node] {
        check_outcome(
            &stage.fathom(&format!("{RUN} --force -o {}", path.display()), &here),
            2,
            &["a block device"],
        );
    }
    let dev = device.path.display();
    for line in [
        format!("\"$F\" {RUN} \"$D\" > {dev}"),
        format!("\"$F\" explain > {dev}"),
        format!("\"$F\" {RUN} -o /dev/fd/5 \"$D\" 5<> {dev}"),
    ] {
        let out = shell(&stage, &line);
        assert!(matches!(out.code, Some(2 | 3)) && out.stderr.contains("block device"), "{line}: {out:?}");
    }
    // A report never replaces the image below the target.
    let below = stage.path("below.json");
    std::fs::hard_link(&device.image, &below).unwrap();
    let out = stage
        .fathom(&format!("run --time 50ms --runs 1 --quiet --force -o {}", below.display()), &device.path);
    check_outcome(&out, 2, &["below a target"]);
    assert_eq!(device.checksum(), before);
    tool(&[&"e2fsck", &"-f", &"-n", &device.path]).unwrap();
    assert_eq!(stage.sessions(), Vec::<PathBuf>::new());
}

#[test]
fn reports_are_written_to_streams_in_place() {
    let stage = Stage::shared();
    let lines: [(&str, &str); 6] = [
        ("\"$F\" RUN --format json -o - \"$D\"", "{"),
        ("\"$F\" RUN -o >(cat > got) \"$D\" > /dev/null; sleep 0.3; cat got", "4K random read"),
        ("\"$F\" RUN --format csv -o /dev/fd/7 \"$D\" 7> got > /dev/null; cat got", "name"),
        ("mkfifo f.json; (cat f.json > got) & \"$F\" RUN -o f.json \"$D\" > /dev/null; wait; cat got", "{"),
        ("\"$F\" RUN -o /dev/null --format json \"$D\"; [ -c /dev/null ] || echo gone >&2", "{"),
        ("\"$F\" RUN -o /dev/stdout --format json \"$D\" | cat", "{"),
    ];
    for (line, begin) in lines {
        let out = shell(&stage, &format!("rm -f got f.json; {}", line.replace("RUN", RUN)));
        let first = out.stdout.lines().next().unwrap_or_default();
        assert!(first.contains(begin), "{line}: {out:?}");
        assert!(!out.stderr.contains("gone"), "{out:?}");
        if begin == "{" {
            let report: Result<serde_json::Value, _> = serde_json::from_str(&out.stdout);
            assert!(report.is_ok(), "{line}: once, and whole: {}", out.stdout);
        }
    }
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn unwritable_outputs_are_refused_before_measuring() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let missing = stage.path("missing").display().to_string();
    for more in ["", "--no-history"] {
        let out = stage.fathom(&format!("{RUN} {more} -o {missing}/r.json"), &here);
        check_outcome(&out, 2, &[&missing, "another name"]);
        let out = stage.fathom(&format!("{RUN} {more} -o {}/", here.display()), &here);
        assert_eq!(out.code, Some(2), "{out:?}");
        let proc = stage.fathom(&format!("{RUN} {more} -o /proc/r.json"), &here);
        check_outcome(&proc, 3, &["/proc/r.json cannot be written", "is on proc"]);
    }
    assert_eq!((names(&here), stage.sessions()), (Vec::new(), Vec::new()));
    let words = format!("verify --quiet --state {missing}/s --destroy f");
    let state = stage.fathom(&words, &stage.file("f", 1));
    check_outcome(&state, 2, &["--state", &missing]);
}

#[test]
fn report_in_an_unwritable_directory_is_written_in_place() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let here = stage.folder("here");
    // In containers a single file may be a mount.
    let [inside, outside] = ["inside.json", "outside.json"].map(|n| stage.path(n));
    std::fs::write(&inside, "old and longer ".repeat(100_000)).unwrap();
    std::fs::write(&outside, "").unwrap();
    let line =
        format!("mount --bind {0} {1} && \"$F\" {RUN} -o {1} \"$D\"", inside.display(), outside.display());
    let prefix = ["unshare", "-m", "--propagation", "private", "bash", "-c", &line].map(str::to_owned);
    let mut command = stage.command(&prefix, "", Path::new(""));
    let out = wait(command.env("F", env!("CARGO_BIN_EXE_fathom")).env("D", &here));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&inside).unwrap()).unwrap();
    assert!(report["results"].is_array());
}

#[test]
fn full_disk_keeps_the_old_report_and_prints_the_new_one() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let line = "mount -t tmpfs -o size=64k none small && cp /dev/null small/r.json && echo old > small/r.json && \
                head -c 60k /dev/zero > small/fill; \"$F\" RUN --no-history -o small/r.json \"$D\"; code=$?; cat small/r.json >&2; \
                ls -A small >&2; exit $code";
    stage.folder("cwd/small");
    let line = line.replace("RUN", RUN);
    let prefix = ["unshare", "-m", "--propagation", "private", "bash", "-c", &line].map(str::to_owned);
    let mut command = stage.command(&prefix, "", Path::new(""));
    command
        .env("F", env!("CARGO_BIN_EXE_fathom"))
        .env("D", stage.folder("here"))
        .current_dir(stage.folder("cwd"));
    let out = wait(&mut command);
    check_outcome(&out, 3, &["r.json cannot be written", "old\n"]);
    assert!(!out.stderr.contains(".new"), "{out:?}");
    assert!(out.stdout.contains("VALID") || out.stdout.contains("SUSPECT"), "the report is printed: {out:?}");
}

#[test]
fn every_command_reports_a_full_output_stream() {
    let stage = Stage::shared();
    assert!(matches!(stage.fathom(RUN, &stage.folder("here")).code, Some(0 | 1)));
    let commands = [
        // Use the simulated device, so that other load does not affect the exit code.
        "run --engine sim --size 16m --time 60ms --warmup 0 --runs 1",
        "run --size 16m --explain \"$D\"",
        "bench --help",
        "--version",
        "list",
        "list --format json",
        "show last",
        "compare last last",
        "export last -o -",
        "export --schema",
        "explain",
        "explain A01 --format json",
        "doctor \"$D\"",
        "api --list",
        "sweep --list --size 16m \"$D\"",
        "tag last word",
        "note last word",
        "verify --size 4m --passes 1 \"$D\"",
        "devices",
        "completions bash",
        "man",
        "recipe",
        "limit --engine sim --explain",
        "watch 100ms 1",
        "fio --cmdhelp",
        "fio --name=a --ioengine=null --size=1m --rw=read --output-format=json",
        "diskspd -c1M -d1 -b64k -Rp spd",
    ];
    for command in commands {
        let normal = shell(&stage, &format!("\"$F\" {command}"));
        for (streams, is_output) in [
            ("> /dev/full", true),
            (">&-", true),
            ("2> /dev/full", false),
            ("2>&-", false),
            ("> /dev/full 2> /dev/full", true),
        ] {
            let out = shell(&stage, &format!("\"$F\" {command} {streams}"));
            let fails = is_output && !normal.stdout.is_empty();
            // The original tools use one exit code for all errors.
            let is_foreign = ["fio", "diskspd"].iter().any(|tool| command.starts_with(tool));
            let refused = if is_foreign { 1 } else { 3 };
            let expected = if fails { Some(refused) } else { normal.code };
            assert_eq!(out.code, expected, "{command} {streams}: {out:?}");
            if fails && !streams.contains("2>") {
                assert!(
                    out.stderr.contains("standard output cannot be written")
                        && !out.stderr.contains("another path"),
                    "{command} {streams}: {out:?}"
                );
            }
            assert!(!out.stderr.contains("panicked"), "{out:?}");
        }
        // The reader ends early, which is not an error.
        let piped = shell(&stage, &format!("\"$F\" {command} | true; exit ${{PIPESTATUS[0]}}"));
        assert_eq!(piped.code, normal.code, "{command}: {piped:?}");
        assert!(
            !piped.stderr.contains("panicked") && !piped.stderr.contains("cannot be written"),
            "{piped:?}"
        );
    }
}

#[test]
fn report_without_a_session_goes_to_standard_error() {
    let stage = Stage::shared();
    let kept = shell(&stage, &format!("\"$F\" {RUN} \"$D\" > /dev/full"));
    check_outcome(&kept, 3, &["the session is kept", "fathom show"]);
    assert_eq!(stage.sessions().len(), 1);
    let nowhere = shell(&stage, &format!("\"$F\" {RUN} --no-history \"$D\" > /dev/full"));
    check_outcome(&nowhere, 3, &["this is the only copy of the report", "4K random read"]);
}

#[test]
fn exports_are_complete_or_absent() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    assert!(matches!(stage.fathom(RUN, &stage.folder("here")).code, Some(0 | 1)));
    stage.folder("cwd/small");
    let line = "mount -t tmpfs -o size=16k none small && \"$F\" export last -o small/; code=$?; ls -A small; exit $code";
    let prefix = ["unshare", "-m", "--propagation", "private", "bash", "-c", line].map(str::to_owned);
    let mut command = stage.command(&prefix, "", Path::new(""));
    command.env("F", env!("CARGO_BIN_EXE_fathom")).current_dir(stage.folder("cwd"));
    let out = wait(&mut command);
    check_outcome(&out, 3, &["cannot be written"]);
    assert_eq!(out.stdout, "", "nothing torn is left");
    let twice =
        ["export last -o out/", "export last -o out/"].map(|words| shell(&stage, &format!("\"$F\" {words}")));
    assert_eq!((twice[0].code, twice[1].code), (Some(0), Some(2)), "{twice:?}");
    // A named file of an export is replaced, as with -o of a measurement.
    for _ in 0..2 {
        assert_eq!(shell(&stage, "\"$F\" export last -o r.json").code, Some(0));
    }
    check_outcome(
        &shell(&stage, "\"$F\" export last -o s.fathom && \"$F\" export last -o s.fathom"),
        2,
        &["a session"],
    );
}

#[test]
fn formats_without_a_verdict_print_it_on_standard_error() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for format in ["fio-terse", "iometer-csv"] {
        let words = format!("run --rw randread --size 16m --time 50ms --runs 1 --quiet --format {format}");
        let out = stage.fathom(&words, &folder);
        assert!(out.stderr.contains("fathom: ") && !out.stdout.is_empty(), "{format}: {out:?}");
    }
}
