//! System calls of the calling thread, counted by the kernel.
//!
//! For: how many there were between start and end, whoever made them: a C library too. Not for: which ones. It is the tracepoint
//! `raw_syscalls:sys_enter`, counted through perf_event_open(2); while it is open, every system call of the whole machine takes
//! some 100 ns more, so it is not for times.

use crate::perf;
use std::fs::File;
use std::io;

/// Where the kernel tells the number of the tracepoint.
const ID: [&str; 2] = [
    "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
];

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

fn number() -> Result<u64, String> {
    let read = |path: &'static str| std::fs::read_to_string(path).map_err(|e| (path, e));
    let text =
        read(ID[0]).or_else(|first| read(ID[1]).map_err(|_| first)).map_err(|(path, e)| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("{path} may not be read by this user ({e}); run as root to count system calls")
            }
            _ => format!("system calls cannot be counted: {path}: {e}"),
        })?;
    text.trim().parse().map_err(|_| format!("'{}' is not the number of a tracepoint", text.trim()))
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
