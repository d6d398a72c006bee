//! The index: an SQLite database beside the session files, made from them and thrown away without loss.
//!
//! For: finding entries among thousands without opening a session file. Not for: anything that is not in the files too, nor the tables
//! ([`super::schema`]) and what is asked of them ([`super::filter`]).

use super::entry::{read, started_ns};
use super::files::{Files, SessionFile, Stamp};
use super::filter::{Filter, MATCHES};
use super::schema::{STEPS, Trouble, migrate};
use crate::failure::Failure;
use crate::{session, stderr};
use model::history::Entry;
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Its file, in the directory above the sessions.
const NAME: &str = "history.db";
/// How long another fathom may hold it.
const BUSY: Duration = Duration::from_secs(5);
/// Sessions that are read before their entries are written: what a kill in between costs.
const BATCH: usize = 200;
/// New sessions from which it takes long enough to be said.
const MANY: usize = 200;

/// Newest first; of two that began in the same second, as is written, the one whose file has changed last: their ids end in numbers of
/// processes, which say nothing of it.
const NEWEST_FIRST: &str = "ORDER BY started_ns DESC, changed_ns DESC, id DESC";

/// An open index.
#[derive(Debug)]
pub(super) struct Index {
    db: Connection,
}

/// Asks the index after bringing it up to date. It lies in the first directory that can be written, else in memory.
///
/// # Errors
/// [`Failure::Refused`] where a later fathom made it.
pub(super) fn with<T>(files: &Files, ask: impl Fn(&mut Index) -> rusqlite::Result<T>) -> Result<T, Failure> {
    let mut refused = None;
    for path in places() {
        match attempt(&path, files, &ask) {
            Ok(answer) => return Ok(answer),
            Err(Trouble::Future(version)) => return Err(from_the_future(&path, version)),
            Err(Trouble::Place(why)) => refused = Some(format!("{}: {why}", path.display())),
            Err(Trouble::Damaged(why)) => {
                let Ok(aside) = set_aside(&path, "damaged") else { continue };
                stderr::say(&format!(
                    "fathom: the index {} is damaged ({why}); it is made anew from the session files, and what it was is now {}",
                    path.display(),
                    aside.display()
                ));
                if let Ok(answer) = attempt(&path, files, &ask) {
                    return Ok(answer);
                }
            }
        }
    }
    if let Some(why) = refused.filter(|_| files.by_id.len() >= MANY) {
        stderr::say(&format!("fathom: no index can be kept ({why}), so every session is read each time"));
    }
    attempt(Path::new(":memory:"), files, &ask).map_err(|trouble| match trouble {
        Trouble::Future(_) => Failure::Refused("the index in memory is from the future".into()),
        Trouble::Place(why) | Trouble::Damaged(why) => {
            Failure::Refused(format!("the history cannot be indexed: {why}"))
        }
    })
}

/// Makes it anew: every session is read and judged again. One that a later fathom made is set aside.
///
/// # Errors
/// As [`with`].
pub(super) fn rebuild(files: &Files) -> Result<(), Failure> {
    for path in places().filter(|p| p.exists()) {
        if let Err(Trouble::Future(version)) = Index::open(&path) {
            let aside = set_aside(&path, &format!("version-{version}"))
                .map_err(|e| Failure::Refused(format!("{} cannot be moved aside: {e}", path.display())))?;
            stderr::say(&format!("fathom: the index of a later fathom is now {}", aside.display()));
        }
    }
    with(&Files::default(), |_| Ok(()))?;
    with(files, |_| Ok(()))
}

/// Where it may lie: above each directory that holds sessions.
fn places() -> impl Iterator<Item = PathBuf> {
    let dirs = session::directories().into_iter().filter(|d| d.is_dir());
    dirs.filter_map(|d| Some(d.parent()?.join(NAME)))
}

fn attempt<T>(
    path: &Path,
    files: &Files,
    ask: impl Fn(&mut Index) -> rusqlite::Result<T>,
) -> Result<T, Trouble> {
    let mut index = Index::open(path)?;
    index.refresh(files, read)?;
    Ok(ask(&mut index)?)
}

