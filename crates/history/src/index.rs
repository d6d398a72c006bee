//! The index of the history: an SQLite database with one row per session file.
//!
//! 1. Opening creates the tables, or empties those of an older version. A damaged database is moved
//!    aside and rebuilt. A database of a newer fathom is refused.
//! 2. Refreshing compares the rows with the files: removed sessions are forgotten, and new or changed ones are read and judged.
//! 3. A query selects entries by a [`Filter`], newest first.
//!
//! The entry is stored as JSON, so that `sqlite3 history.db "select id, entry ->> 'verdict' from session"` works.

use crate::session;
use crate::{Files, SessionFile, Stamp, annotations};
use analysis::Judging;
use model::finding::Outcome;
use model::history::{Device, Entry, Figure, FindingMark};
use model::job::Job;
use model::machine::{Machine, Place};
use model::record::{Header, Record, Unreadable};
use model::report::{Ending, Measured, QuotedRate, Report, Verdict};
use model::watch::{MeasuredBefore, MeasuredIn};
use output::failure::Failure;
use output::session_directories::session_directories;
use output::stderr;
use rusqlite::{Connection, ErrorCode, ToSql, TransactionBehavior, params};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the database, one directory above the sessions.
const NAME: &str = "history.db";
/// How long to wait while another fathom locks the index.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of sessions that are read before their entries are written. A kill loses at most one batch.
const BATCH_SESSIONS: usize = 200;
/// With at least this many new sessions, fathom reports that it reads them. With at least this many sessions, it reports that no index can
/// be used.
const MANY_SESSIONS: usize = 200;

/// Sorts the newest sessions first. If two began in the same second, the file that changed last counts as
/// newer, because the process ids in the session ids have no order.
const NEWEST_FIRST: &str = "ORDER BY started_ns DESC, changed_ns DESC, id DESC";

/// An open index.
#[derive(Debug)]
pub(super) struct Index {
    db: Connection,
}

/// Queries the index after refreshing it. Uses the first path of [`index_paths`] that is writable, otherwise an index in memory.
///
/// # Errors
/// [`Failure::Refused`] if a newer fathom made the index, or if no index can be made.
pub(super) fn query<T>(
    files: &Files,
    read_index: impl Fn(&mut Index) -> rusqlite::Result<T>,
) -> Result<T, Failure> {
    let mut refused = None;
    for path in index_paths() {
        match query_index(&path, files, &read_index) {
            Ok(answer) => return Ok(answer),
            Err(IndexError::Newer(version)) => return Err(newer_index_failure(&path, version)),
            Err(IndexError::Unusable(why)) => refused = Some(format!("{}: {why}", path.display())),
            Err(IndexError::Damaged(why)) => {
                let Ok(aside) = move_aside(&path, "damaged") else { continue };
                stderr::print(&format!(
                    "fathom: the index {} is damaged ({why}); fathom rebuilds it from the session files and keeps the damaged one as {}",
                    path.display(),
                    aside.display()
                ));
                if let Ok(answer) = query_index(&path, files, &read_index) {
                    return Ok(answer);
                }
            }
        }
    }
    if let Some(why) = refused.filter(|_| files.by_id.len() >= MANY_SESSIONS && !files.is_quiet) {
        stderr::print(&format!(
            "fathom: the index cannot be used ({why}), so fathom reads every session each time"
        ));
    }
    query_index(Path::new(":memory:"), files, &read_index).map_err(|trouble| match trouble {
        IndexError::Newer(_) => Failure::Refused("the index in memory has a newer version".into()),
        IndexError::Unusable(why) | IndexError::Damaged(why) => {
            Failure::Refused(format!("the index of the history cannot be made: {why}"))
        }
    })
}

/// Rebuilds the index: reads and judges every session again. Moves the index of a newer fathom aside.
///
/// # Errors
/// As [`query`].
pub(super) fn rebuild(files: &Files) -> Result<(), Failure> {
    for path in index_paths().filter(|p| p.exists()) {
        if let Err(IndexError::Newer(version)) = Index::open(&path) {
            let aside = move_aside(&path, &format!("version-{version}"))
                .map_err(|e| Failure::Refused(format!("{} cannot be moved aside: {e}", path.display())))?;
            stderr::print(&format!("fathom: moved the index of a newer fathom to {}", aside.display()));
        }
    }
    query(&Files::default(), |_| Ok(()))?;
    query(files, |_| Ok(()))
}

