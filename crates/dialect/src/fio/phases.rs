//! Phases: which jobs run at the same time and which wait for others (`stonewall`, `wait_for`), and their times. Also collects the typed
//! options for fio's output formats.

use super::replay::replays;
use super::streams::{Streams, streams};
use crate::fio::job_file::{Assignment, Environment, Fault, Job, Section, Times, is_time_based};
use crate::fio::streams::{invalidates, logs};
use crate::fio::value::percentiles;
use model::spec::number::{MAX_PHASES, MAX_STREAMS};
use model::spec::{FioLayout, JobSpec, Options, PhaseSpec, StreamSpec, Typed, TypedStream};

/// The seed of jobs that have the same offsets in each invocation of fathom, as fio's jobs have by
/// default.
const SEED: u64 = 0x6669_6f20_7365_6564;

/// The job, and for each stream of each phase the index of the fio job that it comes from.
pub(super) type Placed = (JobSpec, Vec<Vec<usize>>);

/// The streams of a job of fio.
struct JobStreams<'j> {
    /// Index of the job among all jobs of fio.
    at: usize,
    job: &'j Job,
    streams: Streams,
}

/// Combines all jobs of fio into one job of fathom.
pub(super) fn specification(jobs: &[Job], environment: &dyn Environment) -> Result<Placed, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut read: Vec<JobStreams> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let read_as = if job.is_replay() { replays } else { streams };
        match read_as(job, environment) {
            Ok(streams) => read.push(JobStreams { at, job, streams }),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { put_together(jobs, read).map_err(|fault| vec![fault]) } else { Err(faults) }
}

/// Divides the jobs into phases. A phase whose blocks are read back is followed by a phase that reads them.
fn put_together(jobs: &[Job], read: Vec<JobStreams>) -> Result<Placed, Fault> {
    let mut spec = JobSpec { seed: seed(jobs)?, cold: cold(jobs)?, ..JobSpec::default() };
    let mut from: Vec<Vec<usize>> = Vec::new();
    let mut group: Vec<JobStreams> = Vec::new();
    let mut groups: Vec<Vec<JobStreams>> = Vec::new();
    for job_streams in read {
        let job = job_streams.job;
        let running: Vec<&Job> = group.iter().map(|other| other.job).collect();
        let waits = waits(job, &running, jobs.get(..job_streams.at).unwrap_or_default())?;
        if !group.is_empty() && (waits || job.walled || job.on("stonewall", false)?) {
            groups.push(std::mem::take(&mut group));
        }
        group.push(job_streams);
    }
    groups.push(group);
    let mut is_over = false;
    for group in groups {
        let mut phase = phase_times(&group)?;
        refuse_group_steadystate(&group)?;
        let mut places = Vec::new();
        let (mut read_backs, mut read_back_places) = (PhaseSpec::default(), Vec::new());
        for JobStreams { at, job, mut streams } in group {
            for stream in &mut streams.all {
                let end = end_of_window(streams.times);
                stream.resolved.limit.time_ns = streams.times.runtime.filter(|_| end != phase.time);
            }
            places.extend(std::iter::repeat_n(at, streams.all.len()));
            for (index, stream) in (phase.streams.len()..).zip(&streams.all).filter(|_| streams.reads_back) {
                let read_back = u32::try_from(index + 1).ok();
                read_backs.streams.push(StreamSpec {
                    name: stream.name.clone(),
                    read_back,
                    ..StreamSpec::default()
                });
                read_back_places.push(at);
            }
            phase.streams.extend(streams.all);
            let why = format!(
                "fathom reports at most {MAX_STREAMS} jobs at a time; type group_reporting, or stonewall"
            );
            job.refuse_if(phase.streams.len() > MAX_STREAMS, "numjobs", why)?;
        }
        if is_over {
            // An earlier phase ended the job: run no operation, but create the files as fio does.
            phase.streams.iter_mut().for_each(|stream| stream.resolved.limit.operations = Some(0));
            read_backs.streams.clear();
        }
        is_over |= exits(jobs, &places, &mut phase.streams)?;
        drop_lone_flows(&mut phase.streams);
        spec.phases.push(phase);
        from.push(places);
        if !read_backs.streams.is_empty() {
            spec.phases.push(read_backs);
            from.push(read_back_places);
        }
        let why = format!("fathom runs at most {MAX_PHASES} jobs one after another; split the file");
        let has_too_many = spec.phases.len() > MAX_PHASES;
        jobs.first().map_or(Ok(()), |job| job.refuse_if(has_too_many, "stonewall", why))?;
    }
    let mut streams = spec.phases.iter_mut().flat_map(|p| &mut p.streams);
    if let (Some(only), None) = (streams.next(), streams.next()) {
        spec.name = only.name.take();
    }
    Ok((spec, from))
}