fn from_the_future(path: &Path, version: i64) -> Failure {
    Failure::Refused(format!(
        "{} was made by a later fathom (its version is {version}, and this one knows {}); use that fathom, or type `fathom list \
         --rebuild`, which sets it aside and makes one from the session files",
        path.display(),
        STEPS.len()
    ))
}

/// Gives an index and what belongs to it another name, in the place of an older one that has it.
fn set_aside(path: &Path, why: &str) -> std::io::Result<PathBuf> {
    let named = |path: &Path, behind: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(behind);
        PathBuf::from(name)
    };
    let aside = named(path, &format!(".{why}"));
    std::fs::rename(path, &aside)?;
    for part in ["-wal", "-shm"] {
        // Left behind they would be taken for the next one's; there is none after a clean end.
        let _ = std::fs::rename(named(path, part), named(&aside, part));
    }
    Ok(aside)
}

/// Tries what SQLite refuses at once while another fathom holds the index: the first two that open a new one change its journal together.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

impl Index {
    fn open(path: &Path) -> Result<Self, Trouble> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        // Where this is refused, as on file systems without shared memory, the journal stays what it is: slower, and as safe.
        patiently(|| db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())))?;
        // The last entries may be lost with the power; they are read again then.
        db.pragma_update(None, "synchronous", "normal")?;
        migrate(&mut db, STEPS)?;
        Ok(Self { db })
    }

    /// Reads what is new or has changed, and forgets what is gone.
    fn refresh(
        &mut self,
        files: &Files,
        mut read: impl FnMut(&SessionFile) -> Entry,
    ) -> rusqlite::Result<()> {
        let (gone, new) = self.differences(files)?;
        self.forget(&gone)?;
        if new.len() >= MANY {
            stderr::say(&format!("fathom: {} sessions are new to the index and are read now", new.len()));
        }
        for batch in new.chunks(BATCH) {
            // Read first, so that nobody waits for the database meanwhile.
            let entries: Vec<(&SessionFile, Entry)> = batch.iter().map(|f| (*f, read(f))).collect();
            self.put(&entries)?;
        }
        Ok(())
    }

    /// Compares the index with the files: ids of sessions whose file is gone, and files that are new or have changed. Both are sorted by id,
    /// so one pass over both is enough.
    fn differences<'f>(&self, files: &'f Files) -> rusqlite::Result<(Vec<String>, Vec<&'f SessionFile>)> {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        let mut found = files.by_id.values().peekable();
        let mut select =
            self.db.prepare("SELECT id, bytes, changed_ns, words_changed_ns FROM session ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_str()?;
            let stamp = Stamp { bytes: row.get(1)?, changed_ns: row.get(2)?, words_changed_ns: row.get(3)? };
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

    fn put(&mut self, entries: &[(&SessionFile, Entry)]) -> rusqlite::Result<()> {
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert =
                writing.prepare("INSERT OR REPLACE INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            for (found, entry) in entries {
                let Stamp { bytes, changed_ns, words_changed_ns } = found.stamp;
                let json = serde_json::to_string(entry)
                    .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
                let began = started_ns(entry, &found.stamp);
                insert.execute(params![found.id, bytes, changed_ns, words_changed_ns, began, json])?;
            }
        }
        writing.commit()
    }

    /// Ids of the entries that are wanted, newest first.
    pub(super) fn ids(&self, filter: &Filter) -> rusqlite::Result<Vec<String>> {
        self.select("id", filter, None, |r| r.get(0))
    }

    /// Entries that are wanted, newest first; no more than so many.
    pub(super) fn entries(&self, filter: &Filter, most: Option<u32>) -> rusqlite::Result<Vec<Entry>> {
        self.select("entry", filter, most, |r| {
            let json: String = r.get(0)?;
            serde_json::from_str(&json).map_err(|e| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, e.into())
            })
        })
    }

    /// Returns how many are wanted in all.
    pub(super) fn count(&self, filter: &Filter) -> rusqlite::Result<u64> {
        if *filter == Filter::default() {
            // Without a condition SQLite counts in an index and reads no entry.
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
        self.db.prepare(&sql)?.query_map(&filter.bound(&verdict)[..], read)?.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::history::{Device, Mark};
    use model::report::Annotations;
    use model::report::Verdict;

    type Tried = Result<(), Box<dyn std::error::Error>>;

    /// A session that began so many seconds after 1970, and what its file says.
    fn session(second: i64) -> (SessionFile, Entry) {
        let id = format!("{second:05}");
        let stamp = Stamp { bytes: 100, changed_ns: second, words_changed_ns: None };
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
        Files { by_id: found.collect(), problems: Vec::new() }
    }

    fn entry_of(found: &SessionFile) -> Entry {
        session(found.id.parse().unwrap_or(-1)).1
    }

    fn in_memory() -> Result<Index, String> {
        Index::open(Path::new(":memory:")).map_err(|e| format!("{e:?}"))
    }

    /// Refreshes, and gives how many session files were opened for it.
    fn opened(index: &mut Index, files: &Files) -> rusqlite::Result<usize> {
        let mut count = 0;
        index.refresh(files, |found| {
            count += 1;
            entry_of(found)
        })?;
        Ok(count)
    }

    #[test]
    fn ten_thousand_sessions_are_opened_once_and_then_only_what_changed() -> Tried {
        let mut index = in_memory()?;
        let mut files = files(0..10_000);
        assert_eq!(opened(&mut index, &files)?, 10_000);
        assert_eq!(opened(&mut index, &files)?, 0);
        assert_eq!(index.count(&Filter::default())?, 10_000);
        assert_eq!(index.entries(&Filter::default(), Some(40))?.len(), 40);

        files.by_id.remove("00003");
        for (id, stamp) in [
            ("00007", Stamp { bytes: 101, changed_ns: 7, words_changed_ns: None }),
            ("00008", Stamp { bytes: 100, changed_ns: 9, words_changed_ns: None }),
            ("00009", Stamp { bytes: 100, changed_ns: 9, words_changed_ns: Some(1) }),
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
    fn what_is_compared_with_the_files_is_read_from_an_index_in_their_order() -> Tried {
        let mut index = in_memory()?;
        let plan = |index: &Index, sql: &str| -> rusqlite::Result<Vec<String>> {
            let mut plan = index.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            plan.query_map([], |row| row.get("detail"))?.collect()
        };
        let steps = plan(&index, "SELECT id, bytes, changed_ns, words_changed_ns FROM session ORDER BY id")?;
        assert!(steps.len() == 1 && steps[0].contains("COVERING INDEX"), "{steps:?}");
        // The order of ids in SQLite is that of Rust's strings, also beyond ASCII and for prefixes.
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
    fn the_newest_are_found_without_sorting_all_entries() -> Tried {
        let index = in_memory()?;
        let sql =
            format!("EXPLAIN QUERY PLAN SELECT entry FROM session WHERE {MATCHES} {NEWEST_FIRST} LIMIT 40");
        let filter = Filter::default();
        let verdict = filter.verdict_word();
        let mut plan = index.db.prepare(&sql)?;
        let steps: Vec<String> = plan
            .query_map(&filter.bound(&verdict)[..], |row| row.get("detail"))?
            .collect::<rusqlite::Result<_>>()?;
        assert!(steps.iter().any(|step| step.contains("session_by_time")), "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:?}");
        Ok(())
    }

    #[test]
    fn newest_first_by_the_time_of_beginning_whatever_the_id() -> Tried {
        let mut index = in_memory()?;
        let files = files(1..=4);
        // The file called 00001 says that it began last; 00002 does not say, and its file has changed at 2 ns.
        index.refresh(&files, |found| match found.id.as_str() {
            "00001" => Entry { started: Some("1970-01-01T02:00:09+02:00".into()), ..entry_of(found) },
            "00002" => Entry { started: Some("long ago".into()), ..entry_of(found) },
            _ => entry_of(found),
        })?;
        assert_eq!(index.ids(&Filter::default())?, ["00001", "00004", "00003", "00002"]);
        Ok(())
    }

    #[test]
    fn of_two_that_began_in_one_second_the_later_is_newer_whatever_its_process() -> Tried {
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
    fn each_filter_leaves_what_is_like_it() -> Tried {
        let mut index = in_memory()?;
        let files = files(1..=3);
        index.refresh(&files, |found| {
            let mut entry = entry_of(found);
            if found.id == "00002" {
                entry.title = Some("bench cdm".into());
                entry.verdict = Some(Verdict::Suspect);
                entry.jobs = vec!["RND4K Q1T1 read".into()];
                entry.words = Annotations { tags: vec!["new".into()], notes: Vec::new() };
                entry.findings = vec![Mark { id: model::finding::CheckId::A01, severity: None }];
                entry.devices = vec![Device {
                    name: "vda".into(),
                    model: Some("Disk 'n' \"roll\"".into()),
                    serial: Some("S1".into()),
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
    fn every_older_version_becomes_the_newest_and_a_newer_one_is_refused() -> Tried {
        let dir = tempfile::tempdir()?;
        let later: Vec<&str> =
            STEPS.iter().copied().chain(["ALTER TABLE session ADD COLUMN stars INTEGER"]).collect();
        for have in 0..=later.len() {
            let path = dir.path().join(format!("{have}.db"));
            let mut db = Connection::open(&path)?;
            migrate(&mut db, &later[..have]).map_err(|e| format!("{e:?}"))?;
            migrate(&mut db, &later).map_err(|e| format!("{e:?}"))?;
            db.prepare("SELECT stars, entry FROM session")?;
            drop(db);
            let opened = Index::open(&path);
            assert!(matches!(opened, Err(Trouble::Future(found)) if found == later.len() as i64));
        }
        let words = from_the_future(Path::new("/x/history.db"), 7);
        assert!(["/x/history.db", "7", "--rebuild"].iter().all(|w| words.message().contains(w)), "{words:?}");
        Ok(())
    }

    #[test]
    fn what_is_no_index_is_damaged_and_what_cannot_be_written_is_another_place() -> Tried {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(NAME);
        std::fs::write(&path, "this is no database, and long enough to be looked at as one".repeat(20))?;
        assert!(matches!(Index::open(&path), Err(Trouble::Damaged(_))));
        std::fs::write(dir.path().join("history.db-wal"), "x")?;
        let aside = set_aside(&path, "damaged")?;
        assert_eq!(aside, dir.path().join("history.db.damaged"));
        assert!(dir.path().join("history.db.damaged-wal").exists() && !path.exists());
        std::fs::create_dir(&path)?;
        assert!(matches!(Index::open(&path), Err(Trouble::Place(_))));

        // A database of somebody else's, with our version and none of our tables; and a row that is no entry.
        let other = dir.path().join("other.db");
        let db = Connection::open(&other)?;
        db.pragma_update(None, "user_version", STEPS.len() as i64)?;
        assert!(matches!(attempt(&other, &Files::default(), |_| Ok(())), Err(Trouble::Damaged(_))));
        let mut index = in_memory()?;
        index.refresh(&files([1]), entry_of)?;
        index.db.execute("UPDATE session SET entry = '{}'", [])?;
        let asked = index.entries(&Filter::default(), None).map_err(Trouble::from);
        assert!(matches!(asked, Err(Trouble::Damaged(_))));
        Ok(())
    }

    #[test]
    fn two_at_once_write_one_after_the_other() -> Tried {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join(NAME);
        let threads: Vec<_> = (0..2_i64)
            .map(|half| {
                let path = path.clone();
                std::thread::spawn(move || -> Result<(), String> {
                    for round in 0..20 {
                        let mut index = Index::open(&path).map_err(|e| format!("{e:?}"))?;
                        let (found, entry) = session(half * 100 + round);
                        index.put(&[(&found, entry)]).map_err(|e| e.to_string())?;
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
