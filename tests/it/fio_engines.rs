//! fio engines that change files without moving data or that join neighbouring requests, and NUMA memory: compared with fio itself.

use crate::disk::{Device, Disk, Image};
use crate::fio::fio;
use crate::output::check_outcome;
use crate::stage::{Outcome, Stage, is_root, skip, tool, wait};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// The outcome of a job: its JSON, its traced calls, and its file.
struct TracedJob {
    json: Value,
    calls: Vec<String>,
    file: std::fs::Metadata,
}

/// Runs one job under fathom and under fio, each in its own folder, and returns both outcomes. Skips the test without fio or strace.
fn both(stage: &Stage, calls: &str, words: &str) -> Option<[TracedJob; 2]> {
    if tool(&[&"fio", &"--version"]).is_err() || tool(&[&"strace", &"-V"]).is_err() {
        skip("there is no fio, or no strace");
        return None;
    }
    Some([("ours", false), ("theirs", true)].map(|(name, by_fio)| {
        let folder = stage.folder(name);
        let file = folder.join("f");
        let _ = std::fs::remove_file(&file);
        let (json, calls) = traced(stage, by_fio, calls, &format!("{words} --filename={}", file.display()));
        TracedJob { json, calls, file: std::fs::metadata(&file).unwrap() }
    }))
}

/// Runs a job under one of the two programs. Returns its JSON, and its system calls of these names.
fn traced(stage: &Stage, by_fio: bool, calls: &str, words: &str) -> (Value, Vec<String>) {
    let log = stage.path("calls");
    let trace = format!("trace={calls}");
    let strace = ["strace", "-f", "-qq", "-e", &trace, "-o", log.to_str().unwrap()].map(str::to_owned);
    let words = format!("--output-format=json --name=j {words}");
    let out = if by_fio {
        let mut command = Command::new("strace");
        command.args(&strace[1..]).arg("fio").args(words.split_whitespace()).current_dir(stage.path(""));
        wait(&mut command)
    } else {
        wait(&mut stage.command(&strace, &format!("fio {words}"), Path::new("")))
    };
    assert_eq!(out.code, Some(0), "{words}: {out:?}");
    // fio prints its remarks about the job before the JSON.
    let json = out.stdout.find('{').map_or("", |at| &out.stdout[at..]);
    let json = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let lines = std::fs::read_to_string(&log).unwrap();
    // The trace also contains signals and exits. An interrupted call has its result on a separate line.
    let is_one =
        |call: &str| calls.split(',').any(|name| call.starts_with(name)) || call.contains(" resumed>");
    let call = |line: &str| line.split_once(' ').map(|(_, call)| call.trim_start().to_owned());
    (json, lines.lines().filter_map(call).filter(|call| is_one(call)).collect())
}

/// The arguments of a call after the first.
fn arguments(call: &str) -> Vec<String> {
    let until = |end: usize| &call[..end];
    let inner = call.find([')', '<']).map_or(call, until);
    inner.split(", ").skip(1).map(|one| one.trim_end().to_owned()).collect()
}

fn counts(json: &Value, direction: &str) -> [Option<u64>; 2] {
    ["total_ios", "io_bytes"].map(|key| json["jobs"][0][direction][key].as_u64())
}

#[test]
fn ftruncate_engine_sets_the_same_lengths_as_fio() {
    let stage = Stage::shared();
    let words = "--ioengine=ftruncate --rw=write --bs=4k --size=1m";
    let Some([ours, theirs]) = both(&stage, "ftruncate", words) else { return };
    assert_eq!(ours.file.len(), theirs.file.len());
    assert_eq!(ours.file.len(), (1 << 20) - 4096, "to the offset, and not to the end of the block");
    assert_eq!(counts(&ours.json, "write"), counts(&theirs.json, "write"));
    assert_eq!(counts(&ours.json, "write"), [Some(256), Some(1 << 20)]);
    let lengths: Vec<String> = (0..256).map(|block| (block * 4096).to_string()).collect();
    for TracedJob { calls, .. } in [ours, theirs] {
        let seen: Vec<String> = calls.iter().flat_map(|call| arguments(call)).collect();
        assert!(seen.windows(256).any(|row| row == lengths), "{seen:?}");
    }
}

