//! The printed answer and the exit code of a report, from its verdict and the answer of its gates. They never contradict each other.

use crate::compare;
use crate::studies;
use crate::verdict::{
    NamedIds, OTHER_LOAD_GROUP, deciding_command, fix_or_accept, is_withheld_by_others, relabelled,
    unaccepted_checks,
};
use model::comparison::Pair;
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::report::{AnswerWord, CountsAs, Ending, Measured, Report, ReportAnswer, Verdict};
use std::collections::BTreeSet;

/// Returns the printed answer of a report, whose first word agrees with the exit code. `None` if the report has no
/// answer: then the verdict is printed. If the answer is PASS and the verdict SUSPECT, the sentence explains why both
/// are true. The word is `INVALID`
///
/// - if nothing was measured,
/// - in place of `PASS` and `INCONCLUSIVE` if findings make the exit code 1,
/// - in place of the answer of a study (`FASTEST`, `MET`, ...) if findings make the exit code 1. The sentence then
///   begins with the answer of the study.
pub(crate) fn printed_answer(report: &Report) -> Option<ReportAnswer> {
    let answer = report.answer.clone()?;
    if let Ending::NotMeasured(why) = &report.ending {
        return Some(ReportAnswer { word: AnswerWord::Invalid, sentence: why.clone() });
    }
    if exit_code_of_findings(report) == 0 || compares_like_with_like(report) {
        return Some(explain_suspect(answer, report.verdict, report.verdict_by));
    }
    // A relabelled number does not make the verdict INVALID, so `verdict_reason` may be about another finding. Prefer
    // the finding that relabels.
    let relabels = find_relabelling(report).filter(|_| !is_invalid(report));
    let reason = &relabels.map_or_else(|| report.verdict_reason.clone(), |f| relabelled(f).reason);
    let ids = findings_to_accept(report);
    // Accepting a finding does not decide an undecided answer, so `--accept` helps only if a number is withheld.
    let is_undecided = matches!(answer.word, AnswerWord::CannotTell | AnswerWord::Inconclusive);
    let accept = if ids.is_empty() || is_undecided && !is_invalid(report) {
        String::new()
    } else {
        let accepted: BTreeSet<&CheckId> =
            report.results.iter().flat_map(|result| &result.accepted).collect();
        let has_hosts = report.fleet.is_some();
        let command = deciding_command(report.session.as_deref(), &report.command, has_hosts, accepted);
        format!(" {}", fix_or_accept(&ids, &command))
    };
    let sentence = match answer.word {
        AnswerWord::Fail | AnswerWord::Invalid => return Some(answer),
        AnswerWord::Pass | AnswerWord::Inconclusive => {
            format!("No condition is decided. {reason}{accept}")
        }
        // Without a number to quote, the study gives the verdict's reason as its sentence. Print it once.
        _ if answer.sentence.contains(reason.as_str()) => answer.sentence,
        word => {
            // Some studies answer in a sentence, others in a part of one.
            let is_sentence = answer.sentence.starts_with(char::is_uppercase);
            let mark = if is_sentence { '.' } else { ',' };
            let measured = answer.sentence.trim_end_matches('.');
            format!("As measured: {}{mark} {measured}. {reason}{accept}", word.word())
        }
    };
    Some(ReportAnswer { word: AnswerWord::Invalid, sentence })
}

/// Adds to a PASS why the verdict can be SUSPECT: a condition is decided on the numbers as they were measured. `by` is the check that
/// decides the verdict.
pub(crate) fn explain_suspect(answer: ReportAnswer, verdict: Verdict, by: Option<CheckId>) -> ReportAnswer {
    if (answer.word, verdict) != (AnswerWord::Pass, Verdict::Suspect) {
        return answer;
    }
    let by = by.map_or_else(String::new, |id| format!(" ({id})"));
    let sentence = format!(
        "{} PASS is about the numbers as measured; SUSPECT is about how far to trust them{by}.",
        answer.sentence
    );
    ReportAnswer { sentence, ..answer }
}

/// The exit code of a report. It follows from the first word:
///
/// - `FAIL` and `INVALID`: 1.
/// - `INCONCLUSIVE`: 4, unless the user chose 0 or 1 (`--inconclusive`).
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

