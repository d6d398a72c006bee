//! The load curve, decided while measuring: the capacity, loads up to it, the knee, and up to which load a latency target is met.
//!
//! For: which load to offer next, and whether a load meets a latency target; the report asks the same. Not for: what invalidates a point
//! (the checks), nor what is said about it.
//!
//! First the closed loop, which tells the capacity. Then an open loop at fixed shares of it, in rounds of random order. Then
//! loads around the knee. Then, with a latency target, bisection on the logarithm of the load between the highest that met it and the
//! lowest above that broke it. A load whose runs disagree is measured again. The search follows what all operations of a load say
//! together ([`Point::seems_met`]); what is answered in the end has to hold at 95 % ([`Point::meets`]).

use super::{Budget, Next, Summary, rounds};
use crate::runs::{capacity, falls_short};
use model::histogram::Histogram;
use model::plan::LatencyTarget;
use stats::knee::{self, Cost};
use stats::proportion::{self, Part};

/// Loads of the curve in percent of the capacity.
const SHARES: [u64; 7] = [10, 30, 50, 70, 80, 90, 95];
/// How finely the knee is looked for, by the capacity.
const KNEE_STEP: f64 = 0.025;
/// How far beyond the capacity of the closed loop: more in flight may serve a little more.
const KNEE_UP_TO: f64 = 1.101;
/// Missed by met at which the search ends.
const NARROW: f64 = 1.02;
/// Factor between loads while none was found that misses the latency target, or none that meets it.
const OUTWARDS: f64 = 1.5;
/// Loads by the capacity between which a latency target is looked for.
const SEARCHED: [f64; 2] = [0.01, 10.0];
/// Runs of a load beyond those asked for, where they disagree.
const DISAGREEING: u32 = 2;
/// Loads after which it ends, whatever is known.
const MOST_LOADS: usize = 40;

/// The runs at one load.
pub(crate) struct Point<'a> {
    /// Operations per second that were offered.
    pub(crate) offered: u64,
    /// Latencies of all its runs together.
    pub(crate) latency: Histogram,
    runs: Vec<&'a Summary>,
}

/// What to measure next.
pub(super) fn next(done: &[Summary], budget: &Budget, target: &LatencyTarget) -> Next {
    let closed = done.iter().filter(|s| s.offered_iops.is_none()).count() as u32;
    if closed < budget.runs && budget.jobs > 0 {
        return Next::Measure { job: 0, repeat: closed, attempt: 0, offered_iops: None };
    }
    let Some(capacity) = capacity(done).filter(|_| budget.jobs > 1) else {
        return Next::Done("nothing completed in the closed loop, so there is no load to offer".into());
    };
    let points = points(done);
    let rate = of_curve(&points, budget, capacity)
        .or_else(|| points.iter().find(|p| p.count() < budget.runs).map(|p| p.offered))
        .or_else(|| of_knee(&points, capacity))
        .or_else(|| of_latency_target(&points, target, capacity, budget.runs));
    match rate {
        Some(offered) => {
            let repeat = points.iter().find(|p| p.offered == offered).map_or(0, Point::count);
            Next::Measure { job: 1, repeat, attempt: 0, offered_iops: Some(offered) }
        }
        None => Next::Done(format!("{} loads were measured", points.len())),
    }
}

/// About how many runs of the closed loop and of the open one are still to come.
pub(super) fn left(done: &[Summary], budget: &Budget, target: &LatencyTarget) -> Vec<u32> {
    let all = to_come(done, budget, target) as u32;
    let closed = budget.runs.saturating_sub(done.iter().filter(|s| s.offered_iops.is_none()).count() as u32);
    vec![closed, all.saturating_sub(closed)]
}

