//! Attempts: which measurement of a run counts, where others disturbed it and it was measured again. Measuring and judging share this
//! rule.

use crate::targets::TargetLayout;
use std::collections::BTreeMap;

/// One measurement of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the job.
    pub job: usize,
    /// How many times the job was measured before.
    pub repeat: u32,
    /// How many times this very run was measured before.
    pub attempt: u32,
    /// Operations per second that were offered, where the strategy chose them.
    pub offered_iops: Option<u64>,
    /// Whether others disturbed it.
    pub disturbed: bool,
    /// Whether it ended in order.
    pub complete: bool,
}

/// What is measured again as one: a run, or a round where its runs are compared with one another.
pub type Unit = (Option<usize>, u32, Option<u64>);

/// Which runs make up a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each run by itself.
    Runs,
    /// All runs of a round.
    Rounds,
    /// The runs of a round that are one test on all targets.
    Tests(TargetLayout),
}

impl Attempt {
    /// What it belongs to.
    pub fn unit(&self, pairing: Pairing) -> Unit {
        match pairing {
            Pairing::Runs => (Some(self.job), self.repeat, self.offered_iops),
            Pairing::Rounds => (None, self.repeat, None),
            Pairing::Tests(layout) => (Some(layout.group(self.job)), self.repeat, None),
        }
    }

    /// Whether it is the same attempt at the same run: another phase of it.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.unit(Pairing::Runs), self.attempt) == (other.unit(Pairing::Runs), other.attempt)
    }
}

/// For each of these attempts whether it counts. Of a unit that is the last attempt that nobody disturbed and that has all the
/// runs of the first; where there is none, the first.
pub fn counting(tried: &[Attempt], pairing: Pairing) -> Vec<bool> {
    if tried.iter().all(|a| a.attempt == 0) {
        return vec![true; tried.len()];
    }
    let mut units: BTreeMap<Unit, BTreeMap<u32, Sum>> = BTreeMap::new();
    for one in tried {
        let sum = units.entry(one.unit(pairing)).or_default().entry(one.attempt).or_default();
        sum.disturbed |= one.disturbed;
        sum.complete += usize::from(one.complete);
    }
    let chosen: BTreeMap<Unit, u32> =
        units.into_iter().map(|(unit, sums)| (unit, that_counts(&sums))).collect();
    tried.iter().map(|a| chosen.get(&a.unit(pairing)) == Some(&a.attempt)).collect()
}

/// What an attempt at a unit came to.
#[derive(Default)]
struct Sum {
    disturbed: bool,
    /// Runs that ended in order.
    complete: usize,
}

/// The attempt that counts of a unit.
fn that_counts(sums: &BTreeMap<u32, Sum>) -> u32 {
    let Some((first, whole)) = sums.first_key_value() else { return 0 };
    let stands = |sum: &Sum| !sum.disturbed && sum.complete >= whole.complete.max(1);
    sums.iter().rev().find(|(_, sum)| stands(sum)).map_or(*first, |(attempt, _)| *attempt)
}

#[cfg(test)]
fn tried(job: usize, repeat: u32, attempt: u32, disturbed: bool) -> Attempt {
    Attempt { job, repeat, attempt, offered_iops: None, disturbed, complete: true }
}

#[test]
fn the_last_attempt_counts_and_the_first_where_all_were_disturbed() {
    let of = |marks: &[bool]| {
        let all: Vec<Attempt> = marks.iter().zip(0..).map(|(d, attempt)| tried(0, 2, attempt, *d)).collect();
        counting(&all, Pairing::Runs).iter().position(|c| *c)
    };
    assert_eq!(of(&[false]), Some(0));
    assert_eq!(of(&[true]), Some(0));
    assert_eq!(of(&[true, false]), Some(1));
    assert_eq!(of(&[true, true, false]), Some(2));
    assert_eq!(of(&[true, true, true]), Some(0));
    // One that was cut off stands for nothing.
    let cut = Attempt { complete: false, ..tried(0, 0, 1, false) };
    assert_eq!(counting(&[tried(0, 0, 0, true), cut], Pairing::Runs), [true, false]);
}

#[test]
fn other_runs_and_other_loads_are_units_of_their_own() {
    let load =
        |iops, attempt, disturbed| Attempt { offered_iops: Some(iops), ..tried(1, 0, attempt, disturbed) };
    let all =
        [tried(0, 0, 0, true), tried(0, 1, 0, false), load(9, 0, true), load(9, 1, false), load(7, 0, false)];
    assert_eq!(counting(&all, Pairing::Runs), [true, true, false, true, true]);
}

#[test]
fn a_round_counts_as_a_whole_where_its_runs_are_compared() {
    let first = [tried(0, 0, 0, false), tried(1, 0, 0, true)];
    let half = [first.as_slice(), &[tried(1, 0, 1, false)]].concat();
    assert_eq!(counting(&half, Pairing::Rounds), [true, true, false], "half of a round stands for nothing");
    let whole = [half.as_slice(), &[tried(0, 0, 1, false)]].concat();
    assert_eq!(counting(&whole, Pairing::Rounds), [false, false, true, true]);
    let again = [first.as_slice(), &[tried(1, 0, 1, false), tried(0, 0, 1, true)]].concat();
    assert_eq!(counting(&again, Pairing::Rounds), [true, true, false, false]);
}

#[test]
fn a_test_on_all_targets_counts_as_a_whole_and_other_tests_do_not_matter() {
    let layout = TargetLayout { tests: 2, targets: 2 };
    let first = [tried(0, 0, 0, true), tried(1, 0, 0, false), tried(2, 0, 0, false), tried(3, 0, 0, false)];
    let half = [first.as_slice(), &[tried(1, 0, 1, false)]].concat();
    assert_eq!(counting(&half, Pairing::Tests(layout)), [true, true, true, true, false]);
    let whole = [half.as_slice(), &[tried(0, 0, 1, false)]].concat();
    assert_eq!(counting(&whole, Pairing::Tests(layout)), [false, false, true, true, true, true]);
}
