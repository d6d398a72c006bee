//! The verifier: writes the blocks of a verification, and reads them back, through any engine.
//!
//! For: operations in flight as deep as asked, made stable between marks, every block examined. Not for: speed (it is not the
//! hot loop, stamps nothing and measures nothing), nor for deciding which write must be where (`model::verification`).
//!
//! `drive` is the loop, compiled once per engine; a `Work` says what is next and looks at what came of it.

mod reading;
mod writing;

pub use reading::read_back;
pub use writing::{Writing, write};

use crate::engines::{Engine, Entry};
use crate::source::{Op, Source};
use crate::worker::{STALL_LIMIT_NS, Spec};
use model::job::{Batch, Cache, Kind, Limit, Options, Placement, SyncCall};
use model::payload::Maker;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};
use sys::clock::Clock;
use sys::ring::{Done, RingFile};

/// Longest time without a completion before the target is given up.
const STALL_LIMIT: Duration = Duration::from_nanos(STALL_LIMIT_NS);
/// How long a sync may take: it may have to write all that memory holds.
const SYNC_LIMIT: Duration = Duration::from_secs(600);

/// How the target is reached.
#[derive(Debug)]
pub struct Through {
    /// The engine.
    pub engine: &'static Entry,
    /// What is asked of it.
    pub options: Options,
    /// What the file was opened with.
    pub cache: Cache,
    /// Operations in flight; fewer where the engine has less.
    pub depth: u32,
    /// The clock that an engine may need.
    pub clock: Clock,
}

/// What the loop is to do next.
pub(crate) enum Step {
    /// This operation.
    Op(Op),
    /// Wait for all that is in flight, then make everything stable.
    Sync,
    /// Wait for all that is in flight, then end.
    End,
}

/// Says what is next, and looks at what came of it.
pub(crate) trait Work {
    fn next(&mut self) -> Step;
    /// Makes the data of a write.
    fn fill(&mut self, op: &Op, data: &mut [u8]);
    /// Looks at a completion; `data` is what a read brought, as far as it got.
    fn done(&mut self, op: &Op, result: i32, data: &[u8]);
    /// Everything before it is stable, or not: 0 or minus errno.
    fn synced(&mut self, result: i32);
}

/// Does a work through an engine.
///
/// # Errors
/// Where the engine cannot be set up or fails itself, and where the target does not answer.
pub(crate) fn drive<E: Engine>(spec: &mut Spec, work: &mut dyn Work) -> Result<(), String> {
    let through_engine = spec.engine.kinds.contains(&Kind::Sync);
    let handle = spec.files.first().map(|f| f.file.try_clone()).transpose();
    let handle = handle.map_err(|e| format!("the target cannot be opened once more: {e}"))?;
    let depth = spec.depth as usize;
    let name = spec.engine.name;
    let (engine, _) = E::open(spec).map_err(|e| format!("{name} cannot be set up: {e}"))?;
    let mut flight = Flight {
        engine,
        free: (0..depth as u32).rev().collect(),
        flying: vec![Op::NONE; depth],
        done: vec![Done::default(); depth],
    };
    loop {
        if flight.free.is_empty() {
            flight.land(STALL_LIMIT, |op, result, data| work.done(op, result, data))?;
            continue;
        }
        let step = work.next();
        if let Step::Op(op) = step {
            flight.begin(&op, |data| work.fill(&op, data));
            continue;
        }
        while flight.free.len() < depth {
            flight.land(STALL_LIMIT, |op, result, data| work.done(op, result, data))?;
        }
        if matches!(step, Step::End) {
            return Ok(());
        }
        if through_engine {
            flight.begin(&Op { kind: Kind::Sync, ..Op::NONE }, |_| {});
            flight.land(SYNC_LIMIT, |_, result, _| work.synced(result))?;
        } else {
            work.synced(handle.as_ref().map_or(0, |file| answer(&file.sync_all())));
        }
    }
}

fn answer(outcome: &io::Result<()>) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(e) => -e.raw_os_error().unwrap_or(i32::MAX),
    }
}

/// An engine with its operations in flight.
struct Flight<E> {
    engine: E,
    free: Vec<u32>,
    flying: Vec<Op>,
    done: Vec<Done>,
}

impl<E: Engine> Flight<E> {
    /// Prepares an operation on a free slot.
    fn begin(&mut self, op: &Op, fill: impl FnOnce(&mut [u8])) {
        let Some(slot) = self.free.pop() else { return };
        if op.kind == Kind::Write {
            fill(&mut self.engine.slot_mut(slot)[..op.length as usize]);
        }
        self.engine.queue(slot, op);
        self.flying[slot as usize] = *op;
    }

    /// Hands over what was begun and waits until something completes.
    fn land(&mut self, limit: Duration, mut look: impl FnMut(&Op, i32, &[u8])) -> Result<(), String> {
        let since = Instant::now();
        loop {
            self.engine.submit(1).map_err(|e| format!("the engine failed: {e}"))?;
            let taken = self.engine.reap(&mut self.done);
            for done in &self.done[..taken] {
                let op = self.flying[done.slot as usize];
                let moved = u32::try_from(done.result).unwrap_or(0).min(op.length) as usize;
                look(&op, done.result, &self.engine.slot_mut(done.slot)[..moved]);
                self.free.push(done.slot);
            }
            if taken > 0 {
                return Ok(());
            }
            if since.elapsed() > limit {
                return Err(format!(
                    "no operation has completed for {} s and {} are in flight; the target does not answer",
                    limit.as_secs(),
                    self.flying.len() - self.free.len()
                ));
            }
        }
    }
}

/// Has the engine do a work on an open file.
fn carry_out(
    through: &Through,
    file: File,
    writes: bool,
    block_bytes: u32,
    work: &mut dyn Work,
) -> Result<(), String> {
    let mut spec = Spec {
        worker: 0,
        stream: 0,
        engine: through.engine,
        sources: vec![Box::new(Nothing)],
        files: vec![RingFile { file, writable: writes }],
        depth: through.depth.clamp(1, through.engine.max_depth),
        slot_bytes: block_bytes,
        writes,
        options: through.options.clone(),
        cache: through.cache,
        sync_call: SyncCall::Fsync,
        open_loop: false,
        delay_ns: 0,
        cooldown_ns: 0,
        limit: Limit::default(),
        place: Placement::default(),
        batch: Batch { submit: 1, complete: 1 },
        warmup_ns: 0,
        time_ns: 0,
        interval_ns: 0,
        count_calls: false,
        maker: Maker::new(&model::job::Data::default(), None, 0)?,
        clock: through.clock,
    };
    (through.engine.verify)(&mut spec, work)
}

/// Stands where the hot loop would have its operations from.
struct Nothing;

impl Source for Nothing {
    fn refill(&mut self, ops: &mut [Op]) {
        ops.fill(Op::NONE);
    }
}

#[cfg(test)]
mod tests;
