//! Shares of operations by how many were in flight, were submitted at once and completed at once.
//!
//! `fathom fio` has its workers count them. Other commands only integrate the depth over time, so their tables are known only
//! if they can have a single value.

use super::job::{Job, Member};
pub(super) use model::depth_counts::COLUMNS;
use model::depth_counts::DepthCounts;
use model::job::Stream;

/// Least share of a column that is not empty, as in fio.
const MIN_DEPTH_SHARE: f64 = 0.1;
/// Names of those of the depth.
pub(super) const DEPTH_LEVELS: [&str; COLUMNS] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Names of those of calls.
pub(super) const CALL_LEVELS: [&str; COLUMNS] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Operations of a call that stand in the column `4`.
const SMALLEST_CALL: u64 = 4;

/// The three tables in percent, each where it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Depths {
    /// Operations in flight when another was submitted, by [`LEVELS`].
    pub(super) level: Option<[f64; COLUMNS]>,
    /// Operations that a call submitted, by [`AT_ONCE`].
    pub(super) submit: Option<[f64; COLUMNS]>,
    /// Operations that were seen as completed at once, by [`AT_ONCE`].
    pub(super) complete: Option<[f64; COLUMNS]>,
}

impl Depths {
    /// The tables of a job: from the counts of all its workers, otherwise weighted by the operations of each result.
    pub(super) fn from_job(job: &Job) -> Self {
        if let Some(counts) = job.costs().depth_counts.filter(|counts| *counts != DepthCounts::NONE) {
            return Self::from_counts(&counts);
        }
        let mut ops = 0.0;
        let mut sum: Option<Self> = None;
        for member in &job.members {
            let kinds = member.seen.kinds.values();
            let own = kinds.fold(0, |sum: u64, k| sum.saturating_add(k.latency.count)) as f64;
            let one = Self::of_member(member);
            sum = Some(sum.map_or(one, |sum| sum.and(&one, own / (ops + own).max(1.0))));
            ops += own;
        }
        sum.unwrap_or_default()
    }

    /// Together with others, which have this share.
    fn and(&self, others: &Self, share: f64) -> Self {
        let both = |a: Option<[f64; COLUMNS]>, b: Option<[f64; COLUMNS]>| {
            a.zip(b).map(|(a, b)| std::array::from_fn(|at| (1.0 - share) * a[at] + share * b[at]))
        };
        Self {
            level: both(self.level, others.level),
            submit: both(self.submit, others.submit),
            complete: both(self.complete, others.complete),
        }
    }

    fn of_member(member: &Member) -> Self {
        let counts = member.seen.workers.depth_counts.filter(|counts| *counts != DepthCounts::NONE);
        counts.map_or_else(|| Self::of_stream(member.stream), |counts| Self::from_counts(&counts))
    }

    fn from_counts(counts: &DepthCounts) -> Self {
        let shares = |counts: &[u64; COLUMNS]| {
            let all: u64 = counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
            let share = |count: u64| match count {
                0 => 0.0,
                count => (100.0 * count as f64 / all as f64).max(MIN_DEPTH_SHARE),
            };
            Some(counts.map(share))
        };
        Self {
            level: shares(&counts.level),
            submit: shares(&counts.submit),
            complete: shares(&counts.complete),
        }
    }

    /// Those of a stream of which anything completed.
    fn of_stream(stream: &Stream) -> Self {
        let per_worker = u64::from(stream.depth).saturating_mul(stream.lanes());
        let all_in = |column: usize, known: bool| {
            known.then(|| std::array::from_fn(|at| if at == column { 100.0 } else { 0.0 }))
        };
        Self {
            level: all_in(0, per_worker == 1),
            submit: all_in(1, u64::from(stream.batch.submit).min(per_worker) <= SMALLEST_CALL),
            complete: all_in(1, per_worker <= SMALLEST_CALL),
        }
    }
}

#[test]
fn what_can_have_one_value_alone_is_known() {
    use model::job::{Access, Pattern};
    let stream = |depth| Stream::plain(Access::plain(Pattern::Random, 4096, 100), depth, 3, "io_uring");
    let known = |s: &Stream| {
        let d = Depths::of_stream(s);
        [d.level, d.submit, d.complete].map(|table| table.map(|t| t.iter().position(|share| *share > 0.0)))
    };
    assert_eq!(known(&stream(1)), [Some(Some(0)), Some(Some(1)), Some(Some(1))]);
    assert_eq!(known(&stream(32)), [None, Some(Some(1)), None]);
    let mut batches = stream(32);
    batches.batch.submit = 8;
    assert_eq!(known(&batches), [None; 3]);
    batches.targets = vec![0, 1];
    batches.depth = 1;
    assert_eq!(known(&batches), [None, Some(Some(1)), Some(Some(1))]);
}

#[test]
fn of_several_results_a_table_is_known_where_it_is_of_all() {
    let table = |column: usize| Some(std::array::from_fn(|at| if at == column { 100.0 } else { 0.0 }));
    let one = Depths { level: table(0), submit: table(1), complete: None };
    let both = one.and(&Depths { level: table(2), ..one }, 0.25);
    assert_eq!(both.level, Some([75.0, 0.0, 25.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!((both.submit, both.complete), (table(1), None));
}

#[test]
fn shares_of_counts_add_up_to_all_and_rare_ones_are_seen() {
    let mut counts = DepthCounts::default();
    (0..9999).for_each(|_| counts.submitted(1, 32));
    counts.submitted(1, 1);
    counts.completed(6);
    let Depths { level, submit, complete } = Depths::from_counts(&counts);
    assert_eq!(level, Some([MIN_DEPTH_SHARE, 0.0, 0.0, 0.0, 0.0, 99.99, 0.0]));
    assert_eq!(submit.map(|shares| shares[1]), Some(100.0));
    assert_eq!(complete.map(|shares| shares[2]), Some(100.0));
}
