//! Findings: asks every check about every case and merges equal answers.
//!
//! 1. [`ask`] runs the checks on a case. A check that needs another check's answer runs after it.
//! 2. [`merge`] turns the answers of all cases into the list of the report, worst first.
//! 3. [`true_name`] names a result by what it measured, with all relabelling findings.
//! 4. [`find_invalid_before_run`] runs two checks before the first run: holes (A04) and zeros (A05) are known once the targets are
//!    prepared. If they invalidate every result, measuring would waste the user's time. Targets that another job or
//!    phase writes are checked after the run.

use crate::case::Case;
use crate::checks::{Answer, Answers, Check, Detail, Evidence, Rename};
use crate::{case, checks, fleet};
use model::Known;
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::job::Phase;
use model::name;
use model::record::Record;
use model::report::Measured;
use model::units::{show_count, show_rate};
use std::collections::BTreeSet;

/// A case with the answers of all checks.
pub(crate) struct CaseAnswers<'a> {
    pub(crate) case: Case<'a>,
    pub(crate) answers: Vec<(&'static Check, Known<Answer>)>,
    /// Ids of the findings that the user accepts. An accepted finding does not withhold the number.
    pub(crate) accept: Vec<CheckId>,
}

/// Runs all checks that apply.
pub(crate) fn ask(case: Case<'_>) -> CaseAnswers<'_> {
    // Without a run, each check would only repeat the reason, which the verdict already gives. Keep only findings.
    let has_runs = !case.runs.is_empty();
    let is_reported = |(_, a): &(&Check, Known<Answer>)| match a {
        Ok(Answer::Finding(_)) => true,
        Ok(Answer::DoesNotApply) => false,
        _ => has_runs,
    };
    let mut answers: Vec<_> = ask_all(&case).into_iter().filter(is_reported).collect();
    answers.extend(answer_if_inferred(&case, &answers));
    let answers = fleet::merge_answers(&case, answers);
    CaseAnswers { case, answers, accept: Vec::new() }
}

/// Runs every check once, after the checks whose answers it needs. The answers are in the order of the catalogue.
pub(crate) fn ask_all(case: &Case) -> Vec<(&'static Check, Known<Answer>)> {
    let mut answers = Answers::new();
    let mut waiting: Vec<&Check> = checks::all().collect();
    loop {
        let ready = |c: &&Check| c.after().iter().all(|id| answers.contains_key(id));
        let (now, later): (Vec<&Check>, Vec<&Check>) = waiting.into_iter().partition(ready);
        if now.is_empty() {
            break;
        }
        for check in now {
            answers.insert(check.id, check.ask(case, &answers));
        }
        waiting = later;
    }
    checks::all().filter_map(|check| Some((check, answers.remove(&check.id)?))).collect()
}

/// Returns the answer that the exact share of other processes (D01) was not checked, if fathom's own I/O was not counted
/// separately.
fn answer_if_inferred(
    case: &Case,
    answers: &[(&'static Check, Known<Answer>)],
) -> Option<(&'static Check, Known<Answer>)> {
    let (foreign, _) = answers.iter().find(|(c, a)| c.id == CheckId::D01 && a.is_ok())?;
    let why = case.with_sharers().own_io().err()?;
    Some((
        *foreign,
        Err(format!(
            "the traffic of other processes was inferred from what fathom issued; its exact share is unknown: {why}"
        )),
    ))
}

impl CaseAnswers<'_> {
    /// Returns all findings with their checks.
    pub(crate) fn found(&self) -> impl Iterator<Item = (&'static Check, &Detail)> {
        self.answers
            .iter()
            .filter_map(|(c, a)| if let Ok(Answer::Finding(f)) = a { Some((*c, f)) } else { None })
    }

    /// Whether a finding that the user does not accept invalidates the number.
    pub(crate) fn is_void(&self) -> bool {
        self.void_by().next().is_some()
    }

    /// Returns the ids of the checks that invalidate the number, without accepted ones.
    pub(crate) fn void_by(&self) -> impl Iterator<Item = CheckId> {
        let voids = self.found().filter(|(_, f)| f.severity == Severity::Invalidates).map(|(c, _)| c.id);
        voids.filter(|id| !self.accept.contains(id))
    }

    /// Whether the number may keep the name that was requested: there are runs, and no finding relabels or invalidates it.
    pub(crate) fn is_sound(&self) -> bool {
        !self.case.runs.is_empty() && self.found().all(|(_, f)| f.severity > Severity::Relabels)
    }

    /// Returns the changes that findings make to the name.
    pub(crate) fn renames(&self) -> Vec<&Rename> {
        self.found().filter_map(|(_, f)| f.renames.as_ref()).collect()
    }

    /// Returns the finding of a check.
    pub(crate) fn finding(&self, id: CheckId) -> Option<&Detail> {
        self.found().find(|(c, _)| c.id == id).map(|(_, f)| f)
    }
}

/// Merges the equal answers of all results. Findings come first, the worst at the top, then checks that could not be
/// done, then checks that hold.
pub(crate) fn merge(answered: &[CaseAnswers], accept: &[CheckId]) -> Vec<Checked> {
    let key = |f: &Checked| (f.id, f.outcome, f.severity);
    // Each check with the evidence of each result in `about`.
    let mut out: Vec<(Checked, Vec<Evidence>)> = Vec::new();
    for one in answered {
        for (check, answer) in &one.answers {
            let about = vec![one.case.name.clone()];
            let Some(mut new) = to_checked(check.id, check.name, check.fix, answer, about) else { continue };
            let numbers = std::mem::take(&mut new.evidence);
            match out.iter_mut().find(|(f, _)| key(f) == key(&new) && f.sentence == new.sentence) {
                Some((same, evidence)) => {
                    same.about.extend(new.about);
                    evidence.push(numbers);
                }
                None => out.push((new, vec![numbers])),
            }
        }
    }
    let mut checks: Vec<Checked> =
        out.into_iter().map(|(checked, evidence)| join_evidence(checked, evidence)).collect();
    for checked in &mut checks {
        checked.accepted = checked.outcome == Outcome::Finding && accept.contains(&checked.id);
    }
    // A stable sort keeps answers of one check in the order of the jobs.
    checks.sort_by_key(|f| (f.outcome, f.severity, f.id));
    checks
}

/// Returns a check with its answer, as reports have it; `None` if the check does not apply.
pub(crate) fn to_checked(
    id: CheckId,
    name: &str,
    fix: &str,
    answer: &Known<Answer>,
    about: Vec<String>,
) -> Option<Checked> {
    let (outcome, severity, sentence, fix, evidence) = match answer {
        Ok(Answer::DoesNotApply) => return None,
        Ok(Answer::Finding(f)) => {
            let fix = f.fix.clone().unwrap_or_else(|| fix.to_owned());
            (Outcome::Finding, Some(f.severity), f.sentence.clone(), fix, f.evidence.clone())
        }
        Ok(Answer::Holds(sentence, numbers)) => {
            (Outcome::Holds, None, sentence.to_string(), String::new(), numbers.clone())
        }
        Ok(Answer::Undecided(why)) | Err(why) => {
            (Outcome::NotChecked, None, why.clone(), String::new(), Evidence::new())
        }
    };
    Some(Checked {
        id,
        name: name.to_owned(),
        outcome,
        severity,
        about,
        sentence,
        fix,
        evidence,
        accepted: false,
    })
}

/// Returns the ids of accepted findings that affect a result. A note affects no number, so accepting it changes
/// nothing.
pub(crate) fn accepted_ids(result: &Measured, checks: &[Checked]) -> Vec<CheckId> {
    let acts =
        |f: &&Checked| f.severity.is_some_and(|s| s < Severity::Note) && f.about.contains(&result.name);
    let ids: BTreeSet<CheckId> = checks.iter().filter(|f| f.accepted).filter(acts).map(|f| f.id).collect();
    ids.into_iter().collect()
}

/// Adds the evidence of each result that a check is about. With several results, keys have the name of the result as a
/// prefix.
fn join_evidence(mut checked: Checked, evidence: Vec<Evidence>) -> Checked {
    let alone = evidence.len() == 1;
    for (about, numbers) in checked.about.iter().zip(evidence) {
        let named = numbers.into_iter().map(|(k, v)| (if alone { k } else { format!("{about}: {k}") }, v));
        checked.evidence.extend(named);
    }
    checked
}

/// Returns the findings of this severity about a result.
pub(crate) fn findings_about<'f>(
    checks: &'f [Checked],
    result: &str,
    severity: Severity,
) -> impl Iterator<Item = &'f Checked> {
    checks.iter().filter(move |f| {
        let acts = f.outcome == Outcome::Finding && f.severity == Some(severity);
        acts && f.about.iter().any(|name| name == result)
    })
}

