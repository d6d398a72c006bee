//! Compares targets: the same tests on several targets, and which target is the fastest.
//!
//! Each target is compared with the first, test by test, by runs that were measured in turns. The answer is about the
//! test of the headline. It also counts, over all tests, how often each outcome occurred (FASTER, SLOWER, SAME ...).

use super::{Conclusion, Question};
use crate::compare::{PairInTurns, compare_in_turns, show_interval};
use model::comparison::{ComparisonAnswer, Metric, Pair};
use model::record::Record;
use model::report::{AnswerWord, Report, ReportAnswer};
use model::study::{Studied, TargetComparison, TargetRow, Targets};
use model::units::{show_change, show_share};

impl Question for TargetComparison {
    fn compare(&self, record: &Record, report: &Report, jobs: &[usize]) -> Option<Studied> {
        Some(build_table(report, self, jobs, record.header.plan.headline).into())
    }
}

impl Conclusion for Targets {
    /// Returns which target is the fastest in the test of the headline, and how many tests had each
    /// outcome; `None` if the headline's test was not compared.
    fn answer(&self) -> Option<ReportAnswer> {
        let test = &self.rows.iter().find(|r| r.against.as_ref().is_some_and(|p| p.headline))?.test;
        let rows = self.rows.iter().filter(|r| &r.test == test);
        let all: Vec<Standing> =
            rows.map(|r| Standing { target: r.target, pair: r.against.as_ref() }).collect();
        let name = |one: &Standing| self.names.get(one.target).map_or("-", String::as_str);
        let first = self.names.first().map_or("the first", String::as_str);
        let with_word = |wanted: ComparisonAnswer| {
            all.iter().filter(move |one| one.pair.is_some() && one.word() == wanted)
        };
        let is_complete = all.len() == self.names.len()
            && all.iter().all(|one| {
                !matches!(
                    one.word(),
                    ComparisonAnswer::CannotTell | ComparisonAnswer::Incomparable | ComparisonAnswer::Invalid
                )
            });
        let fastest = all
            .iter()
            .enumerate()
            .find(|(at, one)| all.iter().enumerate().all(|(other, its)| *at == other || one.beats(its)));
        let faster: Vec<&str> = with_word(ComparisonAnswer::Faster).map(&name).collect();
        let tolerance = all.iter().filter_map(Standing::metric).find_map(|m| m.tolerance).map(show_share);
        let (word, conclusion) = match (fastest, faster.as_slice()) {
            _ if !is_complete => {
                (AnswerWord::CannotTell, format!("which target is the fastest in {test} is not known"))
            }
            (Some((_, one)), _) => (AnswerWord::Fastest, format!("{} is the fastest in {test}", name(one))),
            (None, []) if with_word(ComparisonAnswer::NoDifferenceSeen).next().is_some() => (
                AnswerWord::NoDifferenceSeen,
                format!("no target is shown to be faster than {first} in {test}"),
            ),
            (None, []) => {
                let within = tolerance.map_or_else(String::new, |share| format!(" by more than {share}"));
                (AnswerWord::Tied, format!("none is faster than {first}{within} in {test}"))
            }
            (None, [only]) => (
                AnswerWord::Tied,
                format!(
                    "{only} is faster than {first} in {test}, but another target may be as fast as {only}"
                ),
            ),
            (None, several) => {
                let sentence = format!(
                    "{} are faster than {first} in {test}; which of them is the fastest is undecided",
                    several.join(" and ")
                );
                (AnswerWord::Tied, sentence)
            }
        };
        let numbers: Vec<String> =
            all.iter().filter_map(|one| Some(describe_comparison(name(one), first, one.pair?))).collect();
        let others: Vec<String> = (1..self.names.len()).map(|target| count_outcomes(self, target)).collect();
        Some(ReportAnswer {
            word,
            sentence: format!("{conclusion}: {}. {}", numbers.join("; "), others.join(" ")),
        })
    }
}

