//! The checks of a result: what a check is, and the table of all checks.
//!
//! A check is a constant in the file of its subject, next to the function that decides it, and a line in the table of its group. Users
//! look up the ids, so an id never changes. `crate::findings` runs the checks and merges their answers into findings.

mod durability;
mod environment;
pub use environment::is_remote;
mod hosts;
mod io_as_requested;
pub(crate) mod prelude;
mod statistics;
mod storage_reached;
#[cfg(test)]
mod tests;

use crate::case::{Case, CaseRun};
use crate::threshold::Share;
use model::Known;
use model::finding::{CheckId, Severity};
use model::histogram::Histogram;
use model::job::Kind;
use model::machine::Layer;
use model::record::KindEnd;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use environment::block_layer::{
    LimitUnit, ONE_TO_ONE, OUTER_CGROUPS_HIDDEN, hard_limits, most_iops,
};
pub use environment::clock::EXPENSIVE_CLOCK_PS;
pub(crate) use environment::cpu::{
    CPU_BOUND_ABOVE, CPU_WAIT_ABOVE, busiest_worker_cpu_share, waited_for_cpu,
};
pub(crate) use environment::disturbance::FOREIGN_ABOVE;
pub(crate) use hosts::list_hosts;
pub(crate) use io_as_requested::queue::one_at_a_time;
pub(crate) use io_as_requested::requests::SAME_BYTES_WITHIN as SAME_REQUEST_BYTES;
pub(crate) use statistics::runs::severity_of_spread;
#[cfg(test)]
pub(crate) use statistics::shaped;
pub(crate) use storage_reached::page_cache::CACHED_ABOVE;
pub use storage_reached::page_cache::severity_of_cached_share;

/// The groups of the catalogue: the title of each group, and its checks.
pub(crate) const GROUPS: &[(&str, &[Check])] = &[
    ("Did the I/O reach the device at all?", storage_reached::CHECKS),
    ("Was it the I/O that you requested?", io_as_requested::CHECKS),
    ("Do the written data survive a power cut?", durability::CHECKS),
    ("Interference and environment", environment::CHECKS),
    ("Time and statistics", statistics::CHECKS),
    ("Did the hosts measure as one?", hosts::CHECKS),
];

/// Returns every check of a result, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = &'static Check> {
    GROUPS.iter().flat_map(|(_, checks)| *checks)
}

/// A check of a result: it tests one belief.
pub struct Check {
    /// Catalogue id.
    pub id: CheckId,
    /// Name, such as `CACHE_SERVED`.
    pub name: &'static str,
    /// The user's assumption that the check tests, such as `the reads measured the device, not memory`.
    pub belief: &'static str,
    /// Kernel files, system calls and counters that the check reads. This field and the next four are texts of the check's
    /// page in the documentation: sentences in Markdown without headings.
    pub reads: &'static str,
    /// The formula with the value of every threshold and the reason for it.
    pub formula: fn() -> String,
    /// Commands that make the check fire.
    pub provoke: &'static str,
    /// How to fix the cause. A finding shows this text unless it has its own [`Detail::fix`].
    pub fix: &'static str,
    /// When to accept the finding instead.
    pub accept: &'static str,
    /// Whether the check has a question about a case. Otherwise its answer is [`Answer::DoesNotApply`].
    pub applies: fn(&Case) -> bool,
    /// The function that decides.
    pub ask: Ask,
    /// A record on which the check fires, or `None` for a check that never has a finding.
    #[cfg(test)]
    pub fires: Option<fn() -> model::record::Record>,
    /// A record that lacks what the check needs.
    #[cfg(test)]
    pub blind: fn() -> model::record::Record,
}

/// The function that decides a check. An error means "not checked" and gives the reason.
pub enum Ask {
    /// Needs only the case.
    Alone(fn(&Case) -> Known<Answer>),
    /// Does not apply if one of these checks has a finding: that already explains what this check
    /// would find.
    Unless(&'static [CheckId], fn(&Case) -> Known<Answer>),
    /// Runs after these checks and gets their answers, so that two checks do not report the same cause.
    After(&'static [CheckId], fn(&Case, &Earlier) -> Known<Answer>),
}

/// The answers of checks about one case.
pub(crate) type Answers = BTreeMap<CheckId, Known<Answer>>;

/// The answers of the checks that another check runs after.
pub struct Earlier<'a> {
    ids: &'static [CheckId],
    answers: &'a Answers,
}

impl Earlier<'_> {
    /// Returns the answer of the check with this id. `None` if that check did not run, or if the asking check does not name
    /// the id in [`Ask`]: a check that is not named may run later.
    pub(crate) fn answer(&self, id: CheckId) -> Option<&Known<Answer>> {
        self.ids.contains(&id).then(|| self.answers.get(&id)).flatten()
    }

