//! Captures of files: from all requests of a device to those within the extents of some files.
//!
//! For: looking where they lie before and behind a capture, and writing what is theirs. Not for: which requests these are
//! (`capture::within`).
//!
//! Where a file lies is known for sure only when all is over, so the capture is of the whole device until then, and a killed one stays so.

use super::{Outcome, Request, cannot_write};
use crate::failure::Failure;
use crate::{capture_file, stderr};
use capture::file::Writer;
use capture::within::Within;
use machine::file_extents::{self, FileExtents};
use model::captured::OfFiles;
use model::name;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where the files lie.
///
/// # Errors
/// [`Failure::Usage`] where what was named has no extents that could be told.
pub(super) fn look(request: &Request) -> Result<FileExtents, Failure> {
    let found = file_extents::look(&request.target).map_err(|why| {
        Failure::Usage(format!(
            "--extents: where {} lies cannot be told: {why}; leave --extents out to capture its device",
            name::shown(&request.target)
        ))
    })?;
    if found.files == 0 {
        stderr::say(&format!(
            "{} has no file yet; those that are there at the end count",
            name::shown(&request.target)
        ));
    }
    Ok(found)
}

/// Leaves in the file what is of those that lay so when it began.
pub(super) fn keep(begin: &FileExtents, request: &Request, mut outcome: Outcome) -> Result<Outcome, Failure> {
    let end = look(request)?;
    let bytes = end.stretches.iter().map(|(begin, end)| end - begin).sum();
    let of = OfFiles {
        files: end.files,
        stretches: end.stretches.len() as u64,
        bytes,
        unplaced_bytes: end.unplaced_bytes,
        ..OfFiles::default()
    };
    let mut within = Within::new(&begin.stretches, &end.stretches, of);
    let beside = beside(&request.output);
    let written = rewrite(request, &beside, &mut within, &mut outcome);
    if written.is_err() {
        // Whatever it holds is nothing to be read; the whole capture is still there.
        let _ = std::fs::remove_file(&beside);
    }
    written.map(|()| outcome)
}

fn rewrite(
    request: &Request,
    beside: &Path,
    within: &mut Within,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let mut reader = capture_file::open(&request.output)?;
    let cannot = |e: &std::io::Error| cannot_write(beside, e);
    let mut writer =
        File::create(beside).and_then(|to| Writer::new(to, &outcome.origin)).map_err(|e| cannot(&e))?;
    while reader.block().is_some() {
        let (rows, names) = reader.last();
        for row in rows {
            if within.keeps(row) {
                writer.push(row, names).map_err(|e| cannot(&e))?;
            }
        }
        // Names that later blocks add are not those of rows that wait.
        writer.flush(names).map_err(|e| cannot(&e))?;
    }
    if let Some(damage) = &reader.damage {
        return Err(Failure::Refused(format!(
            "{} cannot be read again: it is {damage}",
            name::shown(&request.output)
        )));
    }
    outcome.ending.of_files = Some(within.seen);
    outcome.ending.rows = writer.rows();
    let written = writer.finish(&reader.names, &outcome.ending).and_then(|file| file.sync_all());
    written.and_then(|()| std::fs::rename(beside, &request.output)).map_err(|e| cannot(&e))
}

/// A file beside another one.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    file.with_file_name(name)
}
