//! SIGINT, SIGTERM and SIGHUP: the first asks for an orderly end, the second leaves at once.
//!
//! For: one thread that reads them, so that no I/O call is interrupted. Not for: what an orderly end is.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code after a signal: 128 + SIGINT, whichever it was.
pub const INTERRUPTED: u8 = 130;

/// Starts the thread. The flag becomes true at the first signal; at the second, `leave` runs and the process ends.
///
/// # Errors
/// Where the handlers cannot be installed.
pub fn watch(leave: impl Fn() + Send + 'static) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
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
