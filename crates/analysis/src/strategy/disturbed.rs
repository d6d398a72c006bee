//! Disturbed runs: what happened outside fathom during a run, whether this disturbed the run, and
//! whether the run is repeated. Other processes, a hypervisor and changed limits disturb runs.
//!
//! Whether a run is disturbed:
//! 1. The decision is made once, while measuring, and stored in the record.
//! 2. It depends only on what happened outside fathom, never on the result of the run: repeating
//!    slow runs would report a faster device.
//! 3. It does not depend on the share of foreign traffic either. The share is small in a fast run, because the run itself has much
//!    traffic. So a limit on the share would keep fast runs and repeat slow ones. Only the rate of foreign traffic counts.
//! 4. Heat, burst credit, write-back and cliffs belong to the measurement. So does waiting for a CPU (D08): the part that other processes
//!    cause is unknown, because fathom's own threads delay each other, and kernel threads that work for fathom do not count as threads of
//!    fathom. The kernel counts stolen time separately.
//!
//! When a run is repeated:
//! 1. Up to two times, or as often as `--attempts` allows. Usually at the end of its round, when a burst may be over. In a load curve at
//!    once, because the next load depends on it. With several targets after the test has run on all of them. In a sweep when
//!    `BestCellSearch::may_repeat` allows it.
//! 2. If runs of a round are compared with each other, the whole round is repeated.
//! 3. Never on a machine that is always busy: a third of all attempts was disturbed (`is_disturbance_the_rule`), or a neighbour was busy
//!    before the first run. Never if a repeat would change the state of the device (`--until steady`, a sweep in order).

use super::{Next, StrategyPlan, Summary};
use crate::case::{self, Case};
use crate::figures::kernel_text::{MIN_TICKS, stolen_ticks};
use crate::figures::traffic::{self, Traffic};
use model::evidence::{ALL_LIMIT_KINDS, BlockStat, LIMITS, Moment, NEIGHBOURS, Snapshot, unreadable_limits};
use model::machine::LayerKind;
use model::plan::Strategy;
use model::record::{Attempt, Disturbance, Pairing, Record, RepeatedUnit};
use model::{Known, record};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// If at least one in this many attempts is disturbed, disturbance is the rule on this machine.
const RULE_FROM_ONE_IN: usize = 3;

/// Minimum number of disturbed runs for disturbance to be the rule.
const FEWEST_DISTURBED: usize = 2;

/// Above this traffic of other processes, a run is disturbed: a copy or a backup disturbs it, a log does not.
pub(crate) const MAX_FOREIGN_BYTES_PER_S: f64 = 10e6;
/// Like [`MAX_FOREIGN_BYTES_PER_S`], in requests.
pub(crate) const MAX_FOREIGN_IOS_PER_S: f64 = 200.0;

/// Traffic that never disturbs a run, even a short one: a journal commit.
pub(crate) const FLOOR_BYTES: u64 = 4 << 20;
/// Like [`FLOOR_BYTES`], in requests.
pub(crate) const FLOOR_IOS: u64 = 100;

/// Share of the time of all CPUs that a hypervisor may steal without disturbing a run.
pub(crate) const STOLEN_ABOVE: f64 = 0.01;

/// Stolen ticks that may be a rounding error.
const ROUNDING_TICKS: u64 = 1;

/// Disturbances from outside fathom during the runs of a case, each with its value or why it is
/// unknown.
pub(crate) struct OutsideLoad {
    /// Traffic of other processes on each disk, from the top down.
    foreign: Vec<Known<ForeignTraffic>>,
    /// Ticks of all CPUs: the ticks that a hypervisor stole, and all ticks.
    ticks: Known<[u64; 2]>,
    /// The cgroup's limits before the first run, and the first different limits during the runs; twice the same text if none changed.
    limits: Known<[String; 2]>,
}

/// Traffic of other processes on a disk of the targets.
pub(crate) struct ForeignTraffic {
    device: String,
    bytes: u64,
    /// Requests of other processes; `None` if they cannot be separated from split operations of fathom.
    ios: Option<u64>,
    seconds: f64,
}

impl OutsideLoad {
    /// Adds up all runs of a case.
    pub(crate) fn from_runs(case: &Case) -> Self {
        Self { foreign: foreign_traffic(case), ticks: sum_ticks(case), limits: limits_before_and_after(case) }
    }

    /// Returns the reasons why disturbances are unknown; empty if all are known.
    pub(crate) fn why_unknown(&self) -> Vec<&str> {
        let reasons = [self.ticks.as_ref().err(), self.limits.as_ref().err()].into_iter().flatten();
        let foreign = self.foreign.iter().filter_map(|f| f.as_ref().err());
        let mut out: Vec<&str> = foreign.chain(reasons).map(String::as_str).collect();
        out.dedup();
        out
    }

