//! Notes of a report: events of the session, each once. They come from the plan, the runs and the end of the record, and change no number.
//! This file also describes how the session ended, a busy machine, the stored files, and the jobs that a quick session
//! (`--quick`) left out.

use crate::findings::CaseAnswers;
use crate::strategy::disturbed::{find_neighbour, is_disturbance_the_rule};
use model::evidence::Moment;
use model::plan::Plan;
use model::record::{Attempt, Disturbance, Pairing, Preconditioned, Record, Rounds, Run, RunEnding};
use model::report::{Ending, Quick, StoredFile};
use model::units::{show_bytes, show_counted, show_ns, show_rate};
use std::collections::{BTreeMap, BTreeSet};

/// Returns how the session ended.
pub(crate) fn ending(record: &Record) -> Ending {
    match record.end.as_ref().map(|e| &e.ending) {
        None => Ending::Cut,
        Some(RunEnding::Complete) => Ending::Complete,
        Some(RunEnding::Interrupted) => Ending::Interrupted,
        Some(RunEnding::Failed(why)) => Ending::Failed(why.clone()),
        Some(RunEnding::NotMeasured(why)) => Ending::NotMeasured(why.clone()),
    }
}

/// Returns all notes in order of time. A note that repeats over runs appears once with its count.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let mut remarks: Vec<Remark> = Vec::new();
    let mut note_of_job = |job: Option<&str>, sentence: String| Remark::add(&mut remarks, job, sentence);
    let mut note = |sentence: String| note_of_job(None, sentence);
    if let Some(why) = &record.header.clock.reason {
        note(format!("latencies are stamped with {}: {why}", record.header.clock.name));
    }
    engine_fallbacks(&record.header.plan).into_iter().for_each(&mut note);
    describe_shared_devices(record).into_iter().for_each(&mut note);
    if let Some(done) = &record.preconditioned {
        note(describe_preconditioning(record, done));
        done.notes.iter().cloned().for_each(&mut note);
    }
    describe_disturbed_runs(record).into_iter().for_each(&mut note);
    for run in &record.runs {
        for sentence in run.end.iter().flat_map(|e| &e.notes) {
            note_of_job(Some(job_name(record, run.start.job)), sentence.clone());
        }
        for sentence in run_notes(record, run) {
            note_of_job(None, sentence);
        }
    }
    for sentence in record.end.iter().flat_map(|end| &end.notes) {
        note_of_job(None, sentence.clone());
    }
    remarks.into_iter().map(Remark::into_sentence).collect()
}

/// Returns a sentence about each engine that replaced a denied default, each once.
pub fn engine_fallbacks(plan: &Plan) -> BTreeSet<String> {
    plan.streams().filter_map(|s| Some(s.engine_fallback.as_ref()?.sentence(&s.engine))).collect()
}

/// Names the compared targets that are on the same devices. Two files on one device may differ in speed by more than the intervals of their
/// rates, because their blocks are at different positions.
fn describe_shared_devices(record: &Record) -> Vec<String> {
    let plan = &record.header.plan;
    let (Some(comparison), Some(machine)) = (plan.study.targets(), record.header.hosts.first()) else {
        return Vec::new();
    };
    let mut by_devices: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for side in &comparison.sides {
        let job = side.tests.first().and_then(|(_, job)| plan.jobs.get(*job));
        let target = job.and_then(|job| job.streams().next()?.targets.first());
        let Some(place) = target.and_then(|target| machine.places.get(*target)) else { continue };
        let devices: BTreeSet<&str> = place.lowest_layers().map(|layer| layer.name.as_str()).collect();
        if !devices.is_empty() {
            by_devices.entry(devices).or_default().push(&side.name);
        }
    }
    let shared = by_devices.into_iter().filter(|(_, sides)| sides.len() > 1);
    let describe = |(devices, sides): (BTreeSet<&str>, Vec<&str>)| {
        format!(
            "{} are on the same {} ({}): different positions of their blocks may explain a difference in speed",
            sides.join(" and "),
            if devices.len() == 1 { "device" } else { "devices" },
            Vec::from_iter(devices).join(", ")
        )
    };
    shared.map(describe).collect()
}

