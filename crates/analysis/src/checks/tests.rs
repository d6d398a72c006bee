//! Tests of all checks: each fires on its fixture and stays silent on honest records, and each decides about a single
//! stream when two streams run at the same time, on one disk or on two.

use crate::case::{Case, cases};
use crate::checks::{Answer, Answers, Ask, Check, Detail, Earlier, all, evidence, hosts, undecided};
use crate::findings::ask_all;
use crate::fixture::{Fixture, two_streams, two_streams_on_two_disks, without_worker_counts};
use crate::{Judging, judge};
use model::Known;
use model::evidence::Moment;
use model::finding::{CheckId, Severity};
use model::job::{Cache, Kind};
use model::machine::{Layer, LayerKind};
use model::record::{Record, Run, RunStart, ThreadIo};
use model::report::Verdict;

impl Check {
    /// Returns the answer about the first case of a record.
    pub(crate) fn answer(&self, record: &Record) -> Known<Answer> {
        let case = &crate::case::cases(record)[0];
        let mut earlier = Answers::new();
        if !self.after().is_empty() {
            earlier
                .extend(crate::findings::ask_all(case).into_iter().map(|(check, answer)| (check.id, answer)));
        }
        self.ask(case, &earlier)
    }

    /// Returns the severity of the finding, if there is one.
    pub(crate) fn severity(&self, record: &Record) -> Option<Severity> {
        match self.answer(record) {
            Ok(Answer::Finding(f)) => Some(f.severity),
            _ => None,
        }
    }

    /// Returns the sentence of a belief that holds.
    pub(crate) fn sentence(&self, record: &Record) -> String {
        match self.answer(record) {
            Ok(Answer::Holds(sentence, _)) => sentence.into_owned(),
            other => panic!("{other:?}"),
        }
    }
}

/// The ids of checks that the honest records cannot exercise, each with what is missing. Such a check may answer
/// "not checked" about an honest record, and its own tests show that it holds.
const NOT_EXERCISED: &[(CheckId, &str)] = &[
    (CheckId::A19, "a drive that shows its link"),
    (CheckId::B08, "polling must be requested, and needs a disk that polls"),
    (CheckId::B21, "no honest record trims; the check has its own tests"),
    (CheckId::D15, "a drive that shows its temperature"),
    (CheckId::D16, "a drive that shows its link"),
    (CheckId::D23, "an array of several drives"),
];

#[test]
fn every_check_fires_on_its_fixture_and_is_silent_on_honest_records() {
    let read_ahead = Fixture { cache: Cache::Buffered, ..Fixture::honest_sequential() };
    let [read, write, open, sequential, device, read_ahead] = [
        Fixture::honest(),
        Fixture::honest_write(),
        Fixture::honest_open(),
        Fixture::honest_sequential(),
        Fixture::honest_loop(),
        read_ahead,
    ]
    .map(|fixture| fixture.record());
    let two_hosts = hosts::honest();
    for check in all() {
        let id = check.id;
        let not_exercised = NOT_EXERCISED.iter().any(|(listed, _)| *listed == id);
        let finding = check.fires.map(|fixture| check.answer(&fixture()));
        assert!(
            matches!(finding, Some(Ok(Answer::Finding(_)))) || id == CheckId::A13,
            "{id} does not fire: {finding:?}"
        );
        for (name, honest) in
            [("read", &read), ("write", &write), ("open loop", &open), ("sequential read", &sequential)]
        {
            let answer = check.answer(honest);
            let is_silent = matches!(answer, Ok(Answer::Holds(..) | Answer::DoesNotApply))
                || (not_exercised && answer.is_err());
            assert!(is_silent, "{id} is not silent on the honest {name}: {answer:?}");
        }
        let blind = check.answer(&(check.blind)());
        assert!(blind.is_err(), "{id} answers without its data: {blind:?}");
        // Silence on honest records proves nothing if the check never applies to them.
        let holds = |record: &&_| matches!(check.answer(record), Ok(Answer::Holds(..)));
        assert!(
            not_exercised
                || [&read, &write, &device, &open, &sequential, &read_ahead, &two_hosts].iter().any(holds),
            "{id} holds on no honest record"
        );
    }
}

/// Adds a target before the others. No snapshot contains its state. With `is_place_known`, its device chain is that of the next target,
/// otherwise it is unknown.
fn with_unknown_target(mut record: Record, is_place_known: bool) -> Record {
    let plan = &mut record.header.plan;
    plan.targets.insert(0, plan.targets[0].clone());
    for stream in plan.jobs.iter_mut().flat_map(model::job::Job::streams_mut) {
        stream.targets = vec![0, 1];
    }
    let places = &mut record.header.hosts[0].places;
    places.insert(0, places[0].clone());
    if !is_place_known {
        let place = &mut places[0];
        (place.file_system, place.unresolved_reason) = (None, Some("the device chain is hidden".into()));
        (place.layers, place.tops) = (Vec::new(), Vec::new());
    }
    let snapshots = record.runs.iter_mut().flat_map(|r| &mut r.evidence).chain(&mut record.evidence);
    for targets in snapshots.map(|snapshot| &mut snapshot.targets) {
        let mut unknown = targets[0].clone();
        let why = || "Permission denied (os error 13)".to_owned();
        (unknown.pages, unknown.extents, unknown.file) = (Err(why()), Some(Err(why())), Some(Err(why())));
        (unknown.room, unknown.probe) = (Some(Err(why())), unknown.probe.map(|_| Err(why())));
        targets.insert(0, unknown);
    }
    record
}

