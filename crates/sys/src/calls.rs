//! System calls of the calling thread, counted by the kernel.
//!
//! For: how many there were between start and end, whoever made them: a C library too. Not for: which ones. It is the tracepoint
//! `raw_syscalls:sys_enter`, counted through perf_event_open(2); while it is open, every system call of the whole machine takes
//! some 100 ns more, so it is not for times.

use crate::{perf, tracefs};
use std::fs::File;
use std::sync::OnceLock;

/// Where the kernel tells the number of the tracepoint, below tracefs.
const ID: &str = "events/raw_syscalls/sys_enter/id";

/// A counter that runs.
#[derive(Debug)]
pub struct Calls {
    counter: File,
    start: u64,
}

impl Calls {
    /// Starts counting.
    ///
    /// # Errors
    /// A sentence: the kernel has no such tracepoint, or the user may not count.
    pub fn start() -> Result<Self, String> {
        let mut counter = perf::tracepoint(number()?)?;
        let start = perf::read(&mut counter)?;
        Ok(Self { counter, start })
    }

    /// Calls since the start.
    ///
    /// # Errors
    /// A sentence: the counter cannot be read.
    pub fn end(&mut self) -> Result<u64, String> {
        // The read that says so is one of them.
        Ok(perf::read(&mut self.counter)?.saturating_sub(self.start + 1))
    }
}

/// Asked once: it stays the same until the machine is booted again.
fn number() -> Result<u64, String> {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    if let Some(number) = NUMBER.get() {
        return Ok(*number);
    }
    let text = tracefs::read(ID).map_err(|why| format!("system calls cannot be counted: {why}"))?;
    let number =
        text.trim().parse().map_err(|_| format!("'{}' is not the number of a tracepoint", text.trim()))?;
    Ok(*NUMBER.get_or_init(|| number))
}

#[test]
fn every_call_is_counted_and_the_counting_is_not() {
    match Calls::start() {
        Ok(mut calls) => {
            assert_eq!(calls.end(), Ok(0));
            let mut calls = Calls::start().unwrap_or_else(|e| panic!("{e}"));
            for _ in 0..10 {
                let _ = rustix::process::getppid();
            }
            assert_eq!(calls.end(), Ok(10));
        }
        Err(why) => {
            assert!(why.contains("count"), "{why}");
            println!("SKIPPED: {why}");
        }
    }
}
