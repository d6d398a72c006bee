//! Configuration files of Iometer: `fathom iometer`, `fathom run X.icf`, and `--spec-file` of a sweep run their tests in order and write the
//! result file.

use crate::output::check_outcome;
use crate::stage::{Outcome, Stage, wait};
use std::path::Path;

/// Three workers, four access specifications, a cycle of outstanding I/Os, one second each.
fn file(stage: &Stage, cycle: &str) -> String {
    let worker = |number: u32, targets: &[&str], specs: &[&str]| {
        format!(
            "'Worker\n\tWorker {number}\n'Worker type\n\tDISK\n'Default target settings for worker\n'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\t2,DISABLED,1,DISABLED,0\n'Disk maximum size,starting sector,Data pattern\n\t32768,0,2\n'End default target settings for worker\n'Assigned access specs\n{}'End assigned access specs\n'Target assignments\n{}'End target assignments\n'End worker\n",
            specs.iter().map(|s| format!("\t{s}\n")).collect::<Vec<_>>().concat(),
            targets
                .iter()
                .map(|t| format!("'Target\n\t{t}\n'Target type\n\tDISK\n'End target\n"))
                .collect::<Vec<_>>()
                .concat()
        )
    };
    let all = ["4K OLTP", "Web", "Backup", "Mixed"];
    let spec = |name: &str, line: &str| {
        format!(
            "'Access specification name,default assignment\n\t{name},NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t{line}\n"
        )
    };
    let text = format!(
        "Version 1.1.0 \n'TEST SETUP ====\n'Test Description\n\tthree workers\n'Run Time\n'\thours      minutes    seconds\n\t0          0          1\n'Ramp Up Time (s)\n\t0\n'Record Results\n\tALL\n'Queue Depth Cycling\n'\tstart      end        step       step type\n\t1          2          2          EXPONENTIAL\n'Test Type\n\t{cycle}\n'END test setup\n'ACCESS SPECIFICATIONS ====\n{}{}{}{}'END access specifications\n'MANAGER LIST ====\n'Manager ID, manager name\n\t1,HOST\n'Manager network address\n\t\n{}{}{}'End manager\n'END manager list\nVersion 1.1.0 \n",
        spec("4K OLTP", "4096,100,67,100,0,1,0,0"),
        spec("Web", "8192,100,100,100,0,1,0,0"),
        spec("Backup", "65536,100,0,0,0,1,0,0"),
        spec("Mixed", "8192,100,50,50,0,1,0,0"),
        worker(1, &["C:", "D:"], &all),
        worker(2, &["C:"], &all[..2]),
        worker(3, &["D:"], &["Idle", "Backup"])
    );
    std::fs::write(stage.folder("here").join("x.icf"), text).unwrap();
    for name in ["a", "b"] {
        stage.folder(&format!("here/{name}"));
    }
    "/c x.icf /r out.csv a b".into()
}

fn iometer(stage: &Stage, words: &str) -> Outcome {
    wait(stage.command(&[], &format!("iometer {words}"), Path::new("")).current_dir(stage.folder("here")))
}