/// Returns the exit code of several reports: the worst. A known failure is worse than an undecided condition.
pub fn exit_code_of(reports: &[Report]) -> u8 {
    let codes: Vec<u8> = reports.iter().map(exit_code).collect();
    [1, 4].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
}

/// Returns the exit code that the findings alone give, without conditions.
fn exit_code_of_findings(report: &Report) -> u8 {
    u8::from(is_invalid(report) || find_relabelling(report).is_some())
}

/// Whether the comparison with an earlier session (`--against`) is the only condition, and both sides measured the same
/// thing: the same findings relabel both sides, apart from findings about a reached limit. Then the comparison decides, as
/// in `compare`.
fn compares_like_with_like(report: &Report) -> bool {
    let Some(against) = report.against.as_ref().filter(|_| report.gates.is_empty()) else { return false };
    let comparison = &against.workload_comparison;
    let is_alike = |pair: &Pair| !pair.no_number && !compare::measures_something_else(pair);
    comparison.gate.is_some() && !is_invalid(report) && comparison.headline().is_some_and(is_alike)
}

fn is_invalid(report: &Report) -> bool {
    report.verdict == Verdict::Invalid || report.headline.value.is_none()
}

/// Returns the first finding that relabels the main number and that the user did not accept.
fn find_relabelling(report: &Report) -> Option<&Checked> {
    let main = main_results(report);
    report.checks.iter().find(|f| {
        let acts = f.outcome == Outcome::Finding && f.severity == Some(Severity::Relabels) && !f.accepted;
        acts && main.iter().any(|result| f.about.contains(&result.name))
    })
}

/// Returns the results that the headline depends on.
fn main_results(report: &Report) -> Vec<&Measured> {
    let conclusion = studies::conclusion(&report.study);
    let quoted: Vec<&str> = conclusion.quoted(&report.results).iter().map(|r| r.name.as_str()).collect();
    let is_main = |(at, result): &(usize, &Measured)| match conclusion.headline_results() {
        Some(results) => results.contains(at),
        // The headline of a sweep may begin with the measure: `p99 of 4K random read`.
        None => report.headline.name.ends_with(&result.true_name) && quoted.contains(&result.name.as_str()),
    };
    report.results.iter().enumerate().filter(is_main).map(|(_, result)| result).collect()
}

/// Returns the ids of all findings that the user must accept before the exit code of the findings is 0. Empty if accepting cannot help,
/// because a number was not measured.
fn findings_to_accept(report: &Report) -> NamedIds {
    let main = main_results(report);
    let checks = &report.checks;
    let forgives = studies::forgives_other_load(&report.study);
    let blocks = |r: &&Measured| {
        let is_forgiven = forgives && is_withheld_by_others(r, checks);
        r.verdict == Verdict::Invalid && !is_forgiven && main.iter().all(|result| result.name != r.name)
    };
    let quoted = studies::conclusion(&report.study).quoted(&report.results);
    let others: Vec<&Measured> = quoted.into_iter().filter(blocks).collect();
    // The headline may have no number for another reason than a finding, such as a target that no load meets.
    let is_withheld = main.iter().any(|result| result.verdict == Verdict::Invalid);
    let has_no_value = report.headline.value.is_none() && !is_withheld;
    if main.is_empty() || has_no_value || main.iter().chain(&others).any(|result| result.total.is_none()) {
        return NamedIds::new();
    }
    let acting = |results: &[&Measured], severities: &[Severity]| -> NamedIds {
        results.iter().flat_map(|result| unaccepted_checks(&result.name, checks, severities)).collect()
    };
    let mut ids = acting(&main, &[Severity::Invalidates, Severity::Relabels]);
    // Findings about other load (group D) need no acceptance if the study forgives other load.
    let of_others = acting(&others, &[Severity::Invalidates]);
    ids.extend(of_others.into_iter().filter(|(id, _)| !forgives || id.group() != OTHER_LOAD_GROUP));
    ids
}

#[cfg(test)]
use crate::verdict::{biased, judged};
#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};

