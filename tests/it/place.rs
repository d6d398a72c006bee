//! The device below a target (`--expect-device`), and write data that storage cannot shrink.

use crate::disk::{Disk, Image};
use crate::stage::{Stage, is_root};

const SHORT: &str = "--time 300ms --warmup 50ms --runs 1 --quiet --format json";

#[test]
fn results_from_an_unexpected_device_are_withheld() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let run = |name: &str| {
        let words = format!("run --rw randread --depth 4 --size 64m --expect-device {name} {SHORT}");
        disk.fathom(&stage, &words, &disk.dir)
    };
    let wrong = run("nosuchdisk");
    let report = wrong.report();
    let finding = report.expect_answer("A14", "finding");
    assert_eq!((&finding["severity"], wrong.code), (&serde_json::json!("void"), Some(1)));
    assert!(
        finding["sentence"].as_str().unwrap().contains("is not on nosuchdisk: it is on loop"),
        "{finding:#}"
    );
    assert_eq!(report.verdict(), "INVALID");

    // Both the path and the name of the device are accepted.
    let path = disk.device.to_str().unwrap();
    for name in [path, path.rsplit('/').next().unwrap()] {
        run(name).report().expect_answer("A14", "holds");
    }
}

#[test]
fn missing_expected_device_is_refused_before_anything_is_touched() {
    let stage = Stage::shared();
    let out = stage.fathom(&format!("run --expect-device /dev/nosuchdisk {SHORT}"), &stage.folder("dir"));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("--expect-device /dev/nosuchdisk"), "{}", out.stderr);
    assert!(stage.sessions().is_empty());
}

#[test]
fn zeros_are_reported_as_too_easy_and_default_data_are_not() {
    let stage = Stage::shared();
    let dir = stage.folder("dir");
    let run = |data: &str| {
        let words = format!("run --rw randwrite --depth 4 --size 64m {data} {SHORT}");
        stage.fathom(&words, &dir).report()
    };
    let zeros = run("--zeros");
    let zeros = zeros.expect_answer("A08", "finding");
    assert!(["biased", "void"].contains(&zeros["severity"].as_str().unwrap()), "{zeros:#}");
    assert_eq!(run("--compress 50").expect_answer("A08", "finding")["severity"], "note");
    run("").expect_answer("A08", "holds");
}
