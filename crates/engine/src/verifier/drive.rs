//! The loop of the verifier: operations in flight through any engine.
//!
//! For: submitting what a work asks for and giving it the completions. Not for: speed; it is compiled once for all engines.

use super::work::{Step, Work};
use crate::engines::Entry;
use crate::interface::{Done, Queue};
use crate::source::Op;
use crate::spec::{STALL_LIMIT_NS, WorkerSpec};
use model::job::Kind;
use std::io;
use std::time::{Duration, Instant};

/// Longest time without a completion before the target is given up.
const STALL_LIMIT: Duration = Duration::from_nanos(STALL_LIMIT_NS);
/// How long a sync may take: it may have to write all that memory holds.
const SYNC_LIMIT: Duration = Duration::from_secs(600);

/// Does a work through an engine.
///
/// # Errors
/// Where the engine cannot be set up or fails itself, and where the target does not answer.
pub(super) fn drive_engine(engine: &'static Entry, mut spec: WorkerSpec, work: &mut dyn Work) -> Result<(), String> {
    let through_engine = engine.kinds.contains(&Kind::Sync);
    let handle = spec.files.first().map(|f| f.file.try_clone()).transpose();
    let handle = handle.map_err(|e| format!("the target cannot be opened once more: {e}"))?;
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
struct Flight {
    queue: Box<dyn Queue>,
    free: Vec<u32>,
    flying: Vec<Op>,
    done: Vec<Done>,
}

impl Flight {
    /// Prepares an operation on a free slot.
    fn begin(&mut self, op: &Op, fill: impl FnOnce(&mut [u8])) {
        let Some(slot) = self.free.pop() else { return };
        if op.kind == Kind::Write {
            fill(&mut self.queue.slot_mut(slot)[..op.length as usize]);
        }
        self.queue.queue(slot, op);
        self.flying[slot as usize] = *op;
    }

    /// Submits what was begun and waits until something completes.
    fn land(&mut self, limit: Duration, mut look: impl FnMut(&Op, i32, &[u8])) -> Result<(), String> {
        let since = Instant::now();
        loop {
            self.queue.submit(1).map_err(|e| format!("the engine failed: {e}"))?;
            let taken = self.queue.reap(&mut self.done);
            for done in &self.done[..taken] {
                let op = self.flying[done.slot as usize];
                let moved = u32::try_from(done.result).unwrap_or(0).min(op.length) as usize;
                look(&op, done.result, &self.queue.slot_mut(done.slot)[..moved]);
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
