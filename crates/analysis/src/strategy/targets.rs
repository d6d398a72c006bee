//! Targets: the same tests on several targets, measured until every interval is narrow enough or the time is up.
//!
//! 1. Every test runs on all targets, one target right after another, in as many rounds as the plan has, each in a new random order.
//! 2. Then the open test whose interval narrows most per second gets another round, and so on. A noisy test gets more
//!    rounds than a quiet one, but not all of them.
//! 3. The measurement ends when no test is open, or when no round of an open test fits into the time that is left.
//!
//! A test is open while half the width of one of its 95 % intervals exceeds half of the distance between margin and
//! tolerance. With narrower intervals, each difference is either beyond the margin or within the tolerance. The size of the difference
//! does not count: tests that end as soon as they seem different would seem different too often. The simulations of
//! `compare` check this rule.

use super::{Next, StrategyPlan, Summary, disturbed, rates};
use crate::runs::rates_by_repeat;
use crate::strategy::repeats::{self, IN_A_ROW};
use crate::threshold::{MARGIN, TOLERANCE};
use model::record::Record;
use model::study::TargetLayout;
use stats::comparison::Shift;

/// Time for judging and printing after the last run.
const REPORT_NS: u64 = 1_000_000_000;

/// Returns the next run. `counting` has the runs that count, `done` all attempts.
pub(super) fn next(
    done: &[Summary],
    counting: &[Summary],
    plan: &StrategyPlan,
    layout: TargetLayout,
) -> Next {
    let clock = Clock::from_runs(done, plan, layout);
    let otherwise = next_first_attempt(counting, plan, layout, &clock);
    match disturbed::next(done, plan, otherwise.clone()) {
        Next::Measure { job, repeat, attempt, .. } if attempt > 0 => {
            let group = layout.group(job);
            let is_same_unit =
                |s: &Summary| (layout.group(s.job), s.repeat, s.attempt) == (group, repeat, attempt);
            let repeat_run = Next::Measure { job, repeat, attempt, offered_iops: None };
            if done.iter().any(is_same_unit) || clock.has_time_for(group) { repeat_run } else { otherwise }
        }
        next => next,
    }
}

/// Returns the next run that is no repeat of a disturbed run.
fn next_first_attempt(
    counting: &[Summary],
    plan: &StrategyPlan,
    layout: TargetLayout,
    clock: &Clock,
) -> Next {
    let groups = count_groups(plan, layout);
    let times = |job: usize| counting.iter().filter(|s| s.job == job).count() as u32;
    let measure = |job: usize| Next::Measure { job, repeat: times(job), attempt: 0, offered_iops: None };
    // A test that has begun is completed on all targets.
    let begun = (0..groups).find_map(|group| {
        let most = layout.jobs(group).map(times).max().unwrap_or(0);
        jobs_in_order(layout, group, most.saturating_sub(1), plan).find(|job| times(*job) < most)
    });
    if let Some(job) = begun {
        return measure(job);
    }
    let complete_rounds = |group: usize| layout.jobs(group).map(times).min().unwrap_or(0);
    let begin = |group: usize| {
        let first = jobs_in_order(layout, group, complete_rounds(group), plan).next();
        first.map_or_else(|| Next::Done("there is no job".into()), measure)
    };
    let least_rounds = (0..groups).map(complete_rounds).min().unwrap_or(plan.runs);
    if least_rounds < plan.runs {
        let order = repeats::random_order(groups, plan.seed, least_rounds);
        let mut round = order.into_iter().filter(|group| complete_rounds(*group) == least_rounds);
        return match round.find(|group| clock.has_time_for(*group)) {
            Some(group) => begin(group),
            None => Next::Done(format!("the time was up in round {}", least_rounds + 1)),
        };
    }
    let open: Vec<(usize, f64)> = (0..layout.tests as usize)
        .filter_map(|group| Some((group, width_if_open(layout, group, |job| rates(counting, job))?)))
        .collect();
    // How much a round narrows the interval, per ns.
    let gain = |(group, width): &(usize, f64)| {
        width / (2.0 * f64::from(complete_rounds(*group).max(1))) / clock.round_ns(*group).max(1.0)
    };
    let fits = open.iter().filter(|(group, _)| plan.ends_ns.is_some() && clock.has_time_for(*group));
    match fits.max_by(|a, b| gain(a).total_cmp(&gain(b))) {
        Some((group, _)) => begin(*group),
        None if open.is_empty() => Next::Done("every interval is narrow enough".into()),
        None => Next::Done(format!("the time was up with {} of {} tests open", open.len(), layout.tests)),
    }
}