    /// Whether the check with this id has a finding.
    pub(crate) fn finds(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Finding(_))))
    }

    /// Whether the check with this id has a finding that relabels the result.
    pub(crate) fn relabels(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Finding(f))) if f.renames.is_some())
    }

    /// Whether the belief of the check with this id is known to hold.
    pub(crate) fn holds(&self, id: CheckId) -> bool {
        matches!(self.answer(id), Some(Ok(Answer::Holds(..))))
    }
}

impl Check {
    /// Returns the checks that this check runs after.
    pub(crate) fn after(&self) -> &'static [CheckId] {
        match self.ask {
            Ask::Alone(_) => &[],
            Ask::Unless(earlier, _) | Ask::After(earlier, _) => earlier,
        }
    }

    /// Runs the check with the answers so far. If the evidence of some runs is missing, the check can still have a
    /// finding about the other runs:
    ///
    /// 1. If the check cannot answer, it is asked about each run alone, or about groups if there are many runs. A run or
    ///    group for which it gives the same reason lacks evidence.
    /// 2. The check is asked again without these runs, until it answers or no other run lacks evidence. This is done at
    ///    most [`MAX_REASONS`] times: further reasons come from figures, which change with the runs.
    /// 3. Only a finding about the remaining runs is returned. A belief does not hold if a run lacks evidence.
    ///
    /// If all runs have their evidence but their figures do not decide, no run is left out. Such an answer is
    /// [`Answer::Undecided`], which becomes an error here, or an error that contains figures and therefore differs for a single run.
    pub(crate) fn ask(&self, case: &Case, answers: &Answers) -> Known<Answer> {
        let first_why = match self.ask_about(case, answers) {
            Err(why) => why,
            // The figures of all runs leave the answer open. Leaving runs out would be a choice of runs.
            Ok(Answer::Undecided(why)) => return Err(why),
            decided => return decided,
        };
        let (mut remaining_runs, mut last_why) = (Arc::clone(&case.runs), first_why.clone());
        for _ in 0..MAX_REASONS {
            let has_other_answer = |runs: &&[CaseRun]| {
                let answer = self.ask_about(&case.with_runs(*runs), answers);
                !matches!(answer, Err(why) if is_same_reason(&why, &last_why))
            };
            let groups = remaining_runs.chunks(remaining_runs.len().div_ceil(MAX_GROUPS).max(1));
            let runs_with_evidence: Arc<[CaseRun]> =
                groups.filter(has_other_answer).flatten().copied().collect();
            let checked_runs = runs_with_evidence.len();
            if checked_runs == 0 || checked_runs == remaining_runs.len() {
                break;
            }
            remaining_runs = Arc::clone(&runs_with_evidence);
            match self.ask_about(&case.with_runs(runs_with_evidence), answers) {
                Ok(Answer::Finding(mut found)) => {
                    let were = if checked_runs == 1 { "was" } else { "were" };
                    found.sentence += &format!(
                        " Only {checked_runs} of {} runs {were} checked, the others not: {first_why}.",
                        case.runs.len()
                    );
                    // A few runs do not show what the number of all runs is.
                    if found.severity == Severity::Relabels && 2 * checked_runs < case.runs.len() {
                        (found.severity, found.renames) = (Severity::Biases, None);
                    }
                    return found.found();
                }
                Err(why) => last_why = why,
                Ok(_) => break,
            }
        }
        Err(first_why)
    }

    fn ask_about(&self, case: &Case, answers: &Answers) -> Known<Answer> {
        let earlier = Earlier { ids: self.after(), answers };
        match self.ask {
            _ if !(self.applies)(case) => Ok(Answer::DoesNotApply),
            Ask::Unless(ids, _) if ids.iter().any(|id| earlier.finds(*id)) => Ok(Answer::DoesNotApply),
            Ask::Alone(ask) | Ask::Unless(_, ask) => ask(case),
            Ask::After(_, ask) => ask(case, &earlier),
        }
    }
}

