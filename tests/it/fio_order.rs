//! Special access orders of fio: writes after trims, zones, and shares of concurrent jobs, compared with fio.

use crate::disk::{Device, Image};
use crate::fio::fio;
use crate::fio_logs::{Logs, both};
use crate::stage::Stage;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Direction, size and offset of each operation in a log, in their order.
fn operations(logs: &Logs) -> Vec<[u64; 3]> {
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs[0].1.iter().map(|row| [row[2], row[3], row[4]]).collect()
}

/// The operations of a command line under fathom and under fio, with an engine that does nothing.
fn done(words: &str) -> (Vec<[u64; 3]>, Option<Vec<[u64; 3]>>) {
    let stage = Stage::shared();
    let always = "--name=j --ioengine=null --bs=4k --write_bw_log=PREFIX --log_offset=1";
    let (ours, theirs) = both(&stage, format!("{always} {words}").trim());
    (operations(&ours), theirs.map(|theirs| operations(&theirs)))
}

#[test]
fn trimwrite_writes_each_trimmed_block_as_fio() {
    for (words, count) in [
        ("--rw=trimwrite --size=64k", 32),
        ("--rw=trimwrite --size=64k --loops=2", 64),
        ("--rw=trimwrite --size=64k --number_ios=5", 10),
        ("--rw=trimwrite --size=64k --io_size=16k", 8),
        ("--rw=trimwrite:8k --size=64k --bs=8k --number_ios=4", 8),
    ] {
        let (ours, theirs) = done(words);
        assert_eq!(ours.len(), count, "{words}");
        assert!(theirs.is_none_or(|theirs| theirs == ours), "{words}: {ours:?}");
    }
    for words in
        ["--bs=4k", "--bs=4k,4k,8k", "--bsrange=512-4k", "--bssplit=512/25:1k/:2k/:4k/", "--norandommap=1"]
    {
        let (ours, theirs) = done(&format!("--rw=randtrimwrite --size=64k {words}"));
        let same = |all: &Vec<[u64; 3]>| -> (u64, BTreeSet<u64>) {
            assert!(
                all.chunks(2).all(|pair| pair[0][0] == 2 && pair[1][0] == 1 && pair[0][1..] == pair[1][1..])
            );
            let sectors = all.iter().flat_map(|[_, size, at]| (*at..at + size).step_by(512));
            (all.iter().map(|op| op[1]).sum(), sectors.collect())
        };
        let (bytes, sectors) = same(&ours);
        assert_eq!(bytes, 128 << 10, "{words}");
        assert_eq!(sectors.len() == 128, !words.contains("norandommap"), "{words}");
        assert!(theirs.is_none_or(|theirs| same(&theirs).0 > 64 << 10), "{words}");
    }
}

#[test]
fn block_sizes_are_drawn_as_often_as_in_fio() {
    for words in [
        "--bsrange=4k-10k",
        "--bsrange=3k-12k",
        "--bssplit=64k/10:4k/20",
        "--bssplit=64k/1",
        "--bssplit=4k/50:5k/20:9k/30",
        "--bssplit=4k/50:5k/20:9k/30 --bs_unaligned",
    ] {
        let (ours, theirs) =
            done(&format!("--rw=randread --norandommap --size=256m --number_ios=3000 {words}"));
        let counts = |all: &[[u64; 3]]| {
            let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
            for op in all {
                *counts.entry(op[1]).or_default() += 1.0;
            }
            counts
        };
        let Some(theirs) = theirs else { continue };
        let (ours, theirs) = (counts(&ours), counts(&theirs));
        assert!(ours.keys().eq(theirs.keys()), "{words}: {ours:?} {theirs:?}");
        // Allow five standard deviations of the difference of two counts.
        let near = |(of_ours, of_theirs): (&f64, &f64)| {
            (of_ours - of_theirs).abs() <= 5.0 * (of_ours + of_theirs).sqrt()
        };
        assert!(ours.values().zip(theirs.values()).all(near), "{words}: {ours:?} {theirs:?}");
    }
}

