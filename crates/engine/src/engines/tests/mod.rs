//! Tests of every engine in the table on real files: data, results, capabilities, refusals. Engines that cannot run here print `SKIPPED`
//! with the reason.

mod options;
mod without_data;

use super::{ENGINES, Entry, Opened};
use crate::interface::{Done, Queue};
use crate::source::{NoOperations, Op};
use crate::spec::WorkerSpec;
use model::job::{Cache, Kind, SyncCall};
use model::payload;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// Directories of test files: on a disk and in memory.
const PLACES: [&str; 2] = ["/var/tmp", "/dev/shm"];
const FILE_BYTES: u64 = 4 << 20;
const SLOT_BYTES: u32 = 256 * 1024;
/// Time limit for all operations of one call of [`execute`].
const PATIENCE: Duration = Duration::from_secs(20);

/// The clock is calibrated once for all tests, because a calibration takes 20 ms.
static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::calibrate(true).0);

fn spec(engine: &'static Entry, files: Vec<OpenFile>, cache: Cache) -> WorkerSpec {
    let plain = WorkerSpec::plain(engine, vec![Box::new(NoOperations)], files, 0, *CLOCK)
        .unwrap_or_else(|e| panic!("{e}"));
    WorkerSpec { depth: engine.max_depth.min(16), slot_bytes: SLOT_BYTES, cache, ..plain }
}

/// Opens the engine of a spec through the table.
fn open(mut spec: WorkerSpec) -> Opened {
    let entry = super::find(spec.engine.name).unwrap_or_else(|| panic!("no engine {}", spec.engine.name));
    (entry.open)(&mut spec)
}

/// Creates an unnamed file of zeros, opened with a cache mode.
fn scratch(place: &str, cache: Cache, writable: bool) -> Option<OpenFile> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    if !Path::new(place).is_dir() {
        println!("SKIPPED: there is no {place}");
        return None;
    }
    let name = format!("fathom-engine-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(place).join(name);
    let whole = vec![0; FILE_BYTES as usize];
    std::fs::write(&path, whole).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let opened = open_as(&path, cache, writable);
    std::fs::remove_file(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    match opened {
        Ok(file) => Some(OpenFile::new(file, writable)),
        Err(e) => {
            println!("SKIPPED: {place} has no --cache {}: {e}", cache.word());
            None
        }
    }
}

fn open_as(path: &Path, cache: Cache, writable: bool) -> std::io::Result<File> {
    use rustix::fs::OFlags;
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, cache.is_direct());
    flags.set(OFlags::DSYNC, cache.is_sync());
    flags.set(OFlags::SYNC, cache.is_full_sync());
    File::options().read(true).write(writable).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens a second descriptor of a file, to check it without the engine.
fn witness(file: &OpenFile) -> File {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.file));
    File::options().read(true).write(true).open(path).unwrap_or_else(|e| panic!("{e}"))
}

/// Calls `test` for every engine that moves bytes, with each of its cache modes, in each directory.
fn everywhere(mut test: impl FnMut(&'static Entry, &'static str, Cache)) {
    for entry in ENGINES.iter().filter(|e| e.moves_bytes) {
        for place in PLACES {
            for cache in entry.caches {
                test(entry, place, *cache);
            }
        }
    }
}

fn opened(spec: WorkerSpec) -> Option<Box<dyn Queue>> {
    let name = spec.engine.name;
    match open(spec) {
        Ok((engine, _)) => Some(engine),
        // Containers switch these two engines off. Any other error on a plain file is a defect.
        Err(e) if ["io_uring", "libaio"].contains(&name) && switched_off(&e) => {
            println!("SKIPPED: {name}: {e}");
            None
        }
        Err(e) => panic!("{name}: {e}"),
    }
}

fn switched_off(e: &std::io::Error) -> bool {
    use std::io::ErrorKind::{OutOfMemory, PermissionDenied, Unsupported, WouldBlock};
    matches!(e.kind(), OutOfMemory | PermissionDenied | Unsupported | WouldBlock)
}

fn op(kind: Kind, offset: u64, length: u32) -> Op {
    Op { offset, length, kind, ..Op::NONE }
}

