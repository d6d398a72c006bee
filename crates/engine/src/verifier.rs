//! The verifier: writes the blocks of a verification and reads them back, through any engine, with operations in flight and every bit
//! checked.
//!
//! 1. `run_work` opens the engine and keeps its queue full. A `Work` returns the next step and takes completions.
//! 2. [`write()`] writes every block once per pass, with a sync after each `sync_every` writes. No two writes to a block are in flight
//!    together.
//! 3. [`read_back`] reads every block that may have been written, once, in random order. Blocks after the end of a truncated target are
//!    lost and not read.
//!
//! The verifier measures nothing. `model::verification` decides which write belongs where.

#[cfg(test)]
mod tests;

use crate::engines::Entry;
use crate::interface::{Done, Queue};
use crate::source::{NoOperations, Op};
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use model::job::{Cache, Kind, Options};
use model::stamp;
use model::stamp::{Expected, Sound};
use model::verification::{Ending, Failures, LISTED, Lost, ReadBack, Verification, WriterProgress, Written};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::open_file::{CloseErrors, OpenFile};

/// How the target is accessed.
#[derive(Debug)]
pub struct Through {
    /// The engine that executes the operations.
    pub engine: &'static Entry,
    /// Options of the engine.
    pub options: Options,
    /// Cache mode of the file.
    pub cache: Cache,
    /// Operations in flight, up to the limit of the engine.
    pub depth: u32,
    /// The clock for engines that need one.
    pub clock: Clock,
}

/// Runs a verification's work through the engine on an open file.
fn run_work(
    through: &Through,
    file: File,
    writes: bool,
    block_bytes: u32,
    work: &mut dyn Work,
) -> Result<(), String> {
    let errors = CloseErrors::default();
    let files = vec![OpenFile::reporting(file, writes, 0, &errors)];
    let spec = WorkerSpec {
        depth: through.depth.clamp(1, through.engine.max_depth),
        slot_bytes: block_bytes,
        writes,
        options: through.options.clone(),
        cache: through.cache,
        ..WorkerSpec::plain(through.engine, vec![Box::new(NoOperations)], files, 0, through.clock)?
    };
    drive_engine(through.engine, spec, work)?;
    errors.take().iter().for_each(|(_, errno)| work.closed(-errno));
    Ok(())
}

/// The next step of a verification's work.
enum Step {
    /// An operation.
    Op(Op),
    /// Wait for all operations in flight, then sync.
    Sync,
    /// Wait for all operations in flight, then end.
    End,
}

/// One half of a verification, writing or reading back: provides the next step and takes completions.
trait Work {
    fn next(&mut self) -> Step;
    /// Generates the data of a write.
    fn fill(&mut self, op: &Op, data: &mut [u8]);
    /// Takes a completion. `data` is what a read returned.
    fn done(&mut self, op: &Op, result: i32, data: &[u8]);
    /// Takes the result of a sync: 0 or a negative errno.
    fn synced(&mut self, result: i32);
    /// Takes the error of closing the target as a negative errno.
    fn closed(&mut self, _result: i32) {}
}

/// Time limit without a completion.
const STALL_LIMIT: Duration = Duration::from_nanos(STALL_LIMIT_NS);
/// Time limit for a sync, which may have to write back all dirty memory.
const SYNC_LIMIT: Duration = Duration::from_secs(600);

