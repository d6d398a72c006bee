//! Tests of Iometer's configuration files: the jobs that each test type becomes, and what is refused.

use super::{LANGUAGE, Overrides, explain, read, specs};
use model::job::Order;
use model::spec::JobSpec;

/// A file with three workers, four access specifications, and this test type.
pub(super) fn file(cycle: &str) -> String {
    let worker = |number: u32, outstanding: u32, targets: &[&str], assigned: &[&str]| {
        let target = |t: &&str| format!("'Target\n\t{t}\n'Target type\n\tDISK\n'End target\n");
        format!(
            "'Worker\n\tWorker {number}\n'Worker type\n\tDISK\n'Default target settings for worker\n'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\t{outstanding},DISABLED,1,DISABLED,0\n'Disk maximum size,starting sector,Data pattern\n\t32768,8,2\n'End default target settings for worker\n'Assigned access specs\n{}'End assigned access specs\n'Target assignments\n{}'End target assignments\n'End worker\n",
            assigned.iter().map(|a| format!("\t{a}\n")).collect::<Vec<_>>().concat(),
            targets.iter().map(target).collect::<Vec<_>>().concat()
        )
    };
    let all = ["4K OLTP", "Web; 70%", "Backup", "Mixed"];
    format!(
        "Version 1.1.0 \n'TEST SETUP ====\n'Test Description\n\tthree workers, cycling\n'Run Time\n'\thours      minutes    seconds\n\t0          0          2\n'Ramp Up Time (s)\n\t1\n'Default Disk Workers to Spawn\n\tNUMBER_OF_CPUS\n'Default Network Workers to Spawn\n\t0\n'Record Results\n\tALL\n'Worker Cycling\n'\tstart      step       step type\n\t1          1          LINEAR\n'Disk Cycling\n'\tstart      step       step type\n\t1          1          LINEAR\n'Queue Depth Cycling\n'\tstart      end        step       step type\n\t1          8          2          EXPONENTIAL\n'Test Type\n\t{cycle}\n'END test setup\n'RESULTS DISPLAY ====\n'Record Last Update Results,Update Frequency,Update Type\n\tDISABLED,1,WHOLE_TEST\n'Bar chart 1 statistic\n\tTotal I/Os per Second\n'END results display\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\t4K OLTP,DISK\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,67,100,0,1,0,0\n'Access specification name,default assignment\n\tWeb; 70%,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t512,22,100,100,0,1,0,0\n\t65536,78,100,30,2,4,4096,0\n'Access specification name,default assignment\n\tBackup,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t65536,100,0,0,0,1,0,0\n'Access specification name,default assignment\n\tMixed,ALL\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t8192,100,50,50,0,1,0,512\n'END access specifications\n'MANAGER LIST ====\n'Manager ID, manager name\n\t1,HOST\n'Manager network address\n\t\n{}{}{}'End manager\n'END manager list\nVersion 1.1.0 \n",
        worker(1, 4, &["C:", "D:"], &all),
        worker(2, 1, &["C:"], &all[..2]),
        worker(3, 2, &["C:", "D:"], &["Idle", "Backup"])
    )
}

fn parse_job(text: &str, targets: &[&str]) -> Result<JobSpec, String> {
    let targets = targets.iter().map(|p| (*p).to_owned()).collect();
    read("x.icf", text, &Overrides { targets, seconds: None }, &|_| Vec::new()).map_err(|e| e.to_string())
}

/// The error text; empty if the file is accepted.
fn refusal_text(parse_job: Result<JobSpec, String>) -> String {
    parse_job.err().unwrap_or_default()
}

/// For each test, the targets and depth of each worker.
fn test_cells(cycle: &str) -> Vec<Vec<(usize, u32)>> {
    let job = parse_job(&file(cycle), &["/a", "/b"]).unwrap_or_else(|e| panic!("{cycle}: {e}"));
    let stream = |s: &model::spec::StreamSpec| (s.target.len(), s.depth.unwrap_or(0));
    job.phases.iter().map(|p| p.streams.iter().map(stream).collect()).collect()
}

