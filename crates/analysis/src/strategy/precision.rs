//! Precision: each job is measured until its interval is as narrow as was asked for.
//!
//! For: when a job has enough runs, and how many more it would need. Not for: the interval itself (`interval`).
//!
//! Whoever stops when an interval is narrow stops too often when it is so by luck, and what is shown then covers the truth
//! less often than it says (Anscombe 1953; Law and Kelton, Simulation Modeling and Analysis, section 9.4.1). So there is a
//! least number of runs, and the interval must be narrow twice: after the last run and after the one before. The simulation
//! below holds what is left of the error.

use super::{Budget, Next, Summary, jobs_in_words, rates, rounds};
use model::units::show_share;
use stats::sample::variance;
use stats::{interval, sample_size};

/// Runs after which the interval must be narrow, one after the other: the last ones.
const IN_A_ROW: usize = 2;

/// The next run of the jobs whose interval is still too wide.
pub(super) fn next_until_precise(done: &[Summary], budget: &Budget, share: f64, at_most: u32) -> Next {
    rounds::next_among(done, budget, |rates| is_imprecise(rates, budget.runs, share, at_most)).unwrap_or_else(
        || {
            let (reached, missed): (Vec<usize>, Vec<usize>) =
                (0..budget.jobs).partition(|job| is_reached(&rates(done, *job), share));
            let asked = show_share(share);
            Next::Done(match (reached.as_slice(), missed.as_slice()) {
                (_, []) => format!("all {} jobs reached {asked}", budget.jobs),
                (reached, missed) => format!(
                    "{} reached {asked}; {} did not within {at_most} runs",
                    jobs_in_words(reached),
                    jobs_in_words(missed)
                ),
            })
        },
    )
}

/// Whether a job with these rates is to be measured again.
pub(super) fn is_imprecise(rates: &[f64], at_least: u32, share: f64, at_most: u32) -> bool {
    let runs = rates.len() as u32;
    runs < at_least || (runs < at_most && !is_reached(rates, share))
}

/// Whether the interval of these rates is narrow enough, and was so before the last of them.
fn is_reached(rates: &[f64], share: f64) -> bool {
    let narrow = |runs: usize| half_share(rates.get(..runs).unwrap_or_default()).is_some_and(|h| h <= share);
    rates.len() >= IN_A_ROW && (0..IN_A_ROW).all(|back| narrow(rates.len() - back))
}

/// Half the 95 % interval of the mean of these rates as a share of it; `None` where they have no interval.
fn half_share(rates: &[f64]) -> Option<f64> {
    let mean = interval::mean(rates)?;
    let [low, high] = mean.interval?;
    (mean.value > 0.0).then(|| (high - low) / 2.0 / mean.value)
}

/// How a job ended, in a sentence; `None` where it was hardly measured.
pub(super) fn precision_note(job: &str, rates: &[f64], share: f64) -> Option<String> {
    let (runs, asked) = (rates.len(), show_share(share));
    let Some(half) = half_share(rates) else {
        return (runs > 0).then(|| format!("{job}: {runs} runs have no interval, and {asked} was asked for"));
    };
    let reached = show_share(half);
    if is_reached(rates, share) {
        return Some(format!(
            "{job}: adaptive: stopped after {runs} runs, when the interval was {reached} to either side ({asked} was asked for)"
        ));
    }
    let more = match needed(rates, share) {
        Some(needed) if needed > runs as u32 => format!("about {needed} would do, if they vary as these do"),
        // Narrow once and not yet twice, or cut short.
        Some(_) => "one or two more would tell".into(),
        None => {
            format!(
                "more than {} would be needed; longer ones may vary less (--time)",
                sample_size::MOST_RUNS
            )
        }
    };
    Some(format!(
        "{job}: the interval is {reached} to either side after {runs} runs, and {asked} was asked for; {more}"
    ))
}

/// Runs after which the interval would be so narrow if they went on varying as these do; `None` where they are too many.
fn needed(rates: &[f64], share: f64) -> Option<u32> {
    sample_size::runs(variance(&rates.iter().map(|r| r.ln()).collect::<Vec<_>>()), share)
}

