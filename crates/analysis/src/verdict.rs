//! The verdict, the headline and the exit code.
//!
//! 1. [`result_verdict`] decides from the findings whether a result is VALID, SUSPECT or INVALID.
//! 2. [`Judged`] selects the result of the headline by the study: one of several jobs, a load of a curve, or a cell of a grid.
//! 3. [`exit_code`] turns the verdict and the answer of the gates into the exit code.

use crate::case::no_run;
use crate::findings::{CaseAnswers, about};
use crate::{limiter, studies};
use model::finding::{CheckId, Finding, Outcome, Severity};
use model::record::{Record, RunEnding};
use model::report::{
    Answer, AnswerWord, Counts, CountsAs, Ending, Headline, Limiter, Measured, QuotedRate, Report, Verdict,
};
use model::study::{LoadCurve, Studied};
use model::sweep::Sweep;
use model::units::show_count;

/// The maximum number of results without a number that the counts name.
const MOST_NAMES: usize = 2;

/// The result whose figure is the headline: the first of the plan's headline job.
pub(crate) fn headline_result<'m>(
    record: &Record,
    answered: &[CaseAnswers],
    results: &'m [Measured],
) -> Option<&'m Measured> {
    let at = answered.iter().position(|a| a.case.at == record.header.plan.headline)?;
    results.get(at)
}

/// Checks without whose answer it is unknown what was measured: whether the target is memory (A11), whether the work arrived at the lowest
/// layer (A12), and whether it was counted at all (A13). A result is suspect if one of them lacks its evidence.
const MUST_BE_ASKED: [CheckId; 3] = [CheckId::A13, CheckId::A11, CheckId::A12];

/// The number to quote, under its true name. Withheld if a finding invalidates it.
pub(crate) fn headline(record: &Record, answered: &[CaseAnswers], results: &[Measured]) -> Headline {
    let Some(result) = headline_result(record, answered, results) else {
        return Headline {
            name: "nothing".into(),
            value: None,
            unit: "IOPS".into(),
            interval: None,
            accepted: Vec::new(),
        };
    };
    let QuotedRate { unit, value, interval } = result.quoted_rate();
    Headline { name: result.true_name.clone(), value, unit: unit.into(), interval, accepted: Vec::new() }
}

/// A verdict and why.
#[derive(Debug)]
pub(crate) struct Reasoned {
    pub(crate) verdict: Verdict,
    /// The reason in one sentence.
    pub(crate) reason: String,
    /// The check that the sentence comes from.
    pub(crate) by: Option<CheckId>,
}

impl Reasoned {
    /// A verdict whose reason does not come from a check.
    pub(crate) fn new(verdict: Verdict, reason: String) -> Self {
        Self { verdict, reason, by: None }
    }
}

/// The verdict on the quoted results: the worst one, with the reason in one sentence. If several are equally bad, the reason of `first` is
/// preferred.
pub(crate) fn session_verdict(
    first: Option<&Measured>,
    quoted: &[&Measured],
    findings: &[Finding],
) -> Reasoned {
    let nothing =
        || Reasoned::new(Verdict::Invalid, "nothing was planned that could be measured.".to_owned());
    let Some((first, worst)) = first.zip(quoted.iter().map(|r| r.verdict).max()) else { return nothing() };
    let shown = std::iter::once(first).chain(quoted.iter().copied()).find(|r| r.verdict == worst);
    shown.map_or_else(nothing, |result| result_verdict(result, findings))
}

