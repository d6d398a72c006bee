//! The verdict and the headline.
//!
//! 1. [`result_verdict`] decides from the findings whether a result is VALID, SUSPECT or INVALID.
//! 2. [`Judged`] takes the worst verdict of the quoted results, and writes the head of the report about the result of
//!    the headline.

use crate::case::no_run;
use crate::findings::{
    CaseAnswers, accept_words, findings_about, join_names, measuring_command, typed_acceptance,
    unaccepted_findings,
};
use crate::limiter;
use model::finding::{CheckId, Checked, Outcome, Severity};
use model::record::{Record, RunEnding};
use model::report::{Counts, CountsAs, Headline, Limiter, Measured, QuotedRate, Verdict};
use model::units::show_count;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

/// Up to this many results without a number are named, each with its reason. If there are more, each reason is given once, and several
/// reasons have the number of their results.
const MAX_NAMED: usize = 2;

/// Checks that must be answered to know what was measured: whether the target is memory (A11), whether the work arrived
/// at the lowest layer (A12), and whether it was counted at all (A13). If one of them could not be done, the result is
/// suspect.
const MUST_BE_ANSWERED: [CheckId; 3] = [CheckId::A13, CheckId::A11, CheckId::A12];

/// Group of the checks for other load on the machine.
pub(crate) const OTHER_LOAD_GROUP: char = 'D';

/// Checks whose findings doubt that synced data is stable.
const OF_SYNCS: [CheckId; 4] = [CheckId::C01, CheckId::C02, CheckId::C03, CheckId::C05];

/// Returns the number of a result under its true name. The value is `None` if a finding invalidates the result.
fn build_headline(result: Option<&Measured>) -> Headline {
    let Some(result) = result else {
        return Headline { name: "nothing".into(), unit: "IOPS".into(), ..Headline::default() };
    };
    let QuotedRate { unit, value, interval } = result.quoted_rate();
    Headline { name: result.true_name.clone(), value, unit: unit.into(), interval, ..Headline::default() }
}

/// What to type to pass a condition that the runs cannot decide.
pub(crate) const PASS_IF_UNDECIDED: &str = "--inconclusive pass gives INCONCLUSIVE exit code 0 instead of 4.";

/// Returns what an undecided condition counts as, and what to add to its sentence. `asked` is the user's request, and
/// `ended_early` names the session or side that ended early. After an early end, the condition never counts as PASS,
/// because the missing runs could have decided it.
pub(crate) fn judge_undecided(
    asked: Option<CountsAs>,
    ended_early: Option<&str>,
) -> (Option<CountsAs>, String) {
    match (asked, ended_early) {
        (None, None) => (None, format!(" {PASS_IF_UNDECIDED}")),
        (Some(CountsAs::Pass), Some(side)) => {
            (None, format!(" {side} ended early, so this does not count as PASS."))
        }
        _ => (asked, String::new()),
    }
}

/// A verdict and why.
#[derive(Debug)]
pub(crate) struct ReasonedVerdict {
    pub(crate) verdict: Verdict,
    /// The reason in one sentence.
    pub(crate) reason: String,
    /// The check that gave the reason; `None` if no check did.
    pub(crate) by: Option<CheckId>,
}

impl ReasonedVerdict {
    /// Returns a verdict whose reason does not come from a check.
    pub(crate) fn new(verdict: Verdict, reason: String) -> Self {
        Self { verdict, reason, by: None }
    }
}

