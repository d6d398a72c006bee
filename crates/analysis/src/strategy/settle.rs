//! Settle: as many runs more as should tell whether the conditions are kept, where the first ones could not.
//!
//! For: how many, decided once, by how the first runs vary and how near to the limit they are. Not for: the conditions themselves
//! (`gate`, `compare`).
//!
//! Who asks after every run whether a condition is broken gets a yes by luck sooner or later. So it is asked at most twice: of the first
//! runs, and of all of them once there are as many as the first ones asked for (C. Stein, "A Two-Sample Test for a Linear Hypothesis
//! Whose Power is Independent of the Variance", Annals of Mathematical Statistics 16, 1945). Each time may err half as often as a
//! condition that is asked once; what is left of the error the simulations beside the conditions hold.

use model::comparison::{Comparison, Passing};
use model::plan::{Plan, Strategy};
use model::report::{AnswerWord, Report};

/// Runs in all of each workload that should tell what the first ones could not, up to the most that the plan allows; `None` where
/// they told, where runs are not what is missing, or the plan asks no second time.
pub fn runs(report: &Report, plan: &Plan) -> Option<u32> {
    let Strategy::Settle { at_most } = plan.strategy else { return None };
    report.answer.as_ref().filter(|a| a.word == AnswerWord::Inconclusive)?;
    // Where even a thousand would not tell, that is what these runs seem; a few more may show otherwise.
    let near = report.gates.iter().filter(|g| g.is_near()).map(|g| g.runs_needed.unwrap_or(at_most));
    let slower = report.against.as_ref().and_then(|against| of_sides(&against.beside, at_most));
    let needed = near.chain(slower).max()?;
    Some(needed.min(at_most)).filter(|runs| *runs > plan.runs)
}

/// What a gate between two sides asks for; `None` where more runs would not make it a number.
fn of_sides(beside: &Comparison, at_most: u32) -> Option<u32> {
    let gate = beside.gate.as_ref().filter(|g| g.outcome == Passing::Undecided)?;
    let has_number = beside.headline().is_some_and(|pair| pair.refused.is_none() && !pair.metrics.is_empty());
    has_number.then(|| gate.runs_needed.unwrap_or(at_most))
}

/// That a second time was asked, in a sentence; `None` where the first runs told.
pub(super) fn settle_note(plan: &Plan, measured: u32) -> Option<String> {
    let first = plan.runs;
    (measured > first).then(|| {
        format!(
            "settle: {first} runs could not decide, so {measured} were measured in all, as many as the \
             first ones called for; the 95 % confidence covers both rounds"
        )
    })
}

#[cfg(test)]
use crate::fixture::Fixture;
#[cfg(test)]
use crate::{Judging, judge};

/// What the first runs of an honest record ask for, with a condition.
#[cfg(test)]
fn asked(condition: &str, strategy: Strategy, runs_first: u32) -> Option<u32> {
    let mut record = Fixture { runs: runs_first, ..Fixture::honest() }.record();
    let plan = &mut record.header.plan;
    plan.fail_if = model::spec::gate::conditions(condition).unwrap();
    (plan.strategy, plan.runs) = (strategy, runs_first);
    runs(&judge(&record, &Judging::default()), &record.header.plan)
}

#[test]
fn only_what_is_too_near_to_tell_asks_for_more() {
    let settle = Strategy::Settle { at_most: 50 };
    // The runs of the record are all alike, so their very rate is all that is near.
    assert_eq!(asked("iops<10000", settle, 5), None, "at the limit and within it");
    assert_eq!(asked("iops<1", settle, 5), None, "told");
    assert_eq!(asked("iops<1m", settle, 5), None, "told");
    assert_eq!(asked("p99>1h", settle, 5), None, "no runs that follow make these a number");
    assert_eq!(asked("other: iops<1", settle, 5), None);
    assert_eq!(asked("iops<1", Strategy::Fixed, 5), None);
}

#[test]
fn what_is_left_holds_what_may_be_asked_for() {
    let mut plan = Fixture::honest().record().header.plan;
    plan.strategy = Strategy::Settle { at_most: 50 };
    let left = super::left(&[], &super::Budget::from_plan(&plan));
    assert_eq!((left.runs, left.at_most), (vec![50], true));
}

#[test]
fn a_note_says_that_it_was_asked_twice() {
    let plan = Fixture::honest().record().header.plan;
    assert_eq!(settle_note(&plan, plan.runs), None);
    assert!(
        settle_note(&plan, 23)
            .is_some_and(|words| words.contains("5 runs could not decide, so 23 were measured in all"))
    );
}
