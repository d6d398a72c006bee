//! Operation logs: fio's formats compared with the logs that fio writes, and fathom's own format.

use crate::fio::fio;
use crate::stage::{Stage, skip, tool};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Operations of a job: 256 blocks of 4 KiB.
const BLOCKS: usize = 256;

/// The logs in a folder by their names, each with its rows of numbers.
fn logs(folder: &Path) -> Vec<(String, Vec<Vec<u64>>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let number = |field: &str| match field.trim().strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
                None => field.trim().parse().unwrap(),
            };
            (name, text.lines().map(|line| line.split(',').map(number).collect()).collect())
        })
        .collect();
    logs.sort();
    logs
}

/// Logs without what differs from run to run: times and values.
fn alike(logs: &[(String, Vec<Vec<u64>>)]) -> Vec<(String, Vec<Vec<u64>>)> {
    logs.iter()
        .map(|(name, rows)| (name.clone(), rows.iter().map(|row| row[2..].to_vec()).collect()))
        .collect()
}

/// Logs, each with its name and its rows of numbers.
pub(crate) type Logs = Vec<(String, Vec<Vec<u64>>)>;

/// Runs the same command line under fathom and, if it is installed, under fio. Returns the logs of each.
pub(crate) fn both(stage: &Stage, words: &str) -> (Logs, Option<Logs>) {
    let (ours, theirs) = (stage.folder("ours"), stage.folder("theirs"));
    let words = |folder: &Path| {
        let file = stage.path("data");
        let place = folder.join("p");
        words.replace("PREFIX", &place.display().to_string()).replace("DATA", &file.display().to_string())
    };
    let out = fio(stage, &words(&ours));
    assert_eq!(out.code, Some(0), "{out:?}");
    let typed = words(&theirs);
    let all: Vec<&dyn AsRef<std::ffi::OsStr>> = std::iter::once("fio")
        .chain(typed.split(' '))
        .map(|w| Box::leak(Box::new(w.to_owned())) as &dyn AsRef<std::ffi::OsStr>)
        .collect();
    let ran = tool(&all).map_err(|why| skip(&format!("fio does not run here: {why}")));
    (logs(&ours), ran.ok().map(|_| logs(&theirs)))
}

#[test]
fn operation_logs_match_fio_except_times() {
    let stage = Stage::shared();
    let words = "--name=j --filename=DATA --rw=read --bs=4k --size=1m --numjobs=2 --write_lat_log=PREFIX --write_iops_log=PREFIX \
                 --write_bw_log=PREFIX --log_offset=1 --log_prio=1";
    let (ours, theirs) = both(&stage, words);
    let names: Vec<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for (name, rows) in &ours {
        assert_eq!(rows.len(), if name.contains("_slat") { 0 } else { BLOCKS }, "{name}");
        let offsets = rows.iter().map(|row| row[4]);
        assert!(offsets.zip((0..).step_by(4096)).all(|(offset, due)| offset == due), "{name}");
        assert!(rows.is_sorted_by_key(|row| row[0]), "{name}");
    }
    if let Some(theirs) = theirs {
        assert_eq!(alike(&ours), alike(&theirs));
    }
}

#[test]
fn verify_phases_do_not_shift_log_numbers() {
    let stage = Stage::shared();
    let words = "--name=w --filename=DATA --rw=write --bs=4k --size=1m --verify=crc32c --write_iops_log=PREFIX --name=r --stonewall \
                 --filename=DATA --rw=read --bs=4k --size=1m --write_iops_log=PREFIX";
    let (ours, theirs) = both(&stage, words);
    let names = |logs: &Logs| logs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), ["p_iops.1.log", "p_iops.2.log"]);
    assert!(ours.iter().all(|(_, rows)| rows.len() == BLOCKS), "reads of the verification are not logged");
    assert!(theirs.is_none_or(|theirs| names(&theirs) == names(&ours)));
}

