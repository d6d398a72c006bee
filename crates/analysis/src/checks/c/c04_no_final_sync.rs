//! C04: acknowledged writes that were not made stable within the measured time. Notes direct writes on a disk
//! with a volatile cache, and fires if the final sync of a run failed.

use crate::case::Case;
use crate::checks::{Answer, Ask, Check, Detail, Earlier, Page, evidence, formula};
use model::Known;
use model::finding::{CheckId, Severity};
use model::job::Kind;
use model::units::show_ns;

pub(super) const CHECK: Check = Check {
    id: CheckId::C04,
    name: "NO_FINAL_SYNC",
    belief: "an acknowledged write survives a power cut",
    page: Page {
        reads: "The cache mode and the syncs of the job; whether the final sync of each run succeeded and how long it took; \
                `queue/write_cache` of the lowest disks.",
        formula: formula!(
            "Writes without O_SYNC, O_DSYNC, fsync or fdatasync on a disk that says `write back`: a note, since that is what \
             most people measure, and the number is right for it. A run that wrote and whose final sync failed: biased, since \
             it is not known whether the writes arrived. Where A09 finds them in memory, only that is reported."
        ),
        provoke: "fathom run --rw randwrite --bs 4k --cache direct .   # on a disk whose queue/write_cache says write back",
        fix: "Use --cache direct-dsync, or --fsync N, to measure writes that survive a power cut.",
        accept: "A note needs no --accept.",
    },
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
        return Ok(Answer::Holds(
            "The job itself asks for stable writes, within the time that is measured.",
            evidence([]),
        ));
    }
    let failed = case.runs.iter().filter(|r| r.end.sync_ns.is_none()).count();
    if failed > 0 {
        return Ok(Answer::Finding(Detail {
            severity: Severity::Biased,
            sentence: format!(
                "The writes of {failed} of {} runs were never made stable: there is no final sync that succeeded.",
                case.runs.len()
            ),
            cure: Some(
                "See the notes for why it failed (`dmesg` names errors of the disk), and measure again."
                    .into(),
            ),
            evidence: evidence([("runs_without_sync", failed as f64)]),
            renames: None,
        }));
    }
    if super::volatile_disks(case)?.is_empty() {
        return Ok(Answer::Holds(
            "The disk keeps no volatile cache, so what it acknowledged is stable.",
            evidence([]),
        ));
    }
    if case.runs.is_empty() {
        return Err(crate::case::no_run());
    }
    let syncs: f64 = case.runs.iter().filter_map(|r| r.end.sync_ns).map(|ns| ns as f64).sum();
    let mean_ns = syncs / case.runs.len() as f64;
    Ok(Answer::finding(
        Severity::Note,
        format!(
            "The writes were acknowledged and may have been in the drive's volatile cache when the clock \
             stopped; the sync after them took {}.",
            show_ns(mean_ns)
        ),
        evidence([("final_sync_ns", mean_ns)]),
    ))
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
