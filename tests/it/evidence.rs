//! Evidence in session files: every item of the catalogue has a text or a reason, for root and for other users.

use crate::stage::{Stage, is_root};
use fathom_io::session;
use model::evidence;
use model::evidence::{Moment, Probe, Snapshot};
use model::record::Record;
use std::path::Path;

const FACTS: [&str; 6] = [
    evidence::LIMITS,
    evidence::GOVERNORS,
    evidence::SLEEPS,
    evidence::VENDOR,
    evidence::PRODUCT,
    evidence::LIBRARIES,
];
const GATHERED: [&str; 5] =
    [evidence::HOUSEKEEPERS, evidence::TEMPERATURES, evidence::RAID, evidence::CPU_STAT, evidence::SUSPENDED];

fn record(dir: &Path) -> Record {
    let files = crate::stage::names(&dir.join("fathom/sessions"));
    session::read(files.last().unwrap()).unwrap_or_else(|why| panic!("{why:?}"))
}

fn assert_complete(record: &Record) {
    let facts = &record.header.hosts[0].facts;
    assert!(FACTS.iter().all(|name| facts.contains_key(*name)), "{facts:?}");
    assert!(facts[evidence::LIBRARIES].as_ref().is_ok_and(|text| text.contains("libc")), "{facts:?}");
    let run = &record.runs[0];
    let whole = |s: &&Snapshot| s.moment != Moment::During;
    for snapshot in record.evidence.iter().chain(&run.evidence).filter(whole) {
        let missing = GATHERED.iter().find(|name| !snapshot.files.contains_key(**name));
        assert_eq!(missing, None, "{:?}", snapshot.moment);
    }
    let during: Vec<_> = run.evidence.iter().filter(|s| s.moment == Moment::During).collect();
    let named = |s: &&Snapshot| s.text(evidence::THREADS).is_ok_and(|t| t.contains(": fathom-0\n"));
    assert!(!during.is_empty() && during.iter().all(named), "{during:?}");
    let synced = run.evidence.iter().find(|s| s.moment == Moment::Synced).unwrap();
    assert!(synced.targets[0].room.as_ref().is_some_and(Result::is_ok), "{synced:?}");
    assert!(synced.targets[0].extents.is_some());
    let workers = &run.end.as_ref().unwrap().workers;
    assert!(workers.iter().all(|w| w.ready_ns.as_ref().is_ok_and(|ns| *ns < w.wall_ns)), "{workers:?}");
}

fn probe(record: &Record) -> Option<&Result<Probe, String>> {
    let prepared = record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare).unwrap();
    prepared.targets[0].probe.as_ref()
}

#[test]
fn session_file_contains_all_evidence_of_the_checks() {
    let stage = Stage::shared();
    stage.fathom("run --rw randrw --size 16m --time 700ms --runs 1 --quiet", &stage.folder("place"));
    let record = record(&stage.path("xdg"));
    assert_complete(&record);
    match probe(&record).unwrap() {
        Ok(probe) => {
            assert_eq!((probe.zero_blocks, probe.first_ns.len()), (0, probe.again_ns.len()));
            assert!(!probe.first_ns.is_empty());
        }
        Err(why) => assert!(why.contains("direct reads"), "{why}"),
    }
}

#[test]
fn users_without_rights_get_reasons_instead_of_failures() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let folder = stage.unprivileged_folder("place");
    let words = "run --rw randrw --size 16m --time 700ms --runs 1 --quiet";
    stage.fathom_unprivileged(words, &folder);
    assert_complete(&record(&stage.path("xdg-unprivileged")));
}

#[test]
fn zeros_are_found_before_measuring_and_unread_files_are_not_probed() {
    let stage = Stage::shared();
    let path = stage.path("zeros");
    std::fs::write(&path, vec![0; 8 << 20]).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    stage.fathom("run --rw randread --time 100ms --runs 1 --quiet", &path);
    if let Ok(probe) = probe(&record(&stage.path("xdg"))).unwrap() {
        assert_eq!(probe.zero_blocks as usize, probe.first_ns.len());
    }
    stage.fathom("run --rw randwrite --size 16m --time 100ms --runs 1 --quiet", &stage.folder("place"));
    assert_eq!(probe(&record(&stage.path("xdg"))), None);
}

#[test]
fn evidence_during_runs_can_be_disabled() {
    let stage = Stage::shared();
    let words = "run --rw randread --size 16m --time 700ms --runs 1 --quiet --test-hook no-evidence";
    stage.fathom(words, &stage.folder("place"));
    let record = record(&stage.path("xdg"));
    assert!(record.runs[0].evidence.iter().all(|s| s.moment != Moment::During));
    assert!(record.runs[0].evidence.iter().any(|s| s.moment == Moment::Stop));
}