#[test]
fn random_logs_contain_every_block_once_with_both_directions() {
    let stage = Stage::shared();
    let words = "--name=j --filename=DATA --rw=randrw --bs=4k --size=1m --ioengine=libaio --iodepth=8 --write_lat_log=PREFIX --log_offset=1";
    let (ours, theirs) = both(&stage, words);
    for logs in [Some(ours), theirs].into_iter().flatten() {
        let rows = &logs.iter().find(|(name, _)| name == "p_clat.1.log").unwrap().1;
        let offsets: BTreeSet<u64> = rows.iter().map(|row| row[4]).collect();
        assert_eq!((rows.len(), offsets.len()), (BLOCKS, BLOCKS));
        assert_eq!(rows.iter().map(|row| row[2]).collect::<BTreeSet<_>>(), [0, 1].into());
    }
}

#[test]
fn mixed_block_sizes_appear_once_and_fio_replays_the_iolog() {
    let stage = Stage::shared();
    let words = "--name=j --filename=DATA --rw=randread --bsrange=512-8k --size=1m --write_lat_log=PREFIX --log_offset=1 --write_iolog=PREFIX";
    let (ours, theirs) = both(&stage, words);
    let iolog = stage.path("ours").join("p");
    let text = std::fs::read_to_string(&iolog).unwrap();
    let actions = text.lines().filter(|line| line.contains(" read ")).count();
    assert_eq!(actions, ours.iter().find(|(name, _)| name == "p_clat.1.log").unwrap().1.len(), "{text}");
    if theirs.is_some() {
        let replayed = tool(&[
            &"fio",
            &"--name=r",
            &format!("--read_iolog={}", iolog.display()),
            &"--output-format=json",
        ])
        .unwrap();
        let json: serde_json::Value = serde_json::from_str(&replayed).unwrap();
        assert_eq!(json["jobs"][0]["read"]["total_ios"].as_u64(), Some(actions as u64), "{json:#}");
    }
    for logs in [Some(ours), theirs].into_iter().flatten() {
        let rows = &logs.iter().find(|(name, _)| name == "p_clat.1.log").unwrap().1;
        let mut touched = vec![0; 2048];
        for row in rows {
            (row[4] / 512..(row[4] + row[3]) / 512).for_each(|sector| touched[sector as usize] += 1);
        }
        assert!(touched.iter().all(|times| *times == 1), "{touched:?}");
        assert!(rows.iter().map(|row| row[3]).collect::<BTreeSet<_>>().len() > 4);
    }
}

#[test]
fn averaged_logs_have_as_many_lines_as_fio_and_sum_up() {
    let stage = Stage::one_per_cpu();
    let words = "--name=j --filename=DATA --rw=randrw --bs=4k --size=1m --time_based --runtime=1 --rate_iops=200 --write_lat_log=PREFIX \
                 --write_iops_log=PREFIX --write_bw_log=PREFIX --log_avg_msec=100 --write_hist_log=PREFIX --log_hist_msec=300";
    let (ours, theirs) = both(&stage, words);
    let find = |logs: &Logs, kind: &str| {
        logs.iter().find(|(name, _)| name == &format!("p_{kind}.1.log")).unwrap().1.clone()
    };
    // 200 operations per second in each direction, in intervals of a tenth of a second.
    let (iops, bw) = (find(&ours, "iops"), find(&ours, "bw"));
    assert!(iops.iter().all(|row| row[1] > 0 && row[2] <= 1 && row[3..] == [0, 0]), "{iops:?}");
    let operations = iops.iter().map(|row| row[1]).sum::<u64>() / 10;
    assert!((300..=400).contains(&operations), "{iops:?}");
    assert!(bw.iter().zip(&iops).all(|(bw, iops)| bw[1] == 4 * iops[1] && bw[0] == iops[0]), "{bw:?}");
    let histograms = find(&ours, "clat_hist");
    assert!(histograms.iter().all(|row| row.len() == 3 + 1856));
    let all: u64 = histograms.iter().flat_map(|row| &row[3..]).sum();
    assert!((380..=410).contains(&all), "{all}");
    let Some(theirs) = theirs else { return };
    for kind in ["lat", "clat", "iops", "bw"] {
        let [ours, theirs] = [&ours, &theirs].map(|logs| find(logs, kind));
        // fio starts the clock of its averages with its first window, so its log may have a few lines more or less.
        assert!(ours.len().abs_diff(theirs.len()) <= 4, "{kind}: {} and {}", ours.len(), theirs.len());
        assert!(ours.iter().chain(&theirs).all(|row| row.len() == 5));
    }
    assert_eq!(histograms[0].len(), find(&theirs, "clat_hist")[0].len());
}