/// Returns the findings about a result that have one of these severities and that the user did not accept.
pub(crate) fn unaccepted_findings<'f>(
    checks: &'f [Checked],
    result: &str,
    severities: &[Severity],
) -> impl Iterator<Item = &'f Checked> {
    let about_it = severities.iter().flat_map(move |severity| findings_about(checks, result, *severity));
    about_it.filter(|f| !f.accepted)
}

/// Names results: one or both names, or the first name and the number of other results.
pub(crate) fn join_names(names: &[String]) -> String {
    match names {
        [] => "the result".into(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [one, rest @ ..] => format!("{one} and {} other results", show_count(rest.len() as f64)),
    }
}

/// Returns the name of a case with all renamings applied.
pub(crate) fn true_name(case: &Case, renames: &[&Rename]) -> String {
    let stream = &case.stream;
    let mut parts = vec![stream.describe()];
    // For a replay, the capture determines the operations in flight, so the name has no depth.
    parts.extend(stream.replay.is_none().then(|| describe_depth(case, renames)));
    if stream.workers > 1 {
        parts.push(format!("{} workers", stream.workers));
    }
    parts.push(describe_medium(case, renames));
    parts.extend(stream.describe_delays());
    parts.extend(added_conditions(renames));
    parts.join(", ")
}

/// Whether the true name differs from the requested work.
pub(crate) fn differs_from_request(case: &Case, renames: &[&Rename]) -> bool {
    !renames.is_empty() || moves_nothing(case).is_some()
}

/// Describes the work without its load: `4K random read, direct`.
pub(crate) fn describe_work(case: &Case, renames: &[&Rename]) -> String {
    let parts = [case.stream.describe(), describe_medium(case, renames)].into_iter();
    parts.chain(added_conditions(renames)).collect::<Vec<_>>().join(", ")
}

/// Returns the conditions that findings add, each once.
fn added_conditions(renames: &[&Rename]) -> Vec<String> {
    let mut conditions: Vec<&String> = Vec::new();
    for rename in renames {
        if let Rename::Condition(condition) = rename
            && !conditions.contains(&condition)
        {
            conditions.push(condition);
        }
    }
    conditions.into_iter().cloned().collect()
}

/// Describes the depth: the requested depth per worker, the depths that workers reached under a latency target, or
/// after a finding the approximate depth of all workers together.
fn describe_depth(case: &Case, renames: &[&Rename]) -> String {
    let reached = renames.iter().find_map(|r| if let Rename::Depth(d) = r { Some(*d) } else { None });
    match reached {
        // The mean is rounded: decimals would claim too much, except below one.
        Some(d) if d >= 0.95 => format!("depth ~{d:.0}"),
        Some(d) => format!("depth ~{}", show_rate(d)),
        None => match (case.stream.latency_target, reached_depths(case)) {
            (None, _) => format!("depth {}", case.stream.depth),
            (Some(_), Some((least, most))) if least == most => {
                format!("depth {least}, as the latency target allows")
            }
            (Some(_), Some((least, most))) => {
                format!("depth {least} to {most}, as the latency target allows")
            }
            (Some(_), None) => format!("depth up to {}, as the latency target allows", case.stream.depth),
        },
    }
}

/// Returns the smallest and the largest depth that a worker reached in any run.
fn reached_depths(case: &Case) -> Option<(u32, u32)> {
    let workers = case.runs.iter().flat_map(|r| &r.end.workers).filter(|w| w.stream == case.stream_index);
    let depths: Vec<u32> = workers.filter_map(|w| Some(w.depth?.depth)).collect();
    Some((*depths.iter().min()?, *depths.iter().max()?))
}

/// Describes the medium that served the operations: the one that a finding names, otherwise the cache mode.
fn describe_medium(case: &Case, renames: &[&Rename]) -> String {
    if let Some(name) = moves_nothing(case) {
        return name.to_owned();
    }
    let memory = renames.iter().find_map(|r| if let Rename::Memory(m) = r { Some(m) } else { None });
    let other = renames.iter().find_map(|r| if let Rename::Medium(m) = r { Some(m) } else { None });
    memory.or(other).cloned().unwrap_or_else(|| case.stream.cache.word().to_owned())
}

/// Returns the medium in the name of a result without storage or without data; `None` for other results.
pub(crate) fn moves_nothing(case: &Case) -> Option<&'static str> {
    match case.stream.engine.as_str() {
        "sim" => Some("simulated"),
        "null" => Some("null engine, no storage"),
        "ftruncate" => Some("file lengths only, no data moved"),
        "fallocate" => Some("file blocks only, no data moved"),
        _ if case.stream.does_nothing() => Some("operations that do nothing, no storage"),
        _ if !case.has_storage() => Some("no storage"),
        _ => None,
    }
}

