//! The start barrier: workers wait at it until all are ready.
//!
//! For: starting together, or not at all. Not for: stopping.

use crate::refusal::CannotBegin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that setting up rings and memory may take before the start is given up.
const SET_UP_LIMIT: Duration = Duration::from_secs(30);

/// Where workers wait until all are ready.
#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    failure: Option<CannotBegin>,
    opened: Option<bool>,
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
