//! Targets: the same tests on several of them, and which is faster.
//!
//! For: each target against the first, test by test, from runs of the same rounds. Not for: how two results are weighed (`compare`),
//! nor for what each of them is worth; that is told by its own verdict.

use crate::compare::{Beside, within};
use model::comparison::{Answer as Word, Metric, Pair};
use model::report::{Answer, AnswerWord, Report};
use model::targets::{TargetComparison, TargetRow, Targets};
use model::units::show_change;

/// The table. `jobs` has the job of each result, and `headline` is the job whose test answers.
pub(super) fn compare(
    report: &Report,
    comparison: &TargetComparison,
    jobs: &[usize],
    headline: usize,
) -> Targets {
    let mut rows: Vec<TargetRow> = Vec::new();
    let (mut pairs, mut of_pair) = (Vec::new(), Vec::new());
    let results = |job: usize| jobs.iter().enumerate().filter(move |(_, j)| **j == job).map(|(at, _)| at);
    for test in tests(comparison) {
        let mut first: Option<Vec<usize>> = None;
        for (target, side) in comparison.sides.iter().enumerate() {
            let job = side.tests.iter().find(|(name, _)| name == test).map(|(_, job)| *job);
            let own: Vec<usize> = job.into_iter().flat_map(results).collect();
            for (part, result) in own.iter().enumerate() {
                let base = first.as_ref().and_then(|first| first.get(part)).filter(|_| target > 0);
                if let Some(base) = base.copied() {
                    let answers = jobs.get(base) == Some(&headline);
                    pairs.push(Beside { a: base, b: *result, name: &side.name, headline: answers });
                    of_pair.push(rows.len());
                }
                rows.push(TargetRow { test: test.into(), target, result: *result, against: None });
            }
            if target == 0 {
                first = Some(own);
            }
        }
    }
    for (row, pair) in of_pair.into_iter().zip(within(report, &pairs)) {
        if let Some(row) = rows.get_mut(row) {
            row.against = Some(pair);
        }
    }
    Targets { names: comparison.sides.iter().map(|s| s.name.clone()).collect(), rows }
}

