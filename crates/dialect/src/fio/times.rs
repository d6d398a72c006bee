//! Times: when a job begins, and how long it runs.
//!
//! For: `runtime`, `ramp_time`, `startdelay` and `time_based`. Not for: jobs that wait for others ([`super::phases`]), nor other ends
//! ([`super::region`]).

use super::jobs::{Fault, Job};
use super::value::Bare;

/// Longest time of a job in ns: a year. Soak tests run for weeks; a longer time is a slip.
const LONGEST_NS: u64 = 365 * 86_400 * 1_000_000_000;

/// Times of a job in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) ramp: u64,
    pub(super) delay: u64,
    /// `None` where it ends by what it has moved.
    pub(super) runtime: Option<u64>,
}

/// The times of a job.
pub(super) fn times(job: &Job) -> Result<Times, Fault> {
    if job.text("startdelay").is_some_and(|text| text.contains('-')) {
        return Err(job.fault("startdelay", "a delay is not drawn here; type one time"));
    }
    let runtime = job.time("runtime", Bare::Seconds)?.filter(|t| *t > 0);
    let times = Times {
        ramp: job.time("ramp_time", Bare::Seconds)?.unwrap_or(0),
        delay: job.time("startdelay", Bare::Seconds)?.unwrap_or(0),
        runtime,
    };
    for (option, time) in
        [("runtime", runtime.unwrap_or(0)), ("ramp_time", times.ramp), ("startdelay", times.delay)]
    {
        if time > LONGEST_NS {
            return Err(job.fault(option, "it is more than a year; type less"));
        }
    }
    Ok(times)
}

/// Whether a job ends by its time alone. As in fio a job without a time ends by its size whatever `time_based` says.
pub(super) fn is_time_based(job: &Job) -> Result<bool, Fault> {
    Ok(job.on("time_based", false)? && job.time("runtime", Bare::Seconds)?.is_some_and(|time| time > 0))
}

/// The remark on `time_based` without a time, which fio prints too.
pub(super) fn remarks(jobs: &[Job]) -> Option<String> {
    let has_no_time = |job: &Job| {
        let is_based = job.on("time_based", false).is_ok_and(|on| on);
        is_based && is_time_based(job).is_ok_and(|on| !on)
    };
    let remark = "time_based changes nothing without runtime: the job ends when it has moved its size";
    jobs.iter().any(has_no_time).then(|| remark.into())
}
