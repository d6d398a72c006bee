//! Judges records: a record in, a report out. It does not access the machine, so an old record always gets the same
//! report.
//!
//! The modules. Each uses only modules on its own line and on the lines above:
//! 1. `threshold`, `runs`, `case`: limits that several modules use; what the runs of a record
//!    measured; all evidence about one stream.
//! 2. `figures`: rates, latencies, time series, steadiness, traffic of other processes.
//! 3. `strategy`: what to measure next.
//! 4. `checks`, `fleet`, `findings`, `limiter`: questions about a case, and their answers, also those of other hosts.
//! 5. `verdict`, `deductions`: the verdict on results and the headline; what several results mean
//!    together.
//! 6. `compare`: two reports against each other.
//! 7. `studies`: the question that several jobs answer together.
//! 8. `gate`, `exit`, `notes`: conditions, the printed answer, the exit code, and the notes of a report.
//! 9. `command`, `watch`, `idle`, `under_way`: commands, running and idle machines, and unfinished measurements.
//!
//! [`judge`] is total: every record has a report, which lists what was missing.
#![forbid(unsafe_code)]
// Tests may unwrap known values, and may damage each item of a record with `for_each` in one line.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::needless_for_each))]

mod case;
pub mod checks;
pub mod command;
pub mod compare;
mod deductions;
mod exit;
mod figures;
mod findings;
mod fleet;
mod gate;
pub mod idle;
mod limiter;
mod notes;
pub mod runs;
pub mod strategy;
mod studies;
mod threshold;
pub mod under_way;
mod verdict;
pub mod watch;

pub use checks::is_remote;
pub use exit::{exit_code, exit_code_of};
use findings::CaseAnswers;
pub use findings::{InvalidBeforeRun, find_invalid_before_run};
use model::finding::{CheckId, Checked};
use model::job::Kind;
use model::machine::Machine;
use model::record::Record;
use model::report::{Annotations, CountsAs, FORMAT, Measured, Producer, Report, Verdict};
pub use notes::engine_fallbacks;
use verdict::Judged;

/// Options of the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judging {
    /// Checks whose findings the user accepts: the numbers are shown, marked as accepted, and gates decide on them.
    pub accept: Vec<CheckId>,
    /// Whether an undecided condition gives the exit code of a passed or of a failed one; `None`
    /// for its own exit code (4).
    pub inconclusive: Option<CountsAs>,
    /// The session file that the record came from.
    pub session: Option<String>,
    /// The user's annotations of the session.
    pub annotations: Annotations,
    /// Version of the program that judges.
    pub version: String,
}

/// Judges a record. In a rerun, the repeated jobs of the earlier session are judged separately and compared with the
/// session's own jobs.
pub fn judge(record: &Record, options: &Judging) -> Report {
    if let Some(study) = record.header.plan.study.commands() {
        return command::judge(record, study, options);
    }
    let sides = record.header.plan.against.as_ref().zip(compare::split_rerun(record));
    let mut report = match &sides {
        Some((earlier, (own, rerun))) => {
            let mut report = conclude(own, options);
            let rerun = conclude(rerun, options);
            let against =
                compare::compare_rerun(earlier, &record.header.plan, &report, rerun, &options.accept);
            report.answer =
                gate::combine_with_slower(report.answer, against.workload_comparison.gate.as_ref());
            report.against = Some(against);
            report
        }
        None => conclude(record, options),
    };
    report.answer = exit::printed_answer(&report);
    report.counts_as = gate::count_undecided(&mut report.answer, options.inconclusive, &report.ending);
    let own = sides.as_ref().map_or(record, |(_, (own, _))| own);
    report.notes.extend(strategy::settle_note(own, &report));
    report
}

/// Judges a record as one session, without a rerun.
fn conclude(record: &Record, options: &Judging) -> Report {
    let header = &record.header;
    let is_measured_here =
        |case: &case::Case| !case::is_refused(record, case) && !notes::is_left_out(record, case.job_index);
    let mut cases: Vec<_> = case::cases(record).into_iter().filter(is_measured_here).collect();
    studies::sweep::leave_out_race(record, &mut cases);
    let accepting = |case| CaseAnswers { accept: options.accept.clone(), ..findings::ask(case) };
    let answered: Vec<CaseAnswers> = cases.into_iter().map(accepting).collect();
    let mut results = fleet::complete_results(record, answered.iter().map(build_result).collect());
    let mut checks = findings::merge(&answered, &options.accept);
    let accepted = studies::accept(record, &answered, &mut checks);
    let question = studies::question(&header.plan.study);
    let is_counted = |f: &&Checked| !question.is_expected(record, &answered, f);
    let counted_checks: Vec<Checked> = checks.iter().filter(is_counted).cloned().collect();
    for (result, answers) in results.iter_mut().zip(&answered) {
        result.accepted = findings::accepted_ids(result, &counted_checks);
        result.verdict = verdict::result_verdict(result, &counted_checks).verdict;
        // Hundreds of results with time series would make the report too large.
        if !header.plan.study.has_many_results() {
            result.time_series = figures::time_series::recorded_series(&answers.case);
            result.latencies = figures::time_series::latencies(result.observed.as_ref());
            figures::time_series::add_tails(&answers.case, &mut result.runs);
        }
    }
    let has_hosts = record.fleet.is_some() || header.plan.fleet_rank.is_some();
    let session = options.session.as_deref();
    let deciding_command =
        verdict::deciding_command(session, &header.plan.command, has_hosts, &options.accept);
    let judged = Judged {
        record,
        answered: &answered,
        results: &results,
        counted_checks: &counted_checks,
        deciding_command: &deciding_command,
    };
    let study = question.conclude(&judged);
    let conclusion = studies::conclusion(&study);
    let quoted = conclusion.quoted(&results);
    let head = conclusion.head(&judged, &quoted);
    let gates = gate::decide_conditions(&judged, conclusion);
    let deductions = conclusion.deduce(&judged);
    let answer = gate::combine_gates(&gates)
        .map(|answer| gate::qualify_passed_gates(answer, &gates, &judged))
        .or_else(|| conclusion.answer());
    let jobs: Vec<usize> = answered.iter().map(|a| a.case.job_index).collect();
    let verdict = verdict::not_measured(record).unwrap_or(head.verdict);
    let verdict = judged.qualify_valid_verdict(verdict, &quoted);
    let report = Report {
        fathom: Producer { format: FORMAT, version: options.version.clone() },
        quick: notes::quick(record),
        verdict: verdict.verdict,
        verdict_reason: verdict.reason,
        verdict_by: verdict.by,
        counts: head.counts,
        answer,
        counts_as: None,
        gates,
        limiter: head.limiter,
        headline: head.headline,
        deductions,
        results,
        hosts: header.hosts.iter().map(|h| h.host.clone()).collect(),
        fleet: None,
        checks,
        busy_machine: notes::busy_machine(record),
        notes: accepted
            .into_iter()
            .chain(strategy::notes(record))
            .chain(notes::notes(record))
            .chain(fleet::notes(record))
            .collect(),
        ending: notes::ending(record),
        machine: header.hosts.first().cloned().unwrap_or_else(unknown_machine),
        files: notes::stored_files(&answered),
        title: header.plan.title.clone(),
        command: header.plan.command.clone(),
        started: header.started.clone(),
        session: options.session.clone(),
        json_file: None,
        annotations: options.annotations.clone(),
        study,
        preconditioned: record.preconditioned.clone(),
        against: None,
    };
    studies::attach_comparison(record, &jobs, fleet::add_host_figures(record, report))
}

