//! Every engine in every cache mode on every file system: the bytes arrive, operations are counted, and refusals are explained.

use crate::disk::{Disk, Image};
use crate::stage::{Outcome, Stage, is_root, skip};
use engine::engines::ENGINES;
use std::path::Path;

#[test]
fn every_engine_moves_every_byte_on_ext4() {
    on("ext4", Modes::First);
}

#[test]
#[ignore = "long"]
fn every_engine_moves_every_byte_in_every_cache_mode() {
    on("ext4", Modes::All);
}

#[test]
#[ignore = "long"]
fn every_engine_moves_every_byte_on_xfs() {
    on("xfs", Modes::First);
}

#[test]
#[ignore = "long"]
fn every_engine_moves_every_byte_on_btrfs() {
    on("btrfs", Modes::First);
}

/// Cache modes in which engines are tried. File systems differ in direct I/O, the first mode of nearly all engines. The other modes are
/// the same kernel code for all file systems, so one file system is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Modes {
    First,
    All,
}

fn on(kind: &str, modes: Modes) {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, kind, Image::Direct) else { return };
    every_engine(&stage, &|words, target| disk.fathom(&stage, words, target), &disk.dir, modes);
}

#[test]
#[ignore = "long"]
fn every_engine_moves_every_byte_on_tmpfs() {
    let shared = Path::new("/dev/shm");
    if !shared.is_dir() {
        return skip("there is no /dev/shm");
    }
    let stage = Stage::shared();
    let dir = tempfile::tempdir_in(shared).unwrap();
    every_engine(&stage, &|words, target| stage.fathom(words, target), dir.path(), Modes::First);
}

type Fathom<'a> = &'a dyn Fn(&str, &Path) -> Outcome;

fn every_engine(stage: &Stage, fathom: Fathom, dir: &Path, wanted: Modes) {
    for engine in ENGINES.iter().filter(|e| e.moves_bytes) {
        let mut modes = Vec::new();
        for cache in engine.caches {
            let how = format!("--engine {} --cache {}", engine.name, cache.word());
            let out = fathom(&format!("verify --size 16m --bs 64k --passes 1 {how} --quiet"), dir);
            if refused(&how, &out) {
                continue;
            }
            assert_eq!(out.code, Some(0), "{how}: {out:?}");
            assert!(out.stdout.starts_with("VERIFIED 256 blocks"), "{how}: {out:?}");
            modes.push(cache.word());
            if wanted == Modes::First {
                break;
            }
        }
        assert!(!modes.is_empty(), "{} works in no mode here", engine.name);
        let job = job(stage, engine.name, &modes);
        let out = fathom(&format!("run {} --quiet --format json", job.display()), dir);
        assert!(matches!(out.code, Some(0 | 1)), "{}: {out:?}", engine.name);
        let report = out.report();
        let results = report.0["results"].as_array().unwrap();
        assert_eq!(results.len(), 3 * modes.len());
        for (three, mode) in results.chunks(3).zip(modes) {
            let counts =
                |kind: &str| three.iter().map(|r| r[kind]["ops"].as_u64() > Some(0)).collect::<Vec<_>>();
            assert_eq!(counts("read"), [true, false, true], "{} {mode}: {three:#?}", engine.name);
            assert_eq!(counts("write"), [false, true, true], "{} {mode}: {three:#?}", engine.name);
        }
        assert!(report.has_answer("B12", "holds"), "{}: {:#?}", engine.name, report.answers("B12"));
    }
}

/// Whether the run was refused. Fails unless the refusal is one sentence with a fix.
fn refused(how: &str, out: &Outcome) -> bool {
    if !matches!(out.code, Some(2 | 3)) {
        return false;
    }
    let explained = ["type ", "leave ", "name ", "needs "].iter().any(|w| out.stderr.contains(w));
    assert!(explained, "{how} was refused without a fix: {out:?}");
    println!("{how}: {}", out.stderr.trim());
    true
}

/// A job that reads, writes, and does both in every mode, one phase after another. Limited by operations, not by time: with a time limit,
/// a disk that stalls for a moment could leave one direction out.
fn job(stage: &Stage, engine: &str, modes: &[&str]) -> std::path::PathBuf {
    let mut text = format!(
        "engine = \"{engine}\"\nsize = \"16m\"\nbs = \"16k\"\ndepth = 4\ntime = \"10s\"\nops = 100\nwarmup = 0\nruns = 1\n"
    );
    for mode in modes {
        for rw in ["randread", "write", "randrw"] {
            text += &format!("[[phase]]\nrw = \"{rw}\"\ncache = \"{mode}\"\n");
        }
    }
    let path = stage.path("job.toml");
    std::fs::write(&path, text).unwrap();
    path
}
