//! The probe: reads some blocks of a target one at a time past the page cache, each twice.
//!
//! The probe shows whether the target holds only zeros, and whether a second read is faster than the first.
//! It runs before the first run, outside every measured window. Its times are not results.

use crate::error::describe;
use crate::page_cache;
use model::Known;
use model::evidence::Probe;
use model::payload::split_mix;
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use sys::arena::Arena;

/// Maximum number of blocks read.
const BLOCKS: u64 = 64;
/// Minimum block size in bytes.
const MIN_BLOCK_BYTES: u64 = 4096;
/// Number of blocks in a round: fathom reads these blocks once each, then reads them again. The number is
/// small, so that a slow moment of the machine or its host slows first and second reads alike. With one round for all
/// blocks, such a moment made first reads four times as slow as second reads in 1 of 200 runs without a cache.
const ROUND: usize = 8;
/// No further block begins after this time. A rotating disk may read fewer than 64 blocks in it.
const PROBE_TIME: Duration = Duration::from_millis(500);
/// Time limit for the whole probe. Only a target that does not answer reaches it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Makes the seed of the offsets different from all other seeds of the session.
const SALT: u64 = 0x7072_6f62_6500;

/// Reads blocks of `span` from a file opened with `O_DIRECT`, which needs offsets and lengths in multiples of
/// `align`.
///
/// # Errors
/// Why there is no result: no whole block in the span, a read that failed or never returned, or direct reads
/// that went through the page cache.
pub fn probe_latency(file: File, span: Range<u64>, align: u32, seed: u64) -> Known<Probe> {
    let block_bytes = MIN_BLOCK_BYTES.max(u64::from(align));
    let offsets = offsets(&span, block_bytes, seed);
    if offsets.is_empty() {
        return Err(format!("the target's span contains no aligned block of {block_bytes} bytes"));
    }
    // Reads run in a separate thread, because a target that never answers would block the caller.
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("probe".into())
        .spawn(move || sender.send(read(&file, &offsets, block_bytes)))
        .map_err(|e| format!("no thread could be started: {}", describe(&e)))?;
    let late = format!("a read did not complete within {} s", ANSWER_TIMEOUT.as_secs());
    receiver.recv_timeout(ANSWER_TIMEOUT).map_err(|_| late)?
}

fn read(file: &File, offsets: &[u64], block_bytes: u64) -> Known<Probe> {
    let mut arena = Arena::new(1, block_bytes as usize).map_err(|e| describe(&e))?;
    let cached_before = page_cache::count_cached_pages(file).map(|p| p.cached);
    let mut probe = Probe { block_bytes, ..Probe::default() };
    let began = Instant::now();
    for round in offsets.chunks(ROUND) {
        for offset in round {
            if began.elapsed() > PROBE_TIME && !probe.first_ns.is_empty() {
                break;
            }
            probe.first_ns.push(read_one(file, arena.slot_mut(0), *offset)?);
            probe.zero_blocks += u64::from(arena.slot_mut(0).iter().all(|b| *b == 0));
        }
        let read = probe.first_ns.len() - probe.again_ns.len();
        for offset in round.iter().take(read) {
            probe.again_ns.push(read_one(file, arena.slot_mut(0), *offset)?);
        }
    }
    match (cached_before, page_cache::count_cached_pages(file).map(|p| p.cached)) {
        (Ok(before), Ok(after)) if after > before => {
            Err("the page cache held more of the target after the direct reads than before: they went through the cache, or another program read the target".into())
        }
        _ => Ok(probe),
    }
}

/// Reads a block and returns the time it took in ns.
fn read_one(file: &File, block: &mut [u8], offset: u64) -> Known<u64> {
    // Fill the block with a pattern first, so that bytes that the kernel did not write do not look like zeros.
    block.fill(0xA5);
    let start = Instant::now();
    let count = file
        .read_at(block, offset)
        .map_err(|e| format!("a read at byte {offset} failed: {}", describe(&e)))?;
    let took = start.elapsed().as_nanos() as u64;
    if count == block.len() {
        Ok(took)
    } else {
        Err(format!("a read at byte {offset} returned only {count} of {} bytes", block.len()))
    }
}