#[test]
fn a_certain_finding_about_a_target_stands_if_another_target_is_unknown() {
    use CheckId as Id;
    let mut before_runs =
        with_unknown_target(Fixture { hole_share: 1.0, ..Fixture::honest() }.record(), true);
    before_runs.runs.clear();
    assert_eq!(
        severity(&before_runs, 0, CheckId::A04),
        Some(Severity::Invalidates),
        "fathom measures nothing"
    );
    for id in [
        Id::A02,
        Id::A04,
        Id::A05,
        Id::A06,
        Id::A07,
        Id::A14,
        Id::A17,
        Id::A21,
        Id::A23,
        Id::B08,
        Id::B11,
        Id::B15,
        Id::B16,
        Id::B19,
        Id::D03,
        Id::D20,
        Id::D24,
    ] {
        let check = all().find(|check| check.id == id).unwrap();
        let certain = check.fires.unwrap()();
        // Whether extents matter (B15) follows from the device chain.
        let is_place_known = id == Id::B15;
        let answer = check.answer(&with_unknown_target(certain.clone(), is_place_known));
        let found = if let Ok(Answer::Finding(f)) = &answer { Some(f.severity) } else { None };
        assert_eq!(found, check.severity(&certain), "{id}: {answer:?}");
        let honest = [Fixture::honest(), Fixture::honest_write()].map(|fixture| fixture.record());
        let answers = honest.map(|record| check.answer(&with_unknown_target(record, is_place_known)));
        let never_holds = answers.iter().all(|answer| !matches!(answer, Ok(Answer::Holds(..))));
        // Without --expect-device, A14 accepts any place.
        assert!(never_holds || id == Id::A14, "{id} holds although a target is unknown: {answers:?}");
    }
}

/// Removes from a run everything that fathom read about it.
fn unread(run: &mut Run) {
    run.evidence.clear();
    run.intervals.clear();
    if let Some(end) = &mut run.end {
        end.stops = Some(Err("hidden".into()));
        for worker in &mut end.workers {
            (worker.io, worker.ready_ns) = (Err("hidden".into()), Err("hidden".into()));
        }
    }
}

/// Adds a run before the first one. Nothing was read about the added run.
fn with_unread_run(mut record: Record) -> Record {
    let mut first = record.runs[0].clone();
    unread(&mut first);
    let same = |start: &RunStart| (start.job, start.phase, start.offered_iops);
    let is_of_job = |run: &&mut Run| same(&run.start) == same(&first.start);
    record.runs.iter_mut().filter(is_of_job).for_each(|run| run.start.repeat += 1);
    record.runs.insert(0, first);
    record
}

#[test]
fn a_certain_finding_about_a_run_stands_if_another_run_was_not_read() {
    let mut lost = Vec::new();
    for check in all() {
        let Some(certain) = check.fires.map(|fixture| fixture()) else { continue };
        if certain.fleet.is_some() || certain.runs.is_empty() {
            continue;
        }
        let severity = |record: &Record| check.severity(record);
        let found = check.answer(&with_unread_run(certain.clone()));
        let stands = matches!(&found, Ok(Answer::Finding(f)) if Some(f.severity) == severity(&certain));
        lost.extend((!stands).then(|| format!("{}: {found:?}", check.id)));
    }
    assert!(lost.is_empty(), "{lost:#?}");
    let all_read = all().find(|check| check.id == CheckId::D02).unwrap();
    let found = all_read.answer(&with_unread_run(all_read.fires.unwrap()()));
    let sentence = if let Ok(Answer::Finding(f)) = &found { f.sentence.as_str() } else { "" };
    assert!(
        sentence.ends_with(" runs were checked, the others not: run 1 has no snapshot at its start."),
        "{found:?}"
    );
}

/// Returns the answer of a check with this question about the honest record.
fn ask_with(question: fn(&Case) -> Known<Answer>) -> Known<Answer> {
    let dirty = all().find(|check| check.id == CheckId::D02).unwrap();
    let check = Check { ask: Ask::Alone(question), applies: |_| true, ..*dirty };
    check.answer(&Fixture::honest().record())
}

fn found(sentence: &str) -> Known<Answer> {
    Detail::new(Severity::Note, sentence.to_owned(), evidence([])).found()
}

/// Relabels the first `RUNS` runs. The others were not read.
fn relabel_if_before<const RUNS: u32>(case: &Case) -> Known<Answer> {
    match case.runs.iter().map(|ran| ran.run.start.repeat).find(|repeat| *repeat >= RUNS) {
        Some(repeat) => Err(format!("run {} has no snapshot at its start", repeat + 1)),
        None => Detail::new(Severity::Relabels, String::new(), evidence([])).found(),
    }
}