#[cfg(test)]
use super::played;
#[cfg(test)]
use model::plan::Strategy;
#[cfg(test)]
use stats::known::Noise;

#[cfg(test)]
fn budget(jobs: usize, share: f64) -> Budget {
    Budget {
        jobs,
        runs: 5,
        strategy: Strategy::Precision { share, at_most: 10 },
        seed: 3,
        paired: false,
        attempts: 3,
        ends_ns: None,
        blocks: Vec::new(),
    }
}

#[test]
fn quiet_jobs_stop_early_and_loud_ones_at_the_limit() {
    let shaking = |job: usize, repeat: u32| match (job, repeat % 2) {
        (1, 0) => 80.0,
        (1, _) => 120.0,
        _ => 100.0 + f64::from(repeat % 3) / 10.0,
    };
    let done = played(&budget(3, 0.025), shaking);
    let runs: Vec<usize> = (0..3).map(|job| rates(&done, job).len()).collect();
    assert_eq!(runs, [5, 10, 5]);
    let Next::Done(why) = super::next(&done, &budget(3, 0.025)) else { panic!("goes on") };
    assert_eq!(why, "jobs 1 and 3 reached 2.5 %; job 2 did not within 10 runs");
    // The loud one is left alone with its last rounds.
    assert!(done[15..].iter().all(|s| s.job == 1));
    assert!(matches!(super::next(&done[..15], &budget(3, 0.025)), Next::Measure { job: 1, repeat: 5, .. }));
}

#[test]
fn what_never_completes_ends_at_the_limit() {
    assert_eq!(played(&budget(1, 0.025), |_, _| 0.0).len(), 10);
}

#[test]
fn a_note_says_what_was_reached_and_how_many_runs_would_do() {
    let said = |rates: &[f64], share| precision_note("4K", rates, share).unwrap();
    assert!(said(&[100.0; 5], 0.025).contains("stopped after 5 runs"));
    // The deviation on logarithms is 0.0837: t(9) = 2.262 gives 6.0 %, and 47 runs with t(46) = 2.013 give 2.46 %.
    let loud: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 108.265 } else { 92.366 }).collect();
    let words = said(&loud, 0.025);
    assert!(
        words.contains("6.0 % to either side after 10 runs") && words.contains("about 47 would do"),
        "{words}"
    );
    assert!(said(&[1.0, 1000.0, 1.0], 0.001).contains("more than 100 would be needed"));
    assert!(said(&[1.0], 0.025).contains("no interval"));
    assert_eq!(precision_note("4K", &[], 0.025), None);
}

/// Of so many sessions with a spread of the runs, how many cover the truth, how many reach what was asked, and the mean of runs.
#[cfg(test)]
fn simulated(sessions: u64, deviation: f64, share: f64, at_most: u32) -> (f64, f64, f64) {
    let (mut covered, mut reached, mut runs) = (0.0, 0.0, 0.0);
    for seed in 0..sessions {
        let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17));
        let mut rates = Vec::new();
        while is_imprecise(&rates, 5, share, at_most) {
            rates.push((deviation * noise.normal()).exp());
        }
        let [low, high] = interval::mean(&rates).and_then(|m| m.interval).unwrap();
        covered += f64::from(u8::from(low <= 1.0 && 1.0 <= high));
        reached += f64::from(u8::from(is_reached(&rates, share)));
        runs += rates.len() as f64;
    }
    let n = sessions as f64;
    (covered / n, reached / n, runs / n)
}

#[test]
fn intervals_of_jobs_that_stopped_when_they_were_narrow_still_cover_the_truth() {
    for at_most in [10, 40] {
        for deviation in [0.005, 0.01, 0.02, 0.03, 0.05, 0.08] {
            let (covered, reached, runs) = simulated(1000, deviation, 0.025, at_most);
            assert!(
                (0.92..=0.98).contains(&covered),
                "{deviation} to {at_most}: {covered}, {reached}, {runs}"
            );
        }
    }
}
