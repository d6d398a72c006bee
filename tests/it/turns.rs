//! Decides which tests run at the same time.
//!
//! The tests that tolerate most others run first. Tests that need a processor each follow. Tests that depend on speed, or on counters of
//! the whole machine, run one by one at the end. The test runner starts tests in the order of their names, and a waiting test would keep
//! others from starting. So `./test` starts every test in its own thread, and the tests wait here for their turn.

use std::fs::File;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A file to which each test appends the duration of its turn in tenths of a second, its kind of turn, and its name.
const TIMES: &str = "FATHOM_TURNS";

/// How many tests may run at the same time. Tests that tolerate more run first, so that the machine is busy as long as possible.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// Four for each processor, since they mostly wait for storage.
    Many,
    /// One for each processor.
    Few,
    /// Only this test.
    Exclusive,
}

impl Sharing {
    const ALL: [Self; 3] = [Self::Many, Self::Few, Self::Exclusive];

    /// Largest number of running tests of all kinds while a test of this kind runs.
    fn width(self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::Many => 4 * processors,
            Self::Few => processors,
            Self::Exclusive => 1,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Many => "many",
            Self::Few => "few",
            Self::Exclusive => "alone",
        }
    }
}

/// Running and waiting tests, by kind.
static NOW: Mutex<Now> = Mutex::new(Now { have: [0; 3], wait: [0; 3] });
static CHANGED: Condvar = Condvar::new();

struct Now {
    have: [usize; 3],
    wait: [usize; 3],
}

impl Now {
    /// Whether another test of this kind may begin: no test of a kind with an earlier turn waits, and all running tests tolerate one
    /// more.
    fn admits(&self, sharing: Sharing) -> bool {
        let here = Sharing::ALL.into_iter().filter(|c| *c == sharing || self.have[*c as usize] > 0);
        let most = here.map(Sharing::width).min().unwrap_or_default();
        self.wait.iter().take(sharing as usize).all(|n| *n == 0) && self.have.iter().sum::<usize>() < most
    }
}

/// The turn of a test, until it is dropped.
pub(crate) struct Turn {
    sharing: Sharing,
    since: Instant,
}

impl Turn {
    /// A turn without other tests.
    pub(crate) fn exclusive() -> Self {
        Self::take(Sharing::Exclusive)
    }

    /// A turn with at most one test for each processor.
    pub(crate) fn one_per_cpu() -> Self {
        Self::take(Sharing::Few)
    }

    /// A turn with many other tests.
    pub(crate) fn shared() -> Self {
        Self::take(Sharing::Many)
    }

    fn take(sharing: Sharing) -> Self {
        let mut now = lock();
        now.wait[sharing as usize] += 1;
        while !now.admits(sharing) {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.wait[sharing as usize] -= 1;
        now.have[sharing as usize] += 1;
        drop(now);
        // Tests of later kinds may have waited for this one, so one of them may begin now.
        CHANGED.notify_all();
        Self { sharing, since: Instant::now() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock().have[self.sharing as usize] -= 1;
        CHANGED.notify_all();
        self.note();
    }
}

impl Turn {
    /// Records the duration, if requested.
    fn note(&self) {
        let Some(path) = std::env::var_os(TIMES) else { return };
        let thread = std::thread::current();
        let (name, how) = (thread.name().unwrap_or("?"), self.sharing.word());
        let line = format!("{:5} {how} {name}\n", self.since.elapsed().as_millis() / 100);
        // A missing record is not a failure of the test.
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
