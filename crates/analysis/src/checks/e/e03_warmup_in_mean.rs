//! E03: a warm-up that differs from the rest of the run and counts in the mean. Cuts off the warm-up of each run
//! (MSER-5) and fires if most runs have one and the means with and without it differ significantly.

use crate::checks::prelude::*;
use crate::figures::steadiness::cliff;
use crate::figures::time_series::courses;
use stats::series::{MATTERS_FROM, SURELY, warm_ups};

pub(super) const CHECK: Check = Check {
    id: CheckId::E03,
    name: "WARMUP_IN_MEAN",
    belief: "the beginning of a run was like the rest",
    reads: "fathom's own intervals (up to 32 a second). No kernel file.",
    formula: formula!(
        "MSER-5 (White 1997) cuts off the part of the beginning of each run, at most half, that makes the \
         mean of the rest most certain. Fires if most runs have such a beginning, and the means with and \
         without it differ by more than {minute} in runs of a minute ({ten} from ten seconds on, {shorter} \
         below) and by more than {SURELY} standard errors. The number stays unchanged; the finding gives the \
         number without the beginning.",
        minute = Share(MATTERS_FROM.minute),
        ten = Share(MATTERS_FROM.ten_seconds),
        shorter = Share(MATTERS_FROM.shorter)
    ),
    provoke: "`fathom run --rw randread --cache buffered --warmup 0s --time 20s --runs 3 FILE` on a file \
              slightly larger than memory.",
    fix: "Use a --warmup as long as the beginning.",
    accept: "Accept it if you want to measure the beginning, such as an empty cache.",
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| {
        super::shaped(&crate::fixture::Fixture::honest(), 100, 1, |_, t| 10_000.0 * (1.0 + (-t / 0.07).exp()))
    }),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn evaluate(case: &Case) -> Known<Answer> {
    if case.stream.load_changes() {
        return Ok(Answer::DoesNotApply);
    }
    let courses = courses(case)?;
    if cliff(&courses).is_some() {
        return Ok(Answer::DoesNotApply);
    }
    let warm_up =
        warm_ups(&courses).ok_or("no run has a steady part to compare its beginning with; measure longer")?;
    let (with_warm_up, without_warm_up, seconds) = (warm_up.whole, warm_up.rest, warm_up.seconds);
    let moved = with_warm_up / without_warm_up - 1.0;
    let numbers = evidence([
        ("with_iops", with_warm_up),
        ("without_iops", without_warm_up),
        ("warmup_s", seconds),
        ("moved_share", moved),
    ]);
    if !warm_up.matters {
        return holds("The beginning of the runs was like the rest.", numbers);
    }
    detail!(
        Severity::Note,
        numbers,
        "The first {} differ from the rest and are part of the mean: {} IOPS with them and {} \
         without ({} {}).",
        show_seconds(seconds),
        show_rate(with_warm_up),
        show_rate(without_warm_up),
        show_share(moved.abs()),
        if moved > 0.0 { "less" } else { "more" }
    )
    .with_cure(format!("Use --warmup {:.0}s or more.", seconds.max(1.0).ceil()))
    .found()
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use stats::series::flat;

#[test]
fn a_warm_up_is_a_note_with_both_means_and_noise_is_silent() {
    let Ok(Answer::Finding(f)) = CHECK.answer(&(CHECK.fires.unwrap())()) else { panic!("silent") };
    assert_eq!(f.severity, Severity::Note);
    assert!((f.evidence["without_iops"] / 10_000.0 - 1.0).abs() < 0.02, "{:?}", f.evidence);
    let weak = super::shaped(&Fixture::honest(), 100, 1, |_, t| 10_000.0 * (1.0 + 0.3 * (-t / 0.07).exp()));
    assert_eq!(CHECK.severity(&weak), None);
    let alarms = (0..100).filter(|seed| {
        let noisy = super::shaped(&Fixture { runs: 1, ops: 100, ..Fixture::honest() }, 25, 1, |_, t| {
            4_000.0 * flat(25, 0.2, 0.3, *seed)[(t * 25.0) as usize]
        });
        CHECK.severity(&noisy).is_some()
    });
    assert!(alarms.count() <= 5);
}
