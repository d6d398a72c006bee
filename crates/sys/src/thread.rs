//! What a thread costs, and which signals it does not take.
//!
//! For: CPU time and switches of the calling thread, and a signal mask for workers. Not for: affinity or priorities.

use std::io;
use std::mem::MaybeUninit;

/// What the calling thread has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user space, ns.
    pub user_ns: u64,
    /// CPU time in the kernel, ns.
    pub system_ns: u64,
    /// Times it gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub forced_switches: u64,
}

/// Reads the usage of the calling thread (`getrusage(RUSAGE_THREAD)`).
///
/// # Errors
/// Whatever the kernel answers; none is known for a valid call.
pub fn usage() -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage that the kernel fills; nothing else is touched.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, raw.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed at first and filled by a call that succeeded; every bit pattern of its integers is valid.
    let raw = unsafe { raw.assume_init() };
    let ns = |t: libc::timeval| (t.tv_sec as u64) * 1_000_000_000 + (t.tv_usec as u64) * 1000;
    Ok(Usage {
        user_ns: ns(raw.ru_utime),
        system_ns: ns(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        forced_switches: raw.ru_nivcsw as u64,
    })
}

/// Blocks SIGINT, SIGTERM and SIGHUP in the calling thread, so that another one reads them and no I/O call is interrupted.
///
/// # Errors
/// Whatever the kernel answers; none is known for a valid call.
pub fn block_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set that the next calls read; all pointers are to this frame.
    let answer = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut())
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

#[test]
fn work_shows_in_the_usage() {
    let before = usage().unwrap_or_default();
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < 30 {
        std::hint::spin_loop();
    }
    let after = usage().unwrap_or_default();
    assert!(after.user_ns + after.system_ns > before.user_ns + before.system_ns);
}
