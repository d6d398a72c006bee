//! What devices were measured to be capable of, over all sessions.
//!
//! For: capacities with the session that each is from, the newest first. Not for: which of them are of a device, nor what a load is of
//! them (`analysis::watch`).

use super::files::Files;
use super::filter::Filter;
use super::index;
use crate::failure::Failure;
use model::capacity::Capacity;
use model::watch::MeasuredIn;

/// Sessions that are asked, the newest; older ones say little about a device of today.
const SESSIONS_MAX: u32 = 1000;

/// All of them, as the index knows them.
///
/// # Errors
/// As asking the index.
pub fn capacities() -> Result<Vec<(MeasuredIn, Capacity)>, Failure> {
    let entries = index::with(&Files::scan(), |index| index.entries(&Filter::default(), Some(SESSIONS_MAX)))?;
    let with_session = |entry: model::entry::Entry| {
        let session = MeasuredIn { session: entry.id, started: entry.started };
        entry.capacities.into_iter().map(move |capacity| (session.clone(), capacity))
    };
    Ok(entries.into_iter().flat_map(with_session).collect())
}