#[test]
fn op_log_contains_every_reported_operation() {
    let stage = Stage::shared();
    let log = stage.path("operations.csv");
    let words = format!(
        "run --engine sim --rw randrw --depth 4 --workers 2 --time 100ms --warmup 20ms --runs 2 --attempts 1 --quiet --format json --op-log {}",
        log.display()
    );
    let out = stage.fathom(&words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let text = std::fs::read_to_string(&log).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let report = out.report().0;
    let reported: u64 =
        ["read", "write"].map(|kind| report["results"][0][kind]["ops"].as_u64().unwrap()).iter().sum();
    assert_eq!(rows.len() as u64, reported);
    // Known truth: every operation takes 100 us, and none ends before the window.
    assert!(rows.iter().all(|row| row[7] == "100000" && row[4].parse::<u64>().unwrap() > 20_000_000));
    let workers: BTreeSet<&str> = rows.iter().map(|row| row[2]).collect();
    let runs: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!((workers.len(), runs.len()), (2, 2));

    // A log by intervals has the same operations in fewer lines.
    let words = words.replace("--op-log ", "--op-log-interval 10ms --op-log ");
    let out = stage.fathom(&words, Path::new(""));
    assert_eq!(out.code, Some(0), "{out:?}");
    let text = std::fs::read_to_string(&log).unwrap();
    let operations: u64 =
        text.lines().skip(1).map(|line| line.split(',').nth(5).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(operations, reported);
    assert!(text.lines().count() <= 1 + 2 * 2 * 2 * 11, "{text}");

    // A log may have a name that is not UTF-8.
    let odd = stage.path("").join(OsStr::from_bytes(b"odd\xff.csv"));
    let line = "run --engine sim --time 100ms --runs 1 --attempts 1 --quiet --op-log $'odd\\xff.csv' && mv $'odd\\xff.csv' ..";
    let out = crate::output::shell(&stage, &format!("\"$F\" {line}"));
    assert!(out.code == Some(0) && odd.metadata().unwrap().len() > 1000, "{out:?}");

    // Neither the log nor the report can be written.
    let words = "run --engine sim --time 100ms --runs 1 --attempts 1 --quiet --op-log /dev/full -o /dev/full";
    let out = crate::output::shell(&stage, &format!("\"$F\" {words}"));
    assert!(out.code == Some(3) && out.stderr.contains("--op-log /dev/full cannot be written"), "{out:?}");
    assert!(out.stderr.contains("-o /dev/full cannot be written"), "{out:?}");
}

#[test]
fn impossible_logs_are_refused_before_anything_is_made() {
    let stage = Stage::shared();
    let here = stage.folder("here");
    let reported = |words: &str| {
        let out = stage.fathom(words, &here);
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{out:?}");
        assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0);
        out.stderr
    };
    assert!(reported("run --time 100ms --op-log-interval 10ms").contains("type --op-log FILE too"));
    assert!(reported("run --time 100ms --op-log /nowhere/at/all.csv").contains("/nowhere/at"));
    let both = stage.path("both.csv");
    let words = format!("run --time 100ms --op-log {0} -o {0}", both.display());
    assert!(reported(&words).contains("is the same file as") && !both.exists());
    let out = fio(
        &stage,
        &format!("--name=j --filename={} --size=4k --write_lat_log=/nowhere/p", here.join("f").display()),
    );
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stderr.contains("/nowhere") && !here.join("f").exists(), "{out:?}");
}