#[test]
fn workers_specifications_and_cycles_give_the_expected_tests() {
    let stage = Stage::shared();
    let words = file(&stage, "CYCLE_OUTSTANDING_IOS");
    let out = iometer(&stage, &words);
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), ""), "{out:?}");
    assert!(out.stderr.contains("fathom: "), "the verdict is on standard error: {out:?}");
    let csv = std::fs::read_to_string(stage.folder("here").join("out.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[..4], ["'Test Type,Test Description", "6,three workers", "'Version", "1.1.0"]);
    assert_eq!(lines.last(), Some(&"'End Test"));
    let header = lines.iter().find(|l| l.starts_with("'Target Type,")).unwrap();
    let column = |row: &str, name: &str| {
        let at = header.split(',').position(|c| c == name).unwrap();
        row.split(',').nth(at).unwrap().to_owned()
    };
    let tests: Vec<&str> = csv.split("'Results\n").skip(1).collect();
    assert_eq!(tests.len(), 4 * 2, "each specification at one and two outstanding I/Os");
    let of = |test: &str, kind: &str| -> Vec<String> {
        test.lines().filter(|l| l.starts_with(&format!("{kind},"))).map(str::to_owned).collect()
    };
    let depths: Vec<String> = tests.iter().map(|t| column(&of(t, "WORKER")[0], "Queue Depth")).collect();
    assert_eq!(depths, ["1", "2", "1", "2", "1", "2", "1", "2"]);
    // The third worker is idle in the first step and runs Backup in the second. From the third step on only the first worker has a
    // specification.
    let counts: Vec<(usize, usize)> =
        tests.iter().map(|t| (of(t, "WORKER").len(), of(t, "DISK").len())).collect();
    assert_eq!(counts, [(2, 3), (2, 3), (3, 4), (3, 4), (1, 2), (1, 2), (1, 2), (1, 2)]);
    let specs: Vec<String> =
        tests.iter().map(|t| column(&of(t, "WORKER")[0], "Access Specification Name")).collect();
    assert_eq!(specs, ["4K OLTP", "4K OLTP", "Web", "Web", "Backup", "Backup", "Mixed", "Mixed"]);
    for test in &tests {
        let rows: Vec<&str> = test.lines().filter(|l| l.contains(',') && !l.starts_with('\'')).collect();
        assert!(rows.iter().all(|row| row.split(',').count() == header.split(',').count()), "{test}");
        let sum = |kind: &str, name: &str| -> u64 {
            of(test, kind).iter().map(|r| column(r, name).parse::<u64>().unwrap()).sum()
        };
        for name in ["Read I/Os", "Write I/Os", "Bytes Read", "Bytes Written", "100 to 200 uS"] {
            let all = sum("ALL", name);
            assert_eq!(
                (sum("MANAGER", name), sum("WORKER", name), sum("DISK", name)),
                (all, all, all),
                "{name}: {test}"
            );
        }
        assert!(sum("ALL", "Read I/Os") + sum("ALL", "Write I/Os") > 0);
        assert!(!of(test, "PROCESSOR").is_empty());
    }
    let backup = &of(tests[4], "ALL")[0];
    assert_eq!((column(backup, "Read I/Os").as_str(), column(backup, "# Disks").as_str()), ("0", "2"));
}

#[test]
fn managers_of_one_host_have_separate_rows() {
    let stage = Stage::shared();
    file(&stage, "CYCLE_WORKERS");
    let here = stage.folder("here");
    let text = std::fs::read_to_string(here.join("x.icf")).unwrap();
    let (before, rest) = text.split_once("'Manager ID").unwrap();
    let (manager, after) = rest.split_once("'END manager list").unwrap();
    let text = |other: &str| {
        let other = manager.replacen(
            "1,HOST\n'Manager network address\n\t\n",
            &format!("2,OTHER\n'Manager network address\n\t{other}\n"),
            1,
        );
        format!("{before}'Manager ID{manager}'Manager ID{other}'END manager list{after}")
    };
    std::fs::write(here.join("far.icf"), text("10.0.0.2")).unwrap();
    let by_name = ["bash", "-c", "exec -a /usr/bin/iometer \"$0\" \"$@\""].map(str::to_owned);
    let mut command = stage.command(&by_name, "/c far.icf a b", Path::new(""));
    check_outcome(&wait(command.current_dir(&here)), 1, &["another network address"]);
    check_outcome(
        &iometer(&stage, "/c far.icf a b"),
        1,
        &["'OTHER' has another network address than 'HOST'", "many-hosts.md"],
    );
    std::fs::write(here.join("x.icf"), text("")).unwrap();
    let out = iometer(&stage, "/c x.icf /r out.csv a b");
    assert_eq!(out.code, Some(0), "{out:?}");
    let csv = std::fs::read_to_string(here.join("out.csv")).unwrap();
    let tests: Vec<&str> = csv.split("'Results\n").skip(1).collect();
    // In each manager, two workers are active with the first specification, three with the second, and one with the others.
    assert_eq!(tests.len(), 2 + 3 + 1 + 1);
    let rows = |kind: &str| -> Vec<String> {
        let of = |line: &&str| line.starts_with(&format!("{kind},"));
        tests[1].lines().filter(of).map(|l| l.split(',').take(6).collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(rows("ALL"), ["ALL,All,4K OLTP,2,4,6"]);
    assert_eq!(rows("MANAGER"), ["MANAGER,HOST,4K OLTP,,2,3", "MANAGER,OTHER,4K OLTP,,2,3"]);
    let workers: Vec<String> =
        rows("WORKER").iter().map(|r| r.split(',').nth(1).unwrap().to_owned()).collect();
    assert_eq!(workers, ["Worker 1", "Worker 2", "Worker 1", "Worker 2"]);
    let order: Vec<&str> = tests[1].lines().filter_map(|l| l.split_once(',').map(|(kind, _)| kind)).collect();
    let managers: Vec<usize> = (0..order.len()).filter(|at| order[*at] == "MANAGER").collect();
    assert!(
        order[managers[0]..managers[1]].contains(&"WORKER"),
        "each is followed by its own workers: {order:?}"
    );
}

#[test]
fn icf_files_work_with_run_and_sweep() {
    let stage = Stage::shared();
    file(&stage, "NORMAL");
    let here = stage.folder("here");
    let text = std::fs::read_to_string(here.join("x.icf")).unwrap();
    let paths = text
        .replace("\tC:\n", &format!("\t{}\n", here.join("a").display()))
        .replace("\tD:\n", &format!("\t{} [ext4]\n", here.join("b").display()));
    std::fs::write(here.join("paths.icf"), paths).unwrap();
    let out =
        stage.fathom("run --runs 1 --attempts 1 --format json --quiet --no-history", &here.join("paths.icf"));
    assert!(matches!(out.code, Some(0 | 1)), "{out:?}");
    assert_eq!(out.report().0["results"].as_array().map(Vec::len), Some(2 + 3 + 1 + 1));
    let words = format!("sweep --engine sim --depth 1 --list --spec-file {}", here.join("x.icf").display());
    let list = stage.fathom(&words, Path::new(""));
    let names: Vec<&str> = list.stdout.lines().map(|l| l.split(" depth").next().unwrap()).collect();
    assert_eq!(names, ["4K OLTP", "Web", "Backup", "Mixed"], "{list:?}");
    let more = stage.fathom(&format!("{words} --spec web-server"), Path::new(""));
    assert_eq!(more.stdout.lines().count(), 5, "{more:?}");
}

#[test]
fn file_errors_are_reported_before_anything_is_made() {
    let stage = Stage::shared();
    file(&stage, "NORMAL");
    for (words, reported) in [
        ("/c x.icf", "'C:' is not a Linux path"),
        ("/c x.icf a", "type one target for each, not 1"),
        ("/c absent.icf a b", "does not exist"),
        ("", "type /c FILE"),
        ("/c x.icf /t 0 a b", "1 to 86400 seconds"),
        ("/c x.icf -q a b", "-q is not an option"),
    ] {
        check_outcome(&iometer(&stage, words), 1, &[reported]);
    }
    let help = iometer(&stage, "/?");
    assert!(help.code == Some(0) && help.stdout.contains("Usage: fathom iometer /c FILE"), "{help:?}");
    let foreign = stage.folder("here").join("foreign");
    std::fs::write(&foreign, vec![7; 16 << 20]).unwrap();
    check_outcome(&iometer(&stage, "/c x.icf /t 1 foreign b"), 1, &["--destroy"]);
    assert!(std::fs::read(&foreign).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn explain_lists_tests_without_measuring() {
    let stage = Stage::shared();
    file(&stage, "CYCLE_OUTSTANDING_IOS");
    let out = iometer(&stage, "--explain /c x.icf");
    check_outcome(&out, 0, &[]);
    for line in
        ["8 tests of 1 s", "C: = (not a Linux path", "Worker 1: 4K OLTP, 2 outstanding on each of C:, D:"]
    {
        assert!(out.stdout.contains(line), "no {line:?}: {out:?}");
    }
    let out = iometer(&stage, "--explain /c x.icf a b");
    assert!(out.code == Some(0) && out.stdout.contains("  C: = a\n"), "{out:?}");
    assert!(!stage.folder("here").join("out.csv").exists());
    check_outcome(&iometer(&stage, "/c x.icf"), 1, &["not a Linux path", "--explain"]);
}