/// Returns the flags that accept findings as words of a command line: `--accept`, `D01`, `--accept`, `D08`.
pub(crate) fn accept_words<'i>(ids: impl IntoIterator<Item = &'i CheckId>) -> Vec<String> {
    ids.into_iter().flat_map(|id| ["--accept".to_owned(), id.to_string()]).collect()
}

/// Returns the flags that accept findings: `--accept D01 --accept D08`.
pub(crate) fn accept_flags<'i>(ids: impl IntoIterator<Item = &'i CheckId>) -> String {
    accept_words(ids).join(" ")
}

/// The commands of fathom that imitate another tool, so they have no `--accept`.
const IMITATIONS: [&str; 3] = ["fio", "diskspd", "iometer"];

/// Returns the command line that measured, with the base name of the program, to add `--accept` to. Empty if the
/// command is unknown or has no `--accept`. Also empty for several hosts, because the user typed the command after a
/// launcher such as `mpirun`.
pub(crate) fn measuring_command(command: &[String], has_hosts: bool) -> Vec<String> {
    let [program, subcommand, ..] = command else { return Vec::new() };
    if has_hosts || IMITATIONS.contains(&subcommand.as_str()) {
        return Vec::new();
    }
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    std::iter::once(program).chain(command.iter().skip(1).cloned()).collect()
}