/// A note with its jobs (empty for all jobs) and how often it occurred. Notes about runs that
/// differ only in their numbers are counted as one note.
struct Remark {
    jobs: Vec<String>,
    sentence: String,
    times: usize,
    /// Whether later notes have other numbers than the first.
    differs: bool,
}

impl Remark {
    fn add(remarks: &mut Vec<Self>, job: Option<&str>, sentence: String) {
        // A digit inside a name, as in loop0, is no number: the notes are about different things.
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let same_word = |(a, b): (&str, &str)| a == b || is_number(a) && is_number(b);
        let same_words = |a: &str, b: &str| {
            a.split(' ').count() == b.split(' ').count() && a.split(' ').zip(b.split(' ')).all(same_word)
        };
        let is_alike = |other: &str| *other == sentence || job.is_some() && same_words(other, &sentence);
        let same = |t: &&mut Self| t.jobs.is_empty() == job.is_none() && is_alike(&t.sentence);
        let Some(known) = remarks.iter_mut().find(same) else {
            return remarks.push(Self {
                jobs: job.into_iter().map(str::to_owned).collect(),
                sentence,
                times: 1,
                differs: false,
            });
        };
        known.times += 1;
        known.differs |= known.sentence != sentence;
        if let Some(job) = job.filter(|j| !known.jobs.iter().any(|k| k == j)) {
            known.jobs.push(job.to_owned());
        }
    }

    /// Formats the note with its jobs and its count: `4K reads and 3 others: the note (7 times)`.
    fn into_sentence(self) -> String {
        let who = match self.jobs.as_slice() {
            [] => String::new(),
            [one] => format!("{one}: "),
            [one, other] => format!("{one} and {other}: "),
            [one, rest @ ..] => format!("{one} and {} others: ", rest.len()),
        };
        let times = match self.times {
            1 => String::new(),
            times if self.differs => format!(" (the first of {times} such notes)"),
            times => format!(" ({times} times)"),
        };
        format!("{who}{}{times}", self.sentence)
    }
}

/// Describes how many runs were disturbed and how many were repeated; `None` if none was disturbed.
fn describe_disturbed_runs(record: &Record) -> Option<String> {
    let attempts: Vec<Attempt> = record.all_attempts().into_iter().map(Run::attempt).collect();
    let runs = |is: &dyn Fn(&&Attempt) -> bool| {
        attempts.iter().filter(is).map(|a| a.unit(Pairing::Runs)).collect::<BTreeSet<_>>().len()
    };
    let (hit, all) = (runs(&|a| a.disturbed), runs(&|a| a.complete));
    let repeated = match runs(&|a| a.attempt > 0) {
        0 => "none was repeated".to_owned(),
        repeats => format!(
            "{repeats} {} repeated, and one attempt of each counts, disturbed or not (--explain shows which)",
            if repeats == 1 { "was" } else { "were" }
        ),
    };
    let cause = name_disturbance(record);
    (hit > 0).then(|| format!("{cause} disturbed {hit} of {}; {repeated}", show_counted(all as u64, "run")))
}

/// Names what disturbed the runs of a session.
pub(crate) fn name_disturbance(record: &Record) -> &'static str {
    let is_limit = |d: &Disturbance| matches!(d, Disturbance::LimitChanged { .. });
    let found = || {
        record
            .all_attempts()
            .into_iter()
            .filter_map(|run| run.disturbed.as_ref())
            .flat_map(|d| &d.disturbances)
    };
    match (found().any(is_limit), found().any(|d| !is_limit(d))) {
        (true, false) => "a changed limit",
        (true, true) => "other load or a changed limit",
        (false, _) => "other load",
    }
}