/// Executes all steps of a verification's work on an engine.
///
/// # Errors
/// If the engine cannot be set up or fails, or the target does not answer.
fn drive_engine(engine: &'static Entry, mut spec: WorkerSpec, work: &mut dyn Work) -> Result<(), String> {
    let syncs_through_engine = engine.kinds.contains(&Kind::Sync);
    let handle = spec.files.first().map(|f| f.file.try_clone()).transpose();
    let handle = handle.map_err(|e| format!("the target's file descriptor cannot be duplicated: {e}"))?;
    let depth = spec.depth as usize;
    let (queue, _) =
        (engine.open)(&mut spec).map_err(|e| format!("{} cannot be set up: {e}", engine.name))?;
    let mut flight = Flight {
        queue,
        free: (0..depth as u32).rev().collect(),
        flying: vec![Op::NONE; depth],
        done: vec![Done::default(); depth],
    };
    loop {
        if flight.free.is_empty() {
            flight.complete(STALL_LIMIT, |op, result, data| work.done(op, result, data))?;
            continue;
        }
        let step = work.next();
        if let Step::Op(op) = step {
            flight.begin(&op, |data| work.fill(&op, data));
            continue;
        }
        while flight.free.len() < depth {
            flight.complete(STALL_LIMIT, |op, result, data| work.done(op, result, data))?;
        }
        if matches!(step, Step::End) {
            return Ok(());
        }
        if syncs_through_engine {
            flight.begin(&Op { kind: Kind::Sync, ..Op::NONE }, |_| {});
            flight.complete(SYNC_LIMIT, |_, result, _| work.synced(result))?;
        } else {
            work.synced(handle.as_ref().map_or(0, |file| result_code(&file.sync_all())));
        }
    }
}

fn result_code(outcome: &io::Result<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(e) => -e.raw_os_error().unwrap_or(i32::MAX),
    }
}

/// An engine with its operations in flight.
struct Flight {
    queue: Box<dyn Queue>,
    free: Vec<u32>,
    flying: Vec<Op>,
    done: Vec<Done>,
}

impl Flight {
    /// Queues an operation on a free slot.
    fn begin(&mut self, op: &Op, fill: impl FnOnce(&mut [u8])) {
        let Some(slot) = self.free.pop() else { return };
        if op.kind == Kind::Write {
            fill(&mut self.queue.slot_mut(slot)[..op.length as usize]);
        }
        self.queue.queue(slot, op);
        self.flying[slot as usize] = *op;
    }

    /// Submits the queued operations and waits until at least one completes.
    fn complete(&mut self, limit: Duration, mut take: impl FnMut(&Op, i32, &[u8])) -> Result<(), String> {
        let since = Instant::now();
        loop {
            self.queue.submit(1).map_err(|e| format!("the engine failed: {e}"))?;
            let taken = self.queue.reap(&mut self.done);
            for done in &self.done[..taken] {
                let op = self.flying[done.slot as usize];
                let moved = u32::try_from(done.result).unwrap_or(0).min(op.length) as usize;
                take(&op, done.result, &self.queue.slot_mut(done.slot)[..moved]);
                self.free.push(done.slot);
            }
            if taken > 0 {
                return Ok(());
            }
            if since.elapsed() > limit {
                return Err(format!(
                    "no operation has completed for {} s, with {} in flight; the target does not answer",
                    limit.as_secs(),
                    self.flying.len() - self.free.len()
                ));
            }
        }
    }
}

/// Parameters of [`write()`].
pub struct Writing<'a> {
    /// The verification to write.
    pub verification: &'a Verification,
    /// Time after which no further write begins; `None` without a limit. The writing continues
    /// until at least one sync has succeeded.
    pub until: Option<Instant>,
    /// Set by another thread to end the writing early.
    pub stop: &'a AtomicBool,
    /// Called after each completion with the number of writes completed so far.
    pub on_completion: &'a mut dyn FnMut(u64),
    /// Called after each successful sync, before any further write. An error ends the writing.
    pub on_sync: &'a mut dyn FnMut(WriterProgress) -> Result<(), String>,
}

/// Writes a verification to an open file. Every block is written once per pass, and nothing is in flight between two passes, so that no two
/// writes to a block are in flight together.
///
/// # Errors
/// If the engine fails, the target does not answer, or the progress could not be stored.
pub fn write(through: &Through, file: File, writing: Writing) -> Result<Written, String> {
    let block_bytes = writing.verification.block_bytes;
    let mut work = Writer {
        writing,
        begun: 0,
        completed: 0,
        synced: 0,
        ending: None,
        failures: Failures::default(),
        lost: None,
    };
    run_work(through, file, true, block_bytes, &mut work)?;
    let Writer { begun, synced, ending, failures, lost, .. } = work;
    match lost {
        Some(why) => Err(why),
        None => Ok(Written {
            writer_progress: WriterProgress { synced, begun },
            ending: ending.unwrap_or(Ending::Complete),
            failures,
        }),
    }
}

