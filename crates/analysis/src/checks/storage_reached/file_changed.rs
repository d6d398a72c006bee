//! A23: a file that changed while it was measured. Compares its identity, length, links,
//! allocation, extents and times after preparation and at the start and end of every attempt at a
//! run, through the descriptor that fathom holds open.
use crate::checks::prelude::*;
use model::evidence::{FileState, TargetState};
use model::job::GROW;
use model::plan::Role;

pub(super) const FILE_CHANGED: Check = Check {
    id: CheckId::A23,
    name: "FILE_CHANGED",
    belief: "the file stayed the same while it was measured",
    reads: "Device, inode, names, length, allocated bytes and change times (mtime, ctime) of every file \
            after preparation and at the start and end of each run (fstat on the descriptor that fathom \
            holds), and its extents (FIEMAP) if the run only reads. Programs cannot read the change cookies \
            of file systems, so the change times take their place.",
    formula: formula!(
        "Compares the file at the start and at the end of each run, discarded attempts included. Your own \
         files are also compared between runs. There is no threshold: no other process should touch the \
         file.\n\
         - Invalid if a later run found another file.\n\
         - Invalid if the length changed, except with `--engine sync:grow` or an engine that moves no \
         data.\n\
         - Invalid if fathom only reads the file, and bytes were removed from it or its extents moved.\n\
         - Biased if a name of the file was removed or given to another file: that name no longer leads to \
         the measured file.\n\
         - Biased if fathom only reads the file, and only its change times moved: another process wrote to \
         it, renamed it or set its times.\n\
         - Not checked, without a finding, if the state of the file could not be read."
    ),
    provoke: "`fathom run --rw randread --time 5s FILE` and, while it runs, `fallocate --punch-hole --offset \
              0 --length 1m FILE`, `truncate -s 1m FILE`, or `mv OTHER FILE`.",
    fix: "Make sure that no process changes the file during the measurement, or name its directory and let \
          fathom make its own file.",
    accept: "Do not accept it: no correction exists for a file that changed.",
    applies: |case| case.has_storage(),
    ask: Ask::Alone(check_file_changed),
    #[cfg(test)]
    fires: Some(|| changed(&Fixture::honest(), |f| f.bytes = 4096)),
    #[cfg(test)]
    blind: || {
        let mut record = Fixture::honest().record();
        super::change_snapshots(&mut record, |s| s.targets.iter_mut().for_each(|t| t.file = None));
        record
    },
};

/// A change to a file. The variants are in the order of their severity, the worst first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    AnotherFile,
    /// Bytes before and after.
    Length(u64, u64),
    /// Extents moved, or bytes were removed.
    Extents,
    NameLost,
    Written,
    /// Renamed, or other times, owner, mode or attributes.
    Attributes,
}

impl Change {
    fn severity(&self) -> Severity {
        match self {
            Self::AnotherFile | Self::Length(..) | Self::Extents => Severity::Invalidates,
            Self::NameLost | Self::Written | Self::Attributes => Severity::Biases,
        }
    }

    fn sentence(&self, path: &str) -> String {
        match self {
            Self::AnotherFile => format!("A later run found another file at {path}."),
            Self::Length(before, after) => format!(
                "{path} was {} while it was measured: from {} to {}.",
                if after < before { "shortened" } else { "extended" },
                show_bytes(*before),
                show_bytes(*after)
            ),
            Self::Extents => format!(
                "The extents of {path} changed while fathom only read it: another process or the file system \
                 itself removed or moved bytes."
            ),
            Self::NameLost => {
                format!(
                    "{path}, or another name of this file, was removed or replaced: that name no longer \
                     leads to the measured file."
                )
            }
            Self::Written => {
                format!("Another process wrote to {path}, or set its times, while fathom only read it.")
            }
            Self::Attributes => format!(
                "Another process renamed {path}, or changed its times, owner, mode or attributes, while \
                 fathom only read it: the name may now lead to another file, and times that were set back \
                 may hide a write."
            ),
        }
    }
}

