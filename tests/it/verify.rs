//! `fathom verify`: written data are found again, damage is named with its offset, and a crash of the writer is survived.

use crate::disk::{Device, Disk, Image};
use crate::stage::{Outcome, Running, Stage, is_root, names, skip};
use engine::engines::ENGINES;
use model::stamp::{self, Stamp};
use model::verification::State;
use rustix::process::Signal;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK: u64 = 64 << 10;
const BLOCKS: u64 = 512;
/// The state file is updated every few milliseconds, so that a kill always comes after an update.
const EVERY: &str = "--bs 64k --sync-every 8";

/// A file of the user, its state file, and a copy of the state from the middle of the writing.
struct Written {
    file: PathBuf,
    state: PathBuf,
}

impl Written {
    fn new(stage: &Stage) -> Self {
        let file = stage.path("target");
        File::create(&file).unwrap().set_len(BLOCKS * BLOCK).unwrap();
        Self { file, state: stage.path("state") }
    }

    /// Starts to write.
    fn start(&self, stage: &Stage, words: &str) -> Running {
        let (file, state) = (self.file.display(), self.state.display());
        stage.start(&format!("verify {EVERY} {words} --destroy {file} --state {state} --quiet"), &self.file)
    }

    /// Verifies the data on the target.
    fn check(&self, stage: &Stage, words: &str) -> Outcome {
        let state = self.state.display();
        stage.fathom(&format!("verify --check {state} --quiet {words}"), &self.file)
    }

    /// The current state file.
    fn state(&self) -> Option<State> {
        State::parse(&std::fs::read_to_string(&self.state).ok()?).ok()
    }

    /// Waits until this many writes are known to be stable.
    fn until_synced(&self, writes: u64) {
        let since = Instant::now();
        while self.state().is_none_or(|s| s.writer_progress.synced < writes) {
            assert!(since.elapsed() < Duration::from_secs(30), "{writes} writes were never stable");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn block(path: &Path, block: u64) -> Vec<u8> {
        let mut data = vec![0; BLOCK as usize];
        File::open(path).unwrap().read_exact_at(&mut data, block * BLOCK).unwrap();
        data
    }

    /// Overwrites a part of the file, like another program.
    fn put(&self, offset: u64, data: &[u8]) {
        let file = File::options().write(true).open(&self.file).unwrap();
        file.write_all_at(data, offset).unwrap();
        file.sync_all().unwrap();
    }
}

#[track_caller]
fn verified(out: &Outcome) {
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.starts_with("VERIFIED "), "{}", out.stdout);
}

/// Fails unless the report has exactly these damages: an offset and a kind for each.
#[track_caller]
fn damaged(out: &Outcome, right: &[(u64, &str)]) {
    assert_eq!(out.code, Some(1), "{out:?}");
    let words = format!("DAMAGED {} of {BLOCKS} blocks of 64 KiB", right.len());
    assert!(out.stdout.starts_with(&words), "{}", out.stdout);
    let lines: Vec<&str> = out.stdout.lines().filter(|l| l.starts_with("  offset ")).collect();
    let expected: Vec<String> = right.iter().map(|(at, kind)| format!("  offset {at}: {kind}: ")).collect();
    assert_eq!(lines.len(), expected.len(), "{}", out.stdout);
    for (line, start) in lines.iter().zip(&expected) {
        assert!(line.starts_with(start), "not '{start}': {}", out.stdout);
    }
}

#[test]
fn bytes_and_time_are_announced_before_the_first_write() {
    let stage = Stage::shared();
    let out = stage.fathom("verify --size 16m", &stage.folder("here"));
    let announced = "It writes at most 48 MiB (16 MiB of the test file, then 2 passes over 16 MiB), and reads 16 MiB back. \
                     It takes about 1 s at 100 MB/s.\n";
    assert!(out.stderr.starts_with(announced), "{out:?}");
}

#[test]
fn of_two_verifications_of_one_file_at_once_only_one_writes() {
    let stage = Stage::shared();
    let file = stage.path("both");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let words = format!("verify --destroy {} --quiet", file.display());
    let outcomes = [stage.start(&words, &file), stage.start(&words, &file)].map(Running::end);
    for out in &outcomes {
        let is_refused = out.code == Some(3) && out.stderr.contains("is in use");
        assert!(is_refused || out.stdout.starts_with("VERIFIED "), "{outcomes:?}");
    }
}

#[test]
fn a_target_that_is_not_there_is_not_damaged() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    verified(&written.start(&stage, "--passes 1").end());
    std::fs::remove_file(&written.file).unwrap();
    let out = written.check(&stage, "");
    assert!(out.code == Some(3) && out.stderr.contains("does not exist, so nothing was checked"), "{out:?}");
}