/// Returns what to type to accept findings: the command with the flags, or only the flags if the command is empty.
pub(crate) fn typed_acceptance<'i>(command: &[String], ids: impl IntoIterator<Item = &'i CheckId>) -> String {
    if command.is_empty() {
        return accept_flags(ids);
    }
    // All words after `--` are targets.
    let end = command.iter().position(|word| word == "--").unwrap_or(command.len());
    let (before, after) = command.split_at(end);
    format!("`{}`", name::line(&[before, &accept_words(ids), after].concat()))
}

/// The checks that need no run, in the order of the catalogue.
pub(crate) const NEED_NO_RUN: [CheckId; 2] = [CheckId::A04, CheckId::A05];

/// Which results are known to be invalid before the first run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidBeforeRun {
    /// Every result is invalid. The text has the reason and what to type.
    All(String),
    /// Some results are invalid. The text names them, with the reason and what to type.
    Some(String),
}

/// Returns which results are known to be invalid; `None` if no result is. `record` ends before its first run, and `accept` has the
/// findings that the user accepts.
pub fn find_invalid_before_run(record: &Record, accept: &[CheckId]) -> Option<InvalidBeforeRun> {
    let mut cases = case::cases(record);
    cases.retain(|case| !case::is_refused(record, case));
    let invalid: Vec<(&Case, &Check, Detail)> =
        cases.iter().filter_map(|case| find_invalidating_check(record, case, accept)).collect();
    invalid.first()?;
    let by_check = |id: CheckId| invalid.iter().filter(move |(_, check, _)| check.id == id);
    let (mut what, mut why) = (Vec::new(), Vec::new());
    for id in NEED_NO_RUN {
        let Some((case, check, found)) = by_check(id).next() else { continue };
        let names: Vec<String> = by_check(id).map(|(case, ..)| case.name.clone()).collect();
        what.push(format!("{id} {} invalidates {}", check.name, join_names(&names)));
        why.push((
            format!("{}: {}", describe_targets(case), found.sentence),
            found.fix.as_deref().unwrap_or(check.fix),
        ));
    }
    let what = format!("{} before the first run", join_names(&what));
    let ids: BTreeSet<CheckId> = invalid.iter().map(|(_, check, _)| check.id).collect();
    let plan = &record.header.plan;
    let typed = typed_acceptance(&measuring_command(&plan.command, plan.fleet_rank.is_some()), &ids);
    Some(if invalid.len() == cases.len() {
        let why: Vec<String> = why.iter().map(|(why, fix)| format!("{why} {fix}")).collect();
        let why = why.join(" ");
        InvalidBeforeRun::All(format!(
            "{what}, so nothing was measured. {why} To measure all the same, type {typed}."
        ))
    } else {
        let why: Vec<String> = why.into_iter().map(|(why, _)| why).collect();
        let number = if invalid.len() == 1 { "the number" } else { "the numbers" };
        InvalidBeforeRun::Some(format!(
            "{what}. {} Type {typed} to see {number} all the same.",
            why.join(" ")
        ))
    })
}

