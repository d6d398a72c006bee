//! The history of sessions: list, find, tag, export, import and delete; and nothing is lost in a crash.

use crate::stage::{Outcome, Running, Stage, is_root, names};
use model::record;
use model::record::Frame;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run on the simulated device, which ends at once.
const QUICK: &str = "run --engine sim --depth 4 --time 20ms --warmup 0 --runs 3 --quiet";
/// A placeholder for commands without a target.
const NOTHING: &str = "";

impl Stage {
    fn say(&self, words: &str) -> Outcome {
        self.fathom(words, Path::new(NOTHING))
    }

    /// Runs a command that must succeed, and returns its output.
    #[track_caller]
    fn must(&self, words: &str) -> String {
        let out = self.say(words);
        assert_eq!(out.code, Some(0), "{words}: {out:?}");
        out.stdout
    }

    /// Runs a command that must be refused with these words.
    #[track_caller]
    fn must_not(&self, code: i32, words: &str, why: &[&str]) {
        let out = self.say(words);
        assert_eq!(out.code, Some(code), "{words}: {out:?}");
        for word in why {
            assert!(out.stderr.contains(word), "'{word}' is not in: {}", out.stderr);
        }
    }

    /// Measures this many sessions, and returns their ids, oldest first.
    fn measured(&self, sessions: usize) -> Vec<String> {
        for _ in 0..sessions {
            self.must(QUICK);
        }
        let mut all = self.list("");
        all.reverse();
        all.iter().map(id).collect()
    }

    /// The entries of `fathom list` with these words.
    #[track_caller]
    fn list(&self, words: &str) -> Vec<Value> {
        let printed = self.must(&format!("list --format json {words}"));
        let value: Value = serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {printed}"));
        value.as_array().unwrap().clone()
    }

    #[track_caller]
    fn ids(&self, words: &str) -> Vec<String> {
        self.list(words).iter().map(id).collect()
    }

    /// The path of a file in the history.
    fn history(&self, name: &str) -> PathBuf {
        self.path("xdg/fathom").join(name)
    }

    fn session(&self, id: &str) -> PathBuf {
        self.history("sessions").join(format!("{id}.fathom"))
    }
}

fn id(entry: &Value) -> String {
    entry["id"].as_str().unwrap().to_owned()
}

#[test]
fn sessions_are_listed_newest_first_and_found_by_id_tag_or_last() {
    let stage = Stage::shared();
    assert!(stage.must("list").contains("fathom bench"));
    assert_eq!(stage.list(""), Vec::<Value>::new());
    stage.must_not(2, "show last", &["no sessions yet"]);

    let ids = stage.measured(3);
    let all = stage.list("");
    let newest = &all[0];
    assert_eq!(newest["verdict"], "VALID", "{newest:#}");
    assert_eq!(newest["ending"]["how"], "complete");
    assert!(newest["headline"]["value"].as_f64().unwrap() > 1000.0);
    assert!(newest["headline"]["interval"].is_array());
    assert_eq!((&newest["runs"], &newest["title"]), (&3.into(), &"run".into()));
    assert_eq!(newest["fingerprint"], all[2]["fingerprint"]);
    assert!(newest["findings"].as_array().unwrap().iter().all(|f| f["id"].is_string()));
    let begun: Vec<&str> = all.iter().map(|e| e["started"].as_str().unwrap()).collect();
    assert!(begun.is_sorted_by(|a, b| a >= b), "{begun:?}");

    let shown = |word: &str| {
        let out = stage.say(&format!("show --format json {word}"));
        let report = out.report().0;
        PathBuf::from(report["session"].as_str().unwrap())
    };
    assert_eq!(shown("last"), stage.session(&ids[2]));
    assert_eq!(shown("last~2"), stage.session(&ids[0]));
    assert_eq!(shown(&ids[1]), stage.session(&ids[1]));
    let (_, process) = ids[1].rsplit_once('-').unwrap();
    assert_eq!(shown(process), stage.session(&ids[1]));
    assert_eq!(shown(stage.session(&ids[0]).to_str().unwrap()), stage.session(&ids[0]));
    stage.must_not(2, "show last~3", &["3 sessions"]);
    stage.must_not(2, "show last~x", &["number"]);
    stage.must_not(2, "show lasst", &["no file, tag or session has this name; type last, or"]);
    stage.must_not(2, "show 20", &["3 sessions have this in their id", &ids[1]]);
    stage.must_not(2, "show nothing", &["no file, tag or session has this name", "fathom list"]);

    let table = stage.must("list");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("id ") && lines[2].starts_with(&ids[2]), "{table}");
    assert!(lines[2].contains("VALID") && lines[2].contains(" IOPS"), "{table}");
    let csv = stage.must("list --format csv");
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.starts_with("id,started,verdict,"), "{csv}");
    assert_eq!(stage.must("list --limit 1").lines().count(), 4);
    assert!(stage.must("list --limit 1").ends_with("The newest 1 of 3 sessions; --limit 0 shows all.\n"));
}

