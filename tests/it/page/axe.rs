//! Gets the script of axe-core, an accessibility checker, from a small package on PyPI.

use crate::stage::Stage;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of the download.
const LIMIT: Duration = Duration::from_secs(60);
/// The package, in the version that the pages were tested with.
const PACKAGE: &str = "axe-playwright-python==0.1.8";
/// Path of the script in the package's wheel.
const SCRIPT: &str = "axe_playwright_python/axe.min.js";

/// The script, or why it is missing.
pub(crate) fn script(stage: &Stage) -> Result<String, String> {
    let dir = stage.folder("axe");
    let not = |why: &str| format!("accessibility was not checked: {why}");
    let download = ["-m", "pip", "download", "--no-deps", "--quiet", "--dest", ".", PACKAGE];
    python(&dir, &download).map_err(|why| not(&format!("pip cannot bring {PACKAGE}: {why}")))?;
    let files = std::fs::read_dir(&dir).unwrap().flatten().map(|file| file.path());
    let wheel = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "whl"));
    let wheel = wheel.ok_or_else(|| not(&format!("pip brought no wheel of {PACKAGE}")))?;
    python(&dir, &["-m", "zipfile", "-e", wheel.to_str().unwrap(), "."]).map_err(|why| not(&why))?;
    std::fs::read_to_string(dir.join(SCRIPT)).map_err(|e| not(&format!("{SCRIPT} of {PACKAGE}: {e}")))
}

fn python(dir: &Path, words: &[&str]) -> Result<(), String> {
    let mut python = Command::new("python3");
    python.args(words).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = python.spawn().map_err(|e| format!("python3: {e}"))?;
    let since = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(ended) if ended.success() => return Ok(()),
            Some(ended) => return Err(ended.to_string()),
            None if since.elapsed() > LIMIT => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("it took more than {} s", LIMIT.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
