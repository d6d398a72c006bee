//! The same tests on several targets: what a plan and a report (format 1) hold about them.

use crate::comparison::Pair;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The jobs of a plan that are the same tests on one target each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetComparison {
    /// In the order in which they were named; the others are compared with the first.
    pub sides: Vec<TargetJobs>,
}

/// The tests of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetJobs {
    /// What tables call it: the end of its path that tells it from the others.
    pub name: String,
    /// Names of the tests and indices of their jobs.
    pub tests: Vec<(String, usize)>,
}

/// Which jobs of a plan are one test on all targets: the first `targets` jobs are the first test, the next ones the second. Jobs after
/// those are tests that a target lacks, each of them a group by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetLayout {
    /// Number of tests that every target has.
    pub tests: u32,
    /// Number of targets.
    pub targets: u32,
}

impl TargetLayout {
    /// The group of a job: its test, or the job itself.
    pub fn group(self, job: usize) -> usize {
        let compared = self.compared_jobs();
        if job < compared { job / self.targets.max(1) as usize } else { self.tests as usize + job - compared }
    }

    /// The jobs of a group.
    pub fn jobs(self, group: usize) -> Range<usize> {
        let (tests, targets) = (self.tests as usize, self.targets as usize);
        if group < tests {
            return group * targets..(group + 1) * targets;
        }
        let job = self.compared_jobs().saturating_add(group - tests);
        job..job + 1
    }

    /// Number of jobs whose test every target has.
    fn compared_jobs(self) -> usize {
        (self.tests as usize).saturating_mul(self.targets as usize)
    }
}

impl TargetComparison {
    /// The layout of the jobs. They must be in its order.
    pub fn layout(&self) -> TargetLayout {
        let on_all = |(name, _): &&(String, usize)| {
            self.sides.iter().all(|side| side.tests.iter().any(|(other, _)| other == name))
        };
        let tests = self.sides.first().map_or(0, |first| first.tests.iter().filter(on_all).count());
        TargetLayout { tests: tests as u32, targets: self.sides.len() as u32 }
    }
}

/// The same tests on several targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Targets {
    /// What the targets are called, in the order in which they were named.
    pub names: Vec<String>,
    /// One per test and target: test by test, in each the first target first.
    pub rows: Vec<TargetRow>,
}

/// One test on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetRow {
    /// `RND4K Q1T1 read`.
    pub test: String,
    /// Index of its target.
    pub target: usize,
    /// Index of its result.
    pub result: usize,
    /// The first target (A) and this one (B); `None` for the first, and where the first does not have the test.
    pub against: Option<Pair>,
}

#[test]
fn a_job_is_in_the_group_that_has_it() {
    let layout = TargetLayout { tests: 2, targets: 3 };
    let groups: Vec<usize> = (0..8).map(|job| layout.group(job)).collect();
    assert_eq!(groups, [0, 0, 0, 1, 1, 1, 2, 3]);
    for (job, group) in groups.into_iter().enumerate() {
        assert!(layout.jobs(group).contains(&job), "{job} in {group}");
    }
    let test = |name: &str, job| (name.to_owned(), job);
    let side = |tests| TargetJobs { name: String::new(), tests };
    let sides =
        vec![side(vec![test("a", 0), test("b", 2), test("c", 4)]), side(vec![test("a", 1), test("b", 3)])];
    assert_eq!(TargetComparison { sides }.layout(), TargetLayout { tests: 2, targets: 2 });
    assert_eq!(TargetComparison::default().layout(), TargetLayout { tests: 0, targets: 0 });
}