/// Two managers with these network addresses. The first has three workers, the second two. Each worker uses one of two disks.
fn two_managers(cycle: &str, addresses: [&str; 2]) -> String {
    let text = file(cycle);
    let (before, rest) = text.split_once("'Manager ID").unwrap_or_default();
    let (first, after) = rest.split_once("'END manager list").unwrap_or_default();
    let second = first.replacen("1,HOST", "2,OTHER", 1);
    let third_worker = second.rfind("'Worker\n").unwrap_or(0);
    let second = format!("{}'End manager\n", &second[..third_worker]);
    let with = |text: &str, address: &str| {
        text.replacen("network address\n\t\n", &format!("network address\n\t{address}\n"), 1)
    };
    format!(
        "{before}'Manager ID{}'Manager ID{}'END manager list{after}",
        with(first, addresses[0]),
        with(&second, addresses[1])
    )
}

#[test]
fn each_test_type_has_its_tests_for_each_access_specification() {
    // For each test: the workers with their targets and depths. The third worker is idle in the first specification. Only the first
    // worker has four specifications.
    assert_eq!(
        test_cells("NORMAL"),
        [vec![(2, 4), (1, 1)], vec![(2, 4), (1, 1), (2, 2)], vec![(2, 4)], vec![(2, 4)]]
    );
    let targets = test_cells("CYCLE_TARGETS");
    assert_eq!(
        targets[..4],
        [
            vec![(1, 4), (1, 1)],
            vec![(2, 4), (1, 1)],
            vec![(1, 4), (1, 1), (1, 2)],
            vec![(2, 4), (1, 1), (2, 2)]
        ]
    );
    assert_eq!(targets.len(), 8);
    let workers = test_cells("CYCLE_WORKERS");
    // Idle workers do not count: the first specification has two steps, the second three, and the others one.
    assert_eq!(workers[..3], [vec![(2, 4)], vec![(2, 4), (1, 1)], vec![(2, 4)]]);
    assert_eq!(workers.len(), 2 + 3 + 1 + 1);
    let depths: Vec<_> = test_cells("CYCLE_OUTSTANDING_IOS").iter().map(|c| c[0].1).collect();
    assert_eq!(depths, [1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8]);
    assert_eq!(test_cells("CYCLE_WORKERS_AND_TARGETS").len(), (2 + 3 + 1 + 1) * 2);
    assert_eq!(test_cells("CYCLE_OUTSTANDING_IOS_AND_TARGETS").len(), 4 * 4 * 2);
    // Each step adds one target: first the two of the first worker, then those of the second and of the third.
    let rising = test_cells("INCREMENT_TARGETS_PARALLEL");
    assert_eq!(rising[..3], [vec![(1, 4)], vec![(2, 4)], vec![(2, 4), (1, 1)]]);
    assert_eq!(rising.len(), 3 + 5 + 2 + 2);
}