/// Counts the groups. A test on all targets is a group, and so is each other job.
fn count_groups(plan: &StrategyPlan, layout: TargetLayout) -> usize {
    plan.jobs.checked_sub(1).map_or(0, |last| layout.group(last) + 1)
}

/// Returns the jobs of a group in the random order of one round, so that no target is always the first.
fn jobs_in_order(
    layout: TargetLayout,
    group: usize,
    round: u32,
    plan: &StrategyPlan,
) -> impl Iterator<Item = usize> + use<> {
    let jobs = layout.jobs(group);
    let order = repeats::random_order(jobs.len(), plan.seed ^ group as u64, round);
    order.into_iter().map(move |at| jobs.start + at)
}

/// Returns half the width of the widest 95 % interval of an open test, divided by the tolerance (both as logarithms).
/// `None` if the test is not open: every interval is narrow enough, or a run has no rate.
fn width_if_open(layout: TargetLayout, group: usize, rates: impl Fn(usize) -> Vec<f64>) -> Option<f64> {
    let logs = |job: usize| rates(job).into_iter().map(f64::ln).collect::<Vec<f64>>();
    let mut jobs = layout.jobs(group);
    let first = logs(jobs.next()?);
    let others: Vec<Vec<f64>> = jobs.map(logs).collect();
    if others.iter().chain([&first]).flatten().any(|log| !log.is_finite()) {
        return None;
    }
    let narrow_enough = (TOLERANCE.ln_1p() - MARGIN.ln_1p()) / 2.0;
    let width = |other: &Vec<f64>| {
        let is_narrow = |back| half_width(&first, other, back).is_some_and(|half| half <= narrow_enough);
        let half = half_width(&first, other, 0).unwrap_or(f64::INFINITY);
        (!(0..IN_A_ROW).all(is_narrow)).then_some(half / TOLERANCE.ln_1p())
    };
    others.iter().filter_map(width).max_by(f64::total_cmp)
}

/// Returns half the width of the 95 % interval of the difference of two lists of logarithms, without the last `without` runs of each.
/// `None` if a list has fewer than three runs left.
fn half_width(a: &[f64], b: &[f64], without: usize) -> Option<f64> {
    let shortened = |side: &'_ [f64]| side.get(..side.len().checked_sub(without)?).map(<[f64]>::to_vec);
    let [low, high] = Shift::new(&shortened(a)?, &shortened(b)?)?.interval();
    Some((high - low) / 2.0)
}

/// Returns the remaining runs of each job: the rounds of the plan and of begun tests, and the further rounds that fit into the time if all
/// open tests get equally many. In the rest of the time, the shortest tests get one more. `counting` has the runs that count,
/// `done` all attempts.
pub(super) fn remaining_runs(
    done: &[Summary],
    counting: &[Summary],
    plan: &StrategyPlan,
    layout: TargetLayout,
) -> Vec<u32> {
    let clock = Clock::from_runs(done, plan, layout);
    let times = |job: usize| counting.iter().filter(|s| s.job == job).count() as u32;
    let most = |job: usize| layout.jobs(layout.group(job)).map(times).max().unwrap_or(0);
    let mut remaining: Vec<u32> =
        (0..plan.jobs).map(|job| plan.runs.max(most(job)).saturating_sub(times(job))).collect();
    let open: Vec<usize> = (0..layout.tests as usize)
        .filter(|group| width_if_open(layout, *group, |job| rates(counting, job)).is_some())
        .collect();
    let planned_ns: f64 =
        remaining.iter().enumerate().map(|(job, runs)| f64::from(*runs) * clock.job_ns(job)).sum();
    let round_ns: f64 = open.iter().map(|group| clock.round_ns(*group)).sum();
    let Some(ends_ns) = plan.ends_ns.filter(|_| round_ns > 0.0) else { return remaining };
    let free_ns = ends_ns.saturating_sub(clock.now_ns + REPORT_NS) as f64 - planned_ns;
    let further_rounds = (free_ns / round_ns).max(0.0) as u32;
    let mut rest_ns = free_ns - f64::from(further_rounds) * round_ns;
    let mut shortest_first = open;
    shortest_first.sort_by(|a, b| clock.round_ns(*a).total_cmp(&clock.round_ns(*b)));
    for group in shortest_first {
        let fits = clock.round_ns(group) <= rest_ns;
        if fits {
            rest_ns -= clock.round_ns(group);
        }
        for job in layout.jobs(group) {
            if let Some(runs) = remaining.get_mut(job) {
                *runs = runs.saturating_add(further_rounds).saturating_add(u32::from(fits));
            }
        }
    }
    remaining
}

