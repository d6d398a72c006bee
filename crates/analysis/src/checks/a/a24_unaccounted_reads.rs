//! A24: operations that neither a system call nor the page cache accounts for. Compares the bytes counted by
//! fathom with the bytes that system calls moved, by the kernel's count.
//!
//! If the engine makes no such calls, requires that bytes missing at the device are in the page cache.

use crate::checks::prelude::*;
use crate::figures::kernel_text::{grown, keyed};
use model::evidence::TargetState;
use model::record::ThreadIo;

const IO_FILE: &str = "/proc/self/io";
/// Engines whose every operation is a read or write system call, which the kernel counts in bytes. For posixaio,
/// the C library makes the calls in its own threads.
const COUNTED: &[&str] = &["sync", "vsync", "preadv", "rw", "posixaio"];
/// Engines that make the same calls but may answer from a buffer in the process.
const BUFFERED: &[&str] = &["std", "stdio", "fstream"];
/// Share of the bytes that must be in the kernel's count. It counts all of them, plus fathom's own reads.
const COUNTED_FROM: Share = Share(0.99);
/// Share of the bytes that must be in the kernel's count if a buffer in the process may answer. The buffer cannot
/// answer all reads of a much larger region.
const BUFFERED_FROM: Share = Share(0.01);
/// Number of buffers that the region must exceed.
const MANY_BUFFERS: u64 = 16;
/// Largest default buffer: a block of the file system.
const BUFFER_BYTES: u64 = 64 << 10;
/// Share of the reads that must be missing at the device before pages are checked.
const MISSING_FROM: Share = Share(0.5);
/// Share of the bytes from memory that must still be cached at the start or end of a run. Other processes may
/// evict most of it, but not all.
const CACHED_FROM: Share = Share(0.01);

