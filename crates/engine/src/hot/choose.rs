//! Operations that their source chooses when there is room for them: those of a replay.
//!
//! For: asking, and telling such sources what has completed. Not for: plain loops, which have no such source and not an instruction of this.

use super::{Loop, Slot};
use crate::interface::{Engine, Time};
use crate::recorder::Recorder;
use crate::source::{Choice, Op};
use model::job::Kind;

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Has the source of a lane choose, and queues the operation; else notes what the lane waits for.
    // Apart, and known to be: inlined into loops that never call it, it would still change how the compiler lays those out.
    #[inline(never)]
    pub(super) fn choose(&mut self, at: usize) {
        let time = self.engine.time();
        let stamp = |ns| self.begin.saturating_add(time.ticks_of(ns));
        match self.lanes[at].choose(time.ns(time.now().saturating_sub(self.begin))) {
            Choice::Now(op, due_ns) => {
                let due = stamp(due_ns);
                self.queue_chosen(at, &op, due);
                return;
            }
            Choice::At(ns) => self.held.due = self.held.due.min(stamp(ns)),
            Choice::Later => {}
            Choice::End => self.left.0 = 0,
        }
        self.held.any = true;
    }

    /// As the loop queues what it has seen before. Here apart: one way for both costs plain operations five instructions in a hundred.
    #[inline(never)]
    fn queue_chosen(&mut self, at: usize, op: &Op, due: u64) {
        let (slot, _) = self.lanes[at].take();
        self.slots[slot as usize] = Slot { start: 0, due, length: op.length, lane: at as u16, kind: op.kind };
        if op.kind == Kind::Write {
            self.fill(slot, op.length);
        }
        self.recorder.begin(slot, op, self.engine.slot_mut(slot));
        self.engine.queue(slot, op);
        self.batch.push(slot);
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