#[test]
fn a_worker_follows_its_specification_on_its_targets() {
    let job = parse_job(&file("NORMAL"), &["/a", "/b"]).unwrap_or_else(|e| panic!("{e}"));
    let times: Vec<_> = job.phases.iter().map(|p| (p.time, p.warmup)).collect();
    assert!(times.iter().all(|t| *t == (Some(2_000_000_000), Some(1_000_000_000))), "{times:?}");
    let first = &job.phases[1].streams[0];
    assert_eq!(
        (first.target.as_slice(), first.shown("sharing")),
        (["/a".to_owned(), "/b".into()].as_slice(), Some("each".to_owned()))
    );
    assert_eq!(
        (first.resolved.access.offset_bytes, first.size, first.resolved.workers),
        (4096, Some(16 << 20), 1)
    );
    let lines: Vec<_> = first
        .resolved
        .access
        .lines
        .iter()
        .map(|l| (l.weight, l.sizes.read.most(), l.random_percent(), l.delay_ns, l.burst, l.align_bytes))
        .collect();
    assert_eq!(lines, [(22, 512, 100.0, 0, 1, 0), (78, 65_536, 30.0, 2_000_000, 4, 4096)]);
    let typed = job.typed.unwrap_or_default();
    let options = &typed.phases[1][2].options;
    assert!(
        options.contains(&("worker".into(), "Worker 3".into()))
            && options.contains(&("specification".into(), "Backup".into()))
    );
    assert!(
        typed.defaults.contains(&("description".into(), "three workers  cycling".into())),
        "{:?}",
        typed.defaults
    );
    assert!(typed.defaults.contains(&("line".into(), "65536,78,100,30,2,4,4096,0".into())));
    // An older file: fewer fields, another version line, paths as in the Linux version.
    let old = file("NORMAL")
        .replace("Version 1.1.0 ", "'Version 2004.07.30")
        .replace(",use fixed seed,fixed seed value", "")
        .replace(",DISABLED,1,DISABLED,0", ",DISABLED,1")
        .replace(",Data pattern\n\t32768,8,2", "\n\t32768,8")
        .replace("\tC:\n", "\t/data/c [ext4]\n")
        .replace("\tD:\n", "\t/dev/sdx\n");
    let job = (LANGUAGE.parse)("x.icf", &old, &|_| Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    let backup = &job.phases[2].streams[0];
    assert_eq!(
        (backup.target.clone(), backup.dedup),
        (vec!["/data/c".to_owned(), "/dev/sdx".into()], Some(100))
    );
    assert_eq!(backup.resolved.each_worker_ns, None);
}

#[test]
fn access_specifications_are_read_alone() {
    let all = specs("x.icf", &file("NORMAL")).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["4K OLTP", "Web; 70%", "Backup", "Mixed"]);
    assert!(matches!(all[3].lines.as_slice(), [line] if line.reply_bytes == 512));
    assert!(specs("x.icf", "Version 1.1.0\n").is_err());
}

#[test]
fn unsupported_settings_have_their_place() {
    let text = file("NORMAL");
    for (from, to, words) in [
        ("\tNORMAL\n", "\tSIDEWAYS\n", &["x.icf:", "type one of NORMAL"] as &[&str]),
        ("\t4096,100,67,100,0,1,0,0", "\t4096,90,67,100,0,1,0,0", &["add up to 90"]),
        ("\t4096,100,67,100,0,1,0,0", "\t4096,100,167,100,0,1,0,0", &["167 % reads", "0 to 100"]),
        ("\t4096,100,67,100,0,1,0,0", "\t4096,100,67", &["3 of 8 numbers", "write 8"]),
        ("'Worker type\n\tDISK", "'Worker type\n\tNETWORK,TCP", &["is not a disk"]),
        ("\t4,DISABLED,1", "\t4,ENABLED,1", &["DISABLED"]),
        ("\tBackup\n\tMixed\n", "\tBackup\n\tOther\n", &["no access specification 'Other'"]),
        ("\t0          0          2", "\t0 0 0", &["/t SECONDS"]),
        ("\t0          0          2", "\t99999999999 0 0", &["longer than a day"]),
        ("'Bar chart", "'END results display\n'Bar chart", &["no heading 'bar chart 1 statistic'"]),
        ("\t1          8          2", "\t0 8 2", &["at least 1"]),
        ("'Manager ID, manager name\n\t1,HOST\n", "", &["a worker has no manager"]),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let why = refusal_text(parse_job(&changed, &["/a", "/b"]));
        assert!(words.iter().all(|w| why.contains(w)), "{to}: {why}");
    }
    let why = refusal_text(parse_job(&text, &[]));
    assert!(
        why.contains("'C:' is not a Linux path") && why.contains("fathom iometer /c FILE TARGET"),
        "{why}"
    );
    let why = refusal_text(parse_job(&text, &["/a"]));
    assert!(why.contains("name C:, D:") && why.contains("type one target for each, not 1"), "{why}");
    let long = text.replace("'END access", &format!("{}'END access", "x".repeat(1 << 20)));
    assert!(parse_job(&long, &[]).is_err_and(|e| e.contains("at most")));
}