/// The first word of a report.
#[cfg(test)]
fn first_word(report: &Report) -> &'static str {
    report.answer.as_ref().map_or(report.verdict.word(), |a| a.word.word())
}

#[test]
fn the_first_word_and_the_exit_code_always_agree() {
    let honest = Fixture::honest;
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..honest() };
    let holes = Fixture { hole_share: 1.0, ..honest() };
    let records = [
        honest().record(),
        biased(&honest()),
        Fixture { iostats_off: true, ..honest() }.record(),
        cached.record(),
        holes.record(),
        Fixture { errors: 1, ..holes }.record(),
        Fixture { hole_share: 1.0, ..cached }.record(),
        Fixture { runs: 1, ..honest() }.record(),
        Fixture { runs: 0, ..honest() }.record(),
        Fixture { ops: 0, ..honest() }.record(),
    ];
    let accepts: [&[CheckId]; 3] = [&[], &[CheckId::A04], CheckId::ALL];
    let studies = [AnswerWord::Fastest, AnswerWord::Missed, AnswerWord::CannotTell];
    let gates = [AnswerWord::Pass, AnswerWord::Fail, AnswerWord::Inconclusive, AnswerWord::Invalid];
    let outcomes = || gates.into_iter().chain(studies).map(Some).chain([None]);
    let counts = [None, Some(CountsAs::Pass), Some(CountsAs::Fail)];
    let mut first_words = BTreeSet::new();
    for mut record in records {
        record.header.plan.fail_if = model::spec::conditions::conditions("iops<1").unwrap();
        for accept in accepts {
            let judging = Judging { accept: accept.to_vec(), ..Judging::default() };
            let judged = judge(&record, &judging);
            // The condition as judged, followed by every other outcome.
            let gated = std::iter::once(judged.clone()).chain(outcomes().map(|word| {
                let answer = word.map(|word| ReportAnswer { word, sentence: String::new() });
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
fn a_pass_next_to_suspect_explains_both() {
    let judged = |delivered, cache| {
        let fixture = Fixture { cache, delivered, ..Fixture::honest_write() };
        let mut record = Fixture { runs: 8, ..fixture }.record();
        record.header.plan.fail_if = model::spec::conditions::conditions("iops<1").unwrap();
        judge(&record, &Judging::default())
    };
    let both = judged(1.8, model::job::Cache::DirectDsync);
    let answer = both.answer.clone().unwrap();
    assert_eq!((answer.word, both.verdict, exit_code(&both)), (AnswerWord::Pass, Verdict::Suspect, 0));
    assert!(
        answer.sentence.ends_with("SUSPECT is about how far to trust them (B04)."),
        "{}",
        answer.sentence
    );
    let valid = judged(1.0, model::job::Cache::DirectDsync);
    assert_eq!(valid.verdict, Verdict::Valid, "{}", valid.verdict_reason);
    assert!(!valid.answer.unwrap().sentence.contains("SUSPECT"));
}

#[test]
fn all_findings_that_must_be_accepted_are_named_at_once() {
    let fixture = |name: &str| Fixture { name: name.into(), ..Fixture::honest() };
    let first = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..fixture("first") };
    let holes = Fixture { hole_share: 1.0, ..fixture("holes") };
    // The headline is relabelled, the second result has only other load, and the third also has holes.
    let mut record = crate::fixture::together(&[first, fixture("disturbed"), holes]);
    let disturbed = record.runs.iter_mut().filter(|r| r.start.job > 0).filter_map(|r| r.end.as_mut());
    disturbed.flat_map(|end| &mut end.workers).for_each(|w| w.ready_ns = Ok(w.wall_ns / 2));
    let printed = |accept: &[CheckId]| {
        let report = judge(&record, &Judging { accept: accept.to_vec(), ..Judging::default() });
        let answer =
            Some(ReportAnswer { word: AnswerWord::Fastest, sentence: "first is the fastest.".into() });
        printed_answer(&Report { answer, ..report }).unwrap()
    };
    let answer = printed(&[]);
    assert_eq!(answer.word, AnswerWord::Invalid);
    let measured = "As measured: FASTEST, first is the fastest. ";
    let first_reason = |answer: &ReportAnswer| answer.sentence.strip_prefix(measured).map(str::to_owned);
    let reason = first_reason(&answer).unwrap_or_default();
    assert!(reason.starts_with("A04 HOLES_READ invalidates holes: "), "{}", answer.sentence);
    let ids = "Remove the cause and repeat, or type --accept A01 --accept A04 (A01 CACHE_SERVED, A04 HOLES_READ) to \
               decide all the same.";
    assert!(answer.sentence.contains(ids), "{}", answer.sentence);
    // Without the holes, the load does not count, and the relabelled headline decides.
    let answer = printed(&[CheckId::A04]);
    let reason = first_reason(&answer).unwrap_or_default();
    assert!(reason.starts_with("A01 CACHE_SERVED relabels first: "), "{}", answer.sentence);
    assert!(answer.sentence.contains("or type --accept A01 to"), "{}", answer.sentence);
    // The command of a kept session also has the accepted finding.
    let kept =
        Judging { accept: vec![CheckId::A04], session: Some("/s/1.fathom".into()), ..Judging::default() };
    let answer = Some(ReportAnswer { word: AnswerWord::Fastest, sentence: String::new() });
    let answer = printed_answer(&Report { answer, ..judge(&record, &kept) }).unwrap();
    let typed = "or type `fathom show 1 --accept A04 --accept A01` to";
    assert!(answer.sentence.contains(typed), "{}", answer.sentence);
    assert_eq!(printed(&[CheckId::A01, CheckId::A04]).word, AnswerWord::Fastest);
}

#[test]
fn an_answer_about_a_relabelled_number_is_invalid_and_names_it() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let report = judged(&cached, &[]);
    let answer = ReportAnswer { word: AnswerWord::Met, sentence: "up to 9,000/s.".into() };
    let report = Report { answer: Some(answer.clone()), ..report };
    let answer = printed_answer(&report).unwrap();
    assert_eq!(answer.word, AnswerWord::Invalid);
    assert!(answer.sentence.starts_with("As measured: MET, up to 9,000/s. A01 CACHE_SERVED relabels "));
    let sentence = ReportAnswer { word: AnswerWord::Tied, sentence: "Use pread for 4K random read.".into() };
    let printed = printed_answer(&Report { answer: Some(sentence), ..report.clone() }).unwrap().sentence;
    let first = "As measured: TIED. Use pread for 4K random read. A01 CACHE_SERVED relabels ";
    assert!(printed.starts_with(first) && printed.contains("--accept A01"), "{printed}");
    // The number is already shown, and accepting the finding would not decide the answer.
    for word in [AnswerWord::CannotTell, AnswerWord::Inconclusive] {
        let undecided = Some(ReportAnswer { word, sentence: "No recommendation.".into() });
        let printed = printed_answer(&Report { answer: undecided, ..report.clone() }).unwrap().sentence;
        assert!(printed.contains("A01") && !printed.contains("--accept"), "{printed}");
    }
    // A withheld number is shown if the finding is accepted.
    let holes = judged(&Fixture { hole_share: 1.0, ..Fixture::honest() }, &[]);
    let undecided = Some(ReportAnswer { word: AnswerWord::CannotTell, sentence: "No answer.".into() });
    let printed = printed_answer(&Report { answer: undecided, ..holes }).unwrap().sentence;
    assert!(
        printed.starts_with("As measured: CANNOT TELL. No answer. A04 ") && printed.contains("--accept A04"),
        "{printed}"
    );
    // Without a number, the study and the verdict give the same reason, which appears once.
    let same = ReportAnswer { word: AnswerWord::CannotTell, sentence: report.verdict_reason.clone() };
    let answer = printed_answer(&Report { answer: Some(same), ..report }).unwrap();
    assert_eq!(answer.sentence, judged(&cached, &[]).verdict_reason);
    // With the finding accepted, the answer remains.
    let accepted = Report { answer: Some(answer.clone()), ..judged(&cached, &[CheckId::A01]) };
    assert_eq!(printed_answer(&accepted), Some(answer));
}