#[test]
fn each_check_leaves_out_only_the_runs_that_it_could_not_read() {
    let repeats = |case: &Case| case.runs.iter().map(|ran| ran.run.start.repeat).collect::<Vec<_>>();
    let all_runs = repeats(&cases(&Fixture::honest().record())[0]);
    assert_eq!(all_runs.len(), 5);
    // Two runs lack different files. The other three have the finding.
    let answer = ask_with(|case| {
        for ran in case.runs.iter() {
            match ran.run.start.repeat {
                1 => return Err("no file a".into()),
                3 => return Err("no file b".into()),
                _ => {}
            }
        }
        found(&format!("{} runs.", case.runs.len()))
    });
    let sentence = if let Ok(Answer::Finding(f)) = &answer { f.sentence.as_str() } else { "" };
    let rest = all_runs.iter().filter(|repeat| ![1, 3].contains(*repeat)).count();
    assert_eq!(
        sentence,
        format!("{rest} runs. Only {rest} of 5 runs were checked, the others not: no file a.")
    );
    // The reasons differ only in the number of the run, and more than `MAX_REASONS` runs are unread.
    let answer = ask_with(|case| match case.runs.iter().map(|ran| ran.run.start.repeat).find(|at| *at > 0) {
        Some(repeat) => Err(format!("run {} has no snapshot at its start", repeat + 1)),
        None => found(&format!("{} runs.", case.runs.len())),
    });
    let sentence = if let Ok(Answer::Finding(f)) = &answer { f.sentence.as_str() } else { "" };
    assert!(sentence.starts_with("1 runs. Only 1 of 5 runs was checked, the others not: run "), "{answer:?}");
    // A few runs bias the number of all runs. They do not show what it is.
    let severities = [ask_with(relabel_if_before::<2>), ask_with(relabel_if_before::<3>)]
        .map(|answer| if let Ok(Answer::Finding(found)) = answer { Some(found.severity) } else { None });
    assert_eq!(severities, [Some(Severity::Biases), Some(Severity::Relabels)]);
    // The figures of all runs do not decide. Fewer runs would, but that would be a choice of runs.
    let answer = ask_with(|case| match case.runs.len() {
        5 => Err("the runs vary too much".into()),
        1 => Err("one run does not vary".into()),
        _ => found("decided"),
    });
    assert_eq!(answer, Err("the runs vary too much".into()));
    // All runs together do not decide. Run 5 alone would be a finding, but that would be a choice of runs.
    let answer = ask_with(|case| match case.runs.iter().find(|ran| ran.run.start.repeat == 4) {
        Some(_) if case.runs.len() == 1 => found("an outlier"),
        _ => undecided("whether it holds"),
    });
    assert_eq!(answer, Err("fathom cannot tell whether it holds".into()));
    // An error with the same text means missing evidence: the type of the answer decides.
    let answer = ask_with(|case| {
        if case.runs.iter().any(|ran| ran.run.start.repeat == 4) {
            Err("fathom cannot tell whether it holds".into())
        } else {
            found("The other runs decide.")
        }
    });
    assert!(matches!(answer, Ok(Answer::Finding(_))), "{answer:?}");
    // The other runs do not decide.
    let answer = ask_with(|case| {
        if case.runs.iter().any(|ran| ran.run.start.repeat == 4) {
            Err("no file".into())
        } else {
            undecided("whether it holds")
        }
    });
    assert_eq!(answer, Err("no file".into()));
    // No run was read.
    assert_eq!(ask_with(|_| Err("no file".into())), Err("no file".into()));
}

#[test]
fn no_belief_holds_if_a_run_was_not_read() {
    let mut false_holds = Vec::new();
    for honest in
        [reads(), writes(), Fixture::honest_open(), Fixture::honest_sequential(), Fixture::honest_loop()]
    {
        let honest = honest.record();
        let mut blind = honest.clone();
        blind.runs.iter_mut().for_each(unread);
        for check in all() {
            let needs_reading = check.answer(&blind).is_err();
            let answer = check.answer(&with_unread_run(honest.clone()));
            if needs_reading && matches!(answer, Ok(Answer::Holds(..))) {
                false_holds.push(format!("{}: {answer:?}", check.id));
            }
        }
    }
    assert!(false_holds.is_empty(), "{false_holds:#?}");
}

#[test]
fn ids_are_sorted_and_names_are_in_capitals() {
    let checks: Vec<&Check> = all().collect();
    assert!(checks.windows(2).all(|w| w[0].id < w[1].id));
    let is_upper_case =
        |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    assert!(checks.iter().all(|c| !c.belief.is_empty() && is_upper_case(c.name)));
}

#[test]
fn a_check_sees_only_the_answers_of_the_checks_that_it_names() {
    let holds = || Ok(Answer::Holds("it does".into(), evidence([])));
    let answers = Answers::from([(CheckId::A04, holds()), (CheckId::A13, holds())]);
    let earlier = Earlier { ids: &[CheckId::A04, CheckId::A07], answers: &answers };
    assert!(earlier.holds(CheckId::A04) && !earlier.finds(CheckId::A04));
    assert_eq!([CheckId::A07, CheckId::A13].map(|id| earlier.answer(id)), [None, None]);
}

/// Returns the answer of a check about a stream.
fn answer(record: &Record, stream: usize, id: CheckId) -> Known<Answer> {
    let all = ask_all(&cases(record)[stream]);
    all.into_iter().find(|(check, _)| check.id == id).unwrap().1
}

fn holds(record: &Record, stream: usize, id: CheckId) -> bool {
    matches!(answer(record, stream, id), Ok(Answer::Holds(..)))
}

fn severity(record: &Record, stream: usize, id: CheckId) -> Option<Severity> {
    match answer(record, stream, id) {
        Ok(Answer::Finding(found)) => Some(found.severity),
        _ => None,
    }
}

/// Whether a check has no answer because of the other stream.
fn not_checked(record: &Record, stream: usize, id: CheckId) -> bool {
    answer(record, stream, id).is_err_and(|why| why.contains("at the same time"))
}

fn verdict(record: &Record, stream: usize) -> Verdict {
    judge(record, &Judging::default()).results[stream].verdict
}

fn reads() -> Fixture {
    Fixture::honest()
}

fn writes() -> Fixture {
    Fixture::honest_write()
}

