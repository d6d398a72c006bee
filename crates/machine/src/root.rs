//! The place that `/proc` and `/sys` are read below.
//!
//! For: reading kernel files from the real machine or from a recorded tree. Not for: parsing them.

use model::Known;
use std::io;
use std::path::{Path, PathBuf};

/// A prefix for kernel files: `/`, or a recorded tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine itself.
    pub fn real() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A recorded tree.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where a kernel file with this absolute path is.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path.as_ref().strip_prefix("/").unwrap_or(path.as_ref()))
    }

    /// The text of a file, word for word.
    ///
    /// # Errors
    /// The reason in words.
    pub fn read(&self, path: impl AsRef<Path>) -> Known<String> {
        std::fs::read(self.path(path))
            .map(|b| String::from_utf8_lossy(&b).into_owned())
            .map_err(|e| reason(&e))
    }

    /// The text of a file without white space around it, where it can be read and says anything.
    pub fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
    }

    /// Names in a directory, sorted; none where it cannot be read.
    pub fn list(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Whether there is such a file.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The last name of a symbolic link's target.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        target.file_name().map(|n| n.to_string_lossy().into_owned())
    }

    /// A path with all links followed, as it is on this machine.
    pub fn canonical(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.path(path).canonicalize().ok()
    }
}

/// An I/O error as the shortest reason that a person needs.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
