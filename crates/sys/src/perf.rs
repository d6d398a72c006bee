//! Counters of the calling thread (`perf_event_open(2)`): processor cycles, instructions, and system calls.
//!
//! [`Counters`] reads the hardware counters. [`Calls`] counts the tracepoint `raw_syscalls:sys_enter`, which includes calls of the C
//! library. While a `Calls` exists, every system call on the machine takes about 100 ns longer.

use crate::tracefs;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::OnceLock;

/// Counts between start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// Processor cycles in user space and in the kernel.
    pub cycles: u64,
    /// Instructions in user space and in the kernel.
    pub instructions: u64,
}

/// Running counters of cycles and instructions.
#[derive(Debug)]
pub struct Counters {
    cycles: File,
    instructions: File,
    start: CpuCounts,
}

/// `struct perf_event_attr` in its first published size, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// `PERF_TYPE_TRACEPOINT`: the event is the number of a tracepoint.
const TRACEPOINT: u32 = 2;
/// `PERF_TYPE_HARDWARE`: the event is a hardware counter.
const HARDWARE: u32 = 0;
/// `PERF_COUNT_HW_CPU_CYCLES`.
const CPU_CYCLES: u64 = 0;
/// `PERF_COUNT_HW_INSTRUCTIONS`.
const INSTRUCTIONS: u64 = 1;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`: a read also returns these two times. They differ if the kernel lent
/// the counter to other programs for a while.
const WITH_TIMES: u64 = 3;
/// `exclude_hv`: do not count the hypervisor.
const WITHOUT_HYPERVISOR: u64 = 1 << 6;

impl Counters {
    /// Opens both counters and starts counting.
    ///
    /// # Errors
    ///
    /// A message if this machine, usually a virtual one, has no such counters, or if the user is not allowed to read them.
    pub fn start() -> Result<Self, String> {
        let (cycles, instructions) = (hardware(CPU_CYCLES)?, hardware(INSTRUCTIONS)?);
        let mut counters = Self { cycles, instructions, start: CpuCounts { cycles: 0, instructions: 0 } };
        counters.start = counters.now()?;
        Ok(counters)
    }

    /// Returns the counts since the start.
    ///
    /// # Errors
    /// A message if other programs used the counters meanwhile, or if they cannot be read.
    pub fn end(&mut self) -> Result<CpuCounts, String> {
        let now = self.now()?;
        Ok(CpuCounts {
            cycles: now.cycles.saturating_sub(self.start.cycles),
            instructions: now.instructions.saturating_sub(self.start.instructions),
        })
    }

    fn now(&mut self) -> Result<CpuCounts, String> {
        let cause = "the processor's counters did not count all the time, probably because other programs used them too";
        Ok(CpuCounts {
            cycles: read(&mut self.cycles, cause)?,
            instructions: read(&mut self.instructions, cause)?,
        })
    }
}

fn hardware(config: u64) -> Result<File, String> {
    open(HARDWARE, config).map_err(|e| explain(&e))
}

/// Starts counting a tracepoint in the calling thread. `number` is its id in tracefs.
pub(crate) fn tracepoint(number: u64) -> Result<File, String> {
    open(TRACEPOINT, number).map_err(|e| match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "this user is not allowed to count tracepoints ({e}); set sysctl kernel.perf_event_paranoid to -1, or {}",
            crate::error_advice::own_advice()
        ),
        _ => format!("tracepoints cannot be counted: {e}"),
    })
}

fn open(kind: u32, config: u64) -> io::Result<File> {
    let mut attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: WITH_TIMES,
        flags: WITHOUT_HYPERVISOR,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group, close_on_exec) = (0, -1, -1, 8_u64);
    // SAFETY: the attributes live in this frame and contain their own size, which the kernel replaces if it knows another one; the call
    // returns a new descriptor or an error.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            this_thread,
            any_cpu,
            no_group,
            close_on_exec,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// Reads a counter. Fails if the counter was stopped for a time; the error then begins with `cause`.
fn read(counter: &mut File, cause: &str) -> Result<u64, String> {
    let mut words = [0_u8; 24];
    let descriptor = counter.as_raw_fd();
    counter
        .read_exact(&mut words)
        .map_err(|e| format!("the performance counter with descriptor {descriptor} cannot be read: {e}"))?;
    let word = |i: usize| u64::from_le_bytes(words.as_chunks::<8>().0[i]);
    let (count, enabled, running) = (word(0), word(1), word(2));
    if running < enabled {
        return Err(format!("{cause}, so the counts are incomplete"));
    }
    Ok(count)
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!("this machine has no counters of cycles and instructions ({error})")
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "this user is not allowed to read the counters of cycles and instructions ({error}); \
             set sysctl kernel.perf_event_paranoid to 1, or {}",
            crate::error_advice::own_advice()
        ),
        _ => format!("cycles and instructions cannot be counted: {error}"),
    }
}

/// File below tracefs with the id of the tracepoint `sys_enter`.
const SYS_ENTER_ID: &str = "events/raw_syscalls/sys_enter/id";

/// A running count of the system calls of the calling thread.
#[derive(Debug)]
pub struct Calls {
    counter: File,
    start: u64,
}

impl Calls {
    const STOPPED: &str = "the kernel did not count system calls all the time";

    /// Starts counting.
    ///
    /// # Errors
    /// A message if the kernel has no such tracepoint, or the user is not allowed to count it.
    pub fn start() -> Result<Self, String> {
        let mut counter = tracepoint(sys_enter_number()?)?;
        let start = read(&mut counter, Self::STOPPED)?;
        Ok(Self { counter, start })
    }

    /// Returns the calls since the start.
    ///
    /// # Errors
    /// A message if the counter cannot be read.
    pub fn end(&mut self) -> Result<u64, String> {
        // Reading the counter is a system call itself.
        Ok(read(&mut self.counter, Self::STOPPED)?.saturating_sub(self.start + 1))
    }
}

/// Reads the id of the tracepoint `sys_enter`, once per process: the id does not change until the next boot.
fn sys_enter_number() -> Result<u64, String> {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    if let Some(number) = NUMBER.get() {
        return Ok(*number);
    }
    let text = tracefs::read(SYS_ENTER_ID).map_err(|why| format!("system calls cannot be counted: {why}"))?;
    let number =
        text.trim().parse().map_err(|_| format!("'{}' is not the number of a tracepoint", text.trim()))?;
    Ok(*NUMBER.get_or_init(|| number))
}

#[test]
fn work_is_counted_or_the_error_names_the_reason() {
    match Counters::start() {
        Ok(mut counters) => {
            let sum: u64 = (0..1_000_000).map(std::hint::black_box).sum();
            let counted = counters.end().unwrap_or_else(|e| panic!("{e}"));
            assert!(sum > 0 && counted.instructions > 1_000_000, "{counted:?}");
        }
        Err(why) => {
            assert!(why.contains("count"), "{why}");
            println!("SKIPPED: {why}");
        }
    }
}

#[test]
fn every_call_is_counted_except_the_read_of_the_counter() {
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

#[test]
fn an_incomplete_count_of_calls_does_not_blame_the_processors_counters() -> io::Result<()> {
    use std::io::{Seek, Write};
    let interrupted = || {
        let mut counter = File::from(rustix::fs::memfd_create("counter", rustix::fs::MemfdFlags::CLOEXEC)?);
        // The count, the time for which it was enabled, and the time for which it ran.
        [1_000_u64, 10, 9].iter().try_for_each(|word| counter.write_all(&word.to_le_bytes()))?;
        counter.rewind()?;
        io::Result::Ok(counter)
    };
    let calls = Calls { counter: interrupted()?, start: 0 }.end();
    assert_eq!(
        calls,
        Err("the kernel did not count system calls all the time, so the counts are incomplete".into())
    );
    let start = CpuCounts { cycles: 0, instructions: 0 };
    let cycles = Counters { cycles: interrupted()?, instructions: interrupted()?, start }.end();
    assert!(cycles.is_err_and(|why| why.contains("the processor's counters did not count all the time")));
    Ok(())
}