/// Draws distinct blocks of a span in random order.
fn offsets(span: &Range<u64>, block_bytes: u64, seed: u64) -> Vec<u64> {
    let first = span.start.div_ceil(block_bytes);
    let blocks = (span.end / block_bytes).saturating_sub(first);
    if blocks == 0 {
        return Vec::new();
    }
    let wanted = blocks.min(BLOCKS) as usize;
    let mut drawn = BTreeSet::new();
    // This number of draws finds each of up to 64 blocks almost certainly. A missing block does no harm.
    let draws = (0..64 * BLOCKS).map(|i| split_mix(seed ^ SALT ^ split_mix(i)) % blocks);
    draws
        .filter(|block| drawn.insert(*block))
        .take(wanted)
        .map(|block| (first + block) * block_bytes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety;
    use model::job::Cache;
    use std::io::Write;

    #[test]
    fn blocks_are_distinct_whole_and_inside_the_span() {
        let drawn = offsets(&(5000..10 << 20), 4096, 1);
        assert_eq!(drawn.len(), 64);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 64);
        assert!(drawn.iter().all(|o| o % 4096 == 0 && *o >= 8192 && o + 4096 <= 10 << 20));
        assert!(!drawn.is_sorted());
        assert_ne!(drawn, offsets(&(5000..10 << 20), 4096, 2));
        let few = offsets(&(0..3 * 4096 + 100), 4096, 7);
        assert_eq!(few.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([0, 4096, 8192]));
        assert!(offsets(&(1..8191), 4096, 1).is_empty());
        assert!(offsets(&Range { start: 9000, end: 5 }, 4096, 1).is_empty());
        assert_eq!(offsets(&(0..u64::MAX), 4096, 3).len(), 64);
    }

    #[test]
    fn zeros_are_counted_and_the_page_cache_is_unchanged() -> std::io::Result<()> {
        // Use the source directory, because the directory for temporary files may be in memory.
        let mut made = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR"))?;
        let mut content = vec![7_u8; 32 * 4096];
        content.resize(64 * 4096, 0);
        made.write_all(&content)?;
        let Ok(file) = safety::open_file(made.path(), false, Cache::Direct) else {
            println!("skipped: no direct I/O here");
            return Ok(());
        };
        crate::page_cache::evict(made.as_file()).unwrap_or_else(|e| panic!("{e}"));
        let probe = probe_latency(file, 0..64 * 4096, 512, 3).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((probe.block_bytes, probe.first_ns.len()), (4096, probe.again_ns.len()));
        if probe.first_ns.len() == 64 {
            assert_eq!(probe.zero_blocks, 32);
        }
        assert!(probe.zero_blocks <= probe.first_ns.len() as u64 && probe.first_ns.iter().all(|ns| *ns > 0));
        assert_eq!(page_cache::count_cached_pages(made.as_file()).map(|p| p.cached), Ok(0));
        Ok(())
    }

    #[test]
    fn failed_or_cached_reads_are_reported() -> std::io::Result<()> {
        let mut made = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR"))?;
        made.write_all(&[7; 8192])?;
        let open = || File::open(made.path());
        assert!(probe_latency(open()?, 0..100, 512, 1).is_err_and(|why| why.contains("no aligned block")));
        assert!(probe_latency(open()?, 0..1 << 20, 512, 1).is_err_and(|why| why.contains("only")));
        let written = std::fs::File::options().write(true).open(made.path())?;
        assert!(probe_latency(written, 0..8192, 512, 1).is_err_and(|why| why.contains("a read at")));
        crate::page_cache::evict(made.as_file()).unwrap_or_else(|e| panic!("{e}"));
        assert!(probe_latency(open()?, 0..8192, 512, 1).is_err_and(|why| why.contains("page cache")));
        Ok(())
    }
}