struct Writer<'a> {
    writing: Writing<'a>,
    begun: u64,
    completed: u64,
    synced: u64,
    ending: Option<Ending>,
    failures: Failures,
    /// Why the progress could not be stored; `None` if it was always stored.
    lost: Option<String>,
}

impl Writer<'_> {
    fn time_is_over(&self) -> bool {
        self.writing.until.is_some_and(|until| Instant::now() >= until)
    }

    fn fail(&mut self, kind: Kind, at: u64, result: i32) {
        self.failures.add(kind, at, result);
        self.ending = Some(Ending::Failed);
    }
}

impl Work for Writer<'_> {
    fn next(&mut self) -> Step {
        let Writing { verification, stop, .. } = &self.writing;
        if self.ending.is_none() && stop.load(Ordering::Relaxed) {
            self.ending = Some(Ending::Interrupted);
        }
        if self.ending.is_some() {
            return Step::End;
        }
        let unsynced = self.begun > self.synced;
        if self.begun == verification.next_sync(self.synced) || (unsynced && self.time_is_over()) {
            return Step::Sync;
        }
        self.begun += 1;
        let offset = verification.stamp(self.begun).offset;
        // The field `at_ns` holds the serial number of the write, because this loop uses no times.
        Step::Op(Op {
            offset,
            at_ns: self.begun,
            length: verification.block_bytes,
            kind: Kind::Write,
            ..Op::NONE
        })
    }

    fn fill(&mut self, op: &Op, data: &mut [u8]) {
        stamp::write(data, &self.writing.verification.stamp(op.at_ns));
    }

    fn done(&mut self, op: &Op, result: i32, _: &[u8]) {
        self.completed += 1;
        if u32::try_from(result) != Ok(op.length) {
            self.fail(Kind::Write, op.offset, result);
        }
        (self.writing.on_completion)(self.completed);
    }

    fn synced(&mut self, result: i32) {
        if result < 0 {
            self.fail(Kind::Sync, self.begun, result);
        }
        // The sync has failed, or a write failed after the sync was requested.
        if self.ending.is_some() {
            return;
        }
        self.synced = self.begun;
        let verification = self.writing.verification;
        let over = self.synced == verification.writes();
        if over || self.time_is_over() {
            self.ending = Some(if over { Ending::Complete } else { Ending::Time });
        }
        let begun = if self.ending.is_some() { self.synced } else { verification.next_sync(self.synced) };
        if let Err(why) = (self.writing.on_sync)(WriterProgress { synced: self.synced, begun }) {
            self.lost = Some(why);
            self.ending = Some(Ending::Failed);
        }
    }

    fn closed(&mut self, result: i32) {
        self.fail(Kind::Sync, self.begun, result);
    }
}

/// Reads back and checks what the verification wrote to an open file, up to `writer_progress`.
///
/// # Errors
/// If the engine fails or the target does not answer.
pub fn read_back(
    through: &Through,
    file: File,
    verification: &Verification,
    writer_progress: WriterProgress,
    stop: &AtomicBool,
    on_completion: &mut dyn FnMut(u64),
) -> Result<ReadBack, String> {
    let mut work = Reader {
        verification,
        writer_progress,
        end: end_of(&file),
        stop,
        on_completion,
        turn: 0,
        awaited: HashMap::new(),
        seen: ReadBack::default(),
    };
    run_work(through, file, false, verification.block_bytes, &mut work)?;
    let Reader { mut seen, end, .. } = work;
    seen.lost = seen.lost.map(|lost| Lost { from_bytes: end, to_bytes: end_of_writes(verification), ..lost });
    seen.damage.sort_unstable_by_key(|(offset, _)| *offset);
    seen.partial.sort_unstable();
    Ok(seen)
}