/// The time that runs took so far, including pauses, and the time limit.
struct Clock {
    /// End of the last run, in ns since the start of the session.
    now_ns: u64,
    /// When the time is up, in ns since the start of the session; `None` for no limit.
    ends_ns: Option<u64>,
    layout: TargetLayout,
    /// Mean time of a run of each job in ns; `None` for a job without runs.
    job_means_ns: Vec<Option<f64>>,
    /// Mean time of a run of any job in ns; `None` before a run has ended.
    mean_ns: Option<f64>,
}

impl Clock {
    fn from_runs(done: &[Summary], plan: &StrategyPlan, layout: TargetLayout) -> Self {
        let mut times_of_jobs: Vec<Vec<f64>> = vec![Vec::new(); plan.jobs];
        let mut now_ns = 0;
        for (at, one) in done.iter().filter(|s| !s.refused).enumerate() {
            // The time before the first run ended includes the preparation.
            if let Some(times) = times_of_jobs.get_mut(one.job).filter(|_| at > 0) {
                times.push(one.ended_ns.saturating_sub(now_ns) as f64);
            }
            now_ns = now_ns.max(one.ended_ns);
        }
        let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let job_means_ns = times_of_jobs.iter().map(|times| mean(times)).collect();
        Self { now_ns, ends_ns: plan.ends_ns, layout, job_means_ns, mean_ns: mean(&times_of_jobs.concat()) }
    }

    /// Returns the mean time of a run of a job in ns. Without runs of this job, returns the mean over all
    /// jobs, or 0 if no job has runs.
    fn job_ns(&self, job: usize) -> f64 {
        self.job_means_ns.get(job).copied().flatten().or(self.mean_ns).unwrap_or(0.0)
    }

    /// Returns the time of a round of a group in ns.
    fn round_ns(&self, group: usize) -> f64 {
        self.layout.jobs(group).map(|job| self.job_ns(job)).sum()
    }

    /// Whether a round of a group ends in time.
    fn has_time_for(&self, group: usize) -> bool {
        self.ends_ns.is_none_or(|ends| (self.now_ns + REPORT_NS) as f64 + self.round_ns(group) <= ends as f64)
    }
}