/// Executes operations with all slots in flight and returns their results in order. `before` gets the buffer of an operation before it is
/// queued, `after` gets the buffer and the result after the completion.
fn execute(
    engine: &mut dyn Queue,
    depth: u32,
    ops: &[Op],
    mut before: impl FnMut(&Op, &mut [u8]),
    mut after: impl FnMut(&Op, i32, &[u8]),
) -> Vec<i32> {
    let mut results = vec![i32::MIN; ops.len()];
    let mut in_slot = vec![None; depth as usize];
    let mut done = vec![Done::default(); depth as usize];
    let (mut next, mut finished, started) = (0, 0, Instant::now());
    while finished < ops.len() {
        for slot in 0..depth {
            if in_slot[slot as usize].is_none() && next < ops.len() {
                before(&ops[next], engine.slot_mut(slot));
                engine.queue(slot, &ops[next]);
                in_slot[slot as usize] = Some(next);
                next += 1;
            }
        }
        engine.submit(1).unwrap_or_else(|e| panic!("{e}"));
        let taken = engine.reap(&mut done);
        for d in &done[..taken] {
            let index = in_slot[d.slot as usize].take().unwrap_or_else(|| panic!("slot {} twice", d.slot));
            results[index] = d.result;
            after(&ops[index], d.result, engine.slot_mut(d.slot));
            finished += 1;
        }
        assert!(started.elapsed() < PATIENCE, "{finished} of {} operations in time", ops.len());
    }
    results
}

fn one_op(engine: &mut dyn Queue, op: Op) -> i32 {
    execute(engine, 1, &[op], |_, _| (), |_, _, _| ())[0]
}

/// Operations that together cover 3 MiB once, in sizes that the cache mode allows.
fn cover(kind: Kind, cache: Cache) -> Vec<Op> {
    let sizes: &[u32] = if cache.is_direct() {
        &[4096, 3 * 4096, SLOT_BYTES, 65536, 4096 * 17]
    } else {
        &[1, 777, 4096, 4097, 70_001, SLOT_BYTES, 511, SLOT_BYTES - 1]
    };
    let (mut ops, mut offset) = (Vec::new(), 0);
    for length in sizes.iter().cycle() {
        if offset + u64::from(*length) > 3 << 20 {
            return ops;
        }
        ops.push(op(kind, offset, *length));
        offset += u64::from(*length);
    }
    ops
}

/// Writes data and reads them back, byte for byte.
fn round_trip(engine: &mut dyn Queue, depth: u32, cache: Cache, witness: &File, what: &str) {
    let expect = |op: &Op| {
        let mut data = vec![0; op.length as usize];
        payload::fill(&mut data, op.offset + 1);
        data
    };
    let writes = cover(Kind::Write, cache);
    let results = execute(
        engine,
        depth,
        &writes,
        |op, slot| slot[..op.length as usize].copy_from_slice(&expect(op)),
        |_, _, _| (),
    );
    // Libraries keep bytes in their buffers until a sync.
    assert_eq!(one_op(engine, op(Kind::Sync, 0, 0)), 0, "{what}");
    for (op, result) in writes.iter().zip(results) {
        assert_eq!(result, op.length as i32, "{what}: {op:?}");
        let mut seen = vec![0; op.length as usize];
        witness.read_exact_at(&mut seen, op.offset).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(seen == expect(op), "{what}: other bytes arrived: {op:?}");
    }
    let mut reads = cover(Kind::Read, cache);
    reads.reverse();
    let blank = |_: &Op, slot: &mut [u8]| slot.fill(0xaa);
    execute(engine, depth, &reads, blank, |op, result, slot| {
        assert_eq!(result, op.length as i32, "{what}: {op:?}");
        assert!(slot[..op.length as usize] == expect(op), "{what}: other bytes came back: {op:?}");
        assert!(
            slot[op.length as usize..].iter().all(|b| *b == 0xaa),
            "{what}: bytes after the operation's: {op:?}"
        );
    });
}