fn to_come(done: &[Summary], budget: &Budget, target: &LatencyTarget) -> usize {
    let runs = budget.runs as usize;
    let closed = done.iter().filter(|s| s.offered_iops.is_none()).count();
    let points = points(done);
    let begun: usize = points.iter().map(|p| runs.saturating_sub(p.runs.len())).sum();
    let curve = begun + SHARES.len().saturating_sub(points.len()) * runs;
    let capacity = capacity(done).filter(|_| points.len() >= SHARES.len());
    // Two loads are what most knees take, and four halvings most latency targets.
    let knee = capacity.map_or(2, |c| usize::from(of_knee(&points, c).is_some()));
    let limit = target.latency_ns.map_or(0, |_| match bracket(&points, target) {
        (Some(met), Some(missed)) if capacity.is_some() => halvings(met, missed),
        _ => 4,
    });
    // Near the latency target runs disagree, and every other load is measured once or twice more.
    runs.saturating_sub(closed) + curve + knee * runs + limit * (runs + 1)
}

/// Bisections until a bracket is narrow.
fn halvings(met: u64, missed: u64) -> usize {
    let ratio = (missed as f64 / met.max(1) as f64).ln() / NARROW.ln();
    if ratio > 1.0 { ratio.log2().ceil() as usize } else { 0 }
}

/// The loads that were offered, ascending, each with its runs.
pub(crate) fn points(done: &[Summary]) -> Vec<Point<'_>> {
    let mut points: Vec<Point> = Vec::new();
    for run in done {
        let Some(offered) = run.offered_iops else { continue };
        match points.iter_mut().find(|p| p.offered == offered) {
            Some(point) => {
                point.latency.merge(&run.latency);
                point.runs.push(run);
            }
            None => points.push(Point { offered, latency: Histogram::clone(&run.latency), runs: vec![run] }),
        }
    }
    points.sort_by_key(|p| p.offered);
    points
}

impl Point<'_> {
    fn count(&self) -> u32 {
        self.runs.len() as u32
    }

    /// Whether more came than was served.
    pub(crate) fn is_overloaded(&self, target: &LatencyTarget) -> bool {
        let seconds = |r: &&Summary| if r.iops > 0.0 { r.latency.count() as f64 / r.iops } else { 0.0 };
        let time: f64 = self.runs.iter().map(seconds).sum();
        let done = self.latency.count() as f64;
        done <= 0.0 || falls_short(done, self.offered as f64, time, target.arrivals)
    }

    /// Whether the latency target was met; `None` where too few operations tell. Lateness of our own is in the latencies: a load that
    /// meets the latency target in spite of it meets it.
    pub(crate) fn seems_met(&self, target: &LatencyTarget) -> Option<bool> {
        let most_ns = target.latency_ns?;
        if self.is_overloaded(target) {
            return Some(false);
        }
        Some(self.latency.supported_quantile_ns(target.quantile)? <= most_ns)
    }

    /// Whether the latency target is met at this load, at 95 % by what its runs say; `None` where that cannot be told.
    pub(crate) fn meets(&self, target: &LatencyTarget) -> Option<bool> {
        let most_ns = target.latency_ns?;
        if self.is_overloaded(target) {
            return Some(false);
        }
        let part = |run: &&Summary| Part {
            beyond: run.latency.counts().filter(|(ns, _)| *ns > most_ns).map(|(_, count)| count).sum(),
            all: run.latency.count(),
        };
        let parts: Vec<Part> = self.runs.iter().map(part).collect();
        proportion::is_within(&parts, 1.0 - target.quantile)
    }

    /// Whether each run says of the latency target what all of them say together.
    fn agrees(&self, target: &LatencyTarget) -> bool {
        let met = self.seems_met(target);
        let of_run = |r: &&Summary| Some(r.latency.quantile_ns(target.quantile)? <= target.latency_ns?);
        self.is_overloaded(target) || self.runs.iter().all(|r| of_run(r) == met)
    }
}

/// The next load of the curve: its rounds one after another, each in an order of its own.
fn of_curve(points: &[Point], budget: &Budget, capacity: f64) -> Option<u64> {
    let runs_at = |rate: u64| points.iter().find(|p| p.offered == rate).map_or(0, Point::count);
    (0..budget.runs).find_map(|repeat| {
        let order = rounds::order(&Budget { jobs: SHARES.len(), ..*budget }, repeat);
        let rates = order.into_iter().filter_map(|i| Some(whole(capacity * *SHARES.get(i)? as f64 / 100.0)));
        rates.into_iter().find(|rate| runs_at(*rate) <= repeat)
    })
}

