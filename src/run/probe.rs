//! Probes before anything is prepared: whether each target can be opened as its streams open it, and whether their engines
//! can be set up on it.
//!
//! 1. A directory lends an empty file without a name. A file or a device of the user's is opened for reading.
//! 2. It is opened with each cache mode, since file systems may refuse O_DIRECT.
//! 3. Asynchronous engines are set up on it with their options and depth; on the lent file engines with options too.
//! 4. Engines that allocate blocks try `fallocate` on the lent file.
//!
//! Interfaces and cells of a sweep are tried one by one later, since a refusal leaves only that one out.

use crate::failure::Failure;
use crate::target::refuse_flags;
use engine::engines::{self, Entry};
use machine::root::Root;
use machine::safety;
use machine::test_file::TestFile;
use model::job::{Cache, FALLOCATE, Stream};
use model::name;
use model::plan::{Plan, Role, Target};
use model::study::Study;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::path::Path;
use sys::open_file::OpenFile;

/// Bytes of an operation that sets an engine up; more where direct I/O needs that.
const BYTES: u32 = 4096;

/// Refuses a plan whose targets or engines this machine does not allow.
///
/// # Errors
/// [`Failure::Refused`] with what is denied and what to type instead.
pub(super) fn probe(root: &Root, plan: &Plan) -> Result<(), Failure> {
    if matches!(plan.study, Study::Interfaces(_) | Study::Sweep(_)) {
        return Ok(());
    }
    for (index, target) in plan.targets.iter().enumerate().filter(|(_, t)| t.role != Role::None) {
        let mut streams: Vec<&Stream> = Vec::new();
        for stream in plan.jobs.iter().flat_map(|j| &j.phases).flat_map(|p| &p.streams) {
            let is_probed = |s: &&Stream| {
                (&s.engine, &s.options, s.cache, s.depth)
                    == (&stream.engine, &stream.options, stream.cache, stream.depth)
            };
            if stream.targets.contains(&index) && !streams.iter().any(is_probed) {
                streams.push(stream);
            }
        }
        probe_target(root, target, &streams)?;
    }
    Ok(())
}

fn probe_target(root: &Root, target: &Target, streams: &[&Stream]) -> Result<(), Failure> {
    let path = name::path(&target.path);
    let bytes = BYTES.max(target.block_bytes);
    let lent = match (target.role, target.create) {
        (Role::Made, _) => Some(TestFile::lend(&path, bytes.into())?),
        // What cannot be made there is refused when it is made.
        (_, Some(_)) => match path.parent().map(|parent| TestFile::lend(parent, bytes.into())) {
            Some(Ok(lent)) => Some(lent),
            _ => return Ok(()),
        },
        _ => None,
    };
    for stream in streams {
        let Some(entry) = engines::find(&stream.engine).filter(|entry| entry.touches_targets()) else {
            continue;
        };
        let file = open(root, (target, &path), lent.as_ref(), stream.cache)?;
        if let Some(lent) = &lent
            && (entry.name == FALLOCATE || stream.options.contains_key(FALLOCATE))
        {
            fallocate(lent.file(), FallocateFlags::empty(), 0, bytes.into()).map_err(|e| {
                Failure::Refused(format!(
                    "{}: its file system cannot allocate blocks ({}); use another --engine, or leave the option {FALLOCATE} out",
                    name::shown(&path),
                    std::io::Error::from(e)
                ))
            })?;
        }
        if !is_set_up(entry, stream, lent.is_some()) {
            continue;
        }
        let file = OpenFile::new(file, lent.is_some());
        engine::engines::probe(entry, &stream.options, (file, stream.cache), (stream.depth, bytes))
            .map_err(|why| Failure::Refused(why.sentence))?;
    }
    Ok(())
}

/// Whether setting an engine up shows something, and changes nothing of the user's.
fn is_set_up(entry: &Entry, stream: &Stream, is_lent: bool) -> bool {
    !entry.library_threads && (!entry.in_the_call || (is_lent && !stream.options.is_empty()))
}

/// Opens a target as a worker would: the user's for reading, and a lent file also for writing, which options such as `new` need.
fn open(
    root: &Root,
    (target, path): (&Target, &Path),
    lent: Option<&TestFile>,
    cache: Cache,
) -> Result<File, Failure> {
    let opened = match (lent, target.role) {
        (Some(lent), _) => lent.reopen(cache, true),
        (None, Role::Device) => {
            return Ok(safety::open_device(root, path, target.identity.as_ref(), false, cache)?);
        }
        (None, _) => safety::open_file(path, false, cache),
    };
    opened.map_err(|e| refuse_flags(path, cache, &e))
}
