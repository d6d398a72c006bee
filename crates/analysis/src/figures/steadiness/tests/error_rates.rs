//! Simulations with a known truth: how often the statistics of steadiness err.
//!
//! Every test run checks bounds. `cargo test --release -p fathom-io-analysis error_rates -- --ignored --nocapture` prints the table of
//! `docs/how-it-works/statistics.md`. Series have one value a second. The noise is normal and autoregressive of order one: rho is the
//! correlation of neighbours.

use crate::figures::steadiness;
use crate::figures::steadiness::STEP_FROM;
use model::figures::State::{Cliff, Drifting, Steady, Unproven, WarmUp};
use model::figures::{State, Steadiness};
use stats::change::change;
use stats::intervals::half_width;
use stats::sample::mean;
use stats::series::{Noise, Series, flat, over_runs};
use stats::{intervals, steady_state};

const STATES: [State; 5] = [Steady, Drifting, Cliff, WarmUp, Unproven];

/// What a rate is at a second, without noise.
type Rate = fn(f64) -> f64;

/// A series around one: noise times what happens.
#[derive(Clone, Copy)]
struct Scene {
    seconds: usize,
    deviation: f64,
    rho: f64,
    rate: Rate,
}

impl Scene {
    fn draw(&self, seed: u64) -> Vec<f64> {
        let mut values = flat(self.seconds, self.deviation, self.rho, seed);
        values.iter_mut().enumerate().for_each(|(i, v)| *v *= (self.rate)(i as f64));
        values
    }

    /// The answer for one run.
    fn judge(&self, seed: u64) -> Steadiness {
        let rates = self.draw(seed);
        let all = vec![mean(&rates)];
        steadiness::judge_steadiness(
            Ok(vec![Series { from_ns: 0.0, step_ns: 1e9, rates }]),
            all,
            self.seconds as f64,
        )
    }

    /// How often each state is the answer, in the order of [`STATES`].
    fn states(&self, draws: u64) -> [f64; 5] {
        let mut counts = [0.0; 5];
        for seed in 0..draws {
            let state = self.judge(seed).state;
            STATES.iter().zip(&mut counts).filter(|(s, _)| **s == state).for_each(|(_, c)| *c += 1.0);
        }
        counts.map(|c| c / draws as f64)
    }

    /// How often the first step is found `within` seconds of the truth, and how often there are more.
    fn step_at(&self, truth: usize, within: usize, draws: u64) -> [f64; 2] {
        let limit = STEP_FROM.at(self.seconds as f64);
        let found: Vec<Vec<usize>> = (0..draws)
            .map(|seed| change(&self.draw(seed), limit).steps().iter().map(|s| s.at).collect())
            .collect();
        let hit = found.iter().filter(|at| at.iter().any(|a| a.abs_diff(truth) <= within)).count();
        let more = found.iter().filter(|at| at.len() > 1).count();
        [hit, more].map(|n| n as f64 / draws as f64)
    }
}

fn flat_scene(seconds: usize, deviation: f64, rho: f64) -> Scene {
    Scene { seconds, deviation, rho, rate: |_| 1.0 }
}

/// Share of the intervals within a run that hold the truth, share that is withheld, and their mean half width.
fn within_a_run(n: usize, rho: f64, draws: u64) -> [f64; 3] {
    let given: Vec<(f64, f64)> = (0..draws)
        .filter_map(|seed| {
            let values = flat(n, 0.05, rho, seed);
            Some((mean(&values) - 1.0, half_width(&values)?))
        })
        .collect();
    let covers = given.iter().filter(|(off, half)| off.abs() <= *half).count() as f64;
    let count = given.len() as f64;
    [covers / count, 1.0 - count / draws as f64, mean(&given.iter().map(|g| g.1).collect::<Vec<_>>())]
}

/// Rates of `count` runs that vary by this deviation around one.
fn runs(count: usize, deviation: f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(77));
    (0..count).map(|_| (deviation * noise.normal()).exp()).collect()
}

