//! Repeats: how often each job is measured, or what decides that.
//!
//! For: `--runs`, `--precision`, `--until`, `--settle`, `--max-runs` and `--attempts` with their defaults. Not for: what of them goes together (crate
//! `model`, where the spec is checked) nor deciding while measuring (crate `analysis`).

use super::origins::Origins;
use super::sides;
use crate::request::Request;
use model::plan::Strategy;
use model::spec::number::{ATTEMPTS, FEWEST_GATED_RUNS, FEWEST_ROUNDS, MAX_RUNS};
use model::spec::{JobSpec, Until};
use model::study::Study;

/// Repeats from which a headline has an interval worth printing (statistics: at least five).
const RUNS: u32 = 5;
/// Repeats of each load of `limit`; where they disagree it measures more.
const LIMIT_RUNS: u32 = 3;
/// Times an exhaustive search measures each cell unless said otherwise: the fewest that have an interval.
pub(super) const CELL_RUNS: u32 = 3;
/// Times the first runs that `--settle` measures at most.
const SETTLED_WITHIN: u32 = 10;
/// Rounds after which a device that is not steady is left alone, as in the specification of the SNIA.
const ROUNDS: u32 = 25;

/// How often at least, and what decides. `by_budget` is how often the budget of `fathom api` allows.
pub(super) fn repeats(
    study: &Study,
    request: &Request,
    is_quick: bool,
    by_budget: Option<u32>,
    origins: &mut Origins,
) -> (u32, Strategy) {
    if is_quick {
        origins.fixed("--runs", "1", "--quick");
        return (1, Strategy::Fixed);
    }
    let spec = &request.job;
    let mut choose = |default| origins.choose("--runs", spec.runs, default, u32::to_string);
    match study {
        Study::Limit(target) => (choose(LIMIT_RUNS), Strategy::Limit(*target)),
        // How often a cell is measured is told beside its time.
        Study::Sweep(_) => (spec.runs.unwrap_or(CELL_RUNS), Strategy::Fixed),
        Study::Interfaces(_) if spec.gates_a_percentile() => of_workloads(request, origins),
        Study::Interfaces(_) => {
            let runs = by_budget.unwrap_or(RUNS);
            (origins.choose_from("--runs", spec.runs, runs, "--budget", u32::to_string), Strategy::Fixed)
        }
        Study::Targets(comparison) if sides::is_timed(request) => {
            let (default, from) = first_runs(spec);
            let runs = origins.choose_from("--runs", spec.runs, default, from, u32::to_string);
            (runs, Strategy::Targets(comparison.layout()))
        }
        Study::Jobs
        | Study::Layers(_)
        | Study::Profile(_)
        | Study::Targets(_)
        | Study::Hosts(_)
        | Study::Commands(_) => of_workloads(request, origins),
    }
}

/// How often a workload that stands for itself is measured at least if `--runs` is not typed, and why.
fn first_runs(spec: &JobSpec) -> (u32, &'static str) {
    if spec.gates_a_percentile() {
        (FEWEST_GATED_RUNS, "default: --fail-if has a percentile")
    } else if spec.phases.iter().flat_map(|phase| &phase.streams).any(|stream| stream.replay.is_some()) {
        // It takes as long as the capture did.
        (1, "default of a replay")
    } else {
        (RUNS, "default")
    }
}

/// How often at least workloads that stand for themselves are measured, and what decides: more than a number may be said.
fn of_workloads(request: &Request, origins: &mut Origins) -> (u32, Strategy) {
    let spec = &request.job;
    let words = |n: &u32| n.to_string();
    if let Some(Until::Steady) = spec.until {
        origins.note("--until", spec.until, |_| "steady: the last five rounds count".into());
        let at_most = origins.choose("--max-runs", spec.max_runs, ROUNDS, words);
        return (FEWEST_ROUNDS, Strategy::Steady { at_most });
    }
    let (default, from) = first_runs(spec);
    let runs = origins.choose_from("--runs", spec.runs, default, from, words);
    if spec.settle == Some(true) {
        origins.note("--settle", Some(()), |()| "once more, where the first runs cannot tell".into());
        let most = runs.saturating_mul(SETTLED_WITHIN).min(MAX_RUNS);
        let at_most =
            origins.choose_from("--max-runs", spec.max_runs, most, "default: ten times --runs", words);
        return (runs, Strategy::Settle { at_most });
    }
    let Some(share) = spec.precision else { return (runs, Strategy::Fixed) };
    origins.note("--precision", Some(share), |share| format!("{} % to either side", share * 100.0));
    let twice = runs.saturating_mul(2).min(MAX_RUNS);
    let at_most = origins.choose_from("--max-runs", spec.max_runs, twice, "default: twice --runs", words);
    (runs, Strategy::Precision { share, at_most })
}

/// Times that a run which others disturb is measured at most.
pub(super) fn attempts(spec: &JobSpec, origins: &mut Origins) -> u32 {
    origins.note("--attempts", spec.attempts, u32::to_string);
    spec.attempts.unwrap_or(ATTEMPTS)
}