/// Builds the table of the study. `jobs` has the job of each result, and `headline` is the job
/// whose test decides the answer.
fn build_table(report: &Report, comparison: &TargetComparison, jobs: &[usize], headline: usize) -> Targets {
    let mut rows: Vec<TargetRow> = Vec::new();
    let (mut pairs, mut rows_of_pairs) = (Vec::new(), Vec::new());
    let results = |job: usize| jobs.iter().enumerate().filter(move |(_, j)| **j == job).map(|(at, _)| at);
    for test in list_tests(comparison) {
        let mut first: Option<Vec<usize>> = None;
        for (target, side) in comparison.sides.iter().enumerate() {
            let job = side.tests.iter().find(|(name, _)| name == test).map(|(_, job)| *job);
            let own: Vec<usize> = job.into_iter().flat_map(results).collect();
            for (part, result) in own.iter().enumerate() {
                let base = first.as_ref().and_then(|first| first.get(part)).filter(|_| target > 0);
                if let Some(base) = base.copied() {
                    let answers = jobs.get(base) == Some(&headline);
                    pairs.push(PairInTurns { a: base, b: *result, name: &side.name, headline: answers });
                    rows_of_pairs.push(rows.len());
                }
                rows.push(TargetRow { test: test.into(), target, result: *result, against: None });
            }
            if target == 0 {
                first = Some(own);
            }
        }
    }
    for (row, pair) in rows_of_pairs.into_iter().zip(compare_in_turns(report, &pairs)) {
        if let Some(row) = rows.get_mut(row) {
            row.against = Some(pair);
        }
    }
    Targets { names: comparison.sides.iter().map(|s| s.name.clone()).collect(), rows }
}

/// Returns every test of any target, in the order of first occurrence.
fn list_tests(comparison: &TargetComparison) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for (name, _) in comparison.sides.iter().flat_map(|s| &s.tests) {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

/// A target in the test of the headline.
struct Standing<'t> {
    target: usize,
    /// Comparison with the first target; `None` for the first target itself.
    pair: Option<&'t Pair>,
}

impl Standing<'_> {
    fn metric(&self) -> Option<&Metric> {
        self.pair.and_then(|pair| pair.metrics.first())
    }

    /// Returns the outcome of the comparison with the first target; [`ComparisonAnswer::Same`] for the first
    /// target itself.
    fn word(&self) -> ComparisonAnswer {
        self.pair.map_or(ComparisonAnswer::Same, outcome_of)
    }

    /// Whether this target is certainly faster than another one: because of how both compare with the first target, or
    /// because their intervals do not overlap.
    fn beats(&self, other: &Self) -> bool {
        match (self.metric(), other.metric()) {
            (_, None) => self.word() == ComparisonAnswer::Faster,
            (None, Some(_)) => other.word() == ComparisonAnswer::Slower,
            (Some(own), Some(its)) => match (own.interval, its.interval) {
                (Some(own_ends), Some(ends)) if own.more_is_better => own_ends[0] > ends[1],
                (Some(own_ends), Some(ends)) => own_ends[1] < ends[0],
                _ => false,
            },
        }
    }
}

/// Returns the outcome of a comparison: the answer of its first number, or why there is none.
fn outcome_of(pair: &Pair) -> ComparisonAnswer {
    pair.metrics.first().map_or_else(|| pair.refusal(), |metric| metric.answer)
}

/// Compares a target with the first one: `b is faster than a by 7.4 % (3.1 to 12 %)`.
fn describe_comparison(name: &str, first: &str, pair: &Pair) -> String {
    let Some(metric) = pair.metrics.first() else {
        return format!(
            "{name}: {}",
            pair.refused.as_deref().unwrap_or("no figure has a value in every run")
        );
    };
    match (metric.answer, metric.bound()) {
        (ComparisonAnswer::Faster, _) => format!("{name} is faster than {first} by {}", metric.size()),
        (ComparisonAnswer::Slower, _) => format!("{name} is slower than {first} by {}", metric.size()),
        (ComparisonAnswer::NoDifferenceSeen, Some(bound)) => format!("{name} is {bound} than {first}"),
        _ => format!("{name} {}{}", show_change(metric.ratio), show_interval(metric)),
    }
}

