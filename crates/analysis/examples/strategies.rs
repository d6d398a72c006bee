//! Prints the tables of docs/reference/repeats.md as Markdown: how often strategies that decide while measuring are right, by simulation.
//! Run it with `cargo run --release -p fathom-io-analysis --example strategies`. The unit tests of the strategies check the limits.
#![allow(clippy::print_stdout)] // Printing is the purpose.

use analysis::strategy::{Next, StrategyPlan, Summary, next};
use model::payload::split_mix;
use model::plan::Strategy;
use stats::intervals;
use stats::series::Noise;
use stats::steady_state::is_steady;

const SESSIONS: u64 = 10_000;

/// The rates of a session of one job.
fn session(strategy: Strategy, rate: impl Fn(u32) -> f64, deviation: f64, seed: u64) -> Vec<f64> {
    let plan = StrategyPlan { jobs: 1, runs: 5, strategy, seed, max_attempts: 3, ..StrategyPlan::default() };
    let mut noise = Noise(split_mix(seed ^ 0x5eed));
    let mut done: Vec<Summary> = Vec::new();
    while let Next::Measure { job, repeat, .. } = next(&done, &plan) {
        let iops = rate(repeat) * (deviation * noise.normal()).exp();
        done.push(Summary { refused: false, iops, ..Summary::refused(job, repeat) });
    }
    done.iter().map(|s| s.iops).collect()
}

/// The 95 % interval of the logarithm of the geometric mean.
fn interval(rates: &[f64]) -> Option<[f64; 2]> {
    intervals::mean(rates)?.interval.map(|ends| ends.map(f64::ln))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn share(hits: impl Iterator<Item = bool>) -> f64 {
    hits.map(|yes| f64::from(u8::from(yes))).sum::<f64>() / SESSIONS as f64
}

fn precision(at_most: u32) {
    println!(
        "\n| runs vary by | reached ±2.5 % | runs, mean | the interval covers the truth |\n|---|---|---|---|"
    );
    for deviation in [0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08] {
        let strategy = Strategy::Precision { share: 0.025, at_most };
        let all: Vec<Vec<f64>> =
            (0..SESSIONS).map(|seed| session(strategy, |_| 1.0, deviation, seed)).collect();
        let ends = |rates: &Vec<f64>| interval(rates).unwrap_or([f64::NAN; 2]);
        let covers = share(all.iter().map(ends).map(|[low, high]| low <= 0.0 && 0.0 <= high));
        let narrow = share(all.iter().map(ends).map(|[low, high]| ((high - low) / 2.0).sinh() <= 0.025));
        let runs = all.iter().map(|r| r.len() as f64).sum::<f64>() / SESSIONS as f64;
        println!("| {} | {} | {runs:.1} | {} |", percent(deviation), percent(narrow), percent(covers));
    }
}

fn until_steady(name: &str, change: f64) {
    for deviation in [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.10] {
        let falling = |repeat: u32| (1.0 + change).powi(repeat as i32);
        let strategy = Strategy::Steady { at_most: 25 };
        let all: Vec<Vec<f64>> =
            (0..SESSIONS).map(|seed| session(strategy, falling, deviation, seed)).collect();
        let mut rounds: Vec<usize> = all.iter().filter(|r| is_steady(r, 25)).map(Vec::len).collect();
        rounds.sort_unstable();
        let at = |rank: f64| {
            rounds.get((rounds.len() as f64 * rank) as usize).map_or("-".into(), usize::to_string)
        };
        let called = rounds.len() as f64 / SESSIONS as f64;
        println!("| {name} | {} | {:.2} % | {} | {} |", percent(deviation), 100.0 * called, at(0.5), at(0.9));
    }
}

fn main() {
    for at_most in [10, 40] {
        println!("\n`--precision 2.5% --max-runs {at_most}`:");
        precision(at_most);
    }
    println!("\n`--until steady`:\n");
    println!(
        "| rates | rounds vary by | called steady | rounds, median | rounds, 90th percentile |\n|---|---|---|---|---|"
    );
    until_steady("level", 0.0);
    until_steady("fall of 1.25 % a round", -0.0125);
    until_steady("fall of 2 % a round", -0.02);
}