/// Whether two reasons are equal except for the number of the run that they name.
fn is_same_reason(one: &str, other: &str) -> bool {
    fn parts(why: &str) -> impl Iterator<Item = &str> {
        why.split("run ").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }
    parts(one).eq(parts(other))
}

/// The maximum number of groups of runs, because a session may have thousands of runs.
const MAX_GROUPS: usize = 64;

/// Maximum number of different reasons for which [`Check::ask`] leaves out the runs that lack evidence.
const MAX_REASONS: usize = 3;

/// Builds the formula text of a check. As in `format!`, a threshold appears as its constant (`{BIASED_ABOVE}`).
macro_rules! formula {
    ($($text:tt)*) => {
        || format!($($text)*)
    };
}
pub(crate) use formula;

/// Builds the details of a finding from its severity, its numbers, and the sentence as in `format!`.
macro_rules! detail {
    ($severity:expr, $numbers:expr, $($sentence:tt)+) => {
        Detail::new($severity, format!($($sentence)+), $numbers)
    };
}
pub(crate) use detail;

/// Builds the answer of a check that has a finding, with the arguments of [`detail`].
macro_rules! finding {
    ($($detail:tt)+) => {
        detail!($($detail)+).found()
    };
}
pub(crate) use finding;

/// The numbers that support an answer.
pub type Evidence = BTreeMap<String, f64>;

/// The answer of a check that had the data it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The belief holds. A sentence without numbers lets equal answers about many results share one line.
    Holds(Cow<'static, str>, Evidence),
    /// The belief is false.
    Finding(Detail),
    /// The check does not apply to this result.
    DoesNotApply,
    /// The evidence is complete, but its figures do not decide, for this reason. `Check::ask` returns the reason as an error.
    Undecided(String),
}

/// The details of a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The effect on the number.
    pub severity: Severity,
    /// The sentence for the user.
    pub sentence: String,
    /// The fix for this case. `None` for [`Check::fix`], empty for no fix.
    pub fix: Option<String>,
    /// The numbers that support the finding.
    pub evidence: Evidence,
    /// True meaning of the number, for [`Severity::Relabels`].
    pub renames: Option<Rename>,
}

impl Detail {
    /// Creates a finding that does not relabel the result and takes its fix from the check.
    pub(crate) fn new(severity: Severity, sentence: String, evidence: Evidence) -> Self {
        Self { severity, sentence, fix: None, evidence, renames: None }
    }

    /// Returns the answer of a check that has this finding.
    #[allow(clippy::unnecessary_wraps, reason = "the other answers of checks may be errors")]
    pub(crate) fn found(self) -> Known<Answer> {
        Ok(Answer::Finding(self))
    }

