//! Results while the measurement continues: the row of the last run and the findings that are certain.
//!
//! They are computed between two runs, and not at all with `--quiet`. The report is judged later from the record.

use super::Measurement;
use crate::live::Named;
use analysis::strategy::Budget;
use analysis::{strategy, under_way};
use model::job::Kind;
use model::plan::Strategy;
use model::record::StreamEnd;
use model::record::attempts::Attempt;
use model::study::Study;
use model::units::show_count;

impl Measurement {
    /// Shows the result of the run that ended last. Without a view, only jobs whose number of runs is known are shown: after the last run.
    pub(super) fn show_row(&self, at: &Attempt) {
        let is_search = matches!(self.plan.study, Study::Sweep(_));
        if !self.live.shows_results() || is_search && !self.live.is_viewed() {
            return;
        }
        let row = under_way::job_row(&self.done, &Budget::from_plan(&self.plan), (at.job, at.offered_iops));
        let load = at.offered_iops.map_or(String::new(), |iops| format!(" at {}/s", show_count(iops as f64)));
        let name = format!("{}{load}", self.plan.jobs[at.job].name);
        let ends = self.last.runs.iter().filter_map(|r| r.end.as_ref());
        let op_bytes = op_bytes(ends.flat_map(|end| &end.streams));
        // What others disturbed may count nowhere in the end, where it may be measured again.
        let stands = |disturbed: bool| !disturbed || self.plan.attempts == 1;
        let stands = self.done.last().is_some_and(|s| stands(s.disturbed.is_some()) && !s.refused);
        let findings = if stands { under_way::of_run(&self.last) } else { Vec::new() };
        self.live.row(Named { name, row, op_bytes }, findings, self.is_last(at));
    }

    /// Whether the last run of a job has ended. Each load of a load curve is measured once.
    fn is_last(&self, at: &Attempt) -> bool {
        let mut budget = Budget::from_plan(&self.plan);
        // Runs that conditions may ask for later are not known yet.
        if matches!(budget.strategy, Strategy::Settle { .. }) {
            budget.strategy = Strategy::Fixed;
        }
        at.offered_iops.is_some() || strategy::left(&self.done, &budget).runs.get(at.job) == Some(&0)
    }
}

/// Mean bytes of an operation; `None` where none moved any.
fn op_bytes<'s>(streams: impl Iterator<Item = &'s StreamEnd>) -> Option<f64> {
    let (mut ops, mut bytes) = (0.0, 0.0);
    for (_, end) in streams.flat_map(|s| &s.kinds).filter(|(kind, _)| **kind != Kind::Sync) {
        ops += end.latency.count() as f64;
        bytes += end.bytes as f64;
    }
    (bytes > 0.0 && ops > 0.0).then(|| bytes / ops)
}

#[test]
fn operations_without_bytes_have_no_mean() {
    use model::record::KindEnd;
    let end = |bytes| {
        let mut end = KindEnd { bytes, ..KindEnd::default() };
        (0..4).for_each(|_| end.latency.record(1));
        StreamEnd { kinds: [(Kind::Read, end)].into(), ..StreamEnd::default() }
    };
    assert_eq!(op_bytes([end(16_384)].iter()), Some(4_096.0));
    assert_eq!((op_bytes([end(0)].iter()), op_bytes([].iter())), (None, None));
}
