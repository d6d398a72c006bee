//! SIGINT, SIGTERM, SIGHUP, and SIGXCPU of a limit on CPU time: the first asks for an orderly end, the second leaves at once.
//!
//! For: one thread that reads them, so that no I/O call is interrupted; and what is done around a stop (Ctrl-Z). Not for: what an
//! orderly end is.

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Exit code after a signal: 128 + SIGINT, whichever it was.
pub const INTERRUPTED: u8 = 130;

/// How long a second signal waits for what must be undone.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Lets a write beyond the limit on file sizes fail with an error, which can be told, instead of ending the program.
///
/// # Errors
/// Where the handler cannot be installed.
pub fn survive_file_limit() -> std::io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(|_| ())
}

/// Starts the thread. The flag becomes true at the first signal; at the second, `leave` runs and the process ends.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn watch(leave: impl Fn() + Send + 'static) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGXCPU])?;
    std::thread::Builder::new().name("fathom-signals".into()).spawn(move || {
        for _ in signals.forever() {
            if asked.swap(true, Ordering::Relaxed) {
                leave();
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    })?;
    Ok(stop)
}

/// Starts the thread of [`watch`] where something in the kernel must be removed before the process ends: the second signal waits a moment
/// for `gone` to be set, and runs `leave` then.
///
/// # Errors
/// As [`watch`].
pub fn watch_until_gone(
    gone: &Arc<AtomicBool>,
    leave: impl Fn() + Send + 'static,
) -> std::io::Result<Arc<AtomicBool>> {
    let gone = Arc::clone(gone);
    watch(move || {
        let begun = Instant::now();
        while !gone.load(Ordering::Relaxed) && begun.elapsed() < LEAVE_WITHIN {
            std::thread::sleep(Duration::from_millis(10));
        }
        leave();
    })
}

/// Has `before` run before this process stops at a signal of its terminal or ends with SIGQUIT, and `behind` when it goes on.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn around_stops(
    before: impl Fn() + Send + 'static,
    behind: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTSTP, SIGQUIT, SIGCONT])?;
    std::thread::Builder::new().name("fathom-stops".into()).spawn(move || {
        for signal in signals.forever() {
            if signal != SIGCONT {
                before();
                // Where that is refused nothing happens, as if it had been ignored.
                let _ = sys::default_action::take(signal);
            }
            behind();
        }
    })?;
    Ok(())
}