/// The verdict on one result, with the reason in one sentence. A finding that the user accepts withholds no number, but the result is
/// suspect.
pub(crate) fn result_verdict(result: &Measured, findings: &[Finding]) -> Reasoned {
    let about_it: Vec<&Finding> = findings.iter().filter(|f| f.about.contains(&result.name)).collect();
    let found_all = |severity| {
        about_it
            .iter()
            .copied()
            .filter(move |f| f.outcome == Outcome::Finding && f.severity == Some(severity))
    };
    if let Some(f) = found_all(Severity::Void).find(|f| !f.accepted) {
        return found(Verdict::Invalid, f, "invalidates");
    }
    if result.total.is_none() {
        let why = if result.runs.is_empty() { no_run() } else { no_operation() };
        return Reasoned::new(Verdict::Invalid, format!("{} has no number: {why}.", result.name));
    }
    if let Some(f) = found_all(Severity::Void).next() {
        let reason = format!("{} {} is accepted for {}: {}", f.id, f.name, about(&f.about), f.sentence);
        return Reasoned { verdict: Verdict::Suspect, reason, by: Some(f.id) };
    }
    if let Some(f) = found_all(Severity::Rename).next() {
        return found(Verdict::Suspect, f, "relabels");
    }
    if let Some(f) = found_all(Severity::Biased).next() {
        return found(Verdict::Suspect, f, "biases");
    }
    let unasked = |f: &&&Finding| MUST_BE_ASKED.contains(&f.id) && f.outcome == Outcome::NotChecked;
    if let Some(f) = about_it.iter().find(unasked) {
        let reason = format!("{}: {}.", about(&f.about), f.sentence);
        return Reasoned { verdict: Verdict::Suspect, reason, by: Some(f.id) };
    }
    Reasoned::new(Verdict::Valid, "No check found anything that changes what the number means.".into())
}

/// The verdict on a session that ended before its first run because every result would be invalid; `None` for other sessions.
pub(crate) fn not_measured(record: &Record) -> Option<Reasoned> {
    let Some(RunEnding::NotMeasured(why)) = record.end.as_ref().map(|end| &end.ending) else { return None };
    Some(Reasoned::new(Verdict::Invalid, why.clone()))
}

/// Whether a result has no number only because of other load on the machine (checks D).
pub(crate) fn is_withheld_by_others(result: &Measured, findings: &[Finding]) -> bool {
    let mut ids = invalidating(result, findings).map(|f| f.id).peekable();
    ids.peek().is_some() && ids.all(|id| id.group() == 'D')
}

/// The findings that invalidate a result.
fn invalidating<'f>(result: &Measured, findings: &'f [Finding]) -> impl Iterator<Item = &'f Finding> {
    findings.iter().filter(|f| {
        let invalidates = f.outcome == Outcome::Finding && f.severity == Some(Severity::Void);
        invalidates && !f.accepted && f.about.contains(&result.name)
    })
}

/// Counts the quoted results by verdict.
pub(crate) fn counts(quoted: &[&Measured], findings: &[Finding]) -> Counts {
    let count = |verdict| quoted.iter().filter(|r| r.verdict == verdict).count();
    let counts = Counts {
        valid: count(Verdict::Valid),
        suspect: count(Verdict::Suspect),
        invalid: count(Verdict::Invalid),
        sentence: None,
    };
    Counts { sentence: (quoted.len() > 1).then(|| counted(&counts, quoted, findings)), ..counts }
}

