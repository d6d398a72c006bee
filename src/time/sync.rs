//! Making the data stable that a command left in the page cache.
//!
//! `sync(2)` covers every file system and block device, wherever the command wrote. It cannot be interrupted, so another process of this
//! program calls it: when Ctrl-C ends the wait, fathom exits at once, and that process ends when the kernel lets it.

use super::Signalled;
use crate::stdout;
use model::command::FinalSync;
use std::io::read_to_string;
use std::process::{self, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it is looked whether the sync is done.
const POLL: Duration = Duration::from_millis(1);
/// The hidden flag with which fathom calls itself.
const FLAG: &str = "--sync-all";

/// Writes back and waits for all dirty data of the machine.
pub(super) fn make_stable(signalled: &Signalled) -> FinalSync {
    let child = process::Command::new("/proc/self/exe")
        .args(["time", FLAG])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) => return FinalSync::Failed(format!("no process for it could be started: {e}")),
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => {
                let text = child.stdout.take().and_then(|text| read_to_string(text).ok());
                let took_ns = text.and_then(|text| text.trim().parse().ok());
                let unknown = || FinalSync::Failed("it did not report its time".into());
                return took_ns.map_or_else(unknown, FinalSync::Done);
            }
            Ok(Some(_)) => {
                let why = child.stderr.take().and_then(|text| read_to_string(text).ok());
                return FinalSync::Failed(why.unwrap_or_default().trim().to_owned());
            }
            Ok(None) if signalled.stop.load(Ordering::Relaxed) => {
                let _ = child.kill();
                return FinalSync::Skipped;
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(e) => return FinalSync::Failed(e.to_string()),
        }
    }
}

/// Writes back all dirty data and prints how many ns that took: what fathom does when it calls itself for the final sync.
pub fn sync_all() -> ExitCode {
    let began = Instant::now();
    rustix::fs::sync();
    let printed = stdout::text(&format!("{}\n", began.elapsed().as_nanos()));
    printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
