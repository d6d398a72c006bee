//! Course: what ends a job by how it goes.
//!
//! For: `steadystate` and the least rates. Not for: other ends ([`super::region`], [`super::times`]), nor limits of a rate
//! ([`super::rates`]).

use super::access::Way;
use super::jobs::{Fault, Job};
use super::value::{Bare, triplet};
use model::job::{Course, MinRate, PerKind, Steady};
use model::spec::limits::MAX_TIME_NS;
use model::spec::{StreamSpec, course};

/// What fio looks at where it is not said.
const STEADY: &str = "iops_slope:0.01%";
const SECOND_NS: u64 = 1_000_000_000;
/// Milliseconds over which a least rate is taken where it is not said.
const CYCLE_MS: u64 = 1000;
const MS_NS: u64 = 1_000_000;

/// Says what ends a job by how it goes.
pub(super) fn course(job: &Job, way: &Way, one: &mut StreamSpec) -> Result<(), Fault> {
    one.steady = steady(job)?;
    one.min_rate = min_rate(job, way)?;
    Ok(())
}

fn steady(job: &Job) -> Result<Option<Steady>, Fault> {
    let window_ns = job.time("steadystate_duration", Bare::Seconds)?.unwrap_or(0);
    let after_ns = job.time("steadystate_ramp_time", Bare::Seconds)?.unwrap_or(0);
    let every_ns = job.time("steadystate_check_interval", Bare::Seconds)?.unwrap_or(SECOND_NS);
    let said = job.text("steadystate");
    if window_ns == 0 {
        return match said {
            // As in fio nothing is looked at, which nobody means who types it.
            Some(_) => Err(job.fault("steadystate", "fio looks for it over no time at all; type ss_dur=60s too")),
            None => Ok(None),
        };
    }
    let (name, limit) = said.unwrap_or(STEADY).split_once(':').unwrap_or((said.unwrap_or(STEADY), ""));
    let fault = |why: &str| job.fault("steadystate", why);
    let (what, slope) = course::named(name).map_err(|why| fault(&why))?;
    let (digits, percent) = limit.strip_suffix('%').map_or((limit, false), |digits| (digits, true));
    let limit = match (percent, what) {
        (true, _) | (false, Course::Iops) => digits.trim().parse::<f64>().ok(),
        (false, Course::Bandwidth) => job.units().whole(digits).ok().map(|bytes| bytes as f64),
        (false, Course::Latency) => super::value::time(digits, Bare::Microseconds).ok().map(|ns| ns as f64),
    };
    let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or_else(|| fault("it has no limit above 0; type one such as iops:10%"))?;
    for (option, time) in [("steadystate_duration", window_ns), ("steadystate_ramp_time", after_ns)] {
        if time > MAX_TIME_NS {
            return Err(job.fault(option, "it is more than a day; type less"));
        }
    }
    if every_ns < SECOND_NS || window_ns / every_ns < 2 {
        let why = "it has less than two values, of which each covers a second or ss_interval; type more";
        return Err(job.fault("steadystate_duration", why));
    }
    Ok(Some(Steady { course: what, slope, limit, percent, window_ns, after_ns, every_ns }))
}

fn min_rate(job: &Job, way: &Way) -> Result<Option<MinRate>, Fault> {
    let every_ns = job.number("rate_cycle")?.unwrap_or(CYCLE_MS).saturating_mul(MS_NS);
    let mut found = None;
    for (option, course) in [("rate_min", Course::Bandwidth), ("rate_iops_min", Course::Iops)] {
        let Some(text) = job.text(option) else { continue };
        let said = triplet(text).map_err(|why| job.fault(option, why))?;
        let rate = |at: usize| -> Result<u64, Fault> {
            let text = said.get(at).copied().flatten().filter(|_| way.directions().contains(&at));
            text.map_or(Ok(0), |text| job.units().whole(text)).map_err(|why| job.fault(option, why))
        };
        let least = PerKind { read: rate(0)?, write: rate(1)?, trim: rate(2)? };
        if least == PerKind::all(0) {
            continue;
        }
        if found.is_some() {
            return Err(job.fault(option, "the least rate is in bytes or in operations; type rate_min or rate_iops_min"));
        }
        if !(MS_NS..=MAX_TIME_NS).contains(&every_ns) {
            return Err(job.fault("rate_cycle", "it is out of range; type milliseconds such as 1000"));
        }
        found = Some(MinRate { course, least, every_ns });
    }
    Ok(found)
}