    /// Returns the disturbances that are large enough to disturb a run.
    fn disturbances(&self) -> Vec<Disturbance> {
        let foreign =
            self.foreign.iter().filter_map(|f| f.as_ref().ok()).find_map(ForeignTraffic::disturbance);
        let stolen = self.ticks.as_ref().ok().and_then(|[stolen, all]| {
            let certain_share = stolen.saturating_sub(ROUNDING_TICKS) as f64 / *all as f64;
            let share = *stolen as f64 / *all as f64;
            (certain_share > STOLEN_ABOVE).then_some(Disturbance::StolenCpu { share })
        });
        let limits = self.limits.as_ref().ok().filter(|[before, after]| before != after);
        let limits = limits.cloned().map(|[before, after]| Disturbance::LimitChanged { before, after });
        [foreign, stolen, limits].into_iter().flatten().collect()
    }
}

impl ForeignTraffic {
    /// Returns the traffic on this disk since an earlier sample of the same run.
    pub(crate) fn since(&self, earlier: &[Self]) -> Self {
        let earlier = earlier.iter().find(|e| e.device == self.device);
        let (bytes, ios, seconds) = earlier.map_or((0, 0, 0.0), |b| (b.bytes, b.ios.unwrap_or(0), b.seconds));
        Self {
            device: self.device.clone(),
            bytes: self.bytes.saturating_sub(bytes),
            ios: self.ios.map(|now| now.saturating_sub(ios)),
            seconds: self.seconds - seconds,
        }
    }

    /// Returns the disturbance, if the traffic is large enough.
    pub(crate) fn disturbance(&self) -> Option<Disturbance> {
        let above = |n: u64, floor: u64, rate: f64| n > floor && n as f64 > rate * self.seconds;
        let disturbs = self.seconds > 0.0
            && (above(self.bytes, FLOOR_BYTES, MAX_FOREIGN_BYTES_PER_S)
                || self.ios.is_some_and(|ios| above(ios, FLOOR_IOS, MAX_FOREIGN_IOS_PER_S)));
        disturbs.then(|| Disturbance::ForeignIo {
            device: self.device.clone(),
            bytes_per_s: self.bytes as f64 / self.seconds,
            ios_per_s: self.ios.map(|ios| ios as f64 / self.seconds),
        })
    }
}

/// Returns the traffic of other processes on each disk during all runs of a case, from the top down; empty if no disk is used.
pub(crate) fn foreign_traffic(case: &Case) -> Vec<Known<ForeignTraffic>> {
    if !case.on_device() {
        return Vec::new();
    }
    let case = &case.with_sharers();
    // A file system such as btrfs may still write data of an earlier run of fathom.
    let writes_late = traffic::session_writes(case) && !traffic::has_modest_overhead(case);
    let over_runs = |others: Traffic| {
        let all = if writes_late { others.read } else { others.all() };
        let mut ns = 0_u64;
        for ran in case.runs.iter() {
            ns = ns.saturating_add(
                ran.snapshot(Moment::Stop)?.at_ns.saturating_sub(ran.snapshot(Moment::Start)?.at_ns),
            );
        }
        let ios = traffic::has_countable_requests(case).then_some(all.ops);
        Ok(ForeignTraffic { device: others.disks, bytes: all.bytes, ios, seconds: ns as f64 / 1e9 })
    };
    traffic::traffic_of_others(case).into_iter().map(|others| others.and_then(over_runs)).collect()
}

fn sum_ticks(case: &Case) -> Known<[u64; 2]> {
    let mut sum = [0_u64; 2];
    for ran in case.runs.iter() {
        let [before, after] = [ran.snapshot(Moment::Start)?, ran.snapshot(Moment::Stop)?].map(stolen_ticks);
        let passed = after?.into_iter().zip(before?).map(|(after, before)| after.saturating_sub(before));
        for (sum, passed) in sum.iter_mut().zip(passed) {
            *sum = sum.saturating_add(passed);
        }
    }
    if sum[1] < MIN_TICKS {
        return Err(format!("the runs are too short for stolen CPU time: {} ticks of 10 ms passed", sum[1]));
    }
    Ok(sum)
}

/// Returns the limits before the first run, and the first different limits that were read in the runs. Both are equal if no limit changed.
fn limits_before_and_after(case: &Case) -> Known<[String; 2]> {
    let limits_in = |snapshot: &Snapshot| snapshot.text(LIMITS).map(|text| lines_of_own_devices(case, text));
    let prepared = case.record.evidence.iter().rev().find(|s| s.moment == Moment::AfterPrepare);
    let mut before = prepared.and_then(|s| limits_in(s).ok());
    let mut last = before.clone();
    for ran in case.runs.iter() {
        for moment in [Moment::Start, Moment::Stop] {
            let now = limits_in(ran.snapshot(moment)?)?;
            let first = before.get_or_insert_with(|| now.clone());
            if last.as_ref().is_none_or(|last| last == first) {
                last = Some(now);
            }
        }
    }
    let (before, last) = before.zip(last).ok_or_else(case::no_run)?;
    let [first_unreadable, unreadable] =
        [&before, &last].map(|text| unreadable_limits(text, ALL_LIMIT_KINDS));
    // An unreadable file may hide a change, but not a change in the other files.
    if before == last || first_unreadable != unreadable {
        return unreadable.or(first_unreadable).map_or(Ok([before, last]), Err);
    }
    Ok([before, last])
}

