//! Repeats: how often each job is measured, or what decides that.
//!
//! For: `--runs`, `--precision`, `--until` and `--max-runs` with their defaults. Not for: what of them goes together (crate
//! `model`, where the wish is checked) nor deciding while measuring (crate `analysis`).

use super::origins::Origins;
use model::plan::Strategy;
use model::wish::limits::{FEWEST_ROUNDS, MAX_RUNS};
use model::wish::{JobWish, Until};

/// Repeats from which a headline has an interval worth printing (statistics: at least five).
const RUNS: u32 = 5;
/// Rounds after which a device that is not steady is left alone, as in the specification of the SNIA.
const ROUNDS: u32 = 25;

/// How often at least, and what decides.
pub(super) fn repeats(wish: &JobWish, origins: &mut Origins) -> (u32, Strategy) {
    let words = |n: &u32| n.to_string();
    if let Some(Until::Steady) = wish.until {
        origins.note("--until", wish.until, |_| "steady: the last five rounds count".into());
        let at_most = origins.choose("--max-runs", wish.max_runs, ROUNDS, words);
        return (FEWEST_ROUNDS, Strategy::Steady { at_most });
    }
    let runs = origins.choose("--runs", wish.runs, RUNS, words);
    let Some(share) = wish.precision else { return (runs, Strategy::Fixed) };
    origins.note("--precision", Some(share), |share| format!("{} % to either side", share * 100.0));
    let twice = runs.saturating_mul(2).min(MAX_RUNS);
    let at_most = origins.choose_from("--max-runs", wish.max_runs, twice, "default: twice --runs", words);
    (runs, Strategy::Precision { share, at_most })
}
