//! Tests of the reports of commands whose behaviour is known.

use crate::Judging;
use crate::fixture::Fixture;
use model::command::{
    Cold, Command, CommandEnd, CommandRun, CommandStudy, Exit, FilesState, FinalSync, Moved, NamedFiles,
    Stream, Traced,
};
use model::evidence::{Moment, Snapshot};
use model::finding::Outcome;
use model::record::{Record, Run, RunEnd, RunEnding, RunStart};
use model::report::{Report, Verdict};
use model::study::Study;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

/// `dd if=data of=/dev/null`: 64 MiB in half a second; `fetched_bytes` came from the device.
fn end(fetched_bytes: u64) -> CommandEnd {
    CommandEnd {
        wall_ns: 500_000_000,
        exit: Exit::Code(0),
        user_ns: 1_000_000,
        system_ns: 50_000_000,
        peak_bytes: 8 * MIB,
        peak_floor_bytes: 4 * MIB,
        moved: Ok(Moved { read_call_bytes: 64 * MIB, read_calls: 64, fetched_bytes, ..Moved::default() }),
        still_running: Vec::new(),
        page_bytes: 4096,
        single_process: Ok(true),
        stdin: Stream::Null,
        stdout: Stream::File,
        named: vec![NamedFiles {
            path: "data".into(),
            before: Ok(FilesState {
                files: 1,
                bytes: 64 * MIB,
                cached_bytes: Some(0),
                ..FilesState::default()
            }),
            after: Ok(FilesState::default()),
            memory: None,
            blind: None,
        }],
        byte_sources: Vec::new(),
        traced: Ok(Traced { started: 1, ..Traced::default() }),
        final_sync: FinalSync::NotNeeded,
        neighbours: Vec::new(),
    }
}

/// A session with one run for each end. `dirty_kib` are those of the machine before and after the run.
fn record(ends: Vec<CommandEnd>, dirty_kib: [u64; 2]) -> Record {
    let mut record = Fixture::honest().record();
    let words = ["dd", "if=data", "of=/dev/null"].map(str::to_owned).to_vec();
    record.header.plan.jobs.clear();
    record.header.plan.study = Study::Commands(CommandStudy {
        commands: vec![Command { line: words.join(" "), args: words }],
        cold: Cold::No,
        final_sync: true,
        prepare: None,
        cleanup: None,
    });
    let snapshot = |moment, kib: u64| {
        let meminfo = format!("MemTotal: 9 kB\nDirty: {kib} kB\nWriteback: 0 kB\n");
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let stat = record.header.hosts[0].places[0].layers[0].stat_file.clone();
        let files: BTreeMap<_, _> = [
            ("/proc/meminfo".to_owned(), Ok(meminfo)),
            ("/proc/vmstat".to_owned(), Ok("nr_dirtied 100\n".to_owned())),
            ("/proc/stat".to_owned(), Ok("cpu  1 2 3 4 5 6 7 8 0 0\n".to_owned())),
            ("/proc/pressure/cpu".to_owned(), Ok(pressure.to_owned())),
            ("/proc/pressure/memory".to_owned(), Ok(pressure.to_owned())),
            (stat, Ok("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0".to_owned())),
        ]
        .into();
        Snapshot { moment, at_ns: 0, files, targets: Vec::new() }
    };
    let [before, after] = dirty_kib;
    let evidence = vec![
        snapshot(Moment::Start, before),
        snapshot(Moment::Stop, after),
        snapshot(Moment::Synced, before),
    ];
    record.runs = ends
        .into_iter()
        .enumerate()
        .map(|(repeat, end)| Run {
            start: RunStart {
                job: 0,
                phase: 0,
                repeat: repeat as u32,
                attempt: 0,
                offered_iops: None,
                host: 0,
                at_ns: 0,
                target_bytes: Vec::new(),
            },
            intervals: Vec::new(),
            evidence: evidence.clone(),
            end: Some(RunEnd { command: Some(Box::new(end)), ..RunEnd::without(RunEnding::Complete) }),
            disturbed: None,
        })
        .collect();
    record
}