#[test]
fn an_option_that_moves_no_data_is_refused() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for engine in ["io_uring:nop", "splice:discard", "copy_file_range:bare"] {
        let words = format!("verify --size 16m --cache buffered --engine {engine}");
        let out = stage.fathom(&words, &folder);
        let why = format!("the engine {engine} moves no data that could be verified");
        assert!(out.code == Some(2) && out.stderr.contains(&why), "{out:?}");
    }
}

#[test]
#[ignore = "long"]
fn every_engine_verifies_in_every_mode_without_leftovers() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for engine in ENGINES.iter().filter(|e| e.moves_bytes) {
        for cache in engine.caches {
            let (engine, cache) = (engine.name, cache.word());
            let words = format!("verify --size 16m --engine {engine} --cache {cache} --quiet");
            let out = stage.fathom(&words, &folder);
            if out.stderr.contains("cannot be set up") {
                skip(&out.stderr);
                continue;
            }
            println!("{engine} {cache}");
            verified(&out);
            assert!(out.stdout.contains("256 blocks of 64 KiB, 2 passes"), "{}", out.stdout);
            assert!(out.stdout.contains("32 MiB written and 16 MiB read back"), "{}", out.stdout);
        }
    }
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn manual_damage_is_named_with_its_offset() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    let running = written.start(&stage, "--passes 2");
    // The data of the first pass are stale after the second.
    written.until_synced(BLOCKS);
    let old = stage.path("old");
    running.while_stopped(|| {
        std::thread::sleep(Duration::from_millis(100));
        std::fs::copy(&written.file, &old).unwrap();
    });
    verified(&running.end());
    verified(&written.check(&stage, ""));

    let block = |n: u64| Written::block(&written.file, n);
    let apart = [3, 10, 11, 500];
    let mut outdated = (0..BLOCKS).filter(|n| !apart.contains(n) && Written::block(&old, *n) != block(*n));
    let (stale, torn) = (outdated.next().unwrap(), outdated.next().unwrap());
    let flipped = block(3)[1234] ^ 0x08;
    written.put(3 * BLOCK + 1234, &[flipped]);
    let (ten, eleven) = (block(10), block(11));
    written.put(10 * BLOCK, &eleven);
    written.put(11 * BLOCK, &ten);
    written.put(stale * BLOCK, &Written::block(&old, stale));
    written.put(torn * BLOCK, &Written::block(&old, torn)[..BLOCK as usize / 2]);
    written.put(500 * BLOCK, &vec![0; BLOCK as usize]);

    let out = written.check(&stage, "");
    let mut right = vec![
        (3 * BLOCK, "flipped"),
        (10 * BLOCK, "misplaced"),
        (11 * BLOCK, "misplaced"),
        (stale * BLOCK, "stale"),
        (torn * BLOCK, "torn"),
        (500 * BLOCK, "zeros"),
    ];
    right.sort_unstable();
    damaged(&out, &right);
    assert!(out.stdout.contains("one bit differs, in byte 1234"), "{}", out.stdout);
    assert!(out.stdout.contains(&format!("put at offset {}", 11 * BLOCK)), "{}", out.stdout);
    assert!(out.stdout.contains("64 of 128 sectors, starting with sector 64,"), "{}", out.stdout);
    // The JSON has the same damage, read with another engine and through the page cache.
    let json = written.check(&stage, "--format json --engine sync --cache buffered");
    assert_eq!(json.code, Some(1), "{json:?}");
    let report = json.report().0;
    assert_eq!((&report["verdict"], &report["damaged"]), (&"DAMAGED".into(), &6.into()));
    let found = report["damage"].as_array().unwrap().iter();
    let found: Vec<(u64, &str)> =
        found.map(|d| (d["offset"].as_u64().unwrap(), d["kind"].as_str().unwrap())).collect();
    assert_eq!(found, right);
}

