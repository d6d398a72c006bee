//! Replays of fio logs, priorities of single operations, and pauses, compared with fio: `read_iolog` and its options, `cmdprio_percentage`,
//! `thinktime_iotime`, `rw_sequencer`.

use crate::fio::{fio, fio_with};
use crate::stage::{Outcome, Stage, skip, tool};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// The first job of the JSON.
#[track_caller]
fn job(out: &Outcome) -> Value {
    assert_eq!(out.code, Some(0), "{out:?}");
    let all: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    all["jobs"][0].clone()
}

/// Runs the same command line under fathom and, if it is installed, under fio.
fn both(stage: &Stage, words: &str) -> [Option<Value>; 2] {
    // After fio wrote the file, it no longer counts as fathom's own, although fathom made it. So allow overwriting.
    let data = stage.path("data");
    let set = [("FATHOM_DESTROY", data.to_str().unwrap())];
    let ours = job(&fio_with(stage, &format!("{words} --output-format=json"), &set));
    let typed = format!("fio {words} --output-format=json");
    let typed: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
    let typed: Vec<&dyn AsRef<OsStr>> = typed.iter().map(|word| word as &dyn AsRef<OsStr>).collect();
    let theirs = tool(&typed).map_err(|why| skip(&format!("fio does not run here: {why}")));
    [
        Some(ours),
        theirs.ok().and_then(|text| Some(serde_json::from_str::<Value>(&text).ok()?["jobs"][0].clone())),
    ]
}

/// Operations and bytes of each direction.
fn moved(job: &Value) -> [Option<u64>; 5] {
    let of = |direction: &str, key: &str| job[direction][key].as_u64();
    [
        of("read", "total_ios"),
        of("read", "io_bytes"),
        of("write", "total_ios"),
        of("write", "io_bytes"),
        of("trim", "total_ios"),
    ]
}

/// A log of reads of a file and one write: 0.1 s and 0.2 s apart.
fn log(stage: &Stage, file: &Path) -> std::path::PathBuf {
    let file = file.display();
    let text = format!(
        "fio version 3 iolog\n0 {file} add\n0 {file} open\n0 {file} read 0 4096\n100000 {file} write 8192 8192\n\
         100000 {file} datasync 0 0\n300000 {file} read 4096 512\n300000 {file} close\n"
    );
    let log = stage.path("mine.log");
    std::fs::write(&log, text).unwrap();
    log
}

#[test]
fn fio_logs_are_replayed_at_their_times_or_at_full_speed() {
    let stage = Stage::shared();
    let data = stage.path("data");
    let words =
        format!("--name=j --filename={} --rw=randrw --bs=4k --size=1m --write_iolog=LOG", data.display());
    let log = stage.path("x.log");
    job(&fio(&stage, &format!("{} --output-format=json", words.replace("LOG", &log.display().to_string()))));
    let words = format!("--name=r --read_iolog={} --replay_no_stall=1", log.display());
    let [ours, theirs] = both(&stage, &words);
    let ours = ours.unwrap();
    assert_eq!(moved(&ours).map(Option::unwrap)[..4].iter().step_by(2).sum::<u64>(), 256, "{ours}");
    assert!(theirs.is_none_or(|theirs| moved(&theirs) == moved(&ours)));
    let log = self::log(&stage, &data);
    for (speed, least_ms) in [("100", 300), ("200", 150)] {
        let words = format!("--name=r --read_iolog={} --replay_time_scale={speed}", log.display());
        let both = both(&stage, &words);
        for job in both.iter().flatten() {
            assert_eq!(moved(job), [Some(2), Some(4608), Some(1), Some(8192), Some(0)], "{job}");
        }
        // fio skips the wait before the first operation of the log, and does not count such syncs.
        let ours = both[0].as_ref().unwrap();
        assert_eq!(ours.pointer("/sync/total_ios").and_then(Value::as_u64), Some(1));
        let runtime = ours["job_runtime"].as_u64();
        assert!(runtime >= Some(least_ms), "{speed}: {runtime:?}");
    }
}

