//! The tables of the index, in every version that there was.
//!
//! For: making the newest out of nothing or an older one, and telling why that cannot be. Not for: what is put in ([`super::index`]).
//!
//! A table `session` has a row per session file: id, size and time of change by which a change is noticed, the time that it
//! began, and the entry as JSON, so that `sqlite3 history.db "select id, entry ->> 'verdict' from session"` answers.

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// What makes each version out of the one before; the first out of nothing. A step whose entries would lack something deletes
/// them, and they are read again.
pub(super) const STEPS: &[&str] = &[
    "
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL,
        changed_ns INTEGER NOT NULL,
        words_changed_ns INTEGER,
        started_ns INTEGER NOT NULL,
        entry TEXT NOT NULL
    ) STRICT;
    CREATE INDEX session_by_time ON session (started_ns, id);
",
    "
    -- The verdict is the worst of what is quoted, and no longer that of the headline.
    DELETE FROM session;
",
    "
    -- Each result has a figure of its own, for tables of sessions.
    DELETE FROM session;
",
    "
    -- Results that hold are capacities of their device, for loads to be compared with.
    DELETE FROM session;
",
    "
    -- In the order in which sessions are listed, so that the newest are found without sorting all.
    DROP INDEX session_by_time;
    CREATE INDEX session_by_time ON session (started_ns, changed_ns, id);
",
    "
    -- All that is compared with the files, so that a long history is brought up to date without reading its entries.
    CREATE INDEX session_by_stamp ON session (id, bytes, changed_ns, words_changed_ns);
",
    "
    -- A capacity has the number of operations that its measurement kept in flight.
    DELETE FROM session;
",
];

/// Why an index is of no use.
#[derive(Debug)]
pub(super) enum Trouble {
    /// A later fathom made it: its version.
    Future(i64),
    /// It cannot be read or written here; another place may do.
    Place(String),
    /// It is no index, or not what it was when it was written.
    Damaged(String),
}

/// Brings a database to the last of the versions that the steps make.
pub(super) fn migrate(db: &mut Connection, steps: &[&str]) -> Result<(), Trouble> {
    let version = |db: &Connection| db.pragma_query_value(None, "user_version", |r| r.get::<_, i64>(0));
    let last = steps.len() as i64;
    let found = version(db)?;
    if found > last {
        return Err(Trouble::Future(found));
    }
    if found == last {
        return Ok(());
    }
    let writing = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another fathom may have gone ahead while this one waited.
    let found = usize::try_from(version(&writing)?).unwrap_or(0);
    for step in steps.iter().skip(found) {
        writing.execute_batch(step)?;
    }
    writing.pragma_update(None, "user_version", last)?;
    Ok(writing.commit()?)
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::OutOfMemory,
            ) => Self::Place(why),
            _ => Self::Damaged(why),
        }
    }
}