#[test]
fn killed_writer_left_its_stable_data() {
    for (cache, marks) in [("direct", 5), ("buffered", 70), ("direct-sync", 30), ("direct", 131)] {
        let stage = Stage::shared();
        let written = Written::new(&stage);
        let running = written.start(&stage, &format!("--passes 40 --cache {cache}"));
        written.until_synced(8 * marks);
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None);
        let out = written.check(&stage, "");
        verified(&out);
        println!("{cache}: {}", out.stdout);
        // The line may be wrapped in the middle of these words.
        let words = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("writes known to be stable"), "{}", out.stdout);
    }
}

#[test]
fn lost_stable_data_of_a_killed_writer_are_damage() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    let running = written.start(&stage, "--passes 40");
    written.until_synced(BLOCKS);
    let then = stage.path("then");
    let marked = running.while_stopped(|| {
        std::thread::sleep(Duration::from_millis(100));
        std::fs::copy(&written.file, &then).unwrap();
        written.state().unwrap().writer_progress.synced
    });
    // Write every block once more, wherever the kill interrupts a pass.
    written.until_synced(marked + 2 * BLOCKS + 8);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    verified(&written.check(&stage, ""));
    // One block has the data of an earlier pass, and one has zeros.
    written.put(7 * BLOCK, &Written::block(&then, 7));
    written.put(9 * BLOCK, &vec![0; BLOCK as usize]);
    damaged(&written.check(&stage, ""), &[(7 * BLOCK, "stale"), (9 * BLOCK, "zeros")]);
    // An old copy of the whole file lost every block.
    std::fs::copy(&then, &written.file).unwrap();
    let out = written.check(&stage, "");
    assert!(out.stdout.starts_with("DAMAGED 512 of 512 blocks"), "{}", out.stdout);
    assert_eq!(out.stdout.lines().filter(|l| l.starts_with("  offset ")).count(), 100);
    assert!(out.stdout.contains("and 412 more"), "{}", out.stdout);
}

#[test]
fn truncated_file_is_damaged_with_its_lost_range() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    verified(&written.start(&stage, "").end());
    let cut = |bytes: u64| File::options().write(true).open(&written.file).unwrap().set_len(bytes).unwrap();
    let words = |out: &Outcome| out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // Cut in the middle of a block, and cut to nothing.
    for (bytes, lost) in [(400 * BLOCK + 100, 112), (0, BLOCKS)] {
        cut(bytes);
        let out = written.check(&stage, "");
        assert_eq!(out.code, Some(1), "{out:?}");
        let (damaged, range) =
            (format!("DAMAGED {lost} of {BLOCKS} blocks"), format!("bytes {bytes} to {} ", BLOCKS * BLOCK));
        assert!(words(&out).starts_with(&damaged) && words(&out).contains(&range), "{out:?}");
        let json = written.check(&stage, "--format json").report();
        assert_eq!(json.0["read"]["lost"]["blocks"], lost, "{json:?}");
    }
}

#[test]
fn only_writes_in_flight_may_be_torn() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    let running = written.start(&stage, "--passes 40");
    written.until_synced(BLOCKS + 8);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let state = written.state().unwrap();
    let expected = (0..BLOCKS).filter_map(|turn| state.verification.expected(turn, state.writer_progress));
    let flying = expected.into_iter().find(|e| e.begun.is_some()).unwrap();
    let half = |sequence: u64, sectors: usize| {
        let mut data = vec![0; sectors * stamp::SECTOR];
        stamp::write(&mut data, &Stamp { id: flying.id, offset: flying.offset, sequence });
        data
    };
    written.put(flying.offset, &half(flying.synced, 128));
    written.put(flying.offset, &half(flying.begun.unwrap(), 64));
    let out = written.check(&stage, "");
    verified(&out);
    let note =
        format!("in flight after the last known sync, which is allowed: 1, at offsets {}.", flying.offset);
    assert!(crate::in_use::unwrapped(&out.stdout).contains(&note), "{}", out.stdout);
    // A torn write counts as in flight only if it is newer than the last stable write, so this one is damage.
    written.put(flying.offset, &half(flying.synced - 1, 64));
    damaged(&written.check(&stage, ""), &[(flying.offset, "torn")]);
}

