//! Operations that are looked at by themselves: those that their source chooses when there is room for them, and those with a priority.
//!
//! For: asking sources of replays, telling them what has completed, and queueing. Not for: plain loops, which have no such source and not an instruction of this.

use super::{Loop, Slot};
use crate::interface::{Engine, Time};
use crate::recorder::Recorder;
use crate::source::{Choice, Op};
use model::job::Kind;

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Has the source of a lane choose, and queues operations as far as a call may have several; else notes what the lane waits for.
    // Apart, and known to be: inlined into loops that never call it, it would still change how the compiler lays those out.
    #[inline(never)]
    pub(super) fn choose(&mut self, at: usize) {
        let most = self.spec.batch.submit as usize;
        if self.batch.is_empty() {
            self.lanes[at].begin_call();
        }
        loop {
            let time = self.engine.time();
            let stamp = |ns| self.begin.saturating_add(time.ticks_of(ns));
            match self.lanes[at].choose(time.ns(time.now().saturating_sub(self.begin))) {
                Choice::Now(op, due_ns) => {
                    let due = stamp(due_ns);
                    self.queue_chosen(at, &op, due);
                    let is_full = self.batch.len() >= most || self.lanes[at].in_flight == self.spec.depth;
                    if is_full || self.is_exhausted() {
                        return;
                    }
                    continue;
                }
                Choice::At(ns) => self.held.due = self.held.due.min(stamp(ns)),
                Choice::Later => {}
                Choice::End => self.left.0 = 0,
            }
            self.held.any = true;
            return;
        }
    }

    /// As the loop queues what it has seen before. Here apart: one way for both costs plain operations five instructions in a hundred.
    #[inline(never)]
    fn queue_chosen(&mut self, at: usize, op: &Op, due: u64) {
        let (slot, _) = self.lanes[at].take();
        self.left.0 = self.left.0.saturating_sub(u64::from(op.kind != Kind::Sync));
        self.left.1 = self.left.1.saturating_sub(u64::from(op.length));
        self.slots[slot as usize] = Slot { start: 0, due, length: op.length, lane: at as u16, kind: op.kind };
        if op.kind == Kind::Write {
            self.fill(slot, op.length);
        }
        self.queue_watched(slot, op);
        self.batch.push(slot);
    }

    /// Queues an operation that is looked at by itself, with the priority that it may have.
    pub(super) fn queue_watched(&mut self, slot: u32, op: &Op) {
        self.recorder.begin(slot, op, self.engine.slot_mut(slot));
        match self.recorder.priority(slot) {
            0 => self.engine.queue(slot, op),
            priority => self.engine.queue_prior(slot, op, priority),
        }
    }

    /// Tells the sources of lanes what has completed at the last stamp.
    #[cold]
    pub(super) fn tell(&mut self, taken: usize) {
        let now_ns = self.engine.time().ns(self.now.saturating_sub(self.begin));
        for done in &self.done[..taken] {
            let lane = self.slots[done.slot as usize].lane;
            self.lanes[lane as usize].tell(&self.recorder.op(done.slot), now_ns);
        }
    }
}