fn check_file_changed(case: &Case) -> Known<Answer> {
    let streams = case.phase_streams();
    let files: Vec<usize> = case.own_places().map(|(t, _)| t).filter(|t| is_file(case, *t)).collect();
    if files.is_empty() {
        return Ok(Answer::DoesNotApply);
    }
    case.need_run()?;
    let (mut worst, mut completeness): (Option<(Change, usize)>, _) = (None, Ok(()));
    for target in files {
        // fathom's own writes change the times and the allocation, but not the length.
        let streams_only_read =
            streams.iter().filter(|s| s.targets.contains(&target)).all(|s| !s.changes_targets());
        let only_read = streams_only_read && !is_written_by_hosts(case, target);
        let (changes, known) = changes(case, target, only_read);
        completeness = completeness.and(known);
        for change in changes {
            if worst.as_ref().is_none_or(|(known, _)| change < *known) {
                worst = Some((change, target));
            }
        }
    }
    let Some((change, target)) = worst else {
        completeness?;
        return holds("The file stayed the same while it was measured.", evidence([]));
    };
    let path = case.record.header.plan.targets.get(target).map_or("the file", |t| t.path.as_str());
    let numbers = match change {
        Change::Length(before, after) => {
            evidence([("bytes_before", before as f64), ("bytes_after", after as f64)])
        }
        _ => evidence([]),
    };
    Detail::new(change.severity(), change.sentence(path), numbers).found()
}

/// Whether other hosts of this measurement may write the file in other runs. A later run of this host may then see the change.
fn is_written_by_hosts(case: &Case, target: usize) -> bool {
    let plan = &case.record.header.plan;
    plan.common(target).is_some() && plan.streams().any(model::job::Stream::changes_targets)
}

fn is_file(case: &Case, target: usize) -> bool {
    case.record.header.plan.targets.get(target).is_some_and(|t| matches!(t.role, Role::File | Role::Made))
}

/// Returns the changes to a target over all attempts at all runs, including discarded attempts. The second value is the reason if further
/// changes may be unknown.
fn changes(case: &Case, target: usize, only_read: bool) -> (Vec<Change>, Known<()>) {
    let plan = &case.record.header.plan;
    // Only a file of the user is compared between runs: a resumed session makes fathom's own files
    // again.
    let is_users_file = plan.targets.get(target).is_some_and(|t| t.role == Role::File);
    let using_streams: Vec<&Stream> = plan.streams().filter(|s| s.targets.contains(&target)).collect();
    let never_written = !using_streams.iter().any(|s| s.changes_targets());
    // The length of a file may change if the job appends to it or sets its length.
    let grows = using_streams.iter().any(|s| s.options.contains_key(GROW) || s.moves_no_data());
    let prepared = case.snapshot_before_runs(Moment::AfterPrepare);
    let mut last = prepared.filter(|_| is_users_file).map(|s| state(s, target));
    let mut attempts: Vec<&CaseRun> =
        case.earlier_runs.iter().chain(case.runs.iter()).chain(&case.replaced_attempts).collect();
    attempts.sort_by_key(|ran| ran.run.start.at_ns);
    let (mut out, mut completeness) = (Vec::new(), Ok(()));
    for ran in attempts {
        let [start, stop] =
            [Moment::Start, Moment::Stop].map(|moment| ran.snapshot(moment).and_then(|s| state(s, target)));
        let between_runs = last.clone().map(|last| (last, start.clone(), never_written));
        for (then, now, only_read) in
            between_runs.into_iter().chain([(start.clone(), stop.clone(), only_read)])
        {
            let added = then.and_then(|then| add_changes(then, now?, only_read, &mut out));
            completeness = completeness.and(added);
        }
        // If the file could not be read during an attempt, the next attempt is compared with the last one that was read.
        let is_read = |state: &Known<&TargetState>| state.clone().and_then(facts).is_ok();
        if is_users_file && let Some(known) = [stop, start].into_iter().find(is_read) {
            last = Some(known);
        }
    }
    out.retain(|change| !(grows && matches!(change, Change::Length(..))));
    (out, completeness)
}