/// Returns the verdict on the quoted results: the worst one, with the reason in one sentence.
/// `counts_as` returns the verdict with which a result counts for the session; it may be milder
/// than the result's own. Of several results that count as equally bad, the one with the worst own
/// verdict gives the reason. If these are equal too, `first` gives it.
pub(crate) fn session_verdict(
    first: Option<&Measured>,
    quoted: &[&Measured],
    checks: &[Checked],
    counts_as: impl Fn(&Measured) -> Verdict,
) -> ReasonedVerdict {
    let nothing =
        || ReasonedVerdict::new(Verdict::Invalid, "nothing was planned that could be measured.".to_owned());
    let Some((first, worst)) = first.zip(quoted.iter().map(|r| counts_as(r)).max()) else { return nothing() };
    let deciding = std::iter::once(first).chain(quoted.iter().copied()).filter(|r| counts_as(r) == worst);
    deciding.min_by_key(|r| Reverse(r.verdict)).map_or_else(nothing, |result| {
        let reasoned = result_verdict(result, checks);
        ReasonedVerdict { verdict: reasoned.verdict.min(worst), ..reasoned }
    })
}

/// Returns the verdict on one result, with the reason in one sentence. A finding that the user accepts withholds no
/// number, but the result is suspect.
pub(crate) fn result_verdict(result: &Measured, checks: &[Checked]) -> ReasonedVerdict {
    let found_all = |severity| findings_about(checks, &result.name, severity);
    if let Some(f) = deciding_finding(result, checks) {
        return verdict_by_finding(Verdict::Invalid, f, "invalidates");
    }
    if result.total.is_none() {
        let no_operation = || "no operation completed within a measured window".into();
        let why = if result.runs.is_empty() { no_run() } else { no_operation() };
        return ReasonedVerdict::new(Verdict::Invalid, format!("{} has no number: {why}.", result.name));
    }
    if let Some(f) = found_all(Severity::Invalidates).next() {
        let reason = format!("{} {} is accepted for {}: {}", f.id, f.name, join_names(&f.about), f.sentence);
        return ReasonedVerdict { verdict: Verdict::Suspect, reason, by: Some(f.id) };
    }
    if let Some(f) = found_all(Severity::Relabels).next() {
        return relabelled(f);
    }
    if let Some(f) = found_all(Severity::Biases).next() {
        return verdict_by_finding(Verdict::Suspect, f, "biases");
    }
    let is_unchecked = |f: &&Checked| MUST_BE_ANSWERED.contains(&f.id) && f.outcome == Outcome::NotChecked;
    if let Some(f) = checks.iter().filter(is_unchecked).find(|f| f.about.contains(&result.name)) {
        let reason = format!("{}: {}.", join_names(&f.about), f.sentence);
        return ReasonedVerdict { verdict: Verdict::Suspect, reason, by: Some(f.id) };
    }
    ReasonedVerdict::new(Verdict::Valid, "No check found anything that changes what the number means.".into())
}

/// Returns the verdict on a session that ended before its first run because every result would be invalid; `None` for
/// other sessions.
pub(crate) fn not_measured(record: &Record) -> Option<ReasonedVerdict> {
    let Some(RunEnding::NotMeasured(why)) = record.end.as_ref().map(|end| &end.ending) else { return None };
    Some(ReasonedVerdict::new(Verdict::Invalid, why.clone()))
}

/// Whether a result has no number only because of other load on the machine (checks D).
pub(crate) fn is_withheld_by_others(result: &Measured, checks: &[Checked]) -> bool {
    let voids = unaccepted_findings(checks, &result.name, &[Severity::Invalidates]);
    let mut ids = voids.map(|f| f.id).peekable();
    ids.peek().is_some() && ids.all(|id| id.group() == OTHER_LOAD_GROUP)
}

/// Returns the finding that decides that a result has no number. Other load is not enough to make a session
/// invalid, so another finding comes first.
fn deciding_finding<'f>(result: &Measured, checks: &'f [Checked]) -> Option<&'f Checked> {
    let voids = unaccepted_findings(checks, &result.name, &[Severity::Invalidates]);
    voids.min_by_key(|f| f.id.group() == OTHER_LOAD_GROUP)
}

/// Counts the quoted results by verdict.
fn count_by_verdict(quoted: &[&Measured], checks: &[Checked]) -> Counts {
    let count = |verdict| quoted.iter().filter(|r| r.verdict == verdict).count();
    let counts = Counts {
        valid: count(Verdict::Valid),
        suspect: count(Verdict::Suspect),
        invalid: count(Verdict::Invalid),
        sentence: None,
    };
    Counts { sentence: (quoted.len() > 1).then(|| describe_counts(&counts, quoted, checks)), ..counts }
}