#[test]
fn falloc_engine_leaves_the_same_sizes_and_blocks_as_fio() {
    let stage = Stage::shared();
    for (rw, direction, options) in [
        ("write", "write", "--fallocate=none"),
        ("randwrite", "write", "--fallocate=native"),
        ("read", "read", "--fallocate=none"),
        ("randread", "read", ""),
        ("trim", "trim", "--overwrite=1"),
    ] {
        let words = format!("--ioengine=falloc --rw={rw} --bs=64k --size=4m {options}");
        let Some([ours, theirs]) = both(&stage, "fallocate", &words) else { return };
        assert_eq!(ours.file.len(), theirs.file.len(), "{words}");
        assert_eq!(counts(&ours.json, direction), counts(&theirs.json, direction), "{words}");
        assert_eq!(counts(&ours.json, direction), [Some(64), Some(4 << 20)], "{words}");
        let blocks = [&ours, &theirs].map(|job| job.file.blocks());
        assert!(blocks[0].abs_diff(blocks[1]) <= 64, "{words}: {blocks:?}");
        // Compare the modes and ranges of the job's calls, without the calls that made the file.
        let how = |job: &TracedJob| -> Vec<Vec<String>> {
            let mut all: Vec<_> = job.calls.iter().map(|call| arguments(call)).collect();
            all.retain(|call| call.get(2).is_some_and(|length| length == "65536"));
            all.sort();
            all
        };
        assert_eq!(how(&ours).len(), 64, "{words}");
        assert_eq!(how(&ours), how(&theirs), "{words}");
    }
}

#[test]
fn vsync_engine_joins_as_many_neighbours_as_fio() {
    let stage = Stage::shared();
    for (words, direction, expected) in [
        ("--iodepth_batch=8 --rw=read", "read", Some([8].repeat(32))),
        ("--iodepth_batch=8 --rw=write", "write", Some([8].repeat(32))),
        ("--iodepth_batch=2 --rw=read", "read", Some([2].repeat(128))),
        ("--rw=read", "read", Some([1].repeat(256))),
        // In a random order, chance decides which blocks are neighbours.
        ("--iodepth_batch=8 --rw=randread", "read", None),
    ] {
        let words = format!("--ioengine=vsync --iodepth=8 --bs=4k --size=1m {words}");
        let Some([ours, theirs]) = both(&stage, "readv,writev,preadv,pwritev", &words) else { return };
        assert_eq!(counts(&ours.json, direction), [Some(256), Some(1 << 20)], "{words}");
        // fio 3.33 forgets to count the bytes of some calls if it makes several calls before it reaps completions.
        if words.contains("batch=8") {
            assert_eq!(counts(&theirs.json, direction), counts(&ours.json, direction), "{words}");
        }
        // A call has the vectors, their number, and possibly the offset.
        let vectors = |calls: &[String]| -> Vec<u64> {
            let count = |call: &String| {
                let (_, after) = call.split_once("iov_len=4096").and(call.rsplit_once("}], "))?;
                after.split([',', ')']).next()?.parse().ok()
            };
            calls.iter().filter_map(count).collect()
        };
        let (ours, theirs) = (vectors(&ours.calls), vectors(&theirs.calls));
        assert_eq!((ours.iter().sum::<u64>(), theirs.iter().sum::<u64>()), (256, 256), "{words}");
        if let Some(expected) = expected {
            assert_eq!((&ours, &theirs), (&expected, &expected), "{words}");
        }
    }
}

