//! C05: writes that a server or a user-space program acknowledged, so that their storage is unknown. Always a
//! note on such file systems; on NFS, relabels the result if syncs were requested but no WRITE or COMMIT was
//! sent.

use crate::checks::prelude::*;
use model::evidence::MOUNT_STATS;

/// File systems whose storage belongs to another machine or program, by the start of their names. `fuseblk` uses
/// a local block device, but a program acknowledges.
const REMOTE: &[&str] =
    &["nfs", "cifs", "smb3", "ceph", "9p", "virtiofs", "fuse", "glusterfs", "lustre", "afs"];
/// Prefix of the file systems whose calls the kernel counts.
const COUNTED: &str = "nfs";

pub(super) const CHECK: Check = Check {
    id: CheckId::C05,
    name: "REMOTE_ACK",
    belief: "the server acknowledges a write once its own storage has it",
    reads: "The type of the file system in `/proc/self/mountinfo`. For NFS also the WRITE and COMMIT calls \
            in `/proc/self/mountstats` from the start of a run to its final sync.",
    formula: formula!(
        "Any network or user-space file system: a note, since the server may have answered from its memory. \
         If syncs were requested and NFS sent no WRITE or COMMIT, the result is relabelled: nothing left \
         this machine. A missing COMMIT alone proves nothing, since a client requests stable writes if one \
         call carries all data."
    ),
    provoke: "mount -t nfs server:/export /mnt && fathom run --rw randwrite --depth 1 --fsync 1 /mnt",
    fix: "Check the mount options (`nfsstat -m`) and the server's (`exportfs -v` must list `sync`), and \
          measure on the server.",
    accept: "A note needs no --accept.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| nfs(Some((0, 11_000, 0)))),
    #[cfg(test)]
    blind: || nfs(None),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.has_storage() {
        return Ok(Answer::DoesNotApply);
    }
    let kinds: Vec<&str> = case.places().map(model::machine::Place::kind).collect();
    if kinds.is_empty() {
        return Err("the record does not contain the file system of the target".into());
    }
    let Some(kind) = kinds.iter().find(|k| REMOTE.iter().any(|r| k.starts_with(r))) else {
        return holds("No server is between a write and its storage.", evidence([]));
    };
    if !kind.starts_with(COUNTED) {
        return note(format!(
            "{kind} acknowledged the writes, but this machine cannot see whether they are on media."
        ));
    }
    let [writes, commits] = calls_in_runs(case)?;
    if writes == 0 && commits == 0 && case.syncs_itself() && super::syncs_requested(case) > 0 {
        return detail!(
            Severity::Rename,
            evidence([("writes_sent", 0.0), ("commits_sent", 0.0)]),
            "{} syncs were requested, but no write was sent to the server.",
            show_count(super::syncs_requested(case) as f64)
        )
        .relabelled(Rename::Condition("not durable".into()))
        .found();
    }
    let sentence = format!(
        "The server acknowledged {} writes and {} commits, but this machine cannot see whether they are on \
         its media.",
        show_count(writes as f64),
        show_count(commits as f64)
    );
    note(sentence)
}

fn note(sentence: String) -> Known<Answer> {
    Detail::new(Severity::Note, sentence, evidence([])).found()
}

/// Returns the WRITE and COMMIT calls of all runs, from the start to the final sync.
fn calls_in_runs(case: &Case) -> Known<[u64; 2]> {
    let mut sum = [0_u64; 2];
    for ran in &case.runs {
        let before = calls_since_mount(ran.at(Moment::Start)?)?;
        let after = calls_since_mount(ran.at(Moment::Synced)?)?;
        for i in [0, 1] {
            let passed = after[i].checked_sub(before[i]).ok_or("the counters of the mount went backwards")?;
            sum[i] = sum[i].saturating_add(passed);
        }
    }
    case.need_run().map(|()| sum)
}

/// Returns the WRITE and COMMIT calls since the mount, over all mounts in the file. In a line `WRITE: 3 3 0 ...`,
/// the first number counts the calls.
fn calls_since_mount(snapshot: &Snapshot) -> Known<[u64; 2]> {
    let text = snapshot.text(MOUNT_STATS)?;
    let calls_named = |name: &str| {
        let lines = text.lines().filter_map(|l| l.trim().strip_prefix(name)?.strip_prefix(':'));
        let counts = lines.filter_map(|l| l.split_ascii_whitespace().next()?.parse::<u64>().ok());
        counts.fold(None, |sum: Option<u64>, n| Some(sum.unwrap_or(0).saturating_add(n)))
    };
    let missing = || format!("{MOUNT_STATS} has no count of writes");
    Ok([calls_named("WRITE").ok_or_else(missing)?, calls_named("COMMIT").ok_or_else(missing)?])
}

/// Synced writes on NFS. `calls` has the calls before the first run, and the WRITE and COMMIT calls of each run.
#[cfg(test)]
fn nfs(calls: Option<(u64, u64, u64)>) -> model::record::Record {
    let nothing_below = true;
    let mut record = crate::fixture::Fixture { nothing_below, ..super::stable_writes() }.record();
    for fs in record.header.hosts[0].places.iter_mut().filter_map(|p| p.file_system.as_mut()) {
        fs.kind = "nfs4".into();
    }
    let (mut writes, mut commits) = calls.map_or((0, 0), |c| (c.0, c.0));
    for run in &mut record.runs {
        for snapshot in &mut run.evidence {
            if let (Moment::Stop, Some((_, w, c))) = (snapshot.moment, calls) {
                (writes, commits) = (writes + w, commits + c);
            }
            let text = format!(
                "device srv:/x mounted on /mnt with fstype nfs4 statvers=1.1\n\tper-op statistics\n\
                 \t        READ: 9 9 0 1 1 1 1 1 0\n\t       WRITE: {writes} {writes} 0 1 1 1 1 1 0\n\
                 \t      COMMIT: {commits} {commits} 0 1 1 1 1 1 0\n"
            );
            if calls.is_some() {
                snapshot.files.insert(MOUNT_STATS.into(), Ok(text));
            }
        }
    }
    record
}

#[test]
fn a_server_is_a_note_and_no_calls_relabel() {
    assert_eq!(CHECK.severity(&nfs(Some((7, 11_000, 0)))), Some(Severity::Note));
    assert_eq!(CHECK.severity(&nfs(Some((7, 0, 0)))), Some(Severity::Rename));
    let Ok(Answer::Finding(f)) = CHECK.answer(&nfs(Some((7, 11_000, 3)))) else { panic!("silent") };
    assert!(f.sentence.contains("22,000 writes and 6 commits"), "{}", f.sentence);
}

#[test]
fn a_fuse_file_system_is_a_note_without_counters() {
    let fuse = crate::fixture::Fixture { nothing_below: true, ..crate::fixture::Fixture::honest_write() };
    assert_eq!(CHECK.severity(&fuse.record()), Some(Severity::Note));
    let read = crate::fixture::Fixture { nothing_below: true, ..crate::fixture::Fixture::honest() };
    assert_eq!(CHECK.answer(&read.record()), Ok(Answer::DoesNotApply));
}
