//! Programs that begin to use a target after it was prepared: before the first run and between runs. Their data is not touched.

use crate::disk::{Device, Disk, Image, make};
use crate::in_use::{hard_link, python, refused, sound, sum, until, unwrapped};
use crate::stage::{Outcome, Running, Stage, is_root, skip};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const SHORT: &str = "--rw randwrite --size 16m --time 100ms --warmup 0 --runs 1";

/// Starts fathom, and waits until it has prepared the target and watches the machine.
fn watching(command: &mut Command) -> Running {
    let mut run = Running::start(command.env_remove("FATHOM_TEST_IDLE"));
    run.wait_for_output("watching the machine before the first run");
    run
}

/// Starts to write a target, and acts after the preparation and before the first run. Fails unless the run is refused with these words and
/// the target is unchanged.
#[track_caller]
fn before_the_first_run<T>(
    stage: &Stage,
    inside: &[String],
    (target, victim): (&Path, &Path),
    come: impl FnOnce() -> T,
    words: &[&str],
) {
    let before = sum(victim);
    let words_of_run = format!("run {SHORT} --destroy {}", target.display());
    let mut command = stage.command(inside, &words_of_run, target);
    let run = watching(&mut command);
    let newcomer = run.while_stopped(come);
    refused(&run.end(), words);
    assert_eq!(sum(victim), before, "it was written");
    drop(newcomer);
}

/// Number of frames of a kind in the only session.
fn count(stage: &Stage, frame: &str) -> usize {
    let sessions = stage.sessions();
    let text = sessions.first().and_then(|s| fs::read_to_string(s).ok()).unwrap_or_default();
    text.matches(&format!("{{\"{frame}\":")).count()
}

/// A loop device over a file or device.
fn bound(over: &Path, how: &str) -> Device {
    Device::attach(&[&how], over).unwrap()
}

#[test]
fn file_in_use_before_the_first_run_is_not_written() {
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let alone = (file.as_path(), file.as_path());
    let writer = || python(&stage, "f = open(sys.argv[1], 'r+b')", &file);
    before_the_first_run(&stage, &[], alone, writer, &["open for writing by python3"]);
    if !is_root() {
        return;
    }
    before_the_first_run(
        &stage,
        &[],
        alone,
        || bound(&file, "--direct-io=on"),
        &["the backing file of loop"],
    );
    // A read-only loop device under another name of the file does not write, but counts as a user.
    let link = hard_link(&stage, &file);
    before_the_first_run(&stage, &[], alone, || bound(&link, "--read-only"), &["the backing file of loop"]);
}

#[test]
fn device_in_use_before_the_first_run_is_not_written() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(device) = Device::new(&stage, 64, Image::Direct) else { return };
    let both = (device.path.as_path(), device.image.as_path());
    before_the_first_run(
        &stage,
        &[],
        both,
        || bound(&device.path, "--direct-io=off"),
        &["the backing file of loop"],
    );
    let writer = || python(&stage, "f = os.open(sys.argv[1], os.O_WRONLY)", &device.path);
    before_the_first_run(&stage, &[], both, writer, &["open for writing by python3"]);
    // A loop device over the other half of the same image.
    let half = || bound(&device.image, "--offset=33554432");
    before_the_first_run(&stage, &[], both, half, &["also the backing file of loop"]);
}

#[test]
fn file_turned_into_swap_before_the_first_run_is_not_written() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let Some(disk) = Disk::new(&stage, "ext4", Image::Direct) else { return };
    let script = "dd if=/dev/urandom of=swap bs=1M count=32 status=none && chmod 600 swap && mkswap -q swap && \
                  (swapon swap && swapoff swap && echo on || echo off)";
    if disk.sh(script) != "on" {
        return skip("this machine does not swap to a file");
    }
    let swap = disk.dir.join("swap");
    let inside = disk.enter();
    let mut command = stage.command(&inside, &format!("run {SHORT} --destroy {}", swap.display()), &swap);
    let run = watching(&mut command);
    run.while_stopped(|| disk.sh("swapon swap"));
    let out = run.end();
    // Disable the swap space before any assertion can fail.
    disk.sh("swapoff swap");
    refused(&out, &["swap space in use"]);
}

#[test]
fn image_mounted_between_phases_is_not_written() {
    if !is_root() {
        return;
    }
    let stage = Stage::shared();
    let image = stage.path("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    if let Err(why) = make("ext4", &image) {
        return skip(&why);
    }
    let job = stage.path("job.toml");
    let phases = "bs = \"4k\"\nwarmup = 0\nruns = 2\n[[phase]]\nrw = \"randread\"\ntime = \"4s\"\n[[phase]]\n\
                  rw = \"randwrite\"\ntime = \"1s\"\n";
    fs::write(&job, phases).unwrap();
    let run =
        stage.start(&format!("run {} --destroy {1} {1}", job.display(), image.display()), Path::new(""));
    until("the first phase begins", || count(&stage, "run_start") > 0);
    let script = format!(
        "d=$(losetup --find --show {}); mount \"$d\" \"$1\"; losetup --detach \"$d\"; echo kept > \"$1/keep\"",
        image.display()
    );
    let Some(mounted) = Disk::served(&stage, &["losetup"], &script) else { return };
    let out = run.end();
    ended_early(
        &stage,
        &out,
        1,
        &["the backing file of loop", "in the mount namespace of", "all runs so far are kept"],
    );
    assert_eq!(mounted.sh("cat keep"), "kept");
    drop(mounted);
    sound(&image);
}