/// Describes the counts: `8 results: 2 valid, 5 suspect, 1 without a number (RND4K Q1T1 read: CPU busy)`.
fn describe_counts(counts: &Counts, quoted: &[&Measured], checks: &[Checked]) -> String {
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
    format!("{all} results: {}{}", parts.join(", "), reasons_without(&invalid, checks))
}

/// Returns why results have no number: ` (RND4K Q1T1 read: CPU busy)`, or for several results ` (CPU busy in 3, I/O
/// errors in 1)`.
fn reasons_without(invalid: &[&Measured], checks: &[Checked]) -> String {
    let reasons: Vec<String> = invalid.iter().map(|r| why_without(r, checks)).collect();
    let parts: Vec<String> = if invalid.len() <= MAX_NAMED {
        invalid.iter().zip(&reasons).map(|(r, why)| format!("{}: {why}", r.name)).collect()
    } else {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for why in &reasons {
            match counts.iter_mut().find(|(known, _)| known == why) {
                Some((_, count)) => *count += 1,
                None => counts.push((why, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| Reverse(*count));
        match counts.as_slice() {
            [(why, _)] => vec![(*why).to_owned()],
            several => several.iter().map(|(why, count)| format!("{why} in {count}")).collect(),
        }
    };
    let between = if invalid.len() <= MAX_NAMED { "; " } else { ", " };
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(between)) }
}

/// Returns why a result has no number, in a few words: `CPU busy`. The names of most checks are that short.
pub(crate) fn why_without(result: &Measured, checks: &[Checked]) -> String {
    match deciding_finding(result, checks) {
        Some(f) if f.id == CheckId::B12 => "I/O errors".into(),
        Some(f) if f.id == CheckId::D01 => "other load on the disk".into(),
        Some(f) if f.id == CheckId::D08 => "CPU busy".into(),
        Some(f) if f.id == CheckId::D10 => "CPU taken by the hypervisor".into(),
        Some(f) => f.name.to_lowercase().replace('_', " "),
        None if result.runs.is_empty() => "no run".into(),
        None => "no operation".into(),
    }
}

/// Returns a verdict whose reason is a finding.
fn verdict_by_finding(verdict: Verdict, finding: &Checked, verb: &str) -> ReasonedVerdict {
    let Checked { id, name, sentence, .. } = finding;
    let reason = format!("{id} {name} {verb} {}: {sentence}", join_names(&finding.about));
    ReasonedVerdict { verdict, reason, by: Some(*id) }
}

/// Returns the verdict on a result that a finding relabels.
pub(crate) fn relabelled(finding: &Checked) -> ReasonedVerdict {
    verdict_by_finding(Verdict::Suspect, finding, "relabels")
}

/// Checks by id, with their names.
pub(crate) type NamedIds = BTreeMap<CheckId, String>;

/// Returns the ids and names of the findings about a result that have one of these severities and that the user did not
/// accept.
pub(crate) fn unaccepted_checks(result: &str, checks: &[Checked], severities: &[Severity]) -> NamedIds {
    unaccepted_findings(checks, result, severities).map(|f| (f.id, f.name.clone())).collect()
}

/// Returns the command that decides again on the numbers of a session, with the findings that are already accepted:
/// `fathom show ID --accept A04`. A session that was not kept must be measured again. Empty if the command for that is
/// not known.
pub(crate) fn deciding_command<'i>(
    session: Option<&str>,
    command: &[String],
    has_hosts: bool,
    accepted: impl IntoIterator<Item = &'i CheckId>,
) -> Vec<String> {
    let Some(id) = session.and_then(|file| Path::new(file).file_stem()) else {
        return measuring_command(command, has_hosts);
    };
    let show = ["fathom".to_owned(), "show".to_owned(), id.to_string_lossy().into_owned()];
    show.into_iter().chain(accept_words(accepted)).collect()
}

