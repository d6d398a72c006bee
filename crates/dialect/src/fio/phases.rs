//! Phases: which jobs run at once, and which wait for others.
//!
//! For: `stonewall`, `wait_for`, and one time for all that runs at once. Not for: what a job does ([`super::streams`]).

use super::around::Around;
use super::jobs::{Fault, Job};
use super::replay::replays;
use super::streams::{Streams, streams};
use super::times::Times;
use model::spec::limits::{MAX_PHASES, MAX_STREAMS};
use model::spec::{JobSpec, PhaseSpec, StreamSpec};

/// The seed of a job that repeats its offsets, as every job of fio's does unless it says otherwise.
const SEED: u64 = 0x6669_6f20_7365_6564;

/// The specification, and for each stream of each phase the job that it came from.
pub(super) type Placed = (JobSpec, Vec<Vec<usize>>);

/// All jobs as one of ours.
pub(super) fn specification(jobs: &[Job], around: &dyn Around) -> Result<Placed, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut read: Vec<(usize, Streams)> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let read_as = if job.is_replay() { replays } else { streams };
        match read_as(job, around) {
            Ok(streams) => read.push((at, streams)),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { put_together(jobs, read).map_err(|fault| vec![fault]) } else { Err(faults) }
}

fn put_together(jobs: &[Job], read: Vec<(usize, Streams)>) -> Result<Placed, Fault> {
    let mut spec = JobSpec { seed: seed(jobs)?, cold: cold(jobs)?, ..JobSpec::default() };
    let mut from: Vec<Vec<usize>> = Vec::new();
    let mut present: Vec<(usize, Streams)> = Vec::new();
    let mut groups: Vec<Vec<(usize, Streams)>> = Vec::new();
    for (at, streams) in read {
        let Some(job) = jobs.get(at) else { continue };
        let beside: Vec<&Job> = present.iter().filter_map(|(at, _)| jobs.get(*at)).collect();
        let waits = waits(job, &beside, jobs.get(..at).unwrap_or_default())?;
        if !present.is_empty() && (waits || job.walled || job.on("stonewall", false)?) {
            groups.push(std::mem::take(&mut present));
        }
        present.push((at, streams));
    }
    groups.push(present);
    let mut is_over = false;
    for group in groups {
        let mut phase = phase_times(jobs, &group)?;
        steady_apart(jobs, &group)?;
        let mut places = Vec::new();
        let (mut backs, mut of_backs) = (PhaseSpec::default(), Vec::new());
        for (at, mut streams) in group {
            for stream in &mut streams.all {
                let end = end_of_window(streams.times);
                stream.limit.time_ns = streams.times.runtime.filter(|_| end != phase.time);
            }
            places.extend(std::iter::repeat_n(at, streams.all.len()));
            for (index, stream) in (phase.streams.len()..).zip(&streams.all).filter(|_| streams.back) {
                let read_back = u32::try_from(index + 1).ok();
                backs.streams.push(StreamSpec {
                    name: stream.name.clone(),
                    read_back,
                    ..StreamSpec::default()
                });
                of_backs.push(at);
            }
            phase.streams.extend(streams.all);
            if let (true, Some(job)) = (phase.streams.len() > MAX_STREAMS, jobs.get(at)) {
                return Err(job.fault("numjobs", format!("more than {MAX_STREAMS} jobs at once are not told apart; type group_reporting, or stonewall")));
            }
        }
        if is_over {
            // Nothing begins any more; their files are made as those of all.
            phase.streams.iter_mut().for_each(|stream| stream.limit.operations = Some(0));
            backs.streams.clear();
        }
        is_over |= exits(jobs, &places, &mut phase.streams)?;
        leave_lone_flows(&mut phase.streams);
        spec.phases.push(phase);
        from.push(places);
        if !backs.streams.is_empty() {
            spec.phases.push(backs);
            from.push(of_backs);
        }
        if let (true, Some(job)) = (spec.phases.len() > MAX_PHASES, jobs.first()) {
            return Err(job.fault(
                "stonewall",
                format!("more than {MAX_PHASES} jobs one after another; divide the file"),
            ));
        }
    }
    let mut streams = spec.phases.iter_mut().flat_map(|p| &mut p.streams);
    if let (Some(only), None) = (streams.next(), streams.next()) {
        spec.name = only.name.take();
    }
    Ok((spec, from))
}

/// Which streams end the others of their phase, by `exit_what`; whether nothing begins behind the phase.
fn exits(jobs: &[Job], places: &[usize], streams: &mut [StreamSpec]) -> Result<bool, Fault> {
    let mut is_over = false;
    let mut group = 0;
    let mut groups = Vec::with_capacity(places.len());
    for (index, at) in places.iter().enumerate() {
        let is_next = index > 0 && places.get(index - 1) != Some(at);
        if let (true, Some(job)) = (is_next, jobs.get(*at)) {
            group += u32::from(job.on("new_group", false)?);
        }
        groups.push(group);
    }
    for (index, stream) in streams.iter_mut().enumerate().filter(|(_, s)| s.ends_others == Some(true)) {
        let Some(job) = places.get(index).and_then(|at| jobs.get(*at)) else { continue };
        match job.text("exit_what").unwrap_or("group") {
            "stonewall" => {}
            "all" => is_over = true,
            _ => match groups.iter().filter(|other| groups.get(index) == Some(other)).count() {
                1 => stream.ends_others = None,
                same if same == groups.len() => {}
                _ => {
                    let why = "jobs of other groups run beside this one, and go on where its own ends; type exit_what=stonewall, or leave new_group out";
                    return Err(job.fault("exitall", why));
                }
            },
        }
    }
    // A job that runs alone has none to end.
    if let [only] = streams {
        only.ends_others = None;
    }
    Ok(is_over)
}

