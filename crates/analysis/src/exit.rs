//! The printed answer and the exit code of a report, from its verdict and the answer of its gates. They never contradict each other.

use crate::findings::findings_about;
use crate::studies;
use crate::verdict::type_accept;
use model::finding::Severity;
use model::report::{Answer, AnswerWord, CountsAs, Ending, Measured, Report, Verdict};

/// The printed answer of a report, whose first word agrees with the exit code. It is `INVALID`
///
/// - if nothing was measured,
/// - in place of `PASS` and `INCONCLUSIVE` if findings make the exit code 1,
/// - in place of the answer of a study (`FASTEST`, `MET`, ...) if findings make the exit code 1. The sentence then
///   contains the answer of the study.
pub(crate) fn printed_answer(report: &Report) -> Option<Answer> {
    let answer = report.answer.clone()?;
    if let Ending::NotMeasured(why) = &report.ending {
        return Some(Answer { word: AnswerWord::Invalid, sentence: why.clone() });
    }
    if exit_code_of_findings(report) == 0 {
        return Some(answer);
    }
    let reason = &report.verdict_reason;
    let has_number = report.headline_result().is_some_and(|result| result.total.is_some());
    let accept = report
        .verdict_by
        .filter(|_| has_number)
        .map_or_else(String::new, |id| format!(" {}", type_accept(id)));
    let sentence = match answer.word {
        AnswerWord::Fail | AnswerWord::Invalid => return Some(answer),
        AnswerWord::Pass | AnswerWord::Inconclusive => {
            format!("The conditions are not decided. {reason}{accept}")
        }
        // Without a number to quote, the study gives the verdict's reason as its sentence. Print it once.
        _ if answer.sentence.contains(reason.as_str()) => answer.sentence,
        word => format!("{reason}{accept} As measured: {}, {}", word.word(), answer.sentence),
    };
    Some(Answer { word: AnswerWord::Invalid, sentence })
}

/// The exit code of a report. It follows from the first word:
///
/// - `FAIL` and `INVALID`: 1.
/// - `INCONCLUSIVE`: 4, unless the user defines what it counts as.
/// - `PASS`: 0.
/// - An answer of a study, unless it is `INVALID`: 0.
/// - A verdict: 1 if a finding that the user did not accept invalidates a quoted result or relabels the main one, or if
///   there is no number to quote; else 0.
pub fn exit_code(report: &Report) -> u8 {
    match (report.answer.as_ref().map(|a| a.word), report.counts_as) {
        (Some(AnswerWord::Fail | AnswerWord::Invalid), _)
        | (Some(AnswerWord::Inconclusive), Some(CountsAs::Fail)) => 1,
        (Some(AnswerWord::Inconclusive), None) => 4,
        (Some(AnswerWord::Pass), _) | (Some(AnswerWord::Inconclusive), Some(CountsAs::Pass)) => 0,
        _ => exit_code_of_findings(report),
    }
}

/// The exit code of several reports: the worst. A known failure is worse than an undecided condition.
pub fn exit_code_of(reports: &[Report]) -> u8 {
    let codes: Vec<u8> = reports.iter().map(exit_code).collect();
    [1, 4].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

/// The exit code without any condition.
fn exit_code_of_findings(report: &Report) -> u8 {
    let conclusion = studies::conclusion(&report.study);
    let quoted: Vec<&str> = conclusion.quoted(&report.results).iter().map(|r| r.name.as_str()).collect();
    let is_main = |(at, result): &(usize, &Measured)| match conclusion.rests_on() {
        Some(results) => results.contains(at),
        None => result.true_name == report.headline.name && quoted.contains(&result.name.as_str()),
    };
    let main: Vec<&str> =
        report.results.iter().enumerate().filter(is_main).map(|(_, r)| r.name.as_str()).collect();
    let mut relabelling =
        main.iter().flat_map(|name| findings_about(&report.findings, name, Severity::Rename));
    let is_invalid = report.verdict == Verdict::Invalid || report.headline.value.is_none();
    u8::from(is_invalid || relabelling.any(|f| !f.accepted))
}

#[cfg(test)]
use crate::verdict::{biased, judged};
#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};
#[cfg(test)]
use model::finding::CheckId;

/// The first word of a report.
#[cfg(test)]
fn first_word(report: &Report) -> &'static str {
    report.answer.as_ref().map_or(report.verdict.word(), |a| a.word.word())
}

