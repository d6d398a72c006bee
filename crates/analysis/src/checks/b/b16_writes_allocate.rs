//! B16: writes that also allocated their blocks. Measures the share of holes, unwritten and delayed bytes in the
//! file before each run.

use crate::checks::prelude::*;

/// Share of the file without blocks above which writes are not overwrites. The last block of a file stays below
/// it.
const RENAMED_ABOVE: f64 = 0.01;

pub(super) const CHECK: Check = Check {
    id: CheckId::B16,
    name: "WRITES_ALLOCATE",
    belief: "writes overwrote existing blocks",
    reads: "The map of the file's extents before each run and after its final sync (FIEMAP): holes, and \
            extents that were allocated but never written.",
    formula: formula!(
        "(Holes + unwritten bytes + bytes not allocated yet) / bytes of the file at the start of a run: \
         relabelled `allocating` above {RENAMED_ABOVE} in the worst run. Such a write takes a block, marks \
         it written and puts both into the journal. A note if the job itself requests a new file (`--engine \
         sync:new`, `sync:fallocate`, `sync:grow`)."
    ),
    provoke: "`truncate -s 1g FILE` or `fallocate -l 1g FILE`, then `fathom run --rw randwrite --destroy \
              FILE FILE`.",
    fix: "Name the directory and let fathom make its own test file, or fill the file with data first.",
    accept: "Accept it if the application writes new files.",
    ask: Ask::After(&[CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture { hole_share: 0.5, ..crate::fixture::Fixture::honest_write() }.record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest_write() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let applies = case.does(Kind::Write) && case.on_device() && !case.on_block_devices();
    // If the job also reads the holes, A04 already voids the result.
    if !applies || (case.does(Kind::Read) && earlier.finds(CheckId::A04)) {
        return Ok(Answer::DoesNotApply);
    }
    if case.stream.renews_file() {
        let sentence = "The job requests a new file in each run, so its writes also allocate blocks.";
        return finding!(Severity::Note, evidence([]), "{sentence}");
    }
    let extents = case.extents()?;
    let worst = extents.iter().filter(|e| e.span_bytes > 0).map(share_without_blocks).max_by(f64::total_cmp);
    let worst = worst.ok_or("the map of the file's extents is empty")?;
    let mut numbers = evidence([("without_blocks_share", worst)]);
    let most_extents = |all: &[Extents]| all.iter().map(|e| e.count as f64).fold(0.0, f64::max);
    numbers.extend(evidence([("extents_before", most_extents(&extents))]));
    numbers.extend(extents_after_syncs(case).map(|all| ("extents_after".to_owned(), most_extents(&all))));
    if worst <= RENAMED_ABOVE {
        return holds("Writes overwrote existing blocks.", numbers);
    }
    detail!(
        Severity::Rename,
        numbers,
        "{} of the file had no written blocks before the run, so writes also allocated blocks. Overwriting a \
         file is a different test.",
        show_share(worst)
    )
    .relabelled(Rename::Condition("allocating".into()))
    .found()
}

fn share_without_blocks(e: &Extents) -> f64 {
    let bytes = e.hole_bytes as f64 + e.unwritten_bytes as f64 + e.delayed_bytes as f64;
    share(bytes, e.span_bytes as f64)
}

/// Returns the extent maps after the final syncs, or `None` if they were not read.
fn extents_after_syncs(case: &Case) -> Option<Vec<Extents>> {
    let states = case.states(Moment::Synced).ok()?;
    states.into_iter().flatten().map(|s| s.extents.clone()?.ok()).collect()
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn two_percent_of_holes_relabel_and_half_a_percent_is_silent() {
    let at = |hole_share| CHECK.severity(&Fixture { hole_share, ..Fixture::honest_write() }.record());
    assert_eq!(at(0.02), Some(Severity::Rename));
    assert_eq!(at(0.005), None);
}

#[test]
fn a_job_that_requests_a_new_file_gets_a_note() {
    use model::job::{FALLOCATE, GROW, NEW};
    for option in [NEW, FALLOCATE, GROW] {
        let mut record = Fixture { hole_share: 1.0, ..Fixture::honest_write() }.record();
        record.header.plan.jobs[0].phases[0].streams[0].options.insert(option.into(), None);
        assert_eq!(CHECK.severity(&record), Some(Severity::Note), "{option}");
    }
}

#[test]
fn unwritten_extents_count_and_reads_are_not_checked() {
    let mut record = Fixture::honest_write().record();
    for state in record.runs.iter_mut().flat_map(|r| &mut r.evidence).flat_map(|s| &mut s.targets) {
        if let Some(Ok(extents)) = &mut state.extents {
            extents.unwritten_bytes = extents.span_bytes;
        }
    }
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert_eq!(f.renames, Some(Rename::Condition("allocating".into())));
    let read = Fixture { hole_share: 1.0, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&read.record()), Ok(Answer::DoesNotApply));
}