/// Returns the paths where the index may be: one directory above each directory of sessions.
fn index_paths() -> impl Iterator<Item = PathBuf> {
    let dirs = session_directories().into_iter().filter(|d| d.is_dir());
    dirs.filter_map(|d| Some(d.parent()?.join(NAME)))
}

fn query_index<T>(
    path: &Path,
    files: &Files,
    read_index: impl Fn(&mut Index) -> rusqlite::Result<T>,
) -> Result<T, IndexError> {
    let mut index = Index::open(path)?;
    index.refresh(files, read_entry)?;
    Ok(read_index(&mut index)?)
}

fn newer_index_failure(path: &Path, version: i64) -> Failure {
    Failure::Refused(format!(
        "a newer fathom made {} (index version {version}, but this fathom reads versions up to {}); \
         use that fathom, or type `fathom list --rebuild`, which moves the index aside and makes one from the session files",
        path.display(),
        VERSION
    ))
}

/// Moves a database and its journal files aside: appends `why` to their names. Replaces files that already have these names.
fn move_aside(path: &Path, why: &str) -> std::io::Result<PathBuf> {
    let named = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = named(path, &format!(".{why}"));
    std::fs::rename(path, &aside)?;
    for part in ["-wal", "-shm"] {
        // Move stale files too: the next index would take them for its own. A clean exit leaves none.
        let _ = std::fs::rename(named(path, part), named(&aside, part));
    }
    Ok(aside)
}

/// Repeats an attempt that SQLite refuses because another fathom locks the index. This happens when two processes open a
/// new index: both change its journal mode.
fn retry_while_busy<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

impl Index {
    fn open(path: &Path) -> Result<Self, IndexError> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        // Some file systems have no shared memory and refuse this mode. The journal is then slower but equally safe.
        retry_while_busy(|| db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())))?;
        // A power loss may lose the last entries, but fathom reads these sessions again.
        db.pragma_update(None, "synchronous", "normal")?;
        create_tables(&mut db)?;
        Ok(Self { db })
    }

    /// Reads new and changed sessions, and removes entries without a file.
    fn refresh(
        &mut self,
        files: &Files,
        mut read: impl FnMut(&SessionFile) -> Entry,
    ) -> rusqlite::Result<()> {
        let (gone, new) = self.differences(files)?;
        self.forget(&gone)?;
        if new.len() >= MANY_SESSIONS && !files.is_quiet {
            stderr::print(&format!("fathom: reading {} sessions that are not in the index yet", new.len()));
        }
        for batch in new.chunks(BATCH_SESSIONS) {
            // Sessions are read outside of the transaction, so that no other process waits for the database.
            let entries: Vec<(&SessionFile, Entry)> = batch.iter().map(|f| (*f, read(f))).collect();
            self.insert(&entries)?;
        }
        Ok(())
    }

    /// Compares the index with the files. Returns ids without a file, and files that are new or changed. Index and
    /// files are sorted by id, so one pass is enough.
    fn differences<'f>(&self, files: &'f Files) -> rusqlite::Result<(Vec<String>, Vec<&'f SessionFile>)> {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let mut found = files.by_id.values().peekable();
        let mut select =
            self.db.prepare("SELECT id, bytes, changed_ns, words_changed_ns FROM session ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_str()?;
            let stamp =
                Stamp { bytes: row.get(1)?, changed_ns: row.get(2)?, annotations_changed_ns: row.get(3)? };
            while let Some(file) = found.next_if(|file| file.id.as_str() < id) {
                new.push(file);
            }
            match found.next_if(|file| file.id == id) {
                Some(file) if file.stamp != stamp => new.push(file),
                Some(_) => {}
                None => gone.push(id.to_owned()),
            }
        }
        new.extend(found);
        Ok((gone, new))
    }

    fn forget(&mut self, ids: &[String]) -> rusqlite::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut delete = writing.prepare("DELETE FROM session WHERE id = ?1")?;
            for id in ids {
                delete.execute([id])?;
            }
        }
        writing.commit()
    }

    fn insert(&mut self, entries: &[(&SessionFile, Entry)]) -> rusqlite::Result<()> {
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert =
                writing.prepare("INSERT OR REPLACE INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            for (found, entry) in entries {
                let Stamp { bytes, changed_ns, annotations_changed_ns } = found.stamp;
                let json = serde_json::to_string(entry)
                    .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
                let began = started_ns(entry, &found.stamp);
                insert.execute(params![found.id, bytes, changed_ns, annotations_changed_ns, began, json])?;
            }
        }
        writing.commit()
    }

    /// Returns the ids of matching entries, newest first.
    pub(super) fn ids(&self, filter: &Filter) -> rusqlite::Result<Vec<String>> {
        self.select("id", filter, None, |r| r.get(0))
    }

    /// Returns the matching entries, newest first; at most `most` if it is given.
    pub(super) fn entries(&self, filter: &Filter, most: Option<u32>) -> rusqlite::Result<Vec<Entry>> {
        self.select("entry", filter, most, |r| {
            let json: String = r.get(0)?;
            serde_json::from_str(&json).map_err(|e| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, e.into())
            })
        })
    }

    /// Counts the matching entries.
    pub(super) fn count(&self, filter: &Filter) -> rusqlite::Result<u64> {
        if *filter == Filter::default() {
            // Without a condition SQLite counts from an index and reads no entry.
            let all = self.db.query_row("SELECT count(*) FROM session", [], |row| row.get::<_, i64>(0))?;
            return Ok(all.unsigned_abs());
        }
        let counted: Vec<i64> = self.select("count(*)", filter, None, |r| r.get(0))?;
        Ok(counted.iter().sum::<i64>().unsigned_abs())
    }

    fn select<T>(
        &self,
        what: &str,
        filter: &Filter,
        most: Option<u32>,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let most = most.map_or(-1, i64::from);
        let sql = format!("SELECT {what} FROM session WHERE {MATCHES} {NEWEST_FIRST} LIMIT {most}");
        let verdict = filter.verdict_word();
        self.db.prepare(&sql)?.query_map(&filter.parameters(&verdict)[..], read)?.collect()
    }
}

