//! Job files of fio: files with its names, each block as often as there, what is refused.
//!
//! For: what `fathom run JOB.fio` does to files. Not for: the language, which has unit tests, nor fio's output.

use crate::output::says;
use crate::stage::Stage;

#[test]
fn a_job_file_of_fio_makes_its_files_and_touches_each_block_once() {
    let stage = Stage::new();
    let folder = stage.folder("here");
    let file = stage.path("mine.fio");
    let text = format!(
        "[global]\nthread\nsize=17m\ndirectory={}\n[w]\nrw=write\nbs=1m\n[r]\nstonewall\nrw=randread\nbs=64k\nnumjobs=2\ngroup_reporting\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    for _ in 0..2 {
        let out = stage.fathom("run --runs 1 --attempts 1 --format json --no-history", &file);
        assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
        assert!(out.stderr.contains("thread changes nothing here"), "{out:?}");
        let report: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let ops = |at: usize, kind: &str| report["results"][at][kind]["ops"].as_u64();
        assert_eq!((ops(0, "write"), ops(1, "read")), (Some(17), Some(2 * 17 * 16)), "{report:#}");
    }
    // The second time they are its own, and may be written again.
    for name in ["w.0.0", "r.0.0", "r.1.0"] {
        assert_eq!(std::fs::metadata(folder.join(name)).unwrap().len(), 17 << 20, "{name}");
    }
    // What is not, is not.
    std::fs::remove_file(folder.join("w.0.0")).unwrap();
    std::fs::write(folder.join("w.0.0"), vec![7; 17 << 20]).unwrap();
    says(&stage.fathom("run --runs 1 --quiet", &file), 2, &["--destroy", "w.0.0"]);
    assert!(std::fs::read(folder.join("w.0.0")).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn what_a_job_file_of_fio_cannot_have_here_is_refused_by_its_name() {
    let stage = Stage::beside_others();
    let file = stage.path("mine.fio");
    std::fs::write(&file, "[a]\nsize=1m\nverify=md5\n").unwrap();
    says(&stage.fathom("run", &file), 2, &["mine.fio:3:1", "verify=md5", "fathom verify"]);
    assert!(!stage.path("a.0.0").exists(), "nothing is made");
}
