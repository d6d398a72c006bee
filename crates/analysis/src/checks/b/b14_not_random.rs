//! B14: random offsets that the kernel merged with their neighbours, or that repeat the previous session's seed.
//! Compares the merges at the device with those that chance makes in the span.

use crate::checks::b::{
    FLOOR_IOS, Requests, incidental_requests, is_comparable, shared_bounds, worst_requests,
};
use crate::checks::prelude::*;

/// Share of merged operations beyond chance that is accepted as random.
const BIASED_ABOVE: f64 = 0.02;

pub(super) const CHECK: Check = Check {
    id: CheckId::B14,
    name: "NOT_RANDOM",
    belief: "random offsets reached the device as random I/O",
    reads: "Merges and requests in the `stat` file of the top device from the start of a run to its last \
            completion, and span, sizes and depth of the plan. Orders `uniform` and `once` with direct I/O. \
            If you gave a seed: seed, file and accesses of the newest stored session of that path.",
    formula: formula!(
        "Merges / (merges + requests) less the share from chance: the odds that an operation meets a \
         neighbour among the others in flight are 2 x depth / blocks of the span. Biased above \
         {BIASED_ABOVE}. {FLOOR_IOS} merges per run are allowed for a journal. Does not apply if \
         B01 relabelled the size, or to zones visited one at a time. Also biased if the previous session \
         drew the same offsets: the same seed, file, span, sizes and order. That does not apply to the fixed \
         seed of another tool if the page cache was bypassed or emptied, since such tools repeat the seed in \
         each call."
    ),
    provoke: "`fathom run --rw randread --seed 7 FILE`, twice. Merges: uniform offsets of fathom cause none, \
              so only a layer that sorts and merges writes makes it fire. `--random mixed:50` looks similar, \
              but is not checked.",
    fix: "Omit --seed, so that every session draws other offsets. Or measure a larger --size, or without the \
          layer that sorts and merges.",
    accept: "Accept it if you want to measure the same offsets again, or that layer.",
    ask: Ask::After(&[CheckId::B01], evaluate),
    #[cfg(test)]
    fires: Some(|| super::merge_some(crate::fixture::Fixture::honest().record(), 0.05)),
    #[cfg(test)]
    blind: || crate::fixture::Fixture { stat_unreadable: true, ..crate::fixture::Fixture::honest() }.record(),
};

fn evaluate(case: &Case, earlier: &Earlier) -> Known<Answer> {
    if let Some(repeated) = repeats_session_seed(case) {
        return repeated.map(Answer::Finding);
    }
    let lines = &case.stream.access.lines;
    let is_uniform = lines
        .iter()
        .all(|l| matches!(l.order, Order::Random | Order::Once) && l.reply_bytes == 0 && !l.is_in_rows());
    // In a single zone or turn, neighbours meet more often than in the whole span.
    let is_divided = case.stream.access.strided.is_some() || !case.stream.turns.is_empty();
    if !is_uniform || is_divided || !is_comparable(case) || earlier.relabels(CheckId::B01) {
        return Ok(Answer::DoesNotApply);
    }
    if let Some(bound) = shared_bounds(case)? {
        let incidental = incidental_requests(case);
        if bound.merged_share > BIASED_ABOVE + merged_by_chance(case) && bound.merges > incidental {
            return Err(case.why_shared()?);
        }
        let numbers = evidence([("merged_share_at_most", bound.merged_share)]);
        return holds("Random offsets reached the device as random I/O.", numbers);
    }
    let merged = |r: &Requests| share(r.device.merges as f64, r.device.merges as f64 + r.device.ios as f64);
    let worst = worst_requests(case, merged)?;
    let (part, chance) = (merged(&worst), merged_by_chance(case));
    let numbers = evidence([
        ("merged_share", part),
        ("merged_by_chance", chance),
        ("merges", worst.device.merges as f64),
    ]);
    let incidental = incidental_requests(case);
    if part <= BIASED_ABOVE + chance || worst.device.merges <= incidental {
        return holds("Random offsets reached the device as random I/O.", numbers);
    }
    finding!(
        Severity::Biased,
        numbers,
        "{} of the random {}s were merged with a neighbour ({} merges), but chance merges only {}: they did \
         not reach the device as random I/O.",
        show_share(part),
        worst.kind.word(),
        show_count(worst.device.merges as f64),
        show_share(chance)
    )
}