/// Returns the fixture with a hundredth of its operations.
fn small(fixture: Fixture) -> Fixture {
    Fixture { ops: 100, depth: 1, depth_seen: 0.1, ..fixture }
}

fn buffered(fixture: Fixture) -> Fixture {
    Fixture { cache: Cache::Buffered, engine: "sync", ..fixture }
}

#[test]
fn a01_finds_the_page_cache_below_a_small_stream_next_to_a_large_direct_one() {
    let record = two_streams(&reads(), &small(buffered(Fixture { delivered: 0.0, ..reads() })));
    assert!(holds(&record, 0, CheckId::A01), "{:?}", answer(&record, 0, CheckId::A01));
    assert_eq!(severity(&record, 1, CheckId::A01), Some(Severity::Relabels));
    assert_eq!([verdict(&record, 0), verdict(&record, 1)], [Verdict::Valid, Verdict::Suspect]);
    // A run without counts of its workers hides no finding about the other runs.
    let mut partly_counted = record.clone();
    let end = partly_counted.runs[1].end.as_mut().unwrap();
    end.workers.iter_mut().for_each(|worker| worker.io = Err("hidden".into()));
    assert_eq!(severity(&partly_counted, 1, CheckId::A01), Some(Severity::Relabels));
    let cold = two_streams(&reads(), &small(buffered(reads())));
    assert!(holds(&cold, 1, CheckId::A01), "{:?}", answer(&cold, 1, CheckId::A01));
}

#[test]
fn a01_decides_by_bounds_without_worker_counts() {
    let two = without_worker_counts(two_streams(&reads(), &reads()));
    assert!(holds(&two, 0, CheckId::A01) && holds(&two, 1, CheckId::A01));
    // The sum of both streams proves nothing about a small stream, or about a stream next to one that uses the page cache.
    let uneven = without_worker_counts(two_streams(&reads(), &small(reads())));
    assert!(holds(&uneven, 0, CheckId::A01) && not_checked(&uneven, 1, CheckId::A01));
    assert_eq!([verdict(&uneven, 0), verdict(&uneven, 1)], [Verdict::Valid, Verdict::Suspect]);
    let cached = small(buffered(Fixture { delivered: 0.0, ..reads() }));
    let next_to_a_cache = without_worker_counts(two_streams(&reads(), &cached));
    assert!(not_checked(&next_to_a_cache, 1, CheckId::A01));
    // Much of a large stream is missing, even if the small one had all of its bytes from the device.
    let large = without_worker_counts(two_streams(&Fixture { delivered: 0.4, ..reads() }, &small(reads())));
    assert_eq!(severity(&large, 0, CheckId::A01), Some(Severity::Relabels));
}

#[test]
fn reads_by_unknown_threads_may_belong_to_any_stream() {
    let uncharged = Fixture { cgroup: false, ..reads() };
    let mut record = two_streams(&uncharged, &small(buffered(Fixture { delivered: 0.0, ..reads() })));
    let mut read = 0;
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        if snapshot.moment == Moment::Stop {
            read += 110 * 4096;
        }
        let Ok(text) = &snapshot.files["/proc/self/io"] else { continue };
        let io = ThreadIo::parse(text).unwrap();
        let text = text.replace(
            &format!("\nread_bytes: {}", io.read_bytes),
            &format!("\nread_bytes: {}", io.read_bytes + read),
        );
        snapshot.files.insert("/proc/self/io".into(), Ok(text));
        let stat = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
        let mut fields: Vec<u64> = stat.split_whitespace().map(|w| w.parse().unwrap()).collect();
        fields[2] += read / 512;
        let fields: Vec<String> = fields.iter().map(u64::to_string).collect();
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(fields.join(" ")));
    }
    let why = answer(&record, 1, CheckId::A01);
    assert!(why.is_err(), "{why:?}");
}

#[test]
fn a02_and_a09_do_not_blame_direct_writes_for_the_dirty_pages_of_another_stream() {
    let dirty = small(buffered(Fixture { delivered: 0.0, dirty_share: 1.0, ..writes() }));
    let record = two_streams(&writes(), &dirty);
    for id in [CheckId::A02, CheckId::A09] {
        assert!(holds(&record, 0, id), "{id}: {:?}", answer(&record, 0, id));
    }
    assert_eq!(severity(&record, 1, CheckId::A09), Some(Severity::Relabels));
    // Direct writes of another stream do not hide a stream that fell back to the page cache.
    let fell_back = two_streams(&writes(), &Fixture { cached_share: 0.9, ..small(writes()) });
    assert_eq!(severity(&fell_back, 1, CheckId::A02), Some(Severity::Relabels));
    assert!(holds(&fell_back, 0, CheckId::A02));
    let missing = two_streams(&writes(), &Fixture { delivered: 0.5, ..small(writes()) });
    assert_eq!(severity(&missing, 1, CheckId::A02), Some(Severity::Relabels));
}

#[test]
fn a09_counts_pages_that_were_dirtied_and_written_back() {
    let flushed = two_streams(&writes(), &small(buffered(writes())));
    assert!(holds(&flushed, 1, CheckId::A09), "{:?}", answer(&flushed, 1, CheckId::A09));
    // Without the workers' counts only the sum is known, in which a small stream is not noticeable.
    let old = without_worker_counts(flushed);
    assert!(not_checked(&old, 1, CheckId::A09) && verdict(&old, 1) == Verdict::Suspect);
    // Only one stream writes to the device if the other one reads.
    let log = two_streams(&reads(), &small(buffered(writes())));
    assert!(holds(&without_worker_counts(log), 1, CheckId::A09));
}