/// Returns the check that invalidates a case before its first run, and its finding.
fn find_invalidating_check<'c, 'r>(
    record: &Record,
    case: &'c Case<'r>,
    accept: &[CheckId],
) -> Option<(&'c Case<'r>, &'static Check, Detail)> {
    if is_written_elsewhere(record, case) {
        return None;
    }
    let mut answers = Answers::new();
    for check in checks::all().filter(|check| NEED_NO_RUN.contains(&check.id)) {
        match check.ask(case, &answers) {
            Ok(Answer::Finding(found))
                if found.severity == Severity::Invalidates && !accept.contains(&check.id) =>
            {
                return Some((case, check, found));
            }
            answer => answers.insert(check.id, answer),
        };
    }
    None
}

/// Describes the targets of a stream, as in `/dev/vda and 2 more`.
fn describe_targets(case: &Case) -> String {
    let all = &case.record.header.plan.targets;
    let mut paths = case.stream.targets.iter().filter_map(|at| Some(all.get(*at)?.path.as_str()));
    let first = paths.next().unwrap_or("the target").to_owned();
    match paths.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Whether a stream of another phase writes to a target of the case. The case may then read other
/// content.
fn is_written_elsewhere(record: &Record, case: &Case) -> bool {
    let writes = |phase: &Phase| {
        let shares = |targets: &[usize]| targets.iter().any(|target| case.stream.targets.contains(target));
        phase.streams.iter().any(|stream| stream.access.writes() && shares(&stream.targets))
    };
    let jobs = record.header.plan.jobs.iter().enumerate();
    let mut phases = jobs.flat_map(|(job, planned)| {
        planned.phases.iter().enumerate().map(move |(at, phase)| ((job, at), phase))
    });
    phases.any(|(at, phase)| at != (case.job_index, case.phase_index) && writes(phase))
}

#[cfg(test)]
use crate::fixture::Fixture;

#[cfg(test)]
use model::evidence::Moment;

#[cfg(test)]
use model::evidence::Snapshot;

#[cfg(test)]
fn named(fixture: &Fixture, renames: &[&Rename]) -> String {
    let record = fixture.record();
    true_name(&crate::case::cases(&record)[0], renames)
}

/// A record that ends before its first run, with the targets of `fixture`.
#[cfg(test)]
fn prepared(fixture: &Fixture, change: impl FnOnce(&mut Snapshot)) -> Record {
    let mut record = fixture.record();
    let start = record.runs[0].evidence.iter().find(|s| s.moment == Moment::Start).cloned();
    record.runs.clear();
    let snapshot = record.evidence.iter_mut().find(|s| s.moment == Moment::AfterPrepare);
    let (snapshot, start) = snapshot.zip(start).unwrap();
    for (prepared, start) in snapshot.targets.iter_mut().zip(start.targets) {
        prepared.extents = start.extents;
    }
    change(snapshot);
    record
}

#[test]
fn every_check_is_asked() {
    let record = Fixture::honest().record();
    let asked: Vec<CheckId> = ask_all(&crate::case::cases(&record)[0]).iter().map(|(c, _)| c.id).collect();
    assert!(
        asked.iter().copied().eq(checks::all().map(|c| c.id)),
        "checks wait for each other in a circle: {asked:?}"
    );
}

#[test]
fn equal_answers_about_several_jobs_are_one_finding() {
    let record = Fixture { jobs: 3, runs: 1, ..Fixture::honest() }.record();
    let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
    let checks = merge(&answered, &[CheckId::E05]);
    let e05: Vec<_> = checks.iter().filter(|f| f.id == CheckId::E05).collect();
    assert_eq!(e05.len(), 1);
    assert_eq!(e05[0].about.len(), 3);
    assert!(e05[0].accepted && e05[0].evidence.keys().any(|k| k.ends_with(": runs")));
    assert_eq!(checks.iter().filter(|f| f.id == CheckId::A13).count(), 1, "holds are one per check");
}

#[test]
fn a_finding_advises_the_fix_of_its_page_with_names_filled_in() {
    let cached = Fixture { delivered: 0.02, ..Fixture::honest() }.record();
    let merged = (checks::all().find(|c| c.id == CheckId::B01).unwrap().fires.unwrap())();
    for (id, record, disk) in [(CheckId::A01, cached, "DISK"), (CheckId::B01, merged, "vda")] {
        let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
        let checks = merge(&answered, &[]);
        let found = checks.iter().find(|f| f.id == id).unwrap();
        let fix = checks::all().find(|c| c.id == id).unwrap().fix;
        assert!(!fix.is_empty());
        assert_eq!(found.fix, fix.replace("DISK", disk));
    }
}

#[test]
fn findings_come_first_and_worst_first() {
    let fixture = Fixture {
        errors: 1,
        runs: 1,
        delivered: 0.0,
        no_cpu_times: true,
        cached_share: 0.9,
        ..Fixture::honest()
    };
    let record = fixture.record();
    let answered: Vec<_> = crate::case::cases(&record).into_iter().map(ask).collect();
    let checks = merge(&answered, &[]);
    let order: Vec<_> = checks.iter().map(|f| (f.outcome, f.severity)).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(checks[0].id, CheckId::B12);
    assert!(answered[0].is_void() && !answered[0].is_sound());
}

#[test]
fn holes_and_zeros_are_known_before_the_first_run_unless_they_are_accepted_or_written_first() {
    let why = |record: &Record, accept: &[CheckId]| match find_invalid_before_run(record, accept) {
        Some(InvalidBeforeRun::All(why)) => Some(why),
        Some(InvalidBeforeRun::Some(why)) => panic!("{why}"),
        None => None,
    };
    let holes = |share| prepared(&Fixture { hole_share: share, ..Fixture::honest() }, |_| ());
    assert_eq!(why(&holes(0.0), &[]), None);
    assert_eq!(why(&holes(0.0005), &[]), None, "one block of many");
    for share in [0.01, 1.0] {
        let known = why(&holes(share), &[CheckId::A05]).unwrap();
        for part in ["A04 HOLES_READ", "nothing was measured", "--accept A04", "returns zeros"] {
            assert!(known.contains(part), "{part}: {known}");
        }
        assert_eq!(why(&holes(share), &[CheckId::A04]), None);
    }
    let zeros = prepared(&Fixture::honest(), |s| {
        let probe = s.targets[0].probe.as_mut().unwrap().as_mut().unwrap();
        probe.zero_blocks = probe.first_ns.len() as u64;
    });
    assert!(why(&zeros, &[CheckId::A04]).is_some_and(|why| why.ends_with(" type --accept A05.")));
    // The advice is the complete command, if it is known.
    let mut typed = holes(1.0);
    typed.header.plan.command = ["/usr/bin/fathom", "run", "--", "a file"].map(str::to_owned).to_vec();
    let known = why(&typed, &[]).unwrap();
    assert!(known.ends_with(" type `fathom run --accept A04 -- 'a file'`."), "{known}");
    assert_eq!(why(&zeros, &[CheckId::A05]), None);
    let unknown = prepared(&Fixture { hole_share: 1.0, no_fiemap: true, ..Fixture::honest() }, |_| ());
    assert_eq!(why(&unknown, &[]), None, "unknown extents are no reason");
    assert_eq!(why(&prepared(&Fixture { hole_share: 1.0, ..Fixture::honest_write() }, |_| ()), &[]), None);
    // Another job or phase writes the same target.
    let mut written = holes(1.0);
    let writer = Fixture::honest_write().record().header.plan.jobs[0].clone();
    written.header.plan.jobs.push(writer.clone());
    assert_eq!(why(&written, &[]), None);
    let mut phases = holes(1.0);
    phases.header.plan.jobs[0].phases.insert(0, writer.phases[0].clone());
    assert_eq!(why(&phases, &[]), None);
    phases.header.plan.jobs[0].phases[0].streams[0].targets = vec![7];
    assert!(
        matches!(find_invalid_before_run(&phases, &[]), Some(InvalidBeforeRun::Some(_))),
        "another target, whose writes have a number"
    );
}

#[test]
fn each_result_that_is_known_to_be_invalid_is_named_with_its_own_check() {
    let mut record = prepared(&Fixture { hole_share: 1.0, ..Fixture::honest() }, |_| ());
    let zeros = prepared(&Fixture::honest(), |s| {
        let probe = s.targets[0].probe.as_mut().unwrap().as_mut().unwrap();
        probe.zero_blocks = probe.first_ns.len() as u64;
    });
    let state = |record: &Record| {
        let snapshot = record.evidence.iter().find(|s| s.moment == Moment::AfterPrepare).unwrap();
        snapshot.targets[0].clone()
    };
    record.header.plan.targets.push(record.header.plan.targets[0].clone());
    let place = record.header.hosts[0].places[0].clone();
    record.header.hosts[0].places.push(place);
    let snapshot = record.evidence.iter_mut().find(|s| s.moment == Moment::AfterPrepare).unwrap();
    snapshot.targets.push(state(&zeros));
    let mut job = record.header.plan.jobs[0].clone();
    job.phases[0].streams[0].targets = vec![1];
    record.header.plan.jobs.push(job);
    let Some(InvalidBeforeRun::All(why)) = find_invalid_before_run(&record, &[]) else { panic!("not known") };
    assert!(why.starts_with("A04 HOLES_READ invalidates ") && why.contains(" and A05 "), "{why}");
    assert!(why.contains("returns zeros") && why.ends_with("--accept A04 --accept A05."), "{why}");
}

#[test]
fn a_session_that_ended_before_its_first_run_is_invalid_and_says_why() {
    let mut record = prepared(&Fixture { hole_share: 1.0, ..Fixture::honest() }, |_| ());
    let Some(InvalidBeforeRun::All(why)) = find_invalid_before_run(&record, &[]) else { panic!("not known") };
    record.end.as_mut().unwrap().ending = model::record::RunEnding::NotMeasured(why.clone());
    record.header.plan.fail_if = model::spec::conditions::conditions("iops<1").unwrap();
    for accept in [&[][..], &[CheckId::A04]] {
        let report =
            crate::judge(&record, &crate::Judging { accept: accept.to_vec(), ..crate::Judging::default() });
        assert_eq!((report.verdict, &report.verdict_reason), (model::report::Verdict::Invalid, &why));
        assert_eq!(report.answer.as_ref().map(|a| a.word), Some(model::report::AnswerWord::Invalid));
        assert_eq!((report.headline.value, crate::exit_code(&report)), (None, 1));
    }
}

#[test]
fn an_honest_name_has_access_depth_and_cache_mode() {
    assert_eq!(named(&Fixture::honest(), &[]), "4K random read, depth 32, direct");
    let many = Fixture { workers: 4, ..Fixture::honest_write() };
    assert_eq!(named(&many, &[]), "4K random write, depth 32, 4 workers, direct");
    let null = Fixture { role: model::plan::Role::None, engine: "null", ..Fixture::honest() };
    assert_eq!(named(&null, &[]), "4K random read, depth 32, null engine, no storage");
    let cut = Fixture { engine: "ftruncate", ..Fixture::honest_write() };
    assert_eq!(named(&cut, &[]), "4K random write, depth 32, file lengths only, no data moved");
}

#[test]
fn findings_and_the_engine_change_a_name_but_conditions_do_not() {
    let another = |fixture: &Fixture, renames: &[&Rename]| {
        let record = fixture.record();
        differs_from_request(&crate::case::cases(&record)[0], renames)
    };
    // The name of an open loop ends in its requested rate.
    assert!(!another(&Fixture::honest(), &[]) && !another(&Fixture::honest_open(), &[]));
    let renames =
        [Rename::Depth(1.0), Rename::Medium("page cache".into()), Rename::Condition("limited by CPU".into())];
    assert!(renames.iter().all(|r| another(&Fixture::honest(), &[r])));
    assert!(another(&Fixture { engine: "null", ..Fixture::honest() }, &[]));
    assert!(
        model::job::ENGINES_WITHOUT_DATA
            .iter()
            .all(|engine| another(&Fixture { engine, ..Fixture::honest() }, &[]))
    );
}

#[test]
fn findings_replace_wrong_parts_of_a_name_and_memory_wins() {
    let cache = Rename::Medium("page cache".into());
    let memory = Rename::Memory("memory (tmpfs)".into());
    let cpu = Rename::Condition("limited by CPU".into());
    assert_eq!(
        named(&Fixture::honest(), &[&cache, &Rename::Depth(0.98), &cpu, &cpu]),
        "4K random read, depth ~1, page cache, limited by CPU"
    );
    assert_eq!(named(&Fixture::honest(), &[&cache, &memory]), "4K random read, depth 32, memory (tmpfs)");
}