/// `8 results: 2 valid, 5 suspect, 1 without a number (RND4K Q1T1 read: CPU busy)`.
fn counted(counts: &Counts, quoted: &[&Measured], findings: &[Finding]) -> String {
    let all = show_count(quoted.len() as f64);
    if counts.valid == quoted.len() {
        return format!("{all} results, all valid");
    }
    let parts = [(counts.valid, "valid"), (counts.suspect, "suspect"), (counts.invalid, "without a number")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", show_count(count as f64)))
        .collect();
    let invalid: Vec<&Measured> = quoted.iter().copied().filter(|r| r.verdict == Verdict::Invalid).collect();
    let why = |r: &&Measured| format!("{}: {}", r.name, why_without(r, findings));
    let named = match invalid.len() {
        1..=MOST_NAMES => format!(" ({})", invalid.iter().map(why).collect::<Vec<_>>().join("; ")),
        _ => String::new(),
    };
    format!("{all} results: {}{named}", parts.join(", "))
}

/// Why a result has no number, in a few words: `CPU busy`. The names of most checks are that short.
fn why_without(result: &Measured, findings: &[Finding]) -> String {
    match invalidating(result, findings).next() {
        Some(f) if f.id == CheckId::B12 => "I/O errors".into(),
        Some(f) if f.id == CheckId::D01 => "other load on the disk".into(),
        Some(f) if f.id == CheckId::D08 => "CPU busy".into(),
        Some(f) if f.id == CheckId::D10 => "CPU taken by the hypervisor".into(),
        Some(f) => f.name.to_lowercase().replace('_', " "),
        None if result.runs.is_empty() => "no run".into(),
        None => "no operation".into(),
    }
}

fn no_operation() -> String {
    "no operation completed within a measured window".into()
}

fn found(verdict: Verdict, finding: &Finding, verb: &str) -> Reasoned {
    let Finding { id, name, sentence, .. } = finding;
    let reason = format!("{id} {name} {verb} {}: {sentence}", about(&finding.about));
    Reasoned { verdict, reason, by: Some(*id) }
}

/// The printed answer of a report, whose first word agrees with the exit code. It is `INVALID`
///
/// - if nothing was measured,
/// - in place of `PASS` and `INCONCLUSIVE` if findings make the exit code 1,
/// - in place of the answer of a study (`FASTEST`, `MET`, ...) if findings make the exit code 1. The sentence then contains that answer.
pub(crate) fn printed_answer(report: &Report) -> Option<Answer> {
    let answer = report.answer.clone()?;
    if let Ending::NotMeasured(why) = &report.ending {
        return Some(Answer { word: AnswerWord::Invalid, sentence: why.clone() });
    }
    if exit_code_of_findings(report) == 0 {
        return Some(answer);
    }
    let reason = &report.verdict_reason;
    let accept = report.verdict_by.map_or_else(String::new, |id| format!(" {}", type_accept(id)));
    let sentence = match answer.word {
        AnswerWord::Fail | AnswerWord::Invalid => return Some(answer),
        AnswerWord::Pass | AnswerWord::Inconclusive => {
            format!("The conditions are not decided. {reason}{accept}")
        }
        // Without a number to quote, the verdict's reason is the sentence of the study.
        _ if answer.sentence.contains(reason.as_str()) => answer.sentence,
        word => format!("{reason}{accept} As measured: {}, {}", word.word(), answer.sentence),
    };
    Some(Answer { word: AnswerWord::Invalid, sentence })
}

/// What to type so that a question is decided on a number that a finding invalidates or relabels.
pub(crate) fn type_accept(id: CheckId) -> String {
    format!("Type --accept {id} to decide on this number all the same.")
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
    let quoted: Vec<&str> =
        studies::quoted(&report.study, &report.results).iter().map(|r| r.name.as_str()).collect();
    let is_main = |(at, result): &(usize, &Measured)| match &report.study {
        Studied::Limit(curve) => curve.rests_on.contains(at),
        _ => result.true_name == report.headline.name && quoted.contains(&result.name.as_str()),
    };
    let main: Vec<&str> =
        report.results.iter().enumerate().filter(is_main).map(|(_, r)| r.name.as_str()).collect();
    let relabels = |f: &Finding| {
        let acts = f.outcome == Outcome::Finding && f.severity == Some(Severity::Rename) && !f.accepted;
        acts && f.about.iter().any(|name| main.contains(&name.as_str()))
    };
    let invalid = report.verdict == Verdict::Invalid || report.headline.value.is_none();
    u8::from(invalid || report.findings.iter().any(relabels))
}

/// The first lines of a report: answer, headline, verdict, counts and limiter.
pub(crate) struct ReportHead {
    pub(crate) answer: Option<Answer>,
    pub(crate) headline: Headline,
    pub(crate) verdict: Reasoned,
    pub(crate) counts: Counts,
    pub(crate) limiter: Limiter,
}

/// The results, and the findings that act on numbers.
pub(crate) struct Judged<'r> {
    pub(crate) record: &'r Record,
    pub(crate) answered: &'r [CaseAnswers<'r>],
    pub(crate) results: &'r [Measured],
    pub(crate) acting: &'r [Finding],
}

