//! The state file of a verification: what a check after a crash has to know.
//!
//! For: one small file that is whole at every moment and as new as the last sync. Not for: what is in it (`model::verification`).

use crate::failure::Failure;
use crate::input;
use crate::output::{Replace, Rules};
use crate::spared::Spared;
use crate::whole::{self, Readers};
use model::name;
use model::verification::{Mark, State};
use std::io;
use std::path::{Path, PathBuf};

/// Far above any state: larger files are something else.
const MOST_BYTES: u64 = 64 << 10;

/// Keeps a state on disk.
pub(super) struct Keeper {
    path: PathBuf,
    state: State,
}

impl Keeper {
    /// Begins a new state file.
    ///
    /// # Errors
    /// Where something has that name, or it cannot be written.
    pub(super) fn create(path: &Path, state: State) -> Result<Self, Failure> {
        refuse_existing(path)?;
        // The directory is opened again and again, whatever the working directory is.
        let path = std::path::absolute(path).map_err(|e| cannot_write_state(path, &e))?;
        whole::create(&path, state.text().as_bytes(), Readers::Umask).map_err(|e| cannot_write_state(&path, &e))?;
        Ok(Self { path, state })
    }

    /// Keeps a new mark: it is stable when this returns.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) fn keep(&mut self, mark: Mark) -> Result<(), String> {
        self.state.mark = mark;
        let was = self.path.metadata().ok();
        whole::replace_as(&self.path, self.state.text().as_bytes(), was.as_ref())
            .map_err(|e| format!("--state {}: {e}; nothing more was written", name::shown(&self.path)))
    }
}

/// Decides before anything is touched whether a state can be kept there.
///
/// # Errors
/// Where something has that name, or no file can be made there.
pub(super) fn decide(path: &Path) -> Result<(), Failure> {
    refuse_existing(path)?;
    Rules { flag: "--state", spared: Spared::default(), replace: Replace::TextAlone }.decide(path).map(|_| ())
}

/// Refuses a name that is taken: it may be the only thing that can still judge an earlier crash.
fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = name::shown(path);
    Err(Failure::Usage(format!(
        "--state {path} is there already; check it with `fathom verify --check {path}`, then remove it, or type another name"
    )))
}

fn cannot_write_state(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("--state {} cannot be written: {error}; nothing else was", name::shown(path)))
}

/// Reads a state file.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(path: &Path) -> Result<State, Failure> {
    let read = input::text(path, MOST_BYTES);
    let usage = |why: String| Failure::Usage(format!("--check {}: {why}", name::shown(path)));
    let text = read.map_err(|e| usage(format!("{e}; name the file that --state wrote")))?;
    State::parse(&text).map_err(|e| usage(format!("{e}; name the file that --state wrote")))
}
