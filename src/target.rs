//! Targets in hand: what the plan names, prepared and ready to be opened by workers.
//!
//! For: making or opening each target once, with everything that belongs to it. Not for: finding or judging targets.

use crate::failure::Failure;
use engine::source::Pieces;
use machine::root::Root;
use machine::test_file::TestFile;
use machine::{kept_file, safety};
use model::job::Cache;
use model::name;
use model::plan::{Common, MadeFor, Plan, Role, Target};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A target that can be opened.
pub struct Ready {
    target: Target,
    made: Option<TestFile>,
    /// For looking at its pages, evicting and syncing it; `None` where nothing is touched.
    handle: Option<File>,
    bytes: u64,
    notes: Vec<String>,
    /// The only parts of it that are read; `None` where all of it may be.
    pieces: Option<Pieces>,
    /// Whether another program had created the file, empty, before fathom filled it.
    found_empty: bool,
    /// Of a file that fathom made and kept. The last field: dropping it completes the mark, once all else is closed.
    _writing: Option<kept_file::Writing>,
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
        let mut target = plan.targets[index].clone();
        let path = &name::path(&target.path);
        let (mut writing, found_empty) = keep(root, plan.drawn_by(), &mut target, stop, progress)?;
        let streams = plan.jobs.iter().flat_map(|job| &job.phases).flat_map(|phase| &phase.streams);
        let mut its = streams.filter(|stream| stream.targets.contains(&index));
        if let Some(writing) = &mut writing
            && !its.any(|stream| stream.renews_file() || stream.moves_no_data())
        {
            writing.at_most(target.bytes);
        }
        let common = plan.common(index);
        let (made, handle) = match target.role {
            Role::None => (None, None),
            // Another host makes it, and it is opened when all have made theirs.
            Role::Made if common.is_some_and(|c| !plan.is_rank(c.maker)) => (None, None),
            Role::Made => {
                safety::must_be_at(root, path, target.identity.as_ref())?;
                let how = (plan.drawn_by(), Duration::from_nanos(plan.making_ns));
                let made = match common {
                    Some(common) if target.made_for == MadeFor::All => {
                        TestFile::begin_common((path, &common.name), target.bytes)?
                    }
                    Some(common) => {
                        let at = (path.as_path(), common.name.as_str());
                        TestFile::make_common(at, target.bytes, how, stop, progress)?
                    }
                    None => TestFile::make(path, target.bytes, how, stop, progress)?,
                };
                let handle = made.file().try_clone().map_err(|e| refuse(path, &e))?;
                (Some(made), Some(handle))
            }
            // A claim for writing is held by `safety` as long as the process lives: nobody can mount it meanwhile.
            Role::Device => {
                let planned = target.identity.as_ref();
                let file = safety::open_device(root, path, planned, target.writable, Cache::Buffered)?;
                (None, Some(file))
            }
            Role::File => {
                safety::must_be_at(root, path, target.identity.as_ref())?;
                (None, Some(File::open(path).map_err(|e| refuse(path, &e))?))
            }
        };
        let mut notes = made.as_ref().map_or(Vec::new(), |made| made.notes().to_vec());
        if let Some(file) = handle.as_ref().filter(|_| target.role != Role::Made) {
            safety::must_be_open(root, path, file, target.identity.as_ref())?;
            if target.writable {
                notes.extend(safety::users_unseen(root, path, file, target.unseen_users)?);
            }
        }
        notes.extend(
            target
                .other_names
                .iter()
                .map(|name| format!("{name} and {} are the same: it is one target, used once", target.path)),
        );
        let bytes = made.as_ref().map_or(target.bytes, TestFile::bytes);
        Ok(Self { target, made, handle, bytes, notes, pieces: None, found_empty, _writing: writing })
    }

    /// Opens the file that another host has made by now, which is told by name where it is not there. `ended` says whether all is over
    /// before its time.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn find(&mut self, common: &Common, maker: &str, ended: &Arc<AtomicBool>) -> Result<(), Failure> {
        let path = &name::path(&self.target.path);
        let made = TestFile::of_another((path, &common.name), maker, ended)?;
        self.handle = Some(made.file().try_clone().map_err(|e| refuse(path, &e))?);
        self.bytes = made.bytes();
        self.made = Some(made);
        Ok(())
    }

    /// Writes the parts of a file for all hosts that are this one's.
    ///
    /// # Errors
    /// Why they cannot be written.
    pub fn fill_parts(
        &mut self,
        parts: impl Iterator<Item = Range<u64>>,
        how: (u64, u64),
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Failure> {
        let Some(made) = &mut self.made else { return Ok(()) };
        Ok(made.fill_parts(parts, how, stop, progress)?)
    }

    /// Looks at a file for all hosts when all of them have written it.
    pub fn prove(&mut self) {
        if let Some(made) = &mut self.made {
            made.prove_common();
            self.notes.extend(made.notes().iter().cloned());
        }
    }

    /// Alignment of offsets and lengths that it needs as it is opened.
    pub fn align(&self) -> u32 {
        self.target.block_bytes
    }

    /// Bytes that are there to be touched.
    pub fn bytes(&self) -> u64 {
        self.pieces.as_ref().map_or(self.bytes, Pieces::bytes)
    }

    /// From now on only these parts of it are read, as if they were one behind the other.
    pub fn read_at(&mut self, pieces: Pieces) {
        self.pieces = Some(pieces);
    }

    /// The only parts of it that are read.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.pieces.as_ref()
    }

    /// What had to be said while it was made.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// For looking at its pages, evicting and syncing it.
    pub fn handle(&self) -> Option<&File> {
        self.handle.as_ref()
    }

    /// Whether it may still be touched, and written: its name leads to what the plan was made for, and nobody has begun to use what
    /// is about to be written. What nobody could see was said when it was prepared.
    ///
    /// # Errors
    /// Where its name leads to something else, or nowhere; where somebody uses it, or nobody can tell any more.
    pub fn may_be_used(&self, root: &Root, write: bool) -> Result<(), Failure> {
        // What we made is ours as long as it is open, whatever becomes of its name.
        if matches!(self.target.role, Role::Made | Role::None) {
            return Ok(());
        }
        let path = &name::path(&self.target.path);
        safety::must_be_at(root, path, self.target.identity.as_ref())?;
        if let Some(file) = self.handle.as_ref().filter(|_| write) {
            safety::users_since(root, path, file, self.target.unseen_users)?;
        }
        Ok(())
    }

    /// Opens it once more, for a worker.
    ///
    /// # Errors
    /// Why it cannot be opened like this: no direct I/O, no right to write, something else in its place.
    pub fn open(&self, root: &Root, cache: Cache, write: bool) -> Result<File, Failure> {
        let path = &name::path(&self.target.path);
        if write && !self.target.writable {
            return Err(Failure::Refused(format!("{} was planned for reading only", name::shown(path))));
        }
        let planned = self.target.identity.as_ref();
        let refuse = |e| refuse_flags(path, cache, &e);
        if let Some(made) = &self.made {
            return made.reopen(cache, write).map_err(refuse);
        }
        if self.target.role == Role::Device {
            return Ok(safety::open_device(root, path, planned, write, cache)?);
        }
        safety::must_be_at(root, path, planned)?;
        let file = safety::open_file(path, write, cache).map_err(refuse)?;
        safety::must_be_open(root, path, &file, planned)?;
        Ok(file)
    }
}

