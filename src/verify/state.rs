//! The state file of a verification: what a check after a crash has to know.
//!
//! For: one small file that is whole at every moment and as new as the last sync. Not for: what is in it (`model::verification`).

use crate::failure::Failure;
use model::verification::{Mark, State};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Far above any state: larger files are something else.
const MOST_BYTES: u64 = 64 << 10;

/// Keeps a state on disk.
pub(super) struct Keeper {
    path: PathBuf,
    /// Where the next state is written before it takes the place of the last one.
    beside: PathBuf,
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
        let path = std::path::absolute(path).map_err(|e| refuse(path, &e))?;
        let mut beside = path.clone().into_os_string();
        beside.push(".new");
        let keeper = Self { path, beside: beside.into(), state };
        // What has this name now is somebody's; from here on it is ours.
        File::create_new(&keeper.beside).map_err(|e| refuse(&keeper.beside, &e))?;
        keeper.put().map_err(|e| refuse(&keeper.path, &e))?;
        Ok(keeper)
    }

    /// Keeps a new mark: it is stable when this returns.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) fn keep(&mut self, mark: Mark) -> Result<(), String> {
        self.state.mark = mark;
        self.put().map_err(|e| format!("--state {}: {e}; nothing more was written", self.path.display()))
    }

    /// Beside it first, then in its place: at no moment is there half a state.
    fn put(&self) -> io::Result<()> {
        let mut file = File::create(&self.beside)?;
        file.write_all(self.state.text().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&self.beside, &self.path)?;
        // The new name is stable only with its directory.
        self.path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }
}

/// Refuses a name that is taken: it may be the only thing that can still judge an earlier crash.
pub(super) fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::Usage(format!(
        "--state {path} is there already; check it with `fathom verify --check {path}`, then remove it, or type another name"
    )))
}

fn refuse(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("--state {} cannot be written: {error}; nothing else was", path.display()))
}

/// Reads a state file.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(path: &Path) -> Result<State, Failure> {
    let mut text = String::new();
    let read = File::open(path).and_then(|f| f.take(MOST_BYTES).read_to_string(&mut text));
    let usage = |why: String| Failure::Usage(format!("--check {}: {why}", path.display()));
    read.map_err(|e| usage(format!("{e}; name the file that --state wrote")))?;
    State::parse(&text).map_err(|e| usage(format!("{e}; name the file that --state wrote")))
}
