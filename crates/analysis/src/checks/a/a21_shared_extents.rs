//! A21: writes that are redirected to new blocks instead of overwriting in place. Fires if the file shares
//! extents with a copy or snapshot before the run, or if its number of extents grows during the run.

use super::a04_holes_read::UNWRITTEN_ABOVE;
use super::a07_encoded_extents::ENCODED_ABOVE;
use crate::checks::prelude::*;

/// Share of shared bytes that is harmless.
const SHARED_ABOVE: Share = Share(0.01);
/// Factor by which the number of extents may grow. An overwrite in place does not change it.
const GROWN_FROM: f64 = 2.0;
/// Additional extents that are harmless.
const FEW: u64 = 16;
pub(super) const CHECK: Check = Check {
    id: CheckId::A21,
    name: "SHARED_EXTENTS",
    belief: "overwriting happens in place",
    reads: "The number of extents of the file and which of them are shared, at the start of each run and \
            after its final sync (FIEMAP).",
    formula: formula!(
        "Shared bytes / bytes of the file > {SHARED_ABOVE} before the run, or at its end at least \
         {GROWN_FROM} times as many extents as before and {FEW} more. An overwrite in place changes neither. \
         The number of extents is ignored if more than {UNWRITTEN_ABOVE} of the file was never written, \
         since filling it splits extents in place (B16), if more than {ENCODED_ABOVE} is stored compressed, \
         since such extents are short (A07), or if the job trims."
    ),
    provoke: "On XFS: `cp --reflink=always FILE COPY` and `fathom run --rw randwrite --destroy FILE FILE`. \
              Or `fathom run --rw randwrite DIR` on btrfs.",
    fix: "Measure a file without copies and snapshots; on btrfs use `chattr +C` on the empty directory.",
    accept: "Accept it if you want to measure copy-on-write.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| stored(1 << 29, 1)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { no_fiemap: true, ..crate::fixture::Fixture::honest_write() }.record(),
};

fn evaluate(case: &Case) -> Known<Answer> {
    if !case.does(Kind::Write) || !case.on_device() || case.on_block_devices() {
        return Ok(Answer::DoesNotApply);
    }
    let trims = case.does(Kind::Trim) || case.issued(Kind::Trim).ops > 0;
    let (mut shared, mut grown) = (0.0_f64, None);
    for (before, after) in case.extents_over_runs()? {
        let span = before.span_bytes as f64;
        shared = shared.max(share(before.shared_bytes as f64, span));
        let unwritten = share(before.hole_bytes as f64 + before.unwritten_bytes as f64, span)
            + share(before.delayed_bytes as f64, span);
        let has_grown = before.count.max(1) as f64 * GROWN_FROM <= after.count as f64
            && after.count.saturating_sub(before.count) >= FEW;
        // Compressed extents are at most 128 KiB long, wherever they are (A07).
        let encoded = share(after.encoded_bytes as f64, span) > ENCODED_ABOVE;
        if has_grown && unwritten <= UNWRITTEN_ABOVE && !encoded && !trims {
            grown = grown.or(Some((before.count, after.count)));
        }
    }
    let mut numbers = evidence([("shared_share", shared)]);
    if let Some((before, after)) = grown {
        numbers.insert("extents_before".into(), before as f64);
        numbers.insert("extents_after".into(), after as f64);
    }
    let counts = grown.map(|(a, b)| {
        format!("its extent count grew from {} to {}", show_count(a as f64), show_count(b as f64))
    });
    let sentence = match (shared > SHARED_ABOVE, counts) {
        (false, None) => return holds("The file was overwritten in place.", numbers),
        (true, counts) => {
            let counts = counts.map(|c| format!(" ({c})")).unwrap_or_default();
            format!(
                "{} of the file is shared with a copy or a snapshot, so writes go to new blocks{counts}.",
                show_share(shared)
            )
        }
        (false, Some(counts)) => format!("The file was not overwritten in place: {counts} during a run."),
    };
    Detail::new(Severity::Biased, sentence, numbers).found()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use model::evidence::Moment;

/// A file with `shared` shared bytes and `after` extents after each run.
#[cfg(test)]
fn stored(shared: u64, after: u64) -> model::record::Record {
    super::extents(&Fixture::honest_write(), move |moment, e| {
        e.shared_bytes = shared;
        if moment == Moment::Synced {
            e.count = after;
        }
    })
}

#[test]
fn more_than_one_percent_shared_biases() {
    assert_eq!(CHECK.severity(&stored(10_000_000, 1)), None);
    let Ok(Answer::Finding(f)) = CHECK.answer(&stored(1 << 30, 958)) else { panic!("silent") };
    assert!(f.sentence.contains("grew from 1 to 958"), "{}", f.sentence);
    let read = super::extents(&Fixture::honest(), |_, e| e.shared_bytes = e.span_bytes);
    assert_eq!(CHECK.answer(&read), Ok(Answer::DoesNotApply));
}

#[test]
fn a_growing_number_of_extents_biases() {
    assert_eq!(CHECK.severity(&stored(0, 16)), None);
    assert_eq!(CHECK.severity(&stored(0, 17)), Some(Severity::Biased));
    let allocating = super::extents(&Fixture::honest_write(), |moment, e| {
        e.unwritten_bytes = e.span_bytes;
        if moment == Moment::Synced {
            e.count = 900;
        }
    });
    assert_eq!(CHECK.severity(&allocating), None, "unwritten extents are split in place");
    let compressed = super::extents(&Fixture::honest_write(), |moment, e| {
        if moment == Moment::Synced {
            (e.count, e.encoded_bytes) = (8_192, e.span_bytes);
        }
    });
    assert_eq!(CHECK.severity(&compressed), None, "compressed extents are short");
}

#[test]
fn a_file_without_a_map_after_the_run_is_not_checked() {
    let mut record = Fixture::honest_write().record();
    record.runs[0].evidence.retain(|s| s.moment != Moment::Synced);
    assert!(CHECK.answer(&record).is_err());
}