#[test]
fn memory_comes_from_the_same_numa_nodes_as_in_fio() {
    let stage = Stage::shared();
    if std::fs::read_to_string("/sys/devices/system/node/has_memory").is_err() {
        return skip("the kernel shows no NUMA nodes");
    }
    for policy in ["bind:0", "prefer:0", "interleave:0", "local"] {
        let words = format!("--thread --rw=read --size=1m --numa_cpu_nodes=0 --numa_mem_policy={policy}");
        let Some([ours, theirs]) = both(&stage, "set_mempolicy", &words) else { return };
        // Compare the mode and the first word of the mask; masks differ in length.
        let asked = |calls: &[String]| -> Vec<String> {
            let until = |call: &String| -> String { call.split([',', ']']).take(2).collect() };
            calls.iter().map(until).map(|call| call.replace("NULL", "[0000000000000000")).collect()
        };
        let (ours, theirs) = (asked(&ours.calls), asked(&theirs.calls));
        // fio's library first tests what the kernel supports, so compare its last call. In fathom the self test makes the same call as
        // the workers.
        let theirs = theirs.last().unwrap();
        assert!(!ours.is_empty() && ours.iter().all(|call| call == theirs), "{policy}: {ours:?} {theirs}");
    }
    let out = stage
        .fathom("run --rw randread --size 16m --memory-nodes bind:900 --time 100ms", &stage.folder("here"));
    check_outcome(&out, 3, &["no NUMA node 900", "the nodes are: 0"]);
}

#[test]
fn engines_without_data_report_operations() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for (engine, rw, words) in [
        ("ftruncate", "write", "file lengths only, no data moved"),
        ("fallocate", "read", "file blocks only, no data moved"),
        ("fallocate", "trim", "file blocks only, no data moved"),
    ] {
        let run =
            format!("run --engine {engine} --rw {rw} --bs 64k --size 16m --runs 1 --time 200ms --quiet");
        let report = stage.fathom(&format!("{run} --format json"), &folder).report();
        let result = &report.0["results"][0];
        assert!(report.name().contains(words), "{}", report.name());
        assert_eq!(report.0["headline"]["unit"], "IOPS", "{rw} is sequential and moves nothing");
        assert_eq!(result["total"]["mb_per_s"], 0.0, "{result:#}");
        assert!(result["total"]["iops"].as_f64() > Some(0.0) && result[rw]["ops"].as_u64() > Some(0));
        assert_eq!((&result[rw]["bytes"], &result["limiter"]["name"]), (&0.into(), &"file system".into()));
        for compares_bytes in ["A22", "A23", "A24", "B01", "B13"] {
            assert!(!report.has_answer(compares_bytes, "finding"), "{:#?}", report.answers(compares_bytes));
        }
    }
    let text =
        stage.fathom("run --engine ftruncate --rw randwrite --runs 1 --time 200ms --size 16m", &folder);
    assert!(text.stdout.contains("no data moved"), "{text:?}");
    let words =
        format!("--name=cut --ioengine=ftruncate --rw=write --size=1m --directory={}", folder.display());
    let by_name = crate::fio::fio(&stage, &words);
    assert!(by_name.stdout.contains("write: IOPS=") && by_name.stderr.contains("cut is 4K"), "{by_name:?}");
    assert!(by_name.stderr.contains("no data moved"), "{by_name:?}");
}

#[test]
fn user_files_and_devices_are_not_truncated() {
    let stage = Stage::shared();
    let file = stage.file("mine", 2);
    for words in
        ["--engine ftruncate --rw write", "--engine fallocate --rw read", "--engine fallocate --rw trim"]
    {
        let out = stage.fathom(&format!("run {words} --runs 1 --time 100ms"), &file);
        check_outcome(&out, 2, &["--destroy"]);
    }
    let facts = std::fs::metadata(&file).unwrap();
    assert_eq!(facts.len(), 2 << 20);
    let refused = [
        ("--engine ftruncate --rw read", "cannot read"),
        ("--engine ftruncate --rw write --verify stamps", "moves no bytes"),
    ];
    for (words, why) in refused {
        check_outcome(&stage.fathom(&format!("run {words}"), &stage.folder("here")), 2, &[why]);
    }
    check_outcome(
        &stage.fathom("sweep --engine ftruncate --rw write", &stage.folder("here")),
        2,
        &["moves none"],
    );
    check_outcome(
        &stage.fathom("layers --engine fallocate", &stage.folder("here")),
        2,
        &["it moves no bytes"],
    );
    let destroyed = format!(
        "run --engine ftruncate --rw write --bs 64k --runs 1 --time 100ms --quiet --destroy {}",
        file.display()
    );
    let out = stage.fathom(&destroyed, &file);
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert!(std::fs::metadata(&file).unwrap().len() < 2 << 20);
    if !is_root() {
        return;
    }
    let Some(disk) = Device::new(&stage, 16, Image::Direct) else { return };
    let path = disk.path.to_string_lossy().into_owned();
    let out = stage.fathom(&format!("run --engine fallocate --rw trim --destroy {path}"), Path::new(&path));
    check_outcome(&out, 2, &["is a device", "name a file or a directory"]);
}