/// Returns the lines of a text of limits that are about devices of the targets, or about no device.
fn lines_of_own_devices(case: &Case, text: &str) -> String {
    let numbers: Vec<&str> = case.places().flat_map(|p| &p.layers).map(|l| l.number.as_str()).collect();
    let is_ours = |line: &&str| {
        let limits = line.rsplit_once(": ").map_or(*line, |(_, limits)| limits);
        limits.trim_end().split(' ').next().is_none_or(|word| !word.contains(':') || numbers.contains(&word))
    };
    text.split_inclusive('\n').filter(is_ours).collect()
}

/// Returns the disturbances of the only run of a record, phase by phase, each kind once.
pub fn disturbances(record: &Record) -> Vec<Disturbance> {
    let Some(job) = record.runs.first().map(|r| r.start.job) else { return Vec::new() };
    let mut out: Vec<Disturbance> = Vec::new();
    for case in case::cases_of_job(record, job).iter().filter(|c| !c.runs.is_empty()) {
        for one in OutsideLoad::from_runs(case).disturbances() {
            let kind = std::mem::discriminant(&one);
            if out.iter().all(|known| std::mem::discriminant(known) != kind) {
                out.push(one);
            }
        }
    }
    out
}

/// Other processes that used a disk before the first run, while fathom only watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Traffic of the processes on one disk of the targets.
    pub by: Disturbance,
    /// The processes that moved the most data, if they are visible: `dd (4711)`.
    pub processes: Vec<String>,
}

impl Neighbour {
    /// `the machine was busy before the first run: 240 MB/s of other processes on vda (480 requests/s), visible processes with the most I/O: dd (4711)`.
    pub fn sentence(&self) -> String {
        let most = match self.processes.as_slice() {
            [] => "but fathom cannot identify the processes".to_owned(),
            names => format!("visible processes with the most I/O: {}", names.join(", ")),
        };
        format!("the machine was busy before the first run: {}, {most}", self.by.describe())
    }
}

/// Returns the neighbour that used a disk of the targets during the idle watch, or `None` if none did enough to disturb a run.
pub fn find_neighbour(record: &Record) -> Option<Neighbour> {
    let at = |moment| record.evidence.iter().rev().find(|s| s.moment == moment);
    let (start, end) = (at(Moment::IdleStart)?, at(Moment::IdleEnd)?);
    let seconds = end.at_ns.checked_sub(start.at_ns)? as f64 / 1e9;
    let layers = record.header.hosts.first()?.places.iter().flat_map(|place| &place.layers);
    let mut disks = layers.filter(|l| l.kind != LayerKind::Partition && l.counters_off_reason().is_none());
    let by = disks.find_map(|disk| {
        let done = BlockStat::between(start, end, &disk.stat_file).ok()?.total();
        ForeignTraffic { device: disk.name.clone(), bytes: done.bytes, ios: Some(done.ios), seconds }
            .disturbance()
    })?;
    let moved = end.text(NEIGHBOURS).unwrap_or_default();
    let processes = moved.lines().filter_map(|line| Some(line.rsplit_once(": ")?.0.to_owned())).collect();
    Some(Neighbour { by, processes })
}

/// A run that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// The next attempt.
    pub(super) attempt: Attempt,
    /// Whether the attempt has begun: another run that is repeated together with this one was measured already.
    has_begun: bool,
}

impl Repeat {
    /// Returns the decision to measure this repeat.
    pub(super) fn to_next(self) -> Next {
        let Attempt { job, repeat, attempt, offered_iops, .. } = self.attempt;
        Next::Measure { job, repeat, attempt, offered_iops }
    }

    /// Whether the repeat comes before the run `otherwise`.
    fn is_due(&self, otherwise: &Next, strategy: Strategy) -> bool {
        let is_round_over = match (otherwise, strategy) {
            // The repeat is due as soon as the test has run on all targets.
            (Next::Measure { job, .. }, Strategy::Targets(layout)) => {
                layout.group(*job) != layout.group(self.attempt.job)
            }
            (Next::Measure { repeat, .. }, _) => *repeat > self.attempt.repeat,
            (Next::Done(_), _) => true,
        };
        is_round_over || self.has_begun || matches!(strategy, Strategy::Limit(_))
    }
}

impl Summary {
    /// Returns which attempt this run was.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            job: self.job,
            repeat: self.repeat,
            attempt: self.attempt,
            offered_iops: self.offered_iops,
            disturbed: self.disturbed.is_some(),
            complete: !self.refused,
        }
    }
}

