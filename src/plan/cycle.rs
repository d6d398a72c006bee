//! Loads of a grid: which numbers of workers, targets and outstanding operations its cells have.
//!
//! For: the product of the axes, or what a test type of Iometer makes of them. Not for: what is done at each load.
//!
//! In Iometer the user gives targets to each worker; here every worker may use all that are named.

use super::origins::Origins;
use crate::failure::Failure;
use crate::request::SweepSpec;
use model::spec::axes::IOMETER;
use model::spec::iometer::{Cycle, Step};
use model::spec::number::MAX_WORKERS;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Most outstanding I/Os of a cycle unless said otherwise, as in Iometer.
const MOST_OUTSTANDING: u32 = 32;
/// What a cycle of outstanding I/Os, or an exponential one, rises by, as in Iometer.
const TWO: u32 = 2;

/// Workers with the targets that they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) workers: u32,
    /// How many targets each worker uses.
    pub(super) targets: u32,
    /// How many the last one uses, where that is fewer.
    pub(super) of_last: Option<u32>,
    /// Index of the one target that is used, where each is used alone.
    pub(super) alone: Option<usize>,
}

/// The loads of a grid: each assignment at each depth.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loads {
    pub(super) assignments: Vec<Assignment>,
    /// Operations in flight of each worker on each target: what Iometer calls outstanding I/Os.
    pub(super) depths: Vec<u32>,
}

/// The loads that were asked for, on so many targets.
pub(super) fn loads(said: &SweepSpec, targets: u32, origins: &mut Origins) -> Result<Loads, Failure> {
    let axes = &said.axes;
    if let Some(many) = axes.targets.iter().find(|t| **t > targets) {
        return Err(Failure::Usage(format!(
            "--targets {many}: there are {targets}; name as many, or use a smaller number"
        )));
    }
    if said.preset.is_some_and(|p| p.name == IOMETER) {
        if !axes.target.is_empty() {
            return Err(Failure::Usage(
                "--target: a test type of Iometer says itself which targets are used; name them as TARGETs"
                    .into(),
            ));
        }
        let cpus = available_parallelism().map_or(1, NonZero::get);
        let cpus = u32::try_from(cpus).unwrap_or(MAX_WORKERS).min(MAX_WORKERS);
        let cycle = said.cycle.unwrap_or(Cycle::Normal);
        let from = if said.cycle.is_some() { "command line" } else { "default" };
        origins.fixed("--cycle", &format!("{}: {}", cycle.word(), cycle.about()), from);
        let loads = cycled(said, cycle, targets, cpus)?;
        tell(said, cycle, &loads, origins);
        return Ok(loads);
    }
    let idle = [("cycle", said.cycle.is_some()), ("step", said.step.is_some())];
    if let Some((flag, _)) = idle.into_iter().find(|(_, said)| *said) {
        return Err(Failure::Usage(format!(
            "--{flag} is about the test types of Iometer; type --preset {IOMETER} too, or leave it out"
        )));
    }
    let workers = or(&axes.workers, || vec![1]);
    let assignments = if axes.target.is_empty() {
        product(&workers, &or(&axes.targets, || vec![targets]))
    } else if axes.targets.is_empty() {
        each_alone(&workers, axes.target.len())
    } else {
        return Err(Failure::Usage(
            "--target measures each target alone, and --targets says how many are used at once; type one of them"
                .into(),
        ));
    };
    Ok(Loads { assignments, depths: or(&axes.depth, || vec![1, 2, 4, 8, 16]) })
}

fn or(said: &[u32], default: impl FnOnce() -> Vec<u32>) -> Vec<u32> {
    if said.is_empty() { default() } else { said.to_vec() }
}

fn product(workers: &[u32], targets: &[u32]) -> Vec<Assignment> {
    let assignment = |workers: u32| {
        targets.iter().map(move |t| Assignment { workers, targets: *t, of_last: None, alone: None })
    };
    workers.iter().flat_map(|w| assignment(*w)).collect()
}

/// Each number of workers on each target alone.
fn each_alone(workers: &[u32], targets: usize) -> Vec<Assignment> {
    let of = |workers: u32| {
        (0..targets).map(move |at| Assignment { workers, targets: 1, of_last: None, alone: Some(at) })
    };
    workers.iter().flat_map(|w| of(*w)).collect()
}

