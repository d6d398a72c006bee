//! File systems that store bytes in special ways: files in their inode, compressed and shared blocks, zeros, and writes that were deallocated.

use crate::disk::{Device, Disk, Image};
use crate::stage::{Stage, fill, is_root, tool};

const SHORT: &str = "--time 300ms --warmup 50ms --runs 1 --quiet --format json";

#[test]
fn inline_files_are_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4 inline", Image::Direct) else { return };
    disk.sh("head -c 100 /dev/urandom > tiny && sync");
    let words = format!("run --rw randread --bs 50 --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("tiny")).report();
    assert_eq!(report.expect_answer("A06", "finding")["severity"], "rename");
    disk.file("large", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("large")).report().expect_answer("A06", "holds");
}

#[test]
fn compressed_files_occupy_fewer_bytes() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "btrfs", Image::Direct) else { return };
    disk.sh("mkdir d && btrfs property set d compression zstd && yes fathom | head -c 32M > d/text && sync");
    let words = format!("run --rw randread --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("d/text")).report();
    assert_eq!(report.expect_answer("A07", "finding")["severity"], "biased");
    disk.file("plain", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("plain")).report().expect_answer("A07", "holds");
}

#[test]
fn writes_to_deallocated_blocks_have_no_number() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 64);
    let words = format!("run --rw randwrite --cache buffered --destroy {} {SHORT}", file.display());
    let untouched = disk.fathom(&stage, &words, &file).report();
    untouched.expect_answer("A10", "holds");
    // Wait until the run has begun: fathom refuses a file that another program writes.
    let mut run = disk.start(&stage, &words.replace("--quiet", ""), &file);
    run.wait_for_output("run 1 of");
    let neighbour =
        disk.spawn_sh("while :; do fallocate --punch-hole --offset 0 --length 64m data; sleep 0.05; done");
    let report = run.end().report();
    drop(neighbour);
    assert_eq!(report.expect_answer("A10", "finding")["severity"], "void");
}

#[test]
fn zeros_do_not_count_as_data_and_filled_files_do() {
    let stage = Stage::one_per_cpu();
    let zeros = stage.path("zeros");
    std::fs::write(&zeros, vec![0; 64 << 20]).unwrap();
    std::fs::File::open(&zeros).unwrap().sync_all().unwrap();
    let words = format!("run --rw randread {SHORT}");
    stage.fathom(&words, &zeros).report().expect_answer("A05", "finding");
    stage.fathom(&words, &stage.file("data", 64)).report().expect_answer("A05", "holds");
}

#[test]
fn each_stream_is_judged_by_the_blocks_of_its_own_region() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    // Never written: less than 1 % of the file, but all of the first stream's region.
    disk.sh("fallocate -l 512k data && head -c 64M /dev/urandom >> data && sync");
    let (file, job) = (disk.dir.join("data"), stage.path("regions.toml"));
    let text = format!(
        "name = \"two\"\ntime = \"300ms\"\nwarmup = \"0s\"\nruns = 1\ntarget = \"{}\"\nbs = \"4k\"\n\
         [[stream]]\nname = \"unwritten\"\nrw = \"write\"\nsize = \"512k\"\npasses = 1\n\
         [[stream]]\nname = \"data\"\nrw = \"randwrite\"\noffset = \"512k\"\nlimit-iops = 1000\n",
        file.display()
    );
    std::fs::write(&job, text).unwrap();
    let words = format!("run --quiet --format json --destroy {}", file.display());
    let report = disk.fathom(&stage, &words, &job).report();
    let found = report.expect_answer("B16", "finding");
    assert_eq!(
        (&found["about"], &found["severity"]),
        (&serde_json::json!(["two, unwritten"]), &"rename".into())
    );
    let share = &found["evidence"]["without_blocks_share"];
    assert_eq!(share.as_f64(), Some(1.0), "{found}");
    assert_eq!(report.expect_answer("B16", "holds")["about"], serde_json::json!(["two, data"]));
}

#[test]
fn overwriting_shared_blocks_is_not_in_place() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "xfs", Image::Direct) else { return };
    let file = disk.file("data", 32);
    let words = format!("run --rw randwrite --depth 4 --destroy {} {SHORT}", file.display());
    disk.sh("sync");
    disk.fathom(&stage, &words, &file).report().expect_answer("A21", "holds");
    disk.sh("cp --reflink=always data copy && sync");
    let report = disk.fathom(&stage, &words, &file).report();
    assert_eq!(report.expect_answer("A21", "finding")["severity"], "biased");
}

#[test]
fn blocks_that_a_cache_below_takes_up_are_slower_at_first() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 256, Image::Buffered) else { return };
    fill(&device.image, 256);
    // Other load may hide the finding in one reading, but not in three.
    let evict = format!("of={}", device.image.display());
    let found = (0..3).any(|_| {
        tool(&[&"dd", &evict, &"oflag=nocache", &"conv=notrunc,fdatasync", &"count=0"]).unwrap();
        let report = stage.fathom(&format!("run --rw randread {SHORT}"), &device.path).report();
        report.has_answer("A17", "finding")
            && report.expect_answer("A17", "finding")["evidence"]["again_by_first"].as_f64().unwrap() < 0.5
    });
    assert!(found, "a cache below was not seen");
}
