//! Who may be written, asked of `machine::safety` with each name that the user said may be overwritten.
//!
//! For: plain tools, whose command lines name a device or a file with `--destroy=NAME` or `FATHOM_DESTROY`. Not for: the rules themselves.

use crate::allowed;
use machine::error::MachineError;
use machine::kept_mark;
use machine::root::Root;
use machine::safety;
use model::name;
use std::path::{Path, PathBuf};

/// What may be overwritten.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// By this command line: one of them has to be what is written.
    pub here: Vec<String>,
    /// For any call.
    pub always: Vec<PathBuf>,
}

impl Allowed {
    /// Whether a regular file may be written: empty, fathom's own, or named. `real` is the path without links.
    pub(super) fn file(&self, root: &Root, said: &Path, real: &Path) -> Result<(), String> {
        let own = kept_mark::is_ours(real).then(|| name::text(real));
        let unseen = is_unseen(real);
        self.ask(own, |destroy| safety::may_write_file(root, said, real, destroy, unseen))
    }

    /// Whether a block device may be written: only where it is named, and nobody uses it.
    pub(super) fn device(&self, root: &Root, path: &Path) -> Result<(), String> {
        let unseen = is_unseen(path);
        self.ask(None, |destroy| safety::may_write_device(root, path, destroy, unseen))
    }

    /// Whether it is named so.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.here.iter().any(|n| name::path(n) == path) || self.always.iter().any(|n| n == path)
    }

    fn ask(
        &self,
        own: Option<String>,
        ask: impl Fn(Option<&str>) -> Result<(), MachineError>,
    ) -> Result<(), String> {
        let always = self.always.iter().map(name::text);
        let mut refusal = None;
        for name in self.here.iter().cloned().chain(always).chain(own) {
            match ask(Some(&name)) {
                Ok(()) => return Ok(()),
                Err(e) => refusal = refusal.or(Some(e)),
            }
        }
        // What is set for many calls may name others.
        let refusal = refusal.filter(|_| !self.here.is_empty());
        refusal.map_or_else(|| ask(None), Err).map_err(|e| in_words(&e))
    }
}

/// Whether `FATHOM_UNSEEN_USERS` names a path.
fn is_unseen(path: &Path) -> bool {
    allowed::unseen_users().iter().any(|named| safety::is_same(named, path))
}

/// A message of fathom's own, with the form that these command lines have.
pub(super) fn in_words(error: &MachineError) -> String {
    format!("fathom: {}", error.to_string().replace("--destroy '", "'--destroy="))
}
