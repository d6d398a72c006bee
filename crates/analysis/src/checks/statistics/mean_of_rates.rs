//! E17: a rate that is not operations divided by time. This checks fathom itself: the operations of the intervals
//! must add up to the totals of the run.
use crate::checks::prelude::*;
use crate::figures::RATED_KINDS;
use crate::figures::time_series::{intervals_of, sum_moved};

/// Share by which intervals and totals may differ. fathom counts every operation in both; the tolerance is for session
/// files of other versions.
const SAME: Share = Share(0.001);

pub(super) const MEAN_OF_RATES: Check = Check {
    id: CheckId::E17,
    name: "MEAN_OF_RATES",
    belief: "the rate is operations / time",
    reads: "fathom's count of operations in each interval of a run and in the whole run.",
    formula: formula!(
        "The rate of a run is its operations divided by the length of its window, never a mean of the rates \
         of seconds or workers. As a guard, the operations of the intervals are added up and compared with \
         the totals: a difference of more than {SAME} invalidates the result. Not checked if intervals were \
         left out to keep the session file small."
    ),
    provoke: "No command: a finding would be a bug in fathom. A session file with twice the operations in \
              its first interval shows it.",
    fix: "Report it with the session file: unless the file was changed, this is a bug in fathom.",
    accept: "",
    applies: |_| true,
    ask: Ask::Alone(check_mean_of_rates),
    #[cfg(test)]
    fires: Some(|| with_tenths(12)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn check_mean_of_rates(case: &Case) -> Known<Answer> {
    case.need_run()?;
    let (mut in_intervals, mut in_totals) = (0_u64, 0_u64);
    for ran in case.runs.iter() {
        require_all_intervals(ran)?;
        in_intervals =
            intervals_of(ran).fold(in_intervals, |sum, row| sum.saturating_add(sum_moved(row).ops));
        in_totals = RATED_KINDS.iter().fold(in_totals, |sum, k| sum.saturating_add(ran.in_window(*k).ops));
    }
    let numbers = evidence([("course_ops", in_intervals as f64), ("total_ops", in_totals as f64)]);
    if in_intervals.abs_diff(in_totals) as f64 <= SAME.0 * in_totals as f64 {
        return holds("The rate is operations / time, and the intervals add up to the totals.", numbers);
    }
    finding!(
        Severity::Invalidates,
        numbers,
        "The intervals of the runs contain {}, but the runs have {}: one count is wrong, so the \
         rate may be wrong too.",
        show_counted(in_intervals, "operation"),
        show_count(in_totals as f64)
    )
}

/// Fails if intervals are missing: a session file that reaches its size limit leaves some out.
fn require_all_intervals(ran: &CaseRun) -> Known<()> {
    let covered_ns: u64 = intervals_of(ran).map(|r| r.end_ns - r.start_ns).fold(0, u64::saturating_add);
    // Intervals of several workers overlap a little, so together they are never shorter than the window.
    let is_complete = covered_ns as f64 >= (1.0 - SAME.0) * ran.stream.window_ns as f64;
    if is_complete && covered_ns > 0 {
        Ok(())
    } else {
        Err("the record does not contain all intervals of the runs".into())
    }
}

/// A record whose intervals contain only `tenths` tenths of the operations.
#[cfg(test)]
fn with_tenths(tenths: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        row.cells.values_mut().for_each(|c| c.ops = c.ops * tenths / 10);
    }
    record
}

#[test]
fn missing_intervals_are_not_checked_and_different_sums_are_void() {
    assert!(matches!(MEAN_OF_RATES.answer(&with_tenths(10)), Ok(Answer::Holds(..))));
    assert!(matches!(MEAN_OF_RATES.answer(&with_tenths(9)), Ok(Answer::Finding(_))));
    let mut gap = with_tenths(10);
    gap.runs[2].intervals.remove(4);
    assert!(MEAN_OF_RATES.answer(&gap).is_err_and(|why| why.contains("all intervals")));
}