/// Returns what to type to accept findings: the command with the flags, or only the flags if the command is empty. The
/// caller has already named one finding; several are listed with their names: `--accept D01 --accept D08 (D01
/// FOREIGN_IO, D08 RUNQUEUE_WAIT)`.
pub(crate) fn explained_acceptance(ids: &NamedIds, command: &[String]) -> String {
    let typed = typed_acceptance(command, ids.keys());
    if ids.len() < 2 {
        return typed;
    }
    let names: Vec<String> = ids.iter().map(|(id, name)| format!("{id} {name}")).collect();
    format!("{typed} ({})", names.join(", "))
}

/// Returns what removes the cause of findings, for use before `and repeat`.
pub(crate) fn describe_fix(ids: &NamedIds) -> &'static str {
    let is_other_load = ids.keys().all(|id| *id == CheckId::D01);
    if is_other_load { "stop the other load on the disk" } else { "remove the cause" }
}

/// Returns how to decide a question on a number that findings invalidate or relabel: the fix first, then what to type
/// to decide all the same. `command` comes from [`deciding_command`].
pub(crate) fn fix_or_accept(ids: &NamedIds, command: &[String]) -> String {
    let fix = describe_fix(ids);
    let fix = fix[..1].to_uppercase() + &fix[1..];
    format!("{fix} and repeat, or type {} to decide all the same.", explained_acceptance(ids, command))
}

/// Describes a finding for use after `but`: `C03 FLUSH_TOO_CHEAP: A flush of vda took 36 us on average: ...`.
pub(crate) fn describe_doubt(finding: &Checked) -> String {
    format!("{} {}: {}", finding.id, finding.name, finding.sentence)
}

/// The headline, verdict, counts and limiter of a report, which follow the answer.
pub(crate) struct ReportHead {
    pub(crate) headline: Headline,
    pub(crate) verdict: ReasonedVerdict,
    pub(crate) counts: Counts,
    pub(crate) limiter: Limiter,
}

/// The results, and the checks that decide their verdicts: all except the findings that the study expects.
pub(crate) struct Judged<'r> {
    pub(crate) record: &'r Record,
    pub(crate) answered: &'r [CaseAnswers<'r>],
    pub(crate) results: &'r [Measured],
    pub(crate) counted_checks: &'r [Checked],
    /// The command that decides again; see [`deciding_command`].
    pub(crate) deciding_command: &'r [String],
}