impl Judged<'_> {
    /// The first lines, by the study.
    pub(crate) fn summarize_study(&self, studied: &Studied) -> ReportHead {
        let quoted = studies::quoted(studied, self.results);
        let first = match studied {
            Studied::Limit(curve) => self.head_of_curve(curve, &quoted),
            Studied::Sweep(grid) => self.head_of_grid(grid, &quoted),
            Studied::Jobs | Studied::Profile(_) => self.head_of_jobs(&quoted),
            Studied::Layers(_)
            | Studied::Interfaces(_)
            | Studied::Targets(_)
            | Studied::Hosts(_)
            | Studied::Commands(_) => self.head_of_results(&quoted),
        };
        ReportHead { answer: studies::answer(studied), ..first }
    }

    /// The first lines for jobs without a study. If only other load withholds another result, the session is suspect as long as the headline
    /// has a number.
    fn head_of_jobs(&self, quoted: &[&Measured]) -> ReportHead {
        let mut first = self.head_of_results(quoted);
        let withholds = |r: &&&Measured| r.verdict == Verdict::Invalid;
        let by_others = quoted.iter().filter(withholds).all(|r| is_withheld_by_others(r, self.acting));
        if first.headline.value.is_some() && by_others {
            first.verdict.verdict = first.verdict.verdict.min(Verdict::Suspect);
        }
        first
    }

    /// The first lines for results whose headline the plan names.
    fn head_of_results(&self, quoted: &[&Measured]) -> ReportHead {
        let headline = headline(self.record, self.answered, self.results);
        self.head_about(headline, self.headline_job_result(), quoted)
    }

    /// The first lines for a load curve, about the load that its answer depends on.
    fn head_of_curve(&self, curve: &LoadCurve, quoted: &[&Measured]) -> ReportHead {
        let headline = studies::headline_of_curve(self.record, curve, self.answered);
        let first = curve.rests_on.first().and_then(|at| self.results.get(*at));
        let mut summary = self.head_about(headline, first, quoted);
        if summary.headline.value.is_none() {
            summary.verdict = Reasoned::new(Verdict::Invalid, curve.sentence.clone());
            // The number of valid loads does not matter without an answer.
            summary.counts.sentence = None;
        }
        // Nothing limits a load below the capacity; the limiter is that of the closed loop.
        ReportHead { limiter: limiter_of(self.headline_job_result()), ..summary }
    }

    /// The first lines for a grid, about the best cell. Findings about other cells only explain why they are not quoted.
    fn head_of_grid(&self, grid: &Sweep, quoted: &[&Measured]) -> ReportHead {
        let headline = studies::headline_of_grid(grid, self.results);
        let first = studies::first_of_grid(grid, self.results);
        let mut summary = self.head_about(headline, first, quoted);
        if first.is_none() {
            let (verdict, reason) = studies::undecided(grid);
            summary.verdict = Reasoned::new(verdict, reason);
        }
        if let (Verdict::Valid, Some(why)) = (summary.verdict.verdict, studies::unsteady(grid)) {
            summary.verdict = Reasoned::new(Verdict::Suspect, why);
        }
        summary
    }

    /// The first lines about a result, with the counts over all quoted results.
    fn head_about(&self, headline: Headline, first: Option<&Measured>, quoted: &[&Measured]) -> ReportHead {
        let accepted = first.map_or_else(Vec::new, |result| result.accepted.clone());
        ReportHead {
            answer: None,
            headline: Headline { accepted, ..headline },
            verdict: session_verdict(first, quoted, self.acting),
            counts: counts(quoted, self.acting),
            limiter: limiter_of(first),
        }
    }

    fn headline_job_result(&self) -> Option<&Measured> {
        headline_result(self.record, self.answered, self.results)
    }
}

fn limiter_of(result: Option<&Measured>) -> Limiter {
    result.map_or_else(limiter::nothing_measured, |r| r.limiter.clone())
}

#[cfg(test)]
use crate::{Judging, fixture::Fixture, judge};
#[cfg(test)]
use model::job::Pattern;

#[cfg(test)]
fn judged(fixture: &Fixture, accept: &[CheckId]) -> Report {
    judge(&fixture.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
}

/// A record with zeros in ten of the 64 blocks that were read before the runs (A05), which biases the number.
#[cfg(test)]
fn biased(fixture: &Fixture) -> Record {
    let mut record = fixture.record();
    let targets = record.evidence.iter_mut().flat_map(|snapshot| &mut snapshot.targets);
    targets.filter_map(|t| t.probe.as_mut()?.as_mut().ok()).for_each(|probe| probe.zero_blocks = 10);
    record
}

#[test]
fn an_honest_record_is_valid() {
    for fixture in [Fixture::honest(), Fixture::honest_write(), Fixture::honest_loop()] {
        let report = judged(&fixture, &[]);
        assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 0);
        assert!(report.headline.value.is_some() && report.headline.interval.is_some());
    }
}