#[test]
fn the_case_of_letters_in_a_name_does_not_matter() {
    let text = file("NORMAL").replace("\tWeb; 70%,NONE", "\tBÜRO,NONE").replace("\tWeb; 70%\n", "\tbüro\n");
    let job = parse_job(&text, &["/a", "/b"]).unwrap_or_else(|e| panic!("{e}"));
    let workers: Vec<_> = job.phases.iter().map(|phase| phase.streams.len()).collect();
    assert_eq!(workers, [2, 3, 1, 1], "the workers are not idle in the second test");
}

#[test]
fn half_random_lines_are_partly_random() {
    let job = parse_job(&file("NORMAL"), &["/a", "/b"]).unwrap_or_else(|e| panic!("{e}"));
    let line = &job.phases[3].streams[0].resolved.access.lines[0];
    assert_eq!((&line.order, line.reply_bytes), (&Order::Mixed(50.0), 512));
    assert!(!matches!(job.phases[3].streams[0].random, Some(Order::Random)));
}

#[test]
fn managers_of_one_host_are_groups_of_workers_and_each_has_its_steps() {
    let job = |cycle: &str| {
        parse_job(&two_managers(cycle, ["", ""]), &["/a", "/b"]).unwrap_or_else(|e| panic!("{cycle}: {e}"))
    };
    // Manager, worker and targets of each test.
    let tests = |cycle: &str| -> Vec<Vec<String>> {
        let job = job(cycle);
        let name = |s: &model::spec::StreamSpec| {
            format!("{}: {}", s.name.clone().unwrap_or_default(), s.target.len())
        };
        job.phases.iter().map(|p| p.streams.iter().map(name).collect()).collect()
    };
    let all = tests("NORMAL");
    assert_eq!(all[0], ["HOST Worker 1: 2", "HOST Worker 2: 1", "OTHER Worker 1: 2", "OTHER Worker 2: 1"]);
    assert_eq!(all[1].len(), 5);
    let workers = tests("CYCLE_WORKERS");
    assert_eq!(workers[0], ["HOST Worker 1: 2", "OTHER Worker 1: 2"], "one of each manager");
    assert_eq!((workers[1].len(), workers.len()), (4, 2 + 3 + 1 + 1));
    let parallel = tests("INCREMENT_TARGETS_PARALLEL");
    assert_eq!(parallel[0], ["HOST Worker 1: 1", "OTHER Worker 1: 1"]);
    let serial = tests("INCREMENT_TARGETS_SERIAL");
    assert_eq!(serial[0], ["HOST Worker 1: 1"]);
    assert_eq!(serial[3], ["HOST Worker 1: 2", "HOST Worker 2: 1", "OTHER Worker 1: 1"]);
    assert_eq!((parallel.len(), serial.len()), (3 + 5 + 2 + 2, 6 + 8 + 4 + 4));
    let typed = job("NORMAL").typed.unwrap_or_default();
    let option = |stream: usize, name: &str| {
        let options = &typed.phases[0][stream].options;
        options.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(
        (option(3, "manager"), option(3, "manager number"), option(3, "worker")),
        ("OTHER".into(), "1".into(), "Worker 2".into())
    );
}

#[test]
fn a_manager_of_another_host_is_refused_by_name() {
    for (addresses, is_one_host) in
        [(["10.0.0.1", "10.0.0.1"], true), (["", "10.0.0.2"], false), (["10.0.0.1", "10.0.0.2"], false)]
    {
        let why = refusal_text(parse_job(&two_managers("NORMAL", addresses), &["/a", "/b"]));
        assert_eq!(why.is_empty(), is_one_host, "{why}");
        assert!(
            is_one_host
                || (why.contains("'OTHER' has another network address than 'HOST'")
                    && why.contains("many-hosts.md")),
            "{why}"
        );
    }
}

#[test]
fn files_of_1998_have_numbers_instead_of_words_and_specifications_without_names() {
    let old = file("0")
        .replace("Version 1.1.0", "Version 1998.01.05")
        .replace("'Default Disk Workers to Spawn\n\tNUMBER_OF_CPUS", "'Default Workers to Spawn\n\t0")
        .replace("'Record Results\n\tALL", "'Record Results\n\t3")
        .replace("\t1          1          LINEAR", "\t1          1          0");
    let (before, rest) = old.split_once("'Access specification name").unwrap_or_default();
    let (_, after) = rest.split_once("'END access specifications").unwrap_or_default();
    let lines = "'size,% of size,% reads,% random,delay,burst\n2048 100 67 100 0 1\n512 40 100 0 0 1\n4096 60 0 0 0 1\n";
    let text = format!("{before}{lines}'END access specifications{after}");
    let assigned = text.find("'Assigned access specs").map_or(0, |at| at);
    let text: String = text[assigned..]
        .split("'Assigned access specs")
        .map(|part| part.split_once("'End assigned access specs").map_or(part, |(_, rest)| rest))
        .fold(text[..assigned].to_owned(), |all, part| all + part);
    let names: Vec<String> =
        specs("x.icf", &text).unwrap_or_else(|e| panic!("{e}")).into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["2 KiB; 67% Read; 100% random", "Untitled 2"]);
    let job = parse_job(&text, &["/a", "/b"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(job.phases.len(), 2, "all workers have both");
    assert_eq!(job.phases[0].streams[0].resolved.access.lines[0].align_bytes, 2048);
}

#[test]
fn lines_without_operations_are_left_out() {
    let text = file("NORMAL")
        .replace("\t4096,100,67,100,0,1,0,0\n", "\t4096,100,100,100,0,1,0,0\n\t1048576,0,0,0,0,1,0,0\n");
    let job = parse_job(&text, &["/a", "/b"]).unwrap_or_else(|e| panic!("{e}"));
    let access = &job.phases[0].streams[0].resolved.access;
    assert_eq!((access.lines.len(), access.writes(), access.largest_bytes()), (1, false, 4096));
    let spec = specs("x.icf", &text).unwrap_or_else(|e| panic!("{e}")).remove(0);
    assert_eq!((spec.lines.len(), spec.writes()), (1, false));
}

#[test]
fn more_than_a_hundred_tests_are_a_job() {
    let many = file("CYCLE_OUTSTANDING_IOS")
        .replace("\t1          8          2          EXPONENTIAL", "\t1 128 1 LINEAR");
    assert_eq!(parse_job(&many, &["/a", "/b"]).map(|job| job.phases.len()), Ok(4 * 128));
}

#[test]
fn tests_are_explained_without_paths_for_windows_targets() {
    let explained = |targets: &[&str]| {
        let targets = targets.iter().map(|p| (*p).to_owned()).collect();
        explain("x.icf", &file("CYCLE_OUTSTANDING_IOS"), &Overrides { targets, seconds: None })
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let bare = explained(&[]);
    for line in [
        "test type CYCLE_OUTSTANDING_IOS: 16 tests of 2 s after 1 s of ramp up, 48 s in all",
        "  C: = (not a Linux path",
        "    100 % of the operations: 4 KiB, 67 % reads, 100 % random",
        "  Worker 1: 4K OLTP, 8 outstanding on each of C:, D:",
    ] {
        assert!(bare.contains(line), "no {line:?} in:\n{bare}");
    }
    assert!(bare.contains("a pause of 2 ms after 4 operations, aligned to 4 KiB"), "{bare}");
    assert!(explained(&["/a", "/b"]).contains("  D: = /b"));
}