/// The loads of a test type. Of what rises a flag may say the most, one number, or all values.
fn cycled(said: &SweepSpec, cycle: Cycle, targets: u32, cpus: u32) -> Result<Loads, Failure> {
    let axes = &said.axes;
    let rises = |through: bool, values: &[u32]| through && values.len() < 2;
    let workers_rise = rises(cycle.has_workers(), &axes.workers);
    let targets_rise = rises(cycle.has_targets(), &axes.targets);
    let depths_rise = rises(cycle.has_outstanding(), &axes.depth);
    if let Some(step) = said.step.filter(|_| !workers_rise && !targets_rise && !depths_rise) {
        return Err(Failure::Usage(format!(
            "--step {} changes nothing here: no number rises by itself; leave it out, or type another --cycle",
            step.word().to_lowercase()
        )));
    }
    let step = said.step.unwrap_or(Step::Linear);
    let most = |values: &[u32], default: u32| values.first().copied().unwrap_or(default);
    let values = |rises: bool, values: &[u32], default: u32| {
        if rises { up_to(most(values, default), step) } else { or(values, || vec![default]) }
    };
    let depths = if depths_rise {
        let step = said.step.unwrap_or(Step::Exponential);
        step.values(1, most(&axes.depth, MOST_OUTSTANDING), TWO).collect()
    } else {
        or(&axes.depth, || vec![1])
    };
    let assignments = if cycle.increments() {
        let list = [("workers", &axes.workers), ("targets", &axes.targets)];
        if let Some((flag, _)) = list.iter().find(|(_, values)| values.len() > 1) {
            return Err(Failure::Usage(format!(
                "--{flag}: {} goes through them itself; type how many there are, one number",
                cycle.word()
            )));
        }
        one_after_another(most(&axes.workers, cpus), most(&axes.targets, targets), step)
    } else {
        let workers = values(workers_rise, &axes.workers, cpus);
        product(&workers, &values(targets_rise, &axes.targets, targets))
    };
    Ok(Loads { assignments, depths })
}

/// From one to the most there is, which comes last whether or not the steps meet it, as in Iometer.
fn up_to(most: u32, step: Step) -> Vec<u32> {
    let by = if step == Step::Linear { 1 } else { TWO };
    let below = step.values(1, most.saturating_sub(1), by);
    below.chain([most]).collect()
}

/// One target more for one worker at a time: the first worker gets all of its targets before the second gets one.
fn one_after_another(workers: u32, targets: u32, step: Step) -> Vec<Assignment> {
    let targets = targets.max(1);
    let assignment = |pairs: u32| match (pairs / targets, pairs % targets) {
        (workers, 0) => Assignment { workers, targets, of_last: None, alone: None },
        (0, few) => Assignment { workers: 1, targets: few, of_last: None, alone: None },
        (full, few) => Assignment { workers: full + 1, targets, of_last: Some(few), alone: None },
    };
    up_to(workers.saturating_mul(targets), step).into_iter().map(assignment).collect()
}

/// What the numbers are, and what made them.
fn tell(said: &SweepSpec, cycle: Cycle, loads: &Loads, origins: &mut Origins) {
    let Loads { assignments, depths } = loads;
    let list = |of: fn(&Assignment) -> u32| {
        let mut all: Vec<u32> = assignments.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        format_list(&all)
    };
    let axes = &said.axes;
    let law = said.step.map_or("its default steps", Step::word);
    let from = |rises: bool, values: &[u32], default: &str| match (rises, values) {
        (_, [_, _, ..]) | (false, [_]) => "command line".to_owned(),
        (true, [_]) => format!("{}, {law}; the most from the command line", cycle.word()),
        (true, []) => format!("{}, {law}", cycle.word()),
        (false, []) => default.to_owned(),
    };
    let by =
        from(cycle.has_workers() || cycle.increments(), &axes.workers, "the number of CPUs, as in Iometer");
    origins.fixed("workers", &list(|c| c.workers), &by);
    let by = from(cycle.has_targets(), &axes.targets, "all that are named");
    origins.fixed("targets", &list(|c| c.targets), &by);
    origins.fixed(
        "outstanding I/Os",
        &format!("{} per worker and target: the same as depth", format_list(depths)),
        &from(cycle.has_outstanding(), &axes.depth, "as in Iometer"),
    );
}