/// Returns, for each run, the attempt that counts; see [`record::which_count`].
pub(crate) fn counting_runs<'s>(done: &'s [Summary], plan: &StrategyPlan) -> Cow<'s, [Summary]> {
    if done.iter().all(|s| s.attempt == 0) {
        return Cow::Borrowed(done);
    }
    let attempts: Vec<Attempt> = done.iter().map(Summary::attempt).collect();
    let counts = record::which_count(&attempts, plan.pairing());
    done.iter().zip(counts).filter(|(_, counts)| *counts).map(|(s, _)| s.clone()).collect()
}

/// Returns the next run: a repeat if one is due, else `otherwise`.
pub(super) fn next(done: &[Summary], plan: &StrategyPlan, otherwise: Next) -> Next {
    let waiting = waiting_repeats(done, plan);
    let due = waiting.first().filter(|repeat| repeat.is_due(&otherwise, plan.strategy));
    due.map_or(otherwise, |repeat| repeat.to_next())
}

/// Returns the disturbed runs that are still to be repeated, the next one first.
pub(super) fn waiting_repeats(done: &[Summary], plan: &StrategyPlan) -> Vec<Repeat> {
    // A repeat would change the state of the device.
    if matches!(plan.strategy, Strategy::Steady { .. }) || done.iter().all(|s| s.disturbed.is_none()) {
        return Vec::new();
    }
    let attempts: Vec<Attempt> = done.iter().map(Summary::attempt).collect();
    let left: u32 = super::remaining_without_repeats(done, plan).runs.iter().sum();
    repeats_of(&attempts, plan.pairing(), left as usize, plan.max_attempts)
}

/// Returns the runs of these attempts that wait for a repeat, the next one first. About `left` runs have no attempt yet.
pub(super) fn repeats_of(
    attempts: &[Attempt],
    pairing: Pairing,
    left: usize,
    max_attempts: u32,
) -> Vec<Repeat> {
    // The attempts of each unit, with their order in time.
    let mut units: BTreeMap<RepeatedUnit, Vec<(usize, Attempt)>> = BTreeMap::new();
    for (order, attempt) in attempts.iter().filter(|a| a.complete).enumerate() {
        units.entry(attempt.unit(pairing)).or_default().push((order, *attempt));
    }
    let max_attempts = if is_disturbance_the_rule(attempts, left) { 1 } else { max_attempts };
    let mut out: Vec<(usize, Repeat)> =
        units.values().flat_map(|unit| repeats_of_unit(unit, max_attempts)).collect();
    out.sort_by_key(|(order, repeat)| (!repeat.has_begun, repeat.attempt.attempt, *order));
    out.into_iter().map(|(_, repeat)| repeat).collect()
}

/// Returns the next repeats of one unit (runs that are repeated together), each with the position of its first attempt among all
/// attempts. A unit has up to `max_attempts` attempts. An attempt that has begun is always completed.
fn repeats_of_unit(unit: &[(usize, Attempt)], max_attempts: u32) -> Vec<(usize, Repeat)> {
    let last = unit.iter().map(|(_, a)| a.attempt).max().unwrap_or(0);
    let last_attempts = || unit.iter().filter(|(_, a)| a.attempt == last);
    let first = || unit.iter().filter(|(_, a)| a.attempt == 0);
    let is_missing = |(_, a): &&(usize, Attempt)| {
        last_attempts().all(|(_, l)| l.unit(Pairing::Runs) != a.unit(Pairing::Runs))
    };
    let repeat_as = |number: u32, has_begun: bool| {
        move |(order, first): &(usize, Attempt)| {
            let attempt = Attempt { attempt: number, disturbed: false, complete: false, ..*first };
            (*order, Repeat { attempt, has_begun })
        }
    };
    if last > 0 && first().any(|a| is_missing(&a)) {
        return first().filter(is_missing).map(repeat_as(last, true)).collect();
    }
    let has_next = last + 1 < max_attempts && last_attempts().any(|(_, a)| a.disturbed);
    if has_next { first().map(repeat_as(last + 1, false)).collect() } else { Vec::new() }
}

/// Whether disturbance is the rule on this machine: at least two runs were disturbed, and at least a third of all attempts, including those
/// to come. Repeats count too, so fathom soon stops repeating on a machine that stays busy.
pub(crate) fn is_disturbance_the_rule(attempts: &[Attempt], left: usize) -> bool {
    let complete = || attempts.iter().filter(|a| a.complete);
    let attempts: BTreeSet<(RepeatedUnit, u32)> =
        complete().map(|a| (a.unit(Pairing::Runs), a.attempt)).collect();
    let disturbed: BTreeSet<(RepeatedUnit, u32)> =
        complete().filter(|a| a.disturbed).map(|a| (a.unit(Pairing::Runs), a.attempt)).collect();
    let runs: BTreeSet<RepeatedUnit> = disturbed.iter().map(|(unit, _)| *unit).collect();
    runs.len() >= FEWEST_DISTURBED && disturbed.len() * RULE_FROM_ONE_IN >= attempts.len() + left
}