#[test]
fn sequential_mixed_sizes_end_with_the_file_as_in_fio() {
    for words in [
        "--rw=write --bsrange=512-8k",
        "--rw=read --bssplit=512/10:4k/60:16k/30",
        "--rw=trimwrite --bsrange=512-4k",
    ] {
        let (ours, theirs) = done(&format!("--size=100k {words}"));
        for all in [Some(ours), theirs].into_iter().flatten() {
            let firsts = all.iter().filter(|op| !words.contains("trimwrite") || op[0] == 2);
            let end = firsts.fold(0, |at, op| {
                assert_eq!(op[2], at, "{words}: {all:?}");
                at + op[1]
            });
            assert_eq!(end, 100 << 10, "{words}: {all:?}");
        }
    }
}

#[test]
fn trims_and_writes_change_their_device_and_are_counted_separately() {
    let stage = Stage::shared();
    let image = stage.path("image");
    std::fs::write(&image, vec![7; 1 << 20]).unwrap();
    let Some(disk) = Device::on(&image, Image::Direct) else { return };
    let path = disk.path.display();
    let words = |more: &str| {
        format!("--name=a --rw=randtrimwrite --bs=4k --filename={path} --output-format=json {more}")
    };
    let refused = fio(&stage, &words(""));
    assert!(refused.code == Some(1) && refused.stderr.contains("--destroy"), "{refused:?}");
    assert!(std::fs::read(&disk.path).unwrap().iter().all(|byte| *byte == 7));
    for more in [
        "--ioengine=psync",
        "--ioengine=io_uring --iodepth=8",
        "--ioengine=io_uring --iodepth=8 --verify=crc32c",
    ] {
        let out = fio(&stage, &words(&format!("{more} --destroy={path}")));
        assert_eq!(out.code, Some(0), "{more}: {out:?}");
        let json: Value = serde_json::from_str(&out.stdout).unwrap();
        let ios = |kind: &str| json["jobs"][0][kind]["total_ios"].as_u64();
        let read = if more.contains("verify") { 256 } else { 0 };
        assert_eq!((ios("trim"), ios("write"), ios("read")), (Some(256), Some(256), Some(read)), "{more}");
        // If a trim came after its write, the file would contain zeros.
        let data = std::fs::read(&disk.path).unwrap();
        assert!(data.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)), "{more}");
    }
}

#[test]
fn files_are_trimmed_by_fathoms_own_command() {
    let stage = Stage::shared();
    let file = stage.path("data");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    // The engine must support both trims and writes.
    let printed = |words: &str| stage.fathom(&format!("run {words} --ops 32 --runs 1"), &file);
    let pairs = printed(&format!("--rw trimwrite --bs 64k --destroy {}", file.display()));
    assert!(pairs.stdout.contains("64K sequential trimwrite"), "{pairs:?}");
    let unable = printed(&format!("--rw trimwrite --engine libaio --destroy {}", file.display()));
    assert!(unable.code == Some(2) && unable.stderr.contains("libaio cannot trim"), "{unable:?}");
}

