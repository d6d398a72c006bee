//! Probes an engine: sets it up on a file with its options and depth, and gives it back without any operation of a workload.

use crate::engines::Entry;
use crate::refusal::CannotBegin;
use crate::source::{Op, Source};
use crate::spec::WorkerSpec;
use model::job::{Cache, Options};
use sys::clock::Clock;
use sys::open_file::OpenFile;

/// Sets an engine up for `depth` operations of `bytes` on an open file.
///
/// # Errors
/// Why a worker with this engine could not begin.
pub fn probe(
    engine: &'static Entry,
    options: &Options,
    (file, cache): (OpenFile, Cache),
    (depth, bytes): (u32, u32),
) -> Result<(), CannotBegin> {
    let (clock, _) = Clock::calibrate(false);
    let mut spec = WorkerSpec {
        depth: depth.clamp(1, engine.max_depth),
        slot_bytes: bytes,
        options: options.clone(),
        cache,
        ..WorkerSpec::plain(engine, vec![Box::new(NoOperations)], vec![file], 0, clock)?
    };
    let opened = (engine.open)(&mut spec);
    opened.map(drop).map_err(|error| CannotBegin::of_engine(0, engine.name, &error))
}

/// The source of a worker that has nothing to do.
struct NoOperations;

impl Source for NoOperations {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op::NONE);
    }
}

#[test]
fn an_engine_is_set_up_or_refused_as_for_a_worker() -> std::io::Result<()> {
    let find = |name: &str| crate::engines::find(name).unwrap_or_else(|| panic!("no {name}"));
    let file = tempfile::tempfile()?;
    file.set_len(4096)?;
    let with = |name: &str, option: &str| {
        let options =
            if option.is_empty() { Options::new() } else { Options::from([(option.to_owned(), None)]) };
        probe(find(name), &options, (OpenFile::new(file.try_clone()?, false), Cache::Buffered), (4, 4096))
            .map_err(|why| std::io::Error::other(why.sentence))
    };
    assert!(with("libaio", "").is_ok());
    let refused = with("io_uring", "iopoll").err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused.contains("--cache direct"), "{refused}");
    Ok(())
}