#[test]
fn the_first_word_and_the_exit_code_always_agree() {
    let five = Fixture::honest;
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..five() };
    let holes = Fixture { hole_share: 1.0, ..five() };
    let records = [
        five().record(),
        biased(&five()),
        Fixture { iostats_off: true, ..five() }.record(),
        cached.record(),
        holes.record(),
        Fixture { errors: 1, ..holes }.record(),
        Fixture { hole_share: 1.0, ..cached }.record(),
        Fixture { runs: 1, ..five() }.record(),
        Fixture { runs: 0, ..five() }.record(),
        Fixture { ops: 0, ..five() }.record(),
    ];
    let accepts: [&[CheckId]; 3] = [&[], &[CheckId::A04], CheckId::ALL];
    let studies = [AnswerWord::Fastest, AnswerWord::Missed, AnswerWord::CannotTell];
    let gates = [AnswerWord::Pass, AnswerWord::Fail, AnswerWord::Inconclusive, AnswerWord::Invalid];
    let outcomes = || gates.into_iter().chain(studies).map(Some).chain([None]);
    let counts = [None, Some(CountsAs::Pass), Some(CountsAs::Fail)];
    let mut first_words = std::collections::BTreeSet::new();
    for mut record in records {
        record.header.plan.fail_if = model::spec::conditions::conditions("iops<1").unwrap();
        for accept in accepts {
            let judging = Judging { accept: accept.to_vec(), ..Judging::default() };
            let judged = judge(&record, &judging);
            // The condition as judged, followed by every other outcome.
            let gated = std::iter::once(judged.clone()).chain(outcomes().map(|word| {
                let answer = word.map(|word| Answer { word, sentence: String::new() });
                let report = Report { answer, ..judged.clone() };
                Report { answer: printed_answer(&report), ..report }
            }));
            for (report, counts_as) in gated.flat_map(|r| counts.map(|c| (r.clone(), c))) {
                let report = Report { counts_as, ..report };
                let word = first_word(&report);
                first_words.insert(word);
                let codes: &[u8] = match (word, counts_as) {
                    ("VALID" | "PASS" | "FASTEST" | "MISSED" | "CANNOT TELL", _)
                    | ("INCONCLUSIVE", Some(CountsAs::Pass)) => &[0],
                    ("INVALID" | "FAIL", _) | ("INCONCLUSIVE", Some(CountsAs::Fail)) => &[1],
                    ("INCONCLUSIVE", None) => &[4],
                    // A biased number keeps its name. A relabelled number is the number of something else.
                    ("SUSPECT", _) => &[0, 1],
                    other => panic!("{other:?}"),
                };
                let case = format!("{accept:?} {counts_as:?}: {word}, {}", report.verdict_reason);
                assert!(codes.contains(&exit_code(&report)), "{case}: {}", exit_code(&report));
                let withheld = report.headline.value.is_none();
                assert_eq!(report.verdict == Verdict::Invalid, withheld, "{case}");
                assert!(!withheld || ["INVALID", "FAIL"].contains(&word), "{case}");
                let accepted = !report.results[0].accepted.is_empty();
                assert!(!accepted || report.verdict != Verdict::Valid, "{case}");
            }
        }
    }
    let all =
        ["CANNOT TELL", "FAIL", "FASTEST", "INCONCLUSIVE", "INVALID", "MISSED", "PASS", "SUSPECT", "VALID"];
    assert!(first_words.into_iter().eq(all), "a word was never reached");
}

#[test]
fn a_condition_on_another_result_is_no_pass_next_to_a_relabelled_headline() {
    let cached = Fixture { delivered: 0.0, runs: 8, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let other = Fixture { name: "other".into(), runs: 8, ..Fixture::honest() };
    let mut record = crate::fixture::together(&[cached, other]);
    record.header.plan.fail_if = model::spec::conditions::conditions("other: iops<1").unwrap();
    let report = judge(&record, &Judging::default());
    assert_eq!(report.gates[0].word, AnswerWord::Pass);
    let answer = report.answer.clone().unwrap();
    assert_eq!((answer.word, exit_code(&report)), (AnswerWord::Invalid, 1));
    assert!(answer.sentence.contains("--accept A01"), "{}", answer.sentence);
}

#[test]
fn an_answer_about_a_relabelled_number_is_invalid_and_names_it() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let report = judged(&cached, &[]);
    let answer = Answer { word: AnswerWord::Met, sentence: "up to 9,000/s.".into() };
    let report = Report { answer: Some(answer.clone()), ..report };
    let answer = printed_answer(&report).unwrap();
    assert_eq!(answer.word, AnswerWord::Invalid);
    assert!(answer.sentence.contains("A01") && answer.sentence.ends_with("As measured: MET, up to 9,000/s."));
    // Without a number, the study and the verdict give the same reason, which appears once.
    let same = Answer { word: AnswerWord::CannotTell, sentence: report.verdict_reason.clone() };
    let answer = printed_answer(&Report { answer: Some(same), ..report }).unwrap();
    assert_eq!(answer.sentence, judged(&cached, &[]).verdict_reason);
    // With the finding accepted, the answer remains.
    let accepted = Report { answer: Some(answer.clone()), ..judged(&cached, &[CheckId::A01]) };
    assert_eq!(printed_answer(&accepted), Some(answer));
}
