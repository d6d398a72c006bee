//! A18: direct reads that are faster than any storage device. Fires if the median read latency is below that of
//! the fastest media and no earlier check (A01, A02) explains it; holes (A04) soften it to biased.

use crate::checks::prelude::*;

/// The fastest media (Optane) answer in 8 us or more, including the kernel path. Flash takes 25 us.
const FLOOR_NS: u64 = 5_000;
/// Share of holes that explains a median below the floor.
const HOLES_EXPLAIN_FROM: Share = Share(0.5);

pub(super) const CHECK: Check = Check {
    id: CheckId::A18,
    name: "FASTER_THAN_PHYSICS",
    belief: "a storage device can be this fast",
    reads: "The latencies of direct reads that fathom measured. No kernel file.",
    formula: formula!(
        "Void if half of the reads took less than {floor} on a target that is not memory and that A01 and \
         A02 did not relabel. Biased if A04 found that at least {HOLES_EXPLAIN_FROM} of the target are \
         holes, which explains it. The fastest media (Optane) answer in 8 us including the kernel; flash \
         takes 25 us or more.",
        floor = Ns(FLOOR_NS as f64)
    ),
    provoke: "`truncate -s 1g FILE` and `fathom run --rw randread --depth 1 --accept A04 FILE`: the kernel \
              answers reads of holes.",
    fix: "Find out what answers from memory: holes (A04), a cache below (A12), a FUSE program. Name the disk \
          itself.",
    accept: "Accept it only if you know a medium that fast.",
    ask: Ask::After(&[CheckId::A01, CheckId::A02, CheckId::A04], evaluate),
    #[cfg(test)]
    fires: Some(|| {
        crate::fixture::Fixture {
            latency_ns: Some(900),
            depth: 1,
            depth_seen: 0.9,
            ..crate::fixture::Fixture::honest()
        }
        .record()
    }),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { ops: 0, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    let applies = case.does(Kind::Read) && case.stream.cache.is_direct() && case.on_device();
    if !applies || earlier.relabels(CheckId::A01) || earlier.finds(CheckId::A02) {
        return Ok(Answer::DoesNotApply);
    }
    let latency = case.latency(Kind::Read).ok_or("no read completed within a window")?;
    let median = latency.quantile_ns(0.5).ok_or("no read completed within a window")?;
    let numbers = evidence([("read_p50_ns", median as f64), ("floor_ns", FLOOR_NS as f64)]);
    if median >= FLOOR_NS {
        return holds("The reads took as long as a storage device needs.", numbers);
    }
    let start_of_sentence = format!("Half of the reads took {} or less", show_ns(median as f64));
    let (severity, sentence) = if holes_explain(earlier) {
        (
            Severity::Biased,
            format!(
                "{start_of_sentence}: the kernel answered them from holes (A04), without a storage device."
            ),
        )
    } else {
        (Severity::Void, format!("{start_of_sentence}: no storage device is that fast."))
    };
    Detail::new(severity, sentence, numbers).found()
}

/// Whether holes (A04) explain the median. The kernel answers reads of holes without a device.
fn holes_explain(earlier: &Earlier) -> bool {
    let Some(Ok(Answer::Finding(holes))) = earlier.answer(CheckId::A04) else { return false };
    holes.evidence.get("never_written_share").is_some_and(|share| *share >= HOLES_EXPLAIN_FROM)
}

#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn relabelled_results_and_memory_are_not_checked() {
    let fast = || Fixture { latency_ns: Some(900), ..Fixture::honest() };
    let cached = Fixture { delivered: 0.0, cached_share: 0.9, ..fast() };
    assert_eq!(CHECK.answer(&cached.record()), Ok(Answer::DoesNotApply));
    let zram = Fixture { ram: Some("zram0"), ..fast() };
    assert_eq!(CHECK.answer(&zram.record()), Ok(Answer::DoesNotApply));
}

#[test]
fn holes_explain_the_median_only_if_half_of_the_reads_hit_them() {
    let holes =
        |share| Fixture { latency_ns: Some(900), delivered: 0.0, hole_share: share, ..Fixture::honest() };
    assert_eq!(CHECK.severity(&holes(1.0).record()), Some(Severity::Biased));
    assert_eq!(CHECK.severity(&holes(0.3).record()), Some(Severity::Void));
}