/// Version of the tables. An index of an earlier version is emptied, and the next refresh reads all sessions again.
const VERSION: i64 = 11;
const TABLES: &str = "
    DROP TABLE IF EXISTS session;
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        bytes INTEGER NOT NULL,
        changed_ns INTEGER NOT NULL,
        words_changed_ns INTEGER,
        started_ns INTEGER NOT NULL,
        entry TEXT NOT NULL
    ) STRICT;
    -- The order of the list: the newest sessions are found without sorting all.
    CREATE INDEX session_by_time ON session (started_ns, changed_ns, id);
    -- Everything that is compared with the files: a long history is refreshed without reading its entries.
    CREATE INDEX session_by_stamp ON session (id, bytes, changed_ns, words_changed_ns);
";

/// Why an index cannot be used.
#[derive(Debug)]
pub(super) enum IndexError {
    /// A newer fathom made the index, with this version.
    Newer(i64),
    /// The index cannot be read or written in this directory. Another directory may work.
    Unusable(String),
    /// The file is not a database, or is damaged.
    Damaged(String),
}

/// Creates the tables of this version, unless the database has them.
fn create_tables(db: &mut Connection) -> Result<(), IndexError> {
    let version = |db: &Connection| db.pragma_query_value(None, "user_version", |r| r.get::<_, i64>(0));
    let found = version(db)?;
    if found > VERSION {
        return Err(IndexError::Newer(found));
    }
    if found == VERSION {
        return Ok(());
    }
    let writing = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another fathom may have created the tables while this one waited.
    if version(&writing)? < VERSION {
        writing.execute_batch(TABLES)?;
        writing.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(writing.commit()?)
}

impl From<rusqlite::Error> for IndexError {
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
            ) => Self::Unusable(why),
            _ => Self::Damaged(why),
        }
    }
}

