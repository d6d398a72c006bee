//! E17: a number that is not operations by time.
//!
//! For: a guard over fathom itself: the course adds up to the totals that the rate is made of. Not for: anything of the storage.

use crate::case::{Case, CaseRun, no_run};
use crate::checks::{Answer, Ask, Check, Detail, Page, evidence, formula};
use crate::run_series::{moved, rows_of};
use crate::threshold::Share;
use model::Known;
use model::check_id::CheckId;
use model::finding::Severity;
use model::units::show_count;

/// Share by which the course and the totals may differ: nothing is ever counted in one and not in the other, so this only
/// leaves room for a file of another version.
const SAME: Share = Share(0.001);

pub(super) const CHECK: Check = Check {
    id: CheckId::E17,
    name: "MEAN_OF_RATES",
    belief: "the rate is operations by time",
    page: Page {
        reads: "fathom's own intervals and the totals of each run.",
        formula: formula!(
            "The rate of a run is its operations divided by the length of its window, never a mean of the rates of seconds or \
             workers. As a guard the operations of the intervals are added up and compared with the totals; more than {SAME} \
             apart invalidates the result. Intervals that were cut short to keep the session file small are not checked."
        ),
        provoke: "No command does: it would be a fault of fathom. A session file that has twice the operations in its first \
                  interval shows it.",
        fix: "Report it with the session file: this is a fault of fathom.",
        accept: "",
    },
    ask: Ask::Alone(evaluate),
    #[cfg(test)]
    fires: Some(|| counted(12)),
    #[cfg(test)]
    blind: super::without_intervals,
};

fn evaluate(case: &Case) -> Known<Answer> {
    if case.runs.is_empty() {
        return Err(no_run());
    }
    let (mut in_course, mut in_totals) = (0_u64, 0_u64);
    for ran in &case.runs {
        covered(ran)?;
        in_course = rows_of(ran).fold(in_course, |sum, row| sum.saturating_add(moved(row).0));
        in_totals = super::TIMED.iter().fold(in_totals, |sum, k| sum.saturating_add(ran.in_window(*k).ops));
    }
    let numbers = evidence([("course_ops", in_course as f64), ("total_ops", in_totals as f64)]);
    if in_course.abs_diff(in_totals) as f64 <= SAME.0 * in_totals as f64 {
        return Ok(Answer::Holds("The rate is operations by time, and its intervals add up to it.", numbers));
    }
    Ok(Answer::Finding(Detail::new(
        Severity::Void,
        format!(
            "The intervals of the runs have {} operations and their totals {}: the rate is not operations by time.",
            show_count(in_course as f64),
            show_count(in_totals as f64)
        ),
        numbers,
    )))
}

/// Refuses a course with gaps: frames of it are left out where a session file reaches its limit.
fn covered(ran: &CaseRun) -> Known<()> {
    let longest: u64 = rows_of(ran).map(|r| r.end_ns - r.start_ns).fold(0, u64::saturating_add);
    // Rows of several workers overlap a little, so together they are never shorter than the window.
    let whole = longest as f64 >= (1.0 - SAME.0) * ran.stream.window_ns as f64;
    if whole && longest > 0 {
        Ok(())
    } else {
        Err("the intervals of the runs are not complete in the record".into())
    }
}

/// The honest record whose rows hold twelve tenths, or so many, of what they should.
#[cfg(test)]
fn counted(tenths: u64) -> model::record::Record {
    let mut record = crate::fixture::Fixture::honest().record();
    for row in record.runs.iter_mut().flat_map(|r| &mut r.intervals) {
        row.cells.values_mut().for_each(|c| c.0 = c.0 * tenths / 10);
    }
    record
}

#[test]
fn a_course_with_a_gap_is_not_checked_and_one_that_differs_is_a_fault() {
    assert!(matches!(CHECK.answer(&counted(10)), Ok(Answer::Holds(..))));
    assert!(matches!(CHECK.answer(&counted(9)), Ok(Answer::Finding(_))));
    let mut gap = counted(10);
    gap.runs[2].intervals.remove(4);
    assert!(CHECK.answer(&gap).is_err_and(|why| why.contains("not complete")));
}