#[test]
fn a10_finds_lost_writes_of_a_small_stream() {
    let lost = buffered(Fixture { delivered: 0.0, sync_works: false, ..writes() });
    let record = two_streams(&writes(), &lost);
    assert_eq!(severity(&record, 1, CheckId::A10), Some(Severity::Invalidates));
    assert!(holds(&record, 0, CheckId::A10));
}

#[test]
fn a11_names_memory_only_for_the_stream_that_uses_it() {
    let memory = small(Fixture { ram: Some("tmpfs"), nothing_below: true, ..reads() });
    let record = two_streams(&reads(), &memory);
    assert!(holds(&record, 0, CheckId::A11) && verdict(&record, 0) == Verdict::Valid);
    assert_eq!(severity(&record, 1, CheckId::A11), Some(Severity::Relabels));
}

#[test]
fn a12_finds_a_cache_below_a_loop_device_next_to_a_stream_on_its_disk() {
    let cached = Fixture { leaf_share: Some(0.0), ..small(reads()) };
    let record = two_streams(&cached, &reads());
    assert_eq!(severity(&record, 0, CheckId::A12), Some(Severity::Relabels));
    assert_eq!(answer(&record, 1, CheckId::A12), Ok(Answer::DoesNotApply));
    assert!(holds(&record, 0, CheckId::A01), "the loop device delivered it");
    let honest = two_streams(&Fixture::honest_loop(), &reads());
    assert!(holds(&honest, 0, CheckId::A12), "{:?}", answer(&honest, 0, CheckId::A12));
    // In the sum, a hundredth of the disk's bytes is not noticeable.
    let small = two_streams(&Fixture { leaf_share: Some(1.0), ..small(reads()) }, &reads());
    assert!(not_checked(&small, 0, CheckId::A12) && verdict(&small, 0) == Verdict::Suspect);
}

#[test]
fn a12_subtracts_a_stream_on_a_partition_of_the_disk() {
    let on_partition = |first: &Fixture| {
        let mut record = two_streams(first, &reads());
        let place = &mut record.header.hosts[0].places[1];
        let disk = place.layers[0].clone();
        let (name, stat_file) = ("vda1".into(), "/sys/block/vda/vda1/stat".into());
        let part = Layer { name, stat_file, kind: LayerKind::Partition, below: vec![1], ..disk.clone() };
        place.layers = vec![part, disk];
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            let text = snapshot.files["/sys/block/vda/stat"].clone();
            snapshot.files.insert("/sys/block/vda/vda1/stat".into(), text);
        }
        record
    };
    let honest = on_partition(&Fixture::honest_loop());
    assert!(holds(&honest, 0, CheckId::A12), "{:?}", answer(&honest, 0, CheckId::A12));
    let cached = on_partition(&Fixture { leaf_share: Some(0.0), ..small(reads()) });
    assert_eq!(severity(&cached, 0, CheckId::A12), Some(Severity::Relabels));
}

#[test]
fn a12_holds_for_two_streams_on_one_chain_without_a_cache() {
    let mut record =
        two_streams(&Fixture::honest_loop(), &Fixture { leaf_share: Some(1.0), ..small(reads()) });
    record.header.hosts[0].places.iter_mut().for_each(|p| p.layers[0].backing_direct = Some(true));
    for stream in [0, 1] {
        assert!(holds(&record, stream, CheckId::A12), "{:?}", answer(&record, stream, CheckId::A12));
    }
    let cached = Fixture { leaf_share: Some(0.0), ..small(reads()) };
    let mut record = two_streams(&Fixture::honest_loop(), &cached);
    record.header.hosts[0].places.iter_mut().for_each(|p| p.layers[0].backing_direct = Some(true));
    assert!(not_checked(&record, 1, CheckId::A12), "{:?}", answer(&record, 1, CheckId::A12));
}

#[test]
fn a22_does_not_blame_a_stream_for_the_cache_of_another() {
    let half = Fixture { delivered: 0.0, ops: 1_000, ..buffered(reads()) };
    let record = two_streams(&reads(), &half);
    assert!(holds(&record, 0, CheckId::A22), "{:?}", answer(&record, 0, CheckId::A22));
    assert!(not_checked(&record, 1, CheckId::A22));
    let apart = two_streams_on_two_disks(&reads(), &Fixture { delivered: 0.97, ..reads() });
    assert!(holds(&apart, 0, CheckId::A22));
    assert_eq!(severity(&apart, 1, CheckId::A22), Some(Severity::Invalidates));
}

#[test]
fn a24_uses_the_system_calls_of_the_streams_own_workers() {
    let mut record = two_streams(&buffered(reads()), &small(buffered(reads())));
    assert!(holds(&record, 0, CheckId::A24) && holds(&record, 1, CheckId::A24));
    for run in &mut record.runs {
        let worker = &mut run.end.as_mut().unwrap().workers[1];
        let io = worker.io.as_mut().unwrap();
        let rchar = std::mem::take(&mut io.rchar);
        // The count of the process decreases by the same amount.
        let repeat = u64::from(run.start.repeat);
        for snapshot in &mut run.evidence {
            let runs = if snapshot.moment == Moment::Start { repeat } else { repeat + 1 };
            let Ok(text) = &snapshot.files["/proc/self/io"] else { continue };
            let all = ThreadIo::parse(text).unwrap().rchar;
            let text = text.replace(&format!("rchar: {all}"), &format!("rchar: {}", all - runs * rchar));
            snapshot.files.insert("/proc/self/io".into(), Ok(text));
        }
    }
    assert_eq!(severity(&record, 1, CheckId::A24), Some(Severity::Invalidates));
    assert!(holds(&record, 0, CheckId::A24));
    // The reads may be those of a thread that belongs to no worker. No thread wrote anything.
    let mut undecided = two_streams(&buffered(reads()), &small(buffered(reads())));
    for end in undecided.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        end.workers[1].io.as_mut().unwrap().rchar = 0;
    }
    assert!(holds(&undecided, 1, CheckId::A24), "the page cache accounts for the reads");
    for end in undecided.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        let reads = end.streams[1].issued[&Kind::Read].clone();
        end.streams[1].issued.insert(Kind::Write, reads);
    }
    assert_eq!(severity(&undecided, 1, CheckId::A24), Some(Severity::Invalidates));
}

