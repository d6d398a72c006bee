//! A04: reads of bytes that were never written. Measures the share of holes and unwritten extents in the file
//! before the first operation and after the last one.

use crate::checks::prelude::*;

/// Share of never written bytes that is harmless: one block at the end of a 4 MiB file.
pub(crate) const UNWRITTEN_ABOVE: Share = Share(0.001);

pub(super) const CHECK: Check = Check {
    id: CheckId::A04,
    name: "HOLES_READ",
    belief: "the bytes that were read are on the disk",
    reads: "The extents of the measured region of the file before the first run and at the start and end of \
            every run (FIEMAP): holes, and extents that were allocated but never written. If the check \
            already fires before the first run, fathom measures nothing.",
    formula: formula!(
        "Bytes never written / bytes of the region > {UNWRITTEN_ABOVE}, which is one block at the end of a file \
         of a few mebibytes. The kernel answers such reads with zeros without asking the disk, even with \
         O_DIRECT. Block devices have no extents; A05 checks their data."
    ),
    provoke: "`truncate -s 1g FILE` or `fallocate -l 1g FILE`, then `fathom run --rw randread FILE`.",
    fix: "Name the directory and let fathom make its own test file, or write the file once: `fathom run --rw \
          write --bs 1m --destroy FILE FILE`.",
    accept: "Accept it only to measure how fast the kernel answers reads of holes: no disk is involved.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| crate::fixture::Fixture { hole_share: 1.0, ..crate::fixture::Fixture::honest() }.record()),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Read) || !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let measured = !case.runs.is_empty();
    let before = never_written_share(&if measured { case.extents()? } else { case.extents_before_runs()? })?;
    let after = never_written_share(&case.extents_at_ends()).unwrap_or(before);
    let (share_unwritten, at_start) = if before > UNWRITTEN_ABOVE { (before, true) } else { (after, false) };
    let numbers = evidence([("never_written_share", share_unwritten)]);
    if share_unwritten <= UNWRITTEN_ABOVE {
        let sentence = if share_unwritten > 0.0 {
            "Almost every byte that was read is stored on the disk."
        } else {
            "Every byte that was read is stored on the disk."
        };
        return holds(sentence, numbers);
    }
    let share = show_share(share_unwritten);
    let sentence = match (measured, at_start) {
        (false, _) => format!(
            "{share} of the region to read was never written: the kernel returns zeros without reading the \
             disk."
        ),
        (true, true) => format!(
            "{share} of the region that was read had never been written: the kernel returned zeros without \
             reading the disk."
        ),
        (true, false) => format!(
            "{share} of the region became a hole while it was read: the kernel returned zeros without \
             reading the disk."
        ),
    };
    Detail::new(Severity::Void, sentence, numbers).found()
}

/// Returns the largest share of never written bytes in any of the extent maps.
fn never_written_share(maps: &[model::evidence::Extents]) -> Known<f64> {
    let mut worst: Option<f64> = None;
    for e in maps {
        if e.span_bytes > 0 {
            let never = e.hole_bytes as f64 + e.unwritten_bytes as f64;
            worst = Some(worst.unwrap_or(0.0).max(share(never, e.span_bytes as f64)));
        }
    }
    worst.ok_or_else(|| "the map of the file's extents is empty".into())
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn encoded_extents_are_not_holes_and_writes_are_not_checked() {
    let encoded = Fixture { encoded_share: 1.0, ..Fixture::honest() };
    assert!(matches!(CHECK.answer(&encoded.record()), Ok(Answer::Holds(..))));
    let write = Fixture { hole_share: 1.0, ..Fixture::honest_write() };
    assert_eq!(CHECK.answer(&write.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn holes_punched_during_the_run_are_found() {
    let record = super::extents(&Fixture::honest(), |moment, e| {
        if moment == model::evidence::Moment::Stop {
            e.hole_bytes = e.span_bytes / 2;
        }
    });
    let Ok(Answer::Finding(f)) = CHECK.answer(&record) else { panic!("silent") };
    assert!(f.sentence.contains("while it was read"), "{}", f.sentence);
}

#[test]
fn block_devices_are_not_checked() {
    let device = Fixture { role: model::plan::Role::Device, no_fiemap: true, ..Fixture::honest() };
    assert_eq!(CHECK.answer(&device.record()), Ok(Answer::DoesNotApply));
}
