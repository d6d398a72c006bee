//! The interface between workers and engines: the traits that the loop and the verifier use, and
//! the error of an engine that cannot be set up.
//!
//! Most engines execute one blocking call per operation: they implement `Call`, and
//! `BlockingEngine` turns the call into an [`Engine`].

use crate::source::Op;
use crate::spec::WorkerSpec;
use model::record::stream::DepthCounts;
use std::{fmt, io};
use sys::clock::Clock;

pub use sys::slots::{Done, Granted};

/// Accepts operations and returns completions. A slot belongs to the caller until `queue` and again after `reap`.
pub trait Queue {
    /// Returns the buffer of a slot that is not in flight.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Queues an operation on a slot without submitting it.
    fn queue(&mut self, slot: u32, op: &Op);
    /// Queues an operation with its own priority (class and level as in `ioprio_set(2)`). Engines without priorities ignore the priority.
    fn queue_with_priority(&mut self, slot: u32, op: &Op, _priority: u16) {
        self.queue(slot, op);
    }
    /// Submits the queued operations and waits for `wait` completions. The wait lasts at most 100
    /// ms, unless the engine executes the operations within this call.
    ///
    /// # Errors
    /// An error of the interface itself. The error of an operation is in its result.
    fn submit(&mut self, wait: u32) -> io::Result<()>;
    /// Waits up to `ns`, or until an operation completes. May return early: the caller reads the clock and calls again.
    ///
    /// # Errors
    /// An error of the interface itself.
    fn pause(&mut self, ns: u64) -> io::Result<()> {
        pause(ns);
        Ok(())
    }
    /// Takes available completions and returns their number.
    fn reap(&mut self, done: &mut [Done]) -> usize;
}

/// An interface for which the hot loop is compiled.
pub trait Engine: Queue + Sized {
    /// The engine's clock. The simulated device has a simulated clock.
    type Time: Time;
    /// Sets up the interface on the thread that will use it: buffers, files, registrations.
    ///
    /// # Errors
    /// An error of the kernel, or a refusal with advice.
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)>;
    /// Returns the clock that the loop reads.
    fn time(&self) -> &Self::Time;
    /// Returns the counts of operations in flight; `None` if the worker does not count them.
    fn depth_counts(&self) -> Option<DepthCounts> {
        None
    }
}

/// A call that executes one operation and returns when it is complete.
pub(crate) trait Call: Sized {
    /// Sets up the call on the thread that will use it, like [`Engine::open`].
    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)>;
    /// Returns the buffer of a slot.
    fn slot_mut(&mut self, slot: u32) -> &mut [u8];
    /// Executes an operation. Returns the bytes moved or trimmed, 0 for a sync.
    fn execute(&mut self, slot: u32, op: &Op) -> io::Result<usize>;
}

/// Turns a blocking call into an engine, which executes one operation at a time.
pub(crate) struct BlockingEngine<C> {
    call: C,
    clock: Clock,
    queued: Option<(u32, Op)>,
    done: Option<Done>,
}

impl<C: Call> Engine for BlockingEngine<C> {
    type Time = Clock;

    fn open(spec: &mut WorkerSpec) -> io::Result<(Self, Granted)> {
        let clock = spec.clock;
        let (call, granted) = C::open(spec)?;
        Ok((Self { call, clock, queued: None, done: None }, granted))
    }

    #[inline]
    fn time(&self) -> &Clock {
        &self.clock
    }
}

impl<C: Call> Queue for BlockingEngine<C> {
    #[inline]
    fn slot_mut(&mut self, slot: u32) -> &mut [u8] {
        self.call.slot_mut(slot)
    }

    #[inline]
    fn queue(&mut self, slot: u32, op: &Op) {
        debug_assert!(self.queued.is_none(), "the table allows one operation at a time");
        self.queued = Some((slot, *op));
    }

    #[inline]
    fn submit(&mut self, _wait: u32) -> io::Result<()> {
        let Some((slot, op)) = self.queued.take() else { return Ok(()) };
        let result = match self.call.execute(slot, &op) {
            Ok(bytes) => bytes as i32,
            Err(e) => -e.raw_os_error().unwrap_or(i32::MAX),
        };
        self.done = Some(Done { slot, result });
        Ok(())
    }