fn format_list(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
fn sweep(cycle: Cycle, step: Option<Step>) -> SweepSpec {
    SweepSpec {
        axes: model::spec::axes::Axes::default(),
        flags: Vec::new(),
        preset: model::spec::axes::preset(IOMETER),
        memory: None,
        exhaustive: true,
        by: None,
        tolerance: None,
        cycle: Some(cycle),
        step,
    }
}

/// What comes of it on three targets with two CPUs: of each assignment its workers, targets and targets of the last worker.
#[cfg(test)]
struct Through {
    assignments: Vec<(u32, u32, u32)>,
    depths: Vec<u32>,
}

#[cfg(test)]
fn through(said: &SweepSpec) -> Result<Through, String> {
    let cycle = said.cycle.unwrap_or(Cycle::Normal);
    let Loads { assignments, depths } = cycled(said, cycle, 3, 2).map_err(|e| e.message().to_owned())?;
    let assignments = assignments.iter().map(|c| (c.workers, c.targets, c.of_last.unwrap_or(0))).collect();
    Ok(Through { assignments, depths })
}

#[cfg(test)]
fn done(said: &SweepSpec) -> Through {
    through(said).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_test_type_goes_through_what_iometer_goes_through() {
    let targets = [(2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let one_by_one = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 3, 1), (2, 3, 2), (2, 3, 0)];
    let both = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let doubling = [1, 2, 4, 8, 16, 32];
    for (cycle, assignments, depths) in [
        (Cycle::Normal, &[(2, 3, 0)][..], &[1][..]),
        (Cycle::Targets, &targets, &[1]),
        (Cycle::Workers, &[(1, 3, 0), (2, 3, 0)], &[1]),
        (Cycle::IncrementParallel, &one_by_one, &[1]),
        (Cycle::IncrementSerial, &one_by_one, &[1]),
        (Cycle::WorkersAndTargets, &both, &[1]),
        (Cycle::Outstanding, &[(2, 3, 0)], &doubling),
        (Cycle::OutstandingAndTargets, &targets, &doubling),
    ] {
        let seen = done(&sweep(cycle, None));
        assert_eq!(
            (seen.assignments.as_slice(), seen.depths.as_slice()),
            (assignments, depths),
            "{}",
            cycle.word()
        );
    }
}

#[test]
fn steps_and_flags_change_what_rises() {
    let of = |cycle: Cycle, step: Step| done(&sweep(cycle, Some(step)));
    let targets = of(Cycle::Targets, Step::Exponential).assignments;
    assert_eq!(targets, [(2, 1, 0), (2, 2, 0), (2, 3, 0)], "the last too");
    let odd: Vec<u32> = (1..32).step_by(2).collect();
    assert_eq!(of(Cycle::Outstanding, Step::Linear).depths, odd, "by two, as Iometer's step is");
    let mut said = sweep(Cycle::IncrementSerial, Some(Step::Exponential));
    said.axes.workers = vec![5];
    assert_eq!(done(&said).assignments, [(1, 1, 0), (1, 2, 0), (2, 3, 1), (3, 3, 2), (5, 3, 0)]);
    said.axes.workers = vec![1, 2];
    assert!(through(&said).is_err_and(|e| e.contains("one number")));
    let mut said = sweep(Cycle::Workers, Some(Step::Linear));
    said.axes.workers = vec![4, 8];
    assert!(through(&said).is_err_and(|e| e.contains("--step linear changes nothing")));
    said.step = None;
    assert_eq!(done(&said).assignments, [(4, 3, 0), (8, 3, 0)]);
    said.axes.workers = vec![3];
    assert_eq!(done(&said).assignments, [(1, 3, 0), (2, 3, 0), (3, 3, 0)], "one number is the most");
    let mut said = sweep(Cycle::OutstandingAndTargets, None);
    (said.axes.depth, said.axes.targets) = (vec![5], vec![2]);
    let seen = done(&said);
    assert_eq!(
        (seen.assignments.len(), seen.depths),
        (2, vec![1, 2, 4]),
        "none above the end, as in Iometer"
    );
    let mut said = sweep(Cycle::IncrementParallel, None);
    said.axes.targets = vec![1];
    assert_eq!(done(&said).assignments, [(1, 1, 0), (2, 1, 0)]);
}