/// Share of the intervals over runs that hold the truth: of the geometric mean, and of the median.
fn over_the_runs(count: usize, deviation: f64, draws: u64) -> [Option<f64>; 2] {
    let covers = |of: &dyn Fn(&[f64]) -> Option<[f64; 2]>| {
        let given: Vec<[f64; 2]> = (0..draws).filter_map(|seed| of(&runs(count, deviation, seed))).collect();
        let hit = given.iter().filter(|i| i[0] <= 1.0 && i[1] >= 1.0).count();
        (!given.is_empty()).then(|| hit as f64 / given.len() as f64)
    };
    [
        covers(&|values| stats::intervals::mean(values)?.interval),
        covers(&|values| Some(intervals::of_runs(values)?.interval)),
    ]
}

/// Runs of a minute that lose a share from one to the next.
fn decaying(count: usize, share: f64, deviation: f64, seed: u64) -> Vec<f64> {
    let each = runs(count, deviation, seed);
    each.iter().enumerate().map(|(i, v)| v * (1.0 - share).powi(i as i32)).collect()
}

/// The answers for runs of a minute with these rates, flat within: shares of the states, and how often the last five runs, and any five,
/// meet the rule of the SNIA.
fn over_rounds(count: usize, share: f64, deviation: f64, draws: u64) -> ([f64; 5], [f64; 2]) {
    let (mut states, mut rule) = ([0.0; 5], [0.0; 2]);
    for seed in 0..draws {
        let rates = decaying(count, share, deviation, seed);
        let course = |(i, level): (usize, &f64)| Series {
            from_ns: 0.0,
            step_ns: 1e9,
            rates: flat(60, 0.02, 0.0, seed * 100 + i as u64).iter().map(|v| v * level).collect(),
        };
        let answer = steadiness::judge_steadiness(
            Ok(rates.iter().enumerate().map(course).collect()),
            rates.clone(),
            60.0 * count as f64,
        );
        STATES.iter().zip(&mut states).filter(|(s, _)| **s == answer.state).for_each(|(_, c)| *c += 1.0);
        let any = (5..=count).any(|n| steady_state::rule(&rates[..n]).is_some_and(|s| s.met));
        rule[0] += f64::from(u8::from(answer.snia.is_some_and(|s| s.met)));
        rule[1] += f64::from(u8::from(any));
    }
    (states.map(|c| c / draws as f64), rule.map(|c| c / draws as f64))
}

/// A warm-up that doubles the rate and dies away.
fn warming<const SECONDS: u32>(at: f64) -> f64 {
    1.0 + (-at / f64::from(SECONDS)).exp()
}

#[test]
fn intervals_within_a_run_hold_the_truth() {
    let [covers, withheld, _] = within_a_run(120, 0.0, 1500);
    assert!((0.92..=0.985).contains(&covers) && withheld < 0.01, "{covers} {withheld}");
    let [covers, ..] = within_a_run(120, 0.5, 1000);
    assert!(covers >= 0.92, "{covers}");
    // What resembles its neighbours that much is mostly withheld.
    let [_, withheld, _] = within_a_run(120, 0.95, 300);
    assert!(withheld >= 0.9, "{withheld}");
}

#[test]
fn intervals_over_runs_hold_the_truth() {
    for count in [3, 5, 10] {
        let [Some(covers), median] = over_the_runs(count, 0.03, 4000) else { panic!("withheld") };
        assert!((0.935..=0.965).contains(&covers), "{count}: {covers}");
        assert!(median.is_none_or(|m| m >= 0.94), "{count}: {median:?}");
    }
}

