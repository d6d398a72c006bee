//! Steady: a job is measured round after round until its rates no longer drift.
//!
//! For: which job to measure next, and what is said in the end. Not for: the rule (`stats::rounds`), nor which rounds count (`runs`).

use super::{Budget, Next, Summary, jobs_in_words, rates, rounds};
use model::units::show_rate;
use stats::rounds::{DRIFT, WINDOW, is_steady};

/// Rates that a note shows at most.
const SHOWN: usize = 25;

/// The next round of the first job that is not steady yet. One job after another: rounds of others in between would be rests.
pub(super) fn next_until_steady(done: &[Summary], budget: &Budget, at_most: u32) -> Next {
    let open = |job: &usize| is_unsteady(&rates(done, *job), at_most);
    if let Some(job) = rounds::order(budget, 0).into_iter().find(open) {
        let repeat = rates(done, job).len() as u32;
        return Next::Measure { job, repeat, attempt: 0, offered_iops: None };
    }
    let (steady, never): (Vec<usize>, Vec<usize>) =
        (0..budget.jobs).partition(|job| is_steady(&rates(done, *job), at_most));
    Next::Done(match (steady.as_slice(), never.as_slice()) {
        (_, []) => format!("all {} jobs are steady", budget.jobs),
        (steady, never) => format!(
            "{} became steady; {} did not within {at_most} rounds",
            jobs_in_words(steady),
            jobs_in_words(never)
        ),
    })
}

/// Whether a job with these rates is to be measured again.
pub(super) fn is_unsteady(rates: &[f64], at_most: u32) -> bool {
    (rates.len() as u32) < at_most && !is_steady(rates, at_most)
}

/// How a job ended, in a sentence; `None` where it was hardly measured.
pub(super) fn steady_note(job: &str, rates: &[f64], at_most: u32) -> Option<String> {
    if rates.is_empty() {
        return None;
    }
    let rounds = rates.len();
    let shown: Vec<String> = rates.iter().take(SHOWN).map(|r| show_rate(*r)).collect();
    let more = if rounds > SHOWN { "; ..." } else { "" };
    let way = format!("IOPS by round: {}{more}", shown.join("; "));
    Some(if is_steady(rates, at_most) {
        format!("{job}: steady after {rounds} rounds, of which the last {WINDOW} count. {way}")
    } else {
        format!(
            "{job}: not steady within {rounds} rounds: it is not sure that the rate drifts by less than {} % over {WINDOW} of them. \
             The last {} are shown. {way}",
            DRIFT * 100.0,
            rounds.min(WINDOW)
        )
    })
}

#[cfg(test)]
use super::played;
#[cfg(test)]
use model::plan::Strategy;
#[cfg(test)]
const AT_MOST: u32 = 25;

#[test]
fn jobs_are_measured_one_after_another_and_each_until_it_is_steady() {
    let budget = Budget {
        jobs: 3,
        runs: 5,
        strategy: Strategy::Steady { at_most: AT_MOST },
        seed: 3,
        paired: false,
        attempts: 3,
        ends_ns: None,
        blocks: Vec::new(),
    };
    let rate = |job: usize, repeat: u32| match job {
        0 => 100.0,
        1 => 100.0 * 0.95_f64.powi(repeat.min(8) as i32),
        _ => 100.0 * 0.95_f64.powi(repeat as i32),
    };
    let done = played(&budget, rate);
    let counts: Vec<usize> = (0..3).map(|job| rates(&done, job).len()).collect();
    assert_eq!(counts, [5, 13, 25]);
    assert_eq!(done.chunk_by(|a, b| a.job == b.job).count(), 3, "no rounds in between");
    let Next::Done(why) = super::next(&done, &budget) else { panic!("goes on") };
    assert_eq!(why, "jobs 1 and 2 became steady; job 3 did not within 25 rounds");
    for cut in 0..done.len() {
        let Next::Measure { job, repeat, .. } = super::next(&done[..cut], &budget) else {
            panic!("not done")
        };
        assert_eq!((job, repeat), (done[cut].job, done[cut].repeat));
    }
}

#[test]
fn a_note_shows_the_way() {
    let words = steady_note("4K", &[300.0, 200.0, 100.0, 100.0, 100.0, 100.0, 100.0], AT_MOST).unwrap();
    assert!(words.contains("after 7 rounds") && words.contains("300; 200; 100"), "{words}");
    let words = steady_note("4K", &[300.0, 200.0], AT_MOST).unwrap();
    assert!(words.contains("not steady within 2 rounds") && words.contains("last 2"), "{words}");
    assert_eq!(steady_note("4K", &[], AT_MOST), None);
}