/// Returns the end of a file or block device, or `u64::MAX` for other targets.
fn end_of(mut file: &File) -> u64 {
    let kind = file.metadata().map(|facts| facts.file_type());
    let has_an_end = kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device());
    if has_an_end { file.seek(SeekFrom::End(0)).unwrap_or(u64::MAX) } else { u64::MAX }
}

fn end_of_writes(verification: &Verification) -> u64 {
    verification.offset_bytes.saturating_add(verification.span_bytes())
}

/// Returns the result for a target that ends before the first block. Every block with a stable write is lost. No sync
/// made the others stable, and neither the length of the target.
pub fn all_lost(verification: &Verification, writer_progress: WriterProgress, end: u64) -> ReadBack {
    let stable = writer_progress.synced.min(verification.blocks);
    let lost = Lost { from_bytes: end, to_bytes: end_of_writes(verification), blocks: stable };
    ReadBack {
        unwritten: verification.blocks - stable,
        damaged: stable,
        lost: (stable > 0).then_some(lost),
        ..ReadBack::default()
    }
}

struct Reader<'a> {
    verification: &'a Verification,
    writer_progress: WriterProgress,
    /// Size of the target in bytes; `u64::MAX` for a target without an end.
    end: u64,
    stop: &'a AtomicBool,
    on_completion: &'a mut dyn FnMut(u64),
    turn: u64,
    /// The expected content of the blocks whose reads are in flight, by offset.
    awaited: HashMap<u64, Expected>,
    seen: ReadBack,
}

impl Reader<'_> {
    fn examine(&mut self, expected: &Expected, data: &[u8]) {
        self.seen.blocks += 1;
        self.seen.must += u64::from(expected.synced > 0);
        match stamp::examine(data, expected) {
            Ok(Sound::Whole(sequence)) => self.seen.newer += u64::from(expected.begun == Some(sequence)),
            Ok(Sound::PartOfBegun { .. }) => {
                self.seen.partials += 1;
                if self.seen.partial.len() < LISTED {
                    self.seen.partial.push(expected.offset);
                }
            }
            Err(damage) => {
                self.seen.damaged += 1;
                if self.seen.damage.len() < LISTED {
                    self.seen.damage.push((expected.offset, damage));
                }
            }
        }
    }
}

impl Work for Reader<'_> {
    fn next(&mut self) -> Step {
        while self.turn < self.verification.blocks {
            if self.stop.load(Ordering::Relaxed) {
                self.seen.interrupted = true;
                return Step::End;
            }
            self.turn += 1;
            let Some(expected) = self.verification.expected(self.turn - 1, self.writer_progress) else {
                self.seen.unwritten += 1;
                continue;
            };
            let length = self.verification.block_bytes;
            if expected.offset.saturating_add(u64::from(length)) > self.end {
                // Without a sync, neither the block nor the length of the target had to survive.
                if expected.synced == 0 {
                    self.seen.unwritten += 1;
                    continue;
                }
                self.seen.damaged += 1;
                let lost = self.seen.lost.get_or_insert(Lost { from_bytes: 0, to_bytes: 0, blocks: 0 });
                lost.blocks += 1;
                continue;
            }
            self.awaited.insert(expected.offset, expected);
            return Step::Op(Op { offset: expected.offset, length, kind: Kind::Read, ..Op::NONE });
        }
        Step::End
    }

    fn fill(&mut self, _: &Op, _: &mut [u8]) {}

    fn done(&mut self, op: &Op, result: i32, data: &[u8]) {
        if let Some(expected) = self.awaited.remove(&op.offset) {
            if data.len() == op.length as usize {
                self.examine(&expected, data);
            } else {
                self.seen.failures.add(Kind::Read, op.offset, result);
            }
        }
        (self.on_completion)(self.turn);
    }

    fn synced(&mut self, _: i32) {}
}