/// Makes a file that the plan asks for and keeps, and looks at what it is now; marks one of ours that is written. Also returns whether
/// another program had created it, empty.
fn keep(
    root: &Root,
    seed: u64,
    target: &mut Target,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Option<kept_file::Writing>, bool), Failure> {
    let path = &name::path(&target.path);
    let Some(create) = target.create else {
        let may_be_ours = target.role == Role::File && target.writable;
        let writing = may_be_ours.then(|| kept_file::Writing::begin(path)).flatten();
        if target.only_by_mark && writing.is_none() {
            return Err(Failure::Refused(format!(
                "{0}: another program wrote this file just now, so it is no longer fathom's to write; type --destroy {0} to overwrite it",
                name::shown(path)
            )));
        }
        return Ok((writing, false));
    };
    // What is there now is either nothing, or what the plan found.
    let kept = kept_file::make(root, path, create, target.identity.as_ref(), seed, stop, progress)?;
    let made = machine::identity::of_path(path).map_err(|e| refuse(path, &e))?;
    target.identity = Some(machine::identity::marked(root, made));
    Ok((kept.writing, kept.found_empty))
}

impl Drop for Ready {
    fn drop(&mut self) {
        let path = &name::path(&self.target.path);
        let planned = self.target.identity.as_ref();
        let is_it =
            || machine::identity::of_path(path).is_ok_and(|now| planned.is_some_and(|p| p.is_same(&now)));
        if self.target.create.is_some_and(|create| create.unlink) && is_it() {
            // What cannot be removed stays, as a file of ours that the next call may use. A name that somebody else gave stays as they
            // left it, with nothing in it.
            let _ = if self.found_empty {
                File::options().write(true).open(path).and_then(|file| file.set_len(0))
            } else {
                std::fs::remove_file(path)
            };
        }
    }
}

fn refuse(path: &Path, error: &std::io::Error) -> Failure {
    let cure = match error.kind() {
        std::io::ErrorKind::PermissionDenied => format!("; {}", sys::user::of_others()),
        _ => sys::cause(error).to_owned(),
    };
    Failure::Refused(format!("{} cannot be opened: {error}{cure}", name::shown(path)))
}

/// Why a target cannot be opened with the flags of a cache mode.
pub(crate) fn refuse_flags(path: &Path, cache: Cache, error: &std::io::Error) -> Failure {
    if cache.is_direct() && error.kind() == std::io::ErrorKind::InvalidInput {
        return Failure::Refused(format!(
            "{}: its file system refuses direct I/O ({error}); type --cache buffered, which measures the \
             page cache",
            name::shown(path)
        ));
    }
    refuse(path, error)
}

#[test]
fn a_file_that_may_be_written_only_by_its_mark_is_refused_once_the_mark_is_void() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = dir.path().join("data");
    std::fs::write(&path, "of another program").unwrap_or_else(|e| panic!("{e}"));
    let mut target = Target {
        path: name::text(&path),
        role: Role::File,
        bytes: 18,
        block_bytes: 1,
        writable: true,
        identity: None,
        unseen_users: false,
        only_by_mark: true,
        other_names: Vec::new(),
        create: None,
        made_for: MadeFor::Host,
        common: None,
    };
    let prepared = |target: &mut Target| {
        keep(&Root::real(), 0, target, &AtomicBool::new(false), &mut |_, _| ()).map(|_| ())
    };
    assert!(prepared(&mut target).is_err_and(|why| why.message().contains("--destroy")));
    target.only_by_mark = false;
    assert!(prepared(&mut target).is_ok());
}