#[test]
fn cliffs_are_found_at_the_right_second() {
    let cases: [(f64, usize, usize, Rate); 3] = [
        (0.05, 75, 0, |at| if at < 75.0 { 1.0 } else { 1.0 / 3.0 }),
        (0.02, 80, 2, |at| if at < 80.0 { 1.0 } else { 0.94 }),
        (0.03, 80, 2, |at| if at < 80.0 { 1.0 } else { 0.90 }),
    ];
    for (deviation, at, off, rate) in cases {
        let [hit, more] = Scene { seconds: 120, deviation, rho: 0.0, rate }.step_at(at, off, 100);
        assert!(hit >= 0.95 && more <= 0.02, "{at} {deviation}: {hit} {more}");
    }
}

#[test]
fn noise_is_no_cliff_and_quiet_noise_is_steady() {
    for (rho, deviation) in [(0.0, 0.02), (0.0, 0.1), (0.5, 0.05), (0.8, 0.1), (0.95, 0.1)] {
        let [steady, drifting, cliff, ..] = flat_scene(120, deviation, rho).states(100);
        assert!(
            cliff <= if rho > 0.9 { 0.05 } else { 0.01 } && drifting <= 0.03,
            "rho {rho}: {cliff} {drifting}"
        );
        assert!(deviation > 0.02 || steady >= 0.95, "{steady}");
    }
}

#[test]
fn a_decay_of_two_percent_per_round_is_never_steady_although_the_snia_rule_passes() {
    for (count, deviation) in [(5, 0.002), (5, 0.005), (10, 0.005), (25, 0.005)] {
        let ([steady, ..], [met, any]) = over_rounds(count, 0.02, deviation, 12);
        assert!(steady <= 0.0, "{count} runs, {deviation}: {steady}");
        assert!(met >= 0.9 && any >= 0.9, "{count} runs, {deviation}: {met} {any}");
    }
}

#[test]
fn a_warm_up_is_left_out_and_the_rest_is_steady() {
    let [steady, drifting, cliff, ..] =
        Scene { seconds: 120, deviation: 0.03, rho: 0.0, rate: warming::<10> }.states(100);
    assert!(steady >= 0.8 && drifting + cliff <= 0.05, "{steady} {drifting} {cliff}");
    let long = Scene { seconds: 120, deviation: 0.03, rho: 0.0, rate: warming::<60> }.states(60);
    assert!(long[0] <= 0.0 && long[3] >= 0.95, "{long:?}");
}

/// Draws of a row of the tables.
const DRAWS: u64 = 2000;