#[test]
fn filters_select_matching_sessions() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let first = stage.measured(1);
    let words = "run --rw randread --size 16m --time 50ms --warmup 0 --runs 1 --quiet";
    assert!(matches!(stage.fathom(words, &folder).code, Some(0 | 1)));
    let all = stage.ids("");
    let second = vec![all[0].clone()];
    assert_eq!(all[1..], first);

    assert_eq!(stage.ids(&format!("--target {}", folder.display())), second);
    assert_eq!(stage.ids("--job random"), all, "both read at random");
    assert_eq!(stage.ids("--job nothing"), Vec::<String>::new());
    assert!(stage.must("list --job nothing").contains("No session matches (2 in all)"));
    let verdict = stage.list("--limit 1")[0]["verdict"].as_str().unwrap().to_lowercase();
    assert!(stage.ids(&format!("--verdict {verdict}")).contains(&second[0]));
    if let Some(device) = stage.list("--limit 1")[0]["devices"][0]["name"].as_str() {
        assert_eq!(stage.ids(&format!("--device {device}")), second);
    }
    stage.must(&format!("tag {} kept", first[0]));
    assert_eq!(stage.ids("--tag kept"), first);
    assert_eq!(stage.ids("--since 2020-01-01"), all);
    assert_eq!(stage.ids("--until 2020-01-01"), Vec::<String>::new());
    let begun = stage.list("--limit 1")[0]["started"].as_str().unwrap().to_owned();
    assert!(stage.ids(&format!("--since {begun} --until {}", &begun[..10])).contains(&second[0]));
    stage.must_not(2, "list --since soon", &["'soon' is not a date", "2026-11-21"]);
    stage.must_not(2, "list --verdict good", &["type valid, suspect or invalid"]);
}

#[test]
fn tags_and_notes_survive_the_index() {
    let stage = Stage::shared();
    let ids = stage.measured(2);
    assert!(stage.must(&format!("tag {} baseline old-cable", ids[0])).contains("tags baseline old-cable"));
    assert!(stage.must("note baseline measured before the move").contains("one note"));
    let report = stage.say("show --format json baseline").report().0;
    assert_eq!(report["words"]["tags"], serde_json::json!(["baseline", "old-cable"]));
    assert_eq!(report["words"]["notes"][0]["text"], "measured before the move");
    let text = stage.must("show baseline");
    assert!(
        text.contains("Tags    baseline old-cable\n") && text.contains("measured before the move"),
        "{text}"
    );
    assert!(stage.must("list").contains("baseline old-cable"));

    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(stage.history(&format!("history.db{suffix}")));
    }
    assert_eq!(stage.ids("--tag baseline"), ids[..1]);
    assert_eq!(stage.ids("--tag baseline --rebuild"), ids[..1]);

    // A tags file edited by hand is used. An invalid one is reported and never overwritten.
    let words = stage.history("sessions").join(format!("{}.words.json", ids[0]));
    std::fs::write(&words, r#"{"tags": ["by-hand"]}"#).unwrap();
    assert_eq!(stage.ids("--tag by-hand"), ids[..1]);
    std::fs::write(&words, "{").unwrap();
    assert!(stage.must("list").contains(&format!("{}.words.json", ids[0])));
    stage.must_not(2, &format!("tag {} new", ids[0]), &["fix the file"]);
    std::fs::remove_file(&words).unwrap();

    stage.must_not(2, &format!("tag {} last", ids[0]), &["tag 'last'"]);
    stage.must(&format!("tag {} both", ids[0]));
    stage.must(&format!("tag {} both", ids[1]));
    stage.must_not(2, "show both", &["2 sessions have this tag", &ids[0], &ids[1]]);
    // Directories of these names do not hide the reason.
    stage.folder("cwd/both");
    let line = format!("compare both {}", stage.folder("cwd/other").display());
    stage.must_not(2, &line, &["2 sessions have this tag"]);
    stage.must(&format!("tag {} both --remove", ids[1]));
    stage.must("show both");
    stage.must_not(2, &format!("tag {} both --remove", ids[1]), &["no such tag"]);
}

