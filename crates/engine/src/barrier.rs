//! The start barrier: workers wait at it until all are ready.
//!
//! For: starting together, or not at all. Not for: stopping.

use crate::refusal::CannotBegin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that setting up rings and memory may take before the start is given up.
const SET_UP_LIMIT: Duration = Duration::from_secs(30);
/// Before a time at which all begin, whoever waits for it sleeps until this is left and then spins: a sleeper wakes late.
const SPIN: Duration = Duration::from_millis(2);

/// Where workers wait until all are ready.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
    /// ns behind the time at which all were to begin that the last worker really did.
    late_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    failure: Option<CannotBegin>,
    opened: Option<bool>,
    /// The time at which all begin; `None` where each does as soon as it is let.
    at: Option<Instant>,
}

impl StartBarrier {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker that panicked holding the lock left plain numbers behind; they are still true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports as ready and waits. False: do not begin.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        state.ready += 1;
        self.changed.notify_all();
        while state.opened.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.opened == Some(true)
    }

    /// Reports that a worker cannot begin.
    pub(crate) fn fail(&self, why: CannotBegin) {
        self.lock().failure.get_or_insert(why);
        self.changed.notify_all();
    }

    /// Lets all that wait begin, or end.
    pub(crate) fn open(&self, go: bool) {
        self.lock().opened = Some(go);
        self.changed.notify_all();
    }

    /// Lets all that wait begin at a time.
    pub(crate) fn open_at(&self, at: Instant) {
        self.lock().at = Some(at);
        self.open(true);
    }

    /// Waits for the time at which all begin, where there is one: the last thing before the first operation.
    pub(crate) fn hold(&self) {
        let Some(at) = self.lock().at else { return };
        let left = at.saturating_duration_since(Instant::now());
        std::thread::sleep(left.saturating_sub(SPIN));
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        let late = at.elapsed().as_nanos() as u64;
        self.late_ns.fetch_max(late, Ordering::Relaxed);
    }

    /// ns behind the time at which all were to begin that the last worker so far did.
    pub(crate) fn late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Waits until so many are ready.
    ///
    /// # Errors
    /// The first reason why one cannot begin, or how many were not ready in time.
    pub(crate) fn all_ready(&self, count: usize) -> Result<(), CannotBegin> {
        let limit = Instant::now() + SET_UP_LIMIT;
        let mut state = self.lock();
        while state.ready < count {
            if let Some(why) = &state.failure {
                return Err(why.clone());
            }
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (late, seconds) = (count - state.ready, SET_UP_LIMIT.as_secs());
                return Err(format!("{late} of {count} workers were not ready after {seconds} s").into());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

#[test]
fn nobody_begins_before_the_time_that_was_named() {
    let barrier = std::sync::Arc::new(StartBarrier::default());
    let begun: Vec<_> = (0..2)
        .map(|_| {
            let barrier = std::sync::Arc::clone(&barrier);
            std::thread::spawn(move || {
                let go = barrier.wait();
                barrier.hold();
                (go, Instant::now())
            })
        })
        .collect();
    assert!(barrier.all_ready(2).is_ok());
    let at = Instant::now() + Duration::from_millis(20);
    barrier.open_at(at);
    for thread in begun {
        let (go, began) = thread.join().unwrap_or_else(|_| panic!("a worker panicked"));
        assert!(go && began >= at);
        assert!((began - at).as_nanos() as u64 >= barrier.late_ns() || barrier.late_ns() > 0);
    }
}
