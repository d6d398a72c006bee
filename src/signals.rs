//! Signals: the first termination signal asks for an orderly end, the second ends the program at once.
//!
//! One thread reads the signals, so no I/O call is interrupted. `SIGUSR1` asks for a status, which only `fathom fio` prints. `SIGXFSZ` has
//! a handler without effect, so a write beyond the file size limit fails with an error.

use crate::failure::{Failure, INTERRUPTED, cause};
use signal_hook::consts::{SIGHUP, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Signals, SignalsInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// How long the program waits for the cleanup after a second signal.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Whether a status was requested since the last one was sent.
static STATUS_REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Keeps `SIGXFSZ` and `SIGUSR1` from ending the program. If one of them was ignored from the start, it remains ignored, also in the
/// command of `fathom time`.
///
/// # Errors
/// If a handler cannot be installed.
pub fn survive_harmless() -> std::io::Result<()> {
    for (signal, flag) in [(SIGXFSZ, Arc::default()), (SIGUSR1, Arc::clone(&STATUS_REQUESTED))] {
        if !sys::process::is_ignored(signal) {
            signal_hook::flag::register(signal, flag)?;
        }
    }
    Ok(())
}

/// Whether `SIGUSR1` requested a status that was not sent yet.
pub fn is_status_requested() -> bool {
    STATUS_REQUESTED.load(Ordering::Relaxed)
}

/// Notes that the requested status was sent.
pub fn clear_status_request() {
    STATUS_REQUESTED.store(false, Ordering::Relaxed);
}

/// Starts the thread that takes the signals that end fathom. Returns a flag that becomes true at the first signal. At
/// the second, `leave` runs and the process ends. `SIGHUP` remains ignored after `nohup`.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn watch(leave: impl Fn() + Send + 'static) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&stop);
    let mut ending = sys::thread::ending_signals();
    ending.retain(|signal| *signal != SIGHUP || !sys::process::is_ignored(SIGHUP));
    let mut signals = Signals::new(ending).map_err(refused)?;
    start_thread(move || {
        for _ in signals.forever() {
            if requested.swap(true, Ordering::Relaxed) {
                leave();
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    })?;
    Ok(stop)
}

fn start_thread(read_signals: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name("fathom-signals".into());
    thread.spawn(read_signals).map(|_| ()).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn refused(error: std::io::Error) -> Failure {
    Failure::Refused(format!("fathom cannot handle signals: {error}{}", cause(&error)))
}

/// As [`watch`], for callers that must remove something from the kernel before the process ends, such as a tracer instance. After the
/// second signal the thread waits up to two seconds until the caller sets `gone`, then runs `leave`.
///
/// # Errors
/// As [`watch`].
pub fn watch_until_gone(
    gone: &Arc<AtomicBool>,
    leave: impl Fn() + Send + 'static,
) -> Result<Arc<AtomicBool>, Failure> {
    let gone = Arc::clone(gone);
    watch(move || {
        let begun = Instant::now();
        while !gone.load(Ordering::Relaxed) && begun.elapsed() < LEAVE_WITHIN {
            std::thread::sleep(Duration::from_millis(10));
        }
        leave();
    })
}

/// Calls `received` for each signal that ends a process by default. None of them ends this process. `received` gets the number of the
/// signal, and whether a process sent it. Signals that this process ignored from its start, as after `nohup`, remain ignored, here and in
/// its children.
///
/// # Errors
/// Returns why the handlers cannot be installed.
pub fn pass_on(received: impl Fn(i32, bool) + Send + 'static) -> Result<(), Failure> {
    let all = sys::thread::ending_signals().into_iter().chain([SIGUSR1]);
    let handled = all.filter(|signal| !sys::process::is_ignored(*signal));
    let mut signals = SignalsInfo::<WithOrigin>::new(handled).map_err(refused)?;
    start_thread(move || {
        for origin in signals.forever() {
            received(origin.signal, origin.process.is_some());
        }
    })
}
