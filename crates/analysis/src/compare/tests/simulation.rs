//! Seeded simulations with a known truth: how often a word is wrong, and how often a difference is found.
//!
//! Runs are drawn on a logarithmic axis and weighed like runs that were measured in turns.
//! `cargo test --release -p fathom-io-analysis error_rates -- --ignored --nocapture` prints the tables of `docs/reference/compare.md`.

use crate::compare::weighing::{Measure, Weighed, gate, in_turns, pair, rates, weigh};
use crate::compare::{Options, Runs};
use crate::strategy::{Budget, Next, Summary, next};
use model::comparison::{Answer, Gate, Metric, Passing};
use model::payload::split_mix;
use model::plan::Strategy;
use model::study::TargetLayout;
use model::verdict::Slower;
use statrs::distribution::{ContinuousCDF, Normal};
use stats::comparison;
use stats::series::Noise;

/// Deviation from run to run, as the reference supposes.
const DEVIATION: f64 = 0.03;

/// Normal values, the same for the same seed.
struct Draw(u64);

impl Draw {
    fn normal(&mut self) -> f64 {
        self.0 = split_mix(self.0);
        let uniform = (self.0 >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0;
        Normal::new(0.0, 1.0).unwrap().inverse_cdf(uniform)
    }

    /// `n` runs of a rate, with that deviation on a logarithmic axis.
    fn runs(&mut self, n: usize, factor: f64, deviation: f64) -> Vec<f64> {
        (0..n).map(|_| 10_000.0 * factor * (deviation * self.normal()).exp()).collect()
    }

    fn pair(&mut self, n: usize, factor: f64) -> Measure {
        rates(&self.runs(n, 1.0, DEVIATION), &self.runs(n, factor, DEVIATION))
    }
}

fn alone(weighed: Weighed) -> Metric {
    let chance = weighed.chance();
    weighed.answered(chance, 1)
}

/// Shares of comparisons that end with each answer (faster, slower, same, no difference seen, cannot tell), and whose interval contains
/// the truth.
fn shares(trials: usize, n: usize, factor: f64) -> ([f64; 5], f64) {
    let mut draw = Draw(7 + n as u64);
    let (mut words, mut held) = ([0; 5], 0);
    for _ in 0..trials {
        let metric = alone(weigh(draw.pair(n, factor), &in_turns()));
        let word = match metric.answer {
            Answer::Faster => 0,
            Answer::Slower => 1,
            Answer::Same => 2,
            Answer::NoDifferenceSeen => 3,
            _ => 4,
        };
        words[word] += 1;
        held += usize::from(metric.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
    }
    (words.map(|w| f64::from(w) / trials as f64), held as f64 / trials as f64)
}

#[test]
fn the_same_system_twice_is_rarely_called_different_and_intervals_hold_the_truth() {
    for n in [3, 5, 10] {
        let ([faster, slower, ..], held) = shares(1000, n, 1.0);
        assert!(faster + slower <= 0.03, "{n} runs: {} called different", faster + slower);
        assert!((0.93..=0.97).contains(&held), "{n} runs: the interval holds the truth in {held}");
    }
}

#[test]
fn a_tenth_is_found_with_five_runs_and_never_with_three() {
    let ([found, wrong, same, ..], _) = shares(1000, 5, 1.1);
    assert!(found > 0.90 && wrong == 0.0 && same == 0.0, "{found} {wrong} {same}");
    let ([found, ..], _) = shares(300, 3, 1.1);
    assert!(found == 0.0, "{found}");
    let ([of_five, ..], _) = shares(1000, 5, 1.05);
    let ([of_ten, ..], _) = shares(1000, 10, 1.05);
    assert!(of_five > 0.25 && of_ten > 0.65, "{of_five} {of_ten}");
}

/// How often a difference is found that is as large as the mean detectable one.
fn power_at_the_visible(trials: usize, n: usize) -> f64 {
    let mut draw = Draw(99);
    let visible: f64 = (0..300)
        .filter_map(|_| alone(weigh(draw.pair(n, 1.0), &in_turns())).could_have_seen)
        .map(f64::ln_1p)
        .sum::<f64>()
        / 300.0;
    shares(trials, n, visible.exp()).0[0]
}

#[test]
fn the_detectable_difference_is_found_four_times_of_five() {
    for n in [5, 10] {
        let found = power_at_the_visible(1000, n);
        assert!((0.70..=0.90).contains(&found), "{n} runs: {found}");
    }
}

#[test]
fn the_estimated_runs_settle_it() {
    // With the true variation: a difference of 5 % that five runs miss more often than not.
    let mut draw = Draw(5);
    let mut needed: Vec<u32> =
        (0..500).filter_map(|_| alone(weigh(draw.pair(5, 1.05), &in_turns())).runs_needed).collect();
    needed.sort_unstable();
    let median = needed[needed.len() / 2] as usize;
    assert!((6..=40).contains(&median), "{median}");
    let ([found, ..], _) = shares(500, 12, 1.05);
    assert!(found > 0.75, "12 runs by the formula: {found}");
}

#[test]
fn a_difference_of_twice_the_tolerance_is_never_the_same() {
    for n in [3, 5, 20] {
        let ([_, _, same, ..], _) = shares(500, n, 1.1);
        assert!(same < 0.01, "{n} runs: {same}");
    }
    // At the tolerance itself a fortieth may be.
    let ([_, _, same, ..], _) = shares(1000, 10, 1.05);
    assert!(same < 0.04, "{same}");
}

/// The gate on B, which may be 5 % slower.
fn gated(a: &[f64], b: &[f64], runs: Runs) -> Gate {
    let metric = alone(weigh(rates(a, b), &in_turns()));
    let options = Options { runs, ..Options::default() };
    gate(&[pair(true, vec![metric])], Slower { by: 0.05, all: false }, &options)
}

/// Shares of PASS and FAIL, and the runs on each side, if B is `factor` times as fast as A. The gate is asked a second time if `runs`
/// allows it.
fn passed_and_failed(trials: usize, n: usize, factor: f64, runs: Runs) -> [f64; 3] {
    let mut draw = Draw(61 + n as u64);
    let mut all = [0.0; 3];
    for _ in 0..trials {
        let (mut a, mut b) = (draw.runs(n, 1.0, DEVIATION), draw.runs(n, factor, DEVIATION));
        let mut gate = gated(&a, &b, runs);
        if runs == Runs::Settling && gate.outcome == Passing::Undecided {
            let more = gate.runs_needed.map_or(9 * n, |needed| (needed as usize).min(10 * n) - n);
            a.extend(draw.runs(more, 1.0, DEVIATION));
            b.extend(draw.runs(more, factor, DEVIATION));
            gate = gated(&a, &b, runs);
        }
        all[0] += f64::from(u8::from(gate.outcome == Passing::Passed));
        all[1] += f64::from(u8::from(gate.outcome == Passing::Failed));
        all[2] += a.len() as f64;
    }
    all.map(|sum| sum / trials as f64)
}

#[test]
fn a_settling_gate_errs_no_more_often_than_a_single_one() {
    for runs in [Runs::InTurns, Runs::Settling] {
        let [pass, fail, _] = passed_and_failed(400, 5, 0.95, runs);
        assert!(pass <= 0.07 && fail <= 0.07, "at the limit, {runs:?}: {pass} {fail}");
        let [_, fail, _] = passed_and_failed(200, 5, 1.0, runs);
        assert!(fail <= 0.01, "no slower, {runs:?}: {fail}");
        let [pass, ..] = passed_and_failed(200, 5, 0.90, runs);
        assert!(pass <= 0.01, "twice as much slower as it may be, {runs:?}: {pass}");
    }
}

#[test]
fn a_settling_gate_usually_decides() {
    for (factor, word) in [(1.0, 0), (0.90, 1)] {
        let (once, settled) = (
            passed_and_failed(100, 5, factor, Runs::InTurns),
            passed_and_failed(100, 5, factor, Runs::Settling),
        );
        assert!(settled[word] > 0.85 && settled[word] > once[word], "{factor}: {once:?} {settled:?}");
        assert!(settled[2] < 20.0, "{settled:?}");
    }
}

/// Whether any of `numbers` numbers of one system is called different from itself, by Holm.
fn any_of(numbers: usize, n: usize, draw: &mut Draw) -> bool {
    let weighed: Vec<Weighed> = (0..numbers).map(|_| weigh(draw.pair(n, 1.0), &in_turns())).collect();
    let chances = comparison::adjusted(&weighed.iter().map(Weighed::chance).collect::<Vec<_>>());
    let metrics = weighed.into_iter().zip(chances).map(|(w, chance)| w.answered(chance, numbers));
    let different = |m: Metric| matches!(m.answer, Answer::Faster | Answer::Slower);
    metrics.map(different).fold(false, |any, this| any | this)
}

#[test]
fn among_forty_numbers_any_false_word_is_rare() {
    let mut draw = Draw(41);
    let wrong = (0..100).filter(|_| any_of(40, 5, &mut draw)).count();
    assert!(wrong <= 5, "{wrong} of 100 comparisons had a false word");
}

/// Shares of comparisons that call percentiles different, and B slower, and whose interval holds the truth. The percentiles have heavy
/// tails over runs: a log-normal of three times the deviation in a tenth of the runs.
fn percentiles(trials: usize, n: usize, factor: f64) -> ([f64; 2], f64) {
    let mut draw = Draw(17 + n as u64);
    let mut heavy = |factor: f64| -> Vec<f64> {
        let odd = |draw: &mut Draw| if draw.normal() > 1.2816 { 3.0 } else { 1.0 };
        (0..n)
            .map(|_| {
                let wide = odd(&mut draw);
                draw.runs(1, factor, wide * DEVIATION)[0]
            })
            .collect()
    };
    let (mut different, mut right, mut held) = (0, 0, 0);
    for _ in 0..trials {
        let (a, b) = (heavy(1.0), heavy(factor));
        let measure = Measure { percentile: true, more_is_better: false, ..rates(&a, &b) };
        let metric = alone(weigh(measure, &in_turns()));
        different += usize::from(matches!(metric.answer, Answer::Faster | Answer::Slower));
        right += usize::from(metric.answer == Answer::Slower);
        held += usize::from(metric.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
    }
    ([different, right].map(|c| c as f64 / trials as f64), held as f64 / trials as f64)
}

#[test]
fn percentiles_with_heavy_tails_are_rarely_called_different() {
    for n in [5, 7] {
        let ([different, _], held) = percentiles(400, n, 1.0);
        assert!(different <= 0.03, "{n} runs: {different}");
        assert!(held >= 0.92, "{n} runs: the interval holds the truth in {held}");
    }
    let ([_, right], _) = percentiles(200, 7, 1.3);
    assert!(right > 0.9, "{right}");
}

/// How the rates of a simulated machine vary over time, for all targets alike.
#[derive(Clone, Copy, Debug)]
enum Weather {
    /// Not at all: each run varies by itself.
    Quiet,
    /// It gets slower by a fifth from the first run to the last.
    Drift,
    /// For a tenth of the time, some runs in a row take a third longer.
    Bursts,
    /// Half of the runs, by chance, are a seventh slower.
    TwoLevels,
}

/// Deviation of a run of each test.
const DEVIATIONS: [f64; 4] = [0.03, 0.005, 0.03, 0.1];
/// Time of a run, and of the whole comparison.
const RUN_NS: u64 = 420_000_000;
const ENDS_NS: u64 = 60_000_000_000;

/// Rates of four tests on two targets, measured until the time is up; the second target is faster by the factor.
fn measured_in_time(seed: u64, factor: f64, weather: Weather) -> Vec<Summary> {
    let layout = TargetLayout { tests: DEVIATIONS.len() as u32, targets: 2 };
    let budget = Budget {
        jobs: 2 * DEVIATIONS.len(),
        runs: 5,
        strategy: Strategy::Targets(layout),
        seed,
        paired: true,
        attempts: 1,
        ends_ns: Some(ENDS_NS),
        blocks: Vec::new(),
    };
    let mut noise = Noise(split_mix(seed));
    let mut done: Vec<Summary> = Vec::new();
    let (mut now_ns, mut burst) = (2_000_000_000, 0);
    while let Next::Measure { job, repeat, .. } = next(&done, &budget) {
        now_ns += RUN_NS;
        if burst == 0 && noise.uniform() < 0.02 {
            burst = 5;
        }
        let slowdown: f64 = match weather {
            Weather::Quiet => 0.0,
            Weather::Drift => 0.2 * now_ns as f64 / ENDS_NS as f64,
            Weather::Bursts => {
                if burst > 0 {
                    0.3
                } else {
                    0.0
                }
            }
            Weather::TwoLevels => {
                if noise.uniform() < 0.5 {
                    0.15
                } else {
                    0.0
                }
            }
        };
        burst = if burst > 0 { burst - 1 } else { 0 };
        let factor = if job % 2 == 1 { factor } else { 1.0 };
        let iops = 1e4 * factor * (DEVIATIONS[job / 2] * noise.normal() - slowdown).exp();
        done.push(Summary { iops, refused: false, ended_ns: now_ns, ..Summary::refused(job, repeat) });
    }
    done
}

/// Results of comparisons with a time limit, as shares of the comparisons or of their tests.
#[derive(Debug, Default)]
struct InTime {
    /// Comparisons with any FASTER or SLOWER.
    any_word: f64,
    /// Tests with FASTER.
    faster: f64,
    /// Tests with SAME.
    same: f64,
    /// Tests whose interval holds the truth.
    held: f64,
    /// Runs of a test on each target.
    runs: f64,
    /// Mean of the bound of the tests that vary by 3 %, as a share.
    bound: f64,
}

/// Simulates `trials` comparisons of four tests. The first test is the headline.
fn in_time(trials: u64, factor: f64, weather: Weather) -> InTime {
    let mut all = InTime::default();
    let tests = DEVIATIONS.len();
    for seed in 0..trials {
        let done = measured_in_time(seed + 1, factor, weather);
        let rates_of =
            |job: usize| done.iter().filter(|s| s.job == job).map(|s| s.iops).collect::<Vec<f64>>();
        let weighed: Vec<Weighed> = (0..tests)
            .map(|test| weigh(rates(&rates_of(2 * test), &rates_of(2 * test + 1)), &in_turns()))
            .collect();
        let chances: Vec<f64> = weighed.iter().map(Weighed::chance).collect();
        let adjusted = [vec![chances[0]], comparison::adjusted(&chances[1..])].concat();
        let metrics: Vec<Metric> =
            weighed.into_iter().zip(adjusted).map(|(w, chance)| w.answered(chance, tests - 1)).collect();
        let differs = |m: &&Metric| matches!(m.answer, Answer::Faster | Answer::Slower);
        let count =
            |of: &dyn Fn(&Metric) -> bool| metrics.iter().filter(|m| of(m)).count() as f64 / tests as f64;
        all.any_word += f64::from(u8::from(metrics.iter().any(|m| differs(&m))));
        all.faster += count(&|m| m.answer == Answer::Faster);
        all.same += count(&|m| m.answer == Answer::Same);
        all.held += count(&|m| m.interval.is_some_and(|[low, high]| low <= factor && factor <= high));
        all.runs += metrics.iter().map(|m| m.a_runs.len() as f64).sum::<f64>() / tests as f64;
        let bounds = [&metrics[0], &metrics[2]].map(|m| m.at_most().map_or(1.0, |ends| ends[0].max(ends[1])));
        all.bound += f64::midpoint(bounds[0], bounds[1]);
    }
    let n = trials as f64;
    let InTime { any_word, faster, same, held, runs, bound } = all;
    InTime {
        any_word: any_word / n,
        faster: faster / n,
        same: same / n,
        held: held / n,
        runs: runs / n,
        bound: bound / n,
    }
}

#[test]
fn tests_that_run_until_narrow_have_no_more_false_answers() {
    for weather in [Weather::Quiet, Weather::TwoLevels] {
        let alike = in_time(5, 1.0, weather);
        assert!(alike.any_word == 0.0 && alike.held >= 0.8, "{weather:?}: {alike:?}");
    }
    let quiet = in_time(3, 1.0, Weather::Quiet);
    assert!(quiet.same >= 0.25 && quiet.bound < 0.06, "{quiet:?}");
    let faster = in_time(3, 1.1, Weather::Quiet);
    assert!(faster.faster >= 0.75 && faster.same == 0.0, "{faster:?}");
}

#[test]
#[ignore = "prints the table of bench --compare of docs/reference/compare.md; takes a minute in a release build"]
fn error_rates_in_time() {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    println!(
        "| machine | truth | any FASTER or SLOWER | tests FASTER | tests SAME | interval holds it | bound at 3 % | runs |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for weather in [Weather::Quiet, Weather::Drift, Weather::Bursts, Weather::TwoLevels] {
        for factor in [1.0, 1.03, 1.1] {
            let found = in_time(400, factor, weather);
            // 5 % and three deviations of what 400 comparisons show.
            let is_honest = factor > 1.0 || found.any_word <= 0.05 + 0.033;
            assert!(is_honest && found.held >= 0.92, "{weather:?} {factor}: {found:?}");
            println!(
                "| {weather:?} | {:+.0} % | {} | {} | {} | {} | {} | {:.0} |",
                100.0 * (factor - 1.0),
                percent(found.any_word),
                percent(found.faster),
                percent(found.same),
                percent(found.held),
                percent(found.bound),
                found.runs
            );
        }
    }
}

#[test]
#[ignore = "prints the table of docs/reference/compare.md; takes a minute in a release build"]
fn error_rates() {
    const TRIALS: usize = 10_000;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    println!(
        "| truth | runs | FASTER | SLOWER | SAME | NO DIFFERENCE SEEN | CANNOT TELL | interval holds it |\n|---|---|---|---|---|---|---|---|"
    );
    for factor in [1.0, 1.02, 1.05, 1.1, 1.2] {
        for n in [3, 4, 5, 7, 10, 20, 40] {
            let (words, held) = shares(TRIALS, n, factor);
            let cells = words.map(percent).join(" | ");
            println!("| {:+.0} % | {n} | {cells} | {} |", 100.0 * (factor - 1.0), percent(held));
        }
    }
    println!("\n| runs | a difference of the size that could have been seen is seen |\n|---|---|");
    for n in [4, 5, 7, 10] {
        println!("| {n} | {} |", percent(power_at_the_visible(TRIALS, n)));
    }
    println!("\n| numbers looked at | runs | any false word |\n|---|---|---|");
    for (numbers, n) in [(5, 5), (40, 5), (40, 10)] {
        let mut draw = Draw(1);
        let wrong = (0..1000).filter(|_| any_of(numbers, n, &mut draw)).count();
        println!("| {numbers} | {n} | {} |", percent(wrong as f64 / 1000.0));
    }
    println!(
        "\n| percentiles, heavy tails | runs | called different | interval holds it |\n|---|---|---|---|"
    );
    for factor in [1.0, 1.1, 1.3] {
        for n in [5, 6, 7, 10] {
            let ([different, _], held) = percentiles(2000, n, factor);
            let truth = 100.0 * (factor - 1.0);
            println!("| {truth:+.0} % | {n} | {} | {} |", percent(different), percent(held));
        }
    }
}