#[test]
#[ignore = "prints the tables of docs/how-it-works/statistics.md; takes a minute"]
fn tables() {
    print_within_a_run();
    print_over_the_runs();
    print_steps();
    print_states();
    print_rounds();
    print_drift();
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn print_within_a_run() {
    println!(
        "| n | rho | covered, % of those given | withheld, % | mean half width, % |\n|---|---|---|---|---|"
    );
    for n in [60, 120] {
        for rho in [0.0, 0.5, 0.8, 0.95] {
            let [covers, withheld, half] = within_a_run(n, rho, 10 * DRAWS);
            println!("| {n} | {rho} | {} | {} | {} |", percent(covers), percent(withheld), percent(half));
        }
    }
}

fn print_over_the_runs() {
    println!("\n| runs | deviation | geometric mean covered, % | median covered, % |\n|---|---|---|---|");
    for count in [3, 5, 6, 10, 20] {
        for deviation in [0.03, 0.3] {
            let [of_mean, of_median] = over_the_runs(count, deviation, 10 * DRAWS);
            let show = |v: Option<f64>| v.map_or("-".into(), percent);
            println!("| {count} | {deviation} | {} | {} |", show(of_mean), show(of_median));
        }
    }
}

fn print_steps() {
    println!(
        "\n| step at 80 s of 120 | deviation | rho | found within 2 s, % | more than one, % |\n|---|---|---|---|---|"
    );
    let steps: [(&str, Rate); 3] = [
        ("-6 %", |at| if at < 80.0 { 1.0 } else { 0.94 }),
        ("-10 %", |at| if at < 80.0 { 1.0 } else { 0.90 }),
        ("to a third", |at| if at < 80.0 { 1.0 } else { 1.0 / 3.0 }),
    ];
    for (name, rate) in steps {
        for (deviation, rho) in [(0.02, 0.0), (0.03, 0.0), (0.05, 0.0), (0.05, 0.5), (0.1, 0.5)] {
            let [hit, more] = Scene { seconds: 120, deviation, rho, rate }.step_at(80, 2, DRAWS);
            println!("| {name} | {deviation} | {rho} | {} | {} |", percent(hit), percent(more));
        }
    }
}

fn print_states() {
    println!(
        "\n| one run | s | deviation | rho | STEADY | DRIFTING | CLIFF | WARM-UP | UNPROVEN |\n|---|---|---|---|---|---|---|---|---|"
    );
    let flat: Rate = |_| 1.0;
    let scenes: [(&str, usize, f64, f64, Rate); 20] = [
        ("flat", 120, 0.02, 0.0, flat),
        ("flat", 120, 0.05, 0.0, flat),
        ("flat", 120, 0.10, 0.0, flat),
        ("flat", 120, 0.03, 0.5, flat),
        ("flat", 120, 0.05, 0.5, flat),
        ("flat", 300, 0.05, 0.5, flat),
        ("flat", 120, 0.05, 0.8, flat),
        ("flat", 120, 0.05, 0.95, flat),
        ("flat", 120, 0.3, 0.95, flat),
        ("flat", 30, 0.02, 0.0, flat),
        ("to a third at 75 s", 120, 0.05, 0.0, |at| if at < 75.0 { 1.0 } else { 1.0 / 3.0 }),
        ("-6 % at 80 s", 120, 0.02, 0.0, |at| if at < 80.0 { 1.0 } else { 0.94 }),
        ("half at 40 s, a tenth at 80 s", 120, 0.05, 0.3, |at| [1.0, 0.5, 0.1][(at / 40.0) as usize % 3]),
        ("double at 40 s, half at 80 s", 120, 0.05, 0.3, |at| [1.0, 2.0, 0.5][(at / 40.0) as usize % 3]),
        ("warm-up, time 10 s", 120, 0.03, 0.0, warming::<10>),
        ("warm-up, time 20 s", 120, 0.03, 0.0, warming::<20>),
        ("warm-up, time 60 s", 120, 0.03, 0.0, warming::<60>),
        ("decay 2 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.02 * at / 60.0),
        ("decay 4 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.04 * at / 60.0),
        ("decay 10 % a minute", 120, 0.02, 0.0, |at| 1.0 - 0.10 * at / 60.0),
    ];
    for (name, seconds, deviation, rho, rate) in scenes {
        let states = Scene { seconds, deviation, rho, rate }.states(DRAWS / 2).map(percent);
        println!("| {name} | {seconds} | {deviation} | {rho} | {} |", states.join(" | "));
    }
}

fn print_rounds() {
    println!(
        "\n| runs of a minute | loss a round | deviation of runs | STEADY | DRIFTING | CLIFF | WARM-UP | UNPROVEN | SNIA met at the end | by any five |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for share in [0.0, 0.02] {
        for count in [3, 5, 10, 25] {
            for deviation in [0.002, 0.01, 0.03] {
                let (states, rule) = over_rounds(count, share, deviation, DRAWS / 10);
                let (states, rule) = (states.map(percent).join(" | "), rule.map(percent).join(" | "));
                println!("| {count} | {:.0} % | {deviation} | {states} | {rule} |", 100.0 * share);
            }
        }
    }
}

fn print_drift() {
    println!("\n| runs | deviation | drift over runs covered, % |\n|---|---|---|");
    for count in [3, 5, 10] {
        for deviation in [0.01, 0.1] {
            let covers =
                |seed| over_runs(&runs(count, deviation, seed)).is_some_and(|d| d.share.abs() <= d.half);
            let hit = (0..10 * DRAWS).filter(|seed| covers(*seed)).count() as f64 / (10 * DRAWS) as f64;
            println!("| {count} | {deviation} | {} |", percent(hit));
        }
    }
}