/// Fails unless this many runs were measured, reported and kept, and the report has this reason for the early end.
#[track_caller]
fn ended_early(stage: &Stage, out: &Outcome, runs: usize, words: &[&str]) {
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(out.stdout.contains("IOPS"), "{out:?}");
    for word in words {
        assert!(unwrapped(&out.stderr).contains(word), "'{word}': {out:?}");
    }
    assert_eq!((count(stage, "run_start"), count(stage, "run_end")), (runs, runs), "{out:?}");
}

#[test]
fn file_opened_between_runs_ends_the_session() {
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let words = "run --rw randwrite --size 16m --time 2s --warmup 0 --runs 2 --destroy";
    let run = stage.start(&format!("{words} {}", file.display()), &file);
    until("the first run begins", || count(&stage, "run_start") > 0);
    let writer = python(&stage, "f = open(sys.argv[1], 'a')", &file);
    let out = run.end();
    let who = format!("open for writing by python3 ({})", writer.id());
    ended_early(&stage, &out, 1, &[&who, "name another target"]);
}

const CELLS: &str = "--bs 4k..64k --depth 1..4 --time 1s --warmup 0 --runs 1 --exhaustive";

#[test]
fn sweep_ends_when_its_target_was_replaced() {
    let stage = Stage::shared();
    let (file, other) = (stage.file("data", 32), stage.file("other", 32));
    let run = stage.start(&format!("sweep --rw randread {CELLS}"), &file);
    until("the first cell was measured", || count(&stage, "run_end") > 0);
    fs::rename(&other, &file).unwrap();
    let began = count(&stage, "run_start");
    let out = run.end();
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(unwrapped(&out.stderr).contains("has changed since the plan was made"), "{out:?}");
    let cells = count(&stage, "run_start");
    assert!(cells <= began + 1, "{cells} cells began, {began} before it was replaced: {out:?}");
    assert_eq!(count(&stage, "run_end"), cells);
}

#[test]
fn sweep_ends_when_its_target_comes_into_use() {
    let stage = Stage::shared();
    let file = stage.file("data", 32);
    let run = stage.start(&format!("sweep --rw randwrite {CELLS} --destroy {}", file.display()), &file);
    until("the first cell was measured", || count(&stage, "run_end") > 0);
    let _writer = python(&stage, "f = open(sys.argv[1], 'r+b')", &file);
    let began = count(&stage, "run_start");
    let out = run.end();
    assert_eq!(out.code, Some(3), "{out:?}");
    assert!(unwrapped(&out.stderr).contains("open for writing by python3"), "{out:?}");
    assert!(count(&stage, "run_start") <= began + 1, "{out:?}");
}

/// Files that fathom itself had open never count as users, however late they are closed.
#[test]
fn undisturbed_session_writes_in_every_run() {
    let stage = Stage::shared();
    let engines = ["sync", "io_uring", "io_uring:sqpoll", "io_uring:plain-files", "libaio", "mmap"];
    let all = |run: &dyn Fn(&str) -> Outcome, place: &str| {
        for engine in engines {
            let cache = if engine == "mmap" { "mmap" } else { "direct" };
            let depth = if ["sync", "mmap"].contains(&engine) { 1 } else { 8 };
            let words = format!(
                "run --rw randwrite --engine {engine} --cache {cache} --depth {depth} --workers 2 --size 16m \
                 --time 100ms --warmup 0 --runs 4 --attempts 1 --quiet --format json"
            );
            let out = run(&words);
            assert!(matches!(out.code, Some(0 | 1)), "{engine} on {place}: {out:?}");
            let runs = out.report().0["results"][0]["runs"].as_array().map(Vec::len);
            assert_eq!(runs, Some(4), "{engine} on {place}");
        }
    };
    let file = stage.file("data", 32);
    all(&|words| stage.fathom(&format!("{words} --destroy {}", file.display()), &file), "the stage");
    for kind in ["xfs", "btrfs"].into_iter().filter(|_| rustix::process::geteuid().is_root()) {
        let Some(disk) = Disk::new(&stage, kind, Image::Direct) else { continue };
        let file = disk.file("data", 32);
        let run = |words: &str| disk.fathom(&stage, &format!("{words} --destroy {}", file.display()), &file);
        all(&run, kind);
    }
}
