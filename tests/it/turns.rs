//! Turns: which tests run at once.
//!
//! For: the machine to itself for a test that judges speed or the counters of the whole machine; before those the tests that need
//! a processor, one for each; and before them all others side by side. Not for: what a test finds on its stage
//! ([`crate::stage`]).
//! Threads wait here, not at the runner of the tests: it starts tests in the order of their names, so that those that wait for
//! the machine would keep the others from starting. Every test has a thread, as `./test` runs them.

use std::fs::File;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A file to which each test appends how long it had its turn, in tenths of a second, in which company, and its name.
const TIMES: &str = "FATHOM_TURNS";

/// How many others a test can have beside it. Whoever bears more goes first, so that the machine is full until it is divided no more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    /// As many as keep the processors busy; they mostly wait for storage.
    Many,
    /// One for each processor in all, so that nobody waits for one.
    Few,
    /// The machine is its own.
    Nobody,
}

impl Company {
    const ALL: [Self; 3] = [Self::Many, Self::Few, Self::Nobody];

    /// Tests of it at once.
    fn width(self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Self::Many => 4 * processors,
            Self::Few => processors,
            Self::Nobody => 1,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Many => "beside",
            Self::Few => "few",
            Self::Nobody => "alone",
        }
    }
}

/// Who has the machine, and who waits for it, of each company.
static NOW: Mutex<Now> = Mutex::new(Now { have: [0; 3], wait: [0; 3] });
static CHANGED: Condvar = Condvar::new();

struct Now {
    have: [usize; 3],
    wait: [usize; 3],
}

impl Now {
    /// Whether one more test of this company can begin: none that goes before waits, and there are so few that each bears it.
    fn lets_in(&self, company: Company) -> bool {
        let here = Company::ALL.into_iter().filter(|c| *c == company || self.have[*c as usize] > 0);
        let most = here.map(Company::width).min().unwrap_or_default();
        self.wait.iter().take(company as usize).all(|n| *n == 0) && self.have.iter().sum::<usize>() < most
    }
}

/// A test's turn, until it is dropped.
pub(crate) struct Turn {
    company: Company,
    since: Instant,
}

impl Turn {
    /// With nobody else.
    pub(crate) fn alone() -> Self {
        Self::take(Company::Nobody)
    }

    /// Beside so few that each has a processor to itself.
    pub(crate) fn beside_few() -> Self {
        Self::take(Company::Few)
    }

    /// Side by side with others of this kind.
    pub(crate) fn beside_others() -> Self {
        Self::take(Company::Many)
    }

    fn take(company: Company) -> Self {
        let mut now = lock();
        now.wait[company as usize] += 1;
        while !now.lets_in(company) {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.wait[company as usize] -= 1;
        now.have[company as usize] += 1;
        drop(now);
        // Whoever waited behind this one may have nobody before it any more.
        CHANGED.notify_all();
        Self { company, since: Instant::now() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock().have[self.company as usize] -= 1;
        CHANGED.notify_all();
        self.note();
    }
}

impl Turn {
    /// Says how long it took, where that is asked.
    fn note(&self) {
        let Some(path) = std::env::var_os(TIMES) else { return };
        let thread = std::thread::current();
        let (name, how) = (thread.name().unwrap_or("?"), self.company.word());
        let line = format!("{:5} {how} {name}\n", self.since.elapsed().as_millis() / 100);
        // A test is not wrong because its time is not known.
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
