//! Targets in hand: what the plan names, prepared and ready to be opened by workers.
//!
//! For: making or opening each target once, with everything that belongs to it. Not for: finding or judging targets.

use crate::failure::Failure;
use machine::root::Root;
use machine::safety;
use machine::test_file::TestFile;
use model::job::Cache;
use model::plan::{Plan, Role, Target};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A target that can be opened.
pub struct Ready {
    target: Target,
    made: Option<TestFile>,
    /// For looking at its pages, evicting and syncing it; `None` where nothing is touched.
    handle: Option<File>,
    bytes: u64,
}

impl Ready {
    /// Makes or opens a target.
    ///
    /// # Errors
    /// Why the file cannot be made or opened.
    pub fn prepare(
        root: &Root,
        plan: &Plan,
        index: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Failure> {
        let target = plan.targets[index].clone();
        let path = Path::new(&target.path);
        let (made, handle) = match target.role {
            Role::None => (None, None),
            Role::Made => {
                let made = TestFile::make(path, target.bytes, plan.seed, stop, progress)?;
                let handle = made.file().try_clone().map_err(|e| refuse(path, &e))?;
                (Some(made), Some(handle))
            }
            // A claim for writing is held by `safety` as long as the process lives: nobody can mount it meanwhile.
            Role::Device => (None, Some(safety::open_device(root, path, target.writable, Cache::Buffered)?)),
            Role::File => (None, Some(File::open(path).map_err(|e| refuse(path, &e))?)),
        };
        let bytes = made.as_ref().map_or(target.bytes, TestFile::bytes);
        Ok(Self { target, made, handle, bytes })
    }

    /// Alignment of offsets and lengths that it needs as it is opened.
    pub fn align(&self) -> u32 {
        self.target.block_bytes
    }

    /// Bytes that are there to be touched.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What had to be said while it was made.
    pub fn notes(&self) -> &[String] {
        self.made.as_ref().map_or(&[], TestFile::notes)
    }

    /// For looking at its pages, evicting and syncing it.
    pub fn handle(&self) -> Option<&File> {
        self.handle.as_ref()
    }

    /// Opens it once more, for a worker.
    ///
    /// # Errors
    /// Why it cannot be opened like this: no direct I/O, no right to write.
    pub fn open(&self, root: &Root, cache: Cache, write: bool) -> Result<File, Failure> {
        let path = Path::new(&self.target.path);
        if write && !self.target.writable {
            return Err(Failure::Refused(format!("{} was planned for reading only", path.display())));
        }
        let opened = match (&self.made, self.target.role) {
            (Some(made), _) => made.reopen(cache, write),
            (None, Role::Device) => return Ok(safety::open_device(root, path, write, cache)?),
            (None, _) => safety::open_file(path, write, cache),
        };
        opened.map_err(|e| refuse_flags(path, cache, &e))
    }
}

fn refuse(path: &Path, error: &std::io::Error) -> Failure {
    let cure = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; name a target of yours, or run as its owner",
        _ => "",
    };
    Failure::Refused(format!("{} cannot be opened: {error}{cure}", path.display()))
}

fn refuse_flags(path: &Path, cache: Cache, error: &std::io::Error) -> Failure {
    if cache.is_direct() && error.kind() == std::io::ErrorKind::InvalidInput {
        return Failure::Refused(format!(
            "{}: its file system refuses direct I/O ({error}); type --cache buffered, and know that this measures the page cache",
            path.display()
        ));
    }
    refuse(path, error)
}