/// Builds the result of a case. The caller sets the fields that depend on the findings of all cases.
fn build_result(answered: &CaseAnswers) -> Measured {
    let case = &answered.case;
    Measured {
        name: case.name.clone(),
        true_name: findings::true_name(case, &answered.renames()),
        renamed: findings::differs_from_request(case, &answered.renames()),
        phase: case.phase_index as u32,
        stream: case.stream_index as u32,
        job: case.job.clone().into_owned(),
        void: answered.is_void(),
        accepted: Vec::new(),
        verdict: Verdict::Suspect,
        read: figures::figures_of_kind(case, Kind::Read),
        write: figures::figures_of_kind(case, Kind::Write),
        trim: figures::figures_of_kind(case, Kind::Trim),
        sync: figures::figures_of_kind(case, Kind::Sync),
        total: figures::compute_rates(case, &figures::RATED_KINDS),
        with_final_sync: figures::rates_with_final_sync(case),
        cost: figures::cost_per_operation(case),
        data: case.runs.iter().find_map(|r| r.stream.data),
        limiter: limiter::find_limiter(answered),
        runs: figures::figures_of_runs(case, &case.runs),
        uncounted_runs: figures::figures_of_runs(case, &case.earlier_runs),
        disturbed: figures::list_disturbed_runs(case),
        ledger: case::ledger::ledger(case),
        series: figures::time_series::seconds_of_runs(case),
        time_series: None,
        latencies: std::collections::BTreeMap::new(),
        replay: figures::replay::compare(case).map(Box::new),
        steadiness: figures::steadiness::steadiness(case),
        observed: Some(figures::observe_case(case)),
    }
}

/// The pages of all checks: those of results and those of comparisons. `fathom explain` and `docs/reference/checks.md` print them.
pub mod catalogue {
    use crate::checks::GROUPS;
    use crate::compare::checks as compare;
    use model::finding::CheckPage;

    /// The question that a check of comparisons answers.
    const OF_COMPARISONS: &str = "May two results be compared?";

    /// Returns the pages of every check: those of results, then those of comparisons.
    pub fn pages() -> impl Iterator<Item = CheckPage> {
        macro_rules! page {
            ($check:ident, $group:expr, $acceptable:expr) => {
                CheckPage {
                    id: $check.id,
                    name: $check.name,
                    group: $group,
                    belief: $check.belief,
                    reads: $check.reads,
                    formula: ($check.formula)(),
                    provoke: $check.provoke,
                    advice: [$check.fix, $check.accept].join(" ").trim().to_owned(),
                    accept: $acceptable.then(|| format!("--accept {}", $check.id)),
                }
            };
        }
        let results =
            GROUPS.iter().flat_map(|(group, checks)| checks.iter().map(move |c| page!(c, group, true)));
        results.chain(compare::CHECKS.iter().map(|c| page!(c, OF_COMPARISONS, c.acceptable)))
    }

    #[test]
    fn every_id_has_one_check() {
        use model::finding::CheckId;
        let page_ids: Vec<CheckId> = pages().map(|c| c.id).collect();
        let ids: std::collections::BTreeSet<CheckId> = page_ids.iter().copied().collect();
        assert_eq!(ids.len(), page_ids.len(), "two checks have the same id");
        assert!(ids.iter().eq(CheckId::ALL), "an id without a check, or a check without an id");
    }
}

/// Returns the machine for a record without one.
fn unknown_machine() -> Machine {
    let unknown = || "the record names no host".to_owned();
    Machine {
        host: String::new(),
        kernel: String::new(),
        cpu: Err(unknown()),
        cpus: 0,
        memory_bytes: Err(unknown()),
        virtual_by: Err(unknown()),
        clocksource: Err(unknown()),
        user_id: 0,
        cgroup: Err(unknown()),
        facts: std::collections::BTreeMap::new(),
        places: Vec::new(),
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