/// Adds the changes between two observations of a target.
fn add_changes(then: &TargetState, now: &TargetState, only_read: bool, out: &mut Vec<Change>) -> Known<()> {
    let (before, after) = (facts(then)?, facts(now)?);
    if (before.device, before.inode) != (after.device, after.inode) {
        out.push(Change::AnotherFile);
        return Ok(());
    }
    if before.bytes != after.bytes {
        out.push(Change::Length(before.bytes, after.bytes));
    }
    out.extend((after.links < before.links).then_some(Change::NameLost));
    if only_read {
        let moved = matches!((&then.extents, &now.extents), (Some(Ok(a)), Some(Ok(b))) if a != b);
        // A thread of the file system may free blocks allocated beyond the end of the file.
        let freed = after.allocated_bytes < before.allocated_bytes.min(after.bytes);
        out.extend((moved || freed).then_some(Change::Extents));
        let written = before.modified_ns != after.modified_ns;
        out.extend(written.then_some(Change::Written));
        let known = before.changed_ns.zip(after.changed_ns);
        out.extend((!written && known.is_some_and(|(then, now)| then != now)).then_some(Change::Attributes));
    }
    Ok(())
}

fn state(snapshot: &Snapshot, target: usize) -> Known<&TargetState> {
    snapshot.targets.get(target).ok_or_else(|| "the snapshot does not contain the target".into())
}

fn facts(state: &TargetState) -> Known<FileState> {
    state.file.clone().unwrap_or_else(|| {
        Err("the state of the file at the start and end of the runs was not recorded".into())
    })
}

#[cfg(test)]
use crate::fixture::Fixture;

/// A record whose file differs at the end of its last run.
#[cfg(test)]
fn changed(fixture: &Fixture, change: impl Fn(&mut FileState)) -> model::record::Record {
    let mut record = fixture.record();
    let last = record.runs.last_mut().unwrap();
    let stops = last.evidence.iter_mut().filter(|s| s.moment != Moment::Start);
    stops.flat_map(|s| &mut s.targets).filter_map(|t| t.file.as_mut()?.as_mut().ok()).for_each(change);
    record
}

#[test]
fn a_new_length_or_identity_is_void_and_a_write_biases() {
    let at = |fixture: &Fixture, change: fn(&mut FileState)| FILE_CHANGED.severity(&changed(fixture, change));
    let (read, write) = (Fixture::honest(), Fixture::honest_write());
    assert_eq!(at(&read, |f| f.bytes += 1), Some(Severity::Invalidates));
    assert_eq!(at(&write, |f| f.bytes -= 1), Some(Severity::Invalidates));
    assert_eq!(at(&read, |f| f.inode += 1), Some(Severity::Invalidates));
    assert_eq!(at(&read, |f| f.allocated_bytes -= 4096), Some(Severity::Invalidates));
    assert_eq!(at(&read, |f| f.modified_ns += 1), Some(Severity::Biases));
    assert_eq!(at(&read, |f| f.links = 0), Some(Severity::Biases));
    assert_eq!(at(&read, |f| f.changed_ns = Some(2)), Some(Severity::Biases), "renamed, or times set back");
    assert_eq!(at(&read, |f| f.changed_ns = None), None, "sessions of earlier versions");
    assert_eq!(at(&write, |f| f.changed_ns = Some(2)), None);
    // fathom's own writes.
    assert_eq!(at(&write, |f| f.modified_ns += 1), None);
    assert_eq!(at(&write, |f| f.allocated_bytes += 4096), None);
}