#[test]
fn the_page_cache_gets_its_name_and_exit_code_and_both_can_be_accepted() {
    let cached = Fixture { delivered: 0.0, cache: model::job::Cache::Buffered, ..Fixture::honest() };
    let report = judged(&cached, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert_eq!(report.headline.name, "4K random read, depth 32, page cache");
    assert!(report.headline.value.is_some());
    assert_eq!(exit_code(&report), 1);
    assert_eq!(exit_code(&judged(&cached, &[CheckId::A01])), 0);
}

#[test]
fn a_void_finding_withholds_value_and_interval() {
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    let report = judged(&holes, &[]);
    assert_eq!(
        (report.verdict, report.headline.value, report.headline.interval),
        (Verdict::Invalid, None, None)
    );
    assert!(report.results[0].void && report.verdict_reason.contains("A04"));
    assert_eq!(report.verdict_by, Some(CheckId::A04));
    assert_eq!(exit_code(&report), 1);
}

#[test]
fn an_accepted_finding_shows_the_number_marks_it_and_makes_it_suspect() {
    let holes = Fixture { hole_share: 1.0, ..Fixture::honest() };
    let report = judged(&holes, &[CheckId::A04]);
    assert_eq!((report.verdict, exit_code(&report)), (Verdict::Suspect, 0), "{}", report.verdict_reason);
    assert!(report.headline.value.is_some() && !report.results[0].void);
    assert_eq!(
        (&report.headline.accepted, &report.results[0].accepted),
        (&vec![CheckId::A04], &vec![CheckId::A04])
    );
    assert!(report.verdict_reason.contains("A04") && report.verdict_reason.contains("accepted"));
    // One of two, or another one, shows nothing.
    let two = Fixture { errors: 1, ..holes.clone() };
    for (fixture, accept) in [(&two, CheckId::A04), (&two, CheckId::B12), (&holes, CheckId::B12)] {
        let report = judged(fixture, &[accept]);
        assert_eq!((report.verdict, report.headline.value, exit_code(&report)), (Verdict::Invalid, None, 1));
    }
    let both = judged(&two, &[CheckId::B12, CheckId::A04]);
    assert_eq!((both.verdict, both.results[0].accepted.len()), (Verdict::Suspect, 2));
    // An accepted bias; a note, which acts on no number; and no number that could be shown.
    let record = biased(&Fixture::honest());
    let accepting =
        |accept: &[CheckId]| judge(&record, &Judging { accept: accept.to_vec(), ..Judging::default() });
    assert!(accepting(&[]).results[0].accepted.is_empty());
    let report = accepting(&[CheckId::A05]);
    assert_eq!((report.verdict, &report.results[0].accepted), (Verdict::Suspect, &vec![CheckId::A05]));
    let honest = judged(&Fixture::honest(), CheckId::ALL);
    assert_eq!((honest.verdict, honest.results[0].accepted.len()), (Verdict::Valid, 0));
    let nothing = judged(&Fixture { runs: 0, ..holes }, &[CheckId::A04]);
    assert_eq!((nothing.verdict, nothing.headline.value), (Verdict::Invalid, None));
}

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
        record.header.plan.fail_if = model::spec::pace::conditions("iops<1").unwrap();
        for accept in accepts {
            let judging = Judging { accept: accept.to_vec(), ..Judging::default() };
            let judged = judge(&record, &judging);
            // The condition as it is judged, and then every other outcome.
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
                    // A bias leaves the number its name, a relabelled number is another one.
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
    record.header.plan.fail_if = model::spec::pace::conditions("other: iops<1").unwrap();
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
    // Without a number, the study and the verdict give the same reason, once.
    let same = Answer { word: AnswerWord::CannotTell, sentence: report.verdict_reason.clone() };
    let answer = printed_answer(&Report { answer: Some(same), ..report }).unwrap();
    assert_eq!(answer.sentence, judged(&cached, &[]).verdict_reason);
    // Accepted, the answer stands.
    let accepted = Report { answer: Some(answer.clone()), ..judged(&cached, &[CheckId::A01]) };
    assert_eq!(printed_answer(&accepted), Some(answer));
}

#[test]
fn an_unchecked_ledger_is_never_valid() {
    let report = judged(&Fixture { iostats_off: true, ..Fixture::honest() }, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("iostats"), "{}", report.verdict_reason);
    assert_eq!(exit_code(&report), 0);
}

#[test]
fn an_unresolved_stack_is_never_valid() {
    let mut record = Fixture::honest_loop().record();
    record.header.hosts[0].places[0].blind =
        Some("/images/a, the backing file of loop0, cannot be found".into());
    let report = judge(&record, &Judging::default());
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("the backing file of loop0"), "{}", report.verdict_reason);
}

