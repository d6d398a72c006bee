//! `fathom list`: which entries of the history are shown, and their printing.
//!
//! For: the flow from what was asked to standard output. Not for: finding entries ([`super::index`]), nor laying them out (crate
//! `report`).

use super::files::Files;
use super::filter::Filter;
use super::index;
use super::table::table_of_latest;
use crate::failure::Failure;
use crate::{session, stderr, stdout};
use model::entry::Listing;
use model::report::Ending;
use model::session_table::{RowsOf, SessionTable};
use report::{Format, Style, TEXT};
use std::process::ExitCode;

/// Entries that a person is shown where no number was said.
const SCREENFUL: u32 = 40;

/// What is to be listed.
#[derive(Debug)]
pub struct Request {
    /// Which entries.
    pub filter: Filter,
    /// How many at most, newest first; 0 for all, `None` for as many as the format bears.
    pub limit: Option<u32>,
    /// Whether the index is made anew before.
    pub rebuild: bool,
    /// As a table of what each came to; `None` for a list.
    pub table: Option<RowsOf>,
    /// How it is printed.
    pub format: &'static Format,
}

/// Lists.
///
/// # Errors
/// [`Failure::Refused`] where the index is from a later fathom.
pub fn list(request: &Request) -> Result<ExitCode, Failure> {
    let files = Files::scan();
    files.problems.iter().for_each(|why| stderr::say(&format!("fathom: {why}")));
    if request.rebuild {
        index::rebuild(&files)?;
    }
    let most = match request.limit {
        Some(0) => None,
        // The newest session of a disk may be an old one.
        None if request.table == Some(RowsOf::Devices) => None,
        None if request.format.name == TEXT.name => Some(SCREENFUL),
        said => said,
    };
    let (mut entries, asked_for) = index::with(&files, |index| {
        Ok((index.entries(&request.filter, most)?, index.count(&request.filter)?))
    })?;
    for entry in &mut entries {
        let Some(found) = files.by_id.get(&entry.id) else { continue };
        entry.path = model::name::text(&found.path);
        entry.running = entry.ending == Some(Ending::Cut) && session::is_running(&found.path);
    }
    if let Some(rows_of) = request.table {
        let beyond = asked_for.saturating_sub(entries.len() as u64);
        let format = report::that_writes::<SessionTable>(request.format).map_err(Failure::Usage)?;
        let is_job_chosen = request.filter.job.is_some();
        let table = SessionTable { is_job_chosen, ..table_of_latest(&entries, rows_of, beyond) };
        stdout::report(format, &table, Style::default())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (sessions, bytes) = (files.by_id.len() as u64, files.bytes());
    stdout::report(request.format, &Listing { entries, asked_for, sessions, bytes }, Style::default())?;
    Ok(ExitCode::SUCCESS)
}
