//! Sessions that somebody named, side by side: each judged now, in the order in which they were named.
//!
//! For: `fathom show` of several. Not for: choosing sessions ([`super::list`]), nor comparing them ([`crate::compare`]).

use super::entry::of_report;
use super::id;
use super::table::of_named;
use crate::failure::Failure;
use crate::session;
use model::history::SessionTable;
use model::record::Record;
use model::report::Report;
use std::path::{Path, PathBuf};

/// Reads and judges each, and puts what they came to into one table.
///
/// # Errors
/// [`Failure::Usage`] where one cannot be read.
pub fn together(
    files: &[PathBuf],
    mut judge: impl FnMut(&Path, &Record) -> Report,
) -> Result<SessionTable, Failure> {
    let (mut entries, mut reports) = (Vec::new(), Vec::new());
    for file in files {
        let record = session::read(file)?;
        let report = judge(file, &record);
        entries.push(of_report(id(file), &record, &report));
        reports.push(report);
    }
    Ok(SessionTable { reports, ..of_named(&entries) })
}