/// Notes how often the tests ran, and whether the time was up while tests were open. `None` until every test ran once on
/// every target.
pub(super) fn note(record: &Record, layout: TargetLayout) -> Option<String> {
    let plan = &record.header.plan;
    let rates =
        |job: usize| rates_by_repeat(record, job).into_iter().map(|(_, rate)| rate).collect::<Vec<f64>>();
    let tests = layout.tests as usize;
    let rounds_of = |group: usize| layout.jobs(group).map(|job| rates(job).len() as u32).min().unwrap_or(0);
    let rounds: Vec<u32> = (0..tests).map(rounds_of).collect();
    let fewest = rounds.iter().copied().min().filter(|runs| *runs > 0)?;
    let open = (0..tests).filter(|group| width_if_open(layout, *group, rates).is_some()).count();
    let most = rounds.iter().copied().max().unwrap_or(fewest);
    let noisy = rounds.iter().filter(|runs| **runs > plan.runs).count();
    let (first, more) = match noisy {
        0 => (fewest.to_string(), String::new()),
        _ if noisy == tests && most == fewest => (fewest.to_string(), String::new()),
        _ if noisy == tests => (format!("{fewest} to {most}"), ", more if its runs vary more".to_owned()),
        _ => {
            let more = format!(", and the tests that vary most ({noisy} of {tests}) ran up to {most} times");
            (fewest.to_string(), more)
        }
    };
    let first = if first == "1" { "once".to_owned() } else { format!("{first} times") };
    let first = format!("each test ran {first} on every target");
    let end = match (open, plan.budget_ns) {
        (0, _) | (_, None) => String::new(),
        (_, Some(budget_ns)) => {
            // Four times as many runs halve an interval.
            let longer = budget_ns.saturating_mul(4).div_ceil(1_000_000_000);
            format!(
                "; then the time was up: --budget {longer}s would about halve the intervals that are still too wide (tests: {open})"
            )
        }
    };
    Some(format!("compare: {first}{more}{end}"))
}

#[cfg(test)]
use model::plan::Strategy;
#[cfg(test)]
use model::record::{Disturbance, Disturbed};
#[cfg(test)]
use stats::series::Noise;

#[cfg(test)]
const SECOND: u64 = 1_000_000_000;

#[cfg(test)]
fn targets_plan(tests: u32, targets: u32, seconds: u64) -> StrategyPlan {
    StrategyPlan {
        jobs: (tests * targets) as usize,
        runs: 5,
        strategy: Strategy::Targets(TargetLayout { tests, targets }),
        seed: 11,
        paired: true,
        max_attempts: 3,
        ends_ns: Some(seconds * SECOND),
        ..StrategyPlan::default()
    }
}

/// Plays the strategy to its end with runs of a second, whose rates a function draws. Returns the runs and why it ended.
#[cfg(test)]
pub(crate) fn play(plan: &StrategyPlan, rate: impl FnMut(&Summary) -> f64) -> (Vec<Summary>, String) {
    play_disturbed(plan, rate, |_| false)
}

/// Plays the strategy as [`play`] does. Other load disturbs the runs that `is_disturbed` selects.
#[cfg(test)]
pub(crate) fn play_disturbed(
    plan: &StrategyPlan,
    mut rate: impl FnMut(&Summary) -> f64,
    is_disturbed: impl Fn(&Summary) -> bool,
) -> (Vec<Summary>, String) {
    let mut done: Vec<Summary> = Vec::new();
    loop {
        match super::next(&done, plan) {
            Next::Measure { job, repeat, attempt, .. } => {
                let remaining = super::remaining_runs(&done, plan);
                assert!(remaining.runs.iter().sum::<u32>() > 0, "run {} was not announced", done.len() + 1);
                let ended_ns = SECOND * (done.len() as u64 + 3);
                let run = Summary { attempt, ended_ns, refused: false, ..Summary::refused(job, repeat) };
                let by = vec![Disturbance::StolenCpu { share: 0.2 }];
                let disturbed = is_disturbed(&run).then_some(Disturbed { attempt, disturbances: by });
                let iops = rate(&run);
                done.push(Summary { disturbed, iops, ..run });
            }
            Next::Done(why) => return (done, why),
        }
    }
}

#[cfg(test)]
fn counts(done: &[Summary], jobs: usize) -> Vec<usize> {
    (0..jobs).map(|job| rates(done, job).len()).collect()
}