#[test]
fn interrupt_leaves_nothing() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    for words in ["making a test file", "writing pass 1", "writing pass 2"] {
        let mut running = stage.start("verify --size 128m --passes 500", &folder);
        running.wait_for_output(words);
        running.signal(Signal::INT);
        let out = running.end();
        assert_eq!(out.code, Some(130), "{out:?}");
        assert!(out.stdout.is_empty() || out.stdout.starts_with("INTERRUPTED after "), "{}", out.stdout);
        assert_eq!(names(&folder), Vec::<PathBuf>::new());
    }
    let mut running = stage.start("verify --size 256m --passes 1 --engine sync", &folder);
    running.wait_for_output("reading back");
    running.signal(Signal::INT);
    let out = running.end();
    assert_eq!(out.code, Some(130), "{out:?}");
    assert!(out.stdout.starts_with("INTERRUPTED after ") && out.stdout.contains("read back"), "{out:?}");
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn interrupted_writer_can_be_checked() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    let running = written.start(&stage, "--passes 40");
    written.until_synced(BLOCKS / 2);
    running.signal(Signal::TERM);
    let out = running.end();
    assert_eq!(out.code, Some(130), "{out:?}");
    assert!(out.stdout.contains("--check"), "{}", out.stdout);
    verified(&written.check(&stage, ""));
}

#[test]
fn time_limit_verifies_what_was_written() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words =
        "verify --size 64m --bs 4k --sync-every 16 --passes 500 --time 200ms --seed 5 --quiet --format json";
    let out = stage.fathom(words, &folder);
    assert_eq!(out.code, Some(0), "{out:?}");
    let report = out.report().0;
    assert_eq!((&report["verdict"], &report["written"]["ending"]), (&"VERIFIED".into(), &"time".into()));
    let begun = report["verification"]["begun"].as_u64().unwrap();
    assert!((1..500 * 16_384).contains(&begun), "{begun}");
    assert_eq!(report["verification"]["seed"], 5);
    assert_eq!(report["read"]["blocks"].as_u64().unwrap(), begun.min(16_384));
}

#[test]
fn source_of_verification_reads_is_reported() {
    let stage = Stage::shared();
    let file = stage.file("target", 32);
    let words = format!("verify --cache buffered --quiet --destroy {}", file.display());
    let evicted = stage.fathom(&words, &file);
    verified(&evicted);
    assert!(evicted.stdout.contains("read back from the device"), "{}", evicted.stdout);
    let cached = stage.fathom(&format!("{words} --cached"), &file);
    verified(&cached);
    assert!(cached.stdout.contains("the page cache, which was not evicted"), "{}", cached.stdout);
}

#[test]
fn cached_image_below_a_file_is_not_read_from_the_device() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "xfs", Image::Buffered) else { return };
    let out = disk.fathom(&stage, "verify --size 16m --quiet", &disk.dir);
    verified(&out);
    assert!(!out.stdout.contains("read back from the device:"), "{}", out.stdout);
}

#[test]
fn device_is_verified_only_when_named() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 32, Image::Direct) else { return };
    let before = device.checksum();
    let unnamed = stage.fathom("verify --quiet", &device.path);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    assert!(unnamed.stderr.contains("--destroy"), "{unnamed:?}");
    assert_eq!(device.checksum(), before);
    let state = stage.path("state");
    let words = format!("verify --quiet --state {} --destroy {}", state.display(), device.name());
    let out = stage.fathom(&words, &device.path);
    verified(&out);
    assert!(out.stdout.contains(&format!("block device {}", device.name())), "{}", out.stdout);
    // The device of the state is the default of a check.
    let check = format!("verify --quiet --check {}", state.display());
    verified(&stage.fathom(&check, Path::new("")));
    let raw = File::options().write(true).open(&device.path).unwrap();
    raw.write_all_at(&[0; 512], 5 * BLOCK + 512).unwrap();
    raw.sync_all().unwrap();
    damaged(&stage.fathom(&check, Path::new("")), &[(5 * BLOCK, "zeros")]);
}

#[test]
fn unreadable_blocks_are_named_with_the_error() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 32, Image::Direct) else { return };
    let state = stage.path("state");
    let words = format!("verify --quiet --state {} --destroy {}", state.display(), device.name());
    verified(&stage.fathom(&words, &device.path));
    // Beyond the end of its image a loop device reports an error.
    File::options().write(true).open(&device.image).unwrap().set_len(31 << 20).unwrap();
    let out = stage.fathom(&format!("verify --quiet --check {}", state.display()), Path::new(""));
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.starts_with("DAMAGED 16 of 512 blocks"), "{}", out.stdout);
    for block in 496..512 {
        let line = format!("  offset {}: read failed: Input/output error", block * BLOCK);
        assert!(out.stdout.contains(&line), "'{line}': {}", out.stdout);
    }
}