/// Sets which streams end the other streams of their phase, as `exit_what` defines. Returns whether
/// the phases after this one run no operation.
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
    for (index, stream) in streams.iter_mut().enumerate().filter(|(_, s)| s.resolved.ends_others) {
        let Some(job) = places.get(index).and_then(|at| jobs.get(*at)) else { continue };
        match job.text("exit_what").unwrap_or("group") {
            "stonewall" => {}
            "all" => is_over = true,
            _ => match groups.iter().filter(|other| groups.get(index) == Some(other)).count() {
                1 => stream.resolved.ends_others = false,
                same if same == groups.len() => {}
                _ => {
                    let why = "fathom cannot end one group while another one runs; type exit_what=stonewall, or leave new_group out";
                    return Err(job.fault("exitall", why));
                }
            },
        }
    }
    // A job that runs alone ends no others.
    if let [only] = streams {
        only.resolved.ends_others = false;
    }
    Ok(is_over)
}

/// Removes the flow share of a worker that is alone in its flow group. In fio such a worker does
/// not wait either.
fn drop_lone_flows(streams: &mut [StreamSpec]) {
    let workers = |group: u32| -> u32 {
        let same = streams.iter().filter(|s| s.resolved.flow.is_some_and(|flow| flow.group == group));
        same.map(|s| s.resolved.workers).sum()
    };
    let lone: Vec<bool> =
        streams.iter().map(|s| s.resolved.flow.is_some_and(|flow| workers(flow.group) == 1)).collect();
    for (stream, _) in streams.iter_mut().zip(lone).filter(|(_, lone)| *lone) {
        stream.resolved.flow = None;
    }
}

/// Whether a job waits for all of `running`, the jobs that would run at the same time. Refuses to wait for only some of them.
fn waits(job: &Job, running: &[&Job], before: &[Job]) -> Result<bool, Fault> {
    let Some(name) = job.text("wait_for").filter(|name| *name != "none") else { return Ok(false) };
    let is_known = before.iter().any(|b| b.name() == name);
    job.refuse_if(!is_known, "wait_for", "no earlier job has this name; type the name of an earlier job")?;
    // A job that is not in `running` has already ended.
    let named = running.iter().filter(|b| b.name() == name).count();
    let why = "other jobs run at the same time as the job that this one waits for; type stonewall to wait for all of them";
    job.refuse_if(named > 0 && named < running.len(), "wait_for", why)?;
    Ok(named > 0)
}

/// The run time and warm-up of a phase whose jobs run at the same time. The longest job ends the
/// phase. Refuses different ramps, and different delays before a ramp.
fn phase_times(group: &[JobStreams]) -> Result<PhaseSpec, Fault> {
    let mut phase = PhaseSpec::default();
    let Some(first) = group.first().map(|one| one.streams.times) else { return Ok(phase) };
    for JobStreams { job, streams, .. } in group {
        let why = "jobs that run at the same time need the same ramp_time; type one ramp_time for all, or stonewall";
        job.refuse_if(streams.times.ramp != first.ramp, "ramp_time", why)?;
        let why = "jobs with ramp_time that run at the same time need the same startdelay; type one startdelay for all, or remove ramp_time";
        job.refuse_if(first.ramp > 0 && streams.times.delay != first.delay, "startdelay", why)?;
    }
    let ends = group.iter().map(|one| end_of_window(one.streams.times));
    // A phase with a job that has no run time has no time.
    phase.time = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    if phase.time.is_some() || first.ramp > 0 {
        phase.warmup = Some(if first.ramp > 0 { first.ramp.saturating_add(first.delay) } else { 0 });
    }
    Ok(phase)
}

/// The end of a job in ns, counted from the start of the measured window; `None` without a run
/// time. A ramp follows the delay, and the window follows the ramp.
fn end_of_window(times: Times) -> Option<u64> {
    let delay = if times.ramp > 0 { 0 } else { times.delay };
    times.runtime.map(|runtime| runtime.saturating_add(delay))
}

/// Refuses a steady state of a whole group, unless the group is one stream.
fn refuse_group_steadystate(group: &[JobStreams]) -> Result<(), Fault> {
    let mut grouped = 0;
    for JobStreams { job, streams, .. } in group {
        if job.on("new_group", false)? {
            grouped = 0;
        }
        if job.text("steadystate").is_some() && job.on("group_reporting", false)? {
            grouped += streams.all.len();
        }
        let why = "fathom checks each job of a group alone, not all together; type new_group for each, or leave group_reporting out";
        job.refuse_if(grouped > 1, "steadystate", why)?;
    }
    Ok(())
}

/// The common seed; `None` for a seed from the clock.
fn seed(jobs: &[Job]) -> Result<Option<u64>, Fault> {
    let mut seeds: Vec<Option<u64>> = Vec::new();
    for job in jobs {
        let seed = match job.number("randseed")? {
            Some(seed) => Some(seed),
            None if job.on("randrepeat", true)? => Some(SEED),
            None => None,
        };
        let differs = seeds.first().is_some_and(|first| *first != seed);
        let option = if job.text("randseed").is_some() { "randseed" } else { "randrepeat" };
        job.refuse_if(differs, option, "fathom uses one seed for all jobs; type one value in [global]")?;
        seeds.push(seed);
    }
    Ok(seeds.first().copied().flatten())
}