fn judged(end: CommandEnd, dirty_kib: [u64; 2]) -> (Report, CommandRun) {
    let report = crate::judge(&record(vec![end], dirty_kib), &Judging::default());
    let run = report.study.commands().unwrap().commands[0].runs[0].clone();
    (report, run)
}

fn sentence(report: &Report) -> &str {
    &report.study.commands().unwrap().commands[0].sentence
}

fn found(report: &Report) -> Vec<String> {
    let found = report.findings.iter().filter(|f| f.severity.is_some());
    found.map(|f| f.id.to_string()).collect()
}

#[test]
fn reads_that_no_device_delivered_came_from_the_page_cache() {
    let (report, run) = judged(end(0), [0, 0]);
    assert_eq!(run.cached_read_bytes, Ok(64 * MIB));
    assert!(sentence(&report).contains("the page cache had all of it"), "{}", sentence(&report));
    assert_eq!((report.verdict, found(&report)), (Verdict::Suspect, vec!["A01".to_owned()]));
    let (report, run) = judged(end(48 * MIB), [0, 0]);
    assert_eq!(run.cached_read_bytes, Ok(16 * MIB));
    assert!(sentence(&report).contains("48 MiB came from"), "{}", sentence(&report));
    let (report, _) = judged(end(64 * MIB), [0, 0]);
    assert_eq!((report.verdict, found(&report)), (Verdict::Valid, Vec::new()), "{:#?}", report.findings);
}

#[test]
fn bytes_of_pipes_and_dev_zero_are_not_from_the_page_cache() {
    let pipe = CommandEnd { stdin: Stream::Pipe, ..end(0) };
    let zero = CommandEnd { byte_sources: vec!["/dev/zero".into()], ..end(0) };
    let several = CommandEnd { traced: Ok(Traced { started: 3, pipes: 1, ..Traced::default() }), ..end(0) };
    let unseen = CommandEnd { traced: Err("not root".into()), single_process: Ok(false), ..end(0) };
    let nameless = CommandEnd { named: Vec::new(), ..end(0) };
    let mut remote = end(0);
    remote.named[0].blind = Some("it is on nfs4".into());
    for end in [pipe, zero, several, unseen, nameless, remote] {
        let (report, run) = judged(end, [0, 0]);
        assert!(run.cached_read_bytes.is_err(), "{run:?}");
        assert!(!found(&report).contains(&"A01".to_owned()) && !sentence(&report).contains("page cache had"));
    }
}

/// 64 MiB written; `dirty_bytes` were dirty in the file at the end.
fn writer(dirty_bytes: u64, final_sync: FinalSync) -> CommandEnd {
    let mut end = end(0);
    end.moved = Ok(Moved {
        write_call_bytes: 64 * MIB,
        write_calls: 64,
        dirtied_bytes: 64 * MIB,
        ..Moved::default()
    });
    end.named[0].before = Ok(FilesState::default());
    end.named[0].after =
        Ok(FilesState { files: 1, bytes: 64 * MIB, dirty_bytes: Some(dirty_bytes), ..FilesState::default() });
    CommandEnd { final_sync, ..end }
}

#[test]
fn the_rate_includes_the_final_sync_unless_others_wrote() {
    let (report, run) = judged(writer(32 * MIB, FinalSync::Done(1_500_000_000)), [100, 32 << 10]);
    assert_eq!((run.written_at_end_bytes, run.dirty_at_end_bytes), (Ok(32 * MIB), Ok(32 * MIB)));
    assert!(run.stable_mb_per_s.is_ok_and(|rate| (rate - 33.55).abs() < 0.01));
    assert!(found(&report).contains(&"A09".to_owned()), "{:?}", found(&report));
    // 40 MiB of others were dirty before.
    let (_, run) = judged(writer(32 * MIB, FinalSync::Done(1_500_000_000)), [40 << 10, 72 << 10]);
    assert!(run.stable_mb_per_s.is_err(), "{run:?}");
    let (_, run) = judged(writer(32 * MIB, FinalSync::Skipped), [100, 32 << 10]);
    assert!(run.stable_mb_per_s.is_err() && run.sync_seconds.is_err());
}