impl Judged<'_> {
    /// Returns the unaccepted findings of [`OF_SYNCS`] about these results. Leaves out jobs that do not sync within the
    /// measured time, because their numbers include no sync.
    pub(crate) fn sync_doubts(&self, results: &[&str]) -> Vec<&Checked> {
        let syncs = |(answers, result): &(&CaseAnswers, &Measured)| {
            answers.case.syncs_within_window() && results.contains(&result.name.as_str())
        };
        let synced: Vec<&String> =
            self.answered.iter().zip(self.results).filter(syncs).map(|(_, result)| &result.name).collect();
        let is_doubt =
            |f: &&Checked| f.outcome == Outcome::Finding && OF_SYNCS.contains(&f.id) && !f.accepted;
        let doubts = self.counted_checks.iter().filter(is_doubt);
        doubts.filter(|f| f.about.iter().any(|name| synced.contains(&name))).collect()
    }

    /// Adds to VALID a finding that doubts that synced data of the quoted results is stable. No number changes, so the verdict remains.
    pub(crate) fn qualify_valid_verdict(
        &self,
        verdict: ReasonedVerdict,
        quoted: &[&Measured],
    ) -> ReasonedVerdict {
        let names: Vec<&str> = quoted.iter().map(|r| r.name.as_str()).collect();
        match self.sync_doubts(&names).first() {
            Some(doubt) if verdict.verdict == Verdict::Valid => ReasonedVerdict {
                reason: format!("The numbers hold, but {}", describe_doubt(doubt)),
                by: Some(doubt.id),
                ..verdict
            },
            _ => verdict,
        }
    }

    /// Returns the head for independent jobs. If other load is the only reason why a result has no
    /// number, the session is suspect instead of invalid, as long as the headline has a number.
    pub(crate) fn head_of_jobs(&self, quoted: &[&Measured]) -> ReportHead {
        let head = self.head_of_results(quoted);
        if head.headline.value.is_none() {
            return head;
        }
        let counts_as = |r: &Measured| {
            if is_withheld_by_others(r, self.counted_checks) {
                r.verdict.min(Verdict::Suspect)
            } else {
                r.verdict
            }
        };
        let verdict = session_verdict(self.headline_job_result(), quoted, self.counted_checks, counts_as);
        ReportHead { verdict, ..head }
    }

    /// Returns the head of the report. Its headline is the first result of the plan's headline job.
    pub(crate) fn head_of_results(&self, quoted: &[&Measured]) -> ReportHead {
        let first = self.headline_job_result();
        self.head_about(build_headline(first), first, quoted)
    }

    /// Returns the head about a result, with the counts over all quoted results.
    pub(crate) fn head_about(
        &self,
        headline: Headline,
        result: Option<&Measured>,
        quoted: &[&Measured],
    ) -> ReportHead {
        let accepted = result.map_or_else(Vec::new, |result| result.accepted.clone());
        ReportHead {
            headline: Headline { accepted, ..headline },
            verdict: session_verdict(result, quoted, self.counted_checks, |r| r.verdict),
            counts: count_by_verdict(quoted, self.counted_checks),
            limiter: limiter_of(result),
        }
    }

    /// Returns the first result of the plan's headline job.
    pub(crate) fn headline_job_result(&self) -> Option<&Measured> {
        let job = self.record.header.plan.headline;
        self.results.get(self.answered.iter().position(|a| a.case.job_index == job)?)
    }
}

/// Returns the limiter of a result, or that nothing was measured.
pub(crate) fn limiter_of(result: Option<&Measured>) -> Limiter {
    result.map_or_else(limiter::nothing_measured, |r| r.limiter.clone())
}

#[cfg(test)]
use crate::{Judging, exit_code, fixture::Fixture, judge};
#[cfg(test)]
use model::job::Pattern;
#[cfg(test)]
use model::report::Report;

#[cfg(test)]
pub(crate) fn judged(fixture: &Fixture, accept: &[CheckId]) -> Report {
    judge(&fixture.record(), &Judging { accept: accept.to_vec(), ..Judging::default() })
}

