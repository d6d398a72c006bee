//! What a search says of a work: one cell is the fastest, several are, or it cannot be told.
//!
//! For: the word, the sentence behind it, and the rivals beside the winner. Not for: which cell is measured next
//! ([`crate::strategy::sweep`]).

use crate::strategy::sweep::{FEWEST_REPEATS, Race, Rivals};
use model::measure::Measure;
use model::sweep::{Chosen, Grid, SAME, Search as How, Setting};
use model::units::{show_count, show_share};

/// Rivals that a sentence names; the JSON has all.
const NAMED: usize = 3;

/// What is said of a work.
pub(super) struct Choice {
    pub(super) chosen: Chosen,
    pub(super) sentence: String,
    /// Cells that cannot be told from the winner, those that most may beat it first.
    pub(super) rivals: Vec<Setting>,
}

/// Judges a race as far as it came.
pub(super) fn choice(grid: &Grid, race: &Race) -> Choice {
    let (chosen, why, rivals) = match race.rivals() {
        None => (Chosen::CannotTell, unfinished(race), Rivals::default()),
        Some(_) if race.lanes.len() == 1 => {
            (Chosen::NoChoice, "there is nothing to choose".into(), Rivals::default())
        }
        Some(rivals) => {
            let (chosen, why) = judged(grid, race, &rivals);
            (chosen, why, rivals)
        }
    };
    let settings = |at: &usize| Some(grid.setting(race.lanes.get(*at)?.job)?.clone());
    let rivals: Vec<Setting> = rivals.within_noise.iter().filter_map(settings).collect();
    let beside = beside(chosen, &rivals);
    Choice { chosen, sentence: format!("{}: {why}{beside}.", measured(race)), rivals }
}

fn judged(grid: &Grid, race: &Race, rivals: &Rivals) -> (Chosen, String) {
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
    if !race.knows_its_noise() {
        return (
            Chosen::CannotTell,
            format!(
                "fewer than five runs repeat one another, so it is not known by how much runs of one cell differ; `--exhaustive --runs {}` settles it",
                runs_that_settle(race)
            ),
        );
    }
    let better = race.by.better_by(&show_share(SAME));
    match (rivals.open, grid.search) {
        (0, _) => (Chosen::Fastest, format!("no other cell is {better} (99 % confidence)")),
        (open, How::Adaptive { .. }) => {
            (Chosen::Tied, format!("time ran out, and {} may be {better}", others(open)))
        }
        (open, How::Exhaustive | How::InOrder(_)) => {
            (Chosen::Tied, format!("{} may be {better}", others(open)))
        }
    }
}

/// Why there is no winner.
fn unfinished(race: &Race) -> String {
    match race.closed {
        Some(_) if race.by == Measure::P99 => {
            "no run had the thousand operations that a p99 takes; type a longer --time, or --by latency"
                .into()
        }
        Some(_) => "no cell could be measured".into(),
        None => "the search was not ended; `fathom sweep --resume last` goes on with it".into(),
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

/// `; as fast within the noise: 8 x 512K direct, io_uring and 2 more`.
fn beside(chosen: Chosen, rivals: &[Setting]) -> String {
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

/// Runs of each cell that repeat one another often enough, whatever the reference adds.
fn runs_that_settle(race: &Race) -> usize {
    1 + FEWEST_REPEATS.div_ceil(race.lanes.len().max(1))
}

fn others(count: usize) -> String {
    if count == 1 { "1 other cell".into() } else { format!("{} other cells", show_count(count as f64)) }
}
