//! A machine without `/proc` or `/sys`, or with arbitrary content in their place: fathom measures, never reports VALID, and refuses what it
//! cannot do safely. Single unreadable files are tested in [`crate::evidence`].

use crate::disk::{Device, Image};
use crate::in_use::sum;
use crate::stage::{Outcome, Stage, is_root, names, wait};
use std::path::Path;

const RUN: &str = "run --rw randread --depth 4 --size 16m --time 300ms --warmup 0 --runs 5 --attempts 1 --quiet --format json";

/// Changes of the mounts, with their names.
const MACHINES: [(&str, &str); 5] = [
    ("no /proc", "umount -l /proc"),
    ("an empty /proc", "mount -t tmpfs none /proc"),
    (
        "a /proc of nonsense",
        "mount -t tmpfs none /proc && mkdir -p /proc/self/fd /proc/self/task/1 /proc/1/task/1/fd && cd /proc && \
         for f in stat swaps meminfo cpuinfo mounts diskstats loadavg pressure self/mountinfo self/cgroup self/io self/maps \
         self/environ self/status 1/maps 1/stat; do head -c 3000 /dev/urandom > $f; done; \
         for n in $(seq 0 99); do head -c 65536 /dev/urandom > self/fd/$n; done",
    ),
    ("no /sys", "umount -l /sys"),
    (
        "a /sys of nonsense",
        "mount -t tmpfs none /sys && mkdir -p /sys/class/block/loop0/loop /sys/block/vda/queue /sys/dev/block && \
         for f in class/block/loop0/loop/backing_file class/block/loop0/dev block/vda/dev block/vda/queue/rotational dev/block/1:2; \
         do head -c 3000 /dev/urandom > /sys/$f; done",
    ),
];

/// Runs the program without `/proc` or `/sys`, or with other content there.
fn on(stage: &Stage, mounts: &str, words: &str, target: &Path) -> Outcome {
    let script = format!("({mounts}) && exec \"$@\"");
    let prefix = ["unshare", "--mount", "--propagation", "private", "sh", "-c", &script, "sh"];
    wait(&mut stage.command(&prefix.map(str::to_owned), words, target))
}

#[test]
fn results_without_proc_and_sys_are_never_valid() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let (folder, file) = (stage.folder("dir"), stage.file("data", 32));
    for (machine, mounts) in MACHINES {
        for (target, more) in [(&folder, ""), (&file, "--no-history")] {
            let out = on(&stage, mounts, &format!("{RUN} {more}"), target);
            assert!(matches!(out.code, Some(0 | 1)), "{machine}, {}: {out:?}", target.display());
            assert!(!out.stderr.contains("panicked"), "{machine}: {out:?}");
            let report = out.report();
            assert_ne!(report.verdict(), "VALID", "{machine}: {report:?}");
            // On a busy machine the headline may be withheld, but the operations are still reported.
            assert!(report.0["results"][0]["read"]["ops"].as_u64() > Some(0), "{machine}: {report:?}");
            assert!(names(&folder).is_empty(), "{machine}: a file is left");
        }
    }
}

#[test]
fn devices_are_measured_without_sys_or_reported_as_hidden() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    for (machine, mounts) in MACHINES {
        // The image is one hole. Accept A05, because reads of zeros would end the command before the first run.
        let out = on(&stage, mounts, &format!("{RUN} --accept A05"), &device.path);
        if out.code == Some(3) {
            assert!(out.stderr.contains("the kernel shows no device"), "{machine}: {out:?}");
            continue;
        }
        assert!(matches!(out.code, Some(0 | 1)), "{machine}: {out:?}");
        let report = out.report();
        assert_ne!(report.verdict(), "VALID", "{machine}: {report:?}");
        assert!(report.0["results"][0]["read"]["ops"].as_u64() > Some(0), "{machine}: {report:?}");
    }
}

#[test]
fn unsafe_writes_without_proc_and_sys_are_refused() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let words = format!("{} --destroy {}", RUN.replace("randread", "randwrite"), file.display());
    for (machine, mounts) in MACHINES {
        let before = sum(&file);
        let out = on(&stage, mounts, &words, &file);
        if out.code == Some(3) {
            assert!(out.stderr.contains("cannot check whether"), "{machine}: {out:?}");
            assert_eq!(sum(&file), before, "{machine}");
        } else {
            // The kernel itself reports to fathom which program has the file open.
            assert!(machine.contains("/proc") && matches!(out.code, Some(0 | 1)), "{machine}: {out:?}");
            assert_ne!(out.report().verdict(), "VALID", "{machine}");
        }
    }
}