    /// Sets [`Detail::fix`], the fix for this case. With `None`, the finding shows the fix of the check.
    pub(crate) fn with_fix(self, fix: impl Into<Option<String>>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// Sets what the number really measures, if it is relabelled.
    pub(crate) fn relabelled(self, rename: impl Into<Option<Rename>>) -> Self {
        Self { renames: rename.into(), ..self }
    }
}

/// The part of a result's name that was wrong, and what replaces it.
#[derive(Clone, Debug, PartialEq)]
pub enum Rename {
    /// The medium that answered, such as `page cache`. Replaces the cache mode.
    Medium(String),
    /// The target is memory. Overrides any other medium.
    Memory(String),
    /// The queue depth that was reached.
    Depth(f64),
    /// A condition to add to the name, such as `limited by CPU`.
    Condition(String),
}

/// Returns the answer of a check whose belief holds. See [`Answer::Holds`].
#[allow(clippy::unnecessary_wraps, reason = "the other answers of checks may be errors")]
pub(crate) fn holds(sentence: impl Into<Cow<'static, str>>, numbers: Evidence) -> Known<Answer> {
    Ok(Answer::Holds(sentence.into(), numbers))
}

/// Formats a share below 1, for sentences in which `100 %` would be false. Rounds down: 0.9996 is
/// `99.9 %`.
pub(crate) fn show_part(share: f64) -> String {
    format!("{:.1} %", (share * 1e3).floor() / 10.0)
}

/// Returns the answer "not checked" with its reason.
pub(crate) fn not_checked<T>(why: &str) -> Known<T> {
    Err(why.to_owned())
}

/// Returns the answer of a check whose figures do not decide `question`. See [`Answer::Undecided`].
#[allow(clippy::unnecessary_wraps, reason = "the other answers of checks may be errors")]
pub(crate) fn undecided(question: &str) -> Known<Answer> {
    Ok(Answer::Undecided(format!("fathom cannot tell {question}")))
}

/// Returns the answer of a check whose figures do not decide `question` because of `why`. The figures depend on the kernel's counts for
/// single workers.
///
/// # Errors
/// Fails if a run lacks these counts.
pub(crate) fn undecided_by_workers(case: &Case, question: &str, why: &str) -> Known<Answer> {
    if case.has_worker_counts() {
        undecided(&format!("{question}: {why}"))
    } else {
        Err(format!("without the kernel's counts of all workers, fathom does not know {question}: {why}"))
    }
}

/// Returns the answer of a check whose figures do not decide `question` because other streams share the devices.
///
/// # Errors
/// As [`undecided_by_workers`], and if the layers below the target are unknown.
pub(crate) fn undecided_by_sharing(case: &Case, question: &str) -> Known<Answer> {
    undecided_by_workers(case, question, &case.why_shared()?)
}

/// Builds evidence from pairs. Leaves out numbers that are not finite, because JSON cannot express them.
pub(crate) fn evidence<const N: usize>(pairs: [(&str, f64); N]) -> Evidence {
    pairs.into_iter().filter(|(_, v)| v.is_finite()).map(|(k, v)| (k.to_owned(), v)).collect()
}

/// If a device moved at least this share of the bytes of the operations, its counters describe the operations. If it moved
/// less, another layer served the rest.
pub(crate) const ARRIVED_FROM: Share = Share(0.95);
/// If a request was in flight for less than this share of the time, the disk certainly had headroom.
pub(crate) const HEADROOM_BELOW: Share = Share(0.9);
/// File with the counters of the machine's memory.
const VMSTAT: &str = "/proc/vmstat";
/// Page size of the counters in `/proc/vmstat`. The kernel counts a larger page as several pages.
const VMSTAT_PAGE_BYTES: u64 = 4096;

/// Returns the bytes of the stream's completed operations in one direction.
///
/// # Errors
/// Fails if no such operation completed.
fn issued_bytes(case: &Case, kind: Kind) -> Known<u64> {
    match case.issued(kind).bytes {
        0 => Err(format!("no {} completed", kind.word())),
        bytes => Ok(bytes),
    }
}

/// Asks how the bytes are stored that operations of a kind touch. Turns touch different bytes, so each turn that does such
/// operations is asked alone. Of their answers, returns the worst finding, else an unknown one, else the first.
fn ask_each_turn(case: &Case, kind: Kind, ask: impl Fn(&Case) -> Known<Answer>) -> Known<Answer> {
    let turns = case.of_turns();
    let answers = turns.iter().filter(|turn| turn.does(kind)).map(&ask);
    let rank = |answer: &Known<Answer>| match answer {
        Ok(Answer::Finding(found)) => (0, Some(found.severity)),
        Err(_) | Ok(Answer::Undecided(_)) => (1, None),
        Ok(_) => (2, None),
    };
    answers.min_by_key(rank).unwrap_or_else(|| ask(case))
}

/// Adds up a figure of all runs.
fn sum_over_runs<'r>(case: &Case<'r>, figure: impl Fn(&CaseRun<'r>) -> Known<u64>) -> Known<u64> {
    case.runs.iter().try_fold(0_u64, |sum, ran| Ok(sum.saturating_add(figure(ran)?)))
}

/// Returns the smaller of the median latencies of reads and of writes, in ns.
///
/// # Errors
/// Fails if no read or write completed within a window.
fn least_median_ns(case: &Case) -> Known<f64> {
    let medians = Kind::MOVING.iter().filter_map(|kind| case.latency(*kind)?.quantile_ns(0.5));
    Ok(medians.min().ok_or("no operation completed within a measured window")? as f64)
}

/// Returns the latencies measured from submission to completion. In an open loop, these are the service times.
fn service_latency(end: &KindEnd) -> &Histogram {
    end.open.as_ref().map_or(&end.latency, |open| &open.service)
}

/// Joins the names of layers: `vda`, or `vda, vdb`.
fn layer_names(layers: &[&Layer]) -> String {
    layers.iter().map(|l| l.name.as_str()).collect::<Vec<_>>().join(", ")
}
