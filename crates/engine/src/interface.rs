//! What an engine is: the traits of an interface that carries operations, and of the clock of its stamps.
//!
//! For: what the loop and the verifier ask of every engine, and the waiting that engines share. Not for: the engines
//! ([`crate::engines`]).

use crate::source::Op;
use crate::spec::WorkerSpec;
use model::record::stream::DepthCounts;
use std::io;
use sys::clock::Clock;
pub use sys::done::Done;
pub use sys::granted::Granted;

/// Takes operations and gives completions back. All slots belong to the caller until `queue` and again after `reap`.
pub trait Queue {
    /// The data of a slot that is not in flight.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Prepares an operation on a slot; nothing is submitted yet.
    fn queue(&mut self, slot: u32, op: &Op);
    /// Prepares an operation on a slot with a priority of its own (class and level as `ioprio_set(2)` takes them), which engines without
    /// it leave aside; nothing is submitted yet.
    fn queue_prior(&mut self, slot: u32, op: &Op, _priority: u16) {
        self.queue(slot, op);
    }
    /// Submits what is queued and waits for `wait` completions, a tenth of a second at most.
    ///
    /// # Errors
    /// What the kernel answers when the interface itself fails; an operation's own failure is in its result.
    fn submit(&mut self, wait: u32) -> io::Result<()>;
    /// Passes up to `ns` while no operation may be submitted, or less where something completes meanwhile. It may come
    /// back at once: the caller looks at the clock and asks again.
    ///
    /// # Errors
    /// What the kernel answers when the interface itself fails.
    fn pause(&mut self, ns: u64) -> io::Result<()> {
        pause(ns);
        Ok(())
    }
    /// Takes completions that are there.
    fn reap(&mut self, done: &mut [Done]) -> usize;
}

/// What the hot loop needs of an interface, for which it is compiled.
pub trait Engine: Queue + Sized {
    /// What tells the time; a simulation has a clock of its own.
    type Time: Time;
    /// Sets the interface up, on the thread that will use it: memory for its slots, files, registrations.
    ///
    /// # Errors
    /// What the kernel answers.
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)>;
    /// The clock of its stamps.
    fn time(&self) -> &Self::Time;
    /// What it counted of the operations in flight; `None` unless the worker is to count them.
    fn depth_counts(&self) -> Option<DepthCounts> {
        None
    }
}

/// What a sleeper may come too late, in ns: the rest is spent looking at the clock.
const OVERSLEEP_NS: u64 = 100_000;

/// Passes most of `ns` asleep, and comes back at once where that is too short to sleep.
pub(crate) fn pause(ns: u64) {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(sleep @ 1..) => std::thread::sleep(std::time::Duration::from_nanos(sleep)),
        _ => std::hint::spin_loop(),
    }
}

/// Waits by `wait` for a completion, and comes back that much before `ns` have passed: timers ring late, and the last stretch
/// is spent looking.
pub(crate) fn wake_early(ns: u64, wait: impl FnOnce(u64) -> io::Result<()>) -> io::Result<()> {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(ns @ 1..) => wait(ns),
        _ => Ok(()),
    }
}

/// A clock that counts ticks.
pub trait Time {
    /// Now, in ticks.
    fn now(&self) -> u64;
    /// Ticks as ns.
    fn ns(&self, ticks: u64) -> u64;
    /// ns as ticks.
    fn ticks_of(&self, ns: u64) -> u64;
}

impl Time for Clock {
    #[inline]
    fn now(&self) -> u64 {
        self.ticks()
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        Self::ns(self, ticks)
    }

    fn ticks_of(&self, ns: u64) -> u64 {
        Self::ticks_of(self, ns)
    }
}
