//! Making the data stable that a command left in the page cache.
//!
//! `syncfs(2)` cannot be interrupted. So another process of this program calls it: when Ctrl-C ends the wait, fathom exits at once, and that
//! process ends when the kernel lets it.

use super::Signalled;
use model::command::FinalSync;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often it is looked whether the sync is done.
const POLL: Duration = Duration::from_millis(1);
/// The hidden flag with which fathom calls itself.
const FLAG: &str = "--sync-file-systems";

/// Writes back and waits for all dirty data of the file systems of these paths.
pub(super) fn make_stable(paths: &[PathBuf], signalled: &Signalled) -> FinalSync {
    let child = Command::new("/proc/self/exe")
        .args(["time", FLAG])
        .args(paths)
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
                let text = child.stdout.take().and_then(|text| std::io::read_to_string(text).ok());
                let took_ns = text.and_then(|text| text.trim().parse().ok());
                return took_ns
                    .map_or_else(|| FinalSync::Failed("it did not report its time".into()), FinalSync::Done);
            }
            Ok(Some(_)) => {
                let why = child.stderr.take().and_then(|text| std::io::read_to_string(text).ok());
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

/// Writes back the file systems of these paths and prints how many ns that took: what fathom does when it calls itself for the final sync.
pub fn sync_file_systems(paths: &[PathBuf]) -> ExitCode {
    let began = Instant::now();
    for path in paths {
        let synced = File::open(path).and_then(|file| Ok(rustix::fs::syncfs(file)?));
        if let Err(e) = synced {
            crate::stderr::say(&format!("{}: {e}", model::name::shown(path)));
            return ExitCode::FAILURE;
        }
    }
    let printed = crate::stdout::text(&format!("{}\n", began.elapsed().as_nanos()));
    printed.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
