//! C04: acknowledged writes that were not made durable within the measured time. Notes direct writes on a disk
//! with a volatile cache, and fires if the final sync of a run failed.

use crate::checks::prelude::*;

pub(super) const CHECK: Check = Check {
    id: CheckId::C04,
    name: "NO_FINAL_SYNC",
    belief: "an acknowledged write survives a power cut",
    reads: "The cache mode and the syncs of the job, the result and duration of the final sync of each run, \
            and `queue/write_cache` of the lowest disks.",
    formula: formula!(
        "Writes without O_SYNC, O_DSYNC, fsync or fdatasync on a disk that reports `write back`: a note, \
         since most people measure this, and the number is right for it. A run that wrote and whose final \
         sync failed: biased, since the writes may not have arrived. If A09 finds the writes in memory, only \
         A09 reports them."
    ),
    provoke: "fathom run --rw randwrite --bs 4k --cache direct .   # on a disk whose queue/write_cache is \
              `write back`",
    fix: "Use --cache direct-dsync, or --fsync N, to measure writes that survive a power cut.",
    accept: "A note needs no --accept.",
    ask: Ask::After(&[CheckId::A09], evaluate),
    #[cfg(test)]
    fires: Some(|| super::with_flushes(&crate::fixture::Fixture::honest_write(), "write back", 1, 1)),
    #[cfg(test)]
    blind: || {
        crate::fixture::Fixture { nothing_below: true, ..crate::fixture::Fixture::honest_write() }.record()
    },
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() || earlier.finds(CheckId::A09) {
        return Ok(Answer::DoesNotApply);
    }
    if case.syncs_itself() {
        return holds("The job makes its writes durable within the measured time.", evidence([]));
    }
    let failed = case.runs.iter().filter(|r| r.end.sync_ns.is_none()).count();
    if failed > 0 {
        return detail!(
            Severity::Biased,
            evidence([("runs_without_sync", failed as f64)]),
            "The writes of {failed} of {} runs were never made durable: the final sync did not succeed.",
            case.runs.len()
        )
        .with_cure("See the notes for the reason (`dmesg` shows disk errors), and measure again.".to_owned())
        .found();
    }
    if super::volatile_disks(case)?.is_empty() {
        return holds(
            "The disk reports no volatile cache, so acknowledged writes are durable.",
            evidence([]),
        );
    }
    case.need_run()?;
    let syncs: f64 = case.runs.iter().filter_map(|r| r.end.sync_ns).map(|ns| ns as f64).sum();
    let mean_ns = syncs / case.runs.len() as f64;
    finding!(
        Severity::Note,
        evidence([("final_sync_ns", mean_ns)]),
        "When the clock stopped, acknowledged writes may still have been in the drive's volatile cache. The \
         sync after them took {}.",
        show_ns(mean_ns)
    )
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn syncs_of_the_job_hold_and_a_failed_final_sync_biases() {
    assert_eq!(
        CHECK.severity(&super::with_flushes(&Fixture::honest_write(), "write back", 1, 1)),
        Some(Severity::Note)
    );
    assert!(matches!(
        CHECK.answer(&super::with_flushes(&super::stable_writes(), "write back", 1, 1)),
        Ok(Answer::Holds(..))
    ));
    let failed = Fixture { sync_ns: None, ..Fixture::honest_write() };
    assert_eq!(CHECK.severity(&failed.record()), Some(Severity::Biased));
}

#[test]
fn it_is_silent_if_a09_fires() {
    let in_memory = Fixture { delivered: 0.3, dirty_share: 0.7, ..Fixture::honest_write() };
    let record = super::with_flushes(&in_memory, "write back", 1, 1);
    assert_eq!(CHECK.answer(&record), Ok(Answer::DoesNotApply));
}
