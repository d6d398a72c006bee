//! What a signal does to a process that does not watch for it, for one that does.
//!
//! For: stopping at Ctrl-Z, or ending with a dump of memory, after something was done first. Not for: watching for signals.

use std::io;
use std::mem::MaybeUninit;

/// Has a signal act on this process as if nobody watched for it, and returns when the process goes on. Where the kernel does not let it
/// act, such as a stop that no shell could ever end (an orphaned process group), nothing happens.
///
/// # Errors
/// That there is no such signal, or none that can be watched for.
pub fn take(signal: i32) -> io::Result<()> {
    let checked = |answer: libc::c_int| if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let mut watched = MaybeUninit::<libc::sigaction>::zeroed();
    let mut default = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction of zeros with the action SIG_DFL is a valid one; the kernel reads it and fills the other, both of this frame.
    // What was watching is put back as the kernel gave it. The signal is sent to this thread alone, so it has acted when the call
    // returns.
    unsafe {
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        checked(libc::sigaction(signal, default.as_ptr(), watched.as_mut_ptr()))?;
        let sent = checked(libc::raise(signal));
        checked(libc::sigaction(signal, watched.as_ptr(), std::ptr::null_mut()))?;
        sent
    }
}

#[test]
fn what_does_nothing_by_itself_returns_and_what_is_no_signal_is_refused() {
    assert!(take(libc::SIGURG).is_ok() && take(libc::SIGWINCH).is_ok());
    assert!(take(libc::SIGKILL).is_err() && take(4_711).is_err());
}