/// The SQL condition of a filter.
pub(super) const MATCHES: &str = "
    (:target IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.targets') WHERE instr(value, :target) > 0))
    AND (:device IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.devices') WHERE
        instr(value ->> 'name', :device) > 0 OR instr(coalesce(value ->> 'model', ''), :device) > 0
        OR instr(coalesce(value ->> 'serial', ''), :device) > 0))
    AND (:job IS NULL OR instr(coalesce(entry ->> 'title', ''), :job) > 0
        OR EXISTS (SELECT 1 FROM json_each(entry, '$.jobs') WHERE instr(value, :job) > 0))
    AND (:verdict IS NULL OR entry ->> 'verdict' = :verdict)
    AND (:tag IS NULL OR EXISTS (SELECT 1 FROM json_each(entry, '$.words.tags') WHERE value = :tag))
    AND (:since IS NULL OR started_ns >= :since)
    AND (:until IS NULL OR started_ns < :until)
";

/// Selects entries. A field that is `None` matches all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Part of the path of a target.
    pub target: Option<String>,
    /// Part of the name, model or serial number of a device below a target.
    pub device: Option<String>,
    /// Part of the title or of a job name.
    pub job: Option<String>,
    /// The verdict of the report.
    pub verdict: Option<Verdict>,
    /// A tag of the session, spelled exactly.
    pub tag: Option<String>,
    /// Matches sessions that began at this time or later, in ns since 1970.
    pub since: Option<i64>,
    /// Matches sessions that began before this time, in ns since 1970.
    pub until: Option<i64>,
}

impl Filter {
    /// Returns the verdict as entries store it.
    pub(super) fn verdict_word(&self) -> Option<String> {
        let word = self.verdict.and_then(|v| serde_json::to_value(v).ok());
        word.and_then(|w| w.as_str().map(str::to_owned))
    }

    /// Returns the parameters of [`MATCHES`]. `verdict` is from [`Self::verdict_word`].
    pub(super) fn parameters<'a>(&'a self, verdict: &'a dyn ToSql) -> [(&'static str, &'a dyn ToSql); 7] {
        [
            (":target", &self.target),
            (":device", &self.device),
            (":job", &self.job),
            (":verdict", verdict),
            (":tag", &self.tag),
            (":since", &self.since),
            (":until", &self.until),
        ]
    }
}

/// Returns a hash, as 16 hexadecimal digits, of the machine (host, kernel, CPU), the stack below
/// each target (file system with its options, devices with their queues), the jobs and `--cold`.
/// Sessions with the same fingerprint may be compared. Paths, start times, job names, seeds and the
/// number of runs do not change the hash.
pub(super) fn fingerprint(header: &Header) -> String {
    let machines: Vec<Value> = header.hosts.iter().map(machine).collect();
    // Job names do not change the work.
    let jobs: Vec<_> = header.plan.jobs.iter().map(|Job { phases, .. }| phases).collect();
    let whole = json!({ "hosts": machines, "jobs": jobs, "cold": header.plan.cold });
    format!("{:016x}", fnv1a(whole.to_string().as_bytes()))
}

fn machine(m: &Machine) -> Value {
    let places: Vec<Value> = m.places.iter().map(place).collect();
    json!({ "host": m.host, "kernel": m.kernel, "cpu": m.cpu, "cpus": m.cpus, "places": places })
}

fn place(p: &Place) -> Value {
    let file_system = p.file_system.as_ref().map(|f| json!([f.kind, f.source, f.options, f.attributes]));
    let layers: Vec<Value> =
        p.layers.iter().map(|l| json!([l.name, l.driver, l.model, l.serial, l.queue])).collect();
    json!({ "file_system": file_system, "layers": layers, "ram": p.ram })
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923): the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads and judges a session. For an unreadable session the entry contains the problem.
pub(super) fn read_entry(found: &SessionFile) -> Entry {
    let mut entry = Entry {
        id: found.id.clone(),
        bytes: found.stamp.bytes.unsigned_abs(),
        judged_by: env!("CARGO_PKG_VERSION").into(),
        ..Entry::default()
    };
    match session::load(&found.path) {
        Ok(record) => {
            let judging = Judging { version: entry.judged_by.clone(), ..Judging::default() };
            fill_entry(&mut entry, &record, &analysis::judge(&record, &judging));
        }
        Err(why) => {
            entry.ending = matches!(why, Unreadable::Headless).then_some(Ending::Cut);
            entry.problem = Some(why.to_string());
        }
    }
    match annotations::read(&found.path) {
        Ok(annotations) => entry.annotations = annotations,
        Err(why) => entry.problem = Some(why),
    }
    entry
}