/// Loads are whole numbers, and none is zero.
fn whole(iops: f64) -> u64 {
    (iops.round() as u64).max(1)
}

/// A load beside the knee.
fn of_knee(points: &[Point], capacity: f64) -> Option<u64> {
    let next = knee::next_load(&costs(points), KNEE_STEP * capacity, KNEE_UP_TO * capacity).map(whole)?;
    fresh(points, next)
}

/// What each load cost, those without an operation left out. In overload the mean is the length of the run: very much.
pub(crate) fn costs(points: &[Point]) -> Vec<Cost> {
    let cost = |p: &Point| Some(Cost { iops: p.offered as f64, mean_ns: p.latency.mean_ns()? });
    points.iter().filter_map(cost).collect()
}

/// A load that was not offered yet, while there may be more of them.
fn fresh(points: &[Point], rate: u64) -> Option<u64> {
    (points.len() < MOST_LOADS && points.iter().all(|p| p.offered != rate)).then_some(rate)
}

/// The highest load that met the latency target below the first that surely missed it, and the lowest above that load that missed it.
fn bracket(points: &[Point], target: &LatencyTarget) -> (Option<u64>, Option<u64>) {
    let all = || points.iter().map(|p| (p.offered, p.seems_met(target)));
    let missed = |p: &&Point| p.seems_met(target) == Some(false) && p.meets(target) == Some(false);
    let first_miss = points.iter().find(missed).map_or(u64::MAX, |p| p.offered);
    let met =
        all().filter(|(rate, met)| *met == Some(true) && *rate < first_miss).map(|(rate, _)| rate).max();
    let above = |rate: u64| met.is_none_or(|k| rate > k);
    (met, all().filter(|(rate, met)| *met == Some(false) && above(*rate)).map(|(rate, _)| rate).min())
}

/// A load that tells more about the latency target.
fn of_latency_target(points: &[Point], target: &LatencyTarget, capacity: f64, runs: u32) -> Option<u64> {
    target.latency_ns?;
    let doubtful = |p: &&Point| p.count() < runs + DISAGREEING && !p.agrees(target);
    let (met, missed) = bracket(points, target);
    // Both ends, and what lies between and has too few operations to tell.
    let between = |p: &&Point| met.is_none_or(|k| p.offered >= k) && missed.is_some_and(|b| p.offered <= b);
    let ends = |p: &&Point| Some(p.offered) == met || between(p);
    if let Some(point) = points.iter().rev().filter(ends).find(doubtful) {
        return Some(point.offered);
    }
    let [least, most] = SEARCHED.map(|share| share * capacity);
    let next = match (met, missed) {
        (Some(met), Some(missed)) if missed as f64 <= NARROW * met as f64 => return None,
        (Some(met), Some(missed)) => (met as f64 * missed as f64).sqrt(),
        (Some(met), None) => Some(OUTWARDS * met as f64).filter(|rate| *rate <= most)?,
        (None, Some(missed)) => Some(missed as f64 / OUTWARDS).filter(|rate| *rate >= least)?,
        (None, None) => return None,
    };
    fresh(points, whole(next))
}

#[cfg(test)]
use model::plan::Strategy;

/// A server with exponential service times (M/M/1), whose runs vary among themselves.
#[cfg(test)]
struct Server {
    /// Operations per second that it serves, and that a closed loop says.
    serves: f64,
    closed: f64,
    /// Operations of a run.
    ops: u64,
    /// Standard deviation of a run's latencies, by their size.
    varies: f64,
    state: u64,
}

#[cfg(test)]
impl Server {
    fn of(serves: f64, state: u64) -> Self {
        Self { serves, closed: serves, ops: 2_000, varies: 0.0, state }
    }