/// Every test that a target has, in the order of the first that has it.
fn tests(comparison: &TargetComparison) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for (name, _) in comparison.sides.iter().flat_map(|s| &s.tests) {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

/// Which target is the fastest in the test of the headline, and how it went in the others.
pub(super) fn answer(targets: &Targets) -> Option<Answer> {
    let test = &targets.rows.iter().find(|r| r.against.as_ref().is_some_and(|p| p.headline))?.test;
    let told: Vec<(usize, &Pair)> = targets
        .rows
        .iter()
        .filter(|r| &r.test == test)
        .filter_map(|r| Some((r.target, r.against.as_ref()?)))
        .collect();
    let word = |of: &Pair| of.metrics.first().map_or(Word::Incomparable, |m| m.answer);
    let is = |wanted: Word| told.iter().filter(move |(_, pair)| word(pair) == wanted);
    let all_told = told.iter().all(|(_, p)| !matches!(word(p), Word::CannotTell | Word::Incomparable));
    let faster: Vec<usize> = is(Word::Faster).map(|(target, _)| *target).collect();
    let all = told.len() + 1 == targets.names.len() && all_told;
    let (word, words) = match faster.as_slice() {
        // It is beyond the margin above the first, and nobody else is.
        [only] if all => (AnswerWord::Fastest, format!("{} is the fastest in {test}", targets.names[*only])),
        [] if all && is(Word::Slower).count() == told.len() => {
            (AnswerWord::Fastest, format!("{} is the fastest in {test}", targets.names[0]))
        }
        [] if all => (AnswerWord::Tied, format!("none is faster than {} in {test}", targets.names[0])),
        [_, _, ..] if all => (
            AnswerWord::CannotTell,
            format!(
                "several are faster than {} in {test}, and they are compared with it alone",
                targets.names[0]
            ),
        ),
        _ => (AnswerWord::CannotTell, format!("which is the fastest in {test}")),
    };
    let numbers: Vec<String> =
        told.iter().map(|(target, pair)| against(&targets.names[*target], pair)).collect();
    let others: Vec<String> = (1..targets.names.len()).map(|target| counted(targets, target)).collect();
    Some(Answer { word, sentence: format!("{words}: {}. {}", numbers.join("; "), others.join(" ")) })
}

/// `b +7.4 % (95 % interval +3.1 % to +12.0 %)`.
fn against(name: &str, pair: &Pair) -> String {
    let Some(Metric { ratio, interval, .. }) = pair.metrics.first() else {
        return format!("{name}: {}", pair.refused.as_deref().unwrap_or("no number that every run has"));
    };
    let interval = interval.map_or_else(String::new, |[low, high]| {
        format!(" (95 % interval {} to {})", show_change(low), show_change(high))
    });
    format!("{name} {}{interval}", show_change(*ratio))
}

/// `Of 8 tests b is faster than a in 3, slower in 1 and the same in none; 4 cannot be told.`
fn counted(targets: &Targets, target: usize) -> String {
    let rows = || targets.rows.iter().filter(move |r| r.target == target).filter_map(|r| r.against.as_ref());
    let count = |word: Word| rows().filter(|p| p.metrics.first().is_some_and(|m| m.answer == word)).count();
    let (faster, slower, same) = (count(Word::Faster), count(Word::Slower), count(Word::Same));
    let all = rows().count();
    format!(
        "Of {all} tests {} is faster than {} in {faster}, slower in {slower}, the same in {same}; {} cannot be told.",
        targets.names[target],
        targets.names[0],
        all - faster - slower - same
    )
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};
#[cfg(test)]
use model::study::{Studied, Study};
#[cfg(test)]
use model::targets::TargetJobs;

/// A session of one test on targets that do so many operations in a window.
#[cfg(test)]
fn judged(ops: &[u64]) -> Report {
    let names: Vec<String> = (0..ops.len()).map(|at| format!("t{at}")).collect();
    let fixture = |(name, ops): (&String, &u64)| Fixture {
        name: format!("x on {name}"),
        ops: *ops,
        ..Fixture::honest()
    };
    let mut record = together(&names.iter().zip(ops).map(fixture).collect::<Vec<_>>());
    let side =
        |(at, name): (usize, &String)| TargetJobs { name: name.clone(), tests: vec![("x".into(), at)] };
    let sides = names.iter().enumerate().map(side).collect();
    record.header.plan.study = Study::Targets(TargetComparison { sides });
    judge(&record, &Judging::default())
}

#[test]
fn each_target_is_compared_with_the_first_and_the_fastest_is_named() {
    for (ops, word, name) in [
        (&[10_000, 12_000][..], AnswerWord::Fastest, "t1 is the fastest"),
        (&[12_000, 10_000], AnswerWord::Fastest, "t0 is the fastest"),
        (&[10_000, 10_000], AnswerWord::Tied, "none is faster than t0"),
        (&[10_000, 8_000, 12_000], AnswerWord::Fastest, "t2 is the fastest"),
        (&[10_000, 11_500, 12_000], AnswerWord::CannotTell, "several are faster"),
    ] {
        let report = judged(ops);
        let answer = report.answer.clone().unwrap();
        assert_eq!(answer.word, word, "{answer:?}");
        assert!(answer.sentence.starts_with(name), "{answer:?}");
        let Studied::Targets(targets) = report.study else { panic!("no targets") };
        assert_eq!((targets.rows.len(), targets.names.len()), (ops.len(), ops.len()));
        assert!(targets.rows[0].against.is_none() && targets.rows[1].against.is_some());
    }
}

#[test]
fn few_runs_tell_nothing_and_a_forged_plan_is_no_panic() {
    let mut record = together(&[
        Fixture { runs: 1, ..Fixture::honest() },
        Fixture { name: "b".into(), runs: 1, ..Fixture::honest() },
    ]);
    let side = |name: &str, job| TargetJobs { name: name.into(), tests: vec![("x".into(), job)] };
    for jobs in [[0, 1], [1, 1], [7, usize::MAX], [0, 9]] {
        let sides = vec![side("a", jobs[0]), side("b", jobs[1])];
        record.header.plan.study = Study::Targets(TargetComparison { sides });
        let report = judge(&record, &Judging::default());
        assert!(report.answer.is_none_or(|a| a.word == AnswerWord::CannotTell || jobs == [1, 1]));
    }
    record.header.plan.study = Study::Targets(TargetComparison::default());
    assert!(judge(&record, &Judging::default()).answer.is_none());
}