#[test]
fn no_rate_is_given_if_the_part_of_others_is_unknown() {
    // All pages of the machine that were dirtied until the end of the run, and until the end of the final sync.
    let rate = |direct_opens: u64, pages: [u64; 2]| {
        let traced = Ok(Traced { started: 1, direct_opens, ..Traced::default() });
        let end = CommandEnd { traced, ..writer(32 * MIB, FinalSync::Done(1_500_000_000)) };
        let mut record = record(vec![end], [100, 32 << 10]);
        for (snapshot, pages) in record.runs[0].evidence.iter_mut().skip(1).zip(pages) {
            let text = format!("nr_dirtied {}\n", 100 + pages);
            snapshot.files.insert("/proc/vmstat".into(), Ok(text));
        }
        let report = crate::judge(&record, &Judging::default());
        report.study.commands().unwrap().commands[0].runs[0].stable_mb_per_s.clone()
    };
    let own_pages = 64 * MIB / 4096;
    assert!(rate(0, [own_pages, own_pages]).is_ok());
    // Written with O_DIRECT: the machine's dirty pages are those of others.
    assert!(rate(1, [100, 100]).is_ok());
    assert!(rate(1, [own_pages, own_pages]).is_err_and(|why| why.contains("bypassed the page cache")));
    // Others wrote 64 MiB during the run, or during the final sync.
    assert!(rate(0, [2 * own_pages, 2 * own_pages]).is_err());
    assert!(rate(0, [own_pages, 2 * own_pages]).is_err());
}

#[test]
fn writes_of_others_are_not_taken_for_the_commands() {
    let written = |device_mib: u64, dirty_mib: u64| {
        let mut record = record(vec![writer(dirty_mib * MIB, FinalSync::Off)], [100, 100]);
        let stat = record.header.hosts[0].places[0].layers[0].stat_file.clone();
        let text = format!("0 0 0 0 9 0 {} 0 0 0 0 0 0 0 0 0 0", device_mib * MIB / 512);
        record.runs[0].evidence[1].files.insert(stat, Ok(text));
        let report = crate::judge(&record, &Judging::default());
        let foreign_io = report.findings.iter().find(|f| f.id.to_string() == "D01").unwrap().outcome;
        let run = report.study.commands().unwrap().commands[0].runs[0].clone();
        (run.foreign_written_bytes, foreign_io)
    };
    assert_eq!(written(0, 64), (Ok(0), Outcome::Holds));
    assert_eq!(written(32, 32), (Ok(0), Outcome::Holds));
    assert_eq!(written(64, 32), (Ok(32 * MIB), Outcome::NotChecked));
}

#[test]
fn a_new_file_without_dirty_pages_has_reached_the_device() {
    // Other programs dirtied much, but all data of the command is in the file that it names.
    let (_, run) = judged(writer(0, FinalSync::Off), [100, 500 << 10]);
    assert_eq!((run.written_at_end_bytes, run.dirty_at_end_bytes), (Ok(64 * MIB), Ok(0)));
}

#[test]
fn an_unreadable_counter_never_passes() {
    let mut blind = record(vec![CommandEnd { moved: Err("no /proc".into()), ..end(0) }], [0, 0]);
    for snapshot in &mut blind.runs[0].evidence {
        snapshot.files.clear();
    }
    let report = crate::judge(&blind, &Judging::default());
    let holds = report.findings.iter().filter(|f| f.outcome == Outcome::Holds);
    let holds: Vec<String> = holds.map(|f| f.id.to_string()).collect();
    assert_eq!(holds, [""; 0], "{:#?}", report.findings);
    let run = &report.study.commands().unwrap().commands[0].runs[0];
    assert!(
        run.devices.is_err() && run.foreign_read_bytes.is_err() && run.pressure.iter().all(Result::is_err)
    );
}

