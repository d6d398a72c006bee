//! Loads of a grid: which numbers of workers, targets and outstanding operations its cells have.
//!
//! For: the product of the axes, or what a test type of Iometer makes of them. Not for: what is done at each load.
//!
//! In Iometer the user gives targets to each worker; here every worker may use all that are named.

use super::origins::Origins;
use crate::failure::Failure;
use crate::request::SweepWish;
use model::wish::axes::IOMETER;
use model::wish::cycle::{Cycle, Step};
use model::wish::limits::MAX_WORKERS;
use std::num::NonZero;
use std::thread::available_parallelism;

/// Most outstanding I/Os of a cycle unless said otherwise, as in Iometer.
const MOST_OUTSTANDING: u32 = 32;
/// What a cycle of outstanding I/Os, or an exponential one, rises by, as in Iometer.
const TWO: u32 = 2;

/// Workers with the targets that they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crew {
    pub(super) workers: u32,
    /// How many targets each worker uses.
    pub(super) targets: u32,
    /// How many the last one uses, where that is fewer.
    pub(super) of_last: Option<u32>,
}

/// The loads of a grid: each crew at each depth.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loads {
    pub(super) crews: Vec<Crew>,
    /// Operations in flight of each worker on each target: what Iometer calls outstanding I/Os.
    pub(super) depths: Vec<u32>,
}

