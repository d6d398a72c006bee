//! How a study is planned: its runs, its strategy, its time budget, and the conditions that it can decide.
//!
//! The file with the jobs of a study implements [`StudyPlan`] for it; [`study_plan`] lists the studies. A method that a study does not
//! implement plans the study like independent jobs. Crate `model` checks which of the options for runs fit together, and crate `analysis`
//! decides while measuring.

use crate::failure::Failure;
use crate::plan::origins::Origins;
use crate::request::Request;
use model::job::Job;
use model::plan::Strategy;
use model::spec::number::{FEWEST_GATED_RUNS, FEWEST_ROUNDS, MAX_RUNS};
use model::spec::{JobSpec, Until};
use model::study::Study;
use model::verdict::Condition;

/// Default runs of a job: the fewest with a useful confidence interval.
pub(super) const RUNS: u32 = 5;
/// Default of `--max-runs` with `--settle`, as a multiple of `--runs`.
const SETTLED_WITHIN: u32 = 10;
/// Default of `--max-runs` with `--until steady`, as in the SNIA specification: a device that is
/// not steady by then is given up.
const ROUNDS: u32 = 25;

/// How `fathom api` divides its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Time budget in ns.
    pub(super) budget_ns: u64,
    /// Time to make each test file, in ns.
    pub(super) making_ns: u64,
    /// Runs of each job.
    pub(super) runs: u32,
    /// Time of one run in ns.
    pub(super) window_ns: u64,
}

/// Everything that a time budget depends on.
pub(super) struct Timing<'a> {
    pub(super) request: &'a Request,
    pub(super) jobs: &'a [Job],
    /// Runs of each job.
    pub(super) runs: u32,
    pub(super) strategy: Strategy,
    /// Length of the idle watch in ns.
    pub(super) baseline_ns: u64,
    /// How `fathom api` divides its time; `None` for any other command.
    pub(super) schedule: Option<Schedule>,
}

/// The plan of a study, apart from its jobs.
pub(super) trait StudyPlan {
    /// Chooses the minimum number of runs of each job, and the strategy that decides about more. `by_budget` is the number of runs that
    /// fits into the budget of `fathom api`; `None` for other commands.
    fn repeats(&self, request: &Request, _by_budget: Option<u32>, origins: &mut Origins) -> (u32, Strategy) {
        choose_runs(request, origins)
    }

    /// The time budget in ns; `None` if nothing limits the time.
    ///
    /// # Errors
    /// A usage failure if the typed budget is too short for the fewest runs.
    fn budget_ns(&self, timing: &Timing, _origins: &mut Origins) -> Result<Option<u64>, Failure> {
        Ok(timing.schedule.map(|schedule| schedule.budget_ns).or(timing.request.budget_ns))
    }

    /// Checks whether the study can decide a condition.
    ///
    /// # Errors
    /// The reason if not, and what to type.
    fn check(&self, _condition: &Condition) -> Result<(), String> {
        Ok(())
    }
}

/// Jobs without a common question, and studies that are planned like them.
struct Independent;

impl StudyPlan for Independent {}

/// Returns how to plan a study.
pub(super) fn study_plan(study: &Study) -> &dyn StudyPlan {
    match study {
        Study::Limit(latency_target) => latency_target,
        Study::Sweep(grid) => grid,
        Study::Interfaces(comparison) => comparison,
        Study::Targets(comparison) => comparison,
        _ => &Independent,
    }
}

/// Default number of runs of an ordinary job, and its reason.
pub(super) fn default_runs(spec: &JobSpec) -> (u32, &'static str) {
    if spec.gates_a_percentile() {
        (FEWEST_GATED_RUNS, "default: --fail-if has a percentile")
    } else if spec.streams().any(|stream| stream.replay.is_some()) {
        // A replay takes as long as its capture.
        (1, "default of a replay")
    } else {
        (RUNS, "default")
    }
}

/// The minimum number of runs of ordinary jobs, and the strategy that decides about more.
pub(super) fn choose_runs(request: &Request, origins: &mut Origins) -> (u32, Strategy) {
    let spec = &request.job;
    if let Some(Until::Steady) = spec.until {
        origins.note("--until", spec.until, |_| "steady: the last five rounds count".into());
        let at_most = origins.choose("--max-runs", spec.max_runs, ROUNDS, u32::to_string);
        return (FEWEST_ROUNDS, Strategy::Steady { at_most });
    }
    let (default, from) = default_runs(spec);
    let runs = origins.choose_from("--runs", spec.runs, default, from, u32::to_string);
    if spec.settle == Some(true) {
        origins.note("--settle", Some(()), |()| {
            "if the first runs are inconclusive, one more batch of as many runs as a decision probably needs".into()
        });
        let most = runs.saturating_mul(SETTLED_WITHIN).min(MAX_RUNS);
        let at_most = origins.choose_from(
            "--max-runs",
            spec.max_runs,
            most,
            "default: ten times --runs",
            u32::to_string,
        );
        return (runs, Strategy::Settle { at_most });
    }
    let Some(share) = spec.precision else { return (runs, Strategy::Fixed) };
    origins.note("--precision", Some(share), |share| {
        format!("{} % to either side", (1e6 * share).round() / 1e4)
    });
    let twice = runs.saturating_mul(2).min(MAX_RUNS);
    let at_most =
        origins.choose_from("--max-runs", spec.max_runs, twice, "default: twice --runs", u32::to_string);
    (runs, Strategy::Precision { share, at_most })
}
