//! Operations in flight and per call, in the columns of fio's tables.

use serde::{Deserialize, Serialize};

/// Columns of each table.
pub const COLUMNS: usize = 7;

/// What a worker counted at each submission and each time completions were there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepthCounts {
    /// Operations by the number in flight when they were submitted: 1, 2 to 3, 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and more.
    pub level: [u64; COLUMNS],
    /// Submissions by their number of operations: 0, 1 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, 65 and more.
    pub submit: [u64; COLUMNS],
    /// Completions seen together by their number, in the same columns.
    pub complete: [u64; COLUMNS],
}

impl DepthCounts {
    /// Nothing counted.
    pub const NONE: Self = Self { level: [0; COLUMNS], submit: [0; COLUMNS], complete: [0; COLUMNS] };

    /// Counts a submission of `operations`, after which `in_flight` are in flight.
    pub fn submitted(&mut self, operations: u32, in_flight: u32) {
        self.level[level_column(in_flight)] += u64::from(operations);
        self.submit[call_column(operations)] += 1;
    }

    /// Counts completions that were seen together.
    pub fn completed(&mut self, operations: u32) {
        self.complete[call_column(operations)] += 1;
    }

    /// The sum of two counts.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let add =
            |a: [u64; COLUMNS], b: [u64; COLUMNS]| std::array::from_fn(|at| a[at].saturating_add(b[at]));
        Self {
            level: add(self.level, other.level),
            submit: add(self.submit, other.submit),
            complete: add(self.complete, other.complete),
        }
    }
}

/// The column of a number in flight, whose lower bounds are powers of two.
fn level_column(in_flight: u32) -> usize {
    (in_flight.max(1).ilog2() as usize).min(COLUMNS - 1)
}

/// The column of a number of operations, whose upper bounds are 0 and powers of two from 4 on.
fn call_column(operations: u32) -> usize {
    match operations {
        0 => 0,
        1..=4 => 1,
        more => ((more - 1).ilog2() as usize).min(COLUMNS - 1),
    }
}

#[test]
fn numbers_are_in_the_columns_of_fio() {
    let bounds = [1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 1000];
    assert_eq!(bounds.map(level_column), [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6]);
    let bounds = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 1000];
    assert_eq!(bounds.map(call_column), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
}

#[test]
fn submissions_and_completions_are_counted_and_added() {
    let mut counts = DepthCounts::default();
    counts.submitted(8, 8);
    counts.completed(1);
    counts.submitted(1, 8);
    let twice = counts.plus(&counts);
    assert_eq!((twice.level[3], twice.submit[2], twice.submit[1], twice.complete[1]), (18, 2, 2, 2));
}