#[test]
fn sessions_added_or_removed_externally_are_noticed() {
    let stage = Stage::shared();
    let ids = stage.measured(3);
    let away = stage.path("away.fathom");
    std::fs::rename(stage.session(&ids[1]), &away).unwrap();
    assert_eq!(stage.ids(""), [ids[2].clone(), ids[0].clone()]);
    std::fs::rename(&away, stage.session(&ids[1])).unwrap();
    assert_eq!(stage.ids("").len(), 3);

    // Files that are cut off, or that are not sessions.
    let bytes = std::fs::read(stage.session(&ids[0])).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(stage.history("sessions").join(name), bytes).unwrap();
    put("20260101-000000-1.fathom", &bytes[..bytes.len() / 2]);
    put("20260101-000000-2.fathom", &bytes[..20]);
    put("20260101-000000-3.fathom", b"a letter to a friend\n");
    put("20260101-000000-4.fathom", b"");
    put("notes.txt", b"nothing of ours");
    let all = stage.list("");
    assert_eq!(all.len(), 7);
    let of = |end: &str| all.iter().find(|e| id(e).ends_with(&format!("-000000-{end}"))).unwrap();
    for cut in ["1", "2", "4"] {
        assert_eq!(of(cut)["ending"]["how"], "cut", "{:#}", of(cut));
    }
    assert_eq!(of("2")["verdict"], Value::Null);
    assert_eq!(of("3")["ending"], Value::Null);
    let table = stage.must("list");
    assert!(table.contains("unreadable") && table.contains("not a session file"), "{table}");
    assert!(stage.must("list --rebuild").contains("unreadable"));
}

#[test]
fn export_and_import_keep_annotations_and_never_overwrite() {
    let here = Stage::shared();
    let ids = here.measured(2);
    here.must(&format!("tag {} travelled", ids[0]));
    let out = here.folder("out");
    let printed = here.must(&format!("export {} {} -o {}", ids[0], ids[1], out.display()));
    assert_eq!(printed.lines().count(), 3, "{printed}");
    let report = here.path("report.json");
    here.must(&format!("export last -o {}", report.display()));
    let exported: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(exported, here.say("show --format json last").report().0);
    let whole = here.must("export last -o -");
    assert_eq!(whole.as_bytes(), std::fs::read(here.session(&ids[1])).unwrap());
    assert!(here.must("export last -o - --format text").starts_with("VALID"));
    here.must_not(2, &format!("export last -o {}", out.display()), &["exists already"]);
    here.must_not(
        2,
        &format!("export {} last -o {}", ids[0], here.path("one.json").display()),
        &["directory"],
    );
    here.must_not(2, "export last -o x.pdf", &["x.pdf", ".json"]);
    here.must_not(2, "export", &["SESSION"]);

    let files = |names: &[&str]| {
        names.iter().map(|n| out.join(n).display().to_string()).collect::<Vec<_>>().join(" ")
    };
    let (first, second) = (format!("{}.fathom", ids[0]), format!("{}.fathom", ids[1]));
    assert_eq!(here.must(&format!("import {}", files(&[&first, &second]))).matches("skipped").count(), 2);
    here.must(&format!("delete {} {}", ids[0], ids[1]));
    assert_eq!(here.ids(""), Vec::<String>::new());
    here.must(&format!("import {}", files(&[&first, &second])));
    assert_eq!(here.ids("").iter().collect::<BTreeSet<_>>(), ids.iter().collect());
    assert_eq!(here.ids("--tag travelled"), ids[..1]);

    // A copy under another name gets a new id, which is always the same. A different session with a known id is refused.
    for name in ["copy.fathom", "again.fathom"] {
        std::fs::copy(out.join(&first), out.join(name)).unwrap();
    }
    assert!(here.must(&format!("import {}", files(&["copy.fathom"]))).contains("imported as 20"));
    assert!(here.must(&format!("import {}", files(&["again.fathom"]))).contains("skipped"));
    std::fs::copy(out.join(&second), out.join(&first)).unwrap();
    here.must_not(2, &format!("import {}", files(&[&first])), &["already has the id", &ids[0]]);
    // A file that is not a session does not prevent the import of the others.
    here.must(&format!("delete {}", ids[1]));
    std::fs::write(out.join("letter"), "to a friend").unwrap();
    here.must_not(
        2,
        &format!("import {}", files(&["letter", "missing", &second])),
        &["letter", "missing", "export"],
    );
    assert!(here.ids("").contains(&ids[1]));
    here.must_not(2, &format!("import {}", report.display()), &["not a session file"]);
}