/// Whether to evict files from the page cache before the run; `None` if no job has files.
fn cold(jobs: &[Job]) -> Result<Option<bool>, Fault> {
    let mut cold = None;
    for job in jobs.iter().filter(|j| j.text("ioengine") != Some("null")) {
        let invalidate = invalidates(job)?;
        let why = "fathom evicts the files of all jobs or of none; type one value in [global]";
        let option = if job.text("pre_read").is_some() { "pre_read" } else { "invalidate" };
        job.refuse_if(cold.is_some_and(|before| before != invalidate), option, why)?;
        cold = Some(invalidate);
    }
    Ok(cold)
}

/// The remark about `time_based` without a time. fio prints the same remark.
pub(super) fn remarks(jobs: &[Job]) -> Option<String> {
    let has_no_time = |job: &Job| {
        let is_based = job.on("time_based", false).is_ok_and(|on| on);
        is_based && is_time_based(job).is_ok_and(|on| !on)
    };
    let remark =
        "time_based has no effect without runtime: the job ends after its size, io_size or number_ios";
    jobs.iter().any(has_no_time).then(|| remark.into())
}

/// The options that the user typed: the defaults, and those of each stream of each phase.
pub(super) fn typed(sections: &[Section], jobs: &[Job], from: &[Vec<usize>]) -> Result<Typed, Fault> {
    let typed_jobs = groups(jobs)?.into_iter().zip(jobs).map(|(group, job)| stream(group, job));
    let typed_jobs: Vec<TypedStream> = typed_jobs.collect::<Result<_, _>>()?;
    let phase = |at: &Vec<usize>| at.iter().filter_map(|job| typed_jobs.get(*job)).cloned().collect();
    let globals = sections.iter().filter(|s| s.is_global()).flat_map(|s| &s.assignments);
    Ok(Typed { defaults: options(globals), phases: from.iter().map(phase).collect(), ..Typed::default() })
}

fn stream(group: usize, job: &Job) -> Result<TypedStream, Fault> {
    let unified = job.text("unified_rw_reporting");
    let (mixed, also_mixed) = (matches!(unified, Some("mixed" | "1")), matches!(unified, Some("both" | "2")));
    let joins = job.on("group_reporting", false)?;
    let final_sync = ["end_fsync", "fsync_on_close", "end_syncfs"]
        .iter()
        .try_fold(false, |any, option| Ok(any | job.on(option, false)?))?;
    Ok(TypedStream {
        options: options(&job.own),
        group,
        joins,
        mixed,
        also_mixed,
        final_sync,
        hidden: !job.on("stats", true)?,
        pre_reads: job.on("pre_read", false)?,
        state: None,
        logs: logs(job)?,
        layout: layout(job)?,
    })
}

/// Settings of fio's output: percentiles, units and the description.
fn layout(job: &Job) -> Result<FioLayout, Fault> {
    let reduced = job.on("gtod_reduce", false)?;
    let mut layout = FioLayout {
        description: job.text("description").unwrap_or_default().to_owned(),
        clat_percentiles: job.on("clat_percentiles", true)? && !reduced && !job.on("disable_clat", false)?,
        lat_percentiles: job.on("lat_percentiles", false)? && !reduced && !job.on("disable_lat", false)?,
        decimal_first: job.text("kb_base") == Some("1000"),
        ..FioLayout::default()
    };
    layout.bits = match job.text("unit_base").unwrap_or("0") {
        "0" | "8" => false,
        "1" => true,
        _ => return Err(job.fault("unit_base", "fio has no such value; type 8 for bytes or 1 for bits")),
    };
    if let Some(ranks) = job.parse("percentile_list", percentiles)? {
        (layout.ranks, layout.rank_decimals) = ranks;
    }
    Ok(layout)
}

/// The group number of each job. A job starts a new group if it waits for all earlier jobs, or has `new_group`.
fn groups(jobs: &[Job]) -> Result<Vec<usize>, Fault> {
    let mut group = 0;
    let mut all = Vec::new();
    for job in jobs {
        let is_new = job.walled || job.on("stonewall", false)? || job.on("new_group", false)?;
        group += usize::from(is_new && !all.is_empty());
        all.push(group);
    }
    Ok(all)
}

/// Each option with the value that was typed last. `filename` has the names of all its lines.
pub(super) fn options<'a>(assignments: impl IntoIterator<Item = &'a Assignment>) -> Options {
    let mut out = Options::new();
    for Assignment { option, value, .. } in assignments.into_iter().filter(|typed| !typed.value.is_empty()) {
        let before = out.iter().position(|(name, _)| name == option.name).map(|at| out.remove(at).1);
        let value = match before.filter(|_| option.name == "filename") {
            Some(before) => format!("{before}:{value}"),
            None => value.clone(),
        };
        out.push((option.name.to_owned(), value));
    }
    out
}
