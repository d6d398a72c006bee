//! Turns: which stories run at once.
//!
//! For: the machine to itself for a story that judges speed or counters, and all others side by side before. Not for: what a story
//! finds on its stage ([`crate::stage`]).
//! Threads wait here, not at the runner of the tests: it starts stories in the order of their names, so that those that wait for
//! the machine would keep the others from starting. Every story has a thread, as `./test` runs them.

use std::fs::File;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A file to which each story appends how long it had its turn, in tenths of a second, whether alone, and its name.
const TIMES: &str = "FATHOM_TURNS";

/// Stories at once for each processor; they mostly wait for storage.
const FOR_EACH_PROCESSOR: usize = 4;

/// Who has the machine, and who waits for it.
static NOW: Mutex<Now> = Mutex::new(Now { alone: false, beside: 0, wait_beside: 0 });
static CHANGED: Condvar = Condvar::new();

struct Now {
    alone: bool,
    beside: usize,
    /// They go before those that want it alone, so that the machine is full until it is divided no more.
    wait_beside: usize,
}

/// A story's turn, until it is dropped.
pub(crate) struct Turn {
    alone: bool,
    since: Instant,
}

impl Turn {
    /// With nobody else.
    pub(crate) fn alone() -> Self {
        let mut now = lock();
        while now.alone || now.beside > 0 || now.wait_beside > 0 {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.alone = true;
        Self { alone: true, since: Instant::now() }
    }

    /// Side by side with others of this kind.
    pub(crate) fn beside_others() -> Self {
        let width = FOR_EACH_PROCESSOR * std::thread::available_parallelism().map_or(1, usize::from);
        let mut now = lock();
        now.wait_beside += 1;
        while now.alone || now.beside >= width {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.wait_beside -= 1;
        now.beside += 1;
        Self { alone: false, since: Instant::now() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut now = lock();
        if self.alone {
            now.alone = false;
        } else {
            now.beside -= 1;
        }
        drop(now);
        CHANGED.notify_all();
        self.note();
    }
}

impl Turn {
    /// Says how long it took, where that is asked.
    fn note(&self) {
        let Some(path) = std::env::var_os(TIMES) else { return };
        let thread = std::thread::current();
        let (name, how) = (thread.name().unwrap_or("?"), if self.alone { "alone" } else { "beside" });
        let line = format!("{:5} {how} {name}\n", self.since.elapsed().as_millis() / 100);
        // A story is not wrong because its time is not known.
        let _ = File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut f| f.write_all(line.as_bytes()));
    }
}

fn lock() -> MutexGuard<'static, Now> {
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}