/// Estimates, from the attempts so far, which share of the remaining runs will be repeated.
pub(crate) fn expected_share_of_repeats(done: &[Summary], plan: &StrategyPlan) -> f64 {
    let attempts: Vec<Attempt> = done.iter().map(Summary::attempt).collect();
    let left: u32 = super::remaining_without_repeats(done, plan).runs.iter().sum();
    if plan.max_attempts < 2
        || matches!(plan.strategy, Strategy::Steady { .. })
        || is_disturbance_the_rule(&attempts, left as usize)
    {
        return 0.0;
    }
    let disturbed = attempts.iter().filter(|a| a.disturbed).count();
    disturbed as f64 / attempts.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    //! Tests of what disturbs a run, what is repeated and when, and that the remaining figures are unbiased.

    use super::*;
    use crate::fixture::Fixture;
    use crate::strategy::{self, next, remaining_runs};
    use model::record::Disturbed;
    use stats::intervals;
    use stats::series::Noise;

    fn fixed(jobs: usize, runs: u32) -> StrategyPlan {
        StrategyPlan { jobs, runs, seed: 7, max_attempts: 3, ..StrategyPlan::default() }
    }

    fn a_disturbance(attempt: u32) -> Disturbed {
        Disturbed { attempt, disturbances: vec![Disturbance::StolenCpu { share: 0.2 }] }
    }

    /// Plays a strategy to its end. `run` returns the rate of each run, and whether the run is disturbed.
    fn play(plan: &StrategyPlan, mut run: impl FnMut(&Attempt) -> (f64, bool)) -> Vec<Summary> {
        let mut done = Vec::new();
        let plain = Summary::refused(0, 0);
        while let Next::Measure { job, repeat, attempt, offered_iops } = next(&done, plan) {
            let at = Attempt { job, repeat, attempt, offered_iops, disturbed: false, complete: true };
            let (iops, hit) = run(&at);
            let disturbed = hit.then(|| a_disturbance(attempt));
            let ran = Summary { job, repeat, attempt, offered_iops, disturbed, iops, ..plain.clone() };
            done.push(Summary { refused: false, ..ran });
            assert!(done.len() < 500, "it does not end");
        }
        assert!(remaining_runs(&done, plan).runs.iter().all(|r| *r == 0), "nothing is left at the end");
        done
    }

    /// Returns all runs, including disturbed ones, in the order of measuring, each as (job, repeat, attempt).
    fn order(plan: &StrategyPlan, hit: impl Fn(&Attempt) -> bool) -> Vec<(usize, u32, u32)> {
        play(plan, |at| (1.0, hit(at))).iter().map(|s| (s.job, s.repeat, s.attempt)).collect()
    }

    #[test]
    fn a_run_is_measured_again_at_the_end_of_its_round_and_twice_at_most() {
        let quiet: Vec<(usize, u32, u32)> =
            strategy::play(&fixed(4, 3), |_, _| 1.0).iter().map(|s| (s.job, s.repeat, 0)).collect();
        assert_eq!(order(&fixed(4, 3), |_| false), quiet);
        let first = quiet[0].0;
        let once = order(&fixed(4, 3), |at| (at.job, at.repeat, at.attempt) == (first, 0, 0));
        assert_eq!((once[..4].to_vec(), once[4]), (quiet[..4].to_vec(), (first, 0, 1)));
        assert_eq!(once[5..], quiet[4..]);
        let always = order(&fixed(4, 3), |at| (at.job, at.repeat) == (first, 1));
        assert_eq!(always[8..10], [(first, 1, 1), (first, 1, 2)]);
        assert_eq!(always.len(), 14);
        let once = StrategyPlan { max_attempts: 1, ..fixed(4, 3) };
        assert_eq!(order(&once, |at| at.repeat == 1), quiet, "--attempts 1");
        let five = StrategyPlan { max_attempts: 5, ..fixed(4, 6) };
        assert_eq!(order(&five, |at| at.repeat == 0 && at.job == first).len(), 24 + 4, "--attempts 5");
    }

    #[test]
    fn the_run_with_fewer_attempts_comes_first() {
        let [a, b] = [0, 1].map(|i| order(&fixed(4, 6), |_| false)[i].0);
        let hit = |at: &Attempt| at.repeat == 0 && (at.job == a || (at.job == b && at.attempt == 0));
        assert_eq!(order(&fixed(4, 6), hit)[4..7], [(a, 0, 1), (b, 0, 1), (a, 0, 2)]);
    }

    #[test]
    fn nothing_is_measured_again_once_a_third_was_disturbed() {
        // All attempts are disturbed. The first run is measured three times; after the second, a third of all attempts is disturbed.
        let always = order(&fixed(1, 5), |_| true);
        assert_eq!(always, [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 2, 0), (0, 3, 0), (0, 4, 0)]);
        // A single run shows nothing about the machine.
        assert_eq!(order(&fixed(1, 1), |_| true).len(), 3);
        let done = play(&fixed(1, 5), |_| (1.0, true));
        let counts: Vec<u32> = counting_runs(&done, &fixed(1, 5)).iter().map(|s| s.attempt).collect();
        assert_eq!(counts, [0; 5], "the first attempts count");
    }

    #[test]
    fn remaining_runs_include_repeats() {
        let plan = fixed(2, 2);
        let mut first = Summary { refused: false, iops: 1.0, ..Summary::refused(0, 0) };
        let before: u32 = remaining_runs(&[first.clone()], &plan).runs.iter().sum();
        first.disturbed = Some(a_disturbance(0));
        assert_eq!((before, remaining_runs(&[first], &plan).runs.iter().sum::<u32>()), (3, 4));
    }

    #[test]
    fn paired_rounds_are_measured_again_as_a_whole() {
        let paired = StrategyPlan { paired: true, ..fixed(3, 3) };
        let quiet = order(&paired, |_| false);
        let middle = quiet[1].0;
        let once = order(&paired, |at| (at.job, at.repeat, at.attempt) == (middle, 0, 0));
        let round: Vec<(usize, u32, u32)> = quiet[..3].iter().map(|(job, ..)| (*job, 0, 1)).collect();
        assert_eq!((once.len(), once[3..6].to_vec()), (12, round));
        // A refused job is no part of the round.
        let mut done: Vec<Summary> = (0..3).map(|n| Summary::refused(1, n)).collect();
        done.extend([0, 2].map(|job| Summary {
            refused: false,
            iops: 1.0,
            disturbed: (job == 0).then(|| a_disturbance(0)),
            ..Summary::refused(job, 0)
        }));
        let repeats: Vec<usize> = waiting_repeats(&done, &paired).iter().map(|a| a.attempt.job).collect();
        assert_eq!(repeats, [0, 2]);
    }

    #[test]
    fn a_load_is_measured_again_at_once_and_rounds_until_steady_never() {
        let latency_target = model::plan::LatencyTarget {
            quantile: 0.99,
            latency_ns: None,
            arrivals: model::job::Arrivals::Poisson,
            curve: true,
        };
        let curve =
            StrategyPlan { jobs: 2, runs: 3, strategy: Strategy::Limit(latency_target), ..fixed(2, 3) };
        let hit =
            |at: &Attempt| at.job == 1 && at.repeat == 0 && at.attempt == 0 && at.offered_iops == Some(70);
        let done = play(&curve, |at| (at.offered_iops.map_or(100.0, |o| o as f64), hit(at)));
        let at = done.iter().position(|s| s.disturbed.is_some()).unwrap();
        assert_eq!((done[at + 1].attempt, done[at + 1].offered_iops), (1, Some(70)));
        let steady = StrategyPlan { strategy: Strategy::Steady { at_most: 25 }, ..fixed(1, 5) };
        assert!(play(&steady, |_| (100.0, true)).iter().all(|s| s.attempt == 0));
    }

    #[test]
    fn a_replay_continues_where_it_stopped() {
        for paired in [false, true] {
            let plan = StrategyPlan { paired, ..fixed(3, 4) };
            let whole =
                play(&plan, |at| (1.0, (at.job + at.repeat as usize).is_multiple_of(5) && at.attempt == 0));
            for cut in 0..whole.len() {
                let Next::Measure { job, repeat, attempt, .. } = next(&whole[..cut], &plan) else {
                    panic!("done")
                };
                let Summary { job: j, repeat: r, attempt: a, .. } = whole[cut];
                assert_eq!((job, repeat, attempt), (j, r, a));
            }
        }
    }

    fn disturbs(bytes: u64, ios: u64, seconds: f64) -> bool {
        ForeignTraffic { device: "vda".into(), bytes, ios: Some(ios), seconds }.disturbance().is_some()
    }

    #[test]
    fn traffic_of_others_disturbs_by_rate_and_only_above_a_minimum() {
        assert!(
            disturbs(240_000_000, 240, 1.0) && disturbs(1 << 20, 300, 1.0) && disturbs(30_000_000, 1, 2.0)
        );
        assert!(!disturbs(9_000_000, 100, 1.0) && !disturbs(300 << 20, 1_000, 60.0));
        assert!(!disturbs(2 << 20, 90, 0.1), "a commit in a short run");
        assert!(!disturbs(1 << 30, 1 << 20, 0.0));
    }

    #[test]
    fn only_visible_processes_are_named_as_neighbours() -> Result<(), String> {
        let traffic = ForeignTraffic { device: "vda".into(), bytes: 1 << 30, ios: Some(480), seconds: 1.0 };
        let by = traffic.disturbance().ok_or("no disturbance")?;
        let sentence = |names: &[&str]| {
            let processes = names.iter().map(|name| (*name).to_owned()).collect();
            Neighbour { by: by.clone(), processes }.sentence()
        };
        let named = sentence(&["dd (4711)", "cp (9)"]);
        assert!(named.ends_with(", visible processes with the most I/O: dd (4711), cp (9)"), "{named}");
        assert!(sentence(&[]).ends_with(", but fathom cannot identify the processes"), "{}", sentence(&[]));
        Ok(())
    }

    /// Returns the disturbances of the second run of a record. Judges a session with only this run, as
    /// during a measurement.
    fn judge_second(record: &Record) -> Vec<Disturbance> {
        let mut one = record.clone();
        one.runs = vec![one.runs.remove(1)];
        disturbances(&one)
    }

    #[test]
    fn the_evidence_of_a_run_is_read_from_its_edges() {
        assert_eq!(judge_second(&Fixture::honest().record()), []);
        let [Disturbance::ForeignIo { device, bytes_per_s, ios_per_s }] =
            &judge_second(&Fixture { foreign_ios: 4_400, ..Fixture::honest() }.record())[..]
        else {
            panic!("none")
        };
        // A warm-up of a tenth belongs to the run.
        assert!(
            device == "vda"
                && (ios_per_s.unwrap() - 4_000.0).abs() < 1.0
                && (bytes_per_s - 16.384e6).abs() < 1e3
        );
        // The same traffic during a run that is ten times as fast: its share is small, but it disturbs as much.
        let fast = Fixture { ops: 100_000, foreign_ios: 4_400, ..Fixture::honest() };
        assert_eq!(judge_second(&fast.record()).len(), 1);
        let loud = Fixture { device_time_share: 0.1, cpu_share: 1.0, errors: 7, ..Fixture::honest() };
        assert_eq!(judge_second(&loud.record()), [], "fathom's own load");
        let blind = Fixture { stat_unreadable: true, foreign_ios: 9_000, ..Fixture::honest() };
        assert_eq!(judge_second(&blind.record()), [], "missing counters decide nothing");
    }

    #[test]
    fn a_changed_limit_disturbs() {
        let mut record = Fixture::honest().record();
        let limit = "/sys/fs/cgroup/blkio/fathom/blkio.throttle.read_iops_device: 254:0 400\n";
        let set = |record: &mut Record, run: usize, at: usize, text: &str| {
            record.runs[run].evidence[at].files.insert(LIMITS.into(), Ok(text.into()));
        };
        set(&mut record, 1, 1, limit);
        let [Disturbance::LimitChanged { before, after }] = &judge_second(&record)[..] else { panic!() };
        assert_eq!((before.as_str(), after.as_str()), ("", limit));
        // The limit was set between two runs and remains.
        set(&mut record, 1, 0, limit);
        assert_eq!(judge_second(&record).len(), 1);
        set(&mut record, 1, 0, &limit.replace("254:0", "8:0"));
        set(&mut record, 1, 1, "");
        assert_eq!(judge_second(&record), [], "of another device");
    }

    #[test]
    fn an_unreadable_limit_hides_only_its_own_change() {
        let mut record = Fixture::honest().record();
        let unreadable = "unreadable: /c/memory.max (permission denied)\n";
        let set_all = |record: &mut Record, text: &str| {
            let in_runs = record.runs.iter_mut().flat_map(|run| &mut run.evidence);
            for snapshot in record.evidence.iter_mut().chain(in_runs) {
                snapshot.files.insert(LIMITS.into(), Ok(text.into()));
            }
        };
        let is_unknown = |record: &Record| {
            let why = OutsideLoad::from_runs(&case::cases(record)[0]).limits.err();
            why.is_some_and(|why| why.contains("/c/memory.max"))
        };
        set_all(&mut record, unreadable);
        assert!(is_unknown(&record) && judge_second(&record).is_empty());
        record.runs[1].evidence[1].files.insert(LIMITS.into(), Ok(String::new()));
        assert!(is_unknown(&record) && judge_second(&record).is_empty(), "it became readable");
        let changed = format!("/c/cpu.max: 50000 100000\n{unreadable}");
        record.runs[1].evidence[1].files.insert(LIMITS.into(), Ok(changed));
        assert!(matches!(&judge_second(&record)[..], [Disturbance::LimitChanged { .. }]));
    }

    #[test]
    fn stolen_time_disturbs_above_a_tick_and_a_hundredth() {
        let stolen = |ticks: u64| {
            let mut record = Fixture::honest().record();
            let text = format!("cpu  0 0 0 {} 0 0 0 {ticks} 0 0\n", 200 - ticks);
            record.runs[1].evidence[0]
                .files
                .insert("/proc/stat".into(), Ok("cpu  0 0 0 0 0 0 0 0 0 0\n".into()));
            record.runs[1].evidence[1].files.insert("/proc/stat".into(), Ok(text));
            !judge_second(&record).is_empty()
        };
        assert!(!stolen(3) && stolen(4));
    }

    /// Bursts of other load.
    struct Bursts {
        /// Mean number of bursts per run.
        per_run: f64,
        /// Mean length of a burst in runs.
        length_runs: f64,
        /// Share of its rate that a run loses during a burst.
        lost_share: f64,
    }

    /// Outcome of simulated sessions. `all` (all results) and `sound` (results without a disturbed run) have the share of intervals that
    /// contain the truth, and the bias of the means. `share` is the share of results without a disturbed run.
    struct Outcome {
        all: [f64; 2],
        sound: [f64; 2],
        share: f64,
    }

    /// Plays sessions with five runs of each job while bursts occur. The runs vary by 3 %. Without `has_repeats`, no run counts as
    /// disturbed.
    fn play_sessions(count: u64, bursts: &Bursts, plan: &StrategyPlan, has_repeats: bool) -> Outcome {
        let (mut all, mut sound) = (Vec::new(), Vec::new());
        for seed in 0..count {
            let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(29));
            let plan = StrategyPlan { seed, ..plan.clone() };
            let gap = |noise: &mut Noise| -noise.uniform().ln() / bursts.per_run;
            // Begin and end of the current or the next burst, in lengths of a run since the first run began.
            let begin = gap(&mut noise);
            let mut burst = [begin, begin - bursts.length_runs * noise.uniform().ln()];
            let mut now = 0.0;
            let done = play(&plan, |_| {
                let [from, to] = [now, now + 1.0];
                now = to + 0.1;
                let mut hit = 0.0;
                while burst[0] < to {
                    hit += (burst[1].min(to) - burst[0].max(from)).max(0.0);
                    if burst[1] >= to {
                        break;
                    }
                    let begin = burst[1] + gap(&mut noise);
                    burst = [begin, begin - bursts.length_runs * noise.uniform().ln()];
                }
                let foreign = (300e6 * hit) as u64;
                let rate = (0.03 * noise.normal()).exp() * (1.0 - bursts.lost_share * hit);
                (rate, has_repeats && disturbs(foreign, foreign >> 20, 1.0))
            });
            let counting = counting_runs(&done, &plan);
            for job in 0..plan.jobs {
                let runs: Vec<&Summary> = counting.iter().filter(|s| s.job == job).collect();
                assert_eq!(runs.len(), 5);
                let mean = intervals::mean(&runs.iter().map(|s| s.iops).collect::<Vec<_>>()).unwrap();
                let [low, high] = mean.interval.unwrap();
                let one = [f64::from(u8::from(low <= 1.0 && 1.0 <= high)), mean.value.ln()];
                all.push(one);
                sound.extend(runs.iter().all(|s| s.disturbed.is_none()).then_some(one));
            }
        }
        let mean =
            |pairs: &[[f64; 2]]| [0, 1].map(|i| pairs.iter().map(|p| p[i]).sum::<f64>() / pairs.len() as f64);
        Outcome { all: mean(&all), sound: mean(&sound), share: sound.len() as f64 / all.len() as f64 }
    }

    #[test]
    fn intervals_cover_the_truth_through_bursts_and_means_are_not_biased() {
        for (bursts, paired) in [
            (Bursts { per_run: 0.05, length_runs: 1.0, lost_share: 0.4 }, false),
            (Bursts { per_run: 0.02, length_runs: 3.0, lost_share: 0.7 }, false),
            (Bursts { per_run: 0.05, length_runs: 0.3, lost_share: 0.5 }, false),
            (Bursts { per_run: 0.03, length_runs: 1.0, lost_share: 0.4 }, true),
        ] {
            let plan = StrategyPlan { paired, ..fixed(3, 5) };
            let Outcome { all, sound, share } = play_sessions(1_000, &bursts, &plan, true);
            let without = play_sessions(300, &bursts, &plan, false).all;
            println!("with {all:.4?}, VALID {sound:.4?} of {share:.3}; without {without:.4?}");
            assert!(sound[0] >= 0.94 && sound[1].abs() < 0.005 && share > 0.8, "{sound:?} {share}");
            assert!(without[1] < -0.005, "bursts bias the mean if nothing is repeated: {without:?}");
        }
    }

    #[test]
    fn judging_by_share_would_keep_the_fast_runs() {
        // Constant traffic of others, about as much as the rule allows.
        let bias = |hit: &dyn Fn(f64, f64) -> bool| {
            let mut sum = 0.0;
            for seed in 0..2_000_u64 {
                let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9).wrapping_add(31));
                let plan = StrategyPlan { seed, ..fixed(3, 5) };
                let done = play(&plan, |_| {
                    let own = 190e6 * (0.1 * noise.normal()).exp();
                    (own, hit(MAX_FOREIGN_BYTES_PER_S * (0.2 * noise.normal() - 0.25).exp(), own))
                });
                let counting = counting_runs(&done, &plan);
                sum += counting.iter().map(|s| (s.iops / 190e6).ln()).sum::<f64>() / counting.len() as f64;
            }
            sum / 2_000.0
        };
        let by_rate = bias(&|others, _| others > MAX_FOREIGN_BYTES_PER_S);
        let by_share = bias(&|others, own| others / (others + own) > 0.05);
        println!("by rate {by_rate:.4}, by share {by_share:.4}");
        assert!(by_rate.abs() < 0.002, "{by_rate}");
        assert!(by_share > 0.005, "{by_share}");
    }
}
