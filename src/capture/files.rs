//! Captures of files: from all requests of a device to those within the extents of some files.
//!
//! For: looking where they lie before and behind a capture, and writing what is theirs. Not for: which requests these are
//! (`capture::within`).
//!
//! Where a file lies is known for sure only when all is over, so the capture is of the whole device until then, and a killed one stays so.

use super::{Outcome, Place, Request, cannot_write};
use crate::failure::Failure;
use crate::output::{Replace, Rules};
use crate::{capture_file, stderr};
use capture::capture_file::Writer;
use capture::file_requests::Within;
use machine::extents;
use machine::extents::FileExtents;
use model::captured::OfFiles;
use model::name;

/// Where the files lie.
///
/// # Errors
/// [`Failure::Usage`] where what was named has no extents that could be told.
pub(super) fn locate_files(request: &Request) -> Result<FileExtents, Failure> {
    let found = extents::locate_file_extents(&request.target).map_err(|why| {
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
pub(super) fn keep(
    begin: &FileExtents,
    request: &Request,
    place: &Place,
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    let end = locate_files(request)?;
    let bytes = end.stretches.iter().map(|(begin, end)| end - begin).sum();
    let of = OfFiles {
        files: end.files,
        stretches: end.stretches.len() as u64,
        bytes,
        unplaced_bytes: end.unplaced_bytes,
        ..OfFiles::default()
    };
    let mut within = Within::new(&begin.stretches, &end.stretches, of);
    // If it fails, the whole capture is still there.
    rewrite(request, place, &mut within, &mut outcome)?;
    Ok(outcome)
}

fn rewrite(
    request: &Request,
    place: &Place,
    within: &mut Within,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    let mut reader = capture_file::open(&request.output)?;
    let cannot = |e: &std::io::Error| cannot_write(&request.output, e);
    // What is replaced is the capture that this call has just written.
    let rules = Rules { replace: Replace::Anything, ..place.rules.clone() };
    let growing = place.outlet.grow(&rules)?;
    let mut writer =
        growing.file().and_then(|to| Writer::new(to, &outcome.origin)).map_err(|e| cannot(&e))?;
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
    writer.finish(&reader.names, &outcome.ending).map_err(|e| cannot(&e))?;
    growing.finish(&rules)
}
