//! Three rows of `fathom api` compared with equivalent C programs: system calls by strace, and page faults by getrusage. `programs.c` also prints
//! times.

use crate::disk::{Disk, Image};
use crate::stage::{Stage, is_root, skip, tool, wait};
use serde_json::Value;
use std::path::Path;

/// Rows of the table, with the equivalent program.
const ROWS: [(&str, &str); 3] = [("pread", "pread"), ("fread", "fread"), ("mmap random", "mmap")];
/// Allowed difference in calls per MiB. A trial of 4 MiB maps, advises and unmaps the file only once.
const ONCE: f64 = 2.0;

#[test]
fn three_rows_count_the_same_calls_as_equivalent_programs() {
    if !is_root() {
        return;
    }
    if tool(&[&"strace", &"-V"]).is_err() {
        return skip("there is no strace");
    }
    let stage = Stage::one_per_cpu();
    // An image in memory is fast, and its data is not in the page cache of the file system on it.
    let Some(disk) = Disk::new(&stage, "ext4", Image::Buffered) else { return };
    let program = stage.path("programs");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/programs.c");
    if let Err(why) = tool(&[&"cc", &"-O2", &"-o", &program, &source]) {
        return skip(&why);
    }
    disk.file("data", 16);
    for (rw, rows) in [("read", &ROWS[..2]), ("randread", &ROWS[2..])] {
        let names: Vec<&str> = rows.iter().map(|(row, _)| *row).collect();
        let words =
            format!("api --rw {rw} --bs 4k --size 16m --runs 1 --time 20s --quiet --format json --interface");
        let mut command = stage.command(&disk.enter(), &words, Path::new(""));
        let report = wait(command.arg(names.join(",")).arg(disk.dir.join("data"))).report().0;
        for (name, shape) in rows {
            let found = report["api"]["rows"].as_array().unwrap().iter().find(|r| r["interface"] == *name);
            let row = found.unwrap_or_else(|| panic!("no row {name}: {:#}", report["api"]));
            let run = |prefix: &str, mib: u64| {
                disk.sh(&format!("{prefix} '{}' {shape} data {}", program.display(), mib << 20))
            };
            let summary = stage.path("calls");
            let calls = |mib: u64| {
                run(&format!("strace -f -c -o '{}'", summary.display()), mib);
                total(&std::fs::read_to_string(&summary).unwrap())
            };
            // The calls for starting and ending the program cancel out.
            let by_strace = (calls(12) as f64 - calls(4) as f64) / 8.0;
            let by_fathom = number(&row["calls_per_mib"]["Ok"]);
            assert!((by_strace - by_fathom).abs() <= ONCE, "{name}: strace {by_strace}, fathom {by_fathom}");
            let printed: Vec<f64> = run("", 16).split(' ').map(|n| n.parse().unwrap()).collect();
            let by_program = printed[1] / (printed[0] / f64::from(1 << 20));
            let by_fathom = number(&row["minor_faults_per_mib"]) + number(&row["major_faults_per_mib"]);
            assert!(
                (by_program - by_fathom).abs() <= 0.02 * by_program.max(100.0),
                "{name}: faults per MiB {by_program}, fathom {by_fathom}"
            );
        }
    }
}

/// The total of a summary of strace, which is before the word `total`.
fn total(summary: &str) -> u64 {
    let line = summary.lines().find(|l| l.ends_with(" total")).unwrap_or_else(|| panic!("{summary}"));
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    // The columns are usecs/call, calls and, if there are any, errors.
    numbers[numbers.len().min(2) - 1]
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}
