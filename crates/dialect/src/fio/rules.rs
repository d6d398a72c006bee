//! Rules by which a job ends, or its depth is chosen, by how fast it is.
//!
//! For: `steadystate`, the least rates and `latency_target`. Not for: other ends ([`super::region`], [`super::times`]), nor limits of a rate
//! ([`super::rates`]).

use super::access::ParsedRw;
use super::jobs::{Fault, Job};
use super::value::{Bare, triplet};
use model::job::{LatencyTarget, MinRate, PerKind, Quantity, Steady};
use model::spec::number::{MAX_TIME_NS, MIN_TIME_NS};
use model::spec::{StreamSpec, pace};

/// What fio looks at where it is not said.
const STEADY: &str = "iops_slope:0.01%";
/// Milliseconds over which a least rate is taken where it is not said.
const CYCLE_MS: u64 = 1000;
const MS_NS: u64 = 1_000_000;

/// Says what ends a job, or chooses its depth, by how fast it is.
pub(super) fn rules(job: &Job, way: &ParsedRw, one: &mut StreamSpec) -> Result<(), Fault> {
    one.steady = steady(job)?;
    one.min_rate = min_rate(job, way)?;
    let micros = |text: &str| super::value::time(text, Bare::Microseconds);
    one.max_latency = job.same_for("max_latency", way.directions(), micros)?.filter(|ns| *ns > 0);
    one.latency_target = latency_target(job, one.rate.is_some())?;
    Ok(())
}

fn steady(job: &Job) -> Result<Option<Steady>, Fault> {
    let window_ns = job.time("steadystate_duration", Bare::Seconds)?.unwrap_or(0);
    let after_ns = job.time("steadystate_ramp_time", Bare::Seconds)?.unwrap_or(0);
    let every_ns = job.time("steadystate_check_interval", Bare::Seconds)?.unwrap_or(Steady::EVERY_NS);
    let said = job.text("steadystate");
    if window_ns == 0 {
        return match said {
            // As in fio nothing is looked at, which nobody means who types it.
            Some(_) => {
                Err(job.fault("steadystate", "fio looks for it over no time at all; type ss_dur=60s too"))
            }
            None => Ok(None),
        };
    }
    let (name, limit) = said.unwrap_or(STEADY).split_once(':').unwrap_or((said.unwrap_or(STEADY), ""));
    let fault = |why: &str| job.fault("steadystate", why);
    let (what, slope) = pace::named(name).map_err(|why| fault(&why))?;
    // As in fio, of what stands behind the sign nothing is read: configuration parsers of Python double it.
    let (digits, percent) = limit.split_once('%').map_or((limit, false), |(digits, _)| (digits, true));
    let limit = match (percent, what) {
        (true, _) | (false, Quantity::Iops) => digits.trim().parse::<f64>().ok(),
        (false, Quantity::Bandwidth) => job.units("steadystate").whole(digits).ok().map(|bytes| bytes as f64),
        (false, Quantity::Latency) => super::value::time(digits, Bare::Microseconds).ok().map(|ns| ns as f64),
    };
    let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0);
    let limit = limit.ok_or_else(|| fault("it has no limit above 0; type one such as iops:10%"))?;
    for (option, time) in [("steadystate_duration", window_ns), ("steadystate_ramp_time", after_ns)] {
        if time > MAX_TIME_NS {
            return Err(job.fault(option, "it is more than a day; type less"));
        }
    }
    if every_ns < Steady::EVERY_NS || window_ns / every_ns < 2 {
        let why = "it has less than two values, of which each covers a second or ss_interval; type more";
        return Err(job.fault("steadystate_duration", why));
    }
    Ok(Some(Steady { quantity: what, slope, limit, percent, window_ns, after_ns, every_ns }))
}

fn min_rate(job: &Job, way: &ParsedRw) -> Result<Option<MinRate>, Fault> {
    let every_ns = job.number("rate_cycle")?.unwrap_or(CYCLE_MS).saturating_mul(MS_NS);
    let mut found = None;
    let rates = |option: &str| -> Result<[u64; 3], Fault> {
        let mut rates = [0; 3];
        let Some(text) = job.text(option) else { return Ok(rates) };
        let said = triplet(text).map_err(|why| job.fault(option, why))?;
        for at in way.directions() {
            let text = said.get(*at).copied().flatten();
            let rate = text.map_or(Ok(0), |text| job.units(option).whole(text));
            rates[*at] = rate.map_err(|why| job.fault(option, why))?;
        }
        Ok(rates)
    };
    for (option, most, quantity) in
        [("rate_min", "rate", Quantity::Bandwidth), ("rate_iops_min", "rate_iops", Quantity::Iops)]
    {
        let (least, most) = (rates(option)?, rates(most)?);
        if least.iter().zip(most).any(|(least, most)| most > 0 && *least > most) {
            return Err(job.fault(option, "it is more than the job may do by its rate; type less"));
        }
        let [read, write, trim] = least;
        let least = PerKind { read, write, trim };
        if least == PerKind::all(0) {
            continue;
        }
        if found.is_some() {
            return Err(job.fault(
                option,
                "the least rate is in bytes or in operations; type rate_min or rate_iops_min",
            ));
        }
        if !(MS_NS..=MAX_TIME_NS).contains(&every_ns) {
            return Err(job.fault("rate_cycle", "it is out of range; type milliseconds such as 1000"));
        }
        found = Some(MinRate { quantity, least, every_ns });
    }
    Ok(found)
}

fn latency_target(job: &Job, is_open: bool) -> Result<Option<LatencyTarget>, Fault> {
    let ns = job.time("latency_target", Bare::Microseconds)?.unwrap_or(0);
    let window_ns = job.time("latency_window", Bare::Microseconds)?.unwrap_or(0);
    let goes_on = job.on("latency_run", false)?;
    let percent = job.text("latency_percentile").map_or(Some(100.0), |text| text.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    let percent = percent
        .ok_or_else(|| job.fault("latency_percentile", "it is no share; type one above 0 and up to 100"))?;
    if ns == 0 {
        return Ok(None);
    }
    if !(MIN_TIME_NS..=MAX_TIME_NS).contains(&window_ns) {
        return Err(job.fault(
            "latency_target",
            "it needs windows in which operations are counted; type latency_window=5s",
        ));
    }
    if is_open {
        return Err(job.fault("latency_target", "a depth is not searched for where operations wait for nobody; leave rate_process and io_submit_mode out"));
    }
    Ok(Some(LatencyTarget { ns, percent, window_ns, goes_on }))
}
