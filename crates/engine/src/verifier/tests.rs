//! Tests of the verifier on real files: it finds what it wrote, and names damage by offset.

use super::*;
use crate::engines::{ENGINES, find};
use model::job::Kind;
use model::stamp::{self, Expected, SECTOR, Sound, Stamp, examine};
use model::verification::{
    Ending, Failed, FailureCount, Failures, LISTED, Lost, ReadBack, Verification, WriterProgress, Written,
};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

const V: Verification = Verification {
    id: 0x0123_4567,
    seed: 3,
    offset_bytes: 8192,
    block_bytes: 4096,
    blocks: 300,
    passes: 2,
    sync_every: 70,
};

/// A file that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // tmpfs has no direct I/O on older kernels; this directory is usually on a disk.
        let path = PathBuf::from("/var/tmp").join(format!("fathom-verifier-{}-{number}", std::process::id()));
        let file = File::create(&path).unwrap_or_else(|e| panic!("{e}"));
        file.set_len(V.offset_bytes + V.span_bytes()).unwrap_or_else(|e| panic!("{e}"));
        Self(path)
    }

    fn open(&self, cache: Cache, write: bool) -> io::Result<File> {
        use rustix::fs::OFlags;
        let mut flags = OFlags::empty();
        flags.set(OFlags::DIRECT, cache.is_direct());
        flags.set(OFlags::DSYNC, cache.is_sync());
        flags.set(OFlags::SYNC, cache.is_full_sync());
        File::options().read(true).write(write).custom_flags(flags.bits() as i32).open(&self.0)
    }

    fn plain(&self) -> File {
        self.open(Cache::Buffered, true).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn through(engine: &str, cache: Cache) -> Through {
    let engine = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
    Through { engine, options: Options::new(), cache, depth: 16, clock: Clock::calibrate(true).0 }
}

/// Writes the verification. Returns the result, and the progress after each sync.
fn written(through: &Through, file: File) -> Result<(Written, Vec<WriterProgress>), String> {
    let mut all_progress = Vec::new();
    let writing = Writing {
        verification: &V,
        until: None,
        stop: &AtomicBool::new(false),
        on_completion: &mut |_| {},
        on_sync: &mut |writer_progress| {
            all_progress.push(writer_progress);
            Ok(())
        },
    };
    write(through, file, writing).map(|w| (w, all_progress))
}

fn found(through: &Through, file: File, writer_progress: WriterProgress) -> ReadBack {
    let never = AtomicBool::new(false);
    read_back(through, file, &V, writer_progress, &never, &mut |_| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// Creates a completely written file.
fn written_file() -> Scratch {
    let scratch = Scratch::new();
    let (written, _) =
        written(&through("sync", Cache::Buffered), scratch.plain()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(written.ending, Ending::Complete);
    scratch
}

#[test]
fn every_engine_finds_what_it_wrote_in_every_mode() {
    for entry in ENGINES.iter().filter(|e| e.moves_bytes) {
        for cache in entry.caches {
            let (scratch, through) = (Scratch::new(), through(entry.name, *cache));
            let file = match scratch.open(*cache, true) {
                Ok(file) => file,
                Err(e) => {
                    println!("SKIPPED: {} {}: {e}", entry.name, cache.word());
                    continue;
                }
            };
            let (written, all_progress) = match written(&through, file) {
                Ok(written) => written,
                Err(why) if why.contains("cannot be set up") => {
                    println!("SKIPPED: {} {}: {why}", entry.name, cache.word());
                    continue;
                }
                Err(why) => panic!("{} {}: {why}", entry.name, cache.word()),
            };
            let writer_progress = WriterProgress { synced: 600, begun: 600 };
            let none = Failures::default();
            assert_eq!(
                written,
                Written { writer_progress, ending: Ending::Complete, failures: none },
                "{}",
                entry.name
            );
            let synced: Vec<u64> = all_progress.iter().map(|progress| progress.synced).collect();
            assert_eq!(synced, [70, 140, 210, 280, 300, 370, 440, 510, 580, 600]);
            let file = scratch.open(*cache, false).unwrap_or_else(|e| panic!("{e}"));
            let seen = found(&through, file, writer_progress);
            assert_eq!(seen, ReadBack { blocks: 300, must: 300, ..ReadBack::default() }, "{}", entry.name);
        }
    }
}

#[test]
fn everything_before_a_sync_is_written() {
    let scratch = Scratch::new();
    let reader = scratch.plain();
    let mut syncs = 0;
    let writing = Writing {
        verification: &V,
        until: None,
        stop: &AtomicBool::new(false),
        on_completion: &mut |_| {},
        on_sync: &mut |writer_progress| {
            syncs += 1;
            let only = WriterProgress { begun: writer_progress.synced, ..writer_progress };
            for expected in (0..V.blocks).filter_map(|turn| V.expected(turn, only)) {
                let mut block = [0; 4096];
                reader.read_exact_at(&mut block, expected.offset).map_err(|e| e.to_string())?;
                assert_eq!(examine(&block, &expected), Ok(Sound::Whole(expected.synced)));
            }
            Ok(())
        },
    };
    let engine = if written(&through("io_uring", Cache::Buffered), Scratch::new().plain()).is_ok() {
        "io_uring"
    } else {
        println!("SKIPPED: at depth: io_uring cannot be set up here");
        "sync"
    };
    let written = write(&through(engine, Cache::Buffered), scratch.plain(), writing);
    assert!(written.is_ok(), "{written:?}");
    assert_eq!(syncs, 10);
}

#[test]
fn an_engine_that_moves_nothing_is_detected() {
    let writer_progress = WriterProgress { synced: 600, begun: 600 };
    let scratch = Scratch::new();
    // The verifier must wait for the syncs of these engines.
    for engine in ["null", "sim"] {
        let answer = written(&through(engine, Cache::Buffered), scratch.plain());
        let (written, all_progress) = answer.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            (written.ending, written.writer_progress, all_progress.len()),
            (Ending::Complete, writer_progress, 10)
        );
    }
    let seen = found(&through("null", Cache::Buffered), scratch.plain(), writer_progress);
    assert_eq!((seen.blocks, seen.damaged, seen.damage.len()), (300, 300, LISTED));
    assert!(seen.damage.iter().all(|(_, d)| d.kind == stamp::DamageKind::Zeros));
    assert!(seen.damage.windows(2).all(|w| w[0].0 < w[1].0));
}

#[test]
fn damage_is_named_with_its_offset() {
    let scratch = written_file();
    let file = scratch.plain();
    let at = |block: u64| V.offset_bytes + block * 4096;
    let expected = |offset: u64| {
        let writer_progress = WriterProgress { synced: 600, begun: 600 };
        let found = (0..V.blocks).filter_map(|t| V.expected(t, writer_progress)).find(|e| e.offset == offset);
        found.unwrap_or_else(|| panic!("no block at {offset}"))
    };
    let put = |offset: u64, data: &[u8]| file.write_all_at(data, offset).unwrap_or_else(|e| panic!("{e}"));
    let get = |offset: u64| {
        let mut block = vec![0; 4096];
        file.read_exact_at(&mut block, offset).unwrap_or_else(|e| panic!("{e}"));
        block
    };
    put(at(7) + 1000, &[get(at(7))[1000] ^ 0x10]);
    put(at(20), &get(at(21)));
    // The data that the first pass wrote at this offset.
    let old = |offset: u64| {
        let sequence = (1..=300).find(|s| V.stamp(*s).offset == offset).unwrap_or(0);
        let mut block = vec![0; 4096];
        stamp::write(&mut block, &Stamp { id: V.id, offset, sequence });
        (sequence, block)
    };
    put(at(33), &old(at(33)).1);
    put(at(40), &old(at(40)).1[..2048]);
    put(at(299), &[0; 4096]);
    let writer_progress = WriterProgress { synced: 600, begun: 600 };
    let seen = found(&through("sync", Cache::Buffered), scratch.plain(), writer_progress);
    let kinds: Vec<(u64, stamp::DamageKind)> = seen.damage.iter().map(|(o, d)| (*o, d.kind)).collect();
    let now = |offset| expected(offset).synced;
    let torn = stamp::DamageKind::Torn {
        newest_sectors: 4,
        newest_first: 4,
        newest: now(at(40)),
        other: old(at(40)).0,
    };
    let right = [
        (at(7), stamp::DamageKind::Flipped { byte: 1000, bits: 1 }),
        (at(20), stamp::DamageKind::Misplaced { belongs: at(21), sequence: now(at(21)) }),
        (at(33), stamp::DamageKind::Stale { sequence: old(at(33)).0, expected: now(at(33)) }),
        (at(40), torn),
        (at(299), stamp::DamageKind::Zeros),
    ];
    assert_eq!((seen.damaged, kinds), (5, right.to_vec()));
}

#[test]
fn writes_after_the_last_sync_may_be_missing() {
    let scratch = written_file();
    let through = through("sync", Cache::Buffered);
    // The file has all 600 writes. The progress claims that only 530 are synced, so the last 70 count as newer.
    let far = found(&through, scratch.plain(), WriterProgress { synced: 530, begun: 600 });
    assert_eq!((far.blocks, far.newer, far.damaged), (300, 70, 0));
    let early = found(&through, scratch.plain(), WriterProgress { synced: 300, begun: 370 });
    // The writes after 370 should not have begun, so their blocks count as damaged.
    assert_eq!((early.newer, early.damaged), (70, 230));
    assert!(early.damage.iter().all(|(_, d)| matches!(d.kind, stamp::DamageKind::Future { .. })));
    // One write that was in flight after the last sync reached the target only in part.
    let Some(Expected { offset, .. }) = (0..V.blocks)
        .filter_map(|t| V.expected(t, WriterProgress { synced: 530, begun: 600 }))
        .find(|e| e.begun.is_some())
    else {
        panic!("nothing is under way")
    };
    let old = (1..=300).find(|s| V.stamp(*s).offset == offset).map(|s| V.stamp(s));
    let mut half = vec![0; 3 * SECTOR];
    stamp::write(&mut half, &old.unwrap_or_else(|| panic!("no write to {offset}")));
    scratch.plain().write_all_at(&half, offset).unwrap_or_else(|e| panic!("{e}"));
    let torn = found(&through, scratch.plain(), WriterProgress { synced: 530, begun: 600 });
    assert_eq!((torn.damaged, torn.partials, torn.partial), (0, 1, vec![offset]));
    let stable = found(&through, scratch.plain(), WriterProgress { synced: 600, begun: 600 });
    assert_eq!((stable.damaged, stable.partials), (1, 0));
}

#[test]
fn a_full_device_ends_the_writing_with_its_error() {
    let full = File::options().read(true).write(true).open("/dev/full").unwrap_or_else(|e| panic!("{e}"));
    let (written, all_progress) =
        written(&through("sync", Cache::Buffered), full).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((written.ending, all_progress), (Ending::Failed, Vec::new()));
    assert_eq!(written.writer_progress.synced, 0);
    let errno = rustix::io::Errno::NOSPC.raw_os_error();
    assert_eq!(written.failures.counts, [FailureCount { kind: Kind::Write, errno, count: 1 }]);
    assert_eq!(
        written.failures.first[0],
        Failed { kind: Kind::Write, at: V.stamp(1).offset, result: -errno }
    );
}

#[test]
fn a_failed_sync_is_no_progress() {
    // /dev/null accepts every write and cannot be synced.
    let null = File::options().read(true).write(true).open("/dev/null").unwrap_or_else(|e| panic!("{e}"));
    let (written, all_progress) =
        written(&through("sync", Cache::Buffered), null).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (written.ending, written.writer_progress, all_progress),
        (Ending::Failed, WriterProgress { synced: 0, begun: 70 }, Vec::new())
    );
    let result = -rustix::io::Errno::INVAL.raw_os_error();
    assert_eq!(written.failures.first, [Failed { kind: Kind::Sync, at: 70, result }]);
}

#[test]
fn a_stop_a_time_limit_or_unstored_progress_ends_the_writing() {
    let scratch = Scratch::new();
    let stop = AtomicBool::new(false);
    let run = |until, stop_at: u64, fail: bool| {
        stop.store(false, Ordering::Relaxed);
        let writing = Writing {
            verification: &V,
            until,
            stop: &stop,
            on_completion: &mut |done| stop.store(done >= stop_at, Ordering::Relaxed),
            on_sync: &mut |_| if fail { Err("no room for it".into()) } else { Ok(()) },
        };
        write(&through("sync", Cache::Buffered), scratch.plain(), writing)
    };
    let stopped = run(None, 100, false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (stopped.ending, stopped.writer_progress),
        (Ending::Interrupted, WriterProgress { synced: 70, begun: 100 })
    );
    let timed = run(Some(Instant::now()), u64::MAX, false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((timed.ending, timed.writer_progress), (Ending::Time, WriterProgress { synced: 1, begun: 1 }));
    assert_eq!(run(None, u64::MAX, true), Err("no room for it".into()));
}

#[test]
fn blocks_after_the_end_of_a_truncated_file_are_lost() {
    let scratch = written_file();
    let writer_progress = WriterProgress { synced: 600, begun: 600 };
    let end = V.offset_bytes + 100 * 4096 + 512;
    scratch.plain().set_len(end).unwrap_or_else(|e| panic!("{e}"));
    let seen = found(&through("sync", Cache::Buffered), scratch.plain(), writer_progress);
    let lost = Lost { from_bytes: end, to_bytes: V.offset_bytes + 300 * 4096, blocks: 200 };
    assert_eq!((seen.blocks, seen.damaged, seen.lost), (100, 200, Some(lost)));
    assert_eq!(seen.failures, Failures::default());
    let none = all_lost(&V, WriterProgress { synced: 7, begun: 9 }, 0);
    assert_eq!((none.damaged, none.unwritten, none.lost.map(|lost| lost.blocks)), (7, 293, Some(7)));
    // No sync made anything stable, neither the blocks nor the length.
    let none = all_lost(&V, WriterProgress { synced: 0, begun: 9 }, 0);
    assert_eq!((none.damaged, none.unwritten, none.lost), (0, 300, None));
}