    #[inline]
    fn reap(&mut self, done: &mut [Done]) -> usize {
        let (Some(finished), Some(place)) = (self.done, done.first_mut()) else { return 0 };
        *place = finished;
        self.done = None;
        1
    }
}

/// How late a sleep may end, in ns. A pause therefore sleeps this much less. The caller then reads
/// the clock until the pause is over.
const OVERSLEEP_NS: u64 = 100_000;

/// Sleeps until shortly before `ns` have passed. Returns at once if the time is too short to sleep.
pub(crate) fn pause(ns: u64) {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(sleep @ 1..) => std::thread::sleep(std::time::Duration::from_nanos(sleep)),
        _ => std::hint::spin_loop(),
    }
}

/// Calls `wait` with a timeout that ends [`OVERSLEEP_NS`] before `ns` have passed, because timers
/// expire late. Returns at once if `ns` is at most [`OVERSLEEP_NS`]. The caller reads the clock
/// until `ns` have passed.
pub(crate) fn wake_early(ns: u64, wait: impl FnOnce(u64) -> io::Result<()>) -> io::Result<()> {
    match ns.checked_sub(OVERSLEEP_NS) {
        Some(ns @ 1..) => wait(ns),
        _ => Ok(()),
    }
}

/// A clock that counts ticks.
pub trait Time {
    /// Returns the time in ticks.
    fn now(&self) -> u64;
    /// Converts ticks to ns.
    fn ns(&self, ticks: u64) -> u64;
    /// Converts ns to ticks.
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

/// Advice if the kernel refuses an engine option.
pub(crate) const LEAVE_OUT: &str = "leave this engine option out";

/// Advice if an interface is refused. The engine `sync` works on every kernel.
pub(crate) const USE_SYNC: &str = "type --engine sync";

/// The reason why an engine cannot be set up, and what to type instead.
#[derive(Debug)]
struct Refusal {
    reason: String,
    instead: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.instead)
    }
}

impl std::error::Error for Refusal {}

/// Builds the error of an engine that cannot be set up: the reason, and what to type instead.
pub(crate) fn refusal(
    kind: io::ErrorKind,
    reason: impl Into<String>,
    instead: impl Into<String>,
) -> io::Error {
    io::Error::new(kind, Refusal { reason: reason.into(), instead: instead.into() })
}

/// The reason why workers cannot begin, separate from the advice: a comparison of all engines shows only the reason.
#[derive(Clone, Debug)]
pub struct CannotBegin {
    /// The message: worker, engine, reason and advice.
    pub sentence: String,
    /// Only the reason.
    pub reason: String,
}

impl CannotBegin {
    /// Builds the error for a worker whose engine cannot be set up.
    pub(crate) fn for_engine(worker: u32, engine: &str, error: &io::Error) -> Self {
        let full_reason = format!("{error}{}", sys::cause(error));
        let sentence = format!("worker {worker} cannot set up {engine}: {full_reason}");
        let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>());
        Self { sentence, reason: refusal.map_or(full_reason, |refusal| refusal.reason.clone()) }
    }
}

impl From<String> for CannotBegin {
    fn from(sentence: String) -> Self {
        Self { reason: sentence.clone(), sentence }
    }
}

impl From<CannotBegin> for String {
    fn from(why: CannotBegin) -> Self {
        why.sentence
    }
}

#[test]
fn the_reason_is_separate_from_the_worker_and_the_advice() {
    let error =
        refusal(io::ErrorKind::Unsupported, "option x: no; none here", "leave this engine option out");
    let why = CannotBegin::for_engine(3, "vsync", &error);
    assert_eq!(
        why.sentence,
        "worker 3 cannot set up vsync: option x: no; none here; leave this engine option out"
    );
    assert_eq!(why.reason, "option x: no; none here");
    let full = CannotBegin::for_engine(0, "sync", &io::Error::from_raw_os_error(12));
    assert!(full.reason.contains("ulimit -l") && full.sentence.ends_with(&full.reason), "{full:?}");
}