/// Returns a finding if the previous session drew its random offsets from the same seed.
fn repeats_session_seed(case: &Case) -> Option<Known<Detail>> {
    let plan = &case.record.header.plan;
    let is_drawn = case.stream.access.lines.iter().any(|l| !matches!(l.order, Order::Sequential(_)));
    let is_drawn = is_drawn && case.stream.replay.is_none();
    let session = plan.seed_again.as_ref().filter(|_| is_drawn && case.has_storage())?;
    Some(session.clone().map(|session| {
        detail!(
            Severity::Biased,
            evidence([]),
            "Seed {} also drew the offsets of session {session}: a cache that still held those blocks \
             answered instead of the device.",
            plan.seed
        )
    }))
}

/// Returns the odds that another operation in flight is next to an operation. The page cache and the scheduler
/// see no more operations than those in flight.
fn merged_by_chance(case: &Case) -> f64 {
    let targets = &case.record.header.plan.targets;
    let bytes =
        case.stream.targets.iter().filter_map(|t| targets.get(*t)).map(|t| t.bytes).min().unwrap_or(0);
    let span = bytes.min(case.stream.access.span_bytes);
    let blocks = span as f64 / f64::from(case.stream.access.largest_bytes().max(1));
    // An unknown span, or one smaller than a block, makes every merge possible.
    if blocks < 1.0 { 1.0 } else { (2.0 * asked_depth(&case.stream) / blocks).min(1.0) }
}

#[cfg(test)]
use crate::checks::b::merge_some;
#[cfg(test)]
use crate::fixture::Fixture;

#[test]
fn merged_random_operations_bias_unless_b01_relabels() {
    let at = |part| CHECK.severity(&merge_some(Fixture::honest().record(), part));
    assert_eq!(at(0.05), Some(Severity::Biased));
    assert_eq!(at(0.01), None);
    assert_eq!(CHECK.answer(&merge_some(Fixture::honest().record(), 0.5)), Ok(Answer::DoesNotApply));
}

#[test]
fn merges_by_chance_and_local_orders_are_accepted() {
    let mut small = merge_some(Fixture::honest().record(), 0.2);
    small.header.plan.jobs[0].phases[0].streams[0].access.span_bytes = 1 << 20;
    assert_eq!(CHECK.severity(&small), None);
    let mut normal = merge_some(Fixture::honest().record(), 0.2);
    normal.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order = Order::Normal(1.0);
    assert_eq!(CHECK.answer(&normal), Ok(Answer::DoesNotApply));
}

#[test]
fn a_few_merges_are_accepted() {
    let few_merges = merge_some(Fixture { ops: 300, ..Fixture::honest_write() }.record(), 0.1);
    assert_eq!(CHECK.severity(&few_merges), None);
}

#[test]
fn the_seed_of_the_previous_session_biases_random_orders() {
    let with_previous = |previous: Result<&str, &str>| {
        let mut record = Fixture::honest().record();
        record.header.plan.seed_again = Some(previous.map(Into::into).map_err(Into::into));
        record
    };
    assert_eq!(CHECK.severity(&with_previous(Ok("20261121-1"))), Some(Severity::Biased));
    assert!(CHECK.answer(&with_previous(Err("it is of a later fathom"))).is_err());
    let mut in_order = with_previous(Ok("20261121-1"));
    in_order.header.plan.jobs[0].phases[0].streams[0].access.lines[0].order =
        Order::Sequential(model::job::Steps::default());
    assert_eq!(CHECK.severity(&in_order), None);
}
