//! When phases begin: `at`, from the beginning of the job.
//!
//! For: phases that say when they begin instead of how long they last. Not for: starting anything.
//!
//! Phases follow one another without a pause, so `at` is where the phase before ends. Where that one does not say its
//! `time`, it lasts until then; where it does, the two have to agree. Nothing runs in a gap, so a gap is refused: a pause is
//! a phase of its own, or a stream's `delay`. In a job with `at` a warm-up that is not said is none, or times would shift.

use super::AT;
use super::level::Level;
use crate::trouble::Mark;
use model::spec::number::{MAX_TIME_NS, MIN_TIME_NS};
use model::units::show_ns;

/// Gives phases the lengths that follow from `at`, or says what does not fit.
pub(super) fn settle(phases: &mut [Level]) -> Vec<Mark> {
    if phases.iter().all(|p| p.at.is_none()) {
        return Vec::new();
    }
    for phase in &mut *phases {
        phase.phase.warmup.get_or_insert(0);
    }
    let mut marks = Vec::new();
    // Where the phase begins, while all before it have said how long they are.
    let mut begin = Some(0_u64);
    for index in 0..phases.len() {
        let next = phases.get(index + 1).and_then(|n| Some((n.at?, n.spans.get(AT)?.clone())));
        let Some(phase) = phases.get_mut(index) else { break };
        if let (0, Some(at)) = (index, phase.at)
            && at != 0
        {
            let span = phase.spans.get(AT).cloned().unwrap_or(phase.head.clone());
            marks.push(Mark::new(span, "the first phase begins with the job; type at = 0, or leave it out"));
        }
        let around = phase.phase.warmup.unwrap_or(0).saturating_add(phase.phase.cooldown.unwrap_or(0));
        let start = begin;
        begin = phase.phase.time.and_then(|time| start?.checked_add(time)?.checked_add(around));
        let Some((at, span)) = next else { continue };
        match (start, begin) {
            (_, Some(end)) if end > at => marks.push(mark_level(
                span,
                phase,
                format!(
                    "phases overlap: the one before ends at {}; type at = \"{}\", or a shorter time before",
                    show_ns(end as f64),
                    typed(end)
                ),
            )),
            (_, Some(end)) if end < at => marks.push(mark_level(
                span,
                phase,
                format!(
                    "nothing would run from {} to {}; type at = \"{}\", or a longer time before",
                    show_ns(end as f64),
                    show_ns(at as f64),
                    typed(end)
                ),
            )),
            (_, Some(_)) => {}
            (Some(start), None) => match at.checked_sub(start).and_then(|whole| whole.checked_sub(around)) {
                Some(time) if (MIN_TIME_NS..=MAX_TIME_NS).contains(&time) => phase.phase.time = Some(time),
                _ => marks.push(mark_level(
                    span,
                    phase,
                    format!(
                        "phases overlap or lie more than a day apart: the one before begins at {}; type a later time, within a day",
                        show_ns(start as f64)
                    ),
                )),
            },
            (None, None) => marks.push(mark_level(
                span,
                phase,
                "nobody knows when the phase before begins; type `time` or `at` for every phase before".into(),
            )),
        }
        begin = Some(at);
    }
    marks
}

fn mark_level(span: std::ops::Range<usize>, before: &Level, message: String) -> Mark {
    let place = before.spans.get("time").or_else(|| before.spans.get(AT)).unwrap_or(&before.head);
    Mark { span, message, beside: vec![(place.clone(), "the phase before")] }
}

/// A moment as somebody would type it.
fn typed(ns: u64) -> String {
    match ns {
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns => format!("{ns}ns"),
    }
}