#[test]
fn b01_and_b02_do_not_decide_if_merges_and_splits_may_belong_to_another_stream() {
    let plain = two_streams(&reads(), &small(reads()));
    for id in [CheckId::B01, CheckId::B02, CheckId::B14] {
        for stream in [0, 1] {
            assert!(holds(&plain, stream, id), "{id} of {stream}: {:?}", answer(&plain, stream, id));
        }
    }
    // A few merges matter little to the large stream, but may all belong to the small one.
    let merged = crate::checks::io_as_requested::requests::merge_some(plain.clone(), 0.01);
    assert!(holds(&merged, 0, CheckId::B01) && not_checked(&merged, 1, CheckId::B01));
    let mut split = plain;
    for snapshot in split.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        let text = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
        let (ios, rest) = text.split_once(' ').unwrap();
        let ios = ios.parse::<u64>().unwrap() * 102 / 100;
        snapshot.files.insert("/sys/block/vda/stat".into(), Ok(format!("{ios} {rest}")));
    }
    assert!(holds(&split, 0, CheckId::B02) && not_checked(&split, 1, CheckId::B02));
    // On several devices, all merges may be at the one that got the fewest operations.
    let mut spread = merged;
    let place = &mut spread.header.hosts[0].places[0];
    let (name, stat_file) = ("vdb".to_owned(), "/sys/block/vdb/stat".to_owned());
    place.layers.push(Layer { name, stat_file: stat_file.clone(), ..place.layers[0].clone() });
    place.tops.push(1);
    for snapshot in spread.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.files.insert(stat_file.clone(), Ok("0 ".repeat(17)));
    }
    for id in [CheckId::B01, CheckId::B02] {
        assert!(not_checked(&spread, 0, id), "{id}: {:?}", answer(&spread, 0, id));
    }
}

#[test]
fn b02_does_not_subtract_operations_of_a_sharer_that_became_fewer_requests_without_a_merge() {
    // The first stream's operations are split in two. A sharer's operations share requests: its engine joins them, the file
    // system reads ahead into the page cache, or they moved nothing.
    let joined = Fixture { engine: "preadv", merged: 16, ..reads() };
    let cached = Fixture { cached_share: 1.0, merged: 16, ..reads() };
    let short = Fixture { short: 11_000, merged: 16, ..reads() };
    let split = |sharer: &Fixture| {
        let mut record = two_streams(&reads(), sharer);
        let mut runs = 0;
        for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
            runs += u64::from(snapshot.moment == Moment::Stop);
            let text = snapshot.files["/sys/block/vda/stat"].clone().unwrap();
            let (ios, rest) = text.split_once(' ').unwrap();
            let ios = ios.parse::<u64>().unwrap() + runs * 11_000;
            snapshot.files.insert("/sys/block/vda/stat".into(), Ok(format!("{ios} {rest}")));
        }
        record
    };
    for sharer in [joined, cached, short] {
        let record = split(&sharer);
        assert!(not_checked(&record, 0, CheckId::B02), "{:?}", answer(&record, 0, CheckId::B02));
    }
}

#[test]
fn b01_finds_merges_that_the_requests_of_other_streams_cannot_explain() {
    use crate::checks::io_as_requested::requests::merge_some;
    let merged = |part, sharer: &Fixture| merge_some(two_streams(&reads(), sharer), part);
    let most = merged(0.9, &small(reads()));
    let Ok(Answer::Finding(found)) = answer(&most, 0, CheckId::B01) else { panic!("silent") };
    let sentence = "the device got requests of at least 39 KiB on average: the kernel merged at least 9.90 ";
    assert!(found.severity == Severity::Relabels && found.sentence.contains(sentence), "{}", found.sentence);
    let result = judge(&most, &Judging::default()).results.remove(0);
    assert!(result.true_name.contains("merged to requests of at least 39 KiB"), "{}", result.true_name);
    assert_eq!(severity(&merged(0.4, &small(reads())), 0, CheckId::B01), Some(Severity::Biases));
    // The merges of two equal streams may all be those of the other one.
    let equal = merged(0.5, &reads());
    assert!(not_checked(&equal, 0, CheckId::B01) && not_checked(&equal, 1, CheckId::B01));
    // The bytes at the device may be those of another process.
    let uncounted = without_worker_counts(most);
    assert!(not_checked(&uncounted, 0, CheckId::B01), "{:?}", answer(&uncounted, 0, CheckId::B01));
    // Without a merge: the engine joins operations, or the file system reads ahead. The other stream made at least 11,000
    // of the 11,687 requests.
    let joined = Fixture { engine: "preadv", merged: 16, ..reads() };
    let cached = Fixture { cached_share: 1.0, merged: 16, ..reads() };
    for first in [joined, cached] {
        let record = two_streams(&first, &reads());
        assert_eq!(severity(&record, 0, CheckId::B01), Some(Severity::Relabels), "{first:?}");
        assert!(holds(&record, 1, CheckId::B01), "{:?}", answer(&record, 1, CheckId::B01));
    }
}