/// The loads that were asked for, on so many targets.
pub(super) fn loads(said: &SweepWish, targets: u32, origins: &mut Origins) -> Result<Loads, Failure> {
    let axes = &said.axes;
    if let Some(many) = axes.targets.iter().find(|t| **t > targets) {
        return Err(Failure::Usage(format!(
            "--targets {many}: there are {targets}; name as many, or type a smaller number"
        )));
    }
    if said.preset.is_some_and(|p| p.name == IOMETER) {
        let cpus = available_parallelism().map_or(1, NonZero::get);
        let cpus = u32::try_from(cpus).unwrap_or(MAX_WORKERS).min(MAX_WORKERS);
        let words = |cycle: &Cycle| format!("{}: {}", cycle.word(), cycle.about());
        let cycle = origins.choose("--cycle", said.cycle, Cycle::Normal, words);
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
    let used = or(&axes.targets, || vec![targets]);
    Ok(Loads { crews: product(&workers, &used), depths: or(&axes.depth, || vec![1, 2, 4, 8, 16]) })
}

fn or(said: &[u32], default: impl FnOnce() -> Vec<u32>) -> Vec<u32> {
    if said.is_empty() { default() } else { said.to_vec() }
}

fn product(workers: &[u32], targets: &[u32]) -> Vec<Crew> {
    let crew = |workers: u32| targets.iter().map(move |t| Crew { workers, targets: *t, of_last: None });
    workers.iter().flat_map(|w| crew(*w)).collect()
}

/// The loads of a test type. What a flag says stands in place of what the type would go through.
fn cycled(said: &SweepWish, cycle: Cycle, targets: u32, cpus: u32) -> Result<Loads, Failure> {
    let axes = &said.axes;
    if let Some(step) = said.step {
        let rises = (cycle.has_workers() && axes.workers.is_empty())
            || (cycle.has_targets() && axes.targets.is_empty())
            || (cycle.has_outstanding() && axes.depth.is_empty());
        if !rises {
            return Err(Failure::Usage(format!(
                "--step {} changes nothing here: no number rises by itself; leave it out, or type another --cycle",
                step.word().to_lowercase()
            )));
        }
    }
    let step = said.step.unwrap_or(Step::Linear);
    let outstanding = || {
        let step = said.step.unwrap_or(Step::Exponential);
        if cycle.has_outstanding() { step.values(1, MOST_OUTSTANDING, TWO).collect() } else { vec![1] }
    };
    let depths = or(&axes.depth, outstanding);
    let crews = if cycle.increments() {
        one_after_another(said, cycle, targets, cpus, step)?
    } else {
        let rising = |rises: bool, most: u32| if rises { up_to(most, step) } else { vec![most] };
        let workers = or(&axes.workers, || rising(cycle.has_workers(), cpus));
        product(&workers, &or(&axes.targets, || rising(cycle.has_targets(), targets)))
    };
    Ok(Loads { crews, depths })
}

/// From one to the most there is, which comes last whether or not the steps meet it, as in Iometer.
fn up_to(most: u32, step: Step) -> Vec<u32> {
    let by = if step == Step::Linear { 1 } else { TWO };
    let below = step.values(1, most.saturating_sub(1), by);
    below.chain([most]).collect()
}

/// One target more for one worker at a time: the first worker gets all of its targets before the second gets one.
fn one_after_another(
    said: &SweepWish,
    cycle: Cycle,
    targets: u32,
    cpus: u32,
    step: Step,
) -> Result<Vec<Crew>, Failure> {
    let word = cycle.word();
    if !said.axes.targets.is_empty() {
        return Err(Failure::Usage(format!(
            "--targets does not go with {word}, which adds one after another; leave it out, or type --cycle CYCLE_TARGETS"
        )));
    }
    let workers = match said.axes.workers.as_slice() {
        [] => cpus,
        [all] => *all,
        _ => {
            return Err(Failure::Usage(format!(
                "--workers: {word} goes through them itself; type how many there are, one number"
            )));
        }
    };
    let crew = |pairs: u32| match (pairs / targets, pairs % targets) {
        (workers, 0) => Crew { workers, targets, of_last: None },
        (0, few) => Crew { workers: 1, targets: few, of_last: None },
        (full, few) => Crew { workers: full + 1, targets, of_last: Some(few) },
    };
    Ok(up_to(workers.saturating_mul(targets), step).into_iter().map(crew).collect())
}

/// What the numbers are that no flag said.
fn tell(said: &SweepWish, cycle: Cycle, loads: &Loads, origins: &mut Origins) {
    let Loads { crews, depths } = loads;
    let list = |of: fn(&Crew) -> u32| {
        let mut all: Vec<u32> = crews.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        words(&all)
    };
    let axes = &said.axes;
    let from = |rises: bool, by: &str| match (rises, said.step) {
        (false, _) => by.to_owned(),
        (true, Some(step)) => format!("{}, {}", cycle.word(), step.word()),
        (true, None) => format!("{}, its default steps", cycle.word()),
    };
    if axes.workers.is_empty() {
        let rises = cycle.has_workers() || cycle.increments();
        origins.fixed(
            "axis workers",
            &list(|c| c.workers),
            &from(rises, "the number of CPUs, as in Iometer"),
        );
    }
    if axes.targets.is_empty() {
        origins.fixed("axis targets", &list(|c| c.targets), &from(cycle.has_targets(), "all that are named"));
    }
    origins.fixed(
        "outstanding I/Os",
        &format!("{} per worker and target: the same as depth", words(depths)),
        &if axes.depth.is_empty() {
            from(cycle.has_outstanding(), "as in Iometer")
        } else {
            "command line".into()
        },
    );
}

fn words(all: &[u32]) -> String {
    all.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
fn sweep(cycle: Cycle, step: Option<Step>) -> SweepWish {
    SweepWish {
        axes: model::wish::axes::Axes::default(),
        flags: Vec::new(),
        preset: model::wish::axes::preset(IOMETER),
        memory: None,
        exhaustive: true,
        budget: None,
        cycle: Some(cycle),
        step,
    }
}

/// What comes of it on three targets with two CPUs: of each crew its workers, targets and targets of the last worker.
#[cfg(test)]
struct Through {
    crews: Vec<(u32, u32, u32)>,
    depths: Vec<u32>,
}

#[cfg(test)]
fn through(said: &SweepWish) -> Result<Through, String> {
    let cycle = said.cycle.unwrap_or(Cycle::Normal);
    let Loads { crews, depths } = cycled(said, cycle, 3, 2).map_err(|e| e.words().to_owned())?;
    let crews = crews.iter().map(|c| (c.workers, c.targets, c.of_last.unwrap_or(0))).collect();
    Ok(Through { crews, depths })
}

#[cfg(test)]
fn done(said: &SweepWish) -> Through {
    through(said).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_test_type_goes_through_what_iometer_goes_through() {
    let targets = [(2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let one_by_one = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 3, 1), (2, 3, 2), (2, 3, 0)];
    let both = [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0)];
    let doubling = [1, 2, 4, 8, 16, 32];
    for (cycle, crews, depths) in [
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
        assert_eq!((seen.crews.as_slice(), seen.depths.as_slice()), (crews, depths), "{}", cycle.word());
    }
}

#[test]
fn steps_and_flags_change_what_rises() {
    let of = |cycle: Cycle, step: Step| done(&sweep(cycle, Some(step)));
    let targets = of(Cycle::Targets, Step::Exponential).crews;
    assert_eq!(targets, [(2, 1, 0), (2, 2, 0), (2, 3, 0)], "the last too");
    let odd: Vec<u32> = (1..32).step_by(2).collect();
    assert_eq!(of(Cycle::Outstanding, Step::Linear).depths, odd, "by two, as Iometer's step is");
    let mut said = sweep(Cycle::IncrementSerial, Some(Step::Exponential));
    said.axes.workers = vec![5];
    assert_eq!(done(&said).crews, [(1, 1, 0), (1, 2, 0), (2, 3, 1), (3, 3, 2), (5, 3, 0)]);
    said.axes.workers = vec![1, 2];
    assert!(through(&said).is_err_and(|e| e.contains("one number")));
    let mut said = sweep(Cycle::Workers, Some(Step::Linear));
    said.axes.workers = vec![4, 8];
    assert!(through(&said).is_err_and(|e| e.contains("--step linear changes nothing")));
    said.step = None;
    assert_eq!(done(&said).crews, [(4, 3, 0), (8, 3, 0)]);
}