#[test]
fn changes_between_runs_and_in_discarded_attempts_are_found() {
    let later = |fixture: &Fixture, from: usize, change: fn(&mut FileState)| {
        let mut record = fixture.record();
        let files = record.runs[from..].iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets);
        files.filter_map(|t| t.file.as_mut()?.as_mut().ok()).for_each(change);
        record
    };
    let severity = |role, from, change| {
        FILE_CHANGED.severity(&later(&Fixture { role, ..Fixture::honest() }, from, change))
    };
    for from in [0, 4] {
        assert_eq!(
            severity(Role::File, from, |f| f.device += 1),
            Some(Severity::Invalidates),
            "from run {from}"
        );
        assert_eq!(
            severity(Role::File, from, |f| f.bytes += 1),
            Some(Severity::Invalidates),
            "from run {from}"
        );
        assert_eq!(
            severity(Role::File, from, |f| f.modified_ns += 1),
            Some(Severity::Biases),
            "from run {from}"
        );
        assert_eq!(severity(Role::Made, from, |f| f.device += 1), None, "resumed before run {from}");
    }
    let mut grown = changed(&Fixture::honest_write(), |f| f.bytes = 4096);
    grown.header.plan.jobs[0].phases[0].streams[0].options.insert(GROW.into(), None);
    assert_eq!(FILE_CHANGED.severity(&grown), None, "it grows by what is written");
    // Jobs of the same plan write between runs.
    let write = Fixture { role: Role::File, ..Fixture::honest_write() };
    assert_eq!(FILE_CHANGED.severity(&later(&write, 4, |f| f.modified_ns += 1)), None);

    let mut record = changed(&Fixture::honest(), |f| f.bytes += 1);
    let mut repeated = record.runs.pop().unwrap();
    record.uncounted_runs.push(repeated.clone());
    repeated.start.attempt += 1;
    repeated.evidence.iter_mut().flat_map(|s| &mut s.targets).for_each(|t| {
        t.file.as_mut().unwrap().as_mut().unwrap().bytes = 1 << 30;
    });
    record.runs.push(repeated);
    assert_eq!(FILE_CHANGED.severity(&record), Some(Severity::Invalidates), "a discarded attempt");
}

#[test]
fn moved_extents_are_found_and_devices_do_not_apply() {
    let moved = super::with_extents(&Fixture::honest(), |moment, e| {
        if moment == Moment::Stop {
            e.count = 2;
        }
    });
    let Ok(Answer::Finding(f)) = FILE_CHANGED.answer(&moved) else { panic!("silent") };
    assert!(
        f.severity == Severity::Invalidates && f.sentence.contains("the file system itself"),
        "{}",
        f.sentence
    );
    let device = Fixture { role: Role::Device, ..Fixture::honest() }.record();
    assert_eq!(FILE_CHANGED.answer(&device), Ok(Answer::DoesNotApply));
}

#[test]
fn an_attempt_that_was_not_read_hides_no_change() {
    let with_unread_attempt = |mut record: model::record::Record| {
        let mut attempt = record.runs[0].clone();
        attempt.evidence.clear();
        record.uncounted_runs.push(attempt);
        FILE_CHANGED.answer(&record)
    };
    let found = with_unread_attempt(changed(&Fixture::honest(), |f| f.bytes = 4096));
    assert!(matches!(&found, Ok(Answer::Finding(f)) if f.severity == Severity::Invalidates), "{found:?}");
    let same = with_unread_attempt(Fixture::honest().record());
    assert!(same.is_err_and(|why| why.contains("has no snapshot")));
}

#[test]
fn a_change_while_nothing_was_read_is_found() {
    let fixture = Fixture { role: Role::File, ..Fixture::honest() };
    let files = |run: &mut model::record::Run, change: fn(&mut Known<FileState>)| {
        let targets = run.evidence.iter_mut().flat_map(|s| &mut s.targets);
        targets.filter_map(|t| t.file.as_mut()).for_each(change);
    };
    let unread: [fn(&mut model::record::Run); 2] = [
        |run| run.evidence.clear(),
        |run| {
            let targets = run.evidence.iter_mut().flat_map(|s| &mut s.targets);
            targets.filter_map(|t| t.file.as_mut()).for_each(|f| *f = Err("hidden".into()));
        },
    ];
    for unread in unread {
        let mut record = fixture.record();
        let mut attempt = record.runs[1].clone();
        unread(&mut attempt);
        attempt.start.at_ns = record.runs[2].start.at_ns - 1;
        record.uncounted_runs.push(attempt);
        assert!(FILE_CHANGED.answer(&record).is_err());
        record.runs[2..].iter_mut().for_each(|run| files(run, |file| file.as_mut().unwrap().inode += 1));
        assert_eq!(FILE_CHANGED.severity(&record), Some(Severity::Invalidates));
    }
    // The start of a run was read, and its end was not.
    let mut record = fixture.record();
    record.runs[1].evidence.retain(|s| s.moment == Moment::Start);
    record.runs[2..].iter_mut().for_each(|run| files(run, |file| file.as_mut().unwrap().inode += 1));
    assert_eq!(FILE_CHANGED.severity(&record), Some(Severity::Invalidates));
}