#[test]
fn b05_finds_a_depth_that_the_queue_of_all_streams_cannot_hold() {
    let record = two_streams(&Fixture { device_time_share: 0.1, ..reads() }, &small(reads()));
    let Ok(Answer::Finding(found)) = answer(&record, 0, CheckId::B05) else { panic!("silent") };
    assert!(found.sentence.contains("requests of all streams together"), "{}", found.sentence);
    assert_eq!(found.severity, Severity::Relabels);
    let deep = two_streams(&reads(), &small(reads()));
    assert!(not_checked(&deep, 0, CheckId::B05), "{:?}", answer(&deep, 0, CheckId::B05));
    // The queue is shallow because operations are merged, or because their bytes may be those of another process.
    let merged = crate::checks::io_as_requested::requests::merge_some(record.clone(), 0.9);
    assert!(
        not_checked(&merged, 0, CheckId::B05) && not_checked(&without_worker_counts(record), 0, CheckId::B05)
    );
    // The stream ran for a quarter of the time. Over the whole run, the mean depth is 8.
    let mut brief = two_streams(&Fixture { device_time_share: 0.95 / 4.0, ..reads() }, &small(reads()));
    for end in brief.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        end.streams[0].window_ns /= 4;
        end.streams[0].depth_ns /= 4;
        end.workers[0].wall_ns /= 4;
    }
    assert!(not_checked(&brief, 0, CheckId::B05), "{:?}", answer(&brief, 0, CheckId::B05));
}

#[test]
fn b03_finds_the_stream_whose_workers_read_too_much() {
    let ahead = buffered(Fixture { delivered: 4.0, ops: 1_000, ..reads() });
    let record = two_streams(&reads(), &ahead);
    assert!(holds(&record, 0, CheckId::B03), "{:?}", answer(&record, 0, CheckId::B03));
    assert_eq!(severity(&record, 1, CheckId::B03), Some(Severity::Biases));
}

#[test]
fn b04_subtracts_the_writes_of_the_other_stream() {
    let plain = two_streams(&writes(), &small(writes()));
    assert!(holds(&plain, 0, CheckId::B04), "{:?}", answer(&plain, 0, CheckId::B04));
    let journal = two_streams(&Fixture { foreign_ios: 4_000, ..writes() }, &small(writes()));
    assert!(not_checked(&journal, 1, CheckId::B04), "{:?}", answer(&journal, 1, CheckId::B04));
}

#[test]
fn b20_uses_the_reads_of_the_writing_workers() {
    let mut record = two_streams(&writes(), &reads());
    assert!(holds(&record, 0, CheckId::B20), "{:?}", answer(&record, 0, CheckId::B20));
    for run in &mut record.runs {
        let worker = &mut run.end.as_mut().unwrap().workers[0];
        worker.io.as_mut().unwrap().read_bytes = 40 << 20;
    }
    assert_eq!(severity(&record, 0, CheckId::B20), Some(Severity::Biases));
}

#[test]
fn c06_does_not_decide_if_several_streams_write() {
    let slow = || Fixture { sync_ns: Some(300_000_000), ..writes() };
    let two = two_streams(&slow(), &small(slow()));
    assert!(answer(&two, 1, CheckId::C06).is_err_and(|why| why.contains("all streams")));
    let one = two_streams(&slow(), &reads());
    assert_eq!(severity(&one, 0, CheckId::C06), Some(Severity::Biases));
}

#[test]
fn d01_does_not_count_own_streams_as_other_processes() {
    let record = two_streams(&reads(), &reads());
    assert!(holds(&record, 0, CheckId::D01) && holds(&record, 1, CheckId::D01));
    let disturbed = two_streams(&Fixture { foreign_ios: 30_000, ..reads() }, &reads());
    for stream in [0, 1] {
        assert_eq!(severity(&disturbed, stream, CheckId::D01), Some(Severity::Invalidates));
    }
    // A neighbour on one disk does not disturb a stream on another.
    let apart = two_streams_on_two_disks(&Fixture { foreign_ios: 30_000, ..reads() }, &reads());
    assert_eq!(severity(&apart, 0, CheckId::D01), Some(Severity::Invalidates));
    assert!(holds(&apart, 1, CheckId::D01) && verdict(&apart, 1) == Verdict::Valid);
}

#[test]
fn d05_decides_only_for_a_stream_alone_on_its_disk() {
    let above = Fixture { device_time_share: 0.1, cpu_share: 0.02, ..reads() };
    let shared = two_streams(&reads(), &above);
    assert!(not_checked(&shared, 0, CheckId::D05) && not_checked(&shared, 1, CheckId::D05));
    let apart = two_streams_on_two_disks(&reads(), &above);
    assert!(holds(&apart, 0, CheckId::D05));
    assert_eq!(severity(&apart, 1, CheckId::D05), Some(Severity::Relabels));
}

