//! What a stream asks of the page cache.
//!
//! For: refusing it where the page cache is gone past, and saying it. Not for: what files are opened with (`stream`), nor doing it.

use super::origins::Origins;
use crate::failure::Failure;
use engine::engines::Entry;
use model::job::Cache;
use model::spec::{StreamSpec, parsers};

/// Refuses what means nothing for these files, and notes the rest.
pub(super) fn check(
    spec: &StreamSpec,
    cache: Cache,
    engine: &Entry,
    origins: &mut Origins,
) -> Result<(), Failure> {
    check_advice(spec, cache)?;
    origins.note("--advice", spec.advice, |a| parsers::of_advice(*a).into());
    check_eviction(spec, cache, engine)?;
    origins.note("--evict-each-pass", spec.evict_each_pass, bool::to_string);
    Ok(())
}

/// Refuses advice about a page cache that nobody uses.
fn check_advice(spec: &StreamSpec, cache: Cache) -> Result<(), Failure> {
    let Some(advice) = spec.advice.filter(|_| cache.is_direct()) else { return Ok(()) };
    Err(Failure::Usage(format!(
        "--advice {} is about the page cache, and --cache {} goes past it; type --cache buffered too, or leave it out",
        parsers::of_advice(advice),
        cache.word()
    )))
}

/// Refuses to evict what is not in the page cache, or stays there as it is mapped.
fn check_eviction(spec: &StreamSpec, cache: Cache, engine: &Entry) -> Result<(), Failure> {
    if spec.evict_each_pass != Some(true) {
        return Ok(());
    }
    let why = match cache {
        _ if !engine.touches_targets() => {
            return Err(Failure::Usage(format!(
                "--evict-each-pass: the engine {} has no files that could be evicted; leave it out",
                engine.name
            )));
        }
        Cache::Mmap => "maps its files, and what is mapped is not evicted",
        cache if cache.is_direct() => "goes past the page cache",
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!(
        "--evict-each-pass is about the page cache, and --cache {} {why}; type --cache buffered, or leave it out",
        cache.word()
    )))
}