/// A record with zeros in ten of the 64 blocks that were read before the runs (A05), which biases the number.
#[cfg(test)]
pub(crate) fn biased(fixture: &Fixture) -> Record {
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
    // Accepting one of two findings, or another finding, shows no number.
    let two = Fixture { errors: 1, ..holes.clone() };
    for (fixture, accept) in [(&two, CheckId::A04), (&two, CheckId::B12), (&holes, CheckId::B12)] {
        let report = judged(fixture, &[accept]);
        assert_eq!((report.verdict, report.headline.value, exit_code(&report)), (Verdict::Invalid, None, 1));
    }
    let both = judged(&two, &[CheckId::B12, CheckId::A04]);
    assert_eq!((both.verdict, both.results[0].accepted.len()), (Verdict::Suspect, 2));
    // Three cases: an accepted bias, a note (which acts on no number), and no number that could be shown.
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

#[test]
fn a_disk_without_counters_is_never_valid() {
    let report = judged(&Fixture { iostats_off: true, ..Fixture::honest() }, &[]);
    assert_eq!(report.verdict, Verdict::Suspect);
    assert!(report.verdict_reason.contains("iostats"), "{}", report.verdict_reason);
    assert_eq!(exit_code(&report), 0);
}

#[test]
fn an_unresolved_stack_is_never_valid() {
    let mut record = Fixture::honest_loop().record();
    record.header.hosts[0].places[0].unresolved_reason =
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
fn advice_to_accept_is_a_command_to_type() {
    let advice = |session, command: &[&str], has_hosts, ids: &[(CheckId, &str)]| {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let ids = ids.iter().map(|(id, name)| (*id, (*name).to_owned())).collect();
        fix_or_accept(&ids, &deciding_command(session, &command, has_hosts, &[CheckId::B12]))
    };
    let (load, holes) = ((CheckId::D01, "FOREIGN_IO"), (CheckId::A04, "HOLES_READ"));
    let run = ["/usr/bin/fathom", "run", "--fail-if", "p99>1ms", "/data"];
    // A kept session is not measured again, and accepted findings remain accepted.
    assert_eq!(
        advice(Some("/home/me/20260314-150926-4242.fathom"), &run, false, &[load]),
        "Stop the other load on the disk and repeat, or type `fathom show 20260314-150926-4242 --accept \
         B12 --accept D01` to decide all the same."
    );
    assert_eq!(
        advice(None, &run, false, &[holes, load]),
        "Remove the cause and repeat, or type `fathom run --fail-if 'p99>1ms' /data --accept A04 --accept D01` (A04 \
         HOLES_READ, D01 FOREIGN_IO) to decide all the same."
    );
    // The command is not known, it is a part of what was typed, or it has no such flag.
    let fio = ["fathom", "fio", "job.fio"];
    for (command, has_hosts) in [(&[][..], false), (&run[..], true), (&fio[..], false)] {
        let advice = advice(None, command, has_hosts, &[holes]);
        assert!(advice.contains(" or type --accept A04 to decide"), "{advice}");
    }
}

#[test]
fn counts_name_up_to_two_results_without_a_number_and_count_the_reasons_of_more() {
    let result = |name: &str, verdict| {
        let measured = judge(&Fixture::honest().record(), &Judging::default()).results.remove(0);
        Measured { name: name.into(), verdict, ..measured }
    };
    let (first, other) = (result("first", Verdict::Valid), result("other", Verdict::Suspect));
    let sentence = |quoted: &[&Measured], checks: &[Checked]| count_by_verdict(quoted, checks).sentence;
    let counted = count_by_verdict(&[&first, &other], &[]);
    assert_eq!((counted.valid, counted.suspect, counted.invalid), (1, 1, 0));
    assert_eq!(counted.sentence.as_deref(), Some("2 results: 1 valid, 1 suspect"));
    assert_eq!(sentence(&[&first, &first], &[]).as_deref(), Some("2 results, all valid"));
    assert_eq!(sentence(&[&other], &[]), None);
    let holes = judged(&Fixture { hole_share: 1.0, name: "a".into(), ..Fixture::honest() }, &[]);
    let (a, b) = (&holes.results[0], result("b", Verdict::Invalid));
    let b = Measured { runs: Vec::new(), ..b };
    assert_eq!(
        sentence(&[&first, a, &b], &holes.checks).as_deref(),
        Some("3 results: 1 valid, 2 without a number (a: holes read; b: no run)")
    );
    assert_eq!(
        sentence(&[a, &b, a], &holes.checks).as_deref(),
        Some("3 results: 3 without a number (holes read in 2, no run in 1)")
    );
    assert_eq!(
        sentence(&[&first, a, a, a], &holes.checks).as_deref(),
        Some("4 results: 1 valid, 3 without a number (holes read)")
    );
    // A verdict follows from findings: `other` is suspect, but without a finding the session is valid.
    assert_eq!(
        session_verdict(Some(&first), &[&first, &other], &[], |r| r.verdict).verdict,
        Verdict::Valid,
        "no finding is given"
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
    // Next to other load, the holes are the reason.
    let both = judged_with(&[1], Fixture { hole_share: 1.0, ..Fixture::honest() });
    assert_eq!((both.verdict, both.verdict_by), (Verdict::Invalid, Some(CheckId::A04)));
}