#[test]
fn a_pipe_is_waited_for_only_if_the_data_went_through_it() {
    let limiter = |end: CommandEnd, args: &[&str]| {
        let mut record = record(vec![end], [0, 0]);
        let Study::Commands(study) = &mut record.header.plan.study else { unreachable!() };
        study.commands[0].args = args.iter().map(|arg| (*arg).to_owned()).collect();
        crate::judge(&record, &Judging::default()).limiter.name
    };
    let mut tar = end(0);
    tar.stdout = Stream::Pipe;
    tar.moved = Ok(Moved {
        read_call_bytes: 64 * MIB,
        read_calls: 9,
        write_call_bytes: 64 * MIB,
        write_calls: 9,
        ..Moved::default()
    });
    assert_eq!(limiter(tar.clone(), &["tar", "c", "data"]), "the other end of a pipe");
    // Its standard output is a pipe too, and nothing went there.
    assert_eq!(limiter(tar, &["dd", "if=data", "of=/dev/null"]), "none of these");
    // A pipe as standard input means nothing if files were read.
    assert_eq!(limiter(CommandEnd { stdin: Stream::Pipe, ..end(0) }, &["cat", "data"]), "none of these");
}

#[test]
fn a_condition_is_decided_by_one_run_or_by_the_bounds_of_several() {
    let decided = |wall_ms: &[u64], limit: &str| {
        let ends = wall_ms.iter().map(|ms| CommandEnd { wall_ns: ms * 1_000_000, ..end(0) }).collect();
        let mut record = record(ends, [0, 0]);
        record.header.plan.fail_if = model::spec::pace::conditions(limit).unwrap();
        crate::judge(&record, &Judging::default()).answer.unwrap().word.word()
    };
    assert_eq!(decided(&[100], "time>200ms"), "PASS");
    assert_eq!(decided(&[300], "time>200ms"), "FAIL");
    assert_eq!(decided(&[100, 101, 102, 103], "time>200ms"), "PASS");
    assert_eq!(decided(&[100, 300, 180, 240], "time>200ms"), "INCONCLUSIVE");
    assert_eq!(decided(&[100, 300], "time>200ms"), "INCONCLUSIVE");
}

#[test]
fn a_condition_without_a_name_applies_to_every_command() {
    let mut record = record(vec![end(0)], [0, 0]);
    record.header.plan.fail_if = model::spec::pace::conditions("time>20s").unwrap();
    let Study::Commands(study) = &mut record.header.plan.study else { unreachable!() };
    let second = Command { line: "never run".into(), args: vec!["never".into()] };
    study.commands.push(second);
    let report = crate::judge(&record, &Judging::default());
    let outcomes: Vec<&str> = report.gates.iter().map(|gate| gate.word.word()).collect();
    assert_eq!(outcomes, ["PASS", "INCONCLUSIVE"], "{:?}", report.gates);
    assert_eq!(report.answer.unwrap().word.word(), "INCONCLUSIVE");
}

#[test]
fn a_session_survives_its_file() {
    let record = record(vec![end(0)], [0, 0]);
    let text = serde_json::to_string(&record.header.plan).unwrap();
    let plan: model::plan::Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(plan, record.header.plan);
    assert_eq!(plan.results(), 1);
}

#[test]
fn repeats_that_differ_are_found_and_single_runs_are_not_checked() {
    let of_seconds = |seconds: &[f64]| {
        let ends = seconds.iter().map(|s| CommandEnd { wall_ns: (s * 1e9) as u64, ..end(64 * MIB) });
        found(&crate::judge(&record(ends.collect(), [0, 0]), &Judging::default()))
    };
    assert_eq!(of_seconds(&[0.5]), Vec::<String>::new());
    assert_eq!(of_seconds(&[0.5, 0.5]), ["E05"]);
    assert_eq!(of_seconds(&[0.5, 0.51, 0.5]), Vec::<String>::new());
    // A standard deviation of 11 % is a note, and one of 60 % biases the mean.
    assert_eq!(of_seconds(&[0.45, 0.5, 0.56]), ["E06"]);
    let ends = [0.2, 0.5, 0.8].map(|s: f64| CommandEnd { wall_ns: (s * 1e9) as u64, ..end(64 * MIB) });
    let report = crate::judge(&record(ends.to_vec(), [0, 0]), &Judging::default());
    assert_eq!((found(&report), report.verdict), (vec!["E06".to_owned()], Verdict::Suspect));
}
