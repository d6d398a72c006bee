//! Signals: the first one that would end the program asks for an orderly end, the second leaves at once.
//!
//! One thread reads them, so that no I/O call is interrupted. `SIGUSR1` asks for a status, which only `fathom fio` prints; elsewhere it
//! does nothing. `SIGXFSZ` does nothing, so that a write beyond the limit on file sizes fails with an error. What is done around a stop
//! (Ctrl-Z) is here too.

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Signals, SignalsInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Exit code after a signal: 128 + SIGINT, whichever it was.
pub const INTERRUPTED: u8 = 130;

/// How long a second signal waits for what must be undone.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Whether a status was asked for since it was last given.
static STATUS_REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Keeps `SIGXFSZ` and `SIGUSR1` from ending the program.
///
/// # Errors
/// Where a handler cannot be installed.
pub fn survive_harmless() -> std::io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    signal_hook::flag::register(SIGUSR1, Arc::clone(&STATUS_REQUESTED))?;
    Ok(())
}

/// Whether `SIGUSR1` has asked for a status that was not given yet.
pub fn is_status_requested() -> bool {
    STATUS_REQUESTED.load(Ordering::Relaxed)
}

/// The status that was asked for is given.
pub fn status_given() {
    STATUS_REQUESTED.store(false, Ordering::Relaxed);
}

/// Starts the thread. The flag becomes true at the first signal; at the second, `leave` runs and the process ends.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn watch(leave: impl Fn() + Send + 'static) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let mut signals = Signals::new(sys::thread::ending_signals())?;
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

/// Signals that are passed on to a command of the user.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Calls `received` for each signal that would end this process, and for `SIGUSR1` and `SIGUSR2`, none of which then does. `received` gets the
/// number and whether another process sent it to this one alone. A signal of the terminal reaches all processes in the foreground, so a
/// command that was started has it already.
///
/// # Errors
/// Returns why the handlers cannot be installed.
pub fn pass_on(received: impl Fn(i32, bool) + Send + 'static) -> std::io::Result<()> {
    let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON)?;
    std::thread::Builder::new().name("fathom-signals".into()).spawn(move || {
        for origin in signals.forever() {
            received(origin.signal, origin.process.is_some());
        }
    })?;
    Ok(())
}

/// Has `before` run before this process stops at a signal of its terminal, and `after` when it continues.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn around_stops(
    before: impl Fn() + Send + 'static,
    after: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("fathom-stops".into()).spawn(move || {
        for signal in signals.forever() {
            if signal != SIGCONT {
                before();
                // Where that is refused nothing happens, as if it had been ignored.
                let _ = sys::process::take(signal);
            }
            after();
        }
    })?;
    Ok(())
}