/// Returns the entry of a report. If the report's table does not list its results, as for a sweep,
/// the only figure of the entry is the headline.
pub(super) fn entry_of_report(id: String, record: &Record, report: &Report) -> Entry {
    let mut entry = Entry { id, annotations: report.annotations.clone(), ..Entry::default() };
    fill_entry(&mut entry, record, report);
    if entry.figures.is_empty() {
        let headline = &report.headline;
        entry.figures = vec![Figure {
            name: report.title.clone(),
            unit: headline.unit.clone(),
            value: headline.value,
            interval: headline.interval,
            verdict: report.verdict,
            mb_per_s: None,
        }];
    }
    entry
}

fn fill_entry(entry: &mut Entry, record: &Record, report: &Report) {
    let (header, plan) = (&record.header, &record.header.plan);
    entry.capacities = analysis::watch::head_room::capacities(plan, report);
    entry.started = Some(report.started.clone());
    entry.title = Some(report.title.clone());
    entry.verdict = Some(report.verdict);
    entry.headline = Some(report.headline.clone());
    entry.ending = Some(report.ending.clone());
    entry.targets = plan.targets.iter().map(|t| t.path.clone()).collect();
    entry.devices = devices(record);
    entry.jobs = plan.jobs.iter().map(|j| j.name.clone()).collect();
    // The table of a grid or of a load curve does not list the results.
    if report.study.shows_results() {
        entry.figures = report.results.iter().map(result_figure).collect();
    }
    entry.settings =
        report.study.sweep().map(|sweep| sweep.settings(|at| report.invalidated_by(at))).unwrap_or_default();
    entry.runs = report.results.iter().map(|r| r.runs.len() as u64).sum();
    entry.hosts.clone_from(&report.hosts);
    entry.fingerprint = Some(fingerprint(header));
    let found = report.checks.iter().filter(|f| f.outcome == Outcome::Finding);
    entry.findings = found.map(|f| FindingMark { id: f.id, severity: f.severity }).collect();
    entry.findings.sort();
    entry.findings.dedup();
    entry.version = Some(header.version.clone());
}

fn result_figure(result: &Measured) -> Figure {
    let QuotedRate { unit, value, interval } = result.quoted_rate();
    let mb_per_s = value.and(result.total.as_ref()).map(|total| total.mb_per_s).filter(|rate| *rate > 0.0);
    Figure {
        name: result.name.clone(),
        unit: unit.into(),
        value,
        interval,
        verdict: result.verdict,
        mb_per_s,
    }
}

/// Returns the start in ns since 1970, from the session or, if unknown there, from the last change of its file.
pub(super) fn started_ns(entry: &Entry, stamp: &Stamp) -> i64 {
    let started = entry.started.as_ref().and_then(|s| s.parse::<jiff::Timestamp>().ok());
    let ns = started.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
    ns.unwrap_or(stamp.changed_ns)
}

/// Returns the devices below any of the targets, without duplicates.
fn devices(record: &Record) -> Vec<Device> {
    let mut all: Vec<Device> = Vec::new();
    for layer in record.header.hosts.iter().flat_map(|h| &h.places).flat_map(|p| &p.layers) {
        let device = Device {
            name: layer.name.clone(),
            model: layer.model.clone(),
            serial: layer.serial.clone(),
            bytes: layer.bytes,
        };
        if !all.contains(&device) {
            all.push(device);
        }
    }
    all
}

/// Maximum number of sessions to search for capacities. Older sessions do not describe the device
/// as it is today.
const SESSIONS_MAX: u32 = 1000;

