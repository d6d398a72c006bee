//! Times: when a job begins, and how long it runs.
//!
//! For: `runtime`, `ramp_time`, `startdelay` and `time_based`. Not for: jobs that wait for others ([`super::phases`]), nor other ends
//! ([`super::region`]).

use super::jobs::{Fault, Job};
use super::value::Bare;

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
    if times.ramp > 0 && times.delay > 0 {
        return Err(job.fault(
            "ramp_time",
            "a ramp behind a delay is not measured from its end; leave startdelay or ramp_time out",
        ));
    }
    for (option, time) in
        [("runtime", runtime.unwrap_or(0)), ("ramp_time", times.ramp), ("startdelay", times.delay)]
    {
        if time > model::spec::limits::MAX_TIME_NS {
            return Err(job.fault(option, "it is more than a day; type less"));
        }
    }
    if job.on("time_based", false)? && runtime.is_none() {
        return Err(job.fault("time_based", "it needs to know for how long; type runtime=60 too"));
    }
    Ok(times)
}