#[test]
fn every_byte_that_an_engine_writes_is_read_back() {
    everywhere(|entry, place, cache| {
        let Some(file) = scratch(place, cache, true) else { return };
        let witness = witness(&file);
        let Some(mut engine) = opened(spec(entry, vec![file], cache)) else { return };
        let what = format!("{} {place} {}", entry.name, cache.word());
        round_trip(&mut *engine, entry.max_depth.min(16), cache, &witness, &what);
    });
}

#[test]
fn operations_go_to_the_file_that_they_name() {
    everywhere(|entry, place, cache| {
        let files: Vec<OpenFile> = (0..3).filter_map(|_| scratch(place, cache, true)).collect();
        if files.len() < 3 {
            return;
        }
        let witnesses: Vec<File> = files.iter().map(witness).collect();
        let Some(mut engine) = opened(spec(entry, files, cache)) else { return };
        for file in 0..3_u16 {
            let write = Op { file, ..op(Kind::Write, 4096, 4096) };
            let result = execute(&mut *engine, 1, &[write], |_, s| s.fill(file as u8 + 1), |_, _, _| ());
            assert_eq!(result, [4096], "{}", entry.name);
            let sync = Op { file, ..op(Kind::Sync, 0, 0) };
            assert_eq!(one_op(&mut *engine, sync), 0, "{}", entry.name);
        }
        for (file, witness) in witnesses.iter().enumerate() {
            let mut seen = [0; 4096];
            witness.read_exact_at(&mut seen, 4096).unwrap_or_else(|e| panic!("{e}"));
            assert!(seen.iter().all(|b| *b == file as u8 + 1), "{} {place}", entry.name);
        }
    });
}

#[test]
fn a_read_across_the_end_is_short_and_one_after_it_is_empty() {
    everywhere(|entry, place, cache| {
        let Some(file) = scratch(place, cache, true) else { return };
        let Some(mut engine) = opened(spec(entry, vec![file], cache)) else { return };
        let what = format!("{} {place} {}", entry.name, cache.word());
        assert_eq!(one_op(&mut *engine, op(Kind::Read, FILE_BYTES - 4096, 16384)), 4096, "{what}");
        assert_eq!(one_op(&mut *engine, op(Kind::Read, FILE_BYTES + 8192, 4096)), 0, "{what}");
    });
}

#[test]
fn a_failed_operation_returns_its_errno_and_the_next_one_works() {
    everywhere(|entry, place, cache| {
        // Reads from a write-only descriptor fail in every interface: with EBADF, or with mmap already at set-up.
        let Some(file) = scratch(place, cache, true) else { return };
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.file));
        let only_writes = File::options().write(true).open(path).unwrap_or_else(|e| panic!("{e}"));
        let files = vec![OpenFile::new(only_writes, true), file];
        if cache == Cache::Mmap {
            let refusal = open(spec(entry, files, cache)).err().map(|e| e.to_string());
            assert!(refusal.is_some_and(|r| r.contains("reading")), "{}", entry.name);
            return;
        }
        let Some(mut engine) = opened(spec(entry, files, cache)) else { return };
        for _ in 0..3 {
            let result = one_op(&mut *engine, op(Kind::Read, 0, 4096));
            assert_eq!(result, -rustix::io::Errno::BADF.raw_os_error(), "{} {place}", entry.name);
            let fine = Op { file: 1, ..op(Kind::Read, 0, 4096) };
            assert_eq!(one_op(&mut *engine, fine), 4096, "{} {place}", entry.name);
        }
    });
}

#[test]
fn trims_free_blocks_and_return_their_length() {
    everywhere(|entry, place, cache| {
        if !entry.kinds.contains(&Kind::Trim) {
            return;
        }
        let Some(file) = scratch(place, cache, true) else { return };
        let witness = witness(&file);
        witness
            .write_all_at(&vec![9; 1 << 20], 0)
            .and_then(|()| witness.sync_all())
            .unwrap_or_else(|e| panic!("{e}"));
        let Some(mut engine) = opened(spec(entry, vec![file], cache)) else { return };
        let what = format!("{} {place} {}", entry.name, cache.word());
        let blocks = || witness.metadata().map_or(0, |m| m.blocks());
        let before = blocks();
        // A trim moves no bytes, so it may be larger than a slot.
        assert_eq!(
            one_op(&mut *engine, op(Kind::Trim, 4096, 2 * SLOT_BYTES)),
            2 * SLOT_BYTES as i32,
            "{what}"
        );
        assert!(before - blocks() >= 2 * u64::from(SLOT_BYTES) / 512, "{what}");
        let mut seen = [7; 8192];
        witness.read_exact_at(&mut seen, 0).unwrap_or_else(|e| panic!("{e}"));
        assert!(seen[..4096].iter().all(|b| *b == 9) && seen[4096..].iter().all(|b| *b == 0), "{what}");
    });
}