#[test]
fn delete_removes_only_exactly_named_sessions() {
    let stage = Stage::shared();
    let ids = stage.measured(3);
    stage.must(&format!("tag {} old", ids[0]));
    stage.must_not(2, "delete last", &[&format!("means {}", ids[2]), "--yes"]);
    stage.must_not(2, "delete old", &[&ids[0]]);
    stage.must_not(2, &format!("delete {} nothing", ids[0]), &["nothing"]);
    stage.must_not(
        2,
        &format!("delete {}", stage.session(&ids[0]).display()),
        &["needs the id of a session", "rm"],
    );
    assert_eq!(stage.ids("").len(), 3);
    let printed = stage.must("delete old --yes");
    assert!(printed.contains(&ids[0]) && printed.contains("with its tags and notes"), "{printed}");
    assert!(stage.must(&format!("delete {}", ids[2])).contains("KiB"));
    assert_eq!(stage.ids(""), ids[1..2]);
    let left: Vec<PathBuf> = names(&stage.history("sessions"));
    assert_eq!(left, [stage.session(&ids[1])]);
}

#[test]
fn running_sessions_are_listed_and_not_removed() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = "run --rw randread --size 16m --time 200ms --warmup 0 --runs 200 --format json";
    let mut running = stage.start(words, &folder);
    running.wait_for_output("run 2 of");
    let entry = &stage.list("")[0];
    assert_eq!((&entry["running"], &entry["ending"]["how"]), (&true.into(), &"cut".into()));
    assert!(stage.must("list").contains("running"));
    stage.must_not(3, &format!("delete {}", id(entry)), &["right now"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, Some(130));
    let entry = &stage.list("")[0];
    assert_eq!((&entry["running"], &entry["ending"]["how"]), (&false.into(), &"interrupted".into()));
}

#[test]
fn last_means_the_last_ended_session() {
    let stage = Stage::shared();
    let folder = stage.folder("here");
    let words = "run --rw randread --size 16m --time 200ms --warmup 0 --runs 200 --format json";
    let mut first = stage.start(words, &folder);
    first.wait_for_output("run 2 of");
    let running = format!("still running (pid {})", first.id());
    stage.must_not(3, "show last", &[&running]);
    first.signal(Signal::INT);
    assert_eq!(first.end().code, Some(130));
    let first = id(&stage.list("")[0]);

    let mut second = stage.start(words, &folder);
    second.wait_for_output("run 2 of");
    let running = format!("still running (pid {})", second.id());
    let last = stage.say("show last --format json");
    assert!(last.stderr.contains(&running), "{last:?}");
    assert!(last.stdout.contains(&format!("{first}.fathom")), "{last:?}");
    let named = stage.say(&format!("show {}", id(&stage.list("")[0])));
    assert!(named.stderr.contains(&running) && named.stderr.contains("so far"), "{named:?}");
    second.signal(Signal::INT);
    assert_eq!(second.end().code, Some(130));
}