#[test]
fn streams_on_two_disks_get_the_answers_of_single_streams() {
    let cached = Fixture { delivered: 0.02, cache: Cache::Buffered, ..reads() };
    let record = two_streams_on_two_disks(&reads(), &cached);
    for (stream, fixture) in [(0, reads()), (1, cached)] {
        let alone = fixture.record();
        let both = ask_all(&cases(&record)[stream]);
        for (check, answer) in ask_all(&cases(&alone)[0]) {
            let at_once = &both.iter().find(|(c, _)| c.id == check.id).unwrap().1;
            let kind = |answer: &Known<Answer>| match answer {
                Ok(Answer::Finding(f)) => format!("{:?}", f.severity),
                Ok(Answer::Holds(..)) => "holds".into(),
                Ok(Answer::DoesNotApply) => "does not apply".into(),
                Ok(Answer::Undecided(_)) | Err(_) => "not checked".into(),
            };
            assert_eq!(kind(at_once), kind(&answer), "{} of stream {stream}: {at_once:?}", check.id);
        }
    }
}

/// Leaves only the first stream, which uses the targets of both.
fn as_one_stream(mut record: Record) -> Record {
    let streams = &mut record.header.plan.jobs[0].phases[0].streams;
    streams.truncate(1);
    streams[0].targets = vec![0, 1];
    for end in record.runs.iter_mut().filter_map(|run| run.end.as_mut()) {
        end.streams.truncate(1);
        end.workers.truncate(1);
    }
    record
}

#[test]
fn a_device_below_another_target_is_not_counted_twice() {
    let record = as_one_stream(two_streams(&Fixture::honest_loop(), &reads()));
    for id in [CheckId::A01, CheckId::A12, CheckId::B01, CheckId::D01] {
        let answer = answer(&record, 0, id);
        assert!(
            answer.as_ref().is_err_and(|why| why.contains("also the device of another target")),
            "{id} {answer:?}"
        );
    }
    assert_eq!(verdict(&record, 0), Verdict::Suspect);
}

#[test]
fn a_target_in_memory_does_not_switch_off_the_checks_of_the_others() {
    let memory = Fixture { ram: Some("tmpfs"), nothing_below: true, ..reads() };
    let mut record = as_one_stream(two_streams(&reads(), &memory));
    assert_eq!(severity(&record, 0, CheckId::A11), Some(Severity::Relabels));
    for id in [CheckId::A01, CheckId::D01] {
        assert!(answer(&record, 0, id).is_err(), "{id} {:?}", answer(&record, 0, id));
    }
    // Direct I/O that only one target lacks does not rename the other one.
    record.header.hosts[0].places[1].direct =
        Some(model::machine::DirectIo { memory_align: 0, offset_align: 0 });
    let Ok(Answer::Finding(found)) = answer(&record, 0, CheckId::A03) else { panic!("silent") };
    assert_eq!(found.renames, Some(crate::checks::Rename::Condition("partly page cache".into())));
}

#[test]
fn a_stream_on_an_unknown_device_may_share_any_device() {
    let mut record = two_streams_on_two_disks(&reads(), &reads());
    record.header.hosts[0].places.truncate(1);
    assert!(not_checked(&record, 0, CheckId::D05));
}

#[test]
fn two_streams_on_one_target_share_its_pages() {
    let mut record =
        two_streams(&writes(), &buffered(Fixture { dirty_share: 1.0, delivered: 0.0, ..writes() }));
    record.header.plan.jobs[0].phases[0].streams[1].targets = vec![0];
    for snapshot in record.runs.iter_mut().flat_map(|r| &mut r.evidence) {
        snapshot.targets[0] = snapshot.targets[1].clone();
    }
    // The dirty pages of the target may belong to the other stream, so they prove nothing against direct writes.
    assert!(answer(&record, 0, CheckId::A02).is_err(), "{:?}", answer(&record, 0, CheckId::A02));
    assert_eq!(severity(&record, 0, CheckId::B19), Some(Severity::Biases));
    assert!(cases(&record)[0].issued(Kind::Write).bytes > 0);
}

#[test]
fn a02_names_the_one_target_of_several_that_fell_back() {
    let share = |share: f64| {
        let mut record = two_streams(&reads(), &Fixture { cached_share: share, ..reads() });
        let phase = &mut record.header.plan.jobs[0].phases[0];
        phase.streams.truncate(1);
        // Eight targets. The last one is that of the other stream.
        phase.streams[0].targets = (0..8).collect();
        let plan = &mut record.header.plan;
        let (first, last) = (plan.targets[0].clone(), plan.targets[1].clone());
        plan.targets = vec![first; 7];
        plan.targets.push(last);
        let places = &mut record.header.hosts[0].places;
        *places = vec![places[0].clone(); 8];
        for run in &mut record.runs {
            run.end.as_mut().unwrap().streams.truncate(1);
            run.end.as_mut().unwrap().workers.truncate(1);
            for snapshot in &mut run.evidence {
                let (first, last) = (snapshot.targets[0].clone(), snapshot.targets[1].clone());
                snapshot.targets = vec![first; 7];
                snapshot.targets.push(last);
            }
        }
        answer(&record, 0, CheckId::A02)
    };
    // Each run reads 43 MiB, and an eighth of that is 5.4 MiB.
    let Ok(Answer::Finding(found)) = share(0.125) else { panic!("silent") };
    assert!(found.sentence.contains("of /other appeared"), "{}", found.sentence);
    assert!(matches!(share(0.0), Ok(Answer::Holds(..))));
}

#[test]
fn the_limiter_of_a_large_stream_follows_from_bounds_and_that_of_a_small_one_is_unknown() {
    let record = two_streams(&reads(), &small(reads()));
    let results = judge(&record, &Judging::default()).results;
    assert_eq!(results[0].limiter.name, "device", "{}", results[0].limiter.sentence);
    assert_eq!(results[1].limiter.name, "unknown", "{}", results[1].limiter.sentence);
}
