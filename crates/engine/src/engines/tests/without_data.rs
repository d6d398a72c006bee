//! Tests of the engines that change files and move no data.

use super::{FILE_BYTES, LoopDevice, one_op, op, open, opened, scratch, spec, witness};
use crate::engines::{ENGINES, find};
use crate::source::Op;
use model::job::{Cache, ENGINES_WITHOUT_DATA, Kind};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use sys::open_file::OpenFile;

/// Executes operations on a file of zeros. Returns each result, then the length and the allocated bytes of the file.
fn after(engine: &str, ops: &[Op]) -> Option<(Vec<i32>, u64, u64)> {
    let entry = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
    let file = scratch("/dev/shm", Cache::Buffered, true)?;
    let witness = witness(&file);
    let mut engine = opened(spec(entry, vec![file], Cache::Buffered))?;
    let answers = ops.iter().map(|op| one_op(&mut *engine, *op)).collect();
    let facts = witness.metadata().unwrap_or_else(|e| panic!("{e}"));
    Some((answers, facts.len(), facts.blocks() * 512))
}

#[test]
fn table_and_model_agree_on_the_engines_without_data() {
    let engines = ENGINES.iter().filter(|e| e.touches_targets() && !e.moves_bytes).map(|e| e.name);
    assert_eq!(engines.collect::<Vec<_>>(), ENGINES_WITHOUT_DATA);
    assert!(find("null").is_some_and(|null| !null.touches_targets()));
}

#[test]
fn a_write_of_ftruncate_sets_the_length_to_its_offset() {
    let to = |offset| op(Kind::Write, offset, 4096);
    let Some((answers, length, blocks)) = after("ftruncate", &[to(8192)]) else { return };
    assert_eq!((answers, length, blocks), (vec![4096], 8192, 8192));
    let Some((_, length, blocks)) = after("ftruncate", &[to(0), to(3 << 20)]) else { return };
    assert_eq!((length, blocks), (3 << 20, 0), "what is cut off is gone");
    let Some((answers, length, _)) = after("ftruncate", &[to(u64::MAX), op(Kind::Sync, 0, 0)]) else {
        return;
    };
    assert_eq!((answers[1], length), (0, FILE_BYTES), "a failed operation is reported: {answers:?}");
    assert!(answers[0] < 0);
}

#[test]
fn fallocate_allocates_and_frees_blocks_and_only_writes_extend_the_file() {
    let after_end = FILE_BYTES + (1 << 20);
    let many = |kind| op(kind, after_end, 1 << 20);
    let Some((answers, length, blocks)) = after("fallocate", &[many(Kind::Read)]) else { return };
    assert_eq!((answers, length, blocks), (vec![1 << 20], FILE_BYTES, FILE_BYTES + (1 << 20)));
    let Some((_, length, blocks)) = after("fallocate", &[many(Kind::Write)]) else { return };
    assert_eq!((length, blocks), (after_end + (1 << 20), FILE_BYTES + (1 << 20)));
    let Some((answers, length, blocks)) = after("fallocate", &[op(Kind::Trim, 0, 1 << 20)]) else { return };
    assert_eq!((answers, length, blocks), (vec![1 << 20], FILE_BYTES, FILE_BYTES - (1 << 20)));
    let Some((answers, ..)) = after("fallocate", &[op(Kind::Write, 0, 0)]) else { return };
    assert_eq!(answers, [-Errno::INVAL.raw_os_error()], "nothing cannot be allocated");
}

#[test]
fn reads_of_fallocate_need_a_writable_file() {
    for (engine, kind) in [("ftruncate", Kind::Write), ("fallocate", Kind::Read), ("fallocate", Kind::Trim)] {
        let entry = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
        let Some(file) = scratch("/dev/shm", Cache::Buffered, false) else { return };
        let Some(mut engine) = opened(spec(entry, vec![file], Cache::Buffered)) else { return };
        let misuse = std::panic::AssertUnwindSafe(|| one_op(&mut *engine, op(kind, 0, 4096)));
        let panic = std::panic::catch_unwind(misuse).err();
        let message = panic.and_then(|p| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        assert!(message.is_some_and(|m| m.contains("opened for reading")), "{} {kind:?}", entry.name);
    }
}

#[test]
fn a_device_is_refused_with_a_message() {
    let Some(device) = LoopDevice::new() else { return };
    for engine in ENGINES_WITHOUT_DATA {
        let entry = find(engine).unwrap_or_else(|| panic!("no engine {engine}"));
        let file = super::open_as(Path::new(&device.0), Cache::Buffered, true);
        let file = file.unwrap_or_else(|e| panic!("{}: {e}", device.0));
        let refusal = open(spec(entry, vec![OpenFile::new(file, true)], Cache::Buffered)).err();
        assert!(refusal.is_some_and(|e| e.to_string().contains("name a file or a directory")), "{engine}");
    }
}