#[test]
fn no_history_keeps_nothing() {
    let stage = Stage::shared();
    let out = stage.say(&format!("{QUICK} --no-history"));
    assert_eq!(out.code, Some(0), "{out:?}");
    assert!(out.stdout.contains("Session not kept\n"), "{}", out.stdout);
    let json = stage.say(&format!("{QUICK} --no-history --format json")).report().0;
    assert_eq!(json["session"], Value::Null);
    assert_eq!(json["results"][0]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(stage.list(""), Vec::<Value>::new());
    assert_eq!(names(&stage.path("tmp")), Vec::<PathBuf>::new());
    assert_eq!(names(&stage.path("xdg")), Vec::<PathBuf>::new());
}

#[test]
fn damaged_index_is_moved_aside_and_rebuilt() {
    let stage = Stage::shared();
    let ids = stage.measured(2);
    let db = stage.history("history.db");
    // Overwrite the whole index, and then only a piece in the middle of a valid index.
    std::fs::write(&db, "no database ".repeat(1000)).unwrap();
    let out = stage.say("list --format json");
    assert!(out.stderr.contains("damaged") && out.stderr.contains("rebuilds it"), "{out:?}");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&out.stdout).unwrap().len(), 2);
    assert!(stage.history("history.db.damaged").exists());
    let mut bytes = std::fs::read(&db).unwrap();
    let third = bytes.len() / 3;
    bytes[third..2 * third].fill(0xA5);
    std::fs::write(&db, bytes).unwrap();
    assert_eq!(stage.ids("").len(), 2);
    assert_eq!(stage.ids("--limit 1"), ids[1..]);
    std::fs::write(&db, "").unwrap();
    assert_eq!(stage.ids("").len(), 2, "an empty one is a new one");
}

#[test]
fn newer_index_is_refused_until_it_is_moved_aside() {
    let stage = Stage::shared();
    let ids = stage.measured(1);
    let db = stage.history("history.db");
    // Bytes 60 to 63 of an SQLite file are the user version.
    let mut bytes = std::fs::read(&db).unwrap();
    bytes[60..64].copy_from_slice(&77_u32.to_be_bytes());
    std::fs::write(&db, bytes).unwrap();
    stage.must_not(3, "list", &["newer fathom", "77", "--rebuild"]);
    stage.must_not(3, "show last", &["newer fathom"]);
    stage.must(&format!("show {}", ids[0]));
    stage.must(QUICK);
    assert_eq!(stage.ids("--rebuild").len(), 2);
    assert!(stage.history("history.db.version-77").exists());
    assert_eq!(stage.ids("").len(), 2);
}

#[test]
fn list_works_without_a_writable_index() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    assert_eq!(stage.fathom_unprivileged(QUICK, Path::new(NOTHING)).code, Some(0));
    // From here on the directory belongs to root, and the unprivileged user may only read it.
    let home = stage.path("xdg-unprivileged/fathom");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.join(format!("history.db{suffix}")));
    }
    std::os::unix::fs::chown(&home, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let out = stage.fathom_unprivileged("list --format json", Path::new(NOTHING));
    let all: Vec<Value> = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    assert_eq!(all.len(), 1, "{out:?}");
    assert!(!home.join("history.db").exists());
}

#[test]
fn concurrent_processes_lose_nothing() {
    let stage = Stage::shared();
    let together: Vec<Running> = (0..4).map(|_| stage.start(QUICK, Path::new(NOTHING))).collect();
    for one in together {
        let out = one.end();
        assert_eq!(out.code, Some(0), "{out:?}");
        assert_eq!(out.stderr, "");
    }
    assert_eq!(stage.ids("").len(), 4);
    let tagging: Vec<Running> =
        (0..4).map(|n| stage.start(&format!("tag last tag-{n}"), Path::new(NOTHING))).collect();
    for one in tagging {
        assert_eq!(one.end().code, Some(0));
    }
    assert_eq!(stage.list("--limit 1")[0]["words"]["tags"].as_array().unwrap().len(), 4);
}

#[test]
fn ten_kills_lose_no_completed_run() {
    let stage = Stage::shared();
    kills(&stage, 10);
}

