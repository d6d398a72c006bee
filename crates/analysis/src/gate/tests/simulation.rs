//! Seeded simulations: how often a condition is wrong, and how often it is decided at all, if it may be asked twice (`--settle`).
//!
//! `cargo test --release -p fathom-io-analysis settled_rates -- --ignored --nocapture` prints the table of `docs/reference/repeats.md`.

use crate::gate::{Estimate, SURE, SURE_EACH_TIME, over_runs};
use model::report::AnswerWord;
use stats::series::Noise;

/// The limit, and how much runs vary.
const LIMIT: f64 = 10e6;
const DEVIATION: f64 = 0.05;

/// The word about a latency.
fn word(seen: &Estimate) -> AnswerWord {
    let [low, high] = seen.bounds;
    match (high <= LIMIT, low > LIMIT) {
        (true, _) => AnswerWord::Pass,
        (_, true) => AnswerWord::Fail,
        _ => AnswerWord::Inconclusive,
    }
}

/// Sessions whose true latency is `truth` times the limit: shares of PASS and of FAIL, and the mean number of runs. The first runs may
/// call for up to ten times as many, once.
fn shares(sessions: u64, first: u32, truth: f64, settles: bool) -> [f64; 3] {
    let mut all = [0.0; 3];
    for seed in 0..sessions {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(29));
        let mut run = || LIMIT * truth * (DEVIATION * noise.normal()).exp();
        let mut runs: Vec<f64> = (0..first).map(|_| run()).collect();
        let sure = if settles { SURE_EACH_TIME } else { SURE };
        let mut seen = over_runs(&runs, LIMIT, sure).unwrap();
        if settles && word(&seen) == AnswerWord::Inconclusive {
            let at_most = 10 * first;
            let needed = seen.runs_needed.unwrap_or(at_most).min(at_most);
            runs.extend((first..needed).map(|_| run()));
            seen = over_runs(&runs, LIMIT, sure).unwrap();
        }
        all[0] += f64::from(u8::from(word(&seen) == AnswerWord::Pass));
        all[1] += f64::from(u8::from(word(&seen) == AnswerWord::Fail));
        all[2] += runs.len() as f64;
    }
    all.map(|sum| sum / sessions as f64)
}

#[test]
fn asking_twice_at_the_limit_errs_once_in_twenty_on_either_side() {
    for first in [5, 8] {
        let [pass, fail, _] = shares(2000, first, 1.0, true);
        assert!(pass <= 0.06 && fail <= 0.06, "{first} runs: {pass} {fail}");
    }
}

#[test]
fn the_second_round_decides_open_conditions() {
    for (truth, word) in [(0.97, 0), (1.03, 1)] {
        let (once, twice) = (shares(500, 8, truth, false), shares(500, 8, truth, true));
        assert!(twice[word] > 0.75 && twice[word] > once[word] + 0.2, "{truth}: {once:?} {twice:?}");
        assert!(twice[1 - word] < 0.01 && twice[2] < 60.0, "{truth}: {twice:?}");
    }
    let [pass, _, runs] = shares(200, 8, 0.5, true);
    assert!(pass > 0.99 && runs < 8.1, "far from the limit the first round decides: {pass} {runs}");
}

#[test]
#[ignore = "prints the table of docs/reference/repeats.md"]
fn settled_rates() {
    println!(
        "| truth by the limit | once: PASS | FAIL | `--settle`: PASS | FAIL | runs, mean |\n|---|---|---|---|---|---|"
    );
    for truth in [0.80, 0.90, 0.95, 0.97, 1.0, 1.03, 1.05, 1.10, 1.20] {
        let [once, settled] = [false, true].map(|settles| shares(5000, 8, truth, settles));
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let [pass, fail, runs] = settled;
        let cells = [once[0], once[1], pass, fail].map(percent).join(" | ");
        println!("| {:+.0} % | {cells} | {runs:.1} |", 100.0 * (truth - 1.0));
    }
}