#[test]
fn no_run_and_no_operation_are_invalid_with_a_reason() {
    for (fixture, reason) in [
        (Fixture { runs: 0, ..Fixture::honest() }, "none of its runs"),
        (Fixture { ops: 0, ..Fixture::honest() }, "no operation"),
    ] {
        let report = judged(&fixture, &[]);
        assert_eq!(report.verdict, Verdict::Invalid);
        assert!(report.verdict_reason.contains(reason), "{}", report.verdict_reason);
        assert_eq!(exit_code(&report), 1);
    }
}

#[test]
fn the_unit_follows_the_pattern() {
    let sequential = Fixture { pattern: Pattern::Sequential, block_bytes: 1 << 20, ..Fixture::honest() };
    assert_eq!(judged(&sequential, &[]).headline.unit, "MB/s");
    let null = Fixture { role: model::plan::Role::None, engine: "null", cpu_share: 1.0, ..Fixture::honest() };
    let report = judged(&null, &[]);
    assert_eq!(report.verdict, Verdict::Valid, "{}", report.verdict_reason);
    assert_eq!(report.headline.name, "4K random read, depth 32, null engine, no storage");
}

#[test]
fn counts_name_up_to_two_results_without_a_number() {
    let result = |name: &str, verdict| {
        let measured = judge(&Fixture::honest().record(), &Judging::default()).results.remove(0);
        Measured { name: name.into(), verdict, ..measured }
    };
    let (first, other) = (result("first", Verdict::Valid), result("other", Verdict::Suspect));
    let sentence = |quoted: &[&Measured], findings: &[Finding]| counts(quoted, findings).sentence;
    let counted = counts(&[&first, &other], &[]);
    assert_eq!((counted.valid, counted.suspect, counted.invalid), (1, 1, 0));
    assert_eq!(counted.sentence.as_deref(), Some("2 results: 1 valid, 1 suspect"));
    assert_eq!(sentence(&[&first, &first], &[]).as_deref(), Some("2 results, all valid"));
    assert_eq!(sentence(&[&other], &[]), None);
    let holes = judged(&Fixture { hole_share: 1.0, name: "a".into(), ..Fixture::honest() }, &[]);
    let (a, b) = (&holes.results[0], result("b", Verdict::Invalid));
    let b = Measured { runs: Vec::new(), ..b };
    assert_eq!(
        sentence(&[&first, a, &b], &holes.findings).as_deref(),
        Some("3 results: 1 valid, 2 without a number (a: holes read; b: no run)")
    );
    assert_eq!(sentence(&[a, a, &b], &holes.findings).as_deref(), Some("3 results: 3 without a number"));
    // The worst is shown, and the headline first if it is as bad.
    assert_eq!(
        session_verdict(Some(&first), &[&first, &other], &[]).verdict,
        Verdict::Valid,
        "by the findings, of which there are none"
    );
}

#[test]
fn other_load_that_withholds_another_result_leaves_the_headline_its_number() {
    let judged_with = |busy: &[usize], second: Fixture| {
        let first = Fixture { name: "first".into(), ..Fixture::honest() };
        let second = Fixture { name: "second".into(), ..second };
        let mut record = crate::fixture::together(&[first, second]);
        let runs = record.runs.iter_mut().filter(|r| busy.contains(&r.start.job));
        let workers = runs.filter_map(|r| r.end.as_mut()).flat_map(|end| &mut end.workers);
        workers.for_each(|w| w.ready_ns = Ok(w.wall_ns / 2));
        judge(&record, &Judging::default())
    };
    let report = judged_with(&[1], Fixture::honest());
    assert!(report.results[1].void && !report.results[0].void, "{:#?}", report.counts);
    assert_eq!((report.verdict, exit_code(&report)), (Verdict::Suspect, 0), "{}", report.verdict_reason);
    assert!(
        report.counts.sentence.as_ref().is_some_and(|s| s.contains("1 without a number (second: CPU busy)"))
    );
    for busy in [&[0][..], &[0, 1]] {
        assert_eq!(judged_with(busy, Fixture::honest()).verdict, Verdict::Invalid, "{busy:?}");
    }
    // Holes are a defect of the target, not of this run.
    let holes = judged_with(&[], Fixture { hole_share: 1.0, ..Fixture::honest() });
    assert_eq!((holes.verdict, exit_code(&holes)), (Verdict::Invalid, 1));
}
