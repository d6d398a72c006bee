//! A condition of a load curve: whether the highest rate that meets the latency target is high enough.
//!
//! For: `limit --p99 5ms --fail-if 'iops<8000'`. Not for: which loads meet the target (the study of that name), nor a capacity
//! without one, which is a rate as that of any result.

use super::{Word, under_its_name, unit};
use model::finding::Finding;
use model::report::{AnswerWord, Measured};
use model::study::{LoadCurve, MetLoad};
use model::units::show_ns;
use model::verdict::{Condition, Gate, Limit};

/// The lowest load that surely misses the target is beyond the answer, the highest that surely meets it is not.
pub(super) fn gate(
    condition: &Condition,
    (curve, target): (&LoadCurve, &MetLoad),
    results: &[Measured],
    acting: &[Finding],
) -> Gate {
    let limit = &condition.limit;
    let at = |iops: Option<u64>| {
        let point = curve.points.iter().find(|p| Some(p.offered_iops) == iops)?;
        let result = results.get(point.result)?;
        Some((rate(limit, point.offered_iops, result)?, result))
    };
    let [met, missed] = [target.met_iops, target.missed_iops].map(at);
    let word = decide(limit, target, met.map(|m| m.0), missed.map(|m| m.0));
    let name = met.or(missed).map_or("", |(_, result)| result.name.as_str());
    let (word, sentence) = under_its_name(name, acting, word);
    Gate {
        condition: condition.to_flag(),
        result: name.to_owned(),
        number: limit.number(),
        unit: unit(limit).into(),
        limit: limit.value(),
        value: met.map(|m| m.0),
        bounds: met.zip(missed).map(|(met, missed)| [met.0, missed.0]),
        runs: met.or(missed).map_or(0, |(_, result)| result.runs.len() as u32),
        runs_needed: None,
        word,
        sentence,
    }
}

/// A load in the unit of the limit; bytes are those that its operations had.
fn rate(limit: &Limit, offered: u64, result: &Measured) -> Option<f64> {
    let total = result.total.as_ref()?;
    match limit {
        Limit::MbPerS { .. } => (total.iops > 0.0).then(|| offered as f64 * total.mb_per_s / total.iops),
        Limit::Iops { .. } | Limit::Latency { .. } | Limit::Time { .. } => Some(offered as f64),
    }
}

fn decide(limit: &Limit, target: &MetLoad, met: Option<f64>, missed: Option<f64>) -> Word {
    let asked = format!("p{} within {}", target.percentile, show_ns(target.latency_ns as f64));
    let (least, show) = (limit.value(), |rate| limit.show(rate));
    match (met, missed) {
        (Some(met), _) if met >= least => (
            AnswerWord::Pass,
            format!("{asked} holds at {} with 95 % confidence; the limit is {}.", show(met), show(least)),
        ),
        (_, Some(missed)) if missed <= least => (
            AnswerWord::Fail,
            format!(
                "{asked} is missed at {} with 95 % confidence; the limit is {}.",
                show(missed),
                show(least)
            ),
        ),
        _ => (
            AnswerWord::Inconclusive,
            format!(
                "Whether {asked} holds at {} cannot be told from the loads that were offered.",
                show(least)
            ),
        ),
    }
}

#[test]
fn a_limit_below_what_is_met_passes_one_from_the_miss_on_fails_and_between_nobody_knows() {
    let target = MetLoad {
        percentile: "99".into(),
        latency_ns: 5_000_000,
        met_iops: Some(8_000),
        missed_iops: Some(9_000),
    };
    let word = |at_least, met, missed| decide(&Limit::Iops { at_least }, &target, met, missed).0;
    let both = |at_least| word(at_least, Some(8_000.0), Some(9_000.0));
    assert_eq!([8_000.0, 9_000.0].map(both), [AnswerWord::Pass, AnswerWord::Fail]);
    assert_eq!([8_001.0, 8_999.0].map(both), [AnswerWord::Inconclusive; 2]);
    assert_eq!(word(8_001.0, Some(8_000.0), None), AnswerWord::Inconclusive, "the highest that was offered");
    assert_eq!(word(1.0, None, Some(9_000.0)), AnswerWord::Inconclusive);
    assert_eq!(word(1.0, None, None), AnswerWord::Inconclusive);
}