#[test]
fn own_truncation_is_not_reported_as_a_foreign_change() {
    let stage = Stage::shared();
    let job = stage.path("two.fio");
    let text = format!(
        "[global]\nfilename={}\nsize=4m\nbs=64k\n[punch]\nioengine=falloc\nrw=write\n[read]\nstonewall\nrw=read\n",
        stage.path("data").display()
    );
    std::fs::write(&job, text).unwrap();
    let out = stage.fathom("run --runs 1 --attempts 1 --format json --quiet", &job);
    let report = out.report();
    assert!(!report.has_answer("A23", "finding"), "{:#?}", report.0["findings"]);
    assert_eq!(report.0["results"][1]["read"]["ops"].as_u64(), Some(64), "{:#}", report.0["results"]);
}

#[test]
fn dedupe_working_set_gives_as_many_distinct_blocks_as_fio() {
    let stage = Stage::shared();
    let words = "--ioengine=psync --rw=write --bs=4k --size=16m --dedupe_percentage=40 --dedupe_mode=working_set \
                 --dedupe_working_set_percentage=10";
    let blocks = |name: &str| -> [usize; 2] {
        let data = std::fs::read(stage.path(name).join("f")).unwrap();
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        data.chunks(4096).for_each(|block| *counts.entry(block).or_default() += 1);
        [counts.len(), counts.values().filter(|count| **count > 1).count()]
    };
    if both(&stage, "none", words).is_none() {
        return;
    }
    let [ours, theirs] = [blocks("ours"), blocks("theirs")];
    // For 4096 draws, allow five deviations in each direction. Copies come only from the 409 blocks of the set.
    assert!(ours[0].abs_diff(theirs[0]) < 220, "{ours:?} {theirs:?}");
    assert!((1..=409).contains(&ours[1]) && ours[1].abs_diff(theirs[1]) < 40, "{ours:?} {theirs:?}");
}

#[test]
fn shared_dedupe_working_sets_give_as_many_distinct_blocks_as_fio() {
    if tool(&[&"fio", &"--version"]).is_err() {
        return skip("there is no fio");
    }
    let stage = Stage::shared();
    let words = "--ioengine=psync --rw=write --bs=4k --size=8m --dedupe_percentage=40 --dedupe_mode=working_set \
                 --dedupe_working_set_percentage=10 --dedupe_global=1 --filename_format=$jobname --name=a --name=b";
    let distinct = |folder: &Path, files: &[&str]| {
        let data: Vec<u8> = files.iter().flat_map(|file| std::fs::read(folder.join(file)).unwrap()).collect();
        data.chunks(4096).collect::<std::collections::HashSet<_>>().len()
    };
    let theirs = stage.folder("theirs");
    let out = wait(Command::new("fio").current_dir(&theirs).args(words.split_whitespace()));
    if !out.stderr.is_empty() && out.stderr.contains("dedupe_global") {
        return skip("this fio shares no working sets");
    }
    let ours = stage.folder("ours");
    let own = fio(&stage, &format!("--directory={} {words}", ours.display()));
    assert_eq!((out.code, own.code), (Some(0), Some(0)), "{out:?} {own:?}");
    // For 4096 draws in both files, allow five deviations in each direction.
    let both = [&ours, &theirs].map(|folder| distinct(folder, &["a", "b"]));
    assert!(both[0].abs_diff(both[1]) < 250, "{both:?}");
    // With a shared set, half of a file's copies are blocks of the other file. So a file alone has more distinct blocks than without
    // sharing.
    let alone = [&ours, &theirs].map(|folder| distinct(folder, &["a"]));
    assert!(alone[0].abs_diff(alone[1]) < 180, "{alone:?}");
}