#[test]
fn zones_are_traversed_as_in_fio() {
    for (words, count) in [
        ("--rw=read --size=64k --zonesize=8k", 16),
        ("--rw=read --size=64k --zonesize=8k --zoneskip=8k", 16),
        ("--rw=write --size=64k --zonesize=4k --zonerange=8k", 16),
        ("--rw=read --size=64k --zonesize=16k --zonerange=8k", 16),
        ("--rw=read --size=60k --zonesize=16k --zoneskip=8k", 11),
        ("--rw=read --size=64k --zonesize=10k --zonerange=16k", 16),
        ("--rw=read --size=64k --zonesize=8k --zoneskip=8k --io_size=24k", 6),
        ("--rw=read --filesize=64k --offset=32k --zonesize=8k", 8),
        ("--rw=trimwrite --size=64k --zonesize=8k --zoneskip=4k", 32),
        ("--rw=trimwrite --size=60k --zonesize=16k --zoneskip=8k", 30),
        ("--rw=trimwrite --size=52k --zonesize=16k --zoneskip=8k", 10),
        ("--rw=read --size=64k --zonesize=4k --zonerange=16k --zoneskip=8k", 16),
        ("--rw=read --size=60k --zonesize=4k --zonerange=16k --zoneskip=8k", 15),
    ] {
        let (ours, theirs) = done(&format!("--zonemode=strided {words}"));
        assert_eq!(ours.len(), count, "{words}: {ours:?}");
        assert!(theirs.is_none_or(|theirs| theirs == ours), "{words}: {ours:?}");
    }
    for (words, once) in [("", true), ("--random_generator=lfsr", true), ("--norandommap=1", false)] {
        let (ours, theirs) = done(&format!(
            "--zonemode=strided --rw=randread --size=256k --zonesize=32k --zonerange=16k --zoneskip=16k {words}"
        ));
        for all in [Some(ours), theirs].into_iter().flatten() {
            assert_eq!(all.len(), 64);
            for (zone, ops) in all.chunks(8).enumerate() {
                let first = zone as u64 % 8 * (32 << 10);
                assert!(ops.iter().all(|op| (first..first + (16 << 10)).contains(&op[2])), "{all:?}");
                let blocks = |pass: &[[u64; 3]]| pass.iter().map(|op| op[2]).collect::<BTreeSet<_>>().len();
                assert!(!once || ops.chunks(4).all(|pass| blocks(pass) == 4), "{all:?}");
            }
        }
    }
    // `fathom run --strided` moves the same blocks.
    let stage = Stage::shared();
    let file = stage.file("data", 1);
    let printed = |zones: &str| {
        stage.fathom(&format!("run --rw read --bs 4k --strided {zones} --ops 64 --runs 1"), &file)
    };
    let out = printed("64k,128k,64k");
    assert!(out.stdout.contains("in zones of 128K (64K each), 64K apart"), "{out:?}");
    assert!(printed("64k,2m").stderr.contains("a zone of 2"), "{:?}", printed("64k,2m"));
}

#[test]
fn flow_keeps_the_shares_of_concurrent_jobs() {
    // Run alone: on a busy machine threads begin late, and a thread that ends late exceeds its share.
    let stage = Stage::new();
    let job = stage.path("flow.fio");
    // A thread that ends last exceeds its share. The rate keeps the excess small: the null engine alone would do millions of operations.
    let text = |more: &str| {
        format!(
            "[global]\nioengine=null\nbs=4k\nsize=100g\ntime_based\nthread\nflow_id=1\nrate_iops=20000\n{more}[a]\nflow=1\nruntime=2\n[b]\nflow=2\nruntime=2\n[c]\nflow=5\nruntime=1\n"
        )
    };
    for more in ["", "flow_sleep=200\n"] {
        std::fs::write(&job, text(more)).unwrap();
        let out = fio(&stage, &format!("{} --output-format=json", job.display()));
        assert_eq!(out.code, Some(0), "{out:?}");
        let json: Value = serde_json::from_str(&out.stdout).unwrap();
        let ios = |at: usize| json["jobs"][at]["read"]["total_ios"].as_f64().unwrap();
        assert!(ios(0) > 100.0, "{} {} {}", ios(0), ios(1), ios(2));
        let share = ios(1) / ios(0);
        // A thread that begins or ends 0.1 s late moves the share by a twentieth. Without flows it is 1.
        assert!((share - 2.0).abs() < 0.4, "the shares hold all the time: {share}");
        // The third job ends first, so its share of the total depends on how fast the other jobs run afterwards.
        assert!(ios(2) / ios(0) < 5.1, "{} of {}", ios(2), ios(0));
    }
    let alone = stage.fathom("run --rw read --flow 3", &stage.file("data", 1));
    assert!(alone.code == Some(2) && alone.stderr.contains("has no effect"), "{alone:?}");
}
