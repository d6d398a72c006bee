//! The process: its standard streams at start, its children (`wait4(2)`), and its signals.
//!
//! Before `main`, Rust opens `/dev/null` in place of closed standard streams. A function in `.init_array` runs earlier and notes which
//! streams were closed.

use crate::check;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

/// One bit for each of the first three descriptors, set if it was closed at start.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the loader calls every function of this section once, before `main` and before any other thread; the signature is one
// that it may call (its arguments are ignored), and the function only asks the kernel and stores into an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED_STREAMS: extern "C" fn() = note_closed_streams;

extern "C" fn note_closed_streams() {
    for descriptor in 0..3 {
        // SAFETY: reads the flags of a descriptor and takes no memory; returns an error for a closed one.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Returns whether standard input (0), output (1) or error (2) was closed when the program was started.
pub fn was_closed(descriptor: RawFd) -> bool {
    (0..3).contains(&descriptor) && CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

/// Duplicates a descriptor that the user named by its number.
///
/// # Errors
/// `EBADF` if the descriptor is not open.
pub fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 || was_closed(descriptor) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the borrowed descriptor is used for one call, which duplicates it, or returns EBADF
    // if it is not open. The user chose the descriptor by its number.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(File::from(borrowed.try_clone_to_owned()?))
}

/// A child that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Process id of the child.
    pub pid: u32,
    /// Exit code of the child; `None` if a signal ended the child.
    pub code: Option<i32>,
    /// The signal that ended the child; 0 if none did.
    pub signal: i32,
    /// CPU time in user space in ns, including children that the child waited for.
    pub user_ns: u64,
    /// CPU time in the kernel in ns, including children that the child waited for.
    pub system_ns: u64,
    /// Largest resident memory, in bytes, of the child or of any of its children.
    pub peak_bytes: u64,
    /// Page faults that read storage, including children that the child waited for.
    pub major_faults: u64,
}

/// Waits until a child ends and reaps it. Without `block`, returns `None` if no child has ended.
///
/// # Errors
/// `ECHILD` without children.
pub fn wait(block: bool) -> io::Result<Option<Ended>> {
    let flags = if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to whole values of this frame that the kernel fills; nothing else is touched.
        let pid = unsafe { libc::wait4(-1, &raw mut status, flags, usage.as_mut_ptr()) };
        if pid < 0 {
            let error = io::Error::last_os_error();
            if Errno::from_io_error(&error) == Some(Errno::INTR) {
                continue;
            }
            return Err(error);
        }
        if pid == 0 {
            return Ok(None);
        }
        // SAFETY: zeroed at first and filled by a call that succeeded; every bit pattern of its integers is valid.
        let usage = unsafe { usage.assume_init() };
        let ns = |t: libc::timeval| (t.tv_sec as u64) * 1_000_000_000 + (t.tv_usec as u64) * 1000;
        return Ok(Some(Ended {
            pid: pid.cast_unsigned(),
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 },
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            // Linux reports KiB.
            peak_bytes: (usage.ru_maxrss as u64) << 10,
            major_faults: usage.ru_majflt.cast_unsigned(),
        }));
    }
}

/// Runs the default action of a signal, such as the stop at Ctrl-Z, and returns when the process continues. Does nothing if the kernel
/// suppresses the action, such as a stop in an orphaned process group.
///
/// # Errors
/// `EINVAL` for a signal that does not exist or cannot be handled.
pub fn run_default_action(signal: i32) -> io::Result<()> {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    let mut default = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction of zeros with the action SIG_DFL is valid; the kernel reads it and fills the other one, both in this frame. The
    // previous action is restored as the kernel returned it. The signal goes to this thread alone, so its action is over when the call
    // returns.
    unsafe {
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        check(libc::sigaction(signal, default.as_ptr(), previous.as_mut_ptr()))?;
        let sent = check(libc::raise(signal));
        check(libc::sigaction(signal, previous.as_ptr(), std::ptr::null_mut()))?;
        sent
    }
}

/// Whether this process ignores a signal. Programs that the process starts inherit the setting.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only fills the sigaction of this frame; zeroed before, it is valid after any answer.
    unsafe {
        check(libc::sigaction(signal, ptr::null(), action.as_mut_ptr())).is_ok()
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Ends that this process ignores a signal: from now on, the signal has its default action. Does nothing if the process does not ignore it.
///
/// # Errors
/// `EINVAL` for a signal that does not exist.
pub fn stop_ignoring(signal: i32) -> io::Result<()> {
    if !is_ignored(signal) {
        return Ok(());
    }
    // SAFETY: a sigaction of zeros with the action SIG_DFL is valid, and the kernel only reads it.
    unsafe {
        let mut default = MaybeUninit::<libc::sigaction>::zeroed();
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        check(libc::sigaction(signal, default.as_ptr(), ptr::null_mut()))
    }
}

/// Sends a signal to a process.
///
/// # Errors
/// `ESRCH` without such a process, `EPERM` without the right.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: takes two numbers; a positive one names a single process.
    check(unsafe { libc::kill(pid, signal) })
}

#[test]
fn ignored_signals_are_known() {
    assert!(is_ignored(libc::SIGPIPE) && !is_ignored(libc::SIGTTIN) && !is_ignored(4_711));
}

#[test]
fn only_single_processes_get_signals() {
    assert!(send(std::process::id(), libc::SIGURG).is_ok());
    assert!(send(0, libc::SIGURG).is_err() && send(u32::MAX, libc::SIGURG).is_err());
}

#[test]
fn only_open_descriptors_are_duplicated() {
    use std::os::fd::AsRawFd;
    assert_eq!(duplicate(-1).map_err(|e| e.raw_os_error()).err(), Some(Some(libc::EBADF)));
    assert_eq!(duplicate(1 << 20).map_err(|e| e.raw_os_error()).err(), Some(Some(libc::EBADF)));
    let file = File::open("/dev/null").unwrap_or_else(|e| panic!("{e}"));
    assert!(duplicate(file.as_raw_fd()).is_ok());
    assert!(!was_closed(7));
}

#[test]
fn ignored_signals_return_and_invalid_ones_are_refused() {
    assert!(run_default_action(libc::SIGURG).is_ok() && run_default_action(libc::SIGWINCH).is_ok());
    assert!(run_default_action(libc::SIGKILL).is_err() && run_default_action(4_711).is_err());
}