/// Returns the warnings about a busy machine, for the top of the report; empty if the machine was idle enough.
pub(crate) fn busy_machine(record: &Record) -> Vec<String> {
    let attempts: Vec<Attempt> = record.all_attempts().into_iter().map(Run::attempt).collect();
    let mut out = Vec::new();
    if let Some(neighbour) = find_neighbour(record) {
        let repeats = if attempts.iter().any(|a| a.attempt > 0) { "" } else { "; no run was repeated" };
        out.push(format!("{}{repeats}.", neighbour.sentence()));
    }
    if is_disturbance_the_rule(&attempts, 0) {
        out.push(format!(
            "this machine is not idle: {} disturbed a third of all attempts or more, too many to repeat. \
                 Stop the other load (see iotop -o, top), or measure at another time.",
            name_disturbance(record)
        ));
    }
    out
}

/// Returns the name of the job with this index.
fn job_name(record: &Record, job: usize) -> &str {
    record.header.plan.jobs.get(job).map_or("a job", |j| j.name.as_str())
}

/// Maximum number of rounds whose rates a note lists.
const MAX_ROUNDS_LISTED: usize = 5;

/// Returns how each file was stored before the first run that used it.
pub(crate) fn stored_files(answered: &[CaseAnswers]) -> Vec<StoredFile> {
    let mut files: Vec<StoredFile> = Vec::new();
    for case in answered.iter().map(|answers| &answers.case) {
        let Ok(stored) = case.states_of(&case.stream.targets, Moment::Start) else { continue };
        // The first entries are those of the first run.
        for (target, state) in case.stream.targets.iter().zip(stored.into_iter().flatten()) {
            let path = case.record.header.plan.targets.get(*target).map(|target| target.path.clone());
            let (Some(path), Some(Ok(extents))) = (path, &state.extents) else { continue };
            let Some(share) = extents.largest_share() else { continue };
            if files.iter().all(|file| file.path != path) {
                files.push(StoredFile { path, extents: extents.count, largest_piece_share: share });
            }
        }
    }
    files
}

/// Describes how much was written before the first run, how fast, and whether the rates settled.
fn describe_preconditioning(record: &Record, done: &Preconditioned) -> String {
    let mb_per_s = done.filled_bytes as f64 / (done.filled_ns as f64 / 1e9).max(f64::MIN_POSITIVE) / 1e6;
    let filled = format!(
        "preconditioned: {} were written from end to end in {} ({} MB/s)",
        show_bytes(done.filled_bytes),
        show_ns(done.filled_ns as f64),
        show_rate(mb_per_s)
    );
    let Some(settled) = done.settled else { return format!("{filled}; no job writes, so no rounds follow") };
    let count = done.rounds.first().map_or(0, |r| r.iops.len());
    let word = if settled { "settled" } else { "did not settle, so the runs may still change" };
    let jobs: Vec<String> = done.rounds.iter().map(|r| list_rates(record, r)).collect();
    format!(
        "{filled}, then {} of the work wrote {} in {}; the rates {word} ({})",
        show_counted(count as u64, "round"),
        show_bytes(done.rounds_bytes),
        show_ns(done.rounds_ns as f64),
        jobs.join("; ")
    )
}

/// Lists the rates of the rounds, `RND4K Q32T1 write: 20,100 15,300 12,100 IOPS`; with many rounds, only the last ones.
fn list_rates(record: &Record, rounds: &Rounds) -> String {
    let name = job_name(record, rounds.job);
    let from = rounds.iops.len().saturating_sub(MAX_ROUNDS_LISTED);
    let last: Vec<String> = rounds.iops.iter().skip(from).map(|v| show_rate(*v)).collect();
    format!("{name}: {}{} IOPS", if from > 0 { "... " } else { "" }, last.join(" "))
}