    fn uniform(&mut self) -> f64 {
        self.state = model::payload::split_mix(self.state);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// A run at a load, or of the closed loop. Latency in M/M/1 is exponential too, with mean 1 / (served - offered).
    fn run(&mut self, job: usize, repeat: u32, offered_iops: Option<u64>) -> Summary {
        let load = offered_iops.map_or(0.0, |iops| iops as f64);
        let gone = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        let mean_ns = match self.serves - load {
            left if left > 0.0 => 1e9 / left * (self.varies * gone).exp(),
            // The backlog of a run of some seconds.
            left => (1.0 - left / load) * 1e9,
        };
        let mut latency = Histogram::new();
        (0..self.ops).for_each(|_| latency.record((mean_ns * self.exponential()) as u64));
        let iops = offered_iops.map_or(self.closed, |_| load.min(self.serves));
        Summary {
            offered_iops,
            refused: false,
            iops,
            latency: latency.into(),
            ..Summary::refused(job, repeat)
        }
    }
}

#[cfg(test)]
fn target(quantile: f64, latency_ns: Option<u64>) -> LatencyTarget {
    LatencyTarget { quantile, latency_ns, arrivals: model::job::Arrivals::Poisson }
}

#[cfg(test)]
fn budget(quantile: f64, latency_ns: Option<u64>, seed: u64) -> Budget {
    Budget {
        jobs: 2,
        runs: 3,
        strategy: Strategy::Limit(target(quantile, latency_ns)),
        seed,
        paired: false,
        attempts: 3,
    }
}

#[cfg(test)]
fn played(server: &mut Server, budget: &Budget) -> Vec<Summary> {
    let mut done = Vec::new();
    while let Next::Measure { job, repeat, offered_iops, .. } = super::next(&done, budget) {
        done.push(server.run(job, repeat, offered_iops));
        assert!(done.len() < 200, "it does not end");
    }
    done
}

#[cfg(test)]
fn found(done: &[Summary], budget: &Budget) -> (Option<u64>, Option<u64>) {
    let Strategy::Limit(target) = budget.strategy else { return (None, None) };
    bracket(&points(done), &target)
}

/// The load at which p99 of M/M/1 is so long: ln(100) / (served - load).
#[cfg(test)]
fn true_rate(serves: f64, p99_ns: f64) -> f64 {
    serves - 100_f64.ln() / p99_ns * 1e9
}

#[test]
fn the_curve_comes_first_in_rounds_of_another_order() {
    let mut server = Server::of(10_000.0, 1);
    let done = played(&mut server, &budget(0.99, None, 5));
    let loads =
        |i: usize| done[3 + 7 * i..10 + 7 * i].iter().map(|s| s.offered_iops.unwrap()).collect::<Vec<_>>();
    assert!(done[..3].iter().all(|s| s.offered_iops.is_none()));
    for i in 0..3 {
        let mut round = loads(i);
        round.sort_unstable();
        assert_eq!(round, [1000, 3000, 5000, 7000, 8000, 9000, 9500]);
    }
    assert!(loads(0) != loads(1) || loads(1) != loads(2));
    // Half of the capacity is the knee: a load on either side of it, and no latency target to look for.
    let more: std::collections::BTreeSet<_> = done[24..].iter().map(|s| s.offered_iops.unwrap()).collect();
    assert!(more.contains(&4000) && more.contains(&6000) && more.len() <= 4, "{more:?}");
    let repeats: Vec<u32> = done.iter().filter(|s| s.offered_iops == Some(4000)).map(|s| s.repeat).collect();
    assert_eq!(repeats, [0, 1, 2]);
}

#[test]
fn the_search_finds_the_rate_within_three_percent_in_ninety_five_of_a_hundred() {
    the_search_finds_the_rate_within_three_percent(100);
}

#[test]
#[ignore = "long"]
fn the_search_finds_the_rate_within_three_percent_for_200_seeds() {
    the_search_finds_the_rate_within_three_percent(200);
}

#[cfg(test)]
fn the_search_finds_the_rate_within_three_percent(seeds: u64) {
    let truth = true_rate(10_000.0, 2.5e6);
    let near = |seed: u64| {
        let mut server = Server { varies: 0.05, ops: 1_000, ..Server::of(10_000.0, seed) };
        let budget = budget(0.99, Some(2_500_000), seed);
        let (met, missed) = found(&played(&mut server, &budget), &budget);
        let (met, missed) = (met.unwrap() as f64, missed.unwrap() as f64);
        assert!(met < missed && missed <= 1.021 * met, "{met} {missed}");
        (met / truth - 1.0).abs() <= 0.03
    };
    let hits = (0..seeds).filter(|seed| near(*seed)).count();
    assert!(hits as u64 * 100 >= 95 * seeds, "{hits} of {seeds}");
}

#[test]
fn a_latency_target_is_looked_for_below_and_above_the_curve() {
    let search = |closed: f64, p99_ns: u64| {
        let mut server = Server { closed, ops: 5_000, ..Server::of(10_000.0, 3) };
        let budget = budget(0.99, Some(p99_ns), 3);
        found(&played(&mut server, &budget), &budget)
    };
    // A closed loop that says ten times too much, and one that says too little.
    for closed in [100_000.0, 4_000.0] {
        let (met, missed) = search(closed, 2_500_000);
        let (met, missed) = (met.unwrap() as f64, missed.unwrap() as f64);
        let truth = true_rate(10_000.0, 2.5e6);
        assert!((met / truth - 1.0).abs() < 0.05 && missed < 1.05 * truth, "{closed}: {met} {missed}");
    }
    let (met, missed) = search(10_000.0, 100_000);
    assert!(met.is_none() && missed.unwrap() < 150, "shorter than without any load: {missed:?}");
    // A latency target longer than any run: overload misses it all the same.
    let (met, missed) = search(10_000.0, 1_000_000_000_000);
    assert!((9_900..=10_300).contains(&met.unwrap()) && missed.unwrap() > 10_000, "{met:?} {missed:?}");
}

#[test]
fn runs_that_disagree_are_repeated_and_a_hiccup_does_not_decide() {
    let mut server = Server::of(10_000.0, 9);
    let target = target(0.99, Some(2_500_000));
    let mut done: Vec<Summary> = (0..3).map(|i| server.run(0, i, None)).collect();
    for share in SHARES {
        done.extend((0..3).map(|i| server.run(1, i, Some(100 * share))));
    }
    // One run at 70 % waits for something else.
    let odd = done.iter_mut().find(|s| s.offered_iops == Some(7_000)).unwrap();
    let latency = std::sync::Arc::make_mut(&mut odd.latency);
    (0..25).for_each(|_| latency.record(50_000_000));
    let points = self::points(&done);
    let seventy = points.iter().find(|p| p.offered == 7_000).unwrap();
    assert!(!seventy.agrees(&target) && seventy.seems_met(&target) == Some(true));
    let rate = of_latency_target(&points[..4], &target, 10_000.0, 3);
    assert!(rate == Some(7_000), "{rate:?}");
}

#[test]
fn too_few_operations_say_neither_and_nothing_completed_ends_it() {
    let mut server = Server { ops: 50, ..Server::of(10_000.0, 4) };
    let budget = budget(0.99, Some(2_500_000), 4);
    assert_eq!(found(&played(&mut server, &budget), &budget), (None, None));
    let mut dead = Server { ops: 0, ..Server::of(0.0, 4) };
    let done = played(&mut dead, &budget);
    assert_eq!(done.len(), 3);
    assert!(matches!(super::next(&done, &budget), Next::Done(why) if why.contains("closed loop")));
    // A file may say anything.
    let jobless = Budget { jobs: 1, ..budget };
    assert!(matches!(super::next(&done, &jobless), Next::Done(_)));
}

#[test]
fn a_slow_device_is_offered_whole_loads_and_each_once() {
    let mut server = Server { ops: 20, ..Server::of(4.0, 6) };
    let done = played(&mut server, &budget(0.5, Some(2_000_000_000), 6));
    assert!(done.iter().all(|s| s.offered_iops != Some(0)) && done.len() < 60, "{}", done.len());
}

#[test]
fn what_is_to_come_is_about_what_comes() {
    let budget = budget(0.99, Some(2_500_000), 2);
    let mut server = Server { varies: 0.05, ..Server::of(10_000.0, 2) };
    let done = played(&mut server, &budget);
    assert_eq!(to_come(&done, &budget, &target(0.99, None)), 0);
    for so_far in 0..done.len() {
        let said: u32 = super::left(&done[..so_far], &budget).runs.iter().sum();
        let (said, truth) = (said as usize, done.len() - so_far);
        assert!(said.abs_diff(truth) <= 12, "{so_far}: {said} for {truth}");
    }
}