#[test]
fn atomic_writes_work_where_supported() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "xfs", Image::Direct) else { return };
    let run = |engine: &str, more: &str| {
        let words = format!(
            "run --engine {engine} --rw randwrite --size 16m --ops 200 --runs 1 --warmup 0 --quiet --format json {more}"
        );
        disk.fathom(&stage, &words, &disk.dir)
    };
    let failed = |out: Outcome| {
        let report = out.report();
        report.answers("B12").first().map(|b12| b12["evidence"]["failed_ops"].as_f64().unwrap_or(0.0))
    };
    let first = run("vsync:atomic", "--bs 16k");
    if first.stderr.contains("has no atomic writes") {
        return skip("this kernel's xfs has no atomic writes");
    }
    for engine in ["vsync", "libaio", "io_uring"] {
        assert_eq!(failed(run(&format!("{engine}:atomic"), "--bs 16k")), Some(0.0), "{engine}");
        // The kernel refuses an atomic write whose offset is not a multiple of its size, and accepts it as an ordinary write.
        let crooked = "--bs 16k --align 4k --offset 4k --max-errors all";
        assert_eq!(failed(run(engine, crooked)), Some(0.0), "{engine}");
        assert!(failed(run(&format!("{engine}:atomic"), crooked)) > Some(100.0), "{engine}");
    }
    for (engine, more, why) in [
        ("io_uring:atomic", "--bs 12k", "powers of two from"),
        ("libaio:atomic", "--bs 16k --cache buffered", "type --cache direct"),
    ] {
        let out = run(engine, more);
        assert!(out.code != Some(0) && out.stderr.contains(why), "{out:?}");
    }
    // fio's options request atomic writes too. This file system does not support them.
    let folder = stage.folder("here");
    let fio = |more: &str| {
        let words = format!(
            "--directory={} --name=a --size=1m --rw=write --bs=4k --direct=1 {more}",
            folder.display()
        );
        fio(&stage, &words)
    };
    let out = fio("--ioengine=libaio --atomic=1");
    assert!(out.code == Some(0) || out.stderr.contains("option atomic:"), "{out:?}");
    let out = fio("--atomic=1");
    assert!(
        out.stderr.contains("the option works only with ioengine=libaio or io_uring or pvsync2"),
        "{out:?}"
    );
}

#[test]
fn libaio_trims_synchronously_as_fio() {
    if tool(&[&"fio", &"--version"]).is_err() || tool(&[&"strace", &"-V"]).is_err() || !is_root() {
        return skip("there is no fio, no strace, or no root");
    }
    let stage = Stage::shared();
    let Some(disk) = Device::new(&stage, 16, Image::Direct) else { return };
    let path = disk.path.display();
    let words = format!("--rw=randtrim --ioengine=libaio --iodepth=8 --bs=64k --size=4m --filename={path}");
    let trimmed = [(false, format!("{words} --destroy {path}")), (true, words)].map(|(by_fio, words)| {
        let (json, calls) = traced(&stage, by_fio, "ioctl", &words);
        assert_eq!(counts(&json, "trim"), [Some(64), Some(4 << 20)], "{json}");
        let of_blocks = calls.iter().filter(|call| call.contains("BLKDISCARD"));
        let ranges = of_blocks.map(|call| call[call.find('[').unwrap_or(0)..].split_whitespace());
        // strace aligns results with spaces, whose number depends on the file descriptor.
        ranges.map(|words| words.collect::<Vec<_>>().join(" ")).collect::<BTreeSet<String>>()
    });
    assert_eq!(trimmed[0].len(), 64);
    assert_eq!(trimmed[0], trimmed[1]);
}