/// Describes why a run does not count, and the errors and refused features of its workers.
fn run_notes(record: &Record, run: &Run) -> Vec<String> {
    let who = format!("{}, run {}", job_name(record, run.start.job), run.start.repeat.saturating_add(1));
    let Some(end) = &run.end else {
        return vec![format!("{who}: the session ends inside this run, which therefore does not count")];
    };
    let mut out = Vec::new();
    match &end.ending {
        RunEnding::Complete | RunEnding::NotMeasured(_) => {}
        RunEnding::Interrupted => out.push(format!("{who} was interrupted and does not count")),
        RunEnding::Failed(why) => out.push(format!("{who} failed and does not count: {why}")),
    }
    for worker in &end.workers {
        out.extend(worker.error.iter().map(|why| format!("{who}, worker {}: {why}", worker.worker)));
        out.extend(
            worker
                .fallbacks
                .iter()
                .map(|f| format!("the kernel refused a feature, so fathom did not use it: {f}")),
        );
    }
    out
}

/// Returns the report's part about a quick session; `None` for other sessions.
pub(crate) fn quick(record: &Record) -> Option<Quick> {
    let plan = &record.header.plan;
    plan.quick_ns?;
    let windows = plan.jobs.iter().flat_map(|j| &j.phases).map(|p| p.time_ns);
    let left_out = plan.jobs.iter().enumerate().filter(|(at, _)| is_left_out(record, *at));
    Some(Quick {
        run_ns: windows.max().unwrap_or(0),
        not_measured: left_out.map(|(_, job)| job.name.clone()).collect(),
    })
}

/// Whether a complete quick session had no time for a job. In a session that ended otherwise, such a job has a result without a number.
pub(crate) fn is_left_out(record: &Record, job: usize) -> bool {
    let complete = record.end.as_ref().is_some_and(|e| e.ending == RunEnding::Complete);
    record.header.plan.quick_ns.is_some() && complete && record.runs.iter().all(|r| r.start.job != job)
}

#[cfg(test)]
use crate::Judging;
#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use crate::fixture::together;
#[cfg(test)]
use crate::judge;
#[cfg(test)]
use model::study::{TargetComparison, TargetJobs};

#[cfg(test)]
fn quick_record() -> Record {
    let other = Fixture { name: "other".into(), runs: 1, ..Fixture::honest() };
    let mut record = together(&[Fixture { runs: 1, ..Fixture::honest() }, other]);
    record.header.plan.quick_ns = Some(9_000_000_000);
    record
}

#[test]
fn repeated_notes_appear_once_and_a_truncated_file_is_mentioned() {
    let mut record = Fixture::honest().record();
    for (at, run) in record.runs.iter_mut().enumerate() {
        let notes = &mut run.end.as_mut().unwrap().notes;
        notes.push("a worker was late".into());
        notes.push(format!("{at} pages of the target stayed in the page cache"));
        notes.push(format!("loop{at} has a cache of 4 MiB"));
    }
    record.runs[4].end = None;
    record.end = None;
    let notes = notes(&record);
    assert!(notes.iter().any(|n| n.ends_with("late (4 times)")), "{notes:?}");
    let pages: Vec<&String> = notes.iter().filter(|n| n.contains("pages of")).collect();
    assert!(pages.len() == 1 && pages[0].ends_with("cache (the first of 4 such notes)"), "{notes:?}");
    assert_eq!(notes.iter().filter(|n| n.contains("has a cache of 4 MiB")).count(), 4, "{notes:?}");
    assert!(notes.iter().any(|n| n.contains("run 5") && n.contains("ends inside")), "{notes:?}");
    assert_eq!(ending(&record), Ending::Cut);
}

#[test]
fn equal_notes_of_many_jobs_are_one_note() {
    let fixtures = ["a", "b", "c"].map(|name| Fixture { name: name.into(), ..Fixture::honest() });
    let mut record = crate::fixture::together(&fixtures);
    for end in record.runs.iter_mut().filter_map(|r| r.end.as_mut()) {
        end.notes.push("a worker was late".into());
    }
    let notes = notes(&record);
    let mine: Vec<&String> = notes.iter().filter(|n| n.contains("a worker was late")).collect();
    assert_eq!(mine, [&format!("a and 2 others: a worker was late ({} times)", record.runs.len())]);
}