#[test]
fn quiet_tests_end_after_their_rounds_and_noisy_ones_share_the_time() {
    // Tests 0 and 1 are quiet; tests 2 and 3 vary by 4 % and 20 %, one of them with a difference.
    let deviations = [0.002, 0.002, 0.04, 0.2];
    let mut noise = Noise(5);
    let faster = |job: usize| if job == 3 { 1.1 } else { 1.0 };
    let rate = |run: &Summary| 1e4 * faster(run.job) * (deviations[run.job / 2] * noise.normal()).exp();
    let (done, why) = play(&targets_plan(4, 2, 90), rate);
    let counts = counts(&done, 8);
    assert_eq!(counts[..4], [5; 4], "{counts:?}");
    assert!(counts[4] == counts[5] && counts[6] == counts[7], "as often on both targets: {counts:?}");
    assert!(counts[4] >= 8 && counts[6] > counts[4], "{counts:?}");
    assert!((85..=89).contains(&(done.last().unwrap().ended_ns / SECOND)), "{why}");
    assert_eq!(why, "the time was up with 2 of 4 tests open");
    assert!(
        done.chunks(2).all(|pair| pair[0].job / 2 == pair[1].job / 2),
        "one target right after the other"
    );
    assert!(done.chunks(2).any(|pair| pair[0].job > pair[1].job), "in both orders");
}

#[test]
fn the_strategy_ends_when_all_intervals_are_narrow_and_a_replay_continues_where_it_stopped() {
    let plan = targets_plan(3, 3, 1_000);
    let (done, why) = play(&plan, |run| 1e4 + f64::from(run.repeat % 3));
    assert_eq!((done.len(), why.as_str()), (45, "every interval is narrow enough"));
    assert_eq!(super::remaining_runs(&done, &plan).runs, [0; 9]);
    for cut in 0..done.len() {
        let Next::Measure { job, repeat, .. } = super::next(&done[..cut], &plan) else { panic!("it ended") };
        assert_eq!((job, repeat), (done[cut].job, done[cut].repeat));
    }
}

#[test]
fn slow_storage_ends_in_time_and_unpaired_jobs_get_the_rounds_of_the_plan() {
    let (done, why) = play(&targets_plan(8, 2, 40), |_| 1e4);
    assert!(done.last().unwrap().ended_ns <= 40 * SECOND, "{why}");
    assert_eq!(why, "the time was up in round 3");
    let lone = StrategyPlan { jobs: 5, ..targets_plan(2, 2, 60) };
    let mut noise = Noise(3);
    let (done, _) = play(&lone, |_| 1e4 * (0.1 * noise.normal()).exp());
    assert!(
        counts(&done, 5)[4] == 5 && counts(&done, 5)[..4].iter().all(|n| *n > 5),
        "{:?}",
        counts(&done, 5)
    );
    // A test without a rate is not open and gets no further round.
    let (done, _) = play(&targets_plan(2, 2, 60), |run| if run.job < 2 { 0.0 } else { 1e4 });
    assert_eq!(counts(&done, 4), [5; 4]);
}

#[test]
fn a_disturbed_run_is_repeated_with_its_partner_while_there_is_time() {
    use model::record::{Disturbance, Disturbed};
    let by = |attempt| Disturbed { attempt, disturbances: vec![Disturbance::StolenCpu { share: 0.5 }] };
    let plan = targets_plan(8, 2, 1_000);
    let mut done: Vec<Summary> = Vec::new();
    while let Next::Measure { job, repeat, attempt, .. } = super::next(&done, &plan) {
        let ended_ns = SECOND * (done.len() as u64 + 3);
        let disturbed = ((job, repeat, attempt) == (5, 2, 0)).then(|| by(attempt));
        done.push(Summary {
            attempt,
            ended_ns,
            iops: 1e4,
            disturbed,
            refused: false,
            ..Summary::refused(job, repeat)
        });
    }
    let repeats: Vec<usize> = done.iter().filter(|s| s.attempt == 1).map(|s| s.job).collect();
    assert!(repeats == [4, 5] || repeats == [5, 4], "{repeats:?}");
    let at = done.iter().position(|s| s.attempt == 1).unwrap();
    assert!(done[at - 2..at].iter().all(|s| (s.job / 2, s.repeat) == (2, 2)), "right after its test");
    // Without time for another run, the repeat is left out.
    let cut = &done[..at];
    let now = StrategyPlan { ends_ns: Some(cut.last().unwrap().ended_ns + 2 * SECOND), ..plan };
    assert!(matches!(super::next(cut, &now), Next::Done(_)));
}