/// Kills runs and imports at varying times. After each kill the list works, and no session that had ended before is missing.
pub(crate) fn kills(stage: &Stage, times: usize) {
    let away = stage.folder("away");
    let mut kept = stage.measured(2);
    let other = "20200101-000000-1";
    let (theirs, ours) = (away.join(format!("{other}.fathom")), stage.session(other));
    std::fs::copy(stage.session(&kept[0]), &theirs).unwrap();
    let bytes = std::fs::read(&theirs).unwrap();
    let whole = [stage.say(QUICK).took, stage.fathom("import", &theirs).took];
    std::fs::remove_file(&ours).unwrap();
    let mut cut = [0, 0];
    for round in 0..times {
        // Kill at times between the first instruction and after the end, in mixed order.
        let share = 1.2 * ((round * 37) % times) as f64 / times as f64;
        let run = stage.start(QUICK, Path::new(NOTHING));
        std::thread::sleep(whole[0].mul_f64(share));
        run.signal(Signal::KILL);
        let process = run.id();
        let killed = run.end().code.is_none();
        let all = ended_are_there(stage, &kept);
        if killed {
            cut[0] += 1;
        } else {
            kept.push(all.into_iter().find(|id| id.ends_with(&format!("-{process}"))).unwrap());
        }

        let import = stage.start("import", &theirs);
        std::thread::sleep(whole[1].mul_f64(share));
        import.signal(Signal::KILL);
        cut[1] += usize::from(import.end().code.is_none());
        ended_are_there(stage, &kept);
        if ours.exists() {
            assert_eq!(std::fs::read(&ours).unwrap(), bytes, "half of it was imported");
            std::fs::remove_file(&ours).unwrap();
        }
    }
    println!("of {times} runs and imports each {} and {} were killed before their end", cut[0], cut[1]);
    assert!(cut[0] > 0 && cut[1] > 0, "every one had ended before its kill: {cut:?}");
}

#[track_caller]
fn ended_are_there(stage: &Stage, ids: &[String]) -> Vec<String> {
    let out = stage.say("list --format json");
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{out:?}");
    let all: Vec<Value> = serde_json::from_str(&out.stdout).unwrap();
    for known in ids {
        let entry =
            all.iter().find(|e| id(e) == *known).unwrap_or_else(|| panic!("{known} is lost: {all:#?}"));
        assert_eq!((&entry["ending"]["how"], &entry["verdict"]), (&"complete".into(), &"VALID".into()));
    }
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    for entry in all.iter().filter(|e| !known.contains(e["id"].as_str().unwrap())) {
        assert!(entry["problem"].is_null() || entry["ending"]["how"] == "cut", "{entry:#}");
    }
    all.iter().map(id).collect()
}

/// Lists a very large number of sessions, copied from one without its intervals, and prints the time.
pub(crate) fn list_many(stage: &Stage, many: usize) {
    let origin = stage.session(&stage.measured(1)[0]);
    let text = std::fs::read_to_string(origin).unwrap();
    let frames: Vec<Frame> = text.lines().skip(1).map(|l| serde_json::from_str(&l[9..]).unwrap()).collect();
    let small = frames.into_iter().filter(|f| !matches!(f, Frame::Evidence(_) | Frame::Intervals(_)));
    let mut small: Vec<Frame> = small.collect();
    for n in 1..many {
        let Frame::Header(header) = &mut small[0] else { panic!("no header") };
        header.started = format!("2020-01-01T{:02}:{:02}:{:02}+00:00", n / 3600, n / 60 % 60, n % 60);
        let lines: String = small.iter().map(|f| record::encode(f).unwrap()).collect();
        let id = format!("20200101-{:02}{:02}{:02}-{n}", n / 3600, n / 60 % 60, n % 60);
        std::fs::write(stage.session(&id), format!("{}{lines}", record::MAGIC)).unwrap();
    }
    let first = stage.start("list", Path::new(NOTHING)).end_within(Duration::from_secs(1800));
    assert!(first.stderr.contains("not in the index yet"), "{}", first.stderr);
    println!("{many} sessions were indexed in {:?}", first.took);
    for words in
        ["list", "list --tag none", "list --target data --verdict valid", "list --limit 0", "show last"]
    {
        let mut took: Vec<Duration> = (0..11).map(|_| stage.say(words)).map(|out| out.took).collect();
        took.sort();
        println!("{words}: {:?} (median of {}; {:?} to {:?})", took[5], took.len(), took[0], took[10]);
    }
    assert_eq!(stage.list("").len(), many);
    assert_eq!(stage.must("list --limit 0").lines().count(), many + 2);
}
