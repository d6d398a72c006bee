//! How a work of a sweep was decided: the word, the sentence, and the cells that may be faster than the winner.

use crate::strategy::sweep::{FEWEST_REPEATS, Race, Rivals, Search};
use model::measure::Measure;
use model::sweep::{Chosen, Grid, Search as How, Setting};
use model::units::{show_count, show_share};

/// Rivals that a sentence names; the JSON has all.
const NAMED: usize = 3;
/// What a recommended budget is a multiple of, in seconds.
const BUDGET_STEP_S: u64 = 10;

/// How a work was decided.
pub(super) struct Choice {
    pub(super) chosen: Chosen,
    pub(super) sentence: String,
    /// By how much any cell is faster than the winner at most, as a share.
    pub(super) faster_at_most: Option<f64>,
    /// Cells that may be faster than the winner, the one first that may be by most.
    pub(super) rivals: Vec<Setting>,
}

/// Judges a race as far as it came.
pub(super) fn decide_race((grid, search): (&Grid, &Search), race: &Race) -> Choice {
    let rivals = race.rivals();
    let (chosen, why) = match &rivals {
        _ if race.winner().is_none() => (Chosen::CannotTell, unfinished(race)),
        _ if race.lanes.len() == 1 => (Chosen::NoChoice, "there is nothing to choose".into()),
        Some(rivals) if race.knows_its_noise() => judged((grid, search), race, rivals),
        _ => (Chosen::CannotTell, unknown_noise(grid, race)),
    };
    let at_most = rivals.as_ref().map(|r| race.share(r.at_most)).filter(|share| share.is_finite());
    let at_most = at_most.filter(|_| matches!(chosen, Chosen::Fastest | Chosen::Tied));
    let settings = |at: &usize| Some(grid.setting(race.lanes.get(*at)?.job)?.clone());
    let rivals: Vec<Setting> =
        rivals.iter().flat_map(|rivals| &rivals.within_noise).filter_map(settings).collect();
    let sentence = format!("{why}; {}{}.", measured(race), not_told_apart(chosen, &rivals));
    Choice { chosen, sentence, faster_at_most: at_most, rivals }
}

fn judged((grid, search): (&Grid, &Search), race: &Race, rivals: &Rivals) -> (Chosen, String) {
    if let Some(fall) = race.fall() {
        let change = if race.by.is_latency() {
            format!("{} of the winner was {} higher", race.by.heading(), show_share((-fall).exp_m1()))
        } else {
            format!("the winner gave {} less", show_share(-fall.exp_m1()))
        };
        return (
            Chosen::CannotTell,
            format!(
                "{change} afterwards than while it was chosen, so the target changes; sweep again when it is quiet"
            ),
        );
    }
    let tolerance = show_share(grid.tolerance);
    let none_is = |share: &str| format!("no setting is {} (95 %)", race.by.better_by(share));
    if rivals.open == 0 {
        return (Chosen::Fastest, none_is(&tolerance));
    }
    let bound = show_bound(race.share(rivals.at_most));
    let open = others(rivals.open);
    let more = match grid.search {
        How::Adaptive { .. } => sufficient_budget(search, &tolerance),
        How::Exhaustive | How::InOrder(_) => "; more `--runs` tell them apart".into(),
    };
    (Chosen::Tied, format!("{}: {open} may be {}{more}", none_is(&bound), race.by.better_by(&tolerance)))
}

/// A bound, rounded up: `8.3 %`, `12 %`.
fn show_bound(share: f64) -> String {
    let steps = if share >= 0.099 { 100.0 } else { 1000.0 };
    show_share((share * steps).ceil() / steps)
}

/// `; --budget 90s is likely to reach 5.0 %`.
fn sufficient_budget(search: &Search, tolerance: &str) -> String {
    let Some(ns) = search.sufficient_budget_ns() else {
        return format!("; runs here differ too much to reach {tolerance} within an hour");
    };
    let seconds = ns.div_ceil(1_000_000_000).div_ceil(BUDGET_STEP_S) * BUDGET_STEP_S;
    format!("; `--budget {seconds}s` is likely to reach {tolerance}")
}

/// Why the noise is unknown, and what makes it known.
fn unknown_noise(grid: &Grid, race: &Race) -> String {
    let advice = match grid.search {
        How::Adaptive { .. } => "type a longer `--budget`".into(),
        How::Exhaustive | How::InOrder(_) => {
            format!("`--exhaustive --runs {}` settles it", runs_that_settle(race))
        }
    };
    format!("fewer than five runs repeat one another, so the noise between runs is unknown; {advice}")
}

/// Why there is no winner.
fn unfinished(race: &Race) -> String {
    match race.closed {
        Some(_) if race.by == Measure::P99 => {
            "no run had the thousand operations that a p99 takes; type a longer --time, or --by latency"
                .into()
        }
        Some(_) => "no cell could be measured".into(),
        None => "the search was not ended; `fathom sweep --resume last` continues it".into(),
    }
}

/// `12 cells (1 could not be measured), runs of one cell differ by 2.0 %`.
fn measured(race: &Race) -> String {
    let all = race.lanes.len();
    let seen = race.lanes.iter().filter(|l| !l.logs.is_empty()).count();
    let failed = match (&race.closed, all - seen) {
        (Some(_), 0) => String::new(),
        (Some(_), failed) => format!(" ({failed} could not be measured)"),
        (None, _) => format!(" of {all}"),
    };
    let spread =
        race.spread().map_or_else(String::new, |s| format!(", runs of one cell differ by {}", show_share(s)));
    format!("{seen}{failed} {}{spread}", if all == 1 { "cell" } else { "cells" })
}

/// `; not told apart from it: 8 x 512K direct, io_uring and 2 more`.
fn not_told_apart(chosen: Chosen, rivals: &[Setting]) -> String {
    if rivals.is_empty() || !matches!(chosen, Chosen::Fastest | Chosen::Tied) {
        return String::new();
    }
    let names: Vec<String> =
        rivals.iter().take(NAMED).map(|s| format!("{} {}", s.shape(), s.way())).collect();
    let more = match rivals.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; not told apart from it: {}{more}", names.join("; "))
}

/// Runs of each cell that repeat one another often enough without the reference.
fn runs_that_settle(race: &Race) -> usize {
    1 + FEWEST_REPEATS.div_ceil(race.lanes.len().max(1))
}

fn others(count: usize) -> String {
    if count == 1 { "1 setting".into() } else { format!("{} settings", show_count(count as f64)) }
}

#[test]
fn a_bound_is_rounded_up() {
    let shown: Vec<String> = [0.0801, 0.0994, 0.121, 0.05].into_iter().map(show_bound).collect();
    assert_eq!(shown, ["8.1 %", "10 %", "13 %", "5.0 %"]);
}