/// Returns the capacities that the newest `SESSIONS_MAX` sessions measured, and those of these sessions that measured none.
///
/// # Errors
/// [`Failure::Refused`] if a newer fathom made the index, or if no index can be made.
pub fn capacities() -> Result<MeasuredBefore, Failure> {
    let entries = query(&Files::scan(), |index| index.entries(&Filter::default(), Some(SESSIONS_MAX)))?;
    let mut measured = MeasuredBefore::default();
    for entry in entries {
        if entry.capacities.is_empty() {
            measured.without_capacity.push(entry);
        } else {
            let session = MeasuredIn { session: entry.id, started: entry.started };
            measured.capacities.extend(entry.capacities.into_iter().map(|one| (session.clone(), one)));
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::history::{Device, FindingMark};
    use model::report::{Annotations, Verdict};

    type Tried = Result<(), Box<dyn std::error::Error>>;

    /// A session that began `second` seconds after 1970, with its entry.
    fn session(second: i64) -> (SessionFile, Entry) {
        let id = format!("{second:05}");
        let stamp = Stamp { bytes: 100, changed_ns: second, annotations_changed_ns: None };
        let found =
            SessionFile { path: PathBuf::from(format!("/nowhere/{id}.fathom")), id: id.clone(), stamp };
        let entry = Entry {
            id,
            started: jiff::Timestamp::from_second(second).ok().map(|t| t.to_string()),
            targets: vec![format!("/data/{second}")],
            ..Entry::default()
        };
        (found, entry)
    }

    fn files(seconds: impl IntoIterator<Item = i64>) -> Files {
        let found = seconds.into_iter().map(|s| session(s).0).map(|f| (f.id.clone(), f));
        Files { by_id: found.collect(), ..Files::default() }
    }

    fn entry_of(found: &SessionFile) -> Entry {
        session(found.id.parse().unwrap_or(-1)).1
    }

    fn in_memory() -> Result<Index, String> {
        Index::open(Path::new(":memory:")).map_err(|e| format!("{e:?}"))
    }

    /// Refreshes the index, and returns how many session files were opened.
    fn opened(index: &mut Index, files: &Files) -> rusqlite::Result<usize> {
        let mut count = 0;
        index.refresh(files, |found| {
            count += 1;
            entry_of(found)
        })?;
        Ok(count)
    }

    #[test]
    fn unchanged_sessions_are_not_opened_again() -> Tried {
        let mut index = in_memory()?;
        let mut files = files(0..10_000);
        assert_eq!(opened(&mut index, &files)?, 10_000);
        assert_eq!(opened(&mut index, &files)?, 0);
        assert_eq!(index.count(&Filter::default())?, 10_000);
        assert_eq!(index.entries(&Filter::default(), Some(40))?.len(), 40);

        files.by_id.remove("00003");
        for (id, stamp) in [
            ("00007", Stamp { bytes: 101, changed_ns: 7, annotations_changed_ns: None }),
            ("00008", Stamp { bytes: 100, changed_ns: 9, annotations_changed_ns: None }),
            ("00009", Stamp { bytes: 100, changed_ns: 9, annotations_changed_ns: Some(1) }),
        ] {
            files.by_id.get_mut(id).ok_or("gone")?.stamp = stamp;
        }
        assert_eq!(opened(&mut index, &files)?, 3);
        assert_eq!(opened(&mut index, &files)?, 0);
        assert_eq!(index.count(&Filter::default())?, 9_999);
        assert_eq!(index.ids(&Filter { target: Some("/data/3".into()), ..Filter::default() })?.len(), 1110);
        Ok(())
    }

    #[test]
    fn comparison_with_the_files_uses_a_covering_index_in_their_order() -> Tried {
        let mut index = in_memory()?;
        let plan = |index: &Index, sql: &str| -> rusqlite::Result<Vec<String>> {
            let mut plan = index.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            plan.query_map([], |row| row.get("detail"))?.collect()
        };
        let steps = plan(&index, "SELECT id, bytes, changed_ns, words_changed_ns FROM session ORDER BY id")?;
        assert!(steps.len() == 1 && steps[0].contains("COVERING INDEX"), "{steps:?}");
        // SQLite sorts ids as Rust sorts strings, also beyond ASCII and for prefixes.
        let mut files = Files::default();
        for id in ["a", "a-1", "a1", "B", "é", "z", "10", "9", "\u{10348}", "\u{ffff}"] {
            let (mut found, _) = session(1);
            found.id = id.into();
            files.by_id.insert(id.into(), found);
        }
        let entry = |found: &SessionFile| Entry { id: found.id.clone(), ..Entry::default() };
        index.refresh(&files, entry)?;
        let (gone, new) = index.differences(&files)?;
        assert!(gone.is_empty() && new.is_empty(), "{gone:?} {new:?}");
        files.by_id.remove("a1");
        files.by_id.remove("\u{ffff}");
        index.refresh(&files, entry)?;
        assert_eq!(index.count(&Filter::default())?, 8);
        Ok(())
    }

    #[test]
    fn newest_entries_are_found_without_sorting() -> Tried {
        let index = in_memory()?;
        let sql =
            format!("EXPLAIN QUERY PLAN SELECT entry FROM session WHERE {MATCHES} {NEWEST_FIRST} LIMIT 40");
        let filter = Filter::default();
        let verdict = filter.verdict_word();
        let mut plan = index.db.prepare(&sql)?;
        let steps: Vec<String> = plan
            .query_map(&filter.parameters(&verdict)[..], |row| row.get("detail"))?
            .collect::<rusqlite::Result<_>>()?;
        assert!(steps.iter().any(|step| step.contains("session_by_time")), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        Ok(())
    }

    #[test]
    fn entries_are_ordered_by_start_not_by_id() -> Tried {
        let mut index = in_memory()?;
        let files = files(1..=4);
        // Session 00001 began last by its own entry; 00002 has no start time, and its file changed at 2 ns.
        index.refresh(&files, |found| match found.id.as_str() {
            "00001" => Entry { started: Some("1970-01-01T02:00:09+02:00".into()), ..entry_of(found) },
            "00002" => Entry { started: Some("long ago".into()), ..entry_of(found) },
            _ => entry_of(found),
        })?;
        assert_eq!(index.ids(&Filter::default())?, ["00001", "00004", "00003", "00002"]);
        Ok(())
    }

    #[test]
    fn sessions_of_one_second_are_ordered_by_change_of_their_files() -> Tried {
        let mut index = in_memory()?;
        let mut files = Files::default();
        for (pid, changed_ns) in [(9_998, 5), (10_003, 7), (12, 9)] {
            let (mut found, _) = session(pid);
            found.id = format!("20260101-000009-{pid}");
            found.stamp.changed_ns = changed_ns;
            files.by_id.insert(found.id.clone(), found);
        }
        index.refresh(&files, |found| Entry {
            started: Some("2026-01-01T00:00:09+00:00".into()),
            ..entry_of(found)
        })?;
        let pids = index.ids(&Filter::default())?;
        assert_eq!(pids, ["12", "10003", "9998"].map(|pid| format!("20260101-000009-{pid}")));
        Ok(())
    }

    #[test]
    fn each_filter_selects_matching_entries() -> Tried {
        let mut index = in_memory()?;
        let files = files(1..=3);
        index.refresh(&files, |found| {
            let mut entry = entry_of(found);
            if found.id == "00002" {
                entry.title = Some("bench cdm".into());
                entry.verdict = Some(Verdict::Suspect);
                entry.jobs = vec!["RND4K Q1T1 read".into()];
                entry.annotations = Annotations { tags: vec!["new".into()], notes: Vec::new() };
                entry.findings = vec![FindingMark { id: model::finding::CheckId::A01, severity: None }];
                entry.devices = vec![Device {
                    name: "vda".into(),
                    model: Some("Disk 'n' \"roll\"".into()),
                    serial: Some("S1".into()),
                    bytes: 0,
                }];
            }
            entry
        })?;
        let some = |word: &str| Some(word.to_owned());
        let all = Filter::default();
        let only = [
            Filter { target: some("data/2"), ..all.clone() },
            Filter { device: some("vd"), ..all.clone() },
            Filter { device: some("'n' \"r"), ..all.clone() },
            Filter { device: some("S1"), ..all.clone() },
            Filter { job: some("cdm"), ..all.clone() },
            Filter { job: some("Q1T1"), ..all.clone() },
            Filter { verdict: Some(Verdict::Suspect), ..all.clone() },
            Filter { tag: some("new"), ..all.clone() },
            Filter { since: Some(2_000_000_000), until: Some(2_000_000_001), ..all.clone() },
            Filter { tag: some("new"), verdict: Some(Verdict::Suspect), ..all.clone() },
        ];
        for filter in only {
            assert_eq!(index.ids(&filter)?, ["00002"], "{filter:?}");
            assert_eq!(index.count(&filter)?, 1, "{filter:?}");
            assert_eq!(index.entries(&filter, None)?[0].id, "00002");
        }
        let none = [
            Filter { tag: some("ne"), ..all.clone() },
            Filter { verdict: Some(Verdict::Valid), ..all.clone() },
            Filter { device: some("%"), ..all.clone() },
            Filter { until: Some(1_000_000_000), ..all.clone() },
        ];
        for filter in none {
            assert_eq!(index.ids(&filter)?, Vec::<String>::new(), "{filter:?}");
        }
        Ok(())
    }

    #[test]
    fn older_indexes_are_emptied_and_newer_ones_refused() -> Tried {
        let dir = tempfile::tempdir()?;
        for version in 0..=VERSION + 1 {
            let path = dir.path().join(format!("{version}.db"));
            let db = Connection::open(&path)?;
            db.execute_batch("CREATE TABLE session (id TEXT); INSERT INTO session VALUES ('1');")?;
            db.pragma_update(None, "user_version", version)?;
            drop(db);
            match Index::open(&path) {
                Ok(index) if version < VERSION => {
                    assert!(index.entries(&Filter::default(), None)?.is_empty());
                }
                // A database with our version is taken as it is.
                Ok(_) => assert_eq!(version, VERSION),
                Err(IndexError::Newer(found)) => assert_eq!((found, version), (VERSION + 1, VERSION + 1)),
                Err(other) => return Err(format!("{other:?}").into()),
            }
        }
        let failure = newer_index_failure(Path::new("/x/history.db"), 7);
        assert!(
            ["/x/history.db", "7", "--rebuild"].iter().all(|part| failure.message().contains(part)),
            "{failure:?}"
        );
        Ok(())
    }

    #[test]
    fn damaged_and_unwritable_indexes_are_distinguished() -> Tried {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(NAME);
        std::fs::write(&path, "this is no database, and long enough to be looked at as one".repeat(20))?;
        assert!(matches!(Index::open(&path), Err(IndexError::Damaged(_))));
        std::fs::write(dir.path().join("history.db-wal"), "x")?;
        let aside = move_aside(&path, "damaged")?;
        assert_eq!(aside, dir.path().join("history.db.damaged"));
        assert!(dir.path().join("history.db.damaged-wal").exists() && !path.exists());
        std::fs::create_dir(&path)?;
        assert!(matches!(Index::open(&path), Err(IndexError::Unusable(_))));

        // The database of another program, with our version but without our tables; and a row that is not an entry.
        let other = dir.path().join("other.db");
        let db = Connection::open(&other)?;
        db.pragma_update(None, "user_version", VERSION)?;
        assert!(matches!(query_index(&other, &Files::default(), |_| Ok(())), Err(IndexError::Damaged(_))));
        let mut index = in_memory()?;
        index.refresh(&files([1]), entry_of)?;
        index.db.execute("UPDATE session SET entry = '{}'", [])?;
        let asked = index.entries(&Filter::default(), None).map_err(IndexError::from);
        assert!(matches!(asked, Err(IndexError::Damaged(_))));
        Ok(())
    }

    #[test]
    fn concurrent_writers_take_turns() -> Tried {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(NAME);
        let threads: Vec<_> = (0..2_i64)
            .map(|half| {
                let path = path.clone();
                std::thread::spawn(move || -> Result<(), String> {
                    for round in 0..20 {
                        let mut index = Index::open(&path).map_err(|e| format!("{e:?}"))?;
                        let (found, entry) = session(half * 100 + round);
                        index.insert(&[(&found, entry)]).map_err(|e| e.to_string())?;
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a panic")??;
        }
        let index = Index::open(&path).map_err(|e| format!("{e:?}"))?;
        assert_eq!(index.count(&Filter::default())?, 40);
        Ok(())
    }
}

#[test]
fn hash_matches_the_published_values() {
    assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
}
