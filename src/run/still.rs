//! Standing still: whether fathom itself ran, told by a thread that does nothing but sleep.
//!
//! For: a run, while it goes on. Not for: waiting for a CPU, which each worker counts for itself; nor for judging what it does to a number.
//!
//! A stop signal, a freezer, a debugger or a paused machine stops all threads at once, and their clocks with them: no worker can
//! tell it from a slow device. A thread that asked to be woken after 10 ms can: it comes back later than that without having waited for a CPU.

use model::Known;
use model::record::Still;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::thread::RunQueue;

/// Lateness that is no mere timer: a tick is 10 ms at most, and a paused machine is gone for longer than this.
const STILL_FROM: Duration = Duration::from_millis(100);
/// How long it sleeps at a time.
const NAP: Duration = Duration::from_millis(10);
/// How often the account of waiting is read, so that a late return is compared with the waiting of its own time.
const ACCOUNT_EVERY: Duration = Duration::from_millis(100);

/// The thread that sleeps; ended where this is dropped.
pub(super) struct StillWatch {
    is_over: Arc<AtomicBool>,
    thread: Option<io::Result<JoinHandle<Known<Still>>>>,
}

impl StillWatch {
    pub(super) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_over);
        let sleep = move || Sleeper::begin().until(&of_thread);
        let thread = std::thread::Builder::new().name("fathom-still".into()).spawn(sleep);
        Self { is_over, thread: Some(thread) }
    }

    /// What it saw.
    ///
    /// # Errors
    /// Why there was nobody to see it, or waiting for a CPU cannot be told from standing still.
    pub(super) fn end(mut self) -> Known<Still> {
        let thread = self.thread.take().ok_or("it has ended")?;
        let thread = thread.map_err(|e| format!("fathom cannot start a thread: {e}"))?;
        self.is_over.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err("the thread that sleeps has ended".into()))
    }
}

impl Drop for StillWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Watches itself sleep.
struct Sleeper {
    queue: Known<RunQueue>,
    seen: Still,
    /// When the account was last read, and ns of waiting by then.
    account: (Instant, u64),
}

impl Sleeper {
    fn begin() -> Self {
        let queue = RunQueue::open().map_err(|e| format!("/proc/thread-self/schedstat: {e}"));
        let mut sleeper = Self { queue, seen: Still::default(), account: (Instant::now(), 0) };
        sleeper.account.1 = sleeper.waited_ns();
        sleeper
    }

    fn until(mut self, is_over: &AtomicBool) -> Known<Still> {
        let mut woken = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            std::thread::park_timeout(NAP);
            // From one return to the next, so that no moment is left out.
            let now = Instant::now();
            self.returned((now - woken).saturating_sub(NAP));
            woken = now;
        }
        let counts = self.queue.and_then(|q| q.waited_ns().map_err(|e| e.to_string()));
        counts.map(|_| self.seen)
    }

    /// Keeps by how much a sleep took longer than asked, less the time that this thread waited for a CPU.
    fn returned(&mut self, late: Duration) {
        if late < STILL_FROM && self.account.0.elapsed() < ACCOUNT_EVERY {
            return;
        }
        let waited = self.waited_ns();
        let waiting = Duration::from_nanos(waited.saturating_sub(self.account.1));
        self.account = (Instant::now(), waited);
        self.note(late, waiting);
    }

    fn note(&mut self, late: Duration, waiting: Duration) {
        let still = late.saturating_sub(waiting);
        if still >= STILL_FROM {
            let ns = still.as_nanos() as u64;
            self.seen.times += 1;
            self.seen.longest_ns = self.seen.longest_ns.max(ns);
            self.seen.total_ns = self.seen.total_ns.saturating_add(ns);
        }
    }

    fn waited_ns(&self) -> u64 {
        self.queue.as_ref().ok().and_then(|q| q.waited_ns().ok()).unwrap_or(0)
    }
}

#[test]
fn what_is_late_and_did_not_wait_for_a_cpu_stood_still() {
    let mut watch = Sleeper::begin();
    let ms = Duration::from_millis;
    watch.note(ms(99), ms(0));
    watch.note(ms(1_000), ms(950));
    assert_eq!(watch.seen, Still::default());
    watch.note(ms(1_000), ms(100));
    watch.note(ms(200), ms(0));
    assert_eq!(watch.seen, Still { times: 2, longest_ns: 900_000_000, total_ns: 1_100_000_000 });
}
