//! Tests of reports about forged commands.

use crate::Judging;
use crate::fixture::Fixture;
use model::command::{
    Cold, Command, CommandEnd, CommandIo, CommandRun, CommandStudy, Exit, FilesState, FinalSync, NamedFiles,
    Stream, Traced,
};
use model::evidence::{Moment, Snapshot};
use model::finding::{CheckId, Outcome, Severity};
use model::record::{End, Record, Run, RunEnd, RunEnding, RunStart};
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
        major_faults: None,
        moved: Ok(CommandIo {
            read_call_bytes: 64 * MIB,
            read_calls: Some(64),
            fetched_bytes,
            ..CommandIo::default()
        }),
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
                cached_bytes: Some((64 * MIB).saturating_sub(fetched_bytes)),
                ..FilesState::default()
            }),
            after: Ok(FilesState::default()),
            memory: None,
            hidden_device_reason: None,
            device: Some("vda".into()),
        }],
        byte_sources: Vec::new(),
        sparse_bytes_below: None,
        traced: Ok(Traced { started: 1, ..Traced::default() }),
        final_sync: FinalSync::NotNeeded,
        neighbours: Vec::new(),
    }
}

/// Returns a session with one run for each end. `dirty_kib` has the machine's dirty KiB before and after the run.
fn record(ends: Vec<CommandEnd>, dirty_kib: [u64; 2]) -> Record {
    let mut record = Fixture::honest().record();
    let args = ["dd", "if=data", "of=/dev/null"].map(str::to_owned).to_vec();
    record.header.plan.jobs.clear();
    record.header.plan.study = CommandStudy {
        commands: vec![Command { line: args.join(" "), args }],
        cold: Cold::No,
        final_sync: true,
        prepare: None,
        cleanup: None,
    }
    .into();
    // What is not dirty at the end has reached the device.
    let reached = |end: &CommandEnd| {
        let dirty = end.named.first()?.after.as_ref().ok()?.dirty_bytes?;
        Some(end.moved.as_ref().ok()?.dirtied_bytes - dirty)
    };
    let reached_sectors = ends.first().and_then(reached).unwrap_or(0) / 512;
    let snapshot = |moment, kib: u64| {
        let written = if moment == Moment::Start { 0 } else { reached_sectors };
        let meminfo = format!("MemTotal: 9 kB\nDirty: {kib} kB\nWriteback: 0 kB\n");
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let stat = record.header.hosts[0].places[0].layers[0].stat_file.clone();
        let files: BTreeMap<_, _> = [
            ("/proc/meminfo".to_owned(), Ok(meminfo)),
            ("/proc/vmstat".to_owned(), Ok("nr_dirtied 100\n".to_owned())),
            ("/proc/stat".to_owned(), Ok("cpu  1 2 3 4 5 6 7 8 0 0\n".to_owned())),
            ("/proc/pressure/cpu".to_owned(), Ok(pressure.to_owned())),
            ("/proc/pressure/memory".to_owned(), Ok(pressure.to_owned())),
            (stat, Ok(format!("0 0 0 0 {written} 0 {written} 0 0 0 0 0 0 0 0 0 0"))),
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
    let found = report.checks.iter().filter(|f| f.severity.is_some());
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
    let (report, _) = judged(end(MIB), [0, 0]);
    let shown = sentence(&report);
    assert!(shown.contains("1 MiB came from a disk, and the page cache had 63 MiB"), "{shown}");
    let (report, _) = judged(end(63 * MIB), [0, 0]);
    assert!(sentence(&report).contains("63 MiB came from"), "{}", sentence(&report));
    let (report, _) = judged(end(64 * MIB), [0, 0]);
    assert_eq!((report.verdict, found(&report)), (Verdict::Valid, Vec::new()), "{:#?}", report.checks);
}

#[test]
fn bytes_that_the_cache_did_not_have_are_not_from_the_page_cache() {
    let read = |change: fn(&mut CommandEnd)| {
        let mut end = end(32 * MIB);
        change(&mut end);
        let (report, run) = judged(end, [0, 0]);
        assert!(!sentence(&report).contains("page cache had") || run.cached_read_bytes.is_ok());
        run.cached_read_bytes
    };
    assert_eq!(read(|_| ()), Ok(32 * MIB));
    let cached = |end: &mut CommandEnd, bytes| end.named[0].before.as_mut().unwrap().cached_bytes = bytes;
    // Compressed data, or a program that generates bytes.
    assert!(read(|end| end.named[0].before.as_mut().unwrap().cached_bytes = Some(MIB)).is_err());
    // A kernel without `cachestat`, and a device that is read several times.
    assert_eq!(read(|end| end.named[0].before.as_mut().unwrap().cached_bytes = None), Ok(32 * MIB));
    let mut disk = end(0);
    cached(&mut disk, Some(MIB));
    disk.named[0].path = "/dev/vda".into();
    assert_eq!(judged(disk, [0, 0]).1.cached_read_bytes, Ok(64 * MIB));
    // Mapped memory may have caused the reads of the device.
    assert!(read(|end| end.major_faults = Some(2)).is_err());
    let asynchronous = |end: &mut CommandEnd| {
        end.traced = Ok(Traced { started: 1, async_contexts: 1, ..Traced::default() });
    };
    assert!(read(asynchronous).is_err());
    // Nothing was cached, so the devices delivered what the calls read.
    assert_eq!(
        judged(CommandEnd { major_faults: Some(2), ..end(64 * MIB) }, [0, 0]).1.cached_read_bytes,
        Ok(0)
    );
    let mut end = end(32 * MIB);
    asynchronous(&mut end);
    let (report, _) = judged(end, [0, 0]);
    assert!(sentence(&report).contains("at least 64 MiB"), "{}", sentence(&report));
    // The file with the ranges that were never written may be the output.
    let both = |dirtied_bytes| read_two(dirtied_bytes).map(|bytes| bytes / MIB);
    assert_eq!((both(0), both(16 * MIB).is_err()), (Ok(48), true));
}

/// 64 MiB of a file in the page cache and a file of 16 MiB that was never written.
fn read_two(dirtied_bytes: u64) -> model::Known<u64> {
    let mut end = end(0);
    let moved = end.moved.as_mut().unwrap();
    moved.dirtied_bytes = dirtied_bytes;
    let unwritten = FilesState { bytes: 16 * MIB, unwritten_bytes: Some(16 * MIB), ..FilesState::default() };
    let unwritten = FilesState { files: 1, cached_bytes: Some(0), ..unwritten };
    end.named.push(NamedFiles { path: "pre".into(), before: Ok(unwritten), ..end.named[0].clone() });
    end.named[0].before.as_mut().unwrap().bytes = 48 * MIB;
    judged(end, [0, 0]).1.cached_read_bytes
}

#[test]
fn dirty_pages_of_one_file_are_not_the_whole_account() {
    let at_end = |named_dirty: u64, dirty_kib: [u64; 2]| {
        let mut end = writer(named_dirty, FinalSync::Off);
        // The data went to another file than the named one.
        end.named[0].after.as_mut().unwrap().bytes = 4096;
        judged(end, dirty_kib).1.dirty_at_end_bytes
    };
    assert_eq!(at_end(4096, [0, 64 << 10]), Ok(64 * MIB));
    assert!(at_end(4096, [500 << 10, 564 << 10]).is_err());
    // All that was written is dirty in the named file, which existed before.
    assert_eq!(at_end(64 * MIB, [500 << 10, 564 << 10]), Ok(64 * MIB));
}

#[test]
fn truncated_bytes_may_be_older_than_the_command() {
    let written = |older_kib: u64| {
        let mut end = writer(0, FinalSync::Off);
        end.moved.as_mut().unwrap().cancelled_bytes = 64 * MIB;
        let (report, run) = judged(end, [older_kib, older_kib]);
        (run.written_at_end_bytes, sentence(&report).contains("nothing was counted on storage"))
    };
    assert_eq!(written(0), (Ok(0), true));
    let (reached, is_nothing) = written(64 << 10);
    assert!(reached.is_err_and(|why| why.contains("may have been older")) && !is_nothing);
}

#[test]
fn every_device_that_moved_much_is_named() {
    let mut record = record(vec![end(64 * MIB)], [0, 0]);
    let layer = record.header.hosts[0].places[0].layers[0].clone();
    let (name, stat_file) = ("vdb".to_owned(), "/sys/block/vdb/stat".to_owned());
    let mut place = record.header.hosts[0].places[0].clone();
    let other = model::machine::Layer { name, stat_file: stat_file.clone(), ..layer.clone() };
    place.layers = vec![other];
    record.header.hosts[0].places.push(place);
    let shown = |mib: [u64; 2]| {
        let mut record = record.clone();
        for (at, snapshot) in record.runs[0].evidence.iter_mut().enumerate() {
            for (file, mib) in [&layer.stat_file, &stat_file].into_iter().zip(mib) {
                let sectors = if at == 0 { 0 } else { mib * 2048 };
                let text = format!("{sectors} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
                snapshot.files.insert(file.clone(), Ok(text));
            }
        }
        sentence(&crate::judge(&record, &Judging::default())).to_owned()
    };
    assert!(shown([1, 63]).contains("came from vdb."), "{}", shown([1, 63]));
    assert!(shown([32, 32]).contains("came from vda and vdb."), "{}", shown([32, 32]));
    // The file is on vda, which moved all bytes; vdb was busy for others.
    assert!(shown([64, 64]).contains("came from vda."), "{}", shown([64, 64]));
    // Most bytes came from a device that is not known, such as that of the libraries.
    assert!(shown([1, 1]).contains("came from a disk."), "{}", shown([1, 1]));
}

#[test]
fn the_worst_run_decides_the_checks_of_the_mean_time() {
    let found_in = |fetched_mib: &[u64]| {
        let record = record(fetched_mib.iter().map(|mib| end(mib * MIB)).collect(), [0, 0]);
        let report = crate::judge(&record, &Judging::default());
        report.checks.into_iter().find(|f| f.id == CheckId::A01).unwrap()
    };
    let cached = found_in(&[0, 0, 64]);
    assert_eq!(cached.outcome, Outcome::Finding);
    assert!(cached.sentence.ends_with("This was in 2 of 3 runs."), "{}", cached.sentence);
    assert!(!found_in(&[0, 0]).sentence.contains(" of 2 runs"));
    assert_eq!(found_in(&[64, 64]).outcome, Outcome::Holds);
}

#[test]
fn memory_below_the_current_directory_is_found() {
    let memory = |ram: Option<&str>, sectors: u64| {
        let mut record = record(vec![end(64 * MIB)], [0, 0]);
        let place = &mut record.header.hosts[0].places[0];
        place.ram = ram.map(str::to_owned);
        let stat = place.layers[0].stat_file.clone();
        let text = format!("{sectors} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
        record.runs[0].evidence[1].files.insert(stat, Ok(text));
        let report = crate::judge(&record, &Judging::default());
        report.checks.iter().find(|f| f.id == CheckId::A11).unwrap().outcome
    };
    assert_eq!(memory(Some("loop on tmpfs"), 131_072), Outcome::Finding);
    assert_eq!(memory(Some("loop on tmpfs"), 8), Outcome::Holds);
    assert_eq!(memory(None, 131_072), Outcome::Holds);
}

#[test]
fn what_a_directory_had_in_the_cache_is_known_only_if_no_device_and_no_hole_explains_it() {
    let cached = |fetched_mib: u64, sparse_bytes_below: Option<u64>| {
        let mut end = CommandEnd { sparse_bytes_below, ..end(fetched_mib * MIB) };
        end.named[0].before = Err("the files below data were not opened".into());
        judged(end, [0, 0]).1.cached_read_bytes
    };
    assert_eq!(cached(0, Some(0)), Ok(64 * MIB));
    assert!(cached(16, Some(0)).is_err() && cached(0, Some(64 * MIB)).is_err() && cached(0, None).is_err());
}

#[test]
fn a_disk_below_an_idle_device_is_counted() {
    // The current directory is on `upper`, whose image is on `vda`, and the named file on vda itself.
    let tops = |upper_mib: u64| {
        let mut record = record(vec![end(64 * MIB)], [0, 0]);
        let mut place = record.header.hosts[0].places[0].clone();
        let disk = place.layers[0].clone();
        let (name, stat_file) = ("upper".to_owned(), "upper".to_owned());
        place.layers.insert(0, model::machine::Layer { name, stat_file, below: vec![1], ..disk.clone() });
        record.header.hosts[0].places.push(place);
        for (at, snapshot) in record.runs[0].evidence.iter_mut().enumerate() {
            for (file, mib) in [(&*disk.stat_file, 64), ("upper", upper_mib)] {
                let sectors = if at == 0 { 0 } else { mib * 2048 };
                let text = format!("{sectors} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
                snapshot.files.insert(file.to_owned(), Ok(text));
            }
        }
        let tops = super::figures::topmost_devices(record.header.hosts.first(), &record.runs[0]);
        tops.into_iter().map(|layer| layer.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(tops(0), ["vda", "upper"]);
    assert_eq!(tops(64), ["upper"]);
}

#[test]
fn only_the_kernels_own_time_is_copying() {
    let limiter = |user_ms: u64, source: Option<&str>| {
        let mut end = writer(64 * MIB, FinalSync::Off);
        (end.user_ns, end.system_ns) = (user_ms * 1_000_000, (490 - user_ms) * 1_000_000);
        end.byte_sources = source.map(str::to_owned).into_iter().collect();
        judged(end, [0, 64 << 10]).0.limiter.name
    };
    assert_eq!([limiter(10, None), limiter(10, Some("/dev/zero"))], ["page cache", "page cache"]);
    assert_eq!([limiter(200, None), limiter(10, Some("/dev/urandom"))], ["CPU", "CPU"]);
}

#[test]
fn zeros_of_ranges_that_were_never_written_are_not_from_the_page_cache() {
    // Reads of a file of 64 MiB. The arguments are MiB: fetched from the device, holes, unwritten, cached before the run,
    // and read by calls.
    let read = |fetched: u64, holes: u64, unwritten: u64, cached: Option<u64>, bytes: u64| {
        let mut end = end(fetched * MIB);
        end.moved.as_mut().unwrap().read_call_bytes = bytes * MIB;
        let before = end.named[0].before.as_mut().unwrap();
        (before.hole_bytes, before.unwritten_bytes) = (holes * MIB, Some(unwritten * MIB));
        before.cached_bytes = cached.map(|mib| mib * MIB);
        let (report, run) = judged(end, [0, 0]);
        let shown = sentence(&report).split_once("; ").unwrap().1.to_owned();
        (run.cached_read_bytes.ok().map(|bytes| bytes / MIB), shown, found(&report))
    };
    let (cached, shown, ids) = read(0, 0, 64, Some(0), 64);
    assert_eq!((cached, ids), (Some(0), vec!["A10".to_owned()]));
    let zeros = "none of it came from vda, and 64 MiB had never been written, which reads as zeros.";
    assert_eq!(shown, zeros);
    let (cached, shown, _) = read(16, 16, 16, Some(16), 64);
    assert_eq!(cached, Some(16));
    let zeros = "16 MiB came from the disk, the page cache had 16 MiB, and 32 MiB had never been written, which reads as zeros.";
    assert_eq!(shown, zeros);
    // A part of the file was read, and the cache had none of it.
    assert_eq!(read(0, 48, 0, Some(0), 32).0, Some(0));
    // The part that was read may be cached data or holes.
    let (cached, shown, ids) = read(0, 32, 0, Some(32), 32);
    assert_eq!((cached, ids), (None, vec!["A04".to_owned()]));
    assert!(shown.contains("nothing came from vda"), "{shown}");
    assert_eq!(read(0, 32, 0, None, 32).0, None);
    assert_eq!(read(0, 0, 0, None, 32).0, Some(32));
}

#[test]
fn an_unreadable_file_does_not_hide_the_holes_of_another() {
    let mut end = end(0);
    let holes =
        |bytes| Ok(FilesState { files: 1, bytes: 64 * MIB, hole_bytes: bytes, ..FilesState::default() });
    let named = |before| NamedFiles { before, ..end.named[0].clone() };
    let [unreadable, with, without] = [Err("permission denied".into()), holes(32 * MIB), holes(0)].map(named);
    let mut outcome = |files: &[&NamedFiles]| {
        end.named = files.iter().map(|one| (*one).clone()).collect();
        let (report, _) = judged(end.clone(), [0, 0]);
        report.checks.iter().find(|f| f.id.to_string() == "A04").map(|f| f.outcome)
    };
    assert_eq!(outcome(&[&unreadable, &with]), Some(Outcome::Finding));
    assert_eq!(outcome(&[&unreadable, &without]), Some(Outcome::NotChecked));
    assert_eq!(outcome(&[&without]), Some(Outcome::Holds));
}

#[test]
fn memory_near_that_of_fathom_is_not_the_commands() {
    for (peak_bytes, is_known) in [(4 * MIB - 1, false), (5 * MIB, false), (8 * MIB, true)] {
        let (_, run) = judged(CommandEnd { peak_bytes, ..end(0) }, [0, 0]);
        assert_eq!(run.peak_bytes.is_ok(), is_known, "{:?}", run.peak_bytes);
    }
}

#[test]
fn notes_about_the_whole_session_are_reported() {
    let mut record = record(vec![end(0)], [0, 0]);
    let note = "the session was too large".to_owned();
    let notes = vec![note.clone()];
    record.end = Some(End { ending: RunEnding::Complete, notes, clock_drift_ppm: None });
    assert!(crate::judge(&record, &Judging::default()).notes.contains(&note));
}

#[test]
fn files_without_holes_confirm_only_that() {
    let sentences = |hole_bytes, unwritten_bytes| {
        let mut end = end(64 * MIB);
        let before = end.named[0].before.as_mut().unwrap();
        (before.hole_bytes, before.unwritten_bytes) = (hole_bytes, Some(unwritten_bytes));
        let (report, _) = judged(end, [0, 0]);
        let sentence = |id: &str| {
            let found = report.checks.iter().find(|f| f.id.to_string() == id);
            found.map(|f| f.sentence.clone()).unwrap_or_default()
        };
        [sentence("A04"), sentence("A10")]
    };
    assert_eq!(
        sentences(0, 0),
        ["The named files have no holes.", "The named files have no ranges that were never written."]
    );
    let [holes, unwritten] = sentences(4096, 2 * MIB);
    assert_eq!(holes, "Hardly any bytes of the named files are holes.");
    assert!(unwritten.starts_with("2 MiB of the 64 MiB in data are ranges"), "{unwritten}");
}

#[test]
fn small_calls_are_described_for_each_direction() {
    let limiter = |read_calls, write_calls, written_mib| {
        let mut end = end(0);
        end.user_ns = 450_000_000;
        let moved = end.moved.as_mut().unwrap();
        (moved.read_calls, moved.write_calls) = (Some(read_calls), write_calls);
        moved.write_call_bytes = written_mib * MIB;
        let (report, _) = judged(end, [0, 0]);
        report.study.commands().unwrap().commands[0].limiter.sentence.clone()
    };
    let both = limiter(131_072, 65_536, 64);
    assert!(
        both.ends_with("; it made 131,072 read calls of 512 bytes and 65,536 write calls of 1,024 bytes"),
        "{both}"
    );
    let writes = limiter(16, 131_072, 1);
    assert!(writes.ends_with("; it made 131,072 write calls of 8.00 bytes"), "{writes}");
    assert!(!limiter(16, 16, 1).contains("it made"));
}

#[test]
fn beliefs_that_hold_within_a_tolerance_are_not_confirmed() {
    let backlog = |kib| {
        let (report, _) = judged(end(64 * MIB), [kib, kib]);
        report.checks.into_iter().find(|f| f.id.to_string() == "D02").unwrap().sentence
    };
    assert_eq!(backlog(0), "Confirmed: no older data were waiting to be written.");
    assert_eq!(backlog(4), "Hardly any older data was waiting to be written.");
}

#[test]
fn syncs_of_asynchronous_contexts_are_unknown() {
    let asynchronous = |contexts| Ok(Traced { async_contexts: contexts, ..Traced::default() });
    let syncs = |contexts| judged(CommandEnd { traced: asynchronous(contexts), ..end(0) }, [0, 0]).1.syncs;
    assert!(syncs(0).is_ok() && syncs(1).is_err());
}

#[test]
fn unused_read_ahead_is_not_read_and_mapped_memory_is_not_unused() {
    let (report, run) = judged(end(68 * MIB), [0, 0]);
    assert_eq!(run.unused_read_ahead_bytes, Ok(4 * MIB));
    assert!(sentence(&report).contains("read 64 MiB in"), "{}", sentence(&report));
    let mapped = CommandIo { read_call_bytes: MIB, fetched_bytes: 64 * MIB, ..CommandIo::default() };
    let (report, run) = judged(CommandEnd { moved: Ok(mapped), ..end(0) }, [0, 0]);
    assert!(run.unused_read_ahead_bytes.is_err() && run.cached_read_bytes.is_err(), "{run:?}");
    assert!(sentence(&report).contains("read 64 MiB in"), "{}", sentence(&report));
}

#[test]
fn bytes_of_pipes_and_dev_zero_are_not_from_the_page_cache() {
    let pipe = CommandEnd { stdin: Stream::Pipe, ..end(0) };
    let zero = CommandEnd { byte_sources: vec!["/dev/zero".into()], ..end(0) };
    let several = CommandEnd { traced: Ok(Traced { started: 3, pipes: 1, ..Traced::default() }), ..end(0) };
    let unseen = CommandEnd { traced: Err("not root".into()), single_process: Ok(false), ..end(0) };
    let nameless = CommandEnd { named: Vec::new(), ..end(0) };
    let mut remote = end(0);
    remote.named[0].hidden_device_reason = Some("it is on nfs4".into());
    for end in [pipe, zero, several, unseen, nameless, remote] {
        let (report, run) = judged(end, [0, 0]);
        assert!(run.cached_read_bytes.is_err(), "{run:?}");
        assert!(!found(&report).contains(&"A01".to_owned()) && !sentence(&report).contains("page cache had"));
    }
}

/// 64 MiB written; `dirty_bytes` were dirty in the file at the end.
fn writer(dirty_bytes: u64, final_sync: FinalSync) -> CommandEnd {
    let mut end = end(0);
    end.moved = Ok(CommandIo {
        write_call_bytes: 64 * MIB,
        write_calls: 64,
        dirtied_bytes: 64 * MIB,
        ..CommandIo::default()
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
    // 40 MiB of other processes were dirty before the run.
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
    assert!(rate(1, [own_pages, own_pages]).is_err_and(|why| why.contains("have bypassed the page cache")));
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
        let foreign_io = report.checks.iter().find(|f| f.id.to_string() == "D01").unwrap().outcome;
        let run = report.study.commands().unwrap().commands[0].runs[0].clone();
        (run.foreign_written_bytes, foreign_io)
    };
    assert_eq!(written(0, 64), (Ok(0), Outcome::Holds));
    assert_eq!(written(32, 32), (Ok(0), Outcome::Holds));
    assert_eq!(written(64, 32), (Ok(32 * MIB), Outcome::NotChecked));
}

/// Puts a device `lower` below the first one. Its counters are in the file of the same name.
fn add_lower_device(record: &mut Record) {
    let layers = &mut record.header.hosts[0].places[0].layers;
    let lower =
        model::machine::Layer { name: "lower".into(), stat_file: "lower".into(), ..layers[0].clone() };
    layers[0].below = vec![layers.len()];
    layers.push(lower);
}

#[test]
fn reads_of_a_lower_device_alone_leave_other_processes_unknown() {
    let foreign_io = |lower_mib: u64| {
        let mut record = record(vec![writer(0, FinalSync::Off)], [100, 100]);
        add_lower_device(&mut record);
        for (moment, sectors) in [(0, 0), (1, lower_mib * 2048)] {
            let text = format!("{sectors} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
            record.runs[0].evidence[moment].files.insert("lower".into(), Ok(text));
        }
        let report = crate::judge(&record, &Judging::default());
        report.checks.iter().find(|f| f.id.to_string() == "D01").unwrap().outcome
    };
    assert_eq!(foreign_io(0), Outcome::Holds);
    assert_eq!(foreign_io(20), Outcome::NotChecked);
}

#[test]
fn a_lower_device_must_deliver_what_the_upper_one_read() {
    let answer = |lower_mib: u64| {
        let mut record = record(vec![end(64 * MIB)], [0, 0]);
        let upper_file = record.header.hosts[0].places[0].layers[0].stat_file.clone();
        add_lower_device(&mut record);
        for (moment, snapshot) in record.runs[0].evidence.iter_mut().enumerate() {
            for (file, mib) in [(&*upper_file, 100), ("lower", lower_mib)] {
                let sectors = if moment == 0 { 0 } else { mib * 2048 };
                let text = format!("{sectors} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
                snapshot.files.insert(file.to_owned(), Ok(text));
            }
        }
        let report = crate::judge(&record, &Judging::default());
        let found = report.checks.into_iter().find(|f| f.id.to_string() == "A12").unwrap();
        (found.outcome, found.sentence)
    };
    assert_eq!(answer(94).0, Outcome::Finding);
    assert_eq!(answer(96), (Outcome::Holds, "The disks below delivered 96.0 % of the reads.".to_owned()));
    assert!(answer(100).1.starts_with("Confirmed: the disks below did all"), "{}", answer(100).1);
}

#[test]
fn nothing_reaches_a_device_that_wrote_nothing() {
    let reached = |dirty_bytes: u64| {
        let mut record = record(vec![writer(dirty_bytes, FinalSync::Off)], [100, 100]);
        let idle = record.runs[0].evidence[0].files.clone();
        record.runs[0].evidence[1].files = idle;
        let report = crate::judge(&record, &Judging::default());
        let run = report.study.commands().unwrap().commands[0].runs[0].clone();
        (run.written_at_end_bytes, sentence(&report).to_owned())
    };
    // The command also wrote a page of messages to another file.
    let (bytes, text) = reached(64 * MIB - 4096);
    assert_eq!(bytes, Ok(0));
    assert!(text.contains("none of it had reached"), "{text}");
    // Nothing is dirty, so all of it went to a file that is not known.
    let (bytes, text) = reached(0);
    assert!(bytes.is_err_and(|why| why.contains("wrote nothing")));
    assert!(text.contains("is not known"), "{text}");
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
    let holds = report.checks.iter().filter(|f| f.outcome == Outcome::Holds);
    let holds: Vec<String> = holds.map(|f| f.id.to_string()).collect();
    assert_eq!(holds, [""; 0], "{:#?}", report.checks);
    let run = &report.study.commands().unwrap().commands[0].runs[0];
    assert!(
        run.devices.is_err() && run.foreign_read_bytes.is_err() && run.pressure.iter().all(Result::is_err)
    );
}

#[test]
fn a_device_that_is_busy_for_others_is_not_the_limiter() {
    const READS: &str = "9000 0 600000 0 0 0 0 0";
    const WRITES: &str = "0 0 0 0 9000 0 600000 0";
    let limiter_of = |end: CommandEnd, requests: &str, queue_ms: u64| {
        let mut record = record(vec![end], [0, 0]);
        let stat = record.header.hosts[0].places[0].layers[0].stat_file.clone();
        for snapshot in record.runs[0].evidence.iter_mut().skip(1) {
            let text = format!("{requests} 0 465 {queue_ms} 0 0 0 0 0 0");
            snapshot.files.insert(stat.clone(), Ok(text));
        }
        let report = crate::judge(&record, &Judging::default());
        let foreign_io = report.checks.iter().find(|f| f.id.to_string() == "D01").unwrap().severity;
        (report.limiter, foreign_io)
    };
    let limiter = |fetched_bytes: u64, queue_ms: u64| limiter_of(end(fetched_bytes), READS, queue_ms).0;
    assert_eq!(limiter(300 * MIB, 4_000).name, "device");
    assert!(!limiter(300 * MIB, 4_000).sentence.contains("other processes"));
    assert!(limiter(40 * MIB, 4_000).sentence.contains("mostly for other processes"));
    assert_eq!(limiter(64 * MIB, 465).name, "one request at a time");
    for queue_ms in [465, 4_000] {
        let cached = limiter(0, queue_ms);
        assert_eq!(cached.name, "none of these", "{cached:?}");
        assert!(cached.sentence.contains("but not with the command's data"), "{cached:?}");
    }
    // Such as `rm -r`, whose work is metadata, and `sleep`.
    let few = CommandIo { read_call_bytes: 800, read_calls: Some(3), ..CommandIo::default() };
    let few = CommandEnd { moved: Ok(few), ..end(0) };
    assert_eq!(limiter_of(few.clone(), WRITES, 4_000).0.name, "device");
    let (limiter, foreign_io) = limiter_of(few, READS, 4_000);
    assert_eq!((limiter.name.as_str(), foreign_io), ("none of these", Some(Severity::Note)), "{limiter:?}");
    // Its reads compete with those of the command, whatever the cgroup counted.
    assert_eq!(limiter_of(end(MIB), READS, 4_000).1, Some(Severity::Biases));
}

#[test]
fn a_pipe_is_the_limiter_only_if_the_data_went_through_it() {
    let limiter = |end: CommandEnd, args: &[&str]| {
        let mut record = record(vec![end], [0, 0]);
        let Study::Commands(study) = &mut record.header.plan.study else { unreachable!() };
        study.commands[0].args = args.iter().map(|arg| (*arg).to_owned()).collect();
        crate::judge(&record, &Judging::default()).limiter.name
    };
    let mut tar = end(0);
    tar.stdout = Stream::Pipe;
    tar.moved = Ok(CommandIo {
        read_call_bytes: 64 * MIB,
        read_calls: Some(9),
        write_call_bytes: 64 * MIB,
        write_calls: 9,
        ..CommandIo::default()
    });
    assert_eq!(limiter(tar.clone(), &["tar", "c", "data"]), "the other end of a pipe");
    // Its standard output is a pipe that carried no data.
    assert_eq!(limiter(tar, &["dd", "if=data", "of=/dev/null"]), "none of these");
    // A pipe as standard input does not count if files were read.
    assert_eq!(limiter(CommandEnd { stdin: Stream::Pipe, ..end(0) }, &["cat", "data"]), "none of these");
}

#[test]
fn a_failed_command_is_described_with_its_exit_code_whatever_it_moved() {
    let described = |end: CommandEnd| {
        let (report, _) = judged(CommandEnd { exit: Exit::Code(2), ..end }, [100, 100]);
        sentence(&report).to_owned()
    };
    for end in
        [end(64 * MIB), writer(0, FinalSync::Off), CommandEnd { moved: Ok(CommandIo::default()), ..end(0) }]
    {
        let text = described(end);
        assert_eq!(text.matches("ended with exit code 2").count(), 1, "{text}");
    }
}

#[test]
fn a_condition_is_decided_by_one_run_or_by_the_bounds_of_several() {
    let decided = |wall_ms: &[u64], limit: &str| {
        let ends = wall_ms.iter().map(|ms| CommandEnd { wall_ns: ms * 1_000_000, ..end(0) }).collect();
        let mut record = record(ends, [0, 0]);
        record.header.plan.fail_if = model::spec::conditions::conditions(limit).unwrap();
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
    record.header.plan.fail_if = model::spec::conditions::conditions("time>20s").unwrap();
    let Study::Commands(study) = &mut record.header.plan.study else { unreachable!() };
    let second = Command { line: "never run".into(), args: vec!["never".into()] };
    study.commands.push(second);
    let report = crate::judge(&record, &Judging::default());
    let outcomes: Vec<&str> = report.gates.iter().map(|gate| gate.word.word()).collect();
    assert_eq!(outcomes, ["PASS", "INCONCLUSIVE"], "{:?}", report.gates);
    assert_eq!(report.answer.unwrap().word.word(), "INCONCLUSIVE");
}

#[test]
fn a_plan_of_commands_survives_its_json() {
    let record = record(vec![end(0)], [0, 0]);
    let text = serde_json::to_string(&record.header.plan).unwrap();
    let plan: model::plan::Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(plan, record.header.plan);
    assert_eq!(plan.result_count(), 1);
}

#[test]
fn repeats_that_differ_are_found_and_single_runs_are_not_checked() {
    let found_after = |seconds: &[f64]| {
        let ends = seconds.iter().map(|s| CommandEnd { wall_ns: (s * 1e9) as u64, ..end(64 * MIB) });
        found(&crate::judge(&record(ends.collect(), [0, 0]), &Judging::default()))
    };
    assert_eq!(found_after(&[0.5]), Vec::<String>::new());
    assert_eq!(found_after(&[0.5, 0.5]), ["E05"]);
    assert_eq!(found_after(&[0.5, 0.51, 0.5]), Vec::<String>::new());
    // A standard deviation of 11 % is a note, and one of 60 % biases the mean.
    assert_eq!(found_after(&[0.45, 0.5, 0.56]), ["E06"]);
    let ends = [0.2, 0.5, 0.8].map(|s: f64| CommandEnd { wall_ns: (s * 1e9) as u64, ..end(64 * MIB) });
    let report = crate::judge(&record(ends.to_vec(), [0, 0]), &Judging::default());
    assert_eq!((found(&report), report.verdict), (vec!["E06".to_owned()], Verdict::Suspect));
}