#[test]
fn logs_are_replayed_on_another_file_with_changes() {
    let stage = Stage::shared();
    let (data, other) = (stage.path("data"), stage.path("other"));
    for file in [&data, &other] {
        std::fs::write(file, vec![0; 1 << 20]).unwrap();
    }
    let log = self::log(&stage, &data);
    let words = format!(
        "--name=r --read_iolog={} --replay_redirect={} --replay_scale=2 --replay_align=512 --replay_no_stall=1 --destroy {}",
        log.display(),
        other.display(),
        other.display()
    );
    let (ours, offsets) = (stage.path("o_clat.1.log"), stage.path("o"));
    let logged = format!("{words} --write_lat_log={} --log_offset=1 --output-format=json", offsets.display());
    assert_eq!(moved(&job(&fio(&stage, &logged)))[0], Some(2));
    let text = std::fs::read_to_string(ours).unwrap();
    let mut places: Vec<&str> = text.lines().filter_map(|line| line.split(", ").nth(4)).collect();
    places.sort_unstable();
    assert_eq!(places, ["0", "2048", "4096"], "{text}");
    assert!(std::fs::read(&data).unwrap().iter().all(|byte| *byte == 0), "the file of the log is left alone");
    assert!(std::fs::read(&other).unwrap()[4096..12288].iter().any(|byte| *byte != 0));
    let skipped = fio(&stage, &format!("{words} --replay_skip=sync,write --output-format=json"));
    assert_eq!(moved(&job(&skipped))[..3], [Some(2), Some(4608), Some(0)]);
    // A log does not write to files of the user.
    let refused = fio(&stage, &format!("--name=r --read_iolog={}", log.display()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--destroy"), "{refused:?}");
}

#[test]
fn fathom_job_files_accept_replays_as_streams() {
    let stage = Stage::shared();
    let data = stage.path("data");
    std::fs::write(&data, vec![7; 1 << 20]).unwrap();
    let (log, file) = (self::log(&stage, &data), stage.path("mine.toml"));
    let text = format!(
        "[[stream]]\nname = \"again\"\nreplay = \"{}\"\npace = \"fast\"\nreplay-skip = \"write\"\ncache = \"buffered\"\n\
         [[stream]]\nname = \"reads\"\nrw = \"read\"\nbs = \"4k\"\nops = 7\ncache = \"buffered\"\ntarget = \"{}\"\n",
        log.display(),
        data.display()
    );
    std::fs::write(&file, text).unwrap();
    let out = stage.fathom("run --runs 1 --attempts 1 --format json --no-history", &file);
    let report: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"));
    let ops = |at: usize| report["results"][at]["read"]["ops"].as_u64();
    assert_eq!((ops(0), ops(1)), (Some(2), Some(7)), "{report:#}");
    assert_eq!(report["results"][0]["replay"]["pace"], "fast");
    std::fs::write(&file, format!("replay = \"{}\"\nrw = \"read\"\n", log.display())).unwrap();
    let refused = stage.fathom("run", &file);
    assert_eq!((refused.code, refused.stderr.contains("has its own")), (Some(2), true), "{refused:?}");
}

#[test]
fn prioritised_operations_have_separate_latencies() {
    let stage = Stage::shared();
    let data = stage.path("data");
    for engine in ["libaio", "io_uring"] {
        let words = format!(
            "--name=p --filename={} --size=4m --rw=randread --bs=4k --ioengine={engine} --iodepth=4 --cmdprio_percentage=20 \
             --cmdprio_class=2 --cmdprio=3 --number_ios=1000",
            data.display()
        );
        for job in both(&stage, &words).into_iter().flatten() {
            let prios = job["read"]["prios"].as_array().unwrap_or_else(|| panic!("{job}"));
            let of = |class: u64, prio: u64| {
                let one = prios.iter().find(|one| one["prioclass"] == class && one["prio"] == prio);
                one.and_then(|one| one["clat_ns"]["N"].as_u64())
                    .unwrap_or_else(|| panic!("{class}/{prio}: {job}"))
            };
            assert_eq!(of(0, 0) + of(2, 3), 1000);
            // A fifth of the operations have the priority, within four standard deviations.
            assert!((150..=250).contains(&of(2, 3)), "{job}");
        }
    }
    let refused = stage.fathom("run --engine sync --op-priority 20%=rt:0", &data);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("io_uring, libaio"), "{refused:?}");
}

#[test]
fn thinktime_pauses_by_time_and_spins_when_requested() {
    // Spinning only shows in the CPU time if other tests leave a CPU free.
    let stage = Stage::one_per_cpu();
    let data = stage.path("data");
    let words = format!("--name=t --filename={} --size=1m --bs=4k --rw=read", data.display());
    // 256 operations take less than a burst of 0.2 s, so there is no pause. With bursts of 50 operations there are five pauses of 0.1 s.
    let runtime = |more: &str| {
        both(&stage, &format!("{words} {more}")).map(|job| job.and_then(|job| job["job_runtime"].as_u64()))
    };
    assert!(runtime("--thinktime=100ms --thinktime_iotime=5").iter().flatten().all(|ms| *ms < 5000));
    let both = runtime("--thinktime=100ms --thinktime_iotime=5 --thinktime_blocks=50");
    assert!(both.iter().flatten().all(|ms| *ms >= 500), "{both:?}");
    let spun = fio(
        &stage,
        &format!("{words} --number_ios=5 --thinktime=40ms --thinktime_spin=40ms --output-format=json"),
    );
    let job = job(&spun);
    assert!(job["usr_cpu"].as_f64() > Some(20.0), "{job}");
}

#[test]
fn rw_sequencer_identical_repeats_each_offset() {
    let stage = Stage::shared();
    let words = "--name=s --filename=DATA --size=1m --bs=4k --rw=randread:4 --rw_sequencer=identical --write_lat_log=PREFIX --log_offset=1";
    let (ours, theirs) = crate::fio_logs::both(&stage, words);
    for logs in [Some(ours), theirs].into_iter().flatten() {
        let rows = &logs.iter().find(|(name, _)| name == "p_clat.1.log").unwrap().1;
        let offsets: Vec<u64> = rows.iter().map(|row| row[4]).collect();
        assert_eq!(offsets.len(), 256);
        assert!(offsets.chunks(4).all(|four| four.iter().all(|offset| *offset == four[0])), "{offsets:?}");
    }
}

/// Time between operations of a trace: for 300 operations far more than they take at full speed, even on a busy machine.
const APART: Duration = Duration::from_millis(4);

/// A file of blktrace: the operations of one thread, each queued, issued [`APART`] after the previous one, and completed (kernel
/// `include/uapi/linux/blktrace_api.h`).
fn blktrace(operations: &[(&str, u64, u32)]) -> Vec<u8> {
    const QUEUED: u32 = 1 | 1 << 20;
    const ISSUED: u32 = 7 | 1 << 22;
    const COMPLETED: u32 = 8 | 1 << 23;
    let mut out = Vec::new();
    let mut event = |time_ns: u64, sector: u64, bytes: u32, action: u32| {
        out.extend(0x6561_7407_u32.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend([time_ns, sector].map(u64::to_le_bytes).concat());
        // After the action: process, device, CPU, and that there was no error and no further data.
        out.extend([bytes, action, 42, 0x80_0000, 0, 0].map(u32::to_le_bytes).concat());
    };
    for ((kind, sector, bytes), index) in operations.iter().zip(1_u64..) {
        let direction = if *kind == "read" { 1 << 16 } else { 1 << 17 };
        let at_ns = index * APART.as_nanos() as u64;
        for (behind_ns, step) in [(0, QUEUED), (1000, ISSUED), (200_000, COMPLETED)] {
            event(at_ns + behind_ns, *sector, *bytes, step | direction);
        }
    }
    out
}

/// Direction, bytes and offset of each operation in a bandwidth log.
fn logged(file: &Path) -> Vec<[u64; 3]> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let number = |field: &str| field.trim().parse().unwrap();
    let row = |line: &str| {
        let fields: Vec<u64> = line.split(',').take(5).map(number).collect();
        [fields[2], fields[3], fields[4]]
    };
    text.lines().map(row).collect()
}

#[test]
fn blktrace_files_are_replayed_as_by_fio() {
    let stage = Stage::shared();
    let data = stage.path("data");
    std::fs::write(&data, vec![1; 4 << 20]).unwrap();
    // Operations of several sizes, forwards and backwards, within a thousand sectors.
    let operations: Vec<(&str, u64, u32)> = (0..300_u64)
        .map(|n| {
            (
                if n % 3 == 1 { "write" } else { "read" },
                n * 7919 % 1000 * 8,
                [4096, 512, 16384][n as usize % 3],
            )
        })
        .collect();
    let trace = stage.path("trace.bin");
    std::fs::write(&trace, blktrace(&operations)).unwrap();
    let asked: Vec<[u64; 3]> = operations
        .iter()
        .map(|(kind, sector, bytes)| [u64::from(*kind == "write"), u64::from(*bytes), sector * 512])
        .collect();
    for more in ["--replay_no_stall=1", ""] {
        let words = format!(
            "--name=r --read_iolog={} --replay_redirect={} --iodepth=1 --ioengine=psync --log_offset=1 {more}",
            trace.display(),
            data.display()
        );
        let of = |who: &str| stage.folder(who).join("p");
        let log = |who: &str| format!(" --write_bw_log={}", of(who).display());
        let reported = |who: &str| logged(&of(who).with_file_name("p_bw.1.log"));
        let typed = format!("{words}{} --destroy {} --output-format=json", log("ours"), data.display());
        let ours = job(&fio(&stage, &typed));
        assert_eq!(moved(&ours), [Some(200), Some(100 * (4096 + 16384)), Some(100), Some(51200), Some(0)]);
        assert_eq!(reported("ours"), asked, "{more}");
        let runtime = Duration::from_millis(ours["job_runtime"].as_u64().unwrap());
        assert_eq!(more.is_empty(), runtime >= APART * 295, "{more}: {runtime:?}");
        let typed = format!("fio {words}{} --output-format=json", log("theirs"));
        let typed: Vec<String> = typed.split_whitespace().map(str::to_owned).collect();
        let typed: Vec<&dyn AsRef<OsStr>> = typed.iter().map(|word| word as &dyn AsRef<OsStr>).collect();
        match tool(&typed) {
            Ok(text) => {
                let theirs: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(moved(&theirs["jobs"][0]), moved(&ours));
                assert_eq!(reported("theirs"), asked, "{more}");
            }
            Err(why) => skip(&format!("fio does not run here: {why}")),
        }
    }
    // Converted to a capture, the trace gives the same replay.
    let capture = stage.path("trace.capture");
    let imported = stage.fathom(&format!("capture -o {} --import", capture.display()), &trace);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let again = stage.fathom(
        &format!(
            "run --replay {} --pace fast --destroy {} --runs 1 --attempts 1 --no-history --format json",
            capture.display(),
            data.display()
        ),
        &data,
    );
    let report: Value = serde_json::from_str(&again.stdout).unwrap_or_else(|e| panic!("{e}: {again:?}"));
    let ops = |kind: &str| report["results"][0][kind]["ops"].as_u64();
    assert_eq!((ops("read"), ops("write")), (Some(200), Some(100)), "{report:#}");
}