pub(super) const CHECK: Check = Check {
    id: CheckId::A24,
    name: "UNACCOUNTED",
    belief: "the kernel performed the operations that fathom counted",
    reads: "`rchar` and `wchar` in `/proc/self/io` at start and stop of every run (`/proc/thread-self/io` of \
            the stream's own workers if several streams run), for the engines sync, vsync, preadv, rw, \
            posixaio, std, stdio and fstream. For other engines, or if that file is missing: the target's \
            pages in the page cache and the device's counters.",
    formula: formula!(
        "Void if system calls moved less than {COUNTED_FROM} of the bytes that fathom counted: the kernel \
         counts all of them. The limit is {BUFFERED_FROM} if std, stdio or fstream uses its own buffer and \
         the region is larger than {MANY_BUFFERS} buffers. Also void if at least {MISSING_FROM} of the reads \
         through the page cache are missing at the device, and less than {CACHED_FROM} of them is in the \
         page cache at the start and at the end of the runs: then no page explains them."
    ),
    provoke: "A library that answers `aio_read` itself: `LD_PRELOAD=./answers.so fathom run --rw randread \
              --engine posixaio --cache buffered FILE`. fathom's own tests build one.",
    fix: "Check LD_PRELOAD and /etc/ld.so.preload, and anything else between programs and the kernel \
          (`fathom doctor`).",
    accept: "Do not accept it: the kernel did not perform these operations.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| calls([0, 0])),
    #[cfg(test)]
    blind: || {
        let mut record = calls([0, 0]);
        super::snapshots(&mut record, |s| {
            s.files.remove(IO_FILE);
            s.targets.clear();
        });
        record
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.has_storage() || !Kind::MOVING.iter().any(|k| case.does(*k)) {
        return Ok(Answer::DoesNotApply);
    }
    let Some(from) = counted_from(case) else { return decide_by_pages(case, earlier) };
    match decide_by_calls(case, from) {
        Ok(answer) => Ok(answer),
        Err(_) if case.does(Kind::Read) && case.on_device() => decide_by_pages(case, earlier),
        Err(why) => Err(why),
    }
}

/// Returns the share of the bytes that system calls must have moved, or `None` if the calls prove nothing.
fn counted_from(case: &Case) -> Option<Share> {
    let stream = &case.stream;
    let engine = stream.engine.as_str();
    if COUNTED.contains(&engine) {
        return Some(COUNTED_FROM);
    }
    if !BUFFERED.contains(&engine) {
        return None;
    }
    let buffer_option = stream.options.get("buffer").copied().flatten();
    if engine == "std" && buffer_option.is_none() {
        return Some(COUNTED_FROM);
    }
    let bytes = buffer_option.unwrap_or(0).max(BUFFER_BYTES).saturating_mul(u64::from(stream.workers));
    (case.span_bytes() > MANY_BUFFERS.saturating_mul(bytes)).then_some(BUFFERED_FROM)
}

/// Decides by the kernel's count of bytes that system calls moved. fathom's own files only add to it.
fn decide_by_calls(case: &Case, from: Share) -> Known<Answer> {
    let streams = phase_streams(case).len();
    for (kind, key) in [(Kind::Read, "rchar:"), (Kind::Write, "wchar:")] {
        let issued = case.issued(kind).bytes;
        let moved = if streams > 1 {
            // The process-wide count includes all streams, so use the count of the stream's own workers.
            let count: fn(&ThreadIo) -> u64 = if kind == Kind::Read { |io| io.rchar } else { |io| io.wchar };
            let own = case.counted_by_workers(case.index, count);
            let enough = |bytes: u64| bytes as f64 >= from.0 * issued as f64;
            if enough(own.most) && !enough(own.least) {
                return not_checked(
                    "other streams ran at the same time, and the kernel counts their system calls together",
                );
            }
            own.most
        } else {
            sum_over_runs(case, |ran| grown(ran, IO_FILE, |text| keyed(text, key)))?
        };
        if (moved as f64) < from.0 * issued as f64 {
            return finding!(
                Severity::Void,
                evidence([("issued_bytes", issued as f64), ("moved_bytes", moved as f64)]),
                "fathom counted {} of {}s, but system calls of this process moved {}: something between \
                 fathom and the kernel answered instead.",
                show_bytes(issued),
                kind.word(),
                show_bytes(moved)
            );
        }
    }
    holds("System calls moved all bytes that fathom counted.", evidence([]))
}

/// Decides by pages: reads that no device delivered must be in the page cache. Direct reads need no page; A18
/// reports direct reads that are too fast.
fn decide_by_pages(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || earlier.finds(CheckId::A04) {
        return Ok(Answer::DoesNotApply);
    }
    let (read, delivered) = (case.issued(Kind::Read).bytes, case.at_device(Kind::Read)?);
    let missing = read.saturating_sub(delivered.most);
    let at_most = read.saturating_sub(delivered.least);
    if share(missing as f64, read as f64) < MISSING_FROM && share(at_most as f64, read as f64) >= MISSING_FROM
    {
        return case.cannot_tell("how many of this stream's reads a device delivered");
    }
    if share(missing as f64, read as f64) < MISSING_FROM {
        return holds("The device or the page cache accounts for the reads.", evidence([]));
    }
    if case.stream.cache.is_direct() {
        return Ok(Answer::DoesNotApply);
    }
    let from_memory = missing.min(case.span_bytes());
    let mut most_cached = 0;
    for moment in [Moment::Start, Moment::Stop] {
        for states in case.states(moment)? {
            let cached = states.into_iter().map(cached_bytes).sum::<Known<u64>>()?;
            most_cached = most_cached.max(cached);
        }
    }
    let numbers = evidence([("missing_bytes", missing as f64), ("cached_bytes", most_cached as f64)]);
    if most_cached as f64 >= CACHED_FROM.0 * from_memory as f64 {
        return holds("The device or the page cache accounts for the reads.", numbers);
    }
    finding!(
        Severity::Void,
        numbers,
        "{} of reads reached no device, and the page cache holds only {} of the targets: nothing visible \
         performed these reads.",
        show_bytes(missing),
        show_bytes(most_cached)
    )
}

fn cached_bytes(state: &TargetState) -> Known<u64> {
    state.pages.clone().map(|p| p.cached.saturating_mul(p.page_bytes))
}

#[cfg(test)]
use crate::fixture::Fixture;

/// Buffered reads of the engine sync. System calls moved `moved` bytes in each run, and `pages` pages are cached.
#[cfg(test)]
fn calls([moved, pages]: [u64; 2]) -> model::record::Record {
    let cache = model::job::Cache::Buffered;
    let mut record = Fixture { engine: "sync", delivered: 0.0, cache, ..Fixture::honest() }.record();
    super::snapshots(&mut record, |s| {
        let moved = if s.moment == Moment::Start { 0 } else { moved };
        s.files.insert(IO_FILE.into(), Ok(format!("rchar: {moved}\nwchar: 0\n")));
        s.targets.iter_mut().filter_map(|t| t.pages.as_mut().ok()).for_each(|p| p.cached = pages);
    });
    record
}

#[test]
fn fewer_bytes_by_system_calls_are_void() {
    let run_bytes = 11_000 * 4096;
    assert_eq!(CHECK.severity(&calls([run_bytes, 0])), None);
    assert_eq!(CHECK.severity(&calls([run_bytes * 95 / 100, 9_999])), Some(Severity::Void));
}

#[test]
fn a_buffered_engine_needs_only_a_few_system_calls() {
    let at = |engine: &str, buffer: Option<u64>, percent: u64| {
        let mut record = calls([11_000 * 4096 * percent / 100, 10_000]);
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        stream.engine = engine.into();
        stream.options = buffer.map(|bytes| ("buffer".to_owned(), Some(bytes))).into_iter().collect();
        CHECK.severity(&record)
    };
    assert_eq!(at("std", None, 95), Some(Severity::Void), "each of its reads is a call");
    assert_eq!((at("stdio", None, 95), at("std", Some(0), 5)), (None, None));
    assert_eq!((at("stdio", None, 0), at("fstream", None, 0)), (Some(Severity::Void), Some(Severity::Void)));
    assert_eq!(at("stdio", Some(1 << 30), 0), None, "the buffer can hold the whole region");
}

#[test]
fn without_counted_calls_pages_must_explain_missing_bytes() {
    let at = |pages| {
        let mut record = calls([0, pages]);
        record.header.plan.jobs[0].phases[0].streams[0].engine = "io_uring".into();
        CHECK.severity(&record)
    };
    assert_eq!(at(10_000), None);
    assert_eq!(at(10), Some(Severity::Void));
    let cold = Fixture { cache: model::job::Cache::Buffered, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&cold.record()), Ok(Answer::Holds(..))));
}

#[test]
fn a_small_cached_file_explains_any_number_of_reads() {
    let at = |pages| {
        let mut record = calls([0, pages]);
        let stream = &mut record.header.plan.jobs[0].phases[0].streams[0];
        (stream.engine, stream.access.span_bytes) = ("io_uring".into(), u64::MAX);
        record.header.plan.targets[0].bytes = 1 << 20;
        CHECK.severity(&record)
    };
    assert_eq!(at(256), None, "the whole file is cached, so any number of reads can come from memory");
    assert_eq!(at(1), Some(Severity::Void));
}