#[test]
fn every_sync_call_returns_zero_or_is_refused_by_name() {
    everywhere(|entry, place, cache| {
        if !entry.kinds.contains(&Kind::Sync) {
            return;
        }
        for call in [SyncCall::Fsync, SyncCall::Fdatasync, SyncCall::SyncFileRange] {
            let Some(file) = scratch(place, cache, true) else { return };
            let mut spec = spec(entry, vec![file], cache);
            spec.sync_call = call;
            match open(spec) {
                Ok((mut engine, _)) => {
                    let what = format!("{} {place} {} {}", entry.name, cache.word(), call.word());
                    assert_eq!(one_op(&mut *engine, op(Kind::Write, 0, 4096)), 4096, "{what}");
                    assert_eq!(one_op(&mut *engine, op(Kind::Sync, 0, 0)), 0, "{what}");
                }
                Err(e) => assert!(call != SyncCall::Fsync && e.to_string().contains(call.word()), "{e}"),
            }
        }
    });
}

#[test]
fn vsync_retries_operations_that_would_block() {
    let entry = super::find("vsync").unwrap_or_else(|| panic!("no engine vsync"));
    let Some(file) = scratch("/var/tmp", Cache::Buffered, true) else { return };
    let witness = witness(&file);
    witness.sync_all().unwrap_or_else(|e| panic!("{e}"));
    rustix::fs::fadvise(&witness, 0, None, rustix::fs::Advice::DontNeed).unwrap_or_else(|e| panic!("{e}"));
    // One page is cached and the following pages are not.
    witness.read_exact_at(&mut [0], FILE_BYTES - 1).unwrap_or_else(|e| panic!("{e}"));
    let mut spec = spec(entry, vec![file], Cache::Buffered);
    spec.options.extend([("nowait".to_owned(), None), ("retry".to_owned(), None)]);
    let Some(mut engine) = opened(spec) else { return };
    assert_eq!(one_op(&mut *engine, op(Kind::Read, 0, SLOT_BYTES)), SLOT_BYTES as i32);
    // Not every file system can write through the page cache without blocking.
    let written = one_op(&mut *engine, op(Kind::Write, 0, 4096));
    assert!(written == 4096 || written == -rustix::io::Errno::OPNOTSUPP.raw_os_error(), "{written}");
}

