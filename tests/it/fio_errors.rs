//! Failing operations, jobs that do nothing, and jobs that end with others: exit codes, counts and leftovers, compared with fio.

use crate::disk::{Device, Image};
use crate::fio::fio;
use crate::output::check_outcome;
use crate::stage::{Outcome, Stage, is_root, skip, tool, wait};
use serde_json::Value;
use std::path::Path;

/// Runs fio itself in its own folder; `None` if fio is not installed.
fn real(folder: &Path, words: &str) -> Option<Outcome> {
    if let Err(why) = tool(&[&"fio", &"--version"]) {
        skip(&why);
        return None;
    }
    Some(wait(std::process::Command::new("fio").current_dir(folder).args(words.split_whitespace())))
}

fn json(out: &Outcome) -> Value {
    let text = out.stdout.find('{').map_or("", |at| &out.stdout[at..]);
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {out:?}"))
}

#[test]
fn continue_on_error_continues_after_failures() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 4, Image::Buffered) else { return };
    // Reads beyond the end of the image fail.
    std::fs::File::options().write(true).open(stage.path("image")).unwrap().set_len(2 << 20).unwrap();
    let path = device.path.display();
    let words = |more: &str| {
        format!("--name=a --filename={path} --rw=read --bs=4k --output-format=json --size=4m {more}")
    };
    for (more, code) in [
        ("", 1),
        ("--continue_on_error=none", 1),
        ("--continue_on_error=read", 0),
        ("--ignore_error=EIO", 0),
        ("--ignore_error=ENOSPC,EIO", 1),
    ] {
        for out in
            [Some(fio(&stage, &words(more))), real(&stage.folder("fio"), &words(more))].iter().flatten()
        {
            assert_eq!(out.code, Some(code), "{more}: {out:?}");
            let job = &json(out)["jobs"][0];
            assert_eq!((&job["error"], &job["read"]["io_bytes"]), (&5.into(), &(2 << 20).into()), "{more}");
            assert!(code == 1 || job["total_err"] == 512, "{job:#}");
        }
    }
    // This is more than the number of errors that end a run by default.
    let longer = "--loops=3 --continue_on_error=io";
    assert_eq!(json(&fio(&stage, &words(longer)))["jobs"][0]["total_err"], 1536);
    let run = |more: &str| {
        let words = format!(
            "run --rw read --bs 4k --depth 1 --passes 3 --runs 1 --warmup 0 --quiet --format json {more}"
        );
        stage.fathom(&words, &device.path)
    };
    for (more, errors) in [
        ("", 1000),
        ("--max-errors 7", 7),
        ("--max-errors all", 1536),
        ("--max-errors 7 --ignore-errors read:EIO", 1536),
        ("--max-errors 7 --ignore-errors write:EIO,ENOSPC", 7),
    ] {
        let report = run(more).report();
        let counted = report.answers("B12").first().map(|b12| b12["evidence"]["failed_ops"].as_f64());
        assert_eq!(counted, Some(Some(f64::from(errors))), "{more}: {report:?}");
    }
    assert!(run("--ignore-errors EOI").stderr.contains("write:ENOSPC"), "{:?}", run("--ignore-errors EOI"));
    assert!(run("--max-errors 0").stderr.contains("--max-errors"), "{:?}", run("--max-errors 0"));
}

#[test]
fn create_only_makes_files_and_stops() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    // As KDiskMark types it before a measurement, except for the size.
    let words = "--output-format=json --create_only=1 --ioengine=libaio --randrepeat=0 --refill_buffers=0 --end_fsync=1 --direct=1 \
                 --rwmixread=70 --size=4m --zero_buffers=0 --name=prepare --rw=read --bs=1m --runtime=5";
    let file = folder.join("kdiskmark");
    let of = |path: &Path| format!("{words} --filename={}", path.display());
    let theirs = folder.join("theirs");
    for (out, file) in [(Some(fio(&stage, &of(&file))), &file), (real(&folder, &of(&theirs)), &theirs)] {
        let Some(out) = out else { continue };
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(json(&out)["jobs"][0]["read"]["total_ios"], 0, "{out:?}");
        assert_eq!(std::fs::metadata(file).unwrap().len(), 4 << 20);
    }
    let data = std::fs::read(&file).unwrap();
    assert!(
        data.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)),
        "holes would be read at once"
    );
    let kept = |out: &Outcome| json(out)["fathom"]["session"].clone();
    assert_eq!(kept(&fio(&stage, &of(&file))), Value::Null, "nothing was measured");
    let out = fio(&stage, &of(&file).replace("--output-format=json", ""));
    assert!(out.stderr.contains("measured nothing (create_only)"), "{out:?}");
    assert!(!out.stderr.contains("INVALID"), "{out:?}");
    let measured = of(&file).replace("--create_only=1 ", "").replace("--runtime=5", "");
    assert_eq!(json(&fio(&stage, &measured))["jobs"][0]["read"]["total_ios"], 4);
}

#[test]
fn exitall_and_group_exit_end_the_right_jobs() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let counts = |out: Outcome| -> Vec<u64> {
        assert_eq!(out.code, Some(0), "{out:?}");
        let json = json(&out);
        json["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["read"]["total_ios"].as_u64().unwrap())
            .collect()
    };
    let of = |what: &str| {
        format!(
            "--ioengine=null --size=1g --thinktime=2000 --output-format=json --name=short --exitall=1 --exit_what={what} --number_ios=20 \
             --name=long --exitall=0 --number_ios=500 --new_group --name=later --exitall=0 --stonewall --number_ios=7"
        )
    };
    for (what, is_complete, later) in [("group", true, 7), ("stonewall", false, 7), ("all", false, 0)] {
        for out in [Some(fio(&stage, &of(what))), real(&folder, &of(what))].into_iter().flatten() {
            let seen = counts(out);
            assert_eq!((seen[0], seen[1] == 500, seen[2]), (20, is_complete, later), "{what}: {seen:?}");
        }
    }
}

#[test]
fn serialize_overlap_runs_overlapping_operations_one_by_one() {
    let stage = Stage::shared();
    let file = stage.file("data", 1);
    let depth = |more: &str| {
        let words = format!(
            "run --rw randread --bs 4k --size 8k --depth 8 --time 300ms --warmup 0 --runs 1 --attempts 1 --quiet --format json {more}"
        );
        let report = stage.fathom(&words, &file).report();
        report.0["results"][0]["runs"][0]["depth_mean"].as_f64().unwrap_or_else(|| panic!("{report:?}"))
    };
    let (together, apart) = (depth(""), depth("--serialize-overlap"));
    // Two blocks can be in flight at the same time.
    assert!(together > 4.0 && apart <= 2.0, "{together} {apart}");
    check_outcome(
        &stage.fathom("run --depth 1 --serialize-overlap", &file),
        2,
        &["--serialize-overlap", "leave it out"],
    );
    // If overlapping writes wait for each other, each block ends up with the data of its last write.
    let words = format!(
        "--name=a --filename={} --rw=randwrite --norandommap --bs=4k --size=32k --io_size=4m --ioengine=io_uring --iodepth=16 --direct=1 \
         --serialize_overlap=1 --output-format=json",
        stage.path("new").display()
    );
    let out = fio(&stage, &words);
    assert_eq!((out.code, &json(&out)["jobs"][0]["write"]["total_ios"]), (Some(0), &1024.into()), "{out:?}");
}