/// Counts the outcomes of all tests of a target: `b against a in 8 tests: faster in 3, slower in 1, no difference seen in
/// 2 (at most 7.0 %), not decided in 2.`
fn count_outcomes(targets: &Targets, target: usize) -> String {
    let rows = || targets.rows.iter().filter(move |r| r.target == target).filter_map(|r| r.against.as_ref());
    let answers: Vec<ComparisonAnswer> = rows().map(outcome_of).collect();
    let count = |word: ComparisonAnswer| answers.iter().filter(|w| **w == word).count();
    let (faster, slower, same) =
        (count(ComparisonAnswer::Faster), count(ComparisonAnswer::Slower), count(ComparisonAnswer::Same));
    let unseen = count(ComparisonAnswer::NoDifferenceSeen);
    let bounds =
        rows().filter_map(|p| p.metrics.first()).filter(|m| m.answer == ComparisonAnswer::NoDifferenceSeen);
    let widest = bounds.filter_map(Metric::at_most).flatten().fold(0.0, f64::max);
    let parts = [
        (faster, format!("faster in {faster}")),
        (slower, format!("slower in {slower}")),
        (same, format!("the same in {same}")),
        (unseen, format!("no difference seen in {unseen} (at most {})", show_share(widest))),
    ];
    let open = answers.len() - parts.iter().map(|(count, _)| count).sum::<usize>();
    let parts = parts.into_iter().chain([(open, format!("not decided in {open}"))]);
    let parts: Vec<String> = parts.filter(|(count, _)| *count > 0).map(|(_, part)| part).collect();
    let (tests, name, first) = (answers.len(), &targets.names[target], &targets.names[0]);
    if tests == 0 {
        return format!("{name} and {first} have no test in common.");
    }
    format!(
        "{name} against {first} in {tests} test{}: {}.",
        if tests == 1 { "" } else { "s" },
        parts.join(", ")
    )
}

#[cfg(test)]
use crate::fixture::{Fixture, together};
#[cfg(test)]
use crate::{Judging, judge};
#[cfg(test)]
use model::study::TargetJobs;

/// A session of one test on targets, with these operations in a window.
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
    record.header.plan.study = TargetComparison { sides }.into();
    judge(&record, &Judging::default())
}

#[test]
fn each_target_is_compared_with_the_first_and_the_fastest_is_named() {
    for (ops, word, name) in [
        (&[10_000, 12_000][..], AnswerWord::Fastest, "t1 is the fastest"),
        (&[12_000, 10_000], AnswerWord::Fastest, "t0 is the fastest"),
        (&[10_000, 10_000], AnswerWord::Tied, "none is faster than t0"),
        (&[10_000, 8_000, 12_000], AnswerWord::Fastest, "t2 is the fastest"),
        (&[10_000, 11_500, 12_000], AnswerWord::Fastest, "t2 is the fastest"),
        (&[10_000, 12_000, 12_000], AnswerWord::Tied, "t1 and t2 are faster than t0"),
        (&[10_000, 12_000, 10_000], AnswerWord::Fastest, "t1 is the fastest"),
    ] {
        let report = judged(ops);
        let answer = report.answer.clone().unwrap();
        assert_eq!(answer.word, word, "{answer:?}");
        assert!(answer.sentence.starts_with(name), "{answer:?}");
        assert!(answer.sentence.contains(". t1 against t0 in 1 test: "), "{answer:?}");
        let targets = report.study.targets().unwrap();
        assert_eq!((targets.rows.len(), targets.names.len()), (ops.len(), ops.len()));
        assert!(targets.rows[0].against.is_none() && targets.rows[1].against.is_some());
    }
}

#[test]
fn few_runs_give_no_answer_and_a_forged_plan_does_not_panic() {
    let mut record = together(&[
        Fixture { runs: 1, ..Fixture::honest() },
        Fixture { name: "b".into(), runs: 1, ..Fixture::honest() },
    ]);
    let side = |name: &str, job| TargetJobs { name: name.into(), tests: vec![("x".into(), job)] };
    for jobs in [[0, 1], [1, 1], [7, usize::MAX], [0, 9]] {
        let sides = vec![side("a", jobs[0]), side("b", jobs[1])];
        record.header.plan.study = TargetComparison { sides }.into();
        let report = judge(&record, &Judging::default());
        assert!(report.answer.is_none_or(|a| a.word == AnswerWord::CannotTell || jobs == [1, 1]));
    }
    record.header.plan.study = TargetComparison::default().into();
    assert!(judge(&record, &Judging::default()).answer.is_none());
}