#[test]
fn a_write_or_trim_of_a_file_opened_for_reading_is_stopped_before_the_kernel() {
    everywhere(|entry, place, cache| {
        for kind in [Kind::Write, Kind::Trim].iter().filter(|k| entry.kinds.contains(k)) {
            let Some(file) = scratch(place, cache, false) else { return };
            let Some(mut engine) = opened(spec(entry, vec![file], cache)) else { return };
            let misuse = std::panic::AssertUnwindSafe(|| one_op(&mut *engine, op(*kind, 0, 4096)));
            let panic = std::panic::catch_unwind(misuse).err();
            let message = panic.and_then(|p| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            assert!(message.is_some_and(|m| m.contains("opened for reading")), "{} {kind:?}", entry.name);
        }
    });
}

#[test]
fn an_engine_dropped_with_operations_in_flight_ends_soon() {
    everywhere(|entry, place, cache| {
        let Some(file) = scratch(place, cache, true) else { return };
        let spec = spec(entry, vec![file], cache);
        let depth = spec.depth;
        let Some(mut engine) = opened(spec) else { return };
        for slot in 0..depth {
            engine.queue(slot, &op(Kind::Read, u64::from(slot) * u64::from(SLOT_BYTES), SLOT_BYTES));
        }
        engine.submit(0).unwrap_or_else(|e| panic!("{e}"));
        let started = Instant::now();
        drop(engine);
        assert!(started.elapsed() < Duration::from_secs(4), "{}", entry.name);
    });
}

/// A loop device on an unnamed file. Detached when dropped.
struct LoopDevice(String);

impl LoopDevice {
    fn new() -> Option<Self> {
        let path = format!("/var/tmp/fathom-engine-loop-{}", std::process::id());
        std::fs::write(&path, vec![0; FILE_BYTES as usize]).unwrap_or_else(|e| panic!("{path}: {e}"));
        let answer = std::process::Command::new("losetup").args(["--find", "--show", &path]).output();
        std::fs::remove_file(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        match answer {
            Ok(a) if a.status.success() => Some(Self(String::from_utf8_lossy(&a.stdout).trim().to_owned())),
            Ok(a) => {
                println!("SKIPPED: no loop device: {}", String::from_utf8_lossy(&a.stderr).trim());
                None
            }
            Err(e) => {
                println!("SKIPPED: no losetup: {e}");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn block_devices_are_written_read_trimmed_and_flushed_too() {
    let Some(device) = LoopDevice::new() else { return };
    for entry in ENGINES.iter().filter(|e| e.moves_bytes) {
        for cache in entry.caches.iter().filter(|c| !c.is_sync()) {
            let file =
                open_as(Path::new(&device.0), *cache, true).unwrap_or_else(|e| panic!("{}: {e}", device.0));
            let witness =
                open_as(Path::new(&device.0), Cache::Buffered, true).unwrap_or_else(|e| panic!("{e}"));
            let spec = spec(entry, vec![OpenFile::new(file, true)], *cache);
            if entry.name == "copy_file_range" {
                let refusal = open(spec).err().map(|e| e.to_string());
                assert!(refusal.is_some_and(|r| r.contains("only between files")));
                continue;
            }
            let Some(mut engine) = opened(spec) else { continue };
            let what = format!("{} {} {}", entry.name, device.0, cache.word());
            round_trip(&mut *engine, entry.max_depth.min(16), *cache, &witness, &what);
            if entry.kinds.contains(&Kind::Trim) {
                assert_eq!(one_op(&mut *engine, op(Kind::Trim, 4096, 1 << 20)), 1 << 20, "{what}");
                let mut seen = vec![7; 1 << 20];
                witness.read_exact_at(&mut seen, 4096).unwrap_or_else(|e| panic!("{e}"));
                assert!(seen.iter().all(|b| *b == 0), "{what}");
            }
            assert_eq!(one_op(&mut *engine, op(Kind::Sync, 0, 0)), 0, "{what}");
        }
    }
}

#[test]
fn the_largest_depth_is_reached_or_refused_with_a_message() {
    for entry in ENGINES.iter().filter(|e| e.moves_bytes && e.max_depth > 1) {
        let Some(file) = scratch("/dev/shm", Cache::Buffered, true) else { return };
        let mut spec = spec(entry, vec![file], Cache::Buffered);
        (spec.depth, spec.slot_bytes) = (entry.max_depth, 4096);
        match open(spec) {
            Ok((mut engine, _)) => {
                let ops: Vec<Op> = (0..2 * u64::from(entry.max_depth))
                    .map(|i| op(Kind::Read, i % 1024 * 4096, 4096))
                    .collect();
                let results = execute(&mut *engine, entry.max_depth, &ops, |_, _| (), |_, _, _| ());
                assert!(results.iter().all(|r| *r == 4096), "{}", entry.name);
            }
            Err(e) => {
                println!("SKIPPED: {}: {e}", entry.name);
                assert!(e.to_string().contains("--depth") || e.to_string().contains("--engine"), "{e}");
            }
        }
    }
}

#[test]
fn names_of_engines_and_options_are_unique() {
    for (i, entry) in ENGINES.iter().enumerate() {
        assert!(ENGINES[..i].iter().all(|e| e.name != entry.name), "{}", entry.name);
        assert!(!entry.kinds.is_empty() && !entry.caches.is_empty(), "{}", entry.name);
        for (j, option) in entry.options.iter().enumerate() {
            assert!(entry.options[..j].iter().all(|o| o.name != option.name), "{}", option.name);
        }
    }
}
