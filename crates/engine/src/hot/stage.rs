//! Which part of a run it is, and when the next one begins.
//!
//! For: warm-up, window and cool-down, and the intervals of the window that are given to the collector. Not for: the turns between
//! two such stamps (the loop), nor what is counted in them (`count`).

use super::Loop;
use crate::interface::{Engine, Time};
use crate::recorder::Recorder;
use crate::spec::WorkerSpec;
use std::sync::atomic::Ordering;

/// Parts of a run, one after another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    WarmUp,
    Window,
    CoolDown,
}

impl<E: Engine, R: Recorder> Loop<'_, E, R> {
    /// Time before the measured window: a stream that begins late is not measured before it has begun.
    pub(super) fn warmup_ns(&self) -> u64 {
        self.spec.warmup_ns.max(self.spec.delay_ns)
    }

    /// Stamp at which the present part of the run is over.
    fn end_of_stage(&self) -> u64 {
        let WorkerSpec { warmup_ns, time_ns, cooldown_ns, .. } = *self.spec;
        self.start
            + match self.stage {
                Stage::WarmUp => self.ticks(self.warmup_ns()),
                // The end is that of the phase, so that all its streams stop together.
                Stage::Window => self.ticks(warmup_ns + time_ns),
                Stage::CoolDown => self.ticks(warmup_ns + time_ns + cooldown_ns),
            }
    }

    /// The next stamp at which something has to be done: the end of an interval or of a part of the run.
    pub(super) fn next_edge(&self, now: u64) -> u64 {
        let interval = self.ticks(self.spec.interval_ns).max(1);
        // On a grid from the beginning of the window, so that the intervals of all workers cover each other.
        let from = if self.stage == Stage::Window { self.window.0 } else { self.start };
        let next = from + ((now - from) / interval + 1) * interval;
        next.min(self.end_of_stage())
    }

    pub(super) fn enter_window(&mut self, now: u64) {
        self.stage = Stage::Window;
        self.window = (now, now);
        let limit = self.spec.limit;
        self.left = (limit.operations.unwrap_or(u64::MAX), limit.bytes.unwrap_or(u64::MAX));
        self.begin_interval(now);
    }

    /// At an edge or a stop: gives the interval to the collector and goes on to the next part of the run. True when all is over.
    #[cold]
    pub(super) fn close_interval(&mut self) -> bool {
        let now = self.now;
        self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
        let stopped = self.link.stop.load(Ordering::Relaxed);
        let over = now >= self.end_of_stage();
        let mut ended = stopped || self.is_exhausted();
        match self.stage {
            Stage::WarmUp if over && !ended => self.enter_window(now),
            Stage::WarmUp => {}
            Stage::Window => {
                self.integrate(now);
                self.window.1 = now;
                self.block.end_ns = self.engine.time().ns(now - self.start);
                self.block.depth_ns = self.engine.time().ns(self.depth.1);
                let goes = !over && !ended && self.link.port.has_spare();
                if over || ended || goes {
                    self.add_up();
                }
                if over {
                    // The last block stays here; from now on nothing is counted into it.
                    self.stage = Stage::CoolDown;
                    ended |= self.spec.cooldown_ns == 0;
                } else if goes && self.link.port.exchange(&mut self.block) {
                    self.begin_interval(now);
                }
            }
            Stage::CoolDown => ended |= over,
        }
        self.edge = self.next_edge(now);
        ended
    }

    /// Whether nothing may begin any more: the window is over, all is done that was to be, or somebody asked for the end.
    pub(super) fn must_end(&self) -> bool {
        self.now >= self.end_of_stage() || self.is_exhausted() || self.link.stop.load(Ordering::Relaxed)
    }

    /// Forgets what the window has so far and begins it again; what was counted against its limits stays counted.
    pub(super) fn begin_window_again(&mut self) {
        self.block.clear();
        self.window = (self.now, self.now);
        self.begin_interval(self.now);
        self.pass_edge();
    }

    /// Leaves everything as it is until the next edge.
    pub(super) fn pass_edge(&mut self) {
        self.link.heartbeat.fetch_add(1, Ordering::Relaxed);
        self.edge = self.next_edge(self.now);
    }

    fn begin_interval(&mut self, now: u64) {
        self.depth = (now, 0);
        self.block.start_ns = self.engine.time().ns(now - self.start);
    }
}
