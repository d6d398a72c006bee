//! What is stored: files that live in their inode, compressed and shared ones, zeros, and writes that were never carried out.
//!
//! For: real file systems that store bytes in their own way. Not for: holes and caches (`honesty`).

use crate::disk::{Device, Disk, Image};
use crate::stage::{Stage, fill, is_root, tool};

const SHORT: &str = "--time 300ms --warmup 50ms --runs 1 --quiet --format json";

#[test]
fn inline_files_are_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "ext4 inline", Image::Direct) else { return };
    disk.sh("head -c 100 /dev/urandom > tiny && sync");
    let words = format!("run --rw randread --bs 50 --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("tiny")).report();
    assert_eq!(report.must_say("A06", "finding")["severity"], "rename");
    disk.file("large", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("large")).report().must_say("A06", "holds");
}

#[test]
fn compressed_files_occupy_fewer_bytes() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "btrfs", Image::Direct) else { return };
    disk.sh("mkdir d && btrfs property set d compression zstd && yes fathom | head -c 32M > d/text && sync");
    let words = format!("run --rw randread --cache buffered --depth 1 {SHORT}");
    let report = disk.fathom(&stage, &words, &disk.dir.join("d/text")).report();
    assert_eq!(report.must_say("A07", "finding")["severity"], "biased");
    disk.file("plain", 16);
    disk.sh("sync");
    disk.fathom(&stage, &words, &disk.dir.join("plain")).report().must_say("A07", "holds");
}

#[test]
fn writes_to_deallocated_blocks_have_no_number() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let file = disk.file("data", 64);
    let words = format!("run --rw randwrite --cache buffered --destroy {} {SHORT}", file.display());
    let untouched = disk.fathom(&stage, &words, &file).report();
    untouched.must_say("A10", "holds");
    // Not before it begins: what somebody writes to is not written.
    let mut run = disk.start(&stage, &words.replace("--quiet", ""), &file);
    run.until_it_says("run 1 of");
    let beside =
        disk.sh_beside("while :; do fallocate --punch-hole --offset 0 --length 64m data; sleep 0.05; done");
    let report = run.end().report();
    drop(beside);
    assert_eq!(report.must_say("A10", "finding")["severity"], "void");
}

#[test]
fn zeros_do_not_count_as_data_and_filled_files_do() {
    let stage = Stage::beside_few();
    let zeros = stage.path("zeros");
    std::fs::write(&zeros, vec![0; 64 << 20]).unwrap();
    std::fs::File::open(&zeros).unwrap().sync_all().unwrap();
    let words = format!("run --rw randread {SHORT}");
    stage.fathom(&words, &zeros).report().must_say("A05", "finding");
    stage.fathom(&words, &stage.file("data", 64)).report().must_say("A05", "holds");
}

#[test]
fn overwriting_shared_blocks_is_not_in_place() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(disk) = Disk::new(&stage, "xfs", Image::Direct) else { return };
    let file = disk.file("data", 32);
    let words = format!("run --rw randwrite --depth 4 --destroy {} {SHORT}", file.display());
    disk.sh("sync");
    disk.fathom(&stage, &words, &file).report().must_say("A21", "holds");
    disk.sh("cp --reflink=always data copy && sync");
    let report = disk.fathom(&stage, &words, &file).report();
    assert_eq!(report.must_say("A21", "finding")["severity"], "biased");
}

#[test]
fn blocks_in_a_cache_below_are_slower_at_first() {
    if !is_root() {
        return;
    }
    let stage = Stage::beside_others();
    let Some(device) = Device::new(&stage, 256, Image::Buffered) else { return };
    fill(&device.image, 256);
    // Whoever else uses the machine at that moment may slow either reading; not three times.
    let evict = format!("of={}", device.image.display());
    let found = (0..3).any(|_| {
        tool(&[&"dd", &evict, &"oflag=nocache", &"conv=notrunc,fdatasync", &"count=0"]).unwrap();
        let report = stage.fathom(&format!("run --rw randread {SHORT}"), &device.path).report();
        report.says("A17", "finding")
            && report.must_say("A17", "finding")["evidence"]["again_by_first"].as_f64().unwrap() < 0.5
    });
    assert!(found, "a cache below was not seen");
}