#[test]
fn full_file_system_is_not_damage() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    disk.sh("truncate -s 300m sparse && fallocate -l 240m full");
    let file = disk.dir.join("sparse");
    for cache in ["direct", "buffered"] {
        let words = format!("verify --cache {cache} --quiet --destroy {}", file.display());
        let out = disk.fathom(&stage, &words, &file);
        assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{out:?}");
        assert!(out.stderr.contains("free some space"), "{out:?}");
    }
}

#[test]
fn impossible_verification_is_refused_without_writing() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let file = stage.file("precious", 32);
    let junk = stage.path("junk");
    std::fs::write(&junk, "{\"fathom_verify\": 1}").unwrap();
    let state = stage.path("state");
    let (file_word, junk, state) = (file.display(), junk.display(), state.display());
    let before = Written::block(&file, 0);
    let refused = |words: &str, target: &Path, code: i32, must: &str| {
        let out = stage.fathom(&format!("verify {words} --quiet"), target);
        assert_eq!((out.code, out.stdout.as_str()), (Some(code), ""), "{words}: {out:?}");
        assert!(out.stderr.contains(must), "{words}: '{must}' is not in {}", out.stderr);
    };
    refused("", &file, 2, "--destroy");
    refused(&format!("--state {state}"), &folder, 2, "existing");
    refused(&format!("--state {junk} --destroy {file_word}"), &file, 2, "already exists");
    refused(&format!("--check {junk}"), &file, 2, "not the state of a verification");
    refused("--check /nowhere", &file, 2, "--state");
    refused(&format!("--check {junk} --size 1m"), &file, 2, "--size");
    refused("--bs 1000", &folder, 2, "multiple");
    refused("--bs 64m --size 16m", &folder, 2, "--bs");
    refused("--engine null", &folder, 2, "io_uring");
    refused("--passes 0", &folder, 2, "--passes");
    refused("--sync-every 0", &folder, 2, "--sync-every");
    refused("--cached", &folder, 2, "buffered");
    refused("--cached --cache direct", &folder, 2, "buffered");
    refused("--state /nowhere/state", &folder, 2, "no directory /nowhere");
    refused(&format!("--state /nowhere/state --destroy {file_word}"), &file, 2, "/nowhere/state");
    assert_eq!(Written::block(&file, 0), before);
    assert_eq!(names(&folder), Vec::<PathBuf>::new());
}

#[test]
fn state_without_a_stable_write_proves_nothing() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    verified(&written.start(&stage, "--passes 1").end());
    let mut state = written.state().unwrap();
    state.writer_progress = state.verification.progress_after(0);
    // As before the first write: the content of the file is unknown.
    std::fs::write(&written.state, state.text()).unwrap();
    written.put(0, &vec![0; (BLOCKS * BLOCK) as usize]);
    let out = written.check(&stage, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(3), ""), "{out:?}");
    assert!(out.stderr.contains("nothing to verify"), "{out:?}");
}

#[test]
fn outcome_file_never_overwrites_the_state() {
    let stage = Stage::shared();
    let written = Written::new(&stage);
    let out = written.start(&stage, "--passes 1").end();
    assert_eq!(out.code, Some(0), "{out:?}");
    let kept = stage.path("outcome.json");
    let out = written.check(&stage, &format!("-o {}", kept.display()));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    assert_eq!((out.code, &report["verdict"]), (Some(0), &"VERIFIED".into()), "{report}");
    assert_eq!(
        (&report["hosts"], &report["read"]["written_by"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    let state = written.state().unwrap();
    for over in [&written.state, &written.file] {
        let out = written.check(&stage, &format!("--force -o {}", over.display()));
        assert_eq!(out.code, Some(2), "{out:?}");
    }
    assert_eq!(written.state().unwrap(), state);
    // The outcome never overwrites a state file that this call is about to create, under any path.
    std::fs::remove_file(&written.state).unwrap();
    let other = written.state.parent().unwrap().join(".").join("state");
    let out = written.start(&stage, &format!("--passes 1 -o {}", other.display())).end();
    assert!(out.code == Some(2) && out.stderr.contains("type another name"), "{out:?}");
    assert!(written.state().is_none(), "nothing was written");
}
