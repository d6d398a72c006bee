//! B12: operations that failed or moved fewer bytes than requested, and syncs and closes after them that failed.
//!
//! Counts the errors of every run of the job, including runs that errors ended. A failed sync of a target that
//! the stream wrote counts like a failed operation: the kernel accepted the writes but could not store them.

use crate::checks::prelude::*;
use model::errno;
use model::record::{Issued, SyncFailure};

/// Errors named in the sentence. The session file contains all of them.
const NAMED: usize = 3;

pub(super) const CHECK: Check = Check {
    id: CheckId::B12,
    name: "ERRORS_COUNTED",
    belief: "every operation succeeded",
    reads: "The result of every operation from the kernel, in every run, including runs that errors ended: \
            errors by number, and operations that moved fewer bytes than requested. With --verify, reads of \
            unexpected data are errors too. Also the results of the final sync and the close of each target.",
    formula: formula!(
        "Void from the first failed or short operation, and from the first failed sync or close of a target \
         that the stream writes. No share is harmless: a failed operation is often the fastest, and a test \
         should reveal a device that fails one operation in a million. After a failed sync, writes that \
         counted as done are lost."
    ),
    provoke: "As root: `truncate -s 1g IMAGE`, `losetup -f --show IMAGE`, `truncate -s 512m IMAGE`, then \
              `fathom run --rw randread /dev/loopN`: reads beyond the end fail with EIO.",
    fix: "Check the kernel log (`dmesg`) for the device, the free space for ENOSPC, and whether --bs and \
          --offset suit the target for EINVAL. For EILSEQ, the notes give the place: the data there are \
          damaged or were not written by this workload.",
    accept: "Accept it only if you want to measure failures.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { errors: 7, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { runs: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    let issued_by_kind: Vec<&Issued> = issued(case).collect();
    if issued_by_kind.is_empty() {
        return Err("no run recorded the results of its operations".into());
    }
    let mut errors: BTreeMap<i32, u64> = BTreeMap::new();
    for (errno, count) in issued_by_kind.iter().flat_map(|i| &i.errors) {
        let sum = errors.entry(*errno).or_default();
        *sum = sum.saturating_add(*count);
    }
    let failed = errors.values().fold(0_u64, |a, b| a.saturating_add(*b));
    let short = issued_by_kind.iter().fold(0_u64, |sum, i| sum.saturating_add(i.short));
    let sync_failures: Vec<&SyncFailure> = case.ends.iter().flat_map(|end| case.sync_failures(end)).collect();
    let mut numbers = evidence([("failed_ops", failed as f64), ("short_ops", short as f64)]);
    if !sync_failures.is_empty() {
        numbers.insert("failed_syncs".into(), sync_failures.len() as f64);
    }
    if failed == 0 && short == 0 && sync_failures.is_empty() {
        return holds("Every operation moved all its bytes.", numbers);
    }
    let mut sentences = Vec::new();
    if let Some(first) = sync_failures.first() {
        let runs = case.ends.iter().filter(|end| case.sync_failures(end).next().is_some()).count();
        sentences.push(format!(
            "The {} failed with {} in {} of {}: the kernel accepted these writes but could not store them.",
            first.call.name(),
            errno::describe_errno(first.errno),
            show_count(runs as f64),
            match case.ends.len() {
                1 => "1 run".to_owned(),
                n => format!("{} runs", show_count(n as f64)),
            }
        ));
    }
    let named: Vec<String> = errors
        .iter()
        .take(NAMED)
        .map(|(e, n)| format!("{} with {}", show_count(*n as f64), errno::describe_errno(*e)))
        .collect();
    let named_errors = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
    if failed > 0 || short > 0 {
        sentences.push(format!(
            "{} operations failed{named_errors} and {} were short: failed I/O is often the fastest I/O.",
            show_count(failed as f64),
            show_count(short as f64)
        ));
    }
    Detail::new(Severity::Void, sentences.join(" "), numbers).found()
}

fn issued<'a>(case: &'a Case) -> impl Iterator<Item = &'a Issued> {
    let streams = case.ends.iter().flat_map(|e| &e.streams).filter(|s| s.stream == case.index);
    streams.flat_map(|s| s.issued.values())
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn short_operations_are_void_and_errors_are_named() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&Fixture { errors: 7, ..Fixture::honest() }.record()) else {
        panic!("silent")
    };
    assert!(f.sentence.contains("EIO"), "{}", f.sentence);
    assert_eq!(CHECK.severity(&Fixture { short: 1, ..Fixture::honest() }.record()), Some(Severity::Void));
}

#[test]
fn a_failed_sync_is_void_only_for_the_stream_that_wrote() {
    let failed = Fixture { sync_errno: 28, ..Fixture::honest_write() };
    let Ok(Answer::Finding(f)) = CHECK.answer(&failed.record()) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Void);
    assert!(
        f.sentence.contains("final sync failed with ENOSPC") && !f.sentence.contains("operations"),
        "{f:?}"
    );
    let reads = Fixture { sync_errno: 5, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&reads.record()), Ok(Answer::Holds(..))));
    let mut another = failed.record();
    for end in another.runs.iter_mut().filter_map(|run| run.end.as_mut()) {
        end.sync_failures.iter_mut().for_each(|failure| failure.target = 1);
    }
    assert!(matches!(CHECK.answer(&another), Ok(Answer::Holds(..))), "a target of another stream");
}