#[test]
fn compared_targets_on_one_device_are_named() {
    let fixtures = ["a", "b"].map(|name| Fixture { name: name.into(), ..Fixture::honest() });
    let mut record = crate::fixture::together(&fixtures);
    let side = |(at, name): (usize, &str)| TargetJobs { name: name.into(), tests: vec![("x".into(), at)] };
    let sides = ["a", "b"].into_iter().enumerate().map(side).collect();
    record.header.plan.study = TargetComparison { sides }.into();
    let named = "a and b are on the same device (vda): ";
    let shared = |record: &Record| notes(record).iter().any(|note| note.starts_with(named));
    assert!(shared(&record), "{:?}", notes(&record));
    let mut place = record.header.hosts[0].places[0].clone();
    place.layers.iter_mut().for_each(|layer| layer.name = "vdb".into());
    record.header.hosts[0].places.push(place);
    record.header.plan.jobs[1].phases[0].streams[0].targets = vec![1];
    assert!(!shared(&record));
}

#[test]
fn preconditioning_is_reported_with_its_bytes_and_last_rates() {
    let mut record = Fixture::honest_write().record();
    let iops = vec![40e3, 20e3, 10e3, 10_100.0, 9_900.0, 10e3, 10_050.0];
    record.preconditioned = Some(Preconditioned {
        filled_bytes: 2 << 30,
        filled_ns: 4_000_000_000,
        rounds: vec![Rounds { job: 0, iops }],
        rounds_bytes: 1 << 30,
        rounds_ns: 7_000_000_000,
        settled: Some(true),
        notes: vec!["through the page cache".into()],
    });
    let remarks = notes(&record);
    assert_eq!(
        remarks[0],
        "preconditioned: 2 GiB were written from end to end in 4.00 s (537 MB/s), then 7 rounds of the work wrote 1 GiB in \
         7.00 s; the rates settled (RND4K Q32T1 write: ... 10,000 10,100 9,900 10,000 10,050 IOPS)"
    );
    assert_eq!(remarks[1], "through the page cache");
    record.preconditioned =
        Some(Preconditioned { rounds: Vec::new(), settled: None, ..record.preconditioned.unwrap() });
    assert!(notes(&record)[0].ends_with("(537 MB/s); no job writes, so no rounds follow"));
}

#[test]
fn a_quick_report_is_marked_and_has_nothing_that_needs_an_interval() {
    let report = judge(&quick_record(), &Judging::default());
    assert_eq!(report.quick.as_ref().map(|q| q.not_measured.len()), Some(0));
    assert_eq!((report.results.len(), report.headline.interval), (2, None));
    assert!(report.deductions.is_empty());
    assert!(report.results.iter().all(|r| r.limiter.name == "not judged"), "{:?}", report.limiter);
    let mut usual = quick_record();
    usual.header.plan.quick_ns = None;
    let usual = judge(&usual, &Judging::default());
    assert_eq!((usual.quick, usual.limiter.name.as_str()), (None, "device"));
}

#[test]
fn a_quick_report_has_limiters_that_follow_from_facts() {
    let cached = Fixture { runs: 1, delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let mut record = cached.record();
    record.header.plan.quick_ns = Some(9_000_000_000);
    assert_eq!(judge(&record, &Judging::default()).limiter.name, "page cache");
}

#[test]
fn a_job_that_was_not_started_is_listed_and_an_interrupted_one_has_no_number() {
    let mut record = quick_record();
    record.runs.retain(|r| r.start.job == 0);
    let report = judge(&record, &Judging::default());
    assert_eq!(report.quick.map(|q| q.not_measured), Some(vec!["other".to_owned()]));
    assert_eq!(report.results.len(), 1);
    record.end = None;
    let cut = judge(&record, &Judging::default());
    assert_eq!((cut.quick.map(|q| q.not_measured.len()), cut.results.len()), (Some(0), 2));
}