/// Takes shares away from jobs that have nobody to share with: they wait for none in fio either.
fn leave_lone_flows(streams: &mut [StreamSpec]) {
    let workers = |group: u32| -> u32 {
        let same = streams.iter().filter(|s| s.flow.is_some_and(|flow| flow.group == group));
        same.map(|s| s.workers.unwrap_or(1)).sum()
    };
    let lone: Vec<bool> =
        streams.iter().map(|s| s.flow.is_some_and(|flow| workers(flow.group) == 1)).collect();
    for (stream, _) in streams.iter_mut().zip(lone).filter(|(_, lone)| *lone) {
        stream.flow = None;
    }
}

/// Whether a job waits for those that stand before it: all of them or none.
fn waits(job: &Job, beside: &[&Job], before: &[Job]) -> Result<bool, Fault> {
    let Some(name) = job.text("wait_for").filter(|name| *name != "none") else { return Ok(false) };
    if !before.iter().any(|b| b.name() == name) {
        return Err(job.fault("wait_for", "there is no such job before this one; type the name of one"));
    }
    // What is not beside it is over.
    let its = beside.iter().filter(|b| b.name() == name).count();
    if its > 0 && its < beside.len() {
        let why = "other jobs run beside that one, and a phase has one end; type stonewall";
        return Err(job.fault("wait_for", why));
    }
    Ok(its > 0)
}

/// The times of jobs that run at once: one for all, since a phase has one.
fn phase_times(jobs: &[Job], group: &[(usize, Streams)]) -> Result<PhaseSpec, Fault> {
    let mut phase = PhaseSpec::default();
    let Some((_, Streams { times: first, .. })) = group.first() else { return Ok(phase) };
    for (at, streams) in group {
        let Some(job) = jobs.get(*at) else { continue };
        if streams.times.ramp != first.ramp {
            return Err(job.fault(
                "ramp_time",
                "jobs that run at once have one ramp here; type the same for all, or stonewall",
            ));
        }
        if first.ramp > 0 && streams.times.delay != first.delay {
            return Err(job.fault(
                "startdelay",
                "jobs that run at once end their ramps together here; type the same for all, or leave ramp_time out",
            ));
        }
    }
    let ends = group.iter().map(|(_, s)| end_of_window(s.times));
    // The one that lasts longest ends the phase; what ends by what it moves may last for ever.
    phase.time = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    if phase.time.is_some() || first.ramp > 0 {
        phase.warmup = Some(if first.ramp > 0 { first.ramp.saturating_add(first.delay) } else { 0 });
    }
    Ok(phase)
}

/// When a job ends, counted from the beginning of the measured window: a ramp follows the delay, and the window follows the ramp.
fn end_of_window(times: Times) -> Option<u64> {
    let delay = if times.ramp > 0 { 0 } else { times.delay };
    times.runtime.map(|runtime| runtime.saturating_add(delay))
}

/// Refuses jobs that become steady as one group, where they are not one stream.
fn steady_apart(jobs: &[Job], group: &[(usize, Streams)]) -> Result<(), Fault> {
    let mut grouped = 0;
    for (at, streams) in group {
        let Some(job) = jobs.get(*at) else { continue };
        if job.on("new_group", false)? {
            grouped = 0;
        }
        if job.text("steadystate").is_some() && job.on("group_reporting", false)? {
            grouped += streams.all.len();
        }
        if grouped > 1 {
            let why = "jobs of one group become steady together, and here each by itself; type new_group for each, or leave group_reporting out";
            return Err(job.fault("steadystate", why));
        }
    }
    Ok(())
}

/// One seed for everything; none where the clock is to decide.
fn seed(jobs: &[Job]) -> Result<Option<u64>, Fault> {
    let mut seeds: Vec<Option<u64>> = Vec::new();
    for job in jobs {
        let seed = match job.number("randseed")? {
            Some(seed) => Some(seed),
            None if job.on("randrepeat", true)? => Some(SEED),
            None => None,
        };
        if seeds.first().is_some_and(|first| *first != seed) {
            let option = if job.text("randseed").is_some() { "randseed" } else { "randrepeat" };
            return Err(job.fault(
                option,
                "one seed decides all that is random; type the same for all jobs, in [global]",
            ));
        }
        seeds.push(seed);
    }
    Ok(seeds.first().copied().flatten())
}

/// Whether the page cache is emptied of the files before.
fn cold(jobs: &[Job]) -> Result<Option<bool>, Fault> {
    let mut cold = None;
    for job in jobs.iter().filter(|j| j.text("ioengine") != Some("null")) {
        let invalidate = job.on("invalidate", true)?;
        if cold.is_some_and(|before| before != invalidate) {
            return Err(job.fault(
                "invalidate",
                "the page cache is emptied for all jobs or for none; type the same for all, in [global]",
            ));
        }
        cold = Some(invalidate);
    }
    Ok(cold)
}
