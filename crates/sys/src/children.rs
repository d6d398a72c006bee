//! Waiting for child processes, with what each of them and its own ended children used (`wait4(2)`).

use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;

/// A child that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its process id.
    pub pid: u32,
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it; 0 if none did.
    pub signal: i32,
    /// CPU time in user space in ns, of it and of its children that it waited for.
    pub user_ns: u64,
    /// CPU time in the kernel in ns, of the same processes.
    pub system_ns: u64,
    /// Largest resident memory of one of these processes, in bytes.
    pub peak_bytes: u64,
}

/// Waits until a child ends and reaps it. Without `block` it returns `None` if none has ended.
///
/// # Errors
/// Returns `ECHILD` if there is no child.
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
            // Linux counts it in KiB.
            peak_bytes: (usage.ru_maxrss as u64) << 10,
        }));
    }
}
